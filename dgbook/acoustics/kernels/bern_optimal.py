"""Bernstein-Bezier surface kernel of optimal complexity: slice by slice."""

import numpy as np

from dgbook.acoustics.kernels.bern_surface import FACE, make_flux
from dgbook.gpu import cuda, jit


def make_bern_optimal(shape, K_S):
    """Kernel that adds the lifted fluxes, one thread a control point.

    chan2015, Algorithm 1. After L_0 each slice is computed from the one before,
    three products per point, all four faces at once: they stand side by side in
    shared memory, and columns and values are loaded once for them. Since a
    slice must be complete before the next, there is a barrier after each. What
    is swept is the scalar s; as it has to be multiplied by the normal only
    afterwards, there is one sweep per face and not one per field.

    A control point lies in the sweeps from all four faces. Who owns it gathers
    its four numbers, so that no two threads add to the same place.

    Arguments as for `make_bern_surface`, with

    sweep_columns, sweep_values (Np 4,)
                           instead of E_L: the slice before, and the factors
    places (Np 4,)         where a control point lies in the four sweeps
    """
    real = np.dtype(shape.dtype).type
    order, Np, Nfp = shape.order, shape.Np, shape.Nfp
    face_quads, points = shape.face_quads, 4 * Nfp
    flux_at = make_flux(shape)

    @jit
    def bern_optimal(
        u, data, links, opposite, face_nodes, faces, mirrors,
        face_columns, face_values, sweep_columns, sweep_values, places,
        material, out,
    ):  # fmt: skip
        s = cuda.shared.array((K_S, Nfp, 4), real, alignment=16)
        swept = cuda.shared.array((K_S, Np, 4), real, alignment=16)
        l = cuda.local.array(4, real)
        n, e = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
        k = np.uint32(cuda.blockIdx.x * K_S + e)
        size = np.uint32(u.size // 4)
        inside = k < size // Np
        # The flux at the points of all faces.
        j = n
        while inside and j < points:
            s[e, j % Nfp, j // Nfp] = flux_at(
                k,
                j,
                u,
                data,
                links,
                opposite,
                face_nodes,
                faces,
                mirrors,
            )
            j = np.uint32(j + Np)
        cuda.syncthreads()

        # L_0 applied to the four faces at once.
        if inside and n < Nfp:  # slice 0: L_0
            for f in range(4):
                l[f] = real(0)
            for q in range(face_quads):
                v = np.uint32(4 * (q * Nfp + n))
                for i in range(4):
                    j, value = face_columns[v + i], face_values[v + i]
                    for f in range(4):
                        l[f] += value * s[e, j, f]
            for f in range(4):
                swept[e, n, f] = l[f]
        # Slice by slice, each from the one before.
        start, rows = np.uint32(Nfp), np.uint32(order)
        while rows > 0:  # the next slice has 1 + ... + rows points
            cuda.syncthreads()
            count = np.uint32(rows * (rows + 1) // 2)
            if inside and n < count:
                v = np.uint32(4 * (start + n))
                for f in range(4):
                    l[f] = real(0)
                for i in range(3):
                    j, value = sweep_columns[v + i], sweep_values[v + i]
                    for f in range(4):
                        l[f] += value * swept[e, j, f]
                for f in range(4):
                    swept[e, start + n, f] = l[f]
            start, rows = np.uint32(start + count), np.uint32(rows - 1)
        cuda.syncthreads()

        if inside:
            # What a control point has in the four sweeps.
            for c in range(4):
                l[c] = real(0)
            for f in range(4):
                w = np.uint32(FACE * (4 * k + f))
                value = swept[e, places[4 * n + f], f]
                l[0] += value
                for d in range(3):
                    l[d + 1] -= faces[w + 2] * faces[w + 3 + d] * value
            for c in range(4):
                scale = material[2 * k + min(c, 1)]
                out[c * size + k * Np + n] += scale * l[c]

    return bern_optimal
