"""The operator in plain NumPy, line by line as klockner2009 writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from dgbook.arguments import check_choice
from dgbook.element import NodalElement
from dgbook.maxwell.problem import CONDITIONS, FIELDS, FLUXES, cross, curl, keeps
from dgbook.mesh import Mesh, geometric_factors, nodes_xyz
from dgbook.nodal.basis import BASES, NodalBasis, basis_of
from dgbook.nodal.bernstein import BernsteinBasis
from dgbook.nodal.boundary import check_condition, conditions_of_faces, given_fields, stacked_fields
from dgbook.nodal.media import material
from dgbook.nodal.trace import Trace, trace


@dataclass(frozen=True, eq=False)
class Operator:
    """What the semi-discrete equations need; K elements, Np nodes, Nfp on each of 4 faces.

    Unknowns are nodal values or control points. These have the same numbers, and on a face their
    jump is that of the trace: only D_i, LIFT and the data on the boundary differ.

    Attributes
    ----------
    mesh : Mesh
    element : NodalElement
    basis : NodalBasis or BernsteinBasis
        What makes unknowns of nodal values, and nodal values of unknowns.
    flux : str
        "upwind" or "central".
    trace : Trace
        Which node lies opposite which.
    derivative : (3, Np, Np)
        D_i, the derivative with respect to the reference coordinate r_i.
    lift : (Np, 4 Nfp)
    rst_xyz : (K, 3, 3)
        ``[k, i, d]`` is dr_i/dx_d.
    jacobian : (K,) float64
        Determinant of dx/dr.
    normals : (K, 4, 3)
        n, outward unit normals.
    face_scale : (K, 4)
        Fs = sJ / J.
    epsilon, mu : (K,)
        Permittivity and permeability of each element.
    impedance : (K, 4)
        Z^-, the own impedance sqrt(mu / epsilon), at each face.
    neighbor_impedance : (K, 4)
        Z^+, that of the neighbor; on the boundary the own one.
    upwinding : (K, 4)
        a in the flux: 1 upwind, 0 central. On boundaries that let waves out it is always 1: a
        central flux would reflect them.
    mirrors : (nb, 2)
        m_E and m_H on each face of ``trace.boundary_faces``, see ``problem.keeps``.
    sources : tuple of (indices, function)
        For boundary faces with given fields: which of the nb, and the function of (x, y, z, t) that
        returns g.
    boundary_points : (3, nb, Nfp) float64
        Coordinates of the nodes on the boundary.
    """

    mesh: Mesh
    element: NodalElement
    basis: NodalBasis | BernsteinBasis
    flux: str
    trace: Trace
    derivative: np.ndarray
    lift: np.ndarray
    rst_xyz: np.ndarray
    jacobian: np.ndarray
    normals: np.ndarray
    face_scale: np.ndarray
    epsilon: np.ndarray
    mu: np.ndarray
    impedance: np.ndarray
    neighbor_impedance: np.ndarray
    upwinding: np.ndarray
    mirrors: np.ndarray
    sources: tuple[tuple[np.ndarray, Callable], ...]
    boundary_points: np.ndarray

    @property
    def speed(self) -> np.ndarray:
        """c = 1 / sqrt(epsilon mu) of each element, (K,)."""
        return 1 / np.sqrt(self.epsilon * self.mu)


def volume(operator: Operator, u: np.ndarray) -> np.ndarray:
    """(curl H, -curl E), the equations inside the elements.

    u = (E, H) has shape (6, K, Np).
    """
    D = operator.derivative.transpose(0, 2, 1)
    du_dr = u[:, None] @ D  # (6, 3, K, Np)
    du_dx = np.einsum("kid,aikm->adkm", operator.rst_xyz, du_dr)
    return np.concatenate([curl(du_dx[3:]), -curl(du_dx[:3])])


def jumps(
    operator: Operator,
    u: np.ndarray,
    data: np.ndarray,
) -> np.ndarray:
    """u^+ - u^- at the face nodes, (6, K, 4, Nfp).

    `data` is what ``boundary_data`` returns.
    """
    flat = u.reshape(6, -1)
    interior = flat[:, operator.trace.interior]  # u^-
    exterior = flat[:, operator.trace.exterior]  # u^+
    k, f = operator.trace.boundary_faces.T
    # m_E three times, then m_H three times.
    mirrors = np.repeat(operator.mirrors.T, 3, axis=0)
    exterior[:, k, f] = mirrors[..., None] * interior[:, k, f] + data
    return exterior - interior


def fluxes(operator: Operator, jump: np.ndarray) -> np.ndarray:
    """n.(F - F*) at the face nodes, (6, K, 4, Nfp).

    klockner2009, section 6, with Z = sqrt(mu / epsilon) and Y = 1 / Z:

    1/2 ( {Z}^-1 n x ( Z^+ [H] - a n x [E]),
          {Y}^-1 n x (-Y^+ [E] - a n x [H]) ).
    """
    n = np.moveaxis(operator.normals, 2, 0)[..., None]  # (3, K, 4, 1)
    Z = operator.impedance[..., None]
    Zp = operator.neighbor_impedance[..., None]
    a = operator.upwinding[..., None]
    Y, Yp = 1 / Z, 1 / Zp
    E, H = jump[:3], jump[3:]
    flux_E = cross(n, Zp * H - a * cross(n, E)) / (Z + Zp)
    flux_H = cross(n, -Yp * E - a * cross(n, H)) / (Y + Yp)
    return np.concatenate([flux_E, flux_H])


def lift(operator: Operator, flux: np.ndarray) -> np.ndarray:
    """L^k applied to face values (6, K, 4, Nfp); (6, K, Np).

    L^k is the face mass matrix, the embedding of the faces into the
    element, and the inverse mass matrix.
    """
    scaled = operator.face_scale[..., None] * flux
    return scaled.reshape(*flux.shape[:2], -1) @ operator.lift.T


def outgoing(
    operator: Operator, elements: np.ndarray, faces: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What the upwind flux of a neighbor needs of an element's trace: two numbers of the six.

    With the neighbor's normal n^+ = -n its flux has of this side s = E_t + Z n^+ x H in the first
    equation, where E_t is tangential and Z the own impedance, and -Y n^+ x s in the second. So the
    trace E = s, H = 0 does.

    Parameters
    ----------
    operator : Operator
        With the upwind flux.
    elements, faces : (m,) ints

    Returns
    -------
    pack : (m, 2, 6) float64
        The components of s along two tangents.
    unpack : (m, 6, 2) float64
        A trace with which the neighbor's flux is the same.

    Raises
    ------
    ValueError
        For the central flux.
    """
    if operator.flux != "upwind":
        raise ValueError(f"flux = {operator.flux!r} needs all of a trace; allowed: 'upwind'")
    n = operator.normals[elements, faces].astype(np.float64)
    across = np.eye(3)[np.abs(n).argmin(axis=1)]  # not along n
    first = np.cross(n, across)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(n, first)
    Z = operator.impedance[elements, faces, None].astype(np.float64)
    tangents = np.stack([first, second], axis=1)
    turned = np.stack([Z * second, -Z * first], axis=1)  # s.t = E.t + Z H.(t x n^+)
    pack = np.concatenate([tangents, turned], axis=2)
    unpack = np.zeros((len(n), 6, 2))
    unpack[:, :3] = tangents.swapaxes(1, 2)
    return pack, unpack


def rhs(
    operator: Operator,
    u: np.ndarray,
    t: float = 0.0,
) -> np.ndarray:
    """du/dt of the semi-discrete equations, (6, K, Np).

    klockner2009, equation (4).
    """
    jump = jumps(operator, u, boundary_data(operator, t))
    flux = fluxes(operator, jump)
    del jump  # as large as a state, or larger
    total = volume(operator, u) + lift(operator, flux)
    material = np.stack(3 * [operator.epsilon] + 3 * [operator.mu])
    return total / material[..., None]


def boundary_data(operator: Operator, t: float) -> np.ndarray:
    """g in u^+ = M u^- + g, unknowns on the boundary faces, (6, nb, Nfp).

    Raises
    ------
    ValueError
        If a boundary function returns another number of fields.
    """
    data = np.zeros((6, *operator.boundary_points.shape[1:]), operator.lift.dtype)
    return given_fields(
        operator.sources, operator.boundary_points, t, data,
        lambda values, shape: operator.basis.face_from_nodal(as_fields(values, shape)),
    )  # fmt: skip


as_fields = partial(stacked_fields, names=FIELDS, equations="Maxwell's equations")
"""``as_fields(values, shape)``: the six fields that a function of space returned, (6, *shape)."""


def assemble(
    mesh: Mesh,
    element: NodalElement,
    flux: str = "upwind",
    epsilon: float | np.ndarray = 1.0,
    mu: float | np.ndarray = 1.0,
    boundary: str | Callable | dict[str, str | Callable] = "pec",
    dtype: str = "float64",
    basis: str = "nodal",
) -> Operator:
    """Compute everything that does not change in time.

    Parameters
    ----------
    mesh, element
        Of three dimensions.
    flux : {"upwind", "central"}
    epsilon, mu : number or (K,) array
        Positive.
    boundary : condition or dict
        For each name in ``mesh.boundary`` a condition: "pec", "absorbing", a function of
        (x, y, z, t) that returns the six fields coming in from outside, or a `Scatterer`. A
        condition alone stands for all names.
    dtype : {"float32", "float64"}
        Type of the arrays; they are computed in float64.
    basis : {"nodal", "bernstein"}
        Of the unknowns; that of Bernstein up to order 15.

    Raises
    ------
    TypeError, ValueError
        If a dimension, the basis, the flux, a material or a boundary is not as above, or a face has
        two conditions.
    """
    for name, value in (("mesh", mesh), ("element", element)):
        if value.dim != 3:
            raise ValueError(f"{name}.dim = {value.dim}; Maxwell's equations here have 3")
    check_choice("flux", flux, FLUXES)
    check_choice("basis", basis, BASES)
    epsilon = material("epsilon", epsilon, mesh.K)
    mu = material("mu", mu, mesh.K)
    geometry = geometric_factors(mesh)
    connectivity = trace(mesh, element)
    k, f = connectivity.boundary_faces.T

    Z = np.sqrt(mu / epsilon)
    impedance = np.repeat(Z[:, None], 4, axis=1)
    neighbor_impedance = Z[mesh.neighbors]
    neighbor_impedance[k, f] = impedance[k, f]
    upwinding = np.full((mesh.K, 4), float(flux == "upwind"))
    mirrors = np.zeros((len(k), 2))
    sources = []
    for condition, faces in conditions_of_faces(mesh, boundary):
        check_condition(condition, CONDITIONS)
        mirrors[faces] = keeps(condition)
        if keeps(condition) == (0.0, 0.0):
            upwinding[k[faces], f[faces]] = 1.0
        if callable(condition):
            sources.append((faces, condition))

    points = nodes_xyz(mesh, element.nodes, k)
    unknowns = basis_of(basis, element, dtype)
    derivative, lift_matrix = unknowns.matrices()
    return Operator(
        mesh=mesh,
        element=element,
        basis=unknowns,
        flux=flux,
        trace=connectivity,
        derivative=derivative,
        lift=lift_matrix,
        rst_xyz=geometry.rst_xyz.astype(dtype),
        jacobian=geometry.jacobian,
        normals=geometry.normals.astype(dtype),
        face_scale=geometry.face_scale.astype(dtype),
        epsilon=epsilon.astype(dtype),
        mu=mu.astype(dtype),
        impedance=impedance.astype(dtype),
        neighbor_impedance=neighbor_impedance.astype(dtype),
        upwinding=upwinding.astype(dtype),
        mirrors=mirrors.astype(dtype),
        sources=tuple(sources),
        boundary_points=points[:, np.arange(len(k))[:, None], element.face_nodes[f]],
    )
