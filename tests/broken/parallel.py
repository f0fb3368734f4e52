"""Wrong exchanges between parts: each has one mistake that real codes have had."""

from dgbook.parallel.halo import Halo
from dgbook.parallel.transport import Connection, OneProcess


class StaleGhosts(Halo):
    """Sends what the states were before the last stage: packed once, in the wrong place."""

    def start(self, states):
        before = [packet.buffer.copy() for *_, packet in self.sends]
        super().start(states)
        for (_, _, packet), old in zip(self.sends, before, strict=True):
            packet.buffer[:] = old


class SwappedNeighbors(Halo):
    """Takes the first two faces that arrive in a message for one another."""

    def __init__(self, pieces, entries, face_nodes, *others):
        super().__init__(pieces, entries, face_nodes, *others)
        for i, here, packet in self.receives:
            faces = len(here) // face_nodes.shape[1] // self.fields(packet, face_nodes, pieces[i])
            rows = here.reshape(-1, faces, face_nodes.shape[1])
            if faces > 1:
                rows[:, [0, 1]] = rows[:, [1, 0]]

    @staticmethod
    def fields(packet, face_nodes, piece):
        """How many fields a packet has."""
        sources = [m for m in piece.receives if m.source // 2 == packet.source]
        return packet.buffer.size // sum(len(m.faces) for m in sources) // face_nodes.shape[1]


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
