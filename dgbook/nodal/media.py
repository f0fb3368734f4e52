"""What the elements of a mesh are filled with: a positive number for each."""

from __future__ import annotations

import numpy as np

from dgbook.arguments import check_range
from dgbook.mesh import Mesh


def material(name: str, value: float | np.ndarray, K: int) -> np.ndarray:
    """A material's coefficient, positive, as an array (K,) from a number or such an array.

    Raises
    ------
    ValueError
        If the shape is another, or a number is none that `check_range` allows; the message has
        `name`, the number and where it is.
    """
    values = np.asarray(value, dtype=np.float64)
    if values.shape not in ((), (K,)):
        raise ValueError(f"{name} has shape {values.shape}; allowed: a number or ({K},)")
    for k in (int(values.argmin()), int(values.argmax())):  # of NaN the first, if there is one
        where = f" in element {k}" if values.shape else ""
        check_range(f"{name} = {float(values.flat[k])}{where}", values.flat[k])
    return np.broadcast_to(values, (K,))


def beyond(mesh: Mesh, interface: float) -> np.ndarray:
    """Which elements are on the far side of the plane x = interface, (K,): 0 or 1.

    Raises
    ------
    ValueError
        If an element has vertices well on both sides.
    """
    x = mesh.vertices[mesh.elements, 0] - interface
    crossing = np.flatnonzero(x.min(axis=1) * x.max(axis=1) < -((1e-9 * np.ptp(x)) ** 2))
    if len(crossing):
        raise ValueError(
            f"{len(crossing)} elements of the mesh, the first is {crossing[0]}, cross the "
            f"interface x = {interface:g}; allowed: faces on it"
        )
    return (x.mean(axis=1) > 0).astype(int)
