"""Classic in one launch, with a grid barrier after each substep."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.swept.kernels.row import make_substep


def make_persistent(problem, points, dtype):
    """Kernel for pairs of substeps: from u to other, and back.

    A pair is one time step of two substeps, or two time steps of one.
    The barrier waits for all blocks, so that there may be no more of
    them than can run at the same time; each thread therefore updates
    one row of points after another. n is a multiple of `points`.

    u (fields n,)      the states; overwritten
    other (fields n,)  the states between the substeps of a pair;
                       overwritten
    pairs              the number of pairs
    """
    real = np.dtype(dtype).type
    fields, stages = len(problem.fields), len(problem.weights)
    forth = make_substep(problem, 0, points, real)
    back = make_substep(problem, stages - 1, points, real)

    @jit
    def persistent(u, other, pairs):
        grid = cuda.cg.this_grid()
        n = np.int32(u.size // fields)
        first = np.int32(cuda.grid(1) * points)
        stride = np.int32(cuda.gridsize(1) * points)
        for _ in range(pairs):
            # From u to other, row after row.
            g = first
            while g < n:
                forth(u, other, g, n)
                g = np.int32(g + stride)
            grid.sync()
            # And back.
            g = first
            while g < n:
                back(other, u, g, n)
                g = np.int32(g + stride)
            grid.sync()

    return persistent
