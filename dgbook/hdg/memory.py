"""What a solution takes of memory, counted before any of it is taken."""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import comb, log2

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from dgbook.gpu import Device
from dgbook.hdg.blocks import BlockMatrix, face_columns, face_nodes
from dgbook.hdg.krylov import Gmres
from dgbook.mesh import Mesh

NUMBER = 8
"""Bytes: everything is in double precision."""
FACTOR = 12
"""Bytes of a number of the factors: its own 8, in U 4 of a row's number, and what SuperLU takes to
work with: peaks measured of whole runs were 0.97 to 1.11 of what is said here."""
COPIES = 4
"""What the direct solver keeps while it factorises, in sizes of the matrix: the blocks divided by
those of the diagonal, the same in the order of elimination, and in compressed columns of numbers
and 8-byte indices."""
RELAX = 10
"""Columns that SuperLU takes together where little is added to them, zeros that it stores."""
STACKS = 2**27
"""Bytes for stacks of elements that are linearised together, at most, whatever the mesh."""


@dataclass(frozen=True)
class Memory:
    """Bytes that a solution takes.

    Attributes
    ----------
    matrix : int
        The blocks of the trace system.
    elements : int
        What recovers u from the trace in each element.
    solver : int
        What the solver of the trace system takes beside the matrix, on the host.
    device : int
        What it takes on a GPU.
    parts : str
        What that is, in words.
    """

    matrix: int
    elements: int
    solver: int
    device: int
    parts: str

    @property
    def total(self) -> int:
        """On the host at the same time: stacks are gone before the solver begins."""
        return self.matrix + self.elements + max(STACKS, self.solver)

    def __str__(self) -> str:
        there = f", {text(self.device)} of the device's" if self.device else ""
        return (
            f"about {text(self.total)} of the host's memory{there}: matrix {text(self.matrix)}, "
            f"elements {text(self.elements)}; besides stacks of elements, {text(STACKS)} at most, "
            f"and then {self.parts}"
        )


def memory_of(mesh: Mesh, order: int, n_c: int, device: Device, linear: Gmres | None) -> Memory:
    """What `solve` takes.

    Matrix and elements follow from sizes, and so does what GMRES takes. What the direct solver's
    factors take, their fill, is counted by eliminating the graph of the faces, a matrix with one
    number where the real one has m^2.

    Parameters
    ----------
    mesh : Mesh
    order, n_c : int
        Polynomial degree, number of components.
    device : Device
        Where elements are condensed and GMRES runs.
    linear : Gmres, optional
        The direct solver if not given.

    Raises
    ------
    ValueError
        If the host or the device has less; the message says how much it is.
    """
    dim, nf = mesh.dim, mesh.dim + 1
    faces = (nf * mesh.K + len(mesh.boundary_faces)) // 2
    m = n_c * face_nodes(dim, order)
    matrix = faces * (2 * dim + 1) * m * m * NUMBER
    elements = mesh.K * n_c * comb(order + dim, dim) * (nf * m + 1) * NUMBER

    def checked(solver: int, on_device: int, parts: str) -> Memory:
        found = Memory(matrix, elements, solver, on_device, parts)
        for needs, has, whose in (
            (found.total, host_bytes(), "the host"),
            (found.device, device.memory_bytes, device.name),
        ):
            if has is not None and needs > has:
                raise ValueError(
                    f"{mesh.K} elements of order {order} need about {text(needs)}; allowed: the "
                    f"{text(has)} of {whose}. Take a lower order or a coarser mesh"
                )
        return found

    def direct(blocks: int) -> Memory:
        factors = blocks * m * m * FACTOR
        parts = f"factors, {text(factors)}, and copies of the matrix, {text(COPIES * matrix)}"
        return checked(factors + COPIES * matrix, 0, parts)

    if linear is None:
        direct(least_fill(faces, dim))  # where that is too much already, nothing is eliminated
        return direct(fill(face_columns(mesh), m))
    checked(matrix, 0, "GMRES")
    columns = face_columns(mesh)
    # A matrix of that size: one zero, wherever one looks.
    gmres = linear.memory(BlockMatrix(np.broadcast_to(0.0, (*columns.shape, m, m)), columns))
    most = gmres.most
    parts = f"GMRES, {text(most)}, of which {text(gmres.vectors)} for vectors"
    return checked(*((0, most) if device.kind == "cuda" else (most, 0)), parts)


def least_fill(faces: int, dim: int) -> int:
    """Fewer blocks than `fill` counts, by what it counted on squares and cubes.

    In two dimensions it grows as n log n, as George's nested dissection does (SIAM J. Numer. Anal.
    10, 1973). In three that would be n^(4/3), but minimum degree has grown as n^(3/2).
    """
    return int(faces * log2(faces) if dim == 2 else 0.9 * faces**1.5)


def fill(columns: np.ndarray, m: int) -> int:
    """Blocks of L and U together, in the order that `solver.direct` eliminates in.

    For a matrix without zeros in its m x m blocks the number is exact.

    Parameters
    ----------
    columns : (faces, nb) int array
        As `blocks.face_columns` has them.
    m : int
    """
    faces, nb = columns.shape
    numbers = np.repeat(np.arange(faces), nb), columns.ravel()
    # With a dominant diagonal nothing vanishes and no pivot is looked for.
    values = np.where(numbers[0] == numbers[1], 4.0 * nb, 1.0)
    graph = sparse.coo_array((values, numbers)).tocsc()
    relax = -(-RELAX // m)
    factors = splu(graph, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, relax=relax)
    return factors.nnz - faces  # both have a diagonal, which is stored once


def host_bytes() -> int:
    """The host's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def text(nbytes: int) -> str:
    """Bytes in the unit that suits them."""
    for unit, power in (("GiB", 30), ("MiB", 20)):
        if nbytes >= 2**power:
            return f"{nbytes / 2**power:.1f} {unit}"
    return f"{nbytes / 2**10:.1f} KiB"
