"""What is measured of Maxwell's operator makes valid records: with a clock that does not run."""

import argparse
import contextlib

import numpy as np
import pytest
import stopped_clock
from stopped_clock import SESSION, SIMULATOR

from dgbook.cli import maxwell as bench
from dgbook.gpu import device
from dgbook.gpu.timing import Timing
from dgbook.lab import ladder, measuring, records
from dgbook.lab import maxwell as measure
from dgbook.maxwell.launch import bernstein_fused, fused
from dgbook.maxwell.launch.fused import FusedLauncher
from dgbook.maxwell.plan import BernsteinFusedPlan
from dgbook.nodal.fused import FusedPlan


@pytest.fixture(autouse=True)
def stopped(monkeypatch):
    """Kernels run once, in the simulator, on next to no elements."""
    stopped_clock.stop(monkeypatch, measure)
    plans = {FusedPlan: FusedPlan("numba", 2, 1, 1)}
    plans[BernsteinFusedPlan] = BernsteinFusedPlan("numba", 32, 2, 1)
    places = [(module, "choose") for module in (measure, fused, bernstein_fused)]
    for module, name in [*places, (measure, "shipped")]:
        monkeypatch.setattr(module, name, lambda kind, *_: plans[kind])
    monkeypatch.setattr(measure, "CORE_DOFS", 100)


def made(what, orders=(1,), dtypes=("float32",), dofs=144):
    """The rows of a record, checked as they are when it is saved."""
    return stopped_clock.made(measure, "maxwell", what, orders, dtypes, dofs)


def test_the_stage_by_all_paths():
    rows = made("stage", dtypes=("float32", "float64"))
    paths = [row["path"] for row in rows if row["dtype"] == "float32"]
    parts = ["gather", "lift", "differentiate", "assemble", "update"]
    assert paths == ["fused", "bernstein", *parts, "paper", "rival:cupy", "cores", "cores"]
    assert not any(row["path"] == "cores" for row in rows if row["dtype"] == "float64")
    assert {row["dofs"] for row in rows if row["path"] == "fused"} == {6 * 4 * 6}


def test_plans_and_variants():
    rows = made("plans")
    assert {row["path"] for row in rows} == {"gather", "lift", "differentiate"}
    assert len(rows) == sum(map(len, measure.searched(1, "float32").values()))
    names = [row["variant"] for row in made("variants")]
    assert names == ["full", "no matrix-in-shared", "no microblocks", "neither"]


def test_sizes_grow():
    rows = made("sizes", dofs=36 * 4 * 27)
    assert [row["path"] for row in rows] == ["fused", "paper"]
    assert rows[0]["size"]["K"] == 162


def test_a_row_for_either_basis():
    rows = made("bases", dtypes=("float32", "float64"))
    assert sorted((row["dtype"], row["path"]) for row in rows) == [
        (dtype, path) for dtype in ("float32", "float64") for path in ("bernstein", "fused")
    ]
    assert len({row["dofs"] for row in rows}) == 1


def test_table_2_holds_errors(monkeypatch):
    monkeypatch.setattr(measure, "TABLE_2_END", 0.0)
    monkeypatch.setattr(measure, "TABLE_2", {475: 0.3})
    (row,) = made("table2")
    assert row["size"]["nominal_K"] == 475 and row["size"]["K"] == 477
    # At t = 0 it is the error of interpolation: large at order 1, and not nothing.
    assert 0.05 < row["error"] < 0.5


def test_errors_stand_beside_the_times():
    """Without tensor cores there is one way to multiply, and in each basis."""
    rows = made("error", dtypes=("float32", "float64"))
    variants = [(row["dtype"], row["path"], row["variant"]) for row in rows]
    assert sorted(variants) == [
        (dtype, path, variant)
        for dtype in ("float32", "float64")
        for path, variant in (("bernstein", "Bernstein"), ("fused", "ordinary units"))
    ]
    # A rounding is 6e-8 in fp32 and 1e-16 in fp64; some hundred of them follow one another.
    for row in rows:
        rounding = {"float32": 6e-8, "float64": 1.1e-16}[row["dtype"]]
        assert 0.1 * rounding < row["error"] < 1000 * rounding
        assert abs(row["bias"]) < 10 * row["error"]


def test_a_bias_is_a_part_of_all():
    class Scaled(FusedLauncher):
        def download(self, state):
            return super().download(state) * (1 - 1e-3)

    operator = measure.operator_on(measure.cube(1), 1, "float64")
    found = measure.stage_error(Scaled(operator, SIMULATOR))
    assert found["bias"] == pytest.approx(-1e-3) and found["error"] == pytest.approx(1e-3)


def test_counters_stand_beside_the_times(monkeypatch):
    programs = []

    def counted(program):
        programs.append(program)
        return [{"memory": float(i)} for i in range(7)]

    monkeypatch.setattr(measuring, "counters", counted)
    rows = made("counters")
    assert [r["path"] for r in rows] == [
        "fused",
        "bernstein",
        "gather",
        "lift",
        "differentiate",
        "assemble",
        "update",
    ]
    assert [row["counters"]["memory"] for row in rows] == list(range(7))
    assert programs == ["from dgbook.lab.maxwell import launch_each as f; f(1, 'float32', 144)"]


def test_what_is_profiled_is_launched_once_more(monkeypatch):
    seen = []

    @contextlib.contextmanager
    def recording():
        seen.append("in")
        yield
        seen.append("out")

    def parts(*_):
        return {"part": lambda: seen.append("part")}

    monkeypatch.setattr(measuring, "profiled", recording)
    monkeypatch.setattr(measure, "find_device", lambda *_: SIMULATOR)
    monkeypatch.setattr(measure, "parts_of", parts)
    monkeypatch.setattr(measure, "stage_on_noise", lambda *_: lambda: seen.append("stage"))
    measure.launch_each(1, "float32", 144)
    assert seen == ["stage", "stage", "part", "in", "stage", "stage", "part", "out"]


def test_errors_around_the_sphere_are_those_of_the_run(monkeypatch):
    """A run that is Mie's series but for a tenth of it too large beyond r = 1.5."""

    def run(solver, u, t_end, t=0.0, observe=None, every=1, **_):
        times = np.linspace(t, t_end, 17)[1:] if observe else ()
        r = np.linalg.norm(solver.x, axis=0)
        amplitude = 1j * measure.mie.Sphere(2.0).scattered(*solver.x) * np.where(r < 1.5, 1, 1.1)
        for time in times:
            observe(time, (amplitude * np.exp(-2j * time)).real)
        return u

    monkeypatch.setattr(measure.Solver, "run", run)
    _, errors = measure.sphere_errors("sphere_shell.msh", 1, "float64", device("cpu"))
    assert errors == pytest.approx([0, 0, 0.1], abs=1e-9)


def test_the_tuner_knows_both_languages(monkeypatch):
    operator = measure.operator_on(measure.cube(1), 1, "float32")
    monkeypatch.setattr(FusedPlan, "candidates", lambda *_: [FusedPlan("numba", 1, 1, 1)])
    assert measure.tune_fused(operator, SIMULATOR, "numba").plan.language == "numba"
    other = measure.operator_on(measure.cube(1), 1, "float32", "bernstein")
    found = measure.tune_fused(other, SIMULATOR, "numba")
    assert found.plan.lanes % 32 == 0 and len(found.trials) >= 5
    both = measure.tune_basis({"nodal": operator, "bernstein": other}, SIMULATOR, "numba")
    assert {"rows", "lanes"} <= set().union(*(trial.plan for trial in both.trials))


LADDER = ["five kernels", "layout", "algebra", "fusion", "register tile", "shuffled"]
LADDER += ["element order", "launched by Python", "graph"]


def ladder_rows(monkeypatch, counters):
    """The rungs in Numba; Nsight Compute is a function."""
    all_rungs, one = ladder.rungs, FusedPlan("numba", 2, 1, 1)
    monkeypatch.setattr(ladder, "choose", lambda *_: one)
    monkeypatch.setattr(ladder, "shipped", lambda *_: one)
    monkeypatch.setattr(ladder, "spellings", lambda _: ())
    monkeypatch.setattr(ladder, "rungs", lambda *given: all_rungs(*given)[:-1])
    monkeypatch.setattr(ladder, "SMALL_CELLS", 1)
    monkeypatch.setattr(ladder, "by_the_clock", stopped_clock.timed)
    monkeypatch.setattr(measuring, "counters", counters)
    rows = list(measuring.each_part(measure.ladder_record, [1], ["float32"], 144, SESSION))
    records.validate(stopped_clock.content("maxwell/ladder", rows))
    return rows


def test_the_ladder(monkeypatch):
    """Numbers of five launches are added, percentages averaged over their times."""
    asked = []

    def counters(program, metrics):
        asked.append(program)
        launches = [dict.fromkeys(metrics, 1.0) for _ in range(3 * 5 + 4)]
        launches[0] |= {"nanoseconds counted": 6.0, "FMA": 51.0, "registers counted": 40.0}
        launches[0] |= {"L2": 31.0, "L2 counted": 2.0}  # one in percent, one in bytes
        return launches

    rows = ladder_rows(monkeypatch, counters)
    assert [row["rung"] for row in rows] == LADDER
    assert len({row["floor_seconds"] for row in rows[:-2]}) == 1
    first, second = rows[0], rows[1]
    assert first["counters"]["FMA"] == pytest.approx((6 * 51 + 4) / 10)
    assert first["counters"]["L2"] == pytest.approx((6 * 31 + 4) / 10)
    assert first["counts"]["L2"] == pytest.approx(6 / 144)
    assert first["counts"]["registers"] == 40 and second["counts"]["registers"] == 1
    assert "counts" not in rows[-1] and rows[-1]["size"]["K"] == 6
    assert asked == [
        "from dgbook.lab.maxwell import FusedPlan, launch_rungs as f; f(1, 'float32', 144, None)"
    ]


def test_levers_lead_from_one_plan_to_the_other(monkeypatch):
    """Each alone changes what it is called; the last is the register tile's plan."""
    one, tile = FusedPlan("numba", 4, 1, 1), FusedPlan("numba", 2, 2, 1, 4)
    monkeypatch.setattr(ladder, "default_plan", lambda _: one)
    monkeypatch.setattr(ladder, "choose", lambda *_: tile)
    monkeypatch.setattr(measuring, "counters", lambda _, metrics: [dict.fromkeys(metrics, 1.0)] * 8)
    rows = list(measuring.each_part(measure.levers_record, [1], ["float32"], 144, SESSION))
    records.validate(stopped_clock.content("maxwell/levers", rows))
    plans = {row["rung"]: FusedPlan(**row["plan"]) for row in rows}
    assert plans == {
        "fusion": one,
        "rows per block": FusedPlan("numba", 2, 1, 1),
        "outputs per thread": FusedPlan("numba", 4, 2, 1),
        "columns per round": FusedPlan("numba", 4, 1, 1, 4),
        "outputs and columns": FusedPlan("numba", 4, 2, 1, 4),
        "rows and outputs": FusedPlan("numba", 2, 2, 1),
        "rows and columns": FusedPlan("numba", 2, 1, 1, 4),
        "register tile": tile,
    }


def test_the_ladder_where_nobody_may_count(monkeypatch, capsys):
    def refuse(*_):
        raise RuntimeError("no permission")

    rows = ladder_rows(monkeypatch, refuse)
    assert [row["rung"] for row in rows] == LADDER
    assert not any("counters" in row for row in rows)
    assert "no permission" in capsys.readouterr().out


def test_rungs_are_launched_in_their_order(monkeypatch):
    launched = []
    monkeypatch.setattr(measure, "find_device", lambda *_: SIMULATOR)
    monkeypatch.setattr(measure, "launch_counted", launched.extend)
    rung = ladder.Rung("fusion", "mesh", FusedPlan("numba", 2, 1, 1))
    monkeypatch.setattr(ladder, "rungs", lambda *_: [rung, ladder.Rung("layout", "vectors")])
    measure.launch_rungs(1, "float32", 144, None)
    monkeypatch.setattr(ladder, "levers", lambda *_: [rung])
    measure.launch_levers(1, "float32", 144)
    assert len(launched) == 3
    for stage in launched:
        stage()


def test_the_best_plan_for_tensor_cores(monkeypatch):
    """The fastest of several; the only one is not timed."""
    operator = measure.operator_on(measure.cube(1), 1, "float32")
    plans = [FusedPlan("numba", rows, 1, 1) for rows in (1, 2, 3)]
    seconds = iter([3.0, 1.0, 2.0])
    monkeypatch.setattr(ladder, "tensor_plans", lambda *_: plans)
    monkeypatch.setattr(measure, "stage_timing", lambda _: Timing((next(seconds),) * 20))
    assert measure.best_tensor_plan(operator, SIMULATOR) == plans[1]
    monkeypatch.setattr(ladder, "tensor_plans", lambda *_: plans[:1])
    assert measure.best_tensor_plan(operator, SIMULATOR) == plans[0]
    monkeypatch.setattr(ladder, "tensor_plans", lambda *_: [])
    assert measure.best_tensor_plan(operator, SIMULATOR) is None


def test_an_unknown_record_is_refused():
    with pytest.raises(ValueError, match="RECORD = 'speed'; allowed are stage"):
        bench.bench(argparse.Namespace(what=["speed"], orders=range(1, 2), dofs=1))


def test_a_row_as_a_line():
    (row,) = (r for r in made("stage") if r["path"] == "paper")
    text = measuring.line(row, SIMULATOR)
    assert "N=1 float32 K=6" in text and "1000 us" in text and "LIVE" in text
    assert np.isclose(row["efficiency"], row["floor_seconds"] / 1e-3)
