"""Tables and figures of roca2011: the matrix product of a hybridized DG method, on a GTX 285."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dgbook.hdg.blocks import block_bytes, csr_bytes, face_columns
from dgbook.hdg.plan import METHODS
from dgbook.lab import records
from dgbook.lab.papers import Ours, Values, from_to
from dgbook.lab.records import Record
from dgbook.mesh import Mesh, build

DTYPE = "float64"  # of the tables
MIB = 2**20
NODES = 4  # of a face in Figure 1
CORE = "cores:in order"  # one core, sums in order, as the paper's compiler had them
STEP = "paper:contract"


def table1() -> Ours:
    """What the five Newton systems of a flow past a cylinder, on as many faces, hold."""
    rows: Values = {}
    for order, row in _by_order(records.load("hdg/tables"), "paper").items():
        faces, m, nonzeros = row["size"]["faces"], row["size"]["m"], row["nonzeros"]
        values = faces * BLOCKS * m * m
        memory = csr_bytes(faces * m, nonzeros) / MIB, block_bytes(faces, BLOCKS, m) / MIB
        numbers = m, faces * m, nonzeros, values, values / nonzeros, *memory, memory[1] / memory[0]
        rows[f"p = {order}"] = dict(zip(_MEMORY_COLUMNS, numbers, strict=True))
    return Ours(
        rows,
        "the mesh is another one with as many faces, which has fewer on the boundary: that leaves "
        "out fewer blocks",
    )


def table2() -> Ours:
    """The paper's two steps by themselves."""
    record = records.load("hdg/tables")
    steps = {name: _by_order(record, f"paper:{name}") for name in ("inflate", "contract")}
    rows: Values = {}
    for order in steps["contract"]:
        times = [_milliseconds(steps[name][order]) for name in ("inflate", "contract")]
        both = sum(times)
        shares = (100 * t / both for t in times)
        rows[f"p = {order}"] = dict(zip(_STEPS_COLUMNS, (*times, both, *shares), strict=True))
    return Ours.recorded(
        record, rows, f"{_ANOTHER}, whose cache holds the smallest of these matrices"
    )


def table3() -> Ours:
    """SciPy's product on the CPU, cuSPARSE, the paper's two steps, and what else was measured."""
    record = records.load("hdg/tables")
    rows: Values = {}
    for order in _by_order(record, "paper"):
        at = {row["path"]: _milliseconds(row) for row in record.select(order=order, dtype=DTYPE)}
        times = at["rival:scipy"], at["rival:csr"], at["paper"]
        columns = dict(zip(_RIVALS_COLUMNS, (*times, *(times[0] / t for t in times)), strict=True))
        columns |= {f"{name}, ms": at[f"rival:{name}"] for name in ("bsr", "gemv")}
        best = min(at[method] for method in METHODS if method in at)
        columns |= {"our best, ms": best, "our best over cuSPARSE": times[1] / best}
        rows[f"p = {order}"] = columns
    return Ours.recorded(
        record,
        rows,
        f"{_ANOTHER}, whose cache holds the smallest matrix, and SciPy stands for MATLAB",
    )


def six_faces() -> Mesh:
    """Three triangles around a point, the one way in which they have six edges in a plane."""
    angles = np.pi / 2 + 2 * np.pi / 3 * np.arange(3)
    corners = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return build(np.vstack([corners, [[0.0, 0.0]]]), np.array([[0, 1, 3], [1, 2, 3], [2, 0, 3]]))


def figure1(panel: str) -> Ours:
    """What is drawn: a mesh, the blocks of its matrix, and how they are stored."""
    mesh = six_faces()
    columns = face_columns(mesh)
    faces, slots = columns.shape
    blocks = [len(set(row)) for row in columns.tolist()]
    size = NODES * NODES
    facts = {
        "a": {
            "triangles": mesh.K,
            "faces": faces,
            "of them on the boundary": len(mesh.boundary_faces),
            "nodes": faces * NODES,
        },
        "b": {
            "rows of blocks": faces,
            "blocks in an inner row": max(blocks),
            "blocks in a boundary row": min(blocks),
            "blocks": sum(blocks),
            "numbers in them": sum(blocks) * size,
            "numbers of a full matrix": (faces * NODES) ** 2,
        },
        "c": {
            "blocks in every row": slots,
            "blocks": faces * slots,
            "of them filled with zeros": faces * slots - sum(blocks),
            "numbers in them": faces * slots * size,
        },
    }
    return Ours({"six faces, four nodes each": facts[panel]}, "drawn in chapter 10")


def figure2(where: str, dtype: str) -> Ours:
    """GFLOP/s of the contraction by memory: least and most over both dimensions and all orders."""
    return _curves(where, dtype, {"rate": _gigaflops})


def figure3(where: str, dtype: str) -> Ours:
    """Effective bandwidth of the contraction by memory, and its share of what a copy reaches."""
    if where == "CPU":  # on which no copy was measured
        return _curves(where, dtype, {"bandwidth": _gigabytes})
    share = {"share": lambda row: 100 * row["efficiency"], "GB/s": _gigabytes}
    return _curves(where, dtype, share, ", of what a copy reaches on it in the same run")


def figure4(dtype: str) -> Ours:
    """Time of a core over that of the GPU for the same contraction, by memory."""
    sizes = records.load(_WHERE["GPU"][0])
    cores = records.load(_WHERE["CPU"][0])
    times = {_place(row): row["seconds_median"] for row in sizes.select(path=STEP, dtype=dtype)}
    ratios: dict[str, list[tuple[int, float]]] = {"GPU over CPU": [], "GPU over all cores": []}
    for column, path in zip(ratios, (CORE, "cores:all"), strict=True):
        for row in cores.select(path=path, dtype=dtype):
            if _place(row) in times:
                ratio = row["seconds_median"] / times[_place(row)]
                ratios[column].append((row["size"]["matrix_bytes"], ratio))
    rows: Values = {}
    for column, pairs in ratios.items():
        for size, values in _binned(pairs):
            rows.setdefault(size, {}).update(from_to(column, values))
    smallest = min(ratio for _, ratio in ratios["GPU over CPU"])
    rows["smallest"] = {"GPU over CPU from": smallest}
    return Ours.recorded(
        sizes, rows, f"{_ANOTHER}, the processor is younger, and small matrices are in caches"
    )


def _curves(
    where: str, dtype: str, columns: dict[str, Callable[[dict[str, Any]], float]], more: str = ""
) -> Ours:
    """The least and the most of some values by memory, and of large sizes.

    Those are of the largest matrix of each dimension and order. On the GPU the fastest of this
    package's products is beside the paper's contraction.
    """
    name, path = _WHERE[where]
    record = records.load(name)
    series = {"": record.select(path=path, dtype=dtype)}
    if where == "GPU":
        series["our best, "] = _fastest(record, dtype)
    rows: Values = {}
    for which, of_path in series.items():
        ascending = sorted(of_path, key=lambda row: row["size"]["matrix_bytes"])
        largest = {(row["size"]["dim"], row["order"]): row for row in ascending}
        for column, value in columns.items():
            pairs = [(row["size"]["matrix_bytes"], value(row)) for row in ascending]
            for size, values in _binned(pairs):
                rows.setdefault(size, {}).update(from_to(which + column, values))
            values = [value(row) for row in largest.values()]
            rows.setdefault("large sizes", {}).update(from_to(which + column, values))
    because = _ANOTHER if where == "GPU" else "it is another processor"
    return Ours.recorded(record, rows, because + more)


def _fastest(record: Record, dtype: str) -> list[dict[str, Any]]:
    """Of each matrix the row of the fastest of this package's whole products."""
    best: dict[tuple[int, int, int], dict[str, Any]] = {}
    for method in METHODS:
        for row in record.select(path=method, dtype=dtype):
            rival = best.setdefault(_place(row), row)
            if row["seconds_median"] < rival["seconds_median"]:
                best[_place(row)] = row
    return list(best.values())


def _binned(pairs: Iterable[tuple[int, float]]) -> list[tuple[str, list[float]]]:
    """Values by about how many MiB they belong to: 1, 2, 5, 10 and so on, ascending."""
    groups: dict[int, list[float]] = {}
    for nbytes, value in pairs:
        exponent = math.floor(math.log10(nbytes / MIB))
        nominal = [round(c * 10.0**exponent, 3) for c in (1, 2, 5, 10)]
        nearest = min(nominal, key=lambda c: abs(math.log(nbytes / MIB / c)))
        groups.setdefault(nearest, []).append(value)
    return [(f"{size:g} MiB", groups[size]) for size in sorted(groups)]


def _by_order(record: Record, path: str) -> dict[int, dict[str, Any]]:
    """The rows of a path in the tables' precision, by ascending order."""
    by_order = {row["order"]: row for row in record.select(path=path, dtype=DTYPE)}
    return dict(sorted(by_order.items()))


def _place(row: dict[str, Any]) -> tuple[int, int, int]:
    return row["size"]["dim"], row["order"], row["size"]["faces"]


def _milliseconds(row: dict[str, Any]) -> float:
    return 1e3 * row["seconds_median"]


def _gigaflops(row: dict[str, Any]) -> float:
    return row["flops"] / row["seconds_median"] * 1e-9


def _gigabytes(row: dict[str, Any]) -> float:
    return row["bytes"] / row["seconds_median"] * 1e-9


_WHERE = {"CPU": ("hdg/cores", CORE), "GPU": ("hdg/sizes", STEP)}
"""The records of both machines, and what in them is the paper's contraction."""
BLOCKS = 5  # of a row: a face and the other faces of two triangles
_ANOTHER = "it is another GPU"

_MEMORY_COLUMNS = (
    "unknowns of a face",
    "unknowns",
    "CSR values",
    "block values",
    "block values / CSR values",
    "CSR memory",
    "block memory",
    "block memory / CSR memory",
)
_STEPS_COLUMNS = ("inflate", "contract", "both", "share inflate", "share contract")
_RIVALS_COLUMNS = (
    "MATLAB",
    "cuSPARSE",
    "proposed",
    "MATLAB speed-up",
    "cuSPARSE speed-up",
    "proposed speed-up",
)
