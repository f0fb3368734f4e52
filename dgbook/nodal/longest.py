"""What solvers of linear equations add: the method in time, and the longest step that is stable."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from dgbook.arguments import check_choice, host_bytes
from dgbook.gpu import Device
from dgbook.mesh import Mesh
from dgbook.nodal.solving import HostStepper, NodalSolver
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

    launcher: Any
    operator: Any

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

    @abstractmethod
    def _product(self) -> Callable[[Any, Any], None]:
        """``apply(x, y)``: y = du/dt of the state x, both on the device, where nothing comes in."""

    # -- what all have -----------------------------------------------------------------------

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

    def _host_product(self, rhs: Callable) -> Callable[[Any, Any], None]:
        """`_product` by the reference's ``rhs(operator, u)``."""
        closed = replace(self.operator, sources=())

        def apply(x: np.ndarray, y: np.ndarray) -> None:
            y[:] = rhs(closed, x)

        return apply

    def _host_stepper(self, u: np.ndarray, dt: float) -> HostStepper:
        return HostStepper(self, u, dt, self.method.advance)
