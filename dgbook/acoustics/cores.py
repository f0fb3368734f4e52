"""A whole stage on processor cores, in either basis: vectors of elements."""

from __future__ import annotations

import sys

import numba
import numpy as np

from dgbook.acoustics.reference import NodalBasis, Operator
from dgbook.gpu import Device
from dgbook.nodal.bernstein import BernsteinBasis
from dgbook.nodal.cores import BLOCKS, CoreStage, Sources, advance
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

ELEMENT = 11
"""Vectors that describe the elements of a block: dr_i/dx_d, kappa and 1 / rho."""
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
def _surface(both, u, b, at, Np, Nfp, L, data, faces, nodes, places, edges, mirrors, given, flux):
    """The fluxes at all nodes of the faces of a block: that of p, and with `both` n . that of v."""
    field, start, face, n = Np * L, b * 4 * Np * L, Nfp * L, 2 if both else 1
    known = data.size // 4
    for f in range(4):
        t = (b * 4 + f) * FACE * L
        x, y, z = load(faces, t), load(faces, t + L), load(faces, t + 2 * L)
        wa, wb = load(faces, t + 3 * L), load(faces, t + 4 * L)
        wc, wd = load(faces, t + 5 * L), load(faces, t + 6 * L)
        edge = edges[b * 4 + f]
        for i in range(Nfp):
            mine = start + nodes[f * Nfp + i] * L
            here = ((b * 4 + f) * Nfp + i) * L
            p, X = gather(u, 0, places, here), gather(u, field, places, here)
            Y, Z = gather(u, 2 * field, places, here), gather(u, 3 * field, places, here)
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
def _slopes(both, Np, L, elements, g, faces, t, order, work, parts, lifted):
    """du/dt from div v, the derivatives of p along the axes, and what is lifted from each face."""
    field, n = Np * L, 2 if both else 1
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
        store(work, at, kappa * p)
        store(work, at + field, rho * X)
        store(work, at + 2 * field, rho * Y)
        store(work, at + 3 * field, rho * Z)


@numba.njit
def _nodal(first, last, both, u, res, new, data, a, b, dt, sizes, matrices, elements, faces, order,
           nodes, places, edges, mirrors, given):  # fmt: skip
    """The stage in the nodal basis, in the blocks from one to another."""
    Np, Nfp, rows, L = sizes
    field, face, n = Np * L, Nfp * L, 2 if both else 1
    lifts = 3 * Np * Np
    # Unknowns; derivatives; what is lifted from each face; fluxes.
    work = room(u, (11 + 4 * n) * field + 4 * n * face)
    parts, lifted, flux = 4 * field, 11 * field, (11 + 4 * n) * field
    for block in range(first, last):
        start, g, t = block * 4 * field, block * ELEMENT * L, block * 4 * FACE * L
        _contravariant(u, start, Np, L, elements, g, work)
        # dp/dr_i and dw_i/dr_i at once, then the divergence.
        for i in range(3):
            product_of_two(
                rows, Np, Np, matrices, i * Np * Np, work, 0, (1 + i) * field,
                work, parts + (1 + i) * field, 3 * field, False,
            )  # fmt: skip
        for at in range(parts, parts + field, L):
            first_two = load(work, at + 4 * field) + load(work, at + 5 * field)
            store(work, at, first_two + load(work, at + 6 * field))
        # What the faces add.
        _surface(both, u, block, flux, Np, Nfp, L, data, faces, nodes, places, edges, mirrors,
                 given, work)  # fmt: skip
        for f in range(4):
            lift, at, to = lifts + f * Np * Nfp, flux + f * n * face, lifted + f * n * field
            if both:
                product_of_two(
                    rows, Np, Nfp, matrices, lift, work, at, face, work, to, field, False
                )
            else:
                product(rows, Np, Nfp, matrices, lift, work, at, work, to, False)
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
        _surface(both, u, block, flux, Np, Nfp, L, data, faces, nodes, places, edges, mirrors,
                 given, work)  # fmt: skip
        for f in range(4 * n):
            to = lifted + f * field
            _rows(0, Nfp, width, face_columns, face_values, L, work, flux + f * face, to)
            _rows(Nfp, Np, 3, sweep_columns, sweep_values, L, work, to, to)
        _slopes(both, Np, L, elements, g, faces, t, order, work, parts, lifted)
        # The step in time, in the order of memory.
        advance(u, res, new, start, 4 * field, L, a, b, dt, work)


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
        basis, dtype = operator.basis, operator.weights.dtype.name
        element = basis.element
        super().__init__(operator, device, dtype, 4)
        both = operator.flux == "central"
        self.kernel = _nodal_stage if isinstance(basis, NodalBasis) else _bernstein_stage
        rst_xyz, kappa, rho = (
            v.astype(np.float64).reshape(operator.mesh.K, -1)
            for v in (operator.rst_xyz, operator.kappa, operator.rho)
        )
        weights = np.moveaxis(operator.weights.astype(np.float64), 0, 2)
        r = -(weights[..., 2] / weights[..., 1])[..., None]
        weights = weights * operator.face_scale[..., None]
        faces = np.concatenate([operator.normals, weights, r], axis=2)
        table = self._dense if isinstance(basis, NodalBasis) else self._sparse
        width, tables, order = table(basis)
        self.leading = (self.sources, self.computed, both)
        self.arguments = (
            (element.Np, element.Nfp, width, self.L),
            tables,
            self.by_blocks(np.concatenate([rst_xyz, kappa, 1 / rho], axis=1)),
            self.by_blocks(faces),
            order.ravel().astype(np.int64),
            operator.trace.interior[0].ravel().astype(np.int64),
            self.places,
            *self.on_boundary(operator.mirrors, np.ones(2)),
        )

    def _dense(self, basis: NodalBasis) -> tuple[int, np.ndarray, np.ndarray]:
        """Rows at a time, D and the lift from each face, and where the lift of a node is."""
        Np = basis.element.Np
        lifts = basis.lift_matrix.reshape(Np, 4, -1).swapaxes(0, 1)
        matrices = np.concatenate([by_rows(m) for m in (*basis.derivative, *lifts)])
        return rows_together(Np), matrices, np.repeat(np.arange(Np)[:, None], 4, axis=1)

    def _sparse(self, basis: BernsteinBasis) -> tuple[int, tuple[np.ndarray, ...], np.ndarray]:
        """Entries of a row of L_0; of D_m / 2, L_0 and the sweep columns and values; places."""
        tables = (
            basis.derivative_columns,
            basis.derivative_values / 2,
            basis.lift_face.columns,
            basis.lift_face.values,
            np.ascontiguousarray(basis.sweep_columns[:, :3]),
            np.ascontiguousarray(basis.sweep_values[:, :3]),
        )
        flat = tuple(
            t.ravel().astype(np.int64 if t.dtype.kind == "i" else self.real) for t in tables
        )
        return basis.lift_face.values.shape[1], flat, basis.sweep_places
