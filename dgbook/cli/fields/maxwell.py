"""What ParaView gets to see of electromagnetic fields."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dgbook.cli.output import uneven, write_vtu
from dgbook.maxwell.solver import Solver


def write_fields(path: Path, solver: Solver, u: np.ndarray) -> None:
    """Write a state (6, K, Np): E and H as vectors, and the matter where it is not uniform."""
    matter = uneven({"epsilon": solver.operator.epsilon, "mu": solver.operator.mu})
    write_vtu(path, solver.mesh, solver.element, {"E": u[:3], "H": u[3:]}, matter)
