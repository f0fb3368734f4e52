"""Make one PDF of the whole book from its built pages, with Chromium: `make pdf`.

All pages become one document, so that links lead within it, and are printed together: bookmarks
come from headings. Players show their first frame and say which it is, solutions stand open, wide
tables, equations and outputs are shrunk to the page. It is printed twice: the first time says on
which page everything is, the second writes these numbers into the contents and the index. What
comes out is checked: bookmarks for all headings, no empty page, fonts within, links that lead
somewhere.
"""

from __future__ import annotations

import html
import importlib.metadata
import math
import posixpath
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag
from playwright.sync_api import sync_playwright
from pypdf import PdfReader
from pypdf.generic import DictionaryObject

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "_build" / "html"
TEXT_WIDTH = 650  # pixels of 1/96 inch: A4 less its margins in pdf.css
SHORT = 16  # lines of code, or rows of a table, that are kept on one page
COLUMNS = 100  # of code that stand beside each other in the letters of pdf.css
ROW = re.compile(r"\S {2,}\S")  # a line of a table in plain text, not a sentence
NOT_ON_PAPER = (
    "script, button, .headerlink, .only-dark, .genindex-jumpbox, .sd-summary-state-marker, "
    ".toctree-wrapper"
)
# Names, signs and spaces are as black as what stands around them: as marked words they would double
# the file.
PLAIN = ".highlight :is(.n, .p, .w)"
MINUTES = 10
PASSES = 4  # until page numbers no longer move pages; two are usual
LEAST_TEXT = 60  # characters: more than a running head and a page number

# Equations are drawn, fonts there; then whatever is wider than its column is made smaller.
READY = """async () => {
  await MathJax.startup.promise;
  await document.fonts.ready;
  await Promise.all([...document.images].map(image => image.decode().catch(() => 0)));
  for (const e of document.querySelectorAll("article :is(table, div.math, img, svg)")) {
    const box = e.getBoundingClientRect();
    const inner = e.matches("div.math") ? e.scrollWidth : box.width;
    const room = e.closest("article").getBoundingClientRect().right - box.left;
    if (inner > room + 1) e.style.zoom = room / inner;
  }
}"""
FILL_IN = """pages => {
  for (const e of document.querySelectorAll("[data-page-of]")) {
    e.textContent = pages[e.dataset.pageOf] ?? "";
  }
}"""


HEADINGS = """() => [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map(
  e => e.textContent.replace(/\\s+/g, " ").trim())"""


@dataclass(frozen=True)
class Chapter:
    """A page of the book: its path in the built book without an ending, and its part."""

    name: str
    part: str = ""

    @property
    def anchor(self) -> str:
        """Where it begins in the one document."""
        return self.name.replace("/", "-")

    def find(self, address: str) -> str:
        """What an address on this page names, as a path in the built book."""
        return posixpath.normpath(posixpath.join(posixpath.dirname(self.name), unquote(address)))


def chapters() -> list[Chapter]:
    """All pages in reading order."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    parts = [
        Chapter(page["file"], part["caption"])
        for part in contents["parts"]
        for page in part["chapters"]
    ]
    return [Chapter(contents["root"]), *parts]


# --------------------------------------------------------------------------------- one document


def article(page: BeautifulSoup, chapter: Chapter, anchors: Mapping[str, str]) -> Tag:
    """What a page says, with its places, links and pictures named as in the one document.

    Parameters
    ----------
    page : BeautifulSoup
        Changed on the way.
    chapter : Chapter
        Which page it is.
    anchors : mapping of str to str
        Where each page begins, by its path in the built book. What leads elsewhere in the built
        book is no longer a link.
    """
    found = page.select_one("article.bd-article")
    for e in found.select(".dg-controls"):
        e.replace_with(frame_shown(e))
    for e in found.select(NOT_ON_PAPER):
        e.decompose()
    for e in found.select(PLAIN):
        e.unwrap()
    for e in found.select("[id]"):
        e["id"] = f"{chapter.anchor}--{e['id']}"
    found["id"] = chapter.anchor
    for e in found.select("details"):
        e["open"] = ""
    for e in found.select("table:not(.genindextable)"):
        if len(e.select("tbody tr")) <= SHORT:
            e["class"] = [*e.get("class", []), "whole"]
    for e in found.select("pre"):
        lines = e.get_text().splitlines()
        if len(lines) <= SHORT:
            box = e.find_parent(class_=["cell_input", "output"]) or e.parent
            box["class"] = [*box.get("class", []), "whole"]
        columns = max((len(line) for line in lines if ROW.search(line)), default=0)
        if columns > COLUMNS:
            e["style"] = f"--columns: {columns}"
    for e in found.select("[src]"):
        if not urlsplit(e["src"]).scheme:
            e["src"] = f"../html/{chapter.find(e['src'])}"
    for e in found.select("a[href]"):
        parts = urlsplit(e["href"])
        if parts.scheme:
            continue
        target = anchors.get(chapter.find(parts.path)) if parts.path else chapter.anchor
        if target is None:
            e.unwrap()
            continue
        place = f"{target}--{unquote(parts.fragment)}" if parts.fragment else target
        e["href"] = f"#{place}"
        if e.find_parent(class_="genindextable") and not e.strong:
            e["data-page-of"] = place
    return found


def frame_shown(controls: Tag) -> Tag:
    """What stands on paper in place of a player's sliders: their values, and how many there are.

    A kernel film stands there as a whole, and so does a chart.
    """
    if controls.find_parent(class_="dg-film"):
        return paragraph("The book's pages step through this film.")
    if controls.find_parent(class_="dg-chart"):
        return paragraph("The book's pages ask one question at a time.")
    values = [" ".join(e.get_text().split()) for e in controls.select("label span")]
    frames = math.prod(int(e["max"]) + 1 for e in controls.select("input"))
    return paragraph(
        f"{', '.join(values)}: one of {frames} frames. The book's pages show the others."
    )


def paragraph(text: str) -> Tag:
    """What a player says on paper."""
    shown = BeautifulSoup("", "html.parser").new_tag("p", attrs={"class": "dg-frame"})
    shown.string = text
    return shown


def contents(articles: Sequence[tuple[Chapter, Tag]]) -> str:
    """The table of contents: parts, pages and their sections."""
    lines, part = [], ""
    for chapter, found in articles:
        if chapter.part != part:
            part = chapter.part
            lines.append(f'<p class="part">{html.escape(part)}</p>')
        lines.append(entry("chapter", found.h1.get_text(), chapter.anchor))
        if chapter.name.split("/")[-1][:2].isdigit():
            for section in found.select("section > section"):
                if section.h2:
                    lines.append(entry("section", section.h2.get_text(), section["id"]))
    return f'<div class="contents"><p class="heading">Contents</p>{"".join(lines)}</div>'


def entry(kind: str, title: str, anchor: str) -> str:
    """A line of the contents."""
    link = f'<a href="#{anchor}">{html.escape(title)}</a>'
    return f'<div class="entry {kind}">{link}<span data-page-of="{anchor}">000</span></div>'


def running_heads(articles: Sequence[tuple[Chapter, Tag]]) -> str:
    """CSS that begins every chapter on a page of its own and names it above each."""
    rules = []
    for number, (chapter, found) in enumerate(articles):
        title = found.h1.get_text().replace("\\", "\\\\").replace('"', '\\"')
        rules.append(
            f'@page c{number} {{ @top-right {{ content: "{title}"; font: 9pt sans-serif; '
            f"color: #444; }} }}\n#{chapter.anchor} {{ page: c{number}; break-before: page; }}"
        )
    return "\n".join(rules)


def document(pages: Sequence[Chapter]) -> str:
    """Pages of the built book as one page of HTML, for a folder beside the built book."""
    anchors = {f"{chapter.name}.html": chapter.anchor for chapter in pages}
    styles, scripts, articles = {}, {}, []
    for chapter in pages:
        text = (HTML / f"{chapter.name}.html").read_text(encoding="utf-8")
        page = BeautifulSoup(text, "html.parser")
        for e in page.head.select("link[rel=stylesheet], script"):
            for key in ("href", "src"):
                if e.get(key):
                    e[key] = f"../html/{chapter.find(urlsplit(e[key]).path)}"
            if e.name == "link":
                styles[str(e)] = None
            elif "mathjax" in str(e).lower():
                scripts[str(e)] = None
        articles.append((chapter, article(page, chapter, anchors)))
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    title = html.escape(settings["title"])
    css = (ROOT / "tools" / "pdf.css").read_text(encoding="utf-8")
    body = "".join(
        f'<main class="bd-main"><div class="bd-content"><div class="bd-article-container">{found}'
        "</div></div></main>"
        for _, found in articles
    )
    return (
        '<!DOCTYPE html><html lang="en" data-theme="light" data-mode="light"><head>'
        f'<meta charset="utf-8"><title>{title}</title>{"".join(styles)}{"".join(scripts)}'
        f"<style>{css}{running_heads(articles)}</style></head><body>"
        f'<div class="title-page"><p class="title">{title}</p>'
        f"<p>{html.escape(settings['author'])}</p>"
        f"<p>Version {importlib.metadata.version('dgbook')}, {time.strftime('%Y-%m-%d')}</p>"
        f"<p>{settings['html']['extra_footer']}</p></div>{contents(articles)}{body}</body></html>"
    )


# -------------------------------------------------------------------------------------- printing


def chromium() -> str:
    """The browser that the tests use, too."""
    command = [sys.executable, str(ROOT / "tools" / "chromium.py"), "--install"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def write(pages: Sequence[Chapter], path: Path) -> list[str]:
    """Print pages of the built book into one PDF; return what is wrong with it."""
    folder = HTML.parent / "pdf"
    folder.mkdir(exist_ok=True)
    source = folder / f"{path.stem}.html"
    source.write_text(document(pages), encoding="utf-8")
    settings = {"outline": True, "tagged": True, "prefer_css_page_size": True}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": TEXT_WIDTH, "height": 900})
        page.set_default_timeout(MINUTES * 60_000)
        page.emulate_media(media="print")
        page.goto(source.as_uri())
        page.evaluate(READY)
        numbers, found = {}, None
        for _ in range(PASSES):
            page.pdf(path=path, print_background=True, **settings)
            found = page_numbers(PdfReader(path))
            if found == numbers:
                break
            numbers = found  # longer or shorter than what stood there, they may move pages
            page.evaluate(FILL_IN, numbers)
        headings = page.evaluate(HEADINGS)
        browser.close()
    moved = ["filling in page numbers moved pages"] * (found != numbers)
    return moved + faults(PdfReader(path), headings)


def page_numbers(book: PdfReader) -> dict[str, int]:
    """The page of every place that a link leads to, counted from 1."""
    return {
        name.removeprefix("/"): book.get_destination_page_number(place) + 1
        for name, place in book.named_destinations.items()
    }


# -------------------------------------------------------------------------------------- checking


def faults(book: PdfReader, headings: Sequence[str]) -> list[str]:
    """What is wrong with a printed book, a sentence each; `headings` are what it must contain."""
    found = []
    bookmarks = [" ".join(title.split()) for title in titles(book.outline)]
    if bookmarks != list(headings):
        odd = next((pair for pair in zip_longest(bookmarks, headings) if pair[0] != pair[1]), None)
        found.append(f"the first bookmark that is not the document's heading: {odd}")
    known = {name.removeprefix("/") for name in book.named_destinations}
    for number, page in enumerate(book.pages, 1):
        if len(page.extract_text()) < LEAST_TEXT and not len(page.images):
            found.append(f"page {number} is empty")
        for name, font in page["/Resources"].get("/Font", {}).items():
            if not embedded(font.get_object()):
                found.append(f"page {number}: font {name} is not embedded")
        for link in page.get("/Annots", []):
            place = link.get_object().get("/Dest", "")
            if isinstance(place, str) and place and place.removeprefix("/") not in known:
                found.append(f"page {number}: a link leads to {place}, which is nowhere")
    return found


def titles(outline: Sequence[object]) -> list[str]:
    """All bookmarks in the order of the pages."""
    return [
        title
        for item in outline
        for title in (titles(item) if isinstance(item, list) else [item.title])
    ]


def embedded(font: DictionaryObject) -> bool:
    """Whether the letters of a font are in the file; those of type 3 are drawings."""
    if font["/Subtype"] == "/Type3":
        return True
    inner = font["/DescendantFonts"][0].get_object() if "/DescendantFonts" in font else font
    return any(key.startswith("/FontFile") for key in inner.get("/FontDescriptor", {}))


def main() -> int:
    """Write _build/pdf/dgbook.pdf and say where it is and how long."""
    path = HTML.parent / "pdf" / "dgbook.pdf"
    wrong = write(chapters(), path)
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    pages = len(PdfReader(path).pages)
    print(f"The book on {pages} pages, {path.stat().st_size / 1e6:.0f} MB: file://{path}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
