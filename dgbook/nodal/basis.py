"""The bases of polynomials on a tetrahedron, each with the same methods: nodal and Bernstein."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dgbook.element import NodalElement
from dgbook.nodal.bernstein import BernsteinBasis, bernstein_basis

BASES = ("nodal", "bernstein")


@dataclass(frozen=True, eq=False)
class NodalBasis:
    """The Lagrange basis of a tetrahedron, with the methods of `BernsteinBasis`.

    Attributes
    ----------
    element : NodalElement
    derivative : (3, Np, Np)
        D_i, the derivative with respect to the reference coordinate r_i.
    lift_matrix : (Np, 4 Nfp)
    """

    element: NodalElement
    derivative: np.ndarray
    lift_matrix: np.ndarray

    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """D_i, (3, Np, Np), and LIFT, (Np, 4 Nfp)."""
        return self.derivative, self.lift_matrix

    def differentiate(self, u: np.ndarray) -> np.ndarray:
        """Derivatives (n, 3, K, Np) along the reference axes, of nodal values u, (n, K, Np)."""
        return u[:, None] @ self.derivative.transpose(0, 2, 1)

    def lift(self, flux: np.ndarray) -> np.ndarray:
        """Lift of values at the face nodes, (n, K, 4, Nfp); (n, K, Np)."""
        return flux.reshape(*flux.shape[:-2], -1) @ self.lift_matrix.T

    def from_nodal(self, u: np.ndarray) -> np.ndarray:
        """The unknowns are nodal values already."""
        return u

    def to_nodal(self, u: np.ndarray) -> np.ndarray:
        """The unknowns are nodal values already."""
        return u

    def face_from_nodal(self, g: np.ndarray) -> np.ndarray:
        """The unknowns on a face are nodal values already."""
        return g


def basis_of(name: str, element: NodalElement, dtype: str) -> NodalBasis | BernsteinBasis:
    """The basis of that name of the polynomials of `element`, its numbers in `dtype`."""
    if name == "bernstein":
        return bernstein_basis(element.order, dtype)
    return NodalBasis(element, element.derivative.astype(dtype), element.lift.astype(dtype))
