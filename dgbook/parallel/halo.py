"""The exchange before a stage: every ghost gets the traces that its element has by now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dgbook.gpu import Device
from dgbook.parallel.pieces import Message, Piece, part_of
from dgbook.parallel.transport import Packet, Transport


class Halo:
    """Moves traces between pieces: inside of a part by copies, between parts by a transport.

    Parameters
    ----------
    pieces : sequence of Piece
        Those that this process has.
    entries : sequence of function
        For each piece ``entries(elements, nodes)``: where in a flat state of that piece the values
        are of the `nodes`, (n, m), of some `elements`, (n,); ints of any shape, the same for all
        pieces.
    face_nodes : (faces, Nfp) ints
        Nodes on the faces of the reference element.
    transport : Transport
    device : Device
    dtype : numpy.dtype
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        entries: Sequence[Any],
        face_nodes: np.ndarray,
        transport: Transport,
        device: Device,
        dtype: np.dtype,
    ) -> None:
        place = {piece.number: i for i, piece in enumerate(pieces)}

        def where(i: int, message: Message) -> Any:
            """Flat entries of a message in the states of a piece, on the device."""
            flat = entries[i](message.elements, face_nodes[message.faces])
            return device.array(np.ascontiguousarray(flat).ravel().astype(np.int64))

        self.within = []  # source, its entries, target, its entries
        self.sends, self.receives = [], []  # piece, its entries, packet
        for i, piece in enumerate(pieces):
            for message in piece.receives:
                here = where(i, message)
                if part_of(message.source) == piece.part:
                    j = place[message.source]
                    (there,) = (m for m in pieces[j].sends if m.target == piece.number)
                    self.within.append((j, where(j, there), i, here))
                else:
                    buffer = device.zeros(here.size, dtype)
                    packet = Packet(part_of(message.source), piece.part, buffer)
                    self.receives.append((i, here, packet))
            for message in piece.sends:
                if part_of(message.target) != piece.part:
                    here = where(i, message)
                    buffer = device.zeros(here.size, dtype)
                    packet = Packet(piece.part, part_of(message.target), buffer)
                    self.sends.append((i, here, packet))
        self.connection = transport.connect(
            [packet for *_, packet in self.sends], [packet for *_, packet in self.receives]
        )

    def start(self, states: Sequence[Any]) -> None:
        """Let go what other parts want to know; after it, pieces of interiors have their ghosts."""
        for i, here, packet in self.sends:
            packet.buffer[:] = states[i].reshape(-1)[here]
        self.connection.start()
        for j, there, i, here in self.within:
            states[i].reshape(-1)[here] = states[j].reshape(-1)[there]

    def finish(self, states: Sequence[Any]) -> None:
        """Wait for the others; after it, all pieces have their ghosts."""
        self.connection.finish()
        for i, here, packet in self.receives:
            states[i].reshape(-1)[here] = packet.buffer
