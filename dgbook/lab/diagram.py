"""Space-time diagrams of the swept rule, drawn by running its kernels on a problem that counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dgbook.gpu import device as find_device
from dgbook.swept.arithmetic import Arithmetic
from dgbook.swept.kernels.shared import make_diamond, make_up
from dgbook.swept.problem import Problem


@dataclass(frozen=True)
class Levels(Problem):
    """A problem whose states say how many substeps they are from the beginning.

    Parameters
    ----------
    points_read : int
        r, 1 or 2.
    """

    points_read: int = 1

    name = "levels"
    fields = ("level",)
    boundary = "periodic"

    @property
    def reach(self) -> int:
        return self.points_read

    @property
    def weights(self) -> tuple[float, ...]:
        """Of two substeps the second starts where the first did."""
        return (1.0, 2.0)

    def spacing(self, n: int) -> float:
        return 1.0

    def time_step(self, n: int) -> float:
        return 2.0

    def points(self, n: int) -> np.ndarray:
        return np.arange(n, dtype=float)

    def initial(self, n: int) -> np.ndarray:
        return np.zeros((1, n))

    def make_slope(self, real: type, arithmetic: Arithmetic) -> Callable:
        """1, of whatever states."""
        one = real(1)

        @arithmetic.jit
        def slope(stencil):
            return one

        return slope


def profiles(reach: int, node: int, nodes: int, launches: int) -> np.ndarray:
    """How far each point has come after each launch: an up-triangle, then diamonds.

    Parameters
    ----------
    reach : {1, 2}
    node : int
        Points of a node, a multiple of 4r.
    nodes : int
    launches : int
        1 or more.

    Returns
    -------
    (launches, node * nodes) int array
        Levels; between two of its rows lies what a launch has computed.
    """
    problem, n, device = Levels(reach), node * nodes, find_device("simulator")
    old = [device.empty(n, "float64") for _ in range(2)]
    new = [device.empty(n, "float64") for _ in range(2)]
    make_up(problem, node, "float64")[nodes, node](device.zeros(n, "float64"), *old)
    heights = [_heights(*old, reach, node, False)]
    for launch in range(1, launches):
        shifted = launch % 2 == 1
        make_diamond(problem, node, "float64", shifted)[nodes, node](*old, *new)
        old, new = new, old
        heights.append(_heights(*old, reach, node, shifted))
    return np.stack(heights)


def _heights(
    left: np.ndarray, right: np.ndarray, reach: int, node: int, shifted: bool
) -> np.ndarray:
    """The higher of each point's two states, of which edges have an even and an odd one."""
    half = node // 2
    left, right = left.reshape(-1, node), right.reshape(-1, node)
    even = np.concatenate([left[:, :half], right[:, :half]], axis=1)
    odd = np.zeros_like(even)
    odd[:, reach : half + reach] = left[:, half:]
    odd[:, half - reach : node - reach] = np.maximum(
        odd[:, half - reach : node - reach], right[:, half:]
    )
    levels = np.maximum(even, odd).ravel().astype(int)
    return np.roll(levels, -half) if shifted else levels
