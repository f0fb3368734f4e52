"""Run tests as other processors would, and with other random numbers; print one table.

OpenBLAS adds in another order with the kernels of another processor, NumPy without its vector
units, and a seed chooses one state of many: a tolerance that only this machine's rounding meets
shows here. Takes paths as pytest does; without any, the tier `tests/cpu`::

    .venv/bin/python tools/sweep.py
    .venv/bin/python tools/sweep.py tests/cpu/test_linear.py tests/simulator -n 4
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from test_all import CORES, ENVIRONMENT, REPORTS, ROOT, Outcome, judge

SHIFT = 1000
VECTOR_UNITS = np.show_config("dicts")["SIMD Extensions"].get("found", [])
"""Those that NumPy's own loops choose by when they run, and can do without."""

PROBE = """
import numpy as np, scipy.linalg
a = np.random.default_rng(0).random((300, 300))
for dtype in ("float64", "float32", "complex128"):
    scipy.linalg.qr(a.astype(dtype)), np.linalg.svd(a.astype(dtype)), a.astype(dtype) @ a[0]
"""


@dataclass(frozen=True)
class Run:
    """One run of the tests: what it is called, its environment, and options for pytest."""

    name: str
    environment: dict[str, str]
    options: tuple[str, ...] = ()


RUNS = [
    Run("as it is", {}),
    *(
        Run(name, {"OPENBLAS_CORETYPE": name})
        for name in ("Haswell", "Zen", "SkylakeX", "Prescott", "Sandybridge")
    ),
    Run("no vectors", {"NPY_DISABLE_CPU_FEATURES": " ".join(VECTOR_UNITS)}),
    Run("other seeds", {}, (f"--shift-seeds={SHIFT}",)),
]


def kernels(environment: dict[str, str]) -> str | None:
    """What OpenBLAS calls the kernels that it chooses; empty without it, None if they crash.

    It does not ask whether the processor can execute what it is told to choose. Names are those of
    the eldest processor that has these kernels: equal names are equal kernels.
    """
    probe = subprocess.run(
        [sys.executable, "-c", PROBE],
        env=os.environ | environment | {"OPENBLAS_VERBOSE": "2"},
        capture_output=True,
        text=True,
    )
    lines = probe.stderr.splitlines()
    names = dict.fromkeys(line.split()[1] for line in lines if line.startswith("Core: "))
    return None if probe.returncode else " ".join(names)


def failed_tests(report: Path) -> list[str]:
    """Names of the tests of a JUnit report that failed, or whose fixtures did."""
    cases = ElementTree.parse(report).getroot().iter("testcase") if report.exists() else ()
    return [
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]


def tested(run: Run, paths: list[str], workers: int) -> tuple[Outcome, list[str]]:
    """Run the tests once: counts, and what failed. What they print is in `_build/reports`."""
    stem = REPORTS / f"sweep-{run.name.replace(' ', '-')}"
    report = stem.with_suffix(".xml")
    report.unlink(missing_ok=True)
    command = (sys.executable, "-m", "pytest", "-q", *paths, *run.options, f"--junitxml={report}")
    with stem.with_suffix(".log").open("w") as log:
        code = subprocess.run(
            [*command, "-n", str(workers), "--dist", "worksteal"],
            cwd=ROOT,
            env=os.environ | ENVIRONMENT | run.environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        ).returncode
    return judge(code, report), failed_tests(report)


def main(arguments: list[str]) -> int:
    """Do all runs; 0 if nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="*", default=["tests/cpu"], help="what pytest shall run")
    parser.add_argument("-n", type=int, default=CORES, help="tests at a time")
    given = parser.parse_args(arguments)
    REPORTS.mkdir(parents=True, exist_ok=True)
    print(f"{'run':<12} {'kernels':<12} result", flush=True)
    done: dict[tuple, str] = {}
    worst = False
    for run in RUNS:
        core = run.environment.get("OPENBLAS_CORETYPE")
        chosen = kernels(run.environment)
        same = done.get((chosen, run.options)) if core else None
        failed: list[str] = []
        if chosen is None:
            outcome = "not run: this processor cannot execute these kernels"
        elif core and not chosen:
            outcome = "not run: NumPy is without OpenBLAS here"
        elif same:
            outcome = f"not run: the same kernels as {same!r}"
        else:
            outcome, failed = tested(run, given.paths, given.n)
            worst |= outcome.failed > 0
            done.setdefault((chosen, run.options), run.name)
        print(f"{run.name:<12} {chosen or '-':<12} {outcome}", flush=True)
        for name in failed:
            print(f"{'':<25} {name}", flush=True)
    return int(worst)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
