"""Differentiation with matrices in shared memory, Algorithm 4."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.maxwell.plan import odd


def make_differentiate_matrix(shape, plan):
    """Kernel for d/dx, d/dy and d/dz of each of the six fields.

    klockner2009, Algorithm 4. A block of N_R x w_p threads loads a
    segment of N_R rows of [D_1 D_2 D_3], counted modulo Np, so that the
    first row follows the last. It computes those nodes of a microblock
    that belong to these rows, for w_p x w_i microblocks, w_s times. The
    grid's first dimension counts segments, its third fields. The odd
    stride of the rows puts the words of one column into different
    banks.

    Arguments, all flat:

    u (6 n_M N_pM,)            a texture in 2009; today the threads of
                               an element share each load through L1
    matrix (Np 3 Np,)          rows of [D_1 D_2 D_3]
    rst_xyz (n_M K_M 9,)       entry (slot, r, d) is dr_r/dx_d
    derivative (18 n_M N_pM,)  entry (field, d, node), written, except
                               for the padding
    """
    real = np.dtype(shape.dtype).type
    Np, K_M, N_pM = shape.Np, shape.K_M, shape.N_pM
    w_p, w_i, w_s, N_R = plan.w_p, plan.w_i, plan.w_s, plan.N_R
    columns = 3 * Np
    stride = odd(columns)

    @jit
    def differentiate_matrix(u, matrix, rst_xyz, derivative):
        D = cuda.shared.array((N_R, stride), real)
        d = cuda.local.array((w_i, 3), real)
        x = np.uint32(cuda.threadIdx.x)
        y = np.uint32(cuda.threadIdx.y)
        begin = np.uint32(cuda.blockIdx.x * N_R)
        field = np.uint32(cuda.blockIdx.z)
        n_M = np.uint32(rst_xyz.size // (K_M * 9))
        # Load the segment of the matrices into shared memory.
        n = np.uint32(y * N_R + x)
        while n < N_R * columns:
            row, column = n // columns, n % columns
            j = (begin + row) % Np * columns + column
            D[row, column] = matrix[j]
            n += np.uint32(N_R * w_p)
        cuda.syncthreads()

        i = np.uint32(begin + x)
        element = np.uint32(i // Np)
        # Do w_s times: one row per thread times w_i microblocks'
        # values.
        s = np.uint32(0)
        while i < K_M * Np and s < w_s:
            first = np.uint32(
                ((cuda.blockIdx.y * w_s + s) * w_p + y) * w_i
            )
            for e in range(w_i):
                for r in range(3):
                    d[e, r] = real(0)
            n = np.uint32(0)
            while n < Np:
                for e in range(w_i):
                    m = np.uint32(min(first + e, n_M - 1))
                    v = u[(field * n_M + m) * N_pM + element * Np + n]
                    for r in range(3):
                        d[e, r] += D[x, r * Np + n] * v
                n += np.uint32(1)
            # From the reference axes to x, y and z.
            for e in range(w_i):
                m = np.uint32(first + e)
                if m < n_M:
                    j = np.uint32((m * K_M + element) * 9)
                    for c in range(3):
                        total = real(0)
                        for r in range(3):
                            total += rst_xyz[j + r * 3 + c] * d[e, r]
                        out = (field * 3 + c) * n_M + m
                        derivative[out * N_pM + i] = total
            s += np.uint32(1)

    return differentiate_matrix
