"""Functions that a GPU has an instruction for, faster than their formula and as good as exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dgbook.gpu.kernel import HAS_NUMBA_CUDA, jit


def rsqrt_by_formula(x):
    """1 / sqrt(x) for NumPy's scalars and arrays, in their precision."""
    return x.dtype.type(1) / np.sqrt(x)


def divide_by_formula(x, y):
    """x / y for NumPy's scalars and arrays, in their precision."""
    return x / y


if HAS_NUMBA_CUDA:
    from numba.cuda import libdevice

    _RSQRT = {"float32": libdevice.rsqrtf, "float64": libdevice.rsqrt}
    _DIVIDE = libdevice.fast_fdividef
else:  # a CPU-only installation: there is the simulator only
    _RSQRT = dict.fromkeys(("float32", "float64"), rsqrt_by_formula)
    _DIVIDE = divide_by_formula

FORMULAS: dict[Callable, Callable] = dict.fromkeys(_RSQRT.values(), rsqrt_by_formula)
"""What the simulator calls in place of a function that only a GPU has."""
FORMULAS[_DIVIDE] = divide_by_formula


def make_rsqrt(real: type) -> Callable:
    """The device function ``rsqrt(x)``, 1 / sqrt(x) within two units in the last place.

    The simulator computes it by the formula.
    """
    function = _RSQRT[np.dtype(real).name]

    @jit(device=True)
    def rsqrt(x):
        return function(x)

    return rsqrt


def make_divide(real: type) -> Callable:
    """The device function ``divide(x, y)``, in fp32 within two units in the last place.

    There y must be below 2^126, or 0 comes back; in fp64 it is the exact division.
    """
    if np.dtype(real) == np.float64:

        @jit(device=True)
        def divide(x, y):
            return x / y

    else:

        @jit(device=True)
        def divide(x, y):
            return _DIVIDE(x, y)

    return divide
