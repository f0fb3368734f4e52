"""The nodal kernels of acoustics on a real device: all orders, both precisions."""

import acoustics_cases
import numpy as np
import pytest
from acoustics_cases import tried

from dgbook.acoustics.launch.nodal import NodalLauncher
from dgbook.acoustics.plan import ElementPlan, NodePlan, Shape
from dgbook.gpu import device
from dgbook.time import lsrk45

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

SEED = np.random.SeedSequence().entropy  # fresh inputs in every run
RANDOM = np.random.default_rng(SEED)
CELLS = (3, 3, 2)  # 108 elements: no multiple of what a block holds


@pytest.fixture(params=[True, False], ids=["node", "element"])
def by_node(request):
    return request.param


def make_case(order, dtype, by_node, flux="penalty", periodic=False):
    plan = (NodePlan if by_node else ElementPlan).default(Shape(order, dtype))
    return acoustics_cases.make_case(
        NodalLauncher, plan, GPU, order, dtype, "nodal", RANDOM, 100,
        flux=flux, cells=CELLS, periodic=periodic,
    )  # fmt: skip


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("order", range(1, 10))
def test_kernels_against_the_reference(order, periodic, by_node, dtype):
    case = make_case(order, dtype, by_node, ("upwind", "penalty", "central")[order % 3], periodic)
    launcher = case.launcher
    case.check_parts(launcher)
    u, res, stage, dt = launcher.upload(case.u), launcher.upload(case.res), 3, 1e-3
    launcher.stage(u, res, u, case.data, lsrk45.A[stage], lsrk45.B[stage], dt)
    expected = lsrk45.A[stage] * case.res + dt * case.rhs
    case.assert_close(launcher.download(res), expected)
    case.assert_close(launcher.download(u), case.u + lsrk45.B[stage] * expected)


@pytest.mark.parametrize("order", [1, 4, 7])
def test_candidate_plans_compute_the_same(order, by_node, dtype):
    """Some at random: all of them take minutes to compile."""
    case = make_case(order, dtype, by_node)
    plans = tried("node" if by_node else "element", order, dtype)
    for i in RANDOM.permutation(len(plans))[:8]:
        case.check_parts(case.launcher.planned(plans[i]))


def test_a_recorded_stage_is_replayed(by_node, dtype):
    case = make_case(3, dtype, by_node)
    launcher, dt = case.launcher, 1e-3
    u, res = launcher.upload(case.u), launcher.upload(case.res)
    replay = GPU.capture(lambda: launcher.stage(u, res, u, case.data, 0.5, 0.25, dt))
    assert np.array_equal(launcher.download(u), case.u), "recording does not launch"
    replay()
    GPU.synchronize()
    expected = 0.5 * case.res + dt * case.rhs
    case.assert_close(launcher.download(res), expected)
    case.assert_close(launcher.download(u), case.u + 0.25 * expected)
