"""The paper's nodal operator on a device, a thread for each node or for each element."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dgbook.acoustics.kernels.element_flux import make_element_flux
from dgbook.acoustics.kernels.element_lift import make_element_lift
from dgbook.acoustics.kernels.element_volume import make_element_volume
from dgbook.acoustics.kernels.node_surface import make_node_surface
from dgbook.acoustics.kernels.node_volume import make_node_volume
from dgbook.acoustics.plan import ElementPlan, NodePlan, Shape
from dgbook.acoustics.problem import FIELDS
from dgbook.acoustics.reference import NodalBasis, Operator
from dgbook.gpu import Device, Kernel
from dgbook.gpu.plan import choose, require_legal
from dgbook.nodal.launching import StageByKernels
from dgbook.time import lsrk45

Plan = NodePlan | ElementPlan


@lru_cache(maxsize=256)
def kernels(shape: Shape, plan: Plan) -> dict[str, Kernel]:
    """The kernels of a plan by name, compiled once for equal arguments."""
    if isinstance(plan, NodePlan):
        makers = {"volume": make_node_volume, "surface": make_node_surface}
    else:
        makers = {
            "volume": make_element_volume,
            "flux": make_element_flux,
            "lift": make_element_lift,
        }
    made = {name: make(shape, plan) for name, make in makers.items()}
    return made | {"update": lsrk45.make_update(shape.dtype)}


class NodalLauncher(StageByKernels):
    """A nodal operator's arrays on a device, and the paper's kernels launched on them.

    ::

        launcher = NodalLauncher(operator, device)
        u, res = launcher.upload(values), launcher.zeros()
        launcher.stage(u, res, u, data, a, b, dt)

    A state is flat: of a `NodePlan` with entry (field, element, node), of an `ElementPlan` with
    entry (field, node, element), so that threads side by side read words side by side. Each kernel
    can be launched, and timed, on its own: `volume` writes du/dt, `surface` adds to it. With an
    `ElementPlan` the latter is two kernels, `flux` and `lift`.

    Parameters
    ----------
    operator : reference.Operator
        In the nodal basis. Its dtype is the kernels'.
    device : Device
        "cuda" or "simulator".
    plan : NodePlan or ElementPlan, optional
        If not given, the `NodePlan` that `dgbook.gpu.plan.choose` says.

    Raises
    ------
    ValueError
        If the basis is another, the plan not legal, or the mesh too large for 32-bit indices.
    """

    def __init__(self, operator: Operator, device: Device, plan: Plan | None = None) -> None:
        if not isinstance(operator.basis, NodalBasis):
            raise ValueError("operator.basis is a Bernstein basis; allowed: 'nodal'")
        dtype = operator.weights.dtype.name
        super().__init__(operator, device, dtype)
        self.shape = Shape(operator.order, dtype)
        self.K = operator.mesh.K
        self.size = len(FIELDS) * self.K * self.shape.Np
        self._check_indices(len(FIELDS) * self.K * max(self.shape.Np, self.shape.Nf))
        trace = operator.trace
        mirrors = operator.mirrors if trace.ghosts else np.zeros(1)
        self.arrays = self._on_device(
            {
                "links": trace.links,
                "opposite": trace.opposite,
                "face_nodes": trace.interior[0],
            },
            {"faces": _faces(operator), "mirrors": mirrors},
        )
        self._load(plan or choose(NodePlan, self.shape, device))

    def _load(self, plan: Plan) -> None:
        require_legal(plan, self.shape)
        self.plan, self.by_node = plan, isinstance(plan, NodePlan)
        self.kernels = dict(kernels(self.shape, plan))
        self.update_threads = plan.K_U * self.shape.Np
        self.work = {"du": self.zeros()}
        basis, metric = self.operator.basis, self.operator.rst_xyz.reshape(self.K, -1)
        material = np.stack([self.operator.kappa, 1 / self.operator.rho], axis=1)
        derivative, lift = basis.derivative.transpose(0, 2, 1), basis.lift_matrix.T
        if not self.by_node:
            metric, material = metric.T, material.T
            derivative = _filled(derivative.swapaxes(0, 1), plan.rows_V)
            lift = _filled(lift, plan.rows_S)
            faces = len(FIELDS) * self.K * self.shape.Nf
            self.work["flux"] = self.device.zeros(faces, self.real)
        tables = {"derivative": derivative, "lift": lift, "rst_xyz": metric, "material": material}
        self.arrays = self.arrays | self._on_device({}, tables)

    # -- states ----------------------------------------------------------------------------

    def part(self, states: Any, places: slice) -> Any:
        """States, flat (..., entries), of some elements: (..., 4, places, Np) on the device."""
        stack, Np = states.shape[:-1], self.shape.Np
        if self.by_node:
            return states.reshape(*stack, -1, self.K, Np)[..., places, :]
        return states.reshape(*stack, -1, Np, self.K)[..., places].swapaxes(-1, -2)

    # -- launches --------------------------------------------------------------------------

    def volume(self, u: Any, out: Any) -> None:
        """out = (-kappa div v, -1/rho grad p)."""
        a = self.arrays
        self.kernels["volume"][self._launch(self.plan.K_V)](
            u, a["derivative"], a["rst_xyz"], a["material"], out
        )

    def surface(self, u: Any, data: Any, out: Any) -> None:
        """out += what the faces lift; `data` are g on the boundary, flat (4 nb Nfp,)."""
        if not self.by_node:
            self.flux(u, data)
            self.lift(out)
            return
        grid = -(-self.K // self.plan.K_S)
        block = max(self.shape.Np, self.shape.Nf), self.plan.K_S
        self.kernels["surface"][grid, block](*self._traces(u, data), self.arrays["lift"], out)

    def flux(self, u: Any, data: Any) -> None:
        """work["flux"] = the numerical fluxes at all face nodes, of an `ElementPlan`."""
        grid = -(-self.K // self.plan.K_S), self.shape.Nf
        self.kernels["flux"][grid, self.plan.K_S](*self._traces(u, data), self.work["flux"])

    def lift(self, out: Any) -> None:
        """out += the lift of work["flux"], of an `ElementPlan`."""
        self.kernels["lift"][self._launch(self.plan.K_S)](
            self.work["flux"], self.arrays["lift"], out
        )

    def rhs(self, u: Any, data: Any, out: Any) -> None:
        """out = du/dt; `data` are g on the boundary, flat (4 nb Nfp,)."""
        self.volume(u, out)
        self.surface(u, data, out)

    def _traces(self, u: Any, data: Any) -> tuple:
        """What `make_nodal_flux` asks for."""
        names = ("links", "opposite", "face_nodes", "faces", "mirrors")
        return u, data, *(self.arrays[name] for name in names)

    def _launch(self, elements: int) -> tuple:
        """Grid and block of a kernel that applies a matrix, with so many elements a block."""
        blocks = -(-self.K // elements)
        if self.by_node:
            return blocks, (self.shape.Np, elements)
        return (blocks, self.plan.parts), elements


def _faces(operator: Operator) -> np.ndarray:
    """n, kappa Fs (a, b), Fs (c, d) / rho of each face, (K, 4, 7)."""
    material = np.stack([operator.kappa, operator.kappa, 1 / operator.rho, 1 / operator.rho])
    weights = material[..., None] * operator.face_scale * operator.weights
    return np.concatenate([operator.normals, np.moveaxis(weights, 0, -1)], axis=-1)


def _filled(columns: np.ndarray, rows: int) -> np.ndarray:
    """Columns of a matrix, (..., Np), filled up by zeros to a multiple of `rows`."""
    missing = -columns.shape[-1] % rows
    return np.pad(columns, [*((0, 0),) * (columns.ndim - 1), (0, missing)])
