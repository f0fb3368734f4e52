"""What is measured of the acoustic operator makes valid records: with a clock that stands still."""

import argparse
import contextlib
from dataclasses import replace

import numpy as np
import pytest
import stopped_clock
from stopped_clock import SIMULATOR

from dgbook.acoustics import plan as plans
from dgbook.acoustics.cost import PARTS
from dgbook.acoustics.plan import (
    KERNEL_SETS,
    BernsteinFusedPlan,
    BernsteinPlan,
    ElementPlan,
    NodePlan,
    Shape,
)
from dgbook.cli import acoustics as bench
from dgbook.gpu import device
from dgbook.gpu.plan import choose
from dgbook.gpu.timing import Timing
from dgbook.gpu.tune import Result, Trial
from dgbook.lab import acoustics as measure
from dgbook.lab import measuring

CPU = device("cpu")
DOFS = 96  # of one cube of order 1


@pytest.fixture(autouse=True)
def stopped(monkeypatch):
    """Kernels run once, in the simulator, on next to no elements."""
    stopped_clock.stop(monkeypatch, measure)
    monkeypatch.setattr(measure, "CORE_DOFS", 100)


@pytest.fixture
def unlaunched(monkeypatch):
    """Nothing runs: for records whose launches other tests see."""
    monkeypatch.setattr(measure, "measure", lambda *_: Timing((stopped_clock.SECONDS,) * 20))


def made(what, orders=(1,), dtypes=("float32",), dofs=DOFS):
    """The rows of a record, checked as they are when it is saved."""
    return stopped_clock.made(measure, "acoustics", what, orders, dtypes, dofs)


def names(rows):
    return [(row["path"], row["basis"], row["variant"]) for row in rows]


def test_rows_of_trials_keep_what_was_measured():
    trials = Trial({"rows": 1}, 2e-3, 1e-5, 25), Trial({"rows": 2}, failure="no room")
    (row,) = measuring.trial_rows(Result(None, trials, 2), Timing.as_row)
    measured = {"seconds_median": 2e-3, "seconds_iqr": 1e-5, "samples": 25}
    assert row == measured | {"plan": {"rows": 1}}


SETS = [("paper", KERNEL_SETS[name][0].basis, name) for name in measure.PAPER_SETS]


def test_the_stage_by_all_paths(monkeypatch):
    monkeypatch.setattr(measure, "core_rows", lambda *_: iter(()))
    usual = BernsteinFusedPlan.default
    monkeypatch.setattr(  # none in CUDA C++
        measure, "shipped", lambda kind, shape, *_: choose(kind, shape, SIMULATOR)
    )
    monkeypatch.setattr(
        BernsteinFusedPlan, "default", lambda shape, *_: usual(shape, None, "numba")
    )
    rows = made("stage")
    fused = [("fused", "nodal", ""), ("fused", "bernstein", "dense"), ("fused", "bernstein", "")]
    assert names(rows) == [*fused, *SETS, ("rival:cublas", "nodal", "")]
    assert {row["dofs"] for row in rows} == {DOFS} and {row["size"]["K"] for row in rows} == {6}
    costs = {row["variant"]: row["flops"] for row in rows[1:]}
    assert costs["node"] == costs["element"] > costs["factored"]
    assert rows[0]["flops"] == costs["dense"] != costs[""]


def test_the_cores(unlaunched, monkeypatch):
    stopped_clock.two_cores(monkeypatch, measuring)
    rows = list(measure.core_rows(1, "float32", stopped_clock.SESSION))
    assert [row["size"]["cores"] for row in rows] == [1, 2]
    assert [row["path"] for row in rows] == ["cores", "cores"]


def test_every_kernel_of_every_set():
    rows = made("parts")
    assert names(rows) == [
        (part, kind.basis, name) for name, (kind, _) in KERNEL_SETS.items() for part in PARTS[name]
    ]
    assert {row["plan"]["K_V"] for row in rows if row["variant"] == "node"} == {64}


def test_blocks_are_tuned_part_by_part(monkeypatch):
    """The clock finds the first plan of each part the fastest, and later parts start from it."""
    for name, sizes in (("THREADS", (4, 8)), ("WARPS", (4, 8))):
        monkeypatch.setattr(plans, name, sizes)
    rows = made("blocks")
    tuned = [(row["variant"], row["path"]) for row in rows]
    bernstein = [("factored", "volume"), ("factored", "surface"), ("factored", "update")]
    expected = [
        *[("node", part) for part in NodePlan.tuned],
        *[("element", part) for part in ElementPlan.tuned],
        *[*bernstein, ("optimal", "surface"), ("unblocked", "surface")],
    ]
    assert list(dict.fromkeys(tuned)) == expected
    assert tuned.count(("element", "volume")) == 2 * 3 and tuned.count(("node", "volume")) == 2
    last = next(r for r in rows if (r["variant"], r["path"]) == ("element", "update"))
    assert last["plan"] == vars(ElementPlan(4, 4, 1, 2, 4, 16, 1))
    parts = measure.costs("element", 1, 6, "float32")
    rhs = next(r for r in rows if (r["variant"], r["path"]) == ("element", "rhs"))
    assert rhs["flops"] == sum(parts[p].flops for p in ("volume", "flux", "lift"))
    surface = next(r for r in rows if (r["variant"], r["path"]) == ("element", "surface"))
    assert surface["bytes"] == parts["flux"].bytes + parts["lift"].bytes


def test_sizes_grow(unlaunched):
    rows = made("sizes", dofs=16 * 6 * 64)
    assert [row["size"]["K"] for row in rows] == [162] * 4 + [384] * 4
    assert names(rows)[:4] == [
        ("fused", "nodal", ""),
        ("paper", "nodal", "node"),
        ("fused", "bernstein", "dense"),
        ("paper", "bernstein", "factored"),
    ]


def test_errors_over_time(monkeypatch, unlaunched):
    """Of no steps at all: the error at t = 0 is that of interpolation, in either basis."""
    monkeypatch.setattr(measure, "ERROR_CELLS", (1, 1, 1))
    monkeypatch.setattr(measure.Solver, "run", lambda *_, **__: None)
    rows = made("error", orders=(2,))
    assert names(rows) == [
        ("fused", "nodal", ""),
        ("paper", "nodal", "node"),
        ("fused", "bernstein", ""),
        ("paper", "bernstein", "factored"),
    ]
    for row in rows:
        assert row["times"] == [0.0] and 0.1 < row["errors"][0] < 1


def test_a_run_is_looked_at_now_and_then(monkeypatch):
    monkeypatch.setattr(measure, "ERROR_END", 0.8)
    monkeypatch.setattr(measure, "ERROR_LOOKS", 4)
    solver = measure.Solver(measure.box((1, 1, 1), -1.0, 1.0), 3, device="cpu")
    times, errors = measure.errors_in_time(solver, measure.CubeMode())
    assert len(times) == len(errors) == 5 and (times[0], times[-1]) == (0, pytest.approx(0.8))
    u = solver.interpolate(lambda x, y, z: measure.CubeMode()(x, y, z, 0.0))
    last = solver.l2_error(solver.run(u, 0.8), measure.CubeMode(), 0.8)
    assert errors[-1] == pytest.approx(last, rel=1e-12)


def test_counters_stand_beside_the_times(monkeypatch, unlaunched):
    programs = []

    def counted(program):
        programs.append(program)
        return [{"memory": float(i)} for i in range(15)]

    monkeypatch.setattr(measuring, "counters", counted)
    rows = made("counters")
    parts = [(part, name) for name in measure.PAPER_SETS for part in PARTS[name]]
    fused = [("fused", ""), ("fused", "dense")]
    assert [(r["path"], r["variant"]) for r in rows] == [*fused, *parts]
    assert [row["counters"]["memory"] for row in rows] == list(range(15))
    program = f"from dgbook.lab.acoustics import launch_each as f; f(1, 'float32', {DOFS})"
    assert programs == [program]


def test_what_is_profiled_is_launched_in_the_order_of_the_rows(monkeypatch):
    seen = []

    @contextlib.contextmanager
    def recording():
        seen.clear()
        yield

    def parts(launcher, states):
        named = PARTS["element" if "lift" in launcher.kernels else "node"]
        return {part: lambda part=part: seen.append(part) for part in named}

    monkeypatch.setattr(measuring, "profiled", recording)
    monkeypatch.setattr(measure, "find_device", lambda *_: SIMULATOR)
    monkeypatch.setattr(measure, "parts_of", parts)
    monkeypatch.setattr(measure, "stage_of", lambda *_: lambda: seen.append("fused"))
    measure.launch_each(1, "float32", DOFS)
    assert seen == ["fused", "fused", *(p for name in measure.PAPER_SETS for p in PARTS[name])]


@pytest.mark.parametrize("name", KERNEL_SETS)
@pytest.mark.parametrize(("order", "dtype"), [(1, "float32"), (7, "float64"), (9, "float32")])
def test_what_the_tuner_tries_can_run(name, order, dtype):
    (kind, variant), shape = KERNEL_SETS[name], Shape(order, dtype)
    plan = choose(kind, shape, CPU, variant)
    assert plan == kind.default(shape, None, variant) and isinstance(plan, kind)
    for part, fields in plan.tuned.items():
        tried = plan.variants_of(shape, part)
        assert 2 <= len(tried) <= 14 and len(set(tried)) == len(tried)
        for other in tried:
            assert not other.illegal(shape)
            changed = {f for f, value in vars(other).items() if value != getattr(plan, f)}
            assert changed <= set(fields)


def test_a_plan_is_put_together_from_what_is_remembered(monkeypatch):
    known = {
        "acoustics/node/volume": NodePlan(3, 9, 9),
        "acoustics/node/update": NodePlan(9, 9, 5),
        "acoustics/optimal/surface": BernsteinPlan(9, 2, 9, "optimal", "stored"),
        "acoustics/factored/surface": BernsteinPlan(9, 7, 9),
        "acoustics/factored/volume": BernsteinPlan(3, 9, 9, "factored", "computed"),
    }
    gpu, shape = replace(SIMULATOR, kind="cuda", compute_capability=(9, 0)), Shape(3, "float32")
    best = {name: [vars(plan)] for name, plan in known.items()}
    monkeypatch.setattr("dgbook.gpu.tune.ranked", lambda name, *_: best.get(name, []))
    assert choose(NodePlan, shape, gpu) == NodePlan(3, NodePlan.default(shape).K_S, 5)
    usual = BernsteinPlan.default(shape)
    expected = BernsteinPlan(3, 2, usual.K_U, "optimal", "computed")
    assert choose(BernsteinPlan, shape, gpu, "optimal") == expected
    assert choose(BernsteinPlan, shape, gpu) == BernsteinPlan(3, 7, usual.K_U, columns="computed")
    # Each of these two fits into 48 KiB, 16 rows of 128 columns and 8 of 250; not both together.
    best["acoustics/element/volume"] = [vars(ElementPlan(9, 9, 9, rows_V=8, columns=1))]
    best["acoustics/element/rhs"] = [vars(ElementPlan(9, 9, 9, rows_V=1, rows_S=1, columns=1000))]
    assert choose(ElementPlan, shape, gpu) == ElementPlan.default(shape), "too much together"


@pytest.mark.parametrize("basis", measure.FUSED)
def test_the_tuner_knows_the_fused_kernels(basis, monkeypatch):
    """In the Bernstein basis it compares two kernels."""
    subjects = []

    def tune(name, plans, run, *_, **__):
        subjects.append(name)
        for plan in {type(plan): plan for plan in plans}.values():
            run(plan)()
        return stopped_clock.tuned(name, plans, run)

    monkeypatch.setattr(measure, "tune", tune)
    operator = measure.operators_on(measure.cube(1), 1, "float32")[basis]
    result = measure.tune_fused(operator, SIMULATOR, "numba")
    assert result.plan.language == "numba"
    assert subjects == [f"acoustics/{'fused' if basis == 'nodal' else basis}/numba"]
    *others, last = ("lanes" in trial.plan for trial in result.trials)
    assert set(others) == {basis == "bernstein"} and not last, "the dense kernel's is the rival"


def test_both_bases_share_an_operator():
    """But for the basis it is the one that `reference.assemble` makes."""
    operators = measure.operators_on(measure.cube(1), 2, "float32")
    made_alone = measure.reference.assemble(measure.cube(1), 2, "bernstein", dtype="float32")
    assert [measure.basis_of(o) for o in operators.values()] == list(operators)
    for name, value in vars(made_alone).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(operators["bernstein"], name))


def test_an_unknown_record_is_refused():
    with pytest.raises(ValueError, match="RECORD = 'speed'; allowed are stage, parts"):
        bench.bench(argparse.Namespace(what=["speed"], orders=range(1, 2), dofs=1))


def test_tune_tunes_everything(monkeypatch, capsys):
    monkeypatch.setattr(bench, "find_device", lambda *_: SIMULATOR)
    tuned = []
    monkeypatch.setattr(measure, "tune_paper", lambda name, *_: tuned.append(name))
    monkeypatch.setattr(
        measure,
        "tune_fused",
        lambda operator, device, language: (
            tuned.append((measure.basis_of(operator), language))
            or argparse.Namespace(plan=BernsteinFusedPlan.default(Shape(1, "float32")))
        ),
    )
    options = {"orders": [1], "dtypes": ["float32"], "dofs": DOFS}
    for path in ("paper", "fused"):
        bench.tune(argparse.Namespace(**options, paths=[path]))
    languages = [(basis, language) for basis in measure.FUSED for language in ("cuda", "numba")]
    assert tuned == [*KERNEL_SETS, *languages]
    assert "N=1 float32 node: NodePlan(K_V=64, K_S=21, K_U=64)" in capsys.readouterr().out
