"""Exact solutions: smooth ones of diffusion, and Couette's flow with a source."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgbook.hdg.problem import FarField, NavierStokes, Stream
from dgbook.hdg.solver import Result, solve
from dgbook.mesh import Mesh, build


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


def cylinder_mesh(around: int = 32, radius: float = 40.0, layers: int | None = None) -> Mesh:
    """Triangles around a cylinder of diameter 1: circles and rays, every cell cut in two.

    The radii grow by equal factors, so that all cells have the same shape. They are cut so that the
    mesh is its own mirror image in the x axis. With 62 edges and 63 layers it has 11,780 faces, as
    many as the mesh of roca2011. The cylinder is a regular polygon in a
    circle of diameter 1; its edges are straight, so that its area is smaller by
    (2 pi / around)^2 / 6, which is 0.6 % with 32 edges and 0.16 % with 64.

    Parameters
    ----------
    around : int
        Edges of the cylinder: a multiple of 2, 8 or more.
    radius : float
        Of the outer circle, more than 1.
    layers : int, optional
        Of cells between the circles; if not given, as many as make the cells nearly square.

    Returns
    -------
    Mesh
        Its boundaries are "cylinder" and "farfield".

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    if around < 8 or around % 2:
        raise ValueError(f"around = {around!r}; allowed: an even number, 8 or more")
    if not radius > 1:
        raise ValueError(f"radius = {radius!r}; allowed: more than 1")
    if layers is None:
        layers = max(1, round(np.log(2 * radius) / (2 * np.pi / around)))
    if layers < 1:
        raise ValueError(f"layers = {layers!r}; allowed: 1 or more")
    r = 0.5 * (2 * radius) ** (np.arange(layers + 1) / layers)
    angle = 2 * np.pi * np.arange(around) / around
    vertices = np.stack([np.outer(r, np.cos(angle)), np.outer(r, np.sin(angle))], axis=2)

    i, j = (part.ravel() for part in np.indices((layers, around)))
    after = (j + 1) % around
    a, b, c, d = i * around + j, (i + 1) * around + j, (i + 1) * around + after, i * around + after
    upper = (j < around // 2)[:, None]
    first = np.where(upper, np.stack([a, b, c], axis=1), np.stack([a, b, d], axis=1))
    second = np.where(upper, np.stack([a, c, d], axis=1), np.stack([b, c, d], axis=1))
    ring = np.stack([np.arange(around), (np.arange(around) + 1) % around], axis=1)
    faces = {"cylinder": ring, "farfield": layers * around + ring}
    return build(vertices.reshape(-1, 2), np.concatenate([first, second]), faces)


@dataclass(frozen=True, eq=False)
class CylinderFlow:
    """A flow past the cylinder.

    Attributes
    ----------
    result : Result
    drag, lift : float
        The force on the cylinder over half the stream's dynamic pressure and the diameter.
    wake : float
        Length of the recirculation behind the cylinder, in diameters: from its rear end to where u
        on the axis changes its sign. Zero if the flow does not turn back.
    """

    result: Result
    drag: float
    lift: float
    wake: float


def flow_past_cylinder(
    reynolds: float = 20.0,
    mach: float = 0.1,
    order: int = 3,
    around: int = 32,
    radius: float = 40.0,
    **options,
) -> CylinderFlow:
    """The steady flow past an adiabatic cylinder, solved from the uniform stream.

    Drag coefficient and wake of incompressible flows, and here with the default arguments:

        Re   Dennis and Chang (1970)   Fornberg (1980)   here
        20   2.05   0.94               2.00   0.91       2.037   0.909
        40   1.52   2.35               1.50   2.24       1.522   2.245

    Order 4 changes no digit but the last. With 48 straight edges instead of 32 drag grows by 0.1 %
    and the wake by 0.5 %; with an outer radius of 100 instead of 40, drag falls by 1 %.

    Parameters
    ----------
    reynolds, mach : float
        Of the stream and the diameter.
    order : int
    around, radius
        As of `cylinder_mesh`.
    options
        As of `solver.solve`.

    Raises
    ------
    ValueError, NewtonError
        As `cylinder_mesh` and `solver.solve`.

    References
    ----------
    Dennis and Chang, "Numerical solutions for steady flow past a circular cylinder at Reynolds
    numbers up to 100", J. Fluid Mech. 42, 1970. Fornberg, "A numerical study of steady viscous flow
    past a circular cylinder", J. Fluid Mech. 98, 1980.
    """
    mesh = cylinder_mesh(around, radius)
    boundary = {"cylinder": "adiabatic", "farfield": FarField(Stream(mach))}
    result = solve(NavierStokes(reynolds, mach, boundary), mesh, order, **options)
    drag, lift = 2 * result.boundary_flux("cylinder")[1:3]
    return CylinderFlow(result, float(drag), float(lift), wake_length(result))


def wake_length(result: Result) -> float:
    """Where u changes its sign on the axis behind the cylinder, less its radius.

    The axis is a line of faces, whose trace is known: u is linear between its nodes.
    """
    x, y = result.trace_x
    on_axis = (abs(y) < 1e-9).all(axis=1) & (x > 0).all(axis=1)
    x = x[on_axis].ravel()
    u = (result.trace[1] / result.trace[0])[on_axis].ravel()
    order = np.argsort(x, kind="stable")
    x, u = x[order], u[order]
    back = np.flatnonzero(u < 0)
    if not len(back):
        return 0.0
    last = back[-1]
    share = u[last] / (u[last] - u[last + 1])
    return float(x[last] + share * (x[last + 1] - x[last]) - 0.5)
