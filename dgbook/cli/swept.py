"""The swept rule on the command line: python -m dgbook run | bench | tune swept."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.arguments import check_memory
from dgbook.cli import options
from dgbook.cli.output import replacing
from dgbook.cli.running import check_place
from dgbook.gpu import Device
from dgbook.gpu import device as find_device
from dgbook.lab import measuring, swept_division, swept_gpus
from dgbook.lab import swept as measure
from dgbook.lab.numbers import live
from dgbook.swept import exact
from dgbook.swept.parts import PART_SCHEMES
from dgbook.swept.plan import DTYPES, SCHEMES, Plan, Shape
from dgbook.swept.problem import PROBLEMS, as_problem
from dgbook.swept.solver import Solver
from dgbook.time import MOST_STEPS

RECORDS = measure.RECORDS | {
    "division": swept_division.division_rows,
    "gpus": swept_gpus.gpus_rows,
}
SIZES = {"division": swept_division.SIZES, "gpus": swept_gpus.SIZES}
"""Of records that have not the sizes of the paper's figures."""


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `run`."""
    parser.add_argument("--problem", default="heat", choices=PROBLEMS, help="what is solved")
    parser.add_argument("--scheme", default="shared", choices=SCHEMES, help="how it is advanced")
    parser.add_argument("--n", type=int, default=2048, help="points")
    parser.add_argument(
        "--steps",
        type=int,
        default=1024,
        help="time steps; results are where the scheme has them, at least so many steps on",
    )
    parser.add_argument("--dtype", default="float64", choices=DTYPES, help="precision")
    parser.add_argument("--device", default="auto", help="auto, cuda, cpu or simulator")
    parser.add_argument("--threads", type=int, help="of a block; if not given, what divides n")
    parser.add_argument("--points", type=int, default=1, help="of a thread; with --threads")
    parser.add_argument("--tile-steps", type=int, default=1, help="of a launch of tiled")
    parser.add_argument("--output", type=Path, help="a .npz file: x, t and each field")


def run(arguments: argparse.Namespace) -> None:
    """Advance a problem in one dimension, and say how far it is from the exact solution."""
    options.check_count("--steps", arguments.steps, MOST_STEPS)
    output = arguments.output
    if output:
        if output.suffix != ".npz":
            raise ValueError(f"--output {output}; allowed: a name that ends in .npz")
        check_place("--output", output)
    plan = None
    if arguments.threads is not None:
        plan = Plan(arguments.threads, arguments.points, arguments.tile_steps)
    elif arguments.points > 1 or arguments.tile_steps > 1:
        raise ValueError("--points and --tile-steps need --threads: they are one plan")
    solver = Solver(
        arguments.problem,
        arguments.scheme,
        arguments.n,
        arguments.dtype,
        arguments.device,
        plan,
    )
    states = 4 * len(solver.problem.fields) * solver.dtype.itemsize  # what Classic has at a time
    check_memory(f"--n {arguments.n} needs", solver.n * states)
    every = solver.steps_between_results
    steps = math.ceil(arguments.steps / every) * every
    t = steps * solver.time_step
    print(
        f"{solver.problem.name} by {solver.scheme} on {solver.device.name}, {solver.dtype}: "
        f"n = {solver.n}, {solver.plan}\n"
        f"{steps} time steps to t = {t:.6g}, results every {every}",
        flush=True,
    )
    start = time.perf_counter()
    u = solver.run(solver.initial(), steps)
    seconds = time.perf_counter() - start
    known = {"heat": exact.heat, "euler": exact.sod}.get(solver.problem.name)
    for i, field in enumerate(solver.problem.fields):
        error = ""
        if known:
            difference = np.abs(u - known(solver.problem, solver.n, t))[i, 1:-1]
            error = f", mean error {difference.mean():.3e}"
        print(f"{field}: {u[i].min():.6g} to {u[i].max():.6g}{error}")
    rate = live(seconds / steps * 1e6, "us", solver.device)
    print(f"{rate} a step, with what is compiled, copied and recorded before the first")
    if output:
        with replacing(output) as file:
            np.savez(file, x=solver.x, t=t, **dict(zip(solver.problem.fields, u, strict=True)))
        print(f"written: {output}")


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    measuring.add_bench_arguments(
        parser, "swept", RECORDS, "problems, schemes, precisions and sizes"
    )
    add_tune_arguments(parser)


def add_tune_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tune`."""
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--schemes", nargs="+", default=list(SCHEMES), choices=SCHEMES)
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES), choices=DTYPES)
    parser.add_argument(
        "--sizes", nargs="+", type=int, metavar="N", help="points; the book's if not given"
    )


def bench(arguments: argparse.Namespace) -> None:
    """Measure the swept rule, and write records: gpus on all there are, the others on one."""
    given = arguments.problems, arguments.schemes, arguments.dtypes
    measuring.make_records(
        arguments,
        "swept",
        RECORDS,
        lambda what: (*given, sizes_of(arguments, what)),
        lambda what, row: _measured_again(arguments, what, row),
        line,
    )


def sizes_of(arguments: argparse.Namespace, what: str) -> Sequence[int]:
    """The sizes that are asked for, or those of the book's record."""
    return arguments.sizes or SIZES.get(what, measure.SIZES)


def tune(arguments: argparse.Namespace) -> None:
    """Time the plans of all schemes on this GPU and remember the fastest."""
    device = find_device("cuda")
    for problem in map(as_problem, arguments.problems):
        for scheme in arguments.schemes:
            for dtype in arguments.dtypes:
                for n in arguments.sizes or measure.SIZES:
                    shape = Shape(problem, scheme, n, dtype)
                    if legal := Plan.candidates(shape):
                        result, steps = measure.tune_step(shape, device, legal)
                        step = live(result.seconds / steps * 1e6, "us", device)
                        print(
                            f"{problem.name} {scheme} {dtype} n={n}: {result.plan}, {step}",
                            flush=True,
                        )


def _measured_again(arguments: argparse.Namespace, what: str, row: Mapping[str, Any]) -> bool:
    size = row["size"]
    return "n" not in size or (
        size["problem"] in arguments.problems
        and PART_SCHEMES.get(row["path"], row["path"]) in arguments.schemes
        and row["dtype"] in arguments.dtypes
        and size["n"] in sizes_of(arguments, what)
    )


def line(row: Mapping[str, Any], device: Device) -> str:
    """A row as a line of text, its numbers labeled LIVE."""
    duration = live(row["seconds_median"] * 1e6, "us", device)
    size = " ".join(f"{key}={value}" for key, value in row["size"].items())
    plan = " ".join(f"{key}={value}" for key, value in row["plan"].items())
    return f"{row['path']:13} {row['dtype']} {size:24} {plan} {row.get('variant', '')} {duration}"
