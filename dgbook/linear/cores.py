"""A whole stage on processor cores, of any linear system: vectors of elements."""

from __future__ import annotations

import sys

import numba
import numpy as np

from dgbook.gpu import Device
from dgbook.linear.reference import Operator
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


@numba.njit
def _times(rows, height, width, n, a, of, x, at, apart, out, to, between):
    """A matrix times the n columns of vectors that begin `apart`, two at a time."""
    for c in range(0, n - 1, 2):
        product_of_two(
            rows, height, width, a, of, x, at + c * apart, apart, out, to + c * between, between,
            False,
        )  # fmt: skip
    if n % 2:
        product(
            rows, height, width, a, of, x, at + (n - 1) * apart, out, to + (n - 1) * between, False
        )


@numba.njit
def _surface(u, b, at, sizes, data, faces, nodes, places, edges, mirrors, given, work, jump):
    """F (u^- - u^+) at all face nodes of a block; `jump` is room for 2 n vectors."""
    n, sides, Np, Nfp, L = sizes[1:6]
    field, start, outer = Np * L, b * n * Np * L, jump + n * L
    known = data.size // n
    for f in range(sides):
        edge = edges[b * sides + f]
        for i in range(Nfp):
            mine, node = start + nodes[f * Nfp + i] * L, f * Nfp + i
            here = (b * sides * Nfp + node) * L
            for c in range(n):
                store(work, outer + c * L, gather(u, c * field, places, here))
            for c in range(n):
                across = load(work, outer + c * L)
                if edge >= 0:  # some have no neighbor, and have found themselves
                    m = edge * (n * n + 1) * L
                    across = load(mirrors, m + n * n * L) * gather(
                        data, c * known + i, given, edge * L
                    )
                    for d in range(n):
                        mirror = load(mirrors, m + (c * n + d) * L)
                        across = across + mirror * load(work, outer + d * L)
                store(work, jump + c * L, load(u, mine + c * field) - across)
            for c in range(n):
                F = ((b * sides + f) * n + c) * n * L
                flux = load(faces, F) * load(work, jump)
                for d in range(1, n):
                    flux = flux + load(faces, F + d * L) * load(work, jump + d * L)
                store(work, at + (c * sides * Nfp + node) * L, flux)


@numba.njit
def _blocks(first, last, u, res, new, data, a, b, dt, sizes, matrices, system, elements, faces,
            nodes, places, edges, mirrors, given):  # fmt: skip
    """The stage in the blocks from one to another."""
    dim, n, sides, Np, Nfp, L, rows = sizes
    field, face = Np * L, sides * Nfp * L
    # du/dt; derivatives along the axes of the element and of space; fluxes; jumps at a node.
    slopes, along, flux = 0, n * field, (1 + dim) * n * field
    space = flux + n * face
    jump = space + dim * n * L
    work = room(u, jump + 2 * n * L)
    for block in range(first, last):
        start, g = block * n * field, block * dim * dim * L
        for i in range(dim):
            to = along + i * n * field
            _times(rows, Np, Np, n, matrices, i * Np * Np, u, start, field, work, to, field)
        # What the faces add.
        _surface(u, block, flux, sizes, data, faces, nodes, places, edges, mirrors, given, work,
                 jump)  # fmt: skip
        _times(rows, Np, sides * Nfp, n, matrices, dim * Np * Np, work, flux, face, work, slopes,
               field)  # fmt: skip
        # Less the sum of A_d du/dx_d.
        for at in range(0, field, L):
            for c in range(n):
                for d in range(dim):
                    h = along + c * field + at
                    slope = load(elements, g + d * L) * load(work, h)
                    for i in range(1, dim):
                        r = load(elements, g + (i * dim + d) * L)
                        slope = slope + r * load(work, h + i * n * field)
                    store(work, space + (d * n + c) * L, slope)
            for c in range(n):
                total = load(work, slopes + c * field + at)
                for d in range(dim):
                    for e in range(n):
                        A = system[(d * n + c) * n + e]
                        if A != 0:
                            total = total - A * load(work, space + (d * n + e) * L)
                store(work, slopes + c * field + at, total)
        # The step in time, in the order of memory.
        advance(u, res, new, start, n * field, L, a, b, dt, work)


@numba.njit(parallel=True, cache=True)
def _stage(sources, blocks, u, res, new, data, a, b, dt, sizes, matrices, system, elements, faces,
           nodes, places, edges, mirrors, given):  # fmt: skip
    for piece in numba.prange(-(-blocks // BLOCKS)):
        _blocks(piece * BLOCKS, min(blocks, (piece + 1) * BLOCKS), u, res, new, data, a, b, dt,
                sizes, matrices, system, elements, faces, nodes, places, edges, mirrors,
                given)  # fmt: skip


class Cores(CoreStage):
    """A whole stage of a linear system on all cores, of any number of fields and dimensions.

    Parameters
    ----------
    operator : Operator
    device : Device
        "cpu".
    """

    sources = Sources(sys.modules[__name__])
    kernel = staticmethod(_stage)

    def __init__(self, operator: Operator, device: Device) -> None:
        element, n, dim = operator.element, operator.system.n, operator.mesh.dim
        super().__init__(operator, device, operator.lift.dtype.name, n)
        matrices = [by_rows(m) for m in (*operator.derivative, operator.lift)]
        self.leading = (self.sources, self.computed)
        self.arguments = (
            (dim, n, dim + 1, element.Np, element.Nfp, self.L, rows_together(element.Np)),
            np.concatenate(matrices),
            operator.matrices.ravel(),
            self.by_blocks(operator.rst_xyz),
            self.by_blocks(operator.face_matrix),
            element.face_nodes.ravel().astype(np.int64),
            self.places,
            *self.on_boundary(operator.mirrors.reshape(-1, n * n), np.eye(n).ravel()),
        )
