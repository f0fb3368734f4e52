// Step 2: the flux, one number per face node: the jump of p and the
// inflow from both sides, weighted.

// The inflow through face f.
__device__ REAL inflow(const REAL (&v)[4], unsigned f)
{
    return f == 0   ? -(v[1] + v[2] + v[3])
           : f == 1 ? v[1]
           : f == 2 ? v[2]
                    : v[3];
}

// The flux at all face nodes of the block's elements. A thread has the
// same face node of many elements. If there are fewer face nodes than
// threads, teams of threads share the elements.
__device__ void compute_flux(const Shared& shared, const REAL* u,
                             const REAL* data, const unsigned* opposite,
                             const unsigned* face_nodes,
                             const REAL* boundary, unsigned faces)
{
    const unsigned thread = threadIdx.x;
#pragma unroll
    for (int start = 0; start < POINTS; start += THREADS) {
        const int rest = POINTS - start;
        const int count = rest < THREADS ? rest : THREADS;
        const int teams = THREADS / count;
        const unsigned q = start + thread % count;
        const unsigned f = q / NFP, i = q % NFP;
        const unsigned node = face_nodes[q];
#pragma unroll 2
        for (unsigned e = thread / count;
             thread < teams * count && e < ELEMENTS; e += teams) {
            // The way in which the element meets its neighbor.
            const unsigned way = shared.link[e * 4 + f] % 32;
            const unsigned neighbor = shared.link[e * 4 + f] / 32;
            alignas(16) REAL inner[4], outer[4];
            fields(inner, shared.state + e * STATE + node, COLUMNS);
            REAL more = -inner[0], in = inflow(inner, f);
            if (way < 24) {
                const unsigned place =
                    neighbor * SIZE + opposite[way * NFP + i];
                fields(outer, (const VECTOR*)u + place, NP);
                more += outer[0], in += inflow(outer, way / 6);
            } else {   // the boundary: a mirror
                const REAL* m = boundary + neighbor * 5;
                more += m[0] * inner[0], in -= m[1] * in;
                for (int c = 0; c < 4; ++c) {
                    const REAL g =
                        data[((size_t)c * faces + neighbor) * NFP + i];
                    if (c == 0)
                        more += g;
                    else
                        in += m[1 + c] * g;
                }
            }
            const REAL* weight =
                shared.shape + e * GEOMETRY + 8 + 2 * f;
            ((REAL*)(shared.flux + e * FLUX))[f * FACE + i] =
                weight[0] * more - weight[1] * in;
        }
    }
}
