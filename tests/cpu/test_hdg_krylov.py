"""GMRES and its preconditioners: against dense solves, SciPy's GMRES and the direct solver."""

import numpy as np
import pytest
from hdg_cases import Alien, AlienDevice
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import gmres as scipy_gmres

from dgbook import hdg
from dgbook.gpu import device
from dgbook.hdg import krylov, preconditioner
from dgbook.hdg.blocks import BlockMatrix, face_columns, number_faces, random_matrix
from dgbook.hdg.exact import Couette
from dgbook.hdg.krylov import Gmres, GmresError, LeastSquares, Space, forcing_term, gmres
from dgbook.hdg.preconditioner import elements_of, jacobi, schwarz
from dgbook.hdg.solver import direct
from dgbook.mesh import box, build

CPU = device("cpu")
rng = np.random.default_rng(11)


def operator(A):
    """``product(x, y)`` with a dense matrix."""

    def product(x, y):
        y[:] = A @ x

    return product


def dominant(n, dtype=float):
    return (np.diag(np.linspace(1, 8, n)) + 0.4 * rng.standard_normal((n, n)) / n**0.5).astype(
        dtype
    )


def poisson(cells, order=1):
    def source(*x):
        return [1 + x[0] * x[1]]

    system = hdg.assemble(hdg.Poisson(source, lambda *x: [0 * x[0]]), box(cells), order)
    return system.matrix, system.rhs


# -- the method ----------------------------------------------------------------------------------


def test_as_many_steps_as_unknowns_are_enough():
    A, b = rng.standard_normal((12, 12)), rng.standard_normal(12)
    result = gmres(operator(A), b, CPU, restart=12, tolerance=1e-11)
    assert result.converged and result.iterations == 12 and result.products == 13
    np.testing.assert_allclose(result.x, np.linalg.solve(A, b), rtol=1e-9, atol=1e-10)
    assert (np.diff(result.history) <= 0).all()


@pytest.mark.parametrize("restart", [7, 50])
def test_every_step_is_that_of_scipys_gmres(restart):
    """With a preconditioner on the right: SciPy's own is on the left, so it gets A M."""
    n = 60
    A, b = dominant(n), rng.standard_normal(n)
    M = np.diag(1 / np.diag(A))
    norms = []
    options = {"rtol": 1e-9, "restart": restart, "maxiter": 50, "callback_type": "pr_norm"}
    y, _ = scipy_gmres(LinearOperator(A.shape, lambda v: A @ (M @ v)), b, callback=norms.append,
                       **options)  # fmt: skip
    result = gmres(operator(A), b, CPU, operator(M), restart=restart, tolerance=1e-9)
    assert result.converged and result.iterations == len(norms) > 8
    np.testing.assert_allclose(result.x, M @ y, atol=1e-9)
    expected = np.array(norms) * np.linalg.norm(b)
    np.testing.assert_allclose(result.history[1:], expected, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_residual_is_that_of_x(dtype):
    A, b = dominant(80, dtype), rng.standard_normal(80).astype(dtype)
    result = gmres(operator(A), b, CPU, restart=6, tolerance=1e-4)
    true = np.linalg.norm(b - A.astype(float) @ result.x)
    np.testing.assert_allclose(result.residual, true, rtol=200 * np.finfo(dtype).eps / 1e-4)
    assert result.x.dtype == dtype and result.history[-1] == result.residual
    np.testing.assert_allclose(result.history[0], np.linalg.norm(b), rtol=1e-6)
    assert result.residual <= 1e-4 * result.history[0]


def test_rotations_solve_the_least_squares_problem():
    H = np.triu(rng.standard_normal((7, 6)), -1)
    small = LeastSquares(6, 2.0)
    right = np.zeros(7)
    right[0] = 2
    for k in range(6):
        found = small.add(H[: k + 1, k], H[k + 1, k])
        y, (square,), *_ = np.linalg.lstsq(H[: k + 2, : k + 1], right[: k + 2])
        np.testing.assert_allclose(found, square**0.5)
        np.testing.assert_allclose(small.solve(), y)


def test_the_basis_stays_orthonormal():
    """On a matrix of condition 1e8, where one pass of Gram-Schmidt leaves vectors that lean."""
    n = 200
    A, b = np.diag(np.logspace(0, 8, n)), rng.standard_normal(n)
    space = Space(operator(A), None, CPU, 40, n, np.dtype(float))
    space.cycle(b, float(np.linalg.norm(b)), 0.0, 40)
    V = space.basis[:40]
    np.testing.assert_allclose(V @ V.T, np.eye(40), atol=1e-14)


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_vectors_stay_on_the_device(kind, monkeypatch):
    """With arrays that refuse to meet NumPy's: the same numbers, whenever the host looks at them.

    What is found does not depend on it, only how much was done in vain.
    """
    for kernels in ("KernelSpace", "CoreSpace"):
        monkeypatch.setattr(krylov, kernels, Space)
    A, b = dominant(30), rng.standard_normal(30)
    there = AlienDevice(kind, "elsewhere", "")
    AlienDevice.fetched.clear()
    result = gmres(operator(Alien(A)), Alien(b), there, operator(Alien(np.eye(30) / 2)), restart=15)
    here = gmres(operator(A), b, CPU, operator(np.eye(30) / 2), restart=15)
    assert isinstance(result.x, Alien) and result.history == here.history
    np.testing.assert_array_equal(result.x.values, here.x)
    looks = len(AlienDevice.fetched) - 1 - (here.products - here.iterations)  # and the norms
    assert result.products >= here.products and looks <= here.iterations
    if kind == "cuda":
        assert looks < 0.8 * here.iterations


# -- Newton's method ---------------------------------------------------------------------------


def test_what_a_step_of_newtons_method_may_leave():
    """A hundredth at first; then 0.9 of the square, but no more than the end needs, and no less."""
    assert forcing_term([5.0], 1e-9, 1e-8) == 0.01
    assert forcing_term([5.0, 0.05], 1e-9, 1e-8) == pytest.approx(0.9 * 0.01**2)
    assert forcing_term([5.0, 4.0], 1e-9, 1e-8) == 0.01
    assert forcing_term([1.0, 1e-5], 1e-9, 1e-8) == pytest.approx(0.1 * 1e-9 / 1e-5)
    assert forcing_term([1.0, 1e-5], 1e-9, 1e-4) == 1e-4


def test_newtons_method_asks_for_no_more_than_it_needs():
    flow, found = Couette(), []
    for forcing in (False, True):
        linear = Gmres(CPU, restart=100, tolerance=1e-8, forcing=forcing)
        result = hdg.solve(flow.gas, box((4, 4)), 2, tolerance=1e-9, linear_solver=linear)
        found.append((result.u, [solution.iterations for solution in linear.solutions]))
        assert result.history[-1] < 1e-9
    (u, all_of_them), (v, fewer) = found
    assert abs(u - v).max() < 1e-9 * abs(u).max()
    assert sum(fewer) < 0.75 * sum(all_of_them) and fewer[0] < 0.5 * all_of_them[0]
    assert all(s.residual > 1e-8 * s.history[0] for s in linear.solutions[:3])


# -- how it ends ---------------------------------------------------------------------------------


def test_nothing_to_do():
    result = gmres(operator(np.eye(5)), np.zeros(5), CPU)
    assert result.converged and not result.x.any()
    assert (result.iterations, result.products, result.residual) == (0, 0, 0.0)


@pytest.mark.parametrize("kinds", [1, 3])
def test_it_ends_where_the_space_holds_the_solution(kinds):
    """So many different eigenvalues: so many steps, and nothing is left of the next vector."""
    A = np.diag(np.resize(np.arange(1.0, kinds + 1), 30))
    result = gmres(operator(A), np.ones(30), CPU, tolerance=1e-13)
    assert result.converged and result.iterations == kinds
    np.testing.assert_allclose(result.x, 1 / np.diag(A), rtol=1e-13)


def test_a_singular_matrix_has_no_step():
    b = np.array([1.0, 0.0])
    result = gmres(operator(np.array([[0.0, 1.0], [0.0, 0.0]])), b, CPU)
    assert result.stopped == "stagnated" and result.history == (1.0, 1.0)
    assert not result.x.any() and result.residual == 1.0
    small = LeastSquares(2, 3.0)
    assert small.add(np.zeros(1), 0.0) == 3.0 and not small.solve().any()


def test_a_turn_stagnates_until_all_unknowns_are_there():
    shift, b = np.roll(np.eye(6), 1, axis=0), np.eye(6)[0]
    result = gmres(operator(shift), b, CPU, restart=5)
    assert result.stopped == "stagnated" and result.history == (1.0,) * 6
    assert not result.converged and not result.x.any() and result.residual == 1.0
    result = gmres(operator(shift), b, CPU, restart=6)
    assert result.converged and result.iterations == 6
    np.testing.assert_allclose(result.x, shift.T @ b, atol=1e-15)


def test_the_limit_of_iterations_holds_inside_of_a_cycle():
    A, b = dominant(50), rng.standard_normal(50)
    result = gmres(operator(A), b, CPU, restart=6, tolerance=1e-12, max_iterations=15)
    assert result.stopped == "iterations" and result.iterations == 15 and result.products == 18
    np.testing.assert_allclose(result.residual, np.linalg.norm(b - A @ result.x), rtol=1e-10)


def test_what_makes_the_residual_larger_is_not_kept():
    """The operator changes its sign where the first cycle ends."""
    A, b, calls = dominant(40), rng.standard_normal(40), []

    def turning(x, y):
        calls.append(1)
        y[:] = A @ x if len(calls) <= 5 else -A @ x

    result = gmres(turning, b, CPU, restart=5)
    assert result.stopped == "stagnated" and not result.x.any()
    assert result.residual == result.history[0] < result.history[-1]


@pytest.mark.parametrize(("call", "iterations"), [(1, 1), (9, 7)])
def test_what_is_no_number_ends_it(call, iterations):
    """In the first product nothing is known yet; in a later one the cycle ends before it."""
    A, b, calls = dominant(40), rng.standard_normal(40), []

    def failing(x, y):
        calls.append(1)
        y[:] = A @ x if len(calls) != call else np.nan

    result = gmres(failing, b, CPU, restart=5, tolerance=1e-12)
    assert result.stopped == "not finite" and result.iterations == iterations
    assert result.products == len(calls)
    np.testing.assert_allclose(result.residual, np.linalg.norm(b - A @ result.x), rtol=1e-10)


def test_cycles_in_single_precision_reach_a_double_residual():
    """Alone they stagnate."""
    A, b = dominant(70), rng.standard_normal(70)
    single = operator(A.astype("f4"))
    result = gmres(single, b, CPU, precise=operator(A), tolerance=1e-13)
    assert result.converged and result.x.dtype == np.float64
    np.testing.assert_allclose(result.x, np.linalg.solve(A, b), rtol=1e-10, atol=1e-12)
    # No cycle goes on where float32 tells it nothing: hardly more work than in double.
    assert result.iterations <= 2 * gmres(operator(A), b, CPU, tolerance=1e-13).iterations
    alone = gmres(single, b.astype("f4"), CPU, tolerance=1e-9)
    assert alone.stopped == "stagnated" and 1e-9 < alone.residual / alone.history[0] < 1e-5


# -- preconditioners -----------------------------------------------------------------------------


def dense(matrix):
    return matrix.to_csr(drop_zeros=False).toarray()


def random_trace_matrix(mesh, m=3, dtype="float64"):
    matrix = random_matrix(mesh, 1, 1, dtype, rng)
    values = rng.uniform(-1, 1, (*matrix.columns.shape, m, m)).astype(dtype)
    values[:, 1:][matrix.columns[:, 1:] == matrix.columns[:, :1]] = 0
    values[:, 0] += 12 * np.eye(m, dtype=dtype)
    return BlockMatrix(values, matrix.columns)


MESHES = {
    "triangles": box((3, 2)),
    "tetrahedra": box((2, 1, 1)),
    "periodic": box((3, 4), periodic=True),
}


@pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)
def test_schwarz_is_the_mean_of_elements_inverses(mesh):
    matrix = random_trace_matrix(mesh)
    A, m = dense(matrix), matrix.m
    expected, count = np.zeros_like(A), np.zeros(len(A))
    for faces in number_faces(mesh):
        rows = (faces[:, None] * m + np.arange(m)).ravel()
        expected[np.ix_(rows, rows)] += np.linalg.inv(A[np.ix_(rows, rows)])
        count[rows] += 1
    found = schwarz(matrix)
    np.testing.assert_allclose(dense(found), expected / count[:, None], atol=1e-13)
    assert np.array_equal(found.columns, matrix.columns) and found.nbytes == matrix.nbytes


@pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)
def test_elements_are_found_from_columns(mesh):
    faces, second = elements_of(face_columns(mesh))
    assert {tuple(f) for f in faces} == {tuple(np.sort(f)) for f in number_faces(mesh)}
    assert len(faces) == mesh.K
    # Every face is the first one's once, and the second one's unless it is on the boundary.
    assert np.array_equal(np.sort(faces[~second]), np.arange(faces.max() + 1))
    assert second.sum() == (mesh.K * (mesh.dim + 1) - len(mesh.boundary_faces)) // 2


def test_schwarz_on_one_element_is_the_inverse():
    mesh = build(np.array([[0.0, 0], [1, 0], [0, 1]]), np.array([[0, 1, 2]]))
    matrix = random_trace_matrix(mesh)
    np.testing.assert_allclose(dense(schwarz(matrix)) @ dense(matrix), np.eye(9), atol=1e-13)


def test_jacobi_inverts_the_faces_own_blocks():
    matrix = random_trace_matrix(box((3, 2)))
    found = jacobi(matrix)
    assert found.blocks == 1 and found.nbytes == matrix.nbytes // 5
    for f in range(matrix.faces):
        np.testing.assert_allclose(found.values[f, 0] @ matrix.values[f, 0], np.eye(3), atol=1e-14)


@pytest.mark.parametrize("make", [jacobi, schwarz])
def test_stacks_and_places(make, monkeypatch):
    """A few small matrices at a time, or on a device, in single precision: the same numbers."""
    matrix = random_trace_matrix(box((4, 3)), dtype="float32")
    expected = make(matrix).values
    assert expected.dtype == np.float32
    there = make(BlockMatrix(Alien(matrix.values), matrix.columns))
    np.testing.assert_array_equal(there.values.values, expected)
    monkeypatch.setattr(preconditioner, "STACK", 1000)
    np.testing.assert_allclose(make(matrix).values, expected, rtol=1e-4, atol=1e-6)


def test_preconditioners_that_cannot_be():
    matrix = random_trace_matrix(box((3, 2)))
    values = matrix.values.copy()
    values[4] = 0
    for make in (jacobi, schwarz):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            make(BlockMatrix(values, matrix.columns))
    with pytest.raises(ValueError, match=r"columns have shape \(16, 1\)"):
        schwarz(BlockMatrix(values[:16, :1], np.arange(16, dtype=np.int32)[:, None]))
    with pytest.raises(ValueError, match="two elements share more than one face"):
        schwarz(random_trace_matrix(box((1, 4), periodic=True)))
    columns = matrix.columns.copy()
    columns[:, 1:] = (columns[:, 1:] + 1) % matrix.faces
    with pytest.raises(ValueError, match="columns are not those of face_columns"):
        schwarz(BlockMatrix(matrix.values, columns))


def test_iterations_grow_with_one_over_h_and_schwarz_takes_fewer():
    counts = {}
    for name, make in preconditioner.PRECONDITIONERS.items():
        for n in (4, 8, 16):
            matrix, rhs = poisson((n, n))
            A, M = matrix.to_csr(), make(matrix).to_csr()
            result = gmres(operator(A), rhs.ravel(), CPU, operator(M), restart=200)
            assert result.converged
            np.testing.assert_allclose(
                result.x, direct(matrix, rhs).ravel(), atol=1e-7 * abs(result.x).max()
            )
            counts[name, n] = result.iterations
    for n in (4, 8):
        assert 1.5 < counts["jacobi", 2 * n] / counts["jacobi", n] < 2.5, counts
        assert 1.3 < counts["schwarz", 2 * n] / counts["schwarz", n] < 2.2, counts
    assert all(counts["schwarz", n] < 0.75 * counts["jacobi", n] for n in (4, 8, 16)), counts


# -- trace systems -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", preconditioner.PRECONDITIONERS)
def test_trace_systems_against_the_direct_solver(name):
    for cells in ((6, 5), (2, 2, 2)):
        matrix, rhs = poisson(cells, order=2)
        linear = Gmres("cpu", name, tolerance=1e-11)
        expected = direct(matrix, rhs)
        x = linear(matrix, rhs)
        assert x.shape == rhs.shape
        np.testing.assert_allclose(x, expected, atol=1e-9 * abs(expected).max())
        (solution,) = linear.solutions
        assert solution.x is x and solution.converged
        residual = np.linalg.norm(rhs.ravel() - matrix.to_csr() @ x.ravel())
        np.testing.assert_allclose(solution.residual, residual, rtol=1e-3)


def test_newton_and_gmres_find_what_newton_and_lu_find():
    linear = Gmres("cpu", restart=100, tolerance=1e-6)
    result = hdg.solve(Couette().gas, box((3, 3)), 2, linear_solver=linear)
    expected = hdg.solve(Couette().gas, box((3, 3)), 2)
    np.testing.assert_allclose(result.u, expected.u, atol=1e-8)
    assert len(linear.solutions) == len(result.history) - 1 <= len(expected.history)


def test_gmres_says_when_it_did_not_arrive():
    matrix, rhs = poisson((6, 6))
    linear = Gmres("cpu", "jacobi", max_iterations=4)
    with pytest.raises(GmresError, match=r"after 4 iterations \(iterations\) with a residual of 0"):
        linear(matrix, rhs)
    solution = linear.solutions[0]
    assert solution.iterations == 4 and solution.stopped == "iterations"
    assert linear.solve(matrix, rhs).x.shape == rhs.shape


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"restart": 0}, "restart = 0; allowed: positive"),
        ({"tolerance": 0.0}, "tolerance = 0.0; allowed: positive"),
        ({"max_iterations": -1}, "max_iterations = -1; allowed: positive"),
        ({"preconditioner": "ilu"}, "preconditioner = 'ilu'; allowed are 'schwarz', 'jacobi'"),
        ({"device": "abacus"}, "device = 'abacus'"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Gmres(**{"device": "cpu", **options})


def test_a_right_hand_side_of_another_shape_is_refused():
    matrix, rhs = poisson((2, 2))
    with pytest.raises(ValueError, match=r"rhs has shape \(32,\); allowed: \(faces, m\) = \(16, 2"):
        Gmres("cpu").solve(matrix, rhs.ravel())
