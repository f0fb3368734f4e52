"""Algorithm 1 on processor cores: what a GPU's speed is compared with."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numba
import numpy as np

from dgbook.hdg.blocks import BlockMatrix
from dgbook.hdg.storage import rows


@lru_cache(maxsize=4)
def make_contract(fast: bool, parallel: bool) -> Any:
    """y_il = sum_k A_ilk X_kl for all l, i and k, compiled by Numba (Algorithm 1).

    Parameters
    ----------
    fast : bool
        Whether sums may be taken in another order, which lets the compiler use vectors. The paper's
        compiler was not allowed to.
    parallel : bool
        Whether all cores share the loop over l.

    Returns
    -------
    function
        ``contract(A, X, y)`` with A (faces, m, q), X (faces, q), y (faces, m).
    """

    @numba.njit(fastmath=fast, parallel=parallel)
    def contract(A, X, y):
        for l in numba.prange(A.shape[0]):
            for i in range(A.shape[1]):
                total = A.dtype.type(0)
                for k in range(A.shape[2]):
                    total += A[l, i, k] * X[l, k]
                y[l, i] = total

    return contract


@lru_cache(maxsize=2)
def make_inflate(parallel: bool) -> Any:
    """``inflate(x, columns, X)``: x (faces, m) repeated for each row of blocks, X (faces, q)."""

    @numba.njit(parallel=parallel)
    def inflate(x, columns, X):
        m = x.shape[1]
        for l in numba.prange(columns.shape[0]):
            for b in range(columns.shape[1]):
                for j in range(m):
                    X[l, b * m + j] = x[columns[l, b], j]

    return inflate


class CoreProduct:
    """y = A x by the paper's two steps, on one core or on all; arrays (faces, m).

    Parameters
    ----------
    matrix : BlockMatrix
    parallel : bool
    fast : bool
        See `make_contract`.
    """

    def __init__(self, matrix: BlockMatrix, parallel: bool, fast: bool = True) -> None:
        self.columns = matrix.columns
        self.values = np.ascontiguousarray(rows(matrix.values))
        self.X = np.empty((matrix.faces, self.values.shape[2]), matrix.dtype)
        self._inflate = make_inflate(parallel)
        self._contract = make_contract(fast, parallel)

    def inflate(self, x: np.ndarray) -> None:
        """The first step."""
        self._inflate(x, self.columns, self.X)

    def contract(self, y: np.ndarray) -> None:
        """The second step, Algorithm 1."""
        self._contract(self.values, self.X, y)

    def __call__(self, x: np.ndarray, y: np.ndarray) -> None:
        """y = A x."""
        self.inflate(x)
        self.contract(y)
