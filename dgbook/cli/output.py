"""Files that ParaView opens: fields as VTU, a series of them in time as PVD.

A VTU file could hold an element of order N as one Lagrange cell, which is a smaller file. But
ParaView cuts such cells into few linear ones, by a setting that is easily overlooked, and many of
its filters know only linear cells. Therefore elements are cut here, into the N^dim simplices
between their nodes. These are the element's own: the file holds the solution as it is, not
interpolated, and as fields of DG are discontinuous, no element shares its nodes with another.

References
----------
"VTK XML Formats", in the documentation of VTK, https://docs.vtk.org.
"""

from __future__ import annotations

import itertools
import os
import secrets
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO
from xml.sax.saxutils import quoteattr

import numpy as np

from dgbook.element import NodalElement, lattice_numbers
from dgbook.mesh import Mesh, nodes_xyz

CELLS = {2: 5, 3: 10}  # VTK's numbers for linear triangles and tetrahedra
BLOCK = 2**20  # bytes that are compressed together
LEVEL = 1  # of zlib, the fastest: fields compress badly, connectivity well at any level
TYPES = {"f4": "Float32", "f8": "Float64", "i4": "Int32", "i8": "Int64", "u1": "UInt8"}


class WriteError(RuntimeError):
    """A file could not be written; what had its name before is still there, and whole."""


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path` when all is written, or not at all.

    It is written beside its place, under a name that no other process has, and moved there: an
    interruption leaves the old file whole.

    Raises
    ------
    WriteError
        If the operating system refuses: the disk is full, or the folder cannot be written to.
    """
    beside = path.with_name(f".dgbook-{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        if isinstance(error, OSError):
            reason = error.strerror or error
            raise WriteError(f"{path} cannot be written: {reason}. What was there stays") from error
        raise


@lru_cache(maxsize=16)
def subdivision(dim: int, order: int) -> np.ndarray:
    """The simplices between the nodes of an element, (N^dim, dim+1) node numbers, all positive.

    In three dimensions the lattice of multi-indices (a0, a1, a2, a3) becomes by
    b = (a1+a2+a3, a2+a3, a3) the part N >= b1 >= b2 >= b3 >= 0 of the lattice of unit cubes. That
    part is a union of the six tetrahedra into which Kuhn cuts each cube, see ``dgbook.mesh.box``.
    In two it is the same with squares and triangles.
    """
    number = np.empty((order + 1,) * (dim + 1), dtype=np.int32)
    for index, n in lattice_numbers(dim, order).items():
        number[index] = n
    corners = np.indices((order,) * dim).reshape(dim, -1).T[:, None]
    turned = [*range(dim - 1), dim, dim - 1]
    cells = []
    for axes in itertools.permutations(range(dim)):
        steps = np.eye(dim, dtype=int)[list(axes)]
        b = corners + np.vstack([np.zeros((1, dim), dtype=int), np.cumsum(steps, axis=0)])
        a = -np.diff(b, axis=2, prepend=order, append=0)
        inside = number[tuple(np.moveaxis(a[(a >= 0).all(axis=(1, 2))], 2, 0))]
        cells.append(inside if np.linalg.det(steps) > 0 else inside[:, turned])
    return np.concatenate(cells)


def write_vtu(
    path: Path,
    mesh: Mesh,
    element: NodalElement,
    fields: Mapping[str, np.ndarray],
    constants: Mapping[str, np.ndarray],
) -> None:
    """Write an unstructured grid, its arrays compressed and appended as raw bytes; no ghosts.

    Parameters
    ----------
    path : Path
        It is replaced when all is written.
    mesh : Mesh
        Of triangles or tetrahedra.
    element : NodalElement
        Of order 1 or more.
    fields : {name: (K, Np) or (dim, K, Np) float array}
        Scalars and vectors at the nodes, written in their own precision; coordinates are always
        fp64. What has two components gets a third, zero, as VTK wants it.
    constants : {name: (K,) float array}
        One value an element.
    """
    cells = subdivision(mesh.dim, element.order)
    K, own = mesh.owned, slice(mesh.owned)
    count, corners = K * len(cells), mesh.dim + 1
    integer = np.int32 if max(K * element.Np, corners * count) < 2**31 else np.int64
    first = np.arange(K, dtype=integer)[:, None, None] * element.Np
    arrays = {
        "PointData": {name: _points(values[..., own, :]) for name, values in fields.items()},
        "CellData": {n: np.repeat(values[own], len(cells)) for n, values in constants.items()},
        "Points": {"Points": _points(nodes_xyz(mesh, element.nodes)[:, own])},
        "Cells": {
            "connectivity": (first + cells).ravel(),
            "offsets": np.arange(corners, corners * count + 1, corners, dtype=integer),
            "types": np.full(count, CELLS[mesh.dim], np.uint8),
        },
    }
    lines, appended, offset = [], [], 0
    for section, content in arrays.items():
        lines.append(f"<{section}>")
        for name, values in content.items():
            about = _about(name, values.dtype, values.ndim == 2)
            lines.append(f'<DataArray {about} format="appended" offset="{offset}"/>')
            for piece in _compressed(values):
                appended.append(piece)
                offset += len(piece)
        lines.append(f"</{section}>")
    text = (
        '<?xml version="1.0"?>\n<VTKFile type="UnstructuredGrid" version="1.0" '
        f'byte_order="{sys.byteorder.title()}Endian" header_type="UInt64" '
        'compressor="vtkZLibDataCompressor">\n<UnstructuredGrid>\n'
        f'<Piece NumberOfPoints="{K * element.Np}" NumberOfCells="{count}">\n'
        + "\n".join(lines)
        + '\n</Piece>\n</UnstructuredGrid>\n<AppendedData encoding="raw">\n_'
    )
    with replacing(path) as file:
        file.write(text.encode())
        file.writelines(appended)
        file.write(b"\n</AppendedData>\n</VTKFile>\n")


@dataclass(frozen=True, eq=False)
class Shown:
    """What ParaView gets to see of a state.

    Attributes
    ----------
    element : NodalElement
        With the nodes.
    fields, constants : dict
        As `write_vtu` wants them; of the constants those are written that vary.
    """

    element: NodalElement
    fields: dict[str, np.ndarray]
    constants: dict[str, np.ndarray]


def write_shown(path: Path, mesh: Mesh, shown: Shown) -> None:
    """Write what is shown of a state on a mesh."""
    write_vtu(path, mesh, shown.element, shown.fields, uneven(shown.constants))


def write_pvtu(
    path: Path,
    pieces: Sequence[Path],
    fields: Mapping[str, np.ndarray],
    constants: Mapping[str, np.ndarray],
) -> None:
    """Write what makes one grid of several VTU files in the same folder.

    Parameters
    ----------
    path : Path
    pieces : sequence of Path
        All with the same arrays.
    fields, constants
        Those of one piece, as `write_vtu` got them; their names and types are written.
    """
    sections = {
        "PPointData": [_about(name, a.dtype, a.ndim == 3) for name, a in fields.items()],
        "PCellData": [_about(name, a.dtype, False) for name, a in constants.items()],
        "PPoints": [_about("Points", np.dtype(np.float64), True)],
    }
    arrays = ""
    for section, abouts in sections.items():
        lines = "".join(f"<PDataArray {about}/>\n" for about in abouts)
        arrays += f"<{section}>\n{lines}</{section}>\n"
    sources = "".join(f"<Piece Source={quoteattr(piece.name)}/>\n" for piece in pieces)
    with replacing(path) as file:
        file.write(
            '<?xml version="1.0"?>\n<VTKFile type="PUnstructuredGrid" version="1.0" '
            f'byte_order="{sys.byteorder.title()}Endian" header_type="UInt64">\n'
            f'<PUnstructuredGrid GhostLevel="0">\n{arrays}{sources}</PUnstructuredGrid>\n'
            "</VTKFile>\n".encode()
        )


def _about(name: str, dtype: np.dtype, vector: bool) -> str:
    """The attributes that describe an array."""
    components = ' NumberOfComponents="3"' if vector else ""
    return f'Name={quoteattr(name)} type="{TYPES[dtype.str[1:]]}"{components}'


def uneven(constants: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Those of the (K,) arrays that are not the same everywhere."""
    return {name: values for name, values in constants.items() if np.ptp(values) > 0}


def write_pvd(path: Path, frames: Iterable[tuple[float, Path]]) -> None:
    """Write a series: times, and VTU files in the same folder."""
    lines = [
        f'<DataSet timestep="{time!r}" part="0" file={quoteattr(file.name)}/>\n'
        for time, file in frames
    ]
    with replacing(path) as file:
        file.write(
            '<?xml version="1.0"?>\n<VTKFile type="Collection" version="1.0">\n<Collection>\n'
            f"{''.join(lines)}</Collection>\n</VTKFile>\n".encode()
        )


def _points(values: np.ndarray) -> np.ndarray:
    """A scalar field (K, Np) as (K Np,), a vector field (dim, K, Np) as (K Np, 3)."""
    if values.ndim == 2:
        return values.ravel()
    missing = 3 - len(values)
    return np.pad(values.reshape(len(values), -1).T, ((0, 0), (0, missing)))


def _compressed(values: np.ndarray) -> list[bytes]:
    """Header and blocks: number of blocks, size of each, of what is left over, compressed sizes."""
    data = memoryview(values.reshape(-1)).cast("B")
    blocks = [zlib.compress(data[i : i + BLOCK], LEVEL) for i in range(0, len(data), BLOCK)]
    sizes = [len(blocks), BLOCK, len(data) % BLOCK, *map(len, blocks)]
    return [np.array(sizes, np.uint64).tobytes(), *blocks]
