"""Lessons 12 and 12b: checks take right answers and name likely mistakes; their numbers stand."""

import json
import re
from math import comb
from pathlib import Path

import numpy as np
import pytest
from page_code import tasks_and_mistakes

from dgbook.lab import records
from dgbook.page import check_function

CHAPTERS = Path(__file__).parents[2] / "chapters"
ALL = [
    cell
    for name in ("12_which_method_when", "12b_what_the_chart_rests_on")
    for cell in json.loads((CHAPTERS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
]
CELLS = ["".join(cell["source"]) for cell in ALL if cell["cell_type"] == "code"]
PROSE = "\n".join("".join(cell["source"]) for cell in ALL if cell["cell_type"] == "markdown")


@pytest.fixture(scope="module")
def tasks():
    """What the cells of the tasks define: `tasks`, and `known` mistakes, of both lessons."""
    return tasks_and_mistakes(CELLS)


ANSWERS = {  # by function, what stands in place of its blanks, and whether it is right
    "bound": {
        ("which = ...",): {
            ("which = times.index(max(times)) if measured <= 2 * max(times) else 3",): True,
            ("which = 3 if measured > 2 * max(times) else int(np.argmax(times))",): True,
            ("which = times.index(max(times))",): False,
            ("which = times.index(max(times)) if measured <= max(times) else 3",): False,
            ("which = times.index(min(times)) if measured <= 2 * max(times) else 3",): False,
            ("which = 3",): False,
        }
    },
    "highest_degree": {
        ("if ...",): {
            ("if memory(K, N, d, fields, 8)[which] <= room",): True,
            ("if memory(K, N, d, fields, 4)[which] <= room",): False,
            ("if memory(K, N, d, fields, 8)[0] <= room",): False,
            ("if memory(K, N, d, fields, 8)[1] <= room",): False,
            ("if sum(memory(K, N, d, fields, 8)) <= room",): False,
            ("if memory(K, N, d, fields, 8)[which] >= room",): False,
        }
    },
    "time_to_error": {
        ("min(...", "if ..."): {
            ('min(row["steps"] * row["seconds_median"]', 'if row["error"] <= error'): True,
            ('min(row["steps"] * row["seconds_median"]', 'if row["error"] < error'): False,
            ('min(row["steps"] * row["seconds_median"]', 'if row["error"] >= error'): False,
            ('min(row["steps"] * row["seconds_median"]', "if True"): False,
            ('min(row["seconds_median"]', 'if row["error"] <= error'): False,
            ('min(row["steps"]', 'if row["error"] <= error'): False,
        }
    },
    "reach": {
        ("return ...",): {
            ("return seconds / (stages * stage_seconds) * dt",): True,
            ("return seconds / stage_seconds * dt",): False,
            ("return seconds / (stages * stage_seconds)",): False,
            ("return seconds * dt",): False,
            ("return stages * stage_seconds / (seconds * dt)",): False,
        }
    },
    "longer": {
        ("return ...",): {
            ("return (solve + setup / reused) / (stages * stage_seconds)",): True,
            ("return (solve + setup) / (stages * stage_seconds)",): False,
            ("return (solve + setup * reused) / (stages * stage_seconds)",): False,
            ("return (solve + setup / reused) / stage_seconds",): False,
            ("return solve / (stages * stage_seconds)",): False,
            ("return stages * stage_seconds / (solve + setup / reused)",): False,
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
    "least_elements": {
        ("return ...",): {
            ("return (gain * (t0 + e) - t0) / (t1 * (1 - gain / 2))",): True,
            ("return (gain * t0 - t0) / (t1 * (1 - gain / 2))",): False,
            ("return 2 * e / t1",): False,
            ("return (gain * e / (1 - gain / 2) - t0) / t1",): False,
            ("return (gain * (t0 + e) - t0) / (t1 * (1 - gain))",): False,
        }
    },
}
KEYS = {"time_to_error": "time", "least_elements": "two"}  # of `known`
CASES = [
    (function, blanks, answer, right)
    for function, texts in ANSWERS.items()
    for blanks, answers in texts.items()
    for answer, right in answers.items()
]


def verdict_on(tmp_path, tasks, function, blanks=(), answer=()):
    """What the lesson says to an answer; without one, to the open blank."""
    source = next(cell for cell in CELLS if f"def {function}(" in cell and "check_function" in cell)
    for blank, text in zip(blanks, answer, strict=True):
        assert blank in source
        source = source.replace(blank, text, 1)
    *lines, check = source.rstrip().split("\n")
    path = tmp_path / f"answer_{abs(hash(answer))}.py"  # a check reads the source
    path.write_text("\n".join([*lines, f"verdict = {check}"]))
    names = {"np": np, "comb": comb, "check_function": check_function, **tasks}
    exec(compile(path.read_text(), path, "exec"), names)
    return names["verdict"]


@pytest.mark.parametrize(("function", "blanks", "answer", "right"), CASES)
def test_a_blank_takes_its_answer_and_no_mistake(tmp_path, tasks, function, blanks, answer, right):
    verdict = verdict_on(tmp_path, tasks, function, blanks, answer)
    assert bool(verdict) == right, verdict
    assert verdict.kind == ("right" if right else "wrong"), verdict


@pytest.mark.parametrize("function", ANSWERS)
def test_an_open_blank_is_called_so(tmp_path, tasks, function):
    assert verdict_on(tmp_path, tasks, function).kind == "blank"


@pytest.mark.parametrize("function", ANSWERS)
def test_a_likely_mistake_is_named(tmp_path, tasks, function):
    """Each sentence of `known` is said for one of the wrong answers."""
    said = set()
    for blanks, answers in ANSWERS[function].items():
        for answer in answers:
            said.add(verdict_on(tmp_path, tasks, function, blanks, answer).words)
    assert set(tasks["known"].get(KEYS.get(function, function), ())) <= said


def test_the_chart_ends_where_the_text_says():
    """All problems: their ends by their answers, and the numbers in the folded text."""
    names = {}
    exec(next(cell for cell in CELLS if "QUESTIONS = (" in cell), names)
    cell = next(cell for cell in CELLS if "PROBLEMS = {" in cell)
    exec(cell[cell.index("PROBLEMS") : cell.index("nine =")], names)
    ends = {name: names["end_of"](yes)[0] for name, yes in names["PROBLEMS"].items()}
    assert len(names["QUESTIONS"]) == 10 and len(ends) == 12
    assert sum(names["QUESTIONS"][end - 1][4] == 0 for end in ends.values()) == 4
    told = dict(re.findall(r"^- \*\*(.+?)\*\*, (\d+|other):", PROSE, flags=re.M))
    told |= {
        f"{letter}:": end
        for letter, end in re.findall(r"^- \*\*([ABC])\*\*: yes to (\d+),", PROSE, flags=re.M)
    }
    assert len(told) == 12
    for name, end in ends.items():
        (number,) = (n for begin, n in told.items() if name.lower().startswith(begin.lower()))
        assert number == ("other" if end == 10 else str(end)), name


def test_every_lesson_that_the_chart_names_is_one():
    names = {}
    exec(next(cell for cell in CELLS if "QUESTIONS = (" in cell), names)
    lessons = {path.stem.split("_")[0].lstrip("0") for path in CHAPTERS.glob("[0-9]*.ipynb")}
    named = [q[3] for q in names["QUESTIONS"]] + [q[4] for q in names["THEN"]]
    assert {lesson for text in named for lesson in text.split()} <= lessons


def test_in_one_dimension_tiles_are_the_fastest():
    """Of all schemes by their best plans, as the chart's first reason says."""
    best = {}
    for row in records.load("swept/step").select(variant=None):
        case = row["dtype"], row["size"]["problem"], row["size"]["n"]
        best.setdefault(case, {})[row["path"]] = row["seconds_median"]
    beaten = {case: of for case, of in best.items() if min(of, key=of.get) != "tiled"}
    assert len(best) == 78 and len(beaten) == 1
    ((case, of),) = beaten.items()
    assert min(of, key=of.get) == "shared" and 0.99 < of["shared"] / of["tiled"] < 1
    said = "In 77 of the record's 78 cases tiles are", "the swept rule is, by less than one percent"
    assert all(any(text in cell for cell in CELLS) for text in said)
