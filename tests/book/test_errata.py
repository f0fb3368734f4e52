"""What the errata page calls wrong in the papers is wrong."""

from __future__ import annotations

import numpy as np

from dgbook.element import NodalElement
from dgbook.lab.reproduce import find


def test_klockner_6b_needs_the_inverse_map() -> None:
    """Integrals of l_i dl_j/dx on a random tetrahedron: with dr/dx right, as printed wrong.

    They are known without the formula: summed over i they are integrals of dl_j/dx, and applied to
    the nodal values of x_n they are integrals of l_i if n is the direction, else zero.
    """
    rng = np.random.default_rng(6)
    element = NodalElement(3, 3)
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]) + rng.uniform(
        -0.2, 0.2, (4, 3)
    )
    forward = (vertices[1:] - vertices[0]).T / 2  # dx/dr, rows are x
    J = np.linalg.det(forward)
    x = vertices[0] + (element.nodes + 1) @ forward.T
    S = np.einsum("ij,mjk->mik", element.mass, element.derivative)
    integrals = J * element.mass.sum(axis=1)

    def defect(factors: np.ndarray) -> float:
        """Largest error, `factors[n, m]` multiplying the reference matrix m for direction n."""
        stiffness = J * np.einsum("nm,mij->nij", factors, S)
        found = np.einsum("nij,jk->nki", stiffness, x)
        return float(np.abs(found - np.eye(3)[:, :, None] * integrals).max() / integrals.max())

    assert defect(np.linalg.inv(forward).T) < 1e-12
    assert defect(forward) > 0.1


def test_klockner_flux_has_its_halves_exchanged() -> None:
    """As printed, the divergence of the rows of E is the curl of E; of H, minus that of H."""
    rng = np.random.default_rng(4)
    E, H = rng.standard_normal((2, 3))

    def printed(E: np.ndarray, H: np.ndarray) -> np.ndarray:
        """The matrix F of section 6, (3, 6): rows are directions, columns fields."""
        return np.array(
            [
                [0, -E[2], E[1], 0, H[2], -H[1]],
                [E[2], 0, -E[0], -H[2], 0, H[0]],
                [-E[1], E[0], 0, H[1], -H[0], 0],
            ]
        )

    # For fields that vary along a direction d alone, the divergence is row d of F of the slopes.
    for d, direction in enumerate(np.eye(3)):
        divergence = printed(E, H)[d]
        np.testing.assert_allclose(divergence[:3], np.cross(direction, E))
        np.testing.assert_allclose(divergence[3:], -np.cross(direction, H))
        exchanged = np.concatenate([divergence[3:], divergence[:3]])
        maxwell = np.concatenate([-np.cross(direction, H), np.cross(direction, E)])
        np.testing.assert_allclose(exchanged, maxwell)


def test_klockner_speed_ups_are_under_sixty() -> None:
    """Its text gives 57 at most, which is 1.75 times short of two orders of magnitude."""
    (figure8,) = find("klockner2009", "figure8a")
    most = figure8.rows["all orders"]["GPU over CPU to"]
    assert round(100 / most, 2) == 1.75
