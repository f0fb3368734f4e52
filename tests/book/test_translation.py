"""What chapters say in plain Markdown becomes directives; numbers and index are right."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from docutils.utils import new_document
from myst_nb.sphinx_ import HideCodeCellNode

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "_ext"))

import book_index  # noqa: E402
from book_chapters import number_of  # noqa: E402
from book_notebooks import (  # noqa: E402
    BOXES,
    CAPTION,
    REFERENCE,
    TITLE,
    name_output,
    translate,
)

CHAPTERS = sorted((ROOT / "chapters").glob("[0-9]*.ipynb"))
CAPTIONED = [path for path in CHAPTERS if '<a id=\\"fig-' in path.read_text(encoding="utf-8")]
LABELS = {"fig": "Figure", "tab": "Table", "lst": "Listing"}
HTML = {"output_type": "display_data", "data": {"text/html": "<img>"}, "metadata": {}}
SOURCE = HTML | {"data": {"text/html": '<div class="dgbook-source">'}}


def code(*outputs: dict, source: str = "x = 1") -> dict:
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": list(outputs)}


def text(source: str) -> dict:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def translated(*cells: dict) -> list[dict]:
    return translate({"cells": list(cells)})["cells"]


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def prose(path: Path) -> str:
    cells = read(path)["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


# ------------------------------------------------------------------------------------- captions


@pytest.mark.parametrize(
    ("name", "label", "output"),
    [("fig-a", "Figure", HTML), ("tab-a", "Table", HTML), ("lst-a", "Listing", SOURCE)],
)
def test_what_a_cell_shows_gets_its_caption(name: str, label: str, output: dict) -> None:
    """The caption goes to the cell, as myst-nb takes it; the rest of the text stays."""
    after = text(f'<a id="{name}"></a>**{label} 3.1.** Look\nat $N$.\n\nMore.')
    cell, rest = translated(code(output), after)
    assert cell["metadata"]["mystnb"]["figure"] == {"name": name, "caption": "Look\nat $N$."}
    assert rest["source"].strip() == "More."


def test_a_cell_is_a_listing_itself() -> None:
    """Its code is printed with a number, and not a second time; what it shows stays."""
    after = text('<a id="lst-a"></a>**Listing 3.1.** A kernel.')
    listing, cell, _ = translated(code(), after)
    assert listing["source"].startswith("`````{code-block} python\n:name: lst-a\n")
    assert "  A kernel." in listing["source"] and "\nx = 1\n" in listing["source"]
    assert cell["metadata"]["tags"] == ["remove-input"]


def test_code_in_text_becomes_a_listing() -> None:
    """Only the last block before a caption does; a table after it keeps its own caption."""
    first, second = "```python\nx = 1\n```\n\n", "```c\nint y;\n\nint z;\n```\n\n"
    caption = '<a id="lst-a"></a>**Listing 3.1.** Two numbers.\n\n'
    (cell,) = translated(text(f"Start.\n\n{first}{second}{caption}End."))
    head = "`````{code-block} c\n:name: lst-a\n:caption: |\n:  Two numbers.\n\n"
    listing = f"{head}int y;\n\nint z;\n`````"
    assert cell["source"] == f"Start.\n\n{first}{listing}\n\nEnd."


def test_tables_and_pictures_in_text_get_theirs() -> None:
    """They are wrapped, with the caption inside; what is around them stays."""
    table = '| a |\n|---|\n| 1 |\n\n<a id="tab-a"></a>**Table 3.1.** Ones.\n\n'
    picture = '![A drawn cat](cat.svg)\n\n<a id="fig-a"></a>**Figure 3.1.** A cat.\n\nEnd.'
    (cell,) = translated(text(f"Start.\n\n{table}{picture}"))
    inside = re.findall(r"^:{7}\{(\w+)\} (.*)\n:name: (.*)\n", cell["source"], re.M)
    assert inside == [("table", "Ones.", "tab-a"), ("figure", "cat.svg", "fig-a")]
    assert cell["source"].startswith("Start.") and cell["source"].endswith("End.")
    assert ":alt: A drawn cat\n\nA cat." in cell["source"] and "| 1 |\n" in cell["source"]


@pytest.mark.parametrize("before", [code(), code(HTML, HTML), text("Words.")])
def test_a_caption_of_nothing_is_refused(before: dict) -> None:
    """A number that belongs to nothing would be lost."""
    with pytest.raises(ValueError, match="fig-a"):
        translated(before, text('<a id="fig-a"></a>**Figure 3.1.** Look.'))


@pytest.mark.parametrize("path", CAPTIONED, ids=lambda path: path.stem)
def test_typed_numbers_count_up_and_links_agree(path: Path) -> None:
    """What a reader of the notebook sees is what the book counts."""
    chapter, seen = number_of(f"chapters/{path.stem}"), Counter()
    numbers = {
        found["name"]: f"{found['label']} {found['number']}"
        for chapter in CAPTIONED
        for found in CAPTION.finditer(prose(chapter))
    }
    for found in CAPTION.finditer(prose(path)):
        seen[found["kind"]] += 1
        assert found["label"] == LABELS[found["kind"]]
        assert found["number"] == f"{chapter}.{seen[found['kind']]}", found["name"]
    assert seen["fig"] and set(seen) <= set(LABELS)
    for link in REFERENCE.finditer(prose(path)):
        assert link["label"] == numbers[link["name"]]


@pytest.mark.parametrize("path", CAPTIONED, ids=lambda path: path.stem)
def test_the_book_counts_as_the_notebook(html: Path, path: Path) -> None:
    """Captions have the same numbers on the page and in the list of all captions."""
    page = (html / "chapters" / f"{path.stem}.html").read_text(encoding="utf-8")
    listed = (html / "chapters" / "list_of_figures.html").read_text(encoding="utf-8")
    typed = [f"{found['label']} {found['number']}" for found in CAPTION.finditer(prose(path))]
    shown = re.findall(r'class="caption-number">((?:Figure|Table|Listing) [\w.]+) <', page)
    assert sorted(shown) == sorted(typed)
    for found in CAPTION.finditer(prose(path)):
        link = f'href="{path.stem}.html#{found["name"]}"'
        number = f"{found['label']} {found['number']}<"
        assert re.search(rf"{re.escape(link)}[^>]*>(?:<[^>]+>)*{re.escape(number)}", listed)


# ----------------------------------------------------------------- boxes, exercises, folded cells


@pytest.mark.parametrize("kind", BOXES)
def test_quotations_become_boxes(kind: str) -> None:
    """With their subject, and no further than the quotation goes."""
    (cell,) = translated(text(f"> **{kind}: sums.** One\n> and two.\n>\n> Three.\n\nAfter."))
    head, body = cell["source"].split("\n\n", 1)
    assert head == f":::::::{{admonition}} {kind}: sums\n:class: dg-box {BOXES[kind]}"
    assert body == "One\nand two.\n\nThree.\n:::::::\n\nAfter."


def test_other_quotations_stay() -> None:
    """Only the kinds of boxes are boxes."""
    (cell,) = translated(text("> **Someone.** Said."))
    assert cell["source"] == "> **Someone.** Said."


def test_exercises_have_folded_solutions() -> None:
    """A question and its solution, by label."""
    solved = "<details><summary>Solution</summary>\n\nFive.\n\n</details>"
    (cell,) = translated(text(f"**Exercise 2.1 (Sums).** Two and three?\n\n{solved}\n\nAfter."))
    question, solution, after = re.split(r"\n:{7}\n\n", cell["source"])
    assert question == ":::::::{exercise} Sums\n:label: exercise-2-1\n\nTwo and three?"
    assert solution == ":::::::{solution} exercise-2-1\n:class: dropdown\n\nFive."
    assert after == "After."


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_folded_cells_are_folded_everywhere(path: Path) -> None:
    """In the book, on Colab and in JupyterLab, with a title that says what is in them."""
    for cell in read(path)["cells"]:
        if cell["cell_type"] == "code":
            metadata = cell["metadata"]
            assert "remove-input" not in metadata.get("tags", []), "a reader could not open it"
            folded = {
                "hide-input" in metadata.get("tags", []),
                metadata.get("cellView") == "form",
                metadata.get("jupyter", {}).get("source_hidden", False),
                TITLE.match("".join(cell["source"])) is not None,
            }
            assert len(folded) == 1, "".join(cell["source"])[:60]


def test_a_title_is_what_opens_the_cell() -> None:
    """The words beside the code's handle."""
    (cell,) = translated(code(HTML, source="# @title Draw it\nx = 1"))
    assert cell["metadata"]["mystnb"]["code_prompt_show"] == "Code: Draw it"


def test_folded_outputs_are_not_called_code() -> None:
    """But for those that list code. A cell that is folded twice does not show one title twice."""
    (plain,) = translated(code(HTML) | {"metadata": {"tags": ["hide-output"]}})
    assert plain["metadata"]["mystnb"]["code_prompt_show"] == "Show the output"
    (listing,) = translated(code(SOURCE) | {"metadata": {"tags": ["hide-output"]}})
    assert "mystnb" not in listing["metadata"]
    prompts = {"prompt_show": "Code: Draw it", "prompt_hide": "Code: Draw it"}
    folds = [HideCodeCellNode(**prompts, classes=[c]) for c in ("above-input", "below-input")]
    page = new_document("page")
    page.extend(folds)
    name_output(None, page, "page")
    assert [fold["prompt_show"] for fold in folds] == ["Code: Draw it", "Output: Draw it"]
    assert [fold["prompt_hide"] for fold in folds] == ["Code: Draw it", "Output: Draw it"]


# ---------------------------------------------------------------------------------------- index


def test_names_of_the_package_are_found() -> None:
    """By what imports them, also in an earlier section; what draws pages and others is left out."""
    modules: dict[str, str] = {}
    found = book_index.names("from dgbook import linear\nfrom dgbook.mesh import box", modules)
    assert found == {"box (dgbook.mesh)"} and modules == {"linear": "dgbook.linear"}
    assert book_index.names("linear.Solver(np.pi)", modules) == {"Solver (dgbook.linear)"}


def test_every_term_leads_somewhere() -> None:
    """Each term of the list is found in a chapter."""
    found = {entry for path in CHAPTERS for entry in book_index.entries(read(path))}
    terms = book_index.yaml.safe_load((ROOT / "chapters" / "index_terms.yml").read_text())
    assert not set(terms) - found
    assert "Klöckner, Andreas" in found and "Solver (dgbook.maxwell)" in found


def test_the_index_has_what_the_field_looks_up(html: Path) -> None:
    """Terms that are in no glossary lead into chapters."""
    built = (html / "genindex.html").read_text(encoding="utf-8")
    for entry in ("coalesced access", "CFL condition", "Kuramoto-Sivashinsky", "Mie series"):
        assert re.search(rf'<a href="chapters/\d\d\w?_[^"#]+#[^"]+">{entry}', built), entry
