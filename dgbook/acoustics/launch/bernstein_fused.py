"""One kernel for a whole Bernstein-Bezier stage: its arrays, its plans and its launches."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.acoustics.kernels.bernstein_fused import (
    BYTES,
    GEOMETRY,
    GHOST,
    HALF,
    make_bernstein_fused,
)
from dgbook.acoustics.launch.sparse import Shape
from dgbook.acoustics.problem import FIELDS
from dgbook.acoustics.reference import Operator
from dgbook.arguments import check_choice, check_counts
from dgbook.element import BernsteinElement, multi_indices
from dgbook.element.bernstein import lattice_position
from dgbook.gpu import Device, Kernel
from dgbook.gpu.layout import padded
from dgbook.gpu.limits import (
    MAX_BLOCKS,
    MAX_THREADS,
    MAX_UNROLL,
    WARP,
    architecture,
    resident_blocks,
)
from dgbook.gpu.source import CudaKernel, load
from dgbook.mesh import along_a_curve, geometric_factors
from dgbook.mesh.geometry import map_derivatives
from dgbook.nodal.bernstein import BernsteinBasis
from dgbook.nodal.fused import (
    LANGUAGES,
    SPARE,
    FusedStage,
    fastest,
    lengthened,
    links_along,
    shared_limit,
)

SOURCE = Path(__file__).parents[1] / "kernels" / "bernstein_fused.cu"
MAX_ROUNDS = 4
"""Points of the faces that a thread keeps in registers, four numbers each and those they meet."""


@dataclass(frozen=True)
class BernsteinFusedPlan:
    """Who works on what in the fused kernel.

    Parameters
    ----------
    language : {"cuda", "numba"}
        CUDA C++ or Numba: the same algorithm, kernels/bernstein_fused.cu and .py.
    lanes : int
        Threads of a team, a multiple of 32. A team of 32 waits for no other threads.
    elements : int
        Elements that a team works on at a time: their points are dealt to its threads.
    teams : int
        Teams a block.
    blocks : int
        Blocks that a multiprocessor should hold, CUDA C++ only: the compiler limits the registers.
    unroll : int
        Turns of the loop over points that end a stage, CUDA C++ only, that are under way together.

    Raises
    ------
    TypeError, ValueError
        If a count is no positive integer, or the language unknown.
    """

    language: str
    lanes: int
    elements: int
    teams: int
    blocks: int = 1
    unroll: int = 1

    def __post_init__(self) -> None:
        check_choice("language", self.language, LANGUAGES)
        check_counts(self, "lanes", "elements", "teams", "blocks", "unroll")

    @property
    def threads(self) -> int:
        """Threads a block."""
        return self.teams * self.lanes

    @property
    def elements_of_block(self) -> int:
        """Elements a block."""
        return self.teams * self.elements


# ----------------------------------------------------------------------------------------- plans


def shared_bytes(plan: BernsteinFusedPlan, shape: Shape) -> int:
    """Shared memory of a block.

    Of each element the derivatives in degree N - 1, fluxes, the state and the slices, four numbers
    each; for CUDA C++ geometry and links, too.
    """
    points = (shape.Np - shape.Nfp) + shape.Nfp + 2 * shape.Np
    described = GEOMETRY * shape.itemsize + 4 * 4 if plan.language == "cuda" else 0
    return plan.elements_of_block * (4 * points * shape.itemsize + described)


def illegal(
    plan: BernsteinFusedPlan, shape: Shape, capability: tuple[int, int] | None = None
) -> str:
    """Why a plan cannot run on a device of that compute capability, or an empty string.

    Without a capability the limits are those of every device, 48 KiB of shared memory a block.
    """
    if plan.lanes % WARP:
        return f"lanes = {plan.lanes}; allowed: multiples of {WARP}"
    if plan.threads > MAX_THREADS:
        return f"{plan.threads} threads; allowed: {MAX_THREADS}"
    if plan.blocks > MAX_BLOCKS or plan.unroll > MAX_UNROLL:
        return (
            f"blocks = {plan.blocks}, unroll = {plan.unroll}; allowed: {MAX_BLOCKS}, {MAX_UNROLL}"
        )
    if plan.elements_of_block > SPARE:
        return f"{plan.elements_of_block} elements a block; allowed: {SPARE}"
    rounds = -(-plan.elements * shape.Nfp // plan.lanes)
    if rounds > MAX_ROUNDS:
        return f"{rounds} points of the faces a thread; allowed: {MAX_ROUNDS}"
    limit = shared_limit(plan.language, capability)
    if shared_bytes(plan, shape) > limit:
        return f"{shared_bytes(plan, shape)} bytes shared; allowed: {limit}"
    return ""


# Threads of a team, its elements and teams a block, by order: of the ways to give every thread at
# most one point of the faces, those that leave few threads idle, with as few warps as can be.
TEAMS = {
    1: (32, 10, 4),
    2: (32, 5, 4),
    3: (32, 3, 4),
    4: (32, 2, 4),
    5: (64, 3, 1),
    6: (32, 1, 4),
    7: (128, 3, 1),
    8: (96, 2, 1),
    9: (64, 1, 1),
}
FIT = {"float32": 64, "float64": 80}
"""Registers a thread that suffice for one point of the faces."""


def default_plan(
    order: int,
    dtype: str,
    capability: tuple[int, int] | None = None,
    language: str = "cuda",
) -> BernsteinFusedPlan:
    """What needs few instructions and leaves room for many warps.

    Above order 9, and where shared memory is small, a team has one element and as many threads as
    a face has points.
    """
    shape = Shape(order, np.dtype(dtype).name)
    small = (padded(shape.Nfp, WARP), 1, 1)
    for lanes, elements, teams in (TEAMS.get(order, small), small):
        plan = BernsteinFusedPlan(language, lanes, elements, teams)
        if language == "cuda":
            plan = replace(plan, blocks=_blocks(plan, shape, FIT[shape.dtype], capability))
        if not illegal(plan, shape, capability):
            break
    return plan


def plans(
    order: int, dtype: str, device: Device, language: str = "cuda"
) -> list[BernsteinFusedPlan]:
    """The plans worth trying, the default first.

    Teams of one warp to six, with as many elements as give each thread one point of the faces, or
    two: four of either, those that need fewest instructions an element. For CUDA C++ with two
    limits of the registers each; the default also with fewer registers, and with two turns of the
    last loop under way together.
    """
    shape, capability = Shape(order, np.dtype(dtype).name), device.compute_capability
    default, fit = default_plan(order, dtype, capability, language), FIT[shape.dtype]
    found = [default]
    if language == "cuda":
        fewer = _blocks(default, shape, fit - 16, capability)
        found += [replace(default, unroll=2), replace(default, blocks=fewer)]
    for rounds, least in ((1, fit - 16), (2, fit + 16)):
        dealt = [
            BernsteinFusedPlan(language, lanes, elements, 4 if lanes == WARP else 1)
            for lanes in range(WARP, 7 * WARP, WARP)
            if (elements := rounds * lanes // shape.Nfp)
        ]
        legal = [plan for plan in dealt if not illegal(plan, shape, capability)]
        for plan in sorted(legal, key=lambda plan: _instructions(plan, shape))[:4]:
            if language == "numba":
                found.append(plan)
                continue
            for registers in (least, least + 16):
                blocks = _blocks(plan, shape, registers, capability)
                found.append(replace(plan, blocks=blocks))
    return list(dict.fromkeys(found))


def _instructions(plan: BernsteinFusedPlan, shape: Shape) -> float:
    """About how many instructions threads execute an element, idle ones counted."""
    lower = shape.Np - shape.Nfp
    per_thread = 110 + sum(
        instructions * -(-plan.elements * points // plan.lanes)
        for points, instructions in (
            (shape.Nfp, 250 + 14 * shape.order),
            (lower, 40),
            (shape.Np, 110),
        )
    )
    return per_thread * plan.lanes / plan.elements


def _blocks(
    plan: BernsteinFusedPlan,
    shape: Shape,
    registers: int,
    capability: tuple[int, int] | None,
) -> int:
    """Blocks that fit on a multiprocessor if a thread has so many registers; 1 or more."""
    limits = architecture(capability or (7, 5))
    return max(1, resident_blocks(limits, plan.threads, registers, shared_bytes(plan, shape)))


def subject(language: str) -> str:
    """Under which name the tuner remembers timings of the fused kernel."""
    return f"acoustics/bernstein/sparse/{language}"


def choose_plan(
    order: int, dtype: str, device: Device, language: str | None = None
) -> BernsteinFusedPlan:
    """The fastest plan known for a device, see `dgbook.nodal.fused.fastest`."""
    shape = Shape(order, np.dtype(dtype).name)
    return fastest(
        BernsteinFusedPlan, subject, default_plan,
        lambda plan, capability: illegal(plan, shape, capability),
        order, dtype, device, language,
    )  # fmt: skip


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
    j = r (r + 1) / 2 + q. Its multi-index is c = (q, r - q, N - r), its number in the basis of the
    face Nfp - 1 - j. Positions are counted in bytes, 16 a point: two of them fit in a word.

    - nodes (Nfp, 4): the control point j of each face and, in the upper half of the word, r;
    - squares (Nfp, 4): c_0^2, c_1^2, c_2^2 and c!;
    - corners (Np - Nfp, 2): of b of degree N - 1 the control points b + e_0, b + e_2 and, in the
      second word, b + e_3; b + e_1 follows b + e_0;
    - rows (Np, 4): where a - e_j are in degree N - 1, j = 0..3, in two words, and where the point
      is in the slices of the lift from each face, in two more. Where a_j = 0, another place stands
      for a - e_j. In slice i the first numbers, of `itemsize` bytes, stand i places further on in
      their 16 bytes (see ``turned`` in kernels/bernstein_fused.cu), and the last ones in front;
    - weights (Np, 2, 4): a_j; and what makes control points of the slices,
      (-1)^{a_f} / (2 (a_f + 1) a!) for face f.

    **Slices without factors.** With s_i the slice of degree N - i (``BernsteinBasis.sweep``) and
    t_i = 2 (-1)^i (i+1)! b! s_i at b, the denominators and b_j + 1 drop out:
    (t_{i+1})_b = sum_j (t_i)_{b + e_j}. And with y_c = c! u_c, L_0 becomes

        (t_0)_c = sum_j (c_j + 1)^2 y_c + sum_k c_k^2 sum_{j != k} y_{c + e_j - e_k}.
    """
    element = BernsteinElement(3, order)
    N, a = order, element.multi_indices
    factorial = np.array([math.factorial(n) for n in range(N + 1)], float)
    unit = np.eye(4, dtype=int)

    c = multi_indices(2, N)[::-1]
    nodes = BYTES * element.face_nodes[:, ::-1].T | (N - c[:, 2:]) << HALF
    squares = np.column_stack([c**2, factorial[c].prod(axis=1)])

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
def kernel(shape: Shape, plan: BernsteinFusedPlan) -> Kernel | CudaKernel:
    """The kernel, compiled once for equal arguments."""
    if plan.language == "numba":
        return make_bernstein_fused(shape, plan)
    macros = {
        "REAL": np.dtype(shape.dtype),
        "VECTOR": "float4" if shape.itemsize == 4 else "double2",
        "ORDER": shape.order,
        "LANES": plan.lanes,
        "ELEMENTS": plan.elements,
        "TEAMS": plan.teams,
        "BLOCKS": plan.blocks,
        "UNROLL": plan.unroll,
    }
    return load(SOURCE, "bernstein_fused", macros)


class BernsteinFusedLauncher(FusedStage):
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
    plan : BernsteinFusedPlan, optional
        If not given, what `choose_plan` says.

    Raises
    ------
    ValueError
        If the basis is nodal, the flux central, the plan not legal on the device, or the mesh too
        large for 32-bit indices.

    Attributes
    ----------
    order : (K,)
        Which element stands at each place of a state.
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

    def __init__(
        self, operator: Operator, device: Device, plan: BernsteinFusedPlan | None = None
    ) -> None:
        if not isinstance(operator.basis, BernsteinBasis):
            raise ValueError("operator.basis is nodal; allowed: the Bernstein basis")
        described = geometry(operator)
        dtype, trace = operator.rst_xyz.dtype.name, operator.trace
        super().__init__(operator, device, dtype)
        self.shape = Shape(operator.order, dtype)
        self.K = trace.K
        self.size = (self.K + SPARE) * len(FIELDS) * self.shape.Np
        if self.size >= 2**32:
            raise ValueError(
                f"mesh.K = {self.K} elements of order {operator.order} need indices up to "
                f"{self.size}; allowed: less than 2^32"
            )
        self.order = along_a_curve(operator.mesh)
        opposite = trace.opposite[:, ::-1].copy()
        opposite[GHOST] = 0  # nothing is met there
        self.lookup = tables(operator.order, self.shape.itemsize)
        integers = {
            "links": links_along(self.order, trace),
            "opposite": opposite,
            **{name: self.lookup[name] for name in ("nodes", "corners", "rows")},
        }
        reals = {
            "geometry": lengthened(described[self.order]),
            "boundary": np.append(boundary(operator), 0.0),
        }
        self.arrays = {
            name: self._flat(values, type_)
            for group, type_ in ((integers, np.uint32), (reals, self.real))
            for name, values in group.items()
        }
        self._load(plan or choose_plan(operator.order, dtype, device))

    def _load(self, plan: BernsteinFusedPlan) -> None:
        if trouble := illegal(plan, self.shape, self.device.compute_capability):
            raise ValueError(f"plan = {plan}: {trouble}")
        self.plan = plan
        for name in ("squares", "weights"):
            table = self.lookup[name]
            if plan.language == "cuda":
                table = by_vectors(table, self.shape.itemsize)
            self.arrays = self.arrays | {name: self._flat(table, self.real)}
        self.kernel = kernel(self.shape, plan)

    def _launch(self) -> tuple[int, int, int]:
        blocks = -(-self.K // self.plan.elements_of_block)
        return blocks, self.plan.threads, shared_bytes(self.plan, self.shape)

    # -- states ----------------------------------------------------------------------------

    def upload(self, u: np.ndarray) -> Any:
        """A state (4, K, Np) of control points on the device."""
        state = np.zeros((self.K + SPARE, self.shape.Np * len(FIELDS)), self.real)
        points = np.moveaxis(u, 0, 2)[self.order].astype(np.float64)  # (K, Np, 4)
        points[..., 1:] = points[..., 1:] @ np.linalg.inv(self._columns())
        planes = points.reshape(self.K, self.shape.Np, -1, self._together).swapaxes(1, 2)
        state[: self.K] = planes.reshape(self.K, -1)
        return self.device.array(state.ravel())

    def download(self, state: Any) -> np.ndarray:
        """A state of the device as a NumPy array (4, K, Np) of control points."""
        host = self.device.to_numpy(state).reshape(self.K + SPARE, -1)[: self.K]
        planes = host.reshape(self.K, -1, self.shape.Np, self._together).swapaxes(1, 2)
        host = planes.reshape(self.K, self.shape.Np, len(FIELDS))
        u = np.empty((len(FIELDS), self.K, self.shape.Np), self.real)
        u[0, self.order] = host[..., 0]
        u[1:, self.order] = np.moveaxis(host[..., 1:] @ self._columns(), 2, 0)
        return u

    @property
    def _together(self) -> int:
        """Numbers of a point that lie together: all four, in CUDA C++ 16 bytes of them."""
        return BYTES // self.shape.itemsize if self.plan.language == "cuda" else len(FIELDS)

    def _columns(self) -> np.ndarray:
        """From W to v: v = sum_m W_m (2/J) dx/dr_m; ``[k, m, d]``, along the curve, float64."""
        mesh = self.operator.mesh
        x = map_derivatives(mesh.vertices, mesh.elements[self.order])
        J = np.linalg.det(x)[:, None, None]
        return 2 / J * x.transpose(0, 2, 1)
