"""The matrix of a trace system: dense blocks of equal size, where two faces share an element."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from scipy import sparse

from dgbook.gpu.limits import WARP
from dgbook.mesh import Mesh

DTYPES = ("float32", "float64")


@dataclass(frozen=True, eq=False)
class BlockMatrix:
    """A square matrix of dense m x m blocks, as many in each row of blocks (roca2011, section III).

    A vector that it multiplies, and the product, have shape (faces, m).

    Parameters
    ----------
    values : (faces, nb, m, m) array
        ``values[f, b, i, j]`` multiplies unknown j of face ``columns[f, b]`` for row i of face f.
        Block 0 is the face itself. A face of the boundary has fewer neighbors than nb - 1: its
        row is padded with blocks of zeros.
    columns : (faces, nb) int32 array
        The face of each block's columns; a padded block points at the row's own face.

    Raises
    ------
    TypeError, ValueError
        If shapes or types do not fit, or a column is no face.
    """

    values: np.ndarray
    columns: np.ndarray

    def __post_init__(self) -> None:
        shape = self.values.shape
        if len(shape) != 4 or shape[2] != shape[3] or 0 in shape:
            raise ValueError(f"values have shape {shape}; allowed: (faces, blocks, m, m)")
        if self.values.dtype.name not in DTYPES:
            raise TypeError(f"values have dtype {self.values.dtype}; allowed are {DTYPES}")
        if self.columns.shape != shape[:2] or self.columns.dtype != np.int32:
            raise ValueError(
                f"columns have shape {self.columns.shape} and dtype {self.columns.dtype}; "
                f"allowed: {shape[:2]} and int32"
            )
        if self.columns.min() < 0 or self.columns.max() >= shape[0]:
            raise ValueError(
                f"columns hold {self.columns.min()} to {self.columns.max()}; "
                f"allowed: faces from 0 to {shape[0] - 1}"
            )
        if not np.array_equal(self.columns[:, 0], np.arange(shape[0])):
            raise ValueError("columns[:, 0] must be the faces themselves, 0, 1, 2, ...")

    @property
    def faces(self) -> int:
        """Rows of blocks."""
        return self.values.shape[0]

    @property
    def blocks(self) -> int:
        """Blocks of a row, padded ones included: 5 for triangles, 7 for tetrahedra."""
        return self.values.shape[1]

    @property
    def m(self) -> int:
        """Unknowns of a face: components times nodes."""
        return self.values.shape[2]

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the whole matrix."""
        return self.faces * self.m, self.faces * self.m

    @property
    def nbytes(self) -> int:
        """Bytes of the blocks."""
        return self.values.nbytes

    @property
    def padded(self) -> np.ndarray:
        """Which blocks only fill a row up, (faces, nb) bool: zeros that point at their own face."""
        diagonal = self.columns == self.columns[:, :1]
        diagonal[:, 0] = False
        diagonal[diagonal] = ~self.values[diagonal].any(axis=(1, 2))
        return diagonal

    def astype(self, dtype: Any) -> BlockMatrix:
        """The same matrix in another precision; itself where it has that already."""
        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return self
        return BlockMatrix(self.values.astype(dtype), self.columns)

    def to_csr(self, drop_zeros: bool = True) -> sparse.csr_array:
        """The matrix in compressed rows, without the padded blocks.

        Parameters
        ----------
        drop_zeros : bool
            Leave out zeros inside blocks too, as the paper's "true nonzeros" do.
        """
        kept = ~self.padded
        pointers = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int32)
        blocks = (self.values[kept], self.columns[kept], pointers)
        matrix = sparse.bsr_array(blocks, shape=self.shape).tocsr()
        matrix.sum_duplicates()
        if drop_zeros:
            matrix.eliminate_zeros()
        return matrix


# ---------------------------------------------------------------------------------- connectivity


def number_faces(mesh: Mesh) -> np.ndarray:
    """The face of the mesh that each element's face is, (K, dim+1) int32.

    Faces are numbered as they are met, elements ascending and the faces of each ascending.
    """
    half_face = np.arange(mesh.K * (mesh.dim + 1)).reshape(mesh.K, mesh.dim + 1)
    other = (mesh.dim + 1) * mesh.neighbors + mesh.neighbor_faces
    first = np.where(mesh.neighbors < 0, half_face, np.minimum(half_face, other))
    return np.unique(first, return_inverse=True)[1].reshape(half_face.shape).astype(np.int32)


def face_columns(mesh: Mesh) -> np.ndarray:
    """The faces of each row's blocks, (faces, 2 dim + 1) int32, numbered as by `number_faces`.

    The face itself, then the other faces of its elements, the element with the lower number first
    and the faces of each ascending. Where there is no second element, the face itself again.
    """
    numbers = number_faces(mesh)
    count = numbers.max() + 1
    columns = np.repeat(np.arange(count, dtype=np.int32)[:, None], 2 * mesh.dim + 1, axis=1)
    k, f = np.divmod(np.arange(numbers.size), mesh.dim + 1)
    second = np.ones(numbers.size, bool)
    second[np.unique(numbers, return_index=True)[1]] = False
    others = np.array([[g for g in range(mesh.dim + 1) if g != f] for f in range(mesh.dim + 1)])
    places = 1 + mesh.dim * second[:, None] + np.arange(mesh.dim)
    columns[numbers.reshape(-1, 1), places] = numbers[k[:, None], others[f]]
    return columns


def face_nodes(dim: int, order: int) -> int:
    """Nodes of a face of a simplex in so many dimensions: p + 1, or (p + 1)(p + 2) / 2."""
    return comb(order + dim - 1, dim - 1)


def random_matrix(
    mesh: Mesh, n_c: int, order: int, dtype: Any, rng: np.random.Generator
) -> BlockMatrix:
    """A matrix with the blocks of a trace system on a mesh, filled at random, for measurements.

    Parameters
    ----------
    mesh : Mesh
        Its faces give the rows of blocks.
    n_c : int
        Components at a node.
    order : int
        Polynomial order: a face has n_c times `face_nodes` unknowns.
    dtype : float32 or float64
    rng : numpy.random.Generator
        Entries are uniform in [-1, 1).
    """
    columns = face_columns(mesh)
    m = n_c * face_nodes(mesh.dim, order)
    values = rng.random((*columns.shape, m, m), np.dtype(dtype))
    values *= 2
    values -= 1
    values[:, 1:][columns[:, 1:] == columns[:, :1]] = 0
    return BlockMatrix(values, columns)


# ---------------------------------------------------------------------------------------- memory


def csr_bytes(rows: int, nonzeros: int, itemsize: int = 8) -> int:
    """Memory of a product in compressed rows: matrix, 32-bit indices, x and y (Table 1)."""
    return nonzeros * (itemsize + 4) + (rows + 1) * 4 + 2 * rows * itemsize


def block_bytes(faces: int, blocks: int, m: int, itemsize: int = 8) -> int:
    """Memory of a product in dense blocks: matrix, columns, the inflated x, and y (Table 1)."""
    values = faces * blocks * m * m
    return (values + faces * blocks * m + faces * m) * itemsize + faces * blocks * 4


# These functions take NumPy's arrays and a device's: they use methods of arrays, and functions of
# NumPy that hand their work to the array's own library.


def rows(values: Any) -> Any:
    """The rows of a matrix, each with the columns of all its blocks: (faces, m, q).

    Parameters
    ----------
    values : (faces, nb, m, m) array
        See `BlockMatrix`.
    """
    faces, blocks, m, _ = values.shape
    return values.transpose(0, 2, 1, 3).reshape(faces, m, blocks * m)


def columns_first(values: Any) -> Any:
    """The paper's order A_ilk, column-major: (q, faces, m), so that i runs fastest and k last.

    For one column k the numbers of all rows stand side by side (roca2011, section IV).
    """
    faces, blocks, m, _ = values.shape
    return values.transpose(1, 3, 0, 2).reshape(blocks * m, faces, m)


def sliced(values: Any, width: int) -> Any:
    """Slices of 32 rows: (slices, 32 q), each slice a contiguous stream for the lanes of a warp.

    In a slice stand groups of `width` columns, [group][lane][column]: a load of that many numbers
    by each lane is contiguous for the warp. Columns that are left over follow, [column][lane]:
    nothing is filled up but the rows of the last slice, with zeros.

    Parameters
    ----------
    values : (faces, nb, m, m) array
    width : int
        Columns that a lane loads at once.
    """
    flat = rows(values)
    q = flat.shape[-1]
    flat = flat.reshape(-1, q)
    count = -(-len(flat) // WARP)
    if len(flat) < count * WARP:
        spare = np.zeros_like(flat, shape=(count * WARP - len(flat), q))
        flat = np.concatenate([flat, spare])
    flat = flat.reshape(count, WARP, q)
    whole = q // width * width
    groups = flat[:, :, :whole].reshape(count, WARP, whole // width, width).transpose(0, 2, 1, 3)
    if whole == q:
        return groups.reshape(count, WARP * q)
    left = flat[:, :, whole:].transpose(0, 2, 1)
    return np.concatenate([groups.reshape(count, -1), left.reshape(count, -1)], axis=1)
