"""What is measured of Maxwell's operator on a GPU: stages, their parts, plans, sizes, accuracy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dgbook.element import NodalElement
from dgbook.gpu import Device
from dgbook.gpu import device as find_device
from dgbook.gpu.cost import Cost
from dgbook.gpu.plan import choose, shipped, varied
from dgbook.gpu.timing import Timing, measure
from dgbook.gpu.tune import Result, tune
from dgbook.lab import factored, ladder, measuring, sooner
from dgbook.lab.ladder import CUT_OFF, EditedKernel
from dgbook.lab.measuring import (
    MESHES,
    Rows,
    counted,
    cube,
    launch_counted,
    launch_sums,
    small_dt,
    smaller_cubes,
    trial_rows,
)
from dgbook.lab.rivals.maxwell import ArrayStage
from dgbook.lab.session import Session, Subject
from dgbook.maxwell import mie, reference
from dgbook.maxwell import plan as paper_plan
from dgbook.maxwell.cores import Cores
from dgbook.maxwell.cost import PAPER, costs
from dgbook.maxwell.exact import BoxMode
from dgbook.maxwell.launch.bernstein_fused import BernsteinFusedLauncher
from dgbook.maxwell.launch.fused import FusedLauncher
from dgbook.maxwell.launch.paper import PaperLauncher
from dgbook.maxwell.plan import BernsteinFusedPlan, EitherPlan, FusedShape, LocalPlan, PaperPlan
from dgbook.maxwell.problem import PlaneWave, Scatterer
from dgbook.maxwell.solver import PATHS, Solver
from dgbook.mesh import Mesh, read
from dgbook.nodal.basis import BASES
from dgbook.nodal.bernstein import BernsteinBasis
from dgbook.nodal.fused import FusedPlan, FusedStage
from dgbook.time import lsrk45

A, B = lsrk45.A[1], lsrk45.B[1]  # |A| < 1: repeated on one state, nothing grows
CORE_DOFS = 2**19
TILES = ((1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (4, 2), (2, 4))  # elements, nodes of a thread
TABLE_2 = {475: 0.3, 728: 0.255, 1187: 0.21675, 1844: 0.184237}
TABLE_2_MODE = (1, 2, 2)
TABLE_2_END = 1.0
SHELLS = ("sphere_shell.msh", "sphere_shell_far.msh.gz", "sphere_shell_fine.msh.gz")
SPHERE_OMEGA = 2.0  # of the wave that the unit sphere scatters
LAYERS = (0.0, 1.05, 1.5, 2.2)  # radii between which errors around the unit sphere are taken
ERROR_CELLS = 4  # along each edge of the cube on which du/dt is compared with the reference

LESSER_PRODUCTS = """\
            mma(c[i], f, field.low, matrix.high[i]);
            mma(c[i], f, field.high, matrix.low[i]);
"""
PRODUCTS = {
    "one product": (*CUT_OFF, (LESSER_PRODUCTS, "")),
    "three, cut off": CUT_OFF,
    "three, rounded": (),
}
"""Ways to multiply in fp32 on tensor cores, each by what it replaces in the source; the last is
the book's."""


# ------------------------------------------------------------------------------------- problems


def cells_for(dofs: int, order: int) -> int:
    """Cells along each edge of a cube with about so many degrees of freedom."""
    return measuring.cells_for(dofs, order, 6)


def operator_on(mesh: Mesh, order: int, dtype: str, basis: str = "nodal") -> reference.Operator:
    """Maxwell's operator in vacuum between conducting walls."""
    return reference.assemble(mesh, NodalElement(3, order), dtype=dtype, basis=basis)


def path_of(operator: reference.Operator) -> str:
    """What rows call a stage in one kernel: "fused", or "bernstein" in that basis."""
    return "bernstein" if isinstance(operator.basis, BernsteinBasis) else "fused"


def fused_launcher(
    operator: reference.Operator,
    device: Device,
    plan: FusedPlan | BernsteinFusedPlan | None = None,
) -> FusedStage:
    """What launches a stage in one kernel, in the operator's basis."""
    kinds = {"fused": FusedLauncher, "bernstein": BernsteinFusedLauncher}
    return kinds[path_of(operator)](operator, device, plan)


def noise(operator: reference.Operator) -> np.ndarray:
    """A random state, (6, K, Np)."""
    shape = (6, operator.mesh.K, operator.element.Np)
    values = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    return values.astype(operator.lift.dtype, copy=False)


def fused_shape(operator: reference.Operator) -> FusedShape:
    """What the plans of the fused kernel are for, whatever the materials."""
    return FusedShape(operator.element.order, operator.lift.dtype.name, materials=True)


def subject_of(operator: reference.Operator) -> Subject:
    """What the rows about an operator share."""
    shape = 6, operator.mesh.K, operator.element.Np
    return Subject.of_state(shape, operator.element.order, operator.lift.dtype)


# --------------------------------------------------------------------------------------- stages


def fused_row(launcher: FusedStage, session: Session) -> dict[str, Any]:
    """A stage in one kernel, by the launcher's plan."""
    operator, plan, path = launcher.operator, launcher.plan, path_of(launcher.operator)
    cost = costs(operator.element.order, operator.mesh.K, operator.lift.dtype)[path]
    timing = stage_timing(launcher)
    return session.row(subject_of(operator), path, plan.language, plan, cost, timing)


def fused_rows(operator: reference.Operator, session: Session, every: bool = True) -> Rows:
    """A stage in one kernel.

    By the best plan known, and if `every` also without tensor cores and in Numba.
    """
    shape = fused_shape(operator)
    plans = [choose(FusedPlan, shape, session.device)]
    if every:
        plans += [
            shipped(FusedPlan, shape),
            choose(FusedPlan, shape, session.device, "numba"),
        ]
    launcher = FusedLauncher(operator, session.device, plans[0])
    for plan in dict.fromkeys(plans):
        yield fused_row(launcher.planned(plan), session)


def bernstein_rows(operator: reference.Operator, session: Session, every: bool = True) -> Rows:
    """A stage in the Bernstein basis, by the best plan known, and if `every` also in Numba."""
    shape = fused_shape(operator)
    languages = ("cuda", "numba") if every else ("cuda",)
    plans = [choose(BernsteinFusedPlan, shape, session.device, name) for name in languages]
    launcher = BernsteinFusedLauncher(operator, session.device, plans[0])
    for plan in dict.fromkeys(plans):
        yield fused_row(launcher.planned(plan), session)


def paper_rows(operator: reference.Operator, session: Session) -> Rows:
    """The paper's five kernels one by one, and the stage that they make."""
    cost = costs(operator.element.order, operator.mesh.K, operator.lift.dtype)
    launcher = PaperLauncher(operator, session.device)
    for part, function in parts_of(launcher).items():
        used = getattr(launcher.plan, part, None)
        timing = measure(session.device.capture(function), session.device)
        yield session.row(subject_of(operator), part, "numba", used, cost[part], timing)
    yield paper_row(launcher, session)


def paper_row(launcher: PaperLauncher, session: Session) -> dict[str, Any]:
    """A stage by the paper's kernels."""
    operator = launcher.operator
    cost = costs(operator.element.order, operator.mesh.K, operator.lift.dtype)["paper"]
    timing = stage_timing(launcher)
    return session.row(subject_of(operator), "paper", "numba", launcher.plan, cost, timing)


def rival_row(operator: reference.Operator, session: Session) -> dict[str, Any]:
    """The reference's own lines on the GPU, by CuPy and cuBLAS."""
    cost = costs(operator.element.order, operator.mesh.K, operator.lift.dtype)["fused"]
    rival = ArrayStage(operator, session.device)
    u, res = (session.device.array(noise(operator)) for _ in range(2))
    dt = small_dt(operator.face_scale)
    timing = measure(lambda: rival.stage(u, res, A, B, dt), session.device)
    return session.row(subject_of(operator), "rival:cupy", "cupy", None, cost, timing)


def core_rows(order: int, dtype: str, session: Session) -> Rows:
    """A stage on one core of this machine's processor and on all, as device "cpu" computes it.

    "cores" is how many, in the row's size. Floors and efficiencies are still the GPU's.
    """
    host = session.on_host
    for cores in (1, measuring.all_cores()):
        operator = operator_on(cube(cells_for(CORE_DOFS * min(cores, 8), order)), order, dtype)
        cost = costs(order, operator.mesh.K, dtype)["fused"]
        stage = stage_on_noise(Cores(operator, host.device))
        with measuring.on_cores(cores):
            timing = measure(stage, host.device, 20, 1)
        subject = subject_of(operator).sized(cores=cores)
        yield host.row(subject, "cores", "numba", None, cost, timing)


def stage_timing(launcher: FusedStage | PaperLauncher) -> Timing:
    """Seconds of a stage of either launcher on noise."""
    return measure(stage_of(launcher), launcher.device)


def stage_of(launcher: FusedStage | PaperLauncher) -> Callable[[], None]:
    """A stage of either launcher on noise, recorded."""
    return launcher.device.capture(stage_on_noise(launcher))


def stage_on_noise(launcher: FusedStage | PaperLauncher | Cores) -> Callable[[], None]:
    """What launches a stage of a launcher on noise."""
    operator = launcher.operator
    u, res = (launcher.upload(noise(operator)) for _ in range(2))
    new = u if launcher.in_place else launcher.zeros()
    data = no_data(launcher)
    dt = small_dt(operator.face_scale)
    return lambda: launcher.stage(u, res, new, data, A, B, dt)


def parts_of(launcher: PaperLauncher) -> dict[str, Callable[[], None]]:
    """The paper's kernels, each a function that launches it."""
    operator = launcher.operator
    u, res = (launcher.upload(noise(operator)) for _ in range(2))
    data, out, dt = no_data(launcher), launcher.zeros(), small_dt(operator.face_scale)
    functions = (
        lambda: launcher.gather(u, data),
        launcher.lift,
        lambda: launcher.differentiate(u),
        lambda: launcher.assemble(out),
        lambda: launcher.update(u, res, A, B, dt),
    )
    return dict(zip(PAPER, functions, strict=True))


def no_data(launcher: FusedStage | PaperLauncher) -> Any:
    """g = 0 on all boundary faces."""
    operator = launcher.operator
    faces = len(operator.trace.boundary_faces)
    return launcher.device.zeros(max(1, 6 * faces * operator.element.Nfp), operator.lift.dtype)


# ---------------------------------------------------------------------------------------- plans


def tune_part(
    part: str, operator: reference.Operator, device: Device, plans: Iterable[Any]
) -> Result:
    """Time plans of one of the paper's kernels and remember the timings.

    Parameters
    ----------
    part : {"gather", "lift", "differentiate"}
    operator, device
    plans : iterable of the part's plans
    """
    order, dtype = operator.element.order, operator.lift.dtype.name
    launcher = PaperLauncher(operator, device, PaperPlan.default(paper_plan.shape_of(order, dtype)))

    def run(plan: Any) -> Callable[[], None]:
        planned = launcher.planned(replace(launcher.plan, **{part: plan}))
        return device.capture(parts_of(planned)[part])

    name = getattr(launcher.plan, part).subject(launcher.shape)
    return tune(name, plans, run, device, order, dtype, progress=False)


def searched(order: int, dtype: str) -> dict[str, list[Any]]:
    """The plans of each of the paper's kernels that are tried.

    Of differentiation at N = 4 with the matrix in shared memory, klockner2009's Figure 10(b), they
    are all with up to 20 microblocks in parallel, 4 inline and 8 in sequence, every other number
    left out above 4.
    """
    shape = paper_plan.shape_of(order, dtype)
    candidates = {
        name: kind.default(shape).candidates(shape) for name, kind in paper_plan.PARTS.items()
    }
    if order == 4:
        counts = [1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 19, 20]
        start = paper_plan.DifferentiatePlan("matrix", 1)
        candidates["differentiate"] += varied(
            start, shape, w_p=counts, w_i=(1, 2, 3, 4), w_s=(1, 2, 3, 4, 6, 8)
        )
    return {name: list(dict.fromkeys(plans)) for name, plans in candidates.items()}


def best_plan(operator: reference.Operator, device: Device, strategies: Iterable[str]) -> PaperPlan:
    """The fastest of the plans that `searched` lists, with these strategies only.

    What has been timed on this device before is remembered and not timed again.
    """
    order, dtype = operator.element.order, operator.lift.dtype.name
    parts = {
        part: tune_part(
            part,
            operator,
            device,
            [plan for plan in plans if getattr(plan, "strategy", "field") in strategies],
        ).plan
        for part, plans in searched(order, dtype).items()
    }
    return PaperPlan(paper_plan.shape_of(order, dtype).K_M, **parts)


def tune_fused(operator: reference.Operator, device: Device, language: str) -> Result:
    """Time plans of the fused kernel of the operator's basis and remember the timings.

    Parameters
    ----------
    operator, device
    language : {"cuda", "numba"}
    """
    order, dtype = operator.element.order, operator.lift.dtype.name
    shape, capability = fused_shape(operator), device.compute_capability
    kind = BernsteinFusedPlan if path_of(operator) == "bernstein" else FusedPlan
    plans = shipped(kind, shape, capability, language).candidates(shape, capability)
    launcher = fused_launcher(operator, device, plans[0])

    def run(plan: Any) -> Callable[[], None]:
        return stage_of(launcher.planned(plan))

    name = plans[0].subject(shape)
    return tune(name, plans, run, device, order, dtype, progress=False)


def tune_basis(
    operators: Mapping[str, reference.Operator], device: Device, language: str
) -> Result:
    """Time the best plan known of each basis's fused kernel, and remember which is the faster.

    That is what `dgbook.maxwell.plan.faster_basis` goes by: tune both kernels before.

    Parameters
    ----------
    operators : mapping
        By basis an operator, on the same mesh.
    device
    language : {"cuda", "numba"}
    """
    nodal = operators["nodal"]
    shape, dtype = fused_shape(nodal), nodal.lift.dtype.name
    kinds = {"nodal": FusedPlan, "bernstein": BernsteinFusedPlan}
    plans = {basis: choose(kind, shape, device, language) for basis, kind in kinds.items()}

    def run(plan: Any) -> Callable[[], None]:
        basis = "bernstein" if isinstance(plan, BernsteinFusedPlan) else "nodal"
        return stage_of(fused_launcher(operators[basis], device, plan))

    name = EitherPlan.default(shape, device.compute_capability, language).subject(shape)
    return tune(name, plans.values(), run, device, shape.order, dtype, progress=False)


def plan_rows(part: str, result: Result, operator: reference.Operator, session: Session) -> Rows:
    """A row for each plan that was timed."""
    cost = costs(operator.element.order, operator.mesh.K, operator.lift.dtype)[part]
    named = partial(session.row, subject_of(operator), part, "numba", None, cost)
    yield from trial_rows(result, named)


def variants(
    best: PaperPlan, best_field: PaperPlan, order: int, dtype: str
) -> dict[str, PaperPlan]:
    """klockner2009, Figure 11(a): the paper's operator with and without its two optimizations.

    Parameters
    ----------
    best, best_field : PaperPlan
        The fastest plans, of all and of those without matrix-in-shared.
    order : int
    dtype : str
    """
    single = paper_plan.shape_of(order, dtype, 1)

    def without_microblocks(plan: PaperPlan) -> PaperPlan:
        """Each element padded by itself; threads per block and elements a gather as before."""
        gather = replace(plan.gather, M_B=plan.gather.M_B * plan.K_M)
        lift, differentiate = (
            _fewer_rows(p, paper_plan.shape_of(order, dtype), single)
            for p in (plan.lift, plan.differentiate)
        )
        return PaperPlan(1, gather, lift, differentiate)

    return {
        "full": best,
        "no matrix-in-shared": best_field,
        "no microblocks": without_microblocks(best),
        "neither": without_microblocks(best_field),
    }


def _fewer_rows(plan: LocalPlan, old: paper_plan.Shape, new: paper_plan.Shape) -> LocalPlan:
    """The plan for smaller microblocks: more of them in parallel, as many threads as before."""
    if plan.strategy == "matrix":
        return replace(plan, N_R=min(plan.N_R, new.N_pM))
    return replace(plan, w_p=max(1, plan.w_p * old.N_pM // new.N_pM))


# ------------------------------------------------------------------------------------- accuracy


def sphere_errors(name: str, order: int, dtype: str, device: Device) -> tuple[Solver, list[float]]:
    """How far a wave scattered by the conducting unit sphere is from Mie's series.

    Parameters
    ----------
    name : str
        One of `SHELLS`, meshes around the sphere.
    order, dtype, device

    Returns
    -------
    solver : Solver
    errors : list of float
        Relative l2 errors of the complex amplitudes at the nodes between each two of the radii
        `LAYERS`, from the sixth period.
    """
    omega = SPHERE_OMEGA
    wave = PlaneWave((0, 0, 1), (1, 0, 0), "sine", omega)
    sides = {"sphere": Scatterer(wave), "farfield": "absorbing"}
    solver = Solver(read(MESHES / name), order, dtype, device, boundary=sides)
    start, end = 5 * (2 * np.pi / omega), 6 * (2 * np.pi / omega)
    r = np.linalg.norm(solver.x, axis=0)
    near = r < LAYERS[-1]
    times, samples = [], []

    def observe(t: float, u: np.ndarray) -> None:
        times.append(t)
        samples.append(u[:, near])

    u = np.zeros((6, solver.mesh.K, solver.element.Np))
    dt = solver.cfl_dt()
    u = solver.run(u, start, dt=dt)
    count = solver.march(u, end, dt, start).count
    solver.run(u, end, dt=dt, t=start, observe=observe, every=max(1, count // 16))
    exact = 1j * mie.Sphere(omega).scattered(*solver.x[:, near])
    error = mie.amplitude(np.array(samples), np.array(times), omega) - exact
    layer = np.digitize(r[near], LAYERS)
    return solver, [
        float(np.linalg.norm(error[:, layer == i]) / np.linalg.norm(exact[:, layer == i]))
        for i in range(1, len(LAYERS))
    ]


def stage_error(launcher: FusedStage) -> dict[str, float]:
    """How far du/dt of noise is from that of the fp64 reference, both as nodal values.

    Returns
    -------
    dict
        "error", the largest difference over the largest value; and "bias", which says by what part
        of itself du/dt is too large on average: (v - w) . w / w . w of v as it is and w as it
        should be. It is about zero where errors have no sign in common, and negative where they
        lead towards zero.
    """
    operator = launcher.operator
    exact = operator_on(operator.mesh, operator.element.order, "float64")
    u, out = noise(operator), launcher.zeros()
    launcher.rhs(launcher.upload(operator.basis.from_nodal(u)), no_data(launcher), out)
    w = reference.rhs(exact, u.astype(np.float64), 0.0)
    off = operator.basis.to_nodal(launcher.download(out).astype(np.float64)) - w
    return {
        "error": float(np.abs(off).max() / np.abs(w).max()),
        "bias": float(np.vdot(off, w) / np.vdot(w, w)),
    }


# -------------------------------------------------------------------------------------- records


def stage_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record maxwell/stage: all paths, either basis, the paper's parts, the rivals.

    The processor's cores are measured in single precision, as in klockner2009's Figure 8(a).
    """
    mesh = cube(cells_for(dofs, order))
    operator = operator_on(mesh, order, dtype)
    yield from fused_rows(operator, session)
    yield from bernstein_rows(operator_on(mesh, order, dtype, "bernstein"), session)
    yield from paper_rows(operator, session)
    smaller = operator_on(cube(cells_for(dofs // 4, order)), order, dtype)
    yield rival_row(smaller, session)
    if dtype == "float32":
        yield from core_rows(order, dtype, session)


def plans_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record maxwell/plans: every plan tried of each of the paper's kernels.

    At N = 4 these are all of klockner2009's Figure 10(b); the best of each order are its Table 3.
    """
    operator = operator_on(cube(cells_for(dofs, order)), order, dtype)
    for part, plans in searched(order, dtype).items():
        result = tune_part(part, operator, session.device, plans)
        yield from plan_rows(part, result, operator, session)


def tiles_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record maxwell/tiles: the fused stage in CUDA C++, a tile a thread of each size.

    About 128 threads per block and no tensor cores; as many registers as the compiler likes.
    """
    operator = operator_on(cube(cells_for(dofs, order)), order, dtype)
    shape = FusedShape(order, dtype)
    launcher = FusedLauncher(operator, session.device)
    for inline, nodes in TILES:
        rows = max(1, 128 // -(-shape.Np // nodes))
        plan = FusedPlan("cuda", rows, inline, nodes, 2)
        if not plan.illegal(shape, session.device.compute_capability):
            yield fused_row(launcher.planned(plan), session)


def variants_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record maxwell/variants: klockner2009, Figure 11(a); "variant" says which."""
    operator = operator_on(cube(cells_for(dofs, order)), order, dtype)
    best, best_field = (
        best_plan(operator, session.device, strategies)
        for strategies in (paper_plan.STRATEGIES, ("field",))
    )
    for name, plan in variants(best, best_field, order, dtype).items():
        launcher = PaperLauncher(operator, session.device, plan)
        yield paper_row(launcher, session) | {"variant": name}


def sizes_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record maxwell/sizes: stages on cubes of 162 elements up to about `dofs`."""
    for n in smaller_cubes(cells_for(dofs, order)):
        operator = operator_on(cube(n), order, dtype)
        yield from fused_rows(operator, session, every=False)
        yield paper_row(PaperLauncher(operator, session.device), session)


def bases_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record maxwell/bases: a stage in one kernel in either basis, at its fastest."""
    mesh = cube(cells_for(dofs, order))
    yield from fused_rows(operator_on(mesh, order, dtype), session, every=False)
    yield from bernstein_rows(operator_on(mesh, order, dtype, "bernstein"), session, every=False)


def table2_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record maxwell/table2: klockner2009, Table 2, errors of a cavity mode.

    On four unstructured meshes. Rows hold "error", the L2 norm over all six fields at
    `TABLE_2_END`, and the seconds of a stage.
    """
    mode, end = BoxMode(*TABLE_2_MODE), TABLE_2_END
    for K, h in TABLE_2.items():
        solver = Solver(read(MESHES / f"cavity_{K}.msh"), order, dtype, session.device)
        u = solver.interpolate(lambda x, y, z: mode(x, y, z, 0.0))
        error = solver.l2_error(solver.run(u, end, solver.cfl_dt()), mode, end)
        row = fused_row(solver.launcher, session)
        size = row["size"] | {"nominal_K": K, "h": h, "t_end": end}
        yield row | {"size": size, "error": error}


def sphere_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record maxwell/sphere: a stage on each of `SHELLS`, and the errors of a run.

    "errors" are those of `sphere_errors` between the radii "layers".
    """
    for name in SHELLS:
        solver, errors = sphere_errors(name, order, dtype, session.device)
        row = fused_row(solver.launcher, session)
        yield row | {"mesh": name.split(".")[0], "layers": list(LAYERS), "errors": errors}


def scattering_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record maxwell/scattering: klockner2009, Figure 12, a plane wave on a body."""
    mesh = read(MESHES / "jet.msh.gz")
    wave = PlaneWave((1, 0, 0), (0, 0, 1), "sine", 2 * np.pi)
    boundary = {"body": Scatterer(wave), "farfield": "absorbing"}
    for path in PATHS:
        solver = Solver(mesh, order, dtype, session.device, boundary=boundary, path=path)
        u = np.zeros((6, mesh.K, solver.element.Np), dtype)
        timing = measure(solver.march(u, 1.0, solver.cfl_dt()).step, session.device)
        cost = costs(order, mesh.K, dtype)[path]
        stages = len(lsrk45.A)
        cost = Cost(stages * cost.flops, stages * cost.bytes)
        plan = solver.launcher.plan
        language = getattr(plan, "language", "numba")
        subject = subject_of(solver.operator)
        yield session.row(subject, path, language, plan, cost, timing) | {"step": True}


def error_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record maxwell/error: a stage in CUDA C++, and how exact du/dt is.

    By ordinary units and on tensor cores; in fp32 there by each of `PRODUCTS`, with the best plan
    known for the last; and in the Bernstein basis, from nodal values and back to them. "variant"
    says which; "error" and "bias" are those of `stage_error`.
    """
    meshes = cube(cells_for(dofs, order)), cube(ERROR_CELLS)
    operator, small = (operator_on(mesh, order, dtype) for mesh in meshes)
    tensor, plain = (
        shipped(FusedPlan, fused_shape(operator), capability)
        for capability in (session.device.compute_capability, None)
    )
    ways = [("ordinary units", plain, ())]
    if tensor.tensor and dtype == "float32":
        ways += [(name, tensor, edits) for name, edits in PRODUCTS.items()]
    elif tensor.tensor:
        ways.append(("tensor cores", tensor, ()))
    launchers = [FusedLauncher(o, session.device, ways[0][1]) for o in (operator, small)]
    for variant, plan, edits in ways:
        timed, compared = (launcher.planned(plan) for launcher in launchers)
        if edits:
            timed.kernel = compared.kernel = EditedKernel(timed.kernel, edits)
        yield fused_row(timed, session) | {"variant": variant} | stage_error(compared)
    timed, compared = (
        BernsteinFusedLauncher(operator_on(mesh, order, dtype, "bernstein"), session.device)
        for mesh in meshes
    )
    yield fused_row(timed, session) | {"variant": "Bernstein"} | stage_error(compared)


def counters_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record maxwell/counters: the fused stages and the paper's kernels.

    "counters" says how busy the parts of the GPU are, in percent; see `dgbook.lab.profile`.
    """
    mesh = cube(cells_for(dofs, order))
    operator, other = (operator_on(mesh, order, dtype, basis) for basis in BASES)
    fused = next(fused_rows(operator, session, every=False))
    bernstein = next(bernstein_rows(other, session, every=False))
    *parts, _ = paper_rows(operator, session)
    program = f"from dgbook.lab.maxwell import launch_each as f; f{order, dtype, dofs}"
    yield from counted([fused, bernstein, *parts], program)


def launch_each(order: int, dtype: str, dofs: int) -> None:
    """Launch the fused stages and each of the paper's kernels, once to warm up and once counted."""
    device, mesh = find_device("cuda"), cube(cells_for(dofs, order))
    operator, other = (operator_on(mesh, order, dtype, basis) for basis in BASES)
    launch_counted(
        [
            stage_on_noise(FusedLauncher(operator, device)),
            stage_on_noise(BernsteinFusedLauncher(other, device)),
            *parts_of(PaperLauncher(operator, device)).values(),
        ]
    )


def ladder_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record maxwell/ladder: a stage on each rung from five kernels to one.

    "rung" says which, see `dgbook.lab.ladder`; all are held against the floor of the fused stage.
    "counters" and "counts" are Nsight Compute's, on the same data: percentages, and numbers per
    degree of freedom ("registers" per thread). Then, on a small cube and by the host's clock, the
    stages of time steps that Python launches and that a graph does.
    """
    operator = operator_on(cube(cells_for(dofs, order)), order, dtype)
    tensor = best_tensor_plan(operator, session.device)
    program = "from dgbook.lab.maxwell import FusedPlan, launch_rungs as f; "
    program += f"f{order, dtype, dofs, tensor}"
    rungs = ladder.rungs(order, dtype, session.device, tensor)
    yield from rung_rows(rungs, operator, session, "ladder", program)
    yield from graph_rows(order, dtype, session)


def levers_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record maxwell/levers: parts of the rung "register tile", alone and by twos.

    Like those of maxwell/ladder, of `dgbook.lab.ladder.levers`; "rung" says which.
    """
    operator = operator_on(cube(cells_for(dofs, order)), order, dtype)
    program = f"from dgbook.lab.maxwell import launch_levers as f; f{order, dtype, dofs}"
    rungs = ladder.levers(order, dtype, session.device)
    yield from rung_rows(rungs, operator, session, "levers", program)


def rung_rows(
    rungs: list[ladder.Rung], operator: reference.Operator, session: Session, path: str,
    program: str,
) -> Rows:  # fmt: skip
    """A row per rung, with counters of what `program` launches: a stage of each in this order."""
    element, dtype = operator.element, operator.lift.dtype.name
    cost, subject = costs(element.order, operator.mesh.K, dtype)["fused"], subject_of(operator)
    rows = []
    for rung, launcher, stage in rung_stages(rungs, operator, session.device):
        timing = measure(session.device.capture(stage), session.device)
        row = session.row(subject, path, rung.language, launcher.plan, cost, timing)
        rows.append(row | {"rung": rung.name})
    yield from launch_sums(rows, program, [rung.launches for rung in rungs])


def rung_stages(
    rungs: Iterable[ladder.Rung], operator: reference.Operator, device: Device
) -> Iterator[tuple[ladder.Rung, Any, Callable[[], None]]]:
    """Each rung with its launcher and what launches a stage on noise; states are shared."""
    launchers, states = {}, {}
    values, dt = noise(operator), small_dt(operator.face_scale)
    for rung in rungs:
        if rung.layout not in launchers:
            first = launchers[rung.layout] = ladder.LAYOUTS[rung.layout](operator, device)
            u = first.upload(values)
            states[rung.layout] = u, u.copy(), u if first.in_place else first.zeros()
        launcher = rung.on(launchers[rung.layout])
        arguments = *states[rung.layout], no_data(launcher), A, B, dt
        yield rung, launcher, partial(launcher.stage, *arguments)


def launch_rungs(order: int, dtype: str, dofs: int, tensor: FusedPlan | None) -> None:
    """Launch a stage on each rung, once to warm up and once counted."""
    _launch(ladder.rungs, order, dtype, dofs, tensor)


def launch_levers(order: int, dtype: str, dofs: int) -> None:
    """Launch a stage by each lever, once to warm up and once counted."""
    _launch(ladder.levers, order, dtype, dofs)


def _launch(
    make: Callable[..., list[ladder.Rung]], order: int, dtype: str, dofs: int, *more: Any
) -> None:
    """Launch a stage on each rung of ``make(order, dtype, device, *more)``."""
    device = find_device("cuda")
    operator = operator_on(cube(cells_for(dofs, order)), order, dtype)
    rungs = make(order, dtype, device, *more)
    launch_counted([stage for _, _, stage in rung_stages(rungs, operator, device)])


def best_tensor_plan(operator: reference.Operator, device: Device) -> FusedPlan | None:
    """The fastest plan known for tensor cores, timed if there are several; None without them."""
    order, dtype = operator.element.order, operator.lift.dtype.name
    plans = ladder.tensor_plans(order, dtype, device)
    if len(plans) < 2:
        return plans[0] if plans else None
    launcher = FusedLauncher(operator, device, plans[0])
    seconds = {plan: stage_timing(launcher.planned(plan)).median for plan in plans}
    return min(plans, key=seconds.__getitem__)


def graph_rows(order: int, dtype: str, session: Session) -> Rows:
    """Stages of time steps on a small cube, launched by Python and by a graph."""
    operator = operator_on(cube(ladder.SMALL_CELLS), order, dtype)
    cost = costs(order, operator.mesh.K, dtype)["fused"]
    launcher = FusedLauncher(operator, session.device)
    steps = ladder.two_steps(
        launcher, launcher.upload(noise(operator)), no_data(launcher), small_dt(operator.face_scale)
    )
    steps()  # whatever is compiled at the first launch cannot be recorded
    for name, function in (
        ("launched by Python", steps),
        ("graph", session.device.capture(steps)),
    ):
        timing = ladder.by_the_clock(function, session.device)
        plan, subject = launcher.plan, subject_of(operator)
        row = session.row(subject, "ladder", plan.language, plan, cost, timing)
        yield row | {"rung": name}


RECORDS = {
    "stage": stage_record,
    "plans": plans_record,
    "tiles": tiles_record,
    "variants": variants_record,
    "sizes": sizes_record,
    "bases": bases_record,
    "table2": table2_record,
    "sphere": sphere_record,
    "scattering": scattering_record,
    "counters": counters_record,
    "error": error_record,
    "ladder": ladder_record,
    "levers": levers_record,
    "sooner": sooner.sooner_record,
    "factored": factored.factored_record,
}
