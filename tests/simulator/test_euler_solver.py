"""The Euler solver with its kernels, thread by thread: time steps, and runs that end in no gas."""

import numpy as np
import pytest
from euler_cases import BOUNDARY, STREAM, a_breeze, gusts, mesh_of

from dgbook import euler
from dgbook.euler import solver as module
from dgbook.euler.plan import HEALTHY, PaperPlan
from dgbook.euler.problem import conservative
from dgbook.euler.solver import PATHS
from dgbook.mesh import box

STILL = {"x-": "wall", "x+": STREAM, "y-": STREAM, "y+": "wall"}


def puffs(x, y, t):
    """The stream, and what rides on it; known to Python only."""
    return STREAM(x, y, t) + 0.1 * gusts(x, y, t)


LIVE = BOUNDARY | {"x+": puffs}
BOUNDARIES = {"still": STILL, "live": LIVE, "periodic": None}


@pytest.fixture(params=PATHS)
def path(request):
    return request.param


def solvers(boundary, path, p=1, dtype="float64", cells=(3, 2), **options):
    """On the simulator and on the host in float64, and a state."""
    random = np.random.default_rng(3)
    mesh = mesh_of(boundary is None, cells, random)
    ours = euler.Solver(mesh, p, dtype, "simulator", boundary=boundary, path=path, **options)
    truth = euler.Solver(mesh, p, device="reference", boundary=boundary)
    return ours, truth, a_breeze(truth.operator, random)


def close(found, expected, units=100):
    """To so many units of rounding of the largest value."""
    error = np.abs(found.astype(np.float64) - expected).max()
    return error < units * np.finfo(found.dtype).eps * np.abs(expected).max()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("boundary", BOUNDARIES.values(), ids=BOUNDARIES)
def test_steps(boundary, dtype, path):
    ours, truth, u = solvers(boundary, path, dtype=dtype)
    u = u.astype(dtype)
    dt = truth.stable_dt(u)
    found, expected = (s.run(u, 0.2 + 3 * dt, dt, t=0.2) for s in (ours, truth))
    assert found.dtype == dtype and close(found, expected)
    assert close(ours.rhs(u, 0.4), truth.rhs(u, 0.4), units=2000)  # of sums that cancel
    assert np.abs(expected - u).max() > 3e-3


def test_what_does_not_change_is_evaluated_once(path):
    ours, _, u = solvers(STILL, path)
    still = ours.march(u, 1.0).stepper.incoming
    live = solvers(LIVE, path)[0].march(u, 1.0).stepper.incoming
    for given, changes in ((still, False), (live, True)):
        assert all(one.live == changes for one in given)
        assert len({id(one.data) for one in given}) == (3 if changes else 1)


@pytest.mark.parametrize("boundary", [STILL, LIVE], ids=["still", "live"])
def test_a_resumed_march_is_the_same_to_the_last_bit(boundary, path):
    ours, _, u = solvers(boundary, path)
    dt = ours.stable_dt(u)
    whole = ours.march(u, 4 * dt, dt)
    whole.step()
    rest = ours.march(whole.state(), 4 * dt, dt, done=1)
    assert rest.restore(whole.state(), whole.raw())
    while whole.done < whole.count:  # in turn: marches do not get into each other's way
        for march in (whole, rest):
            march.step()
    np.testing.assert_array_equal(rest.state(), whole.state())


def test_looking_at_the_state_meanwhile_changes_nothing(path):
    ours, _, u = solvers(STILL, path)
    seen = []
    looked = ours.run(u, 0.1, observe=lambda t, v: seen.append((t, ours.rhs(v, t))))
    np.testing.assert_array_equal(looked, ours.run(u, 0.1))
    assert len(seen) >= 2


# ------------------------------------------------------------------------- states that no gas has


def vacuum(path, device):
    """Two streams that part: after seven steps there is no gas left between them."""
    mesh = box((8, 1), (-1.0, 0.0), (1.0, 0.25), periodic=(False, True))

    def apart(x, y, t=0.0):
        center = x.mean(axis=-1, keepdims=True) + 0 * x
        return conservative(1.0, np.where(center < 0, -0.5, 0.5), 0.0, 0.2)

    solver = euler.Solver(mesh, 1, device=device, boundary=apart, path=path)
    return solver, solver.interpolate(apart)


@pytest.fixture
def host_error():
    solver, u = vacuum(None, "reference")
    with pytest.raises(euler.FlowError) as caught:
        solver.run(u, 0.4)
    return caught.value


@pytest.mark.parametrize(("every", "observed"), [(1, 1000), (3, 1), (3, 1000), (32, 1000)])
def test_the_error_is_that_of_the_host(every, observed, path, host_error, monkeypatch):
    """However seldom the kernels are asked, and if nobody asks before the end."""
    monkeypatch.setattr(module, "CHECK_EVERY", every)
    solver, u = vacuum(path, "simulator")
    seen = []
    with pytest.raises(euler.FlowError) as caught:
        solver.run(u, 0.4, observe=lambda t, v: seen.append(t), every=observed)
    error = caught.value
    assert str(error) == str(host_error)
    assert (error.time, error.element) == (host_error.time, host_error.element)
    np.testing.assert_allclose(error.state, host_error.state, rtol=1e-9)
    assert not seen or seen[-1] <= error.time + 1e-12, "no impossible state is handed out"
    assert host_error.time > 0.1


def test_the_flag_is_read_once_in_32_steps_and_before_states_are_handed_out(path, monkeypatch):
    ours, _, u = solvers(None, path, p=0, cells=(2, 2))
    march = ours.march(u, 1.0, dt=0.001)
    asked = []
    to_numpy = type(ours.device).to_numpy
    flag = march.stepper.launcher.bad

    def watched(device, array):
        if array is flag:
            asked.append(march.done)
        return to_numpy(device, array)

    monkeypatch.setattr(type(ours.device), "to_numpy", watched)
    for _ in range(40):
        march.step()
    assert asked == [31]
    march.state()
    march.state()
    assert asked == [31, 40]


def test_a_false_alarm_costs_steps_and_nothing_else(path):
    """The kernels' arithmetic may differ from the host's by rounding, and so may zero."""
    ours, _, u = solvers(STILL, path)
    dt = ours.stable_dt(u)
    march = ours.march(u, 4 * dt, dt)
    for _ in range(3):
        march.step()
    march.stepper.launcher.bad[0] = 2
    march.step()
    np.testing.assert_array_equal(march.state(), ours.run(u, 4 * dt, dt))
    assert march.stepper.launcher.bad[0] == HEALTHY


def test_after_a_restore_steps_are_retraced_from_there(path):
    ours, _, u = solvers(None, path, p=0)
    march, elsewhere = ours.march(u, 1.0, dt=1e-2), ours.march(1.1 * u, 1.0, dt=1e-2)
    elsewhere.stepper.restore(march.raw())
    elsewhere.stepper.launcher.bad[0] = 2
    for either in (march, elsewhere):
        either.step()
    np.testing.assert_array_equal(elsewhere.state(), march.state())


def test_what_one_march_finds_another_does_not_hear(path):
    ours, _, u = solvers(None, path)
    good, other = (ours.march(u, 1.0, dt=1e-3) for _ in range(2))
    other.stepper.launcher.bad[0] = 3
    good.step()
    assert good.stepper.launcher.bad[0] == HEALTHY == ours.launcher.bad[0]


# ------------------------------------------------------------------------------------- what is run


def test_which_path_is_taken(path):
    ours, _, _ = solvers(None, path)
    assert ours.path == path and isinstance(ours.launcher, PATHS[path][0])
    assert euler.Solver(box((2, 2), periodic=True), 1, device="simulator").path == next(iter(PATHS))


def test_the_plan_is_the_one_that_was_given():
    plan = PaperPlan(threads=64, layout="field")
    ours, truth, u = solvers(STILL, "paper", plan=plan)
    assert ours.launcher.plan is plan
    assert close(ours.run(u, 0.05), truth.run(u, 0.05))
