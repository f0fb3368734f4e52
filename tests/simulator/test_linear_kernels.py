"""The linear family's kernels, thread by thread, against the reference; wrong ones must fail."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from broken import linear as broken
from broken import linear_factored

from dgbook import linear
from dgbook.check import RaceError, UndefinedReadError
from dgbook.gpu import device
from dgbook.linear import reference
from dgbook.mesh import box
from dgbook.time import lsrk45

SIMULATOR = device("simulator")


@dataclass
class Case:
    """A solver on the simulator, what it was made from, and random states."""

    arguments: dict[str, Any]
    solver: linear.Solver
    u: np.ndarray
    res: np.ndarray

    @property
    def launcher(self):
        return self.solver.launcher

    def like(self, **changes):
        """The same solver but for the changes."""
        return linear.Solver(**self.arguments | changes)

    def assert_close(self, ours: Any, expected: np.ndarray, untouched_ghosts: float) -> None:
        found = self.launcher.download(ours)
        assert found.dtype == self.solver.dtype
        tolerance = 40 * np.finfo(found.dtype).eps * np.abs(expected).max()
        assert np.abs(found - expected).max() < tolerance
        ghosts = SIMULATOR.to_numpy(ours)[:, self.launcher.nodes :]
        assert np.array_equal(ghosts, np.full_like(ghosts, untouched_ghosts), equal_nan=True)

    def poisoned(self):
        """An output that nobody has written: NaN wherever a kernel forgets to write."""
        return SIMULATOR.empty(self.launcher.zeros().shape, self.solver.dtype)


def make_case(cells, order, system, boundary=None, **options):
    mesh = box(cells, periodic=boundary is None)
    arguments = dict(mesh=mesh, order=order, system=system, boundary=boundary, device=SIMULATOR)
    solver = linear.Solver(**arguments | options)
    shape = (2, system.n, mesh.K, solver.element.Np)
    u, res = np.random.default_rng(3).standard_normal(shape).astype(solver.dtype)
    return Case(arguments | options, solver, u, res)


def inflow(*x_and_t):
    return np.cos(sum(x_and_t))


V = (1.0, -0.7, 0.4)
CASES = {
    "1D": lambda **o: make_case(5, 3, linear.advection(-1.5), **o),
    "1D inflow": lambda **o: make_case(
        3, 2, linear.advection(1.0), {"x-": inflow, "x+": "outflow"}, **o
    ),
    "1D wave walls": lambda **o: make_case(
        4, 4, linear.wave(1, 2.0), {"x-": "wall", "x+": "soft"}, **o
    ),
    "2D": lambda **o: make_case((2, 2), 2, linear.advection(V[:2]), **o),
    "2D wave open": lambda **o: make_case((2, 1), 3, linear.wave(2), "absorbing", **o),
    "3D": lambda **o: make_case((1, 1, 1), 2, linear.advection(V), **o),
    "3D inflow": lambda **o: make_case((1, 1, 1), 1, linear.advection(V), inflow, **o),
    "3D wave walls": lambda **o: make_case((1, 1, 1), 1, linear.wave(3), "wall", **o),
    "3D wave central": lambda **o: make_case((1, 1, 1), 2, linear.wave(3), flux="central", **o),
}


@pytest.fixture(params=CASES)
def case(request, dtype):
    return CASES[request.param](dtype=dtype)


@pytest.fixture(params=["float64", "float32"])
def dtype(request):
    return request.param


def state(case, t=0.3):
    """u on the simulator, with what stands behind the boundary at time t."""
    array = case.launcher.upload(case.u)
    given = case.solver.incoming()
    given.evaluate(t)
    case.launcher.set_ghosts(array, given.data)
    return array


def expected_rhs(case, t=0.3):
    """In float64: the kernels and the reference both round."""
    double = case.like(dtype="float64").operator
    u, data = case.u.astype(np.float64), reference.boundary_data(double, t)
    return reference.volume(double, u), reference.surface(double, u, data)


def test_volume(case):
    rhs = case.poisoned()
    case.launcher.volume(state(case), rhs)
    case.assert_close(rhs, expected_rhs(case)[0], np.nan)


def test_surface_adds(case):
    rhs = case.launcher.upload(case.res)
    case.launcher.surface(state(case), rhs)
    case.assert_close(rhs, case.res + expected_rhs(case)[1], 0.0)


@pytest.mark.parametrize("stage", [0, 3])
def test_fused_is_a_whole_stage(case, stage):
    dt = 0.2 * case.solver.cfl_dt()
    u, res, new = state(case), case.launcher.upload(case.res), case.poisoned()
    before = SIMULATOR.to_numpy(u)
    case.launcher.fused(u, res, new, lsrk45.A[stage], lsrk45.B[stage], dt)
    expected = lsrk45.A[stage] * case.res + dt * sum(expected_rhs(case))
    case.assert_close(res, expected, 0.0)
    case.assert_close(new, case.u + lsrk45.B[stage] * expected, np.nan)
    assert np.array_equal(SIMULATOR.to_numpy(u), before)


@pytest.mark.parametrize("name", CASES)
def test_solver_takes_the_steps_of_the_reference(name):
    """Both paths, two steps and more: from either array, boundary data at every stage's time."""
    case = CASES[name]()
    s = case.solver
    cpu, split = case.like(device="reference"), case.like(path="split")
    steps = 2 if s.mesh.dim < 3 else 1
    dt = cpu.cfl_dt()
    expected = cpu.run(case.u, 0.5 + steps * dt, dt=dt, t=0.5)
    assert np.abs(s.run(case.u, 0.5 + steps * dt, dt=dt, t=0.5) - expected).max() < 1e-12
    assert np.abs(split.run(case.u, 0.5 + steps * dt, dt=dt, t=0.5) - expected).max() < 1e-12
    assert np.abs(s.rhs(case.u, 0.5) - cpu.rhs(case.u, 0.5)).max() < 1e-11


@pytest.mark.parametrize("path", ["fused", "split"])
def test_a_step_of_fourteen_stages(path):
    case = CASES["1D wave walls"]()
    ours, cpu = (case.like(device=d, path=path, method="ndb14") for d in ("simulator", "reference"))
    dt = 1.8 * cpu.cfl_dt()
    expected = cpu.run(case.u, 2 * dt, dt)
    assert np.abs(ours.run(case.u, 2 * dt, dt) - expected).max() < 1e-12


@pytest.mark.parametrize("name", ["1D inflow", "2D wave open", "3D inflow"])
def test_steps_of_a_factored_method(name):
    """What comes in is evaluated once per step, and combined for each stage."""
    case = CASES[name]()
    ours, cpu = (case.like(device=d, method="ndb14_factored") for d in ("simulator", "reference"))
    dt = 1.8 * cpu.cfl_dt()
    expected = cpu.run(case.u, 0.5 + dt, dt, t=0.5)
    assert np.abs(ours.run(case.u, 0.5 + dt, dt, t=0.5) - expected).max() < 1e-12
    assert np.abs(ours.rhs(case.u, 0.5) - cpu.rhs(case.u, 0.5)).max() < 1e-11


@pytest.mark.parametrize("mistake", linear_factored.FACTORED, ids=lambda m: m.name)
def test_the_stages_of_a_factor(mistake, dtype):
    """And wrong ones are noticed."""
    case = CASES["2D wave open"](dtype=dtype)
    right, errors = case.launcher.with_factors(), []
    wrong = right.planned(right.plan)
    shape = case.solver.shape
    wrong.fused_kernel = mistake.make(
        shape.dim, shape.n, shape.Np, shape.Nfp, shape.dtype, right.plan, True
    )
    slope = sum(expected_rhs(case))
    for launcher in (right, wrong):
        u, fresh, kept = state(case), case.poisoned(), launcher.upload(case.res)
        launcher.fused(u, fresh, fresh, 0.0, 1.0, 0.1)
        launcher.fused(u, kept, kept, 1.0, 0.0, -0.3)
        found = map(launcher.download, (fresh, kept))
        wanted = case.u + 0.1 * slope, case.res - 0.3 * slope
        both = zip(found, wanted, strict=True)
        errors.append(max(np.abs(f - w).max() / np.abs(w).max() for f, w in both))
    assert errors[0] < 40 * np.finfo(dtype).eps
    assert not errors[1] < 1e-3


@pytest.mark.parametrize("plan", [(1, 1), (1, 4), (3, 1), (4, 2), (5, 3), (16, 1), (16, 4)])
@pytest.mark.parametrize("name", ["1D wave walls", "2D", "3D"])
def test_every_plan_computes_the_same(name, plan):
    """Also where a block has more rows than there are elements, or K is no multiple of them."""
    case = CASES[name](plan=linear.Plan(*plan))
    dt = 0.2 * case.solver.cfl_dt()
    u, res, new = state(case), case.launcher.upload(case.res), case.poisoned()
    case.launcher.fused(u, res, new, lsrk45.A[2], lsrk45.B[2], dt)
    expected = lsrk45.A[2] * case.res + dt * sum(expected_rhs(case))
    case.assert_close(res, expected, 0.0)
    case.assert_close(new, case.u + lsrk45.B[2] * expected, np.nan)
    rhs = case.poisoned()
    case.launcher.volume(u, rhs)
    case.launcher.surface(u, rhs)
    found = case.launcher.download(rhs)
    assert np.abs(found - sum(expected_rhs(case))).max() < 1e-11


# ---------------------------------------------------------------------------------- wrong kernels


def volume_with(case, kernel):
    """rhs of the volume term by another kernel."""
    launcher, rhs = case.launcher, case.poisoned()
    rows, K = case.solver.plan.elements_per_block, case.solver.mesh.K
    a = launcher.arrays
    kernel[-(-K // rows), (launcher.shape.Np, rows)](state(case), a["derivative"], a["speeds"], rhs)
    return launcher.download(rhs)


def rhs_with_surface(case, kernel):
    """The whole rhs with another surface kernel."""
    launcher, rhs = case.launcher, case.poisoned()
    rows, K = case.solver.plan.elements_per_block, case.solver.mesh.K
    a, u = launcher.arrays, state(case)
    launcher.volume(u, rhs)
    kernel[-(-K // rows), (launcher.shape.Np, rows)](
        u, a["interior"], a["exterior"], a["face_matrix"], a["lift"], rhs
    )
    return launcher.download(rhs)


def sizes(case):
    shape, plan = case.solver.shape, case.solver.plan
    return shape.dim, shape.n, shape.Np, shape.dtype, plan


def test_a_missing_barrier_is_refused():
    case = CASES["2D"]()
    with pytest.raises((UndefinedReadError, RaceError)):
        volume_with(case, broken.make_volume_without_barrier(*sizes(case)))


def test_a_transposed_matrix_is_noticed():
    case = CASES["2D"]()
    found = volume_with(case, broken.make_volume_transposed(*sizes(case)))
    expected = expected_rhs(case)[0]
    assert np.abs(found - expected).max() > 0.1 * np.abs(expected).max()
    case.u[:] = 1  # a constant has no derivative: the simplest test sees it too
    found = volume_with(case, broken.make_volume_transposed(*sizes(case)))
    assert np.abs(found).max() > 1


def test_a_wrong_sign_of_the_flux_is_noticed():
    """Against the reference, and because energy grows: an eigenvalue has a positive real part."""
    case = CASES["1D"](plan=linear.Plan(5))
    shape = case.solver.shape
    wrong = broken.make_surface_with_wrong_sign(
        shape.dim, shape.n, shape.Np, shape.Nfp, shape.dtype, case.solver.plan
    )
    expected = sum(expected_rhs(case))
    assert np.abs(rhs_with_surface(case, wrong) - expected).max() > 0.1 * np.abs(expected).max()
    growth = {}
    for name, kernel in (("wrong", wrong), ("right", case.launcher.surface_kernel)):
        columns = []
        for unit in np.eye(case.u.size):
            case.u = unit.reshape(case.u.shape)
            columns.append(rhs_with_surface(case, kernel).ravel())
        growth[name] = np.linalg.eigvals(np.stack(columns, axis=1)).real.max()
    assert growth["wrong"] > 1
    assert abs(growth["right"]) < 1e-10


def test_a_stale_neighbor_is_refused():
    case = CASES["1D"](plan=linear.Plan(2))
    u, res = state(case), case.launcher.upload(case.res)
    with pytest.raises(RaceError):
        broken.fused_in_place(case.launcher, u, res, 0.5, 0.5, 1e-3)
