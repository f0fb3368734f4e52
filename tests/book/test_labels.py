"""Performance numbers of the chapters say where they came from, and say it truly.

`dgbook.lab.numbers` refuses what it can see: a RECORDED number must stand in its record, a PAPER
one in its table or figure. What it cannot see is held here: numbers that a cell prints, draws or
labels by itself.
"""

from __future__ import annotations

import ast
import re
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

from dgbook.lab.numbers import LABELS
from dgbook.page.plot import PERFORMANCE

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
LABEL = re.compile(rf"\b({'|'.join(LABELS)})\b")
DATA = re.compile(r"data:[\w/+.-]+;base64,[A-Za-z0-9+/=]*")

chapters = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def cells(path: Path) -> list[tuple[int, nbformat.NotebookNode]]:
    """The code cells of a chapter, with their place in the notebook, from 0."""
    notebook = nbformat.read(path, as_version=4)
    return [(i, cell) for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"]


class Tables(HTMLParser):
    """Collects the tables of a piece of HTML: caption, headings, and rows of cells, as text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: list[tuple[list[str], list[list[str]]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a table, a row or a cell."""
        if tag == "table":
            self.tables.append(([""], [[""]]))
        elif self.tables and tag == "tr":
            self.tables[-1][1].append([])
        elif self.tables and tag in ("td", "th"):
            self.tables[-1][1][-1].append("")

    def handle_data(self, data: str) -> None:
        """Add text to the cell that we are in, or to the caption in front of all cells."""
        if self.tables:
            caption, rows = self.tables[-1]
            if len(rows) == 1:
                caption[0] += data
            elif rows[-1]:
                rows[-1][-1] += data + " "


def unlabeled_columns(html: str) -> list[str]:
    """Headings of the columns whose numbers have a unit of performance and no label."""
    found = []
    for (caption,), (_, head, *body) in Tables(html).tables:
        for i, heading in enumerate(head):
            shown = [row for row in body if PERFORMANCE.search(f"{heading} {row[i]}")]
            if not all(LABEL.search(f"{caption} {heading} {row[0]} {row[i]}") for row in shown):
                found.append(heading or caption)
    return found


@chapters
def test_what_cells_show_is_labeled(path: Path) -> None:
    """Tables by column or by row, printed text and drawings as a whole."""
    for number, cell in cells(path):
        for output in cell.get("outputs", []):
            html = DATA.sub("", output.get("data", {}).get("text/html", ""))
            if "<table" in html:
                assert not unlabeled_columns(html), f"cell {number}"
            elif 'class="dgbook-source"' not in html:  # a listing measures nothing
                everything = html or output.get("text", "")
                seen = re.sub(r"<(script|style).*?</\1>|<[^>]*>", "", everything, flags=re.DOTALL)
                unit = PERFORMANCE.search(seen)
                assert not unit or LABEL.search(everything), f"cell {number}: {unit}"


def called(node: ast.AST) -> str:
    """The last name of what a call calls: `paper` of `numbers.paper(...)`; "" of other nodes."""
    if not isinstance(node, ast.Call):
        return ""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def computed(node: ast.AST, tree: ast.AST) -> bool:
    """Whether a value is the outcome of arithmetic, or a name for one in the same cell."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    sources = [
        a.value
        for a in ast.walk(tree)
        if isinstance(a, ast.Assign)
        and names & {n.id for t in a.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    ]
    return any(isinstance(n, ast.BinOp) for source in (node, *sources) for n in ast.walk(source))


def hand_made(tree: ast.AST) -> list[str]:
    """Labels in the source of a cell that nothing has checked.

    `Number` takes any label; a section of a paper has no data to be compared with, so that its
    numbers have to be typed.
    """
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            name = getattr(node, "attr", getattr(node, "id", ""))
            if name == "Number":
                found.append("Number")
        if called(node) == "paper" and len(node.args) > 2:
            place = node.args[1]
            if isinstance(place, ast.Constant) and place.value.startswith("Section"):
                if computed(node.args[2], tree):
                    found.append(ast.unparse(node))
    return found


@chapters
def test_labels_are_made_by_those_who_check_them(path: Path) -> None:
    """Cells label numbers by live(), recorded(), paper() and model()."""
    for number, cell in cells(path):
        source = re.sub(r"(?m)^\s*[%!].*$", "", cell.source)
        assert not hand_made(ast.parse(source)), f"cell {number}"


def test_an_unlabeled_column_is_found() -> None:
    """The tests above find what they are for: a rate without a label beside one that has it."""
    row = "<tr><th>N = 1</th><td>3 GB/s</td><td>4 GB/s RECORDED</td></tr>"
    table = "<table><caption>{}</caption><tr><th>N</th><th>here</th><th>there</th></tr>{}</table>"
    assert unlabeled_columns(table.format("rates", row)) == ["here "]
    assert not unlabeled_columns(table.format("rates LIVE", row))
    assert hand_made(ast.parse('Number(1, "s", "RECORDED", "a GPU")')) == ["Number"]
    ridge = 'ridge = 933 / 142\npaper("klockner2009", "Section 6", ridge, "flop/B")'
    assert len(hand_made(ast.parse(ridge))) == 1
    assert not hand_made(ast.parse('paper("klockner2009", "Section 6", 933.0, "GFLOP/s")'))
