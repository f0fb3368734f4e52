"""The Lebesgue constant of a set of nodes: its true maximum, not the largest value of a scan."""

import numpy as np

from dgbook.arguments import check_integer, check_points

from .modal import vandermonde
from .simplex import cartesian, multi_indices

# Points of the scan along an edge, per degree. Twice as many change the constants of this book's
# nodes by no more than rounding (tests/cpu/test_element_lebesgue.py).
SCAN = 4
# Local maxima of the scan below this share of its largest value are not followed.
WORTH = 0.9
# The last step of the climb; the value is off by about its square.
FINEST = 1e-7


def lebesgue_function(nodes: np.ndarray, order: int, points: np.ndarray) -> np.ndarray:
    """Sum of the absolute values of all Lagrange polynomials at some points.

    Parameters
    ----------
    nodes : (Np, dim) array
        Unisolvent nodes of total degree `order` in the biunit simplex, dim = 1, 2 or 3.
    order : int
        Polynomial degree, 1 or more.
    points : (n, dim) array

    Returns
    -------
    (n,) array

    Raises
    ------
    TypeError, ValueError
        If `order` is no integer above zero, or the nodes are not as many as it needs.
    """
    return _row_sums(_to_modes(nodes, order), order, points)


def lebesgue_constant(nodes: np.ndarray, order: int) -> float:
    """Largest value of the Lebesgue function on the biunit simplex.

    Parameters and errors are those of :func:`lebesgue_function`.

    Notes
    -----
    The function is scanned on an equidistant lattice. From every local maximum of the scan that is
    worth it, a pattern search climbs along the edges' directions, all searches side by side, and
    halves its step where no direction leads up. As the largest of the smooth functions
    ``sum_i s_i l_i`` with signs ``s_i``, the Lebesgue function has no kink at a maximum, so that
    the result is as good as rounding permits. For the definition see Hesthaven and Warburton, Nodal
    Discontinuous Galerkin Methods (2008), section 3.1.
    """
    modes = _to_modes(nodes, order)
    dim = np.shape(nodes)[1]
    lattice = multi_indices(dim, SCAN * order)
    values = _row_sums(modes, order, cartesian(lattice / (SCAN * order)))
    # Steps along an edge: one barycentric coordinate gives what another one takes.
    moves = np.array([a - b for a in np.eye(dim + 1) for b in np.eye(dim + 1) if (a != b).any()])
    at = lattice[_tops(lattice, values, moves)] / (SCAN * order)
    best = _row_sums(modes, order, cartesian(at))
    step = np.full(len(at), 0.5 / (SCAN * order))
    while (step > FINEST).any():
        tried = at[:, None, :] + step[:, None, None] * moves
        inside = tried.min(axis=2) >= 0
        found = np.full(inside.shape, -np.inf)
        found[inside] = _row_sums(modes, order, cartesian(tried[inside]))
        upward = found.argmax(axis=1)
        rows = np.arange(len(at))
        better = found[rows, upward] > best
        at[better] = tried[rows, upward][better]
        best[better] = found[rows, upward][better]
        step[~better] /= 2
    return float(best.max())


def _to_modes(nodes: np.ndarray, order: int) -> np.ndarray:
    """V^-1 for the given nodes, after a look at the arguments."""
    check_integer("order", order, 1)
    nodes = check_points("nodes", nodes)
    V = vandermonde(nodes.shape[1], order, nodes)
    if V.shape[0] != V.shape[1]:
        raise ValueError(f"nodes has {len(nodes)} rows; order {order} needs {V.shape[1]}")
    return np.linalg.inv(V)


def _row_sums(modes: np.ndarray, order: int, points: np.ndarray) -> np.ndarray:
    return np.abs(vandermonde(points.shape[1], order, points) @ modes).sum(axis=1)


def _tops(lattice: np.ndarray, values: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """Numbers of the lattice's points that no neighbor exceeds, and that are worth a climb."""
    number = {tuple(a): n for n, a in enumerate(lattice.tolist())}
    around = (lattice[:, None, :] + moves.astype(int)).tolist()
    highest = [max(values[number[tuple(b)]] for b in near if tuple(b) in number) for near in around]
    return np.flatnonzero((values >= np.array(highest)) & (values >= WORTH * values.max()))
