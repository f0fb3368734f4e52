"""Classic with overlapped tiles: several time steps per launch."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.swept.kernels.row import make_row, make_wrap
from dgbook.swept.kernels.wide import make_exchange
from dgbook.swept.plan import Plan, ghost_points


def make_tiled(problem, threads, points, steps, dtype):
    """Kernel that advances all points by `steps` time steps.

    A block loads a tile of threads * points points. On each side, r
    points per substep belong to the neighboring blocks, which compute
    them as well. Wrong states spread from the tile's ends by r points
    per substep; after all steps the middle of the tile is still right,
    and is stored. So blocks exchange nothing: there are no edges and no
    idle threads. There is no boundary inside a tile either, since a
    tile continues beyond the domain's ends as the boundary condition
    says. The price is that points are computed more than once.

    u (fields n,)    the states
    new (fields n,)  the states `steps` time steps later; overwritten
    """
    real = np.dtype(dtype).type
    fields, stages = len(problem.fields), len(problem.weights)
    ghost = ghost_points(problem, Plan(threads, points, steps))
    tile, size = threads * points, fields * points
    near_size = fields * (points + 2 * problem.reach)
    inner, pairs = tile - 2 * ghost, steps * stages // 2
    all_points = (1 << points) - 1
    w, w_even = real(problem.weights[0]), real(problem.weights[-1])
    row, wrap = make_row(problem, points, real), make_wrap(problem)
    publish, fetch, meet, place, room_size = make_exchange(
        problem, threads, points, real
    )

    @jit
    def tiled(u, new):
        even = cuda.local.array(size, real)
        odd = cuda.local.array(size, real)
        near = cuda.local.array(near_size, real)
        room = cuda.shared.array(room_size, real)
        b, t = place()
        n = np.int32(u.size // fields)
        g = np.int32(b * inner - ghost + t * points)
        # Load the tile's states, of which some are the neighbors'.
        for j in range(points):
            at = wrap(np.int32(g + j), n)
            for f in range(fields):
                even[f * points + j] = u[np.uint32(f * n + at)]
        for _ in range(pairs):
            # The first substep of a pair: exchange the rows' ends, then
            # update.
            publish(room, 0, t, even)
            meet()
            fetch(room, 0, t, even, near)
            row(near, even, odd, all_points, w, g, n)
            # The second substep.
            publish(room, 1, t, odd)
            meet()
            fetch(room, 1, t, odd, near)
            old = even if stages == 2 else odd
            row(near, old, even, all_points, w_even, g, n)
        # Store the states that are right.
        for j in range(points):
            i = t * points + j
            if ghost <= i < tile - ghost and g + j < n:
                for f in range(fields):
                    new[np.uint32(f * n + g + j)] = even[f * points + j]

    return tiled
