"""Figures on light and dark pages, in a browser: no slab, all is seen, fields keep colors."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import nbformat
import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page

from dgbook.page import plot

ALT = "A line that rises and falls"
PAGES = {"light": (255, 255, 255), "dark": plot.DARK_PAGE}


def shown(html: str) -> nbformat.NotebookNode:
    """A cell that shows a piece of HTML."""
    output = nbformat.v4.new_output("display_data", data={"text/html": html})
    return nbformat.v4.new_code_cell("figure", outputs=[output], execution_count=1)


def drawing() -> plot.Image:
    """A line in the first color, a bar in each other one, and axes with numbers."""
    fig, ax = plot.figure(3, 2)
    ax.plot([0, 6], [0.2, 1])
    ax.bar(range(7), [1] * 7, color=plot.PALETTE)
    return plot.show(fig, ALT)


def field() -> plot.Image:
    """A square of the book's color map, from dark to bright."""
    fig, ax = plot.figure(3, 2, grid=False)
    ax.imshow(np.linspace(0, 1, 100).reshape(10, 10))
    return plot.show(fig, ALT)


def pixels(page: Page, selector: str) -> np.ndarray:
    """What a browser shows of an element, shape (rows, columns, 3)."""
    (element,) = (e for e in page.locator(f".bd-article :is({selector})").all() if e.is_visible())
    return np.asarray(Image.open(io.BytesIO(element.screenshot())).convert("RGB"), int)


@pytest.fixture(scope="module")
def opened(small_book: Callable, browser: Browser) -> Page:
    """A page with a drawing, a field, and a picture from before there were these."""
    old = drawing()._repr_html_().replace(' class="dg-drawing"', "")
    title = nbformat.v4.new_markdown_cell("# Figures")
    cells = [
        title,
        *(shown(html) for html in (drawing()._repr_html_(), field()._repr_html_(), old)),
    ]
    path: Path = small_book(cells)
    page = browser.new_page(viewport={"width": 1280, "height": 1600})
    page.goto(path.as_uri())
    yield page
    page.close()


def test_figures_suit_both_pages(opened: Page) -> None:
    """Corners are the page's color, colors and numbers are seen, fields look alike."""
    fields = {}
    for mode, background in PAGES.items():
        opened.evaluate("mode => document.documentElement.dataset.theme = mode", mode)
        opened.wait_for_function("document.getAnimations().every(a => a.playState != 'running')")
        assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == (
            f"rgb({', '.join(map(str, background))})"
        )
        seen = pixels(opened, "img.dg-drawing")
        assert (seen[0, 0] == background).all() and (seen[-1, -1] == background).all()
        apart = np.abs(seen - background).max(axis=2)
        assert (apart > 60).mean() > 0.3  # the bars
        fields[mode] = pixels(opened, "img.only-light, img.only-dark")
        rows, columns, _ = fields[mode].shape
        middles = (2, columns // 2), (rows - 3, columns // 2), (rows // 2, 2)
        assert all((fields[mode][middle] == background).all() for middle in middles)
        fields[mode] = fields[mode][rows // 2, columns // 2]
    assert np.abs(fields["light"] - fields["dark"]).max() <= 12


def test_an_old_picture_has_a_panel(opened: Page) -> None:
    """A picture without a class stands on a panel that is light and not glaring."""
    opened.evaluate("document.documentElement.dataset.theme = 'dark'")
    seen = pixels(opened, "img:not([class])")
    middle = seen[3, seen.shape[1] // 2]
    assert 180 < middle.min() and middle.max() < 235
