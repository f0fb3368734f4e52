"""The exchange before a stage: every ghost gets the traces that its element has by now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from dgbook.gpu import Device, Kernel
from dgbook.parallel.kernels import make_copy, make_product
from dgbook.parallel.pieces import Message, Piece, part_of
from dgbook.parallel.transport import Packet, Transport

THREADS = 256
"""Of a block of the kernels that move traces."""
Places = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""``places(elements, nodes)``: where in a flat state of a piece the values are of the `nodes`, (n,
m), of some `elements`, (n,): (fields, n, m) ints."""
Traces = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""``traces(elements, faces)``: see `NodalSolver.outgoing`, for what a state of a piece holds."""


class Transfer:
    """Values of faces from places in one flat array to places in another, on a device.

    On a GPU it is one launch, which allocates nothing and so can be recorded.

    Parameters
    ----------
    device : Device
    there : (faces, columns, nodes) ints
        Where the values come from.
    here : (faces, rows, nodes) ints
        Where they go.
    matrices : (faces, rows, columns) array, optional
        What they are multiplied with on the way; without it there are as many rows as columns.
    """

    def __init__(
        self,
        device: Device,
        there: np.ndarray,
        here: np.ndarray,
        matrices: np.ndarray | None = None,
    ) -> None:
        self.device, self.shape = device, (here.shape[1], *there.shape[1:])
        if not device.is_host:  # kernels take flat arrays and unsigned integers of 32 bits
            there, here = (places.astype(np.uint32).ravel() for places in (there, here))
            matrices = None if matrices is None else matrices.ravel()
        self.there, self.here = device.array(there), device.array(here)
        self.matrices = None if matrices is None else device.array(matrices)

    def __call__(self, source: Any, target: Any) -> None:
        """Move them; the arrays are of any shape and contiguous."""
        source, target = source.reshape(-1), target.reshape(-1)
        if self.device.is_host:
            values = source[self.there]
            target[self.here] = values if self.matrices is None else self.matrices @ values
            return
        arrays = source, self.there, target, self.here
        blocks = -(-self.here.size // THREADS)
        if self.matrices is None:
            copy_kernel()[blocks, THREADS](*arrays)
        else:
            product_kernel(*self.shape)[blocks, THREADS](self.matrices, *arrays)


@lru_cache(maxsize=1)
def copy_kernel() -> Kernel:
    """The kernel of `make_copy`, compiled once."""
    return make_copy()


@lru_cache
def product_kernel(rows: int, columns: int, nodes: int) -> Kernel:
    """The kernel of `make_product` for these sizes, compiled once."""
    return make_product(rows, columns, nodes)


@dataclass(frozen=True, eq=False)
class Side:
    """All messages between a piece and other parts, at this end and in one direction.

    Attributes
    ----------
    piece : int
        Which of this process's pieces.
    buffer : (faces, numbers, Nfp) array of the device
        What travels.
    packets : list of Packet
        Of each message the faces that it has in the buffer.
    transfer : Transfer
        From the piece's state to the buffer, or back.
    """

    piece: int
    buffer: Any
    packets: list[Packet]
    transfer: Transfer


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

        def entries(i: int, elements: np.ndarray, faces: np.ndarray) -> np.ndarray:
            """Where the traces of faces are in the states of a piece, (n, fields, Nfp)."""
            where = places[i](elements, face_nodes[faces])
            return np.ascontiguousarray(where.swapaxes(0, 1), np.int64)

        def side(i: int, messages: Sequence[Message], way: int) -> Side:
            """An end of messages to other parts, where they are sent (0) or received (1)."""
            elements = np.concatenate([message.elements for message in messages])
            faces = np.concatenate([message.faces for message in messages])
            state, matrices = entries(i, elements, faces), None
            shape = state.shape
            if traces is not None:
                matrices = traces[i](elements, faces)[way].astype(dtype)
                shape = shape[0], matrices.shape[1 + way], shape[2]
            packed = np.arange(np.prod(shape)).reshape(shape)
            ends = (state, packed) if way == 0 else (packed, state)
            buffer, packets, first = device.zeros(shape, dtype), [], 0
            for message in messages:
                last = first + len(message.faces)
                parts = part_of(message.source), part_of(message.target)
                packets.append(Packet(*parts, buffer[first:last]))
                first = last
            return Side(i, buffer, packets, Transfer(device, *ends, matrices))

        self.device = device
        self.within = []  # source, target, and how
        self.sends: list[Side] = []
        self.receives: list[Side] = []
        for i, piece in enumerate(pieces):
            for message in piece.receives:
                if part_of(message.source) == piece.part:
                    j = number[message.source]
                    (sent,) = (m for m in pieces[j].sends if m.target == piece.number)
                    ends = ((k, m.elements, m.faces) for k, m in ((j, sent), (i, message)))
                    self.within.append((j, i, Transfer(device, *(entries(*end) for end in ends))))
            out = [m for m in piece.sends if part_of(m.target) != piece.part]
            if out:  # then as much comes in
                self.sends.append(side(i, out, 0))
                inward = [m for m in piece.receives if part_of(m.source) != piece.part]
                self.receives.append(side(i, inward, 1))
        self.connection = transport.connect(
            [packet for end in self.sends for packet in end.packets],
            [packet for end in self.receives for packet in end.packets],
            device,
        )

    def start(self, states: Sequence[Any]) -> None:
        """Let go what other parts want to know; after it, pieces of interiors have their ghosts."""
        moves = [partial(end.transfer, states[end.piece], end.buffer) for end in self.sends]
        moves += [partial(transfer, states[j], states[i]) for j, i, transfer in self.within]
        if moves:
            self.device.concurrently(*moves)
        self.connection.start()

    def finish(self, states: Sequence[Any]) -> None:
        """Wait for the others; after it, all pieces have their ghosts."""
        self.connection.finish()
        for end in self.receives:
            end.transfer(end.buffer, states[end.piece])
