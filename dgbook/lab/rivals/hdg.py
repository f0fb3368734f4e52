"""The same product by libraries: SciPy's and cuSPARSE's sparse formats, batches of cuBLAS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dgbook.gpu import Device, libraries
from dgbook.hdg.blocks import BlockMatrix, rows
from dgbook.hdg.launch import Product, kernels, shape_of
from dgbook.hdg.plan import Plan

RIVALS = ("scipy", "csr", "bsr", "gemv")
"""SciPy's compressed rows on the CPU; cuSPARSE's, its rows of blocks, and cuBLAS's batches of
matrix-vector products on the GPU."""


def compressed_blocks(matrix: BlockMatrix) -> tuple[Any, np.ndarray, np.ndarray]:
    """Blocks, their columns and where rows of blocks begin, without padded blocks.

    Columns ascend in a row. Blocks stay where the matrix has its values.
    """
    values, columns, kept = _ascending(matrix)
    if not kept.all():
        values = values.take(_like(values, np.flatnonzero(kept)), axis=0)
    pointers = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return values, columns[kept], pointers.astype(np.int32)


def compressed_rows(matrix: BlockMatrix) -> tuple[Any, Any, Any]:
    """Values, columns and where rows begin, without padded blocks but with zeros inside blocks.

    Columns ascend in a row. All are where the matrix has its values.
    """
    values, columns, kept = _ascending(matrix)
    m, shape = matrix.m, (matrix.faces, matrix.m, matrix.blocks, matrix.m)
    values = values.reshape(matrix.values.shape).transpose(0, 2, 1, 3)
    first = _like(values, columns * np.int32(m))[:, None, :, None]
    numbers = np.broadcast_to(first + _like(values, np.arange(m, dtype=np.int32)), shape)
    pointers = np.concatenate([[0], np.cumsum(np.repeat(kept.sum(axis=1) * m, m))])
    pointers = _like(values, pointers.astype(np.int32))
    if kept.all():
        return values.reshape(-1), numbers.reshape(-1), pointers
    mask = np.broadcast_to(_like(values, kept)[:, None, :, None], shape)
    return values[mask], numbers[mask], pointers


def _ascending(matrix: BlockMatrix) -> tuple[Any, np.ndarray, np.ndarray]:
    """All blocks, columns ascending in each row; their columns; which are to be kept.

    Not those that only fill a row up, told by their columns alone: the values may be on a GPU.
    """
    order = np.argsort(matrix.columns, axis=1, kind="stable")
    filling = matrix.columns == matrix.columns[:, :1]
    filling[:, 0] = False
    places = (np.arange(matrix.faces)[:, None] * matrix.blocks + order).reshape(-1)
    blocks = matrix.values.reshape(-1, matrix.m, matrix.m)
    return (
        blocks.take(_like(blocks, places), axis=0),
        np.take_along_axis(matrix.columns, order, axis=1),
        ~np.take_along_axis(filling, order, axis=1),
    )


def _like(array: Any, values: np.ndarray) -> Any:
    """NumPy's values where an array is."""
    return np.asarray(values, like=array)


class Rival:
    """y = A x by a library, with the interface of `Product`.

    Parameters
    ----------
    matrix : BlockMatrix
        Its values may be on the device already.
    device : Device
    name : {"scipy", "csr", "bsr", "gemv"}
        "scipy" runs on the CPU, the others on a GPU.

    Raises
    ------
    ValueError
        For another name, or a device that the library does not know.
    """

    def __init__(self, matrix: BlockMatrix, device: Device, name: str) -> None:
        wanted = "cpu" if name == "scipy" else "cuda"
        if name not in RIVALS or device.kind != wanted:
            raise ValueError(
                f"rival {name!r} on {device.kind!r}; allowed are 'scipy' on 'cpu' and "
                "'csr', 'bsr' and 'gemv' on 'cuda'"
            )
        self.matrix, self.device, self.name = matrix, device, name
        self.shape, self.faces = shape_of(matrix), matrix.faces
        self._product = getattr(self, f"_{name}")()

    def __call__(self, x: Any, y: Any) -> None:
        """y = A x; flat arrays of the device."""
        self._product(x, y)

    upload = Product.upload
    zeros = Product.zeros
    download = Product.download

    def _scipy(self) -> Callable[[Any, Any], None]:
        matrix = self.matrix.to_csr()

        def product(x: np.ndarray, y: np.ndarray) -> None:
            y[:] = matrix @ x

        return product

    def _csr(self) -> Callable[[Any, Any], None]:
        """Of a matrix on the host without the zeros inside blocks."""
        if hasattr(self.matrix.values, "__cuda_array_interface__"):
            return libraries.csr_product(*compressed_rows(self.matrix))
        csr = self.matrix.to_csr()
        csr.sort_indices()
        return libraries.csr_product(*map(self.device.array, (csr.data, csr.indices, csr.indptr)))

    def _bsr(self) -> Callable[[Any, Any], None]:
        return libraries.bsr_product(*map(self._here, compressed_blocks(self.matrix)))

    def _gemv(self) -> Callable[[Any, Any], None]:
        """After the paper's first step, which is counted."""
        inflate = kernels(self.shape, Plan("paper"))["inflate"]
        columns = self.device.array(self.matrix.columns.reshape(-1))
        X = self.device.empty(self.faces * self.shape.q, self.shape.dtype)
        product = libraries.batched_product(self._here(rows(self.matrix.values)))

        def inflate_and_multiply(x: Any, y: Any) -> None:
            inflate[-(-X.size // 256), 256](x, columns, X)
            product(X, y)

        return inflate_and_multiply

    def _here(self, array: Any) -> Any:
        """An array on the device; one that is there stays."""
        return array if hasattr(array, "__cuda_array_interface__") else self.device.array(array)
