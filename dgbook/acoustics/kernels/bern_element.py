"""Bernstein-Bezier surface kernel with one thread per element."""

import numpy as np

from dgbook.acoustics.kernels.bern_surface import FACE, make_flux
from dgbook.gpu import cuda, jit


def make_bern_element(shape, K_S):
    """Kernel that adds the lifted fluxes, one thread per element.

    The end of chan2015, section 4.2.2. A block has K_S threads. Each
    takes one face after another and sweeps in place: every point of the
    next slice overwrites one that has been read for the last time. With
    b = (n - 1 - b_1 - b_2, b_1, b_2),

        (s_{i+1})_b = -1/(i+2) sum_j (b_j + 1) (s_i)_{b + e_j}.

    Each thread has two arrays of Nfp numbers with indices that the
    compiler does not know, so that they lie in local memory; and
    neighboring threads write to `out` Np words apart. The paper tried
    this variant because it needs neither synchronization nor tables,
    and found it much slower.

    Arguments as for `make_bern_surface`, except for

    nodes (4 Np,)  in place of E_L: the control point of each entry of
                   the sweep from each face
    """
    real = np.dtype(shape.dtype).type
    N, Np, Nfp = shape.order, shape.Np, shape.Nfp
    face_quads, zero, one = shape.face_quads, real(0), real(1)
    flux_at = make_flux(shape)

    @jit
    def bern_element(
        u, data, links, opposite, face_nodes, faces, mirrors,
        face_columns, face_values, nodes, material, out,
    ):  # fmt: skip
        s = cuda.local.array(Nfp, real)
        swept = cuda.local.array(Nfp, real)
        k = np.uint32(cuda.blockIdx.x * K_S + cuda.threadIdx.y)
        size = np.uint32(u.size // 4)
        f = np.uint32(0 if k < size // Np else 4)
        while f < 4:
            # The flux at the points of the face.
            j = np.uint32(0)
            while j < Nfp:
                s[j] = flux_at(
                    k, f * Nfp + j, u, data, links, opposite,
                    face_nodes, faces, mirrors,
                )  # fmt: skip
                j = np.uint32(j + 1)
            # Slice 0: L_0 times the flux.
            j = np.uint32(0)
            while j < Nfp:
                l = zero
                for q in range(face_quads):
                    v = np.uint32(4 * (q * Nfp + j))
                    for i in range(4):
                        l += face_values[v + i] * s[face_columns[v + i]]
                swept[j] = l
                j = np.uint32(j + 1)

            # Slice by slice through the tetrahedron: store a slice of
            # degree n, and compute the next one from it.
            w = np.uint32(FACE * (4 * k + f))
            m, n = np.uint32(f * Np), np.uint32(N)
            while True:
                j = np.uint32(0)
                while j < (n + 1) * (n + 2) // 2:
                    l = material[2 * k] * swept[j]
                    r = -faces[w + 2] * material[2 * k + 1] * swept[j]
                    p = np.uint32(k * Np + nodes[m + j])
                    out[p] += l
                    for d in range(3):
                        out[(d + 1) * size + p] += faces[w + 3 + d] * r
                    j = np.uint32(j + 1)
                m = np.uint32(m + j)
                if n == 0:
                    break
                # The next slice, in place.
                scale = -one / real(np.uint32(N - n + 2))
                j, p, b_2 = np.uint32(0), np.uint32(0), np.uint32(0)
                while b_2 < n:
                    b_1, row = np.uint32(0), np.uint32(n - b_2)
                    while b_1 < row:
                        l = real(np.uint32(row - b_1)) * swept[p]
                        l += real(np.uint32(b_1 + 1)) * swept[p + 1]
                        factor = real(np.uint32(b_2 + 1))
                        l += factor * swept[p + row + 1]
                        swept[j] = scale * l
                        j, p = np.uint32(j + 1), np.uint32(p + 1)
                        b_1 = np.uint32(b_1 + 1)
                    p, b_2 = np.uint32(p + 1), np.uint32(b_2 + 1)
                n = np.uint32(n - 1)
            f = np.uint32(f + 1)

    return bern_element
