"""A solver's run on the command line: its files, its progress, how it is stopped and resumed."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from dgbook import parallel
from dgbook.arguments import bytes_text, check_memory, check_range
from dgbook.cli import checkpoint, ranks
from dgbook.cli.checkpoint import Checkpoint
from dgbook.cli.options import check_count
from dgbook.cli.output import Shown, write_pvd, write_shown
from dgbook.element import NodalElement
from dgbook.gpu import device as find_device
from dgbook.lab.numbers import live
from dgbook.mesh import Mesh, face_vertices, read
from dgbook.nodal.cores import CORE_ARRAYS, CoreLauncher, use_threads
from dgbook.nodal.solving import ADVICE, BlowUpError, March, NodalSolver

MESH_BYTES = {1: 130, 2: 220, 3: 330}
"""Of an element, by dimensions, while `dgbook.mesh.box` makes it: peaks measured."""
SET_UP_BYTES = {1: (200, 16), 2: (340, 27), 3: (530, 49)}
"""Of an element, and of each of its nodes, while mesh and geometry are made: peaks measured."""

# --------------------------------------------------------------------------------------- options


def add_device_arguments(parser: argparse.ArgumentParser) -> None:
    """--device and --threads."""
    parser.add_argument(
        "--device",
        default="auto",
        help="auto, cuda, cpu, which is compiled kernels on processor cores, reference, which is "
        "NumPy, or simulator",
    )
    parser.add_argument(
        "--threads", type=int, metavar="N", help="cores that kernels take; all if not given"
    )


def add_file_arguments(parser: argparse.ArgumentParser) -> None:
    """--output, --every, --checkpoint, --checkpoint-every and --resume: see `files_of`."""
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
        help="what to resume from, a name that ends in .checkpoint, removed when the run is over; "
        "OUTPUT.checkpoint if not given. Saved now and then, and on Ctrl-C",
    )
    files.add_argument("--checkpoint-every", type=float, default=60.0, metavar="SECONDS")
    files.add_argument("--resume", action="store_true", help="go on from the checkpoint")


def add_parts_argument(parser: argparse.ArgumentParser) -> None:
    """--parts, --gpus, --traces and --exchange: see `solver_of` and `ranks.begin`."""
    parser.add_argument(
        "--parts",
        type=int,
        metavar="N",
        help="cut the mesh by METIS into so many parts, which exchange traces as several ranks do, "
        "but in one process; started by mpiexec, each rank has one part",
    )
    parser.add_argument(
        "--gpus",
        type=int,
        metavar="N",
        help="start so many ranks on this machine, each with a part and a GPU of its own, which "
        "exchange traces as --exchange says",
    )
    parser.add_argument(
        "--traces",
        default="whole",
        choices=parallel.TRACES,
        help="what parts send of the fields on a face: all, or what the flux there needs, which of "
        "Maxwell's and of acoustic waves is less",
    )
    parser.add_argument(
        "--exchange",
        default="nccl",
        choices=("nccl", "peers"),
        help="how GPUs exchange traces: by NCCL's messages, or by writing into one another's "
        "memory, which is faster, but takes GPUs of one machine that reach it",
    )


def mesh_from(path: Path, dim: int) -> Mesh:
    """The mesh in the file of the option --mesh.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or it has another number of dimensions.
    """
    if not path.is_file():
        raise FileNotFoundError(f"--mesh {path}: there is no such file")
    mesh = read(path)
    if mesh.dim != dim:
        raise ValueError(f"--mesh {path} has {mesh.dim} dimensions; allowed: {dim}")
    return mesh


def elements_in_box(option: str, cells: int, dim: int) -> int:
    """How many simplices a box has that an option cuts into so many cells in each direction.

    Raises
    ------
    ValueError
        If there is no cell, or there are more than the 32-bit numbers of vertices.
    """
    check_count(option, cells, np.iinfo(np.int32).max)
    return math.factorial(dim) * cells**dim


def refuse_large_box(
    option: str,
    cells: int,
    dim: int,
    arguments: argparse.Namespace,
    fields: int,
    states: int,
    faces: int,
) -> None:
    """Raise a ValueError if the host cannot hold a box, its geometry or a run, before it is made.

    What a run needs of a GPU, and of the host more exactly, is known to the solver, and asked for
    by `refuse_if_too_large`.

    Parameters
    ----------
    option, cells, dim
        As of `elements_in_box`.
    arguments : argparse.Namespace
        With `order`, `dtype` and `device`.
    fields, states, faces : int
        Arrays of states, and of values on faces, that a run by the reference has at the same time;
        of a run on cores it is `CORE_ARRAYS`.
    """
    K, element = elements_in_box(option, cells, dim), NodalElement(dim, arguments.order)
    each, node = SET_UP_BYTES[dim]
    needs = each + node * element.Np
    on_host = {"cpu": CORE_ARRAYS, "reference": (states, faces)}
    kind = find_device(arguments.device).kind
    if kind in on_host:
        states, faces = on_host[kind]
        values = fields * (states * element.Np + faces * (dim + 1) * element.Nfp)
        needs = max(needs, values * np.dtype(arguments.dtype).itemsize)
    check_memory(f"{option} {cells}, {K} elements of order {arguments.order}, needs", K * needs)


def named(option: str, text: str, names: list[str]) -> tuple[str | None, str]:
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


def words_of(
    options: list[str], names: list[str], allowed: tuple[str, ...], otherwise: str
) -> dict[str, str]:
    """The condition of each boundary, in words, by the options --boundary [NAME=]WORD.

    Raises
    ------
    ValueError
        If a name or a word is none of those.
    """
    words = dict.fromkeys(names, otherwise)
    for text in options:
        name, word = named("--boundary", text, names)
        if word not in allowed:
            raise ValueError(f"--boundary {text}: {word!r}; allowed are {', '.join(allowed)}")
        words |= dict.fromkeys(names if name is None else [name], word)
    return words


def matter_of(option: str, options: list[str], mesh: Mesh) -> np.ndarray:
    """A property of each element, (K,), by the options --OPTION [NAME=]VALUE.

    Raises
    ------
    ValueError
        If the mesh has no volume of that name, or a value is none that `check_range` allows.
    """
    values = np.ones(mesh.K)
    for text in options:
        name, number = named(f"--{option}", text, list(mesh.regions))
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        check_range(f"--{option} {text}", value)
        values[slice(None) if name is None else mesh.regions[name]] = value
    return values


def faces_of(mesh: Mesh, words: dict[str, str], wanted: tuple[str, ...]) -> np.ndarray:
    """The boundary faces whose condition is one of those words, rows (element, face)."""
    faces = [mesh.boundary[name] for name, word in words.items() if word in wanted]
    return np.concatenate(faces) if faces else np.empty((0, 2), int)


def first_along(mesh: Mesh, faces: np.ndarray, direction: np.ndarray) -> float:
    """The smallest x.direction of the corners of some faces, rows (element, face)."""
    k, f = faces.T
    corners = mesh.vertices[mesh.elements[k[:, None], face_vertices(mesh.dim)[f]]]
    return float((corners @ np.asarray(direction)).min())


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
    show : function
        ``show(solver, u)`` is what is shown of a state.
    """

    output: Path | None
    every: int | None
    checkpoint: Path | None
    show: Callable[[NodalSolver, np.ndarray], Shown]

    def claimed(self) -> AbstractContextManager[None]:
        """Inside, no other run can write the checkpoint: see `dgbook.cli.checkpoint.claimed`."""
        return checkpoint.claimed(self.checkpoint if ranks.first() else None)

    def due(self, march: March) -> bool:
        """Whether the fields are to be written now."""
        if self.output is None:
            return False
        return march.done == march.count or bool(self.every and march.done % self.every == 0)

    def write(self, solver: NodalSolver, march: March) -> None:
        """Write the fields as they are, and the series so far."""
        if self.every is None:
            self._write(self.output, solver, march.state())
            return
        self._write(self._frame(march, march.done), solver, march.state())
        steps = [*range(0, march.done, self.every), march.done]
        if ranks.leads(solver):
            frames = [
                (march.start + n * march.dt, ranks.file_of(self._frame(march, n), solver))
                for n in steps
            ]
            write_pvd(self.output.with_suffix(".pvd"), frames)

    def write_last_good(self, solver: NodalSolver, error: BlowUpError) -> None:
        """Write the last good state of a run that has blown up, if there is a name for it."""
        if self.output is None:
            return
        path = self.output.with_name(f"{self.output.stem}_last_good.vtu")
        self._write(path, solver, error.state)
        if ranks.leads(solver):
            path = ranks.file_of(path, solver)
            print(f"the last good state, t = {error.time:.6g}, is in {path}", file=sys.stderr)

    def written(self, solver: NodalSolver, march: March) -> str:
        """The names of the files of a run that is over."""
        if self.every is None:
            return str(ranks.file_of(self.output, solver))
        steps = 0, march.count
        first, last = (ranks.file_of(self._frame(march, n), solver).name for n in steps)
        return f"{self.output.with_suffix('.pvd')}, {first} to {last}"

    def _write(self, path: Path, solver: NodalSolver | parallel.Solver, u: Any) -> None:
        if isinstance(solver, parallel.Solver):
            ranks.write_pieces(path, solver, u, self.show)
        else:
            write_shown(path, solver.mesh, self.show(solver, u))

    def _frame(self, march: March, step: int) -> Path:
        number = -(-step // self.every)  # the last step may come early
        return self.output.with_name(f"{self.output.stem}_{number:04d}.vtu")


def files_of(arguments: argparse.Namespace, show: Callable) -> Files:
    """Where the options of `add_file_arguments` say that a run writes.

    Raises
    ------
    FileNotFoundError, ValueError
        If it could not write there, or an option makes no sense; the message names the option.
    """
    output, every, kept = arguments.output, arguments.every, arguments.checkpoint
    if output and output.suffix != ".vtu":
        raise ValueError(f"--output {output}; allowed: a name that ends in .vtu")
    if every is not None and (every < 1 or not output):
        raise ValueError(f"--every {every}; allowed: 1 or more steps, with --output")
    if output and not kept:
        kept = output.with_suffix(checkpoint.SUFFIX)
    if arguments.resume and not kept:
        raise ValueError("--resume needs --checkpoint or --output, to know what to resume")
    for option, path in (("--output", output), ("--checkpoint", kept)):
        if path is not None:
            check_place(option, path)
    refuse_mesh_as_output(arguments.mesh, output)
    if kept:
        if kept.suffix != checkpoint.SUFFIX:
            raise ValueError(
                f"--checkpoint {kept}; allowed: a name that ends in {checkpoint.SUFFIX}"
            )
        checkpoint.refuse_other_file(kept)
    if not arguments.checkpoint_every >= 0:
        raise ValueError(f"--checkpoint-every {arguments.checkpoint_every}; allowed: 0 or more")
    return Files(output, every, kept, show)


def check_place(option: str, path: Path) -> None:
    """Whether a file can be made where an option says.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such folder, it cannot be written to, or there is a folder of that name.
    """
    folder = path.parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{option} {path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"{option} {path}: the folder {folder} cannot be written to")
    if path.is_dir():
        raise ValueError(f"{option} {path}: this is a folder; allowed: a file")


def refuse_mesh_as_output(mesh: Path | None, output: Path | None) -> None:
    """Raise a ValueError if a run would write its fields over the mesh that it reads."""
    if mesh and output and mesh.exists() and output.exists() and mesh.samefile(output):
        raise ValueError(f"--output {output} is the file of --mesh; allowed: another file")


# -------------------------------------------------------------------------------------- the loop


@dataclass(frozen=True)
class Case:
    """A problem in time that a family's options describe, and what solves it.

    Attributes
    ----------
    solver : NodalSolver or parallel.Solver
    problem : dict
        What a checkpoint must agree with, see `dgbook.cli.checkpoint.load`.
    start : function
        The state at t = 0, a function of the coordinates.
    about : list of str
        The family's own lines about what is to be computed.
    stages : number
        Of a step, or, of local time steps, how often an element is updated on average in one.
    total : {"energy", "entropy"}
        What is shown of the first state and of the last: a method of the solver.
    digits : str
        The format of that number.
    exact : function or None
        The exact solution, a function of coordinates and time, where it is known.
    dt : float, "local" or None
        The longest step, as in `NodalSolver.march` and `LinearSolver.march`.
    """

    solver: NodalSolver | parallel.Solver
    problem: dict[str, Any]
    start: Callable
    about: list[str]
    stages: float
    total: str
    digits: str
    exact: Callable | None
    dt: float | str | None = None


def solver_of(
    arguments: argparse.Namespace,
    mesh: Mesh,
    make: Callable[[Mesh, Any], NodalSolver],
) -> NodalSolver | parallel.Solver:
    """A solver on a mesh: with several ranks, or --parts, one in parts.

    Parameters
    ----------
    arguments : argparse.Namespace
        With `parts`.
    mesh : Mesh
    make : function
        ``make(mesh, elements)`` is a family's solver on a mesh of those elements of the whole one.

    Raises
    ------
    ValueError
        For --parts with several ranks, --exchange peers without several ranks or without GPUs, or
        as `parallel.Solver`.
    RuntimeError
        As `ranks.world`, and as `parallel.PeerRanks`.
    """
    comm = ranks.world()
    if arguments.exchange == "peers":
        if comm is None or find_device(arguments.device).is_host:
            raise ValueError(
                f"--exchange peers in {'one process' if comm is None else 'ranks without GPUs'}; "
                "allowed: with --gpus, or in several ranks that have GPUs"
            )
        comm = parallel.PeerRanks(comm)
    if comm is not None and arguments.parts is not None:
        raise ValueError(
            f"--parts {arguments.parts} in {comm.Get_size()} ranks; allowed: each rank has one part"
        )
    if comm is None and arguments.parts is None:
        if arguments.traces != "whole":
            raise ValueError(f"--traces {arguments.traces} without parts; allowed: with --parts")
        return make(mesh, slice(None))
    parts = 1 if arguments.parts is None else arguments.parts
    return parallel.Solver(
        lambda piece: make(piece.mesh, piece.elements), mesh, parts, comm, arguments.traces
    )


def run(arguments: argparse.Namespace, show: Callable, case_of: Callable[[], Case]) -> None:
    """Solve a problem in time, show how it goes, and write files.

    Parameters
    ----------
    arguments : argparse.Namespace
        With `t_end`, and the options of `add_file_arguments`.
    show : function
        See `Files`.
    case_of : function
        It makes the case, when it is sure that a checkpoint can be written.
    """
    if arguments.threads is not None:
        use_threads(arguments.threads)
    files = files_of(arguments, show)
    with files.claimed():
        case = case_of()
        solver, name = case.solver, case.total
        refuse_if_too_large(ranks.any_of(solver), solver.memory_bytes())
        on_cores, local = solver.device.kind == "cpu", case.dt == "local"
        if on_cores and not local:
            prepare(ranks.any_of(solver).launcher)
        march, total = begin(case, files, arguments.resume, arguments.t_end)
        if on_cores and local:
            prepare(march.stepper.launcher)
        first = march.done
        print(description(case, march), flush=True)

        def keep() -> None:
            if files.checkpoint:
                state, raw = whole(solver, march.state()), whole(solver, march.raw())
                if ranks.leads(solver):
                    content = Checkpoint(state, raw, march.done, march.dt, total)
                    checkpoint.save(files.checkpoint, content, case.problem)
                ranks.agreed(solver, None)  # no rank ends before it is there

        seconds = advance(solver, march, files, keep, arguments.checkpoint_every)
        u = march.state()
        last = format(getattr(solver, name)(u), case.digits)
        print(f"{name} {total:{case.digits}} at t = 0, {last} at t = {march.time:g}")
        if case.exact is not None:
            print(f"L2 error {solver.l2_error(u, case.exact, march.time):.3e}")
        dofs = len(solver.fields) * solver.mesh.K * solver.element.Np
        stages = case.stages * (march.count - first)
        rate = live(dofs * stages / seconds * 1e-9, "GDOF/s", solver.device)
        print(f"{rate}, files not included")
        if files.output:
            print("written:", files.written(solver, march))
        if files.checkpoint and ranks.leads(solver):
            checkpoint.remove(files.checkpoint)  # the run is over


def begin(case: Case, files: Files, resume: bool, t_end: float) -> tuple[March, float]:
    """A march from the start, or from the checkpoint, and the case's total at t = 0.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no checkpoint to resume from, or it is not one of this run.
    """
    solver = case.solver
    if resume:
        shape = (len(solver.fields), solver.mesh.K, solver.element.Np)
        kept = checkpoint.load(files.checkpoint, case.problem, shape, solver.dtype)
        try:
            u = solver.scatter(kept.u) if isinstance(solver, parallel.Solver) else kept.u
            dt = case.dt if case.dt == "local" else kept.dt
            march = solver.march(u, t_end, dt, done=kept.done)
        except ValueError as error:  # all that was not in the file has been checked
            raise ValueError(f"checkpoint {files.checkpoint}: {error}") from error
        if not march.restore(kept.u, kept.raw):
            print("other kernels wrote the checkpoint: the same fields, rounded")
        return march, kept.total
    if files.checkpoint and files.checkpoint.exists():
        print(f"{files.checkpoint}, of an earlier run, will be replaced")
    u = solver.interpolate(case.start)
    return solver.march(u, t_end, case.dt), getattr(solver, case.total)(u)


def prepare(launcher: CoreLauncher) -> None:
    """Have kernels for processor cores compiled, or loaded from disk, and say which."""
    print("kernels for the processor's cores", end=": ", flush=True)
    begin = time.perf_counter()
    compiled = launcher.prepare()
    how = "compiled, and kept on disk for later runs," if compiled else "loaded from disk"
    print(f"{how} in {time.perf_counter() - begin:.1f} s", flush=True)


def whole(solver: NodalSolver | parallel.Solver, u: Any) -> np.ndarray | None:
    """A state of the whole mesh, or None in a process that does not lead."""
    return solver.gather(u) if isinstance(solver, parallel.Solver) else u


def refuse_if_too_large(solver: NodalSolver, needs: int) -> None:
    """Raise a ValueError if a run needs more bytes than the device has, or the host without one."""
    device, order = solver.device, solver.element.order
    check_memory(
        f"{solver.mesh.K} elements of order {order} in {solver.dtype} need",
        needs,
        None if device.memory_bytes is None else (device.memory_bytes, device.name),
        ADVICE,
    )


def numerics(solver: NodalSolver) -> str:
    """The numerical flux and, on a GPU, the path, for `Case.about`."""
    kernels = "" if solver.device.is_host else f", path {solver.path}"
    return f"{solver.operator.flux} flux{kernels}"


def listed(words: dict[str, str]) -> str:
    """The conditions of boundaries as "NAME=WORD, NAME=WORD"."""
    return ", ".join(f"{name}={word}" for name, word in words.items())


def description(case: Case, march: March) -> str:
    """What is about to be computed."""
    solver = case.solver
    mesh, element = solver.mesh, solver.element
    dofs = len(solver.fields) * mesh.K * element.Np
    kind = {2: "triangles", 3: "tetrahedra"}[mesh.dim]
    where = "the host's" if solver.device.is_host else "the device's"
    resumed = f", of which {march.done} are done," if march.done else ""
    return "\n".join(
        [
            solver.device.sentence,
            f"{mesh.K} {kind} of order {element.order}: {dofs} degrees of freedom, {solver.dtype}",
            *in_parts(solver),
            *case.about,
            f"{march.count} steps{resumed} of {march.dt:.4g}, about "
            f"{solver.memory_bytes() / 2**20:.0f} MiB of {where} memory",
        ]
    )


def in_parts(solver: NodalSolver | parallel.Solver) -> list[str]:
    """Of a mesh in parts a line about them; what is said of memory is then that of a process."""
    if not isinstance(solver, parallel.Solver):
        return []
    edge = sum(ranks.agreed(solver, sum(piece.edge for piece in solver.pieces)))
    parts = solver.transport.parts
    processes = len(ranks.agreed(solver, None))
    where = "one process" if processes == 1 else f"{processes} processes"
    sent = bytes_text(solver.bytes_sent())
    return [f"{parts} parts in {where}: {edge} elements at edges, {sent} exchanged in a stage"]


def advance(
    solver: NodalSolver, march: March, files: Files, keep: Callable[[], None], seconds: float
) -> float:
    """Take the steps, show and write what there is to see; the time of the steps, in seconds.

    Raises
    ------
    BlowUpError
        If a state is not what the equations allow; the last good one is written beside the output.
    KeyboardInterrupt
        If somebody asked for it; a checkpoint has been saved.
    """
    try:
        return _advance(solver, march, files, keep, seconds)
    except BlowUpError as error:
        files.write_last_good(solver, error)
        raise


def _advance(
    solver: NodalSolver, march: March, files: Files, keep: Callable[[], None], seconds: float
) -> float:
    leads = ranks.leads(solver)
    shown = {"desc": "time steps", "leave": False, "disable": not leads}
    bar = tqdm(total=march.count, initial=march.done, **shown)
    watch = solver.watch(march)
    with bar, interruptions() as asked:
        if files.every and march.done == 0:
            files.write(solver, march)
        stepping, begin = 0.0, time.perf_counter()
        kept = begin
        stop = False
        while march.done < march.count and not stop:
            watch.step()
            bar.set_postfix_str(f"t = {march.time:.4g}", refresh=False)
            bar.update()
            save = time.perf_counter() - kept >= seconds and march.done < march.count
            # All ranks do what one of them was asked to do, and save when the first one does.
            said = ranks.agreed(solver, (bool(asked), save))
            stop, save = any(asked for asked, _ in said), said[0][1]
            if save or files.due(march):
                solver.device.synchronize()
                stepping += time.perf_counter() - begin
                watch.look(closely=True)
                if files.due(march):
                    files.write(solver, march)
                if save:
                    keep()
                    kept = time.perf_counter()
                begin = time.perf_counter()
    solver.device.synchronize()
    stepping += time.perf_counter() - begin
    watch.look(closely=True)
    if march.done < march.count:
        keep()
        if files.checkpoint and leads:
            print(
                f"stopped after step {march.done} of {march.count}, t = {march.time:.6g}; "
                f"the same command with --resume goes on from {files.checkpoint}",
                file=sys.stderr,
            )
        raise KeyboardInterrupt
    return stepping


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
