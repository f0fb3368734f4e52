"""The paper's code on processor cores: what a GPU's speed is compared with."""

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
from dgbook.time import rk4


@lru_cache(maxsize=32)
def make_slopes(tables: Tables, flux_name: str, parallel: bool) -> Any:
    """du/dt, compiled by Numba for one core or for all.

    On one core it is the paper's serial code: all elements' volume integrals, then every edge once
    with its residual added to both elements, then M^-1. On all cores an element is one turn of the
    parallel loop and collects the fluxes at its own edges, each of which is then computed twice:
    the edge form would have two cores add to one element. Periodic meshes only: a measure of speed,
    not another solver.

    Returns
    -------
    function
        ``slopes(u, edges, normal, length, element_edges, element_sides, metric, inverse_jacobian,
        out)``, with states (K, 4, Np), ``metric`` (4, K), all else as in `Operator`.
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
    def serial(u, edges, normal, length, _, __, metric, inverse_jacobian, out):
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
            invert(out[k], -inverse_jacobian[k], slope)
            out[k] = slope

    @numba.njit(fastmath=True, parallel=True)
    def gather(u, edges, normal, length, own, sides, metric, inverse_jacobian, out):
        for k in numba.prange(u.shape[0]):
            part, R = np.empty((4, Nfp), real), np.empty((4, Np), real)
            volume(u[k], metric[0, k], metric[1, k], metric[2, k], metric[3, k], R)
            for f in range(3):
                e, side = own[k, f], sides[k, f]
                n, g = edges[e, 2 - 2 * side], edges[e, 3 - 2 * side]
                sign = real(1 - 2 * side)  # the normal points from left to right
                edge(u[k], f, u[n], g, sign * normal[e, 0], sign * normal[e, 1], length[e], part)
                for s in range(4):
                    for j in range(Nfp):
                        R[s, nodes[f, j]] += part[s, j]
            invert(R, -inverse_jacobian[k], out[k])

    return gather if parallel else serial


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
    """The arrays of an operator for `make_slopes`, and Runge-Kutta steps with them.

    Parameters
    ----------
    operator : Operator
        On a periodic mesh.
    parallel : bool
        Whether to use all cores, see `make_slopes`.

    Raises
    ------
    ValueError
        If there is a boundary.
    """

    def __init__(self, operator: Operator, parallel: bool) -> None:
        if len(operator.kinds):
            raise ValueError(f"operator has {len(operator.kinds)} boundary edges; allowed: none")
        self.real = np.dtype(operator.tables.dtype).type
        self.slopes = make_slopes(operator.tables, operator.flux, parallel)
        self.combine = make_combine(parallel)
        metric = (operator.jacobian * operator.rx).reshape(4, -1)
        self.arguments = (
            operator.edges,
            operator.normal,
            operator.edge_jacobian,
            operator.element_edges,
            operator.element_sides,
            metric.astype(self.real),
            (1 / operator.jacobian).astype(self.real),
        )
        shape = operator.mesh.K, 4, operator.tables.Np
        self.work = tuple(np.empty(shape, self.real) for _ in range(3))

    def step(self, u: np.ndarray, dt: float) -> None:
        """A step of the classical Runge-Kutta method, in place; u is (K, 4, Np)."""
        k, v, total = self.work
        flat = [array.reshape(-1) for array in (k, u, total, v)]
        at, start = u, flat[1]
        for a, b in zip((*rk4.A[1:], 0.0), rk4.B, strict=True):
            self.slopes(at, *self.arguments, k)
            scale = self.real(dt * a), self.real(dt * b)
            self.combine(flat[0], flat[1], start, flat[2], flat[3], *scale)
            at, start = v, flat[2]
        u[:] = total
