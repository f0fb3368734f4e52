"""The blanks of "Meshes on a GPU": solutions pass, blanks are blank, likely mistakes are told."""

from __future__ import annotations

import inspect
import json
import os
import runpy
from pathlib import Path

import numpy as np
import pytest

from dgbook.mesh import box
from dgbook.page import Task, check, check_function

LESSON = Path(__file__).parents[2] / "chapters" / "03b_meshes_on_a_gpu.ipynb"
STEPS = ("volume", "upwind", "update", "rows", "stage")
# The cells behind this one run kernels at degree 3 and the aeroplane at degree 1.
BEHIND_THE_STEPS = "# @title Run your kernel at degree 3 beside NumPy"
DRAWS = ("# @title Draw", "# @title Count the faces")


@pytest.fixture(scope="module")
def lesson(tmp_path_factory) -> dict:
    """What the lesson's cells define, up to the last step, without its larger pictures."""
    cells = json.loads(LESSON.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    stop = next(n for n, source in enumerate(sources) if source.startswith(BEHIND_THE_STEPS))
    kept = [s for s in sources[:stop] if not s.startswith(DRAWS) or "face_vertices" in s]
    path = tmp_path_factory.mktemp("lesson") / "lesson.py"
    path.write_text("\n\n\n".join(kept), encoding="utf-8")
    return runpy.run_path(os.fspath(path))


def task(lesson: dict, step: str) -> Task:
    """What a step is checked by; the last one's is the page's own."""
    if step == "stage":
        return lesson["last"]
    K, Np, E = (lesson[name] for name in ("K", "Np", "E"))
    grid, block = (K // E, (Np, E)) if step == "rows" else (K, Np)
    what = {"volume": "volume", "upwind": "rate"}.get(step, "stage")
    most = 1 if step == "volume" else 2
    return Task(grid, block, lesson["given"], lesson["right"](what), barriers=most)


@pytest.fixture
def changed(lesson, tmp_path):
    """A solution with some parts of it replaced, "old -> new"."""

    def make(name: str, *changes: str):
        function = lesson[name]
        text = inspect.getsource(getattr(function, "py_func", function))
        for change in changes:
            old, new = change.split(" -> ")
            assert old in text, change
            text = text.replace(old, new)
        path = tmp_path / "changed.py"
        path.write_text(text, encoding="utf-8")
        space = dict(lesson)
        exec(compile(text, path, "exec"), space)
        return space[name]

    return make


@pytest.mark.parametrize("step", STEPS)
def test_blanks_are_blank_and_solutions_are_right(lesson, step: str) -> None:
    assert check(lesson[step], task(lesson, step)).kind == "blank"
    found = check(lesson[f"{step}_solution"], task(lesson, step))
    assert found.kind == "right", repr(found)


def neighbors(lesson, function):
    """What the page's check says of a search for neighbors."""
    small = lesson["small"]
    return check_function(function, small.neighbors, small.elements)


def meeting(lesson, function):
    """What the page's check says of a match of face nodes."""
    right, weights = lesson["turned_nodes"], lesson["weights"]
    return check_function(function, right, (7, 3, 5), (3, 5, 7), weights)


def test_the_functions_blanks(lesson) -> None:
    assert neighbors(lesson, lesson["find_neighbors"]).kind == "blank"
    assert neighbors(lesson, lesson["find_neighbors_solution"])
    assert meeting(lesson, lesson["meeting"]).kind == "blank"
    assert meeting(lesson, lesson["meeting_solution"])


@pytest.mark.parametrize(
    "change",
    [
        "b // 4, a // 4 -> b, a",  # rows and not elements
        "b // 4, a // 4 -> a // 4, b // 4",  # itself
        "faces[a] == faces[b] -> faces[a] == faces[a]",  # every face a twin
    ],
)
def test_wrong_neighbors_are_told(lesson, changed, change: str) -> None:
    assert not neighbors(lesson, changed("find_neighbors_solution", change))


@pytest.mark.parametrize("order", ["np.argsort(perm)", "[0, 1, 2]", "perm[::-1]"])
def test_wrong_matches_are_told(lesson, changed, order: str) -> None:
    found = meeting(lesson, changed("meeting_solution", f"weights[:, perm] -> weights[:, {order}]"))
    assert found.kind == "wrong", repr(found)


def test_the_mistake_shows_on_a_shuffled_box_only(lesson) -> None:
    """Page and pitfall: no face of a box is rotated."""
    cells = json.loads(LESSON.read_text(encoding="utf-8"))["cells"]
    source = next("".join(c["source"]) for c in cells if "def wrongly_met" in "".join(c["source"]))
    space = dict(lesson)
    exec(source.split("meshes_tried =")[0], space)
    plain = box((2, 2, 2))
    shuffled = lesson["turned"](plain, np.random.default_rng(1))
    assert space["wrongly_met"](plain, invert=True) == 0
    assert space["wrongly_met"](shuffled, invert=True) > 0
    assert space["wrongly_met"](shuffled, invert=False) == 0


@pytest.mark.parametrize(
    ("step", "change", "kind", "words"),
    [
        ("volume", "D[d, i, m] -> D[d, m, i]", "wrong", "All values"),
        ("volume", "state[m] -> state[i]", "wrong", "zero but for rounding"),
        ("volume", "total -= -> total +=", "wrong", "wrong sign"),
        ("volume", "    cuda.syncthreads()\n -> \n", "stopped", "may not have"),
        ("upwind", "meets[way, n] -> meets[way, p]", "stopped", "out of range"),
        ("upwind", "meets[way, n] -> own[n]", "wrong", "are wrong"),
        ("upwind", "u[k * Np + own[p]] - plus -> plus - u[k * Np + own[p]]", "wrong", "are wrong"),
        # Exercise 3b.1 without its barrier.
        ("upwind", "u[k * Np + own[p]] - plus -> state[own[p]] - plus", "stopped", "may not have"),
        ("update", "new[j] = state[i] -> new[j] = u[i]", "wrong", "are wrong"),
        ("rows", "k = cuda.blockIdx.x * E + e -> k = cuda.blockIdx.x", "stopped", "own the same"),
        ("stage", "LT[p, i] -> LT[i, p]", "stopped", "out of range"),
        ("stage", "DT[d, m, i] -> DT[d, i, m]", "wrong", "All values"),
    ],
)
def test_likely_mistakes_are_told(lesson, changed, step, change, kind, words) -> None:
    found = check(changed(f"{step}_solution", change), task(lesson, step))
    assert found.kind == kind and words in repr(found), repr(found)


def test_exercise_1_needs_a_second_barrier(lesson, changed) -> None:
    kernel = changed(
        "upwind_solution",
        "u[k * Np + own[p]] - plus -> state[own[p]] - plus",
        "    state[i] = u[j]\n ->     state[i] = u[j]\n    cuda.syncthreads()\n",
    )
    found = check(kernel, task(lesson, "upwind"))
    assert found, repr(found)


def test_exercise_3_spares_the_face_factors(lesson) -> None:
    speeds = lesson["fixed"]["speeds"].astype(float)
    factors = np.minimum(np.column_stack([speeds.sum(axis=1), -speeds]), 0)
    np.testing.assert_allclose(lesson["fixed"]["F"], factors, atol=50 * 6e-8 * np.abs(speeds).max())
