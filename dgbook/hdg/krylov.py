"""Restarted GMRES on a device: the solve that the product with a trace matrix serves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from math import hypot, sqrt
from typing import Any

import numpy as np

from dgbook.gpu import Device
from dgbook.gpu.timing import as_device
from dgbook.hdg.blocks import BlockMatrix
from dgbook.hdg.cpu import CoreProduct
from dgbook.hdg.preconditioner import PRECONDITIONERS, workspace
from dgbook.hdg.product import Product

STAGNATION = 1e-3
"""A cycle that lowers the residual by a smaller part of it is the last one."""
BREAKDOWN = 10.0
"""Times rounding: what is left of a vector of which nothing is left."""
LIMIT = 100.0
"""Times rounding: a cycle that lowered the residual to this part of it can lower it no more, for
what the rotations say is then no longer that of x."""
VECTORS = 8
"""Beside the basis: b, x, the residual, x and the residual as they were before, what the
preconditioner and the product give, and one for sums."""
COPIES = 3
"""Of a matrix that is brought into another order on the device, at most."""
SHARED = 2**22
"""Bytes of a matrix from which on sharing it makes up for cores that wait for one another."""

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
        With A; those for residuals at the ends of cycles included.
    stopped : {"converged", "stagnated", "iterations", "not finite"}
        Why it ended: the residual is below the tolerance; a cycle hardly lowered it; the limit of
        iterations; the operator or the preconditioner gave what is no number.
    """

    x: Any
    residual: float
    history: tuple[float, ...]
    products: int
    stopped: str

    @property
    def converged(self) -> bool:
        """Whether the residual is below the tolerance."""
        return self.stopped == "converged"

    @property
    def iterations(self) -> int:
        """Vectors by which the spaces of all cycles grew."""
        return len(self.history) - 1


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


def gmres(
    product: Operator,
    b: Any,
    device: Device,
    precondition: Operator | None = None,
    precise: Operator | None = None,
    restart: int = 50,
    tolerance: float = 1e-8,
    max_iterations: int = 1000,
) -> Solution:
    """Solve A x = b by restarted GMRES with a preconditioner on the right.

    All vectors stay on the device. A step is a product with A, one with the preconditioner and four
    with the basis, (vectors, n): classical Gram-Schmidt twice, which is as good as the modified one
    and reads the basis in products of a matrix and a vector instead of a vector at a time. Then the
    new column of H comes to the host, the only time that it waits for the device.

    SciPy's GMRES would fetch every vector. CuPy's (14.2) orthogonalises once, which loses
    convergence in float32; learns the residual at the end of a cycle, and so ends there only; and
    divides by zero where the space holds the solution before.

    Parameters
    ----------
    product : function
        ``product(x, y)``, y = A x of flat arrays of the device: a `Product`, for one.
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
    length = min(restart, max_iterations, b.size)
    dtype = b.dtype if precise is None else np.float32
    basis = np.zeros_like(b, dtype, shape=(length + 1, b.size))
    space = _Space(product, precondition, device, basis)
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


class _Space:
    """The vectors of a cycle, and how they come about."""

    def __init__(
        self, product: Operator, precondition: Operator | None, device: Device, basis: Any
    ) -> None:
        self.product, self.precondition, self.device = product, precondition, device
        self.basis, self.preconditioned = basis, np.zeros_like(basis[0])
        self.eps = float(np.finfo(basis.dtype).eps)
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
        length = min(len(self.basis) - 1, most)
        small = LeastSquares(length, beta)
        goal = max(goal, LIMIT * self.eps * beta)
        self.basis[0] = r / beta
        estimates = []
        for k in range(1, length + 1):
            w = self.basis[k]
            self.product(self.apply(self.basis[k - 1]), w)
            self.products += 1
            column = self._orthogonalise(k, w)
            if not np.isfinite(column).all():
                self.finite = False
                break
            below = sqrt(column[k])
            estimates.append(small.add(column[:k], below))
            left = below > BREAKDOWN * self.eps * hypot(np.linalg.norm(column[:k]), below)
            if estimates[-1] <= goal or not left:
                break
            w /= below
        if not estimates:  # the first product is no number: nothing can be said of this direction
            return np.zeros_like(r), [beta]
        y = self.device.array(small.solve().astype(self.basis.dtype))
        return self.apply(y @ self.basis[: len(y)]), estimates

    def _orthogonalise(self, k: int, w: Any) -> np.ndarray:
        """Take from w its parts along the first k vectors; their lengths and w.w of what is left.

        The second pass takes off what rounding left of the first.
        """
        V = self.basis[:k]
        first = V @ w
        w -= first @ V
        second = V @ w
        w -= second @ V
        column = np.concatenate([first + second, w[None] @ w])
        return self.device.to_numpy(column).astype(float)


# ------------------------------------------------------------------------------- trace systems


@dataclass(frozen=True)
class Memory:
    """Bytes that a solve takes on a device.

    Attributes
    ----------
    matrix, preconditioner : int
    vectors : int
        The basis, and b, x and what else is as long.
    set_up : int
        Both matrices and what else there is at a time while the preconditioner is computed and they
        are brought into the order of their kernels. It is gone before the vectors come.
    """

    matrix: int
    preconditioner: int
    vectors: int
    set_up: int

    @property
    def most(self) -> int:
        """Bytes at the same time, at most."""
        return max(self.set_up, self.matrix + self.preconditioner + self.vectors)

    def __str__(self) -> str:
        parts = [f"{f.name} {getattr(self, f.name) / 1e9:.3g}" for f in fields(self)]
        return f"{self.most / 1e9:.3g} GB at a time ({', '.join(parts)})"


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
    memory_limit : int, optional
        Bytes that may be taken. A GPU's memory if not given; on the CPU there is then no limit.

    Attributes
    ----------
    solutions : list of Solution
        Of all systems solved; x is (faces, m), NumPy's.

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
    memory_limit: int | None = None
    solutions: list[Solution] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        check_numbers(self.restart, self.tolerance, self.max_iterations)
        if self.preconditioner not in PRECONDITIONERS:
            allowed = ", ".join(map(repr, PRECONDITIONERS))
            raise ValueError(f"preconditioner = {self.preconditioner!r}; allowed are {allowed}")
        self.device = as_device(self.device)

    def memory(self, matrix: BlockMatrix) -> Memory:
        """What a solve takes on the device, computed from sizes alone.

        Of values that are on the device already and stay there, `set_up` counts one copy, what
        remains afterwards none.
        """
        A, itemsize = matrix.nbytes, matrix.dtype.itemsize
        of_cycles = np.dtype(self._cycle_dtype(matrix)).itemsize
        copy = A * of_cycles // itemsize
        M = copy if self.preconditioner == "schwarz" else copy // matrix.blocks
        A_all = A + copy * (of_cycles < itemsize)
        rows = matrix.shape[0]
        basis = (min(self.restart, self.max_iterations, rows) + 1) * rows * of_cycles
        temporary = workspace(self.preconditioner, matrix.values.shape, of_cycles)
        return Memory(
            matrix=A_all,
            preconditioner=M,
            vectors=basis + VECTORS * rows * itemsize,
            set_up=A_all + M + max(COPIES * A, temporary),
        )

    def _cycle_dtype(self, matrix: BlockMatrix) -> str:
        return "float32" if self.single else matrix.dtype.name

    def __call__(self, matrix: BlockMatrix, rhs: np.ndarray) -> np.ndarray:
        """x, (faces, m).

        Raises
        ------
        GmresError
            If the residual is not below the tolerance.
        MemoryError, numpy.linalg.LinAlgError
            As `solve`.
        """
        solution = self.solve(matrix, rhs)
        if not solution.converged:
            raise GmresError(
                f"GMRES stopped after {solution.iterations} iterations ({solution.stopped}) with a "
                f"residual of {solution.residual / solution.history[0]:.3g} of the right-hand "
                f"side, above {self.tolerance:g}: a longer restart than {self.restart}, more "
                f"iterations than {self.max_iterations}, or solver.direct may help",
                solution,
            )
        return solution.x

    def solve(self, matrix: BlockMatrix, rhs: np.ndarray) -> Solution:
        """Solve A x = b, converged or not.

        Parameters
        ----------
        matrix : BlockMatrix
            Its values may be on the device already.
        rhs : (faces, m) array
            NumPy's.

        Raises
        ------
        ValueError
            If `rhs` has another shape.
        MemoryError
            If the device has less memory than the solve takes, before any is taken.
        numpy.linalg.LinAlgError
            If a block that the preconditioner inverts is singular.
        """
        if np.shape(rhs) != (matrix.faces, matrix.m):
            allowed = (matrix.faces, matrix.m)
            raise ValueError(f"rhs has shape {np.shape(rhs)}; allowed: (faces, m) = {allowed}")
        here, needed = self.device, self.memory(matrix)
        limit = here.memory_bytes if self.memory_limit is None else self.memory_limit
        if limit is not None and needed.most > limit:
            raise MemoryError(
                f"{matrix.faces} faces with {matrix.m} unknowns in {matrix.dtype} and restart = "
                f"{self.restart} take {needed}; allowed: {limit / 1e9:.3g} GB"
            )
        if here.kind == "cuda" and not hasattr(matrix.values, "__cuda_array_interface__"):
            matrix = BlockMatrix(here.array(matrix.values), matrix.columns)
        b = here.array(np.asarray(rhs, matrix.dtype).reshape(-1))
        inside = matrix.astype(self._cycle_dtype(matrix))
        mixed = inside is not matrix
        precondition = product_on(PRECONDITIONERS[self.preconditioner](inside), here)
        product = product_on(inside, here)
        del inside  # values in the order of a `BlockMatrix`, if nobody else has them
        precise = product_on(matrix, here) if mixed else None
        del matrix
        limits = self.restart, self.tolerance, self.max_iterations
        found = gmres(product, b, here, precondition, precise, *limits)
        solution = replace(found, x=here.to_numpy(found.x).reshape(np.shape(rhs)))
        self.solutions.append(solution)
        return solution


def product_on(matrix: BlockMatrix, device: Device) -> Operator:
    """``product(x, y)``, y = A x of flat arrays of a device: `Product`, on the CPU Algorithm 1.

    All cores share it unless the matrix is small.
    """
    if device.kind != "cpu":
        return Product(matrix, device)
    cores, shape = CoreProduct(matrix, matrix.nbytes >= SHARED), (matrix.faces, matrix.m)

    def product(x: np.ndarray, y: np.ndarray) -> None:
        cores.inflate(x.reshape(shape))
        cores.contract(y.reshape(shape))

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
