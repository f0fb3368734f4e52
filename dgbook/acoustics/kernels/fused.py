"""The fused kernel: a stage of nodal DG in one pass over memory."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.nodal.trace import WAYS

GHOST = 24  # the `way` of faces on the boundary
GEOMETRY = 20
"""Words per element: (J / rho) grad r_i . grad r_j, six for i <= j;
kappa / J; one unused word; two weights per face, of [p] and of the
inflow; one factor per face, of the lifted number in -grad p."""


def make_flux(shape):
    """Device function for the flux, one number per face node.

    The inflow through face f = 1, 2, 3 is W_f = J grad r_f . v, and
    through face 0 minus the sum of these three; on the neighbor's side
    of the face it is defined in the same way. The flux at point i of
    face f of element k, whose fields there begin at state[v], is a sJ
    [p] - b (W_f + W_f').
    """
    w1, w2, w3 = (shape.place(c) for c in (1, 2, 3))
    size, Nfp, width = shape.size, shape.Nfp, shape.width

    @jit(device=True)
    def inflow(f, field, v):
        if f == 0:
            return -(field[v + w1] + field[v + w2] + field[v + w3])
        return field[v + (w1 if f == 1 else w2 if f == 2 else w3)]

    @jit(device=True)
    def flux_at(
        k, f, i, state, v, u, data, links, opposite, geometry, boundary
    ):
        link = links[4 * k + f]
        way, neighbor = link % WAYS, link // WAYS
        # The pressure and the inflow on this element's side.
        p, into = state[v], inflow(f, state, v)
        # The jump of p, and the inflow from both sides.
        if way < GHOST:
            node = opposite[way * Nfp + i]
            w = np.uint32(neighbor * size + width * node)
            more, both = u[w] - p, into + inflow(way // 6, u, w)
        else:  # u^+ = M u^- + g
            m, faces = 5 * neighbor, data.size // (4 * Nfp)
            more = boundary[m] * p - p + data[neighbor * Nfp + i]
            both = into - boundary[m + 1] * into
            for d in range(3):
                g = data[((d + 1) * faces + neighbor) * Nfp + i]
                both += boundary[m + 2 + d] * g
        g = np.uint32(k * GEOMETRY + 8 + 2 * f)
        return geometry[g] * more - geometry[g + 1] * both

    return flux_at


def make_columns(shape, plan):
    """Device function that adds one column of -D times the fields to c.

    c[.., 0] sums -div v, and c[.., 1:4] sums -grad p along the
    reference axes. With contravariant velocities they take 6 products.
    """
    w1, w2, w3 = (shape.place(c) for c in (1, 2, 3))
    inline, nodes = plan.elements_inline, plan.nodes_inline
    size = shape.size
    lanes = -(-shape.Np // nodes)

    @jit(device=True)
    def add_column(c, derivative, d, state, v):
        for i in range(nodes):
            d1 = derivative[d + 3 * i * lanes]
            d2 = derivative[d + (3 * i + 1) * lanes]
            d3 = derivative[d + (3 * i + 2) * lanes]
            for e in range(inline):
                w = np.uint32(v + e * size)
                p = state[w]
                c[i, e, 1] += d1 * p
                c[i, e, 2] += d2 * p
                c[i, e, 3] += d3 * p
                c[i, e, 0] += d1 * state[w + w1]
                c[i, e, 0] += d2 * state[w + w2]
                c[i, e, 0] += d3 * state[w + w3]

    return add_column


def make_fused(shape, plan, factored=False):
    """Kernel for res = a res + dt du/dt, new = u + b res.

    It has to read u and res once from memory and to write new and res
    once, 4 words per degree of freedom; neighbors' nodes, and u for the
    update, are found again in the caches. If a = 0 it does not read
    res, and if b = 0 it does not write new. If it is factored, it
    computes res = a res + b u + dt du/dt alone. The state holds p and
    W_i = J grad r_i . v. A row of threads works on plan.elements_inline
    elements, and each thread on plan.nodes_inline nodes of each of
    them.
    """
    real = np.dtype(shape.dtype).type
    Np, Nfp, zero = shape.Np, shape.Nfp, real(0)
    inline, nodes = plan.elements_inline, plan.nodes_inline
    rows = plan.rows
    lanes, unroll = -(-Np // nodes), plan.unroll
    size, points, column = shape.size, 4 * Nfp, 3 * nodes * lanes
    threads, elements, width = rows * lanes, rows * inline, shape.width
    state_words, flux_words = elements * size, elements * points
    w1, w2, w3 = (shape.place(c) for c in (1, 2, 3))
    flux_at, add_column = make_flux(shape), make_columns(shape, plan)

    @jit
    def fused(
        u, data, links, opposite, face_nodes, geometry, boundary,
        derivative, lift, res, new, a, b, dt, begin
    ):  # fmt: skip
        state = cuda.shared.array(state_words, real)
        flux = cuda.shared.array(flux_words, real)
        c = cuda.local.array((nodes, inline, 4), real)
        lifted = cuda.local.array((nodes, inline), real)
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
                for x in range(4):
                    c[i, e, x] = zero
        cuda.syncthreads()
        # The flux: one number per face node.
        p = thread
        while p < flux_words:
            e, f = np.uint32(p // points), np.uint32(p // Nfp % 4)
            i = np.uint32(p % Nfp)
            v = np.uint32(e * size + width * face_nodes[f * Nfp + i])
            flux[p] = flux_at(
                np.uint32(first + e), f, i, state, v, u, data, links,
                opposite, geometry, boundary)  # fmt: skip
            p = np.uint32(p + threads)
        cuda.syncthreads()

        # Lift face by face, into div v and, along the normal, into
        # grad p.
        for f in range(4):
            for i in range(nodes):
                for e in range(inline):
                    lifted[i, e] = zero
            j = np.uint32(f * Nfp)
            while j < (f + 1) * Nfp:
                for i in range(nodes):
                    l = lift[(j * nodes + i) * lanes + lane]
                    for e in range(inline):
                        k = (element + e) * points + j
                        lifted[i, e] += l * flux[k]
                j = np.uint32(j + 1)
            for e in range(inline):
                q = geometry[(first + element + e) * GEOMETRY + 16 + f]
                for i in range(nodes):
                    c[i, e, 0] += lifted[i, e]
                    for x in range(1, 4):
                        if f == 0 or f == x:
                            c[i, e, x] += q * lifted[i, e]
        # Add -div v and -grad p at this thread's nodes.
        m, d, v = np.uint32(0), lane, np.uint32(element * size)
        while m < Np:
            add_column(c, derivative, d, state, v)
            if unroll > 1:  # so that more loads are in flight
                add_column(c, derivative, d + column, state, v + width)
            if unroll > 2:
                add_column(
                    c, derivative, d + 2 * column, state, v + 2 * width
                )
                add_column(
                    c, derivative, d + 3 * column, state, v + 3 * width
                )
            if unroll > 4:
                add_column(
                    c, derivative, d + 4 * column, state, v + 4 * width
                )
            m = np.uint32(m + unroll)
            d = np.uint32(d + unroll * column)
            v = np.uint32(v + unroll * width)
        cuda.syncthreads()

        # du/dt replaces the states.
        for e in range(inline):
            g = np.uint32((first + element + e) * GEOMETRY)
            g11, g12 = geometry[g], geometry[g + 1]
            g13, g22 = geometry[g + 2], geometry[g + 3]
            g23, g33 = geometry[g + 4], geometry[g + 5]
            for i in range(nodes):
                n = np.uint32(lane + i * lanes)
                v = np.uint32((element + e) * size + width * n)
                x, y, z = c[i, e, 1], c[i, e, 2], c[i, e, 3]
                if n < Np:
                    state[v] = geometry[g + 6] * c[i, e, 0]
                    state[v + w1] = g11 * x + g12 * y + g13 * z
                    state[v + w2] = g12 * x + g22 * y + g23 * z
                    state[v + w3] = g13 * x + g23 * y + g33 * z
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
