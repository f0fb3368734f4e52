"""The paper's code on one processor core, vector code on all: what a GPU is compared with."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numba
import numpy as np

from dgbook.euler.kernels.face import trace_table
from dgbook.euler.kernels.riemann import make_flux, make_primitive
from dgbook.euler.kernels.volume import gradient_table
from dgbook.euler.reference import Operator
from dgbook.euler.tables import Tables
from dgbook.gpu.layout import padded
from dgbook.time import rk4

LANES = 32
"""Elements side by side in memory, a whole number of a processor's vectors."""


@lru_cache(maxsize=32)
def make_slopes(tables: Tables, flux_name: str) -> Any:
    """du/dt, compiled by Numba for one core: the paper's serial code.

    All elements' volume integrals, then every edge once with its residual added to both elements,
    then M^-1. Periodic meshes only: a measure of speed, not another solver.

    Returns
    -------
    function
        ``slopes(u, edges, normal, length, metric, scale, out)``, with states (K, 4, Np), ``metric``
        (4, K), ``scale`` (K,) -1/J, all else as in `Operator`.
    """
    real = np.dtype(tables.dtype).type
    compiler = numba.njit(fastmath=True, inline="always")
    flux, primitive = make_flux(flux_name, real, compiler), make_primitive(real, compiler)
    Np, Nfp, Nq, Ne = tables.Np, tables.Nfp, tables.Nq, tables.Ne
    phi, nodes = tables.phi_volume, tables.edge_nodes
    gradient = gradient_table(tables).reshape(2, Nq, Np)
    trace, weighted = trace_table(tables).reshape(2, Ne, Nfp)
    inverse_mass = tables.inverse_mass

    @numba.njit(fastmath=True)
    def volume(U, rx, ry, sx, sy, R):
        """R = the volume integrals of an element with the values U."""
        w = np.empty(4, real)
        R[:] = 0
        for q in range(Nq):
            for s in range(4):
                w[s] = 0
                for i in range(Np):
                    w[s] += phi[q, i] * U[s, i]
            vx, vy, p = primitive(w)
            vr, vs = rx * vx + ry * vy, sx * vx + sy * vy
            F = (w[0] * vr, w[1] * vr + p * rx, w[2] * vr + p * ry, (w[3] + p) * vr)
            G = (w[0] * vs, w[1] * vs + p * sx, w[2] * vs + p * sy, (w[3] + p) * vs)
            for s in range(4):
                for i in range(Np):
                    R[s, i] -= gradient[0, q, i] * F[s] + gradient[1, q, i] * G[s]

    @numba.njit(fastmath=True)
    def edge(U, f, V, g, nx, ny, length, R):
        """R = the integrals over an edge between the values U and V, for its left side."""
        left, right, F = np.empty(4, real), np.empty(4, real), np.empty(4, real)
        R[:] = 0
        for q in range(Ne):
            left[:], right[:] = 0, 0
            for j in range(Nfp):
                for s in range(4):
                    left[s] += trace[q, j] * U[s, nodes[f, j]]
                    right[s] += trace[q, j] * V[s, nodes[g, Nfp - 1 - j]]
            flux(left, right, nx, ny, F)
            for j in range(Nfp):
                for s in range(4):
                    R[s, j] += weighted[q, j] * length * F[s]

    @numba.njit(fastmath=True)
    def invert(R, scale, out):
        """out = scale M^-1 R."""
        for s in range(4):
            for i in range(Np):
                total = real(0)
                for j in range(Np):
                    total += inverse_mass[i, j] * R[s, j]
                out[s, i] = scale * total

    @numba.njit(fastmath=True)
    def slopes(u, edges, normal, length, metric, scale, out):
        part, slope = np.empty((4, Nfp), real), np.empty((4, Np), real)
        for k in range(u.shape[0]):
            volume(u[k], metric[0, k], metric[1, k], metric[2, k], metric[3, k], out[k])
        for e in range(edges.shape[0]):
            k, f, n, g = edges[e]
            edge(u[k], f, u[n], g, normal[e, 0], normal[e, 1], length[e], part)
            for s in range(4):
                for j in range(Nfp):
                    out[k, s, nodes[f, j]] += part[s, j]
                    out[n, s, nodes[g, Nfp - 1 - j]] -= part[s, j]
        for k in range(u.shape[0]):
            invert(out[k], scale[k], slope)
            out[k] = slope

    return slopes


@lru_cache(maxsize=32)
def make_tiled_slopes(tables: Tables, flux_name: str) -> Any:
    """du/dt, compiled by Numba for all cores and their vector units.

    A tile of `LANES` elements is one turn of the parallel loop. They lie side by side, so that
    every innermost loop runs along them and becomes vector instructions, the flux's with its roots
    and divisions too. (It does only without Python's checks for a zero divisor, and if what the
    flux writes is a record: a view of an array would be counted in every turn.) An element collects
    the fluxes at its own edges, each of which is then computed twice: the edge form would have two
    cores add to one element. Periodic meshes only.

    Returns
    -------
    function
        ``slopes(u, neighbors, sides, normals, metric, scale, out)``, with states (tiles, Np, 4
        `LANES`), ``neighbors`` and ``sides`` (tiles, 3, `LANES`), the element across each edge and
        its edge there, ``normals`` (tiles, 3, 3, `LANES`), of each edge the outward unit normal and
        half the length, ``metric`` (tiles, 4, `LANES`) and ``scale`` (tiles, `LANES`) -1/J.
    """
    real = np.dtype(tables.dtype).type
    fast = {"fastmath": True, "error_model": "numpy"}
    compiler = numba.njit(inline="always", **fast)
    flux, primitive = make_flux(flux_name, real, compiler), make_primitive(real, compiler)
    Np, Nfp, Nq, Ne, row = tables.Np, tables.Nfp, tables.Nq, tables.Ne, 4 * LANES
    phi, nodes = tables.phi_volume, tables.edge_nodes
    gradient = gradient_table(tables).reshape(2, Nq, Np)
    trace, weighted = trace_table(tables).reshape(2, Ne, Nfp)
    inverse_mass = tables.inverse_mass
    state = np.dtype([(name, real) for name in ("rho", "mx", "my", "energy")])

    @compiler
    def volume(U, metric, w, F, G, R):
        """R = the volume integrals of a tile with the values U; w, F and G are room for a point."""
        rows = w.reshape(row), F.reshape(row), G.reshape(row)
        R[:] = 0
        for q in range(Nq):
            w[:] = 0
            for i in range(Np):
                value = phi[q, i]
                for x in range(row):
                    rows[0][x] += value * U[i, x]
            for x in range(LANES):
                rx, ry, sx, sy = metric[0, x], metric[1, x], metric[2, x], metric[3, x]
                vx, vy, p = primitive((w[0, x], w[1, x], w[2, x], w[3, x]))
                vr, vs = rx * vx + ry * vy, sx * vx + sy * vy
                F[0, x], G[0, x] = w[0, x] * vr, w[0, x] * vs
                F[1, x], G[1, x] = w[1, x] * vr + p * rx, w[1, x] * vs + p * sx
                F[2, x], G[2, x] = w[2, x] * vr + p * ry, w[2, x] * vs + p * sy
                F[3, x], G[3, x] = (w[3, x] + p) * vr, (w[3, x] + p) * vs
            for i in range(Np):
                dr, ds = gradient[0, q, i], gradient[1, q, i]
                for x in range(row):
                    R[i, x] -= dr * rows[1][x] + ds * rows[2][x]

    @compiler
    def edge(U, f, far, normal, left, right, F, R):
        """Add to R the integrals over edge f between the values U and far, in running order."""
        rows = left.reshape(row), right.reshape(row)
        for q in range(Ne):
            left[:], right[:] = 0, 0
            for j in range(Nfp):
                value, n = trace[q, j], nodes[f, j]
                for x in range(row):
                    rows[0][x] += value * U[n, x]
                    rows[1][x] += value * far[j, x]
            for x in range(LANES):
                near = left[0, x], left[1, x], left[2, x], left[3, x]
                across = right[0, x], right[1, x], right[2, x], right[3, x]
                flux(near, across, normal[0, x], normal[1, x], F[x])
            for x in range(LANES):
                rho, mx, my, energy = F[x].rho, F[x].mx, F[x].my, F[x].energy
                length = normal[2, x]
                left[0, x], left[1, x] = length * rho, length * mx
                left[2, x], left[3, x] = length * my, length * energy
            for j in range(Nfp):
                value, n = weighted[q, j], nodes[f, j]
                for x in range(row):
                    R[n, x] += value * rows[0][x]

    @numba.njit(parallel=True, **fast)
    def slopes(u, neighbors, sides, normals, metric, scale, out):
        for tile in numba.prange(u.shape[0]):
            w, F = np.empty((4, LANES), real), np.empty((4, LANES), real)
            G, fluxes = np.empty((4, LANES), real), np.empty(LANES, state)
            R, far = np.empty((Np, row), real), np.empty((Nfp, row), real)
            total, U = w.reshape(row), u[tile]
            volume(U, metric[tile], w, F, G, R)
            for f in range(3):
                for x in range(LANES):
                    n, g = neighbors[tile, f, x], sides[tile, f, x]
                    there, lane = u[n // LANES], n % LANES
                    for j in range(Nfp):
                        m = nodes[g, Nfp - 1 - j]
                        for s in range(4):
                            far[j, s * LANES + x] = there[m, s * LANES + lane]
                edge(U, f, far, normals[tile, f], w, G, fluxes, R)
            for i in range(Np):
                w[:] = 0
                for j in range(Np):
                    entry = inverse_mass[i, j]
                    for x in range(row):
                        total[x] += entry * R[j, x]
                for s in range(4):
                    for x in range(LANES):
                        out[tile, i, s * LANES + x] = scale[tile, x] * w[s, x]

    return slopes


@lru_cache(maxsize=4)
def make_combine(parallel: bool) -> Any:
    """``v = u + a k`` and ``total = start + b k``, the paper's inter_rk4."""

    @numba.njit(fastmath=True, parallel=parallel)
    def combine(k, u, start, total, v, a, b):
        for i in numba.prange(u.size):
            v[i] = u[i] + a * k[i]
            total[i] = start[i] + b * k[i]

    return combine


class CoreSteps:
    """The arrays of an operator for cores, and Runge-Kutta steps with them.

    Parameters
    ----------
    operator : Operator
        On a periodic mesh.
    parallel : bool
        Whether to use all cores by `make_tiled_slopes`, or one by `make_slopes`.

    Raises
    ------
    ValueError
        If there is a boundary.
    """

    def __init__(self, operator: Operator, parallel: bool) -> None:
        if len(operator.kinds):
            raise ValueError(f"operator has {len(operator.kinds)} boundary edges; allowed: none")
        tables, self.K = operator.tables, operator.mesh.K
        self.real = np.dtype(tables.dtype).type
        self.parallel, self.combine = parallel, make_combine(parallel)
        metric = (operator.jacobian * operator.rx).reshape(4, -1).astype(self.real)
        scale = (-1 / operator.jacobian).astype(self.real)
        if parallel:
            self.slopes = make_tiled_slopes(tables, operator.flux)
            own, right = operator.element_edges, operator.element_sides == 1
            across = np.where(right[:, :, None], operator.edges[own, :2], operator.edges[own, 2:])
            normals = np.where(right, -1, 1)[:, :, None] * operator.normal[own]
            normals = np.dstack([normals, operator.edge_jacobian[own]]).astype(self.real)
            arrays = across[:, :, 0], across[:, :, 1], normals, metric.T, scale
            self.arguments = tuple(map(self._tiled, arrays))
            shape = padded(self.K, LANES) // LANES, tables.Np, 4 * LANES
        else:
            self.slopes = make_slopes(tables, operator.flux)
            edges = operator.edges, operator.normal, operator.edge_jacobian
            self.arguments = (*edges, metric, scale)
            shape = self.K, 4, tables.Np
        self.work = tuple(np.empty(shape, self.real) for _ in range(3))

    def _tiled(self, array: np.ndarray) -> np.ndarray:
        """(tiles, ..., `LANES`) of (K, ...); the last element fills the last tile."""
        k = np.minimum(np.arange(padded(self.K, LANES)), self.K - 1)
        tiles = array[k].reshape(-1, LANES, *array.shape[1:])
        return np.ascontiguousarray(np.moveaxis(tiles, 1, -1))

    def upload(self, u: np.ndarray) -> np.ndarray:
        """A state (4, K, Np) as it is stored here, a copy."""
        if not self.parallel:
            return u.transpose(1, 0, 2).copy()
        return self._tiled(u.transpose(1, 2, 0)).reshape(-1, u.shape[2], 4 * LANES)

    def download(self, u: np.ndarray) -> np.ndarray:
        """The state (4, K, Np) that is stored as `u`."""
        if not self.parallel:
            return u.transpose(1, 0, 2)
        fields = u.reshape(len(u), -1, 4, LANES).transpose(2, 0, 3, 1)
        return fields.reshape(4, -1, u.shape[1])[:, : self.K]

    def step(self, u: np.ndarray, dt: float) -> None:
        """A step of the classical Runge-Kutta method, in place, of what `upload` returns."""
        k, v, total = (array.reshape(-1) for array in self.work)
        flat = u.reshape(-1)
        at, start = u, flat
        for a, b, end in zip((*rk4.A[1:], 0.0), rk4.B, (total, total, total, flat), strict=True):
            self.slopes(at, *self.arguments, self.work[0])
            self.combine(k, flat, start, end, v, self.real(dt * a), self.real(dt * b))
            at, start = self.work[1], end
