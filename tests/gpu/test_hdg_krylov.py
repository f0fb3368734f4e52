"""GMRES and its preconditioners on a real device: against the CPU, LU and CuPy's GMRES."""

import sys
import warnings

import numpy as np
import pytest

from dgbook import hdg
from dgbook.gpu import cuda, device, jit
from dgbook.hdg import preconditioner
from dgbook.hdg.blocks import BlockMatrix, random_matrix
from dgbook.hdg.discretization import discretize
from dgbook.hdg.exact import Couette
from dgbook.hdg.kernels.arnoldi import TOGETHER
from dgbook.hdg.krylov import Gmres, KernelSpace, Space, gmres, product_on
from dgbook.hdg.preconditioner import PRECONDITIONERS, schwarz
from dgbook.hdg.solver import direct
from dgbook.mesh import box

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

CASES = {"triangles": ((13, 9), 3), "tetrahedra": ((4, 3, 3), 2)}


def poisson(cells, order):
    def source(*x):
        return [1 + x[0] * x[1]]

    system = hdg.assemble(hdg.Poisson(source, lambda *x: [x[0] * x[1]]), box(cells), order)
    return system.matrix, system.rhs


@jit
def scale(diagonal, x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = diagonal[i] * x[i]


def scaled(diagonal):
    """``product(x, y)`` with a diagonal matrix: a launch, as graphs hold them."""
    return lambda x, y: scale[-(-y.size // 128), 128](diagonal, x, y)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("name", PRECONDITIONERS)
@pytest.mark.parametrize("case", CASES)
def test_trace_systems(case, name, single):
    matrix, rhs = poisson(*CASES[case])
    linear = Gmres(GPU, name, single=single, tolerance=1e-10)
    x, expected = linear(matrix, rhs), direct(matrix, rhs)
    np.testing.assert_allclose(x, expected, atol=1e-7 * abs(expected).max())
    (solution,) = linear.solutions
    residual = np.linalg.norm(rhs.ravel() - matrix.to_csr() @ x.ravel())
    np.testing.assert_allclose(solution.residual, residual, rtol=1e-2)
    on_cpu = Gmres("cpu", name, single=single, tolerance=1e-10)
    on_cpu(matrix, rhs)
    assert abs(solution.iterations / on_cpu.solutions[0].iterations - 1) < 0.2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PRECONDITIONERS)
def test_preconditioners_are_those_of_the_host(name, dtype, monkeypatch):
    """In stacks, with values that stay on the device."""
    host = random_matrix(box((5, 4)), 4, 2, dtype, np.random.default_rng(1))
    host.values[:, 0] += 60 * np.eye(host.m, dtype=dtype)
    monkeypatch.setattr(preconditioner, "STACK", 2**17)
    there = PRECONDITIONERS[name](BlockMatrix(GPU.array(host.values), host.columns))
    expected = PRECONDITIONERS[name](host).values
    assert there.values.dtype == dtype
    tolerance = 1e3 * np.finfo(dtype).eps * abs(expected).max()
    np.testing.assert_allclose(GPU.to_numpy(there.values), expected, atol=tolerance)


def test_a_singular_block_is_told():
    host = random_matrix(box((3, 3)), 1, 2, "float64", np.random.default_rng(1))
    host.values[4] = 0
    for make in PRECONDITIONERS.values():
        with pytest.raises(np.linalg.LinAlgError):
            make(BlockMatrix(GPU.array(host.values), host.columns))


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("name", PRECONDITIONERS)
@pytest.mark.parametrize("case", ["triangles", "tetrahedra", "convection", "no PyAMG"])
def test_a_coarse_level(case, name, single, monkeypatch):
    """With a V-cycle, of linear and quadratic functions; with a dense inverse."""
    if case == "no PyAMG":
        monkeypatch.setitem(sys.modules, "pyamg", None)
    else:
        pytest.importorskip("pyamg")
    monkeypatch.setattr(preconditioner, "SMALL", 20)
    cells = (6, 5, 4) if case == "tetrahedra" else (20, 17)
    problem = hdg.Poisson(lambda *x: [1 + x[0] * x[1]], lambda *x: [x[0] * x[1]])
    if case == "convection":
        problem = hdg.ConvectionDiffusion(problem.source, problem.boundary, (1.0, 0.5), 1e-2)
    counts, states = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for place in (GPU, device("cpu")):
            linear = Gmres(place, name, single=single, tolerance=1e-10)
            result = hdg.solve(problem, box(cells), 2, linear_solver=linear, device=place)
            counts.append(linear.solutions[0].iterations)
            states.append(result.u)
    np.testing.assert_allclose(*states, atol=1e-7 * abs(states[1]).max())
    assert abs(counts[0] - counts[1]) <= 1 + 4 * single and counts[0] < 60


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("problem", ["diffusion", "gas"])
def test_the_coarse_matrices_are_those_of_the_host(problem, dtype, monkeypatch):
    """In stacks, with values that stay on the device."""
    monkeypatch.setattr(preconditioner, "STACK", 2**15)
    problem = hdg.Poisson(None, lambda *x: [0.0]) if problem == "diffusion" else Couette().gas
    mesh = box((5, 4))
    space = preconditioner.coarse_space(discretize(problem, mesh, 2), 2)
    host = hdg.assemble(problem, mesh, 2).matrix.astype(dtype)
    there = BlockMatrix(GPU.array(host.values), host.columns)
    for found, expected in zip(
        preconditioner.restricted(there, space),
        preconditioner.restricted(host, space),
        strict=True,
    ):
        tolerance = 1e3 * np.finfo(dtype).eps * abs(expected).max()
        np.testing.assert_allclose(found.get().toarray(), expected.toarray(), atol=tolerance)


def test_newton_and_gmres():
    linear = Gmres(GPU, restart=100, tolerance=1e-6)
    result = hdg.solve(Couette().gas, box((6, 6)), 3, linear_solver=linear, device=GPU)
    expected = hdg.solve(Couette().gas, box((6, 6)), 3)
    np.testing.assert_allclose(result.u, expected.u, atol=1e-8)
    assert len(linear.solutions) == len(result.history) - 1


def test_cupys_gmres_finds_the_same_and_takes_no_fewer_steps():
    """Its callback is told the residual at the ends of cycles only."""
    from cupyx.scipy.sparse.linalg import LinearOperator
    from cupyx.scipy.sparse.linalg import gmres as cupy_gmres

    matrix, rhs = poisson(*CASES["triangles"])
    product, inverse = product_on(matrix, GPU), product_on(schwarz(matrix), GPU)
    b = GPU.array(rhs.reshape(-1))

    def operator(of):
        def applied(x):
            y = GPU.zeros(b.size, b.dtype)
            of(x, y)
            return y

        return LinearOperator(matrix.shape, applied, dtype=b.dtype)

    x, info = cupy_gmres(operator(product), b, M=operator(inverse), rtol=1e-9, restart=30)
    result = gmres(product, b, GPU, inverse, restart=30, tolerance=1e-9)
    assert info == 0 and result.converged
    scale = abs(GPU.to_numpy(x)).max()
    np.testing.assert_allclose(GPU.to_numpy(result.x), GPU.to_numpy(x), atol=1e-6 * scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("n", "steps"), [(40, 3), (1000, TOGETHER + 3), (300_000, 20), (3_000_000, 9)]
)
def test_a_space_is_that_of_the_host(n, steps, dtype):
    """Replayed from a graph, a second time from its beginning; the basis was no number before."""
    random = np.random.default_rng(n)
    diagonal = random.uniform(1, 3, n).astype(dtype)
    first = random.standard_normal(n).astype(dtype)
    first /= np.linalg.norm(first)
    there = GPU.array(diagonal)
    space = KernelSpace(scaled(there), None, GPU, steps + 2, n, np.dtype(dtype))
    space.basis[:] = np.nan
    host = Space(lambda x, y: np.multiply(diagonal, x, out=y), None, device("cpu"), steps + 2, n,
                 np.dtype(dtype))  # fmt: skip
    host._begin(first)
    for k in range(1, steps + 1):
        host._grow(k)
    tolerance = 1e5 * np.finfo(dtype).eps
    for _ in range(2):
        space._begin(GPU.array(first))
        for k in range(1, steps + 1):
            space._grow(k)
        V = GPU.to_numpy(space.basis)[: steps + 1].astype(float)
        np.testing.assert_allclose(V @ V.T, np.eye(steps + 1), atol=tolerance)
        found = GPU.to_numpy(space.columns)
        np.testing.assert_allclose(found, host.columns, atol=tolerance)
    y = np.linspace(1, 2, steps).astype(dtype)
    expected = y @ host.basis[:steps]
    found = GPU.to_numpy(space._combined(GPU.array(y)))
    np.testing.assert_allclose(found, expected, atol=tolerance * abs(expected).max())
