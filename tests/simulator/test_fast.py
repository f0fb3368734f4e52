"""Functions that a GPU has an instruction for: what the simulator takes for them."""

import numpy as np
import pytest

from dgbook.gpu import device, jit
from dgbook.gpu.fast import make_divide, make_rsqrt

SIMULATOR = device("simulator")


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_the_simulator_computes_the_formula(real):
    rsqrt, divide = make_rsqrt(real), make_divide(real)

    @jit
    def both(x, y, z):
        y[0], z[0] = rsqrt(x[0]), divide(x[0], x[1])

    x, y, z = np.array([3, 7], real), SIMULATOR.empty(1, real), SIMULATOR.empty(1, real)
    both[1, 1](x, y, z)
    assert y[0] == real(1) / np.sqrt(real(3)) and z[0] == real(3) / real(7)


def test_blocks_that_run_together_are_all_in_the_simulator():
    @jit
    def nothing(x):
        x[0] = x[0]

    assert nothing.together(7, 32, np.zeros(1)) == 7
