"""A product with a sparse matrix in compressed sparse rows."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.gpu.limits import FULL_MASK

# Neighboring threads, a power of two of them, share a row and load
# neighboring entries (Bell, Garland, "Implementing sparse matrix-vector
# multiplication on throughput-oriented processors", SC 2009).


def make_csr(dtype, lanes, rest):
    """Kernel for y = A x, with `lanes` threads per row.

    If `rest`, for y = b - A x.
    """
    real = np.dtype(dtype).type

    @jit
    def csr(pointers, indices, data, x, b, y):
        thread = np.uint32(cuda.grid(1))
        row = np.uint32(thread // lanes)
        lane = np.uint32(thread % lanes)
        total = real(0)
        # Each lane adds up its part of the row.
        if row < y.size:
            i = np.uint32(np.uint32(pointers[row]) + lane)
            last = np.uint32(pointers[np.uint32(row + 1)])
            while i < last:
                total += data[i] * x[indices[i]]
                i = np.uint32(i + lanes)
        # Add the parts of each row in its first lane; all threads of
        # the warp take part.
        step = lanes // 2
        while step > 0:
            total += cuda.shfl_down_sync(FULL_MASK, total, step)
            step //= 2
        if lane == 0 and row < y.size:
            if rest:
                y[row] = b[row] - total
            else:
                y[row] = total

    return csr
