"""A mesh in parts: who has which element, copies of neighbors, and what is sent to whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dgbook.arguments import check_integer
from dgbook.mesh import Mesh, along_a_curve
from dgbook.mesh.partition import parts_by_metis


@dataclass(frozen=True, eq=False)
class Message:
    """What one part tells another before each stage: its traces on the faces between them.

    Attributes
    ----------
    source, target : int
        Numbers of the two parts.
    elements, faces : (n,) ints
        In this order, element and face as the source numbers them: with the target its ghosts.
    """

    source: int
    target: int
    elements: np.ndarray
    faces: np.ndarray


@dataclass(frozen=True, eq=False)
class Piece:
    """A part of a mesh, as a mesh of its own, behind its elements the ghosts.

    It belongs to a rank or a GPU. While traces travel between parts, its interior is computed,
    which waits for nobody; then the elements at its edge, which meet other parts.

    Attributes
    ----------
    number : int
        Of the part.
    mesh : Mesh
        Own elements, the interior before the edge and either along a curve that fills space, then
        ``mesh.ghosts`` ghosts, one for each face that own elements have in common with other parts,
        sorted by the other part and the number in the whole mesh. ``mesh.numbers`` are the numbers
        there.
    sends, receives : tuple of Message
        Ascending by the other part. In `receives` elements are this piece's ghosts.
    """

    number: int
    mesh: Mesh
    sends: tuple[Message, ...]
    receives: tuple[Message, ...]

    @property
    def elements(self) -> np.ndarray:
        """The numbers in the whole mesh of all elements, ghosts included."""
        return self.mesh.numbers

    @property
    def owned(self) -> np.ndarray:
        """The numbers in the whole mesh of its own elements."""
        return self.elements[: self.mesh.owned]

    @property
    def edge(self) -> int:
        """How many of its own elements meet other parts."""
        return int(np.count_nonzero(self.mesh.at_edge))


def divide(mesh: Mesh, parts: int) -> np.ndarray:
    """The part of each element, (K,) int32: as many elements in each, few faces between them.

    METIS is given no weights: a mesh has elements of one order and one kind, and kernels do the
    same for all of them, so that parts of as many elements take as long.

    Parameters
    ----------
    mesh : Mesh
    parts : int

    Raises
    ------
    TypeError, ValueError
        If `parts` is no number from 1 to K, or so large that METIS leaves a part empty.
    RuntimeError
        If pymetis, through which METIS is called, is not installed.
    """
    check_integer("parts", parts, 1, mesh.K)
    if parts == 1:
        return np.zeros(mesh.K, np.int32)
    owner = parts_by_metis(mesh, parts)
    empty = np.flatnonzero(np.bincount(owner, minlength=parts) == 0)
    if len(empty):
        raise ValueError(
            f"parts = {parts}: METIS leaves {len(empty)} of them without any of the {mesh.K} "
            "elements; allowed: fewer parts"
        )
    return owner


def cut(mesh: Mesh, owner: np.ndarray, number: int) -> Piece:
    """One of the parts of a mesh.

    Parameters
    ----------
    mesh : Mesh
        The whole mesh.
    owner : (K,) ints
        The part of each element, as `divide` returns it.
    number : int
        Of the part.
    """
    own = np.flatnonzero(owner == number)
    # Both sides of a message list its faces in the same order, that of the source's numbers.
    ours, theirs = _borders(mesh, owner, own)
    theirs = theirs[np.argsort(owner[theirs[:, 0]], kind="stable")]
    own = own[along_a_curve(_sub_mesh(mesh, own, theirs))[: len(own)]]
    here = np.full(mesh.K, -1)
    here[own] = np.arange(len(own))
    out, source = owner[mesh.neighbors[ours[:, 0], ours[:, 1]]], owner[theirs[:, 0]]
    ours[:, 0] = here[ours[:, 0]]
    ghosts = np.stack([len(own) + np.arange(len(theirs)), theirs[:, 1]], axis=1)

    def messages(faces: np.ndarray, others: np.ndarray) -> list[tuple[int, np.ndarray]]:
        return [(int(p), faces[others == p]) for p in np.unique(others)]

    return Piece(
        number,
        _sub_mesh(mesh, own, theirs),
        tuple(Message(number, p, f[:, 0], f[:, 1]) for p, f in messages(ours, out)),
        tuple(Message(p, number, f[:, 0], f[:, 1]) for p, f in messages(ghosts, source)),
    )


def _borders(mesh: Mesh, owner: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The faces between a part and others from its own side, and from theirs; rows (k, f)."""
    neighbors = mesh.neighbors[own]
    row, f = np.nonzero((neighbors >= 0) & (owner[neighbors] != owner[own][:, None]))
    k = own[row]
    theirs = np.stack([mesh.neighbors[k, f], mesh.neighbor_faces[k, f]], axis=1)
    return np.stack([k, f], axis=1), theirs[np.lexsort((theirs[:, 1], theirs[:, 0]))]


def _sub_mesh(mesh: Mesh, own: np.ndarray, theirs: np.ndarray) -> Mesh:
    """The mesh of some elements in that order, and behind them a ghost for each of their faces.

    A ghost is linked by that face; its others meet themselves, so that they are no boundary and
    nothing jumps there. An element that meets own ones by two faces has two ghosts: on the edge
    between them, each has what its own face's flux needs.
    """
    elements = np.concatenate([own, theirs[:, 0]])
    ghosts = len(own) + np.arange(len(theirs))
    here = np.full(mesh.K, -1)
    here[own] = np.arange(len(own))
    used, corners = np.unique(mesh.elements[elements], return_inverse=True)

    neighbors = mesh.neighbors[elements]
    links = np.where(neighbors < 0, -1, here[neighbors])
    faces, ways = mesh.neighbor_faces[elements], mesh.face_permutation[elements]
    alone = np.zeros(links.shape, bool)
    alone[len(own) :] = True
    alone[ghosts, theirs[:, 1]] = False
    k, f = np.nonzero(alone)
    links[k, f], faces[k, f], ways[k, f] = k, f, 0
    links[links[ghosts, theirs[:, 1]], faces[ghosts, theirs[:, 1]]] = ghosts

    def local(rows: np.ndarray) -> np.ndarray:
        """Boundary faces of own elements, ascending."""
        rows = np.stack([here[rows[:, 0]], rows[:, 1]], axis=1)
        rows = rows[rows[:, 0] >= 0]
        return rows[np.lexsort((rows[:, 1], rows[:, 0]))]

    return Mesh(
        vertices=mesh.vertices[used],
        elements=corners.reshape(len(elements), -1),
        neighbors=links,
        neighbor_faces=faces,
        face_permutation=ways,
        boundary={name: local(rows) for name, rows in mesh.boundary.items()},
        regions={
            name: np.flatnonzero(np.isin(elements, members))
            for name, members in mesh.regions.items()
        },
        ghosts=len(theirs),
        numbers=elements,
    )
