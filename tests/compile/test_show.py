"""Sources are shown whole, highlighted, readable in light and dark, with what the compiler says."""

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import dgbook.lab
from dgbook.check.compile import CompilerNotFoundError, Report
from dgbook.gpu import cuda, jit
from dgbook.gpu.source import load
from dgbook.page.show import DARK, LIGHT, describe, piece, show, source

COPY = Path(dgbook.lab.__file__).with_name("copy.cu")
X = np.zeros(4, np.float32)


def make_scale(factor):
    @jit(max_registers=64)
    def scale(x):
        """Say "<b>&" and a wide line: ---------------------------------------------------."""
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= factor  # in place

    return scale


SCALE = make_scale(np.float32(2))
SOURCE = """\
@jit(max_registers=64)
def scale(x):
    \"\"\"Say "<b>&" and a wide line: ---------------------------------------------------.\"\"\"
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= factor  # in place
"""


def test_a_long_kernel_is_shown_piece_by_piece() -> None:
    """From one line to another, both found by what stands in them, and moved to the left."""
    assert show(SCALE, first="i = ", last="if i").text == "i = cuda.grid(1)\nif i < x.size:\n"
    assert piece("a {\n  b}\n}\n}", last="\n}") == "a {\n  b}\n}\n"
    assert piece("a\n  b\n    c\n", first="b") == "b\n  c\n"
    with pytest.raises(ValueError, match="first = 'e'"):
        piece("a\nb\n", first="e")
    with pytest.raises(ValueError, match="last = 'a'"):
        piece("a\nb\n", first="b", last="a")


class Text(HTMLParser):
    """The text of a page's pre elements, and its tags."""

    def __init__(self, page):
        super().__init__()
        self.text, self.tags, self.open = "", [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "pre" in self.open:
            self.text += data


def test_source_of_a_kernel_is_whole():
    assert source(SCALE) == SOURCE


def test_source_of_a_file_a_factory_and_a_device_function():
    @jit(device=True)
    def square(x):
        return x * x

    kernel = load(COPY, "copy")
    assert source(kernel) == COPY.read_text()
    assert [show(file).text for file in kernel.files] == [source(kernel)]
    assert source(make_scale).startswith("def make_scale(factor):\n    @jit")
    assert source(make_scale).endswith("    return scale\n")
    assert source(square) == "@jit(device=True)\ndef square(x):\n    return x * x\n"


@pytest.mark.parametrize("kernel", [None, "scale", np.sin])
def test_what_has_no_source(kernel):
    with pytest.raises(TypeError, match="kernel = "):
        source(kernel)


def test_a_page_holds_the_source_exactly():
    page = Text(show(SCALE)._repr_html_())
    assert page.text == SOURCE
    assert page.open == []


def test_a_page_is_highlighted_by_classes_as_sphinx_does():
    shown = show(SCALE)._repr_html_()
    tags = Text(shown).tags
    assert ("div", {"class": "highlight"}) in tags
    classes = {attrs.get("class") for tag, attrs in tags if tag == "span"}
    assert {"k", "nf", "sd", "c1", "mi", "nd"} <= classes
    assert not any("style" in attrs for _, attrs in tags)
    cuda_tags = Text(show(load(COPY, "copy"))._repr_html_()).tags
    assert {"k", "kt", "c1"} <= {attrs.get("class") for tag, attrs in cuda_tags}


def test_a_wide_line_scrolls_and_can_be_reached_by_keyboard():
    shown = show(SCALE)._repr_html_()
    (pre,) = (attrs for tag, attrs in Text(shown).tags if tag == "pre")
    assert pre == {"tabindex": "0", "role": "region", "aria-label": "Source of scale"}
    assert re.search(r"\.highlight\{[^}]*overflow-x:auto", shown)


def luminance(color):
    """Relative luminance, WCAG 2.2."""
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return np.dot([0.2126, 0.7152, 0.0722], linear)


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_colors_have_contrast(colors):
    """AA of WCAG 2.2, 1.4.3: at least 4.5 to 1."""
    ground = luminance(colors["background"])
    for name, color in colors.items():
        low, high = sorted((ground, luminance(color)))
        assert name == "background" or (high + 0.05) / (low + 0.05) >= 4.5, name


def test_the_style_gives_way_to_the_books_theme_and_follows_its_mode():
    style = re.search(r"<style>(.*)</style>", show(SCALE)._repr_html_())[1]
    rules = re.findall(r"([^{}]+)\{([^{}]*)\}", style)
    for selector, declarations in rules:
        if re.search(r"(^|;)(color|background):", declarations):
            # all of it within :where(...), which has no weight
            assert re.sub(r":where\((?:[^()]|\([^()]*\))*\)", "", selector).strip() == "", selector
    dark = [selector for selector, text in rules if DARK["text"] in text]
    assert "html[data-theme=dark] .dgbook-source" in dark[0]
    assert "body[data-jp-theme-light=false] .dgbook-source" in dark[0]
    assert "html:not([data-theme],[theme]) body:not([data-jp-theme-light]" in dark[1]
    assert "@media (prefers-color-scheme:dark)" in style


def test_without_a_signature_there_is_no_line():
    assert repr(show(SCALE)) == SOURCE.rstrip()
    assert "<p>" not in show(SCALE)._repr_html_()
    assert show(make_scale, (X,)).cost == ""


def test_the_line_says_what_the_compiler_says():
    line = show(SCALE, (X,)).cost
    pattern = r"Compute capability 7\.5 / 8\.0 / 9\.0: [\d /]+ registers per thread, 0 bytes of .*"
    assert re.fullmatch(pattern, line)
    assert show(SCALE, (X,), cc=(8, 0)).cost.startswith("Compute capability 8.0: ")
    assert "registers per thread" in show(load(COPY, "copy")).cost


def test_equal_numbers_stand_once():
    def report(cc, registers):
        return Report("kernel", cc, registers, 0, 0, 512, 0, 0, "")

    assert describe([report((7, 5), 40), report((9, 0), 32)]) == (
        "Compute capability 7.5 / 9.0: 40 / 32 registers per thread, 512 bytes of static shared "
        "memory per block, 0 bytes spilled"
    )


def test_a_reader_without_a_compiler_still_reads(monkeypatch):
    def missing(*args):
        raise CompilerNotFoundError("ptxas <was> not found")

    monkeypatch.setitem(show.__globals__, "compile", missing)
    shown = show(SCALE, (X,))
    assert shown.cost == "Not compiled here: ptxas <was> not found"
    assert html.escape(shown.cost) in shown._repr_html_()


def test_a_kernel_that_does_not_compile_is_no_such_case(monkeypatch):
    def refused(*args):
        raise RuntimeError("no")

    monkeypatch.setitem(show.__globals__, "compile", refused)
    with pytest.raises(RuntimeError, match="no"):
        show(SCALE, (X,))


def test_what_a_notebook_is_given():
    shown = show(SCALE, (X,), cc=(9, 0))
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"] == f"{SOURCE}\n{shown.cost}"
    assert bundle["text/html"] == shown._repr_html_()
