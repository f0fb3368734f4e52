"""Acoustic waves on tetrahedra in two bases: chan2015, and what its operator can be today."""

from dgbook.acoustics import exact
from dgbook.acoustics.exact import PlaneWave
from dgbook.acoustics.solver import Solver

__all__ = ["PlaneWave", "Solver", "exact"]
