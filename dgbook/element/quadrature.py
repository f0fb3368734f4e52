"""Quadrature on the biunit simplex, exact to any wanted degree, with positive weights."""

import numpy as np

from dgbook.arguments import check_integer

from .jacobi import gauss_jacobi


def simplex_quadrature(dim: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights that integrate polynomials of a total degree exactly.

    Parameters
    ----------
    dim : int
        1, 2, 3; and 0, a point, the face of an interval.
    degree : int
        Total degree to be integrated exactly, 0 or more.

    Returns
    -------
    points : (n, dim) array
        Strictly inside the biunit simplex; ``n = (degree // 2 + 1)**dim``.
    weights : (n,) array
        Positive; their sum is the measure of the biunit simplex: 2, 2, 4/3 (1 for a point).

    Raises
    ------
    TypeError, ValueError
        If `dim` or `degree` is no integer, or out of range.

    Notes
    -----
    The collapsed product rule (Stroud, Approximate Calculation of Multiple Integrals, 1971,
    chapter 2). A simplex is a stack of copies of its face ``dim``, copy ``c`` in [-1, 1] shrunk
    by (1 - c)/2 towards the last vertex, so that

        integral over simplex = integral of ((1 - c)/2)^(dim-1) (integral over face) dc,

    and the Gauss rule for the weight (1 - c)^(dim-1) takes the shrinking exactly.
    """
    check_integer("dim", dim, 0, 3)
    check_integer("degree", degree, 0)
    if dim == 0:
        return np.zeros((1, 0)), np.ones(1)
    face_points, face_weights = simplex_quadrature(dim - 1, degree)
    height, height_weights = gauss_jacobi(degree // 2 + 1, dim - 1, 0)
    shrink = (1 - height) / 2
    shrunk = np.multiply.outer(shrink, 1 + face_points) - 1
    last = np.broadcast_to(height[:, None, None], (*shrunk.shape[:2], 1))
    points = np.concatenate([shrunk, last], axis=2).reshape(-1, dim)
    weights = np.multiply.outer(height_weights / 2 ** (dim - 1), face_weights).ravel()
    return points, weights
