"""What ParaView gets to see of a flow."""

from __future__ import annotations

import numpy as np

from dgbook.cli.output import Shown
from dgbook.element import NodalElement
from dgbook.euler.problem import GAMMA, pressure, sound_speed, velocity
from dgbook.euler.solver import Solver


def shown(solver: Solver, u: np.ndarray) -> Shown:
    """Of a state (4, K, Np) density, velocity, pressure, Mach number, s = log(p / rho^gamma).

    Order 0 has one node an element and nothing to draw between nodes: it is shown as order 1.
    """
    element = solver.element
    if element.order == 0:
        element = NodalElement(2, 1)
        u = np.repeat(u, element.Np, axis=2)
    v, p = velocity(u), pressure(u)
    fields = {
        "rho": u[0],
        "velocity": v,
        "pressure": p,
        "Mach": np.hypot(*v) / sound_speed(u),
        "entropy": np.log(p / u[0] ** GAMMA),
    }
    return Shown(element, fields, {})
