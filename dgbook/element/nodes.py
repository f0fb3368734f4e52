"""Warp-and-blend nodes: good interpolation points on the simplex, in closed form.

Warburton, An explicit construction of interpolation nodes on the simplex, Journal of Engineering
Mathematics 56 (2006), 247-262. The equispaced lattice is a bad place to interpolate; the
Gauss-Lobatto points of an interval are a good one. Each lattice node is moved along every edge as
far as the one-dimensional nodes have moved (warp), and less the further it is from it (blend).

The construction is written here in barycentric coordinates, in which sliding along the edge from
vertex j to vertex k takes from ``l_j`` what it gives to ``l_k``. Whether a node lies on an edge or
a face is read off its integer multi-index; there are no tolerances.
"""

import numpy as np

from dgbook.arguments import check_integer

from .jacobi import gauss_lobatto, jacobi
from .simplex import MAX_ORDER, cartesian, face_vertices, multi_indices

# Blending parameters that make the Lebesgue constant least, orders 1 to 15: Warburton (2006), as
# tabulated in Hesthaven and Warburton, Nodal Discontinuous Galerkin Methods (2008), sections 6.1
# (triangle) and 10.1 (tetrahedron).
ALPHA_TRIANGLE = (
    *(0.0, 0.0, 1.4152, 0.1001, 0.2751, 0.9800, 1.0999, 1.2832),
    *(1.3648, 1.4773, 1.4959, 1.5743, 1.5770, 1.6223, 1.6258),
)
ALPHA_TETRAHEDRON = (
    *(0.0, 0.0, 0.0, 0.1002, 1.1332, 1.5608, 1.3413, 1.2577),
    *(1.1603, 1.10153, 0.6080, 0.4523, 0.8856, 0.8717, 0.9655),
)


def warp(order: int, x: np.ndarray) -> np.ndarray:
    """Warp ``w(x) / (1 - x^2)`` at points of [-1, 1].

    w is the polynomial of degree `order` that carries the equispaced points to the Gauss-Lobatto
    points. Both have the ends in common, so ``1 - x^2`` divides w; the quotient is the polynomial
    of degree ``order - 2`` through the interior points, and is computed as that.
    """
    equispaced = np.linspace(-1, 1, order + 1)[1:-1]
    if equispaced.size == 0:
        return np.zeros_like(x)
    moved = (gauss_lobatto(order)[0][1:-1] - equispaced) / (1 - equispaced**2)
    coefficients = np.linalg.solve(jacobi(order - 2, 0, 0, equispaced).T, moved)
    return np.tensordot(coefficients, jacobi(order - 2, 0, 0, x), axes=1)


def _triangle_shift(order: int, alpha: float, bary: np.ndarray) -> np.ndarray:
    """Change of the three barycentric coordinates (n, 3): the warp of each edge, blended."""
    shift = np.zeros_like(bary)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        far, start, end = bary[:, i], bary[:, j], bary[:, k]
        # A distance along the edge from j to k, which is 2 long: hence the halves.
        slide = 4 * start * end * (1 + (alpha * far) ** 2) * warp(order, end - start)
        shift[:, j] -= slide / 2
        shift[:, k] += slide / 2
    return shift


def _tetrahedron_shift(order: int, alpha: float, indices: np.ndarray) -> np.ndarray:
    """Change of the four barycentric coordinates (n, 4): the shift of each face, blended."""
    bary = indices / order
    shift = np.zeros_like(bary)
    for f, corners in enumerate(face_vertices(3)):
        from_face, on_face = indices[:, [f]], indices[:, corners]
        # Product of l_i / (l_i + l_f / 2). On an edge of the face it is 0/0; two faces meet there
        # and ask for the same shift, so that each gives half.
        ratio = np.full(on_face.shape, 0.5)
        np.divide(2 * on_face, 2 * on_face + from_face, out=ratio, where=on_face + from_face > 0)
        blend = (1 + (alpha * bary[:, f]) ** 2) * ratio.prod(axis=1)
        shift[:, corners] += blend[:, None] * _triangle_shift(order, alpha, bary[:, corners])
    return shift


def warp_and_blend(dim: int, order: int) -> np.ndarray:
    """Warp-and-blend interpolation nodes of the biunit simplex.

    Parameters
    ----------
    dim : int
        1, 2 or 3.
    order : int
        0 to 15, where the published parameters end; at order 0 the centroid.

    Returns
    -------
    (Np, dim) array
        Node n belongs to ``multi_indices(dim, order)[n]``. In one dimension these are the
        Gauss-Lobatto points, and so they are on every edge (but at order 0, which has none there).

    Raises
    ------
    TypeError, ValueError
        If `dim` or `order` is no integer, or out of range.

    Notes
    -----
    The nodes on a face of the tetrahedron are **not** the nodes of the triangle: the two have
    different blending parameters. They agree to order 3, differ by 1e-7 at order 4 and by 1e-3
    to 3e-2 from order 5 on. Matrices of a face must be built from the tetrahedron's own nodes
    there; with the triangle's the lift is wrong by 0.6 to 13 per cent of its largest entry at
    orders 5 to 9.
    """
    check_integer("dim", dim, 1, 3)
    check_integer("order", order, 0, MAX_ORDER)
    if order == 0:
        return cartesian(np.full((1, dim + 1), 1 / (dim + 1)))
    if dim == 1:
        return gauss_lobatto(order)[0][:, None]
    indices = multi_indices(dim, order)
    bary = indices / order
    if dim == 2:
        return cartesian(bary + _triangle_shift(order, ALPHA_TRIANGLE[order - 1], bary))
    return cartesian(bary + _tetrahedron_shift(order, ALPHA_TETRAHEDRON[order - 1], indices))
