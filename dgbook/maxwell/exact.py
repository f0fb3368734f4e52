"""Exact solutions of Maxwell's equations in closed cavities: box, square, sphere and slab.

Each is a frozen dataclass that is called with (x, y, z, t), arrays of any common shape and a
number, and returns the six fields [Ex, Ey, Ez, Hx, Hy, Hz]. Its attribute ``omega`` is the angular
frequency: E is a function of space times cos(omega t), H another times sin(omega t), so that H = 0
at t = 0.

References
----------
Jackson, Classical Electrodynamics, 3rd edition, 1999: sections 8.4 and 8.7 (box), 9.6 (sphere).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral

import numpy as np
from scipy.optimize import brentq
from scipy.special import hyp0f1

from dgbook.arguments import check_numbers
from dgbook.maxwell.problem import cross
from dgbook.mesh import Mesh
from dgbook.nodal.media import beyond


def _check_count(name: str, value: int, least: int) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} = {value!r}; allowed: whole numbers from {least}")


@dataclass(frozen=True)
class BoxMode:
    """A mode of a rectangular vacuum cavity with perfectly conducting walls, transverse magnetic.

    With k = pi (m/a, n/b, p/d) and g^2 = kx^2 + ky^2, on 0 < x < a, 0 < y < b, 0 < z < d,

        Ez = sin kx x sin ky y cos kz z cos wt,      w^2 = kx^2 + ky^2 + kz^2,
        (Ex, Ey) =  1/g^2 grad dEz/dz,               (Hx, Hy) = w/g^2 (-dEz/dy, dEz/dx) tan wt,

    with the gradient in the plane, and Hz = 0.

    Parameters
    ----------
    m, n, p : int
        Half waves along x, y, z; m and n at least 1, p at least 0. klockner2009, Table 2, does not
        say which it used.
    lengths : 3 numbers
        (a, b, d).
    origin : 3 numbers
        The lower corner of the box.

    Raises
    ------
    ValueError
        If a parameter is not as above.
    """

    m: int = 1
    n: int = 2
    p: int = 2
    lengths: Sequence[float] = (1.0, 1.0, 1.0)
    origin: Sequence[float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        for name, least in (("m", 1), ("n", 1), ("p", 0)):
            _check_count(name, getattr(self, name), least)
        for name, positive in (("lengths", True), ("origin", False)):
            values = check_numbers(name, getattr(self, name), 3, positive)
            object.__setattr__(self, name, values)

    @property
    def k(self) -> tuple[float, float, float]:
        """Wave numbers along x, y, z."""
        modes = (self.m, self.n, self.p)
        return tuple(np.pi * i / a for i, a in zip(modes, self.lengths, strict=True))

    @property
    def omega(self) -> float:
        """Angular frequency, pi sqrt((m/a)^2 + (n/b)^2 + (p/d)^2)."""
        return float(np.linalg.norm(self.k))

    def __call__(self, x, y, z, t) -> list[np.ndarray]:
        """The six fields."""
        kx, ky, kz = self.k
        x, y, z = (k * (s - o) for k, s, o in zip(self.k, (x, y, z), self.origin, strict=True))
        g2 = kx**2 + ky**2
        electric, magnetic = np.cos(self.omega * t), self.omega / g2 * np.sin(self.omega * t)
        return [
            -kx * kz / g2 * np.cos(x) * np.sin(y) * np.sin(z) * electric,
            -ky * kz / g2 * np.sin(x) * np.cos(y) * np.sin(z) * electric,
            np.sin(x) * np.sin(y) * np.cos(z) * electric,
            -ky * np.sin(x) * np.cos(y) * np.cos(z) * magnetic,
            kx * np.cos(x) * np.sin(y) * np.cos(z) * magnetic,
            np.zeros(np.broadcast_shapes(np.shape(x), np.shape(y), np.shape(z))),
        ]


@dataclass(frozen=True)
class SquareMode(BoxMode):
    """The lowest mode of the square, as a mode of the cube [-1, 1]^3: nothing depends on z.

    Ez = cos kx cos ky cos wt, k = pi/2, w = sqrt(2) k; Hx = cos kx sin ky sin wt / sqrt(2) and
    Hy = -sin kx cos ky sin wt / sqrt(2). All six walls may be perfect conductors: at z = -1 and
    z = 1 there is no tangential electric field to vanish. Periodic in z it is the same solution.
    """

    m: int = field(default=1, init=False)
    n: int = field(default=1, init=False)
    p: int = field(default=0, init=False)
    lengths: Sequence[float] = field(default=(2.0, 2.0, 2.0), init=False)
    origin: Sequence[float] = field(default=(-1.0, -1.0, -1.0), init=False)


@dataclass(frozen=True)
class SphereMode:
    """A mode of a spherical vacuum cavity with a perfectly conducting wall, symmetric about z.

    With X = k x, rho = |X| and the potential psi = j_l(rho) P_l(cos theta), the two fields

        h = curl_X (X psi) = (grad_X psi) x X,      e = curl_X h,      curl_X e = h

    give the transverse magnetic mode E = e cos wt, H = -h sin wt, and the transverse electric one
    E = h cos wt, H = -e sin wt, with w = k (unit speed). The wall asks for (rho j_l)' = 0 and for
    j_l = 0 at rho = k radius.

    j_l(rho) / rho^l =: g_l is an entire function of rho^2, and S = rho^l P_l a polynomial in X, so
    that psi = g_l S has no singular point, at the center or on the axis; g_l' = -rho g_{l+1} leads
    to

        h = g_l (grad S) x X,      e = ((l+1) g_l - rho^2 g_{l+1}) grad S + l g_{l+1} S X.

    Fields are scaled such that the transverse magnetic one with l = 1 is 1 at the center.

    Parameters
    ----------
    radius : float
    l : int
        1 or more.
    kind : {"TM", "TE"}
    root : int
        Which of the frequencies, 1 is the lowest.

    Raises
    ------
    ValueError
        If a parameter is not as above.
    """

    radius: float = 1.0
    l: int = 1
    kind: str = "TM"
    root: int = 1

    def __post_init__(self) -> None:
        (radius,) = check_numbers("radius", self.radius, 1, positive=True)
        object.__setattr__(self, "radius", radius)
        _check_count("l", self.l, 1)
        _check_count("root", self.root, 1)
        if self.kind not in ("TM", "TE"):
            raise ValueError(f"kind = {self.kind!r}; allowed are 'TM', 'TE'")

    def _g(self, rho2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """g_l and g_{l+1}, both times (2l+1)!!."""
        return hyp0f1(self.l + 1.5, -rho2 / 4), hyp0f1(self.l + 2.5, -rho2 / 4) / (2 * self.l + 3)

    def _at_wall(self, rho: np.ndarray) -> np.ndarray:
        """What vanishes where a conducting wall may be."""
        g, g_next = self._g(rho**2)
        return g if self.kind == "TE" else (self.l + 1) * g - rho**2 * g_next

    @cached_property
    def omega(self) -> float:
        """Angular frequency: 2.7437 / radius for TM and 4.4934 / radius for TE with l = 1."""
        # The first root lies above l/2, and two of them are always more than 1 apart.
        grid = self.l / 2 + np.arange(self.l + 4 * self.root + 8)
        values = self._at_wall(grid)
        start = grid[np.flatnonzero(values[:-1] * values[1:] < 0)[self.root - 1]]
        return brentq(self._at_wall, start, start + 1, xtol=1e-14) / self.radius

    def __call__(self, x, y, z, t) -> list[np.ndarray]:
        """The six fields."""
        X = [self.omega * np.asarray(s) for s in (x, y, z)]
        rho2 = sum(s**2 for s in X)
        g, g_next = self._g(rho2)
        S, gradient = _solid_harmonic(self.l, *X)
        along = (self.l + 1) * g - rho2 * g_next
        e = [along * d + self.l * g_next * S * s for d, s in zip(gradient, X, strict=True)]
        h = [g * c for c in cross(gradient, X)]
        electric, magnetic = (e, h) if self.kind == "TM" else (h, e)
        cosine, sine = (f(self.omega * t) / (self.l + 1) for f in (np.cos, np.sin))
        return [cosine * v for v in electric] + [-sine * v for v in magnetic]


def _solid_harmonic(l: int, x, y, z) -> tuple[np.ndarray, list[np.ndarray]]:
    """S_l = r^l P_l(z/r), a polynomial in x, y, z, and its gradient.

    With dS/dx = x T and dS/dy = y T, Legendre's recurrence (l+1) S_{l+1} = (2l+1) z S_l - l r^2
    S_{l-1} and its derivative give S and T; dS_l/dz = l S_{l-1}.
    """
    r2 = x**2 + y**2 + z**2
    before, S = np.zeros_like(r2), np.ones_like(r2)
    T_before, T = np.zeros_like(r2), np.zeros_like(r2)
    for n in range(l):
        T, T_before = ((2 * n + 1) * z * T - n * (2 * before + r2 * T_before)) / (n + 1), T
        S, before = ((2 * n + 1) * z * S - n * r2 * before) / (n + 1), S
    return S, [x * T, y * T, l * before]


@dataclass(frozen=True)
class SlabMode:
    """A mode of a box with perfectly conducting walls that two media fill, layers across x.

    On 0 < x < a, 0 < z < d, with medium 1 at x < interface and medium 2 beyond,

        Ey = X(x) sin(kz z) cos wt,  mu Hx = (dEy/dz)/w tan wt,  mu Hz = -(dEy/dx)/w tan wt,
        X = S_1(x) for x < interface, A S_2(a - x) beyond,   S_i(x) = sin(k_i x) / k_i,
        k_i^2 = epsilon_i mu_i w^2 - kz^2,                    kz = pi q / d,

    which is continuous in Ey and X'/mu, that is in Hz, if F(w) = S_1 C_2 / mu_2 + C_1 S_2 / mu_1
    vanishes, C_i = S_i', at interface and a - interface. If k_i^2 < 0 the waves are evanescent, and
    S_i a hyperbolic sine. All six walls are perfect conductors; nothing depends on y, and the box
    may be periodic along it. If mu jumps, so does Hx, and points on the interface belong to
    medium 2.

    Parameters
    ----------
    mode : int
        Which of the frequencies, 1 is the lowest.
    epsilon, mu : 2 numbers
        Of the two media.
    interface : float
        Between 0 and a.
    q : int
        Half waves along z, 1 or more.
    lengths : 3 numbers
        (a, b, d); the lower corner of the box is the origin.

    Raises
    ------
    ValueError
        If a parameter is not as above.
    """

    mode: int = 1
    epsilon: Sequence[float] = (1.0, 4.0)
    mu: Sequence[float] = (1.0, 1.0)
    interface: float = 0.5
    q: int = 1
    lengths: Sequence[float] = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        _check_count("mode", self.mode, 1)
        _check_count("q", self.q, 1)
        for name, n in (("epsilon", 2), ("mu", 2), ("lengths", 3)):
            values = check_numbers(name, getattr(self, name), n, positive=True)
            object.__setattr__(self, name, values)
        if not 0 < self.interface < self.lengths[0]:
            raise ValueError(
                f"interface = {self.interface}; allowed: between 0 and {self.lengths[0]}"
            )

    def _layer(self, i: int, omega: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """S_i and C_i at a distance x from the wall of medium i."""
        k = np.emath.sqrt(self.epsilon[i] * self.mu[i] * omega**2 - self.kz**2)
        # sin(kx)/k by NumPy's sinc, which knows k = 0; real although k may be imaginary.
        return np.real(x * np.sinc(k * x / np.pi)), np.real(np.cos(k * x))

    def _mismatch(self, omega: np.ndarray) -> np.ndarray:
        """F(w)."""
        S1, C1 = self._layer(0, omega, self.interface)
        S2, C2 = self._layer(1, omega, self.lengths[0] - self.interface)
        return S1 * C2 / self.mu[1] + C1 * S2 / self.mu[0]

    @cached_property
    def _factor(self) -> float:
        """A, from (S_1, C_1/mu_1) = A (S_2, -C_2/mu_2), of which one component may vanish."""
        S1, C1 = self._layer(0, self.omega, self.interface)
        S2, C2 = self._layer(1, self.omega, self.lengths[0] - self.interface)
        left, right = (S1, C1 / self.mu[0]), (S2, -C2 / self.mu[1])
        return np.dot(left, right) / np.dot(right, right)

    @property
    def kz(self) -> float:
        """Wave number along z."""
        return np.pi * self.q / self.lengths[2]

    @cached_property
    def omega(self) -> float:
        """Angular frequency, the root number `mode` of F."""
        # w^2 is a stationary value of int (X'^2 + kz^2 X^2)/mu / int epsilon X^2: it lies between
        # slow kz and top. Two frequencies are as close as in the slower medium alone, or closer by
        # what mismatched impedances draw them together.
        slow = max(np.multiply(self.epsilon, self.mu)) ** -0.5
        impedance = np.sqrt(np.divide(self.mu, self.epsilon))
        step = np.pi * slow / self.lengths[0] * min(impedance) / max(impedance) / 16
        top = np.hypot(self.kz, np.pi * self.mode / self.lengths[0])
        top /= np.sqrt(min(self.epsilon) * min(self.mu))
        grid = np.arange(slow * self.kz, top + 2 * step, step)
        values = self._mismatch(grid)
        start = grid[np.flatnonzero(values[:-1] * values[1:] < 0)[self.mode - 1]]
        return brentq(self._mismatch, start, start + step, xtol=1e-15)

    def __call__(self, x, y, z, t) -> list[np.ndarray]:
        """The six fields."""
        x, y, z = np.broadcast_arrays(x, y, z)
        w, a = self.omega, self.lengths[0]
        S1, C1 = self._layer(0, w, x)
        S2, C2 = self._layer(1, w, a - x)
        factor = self._factor
        first = x < self.interface
        X, slope = np.where(first, S1, factor * S2), np.where(first, C1, -factor * C2)
        over_mu = np.sin(w * t) / w / np.where(first, *self.mu)
        zero = np.zeros(x.shape)
        return [
            zero,
            X * np.sin(self.kz * z) * np.cos(w * t),
            zero,
            self.kz * X * np.cos(self.kz * z) * over_mu,
            zero,
            -slope * np.sin(self.kz * z) * over_mu,
        ]

    def epsilon_of(self, mesh: Mesh) -> np.ndarray:
        """Permittivity of each element, by its centroid, (K,); no element may cross the interface.

        Raises
        ------
        ValueError
            If an element has vertices well on both sides.
        """
        return np.asarray(self.epsilon)[beyond(mesh, self.interface)]

    def mu_of(self, mesh: Mesh) -> np.ndarray:
        """Permeability of each element, as ``epsilon_of``."""
        return np.asarray(self.mu)[beyond(mesh, self.interface)]
