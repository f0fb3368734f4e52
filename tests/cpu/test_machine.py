"""The machine's effects: rows that records accept, tables that match the committed record."""

import pytest

from dgbook.gpu import device
from dgbook.gpu.timing import Timing
from dgbook.lab import probes, records
from dgbook.lab.floor import Ceilings
from dgbook.lab.machine import EFFECTS, Effect, caption_of, compare, measure, rows_of, value

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


def test_rows_make_a_valid_record_and_a_table():
    one = effect()
    content = FIELDS | {"name": "machine/probes", "rows": list(measure(one, None, CEILINGS))}
    records.validate(content)
    record = records.Record(**content)
    text = str(compare(one, record, device("cpu"), None))
    assert "float64" in text and "8.00 TB/s" in text and "RECORDED a GPU" in text


@pytest.mark.parametrize("one", EFFECTS.values(), ids=lambda one: one.name)
def test_the_committed_record_has_every_setting(one):
    record = records.load("machine/probes")
    rows = rows_of(one, record)
    assert len(rows) == len(one.settings)
    assert len({caption_of(one, row) for row in rows}) == len(rows), "settings look alike"
    assert all(value(one, row) > 0 for row in rows)


@pytest.mark.parametrize("one", EFFECTS.values(), ids=lambda one: one.name)
def test_without_a_gpu_an_effect_is_not_measured(one):
    with pytest.raises(RuntimeError, match="CUDA device"):
        next(measure(one, device("cpu"), CEILINGS))
