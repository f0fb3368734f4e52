"""Tables and figures of chen: quadrature DG for a vortex in the Euler equations, on a GTX 1080."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

from dgbook import records
from dgbook.euler import measure
from dgbook.euler.cost import PAPER as PARTS
from dgbook.euler.cost import STAGES
from dgbook.euler.exact import Vortex
from dgbook.euler.problem import pressure, velocity
from dgbook.gpu import device
from dgbook.records import Record
from dgbook.reproduce.registry import Item, Ours, Paper, Values, grid

STEPS = 10  # of which the paper gives the time
DTYPE = "float64"  # the conclusion speaks of double precision
FAR = 1e3  # from the vortex, where nothing of it is left
CPU_CELLS = 16  # of Figure 2's meshes the one that takes a processor seconds


def table1() -> Ours:
    """Ten steps by the paper's kernels, by threads a block."""
    record = records.load("euler/blocks")
    rows: Values = {}
    for row in record.select(dtype=DTYPE, path="paper"):
        columns = rows.setdefault(f"N = {_cells(row)}, p = {row['order']}", {})
        columns[str(row["plan"]["threads"])] = _ten_steps(row)
    return _recorded(record, rows, f"{_ANOTHER}; the steps are recorded once and replayed")


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
    return _recorded(record, rows, f"{_ANOTHER}, and the processor is younger, too")


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
    return _recorded(
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
        found = travelled(cells)
    else:
        rows = records.load("euler/figure2").select(order=2, dtype=DTYPE)
        found = next(row for row in rows if _cells(row) == cells)
    values = {}
    names = ("pressure", "x-velocity"), ("pressure_errors", "velocity_errors")
    for name, key, exact in zip(*names, _disturbance(), strict=True):
        norm = 10 * float(np.sqrt((exact**2).mean()))  # of the box of side 10
        values[f"{name}, L2 error"] = found[key][-1]
        values[f"{name}, % of the vortex"] = 100 * found[key][-1] / norm
    return Ours({f"p = 2, N = {cells}": values}, "drawn in chapter 7")


@lru_cache(maxsize=2)
def travelled(cells: int) -> dict[str, Any]:
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


def _recorded(record: Record, rows: Values, because: str) -> Ours:
    return Ours(rows, because, "RECORDED", record.source)


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

_BLOCKS = {
    "N = 160, p = 0": (41.978, 52.031, 50.972, 51.697, 52.069),
    "N = 160, p = 1": (211.883, 227.306, 235.896, 228.627, 221.035),
    "N = 160, p = 2": (1037.709, 1123.094, 1135.604, 1130.568, 1140.236),
    "N = 320, p = 0": (109.953, 159.936, 162.701, 165.591, 168.216),
    "N = 320, p = 1": (695.748, 889.766, 905.512, 915.440, 853.13),
    "N = 320, p = 2": (3641.40, 4071.97, 4083.567, 4084.301, 3246.27),
}

# By p: CPU, GPU and speed-up over N = 32, 64, 128, 256, 512.
_SIZES = (32, 64, 128, 256, 512)
_CPU = (
    (59.718, 238.092, 1011.105, 4127.669, 16266.888),
    (262.168, 1069.318, 4357.10, 17851.866, 71707.630),
    (787.065, 3279.467, 13300.709, 53283.997, 212828.953),
)
_GPU = (
    (10.013, 11.588, 33.315, 78.892, 260.675),
    (26.742, 30.622, 125.91, 464.836, 1676.459),
    (30.374, 91.682, 701.729, 2446.404, 7851.896),
)
_SPEEDUP = (
    (5.964, 20.56, 30.349, 52.321, 62.403),
    (9.804, 34.920, 34.605, 38.403, 42.784),
    (25.920, 35.770, 18.973, 21.784, 27.087),
)

_KERNELS = {
    "p = 0": (129.1, 77.4, 25.9, 72.7),
    "p = 1": (143.8, 87.5, 27.9, 68.6),
    "p = 2": (100.1, 107.7, 12.08, 51.4),
}


def _times() -> Values:
    return {
        f"p = {p}, N = {n}": {"CPU": _CPU[p][i], "GPU": _GPU[p][i], "speed-up": _SPEEDUP[p][i]}
        for p in range(3)
        for i, n in enumerate(_SIZES)
    }


PAPER = Paper(
    name="chen",
    authors="G. Chen",
    title="GPU-accelerated discontinuous Galerkin methods for vortex transport simulations",
    year=None,
    hardware="NVIDIA GeForce GTX 1080; one core of an AMD Ryzen 7 1800X",
    items=(
        Item(
            "Table 1",
            "Time of ten steps by block size, mesh and order",
            "measurement",
            7,
            rows=grid(("32", "64", "128", "256", "512"), _BLOCKS),
            units={block: "ms" for block in ("32", "64", "128", "256", "512")},
            note="Columns are threads a block. The mesh has 2 N^2 triangles.",
            compute=table1,
            record="euler/blocks",
        ),
        Item(
            "Table 2",
            "Time of ten steps on CPU and GPU and their ratio, by mesh and order",
            "measurement",
            7,
            rows=_times(),
            units={"CPU": "ms", "GPU": "ms"},
            note="The GPU with 32 threads a block, the CPU with one core.",
            compute=table2,
            record="euler/sizes",
        ),
        Item(
            "Table 3",
            "Bandwidth and rate of the volume and the face kernel by order",
            "measurement",
            7,
            rows=grid(("volume bandwidth", "face bandwidth", "volume rate", "face rate"), _KERNELS),
            units={
                "volume bandwidth": "GB/s",
                "face bandwidth": "GB/s",
                "volume rate": "GFLOP/s",
                "face rate": "GFLOP/s",
            },
            note="N = 128.",
            compute=table3,
            record="euler/kernels",
        ),
        Item(
            "Figure 1",
            "A sample mesh and the pressure of the vortex",
            "illustration",
            7,
            compute=figure1,
        ),
        Item(
            "Figure 2(a)",
            "Pressure and x-velocity at t = 10, p = 2, N = 16",
            "accuracy",
            7,
            note="Contours; the text gives no error.",
            compute=partial(figure2, 16),
        ),
        Item(
            "Figure 2(b)",
            "Pressure and x-velocity at t = 10, p = 2, N = 64",
            "accuracy",
            7,
            note="Contours; the text gives no error.",
            compute=partial(figure2, 64),
            record="euler/figure2",
        ),
        Item(
            "Figure 3",
            "Time of ten steps against mesh size, CPU and GPU",
            "measurement",
            7,
            rows=_times(),
            units={"CPU": "ms", "GPU": "ms"},
            note="Draws the numbers of Table 2.",
            compute=table2,
            record="euler/sizes",
        ),
    ),
)
