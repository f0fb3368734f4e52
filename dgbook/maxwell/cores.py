"""A whole stage on processor cores: vectors of elements, and matrices in registers."""

from __future__ import annotations

import sys

import numba
import numpy as np

from dgbook.gpu import Device
from dgbook.maxwell.reference import Operator
from dgbook.mesh.geometry import map_derivatives
from dgbook.nodal.cores import BLOCKS, CoreStage, Sources, advance
from dgbook.nodal.lanes import (
    by_rows,
    difference_of_two,
    gather,
    load,
    product_of_two,
    room,
    rows_together,
    store,
)

ELEMENT = 13
"""Vectors that describe the elements of a block: x_i, 1 / J, 1 / epsilon, 1 / mu and Z / mu."""
FACE = 10
"""And a face: t_1, t_2, and the four weights of the flux."""


@numba.njit
def _surface(both, u, b, at, Np, Nfp, L, data, faces, nodes, places, edges, mirrors, given, flux):
    """Components of the fluxes along t_1 and t_2, at all nodes of the faces of a block."""
    field, start, face, rows = Np * L, b * 6 * Np * L, Nfp * L, 4 if both else 2
    known = data.size // 6
    for f in range(4):
        g = (b * 4 + f) * FACE * L
        x1, y1, z1 = load(faces, g), load(faces, g + L), load(faces, g + 2 * L)
        x2, y2, z2 = load(faces, g + 3 * L), load(faces, g + 4 * L), load(faces, g + 5 * L)
        wE, wH = load(faces, g + 6 * L), load(faces, g + 7 * L)
        vE, vH = load(faces, g + 8 * L), load(faces, g + 9 * L)
        edge = edges[b * 4 + f]
        for i in range(Nfp):
            mine = start + nodes[f * Nfp + i] * L
            p = ((b * 4 + f) * Nfp + i) * L
            E0, H0 = gather(u, 0, places, p), gather(u, 3 * field, places, p)
            E1, H1 = gather(u, field, places, p), gather(u, 4 * field, places, p)
            E2, H2 = gather(u, 2 * field, places, p), gather(u, 5 * field, places, p)
            if edge >= 0:  # some have no neighbor, and have found themselves
                m = edge * 3 * L
                mE, mH, out = load(mirrors, m), load(mirrors, m + L), load(mirrors, m + 2 * L)
                E0 = mE * E0 + out * gather(data, i, given, edge * L)
                E1 = mE * E1 + out * gather(data, known + i, given, edge * L)
                E2 = mE * E2 + out * gather(data, 2 * known + i, given, edge * L)
                H0 = mH * H0 + out * gather(data, 3 * known + i, given, edge * L)
                H1 = mH * H1 + out * gather(data, 4 * known + i, given, edge * L)
                H2 = mH * H2 + out * gather(data, 5 * known + i, given, edge * L)
            E0, H0 = E0 - load(u, mine), H0 - load(u, mine + 3 * field)
            E1, H1 = E1 - load(u, mine + field), H1 - load(u, mine + 4 * field)
            E2, H2 = E2 - load(u, mine + 2 * field), H2 - load(u, mine + 5 * field)
            Ea, Eb = E0 * x1 + E1 * y1 + E2 * z1, E0 * x2 + E1 * y2 + E2 * z2
            Ha, Hb = H0 * x1 + H1 * y1 + H2 * z1, H0 * x2 + H1 * y2 + H2 * z2
            to = at + f * rows * face + i * L
            store(flux, to, wE * Ea - wH * Hb)
            store(flux, to + face, wE * Eb + wH * Ha)
            if both:
                store(flux, to + 2 * face, vE * Eb + vH * Ha)
                store(flux, to + 3 * face, vH * Hb - vE * Ea)


@numba.njit
def _covariant(u, start, Np, L, elements, g, work):
    """x_i . E and x_i . H at the nodes of a block."""
    field = Np * L
    x1, y1, z1 = load(elements, g), load(elements, g + L), load(elements, g + 2 * L)
    x2, y2, z2 = load(elements, g + 3 * L), load(elements, g + 4 * L), load(elements, g + 5 * L)
    x3, y3, z3 = load(elements, g + 6 * L), load(elements, g + 7 * L), load(elements, g + 8 * L)
    for half in range(0, 6 * field, 3 * field):
        for to in range(half, half + field, L):
            at = start + to
            X, Y, Z = load(u, at), load(u, at + field), load(u, at + 2 * field)
            store(work, to, x1 * X + y1 * Y + z1 * Z)
            store(work, to + field, x2 * X + y2 * Y + z2 * Z)
            store(work, to + 2 * field, x3 * X + y3 * Y + z3 * Z)


@numba.njit
def _slopes(both, Np, L, elements, g, faces, t, work, curls, lifted):
    """du/dt in x, y and z, from the curls and what is lifted from each face."""
    field, n = Np * L, 4 if both else 2
    x1, y1, z1 = load(elements, g), load(elements, g + L), load(elements, g + 2 * L)
    x2, y2, z2 = load(elements, g + 3 * L), load(elements, g + 4 * L), load(elements, g + 5 * L)
    x3, y3, z3 = load(elements, g + 6 * L), load(elements, g + 7 * L), load(elements, g + 8 * L)
    scale, epsilon = load(elements, g + 9 * L), load(elements, g + 10 * L)
    mu, across = load(elements, g + 11 * L), load(elements, g + 12 * L)
    for at in range(0, field, L):
        h = curls + 3 * field + at
        T1, T2, T3 = load(work, h), load(work, h + field), load(work, h + 2 * field)
        E0 = scale * (x1 * T1 + x2 * T2 + x3 * T3)
        E1 = scale * (y1 * T1 + y2 * T2 + y3 * T3)
        E2 = scale * (z1 * T1 + z2 * T2 + z3 * T3)
        h = curls + at
        T1, T2, T3 = load(work, h), load(work, h + field), load(work, h + 2 * field)
        H0 = scale * (x1 * T1 + x2 * T2 + x3 * T3)
        H1 = scale * (y1 * T1 + y2 * T2 + y3 * T3)
        H2 = scale * (z1 * T1 + z2 * T2 + z3 * T3)
        S0, S1, S2 = 0 * E0, 0 * E0, 0 * E0
        for f in range(4):
            n1, h = t + f * FACE * L, lifted + f * n * field + at
            s1, s2 = load(work, h), load(work, h + field)
            p, q = load(faces, n1), load(faces, n1 + 3 * L)
            r1, r2 = s2, -s1
            if both:
                r1, r2 = load(work, h + 2 * field), load(work, h + 3 * field)
            E0, S0 = E0 + s1 * p + s2 * q, S0 + r1 * p + r2 * q
            p, q = load(faces, n1 + L), load(faces, n1 + 4 * L)
            E1, S1 = E1 + s1 * p + s2 * q, S1 + r1 * p + r2 * q
            p, q = load(faces, n1 + 2 * L), load(faces, n1 + 5 * L)
            E2, S2 = E2 + s1 * p + s2 * q, S2 + r1 * p + r2 * q
        store(work, at, epsilon * E0)
        store(work, at + field, epsilon * E1)
        store(work, at + 2 * field, epsilon * E2)
        store(work, at + 3 * field, across * S0 - mu * H0)
        store(work, at + 4 * field, across * S1 - mu * H1)
        store(work, at + 5 * field, across * S2 - mu * H2)


@numba.njit
def _blocks(first, last, both, u, res, new, data, a, b, dt, sizes, matrices, elements, faces, nodes,
            places, edges, mirrors, given):  # fmt: skip
    """The stage in the blocks from one to another."""
    Np, Nfp, rows, L = sizes
    field, face, n = Np * L, Nfp * L, 4 if both else 2
    half, lifts = 3 * field, 3 * Np * Np
    # Covariant components, contravariant curls, fluxes, and what is lifted from each face.
    work = room(u, (12 + 4 * n) * field + 4 * n * face)
    curls = 6 * field
    lifted, flux = 12 * field, (12 + 4 * n) * field
    for block in range(first, last):
        start, g = block * 6 * field, block * ELEMENT * L
        _covariant(u, start, Np, L, elements, g, work)
        # J curl: d_j E_k - d_k E_j, and of H at once.
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            difference_of_two(
                rows, Np, Np, matrices, j * Np * Np, k * Np * Np,
                work, k * field, j * field, half, work, curls + i * field, half,
            )  # fmt: skip
        # What the faces add.
        _surface(both, u, block, flux, Np, Nfp, L, data, faces, nodes, places, edges, mirrors,
                 given, work)  # fmt: skip
        for f in range(4):
            for c in range(0, n, 2):
                product_of_two(
                    rows, Np, Nfp, matrices, lifts + f * Np * Nfp, work, flux + (f * n + c) * face,
                    face, work, lifted + (f * n + c) * field, field, False,
                )  # fmt: skip
        _slopes(both, Np, L, elements, g, faces, block * 4 * FACE * L, work, curls, lifted)
        # The step in time, in the order of memory.
        advance(u, res, new, start, 6 * field, L, a, b, dt, work)


@numba.njit(parallel=True, cache=True)
def _stage(sources, blocks, both, u, res, new, data, a, b, dt, sizes, matrices, elements, faces,
           nodes, places, edges, mirrors, given):  # fmt: skip
    for piece in numba.prange(-(-blocks // BLOCKS)):
        _blocks(piece * BLOCKS, min(blocks, (piece + 1) * BLOCKS), both, u, res, new, data, a, b,
                dt, sizes, matrices, elements, faces, nodes, places, edges, mirrors,
                given)  # fmt: skip


class Cores(CoreStage):
    """A whole stage of Maxwell's equations on all cores, of either flux.

    In an element the covariant components x_i . E and x_i . H make the contravariant components of
    J curl with 12 products with an entry of D. The upwind flux has two components along a face,
    since that of H is -Z n x that of E; the central flux has four.

    Parameters
    ----------
    operator : Operator
    device : Device
        "cpu".
    """

    sources = Sources(sys.modules[__name__])
    kernel = staticmethod(_stage)

    def __init__(self, operator: Operator, device: Device) -> None:
        element, dtype = operator.element, operator.lift.dtype.name
        super().__init__(operator, device, dtype, 6)
        both = operator.flux == "central"
        x = map_derivatives(operator.mesh.vertices, operator.mesh.elements)
        J, epsilon, mu = (
            np.asarray(v, np.float64)[:, None]
            for v in (operator.jacobian, operator.epsilon, operator.mu)
        )
        across = 1 / mu if both else np.sqrt(mu / epsilon) / mu
        of_elements = [x.swapaxes(1, 2).reshape(-1, 9), 1 / J, 1 / epsilon, 1 / mu, across]
        Z, Zp, a, Fs = (
            v.astype(np.float64)[..., None]
            for v in (operator.impedance, operator.neighbor_impedance, operator.upwinding,
                      operator.face_scale)
        )  # fmt: skip
        weights = np.concatenate([a, Zp, Z, a * Z * Zp], axis=2) * Fs / (Z + Zp)
        lifts = operator.lift.reshape(element.Np, 4, -1).swapaxes(0, 1)
        matrices = [by_rows(m) for m in (*operator.derivative, *lifts)]
        faces = np.concatenate([_tangents(operator.normals), weights], axis=2)
        self.leading = (self.sources, self.computed, both)
        self.arguments = (
            (element.Np, element.Nfp, rows_together(element.Np), self.L),
            np.concatenate(matrices),
            self.by_blocks(np.concatenate(of_elements, axis=1)),
            self.by_blocks(faces),
            element.face_nodes.ravel().astype(np.int64),
            self.places,
            *self.on_boundary(operator.mirrors, np.ones(2)),
        )


def _tangents(normals: np.ndarray) -> np.ndarray:
    """Unit vectors t_1, t_2 with n x t_1 = t_2, behind each other, (K, 4, 6) float64.

    Without a branch and without a quotient that cancels: Duff et al., "Building an orthonormal
    basis, revisited", Journal of Computer Graphics Techniques 6(1), 2017.
    """
    x, y, z = np.moveaxis(normals.astype(np.float64), 2, 0)
    sign = np.copysign(1.0, z)
    a = -1 / (sign + z)
    b = x * y * a
    return np.stack([1 + sign * x * x * a, sign * b, -sign * x, b, sign + y * y * a, -y], axis=2)
