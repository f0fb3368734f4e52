"""What a listener of the simulator hears, and what its errors carry, against lists by hand."""

import inspect
import sys

import numpy as np
import pytest

from dgbook.check import (
    BarrierError,
    OutOfRangeError,
    RaceError,
    UndefinedReadError,
    simulator,
)
from dgbook.gpu import cuda, jit

f4, f8 = np.float32, np.float64


class Everything(simulator.Observer):
    def __init__(self, kernel):
        self.first = kernel.py_func.__code__.co_firstlineno  # line 0, the decorator's
        self.lines, self.accesses, self.waits = [], [], []
        self.events = []

    def line(self, thread, function, line, values):
        self.events.append(("line", thread.linear, line - self.first))
        self.lines.append((function, dict(values)))

    def access(self, access):
        self.events.append((access.kind, access.thread.linear, access.line - self.first))
        self.accesses.append(access)

    def wait(self, thread, what, function, line):
        self.events.append((what, thread.linear, line - self.first))


@jit
def swap(u, new):
    pad = cuda.shared.array(3, f4)
    s = cuda.shared.array(2, f8)
    i = cuda.threadIdx.x
    pad[i] = 0
    s[i] = u[1, i]
    cuda.syncthreads()
    new[i] = s[1 - i]


def test_lines_accesses_and_waits_come_in_their_order():
    heard = Everything(swap)
    with simulator.observe(heard):
        swap[1, 2](np.arange(4.0).reshape(2, 2), np.zeros(2))

    def begin(t):
        lines = [("line", t, n) for n in (2, 3, 4, 5)] + [("write", t, 5), ("line", t, 6)]
        return [*lines, ("read", t, 6), ("write", t, 6), ("line", t, 7), ("barrier", t, 7)]

    def end(t):
        return [("line", t, 8), ("read", t, 8), ("write", t, 8)]

    assert heard.events == begin(0) + begin(1) + end(0) + end(1)
    assert heard.lines[-1][1]["i"] == 1 and "i" not in heard.lines[0][1]


def test_an_access_says_what_and_where():
    heard = Everything(swap)
    with simulator.observe(heard):
        swap[1, 2](np.arange(4.0).reshape(2, 2), np.zeros(2))
    told = [(a.array, a.shared, a.index, a.element, a.address, a.nbytes) for a in heard.accesses]
    assert told[3:6] == [  # thread 1; s begins behind the 12 bytes of pad at a multiple of 8
        ("pad", True, (1,), 1, 4, 4),
        ("u", False, (1, 1), 3, 24, 8),
        ("s", True, (1,), 1, 24, 8),
    ]
    thread = heard.accesses[-1].thread
    assert thread == ((0, 0, 0), (1, 0, 0), 1) and heard.accesses[-1].function == "swap"


def test_nobody_is_told_outside_and_tracing_is_as_before():
    def mine(frame, event, argument):
        return None

    heard, before = Everything(swap), sys.gettrace()
    with simulator.observe(heard):
        sys.settrace(mine)
        try:
            swap[1, 2](np.zeros((2, 2)), np.zeros(2))
            assert sys.gettrace() is mine
        finally:
            sys.settrace(before)
    told = len(heard.events)
    swap[1, 2](np.zeros((2, 2)), np.zeros(2))
    assert told and len(heard.events) == told


def test_device_functions_and_warp_operations_are_heard():
    @jit(device=True)
    def half(x):
        return x / 2

    @jit
    def use(out):
        out[cuda.threadIdx.x] = half(cuda.shfl_xor_sync(3, 1.0, 1))

    heard = Everything(use)
    with simulator.observe(heard):
        use[1, 2](np.zeros(2))
    assert [e[0] for e in heard.events].count("shfl_xor_sync") == 2
    assert [name for name, _ in heard.lines] == ["use", "use", "half", "half"]


def test_elements_that_another_array_holds_too_are_told_once():
    @jit
    def write(x, y):
        x[0] = y[1]

    x, heard = np.zeros(4), Everything(write)
    with simulator.observe(heard):
        write[1, 1](x, x.view(f4))
    assert [(a.kind, a.array, a.nbytes) for a in heard.accesses] == [
        ("read", "y", 4),
        ("write", "x", 8),
    ]


@jit
def late(out):
    s = cuda.shared.array(2, f8)
    i = cuda.threadIdx.x
    s[i] = i
    out[i] = s[1 - i]


@jit
def neighbor(u):
    i = cuda.threadIdx.x
    t = u[(i + 1) % 2]
    u[i] = t


def test_without_checks_a_wrong_kernel_runs_to_its_end():
    heard, out, u = Everything(late), np.zeros(2), np.array([1.0, 2.0])
    with simulator.observe(heard, checks=False):
        late[1, 2](out)
        neighbor[1, 2](u)
    assert np.isnan(out[0]) and out[1] == 0  # thread 0 came first
    assert u.tolist() == [2, 2]
    with simulator.observe(heard, checks=False), pytest.raises(OutOfRangeError):
        late[1, 3](out)


def line_of(kernel, text):
    lines, first = inspect.getsourcelines(kernel.py_func)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_an_undefined_read_says_what_is_missing():
    with pytest.raises(UndefinedReadError) as caught:
        late[1, 2](np.zeros(2))
    error = caught.value
    assert error.line == line_of(late, "out[i] =") and error.thread.linear == 0
    assert (error.array, error.index, error.other) == ("s", (1,), None)


@pytest.mark.parametrize("listening", [False, True])
def test_a_race_says_who_did_what_before(listening):
    def launch():
        neighbor[1, 2](np.zeros(2))

    with pytest.raises(RaceError) as caught:
        if listening:
            with simulator.observe(Everything(neighbor)):
                launch()
        else:
            launch()
    # Thread 0 reads u[1] and writes u[0]; then thread 1 reads u[0].
    error = caught.value
    assert (error.thread.linear, error.array, error.index) == (1, "u", (0,))
    assert error.line == line_of(neighbor, "t = u")
    other = error.other
    assert (other.thread.linear, other.kind, other.array, other.index) == (0, "write", "u", (0,))
    assert other.line == (line_of(neighbor, "u[i] = t") if listening else None)


def test_an_index_out_of_range_and_a_barrier_that_not_all_reach():
    @jit
    def some(out):
        i = cuda.threadIdx.x
        if i < 2:
            cuda.syncthreads()  # here
        out[i + 1] = i

    with pytest.raises(OutOfRangeError) as caught:
        some[1, 2](np.zeros(2))
    error = caught.value
    assert (error.thread.linear, error.array, error.index) == (1, "out", (2,))
    with pytest.raises(BarrierError) as caught:
        some[1, 4](np.zeros(5))
    assert caught.value.thread.linear == 0 and caught.value.line == line_of(some, "# here")
