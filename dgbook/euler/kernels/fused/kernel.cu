// One Runge-Kutta stage of quadrature DG for the Euler equations in one
// pass.
//
// One thread per element: no thread waits for another one, and all sums
// are in registers. All threads need the same number of a matrix at the
// same time, and constant memory broadcasts it to them. Both elements
// of an edge compute its flux, so that no thread adds to another
// element's residual, and one kernel computes a stage.
//
// A state is stored in tiles of 32 elements,
// [tile][node][field][element]. So a warp reads contiguous words, and a
// thread finds all its numbers at constant distances from the first.
//
// Macros: REAL; NP, NFP, NQ, NE (nodes, nodes per edge, quadrature
// points in the triangle, rounded up to POINTS, and per edge); FLUX;
// the plan, THREADS, BLOCKS, POINTS (at a time), PASSES (over the
// nodes), SHARED (whether the state is in shared memory), COPIED
// (whether the matrices are) and UNROLL (iterations of the loops over
// points that are unrolled); and the matrices, see tables() in
// dgbook/euler/launch/fused.py.

#include "arithmetic.cuh"
#include "riemann.cuh"
#include "matrices.cuh"
#include "element.cuh"
#include "volume.cuh"
#include "neighbor.cuh"
#include "edge.cuh"
#include "update.cuh"

// `geometry` holds rx, ry, sx, sy. `links` holds 4 n + g for edge g of
// element n, or 4 (2 b + wall) + 3 for row b of the boundary, which has
// `edges` rows. update.cuh says what the stages write. In LAST the
// smallest of the `names` of elements whose density or pressure is no
// longer positive goes to `bad`.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) fused(
    const REAL* __restrict__ u, const REAL* __restrict__ data,
    const unsigned* __restrict__ links,
    const REAL* __restrict__ geometry, const int* __restrict__ names,
    const REAL* base, const REAL* one, const REAL* two, REAL* out,
    int* bad, unsigned elements, unsigned edges, int stage, REAL dt,
    unsigned begin)
{
    // A launch takes the elements from `begin` on.
    const unsigned k = begin + blockIdx.x * THREADS + threadIdx.x;
    const unsigned stride = (elements + TILE - 1) / TILE * TILE;
#if COPIED
    __shared__ Matrices matrices;
    copy_to(matrices);
    __syncthreads();
#else
    const Matrices& matrices = given;
#endif
    if (k >= elements)
        return;
    const size_t first = (size_t)(k / TILE) * (SIZE * TILE) + k % TILE;

    // 1. Load the element's state, into registers or into a column of
    // shared memory that no other thread reads. Behind it is room for
    // the exterior states of an edge.
#if SHARED
    __shared__ REAL columns[(SIZE + FAR_SIZE) * THREADS];
    REAL* const state = columns + threadIdx.x;
#else
    REAL state[SIZE + FAR_SIZE];
#endif
#pragma unroll
    for (int i = 0; i < SIZE; ++i)
        state[i * APART] = u[first + i * TILE];
    const REAL rx = geometry[k], ry = geometry[k + stride];
    const REAL sx = geometry[k + 2 * stride];
    const REAL sy = geometry[k + 3 * stride];
    const unsigned met0 = links[k], met1 = links[k + stride];
    const unsigned met2 = links[k + 2 * stride];
    bool gas = true;

#pragma unroll 1
    for (int start = 0; start < ROWS; start += NODES) {
        REAL rate[NODES][4] = {};

        // 2. The volume, POINTS points at a time.
#pragma unroll DEPTH
        for (int q = 0; q < NQ; q += POINTS) {
            REAL w[POINTS][4] = {}, R[POINTS][4], S[POINTS][4];
            forget();
            interpolate(w, matrices, state, q);
            compute_flux(R, S, w, rx, ry, sx, sy);
            project(rate, matrices, R, S, q, start);
        }

        // 3. The edges: exterior states, then fluxes and their lift.
#pragma unroll SIDES
        for (int f = 0; f < 3; ++f) {
            const Normal normal(f, rx, ry, sx, sy);
            const unsigned link = f == 0 ? met0 : f == 1 ? met1 : met2;
            fetch_neighbor(state, f, link, normal, u, data, edges);
            add_edge(rate, matrices, state, f, normal, start);
        }

        // 4. The update.
        forget();
        update(rate, gas, state, first, start, u, base, one, two, out,
               stage, dt);
    }
    if (stage == LAST && !gas)
        atomicMin(bad, names[k]);
}
