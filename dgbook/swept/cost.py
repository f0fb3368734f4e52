"""Flops, bytes and launches of a time step, counted from the algorithm, and a model of its time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dgbook import records
from dgbook.gpu.probes import LINKS
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

    With a point a thread a state is read from shared memory by 2r neighbors and written once; with
    several, a thread writes and reads 2r states for all of them.
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


@dataclass(frozen=True)
class Machine:
    """What a GPU takes for what a step consists of.

    Attributes
    ----------
    launch, barrier, grid_barrier : float
        Seconds from one launch in a graph to the next, and from one barrier of a block, or of the
        grid, to the next, of kernels that compute nothing.
    operation : float
        Seconds of an operation that waits for the one before it.
    bandwidth, shared_bandwidth : float
        Bytes a second, of global memory and of the shared memory of all multiprocessors.
    rate : float
        Flops a second of such code: divisions and roots count as one but take many.
    """

    launch: float
    barrier: float
    grid_barrier: float
    operation: float
    bandwidth: float
    shared_bandwidth: float
    rate: float


WALKED = 4 * LINKS * 64 * 16 * 512
"""Bytes that `dgbook.gpu.probes.bank_conflicts` reads from a multiprocessor's shared memory."""


def recorded_machine(dtype: str, share: float = 1.0) -> Machine:
    """The GPU of the records machine/probes (chapter 2) and swept/launch.

    Parameters
    ----------
    dtype : {"float64", "float32"}
    share : float
        Of the ceiling of multiply-adds: what the code in question reaches.

    Raises
    ------
    FileNotFoundError
        If there is no such record.
    """
    probes, waiting = records.load("machine/probes"), records.load("swept/launch")
    one_chain, *_ = (
        row for row in probes.select(path="fma", dtype=dtype) if row["plan"]["accumulators"] == 1
    )
    plan, links = one_chain["plan"], LINKS * one_chain["plan"]["steps"]
    together = plan["threads"] * plan["blocks_per_multiprocessor"]
    multiprocessors = one_chain["flops"] / (2 * links * together)
    walk = probes.row(path="banks", plan={"stride": 1})
    barrier, grid_barrier = (
        waiting.row(path=f"barrier:{of}", size={"threads": 128})["seconds_median"]
        for of in ("block", "grid")
    )
    return Machine(
        launch=probes.row(path="launch", plan={"kind": "graph"})["seconds_median"],
        barrier=barrier,
        grid_barrier=grid_barrier,
        operation=one_chain["seconds_median"] / links,
        bandwidth=probes.ceilings["copy_TBps"] * 1e12,
        shared_bandwidth=WALKED * multiprocessors / walk["seconds_median"],
        rate=share * probes.ceilings[f"fp{np.dtype(dtype).itemsize * 8}_TFLOPs"] * 1e12,
    )


def predicted_seconds(cost: Cost, machine: Machine, chain: int = 0) -> float:
    """Seconds a time step: what is waited for, then the slowest of two memories and arithmetic.

    The simple model of the paper's section 6 with arithmetic: small problems cost what launches
    and levels cost, and large ones what memory moves or what is computed. It knows nothing of
    occupancy, nor of how long a word takes to come. `chain` operations, one after the other, make
    a level; each launch and each barrier ends one.
    """
    level = chain * machine.operation
    waiting = (
        cost.launches * (machine.launch + level)
        + cost.barriers * (machine.barrier + level)
        + cost.grid_barriers * (machine.grid_barrier + level)
    )
    return waiting + max(
        cost.bytes / machine.bandwidth,
        cost.shared_bytes / machine.shared_bandwidth,
        cost.flops / machine.rate,
    )
