"""The ladder of Maxwell's kernels in a page: how far each rung is from its floor, what moved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dgbook.lab.numbers import recorded
from dgbook.lab.records import Record
from dgbook.lab.tables import Table, table
from dgbook.page import plot
from dgbook.page.player import Player, flipbook
from dgbook.page.show import Shown

CASES = ((3, "float32"), (7, "float32"), (3, "float64"), (7, "float64"))
"""Orders and precisions, in the order of the columns."""
HEADS = tuple(f"N = {order}, fp{dtype[-2:]}" for order, dtype in CASES)

SUMS = {"FMA": ("FMA32", "FMA64"), "memory": ("memory read", "memory written")}
"""Counters that are added up: multiply-adds of both precisions, and both ways of memory."""


def rows_of(record: Record, order: int, dtype: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of some rungs that there are, in the order of the names."""
    rows = {row["rung"]: row for row in record.select(order=order, dtype=dtype)}
    return [rows[name] for name in names if name in rows]


def percent(record: Record, names: Sequence[str]) -> Figure:
    """Percent of the floor on each rung, the first one on top."""
    fig, ax = plot.figure(height=1.2 + 0.42 * len(names))
    for (order, dtype), head, marker in zip(CASES, HEADS, "osos", strict=True):
        rows = rows_of(record, order, dtype, names)
        double = dtype == "float64"
        ax.plot(
            [100 * row["efficiency"] for row in rows],
            [names.index(row["rung"]) for row in rows],
            marker + ("--" if double else "-"),
            color=plot.COLORS["vermillion" if order == 7 else "blue"],
            mfc="none" if double else None,
            lw=1.2,
            label=head,
        )
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(0, None)
    plot.label_axes(ax, "percent of the floor", "")
    plot.annotate_label(ax, "RECORDED", record.source)
    fig.legend(loc="outside lower center", ncols=2)
    return fig


def reveal(record: Record, names: Sequence[str], alt: str) -> Player:
    """`percent` with a slider that shows one rung more at a time, for who predicts first.

    Parameters
    ----------
    record : Record
    names : sequence of str
        Rungs; the figure opens with the first alone.
    alt : str
        What is to be seen when all are shown.
    """

    def first(count: int) -> Figure:
        fig = percent(record, names)
        (ax,) = fig.axes
        ax.set_xlim(ax.get_xlim())  # of all rungs
        for line in ax.lines:
            x, y = line.get_data()
            shown = np.less(y, count)
            line.set_data(np.extract(shown, x), np.extract(shown, y))
        return fig

    return flipbook(
        first,
        {"rungs": range(1, len(names) + 1)},
        captions=[f"up to: {name}" for name in names],
        alt=alt,
        colors=32,
    )


def rates(record: Record, names: Sequence[str], caption: str) -> Table:
    """Degrees of freedom per second on each rung, and the percentage of the floor."""
    rows = []
    for name in names:
        found = [rows_of(record, *case, [name]) for case in CASES]
        cells = [
            f"{_three(_rate(record, *one))} ({_efficiency(*one)} %)" if one else None
            for one in found
        ]
        rows.append([name, *cells])
    head = f"{caption}: GDOF/s (percent of the floor), RECORDED {record.source}"
    return table(rows, ["rung", *HEADS], head)


def step(record: Record, below: str, rung: str, counters: Mapping[str, str]) -> Table:
    """What a step of the ladder gained, and what counters said before and after it.

    Parameters
    ----------
    record : Record
    below, rung : str
        The rung before the step, and the one after it.
    counters : mapping of str to str
        Names of counters, and what the table calls them. A name is one of
        `dgbook.lab.profile.COUNTS` per degree of freedom, one of `SUMS` of these or, with "%"
        behind it, one of `COUNTERS`.
    """
    pairs = [rows_of(record, *case, [below, rung]) for case in CASES]
    rows = [
        ["GDOF/s", *(_both(pair, lambda row: _three(_rate(record, row))) for pair in pairs)],
        ["percent of the floor", *(_both(pair, _efficiency) for pair in pairs)],
    ]
    for counter, words in counters.items():
        kind = "counters" if counter.endswith("%") else "counts"
        names = SUMS.get(counter, (counter.rstrip("%"),))
        cells = []
        for pair in pairs:
            known = all(kind in row for row in pair)
            said = partial(_said, kind=kind, names=names)
            cells.append(_both(pair, said) if known else None)
        rows.append([words, *cells])
    head = f"Before: {below}. After: {rung}. RECORDED {record.source}"
    return table(rows, ["before → after", *HEADS], head)


def difference(edits: Iterable[tuple[str, str]]) -> Shown:
    """What a rung in CUDA C++ changes: lines of the rung below with -, its own with +.

    Parameters
    ----------
    edits : iterable of (str, str)
        From `dgbook.lab.ladder`: what stands in the kernel, and what would stand there without.
    """
    lines = []
    for new, old in edits:
        for sign, text in (("-", old), ("+", new)):
            said = text.rstrip()
            if said.strip() != ";":  # an empty statement says nothing to a reader
                lines += [f"{sign} {line}" for line in said.split("\n")]
    return Shown("the difference", "\n".join(lines) + "\n", "diff")


def _rate(record: Record, row: Mapping[str, Any]) -> float:
    """Billions of degrees of freedom per second."""
    return float(recorded(record, row, "GDOF/s").value)


def _three(rate: float) -> str:
    """Three digits."""
    return f"{rate:.{max(0, 2 - int(math.log10(rate)))}f}"


def _efficiency(row: Mapping[str, Any]) -> str:
    """Percent of the floor."""
    return f"{100 * row['efficiency']:.0f}"


def _said(row: Mapping[str, Any], kind: str, names: Sequence[str]) -> str:
    """Two or three digits of the sum of some counters."""
    value = sum(row[kind][name] for name in names)
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _both(pair: Sequence[Mapping[str, Any]], said: Callable[..., str]) -> str | None:
    """Before and after a step; nothing where a rung is missing."""
    return " → ".join(said(row) for row in pair) if len(pair) == 2 else None
