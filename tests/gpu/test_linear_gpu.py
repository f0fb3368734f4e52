"""The linear family's kernels on a real device: all orders, both precisions, both paths."""

import numpy as np
import pytest

from dgbook import linear
from dgbook.gpu import device
from dgbook.lab import linear as measure
from dgbook.lab.floor import Ceilings
from dgbook.lab.records import validate
from dgbook.lab.rivals import linear as matmul
from dgbook.linear import reference
from dgbook.linear.plan import Plan
from dgbook.mesh import box
from dgbook.time import lsrk45

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

SEED = np.random.SeedSequence().entropy  # fresh inputs in every run
RANDOM = np.random.default_rng(SEED)
VELOCITY = (1.0, -0.7, 0.4)
CELLS = {1: 37, 2: (5, 4), 3: (3, 2, 2)}  # no multiple of what a block holds
SYSTEMS = {
    "advection": lambda dim: linear.advection(VELOCITY[:dim]),
    "wave": linear.wave,
}
CASES = [
    (dim, order, name)
    for dim, orders in ((1, range(1, 11)), (2, range(1, 9)), (3, range(1, 9)))
    for order in orders
    for name in SYSTEMS
]


def make(dim, order, name, dtype, device=GPU, **options):
    """Advection is periodic, waves run between walls, one of which is open."""
    mesh = box(CELLS[dim], periodic=name == "advection")
    boundary = {b: "wall" for b in mesh.boundary} | ({} if name == "advection" else {"x+": "soft"})
    return linear.Solver(
        mesh, order, SYSTEMS[name](dim), "upwind", boundary, dtype, device, **options
    )


def random_state(s):
    return RANDOM.standard_normal((s.system.n, s.mesh.K, s.element.Np)).astype(s.dtype)


def assert_close(s, ours, expected):
    found = s.launcher.download(ours)
    assert found.dtype == s.dtype
    assert np.abs(found - expected).max() < 100 * np.finfo(s.dtype).eps * np.abs(expected).max()


@pytest.mark.parametrize(("dim", "order", "name"), CASES)
def test_kernels_against_the_reference(dim, order, name, dtype):
    s = make(dim, order, name, dtype)
    double = make(dim, order, name, "float64", "reference").operator
    u, res = random_state(s), random_state(s)
    data = reference.boundary_data(double, 0.0)
    v = reference.volume(double, u.astype(np.float64))
    f = reference.surface(double, u.astype(np.float64), data)

    launcher = s.launcher
    state, rhs = launcher.upload(u), GPU.empty(launcher.zeros().shape, s.dtype)
    launcher.volume(state, rhs)
    assert_close(s, rhs, v)
    rhs = launcher.upload(res)
    launcher.surface(state, rhs)
    assert_close(s, rhs, res + f)

    stage, dt = 3, 0.1 * s.cfl_dt()
    residual, new = launcher.upload(res), GPU.empty(state.shape, s.dtype)
    launcher.fused(state, residual, new, lsrk45.A[stage], lsrk45.B[stage], dt)
    expected = lsrk45.A[stage] * res + dt * (v + f)
    assert_close(s, residual, expected)
    assert_close(s, new, u + lsrk45.B[stage] * expected)
    assert np.array_equal(launcher.download(state), u)


@pytest.mark.parametrize(("dim", "order"), [(1, 3), (1, 8), (2, 4), (3, 2), (3, 7)])
def test_every_plan_computes_the_same(dim, order, dtype):
    first = make(dim, order, "advection", dtype)
    u = random_state(first)
    expected = reference.rhs(make(dim, order, "advection", "float64", "reference").operator, u)
    for plan in Plan.default(first.shape).candidates(first.shape):
        launcher = first.launcher.planned(plan)
        state, res, new = launcher.upload(u), launcher.zeros(), launcher.zeros()
        launcher.fused(state, res, new, 0.0, 0.5, 1.0)
        assert_close(first, res, expected)


@pytest.mark.parametrize("path", ["fused", "split"])
@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_recorded_steps_equal_the_reference(dim, name, path):
    """An odd and an even number of steps, since a fused step ends in the other array."""
    s, cpu = make(dim, 3, name, "float64", path=path), make(dim, 3, name, "float64", "reference")
    u, dt = random_state(s), cpu.cfl_dt()
    for steps in (1, 2, 7):
        expected = cpu.run(u, steps * dt, dt=dt)
        assert np.abs(s.run(u, steps * dt, dt=dt) - expected).max() < 1e-11


@pytest.mark.parametrize("path", ["fused", "split"])
def test_boundary_data_follow_the_time(path):
    exact = linear.transported(1.0, lambda x: np.sin(3 * x))
    boundary = {"x-": exact, "x+": "outflow"}
    arguments = (box(8), 5, linear.advection(1.0), "upwind", boundary, "float64")
    s = linear.Solver(*arguments, GPU, path)
    u = s.run(s.interpolate(lambda x: exact(x, 0.0)), 1.5)
    assert s.l2_error(u, exact, 1.5) < 1e-6
    expected = linear.Solver(*arguments, "reference").run(
        s.interpolate(lambda x: exact(x, 0.0)), 1.5
    )
    assert np.abs(u - expected).max() < 1e-12


def test_the_rival_computes_the_same_stage(dtype):
    for name in SYSTEMS:
        s = make(3, 4, name, dtype)
        double = make(3, 4, name, "float64", "reference").operator
        u, res = random_state(s), random_state(s)
        state, residual = s.launcher.upload(u), s.launcher.upload(res)
        matmul.stage(s.launcher, state, residual, 2, 1e-3)
        assert_close(s, residual, lsrk45.A[2] * res + 1e-3 * reference.rhs(double, u))


def test_measurements_make_a_record():
    """The rows of `bench`: valid, and none faster than its floor or stopped by Python."""
    s = make(3, 3, "advection", "float32")
    made_up = Ceilings(copy_TBps=1e3, fp32_TFLOPs=1e5, fp64_TFLOPs=1e5)
    rows = list(measure.measured(s, made_up, measure.MEASURED))
    assert [row["path"] for row in rows] == list(measure.MEASURED)
    validate(
        {
            "name": "linear/stage",
            "gpu": GPU.name,
            "compute_capability": ".".join(map(str, GPU.compute_capability)),
            "driver": GPU.driver,
            "cuda": GPU.runtime,
            "versions": {},
            "commit": "none",
            "date": "2000-01-01",
            "ceilings": made_up.as_dict(),
            "rows": rows,
        }
    )
    assert all(0 < row["efficiency"] < 1 for row in rows)
    assert not any(row["host_bound"] for row in rows if row["path"] in ("fused", "split"))
