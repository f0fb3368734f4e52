"""Set the book's repository address, in _config.yml and in every chapter: `address.py URL`.

Pages then get their buttons (Colab, source, edits), and a chapter that Colab opens knows what to
clone. An empty URL takes them away.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
CONFIGURED = re.compile(r'^(  url: )"([^"]*)"$', re.MULTILINE)
IN_CHAPTER = re.compile(r'^REPOSITORY = "([^"]*)"', re.MULTILINE)


def configured() -> str:
    """The address in _config.yml."""
    return CONFIGURED.search((ROOT / "_config.yml").read_text(encoding="utf-8"))[2]


def in_chapter(path: Path) -> list[str]:
    """The addresses that the cells of a chapter name; there should be one."""
    cells = nbformat.read(path, as_version=4).cells
    return [address for cell in cells for address in IN_CHAPTER.findall(cell.source)]


def main(arguments: list[str]) -> int:
    """Write the address everywhere; 2 if the call is wrong."""
    if len(arguments) != 1 or not re.fullmatch(r"(https://[\w./-]+)?", arguments[0]):
        print(__doc__)
        return 2
    url = arguments[0].rstrip("/")
    config = ROOT / "_config.yml"
    text = config.read_text(encoding="utf-8")
    config.write_text(CONFIGURED.sub(rf'\1"{url}"', text), encoding="utf-8")
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            cell.source = IN_CHAPTER.sub(f'REPOSITORY = "{url}"', cell.source)
        nbformat.write(notebook, path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
