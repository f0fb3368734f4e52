"""Bernstein-Bezier volume kernel: four entries per row of D."""

import numpy as np

from dgbook.gpu import cuda, jit

BITS = 8  # of each entry of a multi-index in a word


def make_stored_row(shape):
    """Device function that loads columns j and values a of D_m's row n.

    columns (4 Np 4,)  those of row n of D_m from index 4 (m Np + n) on
    values (Np 4,)     those of row n, the same for all m
    """
    Np = shape.Np

    @jit(device=True)
    def row(m, n, columns, values, j, a):
        for i in range(4):
            j[i] = columns[4 * (m * Np + n) + i]
            a[i] = values[4 * n + i]

    return row


def make_computed_row(shape):
    """Device function that computes row n of D_m from one word.

    The end of chan2015, section 4.2.2. columns (Np,) has the
    multi-index a of point n, 8 bits per entry; `values` is not used.
    Column i is the position of a - e_i + e_m in the lattice
    (dgbook.element.bernstein.lattice_position), or n itself if a_i = 0.
    """
    real = np.dtype(shape.dtype).type
    N, Np = shape.order, shape.Np
    bits, byte = np.uint32(BITS), np.uint32(255)

    @jit(device=True)
    def place(a_1, a_2, a_3):
        r = np.uint32(N + 1 - a_3)
        s = np.uint32(r - a_2)
        triangle = np.uint32(np.uint32(r * (r + 1)) // np.uint32(2))
        above = np.uint32(np.uint32(triangle * (r + 2)) // np.uint32(3))
        line = np.uint32(np.uint32(s * (s + 1)) // np.uint32(2))
        return np.uint32(Np - above + triangle - line + a_1)

    @jit(device=True)
    def row(m, n, columns, values, j, a):
        word = columns[n]
        for i in range(4):
            a_i = np.uint32((word >> np.uint32(i * BITS)) & byte)
            a[i] = real(a_i)
            j[i] = n
            if a_i > 0:
                # Subtract e_i and add e_m, in all bytes at once.
                less, more = 1 << i * BITS, 1 << m * BITS
                moved = np.uint32(word - less + more)
                a_1 = np.uint32((moved >> bits) & byte)
                a_2 = np.uint32((moved >> np.uint32(2 * BITS)) & byte)
                a_3 = np.uint32(moved >> np.uint32(3 * BITS))
                j[i] = place(a_1, a_2, a_3)

    return row


def make_bern_volume(shape, K_V, make_row=make_stored_row):
    """Kernel for -kappa div v and -(1/rho) grad p.

    chan2015, Algorithm 2. A block of Np x K_V threads works on K_V
    elements, with one thread per control point. Row a of D_m has the
    entries a_0, ..., a_3 for every m (lemma 3.1), so that a thread
    loads four values once, and four columns for each of four m. The
    four fields of a control point are neighbors in shared memory, where
    one load of 16 bytes fetches them in fp32. On an element of the mesh
    (dgbook.nodal.bernstein),

        d/dx_d = sum_i dr_i/dx_d (D_i - D_0) / 2,    i = 1, 2, 3.

    Arguments, all flat:

    u (4 K Np,)            control points of p and v
    columns, values        of the derivatives, as `make_row` needs them
    rst_xyz (K 9,)         dr_i/dx_d, halved
    material (K 2,)        kappa and 1/rho
    out (4 K Np,)          written
    """
    real = np.dtype(shape.dtype).type
    Np = shape.Np
    row = make_row(shape)

    @jit
    def bern_volume(u, columns, values, rst_xyz, material, out):
        s = cuda.shared.array((K_V, Np, 4), real, alignment=16)
        j = cuda.local.array(4, np.uint32)
        a = cuda.local.array(4, real)
        D = cuda.local.array((4, 4), real)  # D_m of each field
        gradient = cuda.local.array((4, 3), real)
        n, e = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
        k = np.uint32(cuda.blockIdx.x * K_V + e)
        size = np.uint32(u.size // 4)
        K, p = np.uint32(size // Np), np.uint32(k * Np + n)
        # Load the fields into shared memory.
        if k < K:
            for c in range(4):
                s[e, n, c] = u[c * size + p]
        cuda.syncthreads()

        if k < K:
            # Four sparse derivatives of four fields.
            for m in range(4):
                row(m, n, columns, values, j, a)
                for c in range(4):
                    D[m, c] = (
                        a[0] * s[e, j[0], c] + a[1] * s[e, j[1], c]
                    )
                    D[m, c] += (
                        a[2] * s[e, j[2], c] + a[3] * s[e, j[3], c]
                    )
            # From barycentric coordinates to x, y and z.
            g = np.uint32(9 * k)
            for c in range(4):
                for d in range(3):
                    r = rst_xyz[g + d]
                    gradient[c, d] = r * (D[1, c] - D[0, c])
                    for m in range(2, 4):
                        r = rst_xyz[g + 3 * (m - 1) + d]
                        gradient[c, d] += r * (D[m, c] - D[0, c])
            # Divergence and gradient.
            div = gradient[1, 0] + gradient[2, 1] + gradient[3, 2]
            out[p] = -material[2 * k] * div
            for d in range(3):
                grad = gradient[0, d]
                out[(d + 1) * size + p] = -material[2 * k + 1] * grad

    return bern_volume
