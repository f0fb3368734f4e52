"""The model of many GPUs: its lines, its surfaces under refinement, and its two ends."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dgbook.lab import parallel, parallel_model, records
from dgbook.mesh import box, read
from dgbook.parallel import model
from dgbook.parallel.model import Machine
from dgbook.parallel.surface import Surface, surface, surfaces

ROOT = Path(__file__).parents[2]
MACHINE = Machine(fixed=12e-6, element=2e-9, launch=2e-6, latency=12e-6, bandwidth=3e11)


def test_a_line_is_found():
    sizes = [1e3, 1e5, 1e7]
    constant, slope = model.line(sizes, [3e-6 + 2e-12 * n for n in sizes])
    assert constant == pytest.approx(3e-6, rel=1e-10) and slope == pytest.approx(2e-12, rel=1e-10)
    with pytest.raises(ValueError, match="slope -1; allowed: both positive"):
        model.line([1.0, 2.0], [4.0, 3.0])


def test_refined_parts_are_those_of_a_finer_box():
    """Halves of a cube: 2 n^2 cut faces, as many elements on either side."""
    coarse, fine = (
        surface(mesh, (mesh.vertices[mesh.elements].mean(axis=1)[:, 0] > 0.5).astype(int))
        for mesh in (box((2, 2, 2)), box((8, 8, 8)))
    )
    assert coarse.most_faces == 8 and fine.most_faces == 128 == fine.largest_edge
    assert model.refined(coarse, 2) == fine
    assert model.refined(coarse, 0) == coarse


def test_both_ends():
    """Large parts hide the exchange; small ones wait for it."""
    large = Surface(8, 1e6, 10**6, 6e4, 60_000, 6e4, 60_000, 7.0, 7)
    seconds = model.stage_seconds(MACHINE, large, 1e3)
    # 12 us, and 2 ms for a million elements, as if no exchange were there.
    assert seconds == pytest.approx(12e-6 + 2e-3)
    assert model.efficiency(MACHINE, large, 1e3) == pytest.approx(1)
    small = Surface(8, 100.0, 100, 200.0, 200, 80.0, 80, 7.0, 7)
    # 2 us to pack, 12 us and 2e5 bytes, 2 us to unpack, and 12.16 us for 80 elements.
    expected = 2e-6 + 12e-6 + 2e5 / 3e11 + 2e-6 + 12.16e-6
    assert model.stage_seconds(MACHINE, small, 1e3) == pytest.approx(expected)


def test_more_parts_are_less_efficient():
    pytest.importorskip("pymetis")
    found = surfaces(box((8, 8, 8)), (2, 8, 32, 128))
    efficiencies = [model.efficiency(MACHINE, one, 15 * 6 * 4) for one in found]
    assert (np.diff(efficiencies) < 0).all() and 0 < efficiencies[-1] < 1


def test_what_the_tool_writes(tmp_path, monkeypatch):
    """The GPU of the records, surfaces that are counted, and a label."""
    pytest.importorskip("pymetis")
    exchanges = {65536.0: 12e-6, 67108864.0: 253e-6}
    found, origin = parallel_model.machine(4, exchanges)
    assert model.exchange_seconds(found, 65536) == pytest.approx(12e-6, rel=1e-6)
    assert all(0 <= misfit < 0.3 for misfit in origin["misfits"].values())
    path = ROOT / "chapters/meshes/aeroplane.msh"
    rows = list(parallel_model.rows(4, [path], (8, 1024), found))
    assert {row["parts"] for row in rows} == {8}  # of 1024, each would have seven elements
    whole, flux = rows[:2]
    mesh = read(path)
    assert whole["elements"] == mesh.K * 8 ** whole["levels"] / 8
    assert whole["bytes"] == 3 * flux["bytes"] == whole["most_faces"] * 15 * 6 * 4
    assert whole["seconds"] >= flux["seconds"] and 0 < whole["efficiency"] <= flux["efficiency"] < 1
    parallel_model.write(tmp_path / "models/one.json", {"rows": rows})
    assert json.loads((tmp_path / "models/one.json").read_text())["label"] == "MODEL"


def test_the_record_of_exchanges(monkeypatch):
    sizes = [{"size": {"bytes": n}, "seconds_median": n * 1e-9} for n in (1, 2)]
    rows = [row | {"variant": v} for row in sizes for v in (parallel.RECORDED, parallel.PYTHON)]
    record = SimpleNamespace(select=lambda path: rows if path == "exchange" else [])
    monkeypatch.setattr(records, "load", lambda name: {"parallel/exchange": record}[name])
    assert parallel_model.recorded_exchanges() == {1: 1e-9, 2: 2e-9}


def test_the_model_is_checked_by_records(monkeypatch):
    """One part without a network, and four GPUs with one; rows of other kinds are passed over."""
    size = {"K": 10_000, "parts": 2, "gpus": 1, "edge": 1000, "sent": 1000 * 360}
    four = {"K": 40_000, "parts": 4, "gpus": 4, "edge": 16_000, "sent": 8000 * 360}
    split = [
        {"path": "part", "variant": parallel.RECORDED, "size": size, "seconds_median": 50e-6},
        {"path": "part", "variant": parallel.PYTHON, "size": size, "seconds_median": 1.0},
        {"path": "whole", "variant": parallel.RECORDED, "size": size, "seconds_median": 1.0},
    ]
    weak = [{"path": "weak", "variant": parallel.RECORDED, "size": four, "seconds_median": 60e-6}]
    known = {
        name: SimpleNamespace(source="a GPU", select=lambda order, dtype, rows=rows: rows)
        for name, rows in {"parallel/split": split, "parallel/weak": weak}.items()
    }
    monkeypatch.setattr(records, "exists", known.__contains__)
    monkeypatch.setattr(records, "load", known.__getitem__)
    part, several = parallel_model.checked(4, MACHINE)
    assert part["seconds"] == pytest.approx(12e-6 + 20e-6)  # what is computed takes longest
    assert part["ratio"] == pytest.approx(50 / 32)
    # 2 us, and the edge's way: 12 us and 0.72 MB, 2 us, 12 us and 8 us for 4,000 elements.
    assert several["seconds"] == pytest.approx(2e-6 + 12e-6 + 720e3 / 3e11 + 2e-6 + 12e-6 + 8e-6)
