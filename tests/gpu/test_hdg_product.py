"""The products with a trace matrix on a real device: all methods and sizes, and the libraries'."""

import numpy as np
import pytest
from hdg_product_cases import assert_close, expected, random_case

from dgbook.gpu import device
from dgbook.gpu.libraries import random_numbers
from dgbook.hdg.blocks import BlockMatrix, face_columns
from dgbook.hdg.launch import Product, matvec, shape_of
from dgbook.hdg.plan import HOPPER, METHODS, Plan
from dgbook.lab.rivals.hdg import Rival
from dgbook.mesh import box

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

SEED = np.random.SeedSequence().entropy  # fresh inputs in every run
RANDOM = np.random.default_rng(SEED)
CELLS = {2: (13, 7), 3: (3, 2, 2)}  # no multiple of what a tile holds


@pytest.fixture(params=METHODS)
def method(request):
    if request.param == "bulk" and GPU.compute_capability < HOPPER:
        pytest.skip("no bulk copies before compute capability 9.0")
    return request.param


def case_of(dim, n_c, order, dtype):
    return random_case((dim, n_c, order), dtype, RANDOM, CELLS[dim])


def check(product, matrix, x):
    given, y = product.upload(x), GPU.empty(x.size, matrix.dtype)
    product(given, y)
    assert_close(product.download(y), matrix, x)
    assert np.array_equal(product.download(given), x)


@pytest.mark.parametrize(
    ("dim", "n_c", "order"),
    [
        *((2, 1, p) for p in (1, 2, 6)),
        *((2, 4, p) for p in (1, 2, 3, 4, 5, 10)),
        *((3, 1, p) for p in (1, 2, 5)),
        *((3, 5, p) for p in (1, 2, 3, 5, 10)),
    ],
)
def test_default_plans(dim, n_c, order, method, dtype):
    matrix, x = case_of(dim, n_c, order, dtype)
    check(Product(matrix, GPU, Plan.default(shape_of(matrix), None, method)), matrix, x)


@pytest.mark.parametrize(("dim", "n_c", "order"), [(2, 1, 2), (2, 4, 3), (3, 5, 2)])
def test_plans_for_the_tuner(dim, n_c, order, method, dtype):
    """Some at random."""
    matrix, x = case_of(dim, n_c, order, dtype)
    candidates = Plan.default(shape_of(matrix), None, method).candidates(shape_of(matrix))
    for i in RANDOM.permutation(len(candidates))[:5]:
        check(Product(matrix, GPU, candidates[i]), matrix, x)


@pytest.mark.parametrize("name", ["csr", "bsr", "gemv"])
@pytest.mark.parametrize(("dim", "n_c", "order"), [(2, 1, 1), (2, 4, 3), (3, 5, 2)])
def test_libraries(dim, n_c, order, name, dtype):
    matrix, x = case_of(dim, n_c, order, dtype)
    check(Rival(matrix, GPU, name), matrix, x)


@pytest.mark.parametrize("periodic", [False, True])
def test_a_matrix_that_was_made_on_the_device(periodic, dtype):
    """Every method and library stores it there, and they agree."""
    columns = face_columns(box((13, 7), periodic=periodic))
    values = random_numbers((*columns.shape, 8, 8), dtype, 1)
    filling = columns == columns[:, :1]
    filling[:, 0] = False
    values[GPU.array(filling)] = 0
    on_device, host = BlockMatrix(values, columns), BlockMatrix(values.get(), columns)
    x = RANDOM.standard_normal((host.faces, 8)).astype(dtype)
    methods = [m for m in METHODS if m != "bulk" or GPU.compute_capability >= HOPPER]
    for name in methods:
        check(Product(on_device, GPU, Plan.default(shape_of(host), None, name)), host, x)
    for name in ("csr", "bsr", "gemv"):
        check(Rival(on_device, GPU, name), host, x)


def test_a_recorded_product_is_replayed(method, dtype):
    matrix, x = case_of(2, 4, 2, dtype)
    product = Product(matrix, GPU, Plan("paper") if method == "paper" else None)
    given, y = product.upload(x), product.zeros()
    replay = GPU.capture(lambda: product(given, y))
    assert not product.download(y).any(), "recording does not launch"
    replay()
    GPU.synchronize()
    assert_close(product.download(y), matrix, x)


def test_again_and_again(method, dtype):
    """The same numbers every time: no warp reads what another has not finished."""
    matrix, x = case_of(3, 5, 3, dtype)
    product = Product(matrix, GPU, Plan.default(shape_of(matrix), None, method))
    given, y = product.upload(x), product.zeros()
    product(given, y)
    first = product.download(y)
    for _ in range(50):
        product(given, y)
        assert np.array_equal(product.download(y), first)


def test_matvec(dtype):
    matrix, x = case_of(2, 4, 2, "float64")
    found = matvec(matrix, x, "cuda", dtype)
    tolerance = 100 * np.finfo(dtype).eps * np.abs(x).max()
    assert np.abs(found - expected(matrix, x)).max() < tolerance
