"""A strict CUDA simulator: a kernel's Python function, one greenlet a thread, no GPU and no set-up.

It runs what Numba would compile, and refuses what hardware would refuse or would get wrong in
silence: too many threads, too much shared memory, barriers that not every thread reaches, indices
out of range, shared memory read before it is written, and races (two threads at one address, one of
them writing, with no barrier between). Only correctness is simulated, never time.
"""

from __future__ import annotations

import dis
import math
import operator
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import greenlet
import numpy as np

WARP = 32
MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
STATIC_SHARED_LIMIT = 48 * 1024  # bytes of shared.array(...) a block, on every device
SHARED_LIMIT = 227 * 1024  # bytes with dynamic shared memory, compute capability 9.0
FULL_MASK = 0xFFFFFFFF


class SimulatorError(RuntimeError):
    """A kernel did what a GPU refuses or would get wrong; the message says who and where."""


class BarrierError(SimulatorError):
    """Threads of one block, or lanes of one warp, wait at different barriers or not at all."""


class RaceError(SimulatorError):
    """Two threads touched one address without a barrier between, and one of them wrote."""


class UndefinedReadError(SimulatorError):
    """A thread read shared memory that no thread had written."""


# ------------------------------------------------------------------------------------------
# Threads, blocks and the clock that orders them
# ------------------------------------------------------------------------------------------


class _Dim3:
    __slots__ = ("x", "y", "z")

    def __init__(self, xyz: Iterable[int]) -> None:
        self.x, self.y, self.z = xyz

    def __repr__(self) -> str:
        return f"({self.x}, {self.y}, {self.z})"


class _Thread:
    """One CUDA thread: a greenlet and what it waits for."""

    __slots__ = ("block", "greenlet", "index", "lane", "linear", "waits_at", "waits_for")

    def __init__(self, block: _Block, linear: int, index: tuple[int, int, int]) -> None:
        self.block = block
        self.linear = linear
        self.lane = linear % WARP
        self.index = _Dim3(index)
        self.waits_for: Any = None
        self.waits_at: tuple | None = None
        self.greenlet = greenlet.greenlet(block.grid.run_thread)

    def __repr__(self) -> str:
        return f"block {self.block.index} thread {self.index}"


class _Block:
    """One thread block: its threads, its shared memory and when it last met a barrier."""

    def __init__(self, grid: _Grid, index: tuple[int, int, int]) -> None:
        self.grid = grid
        self.index = _Dim3(index)
        self.shared: dict[tuple, Array] = {}
        self.static_bytes = 0
        self.dynamic: Array | None = None
        self.barrier_time = 0
        self.published: dict[int, Any] = {}  # what lanes show one another in a warp operation
        bx, by, _ = grid.block_dim
        self.threads = [
            _Thread(self, i, (i % bx, i // bx % by, i // (bx * by))) for i in range(grid.n_threads)
        ]
        # warp_time[w][i, j]: when lanes i and j of warp w last met in a warp operation
        self.warp_time: dict[int, np.ndarray] = {}

    def warp_times(self, warp: int) -> np.ndarray:
        if warp not in self.warp_time:
            self.warp_time[warp] = np.full((WARP, WARP), -1)
        return self.warp_time[warp]


class _Grid:
    """One launch."""

    def __init__(
        self,
        function: Callable,
        grid_dim: tuple[int, int, int],
        block_dim: tuple[int, int, int],
        args: tuple,
        dynamic_bytes: int,
    ) -> None:
        self.grid_dim = grid_dim
        self.block_dim = block_dim
        self.n_threads = math.prod(block_dim)
        self.dynamic_bytes = dynamic_bytes
        self.clock = 1
        self.grid_barrier_time = 0
        self.name = function.__name__
        self.args = args
        self.function = function
        self.scheduler: Any = None

    def run_thread(self) -> None:
        if self.function(*self.args) is not None:
            raise SimulatorError(f"kernel {self.name} returns a value; a kernel must return None")

    def ordered(self, thread: _Thread, other: _Thread, time: int) -> bool:
        """Whether a barrier lies between what `other` did at `time` and now, for `thread`."""
        if thread is other or self.grid_barrier_time > time:
            return True
        if thread.block is not other.block:
            return False
        block = thread.block
        if block.barrier_time > time:
            return True
        warp = thread.linear // WARP
        return (
            warp == other.linear // WARP
            and warp in block.warp_time
            and block.warp_time[warp][thread.lane, other.lane] > time
        )

    # -- the scheduler ---------------------------------------------------------------------

    def run(self, blocks: list[_Block]) -> None:
        """Run blocks to their end; together, as a cooperative launch does."""
        self.scheduler = greenlet.getcurrent()
        while True:
            for block in blocks:
                self._run_block(block)
            alive = [b for b in blocks if b.threads]
            if not alive:
                return
            if len(alive) < len(blocks):
                raise BarrierError(
                    f"kernel {self.name}: {len(blocks) - len(alive)} of {len(blocks)} blocks ended "
                    f"while the others wait at a grid barrier ({_where(alive[0].threads[0])})"
                )
            self.clock += 1
            self.grid_barrier_time = self.clock
            for block in blocks:
                for thread in block.threads:
                    thread.waits_for = None

    def _run_block(self, block: _Block) -> None:
        """Run one block until its threads have ended or all wait at the grid barrier."""
        global _current
        while block.threads:
            arrived = 0
            first = None
            together = True  # whether all that wait, wait at one barrier
            for thread in block.threads:
                if thread.waits_for is None:
                    _current = thread
                    thread.greenlet.switch()
                if thread.waits_for is None:
                    continue  # it has returned
                arrived += 1
                if first is None:
                    first = thread
                elif thread.waits_at != first.waits_at or thread.waits_for != first.waits_for:
                    together = False
            if arrived < len(block.threads):
                block.threads = [t for t in block.threads if not t.greenlet.dead]
                if not block.threads:
                    break
            if not together or first.waits_for[0] == "warp":
                if any(t.waits_for[0] == "warp" for t in block.threads):
                    self._release_warps(block)
                    continue
            if arrived < self.n_threads:
                raise BarrierError(
                    f"kernel {self.name}, {first} waits at a {_barrier(first)} that "
                    f"{self.n_threads - arrived} of {self.n_threads} threads of the "
                    "block never reach: they have returned"
                )
            if not together:
                other = next(t for t in block.threads if t.waits_at != first.waits_at)
                raise BarrierError(
                    f"kernel {self.name}: divergent barrier. {first} waits at a {_barrier(first)}, "
                    f"{other} at a {_barrier(other)}"
                )
            if first.waits_for[0] == "grid":
                break
            self.clock += 1
            block.barrier_time = self.clock
            for thread in block.threads:
                thread.waits_for = None

    def _release_warps(self, block: _Block) -> None:
        by_warp: dict[int, dict[int, _Thread]] = {}
        for thread in block.threads:
            by_warp.setdefault(thread.linear // WARP, {})[thread.lane] = thread
        progressed = False
        for warp, lanes in by_warp.items():
            for thread in list(lanes.values()):
                if thread.waits_for is None or thread.waits_for[0] != "warp":
                    continue
                mask = thread.waits_for[1]
                named = [lane for lane in range(WARP) if mask >> lane & 1]
                if thread.lane not in named:
                    raise BarrierError(
                        f"kernel {self.name}, {thread}: {_barrier(thread)} with a mask {mask:#010x} "
                        "that does not name the lane itself"
                    )
                # A block's last warp may be short: the mask may name lanes that never existed.
                existing = min(WARP, self.n_threads - warp * WARP)
                group = [lanes.get(lane) for lane in named if lane < existing]
                if all(t is not None and t.waits_for == thread.waits_for for t in group):
                    self.clock += 1
                    member = [t.lane for t in group]
                    block.warp_times(warp)[np.ix_(member, member)] = self.clock
                    for t in group:
                        t.waits_for = None
                    progressed = True
        if not progressed and not any(t.waits_for is None for t in block.threads):
            waiting = next(t for t in block.threads if t.waits_for[0] == "warp")
            raise BarrierError(
                f"kernel {self.name}, {waiting}: {_barrier(waiting)} names lanes in its mask "
                f"{waiting.waits_for[1]:#010x} that wait elsewhere or have returned"
            )


def _where(thread: _Thread) -> str:
    code, offset = thread.waits_at or (None, None)
    if code is None:
        return "unknown line"
    lines = {start: line for start, line in dis.findlinestarts(code)}
    line = max((s for s in lines if s <= offset), default=None)
    return f"{code.co_name}, line {lines.get(line)}"


def _barrier(thread: _Thread) -> str:
    kind = {"block": "barrier", "warp": "warp operation", "grid": "grid barrier"}
    return f"{kind[thread.waits_for[0]]} ({_where(thread)})"


_current: _Thread = None  # type: ignore[assignment]  # the thread that runs now


_BLOCK = ("block",)
_GRID = ("grid",)


def _wait(reason: tuple, depth: int = 2) -> None:
    """Give way to the scheduler until `reason` is fulfilled."""
    thread = _current
    frame = sys._getframe(depth)
    thread.waits_for = reason
    thread.waits_at = (frame.f_code, frame.f_lasti)
    thread.block.grid.scheduler.switch()


# ------------------------------------------------------------------------------------------
# Arrays that watch who touches them
# ------------------------------------------------------------------------------------------


class Array:
    """A C-contiguous array as a simulated kernel sees it: bounds, definedness and races are checked.

    `written` and `read` remember, by byte address, who last wrote (thread, time, atomic?) and which
    two different threads last read; times are the launch's barrier clock. Arrays that share memory
    (one argument given twice, dynamic shared memory seen as two types) share these two tables.
    """

    __slots__ = (
        "base",
        "data",
        "grid",
        "must_be_written",
        "name",
        "ndim",
        "offset",
        "read",
        "shape",
        "strides",
        "unit",
        "written",
    )

    def __init__(
        self,
        data: np.ndarray,
        name: str,
        grid: _Grid,
        tables: tuple[dict, dict],
        must_be_written: bool = False,
    ) -> None:
        self.data = data.reshape(-1)
        self.shape = data.shape
        self.ndim = data.ndim
        self.strides = tuple(math.prod(data.shape[i + 1 :]) for i in range(data.ndim))
        self.offset = 0
        self.name = name
        self.grid = grid
        self.must_be_written = must_be_written
        self.written, self.read = tables
        self.base = data.__array_interface__["data"][0]
        self.unit = data.itemsize

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def _view(self, index: tuple) -> Array:
        """The part that a slice, or fewer indices than dimensions, selects."""
        view = object.__new__(Array)
        for slot in ("data", "name", "grid", "must_be_written", "written", "read", "base", "unit"):
            setattr(view, slot, getattr(self, slot))
        offset, shape, strides = self.offset, [], []
        index = index + (slice(None),) * (self.ndim - len(index))
        for axis, i in enumerate(index):
            if isinstance(i, slice):
                start, stop, step = i.indices(self.shape[axis])
                offset += start * self.strides[axis]
                shape.append(len(range(start, stop, step)))
                strides.append(step * self.strides[axis])
            else:
                self._check(i, axis, index)
                offset += i * self.strides[axis]
        view.offset, view.shape, view.strides = offset, tuple(shape), tuple(strides)
        view.ndim = len(shape)
        return view

    def _check(self, i: int, axis: int, index: Any) -> None:
        if not 0 <= i < self.shape[axis]:
            raise IndexError(
                f"kernel {self.grid.name}, {_current}: index {index} of {self.name} is out of range, "
                f"its shape is {self.shape} (a GPU would read or write somewhere else)"
            )

    def _element(self, index: Any) -> int:
        """Position in `data` of one element, or -1 where `index` selects more than one."""
        if self.ndim == 1 and not isinstance(index, (tuple, slice)):
            i = operator.index(index)
            if not 0 <= i < self.shape[0]:
                self._check(i, 0, i)
            return self.offset + i * self.strides[0]
        if not isinstance(index, tuple):
            index = (index,)
        if len(index) > self.ndim:
            raise IndexError(
                f"kernel {self.grid.name}: {self.name} has {self.ndim} dimensions, not {len(index)}"
            )
        if len(index) < self.ndim:
            return -1
        element = self.offset
        for axis, i in enumerate(index):
            if isinstance(i, slice):
                return -1
            if not 0 <= i < self.shape[axis]:
                self._check(i, axis, index)
            element += operator.index(i) * self.strides[axis]
        return element

    def _race(self, other: tuple, mine: str, theirs: str, index: Any) -> None:
        raise RaceError(
            f"kernel {self.grid.name}: race on {self.name}[{index}]. {_current} {mine} what "
            f"{other[0]} {theirs}, with no barrier between"
        )

    def __getitem__(self, index: Any) -> Any:
        element = self._element(index)
        if element < 0:
            return self._view(index if isinstance(index, tuple) else (index,))
        key = self.base + element * self.unit
        me = _current
        grid = self.grid
        last = self.written.get(key)
        if last is None:
            if self.must_be_written:
                raise UndefinedReadError(
                    f"kernel {grid.name}, {me} reads {self.name}[{index}], which no thread has written"
                )
        elif last[0] is not me and not grid.ordered(me, last[0], last[1]):
            self._race(last, "reads", "wrote", index)
        readers = self.read.get(key)
        if readers is None or readers[0] is me:
            self.read[key] = (me, grid.clock, *(readers[2:] if readers else (None, 0)))
        else:
            self.read[key] = (me, grid.clock, readers[0], readers[1])
        data = self.data
        # Integers become Python's, which like Numba's 64-bit ones do not wrap at 32 bits.
        return data[element] if data.dtype.kind in "fcV" else data.item(element)

    def _claim(self, index: Any, atomic: bool) -> int:
        """Check that this thread may write an element now, remember that it did, return where."""
        element = self._element(index)
        if element < 0:
            raise SimulatorError(
                f"kernel {self.grid.name}: assignment to the slice {self.name}[{index}]; write element by element"
            )
        key = self.base + element * self.unit
        me = _current
        grid = self.grid
        last = self.written.get(key)
        if (
            last is not None
            and last[0] is not me
            and not (atomic and last[2])
            and not grid.ordered(me, last[0], last[1])
        ):
            self._race(last, "writes", "wrote", index)
        readers = self.read.get(key)
        if readers is not None:
            for reader, time in (readers[:2], readers[2:]):
                if reader is not None and reader is not me and not grid.ordered(me, reader, time):
                    self._race((reader, time), "writes", "read", index)
        self.written[key] = (me, grid.clock, atomic)
        return element

    def __setitem__(self, index: Any, value: Any) -> None:
        self.data[self._claim(index, atomic=False)] = value

    def update(self, index: Any, function: Callable[[Any], Any]) -> Any:
        """An atomic read-modify-write; returns the old value."""
        element = self._claim(index, atomic=True)
        old = self.data[element]
        self.data[element] = function(old)
        return old


# ------------------------------------------------------------------------------------------
# The module that kernels know as `cuda`
# ------------------------------------------------------------------------------------------


def _dtype(dtype: Any) -> np.dtype:
    """NumPy dtype of a NumPy type, a Numba type or a string."""
    name = getattr(dtype, "name", None)
    return np.dtype(name if name is not None and not isinstance(dtype, (type, np.dtype)) else dtype)


def _shape(shape: Any) -> tuple[int, ...]:
    shape = shape if isinstance(shape, tuple) else (shape,)
    if not all(isinstance(n, (int, np.integer)) for n in shape):
        raise SimulatorError(f"array shape {shape}: shapes must be constant integers")
    return tuple(int(n) for n in shape)


class _Shared:
    def array(self, shape: Any, dtype: Any, alignment: int | None = None) -> Array:
        block, frame = _current.block, sys._getframe(1)
        dtype, shape = _dtype(dtype), _shape(shape)
        if shape == (0,):
            return self._dynamic(block, dtype)
        call_site = (frame.f_code, frame.f_lasti)
        if call_site not in block.shared:
            block.static_bytes += math.prod(shape) * dtype.itemsize
            if block.static_bytes > STATIC_SHARED_LIMIT:
                raise SimulatorError(
                    f"kernel {block.grid.name}: {block.static_bytes} bytes of static shared memory a block; "
                    f"a device has {STATIC_SHARED_LIMIT}"
                )
            name = f"shared array ({frame.f_code.co_name}, line {frame.f_lineno})"
            block.shared[call_site] = Array(
                np.empty(shape, dtype), name, block.grid, ({}, {}), must_be_written=True
            )
        return block.shared[call_site]

    def _dynamic(self, block: _Block, dtype: np.dtype) -> Array:
        count = block.grid.dynamic_bytes // dtype.itemsize
        if block.dynamic is None:
            storage = np.empty(block.grid.dynamic_bytes, np.uint8)
            block.dynamic = Array(
                storage, "dynamic shared memory", block.grid, ({}, {}), must_be_written=True
            )
        all_bytes = block.dynamic
        typed = all_bytes.data[: count * dtype.itemsize].view(dtype)
        tables = (all_bytes.written, all_bytes.read)
        return Array(typed, all_bytes.name, block.grid, tables, must_be_written=True)


class _Local:
    def array(self, shape: Any, dtype: Any, alignment: int | None = None) -> np.ndarray:
        """Registers or local memory: undefined, so NaN, or an integer that no index survives."""
        dtype = _dtype(dtype)
        poison = np.nan if dtype.kind in "fc" else np.iinfo(dtype).max
        return np.full(_shape(shape), poison, dtype)


class _Const:
    def array_like(self, array: np.ndarray) -> Array:
        return Array(np.ascontiguousarray(array), "constant array", _current.block.grid, ({}, {}))


class _Atomic:
    """Atomic operations on simulated arrays; each returns the old value."""

    @staticmethod
    def add(array: Array, index: Any, value: Any) -> Any:
        return array.update(index, lambda old: old + array.dtype.type(value))

    @staticmethod
    def sub(array: Array, index: Any, value: Any) -> Any:
        return array.update(index, lambda old: old - array.dtype.type(value))

    @staticmethod
    def max(array: Array, index: Any, value: Any) -> Any:
        return array.update(index, lambda old: max(old, value))

    @staticmethod
    def min(array: Array, index: Any, value: Any) -> Any:
        return array.update(index, lambda old: min(old, value))

    @staticmethod
    def exch(array: Array, index: Any, value: Any) -> Any:
        return array.update(index, lambda old: value)

    @staticmethod
    def cas(array: Array, index: Any, expected: Any, value: Any) -> Any:
        return array.update(index, lambda old: value if old == expected else old)


class _GridGroup:
    @staticmethod
    def sync() -> int:
        _wait(_GRID)
        return 0


class _CooperativeGroups:
    @staticmethod
    def this_grid() -> _GridGroup:
        return _GridGroup()


def _axes(ndim: int, values: tuple[int, int, int]) -> int | tuple[int, ...]:
    if ndim not in (1, 2, 3):
        raise SimulatorError(f"ndim = {ndim}: a grid has 1, 2 or 3 dimensions")
    return values[0] if ndim == 1 else values[:ndim]


class SimulatedCuda:
    """What a kernel finds under the name `cuda` while it is simulated."""

    shared = _Shared()
    local = _Local()
    const = _Const()
    atomic = _Atomic()
    cg = _CooperativeGroups()
    warpsize = WARP

    threadIdx = property(lambda self: _current.index)
    blockIdx = property(lambda self: _current.block.index)
    blockDim = property(lambda self: _Dim3(_current.block.grid.block_dim))
    gridDim = property(lambda self: _Dim3(_current.block.grid.grid_dim))
    laneid = property(lambda self: _current.lane)

    def grid(self, ndim: int) -> int | tuple[int, ...]:
        t, b, n = _current.index, _current.block.index, _current.block.grid.block_dim
        return _axes(ndim, (t.x + b.x * n[0], t.y + b.y * n[1], t.z + b.z * n[2]))

    def gridsize(self, ndim: int) -> int | tuple[int, ...]:
        grid = _current.block.grid
        return _axes(ndim, tuple(g * b for g, b in zip(grid.grid_dim, grid.block_dim, strict=True)))

    # -- barriers --------------------------------------------------------------------------

    def syncthreads(self) -> None:
        _wait(_BLOCK)

    def _vote(self, predicate: Any) -> list[bool]:
        block = _current.block
        block.published[_current.linear] = bool(predicate)
        _wait(_BLOCK, depth=3)
        votes = [block.published[t] for t in range(block.grid.n_threads)]
        _wait(_BLOCK, depth=3)
        return votes

    def syncthreads_count(self, predicate: Any) -> int:
        return sum(self._vote(predicate))

    def syncthreads_and(self, predicate: Any) -> int:
        return int(all(self._vote(predicate)))

    def syncthreads_or(self, predicate: Any) -> int:
        return int(any(self._vote(predicate)))

    def syncwarp(self, mask: int = FULL_MASK) -> None:
        _wait(("warp", mask & FULL_MASK, "syncwarp"))

    def threadfence(self) -> None:
        """Orders one thread's own writes, which here are in order already."""

    threadfence_block = threadfence_system = threadfence

    def nanosleep(self, nanoseconds: int) -> None:
        """Time is not simulated."""

    # -- warp operations -------------------------------------------------------------------

    def _exchange(self, mask: int, value: Any, what: str) -> dict[int, Any]:
        """Publish a value to the lanes of `mask`; returns theirs by lane."""
        thread = _current
        first = thread.linear - thread.lane
        published = thread.block.published
        published[thread.linear] = value
        _wait(("warp", mask & FULL_MASK, what), depth=3)
        theirs = {
            lane: published[first + lane]
            for lane in range(min(WARP, thread.block.grid.n_threads - first))
            if mask >> lane & 1
        }
        _wait(("warp", mask & FULL_MASK, what), depth=3)
        return theirs

    def _shuffle(self, theirs: dict[int, Any], source: int, own: Any) -> Any:
        if not 0 <= source < WARP:
            return own
        if source not in theirs:
            raise SimulatorError(
                f"kernel {_current.block.grid.name}, {_current} shuffles from lane {source}, which its mask "
                "does not name: the value is undefined"
            )
        return theirs[source]

    def shfl_sync(self, mask: int, value: Any, source: int) -> Any:
        theirs = self._exchange(mask, value, "shfl_sync")
        return self._shuffle(theirs, source % WARP, value)

    def shfl_up_sync(self, mask: int, value: Any, delta: int) -> Any:
        theirs = self._exchange(mask, value, "shfl_up_sync")
        return self._shuffle(theirs, _current.lane - delta, value)

    def shfl_down_sync(self, mask: int, value: Any, delta: int) -> Any:
        theirs = self._exchange(mask, value, "shfl_down_sync")
        return self._shuffle(theirs, _current.lane + delta, value)

    def shfl_xor_sync(self, mask: int, value: Any, lane_mask: int) -> Any:
        theirs = self._exchange(mask, value, "shfl_xor_sync")
        return self._shuffle(theirs, _current.lane ^ lane_mask, value)

    def ballot_sync(self, mask: int, predicate: Any) -> int:
        votes = self._exchange(mask, bool(predicate), "ballot_sync")
        return sum(1 << lane for lane, vote in votes.items() if vote)

    def all_sync(self, mask: int, predicate: Any) -> bool:
        return all(self._exchange(mask, bool(predicate), "all_sync").values())

    def any_sync(self, mask: int, predicate: Any) -> bool:
        return any(self._exchange(mask, bool(predicate), "any_sync").values())

    def eq_sync(self, mask: int, predicate: Any) -> bool:
        return len(set(self._exchange(mask, bool(predicate), "eq_sync").values())) == 1

    def match_any_sync(self, mask: int, value: Any) -> int:
        theirs = self._exchange(mask, value, "match_any_sync")
        return sum(1 << lane for lane, other in theirs.items() if other == value)

    def lanemask_lt(self) -> int:
        return (1 << _current.lane) - 1

    # -- arithmetic ------------------------------------------------------------------------

    @staticmethod
    def fma(a: Any, b: Any, c: Any) -> Any:
        """a * b + c, rounded twice where hardware rounds once."""
        return a * b + c

    @staticmethod
    def selp(condition: Any, a: Any, b: Any) -> Any:
        return a if condition else b

    @staticmethod
    def cbrt(x: Any) -> Any:
        return np.cbrt(x)

    @staticmethod
    def popc(x: int) -> int:
        return int(x & 0xFFFFFFFFFFFFFFFF).bit_count()

    @staticmethod
    def ffs(x: int) -> int:
        return (int(x) & -int(x)).bit_length()

    @staticmethod
    def clz(x: int) -> int:
        return WARP - int(x & FULL_MASK).bit_length()

    def __getattr__(self, name: str) -> Any:
        raise SimulatorError(f"cuda.{name} is not simulated")


cuda = SimulatedCuda()
_cuda_modules: list[Any] = [cuda]


def register_cuda_module(module: Any) -> None:
    """Name a module that kernels use as `cuda`; the simulator puts itself in its place."""
    if not any(module is known for known in _cuda_modules):
        _cuda_modules.append(module)


# ------------------------------------------------------------------------------------------
# From a kernel's function to a launch
# ------------------------------------------------------------------------------------------

# What Numba cannot compile for a device: found in the bytecode, refused before the launch.
_REFUSED_OPCODES = {
    "BUILD_LIST": "a list",
    "BUILD_MAP": "a dictionary",
    "BUILD_SET": "a set",
    "BUILD_STRING": "a formatted string",
    "LIST_APPEND": "a list comprehension",
    "YIELD_VALUE": "a generator",
    "IMPORT_NAME": "an import",
    "SETUP_FINALLY": "a try block",
    "PUSH_EXC_INFO": "a try block",
}


def _simulated(function: Callable, made: dict[int, Callable]) -> Callable:
    """The same function with `cuda` replaced by the simulator, in it and in what it calls."""
    function = getattr(function, "py_func", function)
    if id(function) in made:
        return made[id(function)]
    for instruction in dis.get_instructions(function):
        if instruction.opname in _REFUSED_OPCODES:
            raise SimulatorError(
                f"{function.__name__}: {_REFUSED_OPCODES[instruction.opname]} in a kernel; "
                "Numba compiles no such thing for a GPU"
            )

    def replacement(value: Any) -> Any:
        if any(value is module for module in _cuda_modules):
            return cuda
        if hasattr(value, "py_func"):
            return _simulated(value, made)
        return value

    names = set(function.__code__.co_names)
    namespace = {
        name: replacement(value) if name in names else value
        for name, value in function.__globals__.items()
    }
    cells = tuple(types.CellType() for _ in function.__closure__ or ())
    copy = types.FunctionType(
        function.__code__, namespace, function.__name__, function.__defaults__, cells
    )
    made[id(function)] = copy
    for cell, original in zip(cells, function.__closure__ or (), strict=True):
        cell.cell_contents = replacement(original.cell_contents)
    return copy


def _is_cooperative(functions: Iterable[Callable]) -> bool:
    return any("this_grid" in f.__code__.co_names for f in functions)


def _three(name: str, what: str, value: Any, limits: tuple[int, int, int]) -> tuple[int, int, int]:
    given = value if isinstance(value, tuple) else (value,)
    if not 1 <= len(given) <= 3 or not all(isinstance(n, (int, np.integer)) for n in given):
        raise TypeError(f"kernel {name}: {what} = {value!r} is not one to three integers")
    full = tuple(int(n) for n in given) + (1,) * (3 - len(given))
    for n, limit in zip(full, limits, strict=True):
        if not 1 <= n <= limit:
            raise SimulatorError(f"kernel {name}: {what} = {full}; a device allows 1 to {limits}")
    return full


def launch(function: Callable, grid: Any, block: Any, args: tuple, dynamic_bytes: int = 0) -> None:
    """Run a kernel's Python function over a grid of simulated threads.

    Parameters
    ----------
    function : function
        The kernel's Python function; names that refer to Numba's `cuda` and to device functions
        are replaced while it runs.
    grid, block : int or tuple of up to three ints
        Blocks in the grid and threads in a block.
    args : tuple
        C-contiguous NumPy arrays, which the kernel may change, and scalars.
    dynamic_bytes : int
        Bytes of dynamic shared memory.

    Raises
    ------
    SimulatorError, BarrierError, RaceError, UndefinedReadError, IndexError
        For what a GPU refuses or would get wrong; see the module's description.
    """
    name = function.__name__
    grid_dim = _three(name, "grid", grid, MAX_GRID)
    block_dim = _three(name, "block", block, MAX_BLOCK)
    if math.prod(block_dim) > MAX_THREADS:
        raise SimulatorError(
            f"kernel {name}: {math.prod(block_dim)} threads in a block {block_dim}; a device allows {MAX_THREADS}"
        )
    if dynamic_bytes > SHARED_LIMIT:
        raise SimulatorError(
            f"kernel {name}: {dynamic_bytes} bytes of dynamic shared memory; a device has at most {SHARED_LIMIT}"
        )
    made: dict[int, Callable] = {}
    simulated = _simulated(function, made)
    run = _Grid(simulated, grid_dim, block_dim, (), dynamic_bytes)
    names = function.__code__.co_varnames
    wrapped = []
    tables: tuple[dict, dict] = ({}, {})
    for position, argument in enumerate(args):
        if isinstance(argument, np.ndarray):
            if not argument.flags.c_contiguous:
                raise TypeError(
                    f"kernel {name}: argument {names[position]} is not C-contiguous; "
                    "pass numpy.ascontiguousarray(...)"
                )
            argument = Array(argument, names[position], run, tables)
        wrapped.append(argument)
    run.args = tuple(wrapped)
    indices = [
        (x, y, z)
        for z in range(grid_dim[2])
        for y in range(grid_dim[1])
        for x in range(grid_dim[0])
    ]
    with np.errstate(all="ignore"):  # a GPU computes on with infinities and NaN, and says nothing
        if _is_cooperative(made.values()):
            run.run([_Block(run, index) for index in indices])
        else:
            for index in indices:
                run.run([_Block(run, index)])
