"""The orthonormal polynomial basis of the simplex, and its gradient, at any points."""

import numpy as np

from dgbook.arguments import check_integer, check_points

from .jacobi import scaled_jacobi
from .simplex import barycentric, multi_indices


def modal_indices(dim: int, order: int) -> np.ndarray:
    """Multi-indices of the orthonormal basis, in the order of its columns.

    Parameters
    ----------
    dim : int
        0 to 3 (0 is a point, the face of an interval).
    order : int
        Highest total degree, 0 or more.

    Returns
    -------
    (Np, dim) array of int
        Sorted by total degree, then lexicographically: the first functions span the polynomials
        of every lower degree, and function 0 is the constant.
    """
    exponents = multi_indices(dim, order)[:, 1:].tolist()
    exponents.sort(key=lambda a: (sum(a), a))
    return np.array(exponents, dtype=int).reshape(len(exponents), dim)


def _factors(dim: int, order: int, points: np.ndarray) -> list[list[tuple[np.ndarray, ...]]]:
    """Factors of the basis functions: ``factors[m][A]`` for axis m (from 0), after degree A before.

    Each is (q, q_x, q_y) of :func:`dgbook.element.jacobi.scaled_jacobi`, normalized, for the
    degrees 0..order-A.
    """
    bary = barycentric(points)
    below = np.cumsum(bary, axis=1)
    factors = []
    for m in range(dim):
        x, y = bary[:, m + 1] - below[:, m], below[:, m + 1]
        degrees = range(order + 1) if m > 0 else range(1)
        # The weight along axis m is ((1-x)/2)^(2A+m); Jacobi's has no halves.
        factors.append(
            [
                tuple(
                    2 ** (A + m / 2) * table
                    for table in scaled_jacobi(order - A, 2 * A + m, 0, x, y)
                )
                for A in degrees
            ]
        )
    return factors


def _checked(dim: int, order: int, points: np.ndarray) -> np.ndarray:
    check_integer("dim", dim, 0, 3)
    check_integer("order", order, 0)
    return check_points("points", points, dim)


def vandermonde(dim: int, order: int, points: np.ndarray) -> np.ndarray:
    """Values of the orthonormal basis of total degree `order` at given points.

    Parameters
    ----------
    dim : int
        1, 2, 3; and 0, a point, the face of an interval.
    order : int
        0 or more.
    points : (n, dim) array
        Any points: the basis is a set of polynomials, without exceptional points.

    Returns
    -------
    (n, Np) array
        ``V[i, j]`` is function j, ``modal_indices(dim, order)[j]``, at point i.

    Raises
    ------
    TypeError, ValueError
        If `dim` or `order` is no integer or out of range, or `points` has another shape.

    Notes
    -----
    With barycentric coordinates l and ``y_m = l_0 + ... + l_m``, ``x_m = l_m - y_{m-1}``,

        psi_a = product over m = 1..dim of 2^(A + (m-1)/2) q_{a_m}^{(2A + m - 1, 0)}(x_m, y_m),
        A = a_1 + ... + a_{m-1},

    where q are the homogeneous Jacobi polynomials of
    :func:`dgbook.element.jacobi.scaled_jacobi`. In collapsed coordinates ``x_m / y_m`` this is the
    basis of Proriol (1957), Koornwinder (1975) and Dubiner (J. Sci. Comput. 6, 1991); see Hesthaven
    and Warburton (2008), sections 3.1, 6.1 and 10.1. Orthonormal over the biunit simplex:
    the integral of ``psi_a psi_b`` is 1 if a = b and 0 otherwise.
    """
    points = _checked(dim, order, points)
    factors = _factors(dim, order, points)
    indices = modal_indices(dim, order)
    values = np.ones((len(points), len(indices)))
    for j, index in enumerate(indices):
        for m, degree in enumerate(index):
            values[:, j] *= factors[m][index[:m].sum()][0][degree]
    return values


def grad_vandermonde(dim: int, order: int, points: np.ndarray) -> np.ndarray:
    """Gradient of the orthonormal basis of total degree `order` at given points.

    Parameters and errors are those of :func:`vandermonde`.

    Returns
    -------
    (dim, n, Np) array
        ``G[d, i, j]`` is the derivative of function j along reference axis d at point i. It
        is exact at the vertices too, where collapsed coordinates are singular.
    """
    points = _checked(dim, order, points)
    factors = _factors(dim, order, points)
    indices = modal_indices(dim, order)
    gradient = np.zeros((dim, len(points), len(indices)))
    for j, index in enumerate(indices):
        tables = [
            [table[degree] for table in factors[m][index[:m].sum()]]
            for m, degree in enumerate(index)
        ]
        for m, (_, q_x, q_y) in enumerate(tables):
            others = np.prod([q for i, (q, _, _) in enumerate(tables) if i != m], axis=0)
            # x_m grows by 1 along axis m and by 1/2 along the later axes, because l_0 falls there;
            # y_m falls by 1/2 along the later axes.
            gradient[m, :, j] += others * q_x
            gradient[m + 1 :, :, j] += others * (q_x - q_y) / 2
    return gradient
