"""An order of the elements in which neighbors are close, along a curve, and the way back."""

from __future__ import annotations

import numpy as np

from .mesh import Mesh

BITS = 30
"""Of an element's number on the curve, shared by the coordinates."""


def along_a_curve(mesh: Mesh) -> np.ndarray:
    """The elements in an order in which neighbors are close, (K,): Morton's curve.

    The bits of the coordinates of the centroids, on a grid of 2^15 cells each way in two dimensions
    and 2^10 in three, in turn make a number, by which the elements are sorted. Blocks that run at
    the same time then share most of their faces, which they find in the caches. Elements that meet
    ghosts come behind all others, ghosts stay last.
    """
    bits = BITS // mesh.dim
    x = mesh.vertices[mesh.elements].mean(axis=1)
    x = (x - x.min(axis=0)) / np.ptp(mesh.vertices, axis=0).max()
    cells = np.minimum(2**bits * x, 2**bits - 1).astype(np.int64)
    code = np.zeros(mesh.K, np.int64)
    for bit in range(bits):
        for d in range(mesh.dim):
            code |= (cells[:, d] >> bit & 1) << (mesh.dim * bit + d)
    code[: mesh.owned] |= mesh.at_edge.astype(np.int64) << BITS
    along = np.argsort(code[: mesh.owned], kind="stable")
    return np.concatenate([along, np.arange(mesh.owned, mesh.K)])


def inverse_permutation(order: np.ndarray) -> np.ndarray:
    """Where each number from 0 to K - 1 stands in an order of them, (K,)."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place
