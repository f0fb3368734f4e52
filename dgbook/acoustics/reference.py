"""The operator in plain NumPy, line by line as chan2015 writes it, in either basis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from dgbook.acoustics.problem import CONDITIONS, FIELDS, FLUXES, flux_weights, mirror
from dgbook.arguments import check_choice
from dgbook.element import NodalElement
from dgbook.mesh import Mesh, geometric_factors, nodes_xyz
from dgbook.nodal.basis import BASES, NodalBasis, basis_of
from dgbook.nodal.bernstein import BernsteinBasis
from dgbook.nodal.boundary import check_condition, conditions_of_faces, given_fields, stacked_fields
from dgbook.nodal.media import material
from dgbook.nodal.trace import Trace, trace


@dataclass(frozen=True, eq=False)
class Operator:
    """What the semi-discrete equations need; K elements, Np unknowns, Nfp on each of 4 faces.

    Unknowns are nodal values or control points; both have the same numbers, and on a face the jump
    of the unknowns is that of the trace, in either.

    Attributes
    ----------
    mesh : Mesh
    basis : NodalBasis or BernsteinBasis
        Derivatives and lift in the reference element.
    flux : str
        "upwind", "penalty" or "central".
    trace : Trace
        Which unknown lies opposite which.
    rst_xyz : (K, 3, 3)
        ``[k, i, d]`` is dr_i/dx_d.
    jacobian : (K,) float64
        Determinant of dx/dr.
    normals : (K, 4, 3)
        n, outward unit normals.
    face_scale : (K, 4)
        Fs = sJ / J; the gradient of barycentric coordinate f is -n_f Fs_f / 2.
    kappa, rho : (K,)
        Bulk modulus and density of each element.
    weights : (4, K, 4)
        a, b, c, d of ``problem.flux_weights``, without kappa and rho. On boundaries that let waves
        out they are always those of upwind: a central flux would reflect them.
    mirrors : (nb, 2)
        m_p and m_v on each face of ``trace.boundary_faces``, see ``problem.mirror``.
    sources : tuple of (indices, function)
        For boundary faces with given fields: which of the nb, and the function of (x, y, z, t) that
        returns g.
    boundary_points : (3, nb, Nfp) float64
        Coordinates of the nodes on the boundary.
    """

    mesh: Mesh
    basis: NodalBasis | BernsteinBasis
    flux: str
    trace: Trace
    rst_xyz: np.ndarray
    jacobian: np.ndarray
    normals: np.ndarray
    face_scale: np.ndarray
    kappa: np.ndarray
    rho: np.ndarray
    weights: np.ndarray
    mirrors: np.ndarray
    sources: tuple[tuple[np.ndarray, Callable], ...]
    boundary_points: np.ndarray

    @property
    def order(self) -> int:
        """N."""
        return self.basis.element.order

    @property
    def speed(self) -> np.ndarray:
        """c = sqrt(kappa / rho) of each element, (K,)."""
        return np.sqrt(self.kappa / self.rho)

    @property
    def impedance(self) -> np.ndarray:
        """Z = rho c = sqrt(kappa rho) of each element, (K,)."""
        return np.sqrt(self.kappa * self.rho)

    @property
    def stiffness(self) -> np.ndarray:
        """How much the flux shortens the step that waves allow, (K, 4), 1 or more.

        It is max(1, c / Z^-), with the c of the flux, the rate at which jumps of n.v decay over
        that at which waves cross the element. Of upwind and central it is 1; of penalty
        (1 + Z^+/Z^-) / 4 if Z^+ > 3 Z^-.
        """
        return np.maximum(1, self.weights[2] / self.impedance[:, None])

    @property
    def rank_one(self) -> np.ndarray:
        """a, b and r on every face, (3, K, 4): all that a kernel needs of upwind and penalty.

        flux_p = s and flux_v = -r n s with s = a [p] - b n.[v], see ``problem.flux_weights``.

        Raises
        ------
        ValueError
            If the flux is central: it lifts two scalars a face.
        """
        if self.flux == "central":
            raise ValueError("flux = 'central' has rank 2; allowed: 'upwind', 'penalty'")
        a, b, c, _ = self.weights
        return np.stack([a, b, c / b])


def volume(operator: Operator, u: np.ndarray) -> np.ndarray:
    """(-div v, -grad p), the equations inside the elements.

    u = (p, v) has shape (4, K, Np).
    """
    du_dr = operator.basis.differentiate(u)  # (4, 3, K, Np)
    gradient = np.einsum("kid,ikm->dkm", operator.rst_xyz, du_dr[0])
    divergence = np.einsum("kid,dikm->km", operator.rst_xyz, du_dr[1:])
    return -np.concatenate([divergence[None], gradient])


def jumps(operator: Operator, u: np.ndarray, data: np.ndarray) -> np.ndarray:
    """[u] = u^+ - u^- on the faces, (4, K, 4, Nfp); `data` as ``boundary_data`` returns it."""
    flat = u.reshape(4, -1)
    interior = flat[:, operator.trace.interior]  # u^-
    exterior = flat[:, operator.trace.exterior]  # u^+
    k, f = operator.trace.boundary_faces.T
    mirrors = operator.mirrors.T[[0, 1, 1, 1]]
    exterior[:, k, f] = mirrors[..., None] * interior[:, k, f] + data
    return exterior - interior


def fluxes(operator: Operator, jump: np.ndarray) -> np.ndarray:
    """n.(F - F*) on the faces, (4, K, 4, Nfp).

    chan2015, equations (1) and (2):

    flux_p = a [p] - b n.[v],    flux_v = n (c n.[v] - d [p]).
    """
    n = np.moveaxis(operator.normals, 2, 0)[..., None]  # (3, K, 4, 1)
    a, b, c, d = operator.weights[..., None]
    p, normal = jump[0], (n * jump[1:]).sum(axis=0)
    flux_p = a * p - b * normal
    flux_v = n * (c * normal - d * p)
    return np.concatenate([flux_p[None], flux_v])


def lift(operator: Operator, flux: np.ndarray) -> np.ndarray:
    """Fs L applied to face values (4, K, 4, Nfp); (4, K, Np).

    L is the face mass matrix and the inverse mass matrix.
    """
    return operator.basis.lift(operator.face_scale[..., None] * flux)


def outgoing(
    operator: Operator, elements: np.ndarray, faces: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What the flux of a neighbor needs of an element's trace: one number of the four.

    The flux has rank 1. With the own outward normal n and r = c / b of ``problem.flux_weights``,
    which is the same number that makes -b n^+.v of a p in the neighbor's s, it takes q = p + r n.v
    for p and nothing for v.

    Parameters
    ----------
    operator : Operator
        With the upwind or the penalty flux.
    elements, faces : (m,) ints

    Returns
    -------
    pack : (m, 1, 4) float64
        q = pack u.
    unpack : (m, 4, 1) float64
        A trace with which the neighbor's flux is the same.

    Raises
    ------
    ValueError
        For the central flux.
    """
    r = operator.rank_one[2, elements, faces].astype(np.float64)
    normal = operator.normals[elements, faces].astype(np.float64)
    pack = np.concatenate([np.ones((len(r), 1)), r[:, None] * normal], axis=1)
    unpack = np.repeat(np.eye(4)[None, :, :1], len(r), axis=0)
    return pack[:, None], unpack


def rhs(
    operator: Operator,
    u: np.ndarray,
    t: float = 0.0,
) -> np.ndarray:
    """du/dt of the semi-discrete equations, (4, K, Np).

    chan2015, equation (3):

        (1/kappa) p_t = -div v  + LIFT(Fs flux_p),
        rho       v_t = -grad p + LIFT(Fs flux_v).

    **Energy.** With E = 1/2 int p^2 / kappa + rho |v|^2, multiply by
    (p, v) and integrate. The volume terms are an exact divergence,
    -div(p v), and in the sum over both sides of a face all terms cancel
    except for the penalties:

        dE/dt = - sum_{interior faces} int a [p]^2 + c (n.[v])^2
                - sum_{soft} int 2 a p^2 - sum_{rigid} int 2 c (n.v)^2
                - sum_{absorbing} int a p^2 + c (n.v)^2.           (E)

    E never grows. Without a penalty, as in the central flux, where
    a = c = 0, walls conserve it. The cancellation needs
    b^- + b^+ = d^- + d^+ = 1 and b^- = d^+, as all three fluxes have.
    """
    jump = jumps(operator, u, boundary_data(operator, t))
    flux = fluxes(operator, jump)
    del jump  # as large as a state, or larger
    total = volume(operator, u) + lift(operator, flux)
    scale = np.stack([operator.kappa, *3 * [1 / operator.rho]])
    return scale[..., None] * total


def boundary_data(operator: Operator, t: float) -> np.ndarray:
    """g in u^+ = M u^- + g, unknowns on the boundary faces, (4, nb, Nfp).

    Raises
    ------
    ValueError
        If a boundary function returns another number of fields.
    """
    data = np.zeros((4, *operator.boundary_points.shape[1:]), operator.weights.dtype)
    return given_fields(
        operator.sources, operator.boundary_points, t, data,
        lambda values, shape: operator.basis.face_from_nodal(as_fields(values, shape)),
    )  # fmt: skip


as_fields = partial(stacked_fields, names=FIELDS, equations="the acoustic equations")
"""``as_fields(values, shape)``: the four fields that a function of space returned, (4, *shape)."""


def assemble(
    mesh: Mesh,
    order: int,
    basis: str = "nodal",
    flux: str = "upwind",
    kappa: float | np.ndarray = 1.0,
    rho: float | np.ndarray = 1.0,
    boundary: str | Callable | dict[str, str | Callable] = "soft",
    dtype: str = "float64",
) -> Operator:
    """Compute everything that does not change in time.

    Parameters
    ----------
    mesh : Mesh
        Of tetrahedra.
    order : int
        N, 1 to 15.
    basis : {"nodal", "bernstein"}
    flux : {"upwind", "penalty", "central"}
    kappa, rho : number or (K,) array
        Positive.
    boundary : condition or dict
        For each name in ``mesh.boundary`` a condition: "soft", "rigid", "absorbing", or a function
        of (x, y, z, t) that returns the four fields coming in from outside. A condition alone
        stands for all names.
    dtype : {"float32", "float64"}
        Type of the arrays; they are computed in float64.

    Raises
    ------
    TypeError, ValueError
        If the dimension, the order, the basis, the flux, a material or a boundary is not as above,
        or a face has two conditions.
    """
    if mesh.dim != 3:
        raise ValueError(f"mesh.dim = {mesh.dim}; the acoustic equations here have 3")
    check_choice("basis", basis, BASES)
    check_choice("flux", flux, FLUXES)
    kappa = material("kappa", kappa, mesh.K)
    rho = material("rho", rho, mesh.K)
    # Control points are numbered as nodes are: either basis has the trace of the nodal element.
    element = NodalElement(3, order)
    connectivity = trace(mesh, element)
    geometry = geometric_factors(mesh)
    k, f = connectivity.boundary_faces.T

    impedance = np.sqrt(kappa * rho)
    interior = np.repeat(impedance[:, None], 4, axis=1)
    neighbor = impedance[mesh.neighbors]
    neighbor[k, f] = interior[k, f]
    weights = flux_weights(flux, interior, neighbor)
    mirrors = np.zeros((len(k), 2))
    sources = []
    for condition, faces in conditions_of_faces(mesh, boundary):
        check_condition(condition, CONDITIONS)
        mirrors[faces] = mirror(condition)
        if mirror(condition) == (0.0, 0.0):
            outside = interior[k[faces], f[faces]]
            weights[:, k[faces], f[faces]] = flux_weights("upwind", outside, outside)
        if callable(condition):
            sources.append((faces, condition))

    points = nodes_xyz(mesh, element.nodes, k)
    return Operator(
        mesh=mesh,
        basis=basis_of(basis, element, dtype),
        flux=flux,
        trace=connectivity,
        rst_xyz=geometry.rst_xyz.astype(dtype),
        jacobian=geometry.jacobian,
        normals=geometry.normals.astype(dtype),
        face_scale=geometry.face_scale.astype(dtype),
        kappa=kappa.astype(dtype),
        rho=rho.astype(dtype),
        weights=weights.astype(dtype),
        mirrors=mirrors.astype(dtype),
        sources=tuple(sources),
        boundary_points=points[:, np.arange(len(k))[:, None], element.face_nodes[f]],
    )
