"""The classical Runge-Kutta method of order 4: four stages, the one chen's paper uses.

References
----------
Kutta, "Beitrag zur näherungsweisen Integration totaler Differentialgleichungen", Z. Math. Phys. 46,
1901; chen, section 2.4, equation (9).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dgbook.gpu import Kernel, cuda, jit
from dgbook.time.stepping import Rhs, advancing, integrator, real_type

A = (0.0, 0.5, 0.5, 1.0)  # stage s starts at u + A_s dt k_{s-1}
B = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
C = (0.0, 0.5, 0.5, 1.0)
ORDER = 4


def stages(rhs: Rhs, u: np.ndarray, t: float, dt: float) -> Iterator[np.ndarray]:
    """The stages of a step from time t; u is changed in place."""
    k = np.zeros_like(u)
    total = u.copy()
    for a, b, c in zip(A, B, C, strict=True):
        at = u + (a * dt) * k
        yield at
        k = rhs(at, t + c * dt)
        total += (b * dt) * k
    u[...] = total


advance = advancing(stages)
integrate = integrator(advance)


class Update(NamedTuple):
    """The two kernels of a step: `intermediate` after stages 0 to 2, `final` after stage 3."""

    intermediate: Kernel
    final: Kernel


def make_update(dtype: Any) -> Update:
    """The kernels that end a stage, one thread a degree of freedom.

    * ``intermediate[blocks, threads](k, u, start, total, v, a, b)``: ``v = u + a k``, where the
      next slope is taken, and ``total = start + b k``. Stage 0 gives u as `start`, stages 1 and 2
      give `total`. With a = dt A_{s+1}, b = dt B_s. Moves 5 words a degree of freedom (4 in stage
      0, where u is `start`) and does 4 flops.
    * ``final[blocks, threads](k, total, u, b)``: ``u = total + b k``. Moves 3 words, does 2 flops.

    Parameters
    ----------
    dtype : float32 or float64
        Of the arrays; the kernels close over it, so that none of their arithmetic is wider. Give
        the scalars as ``np.float32(...)`` to fp32 kernels: a Python float arrives as fp64 and
        must be converted there.

    Returns
    -------
    Update
        Kernels that take one-dimensional arrays and at least u.size threads.

    Raises
    ------
    ValueError
        If dtype is neither float32 nor float64.
    """
    real = real_type(dtype)

    @jit
    def rk4_intermediate(k, u, start, total, v, a, b):
        i = cuda.grid(1)
        if i < u.size:
            slope = k[i]
            v[i] = u[i] + real(a) * slope
            total[i] = start[i] + real(b) * slope

    @jit
    def rk4_final(k, total, u, b):
        i = cuda.grid(1)
        if i < u.size:
            u[i] = total[i] + real(b) * k[i]

    return Update(rk4_intermediate, rk4_final)
