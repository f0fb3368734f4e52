"""Every microbenchmark kernel, thread by thread, against NumPy."""

import numpy as np
import pytest
from emulation import Emulated, needs_compiler

from dgbook.check import RaceError
from dgbook.gpu import cuda, device, jit, timing
from dgbook.lab import probes

SIMULATOR = device("simulator")
RANDOM = np.random.default_rng(1)
N, THREADS, BLOCKS = 70, 32, 3


@pytest.fixture(params=["float32", "float64"])
def real(request):
    return np.dtype(request.param).type


def poisoned(shape, dtype):
    return SIMULATOR.empty(shape, dtype)


def test_copies(real):
    x = RANDOM.standard_normal(4 * N).astype(real)
    y = poisoned(N, real)
    probes.copy[BLOCKS, THREADS](x[:N].copy(), y)
    assert np.array_equal(y, x[:N])
    for stride in (1, 2, 3, 4):
        y = poisoned(N, real)
        probes.copy_strided[BLOCKS, THREADS](x, y, stride)
        assert np.array_equal(y, x[: stride * N : stride])
    for offset in (0, 1, 7):
        y = poisoned(N, real)
        probes.copy_offset[BLOCKS, THREADS](x[: N + offset].copy(), y, offset)
        assert np.array_equal(y, x[offset : N + offset])


@pytest.mark.parametrize("loads", [1, 3, 8])
def test_copy_with_several_loads_per_thread(real, loads):
    x = RANDOM.standard_normal(N).astype(real)
    y = poisoned(N, real)
    probes.make_copy_several(real, loads)[-(-N // (loads * THREADS)), THREADS](x, y)
    assert np.array_equal(y, x)


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_grid_stride_copy_needs_no_matching_grid(real, blocks):
    x = RANDOM.standard_normal(N).astype(real)
    y = poisoned(N, real)
    probes.copy_grid_stride[blocks, THREADS, 1024](x, y)  # as the occupancy probe launches it
    assert np.array_equal(y, x)


def test_gather(real):
    x = RANDOM.standard_normal(N).astype(real)
    index = RANDOM.permutation(N).astype(np.int32)
    y = poisoned(N, real)
    probes.gather[BLOCKS, THREADS](x, index, y)
    assert np.array_equal(y, x[index])


@pytest.mark.parametrize("shape", [(32, 32), (45, 34), (5, 70)])
def test_transpose(real, shape):
    x = RANDOM.standard_normal(shape).astype(real)
    block = (probes.TILE, probes.TILE_ROWS)
    columns, rows = -(-shape[1] // probes.TILE), -(-shape[0] // probes.TILE)
    y = poisoned(shape[::-1], real)
    probes.transpose_naive[(columns, -(-shape[0] // probes.TILE_ROWS)), block](x, y)
    assert np.array_equal(y, x.T)
    for padding in (0, 1):
        y = poisoned(shape[::-1], real)
        probes.make_transpose(real, padding)[(columns, rows), block](x, y)
        assert np.array_equal(y, x.T)
    y = poisoned(shape[::-1], real)
    probes.make_transpose_several(real)[(columns, rows), block](x, y)
    assert np.array_equal(y, x.T)


def test_transpose_without_its_barrier_is_a_race():
    @jit
    def transpose_shared(x, y):
        tile = cuda.shared.array((32, 33), np.float32)
        lane = cuda.threadIdx.x
        for r in range(cuda.threadIdx.y, 32, 8):
            tile[r, lane] = x[r, lane]
        for r in range(cuda.threadIdx.y, 32, 8):
            y[r, lane] = tile[lane, r]

    x = RANDOM.standard_normal((32, 32)).astype(np.float32)
    with pytest.raises((RaceError, RuntimeError)):
        transpose_shared[(1, 1), (32, 8)](x, poisoned((32, 32), np.float32))


@pytest.mark.parametrize("stride", [0, 1, 2, 32])
def test_walk_through_shared_memory(stride):
    threads, rounds = 64, 2
    ended = poisoned(2 * threads, np.uint32)
    probes.walk_shared[2, threads](ended, stride, rounds)
    lanes = np.arange(2 * threads) % 32
    assert np.array_equal(ended, (lanes * stride + probes.LINKS * rounds) % probes.WORDS)


def test_chase_goes_on_where_it_stopped():
    following = probes.chase_chain(11)
    position = SIMULATOR.zeros(1, np.uint32)
    at, visited = 0, []
    for _ in range(3):
        probes.chase[1, 1](following, 1, position)
        for _ in range(probes.LINKS):
            at = int(following[at])
        visited.append(at)
        assert int(position[0]) == at
    assert len(set(visited)) == 3


@pytest.mark.parametrize("accumulators", range(1, 9))
@pytest.mark.parametrize("links", [probes.LINKS, 3])
def test_fma_chains(real, accumulators, links):
    start = RANDOM.uniform(-1, 1, 32).astype(real)
    x, y, rounds = real(0.9), real(0.05), 2
    out = poisoned(32, real)
    probes.make_fma(real, accumulators, links)[1, 32](start, x, y, rounds, out)
    chains = start[:, None].astype(np.float64) + np.arange(accumulators)
    for _ in range(rounds * links):
        chains = chains * np.float64(x) + np.float64(y)
    assert np.max(np.abs(out - chains.sum(axis=1))) < 100 * np.finfo(real).eps


def after(operation, x, links, b):
    """What so many links of a chain make of x, with a = 0.5 and c = 2, which is above a."""
    if operation == "choose":  # b and c in turn, or b for good if it is above a as well
        return np.where((x > 0.5) & (b < 0.5), 2, b)
    return {
        "add": x + links / 2,
        "multiply": x / 2**links,
        "fma": 2 * b + (x - 2 * b) / 2**links,
        "divide": x,
        "reciprocal": x,
        "rsqrt": x ** (1 / 2**links),
    }[operation]


@pytest.mark.parametrize("b", [0.25, 0.75])
@pytest.mark.parametrize("chains", [1, 8])
@pytest.mark.parametrize("operation", probes.OPERATIONS + probes.BRANCHING)
def test_chains_of_one_operation(real, operation, chains, b):
    """An even number of links each, so that quotients end where they began."""
    if operation in probes.BRANCHING and real is not np.float64:
        with pytest.raises(ValueError, match="operation = 'branching"):
            probes.make_chain(real, operation, chains)
        return
    start, rounds = np.array([0.25, 1.25, 3], real), 2
    out = poisoned(3, real)
    operands = real(0.5), real(b), real(2)
    probes.make_chain(real, operation, chains)[1, 3](start, *operands, np.int32(rounds), out)
    links = rounds * probes.OPERATIONS_A_ROUND // chains
    begins = start[:, None].astype(np.float64) + np.arange(chains)
    want = after(operation.split()[-1], begins, links, b).sum(axis=1)
    assert np.abs(out / want - 1).max() < 10 * np.finfo(real).eps


@needs_compiler
def test_clock_cycles_are_counted(tmp_path):
    passed = np.full(2, -1, np.int32)
    Emulated(probes.wait_clocks(), tmp_path, (9, 0))[2, 32](12, passed)
    assert np.array_equal(passed, [15, 15])  # the third look, five cycles from the one before


@pytest.mark.parametrize("unit", [1, 32])
def test_divergence_takes_each_lanes_own_branch(real, unit):
    shift = np.array([1, -2, 0.5], real)
    out = poisoned(96, real)
    probes.make_divergence(real)[3, 32](shift, unit, 4, real(0.5), out)
    mine = shift[np.arange(96) // unit % 3]
    assert np.array_equal(out, mine * real(1 + 0.5 + 0.25 + 0.125)), "powers of two, so exact"


def test_sums_by_atomics(real):
    x = RANDOM.integers(-4, 5, N).astype(real)  # small integers: any order of additions is exact
    for kernel in (probes.sum_one_address, probes.make_sum_shuffled(real)):
        total = SIMULATOR.zeros(1, real)
        kernel[BLOCKS, THREADS](x, total)
        assert total[0] == x.sum()
    totals = SIMULATOR.zeros(BLOCKS, real)
    probes.sum_warp_address[BLOCKS, THREADS](x, totals)
    assert np.array_equal(totals, [x[:32].sum(), x[32:64].sum(), x[64:].sum()])


def test_a_sum_without_atomics_is_a_race():
    @jit
    def sum_plain(x, total):
        i = cuda.grid(1)
        if i < x.size:
            total[0] += x[i]

    x = np.ones(N, np.float32)
    with pytest.raises(RaceError):
        sum_plain[BLOCKS, THREADS](x, SIMULATOR.zeros(1, np.float32))


@needs_compiler
def test_read_again_reads_all_of_it_in_each_round(tmp_path):
    x = np.arange(4 * 70, dtype=np.float32)
    out = np.full(64, np.nan, np.float32)
    kernel = Emulated(probes.read_again(), tmp_path, (9, 0))
    kernel[2, 32](x, 3, 70, out)
    vectors = x.reshape(70, 4).sum(axis=1)
    mine = [3 * vectors[thread::64].sum() for thread in range(64)]
    assert np.array_equal(out, mine)  # small integers: exact


def fragments(real, tiles):
    """Random rows and columns of a product, and the lanes' entries of both: PTX ISA, mma."""
    depth, pair = (8, 2) if real == np.float32 else (4, 1)
    rows = RANDOM.standard_normal((16, depth)).astype(real)
    columns = RANDOM.standard_normal((tiles, depth, 8)).astype(real)
    g, t = np.arange(32) // 4, np.arange(32) % 4
    part = np.arange(pair)
    a = rows[g[:, None, None] + 8 * np.arange(2)[:, None], t[:, None, None] + 4 * part]
    b = columns[np.arange(tiles)[:, None], t[:, None, None] + 4 * part, g[:, None, None]]
    return rows.astype(float), columns.astype(float), a.ravel(), b.ravel()


@needs_compiler
@pytest.mark.parametrize("capability", [(8, 0), (9, 0)], ids=str)
@pytest.mark.parametrize("tiles", [1, 4])
def test_tensor_products(real, tiles, capability, tmp_path):
    rounds = 2
    rows, columns, a, b = fragments(real, tiles)
    out = np.full(64, np.nan, real)
    kernel = Emulated(probes.tensor_products(real, tiles), tmp_path, capability)
    kernel[1, 64](a, b, rounds, out)
    # A lane's numbers of a sum: columns 2 t and 2 t + 1 of rows g and g + 8.
    products = (rows @ columns).sum(axis=0).reshape(2, 8, 4, 2).sum(axis=(0, 3)).ravel()
    want = probes.LINKS * rounds * np.tile(products, 2)
    # Operands in TF32 alone would be wrong by 2^-11; 96 sums, each cut off by 2^-23 at most.
    tolerance = 96 * 2.0**-23 if real == np.float32 else 1e-13
    assert np.abs(out - want).max() < tolerance * np.abs(want).max()


def test_an_empty_kernel_and_a_waiting_one():
    x = SIMULATOR.zeros(1, np.float32)
    probes.nothing[1, 32](x)
    assert x[0] == 0
    ended = SIMULATOR.zeros(1, np.int32)
    timing._hold[1, 1](np.int32(7), ended)
    assert ended[0] == 7
