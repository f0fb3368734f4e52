"""The blanks of the Maxwell lessons: blank as printed, right as solved, and wrong answers told."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

CHAPTERS = Path(__file__).parents[2] / "chapters"
MAXWELL = CHAPTERS / "04_maxwell_on_tetrahedra.ipynb"
SPHERE = CHAPTERS / "04b_a_sphere_and_table_2.ipynb"

# Function: its lesson, what stands in place of each blank, and the folded cells it needs.
IMPORTS = "import numpy as np\nfrom dgbook import maxwell\nfrom dgbook.mesh import box\n"
CHECK = "from dgbook.page import check_function\n"
OPERATOR = ("epsilon, mu = rng.uniform", "# @title Make random input")
BLANKS = {
    "star": (
        MAXWELL,
        {"H_star = ...": "H_star = (Z[0] * H[0] + Z[1] * H[1] + jump_E) / (Z[0] + Z[1])"},
        (),
    ),
    "curl": (
        MAXWELL,
        {"y = ...": "y = G[0, 2] - G[2, 0]", "z = ...": "z = G[1, 0] - G[0, 1]"},
        OPERATOR,
    ),
    "jumps": (
        MAXWELL,
        {
            "outside[:3, k, f] = ...": "outside[:3, k, f] = -inside[:3, k, f]",
            "outside[3:, k, f] = ...": "outside[3:, k, f] = inside[3:, k, f]",
        },
        OPERATOR,
    ),
    "flux": (
        MAXWELL,
        {"for_H = ...": "for_H = cross(n, a * cross(n, H) + Yp * E) / (Y + Yp)"},
        OPERATOR,
    ),
    "energy_rate": (
        MAXWELL,
        {
            "weight = ...": "weight = np.stack(3 * [op.epsilon] + 3 * [op.mu]) * op.jacobian",
        },
        OPERATOR,
    ),
    "derivatives": (
        SPHERE,
        {"einsum(..., rst_xyz": 'einsum("kid,imn->dkmn", rst_xyz'},
        ("# @title Draw the lift",),
    ),
    "enlarge": (
        SPHERE,
        {"return ...": "return (np.pi / J.sum()) ** (1 / 3)"},
        ("# @title Make the task of the factor",),
    ),
    "mirror": (
        SPHERE,
        {"return ...": "return -E - 2 * E_inc"},
        ("# @title Make the task of the mirror",),
    ),
    "factor_of": (
        SPHERE,
        {"return ...": "return 1j * np.exp(-1j * omega * (t - 1))"},
        ("# @title Make the task of time",),
    ),
    "returned": (
        SPHERE,
        {"return ...": "return -(slope - 1j * xi) / np.conj(slope + 1j * xi)"},
        ("# @title Make the task of the boundary",),
    ),
}
WRONG = [
    ("star", "+ jump_E) / (Z[0]", "- jump_E) / (Z[0]"),
    ("star", "Z[0] * H[0] + Z[1] * H[1]", "Y[0] * H[0] + Y[1] * H[1]"),
    ("curl", "G[0, 2] - G[2, 0]", "G[2, 0] - G[0, 2]"),
    ("curl", "G[1, 0] - G[0, 1]", "G[0, 1] - G[1, 0]"),
    ("jumps", "= -inside[:3, k, f]", "= inside[:3, k, f]"),
    ("jumps", "= inside[3:, k, f]", "= -inside[3:, k, f]"),
    ("jumps", "= inside[3:, k, f]", "= 0 * inside[3:, k, f]"),
    ("flux", "+ Yp * E)", "- Yp * E)"),
    ("flux", "+ Yp * E)", "+ Y * E)"),
    ("flux", "cross(n, a * cross(n, H)", "cross(n, -a * cross(n, H)"),
    ("flux", "/ (Y + Yp)", "/ (Z + Zp)"),
    ("energy_rate", " * op.jacobian", ""),
    ("energy_rate", " * op.jacobian", " * op.jacobian / 2"),
    ("energy_rate", "3 * [op.epsilon] + 3 * [op.mu]", "3 * [op.mu] + 3 * [op.epsilon]"),
    ("energy_rate", " * op.jacobian", " / op.jacobian"),
    ("derivatives", "kid,imn->dkmn", "kdi,imn->dkmn"),
    ("derivatives", "kid,imn->dkmn", "kid,imn->dknm"),
    ("enlarge", "(np.pi / J.sum()) ** (1 / 3)", "np.pi / J.sum()"),
    ("enlarge", "(np.pi / J.sum())", "(4 * np.pi / 3 / J.sum())"),
    ("mirror", "-E - 2 * E_inc", "-E"),
    ("mirror", "-E - 2 * E_inc", "-E - E_inc"),
    ("factor_of", "(t - 1)", "(t + 1)"),
    ("factor_of", "1j * np.exp(-1j", "-1j * np.exp(1j"),
    ("returned", "-(slope", "(slope"),
]


def cells(path: Path, kind: str) -> list[str]:
    """The sources of a notebook's cells of one kind."""
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == kind]


def with_word(path: Path, word: str) -> str:
    """The one code cell in which a word stands."""
    (found,) = (source for source in cells(path, "code") if word in source)
    return found


def say(folder: Path, name: str, changes: dict[str, str], go_on: bool = False):
    """The verdict of a blank's cell after changes, and what its names mean then."""
    path, _, needed = BLANKS[name]
    text = with_word(path, f"def {name}(")
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    *_, last = ast.parse(text).body
    lines = text.split("\n")
    lines[last.lineno - 1] = "verdict = " + lines[last.lineno - 1]
    parts = [IMPORTS, CHECK, *(with_word(path, word) for word in needed), "\n".join(lines)]
    if go_on:
        parts.append(with_word(path, f"def {name}_solution("))
    file = folder / "lesson.py"
    file.write_text("\n\n\n".join(parts), encoding="utf-8")
    space: dict = {}
    exec(compile(file.read_text(encoding="utf-8"), file, "exec"), space)
    return space["verdict"], space


@pytest.mark.parametrize("name", BLANKS)
def test_blanks_are_blank_and_solutions_are_right(tmp_path, name: str) -> None:
    """What is folded below the blank is what is tested here."""
    path, solution, _ = BLANKS[name]
    assert say(tmp_path, name, {})[0].kind == "blank"
    assert say(tmp_path, name, solution)[0].kind == "right"
    said = " ".join(text for text in cells(path, "markdown") if "Solution</summary>" in text)
    for new in solution.values():
        assert new.split("= ")[-1].split("einsum(")[-1].split(", rst")[0] in said


@pytest.mark.parametrize(("name", "right", "wrong"), WRONG)
def test_wrong_answers_are_told(tmp_path, name: str, right: str, wrong: str) -> None:
    """Signs, sides and powers."""
    solution = {old: new.replace(right, wrong) for old, new in BLANKS[name][1].items()}
    assert solution != BLANKS[name][1]
    found, _ = say(tmp_path, name, solution)
    assert found.kind == "wrong", repr(found)


@pytest.mark.parametrize(
    ("name", "right", "wrong", "words"),
    [
        ("curl", "G[0, 2] - G[2, 0]", "G[2, 0] - G[0, 2]", "y has the wrong sign"),
        ("flux", "+ Yp * E)", "+ Y * E)", "the neighbor's"),
        ("enlarge", "(np.pi / J.sum()) ** (1 / 3)", "np.pi / J.sum()", "third power"),
        ("factor_of", "1j * np.exp", "np.exp", "the cosine"),
        ("factor_of", "-1j", "1j", "the other side"),
        ("factor_of", "(t - 1)", "t", "late by 1"),
        ("returned", "np.conj(slope + 1j * xi)", "np.conj(slope - 1j * xi)", "condition"),
        ("returned", "np.conj(slope + 1j * xi)", "(slope + 1j * xi)", "is the conjugate"),
    ],
)
def test_a_likely_slip_is_named(tmp_path, name: str, right: str, wrong: str, words: str) -> None:
    solution = {old: new.replace(right, wrong) for old, new in BLANKS[name][1].items()}
    assert words in repr(say(tmp_path, name, solution)[0])


@pytest.mark.parametrize("name", ["curl", "jumps", "flux", "energy_rate"])
def test_the_lesson_goes_on_with_what_is_right(tmp_path, name: str) -> None:
    """With the reader's function if it has passed, otherwise with the solution."""
    _, blank = say(tmp_path, name, {}, go_on=True)
    assert blank[name] is blank[f"{name}_solution"]
    _, solved = say(tmp_path, name, BLANKS[name][1], go_on=True)
    assert solved[name] is not solved[f"{name}_solution"]
