"""What is measured of the swept rule makes valid records: with a clock that does not run."""

import argparse
import json
import sys
from dataclasses import asdict

import numpy as np
import pytest
import stopped_clock
from stopped_clock import CEILING, SESSION, SIMULATOR
from threads_as_ranks import Comm, World

from dgbook.cli import swept as bench
from dgbook.cli.main import main
from dgbook.gpu.timing import Timing
from dgbook.gpu.tune import Result, Trial
from dgbook.lab import measuring, parallel, records, reproduce
from dgbook.lab import swept as measure
from dgbook.lab import swept_division as division
from dgbook.lab import swept_gpus as gpus
from dgbook.lab.diagram import profiles
from dgbook.lab.probes import Probe
from dgbook.lab.reproduce import magee2017
from dgbook.lab.reproduce.verdict import ALONE, DIFFERS
from dgbook.lab.rivals import swept as ranks
from dgbook.parallel import OneProcess
from dgbook.swept import reference
from dgbook.swept.plan import SCHEMES, Plan, Shape
from dgbook.swept.problem import PROBLEMS, as_problem


@pytest.fixture(autouse=True)
def stopped(monkeypatch):
    """Kernels run once, in the simulator, on next to no points."""
    stopped_clock.stop(monkeypatch, measure)
    monkeypatch.setattr(ranks, "launcher", without_mpi)
    monkeypatch.setattr(measure, "all_cores", lambda: 2)
    monkeypatch.setattr(measure, "CORE_SIZES", (64,))
    monkeypatch.setattr(measure, "PYTHON_STEPS", 2)
    monkeypatch.setattr(measure, "RECORDED_STEPS", 2)
    monkeypatch.setattr(measure, "BARRIERS", 2)


def without_mpi():
    raise RuntimeError("MPI ranks need mpiexec")


def made(what, problems=("heat",), schemes=SCHEMES, dtypes=("float32",), sizes=(64,)):
    rows = list(measure.RECORDS[what](problems, schemes, dtypes, sizes, SESSION))
    records.validate(stopped_clock.content(f"swept/{what}", rows))
    stopped_clock.same_as_recorded(f"swept/{what}", rows)
    return rows


def few(monkeypatch):
    """Plans of which the first launches as little as the simulator bears."""

    def candidates(shape):
        if shape.scheme == "tiled":
            return [Plan(16, 2, 2)]
        if shape.scheme == "register":
            return [Plan(32, 2), Plan(32)]
        return [Plan(16, 2), Plan(16)] if shape.scheme != "hybrid" else [Plan(16)]

    monkeypatch.setattr(Plan, "candidates", candidates)


def test_a_step_by_every_scheme(monkeypatch):
    few(monkeypatch)
    rows = made("step", problems=("heat", "ks"))
    found = [(r["path"], r.get("variant", "")) for r in rows if r["size"]["problem"] == "heat"]
    assert found == [
        *[("classic", ""), ("classic", measure.SINGLE), ("classic", measure.PYTHON)],
        *[("shared", ""), ("shared", measure.SINGLE), ("hybrid", ""), ("hybrid", measure.SINGLE)],
        *[("register", ""), ("register", measure.SINGLE)],
        *[("persistent", ""), ("persistent", measure.SINGLE), ("tiled", "")],
    ]
    # Of Shared a call had 32 steps, twice those of a node of 32 points, and took a millisecond.
    best, single = (r for r in rows if r["path"] == "shared" and r["size"]["problem"] == "heat")
    assert best["plan"] == {"threads": 16, "points": 2, "steps": 1}
    assert best["seconds_median"] == pytest.approx(1e-3 / 32)
    assert single["seconds_median"] == pytest.approx(2e-3 / 32)
    assert best["dofs"] == 64 and best["bytes"] == 64 * 4 * 4 / 16
    (python,) = (r for r in rows if r.get("variant") == measure.PYTHON and r["dofs"] and
                 r["size"]["problem"] == "ks")  # fmt: skip
    assert python["seconds_median"] == pytest.approx(1e-3 / 2)


def test_a_call_has_many_steps_where_they_are_short(monkeypatch):
    monkeypatch.undo()
    heat, nodes = as_problem("heat"), [Plan(128), Plan(32, 2)]
    assert measure.steps_for(heat, "classic", 2048, nodes) == 256
    assert measure.steps_for(heat, "classic", 2**20, nodes) == 16
    assert measure.steps_for(heat, "shared", 2**20, nodes) == 128 == 2 * 128 // 2
    assert measure.steps_for(heat, "shared", 2048, [Plan(1024)]) == 1024


def test_sizes_without_a_plan_are_left_out():
    assert made_nothing("register", 48) and made_nothing("hybrid", 32)


def test_between_sizes_with_every_plan_their_best_ones_are_timed(monkeypatch):
    """Smaller n like few threads here, larger ones many; in between both kinds are timed."""
    monkeypatch.setattr(measure, "EVERY_PLAN", (128, 512))
    asked = {}

    def tune_step(shape, device, candidates):
        asked[shape.n] = candidates
        likes = 16 if shape.n < 256 else 256
        ranked = sorted(candidates, key=lambda p: (abs(p.threads - likes), -p.points))
        trials = [Trial(asdict(p), 1e-3 * (i + 1), 0.0, 20) for i, p in enumerate(ranked)]
        return Result(ranked[0], tuple(trials), len(trials)), 2

    def all_up_to_n(shape):
        return [Plan(2**k, points) for k in range(4, 10) for points in (1, 2) if 2**k <= shape.n]

    monkeypatch.setattr(measure, "tune_step", tune_step)
    monkeypatch.setattr(Plan, "candidates", all_up_to_n)
    rows = made("step", schemes=("shared",), sizes=(128, 256, 512, 1024))
    assert list(asked) == [128, 512, 256, 1024]  # those first that say what the others try
    assert len(asked[128]) == 8 and len(asked[512]) == 12
    # Of 128: (16, 2), (16, 1), (32, 2), then (32, 1), (64, 1); of 512 those about 256 threads.
    few = {(16, 2), (16, 1), (32, 2), (32, 1), (64, 1)}
    many = {(256, 2), (256, 1), (128, 2), (128, 1), (64, 1)}
    assert {(p.threads, p.points) for p in asked[256]} == few | many
    assert {(p.threads, p.points) for p in asked[1024]} == many
    assert [r["size"]["n"] for r in rows] == [n for n in (128, 256, 512, 1024) for _ in range(2)]


def made_nothing(scheme, n):
    rows = measure.step_rows(["heat"], [scheme], ["float32"], [n], SESSION)
    return not list(rows)


def test_cores(monkeypatch):
    taken = []
    monkeypatch.setattr(measure, "on_cores", lambda cores: taken.append(cores) or Nothing())
    monkeypatch.setattr(measure, "Solver", Cores)
    with pytest.warns(match="heat: nothing measured on ranks: MPI ranks need mpiexec"):
        rows = made("cores", schemes=("classic", "shared", "register"))
    assert [(r["path"], r["size"]["cores"]) for r in rows] == [
        *[("classic", 1), ("classic", 2), ("shared", 1), ("shared", 2)]
    ]
    assert taken == [1, 2, 1, 2]
    assert [r["plan"]["threads"] for r in rows] == [256, 256, 64, 32]
    assert rows[0]["seconds_median"] == pytest.approx(1e-3 / measure.CORE_STEPS)


def test_ranks_are_asked_once_for_all_of_a_problem(monkeypatch):
    """A machine of 6 cores takes 4 ranks; their rows come before those of threads."""
    starts = []

    def on_ranks(ranks, program, asked):
        starts.append((ranks, asked))
        yield from ([1e-6 * (k + 1) for k in range(20)] for _ in asked[1])

    monkeypatch.setattr(measure, "on_ranks", on_ranks)
    monkeypatch.setattr(measure, "all_cores", lambda: 6)
    monkeypatch.setattr(measure, "CORE_SIZES", (2**11, 2**16, 2**20))
    monkeypatch.setattr(measure, "thread_rows", lambda problem, *_: iter([problem.name]))
    sizes = (2**11, 2**20, 2**21)
    what = ["heat", "ks"], SCHEMES, ["float64"], sizes, SESSION
    *rows, after, last = measure.core_rows(*what)
    assert (after, last) == ("heat", "ks")
    records.validate(stopped_clock.content("swept/cores", rows))
    asked = {
        "heat": [
            ("heat", "classic", 2**11, "float64", 256, 1024),
            ("heat", "classic", 2**20, "float64", 256, 128),
            ("heat", "shared", 2**11, "float64", 512, 1024),  # four launches of 256 steps
            ("heat", "shared", 2**20, "float64", 1024, 1024),  # two of 512
        ],
        "ks": [
            ("ks", "classic", 2**11, "float64", 256, 1024),
            ("ks", "classic", 2**20, "float64", 256, 128),
            ("ks", "shared", 2**11, "float64", 512, 1024),
            ("ks", "shared", 2**20, "float64", 1024, 256),
        ],
    }
    assert starts == [(4, [4, cells]) for cells in asked.values()]
    assert rows[3]["size"] == {"problem": "heat", "n": 2**20, "cores": 4, "ranks": 4}
    assert rows[3]["variant"] == "ranks" and rows[3]["plan"]["threads"] == 1024
    assert rows[3]["seconds_median"] == pytest.approx(10.5e-6) and rows[3]["samples"] == 20


def test_each_rank_times_all_that_is_asked_and_the_first_tells(monkeypatch, capsys):
    asked = [("heat", "classic", 64, "float32", 256, 3), ("ks", "shared", 64, "float64", 32, 8)]
    monkeypatch.setattr(sys, "argv", ["-c", json.dumps([2, asked])])
    monkeypatch.setattr(ranks, "SAMPLES", 2)
    for rank in (0, 1):
        comm, bound = Alone(rank), []
        monkeypatch.setattr(measure, "world", lambda comm=comm: comm)
        monkeypatch.setattr(measure, "bind", lambda *who, bound=bound: bound.append(who))
        measure.answer()
        told = capsys.readouterr().out.splitlines()
        assert bound == [(rank, 2)] and len(told) == (2 if rank == 0 else 0)
        assert comm.barriers == 2 * 2 * 2  # before and after each sample of each cell
        for line in told:
            seconds = json.loads(line.removeprefix(ranks.ANSWER))
            assert len(seconds) == 2 and min(seconds) > 0


def test_an_mpiexec_of_another_mpi_is_noticed(monkeypatch):
    """It starts processes of which each believes that it is alone."""
    monkeypatch.setattr(sys, "argv", ["-c", json.dumps([16, []])])
    monkeypatch.setattr(measure, "world", lambda: Alone(0))
    with pytest.raises(RuntimeError, match="2 ranks of 16: mpiexec is not of mpi4py's MPI"):
        measure.answer()


class Alone:
    """One of two ranks, whose neighbor holds the same."""

    def __init__(self, rank):
        self.rank, self.size, self.barriers = rank, 2, 0

    def Sendrecv(self, values, to, recvbuf, source):
        assert to == source == 1 - self.rank
        recvbuf[:] = values

    def Barrier(self):
        self.barriers += 1


def test_nodes_on_cores_are_legal():
    """Of all problems, on all sizes: Euler's in double precision have 512 points at most."""
    for problem in map(as_problem, PROBLEMS):
        for n in (2**11, 2**20):
            for cores in (1, 2, 24):
                plan = measure.core_plan(problem, n, "float64", cores)
                most = 512 if problem.name == "euler" else 1024
                assert plan.threads == min(most, 2 ** int(np.log2(n // cores)))


class Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class Cores:
    """A solver that compiles nothing."""

    def __init__(self, problem, scheme, n, dtype, device, plan):
        assert device.kind == "cpu"
        self.steps_between_results = 8

    def launcher(self, u):
        return self

    def record(self, steps):
        assert steps == measure.CORE_STEPS
        return lambda: None


def test_what_is_waited_for(monkeypatch):
    timing = Timing((1e-6,) * 20)
    monkeypatch.setattr(measure, "launch_cost", lambda _, kind: Probe(timing))
    found = {(r["path"], r["size"]["threads"]): r["seconds_median"] for r in made("launch")}
    assert found == {
        ("launch:python", 32): 1e-6,
        ("launch:graph", 32): 1e-6,
        **{(f"barrier:{who}", t): 1e-3 / 2 for who in ("block", "grid") for t in (128, 512)},
    }


def timed_together(comm, device, function):
    function()
    return [stopped_clock.SECONDS] * 20


def plan_of(problem, scheme, n, dtype):
    return Plan(16, 2, 2) if scheme == "tiled" else Plan(8)


def test_parts_on_several_gpus(monkeypatch):
    """All parts in this process; few points are not cut as deep as many."""
    monkeypatch.setattr(gpus, "gpu_counts", lambda: [1, 2])
    monkeypatch.setattr(gpus, "recorded_plan", plan_of)
    monkeypatch.setattr(gpus, "seconds_together", timed_together)
    asked = []

    def answers(count, cells):
        asked.extend(cells)
        for cell in json.loads(json.dumps(cells)):
            yield gpus.seconds_per_step(None, OneProcess(count), SIMULATOR, cell)

    monkeypatch.setattr(gpus, "answers", answers)
    rows = list(gpus.gpus_rows(["heat"], ["classic", "tiled"], ["float32"], [32], SESSION))
    rows += gpus.gpus_rows(["heat"], ["shared"], ["float64"], [16, 32], SESSION)
    records.validate(stopped_clock.content("swept/gpus", rows))
    assert [(r["path"], r["size"]["gpus"], r["size"]["launches"]) for r in rows] == [
        *[("classic", 1, 1), ("deep", 1, 1)],
        *[("classic", 2, 1), ("overlapped", 2, 1), ("deep", 2, 1), ("deep", 2, 4)],
        *[("shared", count, 1) for count in (1, 1, 2, 2)],
    ]
    for row, (*_, steps) in zip(rows, asked, strict=True):
        assert row["seconds_median"] == pytest.approx(stopped_clock.SECONDS / steps)
    # A GPU's share: each state of 4 bytes is read and written once a step.
    bytes_of = [row["bytes"] for row in rows if row["path"] == "classic"]
    assert bytes_of == [2 * 4 * 32, 2 * 4 * 16] and rows[0]["dofs"] == rows[2]["dofs"] == 32
    assert all(bench.line(row, SIMULATOR) for row in rows)


def test_both_kinds_of_quotients(monkeypatch):
    """By the same plan, side by side, of Euler's equations in fp64 only."""
    monkeypatch.setattr(division, "measure", stopped_clock.timed)
    monkeypatch.setattr(division, "best_plan", lambda shape: Plan(8))
    rows = list(division.division_rows(["euler"], ["shared"], ["float64"], [16], SESSION))
    records.validate(stopped_clock.content("swept/division", rows))
    stopped_clock.same_as_recorded("swept/division", rows)
    assert [row["variant"] for row in rows] == [division.BRANCHING, division.BRANCH_FREE]
    # Two levels per substep and a reach of 2: a launch of a node of 8 points is one step.
    assert rows[0]["seconds_median"] == pytest.approx(stopped_clock.SECONDS / 2)
    assert all(row["plan"] == {"threads": 8, "points": 1, "steps": 1} for row in rows)
    for part in ((["heat"], ["float64"]), (["euler"], ["float32"])):
        problems, dtypes = part
        assert not list(division.division_rows(problems, SCHEMES, dtypes, [16], SESSION))


def test_plans_of_parts_are_those_of_the_record():
    """The nearest of two sizes, by the factor that is between."""
    best = records.load("swept/step").select(path="tiled", dtype="float64")
    best = {r["size"]["n"]: r["plan"] for r in best if r["size"]["problem"] == "euler"}
    for n, nearest in ((2**9, 2**11), (2**15, 2**11), (2**16, 2**20), (2**23, 2**20)):
        found = gpus.recorded_plan(as_problem("euler"), "tiled", n, "float64")
        assert asdict(found) == best[nearest]


def test_ranks_with_gpus_answer(monkeypatch, capsys):
    cell = next(gpus.cells(["heat"], ["classic"], ["float32"], [2**11], 1))
    monkeypatch.setattr(parallel, "world", lambda: Comm(World(1), 0))
    monkeypatch.setattr(parallel, "find_device", lambda _: SIMULATOR)
    monkeypatch.setattr(parallel.nccl, "take_gpu", lambda number: None)
    monkeypatch.setattr(gpus, "seconds_together", lambda *_: [cell[-1] * 1e-6])
    monkeypatch.setattr(sys, "argv", ["-c", json.dumps([1, [cell]])])
    gpus.answer()
    told = capsys.readouterr().out.removeprefix(ranks.ANSWER)
    assert json.loads(told) == pytest.approx([1e-6])
    monkeypatch.setattr(sys, "argv", ["-c", json.dumps([2, []])])
    with pytest.raises(RuntimeError, match="1 ranks of 2: mpiexec is not of mpi4py's MPI"):
        gpus.answer()


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_measured_stays_finite(name):
    """Also after the time in which a wave has been everywhere."""
    problem = as_problem(name)
    u = measure.state(problem, 64)

    end = reference.run(problem, u, 2000)
    assert np.isfinite(end).all()
    if name == "euler":
        assert np.ptp(end[0, 1:-1]) < np.ptp(u[0])


# ---------------------------------------------------------------------------------- command line


def arguments(**changes):
    parser = argparse.ArgumentParser()
    bench.add_bench_arguments(parser)
    found = parser.parse_args([])
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def test_a_record_is_made_in_parts(tmp_path, monkeypatch):
    few(monkeypatch)
    monkeypatch.setattr(measuring, "find_device", lambda _: SIMULATOR)
    monkeypatch.setattr(measuring, "ceilings", lambda _: CEILING)
    here = {k: v for k, v in stopped_clock.content("a/b", []).items() if k not in ("name", "rows")}
    monkeypatch.setattr(records, "environment", lambda _: here)
    part = {"dtypes": ["float32"], "sizes": [64], "out": tmp_path, "add": True}
    bench.bench(arguments(problems=["heat"], schemes=["classic", "tiled"], **part))
    bench.bench(arguments(problems=["heat"], schemes=["shared"], **part))
    bench.bench(arguments(problems=["heat"], schemes=["tiled"], **part))
    rows = records.load("swept/step", tmp_path).rows
    paths = [row["path"] for row in rows]
    assert paths == ["classic"] * 3 + ["shared"] * 2 + ["tiled"]
    with pytest.raises(ValueError, match="RECORD = 'steps'; allowed are step, cores, launch"):
        bench.bench(arguments(what=["steps"]))


def test_run_on_the_command_line(tmp_path, capsys):
    out = tmp_path / "u.npz"
    command = "run swept --n 64 --steps 20 --threads 16 --points 2 --device simulator"
    assert main([*command.split(), "--output", str(out)]) == 0
    said = capsys.readouterr().out
    assert "32 time steps to t = 0.16, results every 16" in said and "mean error" in said
    with np.load(out) as found:
        assert found["T"].shape == found["x"].shape == (64,) and found["t"] == 0.16
    assert main("run swept --points 2".split()) == 2
    assert main("run swept --steps 0".split()) == 2


# ------------------------------------------------------------------------------------- reproduce


def verdict(number):
    (item,) = reproduce.find("magee2017", number)
    return reproduce.compare(reproduce.paper("magee2017"), item)


@pytest.mark.parametrize("reach", [1, 2])
def test_diagrams_are_those_of_the_rule(reach):
    """An up-triangle is a staircase; between two launches lie whole diamonds, and nothing else."""
    node = 16
    up, first, second = profiles(reach, node, 3, 3)
    steps = np.minimum(np.arange(node), node - 1 - np.arange(node)) // reach
    assert np.array_equal(up, np.tile(steps, 3))
    for after, before, shift in ((first, up, node // 2), (second, first, 0)):
        heights = np.roll(after - before, shift).reshape(-1, node)
        assert (heights.sum(axis=1) == node**2 // (2 * reach)).all()
        assert (heights == heights[0]).all() and (heights == heights[:, ::-1]).all()


def test_drawings_count_what_they_show():
    assert verdict("figure1a").ours.rows["a node of 16 points"]["points computed"] == 56
    assert verdict("figure4b").ours.rows["a node of 16 points"]["points computed"] == 64
    lost = verdict("figure3b").ours.rows["a node of 20 points"]
    assert lost == {"values needed": 16, "of these overwritten": 16}
    for number in (
        "figure1b",
        "figure2a",
        "figure2b",
        "figure3a",
        "figure4a",
        "figure5",
        "figure6",
    ):
        assert verdict(number).word == ALONE


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Records of made-up times where `reproduce` looks for them."""
    monkeypatch.setattr(records, "default_folder", lambda: tmp_path)
    times = {"classic": 8e-6, "shared": 2e-6, "hybrid": 5e-6, "register": 1e-6}

    def row(problem, scheme, n, seconds, variant, **size):
        plan = Plan(128, 1 if variant == measure.SINGLE else 2)
        timing = Timing((seconds,) * 20)
        shape = Shape(as_problem(problem), scheme, n, "float64")
        return measure.row(SESSION, shape, plan, timing, variant, **size)

    steps, cores = [], []
    for problem in PROBLEMS:
        for n in (2**11, 2**20):
            for scheme, seconds in times.items():
                seconds = seconds * (1 if n == 2**11 or scheme == "classic" else 2)
                if problem == "euler" and scheme == "shared":
                    seconds *= 8
                steps.append(row(problem, scheme, n, seconds, measure.SINGLE))
                steps.append(row(problem, scheme, n, seconds / 2, ""))
            seconds = 80e-6 * n / 2**11
            cores.append(row(problem, "classic", n, seconds, measure.ON_THREADS, cores=8))
    records.save(stopped_clock.content("swept/step", steps), tmp_path)
    records.save(stopped_clock.content("swept/cores", cores), tmp_path)
    return tmp_path


def test_speed_ups_are_quotients(kept):
    answer = verdict("figure7b")
    assert answer.word == DIFFERS and len(answer.compared) == 4
    assert answer.ours.rows["heat and Kuramoto-Sivashinsky"] == {"Shared from": 2, "Shared to": 4}
    assert answer.ours.rows["small sizes"]["Hybrid slower than Shared to"] == pytest.approx(2.5)
    rows = verdict("figure9b").ours.rows
    assert rows["all sizes"] == pytest.approx(
        {"Classic over swept from": 2, "Classic over swept to": 4}
    )
    assert rows["best swept plan against best classic"]["speed-up to"] == pytest.approx(8)
    rows = verdict("figure10b").ours.rows["GPU over CPU"]
    assert rows == pytest.approx({"from": 10, "to": 80e-6 * 512 / 8e-6})


def test_with_ranks_the_papers_range_is_compared_with_theirs(kept):
    record = records.load("swept/cores")
    rows = [
        row
        | {"variant": measure.ON_RANKS, "size": row["size"] | {"ranks": 4}}
        | {"seconds_median": 3 * row["seconds_median"], "efficiency": row["efficiency"] / 3}
        for row in record.rows
    ]
    records.save(stopped_clock.content("swept/cores", [*record.rows, *rows]), kept)
    found = verdict("figure10b").ours.rows
    assert found["GPU over CPU"] == pytest.approx({"from": 30, "to": 3 * 80e-6 * 512 / 8e-6})
    assert found["GPU over CPU, Numba's threads"]["from"] == pytest.approx(10)
    rows = verdict("figure10a").ours.rows["n = 2048"]
    assert rows["classic, 8 cores, us"] == pytest.approx(80)
    assert rows["classic, 4 ranks, us"] == pytest.approx(240)
    assert rows["classic, GPU, us"] == pytest.approx(8)


def test_times_are_listed_by_size(kept):
    rows = verdict("figure8a").ours.rows
    assert rows["n = 2048"]["register, us"] == pytest.approx(0.5)
    assert rows[f"n = {2**20}"][f"shared, {magee2017.SINGLE}, us"] == pytest.approx(4)
    assert verdict("figure10a").ours.rows["n = 2048"]["classic, 8 cores, us"] == pytest.approx(80)
