"""What ParaView gets to see of electromagnetic fields."""

from __future__ import annotations

import numpy as np

from dgbook.cli.output import Shown
from dgbook.maxwell.solver import Solver


def shown(solver: Solver, u: np.ndarray) -> Shown:
    """Of a state (6, K, Np) E and H as vectors, and the matter."""
    matter = {"epsilon": solver.operator.epsilon, "mu": solver.operator.mu}
    return Shown(solver.element, {"E": u[:3], "H": u[3:]}, matter)
