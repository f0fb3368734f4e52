"""The ladder in a page: rungs in their order, counters before and after, differences in code."""

import copy

import pytest

from dgbook.lab import ladder, records
from dgbook.page import climb

RECORD = records.load("maxwell/ladder")
NAMES = ("fusion", "no such rung", "five kernels")


def test_rows_come_in_the_order_of_the_names():
    found = climb.rows_of(RECORD, 3, "float32", NAMES)
    assert [row["rung"] for row in found] == ["fusion", "five kernels"]


def test_percent_of_the_floor():
    fig = climb.percent(RECORD, NAMES)
    (ax,) = fig.axes
    assert [label.get_text() for label in ax.get_yticklabels()] == list(NAMES)
    first = ax.lines[0]
    row = RECORD.row(rung="fusion", order=3, dtype="float32")
    assert first.get_xdata()[0] == pytest.approx(100 * row["efficiency"])
    assert list(first.get_ydata()) == [0, 2]


def test_rungs_are_revealed_one_at_a_time(monkeypatch):
    drawn = []
    monkeypatch.setattr(climb, "flipbook", lambda draw, sliders, **_: drawn.append((draw, sliders)))
    names = ("five kernels", "fusion", "padding", "u stays")  # the last one at N = 3 only
    climb.reveal(RECORD, names, alt="Percent of the floor on four rungs")
    ((draw, sliders),) = drawn
    (whole,) = climb.percent(RECORD, names).axes
    assert list(sliders["rungs"]) == [1, 2, 3, 4]
    for count in sliders["rungs"]:
        (ax,) = draw(count).axes
        assert ax.get_xlim() == whole.get_xlim() and ax.get_ylim() == whole.get_ylim()
        assert len(ax.get_yticks()) == len(names)
        for line, case in zip(ax.lines, climb.CASES, strict=True):
            rows = climb.rows_of(RECORD, *case, names[:count])
            assert list(line.get_xdata()) == [100 * row["efficiency"] for row in rows]


def test_rates_have_a_dash_where_a_rung_is_missing():
    shown = str(climb.rates(RECORD, ("u stays",), "Rates"))
    assert "101 (39 %)" in shown and "50.7 (39 %)" in shown
    assert shown.count("–") == 2 and "RECORDED" in shown


def test_what_moved():
    text = str(climb.step(RECORD, "layout", "algebra", {"FMA": "multiply-adds"}))
    assert "117 → 66" in text and "519 → 298" in text and "RECORDED" in text
    rows = [RECORD.row(rung=r, order=3, dtype="float32") for r in ("layout", "algebra")]
    rates = [f"{row['dofs'] / row['seconds_median'] / 1e9:.1f}" for row in rows]
    assert " → ".join(rates) in text
    assert " → ".join(f"{100 * row['efficiency']:.0f}" for row in rows) in text
    text = str(climb.step(RECORD, "fusion", "register tile", {"warps%": "warps"}))
    assert "96 → 53" in text and "–" not in text


def test_a_rung_that_is_missing_has_dashes():
    text = str(climb.step(RECORD, "padding", "u stays", {"L2": "bytes"}))
    assert text.count("–") == 2 * 3  # at N = 7 there is no such rung


def test_without_counters_rates_are_left():
    record = copy.deepcopy(RECORD)
    for row in record.rows:
        row.pop("counts", None)
    shown = str(climb.step(record, "layout", "algebra", {"FMA": "x"}))
    assert shown.count("–") == len(climb.CASES) and "35.2 → 44.0" in shown


def test_a_difference_has_both_sides():
    text = climb.difference(ladder.NO_PADDING).text
    assert text == "- return n;\n+ return TENSOR ? n + (12 - n % 8) % 8 : n | 1;\n"


def test_no_rung_is_above_its_floor():
    """Floors know tensor cores: an efficiency above 1 would say that they are wrong."""
    assert "fp64_tensor_TFLOPs" in RECORD.ceilings
    assert all(0 < row["efficiency"] < 1 for row in RECORD.rows)
