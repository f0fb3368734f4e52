"""Bernstein-Bezier surface kernel of optimal complexity."""

import numpy as np

from dgbook.acoustics.kernels.bern_surface import FACE, make_flux
from dgbook.gpu import cuda, jit


def make_bern_optimal(shape, K_S):
    """Kernel that adds the lifted fluxes, one thread per control point.

    chan2015, Algorithm 1. L_0 makes the first slice, and each other
    slice is computed from the one before it, with three products per
    point. All four faces are swept at once: their values are neighbors
    in shared memory, so that columns and factors are loaded once for
    the four. A barrier follows each slice, which must be complete
    before the next one begins. The sweep works on the scalar s, which
    is multiplied by the normal only afterwards, so that there is one
    sweep per face and not one per field.

    Each control point lies in the sweeps from all four faces. The
    thread that owns it gathers its four numbers, so that no two threads
    add to the same word.

    Arguments as for `make_bern_surface`, except for

    sweep_columns, sweep_values (Np 4,)
                           in place of E_L: entries of the slice before,
                           and their factors
    places (Np 4,)         index of a control point in each of the four
                           sweeps
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
                k, j, u, data, links, opposite, face_nodes, faces,
                mirrors,
            )  # fmt: skip
            j = np.uint32(j + Np)
        cuda.syncthreads()

        # Slice 0: L_0 times the fluxes of all four faces at once.
        if inside and n < Nfp:
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
        # Each slice from the one before; the next one has
        # 1 + ... + rows points.
        start, rows = np.uint32(Nfp), np.uint32(order)
        while rows > 0:
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
            # Gather this control point's numbers from the four sweeps.
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
