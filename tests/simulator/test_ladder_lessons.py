"""The blanks of lessons 6 and 6b: blank as printed, right as solved, and wrong answers told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dgbook.lab.lesson import turned

CHAPTERS = Path(__file__).parents[2] / "chapters"
NUMBA = CHAPTERS / "06_the_same_operator_today.ipynb"
CUDA = CHAPTERS / "06b_wide_loads_and_tensor_cores.ipynb"
REFERENCE, KERNELS = "# @title Make the task, and", "# @title Make the tasks for kernels"
# Function: its lesson, what stands in place of each blank, the folded cells that it needs.
BLANKS = {
    "place": (NUMBA, {"return ...": "return 6 * (k * Np + n) + c"}, ()),
    "brackets": (NUMBA, {"- ...)": "- E[:, j] @ D[k])"}, (REFERENCE,)),
    "curl": (
        NUMBA,
        {"c2 += ...": "c2 += d3 * x", "c2 -= ...": "c2 -= d1 * z"},
        (REFERENCE, KERNELS),
    ),
    "curls": (NUMBA, {"Idx.x, ...": "Idx.x, 2 * cuda.blockIdx.x"}, (REFERENCE, KERNELS)),
    "loads_per_round": (CUDA, {"e * ...": "e * 3"}, ()),
    "three_products": (
        CUDA, {"... + ...": "A1 @ u2 + A2 @ u1"}, ("# @title Round numbers to 11 bits",)
    ),
}  # fmt: skip
WRONG = [
    ("place", "6 * (k * Np + n) + c", "(6 * k + c) * Np + n"),
    ("brackets", "E[:, j] @ D[k]", "E[:, j] @ D[j]"),
    ("brackets", "- E[:, j] @ D[k]", "+ E[:, j] @ D[k]"),
    ("curl", "c2 -= d1 * z", "c2 -= d1 * x"),
    ("curl", "c2 += d3 * x", "c2 += d1 * z"),
    ("curls", "2 * cuda.blockIdx.x", "cuda.blockIdx.x"),
    ("loads_per_round", "e * 3", "e * 12"),
    ("three_products", "+ A2 @ u1", "+ A2 @ u2"),
    ("three_products", "A1 @ u2 + A2 @ u1", "A2 @ u1"),
]


def sources(lesson: Path) -> list[str]:
    """The text of every code cell."""
    cells = json.loads(lesson.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def verdict(name: str, *changes: tuple[str, str]):
    """What the check of a blank says after some replacements."""
    lesson, _, folded = BLANKS[name]
    names = {"np": np, "turned": turned, "Np": 20}
    cells = sources(lesson)
    (blank,) = [text for text in cells if f"def {name}(" in text and "check" in text]
    for old, new in changes:
        assert blank.count(old) == 1, old
        blank = blank.replace(old, new)
    needed = [text for start in folded for text in cells if text.startswith(start)]
    assert len(needed) == len(folded)
    head, _, call = blank.rpartition("\ncheck")
    head = "from dgbook.page import check, check_function\n" + head
    for text in (*needed, head):
        exec(compile(text, _kept(text), "exec"), names)
    return eval(f"check{call.rstrip()}", names)


def _kept(text: str) -> str:
    """A name under which the text's lines can be found again, as those of a cell can."""
    import linecache

    name = f"<cell {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return name


@pytest.mark.parametrize("name", BLANKS)
def test_blank_as_printed(name):
    assert verdict(name).kind == "blank"


@pytest.mark.parametrize("name", BLANKS)
def test_right_as_solved(name):
    answer = verdict(name, *BLANKS[name][1].items())
    assert answer.kind == "right", answer


@pytest.mark.parametrize(("name", "right", "wrong"), WRONG)
def test_wrong_answers_are_told(name, right, wrong):
    solved = {blank: text.replace(right, wrong) for blank, text in BLANKS[name][1].items()}
    assert solved != BLANKS[name][1]
    assert verdict(name, *solved.items()).kind in ("wrong", "stopped")
