"""Two ranks without a GPU: stand-ins for streams, events and NCCL, for a lesson's blank.

A stream is a thread that does what is enqueued, in order and beside all others, as a GPU does. What
it does takes milliseconds, so that whoever does not wait for something comes too early, each time.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from dgbook.page.blank import Verdict, check_function

PATIENCE = 5.0
"""Seconds after which nobody waits any longer for an event, or for a message."""
MESSAGE, PACKING, UNPACKING, EDGE, INTERIOR = 0.02, 0.005, 0.001, 0.002, 0.01
"""Seconds that these take."""
_here = threading.local()


class Stream:
    """CuPy's stream, as far as the lesson needs it."""

    def __init__(self) -> None:
        self.ptr = self
        self.tasks: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            self.tasks.get()()

    def __enter__(self) -> Stream:
        _here.stream = self
        return self

    def __exit__(self, *error: object) -> None:
        del _here.stream

    def record(self) -> threading.Event:
        """A mark behind what has been enqueued."""
        event = threading.Event()
        self.tasks.put(event.set)
        return event

    def wait_event(self, event: threading.Event) -> None:
        """Let what is enqueued from now on wait for a mark."""
        self.tasks.put(lambda: event.wait(PATIENCE))


class Nccl:
    """A rank's NCCL and its communicator. Messages of a group leave before any is waited for.

    Parameters
    ----------
    rank : int
    mail : mapping
        By sender and receiver the queue of messages between them.
    """

    def __init__(self, rank: int, mail: dict[tuple[int, int], queue.SimpleQueue]) -> None:
        self.rank, self.mail = rank, mail

    def groupStart(self) -> None:
        """Begin a group."""
        self.sends: list[tuple[Stream, Callable[[], None]]] = []
        self.receives: list[tuple[Stream, Callable[[], None]]] = []

    def send(self, array: np.ndarray, other: int, stream: Stream) -> None:
        """Send an array to another rank."""
        box = self.mail[self.rank, other]
        self.sends.append((stream, lambda: box.put(array.copy())))

    def recv(self, array: np.ndarray, other: int, stream: Stream) -> None:
        """Receive an array from another rank."""
        box = self.mail[other, self.rank]

        def arrive() -> None:
            time.sleep(MESSAGE)
            array[:] = box.get(timeout=PATIENCE)

        self.receives.append((stream, arrive))

    def groupEnd(self) -> None:
        """Enqueue the group."""
        for stream, task in self.sends + self.receives:
            stream.tasks.put(task)


def about(array: np.ndarray) -> tuple[np.ndarray]:
    """What NCCL asks of a buffer: address, size and type; here the array knows all of it."""
    return (array,)


def _kernel(seconds: float) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A function whose calls are enqueued in the current stream, and take so long."""

    def of(function: Callable[..., None]) -> Callable[..., None]:
        def launch(*arrays: np.ndarray) -> None:
            _here.stream.tasks.put(lambda: (time.sleep(seconds), function(*arrays)))

        return launch

    return of


@_kernel(PACKING)
def pack_ends(u: np.ndarray, outbox: np.ndarray) -> None:
    """The first and the last cell of a part, as its neighbor needs them."""
    outbox[:] = u[[1, -2]]


@_kernel(UNPACKING)
def unpack(inbox: np.ndarray, u: np.ndarray) -> None:
    """Fill the ghosts, which stand at both ends of `u`: on a ring of two parts crosswise."""
    u[[-1, 0]] = inbox


@_kernel(EDGE)
def edge(u: np.ndarray, new: np.ndarray) -> None:
    """The two cells that need a ghost."""
    new[[1, -2]] = _advanced(u)[[0, -1]]


@_kernel(INTERIOR)
def interior(u: np.ndarray, new: np.ndarray) -> None:
    """All other cells."""
    new[2:-2] = _advanced(u)[1:-1]


def _advanced(u: np.ndarray) -> np.ndarray:
    """A stage of heat in the cells between ghosts."""
    return u[1:-1] + 0.4 * ((u[:-2] - u[1:-1]) + (u[2:] - u[1:-1]))


class OnTwoRanks:
    """Two ranks that run a reader's stage, each on half of a ring of cells.

    Parameters
    ----------
    advance : function
        ``advance(u, new, outbox, inbox, other, main, side, nccl, comm)``, which enqueues a stage.
    """

    def __init__(self, advance: Callable[..., None]) -> None:
        self.py_func = advance  # whose text a check reads

    def __call__(self, whole: np.ndarray, stages: int) -> np.ndarray:
        """The ring after so many stages."""
        mail = {way: queue.SimpleQueue() for way in ((0, 1), (1, 0))}
        halves = np.split(whole, 2)
        with ThreadPoolExecutor(2) as ranks:
            both = ranks.map(lambda r: self._rank(r, halves[r], stages, mail), (0, 1))
            return np.concatenate(list(both))

    def _rank(self, rank: int, own: np.ndarray, stages: int, mail: dict) -> np.ndarray:
        u, new = np.pad(own, 1), np.zeros(len(own) + 2)
        outbox, inbox, main, side = np.zeros(2), np.zeros(2), Stream(), Stream()
        nccl = Nccl(rank, mail)
        for _ in range(stages):
            self.py_func(u, new, outbox, inbox, 1 - rank, main, side, nccl, nccl)
            u, new = new, u
        main.record().wait(PATIENCE)
        return u[1:-1].copy()


def check_on_two_ranks(advance: Callable[..., None]) -> Verdict:
    """Run a reader's stage on two ranks, and compare bits with the whole ring's."""
    ring = np.random.default_rng(5).uniform(1, 2, 16)
    states = [ring]
    for _ in range(3):
        states.append(_advanced(np.pad(states[-1], 1, mode="wrap")))
    early = states[1].copy()  # of halves whose ghosts are zero
    early[[0, 7, 8, 15]] -= 0.4 * ring[[15, 8, 7, 0]]
    late = states[1].copy()
    late[[0, 7, 8, 15]] = 0
    known = {
        "The message left before it was packed.": early,
        "The next stage began before the edge was done.": late,
    }
    also = [(states[3], ring, 3)]
    return check_function(OnTwoRanks(advance), states[1], ring, 1, also=also, known=known)
