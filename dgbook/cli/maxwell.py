"""Maxwell's equations on the command line: python -m dgbook run | bench | tune maxwell."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dgbook.cli import checkpoint, options, running
from dgbook.cli.fields.maxwell import write_fields
from dgbook.gpu import device as find_device
from dgbook.lab import maxwell as measure
from dgbook.lab import measuring
from dgbook.maxwell.exact import BoxMode
from dgbook.maxwell.plan import STRATEGIES
from dgbook.maxwell.problem import CONDITIONS, FIELDS, FLUXES, PlaneWave, Scatterer
from dgbook.maxwell.solver import PATHS, REFERENCE_ARRAYS, Solver
from dgbook.mesh import Mesh, box
from dgbook.nodal.fused import LANGUAGES
from dgbook.nodal.linear import METHODS
from dgbook.nodal.solving import DTYPES, March

WORDS = (*CONDITIONS, "incident", "scatterer")
WAVES = ("incident", "scatterer")
INITIAL = ("mode", "pulse", "zero")
QUIET = 4.0
"""Widths between a Gaussian pulse and the boundary when the run starts: exp(-16) = 1e-7 there."""


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `run`."""
    domain = parser.add_mutually_exclusive_group()
    domain.add_argument("--mesh", type=Path, help="Gmsh file, 2.2 or 4.1; without it a unit cube")
    domain.add_argument("--cells", type=int, default=4, help="cells of the cube in each direction")
    parser.add_argument("--order", type=int, default=4, help="polynomial degree N")
    parser.add_argument("--t-end", type=float, default=1.0, help="final time; light has speed 1")
    parser.add_argument("--dtype", default="float64", choices=DTYPES, help="precision")
    parser.add_argument("--device", default="auto", help="auto, cuda, cpu or simulator")
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
        "counts; pec where nothing is said",
    )
    running.add_matter_arguments(physics, ("epsilon", "mu"))
    physics.add_argument(
        "--initial",
        choices=INITIAL,
        help="the cube's eigenmode, a Gaussian pulse, or nothing; if not given, nothing where a "
        "wave comes in, the mode in a cube, else the pulse",
    )
    vector = {"type": float, "nargs": 3, "metavar": ("X", "Y", "Z")}
    physics.add_argument("--wave-direction", default=(1.0, 0.0, 0.0), **vector)
    physics.add_argument("--wave-polarization", default=(0.0, 0.0, 1.0), **vector)
    physics.add_argument("--wave-shape", default="gaussian", choices=("gaussian", "sine"))
    physics.add_argument(
        "--wave-parameter", type=float, default=1.0, help="width of the Gaussian, omega of the sine"
    )
    physics.add_argument(
        "--wave-delay", type=float, help="if not given, such that the wave begins with the run"
    )

    running.add_file_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """Solve Maxwell's equations in a cube or on a Gmsh file, and write files for ParaView."""
    options.check_positive("--t-end", arguments.t_end)
    if arguments.wave_delay is not None:
        options.check_finite("--wave-delay", arguments.wave_delay)
    files = running.files_of(arguments, write_fields)
    with files.claimed():
        _run(arguments, files)


def _run(arguments: argparse.Namespace, files: running.Files) -> None:
    mesh = _mesh(arguments)
    words = _words(arguments.boundary, mesh)
    matter = {
        name: running.matter_of(name, getattr(arguments, name), mesh) for name in ("epsilon", "mu")
    }
    wave = _wave(arguments, mesh, words, matter)
    initial = running.initial_of(arguments, bool(set(WAVES) & set(words.values())))
    conditions = {"incident": wave, "scatterer": Scatterer(wave) if wave else None}
    solver = Solver(
        mesh,
        arguments.order,
        arguments.dtype,
        arguments.device,
        arguments.flux,
        **matter,
        boundary={name: conditions.get(word, word) for name, word in words.items()},
        path=arguments.path,
        method=arguments.method,
    )
    problem = {
        "mesh": checkpoint.fingerprint(mesh),
        "wave": repr(wave),
        "boundary": words,
        "initial": initial,
        **{
            key: getattr(arguments, key)
            for key in ("order", "t_end", "dtype", "flux", "method", "every")
        },
        **{name: getattr(arguments, name) for name in matter},
    }
    mode = BoxMode()
    running.refuse_if_too_large(solver, solver.memory_bytes())
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
    walls = all(word == "pec" for word in words.values())
    if initial == "mode" and walls and not arguments.epsilon and not arguments.mu:
        print(f"L2 error {solver.l2_error(u, mode, march.time):.3e}")
    stages = len(solver.method.A) * (march.count - first)
    running.report(solver, march, files, stages, seconds)


# --------------------------------------------------------------------------------------- problem


def _mesh(arguments: argparse.Namespace) -> Mesh:
    if arguments.mesh is None:
        arrays = len(FIELDS), *REFERENCE_ARRAYS
        running.refuse_large_box("--cells", arguments.cells, 3, arguments, *arrays)
        return box((arguments.cells,) * 3)
    return running.mesh_from(arguments.mesh, 3)


def _words(given: list[str], mesh: Mesh) -> dict[str, str]:
    """The condition of each boundary, in words."""
    words = running.words_of(given, list(mesh.boundary), WORDS, "pec")
    if set(WAVES) <= set(words.values()):
        raise ValueError(
            "--boundary: incident is for the total field and scatterer for the scattered one; "
            "allowed: one of them"
        )
    return words


def _wave(
    arguments: argparse.Namespace,
    mesh: Mesh,
    words: dict[str, str],
    matter: dict[str, np.ndarray],
) -> PlaneWave | None:
    """What comes in, if anything does."""
    faces = running.faces_of(mesh, words, WAVES)
    if not len(faces):
        return None
    filled = slice(None) if "scatterer" in words.values() else faces[:, 0]
    for name, values in matter.items():
        if (values[filled] != 1).any():
            raise ValueError(
                f"--{name}: a plane wave is known in vacuum only; allowed: 1 in all elements with "
                "a scatterer, 1 at the boundary with an incident wave"
            )
    wave = PlaneWave(
        arguments.wave_direction,
        arguments.wave_polarization,
        arguments.wave_shape,
        arguments.wave_parameter,
    )
    delay = arguments.wave_delay
    if delay is None:
        ahead = QUIET * wave.parameter if wave.shape == "gaussian" else 0.0
        delay = ahead - running.first_along(mesh, faces, wave.direction)
    return PlaneWave(wave.direction, wave.polarization, wave.shape, wave.parameter, delay)


def pulse(center: np.ndarray, width: float) -> Callable:
    """E = curl(A z), A = a exp(-|x - center|^2 / width^2), which has no divergence; |E| <= 1."""
    amplitude = width * np.sqrt(np.e / 2)

    def fields(x, y, z) -> list[np.ndarray]:
        """The six fields."""
        x, y, z = (v - c for v, c in zip((x, y, z), center, strict=True))
        slope = 2 * amplitude / width**2 * np.exp(-(x**2 + y**2 + z**2) / width**2)
        return [-y * slope, x * slope, *[np.zeros_like(x)] * 4]

    return fields


def _description(
    solver: Solver, march: March, words: dict[str, str], wave: PlaneWave | None, initial: str
) -> str:
    """What is about to be computed."""
    boundaries = ", ".join(f"{name}={word}" for name, word in words.items())
    kernels = "" if solver.device.kind == "cpu" else f", path {solver.path}"
    scattered = ", E and H are the scattered fields" if "scatterer" in words.values() else ""
    return running.description(
        solver,
        march,
        solver.memory_bytes(),
        f"boundaries {boundaries}; {solver.operator.flux} flux{kernels}",
        *([f"{wave}{scattered}"] if wave else []),
        f"at t = 0: {initial}",
    )


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    measuring.add_bench_arguments(parser, "maxwell", measure.RECORDS)
    options.add_measured(parser, 9, 60_000_000)


def add_tune_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tune`."""
    options.add_measured(parser, 9, 8_000_000)


def bench(arguments: argparse.Namespace) -> None:
    """Measure Maxwell's operator on this GPU and write records."""
    orders = dict.fromkeys(measure.RECORDS, arguments.orders)
    measuring.bench(arguments, "maxwell", measure.RECORDS, arguments.dofs, orders)


def tune(arguments: argparse.Namespace) -> None:
    """Time the plans of the kernels on this GPU and remember the fastest."""
    device = find_device("cuda")
    for order in arguments.orders:
        mesh = measure.cube(measure.cells_for(arguments.dofs, order))
        for dtype in arguments.dtypes:
            operator = measure.operator_on(mesh, order, dtype)
            best = measure.best_plan(operator, device, STRATEGIES)
            print(f"N={order} {dtype}: {best}", flush=True)
            for language in LANGUAGES:
                found = measure.tune_fused(operator, device, language).plan
                print(f"N={order} {dtype}: {found}", flush=True)
