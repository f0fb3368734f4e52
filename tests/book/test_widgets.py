"""Saved ipywidgets in a built page: drawn without a kernel, from the book's own files alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from playwright.sync_api import Browser

SOURCE = """
from ipywidgets import HBox, IntSlider, Play, jslink
play, slider = Play(value=3, max=10), IntSlider(value=3, max=10, description=r"order $N$")
jslink((play, "value"), (slider, "value"))
HBox([play, slider])
"""


def test_saved_widgets_are_drawn_offline(small_book: Callable[..., Path], browser: Browser) -> None:
    """Slider and formula show, linked widgets move, and no other host is asked."""
    heading = nbformat.v4.new_markdown_cell("# One\n\nA formula, $N$.")
    notebook = nbformat.v4.new_notebook(cells=[heading, nbformat.v4.new_code_cell(SOURCE)])
    NotebookClient(notebook, kernel_name="python3").execute()
    address = small_book(notebook.cells, widgets=notebook.metadata.widgets).as_uri()

    page = browser.new_page()
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("requestfailed", lambda request: troubles.append(request.url))
    page.on(
        "request",
        lambda r: None if r.url.startswith(("file:", "data:")) else troubles.append(r.url),
    )
    page.goto(address)
    page.wait_for_selector(".jupyter-widgets .widget-label mjx-container")
    assert page.locator(".widget-readout").inner_text() == "3"
    page.locator(".widget-play button").first.click()
    page.wait_for_function("Number(document.querySelector('.widget-readout').innerText) > 3")
    assert not troubles
    page.close()
