"""States of which schemes of the swept family are compared with the reference, to how many ulps."""

import numpy as np

from dgbook import swept
from dgbook.swept.problem import as_problem

LONGEST = 192
"""Time steps of the longest comparison."""
TRAVEL = 0.05
"""Cells that a time of so many steps is of Euler: what moves at speed 1 goes no further."""


def case(name, n, dtype, random):
    """A problem and a state of n points, random, of which rounding decides nothing.

    Euler's limiter is 0 on one side of where a step of the inner energy changes its sign, and not
    on the other. On noise some step is always about to: then roundings, which a GPU's fused
    operations do otherwise than NumPy's, decide when, and states differ by as much as they vary. So
    here all steps are large, of either sign, and times so short that none changes its sign.
    """
    if name != "euler":
        problem = as_problem(name)
        u = problem.initial(n)
        return problem, (u * (1 + 0.02 * random.standard_normal(u.shape))).astype(dtype)
    problem = swept.Euler(ratio=TRAVEL / LONGEST)
    rho, u = 1 + 0.1 * random.uniform(-1, 1, n), 0.1 * random.uniform(-1, 1, n)
    # Up or down by 0.05 to 0.15, whichever stays between 0.9 and 1.1.
    p = 0.9 + 0.2 * (np.cumsum(random.uniform(0.25, 0.75, n)) % 1)
    return problem, problem.conserved(rho, u, p).astype(dtype)


def tolerance(expected, steps, dtype):
    """By how much a state may differ from the reference's: four ulps of its largest value per step.

    Each of two substeps rounds its sum, to half an ulp; what it adds is smaller, and its roundings
    less than that again. No problem's errors grow much in so short a time. Since roundings differ
    in sign, a tenth of this is what they come to.
    """
    return 4 * (1 + steps) * np.finfo(dtype).eps * np.abs(expected).max()
