"""The solver: allocate, loop, return; on a GPU and in the simulator it launches the kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dgbook.gpu import Device
from dgbook.gpu.plan import choose, require_legal
from dgbook.linear import reference
from dgbook.linear.cores import Cores
from dgbook.linear.launch import Launcher, SplitLauncher, shape_of
from dgbook.linear.plan import Plan
from dgbook.linear.problem import System
from dgbook.mesh import Mesh, geometric_factors
from dgbook.nodal.cores import CORE_ARRAYS
from dgbook.nodal.linear import LinearSolver

PATHS = {"fused": (Launcher, Plan), "split": (SplitLauncher, Plan)}
"""By name the launcher and the plan that it takes."""
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
    device : Device or {"auto", "cuda", "cpu", "reference", "simulator"}
        "cpu" is compiled kernels on all processor cores, "reference" the NumPy operator.
    path : {"fused", "split"}
        Which kernels take a time step: one a stage, or volume, surface and update.
    plan : Plan, optional
        How they are launched; if not given, what the tuner remembers for this GPU, or a default.
    method : {"lsrk45", "ndb14", "ndb14_factored", "auto"}
        The Runge-Kutta method: five stages, or fourteen with a step that is 4.0 times as long where
        an upwind flux limits it. On uniform meshes from N = 5 on its own error limits the step
        before that, see `accurate_dt`. In factored form the fourteen stages have less to read and
        to write and round less, see `dgbook.time.ndb14_factored`; on a GPU on path "fused" only.
        "auto" is the one expected to need the least time to ``t_end`` with the default step, see
        `dgbook.nodal.linear.usual_method`. With steps of your own LSRK4(5) has the fewest stages.

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

    reference = reference
    cores = Cores

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
        super().__init__(mesh, order, dtype, device, method)
        self.take_path(path, plan, PATHS)
        self.system, self.fields = system, system.fields
        self.operator = reference.assemble(
            mesh, self.element, system, flux, boundary, self.dtype.name
        )
        self.jacobian = self.operator.jacobian
        self.shape = shape_of(self.operator)
        self.plan = self._plan = plan or choose(Plan, self.shape, self.device)
        require_legal(self.plan, self.shape)

    def cfl_dt(self) -> float:
        """A stable step, 4 / ((N+1)^2 max_k sum_f Fs |A_n|), with |A_n| the fastest wave along n.

        Since Fs = 2 / altitude and the altitudes' reciprocals add up to the inradius's, a wave of
        one speed c in all directions gives the smallest inscribed ball's diameter over c (N+1)^2.
        The largest stable steps found, by the eigenvalues of the operator, are at least 1.5 times
        as long (advection along a face diagonal of boxes cut in six, N = 1).
        """
        fastest = float(self.operator.speeds.sum(axis=1).max())
        return 4 / ((self.element.order + 1) ** 2 * fastest)

    def _speeds(self) -> np.ndarray:
        return self.system.speed(geometric_factors(self.mesh).normals).max(axis=1)

    def _numbers(self) -> tuple[int, int]:
        """On a device the state, the residual and du/dt or the new state, geometry and links."""
        dim, n, element = self.mesh.dim, self.system.n, self.element
        hosts = {"cpu": CORE_ARRAYS, "reference": REFERENCE_ARRAYS[dim]}
        states, faces = hosts.get(self.device.kind, (3, 0))
        links = 12 * (dim + 1) // self.dtype.itemsize
        values = states * element.Np + faces * (dim + 1) * element.Nfp
        return values, (2 * dim + 1) * n * n + links

    def _fields(self, values: Any, shape: tuple[int, ...]) -> np.ndarray:
        return reference.as_fields(values, self.system, shape)
