"""What is measured of the Euler equations: stages, their parts, the tables of chen, vortices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from dgbook.element import NodalElement, barycentric
from dgbook.element.frozen import read_only
from dgbook.euler import reference
from dgbook.euler.cores import Cores
from dgbook.euler.cost import PAPER, STAGES, costs
from dgbook.euler.exact import StrongVortex, Vortex
from dgbook.euler.launch.fused import FusedLauncher
from dgbook.euler.launch.paper import PaperLauncher
from dgbook.euler.plan import THREADS, FusedPlan, FusedShape, PaperPlan
from dgbook.euler.problem import pressure, velocity
from dgbook.euler.solver import FlowError, Solver
from dgbook.gpu import Device
from dgbook.gpu import device as find_device
from dgbook.gpu.cost import Cost
from dgbook.gpu.plan import choose, shipped
from dgbook.gpu.timing import Timing, measure
from dgbook.gpu.tune import Result, tune
from dgbook.lab import measuring
from dgbook.lab.measuring import Rows, counted, launch_counted
from dgbook.lab.rivals.euler import ArraySteps
from dgbook.lab.session import Session, Subject
from dgbook.mesh import Mesh, box, nodes_xyz
from dgbook.time import rk4

Launcher = FusedLauncher | PaperLauncher | Cores
LOWER, UPPER = -5.0, 5.0  # chen's box
CORE_DOFS = 2**17
BLOCK_CELLS = (160, 320)  # chen, Table 1
CELLS = (32, 64, 128, 256, 512, 1024)  # chen, Table 2 and Figure 3, and once more
LARGEST_ON_ONE_CORE = 512
LARGE_CELLS = 1152  # from p = 1 on every stage moves four times the largest cache, an H200's
KERNEL_CELLS = 128  # chen, Table 3
FIGURE_2_CELLS = (16, 64)
FIGURE_2_END = 10.0
PERIODS = (1, 5, 10)
VORTEX_CELLS = 64
"""Cells along each side at p = 1 of the box in which vortices travel for periods."""


# ------------------------------------------------------------------------------------- problems


@lru_cache(maxsize=2)
def square(cells: int) -> Mesh:
    """chen's periodic box [-5, 5]^2 in cells^2 squares of two triangles."""
    return box((cells, cells), LOWER, UPPER, periodic=True)


def cells_for(dofs: int, order: int) -> int:
    """Cells along each side of a square with about so many degrees of freedom."""
    return max(1, round((dofs / (4 * (order + 1) * (order + 2))) ** 0.5))


def operator_on(cells: int, order: int, dtype: str) -> reference.Operator:
    """The operator with Roe's flux in chen's box."""
    return reference.assemble(square(cells), NodalElement(2, order), dtype=dtype)


@lru_cache(maxsize=1)
def whirl(operator: reference.Operator) -> np.ndarray:
    """chen's vortex at t = 0 at the nodes of an operator, (4, K, Np), read-only."""
    vortex = Vortex(period=UPPER - LOWER)
    u = vortex(*nodes_xyz(operator.mesh, operator.element.nodes), 0.0)
    return read_only(u.astype(operator.tables.dtype))


def small_dt(operator: reference.Operator) -> float:
    """A step so short that a state hardly changes, however often it is repeated."""
    return 1e-4 / float(operator.face_scale.max())


def subject_of(operator: reference.Operator) -> Subject:
    """What the rows about an operator share."""
    tables = operator.tables
    return Subject.of_state((4, operator.mesh.K, tables.Np), tables.order, tables.dtype)


def part_of(timing: Timing, parts: int) -> Timing:
    """The timing of one of several equal parts of what was timed."""
    return replace(timing, seconds=tuple(seconds / parts for seconds in timing.seconds))


def costs_of(operator: reference.Operator) -> dict[str, Cost]:
    """What each part of the operator costs, see `dgbook.euler.cost`."""
    tables = operator.tables
    return costs(tables.order, operator.mesh.K, tables.dtype, len(operator.edges), operator.flux)


# ---------------------------------------------------------------------------------- stages, steps


def stepper(launcher: Launcher) -> Callable[[], None]:
    """What launches a step of either launcher from chen's vortex."""
    operator = launcher.operator
    u = launcher.upload(whirl(operator))
    work, data, dt = launcher.work(u), 3 * (no_data(launcher),), small_dt(operator)
    return lambda: launcher.step(u, work, data, dt)


def stage_timing(launcher: Launcher) -> Timing:
    """Seconds of a stage, as a mean over the four of a recorded step."""
    device = launcher.device
    return part_of(measure(device.capture(stepper(launcher)), device), STAGES)


def parts_of(launcher: PaperLauncher) -> dict[str, tuple[Callable[[], None], int]]:
    """The paper's kernels: functions that launch them, and for how many stages that is.

    Of the updates these are all four of a step, and the check comes once a step.
    """
    operator = launcher.operator
    u = launcher.upload(whirl(operator))
    data, slope, v, total = no_data(launcher), *(launcher.zeros() for _ in range(3))
    dt, real, block = small_dt(operator), launcher.real, launcher.plan.threads
    grid = -(-launcher.size // block)

    def update() -> None:
        start = u
        for a, b in zip(rk4.A[1:], rk4.B[:3], strict=True):
            launch = launcher.kernels["intermediate"][grid, block]
            launch(slope, u, start, total, v, real(dt * a), real(dt * b))
            start = total
        launcher.kernels["final"][grid, block](slope, total, u, real(dt * rk4.B[3]))

    functions = (
        (lambda: launcher.volume(u), 1),
        (lambda: launcher.face(u, data), 1),
        (launcher.add, 1),
        (lambda: launcher.invert(slope), 1),
        (update, STAGES),
        (lambda: launcher.check(u), STAGES),
    )
    return dict(zip(PAPER, functions, strict=True))


def no_data(launcher: Launcher) -> Any:
    """The states outside a box without a boundary: one number that nobody reads."""
    return launcher.device.zeros(1, launcher.operator.tables.dtype)


def fused_rows(operator: reference.Operator, session: Session, every: bool = True) -> Rows:
    """A stage in one kernel by the best plan known, and if `every` also in Numba."""
    cost = costs_of(operator)["fused"]
    launcher = FusedLauncher(operator, session.device)
    plans = [launcher.plan]
    if every:
        plans.append(choose(FusedPlan, launcher.shape, session.device, "numba"))
    for plan in dict.fromkeys(plans):
        timing = stage_timing(launcher.planned(plan))
        yield session.row(subject_of(operator), "fused", plan.language, plan, cost, timing)


def paper_row(operator: reference.Operator, session: Session, plan: PaperPlan) -> dict[str, Any]:
    """A stage by the paper's kernels."""
    launcher = PaperLauncher(operator, session.device, plan)
    timing = stage_timing(launcher)
    cost = costs_of(operator)["atomic" if plan.race == "atomic" else "paper"]
    return session.row(subject_of(operator), "paper", "numba", plan, cost, timing)


def part_rows(operator: reference.Operator, session: Session, plan: PaperPlan) -> Rows:
    """The paper's kernels one by one, each as much as a stage needs on average."""
    cost = costs_of(operator)
    launcher = PaperLauncher(operator, session.device, plan)
    for part, (function, stages) in parts_of(launcher).items():
        timing = part_of(measure(session.device.capture(function), session.device), stages)
        yield session.row(subject_of(operator), part, "numba", plan, cost[part], timing)


def rival_row(operator: reference.Operator, session: Session) -> dict[str, Any]:
    """A stage by the reference's own lines on the GPU, by CuPy and cuBLAS."""
    cost = costs_of(operator)["fused"]
    device, dt = session.device, small_dt(operator)
    rival, u = ArraySteps(operator, device), device.array(whirl(operator))
    timing = part_of(measure(lambda: rival.step(u, dt), device), STAGES)
    return session.row(subject_of(operator), "rival:cupy", "cupy", None, cost, timing)


def core_row(operator: reference.Operator, cores: int, session: Session) -> dict[str, Any]:
    """A stage on one or several cores of this machine's processor, as device "cpu" computes it.

    "cores" is how many, in the row's size. Floors and efficiencies are still the GPU's.
    """
    host = session.on_host
    launcher = Cores(operator, host.device)
    with measuring.on_cores(cores):
        timing = part_of(measure(stepper(launcher), host.device, 20, 1, 1), STAGES)
    cost = costs_of(operator)["fused"]
    subject = subject_of(operator).sized(cores=cores)
    return host.row(subject, "cores", "numba", None, cost, timing)


# ---------------------------------------------------------------------------------------- plans


def tune_paper(operator: reference.Operator, device: Device) -> Result:
    """Time a step with each plan of the paper's kernels and remember the timings."""
    tables = operator.tables
    launcher = PaperLauncher(operator, device, PaperPlan())

    def run(plan: PaperPlan) -> Callable[[], None]:
        return device.capture(stepper(launcher.planned(plan)))

    shape = FusedShape(tables.order, tables.dtype)
    plans, name = launcher.plan.candidates(shape), launcher.plan.subject(shape)
    return tune(name, plans, run, device, tables.order, tables.dtype, progress=False)


def tune_fused(operator: reference.Operator, device: Device, language: str) -> Result:
    """Time a step with plans of the fused kernel and remember the timings.

    Parameters
    ----------
    operator, device
    language : {"cuda", "numba"}
    """
    shape = FusedShape(operator.tables.order, operator.tables.dtype)
    start = shipped(FusedPlan, shape, device.compute_capability, language)
    launcher = FusedLauncher(operator, device, start)

    def run(plan: Any) -> Callable[[], None]:
        return device.capture(stepper(launcher.planned(plan)))

    plans, name = start.candidates(shape), start.subject(shape)
    return tune(name, plans, run, device, shape.order, shape.dtype, progress=False)


def levers() -> dict[str, PaperPlan]:
    """Each lever of the paper alone, against the paper's plan, and what chen left open."""
    paper = PaperPlan()
    return {
        "paper": paper,
        "tables in global memory": replace(paper, tables="global"),
        "32 registers": replace(paper, max_registers=32),
        "64 registers": replace(paper, max_registers=64),
        "128 registers": replace(paper, max_registers=128),
        "one stream": replace(paper, concurrent=False),
        "one stream, atomic additions": replace(paper, concurrent=False, race="atomic"),
        "128 threads": replace(paper, threads=128),
        "layout by fields": replace(paper, layout="field"),
        "layout by fields, 128 threads": replace(paper, layout="field", threads=128),
    }


def rungs() -> dict[str, PaperPlan]:
    """The levers that help, one after the other, and atomic additions at last."""
    known, best = levers(), "layout by fields, 128 threads"
    atomic = replace(known[best], concurrent=False, race="atomic")
    names = "paper", "layout by fields", best
    return {name: known[name] for name in names} | {f"{best}, atomic additions": atomic}


# -------------------------------------------------------------------------------------- vortices


def at_point(solver: Solver, u: np.ndarray, point: tuple[float, float]) -> np.ndarray:
    """The state at a point, (4,): the mean of what the elements around it say."""
    corners = solver.mesh.vertices[solver.mesh.elements]
    edges = (corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1)
    along = np.linalg.solve(edges, (np.asarray(point) - corners[:, 0])[:, :, None])[:, :, 0]
    around = np.flatnonzero((along >= -1e-9).all(axis=1) & (along.sum(axis=1) <= 1 + 1e-9))
    basis = solver.element.interpolation(2 * along[around] - 1)
    return np.einsum("ki,aki->a", basis, u[:, around].astype(np.float64)) / len(around)


def vortex_run(
    vortex: Vortex | StrongVortex, lower: tuple[float, float], cells: int, order: int,
    dtype: str, device: Device | str, times: Iterable[float],
) -> tuple[Solver, dict[str, Any]]:  # fmt: skip
    """A vortex in a periodic box of side 10, looked at now and then.

    Parameters
    ----------
    vortex : Vortex or StrongVortex
        With its period.
    lower : 2 numbers
        Corner of the box.
    cells, order, dtype, device
    times : iterable of float

    Returns
    -------
    solver : Solver
    found : dict
        Lists with an entry for t = 0 and each time: "times", "errors" (L2, all fields),
        "pressure_errors" and "velocity_errors" (L2; of u), "core_pressures" (at the center), and
        "entropies" (see `Solver.entropy`); "core_pressure", the exact one; and "stopped", the time
        of the last good state where the flow ended in an impossible one, else None.
    """
    upper = tuple(corner + vortex.period for corner in lower)
    solver = Solver(box((cells, cells), lower, upper, periodic=True), order, dtype, device)
    u, t = solver.interpolate(lambda x, y: vortex(x, y, 0.0)), 0.0
    names = "times", "errors", "pressure_errors", "velocity_errors", "core_pressures", "entropies"
    history: dict[str, Any] = {name: [] for name in names}
    core = float(pressure(vortex(*np.array(vortex.center), 0.0)))
    history |= {"core_pressure": core, "stopped": None}

    def look() -> None:
        center = [
            low + (x + v * t - low) % vortex.period
            for low, x, v in zip(lower, vortex.center, vortex.velocity, strict=True)
        ]
        errors = primitive_errors(solver, u, vortex, t)
        values = t, solver.l2_error(u, vortex, t), *errors
        values += float(pressure(at_point(solver, u, center))), solver.entropy(u)
        for name, value in zip(names, values, strict=True):
            history[name].append(value)

    look()
    for end in times:
        try:
            u = solver.run(u, end, t=t)
        except FlowError as error:
            history["stopped"] = error.time
            break
        t = end
        look()
    return solver, history


def primitive_errors(
    solver: Solver, u: np.ndarray, exact: Callable, t: float
) -> tuple[float, float]:
    """The L2 norms of the errors of the pressure and of the velocity's first component."""
    tables = solver.operator.tables
    at_points = u.astype(np.float64) @ tables.phi_volume.T.astype(np.float64)
    corners = solver.mesh.vertices[solver.mesh.elements]
    x = np.moveaxis(barycentric(tables.points_volume) @ corners, 2, 0)
    true = exact(*x, t)
    weights = solver.jacobian[:, None] * tables.w_volume.astype(np.float64)
    differences = (
        pressure(at_points) - pressure(true),
        velocity(at_points)[0] - velocity(true)[0],
    )
    return tuple(float(np.sqrt((weights * d * d).sum())) for d in differences)


def vortices() -> dict[str, tuple[Vortex | StrongVortex, tuple[float, float]]]:
    """chen's vortex and the strong one by name, with their period, and the corners of their box."""
    side = UPPER - LOWER
    return {
        "paper": (Vortex(period=side), (LOWER, LOWER)),
        "strong": (StrongVortex(period=side), (0.0, LOWER)),
    }


def solver_row(solver: Solver, session: Session, more: dict[str, Any]) -> dict[str, Any]:
    """A row with the time of a stage of a solver's own kernels, and more."""
    plan, cost = solver.launcher.plan, costs_of(solver.operator)[solver.path]
    timing = stage_timing(solver.launcher)
    language = getattr(plan, "language", "numba")
    subject = subject_of(solver.operator)
    return session.row(subject, solver.path, language, plan, cost, timing) | more


# -------------------------------------------------------------------------------------- records


def stage_record(order: int, dtype: str, cells: int, session: Session) -> Rows:
    """Rows of the record euler/stage: all paths, the paper's parts, and the rivals.

    The paper's kernels run by the paper's plan and, "variant" says so, by the best one known.
    """
    operator = operator_on(cells, order, dtype)
    yield from fused_rows(operator, session)
    yield from part_rows(operator, session, PaperPlan())
    yield paper_row(operator, session, PaperPlan())
    best = choose(PaperPlan, FusedShape(order, dtype), session.device)
    if best != PaperPlan():
        yield paper_row(operator, session, best) | {"variant": "tuned"}
    yield rival_row(operator, session)
    for cores in dict.fromkeys((1, measuring.all_cores())):
        smaller = cells_for(CORE_DOFS * min(cores, 8), order)
        yield core_row(operator_on(smaller, order, dtype), cores, session)


def blocks_record(order: int, dtype: str, cells: int, session: Session) -> Rows:
    """Rows of the record euler/blocks: chen, Table 1, the paper's stage by threads per block."""
    for n in BLOCK_CELLS:
        operator = operator_on(n, order, dtype)
        for threads in THREADS:
            yield paper_row(operator, session, PaperPlan(threads=threads))


def sizes_record(order: int, dtype: str, cells: int, session: Session) -> Rows:
    """Rows of the record euler/sizes: chen, Table 2 and Figure 3.

    Stages by the paper's kernels and plan, by the fused kernel, on one core (on meshes of up to
    512^2 squares) and on all.
    """
    for n in CELLS:
        operator = operator_on(n, order, dtype)
        yield paper_row(operator, session, PaperPlan())
        yield from fused_rows(operator, session, every=False)
        for cores in dict.fromkeys((1, measuring.all_cores())):
            if cores > 1 or n <= LARGEST_ON_ONE_CORE:
                yield core_row(operator, cores, session)


def kernels_record(order: int, dtype: str, cells: int, session: Session) -> Rows:
    """Rows of the record euler/kernels: chen, Table 3, the paper's kernels one by one."""
    operator = operator_on(KERNEL_CELLS, order, dtype)
    yield from part_rows(operator, session, PaperPlan())


def levers_record(order: int, dtype: str, cells: int, session: Session) -> Rows:
    """Rows of the record euler/levers: a stage by each plan of `levers`; "variant" says which."""
    operator = operator_on(cells, order, dtype)
    for name, plan in levers().items():
        yield paper_row(operator, session, plan) | {"variant": name}


def large_record(order: int, dtype: str, cells: int, session: Session) -> Rows:
    """Rows of the record euler/large: the ladder from the paper's plan on, beyond the caches.

    All on `LARGE_CELLS`^2 squares: stages by each plan of `rungs` and by the best one known, which
    "variant" names, and by the fused kernel; then kernel by kernel by those that add nothing up
    atomically.
    """
    operator = operator_on(LARGE_CELLS, order, dtype)
    plans = rungs()
    split = {name: plan for name, plan in plans.items() if plan.race == "split"}
    best = choose(PaperPlan, FusedShape(order, dtype), session.device)
    if best not in plans.values():
        plans["tuned"] = best
    for name, plan in plans.items():
        yield paper_row(operator, session, plan) | {"variant": name}
    yield from fused_rows(operator, session)
    for name, plan in split.items():
        for row in part_rows(operator, session, plan):
            yield row | {"variant": name}


def counters_record(order: int, dtype: str, cells: int, session: Session) -> Rows:
    """Rows of the record euler/counters: the fused stage and the paper's kernels.

    "counters" says how busy the parts of the GPU are, in percent; see `dgbook.lab.profile`. Of the
    fused stage and of the updates it is the mean over the four of a step.
    """
    operator = operator_on(cells, order, dtype)
    rows = list(fused_rows(operator, session, every=False))
    rows += part_rows(operator, session, PaperPlan())
    launches = [STAGES if r["path"] in ("fused", "update") else 1 for r in rows]
    program = f"from dgbook.lab.euler import launch_each as f; f{order, dtype, cells}"
    yield from counted(rows, program, launches)


def launch_each(order: int, dtype: str, cells: int) -> None:
    """Launch a fused step and each of the paper's kernels, once to warm up and once counted."""
    device = find_device("cuda")
    operator = operator_on(cells, order, dtype)
    parts = parts_of(PaperLauncher(operator, device, PaperPlan()))
    launch_counted(
        [
            stepper(FusedLauncher(operator, device)),
            *(function for function, _ in parts.values()),
        ]
    )


def vortex_record(order: int, dtype: str, cells: int, session: Session) -> Rows:
    """Rows of the record euler/vortex: what is left of vortices after `PERIODS`.

    All orders with as many degrees of freedom, about. Rows hold what `vortex_run` finds, and
    "variant", which vortex it is.
    """
    n = cells_for(24 * VORTEX_CELLS**2, order)
    for name, (vortex, lower) in vortices().items():
        period = vortex.period / vortex.velocity[0]
        times = [period * count for count in PERIODS]
        solver, history = vortex_run(vortex, lower, n, order, dtype, session.device, times)
        yield solver_row(solver, session, history | {"variant": name})


def figure2_record(order: int, dtype: str, cells: int, session: Session) -> Rows:
    """Rows of the record euler/figure2: errors of chen's vortex at t = 10 on two meshes."""
    vortex, lower = vortices()["paper"]
    for n in FIGURE_2_CELLS:
        device, times = session.device, [FIGURE_2_END]
        solver, history = vortex_run(vortex, lower, n, order, dtype, device, times)
        yield solver_row(solver, session, history)


RECORDS: dict[str, Callable[..., Iterator[dict[str, Any]]]] = {
    "stage": stage_record,
    "blocks": blocks_record,
    "sizes": sizes_record,
    "kernels": kernels_record,
    "levers": levers_record,
    "large": large_record,
    "counters": counters_record,
    "vortex": vortex_record,
    "figure2": figure2_record,
}
ALL, PAPERS = range(7), range(3)
ORDERS = {
    "stage": ALL,
    "blocks": PAPERS,
    "sizes": PAPERS,
    "kernels": PAPERS,
    "levers": ALL,
    "large": range(5),
    "counters": ALL,
    "vortex": ALL,
    "figure2": range(2, 3),
}
"""The orders of each record if none are given: those of the paper's tables are the paper's."""
