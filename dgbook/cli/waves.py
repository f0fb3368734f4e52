"""Waves on tetrahedra on the command line: what Maxwell's and the acoustic equations share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dgbook import parallel
from dgbook.cli import checkpoint, options, running
from dgbook.cli.ranks import any_of
from dgbook.mesh import Mesh, box
from dgbook.nodal.linear import METHODS, name_of
from dgbook.nodal.solving import DTYPES, NodalSolver

INITIAL = ("mode", "pulse", "zero")
QUIET = 4.0
"""Widths between a Gaussian pulse and the boundary when the run starts: exp(-16) = 1e-7 there."""


@dataclass(frozen=True)
class Family:
    """What one family of waves has of its own.

    Attributes
    ----------
    solver : type of NodalSolver
    shown : function
        See `dgbook.cli.running.Files`.
    cube : (float, float)
        Its sides, without a mesh file.
    matter : tuple of str
        Properties of the matter: options, and arguments of the solver.
    choices : dict of str to tuple of str
        Options with a few values each, of which the first is the default, by name: arguments of
        the solver, too.
    paths, words : tuple of str
        Allowed are these paths, and these conditions of boundaries.
    otherwise : str
        The condition where nothing is said, with which the cube's mode is known.
    texts : dict of str to str
        What the options --mesh, --t-end, --initial and those of `choices` say in the help.
    arrays : function
        ``arrays(arguments)``: states and values on faces, as `running.refuse_large_box` wants them.
    mode : function
        Of the matter, each property a (K,) array: the cube's mode, a function of (x, y, z, t), and
        whether it is the exact solution there.
    pulse : function
        ``pulse(center, width)``, a function of (x, y, z).
    wave_options : dict of str to dict
        Options --wave-NAME, with what `add_argument` gets to know.
    wave : function
        ``wave(arguments, mesh, words, matter)``: what comes in, or None.
    conditions : function
        ``conditions(wave)``: those that a word alone does not say, by word.
    about : function
        ``about(solver, words, wave)``: lines about what is to be computed.
    """

    solver: type[NodalSolver]
    shown: Callable
    cube: tuple[float, float]
    matter: tuple[str, ...]
    choices: dict[str, tuple[str, ...]]
    paths: tuple[str, ...]
    words: tuple[str, ...]
    otherwise: str
    texts: dict[str, str]
    arrays: Callable[[argparse.Namespace], tuple[int, int]]
    mode: Callable[[dict[str, np.ndarray]], tuple[Callable, bool]]
    pulse: Callable[[np.ndarray, float], Callable]
    wave_options: dict[str, dict[str, Any]]
    wave: Callable[..., Any]
    conditions: Callable[[Any], dict[str, Any]]
    about: Callable[[NodalSolver, dict[str, str], Any], list[str]]


def add_run_arguments(parser: argparse.ArgumentParser, family: Family) -> None:
    """The options of `run`."""
    texts = family.texts
    domain = parser.add_mutually_exclusive_group()
    domain.add_argument("--mesh", type=Path, help=f"Gmsh file, 2.2 or 4.1; {texts['mesh']}")
    domain.add_argument("--cells", type=int, default=4, help="cells of the cube in each direction")
    parser.add_argument("--order", type=int, default=4, help="polynomial degree N")
    parser.add_argument("--t-end", type=float, default=1.0, help=texts["t_end"])
    parser.add_argument("--dtype", default="float64", choices=DTYPES, help="precision")
    running.add_device_arguments(parser)
    running.add_parts_argument(parser)
    for name, values in family.choices.items():
        parser.add_argument(f"--{name}", default=values[0], choices=values, help=texts[name])
    parser.add_argument(
        "--path", choices=family.paths, help="which kernels; the fastest if not given"
    )
    parser.add_argument(
        "--method",
        default="auto",
        choices=("auto", *METHODS),
        help="Runge-Kutta method, of 5 or 14 stages; factored: those 14 with less to read and to "
        "write; auto: the one expected to end first",
    )
    parser.add_argument(
        "--dt",
        choices=("local",),
        help="local: each element takes time steps of its own, clusters of them twice as long as "
        "the next; pays on graded meshes, on a GPU only on those of several hundred thousand "
        "elements at low degree; where global steps are expected to be faster, those are taken",
    )
    physics = parser.add_argument_group("the problem")
    physics.add_argument(
        "--boundary",
        action="append",
        default=[],
        metavar="NAME=CONDITION",
        help=f"{', '.join(family.words)}; without NAME for all boundaries; may be repeated, the "
        f"last counts; {texts['otherwise']} where nothing is said",
    )
    for name in family.matter:
        physics.add_argument(
            f"--{name}",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="of a volume of the mesh file; without NAME of all; may be repeated, the last "
            "counts; 1 where nothing is said",
        )
    physics.add_argument(
        "--initial",
        choices=INITIAL,
        help=f"{texts['initial']}; if not given, nothing where a wave comes in, the mode in a "
        "cube, else the pulse",
    )
    for name, settings in family.wave_options.items():
        physics.add_argument(f"--wave-{name}", **settings)
    physics.add_argument(
        "--wave-delay", type=float, help="if not given, such that the wave begins with the run"
    )
    running.add_file_arguments(parser)


def run(arguments: argparse.Namespace, family: Family) -> None:
    """Solve in a cube or on a Gmsh file, and write files for ParaView."""
    options.check_positive("--t-end", arguments.t_end)
    if arguments.wave_delay is not None:
        options.check_finite("--wave-delay", arguments.wave_delay)
    running.run(arguments, family.shown, lambda: case_of(arguments, family))


def case_of(arguments: argparse.Namespace, family: Family) -> running.Case:
    """The problem that the options describe, and what solves it."""
    mesh = _mesh(arguments, family)
    words = running.words_of(
        arguments.boundary, list(mesh.boundary), family.words, family.otherwise
    )
    matter = {
        name: running.matter_of(name, getattr(arguments, name), mesh) for name in family.matter
    }
    wave = family.wave(arguments, mesh, words, matter)
    initial = _initial(arguments, wave is not None)
    conditions = family.conditions(wave)
    solver = running.solver_of(
        arguments,
        mesh,
        lambda mesh, elements: family.solver(
            mesh,
            arguments.order,
            arguments.dtype,
            arguments.device,
            **{name: getattr(arguments, name) for name in family.choices},
            **{name: values[elements] for name, values in matter.items()},
            boundary={name: conditions.get(word, word) for name, word in words.items()},
            path=arguments.path,
            method=arguments.method,
        ),
    )
    kept = ("order", "t_end", "dtype", *family.choices, "every", *family.matter, "dt")
    problem = {
        "mesh": checkpoint.fingerprint(mesh),
        "wave": repr(wave),
        "boundary": words,
        "initial": initial,
        **{name: getattr(arguments, name) for name in kept},
        "method": name_of(solver.method),
    }
    mode, known = family.mode(matter)
    known = known and initial == "mode" and set(words.values()) == {family.otherwise}
    stages = len(solver.method.A)
    about = [f"at t = 0: {initial}", f"method {problem['method']}"]
    dt = arguments.dt
    if dt == "local":
        if isinstance(solver, parallel.Solver):
            raise ValueError("--dt local with parts; allowed: without --parts, --gpus and mpiexec")
        choice = solver.local_steps(arguments.t_end)
        about.append(choice.sentence)
        dt = "local" if choice.pays else None
        stages = choice.clusters.updates / mesh.K if choice.pays else stages
    return running.Case(
        solver,
        problem,
        _start(initial, mode, family.pulse, mesh, len(solver.fields)),
        [*family.about(any_of(solver), words, wave), *about],
        stages,
        "energy",
        ".6g",
        mode if known else None,
        dt,
    )


def delay_of(
    arguments: argparse.Namespace,
    mesh: Mesh,
    faces: np.ndarray,
    wave: Any,
    quiet: float,
    slowness: float = 1.0,
) -> float:
    """The option --wave-delay; without it the wave is `quiet` away from the first of some faces.

    Parameters
    ----------
    arguments, mesh
    faces : (n, 2) int array
        Where it comes in, rows (element, face).
    wave : plane wave without a delay
    quiet : float
        In time.
    slowness : float
        One over the wave's speed.
    """
    if arguments.wave_delay is not None:
        return arguments.wave_delay
    return quiet - slowness * running.first_along(mesh, faces, wave.direction)


def _mesh(arguments: argparse.Namespace, family: Family) -> Mesh:
    if arguments.mesh is not None:
        return running.mesh_from(arguments.mesh, 3)
    arrays = len(family.solver.fields), *family.arrays(arguments)
    running.refuse_large_box("--cells", arguments.cells, 3, arguments, *arrays)
    return box((arguments.cells,) * 3, *family.cube)


def _initial(arguments: argparse.Namespace, wave: bool) -> str:
    """What is there at the start, one of `INITIAL`: --initial, or what fits.

    Raises
    ------
    ValueError
        For a mode on a mesh of the reader's, or nothing at all where no wave comes in.
    """
    fitting = "zero" if wave else "pulse" if arguments.mesh else "mode"
    initial = arguments.initial or fitting
    if initial == "mode" and arguments.mesh:
        raise ValueError("--initial mode with --mesh: the mode of the cube only is known")
    if initial == "zero" and not wave:
        raise ValueError("--initial zero: nothing would happen without an incident wave")
    return initial


def _start(initial: str, mode: Callable, pulse: Callable, mesh: Mesh, fields: int) -> Callable:
    """What a word of `INITIAL` means: a function of (x, y, z) that returns so many fields."""
    if initial == "mode":
        return lambda x, y, z: mode(x, y, z, 0.0)
    if initial == "zero":
        return lambda x, y, z: [np.zeros_like(x)] * fields
    lower, upper = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    return pulse((lower + upper) / 2, float((upper - lower).min()) / 6)
