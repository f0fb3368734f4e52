"""The swept rule for one-dimensional PDEs: magee2017's problems and schemes."""

from .parts import Parts
from .plan import Plan
from .problem import Euler, Heat, KuramotoSivashinsky, Problem
from .solver import Solver, run

__all__ = ["Euler", "Heat", "KuramotoSivashinsky", "Parts", "Plan", "Problem", "Solver", "run"]
