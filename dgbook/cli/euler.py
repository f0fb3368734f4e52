"""The Euler equations on the command line: python -m dgbook run | bench | tune euler."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from dgbook.arguments import LEAST_MACH, MOST, MOST_MACH, check_range
from dgbook.cli import checkpoint, options, running
from dgbook.cli.fields.euler import shown
from dgbook.cli.ranks import any_of
from dgbook.euler.cost import STAGES
from dgbook.euler.exact import Stream, Vortex
from dgbook.euler.problem import FIELDS, FLUXES, GAMMA
from dgbook.euler.solver import PATHS, REFERENCE_STATES, Solver
from dgbook.gpu import device as find_device
from dgbook.lab import euler as measure
from dgbook.lab import measuring
from dgbook.mesh import Mesh, box
from dgbook.nodal.fused import LANGUAGES
from dgbook.nodal.solving import DTYPES

LOWER, UPPER = -5.0, 5.0  # chen's box
SIDES = ("x-", "x+", "y-", "y+")
WORDS = ("wall", "farfield", "vortex")
INITIAL = ("vortex", "stream")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `run`."""
    domain = parser.add_mutually_exclusive_group()
    domain.add_argument("--mesh", type=Path, help="Gmsh file, 2.2 or 4.1; without it a square")
    domain.add_argument(
        "--box", type=int, default=32, metavar="N", help="N^2 squares of two triangles, [-5, 5]^2"
    )
    parser.add_argument("--order", type=int, default=2, help="polynomial degree p, 0 to 6")
    parser.add_argument("--t-end", type=float, default=1.0, help="final time; the stream's speed 1")
    parser.add_argument(
        "--dt", type=float, help="longest step; if not given, what is stable for the first state"
    )
    parser.add_argument("--dtype", default="float64", choices=DTYPES, help="precision")
    running.add_device_arguments(parser)
    running.add_parts_argument(parser)
    parser.add_argument("--flux", default="roe", choices=FLUXES, help="numerical flux")
    parser.add_argument("--path", choices=PATHS, help="which kernels; the fastest if not given")

    physics = parser.add_argument_group("the problem")
    physics.add_argument(
        "--boundary",
        action="append",
        default=[],
        metavar="NAME=CONDITION",
        help=f"{', '.join(WORDS)} or, of opposite sides of the square, periodic; without NAME for "
        "all boundaries; may be repeated, the last counts. Where nothing is said farfield, which "
        "is the uniform stream, and the square is periodic",
    )
    physics.add_argument(
        "--initial",
        choices=INITIAL,
        help="chen's vortex in the stream, or the stream alone; if not given, the vortex in a "
        "square or where it is a boundary's condition, else the stream",
    )
    physics.add_argument("--mach", type=float, default=0.5, help="Mach number of the stream")
    physics.add_argument("--angle", type=float, default=45.0, help="its direction, in degrees")
    physics.add_argument("--strength", type=float, default=0.3, help="epsilon of the vortex")
    physics.add_argument("--radius", type=float, default=1.0, help="r_c of the vortex")
    physics.add_argument(
        "--center",
        type=float,
        nargs=2,
        default=(0.0, 0.0),
        metavar=("X", "Y"),
        help="of the vortex at t = 0",
    )
    running.add_file_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """Solve the Euler equations in a square or on a Gmsh file, and write files for ParaView."""
    options.check_positive("--t-end", arguments.t_end)
    check_range(f"--mach {arguments.mach}", arguments.mach, LEAST_MACH, MOST_MACH)
    check_range(f"--radius {arguments.radius}", arguments.radius)
    check_range(f"--strength {arguments.strength}", arguments.strength, -MOST)
    options.check_finite("--angle", arguments.angle)
    options.check_finite("--center", *arguments.center)
    running.run(arguments, shown, lambda: _case(arguments))


def _case(arguments: argparse.Namespace) -> running.Case:
    """The problem that the options describe, and what solves it."""
    mesh, words = _domain(arguments)
    stream, vortex = _flows(arguments, mesh)
    initial = _initial(arguments, words)
    conditions = {"farfield": stream, "vortex": vortex}
    solver = running.solver_of(
        arguments,
        mesh,
        lambda mesh, elements: Solver(
            mesh,
            arguments.order,
            arguments.dtype,
            arguments.device,
            arguments.flux,
            boundary={name: conditions.get(word, word) for name, word in words.items()},
            path=arguments.path,
        ),
    )
    kept = ("order", "t_end", "dt", "dtype", "flux", "every")
    problem = {
        "mesh": checkpoint.fingerprint(mesh),
        "stream": repr(stream),
        "vortex": repr(vortex),
        "boundary": words,
        "initial": initial,
        **{name: getattr(arguments, name) for name in kept},
    }
    exact = {"vortex": vortex, "stream": stream}[initial]
    whirl = f" with a vortex of strength {arguments.strength:g} and radius {arguments.radius:g}"
    numerics = running.numerics(any_of(solver))
    about = [
        f"boundaries {running.listed(words) or 'none: periodic'}; {numerics}",
        f"at t = 0: a stream at Mach {arguments.mach:g}, {arguments.angle:g} degrees"
        + (whirl if initial == "vortex" else ""),
    ]
    return running.Case(
        solver,
        problem,
        lambda x, y: exact(x, y, 0.0),
        about,
        STAGES,
        "entropy",
        ".10g",
        exact if _is_known(initial, words, vortex) else None,
        arguments.dt,
    )


# --------------------------------------------------------------------------------------- problem


def _domain(arguments: argparse.Namespace) -> tuple[Mesh, dict[str, str]]:
    """The mesh, and the condition of each of its boundaries in a word."""
    if arguments.mesh is not None:
        mesh = running.mesh_from(arguments.mesh, 2)
        names = list(mesh.boundary)
        return mesh, running.words_of(arguments.boundary, names, WORDS, "farfield")
    words = running.words_of(arguments.boundary, list(SIDES), (*WORDS, "periodic"), "periodic")
    joined = tuple(words[f"{axis}-"] == "periodic" for axis in "xy")
    for axis, both in zip("xy", joined, strict=True):
        if (words[f"{axis}+"] == "periodic") != both:
            raise ValueError(
                f"--boundary: {axis}-={words[f'{axis}-']}, {axis}+={words[f'{axis}+']}; allowed: "
                "periodic for both or neither"
            )
    arrays = len(FIELDS), REFERENCE_STATES, 0
    running.refuse_large_box("--box", arguments.box, 2, arguments, *arrays)
    mesh = box((arguments.box,) * 2, LOWER, UPPER, periodic=joined)
    return mesh, {name: word for name, word in words.items() if word != "periodic"}


def _flows(arguments: argparse.Namespace, mesh: Mesh) -> tuple[Stream, Vortex]:
    """The stream and the vortex in it: density and speed of the stream are 1."""
    angle = math.radians(arguments.angle)
    speed = (math.cos(angle), math.sin(angle))
    stream = Stream(1.0, *speed, 1 / (GAMMA * arguments.mach**2))
    coldest = (GAMMA - 1) * math.e * (arguments.strength * arguments.mach) ** 2 / (8 * math.pi**2)
    if not coldest < 1:
        most = arguments.strength / math.sqrt(coldest)
        raise ValueError(
            f"--strength {arguments.strength} at Mach {arguments.mach}: a vacuum in the core; "
            f"allowed: less than {most:.4g}"
        )
    vortex = Vortex(
        arguments.strength,
        arguments.radius,
        arguments.mach,
        speed,
        tuple(arguments.center),
        None if mesh.boundary else UPPER - LOWER,
    )
    return stream, vortex


def _initial(arguments: argparse.Namespace, words: dict[str, str]) -> str:
    """The flow at the start, in a word."""
    fitting = "stream" if arguments.mesh and "vortex" not in words.values() else "vortex"
    initial = arguments.initial or fitting
    if initial == "stream" and not {"wall", "vortex"} & set(words.values()):
        raise ValueError("--initial stream: nothing would happen without a wall or a vortex")
    return initial


def _is_known(initial: str, words: dict[str, str], vortex: Vortex) -> bool:
    """Whether the vortex is the exact solution: in a periodic square, or given on all sides."""
    everywhere = vortex.period is not None or (set(words.values()) == {"vortex"})
    return initial == "vortex" and everywhere


CELLS = 512


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    measuring.add_bench_arguments(parser, "euler", measure.RECORDS)
    options.add_orders(
        parser, None, "; if not given, 0..6, of blocks, sizes and kernels 0..2, of figure2 2"
    )
    _add_cells(parser)


def add_tune_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tune`."""
    options.add_orders(parser, "0..6")
    _add_cells(parser)


def _add_cells(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cells",
        type=int,
        default=CELLS,
        help="squares along each side of the box, but for records with sizes of their own",
    )


def bench(arguments: argparse.Namespace) -> None:
    """Measure the Euler equations on this GPU and write records."""
    orders = {what: arguments.orders or default for what, default in measure.ORDERS.items()}
    measuring.bench(arguments, "euler", measure.RECORDS, arguments.cells, orders)


def tune(arguments: argparse.Namespace) -> None:
    """Time the plans of the kernels on this GPU and remember the fastest."""
    device = find_device("cuda")
    for order in arguments.orders:
        for dtype in arguments.dtypes:
            operator = measure.operator_on(arguments.cells, order, dtype)
            results = [measure.tune_paper(operator, device)]
            results += [measure.tune_fused(operator, device, name) for name in LANGUAGES]
            for result in results:
                print(f"p={order} {dtype}: {result.plan}", flush=True)
