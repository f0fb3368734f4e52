"""The surface kernel: both traces, their flux, and the lift."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_surface(dim, n, Np, Nfp, dtype, plan):
    """Kernel for rhs += LIFT(Fs F (u^- - u^+)).

    A block works on plan.elements_per_block elements with one thread
    per node, a row of Np threads per element. The kernel's arguments,
    with Nf = (dim+1) Nfp face nodes per element:

    u, rhs (n, (K + ghosts) Np)   on boundary faces, u^+ is in u's
                                  ghosts; the kernel adds to rhs
    interior (Nf,)                volume node of each face node
    exterior (K Nf,)              index in u of each face node's u^+
    face_matrix (K (dim+1) n n,)  Fs F
    lift (Nf Np,)                 LIFT, transposed, so that neighboring
                                  threads read neighboring words
    """
    real = np.dtype(dtype).type
    rows = plan.elements_per_block
    Nf = (dim + 1) * Nfp
    rounds = -(-Nf // Np)

    @jit
    def surface(u, interior, exterior, face_matrix, lift, rhs):
        flux = cuda.shared.array((n, rows, Nf), real)
        node = np.uint32(cuda.threadIdx.x)
        row = np.uint32(cuda.threadIdx.y)
        K = np.uint32(exterior.size // Nf)
        wanted = np.uint32(cuda.blockIdx.x * rows + row)
        # Spare rows of the last block repeat the last element.
        k = np.uint32(min(wanted, K - 1))

        # The flux. Np threads share Nf face nodes, which may be more.
        for r in range(rounds):
            i = np.uint32(r * Np + node)
            if i < Nf:
                minus = k * Np + interior[i]
                plus = exterior[k * Nf + i]
                face = k * (dim + 1) + i // Nfp
                for f in range(n):
                    total = real(0)
                    for g in range(n):
                        jump = u[g, minus] - u[g, plus]
                        m = (face * n + f) * n + g
                        total += face_matrix[m] * jump
                    flux[f, row, i] = total
        cuda.syncthreads()

        # The lift, one row of LIFT per thread.
        if wanted < K:
            for f in range(n):
                total = rhs[f, k * Np + node]
                m = 0
                while m < Nf:
                    total += lift[m * Np + node] * flux[f, row, m]
                    m += 1
                rhs[f, k * Np + node] = total

    return surface
