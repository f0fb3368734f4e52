"""The low-storage Runge-Kutta method 4(5): order 4, five stages, two registers a degree of freedom.

One stage s is ``res = A_s res + dt f(u, t + C_s dt)``, then ``u = u + B_s res``. It is stable on
the real axis down to -4.657 and on the imaginary axis up to 3.341 (dt times the eigenvalue).

References
----------
Carpenter and Kennedy, "Fourth-order 2N-storage Runge-Kutta schemes", NASA TM-109112, 1994.
"""

from __future__ import annotations

from typing import Any

from dgbook.gpu import Kernel, cuda, jit
from dgbook.time.stepping import advancing, integrator, low_storage, real_type

# Quotients of integers, which Python rounds correctly to float64. As Python floats, not NumPy
# scalars, they leave a float32 state float32.
A = (
    0.0,
    -567301805773 / 1357537059087,
    -2404267990393 / 2016746695238,
    -3550918686646 / 2091501179385,
    -1275806237668 / 842570457699,
)
B = (
    1432997174477 / 9575080441755,
    5161836677717 / 13612068292357,
    1720146321549 / 2090206949498,
    3134564353537 / 4481467310338,
    2277821191437 / 14882151754819,
)
C = (
    0.0,
    1432997174477 / 9575080441755,
    2526269341429 / 6820363962896,
    2006345519317 / 3224310063776,
    2802321613138 / 2924317926251,
)
ORDER = 4


stages = low_storage(A, B, C)
advance = advancing(stages)
integrate = integrator(advance)


def make_update(dtype: Any) -> Kernel:
    """The kernel that ends a stage: ``res = a res + dt rhs``, then ``u = u + b res``.

    One thread updates one degree of freedom: launch at least u.size threads. It moves 5 words a
    degree of freedom (4 in the first stage, where a = 0 and `res` need not be defined) and does
    4 flops.

    Parameters
    ----------
    dtype : float32 or float64
        Of the arrays; the kernel closes over it, so that none of its arithmetic is wider.

    Returns
    -------
    Kernel
        ``update[blocks, threads](rhs, res, u, a, b, dt)``, with one-dimensional arrays. Give the
        scalars as ``np.float32(A[s])`` to an fp32 kernel: a Python float arrives as fp64 and
        must be converted there.

    Raises
    ------
    ValueError
        If dtype is neither float32 nor float64.
    """
    real = real_type(dtype)
    zero = real(0)

    @jit
    def lsrk45_update(rhs, res, u, a, b, dt):
        i = cuda.grid(1)
        if i < u.size:
            r = real(dt) * rhs[i]
            if real(a) != zero:  # the same for all threads; spares the first stage a read
                r += real(a) * res[i]
            res[i] = r
            u[i] += real(b) * r

    return lsrk45_update
