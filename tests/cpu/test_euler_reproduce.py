"""Tables and figures of chen, from records with made-up times."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import stopped_clock
from stopped_clock import SESSION

from dgbook.cli.main import main
from dgbook.euler.cost import PAPER, costs
from dgbook.euler.plan import THREADS, PaperPlan
from dgbook.gpu.timing import Timing
from dgbook.lab import records, reproduce
from dgbook.lab.reproduce import chen
from dgbook.lab.reproduce.verdict import ALONE, DIFFERS
from dgbook.lab.session import Subject

ON_CPU = SESSION.on_host


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A function that saves a record where `reproduce` looks for it."""
    monkeypatch.setattr(records, "default_folder", lambda: tmp_path)
    return lambda name, rows: records.save(stopped_clock.content(name, rows), tmp_path)


def row(path, cells, order, seconds, plan=None, **size):
    """A row about a stage that takes so many seconds."""
    K, Np = 2 * cells**2, (order + 1) * (order + 2) // 2
    cost = costs(order, K, "float64")["fused" if path == "cores" else path]
    subject = Subject.of_state((4, K, Np), order, "float64").sized(**size)
    return ON_CPU.row(subject, path, "numba", plan, cost, Timing((seconds,) * 20))


def verdict(item):
    (found,) = reproduce.find("chen", item)
    return reproduce.compare(reproduce.paper("chen"), found)


def test_ten_steps_have_forty_stages(kept):
    rows = [
        row("paper", n, p, 1e-6 * n * (p + 1) + 1e-7 * threads, PaperPlan(threads=threads))
        for n in (160, 320)
        for p in range(3)
        for threads in THREADS
    ]
    kept("euler/blocks", rows)
    answer = verdict("table1")
    assert answer.word == DIFFERS and len(answer.compared) == 30
    ours = answer.ours.rows["N = 320, p = 1"]
    assert ours["64"] == pytest.approx(40 * 1e3 * (640e-6 + 6.4e-6))
    assert answer.ours.source == "none, 2026-11-21"


def test_speed_ups_are_quotients(kept):
    rows = []
    for p in range(3):
        for n in (32, 64, 128, 256, 512, 1024):
            rows += [row("paper", n, p, 4e-3), row("fused", n, p, 1e-3)]
            rows += [row("cores", n, p, 0.1, cores=16)]
            rows += [row("cores", n, p, 1.0, cores=1)] if n < 1024 else []
    kept("euler/sizes", rows)
    for item in ("table2", "figure3"):
        answer = verdict(item)
        assert answer.word == DIFFERS and len(answer.compared) == 45
        ours = answer.ours.rows["p = 2, N = 512"]
        assert ours["CPU"] == pytest.approx(40e3) and ours["GPU"] == pytest.approx(160)
        assert ours["speed-up"] == pytest.approx(250)
        assert ours["CPU over fused"] == pytest.approx(1000)
        largest = answer.ours.rows["p = 0, N = 1024"]
        assert "CPU" not in largest and largest["all cores over fused"] == pytest.approx(100)


def test_rates_are_those_of_each_kernel(kept):
    rows = [row(part, 128, p, 1e-4) for p in range(3) for part in PAPER]
    kept("euler/kernels", rows)
    answer = verdict("table3")
    assert answer.word == DIFFERS and len(answer.compared) == 12
    ours, cost = answer.ours.rows["p = 1"], costs(1, 2 * 128**2, "float64")
    assert ours["face bandwidth"] == pytest.approx(cost["face"].bytes * 1e-5)
    assert ours["volume rate"] == pytest.approx(cost["volume"].flops * 1e-5)
    assert ours["add, GB/s"] == pytest.approx(cost["add"].bytes * 1e-5)


def test_the_vortex_is_drawn_from_its_formula():
    ours = verdict("figure1").ours.rows
    assert ours["pressure"]["of the stream"] == pytest.approx(1 / (1.4 * 0.25))
    core = (1 - 0.09 * 0.4 * 0.25 * np.e / (8 * np.pi**2)) ** 3.5
    assert ours["pressure"]["at the center"] == pytest.approx(core / (1.4 * 0.25), rel=1e-6)
    # At the distance r_c the swirl is fastest: epsilon / (2 pi).
    fastest = 0.5**0.5 + 0.3 / (2 * np.pi)
    assert ours["x-velocity"]["largest"] == pytest.approx(fastest, rel=1e-4)


def test_the_fine_mesh_is_read_from_the_record(kept, monkeypatch):
    """Without a GPU; with one it is computed."""
    errors = {"pressure_errors": [0.0, 2e-5], "velocity_errors": [0.0, 3e-5]}
    more = {"times": [0.0, 10.0]} | errors
    kept("euler/figure2", [row("fused", n, 2, 1e-3) | more for n in (16, 64)])
    monkeypatch.setattr(chen, "device", lambda: ON_CPU.device)
    monkeypatch.setattr(chen, "traveled", lambda cells: {k: [9.0] for k in errors})
    answer = verdict("figure2b")
    assert answer.word == ALONE
    ours = answer.ours.rows["p = 2, N = 64"]
    assert (ours["pressure, L2 error"], ours["x-velocity, L2 error"]) == (2e-5, 3e-5)
    # The integral of f2^2 y^2 over the plane is epsilon^2 e r_c^2 / (8 pi).
    vortex = (0.09 * np.e / (8 * np.pi)) ** 0.5
    assert ours["x-velocity, % of the vortex"] == pytest.approx(100 * 3e-5 / vortex, rel=5e-3)
    assert verdict("figure2a").ours.rows["p = 2, N = 16"]["pressure, L2 error"] == 9.0
    monkeypatch.setattr(chen, "device", lambda: SimpleNamespace(kind="cuda"))
    assert verdict("figure2b").ours.rows["p = 2, N = 64"]["pressure, L2 error"] == 9.0


def test_the_coarse_mesh_is_computed(monkeypatch, capsys):
    """As the command does it, but for t = 0.1: next to no time for the vortex to change."""
    monkeypatch.setattr(chen.measure, "FIGURE_2_END", 0.1)
    monkeypatch.setattr(chen, "device", lambda: ON_CPU.device)
    chen.traveled.cache_clear()
    assert main(["reproduce", "chen", "figure2a"]) == 0
    chen.traveled.cache_clear()
    printed = capsys.readouterr().out
    assert "p = 2, N = 16" in printed and "ours alone" in printed
    error = float(re.search(r" x-velocity, L2 error\np = 2, N = 16 .* (\S+)\n", printed)[1])
    assert 1e-4 < error < 2e-3
