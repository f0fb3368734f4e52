"""The Bernstein-Bezier reference element: sparse derivatives and a factorized lift."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from dgbook.arguments import check_integer, check_points

from .frozen import read_only, read_only_sparse, shared_property
from .nodes import warp_and_blend
from .simplex import (
    MAX_ORDER,
    barycentric,
    face_layers,
    face_nodes,
    lattice_numbers,
    multi_indices,
    reference_measure,
    space_dimension,
)


def lattice_position(order: int, a: np.ndarray) -> np.ndarray:
    """Number of multi-indices in the lattice of degree `order`, in closed form.

    Parameters
    ----------
    order : int
        Degree N.
    a : (..., dim+1) array of ints
        Multi-indices of sum N.

    Returns
    -------
    (...) array of int
        With r_d = N - a_dim - ... - a_{d+1}, what is left of the degree for the first d axes,

            number(a) = sum_{d=1..dim} C(r_d + d, d) - C(r_d - a_d + d, d):

        whole layers with a smaller a_dim come first, in the layer whole rows, and so on. It is what
        a kernel evaluates that stores multi-indices and no columns (chan2015, section 4.2.2).
    """
    dim = a.shape[-1] - 1
    ways = np.array([[math.comb(n + d, d) for n in range(order + 1)] for d in range(dim + 1)])
    left, number = np.full(a.shape[:-1], order), np.zeros(a.shape[:-1], int)
    for d in range(dim, 0, -1):
        number += ways[d, left] - ways[d, left - a[..., d]]
        left = left - a[..., d]
    return number


def _sparse(rows: int, columns: int, entries: list[tuple[int, int, float]]) -> csr_array:
    """Read-only CSR array of (row, column, value) entries."""
    i, j, values = zip(*entries, strict=True)
    return read_only_sparse(csr_array((values, (i, j)), shape=(rows, columns), dtype=float))


def elevation(dim: int, order: int) -> csr_array:
    """Degree elevation: from Bernstein coefficients of degree `order` to those of `order` + 1.

    Parameters
    ----------
    dim : int
        0 to 3 (0 is a point, the face of an interval).
    order : int
        0 or more.

    Returns
    -------
    (Np(order+1), Np(order)) sparse array, read-only
        ``(E u)_a = sum_j a_j / (order+1) u_{a - e_j}``: dim+1 entries a column, and at most as
        many a row.

    Notes
    -----
    Multiply the basis function by ``1 = l_0 + ... + l_dim`` (chan2015, appendix A). The transpose
    is the degree reduction out of which the lift is made.
    """
    number = lattice_numbers(dim, order)
    entries = []
    for row, a in enumerate(multi_indices(dim, order + 1).tolist()):
        for j in range(dim + 1):
            if a[j] > 0:
                lower = tuple(a[i] - (i == j) for i in range(dim + 1))
                entries.append((row, number[lower], a[j] / (order + 1)))
    return _sparse(space_dimension(dim, order + 1), space_dimension(dim, order), entries)


def bernstein_basis(dim: int, order: int, points: np.ndarray) -> np.ndarray:
    """Bernstein polynomials ``B_a = N!/(a_0! ... a_dim!) l_0^{a_0} ... l_dim^{a_dim}`` at `points`.

    Parameters
    ----------
    dim : int
        0 to 3 (0 is a point, the face of an interval).
    order : int
        Degree N, 0 or more.
    points : (n, dim) array

    Returns
    -------
    (n, Np) array
        Column n is the polynomial with index ``multi_indices(dim, order)[n]``. A row sums to 1.

    Raises
    ------
    TypeError, ValueError
        If `dim` or `order` is no integer or out of range, or `points` has another shape.
    """
    check_integer("dim", dim, 0, 3)
    check_integer("order", order, 0)
    bary = barycentric(check_points("points", points, dim))
    values = np.empty((len(bary), space_dimension(dim, order)))
    for column, a in enumerate(multi_indices(dim, order).tolist()):
        multinomial = math.factorial(order) // math.prod(map(math.factorial, a))
        values[:, column] = multinomial * np.prod(bary**a, axis=1)
    return values


def bernstein_mass(dim: int, order: int) -> np.ndarray:
    """Mass matrix (Np, Np) of the Bernstein basis on the biunit simplex of dimension `dim`.

    ``M_ab = |K| prod_i C(a_i + b_i, a_i) / (C(2N, N) C(2N + dim, dim))``, where |K| is the measure
    of the simplex: because the integral of ``l^a`` is ``|K| dim! a! / (|a| + dim)!``.
    """
    check_integer("dim", dim, 0, 3)
    check_integer("order", order, 0)
    a = multi_indices(dim, order)
    choose = np.array([[math.comb(n, k) for k in range(order + 1)] for n in range(2 * order + 1)])
    products = choose[a[:, None] + a[None, :], a[:, None]].prod(axis=2, dtype=float)
    scale = math.comb(2 * order, order) * math.comb(2 * order + dim, dim)
    return reference_measure(dim) / scale * products


@dataclass(frozen=True)
class BernsteinElement:
    """Bernstein-Bezier basis of total degree `order` on the biunit simplex.

    Parameters
    ----------
    dim : int
        1 (interval), 2 (triangle) or 3 (tetrahedron).
    order : int
        Polynomial degree N, 1 to 15.

    Raises
    ------
    TypeError, ValueError
        If `dim` or `order` is no integer, or out of range.

    Notes
    -----
    ``B_a = N!/a! l^a`` with barycentric coordinates l, one function for each multi-index; they are
    ordered, and faces are numbered and scaled, as in :class:`dgbook.element.NodalElement`. On face
    f only the functions with ``a_f = 0`` do not vanish, and there they are the Bernstein basis of
    the face: the coefficients at :attr:`face_nodes` are those of the trace. Matrices are computed
    when first asked for, shared by equal elements, and read-only.

    **Lift** (chan2015, section 3.1.2 and appendix A.3, here for one, two and three dimensions). Let
    E_n^N raise the degree on a face from n to N. The lift of face f is

        lift_f = E_f L_0,   E_f = [l_i (E_{N-i}^N)^T] for the layers i = 0..N parallel to f,
        l_i = (-1)^i C(N, i) / (1 + i),   L_0 = (N+1)^2 / 2 (E_N^{N+1})^T E_N^{N+1}.

    The factors are sparse (:attr:`lift_reduction`, :attr:`lift_face`). As (E_{N-i}^N)^T is the
    product of i one-degree reductions (:attr:`layer_reductions`), a sweep from layer to layer
    applies E_f in a number of operations proportional to Np.

    The lift is computed from this closed form and no matrix is inverted: the Bernstein mass
    matrix is badly conditioned.
    """

    dim: int
    order: int

    def __post_init__(self) -> None:
        check_integer("dim", self.dim, 1, 3)
        check_integer("order", self.order, 1, MAX_ORDER)

    @property
    def Np(self) -> int:
        """Number of basis functions, C(order+dim, dim)."""
        return space_dimension(self.dim, self.order)

    @property
    def Nfp(self) -> int:
        """Number of basis functions that do not vanish on a face, C(order+dim-1, dim-1)."""
        return space_dimension(self.dim - 1, self.order)

    @shared_property
    def multi_indices(self) -> np.ndarray:
        """Multi-indices a of the basis functions, (Np, dim+1) ints."""
        return read_only(multi_indices(self.dim, self.order))

    @shared_property
    def face_nodes(self) -> np.ndarray:
        """Numbers of the functions of every face, (dim+1, Nfp) ints."""
        return read_only(face_nodes(self.dim, self.order))

    @shared_property
    def face_layers(self) -> tuple[tuple[np.ndarray, ...], ...]:
        """``face_layers[f][i]``: numbers of the functions with a_f = i, ints.

        Ordered as the basis of degree order-i of the face.
        """
        layers = face_layers(self.dim, self.order)
        return tuple(tuple(read_only(layer) for layer in face) for face in layers)

    @shared_property
    def derivative_columns(self) -> np.ndarray:
        """``[m, a, j]``: number of a - e_j + e_m, (dim+1, Np, dim+1) ints.

        Row a of the derivative with respect to l_m has these columns, and a_j in them, whatever m:
        :attr:`multi_indices` are the values. Where a_j = 0 there is no entry, and a stands for
        itself, so that a kernel may load what it then multiplies by 0.
        """
        unit = np.eye(self.dim + 1, dtype=int)
        a = self.multi_indices[:, None]  # (Np, 1, dim+1)
        moved = a - unit + unit[:, None, None]  # [m, a, j]
        columns = np.where(self.multi_indices[..., None] > 0, moved, a)
        return read_only(lattice_position(self.order, columns))

    def derivative(self, m: int) -> csr_array:
        """Derivative with respect to barycentric coordinate `m`, in the same degree.

        Parameters
        ----------
        m : int
            0 to dim.

        Returns
        -------
        (Np, Np) sparse array, read-only
            ``(D_m u)_a = sum_j a_j u_{a - e_j + e_m}``: at most dim+1 entries a row. Which they are
            depends on `m`, their values do not.

        Raises
        ------
        TypeError, ValueError
            If `m` is no integer, or out of range.

        Notes
        -----
        chan2015, lemma A.1: the derivative N B_{a-e_m} of degree N-1, raised to degree N. The
        barycentric coordinates are treated as independent, so that only combinations along the
        simplex have a meaning: the derivative along reference axis d is ``(D_{d+1} - D_0) / 2``.
        """
        check_integer("m", m, 0, self.dim)
        rows, j = np.nonzero(self.multi_indices)
        values = self.multi_indices[rows, j].astype(float)
        entries = values, (rows, self.derivative_columns[m, rows, j])
        return read_only_sparse(csr_array(entries, shape=(self.Np, self.Np)))

    @shared_property
    def mass(self) -> np.ndarray:
        """Mass matrix, (Np, Np), in closed form."""
        return read_only(bernstein_mass(self.dim, self.order))

    @shared_property
    def face_mass(self) -> np.ndarray:
        """Mass matrix of a face as the biunit simplex of dimension dim-1, (Nfp, Nfp)."""
        return read_only(bernstein_mass(self.dim - 1, self.order))

    @shared_property
    def layer_scales(self) -> np.ndarray:
        """l_i = (-1)^i C(N, i) / (1 + i), (order+1,): the scale of layer i in the lift."""
        N = self.order
        return read_only(np.array([(-1) ** i * math.comb(N, i) / (1 + i) for i in range(N + 1)]))

    @shared_property
    def layer_reductions(self) -> tuple[csr_array, ...]:
        """One-degree reductions from layer to layer, `order` sparse arrays.

        Number i takes layer i to layer i+1: the transposed elevation of the face from degree
        N-i-1 to degree N-i, with `dim` entries a row.
        """
        return tuple(
            read_only_sparse(elevation(self.dim - 1, self.order - i - 1).T)
            for i in range(self.order)
        )

    @shared_property
    def lift_face(self) -> csr_array:
        """L_0, (Nfp, Nfp) sparse: the part of the lift that stays on the face.

        At most dim (dim-1) + 1 entries a row: 1, 3, 7. They are halves of whole numbers,

            (L_0 u)_c = 1/2 sum_j (c_j+1)^2 u_c + 1/2 sum_{j != k} (c_j+1) c_k u_{c + e_j - e_k}.
        """
        raised = ((self.order + 1) * elevation(self.dim - 1, self.order)).rint()
        return read_only_sparse((raised.T @ raised) / 2)

    @shared_property
    def slice_columns(self) -> tuple[np.ndarray, ...]:
        """``[i][b, j]``: number of b + e_j in layer i, `order` arrays of `dim` ints a row.

        For the functions b of layer i+1, of degree N-i-1: columns of :attr:`layer_reductions`. With
        the ratio of two scales, ``l_{i+1} / l_i = -(N-i) / (i+2)``, the denominator N-i of the
        reduction drops out, and a sweep goes from a scaled layer s_i to the next by

            (s_{i+1})_b = -1/(i+2) sum_j (b_j + 1) (s_i)_{b + e_j}.
        """
        unit = np.eye(self.dim, dtype=int)
        return tuple(
            read_only(lattice_position(n, multi_indices(self.dim - 1, n - 1)[:, None] + unit))
            for n in range(self.order, 0, -1)
        )

    @shared_property
    def lift_reduction(self) -> csr_array:
        """E_L = [E_0, ..., E_dim], (Np, (dim+1)*Nfp) sparse: from the faces into the element.

        ``lift`` is E_L times the block diagonal matrix of dim+1 copies of L_0. As E_n^N has the
        entries ``prod_j C(c_j, b_j) / C(N, n)``, for c of degree N and b of degree n, the binomials
        of the scale drop out:

            (E_f)_{a c} = (-1)^{a_f} / (1 + a_f) prod_{j != f} C(c_j, a_j).
        """
        N = self.order
        choose = np.array([[math.comb(n, k) for k in range(N + 1)] for n in range(N + 1)])
        on_face = multi_indices(self.dim - 1, N)
        blocks = []
        for f in range(self.dim + 1):
            rest = np.delete(self.multi_indices, f, axis=1)
            products = choose[on_face, rest[:, None]].prod(axis=2)
            layer = self.multi_indices[:, f, None]
            blocks.append((-1) ** layer * products / (1 + layer))
        return read_only_sparse(csr_array(np.hstack(blocks)))

    @shared_property
    def lift(self) -> np.ndarray:
        """Lift of all faces, (Np, (dim+1)*Nfp), dense.

        Columns ``f*Nfp`` to ``(f+1)*Nfp`` take the coefficients of a function on face f to those of
        its lift, with the scaling of :class:`dgbook.element.NodalElement`.
        """
        faces = self.lift_reduction.toarray().reshape(self.Np, self.dim + 1, self.Nfp)
        return read_only((faces @ self.lift_face.toarray()).reshape(self.Np, -1))

    def interpolation(self, points: np.ndarray) -> np.ndarray:
        """Matrix (n, Np) from coefficients to the values at `points`, (n, dim).

        Raises
        ------
        ValueError
            If `points` has another shape.
        """
        return bernstein_basis(self.dim, self.order, points)

    @shared_property
    def to_nodal(self) -> np.ndarray:
        """Matrix (Np, Np) from coefficients to values at the nodes of the nodal element."""
        return read_only(self.interpolation(warp_and_blend(self.dim, self.order)))

    @shared_property
    def from_nodal(self) -> np.ndarray:
        """Matrix (Np, Np) from values at those nodes to coefficients, the inverse of `to_nodal`.

        Its condition number grows by about 2.4 with each order: apply it in double precision, and
        round its result.
        """
        return read_only(np.linalg.inv(self.to_nodal))
