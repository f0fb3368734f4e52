"""Flops and bytes of a product with a trace matrix, counted from the algorithm."""

from __future__ import annotations

from dgbook.gpu.roofline import Cost
from dgbook.hdg.plan import Shape

INDEX = 4
"""Bytes of a face's number."""


def matrix_bytes(shape: Shape, faces: int) -> int:
    """Bytes of the blocks, padded ones included: what throughputs of the product count."""
    return faces * shape.m * shape.q * shape.itemsize


def product_cost(shape: Shape, faces: int) -> Cost:
    """The least work of y = A x: 2 flops a number of A; A, the columns and x read, y written once.

    Nothing of A is used twice: below 2 / itemsize flops a byte memory is the limit everywhere.
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
