"""Buttons that lead to a repository: none without an address, the right ones with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import nbformat

ADDRESS = "https://github.com/someone/a-fork"
CELLS = (nbformat.v4.new_markdown_cell("# One"), nbformat.v4.new_code_cell("1 + 1"))


def links(page: str) -> list[str]:
    """Addresses outside the book that a page's header leads to."""
    header = re.search(
        r'<div class="article-header-buttons">.*?</div>\s*</div>\s*</div>', page, re.S
    )
    return re.findall(r'href="(https?://[^"]+)"', header.group())


def test_no_address_no_buttons(small_book: Callable[..., Path]) -> None:
    """Without an address nothing leads to Colab or to a repository."""
    page = small_book(CELLS, "").read_text()
    assert "colab.research.google.com" not in page
    assert "github.com" not in page


def test_an_address_in_one_place_makes_them_all(small_book: Callable[..., Path]) -> None:
    """With an address: open in Colab, source, suggest an edit."""
    found = links(small_book(CELLS, ADDRESS + "/").read_text())
    owner = ADDRESS.removeprefix("https://github.com/")
    file = "main/chapters/one.ipynb"
    assert f"https://colab.research.google.com/github/{owner}/blob/{file}" in found
    assert ADDRESS in found
    assert f"{ADDRESS}/edit/{file}" in found
