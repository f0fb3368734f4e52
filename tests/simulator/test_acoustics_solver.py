"""The acoustic solver with its kernels, thread by thread: time steps, boundary data, memory."""

import numpy as np
import pytest

from dgbook.acoustics import reference
from dgbook.acoustics.launch.bernstein_fused import BernsteinFusedLauncher
from dgbook.acoustics.launch.fused import FusedLauncher
from dgbook.acoustics.plan import BernsteinFusedPlan, BernsteinPlan, ElementPlan
from dgbook.acoustics.solver import LAUNCHERS, PATHS, Solver
from dgbook.mesh import box
from dgbook.nodal.fused import FusedPlan

CUBE = box((1, 1, 1))
PERIODIC = box((1, 1, 1), periodic=True)
RANDOM = np.random.default_rng(21)
KAPPA, RHO = RANDOM.uniform(0.5, 2, (2, CUBE.K))
CASES = [(basis, path) for basis in reference.BASES for path in PATHS]


def swell(x, y, z, t):
    """Fields that come in and that only Python knows."""
    return [np.cos(x + y - 9 * t), 0.5, z * t, np.sin(z)]


WALLS = {
    "x-": "soft",
    "x+": "absorbing",
    "y-": "rigid",
    "y+": "soft",
    "z-": "rigid",
    "z+": "soft",
}


def solver(**options):
    options = {
        "order": 1,
        "boundary": WALLS,
        "kappa": KAPPA,
        "rho": RHO,
        "flux": "penalty",
        "device": "simulator",
    } | options
    return Solver(options.pop("mesh", CUBE), **options)


def noise(s):
    return RANDOM.standard_normal((4, s.mesh.K, s.element.Np)).astype(s.dtype)


def close(found, expected, dtype, units=100):
    """To so many units of rounding of the largest value."""
    assert found.dtype == dtype and found.shape == expected.shape
    error = np.abs(found.astype(np.float64) - expected).max()
    return error < units * np.finfo(dtype).eps * np.abs(expected).max()


@pytest.fixture(params=CASES, ids=lambda case: "-".join(case))
def kernels(request):
    """A basis and a path."""
    return dict(zip(("basis", "path"), request.param, strict=True))


def test_a_step_with_kernels(kernels):
    """What comes in changes within the step. At order 2 the bases differ, at order 1 not."""
    options = {"boundary": WALLS | {"z+": swell}, "order": 2}
    ours = solver(dtype="float32", **kernels, **options)
    exact = solver(device="reference", basis=kernels["basis"], **options)
    u, dt = noise(ours), ours.cfl_dt()
    expected = exact.run(u.astype(np.float64), 0.2 + dt, dt, t=0.2)
    assert close(ours.run(u, 0.2 + dt, dt, t=0.2), expected, "float32")
    assert np.abs(expected - u).max() > 0.1
    assert close(ours.rhs(u, 0.4), exact.rhs(u.astype(np.float64), 0.4), "float32")


def test_three_steps_between_walls(kernels):
    """An odd number: states that are written in turn end where they did not start."""
    ours, exact = solver(**kernels), solver(device="reference")
    u, dt = noise(ours), ours.cfl_dt()
    expected = exact.run(u, 3 * dt, dt)
    assert close(ours.run(u, 3 * dt, dt), expected, "float64")
    assert np.abs(expected - u).max() > 0.1


def test_a_step_of_fourteen_stages():
    ours, exact = (solver(device=where, method="ndb14") for where in ("simulator", "reference"))
    u, dt = noise(ours), 1.8 * ours.cfl_dt()
    assert close(ours.run(u, dt, dt), exact.run(u, dt, dt), "float64")


@pytest.mark.parametrize("basis", ["nodal", "bernstein"])
def test_a_step_of_a_factored_method(basis):
    options = {"boundary": WALLS | {"z+": swell}, "method": "ndb14_factored", "basis": basis}
    ours, exact = (solver(device=where, **options) for where in ("simulator", "reference"))
    u, dt = noise(ours), 1.8 * ours.cfl_dt()
    assert close(ours.run(u, dt, dt), exact.run(u, dt, dt), "float64")


def test_a_step_on_a_periodic_mesh(kernels):
    problem = {"mesh": PERIODIC, "boundary": {}, **kernels}
    ours, exact = (solver(device=where, **problem) for where in ("simulator", "reference"))
    u, dt = noise(ours), ours.cfl_dt()
    assert close(ours.run(u, dt), exact.run(u, dt), "float64")


def test_a_resumed_march_is_the_same_to_the_last_bit(kernels):
    """On the way to nodal values and back a basis rounds; what a launcher holds is exact."""
    ours = solver(**kernels)
    u, dt = noise(ours), ours.cfl_dt()
    whole = ours.march(u, 2 * dt, dt)
    whole.step()
    rest = ours.march(whole.state(), 2 * dt, dt, done=1)
    assert rest.restore(whole.state(), whole.raw())
    for march in (whole, rest):
        march.step()
    assert whole.count == 2
    np.testing.assert_array_equal(rest.state(), whole.state())


def test_a_plan_is_taken():
    plan = ElementPlan(8, 8, 2, 2, 2, 4)
    ours = solver(path="paper", plan=plan)
    assert ours.launcher.plan is plan and ours.launcher is ours.launcher
    plan = BernsteinPlan(2, 1, 1, "optimal", "computed")
    assert solver(path="paper", plan=plan, basis="bernstein").launcher.plan is plan


def test_a_plan_says_which_kernel_runs_in_the_bernstein_basis():
    for plan, launcher in (
        (FusedPlan("numba", 2, 2, 2), FusedLauncher),
        (BernsteinFusedPlan("numba", 32, 2, 2), BernsteinFusedLauncher),
    ):
        ours = solver(basis="bernstein", plan=plan)
        assert type(ours.launcher) is launcher and ours.launcher.plan is plan
    with pytest.raises(TypeError, match=r"allowed .*: a BernsteinFusedPlan or FusedPlan"):
        solver(basis="bernstein", plan=BernsteinPlan(2, 1, 1))
    with pytest.raises(TypeError, match=r"allowed .*: a FusedPlan"):
        solver(plan=plan)


def test_which_path_is_taken():
    paths = [solver(**options).path for options in ({}, {"flux": "central"}, {"path": "paper"})]
    assert paths == ["fused", "paper", "paper"]
    with pytest.raises(ValueError, match="flux = 'central' with path 'fused'"):
        solver(flux="central", path="fused")


def test_the_central_flux_has_nodal_kernels():
    ours, exact = (solver(flux="central", device=d) for d in ("simulator", "reference"))
    u = noise(ours)
    assert ours.path == "paper" and close(ours.rhs(u), exact.rhs(u), "float64")


@pytest.mark.parametrize("plan", [None, ElementPlan(32, 32, 8)])
def test_memory_is_what_the_launchers_hold(kernels, plan):
    """A thread an element needs more; plans of other launchers say nothing about memory."""
    if plan and not isinstance(plan, LAUNCHERS[kernels["basis"]][kernels["path"]][1:]):
        plan = None
    ours = solver(
        mesh=box((8, 8, 8)), order=2, kappa=1.0, rho=1.0, dtype="float32", plan=plan, **kernels
    )
    launcher = ours.launcher
    held = [vars(launcher).get("du")]
    for table in (d for d in vars(launcher).values() if isinstance(d, dict)):
        held += table.values()
    states = 2 if launcher.in_place else 3
    found = sum(a.nbytes for a in held if isinstance(a, np.ndarray))
    found += states * launcher.zeros().nbytes
    assert 0.8 < found / ours.memory_bytes() < 1.25
