"""Sphinx extension of this book: what is plain Markdown in a chapter becomes the book's directives.

A chapter is read as a notebook, too, where a directive would be seen as it is typed. Chapters
therefore say these things in plain Markdown, which reads well there, and they are translated before
Sphinx parses the notebook:

- **Captions.** The paragraph ``<a id="fig-energy"></a>**Figure 1.2.** What is to be seen.`` after a
  code cell, a table or a picture is its caption. ``fig-``, ``tab-`` and ``lst-`` go with Figure,
  Table and Listing. A listing is what the cell before it shows with `dgbook.page.show`, or else the
  cell itself.
- **References.** ``[Figure 1.2](#fig-energy)`` becomes a reference by number, from any chapter.
- **Boxes.** A quotation that begins with ``> **Predict.**``, or another of `BOXES`, with or
  without a subject as in ``> **Definition: race.**``.
- **Folded cells.** The first line of a folded cell, ``# @title Draw the energy``, which Colab shows
  in place of the code, is said beside what opens it. A fold of what the cell shows, if any,
  is called output.
- **Exercises.** ``**Exercise 1.1 (Boundary).** Question.`` with its ``<details>`` below it becomes
  an exercise and a solution of sphinx-exercise.

The numbers that are typed serve readers of the notebook; the book counts for itself, and
``tests/book/test_notebooks.py`` holds that both agree.
"""

from __future__ import annotations

import copy
import json
import re
from typing import Any

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx

BOXES = {
    "Predict": "predict",
    "Definition": "definition",
    "Pitfall": "pitfall",
    "On your GPU": "gpu",
}
CAPTION = re.compile(
    r'^<a id="(?P<name>(?P<kind>fig|tab|lst)-[\w-]+)"></a>'
    r"\*\*(?P<label>Figure|Table|Listing) (?P<number>\d+[a-z]?\.\d+)\.\*\*\s+(?P<text>(?:.+\n?)+)",
    re.MULTILINE,
)
REFERENCE = re.compile(r"\[(?P<label>[^\]]+)\]\(#(?P<name>(?:fig|tab|lst)-[\w-]+)\)")
BOX = re.compile(
    rf"^> \*\*(?P<kind>{'|'.join(BOXES)})(?P<subject>: [^*]+)?\.\*\*(?P<text>.*(?:\n>.*)*)",
    re.MULTILINE,
)
EXERCISE = re.compile(
    r"^\*\*Exercise (?P<number>\d+[a-z]?\.\d+) \((?P<title>[^)]+)\)\.\*\*(?P<question>.+?)"
    r"\n+<details><summary>Solution</summary>(?P<solution>.+?)</details>",
    re.MULTILINE | re.DOTALL,
)
TITLE = re.compile(r"# @title (.+)")
FENCE = ":" * 7  # longer than a fence that stands inside
LISTING = re.compile(r"^```(?P<language>\w+)\n(?P<code>(?:(?!```).*\n)+)```\n\n\Z", re.MULTILINE)
TABLE = re.compile(r"(?P<body>(?:^\|.*\|[ ]*\n)+)\n\Z", re.MULTILINE)
PICTURE = re.compile(r"^!\[(?P<alt>[^\]]*)\]\((?P<file>[^)]+)\)\n\n\Z", re.MULTILINE)


def translate(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with directives in place of the Markdown that stands for them.

    Raises
    ------
    ValueError
        If a caption follows nothing that it could belong to.
    """
    cells: list[dict[str, Any]] = []
    for cell in copy.deepcopy(notebook["cells"]):
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            found = CAPTION.match(text)
            if found and cells and cells[-1]["cell_type"] == "code":
                cells[-1:] = captioned(cells[-1], found)
                text = text[found.end() :]
            cell["source"] = markdown(text)
        elif title := TITLE.match("".join(cell["source"])):
            prompt(cell, *2 * (f"Code: {title[1]}",))
        elif "hide-output" in cell["metadata"].get("tags", []) and not lists_code(cell):
            prompt(cell, "Show the output", "Hide the output")
        cells.append(cell)
    return notebook | {"cells": cells}


def prompt(cell: dict[str, Any], show: str, hide: str) -> None:
    """Say what stands beside the handle of a cell's fold, shut and open."""
    prompts = {"code_prompt_show": show, "code_prompt_hide": hide}
    cell["metadata"]["mystnb"] = cell["metadata"].get("mystnb", {}) | prompts


def lists_code(cell: dict[str, Any]) -> bool:
    """Whether a cell shows a listing of `dgbook.page.show`."""
    shown = [output["data"] for output in cell["outputs"] if "data" in output]
    return any("dgbook-source" in "".join(data.get("text/html", "")) for data in shown)


def captioned(cell: dict[str, Any], caption: re.Match[str]) -> list[dict[str, Any]]:
    """A code cell with its caption: around what it shows, or around its code."""
    name, text = caption["name"], references(caption["text"].strip())
    shown = [output["data"] for output in cell["outputs"] if "data" in output]
    metadata = cell["metadata"]
    if caption["kind"] == "lst" and not lists_code(cell):
        listing = code_block("python", "".join(cell["source"]), name, text)
        metadata["tags"] = [*metadata.get("tags", []), "remove-input"]
        before = {"cell_type": "markdown", "metadata": {}, "source": listing}
        return [before | ({"id": f"{cell['id']}-listing"} if "id" in cell else {}), cell]
    if len(shown) != 1:
        raise ValueError(f"{name!r} is the caption of a cell that shows {len(shown)} things, not 1")
    metadata["mystnb"] = metadata.get("mystnb", {}) | {"figure": {"name": name, "caption": text}}
    return [cell]


def markdown(text: str) -> str:
    """One Markdown cell, translated."""
    while found := CAPTION.search(text):
        text = captioned_text(text[: found.start()], found) + text[found.end() :]
    text = EXERCISE.sub(exercise, text)
    return references(BOX.sub(box, text))


def captioned_text(before: str, caption: re.Match[str]) -> str:
    """A Markdown table, picture or block of code at the end of a text, with its caption."""
    name, text = caption["name"], caption["text"].strip()
    if found := LISTING.search(before):
        block = code_block(found["language"], found["code"].strip("\n"), name, references(text))
        return f"{before[: found.start()]}{block}\n"
    if found := TABLE.search(before):
        inside = f"{{table}} {' '.join(text.split())}\n:name: {name}\n\n{found['body']}"
    elif found := PICTURE.search(before):
        inside = f"{{figure}} {found['file']}\n:name: {name}\n:alt: {found['alt']}\n\n{text}\n"
    else:
        raise ValueError(f"{name!r} is the caption of no cell, table, picture or block of code")
    return f"{before[: found.start()]}{FENCE}{inside}{FENCE}\n\n"


def code_block(language: str, code: str, name: str, caption: str) -> str:
    """A listing with its caption."""
    head = f":name: {name}\n:caption: |\n:  {' '.join(caption.split())}"
    return f"`````{{code-block}} {language}\n{head}\n\n{code}\n`````"


def references(text: str) -> str:
    """Links to what has a caption, as references by number."""
    return REFERENCE.sub(lambda found: f"{{numref}}`{found['name']}`", text)


def box(found: re.Match[str]) -> str:
    """An admonition with the color of its kind."""
    text = re.sub(r"^> ?", "", found["text"], flags=re.MULTILINE).strip()
    title = found["kind"] + (found["subject"] or "")
    head = f"{{admonition}} {title}\n:class: dg-box {BOXES[found['kind']]}"
    return f"{FENCE}{head}\n\n{text}\n{FENCE}"


def exercise(found: re.Match[str]) -> str:
    """An exercise and its folded solution."""
    name = f"exercise-{found['number'].replace('.', '-')}"
    return (
        f"{FENCE}{{exercise}} {found['title']}\n:label: {name}\n\n{found['question'].strip()}\n"
        f"{FENCE}\n\n{FENCE}{{solution}} {name}\n:class: dropdown\n\n"
        f"{found['solution'].strip()}\n{FENCE}"
    )


def read(app: Sphinx, name: str, source: list[str]) -> None:
    """Translate a chapter as it is read."""
    if app.env.doc2path(name).endswith(".ipynb"):
        source[0] = json.dumps(translate(json.loads(source[0])))


def unname(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Take away the one name that sphinx-exercise gives to the contents of all exercises."""
    for section in doctree.findall(nodes.section):
        if section["ids"] in (["exercise-content"], ["solution-content"]):
            section["ids"] = []


def name_output(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Call a fold of what a cell shows output: MyST-NB gives it the words of the code's fold."""
    for fold in doctree.findall(HideCodeCellNode):
        if "below-input" in fold["classes"]:
            for words in ("prompt_show", "prompt_hide"):
                fold[words] = re.sub("^Code:", "Output:", fold[words])


def setup(app: Sphinx) -> dict[str, bool]:
    """Translate before anything else sees the text."""
    app.connect("source-read", read)
    app.connect("doctree-resolved", unname)
    app.connect("doctree-resolved", name_output)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
