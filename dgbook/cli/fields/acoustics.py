"""What ParaView gets to see of an acoustic field."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dgbook.acoustics.solver import Solver
from dgbook.cli.output import uneven, write_vtu


def write_fields(path: Path, solver: Solver, u: np.ndarray) -> None:
    """Write a state (4, K, Np): pressure, velocity, and the medium where it is not uniform."""
    medium = uneven({"kappa": solver.operator.kappa, "rho": solver.operator.rho})
    write_vtu(path, solver.mesh, solver.element, {"pressure": u[0], "velocity": u[1:]}, medium)
