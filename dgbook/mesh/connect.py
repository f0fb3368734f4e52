"""Which face of which element meets which, and which node meets which across a face."""

from dataclasses import replace

import numpy as np
from scipy.spatial import cKDTree

from .geometry import barycentric
from .mesh import Labels, Mesh, MeshError, face_vertices, vertex_permutations

# Two ends of a periodic direction are matched within this fraction of the shortest edge: far above
# the rounding in a mesher's output, far below any distance between two vertices.
PERIODIC_TOLERANCE = 1e-5


def connect(
    elements: np.ndarray, labels: Labels | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Match the faces of a simplicial mesh by their vertex sets.

    Every face gets one integer key from its sorted vertex numbers; after one sort of the keys the
    two sides of a face stand next to each other.

    Parameters
    ----------
    elements : (K, dim+1) ints
        Vertex numbers.
    labels : Labels, optional
        Names for the error message.

    Returns
    -------
    neighbors, neighbor_faces, face_permutation : (K, dim+1) int32
        As in ``Mesh``: -1 where a face belongs to one element only.

    Raises
    ------
    MeshError
        if three elements share a face.
    """
    labels = labels or Labels()
    faces = all_faces(elements)
    keys = vertex_set_keys(faces)
    order = np.argsort(keys)
    same = np.diff(keys[order]) == 0
    if (triple := np.flatnonzero(same[1:] & same[:-1])).size:
        sharers = order[triple[0] : triple[0] + 3] // elements.shape[1]
        names = ", ".join(labels.element(k) for k in sorted(sharers))
        vertices = ", ".join(labels.vertex(v) for v in np.sort(faces[order[triple[0]]]))
        raise MeshError(
            f"{labels.source}: three or more elements ({names}) share the face of {vertices}"
        )
    mine, theirs = order[:-1][same], order[1:][same]
    neighbors, neighbor_faces, face_permutation = (
        np.full(elements.shape, -1, dtype=np.int32) for _ in range(3)
    )
    _join((neighbors, neighbor_faces, face_permutation), mine, theirs, faces[mine], faces[theirs])
    return neighbors, neighbor_faces, face_permutation


def all_faces(elements: np.ndarray) -> np.ndarray:
    """Vertex numbers of every face of every element, (K (dim+1), dim), row k (dim+1) + f."""
    dim = elements.shape[1] - 1
    return elements[:, face_vertices(dim)].reshape(-1, dim)


def vertex_set_keys(vertex_sets: np.ndarray) -> np.ndarray:
    """One integer for each row of vertex numbers: equal keys, equal sets. (n, m) to (n,) int64.

    The sorted vertex numbers are the digits of the key, so keys are ordered as the sorted rows are.
    Where the next digit could overflow 63 bits (three digits: more than two million vertices), the
    leading ones are replaced by their rank.
    """
    digits = np.sort(vertex_sets, axis=1).astype(np.int64)
    base = int(digits.max(initial=0)) + 1
    keys, span = digits[:, 0], base
    for digit in digits.T[1:]:
        if span * base > 2**63:
            distinct, keys = np.unique(keys, return_inverse=True)
            span = len(distinct)
        keys, span = keys * base + digit, span * base
    return keys


def find_faces(elements: np.ndarray, facets: np.ndarray) -> np.ndarray:
    """The element faces that have the given vertices.

    Parameters
    ----------
    elements : (K, dim+1) ints
    facets : (n, dim) ints
        Vertex numbers of each facet, in any order.

    Returns
    -------
    (n,) ints, the row of ``all_faces`` with the lowest number, or -1 where there is none.
    """
    faces = all_faces(elements)
    # Only faces all of whose vertices occur in some facet can match.
    touched = np.zeros(max(elements.max(), facets.max(initial=0)) + 1, dtype=bool)
    touched[facets] = True
    candidates = np.flatnonzero(touched[faces].all(axis=1))
    keys = vertex_set_keys(np.concatenate([faces[candidates], facets]))
    face_keys, facet_keys = keys[: len(candidates)], keys[len(candidates) :]
    order = np.argsort(face_keys, kind="stable")
    place = np.searchsorted(face_keys, facet_keys, sorter=order)
    matched = place < len(order)
    matched[matched] = face_keys[order[place[matched]]] == facet_keys[matched]
    result = np.full(len(facets), -1, dtype=np.int64)
    result[matched] = candidates[order[place[matched]]]
    return result


def face_pairs(mesh: Mesh) -> np.ndarray:
    """Every interior face once: rows (k, f, neighbor, neighbor's face), shape (n, 4), k ascending.

    The first side is the one with the lower (k, f), with k as the whole mesh numbers it.
    Periodic faces are interior.
    """
    k, f = np.nonzero(mesh.neighbors >= 0)
    pairs = np.stack([k, f, mesh.neighbors[k, f], mesh.neighbor_faces[k, f]], axis=1)
    faces = mesh.dim + 1
    number = np.arange(mesh.K) if mesh.numbers is None else mesh.numbers
    mine, theirs = number[pairs[:, [0, 2]]].T * faces + pairs[:, [1, 3]].T
    once = mine < theirs
    return pairs[once].astype(np.int32)


def same_side(
    faces: np.ndarray, neighbor_faces: np.ndarray, face_permutation: np.ndarray, dim: int
) -> np.ndarray:
    """Whether two positively oriented simplices lie on the same side of the face they share.

    Face f inherits the orientation (-1)^f from its element; two elements on opposite sides give
    their common face opposite orientations, so (-1)^f (-1)^f' sign(permutation) must be -1. Exact:
    no coordinate is looked at.
    """
    signs = np.rint(np.linalg.det(np.eye(dim)[vertex_permutations(dim)])).astype(int)
    parity = 1 - 2 * ((faces + neighbor_faces) % 2)
    return parity * signs[face_permutation] > 0


def make_periodic(mesh: Mesh, name_a: str, name_b: str) -> Mesh:
    """Join two boundaries that are translates of each other, for periodic problems.

    The translation is the difference of the mean vertex positions. Vertices are matched within
    1e-5 of the shortest edge, faces and their permutations then by vertex number. No vertex is
    merged: the mesh keeps its coordinates, and even a single layer of elements may be joined to
    itself.

    Parameters
    ----------
    mesh : Mesh
    name_a, name_b : str
        Names of two boundaries. Their faces leave ``boundary``, under every name.

    Returns
    -------
    Mesh

    Raises
    ------
    ValueError
        if a name is unknown, or both are the same.
    MeshError
        if the boundaries are not translates of each other, vertex by vertex and face by face, or
        face the same way.
    """
    if name_a == name_b:
        raise ValueError(f"name_a and name_b must differ, both are {name_a!r}")
    side_a, side_b = mesh.faces(name_a), mesh.faces(name_b)
    vertices_a, vertices_b = (
        mesh.elements[side[:, :1], face_vertices(mesh.dim)[side[:, 1]]] for side in (side_a, side_b)
    )
    partner = _translated_vertices(mesh, name_a, name_b, side_a, vertices_a, vertices_b)

    faces_per_element = mesh.dim + 1
    row_a, row_b = (side[:, 0] * faces_per_element + side[:, 1] for side in (side_a, side_b))
    keys = vertex_set_keys(np.concatenate([vertices_a, partner[vertices_b]]))
    order_a, order_b = np.argsort(keys[: len(row_a)]), np.argsort(keys[len(row_a) :])
    unmatched = np.flatnonzero(keys[: len(row_a)][order_a] != keys[len(row_a) :][order_b])
    if unmatched.size:
        k, f = side_a[order_a[unmatched[0]]]
        raise MeshError(
            f"boundaries {name_a!r} and {name_b!r} have matching vertices but differ in how these "
            f"form faces, for one at face {f} of element {k}: mesh both sides alike"
        )
    row_a, row_b = row_a[order_a], row_b[order_b]
    vertices_a, vertices_b = vertices_a[order_a], partner[vertices_b[order_b]]

    links = tuple(
        array.copy() for array in (mesh.neighbors, mesh.neighbor_faces, mesh.face_permutation)
    )
    _join(links, row_a, row_b, vertices_a, vertices_b)
    permutation = links[2].reshape(-1)[row_a]
    folded = same_side(row_a % faces_per_element, row_b % faces_per_element, permutation, mesh.dim)
    if folded.any():
        raise MeshError(
            f"boundaries {name_a!r} and {name_b!r} face the same way: the mesh lies on the same "
            "side of both, so they cannot be the two ends of a period"
        )
    joined = np.concatenate([row_a, row_b])
    boundary = {
        name: left
        for name, faces in mesh.boundary.items()
        if len(left := faces[~np.isin(faces[:, 0] * faces_per_element + faces[:, 1], joined)])
    }
    neighbors, neighbor_faces, face_permutation = links
    return replace(
        mesh,
        neighbors=neighbors,
        neighbor_faces=neighbor_faces,
        face_permutation=face_permutation,
        boundary=boundary,
    )


def periodic_shift(mesh: Mesh) -> np.ndarray:
    """Where the neighbor stands relative to me: (K, dim+1, dim), zero but on periodic faces.

    A point x on my face k, f is the point ``x + periodic_shift(mesh)[k, f]`` of the neighbor.
    """
    shift = np.zeros((*mesh.neighbors.shape, mesh.dim))
    k, f = np.nonzero(mesh.neighbors >= 0)
    local = face_vertices(mesh.dim)
    # The neighbor's face vertex 0 is my face vertex perm[0].
    first = vertex_permutations(mesh.dim)[mesh.face_permutation[k, f], 0]
    mine = mesh.elements[k, local[f, first]]
    theirs = mesh.elements[mesh.neighbors[k, f], local[mesh.neighbor_faces[k, f], 0]]
    shift[k, f] = mesh.vertices[theirs] - mesh.vertices[mine]
    return shift


def face_node_match(nodes: np.ndarray, face_nodes: np.ndarray) -> np.ndarray:
    """Which node of a neighbor's face meets each node of mine, for every way two faces can meet.

    There are (dim+1)^2 dim! ways: my face f, the neighbor's face g, and the permutation between
    their vertices. This is the global list of index lists of Klöckner et al. (2009), section 5.3.
    Nodes are matched on the reference element, so mesh coordinates and their rounding play no part.

    Parameters
    ----------
    nodes : (Np, dim)
        Nodes of the biunit reference simplex, with the symmetry of the simplex on each face.
    face_nodes : (dim+1, Nfp) ints
        Numbers of the nodes on each face.

    Returns
    -------
    (dim+1, dim+1, dim!, Nfp) int32
        Entry [f, g, p, i] is the position in ``face_nodes[g]`` of the neighbor's node that meets my
        node ``face_nodes[f, i]`` when ``face_permutation`` is p.

    Raises
    ------
    ValueError
        if a face node lies off its face, or the nodes of two faces do not map to each other under
        some permutation.
    """
    weights, face_nodes = barycentric(nodes), np.asarray(face_nodes)
    dim = weights.shape[1] - 1
    if face_nodes.ndim != 2 or len(face_nodes) != dim + 1:
        raise ValueError(f"face_nodes must have shape ({dim + 1}, Nfp), got {face_nodes.shape}")
    tolerance = 1e-8  # in barycentric coordinates; distinct nodes are 1e-2 apart and more
    for f in range(dim + 1):
        if np.abs(weights[face_nodes[f], f]).max() > tolerance:
            raise ValueError(f"face_nodes[{f}] holds nodes that do not lie on face {f}")
    local = face_vertices(dim)
    on_face = np.stack([weights[face_nodes[f]][:, local[f]] for f in range(dim + 1)])
    # The neighbor's face vertex j is my face vertex perm[j]: a point of mine with weights w has,
    # seen from there, the weights w[perm]. Axes below: f, g, p, my node, its node.
    mine = np.moveaxis(on_face[..., vertex_permutations(dim)], 2, 1)
    distance = np.abs(mine[:, None, :, :, None] - on_face[None, :, None, None]).max(axis=-1)
    match = distance.argmin(axis=-1)
    bijective = (np.sort(match, axis=-1) == np.arange(face_nodes.shape[1])).all()
    if distance.min(axis=-1).max() > tolerance or not bijective:
        raise ValueError(
            "the face nodes are not symmetric: permuting the vertices of a face must map its nodes "
            "onto the nodes of every face"
        )
    return match.astype(np.int32)


def exterior_nodes(mesh: Mesh, nodes: np.ndarray, face_nodes: np.ndarray) -> np.ndarray:
    """For every face node, the volume node of the neighbor that it meets.

    Parameters
    ----------
    mesh : Mesh
    nodes, face_nodes
        As for ``face_node_match``.

    Returns
    -------
    (K, dim+1, Nfp) int32
        Indices k Np + n into a field of shape (K, Np), flattened. On the boundary, where there is
        no neighbor, the node's own index.

    Raises
    ------
    ValueError
        as ``face_node_match``, or if K Np does not fit 32 bits.
    """
    Np, face_nodes = len(nodes), np.asarray(face_nodes)
    if mesh.K * Np > np.iinfo(np.int32).max:
        raise ValueError(f"K Np = {mesh.K * Np} nodes do not fit 32-bit indices")
    match = face_node_match(nodes, face_nodes)
    # Volume node numbers instead of positions in the face.
    volume = np.stack([face_nodes[g][match[:, g]] for g in range(mesh.dim + 1)], axis=1)
    volume = volume.astype(np.int32)
    interior = np.arange(mesh.K, dtype=np.int32)[:, None, None] * np.int32(Np)
    f = np.broadcast_to(np.arange(mesh.dim + 1), mesh.neighbors.shape)
    exterior = volume[f, mesh.neighbor_faces, mesh.face_permutation]
    exterior += mesh.neighbors[..., None] * np.int32(Np)
    k, f = np.nonzero(mesh.neighbors < 0)
    exterior[k, f] = interior[k, 0] + face_nodes[f]
    return exterior


def _join(links, row_a, row_b, vertices_a, vertices_b):
    """Write both sides of face pairs into (neighbors, neighbor_faces, face_permutation).

    `row_a`, `row_b` are rows of ``all_faces``; `vertices_a`, `vertices_b` (n, dim) their vertices
    in local order and in one numbering.
    """
    neighbors, neighbor_faces, face_permutation = links
    faces_per_element = neighbors.shape[1]
    for mine, theirs, my_vertices, their_vertices in (
        (row_a, row_b, vertices_a, vertices_b),
        (row_b, row_a, vertices_b, vertices_a),
    ):
        neighbors.reshape(-1)[mine] = theirs // faces_per_element
        neighbor_faces.reshape(-1)[mine] = theirs % faces_per_element
        face_permutation.reshape(-1)[mine] = _permutation_index(my_vertices, their_vertices)


def _permutation_index(my_vertices: np.ndarray, their_vertices: np.ndarray) -> np.ndarray:
    """Row of ``vertex_permutations`` with ``their_vertices[:, j] == my_vertices[:, perm[j]]``."""
    dim = my_vertices.shape[1]
    perm = (their_vertices[:, :, None] == my_vertices[:, None, :]).argmax(axis=2)
    digits = dim ** np.arange(dim)[::-1]
    index_of = np.full(dim**dim, -1, dtype=np.int32)
    permutations = vertex_permutations(dim)
    index_of[permutations @ digits] = np.arange(len(permutations))
    return index_of[perm @ digits]


def _translated_vertices(mesh, name_a, name_b, side_a, vertices_a, vertices_b):
    """Map each vertex of boundary b to its translate on a: (Nv,) ints, -1 off boundary b."""
    set_a, set_b = np.unique(vertices_a), np.unique(vertices_b)
    if len(vertices_a) != len(vertices_b) or len(set_a) != len(set_b):
        raise MeshError(
            f"boundaries {name_a!r} and {name_b!r} cannot be joined: {len(vertices_a)} faces with "
            f"{len(set_a)} vertices against {len(vertices_b)} faces with {len(set_b)} vertices"
        )
    points_a, points_b = mesh.vertices[set_a], mesh.vertices[set_b]
    shift = points_b.mean(axis=0) - points_a.mean(axis=0)
    corners = mesh.vertices[mesh.elements[side_a[:, 0]]]
    i, j = np.triu_indices(mesh.dim + 1, 1)
    shortest = np.linalg.norm(corners[:, i] - corners[:, j], axis=2).min()
    distance, match = cKDTree(points_b).query(points_a + shift)
    worst = distance.argmax()
    if distance[worst] > PERIODIC_TOLERANCE * shortest or len(np.unique(match)) != len(match):
        raise MeshError(
            f"boundaries {name_a!r} and {name_b!r} are not translates of each other: vertex "
            f"{set_a[worst]} at {points_a[worst]} moved by {shift} misses the nearest vertex by "
            f"{distance[worst]:.3g}, with a shortest edge of {shortest:.3g}"
        )
    partner = np.full(len(mesh.vertices), -1, dtype=np.int64)
    partner[set_b[match]] = set_a
    return partner
