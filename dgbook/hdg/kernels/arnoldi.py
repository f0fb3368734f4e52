"""A step of Arnoldi's method: what the product gave is made orthogonal to a basis, and unit."""

import math

import numpy as np

from dgbook.gpu import cuda, jit

TOGETHER = 8
"""Vectors of the basis whose numbers a thread loads together."""

# The basis is (length + 1, n), one vector per row; progress[0] says how many it
# has. So all launches of a step are the same for every step: one graph holds
# them. A block has a power of two of threads, TOGETHER or more.


def make_dots(dtype, threads):
    """Kernel for basis[j] . w of all vectors: each block's part of the sums.

    A block takes TOGETHER vectors and every so many numbers of w, which it
    loads once for all of them. Rows of `partial` belong to vectors.
    """
    real = np.dtype(dtype).type
    size = TOGETHER * threads

    @jit
    def dots(basis, w, progress, partial):
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
            while i < w.size:
                for g in range(TOGETHER):
                    j = min(np.uint32(first + g), last)
                    products[g] += basis[j, i] * w[i]
                i = np.uint32(i + cuda.gridDim.x * threads)
            # The block's sums, by halves.
            for g in range(TOGETHER):
                sums[g * threads + t] = products[g]
            cuda.syncthreads()
            half = np.uint32(threads // 2)
            while half > 0:
                if t < half:
                    for g in range(TOGETHER):
                        sums[g * threads + t] += sums[
                            g * threads + t + half
                        ]
                cuda.syncthreads()
                half = np.uint32(half // 2)
            # One thread per vector stores its sum.
            if t < TOGETHER and first + t < count:
                partial[first + t, cuda.blockIdx.x] = sums[t * threads]

    return dots


def make_add_up(threads):
    """Device function: all of a block's sums into the first one.

    Threads have met since they wrote theirs, and meet again.
    """

    @jit(device=True)
    def add_up(sums, t):
        # By halves, until one sum is left.
        half = np.uint32(threads // 2)
        while half > 0:
            if t < half:
                sums[t] += sums[t + half]
            cuda.syncthreads()
            half = np.uint32(half // 2)

    return add_up


def make_collect(dtype, threads):
    """Kernel that adds up the parts of basis[j] . w, a block a vector.

    The sums are the numbers of `parts`, and are added to the last column of H.
    """
    real = np.dtype(dtype).type
    add_up = make_add_up(threads)

    @jit
    def collect(partial, progress, parts, columns):
        sums = cuda.shared.array(threads, real)
        t, j = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.x)
        count = np.uint32(progress[0])
        if j < count:
            # Parts to one sum per thread, then to one.
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
    """Kernel for w - sum_j parts[j] basis[j], and each block's part of its square."""
    real = np.dtype(dtype).type
    add_up = make_add_up(threads)

    @jit
    def take_off(basis, parts, progress, w, squares):
        sums = cuda.shared.array(threads, real)
        loaded = cuda.local.array(TOGETHER, real)
        t = np.uint32(cuda.threadIdx.x)
        count = np.uint32(progress[0])
        square = real(0)
        i = np.uint32(cuda.blockIdx.x * threads + t)
        # Number by number: take off all vectors, TOGETHER of them in flight.
        while i < w.size:
            rest = w[i]
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
            w[i] = rest
            square += rest * rest
            i = np.uint32(i + cuda.gridDim.x * threads)
        # The block's part of the square.
        sums[t] = square
        cuda.syncthreads()
        add_up(sums, t)
        if t == 0:
            squares[cuda.blockIdx.x] = sums[0]

    return take_off


def make_finish(dtype, threads):
    """Kernel that gives w unit length and puts it behind the basis, and into `current`.

    Every block adds up the squares, in the same order. Their sum is the last
    number of the column.
    """
    real = np.dtype(dtype).type
    add_up = make_add_up(threads)

    @jit
    def finish(squares, progress, w, basis, current, columns):
        sums = cuda.shared.array(threads, real)
        t = np.uint32(cuda.threadIdx.x)
        count = np.uint32(progress[0])
        # The length of w, the same in every block.
        total = real(0)
        b = t
        while b < squares.size:
            total += squares[b]
            b = np.uint32(b + threads)
        sums[t] = total
        cuda.syncthreads()
        add_up(sums, t)
        factor = real(1) / math.sqrt(sums[0])
        # Each block scales its part of w.
        i = np.uint32(cuda.blockIdx.x * threads + t)
        if i == 0:
            columns[np.uint32(count - 1), columns.shape[1] - 1] = sums[
                0
            ]
        while i < w.size:
            basis[count, i] = w[i] * factor
            current[i] = w[i] * factor
            i = np.uint32(i + cuda.gridDim.x * threads)

    return finish


def make_advance():
    """Kernel of one thread: the basis has a vector more."""

    @jit
    def advance(progress):
        if cuda.grid(1) == 0:
            progress[0] += np.int32(1)

    return advance
