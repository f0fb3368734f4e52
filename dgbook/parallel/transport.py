"""How traces get from part to part: in one process, between ranks of MPI, or between GPUs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dgbook.arguments import check_integer
from dgbook.gpu import Device, nccl

MPI_MISSING = (
    "several ranks need mpi4py and an MPI, which are not installed: pip install mpi4py mpich, and "
    "start with the mpiexec that comes with them"
)


@dataclass(frozen=True, eq=False)
class Packet:
    """A message's numbers on their way.

    Attributes
    ----------
    source, target : int
        Parts.
    buffer : array of the device
        Contiguous. Of what is sent it holds the numbers from `Connection.start` on; of what is
        received, after `Connection.finish`.
    """

    source: int
    target: int
    buffer: Any


class Connection(ABC):
    """Packets that travel together, again and again between the same buffers."""

    @abstractmethod
    def start(self) -> None:
        """Send what is in the buffers; they must stay as they are until `finish`."""

    @abstractmethod
    def finish(self) -> None:
        """Wait until all is received and sent."""


class Transport(ABC):
    """What connects the parts of a mesh.

    Attributes
    ----------
    parts : int
        How many there are.
    mine : range
        The numbers of those that this process has.
    """

    parts: int
    mine: range

    @abstractmethod
    def connect(
        self, sends: Sequence[Packet], receives: Sequence[Packet], device: Device
    ) -> Connection:
        """A connection for packets of this process's parts; their buffers are arrays of the device.

        Where a part sends another several, they are received in the order in which they are sent.
        """

    @abstractmethod
    def everyone(self, value: Any) -> list[Any]:
        """What every process gave, by rank; all processes have to call it."""

    @abstractmethod
    def collected(self, value: Any) -> list[Any] | None:
        """What every process gave, by rank, on the first of them; None on the others."""

    def total(self, value: Any) -> Any:
        """The sum of what every process gave, added by rank, so that all have the same bits."""
        first, *others = self.everyone(value)
        for other in others:
            first = first + other
        return first

    def add_up(self, array: Any, device: Device) -> None:
        """Make an array of the device the sum of what every process has in it, on all of them.

        All processes call it, with as many numbers. On a GPU it is only enqueued.
        """
        array[:] = self.total(array.copy())

    @property
    def leads(self) -> bool:
        """Whether this process is the one that speaks and writes for all."""
        return 0 in self.mine


class OneProcess(Transport):
    """All parts in this process, on one device: a packet is a copy.

    Parameters
    ----------
    parts : int
    """

    def __init__(self, parts: int) -> None:
        check_integer("parts", parts, 1)
        self.parts, self.mine = parts, range(parts)

    def connect(
        self, sends: Sequence[Packet], receives: Sequence[Packet], device: Device
    ) -> Connection:
        """As `Transport.connect`."""
        return _Copies(sends, receives)

    def add_up(self, array: Any, device: Device) -> None:
        """As `Transport.add_up`: there is nobody else."""

    def everyone(self, value: Any) -> list[Any]:
        """As `Transport.everyone`."""
        return [value]

    def collected(self, value: Any) -> list[Any]:
        """As `Transport.collected`."""
        return [value]


class _Copies(Connection):
    """What is sent is there when somebody waits for it, as if it took until then to travel."""

    def __init__(self, sends: Sequence[Packet], receives: Sequence[Packet]) -> None:
        sent = defaultdict(deque)
        for packet in sends:
            sent[packet.source, packet.target].append(packet.buffer)
        self.pairs = [
            (packet.buffer, sent[packet.source, packet.target].popleft()) for packet in receives
        ]

    def start(self) -> None:
        """As `Connection.start`."""

    def finish(self) -> None:
        """As `Connection.finish`."""
        for received, sent in self.pairs:
            received[:] = sent


class MpiRanks(Transport):
    """One part for each rank of an MPI communicator, with NumPy arrays.

    The requests are persistent and nonblocking: made once, started and waited for in every stage.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        It is duplicated, so that nobody else's messages are taken for these.
    """

    def __init__(self, comm: Any) -> None:
        self.comm = comm.Dup()
        self.parts = self.comm.Get_size()
        rank = self.comm.Get_rank()
        self.mine = range(rank, rank + 1)

    def connect(
        self, sends: Sequence[Packet], receives: Sequence[Packet], device: Device
    ) -> Connection:
        """As `Transport.connect`."""
        return _Requests(
            [self.comm.Recv_init(packet.buffer, source=packet.source) for packet in receives]
            + [self.comm.Send_init(packet.buffer, dest=packet.target) for packet in sends]
        )

    def everyone(self, value: Any) -> list[Any]:
        """As `Transport.everyone`."""
        return self.comm.allgather(value)

    def collected(self, value: Any) -> list[Any] | None:
        """As `Transport.collected`."""
        return self.comm.gather(value)


class _Requests(Connection):
    """Persistent requests, receives first, so that what arrives finds its place."""

    def __init__(self, requests: list[Any]) -> None:
        self.requests = requests

    def start(self) -> None:
        """As `Connection.start`."""
        for request in self.requests:
            request.Start()

    def finish(self) -> None:
        """As `Connection.finish`."""
        for request in self.requests:
            request.Wait()


class NcclRanks(MpiRanks):
    """One part for each rank of MPI, each with a GPU of its own: traces travel by NCCL.

    What is on the host, such as states that are gathered and sums, still goes by MPI.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
    messages : nccl.Messages, optional
        If not given they are made by all ranks.

    Raises
    ------
    RuntimeError
        As `nccl.connected`.
    """

    def __init__(self, comm: Any, messages: nccl.Messages | None = None) -> None:
        super().__init__(comm)
        self.messages = nccl.connected(self.comm) if messages is None else messages

    def connect(
        self, sends: Sequence[Packet], receives: Sequence[Packet], device: Device
    ) -> Connection:
        """As `Transport.connect`."""
        if device.is_host:
            return super().connect(sends, receives, device)
        return NcclGroup(self.messages, sends, receives, device)

    def add_up(self, array: Any, device: Device) -> None:
        """As `Transport.add_up`."""
        if device.is_host:
            super().add_up(array, device)
        else:
            self.messages.add_up(array, device.stream)


class NcclGroup(Connection):
    """All messages as one group in the current stream, where what follows comes after them.

    That can be recorded; ranks that record must do it together.
    """

    def __init__(
        self,
        messages: nccl.Messages,
        sends: Sequence[Packet],
        receives: Sequence[Packet],
        device: Device,
    ) -> None:
        self.device = device
        self.exchange = partial(
            messages.exchange,
            [(packet.buffer, packet.target) for packet in sends],
            [(packet.buffer, packet.source) for packet in receives],
        )

    def start(self) -> None:
        """As `Connection.start`."""
        self.exchange(self.device.stream)

    def finish(self) -> None:
        """As `Connection.finish`: nothing, for others wait for the stream."""
