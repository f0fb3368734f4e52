"""The operator in plain NumPy, line by line as chen writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from dgbook.arguments import check_choice
from dgbook.element import NodalElement
from dgbook.euler.problem import (
    CONDITIONS,
    FIELDS,
    FLUXES,
    GIVEN,
    WALL,
    mirrored,
    normal_flux,
    pressure,
)
from dgbook.euler.tables import Tables
from dgbook.mesh import Mesh, face_pairs, geometric_factors, nodes_xyz
from dgbook.nodal.boundary import check_condition, conditions_of_faces, given_fields, stacked_fields


@dataclass(frozen=True, eq=False)
class Operator:
    """What the semi-discrete equations need; K triangles, E edges, nb of them on the boundary.

    Edges are numbered for the paper's kernels, one thread an edge: the E - nb interior ones first
    (periodic edges are interior), then those of the boundary in the order of
    ``mesh.boundary_faces``. What kernels with one element a thread need is there as well. All
    elements are positively oriented; see `Tables` for what follows for points on edges.

    Attributes
    ----------
    mesh : Mesh
    element : NodalElement
        Of order 0 to 6.
    tables : Tables
        Of the operator's type.
    flux : str
        A name in ``problem.FLUXES``.
    jacobian : (K,) float64
        J, the determinant of dx/dr.
    rx : (2, 2, K)
        ``[a, b, k]`` is dr_a/dx_b.
    edges : (E, 4) int32
        Left element and its edge, right element and its edge; -1, -1 on the boundary.
    normal : (E, 2)
        Unit normals, from left to right: outward on the boundary.
    edge_jacobian : (E,)
        Half the length of an edge.
    element_edges : (K, 3) int32
        The number of an element's edges in ``edges``.
    element_sides : (K, 3) int32
        0 where the element is the left one there, 1 where it is the right one.
    neighbors, neighbor_edges : (K, 3) int32
        The element across each edge and the edge's number there; -1 on the boundary, and
        ``element_edges - interior`` is then the row of the boundary edge.
    normals : (K, 3, 2)
        Outward unit normals.
    face_scale : (K, 3)
        Fs = sJ / J, half the length of an edge over J.
    kinds : (nb,) int32
        ``problem.WALL`` or ``problem.GIVEN`` for each boundary edge.
    sources : tuple of (indices, function)
        Which of the nb edges have given states, and the function of (x, y, t) that returns them.
    boundary_points : (2, nb, Ne) float64
        Coordinates of the points on the boundary, in the running order of the own element.
    """

    mesh: Mesh
    element: NodalElement
    tables: Tables
    flux: str
    jacobian: np.ndarray
    rx: np.ndarray
    edges: np.ndarray
    normal: np.ndarray
    edge_jacobian: np.ndarray
    element_edges: np.ndarray
    element_sides: np.ndarray
    neighbors: np.ndarray
    neighbor_edges: np.ndarray
    normals: np.ndarray
    face_scale: np.ndarray
    kinds: np.ndarray
    sources: tuple[tuple[np.ndarray, Callable], ...]
    boundary_points: np.ndarray

    @property
    def interior(self) -> int:
        """Number of interior edges, E - nb."""
        return len(self.edges) - len(self.kinds)


def volume_residual(operator: Operator, u: np.ndarray) -> np.ndarray:
    """R^v = - integral of grad phi_i . F(u); u and R^v are (4, K, Np).

    chen, equation (11).
    """
    tables = operator.tables
    at_points = u @ tables.phi_volume.T
    J = operator.jacobian.astype(u.dtype)
    residual = np.zeros_like(u)
    # grad phi . F = sum over a of dphi/dr_a (grad r_a . F)
    for a in range(2):
        along = normal_flux(at_points, (J * operator.rx[a])[:, :, None])
        residual -= (tables.w_volume * along) @ tables.dphi_volume[a]
    return residual


def edge_states(
    operator: Operator, u: np.ndarray, data: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """u^+ on the left of every edge and u^- on its right, (4, E, Ne), in the left's running order.

    `data` as ``boundary_data`` returns it.
    """
    phi, nodes = operator.tables.phi_trace.T, operator.tables.edge_nodes
    k, f, neighbor, g = operator.edges.T
    inside = slice(operator.interior)
    left = u[:, k[:, None], nodes[f]] @ phi
    right = np.empty_like(left)
    far = u[:, neighbor[inside, None], nodes[g[inside]]] @ phi
    right[:, inside] = far[:, :, ::-1]  # the neighbor runs along the edge the other way
    outside = right[:, operator.interior :]
    outside[...] = data
    walls = np.flatnonzero(operator.kinds == WALL)
    normal = operator.normal[operator.interior + walls].T[:, :, None]
    outside[:, walls] = mirrored(left[:, operator.interior + walls], normal)
    return left, right


def edge_residual(
    operator: Operator, u: np.ndarray, data: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """R^{f,l} and R^{f,r}: the integrals of phi_i F* over all edges.

    chen, equation (12).

    Returns
    -------
    left, right : (4, E, Np)
        What each edge adds to the residual of the element on its left
        and to that on its right (zero behind the boundary).
    """
    tables, inside = operator.tables, slice(operator.interior)
    _, f, _, g = operator.edges.T
    normal = operator.normal.T[:, :, None]
    states = edge_states(operator, u, data)
    flux = FLUXES[operator.flux](*states, normal)
    weighted = operator.edge_jacobian[:, None] * tables.w_edge * flux
    shape = 2, 4, len(operator.edges), tables.Np
    left, right = np.zeros(shape, u.dtype, like=u)
    rows = np.arange(len(operator.edges), like=f)[:, None]
    left[:, rows, tables.edge_nodes[f]] = weighted @ tables.phi_trace
    # The right element has the points of the edge in reverse order.
    reverse = weighted[:, inside, ::-1]
    nodes = tables.edge_nodes[g[inside]]
    right[:, rows[inside], nodes] = -(reverse @ tables.phi_trace)
    return left, right


def add(
    operator: Operator,
    volume: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
) -> np.ndarray:
    """R, the sum of every element's volume and edge integrals.

    chen, equation (10); (4, K, Np).
    """
    parts = np.concatenate([left, right], axis=1)
    E = len(operator.edges)
    sides = operator.element_sides * E + operator.element_edges
    a, b, c = (parts[:, sides[:, f]] for f in range(3))
    return volume + a + b + c


def rhs(operator: Operator, u: np.ndarray, t: float = 0.0) -> np.ndarray:
    """du/dt at time t, (4, K, Np)."""
    return slope(operator, u, boundary_data(operator, t))


def slope(
    operator: Operator,
    u: np.ndarray,
    data: np.ndarray,
) -> np.ndarray:
    """du/dt = - M^-1 R for given exterior states; (4, K, Np).

    chen, equation (8).
    """
    left, right = edge_residual(operator, u, data)
    residual = add(operator, volume_residual(operator, u), left, right)
    J = operator.jacobian.astype(u.dtype)[:, None]
    return -(residual @ operator.tables.inverse_mass.T) / J


def unphysical(operator: Operator, u: np.ndarray) -> tuple[str, int] | None:
    """What is wrong with a state (4, K, Np), and in which element, or None if nothing is.

    Density and pressure have to be positive, and all fields finite, at the nodes and at all points
    where the residuals evaluate the state.
    """
    tables = operator.tables
    at_points = np.concatenate([tables.phi_volume, *tables.phi_edge])
    values = np.concatenate([u, u @ at_points.T], axis=2)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        p = pressure(values)
    for what, good in (
        ("a value that is not finite", np.isfinite(values).all(axis=0)),
        ("a density that is not positive", values[0] > 0),
        ("a pressure that is not positive", p > 0),
    ):
        elements = np.flatnonzero(~good.all(axis=1))
        if len(elements):
            return what, int(elements[0])
    return None


def boundary_data(operator: Operator, t: float) -> np.ndarray:
    """The given states outside at the points of the boundary edges, (4, nb, Ne); 0 behind walls.

    Raises
    ------
    ValueError
        If a boundary function returns another number of fields.
    """
    data = np.zeros((4, *operator.boundary_points.shape[1:]), operator.normal.dtype)
    return given_fields(operator.sources, operator.boundary_points, t, data, as_fields)


as_fields = partial(stacked_fields, names=FIELDS, equations="the Euler equations")
"""``as_fields(values, shape)``: the four fields that a function of space returned, (4, *shape)."""


def assemble(
    mesh: Mesh,
    element: NodalElement,
    flux: str = "roe",
    boundary: str | Callable | dict[str, str | Callable] | None = None,
    dtype: str = "float64",
) -> Operator:
    """Compute everything that does not change in time.

    Parameters
    ----------
    mesh, element
        Of two dimensions; the element of order 0 to 6.
    flux : {"roe", "rusanov", "hllc"}
    boundary : condition or dict
        For each name in ``mesh.boundary`` "wall", or a function of (x, y, t) that returns the four
        conservative fields outside. A condition alone stands for all names.
    dtype : {"float32", "float64"}
        Type of the arrays; they are computed in float64.

    Raises
    ------
    TypeError, ValueError
        If a dimension, the order, the flux or a boundary is not as above, or a face has two
        conditions.
    """
    for name, value in (("mesh", mesh), ("element", element)):
        if value.dim != 2:
            raise ValueError(f"{name}.dim = {value.dim}; the Euler equations here have 2")
    check_choice("flux", flux, FLUXES)
    tables = Tables(element.order, dtype)
    conditions = conditions_of_faces(mesh, boundary)
    for condition, _ in conditions:
        check_condition(condition, CONDITIONS, "x, y")

    geometry = geometric_factors(mesh)
    pairs, alone = face_pairs(mesh), mesh.boundary_faces
    edges = np.concatenate([pairs, np.column_stack([alone, np.full_like(alone, -1)])])
    k, f, neighbor, g = edges.T
    inside = slice(len(pairs))
    element_edges, element_sides = np.zeros((2, mesh.K, 3), np.int32)
    element_edges[k, f] = np.arange(len(edges))
    element_edges[neighbor[inside], g[inside]] = np.arange(len(pairs))
    element_sides[neighbor[inside], g[inside]] = 1

    kinds = np.zeros(len(alone), np.int32)
    sources = []
    for condition, faces in conditions:
        kinds[faces] = GIVEN if callable(condition) else WALL
        if callable(condition):
            sources.append((faces, condition))
    points = nodes_xyz(mesh, tables.points_edge.reshape(-1, 2)).reshape(2, mesh.K, 3, tables.Ne)
    return Operator(
        mesh=mesh,
        element=element,
        tables=tables,
        flux=flux,
        jacobian=geometry.jacobian,
        rx=np.ascontiguousarray(np.moveaxis(geometry.rst_xyz, 0, 2), dtype),
        edges=edges.astype(np.int32),
        normal=geometry.normals[k, f].astype(dtype),
        edge_jacobian=geometry.face_jacobian[k, f].astype(dtype),
        element_edges=element_edges,
        element_sides=element_sides,
        neighbors=mesh.neighbors,
        neighbor_edges=mesh.neighbor_faces,
        normals=geometry.normals.astype(dtype),
        face_scale=geometry.face_scale.astype(dtype),
        kinds=kinds,
        sources=tuple(sources),
        boundary_points=np.ascontiguousarray(points[:, alone[:, 0], alone[:, 1]]),
    )
