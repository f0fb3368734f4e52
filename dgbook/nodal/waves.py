"""What solvers of waves share: right-hand sides, and stages in which something comes in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from dgbook.nodal.incoming import Incoming, Launch
from dgbook.nodal.longest import LinearSolver
from dgbook.nodal.solving import DeviceStepper, HostStepper


class WaveSolver(LinearSolver):
    """Nodal DG in space and low-storage Runge-Kutta in time, by launchers of whole stages.

    Attributes
    ----------
    reference : module
        The family's, with `rhs` and `boundary_data`.
    """

    reference: ClassVar[ModuleType]

    # -- what a family says ------------------------------------------------------------------

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

    def _product(self) -> Callable[[Any, Any], None]:
        if self.device.kind == "cpu":
            return self._host_product(self.reference.rhs)
        launcher, nothing = self.launcher, self.incoming().data
        return lambda x, y: launcher.rhs(x, nothing, y)

    def _host_stepper(self, u: np.ndarray, dt: float) -> HostSteps:
        return HostSteps(self, u, dt)

    def _stepper(self, u: np.ndarray, t: float, dt: float, done: int) -> DeviceSteps:
        return DeviceSteps(self, u, t, dt, done)


class HostSteps(HostStepper):
    """Time steps by NumPy, in the operator's unknowns."""

    def __init__(self, solver: WaveSolver, u: np.ndarray, dt: float) -> None:
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

    def __init__(self, solver: WaveSolver, u: np.ndarray, t: float, dt: float, done: int) -> None:
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
