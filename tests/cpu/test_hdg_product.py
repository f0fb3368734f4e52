"""The trace matrix and its product on the CPU: connectivity, storage, plans, counts, rivals."""

import numpy as np
import pytest
from hdg_product_cases import assert_close, expected, random_case
from scipy import sparse

from dgbook.gpu import device
from dgbook.gpu.plan import choose
from dgbook.hdg.blocks import (
    BlockMatrix,
    block_bytes,
    columns_first,
    csr_bytes,
    face_columns,
    face_nodes,
    number_faces,
    random_matrix,
    rows,
    sliced,
)
from dgbook.hdg.cost import contract_cost, csr_cost, inflate_cost, matrix_bytes, product_cost
from dgbook.hdg.launch import CoreProduct, Product, matvec, shape_of
from dgbook.hdg.plan import METHODS, Plan, Shape, tile_faces
from dgbook.lab.papers import find
from dgbook.lab.rivals.hdg import Rival, compressed_blocks, compressed_rows
from dgbook.mesh import box

RANDOM = np.random.default_rng(11)
SIZES = {"2d": (2, 4, 1), "2d, m = 3": (2, 1, 2), "3d": (3, 5, 1)}


@pytest.fixture(params=SIZES)
def sizes(request):
    return SIZES[request.param]


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param


# ------------------------------------------------------------------------------------ connectivity


@pytest.mark.parametrize(
    ("cells", "periodic", "faces"),
    [
        ((3, 2), False, 3 * 6 + 3 + 2),
        ((4, 3), True, 3 * 12),
        ((2, 2, 2), False, (4 * 48 + 2 * 3 * 8) // 2),  # all but the boundary's are counted twice
        ((3, 3, 3), True, 2 * 6 * 27),
    ],
)
def test_faces_and_who_shares_an_element(cells, periodic, faces):
    mesh = box(cells, periodic=periodic)
    numbers, columns = number_faces(mesh), face_columns(mesh)
    assert columns.shape == (faces, 2 * mesh.dim + 1)
    assert np.array_equal(np.unique(numbers), np.arange(faces))
    k, f = np.nonzero(mesh.neighbors >= 0)
    assert np.array_equal(numbers[mesh.neighbors[k, f], mesh.neighbor_faces[k, f]], numbers[k, f])
    coupled = np.zeros((faces, faces), bool)
    for own in numbers:
        coupled[np.ix_(own, own)] = True
    found = np.zeros((faces, faces), bool)
    found[np.arange(faces)[:, None], columns] = True
    assert np.array_equal(found, coupled)
    assert np.array_equal(columns[:, 0], np.arange(faces))
    boundary = len(mesh.boundary_faces)
    filled = (columns[:, 1:] == columns[:, :1]).sum(axis=1)
    assert np.array_equal(np.unique(filled), [0, mesh.dim] if boundary else [0])
    assert (filled > 0).sum() == boundary


def test_nodes_of_a_face():
    assert [face_nodes(2, p) for p in (1, 5)] == [2, 6]
    assert [face_nodes(3, p) for p in (1, 5, 10)] == [3, 21, 66]


# --------------------------------------------------------------------------------------- the matrix


def test_compressed_rows_are_the_same_matrix(sizes, dtype):
    matrix, x = random_case(sizes, dtype, RANDOM)
    assert matrix.dtype == dtype
    csr = matrix.to_csr()
    assert csr.indices.dtype == csr.indptr.dtype == np.int32  # 4 bytes a number, as is counted
    assert csr.has_sorted_indices
    assert_close((csr @ x.reshape(-1)).reshape(x.shape), matrix, x)
    blocks = (~matrix.padded).sum()
    assert csr.nnz == blocks * matrix.m**2
    assert not matrix.values[matrix.padded].any()


def test_zeros_inside_blocks_can_stay():
    matrix, _ = random_case((2, 4, 1), "float64", RANDOM)
    values = matrix.values.copy()
    values[:, 0, 1, :2] = 0
    matrix = BlockMatrix(values, matrix.columns)
    blocks = (~matrix.padded).sum()
    assert matrix.to_csr(drop_zeros=False).nnz == blocks * 64
    assert matrix.to_csr().nnz == blocks * 64 - 2 * matrix.faces


def test_a_face_that_meets_itself_is_no_filling():
    """In a box of one periodic cell two sides of an element can be one face."""
    mesh = box((1, 2), periodic=(True, False))
    matrix = random_matrix(mesh, 1, 1, "float64", RANDOM)
    values = matrix.values.copy()
    values[0, 1:], values[1, 1:] = 1.0, 0.0
    matrix = BlockMatrix(values, np.zeros_like(matrix.columns) + matrix.columns[:, :1])
    assert not matrix.padded[0].any() and matrix.padded[1, 1:].any()
    x = RANDOM.random((matrix.faces, 2))
    assert_close((matrix.to_csr() @ x.reshape(-1)).reshape(x.shape), matrix, x)


def test_bad_matrices_are_refused():
    values, columns = np.zeros((3, 5, 2, 2)), np.repeat(np.arange(3, dtype=np.int32)[:, None], 5, 1)
    for bad, error, message in (
        ((values[..., :1], columns), ValueError, r"allowed: \(faces, blocks, m, m\)"),
        ((values.astype(int), columns), TypeError, "dtype int64"),
        ((values, columns[:2]), ValueError, r"allowed: \(3, 5\) and int32"),
        ((values, columns.astype(np.int64)), ValueError, "dtype int64"),
        ((values, columns + 1), ValueError, "columns hold 1 to 3; allowed: faces from 0 to 2"),
        ((values, columns[::-1]), ValueError, "must be the faces themselves"),
    ):
        with pytest.raises(error, match=message):
            BlockMatrix(*bad)


def test_memory_of_table_1():
    """The paper's MiB, some of which are cut off and not rounded."""
    table = find("roca2011", "Table 1")[0].rows
    for size, unknowns, csr_values, values, _, csr, blocks, ratio in (
        tuple(row.values()) for row in table.values()
    ):
        assert values == 11780 * 5 * size**2
        found_csr = csr_bytes(unknowns, csr_values) / 2**20
        found_blocks = block_bytes(11780, 5, size) / 2**20
        assert abs(found_csr - csr) < 0.01
        assert abs(found_blocks - blocks) < 0.01
        assert abs(found_blocks / found_csr - ratio) < 0.01


# ------------------------------------------------------------------------------------------ storage


def test_the_papers_order():
    """A_ilk with i fastest, then l, then k."""
    matrix, _ = random_case((2, 4, 1), "float64", RANDOM)
    flat = columns_first(matrix.values).reshape(-1)
    m, r = matrix.m, matrix.faces
    for i, l, b, j in ((0, 0, 0, 0), (3, 5, 2, 7), (7, 22, 4, 1)):
        assert flat[i + m * (l + r * (b * m + j))] == matrix.values[l, b, i, j]


@pytest.mark.parametrize("width", [1, 2, 4])
def test_slices(width):
    """Every number once, where a lane looks for it; the rest of the last slice is zero."""
    matrix, _ = random_case((2, 1, 2), "float64", RANDOM)
    m, q = matrix.m, matrix.blocks * matrix.m
    count = -(-matrix.faces * m // 32)
    found = sliced(matrix.values, width)
    assert found.shape == (count, 32 * q)
    assert np.count_nonzero(found) == np.count_nonzero(matrix.values)
    flat = rows(matrix.values).reshape(-1, q)
    groups = q // width
    for row, k in ((0, 0), (33, 7), (40, q - 1), (68, q - 2)):
        slice_, lane = divmod(row, 32)
        if k < groups * width:
            place = (k // width * 32 + lane) * width + k % width
        else:
            place = k * 32 + lane
        assert found[slice_, place] == flat[row, k]


# --------------------------------------------------------------------------------- plans and counts


def test_faces_of_a_tile():
    """Against counting, for tiles that begin inside a face."""
    for m in (1, 2, 3, 8, 15, 24, 32, 50, 105, 330):
        for count in (32, 64, 96, 256):
            first = np.arange(4 * m) * count
            most = ((first + count - 1) // m - first // m + 1).max()
            assert tile_faces(Shape(m, 5, "float64"), count) == most


@pytest.mark.parametrize("method", METHODS)
def test_default_plans_are_legal_for_every_size(method):
    """2D and 3D, orders 1 to 10, one component and those of Navier-Stokes."""
    for dim, n_c in ((2, 1), (2, 4), (3, 1), (3, 5)):
        for order in range(1, 11):
            for dtype in ("float32", "float64"):
                shape = Shape(n_c * face_nodes(dim, order), 2 * dim + 1, dtype)
                assert not Plan.default(shape, None, method).illegal(shape)
                if order in (1, 10):
                    found = Plan.default(shape, None, method).candidates(shape)
                    assert found[0] == Plan.default(shape, None, method)
                    assert 1 < len(found) == len(set(found)) < 80


def test_bulk_copies_are_of_equal_size():
    """20 loads of 8 unknowns in fp64, by two warps: 10 each in 3 copies of 4, 4 and 2."""
    plan = Plan.default(Shape(8, 5, "float64"), None, "bulk")
    assert (plan.warps, plan.split, plan.unroll) == (4, 2, 4)
    tile = 2 * 32 * 40 * 8
    assert plan.turns == 2**17 // tile == 6
    # a tile of 32 rows with 735 columns is more than enough for a block
    assert Plan.default(Shape(105, 7, "float64"), None, "bulk").turns == 1
    # 183 loads of 8 warps, 23 each: copies of 4 and of 8
    large = [
        p
        for p in Plan.default(Shape(105, 7, "float32"), None, "bulk").candidates(
            Shape(105, 7, "float32")
        )
        if (p.warps, p.split) == (8, 8)
    ]
    assert {p.unroll for p in large} == {4, 8}


def test_shared_memory():
    """24 unknowns, 120 columns: of 256 rows that begin at 16 of 24, 12 faces."""
    shape = Shape(24, 5, "float64")
    assert shape.stride == 122
    assert Plan("paper").shared_bytes(shape) == 0
    assert Plan("sliced").shared_bytes(shape) == 12 * 120 * 8
    assert Plan("wide").shared_bytes(shape) == 12 * 122 * 8
    assert Plan("wide", 8, 4).shared_bytes(shape) == 4 * 122 * 8 + 256 * 8
    # four warps with three stages of two loads each, and a barrier each
    assert Plan("bulk", 4, 4, 2, stages=3).shared_bytes(shape) == (
        2 * 122 * 8 + 12 * (1024 + 8) + 128 * 8
    )
    # 15 columns of fp32: three are left over, and come with every stage
    odd = Shape(3, 5, "float32")
    assert Plan("bulk", 1, unroll=2).shared_bytes(odd) == 12 * 20 * 4 + 1024 + 3 * 128 + 8


def test_bad_plans_are_refused():
    shape = Shape(330, 7, "float64")
    for plan, message in (
        (Plan("wide", 33), "1056 threads"),
        (Plan("wide", 4, 3), "split = 3; allowed: what divides warps = 4"),
        (Plan("sliced", 4, 2), "warps and unroll only"),
        (Plan("wide", turns=2), "for bulk copies"),
        (Plan("sliced", 32), "bytes shared; allowed: 49152"),
        (Plan("bulk", 8, 8, 16, stages=4), "bytes shared; allowed: 232448"),
    ):
        assert message in plan.illegal(shape)
    assert "no bulk copies" in Plan("bulk").illegal(Shape(8, 5, "float32"), (8, 0))
    with pytest.raises(ValueError, match="'magic'; allowed are 'paper'"):
        Plan("magic")
    with pytest.raises(ValueError, match="unroll = 0"):
        Plan("wide", unroll=0)
    with pytest.raises(TypeError, match="warps = True"):
        Plan("wide", True)


def test_the_plan_without_measurements():
    shape = Shape(8, 5, "float64")
    simulator = device("simulator")
    assert choose(Plan, shape, simulator).method == "sliced"
    assert choose(Plan, shape, simulator, "paper").method == "paper"


def test_costs_are_counted():
    """Two faces of three unknowns and five blocks, fp32: 90 numbers."""
    shape = Shape(3, 5, "float32")
    assert matrix_bytes(shape, 2) == 90 * 4
    assert product_cost(shape, 2).flops == inflate_cost(shape, 2).flops + 180
    assert product_cost(shape, 2).bytes == (90 + 6 + 6) * 4 + 10 * 4
    assert inflate_cost(shape, 2).bytes == (6 + 30) * 4 + 10 * 4
    assert contract_cost(shape, 2).bytes == (90 + 30 + 6) * 4  # the paper's count
    assert csr_cost(90, 6, 4).bytes == 90 * 8 + 7 * 4 + 2 * 6 * 4
    assert csr_cost(90, 6, 8).bytes == csr_bytes(6, 90)


# ----------------------------------------------------------------------------------------- products


@pytest.mark.parametrize("parallel", [False, True])
def test_algorithm_1(sizes, parallel):
    matrix, x = random_case(sizes, "float64", RANDOM)
    product, y = CoreProduct(matrix, parallel), np.full(x.shape, np.nan)
    product(x, y)
    assert_close(y, matrix, x)
    assert np.array_equal(product.X.reshape(*matrix.columns.shape, -1), x[matrix.columns])


def test_matvec(sizes, dtype):
    matrix, x = random_case(sizes, "float64", RANDOM)
    assert_close(matvec(matrix, x, "cpu", dtype), matrix.astype(dtype), x.astype(dtype))
    assert np.array_equal(matvec(matrix, x, "cpu"), matvec(matrix, x, "cpu", "float64"))


def test_scipy(sizes):
    matrix, x = random_case(sizes, "float64", RANDOM)
    rival = Rival(matrix, device("cpu"), "scipy")
    y = rival.zeros()
    rival(rival.upload(x), y)
    assert_close(rival.download(y), matrix, x)


def test_formats_for_the_libraries(sizes):
    """Columns ascend, nothing is filled up."""
    matrix, x = random_case(sizes, "float64", RANDOM)
    parts, blocks = compressed_rows(matrix), compressed_blocks(matrix)
    assert all(part.dtype == np.int32 for part in (*parts[1:], *blocks[1:]))
    csr = sparse.csr_array(parts, shape=matrix.shape)
    assert csr.has_canonical_format
    assert csr.nnz == (~matrix.padded).sum() * matrix.m**2
    for found in (csr, sparse.bsr_array(blocks, shape=matrix.shape)):
        assert np.abs(found @ x.reshape(-1) - expected(matrix, x).reshape(-1)).max() < 1e-12


def test_bad_input_is_refused():
    matrix, x = random_case((2, 1, 1), "float64", RANDOM)
    with pytest.raises(
        ValueError, match=r"x has shape \(23, 3\); allowed: \(faces, m\) = \(23, 2\)"
    ):
        matvec(matrix, np.zeros((23, 3)), "cpu")
    with pytest.raises(TypeError, match="dtype = 'int32'; allowed are float32, float64"):
        matvec(matrix, x, "cpu", "int32")
    with pytest.raises(ValueError, match="'simulator'; allowed for 'bulk': 'cuda'"):
        Product(matrix, device("simulator"), Plan("bulk"))
    with pytest.raises(ValueError, match="split = 2; allowed: what divides"):
        Product(matrix, device("simulator"), Plan("wide", 3, 2))
    with pytest.raises(ValueError, match="'cpu'; allowed for 'sliced': 'cuda' and 'simulator'"):
        Product(matrix, device("cpu"), Plan("sliced"))
    with pytest.raises(ValueError, match="'paper'; allowed: one that reads the order of 'sliced'"):
        Product(matrix, device("simulator"), Plan("sliced")).planned(Plan("paper"))
    with pytest.raises(ValueError, match="rival 'csr' on 'cpu'; allowed"):
        Rival(matrix, device("cpu"), "csr")
    with pytest.raises(ValueError, match="rival 'eigen'"):
        Rival(matrix, device("cpu"), "eigen")


def test_too_many_rows_are_refused():
    """Rows are numbered by 32 bits; nothing is allocated before that is known."""

    class Huge:
        shape, faces, m, blocks, dtype = (2**32, 2**32), 2**29, 8, 5, np.dtype("float32")

    with pytest.raises(ValueError, match="allowed: up to 4294901760"):
        Product(Huge(), device("simulator"), Plan("sliced"))
    assert shape_of(Huge()) == Shape(8, 5, "float32")
