"""The paper's kernels for the Euler equations on a real device: all orders, every lever."""

from dataclasses import replace

import numpy as np
import pytest
from euler_cases import BOUNDARY, a_breeze, mesh_of, strong_jumps

from dgbook.element import NodalElement
from dgbook.euler import reference
from dgbook.euler.launch.paper import PaperLauncher
from dgbook.euler.plan import HEALTHY, FusedShape, PaperPlan
from dgbook.euler.problem import FLUXES
from dgbook.gpu import device
from dgbook.time import rk4

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

SEED = np.random.SeedSequence().entropy  # fresh inputs in every run
RANDOM = np.random.default_rng(SEED)
CELLS = (17, 9)  # 306 elements: no multiple of a block


class Case:
    """A launcher, the same operator in float64, a random state and states outside."""

    def __init__(self, order, dtype, flux="roe", periodic=False, **plan):
        mesh, element = mesh_of(periodic, CELLS, RANDOM), NodalElement(2, order)
        boundary = None if periodic else BOUNDARY
        operator, self.double = (
            reference.assemble(mesh, element, flux, boundary, d) for d in (dtype, "float64")
        )
        self.u = strong_jumps(operator, RANDOM).astype(dtype)
        self.launcher = PaperLauncher(operator, GPU, PaperPlan(**plan))
        self.outside = reference.boundary_data(self.double, 0.3)
        flat = self.outside.ravel() if self.outside.size else np.zeros(1)
        self.data = GPU.array(flat.astype(dtype))

    def assert_close(self, found, expected, units=300):
        assert found.dtype == self.u.dtype
        tolerance = units * np.finfo(found.dtype).eps * np.abs(expected).max()
        assert np.abs(found - expected).max() <= tolerance

    @property
    def exact(self):
        return self.u.astype(np.float64)

    def rhs(self, launcher):
        """From poisoned work arrays."""
        for array in (launcher.residual, launcher.left, launcher.right):
            array.fill(np.nan)
        u, out = launcher.upload(self.u), GPU.empty(launcher.size, self.u.dtype)
        launcher.rhs(u, self.data, out)
        assert np.array_equal(launcher.download(u), self.u)
        return launcher.download(out)


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("order", range(7))
def test_kernels_against_the_reference(order, periodic, dtype):
    case = Case(order, dtype, periodic=periodic)
    launcher, op = case.launcher, case.double
    launcher.volume(launcher.upload(case.u))
    found = launcher.download(launcher.residual)
    case.assert_close(found, reference.volume_residual(op, case.exact))
    case.assert_close(case.rhs(launcher), reference.rhs(op, case.exact, 0.3))


@pytest.mark.parametrize("flux", FLUXES)
@pytest.mark.parametrize("periodic", [True, False])
def test_every_flux_and_plan(flux, periodic, dtype):
    case = Case(2, dtype, flux, periodic)
    expected = reference.rhs(case.double, case.exact, 0.3)
    for plan in PaperPlan().candidates(FusedShape(2, dtype)):
        if plan.threads in (32, 256):
            case.assert_close(case.rhs(case.launcher.planned(plan)), expected)


@pytest.mark.parametrize("registers", [32, 64, 128])
def test_fewer_registers_compute_the_same(registers, dtype):
    case = Case(4, dtype, max_registers=registers)
    case.assert_close(case.rhs(case.launcher), reference.rhs(case.double, case.exact, 0.3))


@pytest.mark.parametrize("changes", [{}, {"concurrent": False}, {"layout": "field"}])
@pytest.mark.parametrize("order", [0, 3])
def test_a_recorded_step_is_replayed(order, changes, dtype):
    """The two streams become branches of the graph, and join before what follows."""
    case = Case(order, dtype)
    case.u = a_breeze(case.double, RANDOM).astype(dtype)
    launcher = case.launcher.planned(replace(case.launcher.plan, **changes))
    dt = 0.02 / float(case.double.face_scale.max())
    u = launcher.upload(case.u)
    work, data = launcher.work(u), 3 * (case.data,)
    replay = GPU.capture(lambda: launcher.step(u, work, data, dt))
    assert np.array_equal(launcher.download(u), case.u), "recording does not launch"
    expected = case.exact
    for step in range(3):
        replay()
        rk4.advance(lambda v, t: reference.rhs(case.double, v, 0.3), expected, step * dt, dt)
    case.assert_close(launcher.download(u), expected)
    assert GPU.to_numpy(launcher.bad)[0] == HEALTHY


def test_impossible_nodes_are_found(dtype):
    case = Case(2, dtype)
    launcher = case.launcher
    for places, expected in (((), HEALTHY), ((200, 77), 77), ((305,), 305)):
        u = case.u.copy()
        for k, value in zip(places, (np.nan, -1.0), strict=False):
            u[3, k, 4] = value
        launcher.bad[:] = HEALTHY
        launcher.check(launcher.upload(u))
        assert GPU.to_numpy(launcher.bad)[0] == expected
