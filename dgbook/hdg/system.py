"""The trace system: elements condensed and their blocks added up, face by face.

All of it runs where the arrays of the discretization are (`discretization.on_device`): on a GPU the
blocks are written where the product with them will read them, and on the host the kernels of
`cores` do it on all processor cores. Device "reference" keeps to NumPy and to `local` there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgbook.gpu import Device
from dgbook.gpu.device import as_device
from dgbook.gpu.libraries import TOGETHER
from dgbook.hdg import local
from dgbook.hdg.blocks import BlockMatrix
from dgbook.hdg.cores import Elements, respond
from dgbook.hdg.discretization import Discretization, as_boundary, discretize, on_device
from dgbook.hdg.launch import matvec
from dgbook.hdg.local import State
from dgbook.hdg.problem import FarField, Problem
from dgbook.mesh import Mesh

NUMBERS_AT_A_TIME = 2**21
"""Of the largest array of a stack of elements: some megabytes, to stay near the caches."""
NUMBERS_ON_A_GPU = 2**25
"""The same on a GPU, where a stack has to keep all multiprocessors busy."""


@dataclass(frozen=True, eq=False)
class System:
    """The linear system of all traces, at a state: A x = b with x the change of the trace.

    From the state zero, where a linear problem is linearized if nothing else is said, x is the
    trace itself. Rows of faces on which it is given are those of the identity, and their columns
    are zero elsewhere: what they contribute is in b. For `Poisson` A is symmetric and positive.

    Attributes
    ----------
    discretization : Discretization
        Its arrays, and all that follow, are in one place.
    state : State
        Where the problem was linearized.
    matrix : BlockMatrix
        A: blocks of m = n_c Nfp rows, unknown c Nfp + j of a face its component c at node j.
    rhs : (faces, m) array
        b.
    response, offset : (K, n_c Np, n_c (dim+1) Nfp) and (K, n_c Np) arrays
        As in `local.Condensed`, for all elements.
    on_cores : bool
        Whether `recover` takes all processor cores.
    """

    discretization: Discretization
    state: State
    matrix: BlockMatrix
    rhs: np.ndarray
    response: np.ndarray
    offset: np.ndarray
    on_cores: bool = False

    def matvec(self, x: np.ndarray, device: Any = "auto", dtype: str = "float64") -> np.ndarray:
        """A x, (faces, m), on a device and in a precision; see `dgbook.hdg.launch`."""
        return matvec(self.matrix, x, device, dtype)

    def recover(self, x: np.ndarray, step: float = 1.0) -> State:
        """The state after a change of the trace by `step` times x, and of u by what follows."""
        d = self.discretization
        du = np.empty_like(self.state.u)
        for some in _stacks(d):
            change = local.local_traces(d, x, some).transpose(1, 0, 2)
            k = len(change)
            change = change.reshape(k, -1)
            if self.on_cores:
                answer = respond(self.response[some], self.offset[some], change)
            else:
                answer = self.response[some] @ change[..., None]
                answer = -(self.offset[some] + answer[..., 0])
            du[:, some] = answer.reshape(k, d.n_c, -1).transpose(1, 0, 2)
        return State(self.state.u + step * du, self.state.trace + step * x)


def assemble(
    problem: Problem,
    mesh: Mesh,
    order: int,
    state: State | None = None,
    device: Any = "cpu",
) -> System:
    """The trace system of a problem.

    Parameters
    ----------
    problem : Problem
    mesh : Mesh
        Triangles or tetrahedra.
    order : int
        Polynomial degree, 0 or more.
    state : State, optional
        Where to linearize; if not given, where `start` begins: at zero for a linear problem.
    device : Device or {"auto", "cuda", "cpu", "reference"}
        Where it is computed: on processor cores by compiled kernels, or by NumPy, which defines
        what is right. The result is on the host.

    Raises
    ------
    TypeError, ValueError
        If an argument is none of its kind, or the conditions do not fit the problem or the mesh.
    """
    place, d = as_device(device), discretize(problem, mesh, order)
    state = start(d) if state is None else state
    if place.kind != "cuda":
        return linearize(d, state, place.kind == "reference")
    system = linearize(on_device(d, place), to_device(state, place))
    arrays = {name: place.to_numpy(getattr(system, name)) for name in ("rhs", "response", "offset")}
    matrix = BlockMatrix(place.to_numpy(system.matrix.values), d.faces.columns)
    return System(d, state, matrix, **arrays)


def start(d: Discretization, initial: Any = None) -> State:
    """A state to begin with.

    Parameters
    ----------
    d : Discretization
    initial : function of (x, y, [z]), optional
        Returns the n_c fields. If not given: zero for a linear problem; for a gas the state of a
        far field, or the mean of the states given on the boundary.

    Raises
    ------
    ValueError
        If there is nothing to begin with, or the function gives what is no state.
    """
    if initial is None and d.problem.linear:
        return State(np.zeros((d.n_c, d.mesh.K, d.element.Np)), np.zeros((d.faces.count, d.m)))
    initial = _initial_gas(d) if initial is None else initial
    x, x_trace = d.nodes(), d.trace_nodes()
    trace = d.problem.fields(initial, x_trace).transpose(1, 0, 2).reshape(d.faces.count, -1)
    trace[d.given] = d.given_trace[d.given]
    return State(d.problem.fields(initial, x), trace)


def _initial_gas(d: Discretization) -> Callable:
    for condition in as_boundary(d.mesh, d.problem.boundary).values():
        if isinstance(condition, FarField):
            return condition.state
    if not d.given.any():
        raise ValueError("initial = None; allowed where no boundary gives a state: a function")
    mean = d.given_trace[d.given].reshape(-1, d.n_c, d.element.Nfp).mean(axis=(0, 2))
    return lambda *x: np.multiply.outer(mean, np.ones(x[0].shape))


def to_device(state: State, device: Device) -> State:
    """A state of the host on a device: itself where that is the host."""
    if device.kind != "cuda":
        return state
    return State(device.array(state.u), device.array(state.trace))


def to_host(state: State, device: Device) -> State:
    """A state of a device on the host: itself where that is the host."""
    if device.kind != "cuda":
        return state
    return State(device.to_numpy(state.u), device.to_numpy(state.trace))


def residual(d: Discretization, state: State) -> tuple[np.ndarray, np.ndarray]:
    """R_u, (n_c, K, Np), and R_h, (faces, m), at a state; see `local`.

    On faces where the trace is given, R_h is what the trace differs from it.
    """
    Np = d.element.Np
    R_u, R_h = np.empty_like(state.u), np.zeros_like(state.trace)
    for some in _stacks(d):
        R = local.residual(d, local.local_unknowns(d, state, some), some)
        R_u[:, some] = R[..., :Np]
        _add_to_faces(d, some, R[..., Np:].transpose(1, 0, 2), R_h)
    return R_u, np.where(d.given[:, None], state.trace - d.given_trace, R_h)


def linearize(d: Discretization, state: State, reference: bool = False) -> System:
    """The trace system at a state, where the arrays of both are.

    Parameters
    ----------
    d : Discretization
        `on_device` or the host's.
    state : State
        There as well.
    reference : bool
        Whether NumPy computes it on the host, where kernels for all processor cores do else.

    Raises
    ------
    numpy.linalg.LinAlgError
        If u cannot be eliminated from an element, on the host.
    """
    faces, m = d.faces, d.m
    like = state.trace
    # What a given trace still has to change by goes to the right-hand side, with its column.
    jump = np.where(d.given[:, None], d.given_trace - state.trace, 0.0)
    on_cores = isinstance(d.jacobian, np.ndarray) and not reference
    if on_cores:
        values, rhs, response, offset = Elements(d).linearize(state, jump)
    else:
        values, rhs, response, offset = _linearized(d, state, jump)
    given = np.flatnonzero(d.given)
    values[given] = 0
    diagonal = values[:, 0]
    diagonal[given] = np.asarray(np.eye(m), like=like)
    rhs = np.where(d.given[:, None], jump, rhs)
    return System(d, state, BlockMatrix(values, faces.columns), rhs, response, offset, on_cores)


def _linearized(d: Discretization, state: State, jump: Any) -> tuple[Any, Any, Any, Any]:
    """``values``, ``rhs``, ``response`` and ``offset``, with the given faces' rows of all faces."""
    faces, m, like = d.faces, d.m, state.trace
    outside = d.n_c * (d.mesh.dim + 1) * d.element.Nfp
    values = np.zeros((*faces.columns.shape, m, m), like=like)
    rhs = np.zeros_like(like)
    response = np.empty((d.mesh.K, d.n_c * d.element.Np, outside), like=like)
    offset = np.empty(response.shape[:2], like=like)
    for some in _stacks(d):
        z = local.local_unknowns(d, state, some)
        condensed = local.condense(d, local.tangent(d, z, some), local.residual(d, z, some))
        response[some], offset[some] = condensed.response, condensed.offset
        k = len(condensed.rhs)
        known = local.local_traces(d, jump, some).transpose(1, 0, 2).reshape(k, -1, 1)
        moved = condensed.matrix.reshape(k, outside, outside) @ known
        _add_to_faces(d, some, condensed.rhs - moved.reshape(condensed.rhs.shape), rhs)
        _add_blocks(d, some, condensed.matrix, values)
    return values, rhs, response, offset


def _stacks(d: Discretization) -> Iterator[slice]:
    """The elements in stacks that `local` takes at once."""
    for first in range(0, d.mesh.K, stack_size(d)):
        yield slice(first, min(first + stack_size(d), d.mesh.K))


def stack_size(d: Discretization) -> int:
    """Elements of a stack, so that its largest array has no more numbers than it may have."""
    on_gpu = hasattr(d.jacobian, "__cuda_array_interface__")
    largest = d.n_c**2 * d.Nz * max(d.Nz, len(d.tables.volume.weights))
    return min(TOGETHER, max(1, (NUMBERS_ON_A_GPU if on_gpu else NUMBERS_AT_A_TIME) // largest))


def _add_to_faces(d: Discretization, some: slice, shares: np.ndarray, total: np.ndarray) -> None:
    """Add what some elements have for their faces, (k, n_c, nf Nfp), to a vector (faces, m).

    The two sides of a face one after the other: among the elements of one side a face is met once,
    so that nothing is added to twice at a time, and sums have the same order everywhere.
    """
    k, faces = len(shares), d.faces
    shares = shares.reshape(k, d.n_c, d.mesh.dim + 1, -1).transpose(0, 2, 3, 1)  # (k, f, j, c)
    order = faces.to_element[some, :, :, None]
    shares = np.take_along_axis(shares, order, axis=2).transpose(0, 1, 3, 2).reshape(k, -1, d.m)
    for mine in (~faces.second[some], faces.second[some]):
        total[faces.numbers[some][mine]] += shares[mine]


def _add_blocks(d: Discretization, some: slice, shares: np.ndarray, values: np.ndarray) -> None:
    """Add the condensed matrices of some elements to the blocks, without the given faces' columns.

    A row of blocks and a place in it get at most one block of each side of a face, but for block 0:
    no two elements of the same side are added to the same block.
    """
    faces, m, nf = d.faces, d.m, d.mesh.dim + 1
    k = len(shares)
    shares = shares.reshape(k, d.n_c, nf, -1, d.n_c, nf, shares.shape[2] // nf)
    shares = shares.transpose(0, 2, 5, 3, 6, 1, 4)  # (k, f, g, j, j', c, c')
    numbers, order, second = faces.numbers[some], faces.to_element[some], faces.second[some]
    k_index = np.arange(k, like=numbers)[:, None, None]
    for f in range(nf):
        for g in range(nf):
            block = shares[:, f, g][k_index, order[:, f, :, None], order[:, g, None, :]]
            block = block.transpose(0, 3, 1, 4, 2).reshape(k, m, m)
            row, slot, known = numbers[:, f], faces.slots[some, f, g], d.given[numbers[:, g]]
            for side in (~second[:, f], second[:, f]):
                mine = np.flatnonzero(~known & side)
                values[row[mine], slot[mine]] += block[mine]
