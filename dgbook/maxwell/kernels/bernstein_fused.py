"""The fused kernel in the Bernstein basis: a stage in one pass."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.nodal.kernels.lift_face import make_lift_face
from dgbook.nodal.kernels.teams import make_meet
from dgbook.nodal.trace import WAYS

GHOST = 24  # the `way` of faces on the boundary
GEOMETRY = 24  # numbers per element: 4 per face, 8 of the metric
METRIC = 16  # index of the metric's first number
POSITION = 65535  # mask of the point's number in a word
CORNER = 16  # first bit of a word's three vertices of 2 bits each
LOWER, UP = 12, 22  # first bits, behind a_1, a_2, a_3 of 4 bits each


def room(shape, elements):
    """Counts of numbers in shared memory.

    They are those of states, curls, fluxes and slices.
    """
    states, curls = 6 * shape.even_Np, 6 * (shape.Np - shape.Nfp)
    parts = states, curls, 8 * shape.Nfp, 8 * shape.Np
    return tuple(elements * part for part in parts)


def make_tangential(shape):
    """Device function for E and Z H along the two tangents of a face.

    The tangents lead from the face's first vertex to its second and its
    third one. The state holds x_i . E and x_i . (Z H) for the edges x_i
    from vertex 0 to vertex i, and a tangent is a difference of edges.
    """
    zero, pairs = np.dtype(shape.dtype).type(0), shape.even_Np

    @jit(device=True)
    def at_vertex(field, point, vertex):
        if vertex == 0:
            return zero, zero
        p = np.uint32(2 * (point + (vertex - 1) * pairs))
        return field[p], field[p + 1]

    @jit(device=True)
    def tangential(field, first, word):
        point = np.uint32(first + (word & POSITION))
        e_0, h_0 = at_vertex(field, point, (word >> CORNER) & 3)
        e_1, h_1 = at_vertex(field, point, (word >> (CORNER + 2)) & 3)
        e_2, h_2 = at_vertex(field, point, (word >> (CORNER + 4)) & 3)
        return e_1 - e_0, e_2 - e_0, h_1 - h_0, h_2 - h_0

    return tangential


def make_outside(shape):
    """Device function for the exterior fields u^+ = M u^- + g.

    On a conducting wall, M is -1 for E and 1 for H; on an absorbing
    boundary it is 0. The point is point j of boundary face `face`.
    """
    Nfp = shape.Nfp

    @jit(device=True)
    def along(t, field, data, place, walls):  # a tangent . g
        step = data.size // 6
        p = np.uint32(place + field * step)
        dot = walls[t] * data[p] + walls[t + 1] * data[p + step]
        return dot + walls[t + 2] * data[p + 2 * step]

    @jit(device=True)
    def outside(face, j, e_1, e_2, h_1, h_2, data, walls):
        m, p = np.uint32(9 * face), np.uint32(face * Nfp + j)
        mirror, conductor, Z = walls[m], walls[m + 1], walls[m + 8]
        return (
            mirror * e_1 + along(m + 2, 0, data, p, walls),
            mirror * e_2 + along(m + 5, 0, data, p, walls),
            conductor * h_1 + Z * along(m + 2, 3, data, p, walls),
            conductor * h_2 + Z * along(m + 5, 3, data, p, walls),
        )

    return outside


def make_flux(shape):
    """Device function for the upwind flux, two numbers per face point.

    They are the components of Z^+ [H] - n x [E] along the tangents t_1
    and t_2 of the face, times Z^- / (Z^- + Z^+), at point j of face f
    of element k, whose state begins with pair `first`.
    """
    Nfp, size = shape.Nfp, 3 * shape.even_Np
    one = np.dtype(shape.dtype).type(1)
    tangential, outside = make_tangential(shape), make_outside(shape)

    @jit(device=True)
    def flux_at(k, f, j, state, first, u, data, links, meeting,
                geometry, walls):  # fmt: skip
        link = links[4 * k + f]
        way, neighbor = link % WAYS, link // WAYS
        # In way 6 f, the neighbor's numbers are this face's own.
        word = meeting[6 * f * Nfp + j]
        e_1, e_2, h_1, h_2 = tangential(state, first, word)
        if way < GHOST:
            word, start = meeting[way * Nfp + j], neighbor * size
            E_1, E_2, H_1, H_2 = tangential(u, start, word)
        else:
            E_1, E_2, H_1, H_2 = outside(
                neighbor, j, e_1, e_2, h_1, h_2, data, walls,
            )  # fmt: skip
        # The upwind flux; n x rotates the jump of E by 90 degrees.
        g = np.uint32(GEOMETRY * k + 4 * f)
        g11, g12, g22 = geometry[g], geometry[g + 1], geometry[g + 2]
        zeta = geometry[g + 3]
        turn = -zeta if f % 2 else zeta
        jump_1, jump_2 = E_1 - e_1, E_2 - e_2
        A = zeta * H_1 - (one - zeta) * h_1
        B = zeta * H_2 - (one - zeta) * h_2
        A += turn * (g11 * jump_2 - g12 * jump_1)
        B += turn * (g12 * jump_2 - g22 * jump_1)
        return A, B

    return flux_at


def make_curl(shape, plan):
    """Device function for curls in degree N - 1, from four points.

    The derivative along the edge from vertex 0 to vertex i is the
    difference of the control points b + e_i and b + e_0. The rates are
    contravariant components of J curl H and -J curl E, without the
    factor N / 2.
    """
    N, pairs = shape.order, np.uint32(2 * shape.even_Np)
    lower = np.uint32(2 * plan.elements * (shape.Np - shape.Nfp))

    @jit(device=True)
    def curl(x, row, up, state):
        y, z = np.uint32(x + pairs), np.uint32(x + 2 * pairs)
        x_y, x_z = state[x + row] - state[x], state[x + up] - state[x]
        y_x, y_z = state[y + 2] - state[y], state[y + up] - state[y]
        z_x, z_y = state[z + 2] - state[z], state[z + row] - state[z]
        return z_y - y_z, x_z - z_x, y_x - x_y

    @jit(device=True)
    def curls_at(word, state, n, rates, first):
        a_1, a_2 = word & 15, (word >> 4) & 15
        a_0 = N - a_1 - a_2 - ((word >> 8) & 15)
        if a_0 > 0:  # this point is b + e_0
            x = np.uint32(2 * n)
            d = np.uint32(2 * (first + (word >> LOWER & 1023)))
            row = np.uint32(2 * (a_0 + a_1 + 1))
            up = np.uint32(2 * (word >> UP))
            c = curl(x + 1, row, up, state)  # of H
            rates[d], rates[d + lower] = c[0], c[1]
            rates[d + 2 * lower] = c[2]
            c, d = curl(x, row, up, state), np.uint32(d + 1)  # of E
            rates[d], rates[d + lower] = -c[0], -c[1]
            rates[d + 2 * lower] = -c[2]

    return curls_at


def make_raise(shape, plan):
    """Device function for curls in degree N: sum_j a_j c_{a - e_j}."""
    real = np.dtype(shape.dtype).type
    N, zero = shape.order, real(0)
    lower = plan.elements * (shape.Np - shape.Nfp)

    @jit(device=True)
    def add(c, factor, rates, place):
        for i in range(3):
            p = np.uint32(2 * (place + i * lower))
            c[i] += factor * rates[p]
            c[3 + i] += factor * rates[p + 1]

    @jit(device=True)
    def raise_curls(c, word, rates, first):
        a_1, a_2, a_3 = word & 15, (word >> 4) & 15, (word >> 8) & 15
        a_0 = N - a_1 - a_2 - a_3
        place, up = first + (word >> LOWER & 1023), word >> UP
        for i in range(6):
            c[i] = zero
        if a_0 > 0:
            add(c, real(a_0), rates, place)
        if a_1 > 0:
            add(c, real(a_1), rates, place - 1)
        if a_2 > 0:
            add(c, real(a_2), rates, place - (a_0 + a_1 + 1))
        if a_3 > 0:
            add(c, real(a_3), rates, place - up)

    return raise_curls


def make_add_faces(shape, plan):
    """Device function that adds lifted fluxes and applies the metric.

    The lifted flux of a face has components along dual tangents of that
    face. The metric makes covariant components of contravariant ones.
    """
    planes = plan.elements * shape.Np

    @jit(device=True)
    def add_face(c, f, A, B, geometry, g):
        g11, g12, g22 = geometry[g], geometry[g + 1], geometry[g + 2]
        s, t = 1 if f < 2 else 0, 2 if f < 3 else 1
        E_1, E_2 = (B, -A) if f % 2 else (-B, A)
        H_1, H_2 = g22 * A - g12 * B, g11 * B - g12 * A
        c[s], c[t] = c[s] + E_1, c[t] + E_2
        c[3 + s], c[3 + t] = c[3 + s] + H_1, c[3 + t] + H_2
        if f == 0:
            c[0], c[3] = c[0] - E_1 - E_2, c[3] - H_1 - H_2

    @jit(device=True)
    def add_faces(c, low, high, weight, lifted, first, geometry, g):
        for f in range(4):
            word = low if f < 2 else high
            p = first + (word >> (16 * (f % 2)) & POSITION)
            p += 2 * f * planes
            A, B = weight * lifted[p], weight * lifted[p + planes]
            add_face(c, f, A, B, geometry, g + 4 * f)
        g = np.uint32(g + METRIC)
        g12, g13 = geometry[g + 1], geometry[g + 2]
        g23 = geometry[g + 4]
        for h in range(0, 6, 3):
            x, y, z = c[h], c[h + 1], c[h + 2]
            c[h] = geometry[g] * x + g12 * y + g13 * z
            c[h + 1] = g12 * x + geometry[g + 3] * y + g23 * z
            c[h + 2] = g13 * x + g23 * y + geometry[g + 5] * z

    return add_faces


def make_first_half(shape, plan):
    """Device functions for a team's curls, and for its fluxes.

    U is the index of the team's first pair of the state, D that of its
    first pair of curls, and F that of its first number on faces, which
    are 8 planes per element.
    """
    Np, Nfp, size = shape.Np, shape.Nfp, 3 * shape.even_Np
    lanes, elements, lower = plan.lanes, plan.elements, Np - Nfp
    flux_at, curls_at = make_flux(shape), make_curl(shape, plan)

    @jit(device=True)
    def differentiate(lane, state, U, rates, D, points):
        i = lane
        while i < elements * Np:
            e, n = np.uint32(i // Np), np.uint32(i % Np)
            v, d = np.uint32(U + e * size + n), np.uint32(D + e * lower)
            curls_at(points[n], state, v, rates, d)
            i = np.uint32(i + lanes)

    @jit(device=True)
    def fluxes(lane, k, state, U, faces, F, u, data, links, meeting,
               weights, geometry, walls):  # fmt: skip
        i = lane
        while i < 4 * elements * Nfp:
            e, f = np.uint32(i // (4 * Nfp)), np.uint32(i // Nfp % 4)
            j = np.uint32(i % Nfp)
            v = np.uint32(U + e * size)
            A, B = flux_at(k + e, f, j, state, v, u, data, links,
                           meeting, geometry, walls)  # fmt: skip
            # The lift takes control points times b!, which is a! here.
            weight = weights[meeting[6 * f * Nfp + j] & POSITION]
            p = np.uint32(F + (2 * f * elements + e) * Nfp + j)
            faces[p], faces[p + elements * Nfp] = A / weight, B / weight
            i = np.uint32(i + lanes)

    return differentiate, fluxes


def make_second_half(shape, plan, factored):
    """Device function for du/dt at every point, and the update."""
    real = np.dtype(shape.dtype).type
    zero = real(0)
    Np, pairs, lower = shape.Np, shape.even_Np, shape.Np - shape.Nfp
    lanes, elements = plan.lanes, plan.elements
    raise_curls = make_raise(shape, plan)
    add_faces = make_add_faces(shape, plan)

    @jit(device=True)
    def update(lane, k, state, U, rates, D, lifted, S, points, slices,
               weights, geometry, res, new, a, b, dt):  # fmt: skip
        c = cuda.local.array(6, real)
        i = lane
        while i < elements * Np:
            e, n = np.uint32(i // Np), np.uint32(i % Np)
            raise_curls(c, points[n], rates, D + e * lower)
            add_faces(c, slices[2 * n], slices[2 * n + 1], weights[n],
                      lifted, S + e * Np, geometry,
                      GEOMETRY * (k + e))  # fmt: skip
            for v in range(6):
                pair = np.uint32((3 * e + v % 3) * pairs + n)
                p = np.uint32(2 * (U + pair) + v // 3)
                q = np.uint32(2 * (3 * k * pairs + pair) + v // 3)
                r = dt * c[v]
                if a != zero:
                    r += a * res[q]
                if factored and b != zero:
                    r += b * state[p]
                res[q] = r
                if not factored and b != zero:
                    new[q] = state[p] + b * r
            i = np.uint32(i + lanes)

    return update


def make_moves(shape, plan):
    """Device functions that fetch a team's states, and lift fluxes."""
    lanes, Np, Nfp = plan.lanes, shape.Np, shape.Nfp
    size, planes = 6 * shape.even_Np, 8 * plan.elements
    states = plan.elements * size
    lift_face = make_lift_face(shape)

    @jit(device=True)
    def fetch(lane, state, U, u, k):
        i = lane
        while i < states:
            state[2 * U + i] = u[size * k + i]
            i = np.uint32(i + lanes)

    @jit(device=True)
    def lift(lane, faces, F, lifted, S):
        i = lane
        while i < planes:
            lift_face(faces, F + i * Nfp, lifted, S + i * Np)
            i = np.uint32(i + lanes)

    return fetch, lift


def make_stage(shape, plan, factored):
    """Device function for a team's stage, with three barriers.

    U and D are the indices of the team's first pairs of the state and
    of curls, F and S those of its first numbers on faces and in slices.
    """
    fetch, lift = make_moves(shape, plan)
    differentiate, fluxes = make_first_half(shape, plan)
    update, meet = (
        make_second_half(shape, plan, factored),
        make_meet(plan),
    )

    @jit(device=True)
    def stage(lane, k, state, U, rates, D, faces, F, lifted, S, u, data,
              links, meeting, points, slices, weights, geometry, walls,
              res, new, a, b, dt):  # fmt: skip
        # Fetch the team's states into shared memory.
        fetch(lane, state, U, u, k)
        meet()
        # Compute curls in degree N - 1, and two numbers per face point.
        differentiate(lane, state, U, rates, D, points)
        fluxes(lane, k, state, U, faces, F, u, data, links, meeting,
               weights, geometry, walls)  # fmt: skip
        meet()
        # Lift, slice by slice. One thread per face and number.
        lift(lane, faces, F, lifted, S)
        meet()
        # Compute du/dt at every point, and update.
        update(lane, k, state, U, rates, D, lifted, S, points, slices,
               weights, geometry, res, new, a, b, dt)  # fmt: skip

    return stage


def make_bernstein_fused(shape, plan, factored=False):
    """Kernel for res = a res + dt du/dt, new = u + b res.

    It reads u and res from memory once and writes new and res once. It
    does not read res if a = 0, and it does not write new if b = 0. If
    it is factored, it computes res = a res + b u + dt du/dt alone. A
    team of plan.lanes threads works on plan.elements elements. If a
    team is a warp, it never waits for other warps.
    """
    real, elements = np.dtype(shape.dtype).type, plan.elements
    lanes, teams = plan.lanes, plan.teams
    states, curls, faced, points = room(shape, elements)
    every = room(shape, teams * elements)
    all_states, all_curls, all_faced, all_points = every
    stage = make_stage(shape, plan, factored)

    @jit
    def bernstein_fused(
        u, data, links, meeting, indices, slices, weights, geometry,
        walls, res, new, a, b, dt, begin,
    ):  # fmt: skip
        # Shared memory of all teams of the block; see make_stage.
        state = cuda.shared.array(all_states, real, alignment=16)
        rates = cuda.shared.array(all_curls, real, alignment=16)
        faces = cuda.shared.array(all_faced, real)
        lifted = cuda.shared.array(all_points, real)
        lane = np.uint32(cuda.threadIdx.x % lanes)
        team = np.uint32(cuda.threadIdx.x // lanes)
        # A launch takes the elements from `begin` on.
        team_of_all = np.uint32(cuda.blockIdx.x * teams + team)
        k = np.uint32(begin + team_of_all * elements)
        U, D = team * states // 2, team * curls // 2
        F, S = team * faced, team * points
        # Element k is the first of this thread's team.
        stage(lane, k, state, U, rates, D, faces, F, lifted, S, u, data,
              links, meeting, indices, slices, weights, geometry, walls,
              res, new, a, b, dt)  # fmt: skip

    return bernstein_fused
