"""Pages that students get, from notebooks that may hold anything.

What a cell has shown is reduced to text and pictures; text in Markdown is cleaned by the filter in
``exercises/nbgrader_config.py``, which nbgrader's own pages for instructors use as well. A page
runs no script, loads nothing and is cut where it gets too long.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from pathlib import Path

from bs4 import BeautifulSoup
from nbformat import NotebookNode
from nbformat.v4 import new_output

MOST_CHARACTERS = 6_000_000  # of a page
ERROR_CHARACTERS = 20_000  # of a traceback
PICTURES = ("image/png", "image/jpeg")
# Even what slips through the cleaning does nothing: a browser obeys this.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'"


def shown(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Outputs of a cell reduced to text, pictures and errors, without metadata."""
    found = []
    for output in outputs:
        kind = output.get("output_type")
        if kind == "stream":
            name = "stderr" if output.get("name") == "stderr" else "stdout"
            found.append(new_output("stream", name=name, text=_text(output.get("text"))))
        elif kind == "error":
            traceback = output.get("traceback") or []
            lines = "\n".join(map(_text, traceback if isinstance(traceback, list) else []))
            if len(lines) > ERROR_CHARACTERS:
                half = ERROR_CHARACTERS // 2
                lines = f"{lines[:half]}\n... cut ...\n{lines[-half:]}"
            name, value = (_text(output.get(key))[:1000] for key in ("ename", "evalue"))
            found.append(new_output("error", ename=name, evalue=value, traceback=lines.split("\n")))
        elif kind in ("display_data", "execute_result"):
            if data := _data(output.get("data")):
                found.append(new_output("display_data", data=data))
    return found


def _text(value: object) -> str:
    text = "".join(map(str, value)) if isinstance(value, list) else str(value or "")
    return text.encode("utf-8", "replace").decode()


def _data(data: object) -> dict[str, str]:
    """The text and the pictures of an output that are what they say they are."""
    if not isinstance(data, dict):
        return {}
    kept = {}
    for kind in PICTURES:
        with_breaks = data.get(kind)
        if isinstance(with_breaks, str):
            try:
                content = base64.b64decode("".join(with_breaks.split()), validate=True)
            except (binascii.Error, ValueError):
                continue
            kept[kind] = base64.b64encode(content).decode()
    if "text/plain" in data:
        kept["text/plain"] = _text(data["text/plain"])
    return kept


def close_page(page: str) -> str:
    """A page without scripts and without anything that a browser would load, cut at a length."""
    if len(page) > MOST_CHARACTERS:
        page = page[: page.rindex("<div", 0, MOST_CHARACTERS)]
        page += "<p><b>The page is too long and was cut here.</b></p>"
    soup = BeautifulSoup(page, "html.parser")
    for tag in soup.find_all(["script", "link", "base", "iframe", "object", "embed", "form"]):
        tag.decompose()
    for tag in soup.find_all(src=True):
        if not tag["src"].startswith("data:image/"):
            tag.decompose()
    policy = soup.new_tag("meta", attrs={"http-equiv": "Content-Security-Policy"})
    policy["content"] = POLICY
    soup.head.insert(0, policy)
    return str(soup)


def close_pages(folder: Path) -> None:
    """Do so with all pages in a folder."""
    for path in folder.rglob("*.html"):
        path.write_text(close_page(path.read_text(encoding="utf-8")), encoding="utf-8")
