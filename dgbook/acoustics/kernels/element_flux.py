"""The nodal flux kernel of the path with one thread per element."""

import numpy as np

from dgbook.acoustics.kernels.nodal_flux import make_nodal_flux
from dgbook.gpu import cuda, jit


def make_element_flux(shape, plan):
    """Kernel that stores the numerical fluxes, one thread per element.

    chan2015, section 4.2.1. A thread of the lift kernel needs the
    fluxes at all face nodes of its element, one after another, so they
    are computed by a kernel of their own. A block has K_S threads. The
    grid's second dimension counts the 4 Nfp face nodes, so that a block
    treats the same node of the same face of K_S neighboring elements.

    The arguments are those of `make_nodal_flux`, and, flat,

    flux (4 4Nfp K,)  written
    """
    real = np.dtype(shape.dtype).type
    Nfp, T = shape.Nfp, plan.K_S
    nodal_flux = make_nodal_flux(shape, False)

    @jit
    def element_flux(
        u, data, links, opposite, face_nodes, faces, mirrors, flux
    ):
        jump = cuda.local.array(4, real)
        k = np.uint32(cuda.blockIdx.x * T + cuda.threadIdx.x)
        m = np.uint32(cuda.blockIdx.y)
        K, size = np.uint32(links.size // 4), np.uint32(flux.size // 4)
        if k < K:
            # Store the four fluxes of a face node where the lift reads.
            p, vx, vy, vz = nodal_flux(
                k, np.uint32(m // Nfp), np.uint32(m % Nfp), jump, u,
                data, links, opposite, face_nodes, faces, mirrors,
            )  # fmt: skip
            i = np.uint32(m * K + k)
            flux[i], flux[size + i] = p, vx
            flux[2 * size + i], flux[3 * size + i] = vy, vz

    return element_flux
