"""The fused kernel: a stage of upwind DG in one pass over memory."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.nodal.trace import WAYS

GHOST = 24  # the `way` of faces on the boundary


def make_flux(shape):
    """Device function for the upwind flux, two numbers per face node.

    They are the components of Z^+ dH - n x dE along the face's tangents
    t_1 and t_2, times Z^- / (Z^- + Z^+), where d means exterior minus
    interior. The node is point i of face f of element k; the element's
    fields there are state[v], ..., state[v + 5].
    """
    real = np.dtype(shape.dtype).type
    size, Nfp, words = 6 * shape.even_Np, shape.Nfp, shape.geometry
    materials, one, half = shape.materials, real(1), real(0.5)

    @jit(device=True)
    def along(at, tangents, field, v):
        return (
            tangents[at] * field[v]
            + tangents[at + 1] * field[v + 1]
            + tangents[at + 2] * field[v + 2]
        )

    @jit(device=True)
    def flux_at(k, f, i, state, v, u, data, links, opposite, tangents,
                geometry, boundary):  # fmt: skip
        link = links[4 * k + f]
        way, neighbor = link % WAYS, link // WAYS
        # E and H of this element, along the two tangents of the face.
        at = 48 * f  # the tangents of way 6 f, whose face is f itself
        e1 = along(at, tangents, state, v)
        e2 = along(at + 4, tangents, state, v)
        h1 = along(at, tangents, state, v + 3)
        h2 = along(at + 4, tangents, state, v + 3)
        # E and H of the other side, along the same tangents.
        if way < GHOST:
            at = 8 * way
            w = neighbor * size + 6 * opposite[way * Nfp + i]
            E1 = along(at, tangents, u, w)
            E2 = along(at + 4, tangents, u, w)
            H1 = along(at, tangents, u, w + 3)
            H2 = along(at + 4, tangents, u, w + 3)
        else:  # the mirror of this side, and what comes in
            m, faces = 9 * neighbor, data.size // (6 * Nfp)
            E1, E2 = boundary[m] * e1, boundary[m] * e2
            H1, H2 = boundary[m + 1] * h1, boundary[m + 1] * h2
            for d in range(3):
                E = data[(d * faces + neighbor) * Nfp + i]
                j = ((d + 3) * faces + neighbor) * Nfp + i
                H = boundary[m + 8] * data[j]
                t1, t2 = boundary[m + 2 + d], boundary[m + 5 + d]
                E1, E2 = E1 + t1 * E, E2 + t2 * E
                H1, H2 = H1 + t1 * H, H2 + t2 * H
        # The upwind flux: the jump of H, and that of E rotated by 90
        # degrees; t_1 x t_2 points out of even faces, into odd ones.
        g = np.uint32(k * words + 6 + 3 * f)
        zeta = geometry[k * words + 18 + f] if materials else half
        turn = -zeta if f % 2 else zeta
        E1, E2 = E1 - e1, E2 - e2
        A = turn * (geometry[g] * E2 - geometry[g + 1] * E1)
        B = turn * (geometry[g + 1] * E2 - geometry[g + 2] * E1)
        A = A + zeta * H1 - (one - zeta) * h1
        B = B + zeta * H2 - (one - zeta) * h2
        return A, B

    return flux_at


def make_curl(shape, plan):
    """Device function that adds one column of D times the fields.

    rates[.., 0:3] sums J curl H, and rates[.., 3:6] -J curl E. With
    covariant components of the fields they take 12 products.
    """
    size = 6 * shape.even_Np
    inline, nodes = plan.elements_inline, plan.nodes_inline
    lanes = -(-shape.Np // nodes)

    @jit(device=True)
    def add_curl(rates, derivative, d, state, v):
        for i in range(nodes):
            d1 = derivative[d + 3 * i * lanes]
            d2 = derivative[d + (3 * i + 1) * lanes]
            d3 = derivative[d + (3 * i + 2) * lanes]
            for e in range(inline):
                w = np.uint32(v + e * size)
                x, y, z = state[w], state[w + 1], state[w + 2]
                rates[i, e, 3] += d3 * y
                rates[i, e, 3] -= d2 * z
                rates[i, e, 4] += d1 * z
                rates[i, e, 4] -= d3 * x
                rates[i, e, 5] += d2 * x
                rates[i, e, 5] -= d1 * y
                x, y, z = state[w + 3], state[w + 4], state[w + 5]
                rates[i, e, 0] += d2 * z
                rates[i, e, 0] -= d3 * y
                rates[i, e, 1] += d3 * x
                rates[i, e, 1] -= d1 * z
                rates[i, e, 2] += d1 * y
                rates[i, e, 2] -= d2 * x

    return add_curl


def make_fused(shape, plan, factored=False):
    """Kernel for res = a res + dt du/dt, new = u + b res.

    It has to read u and res once from memory and to write new and res
    once, 4 words per degree of freedom; neighbors' nodes, and u for the
    update, are found again in the caches. If a = 0 it does not read
    res, and if b = 0 it does not write new. If it is factored, it
    computes res = a res + b u + dt du/dt alone. The state holds x_i . E
    and x_i . (Z H), node by node, where x_1, x_2, x_3 are the columns
    of dx/dr. A row of threads works on plan.elements_inline elements,
    and each thread on plan.nodes_inline nodes of each of them.
    """
    real = np.dtype(shape.dtype).type
    Np, Nfp, words, zero = shape.Np, shape.Nfp, shape.geometry, real(0)
    inline, nodes = plan.elements_inline, plan.nodes_inline
    rows = plan.rows
    lanes, unroll = -(-Np // nodes), plan.unroll
    size, points, column = 6 * shape.even_Np, 4 * Nfp, 3 * nodes * lanes
    threads, elements = rows * lanes, rows * inline
    state_words, flux_words = elements * size, 2 * elements * points
    flux_at, add_curl = make_flux(shape), make_curl(shape, plan)

    @jit
    def fused(
        u, data, links, opposite, tangents, face_nodes, geometry,
        boundary, derivative, lift, res, new, a, b, dt, begin
    ):  # fmt: skip
        state = cuda.shared.array(state_words, real)
        flux = cuda.shared.array(flux_words, real)
        rates = cuda.local.array((nodes, inline, 6), real)
        lifted = cuda.local.array((nodes, inline, 2), real)
        lane = np.uint32(cuda.threadIdx.x)
        row = np.uint32(cuda.threadIdx.y)
        thread = np.uint32(row * lanes + lane)
        # A launch takes the elements from `begin` on.
        first = np.uint32(begin + cuda.blockIdx.x * elements)
        element = np.uint32(row * inline)
        # Load the block's states into shared memory; zero the sums.
        p = thread
        while p < state_words:
            state[p] = u[first * size + p]
            p = np.uint32(p + threads)
        for i in range(nodes):
            for e in range(inline):
                for x in range(6):
                    rates[i, e, x] = zero
        cuda.syncthreads()
        # The flux: two numbers per face node.
        p = thread
        while p < elements * points:
            e, f = np.uint32(p // points), np.uint32(p // Nfp % 4)
            i = np.uint32(p % Nfp)
            v = np.uint32(e * size + 6 * face_nodes[f * Nfp + i])
            flux[2 * p], flux[2 * p + 1] = flux_at(
                np.uint32(first + e), f, i, state, v, u, data, links,
                opposite, tangents, geometry, boundary)  # fmt: skip
            p = np.uint32(p + threads)
        cuda.syncthreads()

        # J curl H and -J curl E at this thread's nodes.
        m, d, v = np.uint32(0), lane, np.uint32(element * size)
        while m < Np:
            add_curl(rates, derivative, d, state, v)
            if unroll > 1:  # so that more loads are in flight
                add_curl(rates, derivative, d + column, state, v + 6)
            if unroll > 2:
                add_curl(
                    rates, derivative, d + 2 * column, state, v + 12
                )
                add_curl(
                    rates, derivative, d + 3 * column, state, v + 18
                )
            m = np.uint32(m + unroll)
            d = np.uint32(d + unroll * column)
            v = np.uint32(v + unroll * 6)
        # Lift the flux face by face, along the tangents of each face.
        for f in range(4):
            for i in range(nodes):
                for e in range(inline):
                    lifted[i, e, 0] = lifted[i, e, 1] = zero
            j = np.uint32(f * Nfp)
            while j < (f + 1) * Nfp:
                for i in range(nodes):
                    l = lift[(j * nodes + i) * lanes + lane]
                    for e in range(inline):
                        v = np.uint32(2 * ((element + e) * points + j))
                        lifted[i, e, 0] += l * flux[v]
                        lifted[i, e, 1] += l * flux[v + 1]
                j = np.uint32(j + 1)
            axis1, axis2 = 1 if f < 2 else 0, 2 if f < 3 else 1
            for e in range(inline):
                g = np.uint32((first + element + e) * words + 6 + 3 * f)
                g11, g12 = geometry[g], geometry[g + 1]
                g22 = geometry[g + 2]
                for i in range(nodes):
                    A, B = lifted[i, e, 0], lifted[i, e, 1]
                    E1, E2 = (B, -A) if f % 2 else (-B, A)
                    H1, H2 = g22 * A - g12 * B, g11 * B - g12 * A
                    rates[i, e, axis1] += E1
                    rates[i, e, axis2] += E2
                    rates[i, e, 3 + axis1] += H1
                    rates[i, e, 3 + axis2] += H2
                    if f == 0:
                        rates[i, e, 0] -= E1 + E2
                        rates[i, e, 3] -= H1 + H2
        cuda.syncthreads()

        # Covariant components of du/dt replace the states.
        for e in range(inline):
            g = np.uint32((first + element + e) * words)
            g11, g12 = geometry[g], geometry[g + 1]
            g13, g22 = geometry[g + 2], geometry[g + 3]
            g23, g33 = geometry[g + 4], geometry[g + 5]
            for i in range(nodes):
                n = np.uint32(lane + i * lanes)
                for h in range(0, 6, 3):
                    v = np.uint32((element + e) * size + 6 * n + h)
                    x, y = rates[i, e, h], rates[i, e, h + 1]
                    z = rates[i, e, h + 2]
                    if n < Np:
                        state[v] = g11 * x + g12 * y + g13 * z
                        state[v + 1] = g12 * x + g22 * y + g23 * z
                        state[v + 2] = g13 * x + g23 * y + g33 * z
        cuda.syncthreads()
        # The update, through contiguous memory. A factored stage adds
        # u to res, and has no new state.
        p = thread
        while p < state_words:
            k = first * size + p
            r = dt * state[p]
            if a != zero:
                r += a * res[k]
            if factored and b != zero:
                r += b * u[k]
            res[k] = r
            if not factored and b != zero:
                new[k] = u[k] + b * r
            p = np.uint32(p + threads)

    return fused
