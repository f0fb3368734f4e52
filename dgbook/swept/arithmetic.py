"""What the update of a point is compiled by: NumPy, Numba for cores, and Numba for a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numba
import numpy as np

from dgbook.gpu import jit
from dgbook.gpu.fast import fma, make_divide, make_rsqrt, rsqrt_by_formula


def _product_and_sum(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


@dataclass(frozen=True)
class Arithmetic:
    """One of the ways in which one formula is computed.

    A problem writes its formula once, as functions of scalars, see `Problem.make_slope`; they are
    decorated by `jit` and use nothing but the four operations, comparisons and the functions
    below. Then NumPy, cores and a GPU cannot disagree about it. None of the three reorders
    operations, but a GPU has instructions of its own for roots, quotients and `fma`.

    And its compilers fuse products with sums on their own: not all, which ones is a matter of what
    else a kernel does, and a fused product is rounded otherwise. So that all kernels compute the
    same bits, no sum in a formula has an operand that is a product or a quotient: what is to be
    added to a product is `fma`'s third argument, which may be another product.

    Attributes
    ----------
    jit : function
        Decorator of the functions. For NumPy it does nothing: they work on arrays as well.
    where : function
        ``where(condition, a, b)``: a or b, of one type.
    make_rsqrt, make_divide : functions
        ``make_rsqrt(real)`` makes ``rsqrt(x)``, 1 / sqrt(x), and ``make_divide(real)``
        ``divide(x, y)``, both for numbers of type real.
    index : type
        Of positions in arrays: a GPU has 32-bit registers, and need not ask whether an unsigned
        index is negative; a core's loops vectorize with its own.
    whole : type
        Of positions while they are computed, where they may be negative; compilers widen sums.
    fma : function
        ``fma(a, b, c)``: a b + c, which a GPU rounds once, others twice.
    """

    jit: Callable[[Callable], Callable]
    where: Callable[[Any, Any, Any], Any]
    make_rsqrt: Callable[[type], Callable[[Any], Any]]
    make_divide: Callable[[type], Callable[[Any, Any], Any]]
    index: type
    whole: type
    fma: Callable[[Any, Any, Any], Any] = _product_and_sum


def _where(condition, a, b):
    return a if condition else b


# Python's error model would test every division for a zero below, and keep loops from vectorizing.
on_core = partial(numba.njit, error_model="numpy")
on_device = partial(jit, device=True)


def _rsqrt_on_core(real: type) -> Callable[[Any], Any]:
    one = real(1)
    return on_core(lambda x: one / math.sqrt(x))


def _quotient(x: Any, y: Any) -> Any:
    return x / y


def _always(function: Callable) -> Callable[[type], Callable]:
    """What makes one function, whatever the type."""
    return lambda real: function


NUMPY = Arithmetic(
    lambda function: function,
    np.where,
    _always(rsqrt_by_formula),
    _always(_quotient),
    np.intp,
    np.intp,
)
CORES = Arithmetic(
    on_core,
    on_core(_where),
    _rsqrt_on_core,
    _always(on_core(_quotient)),
    np.intp,
    np.intp,
    on_core(_product_and_sum),
)
GPU = Arithmetic(on_device, on_device(_where), make_rsqrt, make_divide, np.uint32, np.int32, fma)
ADDRESSES = replace(GPU, index=np.uint64)
"""The same with indices as wide as addresses: a constant more is then part of a load."""
