"""The simulator runs what a device runs and refuses what a device refuses or gets wrong."""

import inspect
import math
import time

import numba
import numpy as np
import pytest

from dgbook.check import BarrierError, RaceError, SimulatorError, UndefinedReadError, simulator
from dgbook.gpu import cuda, device, jit

f4, f8, i4, u1 = np.float32, np.float64, np.int32, np.uint8


def refused(error, kernel, launch, *words):
    """Launch, expect `error`; its message names the kernel, the line marked `# <-`, and `words`."""
    with pytest.raises(error) as caught:
        launch()
    message = str(caught.value)
    assert f"kernel {kernel.name}" in message
    lines, first = inspect.getsourcelines(kernel.py_func)
    marked = [first + i for i, line in enumerate(lines) if "# <-" in line]
    assert not marked or any(f"line {n})" in message for n in marked), message
    for word in words:
        assert word in message, message
    return message


# -- where a thread is ---------------------------------------------------------------------


def test_one_dimension():
    @jit
    def where(out):
        i = cuda.grid(1)
        out[i, 0] = cuda.threadIdx.x
        out[i, 1] = cuda.blockIdx.x
        out[i, 2] = cuda.blockDim.x
        out[i, 3] = cuda.gridDim.x
        out[i, 4] = cuda.gridsize(1)

    out = np.zeros((12, 5), i4)
    where[3, 4](out)
    i = np.arange(12)
    expected = np.stack([i % 4, i // 4, 0 * i + 4, 0 * i + 3, 0 * i + 12], axis=1)
    np.testing.assert_array_equal(out, expected)


def test_two_dimensions():
    @jit
    def where(out):
        x, y = cuda.grid(2)
        nx, ny = cuda.gridsize(2)
        out[x, y] = x * ny + y + 1000 * nx

    out = np.zeros((6, 4), i4)
    where[(2, 2), (3, 2)](out)
    np.testing.assert_array_equal(out, np.arange(24).reshape(6, 4) + 6000)


def test_three_dimensions_and_linear_order_within_a_warp():
    @jit
    def where(out, lanes):
        x, y, z = cuda.grid(3)
        out[x, y, z] += 1
        lanes[x, y, z] = cuda.laneid

    out, lanes = np.zeros((4, 3, 2), i4), np.zeros((4, 3, 2), i4)
    where[(1, 1, 1), (4, 3, 2)](out, lanes)
    assert (out == 1).all()
    x, y, z = np.indices((4, 3, 2))
    np.testing.assert_array_equal(lanes, x + 4 * (y + 3 * z))


def test_every_thread_of_a_large_grid_runs_once():
    @jit
    def count(out):
        x, y, z = cuda.grid(3)
        out[z, y, x] += 1

    out = np.zeros((4, 6, 16), i4)
    count[(4, 3, 2), (4, 2, 2)](out)
    assert (out == 1).all()


# -- shared memory and the barrier of a block ---------------------------------------------


def test_reduction_in_shared_memory():
    @jit
    def total(x, out):
        s = cuda.shared.array(64, f8)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        half = 32
        while half > 0:
            if t < half:
                s[t] += s[t + half]
            cuda.syncthreads()
            half //= 2
        if t == 0:
            out[cuda.blockIdx.x] = s[0]

    x, out = np.random.default_rng(1).random(256), np.zeros(4)
    total[4, 64](x, out)
    np.testing.assert_allclose(out, x.reshape(4, 64).sum(axis=1), rtol=1e-14)


def test_transpose_through_two_dimensional_shared_memory():
    @jit
    def transpose(x, out):
        s = cuda.shared.array((8, 9), f4)
        i, j = cuda.threadIdx.x, cuda.threadIdx.y
        s[j, i] = x[j, i]
        cuda.syncthreads()
        out[i, j] = s[j, i]

    x = np.random.default_rng(2).random((8, 8), f4)
    out = np.zeros_like(x)
    transpose[1, (8, 8)](x, out)
    np.testing.assert_array_equal(out, x.T)


def test_a_full_block():
    @jit
    def reverse(out):
        s = cuda.shared.array(1024, i4)
        t = cuda.threadIdx.x
        s[t] = t
        cuda.syncthreads()
        out[cuda.grid(1)] = s[1023 - t]

    out = np.zeros(2048, i4)
    reverse[2, 1024](out)
    np.testing.assert_array_equal(out, np.tile(np.arange(1024)[::-1], 2))


def test_shared_memory_starts_undefined_in_each_block():
    @jit
    def leak(out):
        s = cuda.shared.array(1, f8)
        if cuda.blockIdx.x == 0:
            s[0] = 1.0
        out[cuda.blockIdx.x] = s[0]  # <-

    refused(UndefinedReadError, leak, lambda: leak[2, 1](np.zeros(2)), "block (1, 0, 0)")


def test_undefined_shared_element():
    @jit
    def hole(out):
        s = cuda.shared.array((2, 3), f8)
        t = cuda.threadIdx.x
        s[0, t] = 1.0
        cuda.syncthreads()
        out[t] = s[1, t]  # <-

    refused(UndefinedReadError, hole, lambda: hole[1, 3](np.zeros(3)), "[1, 0]")


def test_atomic_on_undefined_shared_memory():
    @jit
    def count(out):
        s = cuda.shared.array(1, i4)
        cuda.atomic.add(s, 0, 1)  # <-
        cuda.syncthreads()
        out[0] = s[0]

    refused(UndefinedReadError, count, lambda: count[1, 1](np.zeros(1, i4)), "atomically")


def test_two_shared_arrays_on_one_line_are_two():
    @jit
    def pair(out):
        a, b = cuda.shared.array(1, f8), cuda.shared.array(1, f8)
        a[0] = 1.0
        b[0] = 2.0
        out[0] = a[0]

    out = np.zeros(1)
    pair[1, 1](out)
    assert out[0] == 1


def test_device_functions_of_one_factory_have_their_own_shared_arrays():
    def make(n, value):
        @jit(device=True)
        def fill():
            s = cuda.shared.array(n, f8)
            for i in range(n):
                s[i] = value
            return s

        return fill

    two, three = make(2, 2.0), make(3, 3.0)

    @jit
    def both(out):
        a = two()
        b = three()
        out[0] = a[0]
        out[1] = b[2]
        out[2] = len(a)

    out = np.zeros(3)
    both[1, 1](out)
    assert out.tolist() == [2, 3, 2]


def test_static_shared_memory_ends_at_48_kib():
    def make(n):
        @jit
        def fill():
            cuda.shared.array(8, f8)
            s = cuda.shared.array(n, f8)  # <-
            s[0] = 1.0

        return fill

    make(6144 - 8)[1, 1]()
    over = make(6144 - 7)
    refused(SimulatorError, over, over[1, 1], "49160", "49152")


def test_dynamic_shared_memory():
    @jit
    def reverse(out):
        s = cuda.shared.array(0, f8)
        t = cuda.threadIdx.x
        s[t] = t
        cuda.syncthreads()
        out[t] = s[len(s) - 1 - t]

    out = np.zeros(32)
    reverse[1, 32, 32 * 8](out)
    np.testing.assert_array_equal(out, np.arange(32)[::-1])


def test_dynamic_shared_memory_has_the_size_that_was_asked_for():
    @jit
    def over(out):
        s = cuda.shared.array(0, f8)
        s[cuda.threadIdx.x] = 1.0  # <-

    refused(IndexError, over, lambda: over[1, 5, 4 * 8](np.zeros(1)), "dynamic", "[4]")


def test_dynamic_shared_memory_limit_counts_static_too():
    @jit
    def much():
        s = cuda.shared.array(16, f8)  # <-
        s[0] = 1.0

    much[1, 1, 227 * 1024 - 128]()
    refused(SimulatorError, much, lambda: much[1, 1, 227 * 1024 - 127](), "232449", "232448")


def test_dynamic_shared_memory_limit():
    @jit
    def nothing():
        pass

    nothing[1, 1, 227 * 1024]()
    for too_many in (227 * 1024 + 1, -1):
        refused(SimulatorError, nothing, lambda n=too_many: nothing[1, 1, n](), str(too_many))


def test_dynamic_shared_memory_seen_as_two_types():
    @jit
    def cut(out, words):
        a = cuda.shared.array(0, f8)[:4]
        b = cuda.shared.array(0, i4)[8:]
        t = cuda.threadIdx.x
        a[t] = t + 0.5
        b[t] = 10 * t
        cuda.syncthreads()
        out[t] = a[3 - t]
        words[t] = b[3 - t]

    out, words = np.zeros(4), np.zeros(4, i4)
    cut[1, 4, 48](out, words)
    assert out.tolist() == [3.5, 2.5, 1.5, 0.5]
    assert words.tolist() == [30, 20, 10, 0]


def test_dynamic_shared_memory_holds_the_same_bytes_for_all_types():
    @jit
    def bits(x, out):
        wide = cuda.shared.array(0, f8)
        narrow = cuda.shared.array(0, i4)
        bytewise = cuda.shared.array(0, u1)
        wide[0] = x
        out[0] = narrow[0]
        out[1] = narrow[1]
        out[2] = bytewise[7]

    out = np.zeros(3, np.int64)
    bits[1, 1, 8](math.pi, out)
    words = np.array([math.pi]).view(i4)
    assert out.tolist() == [*words, np.array([math.pi]).view(u1)[7]]


def test_a_narrower_type_comes_late_to_dynamic_shared_memory():
    @jit
    def late(out):
        wide = cuda.shared.array(0, f8)
        t = cuda.threadIdx.x
        if t == 0:
            wide[0] = 1.0
        cuda.syncthreads()
        out[t] = wide[0]
        cuda.syncthreads()
        narrow = cuda.shared.array(0, i4)
        if t == 2:
            out[t] = narrow[1]
        if t == 3:
            narrow[0] = 5  # another word than the one that thread 2 reads

    out = np.zeros(4)
    late[1, 4, 8](out)
    assert out.tolist() == [1, 1, np.array([1.0]).view(i4)[1], 1]


def test_race_between_two_types_in_dynamic_shared_memory():
    @jit
    def overlap(out):
        wide = cuda.shared.array(0, f8)
        narrow = cuda.shared.array(0, f4)
        if cuda.threadIdx.x == 0:
            wide[1] = 1.0
        else:
            narrow[3] = 1.0  # <-

    refused(RaceError, overlap, lambda: overlap[1, 2, 16](np.zeros(1)), "[3]")


def test_undefined_half_of_a_wide_element_in_dynamic_shared_memory():
    @jit
    def half(out):
        wide = cuda.shared.array(0, f8)
        narrow = cuda.shared.array(0, f4)
        narrow[0] = 1.0
        out[0] = wide[0]  # <-

    refused(UndefinedReadError, half, lambda: half[1, 1, 8](np.zeros(1)))


# -- barriers that do not meet -------------------------------------------------------------


def test_early_return_before_a_barrier():
    @jit
    def leave(out):
        if cuda.threadIdx.x > 3:
            return
        cuda.syncthreads()  # <-
        out[cuda.threadIdx.x] = 1

    refused(BarrierError, leave, lambda: leave[1, 8](np.zeros(8)), "4 of 8 threads", "returned")


def test_threads_at_different_barriers():
    @jit
    def parted(out):
        if cuda.threadIdx.x % 2:
            cuda.syncthreads()  # <-
        else:
            cuda.syncthreads()  # <-

    refused(BarrierError, parted, lambda: parted[1, 8](np.zeros(8)), "divergent")


def test_barrier_reached_by_some():
    @jit
    def some(out):
        if cuda.threadIdx.x < 4:
            cuda.syncthreads()  # <-
        out[cuda.threadIdx.x] = 1
        cuda.syncthreads()

    refused(BarrierError, some, lambda: some[1, 8](np.zeros(8)), "divergent")


def test_one_barrier_in_a_device_function_called_from_two_places():
    @jit(device=True)
    def meet():
        cuda.syncthreads()

    @jit
    def parted(out):
        if cuda.threadIdx.x < 4:
            meet()
        else:
            meet()

    refused(BarrierError, parted, lambda: parted[1, 8](np.zeros(8)), "divergent", "(meet, line")


def test_loops_of_different_length_around_a_barrier():
    @jit
    def turns(out):
        for _ in range(1 + cuda.threadIdx.x % 2):
            cuda.syncthreads()  # <-

    refused(BarrierError, turns, lambda: turns[1, 4](np.zeros(1)), "returned")


def test_barrier_in_a_branch_that_the_whole_block_takes():
    @jit
    def blockwise(out):
        if cuda.blockIdx.x == 1:
            cuda.syncthreads()
        out[cuda.grid(1)] = 1

    out = np.zeros(8)
    blockwise[2, 4](out)
    assert out.all()


def test_votes_of_a_block():
    @jit
    def vote(out):
        t = cuda.threadIdx.x
        out[0, t] = cuda.syncthreads_count(t < 5)
        out[1, t] = cuda.syncthreads_and(t < 40)
        out[2, t] = cuda.syncthreads_and(t < 39)
        out[3, t] = cuda.syncthreads_or(t == 17)
        out[4, t] = cuda.syncthreads_or(t > 40)

    out = np.full((5, 40), -1, i4)
    vote[1, 40](out)
    np.testing.assert_array_equal(out, np.array([5, 1, 0, 1, 0])[:, None] * np.ones(40))


def test_a_vote_is_a_barrier():
    @jit
    def shift(out):
        s = cuda.shared.array(40, i4)
        t = cuda.threadIdx.x
        s[t] = t
        cuda.syncthreads_count(True)
        out[t] = s[39 - t]

    out = np.zeros(40, i4)
    shift[1, 40](out)
    np.testing.assert_array_equal(out, np.arange(40)[::-1])


# -- warps ---------------------------------------------------------------------------------


def test_shuffles():
    @jit
    def shuffle(out):
        t = cuda.threadIdx.x
        out[0, t] = cuda.shfl_sync(0xFFFFFFFF, t, 3)
        out[1, t] = cuda.shfl_up_sync(0xFFFFFFFF, t, 2)
        out[2, t] = cuda.shfl_down_sync(0xFFFFFFFF, t, 5)
        out[3, t] = cuda.shfl_xor_sync(0xFFFFFFFF, t, 9)

    out = np.zeros((4, 64), i4)
    shuffle[1, 64](out)
    t = np.arange(64)
    lane, first = t % 32, t // 32 * 32
    np.testing.assert_array_equal(out[0], first + 3)
    np.testing.assert_array_equal(out[1], np.where(lane >= 2, t - 2, t))
    np.testing.assert_array_equal(out[2], np.where(lane + 5 < 32, t + 5, t))
    np.testing.assert_array_equal(out[3], first + (lane ^ 9))


def test_a_shuffle_from_beyond_the_warp_wraps():
    @jit
    def shuffle(out):
        out[cuda.threadIdx.x] = cuda.shfl_sync(0xFFFFFFFF, cuda.threadIdx.x, 32 + 3)

    out = np.zeros(32, i4)
    shuffle[1, 32](out)
    assert (out == 3).all()


def test_warp_reduction_in_float32():
    @jit
    def total(x, out):
        value = x[cuda.threadIdx.x]
        offset = 16
        while offset > 0:
            value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
            offset //= 2
        if cuda.laneid == 0:
            out[0] = value

    x = np.random.default_rng(3).random(32, f4)
    out = np.zeros(1, f4)
    total[1, 32](x, out)
    tree = x.copy()
    while len(tree) > 1:
        tree = tree[: len(tree) // 2] + tree[len(tree) // 2 :]
    assert out[0] == tree[0]


def test_votes_of_a_warp():
    @jit
    def vote(out):
        t = cuda.threadIdx.x
        out[0, t] = cuda.ballot_sync(0xFFFFFFFF, t % 32 < 4)
        out[1, t] = cuda.all_sync(0xFFFFFFFF, t < 32)
        out[2, t] = cuda.any_sync(0xFFFFFFFF, t == 40)
        out[3, t] = cuda.eq_sync(0xFFFFFFFF, t < 40)
        out[4, t] = cuda.match_any_sync(0xFFFFFFFF, t % 2)
        out[5, t] = cuda.popc(cuda.lanemask_lt())

    out = np.zeros((6, 64), np.int64)
    vote[1, 64](out)
    halves = np.repeat([[1, 0], [0, 1], [1, 0]], 32, axis=1)
    assert (out[0] == 0b1111).all()
    np.testing.assert_array_equal(out[1:4], halves)
    np.testing.assert_array_equal(out[4], np.where(np.arange(64) % 2, 0xAAAAAAAA, 0x55555555))
    np.testing.assert_array_equal(out[5], np.arange(64) % 32)


def test_two_halves_of_a_warp_meet_apart():
    @jit
    def halves(out):
        t = cuda.threadIdx.x
        if t < 16:
            out[t] = cuda.shfl_sync(0xFFFF, t, 0)
        else:
            out[t] = cuda.shfl_sync(0xFFFF0000, t, 16)

    out = np.zeros(32, i4)
    halves[1, 32](out)
    np.testing.assert_array_equal(out, np.repeat([0, 16], 16))


def test_a_mask_must_name_its_own_lane():
    @jit
    def other(out):
        cuda.syncwarp(0xFFFE)  # <-

    refused(BarrierError, other, lambda: other[1, 32](np.zeros(1)), "0x0000fffe", "own lane")


def test_a_mask_that_names_a_lane_elsewhere():
    @jit
    def parted(out):
        if cuda.threadIdx.x < 16:
            cuda.syncwarp()  # <-
        cuda.syncthreads()

    refused(BarrierError, parted, lambda: parted[1, 32](np.zeros(1)), "names lane 16")


def test_different_warp_operations_do_not_meet():
    @jit
    def mixed(out):
        if cuda.threadIdx.x < 16:
            cuda.any_sync(0xFFFFFFFF, True)  # <-
        else:
            cuda.all_sync(0xFFFFFFFF, True)

    refused(BarrierError, mixed, lambda: mixed[1, 32](np.zeros(1)), "any_sync", "all_sync")


def test_lanes_that_have_returned_take_no_part():
    @jit
    def vote(out):
        t = cuda.threadIdx.x
        if t >= 24:
            return
        cuda.syncwarp()
        out[t] = cuda.ballot_sync(0xFFFFFFFF, True)

    out = np.zeros(24, np.int64)
    vote[1, 32](out)
    assert (out == (1 << 24) - 1).all()


def test_shuffle_from_a_lane_that_has_returned():
    @jit
    def shuffle(out):
        if cuda.threadIdx.x >= 24:
            return
        out[cuda.threadIdx.x] = cuda.shfl_down_sync(0xFFFFFFFF, 1.0, 8)  # <-

    refused(SimulatorError, shuffle, lambda: shuffle[1, 32](np.zeros(32)), "lane 24")


def test_last_warp_of_a_block_may_be_short():
    @jit
    def vote(out):
        out[cuda.threadIdx.x] = cuda.ballot_sync(0xFFFFFFFF, True)

    out = np.zeros(40, np.int64)
    vote[1, 40](out)
    np.testing.assert_array_equal(out, np.repeat([2**32 - 1, 2**8 - 1], [32, 8]))


# -- barriers of the grid ------------------------------------------------------------------


def test_grid_barrier_orders_blocks():
    @jit
    def shift(a, b):
        grid = cuda.cg.this_grid()
        i = cuda.grid(1)
        for turn in range(3):
            a[i] = i + turn
            grid.sync()
            b[i] = a[(i + 40) % 128]
            grid.sync()

    a, b = np.zeros(128), np.zeros(128)
    shift[4, 32](a, b)
    np.testing.assert_array_equal(b, (np.arange(128) + 40) % 128 + 2)


def test_grid_barrier_needs_all_blocks():
    @jit
    def some(a):
        grid = cuda.cg.this_grid()
        if cuda.blockIdx.x < 2:
            grid.sync()  # <-
        a[cuda.blockIdx.x] = 1

    refused(BarrierError, some, lambda: some[4, 1](np.zeros(4)), "2 of 4 blocks")


@pytest.mark.parametrize("reader", [0, 1])
def test_grid_barrier_orders_nothing_that_comes_after_it(reader):
    @jit
    def late(a, out):
        grid = cuda.cg.this_grid()
        grid.sync()
        if cuda.blockIdx.x == reader:
            out[0] = a[0]  # <-
        else:
            a[0] = 1.0  # <-

    refused(RaceError, late, lambda: late[2, 1](np.zeros(1), np.zeros(1)), "a[0]")


# -- races ---------------------------------------------------------------------------------


def race(kernel, threads, *words, blocks=1):
    return refused(RaceError, kernel, lambda: kernel[blocks, threads](np.zeros(256)), *words)


def test_read_after_write():
    @jit
    def raw(out):
        s = cuda.shared.array(64, f8)
        t = cuda.threadIdx.x
        s[t] = t
        out[t] = s[max(t - 1, 0)]  # <-

    race(raw, 64, "reads", "wrote", "thread (1, 0, 0)", "thread (0, 0, 0)", "[0]")


def test_read_before_write():
    @jit
    def rbw(out):
        s = cuda.shared.array(64, f8)
        t = cuda.threadIdx.x
        s[t] = t
        out[t] = s[63 - t]  # <-

    refused(UndefinedReadError, rbw, lambda: rbw[1, 64](np.zeros(64)), "barrier", "[63]")


def test_write_after_read():
    @jit
    def war(out):
        s = cuda.shared.array(64, f8)
        t = cuda.threadIdx.x
        s[t] = t
        cuda.syncthreads()
        out[t] = s[(t + 1) % 64]
        s[t] = 0.0  # <-

    race(war, 64, "writes", "read")


def test_write_after_write():
    @jit
    def waw(out):
        out[cuda.threadIdx.x // 2] = cuda.threadIdx.x  # <-

    race(waw, 64, "out[0]", "writes", "wrote")


def test_blocks_are_not_ordered():
    @jit
    def across(out):
        if cuda.blockIdx.x == 1:
            out[0] += 1.0  # <-
        else:
            out[0] = 1.0
        cuda.syncthreads()

    race(across, 1, "block (1, 0, 0)", "block (0, 0, 0)", blocks=2)


def test_a_barrier_of_the_block_does_not_order_blocks():
    @jit
    def across(out):
        out[cuda.blockIdx.x * 2 + cuda.threadIdx.x] = 1.0
        cuda.syncthreads()
        out[100 + 2 * cuda.blockIdx.x + cuda.threadIdx.x] = out[0]  # <-

    race(across, 2, "out[0]", blocks=2)


@pytest.mark.parametrize("writer", [0, 31, 32, 63])
def test_every_reader_counts_for_a_write_after_read(writer):
    """Readers of the writer's own warp, which syncwarp orders, do not hide those of the other."""

    @jit
    def war(out):
        s = cuda.shared.array(1, f8)
        if cuda.threadIdx.x == writer:
            s[0] = 1.0
        cuda.syncthreads()
        out[cuda.threadIdx.x] = s[0]
        cuda.syncwarp()
        if cuda.threadIdx.x == writer:
            s[0] = 2.0  # <-

    race(war, 64, "writes", "read")


@pytest.mark.parametrize("writer", [0, 15, 16, 31])
def test_every_lane_counts_for_a_write_after_read(writer):
    @jit
    def war(out):
        s = cuda.shared.array(1, f8)
        t = cuda.threadIdx.x
        if t == writer:
            s[0] = 1.0
        cuda.syncwarp()
        out[t] = s[0]
        cuda.syncwarp(0xFFFF if t < 16 else 0xFFFF0000)
        if t == writer:
            s[0] = 2.0  # <-

    race(war, 32, "writes", "read")


def test_readers_of_earlier_blocks_count():
    @jit
    def war(x):
        if cuda.blockIdx.x == 3:
            x[1] = x[0]
            x[0] = 2.0  # <-
        else:
            x[10 + cuda.blockIdx.x] = x[0]

    race(war, 1, "block (3, 0, 0)", "block (2, 0, 0)", blocks=4)


def test_a_warp_needs_syncwarp():
    @jit
    def lockstep(out):
        s = cuda.shared.array(32, f8)
        t = cuda.threadIdx.x
        s[t] = t
        out[t] = s[t & 30]  # <-

    race(lockstep, 32)


def test_syncwarp_orders_a_warp():
    @jit
    def exchange(out):
        s = cuda.shared.array(64, f8)
        t = cuda.threadIdx.x
        s[t] = t
        cuda.syncwarp()
        out[t] = s[t ^ 31]

    out = np.zeros(64)
    exchange[1, 64](out)
    np.testing.assert_array_equal(out, np.arange(64) ^ 31)


def test_syncwarp_does_not_order_warps():
    @jit
    def exchange(out):
        s = cuda.shared.array(64, f8)
        t = cuda.threadIdx.x
        s[t] = t
        cuda.syncwarp()
        out[t] = s[t % 32]  # <-

    race(exchange, 64, "thread (32, 0, 0)", "thread (0, 0, 0)")


def test_a_shuffle_is_no_memory_barrier():
    @jit
    def exchange(out):
        s = cuda.shared.array(32, f8)
        t = cuda.threadIdx.x
        s[t] = t
        cuda.shfl_sync(0xFFFFFFFF, t, 0)
        out[t] = s[31 - t]  # <-

    race(exchange, 32)


def test_what_a_lane_has_learned_it_passes_on():
    @jit
    def relay(out):
        s = cuda.shared.array(1, f8)
        t = cuda.threadIdx.x
        if t == 0:
            s[0] = 7.0
        if t < 2:
            cuda.syncwarp(0b011)
        if t > 0:
            cuda.syncwarp(0b110)
        out[t] = s[0]

    out = np.zeros(3)
    relay[1, 3](out)
    assert (out == 7).all()


def test_what_a_lane_does_later_its_partner_does_not_pass_on():
    @jit
    def relay(out):
        s = cuda.shared.array(1, f8)
        t = cuda.threadIdx.x
        if t < 2:
            cuda.syncwarp(0b011)
        if t == 0:
            s[0] = 7.0
        if t > 0:
            cuda.syncwarp(0b110)
            out[t] = s[0]  # <-

    race(relay, 3)


def test_atomics_may_meet():
    @jit
    def count(x, total, highest):
        i = cuda.grid(1)
        cuda.atomic.add(total, 0, x[i])
        cuda.atomic.max(highest, (0, 1), i)

    x = np.random.default_rng(4).random(128)
    total, highest = np.zeros(1), np.zeros((1, 2), i4)
    count[4, 32](x, total, highest)
    np.testing.assert_allclose(total[0], x.sum(), rtol=1e-14)
    assert highest.tolist() == [[0, 127]]


def test_atomics_return_the_old_value():
    @jit
    def all_kinds(x, old):
        old[0] = cuda.atomic.add(x, 0, 5)
        old[1] = cuda.atomic.sub(x, 0, 2)
        old[2] = cuda.atomic.max(x, 0, 20)
        old[3] = cuda.atomic.min(x, 0, 12)
        old[4] = cuda.atomic.and_(x, 0, 6)
        old[5] = cuda.atomic.or_(x, 0, 3)
        old[6] = cuda.atomic.xor(x, 0, 5)
        old[7] = cuda.atomic.exch(x, 0, 9)
        old[8] = cuda.atomic.cas(x, 0, 8, 1)
        old[9] = cuda.atomic.cas(x, 0, 9, 1)

    x, old = np.array([10], i4), np.zeros(10, i4)
    all_kinds[1, 1](x, old)
    assert old.tolist() == [10, 15, 13, 20, 12, 4, 7, 2, 9, 9]
    assert x[0] == 1


def test_an_exchange_needs_no_value_before():
    """It writes whatever was there, so that shared memory may begin with it, but with no other."""

    @jit
    def begin(out):
        s = cuda.shared.array(1, i4)
        cuda.atomic.exch(s, 0, 7)
        out[0] = s[0]

    @jit
    def add(out):
        s = cuda.shared.array(1, i4)
        cuda.atomic.add(s, 0, 7)  # <-

    out = np.zeros(1, i4)
    begin[1, 1](out)
    assert out[0] == 7
    refused(UndefinedReadError, add, lambda: add[1, 1](out), "[0]")


@pytest.mark.parametrize("reader", [0, 7])
def test_a_plain_read_of_what_others_change_atomically(reader):
    @jit
    def total(out):
        s = cuda.shared.array(1, f8)
        if cuda.threadIdx.x == 0:
            s[0] = 0.0
        cuda.syncthreads()
        cuda.atomic.add(s, 0, 1.0)  # <-
        if cuda.threadIdx.x == reader:
            out[0] = s[0]  # <-

    race(total, 8, "atomically")


def test_a_plain_write_and_an_atomic():
    @jit
    def reset(out):
        if cuda.threadIdx.x == 0:
            out[0] = 0.0
        cuda.atomic.add(out, 0, 1.0)  # <-

    race(reset, 8, "changes atomically", "wrote")


def test_an_atomic_and_a_later_plain_write():
    @jit
    def reset(out):
        if cuda.threadIdx.x == 0:
            cuda.atomic.add(out, 0, 1.0)
        else:
            out[0] = 0.0  # <-

    race(reset, 8, "writes", "changed atomically")


def test_atomics_then_a_barrier_then_a_read():
    @jit
    def total(out):
        s = cuda.shared.array(1, i4)
        t = cuda.threadIdx.x
        if t == 0:
            s[0] = 0
        cuda.syncthreads()
        cuda.atomic.add(s, 0, 1)
        cuda.syncthreads()
        out[t] = s[0]

    out = np.zeros(40)
    total[1, 40](out)
    assert (out == 40).all()


def test_one_array_given_twice():
    @jit
    def shift(x, y):
        i = cuda.threadIdx.x
        y[i] = x[(i + 1) % 8]  # <-

    shift[1, 8](np.zeros(8), np.zeros(8))
    x = np.zeros(8)
    refused(RaceError, shift, lambda: shift[1, 8](x, x), "y[")


def test_one_array_given_twice_as_two_types():
    @jit
    def clear(x, words):
        i = cuda.threadIdx.x
        x[i] = 0.0
        words[2 * (i // 2) + 1] = 0  # <-

    x = np.zeros(8)
    clear[1, 1](x, x.view(i4))
    refused(RaceError, clear, lambda: clear[1, 2](x, x.view(i4)), "words[1]")


def test_a_part_is_compared_with_all_that_overlaps_it():
    """Behind the small part the whole array still goes on."""

    @jit
    def write(whole, small, last):
        if cuda.threadIdx.x == 0:
            whole[12] = 1.0
        elif cuda.threadIdx.x == 1:
            last[2] = 1.0  # <-

    x = np.zeros(16)
    refused(RaceError, write, lambda: write[1, 2](x, x[1:3], x[10:]), "last[2]")


def test_parts_of_one_array_are_apart():
    @jit
    def move(x, y):
        y[cuda.threadIdx.x] = x[7 - cuda.threadIdx.x]

    x = np.arange(16.0)
    move[1, 8](x[:8], x[8:])
    np.testing.assert_array_equal(x[8:], np.arange(8)[::-1])


def test_launches_are_ordered():
    @jit
    def shift(x, y):
        i = cuda.grid(1)
        y[i] = x[(i + 1) % 8]

    x, y = np.arange(8.0), np.zeros(8)
    shift[2, 4](x, y)
    shift[2, 4](y, x)
    np.testing.assert_array_equal(x, (np.arange(8) + 2) % 8)


# -- indices -------------------------------------------------------------------------------


def out_of_range(kernel, *words):
    refused(IndexError, kernel, lambda: kernel[1, 8](np.zeros((8, 4)), np.zeros(8)), *words)


def test_index_past_the_end():
    @jit
    def past(x, y):
        y[cuda.threadIdx.x + 1] = 1.0  # <-

    out_of_range(past, "y[8]", "(8,)", "thread (7, 0, 0)")


def test_negative_index():
    @jit
    def before(x, y):
        y[cuda.threadIdx.x] = x[cuda.threadIdx.x - 1, 0]  # <-

    out_of_range(before, "x[-1, 0]", "(8, 4)")


def test_index_past_one_dimension_but_within_the_array():
    @jit
    def row(x, y):
        y[cuda.threadIdx.x] = x[0, cuda.threadIdx.x]  # <-

    out_of_range(row, "x[0, 4]")


def test_negative_index_in_a_view():
    @jit
    def view(x, y):
        row = x[3]
        y[cuda.threadIdx.x] = row[cuda.threadIdx.x - 2]  # <-

    out_of_range(view, "[-2]", "(4,)")


def test_too_many_indices():
    @jit
    def many(x, y):
        y[0, 0] = 1.0  # <-

    out_of_range(many, "y[0, 0]", "1 dimensions")


@pytest.mark.parametrize("index", [-1, 4])
def test_local_and_constant_arrays_have_bounds(index):
    table = np.arange(4.0)

    @jit
    def local(x, y):
        a = cuda.local.array(4, f8)
        a[index] = 1.0  # <-

    @jit
    def constant(x, y):
        y[0] = table[index]  # <-

    out_of_range(local, "local array", f"[{index}]")
    out_of_range(constant, f"table[{index}]")


def test_index_that_is_no_integer():
    @jit
    def real(x, y):
        y[cuda.threadIdx.x / 2] = 1.0  # <-

    refused(SimulatorError, real, lambda: real[1, 8](np.zeros(1), np.zeros(8)), "not an integer")


def test_slices_and_rows():
    @jit
    def rows(x, y):
        t = cuda.threadIdx.x
        part = x[1:7:2]
        row = part[t]
        tail = row[1:]
        for i in range(len(tail)):
            y[t, i] = tail[i]
        y[t, 2] = part.shape[0] * 100 + part.ndim * 10 + tail.size

    x, y = np.random.default_rng(5).random((8, 3)), np.zeros((3, 3))
    rows[1, 3](x, y)
    np.testing.assert_array_equal(y[:, :2], x[1:7:2, 1:])
    assert (y[:, 2] == 322).all()


def test_a_view_writes_through_and_races():
    @jit
    def column(x):
        x[:, 1][cuda.threadIdx.x // 2] = 1.0  # <-

    x = np.zeros((4, 2))
    column[1, 1](x)
    assert x[0, 1] == 1
    refused(RaceError, column, lambda: column[1, 2](x))


def test_four_dimensions():
    @jit
    def copy(x, y):
        i, j = cuda.threadIdx.x, cuda.threadIdx.y
        for k in range(2):
            for m in range(3):
                y[m, k, j, i] = x[i, j, k, m]

    x, y = np.random.default_rng(6).random((5, 4, 2, 3)), np.zeros((3, 2, 4, 5))
    copy[1, (5, 4)](x, y)
    np.testing.assert_array_equal(y, x.T)


def test_slice_assignment():
    @jit
    def clear(x):
        x[1:3] = 0.0  # <-

    refused(SimulatorError, clear, lambda: clear[1, 1](np.zeros(4)), "x[1:3]", "element by element")


# -- local and constant memory ------------------------------------------------------------


def test_local_arrays_belong_to_one_thread():
    @jit
    def powers(out):
        a = cuda.local.array((2, 3), f8)
        t = cuda.threadIdx.x
        for i in range(2):
            for j in range(3):
                a[i, j] = t**j + i
        out[t] = a[1, 2]

    out = np.zeros(8)
    powers[1, 8](out)
    np.testing.assert_array_equal(out, np.arange(8.0) ** 2 + 1)


def test_local_arrays_start_poisoned_on_every_pass():
    @jit
    def undefined(out, ints):
        for turn in range(2):
            a = cuda.local.array(2, f4)
            n = cuda.local.array(1, i4)
            out[turn] = a[1] + a[0]
            ints[turn] = n[0]
            a[0] = 1.0
            a[1] = 1.0
            n[0] = 0

    out, ints = np.zeros(2, f4), np.zeros(2, i4)
    undefined[1, 1](out, ints)
    assert np.isnan(out).all()
    assert (ints == np.iinfo(i4).max).all()


def test_constant_arrays():
    table = np.arange(6.0).reshape(2, 3)

    @jit
    def look_up(out):
        c = cuda.const.array_like(table)
        t = cuda.threadIdx.x
        out[t] = c[1, t] + table[0, t] + c[1][t]

    out = np.zeros(3)
    look_up[1, 3](out)
    assert out.tolist() == [6, 9, 12]


@pytest.mark.parametrize("through", ["closure", "const"])
def test_constant_arrays_stay_constant(through):
    table = np.arange(3.0)

    @jit
    def change(out):
        c = cuda.const.array_like(table) if through == "const" else table
        c[0] = 5.0  # <-

    refused(SimulatorError, change, lambda: change[1, 1](np.zeros(1)), "constant")
    assert table[0] == 0


# -- arithmetic ----------------------------------------------------------------------------


def test_float32_stays_float32():
    @jit
    def series(x, out):
        s = cuda.shared.array(1, f4)
        a = cuda.local.array(1, f4)
        a[0] = 0.1
        s[0] = a[0] * x[0]
        out[0] = s[0] + f4(1) / x[1]
        out[1] = math.sqrt(x[0])
        out[2] = math.sqrt(x[0]) * math.sin(x[1])

    x, out = np.array([1.1, 3.3], f4), np.zeros(3)
    series[1, 1](x, out)
    assert out[0] == f8(f4(0.1) * x[0] + f4(1) / x[1])
    assert out[1] == f8(np.sqrt(x[0]))
    assert out[2] == f8(np.sqrt(x[0]) * f4(math.sin(x[1])))


def test_a_python_float_argument_is_float64():
    @jit
    def scale(x, factor, out):
        out[0] = x[0] * factor

    x, out = np.array([1.1], f4), np.zeros(1)
    scale[1, 1](x, 0.1, out)
    assert out[0] == f8(x[0]) * 0.1
    scale[1, 1](x, f4(0.1), out)
    assert out[0] == f8(x[0] * f4(0.1))


def test_integers_do_not_wrap_at_32_bits():
    @jit
    def square(x, out):
        a = cuda.local.array(1, i4)
        a[0] = x[0]
        out[0] = x[0] * x[0]
        out[1] = a[0] * a[0]
        out[2] = -7 // x[1]
        out[3] = -7 % x[1]

    out = np.zeros(4, np.int64)
    square[1, 1](np.array([2**20, 2], i4), out)
    assert out.tolist() == [2**40, 2**40, -4, 1]


def test_integer_types_wrap_but_their_arithmetic_does_not():
    word, number = np.uint32, numba.int32

    @jit
    def wrap(out):
        s = cuda.shared.array(1, np.uint32)
        a = cuda.local.array(1, word)
        a[0] = s[0] = word(-1)
        out[0] = s[0] + a[0]
        out[1] = np.uint32(2**20) * word(2**20)
        out[2] = number(2**31)
        out[3] = np.int8(200) + np.int32(-2.7)
        out[4] = np.uint32(out[1] + 7)

    out = np.zeros(5, np.int64)
    wrap[1, 1](out)
    assert out.tolist() == [2 * (2**32 - 1), 2**40, -(2**31), -56 - 2, 7]


def test_indices_of_integer_types():
    @jit
    def shift(x, y):
        i = np.uint32(cuda.grid(1))
        y[i] = x[np.uint32(i - 1)]  # <-

    refused(IndexError, shift, lambda: shift[1, 4](np.zeros(4), np.zeros(4)), "x[4294967295]")


@pytest.mark.filterwarnings("error")
def test_a_gpu_computes_on_with_infinities_and_nan():
    @jit
    def extremes(x, out):
        out[0] = 1.0 / x[0]
        out[1] = math.sqrt(x[1])
        out[2] = math.log(x[0])
        out[3] = math.exp(x[2])
        out[4] = 1.0 / math.sqrt(x[0])

    out = np.zeros(5)
    extremes[1, 1](np.array([0.0, -1.0, 1e4]), out)
    assert np.isnan(out[1])
    np.testing.assert_array_equal(out[[0, 2, 3, 4]], [np.inf, -np.inf, np.inf, np.inf])


def test_bit_operations():
    @jit
    def bits(out):
        out[0] = cuda.popc(0b1011)
        out[1] = cuda.ffs(0b1000)
        out[2] = cuda.selp(cuda.threadIdx.x == 0, 7, 8)
        out[3] = cuda.fma(2.0, 3.0, 1.0)

    out = np.zeros(4)
    bits[1, 1](out)
    assert out.tolist() == [3, 4, 7, 7]


def test_an_error_of_python_says_where():
    @jit
    def divide(n):
        n[0] = 1 // n[1]

    with pytest.raises(ZeroDivisionError) as caught:
        divide[1, 1](np.zeros(2, i4))
    assert caught.value.__notes__ == ["in kernel divide, block (0, 0, 0) thread (0, 0, 0)"]


# -- device functions ----------------------------------------------------------------------


@jit(device=True)
def module_square(x):
    return x * x


def test_device_functions_nest_and_close_over():
    def make(power, table):
        @jit(device=True)
        def inner(x):
            return module_square(x) + power

        @jit(device=True)
        def outer(x):
            i = cuda.threadIdx.x
            return inner(x) + table[i], math.sqrt(x)

        return outer

    outer = make(10, np.array([100.0, 200.0]))

    @jit
    def use(out):
        t = cuda.threadIdx.x
        value, root = outer(4.0)
        out[t, 0] = value
        out[t, 1] = root

    out = np.zeros((2, 2))
    use[1, 2](out)
    assert out.tolist() == [[126, 2], [226, 2]]


def test_barriers_and_faults_in_device_functions_name_them():
    @jit(device=True)
    def shift(s, t):
        cuda.syncthreads()
        return s[t + 1]

    @jit
    def use(out):
        s = cuda.shared.array(4, f8)
        s[cuda.threadIdx.x] = 1.0
        out[cuda.threadIdx.x] = shift(s, cuda.threadIdx.x)

    with pytest.raises(IndexError, match=r"kernel use, .*\(shift, line \d+\): shared array.*\[4\]"):
        use[1, 4](np.zeros(4))


def test_a_plain_function_is_no_device_function():
    def plain(x):
        return x

    @jit
    def use(out):
        out[0] = plain(1.0)

    refused(SimulatorError, use, lambda: use[1, 1](np.zeros(1)), "plain", "device=True")


# -- what is no kernel, no launch, no argument -------------------------------------------


def test_threads_of_a_block():
    @jit
    def count(out):
        cuda.atomic.add(out, 0, 1)

    out = np.zeros(1, i4)
    count[1, 1024](out)
    count[1, (32, 32)](out)
    assert out[0] == 2048
    for block in (1025, (32, 33), (1, 1, 65), 0, (4, 0), -1):
        refused(SimulatorError, count, lambda b=block: count[1, b](out), "block")
    for grid in (0, (1, 65536), (1, 1, 65536), (1, -1)):
        refused(SimulatorError, count, lambda g=grid: count[g, 1](out), "grid")
    assert out[0] == 2048


@pytest.mark.parametrize("grid", [1.0, "1", (1, 2, 3, 4), (), None])
def test_grids_are_integers(grid):
    @jit
    def nothing(out):
        pass

    refused(TypeError, nothing, lambda: nothing[grid, 1](np.zeros(1)), "grid")


def test_a_kernel_returns_nothing():
    @jit
    def answer(out):
        return out[0]

    refused(SimulatorError, answer, lambda: answer[1, 1](np.zeros(1)), "return")


def test_python_that_no_gpu_runs():
    @jit
    def a_list(out):
        x = [0.0] * cuda.threadIdx.x  # <-
        out[0] = x[0]

    @jit
    def a_comprehension(out):
        out[0] = sum(i for i in range(cuda.threadIdx.x))

    @jit
    def a_dictionary(out):
        d = {"a": 1.0}  # <-
        out[0] = d["a"]

    @jit
    def a_set(out):
        out[0] = len({1, cuda.threadIdx.x})  # <-

    @jit
    def a_string(out):
        out[0] = len(f"{cuda.threadIdx.x}")  # <-

    @jit
    def a_try(out):
        try:
            out[0] = 1.0  # <-
        except IndexError:
            out[0] = 2.0

    @jit
    def a_builtin(out):
        out[0] = len(list(range(3)))

    for kernel in (a_list, a_comprehension, a_dictionary, a_set, a_string, a_try, a_builtin):
        out = np.zeros(1)
        refused(SimulatorError, kernel, lambda k=kernel, o=out: k[1, 1](o), "GPU")
        assert out[0] == 0


def test_lists_around_a_kernel():
    table = [1.0, 2.0]

    @jit
    def look_up(out):
        out[0] = table[0]

    refused(SimulatorError, look_up, lambda: look_up[1, 1](np.zeros(1)), "table", "list")


@pytest.mark.parametrize("value", [[1.0], {"a": 1.0}, "text", {1}, np.array(["a"])])
def test_arguments_that_no_kernel_takes(value):
    @jit
    def take(x):
        pass

    refused(TypeError, take, lambda: take[1, 1](value), "argument x")


def test_number_of_arguments():
    @jit
    def take(x, y, z=1):
        x[0] = z

    x = np.zeros(1)
    take[1, 1](x, 2)
    assert x[0] == 1
    for args in ((x,), (x, 1, 2, 3)):
        refused(TypeError, take, lambda a=args: take[1, 1](*a), "x, y, z")


def test_tuples_of_arrays_and_numbers():
    @jit
    def add(out, pair, numbers):
        i = cuda.threadIdx.x
        out[i] = pair[0][i] + pair[1][i] * numbers[1]

    out = np.zeros(3)
    add[1, 3](out, (np.arange(3.0), np.ones(3)), (1, 2.5))
    assert out.tolist() == [2.5, 3.5, 4.5]


def test_arrays_are_contiguous():
    @jit
    def take(x):
        pass

    refused(TypeError, take, lambda: take[1, 1](np.zeros((4, 4)).T), "argument x", "contiguous")


def test_arrays_of_two_sides():
    class OnGpu:
        __cuda_array_interface__ = {}  # noqa: RUF012

    @jit
    def take(x, y):
        pass

    refused(TypeError, take, lambda: take[1, 1](OnGpu(), np.zeros(1)), "[0]", "[1]", "GPU")


def test_kernels_are_launched_with_a_configuration():
    @jit
    def take(x):
        pass

    refused(TypeError, take, lambda: take(np.zeros(1)), "grid and a block")
    refused(TypeError, take, lambda: take[1](np.zeros(1)), "kernel[grid, block]")


def test_what_is_not_simulated_is_refused_by_name():
    @jit
    def clock(out):
        out[0] = cuda.atomic.inc(out, 0, 4)  # <-

    refused(SimulatorError, clock, lambda: clock[1, 1](np.zeros(1, i4)), "atomic.inc")


def test_a_thread_that_spins_for_another_is_refused():
    @jit
    def lock(out):
        while cuda.atomic.cas(out, 0, 0, 1) != 0:  # <-
            pass

    refused(SimulatorError, lock, lambda: lock[1, 2](np.zeros(1, i4)), "spins")


def test_after_a_fault_the_next_launch_runs():
    @jit
    def past(out):
        cuda.syncthreads()
        out[cuda.threadIdx.x] = 1.0

    with pytest.raises(IndexError):
        past[1, 8](np.zeros(4))
    out = np.zeros(8)
    past[1, 8](out)
    assert out.all()


def test_names_are_looked_up_at_each_launch_and_nothing_is_left_behind():
    @jit
    def write(out):
        out[0] = CONSTANT

    global CONSTANT
    out = np.zeros(1)
    for CONSTANT in (1.0, 2.0):
        write[1, 1](out)
        assert out[0] == CONSTANT
    assert write.py_func.__globals__ is globals()
    assert globals()["cuda"] is cuda
    # outside of a kernel the stand-in for cuda is an object like any other
    assert not hasattr(simulator.cuda, "no_such_thing")
    assert not hasattr(simulator.cuda.atomic, "no_such_thing")


def test_simulator_device_is_numpy():
    sim = device("simulator")

    @jit
    def double(x):
        x[cuda.grid(1)] *= 2.0

    x = sim.array(np.arange(4.0))
    double[2, 2](x)
    np.testing.assert_array_equal(sim.to_numpy(x), 2 * np.arange(4.0))


def test_ten_thousand_threads_with_twenty_barriers():
    @jit
    def turns(out):
        s = cuda.shared.array(128, f8)
        t = cuda.threadIdx.x
        a = f8(t)
        for _ in range(10):
            s[t] = a
            cuda.syncthreads()
            a = s[127 - t]
            cuda.syncthreads()
        out[cuda.grid(1)] = a

    out = np.zeros(79 * 128)
    start = time.process_time()  # other processes are not the simulator's fault
    turns[79, 128](out)
    seconds = time.process_time() - start
    np.testing.assert_array_equal(out, np.tile(np.arange(128), 79))
    assert seconds < 10.0  # the stock simulator takes 45; a busy core of CI took 2.7
