"""Cutting a mesh into blocks of few elements, and numbering the elements block by block."""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral

import numpy as np

from .connect import face_pairs
from .curve import inverse_permutation
from .mesh import Mesh

# METIS is asked again with more parts until none is too large; each time this much more.
METIS_GROWTH = 1.02
METIS_ATTEMPTS = 60


def partition(mesh: Mesh, size: int, method: str = "greedy") -> np.ndarray:
    """Cut a mesh into blocks of at most `size` elements that share many faces among themselves.

    A thread block that gathers the fluxes of such a block finds both sides of most faces in it
    (Klöckner et al. 2009, section 5.3). The size is a hard limit, given by shared memory; the
    number of faces between blocks (``edge_cut``) is what makes one partition better than another.

    Parameters
    ----------
    mesh : Mesh
    size : int
        Largest number of elements in a block.
    method : "greedy" or "metis"
        "greedy" is the paper's Algorithm 2: breadth-first agglomeration that takes, at each step,
        the candidate that shares the most faces with the block. Every block but the last
        is full. "metis" asks METIS for ceil(K/size) parts and, as METIS balances only roughly,
        again for 2% more parts until none is too large; blocks are then partly filled. The paper
        finds METIS good from about 10 elements a block.

    Returns
    -------
    (K,) int32
        The number of each element's block, counted from 0.

    Raises
    ------
    TypeError, ValueError
        if `size` is no positive int or `method` is unknown.
    RuntimeError
        if METIS is asked for and pymetis is not installed, or METIS does not keep to the limit.
    """
    if not isinstance(size, Integral) or isinstance(size, bool):
        raise TypeError(f"size must be an int, got {size!r}")
    if size < 1:
        raise ValueError(f"size must be 1 or more elements, got {size}")
    if method not in ("greedy", "metis"):
        raise ValueError(f'method must be "greedy" or "metis", got {method!r}')
    return _greedy(mesh, int(size)) if method == "greedy" else _metis(mesh, int(size))


def renumber(mesh: Mesh, order: np.ndarray) -> Mesh:
    """The same mesh with its elements in another order.

    Parameters
    ----------
    mesh : Mesh
    order : (K,) ints
        A permutation: element ``order[i]`` becomes element i. For a partition,
        ``np.argsort(part, kind="stable")`` makes the elements of each block consecutive.

    Returns
    -------
    Mesh

    Raises
    ------
    ValueError
        if `order` is not a permutation of 0..K-1.
    """
    order = np.asarray(order)
    if order.shape != (mesh.K,) or not np.array_equal(np.sort(order), np.arange(mesh.K)):
        raise ValueError(f"order must be a permutation of the {mesh.K} elements")
    new_number = inverse_permutation(order.astype(np.int32))

    def moved(faces):
        faces = np.stack([new_number[faces[:, 0]], faces[:, 1]], axis=1)
        return faces[np.lexsort((faces[:, 1], faces[:, 0]))]

    def moved_interface(faces):
        k, f = faces.T
        other = np.stack([mesh.neighbors[k, f], mesh.neighbor_faces[k, f]], axis=1)
        stays_lower = new_number[faces[:, 0]] < new_number[other[:, 0]]
        return moved(np.where(stays_lower[:, None], faces, other))

    neighbors = mesh.neighbors[order]
    return replace(
        mesh,
        elements=mesh.elements[order],
        neighbors=np.where(neighbors < 0, -1, new_number[neighbors]),
        neighbor_faces=mesh.neighbor_faces[order],
        face_permutation=mesh.face_permutation[order],
        boundary={name: moved(faces) for name, faces in mesh.boundary.items()},
        interfaces={name: moved_interface(faces) for name, faces in mesh.interfaces.items()},
        regions={name: np.sort(new_number[members]) for name, members in mesh.regions.items()},
    )


def edge_cut(mesh: Mesh, part: np.ndarray) -> int:
    """Number of interior faces, each counted once, whose two elements are in different blocks."""
    pairs = face_pairs(mesh)
    return int((part[pairs[:, 0]] != part[pairs[:, 2]]).sum())


def _greedy(mesh: Mesh, size: int) -> np.ndarray:
    """Algorithm 2 of Klöckner et al. (2009), with its queue of candidates sorted into buckets.

    Bucket c holds the candidates that share c faces with the block being made, first come first
    served. A candidate that gains a face is entered once more, one bucket higher; when its old
    entry comes up it has been taken and is passed over. So every face is handled once, and the time
    is linear.
    """
    neighbors = mesh.neighbors.tolist()
    part = [-1] * mesh.K
    unassigned = iter(range(mesh.K))

    def arbitrary():
        """Some element that is in no block yet, or None."""
        return next((e for e in unassigned if part[e] < 0), None)

    block, seed = 0, arbitrary()
    while seed is not None:
        shared = {seed: 0}  # faces shared with the block, by candidate, in order of arrival
        buckets = [deque() for _ in range(mesh.dim + 2)]
        buckets[0].append(seed)
        filled = 0
        while (e := _best_candidate(buckets, part)) is not None or ((e := arbitrary()) is not None):
            part[e] = block
            filled += 1
            if filled == size:
                break
            for n in neighbors[e]:
                if n >= 0 and part[n] < 0:
                    shared[n] = shared.get(n, 0) + 1
                    buckets[shared[n]].append(n)
        seed = next((e for e in shared if part[e] < 0), None)
        if seed is None:
            seed = arbitrary()
        block += 1
    return np.array(part, dtype=np.int32)


def _best_candidate(buckets, part):
    """Take the oldest candidate of the fullest bucket, or None if there is none."""
    for bucket in reversed(buckets):
        while bucket:
            e = bucket.popleft()
            if part[e] < 0:
                return e
    return None


def parts_by_metis(mesh: Mesh, parts: int) -> np.ndarray:
    """METIS's partition of a mesh into so many parts, of about the same size, (K,) int32.

    Some may be empty where `parts` is not small beside K.

    Raises
    ------
    RuntimeError
        If pymetis is not installed.
    """
    return _part_graph(mesh, "METIS")(parts)


def rows_by_metis(columns: np.ndarray, parts: int) -> np.ndarray:
    """METIS's partition of the rows of a matrix that have columns in common, (rows,) int32.

    Parameters
    ----------
    columns : (rows, nb) ints
        Of each row, with a symmetric pattern; repetitions and the row itself may be among them.
    parts : int
        Some may be empty where it is not small beside the rows.

    Raises
    ------
    RuntimeError
        If pymetis is not installed.
    """
    rows, nb = columns.shape
    pairs = np.stack([np.repeat(np.arange(rows), nb), columns.ravel()], axis=1)
    return _of_graph(_adjacency(pairs, rows), "METIS")(parts)


def _part_graph(mesh: Mesh, asked: str, otherwise: str = "") -> Callable[[int], np.ndarray]:
    """A function of the number of parts that asks METIS for the part of each element."""
    pairs = face_pairs(mesh)[:, [0, 2]]
    graph = _adjacency(np.concatenate([pairs, pairs[:, ::-1]]), mesh.K)
    return _of_graph(graph, asked, otherwise)


def _of_graph(
    graph: tuple[np.ndarray, np.ndarray], asked: str, otherwise: str = ""
) -> Callable[[int], np.ndarray]:
    """The same of the nodes of a graph, given as by `_adjacency`."""
    try:
        import pymetis
    except ImportError as error:
        raise RuntimeError(
            f"{asked} needs pymetis, which is not installed: pip install pymetis{otherwise}"
        ) from error
    adjacency = pymetis.CSRAdjacency(*graph)
    return lambda parts: np.array(pymetis.part_graph(parts, adjacency)[1], np.int32)


def _metis(mesh: Mesh, size: int) -> np.ndarray:
    """Parts by METIS, asked for in growing numbers until none exceeds `size`."""
    part_graph = _part_graph(mesh, 'method="metis"', ', or use method="greedy"')
    parts = -(-mesh.K // size)
    for _ in range(METIS_ATTEMPTS):
        _, part, counts = np.unique(part_graph(parts), return_inverse=True, return_counts=True)
        if counts.max() <= size:
            return part.astype(np.int32)
        parts = min(mesh.K, max(parts + 1, int(parts * METIS_GROWTH)))
    raise RuntimeError(
        f"METIS does not keep blocks to size={size} on this mesh of {mesh.K} elements, even with "
        f'{parts} parts: use method="greedy"'
    )


def _adjacency(pairs: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the neighbors of each of n nodes begin, and all neighbors, ascending, as METIS wants.

    Of `pairs`, (m, 2) ints in both directions, repetitions and those of a node with itself are
    left out.
    """
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    node, neighbor = np.divmod(np.unique(pairs[:, 0] * np.int64(n) + pairs[:, 1]), n)
    starts = np.searchsorted(node, np.arange(n + 1))
    return starts.astype(np.int32), neighbor.astype(np.int32)
