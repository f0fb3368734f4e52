"""The product in slices of 32 rows, with x in shared memory."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.gpu.limits import WARP
from dgbook.hdg.plan import tile_faces


def make_sliced(shape, plan):
    """Kernel for y = A x with A in slices of 32 rows.

    `values` (slices, 32 q) is sliced(values, 1) of a BlockMatrix. A
    block gathers x for the faces of its rows, q numbers per face, and
    waits once. After that there is one thread per output entry. It
    loads plan.unroll numbers of its row before it uses the first, so
    that all of these loads are in flight together.
    """
    real = np.dtype(shape.dtype).type
    m, blocks, q = shape.m, shape.blocks, shape.q
    threads, unroll = plan.threads, min(plan.unroll, shape.q)
    tile = tile_faces(shape, threads)
    size = tile * q
    whole = q // unroll * unroll

    @jit
    def sliced(values, columns, x, y):
        gathered = cuda.shared.array(size, real)
        near = cuda.local.array(blocks, real)
        loaded = cuda.local.array(unroll, real)
        t = np.uint32(cuda.threadIdx.x)
        first = np.uint32(cuda.blockIdx.x * threads)
        last = np.uint32(y.size // m - 1)
        # Gather x for the faces of the block's rows.
        e = t
        while e < tile * m:
            face = np.uint32(min(first // m + e // m, last))
            for b in range(blocks):
                neighbor = np.uint32(columns[face * blocks + b])
                near[b] = x[neighbor * m + e % m]
            for b in range(blocks):
                gathered[e // m * q + b * m + e % m] = near[b]
            e += np.uint32(threads)
        cuda.syncthreads()
        # One row times x, `unroll` numbers at a time.
        row = np.uint32(first + t)
        if row < y.size:
            begin = np.uint32((row // m - first // m) * q)
            n, lane = row // WARP, row % WARP
            total = real(0)
            k = np.uint32(0)
            while k < whole:
                for u in range(unroll):
                    loaded[u] = values[n, (k + u) * WARP + lane]
                for u in range(unroll):
                    total += loaded[u] * gathered[begin + k + u]
                k += np.uint32(unroll)
            # The remaining columns.
            for r in range(q - whole):
                total += (values[n, (whole + r) * WARP + lane]
                          * gathered[begin + whole + r])  # fmt: skip
            y[row] = total

    return sliced
