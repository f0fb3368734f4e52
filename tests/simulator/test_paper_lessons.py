"""Blanks of lessons 5, 5b and 5c: solutions pass, blanks are blank, likely mistakes are told."""

from __future__ import annotations

import ast
import inspect
import os
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
from page_code import code_cells

from dgbook.page import check

CHAPTERS = Path(__file__).parents[2] / "chapters"
LESSON = CHAPTERS / "05_a_dg_operator_for_2009s_gpu.ipynb"
MEASURED = CHAPTERS / "05b_what_the_design_is_worth.ipynb"
FURTHER = CHAPTERS / "05c_more_of_the_design_of_2009.ipynb"
STEPS = ("row", "microblock", "field", "tile", "segment", "pair")
KEPT = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.Assign | ast.AugAssign


def cells(path: Path) -> list[str]:
    """The code of a lesson's cells that draw nothing."""
    return [s for s in code_cells(path) if not s.startswith(("# @title Draw", "# @title Count"))]


def definitions(source: str) -> str:
    """A cell's imports, functions and names, without films and pictures."""
    found = []
    for node in ast.parse(source).body:
        text = ast.get_source_segment(source, node)
        if isinstance(node, KEPT) and "shoot(\n" not in text and "plot.figure" not in text:
            decorators = [f"@{ast.unparse(d)}" for d in getattr(node, "decorator_list", [])]
            found.append("\n".join([*decorators, text]))
    return "\n\n\n".join(found)


def text_of_lesson() -> str:
    sizes = "import numpy as np\nN, Np, Nfp, Nf = 3, 20, 10, 40\n"
    return sizes + "\n\n\n".join(map(definitions, cells(LESSON)))


def run(text: str, folder: Path) -> dict:
    path = folder / "lesson.py"
    path.write_text(text, encoding="utf-8")
    return runpy.run_path(os.fspath(path))


@pytest.fixture(scope="module")
def lesson(tmp_path_factory) -> dict:
    """What the lesson's cells define, with the blanks blank."""
    return run(text_of_lesson(), tmp_path_factory.mktemp("lesson"))


@pytest.fixture
def changed(lesson, tmp_path) -> Callable:
    """A solution with a part of it replaced."""

    def make(step: str, old: str, new: str):
        text = inspect.getsource(lesson[f"{step}_solution"].py_func)
        assert text.count(old) == 1, old
        path = tmp_path / "changed.py"
        path.write_text(text.replace(old, new), encoding="utf-8")
        space = dict(lesson)
        exec(compile(path.read_text(encoding="utf-8"), path, "exec"), space)
        return space[f"{step}_solution"]

    return make


@pytest.mark.parametrize("step", STEPS)
def test_blanks_are_blank_and_solutions_right(lesson, step: str) -> None:
    assert check(lesson[step], lesson["tasks"][step]).kind == "blank"
    found = check(lesson[f"{step}_solution"], lesson["tasks"][step])
    assert found, repr(found)


FILLED = [
    ("flux[...]", "flux[k * Nf + n]"),
    ("e, node = ..., ...", "e, node = i // Np, i % Np"),
    ("range(..., N_fM, ...)", "range(i, N_fM, N_pM)"),
    ("f[e * Nf + ...]", "f[e * Nf + n]"),
    ("LT[..., node]", "LT[n, node]"),
    ("f[..., e * Nf + n]", "f[j, e * Nf + n]"),
    ("rows[..., n]", "rows[(begin + q) % Np, n]"),
    ("m * N_pM + ...", "m * N_pM + i // Np * Np"),
    ("stride = columns\n", "stride = columns + 1\n"),
    ("fluxes[there] = ...", "fluxes[there] = -scale[p] * jump"),
]


def test_filled_blanks_pass(tmp_path) -> None:
    """As the solutions on the page say to fill them."""
    text = text_of_lesson()
    for old, new in FILLED:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    page = run(text, tmp_path)
    for step in STEPS:
        found = check(page[step], page["tasks"][step])
        assert found, repr(found)


@pytest.mark.parametrize(
    ("step", "old", "new", "kind"),
    [
        ("row", "flux[k * Nf + n]", "flux[k * Nf + i]", "wrong"),
        ("microblock", "i // Np, i % Np", "i % Np, i // Np", "stopped"),
        ("field", "    cuda.syncthreads()\n", "", "stopped"),
        ("field", "range(i, N_fM, N_pM)", "range(i, N_pM, N_pM)", "stopped"),
        ("tile", "f[j, e * Nf + n]", "f[0, e * Nf + n]", "wrong"),
        ("segment", "(begin + q) % Np", "q % Np", "wrong"),
        ("segment", "(begin + q) % Np", "begin + q", "stopped"),
        ("segment", "i // Np * Np", "i", "stopped"),
        ("pair", "-scale[p] * jump", "scale[p] * jump", "wrong"),
        ("pair", "lists[d[p, LIST_STORE], n]", "n", "wrong"),
        ("pair", "lists[d[p, LIST_PLUS], n]", "lists[d[p, LIST_MINUS], n]", "wrong"),
    ],
)
def test_likely_mistakes_are_told(lesson, changed, step, old, new, kind) -> None:
    found = check(changed(step, old, new), lesson["tasks"][step])
    assert found.kind == kind, repr(found)


BLANKS = {  # of lessons 5b and 5c
    "words": ("    lift = ...\n    differentiate = ...\n    assemble = ...",
              "    lift = 6 * Nf + 6 * Np\n    differentiate = 6 * Np + 18 * Np + 9\n"
              "    assemble = 12 * Np + 6 * Np + 6 * Np"),
    "asked": ("Nf + Np + ...", "Nf + Np + Np * Nf / w_i"),
    "best": ("[free], ...).sum(axis=...)", "[free], block).sum(axis=1)"),
    "traces_per_side": ("return ...", "return 2 - inside"),
    "second_from_first": ("D_1[...][:, ...]", "D_1[swap][:, swap]"),
    "caught": ("[..., ..., ...],  # the order of the minus side\n"
               "        [..., ..., ...],  # the wrong impedance\n"
               "        [..., ..., ...],",
               "[0, 1, 1],  # the order of the minus side\n"
               "        [0, 0, 1],  # the wrong impedance\n"
               "        [1, 1, 1],"),
}  # fmt: skip
HEAD = (
    "import numpy as np\nfrom dgbook.element import NodalElement\n"
    "from dgbook.page import check_function\n"
)
FOUND = "found = [[False, True, True], [False, False, True], [True, True, True]]\n"  # Table 5c.2


def hints() -> str:
    """The hints of the first blank, whose cell is folded."""
    (source,) = (s for s in cells(MEASURED) if s.startswith("# @title Make the task of the words"))
    return source + "\n"


@pytest.mark.parametrize("name", BLANKS)
def test_the_functions_of_5b_and_5c(tmp_path, name: str) -> None:
    """The page's own check says "not yet", and passes with the page's solution."""
    both = [*cells(MEASURED), *cells(FURTHER)]
    (source,) = (s for s in both if f"def {name}(" in s and "check_function(" in s)
    old, new = BLANKS[name]
    assert source.count(old) == 1
    head = HEAD + FOUND + hints()
    for text, kind in ((source, "blank"), (source.replace(old, new), "right")):
        lines = (head + text).replace("\ncheck_function(", "\nverdict = check_function(")
        assert run(lines, tmp_path)["verdict"].kind == kind


def test_the_permutation_exchanges_rows_and_columns(tmp_path) -> None:
    """Only rows, or the identity, is not D_2."""
    (source,) = (s for s in cells(FURTHER) if "def second_from_first(" in s)
    page = run(HEAD + source.replace(*BLANKS["second_from_first"]), tmp_path)
    D_1, D_2, swap = (page[name] for name in ("D_1", "D_2", "swap"))
    assert sorted(swap) == list(range(20))
    assert abs(D_1[swap] - D_2).max() > 1 < abs(D_1 - D_2).max()


@pytest.mark.parametrize(
    ("assemble", "said"),
    [
        ("18 * Np", "lifted fluxes, and writes du"),
        ("12 * Np", "also reads lifted fluxes"),
        ("30 * Np", "12 of 18"),
    ],
)
def test_what_assemble_lacks_is_told(tmp_path, assemble: str, said: str) -> None:
    (source,) = (s for s in cells(MEASURED) if "def words(" in s)
    old, new = BLANKS["words"]
    text = source.replace(old, new.replace("12 * Np + 6 * Np + 6 * Np", assemble))
    lines = (HEAD + hints() + text).replace("\ncheck_function(", "\nverdict = check_function(")
    found = run(lines, tmp_path)
    assert found["verdict"].kind == "wrong" and said in repr(found["verdict"])


def test_forgotten_fields_are_told(tmp_path) -> None:
    (source,) = (s for s in cells(MEASURED) if "def words(" in s)
    one = BLANKS["words"][1].replace("12 *", "2 *").replace("18 *", "3 *").replace("6 * ", "")
    text = "import numpy as np\n" + hints() + source.replace(BLANKS["words"][0], one)
    found = run(text.replace("\ncheck_function(", "\nverdict = check_function("), tmp_path)
    assert "Six fields" in repr(found["verdict"])


@pytest.mark.parametrize(
    "wrong",
    [
        "[free], free).sum(axis=1)",
        "[free], block).sum(axis=0)",
        "[free], block).sum()",
        "[block], free).sum(axis=1)",
    ],
)
def test_a_wrong_step_of_the_greedy_partition_is_told(tmp_path, wrong: str) -> None:
    (source,) = (s for s in cells(FURTHER) if "def best(" in s)
    text = HEAD + source.replace(BLANKS["best"][0], wrong)
    found = run(text.replace("\ncheck_function(", "\nverdict = check_function("), tmp_path)
    assert found["verdict"].kind in ("wrong", "stopped")
