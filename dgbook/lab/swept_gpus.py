"""What is measured of the swept family in parts: a time step on one GPU and on several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np

from dgbook.gpu import Device
from dgbook.gpu.timing import Timing
from dgbook.lab.measuring import Rows
from dgbook.lab.parallel import asked_rank, gpu_counts, seconds_together
from dgbook.lab.rivals.swept import on_ranks, tell
from dgbook.lab.session import Session, Subject
from dgbook.lab.swept import best_plan, state, steps_of_a_call
from dgbook.parallel.transport import NcclRanks, Transport
from dgbook.swept.cost import cost
from dgbook.swept.parts import PART_SCHEMES, Parts
from dgbook.swept.plan import Plan, Shape
from dgbook.swept.problem import Problem, as_problem

SIZES = tuple(2**k for k in range(11, 25))
"""n of all parts together."""
PLANS_OF = 2**11, 2**20
"""Plans are the best ones of a GPU alone for these n; between, others may be faster."""
LAUNCHES = (1, 4, 16)
"""Of Deep, between two exchanges: the more, the fewer messages, and the more is computed twice."""
LIMIT = 1800.0
"""Seconds that ranks have for all that they are asked."""
Cell = tuple[str, str, int, str, dict[str, int], int, int]
"""Problem, scheme, n, dtype, plan, launches between exchanges, and the steps of a call."""


def gpus_rows(
    problems: Iterable[str],
    schemes: Iterable[str],
    dtypes: Iterable[str],
    sizes: Iterable[int],
    session: Session,
) -> Rows:
    """A step by parts of one GPU each: on one, two, four and so on, up to all of this machine.

    `schemes` are those by which a part is advanced.
    """
    what = tuple(problems), tuple(schemes), tuple(dtypes), tuple(sizes)
    for gpus in gpu_counts():
        asked = list(cells(*what, gpus))
        for cell, seconds in zip(asked, answers(gpus, asked), strict=True):
            yield row(session, gpus, cell, seconds)


def cells(
    problems: Iterable[str],
    schemes: Iterable[str],
    dtypes: Iterable[str],
    sizes: Iterable[int],
    gpus: int,
) -> Iterator[Cell]:
    """All that so many GPUs are asked, by increasing n; on a single one nothing is overlapped."""
    ways = [way for way, how in PART_SCHEMES.items() if how in schemes]
    ways = [way for way in ways if gpus > 1 or way != "overlapped"]
    for n in sizes:
        for problem in map(as_problem, problems):
            for dtype in dtypes:
                for way in ways:
                    plan = recorded_plan(problem, PART_SCHEMES[way], n // gpus, dtype)
                    for launches in LAUNCHES if way == "deep" and gpus > 1 else (1,):
                        about = problem, way, n, dtype, "simulator", plan, gpus
                        try:
                            parts = Parts(*about, launches=launches)
                        except ValueError:  # so few points are not cut, or not so deep
                            continue
                        steps = steps_of_a_call(parts.steps_between_results, n)
                        yield problem.name, way, n, dtype, asdict(plan), launches, steps


def recorded_plan(problem: Problem, scheme: str, n: int, dtype: str) -> Plan:
    """The best plan in the record swept/step for the nearest of `PLANS_OF`."""
    nearest = min(PLANS_OF, key=lambda size: abs(np.log2(size / n)))
    return best_plan(Shape(problem, scheme, nearest, dtype))


def row(session: Session, gpus: int, cell: Cell, seconds: Iterable[float]) -> dict[str, Any]:
    """A row about a time step of all parts; flops, bytes and floor are those of a GPU's share."""
    name, way, n, dtype, plan, launches, steps = cell
    problem, plan = as_problem(name), Plan(**plan)
    size = {"problem": name, "n": n, "gpus": gpus, "launches": launches}
    subject = Subject(None, dtype, size, n * len(problem.fields))
    work = cost(problem, PART_SCHEMES[way], plan, n // gpus, dtype)
    return session.row(subject, way, "numba", plan, work, Timing(tuple(seconds), steps))


def answers(gpus: int, asked: list[Cell]) -> Iterable[list[float]]:
    """What ranks answer, a GPU each; started once for all that is asked."""
    program = "from dgbook.lab.swept_gpus import answer; answer()"
    return on_ranks(gpus, program, [gpus, asked], LIMIT)


def answer() -> None:
    """What each of those ranks does: asked on its command line, the first tells seconds a step."""
    comm, device, asked = asked_rank()
    transport = NcclRanks(comm) if comm.Get_size() > 1 else None
    for cell in asked:
        seconds = seconds_per_step(comm, transport, device, cell)
        if comm.Get_rank() == 0:
            tell(seconds)


last_state = lru_cache(maxsize=1)(state)
"""What several cells in a row begin with: of many points it takes longer than what is measured."""


def seconds_per_step(
    comm: Any, transport: Transport | None, device: Device, cell: Cell
) -> list[float]:
    """What a step of all parts takes on the slowest rank, in each of some samples."""
    name, way, n, dtype, plan, launches, steps = cell
    parts = Parts(name, way, n, dtype, device, Plan(**plan), comm=transport, launches=launches)
    advance = parts.launcher(last_state(parts.problem, n)).record(steps)
    return [seconds / steps for seconds in seconds_together(comm, device, advance)]
