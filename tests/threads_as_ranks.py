"""Ranks that are threads: a communicator as of MPI, and CuPy's module of NCCL, for NumPy arrays."""

import ctypes
import queue
import threading
from collections import defaultdict

import numpy as np

PATIENCE = 5.0
"""Seconds after which a rank that waits for another is told that it waits in vain."""
BYTES = {7: 4, 8: 8}


class World:
    """What the ranks share."""

    def __init__(self, size):
        self.size = size
        self.barrier = threading.Barrier(size, timeout=PATIENCE)
        self.said = [None] * size
        self.mail = defaultdict(queue.Queue)  # by source, target

    def run(self, program):
        """``program(rank)`` on all ranks: what each returned. The first error of one is raised."""
        found, errors = [None] * self.size, []

        def one(rank):
            try:
                found[rank] = program(rank)
            except Exception as error:
                errors.append(error)
                self.barrier.abort()

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return found


class Comm:
    """mpi4py's communicator, as far as it is needed."""

    def __init__(self, world, rank):
        self.world, self.rank = world, rank

    def Dup(self):
        return self

    def Get_size(self):
        return self.world.size

    def Get_rank(self):
        return self.rank

    def Barrier(self):
        self.world.barrier.wait()

    def allgather(self, value):
        self.world.said[self.rank] = value
        self.world.barrier.wait()
        said = list(self.world.said)
        self.world.barrier.wait()
        return said

    def bcast(self, value):
        return self.allgather(value)[0]

    def gather(self, value):
        said = self.allgather(value)
        return None if self.rank else said


class Nccl:
    """CuPy's module, and its communicator. A group ends when all of its messages have arrived.

    Attributes
    ----------
    log : list
        The calls of this rank, of messages what, the rank, how many numbers, and the stream.
    """

    NCCL_FLOAT32, NCCL_FLOAT64, NCCL_SUM = 7, 8, 0
    available = True

    def __init__(self, world, rank):
        self.world, self.rank, self.log, self.group = world, rank, [], None

    def get_unique_id(self):
        return "the first rank's" if self.rank == 0 else "another"

    def NcclCommunicator(self, ranks, unique, rank):
        assert (ranks, unique, rank) == (self.world.size, "the first rank's", self.rank)
        return self

    def groupStart(self):
        assert self.group is None
        self.log.append("start")
        self.group = []

    def groupEnd(self):
        """Messages of a group progress together: all are sent before any is waited for."""
        calls, self.group = self.group, None
        self.log.append("end")
        arrived = [self._send(*how) for what, *how in calls if what == "send"]
        for what, *how in calls:
            if what == "recv":
                self._recv(*how)
        if not all(event.wait(PATIENCE) for event in arrived):
            raise RuntimeError(f"rank {self.rank} sent what nobody took in {PATIENCE:g} s")

    def send(self, *how):
        self._call("send", *how)

    def recv(self, *how):
        self._call("recv", *how)

    def allReduce(self, sent, received, count, kind, operation, stream):
        """In one order of the ranks on all."""
        self.log.append(("sum", operation, count, stream))
        dtype = {4: np.float32, 8: np.float64}[BYTES[kind]]
        mine = np.frombuffer(ctypes.string_at(sent, count * BYTES[kind]), dtype)
        self.world.said[self.rank] = mine
        self.world.barrier.wait()
        total = sum(self.world.said)
        self.world.barrier.wait()
        ctypes.memmove(received, total.ctypes.data, total.nbytes)

    def _call(self, what, address, count, kind, rank, stream):
        self.log.append((what, rank, count, stream))
        if self.group is None:
            raise RuntimeError(f"{what} outside of a group: ranks wait for one another")
        self.group.append((what, address, count, kind, rank))

    def _send(self, address, count, kind, rank):
        content, arrived = ctypes.string_at(address, count * BYTES[kind]), threading.Event()
        self.world.mail[self.rank, rank].put((count, kind, content, arrived))
        return arrived

    def _recv(self, address, count, kind, rank):
        sent, sent_kind, content, arrived = self.world.mail[rank, self.rank].get(timeout=PATIENCE)
        arrived.set()
        if (sent, sent_kind) != (count, kind):
            raise RuntimeError(f"rank {rank} sent {sent} numbers, rank {self.rank} wants {count}")
        ctypes.memmove(address, content, len(content))
