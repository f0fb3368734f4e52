"""Make slides of the lessons, one deck for each: `make slides`.

Decks are made of the notebooks by rules, so that there is no second text that could fall behind. A
lesson's text is cut into what is said in one piece (`Piece`), its cells show what they have stored,
and each piece becomes a slide, a part of one, or notes for the speaker:

- a lesson's and a section's heading opens a slide, with the goals or the section's first sentences;
- a figure, table or listing is a slide with its caption; a film or player is as it is in the page,
  at its first frame, and can be moved;
- a box is a slide. The answer to a prediction is on the next one, or after the figures that show
  it: what is folded as an answer, else the first paragraph that follows;
- an equation is on a slide with the sentence that leads to it, as many as there is room for;
- code that is not folded is a slide, kernels and blanks above all, cut into pieces that fit; a
  solution follows its blank;
- lists and exercises are slides. All other text is notes, exercises' solutions and proofs too.

Folded code (plumbing) and folded output (the rest of a long kernel) are left out. nbconvert makes
the pages, with reveal.js and MathJax beside them, so that decks work offline. What is too large for
a slide is made smaller by `deck/deck.js`, and a still picture that is much taller than wide is cut
in two; `tests/book/test_slides.py` holds how small things may get. `deck/deck.js` makes the notes'
formulas such that the speaker view, a window of its own, can draw them.
"""

from __future__ import annotations

import html
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import nbformat
import yaml
from nbconvert import SlidesExporter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "_ext"))

import book_notebooks as book  # noqa: E402

FOLDER = ROOT / "_build" / "slides"
GOING_FURTHER = "Going further"  # the part of the contents with what lessons left out
CODE_LINES = 22  # of code that a slide has room for
QUESTION = 260  # characters with which a section may open
SHOWN = 620  # characters of an answer or a list, and of equations with what leads to them
PRINTED_LINES = 12  # of output below its code

# What is said in one piece. The first that matches is it.
PIECES = {
    "exercise": book.EXERCISE,
    "folded": re.compile(
        r"^<details><summary>(?P<summary>.+?)</summary>(?P<text>.+?)</details>", re.M | re.S
    ),
    "box": book.BOX,
    "caption": book.CAPTION,
    "heading": re.compile(r"^(?P<level>#{1,4}) (?P<text>.+)", re.M),
    "equation": re.compile(r"^\$\$.+?\$\$", re.M | re.S),
    "fence": re.compile(r"^```.+?^```", re.M | re.S),
    "picture": re.compile(r"^!\[.*\]\(.+\)$", re.M),
    "table": re.compile(r"^(?:\|.*(?:\n|\Z))+", re.M),
    "list": re.compile(r"^(?:(?:- |\d+\. ).*(?:\n|\Z)(?:  .*(?:\n|\Z))*)+", re.M),
    "text": re.compile(r"^\S.*(?:\n(?!\$\$|- |\d+\. |\||>|<details|#|```).+)*", re.M),
}
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]+\)")
PLACE = re.compile(r'<a id="[^"]+"></a>')
SENTENCE = re.compile(r"(?<=[.:?!])(?=\s+[A-Z$*`\[(])")


@dataclass(frozen=True)
class Piece:
    """What a cell of text says in one piece: its kind, its words, and what its pattern found."""

    kind: str
    text: str
    found: re.Match[str] | None = None


@dataclass(frozen=True)
class Shown:
    """What a code cell shows: HTML, `printed` text, or `code` in a language."""

    html: str = ""
    printed: str = ""
    code: str = ""
    language: str = "python"
    tags: frozenset[str] = frozenset()


@dataclass
class Slide:
    """A slide: its kind is for the style sheet, `parts` are Markdown or HTML of a cell."""

    kind: str
    heading: str
    parts: list[str | Shown] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    opens: bool = False


# ------------------------------------------------------------------------------ reading a lesson


def pieces(text: str) -> Iterator[Piece]:
    """A cell of text, piece by piece."""
    position = 0
    while rest := text[position:].lstrip("\n"):
        position = len(text) - len(rest)
        kind, found = next(
            (kind, found) for kind, pattern in PIECES.items() if (found := pattern.match(rest))
        )
        yield Piece(kind, found[0].strip(), found)
        position += found.end()


def source_of(shown: str) -> str:
    """The text of a listing that `dgbook.page.show` has drawn."""
    lines = re.search(r"<pre[^>]*>(.*?)</pre>", shown, re.S)[1]
    return html.unescape(re.sub(r"<[^>]+>", "", lines)).strip("\n")


def language_of(code: str) -> str:
    """The language that a listing is written in: a difference, C++ or Python."""
    if all(line[:1] in "+- " for line in code.split("\n")) and re.search("^[+-] ", code, re.M):
        return "diff"
    return "cpp" if re.search(r"__device__|__global__|#pragma|[;{]$", code, re.M) else "python"


def shown_by(cell: NotebookNode) -> Iterator[Shown]:
    """What a code cell shows on slides: its code, unless it is folded, and what it has stored."""
    tags = frozenset(cell.metadata.get("tags", []))
    if "hide-output" in tags:
        return
    outputs = [o for o in cell.outputs if o.output_type != "error"]
    drawn = ["".join(o.data["text/html"]) for o in outputs if "text/html" in o.get("data", {})]
    printed = "".join(o.text for o in outputs if o.output_type == "stream").strip("\n")
    listed = any('class="dgbook-source"' in one for one in drawn)
    if not listed and not tags & {"hide-input", "kernel"}:
        yield Shown(code=cell.source, tags=tags)
    if printed:
        yield Shown(printed=printed, tags=tags)
    for one in drawn:
        if 'class="dgbook-source"' in one and (code := source_of(one)):
            yield Shown(code=code, language=language_of(code), tags=tags)
        elif "blank" not in tags:
            yield Shown(html=one, tags=tags)


def items(notebook: NotebookNode) -> Iterator[Piece | Shown]:
    """All that a lesson says and shows, in order; not what its first cell says of the device."""
    first = True
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield from pieces(cell.source)
        elif first:
            first = False
        else:
            yield from shown_by(cell)


# ---------------------------------------------------------------------------------- words


def plain(text: str) -> str:
    """Text without links into the book, and without names of places in it."""
    return LINK.sub(r"\1", PLACE.sub("", text))


def opening(text: str, most: int = QUESTION) -> str:
    """The first sentences of a paragraph, as many as there is room for, at least one."""
    sentences = SENTENCE.split(text)
    kept = sentences[0]
    for sentence in sentences[1:]:
        if len(kept) + len(sentence) > most:
            break
        kept += sentence
    return kept


def leading(text: str) -> str:
    """The sentence of a paragraph that leads to what comes next."""
    return SENTENCE.split(text)[-1].strip()


def cut_code(code: str, most: int = CODE_LINES) -> list[str]:
    """Code in pieces of at most so many lines, cut at an empty or at the least indented line."""
    lines = code.split("\n")
    found = []
    while len(lines) > most:
        wanted = range(most, most // 2, -1)  # a piece is at least half full
        depth = {n: len(lines[n]) - len(lines[n].lstrip()) for n in wanted if lines[n].strip()}
        empty = [n for n in wanted if not lines[n].strip()]
        at = empty[0] if empty else min(depth, key=lambda n: (depth[n], -n))
        found.append("\n".join(lines[:at]).rstrip())
        lines = lines[at:]
        while not lines[0].strip():
            del lines[0]
    return [*found, "\n".join(lines)]


def cut_list(text: str, most: int = SHOWN) -> list[str]:
    """A list in pieces that fit."""
    entries = re.split(r"\n(?=- |\d+\. )", text)
    found = [entries[0]]
    for entry in entries[1:]:
        if len(found[-1]) + len(entry) > most:
            found.append(entry)
        else:
            found[-1] += f"\n{entry}"
    return found


def fenced(code: str, language: str) -> str:
    """Code as Markdown."""
    return f"````{language}\n{code}\n````"


# --------------------------------------------------------------------------------- making slides


def answers(section: Sequence[Piece | Shown]) -> set[int]:
    """Which items of a section answer its predictions.

    The one that is folded as an answer before the next prediction; else the first paragraph after
    the figure that comes next, or after the prediction where there is none.
    """
    asked = [n for n, item in enumerate(section) if is_prediction(item)]
    found = set()
    for start, stop in pairwise([*asked, len(section)]):
        kinds = {n: getattr(section[n], "kind", "") for n in range(start + 1, stop)}
        folded = [n for n in kinds if is_answer(section[n])]
        figures = [n for n in kinds if kinds[n] == "caption"]
        texts = [n for n in kinds if kinds[n] == "text"]
        later = [n for n in texts if figures and n > figures[0]]
        found |= set((folded or later or texts)[:1])
    return found


def is_prediction(item: Piece | Shown) -> bool:
    """Whether it is a box in which the reader commits to an answer."""
    return isinstance(item, Piece) and item.kind == "box" and item.found["kind"] == "Predict"


def is_answer(item: Piece | Shown) -> bool:
    """Whether it is folded as an answer."""
    return isinstance(item, Piece) and item.kind == "folded" and "nswer" in item.found["summary"]


def sections(all_items: Iterable[Piece | Shown]) -> list[list[Piece | Shown]]:
    """Items by section, each with its heading first."""
    found: list[list[Piece | Shown]] = []
    for item in all_items:
        if isinstance(item, Piece) and item.kind == "heading" and len(item.found["level"]) < 3:
            found.append([])
        found[-1].append(item)
    return found


class Deck:
    """The slides of a lesson, as they are made."""

    def __init__(self) -> None:
        self.slides: list[Slide] = []
        self.section = ""
        self.before = ""  # the paragraph just read, if what comes next may be led to by it
        self.drawn: Shown | None = None  # what waits for its caption
        self.asked = False  # a blank is open, and its solution not yet shown

    def add(self, kind: str, *parts: str | Shown, heading: str = "", opens: bool = False) -> None:
        """Add a slide."""
        self.slides.append(Slide(kind, heading or self.section, list(parts), opens=opens))
        self.before = ""

    def note(self, text: str) -> None:
        """Say something to the speaker, beside the slide that is shown."""
        self.slides[-1].notes.append(plain(text))

    def read(self, section: Sequence[Piece | Shown]) -> None:
        """Make a section's slides."""
        answering = answers(section)
        for number, item in enumerate(section):
            if isinstance(item, Shown):
                self.show(item)
                continue
            if item.kind != "caption":
                self.drawn = None  # what has no caption is no figure
            if number in answering:
                self.answer(item)
            else:
                getattr(self, item.kind)(item)

    def show(self, shown: Shown) -> None:
        """Code and what is printed become slides; a picture waits for its caption."""
        lead = leading(plain(self.before))
        if shown.html:
            self.drawn = shown
        elif shown.code:
            blank = "blank" in shown.tags
            kind = "Fill in the blanks" if blank else ""
            self.asked = self.asked or blank
            cut = cut_code(shown.code.replace("\n\n\n", "\n\n"))
            for number, code in enumerate(cut, 1):
                count = f" ({number} of {len(cut)})" if len(cut) > 1 else ""
                words = [lead] if lead and number == 1 else []
                self.add(
                    "code",
                    *words,
                    fenced(code, shown.language),
                    heading=f"{self.section}{': ' + kind if kind else ''}{count}",
                )
        else:
            lines = shown.printed.split("\n")
            text = "\n".join(lines[:PRINTED_LINES] + ["..."] * (len(lines) > PRINTED_LINES))
            room = self.slides[-1].kind == "code" and not {"hide-input"} & shown.tags
            code = self.slides[-1].parts[-1].count("\n") if room else 0
            if room and code + len(text.split("\n")) < CODE_LINES:
                self.slides[-1].parts.append(fenced(text, "text"))
            else:
                self.add("code", *([lead] if lead else []), fenced(text, "text"))

    def heading(self, piece: Piece) -> None:
        """A lesson and a section open with a slide, a subsection with nothing."""
        level, text = len(piece.found["level"]), plain(piece.found["text"])
        if level < 3:
            self.section = text
            self.add("title" if level == 1 else "section", opens=True)

    def text(self, piece: Piece) -> None:
        """A paragraph is for the speaker; a section's first is its question as well."""
        now = self.slides[-1]
        if now.kind in ("title", "section") and not now.parts:
            now.parts.append(opening(plain(piece.text)))
        self.note(piece.text)
        self.before = piece.text

    def caption(self, piece: Piece) -> None:
        """A caption goes with what was shown last: a picture, a table, or a listing's code."""
        label, number = piece.found["label"], piece.found["number"]
        words = f"**{label} {number}.** {plain(piece.found['text'].strip())}"
        if self.drawn:
            kind = "table" if "<table" in self.drawn.html[:2000] else "figure"
            self.add(kind, self.drawn, words)
            self.drawn = None
        else:
            self.slides[-1].parts.append(words)

    def box(self, piece: Piece) -> None:
        """A box is a slide."""
        kind, subject = piece.found["kind"], piece.found["subject"] or ""
        words = re.sub(r"^> ?", "", piece.found["text"], flags=re.M).strip()
        self.add(f"box {book.BOXES[kind]}", plain(words), heading=kind + plain(subject))

    def answer(self, piece: Piece) -> None:
        """The answer to a prediction: what there is room for; all of it is in the notes."""
        text = piece.found["text"].strip() if piece.kind == "folded" else piece.text
        self.add("box answer", *self.beginning(text), heading="Answer")
        self.note(text)

    def beginning(self, text: str) -> list[str]:
        """As much of a text as a slide has room for."""
        found: list[str] = []
        for piece in pieces(text):
            words = plain(piece.text)
            if found and sum(map(len, found)) + len(words) > SHOWN:
                break
            found.append(opening(words, SHOWN) if piece.kind == "text" else words)
        return ["\n\n".join(found)]

    def folded(self, piece: Piece) -> None:
        """The solution of a blank is a slide, all else that is folded is for the speaker."""
        summary, text = piece.found["summary"], piece.found["text"].strip()
        if self.asked and "olution" in summary:
            self.add("box answer", *self.beginning(text), heading="Solution")
            self.asked = False
        self.note(f"**{summary}.** {text}")

    def exercise(self, piece: Piece) -> None:
        """An exercise is a slide, and its solution is for the speaker."""
        heading = f"Exercise {piece.found['number']}: {piece.found['title']}"
        self.add("box exercise", plain(piece.found["question"].strip()), heading=heading)
        self.note(f"**Solution.** {piece.found['solution'].strip()}")

    def equation(self, piece: Piece) -> None:
        """An equation, with what leads to it, below the ones before it if there is room."""
        parts = [p for p in (leading(plain(self.before)), piece.text) if p]
        now = self.slides[-1]
        said = now.kind == "section" and now.parts and now.parts[0].endswith(parts[0])
        if said and len(now.parts) == 1:
            now.parts.append(piece.text)
        elif now.kind == "equations" and len("".join(now.parts + parts)) < SHOWN:
            now.parts += parts
        else:
            self.add("equations", *parts)
        self.before = ""

    def list(self, piece: Piece) -> None:
        """A list is a slide, or stands on the one that it opens."""
        now = self.slides[-1]
        lead = leading(plain(self.before))
        for part in cut_list(plain(piece.text)):
            opened = now.kind in ("title", "section") and len(now.parts) < 2
            if opened and len("".join(now.parts) + part) < 2 * SHOWN:
                now.parts += [lead, part] if lead and not now.parts[0].endswith(lead) else [part]
            else:
                self.add("list", *([lead] if lead else []), part)
            lead = ""

    def table(self, piece: Piece) -> None:
        """A table that is typed."""
        self.add("table", plain(piece.text))

    def fence(self, piece: Piece) -> None:
        """Code that is typed."""
        self.add("code", piece.text)

    def picture(self, piece: Piece) -> None:
        """A picture from a file, which must be beside the deck."""
        alt, file = re.match(r"!\[(.*)\]\((.+)\)", piece.text).groups()
        self.add("figure", Shown(html=f'<img class="dg-drawing" alt="{alt}" src="{file}">'))


def slides_of(notebook: NotebookNode) -> list[Slide]:
    """The slides of a lesson."""
    deck = Deck()
    for section in sections(items(notebook)):
        deck.read(section)
    return deck.slides


def as_notebook(slides: Sequence[Slide]) -> NotebookNode:
    """Slides as a notebook that nbconvert makes a deck of."""
    cells = []
    for slide in slides:
        level = "#" if slide.kind == "title" else "##"
        first = new_markdown_cell(f"{level} {slide.heading}")
        first.metadata["slideshow"] = {
            "slide_type": "slide" if slide.opens else "subslide",
            "data": {"kind": slide.kind},
        }
        cells.append(first)
        for part in slide.parts:
            if isinstance(part, Shown):
                output = new_output("display_data", {"text/html": part.html})
                cells.append(new_code_cell(outputs=[output]))
            else:
                cells.append(new_markdown_cell(part))
        if slide.notes:
            notes = new_markdown_cell("\n\n".join(slide.notes))
            notes.metadata["slideshow"] = {"slide_type": "notes"}
            cells.append(notes)
    return new_notebook(cells=cells)


# ------------------------------------------------------------------------------- writing decks


def lessons() -> list[Path]:
    """All lessons, in reading order; what goes further than they do is read, not shown."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    pages = [
        ROOT / f"{page['file']}.ipynb"
        for part in contents["parts"]
        for page in part["chapters"]
        if part["caption"] != GOING_FURTHER
    ]
    return [path for path in pages if path.exists()]


def exporter() -> SlidesExporter:
    """nbconvert, with this book's template."""
    return SlidesExporter(
        extra_template_basedirs=[str(ROOT / "tools")],
        template_name="deck",
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
    )


def write(lesson: Path, folder: Path = FOLDER) -> Path:
    """Write a lesson's deck; returns its page, which needs what `assets` puts beside it."""
    notebook = nbformat.read(lesson, as_version=4)
    slides = slides_of(notebook)
    page, _ = exporter().from_notebook_node(
        as_notebook(slides), resources={"metadata": {"name": slides[0].heading}}
    )
    path = folder / f"{lesson.stem}.html"
    path.write_text(page, encoding="utf-8")
    return path


def assets(folder: Path = FOLDER) -> None:
    """Put scripts, fonts and the pictures of lessons beside the decks."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("reveal", "mathjax"):
        shutil.copytree(ROOT / "vendor" / name, folder / name, dirs_exist_ok=True)
    shutil.copytree(ROOT / "chapters" / "figures", folder / "figures", dirs_exist_ok=True)


def contents(decks: Sequence[Path], folder: Path = FOLDER) -> Path:
    """Write the page that leads to all decks."""
    entries = []
    for deck in decks:
        title = re.search("<title>(.+?)</title>", deck.read_text(encoding="utf-8"))[1]
        number = deck.stem.split("_")[0].lstrip("0")
        entries.append(f'<li>{number}: <a href="{deck.name}">{title}</a></li>')
    page = (ROOT / "tools" / "deck" / "contents.html").read_text(encoding="utf-8")
    path = folder / "index.html"
    path.write_text(page.replace("<!-- decks -->", "\n".join(entries)), encoding="utf-8")
    return path


def main(names: list[str]) -> int:
    """Make the decks of the named notebooks, of all lessons if none is named."""
    chosen = [Path(name).resolve() for name in names] or lessons()
    assets()
    decks = [write(lesson) for lesson in chosen]
    page = contents(decks) if not names else decks[0]
    print(f"{len(decks)} decks: file://{page}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
