"""What kernels that do a whole stage of nodal DG at once share: plans, matrices, launches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dgbook.arguments import check_choice, check_counts
from dgbook.gpu import Device
from dgbook.gpu.layout import padded
from dgbook.gpu.limits import (
    MAX_BLOCKS,
    MAX_THREADS,
    MAX_UNROLL,
    STATIC_SHARED_LIMIT,
    WARP,
    architecture,
)
from dgbook.gpu.tune import remembered
from dgbook.nodal.launching import Launcher
from dgbook.nodal.trace import WAYS, Trace

LANGUAGES = ("cuda", "numba")
TENSOR_CAPABILITY = (8, 0)  # the first whose tensor cores take fp64 and 11 bits of fp32
TENSOR_PAYS = ((8, 0), (9, 0), (10, 0))  # A100, H100, B200 and their like
TENSOR_FP64_THREADS = 1024  # a multiprocessor: ptxas refuses fp64 products below 64 registers
TILE = 8  # nodes, and elements or half of them, in a product on tensor cores
VECTOR_BYTES = 16  # what a thread loads at once
SPARE = 128  # elements by which states are longer, so that the last block needs no bounds
MAX_ACCUMULATORS = {"numba": 32, "cuda": 48}  # in registers, of 32 bits for "cuda"


@dataclass(frozen=True)
class FusedPlan:
    """Who works on what in the fused kernel.

    Parameters
    ----------
    language : {"cuda", "numba"}
        CUDA C++ or Numba: the same algorithm, kernels/fused.cu and kernels/fused.py.
    rows : int
        Rows of threads in a block, each with elements of its own.
    elements_inline : int
        Elements that a row works on at a time: an entry of D or LIFT, once loaded, serves all.
    nodes_inline : int
        Nodes that a thread works on at a time: a value of the field, once loaded, serves all. With
        tensor cores, tiles of 8 nodes that a warp works on.
    unroll : int
        Columns of D whose loads are under way together: some of Numba, pairs of columns of
        CUDA C++, with tensor cores steps of 8 (fp32) or 4 (fp64).
    blocks : int
        Blocks that a multiprocessor should hold, CUDA C++ only: the compiler limits the registers.
    tensor : bool
        Whether tensor cores multiply, CUDA C++ only; a row is then one or more warps with 16
        (fp32) or 8 (fp64) elements.

    Raises
    ------
    TypeError, ValueError
        If a count is no positive integer, or the language unknown.
    """

    language: str
    rows: int
    elements_inline: int
    nodes_inline: int
    unroll: int = 1
    blocks: int = 1
    tensor: bool = False

    def __post_init__(self) -> None:
        check_choice("language", self.language, LANGUAGES)
        check_counts(self, "rows", "elements_inline", "nodes_inline", "unroll", "blocks")

    @property
    def elements(self) -> int:
        """Elements a block."""
        return self.rows * self.elements_inline


@dataclass(frozen=True)
class NodalShape(ABC):
    """The sizes that kernels close over; each family says how its kernels use memory.

    Attributes
    ----------
    Np, Nfp : int
        Nodes of an element and of a face.
    dtype : str
    fields : int
        Of the system; a thread has so many accumulators for each node and element.
    """

    Np: int
    Nfp: int
    dtype: str
    fields: ClassVar[int]

    @property
    def itemsize(self) -> int:
        """Bytes of a real number."""
        return np.dtype(self.dtype).itemsize

    @property
    def half(self) -> int:
        """Elements in a product on tensor cores."""
        return TILE * (2 if self.itemsize == 4 else 1)

    @property
    def step(self) -> int:
        """Columns of D in a product on tensor cores."""
        return 32 // self.itemsize

    @abstractmethod
    def shared_bytes(self, plan: FusedPlan) -> int:
        """Shared memory of a block."""

    @abstractmethod
    def stuck(self, plan: FusedPlan) -> str:
        """Why Numba's kernel cannot take so many columns at a time, or an empty string."""


# ----------------------------------------------------------------------------------------- plans


def lanes(plan: FusedPlan, shape: NodalShape) -> int:
    """Threads in a row: each has `nodes_inline` nodes, or each warp as many tiles of them."""
    if plan.tensor:
        return WARP * -(-shape.Np // (TILE * plan.nodes_inline))
    return -(-shape.Np // plan.nodes_inline)


def threads(plan: FusedPlan, shape: NodalShape) -> int:
    """Threads in a block; CUDA C++ fills the last warp."""
    count = plan.rows * lanes(plan, shape)
    return padded(count, WARP) if plan.language == "cuda" else count


def shared_limit(language: str, capability: tuple[int, int] | None) -> int:
    """Shared memory that a block of a fused kernel may have; without a capability on any device."""
    if language == "cuda" and capability:
        return architecture(capability).shared_block
    return STATIC_SHARED_LIMIT


def illegal(plan: FusedPlan, shape: NodalShape, capability: tuple[int, int] | None = None) -> str:
    """Why a plan cannot run on a device of that compute capability, or an empty string.

    Without a capability the limits are those of every device: no tensor cores, 48 KiB shared.
    """
    count = threads(plan, shape)
    if count > MAX_THREADS:
        return f"{count} threads; allowed: {MAX_THREADS}"
    if plan.elements > SPARE:
        return f"{plan.elements} elements a block; allowed: {SPARE}"
    if plan.blocks > MAX_BLOCKS or plan.unroll > MAX_UNROLL:
        return (
            f"blocks = {plan.blocks}, unroll = {plan.unroll}; allowed: {MAX_BLOCKS}, {MAX_UNROLL}"
        )
    limit = shared_limit(plan.language, capability)
    if shape.shared_bytes(plan) > limit:
        return f"{shape.shared_bytes(plan)} bytes shared; allowed: {limit}"
    if plan.language == "numba" and (trouble := shape.stuck(plan)):
        return trouble
    if plan.tensor:
        if plan.language != "cuda" or (capability or (0, 0)) < TENSOR_CAPABILITY:
            return "tensor cores: CUDA C++ can use those of compute capability 8.0 and above"
        if plan.elements_inline != shape.half:
            return f"{plan.elements_inline} elements in a product; allowed: {shape.half}"
        if shape.itemsize == 8 and plan.blocks * count > TENSOR_FP64_THREADS:
            return f"{plan.blocks * count} threads at a time; allowed: {TENSOR_FP64_THREADS}"
        return ""
    accumulators = shape.fields * plan.nodes_inline * plan.elements_inline
    if plan.language == "cuda":
        accumulators *= shape.itemsize // 4
    if accumulators > MAX_ACCUMULATORS[plan.language]:
        allowed = MAX_ACCUMULATORS[plan.language]
        return f"{accumulators} accumulators a thread; allowed: {allowed}"
    return ""


def tensor_plan(rows: int, inline: int, nodes: int, unroll: int, blocks: int) -> FusedPlan:
    """A plan for tensor cores."""
    return FusedPlan("cuda", rows, inline, nodes, unroll, blocks, tensor=True)


def fastest(
    kind: type,
    subject: Callable[[str], str],
    default_plan: Callable[[int, str, tuple[int, int] | None, str], Any],
    illegal: Callable[[Any, tuple[int, int] | None], str],
    order: int,
    dtype: str,
    device: Device,
    language: str | None = None,
) -> Any:
    """The fastest plan that ``python -m dgbook tune`` found on a GPU, else the default.

    Without a language CUDA C++ on a GPU, and Numba in the simulator, where nothing else runs.

    Parameters
    ----------
    kind : type
        Of the plans.
    subject, default_plan : function
        Of a family: ``subject(language)``, ``default_plan(order, dtype, capability, language)``.
    illegal : function
        ``illegal(plan, capability)`` says why a plan cannot run, or an empty string.
    order, dtype, device, language
    """
    if device.kind != "cuda":
        return default_plan(order, dtype, None, "numba")
    language, capability = language or "cuda", device.compute_capability
    plan = remembered(
        kind, subject(language), device, order, dtype, lambda plan: not illegal(plan, capability)
    )
    return plan or default_plan(order, dtype, capability, language)


@dataclass(frozen=True)
class Defaults:
    """Which plans were the fastest on an H200, by order, and what the tuner found since.

    Attributes
    ----------
    family : str
        Of equations, as in ``python -m dgbook tune FAMILY``.
    shape : function
        ``shape(order, dtype)``; of several, the one that needs most memory.
    tensor, plain, numba : mapping
        By dtype and order: on tensor cores where they win, without them, and in Numba.
    """

    family: str
    shape: Callable[[int, str], NodalShape]
    tensor: Mapping[str, Mapping[int, FusedPlan]]
    plain: Mapping[str, Mapping[int, FusedPlan]]
    numba: Mapping[str, Mapping[int, FusedPlan]]

    def default_plan(
        self,
        order: int,
        dtype: str,
        capability: tuple[int, int] | None = None,
        language: str = "cuda",
    ) -> FusedPlan:
        """The fastest plan found on an H200 that is legal on a device of that compute capability.

        Tensor cores are for devices on which they multiply much faster than other units, which
        those of consumer cards do not in these precisions. For orders above those in the tables
        blocks of about 128 threads, with two nodes each.
        """
        shape = self.shape(order, dtype)
        tables = (self.plain if language == "cuda" else self.numba,)
        if language == "cuda" and capability in TENSOR_PAYS:
            tables = (self.tensor, *tables)
        for table in tables:
            plan = table[shape.dtype].get(order)
            if plan and not illegal(plan, shape, capability):
                return plan
        plan = FusedPlan(language, max(1, 256 // shape.Np), 1, 2, 2)
        return replace(plan, unroll=1) if illegal(plan, shape, capability) else plan

    def subject(self, language: str) -> str:
        """Under which name the tuner remembers timings of the fused kernel."""
        return f"{self.family}/fused/{language}"

    def choose_plan(
        self, order: int, dtype: str, device: Device, language: str | None = None
    ) -> FusedPlan:
        """The fastest plan known for a device, see `fastest`."""
        shape = self.shape(order, dtype)
        return fastest(
            FusedPlan, self.subject, self.default_plan,
            lambda plan, capability: illegal(plan, shape, capability),
            order, dtype, device, language,
        )  # fmt: skip


# ---------------------------------------------------------------------------------------- arrays


def for_threads(matrix: np.ndarray, plan: FusedPlan, shape: NodalShape) -> np.ndarray:
    """Matrices (columns, matrices, Np) in the order in which the threads of a row read them.

    Node i lanes + lane is that of a thread: [column][i][matrix][lane]; CUDA C++ reads two columns
    at once, [pair][i][matrix][lane][2]. What is added to fill columns and rows is zero.
    """
    pair = 2 if plan.language == "cuda" else 1
    wide = lanes(plan, shape)
    count, matrices, Np = matrix.shape
    full = np.zeros((padded(count, pair), matrices, plan.nodes_inline * wide))
    full[:count, :, :Np] = matrix
    full = full.reshape(-1, pair, matrices, plan.nodes_inline, wide)
    return full.transpose(0, 3, 2, 4, 1)


def for_tensor_cores(matrix: np.ndarray, plan: FusedPlan, shape: NodalShape) -> np.ndarray:
    """Matrices (columns, matrices, Np) as the lanes of a warp read them.

    [tile of 8 nodes][step][matrix][node][4][pair]: lane 4 n + t takes the columns t pair, ... of a
    step, in the row of node n.
    """
    tiles = lanes(plan, shape) // WARP * plan.nodes_inline
    count, matrices, Np = matrix.shape
    full = np.zeros((padded(count, shape.step), matrices, TILE * tiles))
    full[:count, :, :Np] = matrix
    full = full.reshape(-1, 4, shape.step // 4, matrices, tiles, TILE)
    return full.transpose(4, 0, 3, 5, 1, 2)


def macros(plan: FusedPlan, shape: NodalShape) -> dict[str, Any]:
    """What every kernels/fused.cu is compiled with."""
    single = shape.itemsize == 4
    return {
        "REAL": np.dtype(shape.dtype),
        "COUPLE": "float2" if single else "double2",
        "VECTOR": "float4" if single else "double2",
        "NP": shape.Np,
        "NFP": shape.Nfp,
        "ROWS": plan.rows,
        "INLINE": plan.elements_inline,
        "NODES": plan.nodes_inline,
        "UNROLL": plan.unroll,
        "BLOCKS": plan.blocks,
        "TENSOR": int(plan.tensor),
    }


def links_along(order: np.ndarray, trace: Trace) -> np.ndarray:
    """``trace.links`` of elements in another order, (K + SPARE, 4), which counts places in it.

    In place of a ghost stands the number of its boundary face.
    """
    place = np.empty_like(order)
    place[order] = np.arange(trace.K)
    place = np.append(place, np.arange(trace.ghosts))
    links = place[trace.links // WAYS] * WAYS + trace.links % WAYS
    return lengthened(links[order])


def lengthened(values: np.ndarray) -> np.ndarray:
    """With `SPARE` rows of zeros behind: their neighbor is element 0 and du/dt is zero."""
    return np.concatenate([values, np.zeros((SPARE, *values.shape[1:]), values.dtype)])


class FusedStage(Launcher):
    """Launches of one kernel that does a whole stage.

    The kernel's arguments are u, data, the arrays named in `inputs`, res and new, of CUDA C++ the
    number of boundary faces, then a, b and dt.

    Attributes
    ----------
    in_place : bool
        False: neighbors still need u, so that the new state is written elsewhere.
    kernel : Kernel or CudaKernel
        The plan's.
    """

    in_place = False
    inputs: ClassVar[tuple[str, ...]]

    kernel: Any

    @abstractmethod
    def _launch(self) -> tuple[int, int | tuple[int, int], int]:
        """Blocks, threads of a block, and the bytes that a block of CUDA C++ shares."""

    def rhs(self, u: Any, data: Any, out: Any) -> None:
        """out = du/dt; `data` are g on the boundary, flat (fields nb Nfp,), one zero if nb = 0."""
        self.stage(u, out, out, data, 0.0, 0.0, 1.0)

    def stage(self, u: Any, res: Any, new: Any, data: Any, a: float, b: float, dt: float) -> None:
        """res = a res + dt du/dt, new = u + b res; `new` is not u.

        Where a = 0, `res` is not read; where b = 0, `new` is not written.
        """
        arguments = (u, data, *(self.arrays[name] for name in self.inputs), res, new)
        scalars = (self.real(value) for value in (a, b, dt))
        blocks, block, shared = self._launch()
        if self.plan.language == "cuda":
            faces = self.operator.trace.ghosts
            self.kernel[blocks, block, shared](*arguments, faces, *scalars)
        else:
            self.kernel[blocks, block](*arguments, *scalars)


class NodalStage(FusedStage):
    """A whole stage in the nodal basis, by a `FusedPlan`.

    Attributes
    ----------
    shape : NodalShape
    """

    shape: NodalShape

    def _load(self, plan: FusedPlan) -> None:
        if trouble := illegal(plan, self.shape, self.device.compute_capability):
            raise ValueError(f"plan = {plan}: {trouble}")
        self.plan = plan
        matrices = {name: self._flat(m, self.real) for name, m in self._matrices(plan).items()}
        self.arrays = self.arrays | matrices
        self.kernel = self._kernel(plan)

    @abstractmethod
    def _matrices(self, plan: FusedPlan) -> dict[str, np.ndarray]:
        """Matrices in the order in which the plan's threads read them."""

    @abstractmethod
    def _kernel(self, plan: FusedPlan) -> Any:
        """The plan's kernel."""

    def _launch(self) -> tuple[int, int | tuple[int, int], int]:
        plan, shape = self.plan, self.shape
        rows = lanes(plan, shape), plan.rows
        block = threads(plan, shape) if plan.language == "cuda" else rows
        return -(-self.operator.trace.K // plan.elements), block, shape.shared_bytes(plan)
