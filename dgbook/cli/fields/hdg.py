"""What ParaView gets to see of a solution."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dgbook.cli.output import write_vtu
from dgbook.element import NodalElement
from dgbook.hdg.problem import NavierStokes
from dgbook.hdg.solver import Result


def write_fields(path: Path, result: Result) -> None:
    """Write u and its gradient q of each field, or `flow_fields` of a gas, at the nodes.

    Order 0 has one node an element and nothing to draw between nodes: it is written as order 1.
    """
    d = result.discretization
    if isinstance(d.problem, NavierStokes):
        fields = flow_fields(d.problem, result.u, result.q)
    else:
        fields = {}
        for name, u, q in zip(d.problem.names(d.mesh.dim), result.u, result.q, strict=True):
            fields |= {name: u, name.replace("u", "q"): q}
    element = d.element
    if element.order == 0:
        element = NodalElement(d.mesh.dim, 1)
        fields = {name: np.repeat(values, element.Np, axis=-1) for name, values in fields.items()}
    write_vtu(path, d.mesh, element, fields, {})


def flow_fields(gas: NavierStokes, u: np.ndarray, q: np.ndarray) -> dict[str, np.ndarray]:
    """Of a gas in two dimensions, from u (4, ...) and q (4, 2, ...).

    Returns
    -------
    dict
        rho, velocity (2, ...), pressure, temperature, Mach number and vorticity dv/dx - du/dy.
    """
    v, p = u[1:-1] / u[0], gas.pressure(u)
    slope = gas.velocity_gradient(u, q)
    return {
        "rho": u[0],
        "velocity": v,
        "pressure": p,
        "temperature": gas.temperature(u),
        "Mach": np.sqrt((v * v).sum(axis=0) / (gas.gamma * p / u[0])),
        "vorticity": slope[1, 0] - slope[0, 1],
    }
