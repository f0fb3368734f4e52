"""The linear family on the command line: python -m dgbook run | bench | tune linear."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dgbook import options, records, running
from dgbook.element import space_dimension
from dgbook.gpu import Device
from dgbook.gpu import device as find_device
from dgbook.gpu.roofline import Ceilings, ceilings
from dgbook.gpu.timing import Timing, measure
from dgbook.gpu.tune import tune as search
from dgbook.linear import matmul, reference
from dgbook.linear.cost import Cost, costs
from dgbook.linear.plan import Plan, plans, subject
from dgbook.linear.problem import FLUXES, System, advection, standing_wave, transported, wave
from dgbook.linear.solver import PATHS, REFERENCE_ARRAYS, Solver
from dgbook.mesh import Mesh, box
from dgbook.records import live
from dgbook.solving import DTYPES
from dgbook.time import lsrk45

VELOCITY = (1.0, 0.5, 0.25)
SYSTEMS = ("advection", "wave")
MEASURED = ("volume", "surface", "update", "split", "fused", "rival:cupy-matmul", "numpy")
STAGE = 1  # its |A_s| is below 1: repeated on one state, nothing grows
NUMPY_DOFS = 2**18


# ------------------------------------------------------------------------------------------- run


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `run`."""
    parser.add_argument("--dim", type=int, default=1, choices=(1, 2, 3), help="space dimensions")
    parser.add_argument("--system", default="advection", choices=SYSTEMS, help="what is solved")
    parser.add_argument("--order", type=int, default=4, help="polynomial degree N")
    parser.add_argument("--cells", type=int, default=8, help="cells in each direction")
    parser.add_argument("--t-end", type=float, default=1.0, help="final time")
    parser.add_argument("--flux", default="upwind", choices=FLUXES, help="numerical flux")
    parser.add_argument("--dtype", default="float64", choices=DTYPES, help="precision")
    parser.add_argument("--path", default="fused", choices=PATHS, help="which kernels")
    parser.add_argument("--device", default="auto", help="auto, cuda, cpu or simulator")


def run(arguments: argparse.Namespace) -> None:
    """Advect a sine around the unit box, or let a wave stand in it, and print the error."""
    dim = arguments.dim
    options.check_positive("--t-end", arguments.t_end)
    system = _system(arguments.system, dim)
    arrays = system.n, *REFERENCE_ARRAYS[dim]
    running.refuse_large_box("--cells", arguments.cells, dim, arguments, *arrays)
    if arguments.system == "advection":
        exact = transported(VELOCITY[:dim], lambda *x: np.sin(2 * np.pi * sum(x)))
    else:
        exact = standing_wave((1,) * dim)
    solver = Solver(
        _mesh((arguments.cells,) * dim, arguments.system),
        arguments.order,
        system,
        arguments.flux,
        _boundary(arguments.system),
        arguments.dtype,
        arguments.device,
        arguments.path,
    )
    running.refuse_if_too_large(solver, solver.memory_bytes())
    print(solver.device.sentence)
    u = solver.interpolate(lambda *x: exact(*x, 0.0))
    start = time.perf_counter()
    u = solver.run(u, arguments.t_end, progress=True)
    seconds = time.perf_counter() - start
    took = live(seconds, "s", solver.device)
    print(f"{u.size} degrees of freedom to t = {arguments.t_end:g}, compilation included: {took}")
    print(f"L2 error {solver.l2_error(u, exact, arguments.t_end):.3e}")


# ------------------------------------------------------------------------------- bench and tune


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    add_tune_arguments(parser)
    parser.add_argument(
        "--paths", nargs="+", default=MEASURED, choices=MEASURED, help="what to time"
    )
    parser.add_argument(
        "--every-plan",
        action="store_true",
        help="time the fused stage under all plans instead, into the record linear/plans",
    )
    parser.add_argument("--out", help="folder for the record; chapters/records if not given")


def add_tune_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tune`."""
    parser.add_argument(
        "--dim", type=int, nargs="+", default=[1, 3], choices=(1, 2, 3), help="space dimensions"
    )
    parser.add_argument("--system", default="advection", choices=SYSTEMS, help="what is solved")
    options.add_measured(parser, 8, 2**24)


def bench(arguments: argparse.Namespace) -> None:
    """Measure the operators, a stage by either path, and its rivals; write a record."""
    device = find_device("cuda")
    ceiling = ceilings(device)
    rows = []
    for solver in _solvers(arguments, device):
        for row in (
            _under_every_plan(solver, ceiling)
            if arguments.every_plan
            else measured(solver, ceiling, arguments.paths)
        ):
            rows.append(row)
            print(line(row, device), row["plan"], flush=True)
    content = {
        "name": "linear/plans" if arguments.every_plan else "linear/stage",
        **records.environment(device),
        "ceilings": ceiling.as_dict(),
        "rows": rows,
    }
    print("written:", records.save(content, arguments.out))


def tune(arguments: argparse.Namespace) -> None:
    """Time every plan of the fused kernel on this GPU and remember the fastest."""
    device = find_device("cuda")
    for solver in _solvers(arguments, device):
        result = search(
            subject(solver.shape),
            plans(solver.shape),
            lambda plan, s=solver: _fused_stage(s, plan),
            device,
            solver.element.order,
            solver.dtype,
        )
        rate = live(_dofs(solver) / result.seconds * 1e-9, "GDOF/s", device)
        print(
            f"{solver.mesh.dim}D N={solver.element.order} {solver.dtype}: {result.plan}, "
            f"{rate}; {result.measured} of {len(result.trials)} plans measured now",
            flush=True,
        )


def measured(solver: Solver, ceiling: Ceilings, paths: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The rows of a record for one solver on a GPU, see ``records.validate``.

    The rival is a whole stage, and so is "numpy": the reference on this machine's CPU, on a mesh
    of its own, smaller one, against the same GPU's floor.
    """
    counted = costs(solver.shape, solver.mesh.K, solver.system, solver.operator.flux)
    on_gpu = [path for path in paths if path != "numpy"]
    for path, function in _functions(solver).items() if on_gpu else ():
        if path in on_gpu:
            cost = counted["fused" if path.startswith("rival:") else path]
            language = "cupy" if path.startswith("rival:") else "numba"
            timing = measure(function, solver.device)
            yield _row(solver, path, language, cost, timing, ceiling)
    if "numpy" in paths:
        small = _solver(
            solver.mesh.dim,
            solver.system.name,
            solver.element.order,
            NUMPY_DOFS,
            solver.dtype.name,
            find_device("cpu"),
        )
        cost = costs(small.shape, small.mesh.K, small.system, small.operator.flux)["fused"]
        timing = measure(_numpy_stage(small), small.device, samples=20, warmup=1)
        yield _row(small, "numpy", "numpy", cost, timing, ceiling)


def _under_every_plan(solver: Solver, ceiling: Ceilings) -> Iterator[dict[str, Any]]:
    """Rows of the fused stage, one for each plan that is legal."""
    cost = costs(solver.shape, solver.mesh.K, solver.system, solver.operator.flux)["fused"]
    for plan in plans(solver.shape):
        timing = measure(_fused_stage(solver, plan), solver.device)
        yield _row(solver, "fused", "numba", cost, timing, ceiling) | {"plan": vars(plan)}


def line(row: dict[str, Any], device: Device) -> str:
    """A row as a line of text, its numbers labelled LIVE."""
    duration, rate, traffic, efficiency = (
        live(row, unit, device) for unit in ("us", "GDOF/s", "GB/s", "efficiency")
    )
    return (
        f"{row['size']['dim']}D N={row['order']} {row['dtype']} {row['path']:18} "
        f"{duration.text():>11} {traffic.text():>10} efficiency {efficiency.text('.2f')} {rate}"
    )


def _row(
    solver: Solver, path: str, language: str, cost: Cost, timing: Timing, ceiling: Ceilings
) -> dict[str, Any]:
    row = records.measured_row(
        path,
        language,
        solver.element.order,
        solver.dtype,
        {
            "dim": solver.mesh.dim,
            "system": solver.system.name,
            "K": solver.mesh.K,
            "Np": solver.element.Np,
            "fields": solver.system.n,
        },
        _dofs(solver),
        solver.plan if language == "numba" else None,
        cost,
        timing,
        ceiling,
        solver.device,
    )
    return row | {"trace_bytes": cost.trace_bytes}


def _functions(solver: Solver) -> dict[str, Callable[[], None]]:
    """What is timed on the GPU: launches, recorded where there are several."""
    launcher, dt = solver.launcher, 1e-3 * solver.stable_dt()
    u, res, rhs = (launcher.upload(_noise(solver)) for _ in range(3))

    def volume() -> None:
        launcher.volume(u, rhs)

    def surface() -> None:
        launcher.surface(u, rhs)

    def update() -> None:
        launcher.update(rhs, res, u, STAGE, dt)

    def split() -> None:
        volume()
        surface()
        update()

    def rival() -> None:
        matmul.stage(launcher, u, res, STAGE, dt)

    stages = {"volume": volume, "surface": surface, "update": update, "split": split}
    recorded = {path: solver.device.capture(stage) for path, stage in stages.items()}
    return recorded | {"fused": _fused_stage(solver, solver.plan), "rival:cupy-matmul": rival}


def _fused_stage(solver: Solver, plan: Plan) -> Callable[[], None]:
    """A fused stage under a plan, recorded."""
    launcher = solver.launcher.planned(plan)
    u, res = (launcher.upload(_noise(solver)) for _ in range(2))
    new, dt = launcher.zeros(), solver.stable_dt()

    def stage() -> None:
        launcher.fused(u, res, new, STAGE, dt)

    return solver.device.capture(stage)


def _numpy_stage(solver: Solver) -> Callable[[], None]:
    """A stage by the reference."""
    u, res = _noise(solver), _noise(solver)
    a, b, dt = lsrk45.A[STAGE], lsrk45.B[STAGE], 1e-3 * solver.stable_dt()

    def stage() -> None:
        nonlocal res, u
        res = a * res + dt * reference.rhs(solver.operator, u)
        u = u + b * res

    return stage


def _solvers(arguments: argparse.Namespace, device: Device) -> Iterator[Solver]:
    for dim in arguments.dim:
        for order in arguments.orders:
            for dtype in arguments.dtypes:
                yield _solver(dim, arguments.system, order, arguments.dofs, dtype, device)


def _solver(dim: int, name: str, order: int, dofs: int, dtype: str, device: Device) -> Solver:
    """A solver on a box with about so many degrees of freedom."""
    system = _system(name, dim)
    in_a_cell = system.n * space_dimension(dim, order) * math.factorial(dim)
    cells = max(1, round((dofs / in_a_cell) ** (1 / dim)))
    mesh = _mesh((cells,) * dim, name)
    return Solver(mesh, order, system, "upwind", _boundary(name), dtype, device)


def _mesh(cells: tuple[int, ...], name: str) -> Mesh:
    return box(cells, periodic=name == "advection")


def _system(name: str, dim: int) -> System:
    return advection(VELOCITY[:dim]) if name == "advection" else wave(dim)


def _boundary(name: str) -> str | None:
    return None if name == "advection" else "wall"


def _noise(solver: Solver) -> np.ndarray:
    shape = (solver.system.n, solver.mesh.K, solver.element.Np)
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32).astype(solver.dtype)


def _dofs(solver: Solver) -> int:
    return solver.system.n * solver.mesh.K * solver.element.Np
