"""The scripts behind the commands: what counts as a failure, and what a stored run holds."""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path
from types import ModuleType

import nbformat
import numpy as np
import pytest
from nbclient.exceptions import CellExecutionError

import dgbook
from dgbook.gpu.plan import SHIPPED
from dgbook.lab import euler, machine, records

ROOT = Path(__file__).resolve().parents[2]


def load(name: str) -> ModuleType:
    """A script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


runner, execute, address = load("test_all"), load("execute"), load("address")
ship_plans = load("ship_plans")

# Plugins take ten times as long to load as these tests to run.
BARE = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

PASSES = "def test_a():\n    pass\n"
FAILS = "def test_b():\n    assert 1 == 2\n"
SKIPS = "import pytest\n\n\ndef test_c():\n    pytest.skip('no device')\n"
BREAKS = "import a_module_that_does_not_exist\n"
RAISES = "import pytest\n@pytest.fixture\ndef f(): raise OSError\ndef test_d(f): pass\n"


@pytest.mark.parametrize(
    ("sources", "passed", "failed"),
    [
        ([PASSES], 1, 0),
        ([PASSES, SKIPS], 1, 0),
        ([PASSES, FAILS], 1, 1),
        ([PASSES, RAISES], 1, 1),
        ([BREAKS], 0, 1),
        ([SKIPS], 0, 1),
        ([], 0, 1),
    ],
)
def test_a_part_passes_only_if_tests_ran_and_passed(
    tmp_path: Path, sources: list[str], passed: int, failed: int
) -> None:
    """Failures, errors, files that do not load, empty folders and skips alone: none passes."""
    for i, source in enumerate(sources):
        (tmp_path / f"test_{i}.py").write_text(source)
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=BARE, capture_output=True, check=False)
    outcome = runner.judge(done.returncode, report)
    assert (outcome.passed, outcome.failed) == (passed, failed)


CASES = """
import pytest

@pytest.mark.parametrize(
    ("name", "order", "cc"),
    [("a", 1, (7, 5)), ("a", 2, (7, 5)), ("b", 2, (7, 5)), ("a", 3, (9, 0)), ("b", 9, (9, 0))],
)
def test_kernel(name, order, cc): pass

@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("size", [1, 2.5])
def test_sizes(size, flag): pass

def test_alone(): pass
"""


def test_one_case_is_another_from_test_to_test(tmp_path: Path) -> None:
    """The first of the first test, the second of the second, and of one case that one."""
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_a.py").write_text(CASES)
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", str(tmp_path)]

    def cases(*options: str) -> list[str]:
        lines = subprocess.run(
            [*command, *options], cwd=tmp_path, env=BARE, capture_output=True, text=True, check=True
        )
        return [n.partition("::test_")[2] for n in lines.stdout.splitlines() if "::test_" in n]

    assert len(cases()) == 5 + 4 + 1
    assert cases("--one-case") == ["kernel[a-1-cc0]", "sizes[1-False]", "alone"]


SEEDED = """
import numpy as np
FOR_ALL = np.random.default_rng(3)
def test_seeds():
    found = [FOR_ALL, np.random.default_rng(np.int64(3)), np.random.default_rng([3])]
    assert [random.integers(10**9) for random in found] == {numbers}
    assert np.random.default_rng().random() != np.random.default_rng().random()
"""


def test_seeds_are_shifted(tmp_path: Path) -> None:
    """Those of a file's own generator too; no seed and a list of them stay what they are."""
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    numbers = [int(np.random.default_rng(seed).integers(10**9)) for seed in (7, 7, [3])]
    (tmp_path / "test_a.py").write_text(SEEDED.format(numbers=numbers))
    command = [sys.executable, "-m", "pytest", "-q", str(tmp_path)]
    for options, code in (((), 1), (("--shift-seeds=4",), 0)):
        done = subprocess.run([*command, *options], cwd=tmp_path, env=BARE, capture_output=True)
        assert done.returncode == code, done.stdout


def test_a_sweep_says_what_failed_in_which_run(tmp_path: Path, monkeypatch, capsys) -> None:
    """A run of kernels that crash, or that had their run, is none; failures make it all fail."""
    monkeypatch.syspath_prepend(ROOT / "tools")  # where a script finds its neighbors
    sweep = load("sweep")
    monkeypatch.setattr(sweep, "REPORTS", tmp_path / "reports")
    chosen = {"A": "Alder", "B": "Alder", "C": None, "D": ""}
    cores = [sweep.Run(name, {"OPENBLAS_CORETYPE": name}) for name in chosen]
    fails = sweep.Run("fails", {"FAILS": "1"})
    monkeypatch.setattr(sweep, "RUNS", [*cores, fails])
    monkeypatch.setattr(
        sweep, "kernels", lambda given: chosen.get(given.get("OPENBLAS_CORETYPE"), "Bulldozer")
    )
    (tmp_path / "pytest.ini").write_text("[pytest]")  # names begin here, wherever the book lies
    (tmp_path / "test_a.py").write_text("import os\ndef test_b(): assert 'FAILS' not in os.environ")
    assert sweep.main([str(tmp_path), "-n", "0"]) == 1
    table = capsys.readouterr().out.splitlines()[1:]
    assert [line.split(maxsplit=2) for line in table[:5]] == [
        ["A", "Alder", "1 passed"],
        ["B", "Alder", "not run: the same kernels as 'A'"],
        ["C", "-", "not run: this processor cannot execute these kernels"],
        ["D", "-", "not run: NumPy is without OpenBLAS here"],
        ["fails", "Bulldozer", "1 failed"],
    ]
    assert table[5].split() == ["test_a::test_b"] and len(table) == 6
    monkeypatch.setattr(sweep, "RUNS", cores)
    assert sweep.main([str(tmp_path), "-n", "0"]) == 0


def test_a_sweep_asks_what_kernels_are_chosen(monkeypatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    sweep = load("sweep")
    assert sweep.kernels({}) is not None
    monkeypatch.setattr(sweep, "PROBE", "import os; os.abort()")
    assert sweep.kernels({}) is None


def test_a_pytest_that_crashed_has_failed(tmp_path: Path) -> None:
    """No report at all is a failure, whatever the exit code."""
    assert runner.judge(0, tmp_path / "none.xml").failed == 1
    assert runner.judge(-11, tmp_path / "none.xml").failed == 1


def test_every_folder_of_tests_is_run() -> None:
    """A new folder under tests/ that no part names would never be run."""
    assert not runner.forgotten_folders()


@pytest.fixture
def reports(tmp_path: Path, monkeypatch) -> Path:
    """A folder of its own for what parts print: those that run here have theirs."""
    monkeypatch.setattr(runner, "REPORTS", tmp_path / "reports")
    return tmp_path / "reports"


def test_the_whole_fails_when_a_part_does(reports: Path, monkeypatch, capsys) -> None:
    """The exit code and the last line tell; the parts after a failure still run."""
    outcomes = {"one": runner.Outcome(failed=2), "two": runner.Outcome(passed=3)}
    parts = {name: (lambda _, outcome=outcome: outcome) for name, outcome in outcomes.items()}
    monkeypatch.setattr(runner, "PARTS", parts)
    assert runner.main([]) == 1
    lines = capsys.readouterr().out.strip().splitlines()
    assert lines[-1] == "3 passed, 2 failed"
    assert runner.main(["two"]) == 0
    assert runner.main(["three"]) == 2


def test_parts_run_side_by_side_but_not_before_what_they_look_at(
    reports: Path, monkeypatch, capsys
) -> None:
    """Two parts meet, a third waits for the first of them; what each printed stands together."""
    meeting, done = threading.Barrier(2, timeout=30), []

    def part(name: str, meets: bool) -> runner.Part:
        def run(given: runner.Runner) -> runner.Outcome:
            code = given.run(sys.executable, "-c", f"print('{name} one')")
            if meets:
                meeting.wait()
            code += given.run(sys.executable, "-c", f"print('{name} two')")
            if name == "made":
                time.sleep(0.2)
            done.append(name)
            return runner.Outcome(passed=code == 0)

        return run

    parts = {"made": part("made", True), "seen": part("seen", False), "other": part("other", True)}
    monkeypatch.setattr(runner, "PARTS", parts)
    monkeypatch.setattr(runner, "AFTER", {"seen": "made"})
    monkeypatch.setattr(runner, "CORES", 2)
    assert runner.main(["other", "seen", "made"]) == 0
    assert done.index("made") < done.index("seen")
    printed = capsys.readouterr().out
    for name in parts:
        assert f"==== {name}\n{name} one\n{name} two\n" in printed
    assert [line.split()[0] for line in printed.splitlines()[-7:-4]] == list(parts)
    assert runner.main(["seen"]) == 0  # alone it looks at what there is
    parts["made"] = lambda _: runner.Outcome(failed=1)
    assert runner.main(["seen", "made"]) == 1
    assert "not run: made failed" in capsys.readouterr().out
    assert done.count("seen") == 2


def test_the_order_of_parts_is_one_in_which_they_can_run() -> None:
    """What a part needs has started before it, or it might wait for what waits for its place."""
    order = list(runner.PARTS)
    assert all(order.index(first) < order.index(name) for name, first in runner.AFTER.items())
    assert set(order) - set(runner.AFTER) == {"install", "colab"}


def test_a_command_of_a_part_is_paid_for(reports: Path) -> None:
    """What a command costs, and its children, is added up; so is how it ended told."""
    given = runner.Runner((reports.parent / "log").open("w"), workers=1)
    spin = "import time\nwhile time.process_time() < 0.3: pass"
    assert given.run(sys.executable, "-c", spin) == 0
    inner = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {spin!r}]); sys.exit(3)"
    assert given.run(sys.executable, "-c", inner) == 3
    assert 0.6 <= given.cpu < 6
    given.output.close()


def test_what_cores_did_in_all_is_known() -> None:
    """Also for what no part's commands wait for, as the processes of a browser."""
    before, start = runner.machine(), time.monotonic()
    spin = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.Popen(["sh", "-c", f'{sys.executable} -c "{spin}" &']).wait()
    time.sleep(3)
    spent = {name: now - before[name] for name, now in runner.machine().items()}
    assert spent["busy"] > 0.4
    together = (time.monotonic() - start) * os.cpu_count()
    assert sum(spent.values()) == pytest.approx(together, rel=0.2)


def notebook(path: Path, *sources: str) -> Path:
    """A notebook of code cells on disk, with a timestamp in the first."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    cells[0].metadata["execution"] = {"iopub.execute_input": "2026-01-01T00:00:00Z"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_execute_stores_what_was_printed(tmp_path: Path) -> None:
    """Outputs and counts are stored, prints of one cell in one piece; timestamps are not."""
    source = "import os\nprint('a')\nprint(os.path.basename(os.getcwd()) == 'here')"
    folder = tmp_path / "here"
    folder.mkdir()
    path = notebook(folder / "a.ipynb", source, "6 * 7", "raise OSError")
    stored = nbformat.read(path, as_version=4)
    stored.cells[2].metadata["tags"] = ["skip-execution"]
    nbformat.write(stored, path)
    execute.execute(path)
    cells = nbformat.read(path, as_version=4).cells
    assert [cell.execution_count for cell in cells] == [1, 2, None]
    assert [output.text for output in cells[0].outputs] == ["a\nTrue\n"]
    assert cells[1].outputs[0].data["text/plain"] == "42"
    assert "execution" not in cells[0].metadata
    assert list(folder.iterdir()) == [path]


def test_execute_leaves_a_failing_notebook_alone(tmp_path: Path) -> None:
    """A run that fails changes nothing on disk."""
    path = notebook(tmp_path / "a.ipynb", "1 + 1", "1 / 0")
    before = path.read_bytes()
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        execute.execute(path)
    assert path.read_bytes() == before
    assert execute.main([str(path)]) == 1


def test_every_chapter_names_the_configured_address_once():
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        assert address.in_chapter(path) == [address.configured()], path.name


def test_an_address_is_set_everywhere_and_taken_away_again(tmp_path, monkeypatch):
    (tmp_path / "chapters").mkdir()
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    (tmp_path / "_config.yml").write_text(config, encoding="utf-8")
    chapter = tmp_path / "chapters" / "01.ipynb"
    cell = nbformat.v4.new_code_cell('REPOSITORY = ""  # where\nprint(REPOSITORY)')
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), chapter)
    monkeypatch.setattr(address, "ROOT", tmp_path)
    url = "https://example.org/a/book"
    assert address.main([url + "/"]) == 0
    assert address.configured() == url and address.in_chapter(chapter) == [url]
    assert address.main([""]) == 0
    assert (tmp_path / "_config.yml").read_text(encoding="utf-8") == config
    assert address.main(["not an address"]) == 2


@pytest.mark.parametrize("lock", ["requirements.txt", "requirements-colab.txt"])
def test_every_pin_has_hashes(lock: str) -> None:
    """A version with its files' SHA-256 behind it; and pip is told to ask for them."""
    text = (ROOT / lock).read_text().replace("\\\n", "")
    pins = [
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    assert len(pins) > 30
    for pin in pins:
        assert re.fullmatch(
            r"[\w.-]+(\[[\w, -]+\])?==\S+( ; .*?)?( +--hash=sha256:[0-9a-f]{64})+", pin
        )
    sources = [ROOT / "Makefile", ROOT / "tools" / "colab_lane.sh"]
    calls = re.findall(
        r"pip install.*", "".join(s.read_text() for s in sources).replace("\\\n", "")
    )
    assert [call for call in calls if call.endswith(f"--require-hashes -r {lock}")]


def test_third_party_scripts_are_those_that_were_chosen() -> None:
    """Each file under vendor/ is listed with its SHA-256, and none is missing."""
    vendor = ROOT / "vendor"
    listed = dict(
        reversed(line.split("  ./")) for line in (vendor / "SHA256SUMS").read_text().splitlines()
    )
    found = {
        path.relative_to(vendor).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in vendor.rglob("*")
        if path.is_file() and path.name != "SHA256SUMS"
    }
    assert len(found) > 60
    assert found == listed


def test_the_versions_of_python_that_are_named_are_tested() -> None:
    """In the package's data, in the README, and by the workflow."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [c.rpartition(" ")[2] for c in project["classifiers"] if "Python :: 3." in c]
    assert named == ["3.11", "3.12", "3.13"]
    matrix = ", ".join(f'"{version}"' for version in named)
    assert f"python-version: [{matrix}]" in (ROOT / ".github/workflows/book.yml").read_text()
    assert f"Python {named[0]} to {named[-1]}" in (ROOT / "README.md").read_text()


# -------------------------------------------------------------------------------- shipped plans


def timing(seconds: float | None, plan: dict, **changes) -> dict:
    """A line of a file of timings, as the tuner writes it."""
    return {
        "name": "maxwell/fused/cuda", "device": "Test 9000", "order": 3, "dtype": "float32",
        "dgbook": dgbook.__version__, "plan": plan, "seconds_median": seconds, "seconds_iqr": 0.0,
        "samples": 20, "failure": "", "fatal": False,
    } | changes  # fmt: skip


def test_the_fastest_plans_are_shipped(tmp_path, monkeypatch):
    """And what was shipped stays where nothing faster is known, in the order that it had."""
    tensor, other, plain, slow = ({"rows": n, "tensor": n < 3} for n in (1, 2, 3, 4))
    numba = {"name": "maxwell/fused/numba"}
    timings = [
        timing(5e-4, slow),
        timing(1e-4, plain),  # timed again below
        timing(2e-4, tensor),
        timing(3e-4, plain),
        timing(2.5e-4, other),
        timing(None, {"rows": 5, "tensor": False}, failure="RuntimeError: it failed"),
        timing(1e-5, slow, dgbook="0.0"),
        timing(1e-5, {"w_p": 1}, name="maxwell/paper/lift"),
        timing(7e-4, {"rows": 8, "tensor": False}, order=4),
        timing(8e-4, slow, order=4),
        timing(9e-4, tensor, order=5),
    ]
    old = [timing(None, slow), timing(6e-4, slow, order=7), timing(6e-4, slow, **numba)]
    (tmp_path / "plans").mkdir()
    path, file = tmp_path / "plans" / "Test-9000.jsonl", tmp_path / "Test-9000.jsonl"
    for name, lines in ((path, old), (file, timings)):
        name.write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setattr(ship_plans, "SHIPPED", path.parent)
    monkeypatch.setattr(sys, "argv", ["ship_plans.py", str(file)])
    ship_plans.main()
    written = [json.loads(line) for line in path.read_text().splitlines()]
    assert written == [timings[i] for i in (2, 3)] + old[1:] + [timings[i] for i in (8, 10)]
    file.write_text(json.dumps(timings[7]))
    with pytest.raises(SystemExit, match="no timing of a kernel"):
        ship_plans.main()
    assert [json.loads(line) for line in path.read_text().splitlines()] == written


def test_shipped_plans_are_what_the_script_ships():
    (path,) = SHIPPED.glob("*.jsonl")
    groups = {}
    for line in ship_plans.read(path):
        groups.setdefault(ship_plans.subject(line), []).append(line)
    ranked = [line | {"seconds_median": i} for g in groups.values() for i, line in enumerate(g)]
    found = ship_plans.fastest(ranked)
    assert found.keys() == groups.keys()
    assert all([x["plan"] for x in found[s]] == [x["plan"] for x in groups[s]] for s in groups)


# ------------------------------------------------------------------------------- records on a GPU


def benches() -> list[tuple[str, argparse.Namespace]]:
    """What `make gpu` measures: a family and its options, for each `bench` in the Makefile."""
    lines = re.findall(r"-m dgbook bench (\w+)(.*)", (ROOT / "Makefile").read_text())
    found = []
    for family, options in lines:
        parser = argparse.ArgumentParser()
        importlib.import_module(f"dgbook.cli.{family}").add_bench_arguments(parser)
        found.append((family, parser.parse_args(options.split())))
    return found


def names_of(family: str, options: argparse.Namespace) -> list[str]:
    """The records that a `bench` writes."""
    if family == "linear":
        return [f"linear/{options.what}"]
    if family == "machine":
        return sorted({machine.EFFECTS[name].record for name in options.effects})
    return [f"{family}/{what}" for what in options.what]


def test_make_gpu_measures_what_records_hold():
    """Or the newer file, of less, would stand before the fuller one."""
    written = {name for family, options in benches() for name in names_of(family, options)}
    stored = {record.name for record in records.all_records()}
    for family, options in benches():
        for name in set(names_of(family, options)) & stored:
            rows = records.load(name).rows
            if hasattr(options, "orders"):
                default = euler.ORDERS.get(name.removeprefix("euler/"), ())
                orders = set(options.orders or default)
                assert {row["order"] for row in rows} <= orders, name
            if hasattr(options, "dtypes"):
                assert {row["dtype"] for row in rows} <= set(options.dtypes), name
    assert len(written) == sum(len(names_of(*bench)) for bench in benches()), "each once"
    others = {record.name for record in records.all_records()} - written
    assert others == {
        f"{family}/{what.strip('` ')}"
        for family, names in re.findall(r"`(\w+)/\{([\w, ]+)\}`", (ROOT / "README.md").read_text())
        for what in names.split(",")
    }
