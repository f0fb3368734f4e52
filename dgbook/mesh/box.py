"""Intervals, rectangles and boxes cut into simplices."""

import itertools
from numbers import Integral, Real

import numpy as np

from .connect import all_faces, connect, make_periodic
from .mesh import Mesh


def box(
    shape: int | tuple[int, ...],
    lower: float | tuple[float, ...] = 0.0,
    upper: float | tuple[float, ...] = 1.0,
    periodic: bool | tuple[bool, ...] = False,
) -> Mesh:
    """A box of equal cells, each cut into simplices: 1 segment, 2 triangles or 6 tetrahedra.

    Every cell is cut along the same diagonal, from its lower to its upper corner, into the dim!
    simplices whose vertices walk from one to the other along the axes in some order (Kuhn's
    subdivision). Neighboring cells agree on their common faces, and so do opposite sides of the
    box. Cells are numbered with x fastest; the simplices of a cell are consecutive.

    Parameters
    ----------
    shape : int or tuple of 1, 2 or 3 ints
        Number of cells in each direction; one int means one dimension.
    lower, upper : number or tuple of numbers
        Opposite corners. One number stands for all directions.
    periodic : bool or tuple of bools
        Directions in which the two ends are joined; one bool stands for all. A single cell may be
        periodic.

    Returns
    -------
    Mesh
        Its boundaries are named ``"x-"``, ``"x+"``, ``"y-"``, ``"y+"``, ``"z-"``, ``"z+"``, without
        those of periodic directions.

    Raises
    ------
    TypeError
        if `shape` does not hold ints, `lower` or `upper` numbers, or `periodic` bools.
    ValueError
        if a number of cells is below 1, there are not 1 to 3 directions, the tuples differ in
        length, or a lower bound is not below its upper one.
    """
    shape, lower, upper, periodic = _checked(shape, lower, upper, periodic)
    dim = len(shape)
    vertices = _grid(
        [np.linspace(a, b, n + 1) for a, b, n in zip(lower, upper, shape, strict=True)]
    )
    elements = _kuhn_elements(shape)
    neighbors, neighbor_faces, face_permutation = connect(elements)

    rows = np.flatnonzero(neighbors.reshape(-1) < 0)
    corners = _grid([np.arange(n + 1) for n in shape])[all_faces(elements)[rows]]
    boundary = {}
    for axis, n in enumerate(shape):
        for sign, place in (("-", 0), ("+", n)):
            members = rows[(corners[..., axis] == place).all(axis=1)]
            boundary["xyz"[axis] + sign] = np.stack(np.divmod(members, dim + 1), axis=1)
    mesh = Mesh(vertices, elements, neighbors, neighbor_faces, face_permutation, boundary)
    for axis in np.flatnonzero(periodic):
        mesh = make_periodic(mesh, "xyz"[axis] + "-", "xyz"[axis] + "+")
    return mesh


def _kuhn_elements(shape: tuple[int, ...]) -> np.ndarray:
    """Vertex numbers of Kuhn's simplices, (dim! cells, dim+1) int32, positively oriented."""
    dim = len(shape)
    strides = np.concatenate([[1], np.cumprod(np.array(shape[:-1], dtype=np.int64) + 1)])
    paths = []
    for axes in itertools.permutations(range(dim)):
        path = np.concatenate([[0], np.cumsum(strides[list(axes)])])
        if np.linalg.det(np.eye(dim)[list(axes)]) < 0:
            path[-2:] = path[:-3:-1]
        paths.append(path)
    corner = _grid([np.arange(n) for n in shape]) @ strides
    return (corner[:, None, None] + np.array(paths)).reshape(-1, dim + 1).astype(np.int32)


def _grid(axes: list[np.ndarray]) -> np.ndarray:
    """Every combination of the entries of `axes`, the first varying fastest, (n, len(axes))."""
    return np.stack([g.ravel(order="F") for g in np.meshgrid(*axes, indexing="ij")], axis=1)


def _checked(shape, lower, upper, periodic):
    """The arguments of ``box`` as tuples of equal length, or the error that says what is wrong."""
    shape = tuple(shape) if isinstance(shape, tuple | list | np.ndarray) else (shape,)
    if not all(isinstance(n, Integral) and not isinstance(n, bool) for n in shape):
        raise TypeError(f"shape must hold ints, got {shape}")
    if len(shape) not in (1, 2, 3):
        raise ValueError(f"shape must have 1, 2 or 3 entries, got {len(shape)}")
    if min(shape) < 1:
        raise ValueError(f"shape must hold numbers of cells, 1 or more, got {shape}")
    shape = tuple(int(n) for n in shape)
    if np.prod([n + 1 for n in shape], dtype=float) > np.iinfo(np.int32).max:
        raise ValueError(f"shape {shape} has more vertices than 32-bit indices can number")

    lower = _per_direction("lower", lower, len(shape), Real, "numbers")
    upper = _per_direction("upper", upper, len(shape), Real, "numbers")
    periodic = _per_direction("periodic", periodic, len(shape), (bool, np.bool_), "bools")
    if not all(np.isfinite([*lower, *upper])) or any(
        a >= b for a, b in zip(lower, upper, strict=True)
    ):
        raise ValueError(f"lower must be below upper, both finite, got {lower} and {upper}")
    return shape, lower, upper, periodic


def _per_direction(name, value, dim, kind, kind_name):
    """`value` repeated for each direction, or checked to hold one entry for each."""
    values = tuple(value) if isinstance(value, tuple | list | np.ndarray) else (value,) * dim
    wrong_bool = kind is Real and any(isinstance(v, bool | np.bool_) for v in values)
    if not all(isinstance(v, kind) for v in values) or wrong_bool:
        raise TypeError(f"{name} must hold {kind_name}, got {value!r}")
    if len(values) != dim:
        raise ValueError(f"{name} must have {dim} entries, one for each direction, got {value!r}")
    return values
