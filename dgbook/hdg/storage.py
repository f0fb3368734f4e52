"""The orders in which a trace matrix is stored: the paper's columns, and slices of 32 rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from dgbook.gpu.limits import WARP

# These functions take NumPy's arrays and a device's: they use methods of arrays, and functions of
# NumPy that hand their work to the array's own library.


def rows(values: Any) -> Any:
    """The rows of a matrix, each with the columns of all its blocks: (faces, m, q).

    Parameters
    ----------
    values : (faces, nb, m, m) array
        See `BlockMatrix`.
    """
    faces, blocks, m, _ = values.shape
    return values.transpose(0, 2, 1, 3).reshape(faces, m, blocks * m)


def columns_first(values: Any) -> Any:
    """The paper's order A_ilk, column-major: (q, faces, m), so that i runs fastest and k last.

    For one column k the numbers of all rows stand side by side (roca2011, section IV).
    """
    faces, blocks, m, _ = values.shape
    return values.transpose(1, 3, 0, 2).reshape(blocks * m, faces, m)


def sliced(values: Any, width: int) -> Any:
    """Slices of 32 rows: (slices, 32 q), each slice a contiguous stream for the lanes of a warp.

    In a slice stand groups of `width` columns, [group][lane][column]: a load of that many numbers
    by each lane is contiguous for the warp. Columns that are left over follow, [column][lane]:
    nothing is filled up but the rows of the last slice, with zeros.

    Parameters
    ----------
    values : (faces, nb, m, m) array
    width : int
        Columns that a lane loads at once.
    """
    flat = rows(values)
    q = flat.shape[-1]
    flat = flat.reshape(-1, q)
    count = -(-len(flat) // WARP)
    if len(flat) < count * WARP:
        spare = np.zeros_like(flat, shape=(count * WARP - len(flat), q))
        flat = np.concatenate([flat, spare])
    flat = flat.reshape(count, WARP, q)
    whole = q // width * width
    groups = flat[:, :, :whole].reshape(count, WARP, whole // width, width).transpose(0, 2, 1, 3)
    if whole == q:
        return groups.reshape(count, WARP * q)
    left = flat[:, :, whole:].transpose(0, 2, 1)
    return np.concatenate([groups.reshape(count, -1), left.reshape(count, -1)], axis=1)
