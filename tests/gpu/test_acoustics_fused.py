"""The fused nodal kernels of acoustics on a real device: all orders, precisions and languages."""

import numpy as np
import pytest
from acoustics_cases import device_data, operators
from fused_stages import Case

from dgbook.acoustics import reference
from dgbook.acoustics.launch.fused import FusedLauncher
from dgbook.acoustics.plan import Shape
from dgbook.gpu import device
from dgbook.gpu.plan import shipped
from dgbook.nodal.fused import FusedPlan

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

SEED = np.random.SeedSequence().entropy  # fresh inputs in every run
RANDOM = np.random.default_rng(SEED)
CELLS = (3, 3, 2)  # 108 elements: no multiple of what a block holds
HERE = GPU.compute_capability
KINDS = {"here": (HERE, "cuda"), "any device": (None, "cuda"), "numba": (HERE, "numba")}
T = 0.3


def plan_of(kind, order, dtype):
    """The default plan of this device, of one without tensor cores, or of Numba."""
    capability, language = KINDS[kind]
    return shipped(FusedPlan, Shape(order, dtype), capability, language)


def make(order, dtype, plan, flux="upwind", periodic=False, basis="nodal"):
    """A launcher, what a stage should give, random states and boundary data."""
    operator, double = operators(order, dtype, basis, RANDOM, flux, CELLS, periodic)
    u, res = RANDOM.standard_normal((2, 4, double.mesh.K, double.basis.element.Np)).astype(dtype)
    return Case(
        launcher=FusedLauncher(operator, GPU, plan),
        u=u,
        res=res,
        data=GPU.array(device_data(double, T, dtype)),
        rhs=reference.rhs(double, u.astype(np.float64), T),
        roundings=100,  # some hundred sums; in fp32 tensor cores lose 2 bits of each product
    )


def check(case):
    """A stage and du/dt, from poisoned outputs."""
    case.check_stage()
    case.check_rhs()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", range(1, 10))
def test_a_stage_with_all_boundaries(order, kind, dtype):
    flux = ("upwind", "penalty")[order % 2]
    check(make(order, dtype, plan_of(kind, order, dtype), flux))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", range(1, 10))
def test_the_stages_of_a_factor(order, kind, dtype):
    case = make(order, dtype, plan_of(kind, order, dtype)).with_factors()
    case.check_factor()
    case.check_rhs()


@pytest.mark.parametrize("order", [2, 5, 8])
def test_a_periodic_box(order, dtype):
    check(make(order, dtype, plan_of("here", order, dtype), periodic=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [1, 2, 4, 5, 7])
def test_control_points(order, kind, dtype):
    """With the matrices of the Bernstein basis its operator, on tensor cores and without."""
    flux = ("upwind", "penalty")[order % 2]
    check(make(order, dtype, plan_of(kind, order, dtype), flux, basis="bernstein"))


@pytest.mark.parametrize("order", [10, 12])
def test_orders_above_those_measured(order, dtype):
    check(make(order, dtype, plan_of("here", order, dtype)))


@pytest.mark.parametrize("language", ["cuda", "numba"])
@pytest.mark.parametrize("order", [2, 5])
def test_plans_for_the_tuner(order, language, dtype):
    """Every fifth of them."""
    case = make(order, dtype, plan_of("here", order, dtype))
    for plan in shipped(
        FusedPlan, Shape(order, dtype), GPU.compute_capability, language
    ).candidates(Shape(order, dtype), GPU.compute_capability)[1::5]:
        case.launcher = case.launcher.planned(plan)
        check(case)


def test_states_survive_the_way_to_the_device(dtype):
    case = make(4, dtype, None)
    case.check_the_way_to_the_device()


def test_a_recorded_stage_does_the_same(dtype):
    case = make(3, dtype, None)
    case.check_recorded()


@pytest.mark.parametrize("order", range(4, 10))
def test_tensor_cores_in_fp32_are_as_exact_as_fp32(order):
    """Split in two and rounded where they are added: unsplit it would be 1000 times as much."""
    plain = shipped(FusedPlan, Shape(order, "float32"))
    tensor = shipped(FusedPlan, Shape(order, "float32"), (9, 0))
    case = make(order, "float32", plain)
    if tensor.illegal(case.launcher.shape, GPU.compute_capability):
        pytest.skip("no tensor cores for fp32 here, or too little shared memory")
    case.check_tensor_cores(plain, tensor)
