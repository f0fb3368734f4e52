"""The equations: diffusion, convection-diffusion and the compressible Navier-Stokes equations.

All are steady systems of n_c equations for u, written with its gradient as an unknown,

    q = grad u,    div f(u, q) = s,

and a problem says what f, its derivatives, its stabilization and its boundary conditions are. The
hybridized method of this package needs to know nothing else of them.

Arrays have the components first and points last: u is (n_c, ...), q is (n_c, d, ...) with
``q[c, e]`` the derivative of u_c along axis e, f is (n_c, d, ...), a normal is (d, ...).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgbook.arguments import LEAST_MACH, MOST, MOST_MACH, check_range
from dgbook.nodal.boundary import stacked_fields


@dataclass(frozen=True, eq=False)
class Neumann:
    """Boundary condition: f . n, the flux that leaves through the boundary, is given.

    Parameters
    ----------
    flux : function
        Of (x, y, [z]); returns the n_c fluxes.
    """

    flux: Callable


@dataclass(frozen=True)
class Isothermal:
    """Boundary condition of a gas: a wall that does not slip and has a temperature.

    Parameters
    ----------
    temperature : float
        In units of the stream's, positive.
    """

    temperature: float = 1.0

    def __post_init__(self) -> None:
        check_range(f"temperature = {self.temperature!r}", self.temperature)


@dataclass(frozen=True, eq=False)
class FarField:
    """Boundary condition of a gas: waves that come in belong to a given state, the others leave.

    Parameters
    ----------
    state : function
        Of (x, y, [z]); returns the n_c conservative fields, a `Stream` for instance.
    """

    state: Callable


@dataclass(frozen=True, eq=False)
class Affine:
    """A boundary condition b = 0 with b = P hhat + Q uhat + d at points of the boundary.

    hhat is the numerical flux through the boundary and uhat the trace. On interior faces the
    condition is b = -hhat, of both sides together.

    Attributes
    ----------
    flux, trace : (n_c, n_c, ...) arrays
        P, Q.
    data : (n_c, ...) array
    """

    flux: np.ndarray
    trace: np.ndarray
    data: np.ndarray


class Problem(ABC):
    """What the method asks of a system of equations.

    Attributes
    ----------
    boundary : function, condition or dict
        For each name in ``mesh.boundary`` a condition. A function of (x, y, [z]) returns the n_c
        fields on the boundary: their projection is the trace (Dirichlet). What other conditions
        there are is for the problem to say.
    source : function or None
        s, a function of (x, y, [z]) that returns n_c fields.
    linear : bool
        Whether f is linear in (u, q).
    """

    boundary: Any
    source: Callable | None
    linear: bool = True

    @abstractmethod
    def names(self, dim: int) -> tuple[str, ...]:
        """What the n_c components are called, in so many dimensions."""

    @abstractmethod
    def check(self, dim: int, conditions: list[Any]) -> None:
        """Raise TypeError or ValueError for conditions that are not the problem's."""

    @abstractmethod
    def coefficients(self, x: np.ndarray) -> np.ndarray:
        """What f needs to know of the points x, (d, ...): an array (n, ...), n may be 0."""

    @abstractmethod
    def flux(self, u: np.ndarray, q: np.ndarray, a: np.ndarray) -> np.ndarray:
        """f, (n_c, d, ...); `a` as ``coefficients`` returned it."""

    @abstractmethod
    def flux_derivatives(
        self, u: np.ndarray, q: np.ndarray, a: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """df[c, i]/du[b], (n_c, d, n_c, ...), and df[c, i]/dq[b, j], (n_c, d, n_c, d, ...).

        Axes of points may have length 1 where there is nothing to tell them apart.
        """

    @abstractmethod
    def stabilization(self, uhat: np.ndarray, normal: np.ndarray, a: np.ndarray) -> np.ndarray:
        """The diagonal of S(uhat), (n_c, ...), in hhat = f(uhat, q) . n + S (u - uhat)."""

    def stabilization_derivative(
        self, uhat: np.ndarray, normal: np.ndarray, a: np.ndarray
    ) -> np.ndarray | None:
        """dS[c]/duhat[b], (n_c, n_c, ...), or None where S is constant."""
        return None

    @abstractmethod
    def condition(self, condition: Any, x: np.ndarray, normal: np.ndarray) -> Affine:
        """A condition that is no function, at points (d, ...) of the boundary."""

    def admissible(self, u: np.ndarray) -> bool:
        """Whether f can be evaluated at all these states, (n_c, ...)."""
        return bool(np.isfinite(u).all())

    def quadrature_degree(self, order: int) -> int:
        """To which degree integrals are exact for polynomials."""
        return 2 * order + 2

    def fields(self, function: Callable, x: np.ndarray) -> np.ndarray:
        """The n_c values of a function of (x, y, [z]) at points (d, ...), (n_c, ...)."""
        return stacked_fields(function(*x), x.shape[1:], self.names(len(x)), type(self).__name__)


# -- diffusion ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ConvectionDiffusion(Problem):
    """div(c u - kappa grad u) = s, for one field u; f = c u - kappa q.

    The stabilization is |c . n| + kappa / length (Nguyen, Peraire, Cockburn, J. Comput. Phys. 228,
    2009, section 3.3: upwinding, and a diffusive part that does not depend on the mesh).

    Parameters
    ----------
    source : function, optional
        s of (x, y, [z]).
    boundary : function, condition or dict
        For each name in ``mesh.boundary`` a function of (x, y, [z]), the value of u, or
        ``Neumann(flux)``. Functions return sequences of one field.
    velocity : numbers or function
        c, d numbers, or a function of (x, y, [z]) that returns d fields.
    diffusivity : float
        kappa, positive.
    length : float
        The length in the stabilization, positive: of the size of the domain.
    """

    source: Callable | None = None
    boundary: Any = None
    velocity: Any = (0.0, 0.0)
    diffusivity: float = 1.0
    length: float = 1.0

    def __post_init__(self) -> None:
        check_range(f"diffusivity = {self.diffusivity!r}", self.diffusivity)
        check_range(f"length = {self.length!r}", self.length)

    def names(self, dim: int) -> tuple[str, ...]:
        """One component, u."""
        return ("u",)

    def check(self, dim: int, conditions: list[Any]) -> None:
        """Functions and `Neumann`, and one function at least; as many velocities as dimensions."""
        _check_given(dim, conditions)
        if not callable(self.velocity) and len(self.velocity) != dim:
            raise ValueError(f"velocity = {self.velocity!r}; allowed: {dim} numbers or a function")

    def coefficients(self, x: np.ndarray) -> np.ndarray:
        """c at the points, (d, ...)."""
        c = self.velocity(*x) if callable(self.velocity) else self.velocity
        names = tuple(f"c_{axis}" for axis in "xyz"[: len(x)])
        return stacked_fields(c, x.shape[1:], names, "the velocity's components")

    def flux(self, u: np.ndarray, q: np.ndarray, a: np.ndarray) -> np.ndarray:
        """c u - kappa q."""
        return a * u[:, None] - self.diffusivity * q

    def flux_derivatives(
        self, u: np.ndarray, q: np.ndarray, a: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """c, and -kappa on the diagonal."""
        dim = len(q[0])
        by_q = -self.diffusivity * np.asarray(np.eye(dim, dtype=u.dtype), like=u)
        return a[None, :, None], by_q.reshape(1, dim, 1, dim, *[1] * (u.ndim - 1))

    def stabilization(self, uhat: np.ndarray, normal: np.ndarray, a: np.ndarray) -> np.ndarray:
        """|c . n| + kappa / length."""
        return abs((a * normal).sum(axis=0))[None] + self.diffusivity / self.length

    def condition(self, condition: Neumann, x: np.ndarray, normal: np.ndarray) -> Affine:
        """-hhat + g = 0."""
        zero, one = np.zeros((1, 1, *x.shape[1:])), np.ones((1, 1, *x.shape[1:]))
        return Affine(-one, zero, self.fields(condition.flux, x))


@dataclass(frozen=True, eq=False)
class Poisson(Problem):
    """-div(kappa grad u) = s, for one field u or for several that do not see one another.

    With f = -kappa q and q = grad u. The stabilization is kappa / length, the same on every mesh:
    then u and q converge as h^(k+1) and, for k of 1 or more, the post-processed u as h^(k+2)
    (Cockburn, Dong, Guzman, Math. Comp. 77, 2008).

    Parameters
    ----------
    source : function, optional
        s of (x, y, [z]).
    boundary : function, condition or dict
        For each name in ``mesh.boundary`` a function of (x, y, [z]), the values of u, or
        ``Neumann(flux)``, with kappa du/dn = -flux. Functions return sequences of fields.
    diffusivity : float
        kappa, positive.
    length : float
        The length in the stabilization, positive: of the size of the domain.
    components : int
        Number of fields; more than one is for systems as large as those of a gas.
    """

    source: Callable | None = None
    boundary: Any = None
    diffusivity: float = 1.0
    length: float = 1.0
    components: int = 1

    def __post_init__(self) -> None:
        check_range(f"diffusivity = {self.diffusivity!r}", self.diffusivity)
        check_range(f"length = {self.length!r}", self.length)
        if self.components not in range(1, 65):
            raise ValueError(f"components = {self.components!r}; allowed: an integer, 1 to 64")

    def names(self, dim: int) -> tuple[str, ...]:
        """u, or u0, u1, ..."""
        if self.components == 1:
            return ("u",)
        return tuple(f"u{c}" for c in range(self.components))

    def check(self, dim: int, conditions: list[Any]) -> None:
        """Functions and `Neumann`, and one function at least."""
        _check_given(dim, conditions)

    def coefficients(self, x: np.ndarray) -> np.ndarray:
        """None."""
        return np.zeros((0, *x.shape[1:]))

    def flux(self, u: np.ndarray, q: np.ndarray, a: np.ndarray) -> np.ndarray:
        """-kappa q."""
        return -self.diffusivity * q

    def flux_derivatives(
        self, u: np.ndarray, q: np.ndarray, a: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Zero, and -kappa on the diagonal."""
        n, dim = q.shape[:2]
        points = [1] * (u.ndim - 1)
        by_q = -self.diffusivity * np.asarray(np.eye(n * dim, dtype=u.dtype), like=u)
        by_u = np.zeros((n, dim, n, *points), u.dtype, like=u)
        return by_u, by_q.reshape(n, dim, n, dim, *points)

    def stabilization(self, uhat: np.ndarray, normal: np.ndarray, a: np.ndarray) -> np.ndarray:
        """kappa / length."""
        return np.full_like(uhat, self.diffusivity / self.length)

    def condition(self, condition: Neumann, x: np.ndarray, normal: np.ndarray) -> Affine:
        """-hhat + g = 0."""
        one = _matrix(np.eye(self.components), x)
        return Affine(-one, 0 * one, self.fields(condition.flux, x))


# -- a gas -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NavierStokes(Problem):
    """The steady compressible Navier-Stokes equations, in two and three dimensions.

    u = (rho, rho v, rho E) and f = F(u) - G(u, q), inviscid and viscous. Lengths, density, velocity
    and temperature are in units of a body, and of the stream that meets it, so that

        p = (gamma - 1) (rho E - rho |v|^2 / 2),   T = gamma M^2 p / rho,
        tau = (grad v + grad v^T - 2/3 div v) / Re,
        heat flux = -grad T / ((gamma - 1) M^2 Re Pr),

    and the stream has p = 1 / (gamma M^2), T = 1.

    The stabilization is S = (|v . n| + c) I + diag(0, 1/Re, .., gamma / (Re Pr)), the fastest wave
    and the diffusivities of momentum and of rho E, or a number times I. After Peraire, Nguyen,
    Cockburn, AIAA paper 2010-363; the last entry there, 1/((gamma-1) M^2 Re Pr), is the
    conductivity, with which temperature gradients of slow flows lose up to half an order on
    meshes of practical size: it exceeds the diffusivity by 1/(gamma (gamma-1) M^2).

    Parameters
    ----------
    reynolds, mach : float
        Re and M, positive.
    boundary : function, condition or dict
        For each name in ``mesh.boundary``: a function of (x, y, [z]) that returns all conservative
        fields; ``"adiabatic"``, a wall at which v = 0, without heat flux; ``Isothermal(T)``, a
        wall at which v = 0 with a temperature; ``"slip"``, a wall without friction, or a plane of
        symmetry; ``FarField(state)``.
    source : function, optional
        s of (x, y, [z]), all equations.
    prandtl, gamma : float
        Pr, positive; the ratio of specific heats, above 1.
    stabilization_factor : float, optional
        tau, positive, for S = tau I.
    """

    reynolds: float
    mach: float
    boundary: Any = None
    source: Callable | None = None
    prandtl: float = 0.72
    gamma: float = 1.4
    stabilization_factor: float | None = None

    linear = False

    def __post_init__(self) -> None:
        for name in ("reynolds", "prandtl"):
            check_range(f"{name} = {getattr(self, name)!r}", getattr(self, name))
        check_range(f"mach = {self.mach!r}", self.mach, LEAST_MACH, MOST_MACH)
        if not 1 < self.gamma < MOST:
            raise ValueError(f"gamma = {self.gamma!r}; allowed: above 1, below {MOST:g}")
        factor = self.stabilization_factor
        if factor is not None:
            check_range(f"stabilization_factor = {factor!r}", factor)

    def names(self, dim: int) -> tuple[str, ...]:
        """rho, rho_u, rho_v, (rho_w,) rho_E."""
        return ("rho", *(f"rho_{v}" for v in "uvw"[:dim]), "rho_E")

    def check(self, dim: int, conditions: list[Any]) -> None:
        """Functions, two words, `Isothermal` and `FarField`; two or three dimensions."""
        if dim not in (2, 3):
            raise ValueError(f"mesh.dim = {dim}; allowed for a gas: 2 or 3")
        for condition in conditions:
            if not (
                callable(condition)
                or condition in ("adiabatic", "slip")
                or isinstance(condition, Isothermal | FarField)
            ):
                raise ValueError(
                    f"boundary condition {condition!r}; allowed are 'adiabatic', 'slip', "
                    f"Isothermal(T), FarField(state) and functions of {_coordinates(dim)}"
                )

    def quadrature_degree(self, order: int) -> int:
        """F is no polynomial; for constant density it would have degree 3k."""
        return max(3 * order, 2 * order + 2)

    def coefficients(self, x: np.ndarray) -> np.ndarray:
        """None."""
        return np.zeros((0, *x.shape[1:]))

    # -- the state of the gas --------------------------------------------------------------

    def conservative(self, rho: Any, velocity: Any, p: Any) -> np.ndarray:
        """(rho, rho v, rho E), (n_c, ...), from density, d velocities and pressure."""
        rho, p, *v = np.broadcast_arrays(rho, p, *velocity)
        kinetic = 0.5 * rho * sum(w * w for w in v)
        return np.stack([rho, *(rho * w for w in v), p / (self.gamma - 1) + kinetic])

    def pressure(self, u: np.ndarray) -> np.ndarray:
        """p, (...), of conservative states (n_c, ...)."""
        return (self.gamma - 1) * (u[-1] - 0.5 * (u[1:-1] * u[1:-1]).sum(axis=0) / u[0])

    def temperature(self, u: np.ndarray) -> np.ndarray:
        """T = gamma M^2 p / rho, (...)."""
        return self.gamma * self.mach**2 * self.pressure(u) / u[0]

    def velocity_gradient(self, u: np.ndarray, q: np.ndarray) -> np.ndarray:
        """``[i, j]`` = dv_i/dx_j, (d, d, ...): (q_{rho v_i} - v_i q_rho) / rho."""
        v = u[1:-1] / u[0]
        return (q[1:-1] - v[:, None] * q[0]) / u[0]

    def stress(self, u: np.ndarray, q: np.ndarray) -> np.ndarray:
        """tau, (d, d, ...)."""
        return self._stress_of(self.velocity_gradient(u, q))

    def _stress_of(self, dv: np.ndarray) -> np.ndarray:
        tau = dv + np.swapaxes(dv, 0, 1)
        divergence = sum(dv[i, i] for i in range(len(dv)))
        for i in range(len(dv)):
            tau[i, i] -= 2 / 3 * divergence
        return tau / self.reynolds

    def temperature_gradient(self, u: np.ndarray, q: np.ndarray) -> np.ndarray:
        """grad T, (d, ...): T is gamma (gamma-1) M^2 times the internal energy e."""
        return self.gamma * (self.gamma - 1) * self.mach**2 * self._energy_gradient(u, q)

    def _energy_gradient(self, u: np.ndarray, q: np.ndarray) -> np.ndarray:
        """grad e with e = E - |v|^2 / 2."""
        v, dv = u[1:-1] / u[0], self.velocity_gradient(u, q)
        return (q[-1] - u[-1] / u[0] * q[0]) / u[0] - (v[:, None] * dv).sum(axis=0)

    def admissible(self, u: np.ndarray) -> bool:
        """Density and pressure are positive, and everything is finite."""
        return bool(np.isfinite(u).all() and (u[0] > 0).all() and (self.pressure(u) > 0).all())

    # -- the flux --------------------------------------------------------------------------

    def flux(self, u: np.ndarray, q: np.ndarray, a: np.ndarray) -> np.ndarray:
        """F(u) - G(u, q)."""
        v, p = u[1:-1] / u[0], self.pressure(u)
        tau = self.stress(u, q)
        f = u[:, None] * v
        f[1:-1] -= tau
        for i in range(len(v)):
            f[1 + i, i] += p
        heating = self.gamma / (self.reynolds * self.prandtl) * self._energy_gradient(u, q)
        f[-1] += p * v - (v[:, None] * tau).sum(axis=0) - heating
        return f

    def flux_derivatives(
        self, u: np.ndarray, q: np.ndarray, a: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """By the rules of differentiation, along every unit vector of u and of q."""
        n, dim = q.shape[:2]
        points = [1] * (u.ndim - 1)
        unit_u = np.asarray(np.eye(n), like=u).reshape(n, n, *points)
        unit_q = np.asarray(np.eye(n * dim), like=u).reshape(n, dim, n * dim, *points)
        by_u = self._variation(u[:, None], q[:, :, None], unit_u, 0 * unit_u[:, None, :1])
        by_q = self._variation(u[:, None], q[:, :, None], 0 * unit_u[:, :1], unit_q)
        return by_u, by_q.reshape(n, dim, n, dim, *u.shape[1:])

    def _variation(
        self, u: np.ndarray, q: np.ndarray, du: np.ndarray, dq: np.ndarray
    ) -> np.ndarray:
        """The derivative of f at (u, q) along (du, dq), line by line that of `flux`."""
        rho, v = u[0], u[1:-1] / u[0]
        drho = du[0] / rho
        dv = du[1:-1] / rho - v * drho
        p = self.pressure(u)
        kinetic = (v * (du[1:-1] - 0.5 * v * du[0])).sum(axis=0)
        dp = (self.gamma - 1) * (du[-1] - kinetic)

        slope = self.velocity_gradient(u, q)
        d_slope = (dq[1:-1] - v[:, None] * dq[0] - dv[:, None] * q[0]) / rho - slope * drho
        tau, d_tau = self._stress_of(slope), self._stress_of(d_slope)

        E = u[-1] / rho
        dE = du[-1] / rho - E * drho
        d_heating = (dq[-1] - E * dq[0] - dE * q[0] - (q[-1] - E * q[0]) * drho) / rho
        d_heating = d_heating - (dv[:, None] * slope + v[:, None] * d_slope).sum(axis=0)

        df = np.zeros((*q.shape[:2], *d_heating.shape[1:]), u.dtype, like=u)
        df += du[:, None] * v + u[:, None] * dv
        df[1:-1] -= d_tau
        for i in range(len(v)):
            df[1 + i, i] += dp
        df[-1] += dp * v + p * dv - (dv[:, None] * tau + v[:, None] * d_tau).sum(axis=0)
        df[-1] -= self.gamma / (self.reynolds * self.prandtl) * d_heating
        return df

    def stabilization(self, uhat: np.ndarray, normal: np.ndarray, a: np.ndarray) -> np.ndarray:
        """|v . n| + c, and the diffusivities; or tau."""
        if self.stabilization_factor is not None:
            return np.full_like(uhat, self.stabilization_factor)
        vn = (uhat[1:-1] * normal).sum(axis=0) / uhat[0]
        c = np.sqrt(self.gamma * self.pressure(uhat) / uhat[0])
        S = np.repeat((abs(vn) + c)[None], len(uhat), axis=0)
        S[1:-1] += 1 / self.reynolds
        S[-1] += self.gamma / (self.reynolds * self.prandtl)
        return S

    def stabilization_derivative(
        self, uhat: np.ndarray, normal: np.ndarray, a: np.ndarray
    ) -> np.ndarray | None:
        """The derivative of |v . n| + c, the same for all components."""
        if self.stabilization_factor is not None:
            return None
        rho, v, p = uhat[0], uhat[1:-1] / uhat[0], self.pressure(uhat)
        vn = (v * normal).sum(axis=0)
        c = np.sqrt(self.gamma * p / rho)
        # c^2 = gamma p / rho, hence dc = (c / 2) (dp / p - drho / rho).
        derivative = np.empty_like(uhat)
        derivative[0] = (self.gamma - 1) * 0.5 * (v * v).sum(axis=0) / p - 1 / rho
        derivative[1:-1] = -(self.gamma - 1) * v / p
        derivative[-1] = (self.gamma - 1) / p
        derivative *= 0.5 * c
        derivative[0] -= np.sign(vn) * vn / rho
        derivative[1:-1] += np.sign(vn) * normal / rho
        return np.repeat(derivative[None], len(uhat), axis=0)

    # -- the boundary ----------------------------------------------------------------------

    def condition(self, condition: Any, x: np.ndarray, normal: np.ndarray) -> Affine:
        """Walls and the far field.

        Through a wall goes neither mass nor, if it is adiabatic, energy: where the trace has no
        normal velocity, the fluxes F . n of mass and energy vanish, and what is left of hhat are
        the heat flux and the stabilization, which ties u to the trace. At a wall without friction
        there is no tangential traction either. So

        - adiabatic: hhat_rho = 0, uhat_{rho v} = 0, hhat_{rho E} = 0;
        - isothermal: hhat_rho = 0, uhat_{rho v} = 0, and
          rho E = rho T / (gamma (gamma - 1) M^2) of the trace;
        - slip: hhat_rho = 0, n . uhat_{rho v} = 0, (I - n n) hhat_{rho v} = 0, hhat_{rho E} = 0;
        - far field: hhat = F(u_inf) . n + A^+ (uhat - u_inf) with A = dF/du . n at u_inf and its
          positive part A^+. That is the upwind flux between the trace and the stream, for small
          disturbances of it, and no friction or conduction: what goes out is left to itself, what
          comes in is the stream's.
        """
        dim, n = len(x), len(x) + 2
        P, Q = (np.zeros((n, n, *x.shape[1:])) for _ in range(2))
        data = np.zeros((n, *x.shape[1:]))
        if isinstance(condition, FarField):
            stream = self.fields(condition.state, x)
            through, outgoing = self._characteristic(stream, normal)
            P = -_matrix(np.eye(n), x)
            data = through - np.einsum("ab...,b...->a...", outgoing, stream)
            return Affine(P, outgoing, data)
        P[0, 0] = P[-1, -1] = -1
        if condition == "slip":
            nn = normal[:, None] * normal
            Q[1:-1, 1:-1] = nn
            P[1:-1, 1:-1] = nn - _matrix(np.eye(dim), x)
        else:
            Q[1:-1, 1:-1] = _matrix(np.eye(dim), x)
        if isinstance(condition, Isothermal):
            P[-1, -1], Q[-1, -1] = 0, 1
            Q[-1, 0] = -condition.temperature / (self.gamma * (self.gamma - 1) * self.mach**2)
        return Affine(P, Q, data)

    def _characteristic(self, u: np.ndarray, normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """F . n, (n_c, ...), and A^+, (n_c, n_c, ...), by the polynomial that its eigenvalues ask.

        The eigenvalues of A are vn - c, vn and vn + c; those of A^+ the positive ones of them.
        """
        q = np.zeros((len(u), len(normal), *u.shape[1:]))  # without gradients only F is left
        through = (self.flux(u, q, u[:0]) * normal).sum(axis=1)
        A = np.einsum("aib...,i...->ab...", self.flux_derivatives(u, q, u[:0])[0], normal)
        vn = (u[1:-1] * normal).sum(axis=0) / u[0]
        c = np.sqrt(self.gamma * self.pressure(u) / u[0])
        one = _matrix(np.eye(len(u)), normal)
        speeds = (vn - c, vn, vn + c)
        positive = np.zeros_like(A)
        for i in range(3):
            j, k = (speeds[m] for m in range(3) if m != i)
            product = np.einsum("ab...,bc...->ac...", A - j * one, A - k * one)
            speed = np.maximum(speeds[i], 0)
            positive += speed / ((speeds[i] - j) * (speeds[i] - k)) * product
        return through, positive


@dataclass(frozen=True)
class Stream:
    """A uniform stream of unit density, speed and temperature; a function of (x, y, [z]).

    Parameters
    ----------
    mach : float
        Gives the pressure, 1 / (gamma M^2).
    direction : numbers
        The velocity, of as many dimensions as there are.
    gamma : float
    """

    mach: float
    direction: tuple[float, ...] = (1.0, 0.0)
    gamma: float = 1.4

    def __post_init__(self) -> None:
        check_range(f"mach = {self.mach!r}", self.mach, LEAST_MACH, MOST_MACH)

    def __call__(self, *x: np.ndarray) -> np.ndarray:
        """The conservative fields, (n_c, ...)."""
        gas = NavierStokes(1.0, self.mach, gamma=self.gamma)
        state = gas.conservative(1.0, self.direction, 1 / (self.gamma * self.mach**2))
        return np.multiply.outer(state, np.ones(np.shape(x[0])))


def _matrix(values: np.ndarray, points: np.ndarray) -> np.ndarray:
    """A matrix (n, n) repeated at points (d, ...): (n, n, ...)."""
    return np.multiply.outer(values, np.ones(points.shape[1:]))


def _check_given(dim: int, conditions: list[Any]) -> None:
    for condition in conditions:
        if not callable(condition) and not isinstance(condition, Neumann):
            raise ValueError(
                f"boundary condition {condition!r}; allowed are functions of "
                f"{_coordinates(dim)} and Neumann(flux)"
            )
    if not any(callable(condition) for condition in conditions):
        raise ValueError(
            "boundary: u is given nowhere; allowed: a function on one boundary at least, without "
            "which u is determined up to a constant"
        )


def _coordinates(dim: int) -> str:
    return f"({', '.join('xyz'[:dim])})"
