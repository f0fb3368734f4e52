"""The nodal kernels of acoustics as machine code: no spills, no stray fp64, wide loads."""

import re

import numpy as np
import pytest

from dgbook.acoustics.launch.nodal import kernels
from dgbook.acoustics.plan import ElementPlan, NodePlan, Shape
from dgbook.lab.rivals.combine import make_combine

INDICES = np.empty(1, np.uint32)
# That of the surface kernel is what cc 7.5 takes at order 2, elsewhere it is half as many.
REGISTERS = {
    "node": {"volume": 72, "surface": 128},
    "element": {"volume": 128, "flux": 32, "lift": 96},
}
KERNELS = [(threads, name) for threads, names in REGISTERS.items() for name in names]


def report(held, name, order, plan, dtype):
    real = np.empty(1, dtype)
    traces = (real, real, INDICES, INDICES, INDICES, real, real)
    signatures = {
        "volume": (real,) * 5,
        "surface": (*traces, real, real),
        "flux": (*traces, real),
        "lift": (real,) * 3,
    }
    return held(kernels(Shape(order, dtype), plan)[name], signatures[name], dtype)


def sample():
    """The newest capability for all, and one of the older two in turn."""
    orders = [(2, "float32"), (7, "float32"), (4, "float64")]
    cases = [(*kernel, *order) for kernel in KERNELS for order in orders]
    turns = [(*case, ((8, 0), (7, 5))[i % 2]) for i, case in enumerate(cases)]
    return turns + [(*case, (9, 0)) for case in cases]


@pytest.mark.parametrize(("threads", "name", "order", "dtype", "cc"), sample(), indirect=["cc"])
def test_default_plans_fit_the_machine(threads, name, order, dtype, held):
    """Four fields of a node, or two or four rows of a column, come from shared memory at once."""
    shape = Shape(order, dtype)
    plan = (NodePlan if threads == "node" else ElementPlan).default(Shape(order, dtype))
    compiled = report(held, name, order, plan, dtype)
    assert (compiled.fp64_instructions > 0) == (dtype == "float64")
    assert compiled.registers <= REGISTERS[threads][name], compiled
    assert compiled.shared_bytes == plan.shared_bytes(shape).get(name, 0)
    block = plan.block(shape)[name]
    assert compiled.blocks_per_multiprocessor(block) * block >= 480
    wide = r"ld\.shared\.v4\.[fb]32" if dtype == "float32" else r"ld\.shared\.v2\.[fb]64"
    assert bool(re.search(wide, compiled.ptx)) == (name != "flux")
    assert not re.search(r"ld\.shared\.[fb](32|64)", compiled.ptx), "a word loaded alone"


@pytest.mark.parametrize("name", ["volume", "lift"])
def test_as_many_accumulators_as_a_plan_may_have_stay_in_registers(name, held):
    """96 of fp64: 8 rows of D, or 24 of the lift."""
    plan = ElementPlan(64, 64, 1, 8, 24)
    assert not plan.illegal(Shape(4, "float64"))
    compiled = report(held, name, 4, plan, "float64")
    assert compiled.blocks_per_multiprocessor(64) >= 3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_left_beside_matrix_products_is_small(dtype, held):
    """The kernel of `dgbook.lab.rivals.acoustics.ProductStage`."""
    real, scalar = np.empty(1, dtype), np.dtype(dtype).type(0)
    compiled = held(make_combine(Shape(3, dtype)), (real,) * 6 + (scalar,) * 3, dtype)
    assert (compiled.fp64_instructions > 0) == (dtype == "float64")
    assert compiled.registers <= 64 and compiled.shared_bytes == 0
