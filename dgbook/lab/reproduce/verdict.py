"""The paper's values and ours side by side, their ratio, and a verdict."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from dgbook.lab.numbers import significant
from dgbook.lab.papers import Item, Ours, Paper

MATCHES = "matches"
CLOSE = "agrees within"
DIFFERS = "differs because"
UNEXPLAINED = "differs, and nobody has said why"
CANNOT = "cannot be reproduced because"
NOT_YET = "not yet in this version"
ALONE = "ours alone: the paper prints no values"

WIDTH = 100
"""Of the text, in letters: a terminal's."""


@dataclass(frozen=True)
class Cell:
    """One value of the paper and ours; either may be missing.

    Attributes
    ----------
    row, column : str
    paper, ours : float or None
    same : bool
        Equal but for the tolerance of the item.
    """

    row: str
    column: str
    paper: float | None
    ours: float | None
    same: bool

    @property
    def exact(self) -> bool:
        """Whether ours, rounded as the paper's is, has all the digits that the paper prints."""
        if self.paper is None or self.ours is None:
            return False
        _, _, decimals = str(self.paper).partition(".")
        return round(float(self.ours), len(decimals)) == self.paper

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
        "matches" (all values, to the digits that the paper prints), "agrees within" (the item's
        tolerance), "differs because", "differs, and nobody has said why", "cannot be reproduced
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
        if self.word == CLOSE:
            exact = sum(c.exact for c in self.compared)
            return (
                f"{CLOSE} {100 * self.item.tolerance:.3g} percent of each value "
                f"({exact} of {all_of_them} are the same to the digits that the paper prints)."
            )
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
        """What the paper prints beside ours, then what only we have, a line per row."""
        printed = [cell for cell in self.cells if cell.paper is not None]
        ours_alone = [cell for cell in self.cells if cell.paper is None]
        return [*self._side_by_side(printed), *_by_row(ours_alone)]

    def _side_by_side(self, cells: Sequence[Cell]) -> list[str]:
        if not cells:
            return []
        lines = [["", "", "paper"] + (["ours ", "ours / paper"] if self.ours else [])]
        for i, cell in enumerate(cells):
            unit = self.item.units.get(cell.column, "")
            repeated = i > 0 and cells[i - 1].row == cell.row
            line = ["" if repeated else cell.row, cell.column, _text(cell.paper, unit, ".10g")]
            if self.ours:
                mark = "*" if (cell.row, cell.column) in self.ours.rounding else " "
                line += [_text(cell.ours, unit) + mark, _text(cell.ratio)]
            lines.append(line)
        table = _aligned(lines, left=2)
        if self.ours and self.ours.rounding:
            table.append("* mostly rounding: says nothing of the method's order")
        return table


def _by_row(cells: Sequence[Cell]) -> list[str]:
    """Values of ours, a row per line and a column per column, in tables as wide as a terminal."""
    columns = list(dict.fromkeys(cell.column for cell in cells))
    rows = list(dict.fromkeys(cell.row for cell in cells))
    found = {(cell.row, cell.column): _text(cell.ours) for cell in cells}
    lines: list[str] = []
    while columns:
        for count in range(len(columns), 0, -1):
            head = ["ours", *columns[:count]]
            body = [[row, *(found.get((row, c), "") for c in columns[:count])] for row in rows]
            table = _aligned([head, *(line for line in body if any(line[1:]))], left=1)
            if count == 1 or max(map(len, table)) <= WIDTH:
                break
        lines += table
        columns = columns[count:]
    return lines


def _aligned(lines: Sequence[Sequence[str]], left: int) -> list[str]:
    """Columns side by side, the first `left` of them flush left and the others flush right."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return [
        "  ".join(
            text.ljust(width) if i < left else text.rjust(width)
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
        word = MATCHES if all(c.exact for c in compared) else CLOSE
        return Verdict(paper, item, ours, cells, word, "")
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
