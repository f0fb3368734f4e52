"""Simplicial meshes: boxes, Gmsh files, connectivity, geometry and partitions."""

from .box import box
from .build import build
from .connect import exterior_nodes, face_node_match, face_pairs, make_periodic, periodic_shift
from .curve import along_a_curve, inverse_permutation
from .geometry import GeometricFactors, geometric_factors, nodes_xyz
from .mesh import Mesh, MeshError, face_vertices, vertex_permutations
from .partition import edge_cut, partition, renumber
from .read import read

__all__ = [
    "GeometricFactors",
    "Mesh",
    "MeshError",
    "along_a_curve",
    "box",
    "build",
    "edge_cut",
    "exterior_nodes",
    "face_node_match",
    "face_pairs",
    "face_vertices",
    "geometric_factors",
    "inverse_permutation",
    "make_periodic",
    "nodes_xyz",
    "partition",
    "periodic_shift",
    "read",
    "renumber",
    "vertex_permutations",
]
