"""Acoustic waves on the command line: python -m dgbook run | bench | tune acoustics."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dgbook.acoustics.exact import CubeMode, PlaneWave
from dgbook.acoustics.plan import KERNEL_SETS, Shape
from dgbook.acoustics.problem import CONDITIONS, FLUXES
from dgbook.acoustics.reference import BASES
from dgbook.acoustics.solver import PATHS, REFERENCE_ARRAYS, Solver
from dgbook.cli import options, running, waves
from dgbook.cli.fields.acoustics import shown
from dgbook.gpu import device as find_device
from dgbook.gpu.plan import choose
from dgbook.lab import acoustics as measure
from dgbook.lab import measuring
from dgbook.mesh import Mesh
from dgbook.nodal.fused import LANGUAGES


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `run`."""
    waves.add_run_arguments(parser, FAMILY)


def run(arguments: argparse.Namespace) -> None:
    """Solve the acoustic equations in a cube or on a Gmsh file, and write files for ParaView."""
    waves.run(arguments, FAMILY)


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
    at_boundary = {name: values[faces[:, 0]] for name, values in matter.items()}
    for name, values in at_boundary.items():
        if np.ptp(values) > 0:
            raise ValueError(
                f"--{name}: a plane wave is known in a uniform medium only; allowed: one value "
                "at the boundary where it comes in"
            )
    kappa, rho = (float(values[0]) for values in at_boundary.values())
    wave = PlaneWave(arguments.wave_direction, arguments.wave_width, 0.0, kappa, rho)
    quiet, slowness = waves.QUIET * wave.width, np.sqrt(rho / kappa)
    return replace(wave, delay=waves.delay_of(arguments, mesh, faces, wave, quiet, slowness))


def pulse(center: np.ndarray, width: float) -> Callable:
    """p = exp(-|x - center|^2 / width^2) in a medium at rest, a function of (x, y, z)."""

    def fields(x, y, z) -> list[np.ndarray]:
        """The four fields."""
        squares = sum((s - c) ** 2 for s, c in zip((x, y, z), center, strict=True))
        return [np.exp(-squares / width**2), *[np.zeros_like(x)] * 3]

    return fields


def _mode(matter: dict[str, np.ndarray]) -> tuple[CubeMode, bool]:
    """The mode of a uniform medium, and whether this is one."""
    uniform = all(np.ptp(values) == 0 for values in matter.values())
    return CubeMode(*(float(values[0]) for values in matter.values())), uniform


def _about(solver: Solver, words: dict[str, str], wave: PlaneWave | None) -> list[str]:
    """What is about to be computed."""
    how = f"basis {solver.basis}, {running.numerics(solver)}; boundaries {running.listed(words)}"
    return [how] if wave is None else [how, str(wave)]


FAMILY = waves.Family(
    solver=Solver,
    shown=shown,
    cube=(-1.0, 1.0),
    matter=("kappa", "rho"),
    choices={"basis": BASES, "flux": FLUXES},
    paths=PATHS,
    words=(*CONDITIONS, "incident"),
    otherwise="soft",
    texts={
        "mesh": "without it the cube [-1, 1]^3",
        "t_end": "final time",
        "basis": "of the polynomials",
        "flux": "numerical flux",
        "otherwise": "soft, which is p = 0,",
        "initial": "the cube's lowest mode, a Gaussian pulse of pressure, or nothing",
    },
    arrays=lambda arguments: REFERENCE_ARRAYS[arguments.basis],
    mode=_mode,
    pulse=pulse,
    wave_options={
        "direction": {
            "type": float,
            "nargs": 3,
            "default": (1.0, 0.0, 0.0),
            "metavar": ("X", "Y", "Z"),
            "help": "of the plane wave, a Gaussian pulse, that comes in",
        },
        "width": {"type": float, "default": 1.0, "help": "of the pulse, in time"},
    },
    wave=_wave,
    conditions=lambda wave: {"incident": wave},
    about=_about,
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
