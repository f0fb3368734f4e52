"""A real device: arrays, launches, graphs, update kernels, probes, timing, ceilings and tuning."""

import time

import numpy as np
import pytest

from dgbook.gpu import cuda, device, jit
from dgbook.gpu.timing import beyond_cache, measure
from dgbook.gpu.tune import ranked, tune
from dgbook.lab import probes
from dgbook.lab.roofline import ceilings, gpu_copies
from dgbook.time import lsrk45, midpoint, rk4

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

SEED = np.random.SeedSequence().entropy  # fresh inputs in every run: what is right is right for all
RANDOM = np.random.default_rng(SEED)
N = 1_000_003  # no multiple of a block or of a warp
THREADS = 256
BLOCKS = -(-N // THREADS)


@pytest.fixture(params=["float32", "float64"])
def real(request):
    return np.dtype(request.param).type


def normal(shape, real):
    return RANDOM.standard_normal(shape).astype(real)


def same(result, expected):
    """Equal to the last bit, and every entry written: `Device.empty` is full of NaN."""
    return np.array_equal(GPU.to_numpy(result), expected)


# -------------------------------------------------------------------------------------- the device


def test_the_device_describes_itself():
    assert GPU.compute_capability >= (7, 5)
    assert GPU.memory_bytes > 2**30
    assert GPU.multiprocessors > 0
    assert GPU.l2_bytes > 2**20
    assert GPU.name in GPU.sentence


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint32", "uint8"])
@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4)])
def test_arrays_come_back(dtype, shape):
    values = (100 * RANDOM.random(shape)).astype(dtype)
    there = GPU.array(values)
    assert there.dtype == values.dtype
    assert there.shape == shape
    assert same(there, values)
    turned = np.ascontiguousarray(values.T).T  # Fortran order
    assert GPU.array(turned).flags.c_contiguous
    assert same(GPU.array(turned), values)
    assert same(GPU.zeros(shape, dtype), np.zeros(shape, dtype))


def test_a_copy_is_a_copy():
    values = normal(10, np.float64)
    there = GPU.array(values)
    kept = values.copy()
    values[:] = 0
    assert same(there, kept)


def test_empty_is_poisoned():
    assert np.all(np.isnan(GPU.to_numpy(GPU.empty((3, 5), np.float32))))
    assert np.all(np.isnan(GPU.to_numpy(GPU.empty(4, np.float64))))
    assert np.all(GPU.to_numpy(GPU.empty(4, np.int32)) == np.iinfo(np.int32).max)


def test_arrays_of_two_sides_do_not_mix():
    with pytest.raises(TypeError, match="NumPy arrays"):
        probes.copy[1, 32](GPU.zeros(4, np.float32), np.zeros(4, np.float32))


def test_launches_follow_the_current_stream():
    import cupy

    x = normal(N, np.float32)
    there, y = GPU.array(x), GPU.empty(N, np.float32)
    GPU.synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        probes.copy[BLOCKS, THREADS](there, y)
    stream.synchronize()  # this stream only: a launch elsewhere might not have ended
    assert same(y, x)


# ------------------------------------------------------------------------------------------ probes


def test_copies(real):
    x = normal(N + 7, real)
    whole = GPU.array(x)
    y = GPU.empty(N, real)
    probes.copy[BLOCKS, THREADS](whole, y)
    assert same(y, x[:N])
    y = GPU.empty(N, real)
    probes.copy_grid_stride[3 * GPU.multiprocessors, THREADS, 4096](whole, y)
    assert same(y, x[:N])
    for offset in (0, 1, 7):
        y = GPU.empty(N, real)
        probes.copy_offset[BLOCKS, THREADS](whole, y, offset)
        assert same(y, x[offset : offset + N])
    for stride in (1, 2, 8, 33):
        count = (N + 7) // stride
        y = GPU.empty(count, real)
        probes.copy_strided[-(-count // THREADS), THREADS](whole, y, stride)
        assert same(y, x[: count * stride : stride])


def test_gather(real):
    x, index = normal(N, real), RANDOM.permutation(N).astype(np.int32)
    y = GPU.empty(N, real)
    probes.gather[BLOCKS, THREADS](GPU.array(x), GPU.array(index), y)
    assert same(y, x[index])


@pytest.mark.parametrize("shape", [(1024, 1024), (517, 1030), (31, 2000)])
def test_transpose(real, shape):
    x = normal(shape, real)
    there, block = GPU.array(x), (probes.TILE, probes.TILE_ROWS)
    columns = -(-shape[1] // probes.TILE)
    y = GPU.empty(shape[::-1], real)
    probes.transpose_naive[(columns, -(-shape[0] // probes.TILE_ROWS)), block](there, y)
    assert same(y, x.T)
    kernels = [probes.make_transpose(real, padding) for padding in (0, 1)]
    for kernel in (*kernels, probes.make_transpose_several(real)):
        y = GPU.empty(shape[::-1], real)
        kernel[(columns, -(-shape[0] // probes.TILE)), block](there, y)
        assert same(y, x.T)


@pytest.mark.parametrize("stride", [0, 1, 3, 32])
def test_walk_through_shared_memory(stride):
    threads, blocks, rounds = 512, 300, 77
    ended = GPU.empty(blocks * threads, np.uint32)
    probes.walk_shared[blocks, threads](ended, stride, rounds)
    lanes = np.arange(blocks * threads) % 32
    assert same(ended, (lanes * stride + probes.LINKS * rounds) % probes.WORDS)


def test_chase_goes_on_where_it_stopped():
    following = probes.chase_chain(1000)
    there, position = GPU.array(following), GPU.zeros(1, np.uint32)
    at = 0
    for _ in range(3):
        probes.chase[1, 1](there, 25, position)
        for _ in range(25 * probes.LINKS):
            at = int(following[at])
        assert int(GPU.to_numpy(position)[0]) == at


@pytest.mark.parametrize("accumulators", range(1, 9))
def test_fma_chains(real, accumulators):
    count, rounds = 5 * 128, 20
    start, x, y = normal(count, real), real(0.99), real(0.03)
    out = GPU.empty(count, real)
    kernel = probes.make_fma(real, accumulators)
    kernel[5, 128](GPU.array(start), x, y, np.int32(rounds), out)
    chains = start[:, None].astype(np.float64) + np.arange(accumulators)
    for _ in range(rounds * probes.LINKS):
        chains = chains * np.float64(x) + np.float64(y)
    # 320 roundings, each damped by the following products: 1 / (1 - 0.99) of them survive.
    assert np.allclose(GPU.to_numpy(out), chains.sum(axis=1), rtol=0, atol=4e3 * np.finfo(real).eps)


@pytest.mark.parametrize("chains", [1, 8])
@pytest.mark.parametrize("operation", probes.OPERATIONS + probes.BRANCHING)
def test_chains_of_one_operation(real, operation, chains):
    """Link by link as NumPy does it, in fp64: what is wrong by a rounding stays small."""
    if operation in probes.BRANCHING:
        real = np.float64
    start, rounds = RANDOM.uniform(1, 2, 320).astype(real), 1
    a, b, c = real(0.75), real(0.25), real(2)
    out = GPU.empty(320, real)
    kernel = probes.make_chain(real, operation, chains)
    kernel[10, 32](GPU.array(start), a, b, c, np.int32(rounds), out)
    x = start[:, None].astype(np.float64) + np.arange(chains)
    link = {
        "add": lambda x: x + a,
        "multiply": lambda x: x * a,
        "fma": lambda x: x * a + b,
        "choose": lambda x: np.where(x > a, b, c),
        "divide": lambda x: a / x,
        "reciprocal": lambda x: 1 / x,
        "rsqrt": lambda x: x**-0.5,
    }[operation.split()[-1]]
    for _ in range(rounds * probes.OPERATIONS_A_ROUND // chains):
        x = link(x)
    want = x.sum(axis=1)
    assert np.allclose(GPU.to_numpy(out), want, rtol=1e3 * np.finfo(real).eps, atol=0)


@pytest.mark.parametrize("unit", [1, 32])
def test_divergence_takes_each_lanes_own_branch(real, unit):
    shift = np.array([1, -2, 0.5, 4, 8], real)
    out = GPU.empty(10 * 256, real)
    kernel = probes.make_divergence(real)
    kernel[10, 256](GPU.array(shift), unit, np.int32(4), real(0.5), out)
    assert same(out, shift[np.arange(2560) // unit % 5] * real(1.875))


def test_sums_by_atomics(real):
    x = RANDOM.integers(-4, 5, N).astype(real)  # small integers: any order of additions is exact
    there = GPU.array(x)
    for kernel in (probes.sum_one_address, probes.make_sum_shuffled(real)):
        total = GPU.zeros(1, real)
        kernel[BLOCKS, THREADS](there, total)
        assert same(total, [x.sum(dtype=np.float64)])
    totals = GPU.zeros(-(-N // 32), real)
    probes.sum_warp_address[BLOCKS, THREADS](there, totals)
    padded = np.zeros(totals.size * 32, real)
    padded[:N] = x
    assert same(totals, padded.reshape(-1, 32).sum(axis=1))


# --------------------------------------------------------------------------------- update kernels


def right_side(u, t):
    """Nonlinear, not autonomous, and coupled, so that a wrong state or time shows."""
    return np.roll(u, 1) * (1 - u) + np.cos(t).astype(u.dtype)


def slope(u, t):
    return GPU.array(right_side(GPU.to_numpy(u), np.float64(t)))


def close(u, expected):
    scale = np.finfo(expected.dtype).eps * 16
    return np.max(np.abs(GPU.to_numpy(u) - expected)) < scale


def test_lsrk45_update(real):
    u0, dt = RANDOM.uniform(0.1, 0.9, N).astype(real), 0.05
    update, u, res = lsrk45.make_update(real), GPU.array(u0), GPU.empty(N, real)
    for a, b, c in zip(lsrk45.A, lsrk45.B, lsrk45.C, strict=True):
        update[BLOCKS, THREADS](slope(u, c * dt), res, u, real(a), real(b), real(dt))
    assert close(u, lsrk45.integrate(right_side, u0, 0.0, dt, dt))


def test_rk4_update(real):
    u0, dt = RANDOM.uniform(0.1, 0.9, N).astype(real), 0.05
    intermediate, final = rk4.make_update(real)
    u, v, total = GPU.array(u0), GPU.empty(N, real), GPU.empty(N, real)
    k, start = slope(u, 0.0), u
    for s in range(3):
        a, b = real(dt * rk4.A[s + 1]), real(dt * rk4.B[s])
        intermediate[BLOCKS, THREADS](k, u, start, total, v, a, b)
        k, start = slope(v, rk4.C[s + 1] * dt), total
    final[BLOCKS, THREADS](k, total, u, real(dt * rk4.B[3]))
    assert close(u, rk4.integrate(right_side, u0, 0.0, dt, dt))


def test_midpoint_update(real):
    u0, dt = RANDOM.uniform(0.1, 0.9, N).astype(real), 0.05
    update, u, middle = midpoint.make_update(real), GPU.array(u0), GPU.empty(N, real)
    update[BLOCKS, THREADS](slope(u, 0.0), u, middle, real(dt / 2))
    update[BLOCKS, THREADS](slope(middle, dt / 2), u, u, real(dt))
    assert close(u, midpoint.integrate(right_side, u0, 0.0, dt, dt))


def test_a_wrong_update_is_seen(real):
    @jit
    def forgets_the_register(rhs, res, u, a, b, dt):
        i = cuda.grid(1)
        if i < u.size:
            u[i] += b * dt * rhs[i]

    u0, dt = RANDOM.uniform(0.1, 0.9, N).astype(real), 0.05
    u, res = GPU.array(u0), GPU.zeros(N, real)
    for a, b, c in zip(lsrk45.A, lsrk45.B, lsrk45.C, strict=True):
        forgets_the_register[BLOCKS, THREADS](slope(u, c * dt), res, u, real(a), real(b), real(dt))
    assert not close(u, lsrk45.integrate(right_side, u0, 0.0, dt, dt))


# ------------------------------------------------------------------------------------------ graphs


def time_step(u, real):
    """A step of u' = -u_{i-1} u_i as kernel launches only."""

    @jit
    def slopes(u, rhs):
        i = cuda.grid(1)
        if i < u.size:
            rhs[i] = -u[i] * u[i - 1 if i > 0 else u.size - 1]

    update = lsrk45.make_update(real)
    rhs, res = GPU.empty(N, real), GPU.empty(N, real)

    def step():
        for a, b in zip(lsrk45.A, lsrk45.B, strict=True):
            slopes[BLOCKS, THREADS](u, rhs)
            update[BLOCKS, THREADS](rhs, res, u, real(a), real(b), real(0.1))

    return step


def test_a_captured_step_is_the_step(real):
    u0 = RANDOM.uniform(0.1, 0.9, N).astype(real)
    plain, replayed = GPU.array(u0), GPU.array(u0)
    step = time_step(plain, real)
    replay = GPU.capture(time_step(replayed, real))
    assert same(replayed, u0), "capturing takes no step"
    for _ in range(4):
        step()
        replay()
    result = GPU.to_numpy(plain)
    assert same(replayed, result), "to the last bit"
    expected = lsrk45.integrate(lambda u, t: -np.roll(u, 1) * u, u0, 0.0, 0.4, 0.1)
    assert np.max(np.abs(result - expected)) < 64 * np.finfo(real).eps


# ------------------------------------------------------------------------------------------ timing


@pytest.fixture(scope="module")
def launches():
    return {kind: probes.launch_cost(GPU, kind).seconds for kind in probes.LAUNCH_KINDS}


def test_a_graph_launches_cheaper_than_python(launches):
    assert 0 < launches["graph"] < launches["python"] / 3
    assert launches["raw"] < launches["python"] < 1e-3, "a raw launch needs no dispatcher"


def test_timing_grows_with_the_work():
    n = 2**26
    x, y = GPU.array(normal(n, np.float32)), GPU.empty(n, np.float32)

    def once():
        probes.copy[n // THREADS, THREADS](x, y)

    def thrice():
        for _ in range(3):
            once()

    one, three = measure(once, GPU), measure(thrice, GPU)
    assert one.samples == 30
    assert not one.host_bound
    assert 2.5 < three.median / one.median < 3.5
    assert one.iqr < 0.2 * one.median
    assert 0.02 < 8 * n / one.median * 1e-12 < 20, "TB/s that a memory can have"
    assert beyond_cache(4 * GPU.l2_bytes, GPU)
    assert not beyond_cache(2 * GPU.l2_bytes, GPU)


def test_short_kernels_are_timed_without_the_host(launches):
    x = GPU.zeros(1, np.float32)
    timing = measure(lambda: probes.nothing[1, 32](x), GPU)
    assert timing.inner > 1
    assert not timing.host_bound
    assert timing.median < launches["python"], "the device's time, not Python's"


def test_a_function_that_waits_is_said_to_be_host_bound():
    def waits():
        GPU.synchronize()
        time.sleep(2e-4)

    timing = measure(waits, GPU, samples=20)
    assert timing.host_bound
    assert timing.median > 1.5e-4


def test_the_ceilings_copies_copy():
    for nbytes in (2**20, 2**20 + 48):  # the second is no multiple of what a block copies
        x, y, copies = gpu_copies(GPU, nbytes)
        for name, function in copies.items():
            y.fill(np.nan)
            function()
            assert same(y, GPU.to_numpy(x)), name


def test_ceilings():
    found = ceilings(GPU)
    assert found.fp32_TFLOPs >= 0.9 * found.fp64_TFLOPs
    assert 0.05 < found.copy_TBps < 20
    print(found)
    if "H200" in GPU.name:  # within what its data sheet says (4.8, 67, 34), and near what is known
        assert 3.9 < found.copy_TBps < 4.8
        assert 50 < found.fp32_TFLOPs < 67
        assert 25 < found.fp64_TFLOPs < 34
    quick = ceilings(GPU, quick=True)
    for name, value in found.as_dict().items():
        assert 0.7 * value < quick.as_dict()[name] < 1.3 * value, name


# -------------------------------------------------------------------------- what the probes measure


def test_strides_waste_bandwidth():
    dense, strided = (probes.copy_bandwidth(GPU, stride=s) for s in (1, 8))
    assert not dense.in_cache
    assert dense.bytes == dense.moved
    assert strided.TBps < 0.6 * dense.TBps
    assert strided.slowdown == pytest.approx(4.5)
    shifted = probes.copy_bandwidth(GPU, offset=1)
    assert shifted.TBps > 0.7 * dense.TBps, "caches hide what a line boundary costs"


def test_several_loads_per_thread_keep_more_bytes_in_flight():
    one, four = (probes.copy_several_bandwidth(GPU, "float32", n) for n in (1, 4))
    assert not one.in_cache
    assert four.TBps > 0.95 * one.TBps


def test_gather_in_random_order_is_slow():
    in_order, shuffled = (probes.gather_bandwidth(GPU, shuffled=s) for s in (False, True))
    assert shuffled.seconds > 1.5 * in_order.seconds


def test_transposition_wants_a_padded_tile():
    naive, padded = (probes.transpose_bandwidth(GPU, kind) for kind in ("naive", "padded"))
    shared = probes.transpose_bandwidth(GPU, "shared")
    assert padded.TBps > 1.2 * naive.TBps
    assert padded.TBps > shared.TBps


def test_transposition_wants_several_loads_in_flight():
    padded, several = (probes.transpose_bandwidth(GPU, kind) for kind in ("padded", "several"))
    assert several.TBps > 1.2 * padded.TBps


def test_bank_conflicts_serialize():
    dense, broadcast, two, all_in_one = (probes.bank_conflicts(GPU, s) for s in (1, 0, 2, 32))
    assert broadcast.seconds < 1.3 * dense.seconds
    assert two.seconds < 3 * dense.seconds
    assert 8 < all_in_one.seconds / dense.seconds < 40


def test_a_conflict_lengthens_the_wait_for_shared_memory():
    one, all_in_one = (probes.shared_latency(GPU, stride) for stride in (1, 32))
    assert 5e-9 < one.seconds_per_operation < 1e-7
    assert all_in_one.seconds > 1.5 * one.seconds


def test_latency_grows_with_the_working_set():
    near, middle, far = (probes.latency(GPU, size) for size in (2**13, 2**21, 2**29))
    assert near.seconds_per_operation < middle.seconds_per_operation < far.seconds_per_operation
    assert 5e-9 < near.seconds_per_operation < 1e-7
    assert 2e-7 < far.seconds_per_operation < 3e-6


def test_the_cache_reads_faster_than_memory():
    near, far = (probes.read_bandwidth(GPU, size) for size in (GPU.l2_bytes // 8 // 16 * 16, 2**30))
    assert near.in_cache and not far.in_cache
    assert near.TBps > 1.2 * far.TBps


@pytest.mark.skipif(
    GPU.kind != "cuda" or GPU.compute_capability < probes.TENSOR_CAPABILITY,
    reason="no tensor cores for fp64 and TF32",
)
def test_products_on_tensor_cores(real):
    rounds, tiles, pair = 3, 4, 8 // np.dtype(real).itemsize
    a = np.random.default_rng(1).standard_normal(64 * pair).astype(real)
    b = np.random.default_rng(2).standard_normal(32 * tiles * pair).astype(real)
    out = GPU.empty(128, real)
    probes.tensor_products(real, tiles)[2, 64](GPU.array(a), GPU.array(b), rounds, out)
    # Entries by lane 4 g + t: rows g and g + 8, depths t and t + 4; see tensor.cu.
    rows = a.astype(float).reshape(8, 4, 2, pair).transpose(2, 0, 3, 1).reshape(16, 4 * pair)
    columns = b.astype(float).reshape(8, 4, tiles, pair).transpose(2, 3, 1, 0)
    product = (rows @ columns.reshape(tiles, 4 * pair, 8)).sum(axis=0)
    mine = product.reshape(2, 8, 4, 2).sum(axis=(0, 3)).ravel()
    want = probes.LINKS * rounds * np.tile(mine, 4)
    tolerance = 2e-5 if real == np.float32 else 1e-13
    assert np.abs(GPU.to_numpy(out) - want).max() < tolerance * np.abs(want).max()


@pytest.mark.skipif(
    GPU.kind != "cuda" or GPU.compute_capability < probes.TENSOR_CAPABILITY,
    reason="no tensor cores for fp64 and TF32",
)
def test_tensor_cores_multiply_faster():
    assert probes.tensor_rate(GPU, "float64").TFLOPs > 1.2 * probes.fma_rate(GPU, "float64").TFLOPs
    assert probes.tensor_rate(GPU, "float32").TFLOPs > 10


def test_independent_chains_hide_latency():
    one, four, eight = (
        probes.fma_rate(GPU, "float32", n, threads=128, blocks_per_multiprocessor=1)
        for n in (1, 4, 8)
    )
    assert four.TFLOPs > 1.5 * one.TFLOPs
    assert eight.TFLOPs > 0.9 * four.TFLOPs
    many = probes.fma_rate(GPU, "float32", 1)
    assert many.TFLOPs > 1.5 * one.TFLOPs, "and so do many warps"


def test_a_quotient_takes_longer_than_a_product():
    times = {
        (operation, chains): probes.chain_latency(GPU, "float64", operation, chains).seconds
        for operation in ("multiply", "divide", "branching divide")
        for chains in (1, 8)
    }
    assert times["divide", 1] > 3 * times["multiply", 1]
    assert times["multiply", 8] < 0.7 * times["multiply", 1]
    assert times["divide", 8] < 0.7 * times["divide", 1], "those without a branch overlap"
    assert times["divide", 1] < times["branching divide", 1]
    cycle = probes.clock_cycle(GPU).seconds_per_operation
    assert 0.2e-9 < cycle < 2e-9
    latency = times["multiply", 1] / (probes.OPERATIONS_A_ROUND * probes.CHAIN_ROUNDS)
    assert 3 < latency / cycle < 100


def test_divergent_branches_take_turns():
    apart, together = (probes.divergence(GPU, 8, unit) for unit in (1, 32))
    assert (apart.slowdown, together.slowdown) == (8, 1)
    assert 4 < apart.seconds / together.seconds < 16


def test_few_threads_cannot_hide_memorys_latency():
    full, few = (probes.occupancy(GPU, size) for size in (0, 48 * 1024))
    assert full.resident_threads > 4 * few.resident_threads
    assert full.TBps > 1.3 * few.TBps


def test_one_address_is_a_queue():
    one, warp, shuffled = (
        probes.atomics(GPU, kind) for kind in ("one address", "warp address", "shuffled")
    )
    assert shuffled.seconds < one.seconds / 3
    assert warp.seconds < one.seconds


# ------------------------------------------------------------------------------------------ tuning


def test_tuning_a_copy(tmp_path):
    n = 2**24
    x, y = GPU.array(normal(n, np.float32)), GPU.empty(n, np.float32)
    plans = [{"threads": t} for t in (32, 128, 256, 1024, 2048)]

    def run(plan):
        return lambda: probes.copy[n // plan["threads"], plan["threads"]](x, y)

    result = tune("test/copy", plans, run, GPU, folder=tmp_path, progress=False)
    illegal = result.trials[-1]
    assert illegal.failure, "2,048 threads are more than any device has in a block"
    assert not illegal.fatal
    assert result.plan["threads"] in (32, 128, 256, 1024)
    assert ranked("test/copy", GPU, folder=tmp_path)[0] == result.plan
    again = tune("test/copy", plans[:-1], run, GPU, folder=tmp_path, progress=False)
    assert again.measured == 0
    assert again.plan == result.plan


def test_a_sum_of_squares_is_accumulated_in_fp64(dtype):
    """In fp32 the sum of 2^24 ones and more would stay where it is."""
    ones = GPU.array(np.ones((2, 2**24), dtype))
    assert GPU.sum_of_squares(ones) == 2**25
    for bad in (np.nan, np.inf):
        ones[1, 5] = bad
        assert not np.isfinite(GPU.sum_of_squares(ones))
