"""Run every test that needs no GPU, some parts at a time, and print how long each part took.

A part that fails does not stop others, but those that need what it makes; any failure makes the
whole fail. A part in which no test ran has failed: an empty folder proves nothing. What a part
prints is shown when it ends. Any Python runs this, for the environments are parts as well.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "_build" / "reports"
BIN = ROOT / ".venv" / "bin"
COLAB = ROOT / ".venv-colab"
CORES = min(os.cpu_count() or 1, 4)
NO_TESTS = 5  # pytest's exit code

# Workers share the cores, so each gets one thread; and a kernel is this environment's, not the
# user's.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",  # where Numba takes more nonetheless, who waits there sleeps
    "JUPYTER_PREFER_ENV_PATH": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "",  # empty means no: else every process compiles its imports
    "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
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


@dataclass
class Runner:
    """What a part runs its commands with: where they print, and how many tests at a time.

    `cpu` adds up the time that cores spent on the commands.
    """

    output: TextIO
    workers: int
    environment: dict[str, str] = field(default_factory=ENVIRONMENT.copy)
    cpu: float = field(default=0.0, init=False)

    def run(self, *command: str) -> int:
        """Run a command in the repository's root; returns its exit code."""
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | self.environment,
            stdout=self.output,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu += used.ru_utime + used.ru_stime
        return process.returncode


Part = Callable[[Runner], Outcome]


def commands(*all_commands: tuple[str, ...]) -> Part:
    """A part of commands that succeed or fail, each counted as one test."""

    def part(runner: Runner) -> Outcome:
        codes = [runner.run(*command) for command in all_commands]
        failed = sum(code != 0 for code in codes)
        return Outcome(passed=len(codes) - failed, failed=failed)

    return part


def made(target: str) -> tuple[str, ...]:
    """The command that makes an environment, with the Python that runs this."""
    return "make", "--no-print-directory", f"PYTHON={sys.executable}", target


def pytest(name: str, *arguments: str, python: Path = BIN / "python", threads: int = 1) -> Part:
    """A part of pytest tests, counted from its report.

    Numba has one thread, if no more are asked for: beside other tests they wait for one another.
    """

    def part(runner: Runner) -> Outcome:
        runner.environment["NUMBA_NUM_THREADS"] = str(threads)
        report = REPORTS / f"{name}.xml"
        report.unlink(missing_ok=True)
        # One at a time runs in pytest's own process: of two, one would only pass on what it hears.
        spread = ("-n", str(runner.workers if runner.workers > 1 else 0))
        command = (str(python), "-m", "pytest", "-q", f"--junitxml={report}")
        code = runner.run(*command, *arguments, *spread)
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
SPREAD = ("--dist", "worksteal")
BY_FILE = ("--dist", "loadfile")


# What does not depend on versions of libraries, or is seen there by other tests: that broken
# kernels are found, lessons' blanks, C++ by g++ and nvcc, operations counted in compiled kernels,
# how many registers a kernel takes that the tuner may choose, capability 9.0, which Colab has not,
# and solvers, which stand between kernels and callers. A coarse level waits for compiled cores.
LEFT_OUT_BY_COLAB = (
    *("rejected", "lesson", "likely_mistakes", "what_a_gpu_wants", "nvcc"),
    *("test_cuda", "in_cuda", "-cuda", "[cuda"),
    *("operations_are", "products_are", "of_the_products", "meets_three_times", "each_rung"),
    *("stay_in_registers", "fits_the_machine", "9.0", "solver", "coarse_level"),
)
# The simulator meets nothing in these kernels that others have not; compilers do.
NOT_SIMULATED_BY_COLAB = ("test_maxwell_paper.py", "test_maxwell_ladder.py")


def colab(runner: Runner) -> Outcome:
    """The kernels' tests once more, with the versions that Colab has: a subset, a case of each."""
    if runner.run(*made(".venv-colab/made")) != 0:
        return Outcome(failed=1, note="not installed")
    unavailable = COLAB / "unavailable"
    if unavailable.exists():
        return Outcome(note=f"not run: {unavailable.read_text().strip()}")
    # Where one version of Numba keeps what it has compiled, another one throws it away.
    runner.environment["NUMBA_CACHE_DIR"] = str(COLAB / "compiled")
    python = COLAB / "bin" / "python"
    ignored = [f"--ignore=tests/simulator/{name}" for name in NOT_SIMULATED_BY_COLAB]
    fewer = ("--one-case", *ignored, "-k", f"not ({' or '.join(LEFT_OUT_BY_COLAB)})")
    part = pytest("colab", "tests/simulator", "tests/compile", *fewer, *SPREAD, python=python)
    return part(runner)


def browser(runner: Runner) -> Outcome:
    """The built pages in a browser, which is installed first where there is none."""
    if runner.run(str(BIN / "python"), "tools/chromium.py", "--install") != 0:
        return Outcome(failed=1, note="no Chromium, see above")
    return pytest("browser", "tests/book", *BY_FILE)(runner)


# Their tests use all kernels for processor cores that are kept on disk. They come early, and in one
# process: others would compile the same kernels at the same time.
WITH_CORES = tuple(
    f"tests/cpu/test_{name}.py"
    for name in ("cores", "hdg_cores", "hdg_coarse", "hdg_product", "local_steps", "swept_cpu")
)

NBVAL = ("--nbval-lax", "--nbval-cell-timeout=120", "-p", "no:cacheprovider", *BY_FILE)

# Kernels in a sandbox cannot keep what Python compiles when it imports them: one outside does.
COMPILE_KERNEL = (
    "from jupyter_client.manager import start_new_kernel; start_new_kernel()[0].shutdown_kernel()"
)

# In the order in which they start: parts that compute beside parts that wait a lot, so that no core
# is idle, and all end at about the same time.
PARTS: dict[str, Part] = {
    "install": commands(made(".venv/made"), (str(BIN / "python"), "-c", COMPILE_KERNEL)),
    "colab": colab,  # has its own environment, and tests with it while the other one is made
    "lint": commands(("ruff", "check", "."), ("ruff", "format", "--check", "."), ("codespell",)),
    "book": commands(("make", "--no-print-directory", "pages")),
    "cores": pytest("cores", *WITH_CORES, threads=CORES),
    "assignments": pytest("assignments", "tests/exercises", *BY_FILE),
    "simulator": pytest("simulator", "tests/simulator", *SPREAD),
    "compile": pytest("compile", "tests/compile", *SPREAD),
    "browser": browser,
    "cpu": pytest("cpu", "tests/cpu", *(f"--ignore={file}" for file in WITH_CORES), *SPREAD),
    "notebooks": pytest("notebooks", "chapters", *NBVAL),
    "ranks": pytest("ranks", "tests/ranks"),
}
ENDS_ALONE = "notebooks"
"""The part that goes on when others have ended, and so has a worker for each core."""
# What a part needs of those that run with it.
AFTER = dict.fromkeys(PARTS.keys() - {"install", "colab"}, "install") | {"browser": "book"}
# Folders of tests/ by the part that runs them; `make gpu` runs the last.
FOLDERS = {"cpu", "ranks", "simulator", "compile", "exercises", "book", "gpu"}


def forgotten_folders() -> list[str]:
    """Folders with tests that no part runs."""
    found = {path.relative_to(ROOT / "tests").parts[0] for path in ROOT.glob("tests/**/test_*.py")}
    return sorted(found - FOLDERS)


@dataclass(frozen=True)
class Result:
    """A part's outcome, what it printed, and the seconds it took: on the clock and of cores."""

    outcome: Outcome
    log: str = ""
    seconds: float = 0.0
    cpu: float = 0.0


def run_part(name: str, workers: int, before: Future | None) -> Result:
    """Run a part once another one has ended; what it prints is kept."""
    if before is not None and before.result().outcome.failed:
        return Result(Outcome(failed=1, note=f"not run: {AFTER[name]} failed"))
    print(f"{name} ...", flush=True)
    REPORTS.mkdir(parents=True, exist_ok=True)
    with (REPORTS / f"{name}.log").open("w+") as log:
        runner = Runner(log, workers)
        start = time.perf_counter()
        outcome = PARTS[name](runner)
        seconds = time.perf_counter() - start
        log.seek(0)
        return Result(outcome, log.read(), seconds, runner.cpu)


def run_parts(names: list[str]) -> dict[str, Result]:
    """Run parts in the order of PARTS, one more at a time than there are cores: some wait a lot."""
    names = [name for name in PARTS if name in names]
    lanes = min(CORES + 1, len(names))
    results: dict[str, Result] = {}
    with ThreadPoolExecutor(lanes) as pool:
        futures: dict[str, Future] = {}
        for name in names:
            before = futures.get(AFTER.get(name, ""))
            workers = CORES if name == ENDS_ALONE else max(1, CORES // lanes)
            futures[name] = pool.submit(run_part, name, workers, before)
        try:
            for future in as_completed(futures.values()):
                (name,) = (name for name in names if futures[name] is future)
                results[name] = future.result()
                print(f"\n==== {name}\n{results[name].log}", flush=True)
        except BaseException:  # Ctrl-C above all
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return {name: results[name] for name in names}


def machine() -> dict[str, float]:
    """Seconds that this machine's cores have been busy, idle, and held back; empty but on Linux."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return {}
    ticks = [int(field) for field in stat.read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, idle, waits, irq, softirq, stolen = ticks
    spent = {"busy": user + nice + system + irq + softirq, "idle": idle + waits, "stolen": stolen}
    return {name: count / os.sysconf("SC_CLK_TCK") for name, count in spent.items()}


def main(names: list[str]) -> int:
    """Run the named parts, all if none is named; 0 if nothing failed."""
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        print(f"There is no part {', '.join(unknown)}; there are {', '.join(PARTS)}.")
        return 2
    start, before = time.perf_counter(), machine()
    results = {}
    if forgotten := forgotten_folders():
        note = f"no part runs {', '.join(forgotten)}"
        results["folders"] = Result(Outcome(failed=1, note=note))
    results |= run_parts(names or list(PARTS))

    print(f"\n{'part':<12} {'seconds':>8} {'of cores':>8}  result")
    for name, result in results.items():
        print(f"{name:<12} {result.seconds:8.1f} {result.cpu:8.1f}  {result.outcome}")
    cpu = sum(result.cpu for result in results.values())
    print(f"{'all':<12} {time.perf_counter() - start:8.1f} {cpu:8.1f}")
    # A browser's processes, and those in a sandbox, are nobody's children: more is spent.
    spent = [f"{name} {now - before[name]:.1f}" for name, now in machine().items()]
    print(f"this machine's cores: {', '.join(spent) or 'not known'}\n")
    passed = sum(result.outcome.passed for result in results.values())
    failed = sum(result.outcome.failed for result in results.values())
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
