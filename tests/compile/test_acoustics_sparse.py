"""The Bernstein-Bezier kernels of acoustics as machine code: no spills, no stray fp64."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from dgbook.acoustics.launch.sparse import kernel
from dgbook.acoustics.plan import SURFACES, BernsteinPlan, Shape
from dgbook.check.compile import compile

CAPABILITIES = ((7, 5), (8, 0), (9, 0))
INDICES = np.empty(1, np.uint32)
REGISTERS = {
    "volume": (88, 40, 40),
    "computed": (88, 48, 48),
    "factored": (56, 48, 40),
    "optimal": (56, 48, 40),
    "element": (64, 64, 64),
}
"""Of fp32 kernels, by capability; the oldest gets the loads of all columns under way at once."""


def report(name, order, dtype, cc):
    i, r = INDICES, np.empty(1, dtype)
    common = (r, r, i, i, i, r, r, i, r)
    volume = (r, i, r, r, r, r)
    arguments = {
        "volume": volume,
        "computed": volume,
        "factored": (*common, i, r, r, r),
        "optimal": (*common, i, r, i, r, r),
        "element": (*common, i, r, r),
    }
    shape = Shape(order, dtype)
    plan = BernsteinPlan.default(
        Shape(order, dtype), None, name if name in SURFACES else "factored"
    )
    plan = replace(plan, columns="computed" if name == "computed" else "stored")
    compiled = kernel("surface" if name in SURFACES else "volume", shape, plan)
    return compile(compiled, arguments[name], cc), shape, plan


def sample():
    """Orders in turn: all of them for all kernels take a minute."""
    names = ("volume", "computed", *SURFACES)
    orders = zip((4, 8, 1), CAPABILITIES, strict=True)
    cases = [(name, order, "float32", cc) for order, cc in orders for name in names]
    return cases + [(name, 5, "float64", (9, 0)) for name in names]


@pytest.mark.parametrize(("name", "order", "dtype", "cc"), sample())
def test_kernels_fit_the_machine(name, order, dtype, cc):
    found, shape, plan = report(name, order, dtype, cc)
    assert found.spill_bytes == 0, found
    # A thread that has an element keeps two times Nfp numbers where an index can reach them.
    reachable = 2 * shape.Nfp * shape.itemsize if name == "element" else 0
    assert found.stack_bytes <= reachable + 8 * (name == "element"), found
    assert (found.fp64_instructions > 0) == (dtype == "float64"), found
    limit = 72 if dtype == "float64" else REGISTERS[name][CAPABILITIES.index(cc)]
    assert found.registers <= limit, found
    lifts = name in SURFACES
    assert found.shared_bytes == plan.shared_bytes(shape)["K_S" if lifts else "K_V"]
    threads = math.prod(plan.surface_block(shape)) if lifts else plan.K_V * shape.Np
    assert found.blocks_per_multiprocessor(threads) >= 5


@pytest.mark.parametrize(
    ("name", "dtype", "wide", "loads"),
    [
        ("volume", "float32", "v4.[fb]32", 16),  # four entries of four derivatives
        ("volume", "float64", "v2.[fb]64", 32),
        ("factored", "float32", "v4.[fb]32", 4),  # four fluxes for an entry of E_L
        ("optimal", "float32", "v4.[fb]32", 8 + 3),  # four faces for one of L_0, or of a slice
    ],
)
def test_four_values_come_in_wide_loads(name, dtype, wide, loads):
    """From shared memory, 16 bytes at a time."""
    found, _, _ = report(name, 4, dtype, (8, 0))
    assert len(re.findall(rf"ld\.shared\.{wide}", found.ptx)) == loads
