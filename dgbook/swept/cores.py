"""Classic and the swept rule on processor cores: what a GPU is compared with."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.extending import NativeValue, models, overload, register_model, unbox

from dgbook.nodal.cores import Sources
from dgbook.swept.arithmetic import CORES, on_core
from dgbook.swept.point import make_access, make_neighbors
from dgbook.swept.problem import PROBLEMS, Problem

PIECE = 2**12
"""Points that a core takes at a time in the Classic scheme."""
FILES = ("arithmetic", "cores", "point", "problem")
SOURCES = Sources(*(sys.modules[f"dgbook.swept.{name}"] for name in FILES))


# ------------------------------------------------------------------------------ functions on disk


class _MadeType(types.Opaque):
    """Type of an argument that says which function to call; its name is all that this depends on.

    Numba keeps no function that closes over compiled ones: it would not know them again. It does
    keep `_call`, for each type of arguments that it was called with.

    Parameters
    ----------
    maker : function
        Of this file, to a tuple of functions.
    arguments : tuple
        Its arguments, a problem of this book first.
    number : int
        Which of the tuple.
    """

    def __init__(self, maker: Callable, arguments: tuple[Any, ...], number: int) -> None:
        self.maker, self.arguments, self.number = maker, arguments, number
        super().__init__(f"{maker.__name__}{arguments}[{number}] of {SOURCES.digest}")


class _Made:
    """An argument of such a type: Numba asks it for its type when it is called with it."""

    def __init__(self, *which: Any) -> None:
        self._numba_type_ = _MadeType(*which)


register_model(_MadeType)(models.OpaqueModel)


@unbox(_MadeType)
def _unbox(kind: _MadeType, value: Any, c: Any) -> NativeValue:
    return NativeValue(c.context.get_dummy_value())


def _function(made, arguments):
    """What compiled code calls; `_compiled` says what that is."""


@overload(_function)
def _compiled(made, arguments):
    function = made.maker(*made.arguments)[made.number]

    def call(made, arguments):
        function(*arguments)

    return call


@numba.njit(cache=True)
def _call(made, *arguments):
    _function(made, arguments)


def _kept(maker: Callable, *arguments: Any) -> tuple[Callable, ...]:
    """The functions that a maker makes, kept on disk; of a reader's own problem as they are made.

    Its text may stand anywhere, and change.
    """
    made = maker(*arguments)
    if type(arguments[0]) not in PROBLEMS.values():
        return made
    return tuple(partial(_call, _Made(maker, arguments, number)) for number in range(len(made)))


# ------------------------------------------------------------------------------------- a substep


def _make_points(problem: Problem, dtype: str, stage: int) -> tuple[Callable, Callable]:
    """Compiled functions: a substep at one point, and at all from one to another.

    Of the first substep old is the source, in the second it is what new holds: with an array less
    the compiler sees that nothing overlaps, and vectorizes. The second function takes no boundary
    into account.
    """
    real, reach = np.dtype(dtype).type, problem.reach
    again = stage == 1 and len(problem.weights) == 2
    load, store, gather, advance = make_access(problem, real, CORES)
    # Nor does it where an index may be negative. (Numba makes floats of unsigned and signed ones.)
    index = np.uint64 if len(problem.fields) == 1 else np.intp

    @on_core
    def point(source, new, points, w, stride):
        at = points[reach]
        mine = load(source, at, stride)
        old = load(new, at, stride) if again else mine
        store(new, at, stride, advance(old, w, gather(source, 0, points, stride, mine)))

    if reach == 1:

        @on_core
        def around(source, i, stride, mine):
            return (
                load(source, index(i - 1), stride),
                mine,
                load(source, index(i + 1), stride),
            )

    else:

        @on_core
        def around(source, i, stride, mine):
            return (
                load(source, index(i - 2), stride),
                load(source, index(i - 1), stride),
                mine,
                load(source, index(i + 1), stride),
                load(source, index(i + 2), stride),
            )

    @on_core
    def plain(source, new, first, last, w, stride):
        for i in range(first, last):
            at = index(i)
            mine = load(source, at, stride)
            old = load(new, at, stride) if again else mine
            store(new, at, stride, advance(old, w, around(source, i, stride, mine)))

    return point, plain


@lru_cache(maxsize=32)
def _substeps(problem: Problem, dtype: str) -> tuple[Callable, Callable]:
    """See `make_substeps`."""
    real = np.dtype(dtype).type
    fields, reach, stages = len(problem.fields), problem.reach, len(problem.weights)
    fixed = problem.boundary == "fixed"
    neighbors = make_neighbors(reach, problem.boundary, CORES)

    def make_substep(stage):
        point, plain = _make_points(problem, dtype, stage)
        w = real(problem.weights[stage])

        @on_core(parallel=True)
        def substep(source, new):
            n = source.size // fields
            for piece in numba.prange(-(-n // PIECE)):
                first = max(piece * PIECE, reach)
                plain(source, new, first, min((piece + 1) * PIECE, n - reach), w, n)
            for k in range(reach):
                for i in (k, n - 1 - k):
                    at_end = fixed and k == 0
                    point(source, new, neighbors(i, 0, n - 1), real(0) if at_end else w, n)

        return substep

    return make_substep(0), make_substep(stages - 1)


@lru_cache(maxsize=32)
def make_substeps(problem: Problem, dtype: str) -> tuple[Callable, Callable]:
    """The first substep and the last, each a parallel loop over the points.

    Returns
    -------
    functions
        ``substep(source, new)``, (fields n,) both. Of a second substep new holds the old states.
    """
    return _kept(_substeps, problem, dtype)


@lru_cache(maxsize=32)
def _classic(problem: Problem, dtype: str) -> tuple[Callable]:
    """See `make_classic`."""
    stages = len(problem.weights)
    first, last = _substeps(problem, dtype)

    @on_core
    def classic(u, middle, steps):
        for _ in range(steps):
            first(u, middle)
            if stages == 2:
                last(middle, u)
            else:
                u, middle = middle, u
        if stages == 1 and steps % 2 == 1:
            middle[:] = u

    return (classic,)


@lru_cache(maxsize=32)
def make_classic(problem: Problem, dtype: str) -> Callable:
    """The Classic scheme.

    Returns
    -------
    function
        ``classic(u, middle, steps)``, with u and middle (fields n,): u is advanced in place,
        middle is room to work in.
    """
    return _kept(_classic, problem, dtype)[0]


class Nodes:
    """The swept rule on cores: a node is a turn of a parallel loop, and has its own working array.

    Edges `left` and `right` are those of the GPU's kernels, see `dgbook.swept.kernels.shared`.

    Parameters
    ----------
    problem : Problem
    node : int
        Points of a node, a multiple of 4r.
    dtype : {"float64", "float32"}
    n : int
        Points of the domain.
    first, nodes : int, optional
        Whose nodes these are: so many from the first; if not given, the whole domain's. Edges of a
        part have a place more, at the end: there stands the right edge of the node before the
        part where diamonds are shifted, else the left edge of the node behind it. A part's `u` is
        a ring: shifted down-triangles leave the half node before the part at its end.
    """

    def __init__(
        self,
        problem: Problem,
        node: int,
        dtype: str,
        n: int,
        first: int = 0,
        nodes: int | None = None,
    ) -> None:
        self.node, self.n, self.top = node, n, node // problem.reach
        self._whose = node, n // node if nodes is None else nodes, first, n
        self._sweep, self._split = _kept(_sweep, problem, dtype)
        self._none = np.empty(0, dtype)

    def up(self, u: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
        """The up-triangles of all nodes, from states to edges."""
        no = self._none
        self._sweep(u, no, no, left, right, no, *self._whose, False, self.top // 2 + 1, self.top)

    def diamond(self, left, right, new_left, new_right, shifted: bool) -> None:
        """Their diamonds, from edges to edges."""
        no = self._none
        self._sweep(no, left, right, new_left, new_right, no, *self._whose, shifted, 1, self.top)

    def down(self, left: np.ndarray, right: np.ndarray, u: np.ndarray, shifted: bool) -> None:
        """Their down-triangles, from edges to states."""
        no = self._none
        self._sweep(no, left, right, no, no, u, *self._whose, shifted, 1, self.top // 2)

    def split(
        self, left: np.ndarray, right: np.ndarray, new_left: np.ndarray, new_right: np.ndarray
    ) -> None:
        """The diamond that is split at the boundary, alone: Hybrid's part.

        Parameters
        ----------
        left, right : (fields node,) arrays
            The left edge of the first node and the right edge of the last.
        new_left, new_right : (fields node,) arrays
            Its own edges; overwritten.
        """
        self._split(left, right, new_left, new_right, self.node, self.n)


@lru_cache(maxsize=32)
def _fill(problem: Problem, dtype: str, stage: int) -> tuple[Callable]:
    """See `make_fill`."""
    real, reach = np.dtype(dtype).type, problem.reach
    stage %= len(problem.weights)
    w = real(problem.weights[stage])
    point, plain = _make_points(problem, dtype, stage)
    if problem.ends == "none":

        @on_core
        def fill(source, new, first, last, start, width, n):
            plain(source, new, first, last, w, width)

        return (fill,)

    fixed = problem.boundary == "fixed"
    neighbors = make_neighbors(reach, problem.ends, CORES)

    @on_core
    def at_ends(source, new, low, high, begin, end, width):
        for at in range(low, high):
            v = real(0) if fixed and (at == begin or at == end - 1) else w
            point(source, new, neighbors(at, begin, end - 1), v, width)

    @on_core
    def fill(source, new, first, last, start, width, n):
        # The domain begins once more n points before and after `start`: the node that is split at
        # the boundary holds points of two.
        for begin in (start - n, start, start + n):
            end = begin + n
            low, high = max(first, begin), min(last, end)
            if low < high:
                plain(source, new, max(low, begin + reach), min(high, end - reach), w, width)
                at_ends(source, new, low, min(high, begin + reach), begin, end, width)
                at_ends(source, new, max(low, end - reach), high, begin, end, width)

    return (fill,)


@lru_cache(maxsize=32)
def make_fill(problem: Problem, dtype: str, stage: int) -> Callable:
    """Compiled function: a substep of a node's points from one to another, with the boundary.

    ``fill(source, new, first, last, start, width, n)``: the domain of n points begins at `start`.
    """
    return _kept(_fill, problem, dtype, stage)[0]


@lru_cache(maxsize=32)
def _sweep(problem: Problem, dtype: str) -> tuple[Callable, Callable]:
    """Compiled functions: all nodes from one level to another, and the split node's diamond."""
    real = np.dtype(dtype).type
    fields, reach = len(problem.fields), problem.reach
    first_substep, last_substep = (_fill(problem, dtype, stage)[0] for stage in (0, -1))

    @on_core
    def march(even, odd, start, node, n, level, last):
        width, center, top = node + 2 * reach, node // 2 + reach, node // reach
        while level < last:
            wide = reach * min(level, top - level)
            first_substep(even, odd, center - wide, center + wide, start, width, n)
            level += 1
            wide = reach * min(level, top - level)
            last_substep(odd, even, center - wide, center + wide, start, width, n)
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
    def sweep(
        u, left, right, new_left, new_right, new_u, node, nodes, begin, n, shifted, level, last
    ):
        size, points, width = fields * node, nodes * node, node + 2 * reach
        places = max(nodes, left.size // size)
        for b in numba.prange(nodes):
            even, odd = np.empty(fields * width, real), np.empty(fields * width, real)
            first = b * node - (node // 2 if shifted else 0)
            if level == 1:
                before = (b - 1) % places if shifted else b
                after = b if shifted else (b + 1) % places
                from_left = right[before * size : (before + 1) * size]
                from_right = left[after * size : (after + 1) * size]
                insert(even, odd, from_right, from_left, node)
            else:
                for f in range(fields):
                    for i in range(node):
                        even[f * width + reach + i] = u[f * points + first + i]
            march(even, odd, reach - first - begin * node, node, n, level, last)
            if last == node // reach:
                mine = slice(b * size, (b + 1) * size)
                extract(even, odd, new_left[mine], new_right[mine], node)
            else:
                for f in range(fields):
                    for i in range(node):
                        new_u[f * points + (first + i) % points] = even[f * width + reach + i]

    @on_core
    def split(left, right, new_left, new_right, node, n):
        size = fields * (node + 2 * reach)
        even, odd = np.empty(size, real), np.empty(size, real)
        insert(even, odd, left, right, node)
        march(even, odd, node // 2 + reach, node, n, 1, node // reach)
        extract(even, odd, new_left, new_right, node)

    return sweep, split
