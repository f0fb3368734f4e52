"""Checks of arguments: an error names the argument, its value and what is allowed."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import numpy as np

LEAST, MOST = 1e-15, 1e15
"""Of quantities that are positive: SI units fit, and products of two are normal in fp32, too."""
LEAST_MACH, MOST_MACH = 1e-6, 1e6
"""Of Mach numbers M: p ~ 1 / M^2 beside a kinetic energy of 1 is beyond fp64 elsewhere."""


def check_choice(name: str, value: Any, allowed: Collection[Any]) -> None:
    """Whether an argument is one of a few.

    Raises
    ------
    ValueError
        If it is not.
    """
    if value not in allowed:
        raise ValueError(f"{name} = {value!r}; allowed are {', '.join(map(repr, allowed))}")


def check_range(what: str, value: float, least: float = LEAST, most: float = MOST) -> None:
    """Whether a number is in a range, by default in that of quantities which must be positive.

    Parameters
    ----------
    what : str
        The argument and its value, for the message.
    value, least, most : float

    Raises
    ------
    ValueError
        If it is not, or is NaN.
    """
    if not least <= value <= most:
        raise ValueError(f"{what}; allowed: {least:g} to {most:g}")


def check_memory(
    what: str, needs: int, available: tuple[int, str] | None = None, advice: str = ""
) -> None:
    """Whether there are so many bytes.

    Parameters
    ----------
    what : str
        Ends with "needs", or "need".
    needs : int
    available : (int, str), optional
        The bytes that there are, and whose; if not given, the host's.
    advice : str
        What to do.

    Raises
    ------
    ValueError
        If there are fewer: `what`, both numbers, and `advice`.
    """
    has, whose = available or (host_bytes(), "the host")
    if needs > has:
        raise ValueError(
            f"{what} about {bytes_text(needs)}; allowed: the {bytes_text(has)} of {whose}{advice}"
        )


def host_bytes() -> int:
    """The host's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def bytes_text(nbytes: int) -> str:
    """Bytes in the unit that suits them."""
    for unit, power in (("GiB", 30), ("MiB", 20)):
        if nbytes >= 2**power:
            return f"{nbytes / 2**power:.1f} {unit}"
    return f"{nbytes / 2**10:.1f} KiB"


def check_counts(plan: Any, *names: str) -> None:
    """Whether fields of a dataclass, all of them if none are named, are positive integers.

    Raises
    ------
    TypeError
        If one is no integer.
    ValueError
        If one is not positive.
    """
    for name in names or [field.name for field in fields(plan)]:
        value = getattr(plan, name)
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            raise TypeError(f"{name} = {value!r}; allowed: an integer")
        if value < 1:
            raise ValueError(f"{name} = {value}; allowed: 1 or more")


def check_integer(name: str, value: int, low: int, high: int | None = None) -> None:
    """Raise unless `value` is an integer in ``low..high`` (no upper bound if `high` is None).

    Raises
    ------
    TypeError
        If it is no integer; booleans and floats such as 2.0 are none.
    ValueError
        If it is out of range.
    """
    allowed = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be {allowed}, not {value!r} ({type(value).__name__})")
    if value < low or (high is not None and value > high):
        raise ValueError(f"{name} must be {allowed}, not {value!r}")


def check_points(name: str, value: np.ndarray, columns: int | None = None) -> np.ndarray:
    """Return `value` as a float64 array of shape (n, columns), any number of columns if None.

    Raises
    ------
    ValueError
        If it has another shape.
    """
    points = np.asarray(value, dtype=float)
    if points.ndim != 2 or (columns is not None and points.shape[1] != columns):
        expected = "(n, dim)" if columns is None else f"(n, {columns})"
        raise ValueError(f"{name} must have shape {expected}, not {points.shape}")
    return points


def check_jacobi_exponents(alpha: float, beta: float) -> None:
    """Raise ValueError unless (1-x)^alpha (1+x)^beta can be integrated over [-1, 1]."""
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not value > -1:
            raise ValueError(f"{name} must be a number > -1, not {value!r}")


def check_numbers(name: str, values: Sequence[float], n: int, positive: bool = True) -> tuple:
    """Return n finite numbers, positive ones by default, as floats.

    Raises
    ------
    ValueError
        If they are not that.
    """
    values = tuple(values) if isinstance(values, Sequence | np.ndarray) else (values,)
    if len(values) != n or not all(
        isinstance(v, Real) and np.isfinite(v) and (v > 0 or not positive) for v in values
    ):
        allowed = f"{n} finite{', positive' if positive else ''} number{'s' if n > 1 else ''}"
        raise ValueError(f"{name} = {values}; allowed: {allowed}")
    return tuple(map(float, values))
