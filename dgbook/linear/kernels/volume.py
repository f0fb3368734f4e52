"""The volume kernel: - sum_d A_d du/dx_d, one thread per node."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_volume(dim, n, Np, dtype, plan):
    """Kernel for rhs = - sum_i C_i (D_i u), C_i = sum_d dr_i/dx_d A_d.

    A block works on plan.elements_per_block elements, with a row of Np
    threads per element. The kernel's arguments, for K elements followed
    by ghosts:

    u, rhs (n, (K + ghosts) Np)  rhs is overwritten, but not its ghosts
    derivative (dim Np Np,)      entry (i, m, j) is D_i[j, m]:
                                 transposed, so that neighboring threads
                                 read neighboring words
    speeds (K dim n n,)          entry (k, i, f, g) is C_i[f, g]

    Three habits keep the machine code short. Indices are unsigned,
    since Numba checks whether a signed index is negative. Arrays are
    flat behind their first index, the field, since further strides
    would be known only at run time and be 64 bits wide. Long loops are
    while loops: the compiler does not see the count of Numba's range(),
    and would not unroll them.
    """
    real = np.dtype(dtype).type
    rows = plan.elements_per_block

    @jit
    def volume(u, derivative, speeds, rhs):
        state = cuda.shared.array((n, rows, Np), real)
        du_dr = cuda.local.array((dim, n), real)
        node = np.uint32(cuda.threadIdx.x)
        row = np.uint32(cuda.threadIdx.y)
        K = np.uint32(speeds.size // (dim * n * n))
        wanted = np.uint32(cuda.blockIdx.x * rows + row)
        # Spare rows of the last block repeat the last element.
        k = np.uint32(min(wanted, K - 1))

        # Load the element's state into shared memory.
        for f in range(n):
            state[f, row, node] = u[f, k * Np + node]
        cuda.syncthreads()

        # Derivatives along the reference axes: one row of each D
        # per thread.
        for i in range(dim):
            for f in range(n):
                du_dr[i, f] = real(0)
        m = 0
        while m < Np:
            for i in range(dim):
                d = derivative[(i * Np + m) * Np + node]
                for f in range(n):
                    du_dr[i, f] += d * state[f, row, m]
            m += 1

        # From the derivatives to du/dt.
        if wanted < K:
            for f in range(n):
                total = real(0)
                for i in range(dim):
                    for g in range(n):
                        c = speeds[((k * dim + i) * n + f) * n + g]
                        total -= c * du_dr[i, g]
                rhs[f, k * Np + node] = total

    return volume
