"""Maxwell's equations on the command line: python -m dgbook run | bench | tune maxwell."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from dgbook.maxwell import checkpoint
from dgbook.maxwell.bench import (  # noqa: F401  the other verbs of this family
    add_bench_arguments,
    add_tune_arguments,
    bench,
    tune,
)
from dgbook.maxwell.checkpoint import Checkpoint
from dgbook.maxwell.exact import BoxMode
from dgbook.maxwell.output import write_fields, write_pvd
from dgbook.maxwell.problem import CONDITIONS, FLUXES, PlaneWave, Scatterer
from dgbook.maxwell.solver import PATHS, Solver
from dgbook.mesh import Mesh, box, face_vertices, read
from dgbook.records import live
from dgbook.solving import DTYPES, March
from dgbook.time import lsrk45

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

    physics = parser.add_argument_group("the problem")
    physics.add_argument(
        "--boundary",
        action="append",
        default=[],
        metavar="NAME=CONDITION",
        help=f"{', '.join(WORDS)}; without NAME for all boundaries; may be repeated, the last "
        "counts; pec where nothing is said",
    )
    for name in ("epsilon", "mu"):
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

    files = parser.add_argument_group("files")
    files.add_argument("--output", type=Path, help="a .vtu file for ParaView")
    files.add_argument(
        "--every",
        type=int,
        metavar="STEPS",
        help="write a series instead, OUTPUT_0000.vtu and so on, and OUTPUT.pvd",
    )
    files.add_argument(
        "--checkpoint",
        type=Path,
        help="what to resume from, removed when the run is over; OUTPUT.checkpoint.npz if not "
        "given. Saved now and then, and on Ctrl-C",
    )
    files.add_argument("--checkpoint-every", type=float, default=60.0, metavar="SECONDS")
    files.add_argument("--resume", action="store_true", help="go on from the checkpoint")


def run(arguments: argparse.Namespace) -> None:
    """Solve Maxwell's equations in a cube or on a Gmsh file, and write files for ParaView."""
    if not arguments.t_end > 0:
        raise ValueError(f"--t-end {arguments.t_end}; allowed: positive")
    files = _files(arguments)
    mesh = _mesh(arguments)
    words = _words(arguments.boundary, mesh)
    matter = {name: _matter(name, getattr(arguments, name), mesh) for name in ("epsilon", "mu")}
    wave = _wave(arguments, mesh, words, matter)
    initial = _initial(arguments, words)
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
    )
    problem = {
        "mesh": checkpoint.fingerprint(mesh),
        "wave": repr(wave),
        "boundary": words,
        "initial": initial,
        **{key: getattr(arguments, key) for key in ("order", "t_end", "dtype", "flux", "every")},
        **{name: getattr(arguments, name) for name in matter},
    }
    mode = BoxMode()
    _refuse_if_too_large(solver)
    if arguments.resume:
        kept = checkpoint.load(files.checkpoint, problem)
        march = solver.march(kept.u, arguments.t_end, kept.dt, done=kept.done)
        energy = kept.energy
        if not march.restore(kept.u, kept.raw):
            print("other kernels wrote the checkpoint: the same fields, rounded")
    else:
        if files.checkpoint and files.checkpoint.exists():
            print(f"{files.checkpoint}, of an earlier run, will be replaced")
        u = solver.interpolate(_fields(initial, mode, mesh))
        march = solver.march(u, arguments.t_end)
        energy = solver.energy(u)
    first = march.done
    print(_description(solver, march, words, wave, initial), flush=True)
    keep = _keeper(files.checkpoint, march, energy, problem)
    seconds = _advance(solver, march, files, keep, arguments.checkpoint_every)

    u = march.state()
    print(f"energy {energy:.6g} at t = 0, {solver.energy(u):.6g} at t = {march.time:g}")
    walls = all(word == "pec" for word in words.values())
    if initial == "mode" and walls and not arguments.epsilon and not arguments.mu:
        print(f"L2 error {solver.l2_error(u, mode, march.time):.3e}")
    stages = len(lsrk45.A) * (march.count - first)
    print(f"{live(u.size * stages / seconds * 1e-9, 'GDOF/s', solver.device)}, files not included")
    if files.output:
        print("written:", files.written(march))
    if files.checkpoint:
        files.checkpoint.unlink(missing_ok=True)


# ----------------------------------------------------------------------------------------- files


@dataclass(frozen=True)
class Files:
    """Where a run writes.

    Attributes
    ----------
    output : Path or None
        The VTU file, or what names the series.
    every : int or None
        Steps between two frames of a series; None for no series.
    checkpoint : Path or None
    """

    output: Path | None
    every: int | None
    checkpoint: Path | None

    def due(self, march: March) -> bool:
        """Whether the fields are to be written now."""
        if self.output is None:
            return False
        return march.done == march.count or bool(self.every and march.done % self.every == 0)

    def write(self, solver: Solver, march: March) -> None:
        """Write the fields as they are, and the series so far."""
        if self.every is None:
            write_fields(self.output, solver, march.state())
            return
        write_fields(self._frame(march, march.done), solver, march.state())
        steps = [*range(0, march.done, self.every), march.done]
        write_pvd(
            self.output.with_suffix(".pvd"),
            [(march.start + n * march.dt, self._frame(march, n)) for n in steps],
        )

    def written(self, march: March) -> str:
        """The names of the files of a run that is over."""
        if self.every is None:
            return str(self.output)
        first, last = self._frame(march, 0), self._frame(march, march.count)
        return f"{self.output.with_suffix('.pvd')}, {first.name} to {last.name}"

    def _frame(self, march: March, step: int) -> Path:
        number = -(-step // self.every)  # the last step may come early
        return self.output.with_name(f"{self.output.stem}_{number:04d}.vtu")


def _files(arguments: argparse.Namespace) -> Files:
    output, every, kept = arguments.output, arguments.every, arguments.checkpoint
    if output and output.suffix != ".vtu":
        raise ValueError(f"--output {output}; allowed: a name that ends in .vtu")
    if every is not None and (every < 1 or not output):
        raise ValueError(f"--every {every}; allowed: 1 or more steps, with --output")
    if output and not kept:
        kept = output.with_suffix(".checkpoint.npz")
    if arguments.resume and not kept:
        raise ValueError("--resume needs --checkpoint or --output, to know what to resume")
    for option, path in (("--output", output), ("--checkpoint", kept)):
        if path is None:
            continue
        folder = path.parent
        if not folder.is_dir():
            raise FileNotFoundError(f"{option} {path}: there is no folder {folder}")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ValueError(f"{option} {path}: the folder {folder} cannot be written to")
        if path.is_dir():
            raise ValueError(f"{option} {path}: this is a folder; allowed: a file")
    if not arguments.checkpoint_every >= 0:
        raise ValueError(f"--checkpoint-every {arguments.checkpoint_every}; allowed: 0 or more")
    return Files(output, every, kept)


# --------------------------------------------------------------------------------------- problem


def _mesh(arguments: argparse.Namespace) -> Mesh:
    if arguments.mesh is None:
        return box((arguments.cells,) * 3)
    if not arguments.mesh.is_file():
        raise FileNotFoundError(f"--mesh {arguments.mesh}: there is no such file")
    mesh = read(arguments.mesh)
    if mesh.dim != 3:
        raise ValueError(f"--mesh {arguments.mesh} has {mesh.dim} dimensions; allowed: 3")
    return mesh


def _named(option: str, text: str, names: list[str]) -> tuple[str | None, str]:
    """ "NAME=VALUE" as a name and a value; None where there is no NAME, which stands for all."""
    name, equals, value = text.rpartition("=")
    if not equals:
        return None, value
    if name not in names:
        raise ValueError(
            f"{option} {text}: the mesh has no {name!r}; allowed are "
            f"{', '.join(map(repr, names)) or 'no names'}"
        )
    return name, value


def _words(options: list[str], mesh: Mesh) -> dict[str, str]:
    """The condition of each boundary, in words."""
    names = list(mesh.boundary)
    words = dict.fromkeys(names, "pec")
    for text in options:
        name, word = _named("--boundary", text, names)
        if word not in WORDS:
            raise ValueError(f"--boundary {text}: {word!r}; allowed are {', '.join(WORDS)}")
        words |= dict.fromkeys(names if name is None else [name], word)
    if set(WAVES) <= set(words.values()):
        raise ValueError(
            "--boundary: incident is for the total field and scatterer for the scattered one; "
            "allowed: one of them"
        )
    return words


def _matter(option: str, options: list[str], mesh: Mesh) -> np.ndarray:
    """Permittivity or permeability of each element."""
    values = np.ones(mesh.K)
    for text in options:
        name, number = _named(f"--{option}", text, list(mesh.regions))
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            raise ValueError(f"--{option} {text}; allowed: a positive, finite number")
        values[slice(None) if name is None else mesh.regions[name]] = value
    return values


def _wave(
    arguments: argparse.Namespace,
    mesh: Mesh,
    words: dict[str, str],
    matter: dict[str, np.ndarray],
) -> PlaneWave | None:
    """What comes in, if anything does."""
    faces = [mesh.boundary[name] for name, word in words.items() if word in WAVES]
    if not faces:
        return None
    k, f = np.concatenate(faces).T
    filled = slice(None) if "scatterer" in words.values() else k
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
        corners = mesh.vertices[mesh.elements[k[:, None], face_vertices(3)[f]]]
        ahead = QUIET * wave.parameter if wave.shape == "gaussian" else 0.0
        delay = ahead - float((corners @ wave.direction).min())
    return PlaneWave(wave.direction, wave.polarization, wave.shape, wave.parameter, delay)


def _initial(arguments: argparse.Namespace, words: dict[str, str]) -> str:
    """What the fields are at the start, in a word."""
    waves = set(WAVES) & set(words.values())
    fitting = "zero" if waves else "pulse" if arguments.mesh else "mode"
    initial = arguments.initial or fitting
    if initial == "mode" and arguments.mesh:
        raise ValueError("--initial mode with --mesh: the mode of the cube only is known")
    if initial == "zero" and not waves:
        raise ValueError("--initial zero: nothing would happen without an incident wave")
    return initial


def _fields(initial: str, mode: BoxMode, mesh: Mesh) -> Callable:
    """The fields at the start as a function of (x, y, z)."""
    if initial == "mode":
        return lambda x, y, z: mode(x, y, z, 0.0)
    if initial == "zero":
        return lambda x, y, z: [np.zeros_like(x)] * 6
    lower, upper = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    return pulse((lower + upper) / 2, float((upper - lower).min()) / 6)


def pulse(center: np.ndarray, width: float) -> Callable:
    """E = curl(A z), A = a exp(-|x - center|^2 / width^2), which has no divergence; |E| <= 1."""
    amplitude = width * np.sqrt(np.e / 2)

    def fields(x, y, z) -> list[np.ndarray]:
        """The six fields."""
        x, y, z = (v - c for v, c in zip((x, y, z), center, strict=True))
        slope = 2 * amplitude / width**2 * np.exp(-(x**2 + y**2 + z**2) / width**2)
        return [-y * slope, x * slope, *[np.zeros_like(x)] * 4]

    return fields


# -------------------------------------------------------------------------------------- the loop


def _description(
    solver: Solver, march: March, words: dict[str, str], wave: PlaneWave | None, initial: str
) -> str:
    """What is about to be computed."""
    mesh, element = solver.mesh, solver.element
    dofs = len(solver.fields) * mesh.K * element.Np
    boundaries = ", ".join(f"{name}={word}" for name, word in words.items())
    where = "the host's" if solver.device.kind == "cpu" else "the device's"
    kernels = "" if solver.device.kind == "cpu" else f", path {solver.path}"
    resumed = f", of which {march.done} are done," if march.done else ""
    lines = [
        solver.device.sentence,
        f"{mesh.K} tetrahedra of order {element.order}: {dofs} degrees of freedom, {solver.dtype}",
        f"boundaries {boundaries}; {solver.operator.flux} flux{kernels}",
        f"at t = 0: {initial}",
        f"{march.count} steps{resumed} of {march.dt:.4g}, about "
        f"{solver.memory_bytes() / 2**20:.0f} MiB of {where} memory",
    ]
    if wave:
        scattered = ", E and H are the scattered fields" if "scatterer" in words.values() else ""
        lines.insert(3, f"{wave}{scattered}")
    return "\n".join(lines)


def _refuse_if_too_large(solver: Solver) -> None:
    has, needs = solver.device.memory_bytes, solver.memory_bytes()
    if has is not None and needs > has:
        raise ValueError(
            f"{solver.mesh.K} elements of order {solver.element.order} in {solver.dtype} need "
            f"about {needs / 2**30:.1f} GiB; allowed: the {has / 2**30:.1f} GiB of "
            f"{solver.device.name}. Take float32, a lower order or a coarser mesh"
        )


def _keeper(
    path: Path | None, march: March, energy: float, problem: dict[str, Any]
) -> Callable[[], None]:
    """A function that saves a checkpoint, if there is a file for it."""

    def keep() -> None:
        if path:
            content = Checkpoint(march.state(), march.raw(), march.done, march.dt, energy)
            checkpoint.save(path, content, problem)

    return keep


def _advance(
    solver: Solver, march: March, files: Files, keep: Callable[[], None], seconds: float
) -> float:
    """Take the steps, show and write what there is to see; the time of the steps, in seconds."""
    bar = tqdm(total=march.count, initial=march.done, desc="time steps", leave=False)
    with bar, interruptions() as asked:
        if files.every and march.done == 0:
            files.write(solver, march)
        stepping, begin = 0.0, time.perf_counter()
        kept = begin
        while march.done < march.count and not asked:
            march.step()
            bar.set_postfix_str(f"t = {march.time:.4g}", refresh=False)
            bar.update()
            save = time.perf_counter() - kept >= seconds and march.done < march.count
            if save or files.due(march):
                solver.device.synchronize()
                stepping += time.perf_counter() - begin
                if files.due(march):
                    files.write(solver, march)
                if save:
                    keep()
                    kept = time.perf_counter()
                begin = time.perf_counter()
    if march.done < march.count:
        keep()
        if files.checkpoint:
            print(
                f"stopped after step {march.done} of {march.count}, t = {march.time:.6g}; "
                f"the same command with --resume goes on from {files.checkpoint}",
                file=sys.stderr,
            )
        raise KeyboardInterrupt
    solver.device.synchronize()
    return stepping + time.perf_counter() - begin


@contextmanager
def interruptions() -> Iterator[list[int]]:
    """Inside, the first Ctrl-C, or request to end, is noted only: a step is not torn apart.

    Yields
    ------
    list
        Empty, until it holds the signal. The next one interrupts at once.
    """
    asked: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    heard = {n: handler for n, handler in handlers.items() if handler is not signal.SIG_IGN}

    def note(number: int, frame: Any) -> None:
        asked.append(number)
        restore()

    def restore() -> None:
        for number, handler in heard.items():
            signal.signal(number, handler)

    for number in heard:  # not what a script lets its background jobs ignore
        signal.signal(number, note)
    try:
        yield asked
    finally:
        restore()
