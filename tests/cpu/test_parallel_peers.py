"""Buffers and flags between parts: a model of the protocol, in every order that can happen."""

import sys
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from dgbook.gpu import peers as memory
from dgbook.page.exchange_film import exchange_film
from dgbook.page.interleavings import ROUNDS, Landing, Model, Step, ahead, explore
from dgbook.parallel import peers
from dgbook.parallel.peers import BUFFERS, Window

PAIR, ROW, RING = [(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]
RIGHT = ("store", "fence", "flag", "wait", "fetch")
"""What a GPU does in a round, each with all of its neighbors."""


def exchange_of(buffers, order=RIGHT, condition=lambda flag, r: flag > r):
    """An exchange with some buffers by turns, in an order, and what it waits for."""

    def exchange(r, gpu):
        steps = {
            "store": lambda: gpu.store(r % buffers),
            "fence": gpu.fence,
            "flag": lambda: gpu.raise_flag(r + 1),
            "wait": lambda: gpu.wait_until(lambda flag: condition(flag, r)),
            "fetch": lambda: gpu.fetch(r % buffers),
        }
        for what in order:
            steps[what]()

    return exchange


@pytest.mark.parametrize("edges", [PAIR, ROW, RING], ids=["pair", "row", "ring"])
def test_two_buffers_suffice_and_one_does_not(edges):
    assert not explore(Model(exchange_of(BUFFERS), edges, BUFFERS)).trouble
    found = explore(Model(exchange_of(BUFFERS - 1), edges, BUFFERS))
    assert "was ahead and overwrote them" in found.trouble
    assert found.trail[-1].what.what == "fetch"


@pytest.mark.parametrize(
    ("order", "trouble"),
    [
        (("fence", "flag", "store", "wait", "fetch"), "has raised its flag before it stores"),
        (("store", "flag", "wait", "fetch"), "the flag has overtaken the traces"),
        (("store", "flag", "fence", "wait", "fetch"), "the flag has overtaken the traces"),
        (("store", "fence", "flag", "fetch"), "did not wait"),
        (("wait", "store", "fence", "flag", "fetch"), "waits forever in round 0"),
        (("store", "fence", "wait", "fetch"), "waits forever in round 0"),
    ],
)
def test_wrong_orders_are_refused(order, trouble):
    assert trouble in explore(Model(exchange_of(BUFFERS, order))).trouble


@pytest.mark.parametrize(
    ("condition", "trouble"),
    [
        (lambda flag, r: flag >= r, "did not wait"),
        (lambda flag, r: flag == r + 1, "waits forever in round 0: the flag is 2"),
        (lambda flag, r: flag >= r + 2, "waits forever in round 0: the flag is 1"),
        (lambda flag, r: flag in (r + 1, r + 2), ""),  # it is never further ahead
    ],
)
def test_what_is_waited_for(condition, trouble):
    found = explore(Model(exchange_of(BUFFERS, condition=condition)))
    assert trouble in found.trouble and bool(found.trouble) == bool(trouble)


def test_states_of_a_model():
    """What is under way lands in any order, but to one place in turn; fences wait for it."""
    model = Model(exchange_of(BUFFERS, ("store", "flag", "store", "fence")))
    state = model.first
    for _ in range(3):
        state = next(e for e in model.after(state) if e.gpu == 0 and isinstance(e.what, Step)).state
    now = [event.what for event in model.after(state) if event.gpu == 0]
    assert now == [Landing(0, 0), Landing(BUFFERS, 1)]  # no second store of it, and no fence
    trail = ahead(Model(exchange_of(BUFFERS)))
    assert all(len(event.state.under_way[0]) <= 1 for event in trail)
    fetched = [event.what.round for event in trail if getattr(event.what, "what", "") == "fetch"]
    assert fetched == sorted(fetched) and len(fetched) == 2 * ROUNDS


def test_buffers_that_are_not_meant():
    def other(r, gpu):
        exchange_of(BUFFERS, RIGHT[:-1])(r, gpu)
        gpu.fetch((r + 1) % BUFFERS)

    found = explore(Model(other))
    assert "fetches buffer 1, but the traces are in buffer 0." in found.trouble
    with pytest.raises(ValueError, match="buffer = 2; allowed: 0 to 1"):
        Model(exchange_of(3))


def test_a_film_shows_where_it_goes_wrong():
    """Equal to the model's way but for what lands at once; the last words are the trouble."""
    two, bare = (
        Model(exchange_of(BUFFERS, order)) for order in (RIGHT, ("store", "flag", "wait", "fetch"))
    )
    found = explore(bare)
    film = exchange_film(
        {"right": (two, ahead(two)[:5]), "bare": (bare, found.trail)}, "Two GPUs that exchange."
    )
    for words in (
        "GPU 0 stores round 0 into buffer 0 of GPU 1.",
        "GPU 0 stores round 0 into buffer 0 of GPU 1, which is under way.",
        "GPU 0 sets its flag at GPU 1 to 1, though what it has stored is under way.",
        found.trouble,
    ):
        assert f'"{words}"' in film.html


def test_nothing_overlaps_in_a_window(monkeypatch):
    """Flags of all ranks, then buffers, each with the numbers of its sources."""
    monkeypatch.setattr(memory, "allocate", lambda nbytes: np.zeros(nbytes, np.uint8))
    monkeypatch.setattr(memory, "handle", lambda array: array)
    monkeypatch.setattr(memory, "opened", lambda array: array.ctypes.data)
    transport = SimpleNamespace(parts=3, mine=range(1, 2), everyone=lambda value: [value] * 3)
    window = Window(transport, 300)
    assert window.capacity == 512 and peers.round_up(512) == 512
    begin, capacity, starts = window.bases[0], window.capacity, {1: 0, 2: 100}
    spans = []
    for source, size in ((1, 100), (2, 200)):
        buffers, flag = window.places(0, source, capacity, starts)
        spans += [(flag, flag + 4), *((at, at + size) for at in buffers)]
        assert flag == begin + 4 * source
    spans.sort()
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert spans[-1][1] <= begin + 256 + window.buffers.nbytes
    assert window.flags.ctypes.data == begin and window.buffers.ctypes.data == begin + 256


def test_what_cupy_is_asked(monkeypatch):
    """Whole allocations of its runtime, which others open by 64 bytes; and what it refuses."""
    arrays = {}

    class CUDARuntimeError(RuntimeError):
        pass

    def malloc(size):
        arrays[4096] = np.full(size, 7, np.uint8)
        return 4096

    def ndarray(shape, dtype, pointer):
        memory, offset = pointer
        ptr, size, owner, device = memory
        assert (offset, owner, device) == (0, None, 3) and size == arrays[ptr].nbytes
        made = arrays[ptr][: shape[0]].view(Array)
        made.data_of = SimpleNamespace(ptr=ptr)
        return made

    class Array(np.ndarray):
        data = property(lambda self: self.data_of)

    def open_handle(given):
        if given != b"4096":
            raise CUDARuntimeError("peer access is not supported")
        return 8192

    runtime = SimpleNamespace(
        malloc=malloc,
        ipcGetMemHandle=lambda pointer: str(pointer).encode(),
        ipcOpenMemHandle=open_handle,
        CUDARuntimeError=CUDARuntimeError,
    )
    cuda = SimpleNamespace(
        runtime=runtime,
        UnownedMemory=lambda *given: given,
        MemoryPointer=lambda *given: given,
        Device=lambda: SimpleNamespace(id=3),
    )
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda, ndarray=ndarray))
    array = memory.allocate(memory.ALIGNED + 1)
    assert array.shape == (memory.ALIGNED + 1,) and not array.any()
    assert arrays[4096].nbytes == 2 * memory.ALIGNED
    assert memory.opened(memory.handle(array)) == 8192
    with pytest.raises(RuntimeError, match=r"open the memory of another one \(peer access"):
        memory.opened(b"another")


def test_ranks_are_on_one_machine():
    memory.check_one_machine(["a", "a"])
    with pytest.raises(RuntimeError, match="ranks are on 2 machines, a, b; allowed for memory of"):
        memory.check_one_machine(["b", "a", "b"])
