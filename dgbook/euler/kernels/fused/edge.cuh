// Step 3, second half: fluxes at the points of edge f, and their lift.

__device__ void add_edge(REAL (&rate)[NODES][4],
                         const Matrices& matrices, const REAL* state,
                         int f, const Normal& normal, int start)
{
    const REAL* const far = state + FAR;
#pragma unroll DEPTH
    for (int q = 0; q < NE; ++q) {
        // The states at point q, left of the edge and right of it.
        REAL left[4] = {}, right[4] = {}, F[4];
        forget();
#pragma unroll
        for (int j = 0; j < NFP; ++j) {
            const REAL* near = state + 4 * edge_nodes[f][j] * APART;
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const REAL t = matrices.trace[q][j];
                left[c] += t * near[c * APART];
                right[c] += t * far[(4 * j + c) * APART];
            }
        }

        // The flux; add its part to the rates of this pass's nodes.
        riemann(F, left, right, normal.x, normal.y);
#pragma unroll
        for (int c = 0; c < 4; ++c)
            F[c] *= normal.half;
#pragma unroll
        for (int i = 0; i < NODES; ++i)
#pragma unroll
            for (int c = 0; c < 4; ++c)
                rate[i][c] += matrices.lift[f][q][start + i] * F[c];
    }
}
