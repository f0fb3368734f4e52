"""The blanks of "Your first kernel": solutions pass, blanks are blank, likely mistakes are told."""

from __future__ import annotations

import inspect
import json
import runpy
from pathlib import Path

import pytest

from dgbook.page import check
from dgbook.page.film import _spec

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
        ("upwind", "L[i] * (state[0] - left)", "L[i] * (left - state[0])", "wrong",
         "in this order"),
        ("upwind", "L[i] * (state[0] - left)", "L[i] * (state[i] - left)", "wrong", "one jump"),
        ("several", "k = cuda.blockIdx.x * E + e", "k = cuda.blockIdx.x + e", "stopped",
         "of block 0 wrote"),
        ("stage", "DT[m, i]", "DT[i, m]", "wrong", "is a column of D"),
    ],
)  # fmt: skip
def test_likely_mistakes_are_told(tmp_path, step, old, new, kind, words) -> None:
    answer = verdict(lesson(tmp_path / "lesson.py", old, new), f"{step}_solution", step)
    assert answer.kind == kind and words in repr(answer), repr(answer)


def test_new_values_in_place_are_a_race(as_it_is) -> None:
    assert verdict(as_it_is, "in_place", "update").kind == "stopped"


@pytest.fixture
def changed(as_it_is, tmp_path):
    """What `check` says of a solution with some parts of it replaced, "old -> new"."""

    def say(step: str, *changes: str):
        text = inspect.getsource(as_it_is[f"{step}_solution"].py_func)
        for change in changes:
            old, new = change.split(" -> ")
            assert old in text, change
            text = text.replace(old, new)
        path = tmp_path / "changed.py"
        path.write_text(text, encoding="utf-8")
        space = dict(as_it_is)
        exec(compile(text, path, "exec"), space)
        return verdict(space, f"{step}_solution", step)

    return say


# The race of step 3 comes from thread 0 of block 0, where i = j = 0 and k = 0.
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["u[j] -> u[i]"], "new is right in element 0 only. The first, at element 1, node 0"),
        (["state[i] = -> state[j] ="], "out of range"),
        (["state[m] -> state[k * Np + m]"], "out of range"),
        (["state[m] -> state[0]"], "zero but for rounding"),
        (["state[m] -> state[i]"], "zero but for rounding"),
        (["state[i] = -> state[1] =", "state[m] -> state[0]"], "own the same word"),
        (["state[i] = -> state[k] ="], "own the same word"),
        (["D[i, m] -> D[m, i]"], "All values of new are wrong"),
    ],
)
def test_a_race_alone_does_not_make_step_3_right(changed, changes, words) -> None:
    found = changed("unguarded", *changes)
    assert not found and words in repr(found), repr(found)


OWN = "Two threads own the same word: should each have its own?"


@pytest.mark.parametrize(
    ("step", "change", "words"),
    [
        ("row", "u[k * Np + m] -> u[j]", "All values of new are zero but for rounding: "),
        ("copy", "k * Np + i -> i", OWN),
        ("copy", "k * Np + i -> k", OWN),
        ("copy", "k * Np + i -> i * Np + k", OWN),
        ("several", "k = cuda.blockIdx.x * E + e -> k = cuda.blockIdx.x", OWN),
        ("row", "u[k * Np + m] -> u[k, m]", "but u has one axis; give it one index."),
        ("row", "D[i, m] -> D[i * Np + m]", "In line 8, D has two axes: D[row, column]."),
        ("stage", "DT[m, i] -> DT[m * Np + i]", "In line 13, DT has two axes: DT[row, column]."),
        ("update", "A * res[j] -> A * res", "res is an array: an index is missing."),
        ("copy", "i\n    new[j] -> i / 1\n    new[j]", "/ makes a float; an index needs //."),
        ("row", "float32(0) -> 0.0", "0.0 in line 6 is a 64-bit number"),
        ("guarded", "cuda.syncthreads() -> cuda.syncthreads", "() behind it calls it."),
    ],
)
def test_what_readers_wrote_is_told(changed, step, change, words) -> None:
    found = changed(step, change)
    assert not found and words in repr(found), repr(found)
    assert "syncthreads() holds" not in repr(found)


def test_the_film_of_step_3_with_lanes_in_step_is_that_of_a_warp(as_it_is) -> None:
    films = [
        _spec(as_it_is["shoot"](as_it_is[f"{step}_solution"], "Four threads of one block", **how))
        for step, how in (("unguarded", {}), ("guarded", {"order": "threads"}))
    ]
    assert [spec["real"] for spec in films] == [True, True]
    without, guarded = (
        [r for r in spec["rows"] if r["kind"] not in ("wt", "none")] for spec in films
    )
    for key in ("says", "cells", "values", "label"):
        assert [r[key] for r in without] == [r[key] for r in guarded]
    # A round's number is known when its first word is read.
    rounds = [r for r in without if r["array"] == "D"]
    assert [r["values"][2].get("m") for r in rounds[1:]] == [1, 2, 3]
