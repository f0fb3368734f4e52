"""What a GPU likes and dislikes: a list of effects, each a few probes, as rows of a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgbook.gpu import Device
from dgbook.lab import probes
from dgbook.lab.floor import Ceilings, floor_seconds
from dgbook.lab.numbers import Number
from dgbook.lab.records import Record

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
    axis : str
        What of that setting is the abscissa of a curve; empty where settings are kinds.
    capability : tuple of two ints
        The first compute capability that has what is asked about.
    record : str
        The name of the record that has its rows.
    """

    name: str
    title: str
    unit: str
    settings: tuple[dict[str, Any], ...]
    probe: Callable[..., probes.Probe]
    show: Callable[[dict[str, Any]], str]
    axis: str = ""
    capability: tuple[int, int] = (0, 0)
    record: str = "machine/probes"


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
            "loads",
            "words in flight per thread",
            "TB/s",
            tuple({"dtype": d, "loads": n} for d in ("float32", "float64") for n in (1, 2, 4)),
            probes.copy_several_bandwidth,
            lambda s: f"{s['dtype']}, {s['loads']}",
            "loads",
        ),
        Effect(
            "stride",
            "stride in words",
            "TB/s",
            tuple({"stride": s} for s in (1, 2, 4, 8, 16, 32)),
            probes.copy_bandwidth,
            lambda s: str(s["stride"]),
            "stride",
        ),
        Effect(
            "offset",
            "words off the line",
            "TB/s",
            tuple({"offset": o} for o in (0, 1, 8, 32)),
            probes.copy_bandwidth,
            lambda s: str(s["offset"]),
            "offset",
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
            tuple({"kind": k} for k in probes.TRANSPOSES),
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
            "stride",
        ),
        Effect(
            "shared",
            "stride in words",
            "ns",
            tuple({"stride": s} for s in (1, 2, 4, 8, 16, 32)),
            probes.shared_latency,
            lambda s: str(s["stride"]),
            "stride",
        ),
        Effect(
            "latency",
            "working set",
            "ns",
            tuple(
                {"working_set_bytes": size * KIB}
                for size in (
                    *(16, 128, 192, 224, 256, 320, 384, 512),  # around the L1's size
                    *(2**k for k in (13, 14, 15, 16, 18, 20)),  # around the L2's
                )
            ),
            probes.latency,
            lambda s: _size(s["working_set_bytes"]),
            "working_set_bytes",
        ),
        Effect(
            "read",
            "working set",
            "TB/s",
            tuple({"working_set_bytes": 2**k * KIB} for k in (12, 13, 14, 15, 16, 18, 20)),
            probes.read_bandwidth,
            lambda s: _size(s["working_set_bytes"]),
            "working_set_bytes",
        ),
        Effect(
            "occupancy",
            "threads resident",
            "TB/s",
            tuple({"shared_bytes": n * KIB} for n in (0, 8, 16, 24, 32, 48)),
            probes.occupancy,
            lambda s: str(s["resident_threads"]),
            "resident_threads",
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
            "accumulators",
        ),
        Effect(
            "loop",
            "multiply-adds of a chain per round, many warps",
            "TFLOP/s",
            tuple(
                {"dtype": dtype, "links": links}
                for dtype in ("float32", "float64")
                for links in (16, 32)
            ),
            probes.fma_rate,
            lambda s: f"{s['dtype']}, {s['links']}",
            "links",
        ),
        Effect(
            "chain",
            "operation, chains per thread, threads",
            "ns",
            tuple(
                {"dtype": dtype, "operation": operation, "chains": chains, "full": full}
                for dtype, more in (("float32", ()), ("float64", probes.BRANCHING))
                for operation in probes.OPERATIONS + more
                for chains, full in ((1, False), (8, False), (1, True))
            ),
            probes.chain_latency,
            lambda s: (
                f"{s['dtype']}, {s['operation']}, {s['chains']}, "
                f"{'as many as fit' if s['full'] else 'a warp'}"
            ),
            record="machine/chains",
        ),
        Effect(
            "clock",
            "multiprocessors that count",
            "ns",
            ({"full": False}, {"full": True}),
            probes.clock_cycle,
            lambda s: "all" if s["full"] else "one",
            record="machine/chains",
        ),
        Effect(
            "tensor",
            "sums per warp",
            "TFLOP/s",
            tuple({"dtype": d, "tiles": n} for d in ("float32", "float64") for n in (1, 2, 4, 8)),
            probes.tensor_rate,
            lambda s: f"{s['dtype']}, {s['tiles']}",
            "tiles",
            probes.TENSOR_CAPABILITY,
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
            "branches",
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
            tuple({"kind": k} for k in probes.LAUNCH_KINDS),
            probes.launch_cost,
            lambda s: s["kind"],
        ),
    )
}

# Their bytes are not of device memory, so the copy's bandwidth is no floor for them.
_NOT_MEMORY = ("banks", "shared", "latency", "launch")

_LANGUAGES = {"read": "cuda", "tensor": "cuda", "clock": "cuda"}


def measurable(effect: Effect, device: Device) -> bool:
    """Whether the device has what the effect asks about."""
    return device.kind == "cuda" and device.compute_capability >= effect.capability


def measure(
    effect: Effect, device: Device, ceilings: Ceilings | None = None, **keys: Any
) -> Iterator[dict[str, Any]]:
    """Measure an effect; yields its rows one by one, in the form that records have.

    Parameters
    ----------
    effect : Effect
    device : Device
    ceilings : Ceilings, optional
        The device's; without them rows have no floors, and are none for a record.
    **keys
        Only settings with these values: ``dtype="float32"``.

    Raises
    ------
    RuntimeError
        If the device is no CUDA device.
    """
    for settings in effect.settings:
        if keys.items() <= settings.items():
            yield _row(effect, settings, effect.probe(device, **settings), ceilings)


def _row(
    effect: Effect, settings: dict[str, Any], probe: probes.Probe, ceilings: Ceilings | None
) -> dict[str, Any]:
    dtype = settings.get("dtype", "float32")
    memory = effect.name not in _NOT_MEMORY
    nbytes = probe.moved if memory else 0
    counted = ceilings and nbytes + probe.flops
    floor = floor_seconds(nbytes, probe.flops, dtype, ceilings) if counted else None
    return {
        "path": effect.name,
        "language": _LANGUAGES.get(effect.name, "numba"),
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


def rows_of(effect: Effect, record: Record, **keys: Any) -> tuple[dict[str, Any], ...]:
    """The record's rows of an effect, in the order of its settings; some may not be there yet.

    Parameters
    ----------
    effect : Effect
    record : Record
        That of the effect.
    **keys
        Only settings with these values.
    """
    wanted = [settings for settings in effect.settings if keys.items() <= settings.items()]
    return tuple(row for s in wanted for row in record.select(path=effect.name, plan=dict(s)))


def recorded_value(record: Record, name: str, **settings: Any) -> Number:
    """What a record says of one setting of an effect, by the effect's name.

    Raises
    ------
    ValueError
        If it has no such row.
    """
    effect = EFFECTS[name]
    row = record.row(path=name, plan=settings)
    return Number(value(effect, row), effect.unit, "RECORDED", record.source)


@dataclass(frozen=True)
class Curve:
    """An effect as one device shows it.

    Attributes
    ----------
    label, source : str
        "RECORDED" or "LIVE", and the device.
    unit : str
        Of y.
    kinds : tuple of str
        The settings in words.
    x, y : array
        What is varied, by the effect's axis or counted from 0; and what is read off.
    """

    label: str
    source: str
    unit: str
    kinds: tuple[str, ...]
    x: np.ndarray
    y: np.ndarray

    @property
    def largest(self) -> Number:
        """The largest value, labeled: a ceiling, where the effect looks for one."""
        return Number(float(self.y.max()), self.unit, self.label, self.source)


def curves(effect: Effect, record: Record, device: Device, **keys: Any) -> tuple[Curve, ...]:
    """An effect as it was recorded, and beside it, on a CUDA device, as it is measured now.

    Parameters
    ----------
    effect : Effect
    record : Record
        That of the effect; if it does not have the effect yet, there is no curve of it.
    device : Device
    **keys
        Only settings with these values: ``dtype="float32"``.
    """
    found = [("RECORDED", record.source, rows_of(effect, record, **keys))]
    if measurable(effect, device):
        found.append(("LIVE", device.name, tuple(measure(effect, device, **keys))))
    return tuple(
        Curve(
            label,
            source,
            effect.unit,
            tuple(caption_of(effect, row) for row in rows),
            np.array([_place(effect, i, row) for i, row in enumerate(rows)], float),
            np.array([value(effect, row) for row in rows]),
        )
        for label, source, rows in found
        if rows
    )


def _place(effect: Effect, number: int, row: dict[str, Any]) -> float:
    return _setting(row)[effect.axis] if effect.axis else number


def _setting(row: dict[str, Any]) -> dict[str, Any]:
    return row["plan"] | {"resident_threads": row["resident_threads"]}


def caption_of(effect: Effect, row: dict[str, Any]) -> str:
    """What was varied, as the first column of a table has it."""
    return effect.show(_setting(row))
