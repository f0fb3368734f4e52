"""How exact each way to multiply fp32 on tensor cores is, as the record maxwell/error has it."""

import pytest

from dgbook.gpu import device
from dgbook.gpu.plan import shipped
from dgbook.lab import maxwell as measure
from dgbook.maxwell.plan import FusedShape
from dgbook.nodal.fused import TENSOR_PAYS, FusedPlan

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)
ORDER = 9  # the longest sums


@pytest.fixture(scope="module")
def errors():
    """By the way to multiply, "error" and "bias"."""
    tensor = shipped(FusedPlan, FusedShape(ORDER, "float32", True), GPU.compute_capability)
    if GPU.compute_capability not in TENSOR_PAYS or not tensor.tensor:
        pytest.skip("no plan for tensor cores in fp32 here")
    launcher = measure.FusedLauncher(
        measure.operator_on(measure.cube(2), ORDER, "float32"), GPU, tensor
    )
    own, found = launcher.kernel, {}
    for name, edits in measure.PRODUCTS.items():
        launcher.kernel = measure.EditedKernel(own, edits)
        found[name] = measure.stage_error(launcher)
    return found


def test_parts_bring_eleven_bits_back(errors):
    """One product keeps 11 bits of 24; some are lost to sums by either."""
    assert errors["one product"]["error"] > 200 * errors["three, rounded"]["error"]


def test_sums_left_in_tensor_cores_are_too_small(errors):
    """They are cut off 28 x 3 times, each time by up to 2^-23 of themselves, never upward."""
    cut_off, rounded = (errors[name]["bias"] for name in ("three, cut off", "three, rounded"))
    assert -28 * 3 * 2**-23 < cut_off < 4 * rounded < 0
