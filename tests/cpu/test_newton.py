"""Quotients and roots without a branch: derived bounds against exact arithmetic, and extremes."""

import math
from dataclasses import replace

import numpy as np
import pytest
from newton_cases import OFF, emulated, exact_fma, nasty, quotient_error, rsqrt_error, upper_half

from dgbook.gpu.fast import DIVIDE_ERROR, RSQRT_ERROR, SEED_ERROR
from dgbook.swept.arithmetic import NUMPY
from dgbook.swept.problem import as_problem

COUNT = 4000
OFFS = (-OFF, 0.0, OFF)
TINY, HUGE = 2.0**-1022, 2.0**1021


@pytest.mark.parametrize("off", OFFS)
def test_quotients_are_within_their_bound(off):
    random, (divide, _) = np.random.default_rng(1), emulated(off)
    y = nasty(random, COUNT)
    sizes = np.clip(np.frexp(y)[1] + random.integers(-1000, 1000, COUNT), -968, 1021)
    x = np.ldexp(nasty(random, COUNT, 0, 1), sizes)
    x[: COUNT // 4], x[COUNT // 4 : COUNT // 2] = 1, np.nextafter(y, 0)[COUNT // 4 : COUNT // 2]
    with np.errstate(all="ignore"):
        q = x / y
    held = (x >= 2.0**-968) & (q >= TINY) & (q <= 2.0**1023)
    assert held.mean() > 0.9
    pairs = zip(x[held].tolist(), (-y[held]).tolist(), strict=True)
    found = [quotient_error(*pair, divide(*pair)) for pair in pairs]
    assert 0.49 < max(found) <= DIVIDE_ERROR


def test_quotients_of_small_numerators():
    """Their rests are denormal: the bound grows by 2^-1022 / x."""
    random, (divide, _) = np.random.default_rng(2), emulated(OFF)
    x, y = nasty(random, 1000, -1022, -968), nasty(random, 1000, -1000, 0)
    for one, other in zip(x, y, strict=True):
        if TINY <= one / other:
            bound = DIVIDE_ERROR + TINY / one
            assert quotient_error(one, other, divide(float(one), float(other))) <= bound


@pytest.mark.parametrize("off", OFFS)
def test_roots_are_within_their_bound(off):
    """Most of it is the series' next term, a cube of what the seed is off."""
    x = nasty(np.random.default_rng(3), COUNT, -1022, 1024)
    _, rsqrt = emulated(off)
    low, bound = (1.1, RSQRT_ERROR) if off else (0.5, 0.67)
    assert low < max(rsqrt_error(one, rsqrt(one)) for one in map(float, x)) <= bound


def test_seeds_are_as_far_off_as_the_bounds_allow():
    y = np.random.default_rng(4).uniform(1, 4, 1000)
    for off in OFFS:
        found = np.array([upper_half(one) for one in (1 + off) / y]) * y - 1
        assert np.abs(found).max() <= SEED_ERROR
    assert np.abs(found).max() > 0.7 * SEED_ERROR


def test_the_emulated_multiply_add_rounds_once():
    assert exact_fma(1 + 2.0**-52, 1 - 2.0**-52, -1.0) == -(2.0**-104)
    assert exact_fma(2.0**1000, 2.0**1000, -math.inf) == -math.inf
    assert exact_fma(2.0**1000, -(2.0**1000), 1.0) == -math.inf
    assert math.isnan(exact_fma(math.inf, 0.0, 1.0))


def test_extremes_are_as_documented():
    divide, rsqrt = emulated()
    for y in (0.0, -0.0, TINY / 2, math.inf, math.nan):
        assert math.isnan(divide(1.0, y)) and math.isnan(divide(0.0, y))
    assert all(math.isnan(rsqrt(x)) for x in (0.0, -0.0, math.inf, math.nan, -1.0))
    assert rsqrt(TINY / 2) == math.inf
    assert math.isnan(divide(2.0**600, 2.0**-600)), "beyond fp64"
    assert divide(0.0, 3.0) == 0 and divide(-0.0, -3.0) == 0
    assert divide(1.0, 2 * HUGE) == 0.5 / HUGE, "the last one"
    assert divide(2.0**1000, 5 * HUGE) == 0
    assert divide(3.0, TINY) == 3 * 2.0**1022 and rsqrt(TINY) == 2.0**511


# -------------------------------------------------------------------------- what Euler makes of it


def faces(arithmetic):
    return as_problem("euler").make_faces(np.float64, arithmetic)


def by_newton(off=0.0):
    """The arithmetic of scalars with what a GPU has for quotients and roots."""
    divide, rsqrt = emulated(off)
    return replace(
        NUMPY,
        make_divide=lambda real: lambda x, y: np.float64(divide(float(x), float(y))),
        make_rsqrt=lambda real: lambda x: np.float64(rsqrt(float(x))),
    )


SIZES = (0.0, 5e-324, 1e-310, 1e-300, 1e-160, 1e-20, 0.25, 0.5, 1.0, 1e20, 1e160, 1e300)
LEFT, RIGHT = (np.float64((1.0, 0.25, 3.0)), np.float64((0.5, -0.125, 1.0)))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("reference", SIZES)
@pytest.mark.parametrize("step", SIZES)
def test_ratios_of_any_size_are_limited_alike(step, reference, sign):
    """A quotient that is not to be had is one that counts as 1."""
    step, reference = np.float64(step), np.float64(sign * reference)
    with np.errstate(all="ignore"):
        found, exact = (
            faces(how)[1](LEFT, RIGHT, -reference, np.float64(0), step, reference + step)
            for how in (by_newton(OFF), NUMPY)
        )
    assert np.allclose(found, exact, rtol=1e-14, atol=0) and np.isfinite(exact).all()


@pytest.mark.parametrize("momentum", [*SIZES[:-2], -0.0, -1e-320])
def test_any_momentum_has_its_energy(momentum):
    state = np.float64((0.125, momentum, 0.25))
    found, exact = (faces(how)[0](state) for how in (by_newton(OFF), NUMPY))
    assert found == pytest.approx(exact, rel=1e-15)


def test_a_gas_without_energy_or_density_is_no_number_either_way():
    """The speed of sound is a root times its square, and 0 times infinity is NaN."""
    zero = np.float64(0)
    for rho in (1.0, 0.0):
        state = np.float64((rho, 0, 0))
        with np.errstate(all="ignore"):
            for how in (by_newton(), NUMPY):
                flux = faces(how)[1](state, state, zero, zero, zero, zero)
                assert np.isnan(flux).any()
