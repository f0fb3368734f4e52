"""What chan2015 shows of its matrices, Figures 1 to 5: patterns, slices, conditions, entries."""

from __future__ import annotations

import numpy as np

from dgbook.element import BernsteinElement, NodalElement


def derivative_patterns(order: int) -> dict[str, np.ndarray]:
    """Figure 1: where a nodal and a Bernstein derivative matrix are not zero, (Np, Np) bools.

    The nodal one is along r, the Bernstein one with respect to l_1. Lagrange functions are zero at
    so many nodes together with their derivatives that some entries of the first vanish as well.
    """
    nodal = NodalElement(3, order).derivative[0]
    return {
        "nodal": np.abs(nodal) > 1e-10 * np.abs(nodal).max(),
        "bernstein": BernsteinElement(3, order).derivative(1).toarray() != 0,
    }


def lift_patterns(order: int) -> dict[str, np.ndarray]:
    """Figure 2: where the lift of face 3 and its factors E_3 and L_0 are not zero, bools.

    Functions are numbered by layers away from face 3, (Np, Nfp), so that the blocks
    l_i (E_{N-i}^N)^T are seen one below the other.
    """
    element = BernsteinElement(3, order)
    columns = slice(3 * element.Nfp, None)
    return {
        "lift": np.abs(element.lift[:, columns]) > 1e-12 * np.abs(element.lift).max(),
        "E": element.lift_reduction[:, columns].toarray() != 0,
        "L_0": element.lift_face.toarray() != 0,
    }


def slices(order: int, face: int = 3) -> list[np.ndarray]:
    """Figure 3: the slices of the sweep from `face`: barycentric lattice points, (n_i, 4) each."""
    element = BernsteinElement(3, order)
    return [element.multi_indices[layer] / order for layer in element.face_layers[face]]


def condition_number(matrix: np.ndarray) -> float:
    """Ratio of the largest and the smallest non-zero singular value: chan2015, equation (4)."""
    values = np.linalg.svd(matrix, compute_uv=False)
    return float(values[0] / values[values > 1e-11 * values[0]][-1])


def condition_numbers(order: int) -> dict[str, float]:
    """Figure 4: how far a product with each operator may amplify a relative error.

    That of L_0 is (N+1)(N+3)/(2N+3): its eigenvalues are (N+1-j)(N+3+j)/2, j = 0..N (lemma A.6).
    "to nodal" is the change of basis, the "Bernstein-Vandermonde matrix" of section 4.1.
    """
    nodal, bernstein = NodalElement(3, order), BernsteinElement(3, order)
    return {
        "nodal derivative": condition_number(nodal.derivative[0]),
        "Bernstein derivative": condition_number(bernstein.derivative(1).toarray()),
        "nodal lift": condition_number(nodal.lift),
        "Bernstein lift": condition_number(bernstein.lift),
        "E_L": condition_number(bernstein.lift_reduction.toarray()),
        "L_0": condition_number(bernstein.lift_face.toarray()),
        "to nodal": condition_number(bernstein.to_nodal),
    }


def extreme_entries(order: int) -> dict[str, tuple[float, float]]:
    """Figure 5: the smallest and the largest entry of each lift matrix and of the factors."""
    nodal, bernstein = NodalElement(3, order), BernsteinElement(3, order)
    return {
        name: (float(matrix.min()), float(matrix.max()))
        for name, matrix in {
            "nodal lift": nodal.lift,
            "Bernstein lift": bernstein.lift,
            "E_L": bernstein.lift_reduction.toarray(),
            "L_0": bernstein.lift_face.toarray(),
        }.items()
    }
