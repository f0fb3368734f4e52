"""A strict CUDA simulator: a kernel's Python function, one greenlet a thread, no GPU and no set-up.

It runs what Numba would compile, and refuses what hardware would refuse or would get wrong in
silence: too many threads, too much shared memory, barriers that not every thread reaches, indices
out of range, shared memory read before it is written, and races (two threads at one address, one of
them writing, with no barrier between). Only correctness is simulated, never time.

What orders two accesses, after the CUDA C++ Programming Guide: a thread's own order, syncthreads
within a block, syncwarp among the lanes that it names, a grid barrier; not shuffles and votes,
which are no memory barriers, and not that threads belong to one warp. Atomic operations may meet
one another, but a plain access that meets one needs a barrier. Stricter than a device: threads that
write one value to one address race here, and so do kernels that hand data over by atomic flags and
fences; a block's barrier wants all its threads, even those that have returned; a negative index,
which Numba wraps round, is out of range.

Arithmetic is NumPy's: `0.5 * x` of a float32 x stays float32 here, where Numba makes it float64;
`dgbook.check.compile` finds those.

Who wants to see what threads do listens with `observe`: every line, every access to global or
shared memory, every wait. Nobody pays for it while nobody listens.
"""

from __future__ import annotations

import contextlib
import contextvars
import dis
import math
import operator
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise, product
from typing import Any, NamedTuple

import greenlet
import numpy as np

from dgbook.gpu.fast import FORMULAS
from dgbook.gpu.kernel import HAS_NUMBA_CUDA
from dgbook.gpu.kernel import cuda as compiled_cuda
from dgbook.gpu.limits import FULL_MASK, MAX_THREADS, STATIC_SHARED_LIMIT, WARP

MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
SHARED_LIMIT = 227 * 1024  # bytes with dynamic shared memory, compute capability 9.0
SPIN_LIMIT = 100_000  # atomic operations in a row that change nothing


class ThreadId(NamedTuple):
    """Which thread of a launch.

    Attributes
    ----------
    block, thread : tuple of three ints
        As in ``cuda.blockIdx`` and ``cuda.threadIdx``: x, y, z.
    linear : int
        Its number within the block; ``linear // 32`` is its warp, ``linear % 32`` its lane.
    """

    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    linear: int


class Access(NamedTuple):
    """One element of global or shared memory, touched by one thread.

    Attributes
    ----------
    thread : ThreadId
    kind : {"read", "write", "atomic"}
    array : str
        The name of the kernel's parameter, or of the variable that holds a shared array.
    shared : bool
    index : tuple of int
        As the kernel wrote it.
    element : int
        Its position in the array.
    address : int
        Its first byte, counted from the array's first one; in shared memory from the first one of
        the block's shared memory.
    nbytes : int
    function : str
        The kernel or the device function that did it.
    line : int or None
        In its file. None where nobody listened when it happened.
    """

    thread: ThreadId
    kind: str
    array: str
    shared: bool
    index: tuple[int, ...]
    element: int
    address: int
    nbytes: int
    function: str
    line: int | None


class Observer:
    """What `observe` tells; derive from it and define what you want to hear.

    Threads run one after another, each as far as it comes before it has to wait.
    """

    def line(self, thread: ThreadId, function: str, line: int, values: Mapping[str, Any]) -> None:
        """A thread comes to a line of the kernel, or of a device function, with these variables."""

    def access(self, access: Access) -> None:
        """A thread is about to touch memory; what is wrong with that is found afterwards."""

    def wait(self, thread: ThreadId, what: str, function: str, line: int) -> None:
        """A thread waits: "barrier", "vote", "grid barrier", or the name of a warp operation."""


class SimulatorError(RuntimeError):
    """A kernel did what a GPU refuses or would get wrong; the message says who and where.

    Attributes
    ----------
    thread : ThreadId or None
        Who did it; None if it was refused before a thread ran.
    line : int or None
        In the file of the kernel or of its device function.
    array : str or None
        The array that it was about, by its name in the kernel.
    index : tuple or None
    other : Access or None
        For a race, what the other thread did. Its line is known where `observe` listened.
    """

    thread: ThreadId | None = None
    line: int | None = None
    array: str | None = None
    index: tuple | None = None
    other: Access | None = None


class BarrierError(SimulatorError):
    """Threads of one block, or lanes of one warp, wait at different barriers or not at all."""


class RaceError(SimulatorError):
    """Two threads touched one address without a barrier between, and one of them wrote."""


class UndefinedReadError(SimulatorError):
    """A thread read shared memory that no thread had written."""


class OutOfRangeError(SimulatorError, IndexError):
    """An index lies outside its array."""


class NotAnIntegerError(SimulatorError):
    """An index is a float, as ``/`` makes one."""


class NotOneElementError(SimulatorError):
    """A kernel takes an array, or a part of one, for a number, or writes a number into it.

    Attributes
    ----------
    ndim : int
        Axes of what it took for a number.
    """

    ndim: int = 0


# ------------------------------------------------------------------------------------------
# Threads, warps, blocks, and the clock that orders them
# ------------------------------------------------------------------------------------------

# What a thread waits for; at a warp operation it is ("warp", mask, name of the operation).
_BLOCK = ("barrier",)
_VOTE = ("vote",)
_GRID = ("grid barrier",)
_END = ("end",)


class _Dim3:
    __slots__ = ("x", "y", "z")

    def __init__(self, xyz: Iterable[int]) -> None:
        self.x, self.y, self.z = xyz

    def __repr__(self) -> str:
        return f"({self.x}, {self.y}, {self.z})"


class _Thread:
    """One CUDA thread: a greenlet, what it waits for, and its stamp.

    The stamp (thread, time) goes on all that the thread touches. Its time is the clock when the
    thread last passed a barrier: a barrier lies between then and now if it was passed later.
    """

    __slots__ = (
        "block",
        "greenlet",
        "id",
        "index",
        "lane",
        "linear",
        "offers",
        "received",
        "spins",
        "stamp",
        "successor",
        "waits_at",
        "waits_for",
        "warp",
    )

    def __init__(self, warp: _Warp, linear: int, index: tuple[int, int, int]) -> None:
        self.warp = warp
        self.block = warp.block
        self.linear = linear
        self.lane = linear % WARP
        self.index = _Dim3(index)
        self.id = ThreadId(self.block.id, index, linear)
        self.waits_for: tuple | None = None
        self.waits_at: tuple = ()
        self.offers: Any = None  # what it brings to a vote or an exchange
        self.received: Any = None  # what it takes from there
        self.spins = 0
        self.stamp = (self, self.block.grid.clock)
        self.successor: _Thread | None = None
        self.greenlet = greenlet.greenlet(self.run)
        # NumPy keeps in the context whether it warns; a greenlet begins with an empty one.
        self.greenlet.gr_context = self.block.grid.context

    def run(self) -> None:
        grid = self.block.grid
        if grid.traced:
            sys.settrace(grid.trace)
        try:
            result = grid.function(*grid.args)
        except SimulatorError:
            raise
        except Exception as error:
            error.add_note(f"in kernel {grid.name}, {self}")
            raise
        if result is not None:
            raise SimulatorError(
                f"kernel {grid.name}, {self} returns {result!r}; a kernel must return nothing"
            )
        self.waits_for, self.waits_at = _END, ()

    def __repr__(self) -> str:
        return f"block {self.block.index} thread {self.index}"


class _Warp:
    """Up to 32 threads of a block and when they last met in a syncwarp."""

    __slots__ = ("barrier_time", "block", "met", "threads")

    def __init__(self, block: _Block) -> None:
        self.block = block
        self.threads: list[_Thread] = []
        self.barrier_time = 0  # when all its lanes last met
        self.met: np.ndarray | None = None  # [i, j]: until when lane i knows what lane j did

    def meet(self, lanes: list[int], clock: int) -> None:
        if len(lanes) == len(self.threads):
            self.barrier_time = clock
            return
        if self.met is None:
            self.met = np.zeros((WARP, WARP), np.int64)
        # What one of them has learned of other lanes, all of them know now.
        self.met[lanes] = self.met[lanes].max(axis=0)
        self.met[np.ix_(lanes, lanes)] = clock

    def ordered(self, lane: int, other: int, time: int) -> bool:
        return self.barrier_time > time or (
            self.met is not None and bool(self.met[lane, other] > time)
        )


class _Block:
    """One thread block: its threads, its shared memory and when it last met a barrier."""

    def __init__(self, grid: _Grid, index: tuple[int, int, int]) -> None:
        self.grid = grid
        self.id = index
        self.index = _Dim3(index)
        self.shared: dict[tuple, Array] = {}
        self.static_bytes = 0
        self.dynamic: np.ndarray | None = None
        self.dynamic_memory = _Memory()
        self.barrier_time = 0
        bx, by, _ = grid.block_dim
        self.warps = [_Warp(self) for _ in range(math.ceil(grid.n_threads / WARP))]
        self.threads = [
            _Thread(self.warps[i // WARP], i, (i % bx, i // bx % by, i // (bx * by)))
            for i in range(grid.n_threads)
        ]
        for thread in self.threads:
            thread.warp.threads.append(thread)

    def link(self) -> None:
        """Let threads that have begun give way to one another."""
        # Begun by one another, each would inherit the depth of the other's stack.
        for thread, successor in pairwise(self.threads):
            thread.successor = successor

    def release(self, clock: int) -> None:
        """Let all threads pass a barrier."""
        self.barrier_time = clock
        for thread in self.threads:
            thread.waits_for = None
            thread.stamp = (thread, clock)


class _Grid:
    """One launch."""

    def __init__(
        self,
        function: Callable[..., None],
        args: tuple,
        grid_dim: tuple[int, int, int],
        block_dim: tuple[int, int, int],
        dynamic_bytes: int,
        codes: frozenset[types.CodeType],
    ) -> None:
        self.observer, self.checks = _observed
        # Following every line costs much, so it is not done for who does not listen to lines.
        self.traced = self.observer is not None and (
            getattr(type(self.observer), "line", None) is not Observer.line
        )
        self.codes = codes  # of the kernel and its device functions
        self.latest: dict[tuple, Access] = {}  # to memory, by place, thread and kind
        self.name = function.__name__
        self.function = function
        self.code = function.__code__
        self.args = args
        self.grid_dim = grid_dim
        self.block_dim = block_dim
        self.dims = _Dim3(grid_dim), _Dim3(block_dim)
        self.n_threads = math.prod(block_dim)
        self.dynamic_bytes = dynamic_bytes
        self.local_arrays: dict[tuple, LocalArray] = {}  # one of each place, to copy
        self.clock = 1
        self.barrier_time = 0
        self.scheduler = greenlet.getcurrent()
        self.context = contextvars.copy_context()

    def trace(self, frame: types.FrameType, event: str, _: Any) -> Any:
        """What Python calls for each line of a simulated function."""
        if frame.f_code not in self.codes:
            return None
        if event == "line":
            self.observer.line(_current.id, frame.f_code.co_name, frame.f_lineno, frame.f_locals)
        return self.trace

    # -- the scheduler ---------------------------------------------------------------------

    def run(self, blocks: list[_Block]) -> None:
        """Run blocks to their end; together, as a cooperative launch does."""
        while True:
            for block in blocks:
                self._run_block(block)
            alive = [b for b in blocks if b.threads]
            if not alive:
                return
            if len(alive) < len(blocks):
                first = alive[0].threads[0]
                raise _stuck(
                    first,
                    f"{len(blocks) - len(alive)} of {len(blocks)} blocks have returned while "
                    f"{_waiting(first)}",
                )
            self.clock += 1
            self.barrier_time = self.clock
            for block in blocks:
                block.release(self.clock)

    def _run_block(self, block: _Block) -> None:
        """Run one block until its threads have returned or all wait at the grid barrier."""
        global _current
        while block.threads:
            for thread in block.threads:
                # A thread that comes to wait gives way to the next, so this loop turns seldom.
                if thread.waits_for is None:
                    _current = thread
                    thread.greenlet.switch()
            if block.threads[0].successor is None:
                block.link()
            reason, place = block.threads[0].waits_for, block.threads[0].waits_at
            for thread in block.threads:
                if thread.waits_at != place or thread.waits_for != reason:
                    apart = True
                    break
            else:
                apart = False
            if apart:
                self._part(block)
            elif reason is _END:
                block.threads = []
            elif reason[0] == "warp":
                self._release_warps(block)
            elif len(block.threads) < self.n_threads:
                self._part(block)
            elif reason is _GRID:
                return
            else:
                if reason is _VOTE:
                    votes = [thread.offers for thread in block.threads]
                    for thread in block.threads:
                        thread.received = votes
                self.clock += 1
                block.release(self.clock)

    def _part(self, block: _Block) -> None:
        """Go on with threads that are not all at one place, if they may part at all."""
        block.threads = [t for t in block.threads if t.waits_for is not _END]
        if any(t.waits_for[0] == "warp" for t in block.threads):
            self._release_warps(block)
            return
        first = block.threads[0]
        if len(block.threads) < self.n_threads:
            raise _stuck(
                first,
                f"{_waiting(first)}, which {self.n_threads - len(block.threads)} of "
                f"{self.n_threads} threads of the block never reach: they have returned",
            )
        other = next(t for t in block.threads if t.waits_at != first.waits_at)
        raise _stuck(first, f"divergent barrier: {_waiting(first)}, but {_waiting(other)}")

    def _release_warps(self, block: _Block) -> None:
        """Let go the lanes that meet in a warp operation: all of its mask that still run."""
        stuck = None
        progressed = False
        for warp in block.warps:
            for thread in warp.threads:
                reason = thread.waits_for
                if reason is None or reason[0] != "warp":
                    continue
                _, mask, operation = reason
                if not mask >> thread.lane & 1:
                    raise _stuck(
                        thread,
                        f"{_waiting(thread)}, whose mask {mask:#010x} does not name its own lane",
                    )
                group = [t for t in warp.threads if mask >> t.lane & 1 and t.waits_for is not _END]
                missing = next((t for t in group if t.waits_for != reason), None)
                if missing is not None:
                    stuck = stuck or (thread, mask, missing)
                    continue
                offers = {t.lane: t.offers for t in group}
                for t in group:
                    t.received = offers
                    t.waits_for = None
                # Shuffles and votes bring lanes together but are no memory barriers.
                if operation == "syncwarp":
                    self.clock += 1
                    warp.meet(list(offers), self.clock)
                    for t in group:
                        t.stamp = (t, self.clock)
                progressed = True
        if not progressed:
            thread, mask, missing = stuck
            raise _stuck(
                thread,
                f"{_waiting(thread)}, whose mask {mask:#010x} names lane {missing.lane}, but "
                f"{_waiting(missing)}",
            )


_current: _Thread = None  # type: ignore[assignment]  # the thread that runs now
_observed: tuple[Observer | None, bool] = (None, True)  # who listens, and whether races are refused


def _wait(reason: tuple, depth: int = 2) -> Any:
    """Give way to the other threads until `reason` is fulfilled; returns what they brought."""
    global _current
    thread = _current
    grid = thread.block.grid
    frame = sys._getframe(depth)
    code = frame.f_code
    thread.waits_for = reason
    if grid.observer is not None:
        what = reason[2] if reason[0] == "warp" else reason[0]
        grid.observer.wait(thread.id, what, code.co_name, frame.f_lineno)
    if code is grid.code:
        thread.waits_at = (code, frame.f_lasti)
    else:  # in a device function: where it was called from counts as well
        thread.waits_at = tuple(_calls(frame, grid.code))
    successor = thread.successor
    while successor is not None and successor.waits_for is not None:
        successor = successor.successor
    if successor is None:
        grid.scheduler.switch()
    else:
        _current = successor
        successor.greenlet.switch()
    return thread.received


def _calls(frame: types.FrameType, kernel: types.CodeType) -> Iterator[Any]:
    while frame.f_code is not kernel:
        yield from (frame.f_code, frame.f_lasti)
        frame = frame.f_back
    yield from (frame.f_code, frame.f_lasti)


def _ordered(me: _Thread, stamp: tuple[_Thread, int]) -> bool:
    """Whether a barrier lies between what bears the stamp and now, for this thread."""
    other, time = stamp
    block = me.block
    if other is me or block.grid.barrier_time > time:
        return True
    if other.block is not block:
        return False
    return block.barrier_time > time or (
        other.warp is me.warp and me.warp.ordered(me.lane, other.lane, time)
    )


def _waiting(thread: _Thread) -> str:
    """Who waits where, in words."""
    code, line = _waits_in(thread)
    kind = thread.waits_for[0]
    what = thread.waits_for[2] if kind == "warp" else kind
    return f"{thread} waits at a {what} ({code.co_name}, line {line})"


def _waits_in(thread: _Thread) -> tuple[types.CodeType, int]:
    code, offset = thread.waits_at[:2]
    return code, list(code.co_positions())[offset // 2][0]


def _stuck(thread: _Thread, what: str) -> BarrierError:
    """An error about threads that wait for others in vain."""
    error = BarrierError(f"kernel {thread.block.grid.name}: {what}")
    error.thread, error.line = thread.id, _waits_in(thread)[1]
    return error


def _place() -> types.FrameType:
    """The frame of the kernel, or of a device function, that runs now."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == _place.__code__.co_filename:
        frame = frame.f_back
    return frame


def _error(
    kind: type[SimulatorError],
    what: str,
    array: _Strided | None = None,
    index: Any = None,
    other: Access | None = None,
) -> SimulatorError:
    """An error about what the running thread does: which kernel, which thread, what line."""
    frame = _place()
    error = kind(
        f"kernel {_current.block.grid.name}, {_current} ({frame.f_code.co_name}, line "
        f"{frame.f_lineno}){what}"
    )
    error.thread, error.line, error.other = _current.id, frame.f_lineno, other
    if array is not None:
        error.array = array.variable
        error.index = index if isinstance(index, tuple) else (index,)
        error.shape = tuple(array.shape)
    return error


# ------------------------------------------------------------------------------------------
# Arrays that watch who touches them
# ------------------------------------------------------------------------------------------


class _Strided:
    """What all arrays of a simulated kernel share: shape, and indices that are checked."""

    __slots__ = ("name", "ndim", "offset", "plain", "shape", "steps", "variable")

    def __init__(self, name: str, shape: tuple[int, ...], variable: str = "") -> None:
        self.name = name
        self.variable = variable or name  # what the kernel calls it
        self.shape = shape
        self.ndim = len(shape)
        self.steps = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
        self.offset = 0
        # The integers from zero that are positions themselves: methods ask for them first, since
        # a simulation spends most of its time on indices.
        self.plain = shape[0] if len(shape) == 1 else 0

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def _element(self, index: Any) -> int:
        """Position of one element, or -1 where `index` selects more than one."""
        # One to three integers within their range are what kernels use: without a loop, for speed.
        ndim = self.ndim
        element: Any = None
        try:
            if ndim == 3:
                i, j, k = index
                n, m, l = self.shape
                if 0 <= i < n and 0 <= j < m and 0 <= k < l:
                    x, y, z = self.steps
                    element = self.offset + i * x + j * y + k * z
            elif ndim == 2:
                i, j = index
                n, m = self.shape
                if 0 <= i < n and 0 <= j < m:
                    x, y = self.steps
                    element = self.offset + i * x + j * y
            elif ndim == 1:
                if 0 <= index < self.shape[0]:
                    element = self.offset + index * self.steps[0]
        except (TypeError, ValueError):
            pass  # a slice among them, fewer than there are dimensions, or nothing that is an index
        return element if type(element) is int else self._any_element(index)

    def _any_element(self, index: Any) -> int:
        index = index if isinstance(index, tuple) else (index,)
        if len(index) > self.ndim:
            raise _error(
                OutOfRangeError,
                f": {self.name}{_brackets(index)}, but it has {self.ndim} dimensions",
                self,
                index,
            )
        element = self.offset
        for axis, i in enumerate(index):
            if isinstance(i, slice):
                return -1
            element += self._checked(i, axis, index) * self.steps[axis]
        return element if len(index) == self.ndim else -1

    def _checked(self, i: Any, axis: int, index: tuple) -> int:
        try:
            i = operator.index(i)
        except TypeError:
            raise _error(
                NotAnIntegerError if isinstance(i, float | np.floating) else SimulatorError,
                f": {self.name}{_brackets(index)}: {i!r} is not an integer",
                self,
                index,
            ) from None
        if not 0 <= i < self.shape[axis]:
            raise _error(
                OutOfRangeError,
                f": {self.name}{_brackets(index)} is out of range, its shape is {self.shape}",
                self,
                index,
            )
        return i

    def _view(self, index: Any) -> Any:
        """The part that a slice, or fewer indices than dimensions, selects."""
        index = index if isinstance(index, tuple) else (index,)
        view = object.__new__(type(self))
        for cls in type(self).__mro__[:-1]:
            for slot in cls.__slots__:
                setattr(view, slot, getattr(self, slot))
        offset, shape, steps = self.offset, [], []
        for axis, i in enumerate(index + (slice(None),) * (self.ndim - len(index))):
            if isinstance(i, slice):
                start, stop, step = i.indices(self.shape[axis])
                offset += start * self.steps[axis]
                shape.append(len(range(start, stop, step)))
                steps.append(step * self.steps[axis])
            else:
                offset += self._checked(i, axis, index) * self.steps[axis]
        view.offset, view.shape, view.steps = offset, tuple(shape), tuple(steps)
        view.ndim, view.plain = len(shape), 0
        return view

    def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
        return self._no_number()

    def _no_number(self, _: Any = None) -> Any:
        error = _error(
            NotOneElementError,
            f": {self.name} is an array of {self.ndim} axes; arithmetic needs one element",
            self,
        )
        error.ndim = self.ndim
        raise error

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _no_number
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _no_number

    def __neg__(self) -> Any:
        return self._no_number()

    def _not_one(self, index: Any) -> SimulatorError:
        error = _error(
            NotOneElementError,
            f": {self.name}{_brackets(index)} is more than one element; write element by element",
            self,
            index,
        )
        error.ndim = self._view(index).ndim
        return error


class ConstantArray(_Strided):
    """An array that a kernel closes over, or cuda.const.array_like: it can only be read."""

    __slots__ = ("dtype", "values")

    def __init__(self, data: np.ndarray, name: str) -> None:
        super().__init__(name, data.shape)
        self.dtype = data.dtype
        self.values = _scalars(data)

    def __getitem__(self, index: Any) -> Any:
        element = self._element(index)
        return self.values[element] if element >= 0 else self._view(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise _error(
            SimulatorError,
            f" writes {self.name}{_brackets(index)}, which is constant on a device",
            self,
            index,
        )


class LocalArray(_Strided):
    """Registers or local memory of one thread: undefined, so NaN, or the largest integer."""

    __slots__ = ("convert", "dtype", "scalar", "values")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, name: str) -> None:
        super().__init__(name, shape)
        self.dtype = dtype
        self.values = _scalars(np.full(math.prod(shape), _poison(dtype)))
        # Integers are Python's, which like Numba's 64-bit ones do not wrap at 32 bits.
        self.scalar = dtype.type if dtype.kind in "fc" else None
        self.convert = self.scalar or (lambda value: dtype.type(value).item())

    def new(self) -> LocalArray:
        """Another one, undefined as well."""
        array = object.__new__(LocalArray)
        for slot in (*_Strided.__slots__, "convert", "dtype", "scalar"):
            setattr(array, slot, getattr(self, slot))
        array.values = self.values.copy()
        return array

    def __getitem__(self, index: Any) -> Any:
        if type(index) is int and 0 <= index < self.plain:
            return self.values[index]
        element = self._element(index)
        return self.values[element] if element >= 0 else self._view(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if type(index) is int and 0 <= index < self.plain:
            element = index
        else:
            element = self._element(index)
            if element < 0:
                raise self._not_one(index)
        self.values[element] = value if type(value) is self.scalar else self.convert(value)


class _Memory:
    """Who touched what, by address, since a launch began; arrays that overlap share one.

    written : the stamp of the last plain write; read, atomics : a stamp or `_Accesses`.
    """

    __slots__ = ("atomics", "granule", "read", "written")

    def __init__(self) -> None:
        self.written: dict[int, tuple] = {}
        self.read: dict[int, Any] = {}
        self.atomics: dict[int, Any] = {}
        self.granule = 0  # bytes that one address stands for, where several types share them

    def split(self, granule: int) -> None:
        """Let an address stand for fewer bytes from now on."""
        if self.granule:
            for table in (self.written, self.read, self.atomics):
                for address, seen in list(table.items()):
                    for part in range(address + granule, address + self.granule, granule):
                        table[part] = seen.copy() if isinstance(seen, _Accesses) else seen
        self.granule = granule


class _Accesses:
    """The stamps of two or more threads that touched one address, as far as they can still matter.

    Kept are the last of each lane in the warp that came last, the last of another warp of that
    block and the last of another block. Who came earlier is behind a barrier if these are: the
    barriers of a block and of a grid hold for all their threads at once.
    """

    __slots__ = ("block_before", "lanes", "latest", "warp", "warp_before")

    def __init__(self, stamp: tuple) -> None:
        self.warp: _Warp = stamp[0].warp
        self.latest: tuple = stamp
        self.lanes: dict[int, tuple] = {stamp[0].lane: stamp}
        self.warp_before: tuple | None = None
        self.block_before: tuple | None = None

    def copy(self) -> _Accesses:
        other = _Accesses(self.latest)
        other.lanes = dict(self.lanes)
        other.warp_before, other.block_before = self.warp_before, self.block_before
        return other

    def add(self, stamp: tuple) -> None:
        warp = stamp[0].warp
        if warp is not self.warp:
            if warp.block is self.warp.block:
                self.warp_before = self.latest
            else:
                self.block_before, self.warp_before = self.latest, None
            self.warp = warp
            self.lanes = {}
        self.lanes[stamp[0].lane] = self.latest = stamp

    def unordered(self, me: _Thread) -> tuple | None:
        """The stamp of one that no barrier parts from now, if there is one."""
        block, time = self.latest[0].block, self.latest[1]
        seen = () if block is me.block and block.barrier_time > time else self.lanes.values()
        for stamp in (*seen, self.warp_before, self.block_before):
            if stamp is not None and not _ordered(me, stamp):
                return stamp
        return None


def _note(table: dict[int, Any], address: int, stamp: tuple) -> None:
    """Add a thread to those that touched an address."""
    seen = table.get(address)
    if seen is None or (type(seen) is tuple and seen[0] is stamp[0]):
        table[address] = stamp
    else:
        if type(seen) is tuple:
            seen = table[address] = _Accesses(seen)
        seen.add(stamp)


class Array(_Strided):
    """Global or shared memory: bounds, definedness and races are checked."""

    __slots__ = (
        "atomics",
        "base",
        "data",
        "dtype",
        "integer",
        "must_be_written",
        "read",
        "written",
    )

    def __init__(
        self,
        data: np.ndarray,
        name: str,
        memory: _Memory,
        must_be_written: bool = False,
        variable: str = "",
        base: int = 0,
    ) -> None:
        super().__init__(name, data.shape, variable)
        self.base = base  # in shared memory, the byte at which the array begins
        self.data = data.reshape(-1)
        self.dtype = data.dtype
        self.integer = data.dtype.kind not in "fc"
        self.must_be_written = must_be_written
        self.written, self.read, self.atomics = memory.written, memory.read, memory.atomics

    def __getitem__(self, index: Any) -> Any:
        if type(index) is int and 0 <= index < self.plain:
            element = index
        else:
            element = self._element(index)
            if element < 0:
                return self._view(index)
        self._read(element, index)
        # Integers become Python's, which like Numba's 64-bit ones do not wrap at 32 bits.
        return self.data.item(element) if self.integer else self.data[element]

    def __setitem__(self, index: Any, value: Any) -> None:
        if type(index) is int and 0 <= index < self.plain:
            element = index
        else:
            element = self._element(index)
            if element < 0:
                raise self._not_one(index)
        self._write(element, index)
        self.data[element] = value

    def update(self, index: Any, function: Callable[[Any], Any], reads: bool = True) -> Any:
        """An atomic operation; returns the old value."""
        element = self._element(index)
        if element < 0:
            raise self._not_one(index)
        self._change(element, index, reads)
        old = self.data.item(element) if self.integer else self.data[element]
        self.data[element] = new = function(old)
        _current.spins = 0 if new != old else _current.spins + 1
        if _current.spins > SPIN_LIMIT:
            raise _error(
                SimulatorError,
                f": {SPIN_LIMIT} atomic operations on {self.name}{_brackets(index)} changed "
                "nothing: the thread spins for another one, and only barriers let that run",
                self,
                index,
            )
        return old

    def _read(self, address: int, index: Any) -> None:
        me = _current
        stamp = me.stamp
        seen = self.read.get(address)
        lanes = seen.lanes if type(seen) is _Accesses and seen.warp is me.warp else None
        # A thread that has read it since its last barrier is known: who changes it meets that.
        if seen is stamp or (lanes is not None and lanes.get(me.lane) is stamp):
            return
        last = self.written.get(address)
        if last is None:
            if self.must_be_written and address not in self.atomics:
                raise _error(
                    UndefinedReadError,
                    f" reads {self.name}{_brackets(index)}, which no thread has written yet: the "
                    "write is missing, or a barrier after it",
                    self,
                    index,
                )
        elif last[0] is not me and not _ordered(me, last):
            raise self._race("reads", last, "wrote", address, index)
        if self.atomics:
            self._meet(self.atomics, address, "reads", "changed atomically", index)
        if seen is None:
            self.read[address] = stamp
        elif lanes is not None:
            lanes[me.lane] = seen.latest = stamp
        else:
            _note(self.read, address, stamp)

    def _write(self, address: int, index: Any) -> None:
        me = _current
        last = self.written.get(address)
        if last is not None and last[0] is not me and not _ordered(me, last):
            raise self._race("writes", last, "wrote", address, index)
        if self.atomics:
            self._meet(self.atomics, address, "writes", "changed atomically", index)
        if address in self.read:
            self._meet(self.read, address, "writes", "read", index)
        self.written[address] = me.stamp

    def _change(self, address: int, index: Any, reads: bool) -> None:
        me = _current
        last = self.written.get(address)
        if last is None:
            if reads and self.must_be_written and address not in self.atomics:
                raise _error(
                    UndefinedReadError,
                    f" changes {self.name}{_brackets(index)} atomically, which no thread has "
                    "written yet",
                    self,
                    index,
                )
        elif not _ordered(me, last):
            raise self._race("changes atomically", last, "wrote", address, index)
        self._meet(self.read, address, "changes atomically", "read", index)
        _note(self.atomics, address, me.stamp)

    def _meet(self, table: dict, address: int, mine: str, theirs: str, index: Any) -> None:
        """Refuse to meet those in a table whom no barrier parts from this thread."""
        seen = table.get(address)
        if seen is None:
            return
        if type(seen) is tuple:
            stamp = None if _ordered(_current, seen) else seen
        else:
            stamp = seen.unordered(_current)
        if stamp is not None:
            raise self._race(mine, stamp, theirs, address, index)

    def _race(
        self, mine: str, stamp: tuple, theirs: str, address: int, index: Any
    ) -> SimulatorError:
        return _error(
            RaceError,
            f": race on {self.name}{_brackets(index)}: it {mine} what {stamp[0]} {theirs}, with "
            "no barrier between",
            self,
            index,
            self._other(stamp[0], _KINDS[theirs], address, index),
        )

    def _other(self, thread: _Thread, kind: str, address: int, index: Any) -> Access:
        """What the other thread of a race did: as it was heard, or as far as it is known."""
        heard = thread.block.grid.latest.get((id(self.written), address, thread, kind))
        return heard or self._access(thread, kind, self._element(index), index, "", None)

    def _access(
        self, thread: _Thread, kind: str, element: int, index: Any, function: str, line: int | None
    ) -> Access:
        size = self.dtype.itemsize
        return Access(
            thread=thread.id,
            kind=kind,
            array=self.variable,
            shared=self.must_be_written,
            index=index if isinstance(index, tuple) else (index,),
            element=element,
            address=self.base + element * size,
            nbytes=size,
            function=function,
            line=line,
        )

    def _addresses(self, element: int) -> Iterable[int]:
        """Where `written`, `read` and `atomics` keep an element."""
        return (element,)

    def _heard(self, kind: str, element: int, index: Any) -> bool:
        """Tell the observer of an access; returns whether to look for races as well."""
        frame, grid = _place(), _current.block.grid
        access = self._access(_current, kind, element, index, frame.f_code.co_name, frame.f_lineno)
        grid.observer.access(access)
        for address in self._addresses(element):
            grid.latest[id(self.written), address, _current, kind] = access
        return grid.checks


_KINDS = {"wrote": "write", "read": "read", "changed atomically": "atomic"}


class _AliasedArray(Array):
    """An array whose bytes another one holds as well, perhaps as another type."""

    __slots__ = ("first_byte", "memory")

    def __init__(
        self,
        data: np.ndarray,
        name: str,
        memory: _Memory,
        first_byte: int,
        must_be_written: bool = False,
        variable: str = "",
        base: int = 0,
    ) -> None:
        super().__init__(data, name, memory, must_be_written, variable, base)
        self.memory = memory
        self.first_byte = first_byte

    def _addresses(self, element: int) -> range:
        start = self.first_byte + element * self.dtype.itemsize
        return range(start, start + self.dtype.itemsize, self.memory.granule)

    def _read(self, element: int, index: Any) -> None:
        for address in self._addresses(element):
            super()._read(address, index)

    def _write(self, element: int, index: Any) -> None:
        for address in self._addresses(element):
            super()._write(address, index)

    def _change(self, element: int, index: Any, reads: bool) -> None:
        for address in self._addresses(element):
            super()._change(address, index, reads)


class _Heard:
    """Before an `Array`, tells who listens of each access before it is checked and done."""

    __slots__ = ()

    def _read(self, element: int, index: Any) -> None:
        if self._heard("read", element, index):
            super()._read(element, index)

    def _write(self, element: int, index: Any) -> None:
        if self._heard("write", element, index):
            super()._write(element, index)

    def _change(self, element: int, index: Any, reads: bool) -> None:
        if self._heard("atomic", element, index):
            super()._change(element, index, reads)


class _HeardArray(_Heard, Array):
    __slots__ = ()


class _HeardAliasedArray(_Heard, _AliasedArray):
    __slots__ = ()


def _brackets(index: Any) -> str:
    def text(i: Any) -> str:
        if not isinstance(i, slice):
            return str(i)
        return ":".join("" if part is None else str(part) for part in (i.start, i.stop))

    return f"[{', '.join(map(text, index if isinstance(index, tuple) else (index,)))}]"


def _poison(dtype: np.dtype) -> np.ndarray:
    """What stands in undefined memory: NaN, the largest integer, True."""
    if dtype.kind in "fc":
        return np.array(np.nan, dtype)
    return np.array(True if dtype.kind == "b" else np.iinfo(dtype).max, dtype)


def _scalars(data: np.ndarray) -> list:
    """Its elements as a list: NumPy scalars of its own type, but Python integers."""
    return list(data.reshape(-1)) if data.dtype.kind in "fc" else data.reshape(-1).tolist()


# ------------------------------------------------------------------------------------------
# What kernels know as `cuda`, `math`, `numpy`, and as types of integers
# ------------------------------------------------------------------------------------------


def _dtype(dtype: Any) -> np.dtype:
    """NumPy dtype of a NumPy type, a Numba type or a string."""
    name = getattr(dtype, "name", None)
    return np.dtype(name if name is not None and not isinstance(dtype, (type, np.dtype)) else dtype)


def _shape(shape: Any) -> tuple[int, ...]:
    shape = shape if isinstance(shape, tuple) else (shape,)
    if not all(isinstance(n, (int, np.integer)) and n >= 0 for n in shape):
        raise _error(SimulatorError, f": array shape {shape}: shapes are constant integers")
    return tuple(int(n) for n in shape)


class _Space:
    """One of cuda's name spaces: what it lacks is refused by name."""

    def __getattr__(self, name: str) -> Any:
        return _not_simulated(f"cuda.{type(self).__name__.strip('_').lower()}.{name}")


def _not_simulated(what: str) -> Any:
    if _current is None:  # nobody's kernel asks: a debugger, a notebook
        raise AttributeError(what)
    raise _error(SimulatorError, f": {what} is not simulated")


def _site(frame: types.FrameType) -> tuple[int, int, int]:
    """What tells one place in a kernel from another, and from the same place of another closure."""
    # Each simulated function has globals of its own.
    return id(frame.f_globals), id(frame.f_code), frame.f_lasti


@lru_cache(maxsize=1024)
def _variable(code: types.CodeType, offset: int) -> str:
    """The variable to which the value that is made at this place of the bytecode is assigned."""
    after = next(i for i in dis.get_instructions(code) if i.offset > offset)
    name = after.argval[0] if isinstance(after.argval, tuple) else after.argval
    return name if after.opname.startswith("STORE_") and isinstance(name, str) else ""


class _Shared(_Space):
    def array(self, shape: Any, dtype: Any, alignment: int | None = None) -> Array:
        block, frame = _current.block, sys._getframe(1)
        site = _site(frame)
        array = block.shared.get(site)
        if array is None:
            make = self._dynamic if shape in (0, (0,)) else self._static
            array = block.shared[site] = make(block, _shape(shape), _dtype(dtype), frame)
        return array

    def _static(
        self, block: _Block, shape: tuple[int, ...], dtype: np.dtype, frame: types.FrameType
    ) -> Array:
        base = -(-block.static_bytes // dtype.itemsize) * dtype.itemsize
        block.static_bytes = base + math.prod(shape) * dtype.itemsize
        together = block.static_bytes + block.grid.dynamic_bytes
        if block.static_bytes > STATIC_SHARED_LIMIT:
            raise _error(
                SimulatorError,
                f": {block.static_bytes} bytes of static shared memory a block; a device has "
                f"{STATIC_SHARED_LIMIT}",
            )
        if together > SHARED_LIMIT:
            raise _error(
                SimulatorError,
                f": {together} bytes of shared memory a block, {block.static_bytes} of them "
                f"static; a device has at most {SHARED_LIMIT}",
            )
        name = f"shared array (line {frame.f_lineno})"
        array = Array if block.grid.observer is None else _HeardArray
        return array(
            np.full(shape, _poison(dtype)),
            name,
            _Memory(),
            must_be_written=True,
            variable=_variable(frame.f_code, frame.f_lasti),
            base=base,
        )

    def _dynamic(
        self, block: _Block, shape: tuple[int, ...], dtype: np.dtype, frame: types.FrameType
    ) -> Array:
        if block.dynamic is None:
            block.dynamic = np.full(block.grid.dynamic_bytes, 0xFF, np.uint8)
        memory = block.dynamic_memory
        if not memory.granule or dtype.itemsize < memory.granule:
            memory.split(dtype.itemsize)
        count = len(block.dynamic) // dtype.itemsize
        typed = block.dynamic[: count * dtype.itemsize].view(dtype)
        array = _AliasedArray if block.grid.observer is None else _HeardAliasedArray
        return array(
            typed,
            "dynamic shared memory",
            memory,
            0,
            must_be_written=True,
            variable=_variable(frame.f_code, frame.f_lasti),
            base=block.static_bytes,  # behind the static arrays
        )


class _Local(_Space):
    def array(self, shape: Any, dtype: Any, alignment: int | None = None) -> LocalArray:
        known, frame = _current.block.grid.local_arrays, sys._getframe(1)
        site = _site(frame)
        if site not in known:
            name = f"local array (line {frame.f_lineno})"
            known[site] = LocalArray(_shape(shape), _dtype(dtype), name)
        return known[site].new()


class _Const(_Space):
    def array_like(self, array: Any) -> ConstantArray:
        # What a kernel closes over is constant already when the kernel sees it.
        return array if isinstance(array, ConstantArray) else ConstantArray(array, "constant array")


class _Atomic(_Space):
    """Atomic operations; each returns the old value."""

    def add(self, array: Array, index: Any, value: Any) -> Any:
        return array.update(index, lambda old: array.dtype.type(old) + array.dtype.type(value))

    def sub(self, array: Array, index: Any, value: Any) -> Any:
        return array.update(index, lambda old: array.dtype.type(old) - array.dtype.type(value))

    def max(self, array: Array, index: Any, value: Any) -> Any:
        return array.update(index, lambda old: max(old, value))

    def min(self, array: Array, index: Any, value: Any) -> Any:
        return array.update(index, lambda old: min(old, value))

    def and_(self, array: Array, index: Any, value: Any) -> Any:
        return array.update(index, lambda old: old & value)

    def or_(self, array: Array, index: Any, value: Any) -> Any:
        return array.update(index, lambda old: old | value)

    def xor(self, array: Array, index: Any, value: Any) -> Any:
        return array.update(index, lambda old: old ^ value)

    def exch(self, array: Array, index: Any, value: Any) -> Any:
        return array.update(index, lambda old: value, reads=False)

    def cas(self, array: Array, index: Any, expected: Any, value: Any) -> Any:
        return array.update(index, lambda old: value if old == expected else old)


class _GridGroup:
    @staticmethod
    def sync() -> int:
        _wait(_GRID)
        return 0


class _Cg(_Space):
    def this_grid(self) -> _GridGroup:
        return _GridGroup()


def _axes(ndim: int, values: tuple[int, int, int]) -> int | tuple[int, ...]:
    if ndim not in (1, 2, 3):
        raise _error(SimulatorError, f": ndim = {ndim}: a grid has 1, 2 or 3 dimensions")
    return values[0] if ndim == 1 else values[:ndim]


class SimulatedCuda:
    """What a kernel finds under the name `cuda` while it is simulated."""

    shared = _Shared()
    local = _Local()
    const = _Const()
    atomic = _Atomic()
    cg = _Cg()
    warpsize = WARP

    threadIdx = property(lambda self: _current.index)
    blockIdx = property(lambda self: _current.block.index)
    gridDim = property(lambda self: _current.block.grid.dims[0])
    blockDim = property(lambda self: _current.block.grid.dims[1])
    laneid = property(lambda self: _current.lane)

    def grid(self, ndim: int) -> int | tuple[int, ...]:
        t, b, n = _current.index, _current.block.index, _current.block.grid.block_dim
        if ndim == 1:
            return t.x + b.x * n[0]
        return _axes(ndim, (t.x + b.x * n[0], t.y + b.y * n[1], t.z + b.z * n[2]))

    def gridsize(self, ndim: int) -> int | tuple[int, ...]:
        grid = _current.block.grid
        return _axes(ndim, tuple(map(operator.mul, grid.grid_dim, grid.block_dim)))

    # -- barriers --------------------------------------------------------------------------

    def syncthreads(self) -> None:
        _wait(_BLOCK)

    def _vote(self, predicate: Any) -> list[bool]:
        _current.offers = bool(predicate)
        return _wait(_VOTE, depth=3)

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
        """Bring a value to the lanes of `mask`; returns theirs by lane."""
        _current.offers = value
        return _wait(("warp", mask & FULL_MASK, what), depth=3)

    def _shuffle(self, theirs: dict[int, Any], source: int, value: Any) -> Any:
        if not 0 <= source < WARP:
            return value
        if source not in theirs:
            raise _error(
                SimulatorError,
                f" shuffles from lane {source}, which takes no part: it is not in the mask, has "
                "returned or does not exist; the value is undefined",
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

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """a * b + c, rounded twice where hardware rounds once."""
        return a * b + c

    def selp(self, condition: Any, a: Any, b: Any) -> Any:
        return a if condition else b

    def cbrt(self, x: Any) -> Any:
        return np.cbrt(x)

    def popc(self, x: int) -> int:
        return int(x & 0xFFFFFFFFFFFFFFFF).bit_count()

    def ffs(self, x: int) -> int:
        return (int(x) & -int(x)).bit_length()

    def __getattr__(self, name: str) -> Any:
        return _not_simulated(f"cuda.{name}")


cuda = SimulatedCuda()


class _Integer:
    """An integer type of NumPy or Numba: its values are Python's integers, wrapped to its range.

    As Numba's arithmetic on small integers does, that on its values has 64 bits and more.
    """

    def __init__(self, dtype: np.dtype) -> None:
        self.name = dtype.name
        self.all_bits = (1 << 8 * dtype.itemsize) - 1
        self.sign_bit = 1 << (8 * dtype.itemsize - 1) if dtype.kind == "i" else 0

    def __call__(self, value: Any = 0) -> int:
        return ((int(value) & self.all_bits) ^ self.sign_bit) - self.sign_bit


def _on_device(function: Callable, ufunc: np.ufunc) -> Callable:
    """A function of `math` as a device has it: float32 stays so, errors give infinities and NaN."""

    def call(*args: Any) -> np.floating:
        real = np.float32 if all(type(a) is np.float32 for a in args) else np.float64
        try:
            return real(function(*args))
        except (ValueError, OverflowError):
            return real(ufunc(*args))

    return call


_ARC = {"arc" + f: "a" + f for f in ("cos", "sin", "tan", "cosh", "sinh", "tanh", "tan2")}
_INTEGERS = {
    f"{sign}int{bits}": _Integer(np.dtype(f"{sign}int{bits}"))
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}
_STAND_INS: dict[Any, Any] = {np.dtype(name).type: t for name, t in _INTEGERS.items()} | FORMULAS
_STAND_INS |= {
    getattr(math, _ARC.get(name, name)): _on_device(
        getattr(math, _ARC.get(name, name)), getattr(np, {"pow": "power"}.get(name, name))
    )
    for name in (
        *("sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "fabs", "hypot"),
        *("sin", "cos", "tan", "sinh", "cosh", "tanh", "copysign", "fmod"),
        *_ARC,
    )
}
_STAND_INS[math] = types.SimpleNamespace(
    **{name: _STAND_INS.get(f, f) if callable(f) else f for name, f in vars(math).items()}
)
_STAND_INS[np] = types.SimpleNamespace(
    **{name: _STAND_INS.get(t, t) if isinstance(t, type) else t for name, t in vars(np).items()}
)


# ------------------------------------------------------------------------------------------
# From a kernel's function to a launch
# ------------------------------------------------------------------------------------------

# What Numba cannot compile for a device: found in the bytecode, refused before the launch.
_REFUSED_OPCODES = {
    "BUILD_LIST": "a list",
    "LIST_APPEND": "a list comprehension",
    "BUILD_MAP": "a dictionary",
    "BUILD_CONST_KEY_MAP": "a dictionary",
    "MAP_ADD": "a dictionary comprehension",
    "BUILD_SET": "a set",
    "SET_ADD": "a set comprehension",
    "BUILD_STRING": "a formatted string",
    "FORMAT_VALUE": "a formatted string",
    "FORMAT_SIMPLE": "a formatted string",
    "YIELD_VALUE": "a generator",
    "IMPORT_NAME": "an import",
    "STORE_GLOBAL": "an assignment to a global name",
    "LOAD_BUILD_CLASS": "a class",
    "BEFORE_WITH": "a with block",
    "SETUP_FINALLY": "a try block",
    "PUSH_EXC_INFO": "a try block",
}
_REFUSED_BUILTINS = ("list", "dict", "set", "frozenset", "sorted", "str", "open", "input", "eval")


@lru_cache(maxsize=1024)
def _global_names(code: types.CodeType, kernel: str) -> frozenset[str]:
    """The global names that code uses; refuses what no device runs."""
    names = set()
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        line = instruction.positions.lineno or line
        if instruction.opname in _REFUSED_OPCODES:
            raise SimulatorError(
                f"kernel {kernel}: {_REFUSED_OPCODES[instruction.opname]} ({code.co_name}, line "
                f"{line}); Numba compiles no such thing for a GPU"
            )
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.add(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant, kernel)
    return frozenset(names)


def _simulated(function: Callable, kernel: str, made: dict[int, Callable]) -> Callable:
    """The same function with what it finds around it replaced: modules, types, arrays, functions.

    Names are looked up at each launch; the function itself and its module stay as they are.
    """
    function = getattr(function, "py_func", function)
    if id(function) in made:
        return made[id(function)]

    def replacement(name: str, value: Any) -> Any:
        if value is compiled_cuda or value is cuda:
            return cuda
        if isinstance(value, np.ndarray):
            return ConstantArray(value, name)
        # Without numba-cuda a device function is the plain function itself.
        plain, on_device = isinstance(value, types.FunctionType), hasattr(value, "py_func")
        if (plain or on_device) and value in _STAND_INS:
            return _STAND_INS[value]
        if on_device or (plain and not HAS_NUMBA_CUDA):
            return _simulated(value, kernel, made)
        if plain:
            raise SimulatorError(
                f"kernel {kernel}: {name} is a plain Python function; make it a device function, "
                "@jit(device=True)"
            )
        if isinstance(value, (list, dict, set)):
            raise SimulatorError(
                f"kernel {kernel}: {name} is a {type(value).__name__}; Numba compiles no such "
                "thing for a GPU"
            )
        if isinstance(value, (types.BuiltinFunctionType, types.ModuleType, type)):
            return _STAND_INS.get(value, value)
        if hasattr(value, "bitwidth"):  # a type of Numba's
            return _INTEGERS.get(value.name, value)
        return value

    names = _global_names(function.__code__, kernel)
    for name in _REFUSED_BUILTINS:
        if name in names and name not in function.__globals__:
            raise SimulatorError(
                f"kernel {kernel}: {name}(...) in {function.__name__}; Numba compiles no such "
                "thing for a GPU"
            )
    cells = tuple(types.CellType() for _ in function.__closure__ or ())
    namespace: dict[str, Any] = {}
    copy = types.FunctionType(
        function.__code__, namespace, function.__name__, function.__defaults__, cells
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    made[id(function)] = copy
    for name in names & function.__globals__.keys():
        namespace[name] = replacement(name, function.__globals__[name])
    free = function.__code__.co_freevars
    for name, cell, original in zip(free, cells, function.__closure__ or (), strict=True):
        cell.cell_contents = replacement(name, original.cell_contents)
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


def _arguments(name: str, code: types.CodeType, defaults: int, args: tuple) -> tuple:
    """Wrap what a kernel is given, or refuse it by name."""
    names = code.co_varnames[: code.co_argcount]
    if not len(names) - defaults <= len(args) <= len(names):
        raise TypeError(
            f"kernel {name}: {len(args)} arguments given; it takes {len(names)}: {', '.join(names)}"
        )
    arrays: list[np.ndarray] = []

    def check(parameter: str, value: Any) -> None:
        if isinstance(value, tuple):
            for part in value:
                check(parameter, part)
        elif isinstance(value, np.ndarray):
            if not value.flags.c_contiguous:
                raise TypeError(
                    f"kernel {name}: argument {parameter} is not C-contiguous; "
                    "pass numpy.ascontiguousarray(...)"
                )
            if value.dtype.kind not in "biufc":
                raise TypeError(
                    f"kernel {name}: argument {parameter} has dtype {value.dtype}; allowed are "
                    "numbers"
                )
            arrays.append(value)
        elif value is not None and not isinstance(value, (int, float, complex, np.generic)):
            raise TypeError(
                f"kernel {name}: argument {parameter} is a {type(value).__name__}; allowed are "
                "arrays, numbers and tuples of these"
            )

    for parameter, value in zip(names, args, strict=False):
        check(parameter, value)
    shared, memory = _overlapping(arrays)
    silent = _observed[0] is None

    def wrap(parameter: str, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(wrap(parameter, part) for part in value)
        if isinstance(value, np.ndarray):
            if _first_byte(value) in shared:
                array = _AliasedArray if silent else _HeardAliasedArray
                return array(value, parameter, memory, _first_byte(value))
            return (Array if silent else _HeardArray)(value, parameter, _Memory())
        # Numba takes Python's numbers for 64-bit ones; NumPy would let them yield to float32.
        if type(value) in (float, complex):
            return np.float64(value) if type(value) is float else np.complex128(value)
        return value.item() if isinstance(value, (np.integer, np.bool_)) else value

    return tuple(wrap(n, a) for n, a in zip(names, args, strict=False))


def _first_byte(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _overlapping(arrays: list[np.ndarray]) -> tuple[set[int], _Memory]:
    """First bytes of the arrays that share bytes with another, and a memory for these."""
    ordered = sorted((a for a in arrays if a.nbytes), key=_first_byte)
    shared: set[int] = set()
    memory = _Memory()
    end, previous = -1, None
    for array in ordered:
        first = _first_byte(array)
        if first < end:
            for one in (previous, array):
                shared.add(_first_byte(one))
                memory.granule = math.gcd(memory.granule, one.itemsize, _first_byte(one))
        if first + array.nbytes > end:
            end, previous = first + array.nbytes, array
    return shared, memory


@contextlib.contextmanager
def observe(observer: Observer, *, checks: bool = True) -> Iterator[None]:
    """Inside, an observer hears what the threads of all simulated kernels do.

    Registers and arrays in local or constant memory are touched in silence: an `Access` is one of
    global or shared memory.

    Parameters
    ----------
    observer : Observer
        Without a `line` of its own, lines are not followed, which is several times faster.
    checks : bool
        False lets races and reads of shared memory that nobody has written pass, so that a wrong
        kernel can be watched to its end. Indices and barriers are refused as ever.
    """
    global _observed
    before, _observed = _observed, (observer, checks)
    try:
        yield
    finally:
        _observed = before


def launch(function: Callable, grid: Any, block: Any, args: tuple, dynamic_bytes: int = 0) -> None:
    """Run a kernel's Python function over a grid of simulated threads.

    Parameters
    ----------
    function : function
        The kernel's Python function; names that refer to Numba's `cuda`, to `math` and to device
        functions are replaced while it runs.
    grid, block : int or tuple of up to three ints
        Blocks in the grid and threads in a block.
    args : tuple
        C-contiguous NumPy arrays, which the kernel may change, numbers, and tuples of these.
    dynamic_bytes : int
        Bytes of dynamic shared memory.

    Raises
    ------
    SimulatorError, BarrierError, RaceError, UndefinedReadError, OutOfRangeError
        For what a GPU refuses or would get wrong; see the module's description.
    TypeError
        For arguments that no kernel takes.
    """
    global _current
    name = function.__name__
    grid_dim = _three(name, "grid", grid, MAX_GRID)
    block_dim = _three(name, "block", block, MAX_BLOCK)
    if math.prod(block_dim) > MAX_THREADS:
        raise SimulatorError(
            f"kernel {name}: {math.prod(block_dim)} threads in a block {block_dim}; a device "
            f"allows {MAX_THREADS}"
        )
    if not 0 <= dynamic_bytes <= SHARED_LIMIT:
        raise SimulatorError(
            f"kernel {name}: {dynamic_bytes} bytes of dynamic shared memory; a device has at most "
            f"{SHARED_LIMIT}"
        )
    made: dict[int, Callable] = {}
    simulated = _simulated(function, name, made)
    wrapped = _arguments(name, function.__code__, len(function.__defaults__ or ()), args)
    z, y, x = (range(n) for n in reversed(grid_dim))
    indices = ((i, j, k) for k, j, i in product(z, y, x))
    codes = frozenset(f.__code__ for f in made.values())
    tracing = sys.gettrace()
    try:
        # A GPU computes on with infinities and NaN, and says nothing.
        with np.errstate(all="ignore"):
            run = _Grid(simulated, wrapped, grid_dim, block_dim, dynamic_bytes, codes)
            if _is_cooperative(made.values()):
                run.run([_Block(run, index) for index in indices])
            else:
                for index in indices:
                    run.run([_Block(run, index)])
    finally:
        _current = None  # type: ignore[assignment]
        if _observed[0] is not None:
            sys.settrace(tracing)
