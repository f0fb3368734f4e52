"""The check for states that no gas can have, one thread per node."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_check(Np, dtype, layout):
    """Kernel that notes the first element with an impossible state.

    Density and pressure must be positive and finite. The kernel tests
    for "not positive", since comparisons with NaN are false, and so
    finds NaN as well. The pressure has the sign of rho (rho E) - |rho
    v|^2 / 2. Arguments:

    u (4 Np K,)     the state, in `layout` "element" or "field"
    bad (1,) int32  minimum with the numbers of such elements
    """
    real = np.dtype(dtype).type
    zero, half, infinity = real(0), real(0.5), real(np.inf)
    dofs, by_element = 4 * Np, layout == "element"

    @jit
    def check(u, bad):
        n = np.uint32(cuda.grid(1))
        if 4 * n >= u.size:
            return
        K, N = np.uint32(u.size // dofs), np.uint32(Np)
        if by_element:
            k, field = n // N, N
            at = np.uint32(k * dofs + n % N)
        else:
            k, field, at = n % K, np.uint32(Np * K), n
        # Density, and pressure times rho / (gamma - 1).
        rho, E = u[at], u[at + 3 * field]
        mx, my = u[at + field], u[at + 2 * field]
        internal = rho * E - half * (mx * mx + my * my)
        if not (rho > zero and zero < internal < infinity):
            cuda.atomic.min(bad, 0, np.int32(k))

    return check
