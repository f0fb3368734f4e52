"""One kernel for a whole stage in the Bernstein basis: its arrays, and its launches."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.element import BernsteinElement
from dgbook.gpu import Device, Kernel
from dgbook.gpu.plan import choose
from dgbook.gpu.source import CudaKernel, load
from dgbook.maxwell.kernels.bernstein_fused import (
    CORNER,
    LOWER,
    UP,
    make_bernstein_fused,
)
from dgbook.maxwell.launch import fused
from dgbook.maxwell.plan import BernsteinFusedPlan, FusedShape
from dgbook.maxwell.reference import Operator
from dgbook.mesh import along_a_curve
from dgbook.mesh.geometry import inverses
from dgbook.mesh.mesh import face_vertices, vertex_permutations
from dgbook.nodal.bernstein import BernsteinBasis
from dgbook.nodal.fused import SPARE
from dgbook.nodal.teams import TeamStage, macros

SOURCE = Path(__file__).parents[1] / "kernels" / "bernstein_fused" / "kernel.cu"


# ---------------------------------------------------------------------------------------- arrays


def geometry(operator: Operator) -> np.ndarray:
    """What describes an element, (K, 24) float64: of what `fused.geometry` says,

    - of each face its quarter turn, three numbers, and Z^- / (Z^- + Z^+);
    - the metric, six numbers, over 2: derivatives of control points lack their factor 1/2, and so
      does the lift; and twice 0.
    """
    metric, turns = fused.metric(operator), fused.turns(operator)
    faces = np.concatenate([turns, fused.shares(operator)[..., None]], axis=2)
    K = len(metric)
    return np.concatenate([faces.reshape(K, -1), metric / 2, np.zeros((K, 2))], axis=1)


def tables(order: int) -> dict[str, np.ndarray]:
    """What kernels look up at a control point, the same for all elements.

    Positions in degree N - 1 differ from each other by what is known of the point: with a the
    multi-index, R = a_0 + a_1 + 1 the length of its row and S = (n + 1)(n + 2) / 2 - a_2 with
    n = N - a_3, where b = a - e_0 has the number m,

        b + e_1, e_2, e_3 have those of a + 1, R, S;    a - e_1, e_2, e_3 have m - 1, R, S.

    - points (Np,): a_1, a_2, a_3, of 4 bits each, m of 10, S of 8;
    - slices (Np, 2): where the point is in the slices from faces 0, 1, 2, 3, of 16 bits each, slice
      behind slice and each as `BernsteinElement.face_layers` orders it;
    - weights (Np,): 1 / a!.
    """
    element = BernsteinElement(3, order)
    N, a = order, element.multi_indices
    a_1, a_2, a_3 = a[:, 1:].T
    factorial = np.array([math.factorial(n) for n in range(N + 1)], float)

    n = N - 1 - a_3  # of the layer of a - e_0, whose rows are n + 1, n, ... long
    layers = ((N + 2) * (N + 1) * N - (n + 3) * (n + 2) * (n + 1)) // 6
    lower = layers + a_2 * (2 * n + 3 - a_2) // 2 + a_1
    up = (n + 2) * (n + 3) // 2 - a_2

    slices = np.empty((len(a), 4), int)
    for f, layers in enumerate(element.face_layers):
        slices[np.concatenate(layers), f] = np.arange(len(a))
    return {
        "points": a_1 | a_2 << 4 | a_3 << 8 | lower << LOWER | up << UP,
        "slices": slices[:, ::2] | slices[:, 1::2] << 16,
        "weights": 1 / factorial[a].prod(axis=1),
    }


def meeting(opposite: np.ndarray) -> np.ndarray:
    """For each way to meet and point of a face what is met, (25, Nfp); `opposite` as of `Trace`.

    A word holds the neighbor's point in its lower half, then, of 2 bits each, the neighbor's
    vertices that meet the first, second and third one of my face.
    """
    faces, ways = face_vertices(3), []
    for g in range(4):
        ways += [faces[g][np.argsort(p)] for p in vertex_permutations(3)]
    ways.append(np.zeros(3, int))  # nothing is met at a boundary
    corners = np.array(ways) << CORNER + 2 * np.arange(3)
    return opposite | corners.sum(axis=1)[:, None]


@lru_cache(maxsize=64)
def kernel(
    shape: FusedShape, plan: BernsteinFusedPlan, factored: bool = False
) -> Kernel | CudaKernel:
    """The kernel, compiled once for equal arguments; `factored` as of `EitherForm`."""
    if plan.language == "numba":
        return make_bernstein_fused(shape, plan, factored)
    special = {"COUPLE": "float2" if shape.itemsize == 4 else "double2", "FACTORED": int(factored)}
    return load(SOURCE, "bernstein_fused", macros(plan, shape) | special)


class BernsteinFusedLauncher(TeamStage):
    """A whole stage of the upwind scheme in the Bernstein basis, in one kernel.

    A state on the device is flat: element by element along a curve that fills space, for i = 1, 2,
    3 at each control point the pair x_i . E and x_i . (Z H), where x_i are the columns of dx/dr
    and Z is the element's impedance; then room for `SPARE` more elements. These are constant
    multiples of the fields in an element, so that control points go over to control points. A curl
    takes two derivatives of each of them, tangential components on a face are differences of them,
    and the upwind flux has two components.

    **Words through L1.** What such kernels wait for are shared memory and L1, not DRAM. Of an
    element with M points of degree N - 1, threads ask for

    ==============================  =============================  ==============================
    step                            this kernel                    points and slices in quadruples
    ==============================  =============================  ==============================
    fetch                           6 Np                           6 Np
    curls in degree N - 1           18 M + 6 M                     24 M + 6 M
    fluxes                          4 (4.5 + 4.5 + 2) Nfp          4 (6 + 6 + 2) Nfp
    L_0                             8 Nfp                          (48 + 8) Nfp
    slices                          8 Np                           (16 + 8) M
    degree N                        24 M                           24 M
    gather, u, res and new          8 Np + 6 Np + 18 Np            8 Np + 6 Np + 18 Np
    ==============================  =============================  ==============================

    words, tables and geometry apart. In the columns 16.2 to 15.8 words per degree of freedom for N
    = 1 to 9, and 23.6 to 20.8 if the acoustic kernel is taken over, in which six numbers of a point
    lie together and a slice is swept by many threads. Here a thread sweeps one number of one face
    in registers, so that slices pass through shared memory once, and the team meets three times;
    pairs lie in three arrays, of which a derivative needs two. To sweep by shuffles would take 16 M
    words and 8 M more for those who gather, since shuffles go the same way. Two elements per thread
    would share the tables only, less than 3 words. And points that neighboring threads read follow
    each other without gaps, see derivatives.cuh, or two of them would meet in a bank.

    Parameters
    ----------
    operator : Operator
        In the Bernstein basis, with the upwind flux. Its dtype is the kernel's.
    device : Device
        "cuda", or "simulator", where Numba's kernel runs.
    plan : BernsteinFusedPlan, optional
        If not given, what `dgbook.gpu.plan.choose` says.

    Raises
    ------
    ValueError
        If the basis is nodal, for another flux, a plan that is not legal on the device, or a mesh
        too large for 32-bit indices.
    """

    inputs = ("links", "meeting", "points", "slices", "weights", "geometry", "boundary")

    def __init__(
        self, operator: Operator, device: Device, plan: BernsteinFusedPlan | None = None
    ) -> None:
        if not isinstance(operator.basis, BernsteinBasis):
            raise ValueError("operator.basis is nodal; allowed: the Bernstein basis")
        fused.require_upwind(operator)
        element, trace = operator.element, operator.trace
        super().__init__(operator, device, operator.lift.dtype.name)
        self.shape = FusedShape(element.order, operator.lift.dtype.name)
        self.size = (trace.K + SPARE) * 6 * self.shape.even_Np
        self._check_indices(self.size)
        self.order = along_a_curve(operator.mesh)
        found = tables(element.order) | {"meeting": meeting(trace.opposite)}
        reals = {"weights": found.pop("weights")}
        self.arrays = self._of_mesh(geometry(operator), fused.boundary(operator), trace.opposite)
        self.arrays |= self._on_device(found, reals)
        self._load(plan or choose(BernsteinFusedPlan, self.shape, device))

    def _kernel(self, plan: BernsteinFusedPlan) -> Kernel | CudaKernel:
        return kernel(self.shape, plan, self.factored)

    # -- states ----------------------------------------------------------------------------

    def components(self, elements: np.ndarray) -> np.ndarray:
        """What a state holds of the fields in some elements, (elements, 6, 6) float64."""
        return fused.components(*fused.bases(self.operator, elements))

    def _in_element(self) -> tuple[int, np.ndarray]:
        Np, (half, i) = self.shape.even_Np, np.divmod(np.arange(6), 3)
        return 6 * Np, (2 * Np * i + half)[:, None] + 2 * np.arange(Np)

    def part(self, states: Any, places: slice) -> Any:
        """States, flat (..., entries), at some places: (..., 6, places, Np) on the device."""
        values = states.reshape(*states.shape[:-1], -1, 3, self.shape.even_Np, 2)
        values = values[..., places, :, : self.shape.Np, :]
        halves = []
        for half, x in enumerate(fused.bases(self.operator, self.order[places])):
            back = self.device.array(inverses(x).swapaxes(1, 2))  # (K, 3, 3): d, i
            halves.append(np.moveaxis(back @ values[..., half], -2, -3))
        return np.concatenate(halves, axis=-3)
