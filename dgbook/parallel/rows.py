"""The rows of a matrix in parts: who has which, and the exchange of unknowns before a product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgbook.arguments import check_integer
from dgbook.gpu import Device
from dgbook.mesh.partition import rows_by_metis
from dgbook.parallel.halo import Transfer
from dgbook.parallel.transport import Packet, Transport


@dataclass(frozen=True, eq=False)
class PartOfRows:
    """A part's own rows, and behind them those of others whose unknowns they need.

    Attributes
    ----------
    own, ghosts : (n,), (g,) ints
        Numbers in the whole matrix, ascending; of the ghosts first by their parts.
    columns : (n + g, nb) int32
        Of these rows in the part's own numbers; a ghost has only itself.
    """

    own: np.ndarray
    ghosts: np.ndarray
    columns: np.ndarray


class RowsInParts:
    """Rows cut by METIS, so that few unknowns are needed by two parts.

    Parameters
    ----------
    columns : (rows, nb) int32
        Of each row of blocks of the whole matrix, itself first; on all processes.
    transport : Transport

    Attributes
    ----------
    transport : Transport
    parts : list of PartOfRows
        Those of this process.
    mine : ints
        Their own rows, one part after the other: those of the vectors of this process.

    Raises
    ------
    TypeError, ValueError
        If there are more parts than rows, or METIS leaves one empty.
    RuntimeError
        If pymetis is not installed.
    """

    def __init__(self, columns: np.ndarray, transport: Transport) -> None:
        count = transport.parts
        check_integer("parts", count, 1, len(columns))
        self.transport = transport
        self.owner = np.zeros(len(columns), np.int32)
        if count > 1:
            self.owner = rows_by_metis(columns, count)
        if empty := count - len(np.unique(self.owner)):
            raise ValueError(
                f"parts = {count}: METIS leaves {empty} of them without any of the {len(columns)} "
                "rows; allowed: fewer parts"
            )
        self.columns = columns
        self.parts = [self._part(number) for number in transport.mine]
        self.mine = np.concatenate([part.own for part in self.parts])

    def _ghosts(self, number: int) -> np.ndarray:
        """The rows of others whose unknowns a part needs, by their parts."""
        needed = np.unique(self.columns[self.owner == number])
        needed = needed[self.owner[needed] != number]
        return needed[np.argsort(self.owner[needed], kind="stable")]

    def _part(self, number: int) -> PartOfRows:
        own, ghosts = np.flatnonzero(self.owner == number), self._ghosts(number)
        here = np.full(len(self.columns), -1, np.int32)
        rows = np.concatenate([own, ghosts])
        here[rows] = np.arange(len(rows))
        columns = np.repeat(here[rows][:, None], self.columns.shape[1], axis=1)
        columns[: len(own)] = here[self.columns[own]]
        return PartOfRows(own, ghosts, columns)

    def exchange(self, m: int, dtype: Any, device: Device) -> Exchange:
        """What exchanges vectors of m unknowns per row, flat arrays of the device."""
        return Exchange(self, m, dtype, device)

    def whole(self, x: np.ndarray) -> np.ndarray:
        """A vector of all rows, (rows, m), from what processes have, on all of them."""
        x = x.reshape(len(self.mine), -1)
        result = np.empty((len(self.columns), x.shape[1]), x.dtype)
        for rows, values in self.transport.everyone((self.mine, x)):
            result[rows] = values
        return result


class Exchange:
    """``exchange(x)`` puts the unknowns of this process's rows, and of their ghosts, in `unknowns`.

    Attributes
    ----------
    unknowns : list of (n + g, m) arrays of the device
        Of each part.
    """

    def __init__(self, cut: RowsInParts, m: int, dtype: Any, device: Device) -> None:
        self.parts = cut.parts
        shape = [(len(part.columns), m) for part in cut.parts]
        self.unknowns: Sequence[Any] = [device.zeros(one, dtype) for one in shape]
        self.sends, receives = [], []  # sends: which part, how they get into a packet, and it
        for i, (number, part) in enumerate(zip(cut.transport.mine, cut.parts, strict=True)):
            owners = cut.owner[part.ghosts]
            for other in np.unique(owners):
                first, last = len(part.own) + np.searchsorted(owners, [other, other + 1])
                receives.append(Packet(int(other), number, self.unknowns[i][first:last]))
            for other in range(cut.transport.parts):
                asked = cut._ghosts(other)
                asked = asked[cut.owner[asked] == number]
                if len(asked):
                    rows, size = np.searchsorted(part.own, asked), len(asked) * m
                    there = (rows[:, None] * m + np.arange(m))[:, None]
                    pack = Transfer(device, there, np.arange(size).reshape(there.shape))
                    packet = Packet(number, other, device.zeros((len(asked), m), dtype))
                    self.sends.append((i, pack, packet))
        packets = [packet for _, _, packet in self.sends]
        self.connection = cut.transport.connect(packets, receives, device)

    def __call__(self, x: Any) -> None:
        """Take a flat vector of this process's rows."""
        first = 0
        for part, unknowns in zip(self.parts, self.unknowns, strict=True):
            last = first + len(part.own) * unknowns.shape[1]
            unknowns[: len(part.own)] = x[first:last].reshape(-1, unknowns.shape[1])
            first = last
        for i, pack, packet in self.sends:
            pack(self.unknowns[i], packet.buffer)
        self.connection.start()
        self.connection.finish()
