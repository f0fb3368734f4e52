"""Classic and the swept rule on processor cores: what a GPU is compared with."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numba
import numpy as np

from dgbook.swept.arithmetic import CORES, on_core
from dgbook.swept.point import make_access, make_neighbors
from dgbook.swept.problem import Problem

PIECE = 2**12
"""Points that a core takes at a time in the Classic scheme."""


def _make_points(problem: Problem, dtype: str) -> tuple[Callable, Callable]:
    """Compiled functions: new = old + w slope(source) at one point, and at all from one to another.

    The second takes no boundary into account.
    """
    real, reach = np.dtype(dtype).type, problem.reach
    load, store, gather, advance = make_access(problem, real, CORES)
    around = make_neighbors(reach, "none", CORES)

    @on_core
    def point(source, old, new, points, w, stride):
        at = points[reach]
        stencil = gather(source, 0, points, stride, load(source, at, stride))
        store(new, at, stride, advance(load(old, at, stride), w, stencil))

    @on_core
    def plain(source, old, new, first, last, w, stride):
        if first >= last:
            return
        # From parts that begin at 0: the compiler sees no negative index, and vectorises.
        source, old, new = source[first - reach :], old[first:], new[first:]
        for i in range(last - first):
            mine = load(source, i + reach, stride)
            stencil = gather(source, 0, around(i + reach, 0, 0), stride, mine)
            store(new, i, stride, advance(load(old, i, stride), w, stencil))

    return point, plain


@lru_cache(maxsize=32)
def make_classic(problem: Problem, dtype: str) -> Callable:
    """The Classic scheme, each substep a parallel loop over the points.

    Returns
    -------
    function
        ``classic(u, middle, steps)``, with u and middle (fields n,): u is advanced in place,
        middle is room to work in.
    """
    real = np.dtype(dtype).type
    fields, reach, stages = len(problem.fields), problem.reach, len(problem.weights)
    w_odd, w_even = real(problem.weights[0]), real(problem.weights[-1])
    fixed = problem.boundary == "fixed"
    point, plain = _make_points(problem, dtype)
    neighbors = make_neighbors(reach, problem.boundary, CORES)

    @on_core(parallel=True)
    def substep(source, old, new, w):
        n = source.size // fields
        for piece in numba.prange(-(-n // PIECE)):
            first = max(piece * PIECE, reach)
            plain(source, old, new, first, min((piece + 1) * PIECE, n - reach), w, n)
        for k in range(reach):
            for i in (k, n - 1 - k):
                at_end = fixed and k == 0
                point(source, old, new, neighbors(i, 0, n - 1), real(0) if at_end else w, n)

    @on_core
    def classic(u, middle, steps):
        for _ in range(steps):
            substep(u, u, middle, w_odd)
            if stages == 2:
                substep(middle, u, u, w_even)
            else:
                u, middle = middle, u
        if stages == 1 and steps % 2 == 1:
            middle[:] = u

    return classic


class Nodes:
    """The swept rule on cores: a node is a turn of a parallel loop, and has its own working array.

    Edges `left` and `right` are those of the GPU's kernels, see `dgbook.swept.kernels.shared`.

    Parameters
    ----------
    problem : Problem
    node : int
        Points of a node, a multiple of 4r.
    dtype : {"float64", "float32"}
    """

    def __init__(self, problem: Problem, node: int, dtype: str) -> None:
        self.node, self.top = node, node // problem.reach
        self._sweep, self._split = _make_sweep(problem, dtype)
        self._none = np.empty(0, dtype)

    def up(self, u: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
        """The up-triangles of all nodes, from states to edges."""
        no = self._none
        self._sweep(u, no, no, left, right, no, self.node, False, self.top // 2 + 1, self.top)

    def diamond(self, left, right, new_left, new_right, shifted: bool) -> None:
        """Their diamonds, from edges to edges."""
        no = self._none
        self._sweep(no, left, right, new_left, new_right, no, self.node, shifted, 1, self.top)

    def down(self, left: np.ndarray, right: np.ndarray, u: np.ndarray, shifted: bool) -> None:
        """Their down-triangles, from edges to states."""
        no = self._none
        self._sweep(no, left, right, no, no, u, self.node, shifted, 1, self.top // 2)

    def split(self, left: np.ndarray, right: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The diamond that is split at the boundary, alone: Hybrid's part.

        Parameters
        ----------
        left, right : (fields node,) arrays
            The left edge of the first node and the right edge of the last.
        n : int
            Points of the domain.

        Returns
        -------
        left, right : (fields node,) arrays
            Its own edges.
        """
        new_left, new_right = np.empty_like(left), np.empty_like(right)
        self._split(left, right, new_left, new_right, self.node, n)
        return new_left, new_right


@lru_cache(maxsize=32)
def _make_sweep(problem: Problem, dtype: str) -> tuple[Callable, Callable]:
    """Compiled functions: all nodes from one level to another, and the split node's diamond."""
    real = np.dtype(dtype).type
    fields, reach, stages = len(problem.fields), problem.reach, len(problem.weights)
    w_odd, w_even = real(problem.weights[0]), real(problem.weights[-1])
    fixed = problem.boundary == "fixed"
    point, plain = _make_points(problem, dtype)
    neighbors = make_neighbors(reach, problem.ends, CORES)

    @on_core
    def at_ends(source, old, new, low, high, begin, end, w, width):
        for at in range(low, high):
            v = real(0) if fixed and (at == begin or at == end - 1) else w
            point(source, old, new, neighbors(at, begin, end - 1), v, width)

    @on_core
    def fill(source, old, new, first, last, start, w, width, n):
        # The domain begins at `start`, and once more n points before and after that: the node
        # that is split at the boundary holds points of two.
        for begin in (start - n, start, start + n):
            end = begin + n
            low, high = max(first, begin), min(last, end)
            plain(source, old, new, max(low, begin + reach), min(high, end - reach), w, width)
            at_ends(source, old, new, low, min(high, begin + reach), begin, end, w, width)
            at_ends(source, old, new, max(low, end - reach), high, begin, end, w, width)

    @on_core
    def march(even, odd, start, node, n, level, last):
        width, center, top = node + 2 * reach, node // 2 + reach, node // reach
        while level < last:
            wide = reach * min(level, top - level)
            fill(even, even, odd, center - wide, center + wide, start, w_odd, width, n)
            level += 1
            wide = reach * min(level, top - level)
            old = even if stages == 2 else odd
            fill(odd, old, even, center - wide, center + wide, start, w_even, width, n)
            level += 1

    @on_core
    def extract(even, odd, left, right, node):
        half = node // 2
        for f in range(fields):
            row = f * (node + 2 * reach)
            for i in range(half):
                left[f * node + i] = even[row + reach + i]
                right[f * node + i] = even[row + reach + half + i]
                left[f * node + half + i] = odd[row + 2 * reach + i]
                right[f * node + half + i] = odd[row + half + i]

    @on_core
    def insert(even, odd, left, right, node):
        half = node // 2
        for f in range(fields):
            row = f * (node + 2 * reach)
            for i in range(half):
                even[row + reach + i] = right[f * node + i]
                even[row + reach + half + i] = left[f * node + i]
                odd[row + i] = right[f * node + half + i]
                odd[row + 2 * reach + half + i] = left[f * node + half + i]

    @on_core(parallel=True)
    def sweep(u, left, right, new_left, new_right, new_u, node, shifted, level, last):
        size = fields * node
        nodes = max(u.size, left.size) // size
        n = nodes * node
        width = node + 2 * reach
        for b in numba.prange(nodes):
            even, odd = np.empty(fields * width, real), np.empty(fields * width, real)
            first = b * node - (node // 2 if shifted else 0)
            if level == 1:
                before = (b - 1) % nodes if shifted else b
                after = b if shifted else (b + 1) % nodes
                from_left = right[before * size : (before + 1) * size]
                from_right = left[after * size : (after + 1) * size]
                insert(even, odd, from_right, from_left, node)
            else:
                for f in range(fields):
                    for i in range(node):
                        even[f * width + reach + i] = u[f * n + first + i]
            march(even, odd, reach - first, node, n, level, last)
            if last == node // reach:
                mine = slice(b * size, (b + 1) * size)
                extract(even, odd, new_left[mine], new_right[mine], node)
            else:
                for f in range(fields):
                    for i in range(node):
                        new_u[f * n + (first + i) % n] = even[f * width + reach + i]

    @on_core
    def split(left, right, new_left, new_right, node, n):
        size = fields * (node + 2 * reach)
        even, odd = np.empty(size, real), np.empty(size, real)
        insert(even, odd, left, right, node)
        march(even, odd, node // 2 + reach, node, n, 1, node // reach)
        extract(even, odd, new_left, new_right, node)

    return sweep, split
