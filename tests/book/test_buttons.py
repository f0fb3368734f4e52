"""Buttons that lead to a repository: none without an address, the right ones with it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "https://github.com/someone/a-fork"


def build(folder: Path, address: str) -> str:
    """Build a book of one chapter with this book's settings; the chapter's page."""
    for name in ("_ext", "_static"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "vendor").mkdir()
    (folder / "chapters").mkdir()
    shutil.copy(ROOT / "_config.yml", folder)
    shutil.copy(ROOT / "chapters" / "references.bib", folder / "chapters")
    (folder / "_toc.yml").write_text("format: jb-book\nroot: chapters/one\n")
    cells = [nbformat.v4.new_markdown_cell("# One"), nbformat.v4.new_code_cell("1 + 1")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "chapters" / "one.ipynb")
    environment = os.environ | {"DGBOOK_REPOSITORY": address}
    command = [str(Path(sys.executable).parent / "jupyter-book"), "build", ".", "-q"]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return (folder / "_build" / "html" / "chapters" / "one.html").read_text()


def links(page: str) -> list[str]:
    """Addresses outside the book that a page's header leads to."""
    header = re.search(
        r'<div class="article-header-buttons">.*?</div>\s*</div>\s*</div>', page, re.S
    )
    return re.findall(r'href="(https?://[^"]+)"', header.group())


def test_no_address_no_buttons(tmp_path: Path) -> None:
    """Without an address nothing leads to Colab or to a repository."""
    page = build(tmp_path, "")
    assert "colab.research.google.com" not in page
    assert "github.com" not in page


def test_an_address_in_one_place_makes_them_all(tmp_path: Path) -> None:
    """With an address: open in Colab, source, suggest an edit."""
    found = links(build(tmp_path, ADDRESS + "/"))
    owner = ADDRESS.removeprefix("https://github.com/")
    file = "main/chapters/one.ipynb"
    assert f"https://colab.research.google.com/github/{owner}/blob/{file}" in found
    assert ADDRESS in found
    assert f"{ADDRESS}/edit/{file}" in found
