"""Approximate inverses of a trace matrix: face by face, element by element, and a coarse level."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from dgbook.element import barycentric, face_vertices
from dgbook.gpu import Device
from dgbook.gpu.libraries import TOGETHER, batched_solve, sparse_arrays
from dgbook.hdg.blocks import BlockMatrix
from dgbook.hdg.cores import schwarz_inverses
from dgbook.hdg.discretization import Discretization, faces_of
from dgbook.hdg.kernels import cores
from dgbook.hdg.kernels.csr import make_csr
from dgbook.parallel.rows import RowsInParts

STACK = 2**27
"""Bytes of the small matrices that are inverted at once."""

SMALL = 1000
"""Unknowns of a coarse system that a dense inverse solves as fast as anything else."""
DENSE = 2**14
"""Unknowns of which a dense inverse, 2 GiB, may be on a GPU."""
SYMMETRIC = 1e-10
"""Of the largest number of a matrix: by how much one that counts as symmetric may not be."""
THREADS = 128
"""Of a sparse product."""
INSTALL = "pip install pyamg brings it"

# Values may be NumPy's or a device's: methods of arrays, and functions of NumPy that hand their
# work to the array's own library. Columns, and what follows from them, are NumPy's.


def jacobi(matrix: BlockMatrix) -> BlockMatrix:
    """Block-Jacobi: each face by itself, with the inverse of its own block.

    Returns
    -------
    BlockMatrix
        With one block a row.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a face's own block is singular.
    """
    inverses = np.zeros_like(matrix.values, shape=(matrix.faces, 1, matrix.m, matrix.m))
    size = _together(matrix.m**2 * matrix.dtype.itemsize)
    for first in range(0, matrix.faces, size):
        some = slice(first, first + size)
        inverses[some, 0] = _inverses(matrix.values[some, 0])
    return BlockMatrix(inverses, matrix.columns[:, :1].copy())


def schwarz(matrix: BlockMatrix) -> BlockMatrix:
    """Additive Schwarz by elements: all faces of an element together, and the mean of two elements.

    With R_K the rows of an identity that belong to the faces of element K,

        M = diag(1 / elements at a face) sum_K R_K^T (R_K A R_K^T)^-1 R_K.

    Each term couples faces of one element only. So M has the blocks of A, takes the memory of A
    and not that of all small inverses, and a product with it costs what one with A does.

    Returns
    -------
    BlockMatrix
        With the columns of A.

    Raises
    ------
    ValueError
        If the columns are none of `blocks.face_columns`, or two elements share two faces.
    numpy.linalg.LinAlgError
        If an element's matrix is singular.

    References
    ----------
    Smith, Bjorstad, Gropp, "Domain Decomposition", Cambridge University Press, 1996.
    """
    values, columns = matrix.values, matrix.columns
    faces, second = elements_of(columns)
    share = 1 / np.bincount(faces.ravel(), minlength=matrix.faces)
    if isinstance(values, np.ndarray):
        slots = _slots(columns, faces)
        own, result = schwarz_inverses(values, faces, slots, share)
        for side in (False, True):  # of one side of a face no two elements are
            mine = second == side
            result[faces[mine], 0] += own[mine]
        return BlockMatrix(result, columns)
    return BlockMatrix(_schwarz_on_device(matrix, faces, second, share), columns)


def _schwarz_on_device(matrix: BlockMatrix, faces: Any, second: Any, share: Any) -> Any:
    """The blocks of `schwarz`, by a device's library."""
    m, values, columns = matrix.m, matrix.values, matrix.columns
    like_values, n = partial(np.asarray, like=values), faces.shape[1]
    result = np.zeros_like(values)
    size = _together((n * m) ** 2 * matrix.dtype.itemsize)
    for first in range(0, len(faces), size):
        members, side = faces[first : first + size], second[first : first + size]
        slots = _slots(columns, members)
        small = values[like_values(members[:, :, None]), like_values(slots)]
        small = small.transpose(0, 1, 3, 2, 4).reshape(-1, n * m, n * m)
        inverses = _inverses(small).reshape(-1, n, m, n, m)
        factors = like_values(share[members].astype(matrix.dtype))[:, :, None, None, None]
        inverses *= factors
        for i in range(n):
            for j in range(n):
                # of one side of a face no two elements are, so that no block is added to twice
                for mine in (side[:, i], ~side[:, i]):
                    at = like_values(members[mine, i]), like_values(slots[mine, i, j])
                    result[at] += inverses[:, i, :, j][like_values(np.flatnonzero(mine))]
    return result


def _slots(columns: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Which blocks in the rows of an element's faces belong to its faces, (K, n, n)."""
    return (columns[members][:, :, None] == members[:, None, :, None]).argmax(axis=3)


PRECONDITIONERS = {"schwarz": schwarz, "jacobi": jacobi}


def _together(one: int) -> int:
    """How many matrices of so many bytes are inverted at once."""
    return min(TOGETHER, max(1, STACK // one))


def elements_of(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The faces of each element, ascending, and whether it is the second one there, (K, dim+1).

    Found from the columns of a trace matrix alone: beside a face's own, they are the other faces of
    its first element, then those of its second.

    Raises
    ------
    ValueError
        If they cannot be columns of `blocks.face_columns`, or two elements share two faces, as in a
        periodic mesh of one cell.
    """
    count, blocks = columns.shape
    if blocks not in (5, 7):
        raise ValueError(f"columns have shape {columns.shape}; allowed: (faces, 5) or (faces, 7)")
    n, others = (blocks + 1) // 2, columns[:, 1:].reshape(count, 2, -1)
    f, side = np.nonzero((others != columns[:, :1, None]).all(axis=2))
    members = np.sort(np.column_stack([f, others[f, side]]), axis=1)
    # An element is known by two of its faces.
    keys = members[:, 0].astype(np.int64) * count + members[:, 1]
    _, representative, which, times = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    faces = members[representative]
    met = (times == n).all() and (faces[which] == members).all() and (side == 0).sum() == count
    if not met:
        raise ValueError(
            "columns are not those of face_columns, or two elements share more than one face"
        )
    second = np.zeros(faces.shape, bool)
    second[which, (faces[which] == f[:, None]).argmax(axis=1)] = side == 1
    return faces, second


def _inverses(matrices: Any) -> Any:
    """Inverses of small matrices, (count, n, n).

    Raises
    ------
    numpy.linalg.LinAlgError
        If one is singular. A GPU's libraries do not say so: where they invert they may leave what
        was in memory before, where they solve they divide by zero, which shows.
    """
    identity = np.asarray(np.eye(matrices.shape[1], dtype=matrices.dtype), like=matrices)
    inverses = batched_solve(matrices, np.broadcast_to(identity, matrices.shape))
    if not bool(np.isfinite(inverses).all()):
        raise np.linalg.LinAlgError("Singular matrix")
    return inverses


# ---------------------------------------------------------------------------------- a coarse level

# Both preconditioners above correct an error face by face or element by element: what is smooth
# over many elements is left, and iterations grow as 1 / h. A coarse level takes that part off:
# continuous piecewise polynomials of degree 1 or 2 on the mesh, of which a trace system sees the
# values on the faces, P c. With A_c = P^T A P (Galerkin) and the smoother S, one application is
#
#     c = A_c^-1 P^T r,    z = P c + S (r - A P c).
#
# A P has few numbers in a row, those of the functions on two elements, so that the coarse level
# costs a small part of a product with A. A_c is again large. PyAMG makes a hierarchy for it on the
# host, whose V-cycle is two products with sparse matrices per level.


@dataclass(frozen=True, eq=False)
class CoarseSpace:
    """Continuous functions on a mesh that vanish where the trace is given, as the faces see them.

    Attributes
    ----------
    values : (Nfp, nl) array
        The functions that do not vanish on a face, at its nodes: first those of its vertices,
        then, for degree 2, those of its edges. The same on every face.
    numbers : (faces, nl) array
        Which of all functions they are; -1 for those that the boundary takes away.
    linear, count : int
        Functions of the vertices, and all; of one component.
    """

    values: np.ndarray
    numbers: np.ndarray
    linear: int
    count: int


def coarse_space(d: Discretization, degree: int | None = None) -> CoarseSpace:
    """The coarse space of a discretization of the host.

    Parameters
    ----------
    d : Discretization
    degree : {1, 2}, optional
        If not given, 2 on tetrahedra, where quadratic functions save a third of the iterations
        and are few beside the unknowns of the faces, and 1 on triangles, where they save next to
        nothing. At most the order.
    """
    dim = d.mesh.dim
    degree = min(degree or dim - 1, max(d.element.order, 1))
    corners = _corners(d)
    bary = barycentric(d.element.face_points)
    vertices, linear = _numbered(corners, d.given)
    if degree == 1:
        return CoarseSpace(bary, vertices, linear, linear)
    ends = list(combinations(range(dim), 2))
    pairs = np.sort(corners[:, ends], axis=2).astype(np.int64)
    edges, count = _numbered(pairs[..., 0] * (corners.max() + 1) + pairs[..., 1], d.given)
    bubbles = np.stack([4 * bary[:, a] * bary[:, b] for a, b in ends], axis=1)
    numbers = np.hstack([vertices, np.where(edges < 0, -1, linear + edges)])
    return CoarseSpace(np.hstack([bary, bubbles]), numbers, linear, linear + count)


def _corners(d: Discretization) -> np.ndarray:
    """The vertices of each face, (faces, dim), those that a periodic mesh joins as one."""
    dim, faces = d.mesh.dim, faces_of(d.mesh, 1)  # of order 1, whose nodes are the vertices
    ends = d.mesh.elements[:, np.array(face_vertices(dim))]
    first = ~faces.second
    corners = np.empty((faces.count, dim), ends.dtype)
    corners[faces.numbers[first]] = ends[first]
    seen = np.take_along_axis(corners[faces.numbers], faces.to_face, axis=2)
    if np.array_equal(seen, ends):
        return corners
    size = len(d.mesh.vertices)
    joined = sparse.coo_array((np.ones(ends.size), (ends.ravel(), seen.ravel())), (size, size))
    return connected_components(joined, directed=False)[1][corners]


def _numbered(things: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, int]:
    """Vertices or edges of the faces, numbered from 0, -1 for those at a given face; how many."""
    known, which = np.unique(things, return_inverse=True)
    which = which.reshape(things.shape)
    free = np.ones(len(known), bool)
    free[which[given]] = False
    return np.where(free, np.cumsum(free) - 1, -1)[which], int(free.sum())


def restricted(matrix: BlockMatrix, space: CoarseSpace) -> tuple[Any, Any, Any]:
    """P, A P and P^T A P, in compressed rows and where the matrix's values are.

    Parameters
    ----------
    matrix : BlockMatrix
        Its values may be a device's.
    space : CoarseSpace
        Unknown c of all components of function i is i n_c + c.

    Returns
    -------
    tuple of three csr_matrix
        SciPy's, or CuPy's: (faces m, n), (faces m, n) and (n, n).
    """
    values, columns = matrix.values, matrix.columns
    like_values, arrays = partial(np.asarray, like=values), sparse_arrays(values)
    Nfp, nl = space.values.shape
    faces, m, n_c = matrix.faces, matrix.m, matrix.m // Nfp
    B, numbers = like_values(space.values.astype(matrix.dtype)), like_values(space.numbers)
    patch, slots = _patches(numbers[like_values(columns)].reshape(faces, -1))
    width, n = patch.shape[1], space.count * n_c
    restrict = _restricted_on_cores if isinstance(values, np.ndarray) else _restricted_on_device
    product, shares = restrict(matrix, B, numbers, slots, width)
    components = like_values(np.arange(n_c))
    # A function that the boundary takes away has zeros here, in the column of another one.
    of_patch, of_face = (np.maximum(k, 0)[..., None] * n_c + components for k in (patch, numbers))

    def csr(data: Any, indices: Any) -> Any:
        """A matrix with as many numbers in every row: data (faces, m, k), indices of its shape."""
        each = data.shape[2]
        pointers = like_values(np.arange(0, faces * m * each + 1, each, dtype=np.int32))
        indices = np.broadcast_to(indices, data.shape).reshape(-1).astype(np.int32)
        return arrays.csr_matrix((data.reshape(-1), indices, pointers), shape=(faces * m, n))

    AP = csr(product, of_patch.reshape(faces, 1, width * n_c))
    # P has the same component in row and column.
    seen = np.zeros_like(values, shape=(faces, n_c, Nfp, nl))
    seen += B * (numbers >= 0)[:, None, None]
    mine = np.broadcast_to(of_face.transpose(0, 2, 1)[:, :, None], seen.shape)
    P = csr(seen.reshape(faces, m, nl), mine.reshape(faces, m, nl))
    P.eliminate_zeros()
    i = np.broadcast_to(of_face[..., None, None], shares.shape).reshape(-1)
    j = np.broadcast_to(of_patch[:, None, None], shares.shape).reshape(-1)
    return P, AP, arrays.coo_matrix((shares.reshape(-1), (i, j)), shape=(n, n)).tocsr()


def _restricted_on_cores(
    matrix: BlockMatrix, B: np.ndarray, numbers: np.ndarray, slots: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of A P, (faces, m, width n_c), and of P^T A P, each face's share.

    The latter are (faces, nl, n_c; width, n_c).
    """
    faces, m, (Nfp, nl) = matrix.faces, matrix.m, B.shape
    n_c = m // Nfp
    product = np.empty((faces, m, width, n_c), matrix.dtype)
    shares = np.empty((faces, nl, n_c, width, n_c), matrix.dtype)
    known = matrix.columns, slots, product, shares
    cores.restrict_blocks(cores.SOURCES, matrix.values, B, numbers, *known)
    return product.reshape(faces, m, width * n_c), shares


def _restricted_on_device(
    matrix: BlockMatrix, B: Any, numbers: Any, slots: Any, width: int
) -> tuple[Any, Any]:
    """The same by a device's library."""
    values, columns, (Nfp, nl) = matrix.values, matrix.columns, B.shape
    like_values = partial(np.asarray, like=values)
    faces, nb, m, n_c = matrix.faces, matrix.blocks, matrix.m, matrix.m // Nfp
    known = (numbers >= 0)[like_values(columns)].reshape(faces, nb, nl)
    product = np.zeros_like(values, shape=(faces, width, m, n_c))
    size = max(1, STACK // (nb * m * m * matrix.dtype.itemsize))
    for first in range(0, faces, size):
        some = slice(first, first + size)
        blocks = (values[some].reshape(-1, Nfp) @ B).reshape(-1, nb, m, n_c, nl)
        blocks *= known[some][:, :, None, None]
        f = like_values(np.arange(first, first + len(blocks)))
        for b in range(nb):
            for i in range(nl):
                # no two at a time are the same face, so that nothing is added to twice
                product[f, slots[some, b * nl + i]] += blocks[:, b, :, :, i]
    shares = np.einsum("fwcjd,jl->flcwd", product.reshape(faces, width, n_c, Nfp, n_c), B)
    shares *= (numbers >= 0)[:, :, None, None, None]
    return product.transpose(0, 2, 1, 3).reshape(faces, m, width * n_c), shares


def _patches(seen: Any) -> tuple[Any, Any]:
    """The different numbers of each row, ascending, and the place of each number among them.

    Parameters
    ----------
    seen : (rows, k) integer array
        NumPy's, or a device's.

    Returns
    -------
    patch : (rows, width) array
        Filled up with -1.
    slots : (rows, k) array
    """
    count, k = seen.shape
    row = np.arange(count, like=seen)[:, None]
    keys = np.sort(seen.astype(np.int64) * k + np.arange(k, like=seen), axis=1)
    which, at = keys // k, keys % k
    rank = np.cumsum(np.diff(which, axis=1, prepend=which[:, :1]) != 0, axis=1)
    slots = np.empty_like(rank)
    slots[row, at] = rank
    patch = np.full_like(which, -1, shape=(count, int(rank.max()) + 1))
    patch[row, rank] = which
    return patch, slots


class Sparse:
    """A sparse matrix on a device: ``A(x, y)`` is y = A x, and ``A.rest(b, x, y)`` y = b - A x.

    Parameters
    ----------
    matrix : csr_matrix
        SciPy's, or CuPy's.
    device : Device
        On the CPU all cores multiply, in the matrix's precision.
    """

    def __init__(self, matrix: Any, device: Device) -> None:
        self.matrix, self.kernels = matrix, None
        if device.kind == "cpu":
            indices = (a.astype(np.int32) for a in (matrix.indices, matrix.indptr))
            self.matrix = sparse.csr_array((matrix.data, *indices), shape=matrix.shape)
            return
        here = [matrix.indptr, matrix.indices, matrix.data]
        if isinstance(matrix.data, np.ndarray):
            here = [device.array(array) for array in here]
        self.arrays = here[0].astype(np.int32), here[1].astype(np.int32), here[2]
        rows = matrix.shape[0]
        # Half as many threads for a row as it has numbers, or more.
        self.lanes = 2 ** min(5, int(matrix.nnz / max(rows, 1) / 2).bit_length())
        self.grid = -(-rows * self.lanes // THREADS)
        dtype = matrix.data.dtype.name
        self.kernels = [csr_kernel(dtype, self.lanes, rest) for rest in (False, True)]

    def __call__(self, x: Any, y: Any) -> None:
        """y = A x."""
        if self.kernels is None:
            cores.multiply_sparse(cores.SOURCES, *self._rows(), x, y)
        else:
            self.kernels[0][self.grid, THREADS](*self.arrays, x, y, y)

    def _rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.matrix.indptr, self.matrix.indices, self.matrix.data

    def rest(self, b: Any, x: Any, y: Any) -> None:
        """y = b - A x; b may be y."""
        if self.kernels is None:
            cores.subtract_sparse(cores.SOURCES, *self._rows(), b, x, y)
        else:
            self.kernels[1][self.grid, THREADS](*self.arrays, x, b, y)


@lru_cache(maxsize=64)
def csr_kernel(dtype: str, lanes: int, rest: bool) -> Any:
    """The kernel of a product, compiled once for equal arguments."""
    return make_csr(dtype, lanes, rest)


class TwoLevel:
    """z = M r: a coarse level, and then a smoother for what it leaves; launches only.

    Parameters
    ----------
    matrix : BlockMatrix
    space : CoarseSpace
    smoother : function
        ``smoother(r, z)``: a product with one of `PRECONDITIONERS`.
    device : Device
    cut : RowsInParts, optional
        Where r and z are cut among processes, how; all have the coarse system.

    Raises
    ------
    RuntimeError
        If the coarse system is too large to be solved without PyAMG.
    """

    def __init__(
        self,
        matrix: BlockMatrix,
        space: CoarseSpace,
        smoother: Callable,
        device: Device,
        cut: RowsInParts | None = None,
    ) -> None:
        P, AP, A = restricted(matrix, space)
        if cut is not None:
            mine = (cut.mine[:, None] * matrix.m + np.arange(matrix.m)).ravel()
            mine = np.asarray(mine, like=P.data)
            P, AP = P[mine], AP[mine]
        self.smoother, self.cut, self.device = smoother, cut, device
        self.restrict, self.prolong = Sparse(P.T.tocsr(), device), Sparse(-P, device)
        self.product = Sparse(AP, device)
        self.left_over = device.zeros(P.shape[0], matrix.dtype)
        linear = space.linear * (A.shape[0] // space.count)
        self.coarse = coarse_solver(A, linear, A.shape[0] // space.count, device)

    def __call__(self, r: Any, z: Any) -> None:
        coarse = self.coarse
        self.restrict(r, coarse.right)
        if self.cut is not None:
            self.cut.transport.add_up(coarse.right, self.device)
        coarse.solve()
        self.product.rest(r, coarse.x, self.left_over)
        self.smoother(self.left_over, z)
        self.prolong.rest(z, coarse.x, z)


@dataclass(frozen=True, eq=False)
class CoarseSolver:
    """``solve()`` reads the vector `right` and writes the vector `x`, on a device."""

    right: Any
    x: Any
    solve: Callable[[], None]


def coarse_solver(A: Any, linear: int, n_c: int, device: Device) -> CoarseSolver:
    """What solves coarse systems, nearly or exactly.

    A small system is solved, by SciPy's LU on the CPU and by a dense inverse on a GPU. A larger one
    gets a V-cycle if it has one component, or components that do not see one another. The coupled
    equations of a gas no pointwise sweep damps: they are solved as small ones are, and where what a
    GPU has is too large for a dense inverse, on fewer functions.

    Parameters
    ----------
    A : (n, n) csr_matrix
        SciPy's, or CuPy's.
    linear : int
        Its first unknowns, those of the linear functions.
    n_c : int
        Components.
    device : Device

    Raises
    ------
    RuntimeError
        If a GPU would need a dense inverse of more than `DENSE` unknowns, for want of PyAMG.
    """
    n, dtype = A.shape[0], A.data.dtype
    on_host = device.kind == "cpu"
    coupled = n_c > 1 and _coupled(A, n_c)
    if n > SMALL if not coupled else n > DENSE and not on_host:
        host = sparse.csr_array(A.get() if device.kind == "cuda" else A, dtype=float, copy=True)
        # On a regular mesh half of the numbers are zeros but for rounding.
        host.data[abs(host.data) < 10 * np.finfo(dtype).eps * abs(host.data).max()] = 0
        host.eliminate_zeros()
        if levels := fewer_functions(host, n_c) if coupled else hierarchy(host, linear):
            return _v_cycle(*levels, device, dtype)
    right, x = device.zeros(n, dtype), device.zeros(n, dtype)
    if on_host:
        return CoarseSolver(right, x, _by_factors(A, right, x))
    if n > DENSE:
        raise RuntimeError(
            f"the coarse level has {n} unknowns; allowed on a GPU without PyAMG: up to {DENSE}. "
            f"{INSTALL}"
        )
    product = _inverse(np.linalg.inv(A.toarray()), device)
    return CoarseSolver(right, x, lambda: product(right, x))


def _by_factors(A: Any, b: np.ndarray, x: np.ndarray) -> Callable[[], None]:
    """A function that solves A x = b on the host, by SciPy's LU in double precision."""
    factors = splu(sparse.csc_array(A, dtype=float))

    def solve() -> None:
        x[:] = factors.solve(b.astype(float))

    return solve


def _inverse(matrix: Any, device: Device) -> Sparse:
    """A dense inverse, applied by a kernel: CuPy lets no graph record a product by cuBLAS."""
    n = len(matrix)
    pointers = np.arange(0, n * n + 1, n, dtype=np.int32, like=matrix)
    columns = np.arange(n * n, dtype=np.int32, like=matrix) % n
    full = matrix.reshape(-1), columns, pointers
    return Sparse(sparse_arrays(matrix).csr_matrix(full, shape=(n, n)), device)


def _coupled(A: Any, n_c: int) -> bool:
    """Whether a component sees another one."""
    entries = A.tocoo()
    return bool((entries.data[entries.row % n_c != entries.col % n_c] != 0).any())


@dataclass(frozen=True, eq=False)
class Level:
    """A level of a hierarchy but the last: its matrix and what it does to it.

    Attributes
    ----------
    A, P, R : csr_array
        The matrix, the interpolation from the next level, and the restriction to it.
    before, after : list of (n,) arrays
        Sweeps before and after the next level: diagonals W of x + W (b - A x).
    """

    A: Any
    P: Any
    R: Any
    before: list[np.ndarray]
    after: list[np.ndarray]


def hierarchy(A: Any, linear: int) -> tuple[list[Level], Any] | None:
    """A hierarchy for a coarse system, on the host: linear functions, and then PyAMG's levels.

    A symmetric matrix gets Ruge and Stueben's, with a sweep before and after of one over the sums
    of |a_ij| of the rows, which amplifies nothing, whatever the mesh (Baker, Falgout, Kolev, Yang,
    SIAM J. Sci. Comput. 33, 2011). One that is not, by convection, gets approximate ideal
    restriction, which follows it downstream, and sweeps over what the next level does not have
    (Manteuffel, Ruge, Southworth, SIAM J. Sci. Comput. 40, 2018).

    Returns
    -------
    levels : list of Level
    last : csr_matrix
        The last level's matrix.

    None where PyAMG is not installed; a warning says so.
    """
    if (pyamg := _pyamg()) is None:
        return None
    levels = []
    symmetric = abs(A - A.T).max() <= SYMMETRIC * abs(A).max()
    if linear < A.shape[0]:
        # The linear functions are the first of the quadratic ones.
        P = sparse.eye_array(A.shape[0], linear, format="csr")
        sweep = [1 / abs(A).sum(axis=1)]
        levels.append(Level(A, P, P.T.tocsr(), sweep, sweep))
        A = A[:linear, :linear]
    make = pyamg.ruge_stuben_solver if symmetric else pyamg.air_solver
    made = make(for_pyamg(A), max_coarse=SMALL).levels
    for level in made[:-1]:
        matrices = [sparse.csr_array(matrix) for matrix in (level.A, level.P, level.R)]
        if symmetric:
            before = after = [1 / abs(matrices[0]).sum(axis=1)]
        else:
            inverse, kept = 1 / matrices[0].diagonal(), level.splitting.astype(bool)
            before, after = [], [np.where(kept, 0, inverse)] * 2 + [np.where(kept, inverse, 0)]
        levels.append(Level(*matrices, before, after))
    return levels, made[-1].A


def fewer_functions(A: Any, n_c: int) -> tuple[list[Level], Any] | None:
    """The same for coupled components: levels without sweeps, down to what has a dense inverse.

    The interpolation is that of Ruge and Stueben for the matrix of the blocks' norms, the same for
    all components.
    """
    if (pyamg := _pyamg()) is None:
        return None
    entries = A.tocoo()
    at = entries.row // n_c, entries.col // n_c
    norms = sparse.coo_array((entries.data**2, at)).tocsr()
    norms.data = -np.sqrt(norms.data)
    norms.setdiag(0)
    norms = norms + norms.T
    norms.setdiag(-norms.sum(axis=1))
    levels: list[Level] = []
    for level in pyamg.ruge_stuben_solver(for_pyamg(norms), max_coarse=DENSE // n_c).levels[:-1]:
        P = sparse.kron(sparse.csr_array(level.P), sparse.eye_array(n_c), format="csr")
        levels.append(Level(A, P, P.T.tocsr(), [], []))
        A = P.T @ A @ P
    return levels, A


def _pyamg() -> Any:
    """PyAMG, or None and a warning where it is not installed."""
    try:
        import pyamg
    except ImportError:
        warnings.warn(
            f"PyAMG is not installed: the coarse level is solved by LU. {INSTALL}", stacklevel=2
        )
        return None
    return pyamg


def for_pyamg(A: Any) -> sparse.csr_matrix:
    """A matrix with indices of 32 bits."""
    A = sparse.csr_matrix(A)
    A.sort_indices()
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    return A


def _v_cycle(levels: list[Level], last: Any, device: Device, dtype: Any) -> CoarseSolver:
    """A V-cycle as products with sparse matrices, two per level.

    All that a level does is linear: b of the next level is R (1 - A G) b with G b what the sweeps
    before it find, and x after it is G b + H x', changed by each further sweep.
    """
    sizes = [level.A.shape[0] for level in levels] + [last.shape[0]]
    # In each, b of a level and behind it x' of the next one, which one product reads together.
    vectors = [device.zeros(n + m, dtype) for n, m in zip(sizes, [*sizes[1:], 0], strict=True)]
    result = device.zeros(sizes[0], dtype)
    down, up = [], []
    for k, level in enumerate(levels):
        A, H, n = level.A, level.P, sizes[k]
        G, identity = sparse.csr_array((n, n)), sparse.eye_array(n, format="csr")
        for W in map(sparse.diags_array, level.before):
            G = G + W @ (identity - A @ G)
        right = _sparse(level.R @ (identity - A @ G), dtype, device)
        for W in map(sparse.diags_array, level.after):
            G, H = G + W @ (identity - A @ G), H - W @ (A @ H)
        both = _sparse(sparse.hstack([G, H]), dtype, device)
        x = result if k == 0 else vectors[k - 1][sizes[k - 1] :]
        down.append(partial(right, vectors[k][:n], vectors[k + 1][: sizes[k + 1]]))
        up.append(partial(both, vectors[k], x))
    solved = vectors[-1], vectors[-2][sizes[-2] :]
    if device.kind == "cpu":
        middle = _by_factors(last, *solved)
    else:
        middle = partial(_inverse(np.linalg.inv(last.toarray()).astype(dtype), device), *solved)
    steps = [*down, middle, *reversed(up)]

    def solve() -> None:
        for step in steps:
            step()

    return CoarseSolver(vectors[0][: sizes[0]], result, solve)


def _sparse(matrix: Any, dtype: Any, device: Device) -> Sparse:
    """A matrix of the host as a product on a device, without what is zero."""
    matrix = sparse.csr_array(matrix, dtype=dtype)
    matrix.eliminate_zeros()
    return Sparse(matrix, device)
