"""GMRES with kernels: those of the product for the matrix and its preconditioners, and its own."""

import numpy as np
import pytest
from broken import hdg_arnoldi as broken
from broken import hdg_csr as broken_csr
from scipy import sparse

from dgbook import hdg
from dgbook.check import SimulatorError
from dgbook.gpu import device
from dgbook.hdg import krylov, preconditioner
from dgbook.hdg.kernels.arnoldi import TOGETHER
from dgbook.hdg.krylov import Gmres, KernelSpace, Space
from dgbook.hdg.solver import direct
from dgbook.mesh import box
from dgbook.parallel import OneProcess

SIMULATOR = device("simulator")


@pytest.mark.parametrize(
    ("name", "single"), [("schwarz", False), ("jacobi", False), ("jacobi", True)]
)
def test_a_trace_system(name, single):
    """Rows of one block, too, go through the kernels; float32 inside, float64 outside."""
    problem = hdg.Poisson(lambda x, y: [1 + x], lambda x, y: [x * y])
    system = hdg.assemble(problem, box((2, 1)), 1, device="reference")
    tolerance = 1e-9
    options = {"single": single, "restart": 12, "tolerance": tolerance}
    linear = Gmres("simulator", name, **options)
    x = linear(system.matrix, system.rhs)
    expected = direct(system.matrix, system.rhs)
    np.testing.assert_allclose(x, expected, atol=100 * tolerance * abs(expected).max())
    on_cpu = Gmres("cpu", name, **options)
    on_cpu(system.matrix, system.rhs)
    found, same = linear.solutions[0], on_cpu.solutions[0]
    np.testing.assert_allclose(found.history[:4], same.history[:4], rtol=1e-4 if single else 1e-10)
    # Sums in another order: where cycles are in float32, the last ones begin with its roundings.
    assert abs(found.iterations - same.iterations) <= 4 * single and same.iterations > 1


def test_a_coarse_level(monkeypatch):
    """Its sparse products are kernels; the V-cycle has a level here, and a dense inverse."""
    pytest.importorskip("pyamg")
    monkeypatch.setattr(preconditioner, "SMALL", 2)
    problem = hdg.Poisson(lambda x, y: [1 + x], lambda x, y: [x * y])
    mesh, found = box((3, 3)), []
    for place in ("simulator", "cpu"):
        linear = Gmres(place, "jacobi", restart=4, tolerance=1e-2)
        hdg.solve(problem, mesh, 1, linear_solver=linear, device=place)
        found.append(linear.solutions[0])
    assert found[0].iterations == found[1].iterations > 2
    np.testing.assert_allclose(found[0].x, found[1].x, atol=1e-12)


def test_parts():
    """Cut in two, with copies between them, and a coarse level for both."""
    pytest.importorskip("pymetis")
    problem = hdg.Poisson(lambda x, y: [1 + x], lambda x, y: [x * y])
    system = hdg.assemble(problem, box((2, 1)), 1, device="reference")
    space = preconditioner.coarse_space(system.discretization)
    found = []
    for transport in (None, OneProcess(2)):
        linear = Gmres("simulator", restart=12, tolerance=1e-3, transport=transport)
        found.append(linear.solve(system.matrix, system.rhs, space))
    assert found[0].iterations == found[1].iterations > 2
    np.testing.assert_allclose(found[1].x, found[0].x, atol=1e-12)


# -- a sparse product ----------------------------------------------------------------------------


def sparse_products(per_row, dtype):
    """How far A x and b - A x are from SciPy's, over what rounding may make."""
    rng = np.random.default_rng(per_row)
    A = sparse.random_array((45, 40), density=per_row / 40, rng=rng, format="csr").astype(dtype)
    x, b = rng.standard_normal(40).astype(dtype), rng.standard_normal(45).astype(dtype)
    product, y, z = preconditioner.Sparse(A, SIMULATOR), np.full(45, np.nan, dtype), b.copy()
    product(x, y)
    product.rest(z, x, z)  # in place
    expected = A.astype(float) @ x
    worst = max(abs(y - expected).max(), abs(z - (b - expected)).max())
    return product.lanes, worst / (100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("per_row", "lanes"), [(1, 1), (5, 4), (20, 16), (40, 32)])
def test_a_sparse_product(per_row, lanes, dtype):
    """Rows of any length, some empty, and a last warp that has not enough of them."""
    found, wrong = sparse_products(per_row, dtype)
    assert found == lanes and wrong < 1


@pytest.mark.parametrize("mistake", broken_csr.MISTAKES, ids=lambda m: m.name)
def test_wrong_sparse_products_are_rejected(mistake, monkeypatch):
    monkeypatch.setattr(preconditioner, "make_csr", mistake.make)
    preconditioner.csr_kernel.cache_clear()
    try:
        _, wrong = sparse_products(6, "float64")
    except SimulatorError:
        return
    finally:
        preconditioner.csr_kernel.cache_clear()
    assert not wrong < 1


# -- a step of Arnoldi's method ------------------------------------------------------------------


def grown(kind, n, had, steps=1, dtype="float64"):
    """A space that had some vectors, after some steps with a dense matrix.

    What nobody has set is no number.
    """
    rng = np.random.default_rng(n)
    A = (rng.standard_normal((n, n)) / n**0.5 + np.diag(np.linspace(1, 3, n))).astype(dtype)
    vectors = np.linalg.qr(rng.standard_normal((n, had)))[0].T.astype(dtype)

    def product(x, y):
        y[:] = A @ x

    space = kind(product, None, SIMULATOR, had + steps, n, np.dtype(dtype))
    space.basis[:] = np.nan
    space._begin(vectors[0])
    space.basis[:had] = vectors
    if kind is KernelSpace:
        space.progress[:] = had
        space.current[:] = vectors[-1]
    for k in range(had, had + steps):
        space._grow(k)
    return space


def assert_same_space(found, expected, dtype="float64"):
    tolerance = 1e4 * np.finfo(dtype).eps
    V = found.basis
    known = np.isfinite(expected.basis).all(axis=1)
    np.testing.assert_allclose(V[known] @ V[known].T, np.eye(known.sum()), atol=tolerance)
    np.testing.assert_allclose(V, expected.basis, atol=tolerance)
    np.testing.assert_allclose(found.columns, expected.columns, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("n", "had", "steps", "blocks"),
    [(40, 1, 2, 1024), (70, TOGETHER - 1, 2, 1024), (100, TOGETHER, 1, 2), (33, 19, 1, 1)],
)
def test_a_step_is_that_of_the_host(n, had, steps, blocks, dtype, monkeypatch):
    """More and fewer vectors than a thread loads together; n that no block's threads divide."""
    monkeypatch.setattr(krylov, "MOST_BLOCKS", blocks)
    found, expected = (grown(kind, n, had, steps, dtype) for kind in (KernelSpace, Space))
    assert found.blocks == min(blocks, -(-n // 32))
    assert_same_space(found, expected, dtype)
    y = np.linspace(1, 2, had).astype(dtype)
    np.testing.assert_allclose(found._combined(y), expected._combined(y), rtol=1e-4, atol=1e-5)


def test_what_is_left_of_nothing_ends_it():
    """Beyond the solution there are no numbers, and none are used."""
    b = np.ones(20)

    def product(x, y):
        y[:] = np.resize([1.0, 2.0], 20) * x

    space = KernelSpace(product, None, SIMULATOR, 10, 20, np.dtype(float))
    change, estimates = space.cycle(b, 20**0.5, 1e-30, 10)
    np.testing.assert_allclose(change, np.resize([1.0, 0.5], 20), rtol=1e-12)
    assert len(estimates) == 2 and space.finite


@pytest.mark.parametrize("mistake", broken.MISTAKES, ids=lambda m: m.name)
def test_wrong_kernels_are_rejected(mistake, monkeypatch):
    monkeypatch.setattr(krylov, mistake.functions[-1].__name__, mistake.make)
    monkeypatch.setattr(krylov, "MOST_BLOCKS", 2)
    krylov.arnoldi_kernels.cache_clear()
    try:
        found = grown(KernelSpace, 70, TOGETHER + 1, 2)
    except SimulatorError:
        return
    finally:
        krylov.arnoldi_kernels.cache_clear()
    assert "barrier" not in mistake.name, "races are refused, whatever they compute"
    with pytest.raises(AssertionError):
        assert_same_space(found, grown(Space, 70, TOGETHER + 1, 2))
