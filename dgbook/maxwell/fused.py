"""One kernel for a whole stage: its arrays, the plans that it runs with, and its launches."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.gpu import Device, Kernel
from dgbook.gpu.compile import ARCHITECTURES
from dgbook.gpu.layout import padded
from dgbook.gpu.limits import MAX_THREADS, STATIC_SHARED_LIMIT, WARP
from dgbook.gpu.source import CudaKernel, load
from dgbook.gpu.tune import remembered
from dgbook.maxwell.kernels.fused import make_fused
from dgbook.maxwell.reference import Operator
from dgbook.mesh import along_a_curve
from dgbook.mesh.geometry import map_derivatives
from dgbook.mesh.mesh import face_vertices, vertex_permutations
from dgbook.trace import WAYS

SOURCE = Path(__file__).with_name("kernels") / "fused.cu"
LANGUAGES = ("cuda", "numba")
TENSOR_CAPABILITY = (8, 0)  # the first whose tensor cores take fp64 and 11 bits of fp32
TENSOR_PAYS = ((8, 0), (9, 0), (10, 0))  # A100, H100, B200 and their like
TILE = 8  # nodes, and elements or half of them, in a product on tensor cores
VECTOR_BYTES = 16  # what a thread loads at once
SPARE = 128  # elements by which states are longer, so that the last block needs no bounds
MAX_ACCUMULATORS = {"numba": 24, "cuda": 48}  # in registers, of 32 bits for "cuda"


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
        Columns of D whose loads are under way together: 1, 2 or 4 of Numba, pairs of columns of
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
        if self.language not in LANGUAGES:
            allowed = ", ".join(map(repr, LANGUAGES))
            raise ValueError(f"language = {self.language!r}; allowed are {allowed}")
        for name in ("rows", "elements_inline", "nodes_inline", "unroll", "blocks"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool):
                raise TypeError(f"{name} = {value!r}; allowed: an integer")
            if value < 1:
                raise ValueError(f"{name} = {value}; allowed: 1 or more")

    @property
    def elements(self) -> int:
        """Elements a block."""
        return self.rows * self.elements_inline


@dataclass(frozen=True)
class FusedShape:
    """The sizes that kernels close over.

    Attributes
    ----------
    Np, Nfp : int
        Nodes of an element and of a face.
    dtype : str
    materials : bool
        Whether the impedance varies, so that each face needs one number more.
    """

    Np: int
    Nfp: int
    dtype: str
    materials: bool = False

    @property
    def even_Np(self) -> int:
        """Nodes that the state has room for: a pair of them is a multiple of 16 bytes."""
        return padded(self.Np, 2)

    @property
    def geometry(self) -> int:
        """Numbers that describe an element and its faces."""
        return 22 if self.materials else 18

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


def fused_shape(order: int, dtype: str, materials: bool = False) -> FusedShape:
    """The shape of tetrahedra of an order."""
    Np, Nfp = (order + 1) * (order + 2) * (order + 3) // 6, (order + 1) * (order + 2) // 2
    return FusedShape(Np, Nfp, np.dtype(dtype).name, materials)


# ----------------------------------------------------------------------------------------- plans


def lanes(plan: FusedPlan, shape: FusedShape) -> int:
    """Threads in a row: each has `nodes_inline` nodes, or each warp as many tiles of them."""
    if plan.tensor:
        return WARP * -(-shape.Np // (TILE * plan.nodes_inline))
    return -(-shape.Np // plan.nodes_inline)


def threads(plan: FusedPlan, shape: FusedShape) -> int:
    """Threads in a block; CUDA C++ fills the last warp."""
    count = plan.rows * lanes(plan, shape)
    return padded(count, WARP) if plan.language == "cuda" else count


def shared_bytes(plan: FusedPlan, shape: FusedShape) -> int:
    """Shared memory of a block: states and face numbers; for CUDA C++ geometry and links too.

    The rows begin a number of vectors apart that leaves them in different banks, see fused.cu.
    """
    if plan.language == "numba":
        return plan.elements * (6 * shape.even_Np + 8 * shape.Nfp) * shape.itemsize
    width = VECTOR_BYTES // shape.itemsize
    if plan.tensor:
        groups = plan.elements
        state = _skewed(6 * padded(shape.Np, shape.step) // width)
        flux = _skewed(8 * padded(shape.Nfp, shape.step) // width)
    else:
        groups = plan.rows
        state = plan.elements_inline * 6 * shape.even_Np // width | 1
        flux = plan.elements_inline * 8 * padded(shape.Nfp, 2) // width | 1
    if keeps_state(shape):
        flux = max(flux, state)
    described = plan.elements * (shape.geometry * shape.itemsize + 4 * 4)
    return VECTOR_BYTES * groups * (state + flux) + described


def keeps_state(shape: FusedShape) -> bool:
    """Whether du/dt gets a place of its own, so that u stays in shared memory for the update.

    Where elements are small. And only for even Np: nobody writes du/dt of a padding node.
    """
    return shape.Np <= 20 and shape.Np == shape.even_Np


def _skewed(vectors: int) -> int:
    """The next number that leaves 4 when divided by 8."""
    return vectors + (4 - vectors) % 8


def illegal(plan: FusedPlan, shape: FusedShape, capability: tuple[int, int] | None = None) -> str:
    """Why a plan cannot run on a device of that compute capability, or an empty string.

    Without a capability the limits are those of every device: no tensor cores, 48 KiB shared.
    """
    count = threads(plan, shape)
    if count > MAX_THREADS:
        return f"{count} threads; allowed: {MAX_THREADS}"
    if plan.elements > SPARE:
        return f"{plan.elements} elements a block; allowed: {SPARE}"
    limit = STATIC_SHARED_LIMIT
    if plan.language == "cuda" and capability:
        known = [c for c in ARCHITECTURES if c <= capability]
        limit = ARCHITECTURES[max(known)].shared_block if known else limit
    if shared_bytes(plan, shape) > limit:
        return f"{shared_bytes(plan, shape)} bytes shared; allowed: {limit}"
    if plan.language == "numba" and (
        plan.unroll not in (1, 2, 4) or padded(shape.Np, plan.unroll) > shape.even_Np
    ):
        return f"{plan.unroll} columns at a time; allowed: 1, 2, and 4 if they fill {shape.even_Np}"
    if plan.tensor:
        if plan.language != "cuda" or (capability or (0, 0)) < TENSOR_CAPABILITY:
            return "tensor cores: CUDA C++ can use those of compute capability 8.0 and above"
        if plan.elements_inline != shape.half:
            return f"{plan.elements_inline} elements in a product; allowed: {shape.half}"
        return ""
    accumulators = 6 * plan.nodes_inline * plan.elements_inline
    if plan.language == "cuda":
        accumulators *= shape.itemsize // 4
    if accumulators > MAX_ACCUMULATORS[plan.language]:
        allowed = MAX_ACCUMULATORS[plan.language]
        return f"{accumulators} accumulators a thread; allowed: {allowed}"
    return ""


def _tensor(rows: int, inline: int, nodes: int, unroll: int, blocks: int) -> FusedPlan:
    return FusedPlan("cuda", rows, inline, nodes, unroll, blocks, tensor=True)


# The fastest plans found on an H200, by order: on tensor cores where they win, without them, and
# in Numba. In fp32 up to order 3 memory and the gather are the limit, and tensor cores do not pay.
TENSOR = {
    "float32": {
        4: _tensor(1, 16, 1, 3, 4),
        5: _tensor(1, 16, 1, 3, 4),
        6: _tensor(1, 16, 1, 3, 2),
        7: _tensor(1, 16, 2, 2, 2),
        8: _tensor(1, 16, 2, 1, 1),
        9: _tensor(1, 16, 1, 2, 1),
    },
    "float64": {
        1: _tensor(2, 8, 1, 1, 12),
        2: _tensor(2, 8, 1, 1, 6),
        3: _tensor(1, 8, 1, 2, 8),
        4: _tensor(1, 8, 1, 2, 6),
        5: _tensor(1, 8, 1, 7, 4),
        6: _tensor(1, 8, 1, 3, 2),
        7: _tensor(1, 8, 2, 3, 2),
        8: _tensor(1, 8, 2, 6, 1),
        9: _tensor(1, 8, 1, 5, 1),
    },
}
PLAIN = {
    "float32": {
        1: FusedPlan("cuda", 16, 1, 1, 2, 12),
        2: FusedPlan("cuda", 12, 2, 1, 5, 6),
        3: FusedPlan("cuda", 12, 1, 2, 10, 6),
        4: FusedPlan("cuda", 7, 2, 2, 2, 4),
        5: FusedPlan("cuda", 9, 2, 4, 2, 4),
        6: FusedPlan("cuda", 6, 2, 4, 2, 4),
        7: FusedPlan("cuda", 2, 4, 2, 2, 4),
        8: FusedPlan("cuda", 2, 4, 2, 2, 2),
        9: FusedPlan("cuda", 2, 2, 2, 1, 2),
    },
    "float64": {
        1: FusedPlan("cuda", 16, 1, 1, 2, 8),
        2: FusedPlan("cuda", 6, 2, 1, 2, 8),
        3: FusedPlan("cuda", 6, 2, 1, 2, 4),
        4: FusedPlan("cuda", 4, 2, 1, 2, 3),
        5: FusedPlan("cuda", 4, 2, 1, 2, 2),
        6: FusedPlan("cuda", 2, 2, 1, 2, 2),
        7: FusedPlan("cuda", 2, 2, 1, 2, 2),
        8: FusedPlan("cuda", 1, 2, 1, 2, 2),
        9: FusedPlan("cuda", 1, 2, 1, 2, 2),
    },
}
NUMBA = {
    "float32": {
        1: FusedPlan("numba", 32, 1, 1, 1),
        2: FusedPlan("numba", 12, 1, 1, 2),
        3: FusedPlan("numba", 6, 2, 1, 4),
        4: FusedPlan("numba", 7, 1, 2, 4),
        5: FusedPlan("numba", 4, 2, 1, 4),
        6: FusedPlan("numba", 3, 2, 2, 4),
        7: FusedPlan("numba", 1, 4, 1, 4),
        8: FusedPlan("numba", 1, 4, 1, 2),
        9: FusedPlan("numba", 1, 4, 1, 4),
    },
    "float64": {
        1: FusedPlan("numba", 32, 1, 1, 1),
        2: FusedPlan("numba", 12, 2, 1, 2),
        3: FusedPlan("numba", 6, 2, 1, 4),
        4: FusedPlan("numba", 3, 2, 1, 4),
        5: FusedPlan("numba", 4, 2, 1, 4),
        6: FusedPlan("numba", 3, 2, 1, 4),
        7: FusedPlan("numba", 2, 2, 1, 4),
        8: FusedPlan("numba", 1, 4, 1, 2),
        9: FusedPlan("numba", 1, 2, 1, 4),
    },
}


def plans(order: int, dtype: str, device: Device, language: str = "cuda") -> list[FusedPlan]:
    """The plans worth trying: about 64 to 256 threads, and all ways to share loads."""
    shape = fused_shape(order, dtype)
    found = [default_plan(order, dtype, device.compute_capability, language)]
    for inline, nodes in ((1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (1, 4), (2, 4), (4, 2)):
        wide = -(-shape.Np // nodes)
        for rows in sorted({max(1, size // wide) for size in (64, 128, 256)}):
            for unroll in (1, 2):
                blocks = max(1, 512 // padded(rows * wide, WARP)) if language == "cuda" else 1
                found.append(FusedPlan(language, rows, inline, nodes, unroll, blocks))
    if language == "cuda":
        for nodes in (1, 2, 3):
            wide = WARP * -(-shape.Np // (TILE * nodes))
            for rows in (1, 2, 4):
                for registers in (96, 128, 168):
                    blocks = max(1, 2**16 // (registers * rows * wide))
                    found.append(FusedPlan("cuda", rows, shape.half, nodes, 2, blocks, tensor=True))
    legal = (plan for plan in found if not illegal(plan, shape, device.compute_capability))
    return list(dict.fromkeys(legal))


def default_plan(
    order: int,
    dtype: str,
    capability: tuple[int, int] | None = None,
    language: str = "cuda",
) -> FusedPlan:
    """The fastest plan found on an H200 that is legal on a device of that compute capability.

    Tensor cores are for devices on which they multiply much faster than other units, which those of
    consumer cards do not in these precisions. For orders above 9 blocks of about 128 threads, with
    two nodes each.
    """
    shape = fused_shape(order, dtype, materials=True)
    plain = (PLAIN if language == "cuda" else NUMBA,)
    tables = (TENSOR, *plain) if language == "cuda" and capability in TENSOR_PAYS else plain
    for table in tables:
        plan = table[shape.dtype].get(order)
        if plan and not illegal(plan, shape, capability):
            return plan
    return FusedPlan(language, max(1, 256 // shape.Np), 1, 2, 2)


def subject(language: str) -> str:
    """Under which name the tuner remembers timings of the fused kernel."""
    return f"maxwell/fused/{language}"


def choose_plan(order: int, dtype: str, device: Device, language: str | None = None) -> FusedPlan:
    """The fastest plan that ``python -m dgbook tune maxwell`` found on a GPU, else the default.

    Without a language CUDA C++ on a GPU, and Numba in the simulator, where nothing else runs.
    """
    if device.kind != "cuda":
        return default_plan(order, dtype, None, "numba")
    language = language or "cuda"
    capability, shape = device.compute_capability, fused_shape(order, dtype, True)
    plan = remembered(
        FusedPlan, subject(language), device, order, dtype,
        lambda plan: not illegal(plan, shape, capability),
    )  # fmt: skip
    return plan or default_plan(order, dtype, capability, language)


# ---------------------------------------------------------------------------------------- arrays


def geometry(operator: Operator) -> np.ndarray:
    """What describes an element, (K, 18 or 22) float64.

    With the columns x_i of dx/dr, the edges t_1, t_2 of a face, from its first vertex to the
    others, and c = 1 / sqrt(epsilon mu):

    - x_i . x_j c / J, six numbers, (1,1), (1,2), (1,3), (2,2), (2,3), (3,3): from contravariant
      components of J curl to covariant ones of c curl;
    - of each face t_1 . t_1, t_1 . t_2, t_2 . t_2, over |t_1 x t_2| = Fs J: a quarter turn;
    - with more than one impedance, of each face Z^- / (Z^- + Z^+).
    """
    x = columns(operator)
    J, Fs = operator.jacobian, operator.face_scale.astype(np.float64)
    c = operator.speed.astype(np.float64)
    metric = np.einsum("kdi,kdj->kij", x, x) * (c / J)[:, None, None]
    t = edges(x)
    turn = np.einsum("kfad,kfbd->kfab", t, t) / (Fs * J[:, None])[..., None, None]
    i, j = np.triu_indices(3)
    parts = [metric[:, i, j], turn[:, :, [0, 0, 1], [0, 1, 1]].reshape(-1, 12)]
    if has_materials(operator):
        Z, outer = operator.impedance.astype(np.float64), operator.neighbor_impedance
        parts.append(Z / (Z + outer))
    return np.concatenate(parts, axis=1)


def has_materials(operator: Operator) -> bool:
    """Whether the impedance varies."""
    return bool((operator.impedance != operator.impedance[0, 0]).any())


def columns(operator: Operator) -> np.ndarray:
    """x_i = dx/dr_i, ``[k, d, i]``."""
    return map_derivatives(operator.mesh.vertices, operator.mesh.elements)


def edges(x: np.ndarray) -> np.ndarray:
    """t_1 and t_2 of each face, (K, 4, 2, 3): half its edges from its first vertex."""
    corners = np.concatenate([np.zeros_like(x[..., :1]), x], axis=2)
    v = face_vertices(3)
    return np.moveaxis(corners[:, :, v[:, 1:]] - corners[:, :, v[:, :1]], 1, 3)


def boundary(operator: Operator) -> np.ndarray:
    """Of each boundary face m_E, m_H, t_1, t_2 and Z, (nb, 9): u^+ from u^- and g."""
    k, f = operator.trace.boundary_faces.T
    t = edges(columns(operator)[k])[np.arange(len(k)), f].reshape(-1, 6)
    return np.concatenate([operator.mirrors, t, operator.impedance[k, :1]], axis=1)


def tangents() -> np.ndarray:
    """For each way to meet, what makes t_1 . E and t_2 . E of the neighbor's x_i . E, (24, 2, 4).

    My t_1 and t_2 lead from one vertex to another, and so they do in the neighbor: there they are
    differences of its x_i, x_0 being zero. The last column is padding.
    """
    corner = np.pad(np.eye(3), ((1, 0), (0, 1)))
    ways = []
    for g in range(4):
        for permutation in vertex_permutations(3):
            mine = corner[face_vertices(3)[g][np.argsort(permutation)]]
            ways.append(mine[1:] - mine[0])
    return np.array(ways)


def for_threads(matrix: np.ndarray, plan: FusedPlan, shape: FusedShape) -> np.ndarray:
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


def for_tensor_cores(matrix: np.ndarray, plan: FusedPlan, shape: FusedShape) -> np.ndarray:
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


@lru_cache(maxsize=64)
def kernel(shape: FusedShape, plan: FusedPlan) -> Kernel | CudaKernel:
    """The kernel, compiled once for equal arguments."""
    if plan.language == "numba":
        return make_fused(shape, plan)
    single = shape.itemsize == 4
    macros = {
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
        "MATERIALS": int(shape.materials),
        "KEEP": int(keeps_state(shape)),
        "TENSOR": int(plan.tensor),
    }
    return load(SOURCE, "fused", macros)


class FusedLauncher:
    """A whole stage of the upwind scheme in one kernel.

    A state on the device is flat: element by element along a curve that fills space, node by node,
    the covariant components
    x_i . E and x_i . (Z H), i = 1, 2, 3, where x_i are the columns of dx/dr and Z is the element's
    impedance; then room for `SPARE` more elements. The tangential components on a face are those
    of the neighbor up to signs and sums, a curl needs 12 products with an entry of D and not 18,
    and the upwind flux has two components. In these components the equations of every uniform
    medium are those of the vacuum, at the speed c = 1 / sqrt(epsilon mu).

    Parameters
    ----------
    operator : Operator
        With the upwind flux.
    device : Device
        "cuda", or "simulator", where Numba's kernel runs.
    plan : FusedPlan, optional
        If not given, what `choose_plan` says.

    Raises
    ------
    ValueError
        For another flux, or a plan that is not legal on the device.

    Attributes
    ----------
    in_place : bool
        False: neighbors still need u, so that the new state is written elsewhere.
    order : (K,)
        Which element stands at each place of a state.
    """

    in_place = False

    def __init__(self, operator: Operator, device: Device, plan: FusedPlan | None = None) -> None:
        if operator.flux != "upwind":
            raise ValueError(
                f"operator.flux = {operator.flux!r}; allowed: 'upwind', whose flux is of rank 2"
            )
        self.operator, self.device = operator, device
        element, trace = operator.element, operator.trace
        dtype = operator.lift.dtype.name
        self.real = np.dtype(dtype).type
        self.shape = FusedShape(element.Np, element.Nfp, dtype, has_materials(operator))
        self.size = (trace.K + SPARE) * 6 * self.shape.even_Np

        self.order = along_a_curve(operator.mesh)
        place = np.empty_like(self.order)
        place[self.order] = np.arange(trace.K)
        # In place of a ghost the number of its boundary face.
        place = np.append(place, np.arange(trace.ghosts))
        links = place[trace.links // WAYS] * WAYS + trace.links % WAYS
        self.arrays = {
            "links": self._flat(_lengthened(links[self.order]), np.uint32),
            "opposite": self._flat(trace.opposite, np.uint32),
            "tangents": self._flat(tangents(), self.real),
            "face_nodes": self._flat(element.face_nodes, np.uint32),
            "geometry": self._flat(_lengthened(geometry(operator)[self.order]), self.real),
            "boundary": self._flat(np.append(boundary(operator), 0.0), self.real),
        }
        self._load(plan or choose_plan(element.order, dtype, device))

    def planned(self, plan: FusedPlan) -> FusedLauncher:
        """The same arrays, with a kernel for another plan; states are the same, too.

        Raises
        ------
        ValueError
            If the plan is not legal.
        """
        other = copy.copy(self)
        other._load(plan)
        return other

    def _load(self, plan: FusedPlan) -> None:
        if trouble := illegal(plan, self.shape, self.device.compute_capability):
            raise ValueError(f"plan = {plan}: {trouble}")
        self.plan = plan
        element = self.operator.element
        D = element.derivative.transpose(2, 0, 1)
        lift = element.lift.reshape(element.Np, 4, 1, element.Nfp).transpose(1, 3, 2, 0)
        if plan.tensor:
            D = for_tensor_cores(D, plan, self.shape)
            lift = np.stack([for_tensor_cores(m, plan, self.shape) for m in lift], axis=1)
        else:
            D = np.pad(D, ((0, element.Np % 2), (0, 0), (0, 0)))  # Numba reads even_Np columns, too
            D = for_threads(D, plan, self.shape)
            lift = np.stack([for_threads(m, plan, self.shape) for m in lift])
        matrices = {"derivative": self._flat(D, self.real), "lift": self._flat(lift, self.real)}
        self.arrays = self.arrays | matrices
        self.kernel = kernel(self.shape, plan)

    def _flat(self, values: np.ndarray, dtype: type) -> Any:
        return self.device.array(values.astype(dtype).ravel())

    # -- states ----------------------------------------------------------------------------

    def zeros(self) -> Any:
        """A state of zeros."""
        return self.device.zeros(self.size, self.real)

    def upload(self, u: np.ndarray) -> Any:
        """A state (6, K, Np) on the device."""
        K, Np = self.operator.trace.K, self.shape.Np
        state = np.zeros((K + SPARE, self.shape.even_Np, 6), self.real)
        for half, x in zip((0, 3), self._bases(), strict=True):
            field = np.moveaxis(u[half : half + 3], 0, 2)  # (K, Np, 3)
            state[:K, :Np, half : half + 3] = field[self.order] @ x
        return self.device.array(state.ravel())

    def download(self, state: Any) -> np.ndarray:
        """A state of the device as a NumPy array (6, K, Np)."""
        K, Np = self.operator.trace.K, self.shape.Np
        host = self.device.to_numpy(state).reshape(-1, self.shape.even_Np, 6)[:K, :Np]
        u = np.empty((6, K, Np), self.real)
        for half, x in zip((0, 3), self._bases(), strict=True):
            field = host[..., half : half + 3] @ np.linalg.inv(x)
            u[half : half + 3, self.order] = np.moveaxis(field, 2, 0)
        return u

    def _bases(self) -> tuple[np.ndarray, np.ndarray]:
        """x_i, and Z x_i, of the elements along the curve, (K, 3, 3) float64."""
        x = columns(self.operator)[self.order]
        return x, x * self.operator.impedance[self.order, :1, None]

    # -- launches --------------------------------------------------------------------------

    def rhs(self, u: Any, data: Any, out: Any) -> None:
        """out = du/dt; `data` are g on the boundary, flat (6 nb Nfp,)."""
        self.stage(u, out, out, data, 0.0, 0.0, 1.0)

    def stage(self, u: Any, res: Any, new: Any, data: Any, a: float, b: float, dt: float) -> None:
        """res = a res + dt du/dt, new = u + b res; `new` is not u.

        Where a = 0, `res` is not read; where b = 0, `new` is not written.
        """
        plan, arrays = self.plan, self.arrays
        arguments = (u, data, *(arrays[name] for name in ARRAYS), res, new)
        scalars = (self.real(value) for value in (a, b, dt))
        blocks = -(-self.operator.trace.K // plan.elements)
        if plan.language == "cuda":
            shared = shared_bytes(plan, self.shape)
            faces = self.operator.trace.ghosts
            self.kernel[blocks, threads(plan, self.shape), shared](*arguments, faces, *scalars)
        else:
            self.kernel[blocks, (lanes(plan, self.shape), plan.rows)](*arguments, *scalars)


ARRAYS = (
    "links",
    "opposite",
    "tangents",
    "face_nodes",
    "geometry",
    "boundary",
    "derivative",
    "lift",
)


def _lengthened(values: np.ndarray) -> np.ndarray:
    """With `SPARE` rows of zeros behind: their neighbor is element 0 and du/dt is zero."""
    return np.concatenate([values, np.zeros((SPARE, *values.shape[1:]), values.dtype)])
