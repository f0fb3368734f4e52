"""Drawn figures on dark pages: no white panel, colors that can be seen, the right one of two."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from PIL import Image as Picture
from playwright.sync_api import Browser

from dgbook.page import plot

PAGE = (18 / 255,) * 3  # the theme's dark background


def drawn() -> tuple:
    fig, ax = plot.figure(2.0, 1.5)
    ax.plot([0, 1], [0, 1], color=plot.COLORS["purple"], label="a line")
    ax.fill_between([0, 1], [0, 1], color="#dcebf5")
    field = ax.scatter([0, 1], [0, 1], c=[0.0, 1.0])
    ax.annotate("boxed", (0.5, 0.5), bbox={"fc": "white", "ec": "black"})
    ax.legend()
    return fig, ax, field


def luminance(color) -> float:
    channels = np.asarray(color)[:3]
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_the_dark_picture_has_no_panel_and_the_figure_stays() -> None:
    """Corners are transparent; drawn again for a light page, the figure is what it was."""
    fig, ax, _ = drawn()
    plot.render(fig)  # its layout is found by the first drawing
    before = plot.render(fig)
    image = plot.show(fig, "A line and a field of points")
    dark = Picture.open(io.BytesIO(image.dark)).convert("RGBA")
    assert dark.getpixel((0, 0))[3] == 0
    seen = np.asarray(dark).reshape(-1, 4)
    assert seen[seen[:, 3] > 250, :3].max() > 225  # axes and words are nearly white
    assert ax.lines[0].get_color() == plot.COLORS["purple"]
    assert plot.render(fig) == before == image.png


def test_fields_keep_their_color_map() -> None:
    """A color bar beside them says the same in both modes."""
    fig, _, field = drawn()
    plot.render(fig)  # now its points have colors
    before = field.get_facecolor().copy()
    with plot._dark(fig):
        assert np.array_equal(field.get_facecolor(), before)


@pytest.mark.parametrize("name", plot.COLORS)
def test_colors_can_be_seen_on_a_dark_page(name: str) -> None:
    """3 to 1 for lines, as WCAG asks of graphics."""
    color = plot.on_dark(plot.COLORS[name], 0.5)
    assert (luminance(color) + 0.05) / (luminance(PAGE) + 0.05) >= 3
    assert color[3] == to_rgba(plot.COLORS[name])[3]


@pytest.mark.parametrize(
    ("html", "body", "shown"),
    [
        ("data-theme=light", "", "only-light"),
        ("data-theme=dark", "", "only-dark"),
        ("", "data-jp-theme-light=true", "only-light"),
        ("", "data-jp-theme-light=false", "only-dark"),
        ("theme=dark", "", "only-dark"),
        ("", "class=vscode-dark", "only-dark"),
    ],
)
def test_a_page_shows_the_picture_of_its_mode(
    browser: Browser, html: str, body: str, shown: str
) -> None:
    """The book, JupyterLab, Colab and VS Code; the reader's system is light here."""
    image = plot.Image(b"", b"", "Nothing is to be seen here", 9, 9)
    page = browser.new_page(color_scheme="light")
    page.set_content(f"<html {html}><body {body}>{image._repr_html_()}</body></html>")
    assert page.locator("img:visible").get_attribute("class") == shown
    page.close()
