"""Counters of Nsight Compute, from what it prints."""

import shutil

import pytest

from dgbook.lab import profile


def printed(*launches):
    """What ncu prints for launches, each a list of percentages in the order of `COUNTERS`."""
    metrics = list(profile.COUNTERS.values())
    heading = ",".join(f'"{name}"' for name in ["ID", "Kernel Name", *metrics])
    units = ",".join(['""', '""', *('"%"' for _ in metrics)])
    rows = [
        ",".join(f'"{value}"' for value in [i, "fused(float *, int)", *values])
        for i, values in enumerate(launches)
    ]
    return "\n".join(["==PROF== Connected to process 1", "hello", heading, units, *rows])


def test_a_dict_for_each_launch():
    values = [10.5, 20, 30, 40, 50, 60, 70, 80]
    first, second = profile.parse(printed(values, values[::-1]))
    assert first["memory"] == 10.5 and first["warps"] == 80
    assert second["memory"] == 80 and second["warps"] == 10.5
    assert list(first) == list(profile.COUNTERS)


def test_nothing_counted():
    assert profile.parse("==ERROR== ERR_NVGPUCTRPERM") == []


@pytest.mark.parametrize("installed", [None, "/bin/false"])
def test_without_ncu_or_where_it_may_not_count(monkeypatch, installed):
    monkeypatch.setattr(shutil, "which", lambda _: installed)
    if installed:
        monkeypatch.setattr(
            profile.subprocess,
            "run",
            lambda *_, **__: type(
                "Done", (), {"stdout": "no permission", "stderr": "", "returncode": 1}
            ),
        )
    with pytest.raises(RuntimeError, match="no permission" if installed else "toolkit"):
        profile.counters("pass")
