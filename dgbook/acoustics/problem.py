"""The acoustic wave equations as a first-order system: fluxes and boundary conditions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

FIELDS = ("p", "u", "v", "w")
FLUXES = ("upwind", "penalty", "central")
CONDITIONS = ("soft", "rigid", "absorbing")


def mirror(condition: str | Callable) -> tuple[float, float]:
    """How a boundary mirrors the fields: p^+ = m_p p^- + g_p and v^+ = m_v v^- + g_v.

    A sound-soft wall turns the pressure round, so that its mean on the wall is zero: p = 0, the
    homogeneous Dirichlet condition of chan2015. A rigid one turns the velocity round: n.v = 0 (the
    flux sees no other component of v). Behind an absorbing boundary there is nothing, and behind
    one with an incident field there is that field: the flux takes what comes in and lets out what
    leaves.

    Returns
    -------
    m_p, m_v : float
    """
    walls = {"soft": (-1.0, 1.0), "rigid": (1.0, -1.0)}
    return (0.0, 0.0) if callable(condition) else walls.get(condition, (0.0, 0.0))


def flux_weights(flux: str, Z: np.ndarray, Zp: np.ndarray) -> np.ndarray:
    """The four numbers of a numerical flux at a face between impedances Z^- and Z^+.

    With jumps [q] = q^+ - q^- and the outward normal n, what the surface adds to the equations of p
    and of v is the lift of

        flux_p =    a [p] - b n.[v],
        flux_v = n (c n.[v] - d [p]).

    =======  ===============  ===============  ===================  ===============
    flux     a                b                c                    d
    =======  ===============  ===============  ===================  ===============
    upwind   1 / (Z^- + Z^+)  Z^+ / (Z^-+Z^+)  Z^- Z^+ / (Z^-+Z^+)  Z^- / (Z^-+Z^+)
    penalty  1 / (2 {Z})      1/2              {Z} / 2              1/2
    central  0                Z^+ / (Z^-+Z^+)  0                    Z^- / (Z^-+Z^+)
    =======  ===============  ===============  ===================  ===============

    "penalty" is chan2015's, equations (1) and (2), with tau_p = 1/{rho c}, tau_u = {rho c} and the
    mean {Z} = (Z^- + Z^+) / 2: plain means of p and v, and a penalty on the jumps. "upwind" is the
    exact solution of the Riemann problem between two media, and "central" is upwind without its
    penalties. Where Z^- = Z^+ the first two agree. Where Z^+ is much larger, penalty damps jumps of
    n.v at (1 + Z^+/Z^-) / 4 of the rate at which waves cross the element, upwind never at more
    than that rate: see ``reference.Operator.stiffness``.

    **Rank 1.** For upwind and penalty a c = b d: the two rows are multiples of each other, and one
    scalar s = a [p] - b n.[v] is all that has to be lifted from a face:

        flux_p = s,    flux_v = -r n s,    r = c / b = d / a  (upwind: Z^-, penalty: {Z}).

    Parameters
    ----------
    flux : {"upwind", "penalty", "central"}
    Z, Zp : arrays of one shape
        Impedances rho c = sqrt(kappa rho) of the element and of its neighbor.

    Returns
    -------
    (4, ...) array
        a, b, c, d.
    """
    total, half = Z + Zp, np.full(Z.shape, 0.5)
    if flux == "upwind":
        return np.stack([1 / total, Zp / total, Z * Zp / total, Z / total])
    if flux == "penalty":
        return np.stack([1 / total, half, total / 4, half])
    return np.stack([0 * half, Zp / total, 0 * half, Z / total])
