"""The nodal flux kernel of the element-per-thread path: numerical fluxes to global memory."""

import numpy as np

from dgbook.acoustics.kernels.nodal_flux import make_nodal_flux
from dgbook.gpu import cuda, jit


def make_element_flux(shape, plan):
    """Kernel for what the faces lift, K_S threads per block, one per element.

    chan2015, section 4.2.1: since the lift wants the values of all face nodes
    of an element one after another, the fluxes need a kernel of their own. The
    second dimension of the grid goes through the 4 Nfp face nodes, so that a
    block sees one node of one face of neighboring elements.

    Arguments are those of `make_nodal_flux`, and, flat,

    flux (4 4Nfp K,)  written
    """
    real = np.dtype(shape.dtype).type
    Nfp, T = shape.Nfp, plan.K_S
    nodal_flux = make_nodal_flux(shape, False)

    @jit
    def element_flux(u, data, links, opposite, face_nodes, faces, mirrors,
                     flux):  # fmt: skip
        jump = cuda.local.array(4, real)
        k = np.uint32(cuda.blockIdx.x * T + cuda.threadIdx.x)
        m = np.uint32(cuda.blockIdx.y)
        K, size = np.uint32(links.size // 4), np.uint32(flux.size // 4)
        if k < K:
            # One face node's numbers, to where the lift reads them.
            p, vx, vy, vz = nodal_flux(
                k, np.uint32(m // Nfp), np.uint32(m % Nfp), jump, u, data,
                links, opposite, face_nodes, faces, mirrors)  # fmt: skip
            i = np.uint32(m * K + k)
            flux[i], flux[size + i] = p, vx
            flux[2 * size + i], flux[3 * size + i] = vy, vz

    return element_flux
