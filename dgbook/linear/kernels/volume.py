"""The volume kernel: - sum_d A_d du/dx_d inside the elements, one thread per node."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_volume(dim, n, Np, dtype, plan):
    """Kernel for rhs = - sum_i C_i (D_i u), C_i = sum_d dr_i/dx_d A_d.

    A block holds plan.elements_per_block elements, a row of Np threads each.
    Arguments of the kernel (K elements; ghosts stand behind them):

    u, rhs (n, (K + ghosts) Np)  rhs is overwritten, but not its ghosts
    derivative (dim Np Np,)      entry (i, m, j) is D_i[j, m]: transposed, so
                                 that neighboring threads read neighboring words
    speeds (K dim n n,)          entry (k, i, f, g) is C_i[f, g]

    Three habits keep the machine code short. Indices are unsigned: of a signed
    one Numba must ask whether it is negative. Arrays are flat behind a first
    index, the field: other strides are known only at run time, and 64 bits
    wide. Long loops are while loops: in Numba's range() the compiler does not
    see the count, and does not unroll.
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
        # The last block may have rows to spare: they repeat an element.
        k = np.uint32(min(wanted, K - 1))

        # The element's state comes to shared memory.
        for f in range(n):
            state[f, row, node] = u[f, k * Np + node]
        cuda.syncthreads()

        # Derivatives along the reference axes, one row of each D per thread.
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

        # From reference axes to du/dt.
        if wanted < K:
            for f in range(n):
                total = real(0)
                for i in range(dim):
                    for g in range(n):
                        c = speeds[((k * dim + i) * n + f) * n + g]
                        total -= c * du_dr[i, g]
                rhs[f, k * Np + node] = total

    return volume
