"""Kernels that do nothing but meet: what a barrier costs, of a block and of the grid."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_barriers(whole_grid):
    """Kernel that passes so many barriers: of each block, or of the whole grid.

    met (1,) int32 is overwritten with how many there were.
    """
    if whole_grid:

        @jit
        def barriers(met, times):
            grid = cuda.cg.this_grid()
            for _ in range(times):
                grid.sync()
            if cuda.grid(1) == 0:
                met[0] = np.int32(times)

    else:

        @jit
        def barriers(met, times):
            for _ in range(times):
                cuda.syncthreads()
            if cuda.grid(1) == 0:
                met[0] = np.int32(times)

    return barriers
