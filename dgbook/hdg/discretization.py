"""What the elements need to know: bases at quadrature points, geometry, faces, boundary data.

**Local unknowns.** An element knows u at its Np nodes, and the trace at the Nfp nodes of each of
its dim+1 faces. One array z, (n_c, K, Nz), holds both: Nz = Np + (dim+1) Nfp, first u, then face
after face. A face's nodes are in the element's own order there.

**The gradient without unknowns of its own.** On a straight element, q = grad u in the weak sense,

    (q, r) = -(u, div r) + <uhat, r . n>   for all r,

is solved by the inverse of a reference mass matrix: with the rows g_a = grad r_a of dr/dx,

    q = sum_a g_a (Q_a z),   Q_a z = -M^-1 (K_a u + E_{a+1} uhat_{a+1} - E_0 uhat_0),

K_a the integrals of (d phi_i / d r_a) phi_j and E_f those of phi_i psi_j over face f. No normals
are needed: Fs n is -g_{f-1} on face f >= 1, and the sum of all g_a on face 0.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np

from dgbook.arguments import check_integer
from dgbook.element import (
    MAX_ORDER,
    NodalElement,
    barycentric,
    cartesian,
    face_node_permutations,
    face_vertices,
    grad_vandermonde,
    simplex_quadrature,
    triangle_quadrature,
    vandermonde,
)
from dgbook.gpu import Device
from dgbook.hdg.blocks import face_columns, number_faces
from dgbook.hdg.problem import Affine, Problem
from dgbook.mesh import Mesh, geometric_factors, nodes_xyz, vertex_permutations
from dgbook.nodal.boundary import conditions_of_faces


@dataclass(frozen=True, eq=False)
class Faces:
    """Which faces of the mesh the elements have, and how they see them.

    Attributes
    ----------
    numbers : (K, dim+1) int32
        As `blocks.number_faces` has them.
    columns : (faces, 2 dim + 1) int32
        As `blocks.face_columns` has them.
    second : (K, dim+1) bool
        Whether the element is the second one there: a face's nodes are in the first one's order.
    slots : (K, dim+1, dim+1)
        ``[k, f, g]``: which block in the row of face f belongs to face g of the same element.
    to_face, to_element : (K, dim+1, Nfp)
        Node j of the element's face f is node ``to_face[k, f, j]`` of the mesh's face, and node i
        of that one is ``to_element[k, f, i]`` of the element's.
    """

    numbers: np.ndarray
    columns: np.ndarray
    second: np.ndarray
    slots: np.ndarray
    to_face: np.ndarray
    to_element: np.ndarray

    @property
    def count(self) -> int:
        """Number of the mesh's faces."""
        return len(self.columns)


def faces_of(mesh: Mesh, order: int) -> Faces:
    """The faces of a mesh, with the nodes of an order on them."""
    dim, numbers, columns = mesh.dim, number_faces(mesh), face_columns(mesh)
    second = np.ones(numbers.size, bool)
    second[np.unique(numbers, return_index=True)[1]] = False
    second = second.reshape(numbers.shape)
    slots = (columns[numbers][:, :, None] == numbers[:, None, :, None]).argmax(axis=3)

    matches = face_node_permutations(dim, order)
    matches = np.array([matches[tuple(p)] for p in vertex_permutations(dim).tolist()])
    to_face = np.tile(np.arange(matches.shape[1]), (*numbers.shape, 1))
    k, f = np.nonzero(second)
    permutation = mesh.face_permutation[mesh.neighbors[k, f], mesh.neighbor_faces[k, f]]
    to_face[k, f] = matches[permutation]
    return Faces(numbers, columns, second, slots, to_face, np.argsort(to_face, axis=2))


@dataclass(frozen=True, eq=False)
class Points:
    """The local unknowns at quadrature points of the reference element or of one of its faces.

    Attributes
    ----------
    weights : (Nq,)
        Of sum 2 or 4/3; on a face, counted as a biunit simplex, 2.
    value : (Nq, Nz)
        u at the points: zero but for the first Np columns.
    trace : (Nq, Nz)
        The trace at the points: zero but for the face's own columns; all zero in the volume.
    gradient : (dim, Nq, Nz)
        The part of q along each g_a: Q_a z at the points.
    """

    weights: np.ndarray
    value: np.ndarray
    trace: np.ndarray
    gradient: np.ndarray


@dataclass(frozen=True, eq=False)
class Tables:
    """The reference element's matrices.

    Attributes
    ----------
    gradient : (dim, Np, Nz)
        Q_a.
    volume : Points
    dphi : (dim, Nq, Np)
        ``[a, q, i]`` = d phi_i / d r_a at the points of `volume`.
    faces : tuple of Points
    points, face_points : (Nq, dim), (dim+1, Nqf, dim)
        Where they are.
    """

    gradient: np.ndarray
    volume: Points
    dphi: np.ndarray
    faces: tuple[Points, ...]
    points: np.ndarray
    face_points: np.ndarray


def make_tables(element: NodalElement, degree: int) -> Tables:
    """The matrices of an element, with quadrature exact to a degree."""
    dim, Np, Nfp = element.dim, element.Np, element.Nfp
    Nz = Np + (dim + 1) * Nfp

    def columns_of(f: int) -> slice:
        return slice(Np + f * Nfp, Np + (f + 1) * Nfp)

    inverse_mass = element.vandermonde @ element.vandermonde.T
    gradient = np.zeros((dim, Np, Nz))
    for a in range(dim):
        gradient[a, :, :Np] = -inverse_mass @ element.derivative[a].T @ element.mass
        for f, sign in ((a + 1, -1), (0, 1)):
            gradient[a, :, columns_of(f)] = (
                sign * inverse_mass[:, element.face_nodes[f]] @ element.face_mass
            )

    def at(points: np.ndarray, weights: np.ndarray, face: int | None, psi: Any) -> Points:
        phi = element.interpolation(points)
        value, trace = np.zeros((2, len(points), Nz))
        value[:, :Np] = phi
        if face is not None:
            trace[:, columns_of(face)] = psi
        return Points(weights, value, trace, phi @ gradient)

    points, weights = triangle_quadrature(degree) if dim == 2 else simplex_quadrature(dim, degree)
    on_face, face_weights = symmetric_face_quadrature(dim, degree)
    psi = vandermonde(dim - 1, element.order, on_face) @ np.linalg.inv(
        vandermonde(dim - 1, element.order, element.face_points)
    )
    corners = np.zeros((dim + 1, len(on_face), dim + 1))
    for f, vertices in enumerate(face_vertices(dim)):
        corners[f][:, list(vertices)] = barycentric(on_face)
    face_points = np.stack([cartesian(corners[f]) for f in range(dim + 1)])
    return Tables(
        gradient=gradient,
        volume=at(points, weights, None, None),
        dphi=grad_vandermonde(dim, element.order, points) @ element.inverse_vandermonde,
        faces=tuple(at(face_points[f], face_weights, f, psi) for f in range(dim + 1)),
        points=points,
        face_points=face_points,
    )


def symmetric_face_quadrature(dim: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, dim-1) and weights on a face, the same from whichever vertex one starts.

    The two elements at a face then use the same points of space, and what one counts as flux out
    the other counts as flux in, to rounding, also where the flux is no polynomial. Gauss's rule on
    an edge has that symmetry; that of a triangle is averaged over the six orders of its vertices.
    """
    if dim == 3:
        points, weights = triangle_quadrature(degree)
    else:
        points, weights = simplex_quadrature(dim - 1, degree)
    bary = barycentric(points)
    orders = list(permutations(range(dim)))
    images = np.concatenate([bary[:, list(order)] for order in orders])
    shares = np.tile(weights / len(orders), len(orders))
    _, first, which = np.unique(
        np.round(images, 12), axis=0, return_index=True, return_inverse=True
    )
    merged = np.bincount(which.ravel(), shares)
    return cartesian(images[first]), merged


@dataclass(frozen=True, eq=False)
class Discretization:
    """A problem on a mesh, at an order: all that does not depend on the state.

    Attributes
    ----------
    problem : Problem
    mesh : Mesh
    element : NodalElement
    faces : Faces
    tables : Tables
    jacobian : (K,)
        J, the determinant of dx/dr.
    rx : (dim, dim, K)
        ``[a, e, k]`` is dr_a/dx_e.
    normals : (dim+1, dim, K)
        Outward unit normals of face f, ``[f, e, k]``.
    face_jacobian : (dim+1, K)
        sJ.
    coefficients : (n, K, Nq)
        The problem's, at the points in the elements.
    face_coefficients : (dim+1, n, K, Nqf)
    source : (n_c, K, Nq)
    boundary_number : (K, dim+1)
        Row of ``mesh.boundary_faces``, or -1 in the interior and where the trace is given.
    conditions : Affine
        At the points of all boundary faces: (n_c, n_c, nb, Nqf).
    given : (faces,) bool
        Where the trace is given (Dirichlet).
    given_trace : (faces, m)
        Its projection there, zero elsewhere.
    """

    problem: Problem
    mesh: Mesh
    element: NodalElement
    faces: Faces
    tables: Tables
    jacobian: np.ndarray
    rx: np.ndarray
    normals: np.ndarray
    face_jacobian: np.ndarray
    coefficients: np.ndarray
    face_coefficients: np.ndarray
    source: np.ndarray
    boundary_number: np.ndarray
    conditions: Affine
    given: np.ndarray
    given_trace: np.ndarray

    @cached_property
    def n_c(self) -> int:
        """Number of components."""
        return len(self.problem.names(self.mesh.dim))

    @property
    def Nz(self) -> int:
        """Local unknowns of a component."""
        return self.tables.gradient.shape[2]

    @property
    def m(self) -> int:
        """Unknowns of a face, n_c Nfp."""
        return self.n_c * self.element.Nfp

    def nodes(self) -> np.ndarray:
        """Coordinates of the elements' nodes, (dim, K, Np)."""
        return nodes_xyz(self.mesh, self.element.nodes)

    def trace_nodes(self) -> np.ndarray:
        """Coordinates of the faces' nodes, (dim, faces, Nfp)."""
        dim, faces = self.mesh.dim, self.faces
        bary = barycentric(self.element.face_points)
        x = np.empty((dim, faces.count, self.element.Nfp))
        for f, vertices in enumerate(face_vertices(dim)):
            first = ~faces.second[:, f]
            corners = self.mesh.vertices[self.mesh.elements[first][:, list(vertices)]]
            x[:, faces.numbers[first, f]] = np.moveaxis(bary @ corners, 2, 0)
        return x


def discretize(problem: Problem, mesh: Mesh, order: int) -> Discretization:
    """Compute everything that does not depend on the state.

    Raises
    ------
    TypeError, ValueError
        If an argument is none of its kind, or the conditions do not fit the problem or the mesh.
    """
    if not isinstance(problem, Problem):
        raise TypeError(
            f"problem = {problem!r}; allowed: Poisson, ConvectionDiffusion, NavierStokes"
        )
    if not isinstance(mesh, Mesh):
        raise TypeError(f"mesh = {mesh!r}; allowed: a Mesh")
    if mesh.dim < 2:
        raise ValueError(f"mesh.dim = {mesh.dim}; allowed: 2 (triangles) or 3 (tetrahedra)")
    check_integer("order", order, 0, MAX_ORDER)
    conditions = conditions_of_faces(mesh, as_boundary(mesh, problem.boundary))
    problem.check(mesh.dim, [condition for condition, _ in conditions])

    element = NodalElement(mesh.dim, order)
    faces = faces_of(mesh, order)
    tables = make_tables(element, problem.quadrature_degree(order))
    geometry = geometric_factors(mesh)
    x = nodes_xyz(mesh, tables.points)
    x_faces = [nodes_xyz(mesh, points) for points in tables.face_points]
    n_c = len(problem.names(mesh.dim))
    source = np.zeros((n_c, *x.shape[1:]))
    if problem.source is not None:
        source = problem.fields(problem.source, x)
    normals = np.ascontiguousarray(geometry.normals.transpose(1, 2, 0))

    number, affine, given, given_trace = _boundary_data(
        problem, element, faces, tables, mesh.boundary_faces, conditions, np.stack(x_faces), normals
    )
    return Discretization(
        problem=problem,
        mesh=mesh,
        element=element,
        faces=faces,
        tables=tables,
        jacobian=geometry.jacobian,
        rx=np.ascontiguousarray(geometry.rst_xyz.transpose(1, 2, 0)),
        normals=normals,
        face_jacobian=np.ascontiguousarray(geometry.face_jacobian.T),
        coefficients=problem.coefficients(x),
        face_coefficients=np.stack([problem.coefficients(points) for points in x_faces]),
        source=source,
        boundary_number=number,
        conditions=affine,
        given=given,
        given_trace=given_trace,
    )


def _boundary_data(
    problem: Problem,
    element: NodalElement,
    faces: Faces,
    tables: Tables,
    boundary_faces: np.ndarray,
    conditions: list[tuple[Any, np.ndarray]],
    x: np.ndarray,
    normals: np.ndarray,
) -> tuple[np.ndarray, Affine, np.ndarray, np.ndarray]:
    """``boundary_number``, ``conditions``, ``given`` and ``given_trace`` of a discretization.

    `x` are the points on all faces of the elements, (dim+1, dim, K, Nqf).
    """
    k, f = boundary_faces.T
    n_c = len(problem.names(x.shape[1]))
    number = np.full(faces.numbers.shape, -1)
    affine = [np.zeros((*s, len(k), x.shape[3])) for s in ((n_c, n_c), (n_c, n_c), (n_c,))]
    given = np.zeros(faces.count, bool)
    given_trace = np.zeros((faces.count, n_c, element.Nfp))
    points = x[f, :, k].transpose(1, 0, 2)  # (dim, nb, Nqf)
    outward = np.repeat(normals[f, :, k].T[..., None], points.shape[2], axis=2)
    for condition, rows in conditions:
        if callable(condition):
            values = problem.fields(condition, points[:, rows])
            numbers = faces.numbers[k[rows], f[rows]]
            given[numbers] = True
            given_trace[numbers] = _projection(tables, element, values).transpose(1, 0, 2)
        else:
            number[k[rows], f[rows]] = rows
            holds = problem.condition(condition, points[:, rows], outward[:, rows])
            for array, part in zip(affine, fields(holds), strict=True):
                array[..., rows, :] = getattr(holds, part.name)
    return number, Affine(*affine), given, given_trace.reshape(faces.count, -1)


def as_boundary(mesh: Mesh, boundary: Any) -> dict[str, Any]:
    """The conditions by name: one alone stands for all names, whichever kind it is."""
    if isinstance(boundary, dict):
        return boundary
    names = [name for name, faces in mesh.boundary.items() if len(faces)]
    return {} if boundary is None else dict.fromkeys(names, boundary)


def _projection(tables: Tables, element: NodalElement, values: np.ndarray) -> np.ndarray:
    """The L2 projection onto a face's polynomials of values at its points: (..., Nfp).

    A boundary face has one element, whose order of the nodes is the face's.
    """
    face = tables.faces[0]
    psi = face.trace[:, element.Np : element.Np + element.Nfp]
    return np.linalg.solve(element.face_mass, (psi.T * face.weights) @ values[..., None])[..., 0]


def on_device(d: Discretization, device: Device) -> Discretization:
    """The same discretization with its arrays on a device, for the functions of `local`.

    On the host it is that very one. CuPy takes over where NumPy's functions meet its arrays:
    products with tables become calls of cuBLAS, and the elements' small systems one batched
    factorization of cuBLAS. The columns stay on the host, where a `BlockMatrix` has them.
    """

    if device.kind != "cuda":
        return d

    def moved(thing: Any) -> Any:
        if isinstance(thing, np.ndarray):
            return device.array(thing)
        if isinstance(thing, tuple):
            return tuple(moved(part) for part in thing)
        if isinstance(thing, Faces | Points | Tables | Affine):
            names = [f.name for f in fields(thing) if f.name != "columns"]
            return replace(thing, **{name: moved(getattr(thing, name)) for name in names})
        return thing

    return replace(d, **{f.name: moved(getattr(d, f.name)) for f in fields(d)})
