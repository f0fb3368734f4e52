"""The blanks of "What a GPU wants", and its kernels: those that the probes measure."""

from __future__ import annotations

import ast
import inspect
import json
import runpy
import textwrap
from pathlib import Path

import numpy as np
import pytest

from dgbook.lab import probes
from dgbook.page import check, check_function

LESSON = Path(__file__).parents[2] / "chapters" / "02_what_a_gpu_wants.ipynb"
TASKS = {
    "copy_strided": "strided_task",
    "chase": "chase_task",
    "transpose": "transpose_task",
    "one_chain_of_fma": "fma_task",
}
MEASURED = {
    "copy_strided_solution": probes.copy_strided,
    "chase_solution": probes.chase,
    "copy_grid_stride": probes.copy_grid_stride,
    "transpose_solution": probes.make_transpose("float32", 0),
    "walk_shared": probes.walk_shared,
    "nothing": probes.nothing,
}


def lesson(path: Path, old: str = "", new: str = "") -> dict:
    """What the lesson's cells define, all of them run, with one change to a solution."""
    cells = json.loads(LESSON.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    text = "\n\n\n".join(sources)
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return runpy.run_path(str(path))


@pytest.fixture(scope="module")
def as_it_is(tmp_path_factory) -> dict:
    return lesson(tmp_path_factory.mktemp("lesson") / "lesson.py")


@pytest.mark.parametrize("name", TASKS)
def test_blanks_are_blank_and_solutions_are_right(as_it_is, name: str) -> None:
    task = as_it_is[TASKS[name]]
    assert check(as_it_is[name], task).kind == "blank"
    assert check(as_it_is[f"{name}_solution"], task).kind == "right"


def test_the_bound_is_the_smaller_of_two(as_it_is) -> None:
    intensities = np.array([1.0, 10.0, 100.0])
    arguments = [4e12, 4e13, 6e13], intensities, 4e12, 6e13
    assert check_function(as_it_is["attainable"], *arguments).kind == "blank"
    assert check_function(as_it_is["attainable_solution"], *arguments).kind == "right"


@pytest.mark.parametrize(
    ("name", "old", "new", "kind"),
    [
        ("copy_strided", "x[i * stride]", "x[i + stride]", "wrong"),
        ("chase", "word = following[word]\n    position", "word = following[rounds]\n    position",
         "wrong"),
        ("transpose", "= tile[lane, r]", "= tile[r, lane]", "stopped"),
        ("one_chain_of_fma", "cuda.fma(a, x, y)", "cuda.fma(x, y, a)", "wrong"),
    ],
)  # fmt: skip
def test_likely_mistakes_are_told(tmp_path, name, old, new, kind) -> None:
    found = lesson(tmp_path / "lesson.py", old, new)
    assert check(found[f"{name}_solution"], found[TASKS[name]]).kind == kind


def statements(kernel) -> str:
    """What a kernel does, without its name, docstring and comments."""
    text = textwrap.dedent(inspect.getsource(kernel.py_func))
    node = next(n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef))
    said = ast.get_docstring(node) is not None
    body = [ast.unparse(statement) for statement in node.body[said:]]
    return f"{ast.unparse(node.args)}\n" + "\n".join(body)


@pytest.mark.parametrize("name", MEASURED)
def test_a_kernel_of_the_page_is_the_one_that_was_measured(as_it_is, name: str) -> None:
    assert statements(as_it_is[name]) == statements(MEASURED[name])
    for constant in ("WARP", "WORDS", "LINKS", "TILE", "TILE_ROWS"):
        assert as_it_is[constant] == getattr(probes, constant)


def test_a_padded_tile_is_as_right(as_it_is, tmp_path) -> None:
    found = lesson(tmp_path / "lesson.py", "row_length = TILE ", "row_length = TILE + 1 ")
    assert found["row_length"] == 33
    assert check(found["transpose_solution"], found["transpose_task"]).kind == "right"


def test_one_chain_is_the_measured_kernel_with_one_chain(as_it_is) -> None:
    start = np.linspace(0, 1, 32, dtype=np.float32)
    here, there = np.zeros(32, np.float32), np.zeros(32, np.float32)
    numbers = np.float32(0.9), np.float32(0.05), 2
    as_it_is["one_chain_of_fma_solution"][1, 32](start, *numbers, here)
    probes.make_fma("float32", 1)[1, 32](start, *numbers, there)
    assert np.array_equal(here, there)
