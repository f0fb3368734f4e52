"""The machine's effects: rows that records accept, tables that match the committed record."""

from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest

from dgbook.cli import machine as bench
from dgbook.gpu import device
from dgbook.gpu.timing import Timing
from dgbook.lab import probes, records
from dgbook.lab.floor import Ceilings
from dgbook.lab.machine import (
    EFFECTS,
    Effect,
    caption_of,
    curves,
    measurable,
    measure,
    recorded_value,
    rows_of,
    value,
)

CEILINGS = Ceilings(copy_TBps=4.0, fp32_TFLOPs=60.0, fp64_TFLOPs=30.0)
SECONDS = 1e-3
FIELDS = {
    "gpu": "a GPU",
    "compute_capability": "9.0",
    "driver": "1",
    "cuda": "1",
    "versions": {},
    "commit": "c",
    "date": "2026-01-01",
    "ceilings": CEILINGS.as_dict(),
}


def pretended(device, **settings):
    """A probe of 8 useful GB, 16 moved ones, 12 Gflop and a million operations in a millisecond."""
    timing = Timing((SECONDS,) * 20)
    return probes.Probe(timing, 8 * 10**9, 16 * 10**9, 12 * 10**9, 10**6)


def effect(name="copy", unit="TB/s"):
    return Effect(name, "setting", unit, ({"dtype": "float64"},), pretended, lambda s: s["dtype"])


@pytest.mark.parametrize(
    ("unit", "expected"),
    [("TB/s", 8.0), ("TFLOP/s", 12.0), ("ns", 1.0), ("us", 1e-3)],
)
def test_a_unit_reads_useful_bytes_flops_or_operations(unit, expected):
    (row,) = measure(effect(unit=unit), None, CEILINGS)
    assert value(effect(unit=unit), row) == pytest.approx(expected)


def test_the_floor_counts_what_memory_moves():
    (row,) = measure(effect(), None, CEILINGS)
    assert row["floor_seconds"] == pytest.approx(16e9 / 4e12)  # 4 ms: memory, not 0.4 ms of flops
    assert row["efficiency"] == pytest.approx(4.0)


def test_shared_memory_has_no_floor_in_device_memory():
    (row,) = measure(effect("banks", "ns"), None, CEILINGS)
    assert row["bytes"] == 0 and row["useful_bytes"] == 0
    assert row["floor_seconds"] == pytest.approx(12e9 / 30e12)  # the flops' alone, in fp64


def record_of(*rows):
    return records.Record(**FIELDS | {"name": "machine/probes", "rows": rows})


def test_rows_make_a_valid_record():
    content = FIELDS | {"name": "machine/probes", "rows": list(measure(effect(), None, CEILINGS))}
    records.validate(content)


def test_without_ceilings_there_is_no_floor():
    (row,) = measure(effect(), None)
    assert row["floor_seconds"] is None and row["efficiency"] is None


SIZES = Effect(
    "size",
    "words",
    "TB/s",
    tuple({"words": n, "dtype": d} for d in ("float32", "float64") for n in (4, 8)),
    lambda device, words, dtype: probes.Probe(Timing((SECONDS,) * 20), words * 10**9),
    lambda s: f"{s['words']} words",
    "words",
)
PRETENDED = replace(device("cpu"), kind="cuda", name="a device", compute_capability=(7, 5))


def test_a_curve_beside_the_recorded_one_on_a_cuda_device_only():
    record = record_of(*measure(SIZES, None, CEILINGS))
    (recorded,) = curves(SIZES, record, device("cpu"), dtype="float32")
    assert (recorded.label, recorded.source) == ("RECORDED", "a GPU, 2026-01-01")
    assert recorded.kinds == ("4 words", "8 words")
    np.testing.assert_allclose(recorded.x, (4, 8))
    np.testing.assert_allclose(recorded.y, (4, 8))  # 4 and 8 GB in a millisecond
    both = curves(SIZES, record, PRETENDED, dtype="float64")
    assert [(c.label, c.source) for c in both] == [
        ("RECORDED", "a GPU, 2026-01-01"),
        ("LIVE", "a device"),
    ]
    np.testing.assert_allclose(both[1].y, (4, 8))
    assert str(both[1].largest) == "8.00 TB/s  [LIVE a device]"


def test_an_effect_of_kinds_is_counted_through():
    kinds = replace(SIZES, axis="")
    (found,) = curves(kinds, record_of(*measure(kinds, None, CEILINGS)), device("cpu"))
    np.testing.assert_allclose(found.x, (0, 1, 2, 3))


def test_what_is_not_recorded_yet_gives_no_curve():
    rows = tuple(measure(SIZES, None, CEILINGS))[:1]
    assert curves(replace(SIZES, name="new"), record_of(*rows), device("cpu")) == ()
    (found,) = curves(SIZES, record_of(*rows), device("cpu"))
    assert found.kinds == ("4 words",)


def test_what_a_device_lacks_is_not_measured():
    tensor = EFFECTS["tensor"]
    assert not measurable(tensor, PRETENDED)
    assert not measurable(SIZES, device("cpu"))
    assert measurable(SIZES, PRETENDED)
    assert measurable(tensor, replace(PRETENDED, compute_capability=(8, 0)))
    assert curves(tensor, record_of(), PRETENDED) == ()


def test_one_recorded_value():
    record = record_of(*measure(effect(), None, CEILINGS))
    found = recorded_value(record, "copy", dtype="float64")
    assert found.text() == "8.00 TB/s" and found.label == "RECORDED"
    with pytest.raises(ValueError, match="0 rows"):
        recorded_value(record, "copy", dtype="float32")


@pytest.mark.parametrize("one", EFFECTS.values(), ids=lambda one: one.name)
def test_the_committed_record_has_every_setting(one):
    rows = rows_of(one, records.load(one.record))
    assert len({caption_of(one, row) for row in rows}) == len(rows), "settings look alike"
    assert all(value(one, row) > 0 for row in rows)
    assert len(rows) == len(one.settings)


def test_effects_go_into_their_records(tmp_path, monkeypatch):
    """One of its own is not replaced by a measurement of the others, nor replaces theirs."""
    here = {key: value for key, value in FIELDS.items() if key != "ceilings"}
    monkeypatch.setattr(bench, "device", lambda _: PRETENDED)
    monkeypatch.setattr(bench, "ceilings", lambda _: CEILINGS)
    monkeypatch.setattr(bench, "environment", lambda _: here)
    for name in ("gather", "chain", "clock"):
        monkeypatch.setitem(EFFECTS, name, replace(EFFECTS[name], probe=pretended))

    def written(*effects):
        bench.bench(Namespace(effects=effects, out=tmp_path))
        found = [records.load(path.stem.split("__")[0].replace("-", "/"), tmp_path)
                 for path in tmp_path.glob("*.json")]  # fmt: skip
        return {record.name: [row["path"] for row in record.rows] for record in found}

    chains = ["chain"] * len(EFFECTS["chain"].settings) + ["clock"] * 2
    assert written("chain", "clock") == {"machine/chains": chains}
    both = {"machine/chains": chains, "machine/probes": ["gather"] * 2}
    assert written("gather") == both
    assert written("clock") == both | {"machine/chains": ["clock"] * 2}


@pytest.mark.parametrize("one", EFFECTS.values(), ids=lambda one: one.name)
def test_without_a_gpu_an_effect_is_not_measured(one):
    with pytest.raises(RuntimeError, match="CUDA device"):
        next(measure(one, device("cpu"), CEILINGS))
