"""The Classic kernel: one substep of every point, from and to global memory."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.swept.arithmetic import ADDRESSES, GPU
from dgbook.swept.kernels.row import make_substep
from dgbook.swept.point import make_access, make_neighbors


def make_classic(problem, stage, dtype):
    """Kernel for new = old + w slope(u): substep `stage` (magee2017, figure 6).

    One thread per point, one launch per substep: only a launch's end tells a
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
        threads = np.int32(cuda.blockDim.x)
        first = np.int32(cuda.blockIdx.x) * threads
        i, last = np.int32(cuda.grid(1)), np.int32(n - 1)
        if i < n:
            # The point's state, of this level and of the one before.
            at, stride, row = np.uint64(i), np.uint64(n), np.uint64(0)
            old, w = load(u if stage == 0 else new, at, stride), weight
            state = load(u, at, stride)
            # The stencil. A whole block decides: of one without ends, neighbors'
            # addresses are a thread's own and a constant.
            if first >= low and np.int32(first + threads) <= np.int32(
                n - low
            ):
                stencil = gather(u, row, inner(i, i, i), stride, state)
            else:
                stencil = gather(
                    u, row, outer(i, np.int32(0), last), stride, state
                )
                if fixed and (i == 0 or i == last):
                    w = real(0)
            # The substep, from neighbors' states.
            store(new, at, stride, advance(old, w, stencil))

    return classic


def make_classic_rows(problem, stage, points, dtype):
    """The same with several neighboring points per thread, of which n is a multiple.

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
