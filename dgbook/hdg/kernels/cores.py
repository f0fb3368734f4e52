"""Products and vectors of GMRES on processor cores, with fixed sums.

Rows of a product belong to one thread each. Vectors are cut into pieces
of `PIECE` numbers, whose sums are added up one after the other.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numba
import numpy as np

from dgbook.nodal.cores import Sources

PIECE = 512
"""Numbers of a vector: a hundred such pieces stay in a cache."""
ROWS = 64
"""Of a product, or faces of one, that a thread takes at a time."""
SHARED = 2**22
"""Bytes of a matrix from which on sharing it makes up for waiting."""


@contextmanager
def threads_for(nbytes: int) -> Iterator[None]:
    """All threads for a matrix of so many bytes; one if it is small."""
    before = numba.get_num_threads()
    numba.set_num_threads(before if nbytes >= SHARED else 1)
    try:
        yield
    finally:
        numba.set_num_threads(before)


@numba.njit(parallel=True, cache=True)
def side_by_side(sources, values, out):
    """A face's blocks (nb, m, m) as rows (m, nb m), of all faces."""
    faces, blocks, m, _ = values.shape
    for f in numba.prange(faces):
        for i in range(m):
            for b in range(blocks):
                for j in range(m):
                    out[f, i, b * m + j] = values[f, b, i, j]


@numba.njit(parallel=True, cache=True, fastmath={"reassoc", "contract"})
def multiply(sources, values, columns, x, y):
    """y = A x with rows (faces, m, q) of blocks; x, y (faces, m)."""
    faces, m, q = values.shape
    for piece in numba.prange(-(-faces // ROWS)):
        inflated = np.empty(q, values.dtype)
        for f in range(piece * ROWS, min(faces, (piece + 1) * ROWS)):
            for b in range(columns.shape[1]):
                for j in range(m):
                    inflated[b * m + j] = x[columns[f, b], j]
            for i in range(m):
                total = values.dtype.type(0)
                for k in range(q):
                    total += values[f, i, k] * inflated[k]
                y[f, i] = total


@numba.njit(parallel=True, cache=True, fastmath={"reassoc", "contract"})
def multiply_once(sources, values, columns, x, y):
    """The same with blocks (faces, nb, m, m) as they are."""
    faces, blocks, m, _ = values.shape
    for piece in numba.prange(-(-faces // ROWS)):
        for f in range(piece * ROWS, min(faces, (piece + 1) * ROWS)):
            y[f] = 0
            for b in range(blocks):
                unknowns = x[columns[f, b]]
                for i in range(m):
                    total = values.dtype.type(0)
                    for j in range(m):
                        total += values[f, b, i, j] * unknowns[j]
                    y[f, i] += total


@numba.njit
def row_times(pointers, indices, data, row, x):
    """A row of A x with A in compressed rows."""
    total = data.dtype.type(0)
    for k in range(pointers[row], pointers[row + 1]):
        total += data[k] * x[indices[k]]
    return total


@numba.njit(parallel=True, cache=True)
def multiply_sparse(sources, pointers, indices, data, x, y):
    """y = A x with A in compressed rows."""
    rows = len(pointers) - 1
    for piece in numba.prange(-(-rows // ROWS)):
        for row in range(piece * ROWS, min(rows, (piece + 1) * ROWS)):
            y[row] = row_times(pointers, indices, data, row, x)


@numba.njit(parallel=True, cache=True)
def subtract_sparse(sources, pointers, indices, data, b, x, y):
    """y = b - A x with A in compressed rows; b may be y."""
    rows = len(pointers) - 1
    for piece in numba.prange(-(-rows // ROWS)):
        for row in range(piece * ROWS, min(rows, (piece + 1) * ROWS)):
            y[row] = b[row] - row_times(pointers, indices, data, row, x)


@numba.njit(parallel=True, cache=True)
def restrict_blocks(
    sources, values, functions, numbers, columns, slots, AP, shares
):
    """A P and each face's share of P^T A P, see `restricted`.

    Functions are (Nfp, nl), A P (faces, m, width, n_c), and the shares
    (faces, nl, n_c, width, n_c).
    """
    faces, blocks, m, _ = values.shape
    Nfp, nl = functions.shape
    width, n_c = AP.shape[2:]
    for f in numba.prange(faces):
        AP[f] = 0
        for b in range(blocks):
            for l in range(nl):
                if numbers[columns[f, b], l] < 0:
                    continue
                slot = slots[f, b * nl + l]
                for i in range(m):
                    for c in range(n_c):
                        total = values.dtype.type(0)
                        for j in range(Nfp):
                            value = values[f, b, i, c * Nfp + j]
                            total += value * functions[j, l]
                        AP[f, i, slot, c] += total
        shares[f] = 0
        for l in range(nl):
            if numbers[f, l] < 0:
                continue
            for c in range(n_c):
                for j in range(Nfp):
                    for w in range(width):
                        for d in range(n_c):
                            share = AP[f, c * Nfp + j, w, d]
                            shares[f, l, c, w, d] += (
                                functions[j, l] * share
                            )


@numba.njit(fastmath={"reassoc", "contract"})
def _dot(x, y, first, last):
    total = x.dtype.type(0)
    for i in range(first, last):
        total += x[i] * y[i]
    return total


@numba.njit(parallel=True, cache=True)
def dots(sources, basis, count, y, partial):
    """``partial[p, k]``: piece p's share of vector k times y."""
    n = len(y)
    for piece in numba.prange(-(-n // PIECE)):
        first, last = piece * PIECE, min(n, (piece + 1) * PIECE)
        for k in range(count):
            partial[piece, k] = _dot(basis[k], y, first, last)


@numba.njit(parallel=True, cache=True)
def take_off(sources, basis, parts, y, again, partial):
    """y minus the sum of parts times vectors.

    Then `dots` of those vectors with it, if it is wanted again, or of y
    with itself.
    """
    n = len(y)
    for piece in numba.prange(-(-n // PIECE)):
        first, last = piece * PIECE, min(n, (piece + 1) * PIECE)
        for k in range(len(parts)):
            part, vector = parts[k], basis[k]
            for i in range(first, last):
                y[i] -= part * vector[i]
        if again:
            for k in range(len(parts)):
                partial[piece, k] = _dot(basis[k], y, first, last)
        else:
            partial[piece, 0] = _dot(y, y, first, last)


SOURCES = Sources(sys.modules[__name__])
