"""The method 4(14) of `dgbook.time.ndb14` for linear equations, as a product of short steps.

One step of u' = L u multiplies u by a polynomial of dt L, the method's stability polynomial. It is
a product of seven factors 1 + beta z + alpha beta z^2, with z = dt L, and each is two stages:

    w = v + alpha dt L v,    then    v = v + beta dt L w.

Only two arrays are needed, and the second stage changes its array in place, since it reads
neighbors in the other. So a stage moves 2.5 words per degree of freedom on average, where one of
the low-storage form moves 4. Rounding is smaller, too: the low-storage form has coefficients up to
7 that cancel.

**What depends on time.** Let u' = L u + g(t). With g and its derivatives among the unknowns these
equations are autonomous, and the array that stage s reads, P_s(dt L) u at first, gets beside it
P_s(dt d/dt) g. That is no value of g at one time, but the combination of values at a few times that
is the same for polynomials of t: `WEIGHTS` and `TIMES`. With five times it is exact to degree 4,
and the method keeps its order 4. With values at the times where stages are it would have order 2.

References
----------
Niegemann, Diehl and Busch, "Efficient low-storage Runge-Kutta schemes with optimized stability
regions", J. Comput. Phys. 231, 2012.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dgbook.time import ndb14
from dgbook.time.factors import stages_of, through, weights_of
from dgbook.time.ndb14 import ORDER, A, B
from dgbook.time.stability import polynomial
from dgbook.time.stepping import Rhs, advancing, integrator

__all__ = [
    "ORDER",
    "STAGES",
    "TIMES",
    "WEIGHTS",
    "A",
    "B",
    "advance",
    "integrate",
    "stages",
]

STAGES = stages_of(polynomial(ndb14))
"""Of each stage a, b and tau in ``new = a new + b v + tau dt L v``, where `v` and `new` are two
arrays in turn: a, b = 0, 1 and then 1, 0."""
TIMES = (0.0, 0.5 - 0.125**0.5, 0.5, 0.5 + 0.125**0.5, 1.0)
"""When g is evaluated, in steps after the beginning of a step: Chebyshev's extrema."""
WEIGHTS = weights_of(STAGES, TIMES)
"""Of g at these times in each stage."""


def stages(rhs: Rhs, u: np.ndarray, t: float, dt: float) -> Iterator[np.ndarray]:
    """The stages of a step from time t, of ``rhs(u, t) = L u + g(t)``; u is changed in place."""
    nothing = np.zeros_like(u)
    given = [rhs(nothing, t + time * dt) for time in TIMES]

    def rate(v: np.ndarray, stage: int) -> np.ndarray:
        """L v, with what stands for g in this stage."""
        slope = rhs(v, t) - given[0]
        for weight, values in zip(WEIGHTS[stage], given, strict=True):
            slope += weight * values
        return slope

    yield from through(STAGES, rate, u, dt)


advance = advancing(stages)
integrate = integrator(advance)
