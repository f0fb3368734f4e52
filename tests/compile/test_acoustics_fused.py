"""The fused nodal kernels of acoustics as machine code: registers, spills, products, no fp64."""

import re
from dataclasses import replace

import numpy as np
import pytest

from dgbook.acoustics.launch.fused import kernel
from dgbook.acoustics.plan import Shape
from dgbook.check.compile import compile
from dgbook.gpu.plan import shipped
from dgbook.nodal.fused import FusedPlan

INDICES = np.empty(1, np.uint32)

# Bytes stored and loaded by a thread: where many resident warps are the fastest, the compiler
# keeps some addresses in local memory.
FEW = 160
PLAIN = {(1, "float32"), (2, "float32"), (3, "float32")}  # where tensor cores do not pay


def report(order, dtype, cc, language, factored=False):
    """The plan chosen for a device of that capability, its shape, and what the compiler says."""
    shape, plan = Shape(order, dtype), shipped(FusedPlan, Shape(order, dtype), cc, language)
    real, s = np.empty(1, dtype), np.dtype(dtype).type(1)
    i = INDICES
    signature = (real, real, i, i, i, *(real,) * 6, s, s, s, np.uint32(0))
    return plan, shape, compile(kernel(shape, plan, factored), signature, cc)


def sample():
    cases = [(order, "float32", "cuda", (9, 0)) for order in range(1, 10)]
    cases += [(order, "float64", "cuda", (9, 0)) for order in (1, 4, 7, 9)]
    cases += [(order, "float32", "cuda", (7, 5)) for order in (3, 6)]
    cases += [(5, "float64", "cuda", (8, 0))]
    return [*cases, (2, "float32", "numba", (9, 0))]


@pytest.mark.parametrize(("order", "dtype", "language", "cc"), sample())
def test_kernels_fit_the_machine(order, dtype, language, cc):
    plan, shape, found = report(order, dtype, cc, language)
    assert plan.tensor == (cc >= (8, 0) and language == "cuda" and (order, dtype) not in PLAIN)
    assert found.spill_bytes <= (FEW if plan.tensor else 0), found
    assert found.stack_bytes <= (FEW if plan.tensor else 0), found
    if dtype == "float32":
        assert found.fp64_instructions == 0, found
    dynamic = shape.shared_bytes(plan) if language == "cuda" else 0
    resident = found.blocks_per_multiprocessor(plan.block(shape), dynamic)
    assert resident >= (plan.blocks if cc == (9, 0) else 1), found
    if language == "numba":
        assert found.shared_bytes == shape.shared_bytes(plan)


@pytest.mark.parametrize(("order", "dtype"), [(3, "float32"), (5, "float64")])
def test_factors_need_no_more_of_the_machine(order, dtype):
    """The kernel for stages of a factored method, beside that of the low-storage form."""
    (plan, shape, low), (_, _, found) = (
        report(order, dtype, (9, 0), "cuda", factored) for factored in (False, True)
    )
    block, dynamic = plan.block(shape), shape.shared_bytes(plan)
    resident = [one.blocks_per_multiprocessor(block, dynamic) for one in (low, found)]
    assert resident[1] >= resident[0]
    assert found.spill_bytes <= low.spill_bytes and found.stack_bytes <= low.stack_bytes


@pytest.mark.parametrize(
    ("dtype", "cc", "instruction", "volume", "face"),
    [
        ("float32", (9, 0), "m16n8k8", 6 * 3, 3),
        ("float64", (8, 0), "m8n8k4", 6, 2),
        ("float64", (9, 0), "m16n8k4", 3, 1),  # p and W together
    ],
)
def test_products_are_those_of_the_algebra(dtype, cc, instruction, volume, face):
    """6 products with an entry of D and one with an entry of LIFT; three for each of fp32."""
    shape, plan = Shape(4, dtype), shipped(FusedPlan, Shape(4, dtype), cc)
    compiled = compile(kernel(shape, replace(plan, nodes_inline=1, unroll=1)), (), cc)
    count = len(re.findall(rf"mma\.sync\.\S*{instruction}", compiled.ptx))
    assert count == volume + 4 * face


def test_the_plain_kernel_multiplies_no_more_than_the_algebra():
    """Of two columns 6 fused multiply-adds each with D and, of each face, one with LIFT."""
    shape, plan = Shape(7, "float32"), shipped(FusedPlan, Shape(7, "float32"))
    assert not plan.tensor
    once, twice = (
        compile(kernel(shape, replace(plan, unroll=n)), (), (7, 5)).ptx.count("fma.rn.f32")
        for n in (1, 2)
    )
    assert twice - once == 2 * (6 + 4) * plan.nodes_inline * plan.elements_inline
