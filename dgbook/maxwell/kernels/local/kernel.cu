// Local time steps of upwind DG for Maxwell's equations: steps end with
// a tick, and others begin, in one pass.
//
// Of the first `count` elements, whose clusters do both: what the faces
// have gained is added to the state, and the new step's polynomial at
// its end replaces it. Its integral Q goes to one of two regions, from
// which neighbors read it; dgbook/nodal/local.py says where. The state
// holds modes, field by field, of the components of the fused kernel;
// regions hold these components at nodes, node by node.
//
// Macros: those of the fused kernel, of which INLINE is 1, TENSOR 0 and
// KEEP 1, and ORDER.

#include "gpu/memory.cuh"
#include "nodal/kernels/threads.cuh"
#include "maxwell/kernels/fused/shared.cuh"
#include "maxwell/kernels/tangential.cuh"
#include "maxwell/kernels/fused/flux.cuh"
#include "maxwell/kernels/geometry.cuh"
#include "maxwell/kernels/fused/volume.cuh"
#include "maxwell/kernels/fused/lift.cuh"

// Words that describe an element: the number of its cluster, and where
// in a region its sum of two steps and its first half step are.
constexpr int CLUSTER = 0, LONGER = 1, SHORTER = 2, WORDS = 3;
constexpr unsigned NOWHERE = 0xffffffff;   // no neighbor reads it

using Fields = REAL[NODES][6];   // at the modes or nodes of a thread

#include "fetch.cuh"
#include "expand.cuh"
#include "keep.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) taylor(
    unsigned tick, unsigned count, unsigned ends, unsigned begins,
    unsigned halves, unsigned region, REAL* state, REAL* integrals,
    const REAL* __restrict__ data, const unsigned* __restrict__ now,
    const unsigned* __restrict__ later,
    const unsigned* __restrict__ groups,
    const unsigned* __restrict__ opposite,
    const REAL* __restrict__ tangents,
    const unsigned* __restrict__ face_nodes,
    const REAL* __restrict__ geometry,
    const REAL* __restrict__ boundary, const REAL* __restrict__ weights,
    const REAL* __restrict__ derivative, const REAL* __restrict__ lift,
    const REAL* __restrict__ vandermonde, unsigned faces)
{
    extern __shared__ VECTOR memory[];
    const Shared shared(memory);
    const Place place;
    const unsigned first = blockIdx.x * ELEMENTS, k = first + place.row;
    const bool mine = place.counts() && k < count;

    // The state at this thread's modes.
    Fields s;
#pragma unroll
    for (int i = 0; i < NODES * 6; ++i) {
        const unsigned n = place.lane + i / 6 * LANES;
        const size_t at = ((size_t)k * 6 + i % 6) * NP + n;
        s[i / 6][i % 6] = k < count && n < NP ? state[at] : 0;
    }
    fetch_geometry(shared, first, geometry);

    if (ends) {
        // 1. Integrals over the steps that end, their flux, its lift.
        fetch(shared, first, count, tick - 1, region, integrals, now,
              later, groups);
        __syncthreads();
        compute_flux(shared, integrals, data, opposite, tangents,
                     face_nodes, boundary, faces);
        __syncthreads();
        Rates gained = {};
        add_lifted(gained, place, shared, lift);
#pragma unroll
        for (int i = 0; i < NODES; ++i) {
            REAL lowered[6];
            lower(lowered, gained[i][0],
                  shared.shape + place.row * GEOMETRY);
#pragma unroll
            for (int x = 0; x < 6; ++x)
                s[i][x] += lowered[x];
        }
    }

    if (begins) {
        // 2. The expansion of the new steps, and its sums.
        const unsigned* group =
            groups + (k < count ? k : 0) * WORDS;
        Fields whole, half;
        sum_expansion(s, whole, half, place, shared, derivative,
                      weights + group[CLUSTER] * 3 * (ORDER + 1));
        // 3. Integrals at nodes, for all who read them.
        to_nodes(whole, half, place, shared, vandermonde,
                 group[SHORTER] != NOWHERE);
        keep(shared, first, count, tick, region, halves, groups,
             integrals);
    }

#pragma unroll
    for (int i = 0; i < NODES * 6; ++i) {
        const unsigned n = place.lane + i / 6 * LANES;
        if (mine && n < NP)
            state[((size_t)k * 6 + i % 6) * NP + n] = s[i / 6][i % 6];
    }
}
