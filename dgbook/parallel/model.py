"""A model of a stage on many GPUs: what one of them computes, and what it waits for.

Its numbers are measured on one GPU and on two; the surfaces of parts are counted. It knows nothing
of networks that others use too, nor of what many neighbors cost beyond their bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dgbook.parallel.surface import Surface

SUBFACES = 4
"""Faces of a refined triangle, and elements of a refined tetrahedron that have one of them."""


@dataclass(frozen=True)
class Machine:
    """GPUs and what is between them.

    Attributes
    ----------
    fixed : float
        Seconds of a stage on hardly any elements.
    element : float
        And of each element.
    launch : float
        Seconds of a small kernel in a recording, such as those that move traces.
    latency : float
        Seconds of an exchange of hardly any bytes in both directions.
    bandwidth : float
        Bytes per second of a large one, in each direction.
    """

    fixed: float
    element: float
    launch: float
    latency: float
    bandwidth: float


def line(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """The constant and the slope of seconds against sizes, by relative least squares.

    Raises
    ------
    ValueError
        If the constant or the slope is not positive, as those of no machine are.
    """
    sizes, seconds = np.asarray(sizes, float), np.asarray(seconds, float)
    columns = np.stack([1 / seconds, sizes / seconds], axis=1)
    constant, slope = np.linalg.lstsq(columns, np.ones(len(sizes)), rcond=None)[0]
    if not (constant > 0 and slope > 0):
        raise ValueError(
            f"a line through these seconds has constant {constant:.3g} and slope {slope:.3g}; "
            "allowed: both positive"
        )
    return float(constant), float(slope)


def refined(surface: Surface, levels: int) -> Surface:
    """The counts of tetrahedra that are cut in eight so many times, in the parts that they had.

    A cut face becomes four, of four elements. So many are at the edge at most; the estimate takes
    all of them for different elements.
    """
    volume, area = 8**levels, SUBFACES**levels
    if levels == 0:
        return surface
    return surface._replace(
        elements=surface.elements * volume,
        largest=surface.largest * volume,
        faces=surface.faces * area,
        most_faces=surface.most_faces * area,
        edge=surface.faces * area,
        largest_edge=surface.most_faces * area,
    )


def alone_seconds(machine: Machine, elements: float) -> float:
    """Seconds of a stage on one GPU that has a mesh to itself."""
    return machine.fixed + elements * machine.element


def exchange_seconds(machine: Machine, nbytes: float) -> float:
    """Seconds until so many bytes have gone out and as many have come in."""
    return machine.latency + nbytes / machine.bandwidth


def stage_seconds(machine: Machine, surface: Surface, face_bytes: float) -> float:
    """Seconds of a stage of the largest part, with exchanges beside the interior.

    It is one of many: traces for the next stage are packed as soon as the edge has them. So either
    all elements together take longest, or the way from an edge to the next one: packing, the
    exchange, unpacking, and the next edge itself.

    Parameters
    ----------
    machine : Machine
    surface : Surface
    face_bytes : float
        That are sent of a face.
    """
    computing = alone_seconds(machine, surface.largest)
    waiting = (
        exchange_seconds(machine, surface.most_faces * face_bytes)
        + 2 * machine.launch
        + alone_seconds(machine, surface.largest_edge)
    )
    return max(computing, waiting)


def efficiency(machine: Machine, surface: Surface, face_bytes: float) -> float:
    """The time of a mean part on a GPU alone, over that of a stage of the largest one.

    It is that of weak scaling: as many elements for each GPU, however many there are.
    """
    alone = alone_seconds(machine, surface.elements)
    return alone / stage_seconds(machine, surface, face_bytes)
