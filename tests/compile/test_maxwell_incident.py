"""The kernels of incident fields as machine code: fp64 for the phase, and for nothing else."""

import numpy as np
import pytest

from dgbook.check.compile import compile
from dgbook.maxwell.kernels.incident import make_incident
from dgbook.nodal.kernels.tick import make_tick

REDUCTION = 40
"""Bytes of stack in which CUDA's sine of fp64 reduces arguments beyond 10^5 periods."""


def report(shape, dtype, cc):
    double, long, real = np.empty(1), np.empty(1, np.int64), np.empty(1, dtype)
    return compile(
        make_incident(10, shape, dtype), (long, double, real, long, *[1.0] * 4, real), cc
    )


@pytest.mark.parametrize(("shape", "stack"), [("gaussian", 0), ("sine", REDUCTION)])
def test_a_plane_wave_fits_the_machine(shape, stack, cc):
    single, double = (report(shape, dtype, cc) for dtype in ("float32", "float64"))
    for found in (single, double):
        assert found.spill_bytes == found.shared_bytes == 0, found
        assert found.stack_bytes <= stack and found.registers <= 40, found
    # Six products are fp64 in one and fp32 in the other, which converts the signal once.
    assert double.fp64_instructions - single.fp64_instructions == 6 - 1


def test_a_tick_counts_with_integers(held):
    assert held(make_tick(), (np.empty(1, np.int64),)).registers <= 16
