"""Equal steps that end where they should, and the loop that all methods share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from tqdm.auto import trange

# t_end - t0 is rarely a multiple of dt in binary: 1.1 / 0.1 is 11.000000000000002, and without this
# allowance the loop would take a twelfth step. No step grows by more than this share of itself.
ROUNDING = 1e-12
MOST_STEPS = 10**12
"""Refused beyond: even a microsecond a step would be twelve days."""

Rhs = Callable[[np.ndarray, float], np.ndarray]
Advance = Callable[[Rhs, np.ndarray, float, float], None]
Stages = Callable[[Rhs, np.ndarray, float, float], Iterator[np.ndarray]]
"""``stages(rhs, u, t, dt)`` takes a step as `Advance` does and, before it asks for a right-hand
side, yields the array of which it is: what elements know of others in that array is needed now."""


def steps(t0: float, t_end: float, dt: float) -> tuple[int, float]:
    """Divide an interval into equal steps no longer than `dt`.

    A loop ``while t < t_end`` adds a sliver or a whole step when dt is rounded, which can spoil an
    error by orders of magnitude; this divides first and counts then.

    Parameters
    ----------
    t0, t_end : float
        The interval; t_end may equal t0.
    dt : float
        The longest step allowed, up to rounding.

    Returns
    -------
    n : int
        Number of steps, 0 for an empty interval.
    dt : float
        (t_end - t0) / n; `dt` itself for an empty interval.

    Raises
    ------
    ValueError
        If a time is not finite, t_end lies before t0, dt is not positive and finite, or there would
        be more than `MOST_STEPS`.
    """
    for name, value in (("t0", t0), ("t_end", t_end)):
        if not math.isfinite(value):
            raise ValueError(f"{name} = {value}; allowed are finite times")
    if t_end < t0:
        raise ValueError(f"t_end = {t_end} lies before t0 = {t0}; allowed: t_end >= t0")
    if not (math.isfinite(dt) and dt > 0):
        raise ValueError(f"dt = {dt}; allowed: a positive, finite step")
    span = float(t_end) - float(t0)
    if span == 0:
        return 0, float(dt)
    share = span / float(dt) * (1 - ROUNDING)
    if share > MOST_STEPS:
        raise ValueError(
            f"t_end = {t_end}: {share:.3g} steps of dt = {dt:.4g}; allowed: up to {MOST_STEPS:.0e}"
        )
    n = max(1, math.ceil(share))
    return n, span / n


def real_type(dtype: Any) -> type:
    """The NumPy scalar type that an update kernel closes over.

    Raises
    ------
    ValueError
        If `dtype` is neither float32 nor float64.
    """
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype = {dtype!r}; allowed are float32 and float64")
    return np.dtype(dtype).type


def low_storage(A: Sequence[float], B: Sequence[float], C: Sequence[float]) -> Stages:
    """The stages of a step of a method that keeps two registers, the state u and its residual.

    Stage s is ``res = A_s res + dt rhs(u, t + C_s dt)``, then ``u = u + B_s res``.

    Returns
    -------
    function
        ``stages(rhs, u, t, dt)`` goes through one step from time t and changes `u` in place.
    """

    def stages(rhs: Rhs, u: np.ndarray, t: float, dt: float) -> Iterator[np.ndarray]:
        """The stages of a step from time t; u is changed in place."""
        res = np.zeros_like(u)
        for a, b, c in zip(A, B, C, strict=True):
            yield u
            res *= a
            res += dt * rhs(u, t + c * dt)
            u += b * res

    return stages


def advancing(stages: Stages) -> Advance:
    """What takes a step, all stages of it."""

    def advance(rhs: Rhs, u: np.ndarray, t: float, dt: float) -> None:
        """One step from time t; u is changed in place."""
        for _ in stages(rhs, u, t, dt):
            pass

    return advance


def integrator(advance: Advance) -> Callable[..., np.ndarray]:
    """The NumPy loop of a one-step method.

    Parameters
    ----------
    advance : function
        ``advance(rhs, u, t, dt)`` takes one step and changes `u` in place.

    Returns
    -------
    function
        ``integrate(rhs, u, t0, t_end, dt, progress=False)``.
    """

    def integrate(
        rhs: Rhs, u: np.ndarray, t0: float, t_end: float, dt: float, progress: bool = False
    ) -> np.ndarray:
        """Solve u' = rhs(u, t) from t0 to t_end with NumPy.

        Parameters
        ----------
        rhs : function
            ``rhs(u, t)`` returns an array of u's shape and must not change u.
        u : array of floats, real or complex, of any shape
            The state at t0; it is copied, and stays as it is whatever happens.
        t0, t_end : float
        dt : float
            The longest step; the interval is divided into equal ones (`dgbook.time.steps`).
        progress : bool
            Show a progress bar.

        Returns
        -------
        array of u's shape and dtype
            The state at t_end.

        Raises
        ------
        TypeError
            If u is not floating-point.
        ValueError
            If the interval or dt is invalid, or rhs returns another shape.
        """
        u = np.array(u, order="C")
        if u.dtype.kind not in "fc":
            raise TypeError(
                f"u has dtype {u.dtype}; allowed are real and complex floating-point types"
            )
        n, dt = steps(t0, t_end, dt)

        def checked(v: np.ndarray, t: float) -> np.ndarray:
            slope = np.asarray(rhs(v, t))
            if slope.shape != v.shape:
                raise ValueError(
                    f"rhs returned shape {slope.shape}; allowed is that of u, {v.shape}"
                )
            return slope

        for step in trange(n, disable=not progress, desc="time steps", leave=False):
            # Not accumulated: a sum of n rounded steps drifts away from t_end.
            advance(checked, u, float(t0) + step * dt, dt)
        return u

    return integrate
