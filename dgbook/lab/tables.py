"""Tables of a page: text, counts and labeled numbers."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from dgbook.lab.numbers import Number, badge


@dataclass(frozen=True)
class Table:
    """A table of text, counts and labeled numbers; shown by a notebook, or as text by `print`."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    caption: str
    formats: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        indices = range(len(self.columns))
        body = [[self._cell(row, i, plain=True) for i in indices] for row in self.rows]
        for n, line in enumerate(body):
            line[0] = self._name(n, plain=True)
        head = [self._heading(i, plain=True) for i in indices]
        origin = self._origin
        caption = f"{self.caption} [{origin.label} {origin.source}]" if origin else self.caption
        widths = [max(len(line[i]) for line in [head, *body]) for i in indices]
        text_column = [all(isinstance(row[i], str) for row in self.rows) for i in indices]
        lines = [
            "  ".join(
                cell.ljust(width) if is_text else cell.rjust(width)
                for cell, width, is_text in zip(line, widths, text_column, strict=True)
            )
            for line in [head, *body]
        ]
        rule = "-" * len(lines[0])
        return "\n".join(line.rstrip() for line in [caption, lines[0], rule, *lines[1:]])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        caption, origin = html.escape(self.caption), self._origin
        label = f" {badge(origin.label, origin.source)}" if origin else ""
        indices = range(len(self.columns))
        head = "".join(f'<th scope="col">{self._heading(i, plain=False)}</th>' for i in indices)
        body = ""
        for n, row in enumerate(self.rows):
            first = self._name(n, plain=False)
            others = [self._cell(row, i, plain=False) for i in indices[1:]]
            cells = "".join(f'<td style="text-align:right">{cell}</td>' for cell in others)
            body += f'<tr><th scope="row">{first}</th>{cells}</tr>'
        # "dataframe" is the class that notebooks and themes know how to draw, light and dark.
        return (
            '<div class="table-scroll" style="overflow-x:auto" role="region" tabindex="0" '
            f'aria-label="{caption}">'
            f'<table class="dataframe"><caption style="text-align:left">{caption}{label}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def _heading(self, column: int, plain: bool) -> str:
        name, number = self.columns[column], self._common(column)
        here = number is not None and self._origin is None
        if plain:
            return f"{name} [{number.label} {number.source}]" if here else name
        told = [html.escape(number.unit)] if number is not None and number.unit else []
        if here:
            label = badge(number.label, number.source)
            told.append(f'<span style="font-weight:normal">{label}</span>')
        return html.escape(name) + ("<br>" + " ".join(told) if told else "")

    @cached_property
    def _origin(self) -> Number | None:
        """A number that stands for the table if several columns have numbers, all of one origin."""
        numbers = [(i, n) for row in self.rows for i, n in enumerate(row) if isinstance(n, Number)]
        columns, origins = {i for i, _ in numbers}, {(n.label, n.source) for _, n in numbers}
        return numbers[0][1] if len(columns) > 1 and len(origins) == 1 else None

    def _common(self, column: int) -> Number | None:
        """A number that stands for the column if all its numbers share unit, label and source."""
        numbers = [row[column] for row in self.rows if isinstance(row[column], Number)]
        origins = {(n.unit, n.label, n.source) for n in numbers}
        return numbers[0] if len(origins) == 1 else None

    @cached_property
    def _origins(self) -> tuple[Number | None, ...]:
        """By row, a number that stands for those that no column speaks for; if they fit, or empty.

        They fit if there are two such columns or more, and in each row one origin.
        """
        mixed = [i for i in range(len(self.columns)) if not self._common(i)]
        found = [[row[i] for i in mixed if isinstance(row[i], Number)] for row in self.rows]
        several = max(map(len, found), default=0) > 1
        fit = several and all(len({(n.label, n.source) for n in row}) < 2 for row in found)
        return tuple(row[0] if row else None for row in found) if fit and not self._origin else ()

    def _name(self, n: int, plain: bool) -> str:
        """The head of a row."""
        name, number = self._cell(self.rows[n], 0, plain), (self._origins or {n: None})[n]
        if number is None:
            return name
        if plain:
            return f"{name} [{number.label} {number.source}]"
        label = badge(number.label, number.source)
        return f'{name}<br><span style="font-weight:normal">{label}</span>'

    def _cell(self, row: tuple[Any, ...], column: int, plain: bool) -> str:
        value = row[column]
        specification = self.formats.get(self.columns[column], "")
        if isinstance(value, Number):
            if self._common(column):
                return value.text(specification, unit=plain)
            if self._origin or self._origins:
                text = value.text(specification)
                return text if plain else html.escape(text)
            if plain:
                return format(value, specification)
            return f"{html.escape(value.text(specification))} {badge(value.label, value.source)}"
        text = "–" if value is None else str(value)
        return text if plain else html.escape(text)


def table(
    rows: Sequence[Sequence[Any]],
    columns: Sequence[str],
    caption: str,
    formats: Mapping[str, str] | None = None,
) -> Table:
    """A table for a chapter: scrolls on a phone, readable by a screen reader, no number unlabeled.

    Parameters
    ----------
    rows : sequence of rows
        Cells are text, integers (orders, counts), `Number` or None (shown as a dash). Where all
        numbers of a column have one unit and origin, the label stands in its heading; with the
        caption, if the numbers of several columns have one origin; at the head of each row, if
        those of a row have one; else in each cell.
    columns : sequence of str
        The headings; the first column names the rows.
    caption : str
        What the table shows.
    formats : mapping, optional
        Format specification of a column's numbers: {"ours": ".2f"}.

    Raises
    ------
    TypeError
        If a cell is a bare float: it has no label.
    ValueError
        If a number has no label, a row has the wrong length, or `formats` names no column.
    """
    for i, row in enumerate(rows):
        if len(row) != len(columns):
            raise ValueError(
                f"rows[{i}] has {len(row)} cells; the table has {len(columns)} columns"
            )
        for name, value in zip(columns, row, strict=True):
            if isinstance(value, Number):
                value.check()
            elif value is not None and not isinstance(value, str | int | np.integer):
                raise TypeError(
                    f"rows[{i}], {name!r}: {value!r} is a number without a label; wrap it in "
                    "live(), recorded(), paper() or model(), or format it to text if it measures "
                    "nothing"
                )
    unknown = set(formats or {}) - set(columns)
    if unknown:
        raise ValueError(f"formats = {sorted(unknown)}; the columns are {list(columns)}")
    return Table(tuple(columns), tuple(map(tuple, rows)), caption, dict(formats or {}))
