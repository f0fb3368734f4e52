"""What a GPU likes and dislikes: a list of effects, each a few probes, as rows of a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dgbook.gpu import Device
from dgbook.lab import probes
from dgbook.lab.floor import Ceilings, floor_seconds
from dgbook.lab.numbers import Number, live
from dgbook.lab.records import Record
from dgbook.lab.tables import Table, table

KIB = 2**10


@dataclass(frozen=True)
class Effect:
    """A question to the machine.

    Attributes
    ----------
    name : str
        The `path` of its rows in the record.
    title : str
        What is varied, as a table's heading says it.
    unit : str
        What is read off: "TB/s" or "TFLOP/s" as in records, "ns" for one operation, "us" for one
        launch.
    settings : tuple of dict
        Arguments of the probe, one for each row.
    probe : function
        ``probe(device, **settings)``.
    show : function
        How a row's setting (its `plan`, with `resident_threads`) is written in a table.
    """

    name: str
    title: str
    unit: str
    settings: tuple[dict[str, Any], ...]
    probe: Callable[..., probes.Probe]
    show: Callable[[dict[str, Any]], str]


def _launches(device: Device, kind: str) -> probes.Probe:
    cost = probes.launch_cost(device)
    return probes.Probe(getattr(cost, kind), operations=1)


def _size(nbytes: int) -> str:
    for unit, step in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if nbytes >= step:
            return f"{nbytes / step:g} {unit}"
    return f"{nbytes} bytes"


EFFECTS = {
    effect.name: effect
    for effect in (
        Effect(
            "copy",
            "elements of",
            "TB/s",
            ({"dtype": "float32"}, {"dtype": "float64"}),
            probes.copy_bandwidth,
            lambda s: s["dtype"],
        ),
        Effect(
            "stride",
            "stride in words",
            "TB/s",
            tuple({"stride": s} for s in (1, 2, 4, 8, 16, 32)),
            probes.copy_bandwidth,
            lambda s: str(s["stride"]),
        ),
        Effect(
            "offset",
            "words off the line",
            "TB/s",
            tuple({"offset": o} for o in (0, 1, 8, 32)),
            probes.copy_bandwidth,
            lambda s: str(s["offset"]),
        ),
        Effect(
            "gather",
            "order of the list",
            "TB/s",
            ({"shuffled": False}, {"shuffled": True}),
            probes.gather_bandwidth,
            lambda s: "random" if s["shuffled"] else "in order",
        ),
        Effect(
            "transpose",
            "way of transposing",
            "TB/s",
            tuple({"kind": k} for k in ("naive", "shared", "padded")),
            probes.transpose_bandwidth,
            lambda s: s["kind"],
        ),
        Effect(
            "banks",
            "stride in words",
            "ns",
            tuple({"stride": s} for s in (0, 1, 2, 3, 4, 8, 16, 32)),
            probes.bank_conflicts,
            lambda s: str(s["stride"]),
        ),
        Effect(
            "latency",
            "working set",
            "ns",
            tuple({"working_set_bytes": 2**k * KIB} for k in (4, 7, 9, 13, 14, 15, 16, 18, 20)),
            probes.latency,
            lambda s: _size(s["working_set_bytes"]),
        ),
        Effect(
            "occupancy",
            "threads resident",
            "TB/s",
            tuple({"shared_bytes": n * KIB} for n in (0, 8, 16, 24, 32, 48)),
            probes.occupancy,
            lambda s: str(s["resident_threads"]),
        ),
        Effect(
            "fma",
            "chains in one of few warps",
            "TFLOP/s",
            tuple(
                {
                    "dtype": dtype,
                    "accumulators": chains,
                    "threads": 128,
                    "blocks_per_multiprocessor": 1,
                    "steps": 2048,
                }
                for dtype in ("float32", "float64")
                for chains in (1, 2, 4, 8)
            ),
            probes.fma_rate,
            lambda s: f"{s['dtype']}, {s['accumulators']}",
        ),
        Effect(
            "divergence",
            "branches, threads a branch",
            "TFLOP/s",
            (
                *({"branches": b, "unit": 1} for b in (1, 2, 4, 8, 16, 32)),
                {"branches": 32, "unit": 32},
            ),
            probes.divergence,
            lambda s: f"{s['branches']}, {s['unit']}",
        ),
        Effect(
            "atomics",
            "where the sums go",
            "ns",
            tuple({"kind": k} for k in ("one address", "warp address", "shuffled")),
            probes.atomics,
            lambda s: s["kind"],
        ),
        Effect(
            "launch",
            "launched",
            "us",
            ({"kind": "python"}, {"kind": "graph"}),
            _launches,
            lambda s: "from Python" if s["kind"] == "python" else "by a graph",
        ),
    )
}

# Their bytes are not of device memory, so the copy's bandwidth is no floor for them.
_NOT_MEMORY = ("banks", "latency", "launch")


def measure(effect: Effect, device: Device, ceilings: Ceilings) -> Iterator[dict[str, Any]]:
    """Measure an effect; yields its rows one by one, in the form that records have.

    Raises
    ------
    RuntimeError
        If the device is no CUDA device.
    """
    for settings in effect.settings:
        yield _row(effect, settings, effect.probe(device, **settings), ceilings)


def _row(
    effect: Effect, settings: dict[str, Any], probe: probes.Probe, ceilings: Ceilings
) -> dict[str, Any]:
    dtype = settings.get("dtype", "float32")
    memory = effect.name not in _NOT_MEMORY
    nbytes = probe.moved if memory else 0
    floor = floor_seconds(nbytes, probe.flops, dtype, ceilings) if nbytes + probe.flops else None
    return {
        "path": effect.name,
        "language": "numba",
        "order": None,
        "dtype": dtype,
        "size": {"in_cache": probe.in_cache},
        "dofs": None,
        "plan": dict(settings),
        **probe.timing.as_row(),
        "flops": probe.flops,
        "bytes": nbytes,
        "floor_seconds": floor,
        "efficiency": floor / probe.seconds if floor else None,
        "useful_bytes": probe.bytes if memory else 0,
        "operations": probe.operations,
        "model_slowdown": probe.slowdown,
        "resident_threads": probe.resident_threads,
    }


def value(effect: Effect, row: dict[str, Any]) -> float:
    """What an effect's unit reads off a row: useful bytes, flops or operations a second."""
    seconds = row["seconds_median"]
    if effect.unit == "TB/s":
        return row["useful_bytes"] / seconds * 1e-12
    if effect.unit == "TFLOP/s":
        return row["flops"] / seconds * 1e-12
    return seconds / row["operations"] * {"ns": 1e9, "us": 1e6}[effect.unit]


def rows_of(effect: Effect, record: Record) -> tuple[dict[str, Any], ...]:
    """The record's rows of an effect, in the order of its settings."""
    return tuple(record.row(path=effect.name, plan=dict(s)) for s in effect.settings)


def compare(effect: Effect, record: Record, device: Device, ceilings: Ceilings | None) -> Table:
    """An effect as a table: its settings, what was recorded, and on a CUDA device what is live.

    Parameters
    ----------
    effect : Effect
    record : Record
        "machine/probes".
    device : Device
        Where there is a CUDA device the effect is measured now and stands beside.
    ceilings : Ceilings or None
        The device's, where it is a CUDA device.
    """
    here = list(measure(effect, device, ceilings)) if device.kind == "cuda" else []
    columns = [effect.title, f"recorded, {effect.unit}"]
    columns += [f"here, {effect.unit}"] if here else []
    body = []
    for i, row in enumerate(rows_of(effect, record)):
        cells: list[str | Number] = [caption_of(effect, row)]
        cells.append(Number(value(effect, row), effect.unit, "RECORDED", record.source))
        if here:
            cells.append(live(value(effect, here[i]), effect.unit, device))
        body.append(cells)
    return table(body, columns, caption=f"{effect.name}: {effect.title}")


def caption_of(effect: Effect, row: dict[str, Any]) -> str:
    """What was varied, as the first column of a table has it."""
    return effect.show(row["plan"] | {"resident_threads": row["resident_threads"]})
