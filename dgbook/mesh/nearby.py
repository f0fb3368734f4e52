"""Which points lie near which faces, found in a time that the faces' shapes hardly change.

A ball around a long and thin face holds many points that are far from the face: where n such faces
stand side by side, n^2 pairs. So the points are sorted into a tree of boxes, and a face goes down
into those boxes only that its own narrow surroundings meet.
"""

from dataclasses import dataclass

import numpy as np

LEAF = 4  # a box with fewer than twice as many points is not divided
BLOCK = 2**14  # faces that go down the tree at the same time, which bounds the memory


def near_pairs(
    corners: np.ndarray, margin: np.ndarray, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of a face and a point among which are all that are no further apart than a margin.

    Parameters
    ----------
    corners : (n, dim, dim)
        The vertices of each face, dim 2 or 3.
    margin : (n,)
        A length for each face.
    points : (m, dim)
        At least one.

    Returns
    -------
    face, point : (p,) ints
    """
    tree = _make_tree(points)
    surroundings = _surroundings(corners, margin)
    pairs = [
        _descend(tree, points, surroundings, np.arange(begin, min(begin + BLOCK, len(corners))))
        for begin in range(0, len(corners), BLOCK)
    ]
    face, point = (np.concatenate(side) for side in zip(*pairs, strict=True))
    return face, point


@dataclass(frozen=True, eq=False)
class _Tree:
    """Boxes around points, 2^level of them at each level, every one halved in the next.

    Attributes
    ----------
    order : (m,)
        Numbers of the points, those of one box of the last level next to each other.
    starts : (boxes of the last level + 1,)
        Where in `order` its boxes begin.
    centers, halves : list of (2^level, dim)
        Centers and half widths of the boxes, by level.
    """

    order: np.ndarray
    starts: np.ndarray
    centers: list[np.ndarray]
    halves: list[np.ndarray]


def _make_tree(points: np.ndarray) -> _Tree:
    """Halve the points at the median, along the longest side of their box, again and again."""
    order, starts = np.arange(len(points)), np.array([0, len(points)])
    centers, halves = [], []
    while True:
        placed = points[order]
        lower = np.minimum.reduceat(placed, starts[:-1])
        upper = np.maximum.reduceat(placed, starts[:-1])
        centers.append((lower + upper) / 2)
        halves.append((upper - lower) / 2)
        boxes = len(starts) - 1
        if len(points) < 2 * LEAF * boxes:
            return _Tree(order, starts, centers, halves)
        box = np.repeat(np.arange(boxes), np.diff(starts))
        axis = halves[-1].argmax(axis=1)[box]
        order = order[np.lexsort((placed[np.arange(len(points)), axis], box))]
        starts = len(points) * np.arange(2 * boxes + 1) // (2 * boxes)


def _surroundings(corners: np.ndarray, margin: np.ndarray) -> tuple[np.ndarray, ...]:
    """Directions (n, a, dim) and the interval (n, a) that a face with its margin takes along each.

    The directions are those of the axes, of the normal and, of triangles, across each edge.
    """
    n, dim = corners.shape[:2]
    edges = np.roll(corners, -1, axis=1) - corners
    axes = np.broadcast_to(np.eye(dim), (n, dim, dim))
    if dim == 2:
        normals = edges[:, :1, ::-1] * [1, -1]
        directions = np.concatenate([axes, normals], axis=1)
    else:
        normals = np.cross(edges[:, :1], edges[:, 1:2])
        directions = np.concatenate([axes, normals, np.cross(normals, edges)], axis=1)
    along = corners @ np.swapaxes(directions, 1, 2)
    slack = margin[:, None] * np.linalg.norm(directions, axis=2)
    return directions, along.min(axis=1) - slack, along.max(axis=1) + slack


def _descend(tree, points, surroundings, faces):
    """Pairs of these faces with points in their surroundings."""
    face, box = faces, np.zeros_like(faces)
    for level, (centers, halves) in enumerate(zip(tree.centers, tree.halves, strict=True)):
        if level:
            face, box = np.repeat(face, 2), (2 * box[:, None] + [0, 1]).reshape(-1)
        face, box = _meeting(surroundings, face, box, centers, halves)
    counts = np.diff(tree.starts)[box]
    first = tree.starts[box] - np.concatenate([[0], np.cumsum(counts)[:-1]])
    point = tree.order[np.repeat(first, counts) + np.arange(counts.sum())]
    return _meeting(surroundings, np.repeat(face, counts), point, points, None)


def _meeting(surroundings, face, box, centers, halves):
    """Those pairs of a face and a box of which no direction shows that they are apart."""
    directions, lower, upper = surroundings
    for a in range(directions.shape[1]):
        direction = directions[face, a]
        middle = (centers[box] * direction).sum(axis=1)
        reach = 0.0 if halves is None else (halves[box] * np.abs(direction)).sum(axis=1)
        meet = (middle + reach >= lower[face, a]) & (middle - reach <= upper[face, a])
        face, box = face[meet], box[meet]
    return face, box
