"""What the three problems are compared with: a series, a Riemann solution, a spectral method."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from dgbook.swept.problem import Euler, Heat
from dgbook.time import steps


def heat(problem: Heat, n: int, t: float) -> np.ndarray:
    """Temperature (1, n) at time t > 0 from the initial condition 100 x (1 - x/L).

    Its cosine series, insulated ends making every mode decay alone:

        T = 50 L/3 - 400 L/pi^2 sum_{m = 2, 4, ...} exp(-alpha t (m pi/L)^2) cos(m pi x/L) / m^2.
    """
    if not t > 0:
        raise ValueError(f"t = {t}; allowed: t > 0, where the series converges fast")
    x, length = problem.points(n), problem.dx * (n - 1)
    rate = problem.alpha * t * (math.pi / length) ** 2
    # The last term that is not lost in rounding: exp(-rate m^2) > 1e-20.
    m = np.arange(2, max(4, math.ceil(math.sqrt(46 / rate)) + 2), 2)
    values = np.zeros(n)
    for some in np.array_split(m, math.ceil(len(m) / 256)):
        modes = np.cos(np.pi * np.outer(x / length, some))
        values += modes @ (np.exp(-rate * some**2.0) / some**2.0)
    return (50 * length / 3 - 400 * length / math.pi**2 * values)[None]


def sod(problem: Euler, n: int, t: float) -> np.ndarray:
    """Averages over the n cells, (3, n), of the shock tube's exact solution at time t > 0.

    In smooth parts by Gauss quadrature; cells that hold a jump or a kink are cut there.
    """
    waves = _Riemann(problem.LEFT, problem.RIGHT, problem.gamma)
    dx = problem.spacing(n)
    edges = (np.arange(n + 1) - 1) * dx
    kinks = np.array([0.5 + speed * t for speed in waves.speeds])
    cuts = np.sort(np.concatenate([edges, kinks[(kinks > edges[0]) & (kinks < edges[-1])]]))
    node, weight = np.polynomial.legendre.leggauss(4)
    middle, half = (cuts[1:] + cuts[:-1]) / 2, (cuts[1:] - cuts[:-1]) / 2
    x = middle[:, None] + half[:, None] * node
    q = problem.conserved(*waves((x - 0.5) / t)) @ weight * half
    cell = np.clip(np.searchsorted(edges, middle) - 1, 0, n - 1)
    return np.stack([np.bincount(cell, row, n) for row in q]) / dx


def riemann(
    left: tuple[float, float, float],
    right: tuple[float, float, float],
    speed: np.ndarray,
    gamma: float = 1.4,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Density, velocity and pressure at x/t = speed of the Riemann problem of an ideal gas.

    After Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics, chapter 4.

    Parameters
    ----------
    left, right : (density, velocity, pressure)
    speed : array
    gamma : float

    Raises
    ------
    ValueError
        If a density or a pressure is not positive, or a vacuum opens between the states.
    """
    return _Riemann(left, right, gamma)(np.asarray(speed, float))


class _Riemann:
    """The self-similar solution: two waves, shock or fan, and a contact between."""

    def __init__(self, left: tuple, right: tuple, gamma: float) -> None:
        for name, (rho, _, p) in (("left", left), ("right", right)):
            if rho <= 0 or p <= 0:
                raise ValueError(f"{name}: density {rho}, pressure {p}; allowed: positive ones")
        self.left, self.right, self.gamma = left, right, gamma
        self.sounds = [math.sqrt(gamma * p / rho) for rho, _, p in (left, right)]
        if 2 * sum(self.sounds) <= (gamma - 1) * (right[1] - left[1]):
            raise ValueError(
                f"velocities {left[1]} and {right[1]}; allowed: no vacuum between the states"
            )

        def mismatch(p: float) -> float:
            return self._change(p, 0) + self._change(p, 1) + right[1] - left[1]

        top = 2 * max(left[2], right[2])
        while mismatch(top) < 0:
            top *= 2
        self.p = brentq(mismatch, 1e-14 * top, top, xtol=1e-300, rtol=1e-15)
        self.u = (left[1] + right[1] + self._change(self.p, 1) - self._change(self.p, 0)) / 2
        self.densities = [self._density(side) for side in (0, 1)]
        outer = [self._outer(side) for side in (0, 1)]
        self.speeds = (*outer[0], self.u, *reversed(outer[1]))
        """Speeds of the left wave (two if it is a fan), the contact and the right wave."""

    def _change(self, p: float, side: int) -> float:
        """By how much the velocity changes across a wave to pressure p."""
        rho, _, p0 = (self.left, self.right)[side]
        g = self.gamma
        if p > p0:
            return (p - p0) * math.sqrt(2 / rho / ((g + 1) * p + (g - 1) * p0))
        return 2 * self.sounds[side] / (g - 1) * ((p / p0) ** ((g - 1) / (2 * g)) - 1)

    def _density(self, side: int) -> float:
        """Between the wave and the contact."""
        rho, _, p0 = (self.left, self.right)[side]
        ratio, g = self.p / p0, self.gamma
        if ratio > 1:
            share = (g - 1) / (g + 1)
            return rho * (ratio + share) / (share * ratio + 1)
        return rho * ratio ** (1 / g)

    def _outer(self, side: int) -> tuple[float, ...]:
        """Speeds of the wave, the outermost first."""
        _, u, p0 = (self.left, self.right)[side]
        ratio, g, sign = self.p / p0, self.gamma, (-1, 1)[side]
        if ratio > 1:
            factor = math.sqrt((g + 1) / (2 * g) * ratio + (g - 1) / (2 * g))
            return (u + sign * self.sounds[side] * factor,)
        behind = math.sqrt(g * self.p / self.densities[side])
        return (u + sign * self.sounds[side], self.u + sign * behind)

    def __call__(self, speed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        g = self.gamma
        values = np.empty((3, *speed.shape))
        for side, state in enumerate((self.left, self.right)):
            sign = (-1, 1)[side]
            mine = (speed - self.u) * sign >= 0
            rho0, u0, p0 = state
            c0, out = self.sounds[side], self._outer(side)
            star = np.array([self.densities[side], self.u, self.p])
            values[:, mine] = np.where(
                (speed[mine] - out[0]) * sign > 0, np.array(state)[:, None], star[:, None]
            )
            if len(out) == 2:
                fan = mine & ((speed - out[0]) * sign <= 0) & ((speed - out[1]) * sign >= 0)
                u = (2 * (speed[fan] - sign * c0) + (g - 1) * u0) / (g + 1)
                c = sign * (speed[fan] - u)
                rho = rho0 * (c / c0) ** (2 / (g - 1))
                values[:, fan] = rho, u, p0 * (rho / rho0) ** g
        return tuple(values)


def kuramoto_sivashinsky(u: np.ndarray, length: float, t: float, dt: float = 0.05) -> np.ndarray:
    """The periodic solution at time t from nodal values u (1, n), by a spectral method.

    Fourier in space, products without aliasing, and the fourth-order exponential time differencing
    of Cox and Matthews with the contour integrals of Kassam and Trefethen, Fourth-order
    time-stepping for stiff PDEs, SIAM J. Sci. Comput. 26 (2005), sections 3 and 4.

    Parameters
    ----------
    u : (1, n) array
        Values at n equidistant points of a period.
    length : float
        The period.
    t : float
        How long to advance.
    dt : float
        The longest time step.
    """
    n = u.shape[1]
    count, h = steps(0.0, t, dt)
    k = 2 * np.pi / length * np.arange(n // 2 + 1)
    linear = k**2 - k**4
    kept = np.arange(n // 2 + 1) < n / 3
    derivative = np.where(kept, -0.5j * k, 0)

    # Means over a circle around each h L: the formulae themselves cancel where h L is small.
    z = h * linear[:, None] + np.exp(1j * np.pi * (np.arange(32) + 0.5) / 32)
    e = np.exp(z)

    def mean(values: np.ndarray) -> np.ndarray:
        return h * values.mean(axis=1).real

    whole, half = np.exp(h * linear), np.exp(h * linear / 2)
    to_half = mean((np.exp(z / 2) - 1) / z)
    first = mean((-4 - z + e * (4 - 3 * z + z**2)) / z**3)
    second = mean((2 + z + e * (z - 2)) / z**3)
    last = mean((-4 - 3 * z - z**2 + e * (4 - z)) / z**3)

    def nonlinear(v: np.ndarray) -> np.ndarray:
        return derivative * np.fft.rfft(np.fft.irfft(v, n) ** 2)

    v = np.fft.rfft(u[0].astype(float))
    for _ in range(count):
        nv = nonlinear(v)
        a = half * v + to_half * nv
        na = nonlinear(a)
        b = half * v + to_half * na
        nb = nonlinear(b)
        c = half * a + to_half * (2 * nb - nv)
        v = whole * v + first * nv + 2 * second * (na + nb) + last * nonlinear(c)
    return np.fft.irfft(v, n)[None]
