"""What solvers of linear equations add: Runge-Kutta stages, and the longest step that is stable."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from types import ModuleType
from typing import Any

import numpy as np

from dgbook.arguments import check_choice, host_bytes
from dgbook.gpu import Device
from dgbook.mesh import Mesh
from dgbook.nodal.incoming import Incoming, Launch
from dgbook.nodal.solving import DeviceStepper, HostStepper, NodalSolver
from dgbook.nodal.spectrum import VECTORS, Found, critical_eigenvalues
from dgbook.time import lsrk45, ndb14, steps
from dgbook.time.stability import longest_steps

METHODS = {"lsrk45": lsrk45, "ndb14": ndb14}
"""By name the Runge-Kutta methods that the kernels can take, all with two registers."""
FEW_STEPS = 50
"""Where ``cfl_dt()`` needs fewer steps than this, looking for a longer one costs about as much."""
SAFETY = 0.95
"""Of the longest step that the eigenvalues found allow; they are known to a percent or two."""


class LinearSolver(NodalSolver):
    """Nodal DG in space and low-storage Runge-Kutta in time, for linear equations.

    Attributes
    ----------
    method : module
        Of `METHODS`: the coefficients A, B and C, and `advance`.
    """

    def __init__(
        self, mesh: Mesh, order: int, dtype: str, device: Device | str, method: str
    ) -> None:
        check_choice("method", method, METHODS)
        super().__init__(mesh, order, dtype, device)
        self.method = METHODS[method]

    # -- what a family says ------------------------------------------------------------------

    @abstractmethod
    def cfl_dt(self) -> float:
        """A stable step by a closed formula, several times as short as need be."""

    def _launches(self) -> Sequence[Launch] | None:
        """What evaluates incoming fields on the device, see `Incoming`."""
        return None if self.operator.sources else ()

    def _unknowns(self, u: np.ndarray) -> np.ndarray:
        """What the operator works on, of nodal values."""
        return u

    def _nodal(self, unknowns: np.ndarray) -> np.ndarray:
        """Nodal values of what the operator works on."""
        return unknowns

    # -- what all have -----------------------------------------------------------------------

    def rhs(self, u: np.ndarray, t: float = 0.0) -> np.ndarray:
        """du/dt, (n, K, Np)."""
        unknowns = self._unknowns(self._state(u))
        if self.device.kind == "cpu":
            return self._nodal(self.reference.rhs(self.operator, unknowns, t))
        incoming, out = self.incoming(), self.launcher.zeros()
        incoming.evaluate(t)
        self.launcher.rhs(self.launcher.upload(unknowns), incoming.data, out)
        return self._nodal(self.launcher.download(out))

    def incoming(self) -> Incoming:
        """What comes in through the boundary, on the device."""
        boundary_data = self.reference.boundary_data
        return Incoming(self.operator, self.device, boundary_data, self._launches())

    @cached_property
    def spectrum(self) -> Found | None:
        """Eigenvalues of the operator, of which the one that limits the step has converged.

        They are found once, by Arnoldi's method with the right-hand sides of this solver on its
        device, 20 to 100 of them, and `spectrum.VECTORS` states of memory. None where they are not
        found after `spectrum.MOST_PRODUCTS`, or memory does not hold those states.
        """
        shape = (len(self.fields), self.mesh.K, self.element.Np)
        state = int(np.prod(shape)) * self.dtype.itemsize
        memory = self.device.memory_bytes or host_bytes()
        if self.memory_bytes() + (VECTORS + VECTORS // 2) * state > memory:
            return None
        start = np.random.default_rng(0).standard_normal(shape).astype(self.dtype)
        if self.device.kind != "cpu":
            start = self.launcher.upload(start)
        stable = partial(longest_steps, self.method)
        return critical_eigenvalues(self._product(), start, stable, self.device)

    def stable_dt(self) -> float:
        """The longest step that is stable, less five percent.

        With it every eigenvalue of the operator lies inside of the Runge-Kutta method's region of
        stability, see `spectrum`. Where the eigenvalues are not found it is ``cfl_dt()``. The first
        call computes it, later ones remember it.
        """
        if self.spectrum is None:
            return self.cfl_dt()
        return SAFETY * float(longest_steps(self.method, self.spectrum.eigenvalues).min())

    def _default_dt(self, u: np.ndarray, t: float, t_end: float) -> float:
        """``stable_dt()``, or ``cfl_dt()`` where that takes fewer than `FEW_STEPS`."""
        dt = self.cfl_dt()
        count, _ = steps(t, t_end, dt)
        return dt if count < FEW_STEPS else self.stable_dt()

    def _product(self) -> Callable[[Any, Any], None]:
        """``apply(x, y)``: y = du/dt of the state x, both on the device, where nothing comes in."""
        if self.device.kind == "cpu":
            closed = replace(self.operator, sources=())

            def apply(x: np.ndarray, y: np.ndarray) -> None:
                y[:] = self.reference.rhs(closed, x)

            return apply
        launcher, nothing = self.launcher, self.incoming().data
        return lambda x, y: launcher.rhs(x, nothing, y)

    def _host_stepper(self, u: np.ndarray, dt: float) -> HostSteps:
        return HostSteps(self, u, dt)

    def _stepper(self, u: np.ndarray, t: float, dt: float, done: int) -> DeviceSteps:
        return DeviceSteps(self, u, t, dt, done)


class HostSteps(HostStepper):
    """Time steps by NumPy, in the operator's unknowns."""

    def __init__(self, solver: LinearSolver, u: np.ndarray, dt: float) -> None:
        super().__init__(solver, solver._unknowns(u), dt, solver.method.advance)

    def step(self, t: float) -> None:
        """One step from time t."""
        solver = self.solver
        self.advance(partial(solver.reference.rhs, solver.operator), self.u, t, self.dt)

    def download(self) -> np.ndarray:
        """A copy of the state, as nodal values."""
        return self.solver._nodal(self.u).copy()


class DeviceSteps(DeviceStepper):
    """Time steps by a launcher, in the operator's unknowns."""

    def __init__(self, solver: LinearSolver, u: np.ndarray, t: float, dt: float, done: int) -> None:
        launcher, self.dt, self.method = solver.launcher, dt, solver.method
        self.nodal = solver._nodal
        self.incoming = solver.incoming()
        self.incoming.start(t, dt, done)
        self.res = launcher.zeros()
        states = [launcher.upload(solver._unknowns(u))]
        if not launcher.in_place:
            states.append(launcher.zeros())  # the first stage fills it
        super().__init__(launcher, states, self.incoming.live, len(self.method.A))

    def _stages(self, start: int, t: float) -> Callable[[], None]:
        arrays = self.states, self.res
        numbers = self.method, self.dt, start, t
        return partial(_step, self.launcher, self.incoming, *arrays, *numbers)

    def download(self) -> np.ndarray:
        """The newest state as nodal values."""
        return self.nodal(super().download())


def _step(
    launcher: Any,
    incoming: Incoming,
    states: list[Any],
    res: Any,
    method: ModuleType,
    dt: float,
    start: int,
    t: float,
) -> None:
    """The stages of a step from states[start] at time t."""
    for stage, (a, b, c) in enumerate(zip(method.A, method.B, method.C, strict=True)):
        u, new = (states[(start + stage + i) % len(states)] for i in range(2))
        incoming.stage(t, c * dt)
        launcher.stage(u, res, new, incoming.data, a, b, dt)
    incoming.tick()
