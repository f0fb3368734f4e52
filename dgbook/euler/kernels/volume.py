"""Volume integrals: chen's calculateVolumeRes, one thread per element."""

import numpy as np

from dgbook.euler.kernels.riemann import make_primitive
from dgbook.gpu import cuda, jit


def make_volume(tables, plan):
    """Kernel for R^v = - integral of grad phi_i . F(u), equation (11).

    A thread loads the 4 Np values of its element and goes through the
    quadrature points: state, flux, and what the flux adds to the residual of
    each basis function. State and residual are local arrays of fixed size
    (section 3.4.2): registers as long as there are enough, else local memory.

    Arguments, all flat:

    u (4 Np K,)           the state; with layout "element" dof fastest
    phi (Nq Np,)          the basis at the points
    gradient (2 Nq Np,)   its derivatives, times the weights
    metric (4 K,)         J dr_a/dx_b, element fastest
    residual (4 Np K,)    written
    """
    real = tables.phi_volume.dtype.type
    primitive = make_primitive(real)
    Np, Nq, zero, one = tables.Np, tables.Nq, real(0), np.uint32(1)
    dofs = 4 * Np
    phi_table, weighted = (
        tables.phi_volume.ravel(),
        gradient_table(tables),
    )
    constant, by_element = (
        plan.tables == "constant",
        plan.layout == "element",
    )

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
        first, step = (
            (np.uint32(k * dofs), one) if by_element else (k, K)
        )
        rx, ry = metric[k], metric[K + k]
        sx, sy = metric[2 * K + k], metric[3 * K + k]
        # The element's state.
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
            # What it adds to every basis function.
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
    """d phi_i / d r_a at the quadrature points, times the weights, flat."""
    return (tables.dphi_volume * tables.w_volume[:, None]).ravel()
