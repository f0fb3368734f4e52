"""Boundaries and meshes on which all of Maxwell's kernels are tested."""

import numpy as np

from dgbook.maxwell import Scatterer
from dgbook.mesh import Mesh, build, face_vertices


def incoming(x, y, z, t):
    """Six fields that are no solution of anything."""
    return [x + t, y * z, z - x, x * y, y, 1 + t * z]


BOUNDARY = {
    "x-": "pec",
    "x+": "absorbing",
    "y-": incoming,
    "y+": Scatterer(incoming),
    "z-": "pec",
    "z+": "absorbing",
}


def scrambled(mesh: Mesh, random: np.random.Generator, moved: float) -> Mesh:
    """Volumes and faces' areas differ, and faces meet in all ways."""
    faces = {
        name: mesh.elements[f[:, :1], face_vertices(3)[f[:, 1]]]
        for name, f in mesh.boundary.items()
    }
    elements = random.permuted(mesh.elements, axis=1)
    vertices = mesh.vertices + random.uniform(-moved, moved, mesh.vertices.shape)
    return build(vertices, elements, faces, reorient=True)
