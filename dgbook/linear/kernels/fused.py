"""The fused kernel: a whole Runge-Kutta stage in one pass over memory."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_fused(dim, n, Np, Nfp, ways, dtype, plan):
    """Kernel for res = a res + dt du/dt, new = u + b res.

    It reads u and res once and writes new and res once: 4 words a degree of
    freedom. Neighbors may still need u, so the new state goes elsewhere. A row
    of Np threads works on plan.elements_inline elements, so that an entry of D
    or LIFT, once loaded, serves them all. Arguments as in volume and surface,
    but `exterior` shrunk to one word a face:

    links (K, dim+1)      the neighbor times ways, plus the way its face meets
                          mine; -1 - b on boundary face b
    opposite (ways, Nfp)  for each way, the neighbor's volume nodes
    """
    real = np.dtype(dtype).type
    rows = plan.elements_per_block
    inline = plan.elements_inline
    slots = rows * inline
    Nf = (dim + 1) * Nfp

    @jit
    def fused(u, interior, links, opposite, derivative, speeds,
              face_matrix, lift, res, new, a, b, dt):  # fmt: skip
        state = cuda.shared.array((n, slots, Np), real)
        flux = cuda.shared.array((n, slots, Nf), real)
        jump = cuda.local.array(n, real)
        du_dr = cuda.local.array((dim, inline, n), real)
        rhs = cuda.local.array((inline, n), real)
        node = cuda.threadIdx.x
        row = cuda.threadIdx.y
        K = links.shape[0]
        first = cuda.blockIdx.x * slots + row

        for e in range(inline):
            s = e * rows + row
            k = min(first + e * rows, K - 1)
            for f in range(n):
                state[f, s, node] = u[f, k * Np + node]
            for i in range(node, Nf, Np):
                link = links[k, i // Nfp]
                plus = link // ways * Np + opposite[link % ways, i % Nfp]
                if link < 0:
                    plus = K * Np - (link + 1) * Nfp + i % Nfp  # a ghost
                for f in range(n):
                    jump[f] = u[f, k * Np + interior[i]] - u[f, plus]
                for f in range(n):
                    total = real(0)
                    for g in range(n):
                        total += face_matrix[k, i // Nfp, f, g] * jump[g]
                    flux[f, s, i] = total
        cuda.syncthreads()

        for e in range(inline):
            for f in range(n):
                rhs[e, f] = real(0)
                for i in range(dim):
                    du_dr[i, e, f] = real(0)
        for m in range(Np):
            for i in range(dim):
                d = derivative[i, m, node]
                for e in range(inline):
                    for f in range(n):
                        du_dr[i, e, f] += d * state[f, e * rows + row, m]
        for i in range(Nf):
            l = lift[i, node]
            for e in range(inline):
                for f in range(n):
                    rhs[e, f] += l * flux[f, e * rows + row, i]

        for e in range(inline):
            k = first + e * rows
            if k < K:
                for f in range(n):
                    for i in range(dim):
                        for g in range(n):
                            rhs[e, f] -= speeds[k, i, f, g] * du_dr[i, e, g]
                    j = k * Np + node
                    res[f, j] = a * res[f, j] + dt * rhs[e, f]
                    new[f, j] = u[f, j] + b * res[f, j]

    return fused
