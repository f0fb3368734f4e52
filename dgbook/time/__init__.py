"""Explicit Runge-Kutta methods: coefficients, a NumPy loop and update kernels each."""

from dgbook.time import lsrk45, midpoint, rk4
from dgbook.time.stepping import MOST_STEPS, steps

__all__ = ["MOST_STEPS", "lsrk45", "midpoint", "rk4", "steps"]
