"""Approximate inverses of a trace matrix that are trace matrices: the product applies them too."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from dgbook.gpu.libraries import TOGETHER, batched_solve
from dgbook.hdg.blocks import BlockMatrix

STACK = 2**27
"""Bytes of the small matrices that are inverted at once."""
TIMES = 8
"""So much memory do they take with their factors and inverses, NumPy's in double precision."""

# Values may be NumPy's or a device's: methods of arrays, and functions of NumPy that hand their
# work to the array's own library. Columns, and what follows from them, are NumPy's.


def jacobi(matrix: BlockMatrix) -> BlockMatrix:
    """Block-Jacobi: each face by itself, with the inverse of its own block.

    Returns
    -------
    BlockMatrix
        With one block a row.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a face's own block is singular.
    """
    inverses = np.zeros_like(matrix.values, shape=(matrix.faces, 1, matrix.m, matrix.m))
    size = _together(matrix.m**2 * matrix.dtype.itemsize)
    for first in range(0, matrix.faces, size):
        some = slice(first, first + size)
        inverses[some, 0] = _inverses(matrix.values[some, 0])
    return BlockMatrix(inverses, matrix.columns[:, :1].copy())


def schwarz(matrix: BlockMatrix) -> BlockMatrix:
    """Additive Schwarz by elements: all faces of an element together, and the mean of two elements.

    With R_K the rows of an identity that belong to the faces of element K, and D the numbers of
    elements at each face,

        M = D^-1 sum_K R_K^T (R_K A R_K^T)^-1 R_K.

    Each term couples faces of one element only. So M has the blocks of A, takes the memory of A
    and not that of all small inverses, and a product with it costs what one with A does.

    Returns
    -------
    BlockMatrix
        With the columns of A.

    Raises
    ------
    ValueError
        If the columns are none of `blocks.face_columns`, or two elements share two faces.
    numpy.linalg.LinAlgError
        If an element's matrix is singular.

    References
    ----------
    Smith, Bjorstad, Gropp, "Domain Decomposition", Cambridge University Press, 1996.
    """
    m, values, columns = matrix.m, matrix.values, matrix.columns
    there = partial(np.asarray, like=values)
    faces, second = elements_of(columns)
    n = faces.shape[1]
    share = 1 / np.bincount(faces.ravel(), minlength=matrix.faces)
    result = np.zeros_like(values)
    size = _together((n * m) ** 2 * matrix.dtype.itemsize)
    for first in range(0, len(faces), size):
        own, side = faces[first : first + size], second[first : first + size]
        slots = (columns[own][:, :, None] == own[:, None, :, None]).argmax(axis=3)
        small = values[there(own[:, :, None]), there(slots)]
        small = small.transpose(0, 1, 3, 2, 4).reshape(-1, n * m, n * m)
        inverses = _inverses(small).reshape(-1, n, m, n, m)
        factors = there(share[own].astype(matrix.dtype))[:, :, None, None, None]
        inverses *= factors
        for i in range(n):
            for j in range(n):
                # of one side of a face no two elements are, so that no block is added to twice
                for mine in (side[:, i], ~side[:, i]):
                    at = there(own[mine, i]), there(slots[mine, i, j])
                    result[at] += inverses[:, i, :, j][there(np.flatnonzero(mine))]
    return BlockMatrix(result, columns)


PRECONDITIONERS = {"schwarz": schwarz, "jacobi": jacobi}


def workspace(name: str, shape: tuple[int, ...], itemsize: int) -> int:
    """Bytes that computing a preconditioner takes beside the matrix and the result, at most.

    Parameters
    ----------
    name : str
        One of `PRECONDITIONERS`.
    shape : tuple of int
        (faces, nb, m, m).
    """
    faces, blocks, m, _ = shape
    n = (blocks + 1) // 2 if name == "schwarz" else 1
    one = (n * m) ** 2 * itemsize
    count = -(-2 * faces // n) if name == "schwarz" else faces
    # with each small matrix come the numbers of its blocks
    return (TIMES * one + 16 * n * n) * min(count, _together(one))


def _together(one: int) -> int:
    """How many matrices of so many bytes are inverted at once."""
    return min(TOGETHER, max(1, STACK // one))


def elements_of(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The faces of each element, ascending, and whether it is the second one there, (K, dim+1).

    Found from the columns of a trace matrix alone: beside a face's own, they are the other faces of
    its first element, then those of its second.

    Raises
    ------
    ValueError
        If they cannot be columns of `blocks.face_columns`, or two elements share two faces, as in a
        periodic mesh of one cell.
    """
    count, blocks = columns.shape
    if blocks not in (5, 7):
        raise ValueError(f"columns have shape {columns.shape}; allowed: (faces, 5) or (faces, 7)")
    n, others = (blocks + 1) // 2, columns[:, 1:].reshape(count, 2, -1)
    f, side = np.nonzero((others != columns[:, :1, None]).all(axis=2))
    members = np.sort(np.column_stack([f, others[f, side]]), axis=1)
    # An element is known by two of its faces.
    keys = members[:, 0].astype(np.int64) * count + members[:, 1]
    _, representative, which, times = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    faces = members[representative]
    met = (times == n).all() and (faces[which] == members).all() and (side == 0).sum() == count
    if not met:
        raise ValueError(
            "columns are not those of face_columns, or two elements share more than one face"
        )
    second = np.zeros(faces.shape, bool)
    second[which, (faces[which] == f[:, None]).argmax(axis=1)] = side == 1
    return faces, second


def _inverses(matrices: Any) -> Any:
    """Inverses of small matrices, (count, n, n).

    Raises
    ------
    numpy.linalg.LinAlgError
        If one is singular. A GPU's libraries do not say so: where they invert they may leave what
        was in memory before, where they solve they divide by zero, which shows.
    """
    identity = np.asarray(np.eye(matrices.shape[1], dtype=matrices.dtype), like=matrices)
    inverses = batched_solve(matrices, np.broadcast_to(identity, matrices.shape))
    if not bool(np.isfinite(inverses).all()):
        raise np.linalg.LinAlgError("Singular matrix")
    return inverses
