"""The fused Bernstein-Bezier kernels on a real device: all orders, precisions and languages."""

from types import SimpleNamespace

import numpy as np
import pytest
from acoustics_cases import device_data, operators

from dgbook.acoustics import reference
from dgbook.acoustics.bernstein_fused import BernsteinFusedLauncher, default_plan, plans
from dgbook.gpu import device
from dgbook.time import lsrk45

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

SEED = np.random.SeedSequence().entropy  # fresh inputs in every run
RANDOM = np.random.default_rng(SEED)
CELLS = (3, 3, 2)  # 108 elements: no multiple of what a block holds
T = 0.3


@pytest.fixture(autouse=True)
def seed():
    """Shown with a test that fails."""
    print(f"seed {SEED}")


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param


def make(order, dtype, plan=None, **options):
    """A launcher, what du/dt should be, random states and boundary data."""
    options = {"cells": CELLS, **options}
    operator, double = operators(order, dtype, "bernstein", RANDOM, **options)
    u, res = RANDOM.standard_normal((2, 4, double.mesh.K, double.basis.element.Np)).astype(dtype)
    return SimpleNamespace(
        launcher=BernsteinFusedLauncher(operator, GPU, plan),
        u=u,
        res=res,
        data=GPU.array(device_data(double, T, dtype)),
        rhs=reference.rhs(double, u.astype(np.float64), T),
    )


def assert_close(case, state, expected):
    found = case.launcher.download(state)
    assert found.dtype == case.u.dtype
    tolerance = 40 * np.finfo(found.dtype).eps * np.abs(expected).max()
    assert np.abs(found - expected).max() < tolerance


def poisoned(case):
    return GPU.array(np.full(case.launcher.size, np.nan, case.u.dtype))


def check(case, number=3, dt=0.01):
    """A stage and du/dt, from poisoned outputs."""
    a, b = lsrk45.A[number], lsrk45.B[number]
    u, res, new = case.launcher.upload(case.u), case.launcher.upload(case.res), poisoned(case)
    before = u.copy()
    case.launcher.stage(u, res, new, case.data, a, b, dt)
    expected = a * case.res.astype(np.float64) + dt * case.rhs
    assert_close(case, res, expected)
    assert_close(case, new, case.u + b * expected)
    out = poisoned(case)
    case.launcher.rhs(u, case.data, out)
    assert_close(case, out, case.rhs)
    assert (u == before).all()


@pytest.mark.parametrize("language", ["cuda", "numba"])
@pytest.mark.parametrize("order", range(1, 10))
def test_a_stage_with_all_boundaries(order, language, dtype):
    plan = default_plan(order, dtype, GPU.compute_capability, language)
    check(make(order, dtype, plan, flux="upwind" if order % 2 else "penalty"))


@pytest.mark.parametrize("order", [2, 5, 8])
def test_a_periodic_box(order, dtype):
    check(make(order, dtype, periodic=True))


def test_an_order_above_those_measured(dtype):
    check(make(12, dtype, cells=(2, 1, 1)))


@pytest.mark.parametrize("language", ["cuda", "numba"])
@pytest.mark.parametrize("order", [2, 7])
def test_plans_for_the_tuner(order, language, dtype):
    """Every third of them."""
    case = make(order, dtype, default_plan(order, dtype, GPU.compute_capability, language))
    for plan in plans(order, dtype, GPU, language)[1::3]:
        case.launcher = case.launcher.planned(plan)
        check(case)


def test_a_stage_again_and_again_is_the_same(dtype):
    """A barrier that is missing would show as other bits: 20 times 7,776 elements."""
    case = make(3, dtype, cells=(12, 12, 9))
    u, first = case.launcher.upload(case.u), poisoned(case)
    case.launcher.rhs(u, case.data, first)
    for _ in range(20):
        out = poisoned(case)
        case.launcher.rhs(u, case.data, out)
        K = case.launcher.K * case.launcher.shape.Np * 4
        assert (out[:K] == first[:K]).all()


def test_a_recorded_stage_does_the_same(dtype):
    case = make(3, dtype)
    u, res, new = case.launcher.upload(case.u), case.launcher.upload(case.res), poisoned(case)
    GPU.capture(lambda: case.launcher.stage(u, res, new, case.data, -0.7, 0.3, 0.01))()
    expected = -0.7 * case.res.astype(np.float64) + 0.01 * case.rhs
    assert_close(case, res, expected)
    assert_close(case, new, case.u + 0.3 * expected)


def test_states_survive_the_way_to_the_device(dtype):
    case = make(4, dtype)
    found = case.launcher.download(case.launcher.upload(case.u))
    assert np.abs(found - case.u).max() < 10 * np.finfo(dtype).eps * np.abs(case.u).max()
