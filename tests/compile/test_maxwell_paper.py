"""The paper's kernels for Maxwell's equations as machine code: no spills, no stray fp64."""

import re

import numpy as np
import pytest

from dgbook.check.compile import compile
from dgbook.maxwell.launch.paper import kernel
from dgbook.maxwell.plan import (
    HALF_WARP,
    DifferentiatePlan,
    GatherPlan,
    LiftPlan,
    PaperPlan,
    shape_of,
)

CAPABILITIES = ((7, 5), (8, 0), (9, 0))
INDICES = np.empty(1, np.uint32)
REGISTERS = {"gather": 72, "lift": 64, "differentiate": 80, "assemble": 48}


def report(name, shape, cc, *options):
    real = np.empty(1, shape.dtype)
    arguments = {
        "gather": (real, real, INDICES, INDICES, real, INDICES, real),
        "lift": (real,) * 4,
        "differentiate": (real,) * 4,
        "assemble": (real,) * 4,
    }
    return compile(kernel(name, shape, *options), arguments[name], cc)


def sample():
    """Orders, precisions and capabilities in turn: all of them for all kernels take minutes."""
    cases = [
        (name, order, dtype)
        for order in (1, 2, 3, 4, 6, 9)
        for name, dtype in (
            ("gather", "float32"),
            ("lift", "float32"),
            ("differentiate", "float32"),
            *([(n, "float64") for n in ("gather", "lift", "differentiate")] if order == 4 else ()),
        )
    ]
    cases += [("assemble", 3, "float32"), ("assemble", 2, "float64")]
    return [(*case, CAPABILITIES[i % 3]) for i, case in enumerate(cases)]


@pytest.mark.parametrize(("name", "order", "dtype", "cc"), sample())
def test_default_plans_fit_the_machine(name, order, dtype, cc):
    shape, plan = shape_of(order, dtype), PaperPlan.default(shape_of(order, dtype))
    places = 4 * shape.K_M * plan.gather.M_B
    options = {
        "gather": (-(-places // HALF_WARP) * HALF_WARP, plan.gather),
        "lift": (plan.lift,),
        "differentiate": (plan.differentiate,),
        "assemble": (),
    }
    compiled = report(name, shape, cc, *options[name])
    assert compiled.spill_bytes == compiled.stack_bytes == 0, compiled
    assert (compiled.fp64_instructions > 0) == (dtype == "float64"), compiled
    assert compiled.registers <= REGISTERS[name], compiled
    threads = 256 if name == "assemble" else block(getattr(plan, name), shape)
    assert compiled.blocks_per_multiprocessor(threads) >= 2
    if name != "assemble":
        assert compiled.shared_bytes == getattr(plan, name).shared_bytes(shape)


def block(plan, shape):
    if isinstance(plan, GatherPlan):
        return plan.w_p * shape.Nfp
    return plan.w_p * (shape.N_pM if plan.strategy == "field" else plan.N_R)


@pytest.mark.parametrize(
    ("name", "plan", "dtype", "cc"),
    [
        ("lift", LiftPlan("field", 2, 24), "float32", (7, 5)),
        ("lift", LiftPlan("matrix", 8, 4, 4), "float32", (9, 0)),
        ("lift", LiftPlan("matrix", 4, 8), "float64", (8, 0)),
        ("differentiate", DifferentiatePlan("field", 2, 8), "float32", (8, 0)),
        ("differentiate", DifferentiatePlan("field", 1, 8), "float64", (7, 5)),
        ("differentiate", DifferentiatePlan("matrix", 19, 2, 3), "float32", (7, 5)),
        ("differentiate", DifferentiatePlan("matrix", 4, 8, 2), "float32", (9, 0)),
        ("differentiate", DifferentiatePlan("matrix", 4, 8, N_R=32), "float64", (9, 0)),
    ],
)
def test_accumulators_stay_in_registers(name, plan, dtype, cc):
    """Up to the limit of `illegal`, 24 of them; (19, 2, 3) is the paper's choice at order 4."""
    shape = shape_of(4, dtype)
    assert not plan.illegal(shape)
    compiled = report(name, shape, cc, plan)
    assert compiled.spill_bytes == compiled.stack_bytes == 0, compiled
    assert (compiled.fp64_instructions > 0) == (dtype == "float64"), compiled
    assert compiled.shared_bytes == plan.shared_bytes(shape)
    assert compiled.registers <= 168
    assert compiled.blocks_per_multiprocessor(block(plan, shape)) >= 1


@pytest.mark.parametrize(
    ("kind", "name", "dtype", "wide"),
    [
        (LiftPlan, "lift", "float32", "v4.[fb]32"),
        (DifferentiatePlan, "differentiate", "float64", "v2.[fb]64"),
    ],
)
def test_values_of_inline_microblocks_come_in_wide_loads(kind, name, dtype, wide):
    """16 bytes at a time from shared memory: no value is loaded alone."""
    compiled = report(name, shape_of(4, dtype), (8, 0), kind("field", 1, 4))
    assert re.search(rf"ld\.shared\.{wide}", compiled.ptx)
    assert not re.search(r"ld\.shared\.[fb](32|64)", compiled.ptx)
