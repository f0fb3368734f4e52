"""The compressible Euler equations in two dimensions: fluxes, boundary conditions, entropy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

FIELDS = ("rho", "rho_u", "rho_v", "rho_E")
GAMMA = 1.4
"""Ratio of specific heats of air, calorically perfect."""
ENTROPY_FIX = 0.1
"""Harten's delta in units of the Roe average's speed of sound: see `roe`."""
CONDITIONS = ("wall",)
GIVEN, WALL = 0, 1
"""Kinds of boundary edges: the outside state is a function of (x, y, t), or the mirrored inside."""


# -- the gas -----------------------------------------------------------------------------------


def velocity(u: np.ndarray) -> np.ndarray:
    """v = (u, v), (2, ...), of conservative states (4, ...)."""
    return u[1:3] / u[0]


def pressure(u: np.ndarray) -> np.ndarray:
    """p = (gamma - 1) (rho E - rho |v|^2 / 2), (...), of conservative states (4, ...)."""
    return (GAMMA - 1) * (u[3] - 0.5 * (u[1] * u[1] + u[2] * u[2]) / u[0])


def sound_speed(u: np.ndarray) -> np.ndarray:
    """c = sqrt(gamma p / rho), (...), of conservative states (4, ...)."""
    return np.sqrt(GAMMA * pressure(u) / u[0])


def conservative(
    rho: np.ndarray, velocity_x: np.ndarray, velocity_y: np.ndarray, p: np.ndarray
) -> np.ndarray:
    """The state (rho, rho u, rho v, rho E), (4, ...), from density, velocity and pressure."""
    rho, velocity_x, velocity_y, p = np.broadcast_arrays(rho, velocity_x, velocity_y, p)
    kinetic = 0.5 * rho * (velocity_x * velocity_x + velocity_y * velocity_y)
    return np.stack([rho, rho * velocity_x, rho * velocity_y, p / (GAMMA - 1) + kinetic])


def entropy_density(u: np.ndarray) -> np.ndarray:
    """The mathematical entropy -rho s / (gamma - 1), s = log(p / rho^gamma), (...).

    It is a convex function of the state. Smooth flows keep its integral, shocks lower it.
    """
    return -u[0] * np.log(pressure(u) / u[0] ** GAMMA) / (GAMMA - 1)


def physical_flux(u: np.ndarray) -> np.ndarray:
    """F, chen, equation (2): (2, 4, ...), ``[d]`` the flux in direction d; u is (4, ...)."""
    v, p = velocity(u), pressure(u)
    F = v[:, None] * u
    F[0, 1] += p
    F[1, 2] += p
    F[:, 3] += p * v
    return F


def normal_flux(u: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """F . n, (4, ...), of states (4, ...) along vectors n, (2, ...), of any length."""
    p = pressure(u)
    vn = _normal_velocity(u, normal)
    F = vn * u
    F[1] += p * normal[0]
    F[2] += p * normal[1]
    F[3] += p * vn
    return F


def mirrored(u: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """The state behind a slip wall, (4, ...): the inside with its normal velocity turned round.

    A wall is then a plane of symmetry, and any consistent flux that treats its two sides alike
    lets no mass or energy through. What is left of the flux is a pressure that rises with the
    velocity at which the flow runs into the wall: it brings that velocity to zero, which the
    pressure of the inside alone (a wall flux) would not.
    """
    outside = u.copy()
    momentum = u[1] * normal[0] + u[2] * normal[1]
    outside[1] -= 2 * momentum * normal[0]
    outside[2] -= 2 * momentum * normal[1]
    return outside


def _normal_velocity(u: np.ndarray, normal: np.ndarray) -> np.ndarray:
    return (u[1] * normal[0] + u[2] * normal[1]) / u[0]


# -- numerical fluxes --------------------------------------------------------------------------


def roe_average(
    left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Roe's average of two states (4, ...): u, v, enthalpy H and speed of sound c, each (...).

    Means weighted with sqrt(rho). With them the matrix A(left, right) of the linearized flux has
    the property that gives Roe's flux its sharpness: F(right) - F(left) = A (right - left).
    """
    a, b = np.sqrt(left[0]), np.sqrt(right[0])
    a, b = a / (a + b), b / (a + b)
    u, v = a * velocity(left) + b * velocity(right)
    H = a * (left[3] + pressure(left)) / left[0] + b * (right[3] + pressure(right)) / right[0]
    c = np.sqrt((GAMMA - 1) * (H - 0.5 * (u * u + v * v)))
    return u, v, H, c


def roe(
    left: np.ndarray, right: np.ndarray, normal: np.ndarray, fix: float = ENTROPY_FIX
) -> np.ndarray:
    """Roe's flux with Harten's entropy fix, (4, ...).

    The Riemann problem between the two states is solved for the linear system with the matrix A of
    `roe_average`, whose waves run along n at un - c, un (twice: entropy and shear), un + c:

        F* = 1/2 (F(left) + F(right)) . n - 1/2 |A| (right - left).

    **|A| times the jump without a matrix.** The acoustic waves have strengths
    (dp -+ rho c dun) / (2 c^2) and vectors (1, v -+ c n, H -+ c un), where dp is the jump of
    the pressure and rho dun = d(rho un) - un d(rho) that of the velocity times the mean density.
    If all speeds were |un|, |A| jump would be |un| jump. What the acoustic waves have in excess,
    with s = (|un+c| + |un-c|) / 2 - |un| and d = (|un+c| - |un-c|) / 2, is

        mass      C1 = s dp / c^2 + d rho dun / c
        momentum  C1 v + C2 n,          C2 = d dp / c + s rho dun
        energy    C1 H + C2 un.

    **The fix.** Where an acoustic speed passes through zero, inside a rarefaction, the linearized
    problem has a discontinuity in its place, and no dissipation there to spread it. Harten (1983)
    puts for |lambda| < delta the parabola (lambda^2 + delta^2) / (2 delta), which touches
    |lambda| at delta. Here delta = `fix` times c, for the acoustic waves alone: the other two are
    linearly degenerate, have no rarefactions, and keep contacts sharp.

    Parameters
    ----------
    left, right : (4, ...) arrays
        Conservative states on either side.
    normal : (2, ...) array
        Unit vectors from left to right.
    fix : float
        Positive; a very small one is Roe's flux without the fix.

    References
    ----------
    Roe, "Approximate Riemann solvers, parameter vectors, and difference schemes", J. Comput. Phys.
    43, 1981. Harten, "High resolution schemes for hyperbolic conservation laws", J. Comput. Phys.
    49, 1983. chen, section 1, cites Roe for a flux and gives no fix.
    """
    u, v, H, c = roe_average(left, right)
    nx, ny = normal
    un = u * nx + v * ny
    jump = right - left
    dp = pressure(right) - pressure(left)
    rho_dun = jump[1] * nx + jump[2] * ny - un * jump[0]

    plus, minus, middle = _fixed(un + c, fix * c), _fixed(un - c, fix * c), np.abs(un)
    s, d = 0.5 * (plus + minus) - middle, 0.5 * (plus - minus)
    C1 = (s * dp / c + d * rho_dun) / c
    C2 = d * dp / c + s * rho_dun

    dissipation = middle * jump
    dissipation[0] += C1
    dissipation[1] += C1 * u + C2 * nx
    dissipation[2] += C1 * v + C2 * ny
    dissipation[3] += C1 * H + C2 * un
    return 0.5 * (normal_flux(left, normal) + normal_flux(right, normal) - dissipation)


def _fixed(speed: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """|speed|, and below delta Harten's parabola, in one formula: m is then delta, else |speed|."""
    m = np.maximum(np.abs(speed), delta)
    return 0.5 * (speed * speed / m + m)


def rusanov(left: np.ndarray, right: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Rusanov's flux (local Lax-Friedrichs), (4, ...); arguments as in `roe`.

    All waves are damped as if they had the fastest speed of either side, max(|un| + c).

    References
    ----------
    Rusanov, "The calculation of the interaction of non-stationary shock waves and obstacles", USSR
    Comput. Math. Math. Phys. 1, 1962.
    """
    fastest = np.maximum(
        *(np.abs(_normal_velocity(u, normal)) + sound_speed(u) for u in (left, right))
    )
    F = normal_flux(left, normal) + normal_flux(right, normal)
    return 0.5 * (F - fastest * (right - left))


def hllc(left: np.ndarray, right: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """The flux of Harten, Lax and van Leer with a contact, (4, ...); arguments as in `roe`.

    Between the fastest waves to the left, SL, and to the right, SR, lie two constant states that
    share the normal velocity SM and the pressure; what conservation across SL, SM and SR leaves
    of them is

        u* = rho (S - un) / (S - SM) (1, v + (SM - un) n, E + (SM - un) (SM + p / (rho (S - un))))

    on either side, with its own S, and F* = F + S (u* - u). A contact at rest has SM = 0 and stays.
    SL and SR are the extremes of the own speeds and of those of Roe's average, which keeps
    densities and pressures positive.

    References
    ----------
    Toro, Spruce and Speares, "Restoration of the contact surface in the HLL-Riemann solver", Shock
    Waves 4, 1994. Batten, Clarke, Lambert and Causon, "On the choice of wavespeeds for the HLLC
    Riemann solver", SIAM J. Sci. Comput. 18, 1997.
    """
    u, v, _, c = roe_average(left, right)
    un = u * normal[0] + v * normal[1]
    vl, vr = _normal_velocity(left, normal), _normal_velocity(right, normal)
    SL = np.minimum(vl - sound_speed(left), un - c)
    SR = np.maximum(vr + sound_speed(right), un + c)
    # Mass that each outer wave takes in: rho (S - un), negative on the left, positive on the right.
    ml, mr = left[0] * (SL - vl), right[0] * (SR - vr)
    SM = (pressure(right) - pressure(left) + ml * vl - mr * vr) / (ml - mr)

    from_left = SM >= 0
    upwind = np.where(from_left, left, right)
    S, vn, m = (np.where(from_left, *pair) for pair in ((SL, SR), (vl, vr), (ml, mr)))
    star = m / (S - SM) * upwind / upwind[0]
    star[1] += m / (S - SM) * (SM - vn) * normal[0]
    star[2] += m / (S - SM) * (SM - vn) * normal[1]
    star[3] += m / (S - SM) * (SM - vn) * (SM + pressure(upwind) / m)
    # An outer wave that runs away from the edge leaves the upwind state there.
    S = np.where(from_left, np.minimum(S, 0), np.maximum(S, 0))
    return normal_flux(upwind, normal) + S * (star - upwind)


FLUXES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "roe": roe,
    "rusanov": rusanov,
    "hllc": hllc,
}
