"""Jacobi polynomials, quadrature and the orthonormal basis, against exact integrals."""

import math

import numpy as np
import pytest
from scipy.special import eval_jacobi

from dgbook.element import (
    barycentric,
    cartesian,
    gauss_jacobi,
    gauss_lobatto,
    grad_jacobi,
    grad_vandermonde,
    jacobi,
    modal_indices,
    multi_indices,
    reference_measure,
    reference_vertices,
    simplex_quadrature,
    space_dimension,
    vandermonde,
)
from dgbook.element.jacobi import scaled_jacobi

DIMS = (1, 2, 3)
# Sums 0 and -1 are the cases in which the general recurrence coefficients are 0/0.
EXPONENTS = [(0, 0), (1, 0), (5, 0), (2, 3), (0.5, -0.5), (-0.5, -0.5), (27, 0)]


def monomials(points, degree):
    """Columns l_1^a_1 ... l_dim^a_dim of total degree at most `degree`, and their exponents."""
    bary = barycentric(points)[:, 1:]
    exponents = multi_indices(points.shape[1], degree)[:, 1:]
    return np.prod(bary[:, None, :] ** exponents, axis=2), exponents


def monomial_integrals(dim, exponents):
    """Dirichlet's formula: the integral of l^a over a simplex K is |K| dim! a!/(|a|+dim)!."""
    scale = reference_measure(dim) * math.factorial(dim)
    return np.array(
        [
            scale * math.prod(map(math.factorial, a)) / math.factorial(sum(a) + dim)
            for a in exponents.tolist()
        ]
    )


@pytest.mark.parametrize(("alpha", "beta"), EXPONENTS)
def test_jacobi_polynomials_are_orthonormal(alpha, beta):
    x, w = gauss_jacobi(21, alpha, beta)
    p = jacobi(20, alpha, beta, x)
    np.testing.assert_allclose((p * w) @ p.T, np.eye(21), atol=2e-12)


@pytest.mark.parametrize(("alpha", "beta"), EXPONENTS)
def test_jacobi_polynomials_are_multiples_of_scipys(alpha, beta):
    x = np.linspace(-1, 1, 41)
    p = jacobi(15, alpha, beta, x)
    for n in range(16):
        # Norm squared of the classical polynomial (Abramowitz and Stegun, 22.2.1).
        log_norm = (
            (alpha + beta + 1) * math.log(2)
            + math.lgamma(n + alpha + 1)
            + math.lgamma(n + beta + 1)
            - math.lgamma(n + 1)
        )
        if n == 0:
            log_norm -= math.lgamma(alpha + beta + 2)
        else:
            log_norm -= math.log(2 * n + alpha + beta + 1) + math.lgamma(n + alpha + beta + 1)
        classical = eval_jacobi(n, alpha, beta, x) / math.exp(log_norm / 2)
        np.testing.assert_allclose(p[n], classical, atol=1e-11 * abs(classical).max())


@pytest.mark.parametrize(("alpha", "beta"), EXPONENTS)
def test_derivative_is_a_jacobi_polynomial_of_higher_exponents(alpha, beta):
    x = np.linspace(-1, 1, 41)
    n = np.arange(1, 16)[:, None]
    expected = np.sqrt(n * (n + alpha + beta + 1)) * jacobi(14, alpha + 1, beta + 1, x)
    scale = abs(expected).max(axis=1, keepdims=True)
    computed = grad_jacobi(15, alpha, beta, x)
    np.testing.assert_allclose(computed[1:] / scale, expected / scale, atol=1e-11)
    np.testing.assert_array_equal(computed[0], 0)


def test_scaled_jacobi_polynomials_are_homogeneous_and_regular_at_zero():
    x, y = np.random.default_rng(2).uniform(-1, 1, (2, 30))
    q, q_x, q_y = scaled_jacobi(10, 3, 0, x, y)
    n = np.arange(11)[:, None]
    np.testing.assert_allclose(q, y**n * jacobi(10, 3, 0, x / y), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(x * q_x + y * q_y, n * q, atol=1e-11 * abs(q).max())  # Euler
    np.testing.assert_allclose(scaled_jacobi(10, 3, 0, 3 * x, 3 * y)[0], 3.0**n * q, rtol=1e-9)
    # At y = 0 only the leading term remains: the n-th derivative of p_n over n!.
    leading = [
        np.polyfit(t := np.cos(np.arange(k + 1)), jacobi(k, 3, 0, t)[k], k)[0] for k in range(6)
    ]
    np.testing.assert_allclose(scaled_jacobi(5, 3, 0, 2.0, 0.0)[0], leading * 2.0 ** np.arange(6))


@pytest.mark.parametrize("order", range(1, 16))
def test_gauss_lobatto_is_exact_to_its_degree_and_no_further(order):
    x, w = gauss_lobatto(order)
    assert x[0] == -1 and x[-1] == 1 and np.all(np.diff(x) > 0) and np.all(w > 0)
    np.testing.assert_allclose(x, -x[::-1], atol=1e-15)
    k = np.arange(2 * order)
    np.testing.assert_allclose(w @ x[:, None] ** k, (1 - (-1.0) ** (k + 1)) / (k + 1), atol=1e-14)
    assert abs(w @ x ** (2 * order) - 2 / (2 * order + 1)) > 1e-10


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("degree", range(21))
def test_quadrature_integrates_every_monomial(dim, degree):
    points, weights = simplex_quadrature(dim, degree)
    assert points.shape == (len(weights), dim) and len(weights) == (degree // 2 + 1) ** dim
    assert weights.min() > 0 and barycentric(points).min() > 0
    values, exponents = monomials(points, degree)
    np.testing.assert_allclose(weights @ values, monomial_integrals(dim, exponents), rtol=1e-12)


def test_quadrature_weights_sum_to_the_measure():
    for dim, measure in enumerate((1, 2, 2, 4 / 3)):
        assert simplex_quadrature(dim, 9)[1].sum() == pytest.approx(measure, rel=1e-14)


def test_quadrature_is_no_better_than_it_says():
    points, weights = simplex_quadrature(2, 6)
    values, exponents = monomials(points, 8)
    error = abs(weights @ values / monomial_integrals(2, exponents) - 1)
    assert error[exponents.sum(axis=1) <= 7].max() < 1e-13 < 1e-6 < error.max()


@pytest.mark.parametrize(("dim", "order"), [(1, 20), (2, 20), (3, 12)])
def test_basis_is_orthonormal(dim, order):
    points, weights = simplex_quadrature(dim, 2 * order)
    V = vandermonde(dim, order, points)
    np.testing.assert_allclose((V.T * weights) @ V, np.eye(V.shape[1]), atol=1e-11)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("order", (1, 4, 8, 12))
def test_basis_and_gradient_reproduce_monomials_also_at_the_vertices(dim, order):
    """Expand each monomial in the basis; its values and gradient must come out exactly."""
    quadrature, weights = simplex_quadrature(dim, 2 * order)
    moments = (vandermonde(dim, order, quadrature).T * weights) @ monomials(quadrature, order)[0]
    edges = cartesian(multi_indices(dim, 3) / 3)
    inside = np.random.default_rng(3).dirichlet(np.ones(dim + 1), 10)
    outside = 1.1 * inside - 0.1 / (dim + 1)
    points = np.vstack([reference_vertices(dim), edges, cartesian(inside), cartesian(outside)])
    values, exponents = monomials(points, order)
    np.testing.assert_allclose(vandermonde(dim, order, points) @ moments, values, atol=1e-11)
    gradient = grad_vandermonde(dim, order, points) @ moments
    for d in range(dim):
        lowered = exponents - np.eye(dim, dtype=int)[d]
        bary = barycentric(points)[:, 1:]
        exact = exponents[:, d] / 2 * np.prod(bary[:, None, :] ** np.maximum(lowered, 0), axis=2)
        np.testing.assert_allclose(gradient[d], exact, atol=1e-9)


@pytest.mark.parametrize("dim", DIMS)
def test_basis_is_hierarchical_and_begins_with_the_constant(dim):
    points = np.random.default_rng(4).uniform(-1, 1, (20, dim))
    V = vandermonde(dim, 7, points)
    np.testing.assert_allclose(vandermonde(dim, 0, points), reference_measure(dim) ** -0.5)
    for order in range(7):
        np.testing.assert_array_equal(
            V[:, : space_dimension(dim, order)], vandermonde(dim, order, points)
        )
    assert np.all(np.diff(modal_indices(dim, 7).sum(axis=1)) >= 0)
    np.testing.assert_array_equal(grad_vandermonde(dim, 0, points), 0)


def test_basis_of_a_point_is_one():
    assert vandermonde(0, 3, np.zeros((1, 0))).tolist() == [[1.0]]
