"""The fused Maxwell kernels as machine code: registers, spills, products, no stray fp64."""

import re

import numpy as np
import pytest

from dgbook.check.compile import compile
from dgbook.gpu.plan import shipped
from dgbook.maxwell.launch.fused import kernel
from dgbook.maxwell.plan import FusedShape
from dgbook.nodal.fused import FusedPlan

CAPABILITIES = ((7, 5), (8, 0), (9, 0))
INDICES = np.empty(1, np.uint32)

# Bytes stored and loaded by a thread: where blocks as large as the register file are the fastest,
# tensor kernels keep some numbers in local memory; in fp32 sums of products want registers, too.
FEW = {"float32": 352, "float64": 128}


def report(order, dtype, cc, language, materials=False, plan=None, factored=False):
    """The plan chosen for a device of that capability, its shape, and what the compiler says."""
    shape = FusedShape(order, dtype, materials)
    plan = plan or shipped(FusedPlan, FusedShape(order, dtype, True), cc, language)
    real, s = np.empty(1, dtype), np.dtype(dtype).type(1)
    i = INDICES
    signature = (real, real, i, i, real, i, *(real,) * 6, s, s, s, np.uint32(0))
    return plan, shape, compile(kernel(shape, plan, factored), signature, cc)


def sample():
    """Capabilities in turn: all of them for all orders take minutes."""
    cases = [(order, "float32", "cuda") for order in range(1, 10)]
    cases += [(order, "float64", "cuda") for order in (1, 3, 5, 8)]
    cases += [(2, "float32", "numba"), (6, "float64", "numba")]
    return [(*case, CAPABILITIES[(i + i // 9) % 3]) for i, case in enumerate(cases)]


@pytest.mark.parametrize(("order", "dtype", "language", "cc"), sample())
def test_kernels_fit_the_machine(order, dtype, language, cc):
    plan, shape, found = report(order, dtype, cc, language, materials=order % 2 == 0)
    assert plan.tensor == (cc >= (8, 0) and language == "cuda" and (order, dtype) not in PLAIN)
    assert found.spill_bytes <= (FEW[dtype] if plan.tensor else 0), found
    assert found.stack_bytes <= (FEW[dtype] if plan.tensor else 0), found
    if dtype == "float32":
        assert found.fp64_instructions == 0, found
    block = plan.block(shape)
    dynamic = shape.shared_bytes(plan) if language == "cuda" else 0
    resident = found.blocks_per_multiprocessor(block, dynamic)
    assert resident >= (plan.blocks if cc == (9, 0) else 1), found
    if language == "numba":
        assert found.shared_bytes == shape.shared_bytes(plan)


@pytest.mark.parametrize(
    ("order", "dtype", "language"),
    [(3, "float32", "cuda"), (5, "float64", "cuda"), (2, "float32", "numba")],
)
def test_factors_need_no_more_of_the_machine(order, dtype, language):
    """The kernel for stages of a factored method, beside that of the low-storage form."""
    cc = (9, 0)
    plan, shape, low = report(order, dtype, cc, language)
    _, _, found = report(order, dtype, cc, language, factored=True)
    block = plan.block(shape)
    dynamic = shape.shared_bytes(plan) if language == "cuda" else 0
    resident = [one.blocks_per_multiprocessor(block, dynamic) for one in (low, found)]
    assert resident[1] >= resident[0]
    assert found.spill_bytes <= low.spill_bytes and found.stack_bytes <= low.stack_bytes
    assert (found.fp64_instructions > 0) == (dtype == "float64"), found


PLAIN = {(1, "float32"), (2, "float32"), (3, "float32")}  # where tensor cores do not pay


@pytest.mark.parametrize(
    ("dtype", "cc", "instruction", "each"),
    [
        ("float32", (8, 0), "m16n8k8", 3),
        ("float64", (8, 0), "m8n8k4", 1),
        ("float64", (9, 0), "m16n8k4", 0.5),  # E and H in one
    ],
)
def test_products_are_those_of_the_algebra(dtype, cc, instruction, each):
    """12 products with an entry of D and 8 with an entry of LIFT; three for each of fp32."""
    plan, _, found = report(4, dtype, cc, "cuda")
    count = len(re.findall(rf"mma\.sync\.\S*{instruction}", found.ptx))
    inner = plan.nodes_inline * each
    # Loops may be unrolled: whole multiples of 12 in the volume, of 2 for each of 4 faces.
    assert count > 0 and count % inner == 0
    assert count / inner >= 12 + 4 * 2


def test_the_plain_kernel_multiplies_no_more_than_the_algebra():
    """12 fused multiply-adds a node, element and column, not 18."""
    plain = shipped(FusedPlan, FusedShape(7, "float32", True))
    plan, _, found = report(7, "float32", (7, 5), "cuda", plan=plain)
    assert not plan.tensor
    pairs = plan.nodes_inline * plan.elements_inline
    volume = 2 * plan.unroll * 12 * pairs
    assert volume <= found.ptx.count("fma.rn.f32") < 18 * 2 * plan.unroll * pairs
