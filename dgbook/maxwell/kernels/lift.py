"""Flux lifting with the face values in shared memory (Algorithm 1)."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_lift(shape, plan):
    """Kernel for J^-1 LIFT flux, one thread per node.

    klockner2009, Algorithm 1. A block works on w_p x w_i microblocks of
    one of the six fields; the grid's second dimension counts fields.
    Each entry of LIFT that is loaded serves w_i microblocks. If the
    block's threads have the order 16 x w_p x N_pM/16, a warp has the
    same half-warp of two microblocks, so that both halves straddle
    elements or neither does (Figure 5(b)). The plain order 16 x N_pM/16
    x w_p takes one microblock after another (Figure 5(a)).

    The values of one node in w_i microblocks are neighbors in shared
    memory, aligned to 16 bytes, so that one wide load fetches up to
    four of them.

    Arguments, all flat:

    flux (6 n_M N_fM,)          face values, scaled by the face's
                                Jacobian
    matrix (Nf Np,)             LIFT, transposed (column-major):
                                neighboring threads read neighboring
                                words; a texture in 2009, today a plain
                                load through L1
    inverse_jacobian (n_M K_M,)
    lifted (6 n_M N_pM,)        written, except for the padding
    """
    real = np.dtype(shape.dtype).type
    Np, Nf, K_M = shape.Np, shape.Nf, shape.K_M
    N_pM, N_fM = shape.N_pM, shape.N_fM
    w_p, w_i = plan.w_p, plan.w_i
    mitigating = plan.order == "mitigating"
    rounds = -(-N_fM // N_pM)

    @jit
    def lift(flux, matrix, inverse_jacobian, lifted):
        f = cuda.shared.array((w_p, N_fM, w_i), real, alignment=16)
        r = cuda.local.array(w_i, real)
        row = np.uint32(cuda.threadIdx.y)
        half = np.uint32(cuda.threadIdx.z)
        if not mitigating:
            row, half = half, row
        i = np.uint32(half * 16 + cuda.threadIdx.x)
        n_M = np.uint32(inverse_jacobian.size // K_M)
        first = np.uint32((cuda.blockIdx.x * w_p + row) * w_i)
        field = np.uint32(cuda.blockIdx.y * n_M)

        # Load the face values of w_i microblocks into shared memory.
        for b in range(rounds):
            n = np.uint32(b * N_pM + i)
            if n < N_fM:
                for e in range(w_i):
                    # Beyond the end, repeat the last microblock.
                    m = np.uint32(min(first + e, n_M - 1))
                    f[row, n, e] = flux[(field + m) * N_fM + n]
        cuda.syncthreads()

        if i < K_M * Np:
            element = np.uint32(i // Np)
            node = np.uint32(i % Np)
            begin = np.uint32(element * Nf)
            # One row of LIFT times the element's face values.
            for e in range(w_i):
                r[e] = real(0)
            n = np.uint32(0)
            while n < Nf:
                l = matrix[n * Np + node]
                for e in range(w_i):
                    r[e] += l * f[row, begin + n, e]
                n += np.uint32(1)
            # Divide by the Jacobian, and store.
            for e in range(w_i):
                m = np.uint32(first + e)
                if m < n_M:
                    scale = inverse_jacobian[m * K_M + element]
                    lifted[(field + m) * N_pM + i] = scale * r[e]

    return lift
