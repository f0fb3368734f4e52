"""The chart in a browser: a reader goes from question to question, back, and to a lesson."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from dgbook.page.chart import Question, chart

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import pdf  # noqa: E402

QUESTIONS = (
    Question("One dimension?", "Count them.", "tiles", "They are fast.", ("11b_tiles",)),
    Question("Shocks?", "Look.", "a limiter", "None is here.", inside=False),
    Question("", "", "waves", "Most problems.", ("08b_basis", "08c_steps"), goes_on="Of light."),
)
THEN = (
    Question(
        "Too large?", "Count bytes.", "two GPUs", "They share it.", no="one GPU", why_no="It fits."
    ),
    Question(
        "Small?",
        "Say it.",
        "double precision",
        "It rounds less.",
        no="single",
        why_no="It is fast.",
    ),
)
PROBLEMS = {"rod": {1}, "room": set(), "tube": {1, 2}}
ALT = "A chart of two questions that leads to three ends"
SIZES = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]


def made() -> str:
    return chart(QUESTIONS, THEN, PROBLEMS, ALT).html


@pytest.fixture(params=SIZES, ids=lambda size: "-".join(map(str, size)))
def page(browser, request, tmp_path):
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.scheme, troubles = scheme, []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    path = tmp_path / "12_which.html"
    path.write_text(
        f'<html data-theme="{scheme}"><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><body>{made()}'
    )
    page.goto(path.as_uri())
    yield page
    page.close()
    assert troubles == []


def press(page, *names: str) -> str:
    """Press buttons; what the card says then."""
    for name in names:
        page.get_by_role("button", name=name, exact=True).click()
    return page.locator(".dgq-card").inner_text()


def test_the_first_yes_ends_and_a_link_leads_to_the_lesson(page):
    assert "One dimension?" in page.locator(".dgq-card").inner_text()
    assert not page.locator(".dgq-all").is_visible()
    page.get_by_text("Where a yes leads, and why").click()
    assert "Tiles. They are fast. Read on: lesson 11b." in page.locator(".dgq-card").inner_text()
    said = press(page, "Yes")
    assert "in this book" in said and "tiles" in said and "They are fast." in said
    assert "rod; tube." in said and "room" not in said
    link = page.get_by_role("link", name="lesson 11b")
    assert link.get_attribute("href") == "11b_tiles.html"
    assert page.get_by_role("button", name="Yes", exact=True).count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_no_goes_on_to_the_end_behind_all_questions_and_what_follows_it(page):
    said = press(page, "No", "No")
    assert "waves" in said and "Of light." in said and "Then, question 1 of 2" in said
    assert said.index("Most problems.") < said.index("Of light.") < said.index("Then, question")
    said = press(page, "Yes")
    assert "Two GPUs. They share it." in said and "It fits" not in said
    assert "question 2 of 2" in said
    said = press(page, "No")
    assert "Single. It is fast." in said and "It rounds" not in said and "question" not in said
    # Back to an answer: it is asked again, and those before it stand.
    said = press(page, "Shocks? No")
    assert said.startswith("Question 2 of 2")
    said = press(page, "Yes")
    assert "outside this book" in said and "Of light." not in said
    assert press(page, "Start again").startswith("Question 1 of 2")


def test_a_problem_gives_its_answers_and_the_keyboard_is_enough(page):
    page.locator("select").select_option("room")
    assert "waves" in page.locator(".dgq-card").inner_text()
    page.locator("select").select_option("my own problem")
    page.locator("button.no").focus()
    page.keyboard.press("Enter")
    assert page.locator(".dgq-ask").inner_text() == "Shocks?"
    page.keyboard.press("Enter")  # Yes has the focus
    assert "a limiter" in page.locator(".dgq-card").inner_text()
    ink = page.locator(".dgq-card").evaluate("e => getComputedStyle(e).color")
    assert (ink == "rgb(223, 228, 234)") == (page.scheme == "dark")


def test_without_scripts_and_on_paper_all_questions_stand_below_each_other():
    page = BeautifulSoup(made(), "html.parser")
    items = [item.get_text() for item in page.select(".dgq-all li")]
    assert items[0] == "One dimension? tiles. They are fast."
    assert items[2].endswith("waves. Most problems. Of light.")
    assert items[3] == "Too large? two GPUs. They share it. If not, one GPU. It fits."
    assert len(items) == 5
    assert page.select_one(".dgq-one").has_attr("hidden")
    said = pdf.frame_shown(page.select_one(".dg-controls")).get_text()
    assert said == "The book's pages ask one question at a time."


def test_what_makes_no_chart_is_refused():
    with pytest.raises(ValueError, match="questions has 1; allowed"):
        chart(QUESTIONS[:1], THEN, {}, ALT)
    with pytest.raises(ValueError, match=r"'far' answers \[3\]; allowed: 1 to 2"):
        chart(QUESTIONS, THEN, {"far": {3}}, ALT)
    with pytest.raises(ValueError, match="alt = 'Chart'"):
        chart(QUESTIONS, THEN, {}, "Chart")
