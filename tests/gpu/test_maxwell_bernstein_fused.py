"""Maxwell's kernels in the Bernstein basis on a real device: all orders, precisions, languages."""

import numpy as np
import pytest
from fused_stages import Case
from maxwell_cases import BOUNDARY, scrambled
from team_cases import check_again_and_again, check_candidates

from dgbook.element import NodalElement
from dgbook.gpu import device
from dgbook.maxwell import PlaneWave, Scatterer, Solver, reference
from dgbook.maxwell.launch.bernstein_fused import BernsteinFusedLauncher
from dgbook.maxwell.plan import BernsteinFusedPlan, FusedShape
from dgbook.mesh import box

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

SEED = np.random.SeedSequence().entropy  # fresh inputs in every run
RANDOM = np.random.default_rng(SEED)
CELLS = (3, 3, 2)  # 108 elements: no multiple of what a block holds
T = 0.3


def usual(order, dtype, language="cuda"):
    return BernsteinFusedPlan.default(FusedShape(order, dtype), GPU.compute_capability, language)


def make(order, dtype, plan=None, cells=CELLS, periodic=False, materials=True):
    """A launcher, what du/dt should be, random states and boundary data."""
    mesh = box(cells, periodic=periodic)
    mesh = mesh if periodic else scrambled(mesh, RANDOM, 0.12 / max(cells))
    epsilon, mu = RANDOM.uniform(0.5, 2, (2, mesh.K)) if materials else (2.0, 3.0)
    boundary, element = "pec" if periodic else BOUNDARY, NodalElement(3, order)
    operator, double = (
        reference.assemble(mesh, element, "upwind", epsilon, mu, boundary, precision, "bernstein")
        for precision in (dtype, "float64")
    )
    u, res = RANDOM.standard_normal((2, 6, mesh.K, element.Np)).astype(dtype)
    data = reference.boundary_data(double, T)
    return Case(
        launcher=BernsteinFusedLauncher(operator, GPU, plan or usual(order, dtype)),
        u=u,
        res=res,
        data=GPU.array((data.ravel() if data.size else np.zeros(1)).astype(dtype)),
        rhs=reference.rhs(double, u.astype(np.float64), T),
    )


def check(case):
    """A stage and du/dt, from poisoned outputs."""
    case.check_stage()
    case.check_rhs()


@pytest.mark.parametrize("language", ["cuda", "numba"])
@pytest.mark.parametrize("order", range(1, 10))
def test_a_stage_with_all_boundaries(order, language, dtype):
    check(make(order, dtype, usual(order, dtype, language), materials=order % 2 == 0))


@pytest.mark.parametrize("language", ["cuda", "numba"])
@pytest.mark.parametrize("order", range(1, 10))
def test_the_stages_of_a_factor(order, language, dtype):
    case = make(order, dtype, usual(order, dtype, language), materials=order % 2 == 0)
    case.with_factors().check_factor()
    case.with_factors().check_rhs()


@pytest.mark.parametrize("order", [2, 5, 8])
def test_a_periodic_box(order, dtype):
    check(make(order, dtype, periodic=True))


def test_an_order_above_those_compiled_elsewhere(dtype):
    check(make(10, dtype, cells=(2, 1, 1)))


@pytest.mark.parametrize("language", ["cuda", "numba"])
@pytest.mark.parametrize("order", [2, 7])
def test_plans_for_the_tuner(order, language, dtype):
    """Every third of them."""
    check_candidates(make(order, dtype, usual(order, dtype, language)))


def test_a_stage_again_and_again_is_the_same(dtype):
    """With 7,776 elements."""
    case = make(3, dtype, cells=(12, 12, 9))
    numbers = case.launcher.operator.mesh.K * case.launcher.shape.Np * 6
    check_again_and_again(case, numbers)


def test_a_recorded_stage_does_the_same(dtype):
    make(3, dtype).check_recorded()


def test_states_survive_the_way_to_the_device(dtype):
    make(4, dtype).check_the_way_to_the_device()


@pytest.mark.parametrize("order", [2, 5])
def test_a_run_is_that_of_the_nodal_basis(order, dtype):
    """With what comes in evaluated on the device, in a recorded step."""
    wave = PlaneWave((1, 0, 0), (0, 0, 1), "gaussian", 0.3, 0.5)
    boundary = {"x-": Scatterer(wave), "x+": "absorbing", "y-": "pec", "y+": "pec"}
    boundary |= {"z-": "absorbing", "z+": "pec"}
    u = RANDOM.standard_normal((6, 6 * 2**3, NodalElement(3, order).Np)).astype(dtype)
    runs = []
    for basis in ("nodal", "bernstein"):
        solver = Solver(box((2, 2, 2)), order, dtype, GPU, boundary=boundary, basis=basis)
        runs.append(solver.run(u, 0.3, 0.3 / 40))
    wrong = np.abs(runs[0].astype(np.float64) - runs[1]).max()
    assert wrong < 300 * np.finfo(dtype).eps * np.abs(runs[0]).max()
