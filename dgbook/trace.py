"""Which node lies opposite which: the face nodes of a nodal element on a mesh, from either side."""

from dataclasses import dataclass

import numpy as np

from dgbook.element import NodalElement
from dgbook.mesh import Mesh, exterior_nodes, face_node_match


@dataclass(frozen=True, eq=False)
class Trace:
    """Index arrays that fetch both traces of a field on every face.

    A field of shape (K, Np), flattened, has at node ``i`` of face ``f`` of element ``k`` the
    interior value ``field[interior[k, f, i]]`` and the exterior value
    ``field[exterior[k, f, i]]``.

    Attributes
    ----------
    nodes : int
        K Np, the size of such a field.
    interior : (K, dim+1, Nfp) int32
        The element's own nodes.
    exterior : (K, dim+1, Nfp) int32
        The nodes of the neighbor that they meet; on the boundary the own nodes again.
    boundary_faces : (nb, 2) int32
        Every boundary face once, rows (element, face), ascending.
    links : (K, dim+1) int32
        ``exterior`` in one word a face: ``neighbor * ways + way`` where there is a neighbor, else
        ``-1 - b`` on the boundary face ``boundary_faces[b]``.
    opposite : (ways, Nfp) int32
        ``exterior[k, f, i] == neighbor * Np + opposite[way, i]``. A way to meet is the number of
        the neighbor's face and the permutation between the vertices: (dim+1) dim! ways, 2 of
        segments, 6 of triangles, 24 of tetrahedra.
    """

    nodes: int
    interior: np.ndarray
    exterior: np.ndarray
    boundary_faces: np.ndarray
    links: np.ndarray
    opposite: np.ndarray

    @property
    def ways(self) -> int:
        """In how many ways a neighbor's face can meet one's own."""
        return len(self.opposite)

    @property
    def ghosts(self) -> int:
        """Number of ghost nodes, nb Nfp: room for an exterior value at each boundary face node."""
        return len(self.boundary_faces) * self.opposite.shape[1]

    @property
    def exterior_or_ghost(self) -> np.ndarray:
        """``exterior``, but on the boundary the ghost nodes, (K, dim+1, Nfp) int32.

        Ghost nodes stand behind all others: node i of boundary face b is number
        ``K Np + b Nfp + i`` of an array of ``K Np + ghosts`` values.
        """
        indices = self.exterior.copy()
        k, f = self.boundary_faces.T
        ghosts = self.nodes + np.arange(self.ghosts, dtype=np.int32)
        indices[k, f] = ghosts.reshape(-1, indices.shape[2])
        return indices


def trace(mesh: Mesh, element: NodalElement) -> Trace:
    """The index arrays of `element` on `mesh`.

    Nodes are matched by the permutation of the faces' vertices, on the reference element: no
    coordinates are compared, and periodic faces are like others.

    Raises
    ------
    ValueError
        If mesh and element differ in dimension, or an index does not fit 32 bits.
    """
    if mesh.dim != element.dim:
        raise ValueError(f"element.dim = {element.dim}; this mesh needs {mesh.dim}")
    match = face_node_match(element.nodes, element.face_nodes)
    # A face node has the same barycentric coordinates on every face, so that the match does not
    # depend on the own face, match[0] == match[1] == ...
    volume = np.stack([element.face_nodes[g][match[0, g]] for g in range(mesh.dim + 1)])
    permutations = volume.shape[1]
    ways = len(volume) * permutations
    boundary_faces = mesh.boundary_faces
    largest = max(mesh.K * ways, mesh.K * element.Np + len(boundary_faces) * element.Nfp)
    if largest > np.iinfo(np.int32).max:
        raise ValueError(
            f"mesh.K = {mesh.K} elements of order {element.order} need indices up to {largest}; "
            f"allowed: {np.iinfo(np.int32).max}, the largest of 32 bits"
        )
    way = mesh.neighbor_faces * permutations + mesh.face_permutation
    links = mesh.neighbors * ways + way
    k, f = boundary_faces.T
    links[k, f] = -1 - np.arange(len(k))
    own = np.arange(mesh.K, dtype=np.int32)[:, None, None] * element.Np
    return Trace(
        nodes=mesh.K * element.Np,
        interior=(own + element.face_nodes).astype(np.int32),
        exterior=exterior_nodes(mesh, element.nodes, element.face_nodes),
        boundary_faces=boundary_faces,
        links=links.astype(np.int32),
        opposite=volume.reshape(ways, -1).astype(np.int32),
    )
