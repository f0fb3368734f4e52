"""Bernstein-Bezier operators of chan2015 on the tetrahedron, as arrays that kernels can load.

What can be said of fp32 (tests/cpu/test_acoustics_bernstein.py holds each line):

- D_m has whole numbers up to N, L_0 halves of whole numbers up to (N+1)(N+2): exact.
- E_L and the steps of the sweep have whole numbers over 1 + i or i + 2: correctly rounded.
- E_L and L_0 are well scaled, their product is not: the entries of the lift grow like 2^N.
- From nodal values to control points an error grows by up to 2.6^N, so that this is done in
  float64; the way back is an average, and no error grows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from dgbook.element import BernsteinElement, multi_indices, space_dimension

LANES = 4
"""Numbers of 32 bits that one load of 16 bytes fetches."""
BITS = 8
"""Of each entry of a multi-index in a word."""


@dataclass(frozen=True, eq=False)
class FixedWidth:
    """A sparse matrix with the same number of stored entries in every row (ELL format).

    Shorter rows are padded by zeros in their own last column, which is loaded anyway.

    Attributes
    ----------
    columns : (rows, width) int32
    values : (rows, width)
    """

    columns: np.ndarray
    values: np.ndarray

    def apply(self, u: np.ndarray) -> np.ndarray:
        """The matrix times u, (..., columns), along its last axis; (..., rows)."""
        return np.einsum("...aj,aj->...a", u[..., self.columns], self.values)

    @property
    def quads(self) -> tuple[np.ndarray, np.ndarray]:
        """Columns and values as (width/4, rows, 4): thread `row` loads 16 bytes at ``[g, row]``."""
        shape = (len(self.columns), -1, LANES)
        return tuple(
            np.ascontiguousarray(array.reshape(shape).swapaxes(0, 1))
            for array in (self.columns, self.values)
        )


def fixed_width(matrix: csr_array, dtype: str | np.dtype = "float64") -> FixedWidth:
    """`matrix` in fixed-width storage (chan2015, section 3.1.2); the width is a multiple of 4."""
    counts = np.diff(matrix.indptr)
    width = -(-counts.max() // LANES) * LANES
    place = np.arange(width)
    source = matrix.indptr[:-1, None] + np.minimum(place, counts[:, None] - 1)
    return FixedWidth(
        columns=matrix.indices[source].astype(np.int32),
        values=np.where(place < counts[:, None], matrix.data[source], 0).astype(dtype),
    )


@dataclass(frozen=True, eq=False)
class BernsteinBasis:
    """The Bernstein basis of a tetrahedron: what the operator does in one element.

    Unknowns are the control points, in the order of ``element.multi_indices``. A sweep holds the
    layers 0..N of a face one behind the other, Np numbers in all.

    Attributes
    ----------
    element : BernsteinElement
    derivative_columns : (4, Np, 4) int32
        ``[m, a]`` are the four columns of row a of D_m: one load of 16 bytes.
    derivative_values : (Np, 4)
        Row a of every D_m: the multi-index a itself (chan2015, lemma 3.1).
    lift_face : FixedWidth
        L_0, (Nfp, Nfp), 8 wide (4 for N = 1).
    lift_reduction : FixedWidth
        E_L, (Np, 4 Nfp), Nfp + 3 wide before rounding up: the rows of the vertices are the longest.
    sweep_columns : (Np, 4) int32
        Entries Nfp.. of a sweep: the three entries of the layer before, as positions in the sweep,
        and a fourth for the load of 16 bytes. The first Nfp rows are unused and point to
        themselves.
    sweep_values : (Np, 4)
        Their factors -(b_j + 1)/(i + 1) for layer i, and 0.
    sweep_starts : (N+2,) int32
        Where the layers begin in a sweep, and the end.
    sweep_places : (Np, 4) int32
        Where function a lies in the sweeps from faces 0, 1, 2 and 3: who gathers its four numbers
        writes nothing that others write.
    nodal, coefficients : (Np, Np) float64
        From control points to nodal values, and back.
    face_coefficients : (Nfp, Nfp) float64
        From values at the nodes of a face to the control points of the face.
    """

    element: BernsteinElement
    derivative_columns: np.ndarray
    derivative_values: np.ndarray
    lift_face: FixedWidth
    lift_reduction: FixedWidth
    sweep_columns: np.ndarray
    sweep_values: np.ndarray
    sweep_starts: np.ndarray
    sweep_places: np.ndarray
    nodal: np.ndarray
    coefficients: np.ndarray
    face_coefficients: np.ndarray

    @cached_property
    def words(self) -> np.ndarray:
        """Multi-indices in one word each, ``a_0 | a_1 << 8 | a_2 << 16 | a_3 << 24``, (Np,) int32.

        All that a kernel needs which computes columns by ``element.lattice_position`` (chan2015,
        section 4.2.2, tried it and found it slower).
        """
        shifts = BITS * np.arange(4, dtype=np.int32)
        return (self.element.multi_indices.astype(np.int32) << shifts).sum(axis=1, dtype=np.int32)

    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """D_i, (3, Np, Np), and LIFT, (Np, 4 Nfp), as if they were dense."""
        D = np.stack([self.element.derivative(m).toarray() for m in range(4)])
        dtype = self.derivative_values.dtype
        return ((D[1:] - D[0]) / 2).astype(dtype), self.element.lift.astype(dtype)

    def differentiate(self, u: np.ndarray) -> np.ndarray:
        """Derivatives (n, 3, K, Np) along the reference axes, of control points u, (n, K, Np).

        ``(D_m u)_a = sum_j a_j u_{a - e_j + e_m}`` (chan2015, lemma A.1) and, since
        l_i = (1 + r_i) / 2 and the l sum to 1, ``du/dr_i = (D_i u - D_0 u) / 2``.
        """
        barycentric = [
            np.einsum("nkaj,aj->nka", u[..., columns], self.derivative_values)
            for columns in self.derivative_columns
        ]
        return np.stack([(D - barycentric[0]) / 2 for D in barycentric[1:]], axis=1)

    def sweep(self, flux: np.ndarray) -> np.ndarray:
        """chan2015, Algorithm 1: from control points on a face, (..., Nfp), to a sweep, (..., Np).

        After L_0, slice by slice through the tetrahedron: slice i+1 is the one-degree reduction of
        slice i, rescaled (``BernsteinElement.slice_columns``),

            (s_{i+1})_b = -1/(i+2) sum_j (b_j + 1) (s_i)_{b + e_j}.

        3 entries a row: 3 Np products at most, however high the order.
        """
        swept = np.empty((*flux.shape[:-1], self.element.Np), flux.dtype)
        first = self.sweep_starts[1]
        swept[..., :first] = self.lift_face.apply(flux)
        for start, end in zip(self.sweep_starts[1:], self.sweep_starts[2:], strict=False):
            columns, values = (a[start:end, :3] for a in (self.sweep_columns, self.sweep_values))
            swept[..., start:end] = np.einsum("...bj,bj->...b", swept[..., columns], values)
        return swept

    def lift(self, flux: np.ndarray) -> np.ndarray:
        """Lift of face control points (n, K, 4, Nfp), in optimal complexity; (n, K, Np)."""
        swept = self.sweep(flux)
        return sum(swept[..., f, self.sweep_places[:, f]] for f in range(4))

    def lift_by_reduction(self, flux: np.ndarray) -> np.ndarray:
        """The same in two sparse products, E_L (L_0 flux): chan2015, end of section 3.1.2."""
        on_faces = self.lift_face.apply(flux)
        return self.lift_reduction.apply(on_faces.reshape(*flux.shape[:-2], -1))

    def from_nodal(self, u: Any) -> Any:
        """Control points of nodal values (..., Np) of the host or a device."""
        return _by_float64(self.coefficients, u)

    def to_nodal(self, u: Any) -> Any:
        """Nodal values of control points (..., Np) of the host or a device."""
        return _by_float64(self.nodal, u)

    def face_from_nodal(self, g: np.ndarray) -> np.ndarray:
        """Control points of a face of values at its nodes, (..., Nfp) float64."""
        return g @ self.face_coefficients.T


def _by_float64(matrix: np.ndarray, u: Any) -> Any:
    """matrix @ u for values u (..., n), in float64, and rounded to their type.

    On a device by sums, which round alike however many values there are; a library's product of
    matrices need not.
    """
    values = u.astype(np.float64)
    if isinstance(u, np.ndarray):
        return (values @ matrix.T).astype(u.dtype)
    columns = np.asarray(matrix.T, like=u)
    return sum(x * values[..., j : j + 1] for j, x in enumerate(columns)).astype(u.dtype)


def bernstein_basis(order: int, dtype: str | np.dtype = "float64") -> BernsteinBasis:
    """The Bernstein basis of degree `order` on the tetrahedron, its values in `dtype`.

    Raises
    ------
    TypeError, ValueError
        If `order` is no integer from 1 to 15.
    """
    element = BernsteinElement(3, order)
    face = element.face_nodes[0]
    starts = np.cumsum([0, *(space_dimension(2, n) for n in range(order, -1, -1))])
    columns = np.repeat(np.arange(element.Np)[:, None], LANES, axis=1)
    values = np.zeros((element.Np, LANES))
    for i, (before, in_slice) in enumerate(zip(starts, element.slice_columns, strict=False)):
        layer = slice(starts[i + 1], starts[i + 2])
        columns[layer] = before + in_slice[:, [0, 1, 2, 2]]
        values[layer, :3] = -(multi_indices(2, order - i - 1) + 1) / (i + 2)
    places = np.empty((element.Np, LANES), int)
    for f, layers in enumerate(element.face_layers):
        places[np.concatenate(layers), f] = np.arange(element.Np)
    return BernsteinBasis(
        element=element,
        derivative_columns=element.derivative_columns.astype(np.int32),
        derivative_values=element.multi_indices.astype(dtype),
        lift_face=fixed_width(element.lift_face, dtype),
        lift_reduction=fixed_width(element.lift_reduction, dtype),
        sweep_columns=columns.astype(np.int32),
        sweep_values=values.astype(dtype),
        sweep_starts=starts.astype(np.int32),
        sweep_places=places.astype(np.int32),
        nodal=element.to_nodal,
        coefficients=element.from_nodal,
        face_coefficients=np.linalg.inv(element.to_nodal[np.ix_(face, face)]),
    )


# ---------------------------------------------------------------- the paper's figures 1 to 5


def nonzeros(order: int) -> dict[str, int]:
    """Nonzero entries of the operators on the tetrahedron, by formulae in N.

    =====================  =========================  =============================================
    operator               entries                    why
    =====================  =========================  =============================================
    nodal derivative       Np^2                       of one, as if dense
    Bernstein derivative   4 C(N+2, 3)                of one: four a column but for a_m = 0
    nodal lift             4 Nfp Np                   dense
    L_0                    Nfp + 3 N (N+1)            of one face; 1 + 6 a row, less at the edges
    E_L                    4 C(N+5, 5)                sum over layers of C(N-i+2, 2) C(i+2, 2)
    E_L stored             Np w                       w = Nfp + 3, rounded up to a multiple of 4
    sweep                  12 C(N+2, 3)               four sweeps of 3 a row, layers 1..N
    =====================  =========================  =============================================

    Fixed width stores 2.5 times the nonzeros of E_L for large N: its gain over the dense lift tends
    to 4, as the paper says, that of the nonzeros alone to 10, and that of the sweep grows with N.
    """
    Np, Nfp, lower = (space_dimension(*a) for a in ((3, order), (2, order), (3, order - 1)))
    return {
        "nodal derivative": Np * Np,
        "Bernstein derivative": 4 * lower,
        "nodal lift": 4 * Nfp * Np,
        "L_0": Nfp + 3 * order * (order + 1),
        "E_L": 4 * math.comb(order + 5, 5),
        "E_L stored": Np * -(-(Nfp + 3) // LANES) * LANES,
        "sweep": 12 * lower,
    }
