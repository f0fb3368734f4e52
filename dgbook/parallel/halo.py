"""The exchange before a stage: every ghost gets the traces that its element has by now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgbook.gpu import Device
from dgbook.parallel.pieces import Message, Piece, part_of
from dgbook.parallel.transport import Packet, Transport

Places = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""``places(elements, nodes)``: where in a flat state of a piece the values are of the `nodes`, (n,
m), of some `elements`, (n,): (fields, n, m) ints."""
Traces = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""``traces(elements, faces)``: see `NodalSolver.outgoing`, for what a state of a piece holds."""


@dataclass(frozen=True, eq=False)
class Side:
    """A message between parts, at one of its ends.

    Attributes
    ----------
    piece : int
        Which of this process's pieces.
    entries : (fields, faces, Nfp) ints of the device
        Where in its flat states.
    matrices : (faces, r, fields) or (faces, fields, r) array of the device, or None
        Between fields and what is sent, if that is not all.
    packet : Packet
    """

    piece: int
    entries: Any
    matrices: Any
    packet: Packet


class Halo:
    """Moves traces between pieces: inside of a part by copies, between parts by a transport.

    Parameters
    ----------
    pieces : sequence of Piece
        Those that this process has.
    places : sequence of Places
        Of each piece.
    traces : sequence of Traces, or None
        Of each piece, where parts send what the flux needs; whole traces if None.
    face_nodes : (faces, Nfp) ints
        Nodes on the faces of the reference element.
    transport : Transport
    device : Device
    dtype : numpy.dtype

    Raises
    ------
    ValueError
        As `Traces` and `Places`.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        places: Sequence[Places],
        traces: Sequence[Traces] | None,
        face_nodes: np.ndarray,
        transport: Transport,
        device: Device,
        dtype: np.dtype,
    ) -> None:
        number = {piece.number: i for i, piece in enumerate(pieces)}

        def entries(i: int, message: Message) -> Any:
            """Of a message in the states of a piece, on the device."""
            where = places[i](message.elements, face_nodes[message.faces])
            return device.array(np.ascontiguousarray(where, np.int64))

        def side(i: int, message: Message, way: int) -> Side:
            """An end of a message between parts, where it is sent (0) or received (1)."""
            here, matrices, fields = entries(i, message), None, 0
            if traces is not None:
                matrices = device.array(
                    traces[i](message.elements, message.faces)[way].astype(dtype)
                )
                fields = matrices.shape[1 + way]
            shape = fields or here.shape[0], *here.shape[1:]
            parts = part_of(message.source), part_of(message.target)
            packet = Packet(*parts, device.zeros(shape, dtype))
            return Side(i, here, matrices, packet)

        self.within = []  # source, its entries, target, its entries
        self.sends: list[Side] = []
        self.receives: list[Side] = []
        for i, piece in enumerate(pieces):
            for message in piece.receives:
                if part_of(message.source) == piece.part:
                    j = number[message.source]
                    (there,) = (m for m in pieces[j].sends if m.target == piece.number)
                    self.within.append((j, entries(j, there), i, entries(i, message)))
                else:
                    self.receives.append(side(i, message, 1))
            for message in piece.sends:
                if part_of(message.target) != piece.part:
                    self.sends.append(side(i, message, 0))
        self.connection = transport.connect(
            [end.packet for end in self.sends], [end.packet for end in self.receives]
        )

    def start(self, states: Sequence[Any]) -> None:
        """Let go what other parts want to know; after it, pieces of interiors have their ghosts."""
        for end in self.sends:
            trace = states[end.piece].reshape(-1)[end.entries]
            end.packet.buffer[:] = _times(end.matrices, trace)
        self.connection.start()
        for j, there, i, here in self.within:
            states[i].reshape(-1)[here] = states[j].reshape(-1)[there]

    def finish(self, states: Sequence[Any]) -> None:
        """Wait for the others; after it, all pieces have their ghosts."""
        self.connection.finish()
        for end in self.receives:
            states[end.piece].reshape(-1)[end.entries] = _times(end.matrices, end.packet.buffer)


def _times(matrices: Any, values: Any) -> Any:
    """A matrix for each face times the values (n, faces, Nfp) at its nodes; None is one."""
    if matrices is None:
        return values
    return (matrices @ values.swapaxes(0, 1)).swapaxes(0, 1)
