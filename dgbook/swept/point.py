"""What every compiled scheme does at a point: find neighbors, load, update, store.

Functions are made once for equal arguments: what several kernels call has its types inferred once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from dgbook.swept.arithmetic import Arithmetic
from dgbook.swept.problem import Problem


class Access(NamedTuple):
    """States in flat arrays, in which a field follows another at a distance `stride`.

    A state is a scalar where there is one field, else a tuple, as slopes take it.

    Attributes
    ----------
    load : function
        ``load(array, at, stride)``: the state at position `at`.
    store : function
        ``store(array, at, stride, state)``.
    gather : function
        ``gather(array, row, points, stride, mine)``: the stencil, the states at row + point for
        each, but `mine` in the middle: a thread has that in registers.
    advance : function
        ``advance(old, weight, stencil)``: old + weight slope(stencil).
    """

    load: Callable
    store: Callable
    gather: Callable
    advance: Callable


@cache
def make_access(problem: Problem, real: type, arithmetic: Arithmetic) -> Access:
    """The functions of `Access` for a problem; a device or a core compiles no loop over fields."""
    jit, fma = arithmetic.jit, arithmetic.fma
    slope = problem.make_slope(real, arithmetic)

    if len(problem.fields) == 1:

        @jit
        def load(array, at, stride):
            return array[at]

        @jit
        def store(array, at, stride, state):
            array[at] = state

        @jit
        def advance(old, weight, stencil):
            return fma(weight, slope(stencil), old)

    else:

        @jit
        def load(array, at, stride):
            return array[at], array[at + stride], array[at + stride + stride]

        @jit
        def store(array, at, stride, state):
            array[at] = state[0]
            array[at + stride] = state[1]
            array[at + stride + stride] = state[2]

        @jit
        def advance(old, weight, stencil):
            change = slope(stencil)
            return (
                fma(weight, change[0], old[0]),
                fma(weight, change[1], old[1]),
                fma(weight, change[2], old[2]),
            )

    if problem.reach == 1:

        @jit
        def gather(array, row, points, stride, mine):
            return (
                load(array, row + points[0], stride),
                mine,
                load(array, row + points[2], stride),
            )

    else:

        @jit
        def gather(array, row, points, stride, mine):
            return (
                load(array, row + points[0], stride),
                load(array, row + points[1], stride),
                mine,
                load(array, row + points[3], stride),
                load(array, row + points[4], stride),
            )

    return Access(load, store, gather, advance)


@cache
def make_neighbors(reach: int, boundary: str, arithmetic: Arithmetic) -> Callable:
    """The function ``neighbors(at, first, last)``: positions of the stencil around position `at`.

    Of a point of the domain, so that those before it pass no end but the first, those after it
    none but the last: a choice of two each, without a branch.

    Parameters
    ----------
    reach : int
        r, 1 or 2.
    boundary : {"periodic", "mirrored", "fixed", "none"}
        What is behind `first` and `last`, the positions of the domain's end points in the array.
    arithmetic : Arithmetic

    Returns
    -------
    function
        To a tuple of 2r+1 positions.
    """
    jit, where = arithmetic.jit, arithmetic.where
    index, whole = arithmetic.index, arithmetic.whole

    if boundary == "mirrored":

        @jit
        def before(at, first, last):
            return index(where(at < first, whole(first + first - at), at))

        @jit
        def after(at, first, last):
            return index(where(at > last, whole(last + last - at), at))

    elif boundary == "fixed":

        @jit
        def before(at, first, last):
            return index(where(at < first, first, at))

        @jit
        def after(at, first, last):
            return index(where(at > last, last, at))

    elif boundary == "periodic":

        @jit
        def before(at, first, last):
            return index(where(at < first, whole(at + last - first + 1), at))

        @jit
        def after(at, first, last):
            return index(where(at > last, whole(at - last + first - 1), at))

    else:

        @jit
        def before(at, first, last):
            return index(at)

        after = before

    if reach == 1:

        @jit
        def neighbors(at, first, last):
            return (
                before(whole(at - 1), first, last),
                index(at),
                after(whole(at + 1), first, last),
            )

    else:

        @jit
        def neighbors(at, first, last):
            return (
                before(whole(at - 2), first, last),
                before(whole(at - 1), first, last),
                index(at),
                after(whole(at + 1), first, last),
                after(whole(at + 2), first, last),
            )

    return neighbors
