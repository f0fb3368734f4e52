"""The index that the pages' search looks into: functions that chapters print are found by name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup
from sphinx.search.en import SearchEnglish

ROOT = Path(__file__).resolve().parents[2]
CONTENTS = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
FILES = [chapter["file"] for part in CONTENTS["parts"] for chapter in part["chapters"]]
CHAPTERS = [file for file in FILES if re.match(r"chapters/\d", file)]
LEAST = 3  # letters of a word that the search looks up


@pytest.fixture(scope="module")
def index(html: Path) -> dict:
    """The index as the browser reads it."""
    script = (html / "searchindex.js").read_text(encoding="utf-8")
    return json.loads(re.fullmatch(r"Search\.setIndex\((.*)\)\s*", script, re.S).group(1))


def pages_with(index: dict, word: str) -> list[int]:
    """Numbers of the pages that have a word, in their text or in their titles."""
    found = [index[kind].get(word, []) for kind in ("terms", "titleterms")]
    return [page for on in found for page in (on if isinstance(on, list) else [on])]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_printed_functions_are_found(html: Path, index: dict, chapter: str) -> None:
    """The names of kernels, their factories and the chapter's own functions lead to it."""
    page = BeautifulSoup((html / f"{chapter}.html").read_text(), "html.parser")
    code = "\n".join(e.get_text() for e in page.select("article pre"))
    names = {name for name in re.findall(r"^\s*def (\w+)", code, re.M) if len(name) >= LEAST}
    assert len(names) >= LEAST
    number = index["docnames"].index(chapter)
    stem = SearchEnglish({}).stem
    assert not [name for name in names if number not in pages_with(index, stem(name.lower()))]
