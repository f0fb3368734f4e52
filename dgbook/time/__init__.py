"""Explicit Runge-Kutta methods: coefficients, a NumPy loop and update kernels each."""

from dgbook.time import lsrk45, midpoint, rk4
from dgbook.time.stepping import steps

__all__ = ["lsrk45", "midpoint", "rk4", "steps"]
