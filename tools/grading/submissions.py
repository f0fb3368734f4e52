"""What came in: found, copied with care, and made whole again.

Nothing here runs, and nothing that a student may have handed in stops the others: what cannot be
used is kept as trouble with a sentence for the table.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

INSTRUCTOR = "instructor"  # hands in the solution, with every class
MOST_BYTES = 20 * 2**20  # of a file, with all its pictures
MOST_TEXT = 2**20  # characters of all cells
MOST_CELLS = 1000
MOST_DEPTH = 4  # of folders


@dataclass(frozen=True)
class Submission:
    """What one student handed in.

    Attributes
    ----------
    student : str
        The student's name, as it is reported.
    key : str
        The same as a name of folders and in the gradebook: letters, digits and ``._@+-``.
    path : Path or None
        The notebook.
    trouble : str
        Why there is none.
    """

    student: str
    key: str
    path: Path | None
    trouble: str = ""


def submission(name: str, path: Path | None, trouble: str = "") -> Submission:
    """A submission by the name of a file or folder, whatever letters that has.

    Umlauts count as the same letters whether they come in one piece or two. A name that makes no
    good folder gets one with other letters replaced, and a few digits so that it stays its own.
    """
    readable = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    readable = unicodedata.normalize("NFC", readable)
    student = "".join(c if c.isprintable() else "\ufffd" for c in readable)
    key = readable
    if not re.fullmatch(r"\w[\w.@+-]{0,99}", readable) or readable == INSTRUCTOR:
        digits = hashlib.sha256(readable.encode()).hexdigest()[:8]
        key = f"{re.sub(r'[^a-zA-Z0-9]+', '_', readable)[:60]}-{digits}"
    return Submission(student, key, path, trouble)


def find_submissions(folder: Path, assignment: str) -> list[Submission]:
    """All submissions, by name: ``STUDENT.ipynb`` or ``STUDENT/.../NAME.ipynb``.

    Links are not followed. Names that begin with a dot are left alone.
    """
    found: dict[str, Submission] = {}
    for name, path, trouble in _candidates(folder, assignment):
        new = submission(name, path, trouble)
        if new.student == INSTRUCTOR:
            new = Submission(
                new.student, new.key, None, f"{name!r} stands for you: use another name"
            )
        if old := found.get(new.student):
            both = " and ".join(sorted(str(p.relative_to(folder)) for p in (old.path, path) if p))
            new = Submission(old.student, old.key, None, f"two notebooks: {both}")
        found[new.student] = new
    return sorted(found.values(), key=lambda s: s.student)


def _candidates(folder: Path, assignment: str) -> Iterator[tuple[str, Path | None, str]]:
    """Name, notebook and trouble of what a folder holds."""
    for entry in sorted(os.scandir(folder), key=lambda e: e.name):
        if entry.name.startswith("."):
            continue
        if not entry.is_dir(follow_symlinks=False):
            if entry.name.endswith(".ipynb"):
                yield entry.name.removesuffix(".ipynb"), Path(entry.path), ""
            elif entry.is_symlink() and not Path(entry.name).suffix:
                yield entry.name, None, "a link is handed in, not a folder"
            continue
        notebook, missing = f"{assignment}.ipynb", True
        for inside, folders, files in os.walk(entry.path):
            if notebook in files or notebook in folders:
                missing = False
                yield entry.name, Path(inside) / notebook, ""
            depth = len(Path(inside).relative_to(entry.path).parts)
            folders[:] = [f for f in sorted(folders) if f[0] != "." and depth < MOST_DEPTH]
        if missing:
            yield entry.name, None, f"no {notebook} in the folder"


def read_file(path: Path) -> bytes:
    """The content of a regular file that has one name, and is not too long.

    Raises
    ------
    ValueError
        If it is a link, a device, a pipe, a folder, or longer than `MOST_BYTES`.
    """
    special = "not a file but a link, a folder, a pipe or a device"
    try:
        # A pipe would wait for a writer, and a device may do anything when it is opened.
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise ValueError(special)
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(opened, "rb") as file:
            status = os.fstat(opened)
            if not stat.S_ISREG(status.st_mode):
                raise ValueError(special)
            if status.st_nlink != 1:
                raise ValueError(f"the file has {status.st_nlink} names (hard links): copy it")
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"the file cannot be read: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise ValueError(f"the file is longer than {MOST_BYTES >> 20} MiB")
    return content


@dataclass(frozen=True)
class Cell:
    """What counts of a submitted cell: its kind, its text, and nbgrader's id or its own."""

    kind: str
    source: str
    name: str


def read_cells(content: bytes) -> tuple[list[Cell], str]:
    """The cells of a notebook, however odd it is, and a remark on those that are none.

    Raises
    ------
    ValueError
        If it is no notebook, or too long.
    """
    try:
        document = json.loads(content)
        if isinstance(document, dict) and document.get("nbformat") in (1, 2, 3):
            document = nbformat.reads(content.decode(), as_version=4)
    except RecursionError:
        raise ValueError("no notebook: nested too deeply") from None
    except Exception as error:  # old formats are converted by code that expects no harm
        raise ValueError(f"no notebook: {type(error).__name__}: {error}"[:80]) from None
    cells = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(cells, list):
        raise ValueError("no notebook: it has no list of cells")
    if len(cells) > MOST_CELLS:
        raise ValueError(f"{len(cells)} cells are too many: {MOST_CELLS} may be there")
    found = [cell for cell in map(_cell, cells) if cell is not None]
    if sum(len(cell.source) for cell in found) > MOST_TEXT:
        raise ValueError(f"too long: the cells may have {MOST_TEXT} characters in all")
    left_out = len(cells) - len(found)
    return found, f"malformed cells left out: {left_out}" if left_out else ""


def _cell(entry: Any) -> Cell | None:
    """A cell of a notebook's JSON; None if its type or text is missing or makes no sense."""
    if not isinstance(entry, dict) or entry.get("cell_type") not in ("code", "markdown", "raw"):
        return None
    source = entry.get("source")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        return None
    metadata = entry.get("metadata")
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    name = marks.get("grade_id") if isinstance(marks, dict) else None
    name = name if isinstance(name, str) else entry.get("id")
    # Half a character of two halves can neither be stored nor sent.
    source = source.encode("utf-8", "replace").decode()
    return Cell(entry["cell_type"], source, name if isinstance(name, str) else "")


def name_of(cell: NotebookNode) -> str:
    """nbgrader's id of a cell, or an empty string."""
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


_MAKE = {
    "code": nbformat.v4.new_code_cell,
    "markdown": nbformat.v4.new_markdown_cell,
    "raw": nbformat.v4.new_raw_cell,
}


def normalize(submitted: list[Cell], template: NotebookNode) -> NotebookNode:
    """A submission with all cells of the students' version and their original metadata.

    Students delete cells, and some editors drop metadata. A cell is known by nbgrader's id or,
    where that is lost, by its own; one that is missing comes back as it was handed out, after the
    cell it followed. Of two cells with one id, pasted perhaps, the last one counts. Of what came in
    the texts stay; tags, outputs and attachments go.

    Parameters
    ----------
    submitted : list of Cell
        What came in.
    template : NotebookNode
        What was handed out.

    Returns
    -------
    NotebookNode
        A new notebook; cells that students added are in it, where they were.
    """
    known = {name_of(c): c for c in template.cells if name_of(c)}
    cells: list[NotebookNode] = []
    place: dict[str, NotebookNode] = {}
    for one in submitted:
        kind = known[one.name].cell_type if one.name in known else one.kind
        cell = _MAKE[kind](one.source)
        if one.name in known:
            cell.metadata.nbgrader = copy.deepcopy(known[one.name].metadata.nbgrader)
            if one.name in place:
                del place[one.name].metadata["nbgrader"]
            place[one.name] = cell
        cells.append(cell)

    position = 0
    for name, original in known.items():
        if name in place:
            position = 1 + next(i for i, c in enumerate(cells) if c is place[name])
        else:
            cells.insert(position, copy.deepcopy(original))
            position += 1

    for i, cell in enumerate(cells):
        cell.id = name_of(cell) or f"other-{i}"  # nbformat wants them different
    return nbformat.v4.new_notebook(cells=cells, metadata=copy.deepcopy(template.metadata))
