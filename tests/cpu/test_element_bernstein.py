"""The Bernstein-Bezier element: exact rational identities, sparsity, and the nodal element."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dgbook.element import (
    BernsteinElement,
    NodalElement,
    bernstein_basis,
    bernstein_mass,
    elevation,
    face_vertices,
    multi_indices,
    reference_measure,
    simplex_quadrature,
    space_dimension,
    vandermonde,
)
from dgbook.element.bernstein import lattice_position

DIMS = (1, 2, 3)
ORDERS = (*range(1, 13), 15)
EXACT_ORDERS = range(1, 7)
elements = pytest.mark.parametrize(
    "b",
    [BernsteinElement(d, n) for d in DIMS for n in ORDERS],
    ids=lambda b: f"{b.dim}d-N{b.order}",
)
exact_elements = pytest.mark.parametrize(
    "b",
    [BernsteinElement(d, n) for d in DIMS for n in EXACT_ORDERS],
    ids=lambda b: f"{b.dim}d-N{b.order}",
)


def rational(matrix):
    """The rational matrix of which `matrix` is the rounding: denominators here are small."""
    dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    exact = np.array(
        [Fraction(x).limit_denominator(10_000) for x in dense.ravel().tolist()], dtype=object
    ).reshape(dense.shape)
    assert abs(exact.astype(float) - dense).max() <= 1e-15 * abs(dense).max()
    return exact


def exact_mass(dim, order):
    """Mass matrix of a simplex of measure 1 from B_a B_b = const B_{a+b}, in rationals."""
    indices = multi_indices(dim, order).tolist()

    def multinomial(a):
        return Fraction(math.factorial(sum(a)), math.prod(map(math.factorial, a)))

    integral = Fraction(1, math.comb(2 * order + dim, dim))  # of any B of degree 2 order
    return np.array(
        [
            [
                multinomial(a)
                * multinomial(b)
                / multinomial([i + j for i, j in zip(a, b, strict=True)])
                * integral
                for b in indices
            ]
            for a in indices
        ],
        dtype=object,
    )


def integers(matrix):
    """A rational matrix as integers over one common denominator (products run much faster)."""
    denominator = math.lcm(*(x.denominator for x in matrix.ravel()))
    return np.array([[int(x * denominator) for x in row] for row in matrix], object), denominator


@exact_elements
def test_factorized_lift_is_exact_in_rational_arithmetic(b):
    """M (E_L L_0) = trace^T M_face for every face: in rationals, without any rounding."""
    mass, mass_denominator = integers(exact_mass(b.dim, b.order))
    face_mass = exact_mass(b.dim - 1, b.order)
    # Measures of the biunit simplex and its face: their ratio is 2 / dim.
    ratio = Fraction(reference_measure(b.dim - 1) / reference_measure(b.dim)).limit_denominator(9)
    assert ratio == Fraction(b.dim, 2)
    reduction, reduction_denominator = integers(rational(b.lift_reduction))
    within, within_denominator = integers(rational(b.lift_face))
    denominator = mass_denominator * reduction_denominator * within_denominator
    for f, nodes in enumerate(b.face_nodes):
        lift = reduction[:, f * b.Nfp : (f + 1) * b.Nfp] @ within
        expected = np.full((b.Np, b.Nfp), Fraction(0), dtype=object)
        expected[nodes] = ratio * face_mass
        assert np.all(mass @ lift == expected * denominator)


@exact_elements
def test_sweep_over_the_layers_is_exact_in_rational_arithmetic(b):
    """The second factorization: layer i of the lift is l_i R_i ... R_1 L_0."""
    reduction = rational(b.lift_reduction)
    scales = [Fraction((-1) ** i * math.comb(b.order, i), 1 + i) for i in range(b.order + 1)]
    np.testing.assert_allclose(b.layer_scales, np.array(scales, dtype=float), rtol=1e-15)
    swept = np.array([[Fraction(int(i == j)) for j in range(b.Nfp)] for i in range(b.Nfp)])
    for i, scale in enumerate(scales):
        if i > 0:
            swept = rational(b.layer_reductions[i - 1]) @ swept
        for f, layers in enumerate(b.face_layers):
            block = reduction[layers[i], f * b.Nfp : (f + 1) * b.Nfp]
            assert np.all(block == scale * swept)


@exact_elements
def test_derivative_is_exact_in_rational_arithmetic(b):
    """D_m is degree N-1 differentiation, N u_{c + e_m}, followed by degree elevation."""
    number = {tuple(a): n for n, a in enumerate(b.multi_indices.tolist())}
    lower = multi_indices(b.dim, b.order - 1)
    raised, denominator = integers(rational(elevation(b.dim, b.order - 1)))
    for m in range(b.dim + 1):
        differentiate = np.zeros((len(lower), b.Np), dtype=object)
        for row, c in enumerate(lower + np.eye(b.dim + 1, dtype=int)[m]):
            differentiate[row, number[tuple(c.tolist())]] = b.order
        assert np.all(raised @ differentiate == rational(b.derivative(m)) * denominator)


@exact_elements
def test_lift_reduction_is_layers_of_scaled_degree_reductions(b):
    """E_f = [l_i (E_{N-i}^N)^T], with E_{N-i}^N the product of one-degree elevations."""
    reduction = rational(b.lift_reduction)
    raised = np.array([[Fraction(int(i == j)) for j in range(b.Nfp)] for i in range(b.Nfp)])
    for i in range(b.order + 1):
        if i > 0:
            raised = raised @ rational(elevation(b.dim - 1, b.order - i))
        scale = Fraction((-1) ** i * math.comb(b.order, i), 1 + i)
        for f, layers in enumerate(b.face_layers):
            block = reduction[layers[i], f * b.Nfp : (f + 1) * b.Nfp]
            assert np.all(block == scale * raised.T)


@exact_elements
def test_a_step_of_the_sweep_is_exact_in_rational_arithmetic(b):
    """l_i R_i = -1/(i+1) (b_j + 1) l_{i-1}, at the columns of the layer before."""
    assert len(b.slice_columns) == b.order
    for i, columns in enumerate(b.slice_columns):
        step = np.full((len(columns), space_dimension(b.dim - 1, b.order - i)), Fraction(0))
        lower = multi_indices(b.dim - 1, b.order - i - 1)
        rows = np.arange(len(columns))
        for j in range(b.dim):
            step[rows, columns[:, j]] = [Fraction(-int(x) - 1, i + 2) for x in lower[:, j]]
        ratio = Fraction(-(b.order - i), i + 2)
        assert np.all(step == ratio * rational(b.layer_reductions[i]))
        assert b.layer_scales[i + 1] == pytest.approx(float(ratio) * b.layer_scales[i], rel=1e-14)


@elements
def test_positions_in_the_lattice_have_a_closed_form(b):
    np.testing.assert_array_equal(lattice_position(b.order, b.multi_indices), np.arange(b.Np))
    number = {tuple(a): n for n, a in enumerate(b.multi_indices.tolist())}
    for m in range(b.dim + 1):
        for row, a in enumerate(b.multi_indices.tolist()):
            for j in range(b.dim + 1):
                moved = tuple(a[i] - (i == j) + (i == m) for i in range(b.dim + 1))
                expected = number[moved] if a[j] > 0 else row
                assert b.derivative_columns[m, row, j] == expected


@elements
def test_sparsity_is_what_the_paper_counts(b):
    d, N = b.dim, b.order
    for m in range(d + 1):
        per_row = np.diff(b.derivative(m).indptr)
        assert per_row.max() <= d + 1
        assert per_row.sum() == (d + 1) * space_dimension(d, N - 1)
    assert np.diff(b.lift_face.indptr).max() <= d * (d - 1) + 1
    for i, reduction in enumerate(b.layer_reductions):
        assert reduction.shape == (
            space_dimension(d - 1, N - i - 1),
            space_dimension(d - 1, N - i),
        )
        assert np.all(np.diff(reduction.indptr) == d)
    # A row at distance i from a face gathers i one-degree reductions: C(i + d - 1, d - 1) entries.
    gathered = [sum(math.comb(i + d - 1, d - 1) for i in a) for a in b.multi_indices.tolist()]
    np.testing.assert_array_equal(np.diff(b.lift_reduction.indptr), gathered)


@elements
def test_mass_is_the_integral_of_products(b):
    points, weights = simplex_quadrature(b.dim, 2 * b.order)
    values = b.interpolation(points)
    np.testing.assert_allclose((values.T * weights) @ values, b.mass, rtol=1e-11)
    np.testing.assert_allclose(b.face_mass, bernstein_mass(b.dim - 1, b.order))


@elements
def test_derivatives_agree_with_the_nodal_element(b):
    e = NodalElement(b.dim, b.order)
    for d in range(b.dim):
        along_axis = (b.derivative(d + 1) - b.derivative(0)) / 2
        difference = e.derivative[d] @ b.to_nodal - b.to_nodal @ along_axis
        assert abs(difference).max() < 1e-13 * abs(e.derivative[d]).max()


@elements
def test_lift_agrees_with_the_nodal_element(b):
    e = NodalElement(b.dim, b.order)
    to_nodal_on_face = bernstein_basis(b.dim - 1, b.order, e.face_points)
    for f, nodes in enumerate(b.face_nodes):
        np.testing.assert_allclose(b.to_nodal[np.ix_(nodes, nodes)], to_nodal_on_face, atol=1e-13)
        columns = slice(f * b.Nfp, (f + 1) * b.Nfp)
        nodal = e.lift[:, columns] @ to_nodal_on_face
        difference = b.to_nodal @ b.lift[:, columns] - nodal
        assert abs(difference).max() < 1e-12 * abs(nodal).max()


@elements
def test_functions_off_a_face_vanish_there(b):
    e = NodalElement(b.dim, b.order)
    for nodes in b.face_nodes:
        trace = np.delete(b.to_nodal[nodes], nodes, axis=1)
        assert abs(trace).max(initial=0) < 1e-14 * b.order
    np.testing.assert_array_equal(b.face_nodes, e.face_nodes)
    np.testing.assert_allclose(b.to_nodal.sum(axis=1), 1, rtol=1e-13)


@pytest.mark.parametrize("order", range(1, 13))
def test_the_change_of_basis_is_inverted(order):
    """Its condition number in 3D: 1, 2.9, 7.4, 17, 41, 99, 243, 603, 1471 and so on."""
    b = BernsteinElement(3, order)
    cond = np.linalg.cond(b.to_nodal)
    assert abs(b.from_nodal @ b.to_nodal - np.eye(b.Np)).max() < 1e-15 * b.Np * cond
    assert 0.4 * 2.4 ** (order - 1) < cond < 1.8 * 2.4 ** (order - 1)


@elements
def test_lift_is_the_product_of_its_factors(b):
    blocks = np.kron(np.eye(b.dim + 1), b.lift_face.toarray())
    product = b.lift_reduction @ blocks
    np.testing.assert_allclose(b.lift, product, atol=1e-14 * abs(product).max())


@elements
def test_conditioning_of_the_basis_is_the_known_one(b):
    """Bernstein to orthonormal: sqrt(C(2N + dim, N)), from Derriennic's eigenvalues of the mass.

    They are proportional to 1 / ((N - k)! (N + k + dim)!) for k = 0..N (chan2015, lemma A.6).
    """
    points, weights = simplex_quadrature(b.dim, 2 * b.order)
    to_modal = (vandermonde(b.dim, b.order, points).T * weights) @ b.interpolation(points)
    expected = math.sqrt(math.comb(2 * b.order + b.dim, b.order))
    assert np.linalg.cond(to_modal) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("dim", (0, *DIMS))
@pytest.mark.parametrize("order", (0, 1, 3, 8))
def test_elevation_leaves_the_polynomial_unchanged(dim, order):
    points = np.random.default_rng(6).uniform(-1, 1, (20, dim))
    raised = bernstein_basis(dim, order + 1, points) @ elevation(dim, order)
    np.testing.assert_allclose(raised, bernstein_basis(dim, order, points), atol=1e-12)
    np.testing.assert_array_equal(np.diff(elevation(dim, order).tocsc().indptr), dim + 1)


def test_coefficients_of_a_linear_function_are_its_values_on_the_lattice():
    b = BernsteinElement(3, 4)
    points = np.random.default_rng(7).uniform(-1, 1, (20, 3))
    lattice = 2 * b.multi_indices[:, 1:] / 4 - 1
    np.testing.assert_allclose(b.interpolation(points) @ lattice, points, atol=1e-13)


def test_a_face_lifts_alike_whichever_face_it_is():
    """The blocks of the lift differ by a permutation of rows: the vertices', off the face."""
    b = BernsteinElement(3, 3)
    number = {tuple(a): n for n, a in enumerate(b.multi_indices.tolist())}
    last = b.lift[:, 3 * b.Nfp :]
    for f, corners in enumerate(face_vertices(3)):
        rows = [number[(*(a[v] for v in corners), a[f])] for a in b.multi_indices.tolist()]
        block = b.lift[:, f * b.Nfp : (f + 1) * b.Nfp]
        np.testing.assert_allclose(block, last[rows], atol=1e-12)
