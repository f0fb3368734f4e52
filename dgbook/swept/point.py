"""What every compiled scheme does at a point: find neighbors, load, update, store."""

from __future__ import annotations

from collections.abc import Callable
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


def make_neighbors(reach: int, boundary: str, arithmetic: Arithmetic) -> Callable:
    """The function ``neighbors(at, first, last)``: positions of the stencil around position `at`.

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
    jit, index = arithmetic.jit, arithmetic.index

    if boundary == "mirrored":

        @jit
        def inside(at, first, last):
            if at < first:
                at = first + first - at
            elif at > last:
                at = last + last - at
            return index(at)

    elif boundary == "fixed":

        @jit
        def inside(at, first, last):
            if at < first:
                at = first
            elif at > last:
                at = last
            return index(at)

    elif boundary == "periodic":

        @jit
        def inside(at, first, last):
            if at < first:
                at = at + (last - first + 1)
            elif at > last:
                at = at - (last - first + 1)
            return index(at)

    else:

        @jit
        def inside(at, first, last):
            return index(at)

    if reach == 1:

        @jit
        def neighbors(at, first, last):
            return inside(at - 1, first, last), index(at), inside(at + 1, first, last)

    else:

        @jit
        def neighbors(at, first, last):
            return (
                inside(at - 2, first, last),
                inside(at - 1, first, last),
                index(at),
                inside(at + 1, first, last),
                inside(at + 2, first, last),
            )

    return neighbors
