"""Quotients and roots in fp64 as a GPU computes them, in exact arithmetic: seeds, fma, errors."""

import math
from fractions import Fraction

import numpy as np

from dgbook.gpu.fast import SEED_ERROR, make_newton_divide, make_newton_rsqrt


def exact_fma(a, b, c):
    """a b + c rounded once, for floats; infinities and NaN as NumPy has them."""
    if math.isfinite(a) and math.isfinite(b) and not math.isfinite(c):
        return c
    if not (math.isfinite(a) and math.isfinite(b)):
        with np.errstate(all="ignore"):
            return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if not exact:
        return a * b + c  # the sign of a zero
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def upper_half(x):
    """x rounded to where its lower 32 bits are zero: 20 bits after the binary point."""
    half, bits = np.uint64(32), np.float64(x).view(np.uint64) + np.uint64(2**31)
    return float((bits >> half << half).view(np.float64))


def make_seed(function, off):
    """An approximation as PTX describes it, the function times 1 + off.

    Its lower half is zero, which costs up to 2^-21 of it. Denormals are zero before and after.
    """

    def flushed(x):
        return math.copysign(0.0, x) if abs(x) < 2.0**-1022 else x

    def seed(x):
        with np.errstate(all="ignore"):
            return flushed(upper_half(function(np.float64(flushed(x))) * (1 + off)))

    return seed


def emulated(off=0.0):
    """The functions ``divide(x, y)`` and ``rsqrt(x)`` of floats, from such seeds."""
    divide = make_newton_divide(lambda f: f, make_seed(lambda y: 1 / y, off), exact_fma)
    rsqrt = make_newton_rsqrt(lambda f: f, make_seed(lambda x: 1 / np.sqrt(x), off), exact_fma)
    return divide, rsqrt


OFF = SEED_ERROR - 2.0**-21
"""With the rounding, as much as the errors are derived for."""


def quotient_error(x, y, found):
    """Of a found quotient of floats, in units in the last place of the exact one."""
    exact = Fraction(x) / Fraction(y)
    return float(abs(Fraction(found) - exact) / Fraction(math.ulp(float(exact))))


def rsqrt_error(x, found):
    """Of 1 / sqrt(x), whose digits come from an integer's root: 2^-100 of it do not count."""
    exponent = math.frexp(x)[1]
    exponent -= 53 + (exponent - 53) % 2
    whole = int(Fraction(x) / Fraction(2) ** exponent)  # x = whole 2^exponent, an even one
    exact = Fraction(math.isqrt((1 << 320) // whole), 1 << 160) / Fraction(2) ** (exponent // 2)
    return float(abs(Fraction(found) - exact) / Fraction(math.ulp(float(exact))))


def nasty(random, count, low=-1022, high=1021):
    """Numbers of all sizes: random mantissas, and those next to 1, 2, sqrt(2), and short ones."""
    mantissas = np.concatenate([
        random.uniform(1, 2, count // 2),
        1 + np.arange(count // 8) * 2.0**-52,
        2 - np.arange(1, count // 8 + 1) * 2.0**-52,
        math.sqrt(2) + np.arange(count // 8) * 2.0**-52,
        1 + random.integers(0, 2**20, count - count // 2 - 3 * (count // 8)) * 2.0**-20,
    ])  # fmt: skip
    random.shuffle(mantissas)
    return np.ldexp(mantissas, random.integers(low, high, count))
