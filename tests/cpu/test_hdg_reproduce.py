"""Tables and figures of roca2011 from made-up records: what is computed of which rows."""

import math

import numpy as np
import pytest
import stopped_clock
from stopped_clock import SESSION

from dgbook.gpu.timing import Timing
from dgbook.hdg import assemble
from dgbook.hdg.blocks import face_nodes
from dgbook.hdg.cost import contract_cost, inflate_cost, product_cost
from dgbook.hdg.plan import Shape
from dgbook.hdg.problem import Poisson
from dgbook.lab import hdg as measure
from dgbook.lab import records, reproduce
from dgbook.lab.reproduce import roca2011
from dgbook.lab.reproduce.verdict import ALONE, CLOSE, DIFFERS

ON_CPU = SESSION.on_host
COSTS = {
    "paper:inflate": inflate_cost,
    "paper:contract": contract_cost,
    "cores:in order": contract_cost,
    "cores:all": contract_cost,
}


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A function that saves a record where `reproduce` looks for it."""
    monkeypatch.setattr(records, "default_folder", lambda: tmp_path)
    return lambda name, rows: records.save(stopped_clock.content(name, rows), tmp_path)


def row(path, order, seconds, faces=11780, dim=2, dtype="float64", **more):
    shape = Shape(measure.COMPONENTS[dim] * face_nodes(dim, order), 2 * dim + 1, dtype)
    cost = COSTS.get(path, product_cost)(shape, faces)
    timing = Timing((seconds,) * 20)
    subject = measure.subject_of(shape, faces, order)
    return more | ON_CPU.row(subject, path, "numba", None, cost, timing)


def verdict(item):
    (found,) = reproduce.find("roca2011", item)
    return reproduce.compare(reproduce.paper("roca2011"), found)


# ---------------------------------------------------------------------------------------- tables


@pytest.fixture
def tables(kept):
    """The record hdg/tables: as many numbers as a mesh with 124 faces on the boundary has."""
    times = {
        "paper:inflate": 1e-6,
        "paper:contract": 3e-6,
        "paper": 5e-6,
        "sliced": 4e-6,
        "wide": 2e-6,
        "rival:csr": 6e-6,
        "rival:bsr": 7e-6,
        "rival:gemv": 8e-6,
        "rival:scipy": 1e-3,
    }
    rows = [
        row(path, order, order * seconds, dtype=dtype, nonzeros=size * size * 58652)
        for order, size in ((2, 12), (1, 8))
        for dtype in ("float32", "float64")
        for path, seconds in times.items()
    ]
    kept("hdg/tables", rows)


@pytest.mark.usefixtures("tables")
def test_a_mesh_with_as_many_faces_takes_as_much_memory():
    answer = verdict("table1")
    assert answer.word == CLOSE and len(answer.compared) == 2 * 8
    ours = answer.ours.rows["p = 2"]
    assert list(answer.ours.rows) == ["p = 1", "p = 2"]
    assert ours["unknowns"] == 141360 and ours["block values"] == 8481600
    assert ours["CSR values"] == 8445888
    assert ours["block memory"] == pytest.approx(71.40, abs=0.006)
    assert ours["block memory / CSR memory"] == pytest.approx(0.72, abs=0.005)


@pytest.mark.usefixtures("tables")
def test_steps_are_shares_of_their_sum():
    answer = verdict("table2")
    assert answer.word == DIFFERS and len(answer.compared) == 2 * 5
    assert answer.ours.rows["p = 2"] == pytest.approx(
        {
            "inflate": 2e-3,
            "contract": 6e-3,
            "both": 8e-3,
            "share inflate": 25,
            "share contract": 75,
        }
    )
    assert "[RECORDED none, 2026-11-21]" in str(answer)


@pytest.mark.usefixtures("tables")
def test_rivals_and_the_best_of_ours():
    answer = verdict("table3")
    assert answer.word == DIFFERS and len(answer.compared) == 2 * 6
    assert answer.ours.rows["p = 1"] == pytest.approx(
        {
            "MATLAB": 1,
            "cuSPARSE": 6e-3,
            "proposed": 5e-3,
            "MATLAB speed-up": 1,
            "cuSPARSE speed-up": 1000 / 6,
            "proposed speed-up": 200,
            "bsr, ms": 7e-3,
            "gemv, ms": 8e-3,
            "our best, ms": 2e-3,
            "our best over cuSPARSE": 3,
        }
    )


# --------------------------------------------------------------------------------------- figures


def test_six_faces_have_the_blocks_of_a_real_matrix():
    words = {panel: verdict(f"figure1{panel}") for panel in "abc"}
    assert {found.word for found in words.values()} == {ALONE}
    mesh, drawn, stored = (next(iter(found.ours.rows.values())) for found in words.values())
    assert (mesh["faces"], mesh["triangles"], mesh["nodes"]) == (6, 3, 24)
    assert (drawn["blocks in an inner row"], drawn["blocks in a boundary row"]) == (5, 3)
    assert stored["blocks"] - stored["of them filled with zeros"] == drawn["blocks"]
    shape = roca2011.six_faces()
    given = dict.fromkeys(shape.boundary, lambda x, y: [0 * x])
    matrix = assemble(Poisson(boundary=given), shape, roca2011.NODES - 1).matrix
    assert matrix.values.size == stored["numbers in them"] and matrix.shape[0] == mesh["nodes"]
    assert matrix.padded.sum() == stored["of them filled with zeros"]


MIB = 2**20


def faces_for(mebibytes, dim, order, dtype):
    m = measure.COMPONENTS[dim] * face_nodes(dim, order)
    return round(mebibytes * MIB / (m * m * (2 * dim + 1) * np.dtype(dtype).itemsize))


@pytest.fixture
def sizes(kept):
    """The records hdg/sizes and hdg/cores: a GPU moves 2 TB/s, a core 10 GB/s at p = 1, later 5.

    The core's times are not those of sums in order, which is half as fast.
    """
    gpu, cores = [], []
    for dtype in ("float32", "float64"):
        for dim, order in ((2, 1), (2, 3), (3, 2)):
            for mebibytes in (10, 200, 500):
                about = {
                    "order": order,
                    "faces": faces_for(mebibytes, dim, order, dtype),
                    "dim": dim,
                    "dtype": dtype,
                }
                nbytes = row("paper:contract", seconds=1, **about)["bytes"]
                rate = 2e12 if mebibytes < 500 else 1e12 * order
                gpu.append(row("paper:contract", seconds=nbytes / rate, **about))
                gpu.append(row("wide", seconds=nbytes / 4e12, **about))
                gpu.append(row("bulk", seconds=nbytes / 3e12, **about))
                if mebibytes < 500:
                    core = 1e10 / min(order, 2)
                    cores.append(row("cores:in order", seconds=2 * nbytes / core, **about))
                    cores.append(row("cores:one", seconds=nbytes / core, **about))
                    cores.append(row("cores:all", seconds=nbytes / 1e11, **about))
    kept("hdg/sizes", gpu)
    kept("hdg/cores", cores)


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize(("panel", "dtype"), [("a", "float32"), ("b", "float64")])
def test_a_core_by_memory(panel, dtype):
    rate, bandwidth = verdict(f"figure2{panel}"), verdict(f"figure3{panel}")
    assert list(rate.ours.rows) == ["10 MiB", "200 MiB", "large sizes"]
    for found in (rate, bandwidth):
        assert found.word == DIFFERS and len(found.compared) == 2
    assert bandwidth.ours.rows["large sizes"] == pytest.approx(
        {"bandwidth from": 2.5, "bandwidth to": 5}
    )
    # 2 flops a number of the matrix, which is the smaller part of the traffic at p = 1.
    at = rate.ours.rows["200 MiB"]
    itemsize = np.dtype(dtype).itemsize
    assert 2.4 * 2 / itemsize * 0.9 < at["rate from"] < 2.5 * 2 / itemsize
    assert 5 * 2 / itemsize * 0.8 < at["rate to"] < 5 * 2 / itemsize


@pytest.mark.usefixtures("sizes")
def test_a_gpu_by_memory():
    answer = verdict("figure3d")
    assert answer.word == DIFFERS and len(answer.compared) == 1
    ours = answer.ours.rows
    assert ours["10 MiB"]["share from"] == ours["200 MiB"]["share to"] == pytest.approx(50)
    large = ours["large sizes"]
    assert (large["share from"], large["share to"]) == pytest.approx((25, 75))
    assert (large["GB/s from"], large["GB/s to"]) == pytest.approx((1e3, 3e3))
    # the better of the two others, whose own bytes are less than the contraction's
    assert 3000 < large["our best, GB/s to"] < 4000
    rates = verdict("figure2c").ours.rows["500 MiB"]
    assert rates["our best, rate from"] > rates["rate from"] > 200


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("panel", "ab")
def test_a_core_against_a_gpu(panel):
    answer = verdict(f"figure4{panel}")
    assert answer.word == DIFFERS and len(answer.compared) == 1
    ours = answer.ours.rows
    assert list(ours) == ["10 MiB", "200 MiB", "smallest"]  # of 500 MiB the core has none
    assert ours["10 MiB"] == pytest.approx(
        {
            "GPU over CPU from": 400,
            "GPU over CPU to": 800,
            "GPU over all cores from": 20,
            "GPU over all cores to": 20,
        }
    )
    assert ours["smallest"] == pytest.approx({"GPU over CPU from": 400})


@pytest.mark.parametrize(
    ("mebibytes", "name"), [(0.9, "1"), (1907, "2000"), (105, "100"), (3.3, "5"), (7.5, "10")]
)
def test_sizes_are_rounded_to_1_2_5(mebibytes, name):
    assert roca2011._binned([(mebibytes * MIB, 3.0)]) == [(f"{name} MiB", [3.0])]
    assert math.isclose(mebibytes, float(name), rel_tol=0.52)
