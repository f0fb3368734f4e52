"""What several lessons do with meshes and fields: vertices shuffled, values at any point."""

from __future__ import annotations

from typing import Any

import numpy as np

from dgbook.mesh import Mesh, build, geometric_factors


def turned(mesh: Mesh, rng: np.random.Generator) -> Mesh:
    """The same mesh, with the vertices of each element in another order.

    Elements of a box meet in few ways; of this mesh they meet in all.
    """
    return build(mesh.vertices, rng.permuted(mesh.elements, axis=1), reorient=True)


def values_at(points: np.ndarray, solver: Any, field: np.ndarray) -> np.ndarray:
    """A field at points, by the elements that hold them, or else lie closest.

    Parameters
    ----------
    points : array, shape (n, dim)
    solver : a solver of a nodal family
    field : array, shape (K, Np)

    Returns
    -------
    values : array, shape (n,)
    """
    mesh = solver.mesh
    inverse = geometric_factors(mesh).rst_xyz
    offset = points[:, None] - mesh.vertices[mesh.elements[:, 0]]
    r = np.einsum("kid,pkd->pki", inverse, offset) - 1
    # Inside, all r_i are at least -1, and their sum is at most 2 - dim.
    beyond = r.sum(axis=2) - (2 - mesh.dim)
    k = np.maximum(-1 - r.min(axis=2), beyond).argmin(axis=1)
    ell = solver.element.interpolation(r[np.arange(len(k)), k])
    return np.einsum("pi,pi->p", ell, field[k])
