"""One kernel for a whole stage by dense matrices: its arrays, its plans and its launches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dgbook.acoustics.kernels.fused import GEOMETRY, make_fused
from dgbook.acoustics.launch.nodal import MOST
from dgbook.acoustics.problem import FIELDS
from dgbook.acoustics.reference import Operator
from dgbook.element import space_dimension
from dgbook.gpu import Device, Kernel, limits
from dgbook.gpu.layout import padded
from dgbook.gpu.limits import ARCHITECTURES, WARP
from dgbook.gpu.source import CudaKernel, load
from dgbook.mesh import along_a_curve, geometric_factors
from dgbook.nodal.fused import (
    SPARE,
    TENSOR_PAYS,
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
UNROLLS = (1, 2, 4, 5)  # columns at a time that Numba's kernel can take
REGISTERS = {1: (64, 72, 80), 2: (80, 128), 3: (96, 128), 4: (128, 168), 5: (168, 224)}
"""Of a thread, by tiles of nodes that its warp works on: what a tuner lets the compiler have."""
MULTIPROCESSOR = ARCHITECTURES[9, 0]  # for whose shared memory a tuner's plans are made
MAX_WASTE = 0.15  # of a warp's tiles of nodes: more are not worth trying


@dataclass(frozen=True)
class FusedShape(NodalShape):
    """The sizes that the kernels close over."""

    fields: ClassVar[int] = len(FIELDS)

    @property
    def width(self) -> int:
        """Numbers of a node that lie together, 16 bytes."""
        return VECTOR_BYTES // self.itemsize

    @property
    def size(self) -> int:
        """Numbers in the state of an element."""
        return self.fields * self.Np

    def place(self, field: int) -> int:
        """How far a field of a node lies behind the node's p.

        Nodes of an element follow each other, `width` fields of each: in fp64 first p and W_1 of
        all nodes, then W_2 and W_3.
        """
        return field // self.width * self.width * self.Np + field % self.width

    def shared_bytes(self, plan: FusedPlan) -> int:
        """Shared memory of a block: states and face numbers; for CUDA C++ geometry and links too.

        The elements begin a number of vectors apart that leaves them in different banks, see
        kernels/fused.cu.
        """
        if plan.language == "numba":
            return plan.elements * (self.size + 4 * self.Nfp) * self.itemsize
        words = self.fields // self.width  # vectors a node
        if plan.tensor:
            columns, face = padded(self.Np, self.step), padded(self.Nfp, self.step)
            state = columns | 1 if words == 1 else _apart(words * columns, 4)
            flux = _apart(4 * face // self.width, 2)
        else:
            state = words * padded(self.Np, 2) | 1
            flux = 4 * padded(self.Nfp, 2) // self.width | 1
        described = GEOMETRY * self.itemsize + 4 * 4
        return plan.elements * (VECTOR_BYTES * (state + flux) + described)

    def stuck(self, plan: FusedPlan) -> str:
        """Why Numba's kernel cannot take so many columns at a time, or an empty string."""
        if plan.unroll in UNROLLS and self.Np % plan.unroll == 0:
            return ""
        return f"{plan.unroll} columns at a time; allowed: of {UNROLLS} those that divide {self.Np}"


def _apart(vectors: int, rest: int) -> int:
    """The next number that leaves `rest` when divided by 8."""
    return vectors + (rest - vectors) % 8


def fused_shape(order: int, dtype: str) -> FusedShape:
    """The shape of tetrahedra of an order."""
    return FusedShape(space_dimension(3, order), space_dimension(2, order), np.dtype(dtype).name)


# ----------------------------------------------------------------------------------------- plans

# By order: on tensor cores, without them, and in Numba. In fp32 those of orders 1 to 3 and 5 to 8,
# in fp64 those of 1 to 3, 5 and 7 are the fastest of all tried on an H200; the others were chosen
# by registers, spills and resident warps.
TENSOR = {
    "float32": {
        4: tensor_plan(1, 16, 1, 1, 5),
        5: tensor_plan(1, 16, 1, 2, 4),
        6: tensor_plan(1, 16, 1, 2, 2),
        7: tensor_plan(1, 16, 2, 2, 2),
        8: tensor_plan(1, 16, 2, 1, 2),
        9: tensor_plan(1, 16, 4, 1, 2),
        10: tensor_plan(1, 16, 3, 1, 1),
        11: tensor_plan(1, 16, 3, 1, 1),
        12: tensor_plan(1, 16, 3, 1, 1),
    },
    "float64": {
        1: tensor_plan(1, 8, 1, 2, 32),
        2: tensor_plan(1, 8, 2, 2, 16),
        3: tensor_plan(1, 8, 1, 2, 10),
        4: tensor_plan(1, 8, 1, 2, 5),
        5: tensor_plan(1, 8, 1, 4, 4),
        6: tensor_plan(1, 8, 3, 2, 4),
        7: tensor_plan(1, 8, 1, 2, 2),
        8: tensor_plan(1, 8, 3, 2, 2),
        9: tensor_plan(1, 8, 2, 4, 1),
        10: tensor_plan(1, 8, 4, 2, 1),
        11: tensor_plan(1, 8, 3, 2, 1),
        12: tensor_plan(1, 8, 3, 2, 1),
    },
}
PLAIN = {
    "float32": {
        1: FusedPlan("cuda", 32, 1, 1, 1, 8),
        2: FusedPlan("cuda", 6, 2, 1, 1, 16),
        3: FusedPlan("cuda", 3, 4, 1, 2, 12),
        4: FusedPlan("cuda", 7, 2, 2, 2, 5),
        5: FusedPlan("cuda", 9, 2, 4, 2, 4),
        6: FusedPlan("cuda", 6, 2, 4, 2, 4),
        7: FusedPlan("cuda", 2, 4, 2, 2, 4),
        8: FusedPlan("cuda", 2, 4, 2, 2, 2),
        9: FusedPlan("cuda", 2, 4, 2, 1, 2),
    },
    "float64": {
        1: FusedPlan("cuda", 32, 1, 1, 2, 8),
        2: FusedPlan("cuda", 12, 1, 1, 2, 6),
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
        1: FusedPlan("numba", 32, 1, 1, 4),
        2: FusedPlan("numba", 24, 2, 2, 5),
        3: FusedPlan("numba", 12, 2, 2, 5),
        4: FusedPlan("numba", 7, 2, 2, 5),
        5: FusedPlan("numba", 4, 4, 2, 4),
        6: FusedPlan("numba", 3, 4, 2, 4),
        7: FusedPlan("numba", 2, 4, 2, 5),
        8: FusedPlan("numba", 1, 4, 2, 5),
        9: FusedPlan("numba", 1, 4, 2, 5),
    },
    "float64": {
        1: FusedPlan("numba", 32, 1, 1, 4),
        2: FusedPlan("numba", 12, 2, 1, 5),
        3: FusedPlan("numba", 6, 2, 1, 5),
        4: FusedPlan("numba", 3, 2, 1, 5),
        5: FusedPlan("numba", 4, 2, 1, 4),
        6: FusedPlan("numba", 3, 2, 1, 4),
        7: FusedPlan("numba", 2, 2, 1, 5),
        8: FusedPlan("numba", 1, 2, 1, 5),
        9: FusedPlan("numba", 1, 2, 1, 5),
    },
}

DEFAULTS = Defaults("acoustics", fused_shape, TENSOR, PLAIN, NUMBA)
default_plan, choose_plan, subject = DEFAULTS.default_plan, DEFAULTS.choose_plan, DEFAULTS.subject


def plans(order: int, dtype: str, device: Device, language: str = "cuda") -> list[FusedPlan]:
    """The plans worth trying, the default first: all ways to share loads, in blocks of a few sizes.

    Where tensor cores pay, others are tried only for elements of few nodes, which leave tiles half
    empty. The number of blocks that a multiprocessor should hold follows from the registers that a
    thread may have.
    """
    shape, capability = fused_shape(order, dtype), device.compute_capability
    found = [default_plan(order, dtype, capability, language)]
    if language == "numba":
        for inline, nodes in ((1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (4, 2)):
            wide = -(-shape.Np // nodes)
            for rows in {max(1, size // wide) for size in (64, 128)}:
                found += [FusedPlan("numba", rows, inline, nodes, columns) for columns in (2, 4, 5)]
    else:
        pays = capability in TENSOR_PAYS
        found += _tensor_plans(shape) if pays else []
        found += _plain_plans(shape) if not pays or shape.Np <= 20 else []
    legal = (plan for plan in found if not illegal(plan, shape, capability))
    return list(dict.fromkeys(legal))


def _plain_plans(shape: FusedShape) -> list[FusedPlan]:
    found = []
    for inline, nodes in ((1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (4, 2), (2, 4)):
        wide = -(-shape.Np // nodes)
        warps = 32 if inline * nodes <= 2 else 24  # resident, with registers for the accumulators
        for rows in {max(1, size // wide) for size in (64, 128)}:
            blocks = max(1, warps * WARP // padded(rows * wide, WARP))
            found += [FusedPlan("cuda", rows, inline, nodes, n, blocks) for n in (1, 2)]
    return found


def _tensor_plans(shape: FusedShape) -> list[FusedPlan]:
    tiles = -(-shape.Np // TILE)
    unrolls = (1, 2) if shape.itemsize == 4 or tiles < 3 else (2, 4)
    found = []
    for nodes, choices in REGISTERS.items():
        warps = -(-tiles // nodes)
        if nodes > 1 and nodes * warps > (1 + MAX_WASTE) * tiles:
            continue
        for rows in (1, 2, 4):
            for registers in choices:
                blocks = limits.REGISTERS // (registers * rows * warps * WARP)
                plan = tensor_plan(rows, shape.half, nodes, 1, max(1, blocks))
                fit = MULTIPROCESSOR.shared // (shape.shared_bytes(plan) + 1024)
                plan = replace(plan, blocks=max(1, min(blocks, fit)))
                if rows == 1 or rows * warps <= 16:
                    found += [replace(plan, unroll=unroll) for unroll in unrolls]
    return found


# ---------------------------------------------------------------------------------------- arrays


def geometry(operator: Operator) -> np.ndarray:
    """What describes an element, (K, 20) float64.

    - (J / rho) grad r_i . grad r_j, six numbers, (1,1), (1,2), (1,3), (2,2), (2,3), (3,3): from
      covariant components of grad p to rho J grad r_i . v_t;
    - kappa / J, from the divergence of the W_i to p_t, and a zero that fills 16 bytes;
    - of each face a sJ and b: with n sJ = -J grad r_f the number s = a sJ [p] - b (W_f + W_f') is
      sJ times what ``Operator.rank_one`` says of a and b;
    - of each face r / sJ, what s is multiplied by in -grad p, with the sign of n . x_f: negative on
      face 0, where it counts for all components.
    """
    G, J, sJ = _map(operator)
    kappa, rho = operator.kappa.astype(np.float64), operator.rho.astype(np.float64)
    metric = np.einsum("kid,kjd->kij", G, G) * (J / rho)[:, None, None]
    a, b, r = operator.rank_one.astype(np.float64)
    i, j = np.triu_indices(3)
    divergence = np.stack([kappa / J, np.zeros_like(J)], axis=1)
    weights = np.stack([a * sJ, b], axis=2).reshape(-1, 8)
    return np.concatenate([metric[:, i, j], divergence, weights, r / sJ * [-1, 1, 1, 1]], axis=1)


def boundary(operator: Operator) -> np.ndarray:
    """Of each boundary face m_p, m_v and sJ n, (nb, 5): u^+ from u^- and g."""
    G, J, _ = _map(operator)
    k, f = operator.trace.boundary_faces.T
    outward = -np.concatenate([-G.sum(axis=1, keepdims=True), G], axis=1) * J[:, None, None]
    return np.concatenate([operator.mirrors, outward[k, f]], axis=1)


def _map(operator: Operator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """grad r_i as ``[k, i, d]``, J and sJ, in float64."""
    factors = geometric_factors(operator.mesh)
    return factors.rst_xyz, factors.jacobian, factors.face_jacobian


@lru_cache(maxsize=64)
def kernel(shape: FusedShape, plan: FusedPlan) -> Kernel | CudaKernel:
    """The kernel, compiled once for equal arguments."""
    if plan.language == "numba":
        return make_fused(shape, plan)
    return load(SOURCE, "fused", macros(plan, shape))


class FusedLauncher(NodalStage):
    """A whole stage of the upwind or the penalty scheme in one kernel, by dense matrices.

    They are those of the operator's basis. In the Bernstein basis all that is said of nodes holds
    of control points, see `dgbook.acoustics.sparse_or_dense`.

    A state on the device is flat: element by element along a curve that fills space, node by node
    (see `FusedShape.place`), p and the contravariant velocities W_i = J grad r_i . v, i = 1, 2, 3;
    then room for `SPARE` more elements. A divergence needs 3 products with an entry of D and not 9;
    what flows through face i is W_i, in the same units on either side; and the flux has rank 1, so
    that one number a face node is lifted.

    Parameters
    ----------
    operator : Operator
        In either basis, with another flux than the central one.
    device : Device
        "cuda", or "simulator", where Numba's kernel runs.
    plan : FusedPlan, optional
        If not given, what `choose_plan` says.

    Raises
    ------
    ValueError
        For the central flux, a mesh too large for 32-bit indices, or a plan that is not legal on
        the device.

    Attributes
    ----------
    order : (K,)
        Which element stands at each place of a state.
    """

    inputs = (
        "links",
        "opposite",
        "face_nodes",
        "geometry",
        "boundary",
        "derivative",
        "lift",
    )

    def __init__(self, operator: Operator, device: Device, plan: FusedPlan | None = None) -> None:
        dtype = operator.weights.dtype.name
        super().__init__(operator, device, dtype)
        self.shape = fused_shape(operator.order, dtype)
        self.size = (operator.trace.K + SPARE) * self.shape.size
        if self.size >= MOST:
            raise ValueError(
                f"mesh.K = {operator.trace.K} elements of order {operator.order} need a state of "
                f"{self.size} entries; allowed: less than {MOST}"
            )
        self.order = along_a_curve(operator.mesh)
        described = lengthened(geometry(operator)[self.order])
        self.arrays = {
            "links": self._flat(links_along(self.order, operator.trace), np.uint32),
            "opposite": self._flat(operator.trace.opposite, np.uint32),
            "face_nodes": self._flat(operator.basis.element.face_nodes, np.uint32),
            "geometry": self._flat(described, self.real),
            "boundary": self._flat(np.append(boundary(operator), 0.0), self.real),
        }
        self._load(plan or choose_plan(operator.order, dtype, device))

    def _matrices(self, plan: FusedPlan) -> dict[str, np.ndarray]:
        basis, element = self.operator.basis, self.operator.basis.element
        D = -basis.differentiate(np.eye(element.Np)[None])[0].swapaxes(0, 1)
        lift = element.lift.reshape(element.Np, 4, 1, element.Nfp).transpose(1, 3, 2, 0)
        if plan.tensor:
            D, lift = (_as_threads_hold_them(matrix) for matrix in (D, lift))
            lift = np.stack([for_tensor_cores(m, plan, self.shape) for m in lift], axis=1)
            return {"derivative": for_tensor_cores(D, plan, self.shape), "lift": lift}
        lift = np.stack([for_threads(m, plan, self.shape) for m in lift])
        return {"derivative": for_threads(D, plan, self.shape), "lift": lift}

    def _kernel(self, plan: FusedPlan) -> Kernel | CudaKernel:
        return kernel(self.shape, plan)

    # -- states ----------------------------------------------------------------------------

    def upload(self, u: np.ndarray) -> Any:
        """A state (4, K, Np) on the device."""
        K, shape = self.operator.trace.K, self.shape
        fields = np.empty((K, shape.Np, 4))
        fields[..., 0] = u[0, self.order]
        fields[..., 1:] = np.moveaxis(u[1:, self.order], 0, 2) @ self._rows().swapaxes(1, 2)
        state = np.zeros((K + SPARE, shape.size), self.real)
        planes = fields.reshape(K, shape.Np, -1, shape.width).swapaxes(1, 2)
        state[:K] = planes.reshape(K, -1)
        return self.device.array(state.ravel())

    def download(self, state: Any) -> np.ndarray:
        """A state of the device as a NumPy array (4, K, Np)."""
        K, shape = self.operator.trace.K, self.shape
        host = self.device.to_numpy(state).reshape(-1, shape.size)[:K]
        fields = host.reshape(K, -1, shape.Np, shape.width).swapaxes(1, 2).reshape(K, shape.Np, 4)
        u = np.empty((4, K, shape.Np), self.real)
        u[0, self.order] = fields[..., 0]
        velocities = fields[..., 1:] @ np.linalg.inv(self._rows()).swapaxes(1, 2)
        u[1:, self.order] = np.moveaxis(velocities, 2, 0)
        return u

    def _rows(self) -> np.ndarray:
        """J grad r_i of the elements along the curve, (K, 3, 3) float64."""
        G, J, _ = _map(self.operator)
        return (G * J[:, None, None])[self.order]


def _as_threads_hold_them(matrix: np.ndarray) -> np.ndarray:
    """Rows, the last axis, in the order of a product's columns: nodes 0, 4, 1, 5, ... of a tile.

    A lane holds two columns that follow each other. So it has nodes t and t + 4, and lanes side by
    side read and write nodes side by side.
    """
    Np = matrix.shape[-1]
    full = np.pad(matrix, [*((0, 0),) * (matrix.ndim - 1), (0, -Np % TILE)])
    tiles = full.reshape(*matrix.shape[:-1], -1, 2, TILE // 2)
    return tiles.swapaxes(-1, -2).reshape(full.shape)
