"""Records are checked before they are written, and no number is shown without its label."""

from __future__ import annotations

import copy
import json
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dgbook.lab import numbers, records, tables
from dgbook.lab.numbers import Number

COPY, FP32 = 4.25e12, 60e12


def row(**changes):
    """A consistent row: its floor is the larger of its bytes' and its flops' least time."""
    seconds, flops, moved = 2e-4, 3e9, 4e8
    floor = max(moved / COPY, flops / FP32)
    return {
        "path": "fused",
        "language": "cuda",
        "order": 4,
        "dtype": "float32",
        "size": {"K": 1000},
        "dofs": 10**7,
        "plan": {"block": 128},
        "seconds_median": seconds,
        "seconds_iqr": 1e-6,
        "samples": 20,
        "flops": flops,
        "bytes": moved,
        "floor_seconds": floor,
        "efficiency": floor / seconds,
    } | changes


def content(**changes):
    return {
        "name": "maxwell/stage",
        "gpu": "NVIDIA H200",
        "compute_capability": "9.0",
        "driver": "13.0",
        "cuda": "13.0",
        "versions": {"numba": "0.68.1"},
        "commit": "0123456789ab",
        "date": "2026-11-20",
        "ceilings": {"copy_TBps": 4.25, "fp32_TFLOPs": 60.0, "fp64_TFLOPs": 30.0},
        "rows": [row(), row(order=5, path="paper")],
    } | changes


class Balance(HTMLParser):
    """Collects tags and text of a piece of HTML and refuses one that does not close its tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("br", "img", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


# ------------------------------------------------------------------------------------- files


def test_a_record_comes_back_as_it_was_written(tmp_path):
    path = records.save(content(), tmp_path)
    assert path.name == "maxwell-stage__nvidia-h200__2026-11-20.json"
    record = records.load("maxwell/stage", tmp_path)
    assert {k: getattr(record, k) for k in content() if k != "rows"} == {
        k: v for k, v in content().items() if k != "rows"
    }
    assert list(record.rows) == content()["rows"]
    assert record.source == "NVIDIA H200, 2026-11-20"
    records.save(record, tmp_path)
    assert records.load("maxwell/stage", tmp_path) == record


def test_numpy_values_are_written_as_plain_numbers(tmp_path):
    rows = [row(order=np.int64(4), seconds_iqr=np.float32(1e-6), profile=np.arange(3.0))]
    loaded = records.load("maxwell/stage", records.save(content(rows=rows), tmp_path).parent)
    assert loaded.rows[0]["order"] == 4
    assert loaded.rows[0]["profile"] == [0.0, 1.0, 2.0]


def test_the_newest_record_is_loaded_and_a_gpu_can_be_chosen(tmp_path):
    for gpu, date in (
        ("NVIDIA H200", "2026-11-20"),
        ("Tesla T4", "2026-12-01"),
        ("NVIDIA H200", "2027-01-05"),
    ):
        records.save(content(gpu=gpu, date=date), tmp_path)
    assert records.load("maxwell/stage", tmp_path).date == "2027-01-05"
    assert records.load("maxwell/stage", tmp_path, gpu="t4").gpu == "Tesla T4"
    assert len(records.all_records(tmp_path)) == 3


def test_a_missing_record_names_those_there_are(tmp_path):
    records.save(content(), tmp_path)
    with pytest.raises(FileNotFoundError, match="maxwell-stage__nvidia-h200"):
        records.load("swept/heat", tmp_path)
    with pytest.raises(FileNotFoundError, match="'a100'"):
        records.load("maxwell/stage", tmp_path, gpu="a100")


def test_a_record_whose_file_has_the_same_name_is_another(tmp_path):
    records.save(content(name="maxwell/stage_one"), tmp_path)
    assert records.load("maxwell/stage_one", tmp_path).name == "maxwell/stage_one"
    with pytest.raises(FileNotFoundError, match="no record 'maxwell_stage/one'"):
        records.load("maxwell_stage/one", tmp_path)


def test_a_broken_file_is_named(tmp_path):
    path = records.save(content(), tmp_path)
    path.write_text(path.read_text()[:-40])
    with pytest.raises(
        ValueError, match=r"maxwell-stage__nvidia-h200__2026-11-20\.json is not a record"
    ):
        records.load("maxwell/stage", tmp_path)


def test_an_interrupted_write_leaves_the_older_file_and_nothing_else(tmp_path, monkeypatch):
    path = records.save(content(), tmp_path)
    before = path.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(records.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        records.save(content(commit="another"), tmp_path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_tried_before_anything_is_measured(tmp_path):
    records.check_folder(tmp_path / "new" / "folder")
    records.check_folder()
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    for wrong, message in (
        ("file", "Not a directory"),
        ("file/folder", "Not a directory"),
        ("record.json", "the name of a record"),
    ):
        with pytest.raises(ValueError, match=rf"--out .*{wrong}: {message}; allowed: a folder"):
            records.check_folder(tmp_path / wrong)


def test_what_cannot_be_written_where_it_should_is_kept_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(records.tempfile, "tempdir", str(tmp_path))
    (tmp_path / "gone").touch()
    with pytest.raises(RuntimeError, match=r"gone cannot be written to, .*: the record is in") as e:
        records.save(content(), tmp_path / "gone")
    kept = Path(str(e.value).partition("the record is in ")[2])
    assert records.load("maxwell/stage", kept.parent).commit == content()["commit"]


def test_an_invalid_record_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="samples"):
        records.save(content(rows=[row(samples=19)]), tmp_path)
    assert not list(tmp_path.iterdir())


def test_without_the_repository_the_error_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "__file__", str(tmp_path / "site-packages/dgbook/lab/records.py"))
    with pytest.raises(FileNotFoundError, match="clone the repository"):
        records.load("maxwell/stage")


def test_the_records_of_this_checkout_are_in_chapters():
    folder = records.default_folder()
    assert folder.parts[-2:] == ("chapters", "records")


# -------------------------------------------------------------------------------- validation

FAULTS = [
    ("name", {"name": "stage"}),
    ("name", {"name": "Maxwell/Stage"}),
    ("gpu", {"gpu": ""}),
    ("compute_capability", {"compute_capability": "sm_90"}),
    ("driver", {"driver": None}),
    ("cuda", {"cuda": 13.0}),
    (r"versions\['numba'\]", {"versions": {"numba": None}}),
    ("versions", {"versions": "0.68"}),
    ("commit", {"commit": " "}),
    ("date", {"date": "20 November 2026"}),
    ("date", {"date": "2026-13-01"}),
    ("ceilings", {"ceilings": None}),
    (r"ceilings\.fp64_TFLOPs", {"ceilings": {"copy_TBps": 4.25, "fp32_TFLOPs": 60.0}}),
    (
        r"ceilings\.copy_TBps",
        {"ceilings": {"copy_TBps": 0.0, "fp32_TFLOPs": 60.0, "fp64_TFLOPs": 30.0}},
    ),
    ("rows", {"rows": []}),
    ("rows", {"rows": "fused"}),
    (r"rows\[0\]", {"rows": [3]}),
]
ROW_FAULTS = [
    ("path", ""),
    ("language", None),
    ("dtype", "float31"),
    ("size", 1000),
    ("plan", None),
    ("order", 4.5),
    ("order", True),
    ("dofs", -1),
    ("samples", 19),
    ("samples", 20.0),
    ("seconds_median", 0.0),
    ("seconds_median", float("nan")),
    ("seconds_iqr", -1e-9),
    ("flops", float("inf")),
    ("bytes", "4e8"),
    ("floor_seconds", 0.0),
    ("efficiency", 0.9),
    ("efficiency", None),
]


@pytest.mark.parametrize(("field", "change"), FAULTS)
def test_a_fault_of_a_record_is_named(field, change):
    with pytest.raises(ValueError, match=f"^{field} = "):
        records.validate(content(**change))


@pytest.mark.parametrize(("field", "value"), ROW_FAULTS)
def test_a_fault_of_a_row_is_named(field, value):
    with pytest.raises(ValueError, match=rf"^rows\[1\]\.{field} = "):
        records.validate(content(rows=[row(), row(**{field: value})]))


@pytest.mark.parametrize("field", sorted(row()))
def test_no_field_of_a_row_may_be_missing(field):
    lacking = row()
    del lacking[field]
    with pytest.raises(ValueError, match=rf"^rows\[0\]\.{field} = None"):
        records.validate(content(rows=[lacking]))


@pytest.mark.parametrize("field", sorted(content()))
def test_no_field_of_a_record_may_be_missing(field):
    lacking = content()
    del lacking[field]
    with pytest.raises(ValueError, match=f"^{field} = None"):
        records.validate(lacking)


def test_what_a_measurement_may_do_without():
    nothing = {"floor_seconds": None, "efficiency": None, "flops": 0, "bytes": 0}
    records.validate(content(rows=[row(order=None, dofs=None, note="extra keys may be there")]))
    records.validate(content(rows=[row(**nothing)]))
    with pytest.raises(ValueError, match=r"rows\[0\]\.floor_seconds"):
        records.validate(content(rows=[row(**nothing | {"bytes": 8})]))


def test_efficiency_may_be_rounded_but_not_wrong():
    exact = row()["efficiency"]
    records.validate(content(rows=[row(efficiency=round(exact, 3))]))
    with pytest.raises(ValueError, match="efficiency"):
        records.validate(content(rows=[row(efficiency=exact + 0.002)]))


def test_a_record_is_a_mapping():
    with pytest.raises(TypeError, match="list"):
        records.validate([content()])


def test_validation_changes_nothing():
    given = content()
    before = copy.deepcopy(given)
    records.validate(given)
    assert given == before


# -------------------------------------------------------------------------- where and by what


def test_environment_fills_all_fields_but_the_measured_ones():
    device = SimpleNamespace(
        kind="cuda", name="Tesla T4", compute_capability=(7, 5), driver="12.8", runtime="12.8"
    )
    found = records.environment(device)
    records.validate(content() | found)
    assert found["compute_capability"] == "7.5"
    assert set(found) == set(content()) - {"name", "ceilings", "rows"}


def test_there_is_no_record_of_a_cpu():
    with pytest.raises(RuntimeError, match="not one"):
        records.environment(SimpleNamespace(kind="cpu", name="x86_64"))


def test_the_revision_tells_a_changed_checkout(tmp_path, monkeypatch):
    def git(*arguments):
        subprocess.run(["git", "-C", tmp_path, *arguments], check=True, capture_output=True)

    monkeypatch.setattr(records, "__file__", str(tmp_path / "dgbook/lab/records.py"))
    assert records.revision().startswith("dgbook ")
    git("init")
    assert records.revision().startswith("dgbook ")  # no commit yet
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-m", "m")
    commit = records.revision()
    assert len(commit) == 12 and int(commit, 16) >= 0
    (tmp_path / "a").write_text("2")
    assert records.revision() == commit + "+changes"


# ------------------------------------------------------------------------------------ numbers


def test_rows_are_found_by_their_fields(tmp_path):
    record = records.load("maxwell/stage", records.save(content(), tmp_path).parent)
    assert record.row(path="paper")["order"] == 5
    assert len(record.select(dtype="float32")) == 2
    with pytest.raises(ValueError, match=r"2 rows .* dtype='float32'"):
        record.row(dtype="float32")
    with pytest.raises(ValueError, match=r"0 rows .* order=9"):
        record.row(order=9)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("s", 2e-4),
        ("ms", 0.2),
        ("us", 200.0),
        ("GB/s", 2000.0),
        ("TB/s", 2.0),
        ("GFLOP/s", 15000.0),
        ("TFLOP/s", 15.0),
        ("MDOF/s", 50000.0),
        ("GDOF/s", 50.0),
        ("efficiency", 4e8 / 4.25e12 / 2e-4),
    ],
)
def test_a_row_in_each_unit(unit, expected):
    assert numbers.in_unit(row(), unit) == pytest.approx(expected, rel=1e-12)
    assert unit in numbers.UNITS


def test_a_row_is_not_read_in_what_it_has_not():
    with pytest.raises(ValueError, match="unit = 'furlong'"):
        numbers.in_unit(row(), "furlong")
    with pytest.raises(ValueError, match="dofs = None"):
        numbers.in_unit(row(dofs=None), "GDOF/s")


def test_the_four_labels(tmp_path):
    record = records.load("maxwell/stage", records.save(content(), tmp_path).parent)
    device = SimpleNamespace(name="Tesla T4")
    assert str(numbers.live(42.87, "GB/s", device)) == "42.9 GB/s  [LIVE Tesla T4]"
    assert str(numbers.live(row(), "GDOF/s", device)) == "50.0 GDOF/s  [LIVE Tesla T4]"
    timing = SimpleNamespace(as_row=lambda: {"seconds_median": 3e-6})
    assert str(numbers.live(timing, "us", device)) == "3.00 us  [LIVE Tesla T4]"
    number = numbers.recorded(record, record.rows[0], "efficiency")
    assert f"{number:.2f}" == "0.47  [RECORDED NVIDIA H200, 2026-11-20]"
    assert (
        str(numbers.paper("klockner2009", "fig. 8a", 57)) == "57  [PAPER klockner2009, Figure 8(a)]"
    )
    assert numbers.paper("chen", "Section 4", 1.0).source == "chen, Section 4"
    ridge = numbers.model(14.6, "flop/B", "ridge point of the ceilings of an H200")
    assert str(ridge) == "14.6 flop/B  [MODEL ridge point of the ceilings of an H200]"


def test_a_recorded_number_stands_in_its_record(tmp_path):
    record = records.load("maxwell/stage", records.save(content(), tmp_path).parent)
    seconds, copy = record.rows[0]["seconds_median"], record.ceilings["copy_TBps"]
    assert numbers.recorded(record, 1e6 * seconds, "us").value == 1e6 * seconds
    assert numbers.recorded(record, 1e3 * copy, "GB/s").unit == "GB/s"
    for computed in (1.37 * seconds, 1.0001 * copy, -copy):
        with pytest.raises(ValueError, match="is no number of record 'maxwell/stage'"):
            numbers.recorded(record, computed, "s")


def test_a_papers_number_stands_in_its_table():
    assert numbers.paper("klockner2009", "Table 2", 1.57).value == 1.57
    assert numbers.paper("klockner2009", "Figure 8(a)", 57).value == 57
    with pytest.raises(ValueError, match="58 does not stand in klockner2009, Figure 8"):
        numbers.paper("klockner2009", "Figure 8(a)", 58)


def test_sums_parts_and_rates_keep_their_origin():
    a, b = (Number(value, "ms", "RECORDED", "a GPU") for value in (1.0, 3.0))
    assert str(sum([a, b])) == "4.00 ms  [RECORDED a GPU]"
    assert str(b / 2) == "1.50 ms  [RECORDED a GPU]"
    assert str(numbers.rate(6e9, b, "TB/s")) == "2.00 TB/s  [RECORDED a GPU]"
    with pytest.raises(ValueError, match="one unit and one origin"):
        a + Number(1.0, "ms", "LIVE", "a GPU")


def test_live_finds_the_device_by_itself():
    from dgbook.gpu import device

    assert numbers.live(1.0, "s").source == device().name


def test_labels_are_not_invented(tmp_path):
    record = records.load("maxwell/stage", records.save(content(), tmp_path).parent)
    with pytest.raises(ValueError, match="not one of record"):
        numbers.recorded(record, row(order=9), "s")
    with pytest.raises(ValueError, match="item = 'Table 9'; klockner2009 has table1"):
        numbers.paper("klockner2009", "Table 9", 1.0)
    with pytest.raises(ValueError, match="nobody2020"):
        numbers.paper("nobody2020", "Table 1", 1.0)
    with pytest.raises(ValueError, match="label = 'MEASURED'"):
        Number(1.0, "s", "MEASURED", "somewhere")
    with pytest.raises(TypeError, match="value = 'fast'"):
        Number("fast", "s", "LIVE", "here")


@pytest.mark.parametrize("show", [str, "{}".format, "{:.2f}".format, Number._repr_html_])
@pytest.mark.parametrize("number", [Number(42.9, "GB/s"), Number(42.9, "GB/s", "LIVE", "")])
def test_an_unlabeled_number_is_not_shown(show, number):
    with pytest.raises(ValueError, match=r"42\.9 GB/s has no (label|source)"):
        show(number)


def test_a_quotient_keeps_both_origins():
    ours = Number(90.0, "GDOF/s", "LIVE", "Tesla T4")
    theirs = Number(30.0, "GDOF/s", "PAPER", "klockner2009, Figure 8(b)")
    assert str(ours / theirs) == "3.00 ×  [LIVE/PAPER Tesla T4 / klockner2009, Figure 8(b)]"
    assert (ours / Number(45.0, "GDOF/s", "LIVE", "Tesla T4")).label == "LIVE"
    other_day = ours / Number(45.0, "GDOF/s", "LIVE", "Tesla P4")
    assert str(other_day) == "2.00 ×  [LIVE Tesla T4 / Tesla P4]"
    with pytest.raises(ValueError, match="one unit"):
        ours / Number(1.0, "s", "LIVE", "Tesla T4")
    with pytest.raises(ValueError, match="no label"):
        ours / Number(1.0, "GDOF/s")


def test_html_carries_the_label_without_a_style_sheet_and_escapes_text():
    number = Number(1.5, "GB/s", "RECORDED", "GPU <&> 1")
    page = Balance(number._repr_html_())
    assert page.text == "1.50 GB/s RECORDED GPU <&> 1"
    (span,) = [attributes for tag, attributes in page.tags if tag == "span"]
    assert span["class"] == "dg-label label-recorded"
    assert "currentColor" in span["style"]
    with pytest.raises(ValueError, match="GUESS"):
        numbers.badge("GUESS")


@pytest.mark.parametrize(
    "value", [0.0012345, 0.99951, 1.0, 9.996, 42.871, 12345.6, 999600.0, 3.2e-7]
)
def test_three_significant_digits(value):
    text = numbers.significant(value)
    assert float(text) == pytest.approx(value, rel=5e-3)
    if value < 999_500:
        digits = text.split("e")[0].replace(".", "").lstrip("0")
        assert len(digits) == max(3, len(str(int(value))))
    assert numbers.significant(-value) == "-" + text


def test_integers_are_shown_whole():
    assert numbers.significant(78745) == "78745"
    assert numbers.significant(0.0) == "0"


# ------------------------------------------------------------------------------------- tables


def labeled(*values, label="LIVE", source="Tesla T4"):
    return [Number(v, "GDOF/s", label, source) for v in values]


def test_a_common_origin_stands_in_the_heading_once():
    rows = [[f"N = {i}", i, n] for i, n in enumerate(labeled(1.0, 2.0, 3.0), 1)]
    table = tables.table(rows, ["order", "N", "ours"], "Throughput & more")
    page = Balance(table._repr_html_())
    assert page.text.count("LIVE") == 1 and page.text.count("Tesla T4") == 1
    assert (
        page.tags[0][1]["class"] == "table-scroll"
        and page.tags[0][1]["aria-label"] == "Throughput & more"
    )
    scopes = [attributes.get("scope") for tag, attributes in page.tags if tag == "th"]
    assert scopes == ["col"] * 3 + ["row"] * 3
    lines = str(table).splitlines()
    assert lines[0] == "Throughput & more"
    assert lines[1].split() == ["order", "N", "ours", "[LIVE", "Tesla", "T4]"]
    assert lines[-1].split() == ["N", "=", "3", "3", "3.00", "GDOF/s"]


def test_an_origin_of_several_columns_stands_with_the_caption():
    """Once; units stay in the headings, or in cells where a column has several."""
    n = dict(label="RECORDED", source="H200")
    rows = [["a", Number(1.0, "us", **n), Number(2.0, "us", **n), None]]
    rows += [["b", Number(3.0, "us", **n), Number(4.0, "TB/s", **n), Number(5.0, "%", **n)]]
    table = tables.table(rows, ["", "time", "best", "share"], "All & more", {"share": ".0f"})
    page = Balance(table._repr_html_())
    assert page.text.count("RECORDED") == 1 and page.text.count("H200") == 1
    assert page.text.startswith("All & more RECORDED H200timeusbestshare%")
    assert page.tags[0][1]["aria-label"] == "All & more"
    assert "2.00 us" in page.text and "4.00 TB/s" in page.text and "1.00 us" not in page.text
    lines = str(table).splitlines()
    assert lines[0] == "All & more [RECORDED H200]"
    assert lines[1].split() == ["time", "best", "share"]
    assert lines[-1].split() == ["b", "3.00", "us", "4.00", "TB/s", "5", "%"]
    # Not if another origin is among them.
    mixed = [["a", Number(1.0, "us", **n), Number(2.0, "us", "PAPER", "chen, Table 2")]]
    lines = str(tables.table(mixed, ["", "time", "best"], "Two")).splitlines()
    assert lines[0] == "Two" and "[RECORDED H200]" in lines[1] and "[PAPER chen" in lines[1]


def test_an_origin_of_a_row_stands_at_its_head():
    """Once per row, if no row has two; a column with one origin keeps it in its heading."""
    rows = [
        ["old", *labeled(1.0, 2.0, label="RECORDED", source="H200")],
        ["new", *labeled(3.0, 4.0)],
    ]
    rows = [[*row, Number(5.0, "us", "MODEL", "data sheet")] for row in rows]
    table = tables.table(rows, ["", "rate", "best", "floor"], "Two rows")
    head, _, old, new = str(table).splitlines()[1:]
    assert head.split() == ["rate", "best", "floor", "[MODEL", "data", "sheet]"]
    assert old.startswith("old [RECORDED H200]") and new.startswith("new [LIVE Tesla T4]")
    text = Balance(table._repr_html_()).text
    assert text.count("RECORDED") == text.count("LIVE") == text.count("MODEL") == 1
    assert "1.00 GDOF/s" in text and "oldRECORDED H200" in text
    # Not if a row has two.
    rows[0][1] = labeled(1.0, label="PAPER", source="chen, Table 2")[0]
    lines = str(tables.table(rows, ["", "rate", "best", "floor"], "Mixed")).splitlines()
    assert "[PAPER chen, Table 2]" in lines[3] and not lines[3].startswith("old [")


def test_different_origins_stand_in_each_cell():
    rows = [["a", labeled(1.0)[0]], ["b", labeled(2.0, label="PAPER", source="chen, Table 2")[0]]]
    table = tables.table(rows, ["", "rate"], "Two origins", formats={"rate": ".1f"})
    assert "1.0 GDOF/s  [LIVE Tesla T4]" in str(table)
    assert "2.0 GDOF/s  [PAPER chen, Table 2]" in str(table)
    text = Balance(table._repr_html_()).text
    assert text.count("LIVE") == 1 and text.count("PAPER") == 1


def test_a_table_refuses_what_has_no_label():
    with pytest.raises(TypeError, match=r"rows\[0\], 'rate': 3\.5 is a number without a label"):
        tables.table([["a", 3.5]], ["", "rate"], "c")
    with pytest.raises(ValueError, match="no label"):
        tables.table([["a", Number(3.5)]], ["", "rate"], "c")
    with pytest.raises(ValueError, match=r"rows\[0\] has 1 cells"):
        tables.table([["a"]], ["", "rate"], "c")
    with pytest.raises(ValueError, match="formats"):
        tables.table([["a", None]], ["", "rate"], "c", formats={"speed": ".1f"})
    assert "–" in str(tables.table([["a", None]], ["", "rate"], "c"))


def test_records_in_the_book_are_valid():
    for path in sorted(Path(records.default_folder()).glob("*.json")):
        records.validate(json.loads(path.read_text(encoding="utf-8")))


def test_samples_agree_with_the_timing_protocol():
    from dgbook.gpu import timing

    assert records.FEWEST_SAMPLES == timing.FEWEST_SAMPLES


CACHED = 2 * 63e6
"""Bytes of a working set that the L2 of the recorded GPUs still serves in part."""
READS = 1.12
"""Reading alone is faster than a copy by so much: HDG's product reads a matrix once."""
SPREAD = 1.05
"""Two runs of a memory-bound kernel, the ceiling's and the row's, differ by so much."""


@pytest.mark.parametrize("record", records.all_records(), ids=lambda record: record.name)
def test_no_recorded_efficiency_is_above_one(record):
    ceiling = READS if record.name.startswith("hdg/") else SPREAD
    unmeasured = "fp64_tensor_TFLOPs" not in record.ceilings
    for row in record.rows:
        on_tensor_cores = (row["plan"] or {}).get("tensor")
        if row["efficiency"] and row["bytes"] > CACHED and not (on_tensor_cores and unmeasured):
            assert row["efficiency"] < ceiling, row
