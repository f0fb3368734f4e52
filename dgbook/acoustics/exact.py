"""Exact solutions of the acoustic equations: the cube's mode, plane waves, an interface.

Each is a frozen dataclass that is called with (x, y, z, t), arrays of any common shape and a
number, and returns the four fields [p, u, v, w].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dgbook.arguments import check_numbers
from dgbook.mesh import Mesh
from dgbook.nodal.media import beyond


@dataclass(frozen=True)
class CubeMode:
    """The lowest mode of the cube [-1, 1]^3 with walls p = 0, of chan2015, section 4.1.

        p = cos(k x) cos(k y) cos(k z) cos(w t),    k = pi/2,    w = sqrt(3) c k,

    and rho v_t = -grad p with v = 0 at t = 0. The paper has kappa = rho = 1, w = sqrt(3) pi / 2.

    Parameters
    ----------
    kappa, rho : float
        Of the medium.

    Raises
    ------
    ValueError
        If one of them is not positive.
    """

    kappa: float = 1.0
    rho: float = 1.0

    def __post_init__(self) -> None:
        for name in ("kappa", "rho"):
            object.__setattr__(self, name, *check_numbers(name, getattr(self, name), 1))

    @property
    def omega(self) -> float:
        """Angular frequency."""
        return float(np.sqrt(3 * self.kappa / self.rho) * np.pi / 2)

    def __call__(self, x, y, z, t) -> list[np.ndarray]:
        """The four fields."""
        k = np.pi / 2
        (cx, cy, cz), (sx, sy, sz) = (
            [f(k * np.asarray(s)) for s in (x, y, z)] for f in (np.cos, np.sin)
        )
        moved = k / (self.rho * self.omega) * np.sin(self.omega * t)
        return [
            cx * cy * cz * np.cos(self.omega * t),
            sx * cy * cz * moved,
            cx * sy * cz * moved,
            cx * cy * sz * moved,
        ]


@dataclass(frozen=True)
class PlaneWave:
    """A pulse in a uniform medium: p = exp(-(s/width)^2), s = t - d.x/c - delay, v = d p / Z.

    Parameters
    ----------
    direction : 3 numbers
        d, of any length; it is normalized.
    width, delay : float
    kappa, rho : float

    Raises
    ------
    ValueError
        If the direction is zero, or a parameter is not finite or, but for `delay`, not positive.
    """

    direction: Sequence[float]
    width: float = 1.0
    delay: float = 0.0
    kappa: float = 1.0
    rho: float = 1.0

    def __post_init__(self) -> None:
        for name in ("width", "kappa", "rho"):
            object.__setattr__(self, name, *check_numbers(name, getattr(self, name), 1))
        object.__setattr__(self, "delay", *check_numbers("delay", self.delay, 1, positive=False))
        d = np.array(check_numbers("direction", self.direction, 3, positive=False))
        if not d.any():
            raise ValueError(f"direction = {d.tolist()}; allowed: not all 0")
        object.__setattr__(self, "direction", tuple((d / np.linalg.norm(d)).tolist()))

    def __call__(self, x, y, z, t) -> list[np.ndarray]:
        """The four fields."""
        dx, dy, dz = self.direction
        along = (dx * x + dy * y + dz * z) * np.sqrt(self.rho / self.kappa)
        p = np.exp(-(((t - self.delay - along) / self.width) ** 2))
        Z = np.sqrt(self.kappa * self.rho)
        return [p, *(d * p / Z for d in self.direction)]


def amplitude(incoming: Callable) -> float:
    """The largest value of a field of what comes in: of plane waves; else inf, nobody knows."""
    if isinstance(incoming, PlaneWave):
        return max(1.0, 1 / float(np.sqrt(incoming.kappa * incoming.rho)))
    return math.inf


@dataclass(frozen=True)
class Interface:
    """A wave in a duct that meets the plane x = 0 between two media: one part goes back, one on.

    Medium 1 is at x < 0, and between the walls nothing depends on z. With
    k_i^2 = (w / c_i)^2 - ky^2,

        p = cos(ky y) (cos(w t - k_1 x) + R cos(w t + k_1 x)),    x < 0,
        p = T cos(ky y) cos(w t - k_2 x),                         x > 0,

    and rho v_t = -grad p. It is the sum of two plane waves at angles of sine +-ky c_1 / w; that ky
    is the same in both media is Snell's law. With Y_i = k_i / rho_i, continuous p and u ask for

        R = (Y_1 - Y_2) / (Y_1 + Y_2),    T = 1 + R.

    Walls at which ky y is a multiple of pi are rigid. The velocity v along the interface jumps
    where rho does, but is zero there at t = 0; points on it belong to medium 2.

    Parameters
    ----------
    omega : float
    ky : float
        Not negative; 0 is normal incidence.
    kappa, rho : 2 numbers
        Of the two media.

    Raises
    ------
    ValueError
        If a parameter is not as above, or a medium has no wave with that ky: then all is reflected.
    """

    omega: float = 2 * np.pi
    ky: float = 0.0
    kappa: Sequence[float] = (1.0, 4.0)
    rho: Sequence[float] = (1.0, 2.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "omega", *check_numbers("omega", self.omega, 1))
        object.__setattr__(self, "ky", *check_numbers("ky", self.ky, 1, positive=False))
        for name in ("kappa", "rho"):
            object.__setattr__(self, name, check_numbers(name, getattr(self, name), 2))
        largest = self.omega * min(np.sqrt(np.divide(self.rho, self.kappa)))
        if not 0 <= self.ky < largest:
            raise ValueError(f"ky = {self.ky}; allowed: from 0 to below omega / c = {largest:.6g}")

    def _k(self, i: int) -> float:
        """Wave number along x in medium i."""
        return float(np.sqrt(self.omega**2 * self.rho[i] / self.kappa[i] - self.ky**2))

    @property
    def reflected(self) -> float:
        """R."""
        Y1, Y2 = (self._k(i) / self.rho[i] for i in (0, 1))
        return (Y1 - Y2) / (Y1 + Y2)

    @property
    def transmitted(self) -> float:
        """T."""
        return 1 + self.reflected

    def _wave(self, i: int, sign: int, x, y, t) -> list[np.ndarray]:
        """p, u and v of amplitude 1 in medium i, towards +x or -x."""
        kx, mass = sign * self._k(i), self.rho[i] * self.omega
        phase, along = self.omega * t - kx * x, self.ky * y
        p = np.cos(along) * np.cos(phase)
        return [p, kx / mass * p, self.ky / mass * np.sin(along) * np.sin(phase)]

    def __call__(self, x, y, z, t) -> list[np.ndarray]:
        """The four fields."""
        x, y, z = np.broadcast_arrays(x, y, z)
        coming, going, beyond = (
            self._wave(i, sign, x, y, t) for i, sign in ((0, 1), (0, -1), (1, 1))
        )
        R, T = self.reflected, self.transmitted
        waves = zip(coming, going, beyond, strict=True)
        return [*(np.where(x < 0, c + R * g, T * b) for c, g, b in waves), np.zeros(x.shape)]

    def kappa_of(self, mesh: Mesh) -> np.ndarray:
        """Bulk modulus of each element, by its centroid, (K,); no element may cross x = 0.

        Raises
        ------
        ValueError
            If an element has vertices well on both sides.
        """
        return np.asarray(self.kappa)[beyond(mesh, 0.0)]

    def rho_of(self, mesh: Mesh) -> np.ndarray:
        """Density of each element, as ``kappa_of``."""
        return np.asarray(self.rho)[beyond(mesh, 0.0)]
