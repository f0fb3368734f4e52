"""What ParaView gets to see of an acoustic field."""

from __future__ import annotations

import numpy as np

from dgbook.acoustics.solver import Solver
from dgbook.cli.output import Shown


def shown(solver: Solver, u: np.ndarray) -> Shown:
    """Of a state (4, K, Np) pressure and velocity, and the medium."""
    medium = {"kappa": solver.operator.kappa, "rho": solver.operator.rho}
    return Shown(solver.element, {"pressure": u[0], "velocity": u[1:]}, medium)
