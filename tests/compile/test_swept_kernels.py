"""The swept family's kernels as machine code: no stray fp64, spills or calls; the right memory."""

import inspect
import re
from dataclasses import replace

import numpy as np
import pytest

from dgbook.check.compile import compile
from dgbook.gpu import cuda, jit
from dgbook.swept.arithmetic import CORES, GPU
from dgbook.swept.kernels.shared import make_diamond, make_down
from dgbook.swept.plan import Plan, Shape
from dgbook.swept.point import make_access, make_neighbors
from dgbook.swept.problem import PROBLEMS, as_problem
from dgbook.swept.solver import (
    classic_kernels,
    kernels_of,
    persistent_kernel,
    range_kernels,
    register_kernels,
    swept_kernels,
    tiled_kernel,
)

F32 = np.empty(1, np.float32)
# Registers on the worst of the three compute capabilities, with some to spare for other compilers.
MOST = {
    ("heat", "float32"): (24, 32, 40),
    ("heat", "float64"): (32, 40, 48),
    ("ks", "float32"): (32, 40, 48),
    ("ks", "float64"): (40, 48, 56),
    ("euler", "float32"): (64, 64, 80),
    ("euler", "float64"): (80, 80, 112),
}


SUMMED = {"ld", "shfl", "add", "sub", "fma"}
"""What a sum may have for operands."""
PASSED_ON = {"mov", "selp", "neg", "abs", "min", "max", "cvt", "bfi"}
"""Instructions whose result is one of their operands, or made of two halves."""


def contractible(ptx):
    """Sums in PTX of which an operand may be a product or a quotient.

    NVVM and ptxas may fuse these, or not: which they do depends on all that a kernel does. Explicit
    instructions fma.rn are as they are.
    """
    made = {}
    for code, operands in re.findall(r"^\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)\s+(.*);", ptx, re.M):
        results = re.match(r"{[^}]*}|[^,]*", operands)[0]
        of = re.findall(r"%[rf]\w*", operands[len(results) :])
        for register in re.findall(r"%[rf]\w*", results):
            made.setdefault(register, []).append((code, of))

    def origins(register, seen):
        """Instructions that made it, not counting those that only passed it on."""
        if register in seen:
            return set()
        seen.add(register)
        found = set()
        for code, of in made[register]:
            name = code.split(".")[0]
            passed = [origins(other, seen) for other in of] if name in PASSED_ON else [{name}]
            found = found.union(*passed)
        return found

    sums = [
        (code, of)
        for instructions in made.values()
        for code, of in instructions
        if re.match(r"(?:add|sub)\.f(?:tz\.f)?(?:32|64)", code)
    ]
    return [(code, of) for code, of in sums if any(origins(o, set()) - SUMMED for o in of)]


def within(held, kernel, arrays, dtype, most, *numbers):
    """A kernel that fits, and computes the same bits as all others, whatever fuses what."""
    report = held(kernel, (np.empty(1, dtype),) * arrays + numbers, dtype)
    assert report.registers <= most, report
    assert not contractible(report.ptx)
    assert not re.search(r"\bcall\b", report.ptx), "device functions are not inlined"
    if dtype == "float64":
        assert report.fp64_instructions > 0
    return report


# All on the newest. The older ones meet every problem between them, in either precision.
CASES = [(name, dtype) for name in PROBLEMS for dtype in ("float32", "float64")]
NEWEST = [(*case, (9, 0)) for case in CASES]
OLDER = [(*CASES[0], (7, 5)), (*CASES[3], (8, 0)), (*CASES[4], (7, 5))]


@pytest.mark.parametrize(("name", "dtype", "cc"), NEWEST + OLDER)
def test_kernels_fit_the_machine(name, dtype, cc, held):
    """The triangles are parts of the diamond: it is enough to see them once."""
    problem, (classic, swept, register) = as_problem(name), MOST[name, dtype]
    within(held, classic_kernels(problem, dtype)[-1], 2, dtype, classic)
    kernels = swept_kernels(problem, 128, dtype)
    reports = [within(held, kernels["diamond", True], 4, dtype, swept)]
    if cc == (9, 0):
        reports += [
            within(held, kernels["up"], 3, dtype, swept),
            within(held, kernels["down", False], 3, dtype, swept),
        ]
    memory = Plan(128).shared_bytes(Shape(problem, "shared", 2**12, dtype))
    assert {report.shared_bytes for report in reports} == {memory}
    kernels = register_kernels(problem, dtype)
    report = within(held, kernels["diamond", False], 4, dtype, register)
    assert report.shared_bytes == 0
    assert "shfl.sync" in report.ptx


# Registers of rows of Classic, tiles, Register and Shared with 4 points a thread; with 2 of Euler
# in fp64.
MOST_WIDE = {
    ("ks", "float64"): (48, 56, 72, 80),
    ("euler", "float32"): (72, 88, 112, 136),
    ("euler", "float64"): (88, 128, 136, 176),
}

# With several points a thread they take long: those that need most registers, on the newest alone.
WIDE = [case for case in NEWEST if case[:2] in MOST_WIDE]


def sums(report, dtype, points):
    """How many fused operations and how many single sums a point has in compiled code."""
    bits = 8 * np.dtype(dtype).itemsize
    found = (rf"\bfma\.rn\.f{bits}", rf"\b(?:add|sub)(?:\.rn)?\.f{bits}")
    return [len(re.findall(what, report.ptx)) / points for what in found]


@pytest.mark.parametrize(("name", "dtype", "cc"), WIDE)
def test_several_points_a_thread_stay_in_registers(name, dtype, cc, held):
    """Of the swept kernels the diamond, the largest; a level has the sums of Classic's substep."""
    problem, most = as_problem(name), MOST_WIDE[name, dtype]
    points = 2 if (name, dtype) == ("euler", "float64") else 4
    plan = Plan(128, points, 4)
    row = within(held, classic_kernels(problem, dtype, points)[-1], 2, dtype, most[0])
    for scheme, limit in zip(("register", "shared"), most[2:], strict=True):
        diamond = kernels_of(problem, scheme, plan, dtype)["diamond", True]
        report = within(held, diamond, 4, dtype, limit)
        assert report.shared_bytes == plan.shared_bytes(Shape(problem, scheme, 2**12, dtype))
        # An odd and an even level. (A row of Euler's does one or other twice: at ends, and not.)
        level = sums(report, dtype, 2 * points)
        for mine, classic in zip(level, sums(row, dtype, points), strict=True):
            assert mine <= classic <= mine + 1 / points, scheme
    if not problem.faces:
        single = within(held, classic_kernels(problem, dtype)[-1], 2, dtype, most[0])
        assert sums(single, dtype, 1) == sums(row, dtype, points)
    of_a_range = range_kernels(problem, dtype, points)[-1]
    within(held, of_a_range, 2, dtype, most[0], np.int32(0), np.int32(1))
    report = within(held, tiled_kernel(problem, plan, dtype), 2, dtype, most[1])
    assert report.shared_bytes == plan.shared_bytes(Shape(problem, "tiled", 2**12, dtype))


@pytest.mark.parametrize("points", [1, 4])
def test_a_grid_barrier_in_a_loop_compiles(points, cc, held):
    one = np.empty(1, np.float32)
    report = held(persistent_kernel(as_problem("ks"), points, "float32"), (one, one, np.int32(1)))
    assert report.registers <= 64 and ".extern .func" in report.ptx
    assert not contractible(report.ptx)


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_what_a_compiler_may_fuse_is_seen(real):
    """Either of two products, or one that was selected; not those of an explicit fma."""

    @jit
    def chosen(x):
        larger = max(x[0] * x[1], x[2])
        x[5] = cuda.fma(x[0], x[1], x[2] * x[3]) + (x[4] - x[3])
        x[6] = x[0] * x[1] - x[2] * x[3]
        x[7] = larger - x[3]

    found = contractible(compile(chosen, (np.empty(1, real),), (9, 0)).ptx)
    assert len(found) == 2, found


def test_a_level_is_as_short_as_it_can_be(held):
    """Of heat: two neighbors' loads, a store, and no index arithmetic in 64 bits between."""
    report = held(swept_kernels(as_problem("heat"), 128, "float32")["diamond", True], (F32,) * 4)
    levels = re.findall(r"ld\.shared.*?st\.shared.*?;", report.ptx, re.DOTALL)[-4:]
    for level in levels:
        assert level.count("ld.shared") == 2, level
        assert not re.search(r"\.[su]64", level), level


def test_what_kernels_share_is_made_once_for_equal_arguments():
    """Then its types are inferred once, too; what differs in anything is another function."""
    heat = as_problem("heat")
    access = make_access(heat, np.float32, GPU)
    assert make_access(as_problem("heat"), np.float32, GPU) is access
    others = [(heat, np.float64, GPU), (heat, np.float32, CORES)]
    others += [
        (replace(heat, dx=2 * heat.dx), np.float32, GPU),
        (as_problem("ks"), np.float32, GPU),
    ]
    assert all(make_access(*other).advance is not access.advance for other in others)
    neighbors = [make_neighbors(1, ends, how) for ends in ("none", "fixed") for how in (GPU, CORES)]
    assert len(set(neighbors)) == 4 and make_neighbors(1, "none", GPU) is neighbors[0]
    kernels = [make(heat, 64, "float32", True) for make in (make_diamond, make_down)]
    marches = [inspect.getclosurevars(kernel.py_func).nonlocals["march"] for kernel in kernels]
    loads = [inspect.getclosurevars(march.py_func).nonlocals["load"] for march in marches]
    assert loads[0] is loads[1] is access.load


def test_edges_are_mailed_in_few_registers(held):
    """Hybrid's, of Euler's three fields."""
    kernels = swept_kernels(as_problem("euler"), 128, "float32")
    for name in ("send", "receive"):
        assert within(held, kernels[name], 3, "float32", 32).shared_bytes == 0
