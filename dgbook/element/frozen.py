"""Arrays that cannot be changed, and properties computed once for all equal elements."""

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.sparse import csr_array, sparray


def read_only(array: np.ndarray) -> np.ndarray:
    """Return `array`, C-contiguous and closed to writing."""
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array


def read_only_sparse(matrix: sparray) -> csr_array:
    """Return a sparse array in CSR form, indices sorted, closed to writing."""
    matrix = csr_array(matrix)
    matrix.sum_duplicates()
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    return matrix


def shared_property(method: Callable) -> property:
    """Property whose value is computed at first use, for all elements that are equal.

    Elements are frozen dataclasses, which hash and compare by dimension and order. There are few,
    so that nothing is ever dropped; their matrices are read-only, so that they can be shared.
    """
    return property(cache(method))
