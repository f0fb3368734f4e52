"""Buffers and flags between parts: a model of the protocol, in every order that can happen."""

import sys
from collections import deque
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from dgbook.gpu import peers as memory
from dgbook.parallel import peers
from dgbook.parallel.peers import BUFFERS, Window

ROUNDS = 5
PAIR, ROW, RING = [(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]
RIGHT = ("write", "flag", "wait", "read")
"""What a part does in a round, with each of its neighbors in turn."""


def explore(edges, buffers, order=RIGHT):
    """Go through all states of some parts that exchange; what is wrong, or None.

    A part's program is the same on all: only how far each has come, and what is in the buffers,
    makes a state. `edges` are pairs of neighbors. What is written in a round is the round.
    """
    parts = 1 + max(max(edge) for edge in edges)
    links = [link for edge in edges for link in (edge, edge[::-1])]  # from, to
    program = []
    for part in range(parts):
        others = [b for a, b in links if a == part]
        program.append([(r, what, b) for r in range(ROUNDS) for what in order for b in others])
    first = (0,) * parts, (-1,) * (len(links) * buffers), (0,) * len(links)
    seen, todo = {first}, deque([first])
    while todo:
        places, written, flags = todo.popleft()
        stuck = True
        for part, place in enumerate(places):
            if place == len(program[part]):
                continue
            round, what, other = program[part][place]
            after_written, after_flags = written, flags
            ours, theirs = links.index((part, other)), links.index((other, part))
            if what == "write":
                at = ours * buffers + round % buffers
                after_written = (*written[:at], round, *written[at + 1 :])
            elif what == "flag":
                after_flags = (*flags[:ours], round + 1, *flags[ours + 1 :])
            elif what == "wait" and flags[theirs] <= round:
                continue
            elif what == "read" and written[theirs * buffers + round % buffers] != round:
                return f"part {part} reads something else than round {round}"
            stuck = False
            state = (*places[:part], place + 1, *places[part + 1 :]), after_written, after_flags
            if state not in seen:
                seen.add(state)
                todo.append(state)
        if stuck and any(place < len(program[part]) for part, place in enumerate(places)):
            return "all wait for one another"
    return None


@pytest.mark.parametrize("edges", [PAIR, ROW, RING], ids=["pair", "row", "ring"])
def test_two_buffers_suffice_and_one_does_not(edges):
    assert explore(edges, BUFFERS) is None
    assert "reads something else" in explore(edges, BUFFERS - 1)


@pytest.mark.parametrize(
    ("order", "trouble"),
    [
        (("flag", "write", "wait", "read"), "reads something else"),
        (("write", "flag", "read"), "reads something else"),
        (("wait", "write", "flag", "read"), "all wait for one another"),
    ],
)
def test_wrong_orders_are_refused(order, trouble):
    assert trouble in explore(PAIR, BUFFERS, order)


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
