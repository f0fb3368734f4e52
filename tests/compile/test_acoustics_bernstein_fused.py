"""The fused Bernstein-Bezier kernels as machine code: registers, warps, wide loads, no fp64."""

import re
from functools import cache

import numpy as np
import pytest
from team_cases import resident_warps

from dgbook.acoustics.launch.bernstein_fused import kernel
from dgbook.acoustics.plan import BernsteinFusedPlan, Shape
from dgbook.check.compile import compile

INDICES = np.empty(1, np.uint32)
WARPS = {"float32": (24, 40), "float64": (18, 24)}
"""That a multiprocessor of compute capability 9.0 holds at least: in CUDA C++ as many as leave a
thread 64 and 80 registers, less where shared memory is short; in Numba."""


@cache
def report(order, dtype, language, cc=(9, 0), factored=False):
    """The default plan, its shape, and what the compiler says."""
    shape, plan = Shape(order, dtype), BernsteinFusedPlan.default(Shape(order, dtype), cc, language)
    r, i, s = np.empty(1, dtype), INDICES, np.dtype(dtype).type(1)
    signature = (r, r, i, i, i, r, i, i, r, r, r, r, r, s, s, s, np.uint32(0))
    return plan, shape, compile(kernel(shape, plan, factored), signature, cc)


@pytest.mark.parametrize(("order", "dtype"), [(3, "float32"), (6, "float64")])
def test_factors_need_no_more_of_the_machine(order, dtype):
    """The kernel for stages of a factored method, beside that of the low-storage form."""
    low, found = (report(order, dtype, "cuda", factored=f) for f in (False, True))
    assert resident_warps(*found) >= resident_warps(*low)


def sample():
    """The orders in turn; one for an old device."""
    cases = [(order, "float32", "cuda", (9, 0)) for order in (2, 4, 7, 8, 12)]
    cases += [(order, "float64", "cuda", (9, 0)) for order in (4, 9)]
    return [*cases, (4, "float32", "numba", (9, 0)), (5, "float32", "cuda", (7, 5))]


@pytest.mark.parametrize(("order", "dtype", "language", "cc"), sample())
def test_kernels_fit_the_machine(order, dtype, language, cc):
    plan, shape, found = report(order, dtype, language, cc)
    warps = resident_warps(plan, shape, found)
    if cc == (9, 0) and order < 10:
        assert warps >= WARPS[dtype][language == "numba"], found


@pytest.mark.parametrize(
    ("language", "dtype", "wide"),
    [
        ("cuda", "float32", "v4.[fb]32"),
        ("cuda", "float64", "v2.[fb]64"),
        ("numba", "float32", "v4.[fb]32"),
    ],
)
def test_four_numbers_come_in_wide_loads(language, dtype, wide):
    """Of L_0 six, of a slice two, of a point four derivatives: 16 bytes at a time."""
    _, _, found = report(4, dtype, language)
    loads = len(re.findall(rf"ld\.shared\.{wide}", found.ptx))
    assert loads >= (6 + 2 + 4) * np.dtype(dtype).itemsize // 4


@pytest.mark.parametrize("order", [2, 8])
def test_multiplications_do_not_grow_with_the_order(order):
    """Sparse: a slice has none, a derivative 16 and the metric 9, whatever the order."""
    _, _, found = report(order, "float32", "cuda")
    assert len(re.findall(r"(?:fma|mul)\.(?:rn|f32)\S*", found.ptx)) < 130
