"""One kernel for a whole stage: its arrays, the plans that it runs with, and its launches."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.gpu import Device, Kernel
from dgbook.gpu.plan import choose
from dgbook.gpu.source import CudaKernel, load
from dgbook.maxwell.kernels.fused import make_fused
from dgbook.maxwell.kernels.local import make_local
from dgbook.maxwell.plan import FusedShape, LocalShape
from dgbook.maxwell.reference import Operator
from dgbook.mesh import along_a_curve
from dgbook.mesh.geometry import inverses, map_derivatives
from dgbook.mesh.mesh import face_vertices, vertex_permutations
from dgbook.nodal.basis import NodalBasis
from dgbook.nodal.fused import (
    SPARE,
    FusedPlan,
    NodalStage,
    lift_of_faces,
    macros,
)
from dgbook.nodal.local import Clusters
from dgbook.nodal.local_device import LocalStage

SOURCE = Path(__file__).parents[1] / "kernels" / "fused" / "kernel.cu"
LOCAL_SOURCE = Path(__file__).parents[1] / "kernels" / "local" / "kernel.cu"


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
    parts = [metric(operator), turns(operator).reshape(-1, 12)]
    if has_materials(operator):
        parts.append(shares(operator))
    return np.concatenate(parts, axis=1)


def metric(operator: Operator) -> np.ndarray:
    """x_i . x_j c / J, (K, 6) float64, see `geometry`."""
    x, c = columns(operator), operator.speed.astype(np.float64)
    products = np.einsum("kdi,kdj->kij", x, x) * (c / operator.jacobian)[:, None, None]
    i, j = np.triu_indices(3)
    return products[:, i, j]


def turns(operator: Operator) -> np.ndarray:
    """The quarter turn of each face, (K, 4, 3) float64, see `geometry`."""
    t, area = edges(columns(operator)), operator.face_scale * operator.jacobian[:, None]
    products = np.einsum("kfad,kfbd->kfab", t, t) / area.astype(np.float64)[..., None, None]
    return products[:, :, [0, 0, 1], [0, 1, 1]]


def shares(operator: Operator) -> np.ndarray:
    """Z^- / (Z^- + Z^+) of each face, (K, 4) float64."""
    Z = operator.impedance.astype(np.float64)
    return Z / (Z + operator.neighbor_impedance)


def has_materials(operator: Operator) -> bool:
    """Whether the impedance varies."""
    return bool((operator.impedance != operator.impedance[0, 0]).any())


def require_upwind(operator: Operator) -> None:
    """Raise ValueError for another flux: fused kernels lift two numbers per face point."""
    if operator.flux != "upwind":
        raise ValueError(
            f"operator.flux = {operator.flux!r}; allowed: 'upwind', whose flux is of rank 2"
        )


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


def components(electric: np.ndarray, magnetic: np.ndarray) -> np.ndarray:
    """Matrices from E and H to their components along `bases`, (elements, 6, 6) float64."""
    matrices = np.zeros((len(electric), 6, 6))
    matrices[:, :3, :3] = electric.swapaxes(1, 2)
    matrices[:, 3:, 3:] = magnetic.swapaxes(1, 2)
    return matrices


def bases(operator: Operator, elements: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x_i, and Z x_i, of some elements, (elements, 3, 3) float64."""
    x = map_derivatives(operator.mesh.vertices, operator.mesh.elements[elements])
    return x, x * operator.impedance[elements, :1, None].astype(np.float64)


@lru_cache(maxsize=64)
def kernel(shape: FusedShape, plan: FusedPlan, factored: bool = False) -> Kernel | CudaKernel:
    """The kernel, compiled once for equal arguments; `factored` as of `EitherForm`."""
    if plan.language == "numba":
        return make_fused(shape, plan, factored)
    special = {"MATERIALS": int(shape.materials), "KEEP": int(shape.keeps_state)}
    return load(SOURCE, "fused", macros(plan, shape) | special | {"FACTORED": int(factored)})


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
        If not given, what `dgbook.gpu.plan.choose` says.

    Raises
    ------
    ValueError
        For another flux or basis, or a plan that is not legal on the device.
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
        require_upwind(operator)
        if not isinstance(operator.basis, NodalBasis):
            raise ValueError("operator.basis is Bernstein's; allowed: the nodal basis")
        element, trace = operator.element, operator.trace
        dtype = operator.lift.dtype.name
        super().__init__(operator, device, dtype)
        self.shape = FusedShape(element.order, dtype, has_materials(operator))
        self.size = (trace.K + SPARE) * 6 * self.shape.even_Np

        self.order = self._order()
        self.arrays = self._of_mesh(geometry(operator), boundary(operator), trace.opposite)
        self.arrays |= self._on_device({"face_nodes": element.face_nodes}, {"tangents": tangents()})
        largest = FusedShape(element.order, dtype, materials=True)
        self._load(plan or choose(FusedPlan, largest, device))

    def _order(self) -> np.ndarray:
        """Which element stands at each place of a state."""
        return along_a_curve(self.operator.mesh)

    def _bases(self, elements: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What a state's components of E and of H are along, in some elements."""
        return bases(self.operator, elements)

    def _matrices(self, plan: FusedPlan) -> tuple[np.ndarray, np.ndarray]:
        element = self.operator.element
        D = element.derivative.transpose(2, 0, 1)
        D = np.pad(D, ((0, element.Np % 2), (0, 0), (0, 0)))  # Numba reads even_Np columns, too
        return D, lift_of_faces(element)

    def _kernel(self, plan: FusedPlan) -> Kernel | CudaKernel:
        return kernel(self.shape, plan, self.factored)

    # -- states ----------------------------------------------------------------------------

    def components(self, elements: np.ndarray) -> np.ndarray:
        """What a state holds of the fields in some elements, (elements, 6, 6) float64."""
        return components(*self._bases(elements))

    def _in_element(self) -> tuple[int, np.ndarray]:
        Np = self.shape.even_Np
        return 6 * Np, np.arange(6)[:, None] + 6 * np.arange(Np)

    def part(self, states: Any, places: slice) -> Any:
        """States, flat (..., entries), at some places: (..., 6, places, Np) on the device."""
        values = states.reshape(*states.shape[:-1], -1, self.shape.even_Np, 6)
        values = values[..., places, : self.shape.Np, :]
        halves = [
            values[..., half : half + 3] @ self.device.array(inverses(x))
            for half, x in zip((0, 3), self._bases(self.order[places]), strict=True)
        ]
        return np.moveaxis(np.concatenate(halves, axis=-1), -1, -3)


# ------------------------------------------------------------------------------ local time steps


@lru_cache(maxsize=64)
def local_kernel(shape: LocalShape, plan: FusedPlan) -> Kernel | CudaKernel:
    """The kernel, compiled once for equal arguments."""
    if plan.language == "numba":
        return make_local(shape, plan)
    special = {"MATERIALS": int(shape.materials), "KEEP": 1, "ORDER": shape.order}
    return load(LOCAL_SOURCE, "taylor", macros(plan, shape) | special)


class LocalLauncher(LocalStage):
    """Taylor steps in clusters, of the upwind flux; components are those of `FusedLauncher`.

    Parameters
    ----------
    operator : Operator
        In either basis.
    device : Device
        "cuda" or "simulator".
    clusters : Clusters
    """

    languages = ("cuda", "numba")

    def __init__(self, operator: Operator, device: Device, clusters: Clusters) -> None:
        element, dtype = operator.element, operator.lift.dtype.name
        shape = LocalShape(element.order, dtype, has_materials(operator))
        super().__init__(operator, device, shape, clusters, element, 6 * shape.even_Np)

    def _kernel(self, plan: FusedPlan) -> Kernel | CudaKernel:
        return local_kernel(self.shape, plan)

    def _described(self) -> tuple[np.ndarray, np.ndarray]:
        return geometry(self.operator), boundary(self.operator)

    def _tangents(self) -> np.ndarray:
        return tangents()

    def _shared_bytes(self, plan: FusedPlan) -> int:
        if plan.language == "numba":
            return super()._shared_bytes(plan)
        return self.shape.shared_bytes(plan)

    def components(self, elements: np.ndarray) -> np.ndarray:
        """What a state holds of the fields in some elements, (elements, 6, 6) float64."""
        return components(*bases(self.operator, elements))
