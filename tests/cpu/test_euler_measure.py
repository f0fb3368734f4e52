"""What is measured of the Euler equations makes valid records: with a clock that does not run."""

import argparse
import itertools
import json

import numpy as np
import pytest
import stopped_clock
from stopped_clock import CEILING, SIMULATOR

from dgbook.cli import euler as bench
from dgbook.cli.main import main
from dgbook.euler import exact, reference
from dgbook.euler.cores import Cores as RealCores
from dgbook.euler.cost import PAPER
from dgbook.euler.plan import FusedPlan, PaperPlan
from dgbook.euler.problem import conservative
from dgbook.euler.solver import FlowError, Solver
from dgbook.gpu import device
from dgbook.lab import euler as measure
from dgbook.lab import measuring, records
from dgbook.lab.rivals import euler as arrays
from dgbook.mesh import box
from dgbook.time import rk4


@pytest.fixture(autouse=True)
def stopped(monkeypatch):
    """Kernels run once, in the simulator, on next to no elements."""
    stopped_clock.stop(monkeypatch, measure)
    monkeypatch.setattr(measure, "CORE_DOFS", 100)
    stopped_clock.two_cores(monkeypatch, measuring)
    monkeypatch.setattr(measure, "Cores", Cores)


class Cores:
    """The launcher on cores, but nothing is compiled."""

    def __init__(self, operator, device):
        self.operator, self.device = operator, device
        self.shape = 4, operator.mesh.K, operator.tables.Np

    def upload(self, u):
        assert u.shape == self.shape
        return u

    def work(self, u):
        return ()

    def step(self, u, work, data, dt):
        assert u.shape == self.shape and len(data) == 3 and dt > 0


def made(what, orders=(1,), dtypes=("float32",), cells=2):
    """The rows of a record, checked as they are when it is saved."""
    return stopped_clock.made(measure, "euler", what, orders, dtypes, cells)


# --------------------------------------------------------------------------------------- records


def test_the_stage_by_all_paths(monkeypatch):
    tuned = PaperPlan(threads=64, concurrent=False)
    choose = measure.choose
    monkeypatch.setattr(
        measure, "choose", lambda kind, *a: tuned if kind is PaperPlan else choose(kind, *a)
    )
    rows = made("stage", orders=(0, 2), dtypes=("float32", "float64"))
    of_one = [row for row in rows if (row["order"], row["dtype"]) == (2, "float32")]
    paths = ["fused", *PAPER, "paper", "paper", "rival:cupy", "cores", "cores"]
    assert [row["path"] for row in of_one] == paths and len(rows) == 4 * len(paths)
    assert {row["dofs"] for row in of_one if row["path"] != "cores"} == {4 * 8 * 6}
    assert [row["size"]["cores"] for row in of_one if row["path"] == "cores"] == [1, 2]
    assert of_one[8]["variant"] == "tuned" and of_one[8]["plan"]["threads"] == 64
    # A step took a millisecond; so did a launch of a kernel that a stage needs once.
    seconds = {row["path"]: row["seconds_median"] for row in of_one}
    for path in ("fused", "update", "check", "paper", "rival:cupy", "cores"):
        assert seconds[path] == pytest.approx(1e-3 / 4)
    for path in ("volume", "face", "add", "rhs"):
        assert seconds[path] == pytest.approx(1e-3)


def test_the_papers_tables(monkeypatch):
    monkeypatch.setattr(measure, "BLOCK_CELLS", (1, 2))
    monkeypatch.setattr(measure, "CELLS", (1, 2))
    monkeypatch.setattr(measure, "LARGEST_ON_ONE_CORE", 1)
    monkeypatch.setattr(measure, "KERNEL_CELLS", 2)
    blocks = made("blocks")
    assert [(r["size"]["K"], r["plan"]["threads"]) for r in blocks] == [
        (2 * n * n, threads) for n in (1, 2) for threads in (32, 64, 128, 256, 512)
    ]
    sizes = made("sizes", orders=(0,))
    found = [(row["path"], row["size"]["K"], row["size"].get("cores")) for row in sizes]
    assert found == [
        *[("paper", 2, None), ("fused", 2, None), ("cores", 2, 1), ("cores", 2, 2)],
        *[("paper", 8, None), ("fused", 8, None), ("cores", 8, 2)],
    ]
    kernels = made("kernels", cells=9)
    assert [row["path"] for row in kernels] == list(PAPER)
    assert {row["size"]["K"] for row in kernels} == {8}


def test_every_lever_is_pulled_alone():
    rows = made("levers", orders=(0,))
    plans = {row["variant"]: row["plan"] for row in rows}
    assert list(plans) == list(measure.levers())
    paper = plans["paper"]
    assert paper == {
        "threads": 32,
        "max_registers": None,
        "concurrent": True,
        "tables": "constant",
        "layout": "element",
        "race": "split",
    }
    changed = {
        name: {key: plan[key] for key in plan if plan[key] != paper[key]}
        for name, plan in plans.items()
        if ("," in name) == (len({k for k in plan if plan[k] != paper[k]}) > 1)
    }
    assert len(changed) == len(plans), "only what has two parts in its name changes two things"
    assert changed["tables in global memory"] == {"tables": "global"}
    assert changed["one stream, atomic additions"] == {"concurrent": False, "race": "atomic"}


def test_the_ladder_changes_one_thing_per_rung(monkeypatch):
    monkeypatch.setattr(measure, "LARGE_CELLS", 2)
    rows = made("large", orders=(1,), cells=9)
    names = list(measure.rungs())
    parts = [(row["variant"], row["path"]) for row in rows[5:]]
    assert [row.get("variant") for row in rows[:5]] == [*names, None]
    assert parts == [(name, path) for name in names[:3] for path in PAPER]
    assert {row["size"]["K"] for row in rows} == {8}
    plans = [row["plan"] for row in rows[:4]]
    changed = [
        {key for key in old if old[key] != new[key]} for old, new in itertools.pairwise(plans)
    ]
    # Atomic additions need the volume's residual first, and so one stream.
    assert changed == [{"layout"}, {"threads"}, {"race", "concurrent"}]
    assert rows[3]["bytes"] == rows[2]["bytes"] - 8 * 4 * (24 * 2 + 6)
    assert [row["bytes"] for row in rows[:3]] == 3 * [rows[0]["bytes"]]
    assert rows[4]["path"] == "fused"


def test_counters_stand_beside_the_times(monkeypatch):
    programs = []

    def counters(program):
        programs.append(program)
        return [{"memory": float(i)} for i in range(13)]

    monkeypatch.setattr(measuring, "counters", counters)
    rows = made("counters")
    assert [row["path"] for row in rows] == ["fused", *PAPER]
    # Four launches of a fused step, four kernels, four updates, a check.
    assert [row["counters"]["memory"] for row in rows] == [1.5, 4, 5, 6, 7, 9.5, 12]
    assert programs == ["from dgbook.lab.euler import launch_each as f; f(1, 'float32', 2)"]


def test_what_is_profiled_is_what_the_rows_are_about(monkeypatch):
    """As many launches as `counted` expects, in the order of the rows."""
    launched = []
    monkeypatch.setattr(measure, "find_device", lambda *_: SIMULATOR)
    monkeypatch.setattr(measure, "launch_counted", launched.extend)
    measure.launch_each(0, "float32", 2)
    assert len(launched) == 1 + len(PAPER)
    for function in launched:
        function()


def test_one_core_takes_real_steps(monkeypatch):
    monkeypatch.setattr(measure, "Cores", RealCores)
    row = measure.core_row(measure.operator_on(2, 0, "float32"), 1, stopped_clock.SESSION)
    assert row["size"] == {"K": 8, "Np": 1, "fields": 4, "cores": 1} and row["dofs"] == 32


# -------------------------------------------------------------------------------------- vortices


def test_what_is_left_of_a_vortex(monkeypatch):
    monkeypatch.setattr(measure, "VORTEX_CELLS", 2)
    monkeypatch.setattr(measure, "PERIODS", (0.01, 0.02))
    rows = made("vortex", dtypes=("float64",))
    assert [row["variant"] for row in rows] == ["paper", "strong"]
    for row, period in zip(rows, (10 * 2**0.5, 10), strict=True):
        assert row["times"] == pytest.approx([0, 0.01 * period, 0.02 * period])
        assert row["stopped"] is None and row["size"]["K"] == 8
        assert len(row["errors"]) == len(row["core_pressures"]) == len(row["entropies"]) == 3
    # chen's: p_inf (1 - eps^2 (gamma-1) M^2 e / (8 pi^2))^(gamma/(gamma-1)).
    deepest = (1 - 0.09 * 0.4 * 0.25 * np.e / (8 * np.pi**2)) ** 3.5 / (1.4 * 0.25)
    assert rows[0]["core_pressure"] == pytest.approx(deepest)
    assert rows[0]["core_pressures"][0] == pytest.approx(deepest)  # a node lies there


def test_the_errors_are_those_of_the_fields():
    """Of a stream where there is a stream of another pressure and velocity."""
    solver = Solver(box((3, 2), periodic=True), 1, device="cpu")
    u = solver.interpolate(lambda x, y: exact.Stream(1.2, 0.5, 0.1, 2.0)(x, y, 0))
    errors = measure.primitive_errors(solver, u, exact.Stream(1.0, 0.75, 0.3, 2.125), 0.0)
    assert errors == pytest.approx((0.125, 0.25))


def test_the_core_is_where_it_is_looked_for():
    solver = Solver(box((3, 3), -1.0, 2.0), 2, device="cpu", boundary="wall")
    u = solver.interpolate(lambda x, y: conservative(2 + x * y, 0 * x, 0 * x, 1 + y * y))
    for x, y in ((0.0, 1.0), (0.3, -0.6), (-1.0, 2.0)):
        np.testing.assert_allclose(measure.at_point(solver, u, (x, y))[0], 2 + x * y, atol=1e-12)
    u[0, 0] += 1  # one of the elements around the corner (0, 0)
    around = (np.abs(solver.x).sum(axis=0).min(axis=1) < 1e-9).sum()
    assert measure.at_point(solver, u, (0.0, 0.0))[0] == pytest.approx(2 + 1 / around)


def test_a_run_that_fails_tells_how_far_it_came(monkeypatch):
    vortex, lower = measure.vortices()["paper"]
    run = Solver.run

    def fails(solver, u, t_end, **others):
        if t_end > 0.1:
            raise FlowError("a pressure that is not positive", 0.15, 3, u)
        return run(solver, u, t_end, **others)

    monkeypatch.setattr(Solver, "run", fails)
    _, found = measure.vortex_run(vortex, lower, 2, 1, "float64", "cpu", [0.1, 0.2, 0.3])
    assert found["times"] == [0, 0.1] and found["stopped"] == 0.15


def test_the_core_moves_with_the_stream(monkeypatch):
    seen = []
    monkeypatch.setattr(
        measure, "at_point", lambda solver, u, x: seen.append(x) or np.array([1.0, 0, 0, 1])
    )
    monkeypatch.setattr(Solver, "run", lambda solver, u, *_, **__: u)
    vortex, lower = measure.vortices()["strong"]
    measure.vortex_run(vortex, lower, 2, 1, "float64", "cpu", [4.0, 8.0, 10.0])
    np.testing.assert_allclose(seen, [[5, 0], [9, 0], [3, 0], [5, 0]])


# -------------------------------------------------------------------------------------- the rival


class Elsewhere(np.ndarray):
    """Arrays that do not mix with NumPy's, as CuPy's do not."""

    @staticmethod
    def _plain(value):
        if isinstance(value, list | tuple):
            return type(value)(map(Elsewhere._plain, value))
        assert isinstance(value, Elsewhere) or not isinstance(value, np.ndarray), "NumPy's array"
        return value.view(np.ndarray) if isinstance(value, Elsewhere) else value

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **options):
        if out:
            options["out"] = self._plain(out)
        found = np.asarray(getattr(ufunc, method)(*self._plain(inputs), **options))
        return out[0] if out else found.view(Elsewhere)

    def __array_function__(self, function, types, arguments, options):
        found = function(*self._plain(arguments), **options)
        return found.view(Elsewhere) if isinstance(found, np.ndarray) else found

    def __getitem__(self, index):
        self._check(index)
        return super().__getitem__(index)

    def __setitem__(self, index, values):
        self._check(index)
        assert isinstance(values, Elsewhere) or np.ndim(values) == 0
        super().__setitem__(index, values)

    @staticmethod
    def _check(index):
        for part in index if isinstance(index, tuple) else (index,):
            mixed = isinstance(part, np.ndarray) and not isinstance(part, Elsewhere)
            assert not mixed or part.size == 0, "an index that would be copied in every call"


class Accelerator:
    """A device whose arrays are `Elsewhere`."""

    @staticmethod
    def array(values):
        return np.array(values).view(Elsewhere)

    @staticmethod
    def zeros(shape, dtype):
        return np.zeros(shape, dtype).view(Elsewhere)


@pytest.mark.parametrize("order", [0, 2])
def test_the_rival_is_the_reference_and_stays_on_the_device(order):
    operator = measure.operator_on(3, order, "float64")
    u = measure.whirl(operator).copy()
    rival, v = arrays.ArraySteps(operator, Accelerator()), Accelerator.array(u)
    np.testing.assert_allclose(np.asarray(rival.rhs(v)), reference.rhs(operator, u), atol=1e-13)
    rival.step(v, 1e-3)
    rk4.advance(lambda u, t: reference.rhs(operator, u, t), u, 0.0, 1e-3)
    np.testing.assert_allclose(np.asarray(v), u, rtol=1e-13)


def test_the_rival_knows_no_boundary():
    solver = Solver(box((2, 2)), 1, device="cpu", boundary="wall")
    with pytest.raises(ValueError, match="8 boundary edges; allowed: none"):
        arrays.ArraySteps(solver.operator, device("cpu"))


# ---------------------------------------------------------------------------- tuning, command line


def test_the_tuner_knows_all_paths(monkeypatch):
    operator = measure.operator_on(2, 1, "float32")
    monkeypatch.setattr(FusedPlan, "candidates", lambda *_: [FusedPlan("numba", 32, 1)])
    assert measure.tune_fused(operator, SIMULATOR, "numba").plan.language == "numba"
    result = measure.tune_paper(operator, SIMULATOR)
    assert len(result.trials) == 5 * 2 * 2 * (2 + 1)
    assert isinstance(result.plan, PaperPlan)


@pytest.fixture
def on_the_simulator(monkeypatch):
    """The commands find the simulator where they look for a GPU."""
    found = stopped_clock.content("euler/none", [])
    here = {key: value for key, value in found.items() if key not in ("name", "ceilings", "rows")}
    for module in (measuring, bench):
        monkeypatch.setattr(module, "find_device", lambda *_: SIMULATOR)
    monkeypatch.setattr(measuring, "ceilings", lambda _: CEILING)
    monkeypatch.setattr(records, "environment", lambda _: dict(here))
    monkeypatch.setattr(measure, "KERNEL_CELLS", 2)
    return here


def test_a_record_is_made_part_by_part(on_the_simulator, tmp_path, capsys):
    def run(*options):
        return main(["bench", "euler", "kernels", "--out", str(tmp_path), *options])

    assert run("--orders", "0..1", "--dtypes", "float32") == 0
    printed = capsys.readouterr().out
    assert "N=1 float32 K=8" in printed and "volume" in printed and "LIVE" in printed
    assert run("--orders", "1", "--dtypes", "float64", "--add") == 0
    (path,) = tmp_path.iterdir()
    found = [(row["order"], row["dtype"]) for row in json.loads(path.read_text())["rows"]]
    parts = [(0, "float32"), (1, "float32"), (1, "float64")]
    assert found == [part for part in parts for _ in PAPER]
    assert run("--orders", "1", "--dtypes", "float32", "--add") == 0
    assert len(json.loads(path.read_text())["rows"]) == 18  # measured again, not twice
    on_the_simulator["date"] = "2026-11-22"
    assert run("--orders", "1", "--dtypes", "float32", "--add") == 0
    (newer,) = set(tmp_path.iterdir()) - {path}
    assert len(json.loads(newer.read_text())["rows"]) == 6  # of that day alone
    newer.unlink()
    on_the_simulator["date"] = "2026-11-21"
    on_the_simulator["commit"] = "another"
    other = ("--orders", "0", "--dtypes", "float32")
    assert run(*other, "--add") == 2 and run(*other) == 0  # without it the record is replaced
    error = " ".join(capsys.readouterr().err.split())
    assert "today's record euler/kernels has commit = '0'; allowed: 'another'" in error
    assert len(json.loads(path.read_text())["rows"]) == 6


def test_without_orders_a_record_has_its_own(on_the_simulator, monkeypatch, tmp_path):
    seen = {}

    def recorded(arguments, family, known, size, orders):
        seen.update(orders)

    monkeypatch.setattr(measuring, "bench", recorded)
    assert main(["bench", "euler", "sizes", "--cells", "8"]) == 0
    assert seen.keys() == measure.RECORDS.keys() == measure.ORDERS.keys()
    assert list(seen["stage"]) == list(range(7)) and list(seen["sizes"]) == [0, 1, 2]
    assert main(["bench", "euler", "sizes", "--orders", "2..3"]) == 0
    assert {tuple(orders) for orders in seen.values()} == {(2, 3)}


def test_tuning_says_what_is_fastest(on_the_simulator, monkeypatch, capsys):
    monkeypatch.setattr(FusedPlan, "candidates", lambda *_: [FusedPlan("numba", 32, 1)])
    assert main(["tune", "euler", "--orders", "0", "--cells", "1", "--dtypes", "float32"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("p=0 float32: FusedPlan(language='numba'") == 2
    assert "p=0 float32: PaperPlan(threads=32" in printed


def test_an_unknown_record_is_refused():
    with pytest.raises(ValueError, match="RECORD = 'speed'; allowed are stage, blocks"):
        bench.bench(argparse.Namespace(what=["speed"], orders=None, cells=1))
