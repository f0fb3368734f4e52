"""Flops, bytes and launches of a time step, counted from the algorithm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dgbook.swept.plan import Plan, ghost_points, node_points, steps_between_results
from dgbook.swept.problem import Problem

SLOPE_FLOPS = {"heat": 3, "ks": 10, "euler": 183}
"""Additions, multiplications, divisions and roots of a slope; a test counts them by running it."""


FACE_FLOPS = {"euler": (4, 80, 3)}
"""Of an inner energy, of a face's flux, and of the difference of two of these."""


@dataclass(frozen=True)
class Cost:
    """A time step of all points.

    Attributes
    ----------
    flops : float
        Divisions and roots count as one. The swept rule repeats nothing, tiles do.
    bytes : float
        To and from global memory.
    shared_bytes : float
        To and from shared memory; of Register, what shuffles move.
    launches : float
    barriers : float
        Of every block, one after the other.
    grid_barriers : float
        Of all blocks together.
    """

    flops: float
    bytes: float
    shared_bytes: float = 0.0
    launches: float = 0.0
    barriers: float = 0.0
    grid_barriers: float = 0.0


def substep_flops(problem: Problem, points: int) -> float:
    """Flops of a point and substep where a thread has so many points: its faces once."""
    fields = len(problem.fields)
    if points == 1 or not problem.faces:
        return SLOPE_FLOPS[problem.name] + 2 * fields
    inner, flux, difference = FACE_FLOPS[problem.name]
    row = (points + 4) * inner + (points + 1) * flux + points * difference
    return row / points + 2 * fields


def cost(problem: Problem, scheme: str, plan: Plan, n: int, dtype: str) -> Cost:
    """The cost of a time step on n points.

    Classic reads and writes each state in every substep, and the second substep reads the old state
    too: 2 or 5 words; so does Persistent. Between two launches a swept scheme reads and writes two
    words of each state and field, its edges, and advances by height / substeps time steps, height =
    node / 2r. In it half of the thread's turns are idle: 2 height barriers are passed by a block in
    that time. A tile reads all of its states and writes its middle.

    With one point per thread a state is read from shared memory by 2r neighbors and written once;
    with several, a thread writes and reads 2r states for all of them.
    """
    word = np.dtype(dtype).itemsize
    fields, stages, points = len(problem.fields), len(problem.weights), plan.points
    flops = n * stages * substep_flops(problem, points)
    if scheme in ("classic", "persistent"):
        bytes_ = n * fields * (2 if stages == 1 else 5) * word
        if scheme == "classic":
            return Cost(flops, bytes_, launches=stages)
        return Cost(flops, bytes_, grid_barriers=stages)
    moved = _moved(problem, scheme, points)
    if scheme == "tiled":
        tile = plan.threads * points
        repeated = tile / (tile - 2 * ghost_points(problem, plan))
        return Cost(
            flops * repeated,
            n * fields * (repeated + 1) * word / plan.steps,
            n * stages * fields * moved * repeated * word,
            1 / plan.steps,
            stages,
        )
    steps = steps_between_results(problem, scheme, plan)
    levels = node_points(scheme, plan) // problem.reach
    return Cost(
        flops,
        n * fields * 4 * word / steps,
        n * stages * fields * moved * word,
        1 / steps,
        levels / steps if scheme != "register" else 0.0,
    )


def _moved(problem: Problem, scheme: str, points: int) -> float:
    """Words of shared memory that are read and written for a point, substep and field."""
    if scheme == "register":
        return 2 * problem.reach / points
    if points == 1 and scheme != "tiled":
        return 2 * problem.reach + 1
    return 4 * problem.reach / points
