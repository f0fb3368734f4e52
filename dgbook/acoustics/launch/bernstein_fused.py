"""One kernel for a whole Bernstein-Bezier stage: its arrays, its plans and its launches."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.acoustics.kernels.bernstein_fused import (
    BYTES,
    GHOST,
    HALF,
    make_bernstein_fused,
)
from dgbook.acoustics.launch.fused import FusedLauncher
from dgbook.acoustics.plan import BernsteinFusedPlan, Shape
from dgbook.acoustics.problem import FIELDS
from dgbook.acoustics.reference import Operator
from dgbook.element import BernsteinElement, multi_indices
from dgbook.element.bernstein import lattice_position
from dgbook.gpu import Device, Kernel
from dgbook.gpu.plan import choose
from dgbook.gpu.source import CudaKernel, load
from dgbook.mesh import along_a_curve, geometric_factors
from dgbook.mesh.geometry import adjugates, map_derivatives
from dgbook.nodal.bernstein import BernsteinBasis
from dgbook.nodal.fused import SPARE, FusedPlan
from dgbook.nodal.teams import TeamStage, macros

SOURCE = Path(__file__).parents[1] / "kernels" / "bernstein_fused" / "kernel.cu"


# ---------------------------------------------------------------------------------------- arrays


def geometry(operator: Operator) -> np.ndarray:
    """What describes an element, (K, 20) float64.

    With g_m = grad(l_m) of the barycentric coordinates, J = det dx/dr and W_m = J g_m . v, and a, b
    and r of ``Operator.rank_one``,

    - of each face, twice four numbers: kappa Fs a and 2 kappa b / J. As n_f = -2 g_f / Fs and
      sJ = Fs J is the same on both sides, n.[v] = (2/sJ) (W_f + W_g), where W_g is the neighbor's
      component for its own face g;
    - of each face 2 r / (Fs kappa), which makes of the lifted scalar of p what is subtracted from
      D_f p before it is multiplied by a gradient: -r n_f Fs = 2 r g_f;
    - -(J/rho) g_i . g_j, six numbers, (1,1), (1,2), (1,3), (2,2), (2,3), (3,3);
    - -kappa / J, and 0.
    """
    mesh = geometric_factors(operator.mesh)
    a, b, r = (array.astype(np.float64) for array in operator.rank_one)
    kappa, rho = operator.kappa.astype(np.float64), operator.rho.astype(np.float64)
    J, Fs = mesh.jacobian, mesh.face_scale
    g = mesh.rst_xyz / 2
    metric = np.einsum("kid,kjd->kij", g, g) * (-J / rho)[:, None, None]
    i, j = np.triu_indices(3)
    return np.concatenate(
        [
            kappa[:, None] * Fs * a,
            2 * (kappa / J)[:, None] * b,
            2 * r / (Fs * kappa[:, None]),
            metric[:, i, j],
            (-kappa / J)[:, None],
            np.zeros((len(J), 1)),
        ],
        axis=1,
    )


def boundary(operator: Operator) -> np.ndarray:
    """Of each boundary face m_p, m_v and n sJ / 2, (nb, 5) float64."""
    k, f = operator.trace.boundary_faces.T
    mesh = geometric_factors(operator.mesh)
    area = mesh.normals[k, f] * (mesh.face_jacobian[k, f, None] / 2)
    return np.concatenate([operator.mirrors, area], axis=1)


def tables(order: int, itemsize: int) -> dict[str, np.ndarray]:
    """What kernels look up, the same for all elements.

    A point j of a face is in row r, place q of the triangle that begins at the face's last vertex:
    j = r (r + 1) / 2 + q. Its multi-index is b = (q, r - q, N - r), its number in the basis of the
    face Nfp - 1 - j. Positions are counted in bytes, 16 a point: two of them fit in a word.

    - nodes (Nfp, 4): the control point j of each face and, in the upper half of the word, r;
    - squares (Nfp, 4): b_0^2, b_1^2, b_2^2 and b!;
    - corners (Np - Nfp, 2): of b of degree N - 1 the control points b + e_0, b + e_2 and, in the
      second word, b + e_3; b + e_1 follows b + e_0;
    - rows (Np, 4): where a - e_j are in degree N - 1, j = 0..3, in two words, and where the point
      is in the slices of the lift from each face, in two more. Where a_j = 0, another place stands
      for a - e_j. In slice i the first numbers, of `itemsize` bytes, stand i places further on in
      their 16 bytes (see kernels/bernstein_fused/lift.cuh), and the last ones in front;
    - weights (Np, 2, 4): a_j; and what makes control points of the slices,
      (-1)^{a_f} / (2 (a_f + 1) a!) for face f.

    **Slices without factors.** With s_i the slice of degree N - i (``BernsteinBasis.sweep``) and
    t_i = 2 (-1)^i (i+1)! b! s_i at b, the denominators and b_j + 1 drop out:
    (t_{i+1})_b = sum_j (t_i)_{b + e_j}. And with y_b = b! u_b, L_0 becomes

        (t_0)_b = sum_j (b_j + 1)^2 y_b + sum_k b_k^2 sum_{j != k} y_{b + e_j - e_k}.
    """
    element = BernsteinElement(3, order)
    N, a = order, element.multi_indices
    factorial = np.array([math.factorial(n) for n in range(N + 1)], float)
    unit = np.eye(4, dtype=int)

    face = multi_indices(2, N)[::-1]
    nodes = BYTES * element.face_nodes[:, ::-1].T | (N - face[:, 2:]) << HALF
    squares = np.column_stack([face**2, factorial[face].prod(axis=1)])

    b = multi_indices(3, N - 1)
    corners = [BYTES * lattice_position(N, b + unit[j]) for j in (0, 2, 3)]

    lower = a[:, None] - unit
    lower = np.where(a[..., None] > 0, lower, lower[np.arange(len(a)), a.argmax(axis=1)][:, None])
    slices = np.empty((len(a), 4), int)
    for f, layers in enumerate(element.face_layers):
        slices[np.concatenate([layer[::-1] for layer in layers]), f] = np.arange(len(a))
    turned = (np.arange(4) + a) * itemsize % BYTES

    lifted = (-1.0) ** a / (2 * (a + 1) * factorial[a].prod(axis=1)[:, None])
    return {
        "nodes": nodes,
        "squares": squares,
        "corners": in_pairs(*corners, np.zeros(len(b), int)),
        "rows": in_pairs(*BYTES * lattice_position(N - 1, lower).T, *(BYTES * slices + turned).T),
        "weights": np.stack([a, lifted], axis=1),
    }


def by_vectors(table: np.ndarray, itemsize: int) -> np.ndarray:
    """A table (points, ...) of reals as CUDA C++ reads it, (vectors, points, numbers of 16 bytes).

    Threads have points side by side: so they load 16 bytes side by side, however many a point has.
    """
    return table.reshape(len(table), -1, BYTES // itemsize).swapaxes(0, 1)


def in_pairs(*positions: np.ndarray) -> np.ndarray:
    """An even number of arrays (n,) of positions; two of them in each of the words."""
    return np.stack(positions[::2], 1) | np.stack(positions[1::2], 1) << HALF


@lru_cache(maxsize=64)
def kernel(shape: Shape, plan: BernsteinFusedPlan, factored: bool = False) -> Kernel | CudaKernel:
    """The kernel, compiled once for equal arguments; `factored` as of `EitherForm`."""
    if plan.language == "numba":
        return make_bernstein_fused(shape, plan, factored)
    special = {"FACTORED": int(factored)}
    return load(SOURCE, "bernstein_fused", macros(plan, shape) | special)


class BernsteinFusedLauncher(TeamStage):
    """A whole stage in the Bernstein basis, with a flux of rank 1, in one kernel.

    A state on the device is flat: element by element along a curve that fills space, control point
    by control point, p and J grad(l_m) . v for m = 1, 2, 3; then room for `SPARE` more elements. In
    CUDA C++ and fp64 an element has the first two of all its points, then the others of all. The
    one for m = 0 is minus the sum. They are constant multiples of v in an element, so that control
    points go over to control points.

    Parameters
    ----------
    operator : reference.Operator
        In the Bernstein basis, with the flux "upwind" or "penalty". Its dtype is the kernel's.
    device : Device
        "cuda", or "simulator", where Numba's kernel runs.
    plan : BernsteinFusedPlan

    Raises
    ------
    ValueError
        If the basis is nodal, the flux central, the plan not legal on the device, or the mesh too
        large for 32-bit indices.

    Attributes
    ----------
    lookup : dict
        What `tables` returns.
    """

    inputs = (
        "links",
        "opposite",
        "nodes",
        "squares",
        "corners",
        "rows",
        "weights",
        "geometry",
        "boundary",
    )

    def __init__(self, operator: Operator, device: Device, plan: BernsteinFusedPlan) -> None:
        if not isinstance(operator.basis, BernsteinBasis):
            raise ValueError("operator.basis is nodal; allowed: the Bernstein basis")
        described = geometry(operator)
        dtype, trace = operator.rst_xyz.dtype.name, operator.trace
        super().__init__(operator, device, dtype)
        self.shape = Shape(operator.order, dtype)
        self.K = trace.K
        self.size = (self.K + SPARE) * len(FIELDS) * self.shape.Np
        self._check_indices(self.size)
        self.order = along_a_curve(operator.mesh)
        opposite = trace.opposite[:, ::-1].copy()
        opposite[GHOST] = 0  # nothing is met there
        self.lookup = tables(operator.order, self.shape.itemsize)
        integers = {name: self.lookup[name] for name in ("nodes", "corners", "rows")}
        self.arrays = self._of_mesh(described, boundary(operator), opposite)
        self.arrays |= self._on_device(integers, {})
        self._load(plan)

    def _of_plan(self, plan: BernsteinFusedPlan) -> dict[str, Any]:
        reals = {name: self.lookup[name] for name in ("squares", "weights")}
        if plan.language == "cuda":
            itemsize = self.shape.itemsize
            reals = {name: by_vectors(table, itemsize) for name, table in reals.items()}
        return self._on_device({}, reals)

    def _kernel(self, plan: BernsteinFusedPlan) -> Kernel | CudaKernel:
        return kernel(self.shape, plan, self.factored)

    # -- states ----------------------------------------------------------------------------

    def components(self, elements: np.ndarray) -> np.ndarray:
        """What a state holds of the fields in some elements, (elements, 4, 4) float64."""
        mesh = self.operator.mesh
        x = map_derivatives(mesh.vertices, mesh.elements[elements])
        matrices = np.zeros((len(elements), 4, 4))
        matrices[:, 0, 0] = 1
        matrices[:, 1:, 1:] = adjugates(x)[0] / 2
        return matrices

    def _in_element(self) -> tuple[int, np.ndarray]:
        Np, together, field = self.shape.Np, self._together, np.arange(len(FIELDS))[:, None]
        plane = field // together * (together * Np) + field % together
        return len(FIELDS) * Np, plane + together * np.arange(Np)

    def part(self, states: Any, places: slice) -> Any:
        """States of control points, flat (..., entries), at some places: (..., 4, places, Np)."""
        Np, together = self.shape.Np, self._together
        values = states.reshape(*states.shape[:-1], self.K + SPARE, -1)[..., places, :]
        planes = values.reshape(*values.shape[:-1], -1, Np, together).swapaxes(-3, -2)
        points = planes.reshape(*values.shape[:-1], Np, len(FIELDS))
        columns = self.device.array(self._columns(places))
        points = np.concatenate([points[..., :1], points[..., 1:] @ columns], axis=-1)
        return np.moveaxis(points, -1, -3)

    @property
    def _together(self) -> int:
        """Numbers of a point that lie together: all four, in CUDA C++ 16 bytes of them."""
        return BYTES // self.shape.itemsize if self.plan.language == "cuda" else len(FIELDS)

    def _columns(self, places: slice) -> np.ndarray:
        """From W to v: v = sum_m W_m (2/J) dx/dr_m; ``[k, m, d]`` at some places, float64."""
        mesh = self.operator.mesh
        x = map_derivatives(mesh.vertices, mesh.elements[self.order[places]])
        _, J = adjugates(x)
        return 2 / J * x.transpose(0, 2, 1)


def launcher(
    operator: Operator, device: Device, plan: BernsteinFusedPlan | FusedPlan | None = None
) -> BernsteinFusedLauncher | FusedLauncher:
    """What launches a fused stage in the Bernstein basis: the sparse or the dense one.

    The nodal basis's kernel takes derivatives and lift as dense matrices. With those of the
    Bernstein basis it computes the Bernstein operator, as fast as the nodal one: control points of
    two elements meet on a face as nodes do, and a flux that is linear with the same factors all
    over a face does to control points what it does to values. The sparse kernel
    (kernels/bernstein_fused/) does less, but waits for each slice of its lift: where elements are
    smallest, the dense one is faster.

    Parameters
    ----------
    operator, device
        As of `BernsteinFusedLauncher`.
    plan : BernsteinFusedPlan or FusedPlan, optional
        Of the sparse or of the dense kernel; if not given, what `dgbook.gpu.plan.choose` says.
    """
    shape = Shape(operator.order, operator.weights.dtype.name)
    plan = plan or choose(BernsteinFusedPlan, shape, device)
    kind = FusedLauncher if isinstance(plan, FusedPlan) else BernsteinFusedLauncher
    return kind(operator, device, plan)
