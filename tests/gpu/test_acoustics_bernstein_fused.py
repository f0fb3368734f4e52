"""The fused Bernstein-Bezier kernels on a real device: all orders, precisions and languages."""

import numpy as np
import pytest
from acoustics_cases import device_data, operators
from fused_stages import Case
from team_cases import check_again_and_again, check_candidates

from dgbook.acoustics import reference
from dgbook.acoustics.launch.bernstein_fused import BernsteinFusedLauncher
from dgbook.acoustics.plan import BernsteinFusedPlan, Shape
from dgbook.gpu import device

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

SEED = np.random.SeedSequence().entropy  # fresh inputs in every run
RANDOM = np.random.default_rng(SEED)
CELLS = (3, 3, 2)  # 108 elements: no multiple of what a block holds
T = 0.3


def usual(order, dtype):
    return BernsteinFusedPlan.default(Shape(order, dtype), GPU.compute_capability)


def make(order, dtype, plan=None, **options):
    """A launcher, what du/dt should be, random states and boundary data."""
    options = {"cells": CELLS, **options}
    operator, double = operators(order, dtype, "bernstein", RANDOM, **options)
    u, res = RANDOM.standard_normal((2, 4, double.mesh.K, double.basis.element.Np)).astype(dtype)
    return Case(
        launcher=BernsteinFusedLauncher(operator, GPU, plan or usual(order, dtype)),
        u=u,
        res=res,
        data=GPU.array(device_data(double, T, dtype)),
        rhs=reference.rhs(double, u.astype(np.float64), T),
    )


def check(case):
    """A stage and du/dt, from poisoned outputs."""
    case.check_stage()
    case.check_rhs()


@pytest.mark.parametrize("language", ["cuda", "numba"])
@pytest.mark.parametrize("order", range(1, 10))
def test_a_stage_with_all_boundaries(order, language, dtype):
    plan = BernsteinFusedPlan.default(Shape(order, dtype), GPU.compute_capability, language)
    check(make(order, dtype, plan, flux="upwind" if order % 2 else "penalty"))


@pytest.mark.parametrize("language", ["cuda", "numba"])
@pytest.mark.parametrize("order", range(1, 10))
def test_the_stages_of_a_factor(order, language, dtype):
    plan = BernsteinFusedPlan.default(Shape(order, dtype), GPU.compute_capability, language)
    case = make(order, dtype, plan).with_factors()
    case.check_factor()
    case.check_rhs()


@pytest.mark.parametrize("order", [2, 5, 8])
def test_a_periodic_box(order, dtype):
    check(make(order, dtype, periodic=True))


def test_an_order_above_those_measured(dtype):
    check(make(12, dtype, cells=(2, 1, 1)))


@pytest.mark.parametrize("language", ["cuda", "numba"])
@pytest.mark.parametrize("order", [2, 7])
def test_plans_for_the_tuner(order, language, dtype):
    """Every third of them."""
    plan = BernsteinFusedPlan.default(Shape(order, dtype), GPU.compute_capability, language)
    check_candidates(make(order, dtype, plan))


def test_a_stage_again_and_again_is_the_same(dtype):
    """With 7,776 elements."""
    case = make(3, dtype, cells=(12, 12, 9))
    numbers = case.launcher.operator.mesh.K * case.launcher.shape.Np * 4
    check_again_and_again(case, numbers)


def test_a_recorded_stage_does_the_same(dtype):
    case = make(3, dtype)
    case.check_recorded()


def test_states_survive_the_way_to_the_device(dtype):
    case = make(4, dtype)
    case.check_the_way_to_the_device()
