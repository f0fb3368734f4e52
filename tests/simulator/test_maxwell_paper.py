"""The paper's kernels for Maxwell's equations, thread by thread, against the reference."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from broken import maxwell_paper as broken
from maxwell_cases import BOUNDARY, scrambled

from dgbook.check import SimulatorError
from dgbook.element import NodalElement
from dgbook.gpu import device
from dgbook.maxwell import reference
from dgbook.maxwell.launch.paper import PaperLauncher
from dgbook.maxwell.plan import DifferentiatePlan, GatherPlan, LiftPlan, PaperPlan, shape_of
from dgbook.mesh import box, geometric_factors
from dgbook.time import lsrk45

SIMULATOR = device("simulator")


@dataclass
class Case:
    """A launcher, the same operator in float64, and random states."""

    launcher: PaperLauncher
    double: reference.Operator
    u: np.ndarray
    res: np.ndarray
    t: float = 0.3

    @property
    def data(self):
        """g on the boundary, as kernels get it; one zero where there is no boundary."""
        data = reference.boundary_data(self.double, self.t).ravel()
        return SIMULATOR.array((data if data.size else np.zeros(1)).astype(self.u.dtype))

    def assert_close(self, found: np.ndarray, expected: np.ndarray) -> None:
        assert found.dtype == self.u.dtype
        assert found.shape == expected.shape
        tolerance = 40 * np.finfo(found.dtype).eps * np.abs(expected).max()
        assert np.abs(found - expected).max() < tolerance

    def unpacked(self, name: str, n: int) -> np.ndarray:
        """A work array as (fields, K, n)."""
        return self.launcher.layout.unpack(self.launcher.work[name], n)

    def poison(self) -> None:
        """NaN wherever a kernel forgets to write."""
        for array in self.launcher.work.values():
            array[:] = np.nan


def make_case(order, dtype="float64", plan=None, cells=(1, 1, 1), boundary=None, flux="upwind"):
    """A box, periodic or with a boundary, of elements with different materials."""
    random = np.random.default_rng(order)
    mesh = box(cells, upper=(1.0, 0.8, 1.3), periodic=boundary is None)
    if boundary is not None:
        mesh = scrambled(mesh, random, 0.15)
    epsilon, mu = random.uniform(0.5, 2, (2, mesh.K))
    element = NodalElement(3, order)
    operators = [
        reference.assemble(mesh, element, flux, epsilon, mu, boundary or "pec", d)
        for d in (dtype, "float64")
    ]
    u, res = random.standard_normal((2, 6, mesh.K, element.Np)).astype(dtype)
    plan = plan or PaperPlan.default(shape_of(order, dtype))
    return Case(PaperLauncher(operators[0], SIMULATOR, plan), operators[1], u, res)


CASES = {
    "periodic 1": dict(order=1),
    "periodic 2 fp32": dict(order=2, dtype="float32"),
    "periodic 2 central": dict(order=2, flux="central"),
    "boundary 1 fp32": dict(order=1, dtype="float32", boundary=BOUNDARY, cells=(2, 1, 1)),
    "boundary 2": dict(order=2, boundary=BOUNDARY, cells=(2, 1, 1)),
    "boundary 1 central fp32": dict(order=1, dtype="float32", boundary=BOUNDARY, flux="central"),
    "boundary 3": dict(order=3, boundary=BOUNDARY),
}


@pytest.fixture(params=CASES)
def case(request):
    return make_case(**CASES[request.param])


# --------------------------------------------------------------------------- expected, part by part


def expected_flux(case):
    """sJ n.(F - F*), (6, K, 4 Nfp)."""
    op = case.double
    jump = reference.jumps(op, case.u.astype(float), reference.boundary_data(op, case.t))
    scale = geometric_factors(op.mesh).face_jacobian[..., None]
    return (scale * reference.fluxes(op, jump)).reshape(6, op.mesh.K, -1)


def expected_lift(case, flux):
    op = case.double
    return flux.astype(float) @ op.lift.T / op.jacobian[:, None]


def expected_gradient(case, u):
    """d/dx, d/dy, d/dz of each field, (18, K, Np)."""
    op = case.double
    du_dr = np.einsum("rij,akj->arki", op.derivative, u.astype(float))
    return np.einsum("krd,arki->adki", op.rst_xyz, du_dr).reshape(18, *u.shape[1:])


def expected_rhs(case):
    return reference.rhs(case.double, case.u.astype(float), case.t)


def test_gather(case):
    case.poison()
    case.launcher.gather(case.launcher.upload(case.u), case.data)
    case.assert_close(case.unpacked("flux", case.launcher.shape.Nf), expected_flux(case))


def test_rhs(case):
    launcher = case.launcher
    case.poison()
    u, out = launcher.upload(case.u), SIMULATOR.empty(launcher.zeros().shape, case.u.dtype)
    before = u.copy()
    launcher.rhs(u, case.data, out)
    case.assert_close(launcher.download(out), expected_rhs(case))
    assert np.array_equal(u, before)


@pytest.mark.parametrize(("name", "stage"), [("periodic 2 fp32", 0), ("boundary 2", 3)])
def test_a_stage_in_place(name, stage):
    case = make_case(**CASES[name])
    launcher, dt = case.launcher, 1e-2
    u, res = launcher.upload(case.u), launcher.upload(case.res)
    launcher.stage(u, res, u, case.data, lsrk45.A[stage], lsrk45.B[stage], dt)
    expected = lsrk45.A[stage] * case.res + dt * expected_rhs(case)
    case.assert_close(launcher.download(res), expected)
    case.assert_close(launcher.download(u), case.u + lsrk45.B[stage] * expected)
    assert launcher.in_place and np.isfinite(u).all(), "padding stays finite"


# ---------------------------------------------------------------------------------- every dimension


def plan_of(order, dtype="float64", **parts):
    return replace(PaperPlan.default(shape_of(order, dtype)), **parts)


def lift_and_gradient(case):
    """Found and expected of both element-local kernels, from poisoned outputs."""
    launcher = case.launcher
    random = np.random.default_rng(5)
    K, Nf = len(case.double.jacobian), launcher.shape.Nf
    flux = random.standard_normal((6, K, Nf)).astype(case.u.dtype)
    case.poison()
    launcher.work["flux"][:] = 0
    launcher.layout.pack(flux, launcher.work["flux"])
    launcher.lift()
    launcher.differentiate(launcher.upload(case.u))
    return [
        (case.unpacked("lifted", case.u.shape[2]), expected_lift(case, flux)),
        (case.unpacked("derivative", case.u.shape[2]), expected_gradient(case, case.u)),
    ]


LOCAL = [
    ("field", dict(w_p=1)),
    ("field", dict(w_p=2, order="plain")),
    ("field", dict(w_p=3, w_i=2)),
    ("field", dict(w_p=2, w_i=4)),
    ("matrix", dict(w_p=1)),
    ("matrix", dict(w_p=3, w_i=2)),
    ("matrix", dict(w_p=2, w_i=1, w_s=2)),
    ("matrix", dict(w_p=1, w_i=3, w_s=3)),
    ("matrix", dict(w_p=2, N_R=32)),
    ("matrix", dict(w_p=1, w_i=2, N_R=80)),
]


@pytest.mark.parametrize(("strategy", "sizes"), LOCAL)
def test_every_local_plan(strategy, sizes):
    """Order 2: 8 elements in 80 places, 5 half-warps; of 12 elements one microblock has 4."""
    lift, differentiate = LiftPlan(strategy, **sizes), DifferentiatePlan(strategy, **sizes)
    dtype = "float32" if differentiate.w_p == 2 else "float64"
    plan = plan_of(2, dtype, lift=lift, differentiate=differentiate)
    case = make_case(2, dtype, plan, (2, 1, 1), BOUNDARY)
    for found, expected in lift_and_gradient(case):
        case.assert_close(found, expected)


@pytest.mark.parametrize("strategy", ["field", "matrix"])
@pytest.mark.parametrize(("order", "K_M"), [(1, None), (1, 1), (3, None), (3, 1), (4, 1)])
def test_local_kernels_of_several_orders(order, strategy, K_M):
    """With microblocks, and with each element padded by itself."""
    plan = plan_of(
        order, lift=LiftPlan(strategy, 1), differentiate=DifferentiatePlan(strategy, 1, 2)
    )
    case = make_case(order, plan=replace(plan, K_M=K_M or plan.K_M), boundary=BOUNDARY)
    for found, expected in lift_and_gradient(case):
        case.assert_close(found, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("K_M", "gather"),
    [
        (1, GatherPlan(1, 1)),  # no pair lies in a block
        (1, GatherPlan(4, 5)),
        (4, GatherPlan(3, 1)),
        (4, GatherPlan(7, 2)),  # empty slots
        (8, GatherPlan(50, 2)),  # more rows than pairs, all pairs in one block
        (1, GatherPlan(2, 5, "metis")),  # blocks that are not full
    ],
)
def test_every_gather_plan(K_M, gather, dtype):
    if gather.partition == "metis":
        pytest.importorskip("pymetis")
    plan = plan_of(1, dtype, K_M=K_M, gather=gather)
    case = make_case(1, dtype, plan, (2, 1, 1), BOUNDARY)
    case.poison()
    case.launcher.gather(case.launcher.upload(case.u), case.data)
    case.assert_close(case.unpacked("flux", 12), expected_flux(case))


def test_planned_keeps_the_arrays_where_the_layout_is_the_same():
    case = make_case(1)
    plan = case.launcher.plan
    other = case.launcher.planned(replace(plan, lift=LiftPlan("matrix", 2)))
    assert other.arrays is case.launcher.arrays and other.layout is case.launcher.layout
    assert other.plan.lift.strategy == "matrix" and case.launcher.plan is plan
    elsewhere = case.launcher.planned(replace(plan, gather=GatherPlan(4, 1)))
    assert elsewhere.layout.M_B == 1
    for launcher in (other, elsewhere):
        u, out = launcher.upload(case.u), launcher.zeros()
        launcher.rhs(u, case.data, out)
        case.assert_close(launcher.download(out), expected_rhs(case))


def test_plans_that_cannot_run_are_refused():
    case = make_case(1)
    bad = replace(case.launcher.plan, lift=LiftPlan("field", 65))
    with pytest.raises(ValueError, match="lift: 1040 threads"):
        case.launcher.planned(bad)
    with pytest.raises(ValueError, match="lift: 1040 threads"):
        PaperLauncher(case.launcher.operator, SIMULATOR, bad)


# ------------------------------------------------------------------------------------ wrong kernels


def wrong(mistake) -> Any:
    """What the tests above see of a wrong kernel: (found, expected), or a SimulatorError.

    Six elements in microblocks of 4 with different geometry and material, boundaries of all kinds.
    """
    parts = dict(
        gather=GatherPlan(5, 1),
        lift=LiftPlan(mistake.strategy, 3),
        differentiate=DifferentiatePlan(mistake.strategy, 3),
    )
    case = make_case(2, plan=PaperPlan(4, **parts), boundary=BOUNDARY)
    launcher = case.launcher
    arguments = {
        "gather": (launcher.shape, launcher.places, launcher.plan.gather),
        "lift": (launcher.shape, launcher.plan.lift),
        "differentiate": (launcher.shape, launcher.plan.differentiate),
        "assemble": (launcher.shape,),
    }
    launcher.kernels[mistake.kernel] = mistake.make(*arguments[mistake.kernel])
    out = launcher.zeros()
    launcher.rhs(launcher.upload(case.u), case.data, out)
    return launcher.download(out), expected_rhs(case)


@pytest.mark.parametrize("mistake", broken.MISTAKES, ids=lambda m: f"{m.kernel}: {m.name}")
def test_wrong_kernels_are_rejected(mistake):
    try:
        found, expected = wrong(mistake)
    except SimulatorError:
        return
    assert not np.abs(found - expected).max() < 1e-2 * np.abs(expected).max()
    assert "barrier" not in mistake.name, "races are refused, whatever they compute"
