"""Figures of chan2015: Bernstein-Bezier DG for acoustic waves on tetrahedra, on a GTX 980."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dgbook import records
from dgbook.acoustics import bernstein
from dgbook.acoustics.cost import PARTS, sizes
from dgbook.records import Record
from dgbook.reproduce.registry import Item, Ours, Paper, Values

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
    return _recorded(record, rows, because)


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
                ("flops a byte", parts[name].flops / parts[name].bytes),
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
    found: Parts = {}
    groups = {"volume": ("volume",), "update": ("update",)}
    groups["surface"] = tuple(p for p in PARTS[kernels] if p not in groups)
    for name in ("volume", "surface", "update"):
        rows = [
            record.row(order=N, dtype=DTYPE, variant=kernels, path=part) for part in groups[name]
        ]
        keys = "seconds_median", "floor_seconds", "flops", "bytes"
        found[name] = Part(*(sum(row[key] for row in rows) for key in keys))
    return found


def _orders(record: Record) -> list[int]:
    return sorted({row["order"] for row in record.select(dtype=DTYPE)})


def _each(record: Record) -> Iterator[tuple[str, Parts]]:
    for N in _orders(record):
        for name, kernels in SETS.items():
            yield f"N = {N}, {name}", _parts(record, kernels, N)


def _by_set(columns: Callable[[Parts], dict[str, float]]) -> Ours:
    """Columns by order and set of kernels, from the record acoustics/parts."""
    record = records.load("acoustics/parts")
    return _recorded(record, {name: columns(parts) for name, parts in _each(record)}, "")


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
    return _recorded(record, rows, because)


def _recorded(record: Record, rows: Values, because: str) -> Ours:
    return Ours(rows, because, "RECORDED", record.source)


_ANOTHER = "GPU and kernels, here in Numba, are others"
_NO_MORE = "orders at which Bernstein errs no more, %"
_PLOTTED = "Plotted only."
_KERNELS = (
    "Nodal node-per-thread (NPT) and element-per-thread (EPT), Bernstein and optimal Bernstein "
    "kernels, single precision."
)

PAPER = Paper(
    name="chan2015",
    authors="J. Chan, T. Warburton",
    title="GPU-accelerated Bernstein-Bezier discontinuous Galerkin methods for wave problems",
    year=2015,
    hardware="NVIDIA GTX 980, single precision",
    items=(
        Item(
            "Figure 1",
            "Nonzeros of a nodal and of a Bernstein-Bezier derivative matrix",
            "count",
            8,
            rows={"all orders": {"nonzeros in a Bernstein row, at most": 4}},
            note="Drawn. By Lemma 3.1 a row of the Bernstein matrix has four nonzeros at most.",
            compute=figure1,
        ),
        Item(
            "Figure 2",
            "Structure of the Bernstein-Bezier lift",
            "illustration",
            8,
            note="The text never refers to it; it stands with the lift matrices of section 3.1.2.",
            compute=figure2,
        ),
        Item(
            "Figure 3",
            "The lift as a sweep of slices through the tetrahedron",
            "illustration",
            8,
            compute=figure3,
        ),
        Item(
            "Figure 4",
            "Condition numbers of derivative and lift matrices by order, both bases",
            "accuracy",
            8,
            rows={"mean over N = 3..9": {"Bernstein lift over E_L": 3.2}},
            note=(
                "Plotted only. The text: the lift reduction E_L is conditioned about half an order "
                "of magnitude better than the whole Bernstein lift."
            ),
            tolerance=0.25,
            compute=figure4,
        ),
        Item(
            "Figure 5",
            "Smallest and largest entry of the lift matrices by order, both bases",
            "accuracy",
            8,
            note=_PLOTTED,
            compute=figure5,
        ),
        Item(
            "Figure 6",
            "Error over long time in single precision, by order, both bases",
            "accuracy",
            8,
            rows={"mesh": {"elements": 1536}, "all orders": {_NO_MORE: 100}},
            note="Plotted only. The text: the Bernstein basis errs as much as the nodal or less.",
            compute=figure6,
            record="acoustics/error",
        ),
        Item(
            "Figure 7",
            "Share of volume, surface and update in the run time, by order",
            "measurement",
            8,
            note=f"Fifty right-hand sides. {_KERNELS} {_PLOTTED}",
            compute=figure7,
            record="acoustics/parts",
        ),
        Item(
            "Figure 8",
            "Speed-up of Bernstein-Bezier over both nodal kernels, by order",
            "measurement",
            8,
            rows={"surface, at low orders": {"Bernstein over NPT": 2}},
            note=(
                "Plotted; the text says 'roughly two times'. For large N it expects a factor of 4, "
                "and no limit for the optimal kernel."
            ),
            compute=figure8,
            record="acoustics/parts",
        ),
        Item(
            "Figure 9",
            "Floating-point rate of each kernel by order",
            "measurement",
            8,
            rows={"NPT nodal": {"rate": 1.0}, "EPT nodal": {"rate": 2.0}},
            units={"rate": "TFLOP/s"},
            note=f"{_KERNELS} Plotted; the text says 'roughly a teraflop' and 'close to two'.",
            compute=figure9,
            record="acoustics/parts",
        ),
        Item(
            "Figure 10",
            "Bandwidth of each kernel by order",
            "measurement",
            8,
            note=f"{_KERNELS} {_PLOTTED}",
            compute=figure10,
            record="acoustics/parts",
        ),
        Item(
            "Figure 11",
            "Rooflines of volume and surface kernels, both bases",
            "measurement",
            8,
            note=f"{_KERNELS} {_PLOTTED}",
            compute=figure11,
            record="acoustics/parts",
        ),
        Item(
            "Figure 12",
            "Share of the attainable rate that each kernel reaches, by order",
            "measurement",
            8,
            note=f"{_KERNELS} {_PLOTTED}",
            compute=figure12,
            record="acoustics/parts",
        ),
    ),
)
