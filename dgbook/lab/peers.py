"""What is measured of traces that GPUs write into one another's memory, with NCCL beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dgbook import parallel
from dgbook.gpu import Device, nccl
from dgbook.gpu.cost import Cost
from dgbook.gpu.timing import Timing
from dgbook.lab.maxwell import cells_for
from dgbook.lab.measuring import Rows
from dgbook.lab.parallel import (
    RECORDED,
    TOGETHER,
    asked_rank,
    exchanged,
    facts_of,
    make,
    per_stage,
    random_state,
    seconds_together,
    stage_row,
    stepping,
)
from dgbook.lab.rivals.swept import on_ranks, tell
from dgbook.lab.session import Session, Subject
from dgbook.mesh import Mesh, box
from dgbook.parallel.halo import End, Ends, Halo
from dgbook.parallel.peers import PeerHalo
from dgbook.parallel.pieces import Message, cut
from dgbook.parallel.transport import Transport

GPUS = 2
ORDERS = (3, 4, 7)
DOFS = (500_000, 1_000_000, 2_000_000, 4_000_000, 30_000_000)
"""For each GPU."""
LARGE = 10_000_000
"""For each GPU: from here on only whole traces are sent, since bytes no longer count."""
EXCHANGED = tuple(4**k for k in range(6, 12))
"""Bytes that go each way."""
BY_NCCL, BY_PEERS = "recorded, by NCCL", "recorded, by peers"
HALOS = {BY_NCCL: Halo, BY_PEERS: PeerHalo}
WAYS = [(traces, way) for traces in parallel.TRACES for way in HALOS]
"""Of a mesh in two parts; the first is what the others are compared with."""
ALONE = {"one": 1, "all": GPUS}
"""On one GPU: a mesh as large as a part, and the whole mesh, by how many cubes they have."""
COMPARED = 20
"""Steps after which states are compared."""
LIMIT = 200.0
"""Seconds that ranks have for all that they are asked."""


def peers_rows(orders: Sequence[int], dtype: str, dofs: Sequence[int], session: Session) -> Rows:
    """Exchanges between two GPUs, and a stage of Maxwell's equations on one and on two.

    Messages are NCCL's alone; traces are exchanges with gather and scatter, by NCCL and by peers.
    "one" is a mesh as large as a part on one GPU, "all" the mesh of both. "difference" is how far a
    state is from that by NCCL with whole traces, in terms of the largest value.

    Raises
    ------
    RuntimeError
        Where there are no two GPUs, or no NCCL or MPI; or if whole traces by peers do not make the
        same bits.
    """
    if nccl.count() < GPUS:
        raise RuntimeError("RECORD peers needs two GPUs or more; allowed here: split")
    ways = [("messages", RECORDED), *(("traces", way) for way in HALOS)]
    exchanges = [(what, nbytes, way) for nbytes in EXCHANGED for what, way in ways]
    stages = [
        (traces, order, dtype, number, way)
        for order in orders
        for number in dofs
        for traces, way in [*((path, RECORDED) for path in ALONE), *WAYS]
        if number < LARGE or traces in (*ALONE, "whole")
    ]
    told = iter(answers([*exchanges, *stages]))
    for (what, nbytes, way), (seconds, *_) in zip(exchanges, told, strict=False):
        subject = Subject(None, "float32", {"bytes": nbytes, "gpus": GPUS}, 0, {"variant": way})
        cost = Cost(0, 2 * nbytes)  # each GPU reads what it sends and writes what it gets
        language = "cuda" if way == BY_PEERS else "nccl"
        yield session.row(subject, what, language, None, cost, Timing(tuple(seconds)))
    for (traces, order, _, number, way), (seconds, facts, far) in zip(stages, told, strict=True):
        if traces == "whole" and far:
            raise RuntimeError(
                f"order {order}, {number} degrees of freedom: after {COMPARED} steps the state "
                f"{way} is {far:g} from that by NCCL; the bits should be the same"
            )
        timing = Timing(tuple(seconds))
        row = stage_row(session, traces, facts, order, dtype, timing, way)
        yield row | {"difference": far}


def answers(asked: Sequence[Any]) -> Iterable[Any]:
    """What two ranks answer, a GPU each; started once for all that is asked."""
    program = "from dgbook.lab.peers import answer; answer()"
    return on_ranks(GPUS, program, [GPUS, asked], LIMIT)


def answer() -> None:
    """What each of those ranks does: asked on its command line, the first tells what it took."""
    comm, device, asked = asked_rank()
    messages = nccl.connected(comm)
    ask = Asked(comm, device, messages)
    for one in asked:
        told = ask(*one)
        if comm.Get_rank() == 0:
            tell(told)


class Asked:
    """What a rank is asked: seconds, facts about a solver, and how far a state is from another.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        Of two ranks.
    device : Device
    messages : nccl.Messages
    """

    def __init__(self, comm: Any, device: Device, messages: nccl.Messages) -> None:
        self.comm, self.device, self.messages = comm, device, messages
        self.transports: dict[str, Transport] = {
            BY_NCCL: parallel.NcclRanks(comm, messages),
            BY_PEERS: parallel.PeerRanks(comm, messages),
        }
        self.ended: list[np.ndarray] = []  # by NCCL, with whole traces

    def __call__(self, what: str, *how: Any) -> tuple:
        """The answer; both ranks are asked the same."""
        if what == "messages":
            nbytes, way = how
            return *exchanged(self.comm, self.device, self.messages, nbytes, way), 0.0
        if what == "traces":
            return self.traces(*how), None, 0.0
        if what in ALONE:
            return self.alone(ALONE[what], *how)
        return self.several(what, *how)

    def seconds(self, function: Any) -> list[float]:
        """See `seconds_together`."""
        return seconds_together(self.comm, self.device, function)

    def traces(self, nbytes: int, way: str) -> list[float]:
        """Of an exchange from state to state, gathered and scattered, one number after another."""
        rank, n = self.comm.Get_rank(), nbytes // 4
        mine, theirs = (np.arange(1, n + 1, dtype=np.float32) * (1 + r) for r in (rank, 1 - rank))
        state = self.device.array(np.concatenate([mine, 0 * theirs]))
        ends, transport = flat_ends(rank, n), self.transports[way]
        halo = HALOS[way](ends, transport, self.device, np.dtype(np.float32))

        def several() -> None:
            for _ in range(TOGETHER):
                halo.exchange([state])

        seconds = self.seconds(self.device.capture(several))
        if not np.array_equal(self.device.to_numpy(state), np.concatenate([mine, theirs])):
            raise RuntimeError(f"{nbytes} bytes {way}: they are not those that were sent")
        return [s / TOGETHER for s in seconds]

    def alone(self, cubes: int, order: int, dtype: str, dofs: int, way: str) -> tuple:
        """Each rank alone has a mesh of so many cubes, of which a part has one."""
        mesh = bar(cubes, cells_for(dofs, order))
        piece = cut(mesh, np.zeros(mesh.K, np.int32), 0)
        solver = make(order, dtype, self.device)(piece)
        seconds = self.seconds(stepping(solver))
        return per_stage(seconds, solver).seconds, facts_of(solver), 0.0

    def several(self, traces: str, order: int, dtype: str, dofs: int, way: str) -> tuple:
        """A mesh in two parts."""
        many = parallel.Solver(
            make(order, dtype, self.device),
            bar(GPUS, cells_for(dofs, order)),
            comm=self.transports[way],
            traces=traces,
        )
        seconds = self.seconds(stepping(many))
        dt = many.cfl_dt()
        ended = many.run([random_state(one) for one in many.solvers], COMPARED * dt, dt)
        ended = [u[:, : piece.mesh.owned] for u, piece in zip(ended, many.pieces, strict=True)]
        if (traces, way) == WAYS[0]:
            self.ended = ended
        far = max(
            float(np.abs(u - other).max() / np.abs(other).max())
            for u, other in zip(ended, self.ended, strict=True)
        )
        far = max(self.comm.allgather(far))
        return per_stage(seconds, many).seconds, facts_of(many), far


def bar(cubes: int, cells: int) -> Mesh:
    """Unit cubes in a row, each in cells^3 cubes of six tetrahedra."""
    return box((cubes * cells, cells, cells), 0.0, (float(cubes), 1.0, 1.0))


def flat_ends(rank: int, n: int) -> Ends:
    """Of two ranks that exchange n numbers, from the first half of a state to the second."""
    other, number = 1 - rank, np.arange(n)
    places, shape = number.reshape(n, 1, 1), (n, 1, 1)
    sent, received = (Message(*way, number, number) for way in ((rank, other), (other, rank)))
    return [End(0, (sent,), places, None, shape)], [End(0, (received,), n + places, None, shape)]
