"""The kernel of local time steps as machine code: no spills, no stray fp64."""

import numpy as np
import pytest

from dgbook.acoustics.launch import fused as acoustics
from dgbook.acoustics.plan import Shape
from dgbook.maxwell.launch import fused as maxwell
from dgbook.maxwell.plan import FusedShape
from dgbook.nodal.local_device import usual_plan


@pytest.mark.parametrize(
    ("family", "kind", "order", "dtype"),
    [(maxwell, FusedShape, 3, "float32"), (acoustics, Shape, 2, "float64")],
)
def test_the_kernel_fits_the_machine(family, kind, order, dtype, held):
    shape = kind(order, dtype)
    plan = usual_plan(shape, "numba")
    n, i, x = np.uint32(1), np.empty(1, np.uint32), np.empty(1, dtype)
    signature = (*[n] * 5, *[x] * 4, *[i] * 5, x, i, *[x] * 6)
    report = held(family.local_kernel(shape, plan), signature, dtype)
    assert report.shared_bytes == 2 * plan.rows * shape.fields * shape.Np * shape.itemsize
    assert report.blocks_per_multiprocessor(plan.block(shape)) >= 3
