"""Wrong kernels of the linear family: each has one mistake that real codes have had."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_volume_without_barrier(dim, n, Np, dtype, plan):
    """The volume kernel without its barrier: threads read states that nobody has written yet."""
    real = np.dtype(dtype).type
    rows = plan.elements_per_block

    @jit
    def volume(u, derivative, speeds, rhs):
        state = cuda.shared.array((n, rows, Np), real)
        node = cuda.threadIdx.x
        row = cuda.threadIdx.y
        K = speeds.size // (dim * n * n)
        k = min(cuda.blockIdx.x * rows + row, K - 1)
        for f in range(n):
            state[f, row, node] = u[f, k * Np + node]
        if cuda.blockIdx.x * rows + row < K:
            for f in range(n):
                total = real(0)
                for i in range(dim):
                    for m in range(Np):
                        for g in range(n):
                            c = speeds[((k * dim + i) * n + f) * n + g]
                            total -= c * derivative[(i * Np + m) * Np + node] * state[g, row, m]
                rhs[f, k * Np + node] = total

    return volume


def make_volume_transposed(dim, n, Np, dtype, plan):
    """The volume kernel with the transpose of D, as if it were stored row by row."""
    real = np.dtype(dtype).type
    rows = plan.elements_per_block

    @jit
    def volume(u, derivative, speeds, rhs):
        state = cuda.shared.array((n, rows, Np), real)
        node = cuda.threadIdx.x
        row = cuda.threadIdx.y
        K = speeds.size // (dim * n * n)
        k = min(cuda.blockIdx.x * rows + row, K - 1)
        for f in range(n):
            state[f, row, node] = u[f, k * Np + node]
        cuda.syncthreads()
        if cuda.blockIdx.x * rows + row < K:
            for f in range(n):
                total = real(0)
                for i in range(dim):
                    for m in range(Np):
                        for g in range(n):
                            c = speeds[((k * dim + i) * n + f) * n + g]
                            total -= c * derivative[(i * Np + node) * Np + m] * state[g, row, m]
                rhs[f, k * Np + node] = total

    return volume


def make_surface_with_wrong_sign(dim, n, Np, Nfp, dtype, plan):
    """The surface kernel with the jump exterior - interior: it feeds energy in."""
    real = np.dtype(dtype).type
    rows = plan.elements_per_block
    Nf = (dim + 1) * Nfp

    @jit
    def surface(u, interior, exterior, face_matrix, lift, rhs):
        flux = cuda.shared.array((n, rows, Nf), real)
        node = cuda.threadIdx.x
        row = cuda.threadIdx.y
        K = exterior.size // Nf
        k = min(cuda.blockIdx.x * rows + row, K - 1)
        for i in range(node, Nf, Np):
            for f in range(n):
                total = real(0)
                for g in range(n):
                    jump = u[g, exterior[k * Nf + i]] - u[g, k * Np + interior[i]]
                    face = k * (dim + 1) + i // Nfp
                    total += face_matrix[(face * n + f) * n + g] * jump
                flux[f, row, i] = total
        cuda.syncthreads()
        if cuda.blockIdx.x * rows + row < K:
            for f in range(n):
                total = rhs[f, k * Np + node]
                for i in range(Nf):
                    total += lift[i * Np + node] * flux[f, row, i]
                rhs[f, k * Np + node] = total

    return surface


def fused_in_place(launcher, u, res, a, b, dt):
    """The fused kernel with one state array: neighbors may find the new state, not the old one."""
    launcher.fused(u, res, u, a, b, dt)
