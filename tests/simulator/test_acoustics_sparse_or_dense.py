"""Which kernel makes a fused stage in the Bernstein basis: by a plan, by timings, by default."""

from dataclasses import replace

import numpy as np
import pytest
from acoustics_cases import operators

from dgbook.acoustics import reference, sparse_or_dense
from dgbook.acoustics.launch import bernstein_fused, fused
from dgbook.acoustics.launch.bernstein_fused import BernsteinFusedLauncher, BernsteinFusedPlan
from dgbook.acoustics.launch.fused import FusedLauncher
from dgbook.acoustics.sparse_or_dense import choose_plan, default_plan, plans, subject
from dgbook.gpu import device
from dgbook.gpu.tune import tune
from dgbook.nodal.fused import FusedPlan

SIMULATOR = device("simulator")
GPU = replace(SIMULATOR, kind="cuda", compute_capability=(9, 0))
SPARSE, DENSE = BernsteinFusedPlan("numba", 32, 2, 2), FusedPlan("numba", 2, 2, 2, 2)


@pytest.fixture
def timings(monkeypatch):
    """What the tuner remembers, by subject."""
    known = {}

    def remembered(kind, name, device, order, dtype, legal):
        plan = known.get(name)
        return plan if isinstance(plan, kind) and legal(plan) else None

    for module in ("acoustics.sparse_or_dense", "fused"):
        monkeypatch.setattr(f"dgbook.{module}.remembered", remembered)
    return known


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
        launcher = sparse_or_dense.launcher(operator, SIMULATOR, plan)
        assert type(launcher) is kind and launcher.plan is plan
        error = np.abs(du_dt(launcher, u) - expected).max()
        assert error < 40 * np.finfo(float).eps * np.abs(expected).max()


def test_defaults():
    """Dense at order 1, as acoustics/stage has it."""
    for dtype, capability, language in (
        ("float32", (9, 0), "cuda"),
        ("float64", (9, 0), "cuda"),
        ("float64", None, "numba"),
    ):
        for order in range(1, 13):
            plan = default_plan(order, dtype, capability, language)
            assert isinstance(plan, FusedPlan) == (order == 1)
            module = fused if order == 1 else bernstein_fused
            assert plan == module.default_plan(order, dtype, capability, language)
    assert choose_plan(1, "float32", SIMULATOR) == default_plan(1, "float32", None, "numba")


def test_what_is_known_of_a_kernel_counts(timings):
    """Without a comparison the default's kernel runs, in its own best plan."""
    dense, sparse = FusedPlan("cuda", 2, 1, 1), BernsteinFusedPlan("cuda", 64, 1, 1)
    timings |= {fused.subject("cuda"): dense, bernstein_fused.subject("cuda"): sparse}
    assert choose_plan(1, "float32", GPU) == dense
    assert choose_plan(3, "float32", GPU) == sparse
    assert plans(3, "float32", GPU) == [sparse, dense]


def test_a_comparison_counts_more(timings):
    dense, sparse = FusedPlan("cuda", 2, 1, 1), BernsteinFusedPlan("cuda", 64, 1, 1)
    timings[subject("cuda")] = dense
    assert choose_plan(3, "float32", GPU) == dense
    timings[subject("cuda")] = sparse
    assert choose_plan(1, "float32", GPU) == sparse
    assert choose_plan(1, "float32", GPU, "numba") == default_plan(1, "float32", None, "numba")
    timings[subject("cuda")] = replace(dense, rows=1000)  # illegal today
    assert choose_plan(3, "float32", GPU) == bernstein_fused.choose_plan(3, "float32", GPU)


def test_the_tuner_remembers_plans_of_either_kind(monkeypatch, tmp_path):
    """In its file the fields of a plan tell the kind."""
    monkeypatch.setattr("dgbook.gpu.tune.cache_folder", lambda: tmp_path)
    monkeypatch.setattr("dgbook.gpu.tune.measurable", lambda device: GPU)
    seconds = {SPARSE: 2.0, DENSE: 1.0}

    def measured(plan, *_, **__):
        return type("Timing", (), {"median": seconds[plan], "iqr": 0.0, "samples": 20})

    monkeypatch.setattr("dgbook.gpu.tune.measure", measured)
    tune(subject("numba"), list(seconds), lambda plan: plan, GPU, 2, "float32", progress=False)
    assert choose_plan(2, "float32", GPU, "numba") == DENSE
    seconds[fast := replace(SPARSE, teams=1)] = 0.5
    tune(subject("numba"), list(seconds), lambda plan: plan, GPU, 2, "float32", progress=False)
    assert choose_plan(2, "float32", GPU, "numba") == fast
