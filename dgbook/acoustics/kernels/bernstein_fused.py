"""The fused Bernstein-Bezier kernel: a whole stage in one pass over memory."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.gpu.limits import WARP
from dgbook.nodal.trace import WAYS

GHOST = 24  # the way to meet that means the boundary
GEOMETRY = 20  # numbers per element
HALF = 16  # bits of a position in a word
BYTES = 16  # of a point


@jit(device=True)
def place(word, half, first):
    """Where the point is, behind the first, whose position is half of a word.

    Positions are in bytes.
    """
    position = (word >> np.uint32(HALF * half)) & np.uint32(65535)
    return np.uint32(first + position // np.uint32(BYTES))


def make_flux(shape):
    """Device function for kappa Fs s, the scalar that is lifted from a face.

    s = a [p] - b n.[v] at point j of face f of element k, whose own numbers are
    quads[v]. The points are numbered from the face's last vertex.
    """
    Np, Nfp = shape.Np, shape.Nfp

    @jit(device=True)
    def inward(f, x, y, z):  # J grad(l_f) . v: the normal velocity
        return (
            -(x + y + z)
            if f == 0
            else (x if f == 1 else y if f == 2 else z)
        )

    @jit(device=True)
    def flux_at(
        k, f, j, quads, v, u, data, links, opposite, geometry, walls
    ):
        way, neighbor = (
            links[4 * k + f] % WAYS,
            links[4 * k + f] // WAYS,
        )
        # p, and the velocity that flows in, on either side of the face.
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


def make_meet(plan):
    """Device function for a barrier of a team."""
    lanes = plan.lanes

    @jit(device=True)
    def meet():
        if lanes == WARP:
            cuda.syncwarp()
        else:
            cuda.syncthreads()

    return meet


def make_sweep(shape, plan):
    """Device function that makes slices quads[S] out of fluxes quads[F].

    t[h] are the fluxes at point j = point[h] of a face, of row r; then they are
    what the slices have there.
    """
    real = np.dtype(shape.dtype).type
    N, Np, Nfp, lanes = shape.order, shape.Np, shape.Nfp, plan.lanes
    rounds = -(-plan.elements * Nfp // lanes)
    spread, meet = real(2 * N + 3), make_meet(plan)

    @jit(device=True)
    def sweep(t, point, quads, lane, F, S, nodes, squares):
        # From six neighbors on the face.
        for h in range(rounds):  # slice 0: L_0
            i, j = np.uint32(lane + h * lanes), point[h]
            if j < Nfp:
                r = np.uint32(nodes[4 * j] >> np.uint32(HALF))
                v, w = (
                    np.uint32(F + i),
                    np.uint32(S + i // Nfp * Np + j),
                )
                c_0, c_1 = squares[4 * j], squares[4 * j + 1]
                c_2 = squares[4 * j + 2]
                up, down = np.uint32(v - r), np.uint32(v + r)
                for f in range(
                    4
                ):  # where c is 0 some other number is read
                    x = (c_0 + c_1 + c_2 + spread) * t[h, f]
                    x += c_0 * (quads[v - 1, f] + quads[up - 1, f])
                    x += c_1 * (quads[v + 1, f] + quads[up, f])
                    x += c_2 * (quads[down + 1, f] + quads[down + 2, f])
                    t[h, f] = x
                for f in range(4):
                    quads[w, f] = t[h, f]
        # Slice by slice, each from the one before.
        rest, old, new = np.uint32(N), S, np.uint32(S + Nfp)
        while rest > 0:  # the next slice has 1 + ... + rest points
            meet()
            count = np.uint32(rest * (rest + 1) // 2)
            for h in range(rounds):
                i, j = np.uint32(lane + h * lanes), point[h]
                if j < count:
                    r = np.uint32(nodes[4 * j] >> np.uint32(HALF))
                    p = np.uint32(i // Nfp * Np + j)
                    down, w = np.uint32(old + p + r), np.uint32(new + p)
                    for f in range(4):
                        t[h, f] += (
                            quads[down + 1, f] + quads[down + 2, f]
                        )
                    for f in range(4):
                        quads[w, f] = t[h, f]
            old, new = new, np.uint32(new + count)
            rest = np.uint32(rest - 1)

    return sweep


def make_points(shape):
    """Device functions for a derivative of degree N - 1 and for du/dt."""
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
        # Raise derivatives to degree N, and gather what was lifted.
        for c in range(4):
            d[c] = zero
        for j in range(4):
            q = place(rows[4 * n + j // 2], j % 2, v)
            factor = weights[8 * n + j]
            for c in range(4):
                d[c] += factor * quads[q, c]
            q = place(rows[4 * n + 2 + j // 2], j % 2, w)
            s[j] = weights[8 * n + 4 + j] * quads[q, j]
        # The lifted jumps change grad p, too; then the metric.
        for m in range(1, 4):
            d[m] += geometry[g + 8] * s[0] - geometry[g + 8 + m] * s[m]
        x, y, z = d[1], d[2], d[3]
        g12, g13, g23 = (
            geometry[g + 13],
            geometry[g + 14],
            geometry[g + 16],
        )
        d[0] = geometry[g + 18] * d[0] + ((s[0] + s[1]) + (s[2] + s[3]))
        d[1] = geometry[g + 12] * x + g12 * y + g13 * z
        d[2] = g12 * x + geometry[g + 15] * y + g23 * z
        d[3] = g13 * x + g23 * y + geometry[g + 17] * z

    return differentiate, rate_at


def make_bernstein_fused(shape, plan):
    """Kernel for res = a res + dt du/dt, new = u + b res.

    From memory it has to read u and res once and write new and res once, 4
    words per degree of freedom; neighbors' points, and u for the update, are
    found again in the caches. Where a = 0 it does not read res, where b = 0 not
    write new. The state holds p and J grad(l_m) . v, m = 1, 2, 3, point by
    point. A team of plan.lanes threads works on plan.elements elements; if it
    is a warp, it waits for no other. Its quadruples in shared memory: from D on
    derivatives in degree N - 1, from F on fluxes on four faces, from U on the
    state and, at the end, du/dt, from S on the slices of the lift, of which
    bernstein_fused/lift.cuh tells how they follow each other.
    """
    real = np.dtype(shape.dtype).type
    Np, Nfp, lower = shape.Np, shape.Nfp, shape.Np - shape.Nfp
    lanes, teams, elements = plan.lanes, plan.teams, plan.elements
    faces, rounds = elements * Nfp, -(-elements * Nfp // lanes)
    points, size = elements * Np, elements * (lower + Nfp + 2 * Np)
    every, zero, none = teams * size, real(0), np.uint32(Nfp)
    flux_at, (differentiate, rate_at) = (
        make_flux(shape),
        make_points(shape),
    )
    meet, sweep = make_meet(plan), make_sweep(shape, plan)

    @jit
    def bernstein_fused(
        u, data, links, opposite, nodes, squares, corners, rows, weights,
        geometry, boundary, res, new, a, b, dt,
    ):  # fmt: skip
        quads = cuda.shared.array((every, 4), real, alignment=16)
        t = cuda.local.array((rounds, 4), real)
        point = cuda.local.array(rounds, np.uint32)
        d, s = cuda.local.array(4, real), cuda.local.array(4, real)
        lane = np.uint32(cuda.threadIdx.x % lanes)
        team = np.uint32(cuda.threadIdx.x // lanes)
        first = np.uint32((cuda.blockIdx.x * teams + team) * elements)
        D = np.uint32(team * size)
        F = np.uint32(D + elements * lower)
        U, S = np.uint32(F + faces), np.uint32(F + faces + points)
        # The team's states come to shared memory.
        i, start = lane, np.uint32(4 * first * Np)
        while i < 4 * points:
            quads[U + i // 4, i % 4] = u[start + i]
            i = np.uint32(i + lanes)
        meet()
        # Derivatives in degree N - 1.
        i = lane
        while i < elements * lower:
            n, v = (
                np.uint32(2 * (i % lower)),
                np.uint32(U + i // lower * Np),
            )
            w = np.uint32(D + i)
            differentiate(quads, corners[n], corners[n + 1], v, w)
            i = np.uint32(i + lanes)
        # The flux at this thread's points of the four faces.
        for h in range(rounds):
            i = np.uint32(lane + h * lanes)
            e, j = np.uint32(i // Nfp), np.uint32(i % Nfp)
            point[h] = j if i < faces else none
            if point[h] < none:
                for f in range(4):
                    v = place(
                        nodes[4 * j + f], 0, np.uint32(U + e * Np)
                    )
                    t[h, f] = squares[4 * j + 3] * flux_at(
                        np.uint32(first + e), f, j, quads, v, u, data, links,
                        opposite, geometry, boundary)  # fmt: skip
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
            res[start + i] = r
            if b != zero:
                new[start + i] = u[start + i] + b * r
            i = np.uint32(i + lanes)

    return bernstein_fused
