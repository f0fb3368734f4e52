"""Links of the built book: whatever leads into the book leads somewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Pages whose links are made by the search script or point at themselves.
OURS = ("http", "mailto", "data", "javascript")


class Page(HTMLParser):
    """What a page links to, loads, and can be linked to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = {"", "top"}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect links, loads and anchors."""
        attributes = dict(attrs)
        for key in ("id", "name"):
            if attributes.get(key):
                self.anchors.add(attributes[key])
        for key in ("href", "src"):
            if attributes.get(key) is not None:
                self.targets.add(attributes[key])


def test_links_lead_somewhere(html: Path) -> None:
    """Files exist, and so do the places within them."""
    pages = {path.resolve(): Page(path.read_text()) for path in html.rglob("*.html")}
    pages = {path: page for path, page in pages.items() if "_static" not in path.parts}
    dead, inner = [], 0
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme in OURS or parts.netloc:
                continue
            inner += 1
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            found = file.is_file() and (
                file not in pages or unquote(parts.fragment) in pages[file].anchors
            )
            if not found:
                dead.append(f"{path.relative_to(html.resolve())}: {target}")
    assert not dead
    assert inner > 100


def test_links_out_of_the_book_are_secure(html: Path) -> None:
    """No page leads to an unencrypted address."""
    for path in (html / "chapters").glob("*.html"):
        plain = [t for t in Page(path.read_text()).targets if t.startswith("http://")]
        assert not plain, path.name


def test_nothing_is_loaded_from_elsewhere(html: Path) -> None:
    """Scripts, styles, fonts and pictures are the book's own, those used late, too."""
    loads = re.compile(
        r"""(?:\bsrc=|<link[^>]*\bhref=|url\(|@import )["']?((?:https?:)?//[^"')]+)"""
    )
    files = [*html.rglob("*.html"), *(html / "_static").rglob("*.css")]
    assert len(files) > 30
    elsewhere = {
        f"{file.name}: {found}" for file in files for found in loads.findall(file.read_text())
    }
    assert not elsewhere
