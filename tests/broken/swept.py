"""Wrong kernels of the swept family: each has one mistake that is easy to make."""

import dataclasses
from unittest import mock

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.swept.kernels import row, shared, tiled, wide
from dgbook.swept.parts import LEFT, RIGHT, Together
from dgbook.swept.plan import Plan
from dgbook.swept.problem import Heat


def make_diamond_with_swapped_edges(problem, node, dtype):
    """The shifted diamond seeded by the left edge of the node on its left, and so on."""
    right = shared.make_diamond(problem, node, dtype, True)

    class Swapped:
        def __getitem__(self, launch):
            return lambda left, right_, *new: right[launch](right_, left, *new)

    return Swapped()


def make_up_with_a_wide_stencil(problem, node, dtype):
    """The up-triangle of the heat equation with T_{i+2} for T_{i+1}."""
    return _heat_up(problem, node, dtype, right=2)


def make_up_without_barrier(problem, node, dtype):
    """The up-triangle without barriers between its levels."""
    return _heat_up(problem, node, dtype, barriers=False)


def _heat_up(problem, node, dtype, right=1, barriers=True):
    """The up-triangle of the heat equation, written out, with what is wrong as a parameter."""
    real = np.dtype(dtype).type
    fo = real(problem.fourier)
    width, half = node + 2, node // 2

    @jit
    def up(u, left, right_edges):
        rows = cuda.shared.array(2 * width, real)
        t = cuda.threadIdx.x
        b = cuda.blockIdx.x
        rows[t + 1] = u[b * node + t]
        cuda.syncthreads()
        for level in range(1, half):
            source = (level + 1) % 2 * width + t + 1
            target = level % 2 * width + t + 1
            if level <= t < node - level:
                mine = rows[source]
                rows[target] = mine + fo * (rows[source - 1] + rows[source + right] - 2 * mine)
            if barriers:
                cuda.syncthreads()
        at = b * node + t
        left[at] = rows[t + 1] if t < half else rows[width + t - half + 2]
        right_edges[at] = rows[t + 1 + half] if t < half else rows[width + t]

    return up


def make_down_with_swapped_rows(problem, node, dtype):
    """The down-triangle that returns the odd row, a level below the full one."""
    real = np.dtype(dtype).type
    width = node + 2 * problem.reach
    march = shared.make_march(problem, node, dtype)
    _, insert = shared.make_edges(problem, node)

    @jit
    def down(left, right, u):
        rows = cuda.shared.array(2 * width, real)
        t = cuda.threadIdx.x
        b = cuda.blockIdx.x
        n = u.size
        insert(rows, left, right, b, n, t, False)
        cuda.syncthreads()
        march(rows, t, b * node + t, n, 1, node // (2 * problem.reach))
        u[b * node + t] = rows[width + t + 1]

    return down


def make_diamond_without_boundary(problem, node, dtype):
    """The shifted diamond whose split node knows nothing of the ends."""

    @dataclasses.dataclass(frozen=True)
    class Ring(Heat):
        boundary = "periodic"

    return shared.make_diamond(Ring(problem.dx, problem.dt), node, dtype, True)


def make_complete_without_halo(problem, threads, points):
    """The node's first and last thread take their own states for what is outside of the node."""
    width, behind = points + 2 * problem.reach, points + problem.reach
    fields, reach = len(problem.fields), problem.reach
    right = RIGHT_COMPLETE(problem, threads, points)

    @jit(device=True)
    def complete(near, states, halo, t, g, n):
        wrapped = cuda.local.array(8, np.float64)
        for f in range(fields):
            for k in range(reach):
                wrapped[f * reach + k] = near[f * width + (reach if t == 0 else behind - 1)]
        right(near, states, wrapped, t, g, n)

    return complete


RIGHT_COMPLETE = wide.make_complete
RIGHT_EXCHANGE = wide.make_exchange


def make_exchange_without_barriers(problem, threads, points, real):
    """Rows' ends are fetched when nobody knows whether they were published."""
    publish, fetch, _, place, room_size = RIGHT_EXCHANGE(problem, threads, points, real)

    @jit(device=True)
    def meet():
        return

    return publish, fetch, meet, place, room_size


def make_tiled_with_a_narrow_ghost_zone(problem, threads, points, steps, dtype):
    """A tile that keeps on either side the points of two substeps too many."""
    ghost = tiled.ghost_points(problem, Plan(threads, points, steps)) - 2 * problem.reach
    with mock.patch.object(tiled, "ghost_points", lambda *_: ghost):
        return tiled.make_tiled(problem, threads, points, steps, dtype)


def make_persistent_without_barriers(problem, points, dtype):
    """All time steps in one kernel, each thread at its own pace."""
    real = np.dtype(dtype).type
    forward, backward = (row.make_substep(problem, stage, points, real) for stage in (0, 1))

    @jit
    def persistent(u, other, pairs):
        n = np.int32(u.size)
        g = np.int32(cuda.grid(1) * points)
        for _ in range(pairs):
            if g < n:
                forward(u, other, g, n)
                backward(other, u, g, n)

    return persistent


# ------------------------------------------------------------------------ wrong exchanges of parts


class StaleGhosts(Together):
    """Ghosts are filled once, and never again."""

    def _exchange(self, *moves):
        start, finish = super()._exchange(*moves)
        done = []

        def once():
            if not done:
                finish()
            done.append(True)

        return start, once


class SwappedNeighbors(Together):
    """What comes from the left is taken for what comes from the right; of one field."""

    def _exchange(self, *moves):
        arrays, views, ways = moves[0]
        if len(ways) == 1:
            return super()._exchange((arrays, views, [LEFT if ways == [RIGHT] else RIGHT]))
        start, finish = super()._exchange(*moves)
        array, own = arrays[1], self.solver.mine[1].own

        def swapped():
            finish()
            left, right = array[: own.start].copy(), array[own.stop :].copy()
            array[: own.start], array[own.stop :] = right, left

        return start, swapped


class SentTooEarly(Together):
    """The exchange begins before the edge is updated."""

    def _overlapped(self, way, exchange):
        edges, (together,) = super()._overlapped(way, exchange)
        interiors, _ = together.args
        return list(exchange), [*edges, interiors]
