"""Sphinx extension of this book: the index's entries for what chapters speak of.

Chapters are notebooks and cannot carry entries of their own: on Colab a directive would be seen as
it is typed. So the sections of every chapter are searched for

- the terms of ``chapters/index_terms.yml``, by pattern;
- the authors of ``chapters/references.bib``, by surname;
- what their code takes from the package, but for what only draws pages.

An entry leads to the first section of each chapter that has it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml
from book_chapters import anchor, number_of
from pybtex.database import parse_file
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

ROOT = Path(__file__).resolve().parents[1]
HEADING = re.compile(r"^## (\d+)\. ", re.MULTILINE)


@cache
def terms() -> dict[str, re.Pattern[str]]:
    """Entries by what finds them: terms and authors."""
    listed = yaml.safe_load((ROOT / "chapters" / "index_terms.yml").read_text(encoding="utf-8"))
    found = {entry: re.compile(pattern) for entry, pattern in listed.items()}
    references = parse_file(str(ROOT / "chapters" / "references.bib"))
    for reference in references.entries.values():
        for person in reference.persons.get("author", ()):
            name = " ".join(map(str, person.rich_prelast_names + person.rich_last_names))
            first = " ".join(map(str, person.rich_first_names + person.rich_middle_names))
            found[f"{name}, {first}" if first else name] = re.compile(rf"\b{re.escape(name)}\b")
    return found


def sections(notebook: dict) -> Iterator[tuple[int, str, str]]:
    """Number, prose and code of each numbered section of a chapter."""
    number, prose, code = 0, "", ""
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] != "markdown":
            code += f"{text}\n"
            continue
        before, *parts = HEADING.split(text)
        prose += f"{before}\n"
        for title, body in zip(parts[::2], parts[1::2], strict=True):
            if number:
                yield number, prose, code
                code = ""
            number, prose = int(title), body
    if number:
        yield number, prose, code


def names(code: str, modules: dict[str, str]) -> set[str]:
    """What code takes from the package: "Solver (dgbook.linear)".

    Parameters
    ----------
    code : str
        The code of a section.
    modules : dict
        The package's modules by the names that they have in the chapter; what the code imports is
        added, for the sections that follow.
    """
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dgbook":
            for item in node.names:
                path = f"{node.module}.{item.name}"
                if module(path):
                    modules[item.asname or item.name] = path
                else:
                    found.add(f"{item.name} ({node.module})")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in modules and not module(f"{modules[node.value.id]}.{node.attr}"):
                found.add(f"{node.attr} ({modules[node.value.id]})")
    return found


@cache
def module(path: str) -> bool:
    """Whether a dotted path is a module, and no function of the same name that its package has."""
    file = ROOT.joinpath(*path.split("."))
    if not (file.is_dir() or file.with_suffix(".py").is_file()):
        return False
    package = ast.parse((file.parent / "__init__.py").read_text(encoding="utf-8"))
    imported = [n for n in ast.walk(package) if isinstance(n, ast.ImportFrom) and n.module]
    from_modules = [n for n in imported if n.module != path.rpartition(".")[0]]
    return file.name not in {item.name for node in from_modules for item in node.names}


def entries(notebook: dict) -> dict[str, int]:
    """The index's entries for a chapter, and the first section that each leads to."""
    found: dict[str, int] = {}
    modules: dict[str, str] = {}
    for number, prose, code in sections(notebook):
        spoken = [entry for entry, pattern in terms().items() if pattern.search(prose + code)]
        taken = sorted(name for name in names(code, modules) if "(dgbook.page" not in name)
        for entry in [*spoken, *taken]:
            found.setdefault(entry, number)
    return found


def add(app: Sphinx, env: BuildEnvironment) -> None:
    """Enter all of it into the index."""
    index = env.get_domain("index").data["entries"]
    for page in sorted(env.found_docs):
        path = Path(env.doc2path(page))
        if (number := number_of(page)) and path.suffix == ".ipynb":
            notebook = json.loads(path.read_text(encoding="utf-8"))
            for entry, section in entries(notebook).items():
                place = anchor(env, f"{number}.{section}")
                index.setdefault(page, []).append(("single", entry, place, "", None))


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect what fills the index."""
    app.connect("env-updated", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
