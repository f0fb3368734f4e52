"""Numbers that say where they came from: LIVE, RECORDED, PAPER or MODEL.

A *labeled number* is a value with its unit and its origin; formatting one that has no label is an
error, so none can reach a page.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dgbook.gpu import device as find_device
from dgbook.lab import papers
from dgbook.lab.records import Record

LABELS = ("LIVE", "RECORDED", "PAPER", "MODEL")

# Dimension of each unit that a row can be read in, and the unit's size.
_RATES = {
    "seconds_median": {"s": 1.0, "ms": 1e-3, "us": 1e-6},
    "bytes": {"GB/s": 1e9, "TB/s": 1e12},
    "flops": {"GFLOP/s": 1e9, "TFLOP/s": 1e12},
    "dofs": {"MDOF/s": 1e6, "GDOF/s": 1e9},
    "efficiency": {"efficiency": 1.0},
}
UNITS = tuple(unit for units in _RATES.values() for unit in units)


def in_unit(row: Mapping[str, Any], unit: str) -> float:
    """Read a row of a record in a unit.

    Parameters
    ----------
    row : mapping
        A row as `validate` describes it.
    unit : str
        "s", "ms", "us", "GB/s", "TB/s", "GFLOP/s", "TFLOP/s", "MDOF/s", "GDOF/s" or "efficiency"
        (floor / measured, between 0 and 1).

    Raises
    ------
    ValueError
        If the unit is another one, or the row has nothing to measure in it.
    """
    for key, units in _RATES.items():
        if unit not in units:
            continue
        if not row.get(key):
            raise ValueError(f"this row has {key} = {row.get(key)!r}: it cannot be read in {unit}")
        seconds = 1.0 if key in ("seconds_median", "efficiency") else row["seconds_median"]
        return row[key] / seconds / units[unit]
    raise ValueError(f"unit = {unit!r}; allowed are {', '.join(UNITS)}")


@dataclass(frozen=True)
class Number:
    """A value with its unit, its label and its source.

    Text, format and HTML all carry the label: `42.9 GB/s  [RECORDED NVIDIA H200, 2026-11-20]`.
    A number without a label can be made but not shown.

    Parameters
    ----------
    value : float
    unit : str
        "" for a plain ratio.
    label : str
        "LIVE", "RECORDED", "PAPER" or "MODEL"; of a quotient of two, both, joined by "/".
    source : str
        Device, record, paper or model.
    """

    value: float
    unit: str = ""
    label: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) or not isinstance(
            self.value, int | float | np.integer | np.floating
        ):
            raise TypeError(f"value = {self.value!r}; a number is needed")
        if self.label and any(part not in LABELS for part in self.label.split("/")):
            raise ValueError(f"label = {self.label!r}; allowed are {', '.join(LABELS)}")

    def __format__(self, specification: str) -> str:
        self.check()
        return f"{self.text(specification)}  [{self.label} {self.source}]"

    def __str__(self) -> str:
        return format(self)

    def __repr__(self) -> str:
        return format(self) if self.label else f"Number({self.value!r}, {self.unit!r}, no label)"

    def __add__(self, other: Number) -> Number:
        """The sum of two numbers of one unit and one origin, such as the times of two kernels."""
        if not isinstance(other, Number):
            return NotImplemented
        kinds = [(n.unit, n.label, n.source) for n in (self, other)]
        if kinds[0] != kinds[1]:
            raise ValueError(f"a sum needs one unit and one origin, not {kinds[0]} and {kinds[1]}")
        return replace(self, value=self.value + other.value)

    def __radd__(self, start: int) -> Number:
        """Nothing and this number: where `sum` begins."""
        return self if start == 0 else NotImplemented

    def __truediv__(self, other: Number | int) -> Number:
        """A part per count, or how many times `other` goes into this number, with both origins."""
        if isinstance(other, int | np.integer):
            return replace(self, value=self.value / other)
        if not isinstance(other, Number):
            return NotImplemented
        if self.unit != other.unit:
            raise ValueError(f"a ratio needs one unit, not {self.unit!r} and {other.unit!r}")
        self.check()
        other.check()
        same_label, same_source = self.label == other.label, self.source == other.source
        return Number(
            self.value / other.value,
            "×",
            self.label if same_label else f"{self.label}/{other.label}",
            self.source if same_label and same_source else f"{self.source} / {other.source}",
        )

    def text(self, specification: str = "", unit: bool = True) -> str:
        """Value and unit without the label, for a place that shows the label by itself."""
        value = format(self.value, specification) if specification else significant(self.value)
        return f"{value} {self.unit}" if unit and self.unit else value

    def _repr_html_(self) -> str:
        self.check()
        return f"{html.escape(self.text())} {badge(self.label, self.source)}"

    def check(self) -> None:
        """Raise a ValueError if it has no label or no source."""
        if not self.label or not self.source:
            raise ValueError(
                f"{self.text()} has no {'source' if self.label else 'label'}: make it with live(), "
                "recorded(), paper() or model(), so that the page says where it comes from"
            )


def live(value: Any, unit: str, device: Any = None) -> Number:
    """A number measured in this run, on this device.

    Parameters
    ----------
    value : float, mapping or dgbook.gpu.timing.Timing
        The number; or a row in the form that records have, or a timing, read by `in_unit`.
    unit : str
    device : dgbook.gpu.Device, optional
        Where it was measured; `dgbook.gpu.device()` if not given.
    """
    device = find_device() if device is None else device
    row = value.as_row() if hasattr(value, "as_row") else value
    number = in_unit(row, unit) if isinstance(row, Mapping) else row
    return Number(number, _shown(unit), "LIVE", device.name)


def recorded(record: Record, value: float | Mapping[str, Any], unit: str) -> Number:
    """A number of a record.

    What is computed from a record is no number of it: rates and quotients are made of labeled
    numbers, by `rate` and `/`, and predictions by `model`.

    Parameters
    ----------
    record : Record
    value : float or mapping
        One of the record's rows, read in `unit` by `in_unit`; or a number that stands in the
        record, which may be scaled by a power of ten: ``1e6 * row["seconds_median"]``.
    unit : str

    Raises
    ------
    ValueError
        If the record has no such row or number.
    """
    if isinstance(value, Mapping):
        if not any(value is row or value == row for row in record.rows):
            raise ValueError(
                f"this row is not one of record {record.name!r}: take it from record.row(...)"
            )
        value = in_unit(value, unit)
    elif not _stands_in(value, (record.ceilings, record.rows)):
        raise ValueError(
            f"value = {value!r} is no number of record {record.name!r}; what is computed from "
            "it is made by rate() or model()"
        )
    return Number(value, _shown(unit), "RECORDED", record.source)


def first_recorded(record: Record, unit: str, **keys: Any) -> Number | None:
    """The first row of a record whose fields equal `keys`, in a unit; None if there is none."""
    rows = record.select(**keys)
    return recorded(record, rows[0], unit) if rows else None


def rate(amount: float, time: Number, unit: str) -> Number:
    """A counted amount over a labeled time: a rate of the same origin.

    >>> rate(2e12, paper("roca2011", "Section 5", 500.0, "ms"), "TB/s")
    4.00 TB/s  [PAPER roca2011, Section 5]

    Parameters
    ----------
    amount : float
        Bytes, flops or degrees of freedom.
    time : Number
        In "s", "ms" or "us".
    unit : str
        "GB/s", "TB/s", "GFLOP/s", "TFLOP/s", "MDOF/s" or "GDOF/s".
    """
    seconds = time.value * _RATES["seconds_median"][time.unit]
    (size,) = (units[unit] for units in _RATES.values() if unit in units)
    return replace(time, value=amount / seconds / size, unit=unit)


def paper(name: str, place: str, value: float, unit: str = "") -> Number:
    """A number that a paper prints.

    Parameters
    ----------
    name : str
        "klockner2009", "roca2011", "chen", "chan2015" or "magee2017".
    place : str
        "Table 2", "Figure 8(a)", or a section: "Section 6".
    value : float
        As the table or figure has it, or scaled by a power of ten.
    unit : str

    Raises
    ------
    ValueError
        If the paper is another one, has no such table or figure, or has another value there.
    """
    if re.match(r"(tab|fig)", place.lower()):
        items = papers.find(name, place)
        place = items[0].number
        if not any(_stands_in(value, item.rows) for item in items):
            raise ValueError(f"value = {value!r} does not stand in {name}, {place}")
    return Number(value, unit, "PAPER", f"{papers.paper(name).name}, {place}")


def model(value: float, unit: str, name: str) -> Number:
    """A number that was computed and that nobody measured.

    Parameters
    ----------
    value : float
    unit : str
    name : str
        The model, and what it was given: "ridge point, ceilings of an NVIDIA H200".
    """
    return Number(value, unit, "MODEL", name)


def significant(value: float, digits: int = 3) -> str:
    """A number to `digits` significant digits, without an exponent between 0.001 and a million.

    >>> significant(42.871), significant(0.0123), significant(123456.0)
    ('42.9', '0.0123', '123456')
    """
    if isinstance(value, int | np.integer):
        return str(value)
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.{digits - 1}e}")
    exponent = math.floor(math.log10(abs(rounded)))
    if exponent < -3 or exponent >= 6:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - exponent)}f}"


def badge(label: str, source: str = "") -> str:
    """The label as HTML: legible with no style sheet, colored by the book's.

    Raises
    ------
    ValueError
        If `label` is not LIVE, RECORDED, PAPER, MODEL, or two of them joined by "/".
    """
    parts = label.split("/")
    for part in parts:
        if part not in LABELS:
            raise ValueError(f"label = {label!r}; allowed are {', '.join(LABELS)}")
    spans = "/".join(
        f'<span class="dg-label label-{part.lower()}" style="border:1px solid currentColor;'
        f'border-radius:0.7em;padding:0 0.45em;font-size:0.75em;white-space:nowrap">{part}</span>'
        for part in parts
    )
    return f"{spans} <small>{html.escape(source)}</small>" if source else spans


def _stands_in(value: float, content: Any) -> bool:
    """Whether a number is among those of nested mappings and sequences, but for a power of ten."""
    if isinstance(content, Mapping):
        return any(_stands_in(value, item) for item in content.values())
    if isinstance(content, list | tuple):
        return any(_stands_in(value, item) for item in content)
    if isinstance(content, bool) or not isinstance(content, int | float):
        return False
    if content <= 0 or value <= 0:
        return value == content
    decades = math.log10(value) - math.log10(content)
    return math.isclose(decades, round(decades), abs_tol=1e-12)


def _shown(unit: str) -> str:
    return "" if unit == "efficiency" else unit
