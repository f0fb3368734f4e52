"""The fused kernel: a Runge-Kutta stage in one pass over memory."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.nodal.trace import WAYS


def make_fused(dim, n, Np, Nfp, dtype, plan, factored=False):
    """Kernel for res = a res + dt du/dt, new = u + b res.

    If caches answer all repeated reads of u, memory is asked for u and
    res once, and new and res are written once: 4 words per degree of
    freedom. The new state has an array of its own, since neighbors may
    still need u. A row of Np threads works on
    plan.elements_inline elements, so that each entry of D or LIFT that
    it loads serves all of them. The arguments are those of the volume
    and surface kernels, but `exterior` is reduced to one word per face,
    see dgbook.nodal.trace. If the kernel is factored, it computes
    res = a res + b u + dt du/dt alone.

    links (K (dim+1),)    neighbor * WAYS + way, where `way` says how
                          the neighbor's face meets this one
    opposite (ways Nfp,)  for each way, the neighbor's volume nodes
    """
    real = np.dtype(dtype).type
    rows = plan.elements_per_block
    inline = plan.elements_inline
    faces = dim + 1
    Nf = faces * Nfp
    rounds, zero = -(-Nf // Np), real(0)

    @jit
    def fused(u, interior, links, opposite, derivative, speeds,
              face_matrix, lift, res, new, a, b, dt):  # fmt: skip
        state = cuda.shared.array((n, inline, rows, Np), real)
        flux = cuda.shared.array((n, inline, rows, Nf), real)
        du_dr = cuda.local.array((dim, inline, n), real)
        rhs = cuda.local.array((inline, n), real)
        node = np.uint32(cuda.threadIdx.x)
        row = np.uint32(cuda.threadIdx.y)
        K = np.uint32(links.size // faces)
        first = np.uint32(cuda.blockIdx.x * rows * inline + row)
        # Load the states into shared memory, and set the sums to zero.
        for e in range(inline):
            k = np.uint32(min(first + e * rows, K - 1))
            for f in range(n):
                state[f, e, row, node] = u[f, k * Np + node]
                rhs[e, f] = real(0)
                for i in range(dim):
                    du_dr[i, e, f] = real(0)
        # The flux at the face nodes: the face's matrix times the jumps.
        for r in range(rounds):
            i = np.uint32(r * Np + node)
            if i < Nf:
                for e in range(inline):
                    k = np.uint32(min(first + e * rows, K - 1))
                    face = k * faces + i // Nfp
                    point = links[face] % WAYS * Nfp + i % Nfp
                    plus = links[face] // WAYS * Np + opposite[point]
                    for f in range(n):
                        total = real(0)
                        for g in range(n):
                            jump = (
                                u[g, k * Np + interior[i]] - u[g, plus]
                            )
                            m = (face * n + f) * n + g
                            total += face_matrix[m] * jump
                        flux[f, e, row, i] = total
        cuda.syncthreads()

        # Derivatives along the reference axes; each entry of D serves
        # all elements.
        m = 0
        while m < Np:
            for i in range(dim):
                d = derivative[(i * Np + m) * Np + node]
                for e in range(inline):
                    for f in range(n):
                        du_dr[i, e, f] += d * state[f, e, row, m]
            m += 1
        # The lift; each entry of LIFT serves all elements.
        m = 0
        while m < Nf:
            l = lift[m * Np + node]
            for e in range(inline):
                for f in range(n):
                    rhs[e, f] += l * flux[f, e, row, m]
            m += 1
        for e in range(inline):
            # From the derivatives to du/dt, and the update.
            k = np.uint32(first + e * rows)
            if k < K:
                for f in range(n):
                    for i in range(dim):
                        for g in range(n):
                            c = speeds[((k * dim + i) * n + f) * n + g]
                            rhs[e, f] -= c * du_dr[i, e, g]
                    j = k * Np + node
                    if factored:
                        r = dt * rhs[e, f]
                        if a != zero:
                            r += a * res[f, j]
                        if b != zero:
                            r += b * u[f, j]
                        res[f, j] = r
                    else:
                        res[f, j] = a * res[f, j] + dt * rhs[e, f]
                        new[f, j] = u[f, j] + b * res[f, j]

    return fused
