"""Flux lifting with LIFT in shared memory, as in Algorithm 4."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.maxwell.plan import odd


def make_lift_matrix(shape, plan):
    """Kernel for J^-1 LIFT flux, one thread per node.

    klockner2009, section 5.4, applied to section 5.2. Blocks and
    segments are those of `make_differentiate_matrix`, and the arguments
    those of `make_lift`, except for

    matrix (Np Nf,)  LIFT, row by row
    """
    real = np.dtype(shape.dtype).type
    Np, Nf, K_M = shape.Np, shape.Nf, shape.K_M
    N_pM, N_fM = shape.N_pM, shape.N_fM
    w_p, w_i, w_s, N_R = plan.w_p, plan.w_i, plan.w_s, plan.N_R
    stride = odd(Nf)

    @jit
    def lift_matrix(flux, matrix, inverse_jacobian, lifted):
        L = cuda.shared.array((N_R, stride), real)
        r = cuda.local.array(w_i, real)
        x = np.uint32(cuda.threadIdx.x)
        y = np.uint32(cuda.threadIdx.y)
        begin = np.uint32(cuda.blockIdx.x * N_R)
        n_M = np.uint32(inverse_jacobian.size // K_M)
        field = np.uint32(cuda.blockIdx.z * n_M)
        # Load the segment of LIFT into shared memory.
        n = np.uint32(y * N_R + x)
        while n < N_R * Nf:
            row = (begin + n // Nf) % Np
            L[n // Nf, n % Nf] = matrix[row * Nf + n % Nf]
            n += np.uint32(N_R * w_p)
        cuda.syncthreads()

        i = np.uint32(begin + x)
        element = np.uint32(i // Np)
        # Do w_s times: one row per thread times the face values of w_i
        # microblocks.
        s = np.uint32(0)
        while i < K_M * Np and s < w_s:
            first = np.uint32(
                ((cuda.blockIdx.y * w_s + s) * w_p + y) * w_i
            )
            for e in range(w_i):
                r[e] = real(0)
            n = np.uint32(0)
            while n < Nf:
                for e in range(w_i):
                    m = np.uint32(min(first + e, n_M - 1))
                    v = flux[(field + m) * N_fM + element * Nf + n]
                    r[e] += L[x, n] * v
                n += np.uint32(1)
            # Divide by the Jacobian, and store.
            for e in range(w_i):
                m = np.uint32(first + e)
                if m < n_M:
                    scale = inverse_jacobian[m * K_M + element]
                    lifted[(field + m) * N_pM + i] = scale * r[e]
            s += np.uint32(1)

    return lift_matrix
