"""Maxwell's solver with its kernels, thread by thread: time steps and what comes in meanwhile."""

import math

import numpy as np
import pytest

from dgbook.gpu import device
from dgbook.maxwell import reference
from dgbook.maxwell.launch.incident import kernel
from dgbook.maxwell.problem import PlaneWave, Scatterer
from dgbook.maxwell.solver import PATHS, Solver
from dgbook.mesh import box
from dgbook.nodal.launching import as_it_is
from dgbook.time import ndb14_factored

SIMULATOR = device("simulator")
CUBE = box((1, 1, 1))
PERIODIC = box((1, 1, 1), periodic=True)
EPSILON = np.array([1.0, 2.0, 1.0, 1.5, 1.0, 3.0])
PULSE = PlaneWave((1, 2, 2), (0, 1, -1), "gaussian", 0.4, 0.3)
SINE = PlaneWave((-1, 0, 1), (1, 0.5, 1), "sine", 7.0, 0.1)
RANDOM = np.random.default_rng(11)
SUMS = np.linalg.qr(RANDOM.standard_normal((6, 6))).Q


def swell(x, y, z, t):
    """An incident field that only Python knows."""
    return [np.cos(x + y - t), 0.5, z * t, np.sin(z), x + t, -1.0]


BOUNDARY = {
    "x-": PULSE,
    "x+": "absorbing",
    "y-": Scatterer(SINE),
    "y+": "pec",
    "z-": Scatterer(PULSE),
    "z+": SINE,
}


def solver(**options):
    options = {
        "order": 1,
        "boundary": BOUNDARY,
        "epsilon": EPSILON,
        "device": "simulator",
    } | options
    return Solver(options.pop("mesh", CUBE), **options)


def noise(s):
    return RANDOM.standard_normal((6, s.mesh.K, s.element.Np)).astype(s.dtype)


def close(found, expected, dtype, units=100):
    """To so many units of rounding of the largest value."""
    assert found.dtype == dtype and found.shape == expected.shape
    error = np.abs(found.astype(np.float64) - expected).max()
    return error < units * np.finfo(dtype).eps * np.abs(expected).max()


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.fixture(params=PATHS)
def path(request):
    return request.param


# ------------------------------------------------------------------------------ what comes in


def incoming(boundary, dtype="float64", mesh=CUBE, order=2):
    return Solver(mesh, order, dtype, "simulator", boundary=boundary).incoming()


def given(field, t):
    """What the reference gives, in float64."""
    return reference.boundary_data(field.operator, t).astype(np.float64).ravel()


@pytest.mark.parametrize("order", [1, 3])
def test_plane_waves_come_in_at_the_right_places_and_times(order, dtype):
    field, exact = incoming(BOUNDARY, dtype, order=order), incoming(BOUNDARY, order=order)
    assert not field.live and len(field.launches) == 4
    for start, step, ticks, late in ((0.0, 0, 0, 0.0), (0.7, 3, 0, 0.02), (0.1, 1, 2, 0.05)):
        field.data[:] = np.nan  # to be written at the waves' faces, and not elsewhere
        field.start(start, 0.1, step)
        for _ in range(ticks):
            field.tick()
        field.stage(0.0, late)
        expected = given(exact, start + (step + ticks) * 0.1 + late)
        found = SIMULATOR.to_numpy(field.data)
        faces = np.zeros(found.reshape(6, 12, -1).shape, bool)
        for members, _ in field.operator.sources:
            faces[:, members] = True
        assert np.array_equal(~np.isnan(found), faces.ravel()) and np.abs(expected).max() > 0.3
        assert close(found[faces.ravel()], expected[faces.ravel()], dtype, units=8)


@pytest.mark.parametrize("boundary", [BOUNDARY, {**BOUNDARY, "y+": swell}])
def test_what_stages_of_a_factored_method_see(boundary, dtype):
    """The sum over five times of a step, on the device: of the second one, which it counts."""
    field, exact = (
        Solver(CUBE, 2, d, "simulator", boundary=boundary, method="ndb14_factored").incoming()
        for d in (dtype, "float64")
    )
    field.start(0.7, 0.1, 0)
    field.tick()
    t = 0.8 if field.live else math.nan  # in a recording it means nothing
    field.step_begins(t)
    values = [given(exact, 0.8 + 0.1 * time) for time in ndb14_factored.TIMES]
    for stage in (0, 1, 9, 13):
        field.combine(stage)
        expected = np.tensordot(ndb14_factored.WEIGHTS[stage], values, axes=1)
        size = np.abs(ndb14_factored.WEIGHTS[stage]).sum()
        assert close(SIMULATOR.to_numpy(field.data), expected, dtype, units=8 * size)
        assert np.abs(expected - values[0]).max() > 1e-3 or stage == 0


def test_a_late_wave_is_as_exact_as_an_early_one():
    """After a million units of time an argument in fp32 would be wrong in its first digit."""
    field, exact = incoming({**dict.fromkeys(BOUNDARY, "pec"), "x-": SINE}, "float32"), 1e6 + 0.037
    field.start(1e6, 1e-3, 37)
    field.stage(0.0, 0.0)
    double = incoming({**dict.fromkeys(BOUNDARY, "pec"), "x-": SINE})
    assert close(SIMULATOR.to_numpy(field.data), given(double, exact), "float32", units=8)


@pytest.mark.parametrize("order", [1, 3])
def test_plane_waves_come_in_as_control_points(order, dtype):
    """A block of the kernel has several faces, the last one fewer."""
    options = {"boundary": BOUNDARY, "basis": "bernstein"}
    field = Solver(CUBE, order, dtype, "simulator", **options).incoming()
    exact = Solver(CUBE, order, "float64", "simulator", **options).incoming()
    nodal = incoming(BOUNDARY, order=order)
    assert not field.live and len(field.launches) == 4
    field.start(0.1, 0.1, 2)
    field.stage(0.0, 0.03)
    expected = given(exact, 0.1 + 2 * 0.1 + 0.03)
    assert close(SIMULATOR.to_numpy(field.data), expected, dtype, units=8)
    assert order == 1 or np.abs(expected - given(nodal, 0.33)).max() > 1e-2


def test_other_functions_are_evaluated_by_python(dtype):
    boundary = {**BOUNDARY, "y+": swell}
    field, exact = incoming(boundary, dtype), incoming(boundary)
    assert field.live and not field.launches
    field.start(0.2, 0.1, 2)
    field.tick()
    field.stage(0.5, 0.03)
    assert close(SIMULATOR.to_numpy(field.data), given(exact, 0.53), dtype, units=2)


def test_without_a_boundary_there_is_one_zero():
    field = incoming("pec", mesh=PERIODIC)
    field.start(0.0, 0.1)
    field.stage(0.0, 0.0)
    field.tick()
    assert SIMULATOR.to_numpy(field.data).tolist() == [0.0] and not field.live


def test_a_kernel_is_made_once():
    assert kernel(3, "sine", "float32") is kernel(3, "sine", "float32")


# ---------------------------------------------------------------------------------- time steps


class NumpyLauncher:
    """A launcher without kernels. It holds sums of the fields: there and back they are rounded."""

    in_place = False

    def __init__(self, operator, device, plan):
        self.operator, self.device, self.plan = operator, device, plan

    def upload(self, u, unknowns=as_it_is):
        return np.ravel(SUMS @ unknowns(u).reshape(6, -1))

    def download(self, state, nodal=as_it_is):
        return nodal((SUMS.T @ state.reshape(6, -1)).reshape(6, self.operator.mesh.K, -1))

    def values(self, state):
        yield self.download(state), self.elements

    @property
    def elements(self):
        return np.arange(self.operator.mesh.K)

    def part(self, states, places):
        return np.stack([self.download(state) for state in states])[:, :, places]

    def zeros(self):
        return self.upload(np.zeros((6, self.operator.mesh.K, self.operator.element.Np)))

    def rhs(self, u, data, out):
        operator, fields = self.operator, self.download(u)
        g = data[: 6 * operator.boundary_points[0].size].reshape(6, -1, operator.element.Nfp)
        flux = reference.fluxes(operator, reference.jumps(operator, fields, g))
        total = reference.volume(operator, fields) + reference.lift(operator, flux)
        weights = np.stack(3 * [operator.epsilon] + 3 * [operator.mu])
        out[:] = self.upload(total / weights[..., None])

    def stage(self, u, res, new, data, a, b, dt):
        assert (new is u) == self.in_place
        slope = self.zeros()
        self.rhs(u, data, slope)
        res[:] = a * res + dt * slope
        new[:] = u + b * res
        if not self.in_place:
            u[:] = np.nan  # what is old must not be used again


class InPlace(NumpyLauncher):
    in_place = True


@pytest.fixture
def numpy_launchers(monkeypatch):
    monkeypatch.setitem(PATHS, "fused", (NumpyLauncher,))
    monkeypatch.setitem(PATHS, "paper", (InPlace,))


def test_a_step_with_kernels(path):
    """One of everything; the kernels' own tests have the orders and the precisions."""
    ours, exact = solver(path=path, dtype="float32"), solver(device="reference")
    u, dt = noise(ours), ours.cfl_dt()
    expected = exact.run(u.astype(np.float64), 0.2 + dt, dt, t=0.2)
    assert close(ours.run(u, 0.2 + dt, dt, t=0.2), expected, "float32")
    assert np.abs(expected - u).max() > 0.1


@pytest.mark.parametrize(
    ("boundary", "dtype"), [(BOUNDARY, "float32"), ({**BOUNDARY, "y+": swell}, "float64")]
)
def test_steps_in_the_bernstein_basis(boundary, dtype):
    """Three, with the kernel, and what comes in evaluated there or by Python."""
    options = {"boundary": boundary, "basis": "bernstein", "order": 2}
    ours, exact = solver(dtype=dtype, **options), solver(device="cpu", boundary=boundary, order=2)
    u, dt = noise(ours), ours.cfl_dt()
    expected = exact.run(u.astype(np.float64), 0.2 + 3 * dt, dt, t=0.2)
    assert close(ours.run(u, 0.2 + 3 * dt, dt, t=0.2), expected, dtype)
    assert close(ours.rhs(u, 0.4), exact.rhs(u, 0.4), dtype)
    assert ours.stable_dt() == pytest.approx(exact.stable_dt(), rel=1e-2)
    assert np.abs(expected - u).max() > 0.1


@pytest.mark.usefixtures("numpy_launchers")
@pytest.mark.parametrize("method", ["lsrk45", "ndb14"])
@pytest.mark.parametrize("boundary", [BOUNDARY, "pec", {**BOUNDARY, "y+": swell}])
def test_steps(path, boundary, method):
    """Three, an odd number: states that are written in turn end where they did not start."""
    ours, exact = (
        solver(path=path, boundary=boundary, device=where, method=method)
        for where in ("simulator", "reference")
    )
    u, dt = noise(ours), ours.cfl_dt()
    expected = exact.run(u, 0.2 + 3 * dt, dt, t=0.2)
    assert close(ours.run(u, 0.2 + 3 * dt, dt, t=0.2), expected, "float64")
    assert close(ours.rhs(u, 0.4), exact.rhs(u, 0.4), "float64")
    assert np.abs(expected - u).max() > 0.1


@pytest.mark.usefixtures("numpy_launchers")
def test_steps_on_a_periodic_mesh(path):
    ours, exact = (
        solver(mesh=PERIODIC, path=path, boundary={}, device=d) for d in ("simulator", "reference")
    )
    u, dt = noise(ours), ours.cfl_dt()
    assert close(ours.run(u, dt), exact.run(u, dt), "float64")


@pytest.mark.parametrize(
    ("basis", "boundary"), [("nodal", BOUNDARY), ("bernstein", {**BOUNDARY, "y+": swell})]
)
def test_steps_of_a_factored_method(basis, boundary):
    """Two, with the kernel, and what comes in evaluated there or by Python and then combined."""
    options = {"boundary": boundary, "basis": basis, "method": "ndb14_factored"}
    ours, exact = (solver(device=where, **options) for where in ("simulator", "reference"))
    u, dt = noise(ours), 2 * ours.cfl_dt()
    expected = exact.run(u, 0.2 + 2 * dt, dt, t=0.2)
    assert close(ours.run(u, 0.2 + 2 * dt, dt, t=0.2), expected, "float64")
    assert close(ours.rhs(u, 0.4), exact.rhs(u, 0.4), "float64")
    assert np.abs(expected - u).max() > 0.1


@pytest.mark.usefixtures("numpy_launchers")
@pytest.mark.parametrize("steps", [1, 2])
def test_a_resumed_march_is_the_same_to_the_last_bit(path, steps):
    """On the way to the fields and back a launcher may round; what it holds itself is exact."""
    ours = solver(path=path)
    u, dt = noise(ours), ours.cfl_dt()
    whole = ours.march(u, 4 * dt, dt)
    for _ in range(steps):
        whole.step()
    rest, rounded = (ours.march(whole.state(), 4 * dt, dt, done=steps) for _ in range(2))
    assert rest.restore(whole.state(), whole.raw())
    while whole.done < whole.count:  # in turn: marches do not get into each other's way
        for march in (whole, rest, rounded):
            march.step()
    assert whole.count == 4
    np.testing.assert_array_equal(rest.state(), whole.state())
    assert not np.array_equal(rounded.state(), whole.state())
    assert close(rounded.state(), whole.state(), "float64")


@pytest.mark.usefixtures("numpy_launchers")
@pytest.mark.parametrize("boundary", [BOUNDARY, {**BOUNDARY, "y+": swell}])
def test_the_longest_step_is_that_of_the_reference(path, boundary):
    """What comes in takes no part in it."""
    ours, exact = (
        solver(path=path, boundary=boundary, device=d) for d in ("simulator", "reference")
    )
    assert ours.stable_dt() == pytest.approx(exact.stable_dt(), rel=1e-3)
    assert ours.stable_dt() > 1.5 * ours.cfl_dt()


@pytest.mark.usefixtures("numpy_launchers")
def test_looking_at_the_slope_meanwhile_changes_nothing(path):
    ours = solver(path=path)
    u, dt = noise(ours), ours.cfl_dt()
    seen = []
    looked = ours.run(u, 2 * dt, dt, observe=lambda t, v: seen.append((t, ours.rhs(v, t))))
    np.testing.assert_array_equal(looked, ours.run(u, 2 * dt, dt))
    assert [t for t, _ in seen] == pytest.approx([dt, 2 * dt])


def test_which_path_is_taken():
    assert solver(flux="central").path == "paper" and solver().path == "fused"
    with pytest.raises(ValueError, match="path = 'split'; allowed are 'fused', 'paper'"):
        solver(path="split")


def test_memory_is_what_the_launchers_hold(path):
    ours = solver(mesh=box((6, 4, 4)), order=2, path=path, epsilon=1.0, dtype="float32")
    launcher = ours.launcher
    tables = [d for d in vars(launcher).values() if isinstance(d, dict)]
    held = [a for d in tables for a in d.values() if isinstance(a, np.ndarray)]
    states = 2 if launcher.in_place else 3
    found = sum(a.nbytes for a in held) + states * launcher.zeros().nbytes
    assert 0.8 < found / ours.memory_bytes() < 1.25
