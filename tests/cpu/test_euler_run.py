"""python -m dgbook run euler: what it writes, resumes and refuses, and how it ends in a vacuum."""

import signal
import tracemalloc
from pathlib import Path

import meshio
import numpy as np
import pytest
from runs import assert_refused, at_step

from dgbook.cli import output
from dgbook.cli.fields.euler import shown
from dgbook.cli.main import main
from dgbook.cli.output import write_shown
from dgbook.element import NodalElement, reference_measure
from dgbook.euler.exact import Stream, Vortex
from dgbook.euler.problem import GAMMA, conservative
from dgbook.euler.solver import FlowError, Solver
from dgbook.mesh import box, geometric_factors, read
from dgbook.nodal.solving import March

ROOT = Path(__file__).parents[2]
AIRFOIL = ROOT / "chapters" / "meshes" / "airfoil.msh"
RANDOM = np.random.default_rng(5)


def run(*options):
    """The command on the CPU, given as texts with several words, or paths."""
    words = [w for o in options for w in ([str(o)] if isinstance(o, Path) else o.split())]
    return main(["run", "euler", "--device", "cpu", *words])


def areas(points, cells):
    corners = points[cells][:, :, :2]
    return np.linalg.det(corners[:, 1:] - corners[:, :1]) / 2


# ----------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("order", [*range(1, 7), 12])
def test_an_element_is_cut_into_triangles_between_its_nodes(order):
    """They fill it, and none is turned inside out, although the nodes are not equidistant."""
    cells = output.subdivision(2, order)
    assert cells.shape == (order**2, 3)
    found = areas(np.pad(NodalElement(2, order).nodes, ((0, 0), (0, 1))), cells)
    assert found.min() > 0.05 * found.mean()
    assert found.sum() == pytest.approx(reference_measure(2), rel=1e-12)


@pytest.mark.parametrize(("order", "dtype"), [(0, "float64"), (1, "float32"), (3, "float64")])
def test_another_program_reads_the_flow(order, dtype, tmp_path):
    mesh = read(AIRFOIL)
    solver = Solver(mesh, order, dtype, "cpu", boundary="wall")
    shape = mesh.K, solver.element.Np
    rho, p = RANDOM.uniform(0.5, 1.5, (2, *shape))
    v = RANDOM.uniform(-1, 1, (2, *shape))
    u = conservative(rho, *v, p).astype(dtype)
    write_shown(tmp_path / "flow.vtu", solver.mesh, shown(solver, u))

    found = meshio.read(tmp_path / "flow.vtu")
    (cells,) = found.cells
    pieces = max(order, 1) ** 2
    assert cells.type == "triangle" and len(cells.data) == pieces * mesh.K
    total = areas(found.points, cells.data).reshape(mesh.K, -1).sum(axis=1)
    np.testing.assert_allclose(total, 2 * geometric_factors(mesh).jacobian, rtol=1e-12)
    points = 3 if order == 0 else 1  # order 0 has one node, and is drawn with three
    expected = {
        "rho": rho,
        "pressure": p,
        "Mach": np.hypot(*v) / np.sqrt(GAMMA * p / rho),
        "entropy": np.log(p / rho**GAMMA),
    }
    close = {"rtol": 1e-5, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-11, "atol": 1e-11}
    assert list(found.point_data) == ["rho", "velocity", "pressure", "Mach", "entropy"]
    for name, values in expected.items():
        assert found.point_data[name].dtype == dtype
        np.testing.assert_allclose(found.point_data[name], np.repeat(values, points), **close)
    written = found.point_data["velocity"]
    assert written.shape == (points * values.size, 3) and not written[:, 2].any()
    np.testing.assert_allclose(written[:, :2].T, np.repeat(v.reshape(2, -1), points, 1), **close)
    assert not found.points[:, 2].any()


# ------------------------------------------------------------------------------------------ runs


def numbers(printed):
    """Entropy at the start and the end, and the error."""
    start, end = (float(x.split()[0]) for x in printed.partition("entropy ")[2].split(",")[:2])
    return start, end, float(printed.partition("L2 error ")[2].split()[0])


def test_the_vortex_in_a_periodic_square(tmp_path, capsys):
    path = tmp_path / "vortex.vtu"
    assert run("--box 6 --order 2 --t-end 0.5 --output", path) == 0
    coarse = capsys.readouterr().out
    assert run("--box 12 --order 2 --t-end 0.5") == 0
    fine = capsys.readouterr().out
    assert "72 triangles of order 2: 1728 degrees of freedom, float64" in coarse
    assert "boundaries none: periodic; roe flux" in coarse and str(path) in coarse
    assert "a stream at Mach 0.5, 45 degrees with a vortex of strength 0.3" in coarse
    assert numbers(fine)[2] < numbers(coarse)[2] / 4
    # p = rho^gamma / (gamma M^2) everywhere, and rho is 1 but for the vortex.
    start, end, _ = numbers(fine)
    assert start == pytest.approx(-100 * np.log(1 / (GAMMA * 0.25)) / (GAMMA - 1), rel=1e-3)
    assert end < start and end == pytest.approx(start, rel=1e-6)
    rho = meshio.read(path).point_data["rho"]
    assert 0.998 < rho.min() < 0.9993 and len(rho) == 72 * 6
    assert list(tmp_path.iterdir()) == [path]


def test_the_vortex_as_its_own_far_field(capsys):
    options = "--box 8 --order 3 --t-end 0.2 --center 4.5 4.5 --boundary vortex --radius 1.5"
    assert run(options) == 0
    printed = capsys.readouterr().out
    assert "x-=vortex, x+=vortex, y-=vortex, y+=vortex" in printed
    assert numbers(printed)[2] < 0.02
    assert run(options.replace("vortex", "farfield"), "--initial vortex") == 0
    assert "L2 error" not in capsys.readouterr().out  # the vortex runs into the stream


def test_an_airfoil_in_a_stream(tmp_path, capsys):
    path = tmp_path / "airfoil.vtu"
    options = "--boundary airfoil=wall --mach 0.4 --angle 3 --order 1 --t-end 0.01 --flux hllc"
    assert run(options, "--mesh", AIRFOIL, "--dtype float32 --output", path) == 0
    printed = capsys.readouterr().out
    assert "airfoil=wall, farfield=farfield; hllc flux" in printed and "0.4, 3 degrees" in printed
    mesh, angle = read(AIRFOIL), np.deg2rad(3)
    stream = Stream(1.0, np.cos(angle), np.sin(angle), 1 / (GAMMA * 0.16))
    sides = {"airfoil": "wall", "farfield": stream}
    solver = Solver(mesh, 1, "float32", "cpu", "hllc", boundary=sides)
    u = solver.run(solver.interpolate(lambda x, y: stream(x, y, 0)), 0.01)
    found = meshio.read(path).point_data
    np.testing.assert_array_equal(found["rho"], u[0].ravel())
    body = np.isin(np.arange(mesh.K), mesh.boundary["airfoil"][:, 0])
    changed = np.abs(found["pressure"].reshape(mesh.K, 3) - stream.p).max(axis=1)
    assert changed[body].max() > 0.1 and np.median(changed[~body]) < 1e-4


def test_walls_above_and_below_and_the_rest_periodic(capsys):
    options = "--box 4 --order 1 --t-end 0.1 --boundary y-=wall --boundary y+=wall"
    assert run(options) == 0
    printed = capsys.readouterr().out
    assert "boundaries y-=wall, y+=wall;" in printed and "L2 error" not in printed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_resumed_run_is_the_same_to_the_last_bit(number, tmp_path, monkeypatch, capsys):
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    options = "--box 3 --order 2 --t-end 1.9 --dtype float32 --every 3 --strength 3"
    assert run(options, "--output", tmp_path / "whole" / "f.vtu") == 0
    steps = int(capsys.readouterr().out.partition(" steps of")[0].split()[-1])
    assert steps > 12 and steps % 3
    again = (options, "--output", tmp_path / "parts" / "f.vtu")
    at_step(monkeypatch, 7, lambda: signal.raise_signal(number))
    assert run(*again) == 130
    assert f"stopped after step 8 of {steps}" in capsys.readouterr().err
    for change, message in (("--mach 0.4", "stream = Stream("), ("--dt 0.1", "dt = null there")):
        assert run(*again, change, "--resume") == 2
        assert message in " ".join(capsys.readouterr().err.split())
    monkeypatch.setattr(
        Solver, "stable_dt", lambda *_: 1e-3
    )  # steps are as they were, all the same
    assert run(*again, "--resume") == 0
    assert f"{steps} steps, of which 8 are done, of" in capsys.readouterr().out
    files = {p.name: p.read_bytes() for p in (tmp_path / "whole").iterdir()}
    assert len(files) == 1 + 2 + steps // 3
    assert {p.name: p.read_bytes() for p in (tmp_path / "parts").iterdir()} == files


@pytest.mark.parametrize("path", ["fused", "paper"])
def test_kernels_resume_to_the_last_bit_too(path, tmp_path, monkeypatch, capsys):
    options = f"--device simulator --path {path} --box 2 --order 1 --t-end 1 --dt 0.3 --output"
    assert run(options, tmp_path / "whole.vtu") == 0
    assert f"path {path}" in capsys.readouterr().out
    at_step(monkeypatch, 2, lambda: signal.raise_signal(signal.SIGINT))
    assert run(options, tmp_path / "parts.vtu") == 130
    assert run(options, tmp_path / "parts.vtu", "--resume") == 0
    assert (tmp_path / "parts.vtu").read_bytes() == (tmp_path / "whole.vtu").read_bytes()


# ----------------------------------------------------------------------------------- impossible


def test_a_vacuum_is_reported_and_the_last_good_state_kept(tmp_path, capsys):
    """Steps twice as long as they may be."""
    path = tmp_path / "f.vtu"
    options = "--box 4 --order 2 --t-end 20 --dt 0.2 --strength 3 --every 1 --output"
    assert run(options, path) == 1
    message = " ".join(capsys.readouterr().err.split())
    assert "python -m dgbook: a" in message and "the flow is not resolved" in message
    # Not the bar's time, which it tells where it has reason to show.
    time = float(message.partition("the last good state, t = ")[2].split(",")[0])
    steps = round(time / 0.2)
    assert f"is in {tmp_path / 'f_last_good.vtu'}" in message and steps >= 2
    good = meshio.read(tmp_path / "f_last_good.vtu").point_data
    last = meshio.read(tmp_path / f"f_{steps:04d}.vtu").point_data
    for name, values in good.items():
        np.testing.assert_array_equal(values, last[name])
    assert good["pressure"].min() > 0 and not (tmp_path / f"f_{steps + 1:04d}.vtu").exists()


def test_kernels_find_the_vacuum_at_the_end(tmp_path, capsys):
    """They look once in 32 steps, and find the last good state by going back."""
    options = "--device simulator --box 2 --order 2 --t-end 8 --dt 0.6 --strength 5 --output"
    assert run(options, tmp_path / "f.vtu") == 1
    theirs = " ".join(capsys.readouterr().err.split())
    assert run(options.replace("simulator", "cpu"), tmp_path / "g.vtu") == 1
    ours = " ".join(capsys.readouterr().err.split())
    assert "in the steps after t = " in ours
    assert theirs.partition("python -m")[2] == ours.partition("python -m")[2]
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["f_last_good.vtu", "g_last_good.vtu"]


def test_without_output_a_failed_run_only_says_so(monkeypatch, capsys):
    def fails(march):
        raise FlowError("a pressure that is not positive", 0.25, 7, march.state())

    monkeypatch.setattr(March, "step", fails)
    assert run("--box 2 --order 1") == 1
    err = " ".join(capsys.readouterr().err.split())
    assert "in element 7, in the steps after t = 0.25" in err and "last good state, t" not in err


REFUSED = {
    "--mesh nowhere.msh": (1, "there is no such file"),
    f"--mesh {ROOT}/chapters/meshes/ball.msh": (2, "has 3 dimensions; allowed: 2"),
    f"--mesh {AIRFOIL} --boundary top=wall": (2, "no 'top'; allowed are 'airfoil', 'farfield'"),
    f"--mesh {AIRFOIL} --boundary periodic": (2, "allowed are wall, farfield, vortex"),
    f"--mesh {AIRFOIL}": (2, "nothing would happen without a wall"),
    "--initial stream": (2, "nothing would happen"),
    "--boundary x-=outflow": (2, "'outflow'; allowed are wall, farfield, vortex, periodic"),
    "--boundary x-=wall": (2, "x-=wall, x+=periodic; allowed: periodic for both or neither"),
    "--t-end 0": (2, "--t-end 0.0; allowed: positive"),
    "--box -2": (2, "--box -2; allowed: 1 to 2147483647"),
    "--center 0 nan": (2, "--center 0 nan; allowed: finite numbers"),
    "--strength nan": (2, "--strength nan; allowed: -1e+15 to 1e+15"),
    "--radius inf": (2, "--radius inf; allowed: 1e-15 to 1e+15"),
    "--mach 0": (2, "--mach 0.0; allowed: 1e-06 to 1e+06"),
    "--mach 1e-200": (2, "--mach 1e-200; allowed: 1e-06 to 1e+06"),
    "--mach 1e200": (2, "--mach 1e+200; allowed: 1e-06 to 1e+06"),
    "--mach nan": (2, "--mach nan; allowed"),
    "--strength 1e308": (2, "--strength 1e+308; allowed"),
    "--radius -1": (2, "--radius -1.0; allowed: 1e-15 to 1e+15"),
    "--strength 17.1": (2, "a vacuum in the core; allowed: less than 17.04"),
    "--dt 0": (2, "dt"),
    "--output f.vtk": (2, "a name that ends in .vtu"),
    "--resume": (2, "--resume needs"),
    "--order 7": (2, "order = 7"),
}


@pytest.mark.parametrize("options", REFUSED)
def test_wrong_options_are_refused_before_anything_is_computed(
    options, tmp_path, monkeypatch, capsys
):
    small = "" if "--mesh" in options else "--box 2"
    assert_refused(
        lambda options: run(small, options), options, REFUSED, tmp_path, monkeypatch, capsys
    )


def test_the_strongest_vortex_has_next_to_no_pressure():
    """Of two decimals less than `--strength` allows."""
    vortex = Vortex(strength=17.03)
    assert 0 < vortex(np.zeros(1), np.zeros(1), 0.0)[0, 0] < 1e-3


@pytest.mark.parametrize(("order", "dtype"), [(0, "float64"), (2, "float32"), (5, "float64")])
def test_the_memory_of_a_run_is_as_estimated(order, dtype):
    solver = Solver(box((16, 16), -5.0, 5.0, periodic=True), order, dtype, "reference")
    u = solver.interpolate(lambda x, y: Vortex(period=10.0)(x, y, 0.0))
    solver.run(u, 1e-3)
    tracemalloc.start()
    solver.run(u, 1e-3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.75 < (peak + u.nbytes) / solver.memory_bytes() < 1.2
