"""What remains of a nodal stage when a library has done the matrix products."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_combine(shape):
    """Kernel that makes du/dt of derivatives and lifted fluxes, and steps.

    A thread has a node; threads side by side have elements side by side, and
    all arrays are read and written once. Arguments, all flat but for scalars:

    derivatives (4 3 Np K,)  of each field those along r, s and t
    lifted (4 Np K,)         the lifted fluxes
    rst_xyz (9 K,)           all dr_0/dx_0, then all dr_0/dx_1, ...
    material (2 K,)          all kappa, then all 1/rho
    res, u (4 Np K,)         res = a res + dt du/dt, u += b res
    a, b, dt
    """
    real = np.dtype(shape.dtype).type

    @jit
    def combine(derivatives, lifted, rst_xyz, material, res, u, a, b, dt):
        du = cuda.local.array(4, real)
        i = np.uint32(cuda.grid(1))
        K, size = np.uint32(material.size // 2), np.uint32(u.size // 4)
        if i < size:
            k = np.uint32(i % K)
            # Divergence and gradient of what the library has differentiated.
            for c in range(4):
                du[c] = real(0)
            for d in range(3):
                for j in range(3):
                    metric = rst_xyz[(3 * j + d) * K + k]
                    du[1 + d] += metric * derivatives[j * size + i]
                    field = np.uint32(3 * (1 + d) + j)
                    du[0] += metric * derivatives[field * size + i]
            # The update.
            for c in range(4):
                p = np.uint32(c * size + i)
                scale = material[min(c, 1) * K + k]
                r = a * res[p] + dt * (lifted[p] - scale * du[c])
                res[p] = r
                u[p] += b * r

    return combine
