"""Quadrature on the triangle with threefold symmetry and fewer points than the product rule."""

from functools import cache

import numpy as np

from dgbook.arguments import check_integer

from .frozen import read_only
from .modal import grad_vandermonde, vandermonde
from .quadrature import simplex_quadrature
from .simplex import reference_measure

# Degree: the weight of the centroid (0 where it is no point of the rule), then of each orbit of
# three points the weight and the reference coordinates of one. Found from random orbits by least
# squares; these digits are enough to come back to the same rule in a few iterations.
_STARTS: dict[int, tuple[float, tuple[tuple[float, float, float], ...]]] = {
    5: (
        0.45,
        (
            (0.26479, -0.05972, -0.05972),
            (0.25188, -0.79743, -0.79743),
        ),
    ),
    7: (
        0.0,
        (
            (0.10607, -0.86496, -0.87524),
            (0.17553, 0.24654, -0.35700),
            (0.26997, -0.44457, 0.03168),
            (0.11510, 0.32190, -0.93135),
        ),
    ),
    9: (
        0.194272,
        (
            (0.15565, -0.12582, -0.12582),
            (0.05116, -0.91054, -0.91054),
            (0.06267, -0.02063, -0.02063),
            (0.15929, -0.62359, -0.62359),
            (0.08657, -0.92632, -0.55607),
            (0.08657, -0.55607, -0.92632),
        ),
    ),
    11: (
        0.170991,
        (
            (0.07743, -0.79305, -0.79305),
            (0.13413, -0.12322, -0.12322),
            (0.14066, -0.57893, -0.57893),
            (0.03269, -0.00790, -0.00790),
            (0.02118, -0.94260, -0.94260),
            (0.02122, -0.98407, -0.69973),
            (0.02122, -0.69973, -0.98407),
            (0.08057, -0.90773, -0.41800),
            (0.08057, -0.41800, -0.90773),
        ),
    ),
    13: (
        0.104974,
        (
            (0.09412, -0.17100, -0.17100),
            (0.06233, -0.77118, -0.77118),
            (0.02255, -0.00990, -0.00990),
            (0.09468, -0.54115, -0.54115),
            (0.06289, -0.06259, -0.06259),
            (0.01595, -0.95037, -0.95037),
            (0.03104, -0.95554, -0.74727),
            (0.03104, -0.74727, -0.95554),
            (0.03483, -0.41653, -0.96377),
            (0.03483, -0.96377, -0.41653),
            (0.07371, -0.81019, -0.46248),
            (0.07371, -0.46248, -0.81019),
        ),
    ),
}
_ITERATIONS = 3  # 5 digits, then 10, then all

# Rotating the vertices takes the point r to _TURN r + _SHIFT.
_TURN = np.array([[-1.0, -1.0], [1.0, 0.0]])
_SHIFT = np.array([-1.0, 0.0])
_CENTROID = np.full((1, 2), -1 / 3)


def triangle_quadrature(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """The rule with the fewest points, of those known here, that is exact to a degree.

    Parameters
    ----------
    degree : int
        Total degree to be integrated exactly, 0 or more.

    Returns
    -------
    points : (n, 2) array
        Strictly inside the biunit triangle: n = 1, 4, 7, 12, 19, 28 and 37 for degrees 1, 3, 5, 7,
        9, 11 and 13. Beyond 13 it is the product rule of `simplex_quadrature`, and at degree 3,
        where four points are enough.
    weights : (n,) array
        Positive, of sum 2. Both are read-only.

    Raises
    ------
    TypeError, ValueError
        If `degree` is no integer, or negative.

    Notes
    -----
    A rule that does not change when the vertices rotate consists of the centroid, perhaps, and of
    orbits of three points (l0, l1, l2), (l2, l0, l1), (l1, l2, l0) with a common weight: three
    unknowns each. That the orthonormal polynomials but the constant have integral zero are the
    equations; Gauss-Newton with the least change solves them to rounding. An orbit that is its own
    mirror image begins at r = s, two that are each other's at (r, s) and (s, r), and the least
    change keeps that. The rule of 12 points has no such symmetry: those of degree 7 that have it
    need 15.

    The counts are those of the literature: Dunavant, "High degree efficient symmetrical Gaussian
    quadrature rules for the triangle", Int. J. Numer. Meth. Eng. 21, 1985; Gatermann, "The
    construction of symmetric cubature formulas for the square and the triangle", Computing 40,
    1988; Xiao and Gimbutas, "A numerical algorithm for the construction of efficient quadrature
    rules in two and higher dimensions", Comput. Math. Appl. 59, 2010; Witherden and Vincent, "On
    the identification of symmetric quadrature rules for finite element methods", Comput. Math.
    Appl. 69, 2015.
    """
    check_integer("degree", degree, 0)
    enough = [d for d in _STARTS if d >= degree]
    product = simplex_quadrature(2, degree)
    if enough and len(_polished(min(enough))[1]) < len(product[1]):
        return _polished(min(enough))
    return read_only(product[0]), read_only(product[1])


@cache
def _polished(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of the rule that begins at ``_STARTS[degree]``."""
    center, orbits = _STARTS[degree]
    unknowns = np.concatenate([[center], *orbits])
    for _ in range(_ITERATIONS):
        residual, derivative = _moments(degree, unknowns)
        derivative[0] *= center > 0
        unknowns -= np.linalg.lstsq(derivative.T, residual)[0]
    points, weights = _rule(unknowns)
    used = slice(0 if center > 0 else 1, None)
    return read_only(points[used]), read_only(weights[used])


def _rule(unknowns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The centroid, then every orbit's first points, second points, third points."""
    orbits = unknowns[1:].reshape(-1, 3)
    first = orbits[:, 1:]
    second = first @ _TURN.T + _SHIFT
    third = second @ _TURN.T + _SHIFT
    weights = np.concatenate([unknowns[:1], np.tile(orbits[:, 0], 3)])
    return np.concatenate([_CENTROID, first, second, third]), weights


def _moments(degree: int, unknowns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the rule integrates wrongly of each orthonormal polynomial, and its derivatives.

    Returns
    -------
    residual : (n,) array
    derivative : (unknowns, n) array
        One row for the centroid's weight, then three an orbit: of weight and coordinates.
    """
    points, weights = _rule(unknowns)
    values = vandermonde(2, degree, points)
    residual = weights @ values
    residual[0] -= np.sqrt(reference_measure(2))  # the constant; all others have integral 0
    slopes = grad_vandermonde(2, degree, points)[:, 1:].reshape(2, 3, -1, values.shape[1])
    turned = np.zeros_like(slopes[:, 0])
    for k in range(3):
        turned += np.einsum("ba,bon->aon", np.linalg.matrix_power(_TURN, k), slopes[:, k])
    count = turned.shape[1]
    by_weight = values[1:].reshape(3, count, -1).sum(axis=0)
    by_point = weights[1 : count + 1, None] * turned
    rows = np.stack([by_weight, *by_point], axis=1).reshape(3 * count, -1)
    return residual, np.concatenate([values[:1], rows])
