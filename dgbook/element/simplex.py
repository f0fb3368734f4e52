"""The biunit reference simplex: its vertices, faces, barycentric coordinates and lattice.

Everything in :mod:`dgbook.element` is numbered by the rules on this page.

Vertices. Vertex 0 is (-1, ..., -1); vertex ``i`` lies 2 further along axis ``i - 1``. The simplex
is the interval [-1, 1], a triangle of area 2, a tetrahedron of volume 4/3.

Faces. Face ``f`` is opposite vertex ``f``; its vertices are the others, in increasing order.

Lattice. A node, or a Bernstein coefficient, of order ``N`` is named by a multi-index
``a = (a_0, ..., a_dim)`` of sum ``N``: its barycentric coordinates on the equispaced lattice,
times ``N``. They are sorted by ``(a_dim, ..., a_1)``, ``a_1`` running fastest.

Because they are sorted so, deleting ``a_f`` from the rows with ``a_f = i`` leaves the list of the
simplex of one dimension less and of order ``N - i``, for every face ``f``. Node ``j`` of a face has
therefore the same barycentric coordinates with respect to the vertices of that face, whichever
face it is, and one face matrix serves all.
"""

import itertools
import math

import numpy as np

from dgbook.arguments import check_integer, check_points

MAX_ORDER = 15
"""Highest order of an element: there the published table of node parameters ends."""


def space_dimension(dim: int, order: int) -> int:
    """Dimension of the polynomials of total degree `order`: C(order + dim, dim)."""
    check_integer("dim", dim, 0, 3)
    check_integer("order", order, 0)
    return math.comb(order + dim, dim)


def reference_measure(dim: int) -> float:
    """Measure of the biunit simplex, 2^dim / dim!: 1 (a point), 2, 2 and 4/3."""
    check_integer("dim", dim, 0, 3)
    return 2**dim / math.factorial(dim)


def reference_vertices(dim: int) -> np.ndarray:
    """Vertices of the biunit simplex, shape (dim+1, dim)."""
    check_integer("dim", dim, 1, 3)
    return np.vstack([np.zeros(dim), 2 * np.eye(dim)]) - 1


def face_vertices(dim: int) -> tuple[tuple[int, ...], ...]:
    """Vertices of every face: face ``f`` is opposite vertex ``f``, its vertices increase.

    >>> face_vertices(2)
    ((1, 2), (0, 2), (0, 1))
    """
    check_integer("dim", dim, 1, 3)
    return tuple(tuple(v for v in range(dim + 1) if v != f) for f in range(dim + 1))


def barycentric(points: np.ndarray) -> np.ndarray:
    """Barycentric coordinates of points of the biunit simplex.

    Parameters
    ----------
    points : (n, dim) array
        Reference coordinates.

    Returns
    -------
    (n, dim+1) array
        ``l_i = (1 + r_i) / 2`` for i = 1..dim and ``l_0 = 1 - l_1 - ... - l_dim``: coordinate i is
        1 at vertex i and 0 on face i.
    """
    rest = (1 + check_points("points", points)) / 2
    return np.column_stack([1 - rest.sum(axis=1), rest])


def cartesian(bary: np.ndarray) -> np.ndarray:
    """Reference coordinates (n, dim) of barycentric coordinates (n, dim+1): ``r_i = 2 l_i - 1``."""
    return 2 * check_points("bary", bary)[:, 1:] - 1


def multi_indices(dim: int, order: int) -> np.ndarray:
    """Multi-indices of the lattice of a given order.

    Parameters
    ----------
    dim : int
        0 to 3 (0 is a point, the face of an interval).
    order : int
        0 or more.

    Returns
    -------
    (Np, dim+1) array of int
        Rows ``(a_0, ..., a_dim)`` of sum `order`, sorted by ``(a_dim, ..., a_1)``.
    """
    rows = space_dimension(dim, order)
    tuples = (a for a in itertools.product(range(order + 1), repeat=dim) if sum(a) <= order)
    rest = np.array(list(tuples), dtype=int).reshape(rows, dim)[:, ::-1]
    return np.column_stack([order - rest.sum(axis=1), rest])


def lattice_numbers(dim: int, order: int) -> dict[tuple[int, ...], int]:
    """Number of every multi-index: the inverse of :func:`multi_indices`, as a dictionary."""
    return {tuple(a): n for n, a in enumerate(multi_indices(dim, order).tolist())}


def face_layers(dim: int, order: int) -> tuple[tuple[np.ndarray, ...], ...]:
    """Nodes of every face and of every layer parallel to it.

    Returns
    -------
    tuple of dim+1 tuples of order+1 int arrays
        ``face_layers(dim, N)[f][i]`` numbers the nodes with ``a_f = i``, at distance i from face f.
        They come in the order of ``multi_indices(dim - 1, N - i)`` on the vertices of the face.
    """
    check_integer("dim", dim, 1, 3)
    indices = multi_indices(dim, order)
    return tuple(
        tuple(np.flatnonzero(indices[:, f] == i) for i in range(order + 1)) for f in range(dim + 1)
    )


def face_nodes(dim: int, order: int) -> np.ndarray:
    """Nodes on every face: layer 0 of :func:`face_layers`, shape (dim+1, Nfp), ints."""
    return np.array([layers[0] for layers in face_layers(dim, order)])


def face_node_permutations(dim: int, order: int) -> dict[tuple[int, ...], np.ndarray]:
    """How two elements that share a face see each other's face nodes.

    The face's vertices have local numbers 0..dim-1 on either side, by increasing vertex number.
    If vertex ``j`` here is vertex ``p[j]`` there, node ``i`` here is node ``permutations[p][i]``
    there.

    Returns
    -------
    dict
        For each of the dim! tuples ``p``, an int array of shape (Nfp,).

    Notes
    -----
    The lattice is matched, in integers; no coordinates are compared and no tolerance is needed.
    It serves every basis whose functions on a face permute with the vertices: the nodal basis on
    warp-and-blend nodes and the Bernstein basis do.
    """
    check_integer("dim", dim, 1, 3)
    here = multi_indices(dim - 1, order)
    number = lattice_numbers(dim - 1, order)
    permutations = {}
    for p in itertools.permutations(range(dim)):
        permuted = np.empty_like(here)
        permuted[:, p] = here
        permutations[p] = np.array([number[tuple(b)] for b in permuted.tolist()])
    return permutations
