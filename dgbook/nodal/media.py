"""What the elements of a mesh are filled with: a positive number for each."""

from __future__ import annotations

import numpy as np


def material(name: str, value: float | np.ndarray, K: int) -> np.ndarray:
    """A material's coefficient, positive, as an array (K,) from a number or such an array.

    Raises
    ------
    ValueError
        If the shape is another, or a number is not positive and finite; the message has `name`.
    """
    values = np.asarray(value, dtype=np.float64)
    if values.shape not in ((), (K,)):
        raise ValueError(f"{name} has shape {values.shape}; allowed: a number or ({K},)")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError(f"{name} = {value}; allowed: positive and finite")
    return np.broadcast_to(values, (K,))
