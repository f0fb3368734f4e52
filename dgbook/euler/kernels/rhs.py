"""From residuals to slopes: the kernel Res2RHS of chen."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_rhs(tables, plan):
    """Kernel for f = - M^-1 R / J, one thread per element.

    One matrix for all elements and one number per element replace the
    inverse mass matrices (section 2.3.2). Arguments, all flat:

    residual (4 Np K,)       with layout "element", dof fastest
    inverse_mass (Np Np,)    M^-1
    inverse_jacobian (K,)    1 / J
    slope (4 Np K,)          written
    """
    real = tables.inverse_mass.dtype.type
    Np, zero = tables.Np, real(0)
    dofs = 4 * Np
    table = tables.inverse_mass.ravel()
    constant = plan.tables == "constant"
    by_element = plan.layout == "element"

    @jit(max_registers=plan.registers)
    def rhs(residual, inverse_mass, inverse_jacobian, slope):
        R = cuda.local.array(dofs, real)
        total = cuda.local.array(4, real)
        k, K = np.uint32(cuda.grid(1)), np.uint32(inverse_jacobian.size)
        if k >= K:
            return
        if constant:
            inverse_mass = cuda.const.array_like(table)
        begin, one = np.uint32(k * dofs), np.uint32(1)
        first, step = (begin, one) if by_element else (k, K)
        scale = -inverse_jacobian[k]
        # Load the element's residual.
        for i in range(dofs):
            R[i] = residual[first + i * step]
        # One row of M^-1 at a time, for all four fields.
        i = 0
        while i < Np:
            for s in range(4):
                total[s] = zero
            for j in range(Np):
                entry = inverse_mass[i * Np + j]
                for s in range(4):
                    total[s] += entry * R[s * Np + j]
            for s in range(4):
                slope[first + (s * Np + i) * step] = scale * total[s]
            i += 1

    return rhs
