"""Explicit Runge-Kutta methods: coefficients, a NumPy loop and update kernels each."""

from dgbook.time import lsrk45, midpoint, ndb14, rk4, stability
from dgbook.time.stepping import MOST_STEPS, steps

__all__ = ["MOST_STEPS", "lsrk45", "midpoint", "ndb14", "rk4", "stability", "steps"]
