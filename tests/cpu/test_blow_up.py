"""Runs that blow up stop and say when they were still good; those that do not are left alone."""

import math
import signal

import meshio
import numpy as np
import pytest
from runs import at_step

from dgbook import acoustics, linear, maxwell
from dgbook.__main__ import main
from dgbook.acoustics.exact import PlaneWave as Pulse
from dgbook.maxwell.problem import PlaneWave, Scatterer
from dgbook.mesh import box
from dgbook.nodal import solving
from dgbook.nodal.solving import ABSURD, GROWTH, BlowUpError, March

RANDOM = np.random.default_rng(11)
SOLVERS = {
    "maxwell": lambda device: maxwell.Solver(box((1, 1, 1)), 1, device=device),
    "acoustics": lambda device: acoustics.Solver(box((1, 1, 1)), 1, device=device),
    "bernstein": lambda device: acoustics.Solver(
        box((1, 1, 1)), 2, device=device, basis="bernstein"
    ),
    "linear": lambda device: linear.Solver(box(3, periodic=True), 2, linear.wave(1), device=device),
}


def run(family, options):
    return main(["run", family, "--device", "cpu", "--cells", "1", "--order", "2", *options])


def noise(solver):
    return RANDOM.standard_normal((len(solver.fields), solver.mesh.K, solver.element.Np))


# --------------------------------------------------------------------------------- from the shell


@pytest.mark.parametrize("family", ["maxwell", "acoustics"])
def test_steps_too_long_end_in_one_line(family, tmp_path, monkeypatch, capsys):
    """No error of NaN, no file of NaN, no checkpoint of NaN."""
    module = {"maxwell": maxwell, "acoustics": acoustics}[family]
    monkeypatch.setattr(module.Solver, "stable_dt", lambda solver: 4 * solver.cfl_dt())
    path = tmp_path / "f.vtu"
    options = ["--method", "lsrk45", "--t-end", "200", "--every", "50", "--output", str(path)]
    assert run(family, options) == 1
    out, err = capsys.readouterr()
    told = " ".join(err.rpartition("\r")[2].split())  # behind the progress bar
    assert "L2 error" not in out and "Warning" not in err
    assert "the run has blown up: the energy is" in told
    time = float(told.partition("all was well until t = ")[2].split(". ")[0])
    dt = float(out.partition("steps of ")[2].split(",")[0])
    assert time / dt == pytest.approx(round(time / dt), abs=0.1)
    good = tmp_path / "f_last_good.vtu"
    assert f"the last good state, t = {time:.6g}, is in {good}" in told
    assert told.count(f"t = {time:.6g}") == 3  # also the time of the state that was kept
    for file in tmp_path.glob("*.vtu"):
        for values in meshio.read(file).point_data.values():
            assert np.abs(values).max() < 10
    assert not list(tmp_path.glob("*.checkpoint*"))


def test_an_interruption_saves_no_state_that_has_blown_up(tmp_path, monkeypatch, capsys):
    path = tmp_path / "kept.checkpoint"

    def spoil():
        step = March.step

        def spoiled(march):
            step(march)
            march.stepper.state[0] = np.nan
            signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(March, "step", spoiled)

    at_step(monkeypatch, 3, spoil)
    assert run("maxwell", ["--checkpoint", str(path)]) == 1
    assert "the energy is nan" in capsys.readouterr().err and not path.exists()


# ------------------------------------------------------------------------------------ from Python


@pytest.mark.parametrize("device", ["cpu", "simulator"])
@pytest.mark.parametrize("name", SOLVERS)
def test_a_solver_raises_with_the_last_good_state(name, device, monkeypatch):
    """It is the state of its time; devices keep those after 2, 4, 8 steps."""
    monkeypatch.setattr(solving, "LOOK_EVERY", 2)
    monkeypatch.setattr(solving, "KEEP_AFTER", 1)
    solver = SOLVERS[name](device)
    u, dt = noise(solver), 6 * solver.cfl_dt()
    with pytest.raises(BlowUpError, match=r"energy is .* at t = .* well until t = ") as caught:
        solver.run(u, 40 * dt, dt)
    error = caught.value
    done = round(error.time / dt)
    assert done % 2 == 0 and done < 40
    assert solver.energy(error.state) <= solver.energy_limit(u)
    march = solver.march(u, 40 * dt, dt)
    for _ in range(done):
        march.step()
    np.testing.assert_array_equal(march.state(), error.state)


def test_a_device_copies_its_state_ever_less_often(monkeypatch):
    """After 4 and 8 steps; after every second one the sum of squares is looked at."""
    monkeypatch.setattr(solving, "LOOK_EVERY", 2)
    monkeypatch.setattr(solving, "KEEP_AFTER", 2)
    solver = SOLVERS["linear"]("simulator")
    step, seen, copied = March.step, March.seen, []

    def spoiled(march):
        step(march)
        if march.done == 11:
            march.stepper.state.reshape(-1)[4] = np.nan

    def counted(march):
        copied.append(march.done)
        return seen(march)

    monkeypatch.setattr(March, "step", spoiled)
    monkeypatch.setattr(March, "seen", counted)
    dt = 0.5 * solver.cfl_dt()
    with pytest.raises(BlowUpError, match="energy is nan") as caught:
        solver.run(noise(solver), 20 * dt, dt)
    assert copied == [0, 4, 8]
    assert caught.value.time == pytest.approx(8 * dt)
    told = f"at t = {12 * dt:.6g}, and all was well until t = {10 * dt:.6g}. "
    assert told in str(caught.value) and str(caught.value).endswith(f"of t = {8 * dt:.6g}")


def test_a_state_that_is_looked_at_is_copied_once(monkeypatch):
    """For the energy and the observer, who may change his copy, and for what is kept."""
    solver = SOLVERS["linear"]("simulator")
    launcher = type(solver.launcher)
    download, copied, states = launcher.download, [], []

    def counted(self, state, *nodal):
        copied.append(state)
        return download(self, state, *nodal)

    def observe(t, u):
        states.append(u.copy())
        u[:] = np.nan

    monkeypatch.setattr(launcher, "download", counted)
    u, dt = noise(solver), 0.5 * solver.cfl_dt()
    end = solver.run(u, 4 * dt, dt, observe=observe, every=2)
    assert len(copied) == 3  # before the first step, after the second and the fourth
    np.testing.assert_array_equal(end, states[1])
    march = solver.march(u, 4 * dt, dt)
    for state in states:
        for _ in range(2):
            assert march.seen() is march.seen()
            march.step()
        np.testing.assert_array_equal(march.state(), state)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_device_finds_the_energy_of_its_state(name):
    """That of the copied state; Maxwell's kernels hold covariant components, in packs of fields."""
    solver = SOLVERS[name]("simulator")
    march = solver.march(noise(solver), 0.1)
    march.step()
    expected = solver.energy(march.state())
    assert expected > 0.1
    assert march.stepper.energy(solver) == pytest.approx(expected, rel=1e-12)


def test_a_device_copies_nothing_to_see_that_energy_grows_from_rest(monkeypatch):
    """The sum of squares is no longer ten times what it was; the energy is asked for."""
    monkeypatch.setattr(solving, "LOOK_EVERY", 1)
    sides = {"x-": lambda x, t: [np.sin(t)], "x+": "outflow"}
    solver = linear.Solver(box(2), 2, linear.advection(1.0), boundary=sides, device="simulator")
    seen, copied = March.seen, []
    monkeypatch.setattr(March, "seen", lambda march: copied.append(march.done) or seen(march))
    march = solver.march(np.zeros((1, 2, 3)), 0.6, 0.1)
    watch = solver.watch(march)
    while march.done < march.count:
        watch.step()
    assert copied == [0] and watch.squares > 0


def test_the_host_looks_at_the_energy_every_time(monkeypatch):
    monkeypatch.setattr(solving, "LOOK_EVERY", 2)
    solver = SOLVERS["linear"]("cpu")
    seen, looked = March.seen, []
    monkeypatch.setattr(March, "seen", lambda march: looked.append(march.done) or seen(march))
    dt = 0.5 * solver.cfl_dt()
    solver.run(noise(solver), 8 * dt, dt)
    assert sorted(set(looked)) == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("device", ["cpu", "simulator"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_one_number_that_is_none_is_found_at_the_end(bad, device, monkeypatch):
    """Also where a function of the boundary might do anything: 1e200 has no finite energy."""
    sides = {"x-": lambda x, t: [0 * x], "x+": "outflow"}
    solver = linear.Solver(box(3), 2, linear.advection(1.0), boundary=sides, device=device)
    step = March.step

    def spoiled(march):
        step(march)
        if march.done == 2:
            march.stepper.state.reshape(-1)[0] = bad

    monkeypatch.setattr(March, "step", spoiled)
    u = noise(solver)
    with pytest.raises(BlowUpError, match=r"well until t = 0\.") as caught:
        solver.run(u, 3 * solver.cfl_dt())
    np.testing.assert_array_equal(caught.value.state, u)
    seen = []
    with pytest.raises(BlowUpError):  # nobody is shown such a state either
        solver.run(u, 3 * solver.cfl_dt(), observe=lambda t, v: seen.append(v))
    assert len(seen) == 1 and np.isfinite(seen).all()


def test_a_start_without_energy_of_its_own_is_refused():
    solver = SOLVERS["acoustics"]("cpu")
    for bad, energy in ((np.nan, "nan"), (np.inf, "inf"), (1e200, "inf")):
        with pytest.raises(ValueError, match=f"u has the energy {energy}; allowed: finite"):
            solver.run(np.full((4, 6, 4), bad), 0.1)


# ------------------------------------------------------------------------------------ false alarms


def test_the_limit_of_a_closed_system():
    """Of u = 1 in a cube of volume 8 with kappa = 4, rho = 1/2: (1/4 + 3/2) 8 / 2 = 7."""
    solver = acoustics.Solver(box((1, 1, 1), -1.0, 1.0), 2, device="cpu", kappa=4.0, rho=0.5)
    ones = np.ones((4, 6, 10))
    assert solver.energy(ones) == pytest.approx(7)
    assert solver.energy_limit(ones) == pytest.approx(7 * GROWTH)
    assert 0 < solver.energy_limit(0 * ones) < 1e-300
    single = maxwell.Solver(box((1, 1, 1)), 1, "float32", "cpu")  # below 2^-126 rounding is coarse
    assert single.energy_limit(np.zeros((6, 6, 4))) == pytest.approx(3 * 2.0**-252, rel=1e-6, abs=0)


@pytest.mark.parametrize(
    ("incoming", "amplitude"),
    [
        (PlaneWave((1, 0, 0), (0, 0, 3)), 3.0),
        (Scatterer(PlaneWave((1, 0, 0), (0, 3, 4))), 10.0),
        (lambda x, y, z, t: [0 * x] * 6, math.inf),
    ],
)
def test_the_limit_where_something_comes_in(incoming, amplitude):
    """The unit cube full of it, six fields: 3 amplitude^2; nobody knows what a function will do."""
    solver = maxwell.Solver(box((1, 1, 1)), 1, device="cpu", boundary=incoming)
    zeros = np.zeros((6, 6, 4))
    assert solver.energy_limit(zeros) == pytest.approx(ABSURD * 3 * amplitude**2)


def test_a_light_medium_has_fast_particles():
    """v = p / (rho c): where kappa = 1 and rho = 1/4 they are twice as fast as p is large."""
    wave = Pulse((1, 0, 0), 1.0, 0.0, 1.0, 0.25)
    solver = acoustics.Solver(box((1, 1, 1)), 1, device="cpu", rho=0.25, boundary=wave)
    full = 4.0 * (1 + 3 * 0.25) / 2
    assert solver.energy_limit(np.zeros((4, 6, 4))) == pytest.approx(ABSURD * full)


@pytest.mark.parametrize("size", [0.0, 1e-200, 1e-160])
def test_next_to_nothing_does_not_blow_up(size):
    solver = SOLVERS["acoustics"]("cpu")
    u = solver.run(size * noise(solver), 200 * solver.cfl_dt())
    assert np.abs(u).max() <= 10 * size


def test_next_to_nothing_in_single_precision_does_not_blow_up():
    solver = maxwell.Solver(box((1, 1, 1)), 1, "float32", "cpu", "central")
    u = (1e-44 * noise(solver)).astype(np.float32)
    assert u.any()
    solver.run(u, 200 * solver.cfl_dt())


def test_what_kernels_hold_may_grow_a_millionfold_if_the_energy_does_not(monkeypatch):
    """In matter of kappa = 1e-6, pressure 1 sets off velocities of 1000."""
    monkeypatch.setattr(solving, "LOOK_EVERY", 1)
    solver = acoustics.Solver(box((1, 1, 1)), 2, device="cpu", kappa=1e-6, flux="central")
    u = solver.interpolate(lambda x, y, z: [np.sin(np.pi * x), 0, 0, 0])
    speeds = []
    solver.run(u, 2000.0, observe=lambda t, v: speeds.append(np.abs(v[1:]).max()))
    assert max(speeds) > 300 and len(speeds) > 10


def test_a_wave_into_nothing_is_no_alarm(monkeypatch):
    """From exp(-100) to 1."""
    monkeypatch.setattr(solving, "LOOK_EVERY", 1)
    mesh, wave = box((1, 1, 1)), PlaneWave((1, 0, 0), (0, 0, 1), "gaussian", 0.1, 1.0)
    sides = {name: "absorbing" for name in mesh.boundary} | {"x-": wave}
    solver = maxwell.Solver(mesh, 1, device="cpu", boundary=sides)
    u = solver.run(np.zeros((6, 6, 4)), 1.2)
    assert np.abs(u).max() > 0.01


def test_a_function_into_nothing_is_no_alarm_on_a_device(monkeypatch):
    monkeypatch.setattr(solving, "LOOK_EVERY", 1)
    sides = {"x-": lambda x, t: [np.exp(-(((t - 0.4) / 0.04) ** 2))], "x+": "outflow"}
    solver = linear.Solver(box(2), 2, linear.advection(1.0), boundary=sides, device="simulator")
    assert np.abs(solver.run(np.zeros((1, 2, 3)), 0.6)).max() > 0.1
