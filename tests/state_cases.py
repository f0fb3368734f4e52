"""States of all launchers that keep fields as they are: where, by the host, and solvers to ask."""

from typing import Any

import numpy as np

from dgbook import acoustics, euler, linear, maxwell
from dgbook.acoustics.plan import ElementPlan
from dgbook.euler.plan import PaperPlan
from dgbook.gpu import Device
from dgbook.mesh import box
from dgbook.nodal.solving import NodalSolver

SQUARE, CUBE = box((5, 7)), box((3, 2, 2))
WALLS = dict.fromkeys(SQUARE.boundary, "wall")


def _euler(device: Device, layout: str) -> euler.Solver:
    plan = PaperPlan(layout=layout)
    return euler.Solver(SQUARE, 2, "float32", device, boundary=WALLS, path="paper", plan=plan)


SOLVERS = {
    "linear": lambda device: linear.Solver(
        SQUARE, 3, linear.wave(2), boundary="absorbing", dtype="float32", device=device
    ),
    "linear, split": lambda device: linear.Solver(
        CUBE, 2, linear.wave(3), boundary="absorbing", device=device, path="split"
    ),
    "maxwell": lambda device: maxwell.Solver(CUBE, 2, "float32", device, flux="central"),
    "acoustics, by nodes": lambda device: acoustics.Solver(
        CUBE, 2, "float32", device, basis="nodal", path="paper"
    ),
    "acoustics, by elements": lambda device: acoustics.Solver(
        CUBE, 3, "float64", device, basis="nodal", path="paper", plan=ElementPlan(32, 32, 2)
    ),
    "acoustics, Bernstein": lambda device: acoustics.Solver(
        CUBE, 2, "float64", device, basis="bernstein", path="paper"
    ),
    "euler": lambda device: _euler(device, "element"),
    "euler, by fields": lambda device: _euler(device, "field"),
}


def _with_ghosts(launcher: Any, u: np.ndarray) -> np.ndarray:
    ghosts = launcher.operator.trace.ghosts
    return np.pad(u, ((0, 0), (0, ghosts), (0, 0))).reshape(len(u), -1)


def _in_microblocks(launcher: Any, u: np.ndarray) -> np.ndarray:
    layout, (n, K, Np) = launcher.layout, u.shape
    state = np.zeros((n, launcher.size), u.dtype)
    for k in range(K):
        state[:, layout.nodes[k] : layout.nodes[k] + Np] = u[:, k]
    return state.ravel()


LAYOUTS = {
    "linear": _with_ghosts,
    "linear, split": _with_ghosts,
    "maxwell": _in_microblocks,
    "acoustics, by nodes": lambda _, u: u.ravel(),
    "acoustics, by elements": lambda _, u: u.swapaxes(1, 2).ravel(),
    "acoustics, Bernstein": lambda _, u: u.ravel(),
    "euler": lambda _, u: u.swapaxes(0, 1).ravel(),
    "euler, by fields": lambda _, u: u.swapaxes(1, 2).ravel(),
}
"""What a state is on the device, made by the host."""


def random_state(solver: NodalSolver) -> np.ndarray:
    """Nodal values (n, K, Np), whatever they mean."""
    shape = len(solver.fields), solver.mesh.K, solver.element.Np
    return np.random.default_rng(2).standard_normal(shape).astype(solver.dtype)


def in_order(matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
    """matrix @ values (..., n) in float64, one column after the other, rounded at the end."""
    total = np.zeros(values.shape)
    for j, column in enumerate(matrix.T):
        total += values[..., j, None].astype(np.float64) * column
    return total.astype(values.dtype)
