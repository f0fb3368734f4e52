"""What happens inside the elements: residuals, their derivatives, and the elimination of u.

With hhat = f(uhat, q) . n + S(uhat) (u - uhat), and q the gradient of `discretization`, the method
asks for

    R_u = -(f(u, q), grad w) + <hhat, w> - (s, w) = 0    on every element,
    R_h = sum over the sides of a face of -<hhat, mu> = 0    on every face,

and for <b, mu> = 0 on boundary faces (see `problem.Affine`). Newton's method linearizes both in the
local unknowns z; R_u knows only its own element's, so that its u can be eliminated there.

All functions take some of the elements at once, as stacks of small matrices: no loop over elements.
Their lines run on a GPU's arrays as well (`discretization.on_device`). On processor cores the
kernels of `cores` take over tangents and elimination, of which these lines define what is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dgbook.gpu.libraries import batched_solve
from dgbook.hdg.discretization import Discretization, Points
from dgbook.hdg.problem import Problem


@dataclass(frozen=True, eq=False)
class State:
    """A state of the method.

    Attributes
    ----------
    u : (n_c, K, Np) array
    trace : (faces, m) array
        Component-major on each face: unknown c Nfp + j is component c at node j.
    """

    u: np.ndarray
    trace: np.ndarray


@dataclass(frozen=True, eq=False)
class Condensed:
    """Some elements after the elimination of u.

    Attributes
    ----------
    matrix : (k, n_c, nf Nfp, n_c, nf Nfp)
        H = K_hh - K_hu K_uu^-1 K_uh: what the element adds to the trace system.
    rhs : (k, n_c, nf Nfp)
        -(R_h - K_hu K_uu^-1 R_u).
    response : (k, n_c Np, n_c nf Nfp)
        K_uu^-1 K_uh.
    offset : (k, n_c Np)
        K_uu^-1 R_u. The change of u is -(offset + response times the change of the trace).
    """

    matrix: np.ndarray
    rhs: np.ndarray
    response: np.ndarray
    offset: np.ndarray


# -- the local unknowns ------------------------------------------------------------------------


def local_unknowns(d: Discretization, state: State, some: slice = slice(None)) -> np.ndarray:
    """z of some elements, (n_c, k, Nz)."""
    return np.concatenate([state.u[:, some], local_traces(d, state.trace, some)], axis=2)


def local_traces(d: Discretization, trace: np.ndarray, some: slice = slice(None)) -> np.ndarray:
    """What some elements have of a vector (faces, m), in their own order, (n_c, k, nf Nfp)."""
    nodes_first = trace.reshape(len(trace), d.n_c, -1).transpose(0, 2, 1)
    numbers, to_face = d.faces.numbers[some], d.faces.to_face[some]
    traces = nodes_first[numbers[:, :, None], to_face]  # (k, nf, Nfp, n_c)
    return traces.transpose(3, 0, 1, 2).reshape(d.n_c, len(numbers), -1)


def gradient(d: Discretization, z: np.ndarray, some: slice = slice(None)) -> np.ndarray:
    """q at the nodes, (n_c, dim, k, Np)."""
    return gradient_at(d, z, d.tables.gradient, some)


def gradient_at(d: Discretization, z: np.ndarray, table: np.ndarray, some: slice) -> np.ndarray:
    """q at the points of a table Q_a z, (dim, points, Nz): (n_c, dim, k, points)."""
    parts = z[None] @ table.transpose(0, 2, 1)[:, None]  # (a, n_c, k, points)
    rx = d.rx[..., some, None]
    return np.stack([_along(rx[:, e], parts) for e in range(d.mesh.dim)], axis=1)


def _along(direction: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The components of vectors (dim, ...) along a direction (dim, ...), which has no unit length.

    As sums of two or three products: a GPU's library would take each point for a small matrix.
    """
    return sum(x * v for x, v in zip(direction, vectors, strict=True))


@dataclass(frozen=True, eq=False)
class FaceValues:
    """What is known at the points of face f of some elements.

    Attributes
    ----------
    points : Points
    weights : (k, Nqf)
        Times sJ.
    normal : (dim, k, 1)
    a : (n, k, Nqf)
        The problem's coefficients.
    u, trace, q : (n_c, k, Nqf) and (n_c, dim, k, Nqf)
    """

    points: Points
    weights: np.ndarray
    normal: np.ndarray
    a: np.ndarray
    u: np.ndarray
    trace: np.ndarray
    q: np.ndarray


def on_face(d: Discretization, z: np.ndarray, f: int, some: slice) -> FaceValues:
    """The local unknowns z, (n_c, k, Nz), at the points of face f."""
    points = d.tables.faces[f]
    return FaceValues(
        points=points,
        weights=d.face_jacobian[f, some, None] * points.weights,
        normal=d.normals[f][:, some, None],
        a=d.face_coefficients[f][:, some],
        u=z @ points.value.T,
        trace=z @ points.trace.T,
        q=gradient_at(d, z, points.gradient, some),
    )


def numerical_flux(d: Discretization, at: FaceValues) -> np.ndarray:
    """hhat = f(uhat, q) . n + S(uhat) (u - uhat), (n_c, k, Nqf)."""
    f = d.problem.flux(at.trace, at.q, at.a)
    S = d.problem.stabilization(at.trace, at.normal, at.a)
    return (f * at.normal).sum(axis=1) + S * (at.u - at.trace)


# -- residuals ---------------------------------------------------------------------------------


def residual(d: Discretization, z: np.ndarray, some: slice = slice(None)) -> np.ndarray:
    """R of some elements, (n_c, k, Nz): first R_u, then the part of each face's R_h.

    `z` is that of these elements.
    """
    tables, Np = d.tables, d.element.Np
    volume = tables.volume
    R = np.zeros_like(z)
    u, q = z @ volume.value.T, gradient_at(d, z, volume.gradient, some)
    f = d.problem.flux(u, q, d.coefficients[:, some])
    weights = d.jacobian[some, None] * volume.weights
    for a in range(d.mesh.dim):
        along = _along(d.rx[a, :, some, None], f.swapaxes(0, 1))
        R[..., :Np] -= (weights * along) @ tables.dphi[a]
    R -= (weights * d.source[:, some]) @ volume.value
    for face in range(d.mesh.dim + 1):
        at = on_face(d, z, face, some)
        hhat = numerical_flux(d, at)
        R += (at.weights * hhat) @ at.points.value
        b = -hhat
        rows, bc = _boundary_rows(d, face, some)
        if len(rows):
            P, Q = d.conditions.flux[:, :, bc], d.conditions.trace[:, :, bc]
            b[:, rows] = _apply(P, hhat[:, rows]) + _apply(Q, at.trace[:, rows])
            b[:, rows] += d.conditions.data[:, bc]
        R += (at.weights * b) @ at.points.trace
    return R


def _boundary_rows(d: Discretization, face: int, some: slice) -> tuple[Any, Any]:
    """Which of some elements have a condition on this face, and the rows of ``d.conditions``."""
    number = d.boundary_number[some, face]
    rows = np.flatnonzero(number >= 0)
    return rows, number[rows]


def _apply(matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
    return (matrix * values).sum(axis=1)


# -- derivatives -------------------------------------------------------------------------------


def tangent(d: Discretization, z: np.ndarray, some: slice = slice(None)) -> np.ndarray:
    """dR/dz of some elements, (n_c, n_c, k, Nz, Nz): ``[c, b, k, j, i]`` = dR_c,i / dz_b,j.

    Arguments are those of `residual`.
    """
    T = np.zeros((d.n_c, d.n_c, z.shape[1], d.Nz, d.Nz), like=z)
    _add_volume(d, z, some, T)
    for face in range(d.mesh.dim + 1):
        _add_face(d, z, some, face, T)
    return T


def _add_volume(d: Discretization, z: np.ndarray, some: slice, T: np.ndarray) -> None:
    """The derivative of -(f, grad w): f along each g_a, by u and by q along each g_b."""
    points, rx = d.tables.volume, d.rx[..., some, None]
    u, q = z @ points.value.T, gradient_at(d, z, points.gradient, some)
    by_u, by_q = _derivatives(d.problem, u, q, d.coefficients[:, some])
    J = d.jacobian[some, None]
    for a in range(d.mesh.dim):
        g = J * rx[a]
        A, C = _along(g, by_u.swapaxes(0, 1)), _by_parts(_along(g, by_q.swapaxes(0, 1)), rx)
        W = _rows(A, points.value) + sum(map(_rows, C, points.gradient))
        T[..., : d.element.Np] -= _tested(W, points.weights, d.tables.dphi[a])


def _add_face(d: Discretization, z: np.ndarray, some: slice, face: int, T: np.ndarray) -> None:
    """The derivatives of <hhat, w> and of <b, mu> on one face of every element."""
    problem, Np, Nfp = d.problem, d.element.Np, d.element.Nfp
    at = on_face(d, z, face, some)
    points, S = at.points, problem.stabilization(at.trace, at.normal, at.a)
    by_u, by_q = _derivatives(problem, at.trace, at.q, at.a)
    A = _along(at.normal, by_u.swapaxes(0, 1))  # by the trace
    dS = problem.stabilization_derivative(at.trace, at.normal, at.a)
    if dS is not None:
        A += dS * (at.u - at.trace)[:, None]
    for c in range(d.n_c):
        A[c, c] -= S[c]
    C = _by_parts(_along(at.normal, by_q.swapaxes(0, 1)), d.rx[..., some, None])
    W = _rows(A, points.trace) + sum(map(_rows, C, points.gradient))
    for c in range(d.n_c):
        W[c, c] += _rows(S[c], points.value)
    sJ = d.face_jacobian[face, some, None, None]
    W *= sJ
    T[..., :Np] += _tested(W, points.weights, points.value[:, :Np])

    b = -W
    rows, bc = _boundary_rows(d, face, some)
    if len(rows):
        P, Q = d.conditions.flux[:, :, bc], d.conditions.trace[:, :, bc]
        P = P.transpose(1, 0, 2, 3)[:, :, None, :, None]
        b[:, :, rows] = _along(P, W[:, :, rows])
        b[:, :, rows] += sJ[rows] * _rows(Q, points.trace)
    columns = slice(Np + face * Nfp, Np + (face + 1) * Nfp)
    T[..., columns] += _tested(b, points.weights, points.trace[:, columns])


def _by_parts(by_q: np.ndarray, rx: np.ndarray) -> list[np.ndarray]:
    """A derivative by q, (n_c, n_c, dim, k, q), as derivatives by the parts of q along each g_h."""
    return [_along(g, by_q.transpose(2, 0, 1, 3, 4)) for g in rx]


def _derivatives(
    problem: Problem, u: np.ndarray, q: np.ndarray, a: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The derivatives of f, with all their points."""
    by_u, by_q = problem.flux_derivatives(u, q, a)
    return (
        np.broadcast_to(by_u, (*by_u.shape[:3], *u.shape[1:])),
        np.broadcast_to(by_q, (*by_q.shape[:4], *u.shape[1:])),
    )


def _rows(factor: np.ndarray, table: np.ndarray) -> np.ndarray:
    """factor (..., q) times table (q, j): (..., j, q)."""
    return factor[..., None, :] * table.T


def _tested(W: np.ndarray, weights: np.ndarray, test: np.ndarray) -> np.ndarray:
    """The integrals of W (..., j, q) times each test function, test (q, i): (..., j, i).

    One product of matrices for all elements and components.
    """
    product = W.reshape(-1, W.shape[-1]) @ (weights[:, None] * test)
    return product.reshape(*W.shape[:-1], -1)


# -- elimination -------------------------------------------------------------------------------


def condense(
    d: Discretization,
    T: np.ndarray,
    R: np.ndarray,
) -> Condensed:
    """Eliminate u from elements with tangents T and residuals R.

    See `tangent` and `residual`. It takes one call of a batched solver.
    K_uu is (k, n_c Np, n_c Np). It is without q, whose elimination
    needed only a reference mass matrix.
    """
    k, Np = T.shape[2], d.element.Np
    T = T.transpose(2, 0, 4, 1, 3)  # (k, c, i, b, j)
    R = R.transpose(1, 0, 2)

    def block(rows: slice, columns: slice) -> np.ndarray:
        part = T[:, :, rows, :, columns]
        return part.reshape(k, part.shape[1] * part.shape[2], -1)

    inside, outside = slice(0, Np), slice(Np, None)
    r_u = R[..., inside].reshape(k, -1, 1)
    r_h = R[..., outside].reshape(k, -1)
    right = np.concatenate([block(inside, outside), r_u], axis=2)
    solved = batched_solve(block(inside, inside), right)
    K_hu = block(outside, inside)
    H = block(outside, outside) - K_hu @ solved[..., :-1]
    rhs = (K_hu @ solved[..., -1:])[..., 0] - r_h
    n = d.Nz - Np
    return Condensed(
        matrix=H.reshape(k, d.n_c, n, d.n_c, n),
        rhs=rhs.reshape(k, d.n_c, n),
        response=solved[..., :-1],
        offset=solved[..., -1],
    )
