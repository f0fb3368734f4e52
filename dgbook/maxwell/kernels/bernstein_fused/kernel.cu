// One Runge-Kutta stage of Bernstein-Bezier DG for Maxwell's equations
// in one pass: res = a res + dt du/dt (it does not read res if a = 0),
// new = u + b res (it does not write new if b = 0).
//
// The state of an element holds, for i = 1, 2, 3 at each control point,
// the pair x_i . E and x_i . (Z H), where x_1, x_2 and x_3 are the
// columns of dx/dr. Then a curl takes three subtractions per number, a
// face needs two or three pairs of each side, and the lift takes two
// numbers per face point instead of six. Neighboring threads read
// neighboring points, so that there are few bank conflicts.
//
// The compiler limits registers so that a multiprocessor can hold
// BLOCKS blocks of teams, see teams.cuh.
//
// Macros: REAL, COUPLE (two of them), VECTOR (16 bytes of them),
// BLOCKS, FACTORED (it does res = a res + b u + dt du/dt alone), those
// of teams.cuh.

#include "gpu/memory.cuh"
#include "nodal/kernels/teams.cuh"
#include "nodal/kernels/lift_face.cuh"
#include "maxwell/kernels/tangential.cuh"
#include "maxwell/kernels/geometry.cuh"
#include "team.cuh"
#include "fetch.cuh"
#include "derivatives.cuh"
#include "flux.cuh"
#include "update.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
bernstein_fused(const REAL* __restrict__ u,
                const REAL* __restrict__ data,
                const unsigned* __restrict__ links,
                const unsigned* __restrict__ meeting,
                const unsigned* __restrict__ points,
                const unsigned* __restrict__ slices,
                const REAL* __restrict__ weights,
                const REAL* __restrict__ geometry,
                const REAL* __restrict__ boundary,
                REAL* __restrict__ res, REAL* __restrict__ newer,
                unsigned faces, REAL a, REAL b, REAL dt,
                unsigned begin)
{
    extern __shared__ VECTOR memory[];
    const Room room(memory + threadIdx.x / LANES * TEAM);
    const unsigned lane = threadIdx.x % LANES;
    // A launch takes the elements from `begin` on.
    const unsigned team = blockIdx.x * TEAMS + threadIdx.x / LANES;
    const unsigned first = begin + team * ELEMENTS;

    // 1. Fetch the team's states, geometry and links.
    fetch_all(room, lane, first, u, geometry, links, res, a);
    meet();

    // 2. Compute curls in degree N - 1.
    derive(room, lane, points);

    // 3. Compute the flux, two numbers per face point.
    compute_flux(room, lane, u, data, meeting, boundary, faces);
    meet();

    // 4. Lift, slice by slice. One thread per face and number.
#pragma unroll 1
    for (unsigned p = lane; p < PLANES; p += LANES)
        lift_face((VECTOR*)(room.planes + p * PLANE));
    meet();

    // 5. At every point, raise the curls to degree N, add the lifted
    // flux of the four faces, and update.
    update(room, lane, first, points, slices, weights, res, newer, a, b,
           dt);
}
