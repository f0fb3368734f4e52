"""Acoustic waves on the command line: python -m dgbook run | bench | tune acoustics."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dgbook.acoustics.exact import CubeMode, PlaneWave
from dgbook.acoustics.plan import KERNEL_SETS, Shape
from dgbook.acoustics.problem import CONDITIONS, FIELDS, FLUXES
from dgbook.acoustics.reference import BASES
from dgbook.acoustics.solver import PATHS, REFERENCE_ARRAYS, Solver
from dgbook.cli import checkpoint, options, running
from dgbook.cli.fields.acoustics import write_fields
from dgbook.gpu import device as find_device
from dgbook.gpu.plan import choose
from dgbook.lab import acoustics as measure
from dgbook.lab import measuring
from dgbook.mesh import Mesh, box
from dgbook.nodal.fused import LANGUAGES
from dgbook.nodal.linear import METHODS
from dgbook.nodal.solving import DTYPES, March

MATTER = ("kappa", "rho")
WORDS = (*CONDITIONS, "incident")
INITIAL = ("mode", "pulse", "zero")
QUIET = 4.0
"""Widths between a pulse and the boundary when the run starts: exp(-16) = 1e-7 there."""


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `run`."""
    domain = parser.add_mutually_exclusive_group()
    domain.add_argument(
        "--mesh", type=Path, help="Gmsh file, 2.2 or 4.1; without it the cube [-1, 1]^3"
    )
    domain.add_argument("--cells", type=int, default=4, help="cells of the cube in each direction")
    parser.add_argument("--order", type=int, default=4, help="polynomial degree N")
    parser.add_argument("--t-end", type=float, default=1.0, help="final time")
    parser.add_argument("--dtype", default="float64", choices=DTYPES, help="precision")
    parser.add_argument("--device", default="auto", help="auto, cuda, cpu or simulator")
    parser.add_argument("--basis", default="nodal", choices=BASES, help="of the polynomials")
    parser.add_argument("--flux", default="upwind", choices=FLUXES, help="numerical flux")
    parser.add_argument("--path", choices=PATHS, help="which kernels; the fastest if not given")
    parser.add_argument(
        "--method", default="lsrk45", choices=METHODS, help="Runge-Kutta method, of 5 or 14 stages"
    )

    physics = parser.add_argument_group("the problem")
    physics.add_argument(
        "--boundary",
        action="append",
        default=[],
        metavar="NAME=CONDITION",
        help=f"{', '.join(WORDS)}; without NAME for all boundaries; may be repeated, the last "
        "counts; soft, which is p = 0, where nothing is said",
    )
    running.add_matter_arguments(physics, MATTER)
    physics.add_argument(
        "--initial",
        choices=INITIAL,
        help="the cube's lowest mode, a Gaussian pulse of pressure, or nothing; if not given, "
        "nothing where a wave comes in, the mode in a cube, else the pulse",
    )
    physics.add_argument(
        "--wave-direction",
        type=float,
        nargs=3,
        default=(1.0, 0.0, 0.0),
        metavar=("X", "Y", "Z"),
        help="of the plane wave, a Gaussian pulse, that comes in",
    )
    physics.add_argument("--wave-width", type=float, default=1.0, help="of the pulse, in time")
    physics.add_argument(
        "--wave-delay", type=float, help="if not given, such that the wave begins with the run"
    )
    running.add_file_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """Solve the acoustic equations in a cube or on a Gmsh file, and write files for ParaView."""
    options.check_positive("--t-end", arguments.t_end)
    if arguments.wave_delay is not None:
        options.check_finite("--wave-delay", arguments.wave_delay)
    files = running.files_of(arguments, write_fields)
    with files.claimed():
        _run(arguments, files)


def _run(arguments: argparse.Namespace, files: running.Files) -> None:
    mesh = _mesh(arguments)
    words = running.words_of(arguments.boundary, list(mesh.boundary), WORDS, "soft")
    matter = {name: running.matter_of(name, getattr(arguments, name), mesh) for name in MATTER}
    wave = _wave(arguments, mesh, words, matter)
    initial = running.initial_of(arguments, wave is not None)
    solver = Solver(
        mesh,
        arguments.order,
        arguments.dtype,
        arguments.device,
        arguments.basis,
        arguments.flux,
        **matter,
        boundary={name: wave if word == "incident" else word for name, word in words.items()},
        path=arguments.path,
        method=arguments.method,
    )
    kept = ("order", "t_end", "dtype", "basis", "flux", "method", "every", *MATTER)
    problem = {
        "mesh": checkpoint.fingerprint(mesh),
        "wave": repr(wave),
        "boundary": words,
        "initial": initial,
        **{name: getattr(arguments, name) for name in kept},
    }
    running.refuse_if_too_large(solver, solver.memory_bytes())
    mode = CubeMode(*(float(values[0]) for values in matter.values()))
    begun = running.fields_at_start(initial, mode, pulse, mesh, len(Solver.fields))
    march, energy = running.begin(
        solver,
        files,
        problem,
        arguments.resume,
        arguments.t_end,
        lambda: solver.interpolate(begun),
        solver.energy,
    )
    first = march.done
    print(_description(solver, march, words, wave, initial), flush=True)
    keep = running.keeper(files.checkpoint, march, energy, problem)
    seconds = running.advance(solver, march, files, keep, arguments.checkpoint_every)

    u = march.state()
    print(f"energy {energy:.6g} at t = 0, {solver.energy(u):.6g} at t = {march.time:g}")
    uniform = all(np.ptp(values) == 0 for values in matter.values())
    if initial == "mode" and set(words.values()) == {"soft"} and uniform:
        print(f"L2 error {solver.l2_error(u, mode, march.time):.3e}")
    stages = len(solver.method.A) * (march.count - first)
    running.report(solver, march, files, stages, seconds)


# --------------------------------------------------------------------------------------- problem


def _mesh(arguments: argparse.Namespace) -> Mesh:
    if arguments.mesh is None:
        arrays = len(FIELDS), *REFERENCE_ARRAYS[arguments.basis]
        running.refuse_large_box("--cells", arguments.cells, 3, arguments, *arrays)
        return box((arguments.cells,) * 3, -1.0, 1.0)
    return running.mesh_from(arguments.mesh, 3)


def _wave(
    arguments: argparse.Namespace,
    mesh: Mesh,
    words: dict[str, str],
    matter: dict[str, np.ndarray],
) -> PlaneWave | None:
    """What comes in, if anything does."""
    faces = running.faces_of(mesh, words, ("incident",))
    if not len(faces):
        return None
    there = {name: values[faces[:, 0]] for name, values in matter.items()}
    for name, values in there.items():
        if np.ptp(values) > 0:
            raise ValueError(
                f"--{name}: a plane wave is known in a uniform medium only; allowed: one value "
                "at the boundary where it comes in"
            )
    kappa, rho = (float(values[0]) for values in there.values())
    wave = PlaneWave(arguments.wave_direction, arguments.wave_width, 0.0, kappa, rho)
    delay = arguments.wave_delay
    if delay is None:
        slowness = np.sqrt(rho / kappa)
        delay = QUIET * wave.width - slowness * running.first_along(mesh, faces, wave.direction)
    return PlaneWave(wave.direction, wave.width, delay, kappa, rho)


def pulse(center: np.ndarray, width: float) -> Callable:
    """p = exp(-|x - center|^2 / width^2) in a medium at rest, a function of (x, y, z)."""

    def fields(x, y, z) -> list[np.ndarray]:
        """The four fields."""
        squares = sum((s - c) ** 2 for s, c in zip((x, y, z), center, strict=True))
        return [np.exp(-squares / width**2), *[np.zeros_like(x)] * 3]

    return fields


def _description(
    solver: Solver, march: March, words: dict[str, str], wave: PlaneWave | None, initial: str
) -> str:
    """What is about to be computed."""
    boundaries = ", ".join(f"{name}={word}" for name, word in words.items())
    kernels = "" if solver.device.kind == "cpu" else f", path {solver.path}"
    return running.description(
        solver,
        march,
        solver.memory_bytes(),
        f"basis {solver.basis}, {solver.operator.flux} flux{kernels}; boundaries {boundaries}",
        *([str(wave)] if wave else []),
        f"at t = 0: {initial}",
    )


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    measuring.add_bench_arguments(parser, "acoustics", measure.RECORDS)
    options.add_measured(parser, 9, 56_000_000)


def add_tune_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tune`."""
    options.add_measured(parser, 9, measure.TUNED_DOFS)
    parser.add_argument("--paths", nargs="+", default=PATHS, choices=PATHS, help="whose plans")


def bench(arguments: argparse.Namespace) -> None:
    """Measure the acoustic operator on this GPU and write records."""
    orders = dict.fromkeys(measure.RECORDS, arguments.orders)
    measuring.bench(arguments, "acoustics", measure.RECORDS, arguments.dofs, orders)


def tune(arguments: argparse.Namespace) -> None:
    """Time the plans of the kernels on this GPU and remember the fastest."""
    device = find_device("cuda")
    for order in arguments.orders:
        mesh = measure.cube(measure.cells_for(arguments.dofs, order))
        for dtype in arguments.dtypes:
            operators = measure.operators_on(mesh, order, dtype)
            if "paper" in arguments.paths:
                for name, (kind, variant) in KERNEL_SETS.items():
                    measure.tune_paper(name, operators[kind.basis], device)
                    plan = choose(kind, Shape(order, dtype), device, variant)
                    print(f"N={order} {dtype} {name}: {plan}", flush=True)
            if "fused" in arguments.paths:
                for basis, operator in operators.items():
                    for language in LANGUAGES:
                        plan = measure.tune_fused(operator, device, language).plan
                        print(f"N={order} {dtype} {basis}: {plan}", flush=True)
