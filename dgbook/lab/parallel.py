"""What is measured of meshes in parts: one part on one GPU; exchanges, weak and strong scaling."""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from dgbook import parallel
from dgbook.gpu import Device, nccl
from dgbook.gpu import device as find_device
from dgbook.gpu.cost import Cost
from dgbook.gpu.timing import FEWEST_SAMPLES, Timing, measure
from dgbook.lab.maxwell import cells_for
from dgbook.lab.measuring import Rows, cube
from dgbook.lab.rivals.swept import on_ranks, tell, world
from dgbook.lab.session import Session, Subject
from dgbook.maxwell.cost import costs
from dgbook.maxwell.solver import Solver
from dgbook.mesh import Mesh
from dgbook.nodal.linear import noise
from dgbook.nodal.solving import NodalSolver
from dgbook.parallel.transport import Connection, NcclGroup, OneProcess, Packet, Transport

SPLIT, WEAK, STRONG = (8_000_000, 60_000_000), (4_000_000, 60_000_000), (8_000_000, 60_000_000)
"""Degrees of freedom of a record: of the mesh, for each GPU, and of the mesh."""
PARTS = (2, 8)
EXCHANGED = tuple(2**k for k in range(12, 27))
"""Bytes that go each way."""
TOGETHER = 32
"""Exchanges in a recording: of a single one the launch would take longer."""
SHORTEST = 20e-3
"""Seconds of a sample of several ranks, which meet before and after it."""
LIMIT = 900.0
"""Seconds that ranks have for all that they are asked."""
RECORDED, PYTHON, BY_NCCL = "recorded", "launched from Python", "recorded, by NCCL"
STILL = 1e-6
"""Of a stable step: so short that a state hardly changes, whatever comes in."""


# ------------------------------------------------------------------------------------- one GPU


def make(order: int, dtype: str, device: Device) -> Callable[[Any], Solver]:
    """What makes Maxwell's solver on a piece of a mesh, or on a mesh: ``.mesh`` is enough."""
    return lambda piece: Solver(piece.mesh, order, dtype, device, basis="nodal")


def stepping(solver: NodalSolver | parallel.Solver, recorded: bool = True) -> Callable[[], None]:
    """What takes a step of a solver from noise, again and again; next to nothing changes."""
    several = isinstance(solver, parallel.Solver)
    states = [random_state(one) for one in (solver.solvers if several else [solver])]
    dt = STILL * solver.cfl_dt()
    stepper = solver.march(states if several else states[0], dt, dt).stepper
    if not recorded:
        stepper.replay = None
    return partial(stepper.step, 0.0)


def random_state(solver: NodalSolver) -> np.ndarray:
    """Random numbers, repeated, (6, K, Np)."""
    shape = len(solver.fields), solver.mesh.K, solver.element.Np
    return np.resize(noise(solver.dtype), shape)


def per_stage(seconds: Iterable[float], solver: NodalSolver | parallel.Solver) -> Timing:
    """Of steps' durations those of their stages."""
    return Timing(tuple(s / len(solver.method.A) for s in seconds))


def stage_row(
    session: Session,
    path: str,
    facts: Mapping[str, Any],
    order: int,
    dtype: str,
    timing: Timing,
    variant: str = RECORDED,
) -> dict[str, Any]:
    """A row about a stage of some parts, of which `facts` are those of `facts_of`."""
    size = {key: facts[key] for key in ("K", "Np", "fields", "parts", "gpus", "edge", "sent")}
    dofs = size["K"] * size["Np"] * size["fields"]
    cost = costs(order, size["K"], dtype)["fused"]
    subject = Subject(order, dtype, size, dofs, {"variant": variant})
    return session.row(subject, path, facts["language"], None, cost, timing)


def facts_of(solver: NodalSolver | parallel.Solver) -> dict[str, Any]:
    """Sizes, and what parts exchange: elements at edges, and bytes sent before a stage."""
    facts = {
        "K": solver.mesh.K,
        "Np": solver.element.Np,
        "fields": len(solver.fields),
        "parts": 0,
        "gpus": 1,
        "edge": 0,
        "sent": 0,
    }
    if not isinstance(solver, parallel.Solver):
        return facts | {"language": solver.launcher.plan.language}
    return facts | {
        "K": solver.transport.total(sum(piece.mesh.owned for piece in solver.pieces)),
        "parts": solver.transport.parts,
        "gpus": len(solver.transport.everyone(None)),
        "edge": solver.transport.total(sum(piece.edge for piece in solver.pieces)),
        "sent": solver.bytes_sent(),
        "language": solver.solvers[0].launcher.plan.language,
    }


class OnePart(Transport):
    """One part of a mesh in several, on one GPU: what it sends to a neighbor comes back to it.

    As much goes out to a neighbor as comes in from it, therefore this GPU does what each of several
    does, but for the network. The numbers are not those of a wave.

    Parameters
    ----------
    parts : int
    messages : nccl.Messages, optional
        Of this process alone, to send by; copies without it.
    """

    def __init__(self, parts: int, messages: nccl.Messages | None = None) -> None:
        self.parts, self.mine, self.messages = parts, range(1), messages

    def connect(
        self, sends: Sequence[Packet], receives: Sequence[Packet], device: Device
    ) -> Connection:
        """As `Transport.connect`."""
        # To itself by the name of each neighbor, or, by NCCL, in the order of the neighbors.
        back = [Packet(0, packet.source, packet.buffer) for packet in receives]
        if self.messages is None or device.is_host:
            return OneProcess(self.parts).connect(sends, back, device)
        ends = ([Packet(0, 0, packet.buffer) for packet in some] for some in (sends, back))
        return NcclGroup(self.messages, *ends, device)

    def everyone(self, value: Any) -> list[Any]:
        """As `Transport.everyone`: there is nobody else."""
        return [value]

    collected = everyone


def split_rows(
    order: int, dtype: str, dofs: Sequence[int], parts: Sequence[int], session: Session
) -> Rows:
    """What it costs to be one of several parts, on one GPU; and a whole mesh of about that size.

    A step is one recording, with copies in place of messages, and with NCCL's to itself where that
    is installed; of the smallest mesh also what it takes when Python launches all that is in it.
    """
    messages = None
    try:
        messages = nccl.connected()
    except RuntimeError as trouble:
        warnings.warn(f"nothing measured with NCCL: {trouble}", stacklevel=2)
    for number in dofs:
        mesh = cube(cells_for(number, order))
        for count in parts:
            whole = make(order, dtype, session.device)(
                _Whole(cube(cells_for(number // count, order)))
            )
            yield measured_row(session, "whole", whole, order, dtype)
            del whole
            ways = {RECORDED: None}
            ways |= {PYTHON: None} if number == min(dofs) else {}
            ways |= {BY_NCCL: messages} if messages else {}
            for variant, by in ways.items():
                transport = OnePart(count, by)
                many = parallel.Solver(make(order, dtype, session.device), mesh, comm=transport)
                yield measured_row(session, "part", many, order, dtype, variant)
                del many


class _Whole:
    """A mesh as `make` wants a piece."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh


def measured_row(
    session: Session,
    path: str,
    solver: NodalSolver | parallel.Solver,
    order: int,
    dtype: str,
    variant: str = RECORDED,
) -> dict[str, Any]:
    """A row about a stage of a solver in this process."""
    timing = measure(stepping(solver, variant != PYTHON), session.device)
    by_stage = per_stage(timing.seconds, solver)
    by_stage = Timing(by_stage.seconds, timing.inner, timing.host_bound)
    return stage_row(session, path, facts_of(solver), order, dtype, by_stage, variant)


# ----------------------------------------------------------------------------------- several GPUs


def gpu_counts() -> list[int]:
    """1, 2, 4 and so on, up to the GPUs of this machine."""
    return [2**k for k in range(max(1, nccl.count()).bit_length())]


def scaling_rows(
    path: str, order: int, dtype: str, dofs: Sequence[int], parts: Sequence[int], session: Session
) -> Rows:
    """Weak scaling, with `dofs` for each GPU, or strong scaling, with as many for all together."""
    for gpus in gpu_counts():
        asked = [(path, order, dtype, n * (gpus if path == "weak" else 1)) for n in dofs]
        for seconds, facts in answers(gpus, asked):
            yield stage_row(session, path, facts, order, dtype, Timing(tuple(seconds)))


def exchange_rows(
    order: int, dtype: str, dofs: Sequence[int], parts: Sequence[int], session: Session
) -> Rows:
    """How long two GPUs take to send each other so many bytes, recorded and from Python.

    Raises
    ------
    RuntimeError
        Where there are no two GPUs, or no NCCL or MPI.
    """
    if nccl.count() < 2:
        raise RuntimeError("RECORD exchange needs two GPUs or more; allowed here: split")
    asked = [("exchange", nbytes, kind) for nbytes in EXCHANGED for kind in (RECORDED, PYTHON)]
    for (_, nbytes, kind), (seconds, _) in zip(asked, answers(2, asked), strict=True):
        subject = Subject(None, dtype, {"bytes": nbytes, "gpus": 2}, 0, {"variant": kind})
        cost = Cost(0, 2 * nbytes)  # each GPU reads what it sends and writes what it gets
        yield session.row(subject, "exchange", "nccl", None, cost, Timing(tuple(seconds)))


def answers(gpus: int, asked: Sequence[Any]) -> Iterable[Any]:
    """What ranks answer, a GPU each; started once for all that is asked."""
    program = "from dgbook.lab.parallel import answer; answer()"
    return on_ranks(gpus, program, [gpus, asked], LIMIT)


def asked_rank() -> tuple[Any, Device, list[Any]]:
    """Of a rank that `on_ranks` has started: its communicator, its own GPU, and what it is asked.

    Raises
    ------
    RuntimeError
        If there are not as many ranks as were started.
    """
    comm, (gpus, asked) = world(), json.loads(sys.argv[1])
    if comm.Get_size() != gpus:
        raise RuntimeError(f"{comm.Get_size()} ranks of {gpus}: mpiexec is not of mpi4py's MPI")
    nccl.take_gpu(comm.Get_rank())
    return comm, find_device("cuda"), asked


def answer() -> None:
    """What each of those ranks does: asked on its command line, the first tells what it took."""
    comm, device, asked = asked_rank()
    messages = nccl.connected(comm) if any(what == "exchange" for what, *_ in asked) else None
    for what, *how in asked:
        if what == "exchange":
            told = exchanged(comm, device, messages, *how)
        else:
            told = stepped(comm, device, *how)
        if comm.Get_rank() == 0:
            tell(told)


def stepped(comm: Any, device: Device, order: int, dtype: str, dofs: int) -> tuple:
    """Seconds of a stage of a cube on all ranks, and facts about it."""
    mesh = cube(cells_for(dofs, order))
    many = parallel.Solver(make(order, dtype, device), mesh, comm=comm)
    seconds = seconds_together(comm, device, stepping(many))
    return per_stage(seconds, many).seconds, facts_of(many)


def exchanged(comm: Any, device: Device, messages: nccl.Messages, nbytes: int, kind: str) -> tuple:
    """Seconds in which two ranks send each other so many bytes."""
    other = 1 - comm.Get_rank()
    ours, theirs = (device.zeros(nbytes // 4, np.float32) for _ in range(2))
    exchange = partial(messages.exchange, [(ours, other)], [(theirs, other)])

    def several() -> None:
        for _ in range(TOGETHER):
            exchange(device.stream)

    function = device.capture(several) if kind == RECORDED else several
    return [s / TOGETHER for s in seconds_together(comm, device, function)], None


def seconds_together(comm: Any, device: Device, function: Callable[[], None]) -> list[float]:
    """How long a call takes on the slowest rank, in each of some samples.

    All ranks make the same number of calls, since each of them waits for the others'.
    """

    def sample(calls: int) -> float:
        device.synchronize()
        comm.Barrier()
        start = time.perf_counter()
        for _ in range(calls):
            function()
        device.synchronize()
        return max(comm.allgather(time.perf_counter() - start)) / calls

    sample(3)
    calls = max(1, math.ceil(SHORTEST / sample(3)))
    return [sample(calls) for _ in range(FEWEST_SAMPLES)]


RECORDS = {
    "split": split_rows,
    "exchange": exchange_rows,
    "weak": partial(scaling_rows, "weak"),
    "strong": partial(scaling_rows, "strong"),
}
SIZES = {"split": SPLIT, "exchange": (), "weak": WEAK, "strong": STRONG}
