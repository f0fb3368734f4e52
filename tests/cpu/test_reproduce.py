"""All tables and figures of the papers are known, transcribed right, and judged fairly."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from dgbook.gpu.layout import microblock_size, padded, padding_waste
from dgbook.lab import papers, reproduce
from dgbook.lab.numbers import significant
from dgbook.lab.papers import KINDS
from dgbook.lab.reproduce import Item, Ours, klockner2009
from dgbook.lab.reproduce.verdict import (
    ALONE,
    CANNOT,
    CLOSE,
    DIFFERS,
    MATCHES,
    NOT_YET,
    UNEXPLAINED,
)

ITEMS = [(paper, item) for paper in reproduce.papers() for item in paper.items]
NAMES = [f"{paper.name}-{item.id}" for paper, item in ITEMS]


def rows(name, number):
    (item,) = reproduce.find(name, number)
    return item.rows


def columns(name, number):
    """The columns of a table as arrays."""
    table = rows(name, number)
    first = next(iter(table.values()))
    return {c: np.array([row[c] for row in table.values()]) for c in first}


# ------------------------------------------------------------------------------- completeness

# Tables, figures and the panels of each figure, counted in the papers.
PANELS = {
    "klockner2009": (3, [1, 1, 2, 2, 2, 1, 3, 2, 2, 2, 2, 1]),
    "roca2011": (3, [3, 4, 4, 2]),
    "chen": (3, [1, 2, 1]),
    "chan2015": (0, [1] * 12),
    "magee2017": (0, [2, 2, 2, 2, 1, 1, 2, 2, 2, 2]),
}


@pytest.mark.parametrize("name", PANELS)
def test_every_table_and_figure_is_there_in_order(name):
    tables, figures = PANELS[name]
    expected = [f"table{i}" for i in range(1, tables + 1)]
    for figure, panels in enumerate(figures, 1):
        expected += [f"figure{figure}{c}" for c in ("abcd"[:panels] if panels > 1 else [""])]
    assert [item.id for item in reproduce.paper(name).items] == expected


def test_there_are_five_papers():
    assert [paper.name for paper in reproduce.papers()] == list(PANELS)
    assert len(ITEMS) == 77
    with pytest.raises(ValueError, match="chen2018"):
        reproduce.paper("chen2018")


@pytest.mark.parametrize(("paper", "item"), ITEMS, ids=NAMES)
def test_every_item_is_well_formed(paper, item):
    assert item.kind in KINDS and re.fullmatch(r"([1-9]|1[01])[bcd]?", str(item.chapter))
    assert len(item.title.split()) >= 3 and not item.title.endswith(".")
    assert item.state in ("runs", "cannot", "not yet")
    assert (item.state == "cannot") == bool(item.obstacle)
    if item.kind == "illustration":
        assert not item.rows
    for row in item.rows.values():
        assert row and all(math.isfinite(value) for value in row.values())
    assert reproduce.find(paper.name, item.number) == (item,)


@pytest.mark.parametrize(("paper", "item"), ITEMS, ids=NAMES)
def test_what_runs_gets_a_verdict_and_the_rest_says_why_not(paper, item):
    verdict = reproduce.compare(paper, item)
    assert verdict.word != UNEXPLAINED
    assert (verdict.word == NOT_YET) == (item.state == "not yet")
    text = str(verdict)
    assert text.startswith(f"{paper.name}, {item.number}: ")
    assert re.search(r"\nVerdict: \w", text)


@pytest.mark.parametrize(("paper", "item"), ITEMS, ids=NAMES)
def test_all_numbers_are_told_in_the_width_of_a_terminal(paper, item):
    verdict = reproduce.compare(paper, item)
    text = str(verdict)
    assert max(map(len, text.splitlines())) <= 100
    if verdict.ours and item.kind == "measurement":
        origin = f"ours [{verdict.ours.label} {verdict.ours.source}]\n"
        assert f"\npaper [PAPER {paper.name}], {origin}" in text
    printed = [cell for cell in verdict.cells if cell.paper is not None]
    table = re.split(r"\n +paper.*\n", text)[-1].splitlines()
    for cell, line in zip(printed, table, strict=False):
        assert f" {cell.column} " in line
        assert f" {cell.paper:.10g}" in line
        for number in (cell.ours, cell.ratio):
            assert number is None or f" {significant(number)}" in line
    tables = re.split(r"^ours  +", text, flags=re.M)[1:]
    for cell in (cell for cell in verdict.cells if cell.paper is None):
        holds = re.compile(rf"(^|  ){re.escape(cell.column)}(  |$)")
        (part,) = (part for part in tables if holds.search(part.splitlines()[0]))
        assert significant(cell.ours) in part


@pytest.mark.parametrize(
    ("spelling", "found"),
    [
        ("table2", ["table2"]),
        ("Table 2", ["table2"]),
        ("tab. 2", ["table2"]),
        ("figure3a", ["figure3a"]),
        ("Figure 3(a)", ["figure3a"]),
        ("fig. 3a", ["figure3a"]),
        ("Fig 3 (B)", ["figure3b"]),
        ("figure3", ["figure3a", "figure3b"]),
        ("figure12", ["figure12"]),
        ("figure1", ["figure1"]),
    ],
)
def test_items_are_found_in_usual_spellings(spelling, found):
    assert [item.id for item in reproduce.find("klockner2009", spelling)] == found


@pytest.mark.parametrize("wrong", ["table4", "figure13", "figure3c", "", "3a", "figure"])
def test_an_unknown_item_is_refused_with_the_list(wrong):
    with pytest.raises(ValueError, match=r"item = .*figure3a, figure3b"):
        reproduce.find("klockner2009", wrong)


# ----------------------------------------------------------- transcription, by what must hold


def test_klockner_node_counts_are_binomials():
    for N, row in enumerate(rows("klockner2009", "figure 3a").values(), 1):
        assert row == {
            "Np": math.comb(N + 3, 3),
            "Nfp": math.comb(N + 2, 2),
            "Nf Nfp": 4 * math.comb(N + 2, 2),
        }


def test_klockner_orders_are_the_slopes_of_its_errors():
    h = np.array([0.3, 0.255, 0.21675, 0.184237])
    np.testing.assert_allclose(h[1:] / h[:-1], 0.85, rtol=1e-5)
    table = rows("klockner2009", "table 2")
    assert list(table) == [f"N = {N}" for N in range(1, 10)]
    for row in table.values():
        *errors, order = row.values()
        assert np.all(np.diff(errors) < 0)
        slope = np.polyfit(np.log(h), np.log(errors), 1)[0]
        assert slope == pytest.approx(order, abs=0.015)


def test_klockner_best_plan_is_the_same_in_table_and_figure():
    assert rows("klockner2009", "table 3").items() <= rows("klockner2009", "figure 10b").items()


def test_roca_sizes_are_products():
    c = columns("roca2011", "table 1")
    p, faces, components, coupled = np.arange(1, 6), 11780, 4, 5
    block = (p + 1) * components
    np.testing.assert_array_equal(c["unknowns of a face"], block)
    np.testing.assert_array_equal(c["unknowns"], block * faces)
    np.testing.assert_array_equal(c["block values"], block**2 * coupled * faces)
    ratio = c["block values"] / c["CSR values"]
    np.testing.assert_allclose(c["block values / CSR values"], ratio, atol=6e-5)


def test_roca_memory_is_that_of_its_formats():
    """8 bytes a value, 4 an index; x, y and matrix, and for blocks the inflated x: see its V.A."""
    c = columns("roca2011", "table 1")
    n, faces, coupled = c["unknowns"], 11780, 5
    csr = 12 * c["CSR values"] + 4 * (n + 1) + 16 * n
    blocks = 8 * (c["block values"] + coupled * n + n) + 4 * coupled * faces
    for name, size in (("CSR memory", csr), ("block memory", blocks)):
        np.testing.assert_allclose(c[name], size / 2**20, atol=0.01)
    ratio = c["block memory"] / c["CSR memory"]
    np.testing.assert_allclose(c["block memory / CSR memory"], ratio, atol=5.1e-3)


def test_roca_times_add_up_and_tables_agree():
    steps, rivals = columns("roca2011", "table 2"), columns("roca2011", "table 3")
    np.testing.assert_allclose(steps["inflate"] + steps["contract"], steps["both"], atol=0.0151)
    np.testing.assert_allclose(steps["share inflate"] + steps["share contract"], 100, atol=1e-9)
    share = 100 * steps["inflate"] / steps["both"]
    np.testing.assert_allclose(steps["share inflate"], share, atol=0.7)
    np.testing.assert_array_equal(steps["both"], rivals["proposed"])
    for who in ("MATLAB", "cuSPARSE", "proposed"):
        printed = rivals[f"{who} speed-up"]
        least = (rivals["MATLAB"] - 0.005) / (rivals[who] + 0.005) - 0.005
        most = (rivals["MATLAB"] + 0.005) / (rivals[who] - 0.005) + 0.005
        assert np.all((least <= printed) & (printed <= most))


def test_chen_speedups_are_quotients():
    for number in ("table 2", "figure 3"):
        c = columns("chen", number)
        assert len(c["CPU"]) == 15
        np.testing.assert_allclose(c["speed-up"], c["CPU"] / c["GPU"], rtol=1.1e-3)


def test_chen_times_grow_with_mesh_and_order():
    table = rows("chen", "table 1")
    assert len(table) == 6
    for block in ("32", "64", "128", "256", "512"):
        times = np.array(
            [[table[f"N = {n}, p = {p}"][block] for p in range(3)] for n in (160, 320)]
        )
        assert np.all(np.diff(times, axis=0) > 0) and np.all(np.diff(times, axis=1) > 0)
    cpu = columns("chen", "table 2")["CPU"].reshape(3, 5)
    # A serial code's time grows with the number of triangles, four times from mesh to mesh.
    np.testing.assert_allclose(cpu[:, 1:] / cpu[:, :-1], 4, rtol=0.07)


@pytest.mark.parametrize(("paper", "item"), ITEMS, ids=NAMES)
def test_intervals_rise(paper, item):
    for row in item.rows.values():
        for column, low in row.items():
            high = row.get(re.sub("from$", "to", column))
            if column.endswith("from") and high is not None:
                assert low < high


# --------------------------------------------------------------------------------- microblocks


@pytest.mark.parametrize("N", range(1, 12))
@pytest.mark.parametrize("granularity", [8, 16, 32])
def test_a_microblock_is_the_smallest_that_wastes_little(N, granularity):
    Np = math.comb(N + 3, 3)
    K = microblock_size(Np, granularity)

    def waste(elements):
        places = math.ceil(elements * Np / granularity) * granularity
        return (places - elements * Np) / places

    assert waste(K) < 0.05
    assert all(waste(k) >= 0.05 for k in range(1, K))
    assert K <= granularity


def test_microblocks_by_hand():
    """Order 4: 35 nodes; 35 in 48, 70 in 80 and 105 in 112 waste too much, 140 in 144 does not."""
    assert microblock_size(35) == 4
    assert padded(4 * 35, 16) == 144
    assert padding_waste(35, 32) == pytest.approx(29 / 64)
    assert padded(0, 16) == 0 and padded(16, 16) == 16


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: microblock_size(0), "Np = 0"),
        (lambda: microblock_size(4, waste=0.0), "waste = 0"),
        (lambda: microblock_size(4, granularity=0), "granularity = 0"),
        (lambda: padded(-1, 16), "count = -1"),
        (lambda: padding_waste(0, 16), "count = 0"),
    ],
)
def test_impossible_layouts_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_figure_3_is_reproduced():
    paper = reproduce.paper("klockner2009")
    counts, blocks = (
        reproduce.compare(paper, item) for item in reproduce.find("klockner2009", "figure3")
    )
    assert counts.word == blocks.word == MATCHES
    assert len(counts.compared) == 21 and all(cell.ratio == 1 for cell in counts.compared)
    assert counts.ours.rows["N = 9"]["Np"] == 220
    assert blocks.ours.rows["N = 3"]["K_M"] == 4 and blocks.ours.rows["N = 3"]["N_pM"] == 80


def test_figure_3_would_not_match_other_elements(monkeypatch):
    """The counts come from the element: of triangles they are others, and the verdict says so."""
    tetrahedra = klockner2009.NodalElement
    monkeypatch.setattr(klockner2009, "NodalElement", lambda dim, N: tetrahedra(2, N))
    (item,) = reproduce.find("klockner2009", "figure3a")
    verdict = reproduce.compare(reproduce.paper("klockner2009"), item)
    assert verdict.word == UNEXPLAINED and sum(cell.same for cell in verdict.compared) < 21


# ------------------------------------------------------------------------------------ verdicts


def judge(ours=None, kind="count", rows=None, **options):
    item = Item(
        "Table 1",
        "Two made-up values",
        kind,
        1,
        rows={"N = 1": {"a": 2.0, "b": 4.0}} if rows is None else rows,
        compute=(lambda: ours) if ours else None,
        **options,
    )
    return reproduce.compare(reproduce.paper("chen"), item)


def test_a_match():
    verdict = judge(Ours({"N = 1": {"a": 2.0, "b": 4.0, "c": 9.0}}))
    assert verdict.word == MATCHES and str(verdict).endswith("Verdict: matches (2 of 2 values).")
    assert [cell.ratio for cell in verdict.cells] == [1.0, 1.0, None]


def test_the_tolerance_is_relative_and_closed():
    close = judge(Ours({"N = 1": {"a": 2.0, "b": 4.2}}), tolerance=0.06)
    assert close.word == CLOSE
    assert "agrees within 6 percent of each value (1 of 2 are the same to the digits" in str(close)
    assert judge(Ours({"N = 1": {"b": 4.2}}), tolerance=0.04).word == UNEXPLAINED


def test_digits_are_the_papers():
    """What the paper rounded matches if ours rounds to it: no tolerance is needed for that."""
    rows = {"N = 1": {"a": 0.75, "b": 45.0}}
    rounded = judge(Ours({"N = 1": {"a": 0.7461, "b": 45.3}}), rows=rows, tolerance=0.02)
    assert [cell.exact for cell in rounded.cells] == [True, False]
    rows = {"N = 1": {"a": 0.75, "b": 45}}
    assert (
        judge(Ours({"N = 1": {"a": 0.7461, "b": 45.3}}), rows=rows, tolerance=0.02).word == MATCHES
    )


def test_what_rounding_made_is_marked():
    ours = Ours({"N = 1": {"a": 3.0, "b": 5.0}}, "it is", rounding=frozenset({("N = 1", "b")}))
    text = str(judge(ours))
    assert re.search(r"5\.00\*", text) and not re.search(r"3\.00\*", text)
    assert "\n* mostly rounding" in text


def test_only_ours_takes_a_line_per_row():
    """Columns side by side, in as many tables as the terminal's width needs."""
    ours = Ours(
        {f"N = {N}": {f"some quantity {i}": float(N * i) for i in range(8)} for N in (3, 7)}
    )
    text = str(judge(ours, rows={}))
    assert (
        max(map(len, text.splitlines())) <= 100 and "paper " not in text.split("chapter 1")[1][:40]
    )
    assert text.count("\nours ") == 2 and text.count("\nN = 3 ") == text.count("\nN = 7 ") == 2
    assert re.search(r"\nN = 7 +0 +7\.00 +14\.0", text)


def test_a_difference_with_and_without_a_reason():
    rows = {"N = 1": {"a": 2.0, "b": 5.0}}
    explained = judge(Ours(rows, because="the mesh is another one"))
    assert explained.word == DIFFERS
    assert "differs because the mesh is another one (1 of 2 values" in str(explained)
    assert "1.25" in str(explained)
    assert "nobody has said why (1 of 2" in str(judge(Ours(rows)))


def test_what_cannot_be_and_what_is_not_yet():
    cannot = judge(obstacle="the mesh was never published")
    assert cannot.word == CANNOT
    assert str(cannot).endswith("cannot be reproduced because the mesh was never published.")
    assert str(judge()).endswith("Verdict: not yet in this version.")
    assert "2" in str(judge()) and "ours" not in str(judge())


def test_a_plot_without_numbers_is_not_compared():
    ours = Ours({"N = 1": {"a": 3.0}}, because="drawn in chapter 6")
    alone = judge(ours, rows={})
    assert alone.word == ALONE and not alone.compared
    assert str(alone).endswith("the paper prints no values; drawn in chapter 6.")


def test_measurements_have_a_label_and_nothing_else_has():
    rows = {"N = 1": {"a": 3.0}}
    measured = Ours(rows, "the GPU is another one", "RECORDED", "NVIDIA H200, 2026-11-20")
    text = str(judge(measured, kind="measurement", units={"a": "GB/s"}))
    assert "ours [RECORDED NVIDIA H200, 2026-11-20]" in text and "paper [PAPER chen]" in text
    assert re.search(r"2 GB/s +3\.00 GB/s +1\.50", text)
    with pytest.raises(ValueError, match="label"):
        judge(Ours(rows), kind="measurement")
    with pytest.raises(ValueError, match="label"):
        judge(measured, kind="count")


def test_results_that_compare_nothing_are_refused():
    with pytest.raises(ValueError, match="no value in common"):
        judge(Ours({"N = 2": {"a": 1.0}}))
    with pytest.raises(ValueError, match="rows is empty"):
        Ours({})
    with pytest.raises(ValueError, match="source = ''"):
        Ours({"N = 1": {"a": 1.0}}, label="LIVE")
    with pytest.raises(ValueError, match="PAPER"):
        Ours({"N = 1": {"a": 1.0}}, label="PAPER", source="chen")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"number": "Fig. 1"}, "number = "),
        ({"kind": "plot"}, "kind = "),
        ({"units": {"speed": "m/s"}}, "units of"),
        ({"tolerance": -1.0}, "tolerance = "),
        ({"compute": lambda: None, "obstacle": "none"}, "no obstacle"),
    ],
)
def test_a_malformed_item_is_refused(change, message):
    fields = {"number": "Figure 1", "title": "t", "kind": "count", "chapter": 1} | change
    with pytest.raises(ValueError, match=message):
        Item(**fields)


def test_a_row_has_a_value_for_each_column(tmp_path, monkeypatch):
    head = 'authors = "A"\ntitle = "T"\nhardware = "H"\n[[items]]\nnumber = "Table 1"\n'
    head += 'title = "t"\nkind = "count"\nchapter = 1\ncolumns = ["a", "b"]\n[items.rows]\n'
    monkeypatch.setattr(papers, "PAPERS", tmp_path)
    read = papers.paper.__wrapped__  # without what is remembered
    (tmp_path / "chen.toml").write_text(head + "r = [1, 2]\n")
    assert read("chen").items[0].rows == {"r": {"a": 1, "b": 2}}
    (tmp_path / "chen.toml").write_text(head + "r = [1]\n")
    with pytest.raises(ValueError, match="shorter"):
        read("chen")
