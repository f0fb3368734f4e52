// Step 2: the volume, at POINTS quadrature points from q on.

// The state at the points.
__device__ void interpolate(REAL (&w)[POINTS][4],
                            const Matrices& matrices,
                            const REAL* state, int q)
{
#pragma unroll
    for (int i = 0; i < NP; ++i)
#pragma unroll
        for (int j = 0; j < POINTS; ++j)
#pragma unroll
            for (int c = 0; c < 4; ++c)
                w[j][c] += matrices.interpolation[q + j][i]
                           * state[(4 * i + c) * APART];
}

// The flux along r and s at the points.
__device__ void compute_flux(REAL (&R)[POINTS][4], REAL (&S)[POINTS][4],
                             const REAL (&w)[POINTS][4], REAL rx,
                             REAL ry, REAL sx, REAL sy)
{
#pragma unroll
    for (int j = 0; j < POINTS; ++j) {
        const REAL(&v)[4] = w[j];
        const REAL inv = inverse(v[0]);
        const REAL vx = v[1] * inv, vy = v[2] * inv;
        const REAL p = pressure(v, vx, vy);
        const REAL r = vx * rx + vy * ry, s = vx * sx + vy * sy;
        R[j][0] = r * v[0], S[j][0] = s * v[0];
        R[j][1] = r * v[1] + p * rx, S[j][1] = s * v[1] + p * sx;
        R[j][2] = r * v[2] + p * ry, S[j][2] = s * v[2] + p * sy;
        R[j][3] = r * (v[3] + p), S[j][3] = s * (v[3] + p);
    }
}

// Add the flux's part to the rates of this pass's nodes, from `start`
// on.
__device__ void project(REAL (&rate)[NODES][4],
                        const Matrices& matrices,
                        const REAL (&R)[POINTS][4],
                        const REAL (&S)[POINTS][4], int q, int start)
{
#pragma unroll
    for (int i = 0; i < NODES; ++i)
#pragma unroll
        for (int j = 0; j < POINTS; ++j)
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const REAL(&d)[2] =
                    matrices.projection[q + j][start + i];
                rate[i][c] += d[0] * R[j][c];
                rate[i][c] += d[1] * S[j][c];
            }
}
