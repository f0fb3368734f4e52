"""The tuner: it finds the fastest plan, remembers all, resumes, and survives what goes wrong."""

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from dgbook.gpu import Device
from dgbook.gpu import tune as module
from dgbook.gpu.timing import Timing
from dgbook.gpu.tune import best, cache_folder, forget, remembered, tune


@dataclass(frozen=True)
class Plan:
    threads: int
    tile: tuple[int, int] = (1, 1)


@dataclass(frozen=True)
class Other:
    threads: int


PLANS = [Plan(t, (e, 2)) for t in (32, 64, 128) for e in (1, 2)]
GPU = Device("cpu", "Test GPU 9000 / PCIe", "A device that runs nothing.")


def cost(plan):
    """Seconds, smallest for 64 threads and a tile of (2, 2)."""
    return 1e-3 * (1 + abs(plan.threads - 64) / 32 + (2 - plan.tile[0]) / 4)


class Runs:
    """Counts what is measured; the time is the plan's cost, not the clock's."""

    def __init__(self, monkeypatch, fails=(), interrupt_at=None):
        self.seen, self.fails, self.interrupt_at = [], fails, interrupt_at
        monkeypatch.setattr(module, "measure", self.measure)

    def __call__(self, plan):
        return lambda: plan

    def measure(self, function, device, samples):
        plan = function()
        if len(self.seen) == self.interrupt_at:
            raise KeyboardInterrupt
        self.seen.append(plan)
        if plan in self.fails:
            raise RuntimeError(f"launch out of resources:\n{plan.threads} threads")
        return Timing((cost(plan),) * samples)


@pytest.fixture
def search(tmp_path):
    def run(runs, plans=PLANS, **changes):
        arguments = {"device": GPU, "order": 4, "dtype": "float32", "folder": tmp_path}
        return tune("family/lift", plans, runs, progress=False, **{**arguments, **changes})

    return run


def lines(folder):
    (path,) = folder.glob("*.jsonl")
    return path, path.read_text().splitlines()


def test_finds_the_fastest_and_remembers(search, tmp_path, monkeypatch):
    runs = Runs(monkeypatch)
    result = search(runs)
    assert result.plan == Plan(64, (2, 2))
    assert result.seconds == pytest.approx(1e-3)
    assert result.measured == len(PLANS) == len(set(runs.seen)) == len(runs.seen)
    assert [t.plan["threads"] for t in result.trials] == [p.threads for p in PLANS]
    costs = [t.seconds_median for t in result.ranking]
    assert costs == sorted(map(cost, PLANS))

    again = Runs(monkeypatch)
    second = search(again)
    assert again.seen == []
    assert (second.plan, second.measured, second.trials) == (result.plan, 0, result.trials)
    fields = best("family/lift", GPU, 4, "float32", tmp_path)
    assert Plan(**fields) == result.plan, "tuples are tuples again"


def test_a_line_says_all(search, tmp_path, monkeypatch):
    search(Runs(monkeypatch), plans=PLANS[:1])
    path, (text,) = lines(tmp_path)
    assert path.name == "Test-GPU-9000-PCIe.jsonl"
    line = json.loads(text)
    assert line["name"], line["device"] == ("family/lift", GPU.name)
    assert (line["order"], line["dtype"], line["samples"]) == (4, "float32", 20)
    assert line["plan"] == {"threads": 32, "tile": [1, 2]}
    assert line["seconds_median"] == pytest.approx(cost(PLANS[0]))


def test_other_subjects_are_other_searches(search, tmp_path, monkeypatch):
    search(Runs(monkeypatch))
    for change in ({"order": 5}, {"dtype": np.float64}, {"device": replace(GPU, name="Other")}):
        runs = Runs(monkeypatch)
        search(runs, **change)
        assert len(runs.seen) == len(PLANS), change
    assert best("family/lift", GPU, 6, "float32", tmp_path) is None
    assert best("family/gather", GPU, 4, "float32", tmp_path) is None
    monkeypatch.setattr(module.dgbook, "__version__", "999")
    assert best("family/lift", GPU, 4, "float32", tmp_path) is None, "other kernels, perhaps"


def test_an_interrupted_search_resumes(search, tmp_path, monkeypatch):
    first = Runs(monkeypatch, interrupt_at=4)
    with pytest.raises(KeyboardInterrupt):
        search(first)
    assert len(lines(tmp_path)[1]) == 4
    second = Runs(monkeypatch)
    result = search(second)
    assert len(second.seen) == len(PLANS) - 4
    assert set(first.seen) | set(second.seen) == set(PLANS)
    assert result.plan == Plan(64, (2, 2))


def test_new_plans_only_are_measured(search, monkeypatch):
    search(Runs(monkeypatch), plans=PLANS[:3])
    runs = Runs(monkeypatch)
    result = search(runs)
    assert set(runs.seen) == set(PLANS[3:])
    few = search(Runs(monkeypatch), plans=PLANS[:2])
    assert result.plan == Plan(64, (2, 2))
    assert few.plan == Plan(32, (2, 2)), "a remembered plan that is not asked for does not win"


def test_a_killed_process_loses_nothing(tmp_path):
    """A real process, killed in its third measurement by the operating system."""
    program = f"""
import os, signal
from dgbook.gpu.tune import tune
begun = []
def run(plan):
    begun.append(plan)
    if len(begun) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return lambda: sum(range(100))
tune("a/b", [{{"n": n}} for n in range(5)], run, "cpu", folder={str(tmp_path)!r}, progress=False)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2])
    assert done.returncode == -9
    _, written = lines(tmp_path)
    assert len([json.loads(line) for line in written]) == 2


def test_a_torn_line_is_measured_again(search, tmp_path, monkeypatch):
    search(Runs(monkeypatch))
    path, written = lines(tmp_path)
    path.write_text("\n".join(written)[:-20])
    runs = Runs(monkeypatch)
    result = search(runs)
    assert len(runs.seen) == 1
    assert result.plan == Plan(64, (2, 2))
    runs = Runs(monkeypatch)
    search(runs)
    assert runs.seen == [], "the new line did not join the torn one"


@pytest.mark.parametrize("junk", ["\n\n", "[1, 2]\n", '{"plan": 3}\n', "\x00\xff\n"])
def test_junk_in_the_file_is_no_obstacle(search, tmp_path, monkeypatch, junk):
    search(Runs(monkeypatch), plans=PLANS[:2])
    path, _ = lines(tmp_path)
    path.write_bytes(junk.encode("latin-1") + path.read_bytes())
    runs = Runs(monkeypatch)
    search(runs)
    assert set(runs.seen) == set(PLANS[2:])


def test_failed_plans_are_recorded_and_tried_again(search, tmp_path, monkeypatch):
    fails = (Plan(64, (2, 2)), Plan(128, (1, 2)))
    result = search(Runs(monkeypatch, fails))
    assert result.plan == Plan(64, (1, 2)), "the fastest of those that run"
    failed = [t for t in result.trials if t.failure]
    assert {t.plan["threads"] for t in failed} == {64, 128}
    assert failed[0].failure == "RuntimeError: launch out of resources: 64 threads"
    assert result.ranking[-1].failure
    assert sum('"failure": "Runtime' in line for line in lines(tmp_path)[1]) == 2
    runs = Runs(monkeypatch)
    assert search(runs).plan == Plan(64, (2, 2))
    assert set(runs.seen) == set(fails), "the fault may have been the caller's"
    assert best("family/lift", GPU, 4, "float32", tmp_path) == {"threads": 64, "tile": (2, 2)}


def test_no_plan_that_runs(search, tmp_path, monkeypatch):
    with pytest.raises(
        RuntimeError, match=r"all 6 plans of 'family/lift' failed.*out of resources"
    ):
        search(Runs(monkeypatch, PLANS))
    assert best("family/lift", GPU, 4, "float32", tmp_path) is None


def test_a_plan_that_kills_the_device_is_not_tried_twice(search, monkeypatch):
    monkeypatch.setattr(module, "_is_alive", lambda device: False)
    first = Runs(monkeypatch, [Plan(64, (2, 2))])
    with pytest.raises(RuntimeError, match=r"unusable.*Restart Python"):
        search(first)
    second = Runs(monkeypatch)
    result = search(second)
    assert Plan(64, (2, 2)) not in second.seen
    assert set(first.seen) | set(second.seen) == set(PLANS)
    assert result.plan == Plan(64, (1, 2))


def test_out_of_memory_is_not_the_plans_fault(search, monkeypatch):
    Runs(monkeypatch)

    def too_large(plan):
        raise MemoryError("no room for the data")

    with pytest.raises(MemoryError):
        search(too_large)


def test_forget(search, tmp_path, monkeypatch):
    search(Runs(monkeypatch))
    search(Runs(monkeypatch), order=5)
    assert forget("family/other", GPU, folder=tmp_path) == 0
    assert forget("family/lift", GPU, order=4, dtype="float32", folder=tmp_path) == len(PLANS)
    assert best("family/lift", GPU, 4, "float32", tmp_path) is None
    assert best("family/lift", GPU, 5, "float32", tmp_path) is not None
    assert forget(device=GPU, folder=tmp_path) == len(PLANS)
    assert [path.suffix for path in tmp_path.iterdir()] == [".jsonl"], "no file left behind"
    assert forget(device=GPU, folder=tmp_path / "nowhere") == 0


def test_a_plan_that_is_remembered_and_can_run(search, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "cache_folder", lambda: tmp_path)
    gpu = replace(GPU, kind="cuda")
    search(Runs(monkeypatch))

    def found(kind=Plan, device=gpu, order=4, legal=lambda plan: True):
        return remembered(kind, "family/lift", device, order, "float32", legal)

    assert found() == Plan(64, (2, 2))
    assert found(order=5) is None and found(device=GPU) is None
    assert found(legal=lambda plan: plan.threads < 64) is None
    assert found(kind=Other) is None, "of another version"


def test_a_file_is_parsed_once_and_again_when_it_has_grown(search, monkeypatch, tmp_path):
    parsed = []
    loads = json.loads
    monkeypatch.setattr(module.json, "loads", lambda text: parsed.append(text) or loads(text))
    search(Runs(monkeypatch), plans=PLANS[:2])
    parsed.clear()
    for _ in range(3):
        assert best("family/lift", GPU, 4, "float32", tmp_path)["threads"] == 32
    assert len(parsed) == 2
    search(Runs(monkeypatch))
    assert best("family/lift", GPU, 4, "float32", tmp_path)["threads"] == 64


def test_equal_plans_are_measured_once(search, monkeypatch):
    runs = Runs(monkeypatch)
    result = search(runs, plans=[PLANS[0], PLANS[0], PLANS[1]])
    assert len(runs.seen) == 2
    assert len(result.trials) == 3


def test_dicts_are_plans_too(tmp_path):
    calls = []
    result = tune(
        "a/b",
        [{"n": 10, "m": 1}, {"m": 1, "n": 20_000}],
        lambda plan: lambda: calls.append(sum(range(plan["n"]))),
        "cpu",
        folder=tmp_path,
        progress=False,
    )
    assert result.plan == {"n": 10, "m": 1}, "by the real clock, and by far"
    assert best("a/b", "cpu", folder=tmp_path) == {"n": 10, "m": 1}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"plans": []}, ValueError, "plans of 'family/lift' are empty"),
        ({"plans": [3]}, TypeError, "plan 3 is a int"),
        ({"plans": [{"n": np.zeros(2)}]}, ValueError, "cannot be written as JSON"),
        ({"plans": [{"n": float("nan")}]}, ValueError, "cannot be written as JSON"),
        ({"samples": 5}, ValueError, "samples = 5"),
        ({"device": "simulator"}, RuntimeError, "simulator"),
    ],
)
def test_bad_input_is_named(search, monkeypatch, changes, error, message):
    runs = Runs(monkeypatch)
    with pytest.raises(error, match=message):
        search(runs, **changes)
    assert runs.seen == []


def test_a_folder_that_cannot_be_written(search, tmp_path, monkeypatch):
    runs = Runs(monkeypatch)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"give tune\(..., folder=...\)"):
        search(runs, folder=tmp_path / "file" / "folder")
    assert runs.seen == [], "said before the work, not after"


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(module.sys, "platform", "linux")
    monkeypatch.setattr(module.Path, "home", lambda: Path("/home/reader"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "dgbook"
    for ignored in ("", "relative/path"):  # the XDG specification says so
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_folder() == Path("/home/reader/.cache/dgbook")
    monkeypatch.setattr(module.sys, "platform", "darwin")
    assert cache_folder() == Path("/home/reader/Library/Caches/dgbook")
    monkeypatch.setattr(module.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert cache_folder() == tmp_path / "dgbook" / "Cache"


def test_progress_shows_the_best_so_far(search, monkeypatch, capsys, tmp_path):
    Runs(monkeypatch)
    tune("a/b", PLANS, Runs(monkeypatch), GPU, 1, "float32", folder=tmp_path)
    shown = capsys.readouterr().err
    assert "tuning a/b" in shown
    assert "best" in shown
