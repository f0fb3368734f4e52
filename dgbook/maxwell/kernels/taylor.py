"""The kernel of local time steps: steps end and begin in one pass."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.maxwell.kernels.fused import make_flux
from dgbook.nodal.kernels.regions import CLUSTER, NOWHERE, SHORTER, WORDS, make_keep


def make_curl(shape):
    """Device functions: V at a mode, and its last factor.

    c = V of a term whose `width` modes begin at state[v], at the mode
    whose row of derivatives begins at derivative[d], covariant.
    """
    real = np.dtype(shape.dtype).type
    lower, zero, words = shape.lower, real(0), shape.geometry

    @jit(device=True)
    def lower_indices(c, geometry, g):
        g11, g12, g13 = geometry[g], geometry[g + 1], geometry[g + 2]
        g22, g23, g33 = geometry[g + 3], geometry[g + 4], geometry[g + 5]
        for h in range(0, 6, 3):
            x, y, z = c[h], c[h + 1], c[h + 2]
            c[h] = g11 * x + g12 * y + g13 * z
            c[h + 1] = g12 * x + g22 * y + g23 * z
            c[h + 2] = g13 * x + g23 * y + g33 * z

    @jit(device=True)
    def curl_at(c, width, derivative, d, state, v, geometry, k):
        for x in range(6):
            c[x] = zero
        m = np.uint32(0)
        while m < width:
            d1 = derivative[d]
            d2 = derivative[d + lower]
            d3 = derivative[d + 2 * lower]
            x, y, z = state[v], state[v + 1], state[v + 2]
            c[3] += d3 * y
            c[3] -= d2 * z
            c[4] += d1 * z
            c[4] -= d3 * x
            c[5] += d2 * x
            c[5] -= d1 * y
            x, y, z = state[v + 3], state[v + 4], state[v + 5]
            c[0] += d2 * z
            c[0] -= d3 * y
            c[1] += d3 * x
            c[1] -= d1 * z
            c[2] += d1 * y
            c[2] -= d2 * x
            m = np.uint32(m + 1)
            d = np.uint32(d + 3 * lower)
            v = np.uint32(v + 6)
        lower_indices(c, geometry, np.uint32(k * words))

    return curl_at, lower_indices


def make_taylor(shape, rows):
    """Kernel in which steps end with a tick, and others begin.

    Of the first `count` elements, whose clusters do both: what the
    faces have gained is added to the state, and the new step's
    polynomial at its end replaces it. Its integral goes to one of two
    regions, from which neighbors read it, see
    `dgbook.nodal.local.Layout`. The state holds modes of x_i . E and
    x_i . (Z H); regions hold them at nodes. A row of threads works on
    an element, a thread on a mode or a node of it.
    """
    real = np.dtype(shape.dtype).type
    Np, Nfp, order = shape.Np, shape.Nfp, shape.order
    size, points, words = 6 * shape.even_Np, 4 * Nfp, 6 * Np
    threads, half, zero = rows * Np, rows * words, real(0)
    geometry_words = shape.geometry
    flux_at, keep = make_flux(shape), make_keep()
    curl_at, lower_indices = make_curl(shape)

    @jit
    def taylor(
        tick, count, ends, begins, halves, state, even, odd, data,
        now, later, groups, opposite, tangents, face_nodes, geometry,
        boundary, levels, weights, derivative, lift, vandermonde
    ):  # fmt: skip
        # Two halves: a term and the next one, or Q and fluxes.
        work = cuda.shared.array(2 * half, real)
        s = cuda.local.array(6, real)
        c = cuda.local.array(6, real)
        sums = cuda.local.array((3, 6), real)
        lane = np.uint32(cuda.threadIdx.x)
        row = np.uint32(cuda.threadIdx.y)
        thread = np.uint32(row * Np + lane)
        first = np.uint32(cuda.blockIdx.x * rows)
        k = np.uint32(first + row)
        own = np.uint32(row * words + 6 * lane)
        for x in range(6):
            s[x] = state[(6 * k + x) * Np + lane]
        if ends:
            # Integrals over the steps that end, into shared memory.
            before = np.uint32(tick - 1)
            p = thread
            while p < half:
                e = np.uint32(p // words)
                q = np.uint32((first + e) * size + p - e * words)
                n = np.uint32(first + e)
                bits = before >> groups[WORDS * n + CLUSTER]
                if n < count:
                    work[p] = odd[q] if bits & 1 else even[q]
                else:
                    work[p] = zero
                p = np.uint32(p + threads)
            cuda.syncthreads()
            # The flux: two numbers per face node.
            p = thread
            while p < rows * points:
                e, f = np.uint32(p // points), np.uint32(p // Nfp % 4)
                n = np.uint32(first + e)
                v = np.uint32(e * words + 6 * face_nodes[p % points])
                bits = before >> groups[WORDS * n + CLUSTER]
                A, B = zero, zero
                if n < count:
                    A, B = flux_at(
                        n, f, np.uint32(p % Nfp), work, v,
                        odd if bits & 1 else even, data,
                        later if bits & 2 else now, opposite, tangents,
                        geometry, boundary)  # fmt: skip
                work[half + 2 * p], work[half + 2 * p + 1] = A, B
                p = np.uint32(p + threads)
            cuda.syncthreads()
            # Lift it face by face, along the tangents of each face.
            for x in range(6):
                c[x] = zero
            v = np.uint32(half + 2 * row * points)
            j = lane
            for f in range(4):
                A, B = zero, zero
                i = np.uint32(0)
                while i < Nfp:
                    l = lift[j]
                    A += l * work[v]
                    B += l * work[v + 1]
                    i = np.uint32(i + 1)
                    j = np.uint32(j + Np)
                    v = np.uint32(v + 2)
                g = np.uint32(k * geometry_words + 6 + 3 * f)
                g11, g12 = geometry[g], geometry[g + 1]
                g22 = geometry[g + 2]
                t1, t2 = 1 if f < 2 else 0, 2 if f < 3 else 1
                E1, E2 = (B, -A) if f % 2 else (-B, A)
                H1, H2 = g22 * A - g12 * B, g11 * B - g12 * A
                c[t1] += E1
                c[t2] += E2
                c[3 + t1] += H1
                c[3 + t2] += H2
                if f == 0:
                    c[0] -= E1 + E2
                    c[3] -= H1 + H2
            lower_indices(c, geometry, np.uint32(k * geometry_words))
            for x in range(6):
                s[x] += c[x]

        if begins:
            # The expansion, and its sums: the polynomial at the end of
            # the step, Q, and the integral over the first half.
            group = np.uint32(WORDS * k)
            w = np.uint32(groups[group + CLUSTER] * 3 * (order + 1))
            for x in range(6):
                work[own + x] = s[x]
                for i in range(3):
                    sums[i, x] = weights[w + i] * s[x]
            cuda.syncthreads()
            here, there = np.uint32(0), np.uint32(half)
            for j in range(1, order + 1):
                width, height = levels[j - 1], levels[j]
                p = thread
                while p < rows * height:
                    e = np.uint32(p // height)
                    n = np.uint32(p - e * height)
                    v = np.uint32(e * words)
                    curl_at(
                        c, width, derivative, n, work, here + v,
                        geometry, first + e)  # fmt: skip
                    v = np.uint32(there + v + 6 * n)
                    for x in range(6):
                        work[v + x] = c[x]
                    p = np.uint32(p + threads)
                here, there = there, here
                cuda.syncthreads()
                w = np.uint32(w + 3)
                if lane < height:
                    for x in range(6):
                        value = work[here + own + x]
                        for i in range(3):
                            sums[i, x] += weights[w + i] * value
            # From modes to nodes, for all who read it.
            for x in range(6):
                s[x] = sums[0, x]
                work[there + own + x] = sums[1, x]
                work[here + own + x] = sums[2, x]
            cuda.syncthreads()
            for x in range(6):
                sums[0, x] = sums[1, x] = zero
            m, v = lane, np.uint32(row * words)
            halved = groups[group + SHORTER] != NOWHERE
            while m < Np * Np:
                l = vandermonde[m]
                for x in range(6):
                    sums[0, x] += l * work[there + v + x]
                if halved:
                    for x in range(6):
                        sums[1, x] += l * work[here + v + x]
                m = np.uint32(m + Np)
                v = np.uint32(v + 6)
            cuda.syncthreads()
            for x in range(6):
                work[there + own + x] = sums[0, x]
                work[here + own + x] = sums[1, x]
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
            for x in range(6):
                state[(6 * k + x) * Np + lane] = s[x]

    return taylor
