"""The exchange before a stage: every ghost gets the traces that its element has by now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dgbook.gpu import Device, Kernel
from dgbook.parallel.kernels import make_copy, make_product
from dgbook.parallel.pieces import Message, Piece
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
class End:
    """All messages between a piece and other parts, at this end and in one direction.

    Attributes
    ----------
    piece : int
        Which of this process's pieces.
    messages : tuple of Message
    places : (faces, fields, Nfp) ints
        Where the traces of all messages' faces are in a flat state of the piece.
    matrices : (faces, rows, columns) array or None
        From traces to what travels, or back; None if traces travel.
    shape : tuple of int
        Of what travels, (faces, numbers, Nfp).
    """

    piece: int
    messages: Sequence[Message]
    places: np.ndarray
    matrices: np.ndarray | None
    shape: tuple[int, int, int]


Ends = tuple[list[End], list[End]]
"""Where this process's pieces send, and where they receive."""


def ends(
    pieces: Sequence[Piece],
    places: Sequence[Places],
    traces: Sequence[Traces] | None,
    face_nodes: np.ndarray,
    dtype: np.dtype,
) -> Ends:
    """The ends of all messages of this process.

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
    dtype : numpy.dtype

    Raises
    ------
    ValueError
        As `Traces` and `Places`.
    """

    def end(i: int, messages: Sequence[Message], way: int) -> End:
        """An end of messages, where they are sent (0) or received (1)."""
        elements = np.concatenate([message.elements for message in messages])
        faces = np.concatenate([message.faces for message in messages])
        where = places[i](elements, face_nodes[faces])
        where, matrices = np.ascontiguousarray(where.swapaxes(0, 1), np.int64), None
        shape = where.shape
        if traces is not None:
            matrices = traces[i](elements, faces)[way].astype(dtype)
            shape = shape[0], matrices.shape[1 + way], shape[2]
        return End(i, messages, where, matrices, shape)

    some = [(i, piece) for i, piece in enumerate(pieces) if piece.sends]  # or none come in
    return (
        [end(i, piece.sends, 0) for i, piece in some],
        [end(i, piece.receives, 1) for i, piece in some],
    )


@dataclass(frozen=True, eq=False)
class Side:
    """An end on a device.

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
    """Moves traces between parts, by a transport.

    Parameters
    ----------
    ends : Ends
    transport : Transport
    device : Device
    dtype : numpy.dtype
    """

    def __init__(self, ends: Ends, transport: Transport, device: Device, dtype: np.dtype) -> None:
        def side(end: End, way: int) -> Side:
            """An end where messages are sent (0) or received (1)."""
            packed = np.arange(np.prod(end.shape)).reshape(end.shape)
            places = (end.places, packed) if way == 0 else (packed, end.places)
            buffer, packets, first = device.zeros(end.shape, dtype), [], 0
            for message in end.messages:
                last = first + len(message.faces)
                packets.append(Packet(message.source, message.target, buffer[first:last]))
                first = last
            return Side(end.piece, buffer, packets, Transfer(device, *places, end.matrices))

        self.sends, self.receives = ([side(end, way) for end in ends[way]] for way in (0, 1))
        self.connection = transport.connect(
            [packet for end in self.sends for packet in end.packets],
            [packet for end in self.receives for packet in end.packets],
            device,
        )

    def exchange(self, states: Sequence[Any]) -> None:
        """After it, all ghosts have what their elements have before it.

        On a GPU it is enqueued in the current stream.
        """
        self.pack(states)
        self.connection.start()
        self.connection.finish()
        self.unpack(states)

    def pack(self, states: Sequence[Any]) -> None:
        """Gather what other parts want to know."""
        for end in self.sends:
            end.transfer(states[end.piece], end.buffer)

    def unpack(self, states: Sequence[Any]) -> None:
        """Scatter what they have sent to the ghosts."""
        for end in self.receives:
            end.transfer(end.buffer, states[end.piece])
