"""Edge integrals: the kernel calculateFaceRes of chen."""

import numpy as np

from dgbook.euler.kernels.riemann import make_flux
from dgbook.euler.problem import WALL
from dgbook.gpu import cuda, jit


def make_face(tables, flux_name, plan):
    """Kernel for the integrals of phi_i F* over all edges.

    Equation (12). One thread per edge loads the edge's nodes from the
    left and from the right element, where they have the opposite order,
    and visits the quadrature points. All but Nfp of the Np basis
    functions vanish on the edge. The right element gets the same
    numbers as the left one, in the opposite order and with the opposite
    sign. They are stored separately for each side (race "split"), or
    added to the elements' residual by atomic operations. Arguments, all
    flat:

    u (4 Np K,)             the state; with layout "element", dof
                            fastest
    data (4 nb Ne,)         given exterior states
    links (4 E,)            left element, its edge; right element, its
                            edge
    kinds (nb,)             of each boundary edge: WALL or given
    geometry (3 E,)         unit normal, half the length
    nodes (3 Nfp,)          nodes of each edge, in order around the
                            element
    phi (2 Ne Nfp,)         the basis at the points; the same times
                            weights
    left, right             "split": written, (4 Nfp E,) each, laid out
                            as u; "atomic": both are the residual (4 Np
                            K,)
    """
    real = tables.phi_trace.dtype.type
    flux = make_flux(flux_name, real)
    Np, Nfp, Ne = tables.Np, tables.Nfp, tables.Ne
    zero, two, dofs, edge_dofs = real(0), real(2), 4 * Np, 4 * Nfp
    phi_table = trace_table(tables)
    constant = plan.tables == "constant"
    by_element = plan.layout == "element"
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
        # The two elements, their edges, and the normal.
        k, f = links[e], links[E + e]
        n, g = links[2 * E + e], links[3 * E + e]
        nx, ny = geometry[e], geometry[E + e]
        length = geometry[2 * E + e]
        inside, b, nb = n >= 0, e - (E - kinds.size), kinds.size
        if not inside:  # no neighbor: its state is replaced below
            n, g = k, f
        at, step = (np.uint32(k * dofs), one) if by_element else (k, K)
        to = np.uint32(n * dofs) if by_element else n
        # The states at the nodes on both sides.
        for j in range(Nfp):
            i, m = nodes[f * Nfp + j], nodes[g * Nfp + Nfp - 1 - j]
            for s in range(4):
                near[s * Nfp + j] = u[at + (s * Np + i) * step]
                far[s * Nfp + j] = u[to + (s * Np + m) * step]
                R[s * Nfp + j] = zero
        q = 0
        while q < Ne:
            # The states on both sides at a quadrature point.
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
                ur[1] = ul[1] - momentum * nx
                ur[2] = ul[2] - momentum * ny
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
        # Store it for both sides, or add it to the residual.
        begin = np.uint32(e * edge_dofs)
        out, stride = (begin, one) if by_element else (e, E)
        for j in range(Nfp):
            i, m = nodes[f * Nfp + j], nodes[g * Nfp + Nfp - 1 - j]
            for s in range(4):
                value = R[s * Nfp + j]
                if not atomic:
                    left[out + (s * Nfp + j) * stride] = value
                    mirror = out + (s * Nfp + Nfp - 1 - j) * stride
                    right[mirror] = -value
                else:
                    p = at + (s * Np + i) * step
                    cuda.atomic.add(left, p, value)
                    if inside:
                        p = to + (s * Np + m) * step
                        cuda.atomic.add(right, p, -value)

    return face


def trace_table(tables):
    """The basis at an edge's points, and the same times the weights."""
    phi = tables.phi_trace
    return np.stack([phi, phi * tables.w_edge[:, None]]).ravel()
