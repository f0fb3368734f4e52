"""The nodal surface kernel with one thread per node."""

import numpy as np

from dgbook.acoustics.kernels.nodal_flux import make_nodal_flux
from dgbook.gpu import cuda, jit


def make_node_surface(shape, plan):
    """Kernel that adds the lifted fluxes to du/dt.

    chan2015, section 4.2.1: max(Np, 4 Nfp) x K_S threads work on K_S
    elements. Each thread first computes the fluxes at one face node and
    stores them in shared memory. Then it multiplies them by the row of
    LIFT that belongs to its node; each entry, loaded through the
    caches, serves 4 fields.

    The arguments are those of `make_nodal_flux`, and, flat,

    lift (4 Nfp Np,)  LIFT, column by column
    out (4 K Np,)     du/dt, to which the kernel adds
    """
    real = np.dtype(shape.dtype).type
    Np, Nfp, Nf = shape.Np, shape.Nfp, shape.Nf
    K_S, points = plan.K_S, plan.K_S * shape.Nf
    nodal_flux = make_nodal_flux(shape, True)

    @jit
    def node_surface(
        u, data, links, opposite, face_nodes, faces, mirrors, lift, out
    ):
        s = cuda.shared.array((points, 4), real, alignment=16)
        jump = cuda.local.array(4, real)
        du = cuda.local.array(4, real)
        n, e = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
        k = np.uint32(cuda.blockIdx.x * K_S + e)
        K, size = np.uint32(links.size // 4), np.uint32(u.size // 4)
        # One thread per face node: its flux.
        if k < K and n < Nf:
            i = np.uint32(e * Nf + n)
            s[i, 0], s[i, 1], s[i, 2], s[i, 3] = nodal_flux(
                k, np.uint32(n // Nfp), np.uint32(n % Nfp), jump, u,
                data, links, opposite, face_nodes, faces, mirrors,
            )  # fmt: skip
        cuda.syncthreads()

        # One thread per node: its row of LIFT times the fluxes.
        if k < K and n < Np:
            for c in range(4):
                du[c] = real(0)
            m = np.uint32(0)
            while m < Nf:
                l = lift[m * Np + n]
                for c in range(4):
                    du[c] += l * s[e * Nf + m, c]
                m = np.uint32(m + 1)
            for c in range(4):
                out[c * size + k * Np + n] += du[c]

    return node_surface
