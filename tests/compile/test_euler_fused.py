"""The fused Euler kernels as machine code: registers, spills, products, no stray fp64."""

import re

import numpy as np
import pytest

from dgbook.check.compile import compile
from dgbook.euler.launch.fused import kernel
from dgbook.euler.plan import FusedPlan, FusedShape
from dgbook.gpu.plan import shipped

CAPABILITIES = ((7, 5), (8, 0), (9, 0))

# Bytes stored and loaded where the sums do not fit, or where a few bytes buy another block.
SPILLED = {
    ("cuda", 4, "float32"): 32,
    ("cuda", 6, "float32"): 32,
    ("numba", 5, "float64"): 160,
    ("numba", 6, "float64"): 2200,
}


def report(order, dtype, cc, language="cuda", plan=None, flux="roe"):
    """The default plan, and what the compiler says."""
    plan = plan or shipped(FusedPlan, FusedShape(order, dtype), cc, language)
    real, number = np.empty(1, dtype), np.dtype(dtype).type(1)
    indices, names = np.empty(1, np.uint32), np.empty(1, np.int32)
    arrays = (real, real, indices, real, names, real, real, real, real, names)
    signature = (*arrays, np.uint32(1), np.uint32(1), np.int32(1), number, np.uint32(0))
    return plan, compile(kernel(FusedShape(order, dtype, flux), plan), signature, cc)


def sample():
    """Capabilities in turn: all of them for all orders take minutes."""
    cases = [(order, dtype, "cuda") for order in range(1, 7) for dtype in ("float32", "float64")]
    cases += [(3, "float32", "numba"), (4, "float64", "numba")]
    turns = ((*case, CAPABILITIES[(i + i // 6) % 3]) for i, case in enumerate(cases))
    return [*turns, (3, "float32", "cuda", (9, 0)), (3, "float64", "cuda", (9, 0))]


@pytest.mark.parametrize(("order", "dtype", "language", "cc"), sample())
def test_kernels_fit_the_machine(order, dtype, language, cc):
    plan, found = report(order, dtype, cc, language)
    allowed = SPILLED.get((language, order, dtype), 0)
    assert found.spill_bytes <= allowed, found
    assert found.stack_bytes <= allowed, found
    if dtype == "float32":
        assert found.fp64_instructions == 0, found
    assert found.shared_bytes == plan.shared_bytes(FusedShape(order, dtype))
    assert found.constant_bytes < 2**16
    resident = found.blocks_per_multiprocessor(plan.threads)
    assert resident >= (plan.blocks if cc == (9, 0) else 1), found


@pytest.mark.parametrize(("flux", "spilled"), [("rusanov", 0), ("hllc", 128)])
def test_the_other_fluxes(flux, spilled):
    """HLLC needs both sides to the end, and keeps some of it in local memory."""
    _, found = report(3, "float32", (9, 0), flux=flux)
    assert found.spill_bytes <= spilled, found
    assert found.fp64_instructions == 0, found


def test_the_products_are_those_of_the_algebra():
    """12 a point and node in the triangle; 8 a node and 4 a node of the element at an edge."""
    plan, found = report(3, "float32", (9, 0), plan=FusedPlan("cuda", 64, 10, 4))
    products = plan.points * 12 * 10 + 8 * 4 + 4 * 10
    count = found.ptx.count("fma.rn.f32")
    fluxes = 15 * plan.points + 60  # of points in the triangle, and Roe's
    assert products < count < products + fluxes + 3 * 40  # and the last update


def test_no_division_and_no_root_but_one_instruction_each():
    """Four for Roe's flux, one for a point in the triangle, one for a normal."""
    plan, found = report(3, "float64", (9, 0), plan=FusedPlan("cuda", 64, 6, 3))
    seeds = re.findall(r"(rcp|rsqrt)\.approx\.ftz\.f64", found.ptx)
    assert len(seeds) == 4 + plan.points + 1
    assert not re.search(r"(div|sqrt)\.rn|call", found.ptx)


def test_without_shared_memory_the_state_stays_in_registers():
    plan = FusedPlan("cuda", 128, 3, 2, shared=False)
    _, found = report(3, "float32", (9, 0), plan=plan)
    assert found.spill_bytes == found.stack_bytes == found.shared_bytes == 0, found


def test_two_passes_hold_half_the_sums():
    counts = []
    for passes in (1, 2):
        plan = FusedPlan("cuda", 32, 1, 1, passes=passes)
        counts.append(report(5, "float32", (9, 0), plan=plan)[1].registers)
    assert counts[1] < counts[0] - 4 * 10


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_copied_matrices_are_loaded_16_bytes_at_a_time(dtype):
    plan = FusedPlan("cuda", 32, 4, 2, copied=True)
    _, found = report(3, dtype, (9, 0), plan=plan)
    assert found.spill_bytes == 0, found
    assert found.shared_bytes == plan.shared_bytes(FusedShape(3, dtype))
    vectors = re.findall(r"ld\.shared\.(v4\.f32|v4\.b32|v2\.f64|v2\.b64)", found.ptx)
    assert len(vectors) >= plan.points * 3 * 10 * np.dtype(dtype).itemsize // 16
