"""Differentiation with fields in shared memory, as in Algorithm 1."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_differentiate(shape, plan):
    """Kernel for d/dx, d/dy and d/dz of each of the six fields.

    klockner2009, section 5.2, applied to section 5.4, with one thread
    per node. Blocks and the order of threads are those of `make_lift`.
    The three matrices are applied together, so that each value loaded
    from shared memory serves three products and each matrix entry
    serves w_i.

    Arguments, all flat:

    u (6 n_M N_pM,)
    matrix (3 Np Np,)          entry (r, n, j) is D_r[j, n]: transposed,
                               so that neighboring threads read
                               neighboring words
    rst_xyz (n_M K_M 9,)       entry (slot, r, d) is dr_r/dx_d
    derivative (18 n_M N_pM,)  entry (field, d, node), written, except
                               for the padding
    """
    real = np.dtype(shape.dtype).type
    Np, K_M, N_pM = shape.Np, shape.K_M, shape.N_pM
    w_p, w_i = plan.w_p, plan.w_i
    mitigating = plan.order == "mitigating"

    @jit
    def differentiate(u, matrix, rst_xyz, derivative):
        f = cuda.shared.array((w_p, N_pM, w_i), real, alignment=16)
        d = cuda.local.array((w_i, 3), real)
        row = np.uint32(cuda.threadIdx.y)
        half = np.uint32(cuda.threadIdx.z)
        if not mitigating:
            row, half = half, row
        i = np.uint32(half * 16 + cuda.threadIdx.x)
        n_M = np.uint32(rst_xyz.size // (K_M * 9))
        first = np.uint32((cuda.blockIdx.x * w_p + row) * w_i)
        field = np.uint32(cuda.blockIdx.y)

        # Load the field in w_i microblocks into shared memory.
        for e in range(w_i):
            # Beyond the end, the last block repeats the last
            # microblock.
            m = np.uint32(min(first + e, n_M - 1))
            f[row, i, e] = u[(field * n_M + m) * N_pM + i]
        cuda.syncthreads()

        if i < K_M * Np:
            element = np.uint32(i // Np)
            node = np.uint32(i % Np)
            begin = np.uint32(element * Np)
            # One row of each matrix times the element's values.
            for e in range(w_i):
                for r in range(3):
                    d[e, r] = real(0)
            n = np.uint32(0)
            while n < Np:
                for r in range(3):
                    D = matrix[(r * Np + n) * Np + node]
                    for e in range(w_i):
                        d[e, r] += D * f[row, begin + n, e]
                n += np.uint32(1)
            # From the reference axes to x, y and z.
            for e in range(w_i):
                m = np.uint32(first + e)
                if m < n_M:
                    j = np.uint32((m * K_M + element) * 9)
                    for x in range(3):
                        total = real(0)
                        for r in range(3):
                            total += rst_xyz[j + r * 3 + x] * d[e, r]
                        out = (field * 3 + x) * n_M + m
                        derivative[out * N_pM + i] = total

    return differentiate
