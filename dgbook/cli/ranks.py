"""Several ranks on the command line: who they are, who speaks, and how all end together."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.arguments import check_integer
from dgbook.cli.output import Shown, write_pvtu, write_vtu
from dgbook.gpu import nccl
from dgbook.lab.rivals.swept import launcher
from dgbook.parallel import Solver, State
from dgbook.parallel.transport import MPI_MISSING

LAUNCHERS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
"""How many ranks there are, say MPICH and its kin, and Open MPI, to the processes they start."""
SRUN = "SLURM_STEP_NUM_TASKS"
"""And srun, of whose processes each may be a run of its own: those of mpi4py are ranks."""
PATIENCE = 1.0
"""Seconds that a rank leaves the first one to end all before it says the same, and mpiexec to read
what was said."""


def world() -> Any:
    """The communicator of all ranks; None in a process that is alone.

    Raises
    ------
    RuntimeError
        If several processes were started and mpi4py is missing, finds no MPI, or one that knows
        nothing of them.
    """
    by_mpi4py = bool({"mpi4py.run", "mpi4py.MPI"} & sys.modules.keys())
    names = (*LAUNCHERS, SRUN) if by_mpi4py else LAUNCHERS
    started = max(int(os.environ.get(name, 1)) for name in names)
    if started == 1 and not by_mpi4py:
        return None
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise RuntimeError(f"{started} processes were started: {MPI_MISSING}") from error
    except RuntimeError as error:  # of mpi4py, which looks for a library when it is imported
        raise RuntimeError(
            f"{started} processes were started, and mpi4py finds no MPI ({error}): pip install "
            "mpich, or let it find the one that mpiexec belongs to"
        ) from error
    if started > 1 and MPI.COMM_WORLD.Get_size() != started:
        library = MPI.Get_library_version().splitlines()[0].strip()
        raise RuntimeError(
            f"two MPIs are mixed: mpiexec or srun started {started} processes, and mpi4py, with "
            f"{library}, sees {MPI.COMM_WORLD.Get_size()}. Start with the mpiexec of that MPI; "
            f"with pip's mpich it is {Path(sys.executable).with_name('mpiexec')}"
        )
    return MPI.COMM_WORLD if MPI.COMM_WORLD.Get_size() > 1 else None


def first() -> bool:
    """Whether this process is the first one, or the only one."""
    comm = world()
    return comm is None or comm.Get_rank() == 0


def begin(family: str, arguments: argparse.Namespace, argv: list[str]) -> None:
    """What is settled before a family runs: how many ranks there are, and which GPU each has.

    With --gpus this process is replaced by an mpiexec, which starts `argv` once for each GPU.

    Parameters
    ----------
    family : str
    arguments : argparse.Namespace
        Where the family's meshes can be in parts, with `device`, `gpus` and `parts`.
    argv : list of str
        The command line from its verb on.

    Raises
    ------
    ValueError
        If several ranks would run a family that knows no parts, or --gpus does not fit the other
        options, the ranks or this machine.
    RuntimeError
        For --gpus without NCCL, mpi4py or mpiexec, and as `world`.
    """
    comm = world()
    ranks = 1 if comm is None else comm.Get_size()
    if not hasattr(arguments, "parts"):
        if ranks > 1:
            raise ValueError(
                f"run {family} in {ranks} ranks; allowed: one process, or a family whose "
                "meshes can be in parts: linear, maxwell, acoustics or euler"
            )
        return
    gpus, wants_gpu = arguments.gpus, arguments.device in ("auto", "cuda")
    if gpus is not None:
        check_integer("--gpus", gpus, 1)
        if arguments.parts is not None or not wants_gpu:
            other = f"--parts {arguments.parts}" if wants_gpu else f"--device {arguments.device}"
            raise ValueError(f"--gpus {gpus} with {other}; allowed: one of them")
        if ranks == 1 and gpus > 1:
            _become_ranks(gpus, argv)
        if ranks != gpus:
            raise ValueError(f"--gpus {gpus} in {ranks} ranks; allowed: a GPU for each rank")
    if ranks > 1 and wants_gpu:
        from mpi4py import MPI

        nccl.take_gpu(comm.Split_type(MPI.COMM_TYPE_SHARED).Get_rank())


def _become_ranks(gpus: int, argv: list[str]) -> None:
    """Replace this process by an mpiexec, so that signals and the exit code are its own."""
    if gpus > (here := nccl.count()):
        raise ValueError(
            f"--gpus {gpus}: this machine has {here}; allowed: up to so many, or on several "
            "machines their mpiexec or srun with python -m mpi4py -m dgbook, without --gpus"
        )
    nccl.library()
    command = [launcher(), "-n", str(gpus), sys.executable, "-m", "mpi4py", "-m", "dgbook", *argv]
    sys.stdout.flush()
    os.execv(command[0], command)


def run(command: Callable[[Callable[[str], None]], int]) -> int:
    """The exit code of a command; if it fails on one rank, all ranks end.

    The first rank speaks: what others say to stdout is dropped. An error that all have is told by
    the first one, which ends the others while they wait.

    Parameters
    ----------
    command : function
        ``command(complain)``; it calls ``complain(message)`` when it fails, and returns a code.
    """
    comm = _world_or_none()
    rank = comm.Get_rank() if comm is not None else 0
    if rank:
        sys.stdout = open(os.devnull, "w")

    def complain(message: str) -> None:
        if rank:
            time.sleep(2 * PATIENCE)
            message = f"rank {rank}: {message}"
        print(message, file=sys.stderr, flush=True)

    try:
        code = command(complain)
    except Exception:
        if comm is None:
            raise
        complain(traceback.format_exc())
        code = 1
    if code and comm is not None:
        time.sleep(PATIENCE)  # mpiexec drops what it has not read yet when ranks abort
        comm.Abort(code)
    return code


def _world_or_none() -> Any:
    """`world`, but None where it complains: a command that needs it will do that."""
    try:
        return world()
    except RuntimeError:
        return None


# ------------------------------------------------------------------------------- what ranks share


def agreed(solver: Any, value: Any) -> list[Any]:
    """What each process says, by rank; of one that is alone its own word."""
    return solver.transport.everyone(value) if isinstance(solver, Solver) else [value]


def leads(solver: Any) -> bool:
    """Whether this process is the one that shows and writes for all."""
    return solver.transport.leads if isinstance(solver, Solver) else True


def any_of(solver: Any) -> Any:
    """The solver, or the first of one in parts: for what all of them have in common."""
    return solver.solvers[0] if isinstance(solver, Solver) else solver


def file_of(path: Path, solver: Any) -> Path:
    """What is opened to see a state: the file of that name, or that of all its pieces."""
    return path.with_suffix(".pvtu") if isinstance(solver, Solver) else path


def write_pieces(
    path: Path, solver: Solver, u: State, show: Callable[[Any, np.ndarray], Shown]
) -> None:
    """Write a state in parts: NAME_0.vtu and so on by all processes, NAME.pvtu by the first.

    Ghosts are not written, and what is the same in all elements of all pieces is not either.
    """
    with np.errstate(all="ignore"):  # what ghosts hold between stages need not be a state
        shown = [show(*both) for both in zip(solver.solvers, u, strict=True)]
    uneven = []
    for name in shown[0].constants:
        least, most = _ends(solver, [one.constants[name] for one in shown])
        uneven += [name] if least < most else []
    for piece, one in zip(solver.pieces, shown, strict=True):
        constants = {name: one.constants[name] for name in uneven}
        write_vtu(_piece(path, piece.number), piece.mesh, one.element, one.fields, constants)
    numbers = agreed(solver, [piece.number for piece in solver.pieces])  # all are written now
    if leads(solver):
        files = [_piece(path, number) for process in numbers for number in process]
        constants = {name: shown[0].constants[name] for name in uneven}
        write_pvtu(path.with_suffix(".pvtu"), files, shown[0].fields, constants)


def _ends(solver: Solver, values: list[np.ndarray]) -> tuple[float, float]:
    """The least and the largest of values (K,) of the pieces of all processes, ghosts left out."""
    both = zip(solver.pieces, values, strict=True)
    own = np.concatenate([some[: piece.mesh.owned] for piece, some in both])
    least, most = zip(*agreed(solver, (float(own.min()), float(own.max()))), strict=True)
    return min(least), max(most)


def _piece(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}_{number}.vtu")
