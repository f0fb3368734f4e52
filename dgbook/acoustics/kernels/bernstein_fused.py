"""The fused Bernstein-Bezier kernel: a stage in one pass."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.nodal.kernels.teams import make_meet
from dgbook.nodal.trace import WAYS

GHOST = 24  # the `way` of faces on the boundary
GEOMETRY = 20  # numbers per element
HALF = 16  # bits per position; a word has two
BYTES = 16  # bytes per point


@jit(device=True)
def place(word, half, first):
    """Index of the point whose position is in this half of a word.

    Positions count bytes from the first point.
    """
    position = (word >> np.uint32(HALF * half)) & np.uint32(65535)
    return np.uint32(first + position // np.uint32(BYTES))


def make_flux(shape):
    """Device function for the flux kappa Fs s at a point of a face.

    s = a [p] - b n.[v] at point j of face f of element k, whose fields
    there are quads[v]. The points are numbered from the face's last
    vertex.
    """
    Np, Nfp = shape.Np, shape.Nfp

    @jit(device=True)
    def inward(f, x, y, z):  # J grad(l_f) . v: the normal velocity
        if f == 0:
            return -(x + y + z)
        return x if f == 1 else y if f == 2 else z

    @jit(device=True)
    def flux_at(
        k, f, j, quads, v, u, data, links, opposite, geometry, walls
    ):
        link = links[4 * k + f]
        way, neighbor = link % WAYS, link // WAYS
        # p and the inflow on both sides of the face.
        p = quads[v, 0]
        inner = inward(f, quads[v, 1], quads[v, 2], quads[v, 3])
        if way < GHOST:
            w = np.uint32(4 * (neighbor * Np + opposite[way * Nfp + j]))
            P, V = u[w], inward(way // 6, u[w + 1], u[w + 2], u[w + 3])
        else:  # u^+ = M u^- + g
            m, size = 5 * neighbor, data.size // 4
            w = np.uint32(neighbor * Nfp + Nfp - 1 - j)
            P = walls[m] * p + data[w]
            V = -walls[m + 1] * inner
            for d in range(3):
                V += walls[m + 2 + d] * data[(d + 1) * size + w]
        # The flux, with the weights of the face.
        g = np.uint32(GEOMETRY * k + f)
        return geometry[g] * (P - p) - geometry[g + 4] * (V + inner)

    return flux_at


def make_sweep(shape, plan):
    """Device function for the slices of the lift.

    It computes the slices, from quads[S] on, from the fluxes, from
    quads[F] on. t[h] holds the fluxes on the four faces at point
    j = point[h], in row r of a face, and then the slices' values at
    this point.
    """
    real = np.dtype(shape.dtype).type
    N, Np, Nfp, lanes = shape.order, shape.Np, shape.Nfp, plan.lanes
    rounds = -(-plan.elements * Nfp // lanes)
    spread, meet = real(2 * N + 3), make_meet(plan)

    @jit(device=True)
    def sweep(t, point, quads, lane, F, S, nodes, squares):
        # Slice 0: L_0, from six neighbors on the face. Where a neighbor
        # is missing, c is 0, and some other number is read.
        for h in range(rounds):
            i, j = np.uint32(lane + h * lanes), point[h]
            if j < Nfp:
                r = np.uint32(nodes[4 * j] >> np.uint32(HALF))
                v = np.uint32(F + i)
                w = np.uint32(S + i // Nfp * Np + j)
                c_0, c_1 = squares[4 * j], squares[4 * j + 1]
                c_2 = squares[4 * j + 2]
                up, down = np.uint32(v - r), np.uint32(v + r)
                for f in range(4):
                    x = (c_0 + c_1 + c_2 + spread) * t[h, f]
                    x += c_0 * (quads[v - 1, f] + quads[up - 1, f])
                    x += c_1 * (quads[v + 1, f] + quads[up, f])
                    x += c_2 * (quads[down + 1, f] + quads[down + 2, f])
                    t[h, f] = x
                for f in range(4):
                    quads[w, f] = t[h, f]
        # Each slice from the one before; the next one has
        # 1 + ... + rest points.
        rest, old, new = np.uint32(N), S, np.uint32(S + Nfp)
        while rest > 0:
            meet()
            count = np.uint32(rest * (rest + 1) // 2)
            for h in range(rounds):
                i, j = np.uint32(lane + h * lanes), point[h]
                if j < count:
                    r = np.uint32(nodes[4 * j] >> np.uint32(HALF))
                    p = np.uint32(i // Nfp * Np + j)
                    down, w = np.uint32(old + p + r), np.uint32(new + p)
                    for f in range(4):
                        x = quads[down + 1, f] + quads[down + 2, f]
                        t[h, f] += x
                    for f in range(4):
                        quads[w, f] = t[h, f]
            old, new = new, np.uint32(new + count)
            rest = np.uint32(rest - 1)

    return sweep


def make_points(shape):
    """Device functions for derivatives and for du/dt at one point."""
    real = np.dtype(shape.dtype).type
    zero = real(0)

    @jit(device=True)
    def differentiate(quads, low, high, v, w):
        # The state at the four points around one of degree N - 1.
        i, y, z = place(low, 0, v), place(low, 1, v), place(high, 0, v)
        x = np.uint32(i + 1)
        p = quads[i, 0]
        div = quads[x, 1] - quads[i, 1]
        div += quads[y, 2] - quads[i, 2]
        div += quads[z, 3] - quads[i, 3]
        p_x, p_y, p_z = quads[x, 0], quads[y, 0], quads[z, 0]
        quads[w, 0], quads[w, 1] = div, p_x - p
        quads[w, 2], quads[w, 3] = p_y - p, p_z - p

    @jit(device=True)
    def rate_at(d, s, quads, n, rows, weights, v, w, geometry, g):
        # Elevate derivatives to degree N, and gather the lifted flux.
        for c in range(4):
            d[c] = zero
        for j in range(4):
            q = place(rows[4 * n + j // 2], j % 2, v)
            factor = weights[8 * n + j]
            for c in range(4):
                d[c] += factor * quads[q, c]
            q = place(rows[4 * n + 2 + j // 2], j % 2, w)
            s[j] = weights[8 * n + 4 + j] * quads[q, j]
        # The lifted flux also changes grad p; then apply the metric.
        for m in range(1, 4):
            d[m] += geometry[g + 8] * s[0] - geometry[g + 8 + m] * s[m]
        x, y, z = d[1], d[2], d[3]
        g12, g13 = geometry[g + 13], geometry[g + 14]
        g23 = geometry[g + 16]
        d[0] = geometry[g + 18] * d[0] + ((s[0] + s[1]) + (s[2] + s[3]))
        d[1] = geometry[g + 12] * x + g12 * y + g13 * z
        d[2] = g12 * x + geometry[g + 15] * y + g23 * z
        d[3] = g13 * x + g23 * y + geometry[g + 17] * z

    return differentiate, rate_at


def make_bernstein_fused(shape, plan, factored=False):
    """Kernel for res = a res + dt du/dt, new = u + b res.

    It has to read u and res once from memory and to write new and res
    once, 4 words per degree of freedom; neighbors' points, and u for
    the update, are found again in the caches. If a = 0 it does not read
    res, and if b = 0 it does not write new. If it is factored, it
    computes res = a res + b u + dt du/dt alone. The state holds p and J
    grad(l_m) . v, m = 1, 2, 3, point by point.

    A team of plan.lanes threads works on plan.elements elements; if the
    team is a warp, it never waits for other warps. Its shared memory
    holds quadruples: derivatives of degree N - 1 from D on; fluxes on
    the four faces from F on; the state, and at the end du/dt, from U
    on; the slices of the lift from S on. bernstein_fused/lift.cuh says
    how one slice follows from another.
    """
    real = np.dtype(shape.dtype).type
    Np, Nfp, lower = shape.Np, shape.Nfp, shape.Np - shape.Nfp
    lanes, teams, elements = plan.lanes, plan.teams, plan.elements
    faces, rounds = elements * Nfp, -(-elements * Nfp // lanes)
    points, size = elements * Np, elements * (lower + Nfp + 2 * Np)
    every, zero, none = teams * size, real(0), np.uint32(Nfp)
    flux_at = make_flux(shape)
    differentiate, rate_at = make_points(shape)
    meet, sweep = make_meet(plan), make_sweep(shape, plan)

    @jit
    def bernstein_fused(
        u, data, links, opposite, nodes, squares, corners, rows,
        weights, geometry, boundary, res, new, a, b, dt, begin,
    ):  # fmt: skip
        quads = cuda.shared.array((every, 4), real, alignment=16)
        t = cuda.local.array((rounds, 4), real)
        point = cuda.local.array(rounds, np.uint32)
        d, s = cuda.local.array(4, real), cuda.local.array(4, real)
        lane = np.uint32(cuda.threadIdx.x % lanes)
        team = np.uint32(cuda.threadIdx.x // lanes)
        # A launch takes the elements from `begin` on.
        team_of_all = np.uint32(cuda.blockIdx.x * teams + team)
        first = np.uint32(begin + team_of_all * elements)
        D = np.uint32(team * size)
        F = np.uint32(D + elements * lower)
        U, S = np.uint32(F + faces), np.uint32(F + faces + points)
        # Load the team's states into shared memory.
        i, start = lane, np.uint32(4 * first * Np)
        while i < 4 * points:
            quads[U + i // 4, i % 4] = u[start + i]
            i = np.uint32(i + lanes)
        meet()
        # Derivatives of degree N - 1.
        i = lane
        while i < elements * lower:
            n = np.uint32(2 * (i % lower))
            v = np.uint32(U + i // lower * Np)
            w = np.uint32(D + i)
            differentiate(quads, corners[n], corners[n + 1], v, w)
            i = np.uint32(i + lanes)
        # The flux at this thread's points of the four faces.
        for h in range(rounds):
            i = np.uint32(lane + h * lanes)
            e, j = np.uint32(i // Nfp), np.uint32(i % Nfp)
            point[h] = j if i < faces else none
            if point[h] < none:
                k, w = np.uint32(first + e), np.uint32(U + e * Np)
                for f in range(4):
                    v = place(nodes[4 * j + f], 0, w)
                    t[h, f] = squares[4 * j + 3] * flux_at(
                        k, f, j, quads, v, u, data, links, opposite,
                        geometry, boundary)  # fmt: skip
                for f in range(4):
                    quads[F + i, f] = t[h, f]
        meet()
        sweep(t, point, quads, lane, F, S, nodes, squares)
        meet()
        # du/dt at every point.
        i = lane
        while i < points:
            e, n = np.uint32(i // Np), np.uint32(i % Np)
            v, w = np.uint32(D + e * lower), np.uint32(S + e * Np)
            g = np.uint32(GEOMETRY * (first + e))
            rate_at(d, s, quads, n, rows, weights, v, w, geometry, g)
            for c in range(4):
                quads[U + i, c] = d[c]
            i = np.uint32(i + lanes)
        meet()
        # The update, through contiguous memory.
        i = lane
        while i < 4 * points:
            r = dt * quads[U + i // 4, i % 4]
            if a != zero:
                r += a * res[start + i]
            if factored and b != zero:
                r += b * u[start + i]
            res[start + i] = r
            if not factored and b != zero:
                new[start + i] = u[start + i] + b * r
            i = np.uint32(i + lanes)

    return bernstein_fused
