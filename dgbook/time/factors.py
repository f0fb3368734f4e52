"""Runge-Kutta methods for linear equations as products of short steps, see `ndb14_factored`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from math import factorial

import numpy as np

RAYS, RADII, FARTHEST = 31, 201, 40.0
"""Where the region of stability is looked for, as of `stability`, but coarsely."""

Factor = tuple[float, float]
"""(alpha, beta) of 1 + beta z + alpha beta z^2; alpha = 0 of a linear factor."""
Stage = tuple[float, float, float]
"""(a, b, tau) of ``new = a new + b v + tau dt L v``."""


def factors(powers: np.ndarray) -> list[Factor]:
    """Real factors whose product is a stability polynomial, in the order in which to take them.

    Pairs of conjugate roots make quadratic factors; of real roots each makes a linear one.

    Parameters
    ----------
    powers : (degree + 1,) array
        The polynomial's coefficients, lowest power first, as `stability.polynomial` returns them.
    """
    found = []
    for root in np.roots(powers[::-1]):
        if root.imag > 0:  # (1 - z / root) (1 - z / conjugate)
            beta = -2 * (1 / root).real
            found.append((float(abs(1 / root) ** 2 / beta), float(beta)))
        elif root.imag == 0:
            found.append((0.0, float(-1 / root.real)))
    return [found[i] for i in _order(found, _edge(powers))]


def stages_of(powers: np.ndarray) -> tuple[Stage, ...]:
    """The stages of a step, one or two of each factor of a stability polynomial."""
    return tuple(
        stage
        for alpha, beta in factors(powers)
        for stage in ([(0.0, 1.0, alpha), (1.0, 0.0, beta)] if alpha else [(0.0, 1.0, beta)])
    )


def read_by(stages: Sequence[Stage]) -> list[np.ndarray]:
    """The polynomial P_s of each stage, of which the array that it reads is P_s(dt L) u.

    One more is of what the last stage writes.
    """
    v, new = np.zeros((2, len(stages) + 1))
    v[0] = 1.0
    found = [v]
    for a, b, tau in stages:
        v, new = a * new + b * v + tau * np.concatenate([[0.0], v[:-1]]), v
        found.append(v)
    return found


def weights_of(stages: Sequence[Stage], times: Sequence[float]) -> tuple[tuple[float, ...], ...]:
    """Of values at some times in each stage: what makes P_s(dt d/dt) g of them.

    It is exact for polynomials of time whose degree is less than the number of times: at t = 0
    the operator makes m! P_s[m] of (t / dt)^m.
    """
    powers = np.arange(len(times))
    values = np.asarray(times) ** powers[:, None]
    moments = [factorial(m) for m in powers]
    read = (moments * p[powers] for p in read_by(stages)[:-1])
    return tuple(tuple(np.linalg.solve(values, wanted).tolist()) for wanted in read)


def through(
    stages: Sequence[Stage],
    rate: Callable[[np.ndarray, int], np.ndarray],
    u: np.ndarray,
    dt: float,
) -> Iterator[np.ndarray]:
    """Go through the stages of a step, an even number of them; u is changed in place.

    Parameters
    ----------
    stages : sequence of `Stage`
    rate : function
        ``rate(v, s)`` is dv/dt in stage s.
    u : array
    dt : float

    Yields
    ------
    array
        Before each stage the one that it reads.
    """
    v, new = u, np.zeros_like(u)
    for s, (a, b, tau) in enumerate(stages):
        yield v
        new[...] = a * new + b * v + (tau * dt) * rate(v, s)
        v, new = new, v


def _edge(powers: np.ndarray) -> np.ndarray:
    """Points at the edge of the region of stability, one per ray of the upper left quarter."""
    rays = np.exp(1j * np.linspace(np.pi / 2, np.pi, RAYS))
    points = np.linspace(0, FARTHEST, RADII)[:, None] * rays
    unstable = np.abs(np.polyval(powers[::-1], points)) > 1 + 1e-6
    return points[np.argmax(unstable, axis=0) - 1, np.arange(RAYS)]


def _order(found: Sequence[Factor], z: np.ndarray) -> list[int]:
    """The order of factors in which rounding is the least.

    What a stage rounds off is in proportion to its state, and the factors behind it amplify it. Of
    each stage the bound counts the largest of both over the region of stability, by the maximum
    principle over its edge z, and the sum over all stages is the least possible: a shortest path
    through the sets of factors that are taken.
    """
    inner, slope, outer = (
        np.array([make(alpha, beta) for alpha, beta in found])
        for make in (
            lambda alpha, beta: 1 + alpha * z,
            lambda alpha, beta: beta * z,
            lambda alpha, beta: 1 + beta * z + alpha * beta * z**2,
        )
    )
    subsets = [
        frozenset(some)
        for size in range(len(found) + 1)
        for some in combinations(range(len(found)), size)
    ]
    product = {some: outer[sorted(some)].prod(axis=0) for some in subsets}
    most = {some: np.abs(values).max() for some, values in product.items()}
    best: dict[frozenset[int], tuple[float, list[int]]] = {subsets[0]: (0.0, [])}
    for some in subsets[1:]:
        rest = subsets[-1] - some
        ways = []
        for last in some:
            before = some - {last}
            cost, way = best[before]
            if found[last][0]:
                amplified = np.abs(slope[last] * product[rest]).max()
                cost += np.abs(inner[last] * product[before]).max() * amplified
            ways.append((cost, [*way, last]))
        cost, way = min(ways)
        best[some] = cost + most[some] * most[rest], way
    return best[subsets[-1]][1]
