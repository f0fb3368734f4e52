"""The best kernels of all families side by side.

Everything here is read from records: what a row says of flops, bytes and seconds is enough to place
a method on the roofline of any GPU, and no family has to know of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dgbook.gpu.source import with_included
from dgbook.lab import records
from dgbook.lab.records import Record

PACKAGE = Path(__file__).parents[1]


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
    sources : tuple of str
        Files in `dgbook` of its best kernel, or of one that takes 5 percent longer at most; a .cu
        file stands for those that it includes, too.
    """

    name: str
    record: str
    paths: tuple[str, ...]
    unit: str
    keys: Mapping[str, Any] = field(default_factory=dict)
    size: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[str, ...] = ()


_PRODUCTS = ("paper", "fused", "sliced", "wide", "bulk")
_SCHEMES = ("classic", "persistent", "shared", "register", "hybrid", "tiled")
METHODS = (
    Method(
        "Maxwell, nodal", "maxwell/bases", ("fused",), "stage",
        sources=("maxwell/kernels/fused/kernel.cu",),
    ),
    Method(
        "Maxwell, Bernstein", "maxwell/bases", ("bernstein",), "stage",
        sources=("maxwell/kernels/bernstein_fused/kernel.cu",),
    ),
    Method(
        "sound, nodal", "acoustics/stage", ("fused",), "stage", {"basis": "nodal"},
        sources=("acoustics/kernels/fused/kernel.cu",),
    ),
    Method(
        "sound, Bernstein", "acoustics/stage", ("fused",), "stage",
        {"basis": "bernstein", "variant": ""},
        sources=("acoustics/kernels/bernstein_fused/kernel.cu",),
    ),
    Method(
        "Euler, quadrature", "euler/stage", ("fused",), "stage",
        sources=("euler/kernels/fused/kernel.cu",),
    ),
    Method(
        "HDG product, 2D", "hdg/product", _PRODUCTS, "product", size={"dim": 2},
        sources=("hdg/kernels/wide.cu",),
    ),
    Method(
        "HDG product, 3D", "hdg/product", _PRODUCTS, "product", size={"dim": 3},
        sources=("hdg/kernels/wide.cu",),
    ),
    Method(
        "heat 1D, tiles", "swept/step", _SCHEMES, "step", size={"problem": "heat", "n": 2**20},
        sources=("swept/kernels/tiled.py", "swept/kernels/row.py"),
    ),
    Method(
        "Euler 1D, tiles", "swept/step", _SCHEMES, "step", size={"problem": "euler", "n": 2**20},
        sources=("swept/kernels/tiled.py", "swept/kernels/row.py"),
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


def code_lines(method: Method) -> int:
    """Lines of its kernel's files that hold code: not empty, no comment, no docstring."""
    count = 0
    for path in (path for name in method.sources for path in with_included(PACKAGE / name)):
        text = path.read_text(encoding="utf-8")
        end = ""  # of the comment or docstring that we are in
        for line in (line.strip() for line in text.splitlines()):
            if end:
                end = "" if end in line else end
            elif line.startswith(('"""', "/*")):
                mark = '"""' if line.startswith('"""') else "*/"
                end = "" if mark in line[len(mark) :] else mark
            elif line and not line.startswith(("#include", "# ", "//")):
                count += 1
    return count


def _time_per_dof(row: Mapping[str, Any]) -> float:
    return row["seconds_median"] / row["dofs"]
