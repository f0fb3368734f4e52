"""Arnoldi's method: how the space of a GMRES cycle grows, on the host or by a GPU's kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import hypot, log, sqrt
from typing import Any

import numpy as np

from dgbook.gpu import Device
from dgbook.gpu.limits import WARP
from dgbook.hdg.kernels.arnoldi import (
    TOGETHER,
    make_advance,
    make_collect,
    make_dots,
    make_finish,
    make_take_off,
)

BREAKDOWN = 10.0
"""Times rounding: what is left of a vector of which nothing is left."""
LIMIT = 100.0
"""Times rounding: a cycle that lowered the residual to this part of it can lower it no more, for
what the rotations say is then no longer that of x."""
AHEAD = 16
"""Steps that a GPU may be given before the host looks at what they found, at most."""
THREADS, MOST_BLOCKS = 256, 1024
"""Of a kernel with the basis: enough loads under way for any GPU's memory."""

Operator = Callable[[Any, Any], None]


class LeastSquares:
    """min |beta e_1 - H y| with H a Hessenberg matrix that grows by columns, on the host.

    Each new column is rotated as those before it were and once more, so that a triangle R is left;
    what the rotations leave of the right-hand side below it is the residual.

    Parameters
    ----------
    size : int
        Columns at most.
    beta : float
    """

    def __init__(self, size: int, beta: float) -> None:
        self.R = np.zeros((size, size))
        self.right = np.zeros(size + 1)
        self.right[0] = beta
        self.rotations: list[tuple[float, float]] = []

    def add(self, column: np.ndarray, below: float) -> float:
        """Add a column, k numbers and the one below the diagonal; the norm of the residual."""
        k = len(self.rotations)
        column = column.tolist()
        for i, (c, s) in enumerate(self.rotations):
            column[i], column[i + 1] = (
                c * column[i] + s * column[i + 1],
                c * column[i + 1] - s * column[i],
            )
        length = hypot(column[k], below)
        # A column without a part of its own leaves the residual as it was.
        c, s = (column[k] / length, below / length) if length else (0.0, 1.0)
        self.R[:k, k], self.R[k, k] = column[:k], length
        self.right[k : k + 2] = c * self.right[k], -s * self.right[k]
        self.rotations.append((c, s))
        return float(abs(self.right[k + 1]))

    def solve(self) -> np.ndarray:
        """y; the last number is zero where the last column says nothing (A is singular)."""
        k = len(self.rotations)
        known = k - (self.R[k - 1, k - 1] == 0)
        y = np.zeros(k)
        y[:known] = np.linalg.solve(self.R[:known, :known], self.right[:known])
        return y


class Space:
    """The vectors of a cycle, and how they come about; by NumPy's functions.

    Attributes
    ----------
    basis : (length + 1, n) array
        Orthonormal vectors.
    columns : (length, length + 1) array
        In row k-1 the column k of H, and at the end the square of what is below its diagonal.
    """

    def __init__(
        self,
        product: Operator,
        precondition: Operator | None,
        device: Device,
        length: int,
        n: int,
        dtype: Any,
    ) -> None:
        self.product, self.precondition, self.device = product, precondition, device
        self.basis = device.zeros((length + 1, n), dtype)
        self.columns = device.zeros((length, length + 1), dtype)
        self.preconditioned = device.zeros(n, dtype)
        self.eps = float(np.finfo(dtype).eps)
        self.finite, self.products = True, 0

    def norm(self, x: Any) -> float:
        """The Euclidean norm, on the host."""
        return sqrt(self.device.to_numpy(x[None] @ x)[0])

    def apply(self, x: Any) -> Any:
        """M x."""
        if self.precondition is None:
            return x
        self.precondition(x, self.preconditioned)
        return self.preconditioned

    def cycle(self, r: Any, beta: float, goal: float, most: int) -> tuple[Any, list[float]]:
        """The change of x that lowers the residual r, of norm beta, most; its norm step by step.

        The space grows until the residual is below the goal, nothing is left of a new vector
        (then the space holds the solution), or it has its length or `most` vectors.
        """
        length = min(len(self.columns), most)
        small = LeastSquares(length, beta)
        goal = max(goal, LIMIT * self.eps * beta)
        self._begin(r / beta)
        estimates: list[float] = []
        made, done = 0, False
        while made < length and not done:
            first, made = made, min(length, made + self._ahead(beta, estimates, goal))
            for k in range(first + 1, made + 1):
                self._grow(k)
            self.products += made - first
            for column in self.device.to_numpy(self.columns[first:made]).astype(float):
                done = self._learn(small, column, estimates, goal)
                if done:
                    break
        if not estimates:  # the first product is no number: nothing can be said of this direction
            return np.zeros_like(r), [beta]
        y = self.device.array(small.solve().astype(self.basis.dtype))
        return self.apply(self._combined(y)), estimates

    def _ahead(self, beta: float, estimates: list[float], goal: float) -> int:
        """Steps to take before the host looks: half as many as it may take to the goal.

        Half, since GMRES gets faster as it goes on. On the CPU nobody waits for anybody.
        """
        if self.device.kind == "cpu" or not estimates:
            return 1
        rate = log(beta / estimates[-1]) / len(estimates)
        return max(1, int(min(AHEAD, 0.5 * log(estimates[-1] / goal) / max(rate, self.eps))))

    def _begin(self, first: Any) -> None:
        """The first vector of the basis."""
        self.basis[0] = first
        self.columns[:] = 0

    def _grow(self, k: int) -> None:
        """Vector k of the basis, and column k of H.

        Classical Gram-Schmidt; the second pass takes off what rounding left of the first.
        """
        V, w, column = self.basis[:k], self.basis[k], self.columns[k - 1]
        self.product(self.apply(self.basis[k - 1]), w)
        for _ in range(2):
            parts = V @ w
            w -= parts @ V
            column[:k] += parts
        square = w @ w
        column[-1] = square
        with np.errstate(divide="ignore", invalid="ignore"):
            w /= np.sqrt(square)

    def _learn(
        self, small: LeastSquares, column: np.ndarray, estimates: list[float], goal: float
    ) -> bool:
        """Take a column of H; whether it is the last one that is needed, or can be used."""
        k = len(estimates) + 1
        own, square = column[:k], column[-1]
        if not (np.isfinite(own).all() and np.isfinite(square)):
            self.finite = False
            return True
        below = sqrt(square)
        estimates.append(small.add(own, below))
        left = below > BREAKDOWN * self.eps * hypot(np.linalg.norm(own), below)
        return estimates[-1] <= goal or not left

    def _combined(self, y: Any) -> Any:
        """The sum of the first vectors of the basis, times numbers."""
        return y @ self.basis[: len(y)]


class KernelSpace(Space):
    """The same by kernels of our own: a step is the same launches every time, and so one graph.

    How many vectors there are is a number of the device's.
    """

    def __init__(self, product: Operator, *others: Any) -> None:
        super().__init__(product, *others)
        length, n, dtype = len(self.columns), self.basis.shape[1], self.basis.dtype
        threads = THREADS if self.device.kind == "cuda" else WARP
        self.blocks = min(MOST_BLOCKS, -(-n // threads))
        self.progress = self.device.zeros(1, np.int32)
        self.current, self.w = (self.device.zeros(n, dtype) for _ in range(2))
        self.partial = self.device.zeros((length, self.blocks), dtype)
        self.parts = self.device.zeros(length, dtype)
        self.squares = self.device.zeros(self.blocks, dtype)
        self.kernels = arnoldi_kernels(dtype.name, threads)
        self.threads, self.length = threads, length
        self._step = self.device.capture(self._launch)

    def _begin(self, first: Any) -> None:
        super()._begin(first)
        self.current[:] = first
        self.progress[:] = 1

    def _grow(self, k: int) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            self._step()

    def _launch(self) -> None:
        """The kernels of a step."""
        kernels, threads, blocks = self.kernels, self.threads, self.blocks
        basis, columns, progress = self.basis, self.columns, self.progress
        w, partial, parts, squares = self.w, self.partial, self.parts, self.squares
        self.product(self.apply(self.current), w)
        groups = -(-self.length // TOGETHER)
        for _ in range(2):
            kernels["dots"][(blocks, groups), threads](basis, w, progress, partial)
            kernels["collect"][self.length, threads](partial, progress, parts, columns)
            kernels["take_off"][blocks, threads](basis, parts, progress, w, squares)
        kernels["finish"][blocks, threads](squares, progress, w, basis, self.current, columns)
        kernels["advance"][1, 1](progress)

    def _combined(self, y: Any) -> Any:
        self.w[:] = 0
        self.parts[: len(y)] = -y
        self.progress[:] = len(y)
        launch = self.kernels["take_off"][self.blocks, self.threads]
        launch(self.basis, self.parts, self.progress, self.w, self.squares)
        return self.w


@lru_cache(maxsize=8)
def arnoldi_kernels(dtype: str, threads: int) -> dict[str, Any]:
    """The kernels of a step by name, compiled once."""
    makers = {
        "dots": make_dots,
        "collect": make_collect,
        "take_off": make_take_off,
        "finish": make_finish,
    }
    made = {name: make(dtype, threads) for name, make in makers.items()}
    return made | {"advance": make_advance()}
