"""Figures of chan2015: Bernstein-Bezier DG for acoustic waves on tetrahedra, on a GTX 980."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dgbook.acoustics.cost import PARTS, sizes
from dgbook.lab import bernstein, records
from dgbook.lab.papers import Ours, Values
from dgbook.lab.records import Record

ORDERS = range(1, 10)
DTYPE = "float32"  # all of the paper is in single precision
SETS = {
    "NPT nodal": "node",
    "EPT nodal": "element",
    "Bernstein": "factored",
    "optimal Bernstein": "optimal",
}
"""The paper's names of its sets of kernels, and ours."""


def figure1() -> Ours:
    """Nonzeros of the derivative along r in the nodal basis, and with respect to l_1."""
    rows: Values = {}
    most = 0
    for N in ORDERS:
        counts = {
            name: pattern.sum(axis=1) for name, pattern in bernstein.derivative_patterns(N).items()
        }
        most = max(most, int(counts["bernstein"].max()))
        rows[f"N = {N}"] = {
            "entries": sizes(N)[0] ** 2,
            "nodal nonzeros": int(counts["nodal"].sum()),
            "Bernstein nonzeros": int(counts["bernstein"].sum()),
        }
    rows["all orders"] = {"nonzeros in a Bernstein row, at most": most}
    return Ours(rows)


def figure2() -> Ours:
    """Nonzeros of the lift of one face and of the factors E and L_0 that it is made of."""
    rows: Values = {}
    for N in ORDERS:
        counts = {name: int(p.sum()) for name, p in bernstein.lift_patterns(N).items()}
        rows[f"N = {N}"] = {f"nonzeros of {name}": count for name, count in counts.items()}
    return Ours(rows, "drawn in chapter 8")


def figure3() -> Ours:
    """Slices of a sweep, their points, and its products against those of the dense lift."""
    rows: Values = {}
    for N in ORDERS:
        counts = [len(points) for points in bernstein.slices(N)]
        Np = sum(counts)
        rows[f"N = {N}"] = {
            "slices": len(counts),
            "points of the first": counts[0],
            "points of all": Np,
            "products of a sweep": 3 * (Np - counts[0]),
            "products of the dense lift": Np * counts[0],
        }
    return Ours(rows, "drawn in chapter 8")


def figure4() -> Ours:
    """Condition numbers, and by how much E_L is better off than the lift."""
    rows: Values = {f"N = {N}": bernstein.condition_numbers(N) for N in ORDERS}
    ratios = [row["Bernstein lift"] / row["E_L"] for row in rows.values()]
    mean = float(np.exp(np.log(ratios[2:]).mean()))
    return Ours(rows | {"mean over N = 3..9": {"Bernstein lift over E_L": mean}})


def figure5() -> Ours:
    """The smallest and the largest entry of the lift matrices and of the factors."""
    rows: Values = {}
    for N in ORDERS:
        rows[f"N = {N}"] = {
            f"{name}, {which}": value
            for name, entries in bernstein.extreme_entries(N).items()
            for which, value in zip(("smallest", "largest"), entries, strict=True)
        }
    return Ours(rows, "drawn in chapter 8")


def figure6() -> Ours:
    """Errors at the end of a long run by the paper's kernels, and the largest on the way there.

    Largest errors that agree to three digits count as the same.
    """
    record = records.load("acoustics/error")
    elements = {row["size"]["K"] for row in record.rows}
    rows: Values = {"mesh": {"elements": max(elements)}}
    for row in record.select(dtype=DTYPE, path="paper"):
        columns = rows.setdefault(f"N = {row['order']}", {"t": row["times"][-1]})
        columns[f"{row['basis']}, at the end"] = row["errors"][-1]
        columns[f"{row['basis']}, largest"] = max(row["errors"])
    ratios = []
    for columns in rows.values():
        if {"nodal, largest", "bernstein, largest"} <= columns.keys():
            ratio = columns["bernstein, largest"] / columns["nodal, largest"]
            columns["Bernstein over nodal"] = ratio
            ratios.append(ratio)
    if ratios:
        rows["all orders"] = {_NO_MORE: 100 * float(np.mean(np.array(ratios) < 1.001))}
    return Ours(rows)


def figure7() -> Ours:
    """Share of volume, surface and update in a stage, and what fifty of them take."""

    def shares(parts: Parts) -> dict[str, float]:
        whole = sum(part.seconds for part in parts.values())
        return {f"{name}, %": 100 * part.seconds / whole for name, part in parts.items()} | {
            "fifty, ms": 50e3 * whole
        }

    return _by_set(shares)


def figure8() -> Ours:
    """How many times faster the Bernstein kernels are than the nodal ones, part by part."""
    record = records.load("acoustics/parts")
    rows: Values = {}
    low = []
    for N in _orders(record):
        parts = {name: _parts(record, kernels, N) for name, kernels in SETS.items()}
        columns = rows[f"N = {N}"] = {}
        for name in ("Bernstein", "optimal Bernstein"):
            for rival in ("NPT nodal", "EPT nodal"):
                for part in ("volume", "surface"):
                    ratio = parts[rival][part].seconds / parts[name][part].seconds
                    columns[f"{part}, {name} over {rival}"] = ratio
                whole, ours = (sum(p.seconds for p in parts[n].values()) for n in (rival, name))
                columns[f"total, {name} over {rival}"] = whole / ours
        if N in (3, 4):
            low.append(columns["surface, Bernstein over NPT nodal"])
    if low:
        rows["surface, at low orders"] = {"Bernstein over NPT": float(np.mean(low))}
    because = f"{_ANOTHER}; ours at low orders is the mean over N = 3 and 4"
    return Ours.recorded(record, rows, because)


def figure9() -> Ours:
    """Floating-point rate of volume and surface kernel, and of both at the highest order."""
    return _rates("TFLOP/s", lambda part: part.flops / part.seconds * 1e-12)


def figure10() -> Ours:
    """Bandwidth of volume and surface kernel: what they must move, over their time."""
    return _by_part("TB/s", lambda part: part.bytes / part.seconds * 1e-12)


def figure11() -> Ours:
    """Flops a byte and TFLOP/s of volume and surface kernel: a roofline's points."""

    def point(parts: Parts) -> dict[str, float]:
        return {
            f"{name}, {unit}": value
            for name in ("volume", "surface")
            for unit, value in (
                ("flops per byte", parts[name].flops / parts[name].bytes),
                ("TFLOP/s", parts[name].flops / parts[name].seconds * 1e-12),
            )
        }

    return _by_set(point)


def figure12() -> Ours:
    """Share of the attainable rate that volume and surface kernel reach."""
    return _by_part("%", lambda part: 100 * part.floor / part.seconds)


@dataclass(frozen=True)
class Part:
    """One part of a stage: seconds, floor, flops and bytes, sums over its kernels."""

    seconds: float
    floor: float
    flops: float
    bytes: float


Parts = dict[str, Part]


def _parts(record: Record, kernels: str, N: int) -> Parts:
    """Volume, surface (the EPT kernels for flux and lift together) and update of a set."""
    parts: Parts = {}
    groups = {"volume": ("volume",), "update": ("update",)}
    groups["surface"] = tuple(p for p in PARTS[kernels] if p not in groups)
    for name in ("volume", "surface", "update"):
        rows = [
            record.row(order=N, dtype=DTYPE, variant=kernels, path=part) for part in groups[name]
        ]
        keys = "seconds_median", "floor_seconds", "flops", "bytes"
        parts[name] = Part(*(sum(row[key] for row in rows) for key in keys))
    return parts


def _orders(record: Record) -> list[int]:
    return sorted({row["order"] for row in record.select(dtype=DTYPE)})


def _each(record: Record) -> Iterator[tuple[str, Parts]]:
    for N in _orders(record):
        for name, kernels in SETS.items():
            yield f"N = {N}, {name}", _parts(record, kernels, N)


def _by_set(columns: Callable[[Parts], dict[str, float]]) -> Ours:
    """Columns by order and set of kernels, from the record acoustics/parts."""
    record = records.load("acoustics/parts")
    return Ours.recorded(record, {name: columns(parts) for name, parts in _each(record)}, "")


def _by_part(unit: str, value: Callable[[Part], float]) -> Ours:
    """A value of volume and surface kernel."""
    return _by_set(
        lambda parts: {f"{name}, {unit}": value(parts[name]) for name in ("volume", "surface")}
    )


def _rates(unit: str, value: Callable[[Part], float]) -> Ours:
    """As `_by_part`, and volume and surface together at the highest order by set."""
    ours = _by_part(unit, value)
    record = records.load("acoustics/parts")
    rows = dict(ours.rows)
    for name, kernels in SETS.items():
        parts = _parts(record, kernels, _orders(record)[-1])
        pairs = zip(*(vars(parts[p]).values() for p in ("volume", "surface")), strict=True)
        rows[name] = {"rate": value(Part(*(sum(pair) for pair in pairs)))}
    because = f"{_ANOTHER}; ours is of volume and surface together at the highest order"
    return Ours.recorded(record, rows, because)


_ANOTHER = "GPU and kernels, here in Numba, are others"
_NO_MORE = "orders at which Bernstein errs no more, %"
