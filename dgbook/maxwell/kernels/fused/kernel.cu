// One Runge-Kutta stage of upwind DG for Maxwell's equations in one pass:
// res = a res + dt du/dt (res is not read if a = 0), new = u + b res (not
// written if b = 0).
//
// The state holds, node by node, six covariant components: x_i . E and
// x_i . (Z H), where x_1, x_2, x_3 are the columns of dx/dr. Then a curl takes
// six products with an entry of D, not nine; the tangential fields of a
// neighbor are mine up to signs and sums; and two numbers per face node are
// lifted, not six.
//
// threads_plain.cuh and threads_tensor.cuh say who works on what; threads.cuh takes
// one of them. A multiprocessor shall hold BLOCKS blocks; some of the plans that win
// then keep some registers in local memory.
//
// Macros: REAL, COUPLE (two of them), VECTOR (16 bytes of them), NP, NFP, those
// of threads.cuh, BLOCKS, MATERIALS (the impedance varies), KEEP (u stays in
// shared memory, and du/dt gets a place of its own).

#include "gpu/memory.cuh"

// In fp64 tensor cores take a component of E and one of H together.
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
    const unsigned* __restrict__ links, const unsigned* __restrict__ opposite,
    const REAL* __restrict__ tangents, const unsigned* __restrict__ face_nodes,
    const REAL* __restrict__ geometry, const REAL* __restrict__ boundary,
    const REAL* __restrict__ derivative, const REAL* __restrict__ lift,
    REAL* __restrict__ res, REAL* __restrict__ newer, unsigned faces,
    REAL a, REAL b, REAL dt)
{
    extern __shared__ VECTOR memory[];
    const Shared shared(memory);
    const unsigned first = blockIdx.x * ELEMENTS;   // element of the block

    // 1. Fetch the block's states, links and geometry.
    fetch(shared, first, u, links, geometry, res, a);
    __syncthreads();

    // 2. Two numbers per face node: the jump that the upwind flux makes.
    compute_flux(shared, u, data, opposite, tangents, face_nodes, boundary, faces);
    __syncthreads();

    // 3. J curl H and -J curl E at the nodes of this thread.
    const Place place;
    Rates rates = {};
    add_curl(rates, place, shared.state, derivative);

    // 4. Lift the flux, face by face.
    add_lifted(rates, place, shared, lift);
    __syncthreads();

    // 5. Put du/dt where the update finds it: lift.cuh or lift_tensor.cuh.
    store_rates(rates, place, shared);
    __syncthreads();

    // 6. The update, once through the block's contiguous memory.
    update(shared, first, u, res, newer, a, b, dt);
}
