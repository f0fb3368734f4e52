"""The solver: allocate, loop, return."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dgbook.acoustics import reference
from dgbook.acoustics.problem import FIELDS
from dgbook.gpu import Device
from dgbook.mesh import Mesh
from dgbook.solving import HostStepper, NodalSolver


class Solver(NodalSolver):
    """DG in space and low-storage Runge-Kutta in time for acoustic waves, in either basis.

    ::

        mode = exact.CubeMode()
        solver = acoustics.Solver(box((4, 4, 4), -1.0, 1.0), 4, basis="bernstein")
        u = solver.interpolate(lambda x, y, z: mode(x, y, z, 0.0))
        u = solver.run(u, t_end=1.0)

    States are NumPy arrays of shape (4, K, Np): pressure and the three velocities. They hold nodal
    values in *both* bases; a run in the Bernstein basis goes to control points once, before its
    first step, and back whenever a state is asked for.

    Parameters
    ----------
    mesh : Mesh
        Of tetrahedra.
    order : int
        Polynomial degree N, 1 to 15.
    dtype : {"float64", "float32"}
    device : Device or {"auto", "cuda", "cpu", "simulator"}
        The NumPy reference runs on the CPU; there are no kernels.
    basis : {"nodal", "bernstein"}
    flux : {"upwind", "penalty", "central"}
        See ``problem.flux_weights``.
    kappa, rho : number or (K,) array
        Bulk modulus and density; the speed of sound is sqrt(kappa / rho).
    boundary : condition or dict
        For each name in ``mesh.boundary`` "soft", "rigid", "absorbing", or a function of
        (x, y, z, t) that returns the four fields coming in. A condition alone stands for all names.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above; the message names it.
    RuntimeError
        For a device other than the CPU.

    Attributes
    ----------
    x : (3, K, Np) float64
        Coordinates of the nodes.
    operator : reference.Operator
    device : Device
    """

    fields = FIELDS

    def __init__(
        self,
        mesh: Mesh,
        order: int,
        dtype: str = "float64",
        device: Device | str = "auto",
        basis: str = "nodal",
        flux: str = "upwind",
        kappa: float | np.ndarray = 1.0,
        rho: float | np.ndarray = 1.0,
        boundary: str | Callable | dict[str, str | Callable] = "soft",
    ) -> None:
        super().__init__(mesh, order, dtype, device)
        if self.device.kind != "cpu":
            raise RuntimeError(f"device = {device!r}; allowed: 'cpu', there are no kernels")
        self.operator = reference.assemble(
            mesh, order, basis, flux, kappa, rho, boundary, self.dtype.name
        )
        self.jacobian = self.operator.jacobian

    def rhs(self, u: np.ndarray, t: float = 0.0) -> np.ndarray:
        """du/dt, (4, K, Np)."""
        basis = self.operator.basis
        return basis.to_nodal(reference.rhs(self.operator, basis.from_nodal(self._state(u)), t))

    def stable_dt(self) -> float:
        """A stable step, 4 / ((N+1)^2 max_k c_k sum_f Fs), Fs times ``Operator.stiffness``.

        Of a uniform medium it is the diameter of the smallest inscribed ball over c (N+1)^2.
        """
        faces = (self.operator.face_scale * self.operator.stiffness).sum(axis=1)
        return 4 / ((self.element.order + 1) ** 2 * float((self.operator.speed * faces).max()))

    def _host_stepper(self, u: np.ndarray, dt: float) -> Stepper:
        return Stepper(self, u, dt)

    def _stepper(self, u: np.ndarray, t: float, dt: float, done: int) -> Stepper:
        return self._host_stepper(u, dt)  # the only device that a solver is made for

    def _fields(self, values: Any, shape: tuple[int, ...]) -> np.ndarray:
        return reference.as_fields(values, shape)

    def _energy_weights(self) -> np.ndarray:
        return np.stack([1 / self.operator.kappa, *3 * [self.operator.rho]]).astype(np.float64)


class Stepper(HostStepper):
    """Time steps by NumPy in the unknowns of the basis."""

    def __init__(self, solver: Solver, u: np.ndarray, dt: float) -> None:
        self.operator = solver.operator
        super().__init__(solver, self.operator.basis.from_nodal(u), dt)

    def step(self, t: float) -> None:
        """One step from time t."""
        self.advance(partial(reference.rhs, self.operator), self.u, t, self.dt)

    def download(self) -> np.ndarray:
        """The state as nodal values."""
        return self.operator.basis.to_nodal(self.u).copy()
