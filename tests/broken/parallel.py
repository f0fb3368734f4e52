"""Wrong exchanges between parts: each has one mistake that real codes have had."""

from dgbook.gpu.nccl import Messages
from dgbook.parallel.halo import Halo
from dgbook.parallel.transport import Connection, OneProcess


class StaleGhosts(Halo):
    """Sends what the states were before the last stage: packed once, in the wrong place."""

    def pack(self, states):
        before = [end.buffer.copy() for end in self.sends]
        super().pack(states)
        for end, old in zip(self.sends, before, strict=True):
            end.buffer[:] = old


class SwappedNeighbors(Halo):
    """Takes the first two faces that arrive in a message for one another."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        for end in self.receives:
            end.transfer.here[[0, 1]] = end.transfer.here[[1, 0]]


class GhostsForgotten(Halo):
    """Unpacks into an array that no stage reads: a pointer that was not swapped with the others."""

    def unpack(self, states):
        self.first = getattr(self, "first", [state.copy() for state in states])
        super().unpack(self.first)


class EveryOtherStage(Halo):
    """Exchanges traces of one of the two arrays that stages of a factored method read in turn."""

    def exchange(self, states):
        self.count = getattr(self, "count", 0) + 1
        if self.count % 2:
            super().exchange(states)


class MissingWait(OneProcess):
    """Goes on without waiting: what has not arrived is what arrived before."""

    def connect(self, sends, receives, device):
        return _Unfinished(super().connect(sends, receives, device))


class _Unfinished(Connection):
    def __init__(self, connection):
        self.connection, self.travelling = connection, False

    def start(self):
        if self.travelling:
            self.connection.finish()
        self.connection.start()
        self.travelling = True

    def finish(self):
        pass


class Ungrouped(Messages):
    """Sends and receives one by one: each rank waits in its first message for all others."""

    def exchange(self, sends, receives, stream):
        for message in sends:
            super().exchange([message], [], stream)
        for message in receives:
            super().exchange([], [message], stream)


class SwappedPeers(Messages):
    """Takes what comes from one neighbor for what comes from another."""

    def exchange(self, sends, receives, stream):
        ranks = [rank for _, rank in reversed(receives)]
        arrays = [array for array, _ in receives]
        super().exchange(sends, list(zip(arrays, ranks, strict=True)), stream)


class FirstTwice(Messages):
    """Sends to all neighbors from where the first message begins: an offset is forgotten."""

    def exchange(self, sends, receives, stream):
        whole = sends[0][0].base.reshape(-1)
        moved = [(whole[: array.size], rank) for array, rank in sends]
        super().exchange(moved, receives, stream)
