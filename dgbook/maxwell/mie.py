"""Scattering of a plane wave by a sphere, perfectly conducting or dielectric: Mie's series.

The wave travels along +z in vacuum (unit speed and impedance) with E along x. Fields are complex
amplitudes F of F exp(-i omega t), the real part of which is meant: E_inc = (exp(ikz), 0, 0),
H_inc = (0, exp(ikz), 0), k = omega. A `PlaneWave` of shape "sine" is Re(i exp(-i omega (t - z))),
so that its fields have i times the amplitudes here.

References
----------
Bohren and Huffman, Absorption and Scattering of Light by Small Particles, 1983, chapter 4: with
u_n = i^n (2n+1)/(n(n+1)) and the vector harmonics M, N of the kinds 1 (j_n) and 3 (h_n = j_n + i
y_n),

    E_sca = sum u_n (i a_n N_e1n^3 - b_n M_o1n^3),   H_sca = sum u_n (i b_n N_o1n^3 + a_n M_e1n^3),
    E_in  = sum u_n (c_n M_o1n^1 - i d_n N_e1n^1), Z H_in = -sum u_n (i c_n N_o1n^1 + d_n M_e1n^1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import spherical_jn, spherical_yn


@dataclass(frozen=True)
class Sphere:
    """A sphere about the origin, and the plane wave that meets it.

    Parameters
    ----------
    omega : float
        Angular frequency; also the wave number k outside.
    radius : float
    epsilon : float or None
        Relative permittivity; None is a perfect conductor.
    mu : float
        Relative permeability, of no meaning for a conductor.

    Raises
    ------
    ValueError
        If a number is not positive and finite.
    """

    omega: float
    radius: float = 1.0
    epsilon: float | None = None
    mu: float = 1.0

    def __post_init__(self) -> None:
        for name in ("omega", "radius", "epsilon", "mu"):
            value = getattr(self, name)
            if value is not None and not 0 < value < np.inf:
                raise ValueError(f"{name} = {value}; allowed: positive and finite")

    @property
    def size(self) -> float:
        """The size parameter x = k radius."""
        return self.omega * self.radius

    @property
    def index(self) -> float:
        """The refractive index sqrt(epsilon mu) of a dielectric."""
        return np.sqrt(self.epsilon * self.mu)

    @cached_property
    def n(self) -> np.ndarray:
        """Numbers 1, 2, ... of the terms of the series.

        Wiscombe's x + 4 x^(1/3) + 2 gives the far field to 1e-8; ten more give the near field to
        rounding.
        """
        return np.arange(1, int(np.ceil(self.size + 4 * self.size ** (1 / 3) + 12)) + 1)

    @cached_property
    def coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        """a_n and b_n of the scattered wave, the electric and the magnetic multipoles."""
        j, dj, h, dh = self._at_surface
        if self.epsilon is None:
            return dj / dh, j / h
        ji, dji = _riccati(spherical_jn, self.n, self.index * self.size)
        a = (self.epsilon * ji * dj - j * dji) / (self.epsilon * ji * dh - h * dji)
        b = (self.mu * ji * dj - j * dji) / (self.mu * ji * dh - h * dji)
        return a, b

    @cached_property
    def interior(self) -> tuple[np.ndarray, np.ndarray]:
        """c_n and d_n of the wave inside a dielectric: magnetic and electric multipoles."""
        _, _, h, dh = self._at_surface
        ji, dji = _riccati(spherical_jn, self.n, self.index * self.size)
        wronskian = 1j / self.size  # j (x h)' - h (x j)'
        c = self.mu * wronskian / (self.mu * ji * dh - h * dji)
        d = self.index * wronskian / (self.epsilon * ji * dh - h * dji)
        return c, d

    @cached_property
    def _at_surface(self) -> tuple[np.ndarray, ...]:
        """j, (x j)', h, (x h)' at x."""
        j, dj = _riccati(spherical_jn, self.n, self.size)
        y, dy = _riccati(spherical_yn, self.n, self.size)
        return j, dj, j + 1j * y, dj + 1j * dy

    def efficiencies(self) -> tuple[float, float]:
        """Q_ext and Q_sca: the cross-sections for extinction and scattering over pi radius^2.

        Q_ext comes from the amplitude straight ahead (the optical theorem), Q_sca from the power in
        all directions; they agree, since nothing here absorbs.
        """
        a, b = self.coefficients
        weight = 2 * (2 * self.n + 1) / self.size**2
        return float(weight @ (a + b).real), float(weight @ (abs(a) ** 2 + abs(b) ** 2))

    def radar_cross_section(self, theta: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """The bistatic cross-section, an area: 4 pi r^2 |E_sca|^2 / |E_inc|^2 far away.

        Parameters
        ----------
        theta, phi : arrays of one shape
            Direction of the observer: theta = 0 is forward, pi is back; phi = 0 is the plane of E.
        """
        theta, phi = np.broadcast_arrays(theta, phi)
        a, b = self.coefficients
        pi, tau = _angular(self.n, np.cos(theta))
        weight = (2 * self.n + 1) / (self.n * (self.n + 1))
        S1 = np.tensordot(weight * a, pi, 1) + np.tensordot(weight * b, tau, 1)
        S2 = np.tensordot(weight * a, tau, 1) + np.tensordot(weight * b, pi, 1)
        intensity = abs(S2 * np.cos(phi)) ** 2 + abs(S1 * np.sin(phi)) ** 2
        return 4 * np.pi / self.omega**2 * intensity

    def incident(self, x, y, z) -> np.ndarray:
        """The amplitudes of the incident wave, (6, ...) complex."""
        x, y, z = np.broadcast_arrays(x, y, z)
        fields = np.zeros((6, *x.shape), complex)
        fields[0] = fields[4] = np.exp(1j * self.omega * z)
        return fields

    def scattered(self, x, y, z) -> np.ndarray:
        """The amplitudes of the scattered wave at points outside or on the sphere.

        Parameters
        ----------
        x, y, z : arrays of one shape

        Returns
        -------
        (6, ...) complex
            Ex, Ey, Ez, Hx, Hy, Hz.
        """
        a, b = self.coefficients
        k, r = self.omega, _distance(x, y, z)
        radial, slope = _riccati(spherical_jn, *self._column(k * r))
        radial_y, slope_y = _riccati(spherical_yn, *self._column(k * r))
        radial, slope = radial + 1j * radial_y, slope + 1j * slope_y
        return self._sum(x, y, z, k * r, radial, slope, 1j * a, -b, admittance=1.0)

    def inside(self, x, y, z) -> np.ndarray:
        """The amplitudes of the total field at points in a dielectric sphere, (6, ...) complex."""
        c, d = self.interior
        rho = self.index * self.omega * _distance(x, y, z)
        radial, slope = _riccati(spherical_jn, *self._column(rho))
        admittance = np.sqrt(self.epsilon / self.mu)
        return self._sum(x, y, z, rho, radial, slope, -1j * d, c, admittance)

    def _column(self, rho: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """n along a new first axis, and rho."""
        return self.n.reshape(-1, *(1,) * np.ndim(rho)), rho

    def _sum(self, x, y, z, rho, radial, slope, electric, magnetic, admittance) -> np.ndarray:
        """E = sum u_n (electric_n N_e1n + magnetic_n M_o1n), and its H = -i admittance curl E / k.

        By curl N = k M and curl M = k N, H has the same coefficients before M_e1n and N_o1n.
        `radial` and `slope` are z_n(rho) and (rho z_n)'.
        """
        cos = np.clip(np.divide(z, _distance(x, y, z)), -1, 1)
        sin, phi = np.sqrt(1 - cos**2), np.arctan2(y, x)
        pi, tau = _angular(self.n, cos)
        n, _ = self._column(rho)
        u = 1j**n * (2 * n + 1) / (n * (n + 1))
        electric, magnetic = electric.reshape(n.shape), magnetic.reshape(n.shape)

        def series(N, M, c, s):
            """Components (r, theta, phi) of N_e1n and M_o1n, with c and s for cos phi, sin phi."""
            return (
                c * sin * (u * N * n * (n + 1) * pi * radial / rho).sum(axis=0),
                c * (u * (N * tau * slope / rho + M * pi * radial)).sum(axis=0),
                -s * (u * (N * pi * slope / rho + M * tau * radial)).sum(axis=0),
            )

        # N_o1n is N_e1n with sin phi for cos phi and -cos phi for sin phi; M_e1n is -M_o1n so.
        E = series(electric, magnetic, np.cos(phi), np.sin(phi))
        H = series(magnetic, -electric, np.sin(phi), -np.cos(phi))
        E, H = _cartesian(E, cos, sin, phi), _cartesian(H, cos, sin, phi)
        return np.concatenate([E, -1j * admittance * H])


def amplitude(samples: np.ndarray, times: np.ndarray, omega: float) -> np.ndarray:
    """The complex amplitude F of samples of Re(F exp(-i omega t)), by least squares.

    If the times divide whole periods evenly, this is the projection 2/n sum samples exp(i omega t);
    it serves as well if they do not.

    Parameters
    ----------
    samples : (n, ...) array
        A field at n times.
    times : (n,) array
        Best the last whole period of a run.
    omega : float

    Returns
    -------
    (...) complex

    Raises
    ------
    ValueError
        If there are not as many times as samples, or they do not tell cosine from sine.
    """
    samples, times = np.asarray(samples), np.asarray(times)
    if times.ndim != 1 or len(samples) != len(times):
        raise ValueError(f"times has shape {times.shape}; allowed: ({len(samples)},)")
    phases = np.stack([np.cos(omega * times), np.sin(omega * times)], axis=1)
    values = np.linalg.svd(phases, compute_uv=False)
    if len(times) < 2 or values[1] < 1e-6 * values[0]:
        raise ValueError(f"times = {times}; allowed: times at different phases of omega = {omega}")
    parts = np.linalg.pinv(phases) @ samples.reshape(len(times), -1)
    return (parts[0] + 1j * parts[1]).reshape(samples.shape[1:])


def _riccati(function, n, x) -> tuple[np.ndarray, np.ndarray]:
    """z_n(x) and (x z_n)' for a spherical Bessel function."""
    value = function(n, x)
    return value, value + x * function(n, x, derivative=True)


def _angular(n: np.ndarray, cos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """pi_n = P_n^1 / sin and tau_n = dP_n^1 / dtheta for n = 1, 2, ..., (n, ...)."""
    pi = np.zeros((len(n) + 1, *np.shape(cos)))
    tau = np.zeros_like(pi)
    pi[1], tau[1] = 1.0, cos
    for i in range(2, len(n) + 1):
        pi[i] = ((2 * i - 1) * cos * pi[i - 1] - i * pi[i - 2]) / (i - 1)
        tau[i] = i * cos * pi[i] - (i + 1) * pi[i - 1]
    return pi[1:], tau[1:]


def _distance(x, y, z) -> np.ndarray:
    """|x|; a tiny number at the center, where the fields are finite but divided by it."""
    return np.maximum(np.sqrt(np.square(x) + np.square(y) + np.square(z)), 1e-9)


def _cartesian(v, cos, sin, phi) -> np.ndarray:
    """A vector's Cartesian components from (r, theta, phi)."""
    r, theta, azimuth = v
    outward = r * sin + theta * cos
    return np.stack(
        [
            outward * np.cos(phi) - azimuth * np.sin(phi),
            outward * np.sin(phi) + azimuth * np.cos(phi),
            r * cos - theta * sin,
        ]
    )
