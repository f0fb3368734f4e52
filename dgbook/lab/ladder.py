"""The rungs from klockner2009's five kernels to today's one: each changes one thing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from dgbook.gpu import Device
from dgbook.gpu.plan import choose, shipped
from dgbook.gpu.source import CudaKernel
from dgbook.gpu.timing import Timing
from dgbook.lab.split import SplitLauncher, default_plan
from dgbook.maxwell.launch.fused import FusedLauncher
from dgbook.maxwell.launch.paper import PaperLauncher
from dgbook.maxwell.plan import FusedShape
from dgbook.nodal.fused import TENSOR_PAYS, FusedPlan
from dgbook.time import lsrk45

ORDERS = (3, 7)  # a low and a high one
SMALL_CELLS = 3  # along the edges of the cube on which Python's share is measured
STAGES = tuple(zip(lsrk45.A, lsrk45.B, strict=True))  # of a time step
CALLS, SAMPLES = 10, 30  # calls between two looks at the host's clock, and how often

# ------------------------------------------------------ differences in CUDA C++

# What tensor.cuh does to round sums of fp32, and what would leave them in the tensor cores.
ROUNDED_SUM = """\
        REAL sum[NODES][HALVES][2][1] = {};
        multiply(sum, 0, field, matrix);
#pragma unroll
        for (int i = 0; i < NODES * HALVES * 2; ++i)
            c[i / 2 / HALVES][i / 2 % HALVES][i % 2][f] +=
                sign * sum[i / 2 / HALVES][i / 2 % HALVES][i % 2][0];
"""
CUT_OFF_SUM = """\
        Operand<NODES> signed_matrix = matrix;
#pragma unroll
        for (int i = 0; i < NODES * PAIR; ++i) {
            signed_matrix.high[i / PAIR][i % PAIR] *= sign;
            signed_matrix.low[i / PAIR][i % PAIR] *= sign;
        }
        multiply(c, f, field, signed_matrix);
"""
CUT_OFF = ((ROUNDED_SUM, CUT_OFF_SUM),)

WIDE = "constexpr int WIDTH = sizeof(VECTOR) / sizeof(REAL);   // numbers\n"
ONE_WORD = ((WIDE, WIDE + "\nstruct Couple {   // read word by word\n    REAL x, y;\n};\n"),)
ASYNCHRONOUS = """\
    const unsigned shared = __cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(shared), "l"(from) : "memory");
"""
THROUGH_REGISTERS = ((ASYNCHRONOUS, "    *to = *from;\n"),)
NO_HINTS = (
    ("        announce(kept + i);\n", "        ;\n"),
    ("*(VECTOR*)r = __ldcs(kept + i);", "*(VECTOR*)r = kept[i];"),
    ("__stcs(kept + i, *(VECTOR*)r);", "kept[i] = *(VECTOR*)r;"),
    ("__stcs(next + i, *(VECTOR*)v);", "next[i] = *(VECTOR*)v;"),
)
NO_PADDING = (("return TENSOR ? n + (12 - n % 8) % 8 : n | 1;", "return n;"),)


class EditedKernel(CudaKernel):
    """A kernel in CUDA C++ with a few words of its source replaced.

    Parameters
    ----------
    kernel : CudaKernel
    edits : iterable of (str, str)
        What stands once in its source, and what in its place.
    **defines : str
        Macros with another value.
    """

    def __init__(
        self, kernel: CudaKernel, edits: Iterable[tuple[str, str]], **defines: str
    ) -> None:
        super().__init__(kernel.path, kernel.name, kernel.defines | defines, kernel.options)
        self.edits = tuple(edits)

    @property
    def code(self) -> str:
        """What is compiled."""
        code = super().code
        for old, new in self.edits:
            before, after = code.split(old)
            code = before + new + after
        return code


# ----------------------------------------------------------------------- rungs


class AsTheMesh(FusedLauncher):
    """The fused kernel with the elements in the order in which the mesh has them."""

    def _order(self) -> np.ndarray:
        return np.arange(self.operator.trace.K)


class Shuffled(FusedLauncher):
    """The fused kernel with the elements in no order at all."""

    def _order(self) -> np.ndarray:
        return np.random.default_rng(0).permutation(self.operator.trace.K)


LAYOUTS: dict[str, Callable[..., Any]] = {
    "paper": PaperLauncher,
    "vectors": partial(SplitLauncher, algebra="vectors"),
    "covariant": partial(SplitLauncher, algebra="covariant"),
    "mesh": AsTheMesh,
    "shuffled": Shuffled,
    "curve": FusedLauncher,
}
"""What launches a stage, and says how a state is stored."""


@dataclass(frozen=True)
class Rung:
    """A step of the ladder.

    Attributes
    ----------
    name : str
        What it changes.
    layout : str
        One of `LAYOUTS`.
    plan : FusedPlan, optional
        Of the fused kernel.
    edits : tuple of (str, str)
        What stands in the kernel's source, and what instead.
    defines : mapping of str to str
        Macros with another value.
    launches : int
        Kernels in a stage.
    """

    name: str
    layout: str
    plan: FusedPlan | None = None
    edits: tuple[tuple[str, str], ...] = ()
    defines: Mapping[str, str] = field(default_factory=dict)
    launches: int = 1

    @property
    def language(self) -> str:
        """The kernels'."""
        return self.plan.language if self.plan else "numba"

    def on(self, launcher: Any) -> Any:
        """A launcher of the layout, with this rung's plan and kernel."""
        if self.plan:
            launcher = launcher.planned(self.plan)
        if self.edits or self.defines:
            launcher.kernel = EditedKernel(launcher.kernel, self.edits, **self.defines)
        return launcher


def rungs(order: int, dtype: str, device: Device, tensor: FusedPlan | None = None) -> list[Rung]:
    """All rungs from the bottom to the top, but for the graph around a time step.

    In fp64 tensor cores round as other units do, so that one rung is enough; and u stays in shared
    memory only where elements are small.

    Parameters
    ----------
    order : int
    dtype : str
    device : Device
        What plans are for.
    tensor : FusedPlan, optional
        Of the rungs on tensor cores; none if not given.
    """
    largest, shape = FusedShape(order, dtype, materials=True), FusedShape(order, dtype)
    one, tile = numba_plans(order, dtype, device)
    same = replace(tile, language="cuda", unroll=max(1, tile.unroll // 2))
    found = [
        Rung("five kernels", "paper", launches=5),
        Rung("layout", "vectors", launches=5),
        Rung("algebra", "covariant", launches=5),
        Rung("fusion", "mesh", one),
        Rung("register tile", "mesh", tile),
        Rung("shuffled", "shuffled", tile),
        Rung("element order", "curve", tile),
        *(Rung(name, "curve", same, *spelled) for name, *spelled in spellings(shape)),
        Rung("tile for C++", "curve", shipped(FusedPlan, largest)),
    ]
    if tensor and dtype == "float32":
        found.append(Rung("tensor cores, cut off", "curve", tensor, CUT_OFF))
    if tensor:
        found.append(Rung("tensor cores", "curve", tensor))
    return found


def numba_plans(order: int, dtype: str, device: Device) -> tuple[FusedPlan, FusedPlan]:
    """Those of the rungs "fusion" and "register tile"."""
    largest = FusedShape(order, dtype, materials=True)
    return default_plan(FusedShape(order, dtype)), choose(FusedPlan, largest, device, "numba")


def levers(order: int, dtype: str, device: Device) -> list[Rung]:
    """What the rung "register tile" changes, one by one and by twos: from fusion's plan to its own.

    Parameters
    ----------
    order : int
    dtype : str
    device : Device
        What plans are for.
    """
    one, tile = numba_plans(order, dtype, device)
    outputs = {"elements_inline": tile.elements_inline, "nodes_inline": tile.nodes_inline}
    columns = {"unroll": tile.unroll}
    plans = {
        "fusion": one,
        "rows per block": replace(one, rows=tile.rows),
        "outputs per thread": replace(one, **outputs),
        "columns per round": replace(one, **columns),
        "outputs and columns": replace(one, **outputs, **columns),
        "rows and outputs": replace(one, rows=tile.rows, **outputs),
        "rows and columns": replace(one, rows=tile.rows, **columns),
        "register tile": tile,
    }
    return [Rung(name, "mesh", plan) for name, plan in plans.items()]


def spellings(shape: FusedShape) -> Iterator[tuple[str, tuple, dict[str, str]]]:
    """Rungs in CUDA C++ with one plan: name, edits and macros.

    From a kernel that says what Numba's says, word by word, to the book's.
    """
    real = {"float32": "float", "float64": "double"}[shape.dtype]
    words, drop = {"VECTOR": real, "COUPLE": "Couple"}, {"KEEP": "0"}
    rest = (*THROUGH_REGISTERS, *NO_HINTS, *NO_PADDING)
    yield "CUDA C++", (*ONE_WORD, *rest), words | drop
    yield "16 bytes", rest, drop
    yield "asynchronous copies", (*NO_HINTS, *NO_PADDING), drop
    yield "cache hints", NO_PADDING, drop
    yield "padding", (), drop
    if shape.keeps_state:
        yield "u stays", (), {}


def tensor_plans(order: int, dtype: str, device: Device) -> list[FusedPlan]:
    """Plans for tensor cores: the fastest known, or several where others are known to be faster."""
    shape, capability = FusedShape(order, dtype, materials=True), device.compute_capability
    if capability not in TENSOR_PAYS:
        return []
    plan = shipped(FusedPlan, shape, capability)
    if plan.tensor:
        return [plan]
    return [p for p in plan.candidates(shape, capability) if p.tensor and p.unroll == 1]


# ------------------------------------------------------------------ time steps


def two_steps(launcher: FusedLauncher, u: Any, data: Any, dt: float) -> Callable[[], None]:
    """What launches the ten stages of two time steps, after which the state is again in u."""
    res, other = launcher.zeros(), launcher.zeros()

    def steps() -> None:
        states = u, other
        for a, b in STAGES * 2:
            old, new = states
            launcher.stage(old, res, new, data, a, b, dt)
            states = new, old

    return steps


def by_the_clock(steps: Callable[[], None], device: Device) -> Timing:
    """Seconds of a stage by the host's clock: with all that Python needs to launch it.

    Parameters
    ----------
    steps : function
        From `two_steps`, or the same recorded.
    device : Device
    """
    seconds = []
    for _ in range(3 + SAMPLES):  # three to warm up
        device.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            steps()
        device.synchronize()
        seconds.append((time.perf_counter() - start) / (2 * CALLS * len(STAGES)))
    return Timing(tuple(seconds[3:]), CALLS, True)
