"""Trace systems in parts: the same products to the last bit, the same iterations, mistakes."""

import numpy as np
import pytest
from broken.parallel import MissingWait

from dgbook import hdg
from dgbook.gpu import device
from dgbook.hdg import krylov
from dgbook.hdg.krylov import Gmres
from dgbook.hdg.preconditioner import coarse_space
from dgbook.mesh import box
from dgbook.parallel import OneProcess
from dgbook.parallel.rows import RowsInParts

pytest.importorskip("pymetis")
CPU = device("cpu")
rng = np.random.default_rng(5)


@pytest.fixture(scope="module")
def system():
    """Diffusion and convection on a square: a matrix without symmetry, and its coarse space."""
    problem = hdg.ConvectionDiffusion(
        velocity=lambda x, y: [1 + 0 * x, 0.5 + 0 * x],
        source=lambda x, y: [1 + x * y],
        boundary=lambda x, y: [0 * x],
    )
    found = hdg.assemble(problem, box((6, 6)), 2)
    return found.matrix, found.rhs, coarse_space(found.discretization)


def test_rows_by_hand():
    """A chain of six rows, each with its neighbors: three, two and one of them."""
    columns = np.array([[i, max(i - 1, 0), min(i + 1, 5)] for i in range(6)], np.int32)
    cut = RowsInParts(columns, OneProcess(1))
    cut.owner = np.array([0, 0, 0, 1, 1, 2])
    first, second, third = (cut._part(number) for number in range(3))
    assert first.own.tolist() == [0, 1, 2] and first.ghosts.tolist() == [3]
    assert first.columns.tolist() == [[0, 0, 1], [1, 0, 2], [2, 1, 3], [3, 3, 3]]
    assert second.own.tolist() == [3, 4] and second.ghosts.tolist() == [2, 5]
    assert second.columns.tolist() == [[0, 2, 1], [1, 0, 3], [2, 2, 2], [3, 3, 3]]
    assert third.columns.tolist() == [[0, 1, 0], [1, 1, 1]]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_product_has_the_bits_of_one_part(system, dtype):
    matrix = system[0].astype(dtype)
    x = rng.standard_normal((matrix.faces, matrix.m)).astype(dtype)
    expected = np.empty(x.size, dtype)
    krylov.product_on(matrix, CPU)(x.ravel(), expected)
    for parts in (1, 2, 3, 7):
        cut = RowsInParts(matrix.columns, OneProcess(parts))
        assert sorted(cut.mine) == list(range(matrix.faces)) and len(cut.parts) == parts
        y = np.empty(x.size, dtype)
        krylov._product_in_parts(cut, CPU, matrix)(x[cut.mine].ravel(), y)
        np.testing.assert_array_equal(cut.whole(y).ravel(), expected)


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("name", ["jacobi", "schwarz"])
def test_a_solve_is_that_of_one_part(system, name, coarse):
    matrix, rhs, space = system
    options = {"restart": 200, "tolerance": 1e-9, "coarse": coarse}
    one = Gmres("cpu", name, **options).solve(matrix, rhs, space)
    assert one.converged
    for parts in (1, 2, 3):
        found = Gmres("cpu", name, **options, transport=OneProcess(parts))
        several = found.solve(matrix, rhs, space)
        assert several.iterations == one.iterations and several.converged
        # Rounding, which the solve amplifies; 2e-12 was measured.
        np.testing.assert_allclose(several.x, one.x, rtol=0, atol=1e-9 * np.abs(one.x).max())


def test_cycles_in_single_precision(system):
    matrix, rhs, space = system
    linear = Gmres("cpu", single=True, tolerance=1e-10, transport=OneProcess(3))
    x = linear(matrix, rhs, space)
    assert x.dtype == np.float64 and linear.solutions[0].converged
    np.testing.assert_allclose(x, hdg.solver.direct(matrix, rhs), atol=1e-8 * np.abs(x).max())


def test_an_exchange_without_a_wait_is_refused(system):
    """The product reads unknowns of the vector before."""
    matrix, rhs, _ = system
    linear = Gmres("cpu", "jacobi", restart=200, coarse=False, transport=MissingWait(2))
    solution = linear.solve(matrix, rhs)
    residual = rhs.ravel() - matrix.to_csr() @ solution.x.ravel()
    assert np.linalg.norm(residual) > 1e-2 * np.linalg.norm(rhs)


def test_what_cannot_be_cut(system):
    matrix, rhs, _ = system
    few = np.zeros((2, 3), np.int32)
    with pytest.raises(ValueError, match="parts must be an integer from 1 to 2, not 3"):
        RowsInParts(few, OneProcess(3))
    linear = Gmres("cpu", transport=OneProcess(matrix.faces))
    with pytest.raises(ValueError, match=r"METIS leaves \d+ of them without any of the \d+ rows"):
        linear.solve(matrix, rhs)
