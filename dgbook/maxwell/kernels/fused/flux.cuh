// Step 2: the upwind flux, two numbers per face node. They are the
// components of Z^+ [H] - n x [E] along the two tangents of the face,
// times Z^- / (Z^- + Z^+).

// The fields v of this element along the tangents of its face f, which
// are differences of x_1, x_2 and x_3.
__device__ Tangential tangential(const REAL* v, unsigned f)
{
    return {f == 0 ? v[1] - v[0] : v[f == 1],
            f == 0 ? v[2] - v[0] : v[f == 3 ? 1 : 2],
            f == 0 ? v[4] - v[3] : v[3 + (f == 1)],
            f == 0 ? v[5] - v[3] : v[f == 3 ? 4 : 5]};
}

// The neighbor's fields at its node `node`. For each way in which two
// elements can meet, `tangents` expresses this element's two tangents
// in the neighbor's x_1, x_2 and x_3.
__device__ Tangential across(const REAL* u, size_t node,
                             const REAL* tangents, unsigned way)
{
    alignas(16) REAL t[8];
    COUPLE w[3];
#pragma unroll
    for (int j = 0; j < 3; ++j)
        w[j] = ((const COUPLE*)u)[node * 3 + j];
    read(t, tangents + way * 8);
    return {t[0] * w[0].x + t[1] * w[0].y + t[2] * w[1].x,
            t[4] * w[0].x + t[5] * w[0].y + t[6] * w[1].x,
            t[0] * w[1].y + t[1] * w[2].x + t[2] * w[2].y,
            t[4] * w[1].y + t[5] * w[2].x + t[6] * w[2].y};
}

// The flux at all face nodes of the block's elements. A thread takes
// one point after another, point i of face f of element e. Points that
// only pad a face are zero.
__device__ void compute_flux(const Shared& shared, const REAL* u,
                             const REAL* data, const unsigned* opposite,
                             const REAL* tangents,
                             const unsigned* face_nodes,
                             const REAL* boundary, unsigned faces)
{
    constexpr int PAIRS = ELEMENTS * POINTS;   // of numbers
#pragma unroll 2
    for (unsigned p = threadIdx.x; p < PAIRS; p += THREADS) {
        const unsigned e = p / POINTS, f = p / FACE % 4, i = p % FACE;
        COUPLE both = {};
        if (i < NFP) {
            // The way in which the element meets its neighbor.
            const unsigned way = shared.link[e * 4 + f] % 32;
            const unsigned neighbor = shared.link[e * 4 + f] / 32;
            const REAL* v =
                (const REAL*)(shared.state + e / GROUP * STATE)
                + e % GROUP * SIZE + 6 * face_nodes[f * NFP + i];
            const Tangential inner = tangential(v, f);
            Tangential outer;
            if (way < 24) {
                const size_t node = (size_t)neighbor * EVEN_NP
                                    + opposite[way * NFP + i];
                outer = across(u, node, tangents, way);
            } else {
                outer =
                    outside(inner, data, boundary, neighbor, i, faces);
            }
            const REAL* const shape = shared.shape + e * GEOMETRY;
            const REAL zeta = MATERIALS ? shape[18 + f] : REAL(0.5);
            both = upwind(inner, outer, shape + 6 + f * 3, zeta, f);
        }
        COUPLE* to = (COUPLE*)(shared.flux + e / GROUP * FLUX);
        to[e % GROUP * POINTS + p % POINTS] = both;
    }
}
