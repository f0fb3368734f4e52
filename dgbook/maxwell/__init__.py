"""Maxwell's equations on tetrahedra: klockner2009, and what its operator can be today."""

from dgbook.maxwell.problem import PlaneWave, Scatterer

__all__ = ["PlaneWave", "Scatterer"]
