"""The blanks of lessons 6, 6b and 6c: blank as printed, right as solved, and wrong answers told."""

from __future__ import annotations

import numpy as np
import pytest
from page_code import CHAPTERS, code_cells, execute_cell

from dgbook.lab.lesson import turned

NUMBA = CHAPTERS / "06_the_same_operator_today.ipynb"
CUDA = CHAPTERS / "06b_wide_loads_and_tensor_cores.ipynb"
MORE = CHAPTERS / "06c_more_rungs_of_the_ladder.ipynb"
FRAGMENTS, MMA = "# @title Make the tasks of fragments", "@jit(device=True)\ndef mma("
SPLIT, CUT = "# @title Split numbers", "# @title Make a tensor core"
LOADS, BITS = "# @title Make the task of loads", "# @title Make a number with 11 bits"
BANKS = "# @title Make the task of banks"
REFERENCE, KERNELS = "# @title Make the task, and", "# @title Make the tasks for kernels"
# Function: its lesson, what stands in place of each blank, the folded cells that it needs.
BLANKS = {
    "place": (MORE, {"return ...": "return 6 * (k * Np + n) + q"}, ()),
    "brackets": (NUMBA, {"- ...)": "- E[:, j] @ D[k])"}, (REFERENCE,)),
    "curl": (
        NUMBA,
        {"s2 += ...": "s2 += d3 * x", "s2 -= ...": "s2 -= d1 * z"},
        (REFERENCE, KERNELS),
    ),
    "curls": (NUMBA, {"Idx.x, ...": "Idx.x, 2 * cuda.blockIdx.x"}, (REFERENCE, KERNELS)),
    "along_edges": (
        NUMBA, {"return ...": "return alpha_2 - alpha_1"}, ("# @title Make the task of",)
    ),
    "loads_per_round": (CUDA, {"elements * ...": "elements * 3"}, (LOADS,)),
    "first_vector": (MORE, {"return ...": "return i // 20 * distance"}, (BANKS,)),
    "product": (
        CUDA,
        {"D[..., ...]": "D[t + 4 * q, g]", "8 * h, ...]": "8 * h, 2 * t + j]"},
        (FRAGMENTS, MMA),
    ),
    "leading": (CUDA, {"n = ...": "n = 13"}, (BITS,)),
    "three_products": (CUDA, {"... + ...": "A1 @ u2 + A2 @ u1"}, (BITS, SPLIT)),
    "add_up": (
        CUDA, {"... + tensor": "total + tensor", "m + 8], ...)": "m + 8], 0)"}, (BITS, SPLIT, CUT)
    ),
}  # fmt: skip
# A blank, what is right in it, what is put instead, and what has to be told.
WRONG = [
    ("place", "6 * (k * Np + n) + q", "(6 * k + q) * Np + n", "should be 286"),
    ("brackets", "E[:, j] @ D[k]", "E[:, j] @ D[j]", "Component j is differentiated"),
    ("brackets", "E[:, j] @ D[k]", "E[:, k] @ D[k]", "Component k is differentiated"),
    ("brackets", "E[:, j] @ D[k]", "E[:, k] @ D[j]", "Both terms are the same"),
    ("brackets", "- E[:, j] @ D[k]", "+ E[:, j] @ D[k]", "subtracted already"),
    ("along_edges", "alpha_2 - alpha_1", "alpha_1 - alpha_2", "the other way round"),
    ("along_edges", "alpha_2 - alpha_1", "-alpha_1", "t_1 has -x_1"),
    ("along_edges", "alpha_2 - alpha_1", "alpha_2", "t_2 has -x_1"),
    ("along_edges", "alpha_2 - alpha_1", "-alpha_1 - alpha_2", "signs"),
    ("along_edges", "alpha_2 - alpha_1", "0 * alpha_1", "a part along x_1"),
    ("curl", "s2 -= d1 * z", "s2 -= d1 * x", "component 1 only"),
    ("curl", "s2 += d3 * x", "s2 += d1 * z", "component 1 only"),
    ("curls", "2 * cuda.blockIdx.x", "cuda.blockIdx.x", "Two threads own"),
    ("loads_per_round", "elements * 3", "elements * 12", "word by word"),
    ("loads_per_round", "elements * 3", "elements * 1.5", "one node"),
    ("loads_per_round", "elements * 3", "elements * 6", "holds four numbers"),
    ("first_vector", "i // 20 * distance", "i * distance", "a row of 20 shares"),
    ("first_vector", "i // 20 * distance", "i % 20 * distance", "the place within"),
    ("first_vector", "i // 20 * distance", "i // 20", "how far apart"),
    ("product", "D[t + 4 * q, g]", "D[g, t + 4 * q]", "Rows and columns of D"),
    ("product", "D[t + 4 * q, g]", "D[t + 4 * q, t]", "whose column"),
    ("product", "2 * t + j", "t + 4 * j", "are neighbors"),
    ("product", "2 * t + j", "2 * t", "Nobody wrote 64 of 128"),
    ("product", "2 * t + j", "t + j", "sums"),
    ("leading", "13", "12", "the leading 1"),
    ("leading", "13", "21", "sign and the exponent"),
    ("leading", "13", "11", "how many bits stay"),
    ("three_products", "+ A2 @ u1", "+ A2 @ u2", "too small to matter"),
    ("three_products", "A1 @ u2 + A2 @ u1", "A2 @ u1 + A2 @ u2", "the one that is too small."),
    ("three_products", "A1 @ u2 + A2 @ u1", "A1 @ u2 + A1 @ u1", "counts once"),
    ("three_products", "A2 @ u1", "A1 @ u2", "One correction twice"),
    ("three_products", "A1 @ u2 + A2 @ u1", "A2 @ u1", "values are wrong"),
    ("add_up", "total + tensor", "0 + tensor", "is forgotten"),
    ("add_up", "m + 8], 0)", "m + 8], total)", "added again"),
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


def test_a_sum_that_a_tensor_core_cuts_off_is_told():
    changes = ("... + tensor", "0 + tensor"), ("m + 8], ...)", "m + 8], total)")
    answer = verdict("add_up", *changes)
    assert answer.kind == "wrong" and "cuts the whole sum off" in answer.words


def test_a_product_may_take_its_columns_in_another_order():
    """Columns 2 t and 2 t + 1 instead of t and t + 4, of both factors alike."""
    moved = "field[g + 8 * h, t + 4 * q]", "field[g + 8 * h, 2 * t + q]"
    filled = BLANKS["product"][1].items()
    both = [(blank, right.replace("t + 4 * q", "2 * t + q")) for blank, right in filled]
    assert verdict("product", *both, moved).kind == "right"
    assert verdict("product", *filled, moved).kind == "wrong"
