"""The blanks of lessons 6 and 6b: blank as printed, right as solved, and wrong answers told."""

from __future__ import annotations

import numpy as np
import pytest
from page_code import CHAPTERS, code_cells, execute_cell

from dgbook.lab.lesson import turned

NUMBA = CHAPTERS / "06_the_same_operator_today.ipynb"
CUDA = CHAPTERS / "06b_wide_loads_and_tensor_cores.ipynb"
LOADS, BITS = "# @title Make the tasks of loads", "# @title Make a number with 11 bits"
REFERENCE, KERNELS = "# @title Make the task, and", "# @title Make the tasks for kernels"
# Function: its lesson, what stands in place of each blank, the folded cells that it needs.
BLANKS = {
    "place": (NUMBA, {"return ...": "return 6 * (k * Np + n) + q"}, ()),
    "brackets": (NUMBA, {"- ...)": "- E[:, j] @ D[k])"}, (REFERENCE,)),
    "curl": (
        NUMBA,
        {"s2 += ...": "s2 += d3 * x", "s2 -= ...": "s2 -= d1 * z"},
        (REFERENCE, KERNELS),
    ),
    "curls": (NUMBA, {"Idx.x, ...": "Idx.x, 2 * cuda.blockIdx.x"}, (REFERENCE, KERNELS)),
    "along_edges": (NUMBA, {"return ...": "return beta - alpha"}, ("# @title Make the task of",)),
    "vector_of": (CUDA, {"return ...": "return r * threads + t"}, (LOADS,)),
    "loads_per_round": (CUDA, {"e * ...": "e * 3"}, (LOADS,)),
    "first_vector": (CUDA, {"return ...": "return i // 20 * distance"}, (LOADS,)),
    "place_of_sum": (
        CUDA, {"j // 2), ...": "j // 2), 2 * (lane % 4) + j % 2"}, ("# @title Make the tasks of f",)
    ),
    "leading": (CUDA, {"n = ...": "n = 13"}, (BITS,)),
    "three_products": (CUDA, {"... + ...": "A1 @ u2 + A2 @ u1"}, (BITS, "# @title Split numbers")),
}  # fmt: skip
# A blank, what is right in it, what is put instead, and what has to be told.
WRONG = [
    ("place", "6 * (k * Np + n) + q", "(6 * k + q) * Np + n", "should be 286"),
    ("brackets", "E[:, j] @ D[k]", "E[:, j] @ D[j]", "Component j is differentiated"),
    ("brackets", "E[:, j] @ D[k]", "E[:, k] @ D[k]", "Component k is differentiated"),
    ("brackets", "E[:, j] @ D[k]", "E[:, k] @ D[j]", "Both terms are the same"),
    ("brackets", "- E[:, j] @ D[k]", "+ E[:, j] @ D[k]", "subtracted already"),
    ("along_edges", "beta - alpha", "alpha - beta", "the other way round"),
    ("along_edges", "beta - alpha", "-alpha", "t_1 has -x_1"),
    ("along_edges", "beta - alpha", "beta", "t_2 has -x_1"),
    ("along_edges", "beta - alpha", "-alpha - beta", "signs"),
    ("along_edges", "beta - alpha", "0 * alpha", "a part along x_1"),
    ("curl", "s2 -= d1 * z", "s2 -= d1 * x", "component 1 only"),
    ("curl", "s2 += d3 * x", "s2 += d1 * z", "component 1 only"),
    ("curls", "2 * cuda.blockIdx.x", "cuda.blockIdx.x", "Two threads own"),
    ("vector_of", "r * threads + t", "t * rounds + r", "three apart"),
    ("vector_of", "r * threads + t", "t + r", "the same vector"),
    ("vector_of", "r * threads + t", "r * rounds + t", "as there are threads"),
    ("loads_per_round", "e * 3", "e * 12", "word by word"),
    ("loads_per_round", "e * 3", "e * 1.5", "one node"),
    ("loads_per_round", "e * 3", "e * 6", "holds four numbers"),
    ("first_vector", "i // 20 * distance", "i * distance", "a row of 20 shares"),
    ("first_vector", "i // 20 * distance", "i % 20 * distance", "the place within"),
    ("first_vector", "i // 20 * distance", "i // 20", "how far apart"),
    ("place_of_sum", "2 * (lane % 4) + j % 2", "lane % 4 + j % 2", "two nodes further"),
    ("place_of_sum", "2 * (lane % 4) + j % 2", "2 * (lane % 4) + 0 * j", "at two nodes"),
    ("place_of_sum", "2 * (lane % 4) + j % 2", "2 * lane + j % 2", "Four lanes share"),
    ("leading", "13", "12", "the leading 1"),
    ("leading", "13", "21", "sign and the exponent"),
    ("leading", "13", "11", "how many bits stay"),
    ("three_products", "+ A2 @ u1", "+ A2 @ u2", "too small to matter"),
    ("three_products", "A1 @ u2 + A2 @ u1", "A2 @ u1 + A2 @ u2", "the one that is too small."),
    ("three_products", "A1 @ u2 + A2 @ u1", "A1 @ u2 + A1 @ u1", "counts once"),
    ("three_products", "A2 @ u1", "A1 @ u2", "One correction twice"),
    ("three_products", "A1 @ u2 + A2 @ u1", "A2 @ u1", "values are wrong"),
]


def verdict(name: str, *changes: tuple[str, str]):
    """What the check of a blank says after some replacements."""
    lesson, _, folded = BLANKS[name]
    names = {"np": np, "turned": turned, "Np": 20}
    cells = code_cells(lesson)
    (blank,) = [text for text in cells if f"def {name}(" in text and "check" in text]
    for old, new in changes:
        assert blank.count(old) == 1, old
        blank = blank.replace(old, new)
    needed = [text for start in folded for text in cells if text.startswith(start)]
    assert len(needed) == len(folded)
    head, _, call = blank.rpartition("\ncheck")
    head = "from dgbook.page import check, check_function\n" + head
    for text in (*needed, head):
        execute_cell(text, names)
    return eval(f"check{call.rstrip()}", names)


@pytest.mark.parametrize("name", BLANKS)
def test_blank_as_printed(name):
    assert verdict(name).kind == "blank"


@pytest.mark.parametrize("name", BLANKS)
def test_right_as_solved(name):
    answer = verdict(name, *BLANKS[name][1].items())
    assert answer.kind == "right", answer


@pytest.mark.parametrize(("name", "right", "wrong", "words"), WRONG)
def test_wrong_answers_are_told(name, right, wrong, words):
    solved = {blank: text.replace(right, wrong) for blank, text in BLANKS[name][1].items()}
    assert solved != BLANKS[name][1]
    found = verdict(name, *solved.items())
    assert found.kind in ("wrong", "stopped") and words in repr(found), found
