"""What a solution takes of memory, counted before any of it is taken."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, log2

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from dgbook.arguments import bytes_text, check_memory, host_bytes
from dgbook.element import simplex_quadrature, triangle_quadrature
from dgbook.gpu import Device
from dgbook.hdg.blocks import face_columns, face_nodes
from dgbook.hdg.krylov import Gmres
from dgbook.hdg.system import NUMBERS_ON_A_GPU
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
"""Bytes for stacks of elements that are linearised together on the host, at most."""
ARRAYS = 12
"""Arrays as large as its largest that a stack takes at a time on a GPU: CuPy's pool keeps what an
earlier operation has left, if nothing of its size is asked for."""


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
    host, device : int
        At the same time, on the host and on a GPU. Stacks are gone before the solver begins.
    parts : str
        What the solver takes, in words.
    """

    matrix: int
    elements: int
    solver: int
    host: int
    device: int
    parts: str

    def __str__(self) -> str:
        there = [f"{bytes_text(self.host)} of the host's memory"] if self.host else []
        there += [f"{bytes_text(self.device)} of the device's"] if self.device else []
        return (
            f"about {' and '.join(there)}: matrix {bytes_text(self.matrix)}, elements "
            f"{bytes_text(self.elements)}; besides stacks of elements, and then {self.parts}"
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
        Where elements are condensed, and where GMRES runs.
    linear : Gmres, optional
        The direct solver if not given: it is on the host.

    Raises
    ------
    ValueError
        If the host or the device has less; the message says how much it is.
    """
    dim = mesh.dim
    faces, m = _faces(mesh), n_c * face_nodes(dim, order)
    matrix, elements = kept_bytes(dim, mesh.K, faces, order, n_c)
    there = device.kind == "cuda"

    def checked(solver: int, parts: str) -> Memory:
        on_device = device_bytes(mesh, order, n_c, linear) if there else 0
        host = matrix + elements + max(STACKS, solver)
        if there:
            host = matrix + solver if linear is None else 0
        found = Memory(matrix, elements, 0 if there and linear else solver, host, on_device, parts)
        _refuse(mesh, order, host, host_bytes(), "the host")
        _refuse(mesh, order, on_device, device.memory_bytes, device.name)
        return found

    def direct(blocks: int) -> Memory:
        factors = blocks * m * m * FACTOR
        copies = COPIES * matrix
        parts = f"factors, {bytes_text(factors)}, and copies of the matrix, {bytes_text(copies)}"
        return checked(factors + copies, parts)

    if linear is None:
        direct(least_fill(faces, dim))  # where that is too much already, nothing is eliminated
        return direct(fill(face_columns(mesh), m))
    gmres = linear.memory_of(faces, 2 * dim + 1, m)
    parts = f"GMRES, {bytes_text(gmres.most)}, of which {bytes_text(gmres.vectors)} for vectors"
    return checked(gmres.most, parts)


def least_host_bytes(dim: int, K: int, order: int, n_c: int, there: bool, direct: bool) -> int:
    """Bytes of the host that `solve` takes with K elements at least, before there is a mesh.

    Parameters
    ----------
    dim, K, order, n_c : int
    there : bool
        Whether elements are condensed on a GPU.
    direct : bool
        Whether the trace system is solved on the host.
    """
    faces = (dim + 1) * K // 2
    matrix, elements = kept_bytes(dim, K, faces, order, n_c)
    if not direct:
        return 0 if there else matrix + elements
    factors = least_fill(faces, dim) * (n_c * face_nodes(dim, order)) ** 2 * FACTOR
    return (1 + COPIES) * matrix + factors + (0 if there else elements)


def device_bytes(mesh: Mesh, order: int, n_c: int, linear: Gmres | None) -> int:
    """What `solve` takes of a GPU's memory: all of it, from the stacks of elements to GMRES.

    Matrix, elements and the state stay while GMRES has the matrix in the order of its kernel.

    Parameters
    ----------
    mesh, order, n_c
        As of `memory_of`.
    linear : Gmres, optional
        If it is there; without one only elements are condensed there.
    """
    dim = mesh.dim
    faces, m = _faces(mesh), n_c * face_nodes(dim, order)
    matrix, elements = kept_bytes(dim, mesh.K, faces, order, n_c)
    Nfp, Np = face_nodes(dim, order), comb(order + dim, dim)
    Nz = Np + (dim + 1) * Nfp
    Nq = most_points(dim, order)
    largest = n_c**2 * Nz * max(Nz, Nq)
    stack = min(mesh.K, max(1, NUMBERS_ON_A_GPU // largest)) * largest
    # Coordinates' fields at points, numbers of nodes, and some states with their residuals.
    fields = mesh.K * (n_c + dim) * (Nq + (dim + 1) * Nq)
    states = 6 * (mesh.K * n_c * Np + faces * m)
    data = fields + mesh.K * (dim + 1) * (2 * Nfp + 2 * dim + 6) + states
    solver = 0 if linear is None else linear.memory_of(faces, 2 * dim + 1, m).most
    return matrix + elements + data * NUMBER + max(ARRAYS * stack * NUMBER, solver)


def check_device(mesh: Mesh, order: int, n_c: int, device: Device, linear: Gmres | None) -> None:
    """Raise ValueError for a problem that needs more memory than a GPU has; see `device_bytes`."""
    if device.kind == "cuda":
        needs = device_bytes(mesh, order, n_c, linear)
        _refuse(mesh, order, needs, device.memory_bytes, device.name)


def _refuse(mesh: Mesh, order: int, needs: int, has: int | None, whose: str) -> None:
    if has is not None:
        what = f"{mesh.K} elements of order {order} need"
        advice = ". Take a lower order or a coarser mesh"
        check_memory(what, needs, (has, whose), advice)


def _faces(mesh: Mesh) -> int:
    return ((mesh.dim + 1) * mesh.K + len(mesh.boundary_faces)) // 2


def kept_bytes(dim: int, K: int, faces: int, order: int, n_c: int) -> tuple[int, int]:
    """Bytes of the matrix, and of what recovers u, with K elements."""
    m = n_c * face_nodes(dim, order)
    matrix = faces * (2 * dim + 1) * m * m * NUMBER
    return matrix, K * n_c * comb(order + dim, dim) * ((dim + 1) * m + 1) * NUMBER


def most_points(dim: int, order: int) -> int:
    """Quadrature points of an element, for the problem that takes most of them: a gas."""
    degree = max(3 * order, 2 * order + 2)
    rule = triangle_quadrature(degree) if dim == 2 else simplex_quadrature(dim, degree)
    return len(rule[1])


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
