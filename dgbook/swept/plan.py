"""How the schemes are launched, which launches are legal, and when results can be read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dgbook.gpu.limits import MAX_THREADS, STATIC_SHARED_LIMIT, WARP
from dgbook.swept.problem import Problem

SCHEMES = ("classic", "shared", "hybrid", "register")
DTYPES = ("float32", "float64")
USUAL_THREADS = {"classic": 256, "shared": 128, "hybrid": 128, "register": 128}


@dataclass(frozen=True)
class Plan:
    """Who works on what: always a thread a point.

    Parameters
    ----------
    threads : int
        Of a block. In Shared and Hybrid a block is a node, so that they are its points; in Register
        a warp is one. More points a node mean more steps between two launches and fewer edges to
        pass, but also more shared memory and fewer nodes to fill a GPU.
    """

    threads: int

    def __post_init__(self) -> None:
        if not isinstance(self.threads, int | np.integer) or isinstance(self.threads, bool):
            raise TypeError(f"threads = {self.threads!r}; allowed: an integer")
        if not 1 <= self.threads <= MAX_THREADS:
            raise ValueError(f"threads = {self.threads}; allowed: 1 to {MAX_THREADS}")


def node_points(scheme: str, plan: Plan) -> int:
    """Points of a node; of Classic, which has none, those of a block."""
    return WARP if scheme == "register" else plan.threads


def shared_bytes(problem: Problem, scheme: str, plan: Plan, dtype: str) -> int:
    """Shared memory of a block: two rows of threads + 2r states (magee2017, section 4.2)."""
    if scheme in ("classic", "register"):
        return 0
    states = 2 * (plan.threads + 2 * problem.reach)
    return states * len(problem.fields) * np.dtype(dtype).itemsize


def illegal(problem: Problem, scheme: str, plan: Plan, n: int, dtype: str) -> str:
    """Why a scheme cannot run on n points with this plan, or an empty string.

    A node has an even number of levels to its base, for only then its two rows, edges and the two
    substeps of a time step fit together: a multiple of 4r points.
    """
    threads, reach = plan.threads, problem.reach
    if scheme == "classic":
        few = 2 * reach + 1
        return "" if n >= few else f"n = {n}; allowed: {few} points or more"
    unit = WARP if scheme == "register" else 4 * reach
    if threads % unit:
        return f"threads = {threads}; allowed for {problem.name!r}, {scheme!r}: multiples of {unit}"
    least = 2 * threads if scheme == "hybrid" else threads
    if n < least or n % threads:
        return f"n = {n}; allowed: multiples of threads = {threads}, {least} or more"
    if shared_bytes(problem, scheme, plan, dtype) > STATIC_SHARED_LIMIT:
        return (
            f"threads = {threads}: {shared_bytes(problem, scheme, plan, dtype)} bytes of shared "
            f"memory; allowed: {STATIC_SHARED_LIMIT}"
        )
    return ""


def default_plan(problem: Problem, scheme: str, n: int, dtype: str) -> Plan:
    """The largest legal plan of up to the usual number of threads.

    Raises
    ------
    ValueError
        If there is none for n points.
    """
    usual = USUAL_THREADS[scheme]
    for threads in range(usual, 0, -1):
        if not illegal(problem, scheme, Plan(threads), n, dtype):
            return Plan(threads)
    unit = WARP if scheme == "register" else 4 * problem.reach
    few = f", {2 * unit} or more" if scheme == "hybrid" else ""
    allowed = f"{2 * problem.reach + 1} or more" if scheme == "classic" else f"multiples of {unit}"
    raise ValueError(f"n = {n}; allowed for {problem.name!r}, {scheme!r}: {allowed}{few}")


def plans(problem: Problem, scheme: str, n: int, dtype: str) -> list[Plan]:
    """The plans worth trying: 32 to 1024 threads, powers of two, as far as they are legal."""
    candidates = [Plan(2**k) for k in range(5, 11)]
    return [plan for plan in candidates if not illegal(problem, scheme, plan, n, dtype)]


def steps_between_results(problem: Problem, scheme: str, plan: Plan) -> int:
    """Results can be read after any multiple of so many time steps.

    A swept scheme has all points at one time only where a down-triangle ends, height substeps above
    the base of the triangles or diamonds before: node / 2r. In the paper results come half as
    often, since its down-triangles always close the diamonds that are split at the boundary.
    """
    if scheme == "classic":
        return 1
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
    every = steps_between_results(problem, scheme, plan)
    if steps < 1 or steps % every:
        below = max(1, steps // every) * every
        nearest = f"{below} or {below + every}"
        raise ValueError(
            f"steps = {steps}; allowed for {problem.name!r}, {scheme!r} with "
            f"{plan.threads} threads a block: multiples of {every}, such as {nearest}. In between "
            "the points of a swept scheme are at different times"
        )
