"""The Classic kernel: one substep of every point, from and to global memory."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.swept.arithmetic import GPU
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
    fixed = problem.boundary == "fixed"
    load, store, gather, advance = make_access(problem, real, GPU)
    neighbors = make_neighbors(reach, problem.boundary, GPU)

    @jit
    def classic(u, new):
        n = np.int32(u.size // fields)
        i = np.int32(cuda.grid(1))
        if i < n:
            points = neighbors(i, 0, n - 1)
            w = weight
            if fixed and (i == 0 or i == n - 1):
                w = real(0)
            stride = np.uint32(n)
            at = points[reach]
            mine = load(u, at, stride)
            old = mine if stage == 0 else load(new, at, stride)
            stencil = gather(u, np.uint32(0), points, stride, mine)
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
