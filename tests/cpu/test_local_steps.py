"""Local time steps: clusters, order, energy, conservation, and kernels against the definition."""

import math
import signal
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import meshio
import numpy as np
import pytest
from local_cases import after, cases, clusters_of, faces_of, limits_of, noise, stretched
from runs import at_step

from dgbook import acoustics, linear, maxwell, parallel
from dgbook.cli.main import main
from dgbook.element import NodalElement
from dgbook.lab import records
from dgbook.lab.measuring import on_cores
from dgbook.mesh import box, geometric_factors, read
from dgbook.mesh.build import build
from dgbook.nodal.local import (
    Clusters,
    CoreLocalSteps,
    Costs,
    Given,
    HostLocalSteps,
    choose,
    damping,
    ending,
    graded,
    layout,
)


@pytest.fixture(autouse=True)
def _one_core():
    """Small problems, on machines that do much else."""
    with on_cores(1):
        yield


AIRPLANE = Path(__file__).parents[2] / "chapters" / "meshes" / "aeroplane.msh"
FREE = Costs(update=1.0, tick=0.0, stage=0.0)


def pinched(cells, share=0.95):
    """A uniform cube, but for a few flat elements in its middle."""
    mesh = box((cells,) * 3)
    vertices = mesh.vertices.copy()
    middle = np.linalg.norm(vertices - 0.5, axis=1).argmin()
    vertices[middle, 0] += share / cells
    return build(vertices, mesh.elements, faces_of(mesh))


# ---------------------------------------------------------------------------------------- clusters


def test_neighbors_are_at_most_one_cluster_apart():
    line = np.stack([np.arange(-1, 9), np.arange(1, 11)], axis=1)
    line[-1, 1] = -1
    number = graded(line, np.array([9, 9, 9, 0, 9, 9, 9, 9, 2, 9]))
    assert number.tolist() == [3, 2, 1, 0, 1, 2, 3, 3, 2, 3]


def test_no_element_steps_beyond_its_limit():
    mesh = stretched(4)
    solver = maxwell.Solver(mesh, 1, device="reference")
    limits = limits_of(solver)
    choice = choose(mesh, limits, 1.0, FREE, 14, 1e-3)
    number, clusters = choice.clusters.number, choice.clusters
    assert (clusters.dt * 2.0**number <= limits * (1 + 1e-9)).all()
    there = mesh.neighbors >= 0
    assert (abs(number[mesh.neighbors] - number[:, None])[there] <= 1).all()
    assert clusters.last >= 2
    assert choice.count * clusters.period * clusters.dt == pytest.approx(1.0)
    assert clusters.updates == sum(2 ** (clusters.last - number))
    assert choice.work == choice.count * clusters.updates


@pytest.mark.parametrize("order", [1, 2, 4])
def test_what_damps_is_bounded(order):
    """By eigenvalues of each element's matrix: of all shapes from above, and not by far."""
    random = np.random.default_rng(0)
    corners = random.standard_normal((200, 4, 3)) * [1.0, 1.0, 0.1]
    corners[..., 0] += 20 * np.arange(200)[:, None]
    mesh = build(corners.reshape(-1, 3), np.arange(800).reshape(-1, 4), reorient=True)
    element, Fs = NodalElement(3, order), geometric_factors(mesh).face_scale
    lifts = element.lift.reshape(element.Np, 4, -1)
    inward = np.zeros((4, element.Np, element.Np))
    for f, nodes in enumerate(element.face_nodes):
        inward[f][:, nodes] = lifts[:, f]
    true = np.linalg.eigvals(np.einsum("kf,fij->kij", Fs, inward)).real.max(axis=1)
    bound = damping(element, Fs)
    assert (bound > true * (1 - 1e-10)).all()
    assert (bound < 1.08 * true).all()


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 0.02), (0.05, 0.05, 1)])
def test_the_longest_step_is_not_far_from_what_is_stable(shape):
    """Noise never grows with it, and does with 1.6 times as long a step."""
    mesh = box((1, 1, 1), upper=shape)
    for family in (maxwell, acoustics):
        solver = family.Solver(mesh, 2, device="reference")
        for share, stable in ((1.0, True), (1.6, False)):
            clusters = Clusters(np.zeros(mesh.K, int), share * float(limits_of(solver).min()))
            u = noise(solver)
            steps = HostLocalSteps(solver, u, clusters)
            for _ in range(200):
                steps.step(0.0)
            assert (solver.energy(steps.download()) < solver.energy(u)) == stable


def test_costly_launches_and_short_runs_merge_clusters():
    mesh = stretched(4)
    limits = limits_of(maxwell.Solver(mesh, 1, device="reference"))
    free = choose(mesh, limits, 1.0, FREE, 14, 1e-3).clusters
    smallest = float(limits.min())
    short = choose(mesh, limits, 1.5 * smallest, FREE, 14, 1e-3)
    assert short.clusters.period < free.period
    # In a run of one smallest step nothing can be saved.
    one = choose(mesh, limits, smallest, FREE, 14, 1e-3)
    assert one.clusters.last == 0 and one.count == 1 and one.work == mesh.K
    # Where launches are all that costs, the fewest are those of global steps at full length.
    dear = choose(mesh, limits, 1.0, Costs(0.0, 1.0, 1.0), 14, 1e-3)
    assert dear.work == pytest.approx(dear.count * (dear.clusters.period + 1))
    assert dear.clusters.dt == pytest.approx(smallest, rel=0.05)


def test_the_cost_of_a_launch_on_a_gpu_is_known():
    """The same mesh pays on cores; on a GPU it would have to be much larger."""
    on_cores = maxwell.Solver(pinched(4), 2, device="cpu", method="ndb14")
    on_gpu = maxwell.Solver(pinched(4), 2, device="simulator", method="ndb14")
    on_gpu.device = replace(on_gpu.device, multiprocessors=132)
    assert on_cores.local_steps(0.5).pays
    assert not on_gpu.local_steps(0.5).pays


# Measured on an H200, 14 stages, Maxwell's equations, CUDA C++, stages in the Bernstein basis: a
# period of local steps and a global step in seconds, a stage in nanoseconds per element when it is
# launched for 706,108.
AIRPLANE_COUNTS = (19, 258, 2493, 2011, 1548, 1292, 2)
WIRE_COUNTS = (1382, 2610, 2336, 1518, 980, 1264)
FINE_COUNTS = (1458, 105768, 245782, 151186, 90123, 56902, 45607, 9282)
FINE_COUNTS_2 = (1777, 118822, 242437, 147045, 87904, 55735, 45019, 7369)
MEASURED = [
    # order, precision, counts, smallest step, period / s, global step, step / s, stage / ns
    (3, "float32", AIRPLANE_COUNTS, 4.596e-4, 1.1044e-3, 1.0609e-2, 1.1785e-4, 0.7256),
    (3, "float32", WIRE_COUNTS, 2.461e-4, 6.2031e-4, 3.9675e-3, 1.3359e-4, 0.7256),
    (3, "float32", FINE_COUNTS, 2.971e-5, 4.0711e-2, 7.3656e-4, 7.3746e-3, 0.7256),
    (3, "float64", FINE_COUNTS, 2.971e-5, 8.9923e-2, 7.3656e-4, 1.28316e-2, 1.2406),
    (2, "float32", FINE_COUNTS_2, 4.414e-5, 1.7434e-2, 1.06203e-3, 3.9610e-3, 0.3779),
]


def gpu_costs(order, dtype, basis):
    """What steps cost on a GPU of 132 multiprocessors, and numbers of an element."""
    solver = maxwell.Solver(box((1, 1, 1)), order, dtype, "simulator", basis=basis)
    solver.device = replace(solver.device, multiprocessors=132)
    return solver._costs(6 * solver.element.Np)


@pytest.mark.parametrize(
    ("order", "dtype", "counts", "dt", "period", "global_dt", "step", "stage"), MEASURED
)
def test_costs_on_a_gpu_are_those_measured(
    order, dtype, counts, dt, period, global_dt, step, stage
):
    """To 15 percent, so that the faster steps are taken, also where the nodal basis is."""
    clusters, K = Clusters(np.repeat(range(len(counts)), counts), dt), sum(counts)
    costs, each = gpu_costs(order, dtype, "bernstein"), 1e-9 * stage
    assert each * costs.of_period(clusters) == pytest.approx(period, rel=0.15)
    assert each * costs.of_step(K, 14) == pytest.approx(step, rel=0.15)
    faster = (step / global_dt) / (period / (clusters.period * dt))
    expected = costs.of_step(K, 14) / global_dt * clusters.period * dt / costs.of_period(clusters)
    assert (expected > 1) == (faster > 1) == (order == 2)
    # A stage of the nodal basis takes longer, a Taylor step does not.
    rows = records.load("maxwell/stage").select(path="fused", order=order, dtype=dtype)
    each = min(row["seconds_median"] / row["size"]["K"] for row in rows)
    costs = gpu_costs(order, dtype, "nodal")
    assert each * costs.of_period(clusters) == pytest.approx(period, rel=0.15)


@pytest.mark.parametrize(("basis", "gain"), [("bernstein", 0.296), ("nodal", 0.296 * 1.45)])
def test_a_gpu_takes_global_steps_on_the_airplane(basis, gain):
    """Measured in the Bernstein basis; a nodal stage takes 1.45 times as long (maxwell/bases)."""
    solver = maxwell.Solver(
        read(AIRPLANE), 3, "float32", "simulator", boundary="absorbing", method="ndb14", basis=basis
    )
    solver.device = replace(solver.device, multiprocessors=132)
    choice = solver.local_steps(1.0)
    assert not choice.pays and choice.sentence.startswith("global time steps")
    assert choice.global_work / choice.work == pytest.approx(gain, rel=0.15)


def test_what_python_evaluates_is_added_to_all_launches():
    given = maxwell.Solver(
        box((1, 1, 1)), 1, device="simulator", basis="nodal", boundary=lambda *_: np.zeros(6)
    )
    free, costs = gpu_costs(1, "float64", "nodal"), given._costs(24)
    assert costs.update == free.update
    assert costs.tick - costs.stage == pytest.approx((free.tick - free.stage) / 132)
    assert costs.stage > 10 * free.stage / 132


def test_which_steps_end_with_a_tick():
    assert [ending(tick, 2) for tick in range(8)] == [0, 1, 0, 2, 0, 1, 0, 2]


@pytest.mark.parametrize("lanes", [1, 4])
def test_neighbors_are_found_where_they_write(lanes):
    """Of each cluster and tick: what is read is what the neighbor has written for these steps."""
    mesh = stretched(3, 60.0, periodic=True)
    number = clusters_of(maxwell.Solver(mesh, 1, device="reference")).number
    made, last = layout(mesh, number, lanes), int(number.max())
    places = np.flatnonzero(made.order >= 0)
    assert np.array_equal(np.sort(made.order[places]), np.arange(mesh.K))
    groups = made.place // lanes
    assert np.array_equal(made.cluster[groups], number)
    # What a region's entry holds: element, first tick, and ticks.
    held = np.full((2, made.region * lanes, 3), -1)
    for tick in range(-1, 2**last - 1):
        before = held.copy()
        upto = last if tick < 0 else ending(tick, last)
        for k in np.flatnonzero(number <= upto):
            c, place = number[k], made.place[k]
            own = 2**c
            if tick >= 0:
                for f, m in enumerate(mesh.neighbors[k]):
                    there = made.meets[(tick >> (c + 1)) & 1, k, f]
                    found = before[(tick >> c) & 1, there]
                    assert found.tolist() == [m, tick + 1 - own, own]
            n = tick + 1
            group, lane = divmod(place, lanes)
            held[(n >> c) & 1, place] = k, n, own
            G, l, s = len(made.cluster), made.longer[group], made.shorter[group]
            if l >= 0:
                first = n - own if (n >> c) & 1 else n
                held[(n >> (c + 1)) & 1, (G + l) * lanes + lane] = k, first, n + own - first
            if s >= 0 and c > 0:
                at = (G + made.sums + ((n >> c) & 1) * made.halves + s) * lanes + lane
                for half in range(2):
                    held[half, at] = k, n + half * own // 2, own // 2


# ------------------------------------------------------------------------------------- the scheme


@pytest.mark.parametrize("order", [1, 2, 3])
def test_order_of_accuracy(order):
    """Elements and steps are halved together: N + 1, in space and in time."""
    mode, errors = maxwell.exact.BoxMode(1, 1, 1), []
    for n in (3, 6) if order == 1 else (2, 4):
        mesh = box((n, n, n))
        solver = maxwell.Solver(mesh, order, device="cpu")
        number = graded(mesh.neighbors, (3 * solver.x[0].mean(axis=1)).astype(int))
        periods = math.ceil(0.5 / limits_of(solver).min())
        clusters = Clusters(number, 0.5 / periods / 2 ** number.max())
        assert clusters.last == 2
        u = solver.interpolate(lambda x, y, z: mode(x, y, z, 0.0))
        errors.append(solver.l2_error(after(solver, u, clusters, periods), mode, 0.5))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(order + 1, abs=0.4)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("family", [maxwell, acoustics])
def test_energy_never_grows(family, order):
    """Of noise, which has a part of every mode that could grow."""
    mesh = stretched(2, 9.0)
    matter = 10.0 ** np.random.default_rng(2).uniform(-1, 1, (2, mesh.K))
    names = ("epsilon", "mu") if family is maxwell else ("kappa", "rho")
    given = dict(zip(names, matter, strict=True))
    solver = family.Solver(mesh, order, device="reference", **given)
    clusters, u = clusters_of(solver), noise(solver)
    assert clusters.last >= 2
    energies = [solver.energy(u)]
    steps = HostLocalSteps(solver, u, clusters)
    for _ in range(40):
        steps.step(0.0)
        u = steps.download()
        energies.append(solver.energy(u))
    assert (np.diff(energies) <= 1e-12 * energies[0]).all()
    assert energies[-1] < 0.9 * energies[0]


@pytest.mark.parametrize("family", [maxwell, acoustics])
def test_what_one_side_loses_the_other_gains(family):
    """Where nothing can leave, integrals of D and B, or of p / kappa and rho v, stay."""
    mesh = stretched(3, 60.0, periodic=True)
    for device in ("reference", "cpu"):
        solver = family.Solver(mesh, 2, device=device)
        u, clusters = noise(solver), clusters_of(solver)
        assert clusters.last >= 2
        before, later = solver.integral(u), solver.integral(after(solver, u, clusters, 2))
        scale = np.abs(u).max() * solver.jacobian.sum() * 4 / 3
        assert np.abs(later - before).max() < 1e-14 * scale
        assert np.abs(after(solver, u, clusters, 2) - u).max() > 0.1


def test_one_cluster_takes_global_taylor_steps():
    """u + h/1 V u + ... and the flux of Q, as written in the module's first lines."""
    mesh = stretched(2, 3.0)
    solver = acoustics.Solver(mesh, 2, device="reference", boundary="absorbing")
    op, ref = solver.operator, acoustics.reference
    u, h = noise(solver), 0.5 * solver.cfl_dt()
    V = [u, ref.volume(op, u)]  # kappa = rho = 1
    V.append(ref.volume(op, V[1]))
    Q = h * V[0] + h**2 / 2 * V[1] + h**3 / 6 * V[2]
    flux = ref.fluxes(op, ref.jumps(op, Q, ref.boundary_data(op, 0.0)))
    expected = u + h * V[1] + h**2 / 2 * V[2] + ref.lift(op, flux)
    found = after(solver, u, Clusters(np.zeros(mesh.K, int), h))
    assert np.abs(found - expected).max() < 1e-13 * np.abs(expected).max()


def test_the_error_is_that_of_global_steps():
    mode = maxwell.exact.BoxMode(1, 1, 1)
    solver = maxwell.Solver(stretched(3, 6.0), 2, device="cpu")
    u = solver.interpolate(lambda x, y, z: mode(x, y, z, 0.0))
    clusters = clusters_of(solver)
    periods = round(0.5 / (clusters.period * clusters.dt))
    end = periods * clusters.period * clusters.dt
    usual = solver.l2_error(solver.run(u, end, solver.cfl_dt()), mode, end)
    local = solver.l2_error(after(solver, u, clusters, periods), mode, end)
    assert local == pytest.approx(usual, rel=0.05)


def test_what_comes_in_is_integrated_exactly():
    """Of polynomials in time up to degree N, over the step of each cluster."""
    mesh = stretched(2, 9.0)
    solver = acoustics.Solver(
        mesh, 2, device="reference", boundary=lambda x, y, z, t: [t**2 + x, y * t, 0 * z, 1 + 0 * x]
    )
    clusters, op = clusters_of(solver), solver.operator
    nothing = np.zeros((4, *op.boundary_points.shape[1:]))
    given = Given(op, acoustics.reference.as_fields, nothing, clusters.number, 2)
    for c in range(clusters.last + 1):
        given.integrate(c, 0.7, 0.2 * 2**c)
    h = (0.2 * 2.0 ** clusters.number[op.trace.boundary_faces[:, 0]])[:, None]
    x, y, _ = op.boundary_points
    begin = 0.7 - h
    expected = [(0.7**3 - begin**3) / 3 + h * x, y * (0.7**2 - begin**2) / 2, 0 * y, h + 0 * y]
    assert np.abs(given.data - expected).max() < 1e-14


# ------------------------------------------------------------------------------------ the kernels


@pytest.mark.parametrize(
    ("family", "order", "dtype", "options"),
    [
        *((maxwell, order, "float64", {}) for order in (1, 3, 4)),
        (maxwell, 2, "float64", {"basis": "bernstein"}),
        *((acoustics, order, "float64", {"flux": "penalty"}) for order in (1, 2, 5)),
        (acoustics, 3, "float64", {"basis": "bernstein"}),
    ],
)
def test_kernels_do_what_is_defined(family, order, dtype, options):
    ours, truth = cases(family, order, dtype, "cpu", **options)
    clusters, u = clusters_of(truth), noise(truth)
    assert clusters.last >= 2
    found, expected = after(ours, u, clusters, 2), after(truth, u, clusters, 2)
    assert found.dtype == dtype
    scale = np.abs(expected).max() * np.finfo(dtype).eps
    assert np.abs(found - expected).max() < 400 * scale


def _whole_for_half(made):
    weights = made.weights.reshape(-1, 3)
    weights[:, 2] = weights[:, 1]


def _same_table(made):
    blocks = made.groups[0]
    later = blocks * made.faces * made.Nfp * made.L
    rows = made.places[:later].reshape(blocks, -1)
    made.places[later:] = rows[made.layout.longer >= 0].ravel()


def _one_term_less(made):
    weights = made.weights.reshape(made.layout.cluster.max() + 1, -1, 3)
    weights[:, -1] = 0


MISTAKES = {
    "half a step counts as a whole one": _whole_for_half,
    "neighbors of longer steps are met where they were before": _same_table,
    "the expansion ends a term too soon": _one_term_less,
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_wrong_kernels_are_refused(mistake):
    ours, truth = cases(maxwell, 3, "float64", "cpu")
    clusters, u = clusters_of(truth), noise(truth)
    launcher = ours._local_launcher(clusters)
    mistake(launcher)
    steps = CoreLocalSteps(ours, launcher, u, clusters)
    for n in range(2):
        steps.step(n * clusters.period * clusters.dt)
    expected = after(truth, u, clusters, 2)
    assert np.abs(steps.download() - expected).max() > 1e-6 * np.abs(expected).max()


# --------------------------------------------------------------------------------------- the runs


def test_a_run_with_local_steps():
    mode = maxwell.exact.BoxMode(1, 1, 1)
    solver = maxwell.Solver(pinched(4), 2, device="cpu", method="ndb14")
    u = solver.interpolate(lambda x, y, z: mode(x, y, z, 0.2))
    choice = solver.local_steps(0.5)
    assert choice.pays and "local time steps from" in choice.sentence
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seen = []
        local = solver.run(u, 0.7, "local", t=0.2, observe=lambda t, v: seen.append(t))
    assert seen[-1] == pytest.approx(0.7) and len(seen) == choice.count
    usual = solver.l2_error(solver.run(u, 0.7, t=0.2), mode, 0.7)
    assert solver.l2_error(local, mode, 0.7) == pytest.approx(usual, rel=0.05)
    # A march that is resumed takes the steps that were left.
    first = solver.march(u, 0.7, "local", t=0.2)
    for _ in range(3):
        first.step()
    rest = solver.march(first.state(), 0.7, "local", t=0.2, done=3)
    assert rest.restore(first.state(), first.raw())
    while rest.done < rest.count:
        rest.step()
    assert np.array_equal(rest.state(), local)


def test_on_a_uniform_mesh_global_steps_are_taken():
    solver = maxwell.Solver(box((2, 2, 2)), 2, device="reference")
    u = noise(solver)
    with pytest.warns(UserWarning, match=r"global time steps: local ones .* \d\.\d times as long"):
        found = solver.run(u, 0.5, "local")
    assert np.array_equal(found, solver.run(u, 0.5))


def test_what_is_not_offered_is_refused():
    mesh = box((1, 1, 1))
    solver = maxwell.Solver(mesh, 1, device="reference", flux="central")
    with pytest.raises(ValueError, match=r"flux 'central'.*energy grows.*allowed"):
        solver.run(noise(solver), 1.0, "local")
    other = linear.Solver(box(4), 2, linear.wave(1), boundary="wall", device="reference")
    with pytest.raises(ValueError, match=r"dt = 'local'; allowed: a number"):
        other.run(np.zeros((2, 4, 3)), 1.0, "local")
    solver = maxwell.Solver(mesh, 1, device="reference")
    with pytest.raises(ValueError, match=r"dt = 'global'; allowed: a number"):
        solver.run(noise(solver), 1.0, "global")
    with pytest.raises(ValueError, match="t_end = -1"):
        solver.run(noise(solver), -1.0, "local")
    large = maxwell.Solver(mesh, 13, device="simulator")
    with pytest.raises(ValueError, match=r"order = 13 in float64 .*share \d+ bytes; allowed"):
        large._local_launcher(Clusters(np.zeros(mesh.K, int), 1e-3))
    parts = parallel.Solver(
        lambda piece: maxwell.Solver(piece.mesh, 1, device="reference"), box((2, 2, 2)), 2
    )
    with pytest.raises(ValueError, match="not in parts"):
        parts.run(parts.scatter(np.zeros((6, 48, 4))), 1.0, "local")


def run(*options):
    """The command on the CPU, given as texts with several words, or paths."""
    words = [w for o in options for w in ([str(o)] if isinstance(o, Path) else o.split())]
    return main(["run", "maxwell", "--device", "cpu", *words])


def test_the_command_says_what_it_takes(capsys):
    assert run("--cells 2 --order 2 --t-end 0.2 --dt local") == 0
    said = capsys.readouterr().out
    assert "global time steps: local ones are expected to take" in said
    assert run("--mesh", AIRPLANE, "--order 1 --t-end 0.05 --dt local --method ndb14") == 0
    said = capsys.readouterr().out
    assert "local time steps from" in said and "times fewer updates" in said
    before, after = (float(said.partition(word)[2].split()[0]) for word in ("energy ", "t = 0, "))
    assert 0.5 * before < after < before
    assert run("--cells 2 --dt local --parts 2") == 2
    assert "--dt local with parts" in capsys.readouterr().err


def test_a_run_is_resumed(tmp_path, capsys, monkeypatch):
    """Stopped after a period, it ends with the bits of a run that was not."""
    options = "--order 1 --t-end 0.1 --dt local --method ndb14"
    assert run("--mesh", AIRPLANE, options, "--output", tmp_path / "whole.vtu") == 0
    at_step(monkeypatch, 1, partial(signal.raise_signal, signal.SIGINT))
    stopped = tmp_path / "stopped.vtu"
    assert run("--mesh", AIRPLANE, options, "--output", stopped) == 130
    assert run("--mesh", AIRPLANE, options, "--output", stopped, "--resume") == 0
    assert "3 steps, of which 2 are done" in capsys.readouterr().out
    ends = [meshio.read(tmp_path / f"{name}.vtu").point_data for name in ("whole", "stopped")]
    for field, values in ends[0].items():
        assert np.array_equal(values, ends[1][field])
