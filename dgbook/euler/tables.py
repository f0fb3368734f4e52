"""What quadrature DG needs on the reference triangle: points, weights, and the basis at them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dgbook.element import (
    NodalElement,
    cartesian,
    gauss_jacobi,
    grad_vandermonde,
    triangle_quadrature,
)
from dgbook.element.frozen import read_only, shared_property

MAX_ORDER = 6


@dataclass(frozen=True)
class Tables:
    """Quadrature exact to degree 2p+1 in the triangle and on its edges, and the basis there.

    chen, section 3.4.1, with the nodal basis of `NodalElement` (2, p) as phi. Its trace on an edge
    depends on the p+1 nodes of that edge alone (for p = 0 on the one node there is), so that a
    kernel needs not all Np columns of `phi_edge` but ``phi_trace`` and ``edge_nodes``.

    Edge f is opposite vertex f, and runs counter-clockwise: from vertex f+1 to f+2, modulo 3. All
    elements are positively oriented, so that the two sides of an edge run along it in opposite
    directions: **point q of one side is point Ne-1-q of the other**, whatever their edges.

    Parameters
    ----------
    order : int
        Polynomial degree p, 0 to 6.
    dtype : {"float64", "float32"}
        Of the arrays; they are computed in float64.

    Raises
    ------
    ValueError
        If `order` is out of range.

    Notes
    -----
    Arrays are computed when first asked for, shared by equal tables, and read-only. Weights are
    those of the biunit triangle, of area 2, and of an edge of length 2: multiply by the determinant
    J of dx/dr, and by half the length of an edge.
    """

    order: int
    dtype: str = "float64"

    def __post_init__(self) -> None:
        if self.order not in range(MAX_ORDER + 1):
            raise ValueError(f"order = {self.order!r}; allowed: 0 to {MAX_ORDER}")

    @property
    def element(self) -> NodalElement:
        """The basis."""
        return NodalElement(2, self.order)

    @property
    def Np(self) -> int:
        """Number of basis functions, (p+1)(p+2)/2."""
        return self.element.Np

    @property
    def Nfp(self) -> int:
        """Number of basis functions that do not vanish on an edge, p+1."""
        return self.element.Nfp

    @property
    def Nq(self) -> int:
        """Number of quadrature points in the triangle."""
        return len(self.w_volume)

    @property
    def Ne(self) -> int:
        """Number of quadrature points on an edge, p+1."""
        return self.order + 1

    @property
    def _degree(self) -> int:
        return 2 * self.order + 1

    def _cast(self, values: np.ndarray) -> np.ndarray:
        return read_only(values.astype(self.dtype))

    # -- in the triangle ---------------------------------------------------------------------

    @shared_property
    def points_volume(self) -> np.ndarray:
        """Reference coordinates of the points in the triangle, (Nq, 2) float64."""
        return read_only(triangle_quadrature(self._degree)[0])

    @shared_property
    def w_volume(self) -> np.ndarray:
        """Weights in the triangle, (Nq,), of sum 2."""
        return self._cast(triangle_quadrature(self._degree)[1])

    @shared_property
    def phi_volume(self) -> np.ndarray:
        """``[q, i]`` = phi_i at point q, (Nq, Np)."""
        return self._cast(self.element.interpolation(self.points_volume))

    @shared_property
    def dphi_volume(self) -> np.ndarray:
        """``[a, q, i]`` = d phi_i / d r_a at point q, (2, Nq, Np)."""
        gradient = grad_vandermonde(2, self.order, self.points_volume)
        return self._cast(gradient @ self.element.inverse_vandermonde)

    @shared_property
    def mass(self) -> np.ndarray:
        """M, the integrals of phi_i phi_j over the reference triangle, (Np, Np)."""
        return self._cast(self.element.mass)

    @shared_property
    def inverse_mass(self) -> np.ndarray:
        """M^-1, (Np, Np)."""
        vandermonde = self.element.vandermonde
        return self._cast(vandermonde @ vandermonde.T)

    # -- on the edges ------------------------------------------------------------------------

    @shared_property
    def _gauss(self) -> tuple[np.ndarray, np.ndarray]:
        return gauss_jacobi(self.Ne, 0, 0)

    @shared_property
    def points_edge(self) -> np.ndarray:
        """Reference coordinates of the points on the edges, (3, Ne, 2) float64, in running order.

        They are Gauss points: from the start to the end of an edge, symmetric about its middle.
        """
        bary = np.zeros((3, self.Ne, 3))
        for f in range(3):
            bary[f, :, (f + 1) % 3] = (1 - self._gauss[0]) / 2
            bary[f, :, (f + 2) % 3] = (1 + self._gauss[0]) / 2
        return read_only(cartesian(bary.reshape(-1, 3)).reshape(3, self.Ne, 2))

    @shared_property
    def w_edge(self) -> np.ndarray:
        """Weights on an edge, (Ne,), of sum 2."""
        return self._cast(self._gauss[1])

    @shared_property
    def edge_nodes(self) -> np.ndarray:
        """The nodes of every edge in running order, (3, Nfp) int32."""
        nodes = np.array(self.element.face_nodes, dtype=np.int32)
        nodes[1] = nodes[1, ::-1]  # `face_nodes` runs from vertex 0 to 2, the edge from 2 to 0
        return read_only(nodes)

    @shared_property
    def phi_trace(self) -> np.ndarray:
        """``[q, j]``: the function of node ``edge_nodes[f, j]`` at point q of edge f, (Ne, Nfp).

        It is the same for the three edges, and the same from either end of an edge:
        ``phi_trace[::-1, ::-1] == phi_trace``.
        """
        return self._cast(NodalElement(1, self.order).interpolation(self._gauss[0][:, None]))

    @shared_property
    def phi_edge(self) -> np.ndarray:
        """``[f, q, i]`` = phi_i at point q of edge f, (3, Ne, Np); zero for nodes off the edge."""
        phi = np.zeros((3, self.Ne, self.Np), self.dtype)
        for f, nodes in enumerate(self.edge_nodes):
            phi[f][:, nodes] = self.phi_trace
        return read_only(phi)
