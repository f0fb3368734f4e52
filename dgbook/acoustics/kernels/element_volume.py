"""The nodal volume kernel with one thread per element."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_element_volume(shape, plan):
    """Kernel for -kappa div v and -1/rho grad p.

    chan2015, section 4.2.1, with one thread per element: a matrix
    product, blocked like sgemm. K_V threads load sub-blocks of the
    derivative matrices, `rows` by `columns`, into shared memory, and
    each applies them to its element. It loads one value of each field
    at a time and adds to 12 derivatives at all rows of the sub-block,
    in registers. The grid's second dimension distributes the blocks of
    rows.

    Arguments, all flat:

    u (4 Np K,)             the state; elements are neighbors in memory
    derivative (3 Np rows,) the columns of D_r, D_s and D_t,
                            alternating, each filled up with zeros to
                            whole blocks of rows
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
        # Spare threads of the last block repeat the last element.
        k = np.uint32(min(element, K - 1))
        row = np.uint32(cuda.blockIdx.y * rows)
        while row < Np:
            for r in range(rows):
                for c in range(4):
                    for j in range(3):
                        du[r, c, j] = real(0)
            first = np.uint32(0)
            while first < Np:
                # Load a sub-block of the three D into shared memory.
                cuda.syncthreads()
                i = x
                while i < entries:
                    m = np.uint32(3 * first + i // rows)
                    if m < 3 * Np:
                        D[i] = derivative[m * padded + row + i % rows]
                    i = np.uint32(i + T)
                cuda.syncthreads()
                # Each of its columns times one value of each field.
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
                        rate = -material[K + k] * gradient
                        out[(1 + a) * size + i] = rate
                    out[i] = -material[k] * divergence
            row = np.uint32(row + cuda.gridDim.y * rows)

    return element_volume
