"""Linear systems with constant coefficients on simplices: advection and waves in 1D, 2D and 3D."""

from .plan import Plan
from .problem import System, advection, standing_wave, transported, wave
from .solver import Solver

__all__ = ["Plan", "Solver", "System", "advection", "standing_wave", "transported", "wave"]
