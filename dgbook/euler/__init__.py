"""The Euler equations on triangles: chen, and what quadrature DG can be today."""

from dgbook.euler import exact
from dgbook.euler.solver import FlowError, Solver

__all__ = ["FlowError", "Solver", "exact"]
