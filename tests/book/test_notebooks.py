"""The chapters as files: executed, complete, of a size to read, nothing of the machine in them."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import slides  # noqa: E402

CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
MOST_BYTES = 1_500_000
CELL_LINES, KERNEL_LINES, COLUMNS = 25, 60, 80
# What goes further than a lesson is of any length that one sitting allows.
FURTHER_WORDS = (300, 2000)
LESSON_WORDS, LESSON_LINES, SEEN_COLUMNS = (1200, 2000), 150, 72
# Text in front of which a path of somebody's machine begins.
MACHINE = re.compile(r"(?<![\w.:/])(/(home|root|work|tmp|Users|content|mnt)/|[A-Z]:\\\\?Users)")
DATA = re.compile(r"data:[\w/+.-]+;base64,[A-Za-z0-9+/=]*")

chapters = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
lessons = pytest.mark.parametrize("path", slides.lessons(), ids=lambda path: path.stem)
further = pytest.mark.parametrize(
    "path", sorted({*CHAPTERS} - {*slides.lessons()}), ids=lambda path: path.stem
)


def read(path: Path) -> nbformat.NotebookNode:
    """A chapter, checked against the notebook format."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def tags(cell: nbformat.NotebookNode) -> list[str]:
    """The tags of a cell."""
    return cell.metadata.get("tags", [])


def code_cells(path: Path) -> list[tuple[int, nbformat.NotebookNode]]:
    """All code cells that a run executes, with their place in the notebook, from 1."""
    return [
        (number, cell)
        for number, cell in enumerate(read(path).cells, 1)
        if cell.cell_type == "code" and "skip-execution" not in tags(cell)
    ]


def prose_words(path: Path) -> int:
    """Words of all text cells."""
    return sum(words(cell.source) for cell in read(path).cells if cell.cell_type == "markdown")


def visible_lines(path: Path) -> int:
    """Lines of code that a reader sees without unfolding a cell."""
    visible = [cell.source for _, cell in code_cells(path) if "hide-input" not in tags(cell)]
    return sum(bool(line.strip()) for source in visible for line in source.split("\n"))


def texts(output: nbformat.NotebookNode) -> list[str]:
    """All text of an output, in every form it is stored in."""
    data = output.get("data", {})
    return [output.get("text", ""), *(v for v in data.values() if isinstance(v, str))]


class Figures(HTMLParser):
    """Collects the pictures and drawings of a piece of HTML, and what each says of itself."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.alts: list[str] = []
        self.depth = 0  # how deep inside drawings: one drawing within another belongs to it
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a picture says, and enter a drawing."""
        attributes = dict(attrs)
        figure = tag in ("img", "canvas") or (tag == "svg" and self.depth == 0)
        if figure and attributes.get("aria-hidden") != "true":
            self.alts.append(attributes.get("alt") or attributes.get("aria-label") or "")
        self.depth += tag == "svg"

    def handle_endtag(self, tag: str) -> None:
        """Leave a drawing."""
        self.depth -= tag == "svg"


def words(markdown: str) -> int:
    """Words of prose: no code, no formulas, no addresses, no markup."""
    for pattern in (
        r"```.*?```",
        r"<(details|script|style|table).*?</\1>",
        r"\$\$.*?\$\$",
        r"\$[^$\n]+\$",
        r"`[^`]*`",
        r"<[^>]+>",
        r"\]\([^)]*\)",
    ):
        markdown = re.sub(pattern, " ", markdown, flags=re.DOTALL)
    return len(re.findall(r"[A-Za-zÀ-ÿ][\w'’-]*", markdown))


def test_the_contents_list_every_chapter() -> None:
    """Each notebook is a page of the book, and each page's file exists."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text())
    listed = [chapter["file"] for part in contents["parts"] for chapter in part["chapters"]]
    for name in [contents["root"], *listed]:
        assert list(ROOT.glob(f"{name}.*")), f"{name} is in _toc.yml and not in chapters/"
    assert {f"chapters/{path.stem}" for path in CHAPTERS} <= set(listed)
    assert CHAPTERS


@chapters
def test_every_cell_was_run_in_order(path: Path) -> None:
    """A cell that was never executed has no outputs to compare: nbval would pass it."""
    cells = code_cells(path)
    counts = [cell.execution_count for _, cell in cells]
    assert counts == list(range(1, len(cells) + 1)), "run `make gpu` to store outputs anew"
    assert all(cell.source.strip() for _, cell in cells)


@chapters
def test_no_cell_failed_or_complained(path: Path) -> None:
    """Stored outputs hold no traceback and nothing from the error stream."""
    for number, cell in code_cells(path):
        for output in cell.outputs:
            assert output.output_type != "error", f"cell {number}: {output.evalue}"
            assert output.get("name") != "stderr", f"cell {number}: {output.text[:200]}"


@chapters
def test_nothing_tells_whose_machine_it_was(path: Path) -> None:
    """No output holds a path of the machine that made it."""
    for number, cell in code_cells(path):
        for output in cell.outputs:
            for text in texts(output):
                found = MACHINE.search(DATA.sub("", text))
                context = text[max(found.start() - 40, 0) : found.end() + 40] if found else ""
                assert not found, f"cell {number}: {context}"


@chapters
def test_cells_can_be_read(path: Path) -> None:
    """Cells of at most 25 lines, 60 for a kernel or a folded cell, and 72 columns, folded 80."""
    for number, cell in code_cells(path):
        lines = cell.source.split("\n")
        kernel = "kernel" in tags(cell) or re.search(r"^\s*@(cuda\.)?jit\b", cell.source, re.M)
        most = KERNEL_LINES if kernel or "hide-input" in tags(cell) else CELL_LINES
        assert len(lines) <= most, f"cell {number} has {len(lines)} lines; allowed: {most}"
        longest = max(lines, key=len)
        assert len(longest) <= (COLUMNS if "hide-input" in tags(cell) else SEEN_COLUMNS), (
            f"cell {number}, {len(longest)} columns: {longest}"
        )


@further
def test_what_goes_further_is_a_sitting(path: Path) -> None:
    """300 to 2,000 words, and as much visible code as a lesson has at most."""
    assert FURTHER_WORDS[0] <= prose_words(path) <= FURTHER_WORDS[1]
    assert visible_lines(path) <= LESSON_LINES


@lessons
def test_lesson_is_what_one_person_can_do(path: Path) -> None:
    """1,200 to 2,000 words and at most 150 lines of visible code, blanks among it."""
    cells = read(path).cells
    assert LESSON_WORDS[0] <= prose_words(path) <= LESSON_WORDS[1]
    assert visible_lines(path) <= LESSON_LINES
    assert any("blank" in tags(cell) for cell in cells), "nothing for the reader to write"


@chapters
def test_a_sentence_stands_before_every_cell(path: Path) -> None:
    """No code cell follows another without a word between them."""
    cells = read(path).cells
    assert cells[0].cell_type == "markdown" and cells[0].source.startswith("# ")
    bare = [
        number
        for number, (before, cell) in enumerate(pairwise(cells), 2)
        if before.cell_type == cell.cell_type == "code"
    ]
    assert not bare, f"cells {bare} follow a code cell directly"


@chapters
def test_numbered_equations_have_no_line_breaks(path: Path) -> None:
    r"""Sphinx wraps a formula with a double backslash so that \tag fails; \cr is left alone."""
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            for equation in re.findall(r"\$\$.*?\$\$", cell.source, flags=re.DOTALL):
                assert r"\tag" not in equation or r"\\" not in equation, equation


@chapters
def test_figures_say_what_they_show(path: Path) -> None:
    """`dgbook.page.plot.show` and `dgbook.page.player` show figures and ask for alt text."""
    figures = 0
    for number, cell in code_cells(path):
        for output in cell.outputs:
            data = output.get("data", {})
            bare = [mime for mime in data if mime.startswith("image/")]
            assert not bare, f"cell {number}: {bare} has no alt text; use dgbook.page.plot.show"
            alts = Figures(data.get("text/html", "")).alts
            figures += len(alts)
            assert all(len(alt.split()) >= 4 for alt in alts), f"cell {number}: {alts}"
    assert figures


@chapters
def test_file_is_small(path: Path) -> None:
    """A chapter downloads quickly and can be looked at on GitHub."""
    assert path.stat().st_size <= MOST_BYTES
