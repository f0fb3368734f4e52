"""Quadrature and the basis at its points against exact integrals and their own definitions."""

import math

import numpy as np
import pytest

from dgbook.element import (
    NodalElement,
    barycentric,
    cartesian,
    multi_indices,
    simplex_quadrature,
    triangle_quadrature,
)
from dgbook.euler.tables import Tables
from dgbook.linear import Solver as LinearSolver
from dgbook.linear.problem import advection
from dgbook.mesh import box
from dgbook.nodal.trace import trace

ORDERS = range(7)
POINTS = {0: 1, 1: 4, 2: 7, 3: 12, 4: 19, 5: 28, 6: 37}
orders = pytest.mark.parametrize("p", ORDERS)


def integrals(points, weights, degree):
    """Quadrature of all barycentric monomials of a degree, over the exact integrals."""
    exponents = multi_indices(2, degree)
    values = weights @ np.prod(barycentric(points)[:, None] ** exponents, axis=2)
    factorial = np.array([math.factorial(n) for n in range(degree + 3)], float)
    return values / (4 * factorial[exponents].prod(axis=1) / factorial[degree + 2])


# -- the rules -----------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", range(16))
def test_rules_are_exact_positive_and_inside(degree):
    points, weights = triangle_quadrature(degree)
    np.testing.assert_allclose(integrals(points, weights, degree), 1, rtol=1e-14 * (degree + 4))
    assert abs(weights.sum() - 2) < 1e-14
    assert weights.min() > 0 and barycentric(points).min() > 0


@orders
def test_rules_have_the_known_numbers_of_points(p):
    points, weights = triangle_quadrature(2 * p + 1)
    assert len(points) == len(weights) == POINTS[p]
    assert len(weights) <= len(simplex_quadrature(2, 2 * p + 1)[1])


@pytest.mark.parametrize("degree", (5, 7, 9, 11, 13))
def test_rules_do_not_reach_further(degree):
    """So that the tests of exactness can fail at all."""
    points, weights = triangle_quadrature(degree)
    assert abs(integrals(points, weights, degree + 1) - 1).max() > 1e-6


@pytest.mark.parametrize("degree", (5, 7, 9, 11, 13))
def test_rules_keep_their_symmetry(degree):
    points, weights = triangle_quadrature(degree)
    bary = barycentric(points)
    mirrors = [] if degree == 7 else [(1, 0, 2), (0, 2, 1)]
    for permutation in [(1, 2, 0), *mirrors]:
        distance = abs(bary[:, None, permutation] - bary[None]).max(axis=2)
        assert distance.min(axis=1).max() < 1e-13
        np.testing.assert_allclose(weights, weights[distance.argmin(axis=1)], rtol=1e-12)


def test_rules_are_read_only_and_refuse_what_is_no_degree():
    for degree in (1, 3, 5, 15):
        assert not any(array.flags.writeable for array in triangle_quadrature(degree))
    with pytest.raises(ValueError, match=r"degree .* >= 0, not -1"):
        triangle_quadrature(-1)


# -- the tables ----------------------------------------------------------------------------------


@orders
def test_shapes(p):
    t = Tables(p)
    Np, Nq, Ne = (p + 1) * (p + 2) // 2, POINTS[p], p + 1
    assert (t.Np, t.Nq, t.Ne, t.Nfp) == (Np, Nq, Ne, p + 1)
    assert t.w_volume.shape == (Nq,) and t.w_edge.shape == (Ne,)
    assert t.phi_volume.shape == (Nq, Np) and t.dphi_volume.shape == (2, Nq, Np)
    assert t.phi_edge.shape == (3, Ne, Np) and t.phi_trace.shape == (Ne, p + 1)
    assert t.mass.shape == t.inverse_mass.shape == (Np, Np) and t.edge_nodes.shape == (3, p + 1)


@orders
def test_the_basis_reproduces_polynomials_and_their_gradients(p):
    t = Tables(p)
    for a in range(p + 1):
        for b in range(p + 1 - a):
            r, s = t.element.nodes.T
            nodal = r**a * s**b
            r, s = t.points_volume.T
            np.testing.assert_allclose(t.phi_volume @ nodal, r**a * s**b, atol=1e-13)
            gradient = a * r ** max(a - 1, 0) * s**b, b * r**a * s ** max(b - 1, 0)
            np.testing.assert_allclose(t.dphi_volume @ nodal, gradient, atol=1e-12)
            for f in range(3):
                r, s = t.points_edge[f].T
                np.testing.assert_allclose(t.phi_edge[f] @ nodal, r**a * s**b, atol=1e-13)


@orders
def test_mass_is_integrated_exactly(p):
    t = Tables(p)
    by_quadrature = (t.phi_volume.T * t.w_volume) @ t.phi_volume
    np.testing.assert_allclose(by_quadrature, t.mass, atol=1e-14)
    np.testing.assert_allclose(t.mass @ t.inverse_mass, np.eye(t.Np), atol=1e-12)


@orders
def test_points_run_counter_clockwise_along_the_edges(p):
    t = Tables(p)
    corners = np.array([[-1.0, -1], [1, -1], [-1, 1]])
    nodes = t.element.nodes[t.edge_nodes]
    for f in range(3):
        start, end = corners[(f + 1) % 3], corners[(f + 2) % 3]
        along = (end - start) / ((end - start) @ (end - start))
        position = (t.points_edge[f] - start) @ along
        np.testing.assert_allclose(2 * position - 1, np.polynomial.legendre.leggauss(p + 1)[0])
        assert (np.diff((nodes[f] - start) @ along) > 0).all()
    area = 0.5 * sum(np.cross([*corners[i], 0], [*corners[(i + 1) % 3], 0])[2] for i in range(3))
    assert area == 2  # the vertices themselves run counter-clockwise


@orders
def test_an_edge_looks_the_same_from_its_other_end(p):
    t = Tables(p)
    np.testing.assert_allclose(t.phi_trace[::-1, ::-1], t.phi_trace, atol=1e-14)
    np.testing.assert_array_equal(t.w_edge[::-1], t.w_edge)
    for f in range(3):
        np.testing.assert_array_equal(t.phi_edge[f][:, t.edge_nodes[f]], t.phi_trace)
        off = np.setdiff1d(np.arange(t.Np), t.edge_nodes[f])
        assert not t.phi_edge[f][:, off].any()
        values = t.element.interpolation(t.points_edge[f])
        np.testing.assert_allclose(t.phi_edge[f], values, atol=1e-13)


@orders
def test_the_divergence_theorem_holds(p):
    """Integral of d phi_i / d r_a over the triangle = that of phi_i n_a over its edges."""
    t = Tables(p)
    volume = t.w_volume @ t.dphi_volume
    # Outward normals times half the lengths: edge 0 has (1, 1), 1 has (-1, 0), 2 has (0, -1).
    outward = np.array([[1, 1], [-1, 0], [0, -1]])
    edges = np.einsum("q,fqi,fa->ai", t.w_edge, t.phi_edge, outward)
    np.testing.assert_allclose(volume, edges, atol=1e-13)


def test_single_precision_and_bad_orders():
    t = Tables(3, "float32")
    arrays = (t.w_volume, t.phi_volume, t.dphi_volume, t.phi_edge, t.w_edge, t.inverse_mass)
    assert {array.dtype.name for array in arrays} == {"float32"}
    assert Tables(3).phi_volume is Tables(3).phi_volume
    for order in (-1, 7, 1.5):
        with pytest.raises(ValueError, match=f"order = {order}; allowed: 0 to 6"):
            Tables(order)


# -- order 0 -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", (1, 2, 3))
def test_an_element_of_order_0_is_its_centroid(dim):
    e = NodalElement(dim, 0)
    measure = 2**dim / math.factorial(dim)
    assert e.Np == e.Nfp == 1
    np.testing.assert_allclose(e.nodes, cartesian(np.full((1, dim + 1), 1 / (dim + 1))))
    np.testing.assert_allclose(barycentric(e.face_points), np.full((1, dim), 1 / dim))
    np.testing.assert_array_equal(e.face_nodes, np.zeros((dim + 1, 1)))
    np.testing.assert_allclose(e.mass, [[measure]])
    np.testing.assert_array_equal(e.derivative, np.zeros((dim, 1, 1)))
    # A constant on a face is lifted to its integral over that of 1 in the element.
    face = 2 ** (dim - 1) / math.factorial(dim - 1)
    np.testing.assert_allclose(e.lift, np.full((1, dim + 1), face / measure))


def test_what_needs_nodes_on_the_faces_refuses_order_0():
    with pytest.raises(ValueError, match="order = 0; allowed: 1 or more"):
        trace(box((2, 2)), NodalElement(2, 0))
    with pytest.raises(ValueError, match="order = 0; allowed: 1 or more"):
        LinearSolver(box((2, 2), periodic=True), 0, advection((1.0, 0.0)))
