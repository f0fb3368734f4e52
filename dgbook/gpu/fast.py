"""Functions that a GPU has an instruction for, faster than their formula and as good as exact.

In fp64 it has one for a first approximation only. The compiler's division and libdevice's rsqrt
refine it and then branch, for extreme numbers take another way, and independent ones of a thread do
not overlap. Here is the refinement without the branch: a step of Newton's method or of a longer
series, by `fma`. In exchange the ends of fp64's range are lost, see `make_divide` and `make_rsqrt`.

Errors are in units in the last place of the exact result. They are derived for approximations that
are off by up to 2^-18 of it, `SEED_ERROR`. NVIDIA's manual of PTX promises no number (sections
rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64): it says that operand and result have 20 bits after the
binary point, and the end of either may cost 2^-20. A rounding is off by u = 2^-53 of a number at
most, which is at most one unit, and by half a unit.

* Quotient. r (1 + e + e^2) with e = 1 - y r is 1 / y but for e^3 and a rounding, 2^-54 + u. Hence
  q = x r is off by 2.5 u. The rest x - y q times r corrects it, but for the error of r and a
  rounding of the rest: 2.5 u (1.5 u + u) is less than 2^-50 units. The last rounding costs half a
  unit.
* rsqrt. r^2 is exact with 42 bits, so that e = 1 - x r^2 is had with a relative error of u. Of the
  series r (1 + 1/2 e + 3/8 e^2 + 5/16 e^3 + ...) three terms are taken. As e is 2^-17, the fourth
  one is 1.25 u, at most 1.25 units; what follows is less than 0.01, and the last rounding costs
  half a unit. Approximations within 2^-19 leave an eighth of the fourth term: 0.67 units.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dgbook.gpu.kernel import HAS_NUMBA_CUDA, cuda, jit

SEED_ERROR = 2.0**-18
"""Largest relative error of a first approximation for which the errors in fp64 are derived."""
DIVIDE_ERROR = 0.5 + 2.0**-50
"""Of a quotient in fp64, in units in the last place."""
RSQRT_ERROR = 1.76
"""Of 1 / sqrt(x) in fp64, in units in the last place."""


@jit(device=True)
def fma(a, b, c):
    """a b + c, rounded once."""
    return cuda.fma(a, b, c)


@jit(device=True)
def branching_divide(x, y):
    """x / y as compilers make it: in fp64 with a branch."""
    return x / y


def rsqrt_by_formula(x):
    """1 / sqrt(x) for NumPy's scalars and arrays, in their precision."""
    return x.dtype.type(1) / np.sqrt(x)


def divide_by_formula(x, y):
    """x / y for NumPy's scalars and arrays, in their precision."""
    return x / y


def make_newton_divide(decorate: Callable, seed: Callable, fma: Callable) -> Callable:
    """The function ``divide(x, y)`` from a first approximation of 1 / y, without a branch."""

    @decorate
    def divide(x, y):
        r = seed(y)
        e = fma(-y, r, 1.0)
        e = fma(e, e, e)
        r = fma(r, e, r)
        q = x * r
        return fma(fma(-y, q, x), r, q)

    return divide


def make_newton_rsqrt(decorate: Callable, seed: Callable, fma: Callable) -> Callable:
    """The function ``rsqrt(x)`` from a first approximation of 1 / sqrt(x), without a branch."""

    @decorate
    def rsqrt(x):
        r = seed(x)
        e = fma(-x, r * r, 1.0)
        return fma(r * e, fma(0.375, e, 0.5), r)

    return rsqrt


if HAS_NUMBA_CUDA:
    from llvmlite import ir
    from numba.core import types
    from numba.cuda import libdevice
    from numba.cuda.extending import intrinsic

    def _make_seed(name: str) -> Callable:
        """The fp64 instruction of PTX that approximates the function, for device functions."""
        instruction = f"{name}.approx.ftz.f64 $0, $1;"

        @intrinsic
        def seed(typing_context, x):
            def generate(context, builder, signature, arguments):
                function = ir.FunctionType(ir.DoubleType(), [ir.DoubleType()])
                return builder.asm(function, instruction, "=d,d", arguments, False)

            return types.float64(types.float64), generate

        return seed

    reciprocal_seed, rsqrt_seed = _make_seed("rcp"), _make_seed("rsqrt")
    branching_rsqrt = libdevice.rsqrt
    _RSQRT = {
        "float32": libdevice.rsqrtf,
        "float64": make_newton_rsqrt(jit(device=True), rsqrt_seed, fma),
    }
    _DIVIDE = {
        "float32": libdevice.fast_fdividef,
        "float64": make_newton_divide(jit(device=True), reciprocal_seed, fma),
    }
else:  # a CPU-only installation: there is the simulator only
    branching_rsqrt = rsqrt_by_formula
    _RSQRT = dict.fromkeys(("float32", "float64"), rsqrt_by_formula)
    _DIVIDE = dict.fromkeys(("float32", "float64"), divide_by_formula)

FORMULAS: dict[Callable, Callable] = dict.fromkeys(
    (*_RSQRT.values(), branching_rsqrt), rsqrt_by_formula
)
"""What the simulator calls in place of a function that only a GPU has."""
FORMULAS |= dict.fromkeys(_DIVIDE.values(), divide_by_formula)


def make_rsqrt(real: type) -> Callable:
    """The device function ``rsqrt(x)``, 1 / sqrt(x) within two units in the last place.

    In fp64 it is within `RSQRT_ERROR` units from 2^-1022 to the largest number. It is infinite for
    denormals, and NaN at zero and infinity. The simulator computes it by the formula.
    """
    function = _RSQRT[np.dtype(real).name]

    @jit(device=True)
    def rsqrt(x):
        return function(x)

    return rsqrt


def make_divide(real: type) -> Callable:
    """The device function ``divide(x, y)``, x / y within two units in the last place.

    In fp32 y must be below 2^126, or 0 comes back.

    In fp64 it is within `DIVIDE_ERROR` units for |y| from 2^-1022 to 2^1021, a quotient from
    2^-1022 to 2^1023, and |x| at least 2^-968; the rest of a smaller x is denormal, and adds
    2^-1022 / |x| units. A zero x gives a zero, maybe of the other sign. NaN comes back where y is
    zero, denormal or infinite, or the quotient is beyond fp64; 0 where |y| is beyond 2^1022.

    The simulator computes it by the formula.
    """
    function = _DIVIDE[np.dtype(real).name]

    @jit(device=True)
    def divide(x, y):
        return function(x, y)

    return divide
