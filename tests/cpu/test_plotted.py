"""What a paper plots is drawn from our numbers: which curves, on which axes."""

import pytest

from dgbook.lab import reproduce
from dgbook.lab.papers import Item, Ours
from dgbook.page import plotted

NINE = range(1, 10)


def verdict(rows, units=None):
    source = ("RECORDED", "NVIDIA H200, 2026-11-20")
    printed = {"large": {column: 1.0 for column in units}} if units else {}
    rows = rows | ({"large": {column: 1.0 for column in units}} if units else {})
    item = Item(
        "Figure 1", "A made-up figure", "measurement", 1, rows=printed, units=units or {},
        compute=lambda: Ours(rows, "made up", *source),
    )  # fmt: skip
    return reproduce.compare(reproduce.paper("chen"), item)


def axes_of(rows, units=None):
    return plotted.draw(verdict(rows, units)).axes


def test_a_row_is_a_place_and_a_column_a_curve():
    rows = {f"N = {N}": {"lift, TFLOP/s": 2.0 * N, "gather, TFLOP/s": 1.0 * N} for N in NINE}
    (ax,) = axes_of(rows)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("N", "TFLOP/s")
    assert [line.get_label() for line in ax.lines] == ["lift", "gather"]
    assert list(ax.lines[0].get_xdata()) == [*NINE]
    assert list(ax.lines[0].get_ydata()) == [2.0 * N for N in NINE]
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")


def test_the_last_number_is_the_place_and_the_rest_the_curve():
    rows = {f"p = {p}, N = {2**i}": {"GPU": p + 2.0**i} for p in (0, 1) for i in range(8)}
    (ax,) = axes_of(rows, {"GPU": "ms"})
    assert [line.get_label() for line in ax.lines] == ["p = 0", "p = 1"]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("N", "ms", "log")


def test_units_do_not_share_axes():
    rows = {f"{10 * i} MiB": {"share from": 50.0 + i, "GB/s from": 1e3 * i} for i in range(1, 5)}
    share, rate = axes_of(rows, {"share from": "%"})
    assert (share.get_ylabel(), rate.get_ylabel(), rate.get_xlabel()) == ("%", "GB/s", "MiB")
    assert rate.lines[0].get_label() == "from"


@pytest.mark.parametrize("columns", [9, 15])
def test_axes_have_seven_curves_at_most(columns):
    rows = {f"N = {N}": {f"c{i}": N + i for i in range(columns)} for N in NINE}
    assert [len(ax.lines) for ax in axes_of(rows)] == [7] * (columns // 7) + [columns % 7]


def test_what_is_no_curve_is_not_drawn():
    assert plotted.draw(verdict({"smallest": {"ratio": 2.0}, "N = 3": {"ratio": 1.0}})) is None
