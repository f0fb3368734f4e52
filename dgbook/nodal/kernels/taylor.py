"""The kernel of local time steps: steps end and begin in one pass."""

from typing import Any, NamedTuple

import numpy as np

from dgbook.gpu import cuda, jit

CLUSTER, LONGER, SHORTER, WORDS = 0, 1, 2, 3
"""Words that describe an element: the number of its cluster, and where
in a region its sum of two steps and its first half step are."""
NOWHERE = 0xFFFFFFFF  # no neighbor reads it


class Parts(NamedTuple):
    """What a family says of its equations, by device functions.

    Attributes
    ----------
    width : int
        Fields of a node that lie together; all nodes of these fields
        come first, then those of the next.
    size : int
        Numbers of an element in a region.
    numbers : int
        Of the flux at a face node.
    flux_to : function
        ``flux_to(work, to, k, f, i, v, u, data, links, opposite,
        tangents, geometry, boundary)`` puts them into work[to], ... Own
        values begin at work[v], others are in u.
    add_column : function
        ``add_column(c, d1, d2, d3, work, v)``: c += a column of the
        three derivatives times the mode that begins at work[v].
    add_face : function
        ``add_face(c, f, lifted, geometry, k)``: c += what the numbers
        mean that are lifted from a face.
    finish : function
        ``finish(c, geometry, k)``: the factors of element k in du/dt.
    """

    width: int
    size: int
    numbers: int
    flux_to: Any
    add_column: Any
    add_face: Any
    finish: Any


def make_keep():
    """Device function that writes a number of Q for neighbors.

    Element k's step begins with a tick. Its integral is `whole`, that
    over its first half `part`; both are number i of `size` of an
    element in a region. See `dgbook.nodal.local.Layout`.
    """

    @jit(device=True)
    def keep(tick, groups, k, size, i, whole, part, even, odd, halves):
        g = np.uint32(WORDS * k)
        bits = tick >> groups[g + CLUSTER]
        place = np.uint32(k * size + i)
        if bits & 1:
            odd[place] = whole
        else:
            even[place] = whole
        longer, shorter = groups[g + LONGER], groups[g + SHORTER]
        if longer != NOWHERE:  # the sum of two steps
            place = np.uint32(longer * size + i)
            two = whole
            if bits & 2:
                if bits & 1:
                    two += odd[place]
                odd[place] = two
            else:
                if bits & 1:
                    two += even[place]
                even[place] = two
        if shorter != NOWHERE:  # one half after the other
            if bits & 1:
                shorter = np.uint32(shorter + halves)
            place = np.uint32(shorter * size + i)
            even[place] = part
            odd[place] = whole - part

    return keep


def make_taylor(shape, rows, parts):
    """Kernel in which steps end with a tick, and others begin.

    Of the first `count` elements, whose clusters do both: what the
    faces have gained is added to the state, and the new step's
    polynomial at its end replaces it. Its integral goes to one of two
    regions, from which neighbors read it, see
    `dgbook.nodal.local.Layout`. A row of threads works on an element, a
    thread on a mode or a node of it.
    """
    real = np.dtype(shape.dtype).type
    Np, Nfp, order = shape.Np, shape.Nfp, shape.order
    fields, lower, zero = shape.fields, shape.lower, real(0)
    width, size, numbers = parts.width, parts.size, parts.numbers
    plane, words, points = width * Np, fields * Np, 4 * Nfp
    threads, half, both = rows * Np, rows * words, 2 * rows * words
    flux_to, add_column = parts.flux_to, parts.add_column
    add_face, finish, keep = parts.add_face, parts.finish, make_keep()

    @jit
    def taylor(
        tick, count, ends, begins, halves, state, even, odd, data,
        levels, now, later, groups, opposite, tangents, face_nodes,
        geometry, boundary, weights, derivative, lift, vandermonde
    ):  # fmt: skip
        # Two halves: a term and the next one, or Q and fluxes.
        work = cuda.shared.array(both, real)
        s = cuda.local.array(fields, real)
        c = cuda.local.array(fields, real)
        lifted = cuda.local.array(numbers, real)
        sums = cuda.local.array((3, fields), real)
        lane = np.uint32(cuda.threadIdx.x)
        row = np.uint32(cuda.threadIdx.y)
        thread = np.uint32(row * Np + lane)
        first = np.uint32(cuda.blockIdx.x * rows)
        k = np.uint32(first + row)
        own = np.uint32(row * words + width * lane)
        for x in range(fields):
            s[x] = state[(fields * k + x) * Np + lane]
        if ends:
            # Integrals over the steps that end, into shared memory.
            before = np.uint32(tick - 1)
            p = thread
            while p < half:
                e = np.uint32(p // words)
                n = np.uint32(first + e)
                q = np.uint32(n * size + p - e * words)
                bits = before >> groups[WORDS * n + CLUSTER]
                work[p] = zero
                if n < count:
                    work[p] = odd[q] if bits & 1 else even[q]
                p = np.uint32(p + threads)
            cuda.syncthreads()
            # The flux, a few numbers per face node.
            p = thread
            while p < rows * points:
                e, f = np.uint32(p // points), np.uint32(p // Nfp % 4)
                n = np.uint32(first + e)
                v = np.uint32(
                    e * words + width * face_nodes[p % points]
                )
                bits = before >> groups[WORDS * n + CLUSTER]
                to = np.uint32(half + numbers * p)
                for x in range(numbers):
                    work[to + x] = zero
                if n < count:
                    flux_to(
                        work, to, n, f, np.uint32(p % Nfp), v,
                        odd if bits & 1 else even, data,
                        later if bits & 2 else now, opposite, tangents,
                        geometry, boundary)  # fmt: skip
                p = np.uint32(p + threads)
            cuda.syncthreads()
            # Lift it face by face.
            for x in range(fields):
                c[x] = zero
            v = np.uint32(half + numbers * row * points)
            j = lane
            for f in range(4):
                for x in range(numbers):
                    lifted[x] = zero
                i = np.uint32(0)
                while i < Nfp:
                    l = lift[j]
                    for x in range(numbers):
                        lifted[x] += l * work[v + x]
                    i = np.uint32(i + 1)
                    j = np.uint32(j + Np)
                    v = np.uint32(v + numbers)
                add_face(c, f, lifted, geometry, k)
            finish(c, geometry, k)
            for x in range(fields):
                s[x] += c[x]

        if begins:
            # The expansion, and its sums: the polynomial at the end of
            # the step, Q, and the integral over the first half.
            g = np.uint32(WORDS * k)
            w = np.uint32(groups[g + CLUSTER] * 3 * (order + 1))
            for x in range(fields):
                work[own + x // width * plane + x % width] = s[x]
                for i in range(3):
                    sums[i, x] = weights[w + i] * s[x]
            cuda.syncthreads()
            here, there = np.uint32(0), np.uint32(half)
            for j in range(1, order + 1):
                high, low = levels[j - 1], levels[j]
                p = thread
                while p < rows * low:
                    e = np.uint32(p // low)
                    n = np.uint32(p - e * low)
                    for x in range(fields):
                        c[x] = zero
                    v, d, m = np.uint32(here + e * words), n, high
                    while m > 0:
                        add_column(
                            c, derivative[d], derivative[d + lower],
                            derivative[d + 2 * lower], work, v
                        )  # fmt: skip
                        m = np.uint32(m - 1)
                        d = np.uint32(d + 3 * lower)
                        v = np.uint32(v + width)
                    finish(c, geometry, np.uint32(first + e))
                    v = np.uint32(there + e * words + width * n)
                    for x in range(fields):
                        work[v + x // width * plane + x % width] = c[x]
                    p = np.uint32(p + threads)
                here, there = there, here
                cuda.syncthreads()
                w = np.uint32(w + 3)
                if lane < low:
                    for x in range(fields):
                        v = x // width * plane + x % width
                        value = work[here + own + v]
                        for i in range(3):
                            sums[i, x] += weights[w + i] * value
            # From modes to nodes, for all who read it.
            for x in range(fields):
                v = np.uint32(own + x // width * plane + x % width)
                work[there + v] = sums[1, x]
                work[here + v] = sums[2, x]
                s[x] = sums[0, x]
            cuda.syncthreads()
            for x in range(fields):
                sums[0, x] = sums[1, x] = zero
            halved = groups[g + SHORTER] != NOWHERE
            m, q = lane, np.uint32(row * words)
            while m < Np * Np:
                l = vandermonde[m]
                for x in range(fields):
                    v = np.uint32(q + x // width * plane + x % width)
                    sums[0, x] += l * work[there + v]
                    if halved:
                        sums[1, x] += l * work[here + v]
                m = np.uint32(m + Np)
                q = np.uint32(q + width)
            cuda.syncthreads()
            for x in range(fields):
                v = np.uint32(own + x // width * plane + x % width)
                work[there + v] = sums[0, x]
                work[here + v] = sums[1, x]
            cuda.syncthreads()
            p = thread
            while p < half:
                e = np.uint32(p // words)
                n = np.uint32(first + e)
                if n < count:
                    keep(
                        tick, groups, n, size, np.uint32(p - e * words),
                        work[there + p], work[here + p], even, odd,
                        halves)  # fmt: skip
                p = np.uint32(p + threads)
        if k < count:
            for x in range(fields):
                state[(fields * k + x) * Np + lane] = s[x]

    return taylor
