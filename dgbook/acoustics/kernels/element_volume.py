"""The nodal volume kernel with a thread for each element: a blocked matrix product."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_element_volume(shape, plan):
    """Kernel for (-kappa div v, -1/rho grad p), a thread per element.

    chan2015, section 4.2.1, after sgemm: K_V threads put sub-blocks of the
    derivative matrices, `rows` by `columns`, into shared memory and apply them
    to an element each. A thread loads one value of each field at a time and
    increments 12 derivatives at all rows of the sub-block, in registers. The
    second dimension of the grid shares out the blocks of rows.

    Arguments, all flat:

    u (4 Np K,)             the state, an element next to an element
    derivative (3 Np rows,) column by column those of D_r, D_s and D_t, each
                            filled up by zeros to whole blocks of rows
    rst_xyz (9 K,)          all dr_0/dx_0, then all dr_0/dx_1, ...
    material (2 K,)         all kappa, then all 1/rho
    out (4 Np K,)           written
    """
    real = np.dtype(shape.dtype).type
    Np, T, rows, columns = shape.Np, plan.K_V, plan.rows_V, plan.columns
    padded, entries = -(-Np // rows) * rows, 3 * columns * rows

    @jit
    def element_volume(u, derivative, rst_xyz, material, out):
        D = cuda.shared.array(entries, real, alignment=16)
        du = cuda.local.array((rows, 4, 3), real)
        x = np.uint32(cuda.threadIdx.x)
        K, size = np.uint32(material.size // 2), np.uint32(u.size // 4)
        element = np.uint32(cuda.blockIdx.x * T + x)
        k = np.uint32(
            min(element, K - 1)
        )  # the last block may have too many
        row = np.uint32(cuda.blockIdx.y * rows)
        while row < Np:
            for r in range(rows):
                for c in range(4):
                    for j in range(3):
                        du[r, c, j] = real(0)
            first = np.uint32(0)
            while first < Np:
                # A sub-block of the three D comes to shared memory.
                cuda.syncthreads()
                i = x
                while i < entries:
                    m = np.uint32(3 * first + i // rows)
                    if m < 3 * Np:
                        D[i] = derivative[m * padded + row + i % rows]
                    i = np.uint32(i + T)
                cuda.syncthreads()
                # Its columns times one value of each field at a time.
                m = np.uint32(0)
                while m < columns and first + m < Np:
                    i = np.uint32((first + m) * K + k)
                    q = np.uint32(3 * rows * m)
                    for c in range(4):
                        v = u[np.uint32(c * size + i)]
                        for r in range(rows):
                            for j in range(3):
                                du[r, c, j] += D[q + j * rows + r] * v
                    m = np.uint32(m + 1)
                first = np.uint32(first + columns)
            # Divergence and gradient.
            for r in range(rows):
                if element < K and row + r < Np:
                    i = np.uint32((row + r) * K + k)
                    divergence = real(0)
                    for a in range(3):
                        gradient = real(0)
                        for j in range(3):
                            metric = rst_xyz[(3 * j + a) * K + k]
                            gradient += metric * du[r, 0, j]
                            divergence += metric * du[r, 1 + a, j]
                        out[(1 + a) * size + i] = (
                            -material[K + k] * gradient
                        )
                    out[i] = -material[k] * divergence
            row = np.uint32(row + cuda.gridDim.y * rows)

    return element_volume
