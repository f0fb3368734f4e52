"""Restarted GMRES on a device: the solve that the product with a trace matrix serves."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import hypot, log, sqrt
from typing import Any

import numpy as np

from dgbook.gpu import Device
from dgbook.gpu.device import WITH_KERNELS, as_device
from dgbook.gpu.limits import WARP
from dgbook.hdg.blocks import BlockMatrix
from dgbook.hdg.kernels import cores
from dgbook.hdg.kernels.arnoldi import (
    TOGETHER,
    make_advance,
    make_collect,
    make_dots,
    make_finish,
    make_take_off,
)
from dgbook.hdg.launch import CoreRows, Product
from dgbook.hdg.preconditioner import PRECONDITIONERS, CoarseSpace, TwoLevel
from dgbook.parallel.rows import RowsInParts
from dgbook.parallel.transport import OneProcess, Transport

STAGNATION = 1e-3
"""A cycle that lowers the residual by a smaller part of it is the last one."""
BREAKDOWN = 10.0
"""Times rounding: what is left of a vector of which nothing is left."""
LIMIT = 100.0
"""Times rounding: a cycle that lowered the residual to this part of it can lower it no more, for
what the rotations say is then no longer that of x."""
AHEAD = 16
"""Steps that a GPU may be given before the host looks at what they found, at most."""
THREADS, MOST_BLOCKS = 256, 1024
"""Of a kernel with the basis: enough loads under way for any GPU's memory."""

MOST_LEFT = 1e-2
"""Of the right-hand side of a step of Newton's method."""
ALONE = OneProcess(1)
"""Where all vectors are in one process."""

Operator = Callable[[Any, Any], None]


class GmresError(RuntimeError):
    """The residual did not fall below the tolerance; ``solution`` is how far it came."""

    def __init__(self, message: str, solution: Solution) -> None:
        super().__init__(message)
        self.solution = solution


@dataclass(frozen=True, eq=False)
class Solution:
    """What GMRES found.

    Attributes
    ----------
    x : array
        Of the shape of b, and where b is.
    residual : float
        |b - A x| of this x, computed from it.
    history : tuple of float
        The norm of the residual before the first iteration and after each: as the rotations say
        inside a cycle, computed from x at the end of one.
    products : int
        With A; those for residuals at the ends of cycles included, and those of steps that a GPU
        had taken before the host knew that they were not needed.
    stopped : {"converged", "stagnated", "iterations", "not finite"}
        Why it ended: the residual is below the tolerance; a cycle hardly lowered it; the limit of
        iterations; the operator or the preconditioner gave what is no number.
    seconds : dict of str to float
        What `Gmres` took for its "set up" (the preconditioner, and both matrices in the order of
        their kernels) and for its "cycles".
    """

    x: Any
    residual: float
    history: tuple[float, ...]
    products: int
    stopped: str
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def converged(self) -> bool:
        """Whether the residual is below the tolerance."""
        return self.stopped == "converged"

    @property
    def iterations(self) -> int:
        """Vectors by which the spaces of all cycles grew."""
        return len(self.history) - 1


def gmres(
    product: Operator,
    b: Any,
    device: Device,
    precondition: Operator | None = None,
    precise: Operator | None = None,
    restart: int = 50,
    tolerance: float = 1e-8,
    max_iterations: int = 1000,
    transport: Transport = ALONE,
) -> Solution:
    """Solve A x = b by restarted GMRES with a preconditioner on the right.

    All vectors stay on the device. A step is a product with A, one with the preconditioner and four
    with the basis, (vectors, n): classical Gram-Schmidt twice, which is as good as the modified one
    and reads the basis in products of a matrix and a vector instead of a vector at a time. On a GPU
    its launches are one graph (`kernels.arnoldi`).

    The columns of H come to the host, the only time that it waits for the device: on the CPU each
    at once, on a GPU several together (`AHEAD`), so that it need not wait for the host in turn. How
    many is guessed from how fast the residual fell. What was found is the same: steps beyond the
    last one that was needed are thrown away.

    SciPy's GMRES would fetch every vector. CuPy's (14.2) orthogonalizes once, which loses
    convergence in float32; learns the residual at the end of a cycle, and so ends there only; and
    divides by zero where the space holds the solution before.

    Parameters
    ----------
    product : function
        ``product(x, y)``, y = A x of flat arrays of the device: a `Product`, for one. On a GPU it
        only launches kernels, so that it can be captured.
    b : (n,) array of the device
        Its precision is that of x; H and the rotations are in double precision.
    device : Device
    precondition : function, optional
        ``precondition(x, y)``, y = M x with M near the inverse of A.
    precise : function, optional
        As `product`, in the precision of b, where `product` and `precondition` are in float32. The
        basis is too, half the bytes of everything, and only the residual at the end of a cycle is
        not: each cycle corrects what rounding left of the one before.
    restart : int
        Vectors after which x is updated and the basis begun anew.
    tolerance : float
        Of |b - A x| / |b|.
    max_iterations : int
    transport : Transport, optional
        Where vectors are cut among processes: it adds up what each of them found of its numbers.

    Returns
    -------
    Solution
        Of all x at the ends of cycles the one with the smallest residual.

    Raises
    ------
    ValueError
        If a number is not positive.

    References
    ----------
    Saad and Schultz, "GMRES: a generalized minimal residual algorithm for solving nonsymmetric
    linear systems", SIAM J. Sci. Stat. Comput. 7, 1986. Giraud, Langou, Rozloznik, "The loss of
    orthogonality in the Gram-Schmidt orthogonalization process", Comput. Math. Appl. 50, 2005.
    """
    check_numbers(restart, tolerance, max_iterations)
    length = min(restart, max_iterations, transport.total(b.size))
    dtype = b.dtype if precise is None else np.float32
    kind = CoreSpace if device.kind == "cpu" else KernelSpace
    space = kind(product, precondition, device, length, b.size, dtype, transport)
    x, r, product_of = np.zeros_like(b), b, np.zeros_like(b)
    cycles = 0
    history = [space.norm(b)]
    residual, goal = history[0], tolerance * history[0]
    stopped = "converged" if residual <= goal else ""
    while not stopped:
        change, estimates = space.cycle(r, residual, goal, max_iterations - len(history) + 1)
        trial = x + change
        (precise or product)(trial, product_of)
        r, cycles = b - product_of, cycles + 1
        norm = space.norm(r)
        history += [*estimates[:-1], norm]
        before = residual
        if norm < residual:
            x, residual = trial, norm
        stopped = _reason(space.finite and np.isfinite(norm), residual, before, goal)
        if not stopped and len(history) > max_iterations:
            stopped = "iterations"
    return Solution(x, residual, tuple(history), space.products + cycles, stopped)


def _reason(finite: bool, residual: float, before: float, goal: float) -> str:
    """Why to stop after a cycle, or an empty string."""
    if residual <= goal:
        return "converged"
    if not finite:
        return "not finite"
    return "stagnated" if residual > (1 - STAGNATION) * before else ""


# ------------------------------------------------------------------------------ Arnoldi's method


class LeastSquares:
    """min |beta e_1 - H w| with H a Hessenberg matrix that grows by columns, on the host.

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
        """w; the last number is zero where the last column says nothing (A is singular)."""
        k = len(self.rotations)
        known = k - (self.R[k - 1, k - 1] == 0)
        weights = np.zeros(k)
        weights[:known] = np.linalg.solve(self.R[:known, :known], self.right[:known])
        return weights


class Space:
    """The vectors of a cycle, and how they come about; by NumPy's functions.

    Attributes
    ----------
    basis : (length + 1, n) array
        Orthonormal vectors.
    columns : (length, length + 1) array
        In row k-1 the column k of H, and at the end the square of what is below its diagonal.
    transport : Transport
        See `gmres`.
    """

    def __init__(
        self,
        product: Operator,
        precondition: Operator | None,
        device: Device,
        length: int,
        n: int,
        dtype: Any,
        transport: Transport = ALONE,
    ) -> None:
        self.product, self.precondition, self.device = product, precondition, device
        self.transport, self.total = transport, transport.total
        self.basis = device.zeros((length + 1, n), dtype)
        self.columns = device.zeros((length, length + 1), dtype)
        self.preconditioned = device.zeros(n, dtype)
        self.eps = float(np.finfo(dtype).eps)
        self.finite, self.products = True, 0

    def norm(self, x: Any) -> float:
        """The Euclidean norm, on the host."""
        return sqrt(self.total(self.device.to_numpy(x[None] @ x)[0]))

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
        weights = self.device.array(small.solve().astype(self.basis.dtype))
        return self.apply(self._combined(weights)), estimates

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
        V, y, column = self.basis[:k], self.basis[k], self.columns[k - 1]
        self.product(self.apply(self.basis[k - 1]), y)
        for _ in range(2):
            parts = self.total(V @ y)
            y -= parts @ V
            column[:k] += parts
        square = self.total(y @ y)
        column[-1] = square
        with np.errstate(divide="ignore", invalid="ignore"):
            y /= np.sqrt(square)

    def _learn(
        self, small: LeastSquares, column: np.ndarray, estimates: list[float], goal: float
    ) -> bool:
        """Take a column of H; whether it is the last one that is needed, or can be used."""
        k = len(estimates) + 1
        projections, square = column[:k], column[-1]
        if not (np.isfinite(projections).all() and np.isfinite(square)):
            self.finite = False
            return True
        below = sqrt(square)
        estimates.append(small.add(projections, below))
        left = below > BREAKDOWN * self.eps * hypot(np.linalg.norm(projections), below)
        return estimates[-1] <= goal or not left

    def _combined(self, weights: Any) -> Any:
        """The sum of the first vectors of the basis, times numbers."""
        return weights @ self.basis[: len(weights)]


class CoreSpace(Space):
    """The same on all processor cores, in three passes over the basis instead of four.

    A piece of a new vector from which projections were taken off is still in the cache when the
    second pass begins with it.
    """

    def __init__(self, product: Operator, *others: Any) -> None:
        super().__init__(product, *others)
        length, n = len(self.columns), self.basis.shape[1]
        self.partial = np.empty((-(-n // cores.PIECE), length), self.basis.dtype)

    def _grow(self, k: int) -> None:
        y, column, partial = self.basis[k], self.columns[k - 1], self.partial
        self.product(self.apply(self.basis[k - 1]), y)
        cores.dots(cores.SOURCES, self.basis, k, y, partial)
        for again in (True, False):
            parts = self.total(partial[:, :k].sum(axis=0))
            cores.take_off(cores.SOURCES, self.basis, parts, y, again, partial)
            column[:k] += parts
        square = self.total(partial[:, 0].sum())
        column[-1] = square
        with np.errstate(divide="ignore", invalid="ignore"):
            y /= np.sqrt(square)

    def _combined(self, weights: Any) -> Any:
        change = np.zeros_like(self.preconditioned)
        cores.take_off(cores.SOURCES, self.basis, -weights, change, False, self.partial)
        return change


class KernelSpace(Space):
    """The same by kernels of our own: a step is the same launches every time, and so one graph.

    How many vectors there are is a number of the device's.
    """

    def __init__(self, product: Operator, *others: Any) -> None:
        super().__init__(product, *others)
        length, n, dtype = len(self.columns), self.basis.shape[1], self.basis.dtype
        threads = THREADS if self.device.kind == "cuda" else WARP
        # As many on all processes: what their blocks find is added up block by block.
        self.blocks = min(MOST_BLOCKS, -(-max(self.transport.everyone(n)) // threads))
        self.progress = self.device.zeros(1, np.int32)
        self.current, self.y = (self.device.zeros(n, dtype) for _ in range(2))
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
        y, partial, parts, squares = self.y, self.partial, self.parts, self.squares
        add_up, device = self.transport.add_up, self.device
        self.product(self.apply(self.current), y)
        groups = -(-self.length // TOGETHER)
        for _ in range(2):
            kernels["dots"][(blocks, groups), threads](basis, y, progress, partial)
            add_up(partial, device)
            kernels["collect"][self.length, threads](partial, progress, parts, columns)
            kernels["take_off"][blocks, threads](basis, parts, progress, y, squares)
        add_up(squares, device)
        kernels["finish"][blocks, threads](squares, progress, y, basis, self.current, columns)
        kernels["advance"][1, 1](progress)

    def _combined(self, weights: Any) -> Any:
        self.y[:] = 0
        self.parts[: len(weights)] = -weights
        self.progress[:] = len(weights)
        launch = self.kernels["take_off"][self.blocks, self.threads]
        launch(self.basis, self.parts, self.progress, self.y, self.squares)
        return self.y


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


# ------------------------------------------------------------------------------- trace systems


@dataclass(eq=False)
class Gmres:
    """GMRES for trace systems, as `solver.solve` takes it: everything happens on a device.

    ::

        linear = Gmres("cuda", preconditioner="schwarz", tolerance=1e-8)
        result = hdg.solve(problem, mesh, order, linear_solver=linear)
        [solution.iterations for solution in linear.solutions]      # one a step of Newton's method

    Parameters
    ----------
    device : Device, or {"auto", "cuda", "cpu", "simulator"}
    preconditioner : {"schwarz", "jacobi"}
        See `preconditioner`. Both are trace matrices themselves and multiply as A does.
    single : bool
        Whether cycles are in float32 for a matrix in float64, see `precise` of `gmres`.
    restart, tolerance, max_iterations
        As of `gmres`.
    coarse : bool
        Whether there is a coarse level too where its space is known, as `solver.solve` knows it:
        iterations then do not grow with the mesh.
    forcing : bool
        Whether Newton's method, far from its end, asks for less than the tolerance, see
        `forcing_term`.
    transport : Transport, optional
        What connects parts of the faces, cut by METIS, of which each process has its own: vectors,
        products and dot products are those of its faces, the coarse system is everybody's. On GPUs,
        one for each process, it is `NcclRanks`, and what travels is recorded with the rest of a
        step. All processes give `solve` the whole matrix and get the whole x. It is that of one
        part but for rounding, since sums are added in another order; a product has its bits.

    Attributes
    ----------
    solutions : list of Solution
        Of all systems solved; x is (faces, m), and where the right-hand side was.

    Raises
    ------
    ValueError
        If a number is not positive, or a name unknown.
    """

    device: Device | str = "auto"
    preconditioner: str = "schwarz"
    single: bool = False
    restart: int = 50
    tolerance: float = 1e-8
    max_iterations: int = 1000
    coarse: bool = True
    forcing: bool = False
    transport: Transport | None = None
    solutions: list[Solution] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        check_numbers(self.restart, self.tolerance, self.max_iterations)
        if self.preconditioner not in PRECONDITIONERS:
            allowed = ", ".join(map(repr, PRECONDITIONERS))
            raise ValueError(f"preconditioner = {self.preconditioner!r}; allowed are {allowed}")
        self.device = as_device(self.device, WITH_KERNELS)

    def _cycle_dtype(self, matrix: BlockMatrix) -> str:
        return "float32" if self.single else matrix.dtype.name

    def __call__(
        self,
        matrix: BlockMatrix,
        rhs: Any,
        space: CoarseSpace | None = None,
        tolerance: float | None = None,
    ) -> Any:
        """x, (faces, m), where the right-hand side is; see `solve`.

        Raises
        ------
        GmresError
            If the residual is not below the tolerance.
        MemoryError, numpy.linalg.LinAlgError
            As `solve`.
        """
        tolerance = tolerance or self.tolerance
        solution = self.solve(matrix, rhs, space, tolerance)
        if not solution.converged:
            raise GmresError(
                f"GMRES stopped after {solution.iterations} iterations ({solution.stopped}) with a "
                f"residual of {solution.residual / solution.history[0]:.3g} of the right-hand "
                f"side, above {tolerance:g}: a longer restart than {self.restart}, more "
                f"iterations than {self.max_iterations}, or solver.direct may help",
                solution,
            )
        return solution.x

    def solve(
        self,
        matrix: BlockMatrix,
        rhs: Any,
        space: CoarseSpace | None = None,
        tolerance: float | None = None,
    ) -> Solution:
        """Solve A x = b, converged or not.

        Parameters
        ----------
        matrix : BlockMatrix
            Its values may be on the device already.
        rhs : (faces, m) array
            NumPy's, or the device's: x is there too then.
        space : CoarseSpace, optional
            Of the coarse level; without it there is none.
        tolerance : float, optional
            In place of the solver's.

        Raises
        ------
        ValueError
            If `rhs` has another shape.
        MemoryError
            If the device has less memory than the solve takes.
        numpy.linalg.LinAlgError
            If a block that the preconditioner inverts is singular.
        """
        if rhs.shape != (matrix.faces, matrix.m):
            allowed = (matrix.faces, matrix.m)
            raise ValueError(f"rhs has shape {rhs.shape}; allowed: (faces, m) = {allowed}")
        here = self.device
        begin = time.perf_counter()
        from_host = isinstance(rhs, np.ndarray)
        if here.kind == "cuda" and isinstance(matrix.values, np.ndarray):
            matrix = BlockMatrix(here.array(matrix.values), matrix.columns)
        b = rhs.astype(matrix.dtype, copy=False).reshape(-1)
        if from_host:
            b = here.array(b)
        multiply, cut = partial(product_on, device=here), None
        if self.transport is not None:
            cut = RowsInParts(matrix.columns, self.transport)
            multiply = partial(_product_in_parts, cut, here)
            b = b.reshape(rhs.shape)[np.asarray(cut.mine, like=b)].reshape(-1)
        inside = matrix.astype(self._cycle_dtype(matrix))
        mixed = inside is not matrix
        precondition = multiply(PRECONDITIONERS[self.preconditioner](inside))
        if self.coarse and space is not None and space.count:
            precondition = TwoLevel(inside, space, precondition, here, cut)
        product = multiply(inside)
        del inside  # values in the order of a `BlockMatrix`, if nobody else has them
        precise = multiply(matrix) if mixed else None
        nbytes = matrix.nbytes
        del matrix
        here.synchronize()
        prepared = time.perf_counter()
        limits = self.restart, tolerance or self.tolerance, self.max_iterations
        where = self.transport or ALONE
        with cores.threads_for(nbytes):
            solution = gmres(product, b, here, precondition, precise, *limits, where)
        here.synchronize()
        seconds = {"set up": prepared - begin, "cycles": time.perf_counter() - prepared}
        x = solution.x
        if from_host or cut is not None:
            x = here.to_numpy(x)
        if cut is not None:
            x = cut.whole(x) if from_host else here.array(cut.whole(x))
        x = x.reshape(rhs.shape)
        solution = replace(solution, x=x, seconds=seconds)
        self.solutions.append(solution)
        return solution


def forcing_term(residuals: Sequence[float], last: float, least: float) -> float:
    """What GMRES may leave of the right-hand side of a step of Newton's method.

    Far from the solution the linear model is worth little, and so is its exact solution: as much is
    left as the square of what the last step left of the residual, and no less than the end of
    Newton's method needs.

    Parameters
    ----------
    residuals : sequence of float
        Norms, before the first step and after each.
    last : float
        At which Newton's method ends.
    least : float
        The smallest answer.

    References
    ----------
    Eisenstat and Walker, "Choosing the forcing terms in an inexact Newton method", SIAM J. Sci.
    Comput. 17, 1996: choice 2.
    """
    now = residuals[-1]
    left = 0.9 * (now / residuals[-2]) ** 2 if len(residuals) > 1 else MOST_LEFT
    return max(min(MOST_LEFT, max(left, 0.1 * last / now)), least)


def product_on(matrix: BlockMatrix, device: Device) -> Operator:
    """``product(x, y)``, y = A x of flat arrays of a device: `Product`, on the CPU `CoreRows`."""
    return CoreRows(matrix) if device.kind == "cpu" else Product(matrix, device)


def _product_in_parts(cut: RowsInParts, device: Device, matrix: BlockMatrix) -> Operator:
    """`product_on` for the rows of this process's parts, of which x and y are."""
    exchange = cut.exchange(matrix.m, matrix.dtype, device)
    several = []
    for part in cut.parts:
        # A row that another part has is there for its unknowns only: its blocks are zeros.
        shape = len(part.columns), *matrix.values.shape[1:]
        values = np.zeros_like(matrix.values, shape=shape)
        values[: len(part.own)] = matrix.values[np.asarray(part.own, like=values)]
        columns = np.ascontiguousarray(part.columns[:, : matrix.blocks])
        several.append(product_on(BlockMatrix(values, columns), device))
    results = [np.empty_like(unknowns).reshape(-1) for unknowns in exchange.unknowns]

    def product(x: Any, y: Any) -> None:
        exchange(x)
        first = 0
        both = zip(several, exchange.unknowns, results, cut.parts, strict=True)
        for multiply, unknowns, result, part in both:
            multiply(unknowns.reshape(-1), result)
            last = first + len(part.own) * matrix.m
            y[first:last] = result[: last - first]
            first = last

    return product


def check_numbers(restart: int, tolerance: float, max_iterations: int) -> None:
    """Raise ValueError for a number that is not positive."""
    for name, value in (
        ("restart", restart),
        ("tolerance", tolerance),
        ("max_iterations", max_iterations),
    ):
        if not value > 0:
            raise ValueError(f"{name} = {value!r}; allowed: positive")
