"""Run every test that needs no GPU, part by part, and print how long each part took.

A part that fails does not stop the others; any failure makes the whole fail. A part in which no
test ran has failed: an empty folder proves nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "_build" / "reports"
COLAB = ROOT / ".venv-colab"
WORKERS = str(min(os.cpu_count() or 1, 4))
NO_TESTS = 5  # pytest's exit code

# Workers share the cores, so each gets one thread; and a kernel is this environment's, not the
# user's.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JUPYTER_PREFER_ENV_PATH": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "",  # empty means no: else every process compiles its imports
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
}


@dataclass(frozen=True)
class Outcome:
    """What became of a part: counts of tests, and a word where counts do not tell."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    note: str = ""

    def __str__(self) -> str:
        counts = {"passed": self.passed, "failed": self.failed, "skipped": self.skipped}
        words = [f"{count} {name}" for name, count in counts.items() if count]
        return ", ".join([*words, self.note] if self.note else words)


def run(*command: str) -> int:
    """Run a command in the repository's root; its output goes where ours goes."""
    return subprocess.run(command, cwd=ROOT, env=os.environ | ENVIRONMENT, check=False).returncode


def commands(*all_commands: tuple[str, ...]) -> Callable[[], Outcome]:
    """A part of commands that succeed or fail, each counted as one test."""

    def part() -> Outcome:
        codes = [run(*command) for command in all_commands]
        failed = sum(code != 0 for code in codes)
        return Outcome(passed=len(codes) - failed, failed=failed)

    return part


def pytest(name: str, *arguments: str, python: str = sys.executable) -> Callable[[], Outcome]:
    """A part of pytest tests, counted from its report."""

    def part() -> Outcome:
        report = REPORTS / f"{name}.xml"
        report.parent.mkdir(parents=True, exist_ok=True)
        report.unlink(missing_ok=True)
        code = run(python, "-m", "pytest", "-q", f"--junitxml={report}", *arguments)
        return judge(code, report)

    return part


def judge(code: int, report: Path) -> Outcome:
    """Outcome of a pytest run from its exit code and its JUnit report."""
    if code == NO_TESTS:
        return Outcome(failed=1, note="no tests found")
    if not report.exists():
        return Outcome(failed=1, note=f"pytest stopped with exit code {code}")
    suites = ElementTree.parse(report).getroot().iter("testsuite")
    total, failed, skipped = 0, 0, 0
    for suite in suites:
        total += int(suite.get("tests"))
        failed += int(suite.get("failures")) + int(suite.get("errors"))
        skipped += int(suite.get("skipped"))
    passed = max(total - failed - skipped, 0)
    if failed == 0 and code != 0:
        return Outcome(passed, 1, skipped, note=f"pytest stopped with exit code {code}")
    if failed == 0 and passed == 0:
        return Outcome(passed, 1, skipped, note="every test was skipped")
    return Outcome(passed, failed, skipped)


# Neighbors stay with one worker, which then has the kernels compiled that they share.
SPREAD = ("-n", WORKERS, "--dist", "worksteal")


def colab() -> Outcome:
    """The kernels' tests once more, with the versions that Colab has.

    Each test, but not in all combinations, and compiled for Colab's T4 where there is a choice;
    that broken kernels are found says nothing of versions.
    """
    unavailable = COLAB / "unavailable"
    if unavailable.exists():
        return Outcome(note=f"not run: {unavailable.read_text().strip()}")
    python = str(COLAB / "bin" / "python")
    fewer = ("--kinds-once", "-k", "not rejected and not 8.0 and not 9.0")
    return pytest("colab", "tests/simulator", "tests/compile", *fewer, *SPREAD, python=python)()


def browser() -> Outcome:
    """The built pages in a browser, which is installed first where there is none."""
    if run(sys.executable, "tools/chromium.py", "--install") != 0:
        return Outcome(failed=1, note="no Chromium, see above")
    return pytest("browser", "tests/book", "-n", WORKERS, "--dist", "loadfile")()


NBVAL = ("--nbval-lax", "--dist", "loadfile", "--nbval-cell-timeout=120", "-p", "no:cacheprovider")

PARTS: dict[str, Callable[[], Outcome]] = {
    "lint": commands(("ruff", "check", "."), ("ruff", "format", "--check", ".")),
    "cpu": pytest("cpu", "tests/cpu", *SPREAD),
    "simulator": pytest("simulator", "tests/simulator", *SPREAD),
    "compile": pytest("compile", "tests/compile", *SPREAD),
    "colab": colab,
    "notebooks": pytest("notebooks", "chapters", "-n", WORKERS, *NBVAL),  # others: assignments
    "assignments": pytest("assignments", "tests/exercises", "-n", WORKERS, "--dist", "loadfile"),
    "book": commands(("make", "--no-print-directory", "pages")),
    "browser": browser,
}
# Folders of tests/ by the part that runs them; `make gpu` runs the last.
FOLDERS = {"cpu", "simulator", "compile", "exercises", "book", "gpu"}


def forgotten_folders() -> list[str]:
    """Folders with tests that no part runs."""
    found = {path.relative_to(ROOT / "tests").parts[0] for path in ROOT.glob("tests/**/test_*.py")}
    return sorted(found - FOLDERS)


def main(names: list[str]) -> int:
    """Run the named parts, all if none is named; 0 if nothing failed."""
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        print(f"There is no part {', '.join(unknown)}; there are {', '.join(PARTS)}.")
        return 2
    outcomes = {}
    if forgotten := forgotten_folders():
        outcomes["folders"] = (0.0, Outcome(failed=1, note=f"no part runs {', '.join(forgotten)}"))
    for name in names or PARTS:
        print(f"\n==== {name}", flush=True)
        start = time.perf_counter()
        outcome = PARTS[name]()
        outcomes[name] = (time.perf_counter() - start, outcome)

    print(f"\n{'part':<12} {'seconds':>8}  result")
    for name, (seconds, outcome) in outcomes.items():
        print(f"{name:<12} {seconds:8.1f}  {outcome}")
    print(f"{'all':<12} {sum(seconds for seconds, _ in outcomes.values()):8.1f}\n")
    passed = sum(outcome.passed for _, outcome in outcomes.values())
    failed = sum(outcome.failed for _, outcome in outcomes.values())
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
