"""What a branch costs: Euler's equations in fp64 with the compiler's quotients, and with ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from dgbook.gpu.fast import branching_divide, branching_rsqrt
from dgbook.gpu.timing import measure
from dgbook.lab.measuring import Rows
from dgbook.lab.session import Session
from dgbook.lab.swept import EVERY_PLAN, best_plan, per_step, row, solver_of, state, steps_for
from dgbook.swept.arithmetic import Arithmetic
from dgbook.swept.plan import Shape
from dgbook.swept.problem import Euler

SCHEMES = ("classic", "shared", "register", "tiled")
SIZES = EVERY_PLAN
BRANCHING = "branching quotients"
BRANCH_FREE = "branch-free quotients"


class BranchingEuler(Euler):
    """Euler's equations on a GPU with what compilers make of quotients and roots in fp64."""

    def make_faces(self, real: type, arithmetic: Arithmetic) -> tuple[Callable, Callable]:
        """As `Euler.make_faces`."""
        branching = replace(
            arithmetic,
            make_divide=lambda real: branching_divide,
            make_rsqrt=lambda real: branching_rsqrt,
        )
        return super().make_faces(real, branching)


def division_rows(
    problems: Iterable[str],
    schemes: Iterable[str],
    dtypes: Iterable[str],
    sizes: Iterable[int],
    session: Session,
) -> Rows:
    """A step by the best plan of the record swept/step with either kind of quotients, in one run.

    Of Euler's equations in fp64, where they are asked for: the others have no quotients, and in
    fp32 none branches.
    """
    if "euler" not in problems or "float64" not in dtypes:
        return
    for scheme in (scheme for scheme in SCHEMES if scheme in schemes):
        for n in sizes:
            plan = best_plan(Shape(Euler(), scheme, n, "float64"))
            for problem, variant in ((BranchingEuler(), BRANCHING), (Euler(), BRANCH_FREE)):
                shape = Shape(problem, scheme, n, "float64")
                steps = steps_for(problem, scheme, n, [plan])
                launcher = solver_of(shape, session.device, plan).launcher(state(problem, n))
                timing = measure(launcher.record(steps), session.device)
                yield row(session, shape, plan, per_step(timing, steps), variant)
