"""What ParaView gets to see of electromagnetic fields."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dgbook.maxwell.solver import Solver
from dgbook.output import write_vtu


def write_fields(path: Path, solver: Solver, u: np.ndarray) -> None:
    """Write a state (6, K, Np): E and H as vectors, and the matter where it is not uniform."""
    operator = solver.operator
    matter = {"epsilon": operator.epsilon, "mu": operator.mu}
    uneven = {name: values for name, values in matter.items() if np.ptp(values) > 0}
    write_vtu(path, solver.mesh, solver.element, {"E": u[:3], "H": u[3:]}, uneven)
