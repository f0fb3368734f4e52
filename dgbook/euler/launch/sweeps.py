"""A step of the classical Runge-Kutta method in four sweeps over the elements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any

from dgbook.euler.kernels.fused import LAST, NEXT, RATE
from dgbook.nodal.launching import Launches


class Sweeps(ABC):
    """The sweeps of a launcher that computes a right-hand side and a stage at once."""

    def rhs(self, u: Any, data: Any, out: Any) -> None:
        """out = du/dt; `data` are the given states outside, flat (4 nb Ne,)."""
        self._launch(RATE, u, data, (u, u, u), out, 1.0)

    def step(self, u: Any, work: tuple[Any, Any, Any], data: tuple[Any, Any, Any], dt: float):
        """Replace u by the state a time dt later; `data` are those at t, t + dt/2 and t + dt.

        `work` is what the method of that name returns. `bad` is changed if the new state is none
        that a gas can have.
        """
        for launch, _ in self.stages(u, work, data, dt):
            launch()

    def stages(
        self, u: Any, work: tuple[Any, Any, Any], data: tuple[Any, Any, Any], dt: float
    ) -> Iterator[Launches]:
        """As `step`, sweep by sweep."""
        u1, u2, u3 = work
        start, middle, end = data
        yield partial(self._launch, NEXT, u, start, (u, u, u), u1, dt / 2), u1
        yield partial(self._launch, NEXT, u1, middle, (u, u, u), u2, dt / 2), u2
        yield partial(self._launch, NEXT, u2, middle, (u, u, u), u3, dt), u3
        yield partial(self._launch, LAST, u3, end, (u, u1, u2), u, dt / 6), u

    @abstractmethod
    def _launch(self, stage: int, u: Any, data: Any, kept: tuple, out: Any, dt: float) -> None:
        """One sweep, of which `stage` says what it leaves in `out`, from u and what was kept."""
