"""Which kernel makes a fused stage in the Bernstein basis: by a plan, by timings, by default."""

from dataclasses import replace

import numpy as np
import pytest
from acoustics_cases import operators

from dgbook.acoustics import reference
from dgbook.acoustics.launch import bernstein_fused
from dgbook.acoustics.launch.bernstein_fused import BernsteinFusedLauncher
from dgbook.acoustics.launch.fused import FusedLauncher
from dgbook.acoustics.plan import BernsteinFusedPlan, Shape
from dgbook.gpu import device
from dgbook.gpu.plan import choose, shipped
from dgbook.gpu.tune import tune
from dgbook.nodal.fused import FusedPlan

SIMULATOR = device("simulator")
GPU = replace(SIMULATOR, kind="cuda", compute_capability=(9, 0))
SPARSE, DENSE = BernsteinFusedPlan("numba", 32, 2, 2), FusedPlan("numba", 2, 2, 2, 2)


def du_dt(launcher, u):
    """What a launcher makes of states in the unknowns of its basis, without boundary data."""
    out = launcher.zeros()
    faces = launcher.operator.boundary_points[0].size
    launcher.rhs(launcher.upload(u), np.zeros(4 * faces, u.dtype), out)
    return launcher.download(out)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_both_kernels_compute_the_same(order):
    random = np.random.default_rng(order)
    operator = operators(order, "float64", "bernstein", random)[0]
    operator = replace(operator, sources=())
    u = random.standard_normal((4, operator.mesh.K, operator.basis.element.Np))
    expected = reference.rhs(operator, u)
    for plan, kind in ((SPARSE, BernsteinFusedLauncher), (DENSE, FusedLauncher)):
        launcher = bernstein_fused.launcher(operator, SIMULATOR, plan)
        assert type(launcher) is kind and launcher.plan is plan
        error = np.abs(du_dt(launcher, u) - expected).max()
        assert error < 40 * np.finfo(float).eps * np.abs(expected).max()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("language", ["cuda", "numba"])
@pytest.mark.parametrize("capability", [None, (7, 5), (9, 0)])
def test_where_nothing_was_tuned(dtype, language, capability):
    """Dense at order 1, as acoustics/stage has it, by the plan of the nodal basis."""
    for order in range(1, 13):
        shape = Shape(order, dtype)
        kind = FusedPlan if order == 1 else BernsteinFusedPlan
        plan = shipped(BernsteinFusedPlan, shape, capability, language)
        assert plan == shipped(kind, shape, capability, language) and isinstance(plan, kind)


def test_the_tuner_remembers_plans_of_either_kind(monkeypatch, tmp_path):
    """In its file the fields of a plan tell the kind."""
    monkeypatch.setattr("dgbook.gpu.tune.cache_folder", lambda: tmp_path)
    monkeypatch.setattr("dgbook.gpu.tune.measurable", lambda device: GPU)
    seconds = {SPARSE: 2.0, DENSE: 1.0}

    def measured(plan, *_, **__):
        return type("Timing", (), {"median": seconds[plan], "iqr": 0.0, "samples": 20})

    def best(order):
        shape = Shape(order, "float32")
        name = SPARSE.subject(shape)
        tune(name, list(seconds), lambda plan: plan, GPU, order, "float32", progress=False)
        return choose(BernsteinFusedPlan, shape, GPU, "numba")

    monkeypatch.setattr("dgbook.gpu.tune.measure", measured)
    assert best(2) == DENSE
    seconds[fast := replace(SPARSE, teams=1)] = 0.5
    assert best(2) == best(1) == fast
    seconds[replace(DENSE, rows=1000)] = 0.1  # cannot run
    assert best(2) == fast, "the next best"
