"""How the schemes are launched, which launches are legal, and when results can be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dgbook.gpu.limits import MAX_THREADS, WARP
from dgbook.gpu.plan import Capability, LaunchPlan
from dgbook.swept.problem import Problem
from dgbook.time import MOST_STEPS

SCHEMES = ("classic", "shared", "hybrid", "register", "persistent", "tiled")
SWEPT = ("shared", "hybrid", "register")
DTYPES = ("float32", "float64")
USUAL_THREADS = dict.fromkeys(SCHEMES, 128) | {"classic": 256, "persistent": 256}
MOST_POINTS = 8
WIDE_THREADS = (64, 128, 256)
MOST_VALUES = 12
"""Of a thread, points times fields, in plans worth trying: its registers hold them twice."""
MOST_INDEX = 2**31 - 2**24
"""Of a point, which kernels count with 32 bits and a sign; threads look beyond the last one."""
MOST_STATES = 2**32
"""Fields times points, positions of 32 bits without a sign."""


@dataclass(frozen=True)
class Shape:
    """What a plan is for: a problem on n points, which the tuner calls order, and a scheme."""

    problem: Problem
    scheme: str
    n: int
    dtype: str

    @property
    def order(self) -> int:
        """What the tuner calls it."""
        return self.n

    @property
    def about(self) -> str:
        """Problem and scheme, for messages."""
        return f"{self.problem.name!r}, {self.scheme!r}"


@dataclass(frozen=True)
class Plan(LaunchPlan):
    """Who works on what.

    Parameters
    ----------
    threads : int
        Of a block. In Shared and Hybrid a block is a node; in Register a warp is one. More points
        a node mean more steps between two launches and fewer edges to pass, but also more memory
        and fewer nodes to fill a GPU.
    points : int
        Of a thread, neighboring ones. One in the paper; with several, states stay in registers,
        only the ends of a thread's row pass through shared memory, fewer threads meet at a barrier,
        and of Euler a face's flux is computed once for both its sides.
    steps : int
        Time steps of a launch, of Tiled alone.
    """

    threads: int
    points: int = 1
    steps: int = 1

    def __post_init__(self) -> None:
        for name, most in (("threads", MAX_THREADS), ("points", MOST_POINTS), ("steps", None)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool):
                raise TypeError(f"{name} = {value!r}; allowed: an integer")
            if value < 1 or (most and value > most):
                allowed = f"1 to {most}" if most else "1 or more"
                raise ValueError(f"{name} = {value}; allowed: {allowed}")

    def __str__(self) -> str:
        points = f" of {self.points} points" if self.points > 1 else ""
        steps = f", {self.steps} steps a launch" if self.steps > 1 else ""
        return f"{self.threads} threads per block{points}{steps}"

    @classmethod
    def default(cls, shape: Shape, capability: Capability = None, variant: str = "") -> Self:
        """The largest legal plan of up to the usual number of threads.

        Raises
        ------
        ValueError
            If there is none for n points.
        """
        n, scheme, reach = shape.n, shape.scheme, shape.problem.reach
        usual = USUAL_THREADS[scheme]
        if scheme == "tiled":
            plan = cls(usual, reach, 8 // reach)
            if trouble := plan.illegal(shape):
                raise ValueError(trouble)
            return plan
        for threads in range(usual, 0, -1):
            if not cls(threads).illegal(shape):
                return cls(threads)
        unit = WARP if scheme == "register" else 4 * reach
        few = f", {2 * unit} or more" if scheme == "hybrid" else ""
        few_points = scheme in ("classic", "persistent")
        allowed = f"{2 * reach + 1} or more" if few_points else f"multiples of {unit}"
        raise ValueError(f"n = {n}; allowed for {shape.about}: {allowed}{few}")

    def subject(self, shape: Shape) -> str:
        return f"swept/{shape.problem.name}/{shape.scheme}"

    def block(self, shape: Shape) -> int:
        return self.threads

    def shared_bytes(self, shape: Shape) -> int:
        """With one point per thread two rows of threads + 2r states (magee2017, section 4.2).

        With several, and in tiles, the first r and the last r of each thread, even and odd.
        """
        reach = shape.problem.reach
        if shape.scheme in ("classic", "persistent", "register"):
            return 0
        if self.points > 1 or shape.scheme == "tiled":
            states = 4 * reach * self.threads
        else:
            states = 2 * (self.threads + 2 * reach)
        return states * len(shape.problem.fields) * np.dtype(shape.dtype).itemsize

    def illegal(self, shape: Shape, capability: Capability = None) -> str:
        """Why a scheme cannot run on n points with this plan, or an empty string.

        A node has an even number of levels to its base, for only then its two rows, edges and the
        two substeps of a time step fit together: a multiple of 4r points.
        """
        n, scheme, reach, about = shape.n, shape.scheme, shape.problem.reach, shape.about
        threads, points = self.threads, self.points
        if self.steps > 1 and scheme != "tiled":
            return f"steps = {self.steps}; allowed for {about}: 1, several of 'tiled' alone"
        if points > 1 and scheme == "hybrid":
            return f"points = {points}; allowed for {about}: 1"
        few = 2 * reach + points
        if scheme in ("classic", "persistent"):
            if n % points:
                return f"n = {n}; allowed: multiples of points = {points}"
            return "" if n >= few else f"n = {n}; allowed: {few} points or more"
        if (points > 1 or scheme == "tiled") and points % reach:
            return f"points = {points}; allowed for {about}: multiples of {reach}"
        if trouble := super().illegal(shape, capability):
            return f"threads = {threads}: {trouble}"
        if scheme == "tiled":
            return self._illegal_tile(shape)
        unit = WARP if scheme == "register" else 4 * reach
        if points > 1 and scheme == "shared":
            unit = max(2, unit // points)
        if threads % unit:
            return f"threads = {threads}; allowed for {about}: multiples of {unit}"
        block = threads * points
        least = 2 * block if scheme == "hybrid" else block
        if n < least or n % block:
            names = "threads" if points == 1 else "threads * points"
            return f"n = {n}; allowed: multiples of {names} = {block}, {least} or more"
        return ""

    def _illegal_tile(self, shape: Shape) -> str:
        """Why a tile cannot be: a state goes between even and odd levels, and comes home."""
        problem, n = shape.problem, shape.n
        ghost, unit = ghost_points(problem, self), 2 // len(problem.weights)
        if self.steps % unit:
            return f"steps = {self.steps}; allowed for {shape.about}: multiples of {unit}"
        if 2 * ghost >= self.threads * self.points:
            most = (self.threads * self.points - 1) // (2 * ghost // self.steps)
            return f"steps = {self.steps}: no points are left in a tile; allowed: up to {most}"
        few = 2 * problem.reach + 1
        return "" if n >= few else f"n = {n}; allowed: {few} points or more"

    @classmethod
    def candidates(cls, shape: Shape, capability: Capability = None) -> list[Self]:
        """32 to 1024 threads, powers of two, with 1 to 8 points a thread.

        Where each number of threads is compiled, with several points fewer of them; of tiles those
        in which at least half of what is computed is kept.
        """
        tiled = shape.scheme == "tiled"
        compiled_by_threads = shape.scheme in ("shared", "tiled")
        plans = [
            Plan(2**k, points, steps)
            for k in range(5, 11)
            for points in (1, 2, 4, 8)
            for steps in ((2, 4, 8, 16, 32) if tiled else (1,))
            if points * len(shape.problem.fields) <= MOST_VALUES
            and (points == 1 or not compiled_by_threads or 2**k in WIDE_THREADS)
        ]
        if tiled:
            plans = [p for p in plans if 4 * ghost_points(shape.problem, p) <= p.threads * p.points]
        return [plan for plan in plans if not plan.illegal(shape)]


def node_threads(scheme: str, plan: Plan) -> int:
    """Threads of a node, or of a block where there are no nodes."""
    return WARP if scheme == "register" else plan.threads


def node_points(scheme: str, plan: Plan) -> int:
    """Points of a node; of schemes that have none, those of a block."""
    return node_threads(scheme, plan) * plan.points


def ghost_points(problem: Problem, plan: Plan) -> int:
    """Points on either side of a tile that are its neighbors'."""
    return problem.reach * len(problem.weights) * plan.steps


def steps_between_results(problem: Problem, scheme: str, plan: Plan) -> int:
    """Results can be read after any multiple of so many time steps.

    A swept scheme has all points at one time only where a down-triangle ends, height substeps above
    the base of the triangles or diamonds before: node / 2r. In the paper results come half as
    often, since its down-triangles always close the diamonds that are split at the boundary.
    """
    if scheme not in SWEPT:
        return plan.steps
    return node_points(scheme, plan) // (2 * problem.reach) // len(problem.weights)


def check_steps(problem: Problem, scheme: str, plan: Plan, steps: int) -> None:
    """Refuse a number of steps after which no results can be read.

    Raises
    ------
    TypeError, ValueError
        The message says which multiples are allowed, and the nearest ones.
    """
    if not isinstance(steps, int | np.integer) or isinstance(steps, bool):
        raise TypeError(f"steps = {steps!r}; allowed: an integer")
    if steps > MOST_STEPS:
        raise ValueError(f"steps = {steps}; allowed: up to {MOST_STEPS:.0e}")
    every = steps_between_results(problem, scheme, plan)
    if steps < 1 or steps % every:
        below = max(1, steps // every) * every
        nearest = f"{below} or {below + every}"
        raise ValueError(
            f"steps = {steps}; allowed for {problem.name!r}, {scheme!r} with "
            f"{plan}: multiples of {every}, such as {nearest}. In between there is no time that "
            "all points are at"
        )
