"""Substeps of a row: the neighboring points that one thread owns."""

from functools import cache

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.swept.arithmetic import GPU
from dgbook.swept.point import make_access


def make_row(problem, points, real):
    """Device function that updates a row of points.

    new = old + w slope

    row(near, old, new, alive, w, g, n): `near` holds the row's states
    and r more on each side, (fields (points + 2r),), one field after
    the other. `old` and `new`, (fields points,), may be the same array.
    A point whose bit in `alive` is not set is left unchanged in `new`.
    g is the index of the row's first point in the domain of n points;
    fixed ends do not change.

    The function is a chain of functions, one per point. So all
    positions are constants, and the arrays of a thread stay in
    registers; a loop of that length would not be unrolled. Each
    function passes on what its point shares with the next one: for the
    Euler equations the flux at a face and internal energies, so that
    each is computed once. The operations are those of the slope, in the
    same order.
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
                # What the point before has computed, and the east face.
                e1, e2, e3, west = before(
                    near, old, new, alive, w, g, n
                )
                e4 = inner(load(near, j + 4, width))
                a = load(near, j + 2, width)
                b = load(near, j + 3, width)
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
                # Update the point before, then this one.
                before(near, old, new, alive, w, g, n)
                v, state = weight(w, g + j, n), load(old, j, points)
                if reach == 1:
                    stencil = near[j], near[j + 1], near[j + 2]
                else:
                    stencil = (
                        near[j], near[j + 1], near[j + 2], near[j + 3],
                        near[j + 4],
                    )  # fmt: skip
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
    """Device function wrap(g, n): the point at index g.

    Outside of the domain, the boundary condition says which one it is.
    """
    if problem.boundary == "periodic":

        @jit(device=True)
        def wrap(g, n):
            # A remainder takes dozens of instructions.
            if g < 0 or g >= n:
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
    """Device function for one substep of a row, in global memory.

    substep(u, new, g, n) updates the points g to g + points - 1. u and
    new are those of the Classic kernel, with points + 2r points or
    more.
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
        # Load from the nearest row that has no end of the domain in
        # reach: all its addresses are one address plus a constant.
        c = min(max(g, low), np.int32(n - points - low))
        for f in range(fields):
            for k in range(width):
                at = np.uint64(f * n + c + k - reach)
                near[f * width + k] = u[at]
        # Near an end of the domain, look each address up.
        if g != c:
            for k in range(width):
                at = wrap(np.int32(g + k - reach), n)
                for f in range(fields):
                    near[f * width + k] = u[np.uint64(f * n + at)]
        # The states to be updated, those of the level before.
        for f in range(fields):
            for j in range(points):
                if stage == 0:
                    state = near[f * width + reach + j]
                else:
                    state = new[np.uint64(f * n + g + j)]
                states[f * points + j] = state
        # The substep; store the new states.
        row(near, states, states, all_points, w, g, n)
        for f in range(fields):
            for j in range(points):
                new[np.uint64(f * n + g + j)] = states[f * points + j]

    return substep
