"""The solver: allocate, loop, return; on a GPU and in the simulator it launches the kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache, partial
from types import ModuleType
from typing import Any

import numpy as np

from dgbook.gpu import Device, Kernel
from dgbook.gpu.plan import choose, require_legal
from dgbook.linear import reference
from dgbook.linear.kernels import make_fused, make_surface, make_volume
from dgbook.linear.plan import Plan, Shape
from dgbook.linear.problem import System
from dgbook.mesh import Mesh
from dgbook.nodal import launching
from dgbook.nodal.longest import LinearSolver
from dgbook.nodal.solving import DeviceStepper
from dgbook.time import lsrk45

PATHS = ("fused", "split")
UPDATE_THREADS = 256
REFERENCE_ARRAYS = {1: (7, 2), 2: (9, 2), 3: (12, 1)}
"""By dimensions those of states, and of values on faces, that a run by the reference has at the
same time: measured."""


class Solver(LinearSolver):
    """Nodal DG in space and low-storage Runge-Kutta in time for u_t + sum_d A_d u_{x_d} = 0.

    ::

        solver = Solver(box(40, periodic=True), 4, advection(1.0))
        u = solver.interpolate(lambda x: np.sin(2 * np.pi * x))
        u = solver.run(u, t_end=1.0)

    States are NumPy arrays of shape (n, K, Np): n fields, K elements, Np nodes.

    Parameters
    ----------
    mesh : Mesh
    order : int
        Polynomial degree N.
    system : System
        ``advection(velocity)``, ``wave(dim)`` or another.
    flux : {"upwind", "central"}
    boundary : dict, str or function, optional
        For each name in ``mesh.boundary`` a condition, "outflow", "absorbing", "wall" or "soft",
        or a function of (x, [y, z,] t) that returns the fields outside, such as the exact
        solution. A condition alone stands for all names. Functions are evaluated on the host, once
        a stage, so that a GPU then waits for Python: fine for tests, slow for production.
    dtype : {"float64", "float32"}
    device : Device or {"auto", "cuda", "cpu", "simulator"}
        On the CPU the NumPy reference runs; elsewhere the kernels.
    path : {"fused", "split"}
        Which kernels take a time step: one a stage, or volume, surface and update.
    plan : Plan, optional
        How they are launched; if not given, what the tuner remembers for this GPU, or a default.
    method : {"lsrk45", "ndb14"}
        The Runge-Kutta method: five stages, or fourteen with a step that is 4.0 times as long where
        an upwind flux limits it. The step is then so long that from N = 5 on its own error may
        show, see `dgbook.time.ndb14`.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above; the message names it.
    RuntimeError
        For "cuda" where there is no CUDA device.

    Attributes
    ----------
    x : (dim, K, Np) array
        Coordinates of the nodes.
    operator : reference.Operator
    device : Device
    plan : Plan
    """

    def __init__(
        self,
        mesh: Mesh,
        order: int,
        system: System,
        flux: str = "upwind",
        boundary: str | Callable | dict[str, str | Callable] | None = None,
        dtype: str = "float64",
        device: Device | str = "auto",
        path: str = "fused",
        plan: Plan | None = None,
        method: str = "lsrk45",
    ) -> None:
        if not isinstance(system, System):
            raise TypeError(f"system = {system!r}; allowed: a System")
        self.take_path(path, plan, {path: (Launcher, Plan) for path in PATHS})
        super().__init__(mesh, order, dtype, device, method)
        self.system, self.fields = system, system.fields
        self.operator = reference.assemble(
            mesh, self.element, system, flux, boundary, self.dtype.name
        )
        self.jacobian = self.operator.jacobian
        self.shape = Shape(mesh.dim, system.n, self.element.Np, self.element.Nfp, self.dtype.name)
        self.plan = plan or choose(Plan, self.shape, self.device)
        require_legal(self.plan, self.shape)

    @cached_property
    def launcher(self) -> Launcher:
        """The operator on the device, made when first needed."""
        return Launcher(self.operator, self.device, self.shape, self.plan)

    def rhs(self, u: np.ndarray, t: float = 0.0) -> np.ndarray:
        """du/dt, (n, K, Np)."""
        u = self._state(u)
        if self.device.kind == "cpu":
            return reference.rhs(self.operator, u, t)
        launcher = self.launcher
        state, du = launcher.upload(u), launcher.zeros()
        launcher.set_ghosts(state, t)
        launcher.volume(state, du)
        launcher.surface(state, du)
        return launcher.download(du)

    def cfl_dt(self) -> float:
        """A stable step, 4 / ((N+1)^2 max_k sum_f Fs |A_n|), with |A_n| the fastest wave along n.

        Since Fs = 2 / altitude and the altitudes' reciprocals add up to the inradius's, a wave of
        one speed c in all directions gives the smallest inscribed ball's diameter over c (N+1)^2.
        The largest stable steps found, by the eigenvalues of the operator, are at least 1.5 times
        as long (advection along a face diagonal of boxes cut in six, N = 1).
        """
        fastest = float(self.operator.speeds.sum(axis=1).max())
        return 4 / ((self.element.order + 1) ** 2 * fastest)

    def _numbers(self) -> tuple[int, int]:
        """On a device the state, the residual and du/dt or the new state, geometry and links."""
        dim, n, element = self.mesh.dim, self.system.n, self.element
        states, faces = REFERENCE_ARRAYS[dim] if self.device.kind == "cpu" else (3, 0)
        links = 12 * (dim + 1) // self.dtype.itemsize
        values = states * element.Np + faces * (dim + 1) * element.Nfp
        return values, (2 * dim + 1) * n * n + links

    def _stepper(self, u: np.ndarray, t: float, dt: float, done: int) -> Stepper:
        return self.launcher.stepper(u, dt, self.path, self.method)

    def _product(self) -> Callable[[Any, Any], None]:
        if self.device.kind == "cpu":
            return self._host_product(reference.rhs)
        launcher = self.launcher

        def apply(x: Any, y: Any) -> None:
            launcher.volume(x, y)
            launcher.surface(x, y)

        return apply

    def _fields(self, values: Any, shape: tuple[int, ...]) -> np.ndarray:
        return reference.as_fields(values, self.system, shape)


@lru_cache(maxsize=64)
def kernels(shape: Shape, plan: Plan) -> tuple[Kernel, Kernel, Kernel, Kernel]:
    """Volume, surface, fused and update kernel, each compiled once for equal arguments."""
    dim, n, Np, Nfp, dtype = shape.dim, shape.n, shape.Np, shape.Nfp, shape.dtype
    return (
        make_volume(dim, n, Np, dtype, plan),
        make_surface(dim, n, Np, Nfp, dtype, plan),
        make_fused(dim, n, Np, Nfp, dtype, plan),
        lsrk45.make_update(dtype),
    )


class Launcher(launching.Launcher):
    """An operator's arrays on a device, and its kernels launched on them.

    States on the device have shape (n, (K + ghosts) Np): behind the elements stand ghost elements
    with the exterior values of the boundary faces, see ``dgbook.nodal.trace``. In the notation of
    the reference, with u^+ = M u^- + g on the boundary, the kernels compute

        F (u^- - M u^- - g) = F (I - M) (u^- - g),

    which holds because M or g is zero: the ghosts hold g, the face matrices there F (I - M).

    All other arrays are flat, and indices unsigned: the kernels' docstrings say why.
    """

    def __init__(
        self, operator: reference.Operator, device: Device, shape: Shape, plan: Plan
    ) -> None:
        super().__init__(operator, device, shape.dtype)
        self.shape, trace = shape, operator.trace
        self.nodes = trace.K * trace.Np
        self.size = (shape.n, (trace.K + trace.ghosts) * trace.Np)

        speeds = np.einsum("kid,dab->kiab", operator.rst_xyz, operator.matrices)
        k, f = trace.boundary_faces.T
        face_matrix = operator.face_matrix.copy()
        face_matrix[k, f] = face_matrix[k, f] @ (np.eye(shape.n) - operator.mirrors)
        self.arrays = {
            "derivative": self._flat(operator.derivative.transpose(0, 2, 1), self.real),
            "lift": self._flat(operator.lift.T, self.real),
            "speeds": self._flat(speeds, self.real),
            "face_matrix": self._flat(face_matrix, self.real),
            "interior": self._flat(operator.element.face_nodes, np.uint32),
            "exterior": self._flat(trace.exterior_or_ghost, np.uint32),
            "links": self._flat(trace.links, np.uint32),
            "opposite": self._flat(trace.opposite, np.uint32),
        }
        self._load(plan)

    def _load(self, plan: Plan) -> None:
        self.plan = plan
        (
            self.volume_kernel,
            self.surface_kernel,
            self.fused_kernel,
            self.update_kernel,
        ) = kernels(self.shape, plan)

    # -- states ----------------------------------------------------------------------------

    def upload(self, u: np.ndarray) -> Any:
        """A state (n, K, Np) on the device, its ghosts zero."""
        state = np.zeros(self.size, self.real)
        state[:, : self.nodes] = u.reshape(self.shape.n, -1)
        return self.device.array(state)

    def download(self, state: Any) -> np.ndarray:
        """A state of the device as a NumPy array (n, K, Np)."""
        host = self.device.to_numpy(state)[:, : self.nodes]
        return np.ascontiguousarray(host).reshape(self.shape.n, -1, self.shape.Np)

    def set_ghosts(self, state: Any, t: float) -> None:
        """Evaluate the boundary functions at time t, if there are any, and copy them over."""
        if self.operator.sources:
            data = reference.boundary_data(self.operator, t)
            ghosts = np.zeros((*data.shape[:2], self.shape.Np), self.real)
            ghosts[..., : self.shape.Nfp] = data
            state[:, self.nodes :] = self.device.array(ghosts.reshape(self.shape.n, -1))

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

    def update(
        self, rhs: Any, res: Any, u: Any, stage: int, dt: float, method: ModuleType = lsrk45
    ) -> None:
        """res = A_s res + dt rhs, u += B_s res."""
        blocks = -(-u.size // UPDATE_THREADS)
        self.update_kernel[blocks, UPDATE_THREADS](
            rhs.reshape(-1), res.reshape(-1), u.reshape(-1), *self._coefficients(stage, dt, method)
        )

    def fused(
        self, u: Any, res: Any, new: Any, stage: int, dt: float, method: ModuleType = lsrk45
    ) -> None:
        """The three in one: res = A_s res + dt du/dt, new = u + B_s res; new is not u."""
        a = self.arrays
        self.fused_kernel[self._blocks(self.plan.elements_inline), self._threads](
            u,
            a["interior"],
            a["links"],
            a["opposite"],
            a["derivative"],
            a["speeds"],
            a["face_matrix"],
            a["lift"],
            res,
            new,
            *self._coefficients(stage, dt, method),
        )

    def stepper(self, u: np.ndarray, dt: float, path: str, method: ModuleType) -> Stepper:
        """A loop over time steps dt from the state u, by the "fused" or the "split" path."""
        return Stepper(self, u, dt, path, method)

    @property
    def _threads(self) -> tuple[int, int]:
        return (self.shape.Np, self.plan.elements_per_block)

    def _blocks(self, inline: int) -> int:
        return -(-self.operator.mesh.K // (self.plan.elements_per_block * inline))

    def _coefficients(self, stage: int, dt: float, method: ModuleType) -> tuple:
        return self.real(method.A[stage]), self.real(method.B[stage]), self.real(dt)


class Stepper(DeviceStepper):
    """Time steps by the "fused" or the "split" path."""

    def __init__(
        self, launcher: Launcher, u: np.ndarray, dt: float, path: str, method: ModuleType
    ) -> None:
        self.res = launcher.zeros()
        self.rhs = launcher.zeros() if path == "split" else None
        self.dt, self.method = dt, method
        states = [launcher.upload(u) for _ in range(2 if path == "fused" else 1)]
        super().__init__(launcher, states, bool(launcher.operator.sources), len(method.A))

    def _stages(self, start: int, t: float) -> Callable[[], None]:
        arrays = self.states, self.res, self.rhs
        return partial(_step, self.launcher, *arrays, self.method, self.dt, start, t)


def _step(
    launcher: Launcher,
    states: list[Any],
    res: Any,
    rhs: Any,
    method: ModuleType,
    dt: float,
    start: int,
    t: float,
) -> None:
    """The stages of a step from states[start]; `rhs` is None on the fused path."""
    for stage, c in enumerate(method.C):
        u, new = (states[(start + stage + i) % len(states)] for i in range(2))
        launcher.set_ghosts(u, t + c * dt)
        if rhs is None:
            launcher.fused(u, res, new, stage, dt, method)
        else:
            launcher.volume(u, rhs)
            launcher.surface(u, rhs)
            launcher.update(rhs, res, u, stage, dt, method)
