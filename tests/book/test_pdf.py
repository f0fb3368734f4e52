"""The book as a PDF: a few pages are printed and looked at as `make pdf` looks at all of them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from pypdf import PdfReader, PdfWriter
from pypdf.generic import NameObject, TextStringObject

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import pdf  # noqa: E402

# A chapter with formulas, a kernel, a player and solutions; pages with links into it.
PAGES = ("chapters/02_what_a_gpu_wants", "chapters/glossary", "genindex")


@pytest.fixture(scope="module")
def chapters(html: Path) -> list[pdf.Chapter]:
    """The pages that are printed here."""
    return [chapter for chapter in pdf.chapters() if chapter.name in PAGES]


@pytest.fixture(scope="module")
def document(chapters: list[pdf.Chapter]) -> BeautifulSoup:
    """Them, as one document."""
    return BeautifulSoup(pdf.document(chapters), "html.parser")


@pytest.fixture(scope="module")
def printed(
    chapters: list[pdf.Chapter], tmp_path_factory: pytest.TempPathFactory
) -> tuple[PdfReader, list[str]]:
    """Them, on paper, and what is wrong with it."""
    path = tmp_path_factory.mktemp("pdf") / "some_pages.pdf"
    wrong = pdf.write(chapters, path)
    return PdfReader(path), wrong


# ----------------------------------------------------------------------------- the one document


def test_every_place_has_one_name_and_every_link_a_place(document: BeautifulSoup) -> None:
    """Places of different pages do not get into each other's way."""
    places = [e["id"] for e in document.select("[id]")]
    assert len(places) == len(set(places))
    links = [e["href"][1:] for e in document.select("a[href^='#']")]
    assert len(links) > 100
    assert not set(links) - set(places)
    assert not [
        e["href"] for e in document.select("a[href]") if not re.match("https?:|#", e["href"])
    ]


def test_pictures_and_styles_are_found(document: BeautifulSoup) -> None:
    """All files that the document names are in the built book."""
    folder = ROOT / "_build" / "pdf"
    files = [e["src"] for e in document.select("[src]") if not e["src"].startswith("data:")]
    files += [e["href"] for e in document.select("link")]
    assert len(files) > 5
    assert not [file for file in files if not (folder / file).resolve().is_file()]


def test_solutions_are_open_and_nothing_waits_for_a_click(document: BeautifulSoup) -> None:
    """On paper there is no button."""
    assert document.select("details")
    assert all(e.has_attr("open") for e in document.select("details"))
    assert document.select(".dg-player svg")
    assert not document.select("main :is(button, input, script, .headerlink)")


def test_a_player_says_which_frame_it_shows(document: BeautifulSoup) -> None:
    """In place of sliders stand their values; eight strides have one frame each."""
    told = [e.get_text() for e in document.select(".dg-player p.dg-frame")]
    assert len(told) == len(document.select(".dg-player"))
    films = [words for words in told if "step through this film" in words]
    stride, *others = [words for words in told if words not in films]
    assert len(films) == len(others) == 1
    assert stride.startswith("stride = 4: one of 8 frames.")
    assert all(": one of " in words for words in others)


def test_short_tables_stay_whole_and_wide_ones_in_plain_text_get_smaller_letters() -> None:
    """Rows are not torn; sentences go on below as they are. What a page is made of decides."""
    row, sentence = "N = 1" + 120 * " " + "434", 180 * "a "
    table = "<table><tbody>{}</tbody></table>"
    text = "<pre>{}</pre>".format
    source = (
        '<article class="bd-article">'
        + table.format(pdf.SHORT * "<tr></tr>")
        + table.format((pdf.SHORT + 1) * "<tr></tr>")
        + text(f"{row}\n{sentence}\n")
        + text(sentence)
        + "</article>"
    )
    found = pdf.article(BeautifulSoup(source, "html.parser"), pdf.Chapter("a"), {})
    assert [e.get("class") for e in found.select("table")] == [["whole"], None]
    assert [e.get("style") for e in found.select("pre")] == [f"--columns: {len(row)}", None]


# ------------------------------------------------------------------------------------- on paper


def test_nothing_is_wrong_with_it(printed: tuple[PdfReader, list[str]]) -> None:
    """Bookmarks, letters, links, no empty page."""
    assert printed[1] == []


def test_text_begins_at_the_margin(printed: tuple[PdfReader, list[str]]) -> None:
    """Nineteen millimeters from the edge: what is shrunk to the page's width has all of it."""
    starts = []

    def note(text: str, cm: list[float], tm: list[float], *_: object) -> None:
        if text.strip():
            starts.append(tm[4] * cm[0] + tm[5] * cm[2] + cm[4])

    printed[0].pages[3].extract_text(visitor_text=note)
    assert min(starts) == pytest.approx(19 / 25.4 * 72, abs=0.5)


def test_it_holds_what_the_pages_say(printed: tuple[PdfReader, list[str]], document) -> None:
    """A bookmark for every section; code to its last column; formulas; links within."""
    book, _ = printed
    bookmarks = pdf.titles(book.outline)
    assert "1. The memory ladder" in bookmarks and "Index" in bookmarks
    text = "".join("".join(page.extract_text() for page in book.pages).split())
    lines = [line for e in document.select("main pre") for line in e.get_text().splitlines()]
    lines = ["".join(line.split()) for line in lines if line.isascii()]
    assert len(lines) > 200
    assert not [line for line in lines if line not in text]
    assert len(book.named_destinations) > 80


def test_numbers_in_contents_and_index_are_the_pages(
    printed: tuple[PdfReader, list[str]], chapters: list[pdf.Chapter]
) -> None:
    """Where the contents say that a chapter begins, it does, and the page says its number."""
    book, _ = printed
    first = pdf.page_numbers(book)[chapters[0].anchor]
    assert "2. What a GPU wants" in book.pages[first - 1].extract_text()
    assert re.search(rf"2\. What a GPU wants\s*{first}\b", book.pages[1].extract_text())
    assert str(first) in book.pages[first - 1].extract_text().splitlines()
    index = pdf.page_numbers(book)[chapters[-1].anchor]
    entries = "\n".join(page.extract_text() for page in book.pages[index - 1 :])
    # A place in a chapter that is not in this PDF is a link, and no number.
    (sector,) = re.findall(r"^sector(?:, \[\d+\])*, (\d+)", entries, re.MULTILINE)
    assert "sectors" in book.pages[int(sector) - 1].extract_text()


def test_faults_are_found(printed: tuple[PdfReader, list[str]], tmp_path: Path) -> None:
    """An empty page, a font left out, a link to nowhere, a lost bookmark."""
    book, _ = printed
    writer = PdfWriter(clone_from=book)
    last = writer.pages[-1]
    for link in last["/Annots"]:
        if "/Dest" in link.get_object():
            link.get_object()[NameObject("/Dest")] = TextStringObject("nowhere")
    font = next(iter(last["/Resources"]["/Font"].values())).get_object()
    inner = font["/DescendantFonts"][0].get_object() if "/DescendantFonts" in font else font
    del inner["/FontDescriptor"]
    writer.add_blank_page()[NameObject("/Resources")] = last["/Resources"]
    path = tmp_path / "bad.pdf"
    writer.write(path)
    found = " ".join(pdf.faults(PdfReader(path), [*pdf.titles(book.outline), "A lost chapter"]))
    for word in ("A lost chapter", "is empty", "not embedded", "nowhere"):
        assert word in found
