"""Figures of chan2015: counts and condition numbers live, the others from made-up records."""

import math

import pytest
import stopped_clock
from stopped_clock import SESSION

from dgbook.acoustics.cost import PARTS, costs
from dgbook.acoustics.plan import KERNEL_SETS
from dgbook.gpu.timing import Timing
from dgbook.lab import records, reproduce
from dgbook.lab.reproduce.verdict import ALONE, CLOSE, DIFFERS, MATCHES
from dgbook.lab.session import Subject

ON_CPU = SESSION.on_host
SECONDS = {"volume": 3e-3, "surface": 2e-3, "flux": 1e-3, "lift": 1e-3, "update": 1e-3}
SLOWER = {"node": 2.2, "element": 1.5, "factored": 1, "optimal": 0.5, "unblocked": 9}


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A function that saves a record where `reproduce` looks for it."""
    monkeypatch.setattr(records, "default_folder", lambda: tmp_path)
    return lambda name, rows: records.save(stopped_clock.content(name, rows), tmp_path)


def row(path, name, order, seconds, K=1000):
    """A row about a kernel of a set, or a stage, that takes so many seconds."""
    Np = math.comb(order + 3, 3)
    about = {"basis": KERNEL_SETS[name][0].basis, "variant": name}
    subject = Subject.of_state((4, K, Np), order, "float32", **about)
    cost = costs(name, order, K, "float32")[path]
    return ON_CPU.row(subject, path, "numba", None, cost, Timing((seconds,) * 20))


@pytest.fixture
def parts(kept):
    """The record acoustics/parts: a kernel takes as long at all orders."""
    rows = [
        row(part, name, N, SECONDS[part] * SLOWER[name])
        for N in (2, 3, 4, 7)
        for name in KERNEL_SETS
        for part in PARTS[name]
    ]
    kept("acoustics/parts", rows)


def verdict(item):
    (found,) = reproduce.find("chan2015", item)
    return reproduce.compare(reproduce.paper("chan2015"), found)


def test_a_bernstein_row_has_four_nonzeros():
    answer = verdict("figure1")
    assert answer.word == MATCHES and len(answer.compared) == 1
    for N in range(1, 10):
        ours = answer.ours.rows[f"N = {N}"]
        assert ours["Bernstein nonzeros"] == 4 * math.comb(N + 2, 3)
        assert ours["Bernstein nonzeros"] < ours["nodal nonzeros"] < ours["entries"]


def test_the_lift_and_its_sweep():
    factors, sweep = verdict("figure2").ours.rows["N = 4"], verdict("figure3").ours.rows["N = 4"]
    assert factors["nonzeros of L_0"] == 15 + 3 * 4 * 5
    assert factors["nonzeros of E"] == math.comb(9, 5)
    assert factors["nonzeros of lift"] <= sweep["products of the dense lift"] == 15 * 35
    assert (sweep["slices"], sweep["points of all"], sweep["products of a sweep"]) == (5, 35, 60)


def test_conditions_are_half_an_order_of_magnitude_apart():
    answer = verdict("figure4")
    assert answer.word == CLOSE
    ours = answer.ours.rows
    for N in range(1, 10):  # lemma A.6
        assert ours[f"N = {N}"]["L_0"] == pytest.approx((N + 1) * (N + 3) / (2 * N + 3))
    assert ours["N = 9"]["Bernstein derivative"] < 3 < 100 < ours["N = 9"]["nodal derivative"]


def test_entries_of_the_bernstein_lift_grow():
    ours = verdict("figure5").ours.rows
    assert ours["N = 9"]["Bernstein lift, largest"] > 1000 > ours["N = 9"]["nodal lift, largest"]
    assert ours["N = 9"]["E_L, smallest"] > -30


def test_errors_are_read_at_the_end_and_at_their_largest(kept):
    rows = []
    for name, scale in (("node", 4e-6), ("factored", 1e-6)):
        for N in (6, 7):
            more = {"times": [0.0, 25.0, 50.0], "errors": [scale / 9, 2 * scale, scale * N]}
            rows.append(row("paper", name, N, 1e-3, 1536) | more)
    kept("acoustics/error", rows)
    answer = verdict("figure6")
    assert answer.word == MATCHES and answer.ours.rows["mesh"] == {"elements": 1536}
    ours = answer.ours.rows["N = 7"]
    assert (ours["t"], ours["nodal, at the end"]) == (50, pytest.approx(28e-6))
    assert ours["Bernstein over nodal"] == pytest.approx(0.25)


@pytest.mark.usefixtures("parts")
def test_shares_are_of_the_whole_stage():
    ours = verdict("figure7").ours.rows
    assert len(ours) == 4 * 4 and "N = 2, EPT nodal" in ours
    for name in ("NPT nodal", "EPT nodal", "Bernstein"):  # flux and lift are the surface kernel
        shares = ours[f"N = 7, {name}"]
        found = [shares[f"{part}, %"] for part in ("volume", "surface", "update")]
        assert found == pytest.approx([50, 100 / 3, 50 / 3])
    assert ours["N = 7, EPT nodal"]["fifty, ms"] == pytest.approx(50 * 6 * 1.5)


@pytest.mark.usefixtures("parts")
def test_speed_ups_are_quotients():
    answer = verdict("figure8")
    assert answer.word == DIFFERS and len(answer.compared) == 1
    ours = answer.ours.rows["N = 4"]
    assert ours["volume, Bernstein over NPT nodal"] == pytest.approx(2.2)
    assert ours["surface, optimal Bernstein over EPT nodal"] == pytest.approx(3)
    assert ours["total, optimal Bernstein over NPT nodal"] == pytest.approx(4.4)
    assert answer.ours.rows["surface, at low orders"]["Bernstein over NPT"] == pytest.approx(2.2)


@pytest.mark.usefixtures("parts")
def test_rates_are_those_of_each_kernel():
    c, e = costs("node", 4, 1000, "float32"), costs("element", 7, 1000, "float32")
    rates = verdict("figure9")
    assert rates.word == DIFFERS and len(rates.compared) == 2
    ours = rates.ours.rows["N = 4, NPT nodal"]["volume, TFLOP/s"]
    assert ours == pytest.approx(c["volume"].flops / 6.6e-3 * 1e-12)
    both = sum(e[part].flops for part in ("volume", "flux", "lift"))
    assert rates.ours.rows["EPT nodal"]["rate"] == pytest.approx(both / 7.5e-3 * 1e-12)

    bandwidth = verdict("figure10")
    assert bandwidth.word == ALONE
    ours = bandwidth.ours.rows["N = 7, EPT nodal"]["surface, TB/s"]
    assert ours == pytest.approx((e["flux"].bytes + e["lift"].bytes) / 3e-3 * 1e-12)

    ours = verdict("figure11").ours.rows["N = 4, NPT nodal"]
    assert ours["volume, flops per byte"] == pytest.approx(c["volume"].flops / c["volume"].bytes)
    assert ours["volume, TFLOP/s"] == pytest.approx(c["volume"].flops / 6.6e-3 * 1e-12)

    share = verdict("figure12").ours.rows["N = 4, NPT nodal"]["volume, %"]
    floor = max(c["volume"].flops / 60e12, c["volume"].bytes / 4e12)
    assert share == pytest.approx(100 * floor / 6.6e-3)
