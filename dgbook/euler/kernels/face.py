"""Edge integrals: chen's calculateFaceRes, one thread per edge."""

import numpy as np

from dgbook.euler.kernels.riemann import make_flux
from dgbook.euler.problem import WALL
from dgbook.gpu import cuda, jit


def make_face(tables, flux_name, plan):
    """Kernel for the integral of phi_i F* over every edge, equation (12).

    A thread loads the nodes of its edge from the left and the right element,
    where the edge runs the other way, and goes through the points. All but
    Nfp of the Np basis functions vanish on the edge; what the right element
    gets is what the left one gets, in the other order and with the other
    sign. It is stored apart for each side (race "split"), or added to the
    elements' residual by atomic operations. Arguments, all flat:

    u (4 Np K,)             the state; with layout "element" dof fastest
    data (4 nb Ne,)         given states outside
    links (4 E,)            left element, its edge; right element, its edge
    kinds (nb,)             of boundary edges: WALL or given
    geometry (3 E,)         unit normal, half the length
    nodes (3 Nfp,)          of each edge, as the element runs round
    phi (2 Ne Nfp,)         the basis at the points; the same times weights
    left, right             "split": written, (4 Nfp E,) each, laid out as u;
                            "atomic": both the residual (4 Np K,)
    """
    real = tables.phi_trace.dtype.type
    flux = make_flux(flux_name, real)
    Np, Nfp, Ne = tables.Np, tables.Nfp, tables.Ne
    zero, two, dofs, edge_dofs = real(0), real(2), 4 * Np, 4 * Nfp
    phi_table = trace_table(tables)
    constant, by_element = (
        plan.tables == "constant",
        plan.layout == "element",
    )
    atomic = plan.race == "atomic"

    @jit(max_registers=plan.registers)
    def face(u, data, links, kinds, geometry, nodes, phi, left, right):
        near = cuda.local.array(edge_dofs, real)
        far = cuda.local.array(edge_dofs, real)
        R = cuda.local.array(edge_dofs, real)
        ul = cuda.local.array(4, real)
        ur = cuda.local.array(4, real)
        F = cuda.local.array(4, real)
        e, E = np.uint32(cuda.grid(1)), np.uint32(geometry.size // 3)
        if e >= E:
            return
        if constant:
            phi = cuda.const.array_like(phi_table)
        K, one = np.uint32(u.size // dofs), np.uint32(1)
        # The two elements, their edges, the normal.
        k, f, n, g = (
            links[e],
            links[E + e],
            links[2 * E + e],
            links[3 * E + e],
        )
        nx, ny, length = (
            geometry[e],
            geometry[E + e],
            geometry[2 * E + e],
        )
        inside, b, nb = n >= 0, e - (E - kinds.size), kinds.size
        if not inside:
            n, g = (
                k,
                f,
            )  # there is no neighbor: what it gives is replaced below
        at, step = (np.uint32(k * dofs), one) if by_element else (k, K)
        to = np.uint32(n * dofs) if by_element else n
        # The nodes on either side.
        for j in range(Nfp):
            i, m = nodes[f * Nfp + j], nodes[g * Nfp + Nfp - 1 - j]
            for s in range(4):
                near[s * Nfp + j] = u[at + (s * Np + i) * step]
                far[s * Nfp + j] = u[to + (s * Np + m) * step]
                R[s * Nfp + j] = zero
        q = 0
        while q < Ne:
            # The states at a point.
            for s in range(4):
                ul[s], ur[s] = zero, zero
            for j in range(Nfp):
                value = phi[q * Nfp + j]
                for s in range(4):
                    ul[s] += value * near[s * Nfp + j]
                    ur[s] += value * far[s * Nfp + j]
            if not inside and kinds[b] == WALL:
                momentum = two * (ul[1] * nx + ul[2] * ny)
                ur[0], ur[3] = ul[0], ul[3]
                ur[1], ur[2] = (
                    ul[1] - momentum * nx,
                    ul[2] - momentum * ny,
                )
            elif not inside:
                for s in range(4):
                    ur[s] = data[(s * nb + b) * Ne + q]
            # The flux, and what it adds to the nodes of the edge.
            flux(ul, ur, nx, ny, F)
            for j in range(Nfp):
                value = phi[(Ne + q) * Nfp + j] * length
                for s in range(4):
                    R[s * Nfp + j] += value * F[s]
            q += 1
        # To the two sides, or to the residual.
        out, stride = (
            (np.uint32(e * edge_dofs), one) if by_element else (e, E)
        )
        for j in range(Nfp):
            i, m = nodes[f * Nfp + j], nodes[g * Nfp + Nfp - 1 - j]
            for s in range(4):
                value = R[s * Nfp + j]
                if not atomic:
                    left[out + (s * Nfp + j) * stride] = value
                    right[
                        out + (s * Nfp + Nfp - 1 - j) * stride
                    ] = -value
                else:
                    cuda.atomic.add(
                        left, at + (s * Np + i) * step, value
                    )
                    if inside:
                        cuda.atomic.add(
                            right, to + (s * Np + m) * step, -value
                        )

    return face


def trace_table(tables):
    """The basis at the points of an edge, and the same times the weights."""
    phi = tables.phi_trace
    return np.stack([phi, phi * tables.w_edge[:, None]]).ravel()
