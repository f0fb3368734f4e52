// One Runge-Kutta stage of quadrature DG for the Euler equations in one pass.
//
// A thread has an element to itself: nobody waits for anybody, and all sums are
// in registers. All threads want the same number of a matrix at the same time:
// constant memory gives it to all of them at once. Of an edge both elements
// compute the flux, so that nobody adds to another's residual, and a stage is
// one kernel.
//
// A state is stored in tiles of 32 elements, [tile][node][field][element]: what
// a warp reads is contiguous, and a thread finds all its numbers at constant
// distances from the first.
//
// Macros: REAL; NP, NFP, NQ, NE (nodes, nodes of an edge, quadrature points in
// the triangle, rounded up to POINTS, and on an edge); FLUX; the plan, THREADS,
// BLOCKS, POINTS (at a time), PASSES (over the nodes), SHARED (where the state
// is kept), COPIED (where the matrices are) and UNROLL (turns of the loops over
// points); and the matrices, see tables() in dgbook/euler/launch/fused.py.

#include "arithmetic.cuh"
#include "riemann.cuh"
#include "matrices.cuh"
#include "element.cuh"
#include "volume.cuh"
#include "neighbor.cuh"
#include "edge.cuh"
#include "update.cuh"

// `geometry` are rx, ry, sx, sy; `links` are 4 n + g for edge g of element n,
// or 4 (2 b + wall) + 3 for row b of the boundary, of `edges` rows. For what the
// stages write see update.cuh. In LAST the smallest of the `names` of elements
// that are no gas any more goes to `bad`.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) fused(
    const REAL* __restrict__ u, const REAL* __restrict__ data,
    const unsigned* __restrict__ links, const REAL* __restrict__ geometry,
    const int* __restrict__ names, const REAL* base, const REAL* one,
    const REAL* two, REAL* out, int* bad, unsigned elements, unsigned edges,
    int stage, REAL dt)
{
    const unsigned k = blockIdx.x * THREADS + threadIdx.x;
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

    // 1. The element's state, in registers or in a column of shared memory that
    // no other thread reads; behind it is room for nodes across an edge.
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
    const REAL sx = geometry[k + 2 * stride], sy = geometry[k + 3 * stride];
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

        // 3. The edges: what lies across, then fluxes and lift.
#pragma unroll SIDES
        for (int f = 0; f < 3; ++f) {
            const Normal normal(f, rx, ry, sx, sy);
            const unsigned link = f == 0 ? met0 : f == 1 ? met1 : met2;
            fetch_neighbor(state, f, link, normal, u, data, edges);
            add_edge(rate, matrices, state, f, normal, start);
        }

        // 4. The update.
        forget();
        update(rate, gas, state, first, start, u, base, one, two, out, stage, dt);
    }
    if (stage == LAST && !gas)
        atomicMin(bad, names[k]);
}
