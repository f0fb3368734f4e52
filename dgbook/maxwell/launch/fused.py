"""One kernel for a whole stage: its arrays, the plans that it runs with, and its launches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dgbook.gpu import Device, Kernel
from dgbook.gpu.layout import padded
from dgbook.gpu.limits import WARP
from dgbook.gpu.source import CudaKernel, load
from dgbook.maxwell.kernels.fused import make_fused
from dgbook.maxwell.reference import Operator
from dgbook.mesh import along_a_curve
from dgbook.mesh.geometry import map_derivatives
from dgbook.mesh.mesh import face_vertices, vertex_permutations
from dgbook.nodal.fused import (
    SPARE,
    TILE,
    VECTOR_BYTES,
    Defaults,
    FusedPlan,
    NodalShape,
    NodalStage,
    for_tensor_cores,
    for_threads,
    illegal,
    lengthened,
    links_along,
    macros,
    tensor_plan,
)

SOURCE = Path(__file__).parents[1] / "kernels" / "fused.cu"


@dataclass(frozen=True)
class FusedShape(NodalShape):
    """The sizes that kernels close over.

    Attributes
    ----------
    Np, Nfp, dtype
        As of `NodalShape`.
    materials : bool
        Whether the impedance varies, so that each face needs one number more.
    """

    materials: bool = False
    fields: ClassVar[int] = 6

    @property
    def even_Np(self) -> int:
        """Nodes that the state has room for: a pair of them is a multiple of 16 bytes."""
        return padded(self.Np, 2)

    @property
    def geometry(self) -> int:
        """Numbers that describe an element and its faces."""
        return 22 if self.materials else 18

    @property
    def keeps_state(self) -> bool:
        """Whether du/dt gets a place of its own, so that u stays in shared memory for the update.

        Where elements are small. And only for even Np: nobody writes du/dt of a padding node.
        """
        return self.Np <= 20 and self.Np == self.even_Np

    def shared_bytes(self, plan: FusedPlan) -> int:
        """Shared memory of a block: states and face numbers; for CUDA C++ geometry and links too.

        The rows begin a number of vectors apart that leaves them in different banks, see fused.cu.
        """
        if plan.language == "numba":
            return plan.elements * (6 * self.even_Np + 8 * self.Nfp) * self.itemsize
        width = VECTOR_BYTES // self.itemsize
        if plan.tensor:
            groups = plan.elements
            state = _skewed(6 * padded(self.Np, self.step) // width)
            flux = _skewed(8 * padded(self.Nfp, self.step) // width)
        else:
            groups = plan.rows
            state = plan.elements_inline * 6 * self.even_Np // width | 1
            flux = plan.elements_inline * 8 * padded(self.Nfp, 2) // width | 1
        if self.keeps_state:
            flux = max(flux, state)
        described = plan.elements * (self.geometry * self.itemsize + 4 * 4)
        return VECTOR_BYTES * groups * (state + flux) + described

    def stuck(self, plan: FusedPlan) -> str:
        """Why Numba's kernel cannot take so many columns at a time, or an empty string."""
        if plan.unroll in (1, 2, 4) and padded(self.Np, plan.unroll) <= self.even_Np:
            return ""
        return f"{plan.unroll} columns at a time; allowed: 1, 2, and 4 if they fill {self.even_Np}"


def _skewed(vectors: int) -> int:
    """The next number that leaves 4 when divided by 8."""
    return vectors + (4 - vectors) % 8


def fused_shape(order: int, dtype: str, materials: bool = False) -> FusedShape:
    """The shape of tetrahedra of an order."""
    Np, Nfp = (order + 1) * (order + 2) * (order + 3) // 6, (order + 1) * (order + 2) // 2
    return FusedShape(Np, Nfp, np.dtype(dtype).name, materials)


# ----------------------------------------------------------------------------------------- plans


# The fastest plans found on an H200, by order: on tensor cores where they win, without them, and
# in Numba. In fp32 up to order 3 memory and the gather are the limit, and tensor cores do not pay.
TENSOR = {
    "float32": {
        4: tensor_plan(1, 16, 1, 3, 4),
        5: tensor_plan(1, 16, 1, 3, 4),
        6: tensor_plan(1, 16, 1, 3, 2),
        7: tensor_plan(1, 16, 2, 2, 2),
        8: tensor_plan(1, 16, 2, 1, 1),
        9: tensor_plan(1, 16, 1, 2, 1),
    },
    "float64": {
        1: tensor_plan(2, 8, 1, 1, 12),
        2: tensor_plan(2, 8, 1, 1, 6),
        3: tensor_plan(1, 8, 1, 2, 8),
        4: tensor_plan(1, 8, 1, 2, 6),
        5: tensor_plan(1, 8, 1, 7, 4),
        6: tensor_plan(1, 8, 1, 3, 2),
        7: tensor_plan(1, 8, 2, 3, 2),
        8: tensor_plan(1, 8, 2, 6, 1),
        9: tensor_plan(1, 8, 1, 5, 1),
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


DEFAULTS = Defaults(
    "maxwell", lambda order, dtype: fused_shape(order, dtype, materials=True), TENSOR, PLAIN, NUMBA
)
default_plan, choose_plan, subject = DEFAULTS.default_plan, DEFAULTS.choose_plan, DEFAULTS.subject


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


# ---------------------------------------------------------------------------------------- arrays


def geometry(operator: Operator) -> np.ndarray:
    """What describes an element, (K, 18 or 22) float64.

    With the columns x_i of dx/dr, half the edges t_1, t_2 of a face, from its first vertex to the
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


@lru_cache(maxsize=64)
def kernel(shape: FusedShape, plan: FusedPlan) -> Kernel | CudaKernel:
    """The kernel, compiled once for equal arguments."""
    if plan.language == "numba":
        return make_fused(shape, plan)
    own = {"MATERIALS": int(shape.materials), "KEEP": int(shape.keeps_state)}
    return load(SOURCE, "fused", macros(plan, shape) | own)


class FusedLauncher(NodalStage):
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
    order : (K,)
        Which element stands at each place of a state.
    """

    inputs = (
        "links",
        "opposite",
        "tangents",
        "face_nodes",
        "geometry",
        "boundary",
        "derivative",
        "lift",
    )

    def __init__(self, operator: Operator, device: Device, plan: FusedPlan | None = None) -> None:
        if operator.flux != "upwind":
            raise ValueError(
                f"operator.flux = {operator.flux!r}; allowed: 'upwind', whose flux is of rank 2"
            )
        element, trace = operator.element, operator.trace
        dtype = operator.lift.dtype.name
        super().__init__(operator, device, dtype)
        self.shape = FusedShape(element.Np, element.Nfp, dtype, has_materials(operator))
        self.size = (trace.K + SPARE) * 6 * self.shape.even_Np

        self.order = along_a_curve(operator.mesh)
        self.arrays = {
            "links": self._flat(links_along(self.order, trace), np.uint32),
            "opposite": self._flat(trace.opposite, np.uint32),
            "tangents": self._flat(tangents(), self.real),
            "face_nodes": self._flat(element.face_nodes, np.uint32),
            "geometry": self._flat(lengthened(geometry(operator)[self.order]), self.real),
            "boundary": self._flat(np.append(boundary(operator), 0.0), self.real),
        }
        self._load(plan or choose_plan(element.order, dtype, device))

    def _matrices(self, plan: FusedPlan) -> dict[str, np.ndarray]:
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
        return {"derivative": D, "lift": lift}

    def _kernel(self, plan: FusedPlan) -> Kernel | CudaKernel:
        return kernel(self.shape, plan)

    # -- states ----------------------------------------------------------------------------

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
