"""The paper's kernels for Maxwell's equations on a real device: all orders, both precisions."""

from dataclasses import replace

import numpy as np
import pytest
from maxwell_cases import BOUNDARY, scrambled

from dgbook.element import NodalElement
from dgbook.gpu import device
from dgbook.maxwell import reference
from dgbook.maxwell.launch.paper import PaperLauncher
from dgbook.maxwell.plan import (
    PARTS,
    GatherPlan,
    PaperPlan,
    shape_of,
)
from dgbook.mesh import box, geometric_factors
from dgbook.time import lsrk45

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

SEED = np.random.SeedSequence().entropy  # fresh inputs in every run
RANDOM = np.random.default_rng(SEED)
CELLS = (3, 3, 2)  # 108 elements: no multiple of what a block holds


class Case:
    """A launcher, the same operator in float64, a random state and boundary data."""

    def __init__(self, order, dtype, plan=None, flux="upwind", periodic=False):
        mesh = box(CELLS, periodic=True) if periodic else scrambled(box(CELLS), RANDOM, 0.04)
        epsilon, mu = RANDOM.uniform(0.5, 2, (2, mesh.K))
        element = NodalElement(3, order)
        boundary = "pec" if periodic else BOUNDARY
        self.operator, self.double = (
            reference.assemble(mesh, element, flux, epsilon, mu, boundary, d)
            for d in (dtype, "float64")
        )
        plan = plan or PaperPlan.default(shape_of(order, dtype))
        self.launcher = PaperLauncher(self.operator, GPU, plan)
        self.u, self.res = RANDOM.standard_normal((2, 6, mesh.K, element.Np)).astype(dtype)
        self.g = reference.boundary_data(self.double, 0.3)
        self.data = GPU.array((self.g.ravel() if self.g.size else np.zeros(1)).astype(dtype))

    def assert_close(self, found, expected):
        assert found.dtype == self.u.dtype
        tolerance = 100 * np.finfo(found.dtype).eps * np.abs(expected).max()
        assert np.abs(found - expected).max() < tolerance

    def work(self, launcher, name, n):
        return launcher.layout.unpack(GPU.to_numpy(launcher.work[name]), n)

    def poison(self, launcher):
        for array in launcher.work.values():
            array.fill(np.nan)

    @property
    def flux(self):
        jump = reference.jumps(self.double, self.u.astype(float), self.g)
        scale = geometric_factors(self.double.mesh).face_jacobian[..., None]
        return (scale * reference.fluxes(self.double, jump)).reshape(6, len(scale), -1)

    @property
    def lifted(self):
        return self.flux @ self.double.lift.T / self.double.jacobian[:, None]

    @property
    def gradient(self):
        du_dr = np.einsum("rij,akj->arki", self.double.derivative, self.u.astype(float))
        gradient = np.einsum("krd,arki->adki", self.double.rst_xyz, du_dr)
        return gradient.reshape(18, *self.u.shape[1:])

    @property
    def rhs(self):
        return reference.rhs(self.double, self.u.astype(float), 0.3)

    def check_parts(self, launcher):
        """Gather, lift and differentiate, from poisoned work arrays."""
        self.poison(launcher)
        u = launcher.upload(self.u)
        launcher.gather(u, self.data)
        self.assert_close(self.work(launcher, "flux", launcher.shape.Nf), self.flux)
        launcher.lift()
        self.assert_close(self.work(launcher, "lifted", launcher.shape.Np), self.lifted)
        launcher.differentiate(u)
        self.assert_close(self.work(launcher, "derivative", launcher.shape.Np), self.gradient)
        assert np.array_equal(launcher.download(u), self.u)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("flux", ["upwind", "central"])
@pytest.mark.parametrize("order", range(1, 10))
def test_kernels_against_the_reference(order, flux, periodic, dtype):
    case = Case(order, dtype, flux=flux, periodic=periodic)
    launcher = case.launcher
    case.check_parts(launcher)
    u, out = launcher.upload(case.u), GPU.empty(launcher.zeros().shape, dtype)
    launcher.rhs(u, case.data, out)
    case.assert_close(launcher.download(out), case.rhs)

    res, stage, dt = launcher.upload(case.res), 3, 1e-3
    launcher.stage(u, res, u, case.data, lsrk45.A[stage], lsrk45.B[stage], dt)
    expected = lsrk45.A[stage] * case.res + dt * case.rhs
    case.assert_close(launcher.download(res), expected)
    case.assert_close(launcher.download(u), case.u + lsrk45.B[stage] * expected)


@pytest.mark.parametrize("order", [1, 4, 7])
def test_candidate_plans_compute_the_same(order, dtype):
    """Some at random of each kernel's: all of them take minutes to compile."""
    case = Case(order, dtype)
    plan, shape = case.launcher.plan, case.launcher.shape
    for part, kind in PARTS.items():
        plans = kind.default(shape).candidates(shape)
        for i in RANDOM.permutation(len(plans))[:8]:
            case.check_parts(case.launcher.planned(replace(plan, **{part: plans[i]})))


@pytest.mark.parametrize(
    "changes",
    [dict(K_M=1), dict(gather=GatherPlan(4, 2, "metis")), dict(K_M=3, gather=GatherPlan(9, 5))],
)
def test_layouts(changes, dtype):
    if changes.get("gather", GatherPlan(1, 1)).partition == "metis":
        pytest.importorskip("pymetis")
    case = Case(3, dtype, replace(PaperPlan.default(shape_of(3, dtype)), **changes))
    case.check_parts(case.launcher)


def test_a_recorded_stage_is_replayed(dtype):
    case = Case(3, dtype)
    launcher, dt = case.launcher, 1e-3
    u, res = launcher.upload(case.u), launcher.upload(case.res)
    replay = GPU.capture(lambda: launcher.stage(u, res, u, case.data, 0.5, 0.25, dt))
    assert np.array_equal(launcher.download(u), case.u), "recording does not launch"
    replay()
    GPU.synchronize()
    expected = 0.5 * case.res + dt * case.rhs
    case.assert_close(launcher.download(res), expected)
    case.assert_close(launcher.download(u), case.u + 0.25 * expected)
