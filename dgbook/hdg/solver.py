"""Solving: one trace system for a linear problem, Newton's method for a gas; results and errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from dgbook.arguments import bytes_text, check_memory
from dgbook.element import NodalElement, simplex_quadrature
from dgbook.gpu import Device
from dgbook.gpu.device import as_device
from dgbook.hdg import local
from dgbook.hdg.blocks import BlockMatrix, face_nodes
from dgbook.hdg.cores import NUMBERS
from dgbook.hdg.discretization import Discretization, discretize, on_device
from dgbook.hdg.krylov import Gmres, forcing_term
from dgbook.hdg.local import State
from dgbook.hdg.preconditioner import DENSE, STACK, CoarseSpace, coarse_space
from dgbook.hdg.problem import Problem
from dgbook.hdg.system import (
    NUMBERS_AT_A_TIME,
    NUMBERS_ON_A_GPU,
    System,
    linearize,
    residual,
    start,
    to_device,
    to_host,
)
from dgbook.mesh import Mesh, inverse_permutation, nodes_xyz

SHORTEST_STEP = 2.0**-10
"""Of Newton's method; a direction that needs a shorter one is useless."""


ON_CORES, ON_HOST, ON_A_GPU = 4 * NUMBERS, 6 * NUMBERS_AT_A_TIME, 12 * NUMBERS_ON_A_GPU
"""Numbers that a stack of elements has at a time: CuPy's pool keeps what is gone already."""
COPIES = 4
"""Of the matrix, beside it, while a solver brings it into its own order."""
ADVICE = ". Take a lower order or a coarser mesh"


class NewtonError(RuntimeError):
    """Newton's method did not come to an end; ``history`` and ``state`` are how far it came."""

    def __init__(self, message: str, history: list[float], state: State) -> None:
        super().__init__(message)
        self.history, self.state = tuple(history), state


@dataclass(frozen=True, eq=False)
class Result:
    """A solution.

    Attributes
    ----------
    discretization : Discretization
    state : State
    history : tuple of float
        The norm of the residual, before the first step and after each.
    seconds : dict of str to float
        Where the time went: "discretize", on the host; and of all steps together "assemble",
        "solve" (the trace systems) and "update" (states and their residuals, to a GPU and back).
    """

    discretization: Discretization
    state: State
    history: tuple[float, ...]
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def u(self) -> np.ndarray:
        """The fields at the nodes, (n_c, K, Np)."""
        return self.state.u

    @property
    def trace(self) -> np.ndarray:
        """The trace at the nodes of the faces, (n_c, faces, Nfp); see `trace_x`."""
        d = self.discretization
        return self.state.trace.reshape(d.faces.count, d.n_c, -1).transpose(1, 0, 2)

    @property
    def x(self) -> np.ndarray:
        """Coordinates of the nodes, (dim, K, Np)."""
        return self.discretization.nodes()

    @property
    def trace_x(self) -> np.ndarray:
        """Coordinates of the faces' nodes, (dim, faces, Nfp)."""
        return self.discretization.trace_nodes()

    @cached_property
    def q(self) -> np.ndarray:
        """The gradients at the nodes, (n_c, dim, K, Np)."""
        d = self.discretization
        return local.gradient(d, local.local_unknowns(d, self.state))

    def l2_error(
        self, exact: Callable, quantity: Callable[[np.ndarray, np.ndarray], Any] | None = None
    ) -> float:
        """The L2 norm of a quantity of (u, q) minus a function of (x, y, [z]).

        Parameters
        ----------
        exact : function
            Of (x, y, [z]); returns what `quantity` does: a number or array a component.
        quantity : function, optional
            Of u, (n_c, ...), and q, (n_c, dim, ...), at points; u itself if not given. For the
            gradient of all fields ``lambda u, q: q``, for the first stress
            ``lambda u, q: gas.stress(u, q)[0, 1]``.

        Notes
        -----
        By quadrature exact to degree 2k+4 in each element, of u and q as polynomials.
        """
        d = self.discretization
        points, weights = simplex_quadrature(d.mesh.dim, 2 * d.element.order + 4)
        to_points = d.element.interpolation(points).T
        u, q = self.u @ to_points, self.q @ to_points
        values = np.asarray(u if quantity is None else quantity(u, q))
        return _l2(values, exact(*nodes_xyz(d.mesh, points)), weights, d.jacobian)

    def boundary_flux(self, name: str) -> np.ndarray:
        """The integral of hhat over a named boundary, (n_c,): what leaves through it.

        Of a gas, what leaves as momentum is the force on the body behind the boundary.
        """
        d = self.discretization
        z = local.local_unknowns(d, self.state)
        total = np.zeros(d.n_c)
        for f in range(d.mesh.dim + 1):
            k = d.mesh.faces(name)[:, 0][d.mesh.faces(name)[:, 1] == f]
            at = local.on_face(d, z, f, slice(None))
            total += (at.weights * local.numerical_flux(d, at))[:, k].sum(axis=(1, 2))
        return total

    def postprocessed(self) -> np.ndarray:
        """u* of order k+1 at the nodes of that order, (n_c, K, Np of k+1).

        On each element by itself: its gradient is as near to q, and its mean is that of u,

            (grad u*, grad w) = (q, grad w) for all w of degree k+1,   (u*, 1) = (u, 1).

        For diffusion it converges as h^(k+2), one order faster than u (Cockburn, Dong, Guzman,
        Math. Comp. 77, 2008), if k >= 1.
        """
        d = self.discretization
        dim, order = d.mesh.dim, d.element.order
        fine = NodalElement(dim, order + 1)
        points, weights = simplex_quadrature(dim, 2 * order + 2)
        # d phi*_i / d r_a and phi*_i, and u and q at the points of a rule.
        slopes = fine.interpolation(points) @ fine.derivative
        to_points = d.element.interpolation(points)
        products = np.einsum("q,aqi,bqj->abij", weights, slopes, slopes)
        metric = np.einsum("aek,bek->kab", d.rx, d.rx)
        stiffness = np.einsum("kab,abij->kij", metric, products)
        q = np.einsum("aek,cekq->ackq", d.rx, self.q @ to_points.T)
        right = np.einsum("q,aqi,ackq->kic", weights, slopes, q)
        # The rows of the stiffness add up to zero: one of them is free for the mean.
        stiffness[:, 0] = weights @ fine.interpolation(points)
        right[:, 0] = np.einsum("q,qi,cki->kc", weights, to_points, self.u)
        return np.linalg.solve(stiffness, right).transpose(2, 0, 1)

    def postprocessed_error(self, exact: Callable) -> float:
        """The L2 norm of u* - exact(x, y, [z]), see `postprocessed`."""
        d = self.discretization
        points, weights = simplex_quadrature(d.mesh.dim, 2 * d.element.order + 6)
        fine = NodalElement(d.mesh.dim, d.element.order + 1)
        values = self.postprocessed() @ fine.interpolation(points).T
        return _l2(values, exact(*nodes_xyz(d.mesh, points)), weights, d.jacobian)


def _l2(values: np.ndarray, exact: Any, weights: np.ndarray, jacobian: np.ndarray) -> float:
    """The L2 norm of a difference at the points of a rule, (..., K, Nq), all components."""
    difference = values - np.asarray(exact)
    squares = (difference * difference).reshape(-1, *values.shape[-2:]).sum(axis=0)
    return float(np.sqrt(jacobian @ (squares @ weights)))


def solve(
    problem: Problem,
    mesh: Mesh,
    order: int,
    initial: Callable | State | None = None,
    tolerance: float = 1e-10,
    max_steps: int = 30,
    linear_solver: Callable[[BlockMatrix, np.ndarray], np.ndarray] | None = None,
    device: Any = "cpu",
    observe: Callable[[float, State], None] | None = None,
) -> Result:
    """Solve a problem.

    Parameters
    ----------
    problem : Problem
    mesh : Mesh
        Triangles or tetrahedra.
    order : int
        Polynomial degree.
    initial : function of (x, y, [z]) or State, optional
        Where Newton's method begins, see `system.start`; a state has to have this order and mesh.
    tolerance : float
        Newton's method ends when the Euclidean norm of all residuals is below it.
    max_steps : int
        Of Newton's method, positive. A linear problem takes one.
    linear_solver : function, optional
        Of (matrix, rhs): returns x, (faces, m). If not given, `direct` on the host and, where
        elements are condensed on a GPU, GMRES there to 1e-10.
    device : Device or {"auto", "cuda", "cpu", "reference"}
        Where u is eliminated, blocks are added up and the state is updated: on processor cores by
        compiled kernels, with "reference" by NumPy. Of a GPU only numbers that say how it goes come
        to the host, if `linear_solver` is a `Gmres` on that device; for another
        one the trace system does, and x goes back.
    observe : function, optional
        Called as ``observe(residual, state)`` before the first step and after each; the state is
        where it is computed (`system.to_host`).

    Returns
    -------
    Result

    Raises
    ------
    TypeError, ValueError
        If an argument is none of its kind, the conditions do not fit the problem or the mesh, or
        the host or the GPU has less memory than the solution is likely to take.
    MemoryError
        If memory was short all the same.
    NewtonError
        If the residual is not below the tolerance after so many steps, or cannot be lowered.

    Notes
    -----
    A step of Newton's method is shortened, by halves, until the state it leads to is possible and
    its residual smaller (at least by a small fraction of what the linear model promises).
    """
    _check_numbers(tolerance, max_steps)
    place, begin = as_device(device), time.perf_counter()
    if linear_solver is None:
        on_gpu = place.kind == "cuda"
        linear_solver = Gmres(place, restart=100, tolerance=1e-10) if on_gpu else direct
    d = discretize(problem, mesh, order)
    state = initial if isinstance(initial, State) else start(d, initial)
    _check_state(d, state)
    same_device = isinstance(linear_solver, Gmres) and linear_solver.device == place
    needs = check_room(mesh, order, d.n_c, place, linear_solver if same_device else None)
    seconds = {"discretize": time.perf_counter() - begin}
    try:
        result = newton(d, state, tolerance, max_steps, linear_solver, place, observe)
    except MemoryError as error:  # CuPy's is one too
        raise MemoryError(f"{needs}, and there was less{ADVICE}") from error
    return replace(result, seconds=seconds | result.seconds)


def newton(
    here: Discretization,
    begin: State,
    tolerance: float,
    max_steps: int,
    linear_solver: Callable[[BlockMatrix, Any], Any],
    place: Device,
    observe: Callable[[float, State], None] | None = None,
) -> Result:
    """Newton's method from a state of the host, see `solve`."""
    problem, clock = here.problem, _Clock(place)
    d, state = on_device(here, place), to_device(begin, place)
    observe = observe or (lambda residual, state: None)
    history = [_norm(d, state)]
    observe(history[0], state)
    clock.add("update")
    coarse = isinstance(linear_solver, Gmres) and linear_solver.coarse
    space = coarse_space(here) if coarse else None
    clock.add("solve")

    def told(state: State) -> State:
        return begin if len(history) == 1 else to_host(state, place)

    for _ in range(1 if problem.linear else max_steps):
        if history[-1] <= tolerance:
            break
        system = linearize(d, state, place.kind == "reference")
        clock.add("assemble")
        options = {}
        if not problem.linear and isinstance(linear_solver, Gmres) and linear_solver.forcing:
            options["tolerance"] = forcing_term(history, tolerance, linear_solver.tolerance)
        x = _solved(linear_solver, system, here, place, space, options)
        clock.add("solve")
        step = 1.0
        while True:
            trial = system.recover(x, step)
            if problem.admissible(trial.u) and _admissible_trace(d, trial):
                norm = _norm(d, trial)
                if problem.linear or norm <= (1 - 1e-4 * step) * history[-1]:
                    break
            step /= 2
            if step < SHORTEST_STEP:
                raise NewtonError(
                    f"the residual {history[-1]:.3g} cannot be lowered along Newton's direction: "
                    "begin nearer to the solution, at a lower order or Reynolds number",
                    history,
                    told(state),
                )
        del system  # before the next one takes as much memory
        state = trial
        history.append(norm)
        observe(norm, state)
        clock.add("update")
    if not problem.linear and history[-1] > tolerance:
        raise NewtonError(
            f"after {max_steps} steps the residual is {history[-1]:.3g}, above {tolerance:g}",
            history,
            told(state),
        )
    last = told(state)
    clock.add("update")
    return Result(here, last, tuple(history), clock.seconds)


class _Clock:
    """Where the time goes, on a device: it is waited for."""

    def __init__(self, device: Device) -> None:
        self.device, self.seconds = device, {}
        self.last = time.perf_counter()

    def add(self, part: str) -> None:
        """What has passed since the last call is this part's."""
        self.device.synchronize()
        now = time.perf_counter()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self.last
        self.last = now


def _solved(
    linear_solver: Callable,
    system: System,
    here: Discretization,
    place: Device,
    space: CoarseSpace | None,
    options: dict[str, float],
) -> Any:
    """x where the system is; on the way there by the host for a solver that is not there."""
    known = () if space is None else (space,)
    if isinstance(linear_solver, Gmres) and linear_solver.device == place:
        return linear_solver(system.matrix, system.rhs, *known, **options)
    matrix, rhs = system.matrix, system.rhs
    if place.kind == "cuda":
        values, rhs = place.to_numpy(matrix.values), place.to_numpy(rhs)
        matrix = BlockMatrix(values, here.faces.columns)
    x = linear_solver(matrix, rhs, *known, **options)
    return place.array(x) if place.kind == "cuda" else x


def direct(matrix: BlockMatrix, rhs: np.ndarray) -> np.ndarray:
    """x with A x = rhs by SciPy's sparse LU factorization; rhs and x are (faces, m).

    All unknowns of a face stay together, and faces are ordered for little fill as the nodes of a
    graph, much smaller than the matrix. Pivoting would spoil that order: instead every row of
    blocks is multiplied by the inverse of its diagonal block, and the solution improved once by
    its residual.
    """
    order = _elimination_order(matrix.columns)
    place = inverse_permutation(order)
    kept = ~matrix.padded[order]
    diagonal = matrix.values[:, 0]
    scaled = np.linalg.solve(diagonal[order][:, None], matrix.values[order])
    columns = place[matrix.columns[order]].astype(np.int32)
    pointers = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    ordered = sparse.bsr_array((scaled[kept], columns[kept], pointers), shape=matrix.shape)
    factors = splu(ordered.tocsc(), permc_spec="NATURAL", diag_pivot_thresh=0.0)

    def solved(b: np.ndarray) -> np.ndarray:
        b = np.linalg.solve(diagonal, b[..., None])[..., 0]
        return factors.solve(b[order].ravel()).reshape(b.shape)[place]

    x = solved(rhs)
    products = np.einsum("fbij,fbj->fi", matrix.values, x[matrix.columns], optimize=True)
    return x + solved(rhs - products)


def _elimination_order(columns: np.ndarray) -> np.ndarray:
    """A minimum-degree order of the faces, that of a matrix with one number for each block."""
    faces, nb = columns.shape
    rows = np.repeat(np.arange(faces), nb)
    pattern = sparse.coo_array((np.ones(rows.size), (rows, columns.ravel()))).tocsc()
    dominant = pattern + pattern.T + 4 * nb * sparse.eye_array(faces, format="csc")
    factors = splu(dominant.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0)
    return np.argsort(factors.perm_c)


def fill(columns: np.ndarray, m: int) -> int:
    """Blocks of L and U together, in the order that `direct` eliminates in.

    For a matrix without zeros in its m x m blocks the number is exact.

    Parameters
    ----------
    columns : (faces, nb) int array
        As `blocks.face_columns` has them.
    m : int
    """
    faces, nb = columns.shape
    numbers = np.repeat(np.arange(faces), nb), columns.ravel()
    # With a dominant diagonal nothing vanishes and no pivot is looked for.
    values = np.where(numbers[0] == numbers[1], 4.0 * nb, 1.0)
    graph = sparse.coo_array((values, numbers)).tocsc()
    # SuperLU takes ten columns together where little is added to them, zeros that it stores.
    relax = -(-10 // m)
    factors = splu(graph, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, relax=relax)
    return factors.nnz - faces  # both have a diagonal, which is stored once


def about_fill(dim: int, faces: int) -> int:
    """What `fill` counts, from the number of faces alone: as it grew on squares and cubes."""
    return int(3 * faces**1.26 if dim == 2 else 1.1 * faces**1.5)


# ---------------------------------------------------------------------------------------- memory


def memory_bytes(
    dim: int, K: int, faces: int, order: int, n_c: int, place: Device, linear: Gmres | None
) -> tuple[int, int]:
    """Bytes of the host and of a GPU that `solve` takes, about, from sizes alone.

    The blocks and what recovers u in each element stay; beside them are stacks of elements first,
    and then what solves for the trace.

    Parameters
    ----------
    dim, K, faces, order, n_c : int
    place : Device
        Where elements are condensed.
    linear : Gmres, optional
        If it is there; the direct solver, on the host, without it.
    """
    Np, m = comb(order + dim, dim), n_c * face_nodes(dim, order)
    numbers = faces * (2 * dim + 1) * m * m
    elements = K * n_c * Np * ((dim + 1) * m + 1)
    if place.kind == "cpu":
        stacks = min(ON_CORES, 6 * K * ((dim + 1) * m) ** 2)
    else:
        most = ON_A_GPU if place.kind == "cuda" else ON_HOST
        stacks = min(most, 20 * K * (n_c * Np + (dim + 1) * m) ** 2)
    if linear is not None:
        small = min(STACK, K * ((dim + 1) * m) ** 2)  # matrices that Schwarz inverts, copies too
        if place.kind == "cuda" and n_c > 1:  # the dense inverse for the vertices
            small = max(small, 2 * min(DENSE, n_c * K // dim) ** 2)
        vectors = min(linear.restart, linear.max_iterations) + 40  # the coarse level's as well
        solver = max(COPIES * numbers + small, numbers + vectors * faces * m)
    else:
        solver = COPIES * numbers + 3 * about_fill(dim, faces) * m * m // 2  # with numbers of rows
    if place.kind != "cuda":
        return 8 * (numbers + elements + max(stacks, solver)), 0
    if linear is None:
        return 8 * (numbers + solver), 8 * (numbers + elements + stacks)
    return 0, 8 * (numbers + elements + max(stacks, solver))


def check_room(mesh: Mesh, order: int, n_c: int, place: Device, linear: Gmres | None) -> str:
    """Raise ValueError for a solution that needs more memory than there is, see `memory_bytes`.

    Returns
    -------
    str
        What it needs, in words.
    """
    faces = ((mesh.dim + 1) * mesh.K + len(mesh.boundary_faces)) // 2
    host, device = memory_bytes(mesh.dim, mesh.K, faces, order, n_c, place, linear)
    what = f"{mesh.K} elements of order {order} need"
    check_memory(what, host, None, ADVICE)
    if device and place.memory_bytes is not None:
        check_memory(what, device, (place.memory_bytes, place.name), ADVICE)
    needs = [f"{bytes_text(host)} of the host's memory"] if host else []
    needs += [f"{bytes_text(device)} of the device's"] if device else []
    return f"{what} about {' and '.join(needs)}"


def _norm(d: Discretization, state: State) -> float:
    """The Euclidean norm of all residuals, on the host."""
    R_u, R_h = residual(d, state)
    return float(np.sqrt((R_u * R_u).sum() + (R_h * R_h).sum()))


def _admissible_trace(d: Discretization, state: State) -> bool:
    return d.problem.admissible(state.trace.reshape(d.faces.count, d.n_c, -1).transpose(1, 0, 2))


def _check_numbers(tolerance: float, max_steps: int) -> None:
    if not tolerance > 0:
        raise ValueError(f"tolerance = {tolerance!r}; allowed: positive")
    if not max_steps > 0:
        raise ValueError(f"max_steps = {max_steps!r}; allowed: positive")


def _check_state(d: Discretization, state: State) -> None:
    """Raise ValueError for a state of another mesh or order, or one that no gas can have."""
    shapes = (d.n_c, d.mesh.K, d.element.Np), (d.faces.count, d.m)
    if (state.u.shape, state.trace.shape) != shapes:
        raise ValueError(
            f"initial has shapes {state.u.shape} and {state.trace.shape}; allowed: {shapes[0]} "
            f"and {shapes[1]}"
        )
    if not (d.problem.admissible(state.u) and _admissible_trace(d, state)):
        raise ValueError("initial is no state that the problem can have everywhere")
