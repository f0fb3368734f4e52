"""The Bernstein-Bezier kernels of acoustics on a real device: all orders, both precisions."""

from dataclasses import replace

import numpy as np
import pytest
from acoustics_cases import device_data, expected_surface, expected_volume, operators

from dgbook.acoustics import reference
from dgbook.acoustics.sparse import (
    SURFACES,
    BernsteinLauncher,
    BernsteinPlan,
    Shape,
    default_plan,
    plans,
)
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


@pytest.fixture(params=SURFACES)
def surface(request):
    return request.param


class Case:
    """A launcher, the same operator in float64, a random state and boundary data."""

    def __init__(self, order, dtype, plan, **options):
        operator, self.double = operators(order, dtype, "bernstein", RANDOM, cells=CELLS, **options)
        self.launcher = BernsteinLauncher(operator, GPU, plan)
        shape = 2, 4, self.double.mesh.K, self.double.basis.element.Np
        self.u, self.res = RANDOM.standard_normal(shape).astype(dtype)
        self.data = GPU.array(device_data(self.double, T, dtype))

    @property
    def rhs(self):
        return reference.rhs(self.double, self.u.astype(float), T)

    def assert_close(self, found, expected):
        assert found.dtype == self.u.dtype
        tolerance = 100 * np.finfo(found.dtype).eps * np.abs(expected).max()
        assert np.abs(found - expected).max() < tolerance

    def check_parts(self, launcher):
        """Volume on NaN, and surface on what is there already."""
        u = launcher.upload(self.u)
        out = launcher.upload(np.full_like(self.u, np.nan))
        launcher.volume(u, out)
        self.assert_close(launcher.download(out), expected_volume(self.double, self.u))
        out = launcher.upload(self.res)
        launcher.surface(u, self.data, out)
        expected = self.res + expected_surface(self.double, self.u, T)
        self.assert_close(launcher.download(out), expected)
        assert np.array_equal(launcher.download(u), self.u)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("order", range(1, 13))
def test_kernels_against_the_reference(order, periodic, surface, dtype):
    flux = "upwind" if order % 2 else "penalty"
    plan = default_plan(order, dtype, surface)
    case = Case(order, dtype, plan, flux=flux, periodic=periodic)
    launcher = case.launcher
    case.check_parts(launcher)
    u, res, stage, dt = launcher.upload(case.u), launcher.upload(case.res), 3, 1e-3
    launcher.stage(u, res, u, case.data, lsrk45.A[stage], lsrk45.B[stage], dt)
    expected = lsrk45.A[stage] * case.res + dt * case.rhs
    case.assert_close(launcher.download(res), expected)
    case.assert_close(launcher.download(u), case.u + lsrk45.B[stage] * expected)


@pytest.mark.parametrize("order", range(1, 13))
def test_columns_from_a_word_a_row(order, dtype):
    case = Case(order, dtype, replace(default_plan(order, dtype), columns="computed"))
    case.check_parts(case.launcher)


@pytest.mark.parametrize("order", [1, 4, 7])
def test_candidate_plans_compute_the_same(order, dtype):
    case = Case(order, dtype, None)
    for plan in plans(Shape(order, dtype)):
        case.check_parts(case.launcher.planned(plan))


def test_a_recorded_stage_is_replayed(surface, dtype):
    case = Case(3, dtype, BernsteinPlan(5, 6, 7, surface))
    launcher, dt = case.launcher, 1e-3
    u, res = launcher.upload(case.u), launcher.upload(case.res)
    replay = GPU.capture(lambda: launcher.stage(u, res, u, case.data, 0.5, 0.25, dt))
    assert np.array_equal(launcher.download(u), case.u), "recording does not launch"
    replay()
    GPU.synchronize()
    expected = 0.5 * case.res + dt * case.rhs
    case.assert_close(launcher.download(res), expected)
    case.assert_close(launcher.download(u), case.u + 0.25 * expected)
