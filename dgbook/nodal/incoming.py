"""What is given on a boundary, on a device: evaluated by Python, or by launches in a recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from dgbook.gpu import Device, Kernel
from dgbook.nodal.kernels.combine import make_combine
from dgbook.nodal.kernels.tick import make_tick

THREADS = 128

Launch = Callable[[Any, float, float, float, Any], None]
"""``launch(step, start, dt, late, data)`` puts into `data` what is given a time `late` after the
beginning of a step: that with the number step[0], of those dt long of which number 0 is at `start`.
"""


class Incoming:
    """What is given on the boundary of an operator, on a device.

    Python evaluates functions of place and time once a stage: the device then waits for the host.
    Launches can be recorded with the rest of a time step instead. They have the time from the
    number of the step, which a kernel counts.

    Parameters
    ----------
    operator : a family's operator
    device : Device
        "cuda" or "simulator".
    boundary_data : function
        ``boundary_data(operator, t)`` of the family's reference, (n, nb, Nfp).
    launches : sequence of `Launch`, optional
        All that has to be done in a stage; what does not change in time needs none. If not given,
        Python has to run.

    Attributes
    ----------
    data : array of n nb Nfp
        Of field f at node i of boundary face b at index (f nb + b) Nfp + i; a single zero if there
        is no boundary.
    live : bool
        Whether Python has to run in every stage.
    """

    def __init__(
        self,
        operator: Any,
        device: Device,
        boundary_data: Callable[[Any, float], np.ndarray],
        launches: Sequence[Launch] | None = None,
    ) -> None:
        self.operator, self.device, self.boundary_data = operator, device, boundary_data
        self.live, self.launches = launches is None, launches or ()
        nothing = boundary_data(replace(operator, sources=()), 0.0)
        self.data = device.zeros(max(1, nothing.size), nothing.dtype)
        self.step = device.zeros(1, np.int64)

    def evaluate(self, t: float) -> None:
        """What is given at time t, by Python."""
        self._put(t, self.data)

    def _put(self, t: float, data: Any) -> None:
        if self.operator.sources:
            values = self.boundary_data(self.operator, t)
            data[:] = self.device.array(values.ravel())

    def start(self, t: float, dt: float, done: int = 0) -> None:
        """Begin with a step, the one after `done` steps dt from time t."""
        self.begin, self.dt = float(t), float(dt)
        self.step[:] = done
        if not (self.live or self.launches):  # it does not change
            self.evaluate(t)

    def stage(self, t: float, late: float) -> None:
        """What is given a time `late` after the beginning of a step at t.

        In a recording there are launches only, and t means nothing.
        """
        self._at(t, late, self.data)

    def _at(self, t: float, late: float, data: Any) -> None:
        if self.live:
            self._put(t + late, data)
        for launch in self.launches:
            launch(self.step, self.begin, self.dt, float(late), data)

    def tick(self) -> None:
        """The step is over."""
        if self.launches:
            tick_kernel()[1, 1](self.step)


class CombinedIncoming(Incoming):
    """The same in the stages of a factored method, see `dgbook.time.ndb14_factored`.

    At the beginning of a step what is given is evaluated at a few times of the step; each stage
    then adds these up with weights of its own.

    Parameters
    ----------
    operator, device, boundary_data, launches
        As of `Incoming`.
    times : sequence of float
        In steps after the beginning of a step.
    weights : (stages, times) array
    """

    def __init__(
        self,
        operator: Any,
        device: Device,
        boundary_data: Callable[[Any, float], np.ndarray],
        launches: Sequence[Launch] | None,
        times: Sequence[float],
        weights: Sequence[Sequence[float]],
    ) -> None:
        super().__init__(operator, device, boundary_data, launches)
        self.times, self.changes = times, self.live or bool(self.launches)
        if self.changes:
            self.weights = device.array(np.array(weights, self.data.dtype))
            self.given = device.zeros((len(times), self.data.size), self.data.dtype)

    def step_begins(self, t: float) -> None:
        """Evaluate what is given in a step from time t; in a recording t means nothing."""
        if self.changes:
            for time, values in zip(self.times, self.given, strict=True):
                self._at(t, time * self.dt, values)

    def combine(self, stage: int) -> None:
        """What is given in a stage of the step."""
        if not self.changes:
            return
        if self.device.is_host:
            self.data[:] = self.weights[stage] @ self.given
        else:
            combine = combine_kernel(len(self.times), self.data.dtype.name)
            grid = -(-self.data.size // THREADS), THREADS
            combine[grid](self.given.reshape(-1), self.weights.reshape(-1), stage, self.data)


@lru_cache(maxsize=2)
def combine_kernel(times: int, dtype: str) -> Kernel:
    """The kernel `combine`, compiled once for equal arguments."""
    return make_combine(times, dtype)


@lru_cache(maxsize=1)
def tick_kernel() -> Kernel:
    """The kernel `tick`, compiled once."""
    return make_tick()
