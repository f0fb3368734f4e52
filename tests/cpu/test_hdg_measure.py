"""What is measured of the product with a trace matrix makes valid records: the clock stands."""

import argparse

import numpy as np
import pytest
import stopped_clock
from stopped_clock import SESSION, SIMULATOR

from dgbook.cli import hdg as bench
from dgbook.cli.main import main
from dgbook.hdg.blocks import face_columns, random_matrix
from dgbook.hdg.cost import solution_cost
from dgbook.hdg.discretization import discretize
from dgbook.hdg.exact import cylinder_mesh
from dgbook.hdg.plan import Shape
from dgbook.hdg.problem import Poisson
from dgbook.hdg.solver import direct
from dgbook.lab import hdg as measure
from dgbook.lab import hdg_solve as measure_solve
from dgbook.lab import records
from dgbook.lab.measuring import Sweep
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
    monkeypatch.setattr(measure, "LIBRARIES", ())
    monkeypatch.setattr(measure, "MEBIBYTES", (0.005,))
    stopped_clock.two_cores(monkeypatch, measure)


def made(what, orders=(1,), dtypes=("float32",), dims=(2,), nbytes=2e4):
    rows = list(measure.RECORDS[what](Sweep(dims, orders, dtypes, nbytes), SESSION))
    records.validate(stopped_clock.content(f"hdg/{what}", rows))
    stopped_clock.same_as_recorded(f"hdg/{what}", rows)
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

    monkeypatch.setattr(measure, "flow_matrix", matrix_of)
    rows = list(measure.table_rows(Sweep((), (1, 6), ("float64",), 0), SESSION))
    records.validate(stopped_clock.content("hdg/tables", rows))
    stopped_clock.same_as_recorded("hdg/tables", rows)
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


def test_tuning(monkeypatch, capsys):
    """Every matrix of every dimension, order and precision, one after another."""
    monkeypatch.setattr(bench, "find_device", lambda name: SIMULATOR)
    options = {"orders": (1, 2), "dtypes": ("float32", "float64"), "dims": (2, 3)}
    bench.tune(argparse.Namespace(**options, gigabytes=2e-5, methods=("sliced",)))
    found = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert found[:4] == [f"2D p={p} {dtype}" for p in (1, 2) for dtype in ("float32", "float64")]
    assert [name[0] for name in found] == list("22223333")


@pytest.mark.parametrize("dim", [2, 3])
def test_a_matrix_of_so_many_bytes(dim):
    """To a few per cent, and with zeros where there is no neighbor."""
    matrix = measure.matrix_on(SIMULATOR, dim, 1, 2, "float32", 3e6)
    assert abs(matrix.nbytes / 3e6 - 1) < 0.12
    filling = matrix.columns[:, 1:] == matrix.columns[:, :1]
    assert not matrix.values[:, 1:][filling].any() and filling.any()


def test_whole_solutions(monkeypatch):
    """On the CPU in place of a GPU, with all rivals: parts and iterations of one solution each."""
    pytest.importorskip("pyamg")
    timed = measure_solve.timed

    def once(case, d, device, options, samples):
        result, linear, found = timed(case, d, device, options, 1)
        return result, linear, found * samples

    monkeypatch.setattr(measure_solve, "timed", once)
    monkeypatch.setattr(measure_solve, "RIVALS", measure_solve.ON_HOST)
    cases = (
        measure_solve.Case("poisson", 2, 3, rivals=("splu", "gmres", "pyamg", "cores")),
        measure_solve.Case("poisson", 3, 1, variants=("jacobi",)),
        measure_solve.Case("cylinder", 2, 8, 1, ("splu",), measure_solve.NEWTON),
    )
    orders = measure_solve.SOLVED_ORDERS
    sweep = Sweep((2, 3), (1, *orders), ("float32", "float64"), 0)
    monkeypatch.setattr(measure_solve, "CASES", cases)
    rows = list(measure_solve.solve_rows(sweep, SESSION.on_host))
    records.validate(stopped_clock.content("hdg/solve", rows))
    single = Sweep((2,), orders, ("float32",), 0)
    assert not list(measure_solve.solve_rows(single, SESSION.on_host))
    assert [r["path"] for r in rows] == [*measure_solve.COARSE, "jacobi", *measure_solve.NEWTON]
    first, fixed, flow = rows[2], rows[4], rows[5]
    names = {"discretize", "assemble", "set up", "cycles", "update", "rest"}
    assert set(first["seconds"]) == names and first["samples"] == 20
    assert set(first["rivals"]) == {"splu", "gmres", "pyamg", "cores"} and not first["unfinished"]
    assert not any(rows[i]["rivals"] for i in (0, 1, 3))
    # The same method wherever it runs, with one step for a linear problem.
    counts = {name: first["rivals"][name]["iterations"] for name in ("gmres", "cores")}
    assert counts["gmres"] == counts["cores"] == first["iterations"] and len(counts["gmres"]) == 1
    assert len(flow["iterations"]) == len(flow["residuals"]) - 1 > 2
    assert flow["residuals"][-1] < measure_solve.TOLERANCE
    # Newton's steps have a forcing term, linear problems and "fixed" one tolerance, and say so.
    assert [row["forcing"] for row in rows] == [False] * 5 + [True]
    assert set(fixed["asked"]) == {fixed["tolerance"]} == {1e-4} and first["asked"] == [1e-8]
    assert len(flow["asked"]) == len(flow["iterations"]) and flow["asked"][0] == 0.01
    # The residual of the last system, and not of one before, is below what was asked for.
    left = flow["history"][-1] / flow["history"][0]
    assert left <= flow["asked"][-1] and flow["tolerance"] == 1e-6 <= min(flow["asked"])
    assert sum(flow["iterations"]) < sum(fixed["iterations"])
    text = bench.line(first, SIMULATOR)
    assert "poisson 2D p=3 faces=33 schwarz+coarse" in text and "splu" in text and "LIVE" in text
    assert first["size"]["matrix_bytes"] == 33 * 5 * 16 * 8


@pytest.mark.parametrize("dim, cells", [(2, (8, 16)), (3, (4, 6))])
def test_ngsolve_solves_the_same_problem(dim, cells):
    """With a smooth source two methods of order p + 1 differ by h^(p + 1)."""
    pytest.importorskip("ngsolve")

    def smooth(functions, positive, x):
        return measure_solve.formula(functions, lambda t: 0 * t, x)

    differences = []
    for n in cells:
        d = discretize(
            Poisson(lambda *x: [smooth(np, None, x)], measure_solve.nothing), box((n,) * dim), 3
        )
        u = measure_solve.on_host(d, direct).u
        found = measure_solve.solve_diffusion(d, smooth, 1e-10)
        assert (
            set(found["seconds"]) == {"update", "assemble", "cycles"}
            and found["iterations"][0] < 60
        )
        differences.append(np.sqrt(((found["u"] - u) ** 2).mean()))
    assert np.log(differences[0] / differences[1]) / np.log(cells[1] / cells[0]) > 3.3


def test_another_method_may_differ_more():
    """By an error of discretization, in the mean."""
    known = np.ones((1, 4, 5))
    measure_solve.check_same("it", known + 0.05, known, another=True)
    with pytest.raises(RuntimeError, match=r"it: solutions differ by 2\.0e-01"):
        measure_solve.check_same("it", known + 0.2, known, another=True)
    with pytest.raises(RuntimeError, match=r"it: solutions differ by 5\.0e-02"):
        measure_solve.check_same("it", known + 0.05, known)


def test_rows_do_not_wait_for_rivals(monkeypatch):
    """The last variant's does; a rival that is late is named with the time that it had."""
    begun = []
    late = {"splu": lambda *_: begun.append("splu"), "cores": measure_solve.by_our_gmres}
    monkeypatch.setattr(measure_solve, "RIVALS", late)
    monkeypatch.setattr(measure_solve, "FEWEST_SAMPLES", 1)
    case = measure_solve.Case("poisson", 2, 2, rivals=("splu", "cores"))
    rows = measure_solve.case_rows(case, 3, SESSION.on_host)
    assert [next(rows)["path"] for _ in range(2)] == [*measure_solve.COARSE[:2]] and not begun
    (last,) = rows
    assert begun == ["splu"] and list(last["rivals"]) == ["cores"]
    assert last["unfinished"] == {"splu": measure_solve.LIMIT}
    assert "; cores" in bench.line(last, SIMULATOR)
    assert bench.line(last, SIMULATOR).endswith("splu over 20 s")


def test_a_rival_that_is_late_is_ended(monkeypatch):
    """In a process of its own, where the same comes out; a signal ends it, whatever it does."""
    case = measure_solve.Case("poisson", 2, 2)
    d = case.discretized(1)
    found = measure_solve.within_limit("splu", case, d)
    np.testing.assert_allclose(found["u"], measure_solve.on_host(d, direct).u, atol=1e-13)
    assert set(found["seconds"]) == {"assemble", "solve", "update"}
    monkeypatch.setattr(measure_solve, "LIMIT", 1e-4)
    assert measure_solve.within_limit("splu", case, d) is None


@pytest.mark.parametrize("case", measure_solve.CASES, ids=lambda c: f"{c.name} {c.dim}D {c.cells}")
def test_a_small_case_compiles_what_the_case_runs(case):
    """Kernels are made for a number of fields, nodes, blocks and a precision, for nothing else."""
    small = case.small
    assert small.mesh.K <= 48 and small.variants == case.variants
    assert (small.dim, small.problem.linear) == (case.dim, case.problem.linear)
    assert case.variants[-1] == "schwarz+coarse" and set(case.variants) <= set(
        measure_solve.VARIANTS
    )
    assert set(case.rivals) <= set(measure_solve.RIVALS)


def test_what_a_solution_costs_at_least():
    """One element of u with two unknowns and three of traces; an iteration of five blocks."""
    shape = Shape(1, 5, "float64")
    cost = solution_cost(shape, 10, 1, (2, 3), [4], 5, 3, restart=2, single=False)
    products, basis = (2 * 10 * 5 + 10 * 3) * 4, 4 * 10 * 4
    factorized = 2 * 2**3 / 3 + 2 * 2**2 * (3 + 1)
    assert cost.flops == int(factorized + 2 * 3 * 2 * 4) + 2 * (products + basis)
    assert cost.bytes == 10 * 5 * 8 + 2 * 2 * 4 * 8 + 8 * (products + basis)
    single = solution_cost(shape, 10, 1, (2, 3), [4], 5, 3, restart=2, single=True)
    assert cost.bytes - single.bytes == 4 * (products + basis)


def test_a_solution_that_is_another_one_is_no_measurement(monkeypatch):
    def other(case, d):
        return {"u": 1.01 * measure_solve.on_host(d, direct).u}

    monkeypatch.setitem(measure_solve.RIVALS, "splu", other)
    monkeypatch.setattr(measure_solve, "FEWEST_SAMPLES", 1)
    cases = (measure_solve.Case("poisson", 2, 2, rivals=("splu",)),)
    monkeypatch.setattr(measure_solve, "CASES", cases)
    rows = measure_solve.solve_rows(Sweep((2,), (3,), ("float64",), 0), SESSION.on_host)
    with pytest.raises(RuntimeError, match="poisson, splu: solutions differ by"):
        list(rows)


def test_the_command_line(capsys):
    assert main(["bench", "hdg", "magic"]) == 2
    assert "RECORD = 'magic'; allowed are product, solve, tables" in capsys.readouterr().err
    parser = argparse.ArgumentParser()
    bench.add_tune_arguments(parser)
    found = parser.parse_args(["--orders", "2..3", "--dims", "3"])
    assert list(found.orders) == [2, 3] and found.dims == [3]
    row = {"size": {"dim": 3}, "order": 2, "dtype": "float32"}
    assert bench._measured_again(found, row)
    assert not bench._measured_again(found, row | {"order": 4})
