"""Bernstein-Bezier surface kernel: fluxes, then two sparse products."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.nodal.trace import WAYS

FACE = 6  # words per face: Fs a, Fs b, r and the normal


def make_flux(shape):
    """Device function for the flux, one scalar per face point.

    The upwind and penalty fluxes have rank 1
    (dgbook.acoustics.problem): flux_p = s and flux_v = -r n s with
    s = a [p] - b n.[v]. The function returns Fs s at point j of the 4
    Nfp points on the faces of element k. A neighbor with number K + b
    is boundary face b, where u^+ = M u^- + g.
    """
    real = np.dtype(shape.dtype).type
    Np, Nfp = shape.Np, shape.Nfp

    @jit(device=True)
    def flux_at(
        k, j, u, data, links, opposite, face_nodes, faces, mirrors
    ):
        f = np.uint32(j // Nfp)
        i = np.uint32(j % Nfp)
        link, w = links[4 * k + f], np.uint32(FACE * (4 * k + f))
        neighbor, way = np.uint32(link // WAYS), np.uint32(link % WAYS)
        size = np.uint32(u.size // 4)
        nb = np.uint32(data.size // (4 * Nfp))
        inner = np.uint32(k * Np + face_nodes[j])
        result = real(0)
        # For each field: the jump, times a or times b and the normal.
        for c in range(4):
            minus = u[c * size + inner]
            if neighbor < size // Np:
                node = neighbor * Np + opposite[way * Nfp + i]
                plus = u[c * size + node]
            else:
                b = np.uint32(neighbor - size // Np)
                plus = mirrors[2 * b + min(c, 1)] * minus
                plus += data[(c * nb + b) * Nfp + i]
            if c == 0:
                result += faces[w] * (plus - minus)
            else:
                normal = faces[w + 2 + c]
                result -= faces[w + 1] * normal * (plus - minus)
        return result

    return flux_at


def make_bern_surface(shape, K_S):
    """Kernel that adds the lifted fluxes, one thread per control point.

    chan2015, Algorithm 3. A block of Np x K_S threads works on K_S
    elements. L_0 multiplies the scalar s before it becomes four fluxes;
    E_L multiplies all four of them, which are neighbors in shared
    memory. The rows of both sparse matrices are stored with a fixed
    width, in quadruples of columns and of values; neighboring threads
    load neighboring quadruples.

    Arguments, all flat:

    u (4 K Np,)            control points of p and v
    data (4 nb Nfp,)       g in u^+ = M u^- + g on the boundary
    links (4 K,)           neighbor WAYS + way, see dgbook.nodal.trace
    opposite (ways Nfp,)   for each way, the neighbor's nodes
    face_nodes (4 Nfp,)
    faces (4 K FACE,)      Fs a, Fs b, r and the normal
    mirrors (2 nb,)        M of p and of v
    face_columns, face_values (face_quads Nfp 4,)
                           L_0
    lift_columns, lift_values (lift_quads Np 4,)
                           E_L
    material (K 2,)        kappa and 1/rho
    out (4 K Np,)          added to
    """
    real = np.dtype(shape.dtype).type
    Np, Nfp = shape.Np, shape.Nfp
    face_quads, lift_quads = shape.face_quads, shape.lift_quads
    points = 4 * Nfp
    flux_at = make_flux(shape)

    @jit
    def bern_surface(
        u, data, links, opposite, face_nodes, faces, mirrors,
        face_columns, face_values, lift_columns, lift_values, material,
        out,
    ):  # fmt: skip
        s = cuda.shared.array((K_S, points), real)
        flux = cuda.shared.array((K_S, points, 4), real, alignment=16)
        lifted = cuda.local.array(4, real)
        n, e = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
        k = np.uint32(cuda.blockIdx.x * K_S + e)
        size = np.uint32(u.size // 4)
        end = np.uint32(points if k < size // Np else 0)
        # The flux at the points of all faces.
        j = n
        while j < end:
            s[e, j] = flux_at(
                k, j, u, data, links, opposite, face_nodes, faces,
                mirrors,
            )  # fmt: skip
            j = np.uint32(j + Np)
        cuda.syncthreads()

        # L_0 times the flux; then the fluxes of the four fields.
        j = n
        while j < end:
            first = np.uint32(j // Nfp * Nfp)
            w = np.uint32(FACE * (4 * k + j // Nfp))
            l = real(0)
            for q in range(face_quads):
                v = np.uint32(4 * (q * Nfp + j % Nfp))
                for i in range(4):
                    value = face_values[v + i]
                    l += value * s[e, first + face_columns[v + i]]
            flux[e, j, 0] = l
            for d in range(3):
                flux[e, j, d + 1] = -faces[w + 2] * faces[w + 3 + d] * l
            j = np.uint32(j + Np)
        cuda.syncthreads()

        if end > 0:
            # One row of E_L times the fluxes of all faces.
            for c in range(4):
                lifted[c] = real(0)
            v = np.uint32(4 * n)
            while v < 4 * lift_quads * Np:
                for i in range(4):
                    j, value = lift_columns[v + i], lift_values[v + i]
                    for c in range(4):
                        lifted[c] += value * flux[e, j, c]
                v = np.uint32(v + 4 * Np)
            for c in range(4):
                scale = material[2 * k + min(c, 1)]
                out[c * size + k * Np + n] += scale * lifted[c]

    return bern_surface
