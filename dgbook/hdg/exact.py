"""Exact solutions: smooth ones of diffusion, and Couette's flow with a source."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgbook.hdg.problem import NavierStokes


@dataclass(frozen=True)
class Sines:
    """u = sin(pi x) sin(pi y) [sin(pi z)], one field, as a function of (x, y, [z])."""

    def __call__(self, *x: np.ndarray) -> list[np.ndarray]:
        """u."""
        return [math.prod(np.sin(np.pi * s) for s in x)]

    def gradient(self, *x: np.ndarray) -> list[list[np.ndarray]]:
        """grad u."""
        waves = [np.sin(np.pi * s) for s in x]
        slopes = [np.pi * np.cos(np.pi * s) for s in x]
        return [[math.prod([*waves[:a], slopes[a], *waves[a + 1 :]]) for a in range(len(x))]]

    def source(self, velocity: tuple[float, ...], diffusivity: float) -> Any:
        """c . grad u - kappa lap u, a function of (x, y, [z])."""

        def s(*x: np.ndarray) -> list[np.ndarray]:
            carried = sum(
                c * slope for c, slope in zip(velocity, self.gradient(*x)[0], strict=True)
            )
            return [carried + diffusivity * len(x) * np.pi**2 * self(*x)[0]]

        return s


@dataclass(frozen=True)
class Couette:
    """A flow between plates at y = 0 and y = 1, kept up by a source; a function of (x, y).

    u = y log(1 + y), v = 0, p = 1 / (gamma M^2) and
    T = 0.8 + 0.05 y + (gamma - 1)/2 M^2 Pr y (1 - y), rho = 1 / T. Nothing depends on x, v is zero,
    and what friction and conduction leave over is the source,

        s = (0, -u''/Re, 0, -(u u')'/Re - T''/((gamma - 1) M^2 Re Pr)).

    Parameters
    ----------
    reynolds, mach, prandtl, gamma : float
        As of `NavierStokes`.

    References
    ----------
    The profile of u is that of Peraire, Nguyen, Cockburn, AIAA paper 2010-363, section V.
    """

    reynolds: float = 1.0
    mach: float = 0.15
    prandtl: float = 0.72
    gamma: float = 1.4

    @property
    def gas(self) -> NavierStokes:
        """The problem, with the flow's own values on all boundaries."""
        return NavierStokes(self.reynolds, self.mach, self, self.source, self.prandtl, self.gamma)

    def velocity(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """u, u' and u''."""
        return y * np.log1p(y), np.log1p(y) + y / (1 + y), 1 / (1 + y) + 1 / (1 + y) ** 2

    def temperature(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """T, T' and T''."""
        curve = 0.5 * (self.gamma - 1) * self.mach**2 * self.prandtl
        return 0.8 + 0.05 * y + curve * y * (1 - y), 0.05 + curve * (1 - 2 * y), -2 * curve + 0 * y

    def __call__(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The conservative fields, (4, ...)."""
        x, y = np.broadcast_arrays(x, y)
        rho, p = 1 / self.temperature(y)[0], 1 / (self.gamma * self.mach**2)
        u = self.velocity(y)[0]
        return np.stack([rho, rho * u, 0 * y, p / (self.gamma - 1) + 0.5 * rho * u * u])

    def source(self, x: np.ndarray, y: np.ndarray) -> list[Any]:
        """s, four fields."""
        u, du, ddu = self.velocity(y)
        ddT = self.temperature(y)[2]
        conduction = ddT / ((self.gamma - 1) * self.mach**2 * self.reynolds * self.prandtl)
        friction = (du * du + u * ddu) / self.reynolds
        return [0, -ddu / self.reynolds, 0, -friction - conduction]

    def shear_stress(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """tau_xy = u' / Re."""
        return self.velocity(y)[1] / self.reynolds

    def temperature_slope(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """dT/dy."""
        return self.temperature(y)[1]

    def density_slope(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """d(rho)/dy = -T' / T^2."""
        T, dT, _ = self.temperature(y)
        return -dT / T**2
