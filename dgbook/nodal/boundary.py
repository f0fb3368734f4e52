"""Which condition holds on which face of a mesh's named boundaries."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np

from dgbook.mesh import Mesh


def conditions_of_faces(mesh: Mesh, boundary: Any) -> list[tuple[Any, np.ndarray]]:
    """The conditions on a mesh's boundary, each with the faces on which it holds.

    Parameters
    ----------
    mesh : Mesh
    boundary : condition, dict or None
        For each name in ``mesh.boundary`` a condition, a word or a function; which there are is for
        the family of equations to say. A condition alone stands for all names, None for no
        conditions.

    Returns
    -------
    list of (condition, faces)
        For every named boundary that has faces; numbers of rows of ``mesh.boundary_faces``.

    Raises
    ------
    TypeError
        If `boundary` is none of these.
    ValueError
        If a boundary has no condition, there is a condition for none, or a face has two.
    """
    names = [name for name, faces in mesh.boundary.items() if len(faces)]
    if boundary is None:
        boundary = {}
    if isinstance(boundary, str) or callable(boundary):
        boundary = dict.fromkeys(names, boundary)
    if not isinstance(boundary, dict):
        raise TypeError(f"boundary = {boundary!r}; allowed: a dict, a condition or a function")
    unknown = sorted(set(boundary) - set(mesh.boundary))
    missing = sorted(set(names) - set(boundary))
    if unknown or missing:
        raise ValueError(
            f"boundary = {boundary!r}: {'no condition for' if missing else 'there is no'} "
            f"{', '.join(map(repr, missing or unknown))}; the mesh's boundaries are "
            f"{', '.join(map(repr, names)) or 'none: it is periodic'}"
        )
    number = np.full(mesh.neighbors.shape, -1)
    k, f = mesh.boundary_faces.T
    number[k, f] = np.arange(len(k))
    conditions = []
    named: dict[int, str] = {}
    for name in names:
        faces = number[tuple(mesh.boundary[name].T)]
        for face in faces:
            if named.setdefault(face, name) != name and boundary[named[face]] != boundary[name]:
                raise ValueError(
                    f"boundary: element {k[face]}, face {f[face]} is in {named[face]!r} and in "
                    f"{name!r}, which have different conditions"
                )
        conditions.append((boundary[name], faces))
    return conditions


def check_condition(condition: Any, words: Collection[str], where: str = "x, y, z") -> None:
    """Whether a condition is one of a family's words, or a function of place and time.

    Raises
    ------
    ValueError
        If it is neither.
    """
    if not callable(condition) and condition not in words:
        raise ValueError(
            f"boundary condition {condition!r}; allowed are "
            f"{', '.join(map(repr, words))} and functions of ({where}, t)"
        )


def given_fields(
    sources: Iterable[tuple[np.ndarray, Callable]],
    points: np.ndarray,
    t: float,
    out: np.ndarray,
    as_fields: Callable[[Any, tuple[int, ...]], np.ndarray],
) -> np.ndarray:
    """What the functions among a boundary's conditions say at time t.

    Parameters
    ----------
    sources : pairs of (indices, function)
        Of the nb boundary faces those on which a function of (x, ..., t) holds.
    points : (dim, nb, Nfp) array
        Where it is asked.
    t : float
    out : (n, nb, Nfp) array
        Where the fields are put; on other faces it stays as it is.
    as_fields : function
        ``as_fields(values, shape)`` makes an array (n, *shape) of what a function returned.
    """
    for faces, function in sources:
        at = points[:, faces]
        out[:, faces] = as_fields(function(*at, t), at.shape[1:])
    return out


def stacked_fields(
    values: Any, shape: tuple[int, ...], names: tuple[str, ...], equations: str
) -> np.ndarray:
    """What a function of space returned, an array or a number a field, as an array (n, *shape).

    Parameters
    ----------
    values : sequence of arrays or numbers
    shape : tuple of int
    names : tuple of str
        Of the n fields.
    equations : str
        Whose fields they are, for the message.

    Raises
    ------
    ValueError
        If there are not n of them, or one does not have that shape.
    """
    if len(values) != len(names):
        raise ValueError(
            f"the function returned {len(values)} fields; {equations} have "
            f"{len(names)}: {', '.join(names)}"
        )
    return np.stack([np.broadcast_to(np.asarray(v, dtype=np.float64), shape) for v in values])
