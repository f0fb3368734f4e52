"""The nodal element against exact integrals, the divergence theorem and its own definition."""

import math

import numpy as np
import pytest

from dgbook.element import (
    NodalElement,
    barycentric,
    cartesian,
    face_vertices,
    gauss_lobatto,
    multi_indices,
    reference_measure,
    reference_vertices,
    vandermonde,
)
from dgbook.element import nodes as node_construction

DIMS = (1, 2, 3)
ORDERS = (*range(1, 13), 15)
elements = pytest.mark.parametrize(
    "e", [NodalElement(d, n) for d in DIMS for n in ORDERS], ids=lambda e: f"{e.dim}d-N{e.order}"
)


def monomials(bary, degree):
    """Columns l^a for all a of sum `degree` (a basis), and the exponents a."""
    exponents = multi_indices(bary.shape[1] - 1, degree)
    return np.prod(bary[:, None, :] ** exponents, axis=2), exponents


def product_integrals(a, b):
    """Integral of l^a l^b over the biunit simplex for all rows of a and b (Dirichlet)."""
    dim = a.shape[1] - 1
    factorial = np.array([float(math.factorial(n)) for n in range(a.max() + b.max() + 1)])
    total = math.factorial(a[0].sum() + b[0].sum() + dim)
    products = factorial[a[:, None] + b[None]].prod(axis=2)
    return reference_measure(dim) * math.factorial(dim) * products / total


def area_vectors(vertices):
    """Outward normals times measures of the faces of a simplex, (dim+1, dim)."""
    # grad l_f points inwards, and its length is the measure of face f over dim times |K|.
    dim = vertices.shape[1]
    gradients = np.linalg.inv(np.column_stack([np.ones(dim + 1), vertices]))[1:].T
    volume = abs(np.linalg.det(vertices[1:] - vertices[0])) / math.factorial(dim)
    return -dim * volume * gradients


@elements
def test_shapes(e):
    Np, Nfp, faces = e.Np, e.Nfp, e.dim + 1
    assert Np == math.comb(e.order + e.dim, e.dim)
    assert Nfp == math.comb(e.order + e.dim - 1, e.dim - 1)
    assert e.nodes.shape == (Np, e.dim) and e.derivative.shape == (e.dim, Np, Np)
    assert e.vandermonde.shape == e.mass.shape == (Np, Np)
    assert e.face_nodes.shape == (faces, Nfp) and e.lift.shape == (Np, faces * Nfp)
    assert e.face_nodes.dtype.kind == "i"


@elements
def test_nodes_lie_on_faces_and_edges_are_gauss_lobatto(e):
    bary = barycentric(e.nodes)
    assert bary.min() > -1e-14
    for f, nodes in enumerate(e.face_nodes):
        on_face = abs(bary[:, f]) < 1e-14
        np.testing.assert_array_equal(np.flatnonzero(on_face), nodes)
        # Every face shows the same nodes, in the same order, to its vertices.
        trace = cartesian(bary[nodes][:, face_vertices(e.dim)[f]])
        np.testing.assert_allclose(trace, e.face_points, atol=1e-13)
    lobatto = gauss_lobatto(e.order)[0]
    for i in range(e.dim + 1):
        for j in range(i + 1, e.dim + 1):
            edge = bary[abs(bary[:, i] + bary[:, j] - 1) < 1e-13]
            np.testing.assert_allclose(np.sort(edge[:, j] - edge[:, i]), lobatto, atol=1e-13)


@elements
def test_derivative_of_every_monomial_is_exact(e):
    bary = barycentric(e.nodes)
    values, exponents = monomials(bary, e.order)
    for d in range(e.dim):
        exact = np.zeros_like(values)
        for m, sign in ((d + 1, 0.5), (0, -0.5)):
            lowered = np.maximum(exponents - np.eye(e.dim + 1, dtype=int)[m], 0)
            exact += sign * exponents[:, m] * np.prod(bary[:, None, :] ** lowered, axis=2)
        np.testing.assert_allclose(e.derivative[d] @ values, exact, atol=2e-13 * e.order**2)


@elements
def test_mass_integrates_products_of_monomials(e):
    values, exponents = monomials(barycentric(e.nodes), e.order)
    exact = product_integrals(exponents, exponents)
    np.testing.assert_allclose(values.T @ e.mass @ values, exact, rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(e.mass, e.mass.T)


@elements
def test_lift_is_the_adjoint_of_the_trace(e):
    """For monomials v of the element and g of a face: v^T M (lift g) = integral of v g."""
    bary = barycentric(e.nodes)
    v, v_exponents = monomials(bary, e.order)
    moments = v.T @ e.mass
    for f, nodes in enumerate(e.face_nodes):
        corners = face_vertices(e.dim)[f]
        g, g_exponents = monomials(bary[nodes][:, corners], e.order)
        on_face = v_exponents[:, f] == 0
        exact = np.zeros((e.Np, e.Nfp))
        exact[on_face] = product_integrals(v_exponents[on_face][:, corners], g_exponents)
        lifted = e.lift[:, f * e.Nfp : (f + 1) * e.Nfp] @ g
        np.testing.assert_allclose(moments @ lifted, exact, rtol=1e-10, atol=1e-12)


@elements
def test_lift_of_one_integrates_to_the_measure_of_the_face(e):
    weights = e.mass.sum(axis=0) @ e.lift
    expected = np.tile(e.face_mass.sum(axis=0), e.dim + 1)
    np.testing.assert_allclose(weights, expected, atol=1e-9)
    per_face = weights.reshape(e.dim + 1, e.Nfp).sum(axis=1)
    np.testing.assert_allclose(per_face, (1, 2, 2)[e.dim - 1], rtol=1e-10)


@elements
def test_divergence_theorem_on_a_random_simplex(e):
    """Derivative, mass, lift, and the scaling Fs = sJ / J, all in one identity.

    For a random polynomial field F: the integral of div F, by the derivative matrices and the
    chain rule, is the integral of n.F over the faces, by the scaled lift.
    """
    rng = np.random.default_rng(e.order)
    vertices = reference_vertices(e.dim) + rng.uniform(-0.3, 0.3, (e.dim + 1, e.dim))
    field = e.vandermonde @ rng.standard_normal((e.Np, e.dim))
    jacobian = (vertices[1:] - vertices[0]).T / 2
    J = abs(np.linalg.det(jacobian))
    inward = np.linalg.inv(jacobian)
    divergence = np.einsum("rx,rij,jx->i", inward, e.derivative, field)
    areas = area_vectors(vertices)
    measures = np.linalg.norm(areas, axis=1)
    lifted = np.zeros(e.Np)
    for f, nodes in enumerate(e.face_nodes):
        normal = areas[f] / measures[f]
        Fs = measures[f] / reference_measure(e.dim - 1) / J
        lifted += Fs * e.lift[:, f * e.Nfp : (f + 1) * e.Nfp] @ (field[nodes] @ normal)
    weights = J * e.mass.sum(axis=0)
    scale = np.linalg.norm(field) * measures.sum()
    assert abs(weights @ divergence - weights @ lifted) < 1e-12 * scale
    assert abs(weights @ divergence) > 1e-6 * scale
    # ... and against any test function v: (v, div F) + (grad v, F) = <v, n.F>.
    v = e.vandermonde @ rng.standard_normal(e.Np)
    gradient = np.einsum("rx,rij,j->ix", inward, e.derivative, v)
    balance = v @ (J * e.mass) @ (divergence - lifted) + np.sum(gradient * (J * e.mass @ field))
    assert abs(balance) < 1e-11 * scale * np.linalg.norm(v)


@pytest.mark.parametrize("dim", DIMS)
def test_scaled_lift_is_two_over_the_height(dim):
    """Fs = sJ / J = 2 / height, as the class notes say, on a simplex of known height."""
    height = 0.37
    vertices = reference_vertices(dim)
    vertices[dim, -1] = height - 1
    measure = np.linalg.norm(area_vectors(vertices)[dim])
    volume = abs(np.linalg.det(vertices[1:] - vertices[0])) / math.factorial(dim)
    sJ, J = measure / reference_measure(dim - 1), volume / reference_measure(dim)
    assert sJ / J == pytest.approx(2 / height)


@elements
def test_interpolation_is_exact_for_polynomials(e):
    points = np.random.default_rng(5).dirichlet(np.ones(e.dim + 1), 30)
    matrix = e.interpolation(cartesian(points))
    values = monomials(barycentric(e.nodes), e.order)[0]
    np.testing.assert_allclose(matrix @ values, monomials(points, e.order)[0], atol=1e-12)
    np.testing.assert_allclose(e.interpolation(e.nodes), np.eye(e.Np), atol=1e-11)


def lift_from_triangle_nodes(e):
    """The lift of a tetrahedron as it would be if its faces had the triangle's nodes."""
    triangle = NodalElement(2, e.order)
    inverse_mass = e.vandermonde @ e.vandermonde.T
    return np.hstack([inverse_mass[:, nodes] @ triangle.mass for nodes in e.face_nodes])


@pytest.mark.parametrize("order", range(1, 10))
def test_faces_of_the_tetrahedron_do_not_have_the_nodes_of_the_triangle(order):
    e = NodalElement(3, order)
    apart = abs(e.face_points - NodalElement(2, order).nodes).max()
    wrong = abs(lift_from_triangle_nodes(e) - e.lift).max() / abs(e.lift).max()
    if order <= 3:
        assert apart < 1e-14 and wrong < 1e-13
    elif order == 4:
        assert 1e-8 < apart < 1e-6 and 1e-8 < wrong < 1e-5
    else:
        assert 5e-4 < apart < 2e-2 and 5e-3 < wrong < 0.15


def lebesgue_constant(dim, order, nodes, samples):
    points = cartesian(multi_indices(dim, samples) / samples)
    inverse = np.linalg.inv(vandermonde(dim, order, nodes))
    return abs(vandermonde(dim, order, points) @ inverse).sum(axis=1).max()


@pytest.mark.parametrize("order", range(4, 13))
def test_published_parameters_make_the_lebesgue_constant_least(order):
    """Warburton chose alpha so; his sampling and ours differ by a few per cent."""
    indices = multi_indices(2, order)
    published = node_construction.ALPHA_TRIANGLE[order - 1]

    def constant(alpha):
        shift = node_construction._triangle_shift(order, alpha, indices / order)
        return lebesgue_constant(2, order, cartesian(indices / order + shift), 60)

    neighbors = [constant(published + change) for change in (-0.5, -0.2, -0.1, 0.1, 0.2, 0.5)]
    assert constant(published) < 1.03 * min(neighbors)


@pytest.mark.parametrize(("dim", "samples"), [(1, 200), (2, 60), (3, 24)])
def test_warp_and_blend_nodes_beat_the_lattice_ever_more(dim, samples):
    gains = []
    for order in range(3, 11):
        lattice = cartesian(multi_indices(dim, order) / order)
        nodes = NodalElement(dim, order).nodes
        gains.append(
            lebesgue_constant(dim, order, lattice, samples)
            / lebesgue_constant(dim, order, nodes, samples)
        )
    assert gains[0] > 1 and np.all(np.diff(gains) > 0) and gains[-1] > 5
