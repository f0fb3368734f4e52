"""An operator's arrays on a device, and the kernels launched on them, one a stage or three."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from dgbook.gpu import Device, Kernel
from dgbook.gpu.plan import choose, require_legal
from dgbook.linear.kernels import make_fused, make_surface, make_volume
from dgbook.linear.plan import Plan, Shape
from dgbook.linear.reference import Operator
from dgbook.nodal import launching
from dgbook.time import lsrk45

UPDATE_THREADS = 256


def shape_of(operator: Operator) -> Shape:
    """The sizes that an operator's kernels close over."""
    element, n = operator.element, operator.system.n
    return Shape(element.dim, n, element.Np, element.Nfp, operator.lift.dtype.name)


@lru_cache(maxsize=64)
def kernels(
    shape: Shape, plan: Plan, factored: bool = False
) -> tuple[Kernel, Kernel, Kernel, Kernel]:
    """Volume, surface, fused and update kernel, each compiled once for equal arguments.

    Of a factored method the fused kernel is another one.
    """
    dim, n, Np, Nfp, dtype = shape.dim, shape.n, shape.Np, shape.Nfp, shape.dtype
    return (
        make_volume(dim, n, Np, dtype, plan),
        make_surface(dim, n, Np, Nfp, dtype, plan),
        make_fused(dim, n, Np, Nfp, dtype, plan, factored),
        lsrk45.make_update(dtype),
    )


class Launcher(launching.EitherForm):
    """An operator's arrays on a device, and its kernels launched on them.

    States on the device have shape (n, (K + ghosts) Np): behind the elements stand ghost elements
    with the exterior values of the boundary faces, see ``dgbook.nodal.trace``. In the notation of
    the reference, with u^+ = M u^- + g on the boundary, the kernels compute

        F (u^- - M u^- - g) = F (I - M) (u^- - g),

    which holds because M or g is zero: the ghosts hold g, the face matrices there F (I - M).

    All other arrays are flat, and indices unsigned: the kernels' docstrings say why.
    """

    in_place = False

    def __init__(self, operator: Operator, device: Device, plan: Plan | None = None) -> None:
        shape = self.shape = shape_of(operator)
        super().__init__(operator, device, shape.dtype)
        trace = operator.trace
        self.nodes = trace.K * trace.Np
        self.size = (shape.n, (trace.K + trace.ghosts) * trace.Np)

        speeds = np.einsum("kid,dab->kiab", operator.rst_xyz, operator.matrices)
        own = slice(operator.mesh.owned)
        k, f = trace.boundary_faces.T
        face_matrix = operator.face_matrix.copy()
        face_matrix[k, f] = face_matrix[k, f] @ (np.eye(shape.n) - operator.mirrors)
        self.arrays = self._on_device(
            {
                "interior": operator.element.face_nodes,
                "exterior": trace.exterior_or_ghost[own],
                "links": trace.links[own],
                "opposite": trace.opposite,
            },
            {
                "derivative": operator.derivative.transpose(0, 2, 1),
                "lift": operator.lift.T,
                "speeds": speeds[own],
                "face_matrix": face_matrix[own],
            },
        )
        self._load(plan or choose(Plan, shape, device))

    def _load(self, plan: Plan) -> None:
        require_legal(plan, self.shape)
        self.plan = plan
        (
            self.volume_kernel,
            self.surface_kernel,
            self.fused_kernel,
            self.update_kernel,
        ) = kernels(self.shape, plan, self.factored)

    # -- states ----------------------------------------------------------------------------

    def part(self, states: Any, places: slice) -> Any:
        """States, flat (..., entries), of some elements: (..., n, places, Np) on the device."""
        n, Np = self.shape.n, self.shape.Np
        return states.reshape(*states.shape[:-1], n, -1, Np)[..., places, :]

    def entries(self, elements: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """As `dgbook.nodal.launching.Launcher.entries`."""
        n, width = self.size
        first = np.arange(n)[:, None, None] * width
        return first + elements[:, None] * self.shape.Np + nodes

    def set_ghosts(self, state: Any, data: Any) -> None:
        """Copy what is given on the boundary, flat (n nb Nfp,), behind the elements."""
        if self.operator.sources:
            n, trace = self.shape.n, self.operator.trace
            ghosts = state.reshape(n, -1, self.shape.Np)[:, trace.K :, : self.shape.Nfp]
            ghosts[:] = data.reshape(ghosts.shape)

    # -- launches --------------------------------------------------------------------------

    def volume(self, u: Any, rhs: Any) -> None:
        """rhs = - sum_d A_d du/dx_d."""
        a = self.arrays
        self.volume_kernel[self._blocks(1), self._threads](u, a["derivative"], a["speeds"], rhs)

    def surface(self, u: Any, rhs: Any) -> None:
        """rhs += LIFT(Fs F (u^- - u^+))."""
        a = self.arrays
        self.surface_kernel[self._blocks(1), self._threads](
            u, a["interior"], a["exterior"], a["face_matrix"], a["lift"], rhs
        )

    def update(self, rhs: Any, res: Any, u: Any, a: float, b: float, dt: float) -> None:
        """res = a res + dt rhs, u += b res."""
        blocks = -(-u.size // UPDATE_THREADS)
        self.update_kernel[blocks, UPDATE_THREADS](
            rhs.reshape(-1), res.reshape(-1), u.reshape(-1), *map(self.real, (a, b, dt))
        )

    def fused(self, u: Any, res: Any, new: Any, a: float, b: float, dt: float) -> None:
        """The three in one: res = a res + dt du/dt, new = u + b res; new is not u.

        With factors res = a res + b u + dt du/dt; res is not u, and new is not written.
        """
        names = ("interior", "links", "opposite", "derivative", "speeds", "face_matrix", "lift")
        self.fused_kernel[self._blocks(self.plan.elements_inline), self._threads](
            u, *(self.arrays[name] for name in names), res, new, *map(self.real, (a, b, dt))
        )

    def rhs(self, u: Any, data: Any, out: Any) -> None:
        """out = du/dt; `data` are g on the boundary, flat (n nb Nfp,)."""
        self.set_ghosts(u, data)
        self.volume(u, out)
        self.surface(u, out)

    def stage(self, u: Any, res: Any, new: Any, data: Any, a: float, b: float, dt: float) -> None:
        """As `fused`, with `data` on the boundary."""
        self.set_ghosts(u, data)
        self.fused(u, res, new, a, b, dt)

    @property
    def _threads(self) -> tuple[int, int]:
        return (self.shape.Np, self.plan.elements_per_block)

    def _blocks(self, inline: int) -> int:
        return -(-self.operator.mesh.owned // (self.plan.elements_per_block * inline))


class SplitLauncher(Launcher):
    """The same in three launches: volume, surface and update.

    Attributes
    ----------
    in_place : bool
        True: the update replaces the state.
    """

    in_place = True

    def stage(self, u: Any, res: Any, new: Any, data: Any, a: float, b: float, dt: float) -> None:
        """res = a res + dt du/dt, new = u + b res; `new` is u."""
        self.rhs(u, data, self.du)
        self.update(self.du, res, u, a, b, dt)

    @cached_property
    def du(self) -> Any:
        """Room for du/dt."""
        return self.zeros()
