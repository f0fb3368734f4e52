"""python -m dgbook run hdg: what it finds, writes and refuses, and what memory it says it takes."""

import tracemalloc
from dataclasses import replace
from pathlib import Path

import meshio
import numba
import numpy as np
import pytest
from scipy.sparse.linalg import splu

from dgbook import hdg
from dgbook.cli import hdg as command
from dgbook.cli.fields.hdg import write_fields
from dgbook.cli.main import main
from dgbook.gpu import Device, device
from dgbook.hdg import solver
from dgbook.hdg.blocks import face_columns, random_matrix
from dgbook.hdg.exact import Couette
from dgbook.mesh import box

ROOT = Path(__file__).parents[2]
AIRFOIL = ROOT / "chapters" / "meshes" / "airfoil.msh"
CPU = device("cpu")
NONE = Device("cuda", "a GPU", "A GPU of no memory.", memory_bytes=10**6)


def run(*options):
    """The command on the CPU, given as texts with several words, or paths."""
    words = [w for o in options for w in ([str(o)] if isinstance(o, Path) else o.split())]
    return main(["run", "hdg", "--device", "cpu", *words])


def number(printed, name):
    """The number after some words."""
    return float(printed.partition(name)[2].split()[0].rstrip(","))


def residuals(printed):
    lines = [line for line in printed.splitlines() if line.startswith("residual")]
    return [number(line, "start" if "start" in line else f"step {i}") for i, line in
            enumerate(lines)]  # fmt: skip


# ---------------------------------------------------------------------------------------- runs


@pytest.mark.parametrize("linear", ["direct", "gmres"])
def test_diffusion_converges_as_it_should(linear, tmp_path, capsys):
    errors = []
    for cells in (2, 4):
        assert run(f"--order 2 --cells {cells} --linear {linear}") == 0
        printed = capsys.readouterr().out
        errors.append(
            [number(printed, f"error of {name}") for name in ("u", "q", "u, post-processed")]
        )
        assert ("GMRES" in printed) == (linear == "gmres")
        if linear == "gmres":
            assert 3 < number(printed, ", GMRES ") < 60
    rates = np.log2(np.divide(*errors))
    np.testing.assert_allclose(rates, [3, 3, 4], atol=0.35)
    assert "32 triangles of order 2, 56 faces: 168 unknowns of the trace, 3 a face" in printed


def test_numpy_finds_the_same_on_one_core(capsys):
    cores = numba.get_num_threads()
    try:
        found = []
        for device in ("cpu", "reference"):
            options = ["--device", device, "--threads", "1", "--order", "1", "--cells", "2"]
            assert main(["run", "hdg", *options]) == 0
            assert numba.get_num_threads() == 1
            found.append(number(capsys.readouterr().out, "error of u"))
    finally:
        numba.set_num_threads(cores)
    assert found[0] == found[1] > 0


def test_convection_of_a_field_in_space(tmp_path, capsys):
    path = tmp_path / "u.vtu"
    options = "--linear direct --problem convection --dim 3 --cells 2 --order 2"
    options += " --velocity 1 2 0 --diffusivity 0.5"
    assert run(options, "--output", path) == 0
    printed = capsys.readouterr().out
    assert "48 tetrahedra of order 2, 120 faces: 720 unknowns" in printed
    assert f"written: {path}" in printed
    found = meshio.read(path)
    exact = command.Sines()
    u, q = found.point_data["u"], found.point_data["q"]
    assert list(found.point_data) == ["u", "q"] and q.shape == (len(u), 3)
    velocity = 1.0, 2.0, 0.0
    problem = hdg.ConvectionDiffusion(exact.source(velocity, 0.5), exact, velocity, 0.5)
    result = hdg.solve(problem, box((2, 2, 2)), 2)
    np.testing.assert_allclose(u, result.u.ravel(), atol=1e-12)
    np.testing.assert_allclose(q.T, result.q.reshape(3, -1), atol=1e-11)
    assert number(printed, "error of u") == pytest.approx(result.l2_error(exact), rel=1e-3)


def test_sines_have_the_gradient_and_the_source_they_say():
    exact, x, h = command.Sines(), np.array([0.3, 0.7, 0.2])[:, None], 1e-4
    gradient = exact.gradient(*x)[0]
    steps = [exact(*(x + s * h * e[:, None]))[0] for s in (1, -1) for e in np.eye(3)]
    np.testing.assert_allclose((np.subtract(steps[:3], steps[3:])) / (2 * h), gradient, rtol=1e-6)
    laplacian = (sum(steps) - 6 * exact(*x)[0]) / h**2
    found = exact.source((2.0, 3.0, 4.0), 0.1)(*x)[0]
    np.testing.assert_allclose(found, np.dot([2, 3, 4], gradient) - 0.1 * laplacian, rtol=1e-5)


def test_the_flow_between_plates(tmp_path, capsys):
    path = tmp_path / "plates.vtu"
    assert run("--problem couette --cells 2 --order 2 --reynolds 3 --output", path) == 0
    printed = capsys.readouterr().out
    assert "Reynolds number 3, Mach number 0.15" in printed
    history = residuals(printed)
    flow = Couette(3.0)
    result = hdg.solve(flow.gas, box((2, 2)), 2, tolerance=1e-9)
    assert history[0] == pytest.approx(result.history[0], rel=1e-3)
    # Trace systems are solved no better than the next step needs.
    assert (np.divide(history[1:], history[:-1]) < 0.03).all() and history[-1] < 1e-9
    assert len(history) <= len(result.history) + 1
    assert number(printed, "error of u") == pytest.approx(result.l2_error(flow), rel=1e-3)
    # Fields as they are: u(y) = y log(1 + y), and its slope without a sign is the vorticity.
    found = meshio.read(path)
    data, y = found.point_data, found.points[:, 1]
    names = ["rho", "velocity", "pressure", "temperature", "Mach", "vorticity"]
    assert list(data) == names
    velocity, slope, _ = flow.velocity(y)
    assert np.abs(data["velocity"][:, 0] - velocity).max() < 5e-3
    assert np.abs(data["vorticity"] + slope).max() < 0.1
    assert np.abs(data["temperature"] - flow.temperature(y)[0]).max() < 2e-3
    assert np.abs(data["pressure"] * 1.4 * 0.15**2 - 1).max() < 2e-3
    speed = 0.15 * velocity / np.sqrt(flow.temperature(y)[0])
    assert np.abs(data["Mach"] - speed).max() < 1e-3


def test_a_cylinder_in_a_stream(capsys):
    options = "--problem cylinder --around 12 --radius 8 --order 1"
    assert run(options) == 0
    printed = capsys.readouterr().out
    flow = hdg.flow_past_cylinder(order=1, around=12, radius=8.0, tolerance=1e-9)
    assert "boundaries cylinder=adiabatic, farfield=farfield" in printed
    assert number(printed, "drag") == pytest.approx(flow.drag, abs=1e-4)
    assert number(printed, "wake") == pytest.approx(flow.wake, abs=1e-4)
    # From behind there is no wake to look for in front; the mesh is its own mirror image.
    assert run(options, "--angle 180") == 0
    printed = capsys.readouterr().out
    assert number(printed, "drag") == pytest.approx(flow.drag, rel=0.05) and "wake" not in printed
    assert abs(number(printed, "lift")) < 1e-4


def test_a_body_from_a_file(monkeypatch, capsys):
    results = []

    def watched(*arguments, **options):
        results.append(hdg.solve(*arguments, **options | {"max_steps": 30}))
        return results[-1]

    monkeypatch.setattr(command, "solve", watched)
    options = "--problem cylinder --order 0 --reynolds 50 --temperature 1.2 --angle 5"
    assert run(options, "--mesh", AIRFOIL, "--boundary airfoil=isothermal") == 0
    printed = capsys.readouterr().out
    assert "50 of the unit of length, Mach number 0.1, 5 degrees" in printed
    assert "airfoil=isothermal, farfield=farfield" in printed and "wake" not in printed
    (result,) = results
    gas, angle = result.discretization.problem, np.deg2rad(5)
    assert (gas.reynolds, gas.mach, gas.boundary["airfoil"].temperature) == (50, 0.1, 1.2)
    u = gas.boundary["farfield"].state(np.zeros(1), np.zeros(1))[:, 0]
    np.testing.assert_allclose(u[:3], [1, np.cos(angle), np.sin(angle)])
    fx, fy = 2 * result.boundary_flux("airfoil")[1:3]
    drag, lift = fx * np.cos(angle) + fy * np.sin(angle), fy * np.cos(angle) - fx * np.sin(angle)
    assert number(printed, "drag") == pytest.approx(drag, abs=1e-4)
    assert number(printed, "lift") == pytest.approx(lift, abs=1e-4)


@pytest.mark.parametrize("order", [0, 2])
def test_a_field_of_any_order_is_written(order, tmp_path):
    """Order 0 with the three points of a triangle."""
    problem = hdg.Poisson(None, lambda x, y: [x, y], components=2)
    result = hdg.solve(problem, box((2, 2)), order)
    write_fields(tmp_path / "u.vtu", result)
    data = meshio.read(tmp_path / "u.vtu").point_data
    assert list(data) == ["u0", "q0", "u1", "q1"] and len(data["u0"]) == 8 * (
        3 if order == 0 else 6
    )
    if order:
        np.testing.assert_allclose(data["q1"], [[0, 1, 0]] * 48, atol=1e-12)


# ---------------------------------------------------------------------------- if Newton stops


def test_the_last_good_state_is_kept(tmp_path, capsys):
    path = tmp_path / "f.vtu"
    options = "--problem couette --cells 2 --order 1 --max-steps 2 --linear direct --output"
    assert run(options, path) == 1
    printed = capsys.readouterr()
    assert len(residuals(printed.out)) == 3
    message = " ".join(printed.err.split())
    assert f"the last good state is in {tmp_path / 'f_last_good.vtu'}" in message
    assert "after 2 steps the residual is" in message and "above 1e-09" in message
    with pytest.raises(hdg.NewtonError) as caught:
        hdg.solve(Couette().gas, box((2, 2)), 1, max_steps=2, tolerance=1e-9)
    found = meshio.read(tmp_path / "f_last_good.vtu").point_data["rho"]
    np.testing.assert_allclose(found, caught.value.state.u[0].ravel())
    assert [p.name for p in tmp_path.iterdir()] == ["f_last_good.vtu"]


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (None, 1)], ids=["stopped", "no way down"]
)
def test_whatever_ends_it_after_a_step(error, code, tmp_path, monkeypatch, capsys):
    calls, direct = [], solver.direct

    def once(matrix, rhs):
        calls.append(rhs)
        if len(calls) == 1:
            return direct(matrix, rhs)
        if error:
            raise error
        return np.full_like(rhs, np.nan)  # leads to no gas, however short the step

    monkeypatch.setattr(solver, "direct", once)
    assert (
        run("--problem couette --cells 1 --order 1 --linear direct --output", tmp_path / "f.vtu")
        == code
    )
    assert (tmp_path / "f_last_good.vtu").is_file()
    assert len(residuals(capsys.readouterr().out)) == 2


def test_gmres_that_does_not_arrive_is_no_traceback(capsys):
    assert run("--problem cylinder --around 8 --order 1 --linear gmres --restart 2") == 1
    assert "GMRES stopped after" in capsys.readouterr().err


# ------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize(("cells", "order", "n_c"), [((12, 12), 2, 4), ((3, 3, 3), 1, 1)])
def test_fill_is_what_the_direct_solver_stores(cells, order, n_c, monkeypatch):
    """To the last number, where none of the blocks' vanishes."""
    counted = []

    def watched(*arguments, **options):
        factors = splu(*arguments, **options)
        counted.append(factors.nnz)
        return factors

    monkeypatch.setattr(solver, "splu", watched)
    matrix = random_matrix(box(cells), n_c, order, "float64", np.random.default_rng(1))
    m = matrix.m
    matrix.values[:, 0] += 50 * m * np.eye(m)
    blocks = solver.fill(matrix.columns, m)
    solver.direct(matrix, np.ones((matrix.faces, m)))
    assert counted[-1] == blocks * m * m + matrix.shape[0]


@pytest.mark.parametrize("cells", [(8, 8), (40, 40), (3, 3, 3), (8, 8, 8)])
def test_fill_is_about_what_is_said_before_it_is_counted(cells):
    columns = face_columns(box(cells))
    said = solver.about_fill(len(cells), len(columns))
    assert 0.7 < said / solver.fill(columns, 1000) < 1.4


@pytest.mark.parametrize(
    ("problem", "cells", "order"),
    [
        (Couette().gas, (12, 12), 2),
        (hdg.Poisson(lambda *x: [1.0], lambda *x: [0 * x[0]]), (3, 3, 3), 3),
    ],
    ids=["gas", "diffusion"],
)
def test_a_solution_takes_about_what_is_said(problem, cells, order):
    """As NumPy's arrays are counted, with GMRES on the host."""
    mesh, linear = box(cells), hdg.Gmres(CPU, tolerance=1e-3)
    faces, n_c = len(face_columns(mesh)), len(problem.names(mesh.dim))
    said, _ = solver.memory_bytes(mesh.dim, mesh.K, faces, order, n_c, CPU, linear)
    for _ in range(2):  # the first one loads kernels
        tracemalloc.start()
        try:
            hdg.solve(problem, mesh, order, linear_solver=linear, max_steps=1)
        except (hdg.NewtonError, hdg.GmresError):
            pass
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert 0.35 < peak / said < 1.1


def test_a_gpu_needs_what_the_host_does_not(monkeypatch):
    mesh, there = box((8, 8)), replace(NONE, memory_bytes=10**9)
    linear = hdg.Gmres(CPU)
    host, device = (
        solver.memory_bytes(2, mesh.K, 208, 1, 4, place, linear) for place in (CPU, there)
    )
    assert host[0] <= device[1] and host[1] == device[0] == 0
    # Without GMRES there, elements are condensed there, and the matrix goes to the host.
    both = solver.memory_bytes(2, mesh.K, 208, 1, 4, there, None)
    matrix = 208 * 5 * 8 * 8 * 8
    assert min(both) > matrix and "MiB of the device's" in solver.check_room(
        mesh, 1, 4, there, None
    )
    for one in (linear, None):
        with pytest.raises(ValueError, match=r"need about .* MiB; allowed: the .* of a GPU"):
            solver.check_room(mesh, 1, 4, NONE, one)


def test_a_gpu_is_asked_for_its_memory_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(solver, "on_device", lambda *_: pytest.fail("something was taken"))
    with pytest.raises(ValueError, match=r"8 elements of order 1 need about .* of a GPU"):
        hdg.solve(Couette().gas, box((2, 2)), 1, device=NONE)


def test_memory_that_is_short_all_the_same_is_told(monkeypatch):
    def short(*arguments):
        raise MemoryError("Unable to allocate 7.28 TiB")

    monkeypatch.setattr(solver, "linearize", short)
    message = "8 elements of order 1 need about .* and there was less. Take a lower order"
    with pytest.raises(MemoryError, match=message):
        hdg.solve(Couette().gas, box((2, 2)), 1)


@pytest.mark.parametrize("linear", ["direct", "gmres"])
def test_what_does_not_fit_is_refused_with_its_size(linear, monkeypatch, capsys):
    def computed(*arguments, **options):
        raise AssertionError("it began")

    for name in ("discretize", "solve"):
        monkeypatch.setattr(command, name, computed)
    monkeypatch.setattr("dgbook.arguments.host_bytes", lambda: 50 * 2**20)
    assert run(f"--problem couette --cells 16 --order 4 --linear {linear}") == 2
    err = " ".join(capsys.readouterr().err.split())
    assert "512 elements of order 4, needs about" in err
    assert "allowed: the 50.0 MiB of the host" in err


# ------------------------------------------------------------------------------------ refused

REFUSED = {
    "--mesh nowhere.msh": (1, "there is no such file"),
    f"--mesh {AIRFOIL} --dim 3": (2, "has 2 dimensions; allowed: 3"),
    f"--mesh {AIRFOIL} --problem couette": (2, "the plates are at y = 0 and y = 1"),
    "--problem couette --dim 3": (2, "--dim 3 with --problem couette; allowed: 2"),
    "--problem convection --velocity 1": (2, "--velocity (1.0,); allowed: 2 numbers"),
    "--problem convection --diffusivity 0": (2, "--diffusivity 0.0; allowed: 1e-15 to 1e+15"),
    "--problem convection --diffusivity inf": (2, "--diffusivity inf; allowed: 1e-15 to 1e+15"),
    "--problem convection --velocity nan 1": (2, "--velocity nan 1; allowed: finite numbers"),
    "--problem cylinder --angle nan": (2, "--angle nan; allowed: finite numbers"),
    "--cells 0": (2, "--cells 0; allowed: 1 to 2147483647"),
    "--problem couette --mach 0": (2, "--mach 0.0; allowed: 1e-06 to 1e+06"),
    "--problem couette --reynolds nan": (2, "--reynolds nan; allowed: 1e-15 to 1e+15"),
    "--max-steps 0": (2, "--max-steps 0; allowed: positive"),
    "--problem cylinder --around 7": (2, "around = 7; allowed"),
    "--problem cylinder --boundary farfield": (2, "allowed: a wall and a farfield at least"),
    "--problem cylinder --boundary slip": (2, "allowed: a wall and a farfield at least"),
    "--problem cylinder --boundary wing=slip": (2, "no 'wing'; allowed are 'cylinder', 'far"),
    "--boundary slip": (2, "--boundary with --problem poisson"),
    "--order 16": (2, "order must be an integer from 0 to 15"),
    "--order -3": (2, "order must be an integer from 0 to 15"),
    "--output f.vtk": (2, "a name that ends in .vtu"),
    "--output nowhere/f.vtu": (1, "there is no folder nowhere"),
    "--linear gmres --restart 0": (2, "restart = 0; allowed: positive"),
    "--device simulator": (2, "--device simulator; allowed are auto, cuda, cpu and reference"),
}


@pytest.mark.parametrize("options", REFUSED)
def test_wrong_options_are_refused_before_anything_is_computed(
    options, tmp_path, monkeypatch, capsys
):
    def computed(*arguments, **others):
        raise AssertionError("a system was solved")

    monkeypatch.setattr(command, "solve", computed)
    monkeypatch.chdir(tmp_path)
    code, message = REFUSED[options]
    small = "" if "--mesh" in options or "cylinder" in options else "--cells 2"
    assert run(small, options) == code
    assert message in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())
