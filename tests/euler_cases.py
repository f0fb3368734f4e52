"""Boundaries, meshes and states on which all kernels of the Euler equations are tested."""

import numpy as np

from dgbook.euler import exact, reference
from dgbook.euler.problem import conservative
from dgbook.mesh import Mesh, box, build, face_vertices

STREAM = exact.Stream(1.1, 0.4, -0.3, 0.9)


def gusts(x, y, t):
    """States outside that change along the boundary and in time, and are no solution."""
    return conservative(1 + 0.2 * x, 0.3 * y - t, np.sin(x + t), 1.5 + 0.3 * y)


BOUNDARY = {"x-": "wall", "x+": gusts, "y-": STREAM, "y+": "wall"}


def scrambled(mesh: Mesh, random: np.random.Generator, moved: float) -> Mesh:
    """Areas and lengths differ, edges meet in all ways and are known by all numbers."""
    faces = {
        name: mesh.elements[f[:, :1], face_vertices(2)[f[:, 1]]]
        for name, f in mesh.boundary.items()
    }
    elements = random.permuted(random.permutation(mesh.elements), axis=1)
    vertices = mesh.vertices + random.uniform(-moved, moved, mesh.vertices.shape)
    return build(vertices, elements, faces, reorient=True)


def mesh_of(periodic: bool, cells: tuple[int, int], random: np.random.Generator) -> Mesh:
    """A periodic box, or an irregular one with the boundaries of `BOUNDARY`."""
    if periodic:
        return box(cells, upper=(1.0, 0.8), periodic=True)
    return scrambled(box(cells, upper=(1.0, 0.8)), random, 0.1 / max(cells))


def strong_jumps(operator: reference.Operator, random: np.random.Generator) -> np.ndarray:
    """(4, K, Np): an own state for each element, up to Mach 2, and a little noise at the nodes.

    Between two elements there are shocks, rarefactions, sonic points and contacts.
    """
    shape = operator.mesh.K, operator.element.Np
    rho, p = random.uniform(0.5, 1.5, (2, shape[0], 1)) + random.uniform(-0.02, 0.02, (2, *shape))
    u, v = random.uniform(-1.7, 1.7, (2, shape[0], 1)) + random.uniform(-0.02, 0.02, (2, *shape))
    return conservative(rho, u, v, p)


def a_breeze(operator: reference.Operator, random: np.random.Generator) -> np.ndarray:
    """(4, K, Np): a stream with a little noise, which many steps survive."""
    shape = operator.mesh.K, operator.element.Np
    rho, u, v, p = random.uniform(-0.01, 0.01, (4, *shape))
    return conservative(1.1 + rho, 0.4 + u, -0.3 + v, 0.9 + p)
