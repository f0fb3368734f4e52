"""The longest stable step on a real device: found there, the same as on the host, and stable."""

import numpy as np
import pytest

from dgbook import acoustics, linear, maxwell
from dgbook.gpu import device
from dgbook.mesh import box
from dgbook.nodal.linear import METHODS

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)
MESH = box((3, 2, 2), 0.0, (1.0, 0.8, 0.7))
MAKE = {
    "maxwell": lambda order, **options: maxwell.Solver(MESH, order, **options),
    "paper": lambda order, **options: maxwell.Solver(MESH, order, path="paper", **options),
    "central": lambda order, **options: maxwell.Solver(MESH, order, flux="central", **options),
    "acoustics": lambda order, **options: acoustics.Solver(MESH, order, **options),
    "bernstein": lambda order, **options: acoustics.Solver(
        MESH, order, basis="bernstein", **options
    ),
    "linear": lambda order, **options: linear.Solver(
        MESH, order, linear.wave(3), boundary="wall", **options
    ),
}


@pytest.mark.parametrize("size", [1, 37, 100_003])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dots_and_combinations(dtype, size):
    random = np.random.default_rng(1)
    rows, vector = random.standard_normal((9, size)), random.standard_normal(size)
    rows, vector = rows.astype(dtype), vector.astype(dtype)
    there, w = GPU.array(rows), GPU.array(vector)
    expected = rows.astype(np.float64) @ vector
    np.testing.assert_allclose(GPU.dots(there, w), expected, rtol=1e-6, atol=1e-6 * size**0.5)
    np.testing.assert_allclose(GPU.dots(there[:4], w), expected[:4], rtol=1e-6, atol=1e-6 * size)
    factors = random.standard_normal(4)
    GPU.subtract(there[:4], factors, w)
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(GPU.to_numpy(w), vector - factors @ rows[:4], atol=tolerance)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", MAKE)
def test_the_step_is_the_hosts_and_is_stable(name, dtype, method):
    if method == "ndb14_factored" and name in ("paper", "central"):
        pytest.skip("these kernels take no whole stage")
    order = 3
    here, host = (
        MAKE[name](order, dtype=kind, device=d, method=method)
        for kind, d in ((dtype, GPU), ("float64", "reference"))
    )
    dt = here.stable_dt()
    assert dt == pytest.approx(host.stable_dt(), rel=0.02)
    u = np.random.default_rng(2).standard_normal((len(here.fields), MESH.K, here.element.Np))
    u = u.astype(dtype)
    energies = [here.energy(u)]
    here.run(u, 300 * dt, dt, observe=lambda t, v: energies.append(here.energy(v)), every=100)
    assert (np.diff(energies) < 0).all() or name == "central"
    assert energies[-1] < energies[0] * (1 + 1e-4)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *((name, "ndb14") for name in MAKE),
        *((name, "ndb14_factored") for name in MAKE if name not in ("paper", "central")),
    ],
)
def test_fourteen_stages_equal_the_references(name, method):
    here, host = (MAKE[name](2, device=d, method=method) for d in (GPU, "reference"))
    u = np.random.default_rng(3).standard_normal((len(here.fields), MESH.K, here.element.Np))
    dt = host.cfl_dt()
    np.testing.assert_allclose(here.run(u, 3 * dt, dt), host.run(u, 3 * dt, dt), atol=1e-11)
