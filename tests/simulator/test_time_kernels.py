"""The update kernels of the time integrators, thread by thread, against their NumPy loops."""

import numpy as np
import pytest

from dgbook.gpu import cuda, device, jit
from dgbook.time import lsrk45, midpoint, rk4

N, THREADS, BLOCKS = 70, 32, 3  # more threads than unknowns: the last block must stop at N
SIMULATOR = device("simulator")


def rhs(u, t):
    """Nonlinear, not autonomous, and coupled, so that a wrong state or time shows."""
    return np.roll(u, 1) * (1 - u) + np.cos(t).astype(u.dtype)


@pytest.fixture(params=["float32", "float64"])
def case(request):
    """dtype, initial state, step and the tolerance: kernel and loop may round differently."""
    dtype = np.dtype(request.param)
    u = np.random.default_rng(0).uniform(0.1, 0.9, N).astype(dtype)
    return dtype.type, u, 0.05, 8 * np.finfo(dtype).eps


def slope(u, t):
    return SIMULATOR.array(rhs(SIMULATOR.to_numpy(u), np.float64(t)))


def lsrk45_step(real, u, dt, update=None):
    update = update or lsrk45.make_update(real)
    res = SIMULATOR.empty(N, real)  # poisoned: the first stage must not read it
    for a, b, c in zip(lsrk45.A, lsrk45.B, lsrk45.C, strict=True):
        k = slope(u, c * dt)
        update[BLOCKS, THREADS](k, res, u, real(a), real(b), real(dt))


def test_lsrk45(case):
    real, u0, dt, tolerance = case
    u = SIMULATOR.array(u0)
    lsrk45_step(real, u, dt)
    expected = lsrk45.integrate(rhs, u0, 0.0, dt, dt)
    assert u.dtype == real
    assert np.max(np.abs(u - expected)) < tolerance


def test_rk4(case):
    real, u0, dt, tolerance = case
    intermediate, final = rk4.make_update(real)
    u = SIMULATOR.array(u0)
    v, total = SIMULATOR.empty(N, real), SIMULATOR.empty(N, real)
    k, start = slope(u, 0.0), u
    for s in range(3):
        a, b = real(dt * rk4.A[s + 1]), real(dt * rk4.B[s])
        intermediate[BLOCKS, THREADS](k, u, start, total, v, a, b)
        k, start = slope(v, rk4.C[s + 1] * dt), total
    final[BLOCKS, THREADS](k, total, u, real(dt * rk4.B[3]))
    assert np.max(np.abs(u - rk4.integrate(rhs, u0, 0.0, dt, dt))) < tolerance


def test_midpoint(case):
    real, u0, dt, tolerance = case
    update = midpoint.make_update(real)
    u, middle = SIMULATOR.array(u0), SIMULATOR.empty(N, real)
    update[BLOCKS, THREADS](slope(u, 0.0), u, middle, real(dt / 2))
    update[BLOCKS, THREADS](slope(middle, dt / 2), u, u, real(dt))
    assert np.max(np.abs(u - midpoint.integrate(rhs, u0, 0.0, dt, dt))) < tolerance


def test_fp32_kernels_survive_a_python_float():
    u = SIMULATOR.array(np.ones(N, np.float32))
    midpoint.make_update("float32")[BLOCKS, THREADS](u.copy(), u, u, 0.1)
    assert np.array_equal(u, np.float32(1) + np.float32(0.1) * np.ones(N, np.float32))


def test_a_wrong_update_is_seen(case):
    """A low-storage update that drops its register is one forward Euler step after another."""
    real, u0, dt, tolerance = case

    @jit
    def forgets_the_register(rhs, res, u, a, b, dt):
        i = cuda.grid(1)
        if i < u.size:
            res[i] = dt * rhs[i]
            u[i] += b * res[i]

    u = SIMULATOR.array(u0)
    lsrk45_step(real, u, dt, forgets_the_register)
    expected = lsrk45.integrate(rhs, u0, 0.0, dt, dt)
    assert np.max(np.abs(u - expected)) > 100 * tolerance
