"""Exact solutions of the Euler equations: two vortices that a stream carries, and the stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dgbook.arguments import LEAST_MACH, MOST, MOST_MACH, check_range
from dgbook.euler.problem import GAMMA, conservative


@dataclass(frozen=True)
class Stream:
    """A uniform flow, the same for ever; a function of (x, y, t).

    Parameters
    ----------
    rho, u, v, p : float
        Density, velocity and pressure.

    Raises
    ------
    ValueError
        If density or pressure is none that `check_range` allows, or the velocity too large.
    """

    rho: float = 1.0
    u: float = 1.0
    v: float = 0.0
    p: float = 1.0

    def __post_init__(self) -> None:
        for name in ("rho", "p"):
            check_range(f"{name} = {getattr(self, name)}", getattr(self, name))
        for name in ("u", "v"):
            check_range(f"{name} = {getattr(self, name)}", getattr(self, name), -MOST)

    def __call__(self, x: np.ndarray, y: np.ndarray, t: float) -> np.ndarray:
        """The conservative fields, (4, ...)."""
        state = conservative(self.rho, self.u, self.v, self.p)
        x, y = np.broadcast_arrays(x, y)
        return np.multiply.outer(state, np.ones(x.shape))


@dataclass(frozen=True)
class Vortex:
    """chen's vortex, equations (3) and (4); a function of (x, y, t).

    With d the distance to the center and f0 = 1 - d^2 / r_c^2, the stream is disturbed by the
    velocity epsilon |V| e^(f0/2) d / (2 pi r_c) around the center, and the temperature is lower
    by what the centripetal force asks for: f1 = 1 - epsilon^2 (gamma-1) M^2 e^f0 / (8 pi^2),
    rho = f1^(1/(gamma-1)) and p = p_inf f1^(gamma/(gamma-1)). It is isentropic, and moves with the
    stream without changing.

    Parameters
    ----------
    strength : float
        epsilon.
    radius : float
        r_c.
    mach : float
        M of the stream, which has density 1 and p_inf = |V|^2 / (gamma M^2).
    velocity : 2 numbers
        V, the stream. The paper's is (1, 1) / sqrt(2).
    center : 2 numbers
        Where the center is at t = 0.
    period : float, optional
        Side of a periodic box: what leaves it comes back. Every point then sees the nearest image
        of the vortex. That is the solution but for the tails of the others, and for the jump of the
        tail where the nearest image changes: 2.9e-6 in the paper's box of side 10.

    Raises
    ------
    ValueError
        If the radius or the Mach number is not positive, or a number is absurd.
    """

    strength: float = 0.3
    radius: float = 1.0
    mach: float = 0.5
    velocity: tuple[float, float] = (0.5**0.5, 0.5**0.5)
    center: tuple[float, float] = (0.0, 0.0)
    period: float | None = None

    def __post_init__(self) -> None:
        check_range(f"strength = {self.strength}", self.strength, -MOST)
        check_range(f"radius = {self.radius}", self.radius)
        check_range(f"mach = {self.mach}", self.mach, LEAST_MACH, MOST_MACH)

    def __call__(self, x: np.ndarray, y: np.ndarray, t: float) -> np.ndarray:
        """The conservative fields, (4, ...)."""
        dx, dy = _from_center(self, x, y, t)
        speed = np.hypot(*self.velocity)
        f0 = 1 - (dx * dx + dy * dy) / self.radius**2
        f1 = 1 - self.strength**2 * (GAMMA - 1) * self.mach**2 * np.exp(f0) / (8 * np.pi**2)
        f2 = self.strength * speed / (2 * np.pi * self.radius) * np.exp(f0 / 2)
        p_inf = speed**2 / (GAMMA * self.mach**2)
        return conservative(
            f1 ** (1 / (GAMMA - 1)),
            self.velocity[0] - f2 * dy,
            self.velocity[1] + f2 * dx,
            p_inf * f1 ** (GAMMA / (GAMMA - 1)),
        )


@dataclass(frozen=True)
class StrongVortex:
    """The vortex of the textbooks, stronger than chen's; a function of (x, y, t).

    The stream has density 1, pressure 1 and velocity (1, 0); with d the distance to the center,
    the disturbance has the velocity beta d e^(1 - d^2) / (2 pi) and

        rho = (1 - (gamma-1) beta^2 e^(2 (1 - d^2)) / (16 gamma pi^2))^(1/(gamma-1)),
        p = rho^gamma.

    Parameters
    ----------
    beta : float
    center : 2 numbers
        Where the center is at t = 0.
    period : float, optional
        As in `Vortex`; the tails fall as e^(-d^2) where those of `Vortex` fall as e^(-d^2/2).

    References
    ----------
    Zhou and Wei, "High resolution conjugate filters for the simulation of flows", J. Comput.
    Phys. 189, 2003; Hesthaven and Warburton, Nodal Discontinuous Galerkin Methods, 2008, section
    6.6.
    """

    beta: float = 5.0
    center: tuple[float, float] = (5.0, 0.0)
    period: float | None = None

    velocity = (1.0, 0.0)

    def __call__(self, x: np.ndarray, y: np.ndarray, t: float) -> np.ndarray:
        """The conservative fields, (4, ...)."""
        dx, dy = _from_center(self, x, y, t)
        swirl = self.beta / (2 * np.pi) * np.exp(1 - dx * dx - dy * dy)
        rho = (1 - (GAMMA - 1) / (4 * GAMMA) * swirl**2) ** (1 / (GAMMA - 1))
        return conservative(
            rho, self.velocity[0] - swirl * dy, self.velocity[1] + swirl * dx, rho**GAMMA
        )


def _from_center(
    vortex: Vortex | StrongVortex, x: np.ndarray, y: np.ndarray, t: float
) -> tuple[np.ndarray, np.ndarray]:
    """Offsets (dx, dy) of points from the center at time t, or from its nearest image."""
    offsets = []
    for coordinate, start, speed in zip((x, y), vortex.center, vortex.velocity, strict=True):
        offset = coordinate - start - speed * t
        if vortex.period is not None:
            offset = offset - vortex.period * np.rint(offset / vortex.period)
        offsets.append(offset)
    return offsets[0], offsets[1]
