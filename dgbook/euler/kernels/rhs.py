"""From residuals to slopes: chen's Res2RHS, one thread per element."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_rhs(tables, plan):
    """Kernel for f = - M^-1 R / J, equation (8).

    One matrix and a number an element are all of the inverse mass matrix
    (section 2.3.2). Arguments, all flat:

    residual (4 Np K,)       with layout "element" dof fastest
    inverse_mass (Np Np,)    M^-1
    inverse_jacobian (K,)    1 / J
    slope (4 Np K,)          written
    """
    real = tables.inverse_mass.dtype.type
    Np, zero = tables.Np, real(0)
    dofs = 4 * Np
    table = tables.inverse_mass.ravel()
    constant, by_element = (
        plan.tables == "constant",
        plan.layout == "element",
    )

    @jit(max_registers=plan.registers)
    def rhs(residual, inverse_mass, inverse_jacobian, slope):
        R = cuda.local.array(dofs, real)
        total = cuda.local.array(4, real)
        k, K = np.uint32(cuda.grid(1)), np.uint32(inverse_jacobian.size)
        if k >= K:
            return
        if constant:
            inverse_mass = cuda.const.array_like(table)
        one = np.uint32(1)
        first, step = (
            (np.uint32(k * dofs), one) if by_element else (k, K)
        )
        scale = -inverse_jacobian[k]
        # The element's residual.
        for i in range(dofs):
            R[i] = residual[first + i * step]
        i = 0
        # A row of M^-1 at a time, for all four fields.
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
