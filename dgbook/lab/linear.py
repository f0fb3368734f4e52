"""What is measured of linear systems on a GPU: operators, stages by every path, and rivals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dgbook.element import space_dimension
from dgbook.gpu import Device
from dgbook.gpu.timing import measure
from dgbook.lab.floor import Ceilings
from dgbook.lab.numbers import live
from dgbook.lab.rivals import linear as matmul
from dgbook.lab.session import Session, Subject
from dgbook.linear import reference
from dgbook.linear.cost import Cost, costs
from dgbook.linear.plan import Plan
from dgbook.linear.problem import System, advection, wave
from dgbook.linear.solver import Solver
from dgbook.mesh import Mesh, along_a_curve, box, renumber
from dgbook.time import lsrk45

VELOCITY = (1.0, 0.5, 0.25)
MEASURED = ("volume", "surface", "update", "split", "fused", "rival:cupy-matmul", "numpy")
STAGE = 1  # its |A_s| is below 1: repeated on one state, nothing grows
NUMPY_DOFS = 2**18


def measured(solver: Solver, ceiling: Ceilings, paths: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The rows of a record for one solver on a GPU, see ``records.validate``.

    The rival is a whole stage, and so is "numpy": the reference on this machine's CPU, on a mesh
    of its own, smaller one, against the same GPU's floor.
    """
    counted = costs(solver.shape, solver.mesh.K, solver.system, solver.operator.flux)
    session = Session(solver.device, ceiling)
    on_gpu = [path for path in paths if path != "numpy"]
    for path, function in _functions(solver).items() if on_gpu else ():
        if path in on_gpu:
            cost = counted["fused" if path.startswith("rival:") else path]
            language = "cupy" if path.startswith("rival:") else "numba"
            plan = None if path.startswith("rival:") else solver.plan
            timing = measure(function, solver.device)
            yield session.row(_subject(solver, cost), path, language, plan, cost, timing)
    if "numpy" in paths:
        small = solver_of(
            solver.mesh.dim,
            solver.system.name,
            solver.element.order,
            NUMPY_DOFS,
            solver.dtype.name,
            session.on_host.device,
        )
        cost = costs(small.shape, small.mesh.K, small.system, small.operator.flux)["fused"]
        timing = measure(_numpy_stage(small), small.device, samples=20, warmup=1)
        subject = _subject(small, cost)
        yield session.on_host.row(subject, "numpy", "numpy", None, cost, timing)


def under_every_plan(solver: Solver, ceiling: Ceilings) -> Iterator[dict[str, Any]]:
    """Rows of the fused stage, one for each plan that is legal."""
    cost = costs(solver.shape, solver.mesh.K, solver.system, solver.operator.flux)["fused"]
    for plan in solver.plan.candidates(solver.shape):
        timing = measure(fused_stage(solver, plan), solver.device)
        session = Session(solver.device, ceiling)
        yield session.row(_subject(solver, cost), "fused", "numba", plan, cost, timing)


def numberings(solver: Solver, ceiling: Ceilings) -> Iterator[dict[str, Any]]:
    """Rows of the fused stage on one mesh whose elements are numbered in several ways.

    "numbering" says which: as they are generated, along Morton's curve, at random.
    """
    cost = costs(solver.shape, solver.mesh.K, solver.system, solver.operator.flux)["fused"]
    session = Session(solver.device, ceiling)
    orders = {
        "generated": np.arange(solver.mesh.K),
        "curve": along_a_curve(solver.mesh),
        "random": np.random.default_rng(0).permutation(solver.mesh.K),
    }
    for name, order in orders.items():
        numbered = on_mesh(
            renumber(solver.mesh, order), solver.system, solver.element.order, solver.dtype,
            solver.device,
        )  # fmt: skip
        timing = measure(fused_stage(numbered, numbered.plan), solver.device)
        subject = _subject(numbered, cost)
        row = session.row(subject, "fused", "numba", numbered.plan, cost, timing)
        yield row | {"numbering": name}


def line(row: dict[str, Any], device: Device) -> str:
    """A row as a line of text, its numbers labeled LIVE."""
    duration, rate, traffic, efficiency = (
        live(row, unit, device) for unit in ("us", "GDOF/s", "GB/s", "efficiency")
    )
    return (
        f"{row['size']['dim']}D N={row['order']} {row['dtype']} {row['path']:18} "
        f"{duration.text():>11} {traffic.text():>10} efficiency {efficiency.text('.2f')} {rate} "
        f"{row['plan']}"
    )


def _subject(solver: Solver, cost: Cost) -> Subject:
    """What the rows about a solver's operators share, with the bytes of traces of one of them."""
    size = {
        "dim": solver.mesh.dim,
        "system": solver.system.name,
        "K": solver.mesh.K,
        "Np": solver.element.Np,
        "fields": solver.system.n,
    }
    more = {"trace_bytes": cost.trace_bytes}
    return Subject(solver.element.order, solver.dtype, size, dofs(solver), more)


def _functions(solver: Solver) -> dict[str, Callable[[], None]]:
    """What is timed on the GPU: launches, recorded where there are several."""
    launcher, dt = solver.launcher, 1e-3 * solver.cfl_dt()
    u, res, rhs = (launcher.upload(_noise(solver)) for _ in range(3))

    def volume() -> None:
        launcher.volume(u, rhs)

    def surface() -> None:
        launcher.surface(u, rhs)

    def update() -> None:
        launcher.update(rhs, res, u, lsrk45.A[STAGE], lsrk45.B[STAGE], dt)

    def split() -> None:
        volume()
        surface()
        update()

    def rival() -> None:
        matmul.stage(launcher, u, res, STAGE, dt)

    stages = {"volume": volume, "surface": surface, "update": update, "split": split}
    recorded = {path: solver.device.capture(stage) for path, stage in stages.items()}
    return recorded | {"fused": fused_stage(solver, solver.plan), "rival:cupy-matmul": rival}


def fused_stage(solver: Solver, plan: Plan) -> Callable[[], None]:
    """A fused stage under a plan, recorded."""
    launcher = solver.launcher.planned(plan)
    u, res = (launcher.upload(_noise(solver)) for _ in range(2))
    new, dt = launcher.zeros(), solver.cfl_dt()

    def stage() -> None:
        launcher.fused(u, res, new, lsrk45.A[STAGE], lsrk45.B[STAGE], dt)

    return solver.device.capture(stage)


def _numpy_stage(solver: Solver) -> Callable[[], None]:
    """A stage by the reference."""
    u, res = _noise(solver), _noise(solver)
    a, b, dt = lsrk45.A[STAGE], lsrk45.B[STAGE], 1e-3 * solver.cfl_dt()

    def stage() -> None:
        nonlocal res, u
        res = a * res + dt * reference.rhs(solver.operator, u)
        u = u + b * res

    return stage


def solver_of(dim: int, name: str, order: int, dofs: int, dtype: str, device: Device) -> Solver:
    """A solver on a box with about so many degrees of freedom."""
    system = system_of(name, dim)
    in_a_cell = system.n * space_dimension(dim, order) * math.factorial(dim)
    cells = max(1, round((dofs / in_a_cell) ** (1 / dim)))
    return on_mesh(mesh_of((cells,) * dim, name), system, order, dtype, device)


def on_mesh(mesh: Mesh, system: System, order: int, dtype: str, device: Device) -> Solver:
    """A solver of a system with the upwind flux."""
    return Solver(mesh, order, system, "upwind", boundary_of(system.name), dtype, device)


def mesh_of(cells: tuple[int, ...], name: str) -> Mesh:
    """The unit box, periodic for advection."""
    return box(cells, periodic=name == "advection")


def system_of(name: str, dim: int) -> System:
    """Advection with `VELOCITY`, or the wave system."""
    return advection(VELOCITY[:dim]) if name == "advection" else wave(dim)


def boundary_of(name: str) -> str | None:
    """Walls around the wave system, nothing for advection, whose box is periodic."""
    return None if name == "advection" else "wall"


def _noise(solver: Solver) -> np.ndarray:
    shape = (solver.system.n, solver.mesh.K, solver.element.Np)
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32).astype(solver.dtype)


def dofs(solver: Solver) -> int:
    """Degrees of freedom, nodes times fields."""
    return solver.system.n * solver.mesh.K * solver.element.Np
