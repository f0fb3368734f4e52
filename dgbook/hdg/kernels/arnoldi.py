"""Arnoldi's method: a new vector made orthonormal to a basis."""

import math

import numpy as np

from dgbook.gpu import cuda, jit

TOGETHER = 8
"""Vectors of the basis from which a thread loads at a time."""

# The basis has shape (length + 1, n), one vector per row, and
# progress[0] is the number of its vectors. So the launches are the same
# in every step, and one graph holds them. The threads per block are a
# power of two, TOGETHER or more.


def make_dots(dtype, threads):
    """Kernel for basis[j] . y, each block computing a part of the sums.

    A block works on TOGETHER vectors and on a part of y, which it loads
    once for all of them. `partial` has one row per vector.
    """
    real = np.dtype(dtype).type
    size = TOGETHER * threads

    @jit
    def dots(basis, y, progress, partial):
        sums = cuda.shared.array(size, real)
        products = cuda.local.array(TOGETHER, real)
        t = np.uint32(cuda.threadIdx.x)
        count = np.uint32(progress[0])
        first = np.uint32(cuda.blockIdx.y * TOGETHER)
        last = np.uint32(count - 1)
        if first < count:
            # This thread's part of TOGETHER products.
            for g in range(TOGETHER):
                products[g] = real(0)
            i = np.uint32(cuda.blockIdx.x * threads + t)
            while i < y.size:
                for g in range(TOGETHER):
                    j = min(np.uint32(first + g), last)
                    products[g] += basis[j, i] * y[i]
                i = np.uint32(i + cuda.gridDim.x * threads)
            # The block's sums, adding half to half.
            for g in range(TOGETHER):
                sums[g * threads + t] = products[g]
            cuda.syncthreads()
            half = np.uint32(threads // 2)
            while half > 0:
                if t < half:
                    for g in range(TOGETHER):
                        at = g * threads + t
                        sums[at] += sums[at + half]
                cuda.syncthreads()
                half = np.uint32(half // 2)
            # One thread per vector stores its sum.
            if t < TOGETHER and first + t < count:
                partial[first + t, cuda.blockIdx.x] = sums[t * threads]

    return dots


def make_add_up(threads):
    """Device function that adds all of a block's sums to the first one.

    A barrier must come before the call; the function ends with one.
    """

    @jit(device=True)
    def add_up(sums, t):
        # Add half to half until one sum is left.
        half = np.uint32(threads // 2)
        while half > 0:
            if t < half:
                sums[t] += sums[t + half]
            cuda.syncthreads()
            half = np.uint32(half // 2)

    return add_up


def make_collect(dtype, threads):
    """Kernel that adds up the parts of basis[j] . y.

    One block per vector. It stores the sums in `parts` and adds them to
    the last column of H.
    """
    real = np.dtype(dtype).type
    add_up = make_add_up(threads)

    @jit
    def collect(partial, progress, parts, columns):
        sums = cuda.shared.array(threads, real)
        t, j = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.x)
        count = np.uint32(progress[0])
        if j < count:
            # One sum per thread, then one sum.
            total = real(0)
            b = t
            while b < partial.shape[1]:
                total += partial[j, b]
                b = np.uint32(b + threads)
            sums[t] = total
            cuda.syncthreads()
            add_up(sums, t)
            if t == 0:
                parts[j] = sums[0]
                columns[np.uint32(count - 1), j] += sums[0]

    return collect


def make_take_off(dtype, threads):
    """Kernel for y - sum_j parts[j] basis[j].

    It also computes each block's part of the squared norm.
    """
    real = np.dtype(dtype).type
    add_up = make_add_up(threads)

    @jit
    def take_off(basis, parts, progress, y, squares):
        sums = cuda.shared.array(threads, real)
        loaded = cuda.local.array(TOGETHER, real)
        t = np.uint32(cuda.threadIdx.x)
        count = np.uint32(progress[0])
        square = real(0)
        i = np.uint32(cuda.blockIdx.x * threads + t)
        # For each entry: subtract all vectors, TOGETHER of them in
        # flight.
        while i < y.size:
            rest = y[i]
            j = np.uint32(0)
            while j + TOGETHER <= count:
                for g in range(TOGETHER):
                    loaded[g] = basis[np.uint32(j + g), i]
                for g in range(TOGETHER):
                    rest -= loaded[g] * parts[np.uint32(j + g)]
                j = np.uint32(j + TOGETHER)
            while j < count:
                rest -= basis[j, i] * parts[j]
                j = np.uint32(j + 1)
            y[i] = rest
            square += rest * rest
            i = np.uint32(i + cuda.gridDim.x * threads)
        # The block's part of the squared norm.
        sums[t] = square
        cuda.syncthreads()
        add_up(sums, t)
        if t == 0:
            squares[cuda.blockIdx.x] = sums[0]

    return take_off


def make_finish(dtype, threads):
    """Kernel that normalizes y and appends it to the basis.

    It also stores the unit vector in `current`. Every block adds up the
    squares, in the same order; their sum is the last number of the
    column of H.
    """
    real = np.dtype(dtype).type
    add_up = make_add_up(threads)

    @jit
    def finish(squares, progress, y, basis, current, columns):
        sums = cuda.shared.array(threads, real)
        t = np.uint32(cuda.threadIdx.x)
        count = np.uint32(progress[0])
        # The norm of y, the same in every block.
        total = real(0)
        b = t
        while b < squares.size:
            total += squares[b]
            b = np.uint32(b + threads)
        sums[t] = total
        cuda.syncthreads()
        add_up(sums, t)
        factor = real(1) / math.sqrt(sums[0])
        # Each block scales its part of y.
        i = np.uint32(cuda.blockIdx.x * threads + t)
        if i == 0:
            last = columns.shape[1] - 1
            columns[np.uint32(count - 1), last] = sums[0]
        while i < y.size:
            basis[count, i] = y[i] * factor
            current[i] = y[i] * factor
            i = np.uint32(i + cuda.gridDim.x * threads)

    return finish


def make_advance():
    """Kernel in which one thread counts a new vector of the basis."""

    @jit
    def advance(progress):
        if cuda.grid(1) == 0:
            progress[0] += np.int32(1)

    return advance
