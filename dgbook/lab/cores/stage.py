"""What stages of Maxwell's and acoustic waves on processor cores share: arrays and their launch."""

from __future__ import annotations

from typing import Any

import numpy as np

from dgbook.element import NodalElement
from dgbook.nodal.trace import Trace


def gathers(trace: Trace, element: NodalElement) -> tuple[np.ndarray, np.ndarray]:
    """Where both values at each face node of an element are.

    Returns
    -------
    interior : (4 Nfp,) array
        Nodes of the element itself.
    exterior : (K, 4 Nfp) array
        The nodes that they meet, as element times Np plus node.
    """
    return element.face_nodes.ravel(), trace.exterior.reshape(trace.K, -1)


def by_columns(matrices: np.ndarray) -> np.ndarray:
    """Matrices transposed: a product is a sum over columns, with the node as innermost index."""
    return np.ascontiguousarray(matrices.swapaxes(-1, -2))


class CoreStage:
    """The arrays of an operator for a compiled stage, and the stage launched on them.

    Parameters
    ----------
    kernel : function
        ``kernel(u, *arrays, res, new, a, b, dt)``.
    arrays : tuple of arrays
    real : type
        Of a real number.
    """

    def __init__(self, kernel: Any, arrays: tuple[np.ndarray, ...], real: type) -> None:
        self.kernel, self.arrays, self.real = kernel, arrays, real

    def stage(self, u, res, new, a: float, b: float, dt: float) -> None:
        """res = a res + dt du/dt, new = u + b res; states of shape (K, fields, Np)."""
        scalars = (self.real(value) for value in (a, b, dt))
        self.kernel(u, *self.arrays, res, new, *scalars)
