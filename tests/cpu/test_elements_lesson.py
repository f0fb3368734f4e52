"""Blanks and exercises of "Triangles and tetrahedra": solutions pass, likely mistakes are told."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

LESSON = Path(__file__).parents[2] / "chapters" / "03_triangles_and_tetrahedra.ipynb"
CELLS = json.loads(LESSON.read_text(encoding="utf-8"))["cells"]
BLANKS = ("exponents", "interpolation", "derivatives", "gradient", "lift")
# What the lesson says of `gradient` in words; the other solutions are cells.
IN_WORDS = re.compile(r"<summary>Solution</summary>\n\n`(return [^`]+)`")


def source(cell: dict) -> str:
    return "".join(cell["source"])


def hidden(cell: dict) -> bool:
    return "hide-input" in cell["metadata"].get("tags", [])


def kept(cell: dict) -> str:
    """What a cell defines: of a folded one imports and functions, and all of the right answers."""
    text = source(cell)
    if not hidden(cell) or "Make the right answers" in text:
        return text
    defined = (ast.Import, ast.ImportFrom, ast.FunctionDef)
    nodes = [node for node in ast.parse(text).body if isinstance(node, defined)]
    return "\n\n\n".join(ast.get_source_segment(text, node) for node in nodes)


def defining(name: str, blank: bool) -> str:
    """The text of one of the reader's functions, as it is asked for or as it is solved."""
    for cell in CELLS:
        is_blank = "blank" in cell["metadata"].get("tags", [])
        if cell["cell_type"] == "code" and is_blank == blank and f"def {name}(" in source(cell):
            found = next(n for n in ast.parse(source(cell)).body if getattr(n, "name", "") == name)
            return ast.get_source_segment(source(cell), found)
    (words,) = {m[1] for c in CELLS if (m := IN_WORDS.search(source(c)))}
    return defining(name, blank=True).replace("return ...", words)


def checking(name: str) -> str:
    """The lines of a blank's cell below its function: the call of the check."""
    (text,) = (
        source(c)
        for c in CELLS
        if "blank" in c["metadata"].get("tags", []) and f"def {name}(" in source(c)
    )
    (start,) = (n.end_lineno for n in ast.parse(text).body if getattr(n, "name", "") == name)
    return "\n".join(text.split("\n")[start:])


def run(path: Path, text: str, names: dict) -> object:
    """Run a text from a file, so that it has a source; the value of its last expression."""
    path.write_text(text, encoding="utf-8")
    *before, last = ast.parse(text).body
    exec(compile(ast.Module(before, []), path, "exec"), names)
    return eval(compile(ast.Expression(last.value), path, "eval"), names)


@pytest.fixture(scope="module")
def lesson(tmp_path_factory) -> dict:
    """What the lesson's cells define, with solutions in place of blanks."""
    cells = [c for c in CELLS if c["cell_type"] == "code"][1:]
    texts = [kept(cell) for cell in cells if "blank" not in cell["metadata"].get("tags", [])]
    imports = [line for c in cells for line in source(c).split("\n") if line.startswith("from ite")]
    names: dict = {"__name__": "lesson"}
    path = tmp_path_factory.mktemp("lesson") / "lesson.py"
    path.write_text("\n\n\n".join([*imports, *texts]), encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(path.read_text(encoding="utf-8"), path, "exec"), names)
    assert "False" not in said.getvalue() and said.getvalue().count("True") > 8
    return names


@pytest.fixture
def verdict(lesson, tmp_path):
    """What the check in a blank's cell says of a function's text."""

    def say(name: str, text: str):
        return run(tmp_path / "blank.py", f"{text}\n\n\n{checking(name)}", dict(lesson))

    return say


@pytest.mark.parametrize("name", BLANKS)
def test_blanks_are_blank_and_solutions_are_right(verdict, name: str) -> None:
    assert verdict(name, defining(name, blank=True)).kind == "blank"
    found = verdict(name, defining(name, blank=False))
    assert found.kind == "right", repr(found)


@pytest.mark.parametrize("name", BLANKS[1:])
def test_checks_leave_room_for_rounding(lesson, monkeypatch, verdict, name: str) -> None:
    """A solution is right to a fifth of what the check allows."""
    from dgbook.page import blank

    precise = np.finfo(float)
    monkeypatch.setattr(
        blank.np, "finfo", lambda kind: type("Fifth", (), {"eps": precise.eps / 5}), raising=True
    )
    assert verdict(name, defining(name, blank=False)).kind == "right"


@pytest.mark.parametrize(
    ("name", "old", "new", "kind", "words"),
    [
        ("exponents", "sum(a) <= N", "sum(a) < N", "wrong", "should be `(10, 2)`"),
        ("exponents", "sum(a) <= N", "max(a) <= N", "wrong", "is `(16, 2)`"),
        ("exponents", "sum(a) <= N", "sum(a) == N", "wrong", "is `(4, 2)`"),
        ("interpolation", "np.linalg.inv(V)", "V", "wrong", "values are wrong"),
        ("interpolation", "np.linalg.inv(V)", "np.linalg.inv(V).T", "wrong", "values are wrong"),
        ("interpolation", "np.linalg.inv(V)", "np.linalg.inv(V.T)", "wrong", "values are wrong"),
        ("interpolation", "basis(points, N)[0] @ np.linalg.inv(V)",
         "np.linalg.inv(V) @ basis(points, N)[0]", "stopped", "ValueError"),
        ("interpolation", "basis(points, N)[0]", "basis(points, N)[1]", "wrong", "are wrong"),
        ("derivatives", "slopes @ np.linalg.inv(V)", "np.linalg.inv(V) @ slopes", "wrong",
         "values are wrong"),
        ("derivatives", "np.linalg.inv(V)", "V", "wrong", "values are wrong"),
        ("derivatives", "slopes @ np.linalg.inv(V)", "(slopes @ np.linalg.inv(V)).T", "wrong",
         "values are wrong"),
        ("gradient", "np.linalg.inv(A).T", "np.linalg.inv(A)", "wrong", "values are wrong"),
        ("gradient", "np.linalg.inv(A).T", "A", "wrong", "values are wrong"),
        ("gradient", "np.linalg.inv(A).T", "A.T", "wrong", "values are wrong"),
        ("gradient", "np.linalg.inv(A).T @ slopes", "slopes @ np.linalg.inv(A)", "stopped",
         "line 5: ValueError"),
        ("lift", "[:, face] @ face_mass", "[:, face]", "wrong", "values are wrong"),
        ("lift", "(V @ V.T)", "(V.T @ V)", "wrong", "values are wrong"),
        ("lift", "(V @ V.T)", "mass(nodes, N)", "wrong", "values are wrong"),
        ("lift", "@ face_mass", "@ np.linalg.inv(face_mass)", "wrong", "values are wrong"),
        ("lift", "(V @ V.T)[:, face]", "(V @ V.T)[face]", "stopped", "ValueError"),
    ],
)  # fmt: skip
def test_likely_mistakes_are_told(verdict, name, old, new, kind, words) -> None:
    right = defining(name, blank=False)
    assert old in right
    found = verdict(name, right.replace(old, new))
    assert found.kind == kind and words.replace("`", "") in repr(found), repr(found)


def test_the_reader_s_functions_hold_in_three_dimensions(lesson) -> None:
    """Degrees that the page does not print, against the divergence theorem and the package."""
    for N in (2, 4, 6):
        e = lesson["NodalElement"](3, N)
        lift = lesson["lift"](e.nodes, N)
        assert np.abs(lift - e.lift).max() < 1e-11 * np.abs(e.lift).max()
        assert lesson["by_parts"](e.nodes, N, lift) < 1e-11
        if N > 3:
            assert lesson["by_parts"](e.nodes, N, lesson["wrong_lift"](e.nodes, N)) > 1e-8


def test_the_lift_of_one_is_what_its_caption_says(lesson) -> None:
    """(N + 1)(N + 2)/2 on the face, and minus that at the vertex opposite, for N = 3."""
    nodes = lesson["nodes"]
    lifted = lesson["lift"](nodes, 3)[:, 8:].sum(axis=1)
    np.testing.assert_allclose(lifted[nodes[:, 1] == -1], 10, atol=1e-12)
    np.testing.assert_allclose(lifted[np.argmax(nodes[:, 1])], -10, atol=1e-12)


def solutions() -> list[str]:
    """The code in the exercises' solutions."""
    return re.findall(r"```python\n(.+?)```", "\n".join(map(source, CELLS)), re.DOTALL)


def test_solutions_of_exercises_run(lesson, tmp_path, capsys) -> None:
    warp, swap, broken = solutions()
    for text in (warp, swap):
        exec(compile(text, tmp_path / "solution.py", "exec"), dict(lesson))
        assert capsys.readouterr().out == "True\n"
    exec(compile(broken, tmp_path / "broken.py", "exec"), dict(lesson))
    right, wrong = capsys.readouterr().out.splitlines()
    assert right.startswith("error 0.017,") and float(right.split()[-1]) < 1e-13
    assert wrong == "error 0.017, change of the integral 4e-05"
