"""A model of a time step's duration: what is waited for, and what memory and arithmetic take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dgbook.lab import records
from dgbook.lab.probes import LINKS
from dgbook.swept.cost import Cost


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
    load, shared_load : float
        Seconds from asking for a word to having it, of the L2 cache and of shared memory.
    bandwidth, shared_bandwidth : float
        Bytes a second, of global memory and of the shared memory of all multiprocessors.
    rate : float
        Flops a second of such code: divisions and roots count as one but take many.
    """

    launch: float
    barrier: float
    grid_barrier: float
    operation: float
    load: float
    shared_load: float
    bandwidth: float
    shared_bandwidth: float
    rate: float


WALKED = 4 * LINKS * 64 * 16 * 512
"""Bytes that `dgbook.lab.probes.bank_conflicts` reads from a multiprocessor's shared memory."""


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
    load = probes.row(path="latency", plan={"working_set_bytes": 2**23})
    shared_load = probes.row(path="shared", plan={"stride": 1})
    barrier, grid_barrier = (
        waiting.row(path=f"barrier:{of}", size={"threads": 128})["seconds_median"]
        for of in ("block", "grid")
    )
    return Machine(
        launch=probes.row(path="launch", plan={"kind": "graph"})["seconds_median"],
        barrier=barrier,
        grid_barrier=grid_barrier,
        operation=one_chain["seconds_median"] / links,
        load=load["seconds_median"] / load["operations"],
        shared_load=shared_load["seconds_median"] / shared_load["operations"],
        bandwidth=probes.ceilings["copy_TBps"] * 1e12,
        shared_bandwidth=WALKED * multiprocessors / walk["seconds_median"],
        rate=share * probes.ceilings[f"fp{np.dtype(dtype).itemsize * 8}_TFLOPs"] * 1e12,
    )


def predicted_seconds(cost: Cost, machine: Machine, chain: int = 0) -> float:
    """Seconds a time step: what is waited for, then the slowest of two memories and arithmetic.

    The simple model of the paper's section 6 with arithmetic: small problems cost what launches
    and levels cost, and large ones what memory moves or what is computed. It knows nothing of
    occupancy, nor of how long stores and the start of a kernel take beyond an empty launch. A level
    waits for a load, from the L2 cache behind a launch or a barrier of the grid and from shared
    memory behind a barrier, and then for `chain` operations, one after the other.
    """
    level = chain * machine.operation
    waiting = (
        cost.launches * (machine.launch + machine.load + level)
        + cost.barriers * (machine.barrier + machine.shared_load + level)
        + cost.grid_barriers * (machine.grid_barrier + machine.load + level)
    )
    return waiting + max(
        cost.bytes / machine.bandwidth,
        cost.shared_bytes / machine.shared_bandwidth,
        cost.flops / machine.rate,
    )
