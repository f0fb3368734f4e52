"""Explicit Runge-Kutta methods: coefficients, a NumPy loop and update kernels each."""

from dgbook.time import factors, lsrk45, midpoint, ndb14, ndb14_factored, rk4, stability
from dgbook.time.stepping import MOST_STEPS, steps

__all__ = [
    "MOST_STEPS",
    "factors",
    "lsrk45",
    "midpoint",
    "ndb14",
    "ndb14_factored",
    "rk4",
    "stability",
    "steps",
]
