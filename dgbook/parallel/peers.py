"""Traces written straight into the memory of the GPUs that need them, instead of messages."""

from __future__ import annotations

import socket
import weakref
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.gpu import Device, nccl, peers
from dgbook.gpu.source import CudaKernel, load
from dgbook.parallel.halo import THREADS, End, Ends
from dgbook.parallel.transport import NcclRanks

SOURCE = Path(__file__).with_name("peers.cu")
BUFFERS = 2
"""That a part receives into by turns; peers.cu says why two suffice."""
MOST_BLOCKS = 1024
"""Of a message: each waits once until what it wrote has arrived."""
WARP = 32
APART = 256
"""Bytes of which the places in a window are multiples."""


class Window:
    """Memory of this process's GPU that others write into, and where theirs is: flags, buffers.

    All ranks make one together.

    Parameters
    ----------
    transport : PeerRanks
    nbytes : int
        That fit into a buffer, at least.

    Attributes
    ----------
    capacity : int
        Bytes of a buffer, of which there are `BUFFERS`.
    flags : (ranks,) uint32 array of the device
        How often each rank has sent to this one.
    buffers : uint8 array of the device
        One behind the other.
    user : function
        The halo that has this window, or None when it is gone: a weak reference.
    """

    def __init__(self, transport: PeerRanks, nbytes: int) -> None:
        self.capacity = round_up(nbytes)
        self.first = round_up(4 * transport.parts)
        memory = peers.allocate(self.first + BUFFERS * self.capacity)
        self.flags = memory[: 4 * transport.parts].view(np.uint32)
        self.buffers = memory[self.first :]
        (here,) = transport.mine
        # A process does not open what is its own.
        self.bases = [
            nccl.address(memory) if rank == here else peers.opened(handle)
            for rank, handle in enumerate(transport.everyone(peers.handle(memory)))
        ]
        self.user: Any = lambda: None

    def places(
        self, rank: int, source: int, capacity: int, starts: Mapping[int, int]
    ) -> tuple[list[int], int]:
        """Addresses in another rank's window: of a source's numbers in each buffer, of its flag.

        Parameters
        ----------
        rank, source : int
        capacity : int
            Of that rank's buffers.
        starts : mapping of int to int
            By source how many bytes of a buffer come before its numbers.
        """
        base = self.bases[rank]
        first = base + self.first + starts[source]
        return [first + capacity * n for n in range(BUFFERS)], base + 4 * source


def round_up(nbytes: int) -> int:
    """So many bytes or a few more, so that what follows begins where any number may."""
    return -(-nbytes // APART) * APART


class PeerRanks(NcclRanks):
    """As `NcclRanks`, but GPUs write traces into the memory of those that need them.

    All are in one machine and reach one another's memory. What is no trace still goes by NCCL.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
    messages : nccl.Messages, optional
        If not given they are made by all ranks.

    Raises
    ------
    RuntimeError
        As `nccl.connected`, and where ranks are on several machines.
    """

    def __init__(self, comm: Any, messages: nccl.Messages | None = None) -> None:
        super().__init__(comm, messages)
        peers.check_one_machine(self.everyone(socket.gethostname()))
        self.windows: list[Window] = []

    def window(self, user: PeerHalo, nbytes: int, device: Device) -> Window:
        """A window whose buffers hold so many bytes, with flags that are zero; all ranks call it.

        Memory that others have opened is not freed. It is used again, when on all ranks nobody else
        has it any more. Before others write into it they have to know that its flags are zero.
        """
        device.synchronize()  # a halo that is gone may have left stores under way
        free = [
            number
            for number, window in enumerate(self.windows)
            if window.user() is None and window.capacity >= nbytes
        ]
        if common := set(free).intersection(*self.everyone(free)):
            window = self.windows[min(common)]
        else:
            window = Window(self, nbytes)
            self.windows.append(window)
        window.user = weakref.ref(user)
        window.flags[:] = 0
        device.synchronize()
        return window


class PeerHalo:
    """Moves traces between parts as `Halo` does, by stores into the memory of other GPUs.

    All ranks make one together, and exchange equally often.

    Parameters
    ----------
    ends : Ends
        A process has one piece, which receives from those that it sends to.
    transport : PeerRanks
    device : Device
    dtype : numpy.dtype
    """

    def __init__(self, ends: Ends, transport: PeerRanks, device: Device, dtype: Any) -> None:
        dtype, (here,) = np.dtype(dtype), transport.mine
        sizes = [size for end in ends[1] for size in message_sizes(end)]
        sources = [message.source for end in ends[1] for message in end.messages]
        starts = [0, *accumulate(dtype.itemsize * size for size in sizes)]  # in a buffer here
        self.window = window = transport.window(self, starts[-1], device)
        # When all have told where others write, all flags are zero.
        told = transport.everyone((window.capacity, dict(zip(sources, starts[:-1], strict=True))))
        self.alone = not sources
        if self.alone:
            return

        def array(values: Any, kind: Any = np.uint32) -> Any:
            return device.array(np.asarray(values, kind).ravel())

        def matrices(end: End) -> Any:
            return array([] if end.matrices is None else end.matrices, dtype)

        ((sent,), (received,)), rounds = ends, device.zeros(1, np.uint32)
        sizes = message_sizes(sent)
        blocks = min(-(-max(sizes) // THREADS), MOST_BLOCKS)
        to = [
            window.places(message.target, here, *told[message.target]) for message in sent.messages
        ]
        self._store = kernel("store", dtype.name, *matrix_sizes(sent))[blocks * len(sizes), THREADS]
        self._stored = (
            array(sent.places),
            matrices(sent),
            array([0, *accumulate(sizes)]),
            array([buffers for buffers, _ in to], np.uint64),
            array([flag for _, flag in to], np.uint64),
            rounds,
            device.zeros(len(sizes), np.uint32),
            np.uint32(blocks),
        )
        self._await = kernel("await_peers", dtype.name, 0, 0, 0)[1, WARP]
        self._awaited = window.flags, array(sources), np.uint32(len(sources)), rounds
        count = received.places.size
        self._fetch = kernel("fetch", dtype.name, *matrix_sizes(received))[
            -(-count // THREADS), THREADS
        ]
        self._from = (
            window.buffers.view(dtype),
            np.uint32(window.capacity // dtype.itemsize),
            matrices(received),
        )
        self._to = array(received.places), np.uint32(count), rounds

    def exchange(self, states: Sequence[Any]) -> None:
        """As `Halo.exchange`."""
        if self.alone:
            return
        state = states[0].reshape(-1)
        self._store(state, *self._stored)
        self._await(*self._awaited)
        self._fetch(*self._from, state, *self._to)


def message_sizes(end: End) -> list[int]:
    """How many numbers each message of an end has."""
    _, numbers, nodes = end.shape
    return [len(message.faces) * numbers * nodes for message in end.messages]


def matrix_sizes(end: End) -> tuple[int, int, int]:
    """Rows, columns and nodes of what traces are multiplied with; zeros where they are not."""
    return (0, 0, 0) if end.matrices is None else (*end.matrices.shape[1:], end.shape[2])


@lru_cache
def kernel(name: str, dtype: str, rows: int, columns: int, nodes: int) -> CudaKernel:
    """A kernel of peers.cu, compiled once."""
    sizes = {"ROWS": rows, "COLUMNS": columns, "NODES": nodes}
    return load(SOURCE, name, {"REAL": np.dtype(dtype), "BUFFERS": BUFFERS, **sizes})
