"""The surface kernel: gather both traces, jump matrix, lift; one thread a node."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_surface(dim, n, Np, Nfp, dtype, plan):
    """Kernel for rhs += LIFT(Fs F (u^- - u^+)).

    A block holds plan.elements_per_block elements, a row of Np threads each.
    Arguments of the kernel, with Nf = (dim+1) Nfp face nodes an element:

    u, rhs (n, K Np + ghosts)     u^+ at boundary faces is in u's ghosts;
                                  rhs is added to
    interior (Nf,)                volume node of each face node
    exterior (K, Nf)              where in u its u^+ is
    face_matrix (K, dim+1, n, n)  Fs F
    lift (Nf, Np)                 transposed: neighboring threads read
                                  neighboring words
    """
    real = np.dtype(dtype).type
    rows = plan.elements_per_block
    Nf = (dim + 1) * Nfp

    @jit
    def surface(u, interior, exterior, face_matrix, lift, rhs):
        flux = cuda.shared.array((n, rows, Nf), real)
        jump = cuda.local.array(n, real)
        node = cuda.threadIdx.x
        row = cuda.threadIdx.y
        K = exterior.shape[0]
        # The last block may have rows to spare: they repeat an element.
        k = min(cuda.blockIdx.x * rows + row, K - 1)

        # Np threads share Nf face nodes, which may be more.
        for i in range(node, Nf, Np):
            minus = k * Np + interior[i]
            plus = exterior[k, i]
            for f in range(n):
                jump[f] = u[f, minus] - u[f, plus]
            for f in range(n):
                total = real(0)
                for g in range(n):
                    total += face_matrix[k, i // Nfp, f, g] * jump[g]
                flux[f, row, i] = total
        cuda.syncthreads()

        if cuda.blockIdx.x * rows + row < K:
            for f in range(n):
                total = rhs[f, k * Np + node]
                for i in range(Nf):
                    total += lift[i, node] * flux[f, row, i]
                rhs[f, k * Np + node] = total

    return surface
