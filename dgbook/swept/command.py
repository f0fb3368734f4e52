"""The swept rule on the command line: python -m dgbook run | bench | tune swept."""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np

from dgbook import options
from dgbook.checks import check_memory
from dgbook.records import live
from dgbook.swept import exact
from dgbook.swept.bench import (  # noqa: F401  the other verbs of this family
    add_bench_arguments,
    add_tune_arguments,
    bench,
    tune,
)
from dgbook.swept.plan import DTYPES, SCHEMES, Plan
from dgbook.swept.problem import PROBLEMS
from dgbook.swept.solver import Solver
from dgbook.time import MOST_STEPS


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
    if output and (output.suffix != ".npz" or not output.parent.is_dir()):
        raise ValueError(f"--output {output}; allowed: a name that ends in .npz, in a folder")
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
        np.savez(output, x=solver.x, t=t, **dict(zip(solver.problem.fields, u, strict=True)))
        print(f"written: {output}")
