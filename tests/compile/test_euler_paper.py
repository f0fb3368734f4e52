"""The paper's kernels for the Euler equations as machine code: registers, spills, constant memory.

A thread holds a whole element: the state and the residual are 8 Np numbers, which in fp64 are 16 Np
registers of the 255 that there are. From p = 4 on they do not fit, and the volume kernel spills;
the face kernel, with 12 (p+1) numbers, does so at p = 6.
"""

import re

import numpy as np
import pytest

from dgbook.check.compile import compile
from dgbook.euler.launch.paper import kernels
from dgbook.euler.plan import PaperPlan
from dgbook.euler.tables import Tables

CAPABILITIES = ((7, 5), (8, 0), (9, 0))
REGISTERS = {  # at most, by order
    ("volume", "float32"): {2: 80, 6: 255},
    ("volume", "float64"): {3: 232, 4: 255, 6: 255},
    ("face", "float32"): {2: 104, 6: 152},
    ("face", "float64"): {3: 208, 6: 255},
    ("rhs", "float32"): {6: 128},
    ("rhs", "float64"): {6: 255},
    ("add", "float32"): {2: 40},
    ("check", "float64"): {2: 24},
}
SPILLS = {  # bytes, at most
    ("volume", "float64", 4): 200,
    ("volume", "float64", 6): 3000,
    ("face", "float64", 6): 120,
}


def report(name, order, dtype, cc, flux="roe", plan=None):
    tables = Tables(order, dtype)
    real, links = np.empty(1, dtype), np.empty(1, np.int32)
    arguments = {
        "volume": (real,) * 5,
        "face": (real, real, links, links, real, links, real, real, real),
        "add": (real, real, links, links, links, real),
        "rhs": (real,) * 4,
        "check": (real, links),
    }
    made = kernels(tables, flux, plan or PaperPlan())
    return compile(made[name], arguments[name], cc)


def sample():
    """The three capabilities in turn: all of them for all kernels take minutes."""
    cases = [(*key, p) for key, orders in REGISTERS.items() for p in orders]
    return [(*case, CAPABILITIES[i % 3]) for i, case in enumerate(cases)]


@pytest.mark.parametrize(("name", "dtype", "order", "cc"), sample())
def test_the_papers_plan_fits_the_machine(name, dtype, order, cc):
    compiled = report(name, order, dtype, cc)
    assert compiled.registers <= REGISTERS[name, dtype][order], compiled
    assert compiled.spill_bytes <= SPILLS.get((name, dtype, order), 0), compiled
    assert (compiled.spill_bytes > 0) == ((name, dtype, order) in SPILLS), compiled
    assert compiled.stack_bytes <= compiled.spill_bytes, "all arrays are in registers, or spilled"
    assert (compiled.fp64_instructions > 0) == (dtype == "float64"), compiled
    assert compiled.shared_bytes == 0


@pytest.mark.parametrize("flux", ["rusanov", "hllc"])
def test_the_other_fluxes_compute_in_their_precision(flux):
    compiled = report("face", 2, "float32", (9, 0), flux)
    assert compiled.fp64_instructions == compiled.spill_bytes == compiled.stack_bytes == 0
    assert compiled.registers <= 104


def test_tables_lie_in_constant_memory_or_not():
    """phi and two derivatives at 12 points of 10 functions each."""
    constant = report("volume", 3, "float32", (8, 0))
    assert constant.constant_bytes == 4 * 3 * 12 * 10
    assert len(re.findall(r"ld\.const", constant.ptx)) == 3 * 10
    plain = report("volume", 3, "float32", (8, 0), plan=PaperPlan(tables="global"))
    assert plain.constant_bytes == 0 and "ld.const" not in plain.ptx
    assert plain.spill_bytes == plain.stack_bytes == 0


def test_atomic_additions_are_atomic():
    """2 x 4 fields x 3 nodes of an edge; none where left and right are stored apart."""
    plan = PaperPlan(race="atomic", concurrent=False)
    compiled = report("face", 2, "float32", (8, 0), plan=plan)
    assert len(re.findall(r"(?:atom|red)\S*\.add\.f32", compiled.ptx)) == 24
    assert not re.search(r"\b(?:atom|red)\.", report("face", 2, "float32", (8, 0)).ptx)


@pytest.mark.parametrize(
    ("threads", "limit", "most"),
    [(512, None, 128), (512, 200, 128), (256, None, 255), (32, 64, 64)],
)
def test_registers_are_limited(threads, limit, most):
    """By the plan, and so that a block of 512 threads can be launched."""
    plan = PaperPlan(threads=threads, max_registers=limit)
    compiled = report("face", 2, "float64", (9, 0), plan=plan)
    assert compiled.registers <= most
    assert (compiled.spill_bytes > 0) == (most < 170)
    assert compiled.blocks_per_multiprocessor(threads) >= 1
