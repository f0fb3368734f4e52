"""Flops, bytes and launches of a time step, counted from the algorithm, and a model of its time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dgbook.swept.plan import Plan, node_points, steps_between_results
from dgbook.swept.problem import Problem

SLOPE_FLOPS = {"heat": 3, "ks": 10, "euler": 186}
"""Additions, multiplications, divisions and roots of a slope; a test counts them by running it."""


@dataclass(frozen=True)
class Cost:
    """A time step of all points.

    Attributes
    ----------
    flops : float
        Divisions and roots count as one. The same for every scheme: the swept rule repeats nothing.
    bytes : float
        To and from global memory.
    shared_bytes : float
        To and from shared memory; of Register, what shuffles move.
    launches : float
    barriers : float
        Of every block, one after the other.
    """

    flops: float
    bytes: float
    shared_bytes: float
    launches: float
    barriers: float


def cost(problem: Problem, scheme: str, plan: Plan, n: int, dtype: str) -> Cost:
    """The cost of a time step on n points.

    Classic reads and writes each state in every substep, and the second substep reads the old state
    too: 2 or 5 words. Between two launches a swept scheme reads and writes two words of each state
    and field, its edges, and advances by height / substeps time steps, height = node / 2r. In it
    half of the thread's turns are idle: 2 height barriers are passed by a block in that time.
    """
    word = np.dtype(dtype).itemsize
    fields, stages = len(problem.fields), len(problem.weights)
    flops = n * stages * (SLOPE_FLOPS[problem.name] + 2 * fields)
    if scheme == "classic":
        words = 2 if stages == 1 else 5
        return Cost(flops, n * fields * words * word, 0.0, stages, 0.0)
    steps = steps_between_results(problem, scheme, plan)
    levels = node_points(scheme, plan) // problem.reach
    # A state is read by 2r neighbors, and written once where memory is what they read it from.
    moved = 2 * problem.reach + (1 if scheme != "register" else 0)
    return Cost(
        flops,
        n * fields * 4 * word / steps,
        n * stages * fields * moved * word,
        1 / steps,
        levels / steps if scheme != "register" else 0.0,
    )


def predicted_seconds(
    cost: Cost, launch: float, barrier: float, bandwidth: float, shared_bandwidth: float
) -> float:
    """Seconds a time step: what is waited for, then the slower of the two memories.

    The simple model of the paper's section 6: small problems cost what launches cost, and large
    ones what memory moves. It knows nothing of occupancy.

    Parameters
    ----------
    cost : Cost
    launch, barrier : float
        Seconds from one launch to the next of kernels that do nothing, and of a level of a kernel
        that has the GPU for itself.
    bandwidth, shared_bandwidth : float
        Bytes a second, of global memory and of the shared memory of all multiprocessors.
    """
    waiting = cost.launches * launch + cost.barriers * barrier
    return waiting + max(cost.bytes / bandwidth, cost.shared_bytes / shared_bandwidth)
