"""Checks of arguments: each names the argument, the value it got and what is allowed."""

from numbers import Integral

import numpy as np


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
