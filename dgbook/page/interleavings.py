"""GPUs that write into one another's memory: a model without a GPU, in all orders that can happen.

An exchange is a Python function ``exchange(r, gpu)`` of a lesson or a test, which does round r on a
stand-in, with the steps of `dgbook.parallel.peers`. What is stored lands later, in any order; only
what is written to one place twice lands in turn. A fence lasts until all of its GPU has landed.
Reads are in order, as behind an acquire, and a message is one number, which lands as a whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from dgbook.page.blank import Verdict, judged

PAIR = ((0, 1),)
BUFFERS, ROUNDS = 2, 4
"""Of a lesson: in round 2 a buffer comes again, and a GPU may be a round ahead."""
Exchange = Callable[[int, Any], None]


class Step(NamedTuple):
    """What a GPU does next, with one neighbor; `value` is a buffer, a flag or a condition."""

    round: int
    what: str
    other: int
    value: Any = None


class Landing(NamedTuple):
    """What a GPU had under way is in the memory of another one."""

    word: int
    value: int


class State(NamedTuple):
    """How far all are, what is in their memories, and what each has under way."""

    places: tuple[int, ...]
    words: tuple[int, ...]
    under_way: tuple[tuple[Landing, ...], ...]


class Event(NamedTuple):
    """Who did what, and the state after it."""

    gpu: int
    what: Step | Landing | None
    state: State


class Outcome(NamedTuple):
    """What is wrong, if anything, the shortest way there, and how many states there are."""

    trouble: str
    trail: list[Event]
    states: int


class Recorder:
    """The stand-in for a GPU: it writes down the steps of a round."""

    def __init__(self, buffers: int) -> None:
        self.buffers = buffers
        self.steps: list[tuple[str, Any]] = []

    def store(self, buffer: int) -> None:
        """Write this round's traces into a buffer of the neighbor."""
        self._add("store", self._checked(buffer))

    def fence(self) -> None:
        """Go on when all that this GPU has stored has landed."""
        self._add("fence")

    def raise_flag(self, value: int) -> None:
        """Write this GPU's flag, which is in the neighbor's memory."""
        self._add("flag", value)

    def wait_until(self, condition: Callable[[int], bool]) -> None:
        """Read the neighbor's flag, in this GPU's memory, until the condition is true of it."""
        self._add("wait", condition)

    def fetch(self, buffer: int) -> None:
        """Read a buffer of this GPU."""
        self._add("fetch", self._checked(buffer))

    def _add(self, what: str, value: Any = None) -> None:
        self.steps.append((what, value))

    def _checked(self, buffer: int) -> int:
        if buffer not in range(self.buffers):
            raise ValueError(f"buffer = {buffer!r}; allowed: 0 to {self.buffers - 1}")
        return buffer


class Model:
    """Some GPUs that exchange, all by the same program.

    Traces of a round are one number, the round; a buffer has -1 before the first.

    Parameters
    ----------
    exchange : function
        ``exchange(r, gpu)`` does round r on a `Recorder`.
    edges : sequence of pairs of int
        Neighbors. A GPU does each step with all of its neighbors before the next step.
    buffers, rounds : int
    """

    def __init__(
        self,
        exchange: Exchange,
        edges: Sequence[tuple[int, int]] = PAIR,
        buffers: int = BUFFERS,
        rounds: int = ROUNDS,
    ) -> None:
        self.buffers = buffers
        self.links = [link for edge in edges for link in (edge, edge[::-1])]  # from, to
        gpus = range(1 + max(max(edge) for edge in edges))
        self.programs: list[list[Step]] = [[] for _ in gpus]
        for r in range(rounds):
            recorder = Recorder(buffers)
            exchange(r, recorder)
            for gpu in gpus:
                others = [b for a, b in self.links if a == gpu]
                self.programs[gpu] += [
                    Step(r, what, other, value)
                    for what, value in recorder.steps
                    for other in others
                ]
        empty = (*(-1,) * buffers, 0)  # and the flag
        self.first = State((0,) * len(gpus), empty * len(self.links), ((),) * len(gpus))

    def word(self, source: int, target: int, buffer: int) -> int:
        """Where a buffer is, or, behind the last one, the flag."""
        return self.links.index((source, target)) * (self.buffers + 1) + buffer

    def flag(self, state: State, gpu: int, other: int) -> int:
        """The flag of another GPU in the memory of this one."""
        return state.words[self.word(other, gpu, self.buffers)]

    def next(self, state: State, gpu: int) -> Step | None:
        """What a GPU does next; None if it has done all."""
        place = state.places[gpu]
        return self.programs[gpu][place] if place < len(self.programs[gpu]) else None

    def after(self, state: State) -> Iterator[Event]:
        """All that may happen next."""
        for gpu, under_way in enumerate(state.under_way):
            words = [landing.word for landing in under_way]
            for i, landing in enumerate(under_way):
                if landing.word not in words[:i]:
                    rest = (*under_way[:i], *under_way[i + 1 :])
                    there = replaced(state.words, landing.word, landing.value)
                    left = replaced(state.under_way, gpu, rest)
                    yield Event(gpu, landing, State(state.places, there, left))
            step = self.next(state, gpu)
            if step is None or (step.what == "fence" and under_way):
                continue
            if step.what == "wait" and not step.value(self.flag(state, gpu, step.other)):
                continue
            if step.what in ("store", "flag"):
                data = step.what == "store"
                word = self.word(gpu, step.other, step.value if data else self.buffers)
                under_way = (*under_way, Landing(word, step.round if data else step.value))
            sent = replaced(state.under_way, gpu, under_way)
            places = replaced(state.places, gpu, state.places[gpu] + 1)
            yield Event(gpu, step, State(places, state.words, sent))

    def wrong(self, event: Event) -> str:
        """What is wrong with a fetch, if anything."""
        gpu, step, state = event
        if not isinstance(step, Step) or step.what != "fetch":
            return ""
        word, r = self.word(step.other, gpu, step.value), step.round
        have, flag = state.words[word], self.flag(state, gpu, step.other)
        if have == r:
            return ""
        begin = f"In round {r} GPU {gpu} fetches"
        if have > r:
            return f"{begin} traces of round {have}: GPU {step.other} was ahead and overwrote them."
        if flag > r:
            done = self.programs[step.other][: state.places[step.other]]
            stored = [s.value for s in done if (s.round, s.what, s.other) == (r, "store", gpu)]
            if not stored:
                return f"{begin} too soon: GPU {step.other} has raised its flag before it stores."
            if step.value not in stored:
                return f"{begin} buffer {step.value}, but the traces are in buffer {stored[0]}."
            return f"{begin} too soon: the flag has overtaken the traces, which are under way."
        old = f"traces of round {have}" if have >= 0 else "what nobody has written"
        return f"{begin} {old}: GPU {step.other}'s flag is {flag}, and GPU {gpu} did not wait."

    def stuck(self, state: State) -> str:
        """What is wrong with a state after which nothing happens, if anything."""
        waiting = [(self.next(state, gpu), gpu) for gpu in range(len(self.programs))]
        waiting = [(step, gpu) for step, gpu in waiting if step is not None]
        if not waiting:
            return ""
        step, gpu = min(waiting, key=lambda one: one[0].round)
        flag = self.flag(state, gpu, step.other)
        return f"GPU {gpu} waits forever in round {step.round}: the flag is {flag}."


def replaced(values: tuple[Any, ...], i: int, value: Any) -> tuple[Any, ...]:
    """Some values with another one at a place."""
    return (*values[:i], value, *values[i + 1 :])


def explore(model: Model) -> Outcome:
    """Go through all states that can be reached, and stop where one is wrong."""
    came: dict[State, tuple[State | None, Event]] = {
        model.first: (None, Event(0, None, model.first))
    }
    todo = deque([model.first])

    def outcome(trouble: str, state: State | None, last: list[Event]) -> Outcome:
        trail = last
        while state is not None:
            state, event = came[state]
            trail = [event, *trail]
        return Outcome(trouble, trail, len(came))

    while todo:
        state = todo.popleft()
        events = list(model.after(state))
        for event in events:
            if trouble := model.wrong(event):
                return outcome(trouble, state, [event])
            if event.state not in came:
                came[event.state] = state, event
                todo.append(event.state)
        if not events and (trouble := model.stuck(state)):
            return outcome(trouble, state, [])
    return Outcome("", [], len(came))


def ahead(model: Model) -> list[Event]:
    """The way on which the first GPU is always as far as it can be, and all lands at once."""
    trail = [Event(0, None, model.first)]
    while (event := next(model.after(trail[-1].state), None)) is not None:
        trail.append(event)
    return trail


def check_exchange(exchange: Exchange) -> Verdict:
    """Run a reader's exchange of two GPUs in every order that can happen."""

    def judge() -> Verdict:
        model = Model(exchange)
        if not any(step.what == "fetch" for step in model.programs[0]):
            return Verdict("wrong", "Not quite.", "Nothing is fetched.")
        found = explore(model)
        if found.trouble:
            return Verdict("wrong", "Not quite.", found.trouble)
        words = f"{found.states:,} states of two GPUs in {ROUNDS} rounds, and no fetch is wrong."
        return Verdict("right", "Right:", words)

    return judged(exchange, judge)
