"""Maxwell's equations in linear, isotropic matter: boundary conditions and incident waves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

FIELDS = ("Ex", "Ey", "Ez", "Hx", "Hy", "Hz")
FLUXES = ("upwind", "central")
CONDITIONS = ("pec", "absorbing")


def curl(gradient: np.ndarray) -> np.ndarray:
    """The curl of a vector field, (3, ...), from its gradient, ``[a, d]`` = dv_a/dx_d."""
    return np.stack(
        [
            gradient[2, 1] - gradient[1, 2],
            gradient[0, 2] - gradient[2, 0],
            gradient[1, 0] - gradient[0, 1],
        ]
    )


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a x b of vector fields, (3, ...)."""
    return np.stack(
        [
            a[1] * b[2] - a[2] * b[1],
            a[2] * b[0] - a[0] * b[2],
            a[0] * b[1] - a[1] * b[0],
        ]
    )


def keeps(condition: str | Callable) -> tuple[float, float]:
    """How a boundary mirrors the field: E^+ = m_E E^- + g_E and H^+ = m_H H^- + g_H.

    A perfect conductor turns the tangential electric field round, so that its mean on the wall is
    zero. Behind an absorbing boundary there is nothing, and behind one with an incident field there
    is that field: the flux then takes what comes in from there and lets out what leaves.

    Returns
    -------
    m_E, m_H : float
    """
    return (-1.0, 1.0) if condition == "pec" or isinstance(condition, Scatterer) else (0.0, 0.0)


@dataclass(frozen=True)
class Scatterer:
    """The boundary of a perfect conductor for the *scattered* field of an incident one.

    The total field is incident plus scattered, and its tangential electric part vanishes on the
    conductor: E^+ = -E^- - 2 E_inc, H^+ = H^-.

    Parameters
    ----------
    incident : callable
        A function of (x, y, z, t) that returns the six incident fields, such as a `PlaneWave`.
    """

    incident: Callable

    def __call__(self, x, y, z, t) -> list[np.ndarray]:
        """What E^+ has besides -E^-, and H^+ besides H^-: (-2 E_inc, 0)."""
        fields = self.incident(x, y, z, t)
        return [-2 * np.asarray(v) for v in fields[:3]] + [np.zeros_like(x)] * 3


@dataclass(frozen=True)
class PlaneWave:
    """A plane wave in matter of unit impedance and speed, a function of (x, y, z, t).

    E = p s(t - d.x - t0), H = d x E, with a pulse or a sine that sets in smoothly:

    - "gaussian": s(t) = exp(-(t/width)^2);
    - "sine": s(t) = r(t) sin(omega t), with r rising from 0 to 1 over two periods as sin^2.

    Parameters
    ----------
    direction : 3 numbers
        d, of any length; it is normalized.
    polarization : 3 numbers
        p, the electric amplitude, perpendicular to d.
    shape : {"gaussian", "sine"}
    parameter : float
        The width of the pulse, or omega.
    delay : float
        t0.

    Raises
    ------
    ValueError
        If the polarization is not perpendicular to the direction, a vector is zero, or the shape
        is unknown or its parameter not positive.
    """

    direction: Sequence[float]
    polarization: Sequence[float]
    shape: str = "gaussian"
    parameter: float = 1.0
    delay: float = 0.0

    def __post_init__(self) -> None:
        d = np.asarray(self.direction, dtype=np.float64)
        p = np.asarray(self.polarization, dtype=np.float64)
        for name, v in (("direction", d), ("polarization", p)):
            if v.shape != (3,) or not np.isfinite(v).all() or not v.any():
                raise ValueError(f"{name} = {v.tolist()}; allowed: 3 finite numbers, not all 0")
        d = d / np.linalg.norm(d)
        if abs(d @ p) > 1e-12 * np.linalg.norm(p):
            raise ValueError(
                f"polarization = {p.tolist()} has a component along the direction {d.tolist()}; "
                "allowed: perpendicular to it"
            )
        if self.shape not in ("gaussian", "sine"):
            raise ValueError(f"shape = {self.shape!r}; allowed are 'gaussian', 'sine'")
        if not 0 < self.parameter < np.inf:
            raise ValueError(f"parameter = {self.parameter}; allowed: positive and finite")
        object.__setattr__(self, "direction", tuple(d.tolist()))
        object.__setattr__(self, "polarization", tuple(p.tolist()))

    @cached_property
    def magnetic(self) -> tuple[float, float, float]:
        """The magnetic amplitude, d x p."""
        return tuple(np.cross(self.direction, self.polarization).tolist())

    def signal(self, t: np.ndarray) -> np.ndarray:
        """s(t), without the delay."""
        if self.shape == "gaussian":
            return np.exp(-((t / self.parameter) ** 2))
        periods = np.clip(self.parameter * t / (2 * np.pi), 0.0, 2.0)
        return np.sin(np.pi * periods / 4) ** 2 * np.sin(self.parameter * t)

    def __call__(self, x, y, z, t) -> list[np.ndarray]:
        dx, dy, dz = self.direction
        s = self.signal(t - self.delay - (dx * x + dy * y + dz * z))
        return [a * s for a in (*self.polarization, *self.magnetic)]


def amplitude(incoming: Callable) -> float:
    """The largest value of a field of what comes in, inf where nobody knows.

    Known are plane waves, and scatterers of them, whose data are twice as large.
    """
    if isinstance(incoming, Scatterer):
        return 2 * amplitude(incoming.incident)
    if isinstance(incoming, PlaneWave):
        return float(np.linalg.norm(incoming.polarization))
    return math.inf
