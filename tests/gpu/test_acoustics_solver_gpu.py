"""The acoustic solver on a real device: recorded steps, boundary functions, the cube's mode."""

import numpy as np
import pytest

from dgbook.acoustics import Solver, exact, reference
from dgbook.acoustics.reference import BASES
from dgbook.acoustics.solver import PATHS
from dgbook.gpu import device
from dgbook.lab import acoustics as measure
from dgbook.lab.rivals.acoustics import ProductStage
from dgbook.mesh import box

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)


@pytest.fixture(params=[(b, p) for b in BASES for p in PATHS], ids=lambda case: "-".join(case))
def kernels(request):
    return dict(zip(("basis", "path"), request.param, strict=True))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [1, 4, 7])
def test_steps_equal_the_reference(order, kernels, dtype):
    mesh = box((3, 2, 2))
    random = np.random.default_rng(0)
    walls = ("soft", "rigid", "absorbing", "soft", "rigid", "absorbing")
    problem = {
        "boundary": dict(zip(mesh.boundary, walls, strict=True)),
        "kappa": random.uniform(0.5, 2, mesh.K),
        "rho": random.uniform(0.5, 2, mesh.K),
    }
    ours = Solver(mesh, order, dtype, GPU, **kernels, **problem)
    truth = Solver(mesh, order, "float64", "reference", **problem)
    u = random.standard_normal((4, mesh.K, ours.element.Np))
    t_end = 6.5 * truth.cfl_dt()  # far from a whole number: both take seven steps
    found, expected = (s.run(u, t_end) for s in (ours, truth))
    tolerance = 400 * np.finfo(dtype).eps
    assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()


def test_a_function_as_boundary_is_evaluated_by_python(kernels):
    mesh = box((2, 2, 2))
    wave = exact.PlaneWave((1, 2, 2), 0.5, 0.3)
    ours, truth = (
        Solver(mesh, 3, "float64", where, boundary=wave, **options)
        for where, options in ((GPU, kernels), ("reference", {}))
    )
    u = ours.interpolate(lambda x, y, z: wave(x, y, z, 0.0))
    assert np.abs(ours.run(u, 0.1) - truth.run(u, 0.1)).max() < 1e-12


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_the_mode_of_the_cube_converges(order, kernels):
    mode = exact.CubeMode()
    errors = []
    for n in (2, 4):
        solver = Solver(box((n, n, n), -1.0, 1.0), order, "float64", GPU, **kernels)
        u = solver.interpolate(lambda x, y, z: mode(x, y, z, 0.0))
        errors.append(solver.l2_error(solver.run(u, 0.5), mode, 0.5))
    assert abs(np.log2(errors[0] / errors[1]) - (order + 1)) < 0.6


def test_a_march_goes_on_where_it_stopped(kernels):
    solver = Solver(box((2, 2, 2)), 3, "float32", GPU, **kernels)
    u = np.random.default_rng(3).standard_normal((4, solver.mesh.K, solver.element.Np))
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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [1, 5, 8])
def test_the_stage_by_cublas_equals_the_reference(order, dtype):
    mesh = box((3, 2, 2))
    kappa, rho = np.random.default_rng(1).uniform(0.5, 2, (2, mesh.K))
    operator, double = (
        reference.assemble(mesh, order, kappa=kappa, rho=rho, dtype=d) for d in (dtype, "float64")
    )
    u, res = np.random.default_rng(2).standard_normal((2, 4, mesh.K, operator.basis.element.Np))
    rival = ProductStage(operator, GPU)
    data = GPU.zeros(4 * operator.boundary_points[0].size, dtype)
    mine, own_res = (rival.launcher.upload(v) for v in (u, res))
    rival.stage(mine, own_res, data, -0.4, 0.7, 0.1)
    wanted = -0.4 * res + 0.1 * reference.rhs(double, u)
    tolerance = 100 * np.finfo(dtype).eps * np.abs(wanted).max()
    assert np.abs(rival.launcher.download(own_res) - wanted).max() < tolerance
    assert np.abs(rival.launcher.download(mine) - (u + 0.7 * wanted)).max() < tolerance


def test_errors_over_time_are_those_of_rounding(monkeypatch):
    """chan2015, Figure 6, in short: at order 7 in fp32 on 1,536 elements."""
    monkeypatch.setattr(measure, "ERROR_END", 1.0)
    mesh = box(measure.ERROR_CELLS, -1.0, 1.0)
    assert mesh.K == 1536
    for basis in BASES:
        solver = Solver(mesh, 7, "float32", GPU, basis)
        times, errors = measure.errors_in_time(solver, exact.CubeMode())
        assert len(times) > 10 and 1e-8 < max(errors) < 3e-5
