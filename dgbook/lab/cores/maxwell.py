"""The stage on processor cores: what a GPU's speed is compared with."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numba
import numpy as np

from dgbook.lab.cores.stage import CoreStage, by_columns, gathers
from dgbook.maxwell.reference import Operator


@lru_cache(maxsize=32)
def make_stage(Np: int, Nfp: int, dtype: str) -> Any:
    """A whole stage, compiled by Numba for all cores; an element is one turn of the parallel loop.

    The derivatives and the lift are sums over columns with the node as innermost, contiguous index,
    which the compiler turns into vector instructions. Uniform matter and conducting walls only:
    a measure of speed, not another solver.

    Returns
    -------
    function
        ``stage(u, interior, exterior, wall, derivative, rst_xyz, normals, face_scale, lift, res,
        new, a, b, dt)``, with states (K, 6, Np), ``derivative`` (3, Np, Np) and ``lift``
        (4 Nfp, Np) transposed, ``interior`` (4 Nfp,) and ``exterior`` (K, 4 Nfp) nodes, the latter
        as element times Np plus node, and ``wall`` (K, 4) true on the boundary.
    """
    real = np.dtype(dtype).type
    half = real(0.5)

    @numba.njit(parallel=True, fastmath=True)
    def stage(
        u,
        interior,
        exterior,
        wall,
        derivative,
        rst_xyz,
        normals,
        face_scale,
        lift,
        res,
        new,
        a,
        b,
        dt,
    ):
        for k in numba.prange(u.shape[0]):
            dr = np.zeros((6, 3, Np), real)
            rhs = np.zeros((6, Np), real)
            flux = np.empty((6, 4 * Nfp), real)
            for f in range(6):
                for d in range(3):
                    for m in range(Np):
                        value = u[k, f, m]
                        for i in range(Np):
                            dr[f, d, i] += derivative[d, m, i] * value
            for f in range(3):  # curl: E_f' = d_g H_h - d_h G, cyclic; H' with the other sign
                g, h = (f + 1) % 3, (f + 2) % 3
                for d in range(3):
                    x, y = rst_xyz[k, d, g], rst_xyz[k, d, h]
                    for i in range(Np):
                        rhs[f, i] += x * dr[3 + h, d, i] - y * dr[3 + g, d, i]
                        rhs[3 + f, i] -= x * dr[h, d, i] - y * dr[g, d, i]
            for i in range(4 * Nfp):
                face = i // Nfp
                mine, other = interior[i], exterior[k, i]
                j, node = other // Np, other % Np
                sE, sH = (real(-2), real(0)) if wall[k, face] else (real(1), real(1))
                E0 = sE * u[j, 0, node]
                E1 = sE * u[j, 1, node]
                E2 = sE * u[j, 2, node]
                H0 = sH * u[j, 3, node]
                H1 = sH * u[j, 4, node]
                H2 = sH * u[j, 5, node]
                if not wall[k, face]:
                    E0 -= u[k, 0, mine]
                    E1 -= u[k, 1, mine]
                    E2 -= u[k, 2, mine]
                    H0 -= u[k, 3, mine]
                    H1 -= u[k, 4, mine]
                    H2 -= u[k, 5, mine]
                n0, n1, n2 = normals[k, face]
                scale = half * face_scale[k, face]
                # n x (H - n x E) and -n x (E + n x H), with n x (n x v) = n (n.v) - v
                nE = n0 * E0 + n1 * E1 + n2 * E2
                nH = n0 * H0 + n1 * H1 + n2 * H2
                flux[0, i] = scale * (n1 * H2 - n2 * H1 + E0 - n0 * nE)
                flux[1, i] = scale * (n2 * H0 - n0 * H2 + E1 - n1 * nE)
                flux[2, i] = scale * (n0 * H1 - n1 * H0 + E2 - n2 * nE)
                flux[3, i] = scale * (n2 * E1 - n1 * E2 + H0 - n0 * nH)
                flux[4, i] = scale * (n0 * E2 - n2 * E0 + H1 - n1 * nH)
                flux[5, i] = scale * (n1 * E0 - n0 * E1 + H2 - n2 * nH)
            for f in range(6):
                for m in range(4 * Nfp):
                    value = flux[f, m]
                    for i in range(Np):
                        rhs[f, i] += lift[m, i] * value
                for i in range(Np):
                    r = a * res[k, f, i] + dt * rhs[f, i]
                    res[k, f, i] = r
                    new[k, f, i] = u[k, f, i] + b * r

    return stage


def core_stage(operator: Operator) -> CoreStage:
    """The stage of an operator.

    Parameters
    ----------
    operator : Operator
        Of uniform matter, epsilon = mu = 1, upwind flux and conducting walls or none.

    Raises
    ------
    ValueError
        For another operator.
    """
    uniform = (operator.epsilon == 1).all() and (operator.mu == 1).all()
    if not uniform or operator.flux != "upwind" or (operator.mirrors != [-1, 1]).any():
        raise ValueError("operator: allowed are epsilon = mu = 1, flux 'upwind', walls 'pec'")
    element, dtype = operator.element, operator.lift.dtype
    wall = np.zeros(operator.face_scale.shape, bool)
    wall[tuple(operator.trace.boundary_faces.T)] = True
    arrays = (
        *gathers(operator.trace, element),
        wall,
        by_columns(operator.derivative),
        operator.rst_xyz,
        operator.normals,
        operator.face_scale,
        by_columns(operator.lift),
    )
    return CoreStage(make_stage(element.Np, element.Nfp, dtype.name), arrays, dtype.type)
