"""Local time steps on a real device: both families, both precisions, against processor cores."""

import math
import warnings

import numpy as np
import pytest
from local_cases import after, cases, clusters_of, limits_of, noise, slices, stepper, stretched

from dgbook import acoustics, maxwell
from dgbook.gpu import device
from dgbook.mesh import box
from dgbook.nodal.local import Clusters, Costs, graded

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

ROUNDINGS = 1000  # some hundred sums in each of eight ticks


@pytest.mark.parametrize("order", range(1, 7))
@pytest.mark.parametrize("family", [maxwell, acoustics])
def test_a_gpu_does_what_cores_do(family, order, dtype):
    """With all conditions; matter varies in the odd orders; in either basis."""
    options = {"basis": "bernstein"} if order == 2 else {}
    if family is maxwell and order % 2 == 0:
        options |= {"epsilon": 2.0, "mu": 3.0}
    mesh = stretched(3, 25.0)
    ours, _ = cases(family, order, dtype, GPU, mesh=mesh, **options)
    cores, _ = cases(family, order, "float64", "cpu", mesh=mesh, **options)
    clusters, u = clusters_of(cores), noise(cores).astype(dtype)
    assert clusters.last >= 2
    found, expected = after(ours, u, clusters, 2), after(cores, u.astype(float), clusters, 2)
    assert found.dtype == dtype
    scale = np.abs(expected).max() * np.finfo(dtype).eps
    assert np.abs(found - expected).max() < ROUNDINGS * scale


@pytest.mark.parametrize("family", [maxwell, acoustics])
def test_a_recorded_period_does_the_same(family):
    """Nothing comes in: a graph is replayed, and gives the bits of single launches."""
    ours, _ = cases(family, 3, "float32", GPU, mesh=slices(), boundary="absorbing")
    clusters, u = clusters_of(ours), noise(ours)
    recorded, plain = stepper(ours, u, clusters), stepper(ours, u, clusters)
    assert recorded.replay
    plain.replay = None
    for _ in range(3):
        recorded.step(0.0)
        plain.step(0.0)
    assert np.array_equal(recorded.download(), plain.download())
    assert recorded.squares() == pytest.approx(float((plain.raw().astype(float) ** 2).sum()))
    assert recorded.energy(ours) == pytest.approx(ours.energy(plain.download()), rel=1e-6)


def test_plane_waves_are_recorded(dtype):
    """On a scatterer and through the boundary; the graph has its own clock."""
    wave = maxwell.PlaneWave((1, 2, 2), (2, 1, -2), "gaussian", 0.3, 0.1)
    sides = {name: wave for name in ("x-", "y+", "z-")}
    sides |= {"x+": maxwell.Scatterer(wave), "y-": "pec", "z+": "absorbing"}
    options = {"boundary": sides, "epsilon": 1.0, "mu": 1.0}
    ours, truth = cases(maxwell, 2, dtype, GPU, mesh=slices(), **options)
    clusters, u = clusters_of(truth), noise(truth).astype(dtype)
    assert stepper(ours, u, clusters).replay
    found, expected = after(ours, u, clusters, 2), after(truth, u.astype(float), clusters, 2)
    scale = np.abs(expected).max() * np.finfo(dtype).eps
    assert np.abs(found - expected).max() < ROUNDINGS * scale


@pytest.mark.parametrize("order", [1, 2, 3])
def test_order_of_accuracy(order):
    """Elements and steps are halved together: N + 1, in space and in time."""
    mode, errors = maxwell.exact.BoxMode(1, 1, 1), []
    for n in (4, 8):
        mesh = box((n, n, n))
        solver = maxwell.Solver(mesh, order, device=GPU)
        number = graded(mesh.neighbors, (3 * solver.x[0].mean(axis=1)).astype(int))
        periods = math.ceil(0.5 / limits_of(solver).min())
        clusters = Clusters(number, 0.5 / periods / 2 ** number.max())
        assert clusters.last == 2
        u = solver.interpolate(lambda x, y, z: mode(x, y, z, 0.0))
        errors.append(solver.l2_error(after(solver, u, clusters, periods), mode, 0.5))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(order + 1, abs=0.3)


@pytest.mark.parametrize("family", [maxwell, acoustics])
def test_energy_never_grows(family, dtype):
    """Of noise, which has a part of every mode that could grow."""
    solver, _ = cases(family, 3, dtype, GPU, mesh=stretched(3, 9.0), boundary="absorbing")
    clusters, u = clusters_of(solver), noise(solver)
    steps, energies = stepper(solver, u, clusters), [solver.energy(u)]
    for _ in range(40):
        steps.step(0.0)
        energies.append(solver.energy(steps.download()))
    rounding = 100 * np.finfo(dtype).eps * energies[0]
    assert (np.diff(energies) <= rounding).all()
    assert energies[-1] < 0.9 * energies[0]


def test_a_run_is_watched_and_resumed(monkeypatch):
    """As if launches cost nothing: on so small a mesh global steps are the faster ones."""
    mode = maxwell.exact.BoxMode(1, 1, 1)
    solver = maxwell.Solver(stretched(3, 6.0), 2, device=GPU, method="ndb14")
    monkeypatch.setattr(solver, "_costs", lambda numbers: Costs(0.1, 0.0, 0.0))
    u = solver.interpolate(lambda x, y, z: mode(x, y, z, 0.2))
    choice = solver.local_steps(0.5)
    assert choice.pays
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        local = solver.run(u, 0.7, "local", t=0.2, observe=lambda t, v: seen.append(t))
    assert len(seen) == choice.count
    usual = solver.l2_error(solver.run(u, 0.7, solver.cfl_dt(), t=0.2), mode, 0.7)
    assert solver.l2_error(local, mode, 0.7) == pytest.approx(usual, rel=0.05)
    first = solver.march(u, 0.7, "local", t=0.2)
    first.step()
    rest = solver.march(first.state(), 0.7, "local", t=0.2, done=1)
    assert rest.restore(first.state(), first.raw())
    while rest.done < rest.count:
        rest.step()
    assert np.array_equal(rest.state(), local)


def test_where_launches_cost_too_much_global_steps_are_taken():
    solver = maxwell.Solver(slices(), 1, device=GPU)
    assert not solver.local_steps(1.0).pays
    with pytest.warns(UserWarning, match="global time steps"):
        found = solver.run(noise(solver), 0.05, "local")
    assert np.array_equal(found, solver.run(noise(solver), 0.05))
