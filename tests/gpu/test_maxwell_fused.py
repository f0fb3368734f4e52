"""The fused Maxwell kernels on a real device: all orders, both precisions, both languages."""

import numpy as np
import pytest
from fused_stages import Case
from maxwell_cases import BOUNDARY, scrambled

from dgbook.element import NodalElement
from dgbook.gpu import device
from dgbook.gpu.plan import shipped
from dgbook.maxwell import reference
from dgbook.maxwell.launch.fused import FusedLauncher
from dgbook.maxwell.plan import FusedShape
from dgbook.mesh import box
from dgbook.nodal.fused import FusedPlan

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

SEED = np.random.SeedSequence().entropy  # fresh inputs in every run
RANDOM = np.random.default_rng(SEED)
CELLS = (3, 3, 2)  # 108 elements: no multiple of what a block holds
HERE = GPU.compute_capability
KINDS = {"here": (HERE, "cuda"), "any device": (None, "cuda"), "numba": (HERE, "numba")}


def plan_of(kind, order, dtype):
    """The default plan of this device, of one without tensor cores, or of Numba."""
    capability, language = KINDS[kind]
    return shipped(FusedPlan, FusedShape(order, dtype, True), capability, language)


def make(order, dtype, plan, periodic=False, materials=True):
    """A launcher, what a stage should give, random states and boundary data."""
    mesh = box(CELLS, periodic=True) if periodic else scrambled(box(CELLS), RANDOM, 0.04)
    epsilon, mu = RANDOM.uniform(0.5, 2, (2, mesh.K)) if materials else (2.0, 3.0)
    element = NodalElement(3, order)
    operator, double = (
        reference.assemble(
            mesh, element, "upwind", epsilon, mu, "pec" if periodic else BOUNDARY, precision
        )
        for precision in (dtype, "float64")
    )
    u, res = RANDOM.standard_normal((2, 6, mesh.K, element.Np)).astype(dtype)
    data = reference.boundary_data(double, 0.3)
    return Case(
        launcher=FusedLauncher(operator, GPU, plan),
        u=u,
        res=res,
        data=GPU.array((data.ravel() if data.size else np.zeros(1)).astype(dtype)),
        rhs=reference.rhs(double, u.astype(np.float64), 0.3),
        roundings=100,  # some hundred sums; in fp32 tensor cores lose 2 bits of each product
    )


def check(case):
    """A stage and du/dt, from poisoned outputs."""
    case.check_stage()
    case.check_rhs()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", range(1, 10))
def test_a_stage_with_all_boundaries(order, kind, dtype):
    """Materials in the even orders, so that both kinds of kernel are seen."""
    check(make(order, dtype, plan_of(kind, order, dtype), materials=order % 2 == 0))


@pytest.mark.parametrize("order", [2, 5, 8])
def test_a_periodic_box(order, dtype):
    check(make(order, dtype, plan_of("here", order, dtype), periodic=True))


@pytest.mark.parametrize("order", [10])
def test_an_order_above_those_measured(order, dtype):
    check(make(order, dtype, plan_of("here", order, dtype)))


@pytest.mark.parametrize("language", ["cuda", "numba"])
def test_plans_for_the_tuner(language, dtype):
    """Every fifth of them."""
    case = make(3, dtype, plan_of("here", 3, dtype))
    for plan in shipped(
        FusedPlan, FusedShape(3, dtype, True), GPU.compute_capability, language
    ).candidates(FusedShape(3, dtype, True), GPU.compute_capability)[1::5]:
        case.launcher = case.launcher.planned(plan)
        check(case)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", range(1, 10))
def test_the_stages_of_a_factor(order, kind, dtype):
    """By the kernel of its own, with materials in the even orders; recorded in one of them."""
    case = make(order, dtype, plan_of(kind, order, dtype), materials=order % 2 == 0).with_factors()
    case.check_factor()
    case.check_rhs()
    if order == 4:
        case.check_factor(launch=lambda launches: GPU.capture(launches)())


def test_states_survive_the_way_to_the_device(dtype):
    case = make(4, dtype, None)
    case.check_the_way_to_the_device()


def test_a_recorded_stage_does_the_same(dtype):
    case = make(3, dtype, None)
    case.check_recorded()


@pytest.mark.parametrize("order", range(4, 10))
def test_tensor_cores_in_fp32_are_as_exact_as_fp32(order):
    """Split in two and rounded where they are added: unsplit it would be 1000 times as much."""
    plain = shipped(FusedPlan, FusedShape(order, "float32", True))
    tensor = shipped(FusedPlan, FusedShape(order, "float32", True), (9, 0))
    case = make(order, "float32", plain)
    if tensor.illegal(case.launcher.shape, GPU.compute_capability):
        pytest.skip("no tensor cores for fp32 here, or too little shared memory")
    case.check_tensor_cores(plain, tensor)
