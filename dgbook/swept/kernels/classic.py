"""The Classic kernel: one substep of every point, from and to global memory."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.swept.arithmetic import ADDRESSES, GPU
from dgbook.swept.kernels.row import make_substep
from dgbook.swept.point import make_access, make_neighbors


def make_classic(problem, stage, dtype):
    """Kernel for new = old + w slope(u): substep `stage` (magee2017, figure 6).

    One thread a point, one launch a substep: only a launch's end tells a
    point that its neighbors' states are there. Arguments of the kernel,
    (fields n,) each, a field after the other:

    u    what the slope is computed from
    new  is overwritten. The first substep computes it from old = u; in the
         second it holds old, and u is what the first one left.
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
        i, last = np.int32(cuda.grid(1)), np.int32(n - 1)
        if i < n:
            at, stride, row = np.uint64(i), np.uint64(n), np.uint64(0)
            old, w = load(u if stage == 0 else new, at, stride), weight
            # Of the nearest point with no end in reach: neighbors' addresses
            # are its own and a constant.
            c = min(max(i, low), np.int32(last - low))
            mine = load(u, np.uint64(c), stride)
            stencil = gather(u, row, inner(c, 0, 0), stride, mine)
            if i != c:
                mine = load(u, at, stride)
                stencil = gather(u, row, outer(i, 0, last), stride, mine)
                if fixed and (i == 0 or i == last):
                    w = real(0)
            store(new, at, stride, advance(old, w, stencil))

    return classic


def make_classic_rows(problem, stage, points, dtype):
    """The same with several neighboring points a thread, of which n is a multiple.

    A thread loads 2r points more than it updates, and computes of Euler each
    of its faces once: fewer loads and flops, fewer threads.
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
