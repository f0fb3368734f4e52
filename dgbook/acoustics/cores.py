"""A whole stage on processor cores, in either basis: vectors of elements."""

from __future__ import annotations

import sys
from typing import Any

import numba
import numpy as np

from dgbook.acoustics.reference import NodalBasis, Operator
from dgbook.element import NodalElement
from dgbook.gpu import Device
from dgbook.mesh.geometry import map_derivatives
from dgbook.nodal import local_cores
from dgbook.nodal.bernstein import BernsteinBasis
from dgbook.nodal.cores import BLOCKS, CoreLauncher, CoreStage, Sources, advance
from dgbook.nodal.lanes import (
    by_rows,
    gather,
    load,
    product,
    product_of_two,
    room,
    rows_together,
    store,
)
from dgbook.nodal.local import Clusters
from dgbook.nodal.local_cores import LocalCores, expand, keep, reads, region_of, to_nodes

ELEMENT = 11
"""Vectors that describe the elements of a block: dr_i/dx_d, kappa and 1 / rho."""
LOCAL_ELEMENT = ELEMENT + 15
"""With local time steps also dx/dr_i, and dr_i/dx . dr_j/dx."""
FACE = 8
"""And a face: n, the four weights of the flux, and -r."""


@numba.njit
def _contravariant(u, start, Np, L, elements, g, work):
    """The pressure, and w_i = (dr_i/dx) . v, at the nodes of a block."""
    field = Np * L
    x1, y1, z1 = load(elements, g), load(elements, g + L), load(elements, g + 2 * L)
    x2, y2, z2 = load(elements, g + 3 * L), load(elements, g + 4 * L), load(elements, g + 5 * L)
    x3, y3, z3 = load(elements, g + 6 * L), load(elements, g + 7 * L), load(elements, g + 8 * L)
    for to in range(0, field, L):
        at = start + to
        store(work, to, load(u, at))
        X, Y, Z = load(u, at + field), load(u, at + 2 * field), load(u, at + 3 * field)
        store(work, to + field, x1 * X + y1 * Y + z1 * Z)
        store(work, to + 2 * field, x2 * X + y2 * Y + z2 * Z)
        store(work, to + 3 * field, x3 * X + y3 * Y + z3 * Z)


@numba.njit
def _surface(both, u, shift, b, table, at, Np, Nfp, L, data, faces, nodes, places, edges, mirrors,
             given, flux):  # fmt: skip
    """The fluxes at all nodes of the faces of a block: that of p, and with `both` n . that of v.

    The fields begin at `shift` in u; those of the block and its neighbors are where the block and
    the table of places say.
    """
    field, start, face, n = Np * L, shift + b * 4 * Np * L, Nfp * L, 2 if both else 1
    known = data.size // 4
    for f in range(4):
        t = (b * 4 + f) * FACE * L
        x, y, z = load(faces, t), load(faces, t + L), load(faces, t + 2 * L)
        wa, wb = load(faces, t + 3 * L), load(faces, t + 4 * L)
        wc, wd = load(faces, t + 5 * L), load(faces, t + 6 * L)
        edge = edges[b * 4 + f]
        for i in range(Nfp):
            mine = start + nodes[f * Nfp + i] * L
            here = ((table * 4 + f) * Nfp + i) * L
            p, X = gather(u, shift, places, here), gather(u, shift + field, places, here)
            Y = gather(u, shift + 2 * field, places, here)
            Z = gather(u, shift + 3 * field, places, here)
            if edge >= 0:  # some have no neighbor, and have found themselves
                m = edge * 3 * L
                mp, mv, out = load(mirrors, m), load(mirrors, m + L), load(mirrors, m + 2 * L)
                p = mp * p + out * gather(data, i, given, edge * L)
                X = mv * X + out * gather(data, known + i, given, edge * L)
                Y = mv * Y + out * gather(data, 2 * known + i, given, edge * L)
                Z = mv * Z + out * gather(data, 3 * known + i, given, edge * L)
            p, X = p - load(u, mine), X - load(u, mine + field)
            Y, Z = Y - load(u, mine + 2 * field), Z - load(u, mine + 3 * field)
            normal = x * X + y * Y + z * Z
            to = at + f * n * face + i * L
            store(flux, to, wa * p - wb * normal)
            if both:
                store(flux, to + face, wc * normal - wd * p)


@numba.njit
def _add_faces(both, p, X, Y, Z, i, L, faces, t, order, work, lifted, field):
    """What is lifted to node i, added to the slopes of p and v."""
    n = 2 if both else 1
    for f in range(4):
        s, h = t + f * FACE * L, lifted + f * n * field + order[4 * i + f] * L
        l = load(work, h)
        p = p + l
        if both:
            l = load(work, h + field)
        else:
            l = load(faces, s + 7 * L) * l
        X, Y = X + load(faces, s) * l, Y + load(faces, s + L) * l
        Z = Z + load(faces, s + 2 * L) * l
    return p, X, Y, Z


@numba.njit
def _slopes(both, Np, L, elements, g, faces, t, order, work, parts, lifted):
    """du/dt from div v, the derivatives of p along the axes, and what is lifted from each face."""
    field = Np * L
    x1, y1, z1 = load(elements, g), load(elements, g + L), load(elements, g + 2 * L)
    x2, y2, z2 = load(elements, g + 3 * L), load(elements, g + 4 * L), load(elements, g + 5 * L)
    x3, y3, z3 = load(elements, g + 6 * L), load(elements, g + 7 * L), load(elements, g + 8 * L)
    kappa, rho = load(elements, g + 9 * L), load(elements, g + 10 * L)
    for i in range(Np):
        at = i * L
        h = parts + at
        p = -load(work, h)
        a1, a2, a3 = load(work, h + field), load(work, h + 2 * field), load(work, h + 3 * field)
        X = -(x1 * a1 + x2 * a2 + x3 * a3)
        Y = -(y1 * a1 + y2 * a2 + y3 * a3)
        Z = -(z1 * a1 + z2 * a2 + z3 * a3)
        p, X, Y, Z = _add_faces(both, p, X, Y, Z, i, L, faces, t, order, work, lifted, field)
        store(work, at, kappa * p)
        store(work, at + field, rho * X)
        store(work, at + 2 * field, rho * Y)
        store(work, at + 3 * field, rho * Z)


@numba.njit
def _derivatives(height, width, rows, field, L, matrices, of, work, parts):
    """div v, and the derivatives of p along the axes, of p and w_i in `work`.

    By derivatives of so many rows and columns, of which the first begins at `of`. Behind `parts`
    there is room for seven fields.
    """
    # dp/dr_i and dw_i/dr_i at once, then the divergence.
    for i in range(3):
        product_of_two(
            rows, height, width, matrices, of + i * height * width, work, 0, (1 + i) * field,
            work, parts + (1 + i) * field, 3 * field, False,
        )  # fmt: skip
    for at in range(parts, parts + height * L, L):
        first_two = load(work, at + 4 * field) + load(work, at + 5 * field)
        store(work, at, first_two + load(work, at + 6 * field))


@numba.njit
def _lift(both, Np, Nfp, rows, L, matrices, of, work, flux, lifted):
    """What is lifted from each face of a block; the first of the matrices begins at `of`."""
    field, face, n = Np * L, Nfp * L, 2 if both else 1
    for f in range(4):
        lift, at, to = of + f * Np * Nfp, flux + f * n * face, lifted + f * n * field
        if both:
            product_of_two(rows, Np, Nfp, matrices, lift, work, at, face, work, to, field, False)
        else:
            product(rows, Np, Nfp, matrices, lift, work, at, work, to, False)


@numba.njit
def _nodal(first, last, both, u, res, new, data, a, b, dt, sizes, matrices, elements, faces, order,
           nodes, places, edges, mirrors, given):  # fmt: skip
    """The stage in the nodal basis, in the blocks from one to another."""
    Np, Nfp, rows, L = sizes
    field, face, n = Np * L, Nfp * L, 2 if both else 1
    # Unknowns; derivatives; what is lifted from each face; fluxes.
    work = room(u, (11 + 4 * n) * field + 4 * n * face)
    parts, lifted, flux = 4 * field, 11 * field, (11 + 4 * n) * field
    for block in range(first, last):
        start, g, t = block * 4 * field, block * ELEMENT * L, block * 4 * FACE * L
        _contravariant(u, start, Np, L, elements, g, work)
        _derivatives(Np, Np, rows, field, L, matrices, 0, work, parts)
        # What the faces add.
        _surface(both, u, 0, block, block, flux, Np, Nfp, L, data, faces, nodes, places, edges,
                 mirrors, given, work)  # fmt: skip
        _lift(both, Np, Nfp, rows, L, matrices, 3 * Np * Np, work, flux, lifted)
        _slopes(both, Np, L, elements, g, faces, t, order, work, parts, lifted)
        # The step in time, in the order of memory.
        advance(u, res, new, start, 4 * field, L, a, b, dt, work)


@numba.njit
def _rows(first, last, width, columns, values, L, x, at, to):
    """Some rows of a sparse matrix with `width` entries each, times a column of vectors."""
    for row in range(first, last):
        e = row * width
        total = values[e] * load(x, at + columns[e] * L)
        for j in range(e + 1, e + width):
            total = total + values[j] * load(x, at + columns[j] * L)
        store(x, to + row * L, total)


@numba.njit
def _bernstein(first, last, both, u, res, new, data, a, b, dt, sizes, tables, elements, faces,
               order, nodes, places, edges, mirrors, given):  # fmt: skip
    """The stage in the Bernstein basis, in the blocks from one to another."""
    Np, Nfp, width, L = sizes
    columns, values, face_columns, face_values, sweep_columns, sweep_values = tables
    field, face, n = Np * L, Nfp * L, 2 if both else 1
    # Unknowns; derivatives; what is lifted from each face; fluxes.
    work = room(u, (8 + 4 * n) * field + 4 * n * face)
    parts, lifted, flux = 4 * field, 8 * field, (8 + 4 * n) * field
    for block in range(first, last):
        start, g, t = block * 4 * field, block * ELEMENT * L, block * 4 * FACE * L
        _contravariant(u, start, Np, L, elements, g, work)
        # With d/dr_i = (D_i - D_0) / 2 the divergence has D_0 (-w_1 - w_2 - w_3); the tables hold
        # half of each D_m.
        for i in range(Np):
            e, to = 4 * i, parts + i * L
            c, value = columns[e], values[e]
            p0 = value * load(work, c * L)
            d = -value * (load(work, field + c * L) + load(work, 2 * field + c * L)
                          + load(work, 3 * field + c * L))  # fmt: skip
            for j in range(1, 4):
                c, value = columns[e + j], values[e + j]
                p0 = p0 + value * load(work, c * L)
                d = d - value * (load(work, field + c * L) + load(work, 2 * field + c * L)
                                 + load(work, 3 * field + c * L))  # fmt: skip
            for m in range(1, 4):
                row, p = 4 * m * Np + e, -p0
                for j in range(4):
                    c, value = columns[row + j], values[e + j]
                    p = p + value * load(work, c * L)
                    d = d + value * load(work, m * field + c * L)
                store(work, to + m * field, p)
            store(work, to, d)
        # What the faces add: L_0, then slice by slice through the tetrahedron.
        _surface(both, u, 0, block, block, flux, Np, Nfp, L, data, faces, nodes, places, edges,
                 mirrors, given, work)  # fmt: skip
        for f in range(4 * n):
            to = lifted + f * field
            _rows(0, Nfp, width, face_columns, face_values, L, work, flux + f * face, to)
            _rows(Nfp, Np, 3, sweep_columns, sweep_values, L, work, to, to)
        _slopes(both, Np, L, elements, g, faces, t, order, work, parts, lifted)
        # The step in time, in the order of memory.
        advance(u, res, new, start, 4 * field, L, a, b, dt, work)


@numba.njit
def _next_term(modes, field, L, elements, g, work, parts):
    """V times a term of the expansion, p and w_i in so many modes, from their derivatives."""
    kappa, rho, m = load(elements, g + 9 * L), load(elements, g + 10 * L), g + 20 * L
    g11, g12, g13 = load(elements, m), load(elements, m + L), load(elements, m + 2 * L)
    g22, g23, g33 = load(elements, m + 3 * L), load(elements, m + 4 * L), load(elements, m + 5 * L)
    for i in range(0, modes * L, L):
        h = parts + i
        a, b, c = load(work, h + field), load(work, h + 2 * field), load(work, h + 3 * field)
        store(work, i, -kappa * load(work, h))
        store(work, i + field, -rho * (g11 * a + g12 * b + g13 * c))
        store(work, i + 2 * field, -rho * (g12 * a + g22 * b + g23 * c))
        store(work, i + 3 * field, -rho * (g13 * a + g23 * b + g33 * c))


@numba.njit
def _cartesian(Np, L, elements, g, work, at):
    """v of w_i, in their place; behind each other after p."""
    field = Np * L
    x1, y1, z1 = load(elements, g + 11 * L), load(elements, g + 12 * L), load(elements, g + 13 * L)
    x2, y2, z2 = load(elements, g + 14 * L), load(elements, g + 15 * L), load(elements, g + 16 * L)
    x3, y3, z3 = load(elements, g + 17 * L), load(elements, g + 18 * L), load(elements, g + 19 * L)
    for i in range(at + field, at + 2 * field, L):
        a, b, c = load(work, i), load(work, i + field), load(work, i + 2 * field)
        store(work, i, a * x1 + b * x2 + c * x3)
        store(work, i + field, a * y1 + b * y2 + c * y3)
        store(work, i + 2 * field, a * z1 + b * z2 + c * z3)


@numba.njit
def _end(ends, Np, L, elements, faces, block, order, state, work, lifted, to):
    """The state in `work`; at the end of a step with what the faces add."""
    field, start, g = Np * L, block * 4 * Np * L, block * LOCAL_ELEMENT * L
    kappa, rho = load(elements, g + 9 * L), load(elements, g + 10 * L)
    zero, t = 0 * kappa, block * 4 * FACE * L
    for i in range(Np):
        h, w = start + i * L, to + i * L
        p, X = load(state, h), load(state, h + field)
        Y, Z = load(state, h + 2 * field), load(state, h + 3 * field)
        if ends:
            dp, dX, dY, dZ = _add_faces(
                False, zero, zero, zero, zero, i, L, faces, t, order, work, lifted, field
            )
            p, X, Y, Z = p + kappa * dp, X + rho * dX, Y + rho * dY, Z + rho * dZ
        store(work, w, p)
        store(work, w + field, X)
        store(work, w + 2 * field, Y)
        store(work, w + 3 * field, Z)


@numba.njit
def _local_blocks(first, last, tick, ends, begins, state, integrals, data, weights, groups,
                  matrices, levels, sizes, elements, faces, order, nodes, places, edges, mirrors,
                  given):  # fmt: skip
    """The steps that end with a tick, and those that begin then, in the blocks between two."""
    Np, Nfp, rows, degree, L = sizes
    cluster, shorter = groups[3], groups[5]
    field, face = Np * L, Nfp * L
    count, lifts = 4 * field, len(matrices) - Np * (4 * Nfp + Np)
    # The state, or a term; derivatives, three sums, and over these what is lifted, and fluxes.
    work = room(state, 11 * field + max(3 * count, 4 * (field + face)))
    parts, sums = count, 11 * field
    lifted, flux = sums, sums + 4 * field
    for block in range(first, last):
        start, g = block * count, block * LOCAL_ELEMENT * L
        if ends:
            region, table = reads(tick, block, groups)
            shift = region * region_of(groups) * count
            _surface(False, integrals, shift, block, table, flux, Np, Nfp, L, data, faces, nodes,
                     places, edges, mirrors, given, work)  # fmt: skip
            _lift(False, Np, Nfp, rows, L, matrices, lifts, work, flux, lifted)
        _end(ends, Np, L, elements, faces, block, order, state, work, lifted, parts)
        if begins:
            _contravariant(work, parts, Np, L, elements, g, work)
            at, halved, of = cluster[block] * 3 * (degree + 1), shorter[block] >= 0, 0
            for j in range(degree + 1):
                width = levels[j, 0]
                expand(j, 4, width, work, field, L, weights, at, sums, halved)
                if j < degree:
                    height, together = levels[j + 1]
                    _derivatives(height, width, together, field, L, matrices, of, work, parts)
                    _next_term(height, field, L, elements, g, work, parts)
                    of += 3 * height * width
            for s in range(3 if halved else 2):
                _cartesian(Np, L, elements, g, work, sums + s * count)
            to_nodes(4, Np, rows, L, matrices, work, sums + count, 0)
            if halved:
                to_nodes(4, Np, rows, L, matrices, work, sums + 2 * count, count)
            keep(work, 0, count, count, L, integrals, tick + 1, block, groups)
        to = sums if begins else parts
        for i in range(0, count, L):
            store(state, start + i, load(work, to + i))


@numba.njit(parallel=True, cache=True)
def _local(sources, blocks, tick, ends, begins, state, integrals, data, weights, groups, matrices,
           levels, sizes, elements, faces, order, nodes, places, edges, mirrors,
           given):  # fmt: skip
    for piece in numba.prange(-(-blocks // BLOCKS)):
        _local_blocks(piece * BLOCKS, min(blocks, (piece + 1) * BLOCKS), tick, ends, begins, state,
                      integrals, data, weights, groups, matrices, levels, sizes, elements, faces,
                      order, nodes, places, edges, mirrors, given)  # fmt: skip


@numba.njit(parallel=True, cache=True)
def _nodal_stage(sources, blocks, both, u, res, new, data, a, b, dt, sizes, tables, elements,
                 faces, order, nodes, places, edges, mirrors, given):  # fmt: skip
    for piece in numba.prange(-(-blocks // BLOCKS)):
        _nodal(piece * BLOCKS, min(blocks, (piece + 1) * BLOCKS), both, u, res, new, data, a, b,
               dt, sizes, tables, elements, faces, order, nodes, places, edges, mirrors,
               given)  # fmt: skip


@numba.njit(parallel=True, cache=True)
def _bernstein_stage(sources, blocks, both, u, res, new, data, a, b, dt, sizes, tables, elements,
                     faces, order, nodes, places, edges, mirrors, given):  # fmt: skip
    for piece in numba.prange(-(-blocks // BLOCKS)):
        _bernstein(piece * BLOCKS, min(blocks, (piece + 1) * BLOCKS), both, u, res, new, data, a,
                   b, dt, sizes, tables, elements, faces, order, nodes, places, edges, mirrors,
                   given)  # fmt: skip


class Cores(CoreStage):
    """A whole stage of the acoustic equations on all cores, in either basis, of any flux.

    With w_i = (dr_i/dx) . v the divergence is sum_i dw_i/dr_i. Of a flux of rank 1 a scalar a face
    node is lifted, of the central one two.

    Parameters
    ----------
    operator : Operator
    device : Device
        "cpu".
    """

    sources = Sources(sys.modules[__name__])

    def __init__(self, operator: Operator, device: Device) -> None:
        super().__init__(operator, device, operator.weights.dtype.name, 4)
        element, dense = operator.basis.element, isinstance(operator.basis, NodalBasis)
        self.kernel = _nodal_stage if dense else _bernstein_stage
        width, tables, order = (_dense if dense else _sparse)(operator.basis, self.real)
        self.leading = (self.sources, self.computed, operator.flux == "central")
        self.arguments = (
            (element.Np, element.Nfp, width, self.L),
            tables,
            *_arrays(self, operator, _elements(operator), order),
        )


class LocalSteps(LocalCores):
    """Taylor steps in clusters, of fluxes of rank 1; terms of an expansion are p and w_i.

    Parameters
    ----------
    operator : Operator
        In either basis.
    device : Device
        "cpu".
    clusters : Clusters
    """

    sources = Sources(sys.modules[__name__], local_cores)
    kernel = staticmethod(_local)

    def __init__(self, operator: Operator, device: Device, clusters: Clusters) -> None:
        element, dtype = NodalElement(3, operator.order), operator.weights.dtype.name
        super().__init__(operator, device, dtype, 4, clusters, element)
        x = map_derivatives(operator.mesh.vertices, operator.mesh.elements)
        r = operator.rst_xyz.astype(np.float64)
        i, j = np.triu_indices(3)
        columns, metric = x.swapaxes(1, 2).reshape(-1, 9), np.einsum("kid,kjd->kij", r, r)
        elements = np.concatenate([_elements(operator), columns, metric[:, i, j]], axis=1)
        # What is lifted is there by modes, those of each face alike.
        order = np.repeat(np.arange(element.Np)[:, None], 4, axis=1)
        self.arguments = (
            (element.Np, element.Nfp, rows_together(element.Np), element.order, self.L),
            *_arrays(self, operator, elements, order),
        )


def _elements(operator: Operator) -> np.ndarray:
    """What describes elements, (K, ELEMENT) float64."""
    of_elements = operator.rst_xyz, operator.kappa, 1 / operator.rho.astype(np.float64)
    rows = [v.astype(np.float64).reshape(operator.mesh.K, -1) for v in of_elements]
    return np.concatenate(rows, axis=1)


def _arrays(
    cores: CoreLauncher, operator: Operator, elements: np.ndarray, order: np.ndarray
) -> tuple[Any, ...]:
    """What kernels get of an operator, of which `elements` are described like this.

    Unknown i finds at ``order[i, f]`` what is lifted to it from face f.
    """
    weights = np.moveaxis(operator.weights.astype(np.float64), 0, 2)
    r = -(weights[..., 2] / weights[..., 1])[..., None]
    weights = weights * operator.face_scale[..., None]
    faces = np.concatenate([operator.normals, weights, r], axis=2)
    return (
        cores.by_blocks(elements),
        cores.by_blocks(faces),
        order.ravel().astype(np.int64),
        operator.trace.interior[0].ravel().astype(np.int64),
        cores.places,
        *cores.on_boundary(operator.mirrors, np.ones(2)),
    )


def _dense(basis: NodalBasis, real: type) -> tuple[int, np.ndarray, np.ndarray]:
    """Rows at a time, D and the lift from each face, and where the lift of a node is."""
    Np = basis.element.Np
    lifts = basis.lift_matrix.reshape(Np, 4, -1).swapaxes(0, 1)
    matrices = np.concatenate([by_rows(m) for m in (*basis.derivative, *lifts)])
    return rows_together(Np), matrices, np.repeat(np.arange(Np)[:, None], 4, axis=1)


def _sparse(basis: BernsteinBasis, real: type) -> tuple[int, tuple[np.ndarray, ...], np.ndarray]:
    """Entries of a row of L_0; of D_m / 2, L_0 and the sweep columns and values; places."""
    tables = (
        basis.derivative_columns,
        basis.derivative_values / 2,
        basis.lift_face.columns,
        basis.lift_face.values,
        np.ascontiguousarray(basis.sweep_columns[:, :3]),
        np.ascontiguousarray(basis.sweep_values[:, :3]),
    )
    flat = tuple(t.ravel().astype(np.int64 if t.dtype.kind == "i" else real) for t in tables)
    return basis.lift_face.values.shape[1], flat, basis.sweep_places
