"""Bernstein operators for kernels: the appendix of chan2015 in exact arithmetic, sparsity, fp32."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dgbook.element import (
    BernsteinElement,
    NodalElement,
    elevation,
    face_vertices,
    lattice_numbers,
    multi_indices,
    space_dimension,
)
from dgbook.element.bernstein import lattice_position
from dgbook.lab.bernstein import (
    condition_number,
    condition_numbers,
    derivative_patterns,
    extreme_entries,
    lift_patterns,
    slices,
)
from dgbook.nodal.bernstein import BITS, bernstein_basis, fixed_width, nonzeros

EXACT = pytest.mark.parametrize("N", range(1, 7))
ALL = pytest.mark.parametrize("N", range(1, 13))
RANDOM = np.random.default_rng(8)
EPS = np.finfo(np.float64).eps


def integers(matrix, denominator):
    """denominator * matrix as Python's unbounded integers, after a check that it is whole."""
    dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    scaled = dense * denominator
    whole = np.rint(scaled)
    assert np.abs(scaled - whole).max() <= 1e-14 * max(1, np.abs(scaled).max())
    return np.array([[int(x) for x in row] for row in whole], dtype=object)


def identity(n):
    return np.array([[int(i == j) for j in range(n)] for i in range(n)], dtype=object)


def mass(dim, order):
    """Bernstein mass of a simplex of measure 1, as integers over one denominator."""
    a = multi_indices(dim, order).tolist()
    products = [
        [math.prod(map(math.comb, map(sum, zip(i, j, strict=True)), i)) for j in a] for i in a
    ]
    scale = math.comb(2 * order, order) * math.comb(2 * order + dim, dim)
    return np.array(products, dtype=object), scale


def mass_eigenvalue(dim, order, j):
    """Derriennic's, of a simplex of measure 1: N!^2 d! / ((N-j)! (N+j+d)!)."""
    f = math.factorial
    return Fraction(f(order) ** 2 * f(dim), f(order - j) * f(order + j + dim))


def modes(dim, j):
    """How many polynomials of degree j are orthogonal to all of lower degree."""
    return space_dimension(dim, j) - (space_dimension(dim, j - 1) if j else 0)


def assert_spectrum(matrix, denominator, eigenvalues, multiplicities):
    """matrix / denominator is diagonalisable with exactly these eigenvalues.

    The product of (A - mu I) over distinct mu vanishes, so that there are no others and no Jordan
    blocks; the traces of as many powers then fix the multiplicities (a Vandermonde system).
    """
    size = len(matrix)
    assert len(set(eigenvalues)) == len(eigenvalues)
    annihilated = identity(size)
    for mu in eigenvalues:
        shifted = mu.denominator * matrix - mu.numerator * denominator * identity(size)
        annihilated = annihilated @ shifted
    assert not annihilated.any()
    power = identity(size)
    for k in range(len(eigenvalues)):
        expected = sum(m * mu**k for m, mu in zip(multiplicities, eigenvalues, strict=True))
        assert Fraction(sum(power.diagonal()), denominator**k) == expected
        power = power @ matrix


# ------------------------------------------------------------------- the appendix, in exact numbers


@EXACT
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_mass_has_one_eigenvalue_a_degree(dim, N):
    """Appendix A.2: N+1 distinct ones, with the eigenspaces of orthogonal polynomials."""
    matrix, denominator = mass(dim, N)
    j = range(N + 1)
    assert_spectrum(
        matrix, denominator, [mass_eigenvalue(dim, N, i) for i in j], [modes(dim, i) for i in j]
    )


@EXACT
def test_degree_reduction_scales_and_truncates_modes(N):
    """Lemma A.3 and corollary A.5, for reduction by i degrees on the triangle.

    The reduction of the mass matrix is that of lower degree, E^T M_N E = M_n. On degree n, E^T E
    has the eigenvalues l_j^n / l_j^N, and E E^T on degree N has them too, besides zeros.
    """
    for n in range(max(0, N - 2), N):
        raised, denominator = identity(space_dimension(2, n)), 1
        for m in range(n, N):
            raised = integers(elevation(2, m), m + 1) @ raised
            denominator *= m + 1
        (high, over_high), (low, over_low) = mass(2, N), mass(2, n)
        assert np.all(raised.T @ high @ raised * over_low == low * over_high * denominator**2)
        ratios = [mass_eigenvalue(2, n, j) / mass_eigenvalue(2, N, j) for j in range(n + 1)]
        counts = [modes(2, j) for j in range(n + 1)]
        assert_spectrum(raised.T @ raised, denominator**2, ratios, counts)
        cut = space_dimension(2, N) - space_dimension(2, n)
        assert_spectrum(raised @ raised.T, denominator**2, [*ratios, Fraction(0)], [*counts, cut])


@EXACT
def test_L_0_has_the_eigenvalues_of_the_trace_inequality(N):
    """Lemma A.6: (N+1-j)(N+3+j)/2 with multiplicity j+1.

    L_0 is what M^-1 M_f does on the face, which has all nonzero eigenvalues of M_f v = mu M v. The
    largest is the trace constant (N+1)(N+3)/3 times area over volume, 3/2 in the reference.
    """
    element = BernsteinElement(3, N)
    doubled = integers(element.lift_face, 2)
    expected = [Fraction((N + 1 - j) * (N + 3 + j), 2) for j in range(N + 1)]
    assert_spectrum(doubled, 2, expected, [j + 1 for j in range(N + 1)])
    ratios = [
        Fraction((N + 1) ** 2, 2) * mass_eigenvalue(2, N, j) / mass_eigenvalue(2, N + 1, j)
        for j in range(N + 1)
    ]
    assert ratios == expected
    assert expected[0] == Fraction((N + 1) * (N + 3), 3) * Fraction(3, 2)
    reduction = integers(element.lift_reduction, math.lcm(*range(1, N + 2)))
    for f, nodes in enumerate(element.face_nodes):
        on_face = reduction[nodes, f * element.Nfp : (f + 1) * element.Nfp]
        assert np.all(on_face == math.lcm(*range(1, N + 2)) * identity(element.Nfp))


@EXACT
def test_L_0_in_closed_form(N):
    """1/2 (sum_j (c_j+1)^2 u_c + sum_{j != k} (c_j+1) c_k u_{c + e_j - e_k}): halves, 7 a row."""
    number = lattice_numbers(2, N)
    expected = np.zeros((len(number), len(number)), dtype=object)
    for c, row in number.items():
        for j, k in itertools.product(range(3), repeat=2):
            if j == k:
                expected[row, row] += (c[j] + 1) ** 2
            elif c[k] > 0:
                moved = tuple(c[i] + (i == j) - (i == k) for i in range(3))
                expected[row, number[moved]] += (c[j] + 1) * c[k]
    assert np.all(integers(BernsteinElement(3, N).lift_face, 2) == expected)
    assert (expected != 0).sum(axis=1).max() == (7 if N > 2 else [3, 5][N - 1])


@EXACT
def test_elevation_by_many_degrees_in_closed_form(N):
    """(E_n^N)_{c b} = prod_j C(c_j, b_j) / C(N, n), which the entries of E_L come from."""
    for n in range(N):
        product = identity(space_dimension(2, n))
        for m in range(n, N):
            product = integers(elevation(2, m), m + 1) @ product
        closed = [
            [math.prod(map(math.comb, c, b)) for b in multi_indices(2, n).tolist()]
            for c in multi_indices(2, N).tolist()
        ]
        scale = Fraction(math.prod(range(n + 1, N + 1)), math.comb(N, n))
        assert np.all(product == np.array(closed, dtype=object) * scale)


@EXACT
def test_the_lift_of_one_face_gives_those_of_the_others(N):
    """By a permutation of rows, that of the vertices; in integers."""
    element = BernsteinElement(3, N)
    denominator = math.lcm(*range(1, N + 2))
    reduction = integers(element.lift_reduction, denominator)
    within = integers(element.lift_face, 2)
    blocks = [b @ within for b in np.split(reduction, 4, axis=1)]
    for f, corners in enumerate(face_vertices(3)):
        a = element.multi_indices
        rows = lattice_position(N, np.column_stack([*a[:, corners].T, a[:, f]]))
        assert sorted(rows) == list(range(element.Np))
        assert np.all(blocks[f] == blocks[3][rows])
    assert not np.all(blocks[0] == blocks[3])


@EXACT
def test_lemma_3_1_rows_of_a_column(N):
    """Column c of D_m: none if c_m = 0, else rows a = c - e_m + e_j with the value a_j, four."""
    element = BernsteinElement(3, N)
    number = lattice_numbers(3, N)
    for m in range(4):
        expected = np.zeros((element.Np, element.Np))
        for c, column in number.items():
            if c[m] > 0:
                for j in range(4):
                    row = tuple(c[i] - (i == m) + (i == j) for i in range(4))
                    expected[number[row], column] = row[j]
        assert np.all(element.derivative(m).toarray() == expected)


@EXACT
def test_the_scales_are_a_lagrange_polynomial_of_radau_points(N):
    """sum_i l_i B_i^N is 1 at 0 and orthogonal to lower degrees with weight s on [0, 1].

    Its zeros are then the other Gauss-Radau points, as the appendix remarks. With
    int s^(k+1) B_i^N = C(N, i) (i+k+1)! (N-i)! / (N+k+2)!, for k < N.
    """
    scale = [Fraction((-1) ** i * math.comb(N, i), 1 + i) for i in range(N + 1)]
    np.testing.assert_allclose(BernsteinElement(3, N).layer_scales, [float(l) for l in scale])
    f = math.factorial
    for k in range(N):
        moments = [math.comb(N, i) * f(i + k + 1) * f(N - i) for i in range(N + 1)]
        assert sum(l * m for l, m in zip(scale, moments, strict=True)) == 0
    assert scale[0] == 1


# ---------------------------------------------------------------------- what kernels will load


@ALL
def test_arrays_for_kernels_are_the_elements_matrices(N):
    basis = bernstein_basis(N, "float32")
    element = basis.element
    for m in range(4):
        dense = np.zeros((element.Np, element.Np))
        rows = np.arange(element.Np)[:, None]
        np.add.at(dense, (rows, basis.derivative_columns[m]), basis.derivative_values)
        assert np.all(dense == element.derivative(m).toarray())
    for stored, matrix, width in (
        (basis.lift_face, element.lift_face, {1: 4}.get(N, 8)),
        (basis.lift_reduction, element.lift_reduction, -(-(element.Nfp + 3) // 4) * 4),
    ):
        assert stored.columns.shape == stored.values.shape == (matrix.shape[0], width)
        assert stored.columns.dtype == np.int32 and stored.values.dtype == np.float32
        dense = np.zeros(matrix.shape, np.float32)
        np.add.at(dense, (np.arange(len(dense))[:, None], stored.columns), stored.values)
        assert np.all(dense == matrix.toarray().astype(np.float32))
        columns, values = stored.quads
        assert columns.shape == (width // 4, len(dense), 4)
        assert np.all(columns[-1, :, 3] == stored.columns[:, -1])
        assert np.all(values[0, :, 1] == stored.values[:, 1])
    for array in (basis.derivative_columns, basis.sweep_columns, basis.sweep_places):
        assert array.shape[-1] == 4 and array.dtype == np.int32
        assert array.min() >= 0 and array.max() < element.Np
    unpacked = basis.words[:, None] >> (BITS * np.arange(4)) & 255
    np.testing.assert_array_equal(unpacked, element.multi_indices)


@ALL
def test_the_sweep_and_the_two_products_apply_the_lift(N):
    """To rounding: the errors are those of float64 at every order."""
    basis = bernstein_basis(N)
    flux = RANDOM.standard_normal((2, 3, 4, basis.element.Nfp))
    dense = flux.reshape(2, 3, -1) @ basis.element.lift.T
    for result in (basis.lift(flux), basis.lift_by_reduction(flux)):
        assert np.abs(result - dense).max() < 200 * EPS * np.abs(dense).max()


@ALL
def test_a_sweep_reads_only_what_was_written(N):
    """Every entry comes from the layer before, and each function's four places are its layers'."""
    basis = bernstein_basis(N)
    starts = basis.sweep_starts
    assert starts[-1] == basis.element.Np and starts[1] == basis.element.Nfp
    for i in range(1, N + 1):
        own = slice(starts[i], starts[i + 1])
        columns = basis.sweep_columns[own]
        assert columns.min() >= starts[i - 1] and columns.max() < starts[i]
        assert np.all(basis.sweep_values[own, :3] < 0) and not basis.sweep_values[own, 3].any()
    layer = np.searchsorted(starts, basis.sweep_places, side="right") - 1
    np.testing.assert_array_equal(layer, basis.element.multi_indices)
    assert all(len(set(places)) == basis.element.Np for places in basis.sweep_places.T)


@ALL
def test_what_fp32_holds_exactly(N):
    single, double = bernstein_basis(N, "float32"), bernstein_basis(N)
    assert np.all(single.derivative_values == double.derivative_values)
    assert double.derivative_values.max() == N
    assert np.all(single.lift_face.values == double.lift_face.values)
    assert np.all(2 * double.lift_face.values == np.rint(2 * double.lift_face.values))
    assert double.lift_face.values.max() * 2 <= (N + 1) * (N + 2)
    over = 1 + double.element.multi_indices  # of the entries from face f
    reduction = double.element.lift_reduction.toarray().reshape(-1, 4, double.element.Nfp)
    whole = reduction * over[:, :, None]
    assert np.abs(whole - np.rint(whole)).max() < 1e-12 and np.abs(whole).max() < 2**24
    # The others are rounded once.
    rounded = double.lift_reduction.values.astype(np.float32)
    np.testing.assert_array_equal(single.lift_reduction.values, rounded)


@pytest.mark.parametrize("N", [9, 12])
def test_the_sweep_rounds_less_than_two_products_in_fp32(N):
    """chan2015, section 4.1, as values of the function: by a factor of 2 at N = 9, then of 3.

    The order of their sums is their own on every processor, and 36,000 roundings make a mean that
    seeds change by 5 percent. The product with the whole lift loses about as much as the two; how
    much depends on the order in which a BLAS adds.
    """
    single, double = bernstein_basis(N, "float32"), bernstein_basis(N)
    flux = RANDOM.standard_normal((1, 100, 4, double.element.Nfp)).astype(np.float32)
    exact = double.to_nodal(double.lift(flux.astype(np.float64)))
    dense = flux.reshape(1, 100, -1) @ double.element.lift.T.astype(np.float32)
    results = (single.lift(flux), single.lift_by_reduction(flux), dense)
    errors = [
        np.linalg.norm(double.to_nodal(r.astype(np.float64)) - exact) / np.linalg.norm(exact)
        for r in results
    ]
    assert errors[0] < errors[1]
    assert max(errors) < 2 * np.finfo(np.float32).eps * 1.75**N


@ALL
def test_control_points_and_back(N):
    basis = bernstein_basis(N)
    u = RANDOM.standard_normal((4, 3, basis.element.Np))
    back = basis.to_nodal(basis.from_nodal(u))
    assert np.abs(back - u).max() < 1e-15 * 2.5**N * 10
    face = basis.element.face_nodes[2]
    on_face = basis.face_from_nodal(u[..., face])
    np.testing.assert_allclose(on_face, basis.from_nodal(u)[..., face], atol=1e-12 * 2.4**N)
    assert np.abs(basis.coefficients).sum(axis=1).max() < 2.6**N
    assert np.abs(basis.nodal).sum(axis=1).max() < 1 + 1e-12
    # A constant stays one, in single precision too.
    single = bernstein_basis(N, "float32").from_nodal(np.ones((1, 1, basis.element.Np), np.float32))
    assert single.dtype == np.float32 and np.all(single == 1)


# ---------------------------------------------------------------------------- figures 1 to 5


@ALL
def test_nonzeros_have_formulae(N):
    counts = nonzeros(N)
    b, e = BernsteinElement(3, N), NodalElement(3, N)
    assert all(b.derivative(m).nnz == counts["Bernstein derivative"] for m in range(4))
    assert b.lift_face.nnz == counts["L_0"]
    assert b.lift_reduction.nnz == counts["E_L"]
    assert fixed_width(b.lift_reduction).values.size == counts["E_L stored"]
    assert 4 * sum(r.nnz for r in b.layer_reductions) == counts["sweep"]
    assert e.lift.size == counts["nodal lift"] and e.mass.size == counts["nodal derivative"]
    # Section 3.1.2: Nfp + 3 entries in the longest row of E_L, at a vertex.
    assert np.diff(b.lift_reduction.indptr).max() == b.Nfp + 3


def test_gains_tend_to_what_the_table_says():
    counts = nonzeros(2000)
    assert counts["nodal lift"] / counts["E_L stored"] == pytest.approx(4, rel=0.01)
    assert counts["nodal lift"] / counts["E_L"] == pytest.approx(10, rel=0.01)
    assert counts["E_L stored"] / counts["E_L"] == pytest.approx(2.5, rel=0.01)
    assert counts["nodal lift"] > 400 * counts["sweep"]


@pytest.mark.parametrize("N", [1, 4, 7])
def test_patterns_of_figures_1_and_2(N):
    derivative, lift = derivative_patterns(N), lift_patterns(N)
    b = BernsteinElement(3, N)
    assert derivative["bernstein"].sum() == nonzeros(N)["Bernstein derivative"]
    assert derivative["bernstein"].sum() < derivative["nodal"].sum() <= b.Np**2 or N == 1
    assert lift["lift"].shape == lift["E"].shape == (b.Np, b.Nfp)
    assert lift["E"].sum() * 4 == b.lift_reduction.nnz and lift["L_0"].sum() == b.lift_face.nnz
    # The first block of E is the identity: layer 0 is the face itself, and comes first.
    assert np.array_equal(lift["E"][: b.Nfp], np.eye(b.Nfp, dtype=bool))


def test_slices_of_figure_3():
    layers = slices(4, face=1)
    assert [len(layer) for layer in layers] == [15, 10, 6, 3, 1]
    for i, layer in enumerate(layers):
        assert np.all(layer[:, 1] == i / 4)
        np.testing.assert_allclose(layer.sum(axis=1), 1)


def test_condition_numbers_of_figure_4():
    """What the paper says of them: D tame, the lift not, E_L half an order of magnitude better."""
    nine = condition_numbers(9)
    assert nine["Bernstein derivative"] < 3 < 100 < nine["nodal derivative"]
    assert nine["nodal lift"] < nine["Bernstein lift"] / 100
    assert 0.4 < np.log10(nine["Bernstein lift"] / nine["E_L"]) < 1.0
    # "A loss of at most three digits" at N = 9.
    assert nine["to nodal"] == pytest.approx(1471, rel=1e-3)


@ALL
def test_the_condition_of_L_0_has_a_formula(N):
    expected = (N + 1) * (N + 3) / (2 * N + 3)
    assert condition_number(BernsteinElement(3, N).lift_face.toarray()) == pytest.approx(expected)


def test_condition_numbers_leave_out_zero_singular_values():
    assert condition_number(np.diag([4.0, 2.0, 0.0])) == 2
    # A derivative takes constants to zero.
    assert np.linalg.cond(NodalElement(3, 2).derivative[0]) > 1e12
    assert condition_numbers(2)["nodal derivative"] < 10


def test_extreme_entries_of_figure_5():
    """The lift's grow by about 2.1 with each order, those of its factors much less."""
    at = {N: extreme_entries(N) for N in (1, 6, 9)}
    assert at[1]["L_0"] == (0.5, 3) and at[1]["E_L"] == (-0.5, 1)
    assert at[1]["nodal lift"] == pytest.approx((-2, 3))

    def size(N, name):
        return max(map(abs, at[N][name]))

    assert size(9, "Bernstein lift") == pytest.approx(1390, rel=0.01)
    assert size(9, "Bernstein lift") / size(6, "Bernstein lift") > 9
    assert size(9, "E_L") < 26 and size(9, "nodal lift") < 40
    # The largest of L_0 is at a vertex of the face: ((N+1)^2 + 2) / 2.
    assert [size(N, "L_0") for N in (6, 9)] == [(49 + 2) / 2, (100 + 2) / 2]
