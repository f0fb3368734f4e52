"""Volume integrals: the kernel calculateVolumeRes of chen."""

import numpy as np

from dgbook.euler.kernels.riemann import make_primitive
from dgbook.gpu import cuda, jit


def make_volume(tables, plan):
    """Kernel for R^v = - integral of grad phi_i . F(u), equation (11).

    One thread per element loads its 4 Np values and visits the
    quadrature points. At each it computes the state and the flux, and
    adds the flux to the residual of each basis function. State and
    residual are local arrays of fixed size (section 3.4.2): they are in
    registers if there are enough, and otherwise in local memory.

    Arguments, all flat:

    u (4 Np K,)           the state; with layout "element", dof fastest
    phi (Nq Np,)          the basis at the points
    gradient (2 Nq Np,)   its derivatives, times the weights
    metric (4 K,)         J dr_a/dx_b, element fastest
    residual (4 Np K,)    written
    """
    real = tables.phi_volume.dtype.type
    primitive = make_primitive(real)
    Np, Nq, zero, one = tables.Np, tables.Nq, real(0), np.uint32(1)
    dofs = 4 * Np
    phi_table = tables.phi_volume.ravel()
    weighted = gradient_table(tables)
    constant = plan.tables == "constant"
    by_element = plan.layout == "element"

    @jit(max_registers=plan.registers)
    def volume(u, phi, gradient, metric, residual):
        U = cuda.local.array(dofs, real)
        R = cuda.local.array(dofs, real)
        w = cuda.local.array(4, real)
        Fr = cuda.local.array(4, real)
        Fs = cuda.local.array(4, real)
        k, K = np.uint32(cuda.grid(1)), np.uint32(metric.size // 4)
        if k >= K:
            return
        if constant:
            phi = cuda.const.array_like(phi_table)
            gradient = cuda.const.array_like(weighted)
        begin = np.uint32(k * dofs)
        first, step = (begin, one) if by_element else (k, K)
        rx, ry = metric[k], metric[K + k]
        sx, sy = metric[2 * K + k], metric[3 * K + k]
        # Load the element's state; set the residual to zero.
        for i in range(dofs):
            U[i] = u[first + i * step]
            R[i] = zero
        q = 0
        while q < Nq:
            # The state at a point.
            for s in range(4):
                w[s] = zero
            for i in range(Np):
                value = phi[q * Np + i]
                for s in range(4):
                    w[s] += value * U[s * Np + i]
            # The flux along r and s.
            vx, vy, p = primitive(w)
            vr, vs = rx * vx + ry * vy, sx * vx + sy * vy
            Fr[0], Fs[0] = w[0] * vr, w[0] * vs
            Fr[1], Fs[1] = w[1] * vr + p * rx, w[1] * vs + p * sx
            Fr[2], Fs[2] = w[2] * vr + p * ry, w[2] * vs + p * sy
            Fr[3], Fs[3] = (w[3] + p) * vr, (w[3] + p) * vs
            # Add its part to every basis function's residual.
            for i in range(Np):
                dr = gradient[q * Np + i]
                ds = gradient[(Nq + q) * Np + i]
                for s in range(4):
                    R[s * Np + i] -= dr * Fr[s] + ds * Fs[s]
            q += 1
        for i in range(dofs):
            residual[first + i * step] = R[i]

    return volume


def gradient_table(tables):
    """d phi_i / d r_a at the quadrature points, times the weights.

    A flat array.
    """
    return (tables.dphi_volume * tables.w_volume[:, None]).ravel()
