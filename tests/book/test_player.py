"""Players in a browser: the script draws what Python drew, by mouse and by keyboard, on a phone."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dgbook.page import plot
from dgbook.page.player import STYLES, Curve, flipbook, player

playwright = pytest.importorskip("playwright.sync_api")

X = np.linspace(0.0, 1.0, 24)
TIMES = np.linspace(0.0, 1.0, 5)
ALT = "Waves move to the right as the slider moves"


def waves(first: int):
    curves = []
    for i, style in enumerate(STYLES):
        y = np.sin(2 * np.pi * (X - TIMES[:, None])) + 0.1 * i
        curves.append(Curve(style, X, np.where(np.arange(24) % 7 == 6, np.nan, y), style))
    return player(
        curves,
        {"t": TIMES},
        xlabel="x",
        ylabel="u",
        alt=ALT,
        play="t",
        seconds=0.05,
        captions=[f"at time {t:.2f}" for t in TIMES],
        start={"t": TIMES[first]},
    )


def paths_in(html: str) -> list[str]:
    group = re.search(r'<g class="dg-curves".*?</g>', html, re.S)[0]
    return re.findall(r' d="([^"]*)"', group)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as p:
        options = {"args": ["--no-sandbox", "--disable-gpu"]}
        try:
            found = p.chromium.launch(executable_path="/usr/bin/chromium", **options)
        except playwright.Error:
            found = p.chromium.launch(**options)
        yield found
        found.close()


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    troubles = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: troubles.append(request.url))
    yield page
    page.close()
    assert not [trouble for trouble in troubles if not trouble.startswith("data:image/png")]


def drawn(page) -> list[str]:
    return page.eval_on_selector_all(".dg-curves path", "all => all.map(e => e.getAttribute('d'))")


def test_the_script_draws_every_frame_as_python_does(page):
    page.set_content(waves(0).html)
    slider = page.locator("input")
    for frame in range(len(TIMES)):
        slider.fill(str(frame))
        assert drawn(page) == paths_in(waves(frame).html)


def test_two_sliders_meet_in_the_right_frame(page):
    heights = np.arange(6.0).reshape(2, 3, 1) * np.ones(4)  # of another height in every frame
    options = {"xlabel": "x", "ylabel": "u", "alt": ALT}
    sliders = {"N": [1, 2], "t": [0, 1, 2]}

    def frame(N, t):
        curves = [Curve("u", np.arange(4.0), heights)]
        return player(curves, sliders, start={"N": N, "t": t}, **options).html

    page.set_content(frame(1, 0))
    for i, N in enumerate(sliders["N"]):
        for j, t in enumerate(sliders["t"]):
            page.locator("input").nth(0).fill(str(i))
            page.locator("input").nth(1).fill(str(j))
            assert drawn(page) == paths_in(frame(N, t))


def test_the_keyboard_moves_the_slider_and_the_words(page):
    page.set_content(waves(0).html)
    slider = page.locator("input")
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator("output").inner_text() == "0.5"
    assert slider.get_attribute("aria-valuetext") == "0.5"
    assert page.locator("figcaption").inner_text() == "at time 0.50"
    page.keyboard.press("Home")
    assert page.locator("output").inner_text() == "0"


def test_it_plays_and_pauses(page):
    page.set_content(waves(0).html)
    button = page.get_by_role("button")
    button.click()
    assert button.inner_text() == "Pause"
    page.wait_for_function("document.querySelector('output').textContent !== '0'")
    button.click()
    assert button.inner_text() == "Play"
    still = drawn(page)
    page.wait_for_timeout(200)
    assert drawn(page) == still


def test_two_of_the_same_move_apart(page):
    page.set_content(waves(0).html + waves(0).html)
    page.locator("input").nth(1).fill("3")
    assert page.locator("output").all_inner_texts() == ["0", "0.75"]


def test_it_starts_when_the_figure_comes_after_the_script(page):
    figure, script = re.split(r"(?=<script>)", waves(2).html)
    page.set_content(script + "<div id='later'></div>")
    page.evaluate("html => { document.getElementById('later').innerHTML = html }", figure)
    page.wait_for_selector(".dg-controls:not([hidden])")
    page.locator("input").fill("4")
    assert page.locator("output").inner_text() == "1"


def test_without_a_script_the_first_frame_stands_and_no_dead_control(browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_content(waves(1).html)
    assert page.locator(".dg-curves path").count() == len(STYLES)
    assert page.locator(".dg-controls").is_hidden()
    context.close()


def test_a_flipbook_turns_its_pages(page):
    def draw(order):
        fig, ax = plot.figure(2.0, 1.5)
        ax.plot(X, X**order)
        return fig

    page.set_content(flipbook(draw, {"N": [1, 2, 3]}, alt=ALT).html)
    image = page.locator("img")
    before = image.get_attribute("src")
    page.locator("input").fill("2")
    assert image.get_attribute("src") != before
    assert image.evaluate("e => e.decode().then(() => e.naturalWidth)") == 2 * plot.DPI


def test_nothing_is_wider_than_a_phone(page):
    page.set_content(f'<meta name="viewport" content="width=device-width">{waves(0).html}')
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    size = page.locator(".dg-player svg text").first.bounding_box()["height"]
    assert size >= 11
