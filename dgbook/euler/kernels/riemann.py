"""Numerical fluxes as device functions: Roe's, Rusanov's and HLLC."""

import math

import numpy as np

from dgbook.euler.problem import ENTROPY_FIX, GAMMA
from dgbook.gpu import jit

on_device = jit(device=True)


def make_primitive(dtype, compiler=on_device):
    """Device function for u, v and p of a state: 9 flops.

    One of them is a division.
    """
    real = np.dtype(dtype).type
    one, half, gas = real(1), real(0.5), real(GAMMA - 1)

    @compiler
    def primitive(w):
        inverse = one / w[0]
        u, v = w[1] * inverse, w[2] * inverse
        return u, v, gas * (w[3] - half * (w[1] * u + w[2] * v))

    return primitive


def make_flux(name, dtype, compiler=on_device):
    """The flux of problem.FLUXES by that name, as a device function.

    flux(left, right, nx, ny, F) writes to F, four entries, the flux
    along the unit normal, which points from the left to the right
    state. Formulas, names and references are those of
    dgbook.euler.problem. Another `compiler`, such as numba.njit, makes
    the same function for a CPU.
    """
    makers = {
        "roe": make_roe,
        "rusanov": make_rusanov,
        "hllc": make_hllc,
    }
    return makers[name](np.dtype(dtype).type, compiler)


def make_roe(real, compiler):
    """Roe's flux with Harten's entropy fix."""
    primitive = make_primitive(real, compiler)
    one, half, gas = real(1), real(0.5), real(GAMMA - 1)
    fix = real(ENTROPY_FIX)

    @compiler
    def roe(left, right, nx, ny, F):
        # Velocity and pressure of either side.
        ul, vl, pl = primitive(left)
        ur, vr, pr = primitive(right)
        nl, nr = ul * nx + vl * ny, ur * nx + vr * ny
        # Roe's average: weights sqrt(rho), scaled to sum 1.
        a, b = math.sqrt(left[0]), math.sqrt(right[0])
        weight = one / (a + b)
        Hl, Hr = (left[3] + pl) / left[0], (right[3] + pr) / right[0]
        a, b = a * weight, b * weight
        u, v, H = a * ul + b * ur, a * vl + b * vr, a * Hl + b * Hr
        un = u * nx + v * ny
        c = math.sqrt(gas * (H - half * (u * u + v * v)))
        # Wave speeds; Harten's parabola for those of acoustic waves.
        plus, minus, middle = un + c, un - c, abs(un)
        m = max(abs(plus), fix * c)
        plus = half * (plus * plus / m + m)
        m = max(abs(minus), fix * c)
        minus = half * (minus * minus / m + m)
        s, d = half * (plus + minus) - middle, half * (plus - minus)
        # |A| jump = |un| jump + the excess of the acoustic waves.
        d0, d1 = right[0] - left[0], right[1] - left[1]
        d2, d3 = right[2] - left[2], right[3] - left[3]
        dp = (pr - pl) / c
        rho_dun = d1 * nx + d2 * ny - un * d0
        C1, C2 = (s * dp + d * rho_dun) / c, d * dp + s * rho_dun
        p = pl + pr
        F[0] = left[0] * nl + right[0] * nr - middle * d0 - C1
        F[1] = left[1] * nl + right[1] * nr - middle * d1 - C1 * u
        F[2] = left[2] * nl + right[2] * nr - middle * d2 - C1 * v
        F[3] = (left[3] + pl) * nl + (right[3] + pr) * nr - middle * d3
        F[0] = half * F[0]
        F[1] = half * (F[1] + (p - C2) * nx)
        F[2] = half * (F[2] + (p - C2) * ny)
        F[3] = half * (F[3] - C1 * H - C2 * un)

    return roe


def make_rusanov(real, compiler):
    """Rusanov's flux."""
    primitive = make_primitive(real, compiler)
    half, gamma = real(0.5), real(GAMMA)

    @compiler
    def rusanov(left, right, nx, ny, F):
        # Velocity and pressure of either side.
        ul, vl, pl = primitive(left)
        ur, vr, pr = primitive(right)
        nl, nr = ul * nx + vl * ny, ur * nx + vr * ny
        # The largest speed of either side damps the jump.
        fastest = max(
            abs(nl) + math.sqrt(gamma * pl / left[0]),
            abs(nr) + math.sqrt(gamma * pr / right[0]),
        )
        a, b, p = nl + fastest, nr - fastest, pl + pr
        F[0] = half * (left[0] * a + right[0] * b)
        F[1] = half * (left[1] * a + right[1] * b + p * nx)
        F[2] = half * (left[2] * a + right[2] * b + p * ny)
        F[3] = half * (left[3] * a + right[3] * b + pl * nl + pr * nr)

    return rusanov


def make_hllc(real, compiler):
    """HLLC, the flux of Harten, Lax, van Leer with a contact wave."""
    primitive = make_primitive(real, compiler)
    zero, one, half = real(0), real(1), real(0.5)
    gamma, gas = real(GAMMA), real(GAMMA - 1)

    @compiler
    def hllc(left, right, nx, ny, F):
        # Velocity and pressure of either side.
        ul, vl, pl = primitive(left)
        ur, vr, pr = primitive(right)
        nl, nr = ul * nx + vl * ny, ur * nx + vr * ny
        # Roe's average.
        a, b = math.sqrt(left[0]), math.sqrt(right[0])
        weight = one / (a + b)
        Hl, Hr = (left[3] + pl) / left[0], (right[3] + pr) / right[0]
        a, b = a * weight, b * weight
        u, v, H = a * ul + b * ur, a * vl + b * vr, a * Hl + b * Hr
        un = u * nx + v * ny
        c = math.sqrt(gas * (H - half * (u * u + v * v)))
        # Speeds of the outer waves and of the contact wave.
        SL = min(nl - math.sqrt(gamma * pl / left[0]), un - c)
        SR = max(nr + math.sqrt(gamma * pr / right[0]), un + c)
        ml, mr = left[0] * (SL - nl), right[0] * (SR - nr)
        SM = (pr - pl + ml * nl - mr * nr) / (ml - mr)
        # The state on that side of the contact where the edge lies.
        if SM >= zero:
            S, vn, p, m, outer = SL, nl, pl, ml, min(SL, zero)
            w0, w1, w2, w3 = left[0], left[1], left[2], left[3]
        else:
            S, vn, p, m, outer = SR, nr, pr, mr, max(SR, zero)
            w0, w1, w2, w3 = right[0], right[1], right[2], right[3]
        # The state between the waves, star being its density; the flux.
        star = m / (S - SM)
        push = star * (SM - vn)
        ratio = star / w0
        F[0] = w0 * vn + outer * (star - w0)
        F[1] = w1 * vn + p * nx + outer * (ratio * w1 + push * nx - w1)
        F[2] = w2 * vn + p * ny + outer * (ratio * w2 + push * ny - w2)
        energy = ratio * w3 + push * (SM + p / m)
        F[3] = (w3 + p) * vn + outer * (energy - w3)

    return hllc
