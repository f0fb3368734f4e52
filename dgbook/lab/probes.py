"""Microbenchmarks: a small kernel for each thing that a GPU likes or dislikes, and what to expect.

Each effect has a kernel, which the simulator proves right, and a driver, which times it on a CUDA
device and says what a simple model predicts. The effects are those that klockner2009 names in its
section 3: memory access in the order of the threads, shared-memory banks, broadcasts, branches
within a warp, latency and the number of threads that hide it, the cost of a launch; and a few that
the hardware has got since: atomics, shuffles, graphs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.gpu.device import Device, as_device
from dgbook.gpu.fast import branching_divide, branching_rsqrt, make_divide, make_rsqrt
from dgbook.gpu.kernel import Kernel, cuda, jit
from dgbook.gpu.limits import FULL_MASK, STATIC_SHARED_LIMIT, WARP, architecture, resident_blocks
from dgbook.gpu.source import CudaKernel, load
from dgbook.gpu.timing import (
    CACHE_FACTOR,
    Timing,
    beyond_cache,
    cache_bytes,
    measure,
)

BANKS = 32  # of shared memory, each 4 bytes wide
SECTOR = 32  # bytes: the least that memory moves
LINE = 128  # bytes: four sectors, what a warp reads of float32 in one go
WORDS = BANKS * WARP  # 4-byte words that 32 lanes touch at the largest stride
LINKS = 16  # dependent operations in one round of a loop: its own instructions become rare
NEAR = 512 * 2**10  # bytes: twice the largest L1 cache, which is empty when a kernel starts
SAMPLES = 30  # of a latency, which together go once around the chain
COPY_REGISTERS = 32  # of a thread that copies, at most: they never limit how many are resident
TILE = 32  # rows and columns of the tile that a block transposes
TILE_ROWS = 8  # rows of threads in that block
TRANSPOSES = ("naive", "shared", "padded", "several")
LAUNCHES, LAUNCH_SAMPLES = 200, 30  # of a kernel that does nothing
LAUNCH_KINDS = ("python", "numba", "raw", "graph")
OPERATIONS = ("add", "multiply", "fma", "choose", "divide", "reciprocal", "rsqrt")
BRANCHING = ("branching divide", "branching reciprocal", "branching rsqrt")  # of fp64
CHAIN_ROUNDS = 2048  # so many that a launch and its first load are next to nothing
OPERATIONS_A_ROUND = 32  # of `make_chain`: of one chain or of several together
TENSOR_CAPABILITY = (8, 0)  # the first compute capability with fp64 and TF32 tensor cores
HERE = Path(__file__).parent  # of the kernels in CUDA C++


# ------------------------------------------------------------------------------ memory: patterns


@jit
def copy(x, y):
    """One word per thread; neighboring threads, neighboring words."""
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[i]


@jit
def copy_grid_stride(x, y):
    """A fixed number of threads, each a whole grid apart: the grid need not fit the data."""
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        y[i] = x[i]


def make_copy_several(dtype: Any, loads: int) -> Kernel:
    """The copy whose threads have several loads in flight before their first store.

    The loads stand together since a thread's store could, for all that the compiler knows, change
    what a later load reads: x and y may overlap.

    Parameters
    ----------
    dtype : float32 or float64
    loads : int
        Words per thread, 1 to 8.

    Returns
    -------
    Kernel
        ``copy_several[blocks, threads](x, y)``, with ``loads`` words for each thread of the grid.
    """
    if not 1 <= loads <= 8:
        raise ValueError(f"loads = {loads}; allowed: 1 to 8")
    real = np.dtype(dtype).type

    @jit
    def copy_several(x, y):
        held = cuda.local.array(loads, real)
        i = cuda.blockIdx.x * cuda.blockDim.x * loads + cuda.threadIdx.x
        # Neighboring threads touch neighboring words in each load.
        for j in range(loads):
            if i + j * cuda.blockDim.x < y.size:
                held[j] = x[i + j * cuda.blockDim.x]
        for j in range(loads):
            if i + j * cuda.blockDim.x < y.size:
                y[i + j * cuda.blockDim.x] = held[j]

    return copy_several


@jit
def copy_strided(x, y, stride):
    """Read every `stride`-th element, write densely; x has stride times as many elements as y."""
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[i * stride]


@jit
def copy_offset(x, y, offset):
    """Read from an address that no warp's line begins at; x has `offset` elements more than y."""
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[i + offset]


@jit
def gather(x, index, y):
    """Read where a list says, as a flux gathers its neighbors' values; write densely."""
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[index[i]]


@jit
def transpose_naive(x, y):
    """y = x^T by one thread per element: what it reads in a row, it writes down a column."""
    column, row = cuda.grid(2)
    if row < x.shape[0] and column < x.shape[1]:
        y[column, row] = x[row, column]


def make_transpose(dtype: Any, padding: int) -> Kernel:
    """The kernel y = x^T through a tile in shared memory.

    Both its reads and its writes are dense. A block of (32, 8) threads
    moves a tile of 32 x 32. Columns of the tile are read from shared
    memory: without padding all 32 lanes hit one bank, and with one word
    of padding each lane hits a bank of its own.

    Parameters
    ----------
    dtype : float32 or float64
    padding : int
        Unused words at the end of each row of the tile: 0 or 1.

    Returns
    -------
    Kernel
        ``transpose[blocks, (32, 8)](x, y)``, with one block per tile:
        ``blocks = (columns + 31) // 32, (rows + 31) // 32``.
    """
    real = np.dtype(dtype).type
    row_length = TILE + padding

    @jit
    def transpose_shared(x, y):
        tile = cuda.shared.array((TILE, row_length), real)
        lane = cuda.threadIdx.x
        first_row = cuda.blockIdx.y * TILE
        first_column = cuda.blockIdx.x * TILE
        # Read rows of x; neighboring lanes read neighboring words.
        for r in range(cuda.threadIdx.y, TILE, TILE_ROWS):
            row, column = first_row + r, first_column + lane
            if row < x.shape[0] and column < x.shape[1]:
                tile[r, lane] = x[row, column]
        cuda.syncthreads()
        # Write rows of y, which are columns of the tile.
        for r in range(cuda.threadIdx.y, TILE, TILE_ROWS):
            to_row, to_column = first_column + r, first_row + lane
            if to_row < x.shape[1] and to_column < x.shape[0]:
                y[to_row, to_column] = tile[lane, r]

    return transpose_shared


def make_transpose_several(dtype: Any) -> Kernel:
    """The transpose through a padded tile whose threads have all of their loads in flight.

    Each thread reads its words of the tile into local variables before it stores the first: a
    loop that loads and stores in turn waits for every word, as `copy` does (see
    `make_copy_several`).

    Parameters
    ----------
    dtype : float32 or float64

    Returns
    -------
    Kernel
        ``transpose[blocks, (32, 8)](x, y)``, with one block per tile, as in `make_transpose`.
    """
    real = np.dtype(dtype).type
    row_length, loads = TILE + 1, TILE // TILE_ROWS

    @jit
    def transpose_several(x, y):
        tile = cuda.shared.array((TILE, row_length), real)
        held = cuda.local.array(loads, real)
        lane = cuda.threadIdx.x
        first_row = cuda.blockIdx.y * TILE
        first_column = cuda.blockIdx.x * TILE
        # Read rows of x: all loads before the first store.
        for m in range(loads):
            row = first_row + cuda.threadIdx.y + m * TILE_ROWS
            if row < x.shape[0] and first_column + lane < x.shape[1]:
                held[m] = x[row, first_column + lane]
        for m in range(loads):
            tile[cuda.threadIdx.y + m * TILE_ROWS, lane] = held[m]
        cuda.syncthreads()
        # Write rows of y, which are columns of the tile.
        for m in range(loads):
            r = cuda.threadIdx.y + m * TILE_ROWS
            if first_column + r < x.shape[1] and first_row + lane < x.shape[0]:
                y[first_column + r, first_row + lane] = tile[lane, r]

    return transpose_several


# ------------------------------------------------------------------- shared memory, latency, FMA


@jit
def walk_shared(ended, stride, rounds):
    """Each lane walks through shared memory word by word, `stride` words from its neighbor.

    The next address is read from memory, so no read can be skipped: 16 of them per round. All lanes
    move on together, so a warp has the same bank conflicts at each: see `conflict_degree`.
    """
    following = cuda.shared.array(WORDS, np.uint32)
    t = cuda.threadIdx.x
    for w in range(t, WORDS, cuda.blockDim.x):
        following[w] = (w + 1) % WORDS
    cuda.syncthreads()
    lane = t % WARP
    word = np.uint32((lane * stride) % WORDS)
    for _ in range(rounds):
        for _ in range(LINKS):  # the compiler unrolls this
            word = following[word]
    ended[cuda.grid(1)] = word


@jit
def chase(following, rounds, position):
    """One thread follows a chain of addresses, each known only when the last has arrived.

    16 of them a round. It starts where the previous launch stopped, so that of a chain longer than
    the cache nothing is found there.
    """
    word = position[0]
    for _ in range(rounds):
        for _ in range(LINKS):  # the compiler unrolls this
            word = following[word]
    position[0] = word


def make_fma(dtype: Any, accumulators: int, links: int = LINKS) -> Kernel:
    """The kernel that only multiplies and adds: chains of dependent FMA, in registers.

    Parameters
    ----------
    dtype : float32 or float64
    accumulators : int
        Independent chains in each thread, 1 to 8: the instruction-level parallelism.
    links : int
        FMA of each chain per round of the loop: with more of them the loop itself costs less.

    Returns
    -------
    Kernel
        ``fma[blocks, threads](start, x, y, rounds, out)``: chain j of thread i begins at
        ``start[i] + j`` and becomes ``a x + y``, `links` times per round; ``out[i]`` is the sum of
        the thread's chains. Give x and y as ``dtype.type``.
    """
    if not 1 <= accumulators <= 8:
        raise ValueError(f"accumulators = {accumulators}; allowed: 1 to 8")
    real = np.dtype(dtype).type

    @jit
    def fma(start, x, y, rounds, out):
        chains = cuda.local.array(accumulators, real)
        i = cuda.grid(1)
        for j in range(accumulators):
            chains[j] = start[i] + real(j)
        for _ in range(rounds):
            for _ in range(links):  # the compiler unrolls both inner loops
                for j in range(accumulators):
                    chains[j] = cuda.fma(chains[j], x, y)
        total = real(0)
        for j in range(accumulators):
            total += chains[j]
        out[i] = total

    return fma


def make_link(dtype: Any, operation: str) -> Callable:
    """The device function ``link(x, a, b, c)``, which does one operation to x.

    Quotients and roots are those of the swept kernels (`dgbook.gpu.fast`), and in fp64 those of the
    compiler as well, which branch. x is the denominator, since a quotient by a number that stays
    the same can be had from its reciprocal, computed once.

    Parameters
    ----------
    dtype : float32 or float64
    operation : str
        Of `OPERATIONS`, in fp64 also of `BRANCHING`. "add": x + a; "multiply": x a; "fma": x a + b,
        rounded once; "choose": a comparison and a choice by it, b if x > a, else c; "divide":
        a / x; "reciprocal": 1 / x; "rsqrt": 1 / sqrt(x).
    """
    names = OPERATIONS + (BRANCHING if np.dtype(dtype) == np.float64 else ())
    if operation not in names:
        allowed = ", ".join(map(repr, names))
        raise ValueError(f"operation = {operation!r} in {dtype}; allowed are {allowed}")
    quotient, root = make_divide(dtype), make_rsqrt(dtype)
    one = np.dtype(dtype).type(1)

    @jit(device=True)
    def add(x, a, b, c):
        return x + a

    @jit(device=True)
    def multiply(x, a, b, c):
        return x * a

    @jit(device=True)
    def multiply_add(x, a, b, c):
        return cuda.fma(x, a, b)

    @jit(device=True)
    def choose(x, a, b, c):
        return b if x > a else c

    @jit(device=True)
    def divide(x, a, b, c):
        return quotient(a, x)

    @jit(device=True)
    def reciprocal(x, a, b, c):
        return quotient(one, x)

    @jit(device=True)
    def rsqrt(x, a, b, c):
        return root(x)

    @jit(device=True)
    def branching_quotient(x, a, b, c):
        return branching_divide(a, x)

    @jit(device=True)
    def branching_reciprocal(x, a, b, c):
        return branching_divide(one, x)

    @jit(device=True)
    def branching_root(x, a, b, c):
        return branching_rsqrt(x)

    links = add, multiply, multiply_add, choose, divide, reciprocal, rsqrt
    links += branching_quotient, branching_reciprocal, branching_root
    return dict(zip(OPERATIONS + BRANCHING, links, strict=True))[operation]


@cache
def make_chain(dtype: Any, operation: str, chains: int) -> Kernel:
    """The kernel that does one operation again and again, each time to the last result.

    Parameters
    ----------
    dtype : float32 or float64
    operation : str
        Of `OPERATIONS` or `BRANCHING`, see `make_link`.
    chains : int
        Independent ones in each thread: 1, 2, 4 or 8.

    Returns
    -------
    Kernel
        ``chain[blocks, threads](start, a, b, c, rounds, out)``: chain j of thread i begins at
        ``start[i] + j``; a round has 32 operations, the chains' in turn; ``out[i]`` is the sum of
        the thread's chains. Give a, b and c as ``dtype.type``.
    """
    if chains not in (1, 2, 4, 8):
        raise ValueError(f"chains = {chains}; allowed: 1, 2, 4 or 8")
    real, link = np.dtype(dtype).type, make_link(dtype, operation)
    links = OPERATIONS_A_ROUND // chains

    @jit
    def chain(start, a, b, c, rounds, out):
        held = cuda.local.array(chains, real)
        i = cuda.grid(1)
        for j in range(chains):
            held[j] = start[i] + real(j)
        for _ in range(rounds):
            for _ in range(links):  # the compiler unrolls both inner loops
                for j in range(chains):
                    held[j] = link(held[j], a, b, c)
        total = real(0)
        for j in range(chains):
            total += held[j]
        out[i] = total

    return chain


# ------------------------------------------------------------------------------ branches, atomics


def make_divergence(dtype: Any) -> Kernel:
    """The kernel whose lanes take different branches: a warp walks through all that its lanes take.

    Parameters
    ----------
    dtype : float32 or float64

    Returns
    -------
    Kernel
        ``diverge[blocks, threads](shift, unit, steps, x, out)``: thread i takes branch
        ``i // unit % shift.size`` and there `steps` times ``a = a x + shift[branch]`` from 0. With
        unit = 1 neighboring lanes part, with unit = 32 only warps do.
    """
    real = np.dtype(dtype).type

    @jit
    def diverge(shift, unit, steps, x, out):
        i = cuda.grid(1)
        mine = i // unit % shift.size
        a = real(0)
        for branch in range(shift.size):
            if mine == branch:
                y = shift[branch]
                for _ in range(steps):
                    a = cuda.fma(a, x, y)
        out[i] = a

    return diverge


@jit
def sum_one_address(x, total):
    """Sum x with one atomic per thread, all at one address."""
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(total, 0, x[i])


@jit
def sum_warp_address(x, total):
    """Sum x with one atomic per thread, each warp of the grid at an address of its own.

    total has an entry for each warp; its sum is the sum of x.
    """
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(total, i // WARP, x[i])


def make_sum_shuffled(dtype: Any) -> Kernel:
    """The kernel that sums a warp by shuffles and spends one atomic on its sum.

    Parameters
    ----------
    dtype : float32 or float64

    Returns
    -------
    Kernel
        ``sum_shuffled[blocks, threads](x, total)``, threads a multiple of 32.
    """
    real = np.dtype(dtype).type

    @jit
    def sum_shuffled(x, total):
        i = cuda.grid(1)
        value = real(0)
        if i < x.size:
            value = x[i]
        # All lanes take part, those beyond the data with 0: a shuffle needs every lane it names.
        offset = WARP // 2
        while offset > 0:
            value += cuda.shfl_down_sync(FULL_MASK, value, offset)
            offset //= 2
        if cuda.threadIdx.x % WARP == 0:
            cuda.atomic.add(total, 0, value)

    return sum_shuffled


@jit
def nothing(x):
    """A kernel that is only launched."""


# -------------------------------------------------------------------------- kernels in CUDA C++


def read_again() -> CudaKernel:
    """The kernel that reads an array again and again, past the L1 cache.

    Returns
    -------
    CudaKernel
        ``read_again[blocks, threads](x, rounds, vectors, out)``: x holds ``vectors`` vectors of
        four float32; ``out[i]`` is the sum of what thread i has read in all rounds.
    """
    return load(HERE / "read.cu", "read_again")


def tensor_products(dtype: Any, tiles: int) -> CudaKernel:
    """The kernel that only multiplies on tensor cores, with operands and sums in registers.

    Numba cannot say it. A product has 16 rows, 8 columns and `depth` terms: 8 in fp32, as three
    products in TF32 of operands that are split in two, and 4 in fp64, as mma.m16n8k4 where the
    device has it and as two mma.m8n8k4 otherwise (compute capability 8).

    Parameters
    ----------
    dtype : float32 or float64
    tiles : int
        Sums of 16 x 8 numbers in each warp, 1 to 8: its independent chains.

    Returns
    -------
    CudaKernel
        ``products[blocks, threads](a, b, rounds, out)``: lane l gets the entries
        ``a[4 PAIR l : ...]`` of the rows and ``b[...]`` of the columns in the order of the
        instruction's fragments, see tensor.cu; each sum grows by their product 16 times per round;
        ``out[i]`` is the sum of the thread's numbers.
    """
    if not 1 <= tiles <= 8:
        raise ValueError(f"tiles = {tiles}; allowed: 1 to 8")
    real = np.dtype(dtype)
    defines = {"REAL": real, "VECTOR": f"{_C_TYPES[real.itemsize]}", "NODES": tiles}
    return load(HERE / "tensor.cu", "products", defines)


def wait_clocks() -> CudaKernel:
    """The kernel that does nothing for some clock cycles, which Numba cannot count.

    Returns
    -------
    CudaKernel
        ``wait_clocks[blocks, threads](cycles, passed)``: ``passed[b]`` is how many block b waited,
        at least ``cycles``.
    """
    return load(HERE / "clock.cu", "wait_clocks")


_C_TYPES = {4: "float4", 8: "double2"}  # 16 bytes of a precision

# ------------------------------------------------------------------------------------------ models


def conflict_degree(stride: int) -> int:
    """How many words the busiest bank must give when 32 lanes read `stride` words apart.

    Lanes that read the same word share it (a broadcast), so stride 0 costs 1, as stride 1 does;
    in general it is gcd(stride, 32).
    """
    if not 0 <= stride <= BANKS:
        raise ValueError(f"stride = {stride}; allowed: 0 to {BANKS} words")
    words = {lane * stride for lane in range(WARP)}
    return max(sum(1 for w in words if w % BANKS == bank) for bank in range(BANKS))


def sectors_per_warp(itemsize: int, stride: int = 1) -> int:
    """32-byte sectors that one warp's read touches: lane l reads element l stride."""
    touched = set()
    for lane in range(WARP):
        first = lane * stride * itemsize
        touched.update(range(first // SECTOR, (first + itemsize - 1) // SECTOR + 1))
    return len(touched)


def chase_chain(lines: int) -> np.ndarray:
    """A chain through the first words of all 128-byte lines, in random order, that closes.

    Random, so that no hardware that loads ahead can guess the next line; one line for each step,
    so that none is read twice before all have been.

    Returns
    -------
    array of uint32, (32 lines,)
        At the first word of each line the position of the next line's.
    """
    if not 1 <= lines <= 2**32 // (LINE // 4):
        raise ValueError(f"lines = {lines}; allowed: 1 to 2^27, which 32-bit positions reach")
    order = np.random.default_rng(0).permutation(lines) * (LINE // 4)
    following = np.zeros(lines * (LINE // 4), np.uint32)
    following[order] = np.roll(order, -1)
    return following


def chase_rounds(working_set_bytes: int) -> int:
    """Rounds of `LINKS` reads in one launch, so that its samples visit the whole chain.

    What may fit in the L1 is walked 64 times per launch, since the L1 is empty when a kernel
    starts; of larger data each of the samples visits another part.
    """
    lines = working_set_bytes // LINE
    return max(256, 4 * lines if working_set_bytes <= NEAR else -(-lines // (SAMPLES * LINKS)))


# ------------------------------------------------------------------------------------------ drivers


@dataclass(frozen=True)
class Probe:
    """One effect, measured, with what a model says of it.

    Attributes
    ----------
    timing : Timing
        Of one launch.
    bytes : int
        What the algorithm asks for: useful bytes read and written.
    moved : int
        What memory must move for it, in whole sectors of 32 bytes, by the model.
    flops : int
        An FMA counts 2.
    operations : int
        Of the kind the probe is about, one after another where they depend: reads in a chain,
        atomics, branches.
    slowdown : float
        By the model, how many times as long as the undisturbed case.
    in_cache : bool
        Whether the data is so small (under 4 times the L2) that the cache is measured with it.
    resident_threads : int or None
        Of a multiprocessor, where they are what is varied.
    """

    timing: Timing
    bytes: int = 0
    moved: int = 0
    flops: int = 0
    operations: int = 0
    slowdown: float = 1.0
    in_cache: bool = False
    resident_threads: int | None = None

    @property
    def seconds(self) -> float:
        """Median seconds of one launch."""
        return self.timing.median

    @property
    def TBps(self) -> float:
        """Useful terabytes (10^12 bytes) a second."""
        return self.bytes / self.seconds * 1e-12

    @property
    def TFLOPs(self) -> float:
        """10^12 floating-point operations a second."""
        return self.flops / self.seconds * 1e-12

    @property
    def seconds_per_operation(self) -> float:
        """Seconds for one of the probe's operations."""
        return self.seconds / self.operations


def copy_bandwidth(
    device: Device,
    dtype: Any = "float32",
    stride: int | None = None,
    offset: int | None = None,
) -> Probe:
    """Copy plainly, with a stride or from an offset: what order of access costs.

    Strides and offsets have kernels of their own, also for stride 1 and offset 0: the controls that
    tell the cost of the order from that of a longer kernel.

    A warp that reads every s-th element of 4 bytes touches s times the sectors until each lane has
    its own (s = 8), so useful bandwidth falls up to there and not beyond. With an offset per warp
    touches two lines of 128 bytes, and one sector more (5 instead of 4) unless it is a multiple of
    8: its neighbor needs them anyway, and caches hide it.

    Parameters
    ----------
    device : Device
    dtype : float32 or float64
        Of 8 times as many bytes as the L2 has.
    stride : int, optional
        Of the read, in elements, at least 1.
    offset : int, optional
        Of the read, in elements, at least 0; not together with a stride.
    """
    both = stride is not None and offset is not None
    step, shift = 1 if stride is None else stride, offset or 0
    if step < 1 or shift < 0 or both:
        raise ValueError(
            f"stride = {stride}, offset = {offset}; allowed: a stride from 1, or an offset from 0"
        )
    device = _require_cuda(device, "copy_bandwidth")
    item = np.dtype(dtype).itemsize
    n = _elements_beyond_cache(device, item, 2 * CACHE_FACTOR)
    count = n // step
    x, y = device.array(np.arange(n + shift, dtype=dtype)), device.empty(count, dtype)
    grid = -(-count // 256), 256
    if stride is not None:
        timing = measure(lambda: copy_strided[grid](x, y, stride), device)
    elif offset is not None:
        timing = measure(lambda: copy_offset[grid](x, y, offset), device)
    else:
        timing = measure(lambda: copy[grid](x, y), device)
    # What neighboring warps read of one sector comes from the cache: an offset moves no more.
    read = min(n * item, -(-count // WARP) * sectors_per_warp(item, step) * SECTOR)
    return Probe(
        timing,
        bytes=2 * count * item,
        moved=read + count * item,
        slowdown=(read + count * item) / (2 * count * item),
        in_cache=not beyond_cache(n * item, device),
    )


def copy_several_bandwidth(device: Device, dtype: Any, loads: int) -> Probe:
    """Copy with several loads in flight per thread: bandwidth is bytes in flight over latency.

    Parameters
    ----------
    device : Device
    dtype : float32 or float64
        Of 8 times as many bytes as the L2 has.
    loads : int
        Words per thread, 1 to 8.
    """
    kernel, item = make_copy_several(dtype, loads), np.dtype(dtype).itemsize
    device = _require_cuda(device, "copy_several_bandwidth")
    n = _elements_beyond_cache(device, item, 2 * CACHE_FACTOR)
    x, y = device.array(np.arange(n, dtype=dtype)), device.empty(n, dtype)
    timing = measure(lambda: kernel[-(-n // (256 * loads)), 256](x, y), device)
    in_cache = not beyond_cache(n * item, device)
    return Probe(timing, bytes=2 * n * item, moved=2 * n * item, in_cache=in_cache)


def gather_bandwidth(device: Device, shuffled: bool = True) -> Probe:
    """Read through a list of indices: in random order, or in order to see what the list costs.

    In random order each value brings its own sector of 32 bytes and shares it with none.
    """
    device = _require_cuda(device, "gather_bandwidth")
    real = np.float32(0)
    n = _elements_beyond_cache(device, real.itemsize, CACHE_FACTOR)
    order = np.arange(n, dtype=np.int32)
    index = device.array(np.random.default_rng(0).permutation(order) if shuffled else order)
    x, y = device.array(np.arange(n, dtype=real.dtype)), device.empty(n, real.dtype)
    timing = measure(lambda: gather[-(-n // 256), 256](x, index, y), device)
    useful = n * (2 * real.itemsize + index.itemsize)
    moved = n * (SECTOR + real.itemsize + index.itemsize) if shuffled else useful
    return Probe(
        timing,
        bytes=useful,
        moved=moved,
        slowdown=moved / useful,
        in_cache=not beyond_cache(n * real.itemsize, device),
    )


def transpose_bandwidth(device: Device, kind: str = "padded") -> Probe:
    """Transpose a matrix: "naive", through a tile in "shared" memory, or through a "padded" tile.

    The naive kernel's warp writes to 32 sectors where it could write to 4; the tile without
    padding is read with a 32-way bank conflict. With "several" each thread loads its four words of
    the padded tile before it stores the first. The matrix is 8 times as large as the L2.
    """
    if kind not in TRANSPOSES:
        allowed = ", ".join(map(repr, TRANSPOSES))
        raise ValueError(f"kind = {kind!r}; allowed are {allowed}")
    device = _require_cuda(device, "transpose_bandwidth")
    n = math.isqrt(_elements_beyond_cache(device, 4, 2 * CACHE_FACTOR)) // TILE * TILE
    x = device.array(np.arange(n * n, dtype=np.float32).reshape(n, n))
    y = device.empty((n, n), np.float32)
    tiles, block = -(-n // TILE), (TILE, TILE_ROWS)
    if kind == "naive":
        kernel, grid = transpose_naive, (tiles, -(-n // TILE_ROWS))
    elif kind == "several":
        kernel, grid = make_transpose_several("float32"), (tiles, tiles)
    else:
        kernel, grid = make_transpose("float32", padding=int(kind == "padded")), (tiles, tiles)
    timing = measure(lambda: kernel[grid, block](x, y), device)
    both, in_cache = 8 * n * n, not beyond_cache(4 * n * n, device)
    return Probe(timing, bytes=both, moved=both, in_cache=in_cache)


def bank_conflicts(device: Device, stride: int) -> Probe:
    """Shared memory read `stride` words apart, 0 to 32; stride 0 is a broadcast.

    A read takes as many turns as the busiest bank has words to give: gcd(stride, 32). One
    operation is one read by one warp.
    """
    degree = conflict_degree(stride)
    device = _require_cuda(device, "bank_conflicts")
    threads, rounds = 512, 64
    blocks = 16 * device.multiprocessors
    ended = device.empty(blocks * threads, np.uint32)
    timing = measure(lambda: walk_shared[blocks, threads](ended, stride, rounds), device)
    return Probe(
        timing,
        bytes=4 * blocks * threads * LINKS * rounds,
        operations=blocks * threads // WARP * LINKS * rounds,
        slowdown=float(degree),
    )


def shared_latency(device: Device, stride: int) -> Probe:
    """Seconds from asking shared memory for a word to having it, by a single warp.

    With stride 1 it is the latency alone; with a conflict the warp waits for its last lane. One
    operation is one read.

    Parameters
    ----------
    device : Device
    stride : int
        Words between neighboring lanes, 0 to 32.
    """
    degree = conflict_degree(stride)
    device = _require_cuda(device, "shared_latency")
    rounds = 4096
    ended = device.empty(WARP, np.uint32)
    timing = measure(lambda: walk_shared[1, WARP](ended, stride, rounds), device)
    reads = LINKS * rounds
    return Probe(timing, bytes=4 * WARP * reads, operations=reads, slowdown=float(degree))


def latency(device: Device, working_set_bytes: int) -> Probe:
    """Seconds from asking for a word to having it, by one thread, for data of a given size.

    Below the size of L1 it is L1's latency, below that of L2 it is L2's, above it is memory's, with
    the cost of looking up addresses. One operation is one read. The chain goes through all of the
    data, and the samples together go at least once around it.
    """
    lines = working_set_bytes // LINE
    if lines < 2:
        raise ValueError(
            f"working_set_bytes = {working_set_bytes}; allowed: at least two lines, {2 * LINE}"
        )
    device = _require_cuda(device, "latency")
    following = device.array(chase_chain(lines))
    position = device.zeros(1, np.uint32)
    rounds = chase_rounds(working_set_bytes)
    if working_set_bytes <= 2 * cache_bytes(device):  # once around: what fits in the L2 is there
        chase[1, 1](following, -(-lines // LINKS), position)
    timing = measure(lambda: chase[1, 1](following, rounds, position), device, SAMPLES)
    return Probe(
        timing,
        bytes=4 * LINKS * rounds,
        moved=SECTOR * LINKS * rounds,
        operations=LINKS * rounds,
        in_cache=not beyond_cache(working_set_bytes, device),
    )


def fma_rate(
    device: Device,
    dtype: Any = "float32",
    accumulators: int = 8,
    threads: int = 256,
    blocks_per_multiprocessor: int = 32,
    steps: int | None = None,
    links: int = LINKS,
) -> Probe:
    """Multiply-adds a second, by chains of them in registers.

    With many warps any number of chains keeps the units busy. With few (128 threads in one block
    per multiprocessor: one warp for each of its four schedulers) only independent chains do: the
    rate grows with `accumulators` until it covers the unit's latency of about four clocks.

    Parameters
    ----------
    dtype : float32 or float64
    accumulators : int
        Independent chains in a thread, 1 to 8.
    threads, blocks_per_multiprocessor : int
        In a block, and blocks for each multiprocessor.
    steps : int, optional
        Rounds; so many that a launch takes a good fraction of a millisecond without it.
    links : int
        FMA of each chain per round.
    """
    device = _require_cuda(device, "fma_rate")
    real = np.dtype(dtype).type
    kernel = make_fma(dtype, accumulators, links)
    blocks = blocks_per_multiprocessor * device.multiprocessors
    count = blocks * threads
    rounds = steps or max(256, 2**21 // (blocks_per_multiprocessor * threads))
    start = device.array(np.linspace(0, 1, count, dtype=dtype))
    out = device.empty(count, dtype)
    x, y = real(0.999), real(0.001)
    timing = measure(lambda: kernel[blocks, threads](start, x, y, np.int32(rounds), out), device)
    flops = 2 * links * accumulators * rounds * count
    return Probe(timing, bytes=2 * count * real(0).itemsize, flops=flops)


def chain_latency(
    device: Device, dtype: Any, operation: str, chains: int = 1, full: bool = False
) -> Probe:
    """One operation again and again: how long a thread waits for its result, or for its turn.

    With one chain the time per operation is the latency. With several, operations of one thread can
    overlap, and it is the interval from one to the next: the same as the latency where they cannot.

    Parameters
    ----------
    device : Device
    dtype : float32 or float64
    operation : str
        Of `OPERATIONS` or `BRANCHING`, see `make_link`.
    chains : int
        Independent ones in each thread: 1, 2, 4 or 8.
    full : bool
        Whether all multiprocessors have as many threads as fit; else there is a single warp.

    Returns
    -------
    Probe
        One operation is one of a thread.
    """
    device, real = _require_cuda(device, "chain_latency"), np.dtype(dtype).type
    kernel, rounds = make_chain(dtype, operation, chains), CHAIN_ROUNDS
    threads, blocks = WARP, 1
    if full:
        limits = architecture(device.compute_capability)
        threads = 256
        blocks = limits.warps * WARP // threads * device.multiprocessors
    start = device.array(np.linspace(1, 2, blocks * threads, dtype=real))
    out = device.empty(blocks * threads, real)
    a, b, c = real(0.999), real(0.001), real(2)  # no chain comes near the ends of fp32's range
    arguments = start, a, b, c, np.int32(rounds), out
    timing = measure(lambda: kernel[blocks, threads](*arguments), device)
    return Probe(timing, operations=OPERATIONS_A_ROUND * rounds)


def clock_cycle(device: Device, full: bool = False) -> Probe:
    """How long a clock cycle takes, by a kernel that counts them.

    Parameters
    ----------
    device : Device
    full : bool
        Whether all multiprocessors count; else one.
    """
    device = _require_cuda(device, "clock_cycle")
    kernel, cycles = wait_clocks(), 2**22
    blocks = device.multiprocessors if full else 1
    passed = device.empty(blocks, np.int32)
    timing = measure(lambda: kernel[blocks, WARP](cycles, passed), device)
    return Probe(timing, operations=cycles)


def divergence(device: Device, branches: int, unit: int = 1) -> Probe:
    """Threads that take `branches` different branches, changing every `unit` threads.

    A warp goes through each branch that one of its lanes takes, with the others idle: with unit = 1
    the time grows with the number of branches, with unit = 32 it does not. One operation is one
    thread's branch.
    """
    if branches < 1 or unit < 1:
        raise ValueError(f"branches = {branches}, unit = {unit}; allowed: from 1")
    device = _require_cuda(device, "divergence")
    kernel, steps, x = make_divergence("float32"), np.int32(1024), np.float32(0.5)
    threads, blocks = 256, 32 * device.multiprocessors
    shift = device.array(np.arange(1, branches + 1, dtype=np.float32))
    out = device.empty(blocks * threads, np.float32)
    timing = measure(lambda: kernel[blocks, threads](shift, unit, steps, x, out), device)
    taken = max(len({lane // unit % branches for lane in range(w, w + WARP)}) for w in (0, WARP))
    return Probe(
        timing,
        flops=2 * int(steps) * blocks * threads,
        operations=blocks * threads,
        slowdown=float(taken),
    )


def occupancy(device: Device, shared_bytes: int) -> Probe:
    """The grid-stride copy with so much unused shared memory that few blocks fit a multiprocessor.

    Bandwidth is bytes in flight over latency: with few threads resident, few loads are in flight.

    Parameters
    ----------
    device : Device
    shared_bytes : int
        Dynamic shared memory of a block of 64 threads, 0 to 48 KiB.
    """
    if not 0 <= shared_bytes <= STATIC_SHARED_LIMIT:
        raise ValueError(f"shared_bytes = {shared_bytes}; allowed: 0 to {STATIC_SHARED_LIMIT}")
    device = _require_cuda(device, "occupancy")
    threads, limits = 64, architecture(device.compute_capability)
    resident = threads * resident_blocks(limits, threads, COPY_REGISTERS, shared_bytes)
    n = _elements_beyond_cache(device, 4, 2 * CACHE_FACTOR)
    x, y = device.array(np.arange(n, dtype=np.float32)), device.empty(n, np.float32)
    blocks = device.multiprocessors * max(1, resident // threads)
    timing = measure(lambda: copy_grid_stride[blocks, threads, shared_bytes](x, y), device)
    return Probe(
        timing,
        bytes=8 * n,
        moved=8 * n,
        in_cache=not beyond_cache(4 * n, device),
        resident_threads=resident,
    )


def atomics(device: Device, kind: str) -> Probe:
    """Sum 2^22 numbers by atomics: at "one address", at a "warp address", or "shuffled" first.

    Atomics at one address are done one after another. One operation is one number summed; the
    shuffled sum does an atomic for each 32 of them.
    """
    kernels = {
        "one address": sum_one_address,
        "warp address": sum_warp_address,
        "shuffled": make_sum_shuffled("float32"),
    }
    if kind not in kernels:
        raise ValueError(f"kind = {kind!r}; allowed are {', '.join(map(repr, kernels))}")
    device = _require_cuda(device, "atomics")
    kernel, n = kernels[kind], 2**22
    x = device.array(np.random.default_rng(0).integers(0, 2, n).astype(np.float32))
    total = device.zeros(-(-n // WARP) if kind == "warp address" else 1, np.float32)
    timing = measure(lambda: kernel[-(-n // 256), 256](x, total), device)
    return Probe(timing, bytes=4 * n, operations=n, in_cache=not beyond_cache(4 * n, device))


def read_bandwidth(device: Device, working_set_bytes: int) -> Probe:
    """Read data of a given size again and again by all multiprocessors, past their L1 caches.

    Below the size of the L2 it is the L2's bandwidth, far above it memory's, for reads alone.
    """
    least = 2**20
    if working_set_bytes < least or working_set_bytes % 16:
        raise ValueError(
            f"working_set_bytes = {working_set_bytes}; allowed: multiples of 16 from {least}"
        )
    device = _require_cuda(device, "read_bandwidth")
    kernel, vectors = read_again(), working_set_bytes // 16
    # Few threads with four loads of 16 bytes under way each: so small sets keep all of them busy.
    threads, blocks = 256, 2 * device.multiprocessors
    rounds = max(1, 2**30 // working_set_bytes)
    x = device.array(np.arange(4 * vectors, dtype=np.float32))
    out = device.empty(blocks * threads, np.float32)
    timing = measure(lambda: kernel[blocks, threads](x, rounds, vectors, out), device)
    in_cache = not beyond_cache(working_set_bytes, device)
    nbytes = working_set_bytes * rounds
    return Probe(timing, bytes=nbytes, moved=0 if in_cache else nbytes, in_cache=in_cache)


def tensor_rate(device: Device, dtype: Any, tiles: int = 4) -> Probe:
    """Multiply-adds a second on tensor cores: fp64, or fp32 by three products in TF32.

    An upper bound for kernels: operands are split before the clock runs, and sums stay in the
    tensor cores, which cut them off; a kernel that needs all of fp32 adds outside, see
    ``gpu/tensor.cuh``. The flops are those of the product, counted once: not thrice in fp32.

    Parameters
    ----------
    device : Device
        Of compute capability 8.0 or newer.
    dtype : float32 or float64
    tiles : int
        Independent sums in a warp, 1 to 8.
    """
    kernel, real = tensor_products(dtype, tiles), np.dtype(dtype)
    device = _require_cuda(device, "tensor_rate")
    if device.compute_capability < TENSOR_CAPABILITY:
        raise RuntimeError(
            f"{device.name} has compute capability {device.compute_capability}; tensor cores for "
            f"fp64 and TF32 exist from {TENSOR_CAPABILITY} on"
        )
    threads, blocks, rounds = 256, 4 * device.multiprocessors, 256
    pair = 8 // real.itemsize
    a = device.array(np.linspace(-1, 1, WARP * 2 * pair, dtype=real))
    b = device.array(np.linspace(-1, 1, WARP * tiles * pair, dtype=real))
    out = device.empty(blocks * threads, real)
    timing = measure(lambda: kernel[blocks, threads](a, b, rounds, out), device)
    products = blocks * threads // WARP * tiles * rounds * LINKS
    return Probe(timing, flops=2 * 16 * 8 * (4 * pair) * products)


def launch_cost(device: Device, kind: str) -> Probe:
    """What the launch of a kernel that does nothing costs, of many in a row.

    The clock is the host's: from the first of `LAUNCHES` until the device has finished all.

    Parameters
    ----------
    device : Device
    kind : str
        "python": as in the book, ``nothing[1, 32](x)``; "numba": Numba's dispatcher alone, with the
        launch configured and the array converted beforehand; "raw": a compiled CUDA C++ kernel
        through CuPy, with no dispatcher; "graph": replayed from a captured CUDA graph.
    """
    if kind not in LAUNCH_KINDS:
        raise ValueError(f"kind = {kind!r}; allowed are {', '.join(map(repr, LAUNCH_KINDS))}")
    device = _require_cuda(device, "launch_cost")
    launch_all = _launches(device, kind)
    seconds = []
    for _ in range(3 + LAUNCH_SAMPLES):  # three to warm up
        device.synchronize()
        start = time.perf_counter()
        launch_all()
        device.synchronize()
        seconds.append((time.perf_counter() - start) / LAUNCHES)
    return Probe(Timing(tuple(seconds[3:]), LAUNCHES, True), operations=1)


def _launches(device: Device, kind: str) -> Callable[[], None]:
    """A function that launches the empty kernel `LAUNCHES` times."""
    x = device.zeros(1, np.float32)
    if kind == "numba":
        configured, converted = nothing.dispatcher[1, 32], cuda.as_cuda_array(x, sync=False)
        launch = lambda: configured(converted)  # noqa: E731
    elif kind == "raw":
        function = load(HERE / "nothing.cu", "nothing").function
        launch = lambda: function((1,), (32,), (x,))  # noqa: E731
    else:
        launch = lambda: nothing[1, 32](x)  # noqa: E731

    def launch_all() -> None:
        for _ in range(LAUNCHES):
            launch()

    return device.capture(launch_all) if kind == "graph" else launch_all


def _require_cuda(device: Device | str | None, probe: str) -> Device:
    device = as_device(device)
    if device.kind != "cuda":
        raise RuntimeError(
            f"{probe} measures a CUDA device, and this is {device.name}: {device.sentence} "
            "Recorded measurements are in chapters/records."
        )
    return device


def _elements_beyond_cache(device: Device, itemsize: int, times: int) -> int:
    """The smallest power of two of elements that is `times` the L2, and at least 2^22."""
    least = times * cache_bytes(device) / itemsize
    return max(2**22, 2 ** math.ceil(math.log2(least)))
