"""What waits for what on a GPU in a stage of a mesh in parts: by streams like those of CUDA.

Each launch knows the launches that are done before it begins, as CUDA promises it by streams and
events. So a wait that is missing shows, and one that is not needed.
"""

import sys
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
    """By launch all that are done before it, of a step of a part that has a neighbor."""
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=CUDA))
    monkeypatch.setattr(CUDA, "streams", [Stream()])
    monkeypatch.setattr(Stream, "first", Stream.made)
    return {}


def launch(order, name, *_):
    CUDA.get_current_stream().launch(name, order)


def step(order, group=NcclGroup, in_ranges=True):
    """With messages for the next stage at the end of each; ghosts are ready when it begins."""
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
    halo.connection = group(SimpleNamespace(exchange=exchange), [], [], device)
    halo.sends = [SimpleNamespace(piece=0, buffer=None, transfer=numbered("pack"))]
    halo.receives = [SimpleNamespace(piece=0, buffer=None, transfer=numbered("unpack"))]

    def stages():
        for stage in range(STAGES):
            launch(order, f"given {stage}")
            yield lambda some="all", stage=stage: launch(order, f"{some} {stage}"), "a state"

    _through(halo, device, in_ranges, [stages])


def check_messages(order, edge):
    """They wait for the edge, whose next stage waits for them."""
    for s in range(STAGES):
        assert f"{edge} {s}" in order[f"pack {s}"]
        assert f"pack {s}" in order[f"exchange {s}"]
        assert f"exchange {s}" in order[f"unpack {s}"]
        assert f"given {s}" in order[f"{edge} {s}"]
        if s:
            assert f"unpack {s - 1}" in order[f"{edge} {s}"]
    launch(order, "later")  # whoever comes after a step comes after all of it
    assert len(order["later"]) == len(order) - 1


def test_a_stage_waits_for_what_it_reads_and_for_nothing_else(order):
    step(order)
    assert len(order) == 6 * STAGES
    for s in range(STAGES):
        assert f"given {s}" in order[f"interior {s}"]
        if s:
            for name in ("interior", "edge", "given"):  # neighbors, and the array written
                assert {f"interior {s - 1}", f"edge {s - 1}"} <= order[f"{name} {s}"]
        # The interior waits for none of the messages that came last, nor they for the interior.
        for name in ("pack", "exchange", "unpack"):
            assert f"{name} {s - 1}" not in order[f"interior {s}"]
            assert f"interior {s}" not in order[f"{name} {s}"]
        assert f"interior {s}" not in order[f"edge {s}"]
        assert f"edge {s}" not in order[f"interior {s}"]
    check_messages(order, "edge")


def test_without_ranges_a_stage_waits_for_messages(order):
    step(order, in_ranges=False)
    assert len(order) == 5 * STAGES
    check_messages(order, "all")


class NoFork(NcclGroup):
    """Messages leave in another stream, without waiting for what is packed."""

    def start(self):
        stream = Stream(priority=-1)
        with stream:
            self.exchange(stream.ptr)
        self.done = stream.record(Event(True))

    def finish(self):
        CUDA.get_current_stream().wait_event(self.done)


class NoWait(NcclGroup):
    """What has arrived is read without asking whether it has."""

    def start(self):
        stream = Stream(priority=-1)
        stream.wait_event(CUDA.get_current_stream().record(Event(True)))
        with stream:
            self.exchange(stream.ptr)


@pytest.mark.parametrize("mistake", [NoFork, NoWait])
def test_a_missing_wait_shows(mistake, order):
    step(order, group=mistake)
    with pytest.raises(AssertionError):
        check_messages(order, "edge")
