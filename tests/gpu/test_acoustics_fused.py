"""The fused nodal kernels of acoustics on a real device: all orders, precisions and languages."""

from types import SimpleNamespace

import numpy as np
import pytest
from acoustics_cases import device_data, operators

from dgbook.acoustics import reference
from dgbook.acoustics.fused import FusedLauncher, default_plan, illegal, plans
from dgbook.gpu import device
from dgbook.time import lsrk45

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

SEED = np.random.SeedSequence().entropy  # fresh inputs in every run
RANDOM = np.random.default_rng(SEED)
CELLS = (3, 3, 2)  # 108 elements: no multiple of what a block holds
KINDS = {"here": (None, "cuda"), "any device": ((7, 5), "cuda"), "numba": (None, "numba")}
T = 0.3


@pytest.fixture(autouse=True)
def seed():
    """Shown with a test that fails."""
    print(f"seed {SEED}")


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param


def plan_of(kind, order, dtype):
    """The default plan of this device, of one without tensor cores, or of Numba."""
    capability, language = KINDS[kind]
    return default_plan(order, dtype, capability or GPU.compute_capability, language)


def make(order, dtype, plan, flux="upwind", periodic=False):
    """A launcher, what a stage should give, random states and boundary data."""
    operator, double = operators(order, dtype, "nodal", RANDOM, flux, CELLS, periodic)
    u, res = RANDOM.standard_normal((2, 4, double.mesh.K, double.basis.element.Np)).astype(dtype)
    return SimpleNamespace(
        launcher=FusedLauncher(operator, GPU, plan),
        u=u,
        res=res,
        data=GPU.array(device_data(double, T, dtype)),
        rhs=reference.rhs(double, u.astype(np.float64), T),
    )


def assert_close(case, state, expected):
    """Rounding of some hundred sums; tensor cores in fp32 lose two bits of each product."""
    found = case.launcher.download(state)
    assert found.dtype == case.u.dtype
    tolerance = 100 * np.finfo(found.dtype).eps * np.abs(expected).max()
    assert np.abs(found - expected).max() < tolerance


def poisoned(case):
    return GPU.empty(case.launcher.size, case.u.dtype)


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", range(1, 10))
def test_a_stage_with_all_boundaries(order, kind, dtype):
    flux = ("upwind", "penalty")[order % 2]
    check(make(order, dtype, plan_of(kind, order, dtype), flux))


@pytest.mark.parametrize("order", [2, 5, 8])
def test_a_periodic_box(order, dtype):
    check(make(order, dtype, plan_of("here", order, dtype), periodic=True))


@pytest.mark.parametrize("order", [10, 12])
def test_orders_above_those_measured(order, dtype):
    check(make(order, dtype, plan_of("here", order, dtype)))


@pytest.mark.parametrize("language", ["cuda", "numba"])
@pytest.mark.parametrize("order", [2, 5])
def test_plans_for_the_tuner(order, language, dtype):
    """Every fifth of them."""
    case = make(order, dtype, plan_of("here", order, dtype))
    for plan in plans(order, dtype, GPU, language)[1::5]:
        case.launcher = case.launcher.planned(plan)
        check(case)


def test_states_survive_the_way_to_the_device(dtype):
    case = make(4, dtype, None)
    found = case.launcher.download(case.launcher.upload(case.u))
    assert np.abs(found - case.u).max() < 10 * np.finfo(dtype).eps * np.abs(case.u).max()


def test_a_recorded_stage_does_the_same(dtype):
    case = make(3, dtype, None)
    u, res, new = case.launcher.upload(case.u), case.launcher.upload(case.res), poisoned(case)
    GPU.capture(lambda: case.launcher.stage(u, res, new, case.data, -0.7, 0.3, 0.01))()
    expected = -0.7 * case.res.astype(np.float64) + 0.01 * case.rhs
    assert_close(case, res, expected)
    assert_close(case, new, case.u + 0.3 * expected)


@pytest.mark.parametrize("order", range(4, 10))
def test_tensor_cores_in_fp32_are_as_exact_as_fp32(order):
    """Split in two and rounded where they are added: unsplit it would be 1000 times as much."""
    plain = default_plan(order, "float32", (7, 5))
    tensor = default_plan(order, "float32", (9, 0))
    case = make(order, "float32", plain)
    if illegal(tensor, case.launcher.shape, GPU.compute_capability):
        pytest.skip("no tensor cores for fp32 here, or too little shared memory")
    errors = []
    for plan in (plain, tensor):
        launcher, out = case.launcher.planned(plan), poisoned(case)
        launcher.rhs(launcher.upload(case.u), case.data, out)
        errors.append(np.sqrt(np.mean((launcher.download(out) - case.rhs) ** 2)))
    assert errors[1] < 1.5 * errors[0]
