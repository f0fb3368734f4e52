"""The tuner: it finds the fastest plan, remembers all, resumes, and survives what goes wrong."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from dgbook.arguments import check_counts
from dgbook.gpu import Device
from dgbook.gpu import tune as module
from dgbook.gpu.timing import Timing
from dgbook.gpu.tune import as_plan, cache_folder, forget, ranked, tune


def best(*what, **where):
    """The fastest plan remembered, or None."""
    return next(iter(ranked(*what, **where)), None)


@dataclass(frozen=True)
class Plan:
    threads: int
    tile: tuple[int, int] = (1, 1)


@dataclass(frozen=True)
class Other:
    threads: int


@dataclass(frozen=True)
class Counted(Plan):
    """As the plans of kernels are: it refuses what is not a count."""

    def __post_init__(self):
        check_counts(self, "threads")


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


def test_plans_that_are_remembered_come_the_fastest_first(search, monkeypatch, tmp_path):
    search(Runs(monkeypatch))
    plans = [as_plan(Plan, values) for values in ranked("family/lift", GPU, 4, folder=tmp_path)]
    assert plans[:2] == [Plan(64, (2, 2)), Plan(64, (1, 2))], "1 and 1.25 ms"
    assert ranked("family/lift", GPU, 5, folder=tmp_path) == []
    assert as_plan(Other, vars(Plan(64, (2, 2)))) is None, "of another version"


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
    with pytest.raises(RuntimeError, match=r"give tune\(..., folder=...\)"):
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


# ------------------------------------------------------------------------- what a stranger wrote


def written(folder, **changes):
    """A line about the fastest plan there can be, but for the changes, added to the file."""
    line = {
        "name": "family/lift", "device": GPU.name, "order": 4, "dtype": "float32",
        "dgbook": module.dgbook.__version__, "plan": {"threads": 32, "tile": [1, 1]},
        "seconds_median": 1e-9, "seconds_iqr": 0.0, "samples": 20, "failure": "", "fatal": False,
    }  # fmt: skip
    path, _ = lines(folder)
    with path.open("a") as file:
        file.write(json.dumps(line | changes) + "\n")


STRANGE = {
    "negative seconds": {"seconds_median": -1.0},
    "no seconds": {"seconds_median": 0.0},
    "seconds NaN": {"seconds_median": float("nan")},
    "seconds text": {"seconds_median": "1e-9"},
    "seconds None": {"seconds_median": None},
    "spread infinite": {"seconds_iqr": float("inf")},
    "spread negative": {"seconds_iqr": -1e-9},
    "samples text": {"samples": "20"},
    "samples few": {"samples": 1},
    "samples true": {"samples": True},
    "failure a list": {"failure": []},
    "failure with a time": {"failure": "it failed"},
    "fatal without failure": {"fatal": True},
    "fatal text": {"fatal": "no", "failure": "it failed", "seconds_median": None},
    "plan a list": {"plan": [32]},
    "plan NaN": {"plan": {"threads": float("nan")}},
    "plan deep": {"plan": {"threads": [[[[[[32]]]]]]}},
    "plan of dicts": {"plan": {"threads": {"x": 32}}},
}


@pytest.mark.parametrize("what", STRANGE)
def test_an_entry_that_no_search_writes_is_forgotten(what, search, tmp_path, monkeypatch):
    search(Runs(monkeypatch))
    written(tmp_path)
    assert best("family/lift", GPU, 4, "float32", tmp_path) == {"threads": 32, "tile": (1, 1)}
    assert forget(device=GPU, folder=tmp_path) == len(PLANS) + 1
    search(Runs(monkeypatch))
    written(tmp_path, **STRANGE[what])
    assert best("family/lift", GPU, 4, "float32", tmp_path) == {"threads": 64, "tile": (2, 2)}
    runs = Runs(monkeypatch)
    assert search(runs).plan == Plan(64, (2, 2)) and runs.seen == []
    assert forget(device=GPU, folder=tmp_path) == len(PLANS)


IMPOSSIBLE = {
    "negative": {"threads": -32, "tile": [1, 1]},
    "absurd": {"threads": 2**40, "tile": [1, 1]},
    "one too many": {"threads": 1025, "tile": [1, 1]},
    "text": {"threads": "32", "tile": [1, 1]},
    "real": {"threads": 32.0, "tile": [1, 1]},
    "true": {"threads": True, "tile": [1, 1]},
    "None": {"threads": None, "tile": [1, 1]},
    "a short tile": {"threads": 32, "tile": [1]},
    "a tile of text": {"threads": 32, "tile": ["1", "1"]},
    "a number as tile": {"threads": 32, "tile": 1},
    "one field": {"threads": 32},
    "a field more": {"threads": 32, "tile": [1, 1], "more": 1},
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_a_plan_that_its_kernel_cannot_have_is_forgotten(what, search, tmp_path, monkeypatch):
    """The next best one is taken: the wrong one is as good as not there."""
    search(Runs(monkeypatch))
    written(tmp_path, plan=IMPOSSIBLE[what])
    kind = Plan if what == "true" else Counted  # the one refuses nothing by itself
    found = [as_plan(kind, values) for values in ranked("family/lift", GPU, 4, folder=tmp_path)]
    assert next(plan for plan in found if plan is not None) == kind(64, (2, 2))


def test_the_largest_block_there_is_counts(search, tmp_path, monkeypatch):
    search(Runs(monkeypatch))
    written(tmp_path, plan={"threads": 1024, "tile": [1, 1]})
    fastest = ranked("family/lift", GPU, 4, folder=tmp_path)[0]
    assert as_plan(Counted, fastest) == Counted(1024, (1, 1))


@pytest.mark.parametrize(
    "junk", [b'{"plan":' + 100_000 * b"[", b"9" * 10_000, b'{"order": 1' + b"0" * 5000, b"\xff\xfe"]
)
def test_lines_that_break_parsers_are_no_obstacle(junk, search, tmp_path, monkeypatch):
    search(Runs(monkeypatch))
    path, _ = lines(tmp_path)
    path.write_bytes(junk + b"\n" + path.read_bytes())
    runs = Runs(monkeypatch)
    search(runs)
    assert runs.seen == []


@pytest.mark.parametrize("kind", ["folder", "pipe", "unreadable"])
def test_what_is_not_a_file_is_not_read(kind, tmp_path, monkeypatch):
    """The pipe would never end."""
    path = tmp_path / "Test-GPU-9000-PCIe.jsonl"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.touch()

        def refused(path):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(module.Path, "read_bytes", refused)
    assert best("family/lift", GPU, 4, "float32", tmp_path) is None
    assert forget(device=GPU, folder=tmp_path) == 0
    if kind != "unreadable":
        runs = Runs(monkeypatch)
        with pytest.raises(RuntimeError, match=r"cannot be remembered in .*give tune\("):
            tune("a/b", PLANS, runs, GPU, folder=tmp_path, progress=False)
        assert runs.seen == []


def test_a_full_disk_ends_a_search_in_one_line(search, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(RuntimeError, match=r"cannot be remembered in .*No space left on device"):
        search(Runs(monkeypatch))
