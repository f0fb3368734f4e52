"""The Bernstein-Bezier kernels of acoustics on a real device: all orders, both precisions."""

from dataclasses import replace

import acoustics_cases
import numpy as np
import pytest
from acoustics_cases import tried

from dgbook.acoustics.launch.sparse import BernsteinLauncher
from dgbook.acoustics.plan import SURFACES, BernsteinPlan, Shape
from dgbook.gpu import device
from dgbook.time import lsrk45

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

SEED = np.random.SeedSequence().entropy  # fresh inputs in every run
RANDOM = np.random.default_rng(SEED)
CELLS = (3, 3, 2)  # 108 elements: no multiple of what a block holds


@pytest.fixture(params=SURFACES)
def surface(request):
    return request.param


def make_case(order, dtype, plan, **options):
    return acoustics_cases.make_case(
        BernsteinLauncher, plan, GPU, order, dtype, "bernstein", RANDOM, 100, cells=CELLS, **options
    )


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("order", range(1, 13))
def test_kernels_against_the_reference(order, periodic, surface, dtype):
    flux = "upwind" if order % 2 else "penalty"
    plan = BernsteinPlan.default(Shape(order, dtype), None, surface)
    case = make_case(order, dtype, plan, flux=flux, periodic=periodic)
    launcher = case.launcher
    case.check_parts(launcher)
    u, res, stage, dt = launcher.upload(case.u), launcher.upload(case.res), 3, 1e-3
    launcher.stage(u, res, u, case.data, lsrk45.A[stage], lsrk45.B[stage], dt)
    expected = lsrk45.A[stage] * case.res + dt * case.rhs
    case.assert_close(launcher.download(res), expected)
    case.assert_close(launcher.download(u), case.u + lsrk45.B[stage] * expected)


@pytest.mark.parametrize("order", range(1, 13))
def test_columns_from_a_word_a_row(order, dtype):
    case = make_case(
        order, dtype, replace(BernsteinPlan.default(Shape(order, dtype)), columns="computed")
    )
    case.check_parts(case.launcher)


@pytest.mark.parametrize("order", [1, 4, 7])
def test_candidate_plans_compute_the_same(order, dtype):
    """Every other one."""
    case = make_case(order, dtype, None)
    for name in ("factored", "optimal", "unblocked"):
        for plan in tried(name, order, dtype)[::2]:
            case.check_parts(case.launcher.planned(plan))


def test_a_recorded_stage_is_replayed(surface, dtype):
    case = make_case(3, dtype, BernsteinPlan(5, 6, 7, surface))
    launcher, dt = case.launcher, 1e-3
    u, res = launcher.upload(case.u), launcher.upload(case.res)
    replay = GPU.capture(lambda: launcher.stage(u, res, u, case.data, 0.5, 0.25, dt))
    assert np.array_equal(launcher.download(u), case.u), "recording does not launch"
    replay()
    GPU.synchronize()
    expected = 0.5 * case.res + dt * case.rhs
    case.assert_close(launcher.download(res), expected)
    case.assert_close(launcher.download(u), case.u + 0.25 * expected)
