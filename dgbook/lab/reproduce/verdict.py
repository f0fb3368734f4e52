"""The paper's values and ours side by side, their ratio, and a verdict."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from dgbook.lab.numbers import significant
from dgbook.lab.papers import Item, Ours, Paper

MATCHES = "matches"
DIFFERS = "differs because"
UNEXPLAINED = "differs, and nobody has said why"
CANNOT = "cannot be reproduced because"
NOT_YET = "not yet in this version"
ALONE = "ours alone: the paper prints no values"

WIDTH = 100
"""Of the text, in letters: a terminal's."""


@dataclass(frozen=True)
class Cell:
    """One value of the paper and ours; either may be missing."""

    row: str
    column: str
    paper: float | None
    ours: float | None
    same: bool

    @property
    def ratio(self) -> float | None:
        """Ours over the paper's."""
        if self.paper is None or self.ours is None or self.paper == 0:
            return None
        return self.ours / self.paper


@dataclass(frozen=True)
class Verdict:
    """What came of reproducing one item; `print` shows all of it.

    Attributes
    ----------
    word : str
        "matches", "differs because", "differs, and nobody has said why", "cannot be reproduced
        because", "ours alone: the paper prints no values" (a drawing, or a plot without numbers) or
        "not yet in this version".
    because : str
        The reason, where there is one.
    cells : tuple of Cell
    """

    paper: Paper
    item: Item
    ours: Ours | None
    cells: tuple[Cell, ...]
    word: str
    because: str

    @property
    def compared(self) -> tuple[Cell, ...]:
        """The cells that have both the paper's value and ours."""
        return tuple(c for c in self.cells if c.paper is not None and c.ours is not None)

    @property
    def sentence(self) -> str:
        """The verdict in a sentence, with the reason and how many values are the same."""
        same, all_of_them = sum(c.same for c in self.compared), len(self.compared)
        if self.word == MATCHES:
            return f"{MATCHES} ({same} of {all_of_them} values)."
        if self.word in (DIFFERS, UNEXPLAINED):
            because = f" {self.because}" if self.because else ""
            return f"{self.word}{because} ({same} of {all_of_them} values are the same)."
        between = " " if self.word == CANNOT else "; "
        return f"{self.word}{between + self.because if self.because else ''}."

    def __str__(self) -> str:
        item, name = self.item, self.paper.name
        head = [f"{name}, {item.number}: {item.title}", f"{item.kind}, chapter {item.chapter}"]
        if item.note:
            head.append(item.note)
        if self.cells and item.kind == "measurement":
            ours = f", ours [{self.ours.label} {self.ours.source}]" if self.ours else ""
            head.append(f"paper [PAPER {name}]{ours}")
        head = [line for text in head for line in textwrap.wrap(text, WIDTH)]
        verdict = textwrap.wrap(f"Verdict: {self.sentence}", WIDTH)
        return "\n".join([*head, *self._table(), *verdict])

    def _table(self) -> list[str]:
        if not self.cells:
            return []
        lines = [["", "", "paper"] + (["ours", "ours / paper"] if self.ours else [])]
        for i, cell in enumerate(self.cells):
            unit = self.item.units.get(cell.column, "")
            repeated = i > 0 and self.cells[i - 1].row == cell.row
            line = ["" if repeated else cell.row, cell.column, _text(cell.paper, unit, ".10g")]
            if self.ours:
                line += [_text(cell.ours, unit), _text(cell.ratio)]
            lines.append(line)
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        return [
            "  ".join(
                text.ljust(width) if i < 2 else text.rjust(width)
                for i, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]


def compare(paper: Paper, item: Item) -> Verdict:
    """Compute an item and compare it with what the paper prints.

    Raises
    ------
    ValueError
        If a measurement comes without its label, or an exact number with one, or if what was
        computed has no value in common with what the paper prints.
    """
    ours = item.compute() if item.state == "runs" else None
    cells = _cells(item, ours)
    if ours is None:
        missing = f"record {item.record} has not been made" if item.record else ""
        word, because = (CANNOT, item.obstacle) if item.obstacle else (NOT_YET, missing)
        return Verdict(paper, item, None, cells, word, because)
    if bool(ours.label) != (item.kind == "measurement"):
        raise ValueError(
            f"{item.number} is of kind {item.kind!r} and ours has label {ours.label!r}: "
            "measurements have a label, other values none"
        )
    compared = [c for c in cells if c.paper is not None and c.ours is not None]
    if not item.rows:
        return Verdict(paper, item, ours, cells, ALONE, ours.because)
    if not compared:
        raise ValueError(f"{item.number}: ours and the paper's rows have no value in common")
    if all(c.same for c in compared):
        return Verdict(paper, item, ours, cells, MATCHES, "")
    word = DIFFERS if ours.because else UNEXPLAINED
    return Verdict(paper, item, ours, cells, word, ours.because)


def _cells(item: Item, ours: Ours | None) -> tuple[Cell, ...]:
    """All values in the paper's order, then those that only we have."""
    ours_rows = ours.rows if ours else {}
    places = [(row, column) for row, values in item.rows.items() for column in values]
    extra = [(row, column) for row, values in ours_rows.items() for column in values]
    cells = []
    for row, column in dict.fromkeys(places + extra):
        theirs = item.rows.get(row, {}).get(column)
        mine = ours_rows.get(row, {}).get(column)
        both = theirs is not None and mine is not None
        same = both and abs(mine - theirs) <= item.tolerance * abs(theirs)
        cells.append(Cell(row, column, theirs, mine, same))
    return tuple(cells)


def _text(value: float | None, unit: str = "", specification: str = "") -> str:
    if value is None:
        return "–"
    number = format(value, specification) if specification else significant(value)
    return f"{number} {unit}".rstrip()
