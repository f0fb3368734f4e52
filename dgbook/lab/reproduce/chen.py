"""Tables and figures of chen: quadrature DG for a vortex in the Euler equations, on a GTX 1080."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dgbook.euler.cost import PAPER as PARTS
from dgbook.euler.cost import STAGES
from dgbook.euler.exact import Vortex
from dgbook.euler.problem import pressure, velocity
from dgbook.gpu import device
from dgbook.lab import euler as measure
from dgbook.lab import records
from dgbook.lab.papers import Ours, Values

STEPS = 10  # of which the paper gives the time
DTYPE = "float64"  # the conclusion speaks of double precision
FAR = 1e3  # from the vortex, where nothing of it is left
CPU_CELLS = 16  # of Figure 2's meshes the one that takes a processor seconds


def table1() -> Ours:
    """Ten steps by the paper's kernels, by threads per block."""
    record = records.load("euler/blocks")
    rows: Values = {}
    for row in record.select(dtype=DTYPE, path="paper"):
        columns = rows.setdefault(f"N = {_cells(row)}, p = {row['order']}", {})
        columns[str(row["plan"]["threads"])] = _ten_steps(row)
    return Ours.recorded(record, rows, f"{_ANOTHER}; the steps are recorded once and replayed")


def table2() -> Ours:
    """Ten steps on one core and by the paper's kernels; on all cores, and one kernel a stage."""
    record = records.load("euler/sizes")
    rows: Values = {}
    for row in record.select(dtype=DTYPE):
        columns = rows.setdefault(f"p = {row['order']}, N = {_cells(row)}", {})
        columns[_WHO.get(row["path"]) or _cores(row)] = _ten_steps(row)
    for columns in rows.values():
        if "CPU" in columns:
            columns["speed-up"] = columns["CPU"] / columns["GPU"]
            columns["CPU over fused"] = columns["CPU"] / columns["fused, ms"]
        if "all cores, ms" in columns:
            columns["all cores over fused"] = columns["all cores, ms"] / columns["fused, ms"]
    return Ours.recorded(record, rows, f"{_ANOTHER}, and the processor is younger, too")


def table3() -> Ours:
    """Bandwidth and rate of the paper's kernels."""
    record = records.load("euler/kernels")
    rows: Values = {}
    for row in record.select(dtype=DTYPE):
        columns = rows.setdefault(f"p = {row['order']}", {})
        bandwidth, rate = (row[key] / row["seconds_median"] * 1e-9 for key in ("bytes", "flops"))
        if row["path"] in PARTS[:2]:
            columns |= {f"{row['path']} bandwidth": bandwidth, f"{row['path']} rate": rate}
        else:
            columns[f"{row['path']}, GB/s"] = bandwidth
    return Ours.recorded(
        record,
        rows,
        f"{_ANOTHER}; bytes and flops are here the least that each kernel needs, and the paper's "
        "what a profiler saw",
    )


def figure1() -> Ours:
    """The vortex at t = 0: what its pressure is, and how fast it turns."""
    p, u = _disturbance()
    far = Vortex()(FAR, FAR, 0.0)
    rest, speed = float(pressure(far)), float(velocity(far)[0])
    return Ours(
        {
            "pressure": {"of the stream": rest, "at the center": rest + float(p.min())},
            "x-velocity": {"of the stream": speed, "largest": speed + float(u.max())},
        },
        "drawn in chapter 7",
    )


def figure2(cells: int) -> Ours:
    """How far pressure and x-velocity are from the exact ones at t = 10.

    Live on a GPU and, on the coarse mesh, on a processor; else from the record.
    """
    if device().kind == "cuda" or cells == CPU_CELLS:
        measured = traveled(cells)
    else:
        rows = records.load("euler/figure2").select(order=2, dtype=DTYPE)
        measured = next(row for row in rows if _cells(row) == cells)
    values = {}
    names = ("pressure", "x-velocity"), ("pressure_errors", "velocity_errors")
    for name, key, exact in zip(*names, _disturbance(), strict=True):
        norm = 10 * float(np.sqrt((exact**2).mean()))  # of the box of side 10
        values[f"{name}, L2 error"] = measured[key][-1]
        values[f"{name}, % of the vortex"] = 100 * measured[key][-1] / norm
    note = "the same flow, for five rounds, is drawn in chapter 7"
    return Ours({f"p = 2, N = {cells}": values}, note)


@lru_cache(maxsize=2)
def traveled(cells: int) -> dict[str, Any]:
    """What `measure.vortex_run` finds of the paper's vortex in a run of Figure 2."""
    vortex, lower = measure.vortices()["paper"]
    times = [measure.FIGURE_2_END]
    return measure.vortex_run(vortex, lower, cells, 2, DTYPE, device(), times)[1]


def _disturbance() -> tuple[np.ndarray, np.ndarray]:
    """What the vortex adds to the stream's pressure and x-velocity, at points of the whole box."""
    x = np.linspace(measure.LOWER, measure.UPPER, 401)
    state = Vortex()(x[:, None], x, 0.0)
    far = Vortex()(FAR, FAR, 0.0)
    return pressure(state) - pressure(far), velocity(state)[0] - velocity(far)[0]


def _cells(row: dict) -> int:
    """N of a mesh of 2 N^2 triangles."""
    return round((row["size"]["K"] / 2) ** 0.5)


def _ten_steps(row: dict) -> float:
    """Milliseconds of ten steps, from a row about a stage."""
    return 1e3 * STEPS * STAGES * row["seconds_median"]


def _cores(row: dict) -> str:
    return "CPU" if row["size"]["cores"] == 1 else "all cores, ms"


_WHO = {"paper": "GPU", "fused": "fused, ms"}
_ANOTHER = "it is another GPU"
