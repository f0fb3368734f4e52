"""The comparison of all families: best rows, and where they come from."""

from __future__ import annotations

from dataclasses import replace

from dgbook.lab import compare, records
from dgbook.lab.compare import METHODS, Method

GATHERED = compare.gather()


def made_row(order, dtype, seconds, path="fused", dofs=1000, **more):
    """As much of a row as is compared: 64 flops and 16 bytes a degree of freedom."""
    return {
        "path": path, "order": order, "dtype": dtype, "dofs": dofs, "size": {"dim": 2},
        "flops": 64 * dofs, "bytes": 16 * dofs, "seconds_median": seconds, **more,
    }  # fmt: skip


def made_record(*rows):
    ceilings = {"copy_TBps": 4.0, "fp32_TFLOPs": 60.0, "fp64_TFLOPs": 30.0}
    return records.Record("a/b", "G", "9.0", "1", "1", {}, "c", "2026-11-22", ceilings, rows)


def test_the_best_row_is_the_least_time_a_dof_of_the_method_itself():
    slow, fast = made_row(2, "float32", 3e-6), made_row(2, "float32", 4e-6, dofs=2000)
    rival = made_row(2, "float32", 1e-9, path="rival:x")
    other = made_row(2, "float32", 1e-9, size={"dim": 3})
    double = made_row(2, "float64", 9e-6)
    basis = made_row(2, "float32", 1e-9, basis="other")
    record = made_record(slow, fast, rival, other, double, basis | {"path": "fused"})
    method = Method("m", "a/b", ("fused",), "stage", {"basis": None}, {"dim": 2})
    best = compare.best_rows(record, method)
    assert best == {(2, "float32"): fast, (2, "float64"): double}


def test_every_method_has_its_record():
    assert list(GATHERED) == [method.name for method in METHODS]
    for method in METHODS:
        _, rows = GATHERED[method.name]
        assert {dtype for _, dtype in rows} == {"float32", "float64"}


def test_several_records_have_one_source():
    first, last = made_record(made_row(1, "float32", 1.0)), made_record(made_row(1, "float32", 1.0))
    assert compare.source(first, last) == first.source == "G, 2026-11-22"
    last = replace(last, gpu="A", date="2026-11-24T08:00")
    assert compare.source(last, first, first) == "A and G, 2026-11-22 to 2026-11-24"


def test_a_method_without_a_record_is_left_out():
    assert compare.gather((Method("none", "no/record", ("fused",), "stage"),)) == {}
