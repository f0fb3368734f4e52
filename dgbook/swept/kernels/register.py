"""The Register kernels: one warp per node, exchange by shuffles."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.gpu.limits import FULL_MASK, WARP
from dgbook.swept.arithmetic import GPU
from dgbook.swept.point import make_access, make_neighbors

HALF = WARP // 2


def make_register_up(problem, dtype):
    """Kernel for the up-triangle: from states of one time to edges.

    One thread per point, one warp per node, and any number of warps per
    block. The arguments are those of the Shared kernels, with nodes of
    32 points.
    """
    real = np.dtype(dtype).type
    fields, reach = len(problem.fields), problem.reach
    top = WARP // reach
    march = make_register_march(problem, dtype)
    extract, _ = make_register_edges(problem, real)
    load = make_access(problem, real, GPU).load

    @jit
    def register_up(u, left, right):
        n = np.int32(u.size // fields)
        g = np.int32(cuda.grid(1))
        # The states are the base: march to the top, and store the
        # edges.
        even = load(u, np.uint32(g), np.uint32(n))
        even, odd = march(even, even, even, g, g, n, top // 2 + 1, top)
        extract(even, odd, left, right, g)

    return register_up


def make_register_diamond(problem, dtype, shifted):
    """Kernel for a diamond: from edges to edges of nodes in between."""
    real = np.dtype(dtype).type
    fields, reach = len(problem.fields), problem.reach
    top = WARP // reach
    shift = HALF if shifted else 0
    march = make_register_march(problem, dtype)
    extract, insert = make_register_edges(problem, real)

    @jit
    def register_diamond(left, right, new_left, new_right):
        n = np.int32(left.size // fields)
        i = np.int32(cuda.grid(1))
        g = np.int32(i - shift if i >= shift else i - shift + n)
        # From edges to the first level, through all levels, to edges.
        even, odd, halo = insert(left, right, i, n, shifted)
        even, odd = march(even, odd, halo, i, g, n, 1, top)
        extract(even, odd, new_left, new_right, i)

    return register_diamond


def make_register_down(problem, dtype, shifted):
    """Kernel for the down-triangle: from edges to one time's states."""
    real = np.dtype(dtype).type
    fields, reach = len(problem.fields), problem.reach
    top = WARP // reach
    shift = HALF if shifted else 0
    march = make_register_march(problem, dtype)
    _, insert = make_register_edges(problem, real)
    store = make_access(problem, real, GPU).store

    @jit
    def register_down(left, right, u):
        n = np.int32(left.size // fields)
        i = np.int32(cuda.grid(1))
        g = np.int32(i - shift if i >= shift else i - shift + n)
        # From edges to the first level, and up to the base.
        even, odd, halo = insert(left, right, i, n, shifted)
        even, odd = march(even, odd, halo, i, g, n, 1, top // 2)
        store(u, np.uint32(g), np.uint32(n), even)

    return register_down


def make_register_march(problem, dtype):
    """Device function that takes a warp through levels of its diamond.

    Each lane holds two states of its point, one of an even and one of
    an odd level, which correspond to the rows of the Shared kernels. A
    shuffle takes any lane's state to any other lane, so that a boundary
    condition is only a choice of the lane to read from. Every lane
    takes part in every shuffle, since no lane can read from one that is
    masked.

    Only at level 32 / 2r, where the base is complete, r states on each
    side are outside of the warp. If the lanes are taken as a ring, the
    lanes in their places hold them, as `halo`.

    march(even, odd, halo, i, g, n, level, last) returns even and odd; i
    is the thread, and g the index of its point in the domain of n
    points.
    """
    real = np.dtype(dtype).type
    reach, stages = problem.reach, len(problem.weights)
    top = WARP // reach
    weight = real(problem.weights[0])
    weight_even = real(problem.weights[-1])
    fixed = problem.boundary == "fixed"
    advance = make_access(problem, real, GPU).advance
    neighbors = make_neighbors(reach, problem.ends, GPU)
    around, mend = make_shuffles(problem)

    @jit(device=True)
    def march(even, odd, halo, i, g, n, level, last):
        # The lanes to read from, counted from 32 on, so that those
        # before the first are positive, too.
        t = np.int32(i % WARP)
        end, this = np.int32(t + WARP - g), np.int32(t + WARP)
        lanes = neighbors(this, end, np.int32(end + n - 1))
        # The levels at which this lane works.
        w, w_even = weight, weight_even
        if fixed and (g == 0 or g == n - 1):
            w = w_even = real(0)
        out = HALF - 1 - t if t < HALF else t - HALF
        start = np.int32(out // reach + 1)
        stop = np.int32(top - start)
        level = np.int32(level)
        # All lanes shuffle at every level, odd and even alternating.
        while level < last:
            stencil = around(even, lanes)
            if start <= level <= stop:
                odd = advance(even, w, stencil)
            level = np.int32(level + 1)
            stencil = around(odd, lanes)
            if level == top // 2:
                stencil = mend(stencil, halo, lanes)
            if start <= level <= stop:
                old = even if stages == 2 else odd
                even = advance(old, w_even, stencil)
            level = np.int32(level + 1)
        return even, odd

    return march


def make_shuffles(problem):
    """Device functions that read a stencil from other lanes.

    around(state, lanes) returns the stencil of a point. mend(stencil,
    halo, lanes) replaces those of its states that are outside of the
    warp.
    """
    if len(problem.fields) == 1:

        @jit(device=True)
        def ask(state, lane):
            return cuda.shfl_sync(FULL_MASK, state, lane % WARP)

    else:

        @jit(device=True)
        def ask(state, lane):
            lane = lane % WARP
            return (
                cuda.shfl_sync(FULL_MASK, state[0], lane),
                cuda.shfl_sync(FULL_MASK, state[1], lane),
                cuda.shfl_sync(FULL_MASK, state[2], lane),
            )

    @jit(device=True)
    def outside(state, halo, lane):
        asked = ask(halo, lane)
        return state if WARP <= lane < 2 * WARP else asked

    if problem.reach == 1:

        @jit(device=True)
        def around(state, lanes):
            return ask(state, lanes[0]), state, ask(state, lanes[2])

        @jit(device=True)
        def mend(stencil, halo, lanes):
            return (
                outside(stencil[0], halo, lanes[0]),
                stencil[1],
                outside(stencil[2], halo, lanes[2]),
            )

    else:

        @jit(device=True)
        def around(state, lanes):
            return (
                ask(state, lanes[0]),
                ask(state, lanes[1]),
                state,
                ask(state, lanes[3]),
                ask(state, lanes[4]),
            )

        @jit(device=True)
        def mend(stencil, halo, lanes):
            return (
                outside(stencil[0], halo, lanes[0]),
                outside(stencil[1], halo, lanes[1]),
                stencil[2],
                outside(stencil[3], halo, lanes[3]),
                outside(stencil[4], halo, lanes[4]),
            )

    return around, mend


def make_register_edges(problem, real):
    """Device functions that move edges from registers and to registers.

    The edges are laid out as in the Shared kernels.
    """
    fields, reach = len(problem.fields), problem.reach
    load, store, _, _ = make_access(problem, real, GPU)
    stride = np.uint32(WARP)

    @jit(device=True)
    def extract(even, odd, left, right, i):
        # The even row's halves, then those of the odd row, whose lanes
        # are shifted by r.
        t = i % WARP
        node = (i - t) * fields
        if t < HALF:
            store(left, np.uint32(node + t), stride, even)
        else:
            store(right, np.uint32(node + t - HALF), stride, even)
        if reach <= t < HALF + reach:
            store(left, np.uint32(node + HALF + t - reach), stride, odd)
        if HALF - reach <= t < WARP - reach:
            store(right, np.uint32(node + t + reach), stride, odd)

    @jit(device=True)
    def insert(left, right, i, n, shifted):
        # The two nodes from whose edges this one grows.
        t = i % WARP
        before = i - t - WARP if shifted else i - t
        after = before + WARP
        before = (before if before >= 0 else n - WARP) * fields
        after = (after if after < n else 0) * fields
        # The even row's halves, one from each node.
        from_before = load(right, np.uint32(before + t % HALF), stride)
        from_after = load(left, np.uint32(after + t % HALF), stride)
        even = from_before if t < HALF else from_after
        # The odd row's halves, each in a ring of lanes that is shifted
        # by r.
        at = HALF + (t + reach) % HALF
        from_before = load(right, np.uint32(before + at), stride)
        at = HALF + (t + HALF - reach) % HALF
        from_after = load(left, np.uint32(after + at), stride)
        odd = from_before if t < HALF else from_after
        halo = from_after if t < HALF else from_before
        return even, odd, halo

    return extract, insert
