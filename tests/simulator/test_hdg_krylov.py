"""GMRES with the kernels of the product, for the matrix and for its preconditioners."""

import numpy as np
import pytest

from dgbook import hdg
from dgbook.hdg.krylov import Gmres
from dgbook.hdg.solver import direct
from dgbook.mesh import box


@pytest.mark.parametrize(
    ("preconditioner", "single"), [("schwarz", False), ("jacobi", False), ("jacobi", True)]
)
def test_a_trace_system(preconditioner, single):
    """Rows of one block, too, go through the kernels; float32 inside, float64 outside."""
    problem = hdg.Poisson(lambda x, y: [1 + x], lambda x, y: [x * y])
    system = hdg.assemble(problem, box((2, 1)), 1)
    tolerance = 1e-9
    linear = Gmres("simulator", preconditioner, single, tolerance=tolerance)
    x = linear(system.matrix, system.rhs)
    expected = direct(system.matrix, system.rhs)
    np.testing.assert_allclose(x, expected, atol=100 * tolerance * abs(expected).max())
    on_cpu = Gmres("cpu", preconditioner, single, tolerance=tolerance)
    on_cpu(system.matrix, system.rhs)
    assert linear.solutions[0].iterations == on_cpu.solutions[0].iterations > 1
