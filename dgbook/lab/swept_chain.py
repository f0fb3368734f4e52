"""What a level of the swept rule computes at a point: its longest chain, and how long that takes.

The formula of a problem runs once, with `Node`s for numbers, which remember how they came about.
Weighted by what the record machine/chains says of each kind of operation, they give a level's time
on few points, where a thread waits for its own results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from dgbook.lab import machine, records
from dgbook.lab.probes import BRANCHING, OPERATIONS
from dgbook.lab.swept import SINGLE
from dgbook.lab.swept_division import BRANCHING as WITH_BRANCHES
from dgbook.lab.swept_model import recorded_machine
from dgbook.swept.arithmetic import Arithmetic
from dgbook.swept.point import make_access
from dgbook.swept.problem import Problem

SHOWN = 2**11
"""Points at which a level waits and has next to no work: 16 blocks of 128 threads for heat."""


@dataclass(frozen=True, eq=False)
class Node:
    """A number that knows what it was computed from.

    Attributes
    ----------
    operation : str
        Of `dgbook.lab.probes.OPERATIONS`; empty if it was there before.
    operands : tuple of Node
        Without constants, which are there from the beginning.
    """

    operation: str = ""
    operands: tuple[Node, ...] = ()

    def __add__(self, other: Node | float) -> Node:
        return _after("add", self, other)

    def __mul__(self, other: Node | float) -> Node:
        return _after("multiply", self, other)

    def __lt__(self, other: Node | float) -> Node:
        return _after("choose", self, other)

    __radd__ = __sub__ = __rsub__ = __add__
    __rmul__, __gt__ = __mul__, __lt__

    def __abs__(self) -> Node:
        return self  # a bit of the instruction that takes the number


def _after(operation: str, *operands: Node | float) -> Node:
    return Node(operation, tuple(o for o in operands if isinstance(o, Node)))


def _where(condition: Node, a: Node | float, b: Node | float) -> Node:
    """What is chosen: the comparison counts for both, so that this takes no time of its own."""
    return _after("", condition, a, b)


def _divide(x: Node | float, y: Node) -> Node:
    return _after("divide" if isinstance(x, Node) else "reciprocal", x, y)


def _kind(operation: str) -> Callable[..., Node]:
    return lambda *operands: _after(operation, *operands)


NODES = Arithmetic(
    jit=lambda function: function,
    where=_where,
    make_rsqrt=lambda real: _kind("rsqrt"),
    make_divide=lambda real: _divide,
    index=int,
    whole=int,
    fma=_kind("fma"),
)
"""The arithmetic of a GPU, in which a product and the sum that it goes into are one operation."""


def level_of(problem: Problem) -> tuple[Node, ...]:
    """The new state of a point, one node per field, after a level of the swept rule."""
    advance = make_access(problem, float, NODES).advance

    def state() -> Node | tuple[Node, ...]:
        fields = tuple(Node() for _ in problem.fields)
        return fields if len(fields) > 1 else fields[0]

    stencil = tuple(state() for _ in range(2 * problem.reach + 1))
    new = advance(state(), 1.0, stencil)
    return new if isinstance(new, tuple) else (new,)


def in_order(ends: Iterable[Node]) -> list[Node]:
    """All nodes that the last ones need, each after its operands."""
    found: dict[Node, None] = {}

    def visit(node: Node) -> None:
        if node not in found:
            for operand in node.operands:
                visit(operand)
            found[node] = None

    for end in ends:
        visit(end)
    return list(found)


def operations_of(ends: Iterable[Node]) -> Counter[str]:
    """How many operations of each kind there are."""
    return Counter(node.operation for node in in_order(ends) if node.operation)


def longest_chain(ends: Iterable[Node], seconds: Mapping[str, float]) -> Counter[str]:
    """The operations of the chain that takes longest, where an operation takes so many seconds."""
    until: dict[Node, tuple[float, Counter[str]]] = {}
    for node in in_order(ends):
        before = max((until[o] for o in node.operands), key=_time, default=(0.0, Counter()))
        mine = Counter([node.operation] if node.operation else ())
        until[node] = before[0] + seconds.get(node.operation, 0.0), before[1] + mine
    return max((until[end] for end in ends), key=_time)[1]


def _time(chain: tuple[float, Counter[str]]) -> float:
    return chain[0]


def total(operations: Mapping[str, int], seconds: Mapping[str, float]) -> float:
    """Seconds of operations that follow one another."""
    return sum(count * seconds[operation] for operation, count in operations.items())


def scheduled_seconds(
    ends: Iterable[Node], latency: Mapping[str, float], interval: Mapping[str, float]
) -> float:
    """When a thread has all results that begins one operation after the other.

    Of those whose operands are there it begins the one with the longest chain ahead, as compilers
    do (list scheduling). Its result is there after a latency; the next one begins after an
    interval, or when it has its operands.
    """
    nodes = in_order(ends)
    ahead = dict.fromkeys(nodes, 0.0)
    for node in reversed(nodes):
        ahead[node] += latency.get(node.operation, 0.0)
        for operand in node.operands:
            ahead[operand] = max(ahead[operand], ahead[node])
    there: dict[Node, float] = {}
    waiting, now = nodes, 0.0
    while waiting:
        begins = {
            node: max([now, *(there[o] for o in node.operands)])
            for node in waiting
            if all(o in there for o in node.operands)
        }
        node = min(begins, key=lambda node: (begins[node], -ahead[node]))
        there[node] = begins[node] + latency.get(node.operation, 0.0)
        if node.operation:
            now = begins[node] + interval[node.operation]
        waiting = [other for other in waiting if other is not node]
    return max(there.values())


# ------------------------------------------------------------------------------ recorded, predicted


@dataclass(frozen=True)
class Level:
    """Seconds of a level.

    Attributes
    ----------
    waiting : float
        Of its barrier and of a word from shared memory.
    chain : float
        Of its longest chain: with `waiting`, what it takes at least.
    scheduled : float
        Of all of its operations by a thread, see `scheduled_seconds`.
    """

    waiting: float
    chain: float
    scheduled: float


def recorded_seconds(dtype: str, chains: int, branching: bool = False) -> dict[str, float]:
    """Seconds per operation of a warp by the record machine/chains, with so many chains a thread.

    With 1 chain they are latencies, with 8 intervals. If `branching`, quotients and roots are those
    that compilers make of fp64.

    Raises
    ------
    FileNotFoundError
        If there is no such record.
    """
    effect = machine.EFFECTS["chain"]
    rows = machine.rows_of(
        effect, records.load(effect.record), dtype=dtype, chains=chains, full=False
    )
    found = {row["plan"]["operation"]: row["seconds_median"] / row["operations"] for row in rows}
    if branching:
        found |= {name.split()[-1]: found[name] for name in BRANCHING}
    return {operation: found[operation] for operation in OPERATIONS}


def predicted_level(problem: Problem, dtype: str, branching: bool = False) -> Level:
    """A level of Shared with a point per thread, by the records of what it consists of.

    If `branching`, with the quotients and roots that compilers make of fp64.

    Raises
    ------
    FileNotFoundError
        If one of machine/probes, machine/chains and swept/launch is missing.
    """
    here, ends = recorded_machine(dtype), level_of(problem)
    latency, interval = (recorded_seconds(dtype, chains, branching) for chains in (1, 8))
    return Level(
        here.barrier + here.shared_load,
        total(longest_chain(ends, latency), latency),
        scheduled_seconds(ends, latency, interval),
    )


def recorded_level(problem: Problem, dtype: str) -> float:
    """Seconds of a level by the record swept/step, on few points: a step has two per substep.

    A launch's share is in it.
    """
    return _level_of_a_step("swept/step", problem, dtype, SINGLE)


def branching_level(problem: Problem) -> float:
    """The same of Euler's equations in fp64 with branching quotients: record swept/division."""
    return _level_of_a_step("swept/division", problem, "float64", WITH_BRANCHES)


def _level_of_a_step(name: str, problem: Problem, dtype: str, variant: str) -> float:
    row = records.load(name).row(
        path="shared", dtype=dtype, variant=variant, size={"problem": problem.name, "n": SHOWN}
    )
    return row["seconds_median"] / (2 * len(problem.weights))
