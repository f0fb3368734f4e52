"""The Shared kernels: one block per node, in shared memory."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.swept.arithmetic import GPU
from dgbook.swept.point import make_access, make_neighbors


def make_up(problem, node, dtype):
    """Kernel for the up-triangle: from states of one time to edges.

    One block of `node` threads per node of the domain. Arguments:

    u (fields n,)            the states, one field after the other
    left, right (fields n,)  the edges, see make_edges; overwritten
    """
    real = np.dtype(dtype).type
    fields, reach = len(problem.fields), problem.reach
    width, top = node + 2 * reach, node // reach
    size = 2 * fields * width
    march = make_march(problem, node, dtype)
    extract, _ = make_edges(problem, node)

    @jit
    def up(u, left, right):
        rows = cuda.shared.array(size, real)
        t = np.int32(cuda.threadIdx.x)
        b = np.int32(cuda.blockIdx.x)
        n = np.int32(u.size // fields)
        g = np.int32(b * node + t)
        # The states are the base: march to the top, and store the
        # edges.
        for f in range(fields):
            rows[f * width + t + reach] = u[np.uint32(f * n + g)]
        cuda.syncthreads()
        march(rows, t, g, n, top // 2 + 1, top)
        extract(rows, left, right, b, t)

    return up


def make_diamond(problem, node, dtype, shifted, first=0):
    """Kernel for a diamond: from edges to edges of nodes in between.

    If `shifted`, its nodes are shifted to the left by half a node
    against those of the first triangles, so that the boundary splits
    node 0. `first` is the node of the first block; it is 1 if a CPU
    core computes node 0.

    left, right (fields n,)          edges of the last triangles or
                                     diamonds
    new_left, new_right (fields n,)  edges of these diamonds;
                                     overwritten
    """
    real = np.dtype(dtype).type
    fields, reach = len(problem.fields), problem.reach
    width, top = node + 2 * reach, node // reach
    size = 2 * fields * width
    shift = node // 2 if shifted else 0
    march = make_march(problem, node, dtype)
    extract, insert = make_edges(problem, node)

    @jit
    def diamond(left, right, new_left, new_right):
        rows = cuda.shared.array(size, real)
        t = np.int32(cuda.threadIdx.x)
        b = np.int32(cuda.blockIdx.x + first)
        n = np.int32(left.size // fields)
        g = np.int32(b * node + t - shift)
        g = g if g >= 0 else np.int32(g + n)
        # From edges to the first level, through all levels, to edges.
        insert(rows, left, right, b, n, t, shifted)
        cuda.syncthreads()
        march(rows, t, g, n, 1, top)
        extract(rows, new_left, new_right, b, t)

    return diamond


def make_down(problem, node, dtype, shifted):
    """Kernel for the down-triangle: from edges to states of one time.

    The kernel's arguments are those of the up-triangle; `shifted` is
    that of the diamond.
    """
    real = np.dtype(dtype).type
    fields, reach = len(problem.fields), problem.reach
    width, top = node + 2 * reach, node // reach
    size = 2 * fields * width
    shift = node // 2 if shifted else 0
    march = make_march(problem, node, dtype)
    _, insert = make_edges(problem, node)

    @jit
    def down(left, right, u):
        rows = cuda.shared.array(size, real)
        t = np.int32(cuda.threadIdx.x)
        b = np.int32(cuda.blockIdx.x)
        n = np.int32(left.size // fields)
        g = np.int32(b * node + t - shift)
        g = g if g >= 0 else np.int32(g + n)
        # From edges to the first level, and up to the base.
        insert(rows, left, right, b, n, t, shifted)
        cuda.syncthreads()
        march(rows, t, g, n, 1, top // 2)
        # The base: states of one time.
        for f in range(fields):
            u[np.uint32(f * n + g)] = rows[f * width + t + reach]

    return down


def make_march(problem, node, dtype):
    """Device function that takes a node through levels of its diamond.

    The working array has two rows of node + 2r states. The first holds
    even levels, the second odd ones (magee2017, section 4.2 and figure
    2). Level k of a diamond is 2 r k points wide up to level node / 2r,
    where the base is complete, and from there on the levels become
    narrower. Each level overwrites the one two levels below, which the
    second substep needs as the old state.

    A thread keeps its point. So it finds its neighbors once, also at
    boundaries; it knows the first and last level at which it works; and
    it has its point's even and odd state in registers. Shared memory is
    for the other threads.

    march(rows, t, g, n, level, last): t is the thread, and g the index
    of its point in the domain of n points; from `level`, an odd one, to
    `last`, an even one.
    """
    real = np.dtype(dtype).type
    reach, stages = problem.reach, len(problem.weights)
    width, half, top = node + 2 * reach, node // 2, node // reach
    odd_row = len(problem.fields) * width
    weight = real(problem.weights[0])
    weight_even = real(problem.weights[-1])
    fixed = problem.boundary == "fixed"
    load, store, gather, advance = make_access(problem, real, GPU)
    neighbors = make_neighbors(reach, problem.ends, GPU)

    @jit(device=True)
    def march(rows, t, g, n, level, last):
        # This thread's neighbors; the domain begins, or would begin, at
        # position `end` of the row.
        end, this = np.int32(t + reach - g), np.int32(t + reach)
        points = neighbors(this, end, np.int32(end + n - 1))
        at = points[reach]
        # The levels at which it works.
        w, w_even = weight, weight_even
        if fixed and (g == 0 or g == n - 1):
            w = w_even = real(0)
        out = half - 1 - t if t < half else t - half
        start = np.int32(out // reach + 1)
        stop = np.int32(top - start)
        level = np.int32(level)
        # Its states of the levels before, even and odd.
        even = load(rows, at, width)
        odd = even
        if level < start and start % 2 == 0:
            odd = load(rows, odd_row + at, width)
        while level < last:
            # An odd level.
            if start <= level <= stop:
                stencil = gather(rows, 0, points, width, even)
                odd = advance(even, w, stencil)
                store(rows, odd_row + at, width, odd)
            cuda.syncthreads()
            level = np.int32(level + 1)
            # An even level.
            if start <= level <= stop:
                stencil = gather(rows, odd_row, points, width, odd)
                old = even if stages == 2 else odd
                even = advance(old, w_even, stencil)
                store(rows, at, width, even)
            cuda.syncthreads()
            level = np.int32(level + 1)

    return march


def make_edges(problem, node):
    """Device functions that move edges from a node's rows and to them.

    At every level an edge is 2r states wide. The next diamond grows
    from the right edges of the node on its left and from the left edges
    of the node on its right. In the two rows the edges of all levels
    are contiguous. With h = node / 2, and counted from the node's first
    point, they are

              even row      odd row
        left  [0, h)        [r, h + r)
        right [h, node)     [h - r, node - r)

    In `left` and `right` (fields n,) they are stored node by node and
    field by field, the even row before the odd one, so that every
    thread moves two states, and neighboring threads move neighboring
    states.
    """
    fields, reach = len(problem.fields), problem.reach
    width, half = node + 2 * reach, node // 2
    odd = fields * width

    @jit(device=True)
    def extract(rows, left, right, b, t):
        # One state of each edge per thread: its place in the rows.
        from_left = (
            t + reach if t < half else odd + t - half + 2 * reach
        )
        from_right = t + reach + half if t < half else odd + t
        for f in range(fields):
            at = np.uint32((b * fields + f) * node + t)
            left[at] = rows[np.uint32(f * width + from_left)]
            right[at] = rows[np.uint32(f * width + from_right)]

    @jit(device=True)
    def insert(rows, left, right, b, n, t, shifted):
        # The two nodes from whose edges this one grows.
        before = b - 1 if shifted else b
        after = before + 1
        before = before if before >= 0 else n // node - 1
        after = after if after < n // node else 0
        # Odd rows are filled from their ends; the middle will be the
        # first level.
        even_at = t + reach
        odd_at = odd + (t if t < half else t + 2 * reach)
        for f in range(fields):
            if t < half:
                at = np.uint32((before * fields + f) * node + t)
                even_state, odd_state = right[at], right[at + half]
            else:
                at = np.uint32((after * fields + f) * node + t - half)
                even_state, odd_state = left[at], left[at + half]
            rows[np.uint32(f * width + even_at)] = even_state
            rows[np.uint32(f * width + odd_at)] = odd_state

    return extract, insert
