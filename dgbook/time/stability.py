"""How long a step may be: where in the complex plane a Runge-Kutta method is stable."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType

import numpy as np

ANGLES = np.linspace(np.pi / 2, np.pi, 361)
"""Rays of the upper left quarter plane on which the region's boundary is found."""
RADIUS, POINTS = 40.0, 4001
"""How far out, and at how many points of each ray, it is looked for; bisection does the rest."""
SLACK = 1e-10
"""What rounding may add to |R|, which is 1 - O(|z|^6) near the origin of the imaginary axis."""


def polynomial(method: ModuleType) -> np.ndarray:
    """Coefficients of R(z), lowest power first: one step of u' = (z / dt) u multiplies u by R(z).

    Parameters
    ----------
    method : module
        A low-storage method such as `dgbook.time.lsrk45`, with its coefficients A and B.
    """
    stages = len(method.A)
    u, res = np.zeros((2, stages + 1))
    u[0] = 1.0
    for a, b in zip(method.A, method.B, strict=True):
        res = a * res + np.concatenate([[0.0], u[:-1]])
        u = u + b * res
    return u


def longest_steps(method: ModuleType, eigenvalues: np.ndarray) -> np.ndarray:
    """For each eigenvalue the longest dt up to which every step is stable.

    The region of stability |R(dt lambda)| <= 1 is followed from the origin outward along the ray
    through the eigenvalue, up to where the ray first leaves it. A positive real part counts as
    zero: the operators of this package have none, but approximations of their eigenvalues may.

    Parameters
    ----------
    method : module
        A low-storage method such as `dgbook.time.lsrk45`.
    eigenvalues : array of complex numbers

    Returns
    -------
    array of float
        Infinite where the eigenvalue is 0.
    """
    z = np.asarray(eigenvalues, np.complex128)
    z = np.minimum(z.real, 0) + 1j * np.abs(z.imag)
    reach = np.interp(np.angle(z), ANGLES, _boundary(method))
    with np.errstate(divide="ignore"):
        return reach / np.abs(z)


@lru_cache
def accurate_angle(method: ModuleType, error: float, periods: float) -> float:
    """The angle by which an oscillation may turn per step, for an error after so many periods.

    Parameters
    ----------
    method : module
        A low-storage method such as `dgbook.time.lsrk45`.
    error : float
        Allowed, of an oscillation of unit amplitude.
    periods : float
    """
    powers = polynomial(method)[::-1]

    def too_long(angle: float) -> bool:
        count = 2 * np.pi * periods / angle
        return abs(np.polyval(powers, 1j * angle) ** count - np.exp(2j * np.pi * periods)) > error

    inside, outside = 0.0, 1.0
    for _ in range(40):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if too_long(middle) else (middle, outside)
    return inside


@lru_cache
def _boundary(method: ModuleType) -> np.ndarray:
    """Distance from the origin at which each of the rays first leaves the region of stability."""
    powers = polynomial(method)[::-1]
    rays = np.exp(1j * ANGLES)

    def unstable(radius: np.ndarray) -> np.ndarray:
        return np.abs(np.polyval(powers, radius * rays)) > 1 + SLACK

    radii = np.linspace(0, RADIUS, POINTS)
    first = np.argmax([unstable(radius) for radius in radii], axis=0)
    inside, outside = radii[first - 1], radii[first]
    for _ in range(40):
        middle = (inside + outside) / 2
        out = unstable(middle)
        inside, outside = np.where(out, inside, middle), np.where(out, middle, outside)
    return inside
