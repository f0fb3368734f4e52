"""Blanks and exercises of "Triangles and tetrahedra": solutions pass, likely mistakes are told."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

LESSON = Path(__file__).parents[2] / "chapters" / "03_triangles_and_tetrahedra.ipynb"
CELLS = json.loads(LESSON.read_text(encoding="utf-8"))["cells"]
BLANKS = ("exponents", "multiply", "derivatives", "gradient", "lift", "rate")


def source(cell: dict) -> str:
    return "".join(cell["source"])


def hidden(cell: dict) -> bool:
    return "hide-input" in cell["metadata"].get("tags", [])


def kept(cell: dict) -> str:
    """What a cell defines: of a folded one, unless others need all of it, functions and choices."""
    text = source(cell)
    if not hidden(cell) or "the right answers" in text or "Draw the two triangles" in text:
        return text
    defined = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.If)
    nodes = [node for node in ast.parse(text).body if isinstance(node, defined)]
    return "\n\n\n".join(ast.get_source_segment(text, node) for node in nodes)


def is_blank(cell: dict) -> bool:
    return "blank" in cell["metadata"].get("tags", [])


def defining(name: str, blank: bool) -> str:
    """The text of one of the reader's functions, as it is asked for or as it is solved."""
    called = name if blank else f"{name}_solution"
    (text,) = (
        source(c) for c in CELLS if c["cell_type"] == "code" and f"def {called}(" in source(c)
    )
    found = next(n for n in ast.parse(text).body if getattr(n, "name", "") == called)
    return ast.get_source_segment(text, found).replace(f"def {called}(", f"def {name}(")


def checking(name: str) -> str:
    """The lines of a blank's cell below its function: the call of the check."""
    (text,) = (source(c) for c in CELLS if is_blank(c) and f"def {name}(" in source(c))
    (start,) = (n.end_lineno for n in ast.parse(text).body if getattr(n, "name", "") == name)
    return "\n".join(text.split("\n")[start:])


def run(path: Path, text: str, names: dict) -> object:
    """Run a text from a file, so that it has a source; the value of its last expression."""
    path.write_text(text, encoding="utf-8")
    *before, last = ast.parse(text).body
    exec(compile(ast.Module(before, []), path, "exec"), names)
    return eval(compile(ast.Expression(last.value), path, "eval"), names)


def played(folder: Path, answers: dict[str, str]) -> dict:
    """What the lesson's cells define, once blanks are filled as given and the others left."""
    texts = []
    for cell in [c for c in CELLS if c["cell_type"] == "code"][1:]:
        text = kept(cell)
        for name, answer in answers.items():
            if is_blank(cell) and f"def {name}(" in text:
                text = text.replace(defining(name, blank=True), answer)
        texts.append(text)
    names: dict = {"__name__": "lesson"}
    path = folder / "lesson.py"
    path.write_text("\n\n\n".join(texts), encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(path.read_text(encoding="utf-8"), path, "exec"), names)
    assert "False" not in said.getvalue() and said.getvalue().count("True") > 10
    return names


@pytest.fixture(scope="module")
def lesson(tmp_path_factory) -> dict:
    """What the lesson's cells define when no blank is filled: solutions stand in."""
    return played(tmp_path_factory.mktemp("lesson"), {})


@pytest.fixture
def verdict(lesson, tmp_path):
    """What the check in a blank's cell says of a function's text."""

    def say(name: str, text: str):
        return run(tmp_path / "blank.py", f"{text}\n\n\n{checking(name)}", dict(lesson))

    return say


@pytest.mark.parametrize("name", BLANKS)
def test_blanks_are_blank_and_solutions_are_right(verdict, name: str) -> None:
    assert verdict(name, defining(name, blank=True)).kind == "blank"
    answer = verdict(name, defining(name, blank=False))
    assert answer.kind == "right", repr(answer)


@pytest.mark.parametrize("name", BLANKS[1:])
def test_checks_leave_room_for_rounding(lesson, monkeypatch, verdict, name: str) -> None:
    """A solution is right to a tenth of what the check allows."""
    from dgbook.page import blank

    precise = np.finfo(float)
    monkeypatch.setattr(
        blank.np, "finfo", lambda kind: type("Tenth", (), {"eps": precise.eps / 10}), raising=True
    )
    assert verdict(name, defining(name, blank=False)).kind == "right"


@pytest.mark.parametrize(
    ("name", "old", "new", "kind", "words"),
    [
        ("exponents", "sum(p) <= N", "sum(p) < N", "wrong", "should be `(35, 3)`"),
        ("exponents", "sum(p) <= N", "max(p) <= N", "wrong", "is `(125, 3)`"),
        ("exponents", "sum(p) <= N", "sum(p) == N", "wrong", "is `(15, 3)`"),
        ("exponents", "sum(p) <= N", "p[0] + p[1] <= N", "wrong", "is `(75, 3)`"),
        ("exponents", "sum(p) <= N", "sum(p) < dim", "wrong", "is `(10, 3)`"),
        ("exponents", "sum(p) <= N", "sum(p) <= 2", "wrong", "is `(10, 3)`"),
        ("multiply", "out[1 + m]", "out[m]", "wrong", "layer 1 + m"),
        ("multiply", "out[1 + m]", "out[:]", "wrong", "Which layers"),
        ("multiply", "out[1 + m]", "out[1:]", "wrong", "Only the slope along r_m"),
        ("multiply", "+= q[0]", "+= q[1 + m]", "wrong", "adds q itself"),
        ("multiply", "+= q[0]", "+= 1", "wrong", "values are wrong"),
        ("derivatives", "slopes @ np.linalg.inv(V)", "np.linalg.inv(V) @ slopes", "wrong",
         "values are wrong"),
        ("derivatives", "np.linalg.inv(V)", "V", "wrong", "values are wrong"),
        ("derivatives", "slopes @ np.linalg.inv(V)", "(slopes @ np.linalg.inv(V)).T", "wrong",
         "values are wrong"),
        ("gradient", "np.linalg.inv(dx_dr).T", "np.linalg.inv(dx_dr)", "wrong",
         "sums over columns"),
        ("gradient", "np.linalg.inv(dx_dr).T", "dx_dr", "wrong", "values are wrong"),
        ("gradient", "np.linalg.inv(dx_dr).T", "dx_dr.T", "wrong", "values are wrong"),
        ("gradient", "np.linalg.inv(dx_dr).T @ slopes", "slopes @ np.linalg.inv(dx_dr)", "stopped",
         "line 5: ValueError"),
        ("lift", "[:, face] @ face_mass", "[:, face]", "wrong", "no mass matrix of the face"),
        ("lift", "(V @ V.T)", "(V.T @ V)", "wrong", "values are wrong"),
        ("lift", "(V @ V.T)", "mass(nodes, N)", "wrong", "M in place of its inverse"),
        ("lift", "@ face_mass", "@ np.linalg.inv(face_mass)", "wrong", "values are wrong"),
        ("lift", "(V @ V.T)[:, face]", "(V @ V.T)[face]", "stopped", "ValueError"),
        ("lift", "face_mass = mass(on_face, N)",
         "face_mass = mass(warp_and_blend(1, N), N)", "stopped", "ValueError"),
        ("rate", "u[faces] - outside", "outside - u[faces]", "wrong", "Is the jump u^- - u^+?"),
        ("rate", "u[faces] - outside", "u - outside", "stopped", "line 5: ValueError"),
        ("rate", "a @ gradient(u, vertices, D)", "a @ (D @ u)", "wrong", "slopes along r and s"),
        ("rate", "a @ gradient(u, vertices, D)", "gradient(u, vertices, D)", "wrong",
         "is `(2, 10)`"),
        ("rate", "a @ gradient(u, vertices, D)", "-a @ gradient(u, vertices, D)", "wrong",
         "stands in the last line"),
    ],
)  # fmt: skip
def test_likely_mistakes_are_told(verdict, name, old, new, kind, words) -> None:
    right = defining(name, blank=False)
    assert old in right
    answer = verdict(name, right.replace(old, new))
    assert answer.kind == kind and words.replace("`", "") in repr(answer), repr(answer)


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


def test_a_right_function_is_kept_and_a_wrong_one_replaced(lesson, tmp_path) -> None:
    """The reader's own, with a mark, survives the cell of its solution."""
    answers = {n: defining(n, blank=False) + "  # mine" for n in BLANKS}
    answers["lift"] = answers["lift"].replace("[:, face] @ face_mass", "[:, face]")
    names = played(tmp_path, answers)
    for name in BLANKS:
        function = names[name]
        assert ("# mine" in inspect.getsource(function)) == (name != "lift")
        assert lesson[name] is lesson[f"{name}_solution"]
    assert names["lift"] is names["lift_solution"]


@pytest.mark.parametrize("way", [1, -1])
def test_two_triangles_let_a_wave_through(lesson, monkeypatch, way: int) -> None:
    """Rates are the package's; sums of u change by what flows through the square's boundary.

    Through the shared face nothing gets lost: exact integrals of the jump there cancel in (3.4).
    Sums do not see the order of its nodes, and the page's wave crosses it one way only.
    """
    monkeypatch.setitem(lesson, "a", way * lesson["a"])
    x, D, L, faces = lesson["setup"](3)
    M = lesson["mass"](lesson["nodes"], 3)
    u = np.random.default_rng(1).standard_normal(x.shape[:2])
    rates = lesson["rates"](u, 0.3, x, D, L, faces)
    given = (lesson[name] for name in ("corners", "both"))
    want = lesson["solver_on"](*given, 3, lesson["a"], lesson["wave"]).rhs(u[None], 0.3)[0]
    assert np.abs(rates - want).max() < 1e-12 * np.abs(want).max()
    changed = (rates @ M).sum() / 4  # J is 1/4 on both
    edge = lesson["mass"](lesson["warp_and_blend"](1, 3), 3).sum(axis=0) / 2  # of length 1
    outside = lesson["wave"](x[:, faces], 0.3)
    flow = 0.0
    for k, f, out in ((0, 1, -1.0), (0, 2, -0.5), (1, 1, 1.0), (1, 2, 0.5)):  # a . n, way = 1
        upwind = u[k, faces[f]] if way * out > 0 else outside[k, f]
        flow -= way * out * edge @ upwind
    assert abs(changed - flow) < 1e-12


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
