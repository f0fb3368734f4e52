// One Runge-Kutta stage of DG for acoustic waves in one pass: res = a
// res + dt du/dt (it does not read res if a = 0), new = u + b res (it
// does not write new if b = 0).
//
// The state holds p and the contravariant velocities W_i = J grad r_i .
// v. With these, div v takes three products with each entry of D and
// not nine; the inflow through face i is W_i on each side, and through
// face 0 minus their sum; and one number per face node is lifted and
// not four. A VECTOR holds p and all W_i of a node. In fp64 it holds p
// and W_1, or W_2 and W_3: an element has the first VECTORs of all
// nodes, then the second ones.
//
// threads_plain.cuh and threads_tensor.cuh say which threads work on
// which nodes; threads.cuh includes one of them. The compiler limits
// registers so that a multiprocessor can hold BLOCKS blocks.
//
// Macros: REAL, COUPLE (two of them), VECTOR (16 bytes of them), NP,
// NFP, those of threads.cuh, BLOCKS, FACTORED (it does
// res = a res + b u + dt du/dt alone).

#include "gpu/memory.cuh"

// An fp64 product takes p and W_j together, for -grad p and for one of
// three parts of -div v.
__device__ constexpr int partner(int component, int)
{
    return component + 3;
}

#include "nodal/kernels/threads.cuh"
#include "acoustics/kernels/fields.cuh"
#include "shared.cuh"
#include "fetch.cuh"
#include "flux.cuh"
#include "geometry.cuh"
#if TENSOR
#include "rates_tensor.cuh"
#include "lift_tensor.cuh"
#include "volume_tensor.cuh"
#else
#include "rates.cuh"
#include "lift.cuh"
#include "volume.cuh"
#endif
#include "update.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) fused(
    const REAL* __restrict__ u, const REAL* __restrict__ data,
    const unsigned* __restrict__ links,
    const unsigned* __restrict__ opposite,
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

    // 2. The flux: one number per face node.
    compute_flux(shared, u, data, opposite, face_nodes, boundary,
                 faces);
    __syncthreads();

    // 3. Lift the flux, face by face, to the nodes of this thread.
    const Place place;
    Rates rates = {};
    add_lifted(rates, place, shared, lift);

    // 4. Add -div v and -grad p.
    add_derivatives(rates, place, shared.state, derivative);

    // 5. The update; a thread has the rates of its nodes in registers.
    update(rates, place, shared, first, res, newer, a, b, dt);
}
