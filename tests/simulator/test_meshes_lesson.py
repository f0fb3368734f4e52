"""The blanks of "Meshes on a GPU": solutions pass, blanks are blank, likely mistakes are told."""

from __future__ import annotations

import ast
import inspect
import json
import os
import runpy
from pathlib import Path

import numpy as np
import pytest
from emulation import Emulated, needs_compiler

from dgbook.gpu.source import load
from dgbook.mesh import box
from dgbook.page import Task, check, check_function

CHAPTERS = Path(__file__).parents[2] / "chapters"
LESSON = CHAPTERS / "03b_meshes_on_a_gpu.ipynb"
FURTHER = CHAPTERS / "03c_transposes_numberings_and_instructions.ipynb"
STEPS = {"volume": 4, "upwind": 5, "rows": 8, "stage": 8}
BLANKS = ("volume", "upwind", "stage")
# The cells behind this one run kernels at degree 3 and the aeroplane at degree 1.
BEHIND_THE_STEPS = "# @title Run your kernel at degree 3 beside NumPy"
DRAWS = ("# @title Draw", "# @title Count")


def up_to_the_steps() -> list[str]:
    """The lesson's cells up to the last step, without its larger pictures."""
    cells = json.loads(LESSON.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    stop = next(n for n, source in enumerate(sources) if source.startswith(BEHIND_THE_STEPS))
    kept = [s for s in sources[:stop] if not s.startswith(DRAWS) or "face_vertices" in s]
    for source in sources[stop:]:
        kept += [
            ast.get_source_segment(source, node)
            for node in ast.parse(source).body
            if getattr(node, "name", "").startswith("first_state")
        ]
    return kept


@pytest.fixture(scope="module")
def lesson(tmp_path_factory) -> dict:
    """What these cells define, with the blanks blank."""
    path = tmp_path_factory.mktemp("lesson") / "lesson.py"
    path.write_text("\n\n\n".join(up_to_the_steps()), encoding="utf-8")
    return runpy.run_path(os.fspath(path))


def task(lesson: dict, step: str) -> Task:
    """What a step is checked by, the page's own."""
    return lesson["tasks"][STEPS[step]]


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


@pytest.mark.parametrize("step", BLANKS)
def test_blanks_are_blank(lesson, step: str) -> None:
    assert check(lesson[step], task(lesson, step)).kind == "blank"


@pytest.mark.parametrize("step", STEPS)
def test_solutions_are_right(lesson, step: str) -> None:
    verdict = check(lesson[f"{step}_solution"], task(lesson, step))
    assert verdict.kind == "right", repr(verdict)


def neighbors(lesson, function):
    """What the page's check says of a search for neighbors."""
    small = lesson["small"]
    return check_function(function, small.neighbors, small.elements)


def meeting(lesson, function):
    """What the page's check says of a match of face nodes."""
    turns = lesson["turns"]
    return check_function(function, *turns[3], also=turns)


def links(lesson, function):
    """What the page's check says of links."""
    return check_function(function, lesson["joints"].links, lesson["small"].elements)


def first_state(lesson, function):
    """Ghosts against a rule of another kind: the walls lie 1.4 and more from the center."""
    plane = lesson["plane"]
    k, f = plane.boundary_faces.T
    inside = np.abs(plane.vertices[plane.elements[k[:, None], lesson["FACES"][f]]]).max(axis=(1, 2))
    lit = np.ones((plane.K + len(k), 4))
    lit[plane.K :][inside < 1.3] = 0
    return check_function(function, lit, plane, 4)


def test_the_functions_blanks(lesson) -> None:
    assert neighbors(lesson, lesson["find_neighbors"]).kind == "blank"
    assert neighbors(lesson, lesson["find_neighbors_solution"])
    assert meeting(lesson, lesson["meeting"]).kind == "blank"
    assert meeting(lesson, lesson["meeting_solution"])
    assert links(lesson, lesson["connect"]).kind == "blank"
    assert links(lesson, lesson["connect_solution"])
    assert first_state(lesson, lesson["first_state"]).kind == "blank"
    assert first_state(lesson, lesson["first_state_solution"])


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


@pytest.mark.parametrize(
    "order",
    ["np.argsort(perm)", "[0, 1, 2]", "perm[::-1]", "[1, 2, 0]", "[2, 0, 1]", "np.roll(perm, 1)"],
)
def test_wrong_matches_are_told(lesson, changed, order: str) -> None:
    found = meeting(lesson, changed("meeting_solution", f"weights[:, perm] -> weights[:, {order}]"))
    assert found.kind == "wrong", repr(found)


@pytest.mark.parametrize(
    "change",
    [
        "way = 6 * g + ORDERS.index(perm) -> way = 6 * f + ORDERS.index(perm)",
        "way = 6 * g + ORDERS.index(perm) -> way = 6 * g + ORDERS.index([0, 1, 2])",
    ],
)
def test_wrong_links_are_told(lesson, changed, change: str) -> None:
    assert links(lesson, changed("connect_solution", change)).kind == "wrong"


@pytest.mark.parametrize("change", ["mesh.K + dark -> dark", "= 0 -> = 1"])
def test_wrong_ghosts_are_told(lesson, changed, change: str) -> None:
    assert first_state(lesson, changed("first_state_solution", change)).kind == "wrong"


FILLED = [
    ("(... == ...).all(axis=1)", "(faces[a] == faces[b]).all(axis=1)"),
    ("neighbors[a], neighbors[b] = ..., ...", "neighbors[a], neighbors[b] = b // 4, a // 4"),
    ("seen = weights[:, ...]", "seen = weights[:, perm]"),
    ("6 * ... + ORDERS.index(...)", "6 * g + ORDERS.index(perm)"),
    ("slope += D[d, ...] * state[...]", "slope += D[d, i, m] * state[m]"),
    ("total -= ... * slope", "total -= c[k, d] * slope"),
    ("node = meets[...]", "node = meets[way, n]"),
    ("(... - ...)  # u^-", "(u[k * Np + own[p]] - plus)  # u^-"),
    ("total += L[i, p] * flux[...]", "total += L[i, p] * flux[p]"),
    ("k = ...  # 7", "k = cuda.blockIdx.x * E + e"),
    ("flux[...] = FsF", "flux[e, p] = FsF"),
    ("LT[...]", "LT[p, i]"),
    ("DT[...]", "DT[d, m, i]"),
    ("r = A * ... + dt * ...", "r = A * res[j] + dt * total"),
    ("new[j] = ... + B", "new[j] = state[e, i] + B"),
]


def test_filled_blanks_pass_and_are_what_later_cells_use(tmp_path) -> None:
    """Links and the table of ways are then made by the reader's functions."""
    text = "\n\n\n".join(up_to_the_steps())
    for old, new in FILLED:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = tmp_path / "lesson.py"
    path.write_text(text, encoding="utf-8")
    page = runpy.run_path(os.fspath(path))
    assert page["neighbors_of"] is page["find_neighbors"]
    assert page["meeting_of"] is page["meeting"]
    assert page["links_of"] is page["connect"]
    for step in BLANKS:
        verdict = check(page[step], task(page, step))
        assert verdict, repr(verdict)


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
        ("volume", "D[d, i, m] -> D[d, m, i]", "wrong", "is the row of D"),
        ("volume", "* state[m] -> * u[k * Np + m]", "wrong", "thread 0 reads u 31 times where"),
        ("volume", "state[m] -> state[i]", "wrong", "zero but for rounding"),
        ("volume", "total -= -> total +=", "wrong", "wrong sign"),
        ("volume", "    cuda.syncthreads()\n -> \n", "stopped", "may not have"),
        ("upwind", "meets[way, n] -> meets[n, way]", "stopped", "indices in the right order"),
        ("upwind", "meets[way, n] -> own[n]", "wrong", "are wrong"),
        ("upwind", "u[k * Np + own[p]] - plus -> plus - u[k * Np + own[p]]", "wrong", "is u^- -"),
        # Exercise 3b.1 without its barrier.
        ("upwind", "u[k * Np + own[p]] - plus -> state[own[p]] - plus", "stopped", "may not have"),
        ("stage", "new[j] = state[e, i] -> new[j] = u[i]", "wrong", "right in element 0"),
        ("upwind", "u[k * Np + own[p]] - plus -> u[own[p]] - plus", "wrong", "right in element 0"),
        ("stage", "k = cuda.blockIdx.x * E + e -> k = cuda.blockIdx.x", "stopped", "own the same"),
        ("stage", "LT[p, i] -> LT[i, p]", "stopped", "indices in the right order"),
        ("stage", "DT[d, m, i] -> DT[d, i, m]", "wrong", "last index of DT"),
        ("upwind", "D[d, i, m] -> D[d, m, i]", "wrong", "is the row of D"),
        ("stage", "flux[e, p] = -> flux[p] =", "stopped", "flux is an array: an index is missing"),
    ],
)
def test_likely_mistakes_are_told(lesson, changed, step, change, kind, words) -> None:
    verdict = check(changed(f"{step}_solution", change), task(lesson, step))
    assert verdict.kind == kind and words in repr(verdict), repr(verdict)


def test_exercise_1_needs_a_second_barrier(lesson, changed) -> None:
    kernel = changed(
        "upwind_solution",
        "u[k * Np + own[p]] - plus -> state[own[p]] - plus",
        "    state[i] = u[j]\n ->     state[i] = u[j]\n    cuda.syncthreads()\n",
    )
    verdict = check(kernel, task(lesson, "upwind"))
    assert verdict, repr(verdict)


def test_exercise_3_spares_the_face_factors(lesson) -> None:
    speeds = lesson["fixed"]["c"].astype(float)
    factors = np.minimum(np.column_stack([speeds.sum(axis=1), -speeds]), 0)
    np.testing.assert_allclose(
        lesson["fixed"]["FsF"], factors, atol=50 * 6e-8 * np.abs(speeds).max()
    )


def named(source: str, names: tuple[str, ...]) -> dict:
    """What a cell assigns to some names, of texts and of each other."""
    space: dict = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and node.targets[0].id in names:
            exec(ast.get_source_segment(source, node), space)
    return {name: space[name] for name in names}


@pytest.fixture(scope="module")
def timed() -> dict:
    """The variants of the stage that are timed, and the stage in CUDA C++."""
    cells = json.loads(FURTHER.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    (cell,) = (s for s in sources if "\nvariants = {" in s)
    (cpp,) = (s for s in sources if "\nCPP = " in s)
    names = ("LIFT", "COUNTED", "CONVERTED", "loops", "unsigned", "variants")
    return named(cell, names) | named(cpp, ("CPP",))


def test_the_stage_of_which_variants_are_timed_is_the_lesson_s() -> None:
    """The page that goes further repeats it."""
    texts = []
    for path in (LESSON, FURTHER):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
        (source,) = (s for s in sources if "def stage_solution(" in s)
        texts += [
            ast.unparse(node)
            for node in ast.parse(source).body
            if getattr(node, "name", "") == "stage_solution"
        ]
    assert len(texts) == 2 and texts[0] == texts[1]


def test_variants_change_indices_and_no_values(lesson, timed, changed) -> None:
    """Each text that one replaces stands in the kernel, and the kernel stays right."""
    assert len(timed["variants"]) == 5
    for name, changes in timed["variants"].items():
        kernel = changed("stage_solution", *map(" -> ".join, changes))
        assert not changes or kernel is not lesson["stage_solution"]
        verdict = check(kernel, task(lesson, "stage"))
        assert verdict, f"{name}: {verdict!r}"


@needs_compiler
def test_stage_in_cuda_is_the_same(lesson, timed, tmp_path) -> None:
    """At degree 2 on the check's input; the emulation knows blocks of one dimension only."""
    rows = "int i = threadIdx.x, e = threadIdx.y;"
    line = "int i = threadIdx.x % Np, e = threadIdx.x / Np;"
    assert rows in timed["CPP"]
    path = tmp_path / "stage.cu"
    path.write_text(timed["CPP"].replace(rows, line), encoding="utf-8")
    kernel = load(path, "stage", {"DEGREE": 2, "ELEMENTS": 3})
    values = lesson["given"](np.random.default_rng(1))
    expected = task(lesson, "stage").right(values)
    names = inspect.signature(lesson["stage_solution"]).parameters
    args = [values[name] for name in names]
    emulated = Emulated(kernel, tmp_path, (9, 0))
    emulated[lesson["K"] // 3, lesson["Np"] * 3](*args)
    for name, right in expected.items():
        found = values[name][: right.size].reshape(right.shape)
        np.testing.assert_allclose(found, right, atol=2e-6 * np.abs(right).max())
