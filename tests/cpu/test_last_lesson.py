"""Lesson 12: its checks take the right answers and name likely mistakes; its numbers stand."""

import json
import re
from math import comb
from pathlib import Path

import numpy as np
import pytest

from dgbook.page import check_function

CHAPTER = Path(__file__).parents[2] / "chapters" / "12_which_method_when.ipynb"
ALL = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
CELLS = ["".join(cell["source"]) for cell in ALL if cell["cell_type"] == "code"]
PROSE = "\n".join("".join(cell["source"]) for cell in ALL if cell["cell_type"] == "markdown")


@pytest.fixture(scope="module")
def tasks():
    """What the cell of the tasks defines: `tasks`, and `known` mistakes."""
    names = {}
    exec(next(cell for cell in CELLS if "tasks = {" in cell), names)
    return {"tasks": names["tasks"], "known": names["known"]}


ANSWERS = {  # by function, what stands in place of its blanks, and whether it is right
    "least_seconds": {
        ("..., ..., ...",): {
            ("L * lam, Q / beta, W / pi",): True,
            ("Q / beta, W / pi, L * lam",): False,
            ("L / lam, Q / beta, W / pi",): False,
            ("L * lam, Q * beta, W * pi",): False,
            ("lam, Q / beta, W / pi",): False,
        }
    },
    "memory": {
        ("3 * word * ...", "matrix = word * ..."): {
            ("3 * word * fields * K * N_p", "matrix = word * faces * (2 * d + 1) * m**2"): True,
            ("3 * word * fields * N_p", "matrix = word * faces * (2 * d + 1) * m**2"): False,
            ("3 * word * K * N_p", "matrix = word * faces * (2 * d + 1) * m**2"): False,
            ("3 * word * fields * K * N_p", "matrix = word * faces * (2 * d + 1) * m"): False,
            ("3 * word * fields * K * N_p", "matrix = word * faces * (d + 1) * m**2"): False,
            ("3 * word * fields * K * N_p", "matrix = word * K * (2 * d + 1) * m**2"): False,
        }
    },
    "fastest": {
        ("seconds[...]",): {
            ("seconds[reached <= error]",): True,
            ("seconds[reached < error]",): False,
            ("seconds[reached >= error]",): False,
            ("seconds[reached.argmin()]",): False,
            ("seconds",): False,
        }
    },
    "flops_on_a_hexahedron": {
        ("return ...",): {
            ("return 6 * (N + 1)",): True,
            ("return 3 * (N + 1)",): False,
            ("return 2 * (N + 1)",): False,
            ("return 6 * N",): False,
            ("return 6 * (N + 1) ** 3",): False,
        }
    },
    "gain": {
        ("return ...",): {
            ("return (1 / dt).max() / (1 / dt).mean()",): True,
            ("return dt.size / (dt.min() * (1 / dt).sum())",): True,
            ("return dt.max() / dt.min()",): False,
            ("return dt.mean() / dt.min()",): False,
            ("return dt.min() * (1 / dt).mean()",): False,
            ("return dt.size",): False,
        }
    },
    "lengths": {
        ("steps = ...", "0.85 * ..."): {
            (
                "steps = T / (stages * stage_seconds)",
                "0.85 * delta / ((2 * p + 1) * (1 + 1 / M))",
            ): True,
            (
                "steps = T / stage_seconds",
                "0.85 * delta / ((2 * p + 1) * (1 + 1 / M))",
            ): False,
            (
                "steps = T / (stages * stage_seconds)",
                "0.85 * delta / (2 * p + 1) * (1 + 1 / M)",
            ): False,
            (
                "steps = T / (stages * stage_seconds)",
                "0.85 * delta / ((p + 1) ** 2 * (1 + 1 / M))",
            ): False,
        }
    },
}
CASES = [
    (function, blanks, answer, right)
    for function, texts in ANSWERS.items()
    for blanks, answers in texts.items()
    for answer, right in answers.items()
]


@pytest.mark.parametrize(("function", "blanks", "answer", "right"), CASES)
def test_a_blank_takes_its_answer_and_no_mistake(tmp_path, tasks, function, blanks, answer, right):
    source = next(cell for cell in CELLS if f"def {function}(" in cell and "check_function" in cell)
    for blank, text in zip(blanks, answer, strict=True):
        assert blank in source
        source = source.replace(blank, text, 1)
    *lines, check = source.rstrip().split("\n")
    path = tmp_path / "answer.py"  # a check reads the source
    path.write_text("\n".join([*lines, f"verdict = {check}"]))
    names = {"np": np, "comb": comb, "check_function": check_function, **tasks}
    exec(compile(path.read_text(), path, "exec"), names)
    verdict = names["verdict"]
    assert bool(verdict) == right, verdict
    assert verdict.kind == ("right" if right else "wrong"), verdict


@pytest.mark.parametrize("function", ANSWERS)
def test_an_open_blank_is_called_so(tmp_path, tasks, function):
    source = next(cell for cell in CELLS if f"def {function}(" in cell and "check_function" in cell)
    *lines, check = source.rstrip().split("\n")
    path = tmp_path / "answer.py"
    path.write_text("\n".join([*lines, f"verdict = {check}"]))
    names = {"np": np, "comb": comb, "check_function": check_function, **tasks}
    exec(compile(path.read_text(), path, "exec"), names)
    assert names["verdict"].kind == "blank"


def test_the_chart_ends_where_the_text_says():
    """Nine problems: their ends by their answers, and the numbers in the folded text."""
    names = {}
    chart = next(cell for cell in CELLS if "QUESTIONS = (" in cell)
    exec(chart[chart.index("QUESTIONS") : chart.index("(first,)")], names)
    nine = next(cell for cell in CELLS if "NINE = {" in cell)
    exec(nine[: nine.index("fig, ax")], names)
    ends = {name: names["end_of"](yes)[0] for name, yes in names["NINE"].items()}
    assert len(names["QUESTIONS"]) == 10 and len(ends) == 9
    assert sum(not names["QUESTIONS"][end - 1][2] for end in ends.values()) == 4
    told = dict(re.findall(r"^- \*\*(.+?)\*\*, (\d+|other):", PROSE, flags=re.M))
    assert {name.lower(): end for name, end in told.items()} == {
        name: "other" if end == 10 else str(end) for name, end in ends.items()
    }
