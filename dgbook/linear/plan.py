"""How the kernels of a linear system are launched, and which launches are legal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dgbook.arguments import check_counts
from dgbook.gpu import Device
from dgbook.gpu.limits import MAX_THREADS, STATIC_SHARED_LIMIT
from dgbook.gpu.tune import remembered

MAX_ACCUMULATORS = 24


@dataclass(frozen=True)
class Plan:
    """Who works on what: a thread a node, a row of threads an element, several rows a block.

    Parameters
    ----------
    elements_per_block : int
        Rows of Np threads in a block. Threads of different rows share nothing but the cache lines
        of D and LIFT; with more rows there are fewer idle lanes in the last warp.
    elements_inline : int
        Elements that each row of the fused kernel works on at a time. An entry of D or LIFT is
        loaded once for all of them; each costs registers and shared memory.
    """

    elements_per_block: int
    elements_inline: int = 1

    def __post_init__(self) -> None:
        check_counts(self)


@dataclass(frozen=True)
class Shape:
    """The sizes that kernels close over: dimensions, fields, nodes an element and a face, type."""

    dim: int
    n: int
    Np: int
    Nfp: int
    dtype: str

    @property
    def Nf(self) -> int:
        """Face nodes of an element, (dim+1) Nfp."""
        return (self.dim + 1) * self.Nfp


def shared_bytes(plan: Plan, shape: Shape) -> int:
    """Shared memory of a block of the fused kernel: states and fluxes of all its elements."""
    slots = plan.elements_per_block * plan.elements_inline
    return slots * shape.n * (shape.Np + shape.Nf) * np.dtype(shape.dtype).itemsize


def illegal(plan: Plan, shape: Shape) -> str:
    """Why a plan cannot run, or an empty string.

    The limits are those of every device from compute capability 7.5 on: 1024 threads and 48 KiB
    of static shared memory a block. One is the compiler's: it must unroll the loop over the
    accumulators to keep them in registers, and does so up to 24 of them.
    """
    threads = plan.elements_per_block * shape.Np
    if threads > MAX_THREADS:
        return f"{plan.elements_per_block} rows of {shape.Np} threads; allowed: {MAX_THREADS}"
    if shared_bytes(plan, shape) > STATIC_SHARED_LIMIT:
        return f"{shared_bytes(plan, shape)} bytes shared; allowed: {STATIC_SHARED_LIMIT}"
    accumulators = shape.dim * shape.n * plan.elements_inline
    if plan.elements_inline > 1 and accumulators > MAX_ACCUMULATORS:
        return f"{accumulators} accumulators a thread; allowed: {MAX_ACCUMULATORS}"
    return ""


def plans(shape: Shape) -> list[Plan]:
    """The plans worth trying: blocks of about 64, 128 and 256 threads, 1 to 8 elements inline."""
    rows = {max(1, threads // shape.Np) for threads in (64, 128, 256)}
    candidates = [Plan(r, e) for r in sorted(rows) for e in (1, 2, 4, 8)]
    return [plan for plan in candidates if not illegal(plan, shape)]


def default_plan(shape: Shape) -> Plan:
    """A good plan where nothing has been measured: about 128 threads, more inline if D is larger.

    With several fields an entry of D serves them all, so that fewer elements are needed for that.
    """
    inline = 2 if shape.Np <= 10 else 4 if shape.Np <= 56 else 8
    rows = max(1, 128 // shape.Np)
    candidates = [Plan(rows, e) for e in (8, 4, 2, 1) if e <= max(1, inline // shape.n)]
    return next(plan for plan in candidates if not illegal(plan, shape))


def subject(shape: Shape) -> str:
    """Under which name the tuner remembers timings of the fused kernel."""
    return f"linear/fused/{shape.dim}d/{shape.n}"


def choose_plan(shape: Shape, order: int, device: Device) -> Plan:
    """The fastest plan that ``python -m dgbook tune linear`` found on a GPU, else the default."""
    plan = remembered(
        Plan, subject(shape), device, order, shape.dtype, lambda plan: not illegal(plan, shape)
    )
    return plan or default_plan(shape)
