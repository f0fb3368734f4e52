"""The defects that make a mesh useless for a DG method, found before anything is computed on it."""

import numpy as np
from scipy.spatial import cKDTree

from .connect import same_side
from .geometry import map_derivatives
from .mesh import Labels, MeshError, face_vertices
from .nearby import near_pairs

# An element is flat if its volume is below this fraction of (longest edge)^dim: what rounding of
# the coordinates leaves is then no volume. Boundary layers of aspect ratio 1e5 are far above it.
FLAT = 1e-12
# Vertices closer than this fraction of the shortest edge coincide; a vertex closer to a face than
# this fraction of the face's size lies on it, unless that is more than a fraction TOUCHING of the
# altitude of the face's element: in a thin layer everything is close to the boundary.
COINCIDENT = 1e-6
TOUCHING = 1e-3
# What rounding makes of a distance between points whose coordinates are at most 1.
ROUNDING = 4 * np.finfo(np.float64).eps

# Coordinates beyond this overflow once they are cubed, and edges of which the longest one of an
# element is below its inverse underflow.
LARGEST_COORDINATE = 1e100


def check_coordinates(vertices: np.ndarray, labels: Labels) -> None:
    """Raise MeshError at the first vertex that is not at a finite, usable place."""
    usable = (np.abs(vertices) <= LARGEST_COORDINATE).all(axis=1)  # false for NaN as well
    if not usable.all():
        v = np.argmin(usable)
        raise MeshError(
            f"{labels.source}: {labels.vertex(v)} has a coordinate that is not finite or exceeds "
            f"{LARGEST_COORDINATE:g}: {vertices[v]}"
        )


def signed_volumes(vertices: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Jacobian determinant of each element's map, negative where it is inverted, (K,).

    Without a division, for nothing is known of the elements yet.
    """
    columns = np.moveaxis(map_derivatives(vertices, elements), 2, 0)
    if len(columns) == 3:
        return (np.cross(columns[0], columns[1]) * columns[2]).sum(axis=1)
    if len(columns) == 2:
        (a, b), (c, d) = columns[0].T, columns[1].T
        return a * d - b * c
    return columns[0, :, 0]


def check_volumes(vertices: np.ndarray, elements: np.ndarray, labels: Labels) -> None:
    """Raise MeshError at the first element without volume, or the first inverted one."""
    dim = vertices.shape[1]
    jacobian = signed_volumes(vertices, elements)
    longest = _edge_lengths(vertices, elements).max(axis=1)
    if (tiny := np.flatnonzero((longest > 0) & (longest < 1 / LARGEST_COORDINATE))).size:
        raise MeshError(
            f"{labels.source}: {labels.element(tiny[0])} is too small to compute with: its longest "
            f"edge is {longest[tiny[0]]:.3g}, below {1 / LARGEST_COORDINATE:g} ({_others(tiny)})"
        )
    rounding = 16 * np.finfo(np.float64).eps * np.abs(vertices).max()
    threshold = FLAT * longest**dim + rounding * longest ** (dim - 1)
    if (flat := np.flatnonzero(np.abs(jacobian) <= threshold)).size:
        raise MeshError(
            f"{labels.source}: {labels.element(flat[0])} is flat: it has no volume to working "
            f"precision ({_others(flat)})"
        )
    if (inverted := np.flatnonzero(jacobian < 0)).size:
        raise MeshError(
            f"{labels.source}: {labels.element(inverted[0])} is inverted: its vertices are in "
            f"negative order ({_others(inverted)}); reorient=True reverses such elements"
        )


def check_folds(elements: np.ndarray, links: tuple, labels: Labels) -> None:
    """Raise MeshError where two elements lie on the same side of the face they share."""
    neighbors, neighbor_faces, face_permutation = links
    k, f = np.nonzero(neighbors >= 0)
    folded = np.flatnonzero(
        same_side(f, neighbor_faces[k, f], face_permutation[k, f], elements.shape[1] - 1)
    )
    if folded.size:
        a = k[folded[0]]
        b = neighbors[a, f[folded[0]]]
        raise MeshError(
            f"{labels.source}: {labels.element(a)} and {labels.element(b)} overlap: they lie on "
            "the same side of the face they share"
        )


def check_conforming(
    vertices: np.ndarray, elements: np.ndarray, neighbors: np.ndarray, labels: Labels
) -> None:
    """Raise MeshError where elements that touch do not share a whole face.

    Such places leave faces without a neighbor, so looking at the boundary is enough:
    two boundary vertices in one place are a crack; a boundary vertex inside another boundary face,
    or on its edge, is a hanging node; a boundary face whose center lies on another one
    is half of two meshes that meet without matching.
    """
    dim = vertices.shape[1]
    owner, owner_face = np.nonzero(neighbors < 0)
    faces = elements[owner[:, None], face_vertices(dim)[owner_face]]
    used = np.unique(faces)
    # Times a power of two, which rounds nothing, so that no coordinate exceeds 1.
    scaled = np.ldexp(vertices, -np.frexp(np.abs(vertices).max())[1])
    points = scaled[used]
    twins = _twins(points, COINCIDENT * _edge_lengths(scaled, elements).min())
    if twins is not None:
        a, b = used[twins]
        raise MeshError(
            f"{labels.source}: {labels.vertex(a)} and {labels.vertex(b)} are both at "
            f"{vertices[a]}: the mesh is cracked there; merge duplicate vertices"
        )
    if dim == 1:
        return
    corners = scaled[faces]
    candidates = np.concatenate([points, corners.mean(axis=1)])
    size = np.linalg.norm(corners[:, 1:] - corners[:, :1], axis=2).max(axis=1)
    face, point = near_pairs(corners, 2 * COINCIDENT * size + ROUNDING, candidates)
    is_vertex = point < len(used)
    is_corner = (used[np.where(is_vertex, point, 0)][:, None] == faces[face]).any(axis=1)
    belongs = np.where(is_vertex, is_corner, point - len(used) == face)
    face, point = face[~belongs], point[~belongs]
    jacobian = signed_volumes(scaled, elements[owner[face]])
    touching = _on_face(corners[face], jacobian, candidates[point])
    if touching.any():
        clearest = point[touching].argmin()  # a vertex says more than the center of a face
        f, p = face[touching][clearest], point[touching][clearest]
        names = ", ".join(labels.vertex(v) for v in faces[f])
        what = (
            f"{labels.vertex(used[p])} hangs on"
            if p < len(used)
            else f"the face of {', '.join(labels.vertex(v) for v in faces[p - len(used)])} covers"
        )
        raise MeshError(
            f"{labels.source}: {what} the face of {names} without being part of it: "
            "the mesh is not conforming"
        )


def _twins(points: np.ndarray, tolerance: float) -> np.ndarray | None:
    """Numbers of two points no further apart than the tolerance, or None if there are none."""
    _, first, number = np.unique(points, axis=0, return_index=True, return_inverse=True)
    index = np.arange(len(points))
    if (again := np.flatnonzero(first[number] != index)).size:
        return np.array([first[number[again[0]]], again[0]])
    distance, nearest = cKDTree(points).query(points, k=2)
    if not (close := np.flatnonzero(distance[:, 1] <= tolerance)).size:
        return None
    return np.sort(nearest[close[0]])


def _on_face(corners: np.ndarray, jacobian: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Whether each point (n, dim) lies on the face with these corners (n, dim, dim).

    `jacobian` (n,) is that of the face's element, which may be thin: what lies a good part of its
    altitude away does not touch the face. Coordinates are at most 1.
    """
    origin, edges = corners[:, 0], np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2)
    # Orthonormal directions, for the normal equations of a thin face are singular.
    q, r = np.linalg.qr(edges)
    offset = (points - origin)[..., None]
    along = np.swapaxes(q, 1, 2) @ offset
    weights = np.linalg.solve(r, along)[..., 0]
    distance = np.linalg.norm((q @ along - offset)[..., 0], axis=1)
    size = np.linalg.norm(edges, axis=1).max(axis=1)
    dim = points.shape[1]
    altitude = 2**dim * jacobian / np.abs(np.diagonal(r, axis1=1, axis2=2).prod(axis=1))
    tolerance = np.maximum(np.minimum(COINCIDENT * size, TOUCHING * altitude), ROUNDING)
    inside = (weights > -COINCIDENT).all(axis=1) & (weights.sum(axis=1) < 1 + COINCIDENT)
    return inside & (distance < tolerance)


def _edge_lengths(vertices: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Lengths of every element's edges, (K, dim (dim+1)/2)."""
    i, j = np.triu_indices(elements.shape[1], 1)
    return np.linalg.norm(vertices[elements[:, i]] - vertices[elements[:, j]], axis=2)


def _others(defective: np.ndarray) -> str:
    """How many elements share a defect, in words."""
    return "the only one" if len(defective) == 1 else f"one of {len(defective)}"
