"""The built pages as a reader meets them: in a browser, light and dark, on a phone and a desk.

Set DGBOOK_SCREENSHOTS=1 to find a picture of every page, mode and width in _build/screenshots.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[2]
WIDTHS = (390, 768, 1280)
MODES = ("light", "dark")
# Widths tell what sticks out, modes what is pale, which is the same on all widths but for what a
# phone alone shows. In an order that begins as a page opens and changes little, for each change
# costs half a second.
LAYOUTS = (("light", 1280), ("dark", 1280), ("dark", 390), ("light", 390), ("light", 768))
SCRIPT = (Path(__file__).parent / "page_facts.js").read_text()

TWO_FRAMES = "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r())))"

# Messages of the browser's console that are not ours, by a part of their text. Warnings and plain
# log lines are not looked at.
THEIRS: tuple[str, ...] = ()


def table_of_contents() -> list[str]:
    """All pages of the book in reading order, as paths without an ending."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text())
    chapters = [chapter["file"] for part in contents["parts"] for chapter in part["chapters"]]
    return [contents["root"], *chapters]


PAGES = table_of_contents()
VISITED = [*PAGES, "search"]


@dataclass
class Visit:
    """What a browser saw of one page.

    `facts` are those of `page_facts.js`, `layouts` what it measured by mode and width, `stops` what
    became of each control of a player that was used by keyboard.
    """

    errors: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    facts: dict = field(default_factory=dict)
    layouts: dict[tuple[str, int], dict] = field(default_factory=dict)
    stops: list[dict] = field(default_factory=list)


def open_page(browser: Browser, address: str, visit: Visit, width: int = 1280) -> Page:
    """A new page that notes into `visit` what goes wrong on it."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    note(page, address, lambda: visit)
    return page


def note(page: Page, address: str, visit: Callable[[], Visit]) -> None:
    """Have a page note what goes wrong on it into what `visit` returns at that time."""

    def failed(what: str) -> None:
        visit().failed.append(what)

    page.on("console", lambda m: visit().errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: visit().errors.append(str(error)))
    page.on("requestfailed", lambda request: failed(request.url))
    page.on("response", lambda r: failed(f"{r.status} {r.url}") if r.status >= 400 else None)
    local = (address, "data:", "blob:", "file:", "about:blank")
    page.on("request", lambda r: None if r.url.startswith(local) else visit().outside.append(r.url))


def wait_until_drawn(page: Page) -> None:
    """Wait for the page, its scripts and its equations."""
    page.wait_for_load_state("networkidle")
    page.evaluate("window.MathJax ? MathJax.startup.promise.then(() => true) : true")


def wait_until_still(page: Page) -> None:
    """Wait until colors and sidebars, which change gradually, have changed: at once.

    One that ends may begin another, of what inherits its color.
    """
    page.wait_for_function(
        "() => { const all = document.getAnimations(); all.forEach(a => a.finish()); "
        "return !all.length }"
    )


def use_players(page: Page) -> list[dict]:
    """Use every player of a page by keyboard, control by control; what became of each.

    From the picture above it, Tab leads to a player's first control, then to the next. Films, of
    which not every control changes what is said, have tests of their own.
    """
    stops = []
    for player in page.locator(".dg-player:not(:has(.dgf-film))").all():
        player.evaluate("e => { e.tabIndex = -1; e.focus(); e.scrollIntoView() }")
        for control in player.locator("button, input").all():
            page.keyboard.press("Tab")
            reached = control.evaluate("e => e == document.activeElement")
            seen = page.evaluate("focusFacts()")
            before = player.inner_text()
            page.keyboard.press("Space" if seen["tag"] == "BUTTON" else "ArrowRight")
            if player.inner_text() == before:  # the slider is at its end
                page.keyboard.press("ArrowLeft")
            changed = player.inner_text() != before
            if seen["tag"] == "BUTTON":
                page.keyboard.press("Space")
            stops.append(seen | {"reached": reached, "changed": changed})
    return stops


@pytest.fixture(scope="module")
def visit(browser: Browser, address: str):
    """A function that visits a page once and remembers what it saw.

    All are visited in one tab, for a new one costs a second. It loads all anew nonetheless, and
    knows nothing of the page before.
    """
    page = browser.new_page()
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    current = Visit()
    note(page, address, lambda: current)

    @cache
    def go(name: str) -> Visit:
        nonlocal current
        seen = current = Visit()
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(f"{address}{name}.html")
        wait_until_drawn(page)
        page.evaluate(SCRIPT)
        seen.facts = page.evaluate("pageFacts()")
        page.evaluate("openAll()")
        for mode, width in LAYOUTS:
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate("mode => document.documentElement.dataset.theme = mode", mode)
            page.evaluate(TWO_FRAMES)  # what is too wide is marked in the first
            wait_until_still(page)
            seen.layouts[mode, width] = page.evaluate("layoutFacts()")
            if os.environ.get("DGBOOK_SCREENSHOTS"):
                folder = ROOT / "_build" / "screenshots"
                file = f"{Path(name).name}_{mode}_{width}.png"
                page.screenshot(path=folder / file, full_page=True)
        seen.stops = use_players(page)
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
        page.goto("about:blank")  # whatever it still had to say it has said
        return seen

    yield go
    page.close()


@pytest.mark.parametrize("name", VISITED)
def test_nothing_goes_wrong_in_the_console(visit, name: str) -> None:
    """No script error, no error message."""
    errors = [e for e in visit(name).errors if not any(known in e for known in THEIRS)]
    assert not errors


@pytest.mark.parametrize("name", VISITED)
def test_all_requests_are_answered_from_the_book_itself(visit, name: str) -> None:
    """Nothing is missing, and nothing is asked of another host: the book works offline."""
    assert not visit(name).failed
    assert not visit(name).outside


@pytest.mark.parametrize("name", VISITED)
def test_page_fits_its_width(visit, name: str) -> None:
    """No page scrolls sideways, at any width."""
    wide = {
        key: layout["widest"] for key, layout in visit(name).layouts.items() if layout["overflow"]
    }
    assert not wide, "scrolls sideways; what sticks out: " + str(wide)


@pytest.mark.parametrize("name", VISITED)
def test_nothing_is_cut_off(visit, name: str) -> None:
    """On a desk all fits its place; elsewhere what scrolls has a frame, and words say so."""
    layouts = visit(name).layouts
    assert not layouts["light", 1280]["cut"]
    for width in WIDTHS[:-1]:
        for item in layouts["light", width]["cut"]:
            assert item["framed"], (width, item)
            assert item["said"] or item["kind"] == "equation", (width, item)


def test_phones_had_something_to_scroll(visit) -> None:
    """The test above had something to look at: a phone is narrower than many listings."""
    cut = [item["kind"] for name in PAGES for item in visit(name).layouts["light", 390]["cut"]]
    assert set(cut) == {"equation", "table", "listing"}


@pytest.mark.parametrize("name", VISITED)
def test_text_is_legible(visit, name: str) -> None:
    """Text and code have the contrast of WCAG AA: 4.5, large text 3."""
    pale = {key: layout["pale"] for key, layout in visit(name).layouts.items() if layout["pale"]}
    assert not pale
    assert min(layout["texts"] for layout in visit(name).layouts.values()) > 5


@pytest.mark.parametrize("name", VISITED)
def test_every_figure_has_alt_text(visit, name: str) -> None:
    """Every picture says what it shows, in four words at least."""
    facts = visit(name).facts
    assert not facts["withoutAlt"]
    assert not [alt for alt in facts["alts"] if len(alt.split()) < 4]


@pytest.mark.parametrize("name", PAGES)
def test_equations_are_typeset(visit, name: str) -> None:
    """MathJax has drawn every formula and marked none as wrong."""
    facts = visit(name).facts
    assert facts["formulas"] == facts["typeset"]
    assert not facts["mathErrors"]


@pytest.mark.parametrize("name", PAGES)
def test_headings_form_a_tree(visit, name: str) -> None:
    """One first-level heading, and no level skipped on the way down."""
    levels = visit(name).facts["headings"]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))


@pytest.mark.parametrize("name", VISITED)
def test_something_is_seen_at_once(visit, name: str) -> None:
    """The first text or picture is painted within three seconds, with nothing cached."""
    (milliseconds,) = visit(name).facts["firstPaint"]
    assert milliseconds < 3000


@pytest.mark.parametrize("name", PAGES)
def test_players_work_by_keyboard(visit, name: str) -> None:
    """Tab reaches every button and slider of a player, shows where it is, and keys move it."""
    dead = [s for s in visit(name).stops if not (s["reached"] and s["marked"] and s["changed"])]
    assert not dead


def test_players_were_there_to_use(visit) -> None:
    """The test above had something to press: most chapters have a player."""
    used = [name for name in PAGES if visit(name).stops]
    assert len(used) >= 8


def test_formulas_were_there_to_typeset(visit) -> None:
    """The notation page is full of formulas: the test above had something to look at."""
    assert visit("chapters/notation").facts["formulas"] > 40


def test_front_page_shows_the_picture_of_its_mode(visit) -> None:
    """The front page has a figure in one screen, another in dark mode."""
    layouts = visit(PAGES[0]).layouts
    light, dark = (layouts[mode, 1280]["pictures"] for mode in MODES)
    assert len(light) == len(dark) == 1
    assert light[0]["source"] != dark[0]["source"]
    assert light[0]["bottom"] <= 900


def test_front_page_leads_to_every_page(visit) -> None:
    """Every page of the table of contents can be reached from the first."""
    links = visit(PAGES[0]).facts["links"]
    for name in PAGES[1:]:
        assert any(link.endswith(f"{Path(name).name}.html") for link in links), name


def test_keyboard_reaches_the_text_and_shows_where_it_is(browser: Browser, address: str) -> None:
    """The first Tab offers a way past the navigation; every stop after it is visibly marked."""
    page = open_page(browser, address, Visit())
    page.goto(f"{address}{PAGES[0]}.html")
    wait_until_drawn(page)
    page.evaluate(SCRIPT)
    page.keyboard.press("Tab")
    wait_until_still(page)
    first = page.evaluate("focusFacts()")
    assert first["text"] == "Skip to main content"
    assert first["onScreen"]
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main-content"
    for _ in range(12):
        page.keyboard.press("Tab")
        wait_until_still(page)
        stop = page.evaluate("focusFacts()")
        assert stop["marked"], f"no visible focus on {stop}"
    page.close()


@pytest.mark.parametrize(
    ("word", "where"),
    [
        ("vandermonde", "Notation"),
        ("lift_inward", "8d. More on sparse kernels and time steps"),
        ("xyzzyplugh", None),
    ],
)
def test_search(browser: Browser, address: str, word: str, where: str | None) -> None:
    """Searching finds words and kernels that are in the book, and not what is not."""
    seen = Visit()
    page = open_page(browser, address, seen)
    page.goto(f"{address}search.html?q={word}")
    page.wait_for_selector("#search-results p.search-summary:not(:empty)")
    page.wait_for_function("document.querySelector('#search-results h2').innerText != 'Searching'")
    results = page.locator("#search-results ul.search li a").all_inner_texts()
    assert where in results if where else not results
    assert not seen.errors and not seen.outside
    page.close()


def test_mode_can_be_switched(browser: Browser, address: str) -> None:
    """The button in the header goes from mode to mode, and the page's colors follow."""
    page = open_page(browser, address, Visit())
    page.goto(f"{address}{PAGES[0]}.html")
    wait_until_drawn(page)
    seen = set()
    for _ in range(3):
        page.locator("button.theme-switch-button:visible").first.click()
        wait_until_still(page)
        mode = page.evaluate("document.documentElement.dataset.theme")
        color = page.evaluate("getComputedStyle(document.body).backgroundColor")
        seen.add((mode, color))
    assert {mode for mode, _ in seen} == set(MODES)
    assert len({color for _, color in seen}) == 2
    page.close()


def test_phone_opens_the_navigation(browser: Browser, address: str) -> None:
    """On a phone the table of contents is behind a button."""
    page = open_page(browser, address, Visit(), width=390)
    page.goto(f"{address}{PAGES[0]}.html")
    wait_until_drawn(page)
    entry = page.locator(".bd-sidebar-primary a", has_text="Notation").first
    assert not entry.is_visible()
    page.locator("button.primary-toggle:visible").first.click()
    entry.wait_for(state="visible")
    entry.click()
    page.wait_for_url("**/notation.html")
    page.close()


def test_book_opens_from_a_file(browser: Browser, html: Path) -> None:
    """The address that `make book` prints works: no server, and the formulas are drawn."""
    seen = Visit()
    page = open_page(browser, html.as_uri(), seen)
    page.goto((html / "index.html").as_uri())
    page.wait_for_url("**/intro.html")
    wait_until_drawn(page)  # leaving it earlier would break off its requests
    page.goto((html / "chapters" / "notation.html").as_uri())
    wait_until_drawn(page)
    page.evaluate(SCRIPT)
    facts = page.evaluate("pageFacts()")
    assert facts["formulas"] == facts["typeset"] > 40
    loaded = "[...document.fonts].filter(f => f.status == 'loaded').map(f => f.family).join()"
    assert "MJX" in page.evaluate(loaded)
    assert not seen.errors and not seen.failed and not seen.outside
    page.close()
