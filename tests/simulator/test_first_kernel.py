"""The blanks of "Your first kernel": solutions pass, blanks are blank, likely mistakes are told."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from dgbook.page import check

LESSON = Path(__file__).parents[2] / "chapters" / "01b_your_first_kernel.ipynb"
STEPS = ("copy", "row", "unguarded", "guarded", "upwind", "update", "several", "stage")


def lesson(path: Path, old: str = "", new: str = "") -> dict:
    """What the lesson's cells define, up to the time loop, with one change to a solution."""
    cells = json.loads(LESSON.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    stop = next(n for n, source in enumerate(sources) if "here = device()" in source and n)
    text = "\n\n\n".join(sources[1:stop])
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return runpy.run_path(str(path))


def verdict(found: dict, name: str, step: str):
    """What `check` says of a kernel."""
    return check(found[name], found["tasks"][STEPS.index(step) + 1])


@pytest.fixture(scope="module")
def as_it_is(tmp_path_factory) -> dict:
    return lesson(tmp_path_factory.mktemp("lesson") / "lesson.py")


@pytest.mark.parametrize("step", STEPS)
def test_blanks_are_blank_and_solutions_are_right(as_it_is, step: str) -> None:
    assert verdict(as_it_is, step, step).kind == "blank"
    assert verdict(as_it_is, f"{step}_solution", step).kind == "right"


@pytest.mark.parametrize(
    ("step", "old", "new", "kind", "words"),
    [
        ("copy", "j = k * Np + i\n    new", "j = k + i\n    new", "stopped", "of block 0 wrote"),
        ("row", "D[i, m] * u[k", "D[m, i] * u[k", "wrong", "All values"),
        ("guarded", "    cuda.syncthreads()\n    total = float32", "    total = float32", "stopped",
         "may not have"),
        ("upwind", "u[(k * Np - 1) % u.size]", "u[k * Np - 1]", "stopped", "out of range"),
        ("upwind", "L[i] * (state[0] - left)", "L[i] * (left - state[0])", "wrong", "are wrong"),
        ("several", "k = cuda.blockIdx.x * E + e", "k = cuda.blockIdx.x + e", "stopped",
         "of block 0 wrote"),
        ("stage", "DT[m, i]", "DT[i, m]", "wrong", "wrong"),
    ],
)  # fmt: skip
def test_likely_mistakes_are_told(tmp_path, step, old, new, kind, words) -> None:
    found = verdict(lesson(tmp_path / "lesson.py", old, new), f"{step}_solution", step)
    assert found.kind == kind and words in repr(found), repr(found)


def test_new_values_in_place_are_a_race(as_it_is) -> None:
    assert verdict(as_it_is, "in_place", "update").kind == "stopped"
