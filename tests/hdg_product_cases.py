"""What tests of the trace system's product share: small matrices, and the product in float64."""

import numpy as np

from dgbook.hdg.blocks import random_matrix
from dgbook.mesh import box


def random_case(sizes, dtype, random, cells=None):
    """A random matrix and vector.

    Parameters
    ----------
    sizes : (dim, n_c, order)
        From which the unknowns of a face follow.
    cells : tuple of int, optional
        Of the box; by default few, so that tiles are not full.
    """
    dim, n_c, order = sizes
    mesh = box(cells or {2: (3, 2), 3: (1, 1, 1)}[dim])
    matrix = random_matrix(mesh, n_c, order, dtype, random)
    x = random.standard_normal((matrix.faces, matrix.m)).astype(dtype)
    return matrix, x


def expected(matrix, x):
    """A x in float64, block by block."""
    return np.einsum("fbij,fbj->fi", matrix.values.astype(float), x.astype(float)[matrix.columns])


def assert_close(computed, matrix, x):
    """To rounding of q additions of numbers below 1."""
    assert computed.shape == x.shape
    assert computed.dtype == matrix.dtype
    scale = np.abs(x).max() * np.sqrt(matrix.blocks * matrix.m)
    tolerance = 20 * np.finfo(matrix.dtype).eps * scale
    assert np.abs(computed - expected(matrix, x)).max() < tolerance
