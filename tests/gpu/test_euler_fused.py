"""The fused Euler kernels on a real device: all orders, both precisions, both languages."""

from types import SimpleNamespace

import numpy as np
import pytest
from euler_cases import BOUNDARY, a_breeze, mesh_of, strong_jumps

from dgbook.element import NodalElement
from dgbook.euler import reference
from dgbook.euler.launch.fused import FusedLauncher
from dgbook.euler.plan import HEALTHY, FusedPlan, FusedShape
from dgbook.gpu import device
from dgbook.gpu.plan import shipped
from dgbook.time import rk4

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

SEED = np.random.SeedSequence().entropy  # fresh inputs in every run
RANDOM = np.random.default_rng(SEED)
CELLS = (9, 7)  # 126 elements: no multiple of what a tile or a block holds
TIMES = (0.3, 0.3005, 0.301)
STEP = 0.001  # stable for order 6: rounding is not amplified


def make(order, dtype, plan, flux="roe", periodic=False, cells=CELLS):
    """A launcher, the same operator in float64, and boundary data."""
    mesh = mesh_of(periodic, cells, RANDOM)
    boundary = {} if periodic else BOUNDARY
    operator, double = (
        reference.assemble(mesh, NodalElement(2, order), flux, boundary, precision)
        for precision in (dtype, "float64")
    )
    data = [reference.boundary_data(double, t) for t in TIMES]
    return SimpleNamespace(
        launcher=FusedLauncher(operator, GPU, plan),
        operator=double,
        data=[GPU.array((d if d.size else np.zeros(1)).astype(dtype).ravel()) for d in data],
    )


def assert_close(case, state, expected):
    """Rounding of some hundred sums."""
    found = case.launcher.download(state)
    assert found.dtype == case.launcher.real
    tolerance = 100 * np.finfo(found.dtype).eps * np.abs(expected).max()
    assert np.abs(found - expected).max() < tolerance


def check(case):
    """du/dt of a state with strong jumps, and a step of one without."""
    launcher = case.launcher
    host = strong_jumps(case.operator, RANDOM).astype(launcher.real)
    u, out = launcher.upload(host), GPU.empty(launcher.size, launcher.real)
    before = u.copy()
    launcher.rhs(u, case.data[0], out)
    assert_close(case, out, reference.rhs(case.operator, host.astype(np.float64), TIMES[0]))
    assert (u == before).all()

    host = a_breeze(case.operator, RANDOM).astype(launcher.real)
    u, expected = launcher.upload(host), host.astype(np.float64)
    launcher.step(u, launcher.work(u), case.data, STEP)
    rk4.advance(lambda v, t: reference.rhs(case.operator, v, t), expected, TIMES[0], STEP)
    assert_close(case, u, expected)
    assert GPU.to_numpy(launcher.bad)[0] == HEALTHY


@pytest.mark.parametrize("language", ["cuda", "numba"])
@pytest.mark.parametrize("order", range(7))
def test_all_boundaries(order, language, dtype):
    check(
        make(
            order,
            dtype,
            shipped(FusedPlan, FusedShape(order, dtype), GPU.compute_capability, language),
        )
    )


@pytest.mark.parametrize("language", ["cuda", "numba"])
@pytest.mark.parametrize("flux", ["rusanov", "hllc"])
def test_all_fluxes(flux, language, dtype):
    plan = shipped(FusedPlan, FusedShape(3, dtype), GPU.compute_capability, language)
    check(make(3, dtype, plan, flux))


@pytest.mark.parametrize("cells", [(2, 2), (32, 9)])
def test_a_periodic_box(cells, dtype):
    check(make(2, dtype, None, periodic=True, cells=cells))


@pytest.mark.parametrize("order", [1, 3, 5])
def test_plans_for_the_tuner(order, dtype):
    """Every ninth of them."""
    case = make(order, dtype, None)
    for plan in shipped(FusedPlan, FusedShape(order, dtype), GPU.compute_capability).candidates(
        FusedShape(order, dtype), GPU.compute_capability
    )[1::9]:
        case.launcher = case.launcher.planned(plan)
        check(case)


def test_passes(dtype):
    """A number of passes that does not divide the nodes."""
    check(make(4, dtype, FusedPlan("cuda", 32, 1, 2, passes=4)))


def test_copied_matrices(dtype):
    check(make(4, dtype, FusedPlan("cuda", 32, 1, 2, copied=True)))


def test_fast_reciprocals_are_exact():
    """Where the hardware finds 20 bits, one more iteration must make the flux of fp64 exact.

    A stream is a solution: in all elements alike, du/dt is rounding alone.
    """
    case = make(3, "float64", None, periodic=True)
    host = np.empty((4, case.operator.mesh.K, 10))
    host[:] = np.array([1.1, 0.44, -0.33, 2.4])[:, None, None]
    launcher = case.launcher
    u, out = launcher.upload(host), launcher.zeros()
    launcher.rhs(u, case.data[0], out)
    scale = case.operator.face_scale.max() * 10
    assert np.abs(launcher.download(out)).max() < 40 * np.finfo(np.float64).eps * scale


@pytest.mark.parametrize("language", ["cuda", "numba"])
@pytest.mark.parametrize(("field", "value"), [(0, -0.1), (3, 0.1), (1, 9.0), (2, np.nan)], ids=str)
def test_what_is_no_gas_is_named(field, value, language, dtype):
    """NaN spreads to the neighbors, the others stay inside."""
    case = make(3, dtype, shipped(FusedPlan, FusedShape(3, dtype), None, language), periodic=True)
    launcher, neighbors = case.launcher, case.operator.neighbors
    host = a_breeze(case.operator, RANDOM).astype(dtype)
    host[field, [44, 17], 5] = value
    u = launcher.upload(host)
    launcher.step(u, launcher.work(u), case.data, 0.0)
    bad = int(GPU.to_numpy(launcher.bad)[0])
    if np.isnan(value):
        assert bad <= min(17, neighbors[17].min())
    else:
        assert bad == 17


def test_a_recorded_step_does_the_same(dtype):
    case = make(3, dtype, None)
    host = a_breeze(case.operator, RANDOM).astype(dtype)
    u, v = case.launcher.upload(host), case.launcher.upload(host)
    work = case.launcher.work(u)
    GPU.capture(lambda: case.launcher.step(u, work, case.data, STEP))()
    case.launcher.step(v, case.launcher.work(v), case.data, STEP)
    assert (u == v).all()


def test_states_survive_the_way_to_the_device(dtype):
    case = make(4, dtype, None)
    host = strong_jumps(case.operator, RANDOM).astype(dtype)
    assert np.array_equal(case.launcher.download(case.launcher.upload(host)), host)
