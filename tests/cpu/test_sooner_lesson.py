"""Lessons 8c and 8d: blanks take the right answers, in any spelling, and tell likely mistakes."""

import json
from pathlib import Path

import numpy as np
import pytest
from page_code import tasks_and_mistakes

from dgbook.page import check_function
from dgbook.time.stability import polynomial

CHAPTERS = Path(__file__).parents[2] / "chapters"
NOTEBOOK = [
    cell
    for name in ("08c_sooner_not_only_faster", "08d_more_on_sparse_kernels_and_time_steps")
    for cell in json.loads((CHAPTERS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
]
CELLS = ["".join(cell["source"]) for cell in NOTEBOOK if cell["cell_type"] == "code"]
PROSE = "".join("".join(cell["source"]) for cell in NOTEBOOK)


@pytest.fixture(scope="module")
def given():
    """What the cells of the tasks and of likely mistakes define."""
    return tasks_and_mistakes(CELLS)


ANSWERS = {  # by function, what stands in place of its blanks, and whether it is right
    "growth": {
        ("+ ...",): {
            ("+ z * u",): True,
            ("+ z",): False,
            ("+ u",): False,
            ("+ z * res",): False,
            ("+ b * z * u",): False,
        }
    },
    "longest_step": {
        ("if ...:",): {
            ("if abs(G).max() <= 1 + 1e-10:",): True,
            ("if (abs(G) <= 1 + 1e-10).all():",): True,
            ("if abs(G).max() <= 1:",): False,
            ("if abs(G).max() > 1 + 1e-10:",): False,
            ("if abs(G).min() <= 1 + 1e-10:",): False,
            ("if abs(G.real).max() <= 1 + 1e-10:",): False,
            ("if dt * abs(eigenvalues).max() <= 4.657:",): False,
        }
    },
    "arnoldi": {
        ("y - ...", "= ...\n"): {
            ("y - H[i, k] * V[i]", "= y / H[k + 1, k]\n"): True,
            ("y - (V[i] @ y) * V[i]", "= y / np.linalg.norm(y)\n"): True,
            ("y - H[i, k] * V[k]", "= y / H[k + 1, k]\n"): False,
            ("y - H[i, k]", "= y / H[k + 1, k]\n"): False,
            ("y - V[i]", "= y / H[k + 1, k]\n"): False,
            ("y - H[i, k] * V[i]", "= y\n"): False,
        }
    },
    "levels": {
        ("n, ...",): {
            ("n, beside + 1",): True,
            ("n, 1 + beside",): True,
            ("n, beside",): False,
            ("n, beside - 1",): False,
            ("n, 2 * beside",): False,
            ("n, 99",): False,
        }
    },
    "saving": {
        ("np.sum(...)",): {
            ("np.sum(0.5**n)",): True,
            ("np.sum(1 / 2**n)",): True,
            ("np.sum(2**n)",): False,
            ("np.sum(1 / (1 + n))",): False,
            ("np.sum(0.5 * n)",): False,
            ("np.sum(n)",): False,
            ("np.sum(0.5 ** (n.max() - n))",): False,
        }
    },
}
CASES = [
    (function, blanks, answer, right)
    for function, texts in ANSWERS.items()
    for blanks, answers in texts.items()
    for answer, right in answers.items()
]


def verdict(folder, given, function, blanks=(), answer=()):
    """What the check of a function says when its blanks are filled in."""
    source = next(cell for cell in CELLS if f"def {function}(" in cell and "check_function" in cell)
    for blank, text in zip(blanks, answer, strict=True):
        assert source.count(blank) == 1
        source = source.replace(blank, text)
    *lines, check = source.rstrip().split("\n")
    path = folder / "answer.py"  # a check reads the source
    path.write_text("\n".join([*lines, f"verdict = {check}"]), encoding="utf-8")
    names = {"np": np, "check_function": check_function, **given}
    names["growth"] = lambda z, method: np.polyval(polynomial(method)[::-1], z)
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), names)
    return names["verdict"]


@pytest.mark.parametrize(("function", "blanks", "answer", "right"), CASES)
def test_a_blank_takes_its_answers_and_no_mistake(tmp_path, given, function, blanks, answer, right):
    found = verdict(tmp_path, given, function, blanks, answer)
    assert bool(found) == right, found
    assert found.kind == ("right" if right else "wrong"), found


@pytest.mark.parametrize("function", ANSWERS)
def test_an_open_blank_is_called_so_and_its_solution_is_shown(tmp_path, given, function):
    assert verdict(tmp_path, given, function).kind == "blank"
    ((_, answers),) = ANSWERS[function].items()
    for text in next(iter(answers)):
        shown = text.strip().removeprefix("+ ").removeprefix("y - ").removeprefix("= ")
        shown = shown.removeprefix("if ").removesuffix(":").removeprefix("n, ")
        assert shown.removeprefix("np.sum(").rstrip(")") in PROSE


@pytest.mark.parametrize("function", ANSWERS)
def test_every_likely_mistake_is_told_what_is_wrong(tmp_path, given, function):
    said = {
        verdict(tmp_path, given, function, blanks, answer).words
        for blanks, answers in ANSWERS[function].items()
        for answer in answers
    }
    unsaid = [hint for hint in given["known"][function] if not any(hint in w for w in said)]
    assert not unsaid
