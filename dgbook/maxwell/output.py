"""Files that ParaView opens: fields as VTU, a series of them in time as PVD.

A VTU file could hold an element of order N as one Lagrange cell, which is a smaller file. But
ParaView cuts such cells into few linear ones, by a setting that is easily overlooked, and many of
its filters know only linear cells. Therefore elements are cut here, into the N^3 tetrahedra between
their nodes. These are the element's own: the file holds the solution as it is, not interpolated,
and as fields of DG are discontinuous, no element shares its nodes with another.

References
----------
"VTK XML Formats", in the documentation of VTK, https://docs.vtk.org.
"""

from __future__ import annotations

import itertools
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO
from xml.sax.saxutils import quoteattr

import numpy as np

from dgbook.element import NodalElement, lattice_numbers
from dgbook.maxwell.solver import Solver
from dgbook.mesh import Mesh, nodes_xyz

TETRAHEDRON = 10  # VTK's number for a linear one
BLOCK = 2**20  # bytes that are compressed together
LEVEL = 1  # of zlib, the fastest: fields compress badly, connectivity well at any level
TYPES = {"f4": "Float32", "f8": "Float64", "i4": "Int32", "i8": "Int64", "u1": "UInt8"}


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path` when all is written, or not at all.

    It is written beside its place and moved there: an interruption leaves the old file whole.
    """
    beside = path.with_name(path.name + ".part")
    try:
        with open(beside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@lru_cache(maxsize=16)
def subdivision(order: int) -> np.ndarray:
    """The tetrahedra between the nodes of an element, (N^3, 4) node numbers, positively oriented.

    The lattice of multi-indices (a0, a1, a2, a3) becomes by b = (a1+a2+a3, a2+a3, a3) the part
    N >= b1 >= b2 >= b3 >= 0 of the lattice of unit cubes. That part is a union of the six
    tetrahedra into which Kuhn cuts each cube, see ``dgbook.mesh.box``.
    """
    number = np.empty((order + 1,) * 4, dtype=np.int32)
    for index, n in lattice_numbers(3, order).items():
        number[index] = n
    corners = np.indices((order,) * 3).reshape(3, -1).T[:, None]
    cells = []
    for axes in itertools.permutations(range(3)):
        steps = np.eye(3, dtype=int)[list(axes)]
        b = corners + np.vstack([np.zeros((1, 3), dtype=int), np.cumsum(steps, axis=0)])
        a = -np.diff(b, axis=2, prepend=order, append=0)
        inside = number[tuple(np.moveaxis(a[(a >= 0).all(axis=(1, 2))], 2, 0))]
        cells.append(inside if np.linalg.det(steps) > 0 else inside[:, [0, 1, 3, 2]])
    return np.concatenate(cells)


def write_fields(path: Path, solver: Solver, u: np.ndarray) -> None:
    """Write a state (6, K, Np): E and H as vectors, and the matter where it is not uniform."""
    operator = solver.operator
    matter = {"epsilon": operator.epsilon, "mu": operator.mu}
    uneven = {name: values for name, values in matter.items() if np.ptp(values) > 0}
    write_vtu(path, solver.mesh, solver.element, {"E": u[:3], "H": u[3:]}, uneven)


def write_vtu(
    path: Path,
    mesh: Mesh,
    element: NodalElement,
    vectors: Mapping[str, np.ndarray],
    constants: Mapping[str, np.ndarray],
) -> None:
    """Write an unstructured grid, its arrays compressed and appended as raw bytes.

    Parameters
    ----------
    path : Path
        It is replaced when all is written.
    mesh : Mesh
        Of tetrahedra.
    element : NodalElement
    vectors : {name: (3, K, Np) float array}
        At the nodes, written in their own precision; coordinates are always fp64.
    constants : {name: (K,) float array}
        One value an element.
    """
    cells = subdivision(element.order)
    count = mesh.K * len(cells)
    integer = np.int32 if max(mesh.K * element.Np, 4 * count) < 2**31 else np.int64
    first = np.arange(mesh.K, dtype=integer)[:, None, None] * element.Np
    arrays = {
        "PointData": {name: _points(values) for name, values in vectors.items()},
        "CellData": {name: np.repeat(values, len(cells)) for name, values in constants.items()},
        "Points": {"Points": _points(nodes_xyz(mesh, element.nodes))},
        "Cells": {
            "connectivity": (first + cells).ravel(),
            "offsets": np.arange(4, 4 * count + 1, 4, dtype=integer),
            "types": np.full(count, TETRAHEDRON, np.uint8),
        },
    }
    lines, appended, offset = [], [], 0
    for section, content in arrays.items():
        lines.append(f"<{section}>")
        for name, values in content.items():
            components = ' NumberOfComponents="3"' if values.ndim == 2 else ""
            lines.append(
                f'<DataArray Name={quoteattr(name)} type="{TYPES[values.dtype.str[1:]]}"'
                f'{components} format="appended" offset="{offset}"/>'
            )
            for piece in _compressed(values):
                appended.append(piece)
                offset += len(piece)
        lines.append(f"</{section}>")
    text = (
        '<?xml version="1.0"?>\n<VTKFile type="UnstructuredGrid" version="1.0" '
        f'byte_order="{sys.byteorder.title()}Endian" header_type="UInt64" '
        'compressor="vtkZLibDataCompressor">\n<UnstructuredGrid>\n'
        f'<Piece NumberOfPoints="{mesh.K * element.Np}" NumberOfCells="{count}">\n'
        + "\n".join(lines)
        + '\n</Piece>\n</UnstructuredGrid>\n<AppendedData encoding="raw">\n_'
    )
    with replacing(path) as file:
        file.write(text.encode())
        file.writelines(appended)
        file.write(b"\n</AppendedData>\n</VTKFile>\n")


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
    """A vector field (3, K, Np) as rows of three, (K Np, 3)."""
    return np.ascontiguousarray(values.reshape(3, -1).T)


def _compressed(values: np.ndarray) -> list[bytes]:
    """Header and blocks: number of blocks, size of each, of what is left over, compressed sizes."""
    data = memoryview(values.reshape(-1)).cast("B")
    blocks = [zlib.compress(data[i : i + BLOCK], LEVEL) for i in range(0, len(data), BLOCK)]
    sizes = [len(blocks), BLOCK, len(data) % BLOCK, *map(len, blocks)]
    return [np.array(sizes, np.uint64).tobytes(), *blocks]
