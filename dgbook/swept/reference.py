"""The Classic scheme in NumPy, a substep at a time: the definition of right."""

from __future__ import annotations

from typing import Any

import numpy as np

from dgbook.swept.arithmetic import NUMPY
from dgbook.swept.problem import Problem


def neighbors(problem: Problem, n: int) -> np.ndarray:
    """The points whose states a substep reads, (2r+1, n): those i-r..i+r, across the boundary."""
    last = n - 1
    i = np.arange(n) + np.arange(-problem.reach, problem.reach + 1)[:, None]
    if problem.boundary == "periodic":
        return i % n
    if problem.boundary == "fixed":
        return i.clip(0, last)
    return last - abs(last - abs(i))


def weights(problem: Problem, n: int, real: type) -> np.ndarray:
    """w_s at each point, (substeps, n): zero at fixed ends."""
    at = np.repeat(np.array(problem.weights, real)[:, None], n, axis=1)
    if problem.boundary == "fixed":
        at[:, [0, -1]] = 0
    return at


def substep(
    problem: Problem,
    source: np.ndarray,
    old: np.ndarray,
    stage: int,
) -> np.ndarray:
    """old + w_s slope(source), both of shape (fields, n)."""
    n, real = source.shape[1], source.dtype.type
    slope = problem.make_slope(real, NUMPY)
    points = neighbors(problem, n)
    stencil = tuple(_state(source[:, at]) for at in points)
    change = np.stack(np.broadcast_arrays(slope(stencil)))
    change = change.reshape(source.shape)
    return old + weights(problem, n, real)[stage] * change


def step(problem: Problem, u: np.ndarray) -> np.ndarray:
    """The state a time step after u, (fields, n)."""
    source = u
    for stage in range(len(problem.weights)):
        source = substep(problem, source, u, stage)
    return source


def run(problem: Problem, u: np.ndarray, steps: int) -> np.ndarray:
    """The state `steps` time steps after u, (fields, n) of u's type; u stays as it is."""
    u = u.copy()
    for _ in range(steps):
        u = step(problem, u)
    return u


def _state(values: np.ndarray) -> Any:
    """What a slope takes for a state: an array where there is one field, else a tuple of them."""
    return values[0] if len(values) == 1 else tuple(values)
