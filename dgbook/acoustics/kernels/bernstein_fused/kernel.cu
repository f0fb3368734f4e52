// One Runge-Kutta stage of Bernstein-Bezier DG for acoustic waves in
// one pass: res = a res + dt du/dt (it does not read res if a = 0),
// new = u + b res (it does not write new if b = 0).
//
// The state holds four numbers per point, p and J grad(l_m) . v for
// m = 1, 2, 3, where l_m are the barycentric coordinates; the number
// for m = 0 is minus their sum. An element has the first VECTORs of all
// its points and then, in fp64, all second ones. The divergence takes
// one derivative of each velocity, the normal velocity on a face is one
// component on each side, and three differences make grad p.
//
// The compiler limits registers so that a multiprocessor can hold
// BLOCKS blocks of teams, see teams.cuh.
//
// Macros: REAL, VECTOR (16 bytes of them), BLOCKS, those of teams.cuh,
// FACTORED (it does res = a res + b u + dt du/dt alone).

#include "gpu/memory.cuh"
#include "acoustics/kernels/fields.cuh"
#include "nodal/kernels/teams.cuh"
#include "team.cuh"
#include "fetch.cuh"
#include "neighbors.cuh"
#include "derivatives.cuh"
#include "flux.cuh"
#include "lift.cuh"
#include "update.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    bernstein_fused(
    const REAL* __restrict__ u, const REAL* __restrict__ data,
    const unsigned* __restrict__ links,
    const unsigned* __restrict__ opposite,
    const unsigned* __restrict__ nodes,
    const REAL* __restrict__ squares,
    const unsigned* __restrict__ corners,
    const unsigned* __restrict__ rows,
    const REAL* __restrict__ weights,
    const REAL* __restrict__ geometry,
    const REAL* __restrict__ boundary, REAL* __restrict__ res,
    REAL* __restrict__ newer, unsigned faces, REAL a, REAL b, REAL dt,
    unsigned begin)
{
    extern __shared__ VECTOR memory[];
    const unsigned team = threadIdx.x / LANES;
    VECTOR* const room = memory + team * TEAM;   // the team's part
    const unsigned lane = threadIdx.x % LANES;
    // A launch takes the elements from `begin` on.
    const unsigned first
        = begin + (blockIdx.x * TEAMS + team) * ELEMENTS;

    // 1. Fetch the team's states, geometry and links.
    fetch(room, lane, first, u, geometry, links, res, a);
    meet();

    // 2. Fetch the neighbors' fields at this thread's face points.
    // These loads are in flight during step 3.
    FacePoints on_faces;
    fetch_neighbors(on_faces, room, lane, u, opposite);

    // 3. Derivatives of degree N - 1.
    derive(room, lane, corners);

    // 4. The flux on the four faces.
    compute_flux(on_faces, room, lane, nodes, squares, data, boundary,
                 faces);
    meet();

    // 5. Slice 0 of the lift: L_0.
    lift_to_faces(on_faces, room, lane);

    // 6. The other slices of the lift, through the tetrahedron.
    lift_inward(on_faces, room);
    meet();

    // 7. At every point: elevation to degree N, the lift, the update.
    update(room, lane, first, rows, weights, res, newer, a, b, dt);
}
