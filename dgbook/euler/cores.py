"""A whole stage on processor cores: vectors of triangles, and fluxes that compilers vectorize."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
from numba.extending import overload

from dgbook.euler.kernels import riemann
from dgbook.euler.kernels.fused import NEXT, RATE
from dgbook.euler.launch.sweeps import Sweeps
from dgbook.euler.plan import HEALTHY
from dgbook.euler.problem import FLUXES, WALL
from dgbook.euler.reference import Operator
from dgbook.euler.tables import Tables
from dgbook.gpu import Device
from dgbook.nodal.cores import BLOCKS, CoreLauncher, Sources
from dgbook.nodal.lanes import (
    by_rows,
    gather,
    load,
    product_of_two,
    room,
    rows_together,
    store,
)
from dgbook.nodal.launching import Launches

FREE = {"error_model": "numpy", "fastmath": {"contract"}}
"""A zero divisor is no exception, and products and sums may become one instruction."""

_primitive = riemann.make_primitive(np.float64, numba.njit(**FREE))


def _fluxes(flux, count, left, right, nx, ny, out):
    """The numerical flux between states (4, count), all flat; see the overload."""


@overload(_fluxes, jit_options=FREE)
def _fluxes_of_type(flux, count, left, right, nx, ny, out):
    """A loop over points, which becomes vector instructions as long as it has no branch."""
    real = np.dtype(left.dtype.name).type
    inner = numba.njit(inline="always", **FREE)
    roe, rusanov, hllc = (riemann.make_flux(name, real, inner) for name in FLUXES)
    state = np.dtype([(name, real) for name in ("rho", "mx", "my", "energy")])

    def code(flux, count, left, right, nx, ny, out):
        F = np.empty(count, state)
        for x in range(count):
            near = left[x], left[count + x], left[2 * count + x], left[3 * count + x]
            far = right[x], right[count + x], right[2 * count + x], right[3 * count + x]
            if flux == 0:
                roe(near, far, nx[x], ny[x], F[x])
            elif flux == 1:
                rusanov(near, far, nx[x], ny[x], F[x])
            else:
                hllc(near, far, nx[x], ny[x], F[x])
        for x in range(count):
            out[x], out[count + x] = F[x].rho, F[x].mx
            out[2 * count + x], out[3 * count + x] = F[x].my, F[x].energy

    return code


@numba.njit
def _four(rows, height, width, L, a, of, x, at, out, to, add):
    """A matrix times the columns of four fields, which follow each other."""
    apart, between = width * L, height * L
    for s in range(0, 4, 2):
        product_of_two(
            rows, height, width, a, of, x, at + s * apart, apart, out, to + s * between, between,
            add,
        )  # fmt: skip


@numba.njit
def _volume(Nq, L, elements, g, work, states, fluxes):
    """The fluxes along r and s at the quadrature points of a block."""
    rx, ry = load(elements, g), load(elements, g + L)
    sx, sy = load(elements, g + 2 * L), load(elements, g + 3 * L)
    field, both = Nq * L, 2 * Nq * L
    for q in range(0, field, L):
        at, r, s = states + q, fluxes + q, fluxes + field + q
        w0, w1 = load(work, at), load(work, at + field)
        w2, w3 = load(work, at + 2 * field), load(work, at + 3 * field)
        vx, vy, p = _primitive((w0, w1, w2, w3))
        vr, vs = rx * vx + ry * vy, sx * vx + sy * vy
        store(work, r, w0 * vr)
        store(work, r + both, w1 * vr + p * rx)
        store(work, r + 2 * both, w2 * vr + p * ry)
        store(work, r + 3 * both, (w3 + p) * vr)
        store(work, s, w0 * vs)
        store(work, s + both, w1 * vs + p * sx)
        store(work, s + 2 * both, w2 * vs + p * sy)
        store(work, s + 3 * both, (w3 + p) * vs)


@numba.njit
def _outside(edge, Ne, L, nx, ny, data, mirrors, given, work, left, right):
    """Replace the right states of lanes that have no neighbor."""
    known, field = data.size // 4, Ne * L
    wall, alone = load(mirrors, edge * 2 * L), load(mirrors, edge * 2 * L + L)
    inside, told = 1 - alone, alone - wall
    for q in range(Ne):
        l, r = left + q * L, right + q * L
        w0, w1 = load(work, l), load(work, l + field)
        w2, w3 = load(work, l + 2 * field), load(work, l + 3 * field)
        normal = 2 * (w1 * nx + w2 * ny)
        w1, w2 = w1 - normal * nx, w2 - normal * ny
        for s in range(4):
            w = w0 if s == 0 else w1 if s == 1 else w2 if s == 2 else w3
            there = told * gather(data, s * known + q, given, edge * L)
            store(work, r + s * field, inside * load(work, r + s * field) + wall * w + there)


@numba.njit
def _blocks(first, last, stage, flux, u, kept, new, data, dt, sizes, matrices, elements, faces,
            nodes, places, edges, mirrors, given):  # fmt: skip
    """The stage in the blocks from one to another; a block that is no gas any more, or -1."""
    Np, Nfp, Nq, Ne, L, rows_q, rows_e, rows_p = sizes
    field, points, trace, edge_points = Np * L, Nq * L, Nfp * L, Ne * L
    trace_matrix = Nq * Np
    volume_matrix = trace_matrix + Ne * Nfp
    edge_matrix = volume_matrix + 2 * Nq * Np
    # du/dt; states and fluxes at points; traces, states and fluxes on an edge; those of all edges.
    states = 4 * field
    fluxes = states + 4 * points
    near = fluxes + 8 * points
    far = near + 4 * trace
    left = far + 4 * trace
    right = left + 4 * edge_points
    sides = right + 4 * edge_points
    across = sides + 2 * edge_points
    on_edges = across + 4 * edge_points
    work = room(u, on_edges + 12 * edge_points)
    wrong = -1
    for block in range(first, last):
        start = block * 4 * field
        # The integral over the triangles.
        _four(rows_q, Nq, Np, L, matrices, 0, u, start, work, states, False)
        _volume(Nq, L, elements, block * 4 * L, work, states, fluxes)
        _four(rows_p, Np, 2 * Nq, L, matrices, volume_matrix, work, fluxes, work, 0, False)
        # The integrals over their edges.
        for f in range(3):
            g = (block * 3 + f) * 3 * L
            nx, ny, scale = load(faces, g), load(faces, g + L), load(faces, g + 2 * L)
            for j in range(Nfp):
                mine = start + nodes[f * Nfp + j] * L
                here = ((block * 3 + f) * Nfp + j) * L
                for s in range(4):
                    store(work, near + (s * Nfp + j) * L, load(u, mine + s * field))
                    store(work, far + (s * Nfp + j) * L, gather(u, s * field, places, here))
            _four(rows_e, Ne, Nfp, L, matrices, trace_matrix, work, near, work, left, False)
            _four(rows_e, Ne, Nfp, L, matrices, trace_matrix, work, far, work, right, False)
            edge = edges[block * 3 + f]
            if edge >= 0:
                _outside(edge, Ne, L, nx, ny, data, mirrors, given, work, left, right)
            for q in range(0, edge_points, L):
                store(work, sides + q, nx)
                store(work, sides + edge_points + q, ny)
            _fluxes(flux, edge_points, work[left:right], work[right:sides],
                    work[sides : sides + edge_points], work[sides + edge_points : across],
                    work[across:on_edges])  # fmt: skip
            for s in range(4):
                to = on_edges + (3 * s + f) * edge_points
                for q in range(0, edge_points, L):
                    store(work, to + q, scale * load(work, across + s * edge_points + q))
        _four(rows_p, Np, 3 * Ne, L, matrices, edge_matrix, work, on_edges, work, 0, True)
        # The step in time, in the order of memory.
        if stage == RATE:
            for i in range(0, 4 * field, L):
                store(new, start + i, load(work, i))
        elif stage == NEXT:
            for i in range(0, 4 * field, L):
                store(new, start + i, load(kept[0], start + i) + dt * load(work, i))
        else:
            for i in range(0, 4 * field, L):
                un, u1 = load(kept[0], start + i), load(kept[1], start + i)
                u2, u3 = load(kept[2], start + i), load(u, start + i)
                sum_of = (u1 - un) + 2 * (u2 - un) + (u3 - un)
                store(new, start + i, un + (sum_of / 3 + dt * load(work, i)))
            healthy = 0
            for x in range(start, start + field):
                rho, kinetic = new[x], new[x + field] ** 2 + new[x + 2 * field] ** 2
                healthy += (rho > 0) & (2 * rho * new[x + 3 * field] > kinetic)
            if healthy < field:
                wrong = block
    return wrong


@numba.njit(parallel=True, cache=True, error_model="numpy")
def _stage(sources, blocks, wrong, stage, flux, u, kept, new, data, dt, sizes, matrices, elements,
           faces, nodes, places, edges, mirrors, given):  # fmt: skip
    for piece in numba.prange(-(-blocks // BLOCKS)):
        wrong[piece] = _blocks(
            piece * BLOCKS, min(blocks, (piece + 1) * BLOCKS), stage, flux, u, kept, new, data,
            dt, sizes, matrices, elements, faces, nodes, places, edges, mirrors, given,
        )  # fmt: skip


class Cores(Sweeps, CoreLauncher):
    """A whole stage of the Euler equations on all cores, and a step of the classical method.

    Stages hold the slopes, as in `dgbook.euler.launch.fused.FusedLauncher`. An element computes the
    fluxes at its own edges, which its neighbors do again. M^-1 is in the matrices that integrate.

    Parameters
    ----------
    operator : Operator
    device : Device
        "cpu".

    Attributes
    ----------
    bad : array of one int32
        The number of an element of which a step has made something else than a gas, of the first
        in the order of the state; `HEALTHY` if there is none.
    """

    sources = Sources(sys.modules[__name__], riemann)

    def __init__(self, operator: Operator, device: Device) -> None:
        dtype, tables = operator.normal.dtype.name, Tables(operator.element.order)
        nodes, Np = tables.edge_nodes, tables.Np
        far = nodes[operator.neighbor_edges][:, :, ::-1]
        inside = (operator.neighbors >= 0)[:, :, None]
        k = np.where(inside[..., 0], operator.neighbors, np.arange(operator.mesh.K)[:, None])
        exterior = k[:, :, None] * Np + np.where(inside, far, nodes)
        super().__init__(operator, device, dtype, 4, Np, exterior, operator.mesh.boundary_faces)
        self.flux = list(FLUXES).index(operator.flux)
        matrices = _matrices(tables)
        faces = [operator.normals, -operator.face_scale[..., None]]
        self.arguments = (
            (Np, tables.Nfp, tables.Nq, tables.Ne, self.L,
             *(rows_together(len(m)) for m in matrices[:3])),
            np.concatenate([by_rows(m) for m in matrices]).astype(self.real),
            self.by_blocks(np.moveaxis(operator.rx.reshape(4, -1), 1, 0)),
            self.by_blocks(np.concatenate(faces, axis=2)),
            nodes.ravel().astype(np.int64),
            self.places,
            *self.on_boundary((operator.kinds == WALL)[:, None], np.zeros(1)),
        )  # fmt: skip
        self.wrong = np.empty(-(-self.computed // BLOCKS), np.int64)
        self.bad = device.array(np.array([HEALTHY], np.int32))

    def upload(self, u: np.ndarray) -> np.ndarray:
        """A state (4, K, Np) in blocks; spare lanes have the last element's, which is a gas."""
        state = super().upload(u)
        lane = (self.K - 1) % self.L
        last = state.reshape(self.blocks, -1, self.L)[-1]
        last[:, lane:] = last[:, lane : lane + 1]
        return state

    def work(self, u: np.ndarray) -> tuple[np.ndarray, ...]:
        """Room for the states of three stages."""
        return tuple(self.zeros() for _ in range(3))

    def stages(
        self, u: Any, work: tuple[Any, Any, Any], data: tuple[Any, Any, Any], dt: float
    ) -> Iterator[Launches]:
        """As `Sweeps.stages`, and then what the last sweep has found to be no gas."""
        yield from super().stages(u, work, data, dt)
        if (self.wrong >= 0).any():
            block = int(self.wrong[self.wrong >= 0][0])
            self.bad[0] = min(self.bad[0], self.order[block * self.L])

    def _launch(self, stage: int, u: Any, data: Any, kept: tuple, new: Any, dt: float) -> None:
        _stage(*self._call(stage, u, data, kept, new, dt))

    def _call(self, stage: int, u: Any, data: Any, kept: tuple, new: Any, dt: float) -> tuple:
        about = self.sources, self.computed, self.wrong, stage, self.flux
        return *about, u, kept, new, data, self.real(dt), *self.arguments

    def _launch_on(self, state: Any) -> tuple[Any, tuple[Any, ...]]:
        return _stage, self._call(RATE, state, state, 3 * (state,), state, 0.0)


def _matrices(tables: Tables) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """From nodes to the points in the triangle and on an edge, and back, with M^-1: float64.

    Returns
    -------
    (Nq, Np), (Ne, Nfp), (Np, 2 Nq), (Np, 3 Ne) arrays
    """
    gradient = (tables.dphi_volume * tables.w_volume[:, None]).reshape(-1, tables.Np)
    weighted = (tables.phi_edge * tables.w_edge[:, None]).reshape(-1, tables.Np)
    inverse = tables.inverse_mass
    return tables.phi_volume, tables.phi_trace, inverse @ gradient.T, inverse @ weighted.T
