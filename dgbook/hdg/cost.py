"""Flops and bytes of a product with a trace matrix, counted from the algorithm."""

from __future__ import annotations

from collections.abc import Sequence

from dgbook.gpu.cost import Cost
from dgbook.hdg.plan import Shape

INDEX = 4
"""Bytes of a face's number."""


def matrix_bytes(shape: Shape, faces: int) -> int:
    """Bytes of the blocks, padded ones included: what throughputs of the product count."""
    return faces * shape.m * shape.q * shape.itemsize


def product_cost(shape: Shape, faces: int) -> Cost:
    """The least work of y = A x: 2 flops a number of A; A, the columns and x read, y written once.

    Nothing of A is used twice: below 2 / itemsize flops per byte memory is the limit everywhere.
    """
    vectors = 2 * faces * shape.m * shape.itemsize
    columns = faces * shape.blocks * INDEX
    return Cost(2 * faces * shape.m * shape.q, matrix_bytes(shape, faces) + vectors + columns)


def inflate_cost(shape: Shape, faces: int) -> Cost:
    """The paper's first step: x and the columns read, the inflated vector written."""
    words = faces * (shape.m + shape.q)
    return Cost(0, words * shape.itemsize + faces * shape.blocks * INDEX)


def contract_cost(shape: Shape, faces: int) -> Cost:
    """The paper's second step: A and the inflated vector read, y written (section V.A)."""
    words = faces * (shape.m * shape.q + shape.q + shape.m)
    return Cost(2 * faces * shape.m * shape.q, words * shape.itemsize)


def csr_cost(nonzeros: int, rows: int, itemsize: int) -> Cost:
    """A product in compressed rows: each number comes with the 4 bytes of its column."""
    return Cost(
        2 * nonzeros,
        nonzeros * (itemsize + INDEX) + (rows + 1) * INDEX + 2 * rows * itemsize,
    )


def solution_cost(
    shape: Shape,
    faces: int,
    K: int,
    unknowns: tuple[int, int],
    iterations: Sequence[int],
    blocks_of_M: int,
    coarse: int,
    restart: int,
    single: bool,
) -> Cost:
    """What Newton's method with GMRES has to do at least, its tangents apart.

    Each step eliminates u from every element, writes the matrix and what recovers u, and reads the
    latter. Each iteration reads A, the preconditioner, and the basis four times, as many vectors as
    half a cycle has.

    Parameters
    ----------
    shape : Shape
    faces, K : int
    unknowns : tuple of two ints
        Of an element: of u, and of the traces on its faces.
    iterations : sequence of int
        Of each step of Newton's method.
    blocks_of_M : int
        Of a row of the preconditioner.
    coarse : int
        Numbers that its coarse level reads for a row.
    restart : int
    single : bool
        Whether cycles are in float32.
    """
    inside, outside = unknowns
    solves = 2 * inside**2 * (inside / 3 + outside + 1)
    eliminated = K * (solves + 2 * outside * inside * (outside + 1))
    kept = K * inside * (outside + 1) * shape.itemsize
    step = Cost(int(eliminated), matrix_bytes(shape, faces) + 2 * kept)

    rows, itemsize = faces * shape.m, 4 if single else shape.itemsize
    numbers = rows * (shape.m * (shape.blocks + blocks_of_M) + coarse)
    total = Cost(0, 0)
    for count in iterations:
        basis = 4 * rows * min(count, restart) // 2
        total += step + Cost(2 * (numbers + basis) * count, (numbers + basis) * itemsize * count)
    return total
