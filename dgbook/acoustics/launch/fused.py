"""One kernel for a whole stage by dense matrices: its arrays, its plans and its launches."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.acoustics.kernels.fused import make_fused
from dgbook.acoustics.kernels.local import make_local
from dgbook.acoustics.plan import Shape
from dgbook.acoustics.reference import Operator
from dgbook.element import NodalElement
from dgbook.gpu import Device, Kernel
from dgbook.gpu.plan import choose
from dgbook.gpu.source import CudaKernel, load
from dgbook.mesh import along_a_curve, geometric_factors
from dgbook.mesh.geometry import adjugates, map_derivatives
from dgbook.nodal.fused import (
    SPARE,
    TILE,
    FusedPlan,
    NodalStage,
    lift_of_faces,
    macros,
)
from dgbook.nodal.local import Clusters
from dgbook.nodal.local_device import LocalStage

SOURCE = Path(__file__).parents[1] / "kernels" / "fused" / "kernel.cu"


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


def components(operator: Operator, elements: np.ndarray) -> np.ndarray:
    """Matrices from p and v to p and J grad r_i . v of elements, (elements, 4, 4) float64."""
    mesh = operator.mesh
    x = map_derivatives(mesh.vertices, mesh.elements[elements])
    matrices = np.zeros((len(elements), 4, 4))
    matrices[:, 0, 0] = 1
    matrices[:, 1:, 1:], _ = adjugates(x)
    return matrices


def _map(operator: Operator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """grad r_i as ``[k, i, d]``, J and sJ, in float64."""
    factors = geometric_factors(operator.mesh)
    return factors.rst_xyz, factors.jacobian, factors.face_jacobian


@lru_cache(maxsize=64)
def kernel(shape: Shape, plan: FusedPlan, factored: bool = False) -> Kernel | CudaKernel:
    """The kernel, compiled once for equal arguments; `factored` as of `EitherForm`."""
    if plan.language == "numba":
        return make_fused(shape, plan, factored)
    return load(SOURCE, "fused", macros(plan, shape) | {"FACTORED": int(factored)})


class FusedLauncher(NodalStage):
    """A whole stage of the upwind or the penalty scheme in one kernel, by dense matrices.

    They are those of the operator's basis. In the Bernstein basis all that is said of nodes holds
    of control points, see `dgbook.acoustics.launch.bernstein_fused.launcher`.

    A state on the device is flat: element by element along a curve that fills space, node by node
    (see `Shape.place`), p and the contravariant velocities W_i = J grad r_i . v, i = 1, 2, 3;
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
        If not given, what `dgbook.gpu.plan.choose` says.

    Raises
    ------
    ValueError
        For the central flux, a mesh too large for 32-bit indices, or a plan that is not legal on
        the device.
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
        self.shape = Shape(operator.order, dtype)
        self.size = (operator.trace.K + SPARE) * self.shape.size
        self._check_indices(self.size)
        self.order = along_a_curve(operator.mesh)
        opposite = operator.trace.opposite
        self.arrays = self._of_mesh(geometry(operator), boundary(operator), opposite)
        self.arrays |= self._on_device({"face_nodes": operator.basis.element.face_nodes}, {})
        self._load(plan or choose(FusedPlan, self.shape, device))

    def _matrices(self, plan: FusedPlan) -> tuple[np.ndarray, np.ndarray]:
        basis, element = self.operator.basis, self.operator.basis.element
        D = -basis.differentiate(np.eye(element.Np)[None])[0].swapaxes(0, 1)
        matrices = D, lift_of_faces(element)
        return tuple(map(_as_threads_hold_them, matrices)) if plan.tensor else matrices

    def _kernel(self, plan: FusedPlan) -> Kernel | CudaKernel:
        return kernel(self.shape, plan, self.factored)

    # -- states ----------------------------------------------------------------------------

    def components(self, elements: np.ndarray) -> np.ndarray:
        """What a state holds of the fields in some elements, (elements, 4, 4) float64."""
        return components(self.operator, elements)

    def _in_element(self) -> tuple[int, np.ndarray]:
        shape = self.shape
        fields = np.array([shape.place(field) for field in range(4)])
        return shape.size, fields[:, None] + shape.width * np.arange(shape.Np)

    def part(self, states: Any, places: slice) -> Any:
        """States, flat (..., entries), at some places: (..., 4, places, Np) on the device."""
        shape = self.shape
        values = states.reshape(*states.shape[:-1], -1, shape.size)[..., places, :]
        planes = values.reshape(*values.shape[:-1], -1, shape.Np, shape.width).swapaxes(-3, -2)
        fields = planes.reshape(*values.shape[:-1], shape.Np, 4)
        mesh = self.operator.mesh
        x = map_derivatives(mesh.vertices, mesh.elements[self.order[places]])
        rows = self.device.array((x / adjugates(x)[1]).swapaxes(1, 2))
        fields = np.concatenate([fields[..., :1], fields[..., 1:] @ rows], axis=-1)
        return np.moveaxis(fields, -1, -3)


def _as_threads_hold_them(matrix: np.ndarray) -> np.ndarray:
    """Rows, the last axis, in the order of a product's columns: nodes 0, 4, 1, 5, ... of a tile.

    A lane holds two columns that follow each other. So it has nodes t and t + 4, and lanes side by
    side read and write nodes side by side.
    """
    Np = matrix.shape[-1]
    full = np.pad(matrix, [*((0, 0),) * (matrix.ndim - 1), (0, -Np % TILE)])
    tiles = full.reshape(*matrix.shape[:-1], -1, 2, TILE // 2)
    return tiles.swapaxes(-1, -2).reshape(full.shape)


# ------------------------------------------------------------------------------ local time steps


@lru_cache(maxsize=64)
def local_kernel(shape: Shape, plan: FusedPlan) -> Kernel:
    """The kernel, compiled once for equal arguments."""
    return make_local(shape, plan)


class LocalLauncher(LocalStage):
    """Taylor steps in clusters, of fluxes of rank 1; components are those of `FusedLauncher`.

    Parameters
    ----------
    operator : Operator
        In either basis.
    device : Device
        "cuda" or "simulator".
    clusters : Clusters
    """

    def __init__(self, operator: Operator, device: Device, clusters: Clusters) -> None:
        shape = Shape(operator.order, operator.weights.dtype.name)
        element = NodalElement(3, operator.order)
        super().__init__(operator, device, shape, clusters, element, shape.size)

    def _kernel(self, plan: FusedPlan) -> Kernel:
        return local_kernel(self.shape, plan)

    def _described(self) -> tuple[np.ndarray, np.ndarray]:
        return geometry(self.operator), boundary(self.operator)

    def _derivative(self) -> np.ndarray:
        return -self.element.derivative

    def components(self, elements: np.ndarray) -> np.ndarray:
        """What a state holds of the fields in some elements, (elements, 4, 4) float64."""
        return components(self.operator, elements)
