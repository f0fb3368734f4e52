"""The linear family's kernels as machine code: no fp64 where none is meant, no spills, unrolled."""

import numpy as np
import pytest

from dgbook.check.compile import compile
from dgbook.element import NodalElement
from dgbook.linear.launch import kernels
from dgbook.linear.plan import Plan, Shape

CAPABILITIES = ((7, 5), (8, 0), (9, 0))
ORDERS = {1: (1, 3, 6, 10), 2: (1, 4, 8), 3: (1, 2, 4, 6, 8)}
INDICES = np.empty(1, np.uint32)


def make(dim, order, n, dtype, plan=None):
    """The shape, its plan, and each kernel with examples of its arguments."""
    element = NodalElement(dim, order)
    shape = Shape(dim, n, element.Np, element.Nfp, dtype)
    plan = plan or Plan.default(shape)
    assert not plan.illegal(shape)
    volume, surface, fused, _ = kernels(shape, plan)
    real = np.dtype(dtype).type
    u, flat, s = np.empty((1, 1), real), np.empty(1, real), real(1)
    signatures = {
        "volume": (volume, (u, flat, flat, u)),
        "surface": (surface, (u, INDICES, INDICES, flat, flat, u)),
        "fused": (fused, (u, INDICES, INDICES, INDICES, flat, flat, flat, flat, u, u, s, s, s)),
    }
    return shape, plan, signatures


def sample():
    """Systems and compute capabilities in turn: all of both for all orders would take minutes."""
    orders = [(dim, order) for dim, some in ORDERS.items() for order in some]
    cases = [("fused", *case, "float32") for case in orders]
    cases += [(name, *c, "float32") for name in ("volume", "surface") for c in ((1, 4), (3, 3))]
    cases += [("fused", 2, 5, "float64"), ("fused", 3, 3, "float64")]
    return [
        (name, dim, order, (1, 1 + dim)[i % 2], dtype, CAPABILITIES[i % 3])
        for i, (name, dim, order, dtype) in enumerate(cases)
    ]


@pytest.mark.parametrize(("name", "dim", "order", "n", "dtype", "cc"), sample())
def test_kernels_fit_the_machine(name, dim, order, n, dtype, cc):
    shape, plan, signatures = make(dim, order, n, dtype)
    report = compile(*signatures[name], cc)
    assert report.spill_bytes == report.stack_bytes == 0, report
    assert (report.fp64_instructions > 0) == (dtype == "float64"), report
    assert report.registers <= 80
    threads = plan.elements_per_block * shape.Np
    assert report.blocks_per_multiprocessor(threads) >= 2
    if name == "fused":
        assert report.shared_bytes == plan.shared_bytes(shape)


@pytest.mark.parametrize(("dim", "n", "inline"), [(3, 1, 8), (3, 4, 2), (2, 3, 4)])
def test_the_most_accumulators_stay_in_registers(dim, n, inline):
    """The limit of `illegal`: a loop that is not unrolled would put them into local memory."""
    _, _, signatures = make(dim, 3, n, "float32", Plan(4, inline))
    report = compile(*signatures["fused"], (7, 5))
    assert report.spill_bytes == report.stack_bytes == 0, report


def test_the_long_loops_are_unrolled():
    """A loop of one multiply-add and a jump would have far fewer than half of them."""
    shape, _, signatures = make(3, 3, 1, "float32", Plan(4, 1))
    report = compile(*signatures["fused"], (9, 0))
    assert report.ptx.count("fma.rn.f32") > (3 * shape.Np + shape.Nf) // 2
