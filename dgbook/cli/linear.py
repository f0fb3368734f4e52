"""The linear family on the command line: python -m dgbook run | bench | tune linear."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import partial

import numpy as np

from dgbook.cli import options, ranks, running
from dgbook.gpu import Device
from dgbook.gpu import device as find_device
from dgbook.gpu.tune import tune as search
from dgbook.lab import linear as measure
from dgbook.lab import measuring, records
from dgbook.lab.numbers import live
from dgbook.lab.roofline import ceilings
from dgbook.lab.session import Session
from dgbook.linear.problem import FLUXES, standing_wave, transported
from dgbook.linear.solver import PATHS, REFERENCE_ARRAYS, Solver
from dgbook.nodal.solving import DTYPES

SYSTEMS = ("advection", "wave")
RECORDS = {
    "stage": measure.measured,
    "plans": measure.under_every_plan,
    "numbering": measure.numberings,
}
"""By the record's name what makes its rows."""


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
    running.add_device_arguments(parser)
    running.add_parts_argument(parser)


def run(arguments: argparse.Namespace) -> None:
    """Advect a sine around the unit box, or let a wave stand in it, and print the error."""
    dim = arguments.dim
    options.check_positive("--t-end", arguments.t_end)
    system = measure.system_of(arguments.system, dim)
    arrays = system.n, *REFERENCE_ARRAYS[dim]
    running.refuse_large_box("--cells", arguments.cells, dim, arguments, *arrays)
    if arguments.system == "advection":
        exact = transported(measure.VELOCITY[:dim], lambda *x: np.sin(2 * np.pi * sum(x)))
    else:
        exact = standing_wave((1,) * dim)
    mesh = measure.mesh_of((arguments.cells,) * dim, arguments.system)
    solver = running.solver_of(
        arguments,
        mesh,
        lambda mesh, elements: Solver(
            mesh,
            arguments.order,
            system,
            arguments.flux,
            measure.boundary_of(arguments.system),
            arguments.dtype,
            arguments.device,
            arguments.path,
        ),
    )
    running.refuse_if_too_large(ranks.any_of(solver), solver.memory_bytes())
    print("\n".join([solver.device.sentence, *running.in_parts(solver)]))
    u = solver.interpolate(lambda *x: exact(*x, 0.0))
    start = time.perf_counter()
    u = solver.run(u, arguments.t_end, progress=ranks.leads(solver))
    seconds = time.perf_counter() - start
    took = live(seconds, "s", solver.device)
    dofs = system.n * mesh.K * solver.element.Np
    print(f"{dofs} degrees of freedom to t = {arguments.t_end:g}, compilation included: {took}")
    print(f"L2 error {solver.l2_error(u, exact, arguments.t_end):.3e}")


# ------------------------------------------------------------------------------- bench and tune


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    add_tune_arguments(parser)
    parser.add_argument(
        "what",
        nargs="?",
        default="stage",
        choices=RECORDS,
        help="the record that is made, under linear/: operators, stages and rivals; the fused "
        "stage under all plans; or with its elements in several orders",
    )
    parser.add_argument(
        "--paths",
        nargs="+",
        default=measure.MEASURED,
        choices=measure.MEASURED,
        help="what linear/stage times",
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
    """Measure what a record holds, and write it."""
    device = find_device("cuda")
    session = Session(device, ceilings(device))
    make = RECORDS[arguments.what]
    if arguments.what == "stage":
        make = partial(make, paths=arguments.paths)
    rows = (row for s in _solvers(arguments, device) for row in make(s, session.ceiling))
    name = f"linear/{arguments.what}"
    here = records.environment(device)
    measuring.write_record(name, here, session, rows, measure.line, arguments.out)


def tune(arguments: argparse.Namespace) -> None:
    """Time every plan of the fused kernel on this GPU and remember the fastest."""
    device = find_device("cuda")
    for solver in _solvers(arguments, device):
        result = search(
            solver.plan.subject(solver.shape),
            solver.plan.candidates(solver.shape),
            lambda plan, s=solver: measure.fused_stage(s, plan),
            device,
            solver.element.order,
            solver.dtype,
        )
        rate = live(measure.dofs(solver) / result.seconds * 1e-9, "GDOF/s", device)
        print(
            f"{solver.mesh.dim}D N={solver.element.order} {solver.dtype}: {result.plan}, "
            f"{rate}; {result.measured} of {len(result.trials)} plans measured now",
            flush=True,
        )


def _solvers(arguments: argparse.Namespace, device: Device) -> Iterator[Solver]:
    for dim in arguments.dim:
        for order in arguments.orders:
            for dtype in arguments.dtypes:
                yield measure.solver_of(dim, arguments.system, order, arguments.dofs, dtype, device)
