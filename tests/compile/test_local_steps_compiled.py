"""The kernels of local time steps as machine code: spills that pay at most, no stray fp64."""

import numpy as np
import pytest

from dgbook.acoustics.launch import fused as acoustics
from dgbook.acoustics.plan import Shape
from dgbook.check.compile import compile
from dgbook.maxwell.launch import fused as maxwell
from dgbook.maxwell.plan import LocalShape
from dgbook.nodal.local_device import usual_plan


@pytest.mark.parametrize(
    ("family", "shape", "language", "cc", "spilled"),
    [
        (maxwell, LocalShape(2, "float32", materials=True), "cuda", (9, 0), 128),
        (maxwell, LocalShape(3, "float32", materials=True), "cuda", (9, 0), 0),
        (maxwell, LocalShape(3, "float64", materials=True), "cuda", (9, 0), 576),
        (maxwell, LocalShape(4, "float64", materials=True), "cuda", (8, 0), 0),
        (maxwell, LocalShape(3, "float32", materials=True), "numba", (7, 5), 0),
        (acoustics, Shape(2, "float32"), "numba", (9, 0), 0),
    ],
)
def test_the_kernel_fits_the_machine(family, shape, language, cc, spilled):
    """Up to what was the fastest on a device, see `THREAD_REGISTERS`."""
    plan = usual_plan(shape, language)
    n, i, x = np.uint32(1), np.empty(1, np.uint32), np.empty(1, shape.dtype)
    signature = (*[n] * 5, *[x] * 4, *[i] * 5, x, i, *[x] * 6) if language == "numba" else ()
    report = compile(family.local_kernel(shape, plan), signature, cc)
    assert report.spill_bytes <= spilled, report
    assert report.stack_bytes == 0 or spilled, report
    if shape.dtype == "float32":
        assert report.fp64_instructions == 0, report
    shared = shape.shared_bytes(plan) if language == "cuda" else 0
    resident = report.blocks_per_multiprocessor(plan.block(shape), shared)
    assert resident >= (plan.blocks if cc >= (8, 0) else 1), report
