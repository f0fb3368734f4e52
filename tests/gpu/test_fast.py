"""Quotients and roots on a real device, against exact ones."""

import numpy as np
import pytest
from newton_cases import nasty, quotient_error, rsqrt_error

from dgbook.gpu import cuda, device, fast, jit

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

SEED = np.random.SeedSequence().entropy
RANDOM = np.random.default_rng(SEED)
N, THREADS = 2**20, 256


def each(function, *operands):
    """The device function of each of the numbers."""
    if len(operands) == 1:

        @jit
        def kernel(x, z):
            i = cuda.grid(1)
            z[i] = function(x[i])

    else:

        @jit
        def kernel(x, y, z):
            i = cuda.grid(1)
            z[i] = function(x[i], y[i])

    found = GPU.empty(N, operands[0].dtype)
    kernel[N // THREADS, THREADS](*map(GPU.array, operands), found)
    return GPU.to_numpy(found)


def units(found, exact):
    """How far from the rounded exact result, in its units in the last place."""
    return np.abs(found - exact) / np.spacing(np.abs(exact))


def seeds():
    """fp64's first approximations, as device functions, and their formulas."""
    reciprocal, root = fast.reciprocal_seed, fast.rsqrt_seed
    return (
        (jit(lambda x: reciprocal(x), device=True), lambda x: 1 / x),
        (jit(lambda x: root(x), device=True), lambda x: 1 / np.sqrt(x)),
    )


def test_first_approximations_are_as_good_as_derived_for():
    x = nasty(RANDOM, N, -1022, 1021)
    for seed, formula in seeds():
        off = np.abs(each(seed, x) / formula(x) - 1).max()
        print(f"off by {off * 2**20:.3f} 2^-20")
        assert off <= fast.SEED_ERROR


def test_quotients_in_fp64():
    """NumPy's are rounded correctly, half a unit: one that is not the same is the other neighbor.

    Of those the exact error is asked for.
    """
    y = nasty(RANDOM, N)
    x = np.ldexp(nasty(RANDOM, N, 0, 1), np.clip(np.frexp(y)[1] - 1, -967, 1020))
    x[: N // 4] = np.nextafter(y[: N // 4], 0).clip(2.0**-967)
    x *= RANDOM.choice([-1, 1], N)
    found, exact = each(fast.make_divide(np.float64), x, y), x / y
    assert units(found, exact).max() <= 1
    other = np.flatnonzero(found != exact)
    print(f"{other.size} of {N} quotients are rounded to the other side")
    for i in other[:20_000]:
        assert quotient_error(x[i], y[i], found[i]) <= fast.DIVIDE_ERROR


def test_roots_in_fp64():
    x = nasty(RANDOM, N, -1022, 1024)
    found = each(fast.make_rsqrt(np.float64), x)
    exact = 1 / np.sqrt(x.astype(np.longdouble))
    off = units(found, exact.astype(np.float64))
    print(f"{np.count_nonzero(off)} of {N} roots are not rounded correctly")
    assert off.max() <= fast.RSQRT_ERROR + 0.5
    for i in np.flatnonzero(off)[:20_000]:
        assert rsqrt_error(float(x[i]), float(found[i])) <= fast.RSQRT_ERROR


def test_extremes_in_fp64():
    """As in exact arithmetic, tests/cpu/test_newton.py."""
    tiny, nan, inf = 2.0**-1022, np.nan, np.inf
    x, y, q = np.array([
        (1, 0, nan), (0, 0, nan), (1, tiny / 2, nan), (1, inf, nan), (1, nan, nan), (nan, 1, nan),
        (2.0**600, 2.0**-600, nan), (0, 3, 0), (-0.0, -3, 0), (1, 2.0**1021, 2 * tiny),
        (2.0**1000, 5 * 2.0**1021, 0), (1.5, tiny, 1.5 * 2.0**1022),
    ]).T  # fmt: skip
    z, r = np.array([
        (0, nan), (-0.0, nan), (inf, nan), (nan, nan), (-1, nan), (tiny / 2, inf),
        (tiny, 2.0**511), (4, 0.5),
    ]).T  # fmt: skip

    def of_all(function, *operands):
        filled = [np.resize(operand, N) for operand in operands]
        return each(function, *filled)[: operands[0].size]

    assert np.array_equal(of_all(fast.make_divide(np.float64), x, y), q, equal_nan=True)
    found = of_all(fast.make_rsqrt(np.float64), z)
    assert np.allclose(found, r, rtol=2 * np.finfo(float).eps, atol=0, equal_nan=True)


def test_quotients_and_roots_in_fp32():
    """Within two units of the rounded one, as NVIDIA documents, of normal numbers below 2^126."""
    x, y = (nasty(RANDOM, N, -60, 60).astype(np.float32) for _ in range(2))
    quotient = x.astype(np.float64) / y
    found = each(fast.make_divide(np.float32), x, y)
    assert np.abs(found - quotient).max(initial=0, where=found == 0) == 0
    assert units(found, quotient.astype(np.float32)).max() <= 2
    found = each(fast.make_rsqrt(np.float32), x)
    exact = (1 / np.sqrt(x.astype(np.float64))).astype(np.float32)
    assert units(found, exact).max() <= 2
