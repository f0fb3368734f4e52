"""The Classic kernel: one substep per launch, in global memory."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.swept.arithmetic import ADDRESSES, GPU
from dgbook.swept.kernels.row import make_substep
from dgbook.swept.point import make_access, make_neighbors


def make_classic(problem, stage, dtype):
    """Kernel for substep `stage`: new = old + w slope(u).

    magee2017, figure 6, with one thread per point and one launch per
    substep, since only the end of a launch guarantees that the
    neighbors' states are written. The kernel's arguments have shape
    (fields n,), one field after the other:

    u    the states from which the slope is computed
    new  is overwritten. In the first substep old = u. In the second,
         new holds old, and u is the result of the first.
    """
    real = np.dtype(dtype).type
    fields, reach = len(problem.fields), problem.reach
    weight = real(problem.weights[stage])
    low, fixed = np.int32(reach), problem.boundary == "fixed"
    load, store, gather, advance = make_access(problem, real, GPU)
    inner = make_neighbors(reach, "none", ADDRESSES)
    outer = make_neighbors(reach, problem.boundary, ADDRESSES)

    @jit
    def classic(u, new):
        n = np.int32(u.size // fields)
        threads = np.int32(cuda.blockDim.x)
        first = np.int32(cuda.blockIdx.x) * threads
        i, last = np.int32(cuda.grid(1)), np.int32(n - 1)
        if i < n:
            # The point's state at this level and at the one before.
            at, stride, row = np.uint64(i), np.uint64(n), np.uint64(0)
            old, w = load(u if stage == 0 else new, at, stride), weight
            state = load(u, at, stride)
            # The stencil. The whole block takes the same branch: away
            # from the domain's ends, a neighbor's address is this
            # thread's plus a constant.
            end = np.int32(first + threads)
            if first >= low and end <= np.int32(n - low):
                stencil = gather(u, row, inner(i, i, i), stride, state)
            else:
                points = outer(i, np.int32(0), last)
                stencil = gather(u, row, points, stride, state)
                if fixed and (i == 0 or i == last):
                    w = real(0)
            # The substep.
            store(new, at, stride, advance(old, w, stencil))

    return classic


def make_classic_rows(problem, stage, points, dtype):
    """Kernel like that of `make_classic`, with `points` per thread.

    The points of a thread are neighbors, and n is a multiple of
    `points`. A thread loads 2r points more than it updates and, for the
    Euler equations, computes the flux of each of its faces once. There
    are fewer loads and flops, and fewer threads.
    """
    fields = len(problem.fields)
    substep = make_substep(problem, stage, points, np.dtype(dtype).type)

    @jit
    def classic_rows(u, new):
        n = np.int32(u.size // fields)
        g = np.int32(cuda.grid(1) * points)
        if g < n:
            substep(u, new, g, n)

    return classic_rows


def make_classic_range(problem, stage, points, dtype):
    """Kernel like that of `make_classic_rows`, for a range of points.

    It updates those from `first` to `last` - 1, both multiples of
    `points`. The edge of a part is updated apart from its interior, so
    that it can travel meanwhile.
    """
    fields = len(problem.fields)
    substep = make_substep(problem, stage, points, np.dtype(dtype).type)

    @jit
    def classic_range(u, new, first, last):
        n = np.int32(u.size // fields)
        g = np.int32(first + cuda.grid(1) * points)
        if g < last:
            substep(u, new, g, n)

    return classic_range
