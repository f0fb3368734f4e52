"""What a paper plots, drawn from our numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure

from dgbook.lab.papers import Ours
from dgbook.lab.reproduce import Verdict
from dgbook.page import plot

MOST_LINES = 7
WIDE = 20.0
"""Values, or places on the x axis, that span more than this factor get a logarithmic axis."""

PLACE = re.compile(r"(?:^|, )(?:(?P<name>\w+) = (?P<number>[\d.]+)|(?P<size>[\d.]+) MiB)(?=,|$)")
"""A place on the x axis in the name of a row: "N = 3", "p = 0, N = 32", "10 MiB"."""

UNIT = re.compile(
    r"(?:^|, )(?P<unit>%|ms|us|flops per byte|[kMGT]?(?:B|DOF|FLOP)/s)(?P<end> from| to)?$"
)
"""At the end of a column's name: "volume, %", "our best, GB/s from"."""


@dataclass(frozen=True)
class Line:
    """One curve: the rows of a table that differ by one number.

    Attributes
    ----------
    x_name : str
    group, name, unit : str
        What else the row's name says, "p = 0"; the column's name, and the unit of its values or
        nothing.
    points : tuple of (float, float)
    """

    x_name: str
    group: str
    name: str
    unit: str
    points: tuple[tuple[float, float], ...]


def lines(ours: Ours, units: Mapping[str, str]) -> tuple[Line, ...]:
    """The curves of at least three points in a table of ours.

    Parameters
    ----------
    ours : dgbook.lab.papers.Ours
    units : mapping of str to str
        Of columns whose names do not end with one.
    """
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for row, values in ours.rows.items():
        if not (places := list(PLACE.finditer(row))):
            continue
        place = places[-1]
        rest = (row[: place.start()] + row[place.end() :]).strip(", ")
        x = float(place["number"] or place["size"])
        for column, value in values.items():
            if math.isfinite(value):
                key = place["name"] or "MiB", rest, column
                found.setdefault(key, []).append((x, float(value)))
    made = []
    for (x_name, group, column), points in found.items():
        ending, last = UNIT.search(column), column.rpartition(", ")[2]
        unit = ending["unit"] if ending else units.get(last) or units.get(last[:-2] + "from", "")
        name = UNIT.sub(lambda found: found["end"] or "", column).strip()
        made.append(Line(x_name, group, name, unit, tuple(sorted(points))))
    return tuple(line for line in made if len(line.points) > 2)


def panels(curves: tuple[Line, ...]) -> Iterator[tuple[str, list[tuple[str, Line]]]]:
    """Titles, and the named lines that share axes: of one unit, at most seven.

    Where there are more, each column or each group gets a panel of its own, whichever makes fewer.
    """
    for unit in dict.fromkeys(line.unit for line in curves):
        of_unit = [line for line in curves if line.unit == unit]
        groups = dict.fromkeys(line.group for line in of_unit)
        names = dict.fromkeys(line.name for line in of_unit)
        if len(groups) == 1:
            named = [(line.name, line) for line in of_unit]
            for i in range(0, len(named), MOST_LINES):
                yield next(iter(groups)), named[i : i + MOST_LINES]
        elif len(names) == 1:
            yield next(iter(names)), [(line.group, line) for line in of_unit]
        elif len(names) <= len(groups):
            for name in names:
                yield name, [(line.group, line) for line in of_unit if line.name == name]
        else:
            for group in groups:
                yield group, [(line.name, line) for line in of_unit if line.group == group]


def draw(verdict: Verdict) -> Figure | None:
    """Ours as curves, a panel per unit; None where there is nothing to plot.

    Parameters
    ----------
    verdict : dgbook.lab.reproduce.Verdict
    """
    curves = lines(verdict.ours, verdict.item.units) if verdict.ours else ()
    if not curves:
        return None
    parts = list(panels(curves))
    fig, axes = plot.figure(7.0, 2.9 * len(parts), rows=len(parts), squeeze=False)
    for ax, (title, named) in zip(axes[:, 0], parts, strict=True):
        for i, (name, line) in enumerate(named):
            x, y = zip(*line.points, strict=True)
            ax.plot(x, y, plot.MARKERS[i % len(plot.MARKERS)] + "-", markersize=5, label=name)
        x, y = zip(*(point for _, line in named for point in line.points), strict=True)
        plot.label_axes(
            ax,
            named[0][1].x_name,
            named[0][1].unit or (named[0][0] if len(named) == 1 else ""),
            title,
            logx=max(x) > WIDE * min(x),
            logy=min(y) > 0 and max(y) > WIDE * min(y),
        )
        if len(named) > 1:
            ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
    if verdict.ours.label:
        plot.annotate_label(axes[0, 0], verdict.ours.label, verdict.ours.source)
    return fig
