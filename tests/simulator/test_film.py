"""Films: rows, sectors, banks and arrows against counts by hand."""

import json
import re

import numpy as np
import pytest

from dgbook.check.simulator import Access, ThreadId
from dgbook.gpu import cuda, jit
from dgbook.page import film
from dgbook.page.log import fold, record, request, traffic

f4 = np.float32
ALT = "Four threads work on one element"


@jit
def row(u, D, new):
    s = cuda.shared.array(4, f4)
    i = cuda.threadIdx.x
    j = cuda.blockIdx.x * 4 + i
    s[i] = u[j]
    cuda.syncthreads()
    total = f4(0)
    for m in range(4):
        total += D[i, m] * s[m]
    new[j] = total


@jit
def unguarded(u, D, new):
    s = cuda.shared.array(4, f4)
    i = cuda.threadIdx.x
    j = cuda.blockIdx.x * 4 + i
    s[i] = u[j]
    total = f4(0)
    for m in range(4):
        total += D[i, m] * s[m]
    new[j] = total


@jit
def in_place(u):
    i = cuda.threadIdx.x
    k = cuda.blockIdx.x
    left = u[(k * 4 - 1) % 8]
    cuda.syncthreads()
    u[k * 4 + i] = left


def arguments():
    return np.arange(8, dtype=f4), np.ones((4, 4), f4), np.zeros(8, f4)


def test_rows_are_instructions_with_lanes_in_step():
    rows = film(row, 2, 4, *arguments(), alt=ALT).rows
    told = [(r.line, r.kind, r.array, r.label) for r in rows]
    assert told == [
        (3, "none", "", ""),
        (4, "rg", "", ""),
        (5, "rg", "", ""),
        (6, "gr", "u", ""),
        (6, "sw", "s", ""),
        (7, "wt", "barrier", ""),
        (8, "rg", "", ""),
        (9, "rg", "", ""),
        *[
            (10, kind, array, label)
            for m in range(4)
            for kind, array, label in (("gr", "D", f"m = {m}"), ("sr", "s", ""))
        ],
        (11, "gw", "new", ""),
    ]
    column = {c: act.element for c, (_, act) in rows[10].cells.items()}  # D in round m = 1
    assert told[10][3] == "m = 1" and column == {0: 1, 1: 5, 2: 9, 3: 13}
    step, _ = rows[-2].cells[2]
    assert step.thread == ((0, 0, 0), (2, 0, 0), 2) and step.values["m"] == 3


def test_a_shared_array_begins_behind_the_one_before():
    @jit
    def backwards(out):
        first = cuda.shared.array(3, f4)
        second = cuda.shared.array(4, f4)
        i = cuda.threadIdx.x
        second[3 - i] = 1
        first[i % 3] = 2
        out[i] = second[3 - i]

    found = record(backwards, 1, 3, [np.zeros(3, f4)]).arrays
    assert found["first"] == (True, 4, 0) and found["second"] == (True, 4, 3 * 4)


def lanes(elements, nbytes=4, shared=False):
    return [
        Access(ThreadId((0, 0, 0), (t, 0, 0), t), "read", "x", shared, (e,), e, e * nbytes, nbytes,
               "kernel", 1)
        for t, e in enumerate(elements)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("elements", "nbytes", "sectors", "words"),
    [
        (range(32), 4, 4, "128 of 128"),
        (range(1, 33), 4, 5, "128 of 160"),  # begins and ends within a sector
        (range(0, 64, 2), 4, 8, "128 of 256"),
        (range(0, 256, 8), 4, 32, "128 of 1024"),
        (range(32), 8, 8, "256 of 256"),
        ([7] * 32, 4, 1, "4 of 32"),
        ([0, 4, 8, 12], 4, 2, "16 of 64"),  # a column of four rows of four
    ],
)
def test_sectors_of_one_instruction(elements, nbytes, sectors, words):
    asked = request(lanes(elements, nbytes))
    plural = "s" * (sectors > 1)
    assert (asked.sectors, asked.words) == (sectors, f"{sectors} sector{plural}, {words} bytes")
    assert sum(map(any, asked.places)) == sectors


@pytest.mark.parametrize(
    ("elements", "nbytes", "ways", "words"),
    [
        (range(32), 4, 1, "32 banks, no conflict"),
        (range(0, 64, 2), 4, 2, "2-way bank conflict"),
        (range(0, 1024, 32), 4, 32, "32-way bank conflict"),
        (range(0, 32 * 33, 33), 4, 1, "32 banks, no conflict"),
        ([5] * 32, 4, 1, "one word for all: broadcast"),
        (range(32), 8, 1, "32 banks, no conflict"),  # each half of the warp fills all banks once
        (range(0, 64, 2), 8, 2, "2-way bank conflict"),  # lanes 0 and 8 both want bank 0
    ],
)
def test_banks_of_one_instruction(elements, nbytes, ways, words):
    asked = request(lanes(elements, nbytes, shared=True))
    assert (asked.ways, asked.words, asked.conflict) == (ways, words, ways > 1)
    assert max(map(max, asked.places)) == ways


def test_traffic_adds_up_all_warps():
    # Per block: u one sector; D, four rounds of two sectors; new one sector. Two blocks.
    log = record(row, 2, 4, arguments())
    assert traffic(log) == {("u", "read"): 2, ("D", "read"): 16, ("new", "write"): 2}


def test_what_is_filmed_stays_as_it_is_and_the_log_has_the_result():
    u, D, new = arguments()
    log = record(row, 2, 4, (u, D, new))
    assert (new == 0).all() and log.clash is None
    np.testing.assert_array_equal(log.args["new"], [6] * 4 + [22] * 4)


def arrows(html):
    return re.findall(r'class="clash" data-from="(\d+)" data-to="(\d+)"', html)


def test_a_race_is_an_arrow_from_the_write_to_the_read():
    # Block 0 writes u[3] in line 7; then thread 0 of block 1 reads it in line 5.
    shown = film(in_place, 2, 4, np.zeros(8, f4), alt=ALT)
    assert arrows(shown.still().html) == [("7", "5")] * 2  # on the page and on the phone
    assert [group[0].block[0] for group in shown.shown] == [0, 1]
    clash = shown.log.clash
    assert clash.kind == "race" and clash.other.thread.linear == 3 and clash.other.element == 3
    assert "race on u[3]" in shown.still().html


def test_a_missing_barrier_is_an_arrow_from_the_write_that_came_too_late():
    shown = film(unguarded, 2, 4, *arguments(), alt=ALT)
    assert arrows(shown.still().html) == [("6", "9")] * 2
    clash = shown.log.clash
    assert clash.kind == "unwritten" and clash.other.thread.linear == 1 and clash.other_step.ghost
    ghosts = [s for s in shown.log.steps if s.ghost]
    assert {s.thread.linear for s in ghosts if s.thread.block == (0, 0, 0)} == {0, 1, 2, 3}


def test_without_an_objection_there_is_no_arrow():
    assert arrows(film(row, 2, 4, *arguments(), alt=ALT).still().html) == []


def test_lines_that_an_earlier_kernel_does_not_have_are_marked():
    assert film(row, 2, 4, *arguments(), alt=ALT, before=unguarded).changed == {7}


def test_a_picture_has_two_drawings_no_names_and_no_background():
    html = film(row, 2, 4, *arguments(), alt='says "so" & more words').still().html
    assert html.count('role="img" aria-label="says &quot;so&quot; &amp; more words"') == 2
    assert " id=" not in html and "url(" not in html and '#fff"' not in html
    assert "<script" not in html and len(html) < 40_000


def test_long_numbers_in_narrow_cells_are_small():
    @jit
    def copy(u, new):
        i = cuda.threadIdx.x
        new[i] = u[i + 95]

    wide, narrow = (
        film(copy, 1, lanes, np.arange(200.0), np.zeros(16), alt=ALT)
        .still()
        .html.split("</svg>")[0]
        for lanes in (6, 10)
    )
    assert re.findall(r"n gr t[^>]*>(\d+)<", narrow) == ["100", "101", "102", "103", "104"]
    assert ">100<" in wide and "n gr t" not in wide


def test_a_player_keeps_the_picture_for_where_no_script_runs():
    shown = film(row, 2, 4, *arguments(), alt=ALT)
    player = shown.player()
    assert "dgf-still" in player.html and player.html.count("</script>") == 1
    assert shown._repr_html_() == player.html and player.alt == ALT
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", player.html)


def test_rounds_of_a_long_loop_are_left_out():
    @jit
    def long(u):
        """What is said here takes no time."""
        total = f4(0)
        for m in range(
            40,
        ):
            total += u[m]
        u[0] = total

    rows = film(long, 1, 1, np.zeros(40, f4), alt=ALT).rows
    assert [r.text.strip() for r in rows if r.line == 5] == ["for m in range(40,):"]
    labels = [r.label for r in fold(rows, first=2, most=5) if r.line == 8]
    assert labels == ["m = 0", "m = 1", "37 more rounds", "m = 39"]
    assert len(fold(rows, first=2, most=40)) == len(rows) and rows[0].text.endswith("f4(0)")


def test_a_short_film_has_first_and_last_rounds_and_says_whose_line_a_row_is():
    @jit
    def paired(u, v):
        i = cuda.threadIdx.x
        for s in range(4):
            u[i, s] = s
            v[i, s] = s

    nothing = np.zeros((4, 4), f4)
    made = film(paired, 1, 4, nothing, nothing, alt=ALT, short=True).player().html
    rows = json.loads(re.search(r'"rows":(\[.*?\]),"steps"', made)[1])
    assert [(r["line"], r["label"]) for r in rows[2:]] == [
        (5, "s = 0"), (6, "s = 0"), (5, "2 more rounds"), (5, "s = 3"), (6, "s = 3")
    ]  # fmt: skip
    wide = made[made.index("<svg") :].split("</svg>")[0]
    assert re.findall(r'x="21" y="\d+" class="s m" text-anchor="end">(\d)<', wide) == list("345656")


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="alt = 'a film'"):
        film(row, 2, 4, *arguments(), alt="a film")
    with pytest.raises(ValueError, match=r"blocks = \(2,\); the grid has \(2, 1, 1\)"):
        film(row, 2, 4, *arguments(), alt=ALT, blocks=(2,))
    with pytest.raises(ValueError, match="has no source text"):
        exec("def made(u):\n    u[0] = 1", space := {})
        film(space["made"], 1, 1, np.zeros(1), alt=ALT)


def test_a_kernel_that_never_ends_is_stopped(monkeypatch):
    @jit
    def forever(u):
        m = 0
        while m < 1:
            m -= 1

    monkeypatch.setattr("dgbook.page.log.MOST_STEPS", 1000)
    with pytest.raises(RuntimeError, match="kernel forever has run 1,000 statements"):
        film(forever, 1, 1, np.zeros(1), alt=ALT)


def test_the_order_in_which_a_film_opens():
    def opens(kernel, **how):
        return film(kernel, 2, 4, *arguments(), alt=ALT, **how).order

    assert (opens(row), opens(unguarded)) == ("lanes", "threads")
    assert (opens(row, order="threads"), opens(unguarded, order="lanes")) == ("threads", "lanes")
    with pytest.raises(ValueError, match="order = 'warp'; allowed are 'lanes' and 'threads'"):
        opens(row, order="warp")


def test_the_line_at_which_a_film_opens():
    """The slider counts moments from 0: i, j, the read of u, the write of s, barrier, total."""

    def first(**how):
        made = film(row, 2, 4, *arguments(), alt=ALT, **how).player().html
        return int(re.search(r'type="range"[^>]*value="(\d+)"', made)[1])

    assert (first(), first(opens_at="j = "), first(opens_at="total = ")) == (0, 1, 5)
    assert (first(opens_at="sector"), first(opens_at="no conflict")) == (2, 3)
    with pytest.raises(ValueError, match="opens_at = 'lift'; no line that ran has this in it"):
        first(opens_at="lift")


@jit
def thirds(u, new):
    """Six threads, of which two have a third round, and rounds that hold a loop."""
    flux = cuda.shared.array(14, f4)
    i = cuda.threadIdx.x
    for p in range(i, 14, 6):
        a = p // 2
        plus = u[a]
        flux[p] = plus - u[p]
    cuda.syncthreads()
    for d in range(3):
        total = f4(0)
        for m in range(3):
            total += flux[m]
        new[d * 6 + i] = total


def test_rounds_like_the_first_are_left_out_and_others_are_not():
    shown = film(thirds, 1, 6, np.arange(14.0), np.zeros(18), alt=ALT)
    listed = fold(shown.rows, first=2, most=5)
    assert [r.label for r in listed if r.kind == "fold"] == [
        "the same for p = 6",  # in p = 12 only two threads take part
        "the same for d = 1, 2",
    ]
    last = [r for r in listed if r.line == 9 and r.kind == "sw"][-1]
    assert sorted(last.cells) == [0, 1]
    hidden = [r for fold_row in listed for r in fold_row.hidden]
    assert len(listed) - 2 + len(hidden) == len(shown.rows)
    assert {id(r) for r in listed + hidden} >= {id(r) for r in shown.rows}
    # What the second round writes is written when the player comes behind it.
    spec = shown.player().html
    assert '"fills":{"0":{"flux":[6]},"1":{"flux":[7]}' in spec.replace(" ", "")
    still = shown.still().html
    assert "⋮ the same for p = 6" in still and "p = 12" in still


def test_a_race_keeps_its_round():
    @jit
    def late(u, new):
        s = cuda.shared.array(4, f4)
        i = cuda.threadIdx.x
        for d in range(3):
            a = i + d
            b = a % 4
            s[i] = u[b]
            if d == 1:
                new[i] = s[b]

    made = film(late, 1, 4, np.ones(4), np.zeros(4), alt=ALT)
    assert made.log.clash is not None
    assert any(r.label == "d = 1" for r in fold(made.rows, 2, 5, [made.log.clash.step]))
