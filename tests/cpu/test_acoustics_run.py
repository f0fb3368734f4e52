"""python -m dgbook run acoustics: what it writes, resumes and refuses."""

import signal
import tracemalloc
from pathlib import Path

import meshio
import numpy as np
import pytest
from runs import assert_refused, at_step

from dgbook.acoustics import Solver
from dgbook.acoustics.exact import CubeMode
from dgbook.acoustics.reference import BASES
from dgbook.cli import acoustics as command
from dgbook.cli.fields.acoustics import shown
from dgbook.cli.main import main
from dgbook.cli.output import write_shown
from dgbook.mesh import box, read

ROOT = Path(__file__).parents[2]
TWO_BOXES = ROOT / "tests" / "data" / "two_boxes_4.1_ascii.msh"
RANDOM = np.random.default_rng(6)
WAVE = "--boundary absorbing --boundary x-=incident --wave-width 0.2"


def run(*options):
    """The command on the CPU, given as texts with several words, or paths."""
    words = [w for o in options for w in ([str(o)] if isinstance(o, Path) else o.split())]
    return main(["run", "acoustics", "--device", "cpu", *words])


def number(text, before):
    """The number that follows some words of the output."""
    return float(text.partition(before)[2].split()[0].rstrip(","))


# ------------------------------------------------------------------------------------------ runs


def test_another_program_reads_the_solution_to_the_last_bit(tmp_path):
    mesh = read(TWO_BOXES)
    kappa = np.ones(mesh.K)
    kappa[mesh.regions["copper"]] = 2.5
    solver = Solver(mesh, 2, "float32", "cpu", kappa=kappa)
    u = RANDOM.standard_normal((4, mesh.K, 10)).astype(np.float32)
    write_shown(tmp_path / "fields.vtu", solver.mesh, shown(solver, u))
    found = meshio.read(tmp_path / "fields.vtu")
    np.testing.assert_array_equal(found.points, solver.x.reshape(3, -1).T)
    np.testing.assert_array_equal(found.point_data["pressure"], u[0].ravel())
    np.testing.assert_array_equal(found.point_data["velocity"], u[1:].reshape(3, -1).T)
    assert list(found.cell_data) == ["kappa"]  # rho is the same everywhere
    np.testing.assert_array_equal(found.cell_data["kappa"][0], np.repeat(kappa, 8).astype("f4"))


@pytest.mark.parametrize("basis", BASES)
def test_the_cubes_mode_and_its_error(basis, tmp_path, capsys):
    path = tmp_path / "cube.vtu"
    assert run(f"--cells 2 --order 3 --t-end 0.5 --basis {basis} --output", path) == 0
    coarse = capsys.readouterr().out
    assert run(f"--cells 2 --order 4 --t-end 0.5 --basis {basis} --kappa 4 --rho 0.5") == 0
    fine = capsys.readouterr().out
    errors = [number(text, "L2 error ") for text in (coarse, fine)]
    assert errors[0] < 0.05 and errors[1] < errors[0] / 4
    assert "48 tetrahedra of order 3: 3840 degrees of freedom, float64" in coarse
    assert f"basis {basis}, upwind flux; boundaries x-=soft" in coarse and str(path) in coarse
    assert "GDOF/s  [LIVE " in coarse and "at t = 0: mode" in coarse
    # The integral of cos^2 over [-1, 1] is 1, thrice, and the energy has a half and 1 / kappa.
    assert number(fine, "energy ") == pytest.approx(1 / 8, rel=1e-2)
    assert list(tmp_path.iterdir()) == [path]
    largest = np.abs(meshio.read(path).point_data["pressure"]).max()
    assert largest == pytest.approx(np.cos(3**0.5 * np.pi / 4), rel=0.2)


def test_no_error_where_no_solution_is_known(capsys):
    assert run("--cells 1 --order 2 --t-end 0.1 --boundary z-=rigid") == 0
    assert "L2 error" not in capsys.readouterr().out


def test_a_wave_comes_in(tmp_path, capsys):
    """A pulse along x between rigid walls is the plane wave itself."""
    path = tmp_path / "wave.vtu"
    options = (
        "--boundary rigid --boundary x-=incident --boundary x+=absorbing --cells 2 --order 3 "
        "--wave-width 0.8 --kappa 4 --t-end 3.8"
    )
    assert run(options, "--output", path) == 0
    printed = capsys.readouterr().out
    assert "PlaneWave(direction=(1.0, 0.0, 0.0), width=0.8, delay=3.7, kappa=4.0" in printed
    assert "at t = 0: zero" in printed
    found = meshio.read(path)
    # At x = -1 the peak passes 4 widths, t = 3.2, after the start, at speed 2.
    expected = np.exp(-(((3.8 - 3.7 - found.points[:, 0] / 2) / 0.8) ** 2))
    assert np.abs(found.point_data["pressure"] - expected).max() < 0.01
    assert np.abs(found.point_data["velocity"][:, 0] - expected / 2).max() < 0.01


def test_a_series_in_two_media(tmp_path):
    path = tmp_path / "boxes.vtu"
    options = "--order 1 --t-end 0.3 --rho 2 --rho copper=3.5 --every 4 --basis bernstein --output"
    assert run("--mesh", TWO_BOXES, options, path) == 0
    frames = sorted(tmp_path.glob("*.vtu"))
    assert len(frames) > 2 and (tmp_path / "boxes.pvd").exists()
    first, last = (meshio.read(frames[i]) for i in (0, -1))
    assert np.abs(first.point_data["velocity"]).max() == 0  # a pulse of pressure, at rest
    assert np.abs(last.point_data["velocity"]).max() > 0.01
    mesh = read(TWO_BOXES)
    copper = np.isin(np.arange(mesh.K), mesh.regions["copper"])
    np.testing.assert_array_equal(last.cell_data["rho"][0], np.where(copper, 3.5, 2.0))


def test_the_pulse():
    fields = command.pulse(np.array([1.0, 2.0, 3.0]), 0.7)
    p, *v = fields(np.array([1.0, 1.7]), 2.0, np.array([3.0, 3.0]))
    np.testing.assert_allclose(p, [1, np.exp(-1)])
    assert not np.any(v)


# ---------------------------------------------------------------------- interrupted and resumed


@pytest.mark.parametrize("basis", BASES)
def test_a_resumed_run_is_the_same_to_the_last_bit(basis, tmp_path, monkeypatch, capsys):
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    options = f"--cells 1 --order 2 --t-end 1 --dtype float32 --basis {basis} {WAVE}"
    assert run(options, "--output", tmp_path / "whole" / "f.vtu") == 0
    again = (options, "--output", tmp_path / "parts" / "f.vtu")
    at_step(monkeypatch, 2, lambda: signal.raise_signal(signal.SIGINT))
    assert run(*again) == 130
    assert "stopped after step 3 of" in capsys.readouterr().err
    assert run(*again, "--resume") == 0
    printed = capsys.readouterr().out
    assert "of which 3 are done" in printed and "other kernels" not in printed
    whole, parts = ((tmp_path / name / "f.vtu").read_bytes() for name in ("whole", "parts"))
    assert whole == parts


CHANGES = {
    "--order 2": "order = 1 there, 2 here",
    "--basis bernstein": "basis = nodal there, bernstein here",
    "--boundary z+=soft": '"z+": "absorbing"',
    "--wave-delay 0.5": "wave = PlaneWave(",
    "--flux penalty": "flux = upwind there, penalty here",
    "--rho 1": 'rho = [] there, ["1"] here',
    "--kappa 1": 'kappa = [] there, ["1"] here',
}


def test_a_checkpoint_of_another_run_is_refused(tmp_path, monkeypatch, capsys):
    path = tmp_path / "kept.checkpoint"
    options = f"--cells 1 --order 1 --t-end 1 {WAVE} --checkpoint"
    at_step(monkeypatch, 2, lambda: signal.raise_signal(signal.SIGINT))
    assert run(options, path) == 130
    capsys.readouterr()
    for change, message in CHANGES.items():
        assert run(options, path, "--resume", change) == 2, change
        assert message in " ".join(capsys.readouterr().err.split())


# ---------------------------------------------------------------------------------------- errors

REFUSED = {
    "--mesh nowhere.msh": (1, "there is no such file"),
    f"--mesh {ROOT}/chapters/meshes/airfoil.msh": (2, "has 2 dimensions; allowed: 3"),
    "--boundary x-=wall": (2, "'wall'; allowed are soft, rigid, absorbing, incident"),
    f"--mesh {TWO_BOXES} --boundary top=soft": (2, "no 'top'; allowed are"),
    f"--mesh {TWO_BOXES} --rho gold=2": (2, "no 'gold'; allowed are 'copper', 'all of it'"),
    f"--mesh {TWO_BOXES} --boundary incident --kappa copper=2": (2, "in a uniform medium only"),
    "--kappa one": (2, "--kappa one; allowed: 1e-15 to 1e+15"),
    "--rho 1e-300": (2, "--rho 1e-300; allowed: 1e-15 to 1e+15"),
    "--boundary incident --wave-direction 0 0 0": (2, "direction = [0.0, 0.0, 0.0]"),
    "--boundary incident --wave-width 0": (2, "width = (0.0,)"),
    f"--mesh {TWO_BOXES} --initial mode": (2, "the cube only"),
    "--initial zero": (2, "nothing would happen"),
    "--t-end 0": (2, "--t-end 0.0; allowed: positive"),
    "--t-end inf": (2, "--t-end inf; allowed: positive, finite"),
    "--cells 0": (2, "--cells 0; allowed: 1 to 2147483647"),
    "--boundary incident --wave-delay nan": (2, "--wave-delay nan; allowed: finite numbers"),
    "--output fields.vtk": (2, "a name that ends in .vtu"),
    "--resume": (2, "--resume needs"),
    "--basis bernstein --order 0": (2, "order = 0"),
    "--flux central --path fused": (2, "flux = 'central' with path 'fused'"),
}


@pytest.mark.parametrize("options", REFUSED)
def test_wrong_options_are_refused_before_anything_is_computed(
    options, tmp_path, monkeypatch, capsys
):
    cells = "" if "--mesh" in options else "--cells 1"
    assert_refused(
        lambda options: run(cells, options), options, REFUSED, tmp_path, monkeypatch, capsys
    )


# ---------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize(("order", "dtype"), [(2, "float32"), (5, "float64")])
def test_the_memory_of_a_run_is_as_estimated(basis, order, dtype):
    solver = Solver(box((3, 3, 3), -1.0, 1.0), order, dtype, "reference", basis)
    u = solver.interpolate(lambda x, y, z: CubeMode()(x, y, z, 0.0))
    solver.run(u, 1e-9)
    tracemalloc.start()
    solver.run(u, 1e-9)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.75 < (peak + u.nbytes) / solver.memory_bytes() < 1.1
