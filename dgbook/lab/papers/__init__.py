"""What a paper's table or figure is to this book, and how one is found by its name.

What a paper prints stands in NAME.toml beside this file. To reproduce an item, write a function
that returns `Ours` in `dgbook/lab/reproduce/NAME.py`, and name it in the item as
`compute`, with `arguments` if it takes any.
"""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from dgbook.lab import records

PAPERS = Path(__file__).parent
NAMES = ("klockner2009", "roca2011", "chen", "chan2015", "magee2017")
KINDS = ("illustration", "count", "accuracy", "measurement")

# A table of values: rows by name, values by column.
Values = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Ours:
    """What this package finds where a paper prints a table or figure.

    Attributes
    ----------
    rows : dict of dict
        Values by row and column, named as in the paper's item where it has that value. Rows and
        columns beyond the paper's are shown without a comparison.
    because : str
        Why ours differs, where it does: another GPU, another mesh, an error in the paper. A
        difference without a reason is reported as one that nobody has explained.
    label, source : str
        Of measurements, and only of them: "LIVE" or "RECORDED", and the device or record.
    rounding : frozenset of (str, str)
        Rows and columns whose values are mostly rounding, and say nothing of the method.

    Raises
    ------
    ValueError
        If there are no rows, or label and source do not come together.
    """

    rows: Values
    because: str = ""
    label: str = ""
    source: str = ""
    rounding: frozenset[tuple[str, str]] = frozenset()

    def __post_init__(self) -> None:
        if not self.rows:
            raise ValueError("rows is empty: there is nothing to compare")
        if self.label not in ("", "LIVE", "RECORDED") or bool(self.label) != bool(self.source):
            raise ValueError(
                f"label = {self.label!r}, source = {self.source!r}; "
                'allowed: "LIVE" or "RECORDED" with a source, or neither'
            )

    @classmethod
    def recorded(cls, record: records.Record, rows: Values, because: str) -> Ours:
        """Measurements from a record."""
        return cls(rows, because, "RECORDED", record.source)


def from_to(column: str, values: Collection[float]) -> dict[str, float]:
    """An interval as an item's rows have it: the least and the most."""
    return {f"{column} from": min(values), f"{column} to": max(values)}


@dataclass(frozen=True)
class Item:
    """One table, figure, or panel of a figure.

    Attributes
    ----------
    number : str
        As printed: "Table 2", "Figure 3(a)".
    title : str
        What it shows, in this book's words.
    kind : str
        "illustration" (drawn, nothing measured), "count" (exact numbers that follow from the
        method), "accuracy" (errors, condition numbers) or "measurement" (times and rates).
    chapter : int or str
        The lesson of this book that treats it: 5, or "4b".
    rows : dict of dict
        The values that the paper prints for it, in the table or in the text about it; empty where
        it prints none. An interval is given by columns that end in "from" and "to".
    units : dict
        Unit of a column, where it has one.
    note : str
        What one needs to know to read it: conditions, slips of the paper.
    tolerance : float
        Largest relative difference at which ours counts as the same.
    compute : callable, optional
        Finds ours. None where nothing does yet.
    obstacle : str
        Why it cannot be reproduced, where it cannot.
    record : str
        Name of the record that `compute` reads, if it reads one.

    Raises
    ------
    ValueError
        If the number is not one, the kind is unknown, units name no column, the tolerance is
        negative, or an item is computed and has an obstacle.
    """

    number: str
    title: str
    kind: str
    chapter: int | str
    rows: Values = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    note: str = ""
    tolerance: float = 0.0
    compute: Callable[[], Ours] | None = None
    obstacle: str = ""
    record: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"(Table|Figure) \d+(\([a-d]\))?", self.number):
            raise ValueError(f'number = {self.number!r}; allowed: "Table 2", "Figure 3(a)"')
        if self.kind not in KINDS:
            raise ValueError(f"kind = {self.kind!r}; allowed are {', '.join(KINDS)}")
        if self.tolerance < 0:
            raise ValueError(f"tolerance = {self.tolerance}; allowed: from 0")
        if self.compute and self.obstacle:
            raise ValueError(f"{self.number} is computed: there is no obstacle ({self.obstacle!r})")
        strangers = set(self.units) - {column for row in self.rows.values() for column in row}
        if strangers:
            raise ValueError(f"{self.number}: units of {sorted(strangers)}, which are no columns")

    @property
    def id(self) -> str:
        """Its name on the command line: "table2", "figure3a"."""
        return key(self.number)

    @property
    def state(self) -> str:
        """What `reproduce` can do with it: "runs", "cannot", "not yet"."""
        if self.compute and (not self.record or records.exists(self.record)):
            return "runs"
        return "cannot" if self.obstacle else "not yet"


@dataclass(frozen=True)
class Paper:
    """A paper: who, what, on which hardware, and all its tables and figures in order."""

    name: str
    authors: str
    title: str
    hardware: str
    items: tuple[Item, ...]
    year: int | None = None  # one paper does not state it


@cache
def paper(name: str) -> Paper:
    """A paper by its name.

    Raises
    ------
    ValueError
        If there is no such paper; the message lists them.
    """
    if name not in NAMES:
        raise ValueError(f"paper = {name!r}; allowed are {', '.join(NAMES)}")
    content = tomllib.loads((PAPERS / f"{name}.toml").read_text(encoding="utf-8"))
    functions = importlib.import_module(f"dgbook.lab.reproduce.{name}")
    items = tuple(_item(entry, functions) for entry in content.pop("items"))
    return Paper(name=name, items=items, **content)


def _item(entry: dict[str, Any], functions: ModuleType) -> Item:
    """An item from its table in the TOML file.

    Where `columns` are given, a row is the list of its values, else a table by column.
    """
    if columns := entry.pop("columns", None):
        entry["rows"] = {
            row: dict(zip(columns, values, strict=True)) for row, values in entry["rows"].items()
        }
    arguments = entry.pop("arguments", ())
    if name := entry.get("compute"):
        entry["compute"] = partial(getattr(functions, name), *arguments)
    return Item(**entry)


def papers() -> tuple[Paper, ...]:
    """The five papers, by year of what they built on: nodal, hybrid, Euler, Bernstein, swept."""
    return tuple(paper(name) for name in NAMES)


def find(name: str, number: str) -> tuple[Item, ...]:
    """The items of a paper that a number means: one, or all panels of a figure.

    Parameters
    ----------
    name : str
        The paper.
    number : str
        In any usual spelling: "table2", "Figure 3(a)", "fig. 3a"; "figure3" means its panels.

    Raises
    ------
    ValueError
        If the paper has no such table or figure; the message lists what it has.
    """
    items = paper(name).items
    wanted = key(number)
    matching = tuple(i for i in items if i.id == wanted) or tuple(
        i for i in items if re.fullmatch(re.escape(wanted) + "[a-d]", i.id)
    )
    if not matching:
        raise ValueError(f"item = {number!r}; {name} has {', '.join(i.id for i in items)}")
    return matching


def key(number: str) -> str:
    """A table's or figure's number as one word: "Figure 3(a)" and "fig. 3a" give "figure3a"."""
    text = re.sub(r"[\s().,_-]", "", number.lower())
    return re.sub(r"^fig(?!ure)", "figure", re.sub(r"^tab(?!le)", "table", text))
