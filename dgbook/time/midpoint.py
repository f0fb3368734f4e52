"""The explicit midpoint rule of order 2: a half step to find the slope, then the whole step.

It is the method of the swept papers: predictor u1/2 = u + dt/2 f(u), then u' = u + dt f(u1/2)
(magee2017, section 5.2: Kuramoto-Sivashinsky and Euler equations).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dgbook.gpu import Kernel, cuda, jit
from dgbook.time.stepping import Rhs, integrator, real_type

A = (0.0, 0.5)  # stage s starts at u + A_s dt k_{s-1}
B = (0.0, 1.0)
C = (0.0, 0.5)
ORDER = 2


def advance(rhs: Rhs, u: np.ndarray, t: float, dt: float) -> None:
    """One step from time t; u is changed in place."""
    middle = u + (A[1] * dt) * rhs(u, t + C[0] * dt)
    u += (B[1] * dt) * rhs(middle, t + C[1] * dt)


integrate = integrator(advance)


def make_update(dtype: Any) -> Kernel:
    """The kernel that ends either stage: ``result = u + h slope``, one thread a degree of freedom.

    With h = dt/2 and an array of its own as `result` it is the predictor; with h = dt, the middle's
    slope and `result` = u it is the step. It moves 3 words a degree of freedom and does 2 flops.

    Parameters
    ----------
    dtype : float32 or float64
        Of the arrays; the kernel closes over it, so that none of its arithmetic is wider.

    Returns
    -------
    Kernel
        ``update[blocks, threads](slope, u, result, h)``, with one-dimensional arrays and at
        least u.size threads. Give h as ``np.float32(h)`` to an fp32 kernel: a Python float
        arrives as fp64 and must be converted there.

    Raises
    ------
    ValueError
        If dtype is neither float32 nor float64.
    """
    real = real_type(dtype)

    @jit
    def midpoint_update(slope, u, result, h):
        i = cuda.grid(1)
        if i < u.size:
            result[i] = u[i] + real(h) * slope[i]

    return midpoint_update
