"""Classic and the swept rule on MPI ranks, as the paper's Figure 10 compares with: mpi4py."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.arguments import check_choice
from dgbook.swept.cores import Nodes, make_fill
from dgbook.swept.plan import DTYPES, Plan, Shape, check_steps
from dgbook.swept.problem import Problem, as_problem

RANK_SCHEMES = ("classic", "shared")
SAMPLES = 20
LIMIT = 300.0
"""Seconds that ranks have for all that they are asked."""
ANSWER = "answer: "
INSTALL = "pip install 'dgbook[mpi]', and mpich where the system has no MPI of its own"


def world() -> Any:
    """All ranks.

    Raises
    ------
    RuntimeError
        Where there is no mpi4py, or no MPI that it could load.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(f"MPI ranks need mpi4py and an MPI ({error}): {INSTALL}") from error
    return MPI.COMM_WORLD


class Ranks:
    """A problem on n points, of which each rank has as many, side by side.

    In Classic a rank sends r states to either side in every substep; in the swept rule an edge to
    one side for a node's height of them (magee2017, section 4: the right one to the right where
    diamonds shift, then the left one back).

    Parameters
    ----------
    problem : Problem or {"heat", "ks", "euler"}
    scheme : {"classic", "shared"}
    n : int
        Points: of "classic" a multiple of the ranks, with 2r or more for each, of "shared" of
        ranks times node.
    dtype : {"float64", "float32"}
    node : int
        Points of a node.
    comm : mpi4py.MPI.Comm, optional
        The ranks; if not given, all.

    Raises
    ------
    ValueError
        If an argument is not as above; the message names it.
    RuntimeError
        Where there is no MPI.
    """

    def __init__(
        self,
        problem: Problem | str,
        scheme: str,
        n: int,
        dtype: str = "float64",
        node: int = 128,
        comm: Any = None,
    ) -> None:
        self.problem, self.scheme, self.n, self.plan = as_problem(problem), scheme, n, Plan(node)
        check_choice("scheme", scheme, RANK_SCHEMES)
        check_choice("dtype", dtype, DTYPES)
        if trouble := self.plan.illegal(Shape(self.problem, scheme, n, dtype)):
            raise ValueError(trouble)
        self.comm = world() if comm is None else comm
        ranks, rank, reach = self.comm.size, self.comm.rank, self.problem.reach
        unit = ranks * (node if scheme == "shared" else 1)
        if n % unit or n < 2 * reach * ranks:
            least = f", {2 * reach * ranks} or more" if scheme == "classic" else ""
            raise ValueError(f"n = {n}; allowed on {ranks} ranks: multiples of {unit}{least}")
        self.dtype, self.points = np.dtype(dtype), n // ranks
        self.first, self.fields = rank * self.points, len(self.problem.fields)
        self.before, self.after = (rank - 1) % ranks, (rank + 1) % ranks

    def run(self, u: np.ndarray, steps: int) -> np.ndarray:
        """The state `steps` time steps after u, (fields, n), on every rank; u stays as it is."""
        check_steps(self.problem, self.scheme, self.plan, steps)
        mine = self._advance(self._part(u), steps)
        parts = np.empty((self.comm.size, self.fields, self.points), self.dtype)
        self.comm.Allgather(np.ascontiguousarray(mine), parts)
        return parts.transpose(1, 0, 2).reshape(self.fields, self.n)

    def seconds_per_step(self, u: np.ndarray, steps: int) -> list[float]:
        """What a step takes from u on, in samples of `steps`: `SAMPLES` of them.

        Each rank goes on with its part of the points: nothing is gathered meanwhile.
        """
        check_steps(self.problem, self.scheme, self.plan, steps)
        mine, seconds = self._advance(self._part(u), steps), []  # compiles
        for _ in range(SAMPLES):
            self.comm.Barrier()
            start = time.perf_counter()
            mine = self._advance(mine, steps)
            self.comm.Barrier()
            seconds.append((time.perf_counter() - start) / steps)
        return seconds

    def _part(self, u: np.ndarray) -> np.ndarray:
        """This rank's of all points, a copy."""
        return u[:, self.first : self.first + self.points].astype(self.dtype)

    def _advance(self, mine: np.ndarray, steps: int) -> np.ndarray:
        """This rank's points so many steps later; the given ones may be overwritten."""
        return (self._classic if self.scheme == "classic" else self._swept)(mine, steps)

    def _pass(self, values: np.ndarray, to: int, out_of: int) -> np.ndarray:
        """Send values to a rank and return what another sends."""
        received = np.empty_like(values)
        self.comm.Sendrecv(values, to, recvbuf=received, source=out_of)
        return received

    def _classic(self, mine: np.ndarray, steps: int) -> np.ndarray:
        """Rows with r states of either neighbor on their sides, fetched before each substep."""
        reach, points, stages = self.problem.reach, self.points, len(self.problem.weights)
        width = points + 2 * reach
        u, other = (np.empty((self.fields, width), self.dtype) for _ in range(2))
        u[:, reach:-reach] = mine
        where = reach, reach + points, reach - self.first, width, self.n
        fills = [make_fill(self.problem, self.dtype.name, stage) for stage in range(stages)]
        for fill in fills * steps:
            last, first = u[:, points:-reach].copy(), u[:, reach : 2 * reach].copy()
            u[:, :reach] = self._pass(last, self.after, self.before)
            u[:, -reach:] = self._pass(first, self.before, self.after)
            fill(u.ravel(), other.ravel(), *where)
            u, other = other, u
        return u[:, reach:-reach]

    def _swept(self, mine: np.ndarray, steps: int) -> np.ndarray:
        """Nodes with a place more for an edge of the neighbor's."""
        node = self.plan.threads
        nodes, size = self.points // node, self.fields * node
        part = Nodes(self.problem, node, self.dtype.name, self.n, self.first // node, nodes)
        old, new = ([np.empty((nodes + 1) * size, self.dtype) for _ in range(2)] for _ in range(2))
        u = mine.ravel()
        part.up(u, *old)
        heights = steps * len(self.problem.weights) // (part.top // 2)
        for launch in range(1, heights + 1):
            shifted = launch % 2 == 1
            left, right = old
            if shifted:
                right[-size:] = self._pass(right[-2 * size : -size], self.after, self.before)
            else:
                left[-size:] = self._pass(left[:size], self.before, self.after)
            if launch == heights:
                part.down(left, right, u, shifted)
            else:
                part.diamond(left, right, *new, shifted)
                old, new = new, old
        mine = u.reshape(self.fields, self.points)
        if heights % 2 == 1:
            behind = mine[:, -node // 2 :].copy()
            mine[:, -node // 2 :] = self._pass(behind, self.before, self.after)
        return mine


def launcher() -> str:
    """Where MPI's mpiexec is: an environment's own, whose library mpi4py prefers, or on the PATH.

    Raises
    ------
    RuntimeError
        Where there is none, or no mpi4py.
    """
    mpiexec = shutil.which("mpiexec")
    if sys.prefix != sys.base_prefix:
        mpiexec = shutil.which("mpiexec", path=Path(sys.executable).parent) or mpiexec
    for name, installed in (("mpiexec", mpiexec), ("mpi4py", importlib.util.find_spec("mpi4py"))):
        if not installed:
            raise RuntimeError(f"MPI ranks need {name}, which is not installed: {INSTALL}")
    return mpiexec


def on_ranks(ranks: int, program: str, asked: Any, limit: float = LIMIT) -> Iterator[Any]:
    """Start a program on ranks of this machine, a core each, and yield its answers as they come.

    The ranks are gone when this ends, also where the caller stops asking or is interrupted.

    Parameters
    ----------
    ranks : int
    program : str
        Python that finds in ``sys.argv[1]`` what it is asked, in JSON, and calls `tell`.
    asked : lists, dicts, numbers, text
    limit : float
        Seconds until the ranks are ended.

    Raises
    ------
    RuntimeError
        Where there is no MPI, the limit is over, or a rank fails: with the last of what was said.
    """
    command = [launcher(), "-n", str(ranks), sys.executable]
    command += ["-m", "mpi4py", "-c", program, json.dumps(asked)]  # so all end if one fails
    threads = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | threads,
        ) as started,
    ):
        end, over = threading.Timer(limit, started.terminate), time.monotonic() + limit
        end.start()
        try:
            for line in started.stdout:
                if line.startswith(ANSWER):  # mpiexec also prints
                    yield json.loads(line.removeprefix(ANSWER))
            if started.wait():
                if time.monotonic() >= over:
                    raise RuntimeError(f"{ranks} MPI ranks took more than {limit:g} s")
                errors.seek(0)
                said = errors.read().decode(errors="replace").strip()
                raise RuntimeError(f"{ranks} MPI ranks failed: {said[-1000:]}")
        finally:
            end.cancel()
            started.terminate()  # mpiexec then ends its ranks


def tell(answer: Any) -> None:
    """Answer who asked by `on_ranks`.

    In one write, for `print` writes an unbuffered line's end apart from its text, and ranks that
    answer at the same time share what they print to.
    """
    sys.stdout.write(f"{ANSWER}{json.dumps(answer)}\n")
    sys.stdout.flush()


def bind(rank: int, ranks: int) -> None:
    """Keep this process to a core of its own, if the system can and there are enough."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) >= ranks:
        os.sched_setaffinity(0, {cores[rank]})
