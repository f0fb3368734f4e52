"""Algorithm 2 without an inflated vector: x is read in place."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_fused(shape):
    """Kernel for y = A x, A stored as in the paper: `values` (q, r m).

    One thread per output entry. It reads x in place, through the
    columns of the blocks. The m threads of a face read the same entries
    of x; all reads but the first one hit the cache.
    """
    real = np.dtype(shape.dtype).type
    m, blocks = shape.m, shape.blocks

    @jit
    def fused(values, columns, x, y):
        t = np.uint32(cuda.grid(1))
        if t < y.size:
            face = t // m
            total = real(0)
            k = np.uint32(0)
            # Each block of the row times the x of its face.
            for b in range(blocks):
                start = np.uint32(columns[face * blocks + b]) * m
                j = np.uint32(0)
                while j < m:
                    total += values[k, t] * x[start + j]
                    j += np.uint32(1)
                    k += np.uint32(1)
            y[t] = total

    return fused
