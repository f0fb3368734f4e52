"""Wrong exchanges between parts: each has one mistake that real codes have had."""

from dgbook.parallel.halo import Halo
from dgbook.parallel.transport import Connection, OneProcess


class StaleGhosts(Halo):
    """Sends what the states were before the last stage: packed once, in the wrong place."""

    def start(self, states):
        before = [end.packet.buffer.copy() for end in self.sends]
        super().start(states)
        for end, old in zip(self.sends, before, strict=True):
            end.packet.buffer[:] = old


class SwappedNeighbors(Halo):
    """Takes the first two faces that arrive in a message for one another."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        for end in self.receives:
            end.entries[:, [0, 1]] = end.entries[:, [1, 0]]


class InnerBorderForgotten(Halo):
    """Exchanges between parts only, and not between the edge of a part and its interior."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.within = []


class MissingWait(OneProcess):
    """Goes on without waiting: what has not arrived is what arrived before."""

    def connect(self, sends, receives):
        return _Unfinished(super().connect(sends, receives))


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
