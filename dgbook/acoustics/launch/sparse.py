"""The Bernstein-Bezier operator on a device: volume, surface and update, plans and launches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dgbook.acoustics.kernels.bern_element import make_bern_element
from dgbook.acoustics.kernels.bern_optimal import make_bern_optimal
from dgbook.acoustics.kernels.bern_surface import make_bern_surface
from dgbook.acoustics.kernels.bern_volume import (
    make_bern_volume,
    make_computed_row,
    make_stored_row,
)
from dgbook.acoustics.problem import FIELDS
from dgbook.acoustics.reference import Operator
from dgbook.arguments import check_choice, check_counts
from dgbook.gpu import Device, Kernel
from dgbook.gpu.limits import MAX_THREADS, STATIC_SHARED_LIMIT
from dgbook.nodal.bernstein import LANES, BernsteinBasis
from dgbook.nodal.launching import StageByKernels
from dgbook.time import lsrk45

ROWS = {"stored": make_stored_row, "computed": make_computed_row}
SURFACES = {
    "factored": make_bern_surface,
    "optimal": make_bern_optimal,
    "element": make_bern_element,
}


@dataclass(frozen=True)
class Shape:
    """The sizes that the kernels close over.

    Attributes
    ----------
    order : int
        N.
    dtype : str
    """

    order: int
    dtype: str

    @property
    def Np(self) -> int:
        """Control points of an element."""
        return (self.order + 1) * (self.order + 2) * (self.order + 3) // 6

    @property
    def Nfp(self) -> int:
        """Control points of a face."""
        return (self.order + 1) * (self.order + 2) // 2

    @property
    def face_quads(self) -> int:
        """Loads of four entries in a row of L_0: 7 entries and one of padding, 4 of order 1."""
        return 1 if self.order == 1 else 2

    @property
    def lift_quads(self) -> int:
        """Loads of four entries in a row of E_L: Nfp + 3 entries at most."""
        return -(-(self.Nfp + 3) // LANES)

    @property
    def itemsize(self) -> int:
        """Bytes of a real number."""
        return np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class BernsteinPlan:
    """How the kernels are launched.

    Parameters
    ----------
    K_V, K_S, K_U : int
        Elements a block of the volume, surface and update kernels (chan2015, section 4.2).
    surface : {"factored", "optimal", "element"}
        How fluxes are lifted: by E_L and L_0, slice by slice, or so by one thread an element.
    columns : {"stored", "computed"}
        Where the volume kernel has the columns of the derivatives from: it loads them, or computes
        them from a word a row.

    Raises
    ------
    TypeError, ValueError
        If a count is no positive integer, or the surface or columns unknown.
    """

    K_V: int
    K_S: int
    K_U: int
    surface: str = "factored"
    columns: str = "stored"

    def __post_init__(self) -> None:
        check_counts(self, "K_V", "K_S", "K_U")
        check_choice("surface", self.surface, SURFACES)
        check_choice("columns", self.columns, ROWS)

    def surface_block(self, shape: Shape) -> tuple[int, int]:
        """Threads of a block of the surface kernel, those of an element and elements."""
        return (1 if self.surface == "element" else shape.Np), self.K_S

    def volume_bytes(self, shape: Shape) -> int:
        """Shared memory of a block of the volume kernel: the four fields."""
        return self.K_V * len(FIELDS) * shape.Np * shape.itemsize

    def surface_bytes(self, shape: Shape) -> int:
        """Shared memory of a block of the surface kernel.

        Of an element s on the faces, and four fluxes there or the four sweeps; "element" has none.
        """
        if self.surface == "element":
            return 0
        swept = shape.Np if self.surface == "optimal" else len(FIELDS) * shape.Nfp
        return self.K_S * 4 * (shape.Nfp + swept) * shape.itemsize


def illegal(plan: BernsteinPlan, shape: Shape) -> str:
    """Why a plan cannot run, or an empty string.

    The limits are those of every device from compute capability 7.5 on, 1024 threads and 48 KiB of
    static shared memory a block.
    """
    surface_threads = math.prod(plan.surface_block(shape))
    for name, threads in (
        ("K_V", plan.K_V * shape.Np),
        ("K_S", surface_threads),
        ("K_U", plan.K_U * shape.Np),
    ):
        if threads > MAX_THREADS:
            return f"{name}: {threads} threads a block; allowed: {MAX_THREADS}"
    for name, count in (("K_V", plan.volume_bytes(shape)), ("K_S", plan.surface_bytes(shape))):
        if count > STATIC_SHARED_LIMIT:
            return f"{name}: {count} bytes shared; allowed: {STATIC_SHARED_LIMIT}"
    return ""


def default_plan(order: int, dtype: str, surface: str = "factored") -> BernsteinPlan:
    """Blocks of about 128 threads, where nothing has been measured."""
    K = max(1, 128 // Shape(order, dtype).Np)
    return BernsteinPlan(K, 128 if surface == "element" else K, K, surface)


@lru_cache(maxsize=256)
def kernel(name: str, shape: Shape, plan: BernsteinPlan) -> Kernel:
    """The kernel "volume", "surface" or "update", compiled once for equal arguments."""
    if name == "update":
        return lsrk45.make_update(shape.dtype)
    if name == "volume":
        return make_bern_volume(shape, plan.K_V, ROWS[plan.columns])
    return SURFACES[plan.surface](shape, plan.K_S)


class BernsteinLauncher(StageByKernels):
    """An operator's arrays on a device, and its kernels launched on them.

    ::

        launcher = BernsteinLauncher(operator, device)
        u, res = launcher.upload(values), launcher.zeros()
        launcher.stage(u, res, u, data, a, b, dt)

    A state is flat, with entry (field, element, control point). A stage is three launches: volume,
    which writes du/dt, surface, which adds to it, and update.

    Parameters
    ----------
    operator : reference.Operator
        In the Bernstein basis, with a flux of rank 1. Its dtype is the kernels'.
    device : Device
        "cuda" or "simulator".
    plan : BernsteinPlan, optional
        A default if not given.

    Raises
    ------
    ValueError
        If the basis is nodal, the flux central, the plan not legal, or the mesh too large for
        32-bit indices.
    """

    def __init__(
        self, operator: Operator, device: Device, plan: BernsteinPlan | None = None
    ) -> None:
        basis = operator.basis
        if not isinstance(basis, BernsteinBasis):
            raise ValueError("operator.basis is nodal; allowed: the Bernstein basis")
        a, b, r = operator.rank_one
        dtype = operator.rst_xyz.dtype.name
        super().__init__(operator, device, dtype)
        self.shape = Shape(operator.order, dtype)
        self.K = operator.mesh.K
        self.size = len(FIELDS) * self.K * self.shape.Np
        if self.size >= 2**32:
            raise ValueError(
                f"mesh.K = {self.K} elements of order {operator.order} have "
                f"{self.size} unknowns; allowed: less than 2^32"
            )
        Fs = operator.face_scale
        faces = np.concatenate([np.stack([Fs * a, Fs * b, r], axis=-1), operator.normals], axis=-1)
        mirrors = operator.mirrors if operator.mirrors.size else np.zeros(2)
        face_columns, face_values = basis.lift_face.quads
        lift_columns, lift_values = basis.lift_reduction.quads
        integers = {
            "stored": basis.derivative_columns,
            "computed": basis.words,
            "links": operator.trace.links,
            "opposite": operator.trace.opposite,
            "face_nodes": operator.trace.interior[0],
            "face_columns": face_columns,
            "lift_columns": lift_columns,
            "sweep_columns": basis.sweep_columns,
            "places": basis.sweep_places,
            "nodes": basis.sweep_places.argsort(axis=0).T,
        }
        reals = {
            "values": basis.derivative_values,
            "rst_xyz": operator.rst_xyz / 2,
            "material": np.stack([operator.kappa, 1 / operator.rho], axis=1),
            "faces": faces,
            "mirrors": mirrors,
            "face_values": face_values,
            "lift_values": lift_values,
            "sweep_values": basis.sweep_values,
        }
        self.arrays = {
            name: self._flat(values, type_)
            for group, type_ in ((integers, np.uint32), (reals, self.real))
            for name, values in group.items()
        }
        self.work = {"du": self.zeros()}
        self._load(plan or default_plan(operator.order, dtype))

    def _load(self, plan: BernsteinPlan) -> None:
        if trouble := illegal(plan, self.shape):
            raise ValueError(f"plan = {plan}: {trouble}")
        self.plan, self.update_threads = plan, plan.K_U * self.shape.Np
        self.kernels = {
            name: kernel(name, self.shape, plan) for name in ("volume", "surface", "update")
        }

    # -- states ----------------------------------------------------------------------------

    def upload(self, u: np.ndarray) -> Any:
        """A state (4, K, Np) of control points on the device."""
        return self.device.array(u.astype(self.real, copy=False).ravel())

    def download(self, state: Any) -> np.ndarray:
        """A state of the device as a NumPy array (4, K, Np)."""
        return self.device.to_numpy(state).reshape(len(FIELDS), self.K, self.shape.Np)

    # -- launches --------------------------------------------------------------------------

    def volume(self, u: Any, out: Any) -> None:
        """out = (-kappa div v, -(1/rho) grad p)."""
        names = (self.plan.columns, *VOLUME)
        self._launch("volume", (self.shape.Np, self.plan.K_V), u, *self._named(names), out)

    def surface(self, u: Any, data: Any, out: Any) -> None:
        """Add the lifted fluxes to out."""
        names = SURFACE + LIFT[self.plan.surface]
        block = self.plan.surface_block(self.shape)
        self._launch("surface", block, u, data, *self._named(names), out)

    def rhs(self, u: Any, data: Any, out: Any) -> None:
        """out = du/dt; `data` are g on the boundary, flat (4 nb Nfp,), one zero if nb = 0."""
        self.volume(u, out)
        self.surface(u, data, out)

    def _named(self, names: tuple[str, ...]) -> list[Any]:
        return [self.arrays[name] for name in names]

    def _launch(self, name: str, block: tuple[int, int], *arguments: Any) -> None:
        blocks = -(-self.K // block[1])
        self.kernels[name][blocks, block](*arguments)


VOLUME = ("values", "rst_xyz", "material")
SURFACE = (
    "links",
    "opposite",
    "face_nodes",
    "faces",
    "mirrors",
    "face_columns",
    "face_values",
)
LIFT = {
    "factored": ("lift_columns", "lift_values", "material"),
    "optimal": ("sweep_columns", "sweep_values", "places", "material"),
    "element": ("nodes", "material"),
}
