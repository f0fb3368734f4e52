"""Slides: what is on them by rule, and that nothing on them is cut off, in a browser."""

from __future__ import annotations

import re
import sys
from itertools import groupby
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import slides  # noqa: E402

# Lessons with films, a race among them and one that is taller than wide, a player, tables, blanks,
# a chart to be followed, and a still picture that is much taller than wide.
LESSONS = {path.stem.split("_")[0]: path for path in slides.lessons()}
SEEN = ("01b", "02", "12")
NARROWEST = 300  # pixels of a figure
LEAST = 0.7  # of the style sheet's sizes that what is too large for a slide may have

# Of each slide: how wide its pictures are, how far its contents go beyond it, how small they were
# made, which of its pictures are empty, and how far the rows of a film go beyond their column.
FACTS = """() => {
  document.body.classList.add("measured");
  const whole_svg = "svg:not(svg svg)";  // a drawing clips what is in it
  const within = `.body :is(p, li, pre, table, img, ${whole_svg}, figure, button, mjx-math)`;
  return [...document.querySelectorAll(".slides section section")].map(slide => {
    const whole = slide.getBoundingClientRect();
    const boxes = [...slide.querySelectorAll(within)].map(e => e.getBoundingClientRect());
    const shown = boxes.filter(box => box.width > 1);
    const beyond = shown.map(b => Math.max(b.right - whole.right, b.bottom - whole.bottom));
    const torn = [...slide.querySelectorAll(".dgf-rows")].map(e => e.scrollWidth - e.clientWidth);
    const drawings = `.picture :is(img, ${whole_svg}, .dgf-rows, .dgq-one)`;
    const drawn = [...slide.querySelectorAll(drawings)];
    return {
      drawn: Math.max(...drawn.map(e => e.getBoundingClientRect().width)),
      kind: slide.dataset.kind,
      heading: slide.querySelector("h1, h2").textContent,
      beyond: Math.max(0, ...beyond),
      scale: Number(slide.dataset.scale),
      empty: [...slide.querySelectorAll("img")].filter(image => !image.naturalWidth).length,
      torn: Math.max(0, ...torn),
    };
  });
}"""

# Of a chart in each state that answers can bring it to, with what is folded opened: what it asks,
# and how far it and its caption go beyond their slide; and all questions of its list.
FOLLOWED = """() => {
  document.body.classList.add("measured");
  const chart = document.querySelector(".dg-chart"), slide = chart.closest("section");
  const states = [];
  const buttons = words =>
    [...chart.querySelectorAll("button")].filter(button => button.textContent == words);
  const follow = answers => {
    buttons("Start again").forEach(button => button.click());
    answers.forEach(answer => buttons(answer)[0].click());
    chart.querySelectorAll("details").forEach(folded => { folded.open = true; });
    const whole = slide.getBoundingClientRect();
    const shown = [...slide.querySelectorAll(":is(.dgq-one, .words) *")];
    const boxes = shown.map(e => e.getBoundingClientRect());
    const open = buttons("Yes").length;
    states.push({
      asked: open ? [...chart.querySelectorAll(".dgq-ask")].pop().textContent : "",
      beyond: Math.max(...boxes.map(b => Math.max(b.right - whole.right, b.bottom - whole.bottom))),
    });
    if (open) for (const answer of ["Yes", "No"]) follow([...answers, answer]);
  };
  follow([]);
  return { states, listed: [...chart.querySelectorAll(".dgq-all b")].map(e => e.textContent) };
}"""


def lesson(*cells: nbformat.NotebookNode) -> list[slides.Slide]:
    """Slides of a lesson with these cells behind its first two."""
    first = [new_markdown_cell("# A lesson\n\n*An hour.*"), new_code_cell("setup()")]
    return slides.slides_of(new_notebook(cells=[*first, *cells]))


def picture(**metadata) -> nbformat.NotebookNode:
    """A folded cell that shows a picture."""
    output = new_output("display_data", {"text/html": "<img alt='a hill'>"})
    return new_code_cell(
        "# @title Draw", outputs=[output], metadata={"tags": ["hide-input"]} | metadata
    )


def test_kinds_of_slides_in_order() -> None:
    """A section's heading, box, figure and answer are slides; code that is folded is none."""
    made = lesson(
        new_markdown_cell("## 1. Hills\n\nHow high?\n\n> **Predict.** Guess.\n\nLook:"),
        picture(),
        new_markdown_cell('<a id="fig-hill"></a>**Figure 1.1.** A hill.\n\nHigh. And steep.'),
    )
    assert [slide.kind for slide in made] == [
        "title",
        "section",
        "box predict",
        "figure",
        "box answer",
    ]
    assert made[1].parts == ["How high?"]
    assert made[3].parts[1] == "**Figure 1.1.** A hill."
    assert made[4].parts == ["High. And steep."]
    assert "@title" not in str(made)


def test_what_has_no_caption_is_not_shown_with_the_next_one() -> None:
    """A caption belongs to what stands right before it."""
    table = '| a |\n|---|\n| b |\n\n<a id="tab-a"></a>**Table 1.1.** A table.'
    made = lesson(new_markdown_cell("## 1. Hills\n\nWhy?"), picture(), new_markdown_cell(table))
    assert [slide.kind for slide in made[1:]] == ["section", "table"]
    assert made[2].parts == ["| a |\n|---|\n| b |", "**Table 1.1.** A table."]


def test_a_folded_answer_goes_before_the_text_after_a_figure() -> None:
    """What is said to be the answer is it."""
    text = (
        "## 1. Hills\n\n> **Predict.** Guess.\n\nNot this.\n\n<details><summary>Answer</summary>"
        "\n\nThis.\n\n</details>"
    )
    made = lesson(new_markdown_cell(text))
    assert [s.parts for s in made if s.heading == "Answer"] == [["This."]]
    assert made[2].notes == ["Not this."]


def test_an_equation_stands_with_the_sentence_that_leads_to_it() -> None:
    """Other text is for the speaker; a link into the book is its words."""
    made = lesson(
        new_markdown_cell(
            "## 1. Hills\n\nWhy?\n\nFirst. By [chapter 2](02_b.ipynb) we get\n\n$$a = b.$$\n\nSo"
        )
    )
    assert made[2].parts == ["By chapter 2 we get", "$$a = b.$$"]
    assert made[1].notes == ["Why?", "First. By chapter 2 we get"]
    assert made[2].notes == ["So"]


def test_a_blank_and_its_solution() -> None:
    """The blank comes without the word of its check, the solution on the next slide."""
    said = new_output("display_data", {"text/html": "<div class='dgc blank'>Not yet.</div>"})
    blank = new_code_cell("def f():\n    return ...", outputs=[said], metadata={"tags": ["blank"]})
    solved = "<details><summary>Solution</summary>\n\n`return 1`.\n\n</details>"
    made = lesson(new_markdown_cell("## 1. Hills\n\nFill in:"), blank, new_markdown_cell(solved))
    assert [slide.heading for slide in made[2:]] == ["1. Hills: Fill in the blanks", "Solution"]
    assert "Not yet" not in str(made)


def test_long_code_is_cut_where_it_is_indented_least() -> None:
    """No line is lost, no piece is longer than a slide."""
    code = "\n".join(f"{'    ' if n % 9 else ''}line({n})" for n in range(50))
    cut = slides.cut_code(code)
    assert "\n".join(cut) == code
    assert max(piece.count("\n") + 1 for piece in cut) <= slides.CODE_LINES
    assert all(not piece.startswith(" ") for piece in cut)


@pytest.mark.parametrize("path", LESSONS.values(), ids=LESSONS)
def test_every_figure_and_prediction_of_every_lesson_is_there(path: Path) -> None:
    """Captions are those of the notebook, each once, and predictions have answers after them."""
    notebook = nbformat.read(path, as_version=4)
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    made = slides.slides_of(notebook)
    shown = "\n".join(part for slide in made for part in slide.parts if isinstance(part, str))
    for kind in ("Figure", "Table"):
        wanted = re.findall(rf"^<a id=\S+</a>\*\*({kind} \S+)\*\*", text, re.M)
        assert re.findall(rf"^\*\*({kind} \d\S+)\*\*", shown, re.M) == wanted
    figures = [slide for slide in made if slide.kind == "figure"]
    assert all(isinstance(slide.parts[0], slides.Shown) for slide in figures)
    asked = [s.kind for s in made if s.kind == "box predict" or s.heading == "Answer"]
    assert asked.count("box predict") == text.count("> **Predict.**")
    # Two that follow each other may have one answer.
    assert len([kind for kind, _ in groupby(asked)]) == 2 * asked.count("box answer")
    assert "@title" not in shown


@pytest.mark.parametrize("number", SEEN)
def test_nothing_is_missing_or_cut_off(number: str, browser: Browser, tmp_path: Path) -> None:
    """A deck as a file, in a browser of 1,280 by 720 pixels: all is there, and is on its slide."""
    slides.assets(tmp_path)
    deck = slides.write(LESSONS[number], tmp_path)
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    wrong: list[str] = []
    page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("requestfailed", lambda request: wrong.append(request.url))
    page.on("request", lambda r: wrong.append(r.url) if r.url.startswith("http") else None)
    page.goto(deck.as_uri())
    assert page.evaluate("window.deckReady")
    facts = page.evaluate(FACTS)
    followed = page.evaluate(FOLLOWED) if page.locator(".dg-chart").count() else None
    page.close()
    assert wrong == []
    assert len(facts) == len(slides.slides_of(nbformat.read(LESSONS[number], as_version=4)))
    assert [f for f in facts if f["beyond"] > 1 or f["empty"] or f["torn"] > 1] == []
    assert min(fact["drawn"] for fact in facts if fact["kind"] == "figure") > NARROWEST
    assert min(fact["scale"] for fact in facts) >= LEAST
    if followed:
        # All have been asked, but for the end of who says no to all.
        assert len({*followed["listed"]} - {state["asked"] for state in followed["states"]}) == 1
        assert [state for state in followed["states"] if state["beyond"] > 1] == []


def test_the_speaker_reads_formulas(browser: Browser, tmp_path: Path) -> None:
    """In the speaker view's own window: no TeX; an exponent is smaller than its base, and above."""
    notes = "## 1. Energy\n\nWhat is the energy $\\mathcal{E} = N^N$?"
    cells = [new_markdown_cell("# A lesson"), new_code_cell("setup()"), new_markdown_cell(notes)]
    nbformat.write(new_notebook(cells=cells), tmp_path / "lesson.ipynb")
    slides.assets(tmp_path)
    deck = slides.write(tmp_path / "lesson.ipynb", tmp_path)
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(f"{deck.as_uri()}#/1")
    assert page.evaluate("window.deckReady")
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    said = opened.value.locator(".speaker-controls-notes .value p")
    script = "\N{MATHEMATICAL BOLD SCRIPT CAPITAL E}"
    assert said.text_content() == f"What is the energy {script}=NN?"
    base, exponent = (said.locator(f"msup > mi:nth-child({n})").bounding_box() for n in (1, 2))
    context.close()
    assert 0 < exponent["height"] < base["height"]
    assert exponent["y"] + exponent["height"] / 2 < base["y"] + base["height"] / 2
