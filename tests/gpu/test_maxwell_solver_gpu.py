"""Maxwell's solver on a real device: recorded steps, incident waves, resumed runs, a sphere."""

import numpy as np
import pytest

from dgbook.gpu import device
from dgbook.lab import maxwell as measure
from dgbook.maxwell import PlaneWave, Scatterer, Solver, exact
from dgbook.mesh import box

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)
WAVE = PlaneWave((0, 0, 1), (1, 0, 0), "sine", 9.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("path", ["fused", "paper"])
@pytest.mark.parametrize("order", [1, 4, 7])
def test_steps_with_an_incident_wave_equal_the_reference(order, path, dtype):
    """The wave's clock runs on the device, inside a recorded graph."""
    mesh = box((3, 2, 2))
    sides = {name: "pec" for name in mesh.boundary} | {"z-": WAVE, "z+": "absorbing"}
    sides["x-"] = Scatterer(WAVE)
    problem = {"boundary": sides, "epsilon": np.linspace(1, 2, mesh.K)}
    ours = Solver(mesh, order, dtype, GPU, path=path, **problem)
    truth = Solver(mesh, order, "float64", "reference", **problem)
    u = np.random.default_rng(0).standard_normal((6, mesh.K, ours.element.Np))
    t_end = 1.0 + 7 * truth.cfl_dt()
    found, expected = (s.run(u, t_end, t=1.0) for s in (ours, truth))
    tolerance = 200 * np.finfo(dtype).eps
    assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("basis", ["nodal", "bernstein"])
@pytest.mark.parametrize("order", [2, 5])
def test_steps_of_a_factored_method_equal_the_reference(order, basis, dtype):
    """What comes in is evaluated at five times of a step and combined, in the recorded graph."""
    mesh = box((3, 2, 2))
    sides = {name: "pec" for name in mesh.boundary} | {"z-": WAVE, "z+": "absorbing"}
    sides["x-"] = Scatterer(WAVE)
    problem = {"boundary": sides, "epsilon": np.linspace(1, 2, mesh.K), "method": "ndb14_factored"}
    ours = Solver(mesh, order, dtype, GPU, basis=basis, **problem)
    truth = Solver(mesh, order, "float64", "reference", **problem)
    u = np.random.default_rng(0).standard_normal((6, mesh.K, ours.element.Np))
    dt = 3 * truth.cfl_dt() / 2
    march = ours.march(u, 1.0 + 3 * dt, dt, t=1.0)
    assert march.stepper.replay
    while march.done < march.count:
        march.step()
    expected = truth.run(u, 1.0 + 3 * dt, dt, t=1.0)
    tolerance = 400 * np.finfo(dtype).eps
    assert np.abs(march.state() - expected).max() < tolerance * np.abs(expected).max()


def test_a_function_as_boundary_of_a_factored_method():
    mesh, slab = box((2, 2, 2)), exact.BoxMode(1, 2, 2)
    ours, truth = (
        Solver(mesh, 3, "float64", d, boundary=slab, method="ndb14_factored")
        for d in (GPU, "reference")
    )
    u = ours.interpolate(lambda x, y, z: slab(x, y, z, 0.0))
    assert np.abs(ours.run(u, 0.1, 0.02) - truth.run(u, 0.1, 0.02)).max() < 1e-12


@pytest.mark.parametrize("path", ["fused", "paper"])
def test_a_function_as_boundary_is_evaluated_by_python(path):
    mesh = box((2, 2, 2))
    slab = exact.BoxMode(1, 2, 2)
    ours, truth = (
        Solver(mesh, 3, "float64", d, boundary=slab, path=path) for d in (GPU, "reference")
    )
    u = ours.interpolate(lambda x, y, z: slab(x, y, z, 0.0))
    assert np.abs(ours.run(u, 0.1) - truth.run(u, 0.1)).max() < 1e-12


@pytest.mark.parametrize("path", ["fused", "paper"])
@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_the_mode_of_the_box_converges(order, path):
    mode = exact.BoxMode(1, 1, 1)
    t_end = np.pi / 2 / mode.omega
    errors = []
    for n in (2, 4):
        solver = Solver(box((n, n, n)), order, "float64", GPU, path=path)
        u = solver.interpolate(lambda x, y, z: mode(x, y, z, 0.0))
        errors.append(solver.l2_error(solver.run(u, t_end), mode, t_end))
    assert abs(np.log2(errors[0] / errors[1]) - (order + 1)) < 0.5


@pytest.mark.parametrize("path", ["fused", "paper"])
def test_a_march_goes_on_where_it_stopped(path):
    solver = Solver(box((2, 2, 2)), 3, "float32", GPU, boundary=WAVE, path=path)
    u = np.zeros((6, solver.mesh.K, solver.element.Np))
    whole = solver.march(u, 0.3)
    for _ in range(whole.count // 2):
        whole.step()
    state, raw, done = whole.state(), whole.raw(), whole.done
    rest = solver.march(state, 0.3, done=done)
    assert rest.restore(state, raw)
    while whole.done < whole.count:
        whole.step()
        rest.step()
    assert np.array_equal(whole.state(), rest.state())


@pytest.mark.parametrize("basis", ["nodal", "bernstein"])
def test_the_gpu_finds_the_energy_of_its_state(basis, dtype):
    """That which the host finds, of more elements than are taken at a time; half are of glass."""
    mesh = box((10, 10, 16))
    glass = np.where(mesh.vertices[mesh.elements].mean(axis=1)[:, 2] > 0.5, 2.25, 1.0)
    solver = Solver(mesh, 3, dtype, GPU, epsilon=glass, basis=basis)
    march = solver.march(np.random.default_rng(2).standard_normal((6, mesh.K, 20)), 0.01)
    march.step()
    expected = solver.energy(march.state())
    # Both sum in fp64; states in fp32 are rounded when they are copied, by 1e-7 of each number.
    rounding = 1e-6 if dtype == "float32" else 1e-12
    assert march.stepper.energy(solver) == pytest.approx(expected, rel=rounding)


def test_central_flux_keeps_the_energy():
    solver = Solver(box((2, 2, 2)), 4, "float64", GPU, flux="central")
    assert solver.path == "paper"
    u = np.random.default_rng(1).standard_normal((6, solver.mesh.K, solver.element.Np))
    before = solver.energy(u)
    # The time step damps a little, by O(dt^5): a hundredth of the stable one hardly.
    after = solver.energy(solver.run(u, solver.cfl_dt(), dt=solver.cfl_dt() / 100))
    assert abs(after / before - 1) < 1e-8


def test_a_conducting_sphere_scatters_as_mie_says():
    """At the skin flat facets cost first order in h, farther out the absorbing boundary 1/r^2."""
    errors = {name: measure.sphere_errors(name, 2, "float32", GPU)[1] for name in measure.SHELLS}
    near, far, fine = (np.array(errors[name]) for name in measure.SHELLS)
    assert (near[1:] < 0.045).all()  # 1 / (2 k r)^2 is 0.02 for a wave of the electric dipole
    assert (far[1:] < near[1:] / 1.5).all()
    assert 1.5 < near[0] / fine[0] < 2.5
