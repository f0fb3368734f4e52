"""What is measured of the swept rule: steps by all schemes, on cores, and what waiting costs."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from dgbook.gpu import Device
from dgbook.gpu.timing import Timing, measure
from dgbook.gpu.tune import Result, Trial, tune
from dgbook.lab import records
from dgbook.lab.barriers import make_barriers
from dgbook.lab.measuring import Rows, all_cores, on_cores
from dgbook.lab.probes import launch_cost
from dgbook.lab.rivals.swept import RANK_SCHEMES, Ranks, bind, on_ranks, tell, world
from dgbook.lab.session import Session, Subject
from dgbook.swept.cost import cost
from dgbook.swept.plan import Plan, Shape, steps_between_results
from dgbook.swept.problem import Euler, Problem, as_problem
from dgbook.swept.solver import Classic, Solver

SIZES = tuple(2**k for k in range(11, 24))
"""n of the paper's figures."""
EVERY_PLAN = tuple(2**k for k in (11, 14, 17, 20))
"""Of these n, every plan is timed; of those between, only the best ones of their neighbors."""
BEST = 3
CORE_SIZES = tuple(2**k for k in range(11, 21))
SINGLE = "a point a thread"
PYTHON = "launched from Python"
ON_THREADS = "cores"
ON_RANKS = "ranks"
BARRIERS = 1000
CORE_STEPS = 256
RANK_STEPS = 128, 1024
"""On many points and on few: a call copies a rank's points, and a sample waits for all ranks."""
PYTHON_STEPS = 64
RECORDED_STEPS = 256
"""In a call at least: a graph of two launches would show what a replay costs, not a launch."""


def state(problem: Problem, n: int) -> np.ndarray:
    """A state that stays finite however long it is advanced, (fields, n).

    A shock tube's shock reaches its end after some n steps; a gas at rest with a ripple in it comes
    to rest again.
    """
    if not isinstance(problem, Euler):
        return problem.initial(n)
    ripple = 1 + 0.01 * np.cos(2 * np.pi * problem.points(n))
    return problem.conserved(ripple, np.zeros(n), ripple)


def steps_for(problem: Problem, scheme: str, n: int, candidates: Iterable[Plan]) -> int:
    """Steps after which all plans have results, twice the most that one needs or more.

    Then of any node at least one launch in three is a whole diamond, as in longer runs. Up to
    65,536 points they are `RECORDED_STEPS` at least, beyond in proportion fewer.
    """
    every = [steps_between_results(problem, scheme, plan) for plan in candidates]
    return steps_of_a_call(int(np.lcm.reduce(every)), n)


def steps_of_a_call(every: int, n: int) -> int:
    """So many steps where there are results after `every` of them."""
    least = min(RECORDED_STEPS, RECORDED_STEPS * 2**16 // n)
    return 2 * every * max(1, -(-least // (2 * every)))


def solver_of(shape: Shape, device: Device, plan: Plan) -> Solver:
    """A solver by a plan."""
    return Solver(shape.problem, shape.scheme, shape.n, shape.dtype, device, plan)


def best_plan(shape: Shape) -> Plan:
    """The best plan in the record swept/step."""
    about = {"problem": shape.problem.name, "n": shape.n}
    asked = {"path": shape.scheme, "dtype": shape.dtype, "size": about, "variant": None}
    return Plan(**records.load("swept/step").row(**asked)["plan"])


def tune_step(shape: Shape, device: Device, candidates: list[Plan]) -> tuple[Result, int]:
    """Time plans of a scheme; the result, and the steps of a call."""
    steps = steps_for(shape.problem, shape.scheme, shape.n, candidates)
    u = state(shape.problem, shape.n)

    def run(plan: Plan) -> Callable[[], None]:
        return solver_of(shape, device, plan).launcher(u).record(steps)

    name = candidates[0].subject(shape)
    return tune(name, candidates, run, device, shape.n, shape.dtype), steps


def row(
    session: Session, shape: Shape, plan: Plan, timing: Timing, variant: str = "", **size: int
) -> dict[str, Any]:
    """A row about a time step; `size` is what else there is to say about its size."""
    problem, n = shape.problem, shape.n
    about = {"problem": problem.name, "n": n, **size}
    more = {"variant": variant} if variant else {}
    subject = Subject(None, shape.dtype, about, n * len(problem.fields), more)
    work = cost(problem, shape.scheme, plan, n, shape.dtype)
    return session.row(subject, shape.scheme, "numba", plan, work, timing)


def per_step(timing: Timing, steps: int) -> Timing:
    """Of a call of so many steps the time of one."""
    seconds = tuple(s / steps for s in timing.seconds)
    return Timing(seconds, timing.inner * steps, timing.host_bound)


def step_rows(
    problems: Iterable[str],
    schemes: Iterable[str],
    dtypes: Iterable[str],
    sizes: Iterable[int],
    session: Session,
) -> Rows:
    """Figures 7 to 9: a step by each scheme with its best plan, and with the best of the paper's.

    Which has a point a thread. Of Classic also what it takes when Python launches each kernel.
    """
    sizes = tuple(sizes)
    for problem in map(as_problem, problems):
        for scheme in schemes:
            for dtype in dtypes:
                tuned: dict[int, tuple[Result, int]] = {}
                for n in sorted(sizes, key=lambda n: n not in EVERY_PLAN):
                    shape = Shape(problem, scheme, n, dtype)
                    legal = Plan.candidates(shape)
                    best = shortlist(n, tuned)
                    if candidates := [plan for plan in legal if plan in best] or legal:
                        tuned[n] = tune_step(shape, session.device, candidates)
                for n in (n for n in sizes if n in tuned):
                    result, steps = tuned[n]
                    shape = Shape(problem, scheme, n, dtype)
                    trials = [t for t in result.ranking if not t.failure]
                    yield trial_row(session, shape, trials[0], steps)
                    single = next((t for t in trials if t.plan["points"] == 1), None)
                    if single is not None:
                        yield trial_row(session, shape, single, steps, SINGLE)
                    if scheme == "classic":
                        yield python_row(session, shape)


def shortlist(n: int, tuned: Mapping[int, tuple[Result, int]]) -> list[Plan]:
    """The best plans of the nearest sizes of which every plan was timed, below n and above.

    Of those with a point a thread, too. None if n is such a size, or has no such neighbor.
    """
    if n in EVERY_PLAN:
        return []
    below = [size for size in tuned if size in EVERY_PLAN and size < n]
    above = [size for size in tuned if size in EVERY_PLAN and size > n]
    plans = []
    for size in (*sorted(below)[-1:], *sorted(above)[:1]):
        ranking = [Plan(**trial.plan) for trial in tuned[size][0].ranking if not trial.failure]
        plans += ranking[:BEST] + [plan for plan in ranking if plan.points == 1][:BEST]
    return plans


def trial_row(
    session: Session, shape: Shape, trial: Trial, steps: int, variant: str = ""
) -> dict[str, Any]:
    """A row about a plan that the tuner timed by so many steps."""
    timing = Timing((trial.seconds_median / steps,))
    spread = {"seconds_iqr": trial.seconds_iqr / steps, "samples": trial.samples}
    return row(session, shape, Plan(**trial.plan), timing, variant) | spread


def python_row(session: Session, shape: Shape) -> dict[str, Any]:
    """Classic as a loop in Python that launches kernel after kernel.

    The loop waits for its last kernel: else `measure` would let the host run ahead of the device,
    and what a launch costs Python would not be seen.
    """
    plan, device = Plan.default(shape), session.device
    u = state(shape.problem, shape.n)
    forward, backward = Classic(solver_of(shape, device, plan), u).launches()
    pairs = PYTHON_STEPS * len(shape.problem.weights) // 2

    def loop() -> None:
        for _ in range(pairs):
            forward()
            backward()
        device.synchronize()

    timing = per_step(measure(loop, device), PYTHON_STEPS)
    return row(session, shape, plan, timing, PYTHON)


def core_rows(
    problems: Iterable[str],
    schemes: Iterable[str],
    dtypes: Iterable[str],
    sizes: Iterable[int],
    session: Session,
) -> Rows:
    """Figure 10: Classic and the swept rule on the processor, to stand beside the GPU.

    On MPI ranks as in the paper, then on a core and on all by Numba's threads. Where ranks cannot
    be had a warning says why, and only the others are measured.
    """
    problems = [as_problem(problem) for problem in problems]
    cells = [
        (scheme, n, dtype)
        for scheme in schemes
        if scheme in RANK_SCHEMES
        for dtype in dtypes
        for n in sizes
        if n in CORE_SIZES
    ]
    for problem in problems:
        try:
            yield from rank_rows(problem, cells, session.on_host)
        except RuntimeError as trouble:
            warnings.warn(f"{problem.name}: nothing measured on ranks: {trouble}", stacklevel=2)
    for problem in problems:
        yield from thread_rows(problem, cells, session.on_host)


def thread_rows(problem: Problem, cells: Iterable[tuple[str, int, str]], host: Session) -> Rows:
    """Schemes, sizes and precisions on a core and on all, by Numba's threads."""
    for cell in cells:
        for cores in sorted({1, all_cores()}):
            yield core_row(host, Shape(problem, *cell), cores)


def rank_rows(problem: Problem, cells: Iterable[tuple[str, int, str]], host: Session) -> Rows:
    """Schemes, sizes and precisions on MPI ranks, a core each; started once for all.

    As many as there are cores, or the next lower power of two, so that points divide among them.
    Nodes are those of threads. The final gathering of the points is left out.

    Raises
    ------
    RuntimeError
        Where there is no MPI, or its ranks fail.
    """
    ranks = 2 ** int(np.log2(all_cores()))
    asked = []
    for scheme, n, dtype in cells:
        plan = core_plan(problem, n, dtype, ranks) if scheme == "shared" else Plan(256)
        steps = rank_steps(problem, scheme, plan, n)
        asked.append((problem.name, scheme, n, dtype, plan.threads, steps))
    program = "from dgbook.lab.swept import answer; answer()"
    for cell, seconds in zip(asked, on_ranks(ranks, program, [ranks, asked]), strict=True):
        _, scheme, n, dtype, node, steps = cell
        timing = Timing(tuple(seconds), steps)
        shape = Shape(problem, scheme, n, dtype)
        yield row(host, shape, Plan(node), timing, ON_RANKS, cores=ranks, ranks=ranks)


def rank_steps(problem: Problem, scheme: str, plan: Plan, n: int) -> int:
    """Steps of a sample: of the swept rule two launches at least, so that diamonds are whole."""
    every = steps_between_results(problem, scheme, plan)
    fewest, most = RANK_STEPS
    least = max(fewest, min(most, most * 2**13 // n))
    return max(2, -(-least // every)) * every


def answer() -> None:
    """What each of those ranks does: asked on its command line, the first prints seconds a step."""
    comm, (size, asked) = world(), json.loads(sys.argv[1])
    if comm.size != size:
        raise RuntimeError(f"{comm.size} ranks of {size}: mpiexec is not of mpi4py's MPI")
    bind(comm.rank, size)
    for name, scheme, n, dtype, node, steps in asked:
        ranks = Ranks(name, scheme, n, dtype, node, comm)
        seconds = ranks.seconds_per_step(state(ranks.problem, n), steps)
        if comm.rank == 0:
            tell(seconds)


def core_plan(problem: Problem, n: int, dtype: str, cores: int) -> Plan:
    """Nodes of 1024 points, or fewer: a core's part of the points, or what a GPU could hold."""
    node = min(1024, 2 ** int(np.log2(n // cores)))
    while Plan(node).illegal(Shape(problem, "shared", n, dtype)):
        node //= 2
    return Plan(node)


def core_row(host: Session, shape: Shape, cores: int) -> dict[str, Any]:
    """A step on so many cores; a floor is the GPU's."""
    problem, n = shape.problem, shape.n
    shared = shape.scheme == "shared"
    plan = core_plan(problem, n, shape.dtype, cores) if shared else Plan(256)
    solver = solver_of(shape, host.device, plan)
    every = solver.steps_between_results
    steps = max(1, min(CORE_STEPS, CORE_STEPS * 2**16 // n) // every) * every
    with on_cores(cores):
        advance = solver.launcher(state(problem, n)).record(steps)
        timing = per_step(measure(advance, host.device), steps)
    return row(host, shape, plan, timing, ON_THREADS, cores=cores)


def launch_rows(
    problems: Iterable[str],
    schemes: Iterable[str],
    dtypes: Iterable[str],
    sizes: Iterable[int],
    session: Session,
) -> Rows:
    """What is waited for: a launch, a graph's node, and barriers of a block and of the grid.

    Barriers with as many threads as the GPU's multiprocessors have blocks, one each.
    """
    for kind in ("python", "graph"):
        yield waiting_row(f"launch:{kind}", launch_cost(session.device, kind).timing, 32)
    met = session.device.zeros(1, np.int32)
    for whole_grid in (False, True):
        kernel = make_barriers(whole_grid)
        for threads in (128, 512):
            arguments = met, np.int32(BARRIERS)
            blocks = kernel.together(session.device.multiprocessors or 1, threads, *arguments)
            timing = measure(partial(kernel[blocks, threads], *arguments), session.device)
            name = "barrier:grid" if whole_grid else "barrier:block"
            yield waiting_row(name, per_step(timing, BARRIERS), threads)


def waiting_row(name: str, timing: Timing, threads: int) -> dict[str, Any]:
    """A row about what moves and computes nothing."""
    return {
        "path": name,
        "language": "numba",
        "order": None,
        "dtype": "float32",
        "size": {"threads": threads},
        "dofs": None,
        "plan": {},
        **timing.as_row(),
        "flops": 0,
        "bytes": 0,
        "floor_seconds": None,
        "efficiency": None,
    }


RECORDS = {"step": step_rows, "cores": core_rows, "launch": launch_rows}
