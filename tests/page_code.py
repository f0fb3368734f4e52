"""Code that stands on a page, so that tests run what a reader copies."""

from __future__ import annotations

import json
import linecache
import re
import runpy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

CHAPTERS = Path(__file__).parents[1] / "chapters"
PAGE = CHAPTERS / "how_to_use.md"


def blocks(heading: str, languages: str = "python|cpp") -> list[tuple[str, str]]:
    """Language and text of the code blocks below a heading of "How to use this book", in order."""
    text = PAGE.read_text(encoding="utf-8")
    _, _, rest = text.partition(f"\n### {heading}\n")
    section = re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(rf"^```({languages})\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def execute(text: str, **names: object) -> dict[str, object]:
    """Run a block of Python; what it has defined."""
    names["__name__"] = "__main__"
    exec(compile(text, str(PAGE), "exec", dont_inherit=True), names)
    return names


PROGRAM = "CUDA C++ in your own program"


def write_program(**changes: str) -> dict[str, object]:
    """What the page's export defines; `home/fused.cu`, its arrays and main.cu are written here.

    `changes` are right-hand sides of assignments to order, dtype, capability, steps and n, for a
    mesh of n cubes to each side.
    """
    (_, export), (_, main), _ = blocks(PROGRAM)
    values = {"order": "4", "dtype": '"float32"', "capability": "(9, 0)", "steps": "10", "n": "4"}
    line = "order, dtype, capability, steps = {order}, {dtype}, {capability}, {steps}\n"
    for text in (line, "box(({n}, {n}, {n}))"):
        assert export.count(text.format(**values)) == 1
        export = export.replace(text.format(**values), text.format(**values | changes))
    names = execute(export)
    names["folder"].joinpath("main.cu").write_text(main, encoding="utf-8")
    return names


def code_cells(lesson: Path) -> list[str]:
    """The text of every code cell."""
    cells = json.loads(lesson.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def execute_cell(text: str, names: dict[str, Any]) -> None:
    """Execute a cell so that the text of its functions can be found again."""
    name = f"<cell {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), names)


def blank_verdict(
    path: Path, lesson: str, imports: str, name: str, answers: tuple[str, ...]
) -> Any:
    """What a lesson says of its blank called `name`, with an answer for each ``...``.

    The program, written to `path`, has these imports, the cells that make the lesson's tasks, and
    the blank's.
    """
    cells = code_cells(CHAPTERS / f"{lesson}.ipynb")
    tasks = "\n\n\n".join(s for s in cells if s.startswith("# @title Make the task"))
    (blank,) = (s for s in cells if f"def {name}(" in s and "..." in s)
    for answer in answers:
        blank = blank.replace("...", answer, 1)
    blank = re.sub(r"^check", "said = check", blank, flags=re.M)
    path.write_text(f"{imports}{tasks}\n\n\n{blank}\n", encoding="utf-8")
    return runpy.run_path(str(path))["said"]


def tasks_and_mistakes(sources: Iterable[str]) -> dict[str, dict]:
    """The `tasks` and the `known` mistakes that cells define, those of all cells together."""
    names, found = {"np": np}, {"tasks": {}, "known": {}}
    for source in sources:
        if re.search(r"^(tasks|known) = {", source, flags=re.M):
            exec(source, names)
            for name, entries in found.items():
                entries |= names.get(name, {})
    return found
