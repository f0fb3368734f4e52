"""What is measured of whole runs of Maxwell's equations: how soon they end, and how exact they are.

All runs of a problem end at the same time. They differ in the time step, the Runge-Kutta method and
the basis; rows call that a "variant", see `WAYS`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.gpu import Device
from dgbook.gpu.cost import Cost
from dgbook.gpu.timing import measure
from dgbook.lab.measuring import Rows, cells_for, cube
from dgbook.lab.session import Session, Subject
from dgbook.maxwell.cost import FIELDS, costs
from dgbook.maxwell.exact import BoxMode
from dgbook.maxwell.problem import PlaneWave, Scatterer
from dgbook.maxwell.solver import Solver
from dgbook.mesh import Mesh, read
from dgbook.mesh.mesh import face_vertices

MESH = Path(__file__).parents[2] / "chapters" / "meshes" / "aeroplane.msh"
AIRPLANE_ORDERS = (2, 4, 7)
AIRPLANE_END = 2.0
CAVITY_END = 2.0
CAVITY_MODE = BoxMode(3, 3, 3)
CAVITY_NORM = np.sqrt(3) / 4
"""The L2 norm of all six fields of that mode, at any time."""
SHARES = (16, 4, 1)
"""Meshes of the cavity have about so many times fewer degrees of freedom than asked for."""
SHORTER = 2
"""By how many times the steps of the truth are shorter than the formula's."""
RUNS, ENOUGH = 3, 2.0
"""A run is timed so often, or until all of them took so many seconds together."""


@dataclass(frozen=True)
class Way:
    """How a run goes about it.

    Attributes
    ----------
    variant : str
        What rows call it.
    basis : {"nodal", "bernstein"}
    method : {"lsrk45", "ndb14"}
    step : {"formula", "spectrum"}
        ``cfl_dt()``, the rule of the book's first edition, or ``stable_dt()``.
    """

    variant: str
    basis: str
    method: str
    step: str = "spectrum"

    def solver(self, problem: Problem, order: int, dtype: str, device: Device) -> Solver:
        """What solves the problem in this way."""
        return Solver(
            problem.mesh,
            order,
            dtype,
            device,
            boundary=problem.boundary,
            basis=self.basis,
            method=self.method,
        )

    def dt(self, solver: Solver) -> float:
        """The longest step that the rule allows."""
        return solver.cfl_dt() if self.step == "formula" else solver.stable_dt()


WAYS = (
    Way("first edition", "nodal", "lsrk45", "formula"),
    Way("spectral step", "nodal", "lsrk45"),
    Way("14 stages", "nodal", "ndb14"),
    Way("Bernstein", "bernstein", "ndb14"),
    Way("Bernstein, 5 stages", "bernstein", "lsrk45"),
)
EXACT = Way("truth", "bernstein", "lsrk45", "formula")


@dataclass(frozen=True)
class Problem:
    """What is solved.

    Attributes
    ----------
    name : {"cavity", "airplane"}
    mesh : Mesh
    boundary : condition or dict
        As of `Solver`.
    start : function
        The six fields at t = 0, of (x, y, z).
    t_end : float
    """

    name: str
    mesh: Mesh
    boundary: Any
    start: Callable
    t_end: float


# ------------------------------------------------------------------------------------- problems


def cavity(cells: int) -> Problem:
    """A standing wave in the unit cube between conducting walls."""
    return Problem(
        "cavity", cube(cells), "pec", lambda x, y, z: CAVITY_MODE(x, y, z, 0.0), CAVITY_END
    )


def cavity_error(solver: Solver, u: np.ndarray) -> float:
    """The L2 error of the fields at the end, relative to their norm."""
    return solver.l2_error(u, CAVITY_MODE, CAVITY_END) / CAVITY_NORM


def airplane() -> Problem:
    """A sine wave that an airplane scatters: the scattered field, from rest.

    The same as this command solves::

        python -m dgbook run maxwell --mesh chapters/meshes/aeroplane.msh --t-end 2
            --boundary body=scatterer --boundary farfield=absorbing
            --wave-shape sine --wave-parameter 6.283185307179586
    """
    mesh = read(MESH)
    k, f = mesh.boundary["body"].T
    nose = mesh.vertices[mesh.elements[k[:, None], face_vertices(3)[f]], 0].min()
    wave = PlaneWave((1, 0, 0), (0, 0, 1), "sine", 2 * np.pi, delay=-float(nose))
    boundary = {"body": Scatterer(wave), "farfield": "absorbing"}
    return Problem("airplane", mesh, boundary, lambda x, y, z: 6 * [0 * x], AIRPLANE_END)


@lru_cache(maxsize=2)
def airplane_truth(order: int, device: Device) -> np.ndarray:
    """The airplane's fields at the end, in fp64 by steps so short that time adds no error."""
    problem = airplane()
    solver = EXACT.solver(problem, order, "float64", device)
    u = solver.interpolate(problem.start)
    return solver.run(u, problem.t_end, solver.cfl_dt() / SHORTER)


@lru_cache(maxsize=1)
def airplane_in_space(order: int, device: Device) -> float:
    """How far the airplane's fields are from those of the next order, in time as exact.

    Relative to their norm, in the energy norm: an estimate of the error in space.
    """
    problem = airplane()
    finer = Way("next order", "bernstein", "lsrk45").solver(problem, order + 1, "float64", device)
    better = finer.run(finer.interpolate(problem.start), problem.t_end, finer.stable_dt())
    coarse = EXACT.solver(problem, order, "float64", device).element
    same = airplane_truth(order, device) @ coarse.interpolation(finer.element.nodes).T
    return difference(finer, same, better)


def difference(solver: Solver, u: np.ndarray, truth: np.ndarray) -> float:
    """The energy norm of u - truth, relative to that of the truth."""
    return float(np.sqrt(solver.energy(u.astype(np.float64) - truth) / solver.energy(truth)))


# ----------------------------------------------------------------------------------------- runs


def run_row(
    problem: Problem, way: Way, order: int, dtype: str, session: Session
) -> tuple[dict[str, Any], Solver, np.ndarray]:
    """A run of a problem as a row without its errors, the solver, and the state at the end.

    Returns
    -------
    dict
        A row whose seconds are those of one step. Beside it "steps", "stages" of all of them, "dt",
        the steps that the rules allow, "run_seconds" of the loop over all steps as the command
        `run` takes them, "products" and "search_seconds" of the search for the spectrum.
    """
    device = session.device
    solver = way.solver(problem, order, dtype, device)
    rules = {"cfl_dt": solver.cfl_dt(), "accurate_dt": solver.accurate_dt()}
    searched = {}
    if way.step == "spectrum":
        search_seconds = search(solver)
        rules["stable_dt"] = solver.stable_dt()
        searched = {"products": solver.spectrum.products, "search_seconds": search_seconds}
    u, dt = solver.interpolate(problem.start), way.dt(solver)
    timing = measure(solver.march(u, problem.t_end, dt).step, device)
    seconds = []
    while len(seconds) < RUNS and sum(seconds) < ENOUGH:
        march, one = timed_run(solver, u, problem.t_end, dt)
        seconds.append(one)
    stages = len(solver.method.A)
    kernel = "bernstein" if way.basis == "bernstein" else "fused"
    stage = costs(order, problem.mesh.K, dtype)[kernel]
    cost = Cost(stages * stage.flops, stages * stage.bytes)
    plan = getattr(solver.launcher, "plan", None)  # kernels for processor cores have none
    language = getattr(plan, "language", "numba")
    subject = Subject.of_state(u.shape, order, dtype)
    row = session.row(subject, kernel, language, plan, cost, timing)
    row |= {
        "problem": problem.name,
        "variant": way.variant,
        "method": way.method,
        "step": True,
        "t_end": problem.t_end,
        "dt": march.dt,
        "steps": march.count,
        "stages": march.count * stages,
        "run_seconds": float(np.median(seconds)),
        "runs": len(seconds),
    }
    return row | rules | searched, solver, march.state()


def timed_run(solver: Solver, u: np.ndarray, t_end: float, dt: float) -> tuple[Any, float]:
    """A march that is at its end, and the seconds that its steps took, as `run` takes them."""
    march = solver.march(u, t_end, dt)
    watch = solver.watch(march)
    solver.device.synchronize()
    begin = time.perf_counter()
    while march.done < march.count:
        watch.step()
    solver.device.synchronize()
    return march, time.perf_counter() - begin


def search(solver: Solver) -> float:
    """Seconds that the search for the spectrum takes when all kernels have been compiled."""
    assert solver.spectrum is not None  # of a problem that is far smaller than memory
    del solver.spectrum  # it was kept; the second search is timed
    solver.device.synchronize()
    begin = time.perf_counter()
    assert solver.spectrum is not None
    solver.device.synchronize()
    return time.perf_counter() - begin


# -------------------------------------------------------------------------------------- records


def sooner_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record maxwell/sooner: each of `WAYS` on the cavity and on the airplane.

    The cavity is cut into `SHARES` of about `dofs` degrees of freedom, and "error" is the relative
    L2 error at `CAVITY_END`. The airplane, at `AIRPLANE_ORDERS`, has the book's mesh, whatever
    `dofs` is; its "error" is the relative difference, in the energy norm, from the same operator
    in fp64 with steps `SHORTER` times as short as the formula's, and "space" estimates the error
    in space, see `airplane_in_space`.
    """
    sizes = sorted({cells_for(dofs // share, order, FIELDS) for share in SHARES})
    for cells in sizes:
        problem = cavity(cells)
        for way in WAYS:
            row, solver, u = run_row(problem, way, order, dtype, session)
            row["size"]["cells"] = cells
            yield row | {"error": cavity_error(solver, u)}
    if order not in AIRPLANE_ORDERS:
        return
    problem = airplane()
    truth = airplane_truth(order, session.device)
    space = airplane_in_space(order, session.device)
    for way in WAYS:
        row, solver, u = run_row(problem, way, order, dtype, session)
        yield row | {"error": difference(solver, u, truth), "space": space}
