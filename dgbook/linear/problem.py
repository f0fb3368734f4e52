"""Linear hyperbolic systems with constant coefficients: fluxes, walls and exact solutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dgbook.arguments import check_choice, check_range

FLUXES = ("upwind", "central")
CONDITIONS = ("outflow", "absorbing", "wall", "soft")


@dataclass(frozen=True, eq=False)
class System:
    """The system u_t + sum_d A_d u_{x_d} = 0 with constant symmetric matrices A_d.

    Symmetric matrices make it hyperbolic in every direction, and u.u/2 its energy density. A
    system with a symmetriser has them after a change of variables.

    Parameters
    ----------
    name : str
    fields : tuple of str
        Names of the n unknowns.
    matrices : (dim, n, n) array
        A_d, symmetric.
    vector : tuple of int
        The unknowns that are the components of a vector, which a wall turns round; empty if there
        is none.

    Raises
    ------
    ValueError
        If the shapes do not fit each other, or a matrix is not symmetric or not finite.
    """

    name: str
    fields: tuple[str, ...]
    matrices: np.ndarray
    vector: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        matrices = np.array(self.matrices, dtype=np.float64)
        n = len(self.fields)
        if matrices.ndim != 3 or matrices.shape[1:] != (n, n) or len(matrices) not in (1, 2, 3):
            raise ValueError(
                f"matrices has shape {matrices.shape}; {n} fields in 1, 2 or 3 dimensions need "
                f"(dim, {n}, {n})"
            )
        if not np.isfinite(matrices).all() or (matrices != matrices.transpose(0, 2, 1)).any():
            raise ValueError(f"matrices must be finite and symmetric, not {matrices.tolist()}")
        if self.vector and (
            len(set(self.vector)) != len(matrices) or not set(self.vector) <= set(range(n))
        ):
            raise ValueError(
                f"vector = {self.vector}; allowed: {len(matrices)} different fields of {n}, or ()"
            )
        matrices.flags.writeable = False
        object.__setattr__(self, "matrices", matrices)

    @property
    def dim(self) -> int:
        """Number of space dimensions."""
        return len(self.matrices)

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return len(self.fields)

    def normal_matrix(self, normals: np.ndarray) -> np.ndarray:
        """A_n = sum_d n_d A_d for normals of shape (..., dim); shape (..., n, n)."""
        return np.tensordot(normals, self.matrices, axes=1)

    def speed(self, normals: np.ndarray) -> np.ndarray:
        """The fastest wave along each normal, the largest |eigenvalue| of A_n, shape (...)."""
        return np.abs(_eigen(self.normal_matrix(normals))[0]).max(axis=-1)


def advection(velocity: float | Sequence[float]) -> System:
    """Scalar advection, u_t + a . grad u = 0.

    Parameters
    ----------
    velocity : number or sequence of 1 to 3 numbers
        a; one number means one dimension.

    Raises
    ------
    ValueError
        If the velocity's length is none that `check_range` allows, or it has more than three
        components.
    """
    components = np.atleast_1d(np.asarray(velocity, dtype=np.float64))
    if components.shape not in ((1,), (2,), (3,)):
        raise ValueError(f"velocity = {velocity!r}; allowed: 1, 2 or 3 components")
    check_range(f"velocity = {velocity!r}, whose length counts", np.linalg.norm(components))
    return System("advection", ("u",), components.reshape(-1, 1, 1))


def wave(dim: int, speed: float = 1.0) -> System:
    """The wave system p_t + c div v = 0, v_t + c grad p = 0, with fields (p, v_1, ..., v_dim).

    Parameters
    ----------
    dim : int
        1, 2 or 3.
    speed : float
        c > 0.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    if dim not in (1, 2, 3):
        raise ValueError(f"dim = {dim!r}; allowed: 1, 2 or 3")
    check_range(f"speed = {speed!r}", speed)
    matrices = np.zeros((dim, dim + 1, dim + 1))
    for d in range(dim):
        matrices[d, 0, 1 + d] = matrices[d, 1 + d, 0] = speed
    fields = ("p", *("v_" + "xyz"[d] for d in range(dim)))
    return System("wave", fields, matrices, vector=tuple(range(1, dim + 1)))


def incoming(matrix: np.ndarray) -> np.ndarray:
    """A^-, the part of symmetric matrices whose waves come in against the normal.

    With A = R diag(w) R^T it is R diag(min(w, 0)) R^T; A - A^- = A^+ is what goes out.
    Shape (..., n, n), as `matrix`.
    """
    eigenvalues, vectors = _eigen(matrix)
    return (vectors * np.minimum(eigenvalues, 0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def _eigen(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of symmetric matrices; a number is its own, and cheap."""
    if matrix.shape[-1] == 1:
        return matrix[..., 0], np.ones_like(matrix)
    return np.linalg.eigh(matrix)


def jump_matrix(system: System, normals: np.ndarray, flux: str) -> np.ndarray:
    """F in the face term F (u^- - u^+) = A_n u^- - (A_n u)^*.

    The upwind flux (A_n u)^* = A_n^+ u^- + A_n^- u^+ gives F = A_n^-, the central flux
    (A_n u)^* = A_n (u^- + u^+)/2 gives F = A_n / 2. Here u^- is the interior and u^+ the exterior
    trace, and the normals (..., dim) point out; shape (..., n, n).

    Raises
    ------
    ValueError
        If `flux` is neither "upwind" nor "central".
    """
    check_choice("flux", flux, FLUXES)
    matrix = system.normal_matrix(normals)
    return incoming(matrix) if flux == "upwind" else matrix / 2


def mirror(system: System, condition: str, normals: np.ndarray) -> np.ndarray:
    """M of a boundary condition: behind the boundary, the exterior state is u^+ = M u^-.

    ============  =====================================================================
    "outflow",    M = 0: nothing comes in. With the incoming part of A_n as jump matrix
    "absorbing"   waves that meet the boundary head-on leave without an echo
    "wall"        v^+ = v^- - 2 n (n . v^-), other fields unchanged: n . v = 0 between
    "soft"        v^+ = v^-, other fields change their sign: p = 0 between
    ============  =====================================================================

    Parameters
    ----------
    system : System
    condition : str
        A name of the table.
    normals : (..., dim) array

    Returns
    -------
    (..., n, n) array

    Raises
    ------
    ValueError
        If there is no such condition, or a wall for a system without a vector.
    """
    if condition not in CONDITIONS:
        allowed = ", ".join(map(repr, CONDITIONS))
        raise ValueError(f"condition = {condition!r}; allowed are {allowed}, or a function of x, t")
    shape = (*normals.shape[:-1], system.n, system.n)
    if condition in ("outflow", "absorbing"):
        return np.zeros(shape)
    if not system.vector:
        raise ValueError(
            f"condition = {condition!r} turns a vector round, but the system {system.name!r} has "
            'none; allowed are "outflow", "absorbing", or a function of x, t'
        )
    matrix = np.broadcast_to(np.eye(system.n), shape).copy()
    vector = np.array(system.vector)
    if condition == "wall":
        matrix[..., vector[:, None], vector] -= 2 * normals[..., :, None] * normals[..., None, :]
    else:
        others = np.setdiff1d(np.arange(system.n), vector)
        matrix[..., others, others] = -1
    return matrix


def transported(velocity: float | Sequence[float], profile: Callable) -> Callable:
    """The solution u(x, t) = profile(x - a t) of scalar advection, a function of (x, [y, z,] t)."""
    components = np.atleast_1d(np.asarray(velocity, dtype=np.float64))

    def exact(*point_and_time):
        *x, t = point_and_time
        return profile(*(x_d - a_d * t for x_d, a_d in zip(x, components, strict=True)))

    return exact


def standing_wave(modes: Sequence[int], speed: float = 1.0, condition: str = "wall") -> Callable:
    """A standing wave of the wave system on the unit interval, square or cube.

    With k_d = pi modes[d] and w = c |k|, between rigid walls ("wall")

        p = cos(w t) prod_d cos(k_d x_d),
        v_d = (c k_d / w) sin(w t) sin(k_d x_d) prod_{e != d} cos(k_e x_e),

    and between soft ones ("soft", p = 0) the same with sin in place of cos and -cos in place of
    sin of x.

    Parameters
    ----------
    modes : sequence of 1 to 3 positive ints
        Half waves in each direction.
    speed : float
        c.
    condition : {"wall", "soft"}
        What stands around.

    Returns
    -------
    function of (x, [y, z,] t) that returns [p, v_1, ...]

    Raises
    ------
    ValueError
        If `modes` or `condition` is not as above.
    """
    if not 1 <= len(modes) <= 3 or any(m != int(m) or m < 1 for m in modes):
        raise ValueError(f"modes = {modes!r}; allowed: 1 to 3 positive integers")
    if condition not in ("wall", "soft"):
        raise ValueError(f'condition = {condition!r}; allowed are "wall", "soft"')
    k = np.pi * np.array(modes, dtype=np.float64)
    frequency = speed * np.sqrt(k @ k)

    def factors(x_d, k_d):
        """The factor of p along one axis, and minus its derivative over k_d."""
        if condition == "wall":
            return np.cos(k_d * x_d), np.sin(k_d * x_d)
        return np.sin(k_d * x_d), -np.cos(k_d * x_d)

    def exact(*point_and_time):
        *x, t = point_and_time
        along, slope = zip(*map(factors, x, k), strict=True)
        p = np.cos(frequency * t) * np.prod(np.broadcast_arrays(*along), axis=0)
        v = [
            (speed * k[d] / frequency)
            * np.sin(frequency * t)
            * np.prod(np.broadcast_arrays(*along[:d], slope[d], *along[d + 1 :]), axis=0)
            for d in range(len(k))
        ]
        return [p, *v]

    return exact
