"""Pages that are made when the book is built, and those that are written: both say what is."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import nbformat
import pytest

from dgbook.lab import reproduce
from dgbook.lab.reproduce.verdict import ALONE

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "_ext"))

import book_tables  # noqa: E402
from book_chapters import number_of  # noqa: E402

CHAPTERS = sorted((ROOT / "chapters").glob("[0-9]*.ipynb"))

PAPERS = pytest.mark.parametrize("paper", reproduce.papers(), ids=lambda paper: paper.name)


def page(name: str) -> str:
    """The source of a page."""
    return (ROOT / "chapters" / f"{name}.md").read_text(encoding="utf-8")


@cache
def sections(chapter: str) -> dict[int, str]:
    """What stands in each section of a chapter, "5" or "1b", by its number."""
    (path,) = (p for p in CHAPTERS if number_of(f"chapters/{p.stem}") == chapter)
    cells = nbformat.read(path, as_version=4).cells
    text = "\n".join(cell.source for cell in cells)
    parts = re.split(r"^## (\d+)\. ", text, flags=re.M)[1:]
    return {int(number): body for number, body in zip(parts[::2], parts[1::2], strict=True)}


# ---------------------------------------------------------------------------------------- tables


@PAPERS
def test_every_item_has_a_row_with_its_verdict(paper, monkeypatch) -> None:
    """In the paper's order, each with what `reproduce` says."""
    verdicts, compare = [], reproduce.compare

    def noted(*arguments):
        verdicts.append(compare(*arguments))
        return verdicts[-1]

    monkeypatch.setattr(reproduce, "compare", noted)
    rows = book_tables.reproductions(paper.name).split("\n\n")[1].splitlines()[2:]
    assert [re.match(r"\| `(\w+)`", row).group(1) for row in rows] == [i.id for i in paper.items]
    for row, verdict in zip(rows, verdicts, strict=True):
        assert book_tables.escape(verdict.sentence) in row
        assert ("RECORDED" in row) == bool(verdict.ours and verdict.ours.label)
        assert f"{{ch}}`{verdict.item.chapter}`" in row
        named = re.search(r"in chapter (\d+[a-d]?)", verdict.because)
        if verdict.word == ALONE and named:
            assert named.group(1) == str(verdict.item.chapter)


def test_all_records_are_listed() -> None:
    """Every file, by family and name, with the number of its rows."""
    listed = book_tables.record_list()
    families = dict(re.findall(r"^\| `(\w+)/` \| (.+?) \|", listed, re.M))
    for path in (ROOT / "chapters" / "records").glob("*.json"):
        family, _, what = path.name.split("__")[0].partition("-")
        assert f"`{what}`" in families[family]


def test_every_probe_is_listed_with_its_kernels_and_numbers() -> None:
    """All effects that are measured, and a table where the record has rows."""
    from dgbook.lab import machine, records

    listed = re.findall(r"```\{probe\} (\w+)(.*)", page("probes"))
    assert {name for name, _ in listed} == set(machine.EFFECTS)
    for name, kernels in listed:
        shown = book_tables.probe(name, *kernels.split())
        assert shown.count("```python\n@jit\ndef ") + shown.count("```cpp") == len(kernels.split())
        assert '"""' not in shown or name == "launch"
        effect = machine.EFFECTS[name]
        rows = machine.rows_of(effect, records.load(effect.record))
        assert len(re.findall(r"^\| ", shown, re.M)) == (len(rows) + 2 if rows else 0)


def test_every_wrong_kernel_is_listed_and_tested() -> None:
    """All files of tests/broken have mistakes, and a test without a GPU loads them."""
    tests = [path.read_text() for path in (ROOT / "tests").glob("[crs]*/*.py")]
    kinds = book_tables.broken_kernels()
    shown = book_tables.wrong_kernels()
    assert sum(len(mistakes) for _, mistakes in kinds.values()) > 150
    for stem, (about, mistakes) in kinds.items():
        assert len(mistakes) >= 4 and about in shown
        loads = re.compile(rf"from broken import {stem}\b|\W{stem}\.py")
        assert any(loads.search(test) for test in tests), stem


def test_every_assignment_is_told_whole() -> None:
    """Points add up to 100, parts read by hand to 10, and each has wrong solutions."""
    names = book_tables.assignment_names()
    table, by_hand = book_tables.assignments(), book_tables.read_by_hand()
    assert table.count("\n") == len(names) + 1
    for row in table.splitlines()[2:]:
        assert sum(map(int, re.findall(r"\((\d+)\)", row))) == 100
        assert "| 90&nbsp;+&nbsp;10 |" in row
    for name in names:
        worth = re.findall(rf"^\| {int(name[:2])} \| \d\.\d \| (\d+) \|", by_hand, re.M)
        assert sum(map(int, worth)) == 10
        assert len(book_tables.wrong_work(name)) >= 10


def test_every_chapter_promises_something() -> None:
    """Three goals or more, and the time that it takes."""
    chapters = book_tables.learning_goals().split("**{chapter}")[1:]
    assert len(chapters) >= 9
    for text in chapters:
        assert re.search(r"\(\d+ minutes\)", text)
        assert text.count("\n- ") >= 3


def test_text_in_a_table_stays_text() -> None:
    """What Markdown would take for markup is shown as it is."""
    assert book_tables.escape("a|b  *c* `d` $e$ <f> [g] h_i") == (
        r"a\|b \*c\* \`d\` \$e\$ \<f\> \[g\] h\_i"
    )


# -------------------------------------------------------------------------------------- glossary


def glossary() -> list[tuple[str, str]]:
    """Terms and definitions."""
    block = re.search(r"```\{glossary\}\n(.+?)\n```", page("glossary"), re.S).group(1)
    return re.findall(r"^(\S.*)\n((?:  .*\n?)+)", block, re.M)


def test_terms_are_in_order() -> None:
    """Alphabetical, whatever their case."""
    terms = [term for term, _ in glossary()]
    assert len(terms) > 80
    assert terms == sorted(terms, key=str.lower)


def test_terms_are_introduced_where_the_glossary_says() -> None:
    """The section exists, and speaks of the term."""
    written = {number_of(f"chapters/{p.stem}") for p in CHAPTERS}
    missing = []
    for term, definition in glossary():
        places = re.findall(r"\{chapter\}`(\d+[a-z]?)\.?(\d*)`", definition)
        assert places or "how_to_use" in definition, term
        for chapter, section in places:
            if not section or chapter not in written:
                continue
            text = re.sub(r"\s+", " ", sections(chapter)[int(section)]).lower()
            words = [word[:5] for word in re.findall(r"\w{3,}", term.lower()) if word != "the"]
            if not any(word in text for word in words):
                missing.append((term, f"{chapter}.{section}"))
    assert not missing


def test_what_a_lesson_defines_is_in_the_glossary() -> None:
    """And so in the index: each subject of a box "Definition", as one thing or as its kind."""
    terms = {term.lower() for term, _ in glossary()}
    boxes = re.compile(r"^> \*\*Definition: ([^*]+)\.\*\*", re.M)
    defined = [
        subject.removeprefix("the ").lower()
        for path in CHAPTERS
        for cell in nbformat.read(path, as_version=4).cells
        for found in boxes.findall(cell.source)
        for subject in re.split(", | and ", found)
    ]
    assert len(defined) > 15
    kinds = {term.partition(" of ")[0] for term in terms}  # "wave of blocks" is "wave" in its box
    assert not [d for d in defined if not {d, d.removesuffix("s")} & (terms | kinds)]


# -------------------------------------------------------------------------------------- notation


def test_names_in_the_notation_are_names_in_the_code() -> None:
    """What stands in typewriter, but for shapes, is found in the package."""
    code = "\n".join(path.read_text() for path in (ROOT / "dgbook").rglob("*.py"))
    known = set(re.findall(r"\w+", code))
    rows = re.findall(r"^\| [^|\n]*\| ([^|\n]*`[^|\n]*)\| \{ch\}", page("notation"), re.M)
    names = {name for row in rows for name in re.findall(r"`([A-Za-z_]\w*)", row)}
    assert len(names) > 80
    assert not names - known


def test_the_plan_of_the_course_has_every_lesson_once() -> None:
    """What everyone reads is in reading order, and each assignment goes out and comes back."""
    plan = page("instructors").split("**Time.**")[0]
    rows = re.findall(r"^\| (\d+) \| (.+?) \| (.*?) \| (.*?) \|", plan, re.M)
    assert [int(week) for week, *_ in rows] == list(range(1, 13))
    all_read, more = (re.findall(r"\d+\w*", " ".join(row[n] for row in rows)) for n in (1, 2))
    numbers = [number_of(f"chapters/{path.stem}") for path in CHAPTERS]
    assert all_read == [number for number in numbers if number in all_read]
    assert not set(all_read) & set(more)
    assert set(numbers) <= {*all_read, *more}
    handed = re.findall(r"(\d) (out|due|a week later)", " ".join(row[3] for row in rows))
    assert sorted(number for number, when in handed if when == "out") == list("123456")
    assert sorted(number for number, when in handed if when != "out") == list("123456")


# ------------------------------------------------------------------------------- the built pages


@pytest.mark.parametrize("name", ["reproductions", "instructors", "how_to_use", "glossary"])
def test_nothing_is_left_as_typed(html: Path, name: str) -> None:
    """All roles and directives have become something."""
    built = (html / "chapters" / f"{name}.html").read_text()
    article = built[built.index("<article") : built.index("</article>")]
    assert "{ch}" not in article and "{chapter}" not in article and ":::" not in article


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_are_numbered_by_their_files(html: Path, path: Path) -> None:
    """In their titles and in the contents beside every page; there are two lessons of chapter 1."""
    number = number_of(f"chapters/{path.stem}")
    page = (html / "chapters" / f"{path.stem}.html").read_text(encoding="utf-8")
    assert f'<h1><span class="section-number">{number}. </span>' in page
    contents = (html / "chapters" / "intro.html").read_text(encoding="utf-8")
    assert re.search(rf'href="{path.stem}\.html">{number}\. ', contents)


def test_the_index_leads_into_the_chapters(html: Path) -> None:
    """From a term to the section that introduces it, beside its definition."""
    built = (html / "genindex.html").read_text()
    entry = re.search(r"<strong>race</strong></a>(.+)", built).group(1)
    assert 'href="chapters/07b_' in entry and "#two-edges-one-element" in entry
    assert len(set(re.findall(r'href="chapters/(\d+)_', built))) >= 9


def test_a_chapter_is_linked_by_its_number(html: Path) -> None:
    """The plan of the course leads to every chapter that there is."""
    built = (html / "chapters" / "instructors.html").read_text()
    for path in (html / "chapters").glob("[0-9]*.html"):
        assert f'href="{path.name}"' in built
