"""What kernels that do a whole stage of nodal DG at once share: plans, matrices, launches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from dgbook.arguments import check_choice, check_counts
from dgbook.element import space_dimension
from dgbook.gpu.layout import padded
from dgbook.gpu.limits import REGISTERS, WARP, architecture, resident_blocks
from dgbook.gpu.plan import Capability, LaunchPlan, rows_of
from dgbook.mesh import inverse_permutation
from dgbook.nodal.launching import ALL, EitherForm, Launcher, StageByOneKernel
from dgbook.nodal.trace import WAYS, Trace

LANGUAGES = ("cuda", "numba")
TENSOR_CAPABILITY = (8, 0)  # the first whose tensor cores take fp64 and 11 bits of fp32
TENSOR_PAYS = ((8, 0), (9, 0), (10, 0))  # A100, H100, B200 and their like
TENSOR_FP64_THREADS = 1024  # a multiprocessor: ptxas refuses fp64 products below 64 registers
TILE = 8  # nodes, and elements or half of them, in a product on tensor cores
VECTOR_BYTES = 16  # what a thread loads at once
SPARE = 128  # elements by which states are longer, so that the last block needs no bounds
MAX_ACCUMULATORS = {"numba": 32, "cuda": 48}  # in registers, of 32 bits for "cuda"
FEWEST_REGISTERS = 64  # of a thread that plans leave to the compiler
MAX_WASTE = 0.15  # of a warp's tiles of nodes: more are not worth trying
TENSOR_REGISTERS = {1: (64, 80, 96), 2: (80, 128), 3: (96, 128), 4: (128, 168), 5: (168, 224)}
"""Of a thread, by tiles of nodes that its warp works on: what a tuner lets the compiler have."""


@dataclass(frozen=True)
class FusedPlan(LaunchPlan):
    """Who works on what in the fused kernel.

    Parameters
    ----------
    language : {"cuda", "numba"}
        CUDA C++ or Numba: the same algorithm, kernels/fused/ and kernels/fused.py.
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

    variants = LANGUAGES

    def __post_init__(self) -> None:
        check_choice("language", self.language, LANGUAGES)
        check_choice("tensor", self.tensor, (False, True))
        check_counts(self, "rows", "elements_inline", "nodes_inline", "unroll", "blocks")

    @property
    def elements(self) -> int:
        """Elements a block."""
        return self.rows * self.elements_inline

    @property
    def dynamic(self) -> bool:
        """CUDA C++ asks for its shared memory at the launch."""
        return self.language == "cuda"

    def portable(self, shape: NodalShape, capability: Capability) -> bool:
        """On tensor cores only where they multiply much faster than other units.

        Those of consumer cards do not in these precisions. And only where a multiprocessor holds
        all `blocks`, or else no fewer warps than of the usual plan: other GPUs have less shared
        memory than the one on which this plan was the fastest.
        """
        if capability is None:
            return not self.tensor
        if self.tensor and capability not in TENSOR_PAYS:
            return False
        usual = self.default(shape, capability, self.language)
        (blocks, warps), (_, enough) = (p._held(shape, capability) for p in (self, usual))
        return blocks >= self.blocks or warps >= enough

    def _held(self, shape: NodalShape, capability: tuple[int, int]) -> tuple[int, int]:
        """Blocks, and warps of them, that a multiprocessor holds if threads have few registers."""
        threads, shared = self.block(shape), self.shared_bytes(shape)
        blocks = resident_blocks(architecture(capability), threads, FEWEST_REGISTERS, shared)
        return blocks, blocks * padded(threads, WARP) // WARP

    @classmethod
    def default(cls, shape: NodalShape, capability: Capability = None, variant: str = "") -> Self:
        """Blocks of about 256 nodes, two nodes a thread."""
        plan = cls(variant or "cuda", max(1, 256 // shape.Np), 1, 2, 2)
        return replace(plan, unroll=1) if plan.illegal(shape, capability) else plan

    def subject(self, shape: NodalShape) -> str:
        """Under which name the tuner remembers timings."""
        return f"{shape.family}/fused/{self.language}"

    def lanes(self, shape: NodalShape) -> int:
        """Threads in a row: each has `nodes_inline` nodes, or each warp as many tiles of them."""
        if self.tensor:
            return WARP * -(-shape.Np // (TILE * self.nodes_inline))
        return -(-shape.Np // self.nodes_inline)

    def block(self, shape: NodalShape) -> int:
        """Threads of a block; CUDA C++ fills the last warp."""
        count = self.rows * self.lanes(shape)
        return padded(count, WARP) if self.language == "cuda" else count

    def shared_bytes(self, shape: NodalShape) -> int:
        """Shared memory of a block."""
        return shape.shared_bytes(self)

    def illegal(self, shape: NodalShape, capability: Capability = None) -> str:
        """Why this plan cannot run, or an empty string; without a capability no tensor cores."""
        return self._unfit(shape, capability) or super().illegal(shape, capability)

    def _unfit(self, shape: NodalShape, capability: Capability) -> str:
        if self.elements > SPARE:
            return f"{self.elements} elements a block; allowed: {SPARE}"
        if self.language == "numba" and (trouble := shape.stuck(self)):
            return trouble
        if self.tensor:
            if self.language != "cuda" or (capability or (0, 0)) < TENSOR_CAPABILITY:
                return "tensor cores: CUDA C++ can use those of compute capability 8.0 and above"
            if self.elements_inline != shape.half:
                return f"{self.elements_inline} elements in a product; allowed: {shape.half}"
            together = self.blocks * self.block(shape)
            if shape.itemsize == 8 and together > TENSOR_FP64_THREADS:
                return f"{together} threads at a time; allowed: {TENSOR_FP64_THREADS}"
            return ""
        words = shape.itemsize // 4 if self.language == "cuda" else 1
        accumulators = shape.fields * self.nodes_inline * self.elements_inline * words
        allowed = MAX_ACCUMULATORS[self.language]
        if accumulators > allowed:
            return f"{accumulators} accumulators a thread; allowed: {allowed}"
        return ""

    def candidates(self, shape: NodalShape, capability: Capability = None) -> list[Self]:
        """This plan first, then all ways to share loads, in blocks of a few sizes.

        Where tensor cores pay, others are tried only for elements of few nodes, which leave tiles
        half empty. The number of blocks that a multiprocessor should hold follows from the
        registers that a thread may have.
        """
        plans, cuda = [self], self.language == "cuda"
        pays = cuda and capability in TENSOR_PAYS
        if pays:
            plans += _tensor_plans(shape, architecture(capability).shared)
        if not pays or shape.Np <= 20:
            plans += _plain_plans(shape, self.language)
        return list(dict.fromkeys(p for p in plans if not p.illegal(shape, capability)))


@dataclass(frozen=True)
class NodalShape(ABC):
    """The sizes that kernels on tetrahedra close over; a family says how they use memory.

    Attributes
    ----------
    order : int
    dtype : str
    family : str
        Of equations.
    fields : int
        Of the system; a thread has so many accumulators for each node and element.
    unrolls : tuple of int
        Columns at a time that Numba's kernel can take.
    """

    order: int
    dtype: str
    family: ClassVar[str]
    fields: ClassVar[int]
    unrolls: ClassVar[tuple[int, ...]] = (1, 2, 4)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.dtype).name)

    @property
    def Np(self) -> int:
        """Nodes of an element."""
        return space_dimension(3, self.order)

    @property
    def lower(self) -> int:
        """Polynomials of degree N - 1."""
        return space_dimension(3, self.order - 1)

    @property
    def Nfp(self) -> int:
        """Nodes of a face."""
        return space_dimension(2, self.order)

    @property
    def Nf(self) -> int:
        """Face nodes of an element, 4 Nfp."""
        return 4 * self.Nfp

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


def apart(vectors: int, rest: int) -> int:
    """The next number of vectors that leaves `rest` when divided by 8."""
    return vectors + (rest - vectors) % 8


def _plain_plans(shape: NodalShape, language: str) -> list[FusedPlan]:
    """Registers suffice for the accumulators, as many again, and 40."""
    plans = []
    for inline, nodes in ((1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (1, 4), (4, 2), (2, 4)):
        wide = -(-shape.Np // nodes)
        registers = 40 + shape.fields * inline * nodes * shape.itemsize // 2
        for rows in rows_of(wide, (64, 128)):
            if language == "numba":
                plans += [FusedPlan("numba", rows, inline, nodes, n) for n in shape.unrolls[1:]]
                continue
            registers = max(FEWEST_REGISTERS, registers)
            blocks = max(1, REGISTERS // (registers * padded(rows * wide, WARP)))
            plans += [FusedPlan("cuda", rows, inline, nodes, n, blocks) for n in (1, 2)]
    return plans


def _tensor_plans(shape: NodalShape, shared: int) -> list[FusedPlan]:
    """For a multiprocessor with so many bytes of shared memory."""
    tiles = -(-shape.Np // TILE)
    unrolls = (1, 2) if shape.itemsize == 4 or tiles < 3 else (2, 4)
    plans = []
    for nodes, choices in TENSOR_REGISTERS.items():
        warps = -(-tiles // nodes)
        if nodes > 1 and nodes * warps > (1 + MAX_WASTE) * tiles:
            continue
        for rows in (rows for rows in (1, 2, 4) if rows == 1 or rows * warps <= 16):
            plan = FusedPlan("cuda", rows, shape.half, nodes, tensor=True)
            fit = shared // (plan.shared_bytes(shape) + 1024)
            for registers in choices:
                blocks = REGISTERS // (registers * rows * warps * WARP)
                plan = replace(plan, blocks=max(1, min(blocks, fit)))
                plans += [replace(plan, unroll=unroll) for unroll in unrolls]
    return plans


# ---------------------------------------------------------------------------------------- arrays


def for_threads(matrix: np.ndarray, plan: FusedPlan, shape: NodalShape) -> np.ndarray:
    """Matrices (columns, matrices, Np) in the order in which the threads of a row read them.

    Node i lanes + lane is that of a thread: [column][i][matrix][lane]; CUDA C++ reads two columns
    at once, [pair][i][matrix][lane][2]. What is added to fill columns and rows is zero.
    """
    pair = 2 if plan.language == "cuda" else 1
    wide = plan.lanes(shape)
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
    tiles = plan.lanes(shape) // WARP * plan.nodes_inline
    count, matrices, Np = matrix.shape
    full = np.zeros((padded(count, shape.step), matrices, TILE * tiles))
    full[:count, :, :Np] = matrix
    full = full.reshape(-1, 4, shape.step // 4, matrices, tiles, TILE)
    return full.transpose(4, 0, 3, 5, 1, 2)


def lift_of_faces(element: Any) -> np.ndarray:
    """LIFT from each face, (4, Nfp, 1, Np): its columns one by one."""
    return element.lift.reshape(element.Np, 4, 1, element.Nfp).transpose(1, 3, 2, 0)


def macros(plan: FusedPlan, shape: NodalShape) -> dict[str, Any]:
    """What every kernels/fused/kernel.cu is compiled with."""
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
    """``trace.links`` of elements in another order, (K, 4), which counts places in it.

    In place of a ghost stands the number of its boundary face.
    """
    place = np.append(inverse_permutation(order), np.arange(trace.ghosts))
    links = place[trace.links // WAYS] * WAYS + trace.links % WAYS
    return links[order]


def lengthened(values: np.ndarray) -> np.ndarray:
    """With `SPARE` rows of zeros behind: their neighbor is element 0 and du/dt is zero."""
    return np.concatenate([values, np.zeros((SPARE, *values.shape[1:]), values.dtype)])


class ElementByElement(Launcher):
    """States that hold, element by element, constant multiples of the fields there.

    Attributes
    ----------
    order : (K,)
        Which element stands at each place of a state.
    """

    order: np.ndarray

    def entries(self, elements: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """As `dgbook.nodal.launching.Launcher.entries`."""
        size, at = self._in_element()
        return self.place[elements][:, None] * size + at[:, nodes]

    def _put(self, state: Any, some: slice, values: Any) -> None:
        """As `dgbook.nodal.launching.Launcher._put`, of fields, which are converted.

        By sums that round alike everywhere, which a library's products of matrices need not.
        """
        size, at = self._in_element()
        place, at = map(self.device.array, (self.place[some], at[:, None, : values.shape[2]]))
        matrices = self.components(np.arange(some.start, some.stop)).transpose(1, 2, 0)
        columns = self.device.array(matrices[..., None]).swapaxes(0, 1)
        components = sum(x * field for x, field in zip(columns, values, strict=True))
        state[place[:, None] * size + at] = components

    @abstractmethod
    def components(self, elements: np.ndarray) -> np.ndarray:
        """What a state holds of the fields of some elements, (n, fields, fields) float64."""

    @abstractmethod
    def _in_element(self) -> tuple[int, np.ndarray]:
        """Entries of an element in a state, and where each field of each node is, (fields, Np)."""


class FusedStage(ElementByElement, EitherForm, StageByOneKernel):
    """Launches of one kernel that does a whole stage of a Runge-Kutta method.

    The kernel's arguments are u, data, the arrays named in `inputs`, res and new, of CUDA C++ the
    number of boundary faces, then a, b and dt, and the first element.

    Attributes
    ----------
    in_place : bool
        False: neighbors still need u, so that the new state is written elsewhere.
    """

    in_place = False
    inputs: ClassVar[tuple[str, ...]]

    def _of_mesh(
        self, geometry: np.ndarray, boundary: np.ndarray, opposite: np.ndarray
    ) -> dict[str, Any]:
        """What kernels know of own elements, in the order of a state, and of boundary faces."""
        own = slice(self.operator.mesh.owned)
        links = links_along(self.order, self.operator.trace)
        return self._on_device(
            {"links": lengthened(links[own]), "opposite": opposite},
            {
                "geometry": lengthened(geometry[self.order[own]]),
                "boundary": np.append(boundary, 0.0),  # no array is empty
            },
        )

    @abstractmethod
    def _block(self) -> tuple[int, int | tuple[int, int], int]:
        """Elements and threads of a block, and the bytes that one of CUDA C++ shares."""

    def rhs(self, u: Any, data: Any, out: Any) -> None:
        """out = du/dt; `data` are g on the boundary, flat (fields nb Nfp,), one zero if nb = 0."""
        self.stage(u, out, out, data, 0.0, 0.0, 1.0)

    def stage(
        self,
        u: Any,
        res: Any,
        new: Any,
        data: Any,
        a: float,
        b: float,
        dt: float,
        some: str = ALL,
    ) -> None:
        """res = a res + dt du/dt, new = u + b res, of `some` elements; `new` is not u.

        Where a = 0, `res` is not read; where b = 0, `new` is not written. With factors it is
        res = a res + b u + dt du/dt, and `new` is never written; `res` is not u.
        """
        elements, threads, shared = self._block()
        begin, blocks = self._range(some, elements)
        if not blocks:
            return
        arguments = (u, data, *(self.arrays[name] for name in self.inputs), res, new)
        scalars = (self.real(value) for value in (a, b, dt))
        if self.plan.language == "cuda":
            faces = self.operator.trace.ghosts
            self.kernel[blocks, threads, shared](*arguments, faces, *scalars, begin)
        else:
            self.kernel[blocks, threads](*arguments, *scalars, begin)


class NodalStage(FusedStage):
    """A whole stage in the nodal basis, by a `FusedPlan`.

    Attributes
    ----------
    shape : NodalShape
    """

    shape: NodalShape

    def _of_plan(self, plan: FusedPlan) -> dict[str, Any]:
        arrange = for_tensor_cores if plan.tensor else for_threads
        derivative, lifts = self._matrices(plan)
        # On tensor cores the faces of a tile of nodes follow each other.
        lift = np.stack([arrange(m, plan, self.shape) for m in lifts], axis=int(plan.tensor))
        matrices = {"derivative": arrange(derivative, plan, self.shape), "lift": lift}
        return self._on_device({}, matrices)

    @abstractmethod
    def _matrices(self, plan: FusedPlan) -> tuple[np.ndarray, np.ndarray]:
        """D, (columns, 3, rows), and the lift from each face, (4, Nfp, 1, rows)."""

    def _block(self) -> tuple[int, int | tuple[int, int], int]:
        plan, shape = self.plan, self.shape
        rows = plan.lanes(shape), plan.rows
        threads = plan.block(shape) if plan.language == "cuda" else rows
        return plan.elements, threads, plan.shared_bytes(shape)
