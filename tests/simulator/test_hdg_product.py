"""The kernels of the product with a trace matrix, thread by thread, against the reference."""

import numpy as np
import pytest
from broken import hdg as broken
from emulation import Emulated, needs_compiler
from hdg_product_cases import assert_close, expected, random_case

from dgbook.check import SimulatorError
from dgbook.gpu import device
from dgbook.hdg import blocks as storage
from dgbook.hdg import launch as products
from dgbook.hdg.launch import Product, kernels, matvec, shape_of, stored
from dgbook.hdg.plan import Plan

SIMULATOR = device("simulator")
NUMBA = ("paper", "fused", "sliced")

CASES = {
    "triangles, m = 2": (2, 1, 1),
    "triangles, m = 3": (2, 1, 2),
    "triangles, m = 8": (2, 4, 1),
    "tetrahedra, m = 3": (3, 1, 1),
    "tetrahedra, m = 15": (3, 5, 1),
    "triangles, m = 40, more than a warp": (2, 4, 9),
}


def plan_of(method, warps, unroll):
    return Plan(method, warps, unroll=unroll if method == "sliced" else 8)


def run(matrix, x, plan):
    product = Product(matrix, SIMULATOR, plan)
    x, y = product.upload(x), product.zeros()
    y[:] = np.nan  # what nobody writes shows
    before = x.copy()
    product(x, y)
    assert np.array_equal(x, before)
    return product.download(y)


@pytest.mark.parametrize("method", NUMBA)
@pytest.mark.parametrize("case", CASES)
def test_kernels_against_the_reference(case, method):
    dtype = "float32" if "m = 8" in case or "m = 3" in case else "float64"
    cells = (1, 1) if "warp" in case else None
    matrix, x = random_case(CASES[case], dtype, np.random.default_rng(3), cells)
    assert_close(run(matrix, x, plan_of(method, 2, 8)), matrix, x)


@pytest.mark.parametrize(
    "plan", [Plan("sliced", 1, unroll=3), Plan("sliced", 4, unroll=16)], ids=str
)
def test_plans_of_slices(plan):
    """Loads that leave a rest, and more of them than there are columns; tiles that are not full."""
    matrix, x = random_case((2, 1, 2), "float64", np.random.default_rng(4))
    assert_close(run(matrix, x, plan), matrix, x)


def test_planned_shares_the_matrix():
    matrix, x = random_case((2, 1, 2), "float32", np.random.default_rng(8))
    for first, second in ((Plan("sliced", 2), Plan("sliced", 1)), (Plan("paper"), Plan("fused"))):
        product = Product(matrix, SIMULATOR, first)
        other = product.planned(second)
        assert other.arrays is product.arrays and (product.plan, other.plan) == (first, second)
        for each in (product, other):
            y = each.zeros()
            each(each.upload(x), y)
            assert_close(each.download(y), matrix, x)


def test_a_step_of_the_paper_after_the_other():
    matrix, x = random_case((2, 1, 1), "float64", np.random.default_rng(5))
    product = Product(matrix, SIMULATOR, Plan("paper", 1))
    product.inflate(product.upload(x))
    inflated = product.arrays["X"].reshape(matrix.faces, matrix.blocks, matrix.m)
    assert np.array_equal(inflated, x[matrix.columns])
    y = product.zeros()
    product.contract(y)
    assert_close(product.download(y), matrix, x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_matvec(dtype):
    matrix, x = random_case((2, 1, 1), "float64", np.random.default_rng(6))
    found = matvec(matrix, x, "simulator", dtype)
    assert_close(found, matrix.astype(dtype), x.astype(dtype))


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", [*CASES.values(), (3, 5, 3)], ids=str)
def test_wide_cuda(sizes, dtype, tmp_path):
    """On the CPU: the last tile is not full; where rows are long, warps share a slice."""
    matrix, x = random_case(sizes, dtype, np.random.default_rng(9))
    shape = shape_of(matrix)
    plan = Plan.default(shape, None, "wide")
    kernel = Emulated(kernels(shape, plan)["wide"], tmp_path, (9, 0))
    y = np.full(x.size, np.nan, dtype)
    values, columns = stored(matrix.values, plan, shape), matrix.columns.ravel()
    grid = -(-y.size // plan.tile_rows)
    kernel[grid, plan.threads](values, columns, x.ravel(), y, matrix.faces)
    assert_close(y.reshape(x.shape), matrix, x)


# ------------------------------------------------------------------------------------ wrong kernels


@pytest.mark.parametrize("mistake", broken.MISTAKES, ids=lambda m: m.name)
def test_wrong_kernels_are_rejected(mistake, monkeypatch):
    """Of 23 faces with 3 unknowns, 69 rows: tiles begin inside faces, and the last is not full."""
    matrix, x = random_case((2, 1, 2), "float64", np.random.default_rng(7))
    name = mistake.function.__name__
    place = storage if name == "rows" else products
    monkeypatch.setattr(place, name, mistake.make())
    products.kernels.cache_clear()
    try:
        found = run(matrix, x, plan_of(mistake.method, 1, 4))
    except SimulatorError:
        return
    finally:
        products.kernels.cache_clear()
    assert "barrier" not in mistake.name, "races are refused, whatever they compute"
    right = expected(matrix, x)
    assert not np.abs(found - right).max() < 1e-2 * np.abs(right).max()
