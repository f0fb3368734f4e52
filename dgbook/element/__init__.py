"""Reference elements on the biunit simplex, in NumPy: quadrature, bases, and DG matrices.

Read :mod:`~dgbook.element.simplex` first: it says how vertices, faces and nodes are numbered. Every
function checks its arguments before it computes: TypeError for what is no integer, ValueError for
what is out of range or has the wrong shape.
"""

from .bernstein import BernsteinElement, bernstein_basis, bernstein_mass, elevation
from .jacobi import gauss_jacobi, gauss_lobatto, grad_jacobi, jacobi
from .lebesgue import lebesgue_constant, lebesgue_function
from .modal import grad_vandermonde, modal_indices, vandermonde
from .nodal import NodalElement
from .nodes import warp_and_blend
from .quadrature import simplex_quadrature
from .simplex import (
    MAX_ORDER,
    barycentric,
    cartesian,
    face_layers,
    face_node_permutations,
    face_nodes,
    face_vertices,
    lattice_numbers,
    multi_indices,
    reference_measure,
    reference_vertices,
    space_dimension,
)
from .symmetric import triangle_quadrature

__all__ = [
    "MAX_ORDER",
    "BernsteinElement",
    "NodalElement",
    "barycentric",
    "bernstein_basis",
    "bernstein_mass",
    "cartesian",
    "elevation",
    "face_layers",
    "face_node_permutations",
    "face_nodes",
    "face_vertices",
    "gauss_jacobi",
    "gauss_lobatto",
    "grad_jacobi",
    "grad_vandermonde",
    "jacobi",
    "lattice_numbers",
    "lebesgue_constant",
    "lebesgue_function",
    "modal_indices",
    "multi_indices",
    "reference_measure",
    "reference_vertices",
    "simplex_quadrature",
    "space_dimension",
    "triangle_quadrature",
    "vandermonde",
    "warp_and_blend",
]
