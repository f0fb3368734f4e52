"""What is measured of the product with a trace matrix makes valid records: the clock stands."""

import argparse

import numpy as np
import pytest
import stopped_clock
from stopped_clock import CEILING, SIMULATOR

from dgbook import records
from dgbook.__main__ import main
from dgbook.hdg import bench, measure
from dgbook.hdg.blocks import face_columns, random_matrix
from dgbook.hdg.cylinder import cylinder_mesh
from dgbook.hdg.plan import Plan
from dgbook.mesh import box

NUMBA = ("paper", "fused", "sliced")


@pytest.fixture(autouse=True)
def stopped(monkeypatch):
    """Kernels run once, in the simulator, on next to no faces, and no library is there."""
    stopped_clock.stop(monkeypatch, measure)
    random = np.random.default_rng(0)
    monkeypatch.setattr(measure, "random_numbers", lambda s, d, seed: random.random(s, d))
    monkeypatch.setattr(measure, "METHODS", NUMBA)
    monkeypatch.setattr(measure, "FASTEST", ("sliced",))
    monkeypatch.setattr(measure, "TUNED", ("sliced",))
    monkeypatch.setattr(measure, "LIBRARIES", ())
    monkeypatch.setattr(measure, "MEBIBYTES", (0.005,))
    monkeypatch.setattr(measure, "all_cores", lambda: 2)


def made(what, orders=(1,), dtypes=("float32",), dims=(2,), nbytes=2e4):
    rows = list(measure.RECORDS[what](orders, dtypes, dims, nbytes, SIMULATOR, CEILING))
    records.validate(stopped_clock.content(f"hdg/{what}", rows))
    return rows


def test_every_method(capsys):
    """About 20,000 bytes: 16 faces of 1,280 and 3 of 6,300."""
    rows = made("product", dims=(2, 3))
    assert [r["path"] for r in rows] == 2 * ["paper:inflate", "paper:contract", *NUMBA]
    first, last = rows[0], rows[-1]
    assert first["size"] == {"dim": 2, "m": 8, "faces": 16, "matrix_bytes": 16 * 1280}
    assert last["size"]["dim"] == 3 and last["size"]["m"] == 15
    paper = next(r for r in rows if r["path"] == "paper")
    assert paper["bytes"] == rows[0]["bytes"] + rows[1]["bytes"]
    assert last["plan"]["method"] == "sliced" and last["error"] < 1e-5
    assert first["language"] == "numba" and first["dofs"] == 128
    text = bench.line(first, SIMULATOR)
    assert "2D p=1 m=8 float32 faces=16 paper:inflate" in text and "LIVE" in text


def test_a_wrong_result_is_no_measurement(monkeypatch):
    class Wrong(measure.Product):
        def __call__(self, x, y):
            super().__call__(x, y)
            if self.plan.method == "fused":
                y[3] *= 1.01

    monkeypatch.setattr(measure, "Product", Wrong)
    with pytest.raises(RuntimeError, match="fused: the result differs by"):
        made("product")


def test_a_result_that_is_not_there_is_no_measurement():
    with pytest.raises(RuntimeError, match="nothing: the result differs"):
        measure.checked(lambda x, y: None, None, np.ones(3, np.float32), "nothing")


def test_sizes():
    rows = made("sizes")
    assert [r["path"] for r in rows] == 2 * ["paper:inflate", "paper:contract", "sliced"]
    assert rows[0]["size"]["matrix_bytes"] < rows[3]["size"]["matrix_bytes"]


def test_cores(monkeypatch):
    class Uncompiled(measure.CoreProduct):
        def inflate(self, x):
            pass

        def contract(self, y):
            pass

    monkeypatch.setattr(measure, "CoreProduct", Uncompiled)
    rows = made("cores", orders=(1, 4))
    assert [r["path"] for r in rows] == ["cores:in order", "cores:one", "cores:all"]
    assert [r["size"]["cores"] for r in rows] == [1, 1, 2]


def test_tables(monkeypatch):
    """The matrix may come from the method; orders that the paper has not are left out."""
    seen = []

    def matrix_of(order, dtype):
        seen.append((order, dtype))
        values = random_matrix(box((2, 2)), 4, order, dtype, np.random.default_rng(1))
        values.values[:, 0, 0, 1] = 0
        return values

    rows = list(
        measure.table_rows((1, 6), ("float64",), (), 0, SIMULATOR, CEILING, matrix_of=matrix_of)
    )
    records.validate(stopped_clock.content("hdg/tables", rows))
    assert seen == [(1, "float64")]
    assert [r["path"] for r in rows[-2:]] == ["sliced", "rival:scipy"]
    blocks = 16 * 5 - 2 * 8
    assert {r["nonzeros"] for r in rows} == {64 * blocks - 16}


def test_the_papers_matrix(monkeypatch):
    """A Navier-Stokes system of four components, here past a coarser cylinder."""
    assert len(face_columns(cylinder_mesh(*measure.PAPER_GRID))) == 11780
    monkeypatch.setattr(measure, "PAPER_GRID", (8, 40.0, 2))
    measure._flow_system.cache_clear()
    matrix = measure.flow_matrix(1, "float32")
    measure._flow_system.cache_clear()
    assert matrix.values.shape == (8 * (3 * 2 + 1), 5, 8, 8) and matrix.dtype == "float32"
    zeros = matrix.to_csr(drop_zeros=False).nnz - matrix.to_csr().nnz
    assert 0 < zeros < 0.1 * matrix.to_csr().nnz


def test_plans(monkeypatch):
    monkeypatch.setattr(measure, "plans", lambda *_: [Plan("sliced", 2), Plan("sliced", 4)])
    rows = made("plans")
    assert [r["plan"]["warps"] for r in rows] == [2, 4]
    assert [r["seconds_median"] for r in rows] == pytest.approx([1e-3, 2e-3])


@pytest.mark.parametrize("dim", [2, 3])
def test_a_matrix_of_so_many_bytes(dim):
    """To a few per cent, and with zeros where there is no neighbor."""
    matrix = measure.matrix_on(SIMULATOR, dim, 1, 2, "float32", 3e6)
    assert abs(matrix.nbytes / 3e6 - 1) < 0.12
    filling = matrix.columns[:, 1:] == matrix.columns[:, :1]
    assert not matrix.values[:, 1:][filling].any() and filling.any()


def test_the_command_line(capsys):
    assert main(["bench", "hdg", "magic"]) == 2
    assert "RECORD = 'magic'; allowed are product, tables" in capsys.readouterr().err
    parser = argparse.ArgumentParser()
    bench.add_tune_arguments(parser)
    found = parser.parse_args(["--orders", "2..3", "--dims", "3"])
    assert list(found.orders) == [2, 3] and found.dims == [3]
    row = {"size": {"dim": 3}, "order": 2, "dtype": "float32"}
    assert bench._measured_again(found, row)
    assert not bench._measured_again(found, row | {"order": 4})
