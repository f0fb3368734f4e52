"""Kernel films in a browser: keyboard and clicks, wide and narrow, light and dark, and on paper."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from bs4 import BeautifulSoup

from dgbook.gpu import cuda, jit
from dgbook.page import film

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import pdf  # noqa: E402

f4 = np.float32
SIZES = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]


@jit
def neighbors(u, new):
    s = cuda.shared.array(4, f4)
    i = cuda.threadIdx.x
    s[i] = u[i]
    cuda.syncthreads()
    new[i] = s[(i + 1) % 4]


@jit
def race(u, new):
    s = cuda.shared.array(4, f4)
    i = cuda.threadIdx.x
    s[i] = u[i]
    new[i] = s[(i + 1) % 4]


@jit
def pairs(u, new):
    i = cuda.threadIdx.x
    new[i // 2] += u[i]


def made(kernel) -> str:
    return (
        film(
            kernel, 1, 4, np.ones(4, f4), np.zeros(4, f4), alt="Four threads read neighbors' words"
        )
        .player()
        .html
    )


@pytest.fixture(params=SIZES, ids=lambda size: "-".join(map(str, size)))
def page(browser, request):
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.width, page.scheme, troubles = width, scheme, []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: troubles.append(request.url))
    yield page
    page.close()
    assert troubles == []


def show(page, kernel) -> None:
    paper = {"light": "#fff", "dark": "#14181e"}[page.scheme]
    page.set_content(
        f'<html data-theme="{page.scheme}"><meta name="viewport" content="width=device-width">'
        f'<body style="background:{paper};margin:16px">{made(kernel)}'
    )


def test_a_film_by_keyboard(page):
    show(page, neighbors)
    says, slider = page.locator(".dgf-says"), page.locator("input[type=range]")
    # Lanes in step: i, read u, write s, barrier, read s, write new.
    assert slider.get_attribute("max") == "5" and says.inner_text().startswith("Line 4.")
    page.locator(".dgf-film").focus()
    told = []
    for _ in range(5):
        page.keyboard.press("ArrowRight")
        told.append(says.inner_text())
    assert told == [
        "Line 5. The warp reads u: 1 sector, 16 of 32 bytes.",
        "Line 5. The warp writes s: 4 banks, no conflict.",
        "Line 6. All threads of the block meet at the barrier.",
        "Line 7. The warp reads s: 4 banks, no conflict.",
        "Line 7. The warp writes new: 1 sector, 16 of 32 bytes.",
    ]
    page.keyboard.press("ArrowRight")
    assert slider.input_value() == "5"
    page.keyboard.press("Home")
    assert page.locator("output").inner_text() == "1"
    page.keyboard.press("End")
    assert says.inner_text() == told[-1]
    # One thread at a time: thread 0 comes as far as the barrier, then thread 1 begins.
    page.get_by_role("button", name="one thread at a time").click()
    assert slider.get_attribute("max") == str(4 * 6 - 1)
    page.locator(".dgf-film").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert says.inner_text() == "Line 6. Thread 0 waits: 1 of 4 have come."
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    assert says.inner_text() == "Line 6. Thread 3 is the last to come, and the barrier opens."
    assert "i3" in page.locator(".dgf-registers").inner_text().replace("\n", "")


def test_a_race_ends_with_an_arrow_and_an_objection(page):
    show(page, race)
    page.locator(".dgf-film").focus()
    page.keyboard.press("End")
    assert page.locator(".dgf-says").inner_text() == (
        "The simulator objects. Thread 0 reads s[1] in line 6, but thread 1, which writes it in "
        "line 5, may not have come there yet. Nothing makes one wait for the other."
    )
    assert page.locator(".dgf-row i.bad").count() == 2
    arrows = page.locator(".dgf-arrow path.bad").count()
    assert arrows == (1 if page.width > 600 else 0)  # a phone shows no lanes to point at
    page.get_by_role("button", name="lanes in step").click()
    page.locator(".dgf-film").press("End")
    assert page.locator(".dgf-says").inner_text().startswith("A lucky order.")


def test_lanes_in_step_lose_an_update_where_two_add_to_one_word(page):
    show(page, pairs)
    page.get_by_role("button", name="lanes in step").click()
    page.locator(".dgf-film").press("End")
    assert page.locator(".dgf-says").inner_text() == (
        "An update is lost. Thread 0 and thread 1 read the same old value of new[0]. The one that "
        "writes last overwrites what the other has added."
    )


def test_nothing_is_wider_than_the_page_and_all_can_be_read(page):
    show(page, neighbors)
    assert page.evaluate("document.documentElement.scrollWidth") <= page.width
    if page.width == 390:  # a phone shows the threads of this moment alone
        assert not page.locator(".dgf-row .dgf-lanes").first.is_visible()
        assert page.locator(".dgf-now i").count() == 4
    ink = page.locator(".dgf-says").evaluate("e => getComputedStyle(e).color")
    assert (ink == "rgb(223, 228, 234)") == (page.scheme == "dark")


@jit
def thirds(u, new):
    flux = cuda.shared.array(24, f4)
    i = cuda.threadIdx.x
    for p in range(i, 24, 10):
        a = u[p]
        b = 2 * a
        c = b + 1
        flux[p] = c
    cuda.syncthreads()
    new[i] = flux[i]


def test_memory_stands_beside_the_lanes_and_knows_what_left_out_rounds_wrote(page):
    threads = film(thirds, 1, 10, np.ones(24, f4), np.zeros(10, f4), alt="Ten threads, 24 words")
    page.set_content(
        f'<html data-theme="{page.scheme}"><meta name="viewport" content="width=device-width">'
        f'<body style="margin:16px">{threads.player().html}'
    )
    rows, side = (page.locator(f".dgf-{name}").bounding_box() for name in ("rows", "side"))
    if page.width == 1280:
        assert side["x"] > rows["x"] + rows["width"] and abs(side["y"] - rows["y"]) < 2
    else:
        assert side["y"] > rows["y"] + rows["height"]
    assert page.locator(".dgf-row.more", has_text="the same for p = 10").count() == 1
    page.locator(".dgf-film").focus()
    page.keyboard.press("End")
    flux = page.locator(".dgf-side > div", has=page.get_by_text("flux", exact=True))
    assert flux.locator("i.empty").count() == 0 and flux.locator("i.old").count() == 24
    page.keyboard.press("Home")
    assert flux.locator("i.empty").count() == 24


def test_the_current_line_stays_in_view_and_a_film_out_of_view_stays_where_it_is(browser):
    page = browser.new_page(viewport={"width": 1280, "height": 300})
    threads = film(thirds, 1, 10, np.ones(24, f4), np.zeros(10, f4), alt="Ten threads, 24 words")
    page.set_content(
        f'<body style="margin:16px">{threads.player().html}<div style="height:3000px">'
    )
    assert page.evaluate("scrollY") == 0
    page.locator(".dgf-film").focus()
    for _ in range(int(page.locator("input[type=range]").get_attribute("max"))):
        page.keyboard.press("ArrowRight")
        row = page.locator(".dgf-row.on").last.bounding_box()
        bar = page.locator(".dg-controls").bounding_box()
        assert 0 <= row["y"] and row["y"] + row["height"] <= bar["y"]
    assert page.evaluate("scrollY") > 0
    page.evaluate("scrollTo(0, 2500)")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("scrollY") == 2500
    page.close()


def test_it_plays_once_and_stops_at_the_end(browser):
    page = browser.new_page()
    page.set_content(made(neighbors))
    page.locator("input[type=range]").fill("3")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelector('input[type=range]').value === '5'")
    assert page.get_by_role("button", name="Play").is_visible()
    page.close()


def test_without_a_script_the_still_picture_stands(browser):
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.set_content('<meta name="viewport" content="width=device-width">' + made(race))
    assert page.locator("svg.narrow").is_visible() and not page.locator("svg.wide").is_visible()
    assert page.locator(".dg-controls").is_hidden() and page.locator(".dgf-film").is_hidden()
    assert page.locator("svg.narrow").bounding_box()["width"] <= 390
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.locator("svg.wide").is_visible() and not page.locator("svg.narrow").is_visible()
    context.close()


def test_on_paper_the_still_picture_stands():
    text = f'<article class="bd-article"><h1>One</h1>{made(race)}</article>'
    found = pdf.article(BeautifulSoup(text, "html.parser"), pdf.Chapter("one"), {})
    assert found.select_one("p.dg-frame").get_text() == "The book's pages step through this film."
    assert found.select_one("svg.wide") and not found.select("script, button, input")


@cuda.jit
def wide_lines(x, y):
    i = cuda.threadIdx.x
    if i < x.shape[0] and i < y.shape[0]:
        y[i] = x[i] + x[i] * x[i] + x[i]


def test_lines_of_a_warp_are_whole_and_memory_lies_below(browser):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    threads = film(wide_lines, 1, 32, np.ones(32, f4), np.zeros(32, f4), alt="A warp, long lines")
    page.set_content(f'<body style="margin:16px">{threads.player().html}')
    rows, side = (page.locator(f".dgf-{name}").bounding_box() for name in ("rows", "side"))
    assert side["y"] >= rows["y"] + rows["height"]
    line = page.locator(".dgf-row code", has_text="i < y.shape[0]").bounding_box()
    assert line["height"] < 25  # one line of text, not two
