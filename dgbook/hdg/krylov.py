"""Restarted GMRES on a device: the solve that the product with a trace matrix serves."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from dgbook.gpu import Device
from dgbook.gpu.timing import as_device
from dgbook.hdg.arnoldi import MOST_BLOCKS, KernelSpace, Operator, Space
from dgbook.hdg.blocks import BlockMatrix
from dgbook.hdg.launch import CoreProduct, Product
from dgbook.hdg.preconditioner import PRECONDITIONERS, workspace

STAGNATION = 1e-3
"""A cycle that lowers the residual by a smaller part of it is the last one."""
VECTORS = 8
"""Beside the basis: b, x, the residual, x and the residual as they were before, what the
preconditioner and the product give, and one for sums."""
COPIES = 3
"""Of a matrix that is brought into another order on the device, at most."""
SHARED = 2**22
"""Bytes of a matrix from which on sharing it makes up for cores that wait for one another."""


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

    SciPy's GMRES would fetch every vector. CuPy's (14.2) orthogonalises once, which loses
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
    kind = Space if device.kind == "cpu" else KernelSpace
    space = kind(product, precondition, device, length, b.size, dtype)
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
        return self.memory_of(matrix.faces, matrix.blocks, matrix.m, matrix.dtype.name)

    def memory_of(self, faces: int, blocks: int, m: int, dtype: str = "float64") -> Memory:
        """The same for a matrix that is not there yet."""
        itemsize = np.dtype(dtype).itemsize
        of_cycles = 4 if self.single else itemsize
        A = faces * blocks * m * m * itemsize
        copy = A * of_cycles // itemsize
        M = copy if self.preconditioner == "schwarz" else copy // blocks
        A_all = A + copy * (of_cycles < itemsize)
        rows = faces * m
        length = min(self.restart, self.max_iterations, rows)
        basis = (length + 1) * rows * of_cycles
        if self.device.kind != "cpu":  # two vectors more, and parts of sums
            basis += (2 * rows + (length + 2) * MOST_BLOCKS) * of_cycles
        temporary = workspace(self.preconditioner, (faces, blocks, m, m), of_cycles)
        return Memory(
            matrix=A_all,
            preconditioner=M,
            vectors=basis + VECTORS * rows * itemsize,
            set_up=A_all + M + max(COPIES * A, temporary),
        )

    def _cycle_dtype(self, matrix: BlockMatrix) -> str:
        return "float32" if self.single else matrix.dtype.name

    def __call__(self, matrix: BlockMatrix, rhs: Any) -> Any:
        """x, (faces, m), where the right-hand side is.

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

    def solve(self, matrix: BlockMatrix, rhs: Any) -> Solution:
        """Solve A x = b, converged or not.

        Parameters
        ----------
        matrix : BlockMatrix
            Its values may be on the device already.
        rhs : (faces, m) array
            NumPy's, or the device's: x is there too then.

        Raises
        ------
        ValueError
            If `rhs` has another shape.
        MemoryError
            If the device has less memory than the solve takes, before any is taken.
        numpy.linalg.LinAlgError
            If a block that the preconditioner inverts is singular.
        """
        if rhs.shape != (matrix.faces, matrix.m):
            allowed = (matrix.faces, matrix.m)
            raise ValueError(f"rhs has shape {rhs.shape}; allowed: (faces, m) = {allowed}")
        here, needed = self.device, self.memory(matrix)
        limit = here.memory_bytes if self.memory_limit is None else self.memory_limit
        if limit is not None and needed.most > limit:
            raise MemoryError(
                f"{matrix.faces} faces with {matrix.m} unknowns in {matrix.dtype} and restart = "
                f"{self.restart} take {needed}; allowed: {limit / 1e9:.3g} GB"
            )
        begin = time.perf_counter()
        from_host = isinstance(rhs, np.ndarray)
        if here.kind == "cuda" and isinstance(matrix.values, np.ndarray):
            matrix = BlockMatrix(here.array(matrix.values), matrix.columns)
        b = rhs.astype(matrix.dtype, copy=False).reshape(-1)
        if from_host:
            b = here.array(b)
        inside = matrix.astype(self._cycle_dtype(matrix))
        mixed = inside is not matrix
        precondition = product_on(PRECONDITIONERS[self.preconditioner](inside), here)
        product = product_on(inside, here)
        del inside  # values in the order of a `BlockMatrix`, if nobody else has them
        precise = product_on(matrix, here) if mixed else None
        del matrix
        here.synchronize()
        prepared = time.perf_counter()
        limits = self.restart, self.tolerance, self.max_iterations
        found = gmres(product, b, here, precondition, precise, *limits)
        here.synchronize()
        seconds = {"set up": prepared - begin, "cycles": time.perf_counter() - prepared}
        x = (here.to_numpy(found.x) if from_host else found.x).reshape(rhs.shape)
        solution = replace(found, x=x, seconds=seconds)
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
