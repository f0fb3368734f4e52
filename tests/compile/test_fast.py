"""Functions that a GPU has an instruction for: that it is what comes out."""

import numpy as np
import pytest

from dgbook.gpu import jit
from dgbook.gpu.fast import make_divide, make_rsqrt


@pytest.mark.parametrize(("real", "root", "quotient"), [
    (np.float32, "rsqrt.approx", "div.approx"),
    (np.float64, "rsqrt.approx.ftz.f64", "rcp.approx.ftz.f64"),
])  # fmt: skip
def test_instructions(real, root, quotient, held):
    rsqrt, divide = make_rsqrt(real), make_divide(real)

    @jit
    def both(x):
        x[0], x[1] = rsqrt(x[0]), divide(x[0], x[1])

    ptx = held(both, (np.empty(1, real),), np.dtype(real).name).ptx
    assert ptx.count(root) == ptx.count(quotient) == 1
    assert "bra" not in ptx and "call" not in ptx and "div.rn" not in ptx
