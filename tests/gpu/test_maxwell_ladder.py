"""Each rung of the ladder on a device: the stage that it is timed with is right."""

import numpy as np
import pytest

from dgbook.gpu import device
from dgbook.lab import ladder
from dgbook.lab import maxwell as measure
from dgbook.maxwell import reference

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ladder.ORDERS)
def test_every_rung(order, dtype):
    operator = measure.operator_on(measure.cube(4), order, dtype)
    exact = measure.operator_on(operator.mesh, order, "float64")
    u = measure.noise(operator)
    truth = reference.rhs(exact, u.astype(np.float64))
    tensor = measure.best_tensor_plan(operator, GPU)
    for rung in ladder.rungs(order, dtype, GPU, tensor):
        launcher = rung.on(ladder.LAYOUTS[rung.layout](operator, GPU))
        out = launcher.zeros()
        launcher.rhs(launcher.upload(u), measure.no_data(launcher), out)
        error = np.abs(launcher.download(out) - truth).max() / np.abs(truth).max()
        assert error < 60 * np.finfo(dtype).eps, rung.name
