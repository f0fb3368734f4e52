"""NVIDIA's libraries, cuSPARSE and cuBLAS: rivals of our own kernels, and small dense systems."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

ROW_MAJOR_BLOCKS = 0
NOT_TRANSPOSED, TRANSPOSED = 0, 1
TOGETHER = 2**16 - 1
"""Small matrices in one call at most: as many as a grid has blocks along z."""
_LETTERS = {"float32": "S", "float64": "D"}


def random_numbers(shape: tuple[int, ...], dtype: Any, seed: int) -> Any:
    """Numbers uniform in [-1, 1), made on the GPU: a large matrix need not travel."""
    import cupy

    numbers = cupy.random.default_rng(seed).random(shape, np.dtype(dtype))
    numbers *= 2
    numbers -= 1
    return numbers


def sparse_arrays(values: Any) -> Any:
    """The library of sparse matrices for an array: CuPy's for one of a GPU, SciPy's else."""
    if hasattr(values, "__cuda_array_interface__"):
        from cupyx.scipy import sparse
    else:
        from scipy import sparse
    return sparse


def csr_product(data: Any, indices: Any, pointers: Any) -> Callable[[Any, Any], None]:
    """``product(x, y)``, y = A x with A square in compressed rows: cusparseSpMV.

    Parameters
    ----------
    data, indices, pointers : arrays of the GPU
        Indices ascend in every row.
    """
    import cupyx
    from cupyx.scipy import sparse

    rows = len(pointers) - 1
    matrix = sparse.csr_matrix((data, indices, pointers), shape=(rows, rows))
    return lambda x, y: cupyx.cusparse.spmv(matrix, x, y)


def bsr_product(data: Any, indices: Any, pointers: Any) -> Callable[[Any, Any], None]:
    """``product(x, y)``, y = A x with A square in rows of dense blocks: cusparse<t>bsrmv.

    CuPy has no name for it, so that the library is asked itself.

    Parameters
    ----------
    data : (blocks, m, m) array of the GPU
        m of 2 and more.
    indices, pointers : int32 arrays of the GPU
    """
    import cupy
    from cupy_backends.cuda.libs import cusparse

    rows, count, m = len(pointers) - 1, len(indices), data.shape[-1]
    function = _function(cusparse, "cusparse", "bsrmv", data.dtype)
    description = ctypes.c_void_p(cusparse.createMatDescr())
    one, zero = _scalar(data.dtype, 1), _scalar(data.dtype, 0)

    def product(x: Any, y: Any) -> None:
        handle = cupy.cuda.device.get_cusparse_handle()
        cusparse.setStream(handle, cupy.cuda.get_current_stream().ptr)
        status = function(
            ctypes.c_void_p(handle),
            ROW_MAJOR_BLOCKS,
            NOT_TRANSPOSED,
            rows,
            rows,
            count,
            one,
            description,
            _address(data),
            _address(pointers),
            _address(indices),
            m,
            _address(x),
            zero,
            _address(y),
        )
        _check("cusparse bsrmv", status)

    return product


def batched_product(matrices: Any) -> Callable[[Any, Any], None]:
    """``product(x, y)``, y[l] = A[l] x[l] for many small A: cublas<t>gemvStridedBatched.

    Parameters
    ----------
    matrices : (count, rows, columns) array of the GPU
        x has count columns numbers, y count rows; both are flat.
    """
    import cupy
    from cupy_backends.cuda.libs import cublas

    count, rows, columns = matrices.shape
    function = _function(cublas, "cublas", "gemvStridedBatched", matrices.dtype)
    one, zero = _scalar(matrices.dtype, 1), _scalar(matrices.dtype, 0)

    def product(x: Any, y: Any) -> None:
        handle = cupy.cuda.device.get_cublas_handle()
        cublas.setStream(handle, cupy.cuda.get_current_stream().ptr)
        status = function(
            ctypes.c_void_p(handle),
            TRANSPOSED,  # to the library, which stores columns, a row-major matrix is its transpose
            columns,
            rows,
            one,
            _address(matrices),
            columns,
            ctypes.c_longlong(rows * columns),
            _address(x),
            1,
            ctypes.c_longlong(columns),
            zero,
            _address(y),
            1,
            ctypes.c_longlong(rows),
            count,
        )
        _check("cublas gemvStridedBatched", status)

    return product


def batched_solve(matrices: Any, right: Any) -> Any:
    """X with A X = B for many small A: cublas<t>getrfBatched and getrsBatched, once each.

    CuPy's ``linalg.solve`` does so up to a size, and above it takes them one by one. Here they
    stay together: thousands of them fill a GPU at any size. Arrays that are not a GPU's go to
    NumPy's ``linalg.solve``.

    Parameters
    ----------
    matrices : (count, n, n) array
        A singular one gives numbers that are not finite on a GPU, which are for the caller to find.
    right : (count, n, columns) array
    """
    if not hasattr(matrices, "__cuda_array_interface__"):
        return np.linalg.solve(matrices, right)
    from cupy import cublas

    limit = cublas.get_batched_gesv_limit()
    cublas.set_batched_gesv_limit(max(limit, matrices.shape[-1]))
    try:
        return cublas.batched_gesv(matrices, right)
    finally:
        cublas.set_batched_gesv_limit(limit)


def gmres(
    product: Callable[[Any, Any], None],
    precondition: Callable[[Any, Any], None],
    b: Any,
    restart: int,
    tolerance: float,
) -> tuple[Any, int]:
    """CuPy's restarted GMRES, and how many cycles it took.

    Parameters
    ----------
    product, precondition : function
        ``product(x, y)``, y = A x, and y = M x with M near the inverse of A.
    b : array of the GPU
    restart : int
    tolerance : float
        Of |b - A x| / |b|.

    Raises
    ------
    RuntimeError
        If it does not arrive.
    """
    import cupy
    from cupyx.scipy.sparse import linalg

    def operator(function: Callable[[Any, Any], None]) -> Any:
        def applied(x: Any) -> Any:
            y = cupy.empty_like(b)
            function(x.reshape(-1), y)
            return y

        return linalg.LinearOperator((b.size, b.size), applied, dtype=b.dtype)

    norms: list[float] = []
    x, info = linalg.gmres(
        operator(product),
        b,
        M=operator(precondition),
        rtol=tolerance,
        restart=restart,
        callback=norms.append,
        callback_type="pr_norm",
    )
    if info:
        raise RuntimeError(f"CuPy's GMRES did not arrive after {len(norms)} cycles")
    return x, len(norms)


def _function(module: Any, library: str, name: str, dtype: Any) -> Any:
    """A function of a library that CuPy has loaded: through CuPy's module, or by a file's name."""
    symbol = f"{library}{_LETTERS[dtype.name]}{name}"
    for file in (module.__file__, f"lib{library}.so.13", f"lib{library}.so.12"):
        try:
            return getattr(ctypes.CDLL(file), symbol)
        except (AttributeError, OSError):
            continue
    raise RuntimeError(f"{symbol} was not found: CuPy here comes without {library}")


def _scalar(dtype: Any, value: float) -> Any:
    """A number of the host, by its address."""
    return ctypes.byref((ctypes.c_float if dtype.name == "float32" else ctypes.c_double)(value))


def _address(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.data.ptr)


def _check(name: str, status: int) -> None:
    if status:
        raise RuntimeError(f"{name} failed with status {status}")
