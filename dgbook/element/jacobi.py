"""Orthonormal Jacobi polynomials, their derivatives, and the Gauss rules that belong to them."""

import math

import numpy as np
from scipy.special import roots_jacobi

from dgbook.arguments import check_integer, check_jacobi_exponents


def recurrence(order: int, alpha: float, beta: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Coefficients of the three-term recurrence of the orthonormal Jacobi polynomials.

    With weight ``(1-x)^alpha (1+x)^beta`` on [-1, 1] the polynomials obey

        x p_n = a_{n+1} p_{n+1} + b_n p_n + a_n p_{n-1},   p_{-1} = 0.

    Returns
    -------
    a, b : (order+1,) arrays
        ``a[0]`` is 0: nothing precedes p_0.
    p0 : float
        The constant polynomial ``p_0 = (integral of the weight)^(-1/2)``.

    Notes
    -----
    Golub and Welsch, Calculation of Gauss quadrature rules, Math. Comp. 23 (1969); normalized as
    in Hesthaven and Warburton, Nodal Discontinuous Galerkin Methods (2008),
    appendix A. The cases n = 0 of b and n = 1 of a are written out: there the general
    expressions become 0/0 for alpha + beta = 0 and alpha + beta = -1.
    """
    check_integer("order", order, 0)
    check_jacobi_exponents(alpha, beta)
    total = alpha + beta
    a, b = np.zeros(order + 1), np.zeros(order + 1)
    b[0] = (beta - alpha) / (total + 2)
    if order > 0:
        a[1] = 2 / (total + 2) * math.sqrt((1 + alpha) * (1 + beta) / (total + 3))
    n = np.arange(1, order + 1)
    b[1:] = (beta**2 - alpha**2) / ((2 * n + total) * (2 * n + total + 2))
    n = np.arange(2, order + 1)
    a[2:] = (2 / (2 * n + total)) * np.sqrt(
        n * (n + total) * (n + alpha) * (n + beta) / ((2 * n + total - 1) * (2 * n + total + 1))
    )
    log_integral = (
        (total + 1) * math.log(2)
        + math.lgamma(alpha + 1)
        + math.lgamma(beta + 1)
        - math.lgamma(total + 2)
    )
    return a, b, math.exp(-log_integral / 2)


def scaled_jacobi(
    order: int, alpha: float, beta: float, x: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Homogeneous Jacobi polynomials ``q_n(x, y) = y^n p_n(x / y)`` and their gradients.

    They are polynomials in x and y, and the recurrence times ``y^(n+1)`` computes them without a
    division by y:

        a_{n+1} q_{n+1} = (x - b_n y) q_n - a_n y^2 q_{n-1}.

    So nothing is singular at y = 0, where the collapsed coordinate x / y of a simplex is
    undefined; the derivatives follow by differentiating the recurrence.

    Parameters
    ----------
    order : int
        Highest degree.
    alpha, beta : float
        Exponents of the weight, > -1.
    x, y : arrays of one shape, or shapes that broadcast

    Returns
    -------
    q, q_x, q_y : (order+1, ...) arrays
        Values and partial derivatives, one row a degree.

    Notes
    -----
    Kirby, Singularity-free evaluation of collapsed-coordinate orthogonal polynomials,
    ACM Trans. Math. Softw. 37 (2010), article 5.
    """
    a, b, p0 = recurrence(order, alpha, beta)
    x, y = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
    q, q_x, q_y = np.zeros((3, order + 1, *x.shape))
    q[0] = p0
    for n in range(order):
        # The terms with n - 1 vanish for n = 0: a[0] is 0 (and q[-1] is still all zeros).
        linear, square = x - b[n] * y, a[n] * y**2
        q[n + 1] = linear * q[n] - square * q[n - 1]
        q_x[n + 1] = q[n] + linear * q_x[n] - square * q_x[n - 1]
        q_y[n + 1] = -b[n] * q[n] + linear * q_y[n] - 2 * a[n] * y * q[n - 1] - square * q_y[n - 1]
        for table in (q, q_x, q_y):
            table[n + 1] /= a[n + 1]
    return q, q_x, q_y


def jacobi(order: int, alpha: float, beta: float, x: np.ndarray) -> np.ndarray:
    """Orthonormal Jacobi polynomials of degree 0..order at `x`, shape (order+1, ...).

    ``integral of p_m p_n (1-x)^alpha (1+x)^beta over [-1, 1]`` is 1 if m = n and 0 otherwise, and
    the leading coefficient is positive. ``alpha = beta = 0`` gives the Legendre polynomials times
    ``sqrt(n + 1/2)``.
    """
    return scaled_jacobi(order, alpha, beta, x, 1.0)[0]


def grad_jacobi(order: int, alpha: float, beta: float, x: np.ndarray) -> np.ndarray:
    """First derivatives of :func:`jacobi` at `x`, shape (order+1, ...)."""
    return scaled_jacobi(order, alpha, beta, x, 1.0)[1]


def gauss_jacobi(n: int, alpha: float, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Jacobi rule: `n` points (n,), increasing, and positive weights (n,).

    Exact for ``(1-x)^alpha (1+x)^beta`` times polynomials of degree 2n - 1 on [-1, 1].
    """
    check_integer("n", n, 1)
    check_jacobi_exponents(alpha, beta)
    return roots_jacobi(n, alpha, beta)


def gauss_lobatto(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Lobatto(-Legendre) rule with ``order + 1`` points, the ends of [-1, 1] among them.

    Returns
    -------
    points, weights : (order+1,) arrays
        Points increase; the rule is exact for polynomials of degree ``2 order - 1``.

    Notes
    -----
    The interior points are the zeros of the Jacobi polynomial P^(1,1) of degree order - 1; the
    weights are ``2 / (order (order+1) P_order(x)^2)`` with the Legendre polynomial P (Abramowitz
    and Stegun, 25.4.32), and ours is larger by the factor ``sqrt(order + 1/2)``.
    """
    check_integer("order", order, 1)
    interior = gauss_jacobi(order - 1, 1, 1)[0] if order > 1 else np.empty(0)
    points = np.concatenate([[-1.0], interior, [1.0]])
    weights = (2 * order + 1) / (order * (order + 1) * jacobi(order, 0, 0, points)[order] ** 2)
    return points, weights
