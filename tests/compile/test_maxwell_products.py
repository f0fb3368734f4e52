"""Other ways to multiply on tensor cores, to compare with: their products and additions."""

import re

import numpy as np
import pytest

from dgbook.check.compile import compile
from dgbook.gpu.plan import shipped
from dgbook.lab.maxwell import PRODUCTS, EditedKernel
from dgbook.maxwell.launch.fused import kernel
from dgbook.maxwell.plan import FusedShape
from dgbook.nodal.fused import FusedPlan

ORDER, CAPABILITY = 5, (9, 0)


@pytest.fixture(scope="module")
def counted():
    """The plan, and by the way to multiply products on tensor cores and additions in PTX."""
    shape, plan = (
        FusedShape(ORDER, "float32"),
        shipped(FusedPlan, FusedShape(ORDER, "float32", True), CAPABILITY),
    )
    real, index, scalar = np.empty(1, "float32"), np.empty(1, np.uint32), np.float32(1)
    signature = (real, real, index, index, real, index, *(real,) * 6, *(scalar,) * 3)
    found = {}
    for name, edits in PRODUCTS.items():
        edited = EditedKernel(kernel(shape, plan), edits)
        ptx = compile(edited, signature, CAPABILITY).ptx
        found[name] = [
            len(re.findall(words, ptx)) for words in (r"mma\.sync", r"(?:add|sub)\.\S*f32")
        ]
    return plan, found


def test_a_third_of_the_products_is_left_of_three(counted):
    _, found = counted
    one, cut_off, rounded = (found[name][0] for name in PRODUCTS)
    assert 3 * one == cut_off == rounded > 0


def test_sums_are_rounded_by_four_additions_a_product_of_the_volume(counted):
    """A lane has 2 x 2 of the 16 x 8 sums of each of 12 products of a tile; the lift's stay."""
    plan, found = counted
    more = found["three, rounded"][1] - found["three, cut off"][1]
    assert more == 4 * 12 * plan.nodes_inline * plan.unroll


def test_what_is_not_there_cannot_be_replaced():
    shape, plan = (
        FusedShape(ORDER, "float32"),
        shipped(FusedPlan, FusedShape(ORDER, "float32", True), CAPABILITY),
    )
    with pytest.raises(ValueError, match="unpack"):
        _ = EditedKernel(kernel(shape, plan), (("no such line", ""),)).code
