"""What a thread does that owns several neighboring points: load, find neighbors, update them."""

from functools import cache

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.swept.arithmetic import GPU
from dgbook.swept.point import make_access


def make_row(problem, points, real):
    """Device function that updates a row of points: all new = old + w slope.

    row(near, old, new, alive, w, g, n): near holds the row's states and r on either
    side, (fields (points + 2r),), a field after the other; old and new
    (fields points,) may be one array; of points whose bit is not set in
    `alive`, new stays as it is. g is the index of the row's first point in
    the domain of n points: fixed ends do not change.

    It is a chain of functions, one per point, for then all positions are
    constants, and arrays that never leave a thread stay in registers; no loop
    of that length would be unrolled. What a function hands to the next is
    what two points share: of Euler a face's flux and inner energies, so that
    each is computed once. The operations are those of the slope, in their order.
    """
    reach, width = problem.reach, points + 2 * problem.reach
    fixed = problem.boundary == "fixed"
    load, store, _, advance = make_access(problem, real, GPU)
    fma = GPU.fma

    @jit(device=True)
    def weight(w, g, n):
        return real(0) if fixed and (g <= 0 or g >= n - 1) else w

    if problem.faces:
        inner, twice_flux = problem.make_faces(real, GPU)

        @jit(device=True)
        def first(near, old, new, alive, w, g, n):
            a, b = load(near, 1, width), load(near, 2, width)
            e0, e1 = inner(load(near, 0, width)), inner(a)
            e2, e3 = inner(b), inner(load(near, 3, width))
            return e1, e2, e3, twice_flux(a, b, e0, e1, e2, e3)

        def make_next(j, before):
            @jit(device=True)
            def update(near, old, new, alive, w, g, n):
                # What the point before has computed, and what is new here.
                e1, e2, e3, west = before(
                    near, old, new, alive, w, g, n
                )
                e4 = inner(load(near, j + 4, width))
                a, b = (
                    load(near, j + 2, width),
                    load(near, j + 3, width),
                )
                east = twice_flux(a, b, e1, e2, e3, e4)
                # The point's substep, from the fluxes of its two faces.
                v, state = weight(w, g + j, n), load(old, j, points)
                state = (
                    fma(v, west[0] - east[0], state[0]),
                    fma(v, west[1] - east[1], state[1]),
                    fma(v, west[2] - east[2], state[2]),
                )
                if alive >> j & 1:
                    store(new, j, points, state)
                return e2, e3, e4, east

            return update

    else:

        @jit(device=True)
        def first(near, old, new, alive, w, g, n):
            return 0

        def make_next(j, before):
            @jit(device=True)
            def update(near, old, new, alive, w, g, n):
                # The point before, then this one's stencil and substep.
                before(near, old, new, alive, w, g, n)
                v, state = weight(w, g + j, n), load(old, j, points)
                if reach == 1:
                    stencil = near[j], near[j + 1], near[j + 2]
                else:
                    stencil = (
                        near[j],
                        near[j + 1],
                        near[j + 2],
                        near[j + 3],
                        near[j + 4],
                    )
                state = advance(state, v, stencil)
                if alive >> j & 1:
                    store(new, j, points, state)
                return 0

            return update

    row = first
    for j in range(points):
        row = make_next(j, row)
    return row


@cache
def make_wrap(problem):
    """Device function ``wrap(g, n)``: which point stands at g, outside of the domain too."""
    if problem.boundary == "periodic":

        @jit(device=True)
        def wrap(g, n):
            if (
                g < 0 or g >= n
            ):  # a remainder takes dozens of instructions
                g = np.int32(g % n)
            return np.uint32(g)

    elif problem.boundary == "mirrored":

        @jit(device=True)
        def wrap(g, n):
            if g < 0 or g >= n:
                g = np.int32(g % (2 * n - 2))
            return np.uint32(g if g < n else 2 * n - 2 - g)

    else:

        @jit(device=True)
        def wrap(g, n):
            return np.uint32(min(max(g, 0), n - 1))

    return wrap


def make_substep(problem, stage, points, real):
    """Device function for one substep of a row, from and to global memory.

    substep(u, new, g, n): of the points g to g + points - 1; u and new as in
    the Classic kernel, of points + 2r points or more.
    """
    fields, reach = len(problem.fields), problem.reach
    width, low = points + 2 * reach, np.int32(reach)
    near_size, size = fields * width, fields * points
    w, all_points = real(problem.weights[stage]), (1 << points) - 1
    row, wrap = make_row(problem, points, real), make_wrap(problem)

    @jit(device=True)
    def substep(u, new, g, n):
        near = cuda.local.array(near_size, real)
        states = cuda.local.array(size, real)
        # Of the nearest row with no end in reach: all addresses are one and a
        # constant.
        c = min(max(g, low), np.int32(n - points - low))
        for f in range(fields):
            for k in range(width):
                near[f * width + k] = u[
                    np.uint64(f * n + c + k - reach)
                ]
        # Near an end of the domain addresses are looked up.
        if g != c:
            for k in range(width):
                at = wrap(np.int32(g + k - reach), n)
                for f in range(fields):
                    near[f * width + k] = u[np.uint64(f * n + at)]
        # What is updated: the states of the level before.
        for f in range(fields):
            for j in range(points):
                at = np.uint64(f * n + g + j)
                states[f * points + j] = (
                    near[f * width + reach + j]
                    if stage == 0
                    else new[at]
                )
        # The substep, and the new states.
        row(near, states, states, all_points, w, g, n)
        for f in range(fields):
            for j in range(points):
                new[np.uint64(f * n + g + j)] = states[f * points + j]

    return substep
