// One Runge-Kutta stage of upwind DG for Maxwell's equations in one
// pass: res = a res + dt du/dt (it does not read res if a = 0),
// new = u + b res (it does not write new if b = 0).
//
// The state holds six covariant components, node by node: x_i . E and
// x_i . (Z H), where x_1, x_2, x_3 are the columns of dx/dr. With
// these, a curl takes six products with each entry of D and not nine;
// the tangential fields of two neighbors agree up to signs and sums;
// and two numbers per face node are lifted and not six.
//
// threads_plain.cuh and threads_tensor.cuh say which threads work on
// which nodes; threads.cuh includes one of them. The compiler limits
// registers so that a multiprocessor can hold BLOCKS blocks; with some
// of the fastest plans, some registers are then spilled to local
// memory.
//
// Macros: REAL, COUPLE (two of them), VECTOR (16 bytes of them), NP,
// NFP, those of threads.cuh, BLOCKS, MATERIALS (the impedance varies),
// KEEP (u stays in shared memory, and du/dt has a place of its own),
// FACTORED (it does res = a res + b u + dt du/dt alone).

#include "gpu/memory.cuh"

// In fp64, tensor cores take a component of E and one of H together.
__device__ constexpr int partner(int component, int components)
{
    return (component + components / 2) % components;
}

#include "nodal/kernels/threads.cuh"
#include "shared.cuh"
#include "fetch.cuh"
#include "maxwell/kernels/tangential.cuh"
#include "flux.cuh"
#include "maxwell/kernels/geometry.cuh"
#if TENSOR
#include "volume_tensor.cuh"
#include "lift_tensor.cuh"
#else
#include "volume.cuh"
#include "lift.cuh"
#endif
#include "update.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) fused(
    const REAL* __restrict__ u, const REAL* __restrict__ data,
    const unsigned* __restrict__ links,
    const unsigned* __restrict__ opposite,
    const REAL* __restrict__ tangents,
    const unsigned* __restrict__ face_nodes,
    const REAL* __restrict__ geometry,
    const REAL* __restrict__ boundary,
    const REAL* __restrict__ derivative, const REAL* __restrict__ lift,
    REAL* __restrict__ res, REAL* __restrict__ newer, unsigned faces,
    REAL a, REAL b, REAL dt, unsigned begin)
{
    extern __shared__ VECTOR memory[];
    const Shared shared(memory);
    // A launch takes the elements from `begin` on.
    const unsigned first = begin + blockIdx.x * ELEMENTS;

    // 1. Fetch the block's states, links and geometry.
    fetch(shared, first, u, links, geometry, res, a);
    __syncthreads();

    // 2. The upwind flux: two numbers per face node.
    compute_flux(shared, u, data, opposite, tangents, face_nodes,
                 boundary, faces);
    __syncthreads();

    // 3. J curl H and -J curl E at the nodes of this thread.
    const Place place;
    Rates rates = {};
    add_curl(rates, place, shared.state, derivative);

    // 4. Lift the flux, face by face.
    add_lifted(rates, place, shared, lift);
    __syncthreads();

    // 5. Store du/dt for the update.
    store_rates(rates, place, shared);
    __syncthreads();

    // 6. The update, once through the block's contiguous memory.
    update(shared, first, u, res, newer, a, b, dt);
}
