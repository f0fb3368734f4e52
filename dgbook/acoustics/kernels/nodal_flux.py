"""The numerical flux at a face node, for both layouts of the state."""

import numpy as np

from dgbook.gpu import jit
from dgbook.nodal.trace import WAYS

FACE_WORDS = 7
"""Words per face: n, kappa Fs a, kappa Fs b, Fs c / rho, Fs d / rho."""


def make_nodal_flux(shape, by_node):
    """Device function for the numerical flux at a face node.

    Four numbers, chan2015, equations (1) and (2), times Fs and the
    material:

    kappa Fs (a [p] - b n.[v]),    n Fs (c n.[v] - d [p]) / rho

    at node i of face f of element k. If `by_node`, neighboring words of
    the state are neighboring nodes, (4, K, Np), and otherwise
    neighboring elements, (4, Np, K). The arguments are flat; `jump` has
    four words to work in:

    data (4 nb Nfp,)      g in u^+ = M u^- + g on the boundary
    links (4 K,)          neighbor * WAYS + way, as in
                          dgbook.nodal.trace
    opposite (ways Nfp,)  for each way, the neighbor's nodes
    face_nodes (4 Nfp,)   the nodes on each face
    faces (7 4 K,)        normal and weights of each face
    mirrors (2 nb,)       m_p and m_v on the boundary
    """
    real = np.dtype(shape.dtype).type
    Np, Nfp, one = shape.Np, shape.Nfp, real(1)

    @jit(device=True)
    def place(k, n, K):
        return np.uint32(k * Np + n if by_node else n * K + k)

    @jit(device=True)
    def nodal_flux(
        k, f, i, jump, u, data, links, opposite, face_nodes, faces,
        mirrors,
    ):  # fmt: skip
        K, size = np.uint32(links.size // 4), np.uint32(u.size // 4)
        # The jump of each field.
        link = links[4 * k + f]
        neighbor = np.uint32(link // WAYS)
        inner = place(k, face_nodes[f * Nfp + i], K)
        if neighbor < K:
            q = place(neighbor, opposite[link % WAYS * Nfp + i], K)
            for c in range(4):
                jump[c] = u[c * size + q] - u[c * size + inner]
        else:  # u^+ - u^- = (M - 1) u^- + g
            b = np.uint32(neighbor - K)
            nb = np.uint32(data.size // (4 * Nfp))
            for c in range(4):
                g = data[(c * nb + b) * Nfp + i]
                m = mirrors[2 * b + min(c, 1)]
                jump[c] = (m - one) * u[c * size + inner] + g
        # The flux, with the weights of the face.
        w = np.uint32(FACE_WORDS * (4 * k + f))
        nx, ny, nz = faces[w], faces[w + 1], faces[w + 2]
        p, normal = jump[0], nx * jump[1] + ny * jump[2] + nz * jump[3]
        v = faces[w + 5] * normal - faces[w + 6] * p
        p = faces[w + 3] * p - faces[w + 4] * normal
        return p, nx * v, ny * v, nz * v

    return nodal_flux
