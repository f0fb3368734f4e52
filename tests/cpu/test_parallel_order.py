"""What waits for what on a GPU in a stage of a mesh in parts: by streams like those of CUDA.

Each launch knows the launches that are done before it begins, as CUDA promises it by streams and
events. So a wait that is missing shows, and one that is not needed.
"""

import sys
from functools import partial
from types import SimpleNamespace

import pytest

from dgbook.gpu import Device
from dgbook.parallel.halo import Halo
from dgbook.parallel.solver import _through
from dgbook.parallel.transport import NcclGroup

STAGES = 3


class Event:
    def __init__(self, disable_timing):
        self.before = set()


class Stream:
    """Launches one after the other, and after the events that it waits for."""

    made = first = 0

    def __init__(self, non_blocking=True, priority=0):
        Stream.made += 1
        self.ptr, self.priority, self.before = Stream.made, priority, set()

    def launch(self, name, order):
        assert name not in order
        order[name] = frozenset(self.before)
        self.before.add(name)

    def record(self, event):
        event.before = set(self.before)
        return event

    def wait_event(self, event):
        self.before |= event.before

    def __enter__(self):
        CUDA.streams.append(self)

    def __exit__(self, *error):
        CUDA.streams.pop()


CUDA = SimpleNamespace(
    Event=Event,
    Stream=Stream,
    Device=lambda: SimpleNamespace(id=f"GPU {Stream.first}"),  # its side streams are its own
    get_current_stream=lambda: CUDA.streams[-1],
    streams=[],
)


@pytest.fixture
def order(monkeypatch):
    """By launch all that are done before it, of steps of two pieces of a part with a neighbor."""
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=CUDA))
    monkeypatch.setattr(CUDA, "streams", [Stream()])
    monkeypatch.setattr(Stream, "first", Stream.made)
    return {}


def launch(order, name, *_):
    CUDA.get_current_stream().launch(name, order)


def steps(order, group=NcclGroup):
    """Two pieces: the edge, number 0, and the interior, number 1."""
    device, exchanged = Device("cuda", "no GPU", ""), []

    def exchange(sends, receives, stream):
        assert stream == CUDA.get_current_stream().ptr  # where it is enqueued
        assert CUDA.get_current_stream().priority < 0
        launch(order, f"exchange {len(exchanged)}")
        exchanged.append(stream)

    def numbered(name):
        calls = iter(range(STAGES))
        return lambda *_: launch(order, f"{name} {next(calls)}")

    halo = object.__new__(Halo)
    halo.device = device
    halo.connection = group(SimpleNamespace(exchange=exchange), [], [], device)
    halo.sends = [SimpleNamespace(piece=0, buffer=None, transfer=numbered("pack"))]
    halo.receives = [SimpleNamespace(piece=0, buffer=None, transfer=numbered("unpack"))]
    halo.within = [(0, 1, numbered("to interior")), (1, 0, numbered("to edge"))]

    def stages(name):
        for stage in range(STAGES):
            yield "a state"
            launch(order, f"{name} {stage}")

    _through(halo, device, [0, 1], [partial(stages, name) for name in ("edge", "interior")])


def test_a_stage_waits_for_what_it_reads_and_for_nothing_else(order):
    steps(order)
    assert len(order) == 7 * STAGES
    for s in range(STAGES):
        copies = {f"pack {s}", f"to interior {s}", f"to edge {s}"}
        for one in copies:  # side by side
            assert not order[one] & copies
        assert f"pack {s}" in order[f"exchange {s}"]
        assert {f"to interior {s}", f"to edge {s}"} <= order[f"interior {s}"]
        assert f"exchange {s}" in order[f"unpack {s}"]
        assert {f"unpack {s}", f"to edge {s}", f"to interior {s}"} <= order[f"edge {s}"]
        # While messages travel the interior is computed, and edges wait for messages only.
        assert f"exchange {s}" not in order[f"interior {s}"]
        assert f"interior {s}" not in order[f"edge {s}"]
        # What is written again, and what is read next, is done with.
        for name in ("pack", "to interior", "to edge", "exchange"):
            if s:
                done = {f"{n} {s - 1}" for n in ("unpack", "edge", "interior", "exchange")}
                assert done <= order[f"{name} {s}"]
    # Whoever comes after a step comes after all of it.
    launch(order, "later")
    assert len(order["later"]) == 7 * STAGES


class NoFork(NcclGroup):
    """Messages leave without waiting for what is packed."""

    def start(self):
        stream = Stream(priority=-1)
        with stream:
            self.exchange(stream.ptr)
        self.wait = partial(
            lambda event: CUDA.get_current_stream().wait_event(event), stream.record(Event(True))
        )


class NoWait(NcclGroup):
    """What has arrived is read without asking whether it has."""

    def finish(self):
        pass


@pytest.mark.parametrize("mistake", [NoFork, NoWait])
def test_a_missing_wait_shows(mistake, order):
    with pytest.raises(AssertionError):
        steps(order, group=mistake)
        assert all(f"pack {s}" in order[f"exchange {s}"] for s in range(STAGES))
        assert all(f"exchange {s}" in order[f"unpack {s}"] for s in range(STAGES))
