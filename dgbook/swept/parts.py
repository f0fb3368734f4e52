"""Classic, tiles and the swept rule in parts: points are cut, and ghosts are filled in between.

A part is a domain of its own: its points, and beside them ghosts, copies of a neighbor's. Where it
was cut a kernel takes the last ghost for the domain's end, and computes wrong states. They spread
inwards, and never reach the part's own points before the ghosts are filled again. So all kernels
are those of one part, but for that of an edge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import lcm
from typing import Any

import numpy as np

from dgbook.arguments import check_choice, check_integer
from dgbook.gpu import Device
from dgbook.gpu.device import WITH_KERNELS, as_device
from dgbook.parallel.transport import MpiRanks, NcclRanks, OneProcess, Packet, Transport
from dgbook.swept.plan import Plan, ghost_points, node_points, steps_between_results
from dgbook.swept.problem import Problem, as_problem
from dgbook.swept.solver import Solver, copy_to, each, repeated

PART_SCHEMES = {"classic": "classic", "overlapped": "classic", "deep": "tiled", "shared": "shared"}
"""How parts are advanced together, and the scheme by which one of them is."""
LEFT, RIGHT = "to the left", "to the right"
Views = Callable[[Any, int, int], list[Any]]
"""``views(array, first, last)``: what an array holds of these points, in contiguous pieces."""


@dataclass(frozen=True, eq=False)
class Part:
    """A part's points, and its ghosts.

    Attributes
    ----------
    number : int
    left, right : int
        How many ghosts there are on either side: none where the domain ends.
    solver : Solver
        For its points and ghosts, as if they were a whole domain.
    """

    number: int
    left: int
    right: int
    solver: Solver

    @property
    def own(self) -> slice:
        """Where its own points are among these."""
        return slice(self.left, self.solver.n - self.right)

    def of(self, u: np.ndarray) -> np.ndarray:
        """Of a state of all points, (fields, n), that of the part's points and ghosts."""
        first = self.number * (self.own.stop - self.own.start) - self.left
        return u.take(np.arange(first, first + self.solver.n), axis=1, mode="wrap")


class Parts(Solver):
    """A problem on n points, of which each part has as many, side by side.

    ::

        u = swept.Parts("heat", "shared", n=2**20, comm=MPI.COMM_WORLD).run(u, steps)

    Parameters
    ----------
    problem : Problem or {"heat", "ks", "euler"}
    scheme : {"classic", "overlapped", "deep", "shared"}
        All compute the same numbers as one part. In Classic r states go to either side after each
        substep. Overlapped is Classic that updates the edge of a part first, which then travels
        while the interior is updated. Deep are tiles: a part has ghosts for `launches` launches of
        several steps, and computes them as well. Shared is the swept rule: an edge of a node goes
        to one side, for a node's height of substeps, and hardly anything is computed twice.
    n : int
        Points: a multiple of the parts, of "shared" of parts times node.
    dtype : {"float64", "float32"}
    device : Device or {"auto", "cuda", "cpu", "simulator"}
        Of "cuda" each rank has one of its own (see `dgbook.gpu.nccl.take_gpu`).
    threads : int or Plan, optional
        As for `Solver`, of a part.
    parts : int
        How many there are in this process.
    comm : mpi4py.MPI.Comm or Transport, optional
        Instead of `parts`: a part for each rank, or a transport of one's own. All ranks call the
        same methods.
    launches : int
        Of Deep, between two exchanges.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above, or a part has fewer points than it has to send.
    RuntimeError
        For "cuda" where there is no CUDA device, or where ranks share one or have no NCCL.

    Attributes
    ----------
    mine : list of Part
        Those of this process.
    ghosts : int
        On a side that was cut.
    """

    def __init__(
        self,
        problem: Problem | str,
        scheme: str = "shared",
        n: int = 1024,
        dtype: str = "float64",
        device: Device | str = "auto",
        threads: int | Plan | None = None,
        parts: int = 1,
        comm: Any = None,
        launches: int = 1,
    ) -> None:
        problem = as_problem(problem)
        check_choice("scheme", scheme, PART_SCHEMES)
        check_integer("launches", launches, 1)
        if launches > 1 and scheme != "deep":
            raise ValueError(f"launches = {launches}; allowed for {scheme!r}: 1")
        if comm is not None and parts != 1:
            raise ValueError(f"parts = {parts} with comm; allowed: one of them")
        device = as_device(device, WITH_KERNELS)
        self.transport = _transport(device, parts, comm)
        count = self.transport.parts
        check_integer("n", n, count)
        if n % count:
            raise ValueError(f"n = {n}; allowed in {count} parts: multiples of {count}")
        how = PART_SCHEMES[scheme]
        try:
            plan = Solver(problem, how, n // count, dtype, device, threads).plan
        except ValueError as trouble:
            raise ValueError(f"of {count} parts, each: {trouble}") from None
        super().__init__(problem, how, n, dtype, device, plan)
        self.together, self.launches = scheme, launches
        self.steps_between_results = steps_between_results(problem, how, plan) * launches
        self.ghosts = _ghosts(problem, scheme, plan) * launches
        least = 2 * self.ghosts + plan.points if scheme == "overlapped" else self.ghosts
        if count > 1 and n // count < least:
            raise ValueError(f"n = {n}; allowed in {count} parts: {count * least} or more")
        self.mine = [self._part(number) for number in self.transport.mine]

    def _part(self, number: int) -> Part:
        count, own = self.transport.parts, self.n // self.transport.parts
        ring = self.problem.boundary == "periodic" and count > 1
        left = self.ghosts if ring or number > 0 else 0
        right = self.ghosts if ring or number < count - 1 else 0
        n = left + own + right
        about = self.problem, self.scheme, n, self.dtype.name, self.device, self.plan
        return Part(number, left, right, Solver(*about))

    def launcher(self, u: np.ndarray) -> Together:
        """As `Solver.launcher`, with this process's parts of the state u of all points."""
        return Together(self, u)


def _transport(device: Device, parts: int, comm: Any) -> Transport:
    """What connects parts in this process, or those of all ranks."""
    if comm is None:
        return OneProcess(parts)
    if isinstance(comm, Transport):
        return comm
    return NcclRanks(comm) if device.kind == "cuda" else MpiRanks(comm)


def _ghosts(problem: Problem, scheme: str, plan: Plan) -> int:
    """Points on a side that was cut, for one launch; of Classic r, in whole threads."""
    if scheme == "shared":
        return node_points(scheme, plan)
    if scheme == "deep":
        return ghost_points(problem, plan)
    return -(-problem.reach // plan.points) * plan.points


class Together:
    """This process's parts on the device, and their connections; as `Launcher` it is used.

    Attributes
    ----------
    launchers : list of Launcher
        Of each part.
    """

    def __init__(self, solver: Parts, u: np.ndarray) -> None:
        self.solver, self.device = solver, solver.device
        self.fields = len(solver.problem.fields)
        self.launchers: list[Any] = [part.solver.launcher(part.of(u)) for part in solver.mine]

    def record(self, steps: int) -> Callable[[], None]:
        """As `Launcher.record`; all ranks call it, and what it returns, together.

        Raises
        ------
        ValueError
            If the steps are no multiple of those between two results.
        """
        every = self.solver.steps_between_results
        if steps % every:
            raise ValueError(f"steps = {steps}; allowed: multiples of {every}")
        if self.solver.together == "shared":
            return self._swept(steps // every)
        return self._to_and_fro(steps)

    def download(self) -> np.ndarray:
        """The state of all points, (fields, n), on every rank."""
        parts = zip(self.solver.mine, self.launchers, strict=True)
        states = [one.download()[:, part.own] for part, one in parts]
        everyone = self.solver.transport.everyone(states)
        return np.concatenate([state for states in everyone for state in states], axis=1)

    def _exchange(
        self, *moves: tuple[Sequence[Any], Views, Sequence[str]]
    ) -> tuple[Callable, Callable]:
        """What starts and what finishes an exchange of the ghosts of arrays.

        Of each move the array of every part, how it holds points, and which ways they go.
        """
        sends, receives = [], []
        count, ghosts = self.solver.transport.parts, self.solver.ghosts
        for arrays, views, ways in moves:
            for part, array in zip(self.solver.mine, arrays, strict=True):
                me, begin, end = part.number, part.own.start, part.own.stop
                before, after = (me - 1) % count, (me + 1) % count
                pieces = partial(views, array)
                # Of two parts in a ring each is on both sides of the other: what goes to the left
                # is sent first, and received first.
                if part.left and LEFT in ways:
                    sends += [Packet(me, before, v) for v in pieces(begin, begin + ghosts)]
                if part.right and RIGHT in ways:
                    sends += [Packet(me, after, v) for v in pieces(end - ghosts, end)]
                if part.right and LEFT in ways:
                    receives += [Packet(after, me, v) for v in pieces(end, end + ghosts)]
                if part.left and RIGHT in ways:
                    receives += [Packet(before, me, v) for v in pieces(0, begin)]
        connection = self.solver.transport.connect(sends, receives, self.device)
        return connection.start, connection.finish

    # -- Classic, and tiles --------------------------------------------------------------------

    def _to_and_fro(self, steps: int) -> Callable[[], None]:
        """Launches from u to another array and back; after every few of them ghosts are exchanged.

        After an odd number of them the result is taken home.
        """
        solver = self.solver
        of_a_step = len(solver.problem.weights)
        deep = solver.together == "deep"
        if deep and self.device.kind != "cpu":
            count, between = steps // solver.plan.steps, solver.launches
        else:
            count = steps * of_a_step
            between = solver.steps_between_results * of_a_step if deep else 1
        homes, others = ([getattr(one, name) for one in self.launchers] for name in ("u", "other"))
        ways = LEFT, RIGHT
        turn = self._overlapped if solver.together == "overlapped" else self._plain
        turns = [
            turn(way, self._exchange((arrays, self._rows, ways)))
            for way, arrays in enumerate((others, homes))
        ]

        def launches(number: int) -> list[Callable]:
            """So many of them, from u on."""
            found = []
            for k in range(number):
                computing, exchanging = turns[k % 2]
                found += computing + (exchanging if (k + 1) % between == 0 else [])
            return found

        period = lcm(2, between)
        whole, rest = divmod(count, period)
        run = repeated(self.device, launches(period), whole, launches(rest))
        home = zip(others, homes, strict=True) if count % 2 else ()
        return partial(each, [run, *(partial(copy_to, *pair) for pair in home)])

    def _rows(self, array: Any, first: int, last: int) -> list[Any]:
        """Of states, (fields n,): a field's behind another's."""
        n = array.size // self.fields
        return [array[f * n + first : f * n + last] for f in range(self.fields)]

    def _plain(
        self, way: int, exchange: tuple[Callable, Callable]
    ) -> tuple[list[Callable], list[Callable]]:
        """The launches of all points, and the exchange behind them."""
        return [one.launches()[way] for one in self.launchers], list(exchange)

    def _overlapped(
        self, way: int, exchange: tuple[Callable, Callable]
    ) -> tuple[list[Callable], list[Callable]]:
        """The launches of the edges, and the exchange around those of the interiors."""
        edges, interiors, ghosts = [], [], self.solver.ghosts
        for part, one in zip(self.solver.mine, self.launchers, strict=True):
            begin, end = part.own.start, part.own.stop
            if part.left:
                begin += ghosts
                edges.append(one.launches_of(begin - ghosts, begin)[way])
            if part.right:
                end -= ghosts
                edges.append(one.launches_of(end, end + ghosts)[way])
            inside = one.launches_of(begin, end) if edges else one.launches()
            interiors.append(inside[way])
        start, finish = exchange
        if self.device.is_host:
            return edges, [start, *interiors, finish]
        both = partial(each, interiors), partial(each, exchange)
        return edges, [partial(self.device.concurrently, *both)]

    # -- the swept rule ------------------------------------------------------------------------

    def _swept(self, heights: int) -> Callable[[], None]:
        """As `Swept.record`, with edges that come from one side before each launch.

        Before nodes shift to the left, the right edge of the last node goes to the right; before
        they shift back, the left edge of the first one goes back. Before shifted down-triangles
        both go, so that either part has the states of the node between them.
        """
        ups, pairs, downs = zip(*(one.launches() for one in self.launchers), strict=True)
        first, second = (
            [[one.sides[k][side] for one in self.launchers] for side in (0, 1)] for k in (0, 1)
        )
        to_right = self._exchange((first[1], self._edges, [RIGHT]))
        to_left = self._exchange((second[0], self._edges, [LEFT]))
        diamonds = heights - 1
        pair = [*to_right, *(there for there, _ in pairs), *to_left, *(back for _, back in pairs)]
        if diamonds % 2:
            last = [*to_right, *(there for there, _ in pairs), *to_left]
            last += [down[False] for down in downs]
        else:
            both = self._exchange((first[1], self._edges, [RIGHT]), (first[0], self._edges, [LEFT]))
            last = [*both, *(down[True] for down in downs)]
        begin = self.device.capture(partial(each, list(ups)))
        return partial(each, [begin, repeated(self.device, pair, diamonds // 2, last)])

    def _edges(self, array: Any, first: int, last: int) -> list[Any]:
        """Of edges, (fields n,): a node's behind another's, all fields of it."""
        return [array[self.fields * first : self.fields * last]]
