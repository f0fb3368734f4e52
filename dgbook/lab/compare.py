"""The best kernels of all families side by side.

Everything here is read from records: what a row says of flops, bytes and seconds is enough to place
a method on the roofline of any GPU, and no family has to know of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dgbook.lab import records
from dgbook.lab.records import Record


@dataclass(frozen=True)
class Method:
    """What stands for a family in a comparison.

    Attributes
    ----------
    name : str
    record : str
        Where its stages, products or steps are recorded: "maxwell/stage".
    paths : tuple of str
        Those of its kernels that do the whole of it.
    unit : {"stage", "product", "step"}
        What a row's seconds are of.
    keys, size : mapping
        Fields of a row, and of its size, that must be so.
    """

    name: str
    record: str
    paths: tuple[str, ...]
    unit: str
    keys: Mapping[str, Any] = field(default_factory=dict)
    size: Mapping[str, Any] = field(default_factory=dict)


_PRODUCTS = ("paper", "fused", "sliced", "wide", "bulk")
_SCHEMES = ("classic", "persistent", "shared", "register", "hybrid", "tiled")
METHODS = (
    Method("Maxwell, nodal", "maxwell/bases", ("fused",), "stage"),
    Method("Maxwell, Bernstein", "maxwell/bases", ("bernstein",), "stage"),
    Method("sound, nodal", "acoustics/stage", ("fused",), "stage", {"basis": "nodal"}),
    Method(
        "sound, Bernstein", "acoustics/stage", ("fused",), "stage",
        {"basis": "bernstein", "variant": ""},
    ),
    Method("Euler, quadrature", "euler/stage", ("fused",), "stage"),
    Method("HDG product, 2D", "hdg/product", _PRODUCTS, "product", size={"dim": 2}),
    Method("HDG product, 3D", "hdg/product", _PRODUCTS, "product", size={"dim": 3}),
    Method(
        "heat 1D, tiles", "swept/step", _SCHEMES, "step", size={"problem": "heat", "n": 2**20}
    ),
    Method(
        "Euler 1D, tiles", "swept/step", _SCHEMES, "step", size={"problem": "euler", "n": 2**20}
    ),
)  # fmt: skip
"""The methods of the five papers, in the order of the chapters; all but Euler's in two shapes.

Of what stands beside the swept rule tiles are the fastest on so many points.
"""


def best_rows(
    record: Record,
    method: Method,
) -> dict[tuple[int | None, str], dict[str, Any]]:
    """The fastest row of a method for each (order, dtype).

    Rows of the same order and precision may differ in size by padding.
    So they are compared by their time per degree of freedom.
    """
    best: dict[tuple[int | None, str], dict[str, Any]] = {}
    for row in record.select(**method.keys):
        if row["path"] not in method.paths or not row["dofs"]:
            continue
        size = {key: row["size"].get(key) for key in method.size}
        if size != method.size:
            continue
        place = row["order"], row["dtype"]
        fastest = best.get(place, row)
        best[place] = min(fastest, row, key=_time_per_dof)
    return best


def gather(
    methods: tuple[Method, ...] = METHODS, folder: str | Path | None = None
) -> dict[str, tuple[Record, dict[tuple[int | None, str], dict[str, Any]]]]:
    """By a method's name its record and best rows; methods without a record are left out."""
    best = {}
    for method in methods:
        try:
            record = records.load(method.record, folder)
        except FileNotFoundError:
            continue
        rows = best_rows(record, method)
        if rows:
            best[method.name] = record, rows
    return best


def source(*measured: Record) -> str:
    """Where numbers of several records come from, as a label says it: GPUs, first and last day."""
    gpus = " and ".join(sorted({record.gpu for record in measured}))
    days = sorted({record.date[:10] for record in measured})
    return f"{gpus}, {days[0]}" + (f" to {days[-1]}" if len(days) > 1 else "")


def _time_per_dof(row: Mapping[str, Any]) -> float:
    return row["seconds_median"] / row["dofs"]
