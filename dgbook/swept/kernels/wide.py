"""Shared and Register with several points per thread."""

from functools import cache

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.gpu.limits import FULL_MASK, WARP
from dgbook.swept.kernels.row import make_row


def make_wide_up(problem, threads, points, dtype, shuffled):
    """Kernel for the up-triangle: from states of one time to edges.

    A node has threads * points points. In Shared its threads are a
    block; in Register (`shuffled`) they are a warp, and a block has any
    number of warps. The arguments are those of the Shared kernels with
    one point per thread.
    """
    real = np.dtype(dtype).type
    fields = len(problem.fields)
    size, node = fields * points, threads * points
    top = node // problem.reach
    march, place, room_size = make_wide_march(
        problem, threads, points, real, shuffled
    )
    extract, _ = make_wide_edges(problem, threads, points, real)

    @jit
    def wide_up(u, left, right):
        even = cuda.local.array(size, real)
        odd = cuda.local.array(size, real)
        room = cuda.shared.array(room_size, real)
        b, t = place()
        n = np.int32(u.size // fields)
        g = np.int32(b * node + t * points)
        # The states are the base: march to the top, and store the
        # edges.
        for f in range(fields):
            for j in range(points):
                even[f * points + j] = u[np.uint32(f * n + g + j)]
                odd[f * points + j] = even[f * points + j]
        march(room, even, odd, even, t, g, n, top // 2 + 1, top)
        extract(even, odd, left, right, b, t)

    return wide_up


def make_wide_diamond(
    problem, threads, points, dtype, shuffled, shifted
):
    """Kernel for a diamond: from edges to edges of nodes in between."""
    real = np.dtype(dtype).type
    fields, reach = len(problem.fields), problem.reach
    size, ends, node = fields * points, fields * reach, threads * points
    top = node // reach
    shift = node // 2 if shifted else 0
    march, place, room_size = make_wide_march(
        problem, threads, points, real, shuffled
    )
    extract, insert = make_wide_edges(problem, threads, points, real)

    @jit
    def wide_diamond(left, right, new_left, new_right):
        even = cuda.local.array(size, real)
        odd = cuda.local.array(size, real)
        halo = cuda.local.array(ends, real)
        room = cuda.shared.array(room_size, real)
        b, t = place()
        n = np.int32(left.size // fields)
        g = np.int32(b * node + t * points - shift)
        g = g if g >= 0 else np.int32(g + n)
        # From edges to the first level, through all levels, to edges.
        insert(even, odd, halo, left, right, b, n, t, shifted)
        march(room, even, odd, halo, t, g, n, 1, top)
        extract(even, odd, new_left, new_right, b, t)

    return wide_diamond


def make_wide_down(problem, threads, points, dtype, shuffled, shifted):
    """Kernel for the down-triangle: from edges to one time's states."""
    real = np.dtype(dtype).type
    fields, reach = len(problem.fields), problem.reach
    size, ends, node = fields * points, fields * reach, threads * points
    top = node // reach
    shift = node // 2 if shifted else 0
    march, place, room_size = make_wide_march(
        problem, threads, points, real, shuffled
    )
    _, insert = make_wide_edges(problem, threads, points, real)

    @jit
    def wide_down(left, right, u):
        even = cuda.local.array(size, real)
        odd = cuda.local.array(size, real)
        halo = cuda.local.array(ends, real)
        room = cuda.shared.array(room_size, real)
        b, t = place()
        n = np.int32(left.size // fields)
        g = np.int32(b * node + t * points - shift)
        g = g if g >= 0 else np.int32(g + n)
        # From edges to the first level, and up to the base.
        insert(even, odd, halo, left, right, b, n, t, shifted)
        march(room, even, odd, halo, t, g, n, 1, top // 2)
        # The base: states of one time.
        for f in range(fields):
            for j in range(points):
                u[np.uint32(f * n + g + j)] = even[f * points + j]

    return wide_down


def make_wide_march(problem, threads, points, real, shuffled):
    """Device function that takes a node through levels of its diamond.

    The levels are those of the Shared kernels. A thread has the even
    and the odd states of its row of points in registers; other threads
    need only the first r and the last r of them. At the ends of a
    level, a row is partly inside of the diamond and partly outside: the
    thread computes all of it and keeps what is inside.

    march(room, even, odd, halo, t, g, n, level, last): t is the thread,
    and g the index of its first point. Only the first and the last
    thread of a node need `halo`, the states outside of the node at the
    level before its base; where the results beside it are not kept, it
    may hold any numbers.

    Returns march, the function place(), which returns the node of a
    thread and its number in the node, and the words of shared memory
    for the exchange.
    """
    fields, reach = len(problem.fields), problem.reach
    stages = len(problem.weights)
    half, top = threads * points // 2, threads * points // reach
    near_size = fields * (points + 2 * reach)
    w, w_even = real(problem.weights[0]), real(problem.weights[-1])
    row = make_row(problem, points, real)
    make = make_shuffles if shuffled else make_exchange
    publish, fetch, meet, place, room_size = make(
        problem, threads, points, real
    )
    complete = make_complete(problem, threads, points)

    @jit(device=True)
    def inside(inward, level, start, stop):
        alive = np.int32(0)
        for j in range(points):
            late = (points - 1 - j) // reach if inward else j // reach
            if start + late <= level <= stop - late:
                alive |= np.int32(1 << j)
        return alive

    @jit(device=True)
    def march(room, even, odd, halo, t, g, n, level, last):
        near = cuda.local.array(near_size, real)
        # The levels at which this row is partly inside of the diamond;
        # `inward` rows have the node's middle behind their last point.
        inward = t < threads // 2
        out = (
            half - points - t * points if inward else t * points - half
        )
        start = np.int32(out // reach + 1)
        stop = np.int32(top - start)
        level = np.int32(level)
        # Publish the ends of this row for the other threads.
        publish(room, 0, t, even)
        publish(room, 1, t, odd)
        meet()
        while level < last:
            # An odd level: fetch the neighbors' ends, update, publish.
            active = start <= level <= stop
            if active or shuffled:
                fetch(room, 0, t, even, near)
            if active:
                complete(near, even, halo, t, g, n)
                alive = inside(inward, level, start, stop)
                row(near, even, odd, alive, w, g, n)
                publish(room, 1, t, odd)
            meet()
            level = np.int32(level + 1)
            # An even level.
            active = start <= level <= stop
            if active or shuffled:
                fetch(room, 1, t, odd, near)
            if active:
                complete(near, odd, halo, t, g, n)
                alive = inside(inward, level, start, stop)
                old = even if stages == 2 else odd
                row(near, old, even, alive, w_even, g, n)
                publish(room, 0, t, even)
            meet()
            level = np.int32(level + 1)

    return march, place, room_size


def make_complete(problem, threads, points):
    """Device function for states that no other thread of the node has.

    complete(near, states, halo, t, g, n) fills in the halo left and
    right of the node and, beyond the domain's ends, the states that its
    boundary condition says.
    """
    fields, reach = len(problem.fields), problem.reach
    boundary = problem.boundary
    width = points + 2 * reach
    behind = points + reach

    @jit(device=True)
    def complete(near, states, halo, t, g, n):
        for f in range(fields):
            begin, end = f * points, f * points + points - 1
            for k in range(reach):
                left, right = f * width + k, f * width + behind + k
                if t == 0:
                    near[left] = halo[f * reach + k]
                if t == threads - 1:
                    near[right] = halo[f * reach + k]
                if boundary == "mirrored":
                    if g == 0:
                        mirror = f * width + reach - 1 - k
                        near[mirror] = states[begin + 1 + k]
                    if g + points == n:
                        near[right] = states[end - 1 - k]
                elif boundary == "fixed":
                    if g == 0:
                        near[left] = states[begin]
                    if g + points == n:
                        near[right] = states[end]

    return complete


@cache
def make_exchange(problem, threads, points, real):
    """Device functions that exchange rows' ends through shared memory.

    publish(room, row, t, states)      stores the first r and the last r
                                       states
    fetch(room, row, t, states, near)  loads the row and the ends on
                                       both sides; at a node's ends it
                                       loads some states, which are not
                                       used
    meet()                             the barrier between the two

    Returns these, and place() and the room's size as make_wide_march
    does.

    The room has separate places for even and odd rows: some threads may
    publish the one while others still fetch the other, so that one
    barrier per level is enough. Neighboring threads have neighboring
    words.
    """
    fields, reach = len(problem.fields), problem.reach
    width = points + 2 * reach
    room_size = 4 * reach * fields * threads

    @jit(device=True)
    def place():
        return np.int32(cuda.blockIdx.x), np.int32(cuda.threadIdx.x)

    @jit(device=True)
    def meet():
        cuda.syncthreads()

    @jit(device=True)
    def publish(room, row, t, states):
        for f in range(fields):
            for k in range(reach):
                at = ((row * fields + f) * 2 * reach + k) * threads + t
                room[np.uint32(at)] = states[f * points + k]
                at = at + reach * threads
                last = f * points + points - reach + k
                room[np.uint32(at)] = states[last]

    @jit(device=True)
    def fetch(room, row, t, states, near):
        before, after = max(t - 1, 0), min(t + 1, threads - 1)
        for f in range(fields):
            for j in range(points):
                near[f * width + reach + j] = states[f * points + j]
            for k in range(reach):
                at = ((row * fields + f) * 2 * reach + k) * threads
                right = f * width + reach + points + k
                near[right] = room[np.uint32(at + after)]
                at = at + reach * threads
                near[f * width + k] = room[np.uint32(at + before)]

    return publish, fetch, meet, place, room_size


def make_shuffles(problem, threads, points, real):
    """The same with shuffles, which need neither room nor barriers."""
    fields, reach = len(problem.fields), problem.reach
    width = points + 2 * reach
    room_size = 1  # never used, so that the compiler removes it

    @jit(device=True)
    def place():
        i = np.int32(cuda.grid(1))
        return np.int32(i // WARP), np.int32(i % WARP)

    @jit(device=True)
    def meet():
        return

    @jit(device=True)
    def publish(room, row, t, states):
        return

    @jit(device=True)
    def fetch(room, row, t, states, near):
        for f in range(fields):
            for j in range(points):
                near[f * width + reach + j] = states[f * points + j]
            for k in range(reach):
                last = states[f * points + points - reach + k]
                previous = cuda.shfl_up_sync(FULL_MASK, last, 1)
                near[f * width + k] = previous
                first = states[f * points + k]
                following = cuda.shfl_down_sync(FULL_MASK, first, 1)
                near[f * width + reach + points + k] = following

    return publish, fetch, meet, place, room_size


def make_wide_edges(problem, threads, points, real):
    """Device functions that move edges from registers and to registers.

    The edges are laid out as in the Shared kernels.
    """
    fields, reach = len(problem.fields), problem.reach
    node = threads * points
    half = node // 2

    @jit(device=True)
    def extract(even, odd, left, right, b, t):
        # Store each point's even and odd state in their edges.
        for f in range(fields):
            base = (b * fields + f) * node
            for j in range(points):
                i = t * points + j
                state = even[f * points + j]
                if i < half:
                    left[np.uint32(base + i)] = state
                else:
                    right[np.uint32(base + i - half)] = state
                state = odd[f * points + j]
                if reach <= i < half + reach:
                    left[np.uint32(base + half + i - reach)] = state
                if half - reach <= i < node - reach:
                    right[np.uint32(base + i + reach)] = state

    @jit(device=True)
    def insert(even, odd, halo, left, right, b, n, t, shifted):
        # The two nodes from whose edges this one grows.
        before = b - 1 if shifted else b
        after = before + 1
        before = before if before >= 0 else n // node - 1
        after = after if after < n // node else 0
        for f in range(fields):
            first = (before * fields + f) * node
            second = (after * fields + f) * node
            for j in range(points):
                i = t * points + j
                if i < half:
                    state = right[np.uint32(first + i)]
                else:
                    state = left[np.uint32(second + i - half)]
                even[f * points + j] = odd[f * points + j] = state
                # The middle of the odd row will be the first level.
                if i < half - reach:
                    at = np.uint32(first + half + i + reach)
                    odd[f * points + j] = right[at]
                if i >= half + reach:
                    at = np.uint32(second + i - reach)
                    odd[f * points + j] = left[at]
            # The halo beside the base.
            for k in range(reach):
                if t < threads // 2:
                    at = np.uint32(first + half + k)
                    halo[f * reach + k] = right[at]
                else:
                    at = np.uint32(second + node - reach + k)
                    halo[f * reach + k] = left[at]

    return extract, insert
