"""The Bernstein-Bezier operator on a device: volume, surface and update, plans and launches."""

from __future__ import annotations

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
from dgbook.acoustics.plan import BernsteinPlan, Shape
from dgbook.acoustics.problem import FIELDS
from dgbook.acoustics.reference import Operator
from dgbook.gpu import Device, Kernel
from dgbook.gpu.plan import choose, require_legal
from dgbook.nodal.bernstein import BernsteinBasis
from dgbook.nodal.launching import StageByKernels
from dgbook.time import lsrk45

ROWS = {"stored": make_stored_row, "computed": make_computed_row}
LIFTS = {
    "factored": make_bern_surface,
    "optimal": make_bern_optimal,
    "element": make_bern_element,
}


@lru_cache(maxsize=256)
def kernel(name: str, shape: Shape, plan: BernsteinPlan) -> Kernel:
    """The kernel "volume", "surface" or "update", compiled once for equal arguments."""
    if name == "update":
        return lsrk45.make_update(shape.dtype)
    if name == "volume":
        return make_bern_volume(shape, plan.K_V, ROWS[plan.columns])
    return LIFTS[plan.surface](shape, plan.K_S)


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
        If not given, what `dgbook.gpu.plan.choose` says.

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
        self._check_indices(self.size)
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
        self.arrays = self._on_device(integers, reals)
        self.work = {"du": self.zeros()}
        self._load(plan or choose(BernsteinPlan, self.shape, device))

    def _load(self, plan: BernsteinPlan) -> None:
        require_legal(plan, self.shape)
        self.plan, self.update_threads = plan, plan.K_U * self.shape.Np
        self.kernels = {
            name: kernel(name, self.shape, plan) for name in ("volume", "surface", "update")
        }

    # -- states ----------------------------------------------------------------------------

    def part(self, states: Any, places: slice) -> Any:
        """States, flat (..., entries), of some elements: (..., 4, places, Np) on the device."""
        return states.reshape(*states.shape[:-1], -1, self.K, self.shape.Np)[..., places, :]

    # -- launches --------------------------------------------------------------------------

    def volume(self, u: Any, out: Any) -> None:
        """out = (-kappa div v, -(1/rho) grad p)."""
        names = (self.plan.columns, *VOLUME)
        self._launch("volume", (self.shape.Np, self.plan.K_V), u, *self._named(names), out)

    def surface(self, u: Any, data: Any, out: Any) -> None:
        """Add the lifted fluxes to out."""
        names = SURFACE + LIFT_ARRAYS[self.plan.surface]
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
LIFT_ARRAYS = {
    "factored": ("lift_columns", "lift_values", "material"),
    "optimal": ("sweep_columns", "sweep_values", "places", "material"),
    "element": ("nodes", "material"),
}
