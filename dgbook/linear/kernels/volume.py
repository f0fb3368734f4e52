"""The volume kernel: - sum_d A_d du/dx_d inside the elements, one thread a node."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_volume(dim, n, Np, dtype, plan):
    """Kernel for rhs = - sum_i C_i (D_i u), C_i = sum_d dr_i/dx_d A_d.

    A block holds plan.elements_per_block elements, a row of Np threads each.
    Arguments of the kernel:

    u, rhs (n, K Np + ghosts)  rhs is overwritten, but not its ghosts
    derivative (dim, Np, Np)   [i, m, j] is D_i[j, m]: transposed, so that
                               neighboring threads read neighboring words
    speeds (K, dim, n, n)      C_i
    """
    real = np.dtype(dtype).type
    rows = plan.elements_per_block

    @jit
    def volume(u, derivative, speeds, rhs):
        state = cuda.shared.array((n, rows, Np), real)
        du_dr = cuda.local.array((dim, n), real)
        node = cuda.threadIdx.x
        row = cuda.threadIdx.y
        K = speeds.shape[0]
        # The last block may have rows to spare: they repeat an element.
        k = min(cuda.blockIdx.x * rows + row, K - 1)

        for f in range(n):
            state[f, row, node] = u[f, k * Np + node]
        cuda.syncthreads()

        for i in range(dim):
            for f in range(n):
                du_dr[i, f] = real(0)
        for m in range(Np):
            for i in range(dim):
                d = derivative[i, m, node]
                for f in range(n):
                    du_dr[i, f] += d * state[f, row, m]

        if cuda.blockIdx.x * rows + row < K:
            for f in range(n):
                total = real(0)
                for i in range(dim):
                    for g in range(n):
                        total -= speeds[k, i, f, g] * du_dr[i, g]
                rhs[f, k * Np + node] = total

    return volume
