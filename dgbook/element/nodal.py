"""The nodal (Lagrange) reference element: nodes, derivative, mass and lift matrices."""

from dataclasses import dataclass

import numpy as np

from dgbook.arguments import check_integer

from .frozen import read_only, shared_property
from .modal import grad_vandermonde, vandermonde
from .nodes import warp_and_blend
from .simplex import (
    MAX_ORDER,
    barycentric,
    cartesian,
    face_nodes,
    space_dimension,
)


@dataclass(frozen=True)
class NodalElement:
    """Lagrange basis of total degree `order` on the warp-and-blend nodes of the biunit simplex.

    Parameters
    ----------
    dim : int
        1 (interval), 2 (triangle) or 3 (tetrahedron).
    order : int
        Polynomial degree N, 0 to 15. At order 0 the one node is the centroid, which lies on no
        face and yet is the only entry of ``face_nodes`` of each: its value is the trace.

    Raises
    ------
    TypeError, ValueError
        If `dim` or `order` is no integer, or out of range.

    Notes
    -----
    Vertices are (-1, ..., -1) and those 2 further along one axis; face f is opposite vertex f; the
    nodes are ordered as in :mod:`dgbook.element.simplex`. Two elements are equal if `dim` and
    `order` are. Matrices are computed when first asked for, shared by equal elements, and
    read-only.

    All follow from the Vandermonde matrix V of the orthonormal basis (Hesthaven and Warburton,
    Nodal Discontinuous Galerkin Methods, 2008, sections 3.1-3.2, 6.1-6.2 and 10.1).

    **Scaling.** The reference element has measure 2^dim/dim!, and each of its faces is counted as
    a biunit simplex of dimension dim-1, of measure 2^(dim-1)/(dim-1)! (a point 1, a segment 2, a
    triangle 2), whatever its length or area in the reference element. For an affine element K
    with a face F let

        J  = |K| / (2^dim / dim!),   sJ = |F| / (2^(dim-1) / (dim-1)!),   Fs = sJ / J = 2 / height,

    where the height is that of K over F. Then ``J * mass`` is the mass matrix of K,
    ``sJ * face_mass`` that of F, and ``Fs * lift`` the lift from F into K.
    """

    dim: int
    order: int

    def __post_init__(self) -> None:
        check_integer("dim", self.dim, 1, 3)
        check_integer("order", self.order, 0, MAX_ORDER)

    @property
    def Np(self) -> int:
        """Number of nodes, C(order+dim, dim)."""
        return space_dimension(self.dim, self.order)

    @property
    def Nfp(self) -> int:
        """Number of nodes of a face, C(order+dim-1, dim-1)."""
        return space_dimension(self.dim - 1, self.order)

    @shared_property
    def nodes(self) -> np.ndarray:
        """Coordinates of the nodes, (Np, dim)."""
        return read_only(warp_and_blend(self.dim, self.order))

    @shared_property
    def face_nodes(self) -> np.ndarray:
        """Numbers of the nodes on every face, (dim+1, Nfp) ints.

        Entry i has the same barycentric coordinates on every face, with respect to its vertices
        in increasing order.
        """
        return read_only(face_nodes(self.dim, self.order))

    @shared_property
    def vandermonde(self) -> np.ndarray:
        """V[i, j]: orthonormal function j at node i, (Np, Np)."""
        return read_only(vandermonde(self.dim, self.order, self.nodes))

    @shared_property
    def inverse_vandermonde(self) -> np.ndarray:
        """V^-1, (Np, Np): from nodal values to coefficients of the orthonormal basis."""
        return read_only(np.linalg.inv(self.vandermonde))

    @shared_property
    def derivative(self) -> np.ndarray:
        """D[d] = (dV/dr_d) V^-1, (dim, Np, Np): from nodal values to derivatives at the nodes."""
        gradient = grad_vandermonde(self.dim, self.order, self.nodes)
        return read_only(gradient @ self.inverse_vandermonde)

    @shared_property
    def mass(self) -> np.ndarray:
        """M = V^-T V^-1, (Np, Np): integrals of products of two Lagrange functions."""
        return read_only(self.inverse_vandermonde.T @ self.inverse_vandermonde)

    @shared_property
    def face_points(self) -> np.ndarray:
        """Coordinates of a face's nodes on the biunit simplex of dimension dim-1, (Nfp, dim-1).

        The trace of the element's own nodes, the same for every face. In three dimensions these are
        not the nodes of the triangle (see :func:`dgbook.element.nodes.warp_and_blend`).
        """
        # Any face would do. On the last one the face's vertices are numbers 0..dim-1. The quotient
        # is for order 0: it projects the centroid of the element onto that of the face.
        trace = barycentric(self.nodes[self.face_nodes[self.dim]])[:, : self.dim]
        return read_only(cartesian(trace / trace.sum(axis=1, keepdims=True)))

    @shared_property
    def face_mass(self) -> np.ndarray:
        """Mass matrix of a face as the biunit simplex of dimension dim-1, (Nfp, Nfp)."""
        inverse = np.linalg.inv(vandermonde(self.dim - 1, self.order, self.face_points))
        return read_only(inverse.T @ inverse)

    @shared_property
    def lift(self) -> np.ndarray:
        """Lift of all faces, (Np, (dim+1)*Nfp): M^-1 times the face mass matrices.

        Columns ``f*Nfp`` to ``(f+1)*Nfp`` take values at ``face_nodes[f]`` to nodal values. If u
        lifts the face function g, the integral of ``u v`` over the element is that of ``g v`` over
        the face, for every polynomial v; the scaling is that of the class notes.
        """
        inverse_mass = self.vandermonde @ self.vandermonde.T
        return read_only(np.hstack([inverse_mass[:, n] @ self.face_mass for n in self.face_nodes]))

    def interpolation(self, points: np.ndarray) -> np.ndarray:
        """Matrix (n, Np) from nodal values to the values at `points`, (n, dim).

        Raises
        ------
        ValueError
            If `points` has another shape.
        """
        return vandermonde(self.dim, self.order, points) @ self.inverse_vandermonde
