"""What limits a time step, by Arnoldi's method with a solver's own right-hand side.

Eigenvalues alone do not: where what leaves a domain does not come back, as a flow through an open
channel, the eigenvalues of an upwind operator are those of single elements, and a step that is
stable by them lets a disturbance grow by orders of magnitude before it has left. The field of
values in the energy norm, all <u, L u> of unit length, knows better: where R is bounded by one on
it, no number of steps amplifies anything by more than 2.42 (Crouzeix and Palencia). It holds the
eigenvalues, and for waves between walls is hardly larger than what they span.

References
----------
Crouzeix and Palencia, "The numerical range is a (1 + sqrt 2)-spectral set", SIAM J. Matrix Anal.
Appl. 38, 2017. Stewart, "A Krylov-Schur algorithm for large eigenproblems", SIAM J. Matrix Anal.
Appl. 23, 2002.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import schur

from dgbook.gpu import Device

VECTORS = 20
"""Of the basis, at most: so many states are in memory beside the run's own."""
KEPT = 8
"""How many of them a restart keeps, the ones that span the most critical eigenvectors."""
TOLERANCE = 1e-2
"""Of the critical eigenvalue: its residual in these units has converged."""
MOST_PRODUCTS = 100
"""Right-hand sides after which the search ends: eigenvalues that do not converge limit nothing."""
INDEPENDENT = 1e-8
"""Of vectors, as a share of the largest square: what is less is rounding."""
DIRECTIONS = 121
"""In which the field of values is measured, from one real direction to the other."""


class Found(NamedTuple):
    """What the search found.

    Attributes
    ----------
    field : (n,) complex
        Points of the boundary of the field of values, of the operator on the space searched. Below
        the real axis it is the same.
    eigenvalues : (m,) complex
        Approximations, of which the most critical one has converged or `products` were too many.
    products : int
        Right-hand sides that it took.
    """

    field: np.ndarray
    eigenvalues: np.ndarray
    products: int


def field_of_values(
    apply: Callable[[Any, Any], None],
    start: Any,
    steps: Callable[[np.ndarray], np.ndarray],
    energies: Callable[[Any], np.ndarray],
    device: Device,
) -> Found:
    """Approximate the field of values of a real operator where it allows the shortest steps.

    Arnoldi's method finds the outermost eigenvalues first. As the method of Krylov and Schur it
    restarts with what belongs to the most critical of them, so that few vectors are in memory. When
    the most critical one has converged, or the search has taken long enough, the field of values is
    that of the operator on the vectors in memory.

    Parameters
    ----------
    apply : function
        ``apply(x, y)`` sets y = L x; x and y are arrays of the device of the shape of `start`.
    start : array of the device
        The first vector, which should be random: it must have a part of every eigenvector.
    steps : function
        ``steps(eigenvalues)`` is the longest step that each of them allows.
    energies : function
        ``energies(rows)`` are the inner products of vectors by twos in the energy norm, on the
        host: (k, k) of k rows.
    device : Device
        Where the vectors are.
    """
    n = start.size
    most = min(VECTORS, n)
    basis = device.zeros((most + 1, n), start.dtype)
    x, y = device.zeros(start.shape, start.dtype), device.zeros(start.shape, start.dtype)
    basis[0] = start.reshape(-1) / device.sum_of_squares(start) ** 0.5
    S = np.zeros((most + 1, most))  # L basis[:m] = S[:m + 1, :m]^T basis[:m + 1]
    kept, products = 0, 0
    while True:
        m = most
        for j in range(kept, most):
            x.reshape(-1)[:] = basis[j]
            apply(x, y)
            products += 1
            w = basis[j + 1]
            w[:] = y.reshape(-1)
            S[: j + 1, j], S[j + 1, j] = _orthogonalize(basis[: j + 1], w, device)
            if S[j + 1, j] <= 1e-6 * np.abs(S[: j + 1, j]).max():
                m = j + 1  # the space is invariant: its eigenvalues are exact
                break
            w /= float(S[j + 1, j])
        ritz, vectors = np.linalg.eig(S[:m, :m])
        critical = int(np.argmin(steps(ritz)))
        residual = abs(S[m, :m] @ vectors[:, critical])
        converged = m < most or m == n or residual <= TOLERANCE * abs(ritz[critical])
        if converged or products >= MOST_PRODUCTS:
            field = _boundary(S[: m + 1, :m], energies(basis[: m + 1]))
            return Found(field, ritz, products)
        T, Q, kept = _critical_first(S[:m, :m], steps, np.sort(steps(ritz))[KEPT - 1])
        _combine(basis, Q[:, :kept], m, device)
        last = S[m, :m] @ Q[:, :kept]
        S[:] = 0
        S[:kept, :kept], S[kept, :kept] = T[:kept, :kept], last


def _boundary(S: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Points of the field of values of L on v_1 ... v_m, where L v_j = sum_i S_ij v_i.

    G are the inner products of v_1 ... v_m+1.
    """
    m = S.shape[1]
    scale = np.sqrt(np.diag(G)[:m])  # energies on small and on large elements differ widely
    squares, vectors = np.linalg.eigh(G[:m, :m] / scale / scale[:, None])
    # Coefficients of an orthonormal basis, without what rounding leaves of the space.
    seen = squares > INDEPENDENT * squares[-1]
    Q = vectors[:, seen] / np.sqrt(squares[seen]) / scale[:, None]
    H = Q.T @ (G @ S)[:m] @ Q
    turns = np.exp(1j * np.linspace(0, np.pi, DIRECTIONS))[:, None, None]
    farthest = np.linalg.eigh((turns * H + (turns * H).conj().swapaxes(1, 2)) / 2)[1][..., -1]
    return np.einsum("ni,ij,nj->n", farthest.conj(), H, farthest)


def _critical_first(
    H: np.ndarray, steps: Callable[[np.ndarray], np.ndarray], longest: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """H = Q T Q^T, the eigenvalues of T that allow no longer a step first, and their number."""

    def critical(real: float, imaginary: float) -> bool:
        return steps(np.array([complex(real, imaginary)]))[0] <= longest * (1 + 1e-9)

    return schur(H, output="real", sort=critical)


def _orthogonalize(basis: Any, w: Any, device: Device) -> tuple[np.ndarray, float]:
    """Make w orthogonal to the basis, in place; its coefficients, and the norm that is left."""
    before = device.sum_of_squares(w) ** 0.5
    coefficients = device.dots(basis, w)
    device.subtract(basis, coefficients, w)
    after = device.sum_of_squares(w) ** 0.5
    if after < 0.1 * before:  # much has been canceled: once more
        again = device.dots(basis, w)
        device.subtract(basis, again, w)
        coefficients, after = coefficients + again, device.sum_of_squares(w) ** 0.5
    return coefficients, after


def _combine(basis: Any, Q: np.ndarray, m: int, device: Device) -> None:
    """Replace the basis, m vectors and the next one, by their combinations Q and the next one."""
    kept = Q.shape[1]
    new = device.zeros((kept, basis.shape[1]), basis.dtype)
    for i in range(kept):
        device.subtract(basis[:m], -Q[:, i], new[i])
    basis[kept] = basis[m]
    basis[:kept] = new
