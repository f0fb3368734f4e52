"""The nodal volume kernel with one thread per node."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_node_volume(shape, plan):
    """Kernel for -kappa div v and -1/rho grad p, one thread per node.

    chan2015, section 4.2.1: Np x K_V threads work on K_V elements. They
    load the fields into shared memory, node by node, so that one wide
    load fetches all four. Each thread multiplies them by its row of the
    three derivative matrices; in each column, 3 entries, loaded through
    the caches, serve 4 fields. The metric turns these 12 derivatives
    into divergence and gradient.

    Arguments, all flat:

    u (4 K Np,)            the state; nodes are neighbors in memory
    derivative (3 Np Np,)  D_r, D_s and D_t, each column by column, so
                           that neighboring threads read neighboring
                           words
    rst_xyz (9 K,)         dr_i/dx_d of each element
    material (2 K,)        kappa and 1/rho of each element
    out (4 K Np,)          written
    """
    real = np.dtype(shape.dtype).type
    Np, K_V = shape.Np, plan.K_V
    square, values = Np * Np, K_V * Np

    @jit
    def node_volume(u, derivative, rst_xyz, material, out):
        s = cuda.shared.array((values, 4), real, alignment=16)
        du = cuda.local.array((4, 3), real)
        n, e = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
        k = np.uint32(cuda.blockIdx.x * K_V + e)
        K, size = np.uint32(material.size // 2), np.uint32(u.size // 4)
        i = np.uint32(k * Np + n)
        # Load the fields into shared memory.
        for c in range(4):
            if k < K:
                s[e * Np + n, c] = u[c * size + i]
            for j in range(3):
                du[c, j] = real(0)
        cuda.syncthreads()

        if k < K:
            # One row of each D times the element's four fields.
            m = np.uint32(0)
            while m < Np:
                for j in range(3):
                    d = derivative[j * square + m * Np + n]
                    for c in range(4):
                        du[c, j] += d * s[e * Np + m, c]
                m = np.uint32(m + 1)
            # Divergence and gradient.
            divergence = real(0)
            for a in range(3):
                gradient = real(0)
                for j in range(3):
                    metric = rst_xyz[9 * k + 3 * j + a]
                    gradient += metric * du[0, j]
                    divergence += metric * du[1 + a, j]
                rate = -material[2 * k + 1] * gradient
                out[(1 + a) * size + i] = rate
            out[i] = -material[2 * k] * divergence

    return node_volume
