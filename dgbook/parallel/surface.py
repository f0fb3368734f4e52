"""What a partition costs: faces between parts, counted, for a model of many ranks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from dgbook.mesh import Mesh
from dgbook.mesh.partition import parts_by_metis


class Surface(NamedTuple):
    """What parts of a mesh have of elements and of faces to other parts.

    The slowest part decides, therefore the largest numbers.

    Attributes
    ----------
    parts : int
        Without empty ones.
    elements, largest : float, int
        Of a part: the mean, and the most.
    faces, most_faces : float, int
        To other parts, of a part: the mean, and the most.
    edge, largest_edge : float, int
        Elements with such a face, which wait for an exchange: the mean, and the most.
    neighbors, most_neighbors : float, int
        Other parts that a part exchanges messages with: the mean, and the most.
    """

    parts: int
    elements: float
    largest: int
    faces: float
    most_faces: int
    edge: float
    largest_edge: int
    neighbors: float
    most_neighbors: int


def surface(mesh: Mesh, owner: np.ndarray) -> Surface:
    """Count a partition.

    Parameters
    ----------
    mesh : Mesh
    owner : (K,) ints
        The part of each element.
    """
    parts, owner = np.unique(owner, return_inverse=True)
    n = len(parts)
    k, f = np.nonzero(mesh.neighbors >= 0)
    mine, theirs = owner[k], owner[mesh.neighbors[k, f]]
    between = mine != theirs
    elements = np.bincount(owner, minlength=n)
    faces = np.bincount(mine[between], minlength=n)
    edge = np.bincount(owner[np.unique(k[between])], minlength=n)
    pairs = np.unique(mine[between] * n + theirs[between])
    neighbors = np.bincount(pairs // n, minlength=n)
    counts = (elements, faces, edge, neighbors)
    both = [number for count in counts for number in (float(count.mean()), int(count.max()))]
    return Surface(n, *both)


def surfaces(mesh: Mesh, parts: Iterable[int]) -> list[Surface]:
    """The same of METIS's partitions of a mesh into some numbers of parts."""
    return [surface(mesh, parts_by_metis(mesh, n)) for n in parts]
