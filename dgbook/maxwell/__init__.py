"""Maxwell's equations on tetrahedra: klockner2009, and what its operator can be today."""

from dgbook.maxwell import exact, mie
from dgbook.maxwell.launch.fused import FusedPlan
from dgbook.maxwell.plan import PaperPlan
from dgbook.maxwell.problem import PlaneWave, Scatterer
from dgbook.maxwell.solver import Solver

__all__ = ["FusedPlan", "PaperPlan", "PlaneWave", "Scatterer", "Solver", "exact", "mie"]
