"""Maxwell's equations on the command line: python -m dgbook run | bench | tune maxwell."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dgbook.cli import options, running, waves
from dgbook.cli.fields.maxwell import shown
from dgbook.gpu import device as find_device
from dgbook.lab import ladder, measuring
from dgbook.lab import maxwell as measure
from dgbook.maxwell.exact import BoxMode
from dgbook.maxwell.plan import STRATEGIES
from dgbook.maxwell.problem import CONDITIONS, FLUXES, PlaneWave, Scatterer
from dgbook.maxwell.solver import PATHS, REFERENCE_ARRAYS, Solver
from dgbook.mesh import Mesh
from dgbook.nodal.basis import BASES
from dgbook.nodal.fused import LANGUAGES

WAVES = ("incident", "scatterer")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `run`."""
    waves.add_run_arguments(parser, FAMILY)


def run(arguments: argparse.Namespace) -> None:
    """Solve Maxwell's equations in a cube or on a Gmsh file, and write files for ParaView."""
    waves.run(arguments, FAMILY)


def _wave(
    arguments: argparse.Namespace,
    mesh: Mesh,
    words: dict[str, str],
    matter: dict[str, np.ndarray],
) -> PlaneWave | None:
    """What comes in, if anything does."""
    if set(WAVES) <= set(words.values()):
        raise ValueError(
            "--boundary: incident is for the total field and scatterer for the scattered one; "
            "allowed: one of them"
        )
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
    quiet = waves.QUIET * wave.parameter if wave.shape == "gaussian" else 0.0
    return replace(wave, delay=waves.delay_of(arguments, mesh, faces, wave, quiet))


def pulse(center: np.ndarray, width: float) -> Callable:
    """E = curl(A z), A = a exp(-|x - center|^2 / width^2), which has no divergence; |E| <= 1."""
    amplitude = width * np.sqrt(np.e / 2)

    def fields(x, y, z) -> list[np.ndarray]:
        """The six fields."""
        x, y, z = (v - c for v, c in zip((x, y, z), center, strict=True))
        slope = 2 * amplitude / width**2 * np.exp(-(x**2 + y**2 + z**2) / width**2)
        return [-y * slope, x * slope, *[np.zeros_like(x)] * 4]

    return fields


def _about(solver: Solver, words: dict[str, str], wave: PlaneWave | None) -> list[str]:
    """What is about to be computed."""
    how = f"basis {solver.basis}, {running.numerics(solver)}"
    lines = [f"boundaries {running.listed(words)}; {how}"]
    if wave is not None:
        scattered = ", E and H are the scattered fields" if "scatterer" in words.values() else ""
        lines.append(f"{wave}{scattered}")
    return lines


VECTOR = {"type": float, "nargs": 3, "metavar": ("X", "Y", "Z")}
FAMILY = waves.Family(
    solver=Solver,
    shown=shown,
    cube=(0.0, 1.0),
    matter=("epsilon", "mu"),
    choices={"basis": ("auto", *BASES), "flux": FLUXES},
    paths=PATHS,
    words=(*CONDITIONS, *WAVES),
    otherwise="pec",
    texts={
        "mesh": "without it a unit cube",
        "t_end": "final time; light has speed 1",
        "basis": "of the polynomials; auto: the one that is known to be faster, or nodal",
        "flux": "numerical flux",
        "otherwise": "pec",
        "initial": "the cube's eigenmode, a Gaussian pulse, or nothing",
    },
    arrays=lambda arguments: REFERENCE_ARRAYS,
    mode=lambda matter: (BoxMode(), all((values == 1).all() for values in matter.values())),
    pulse=pulse,
    wave_options={
        "direction": VECTOR | {"default": (1.0, 0.0, 0.0)},
        "polarization": VECTOR | {"default": (0.0, 0.0, 1.0)},
        "shape": {"default": "gaussian", "choices": ("gaussian", "sine")},
        "parameter": {
            "type": float,
            "default": 1.0,
            "help": "width of the Gaussian, omega of the sine",
        },
    },
    wave=_wave,
    conditions=lambda wave: {"incident": wave, "scatterer": Scatterer(wave) if wave else None},
    about=_about,
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
    climbed = [order for order in ladder.ORDERS if order in arguments.orders]
    orders |= {"ladder": climbed, "levers": climbed}
    measuring.bench(arguments, "maxwell", measure.RECORDS, arguments.dofs, orders)


def tune(arguments: argparse.Namespace) -> None:
    """Time the plans of the kernels on this GPU and remember the fastest."""
    device = find_device("cuda")
    for order in arguments.orders:
        mesh = measure.cube(measure.cells_for(arguments.dofs, order))
        for dtype in arguments.dtypes:
            operators = {b: measure.operator_on(mesh, order, dtype, b) for b in BASES}
            best = measure.best_plan(operators["nodal"], device, STRATEGIES)
            print(f"N={order} {dtype}: {best}", flush=True)
            for language in LANGUAGES:
                for operator in operators.values():
                    plan = measure.tune_fused(operator, device, language).plan
                    print(f"N={order} {dtype}: {plan}", flush=True)
                plan = measure.tune_basis(operators, device, language).plan
                print(f"N={order} {dtype}, the faster: {plan}", flush=True)
