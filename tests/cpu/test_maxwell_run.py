"""python -m dgbook run maxwell: what it writes, resumes and refuses."""

import itertools
import json
import signal
import tracemalloc
import xml.etree.ElementTree as ElementTree
import zlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import meshio
import numpy as np
import pytest
from runs import assert_refused, at_step

from dgbook import linear
from dgbook.cli import checkpoint, output, running
from dgbook.cli import maxwell as command
from dgbook.cli.fields.maxwell import shown
from dgbook.cli.main import main
from dgbook.cli.output import write_shown
from dgbook.element import NodalElement, reference_measure
from dgbook.maxwell.problem import PlaneWave, Scatterer
from dgbook.maxwell.solver import Solver
from dgbook.mesh import box, geometric_factors, read
from dgbook.nodal import solving
from dgbook.nodal.cores import CORE_ARRAYS

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
TWO_BOXES = DATA / "two_boxes_4.1_ascii.msh"
AEROPLANE = ROOT / "chapters" / "meshes" / "aeroplane.msh"
RANDOM = np.random.default_rng(5)
WAVE = "--boundary absorbing --boundary x-=incident --wave-shape sine --wave-parameter 9"


def run(*options):
    """The command on the CPU, given as texts with several words, or paths."""
    words = [w for o in options for w in ([str(o)] if isinstance(o, Path) else o.split())]
    return main(["run", "maxwell", "--device", "cpu", *words])


def signed_volumes(points, cells):
    corners = points[cells]
    return np.linalg.det(corners[:, 1:] - corners[:, :1]) / 6


def noise(solver):
    shape = (6, solver.mesh.K, solver.element.Np)
    return RANDOM.standard_normal(shape).astype(solver.dtype)


# ----------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("order", [*range(1, 10), 15])
def test_an_element_is_cut_into_tetrahedra_between_its_nodes(order):
    """They fill it, and none is turned inside out, although the nodes are not equidistant."""
    cells = output.subdivision(3, order)
    assert cells.shape == (order**3, 4)
    volumes = signed_volumes(NodalElement(3, order).nodes, cells)
    assert volumes.min() > 0.01 * volumes.mean()
    assert volumes.sum() == pytest.approx(reference_measure(3), rel=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("block", [1000, 4 * 16 * 178, 2**20])
def test_another_program_reads_the_solution_to_the_last_bit(block, dtype, tmp_path, monkeypatch):
    monkeypatch.setattr(output, "BLOCK", block)
    mesh = read(TWO_BOXES)
    epsilon = np.ones(mesh.K)
    epsilon[mesh.regions["copper"]] = 2.5
    solver = Solver(mesh, 2, dtype, "cpu", epsilon=epsilon)
    u = noise(solver)
    write_shown(tmp_path / "fields.vtu", solver.mesh, shown(solver, u))

    found = meshio.read(tmp_path / "fields.vtu")
    np.testing.assert_array_equal(found.points, solver.x.reshape(3, -1).T)
    for name, part in (("E", u[:3]), ("H", u[3:])):
        assert found.point_data[name].dtype == dtype
        np.testing.assert_array_equal(found.point_data[name], part.reshape(3, -1).T)
    (cells,) = found.cells
    assert cells.type == "tetra" and len(cells.data) == 8 * mesh.K
    volumes = signed_volumes(found.points, cells.data).reshape(mesh.K, 8).sum(axis=1)
    np.testing.assert_allclose(volumes, geometric_factors(mesh).jacobian * 4 / 3, rtol=1e-12)
    assert list(found.cell_data) == ["epsilon"]  # mu is the same everywhere
    expected = np.repeat(epsilon.astype(dtype), 8)
    np.testing.assert_array_equal(found.cell_data["epsilon"][0], expected)


@pytest.mark.parametrize("size", [1, 1000, 1001, 3000])
def test_compressed_blocks_are_as_their_header_says(size, monkeypatch):
    """Number of blocks, their size, the last one's if it is not full, compressed sizes."""
    monkeypatch.setattr(output, "BLOCK", 1000)
    values = RANDOM.integers(0, 255, size, dtype=np.uint8)
    header, *blocks = output._compressed(values)
    number, full, last, *sizes = np.frombuffer(header, np.uint64).tolist()
    assert (number, full, last) == (len(blocks), 1000, size % 1000) and sizes == [*map(len, blocks)]
    parts = [zlib.decompress(block) for block in blocks]
    assert [len(part) for part in parts[:-1]] == [full] * (number - 1)
    assert len(parts[-1]) == (last or full) and b"".join(parts) == values.tobytes()


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), output.replacing(path) as file:
        file.write(b"half of the new")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    with output.replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new" and list(tmp_path.iterdir()) == [path]


# ------------------------------------------------------------------------------------------ runs


def test_the_cubes_mode_and_its_error(tmp_path, capsys):
    path = tmp_path / "cube.vtu"
    assert run("--cells 2 --order 3 --t-end 0.1 --output", path) == 0
    coarse = capsys.readouterr().out
    assert run("--cells 2 --order 5 --t-end 0.1") == 0
    fine = capsys.readouterr().out
    errors = [float(text.partition("L2 error ")[2].split()[0]) for text in (coarse, fine)]
    assert errors[0] < 0.1 and errors[1] < errors[0] / 8
    assert "48 tetrahedra of order 3: 5760 degrees of freedom, float64" in coarse
    assert "GDOF/s  [LIVE " in coarse and "at t = 0: mode" in coarse and str(path) in coarse
    # The mode's energy is |E|^2/2 at the start: ((kx kz)^2 + (ky kz)^2)/g^4 + 1 times 1/8.
    start, end = (float(part.split()[0]) for part in fine.partition("energy ")[2].split(",")[:2])
    assert start == pytest.approx(0.5 * 0.125 * (1 + 4 / 5), rel=1e-2)
    assert 0.99 * start < end <= start
    assert list(tmp_path.iterdir()) == [path]
    assert "basis nodal, upwind flux" in coarse
    assert run("--cells 2 --order 3 --t-end 0.1 --basis bernstein") == 0
    other = capsys.readouterr().out
    assert "basis bernstein, upwind flux" in other
    assert coarse.partition("L2 error ")[2].split()[0] == other.partition("L2 error ")[2].split()[0]
    E = meshio.read(path).point_data["E"]
    assert E.shape == (48 * 20, 3) and 0.1 < np.abs(E).max() < 1.5


def test_a_scatterer_in_open_space(tmp_path, capsys):
    path = tmp_path / "plane.vtu"
    options = (
        "--boundary body=scatterer --boundary farfield=absorbing --wave-direction 1 0 0 "
        "--wave-polarization 0 1 0 --wave-delay 0 --order 1 --t-end 0.003 --dtype float32"
    )
    assert run(options, "--mesh", AEROPLANE, "--output", path) == 0
    printed = capsys.readouterr().out
    assert "body=scatterer, farfield=absorbing" in printed
    assert "E and H are the scattered fields" in printed and "at t = 0: zero" in printed
    found = meshio.read(path)
    mesh, wave = read(AEROPLANE), PlaneWave((1, 0, 0), (0, 1, 0))
    assert "method ndb14_factored" in printed
    boundary = {"body": Scatterer(wave), "farfield": "absorbing"}
    solver = Solver(mesh, 1, "float32", "cpu", boundary=boundary, method="ndb14_factored")
    u = solver.run(np.zeros((6, mesh.K, 4)), 0.003)
    np.testing.assert_array_equal(found.point_data["E"], u[:3].reshape(3, -1).T)
    np.testing.assert_array_equal(found.point_data["H"], u[3:].reshape(3, -1).T)
    largest = np.abs(u).max(axis=(0, 2))
    body = np.isin(np.arange(mesh.K), mesh.boundary["body"][:, 0])
    assert largest[body].min() > 1e-3 and np.median(largest[~body]) < 1e-6


def test_a_series(tmp_path):
    path = tmp_path / "two.boxes.vtu"
    options = "--order 1 --t-end 0.35 --epsilon 2 --epsilon copper=3.5 --every 4 --output"
    assert run("--mesh", TWO_BOXES, options, path) == 0
    sets = ElementTree.parse(tmp_path / "two.boxes.pvd").getroot().findall("Collection/DataSet")
    times, names = [float(s.get("timestep")) for s in sets], [s.get("file") for s in sets]
    assert {p.name for p in tmp_path.iterdir()} == {*names, "two.boxes.pvd"}
    assert times[0] == 0 and times[-1] == pytest.approx(0.35) and len(times) > 3
    steps = np.diff(times)
    np.testing.assert_allclose(steps[:-1], steps[0])
    assert 0 < steps[-1] <= steps[0] * (1 + 1e-9)
    frames = [meshio.read(tmp_path / name) for name in names]
    assert np.abs(frames[0].point_data["H"]).max() == 0  # a pulse of E
    assert np.abs(frames[-1].point_data["H"]).max() > 0.05
    mesh = read(TWO_BOXES)
    copper = np.isin(np.arange(mesh.K), mesh.regions["copper"])
    np.testing.assert_array_equal(frames[-1].cell_data["epsilon"][0], np.where(copper, 3.5, 2.0))


def test_the_pulse_has_no_divergence_and_a_peak_of_one():
    center, width, h = np.array([1.0, 2.0, 3.0]), 0.7, 1e-5
    fields = command.pulse(center, width)
    points = center[:, None] + RANDOM.uniform(-1, 1, (3, 50))
    divergence = sum(
        np.subtract(*(fields(*(points + sign * h * np.eye(3)[[d]].T))[d] for sign in (1, -1)))
        for d in range(3)
    ) / (2 * h)
    assert np.abs(divergence).max() < 1e-8
    x = center[0] + np.linspace(0, 2, 2001)
    assert np.abs(fields(x, center[1], center[2])[1]).max() == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize(("shape", "silence"), [("gaussian", np.exp(-16)), ("sine", 0.0)])
def test_a_wave_begins_with_the_run(shape, silence, capsys):
    """Where it comes in, it is silent at t = 0, and not long after.

    H = d x E is as large as 4/3 of E along an axis. A sine sets in as the cube of time, which is
    zero to rounding, 1e-16 or so.
    """
    parser = command.argparse.ArgumentParser()
    command.add_run_arguments(parser)
    options = f"--wave-direction 1 2 2 --wave-polarization 0 1 -1 --wave-shape {shape}"
    arguments = parser.parse_args(f"{options} --wave-parameter 0.25".split())
    mesh, ones = box((2, 2, 2), (-3, 1, 1), (-2, 2, 2)), {"epsilon": np.ones(48)}
    wave = command._wave(arguments, mesh, {"x-": "incident", "x+": "absorbing"}, ones)
    assert isinstance(wave, PlaneWave) and wave.parameter == 0.25
    y = np.linspace(1, 2, 5)
    at_start = np.abs(wave(np.full(25, -3.0), np.repeat(y, 5), np.tile(y, 5), 0.0)).max()
    assert at_start == pytest.approx(4 / 3 * silence, rel=1e-10, abs=1e-40)
    first_corner = np.array([-3.0, 1.0, 1.0])
    assert abs(wave(*first_corner, 0.01)[1]) > 1.2 * silence


# ---------------------------------------------------------------------- interrupted and resumed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_resumed_run_is_the_same_to_the_last_bit(number, tmp_path, monkeypatch, capsys):
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    options = f"--cells 1 --order 2 --t-end 1 --dtype float32 --every 3 {WAVE}"
    assert run(options, "--output", tmp_path / "whole" / "f.vtu") == 0
    steps = int(capsys.readouterr().out.partition(" steps of")[0].split()[-1])
    assert steps > 12 and steps % 3

    again = (options, "--output", tmp_path / "parts" / "f.vtu")
    for stop in (4, 10):
        at_step(monkeypatch, stop, lambda: signal.raise_signal(number))
        assert run(*again, "" if stop == 4 else "--resume") == 130
        err = capsys.readouterr().err
        assert f"stopped after step {stop + 1} of {steps}" in err and "--resume" in err
        assert (tmp_path / "parts" / "f.checkpoint").exists()
    assert run(*again, "--resume") == 0
    assert f"{steps} steps, of which 11 are done, of" in capsys.readouterr().out

    files = {p.name: p.read_bytes() for p in (tmp_path / "whole").iterdir()}
    assert len(files) == 1 + 2 + steps // 3
    assert {p.name: p.read_bytes() for p in (tmp_path / "parts").iterdir()} == files


def test_a_second_interruption_leaves_the_last_checkpoint(tmp_path, monkeypatch, capsys):
    """In the middle of a step there is no state to save."""
    path = tmp_path / "kept.checkpoint"

    def torn():
        assert checkpoint_of(path)[0] == 3
        raise KeyboardInterrupt

    at_step(monkeypatch, 3, torn)
    options = "--cells 1 --order 1 --t-end 1 --checkpoint-every 0 --checkpoint"
    assert run(options, path) == 130
    assert checkpoint_of(path)[0] == 3 and list(tmp_path.iterdir()) == [path]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert run(options, path) == 0
    assert "will be replaced" in capsys.readouterr().out
    assert not path.exists()


def test_checkpoints_come_after_so_many_seconds_whatever_else_is_written(tmp_path, monkeypatch):
    """By a clock that ticks when it is looked at, at least twice a step."""
    clock, saved = itertools.count(), []
    monkeypatch.setattr(running, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(checkpoint, "save", lambda path, content, problem: saved.append(content))
    options = "--cells 1 --order 2 --t-end 1 --checkpoint-every 20 --every 1 --output"
    assert run(options, tmp_path / "f.vtu") == 0
    gaps = np.diff([0, *(content.done for content in saved)])
    assert len(gaps) > 1 and all(2 <= gap <= 11 for gap in gaps)
    steps = len(list(tmp_path.glob("*.vtu"))) - 1
    assert saved[-1].done < steps and saved[-1].u.shape == (6, 6, 10)


def test_only_the_first_signal_is_noted():
    with running.interruptions() as asked:
        signal.raise_signal(signal.SIGINT)
        assert asked == [signal.SIGINT]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with running.interruptions() as asked:
            signal.raise_signal(signal.SIGINT)
            assert not asked
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def checkpoint_of(path):
    with np.load(path) as file:
        return int(file["done"]), json.loads(str(file["problem"]))


CHANGES = {
    "--order 2": "order = 1 there, 2 here",
    "--dtype float32": "dtype = float64 there, float32 here",
    "--cells 2": "mesh = 6 elements",
    "--boundary z+=pec": '"z+": "absorbing"',
    "--t-end 2": "t_end = 1.0 there, 2.0 here",
    "--wave-delay 0.5": "wave = PlaneWave(",
    "--flux central": "flux = upwind there, central here",
    "--mu 1": 'mu = [] there, ["1"] here',
    "--epsilon 1": 'epsilon = [] there, ["1"] here',
}


def test_a_checkpoint_of_another_run_is_refused(tmp_path, monkeypatch, capsys):
    path = tmp_path / "kept.checkpoint"
    options = f"--cells 1 --order 1 --t-end 1 {WAVE} --checkpoint"
    at_step(monkeypatch, 2, lambda: signal.raise_signal(signal.SIGINT))
    assert run(options, path) == 130
    before = path.read_bytes()
    capsys.readouterr()
    for change, message in CHANGES.items():
        assert run(options, path, "--resume", change) == 2, change
        assert message in " ".join(capsys.readouterr().err.split())
    path.write_bytes(before[: len(before) // 2])
    assert run(options, path, "--resume") == 2
    assert "is not a checkpoint" in " ".join(capsys.readouterr().err.split())
    path.unlink()
    assert run(options, path, "--resume") == 1
    assert "there is no checkpoint" in capsys.readouterr().err


# ----------------------------------------------------------------------------------------- march


@pytest.mark.parametrize("device", ["cpu", "simulator"])
def test_a_march_resumed_in_the_middle(device):
    solver = linear.Solver(box(3, periodic=True), 2, linear.wave(1), device=device)
    u = RANDOM.standard_normal((2, 3, 3))
    dt = 0.035
    march = solver.march(u, 0.7, dt, t=0.6)
    assert march.count == 3
    march.step()
    assert (march.done, march.time) == (1, 0.6 + march.dt)
    rest = solver.march(march.state(), 0.7, march.dt, t=0.6, done=1)
    assert rest.restore(march.state(), march.raw())
    other = march.raw() + 1
    before = rest.state()
    assert not rest.restore(before, other) and not rest.restore(before, other.ravel()[1:])
    np.testing.assert_array_equal(rest.state(), before)
    for each in (march, rest):
        while each.done < each.count:
            each.step()
    np.testing.assert_array_equal(rest.state(), march.state())
    np.testing.assert_array_equal(march.state(), solver.run(u, 0.7, dt, t=0.6))
    over = solver.march(march.state(), 0.7, march.dt, t=0.6, done=3)
    assert over.time == march.time
    for done in (-1, 4):
        with pytest.raises(ValueError, match=f"done = {done}; allowed: 0 to 3"):
            solver.march(u, 0.7, march.dt, t=0.6, done=done)
    with pytest.raises(ValueError, match="done = 4; allowed: 0 to 3"):
        solver.march(u, 0.7, dt, t=0.6, done=4)


# ---------------------------------------------------------------------------------------- errors

REFUSED = {
    "--mesh nowhere.msh": (1, "there is no such file"),
    f"--mesh {ROOT}/chapters/meshes/airfoil.msh": (2, "has 2 dimensions; allowed: 3"),
    f"--mesh {TWO_BOXES} --boundary top=pec": (2, "no 'top'; allowed are 'inflow', 'physical_9'"),
    "--boundary x-=metal": (2, "'metal'; allowed are pec, absorbing, incident, scatterer"),
    "--boundary x-=incident --boundary x+=scatterer": (2, "allowed: one of them"),
    "--boundary x-=incident --epsilon 2": (2, "a plane wave is known in vacuum only"),
    f"--mesh {TWO_BOXES} --boundary inflow=scatterer --mu copper=2": (2, "in vacuum only"),
    f"--mesh {TWO_BOXES} --epsilon gold=2": (2, "no 'gold'; allowed are 'copper', 'all of it'"),
    "--epsilon all=2": (2, "no 'all'; allowed are no names"),
    "--mu one": (2, "--mu one; allowed: 1e-15 to 1e+15"),
    "--epsilon 1e308": (2, "--epsilon 1e308; allowed: 1e-15 to 1e+15"),
    "--mu 1e-300": (2, "--mu 1e-300; allowed: 1e-15 to 1e+15"),
    "--epsilon nan": (2, "--epsilon nan; allowed"),
    "--epsilon 0": (2, "--epsilon 0; allowed"),
    "--checkpoint kept.npz": (2, "--checkpoint kept.npz; allowed: a name that ends in .checkpoint"),
    "--mu -1": (2, "--mu -1; allowed"),
    "--boundary incident --wave-polarization 1 0 0": (2, "perpendicular"),
    f"--mesh {TWO_BOXES} --initial mode": (2, "the cube only"),
    "--initial zero": (2, "nothing would happen"),
    "--t-end 0": (2, "--t-end 0.0; allowed: positive"),
    "--t-end inf": (2, "--t-end inf; allowed: positive, finite"),
    "--cells 0": (2, "--cells 0; allowed: 1 to 2147483647"),
    "--boundary incident --wave-delay nan": (2, "--wave-delay nan; allowed: finite numbers"),
    "--output fields.vtk": (2, "a name that ends in .vtu"),
    "--output nowhere/fields.vtu": (1, "there is no folder nowhere"),
    "--checkpoint nowhere/kept.checkpoint": (1, "there is no folder nowhere"),
    "--every 3": (2, "with --output"),
    "--every 0 --output f.vtu": (2, "1 or more steps"),
    "--resume": (2, "--resume needs"),
    "--resume --output f.vtu": (1, "there is no checkpoint f.checkpoint"),
    "--checkpoint-every -1": (2, "0 or more"),
    "--device gpu": (2, "device = 'gpu'"),
    "--order 0": (2, "order"),
}


@pytest.mark.parametrize("options", REFUSED)
def test_wrong_options_are_refused_before_anything_is_computed(
    options, tmp_path, monkeypatch, capsys
):
    device = "" if "--device" in options else "--device cpu"
    small = f"--cells 1 {device}".split()[2 * ("--mesh" in options) :]
    assert_refused(
        lambda options: main(["run", "maxwell", *small, *options.split()]),
        options, REFUSED, tmp_path, monkeypatch, capsys,
    )  # fmt: skip


def test_a_place_that_cannot_be_written_to_is_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "folder.vtu").mkdir()
    assert run("--cells 1 --output", tmp_path / "folder.vtu") == 2
    assert "this is a folder" in " ".join(capsys.readouterr().err.split())
    monkeypatch.setattr(running.os, "access", lambda folder, mode: False)
    assert run("--cells 1 --output", tmp_path / "fields.vtu") == 2
    assert "cannot be written to" in " ".join(capsys.readouterr().err.split())


# ---------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize(("order", "dtype"), [(1, "float64"), (3, "float32"), (5, "float64")])
def test_the_memory_of_a_run_is_as_estimated(order, dtype):
    solver = Solver(box((3, 3, 3)), order, dtype, "reference")
    assert 0.75 < _bytes_of_a_run(solver) / solver.memory_bytes() < 1.1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_run_on_cores_has_six_states(dtype, monkeypatch):
    """With the caller's; three of them are blocks, with room for 176 elements or 168, not 162."""
    monkeypatch.setattr(solving, "ELEMENTS_AT_A_TIME", 8)  # on few elements energies are large
    solver = Solver(box((3, 3, 3)), 3, dtype, "cpu")
    states = _bytes_of_a_run(solver) / noise(solver).nbytes
    assert CORE_ARRAYS[0] - 0.5 < states < 1.2 * CORE_ARRAYS[0]


def _bytes_of_a_run(solver):
    """At the same time, and of the state that it is given."""
    u = noise(solver)
    solver.run(u, 1e-9)
    tracemalloc.start()
    solver.run(u, 1e-9)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak + u.nbytes


def test_what_did_not_fit_is_said_in_the_same_words(monkeypatch):
    solver = Solver(box((2, 2, 2)), 2, "float32", "reference")
    monkeypatch.setattr("dgbook.nodal.linear.HostSteps.__init__", _no_room)
    message = r"48 elements of order 2 in float32 need about .*there was less\. Take .*coarser mesh"
    with pytest.raises(MemoryError, match=message):
        solver.run(noise(solver), 1e-9)


def _no_room(*arguments):
    raise MemoryError("Unable to allocate 7.28 TiB")


def test_what_does_not_fit_is_refused():
    solver = Solver(box((2, 2, 2)), 2, device="cpu")
    needs = solver.memory_bytes()
    running.refuse_if_too_large(solver, needs)
    with pytest.raises(ValueError, match=r"need about .* of the host"):
        running.refuse_if_too_large(solver, 2**60)
    solver.device = replace(solver.device, name="a small GPU", memory_bytes=needs - 1)
    with pytest.raises(ValueError, match=r"48 elements of order 2 in float64 need about .* small"):
        running.refuse_if_too_large(solver, needs)
    solver.device = replace(solver.device, memory_bytes=needs)
    running.refuse_if_too_large(solver, needs)
