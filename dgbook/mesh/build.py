"""From vertices, elements and named groups to a checked Mesh."""

from collections.abc import Mapping

import numpy as np

from .check import check_conforming, check_coordinates, check_folds, check_volumes, signed_volumes
from .connect import connect, find_faces
from .mesh import Labels, Mesh, MeshError


def build(
    vertices: np.ndarray,
    elements: np.ndarray,
    boundary: Mapping[str, np.ndarray] | None = None,
    regions: Mapping[str, np.ndarray] | None = None,
    *,
    reorient: bool = False,
    labels: Labels | None = None,
) -> Mesh:
    """Make a Mesh from arrays, for meshes that come from elsewhere than ``box`` or ``read``.

    Parameters
    ----------
    vertices : (Nv, dim)
        Coordinates, dim 1, 2 or 3. Vertices that no element uses are dropped.
    elements : (K, dim+1) ints
        Vertex numbers.
    boundary : {name: (n, dim) ints}, optional
        Named faces, by vertex numbers in any order. Those in the interior become ``interfaces``.
    regions : {name: (n,) ints}, optional
        Named sets of elements.
    reorient : bool
        Reverse elements whose vertices are in negative order, instead of refusing them.
    labels : Labels, optional
        Names for error messages.

    Returns
    -------
    Mesh

    Raises
    ------
    ValueError
        if an array has a wrong shape or type.
    MeshError
        if a coordinate is not finite, an element refers to a missing vertex, is flat or inverted;
        if three elements share a face or two overlap across one; if vertices coincide or hang; if a
        named face is no face of any element.
    """
    labels = labels or Labels()
    vertices, elements = _checked_arrays(vertices, elements, labels)
    if reorient:
        inverted = signed_volumes(vertices, elements) < 0
        elements[inverted, -2:] = elements[inverted, :-3:-1]
    check_volumes(vertices, elements, labels)
    links = connect(elements, labels)
    check_folds(elements, links, labels)
    check_conforming(vertices, elements, links[0], labels)
    outside, inside = _named_faces(boundary or {}, elements, links[0], labels)
    used = np.zeros(len(vertices), dtype=bool)
    used[elements] = True
    renumbered = np.cumsum(used) - 1
    return Mesh(
        vertices[used],
        renumbered[elements],
        *links,
        boundary=outside,
        interfaces=inside,
        regions={name: np.unique(members) for name, members in (regions or {}).items()},
    )


def _checked_arrays(vertices, elements, labels):
    """Own copies of the arrays, with shapes, types, finiteness and vertex numbers checked."""
    vertices = np.array(vertices, dtype=np.float64)
    if vertices.ndim != 2 or vertices.shape[1] not in (1, 2, 3):
        raise ValueError(f"vertices must have shape (Nv, 1, 2 or 3), got {vertices.shape}")
    elements = np.array(elements)
    if not np.issubdtype(elements.dtype, np.integer):
        raise TypeError(f"elements must hold integers, got {elements.dtype}")
    if elements.ndim != 2 or elements.shape[1] != vertices.shape[1] + 1 or len(elements) == 0:
        raise ValueError(
            f"elements must have shape (K, {vertices.shape[1] + 1}) with K >= 1 for vertices in "
            f"{vertices.shape[1]} dimensions, got {elements.shape}"
        )
    check_coordinates(vertices, labels)
    missing = np.argwhere((elements < 0) | (elements >= len(vertices)))
    if missing.size:
        k, i = missing[0]
        raise MeshError(
            f"{labels.source}: {labels.element(k)} refers to vertex {elements[k, i]}, "
            f"but there are {len(vertices)} vertices, counted from 0"
        )
    return vertices, elements.astype(np.int32)


def _named_faces(groups, elements, neighbors, labels):
    """Split named facets into (boundary, interfaces), each {name: (element, face)}."""
    dim = elements.shape[1] - 1
    boundary, interfaces = {}, {}
    named = np.zeros(neighbors.size, dtype=bool)
    groups = {name: np.asarray(facets) for name, facets in groups.items()}
    for name, facets in groups.items():
        if facets.ndim != 2 or facets.shape[1] != dim:
            raise ValueError(f"boundary[{name!r}] must have shape (n, {dim}), got {facets.shape}")
    all_facets = np.concatenate([np.empty((0, dim), dtype=np.int64), *groups.values()])
    ends = np.cumsum([len(facets) for facets in groups.values()])
    group_rows = np.split(find_faces(elements, all_facets), ends[:-1])
    for (name, facets), rows in zip(groups.items(), group_rows, strict=False):
        if (rows < 0).any():
            lost = ", ".join(labels.vertex(v) for v in facets[np.argmax(rows < 0)])
            raise MeshError(
                f"{labels.source}: group {name!r} names the face of {lost}, "
                "which is no face of any element"
            )
        rows = np.unique(rows)
        on_boundary = neighbors.reshape(-1)[rows] < 0
        for target, members in ((boundary, rows[on_boundary]), (interfaces, rows[~on_boundary])):
            if len(members):
                target[name] = np.stack(np.divmod(members, dim + 1), axis=1)
        named[rows] = True
    unnamed = (neighbors.reshape(-1) < 0) & ~named
    if "unnamed" in boundary:  # a group may have been given that very name
        unnamed[boundary["unnamed"] @ [dim + 1, 1]] = True
    if unnamed.any():
        boundary["unnamed"] = np.stack(np.divmod(np.flatnonzero(unnamed), dim + 1), axis=1)
    return boundary, interfaces
