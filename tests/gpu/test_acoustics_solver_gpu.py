"""The acoustic solver on a real device: recorded steps, boundary functions, the cube's mode."""

import numpy as np
import pytest

from dgbook.acoustics import Solver, exact
from dgbook.acoustics.reference import BASES
from dgbook.acoustics.solver import PATHS
from dgbook.gpu import device
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
    truth = Solver(mesh, order, "float64", "cpu", **problem)
    u = random.standard_normal((4, mesh.K, ours.element.Np))
    t_end = 7 * truth.stable_dt()
    found, expected = (s.run(u, t_end) for s in (ours, truth))
    tolerance = 400 * np.finfo(dtype).eps
    assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()


def test_a_function_as_boundary_is_evaluated_by_python(kernels):
    mesh = box((2, 2, 2))
    wave = exact.PlaneWave((1, 2, 2), 0.5, 0.3)
    ours, truth = (
        Solver(mesh, 3, "float64", where, boundary=wave, **options)
        for where, options in ((GPU, kernels), ("cpu", {}))
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
