"""The defects that make a mesh useless for a DG method, found before anything is computed on it."""

import numpy as np
from scipy.spatial import cKDTree

from .connect import all_faces, same_side
from .geometry import map_derivatives
from .mesh import Labels, MeshError

# An element is flat if its volume is below this fraction of (longest edge)^dim: what rounding of
# the coordinates leaves is then no volume. Boundary layers of aspect ratio 1e5 are far above it.
FLAT = 1e-12
# Vertices closer than this fraction of the shortest edge coincide; a vertex closer to a face than
# this fraction of the face's size lies on it.
COINCIDENT = 1e-6


# Coordinates beyond this overflow once they are cubed.
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
    """Jacobian determinant of each element's map, negative where it is inverted, (K,)."""
    return np.linalg.det(map_derivatives(vertices, elements))


def check_volumes(vertices: np.ndarray, elements: np.ndarray, labels: Labels) -> None:
    """Raise MeshError at the first element without volume, or the first inverted one."""
    dim = vertices.shape[1]
    jacobian = signed_volumes(vertices, elements)
    longest = _edge_lengths(vertices, elements).max(axis=1)
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
    faces = all_faces(elements)[neighbors.reshape(-1) < 0]
    used = np.unique(faces)
    points = vertices[used]
    tree = cKDTree(points)
    shortest = _edge_lengths(vertices, elements).min()
    if twins := sorted(tree.query_pairs(COINCIDENT * shortest)):
        a, b = (used[i] for i in twins[0])
        raise MeshError(
            f"{labels.source}: {labels.vertex(a)} and {labels.vertex(b)} are both at "
            f"{vertices[a]}: the mesh is cracked there; merge duplicate vertices"
        )
    dim = vertices.shape[1]
    if dim == 1:
        return
    corners = vertices[faces]
    centers = corners.mean(axis=1)
    candidates = np.concatenate([points, centers])
    radius = np.linalg.norm(corners - centers[:, None], axis=2).max(axis=1)
    near = cKDTree(candidates).query_ball_point(
        centers, radius * (1 + COINCIDENT), return_sorted=False
    )
    face = np.repeat(np.arange(len(faces)), [len(hits) for hits in near])
    point = np.concatenate(near).astype(np.int64)
    is_vertex = point < len(used)
    own_vertex = (used[np.where(is_vertex, point, 0)][:, None] == faces[face]).any(axis=1)
    own = np.where(is_vertex, own_vertex, point - len(used) == face)
    face, point = face[~own], point[~own]
    touching = _on_face(corners[face], candidates[point])
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


def _on_face(corners: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Whether each point (n, dim) lies on the face with these corners (n, dim, dim)."""
    origin, edges = corners[:, 0], np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2)
    offset = (points - origin)[..., None]
    weights = np.linalg.solve(np.swapaxes(edges, 1, 2) @ edges, np.swapaxes(edges, 1, 2) @ offset)
    distance = np.linalg.norm((edges @ weights - offset)[..., 0], axis=1)
    size = np.linalg.norm(edges, axis=1).max(axis=1)
    weights = weights[..., 0]
    inside = (weights > -COINCIDENT).all(axis=1) & (weights.sum(axis=1) < 1 + COINCIDENT)
    return inside & (distance < COINCIDENT * size)


def _edge_lengths(vertices: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Lengths of every element's edges, (K, dim (dim+1)/2)."""
    i, j = np.triu_indices(elements.shape[1], 1)
    return np.linalg.norm(vertices[elements[:, i]] - vertices[elements[:, j]], axis=2)


def _others(found: np.ndarray) -> str:
    """How many elements share a defect, in words."""
    return "the only one" if len(found) == 1 else f"one of {len(found)}"
