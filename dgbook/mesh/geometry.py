"""The geometry of affine simplices: Jacobians, normals, sizes and node coordinates."""

from dataclasses import dataclass

import numpy as np

from .mesh import Mesh


@dataclass(frozen=True, eq=False)
class GeometricFactors:
    """What an affine DG operator needs to know of each element.

    The map from the biunit reference simplex, with vertices (-1,..,-1), (1,-1,..), (-1,1,..), ...,
    is x = sum_i lambda_i(r) v_i, so every entry is one number an element or a face.

    Attributes
    ----------
    jacobian : (K,)
        Determinant of dx/dr, equal to the element's measure over the reference simplex's
        (2 for the segment, 2 for the triangle, 4/3 for the tetrahedron).
    rst_xyz : (K, dim, dim)
        Derivatives of the inverse map: ``rst_xyz[k, i, j]`` is d r_i / d x_j.
    normals : (K, dim+1, dim)
        Outward unit normal of each face.
    face_jacobian : (K, dim+1)
        sJ, the face's measure over its reference measure (1 for a point, 2 for a segment, 2 for a
        triangle).
    face_scale : (K, dim+1)
        Fs = sJ / J, the factor in front of the lifted flux.
    """

    jacobian: np.ndarray
    rst_xyz: np.ndarray
    normals: np.ndarray
    face_jacobian: np.ndarray
    face_scale: np.ndarray

    @property
    def altitude(self) -> np.ndarray:
        """Distance of vertex f from face f, which is 2 / Fs in every dimension, (K, dim+1)."""
        return 2 / self.face_scale

    @property
    def inscribed_diameter(self) -> np.ndarray:
        """Diameter of the largest ball in each element, (K,).

        The inradius is the harmonic sum of the altitudes: 1/r = sum_f 1/altitude_f.
        """
        return 4 / self.face_scale.sum(axis=1)


def map_derivatives(vertices: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Derivatives of the affine maps, shape (K, dim, dim): entry [k, i, j] is d x_i / d r_j."""
    corners = vertices[elements]
    return np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2) / 2


def adjugates(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """det(x) x^-1 and det(x) of 3 x 3 matrices, (K, 3, 3) and (K, 1, 1), all of them at once.

    A library takes inverses one by one: of thousands of small ones that takes ten times as long.
    """
    a, b, c = np.moveaxis(x, 2, 0)
    rows = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=1)
    return rows, (a * rows[:, 0]).sum(axis=1)[:, None, None]


def inverses(x: np.ndarray) -> np.ndarray:
    """x^-1 of 3 x 3 matrices, (K, 3, 3); see ``adjugates``."""
    rows, det = adjugates(x)
    return rows / det


def geometric_factors(mesh: Mesh) -> GeometricFactors:
    """Geometric factors of every element; see ``GeometricFactors`` for shapes and scaling.

    Everything follows from the gradients g_f = 2 grad(lambda_f) of the barycentric coordinates
    (for f >= 1 these are the rows of dr/dx, and they sum to zero): lambda_f falls from 1 at
    vertex f to 0 on face f, so the outward normal is -g_f/|g_f|, the altitude is 2/|g_f|, and
    Fs = sJ/J = 2/altitude = |g_f|.
    """
    xyz_rst = map_derivatives(mesh.vertices, mesh.elements)
    jacobian = np.linalg.det(xyz_rst)
    rst_xyz = np.linalg.inv(xyz_rst)
    gradients = np.concatenate([-rst_xyz.sum(axis=1, keepdims=True), rst_xyz], axis=1)
    face_scale = np.linalg.norm(gradients, axis=2)
    return GeometricFactors(
        jacobian=jacobian,
        rst_xyz=rst_xyz,
        normals=-gradients / face_scale[..., None],
        face_jacobian=face_scale * jacobian[:, None],
        face_scale=face_scale,
    )


def barycentric(points: np.ndarray) -> np.ndarray:
    """Barycentric coordinates of points of the biunit simplex: (n, dim) to (n, dim+1).

    lambda_i = (1 + r_i)/2 for i >= 1, and lambda_0 is what they leave of 1.
    """
    weights = (1 + np.asarray(points, dtype=np.float64)) / 2
    return np.concatenate([1 - weights.sum(axis=1, keepdims=True), weights], axis=1)


def nodes_xyz(
    mesh: Mesh, element_nodes: np.ndarray, some: np.ndarray | slice = slice(None)
) -> np.ndarray:
    """Physical coordinates of reference points in every element, or in some.

    Parameters
    ----------
    mesh : Mesh
    element_nodes : (Np, dim)
        Points of the biunit reference simplex, such as ``NodalElement.nodes``.
    some : ints or slice, optional
        Of which elements.

    Returns
    -------
    (dim, K, Np) float64, so that ``x, y, z = nodes_xyz(mesh, nodes)``.

    Raises
    ------
    ValueError
        if the points have another number of dimensions than the mesh.
    """
    element_nodes = np.asarray(element_nodes, dtype=np.float64)
    if element_nodes.ndim != 2 or element_nodes.shape[1] != mesh.dim:
        raise ValueError(
            f"element_nodes must have shape (Np, {mesh.dim}) on this mesh, "
            f"got {element_nodes.shape}"
        )
    corners = mesh.vertices[mesh.elements[some]]
    return np.ascontiguousarray(np.moveaxis(barycentric(element_nodes) @ corners, 2, 0))
