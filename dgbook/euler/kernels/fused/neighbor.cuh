// Step 3, first half: the exterior states along edge f, in the order in
// which this element has the nodes of the edge.

__device__ void fetch_neighbor(REAL* state, int f, unsigned link,
                               const Normal& normal, const REAL* u,
                               const REAL* data, unsigned edges)
{
    REAL* const far = state + FAR;
    const unsigned n = link / 4, g = link % 4;
    if (g < 3) {   // edge g of element n, in reverse order
        const REAL* neighbor =
            u + (size_t)(n / TILE) * (SIZE * TILE) + n % TILE;
#pragma unroll
        for (int j = 0; j < NFP; ++j)
#pragma unroll
            for (int c = 0; c < 4; ++c)
                far[(4 * j + c) * APART] =
                    neighbor[(4 * edge_nodes[g][NFP - 1 - j] + c)
                             * TILE];
    } else if (n % 2 == WALL) {   // this element's own state, mirrored
#pragma unroll
        for (int j = 0; j < NFP; ++j) {
            const REAL* near = state + 4 * edge_nodes[f][j] * APART;
            const REAL x = near[APART], y = near[2 * APART];
            const REAL twice = 2 * (x * normal.x + y * normal.y);
            far[4 * j * APART] = near[0];
            far[(4 * j + 1) * APART] = x - twice * normal.x;
            far[(4 * j + 2) * APART] = y - twice * normal.y;
            far[(4 * j + 3) * APART] = near[3 * APART];
        }
    } else {   // nodal values that interpolate to given point values
#pragma unroll
        for (int j = 0; j < NFP; ++j)
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                REAL sum = 0;
                for (int q = 0; q < NE; ++q)
                    sum += nodal[j][q]
                           * data[(c * edges + n / 2) * NE + q];
                far[(4 * j + c) * APART] = sum;
            }
    }
}
