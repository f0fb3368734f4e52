"""The operator in plain NumPy: the strong form of nodal DG, line by line as it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dgbook.element import NodalElement
from dgbook.linear.problem import System, incoming, jump_matrix, mirror
from dgbook.mesh import Mesh, geometric_factors, nodes_xyz
from dgbook.nodal.boundary import conditions_of_faces, given_fields, stacked_fields
from dgbook.nodal.trace import Trace, trace


@dataclass(frozen=True, eq=False)
class Operator:
    """What the semi-discrete equations need; K elements, n fields, dim+1 faces an element.

    Attributes
    ----------
    system : System
    mesh : Mesh
    element : NodalElement
    flux : str
        "upwind" or "central".
    trace : Trace
        Which node lies opposite which.
    matrices : (dim, n, n)
        A_d.
    derivative : (dim, Np, Np)
        D_i, the derivative with respect to the reference coordinate r_i.
    lift : (Np, (dim+1)*Nfp)
    rst_xyz : (K, dim, dim)
        ``[k, i, d]`` is dr_i/dx_d.
    jacobian : (K,)
        Determinant of dx/dr.
    speeds : (K, dim+1)
        Fs times the fastest wave along the normal, the rate at which that face fills the element.
    face_matrix : (K, dim+1, n, n)
        Fs F, the jump matrix of the flux times the face scale.
    mirrors : (nb, n, n)
        M on each face of ``trace.boundary_faces``.
    sources : tuple of (indices, function)
        For boundary faces with given data: which of the nb, and the function of (x, ..., t).
    boundary_points : (dim, nb, Nfp)
        Coordinates of the nodes on the boundary.
    """

    system: System
    mesh: Mesh
    element: NodalElement
    flux: str
    trace: Trace
    matrices: np.ndarray
    derivative: np.ndarray
    lift: np.ndarray
    rst_xyz: np.ndarray
    jacobian: np.ndarray
    speeds: np.ndarray
    face_matrix: np.ndarray
    mirrors: np.ndarray
    sources: tuple[tuple[np.ndarray, Callable], ...]
    boundary_points: np.ndarray


def volume(operator: Operator, u: np.ndarray) -> np.ndarray:
    """- sum_d A_d du/dx_d, the equations inside the elements; u has shape (n, K, Np)."""
    du_dr = u[:, None] @ operator.derivative.transpose(0, 2, 1)  # (n, dim, K, Np)
    du_dx = np.einsum("kid,bikm->bdkm", operator.rst_xyz, du_dr)
    return -np.einsum("dab,bdkm->akm", operator.matrices, du_dx)


def surface(operator: Operator, u: np.ndarray, data: np.ndarray) -> np.ndarray:
    """LIFT(Fs F (u^- - u^+)), what the faces add; `data` as ``boundary_data`` returns it."""
    flat = u.reshape(len(u), -1)
    interior = flat[:, operator.trace.interior]  # u^-, (n, K, dim+1, Nfp)
    exterior = flat[:, operator.trace.exterior]  # u^+
    k, f = operator.trace.boundary_faces.T
    exterior[:, k, f] = np.einsum("cab,bci->aci", operator.mirrors, interior[:, k, f]) + data
    flux = np.einsum("kfab,bkfi->akfi", operator.face_matrix, interior - exterior)
    return flux.reshape(*u.shape[:2], -1) @ operator.lift.T


def rhs(operator: Operator, u: np.ndarray, t: float = 0.0) -> np.ndarray:
    """du/dt of the semi-discrete equations, (n, K, Np)."""
    return volume(operator, u) + surface(operator, u, boundary_data(operator, t))


def boundary_data(operator: Operator, t: float) -> np.ndarray:
    """g in u^+ = M u^- + g at the nodes of the boundary faces, (n, nb, Nfp).

    Raises
    ------
    ValueError
        If a boundary function returns another number of fields.
    """
    shape = (operator.system.n, *operator.boundary_points.shape[1:])
    data = np.zeros(shape, operator.lift.dtype)
    return given_fields(
        operator.sources, operator.boundary_points, t, data,
        lambda values, shape: as_fields(values, operator.system, shape),
    )  # fmt: skip


def as_fields(values, system: System, shape: tuple[int, ...]) -> np.ndarray:
    """What a function of space returned, as an array of shape (n, *shape).

    Parameters
    ----------
    values : sequence of n arrays or numbers
        One for each field; of a single field also the bare array or number.
    system : System
    shape : tuple of int
        The shape of the points at which the function was evaluated.

    Raises
    ------
    ValueError
        If there are not n of them, or one does not have that shape.
    """
    if not isinstance(values, list | tuple) and np.ndim(values) <= len(shape):
        values = [values]
    return stacked_fields(values, shape, system.fields, f"the equations of {system.name!r}")


def assemble(
    mesh: Mesh,
    element: NodalElement,
    system: System,
    flux: str = "upwind",
    boundary: str | Callable | dict[str, str | Callable] | None = None,
    dtype: str = "float64",
) -> Operator:
    """Compute everything that does not change in time.

    Parameters
    ----------
    mesh, element, system
        Of one dimension.
    flux : {"upwind", "central"}
        Between elements and at walls. Where M = 0 (outflow, absorbing, given data) the incoming
        part A_n^- is always taken: with half of A_n, waves could not leave.
    boundary : dict, str or function
        For each name in ``mesh.boundary`` a condition (see ``problem.mirror``), or a function of
        (x, [y, z,] t) that returns the fields outside: given data, u^+ = g. A condition alone
        stands for all names.
    dtype : {"float32", "float64"}
        Type of the arrays; they are computed in float64.

    Raises
    ------
    ValueError
        If dimensions differ, a boundary has no condition or an unknown one, or a face has two.
    """
    if not mesh.dim == element.dim == system.dim:
        raise ValueError(
            f"mesh, element and system have {mesh.dim}, {element.dim} and {system.dim} "
            "dimensions; allowed: one number"
        )
    geometry = geometric_factors(mesh)
    connectivity = trace(mesh, element)
    k, f = connectivity.boundary_faces.T

    face_matrix = jump_matrix(system, geometry.normals, flux)
    mirrors = np.zeros((len(k), system.n, system.n))
    sources = []
    for condition, faces in conditions_of_faces(mesh, boundary):
        normals = geometry.normals[k[faces], f[faces]]
        if callable(condition):
            sources.append((faces, condition))
        else:
            mirrors[faces] = mirror(system, condition, normals)
        if callable(condition) or condition in ("outflow", "absorbing"):
            face_matrix[k[faces], f[faces]] = incoming(system.normal_matrix(normals))

    points = nodes_xyz(mesh, element.nodes, k)
    return Operator(
        system=system,
        mesh=mesh,
        element=element,
        flux=flux,
        trace=connectivity,
        matrices=system.matrices.astype(dtype),
        derivative=element.derivative.astype(dtype),
        lift=element.lift.astype(dtype),
        rst_xyz=geometry.rst_xyz.astype(dtype),
        jacobian=geometry.jacobian,
        speeds=geometry.face_scale * system.speed(geometry.normals),
        face_matrix=(geometry.face_scale[..., None, None] * face_matrix).astype(dtype),
        mirrors=mirrors.astype(dtype),
        sources=tuple(sources),
        boundary_points=points[:, np.arange(len(k))[:, None], element.face_nodes[f]],
    )
