"""A whole stage on processor cores: vectors of elements, and matrices in registers."""

from __future__ import annotations

import sys
from typing import Any

import numba
import numpy as np

from dgbook.gpu import Device
from dgbook.maxwell.reference import Operator
from dgbook.mesh.geometry import map_derivatives
from dgbook.nodal import local_cores
from dgbook.nodal.cores import BLOCKS, CoreLauncher, CoreStage, Sources, advance
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
from dgbook.nodal.local import Clusters
from dgbook.nodal.local_cores import LocalCores, expand, keep, reads, region_of, to_nodes

ELEMENT = 13
"""Vectors that describe the elements of a block: x_i, 1 / J, 1 / epsilon, 1 / mu and Z / mu."""
LOCAL_ELEMENT = ELEMENT + 15
"""With local time steps also dr_i/dx, and x_i . x_j / J."""
FACE = 10
"""And a face: t_1, t_2, and the four weights of the flux."""


@numba.njit
def _surface(both, u, shift, b, table, at, Np, Nfp, L, data, faces, nodes, places, edges, mirrors,
             given, flux):  # fmt: skip
    """Components of the fluxes along t_1 and t_2, at all nodes of the faces of a block.

    The fields begin at `shift` in u; those of the block and its neighbors are where the block and
    the table of places say.
    """
    field, start, face, rows = Np * L, shift + b * 6 * Np * L, Nfp * L, 4 if both else 2
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
            p = ((table * 4 + f) * Nfp + i) * L
            E0, H0 = gather(u, shift, places, p), gather(u, shift + 3 * field, places, p)
            E1, H1 = gather(u, shift + field, places, p), gather(u, shift + 4 * field, places, p)
            E2 = gather(u, shift + 2 * field, places, p)
            H2 = gather(u, shift + 5 * field, places, p)
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
def _add_faces(both, E0, E1, E2, L, faces, t, work, lifted, at, field):
    """What is lifted to a node, of the first equation added to E, of the second alone."""
    n = 4 if both else 2
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
    return E0, E1, E2, S0, S1, S2


@numba.njit
def _slopes(both, Np, L, elements, g, faces, t, work, curls, lifted):
    """du/dt in x, y and z, from the curls and what is lifted from each face."""
    field = Np * L
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
        E0, E1, E2, S0, S1, S2 = _add_faces(both, E0, E1, E2, L, faces, t, work, lifted, at, field)
        store(work, at, epsilon * E0)
        store(work, at + field, epsilon * E1)
        store(work, at + 2 * field, epsilon * E2)
        store(work, at + 3 * field, across * S0 - mu * H0)
        store(work, at + 4 * field, across * S1 - mu * H1)
        store(work, at + 5 * field, across * S2 - mu * H2)


@numba.njit
def _curls(height, width, rows, field, L, matrices, of, work, to):
    """J curl of E and of H of a block, contravariant, of their covariant components in `work`.

    By derivatives of so many rows and columns, of which the first begins at `of`.
    """
    size = height * width
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3  # d_j E_k - d_k E_j, and of H at once
        difference_of_two(
            rows, height, width, matrices, of + j * size, of + k * size,
            work, k * field, j * field, 3 * field, work, to + i * field, 3 * field,
        )  # fmt: skip


@numba.njit
def _lift(both, Np, Nfp, rows, L, matrices, of, work, flux, lifted):
    """What is lifted from each face of a block; the first of the matrices begins at `of`."""
    field, face, n = Np * L, Nfp * L, 4 if both else 2
    for f in range(4):
        for c in range(0, n, 2):
            product_of_two(
                rows, Np, Nfp, matrices, of + f * Np * Nfp, work,
                flux + (f * n + c) * face, face, work, lifted + (f * n + c) * field, field, False,
            )  # fmt: skip


@numba.njit
def _blocks(first, last, both, u, res, new, data, a, b, dt, sizes, matrices, elements, faces, nodes,
            places, edges, mirrors, given):  # fmt: skip
    """The stage in the blocks from one to another."""
    Np, Nfp, rows, L = sizes
    field, face, n = Np * L, Nfp * L, 4 if both else 2
    # Covariant components, contravariant curls, fluxes, and what is lifted from each face.
    work = room(u, (12 + 4 * n) * field + 4 * n * face)
    curls = 6 * field
    lifted, flux = 12 * field, (12 + 4 * n) * field
    for block in range(first, last):
        start, g = block * 6 * field, block * ELEMENT * L
        _covariant(u, start, Np, L, elements, g, work)
        _curls(Np, Np, rows, field, L, matrices, 0, work, curls)
        # What the faces add.
        _surface(both, u, 0, block, block, flux, Np, Nfp, L, data, faces, nodes, places, edges,
                 mirrors, given, work)  # fmt: skip
        _lift(both, Np, Nfp, rows, L, matrices, 3 * Np * Np, work, flux, lifted)
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


@numba.njit
def _next_term(modes, field, L, elements, g, work, curls):
    """V times a term of the expansion, covariant, from its curls, in so many modes."""
    epsilon, mu, m = load(elements, g + 10 * L), load(elements, g + 11 * L), g + 22 * L
    g11, g12, g13 = load(elements, m), load(elements, m + L), load(elements, m + 2 * L)
    g22, g23, g33 = load(elements, m + 3 * L), load(elements, m + 4 * L), load(elements, m + 5 * L)
    for i in range(0, modes * L, L):
        h, e = curls + 3 * field + i, i
        T1, T2, T3 = load(work, h), load(work, h + field), load(work, h + 2 * field)
        store(work, e, epsilon * (g11 * T1 + g12 * T2 + g13 * T3))
        store(work, e + field, epsilon * (g12 * T1 + g22 * T2 + g23 * T3))
        store(work, e + 2 * field, epsilon * (g13 * T1 + g23 * T2 + g33 * T3))
        h, e = curls + i, 3 * field + i
        T1, T2, T3 = load(work, h), load(work, h + field), load(work, h + 2 * field)
        store(work, e, -mu * (g11 * T1 + g12 * T2 + g13 * T3))
        store(work, e + field, -mu * (g12 * T1 + g22 * T2 + g23 * T3))
        store(work, e + 2 * field, -mu * (g13 * T1 + g23 * T2 + g33 * T3))


@numba.njit
def _cartesian(Np, L, elements, g, work, at):
    """E and H of their covariant components, in their place."""
    field = Np * L
    x1, y1, z1 = load(elements, g + 13 * L), load(elements, g + 14 * L), load(elements, g + 15 * L)
    x2, y2, z2 = load(elements, g + 16 * L), load(elements, g + 17 * L), load(elements, g + 18 * L)
    x3, y3, z3 = load(elements, g + 19 * L), load(elements, g + 20 * L), load(elements, g + 21 * L)
    for half in range(at, at + 6 * field, 3 * field):
        for i in range(half, half + field, L):
            a, b, c = load(work, i), load(work, i + field), load(work, i + 2 * field)
            store(work, i, a * x1 + b * x2 + c * x3)
            store(work, i + field, a * y1 + b * y2 + c * y3)
            store(work, i + 2 * field, a * z1 + b * z2 + c * z3)


@numba.njit
def _end(ends, Np, L, elements, g, faces, t, state, start, work, lifted, to):
    """The state in `work`; at the end of a step with what the faces add."""
    field = Np * L
    epsilon, across = load(elements, g + 10 * L), load(elements, g + 12 * L)
    zero = 0 * epsilon
    for at in range(0, field, L):
        h, w = start + at, to + at
        E0, E1, E2 = load(state, h), load(state, h + field), load(state, h + 2 * field)
        H0, H1 = load(state, h + 3 * field), load(state, h + 4 * field)
        H2 = load(state, h + 5 * field)
        if ends:
            D0, D1, D2, S0, S1, S2 = _add_faces(
                False, zero, zero, zero, L, faces, t, work, lifted, at, field
            )
            E0, E1, E2 = E0 + epsilon * D0, E1 + epsilon * D1, E2 + epsilon * D2
            H0, H1, H2 = H0 + across * S0, H1 + across * S1, H2 + across * S2
        store(work, w, E0)
        store(work, w + field, E1)
        store(work, w + 2 * field, E2)
        store(work, w + 3 * field, H0)
        store(work, w + 4 * field, H1)
        store(work, w + 5 * field, H2)


@numba.njit
def _local_blocks(first, last, tick, ends, begins, state, integrals, data, weights, groups,
                  matrices, levels, sizes, elements, faces, nodes, places, edges, mirrors,
                  given):  # fmt: skip
    """The steps that end with a tick, and those that begin then, in the blocks between two."""
    Np, Nfp, rows, order, L = sizes
    cluster, shorter = groups[3], groups[5]
    field, face = Np * L, Nfp * L
    count, lifts = 6 * field, len(matrices) - Np * (4 * Nfp + Np)
    # The state, or a term; curls, three sums, and over these what is lifted, and fluxes.
    work = room(state, 2 * count + max(3 * count, 8 * (field + face)))
    curls, sums = count, 2 * count
    lifted, flux = sums, sums + 8 * field
    for block in range(first, last):
        start, g = block * count, block * LOCAL_ELEMENT * L
        if ends:
            region, table = reads(tick, block, groups)
            shift = region * region_of(groups) * count
            _surface(False, integrals, shift, block, table, flux, Np, Nfp, L, data, faces, nodes,
                     places, edges, mirrors, given, work)  # fmt: skip
            _lift(False, Np, Nfp, rows, L, matrices, lifts, work, flux, lifted)
        _end(ends, Np, L, elements, g, faces, block * 4 * FACE * L, state, start, work, lifted,
             curls)  # fmt: skip
        if begins:
            _covariant(work, curls, Np, L, elements, g, work)
            at, halved, of = cluster[block] * 3 * (order + 1), shorter[block] >= 0, 0
            for j in range(order + 1):
                width = levels[j, 0]
                expand(j, 6, width, work, field, L, weights, at, sums, halved)
                if j < order:
                    height, together = levels[j + 1]
                    _curls(height, width, together, field, L, matrices, of, work, curls)
                    _next_term(height, field, L, elements, g, work, curls)
                    of += 3 * height * width
            for s in range(3 if halved else 2):
                _cartesian(Np, L, elements, g, work, sums + s * count)
            to_nodes(6, Np, rows, L, matrices, work, sums + count, 0)
            if halved:
                to_nodes(6, Np, rows, L, matrices, work, sums + 2 * count, count)
            keep(work, 0, count, count, L, integrals, tick + 1, block, groups)
        to = sums if begins else curls
        for i in range(0, count, L):
            store(state, start + i, load(work, to + i))


@numba.njit(parallel=True, cache=True)
def _local(sources, blocks, tick, ends, begins, state, integrals, data, weights, groups, matrices,
           levels, sizes, elements, faces, nodes, places, edges, mirrors, given):  # fmt: skip
    for piece in numba.prange(-(-blocks // BLOCKS)):
        _local_blocks(piece * BLOCKS, min(blocks, (piece + 1) * BLOCKS), tick, ends, begins, state,
                      integrals, data, weights, groups, matrices, levels, sizes, elements, faces,
                      nodes, places, edges, mirrors, given)  # fmt: skip


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
        lifts = operator.lift.reshape(element.Np, 4, -1).swapaxes(0, 1)
        matrices = [by_rows(m) for m in (*operator.derivative, *lifts)]
        self.leading = (self.sources, self.computed, operator.flux == "central")
        self.arguments = (
            (element.Np, element.Nfp, rows_together(element.Np), self.L),
            np.concatenate(matrices),
            *_arrays(self, operator, _elements(operator)),
        )


class LocalSteps(LocalCores):
    """Taylor steps in clusters, of the upwind flux; terms of an expansion are covariant components.

    Parameters
    ----------
    operator : Operator
    device : Device
        "cpu".
    clusters : Clusters
    """

    sources = Sources(sys.modules[__name__], local_cores)
    kernel = staticmethod(_local)

    def __init__(self, operator: Operator, device: Device, clusters: Clusters) -> None:
        element, dtype = operator.element, operator.lift.dtype.name
        super().__init__(operator, device, dtype, 6, clusters, element)
        x = map_derivatives(operator.mesh.vertices, operator.mesh.elements)
        i, j = np.triu_indices(3)
        metric = np.einsum("kdi,kdj->kij", x, x)[:, i, j] / operator.jacobian[:, None]
        inverse = np.linalg.inv(x).reshape(-1, 9)
        elements = np.concatenate([_elements(operator), inverse, metric], axis=1)
        self.arguments = (
            (element.Np, element.Nfp, rows_together(element.Np), element.order, self.L),
            *_arrays(self, operator, elements),
        )


def _elements(operator: Operator) -> np.ndarray:
    """What describes elements, (K, ELEMENT) float64."""
    x = map_derivatives(operator.mesh.vertices, operator.mesh.elements)
    J, epsilon, mu = (
        np.asarray(v, np.float64)[:, None]
        for v in (operator.jacobian, operator.epsilon, operator.mu)
    )
    across = 1 / mu if operator.flux == "central" else np.sqrt(mu / epsilon) / mu
    of_elements = [x.swapaxes(1, 2).reshape(-1, 9), 1 / J, 1 / epsilon, 1 / mu, across]
    return np.concatenate(of_elements, axis=1)


def _arrays(cores: CoreLauncher, operator: Operator, elements: np.ndarray) -> tuple[Any, ...]:
    """What kernels get of an operator, of which `elements` are described like this."""
    element = operator.element
    Z, Zp, a, Fs = (
        v.astype(np.float64)[..., None]
        for v in (operator.impedance, operator.neighbor_impedance, operator.upwinding,
                  operator.face_scale)
    )  # fmt: skip
    weights = np.concatenate([a, Zp, Z, a * Z * Zp], axis=2) * Fs / (Z + Zp)
    faces = np.concatenate([_tangents(operator.normals), weights], axis=2)
    return (
        cores.by_blocks(elements),
        cores.by_blocks(faces),
        element.face_nodes.ravel().astype(np.int64),
        cores.places,
        *cores.on_boundary(operator.mirrors, np.ones(2)),
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
