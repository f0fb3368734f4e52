"""What is measured of whole runs of Maxwell's equations: how soon they end, and how exact they are.

All runs of a problem end at the same time. They differ in the time step, the Runge-Kutta method and
the basis; rows call that a "variant", see `WAYS`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dgbook.gpu import Device
from dgbook.gpu.cost import Cost
from dgbook.gpu.timing import measure
from dgbook.lab.measuring import MESHES, Rows, cells_for, cube
from dgbook.lab.session import Session, Subject
from dgbook.maxwell.cost import FIELDS, costs
from dgbook.maxwell.exact import BoxMode
from dgbook.maxwell.problem import PlaneWave, Scatterer
from dgbook.maxwell.solver import Solver
from dgbook.mesh import Mesh, read
from dgbook.mesh.mesh import face_vertices
from dgbook.nodal.linear import name_of

BODY_ORDERS = (2, 4, 7)
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
    basis, method : str
        As of `Solver`.
    step : {"formula", "spectrum", "default"}
        ``cfl_dt()``, the rule of the book's first edition; ``stable_dt()``; or what the solver
        takes where no step is given.
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

    def dt(self, solver: Solver) -> float | None:
        """The longest step that the rule allows; None is the solver's default."""
        if self.step == "default":
            return None
        return solver.cfl_dt() if self.step == "formula" else solver.stable_dt()


WAYS = (
    Way("first edition", "nodal", "lsrk45", "formula"),
    Way("spectral step", "nodal", "lsrk45"),
    Way("14 stages", "nodal", "ndb14"),
    Way("Bernstein", "bernstein", "ndb14"),
    Way("Bernstein, 5 stages", "bernstein", "lsrk45"),
    Way("Bernstein, factored", "bernstein", "ndb14_factored"),
    Way("chosen", "auto", "auto", "default"),
)
EXACT = Way("truth", "bernstein", "lsrk45", "formula")


@dataclass(frozen=True)
class Problem:
    """What is solved.

    Attributes
    ----------
    name : {"cavity", "airplane", "sphere"}
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


@dataclass(frozen=True)
class Body:
    """A conducting body, and the sine wave that it scatters.

    Attributes
    ----------
    file : str
        Of the mesh around it, whose other boundary is "farfield".
    boundary : str
        Its name there.
    direction, polarization : 3 numbers
        As of `PlaneWave`.
    omega : float
    t_end : float
        Two periods.
    """

    file: str
    boundary: str
    direction: tuple[float, float, float]
    polarization: tuple[float, float, float]
    omega: float
    t_end: float


BODIES = {
    "airplane": Body("aeroplane.msh", "body", (1, 0, 0), (0, 0, 1), 2 * np.pi, 2.0),
    "sphere": Body("sphere_shell.msh", "sphere", (0, 0, 1), (1, 0, 0), 2.0, 2 * np.pi),
}


def scattering(name: str) -> Problem:
    """A sine wave that one of `BODIES` scatters: the scattered field, from rest.

    That of the airplane is the same as this command solves::

        python -m dgbook run maxwell --mesh chapters/meshes/aeroplane.msh --t-end 2
            --boundary body=scatterer --boundary farfield=absorbing
            --wave-shape sine --wave-parameter 6.283185307179586
    """
    body = BODIES[name]
    mesh = read(MESHES / body.file)
    k, f = mesh.boundary[body.boundary].T
    faces = mesh.vertices[mesh.elements[k[:, None], face_vertices(3)[f]]]
    first = float((faces @ np.array(body.direction, float)).min())
    wave = PlaneWave(body.direction, body.polarization, "sine", body.omega, delay=-first)
    boundary = {body.boundary: Scatterer(wave), "farfield": "absorbing"}
    return Problem(name, mesh, boundary, lambda x, y, z: 6 * [0 * x], body.t_end)


@lru_cache(maxsize=2)
def truth(name: str, order: int, device: Device) -> np.ndarray:
    """The fields around a body at the end, in fp64 by steps so short that time adds no error."""
    problem = scattering(name)
    solver = EXACT.solver(problem, order, "float64", device)
    u = solver.interpolate(problem.start)
    return solver.run(u, problem.t_end, solver.cfl_dt() / SHORTER)


@lru_cache(maxsize=2)
def error_in_space(name: str, order: int, device: Device) -> float:
    """How far the fields around a body are from those of the next order, in time as exact.

    Relative to their norm, in the energy norm: an estimate of the error in space.
    """
    problem = scattering(name)
    finer = Way("next order", "bernstein", "lsrk45").solver(problem, order + 1, "float64", device)
    better = finer.run(finer.interpolate(problem.start), problem.t_end, finer.stable_dt())
    coarse = EXACT.solver(problem, order, "float64", device).element
    same = truth(name, order, device) @ coarse.interpolation(finer.element.nodes).T
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
    if way.step != "formula":
        search_seconds = search(solver)
        rules["stable_dt"] = solver.stable_dt()
        searched = {"products": solver.spectrum.products, "search_seconds": search_seconds}
    u = solver.interpolate(problem.start)
    march = solver.march(u, problem.t_end, way.dt(solver))
    dt = march.dt
    timing = measure(march.step, device)
    seconds = []
    while len(seconds) < RUNS and sum(seconds) < ENOUGH:
        march, one = timed_run(solver, u, problem.t_end, dt)
        seconds.append(one)
    stages = len(solver.method.A)
    kernel = "bernstein" if solver.basis == "bernstein" else "fused"
    stage = costs(order, problem.mesh.K, dtype, solver.factored)[kernel]
    cost = Cost(stages * stage.flops, stages * stage.bytes)
    plan = getattr(solver.launcher, "plan", None)  # kernels for processor cores have none
    language = getattr(plan, "language", "numba")
    subject = Subject.of_state(u.shape, order, dtype)
    row = session.row(subject, kernel, language, plan, cost, timing)
    row |= {
        "problem": problem.name,
        "variant": way.variant,
        "method": name_of(solver.method),
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
    """Rows of the record maxwell/sooner: each of `WAYS` on the cavity and around `BODIES`.

    The cavity is cut into `SHARES` of about `dofs` degrees of freedom, and "error" is the relative
    L2 error at `CAVITY_END`. Around the bodies, at `BODY_ORDERS`, meshes are the book's, whatever
    `dofs` is; "error" is the relative difference, in the energy norm, from the same operator
    in fp64 with steps `SHORTER` times as short as the formula's, and "space" estimates the error
    in space, see `error_in_space`.
    """
    sizes = sorted({cells_for(dofs // share, order, FIELDS) for share in SHARES})
    for cells in sizes:
        problem = cavity(cells)
        for way in WAYS:
            row, solver, u = run_row(problem, way, order, dtype, session)
            row["size"]["cells"] = cells
            yield row | {"error": cavity_error(solver, u)}
    for name in BODIES if order in BODY_ORDERS else ():
        problem = scattering(name)
        exact = truth(name, order, session.device)
        space = error_in_space(name, order, session.device)
        for way in WAYS:
            row, solver, u = run_row(problem, way, order, dtype, session)
            yield row | {"error": difference(solver, u, exact), "space": space}
