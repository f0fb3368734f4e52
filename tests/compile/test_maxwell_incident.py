"""The kernels of incident fields as machine code: fp64 for the phase, and for nothing else."""

import numpy as np
import pytest

from dgbook.check.compile import compile
from dgbook.maxwell.kernels.incident import (
    make_incident,
    make_incident_integral,
    make_incident_points,
)
from dgbook.nodal.kernels.combine import make_combine
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


@pytest.mark.parametrize(("shape", "stack"), [("gaussian", 0), ("sine", REDUCTION)])
def test_control_points_of_a_plane_wave_fit_the_machine(shape, stack, cc):
    """Signals of a block's nodes are shared; fp64 is for them and for a sum of each point."""
    double, long, real = np.empty(1), np.empty(1, np.int64), np.empty(1, np.float32)
    signature = (long, double, double, real, long, *[1.0] * 4, real)
    compiled = compile(make_incident_points(10, shape, "float32", 12), signature, cc)
    assert compiled.spill_bytes == 0 and compiled.shared_bytes == 12 * 10 * 8, compiled
    assert compiled.stack_bytes <= stack and compiled.registers <= 48, compiled


@pytest.mark.parametrize(("shape", "stack"), [("gaussian", 0), ("sine", REDUCTION)])
def test_the_integral_of_a_plane_wave_fits_the_machine(shape, stack):
    double, long, real = np.empty(1), np.empty(1, np.int64), np.empty(1, np.float32)
    signature = (long, long, 1, double, real, *[double] * 3, 1, 1.0, 1.0, real)
    compiled = compile(make_incident_integral(10, shape, "float32"), signature, (9, 0))
    assert compiled.spill_bytes == compiled.shared_bytes == 0, compiled
    assert compiled.stack_bytes <= stack and compiled.registers <= 48, compiled


def test_a_tick_counts_with_integers(held):
    assert held(make_tick(), (np.empty(1, np.int64),)).registers <= 16


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_combination_of_times_is_of_one_precision(dtype, held):
    real = np.empty(1, dtype)
    assert held(make_combine(5, dtype), (real, real, 1, real), dtype).registers <= 40
