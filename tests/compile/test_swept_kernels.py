"""The swept family's kernels as machine code: no stray fp64, spills or calls; the right memory."""

import re

import numpy as np
import pytest

from dgbook.swept.plan import Plan, shared_bytes
from dgbook.swept.problem import PROBLEMS, as_problem
from dgbook.swept.solver import classic_kernels, register_kernels, swept_kernels

F32 = np.empty(1, np.float32)
# Registers on the worst of the three compute capabilities, with some to spare for other compilers.
MOST = {
    ("heat", "float32"): (24, 32, 40),
    ("heat", "float64"): (32, 40, 48),
    ("ks", "float32"): (32, 40, 48),
    ("ks", "float64"): (40, 48, 56),
    ("euler", "float32"): (64, 64, 80),
    ("euler", "float64"): (88, 96, 128),
}


def within(held, kernel, arrays, dtype, most):
    report = held(kernel, (np.empty(1, dtype),) * arrays, dtype)
    assert report.registers <= most, report
    assert not re.search(r"\bcall\b", report.ptx), "device functions are not inlined"
    if dtype == "float64":
        assert report.fp64_instructions > 0
    return report


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PROBLEMS)
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
    memory = shared_bytes(problem, "shared", Plan(128), dtype)
    assert {report.shared_bytes for report in reports} == {memory}
    kernels = register_kernels(problem, dtype)
    report = within(held, kernels["diamond", False], 4, dtype, register)
    assert report.shared_bytes == 0
    assert "shfl.sync" in report.ptx


def test_a_level_is_as_short_as_it_can_be(held):
    """Of heat: two neighbors' loads, a store, and no index arithmetic in 64 bits between."""
    report = held(swept_kernels(as_problem("heat"), 128, "float32")["diamond", True], (F32,) * 4)
    levels = re.findall(r"ld\.shared.*?st\.shared.*?;", report.ptx, re.DOTALL)[-4:]
    for level in levels:
        assert level.count("ld.shared") == 2, level
        assert not re.search(r"\.[su]64", level), level
