"""What tests of meshes in parts share: problems of all families, and products row by row."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from dgbook import acoustics, euler, linear, maxwell, parallel
from dgbook.euler.exact import Vortex
from dgbook.mesh import Mesh, box
from dgbook.nodal.solving import NodalSolver

STEPS, DT = 3, 0.004
VORTEX = Vortex(period=10.0)
REFERENCE = "reference"


class ByRows(np.ndarray):
    """A matrix of which each row of a product is summed in one order, however many rows there are.

    Libraries for matrices have kernels for small and for large products, which add in different
    orders: what an element gets then depends, in its last bit, on how many elements there are.
    """

    def __rmatmul__(self, values: np.ndarray) -> np.ndarray:
        return np.einsum("...kj,...ji->...ki", values, np.asarray(self))


class Tables:
    """Those of the Euler equations, with matrices as `ByRows`."""

    def __init__(self, tables: Any) -> None:
        self.tables = tables

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.tables, name)
        matrices = {"phi_volume", "dphi_volume", "phi_trace", "inverse_mass"}
        return value.view(ByRows) if name in matrices else value


def _viewed(content: Any, *names: str) -> Any:
    return replace(content, **{name: getattr(content, name).view(ByRows) for name in names})


def by_rows(solver: NodalSolver) -> NodalSolver:
    """The solver, with matrices as `ByRows`."""
    operator = solver.operator
    if isinstance(solver, euler.Solver):
        operator = replace(operator, tables=Tables(operator.tables))
    elif not isinstance(solver, acoustics.Solver):
        operator = _viewed(operator, "derivative", "lift")
        if isinstance(solver, maxwell.Solver) and solver.basis == "bernstein":
            operator = replace(operator, basis=_viewed(operator.basis, "nodal", "coefficients"))
    else:
        nodal = solver.basis == "nodal"
        names = ("derivative", "lift_matrix") if nodal else ("nodal", "coefficients")
        operator = replace(operator, basis=_viewed(operator.basis, *names))
    solver.operator = operator
    return solver


Make = Callable[[Any], NodalSolver]


def case(family: str, mesh: Mesh, order: int, **settings: Any) -> Make:
    """``make(piece)`` of a family, with matter that differs from element to element."""
    matter = 1 + np.random.default_rng(5).random(mesh.K)
    if family == "linear":
        system = linear.wave(mesh.dim)
        walls = {name: "soft" if name[-1] == "+" else "absorbing" for name in mesh.boundary}
        return lambda p: linear.Solver(p.mesh, order, system, boundary=walls, **settings)
    if family == "maxwell":
        walls = {name: "pec" if name[0] == "x" else "absorbing" for name in mesh.boundary}
        return lambda p: maxwell.Solver(
            p.mesh, order, epsilon=matter[p.elements], boundary=walls, **settings
        )
    if family == "euler":
        return lambda p: euler.Solver(p.mesh, order, boundary=_vortex_outside, **settings)
    walls = {name: "rigid" if name[0] == "x" else "absorbing" for name in mesh.boundary}
    return lambda p: acoustics.Solver(
        p.mesh, order, basis=family, kappa=matter[p.elements], boundary=walls, **settings
    )


def _vortex_outside(x: np.ndarray, y: np.ndarray, t: float) -> list[np.ndarray]:
    return VORTEX(x, y, t)


def mesh_of(family: str, cells: int) -> Mesh:
    """A square or a cube, periodic in y; the square is bent, so that all normals differ."""
    if family in ("linear", "euler"):
        mesh = box((cells,) * 2, -5.0, 5.0, periodic=(False, True))
        x, y = mesh.vertices.T
        bent = [x + 0.5 * np.sin(np.pi * y / 5) * (1 - x**2 / 25), y + 0.3 * np.sin(x)]
        return replace(mesh, vertices=np.stack(bent, axis=1))
    return box((cells,) * 3, periodic=(False, True, False))


def whole(mesh: Mesh) -> SimpleNamespace:
    """The whole mesh as `make` wants it."""
    return SimpleNamespace(mesh=mesh, elements=np.arange(mesh.K))


def start(solver: NodalSolver) -> np.ndarray:
    """A state with something everywhere, of a gas a possible one."""
    if isinstance(solver, euler.Solver):
        return solver.interpolate(lambda x, y: VORTEX(x, y, 0.0))
    shape = len(solver.fields), solver.mesh.K, solver.element.Np
    return np.random.default_rng(7).standard_normal(shape).astype(solver.dtype)


def in_parts(make: Make, mesh: Mesh, u: np.ndarray, **how: Any) -> np.ndarray | None:
    """The whole state after some steps by a solver in parts."""
    solver = parallel.Solver(make, mesh, **how)
    return solver.gather(solver.run(solver.scatter(u), STEPS * DT, DT))


def roundings_of_less(make: Make, mesh: Mesh, steps: int, dt: float) -> float:
    """How far two parts are that send what the flux needs from two that send whole traces.

    In roundings of the largest value, after some steps.
    """
    states = []
    for traces in parallel.TRACES:
        many = parallel.Solver(make, mesh, parts=2, traces=traces)
        u = many.scatter(start(make(whole(mesh))))
        states.append(many.gather(many.run(u, steps * dt, dt)))
    eps = np.finfo(states[0].dtype).eps
    return np.abs(states[0] - states[1]).max() / eps / np.abs(states[0]).max()
