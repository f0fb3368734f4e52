"""Maxwell's kernels in the Bernstein basis as machine code: registers, warps, loads, no fp64."""

import re
from functools import cache

import numpy as np
import pytest
from team_cases import resident_warps

from dgbook.check.compile import compile
from dgbook.maxwell.launch.bernstein_fused import kernel
from dgbook.maxwell.plan import BernsteinFusedPlan, FusedShape

INDICES = np.empty(1, np.uint32)
WARPS = {"float32": 16, "float64": 8}
"""That a multiprocessor of compute capability 9.0 holds at least, by shared memory."""


@cache
def report(order, dtype, language, cc=(9, 0), factored=False):
    """The default plan, its shape, and what the compiler says."""
    shape = FusedShape(order, dtype)
    plan = BernsteinFusedPlan.default(shape, cc, language)
    r, i, s = np.empty(1, dtype), INDICES, np.dtype(dtype).type(1)
    signature = (r, r, i, i, i, i, r, r, r, r, r, s, s, s, np.uint32(0))
    return plan, shape, compile(kernel(shape, plan, factored), signature, cc)


def sample():
    """The orders in turn; two for older devices."""
    cases = [(order, "float32", "cuda", (9, 0)) for order in (1, 2, 3, 4, 6, 7, 8, 9)]
    cases += [(order, "float64", "cuda", (9, 0)) for order in (2, 4, 7, 9)]
    cases += [(5, "float32", "cuda", (7, 5)), (5, "float64", "cuda", (8, 0))]
    return [*cases, (4, "float32", "numba", (9, 0)), (6, "float64", "numba", (7, 5))]


@pytest.mark.parametrize(("order", "dtype", "language", "cc"), sample())
def test_kernels_fit_the_machine(order, dtype, language, cc):
    plan, shape, found = report(order, dtype, language, cc)
    warps = resident_warps(plan, shape, found)
    if cc == (9, 0) and language == "cuda":
        assert warps >= WARPS[dtype], found


@pytest.mark.parametrize(
    ("order", "dtype", "language"),
    [(3, "float32", "cuda"), (6, "float64", "cuda"), (4, "float32", "numba")],
)
def test_factors_need_no_more_of_the_machine(order, dtype, language):
    """The kernel for stages of a factored method, beside that of the low-storage form."""
    low, found = (report(order, dtype, language, factored=f) for f in (False, True))
    assert resident_warps(*found) >= resident_warps(*low)


def test_pairs_come_in_one_load():
    """Nine of a curl, nine at least of four in degree N - 1, three of the state: 8 bytes each."""
    _, _, found = report(4, "float32", "cuda")
    assert len(re.findall(r"ld\.shared\.v2\.[fb]32", found.ptx)) >= 9 + 9 + 3


def test_a_lift_stays_in_registers():
    """It loads a face and stores a plane, 16 bytes at a time, and no slice in between.

    Of order 4: 15 points in 4 vectors, 35 in 9. Beside them 4 of turns twice and 2 of the metric.
    """
    _, _, found = report(4, "float32", "cuda")
    assert len(re.findall(r"st\.shared\.v4\.[fb]32", found.ptx)) == 9
    assert len(re.findall(r"ld\.shared\.v4\.[fb]32", found.ptx)) == 4 + 1 + 4 + 2


@pytest.mark.parametrize("language", ["cuda", "numba"])
def test_the_team_meets_three_times_at_any_order(language):
    for order in (2, 8):
        plan, _, found = report(order, "float32", language)
        barrier = "bar.warp.sync" if plan.lanes == 32 else r"bar(?:rier)?\.sync"
        assert len(re.findall(barrier, found.ptx)) == 3
