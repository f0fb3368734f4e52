// One Runge-Kutta stage of Bernstein-Bezier DG for acoustic waves in one pass:
// res = a res + dt du/dt (res is not read if a = 0), new = u + b res (not
// written if b = 0).
//
// The state holds four numbers per point, p and J grad(l_m) . v for m = 1, 2, 3,
// where l_m are the barycentric coordinates; the one for m = 0 is minus their
// sum. An element has the first VECTORs of all its points, then, in fp64, the
// second ones of all. A divergence takes one derivative of each, the normal
// velocities on a face are a component on either side, and grad p enters by
// three differences.
//
// A multiprocessor shall hold BLOCKS blocks of teams, see teams.cuh.
//
// Macros: REAL, VECTOR (16 bytes of them), BLOCKS, those of teams.cuh.

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

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) bernstein_fused(
    const REAL* __restrict__ u, const REAL* __restrict__ data,
    const unsigned* __restrict__ links, const unsigned* __restrict__ opposite,
    const unsigned* __restrict__ nodes, const REAL* __restrict__ squares,
    const unsigned* __restrict__ corners, const unsigned* __restrict__ rows,
    const REAL* __restrict__ weights, const REAL* __restrict__ geometry,
    const REAL* __restrict__ boundary, REAL* __restrict__ res,
    REAL* __restrict__ newer, unsigned faces, REAL a, REAL b, REAL dt)
{
    extern __shared__ VECTOR memory[];
    VECTOR* const room = memory + threadIdx.x / LANES * TEAM;   // the team's
    const unsigned lane = threadIdx.x % LANES;
    const unsigned first = (blockIdx.x * TEAMS + threadIdx.x / LANES) * ELEMENTS;

    // 1. Fetch the team's states, geometry and links.
    fetch(room, lane, first, u, geometry, links, res, a);
    meet();

    // 2. What the neighbors have at this thread's face points; it is on its way
    // while step 3 is done.
    FacePoints on_faces;
    fetch_neighbors(on_faces, room, lane, u, opposite);

    // 3. Derivatives in degree N - 1.
    derive(room, lane, corners);

    // 4. The flux on the four faces.
    compute_flux(on_faces, room, lane, nodes, squares, data, boundary, faces);
    meet();

    // 5. Slice 0 of the lift: L_0.
    lift_to_faces(on_faces, room, lane);

    // 6. Slice by slice through the tetrahedron.
    lift_inward(on_faces, room);
    meet();

    // 7. At every point: degree N, what was lifted, and the update.
    update(room, lane, first, rows, weights, res, newer, a, b, dt);
}
