"""The Euler solver on a real device: recorded steps, live boundaries, convergence, no gas."""

import numpy as np
import pytest
from euler_cases import BOUNDARY, STREAM, a_breeze, mesh_of

from dgbook import euler
from dgbook.euler import exact
from dgbook.euler.problem import conservative
from dgbook.euler.solver import PATHS
from dgbook.gpu import device
from dgbook.mesh import box

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)
STILL = {"x-": "wall", "x+": STREAM, "y-": STREAM, "y+": "wall"}


@pytest.fixture(params=PATHS)
def path(request):
    return request.param


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("boundary", [STILL, BOUNDARY, None], ids=["still", "live", "periodic"])
@pytest.mark.parametrize("order", [0, 1, 3, 6])
def test_steps_equal_the_reference(order, boundary, dtype, path):
    random = np.random.default_rng(order)
    mesh = mesh_of(boundary is None, (7, 5), random)
    ours, truth = (
        euler.Solver(mesh, order, d, where, boundary=boundary, path=path)
        for d, where in ((dtype, GPU), ("float64", "reference"))
    )
    u = a_breeze(truth.operator, random).astype(dtype)
    dt = truth.stable_dt(u) / 4  # what comes in is a gale
    found, expected = (s.run(u, 0.2 + 5 * dt, dt, t=0.2) for s in (ours, truth))
    assert found.dtype == dtype
    assert np.abs(found - expected).max() < 300 * np.finfo(dtype).eps * np.abs(expected).max()


@pytest.mark.parametrize(("p", "n"), [(1, 20), (2, 12), (3, 10), (4, 8)])
def test_the_error_falls_as_h_to_the_p_plus_1(p, n, path):
    vortex = exact.StrongVortex(center=(0.0, 0.0), period=10.0)
    errors = []
    for cells in (2 * n, 4 * n):
        s = euler.Solver(box((cells, cells), -5.0, 5.0, periodic=True), p, device=GPU, path=path)
        u = s.interpolate(lambda x, y: vortex(x, y, 0.0))
        errors.append(s.l2_error(s.run(u, 0.2), vortex, 0.2))
    assert abs(np.log2(errors[0] / errors[1]) - (p + 1)) < 0.5, errors


def test_a_march_goes_on_where_it_stopped(path):
    s = euler.Solver(box((6, 6), periodic=True), 3, "float32", GPU, path=path)
    u = a_breeze(s.operator, np.random.default_rng(1))
    whole = s.march(u, 1.0)
    for _ in range(40):  # one copy of the state lies behind
        whole.step()
    state, raw = whole.state(), whole.raw()
    rest = s.march(state, 1.0, whole.dt, done=40)
    assert rest.restore(state, raw)
    for _ in range(40):
        whole.step()
        rest.step()
    assert np.array_equal(whole.state(), rest.state())


@pytest.mark.parametrize("observed", [1, 1000])
def test_the_error_is_that_of_the_host(observed, path):
    mesh = box((8, 1), (-1.0, 0.0), (1.0, 0.25), periodic=(False, True))

    def apart(x, y, t=0.0):
        center = x.mean(axis=-1, keepdims=True) + 0 * x
        return conservative(1.0, np.where(center < 0, -0.5, 0.5), 0.0, 0.2)

    errors = []
    for where in (GPU, "reference"):
        s = euler.Solver(mesh, 1, device=where, boundary=apart, path=path)
        with pytest.raises(euler.FlowError) as caught:
            s.run(s.interpolate(apart), 1.0, observe=lambda t, v: None, every=observed)
        errors.append(caught.value)
    ours, truth = errors
    assert (ours.time, ours.element) == (truth.time, truth.element)
    np.testing.assert_allclose(ours.state, truth.state, rtol=1e-9)
