"""The coarse level of GMRES: its space, its matrix, its cycle, and iterations that do not grow."""

from dataclasses import replace

import numpy as np
import pytest
from hdg_cases import scrambled
from local_cases import faces_of
from scipy import sparse
from scipy.optimize import brentq

from dgbook import hdg
from dgbook.gpu import device
from dgbook.hdg import preconditioner
from dgbook.hdg.discretization import discretize
from dgbook.hdg.krylov import product_on
from dgbook.hdg.preconditioner import (
    TwoLevel,
    coarse_solver,
    coarse_space,
    hierarchy,
    restricted,
    schwarz,
)
from dgbook.hdg.solver import direct
from dgbook.mesh import box, build

CPU = device("cpu")


def source(*x):
    """Nothing that a few eigenfunctions hold."""
    waves = np.sin(13 * x[0] + 7 * x[1]) + np.exp(x[0] * x[1]) * np.cos(5 * x[1] - 3 * x[0] ** 2)
    return [waves + 3 * (x[0] > 0.37)]


POISSON = hdg.Poisson(source, lambda *x: [0 * x[0]])
CONVECTION = hdg.ConvectionDiffusion(source, lambda *x: [0 * x[0]], (1.0, 0.7), 1e-3)
PLATES = hdg.exact.Couette().gas


def stiffness(mesh):
    """Linear finite elements: the integrals of grad a . grad b of all vertices' functions."""
    matrix = np.zeros((len(mesh.vertices),) * 2)
    for corners in mesh.elements:
        x = np.column_stack([mesh.vertices[corners], np.ones(mesh.dim + 1)])
        slopes = np.linalg.inv(x)[:-1]
        volume = abs(np.linalg.det(x)) / (2 if mesh.dim == 2 else 6)
        matrix[np.ix_(corners, corners)] += volume * slopes.T @ slopes
    return matrix


# -- the space -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("cells", "order"), [((4, 3), 1), ((4, 3), 3), ((3, 3, 2), 2)])
def test_the_coarse_matrix_of_diffusion_is_that_of_linear_finite_elements(cells, order):
    """Of a linear function the local problems know all, and fluxes jump as its gradient does."""
    mesh = scrambled(cells, np.random.default_rng(3))
    d = discretize(POISSON, mesh, order)
    system = hdg.assemble(POISSON, mesh, order)
    *_, A = restricted(system.matrix, coarse_space(d, 1))
    inside = ((mesh.vertices > 0) & (mesh.vertices < 1)).all(axis=1)
    np.testing.assert_allclose(A.toarray(), stiffness(mesh)[inside][:, inside], atol=1e-12)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("case", ["diffusion", "gas"])
def test_products_with_the_space(case, degree, monkeypatch):
    """A P and P^T A P, in small stacks too; P itself against the numbers of the functions."""
    monkeypatch.setattr(preconditioner, "STACK", 10_000)
    problem, cells = (POISSON, (3, 2, 2)) if case == "diffusion" else (PLATES, (4, 3))
    mesh = scrambled(cells, np.random.default_rng(4))
    d, system = discretize(problem, mesh, 2), hdg.assemble(problem, mesh, 2)
    space = coarse_space(d, degree)
    P, AP, A = restricted(system.matrix, space)
    whole = system.matrix.to_csr()
    for found, expected in ((AP, whole @ P), (A, P.T @ whole @ P)):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-11)
    c = np.random.default_rng(5).uniform(size=(space.count, d.n_c))
    known = np.where(space.numbers[..., None] < 0, 0, c[space.numbers])
    values = np.einsum("jl,flc->fcj", space.values, known)
    np.testing.assert_allclose(P @ c.ravel(), values.ravel(), atol=1e-14)


@pytest.mark.parametrize(("cells", "degree"), [((3, 2), 1), ((3, 2), 2), ((2, 2, 1), 2)])
def test_the_space_holds_all_polynomials_of_its_degree(cells, degree):
    """Where no trace is given; continuous, it has as many functions as vertices and edges."""
    mesh = scrambled(cells, np.random.default_rng(6))
    d = discretize(POISSON, mesh, 2)
    d = replace(d, given=np.zeros_like(d.given))
    space = coarse_space(d, degree)
    edges = {tuple(sorted((a, b))) for e in mesh.elements for a in e for b in e if a < b}
    assert space.linear == len(mesh.vertices)
    assert space.count == space.linear + (degree == 2) * len(edges)
    P = restricted(hdg.assemble(POISSON, mesh, 2).matrix, space)[0].toarray()
    x = d.trace_nodes()
    power = (1 + x[0] - 2 * x[1]) ** degree
    c = np.linalg.lstsq(P, power.ravel())[0]
    np.testing.assert_allclose(P @ c, power.ravel(), atol=1e-12)


def test_a_periodic_mesh_has_each_vertex_once():
    mesh = box((4, 3), periodic=True)
    problem = hdg.NavierStokes(1.0, 0.1, None)
    d = discretize(problem, mesh, 1)
    space = coarse_space(d)
    assert (space.linear, space.count) == (12, 12) and (space.numbers >= 0).all()


# -- what solves for it --------------------------------------------------------------------------


def applied(solver, n):
    """The matrix of what a coarse solver does."""
    columns = []
    for e in np.eye(n):
        solver.right[:] = e
        solver.solve()
        columns.append(solver.x.copy())
    return np.array(columns).T


def coarse_matrix(problem, cells, order=2, degree=1):
    mesh = box(cells)
    space = coarse_space(discretize(problem, mesh, order), degree)
    return restricted(hdg.assemble(problem, mesh, order).matrix, space)[2], space


@pytest.mark.parametrize(("cells", "degree"), [((12, 12), 1), ((8, 8), 2), ((4, 4, 4), 2)])
def test_the_cycle_is_symmetric_and_never_overshoots(cells, degree, monkeypatch):
    """Of a symmetric matrix: M A has its eigenvalues above 0 and, to rounding, at most 1."""
    pytest.importorskip("pyamg")
    monkeypatch.setattr(preconditioner, "SMALL", 10)
    A, space = coarse_matrix(POISSON, cells, degree=degree)
    levels, last = hierarchy(sparse.csr_array(A), space.linear)
    assert len(levels) >= 2 and last.shape[0] <= 30
    M = applied(coarse_solver(A, space.linear, 1, CPU), A.shape[0])
    np.testing.assert_allclose(M, M.T, atol=1e-13)
    values = np.sort(np.linalg.eigvals(M @ A.toarray()).real)
    assert 0.05 < values[0] and values[-1] < 1 + 1e-12


def test_the_cycle_is_that_of_pyamg(monkeypatch):
    """Of a matrix that is not symmetric, by PyAMG's own sweeps."""
    pyamg = pytest.importorskip("pyamg")
    monkeypatch.setattr(preconditioner, "SMALL", 20)
    made, make = [], pyamg.air_solver
    monkeypatch.setattr(pyamg, "air_solver", lambda *a, **o: made.append(make(*a, **o)) or made[-1])
    A, space = coarse_matrix(CONVECTION, (14, 14))
    solver = coarse_solver(A, space.linear, 1, CPU)
    solver.right[:] = b = np.random.default_rng(7).standard_normal(A.shape[0])
    solver.solve()
    expected = made[0].solve(b, maxiter=1, tol=1e-30)
    assert len(made[0].levels) > 2
    np.testing.assert_allclose(solver.x, expected, atol=1e-10 * abs(expected).max())


@pytest.mark.parametrize(("small", "problem"), [(1000, POISSON), (10, PLATES)])
def test_small_and_coupled_systems_are_solved(small, problem, monkeypatch):
    """By a dense inverse, by LU."""
    monkeypatch.setattr(preconditioner, "SMALL", small)
    A, space = coarse_matrix(problem, (5, 5))
    n_c = A.shape[0] // space.count
    solver = coarse_solver(A, space.linear * n_c, n_c, CPU)
    solver.right[:] = b = np.arange(A.shape[0])
    solver.solve()
    np.testing.assert_allclose(A @ solver.x, b, atol=1e-8)


def test_a_gas_too_large_for_a_dense_inverse_is_solved_on_fewer_functions(monkeypatch):
    """Exactly on them: what they hold comes back."""
    pytest.importorskip("pyamg")
    monkeypatch.setattr(preconditioner, "DENSE", 80)
    A, _ = coarse_matrix(PLATES, (7, 7))
    levels, last = preconditioner.fewer_functions(sparse.csr_array(A), 4)
    P = levels[0].P
    assert len(levels) == 1 and last.shape[0] == P.shape[1] <= 80 < A.shape[0]
    np.testing.assert_allclose(P.sum(axis=1).max(), 1, atol=1e-12)
    solver = coarse_solver(A, A.shape[0], 4, device("simulator"))
    c = np.random.default_rng(9).standard_normal(P.shape[1])
    solver.right[:] = A @ (P @ c)
    solver.solve()
    np.testing.assert_allclose(solver.x, P @ c, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_without_pyamg_a_warning_says_so(dtype, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyamg", None)
    monkeypatch.setattr(preconditioner, "SMALL", 10)
    A, space = coarse_matrix(POISSON, (8, 8))
    A = A.astype(dtype)
    with pytest.warns(UserWarning, match="PyAMG is not installed.*pip install pyamg"):
        solver = coarse_solver(A, space.linear, 1, CPU)
    solver.right[:] = b = np.arange(A.shape[0])
    solver.solve()
    rounding = np.finfo(dtype).eps * b.max()
    np.testing.assert_allclose(A @ solver.x, b, atol=1e3 * rounding)
    monkeypatch.setattr(preconditioner, "DENSE", 20)
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="49 unknowns; allowed on a"):
        coarse_solver(A, space.linear, 1, device("simulator"))


# -- iterations ----------------------------------------------------------------------------------


def iterations(cells, order, problem=POISSON, **options):
    linear = hdg.Gmres("cpu", restart=200, **options)
    result = hdg.solve(problem, box(cells), order, linear_solver=linear)
    return linear.solutions[0].iterations, result


@pytest.mark.parametrize("name", preconditioner.PRECONDITIONERS)
@pytest.mark.parametrize(
    ("problem", "sizes"),
    [(POISSON, (6, 24)), (CONVECTION, (12, 24))],  # six cells resolve no flow
    ids=["diffusion", "convection"],
)
def test_iterations_do_not_depend_on_the_mesh(name, problem, sizes, monkeypatch):
    pytest.importorskip("pyamg")
    monkeypatch.setattr(preconditioner, "SMALL", 30)
    coarse, fine = (iterations((n, n), 2, problem, preconditioner=name)[0] for n in sizes)
    assert fine < 1.3 * coarse


def test_iterations_hardly_depend_on_order_and_dimension():
    for name, most in (("schwarz", 18), ("jacobi", 27)):
        assert all(iterations((5, 5), p, preconditioner=name)[0] <= most for p in (1, 3, 6))
        assert iterations((3, 3, 3), 3, preconditioner=name)[0] <= 1.6 * most


def toward_the_floor(cells, aspect):
    """A square whose rows grow by one ratio, from cells `aspect` times as wide as high."""
    ratio = brentq(lambda r: (r**cells - 1) / (r - 1) - cells * aspect, 1 + 1e-9, 10.0)
    levels = (ratio ** np.arange(cells + 1) - 1) / (ratio**cells - 1)
    mesh = box((cells, cells))
    vertices = mesh.vertices.copy()
    vertices[:, 1] = levels[np.rint(cells * vertices[:, 1]).astype(int)]
    return build(vertices, mesh.elements, faces_of(mesh))


def test_flat_elements_cost_iterations_and_converge():
    """Of cells a hundred times as wide as high: no direction is preferred by either level."""
    counts = []
    for mesh in (box((16, 16)), toward_the_floor(16, 100)):
        linear = hdg.Gmres("cpu", restart=100, tolerance=1e-8)
        result = hdg.solve(POISSON, mesh, 1, linear_solver=linear, device="cpu")
        exact = hdg.solve(POISSON, mesh, 1, linear_solver=direct, device="cpu")
        assert abs(result.u - exact.u).max() < 1e-6 * abs(exact.u).max()
        counts.append(linear.solutions[0].iterations)
    assert counts[0] < 16 and 2 * counts[0] < counts[1] < 80


def test_the_solution_is_that_of_the_direct_solver():
    expected = hdg.solve(POISSON, box((5, 4)), 3).u
    for options in ({}, {"preconditioner": "jacobi"}, {"single": True}, {"coarse": False}):
        _, result = iterations((5, 4), 3, tolerance=1e-10, **options)
        np.testing.assert_allclose(result.u, expected, atol=1e-8 * abs(expected).max())
    linear = hdg.Gmres("cpu", restart=100, tolerance=1e-6)
    gas = hdg.solve(PLATES, box((3, 3)), 2, linear_solver=linear)
    np.testing.assert_allclose(gas.u, hdg.solve(PLATES, box((3, 3)), 2).u, atol=1e-8)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_fluxes_on_the_boundary_and_several_components(order, monkeypatch):
    """Functions of the boundary's vertices are there where a flux is given; order 0 too."""
    pytest.importorskip("pyamg")
    monkeypatch.setattr(preconditioner, "SMALL", 20)

    def both(*x):
        return [source(*x)[0], 1 + x[0]]

    given = hdg.Neumann(lambda *x: [x[1], 1 - x[0]])
    walls = {"x-": lambda *x: [x[1], 0 * x[0]], "x+": given, "y-": given, "y+": given}
    problem = hdg.Poisson(both, walls, components=2)
    found, result = iterations((7, 6), order, problem, tolerance=1e-11)
    expected = hdg.solve(problem, box((7, 6)), order).u
    np.testing.assert_allclose(result.u, expected, atol=1e-9 * abs(expected).max())
    assert found <= 25 and coarse_space(result.discretization).linear == 7 * 7


def test_where_the_boundary_takes_all_functions_there_is_no_coarse_level():
    assert coarse_space(discretize(POISSON, box((1, 1)), 2)).count == 0
    _, result = iterations((1, 1), 2)
    np.testing.assert_allclose(result.u, hdg.solve(POISSON, box((1, 1)), 2).u, atol=1e-9)


# -- what is wrong is rejected -------------------------------------------------------------------


def right(two):
    """Nothing is wrong."""


def no_coarse_correction(two):
    two.coarse = replace(two.coarse, solve=lambda: None)


def wrong_weights(two):
    two.restrict.matrix = two.restrict.matrix.sign()


def the_next_function(two):
    two.restrict.matrix = two.restrict.matrix[np.roll(np.arange(two.restrict.matrix.shape[0]), 1)]


def nothing_taken_off(two):
    two.product.matrix = 0 * two.product.matrix


def taken_off_twice(two):
    two.prolong.matrix = -two.prolong.matrix


MISTAKES = (
    no_coarse_correction,
    wrong_weights,
    the_next_function,
    nothing_taken_off,
    taken_off_twice,
)


@pytest.mark.parametrize("mistake", [right, *MISTAKES], ids=lambda f: f.__name__)
@pytest.mark.parametrize("case", ["diffusion", "gas"])
def test_coarse_functions_come_back_as_they_were(case, mistake):
    """M A P c = P c, whatever the smoother does, but not with a mistake in any part of M."""
    problem, cells = (POISSON, (3, 3, 2)) if case == "diffusion" else (PLATES, (4, 3))
    d, system = discretize(problem, box(cells), 2), hdg.assemble(problem, box(cells), 2)
    smoother = product_on(schwarz(system.matrix), CPU)
    space = coarse_space(d)
    two = TwoLevel(system.matrix, space, smoother, CPU)
    P, AP, _ = restricted(system.matrix, space)
    c = np.random.default_rng(8).standard_normal(P.shape[1])
    mistake(two)
    z = np.empty(P.shape[0])
    two(AP @ c, z)
    wrong = abs(z - P @ c).max()
    assert wrong < 1e-9 if mistake is right else wrong > 0.1


def test_without_the_coarse_level_iterations_grow():
    coarse, fine = (iterations((n, n), 2, coarse=False)[0] for n in (6, 24))
    assert fine > 2.5 * coarse
