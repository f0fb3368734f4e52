"""The solver: allocate, launch cycle after cycle, return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from dgbook.arguments import check_choice
from dgbook.gpu import Device, Kernel
from dgbook.gpu.device import WITH_KERNELS, as_device
from dgbook.swept import cores as cpu
from dgbook.swept.kernels.classic import make_classic, make_classic_range, make_classic_rows
from dgbook.swept.kernels.mail import make_receive, make_send
from dgbook.swept.kernels.persistent import make_persistent
from dgbook.swept.kernels.register import (
    make_register_diamond,
    make_register_down,
    make_register_up,
)
from dgbook.swept.kernels.shared import make_diamond, make_down, make_up
from dgbook.swept.kernels.tiled import make_tiled
from dgbook.swept.kernels.wide import make_wide_diamond, make_wide_down, make_wide_up
from dgbook.swept.plan import (
    DTYPES,
    MOST_INDEX,
    MOST_STATES,
    SCHEMES,
    Plan,
    Shape,
    check_steps,
    ghost_points,
    node_points,
    node_threads,
    steps_between_results,
)
from dgbook.swept.problem import Problem, as_problem

RECORDED = 32
"""Pairs of launches in one recording; longer runs replay it."""


def run(
    problem: Problem | str,
    scheme: str = "shared",
    n: int = 1024,
    steps: int = 1024,
    dtype: str = "float64",
    device: Device | str = "auto",
    threads: int | Plan | None = None,
    initial: np.ndarray | None = None,
) -> np.ndarray:
    """Advance a problem by time steps with one of the schemes.

    ::

        u = swept.run(problem="heat", scheme="shared", n=2048, steps=4096)

    Parameters
    ----------
    initial : (fields, n) array, optional
        Where to begin; if not given, at the problem's initial condition.
    steps : int
        Where results can be read: see `Solver.steps_between_results`.

    The other parameters, and the exceptions, are those of `Solver`.

    Returns
    -------
    (fields, n) array of dtype
    """
    solver = Solver(problem, scheme, n, dtype, device, threads)
    return solver.run(solver.initial() if initial is None else initial, steps)


class Solver:
    """A problem on n points and a scheme that advances it.

    Parameters
    ----------
    problem : Problem or {"heat", "ks", "euler"}
        A name stands for the problem with its default parameters.
    scheme : {"classic", "shared", "hybrid", "register", "persistent", "tiled"}
        All compute the same numbers. The first four are the paper's; the last two are Classic in
        one kernel with barriers of the grid, and in overlapped tiles of several steps. On the CPU
        there are but Classic and the swept rule, nodes on cores.
    n : int
        Points. Of swept schemes a multiple of a block's, of Hybrid two of them or more.
    dtype : {"float64", "float32"}
    device : Device or {"auto", "cuda", "cpu", "simulator"}
    threads : int or Plan, optional
        Of a block, a point each, or a whole plan; of swept schemes multiples of 4 (heat) or 8 (the
        others), of Register those of 32. If not given, up to 128 (Classic 256) that divide n.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above; the message names it.
    RuntimeError
        For "cuda" where there is no CUDA device.

    Attributes
    ----------
    plan : Plan
    steps_between_results : int
        Runs are multiples of so many steps.
    """

    def __init__(
        self,
        problem: Problem | str,
        scheme: str = "shared",
        n: int = 1024,
        dtype: str = "float64",
        device: Device | str = "auto",
        threads: int | Plan | None = None,
    ) -> None:
        self.problem = as_problem(problem)
        check_choice("scheme", scheme, SCHEMES)
        if not isinstance(n, int | np.integer) or isinstance(n, bool):
            raise TypeError(f"n = {n!r}; allowed: an integer")
        most = min(MOST_INDEX, MOST_STATES // len(self.problem.fields))
        if n > most:
            raise ValueError(f"n = {n}; allowed: up to {most}, which 32 bits can number")
        if np.dtype(dtype).name not in DTYPES:
            raise ValueError(f"dtype = {dtype!r}; allowed are {', '.join(map(repr, DTYPES))}")
        self.scheme, self.n, self.dtype = scheme, int(n), np.dtype(dtype)
        shape = Shape(self.problem, scheme, self.n, self.dtype.name)
        if threads is None:
            self.plan = Plan.default(shape)
        else:
            self.plan = threads if isinstance(threads, Plan) else Plan(threads)
        if trouble := self.plan.illegal(shape):
            raise ValueError(trouble)
        self.device = as_device(device, WITH_KERNELS)
        self.steps_between_results = steps_between_results(self.problem, scheme, self.plan)

    @property
    def x(self) -> np.ndarray:
        """Coordinates of the points, (n,)."""
        return self.problem.points(self.n)

    @property
    def time_step(self) -> float:
        """Length of a time step."""
        return self.problem.time_step(self.n)

    def initial(self) -> np.ndarray:
        """The problem's initial condition, (fields, n)."""
        return self.problem.initial(self.n).astype(self.dtype)

    def run(self, u: np.ndarray, steps: int) -> np.ndarray:
        """The state `steps` time steps after u, (fields, n); u stays as it is.

        Raises
        ------
        TypeError, ValueError
            If u has another shape or is not real, or steps are not as in `steps_between_results`.
        """
        u = np.asarray(u)
        shape = (len(self.problem.fields), self.n)
        if u.shape != shape:
            raise ValueError(f"u has shape {u.shape}; allowed: (fields, n) = {shape}")
        if u.dtype.kind not in "fiu":
            raise TypeError(f"u has dtype {u.dtype}; allowed: real numbers")
        check_steps(self.problem, self.scheme, self.plan, steps)
        launcher = self.launcher(u.astype(self.dtype))
        launcher.record(int(steps))()
        return launcher.download()

    def launcher(self, u: np.ndarray) -> Launcher:
        """The arrays of a run on the device, beginning with the state u (fields, n).

        For those who measure: ``advance = solver.launcher(u).record(steps)``, then ``advance()``
        as often as needed. Each call goes on where the one before stopped.
        """
        kinds = {
            "classic": Classic,
            "hybrid": Hybrid,
            "persistent": Persistent if self.device.kind != "cpu" else Classic,
            "tiled": Tiled if self.device.kind != "cpu" else Classic,
        }
        return kinds.get(self.scheme, Swept)(self, u)


class Launcher(ABC):
    """A state on a device; the schemes derive from it.

    Attributes
    ----------
    u : (fields n,) array of the device
        The state at the time that was last reached.
    """

    def __init__(self, solver: Solver, u: np.ndarray) -> None:
        self.solver, self.device = solver, solver.device
        self.problem, self.plan, self.dtype = solver.problem, solver.plan, solver.dtype.name
        self.n = solver.n
        self.u = self.device.array(np.array(u, solver.dtype).ravel())

    @abstractmethod
    def record(self, steps: int) -> Callable[[], None]:
        """A function that advances the state by so many steps, ready to be called again."""

    def download(self) -> np.ndarray:
        """The state as a NumPy array (fields, n)."""
        return self.device.to_numpy(self.u).reshape(-1, self.n)

    def _room(self) -> Any:
        return self.device.empty(self.u.size, self.dtype)


def repeated(device: Device, pair: list[Callable], count: int, last: list[Callable]) -> Callable:
    """Record the launches `pair` so many times, and `last` behind them: what replays all."""
    whole, rest = divmod(count, RECORDED)
    many = device.capture(partial(each, pair * RECORDED)) if whole else None
    end = device.capture(partial(each, pair * rest + last)) if rest or last else None

    def replay() -> None:
        for _ in range(whole):
            many()
        if end:
            end()

    return replay


def each(launches: list[Callable]) -> None:
    """Launch one after the other."""
    for launch in launches:
        launch()


# --------------------------------------------------------------------------------------- Classic


@lru_cache(maxsize=64)
def classic_kernels(problem: Problem, dtype: str, points: int = 1) -> tuple[Kernel, ...]:
    """A kernel for each substep, compiled once for equal arguments."""
    stages = range(len(problem.weights))
    if points == 1:
        return tuple(make_classic(problem, stage, dtype) for stage in stages)
    return tuple(make_classic_rows(problem, stage, points, dtype) for stage in stages)


@lru_cache(maxsize=64)
def range_kernels(problem: Problem, dtype: str, points: int) -> tuple[Kernel, ...]:
    """The same for some of the points."""
    stages = range(len(problem.weights))
    return tuple(make_classic_range(problem, stage, points, dtype) for stage in stages)


class Classic(Launcher):
    """A launch a substep."""

    def __init__(self, solver: Solver, u: np.ndarray) -> None:
        super().__init__(solver, u)
        self.other = self._room()

    def record(self, steps: int) -> Callable[[], None]:
        if self.device.kind == "cpu":
            advance = cpu.make_classic(self.problem, self.dtype)
            return partial(advance, self.u, self.other, steps)
        forward, backward = self.launches()
        if len(self.problem.weights) == 2:
            return repeated(self.device, [forward, backward], steps, [])
        return self._to_and_fro(forward, backward, steps)

    def launches(self) -> tuple[Callable, Callable]:
        """The first substep, from u to the other array, and the last, back."""
        if self.device.kind == "cpu":
            kernels = cpu.make_substeps(self.problem, self.dtype)
        else:
            kernels = classic_kernels(self.problem, self.dtype, self.plan.points)
            launch = -(-self.n // (self.plan.threads * self.plan.points)), self.plan.threads
            kernels = [kernel[launch] for kernel in kernels]
        forward = partial(kernels[0], self.u, self.other)
        return forward, partial(kernels[-1], self.other, self.u)

    def launches_of(self, first: int, last: int) -> tuple[Callable, Callable]:
        """The same of the points from `first` to `last` - 1, whose neighbors there are all.

        On a GPU both numbers are multiples of a thread's points.
        """
        stages = len(self.problem.weights)
        if self.device.kind == "cpu":
            where = first, last, 0, self.n, self.n
            kernels = [cpu.make_fill(self.problem, self.dtype, stage) for stage in (0, stages - 1)]
        else:
            where = np.int32(first), np.int32(last)
            kernels = range_kernels(self.problem, self.dtype, self.plan.points)
            launch = -(-(last - first) // (self.plan.threads * self.plan.points))
            kernels = [kernel[launch, self.plan.threads] for kernel in kernels]
        forward = partial(kernels[0], self.u, self.other, *where)
        return forward, partial(kernels[-1], self.other, self.u, *where)

    def _to_and_fro(self, forward: Callable, backward: Callable, count: int) -> Callable:
        """So many launches between two arrays; an odd one's result is taken home."""
        home = [forward, partial(copy_to, self.other, self.u)] if count % 2 else []
        return partial(each, [repeated(self.device, [forward, backward], count // 2, []), *home])


class Tiled(Classic):
    """A launch for several steps."""

    def record(self, steps: int) -> Callable[[], None]:
        return self._to_and_fro(*self.launches(), steps // self.plan.steps)

    def launches(self) -> tuple[Callable, Callable]:
        """Steps from u to the other array, and as many back."""
        plan = self.plan
        kernel = tiled_kernel(self.problem, plan, self.dtype)
        inner = plan.threads * plan.points - 2 * ghost_points(self.problem, plan)
        launch = kernel[-(-self.n // inner), plan.threads]
        return partial(launch, self.u, self.other), partial(launch, self.other, self.u)


class Persistent(Classic):
    """A launch for all steps."""

    def record(self, steps: int) -> Callable[[], None]:
        plan = self.plan
        kernel = persistent_kernel(self.problem, plan.points, self.dtype)
        pairs, rest = divmod(steps, 2 // len(self.problem.weights))
        arguments = self.u, self.other, np.int32(pairs)
        wanted = -(-self.n // (plan.threads * plan.points))
        blocks = kernel.together(wanted, plan.threads, *arguments)
        launches = [partial(kernel[blocks, plan.threads], *arguments)]
        if rest:
            launches += [self.launches()[0], partial(copy_to, self.other, self.u)]
        return partial(each, launches)


@lru_cache(maxsize=64)
def tiled_kernel(problem: Problem, plan: Plan, dtype: str) -> Kernel:
    """Tiled's kernel, compiled once for equal arguments."""
    return make_tiled(problem, plan.threads, plan.points, plan.steps, dtype)


@lru_cache(maxsize=64)
def persistent_kernel(problem: Problem, points: int, dtype: str) -> Kernel:
    """Persistent's, likewise."""
    return make_persistent(problem, points, dtype)


def copy_to(source: Any, target: Any) -> None:
    """All of an array to another one."""
    target[:] = source


# --------------------------------------------------------------------------------------- swept


@lru_cache(maxsize=64)
def swept_kernels(problem: Problem, node: int, dtype: str) -> dict[Any, Kernel]:
    """Shared's kernels: "up", ("diamond", shifted) and ("down", shifted); and Hybrid's."""
    return {
        "up": make_up(problem, node, dtype),
        "rest": make_diamond(problem, node, dtype, True, first=1),
        "send": make_send(problem, node),
        "receive": make_receive(problem, node),
        **{("diamond", s): make_diamond(problem, node, dtype, s) for s in (False, True)},
        **{("down", s): make_down(problem, node, dtype, s) for s in (False, True)},
    }


@lru_cache(maxsize=64)
def register_kernels(problem: Problem, dtype: str) -> dict[Any, Kernel]:
    """Register's kernels, under the same keys."""
    return {
        "up": make_register_up(problem, dtype),
        **{("diamond", s): make_register_diamond(problem, dtype, s) for s in (False, True)},
        **{("down", s): make_register_down(problem, dtype, s) for s in (False, True)},
    }


@lru_cache(maxsize=64)
def wide_kernels(
    problem: Problem, threads: int, points: int, dtype: str, shuffled: bool
) -> dict[Any, Kernel]:
    """Both schemes' kernels with several points a thread, under the same keys."""
    what = problem, threads, points, dtype, shuffled
    return {
        "up": make_wide_up(*what),
        **{("diamond", s): make_wide_diamond(*what, s) for s in (False, True)},
        **{("down", s): make_wide_down(*what, s) for s in (False, True)},
    }


def kernels_of(problem: Problem, scheme: str, plan: Plan, dtype: str) -> dict[Any, Kernel]:
    """The kernels of a swept scheme."""
    if plan.points > 1:
        threads = node_threads(scheme, plan)
        return wide_kernels(problem, threads, plan.points, dtype, scheme == "register")
    if scheme == "register":
        return register_kernels(problem, dtype)
    return swept_kernels(problem, plan.threads, dtype)


class Swept(Launcher):
    """Shared and Register: an up-triangle, diamonds whose nodes shift to and fro, a down-triangle.

    Each launch but the last takes all points a triangle's height further. On the CPU the same with
    nodes on cores.
    """

    def __init__(self, solver: Solver, u: np.ndarray) -> None:
        super().__init__(solver, u)
        self.every = solver.steps_between_results
        self.sides = [(self._room(), self._room()) for _ in range(2)]

    def record(self, steps: int) -> Callable[[], None]:
        up, pair, down = self.launches()
        diamonds = steps // self.every - 1
        shifted = diamonds % 2 == 0  # of the down-triangles: not of the last diamonds
        last = [*([] if shifted else pair[:1]), down[shifted]]
        middle = repeated(self.device, pair, diamonds // 2, last)
        return partial(each, [self.device.capture(up), middle])

    def launches(self) -> tuple[Callable, list[Callable], dict[bool, Callable]]:
        """The up-triangle, two diamonds, and the down-triangles by whether they are shifted."""
        first, second = self.sides
        if self.device.kind == "cpu":
            node = node_points(self.solver.scheme, self.plan)
            nodes = cpu.Nodes(self.problem, node, self.dtype, self.n)
            return (
                partial(nodes.up, self.u, *first),
                [
                    partial(nodes.diamond, *first, *second, True),
                    partial(nodes.diamond, *second, *first, False),
                ],
                {
                    True: partial(nodes.down, *first, self.u, True),
                    False: partial(nodes.down, *second, self.u, False),
                },
            )
        kernels = kernels_of(self.problem, self.solver.scheme, self.plan, self.dtype)
        launch = self.n // (self.plan.threads * self.plan.points), self.plan.threads
        return (
            partial(kernels["up"][launch], self.u, *first),
            [
                partial(kernels["diamond", True][launch], *first, *second),
                partial(kernels["diamond", False][launch], *second, *first),
            ],
            {
                True: partial(kernels["down", True][launch], *first, self.u),
                False: partial(kernels["down", False][launch], *second, self.u),
            },
        )


class Hybrid(Swept):
    """Shared, but the diamond that is split at the boundary is computed by the CPU meanwhile.

    Its edges go to and fro through memory of the host that the GPU reaches. What the GPU does
    between two of these diamonds is one recording, what it does meanwhile another: in a cycle
    Python launches two, and waits once.
    """

    def record(self, steps: int) -> Callable[[], None]:
        if self.device.kind == "cpu":
            return super().record(steps)
        up, (_, diamond), down = self.launches()
        diamonds = steps // self.every - 1
        shifted = diamonds % 2 == 0  # of the down-triangles: not of the last diamonds
        capture = self.device.capture
        if diamonds == 0:
            return capture(partial(each, [up, down[shifted]]))
        send, rest, split, receive = self._exchange()
        begin = capture(partial(each, [up, send]))
        meanwhile = capture(rest)
        again = capture(partial(each, [receive, diamond, send]))
        end = capture(partial(each, [receive, *([diamond] if shifted else []), down[shifted]]))
        turn = partial(hybrid_diamond, self.device, meanwhile, split)
        turns = [partial(turn, again)] * ((diamonds - 1) // 2) + [partial(turn, end)]
        return partial(each, [begin, *turns])

    def _exchange(self) -> tuple[Callable, Callable, Callable, Callable]:
        """Send edges, compute the nodes that are not split, compute the one that is, fetch it."""
        node = self.plan.threads
        kernels = swept_kernels(self.problem, node, self.dtype)
        nodes = cpu.Nodes(self.problem, node, self.dtype, self.n)
        size = len(self.problem.fields) * node
        old, new = self.sides
        sent, edges = self.device.mapped(2 * size, self.dtype)
        answer, new_edges = self.device.mapped(2 * size, self.dtype)
        return (
            partial(kernels["send"][1, node], *old, sent),
            partial(kernels["rest"][self.n // node - 1, node], *old, *new),
            partial(nodes.split, *np.split(edges, 2), *np.split(new_edges, 2)),
            partial(kernels["receive"][1, node], answer, *new),
        )


def hybrid_diamond(
    device: Device,
    rest: Callable,
    split: Callable,
    then: Callable,
) -> None:
    """One diamond per node: the split one on the CPU.

    The device computes the rest at the same time. The launch before has
    sent edges to the CPU; the launch of `then` fetches the new edges.
    """
    arrived = device.mark()
    rest()
    arrived()
    split()
    then()
