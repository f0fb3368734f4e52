"""Which node lies opposite which: the face nodes of a nodal element on a mesh, from either side."""

from dataclasses import dataclass

import numpy as np

from dgbook.element import NodalElement
from dgbook.mesh import Mesh, exterior_nodes, face_node_match

WAYS = 32
"""More than the ways in which two elements can meet, and a power of 2: division is a shift."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Index arrays that fetch both traces of a field on every face.

    A field of shape (K, Np), flattened, has at node ``i`` of face ``f`` of element ``k`` the
    interior value ``field[interior[k, f, i]]`` and the exterior value ``field[exterior[k, f, i]]``.

    Kernels see *ghost elements* behind the K elements, one a boundary face, so that they fetch any
    exterior value in the same way: the first Nfp nodes of ghost ``K + b`` are for the values
    outside boundary face ``b``, the others are unused.

    Attributes
    ----------
    K, Np : int
        Elements, and nodes of each.
    interior : (K, dim+1, Nfp) int32
        The element's own nodes.
    exterior : (K, dim+1, Nfp) int32
        The nodes of the neighbor that they meet; on the boundary the own nodes again.
    boundary_faces : (nb, 2) int32
        Every boundary face once, rows (element, face), ascending.
    links : (K, dim+1) int32
        ``exterior_or_ghost`` in one word a face: ``neighbor * WAYS + way``, where the neighbor may
        be a ghost. A way to meet is the number of the neighbor's face and the permutation between
        the vertices: (dim+1) dim! ways, 2 of segments, 6 of triangles, 24 of tetrahedra; one more
        is that of ghosts.
    opposite : (ways, Nfp) int32
        ``exterior_or_ghost[k, f, i] == neighbor * Np + opposite[way, i]``.
    """

    K: int
    Np: int
    interior: np.ndarray
    exterior: np.ndarray
    boundary_faces: np.ndarray
    links: np.ndarray
    opposite: np.ndarray

    @property
    def ghosts(self) -> int:
        """Number of ghost elements, one for each boundary face."""
        return len(self.boundary_faces)

    @property
    def exterior_or_ghost(self) -> np.ndarray:
        """``exterior``, but on the boundary the nodes of the ghosts, (K, dim+1, Nfp) int32."""
        indices = self.exterior.copy()
        k, f = self.boundary_faces.T
        first = (self.K + np.arange(self.ghosts)) * self.Np
        indices[k, f] = first[:, None] + np.arange(indices.shape[2])
        return indices


def trace(mesh: Mesh, element: NodalElement) -> Trace:
    """The index arrays of `element` on `mesh`.

    Nodes are matched by the permutation of the faces' vertices, on the reference element: no
    coordinates are compared, and periodic faces are like others.

    Raises
    ------
    ValueError
        If mesh and element differ in dimension, the element has no nodes on its faces (order 0), or
        an index does not fit 32 bits.
    """
    if mesh.dim != element.dim:
        raise ValueError(f"element.dim = {element.dim}; this mesh needs {mesh.dim}")
    if element.order < 1:
        raise ValueError(
            f"order = {element.order}; allowed: 1 or more, so that there are nodes on the faces"
        )
    boundary_faces = mesh.boundary_faces
    largest = (mesh.K + len(boundary_faces)) * max(WAYS, element.Np)
    if largest > np.iinfo(np.int32).max:
        raise ValueError(
            f"mesh.K = {mesh.K} elements of order {element.order} need indices up to {largest}; "
            f"allowed: {np.iinfo(np.int32).max}, the largest of 32 bits"
        )
    match = face_node_match(element.nodes, element.face_nodes)
    # A face node has the same barycentric coordinates on every face, so that the match does not
    # depend on the own face, match[0] == match[1] == ...
    neighbors_nodes = [element.face_nodes[g][match[0, g]] for g in range(mesh.dim + 1)]
    ghosts_nodes = np.arange(element.Nfp)
    opposite = np.vstack([*neighbors_nodes, ghosts_nodes]).astype(np.int32)

    permutations = match.shape[2]
    links = mesh.neighbors * WAYS + mesh.neighbor_faces * permutations + mesh.face_permutation
    k, f = boundary_faces.T
    links[k, f] = (mesh.K + np.arange(len(k))) * WAYS + len(opposite) - 1
    first = np.arange(mesh.K, dtype=np.int32)[:, None, None] * element.Np
    return Trace(
        K=mesh.K,
        Np=element.Np,
        interior=(first + element.face_nodes).astype(np.int32),
        exterior=exterior_nodes(mesh, element.nodes, element.face_nodes),
        boundary_faces=boundary_faces,
        links=links,
        opposite=opposite,
    )
