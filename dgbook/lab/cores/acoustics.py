"""The nodal stage on processor cores: what a GPU's speed is compared with."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numba
import numpy as np

from dgbook.acoustics.reference import NodalBasis, Operator
from dgbook.lab.cores.stage import CoreStage, by_columns, gathers


@lru_cache(maxsize=32)
def make_stage(Np: int, Nfp: int, dtype: str) -> Any:
    """A whole stage, compiled by Numba for all cores; an element is one turn of the parallel loop.

    With the contravariant velocities w_i = (dr_i/dx).v an entry of D is in 6 products, and since
    the flux has rank 1 one scalar a face node is lifted. Products are sums over columns with the
    node as innermost, contiguous index, which the compiler turns into vector instructions.

    Returns
    -------
    function
        ``stage(u, interior, exterior, mirrors, derivative, lift, rst_xyz, faces, material, res,
        new, a, b, dt)``, with states (K, 4, Np), ``interior`` (4 Nfp,) and ``exterior`` (K, 4 Nfp)
        nodes, the latter as element times Np plus node, ``mirrors`` (K, 4, 2) what exterior values
        are multiplied by, ``derivative`` (3, Np, Np) and ``lift`` (4 Nfp, Np) transposed, ``faces``
        (K, 4, 6) Fs a, Fs b, r and n, and ``material`` (K, 2) kappa and 1/rho.
    """
    real = np.dtype(dtype).type

    @numba.njit(parallel=True, fastmath=True)
    def stage(
        u,
        interior,
        exterior,
        mirrors,
        derivative,
        lift,
        rst_xyz,
        faces,
        material,
        res,
        new,
        a,
        b,
        dt,
    ):
        for k in numba.prange(u.shape[0]):
            w = np.zeros((3, Np), real)
            slope = np.zeros((4, Np), real)  # div w and dp/dr_i, then du/dt
            lifted = np.zeros((4, Np), real)
            rhs = np.zeros((4, Np), real)
            for i in range(3):
                for d in range(3):
                    for n in range(Np):
                        w[i, n] += rst_xyz[k, i, d] * u[k, 1 + d, n]
            for i in range(3):
                for m in range(Np):
                    p, velocity = u[k, 0, m], w[i, m]
                    for n in range(Np):
                        slope[0, n] += derivative[i, m, n] * velocity
                        slope[1 + i, n] += derivative[i, m, n] * p
            for m in range(4 * Nfp):
                f = m // Nfp
                mine, other = interior[m], exterior[k, m]
                j, node = other // Np, other % Np
                s = faces[k, f, 0] * (mirrors[k, f, 0] * u[j, 0, node] - u[k, 0, mine])
                for d in range(3):
                    jump = mirrors[k, f, 1] * u[j, 1 + d, node] - u[k, 1 + d, mine]
                    s -= faces[k, f, 1] * faces[k, f, 3 + d] * jump
                for n in range(Np):
                    lifted[f, n] += lift[m, n] * s
            for n in range(Np):
                rhs[0, n] = -slope[0, n]
            for d in range(3):
                for i in range(3):
                    for n in range(Np):
                        rhs[1 + d, n] -= rst_xyz[k, i, d] * slope[1 + i, n]
            for f in range(4):
                for n in range(Np):
                    rhs[0, n] += lifted[f, n]
                for d in range(3):
                    weight = faces[k, f, 2] * faces[k, f, 3 + d]
                    for n in range(Np):
                        rhs[1 + d, n] -= weight * lifted[f, n]
            for c in range(4):
                scale = dt * material[k, min(c, 1)]
                for n in range(Np):
                    r = a * res[k, c, n] + scale * rhs[c, n]
                    res[k, c, n] = r
                    new[k, c, n] = u[k, c, n] + b * r

    return stage


def core_stage(operator: Operator) -> CoreStage:
    """The stage of an operator.

    Parameters
    ----------
    operator : Operator
        In the nodal basis, with a flux of rank 1 and no given fields on its boundary.

    Raises
    ------
    ValueError
        For another operator.
    """
    if not isinstance(operator.basis, NodalBasis) or operator.sources:
        raise ValueError("operator: allowed are the basis 'nodal' and no given fields")
    basis, element, dtype = operator.basis, operator.basis.element, operator.weights.dtype
    mirrors = np.ones((operator.mesh.K, 4, 2), dtype)
    mirrors[tuple(operator.trace.boundary_faces.T)] = operator.mirrors
    a, b, r = operator.rank_one
    Fs = operator.face_scale
    numbers = np.stack([Fs * a, Fs * b, r], axis=-1)
    arrays = (
        *gathers(operator.trace, element),
        mirrors,
        by_columns(basis.derivative),
        by_columns(basis.lift_matrix),
        operator.rst_xyz,
        np.concatenate([numbers, operator.normals], axis=-1),
        np.stack([operator.kappa, 1 / operator.rho], axis=-1),
    )
    return CoreStage(make_stage(element.Np, element.Nfp, dtype.name), arrays, dtype.type)
