"""The paper's two kernels: inflate the vector, then contract."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_inflate(shape):
    """Kernel that repeats x for each row of blocks, X[l, k] for face l.

    One thread per entry of X, which has q = nb m entries per face. All
    arrays are flat; `columns` are the faces of the blocks, see
    BlockMatrix.
    """
    m = shape.m

    @jit
    def inflate(x, columns, X):
        t = np.uint32(cuda.grid(1))
        if t < X.size:
            # m divides q, so entry t is in block t // m of all blocks.
            X[t] = x[np.uint32(columns[t // m]) * m + t % m]

    return inflate


def make_contract(shape):
    """Kernel for y_il = sum_k A_ilk X_kl: Algorithm 2 as it is printed.

    One thread per output entry. A is stored with i fastest and k last,
    `values` (q, r m), so that the threads of a warp load contiguous
    words. X is read through the cache.
    """
    real = np.dtype(shape.dtype).type
    m, q = shape.m, shape.q

    @jit
    def contract(values, X, y):
        t = np.uint32(cuda.grid(1))
        if t < y.size:
            l = t // m  # the face; its row is i = t % m
            total = real(0)
            # One row of A times the face's part of X.
            k = np.uint32(0)
            while k < q:
                total += values[k, t] * X[l * q + k]
                k += np.uint32(1)
            y[t] = total

    return contract
