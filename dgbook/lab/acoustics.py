"""What is measured of the acoustic operator on a GPU: stages and parts in both bases, accuracy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dgbook.acoustics import reference
from dgbook.acoustics.cores import Cores
from dgbook.acoustics.cost import PARTS, costs, fused_cost
from dgbook.acoustics.exact import CubeMode
from dgbook.acoustics.plan import KERNEL_SETS, BernsteinFusedPlan, PaperPlan, Shape
from dgbook.acoustics.solver import LAUNCHERS, PATHS, Solver
from dgbook.gpu import Device
from dgbook.gpu import device as find_device
from dgbook.gpu.cost import Cost
from dgbook.gpu.plan import choose, shipped
from dgbook.gpu.timing import Timing, measure
from dgbook.gpu.tune import Result, tune
from dgbook.lab import measuring
from dgbook.lab.measuring import (
    Rows,
    counted,
    cube,
    launch_counted,
    small_dt,
    smaller_cubes,
    trial_rows,
)
from dgbook.lab.rivals.acoustics import ProductStage
from dgbook.lab.session import Session, Subject
from dgbook.mesh import Mesh, box
from dgbook.nodal.bernstein import BernsteinBasis, bernstein_basis
from dgbook.nodal.fused import LANGUAGES
from dgbook.nodal.launching import Launcher
from dgbook.time import lsrk45

A, B = lsrk45.A[1], lsrk45.B[1]  # |A| < 1: repeated on one state, nothing grows
CORE_DOFS = 2**19
TUNED_DOFS = 20_000_000
"""On which plans are timed: some hundred microseconds a kernel, and more than an L2 holds."""
NOISE = 2**20  # random numbers, repeated in a state
FUSED = {basis: paths["fused"][1] for basis, paths in LAUNCHERS.items()}
"""By basis the plans of its fused kernel."""
PAPER = {"nodal": "node", "bernstein": "factored"}
"""By basis the set of the paper's kernels that runs if no plan is given."""
PAPER_SETS = ("node", "element", "factored", "optimal")
"""The sets of kernels of chan2015's figures."""
ERROR_CELLS = (8, 8, 4)  # 1,536 elements in chan2015's cube, as in its Figure 6
ERROR_END, ERROR_LOOKS = 50.0, 20


# ------------------------------------------------------------------------------------- problems


def cells_for(dofs: int, order: int) -> int:
    """Cells along each edge of a cube with about so many degrees of freedom."""
    return measuring.cells_for(dofs, order, 4)


def operators_on(mesh: Mesh, order: int, dtype: str) -> dict[str, reference.Operator]:
    """The operator with the upwind flux between walls p = 0, by basis."""
    nodal = reference.assemble(mesh, order, dtype=dtype)
    return {"nodal": nodal, "bernstein": replace(nodal, basis=bernstein_basis(order, dtype))}


def shape_of(operator: reference.Operator) -> Shape:
    """What an operator's plans are for."""
    return Shape(operator.order, operator.weights.dtype.name)


def basis_of(operator: reference.Operator) -> str:
    """The name of an operator's basis."""
    return "bernstein" if isinstance(operator.basis, BernsteinBasis) else "nodal"


@dataclass(frozen=True, eq=False)
class States:
    """What a launcher's kernels work on: arrays of the device, full of noise, and no data.

    Attributes
    ----------
    u, res, new, out : arrays
        `new` is u where a stage updates in place.
    data : array
        g = 0 on all boundary faces.
    dt : float
    """

    u: Any
    res: Any
    new: Any
    out: Any
    data: Any
    dt: float


def states_of(launcher: Any) -> States:
    """States for a launcher, and for all with other plans but the same layout."""
    operator, device = launcher.operator, launcher.device
    u, res = launcher.zeros(), launcher.zeros()
    some = np.random.default_rng(0).standard_normal(NOISE, np.float32).astype(u.dtype)
    pattern = device.array(some)
    for state in (u, res):
        for first in range(0, state.size, NOISE):
            part = state[first : first + NOISE]
            part[:] = pattern[: part.size]
    new = u if launcher.in_place else launcher.zeros()
    size = max(1, 4 * operator.boundary_points[0].size)
    data = device.zeros(size, operator.weights.dtype)
    return States(u, res, new, launcher.zeros(), data, small_dt(operator.face_scale))


def subject_of(operator: reference.Operator, variant: str) -> Subject:
    """What rows share: the basis, and of the paper's kernels the set as "variant"."""
    shape = 4, operator.mesh.K, operator.basis.element.Np
    more = {"basis": basis_of(operator), "variant": variant}
    return Subject.of_state(shape, operator.order, operator.weights.dtype, **more)


# --------------------------------------------------------------------------------------- stages


def stage_of(launcher: Any, s: States) -> Callable[[], None]:
    """What launches a stage of any launcher."""
    return lambda: launcher.stage(s.u, s.res, s.new, s.data, A, B, s.dt)


def stage_timing(launcher: Any) -> Timing:
    """Seconds of a recorded stage on states of its own."""
    device = launcher.device
    return measure(device.capture(stage_of(launcher, states_of(launcher))), device)


def fused_launchers(operator: reference.Operator, device: Device) -> Callable[[Any], Any]:
    """What makes the launcher of a fused stage of a plan; arrays are made once a kind of plan."""
    make, made = LAUNCHERS[basis_of(operator)]["fused"][0], {}

    def launcher(plan: Any) -> Any:
        kind = type(plan)
        if kind not in made:
            made[kind] = make(operator, device, plan)
        return made[kind].planned(plan)

    return launcher


def fused_row(
    operator: reference.Operator, plan: Any, timing: Timing, session: Session
) -> dict[str, Any]:
    """The row of a fused stage.

    By dense matrices it costs the same in either basis; in the Bernstein basis its variant is then
    "dense".
    """
    sparse, dtype = isinstance(plan, BernsteinFusedPlan), operator.weights.dtype.name
    cost = fused_cost("bernstein" if sparse else "nodal", operator.order, operator.mesh.K, dtype)
    variant = "dense" if not sparse and basis_of(operator) == "bernstein" else ""
    subject = subject_of(operator, variant)
    return session.row(subject, "fused", plan.language, plan, cost, timing)


def parts_of(launcher: Launcher, s: States) -> dict[str, Callable[[], None]]:
    """What launches each kernel of a paper's launcher, and several together, by name."""
    functions = {
        "volume": lambda: launcher.volume(s.u, s.out),
        "surface": lambda: launcher.surface(s.u, s.data, s.out),
        "rhs": lambda: launcher.rhs(s.u, s.data, s.out),
        "update": lambda: launcher.update(s.u, s.res, A, B, s.dt),
    }
    if "lift" in launcher.kernels:
        functions["flux"] = lambda: launcher.flux(s.u, s.data)
        functions["lift"] = lambda: launcher.lift(s.out)
    return functions


def fused_rows(operator: reference.Operator, session: Session, every: bool = True) -> Rows:
    """A stage in one kernel.

    By the best plan known, and if `every` also without tensor cores and in Numba; in the Bernstein
    basis by the sparse kernel, too, where the dense one is the best.
    """
    kind, shape = FUSED[basis_of(operator)], shape_of(operator)
    capability = session.device.compute_capability
    plans = [choose(kind, shape, session.device)]
    if every:
        plans += [shipped(kind, shape), choose(kind, shape, session.device, "numba")]
        plans += [kind.default(shape, capability, name) for name in LANGUAGES if kind.rivals]
    launchers = fused_launchers(operator, session.device)
    states = states_of(launchers(plans[0]))
    for plan in dict.fromkeys(plans):
        timing = measure(session.device.capture(stage_of(launchers(plan), states)), session.device)
        yield fused_row(operator, plan, timing, session)


def paper_launcher(name: str, operator: reference.Operator, device: Device) -> Launcher:
    """One of the paper's sets by the best plan known."""
    kind, variant = KERNEL_SETS[name]
    plan = choose(kind, shape_of(operator), device, variant)
    return LAUNCHERS[kind.basis]["paper"][0](operator, device, plan)


def paper_row(name: str, operator: reference.Operator, session: Session) -> dict[str, Any]:
    """A stage by one of the paper's sets."""
    launcher = paper_launcher(name, operator, session.device)
    cost = costs(name, operator.order, operator.mesh.K, operator.weights.dtype)["paper"]
    timing = stage_timing(launcher)
    subject = subject_of(operator, name)
    return session.row(subject, "paper", "numba", launcher.plan, cost, timing)


def part_rows(name: str, operator: reference.Operator, session: Session) -> Rows:
    """The kernels of a set one by one."""
    launcher = paper_launcher(name, operator, session.device)
    cost = costs(name, operator.order, operator.mesh.K, operator.weights.dtype)
    functions = parts_of(launcher, states_of(launcher))
    for part in PARTS[name]:
        timing = measure(session.device.capture(functions[part]), session.device)
        subject = subject_of(operator, name)
        yield session.row(subject, part, "numba", launcher.plan, cost[part], timing)


def rival_row(operator: reference.Operator, session: Session) -> dict[str, Any]:
    """The nodal stage by cuBLAS, chan2015's other way to run it."""
    rival = ProductStage(operator, session.device)
    s = states_of(rival.launcher)
    cost = costs("element", operator.order, operator.mesh.K, operator.weights.dtype)["paper"]
    timing = measure(lambda: rival.stage(s.u, s.res, s.data, A, B, s.dt), session.device)
    return session.row(subject_of(operator, ""), "rival:cublas", "cupy", None, cost, timing)


def core_rows(order: int, dtype: str, session: Session) -> Rows:
    """A nodal stage on one core of this machine's processor and on all, by Numba.

    "cores" is how many, in the row's size. Floors and efficiencies are still the GPU's.
    """
    host = session.on_host
    for cores in (1, measuring.all_cores()):
        mesh = cube(cells_for(CORE_DOFS * min(cores, 8), order))
        operator = reference.assemble(mesh, order, dtype=dtype)
        cost = fused_cost("nodal", order, mesh.K, dtype)
        launcher = Cores(operator, host.device)
        with measuring.on_cores(cores):
            timing = measure(stage_of(launcher, states_of(launcher)), host.device, 20, 1)
        subject = subject_of(operator, "").sized(cores=cores)
        yield host.row(subject, "cores", "numba", None, cost, timing)


# ---------------------------------------------------------------------------------------- plans


def tune_paper(name: str, operator: reference.Operator, device: Device) -> dict[str, Result]:
    """Time the plans of one of the paper's sets and remember the timings.

    Returns
    -------
    dict of str to Result
        By part; a part's plans have what was fastest of the parts before.
    """
    (kind, variant), shape = KERNEL_SETS[name], shape_of(operator)
    plan = kind.default(shape, None, variant)
    launcher = LAUNCHERS[kind.basis]["paper"][0](operator, device, plan)
    states, results = states_of(launcher), {}
    for part in kind.tuned:
        subject = f"acoustics/{name}/{part}"
        if subject not in plan.subjects(shape):  # it is another set's
            continue

        def run(plan: PaperPlan, part: str = part) -> Callable[[], None]:
            return device.capture(parts_of(launcher.planned(plan), states)[part])

        plans = plan.variants_of(shape, part)
        results[part] = tune(subject, plans, run, device, shape.order, shape.dtype, progress=False)
        plan = results[part].plan
    return results


def tune_fused(operator: reference.Operator, device: Device, language: str) -> Result:
    """Time plans of the fused kernels of the operator's basis and remember the timings.

    In the Bernstein basis those of the sparse kernel, and the best one known of the dense kernel,
    which is that of the nodal basis: tune that before.

    Parameters
    ----------
    operator, device
    language : {"cuda", "numba"}
    """
    kind, shape = FUSED[basis_of(operator)], shape_of(operator)
    start = shipped(kind, shape, device.compute_capability, language)
    if not isinstance(start, kind):
        start = kind.default(shape, device.compute_capability, language)
    plans = start.candidates(shape, device.compute_capability)
    plans += [choose(rival, shape, device, language) for rival in kind.rivals]
    launchers = fused_launchers(operator, device)
    states = states_of(launchers(plans[0]))

    def run(plan: Any) -> Callable[[], None]:
        return device.capture(stage_of(launchers(plan), states))

    name = start.subject(shape)
    return tune(name, plans, run, device, shape.order, shape.dtype, progress=False)


def part_cost(name: str, part: str, cost: Mapping[str, Cost]) -> Cost:
    """What a part costs that is tuned: a kernel, or several."""
    if part in cost:
        return cost[part]
    others = {"rhs": ("update",), "surface": ("update", "volume")}[part]
    return sum((cost[p] for p in PARTS[name] if p not in others), Cost(0, 0))


# -------------------------------------------------------------------------------------- records


def stage_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record acoustics/stage: a stage in either basis, by all paths, and the rivals.

    The processor's cores are measured in single precision, that of the paper.
    """
    operators = operators_on(cube(cells_for(dofs, order)), order, dtype)
    for operator in operators.values():
        yield from fused_rows(operator, session)
    for name in PAPER_SETS:
        yield paper_row(name, operators[KERNEL_SETS[name][0].basis], session)
    yield rival_row(operators["nodal"], session)
    if dtype == "float32":
        yield from core_rows(order, dtype, session)


def parts_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record acoustics/parts: chan2015, Figures 7 to 12, each kernel of each set."""
    operators = operators_on(cube(cells_for(dofs, order)), order, dtype)
    for name, (kind, _) in KERNEL_SETS.items():
        yield from part_rows(name, operators[kind.basis], session)


def blocks_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record acoustics/blocks: every plan tried of each part of the paper's sets.

    On `TUNED_DOFS` at most, as ``python -m dgbook tune acoustics``, which may have timed them.
    """
    mesh = cube(cells_for(min(dofs, TUNED_DOFS), order))
    operators = operators_on(mesh, order, dtype)
    for name, (kind, _) in KERNEL_SETS.items():
        operator = operators[kind.basis]
        cost = costs(name, order, mesh.K, dtype)
        for part, result in tune_paper(name, operator, session.device).items():
            spent = part_cost(name, part, cost)
            subject = subject_of(operator, name)
            row_of = partial(session.row, subject, part, "numba", None, spent)
            yield from trial_rows(result, row_of)


def sizes_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record acoustics/sizes: stages on cubes of 162 elements up to about `dofs`."""
    for n in smaller_cubes(cells_for(dofs, order)):
        for basis, operator in operators_on(cube(n), order, dtype).items():
            yield from fused_rows(operator, session, every=False)
            yield paper_row(PAPER[basis], operator, session)


def error_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record acoustics/error: chan2015, Figure 6, errors over a long time.

    Rows hold "times" and "errors", the L2 norm over all four fields for the mode of the cube on
    1,536 elements, and the seconds of a stage there.
    """
    mode = CubeMode()
    mesh = box(ERROR_CELLS, -1.0, 1.0)
    for basis in FUSED:
        for path in PATHS:
            solver = Solver(mesh, order, dtype, session.device, basis, path=path)
            times, errors = errors_in_time(solver, mode)
            launcher = solver.launcher
            timing = stage_timing(launcher)
            if path == "fused":
                row = fused_row(solver.operator, launcher.plan, timing, session)
            else:
                cost = costs(PAPER[basis], order, mesh.K, dtype)["paper"]
                subject = subject_of(solver.operator, PAPER[basis])
                row = session.row(subject, path, "numba", launcher.plan, cost, timing)
            yield row | {"times": times, "errors": errors}


def errors_in_time(solver: Solver, mode: CubeMode) -> tuple[list[float], list[float]]:
    """Times up to `ERROR_END`, 0 the first, and the errors of a run from the mode's values."""
    times, errors = [], []

    def look(t: float, u: np.ndarray) -> None:
        times.append(t)
        errors.append(solver.l2_error(u, mode, t))

    u = solver.interpolate(lambda x, y, z: mode(x, y, z, 0.0))
    look(0.0, u)
    dt = solver.cfl_dt()
    steps = solver.march(u, ERROR_END, dt).count
    solver.run(u, ERROR_END, dt, observe=look, every=-(-steps // ERROR_LOOKS))
    return times, errors


def counters_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record acoustics/counters: the fused stages and the paper's kernels.

    "counters" says how busy the parts of the GPU are, in percent; see `dgbook.lab.profile`.
    """
    operators = operators_on(cube(cells_for(dofs, order)), order, dtype)
    rows = [next(fused_rows(operator, session, every=False)) for operator in operators.values()]
    for name in PAPER_SETS:
        rows += part_rows(name, operators[KERNEL_SETS[name][0].basis], session)
    where = "dgbook.lab.acoustics"
    program = f"from {where} import launch_each as f; f{order, dtype, dofs}"
    yield from counted(rows, program)


def launch_each(order: int, dtype: str, dofs: int) -> None:
    """Launch the fused stages and each of the paper's kernels, to warm up and once counted."""
    device = find_device("cuda")
    operators = operators_on(cube(cells_for(dofs, order)), order, dtype)
    functions = []
    for basis, operator in operators.items():
        launcher = LAUNCHERS[basis]["fused"][0](operator, device)
        functions.append(stage_of(launcher, states_of(launcher)))
    for name in PAPER_SETS:
        launcher = paper_launcher(name, operators[KERNEL_SETS[name][0].basis], device)
        parts = parts_of(launcher, states_of(launcher))
        functions += [parts[part] for part in PARTS[name]]
    launch_counted(functions)


RECORDS = {
    "stage": stage_record,
    "parts": parts_record,
    "blocks": blocks_record,
    "sizes": sizes_record,
    "error": error_record,
    "counters": counters_record,
}
