"""The product with a trace matrix on a device: its arrays, its kernels and their launches."""

from __future__ import annotations

import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
import numpy as np

from dgbook.gpu import Device
from dgbook.gpu.device import as_device
from dgbook.gpu.plan import choose, require_legal
from dgbook.gpu.source import load
from dgbook.hdg.blocks import DTYPES, BlockMatrix, columns_first, rows, sliced
from dgbook.hdg.kernels import cores
from dgbook.hdg.kernels.fused import make_fused
from dgbook.hdg.kernels.paper import make_contract, make_inflate
from dgbook.hdg.kernels.sliced import make_sliced
from dgbook.hdg.plan import CUDA, Plan, Shape, tile_faces

KERNELS = Path(__file__).with_name("kernels")
VECTORS = {"float32": "float4", "float64": "double2"}
MOST_ROWS = 2**32 - 2**16
"""Rows are numbered by 32 bits, those of the last tile beyond the matrix too."""


def shape_of(matrix: BlockMatrix) -> Shape:
    """The sizes that a matrix's kernels close over."""
    return Shape(matrix.m, matrix.blocks, matrix.dtype.name)


def order_of(plan: Plan) -> str:
    """In which order a plan's kernel reads a matrix: "columns", "slices" or "wide slices"."""
    if plan.method in CUDA:
        return "wide slices"
    return "slices" if plan.method == "sliced" else "columns"


def stored(values: Any, plan: Plan, shape: Shape) -> Any:
    """A matrix's values in the order that a plan's kernel reads.

    Parameters
    ----------
    values : (faces, nb, m, m) array
        NumPy's, or a device's: it stays where it is.
    """
    if order_of(plan) == "columns":
        return columns_first(values).reshape(shape.q, -1)
    if order_of(plan) == "slices":
        return sliced(values, 1)
    return sliced(values, shape.vector).reshape(-1)


@lru_cache(maxsize=256)
def kernels(shape: Shape, plan: Plan) -> dict[str, Any]:
    """The kernels of a plan by name, compiled once for equal arguments.

    Raises
    ------
    ValueError
        If the plan is illegal for the shape.
    """
    require_legal(plan, shape)
    if plan.method == "paper":
        return {"inflate": make_inflate(shape), "contract": make_contract(shape)}
    if plan.method == "fused":
        return {"fused": make_fused(shape)}
    if plan.method == "sliced":
        return {"sliced": make_sliced(shape, plan)}
    macros = {
        "REAL": np.dtype(shape.dtype),
        "VECTOR": VECTORS[shape.dtype],
        "SIZE": shape.m,
        "BLOCKS": shape.blocks,
        "FACES": tile_faces(shape, plan.tile_rows),
        "STRIDE": shape.stride,
        "WARPS": plan.warps,
        "SPLIT": plan.split,
        "UNROLL": plan.unroll,
        "RESIDENT": plan.resident,
    }
    if plan.method == "bulk":
        macros |= {"STAGES": plan.stages, "TURNS": plan.turns}
    return {plan.method: load(KERNELS / f"{plan.method}.cu", plan.method, macros)}


class Product:
    """y = A x on a device, again and again.

    ::

        product = Product(matrix, device("cuda"))
        x, y = product.upload(x), product.zeros()
        product(x, y)                       # launches only: it can be captured
        y = product.download(y)

    Parameters
    ----------
    matrix : BlockMatrix
        Its values may be on the device already; its columns are NumPy's.
    device : Device
        "cuda" or "simulator".
    plan : Plan, optional
        What `dgbook.gpu.plan.choose` says without it.

    Attributes
    ----------
    shape : Shape
    plan : Plan
    faces : int
    arrays : dict
        On the device: "values", in the order of `stored`, "columns", and with the paper's order
        "X", for the inflated vector.

    Raises
    ------
    ValueError
        If the plan is illegal or its kernel does not run on the device, or the matrix has more rows
        than 32 bits can number.
    """

    def __init__(self, matrix: BlockMatrix, device: Device, plan: Plan | None = None) -> None:
        self.shape, self.faces, self.device = shape_of(matrix), matrix.faces, device
        if matrix.shape[0] > MOST_ROWS or self.faces * self.shape.q > MOST_ROWS:
            raise ValueError(
                f"the matrix has {matrix.shape[0]} rows, and {self.faces * self.shape.q} numbers "
                f"in the inflated vector; allowed: up to {MOST_ROWS}"
            )
        self._plan(plan or choose(Plan, self.shape, device))
        on_device = hasattr(matrix.values, "__cuda_array_interface__")
        values = stored(matrix.values, self.plan, self.shape)
        self.arrays = {
            "values": values if on_device else device.array(values),
            "columns": device.array(matrix.columns.reshape(-1)),
        }
        if order_of(self.plan) == "columns":
            self.arrays["X"] = device.empty(self.faces * self.shape.q, self.shape.dtype)

    def _plan(self, plan: Plan) -> None:
        """Take a plan and its kernels, if they run here."""
        require_legal(plan, self.shape, self.device.compute_capability)
        kinds = ("cuda",) if plan.method in CUDA else ("cuda", "simulator")
        if self.device.kind not in kinds:
            allowed = " and ".join(map(repr, kinds))
            raise ValueError(
                f"device = {self.device.kind!r}; allowed for {plan.method!r}: {allowed}"
            )
        self.plan, self.kernels = plan, kernels(self.shape, plan)

    def planned(self, plan: Plan) -> Product:
        """The same product with another plan that reads the same order; arrays are shared.

        Raises
        ------
        ValueError
            If the plan is illegal, or its kernel reads another order.
        """
        if order_of(plan) != order_of(self.plan):
            raise ValueError(
                f"method = {plan.method!r}; allowed: one that reads the order of "
                f"{self.plan.method!r}"
            )
        other = copy.copy(self)
        other._plan(plan)
        return other

    def __call__(self, x: Any, y: Any) -> None:
        """y = A x; flat arrays of the device, faces m numbers each."""
        if self.plan.method == "paper":
            self.inflate(x)
            self.contract(y)
            return
        arrays, plan = self.arrays, self.plan
        kernel = self.kernels[plan.method]
        if plan.method == "fused":
            kernel[-(-y.size // plan.threads), plan.threads](
                arrays["values"], arrays["columns"], x, y
            )
            return
        grid = -(-y.size // (plan.tile_rows * plan.turns))
        if plan.method == "sliced":
            kernel[grid, plan.threads](arrays["values"], arrays["columns"], x, y)
            return
        dynamic = plan.shared_bytes(self.shape) if plan.method == "bulk" else 0
        kernel[grid, plan.threads, dynamic](arrays["values"], arrays["columns"], x, y, self.faces)

    def inflate(self, x: Any) -> None:
        """The paper's first step: repeat x for each row of blocks."""
        X, threads = self.arrays["X"], self.plan.threads
        self.kernels["inflate"][-(-X.size // threads), threads](x, self.arrays["columns"], X)

    def contract(self, y: Any) -> None:
        """The paper's second step, Algorithm 2."""
        threads = self.plan.threads
        self.kernels["contract"][-(-y.size // threads), threads](
            self.arrays["values"], self.arrays["X"], y
        )

    def upload(self, x: np.ndarray) -> Any:
        """A vector (faces, m) as a flat array of the device, in the matrix's precision."""
        return self.device.array(np.asarray(x, self.shape.dtype).reshape(-1))

    def zeros(self) -> Any:
        """A flat vector of the device."""
        return self.device.zeros(self.faces * self.shape.m, self.shape.dtype)

    def download(self, y: Any) -> np.ndarray:
        """A flat vector of the device as an array (faces, m)."""
        return self.device.to_numpy(y).reshape(self.faces, self.shape.m)


def matvec(
    matrix: BlockMatrix, x: np.ndarray, device: Device | str = "auto", dtype: Any = None
) -> np.ndarray:
    """A x, once.

    Parameters
    ----------
    matrix : BlockMatrix
    x : (faces, m) array
    device : Device, or {"auto", "cuda", "cpu", "reference", "simulator"}
        Where: "cpu" is a kernel on all processor cores, "reference" NumPy's product of batches.
    dtype : float32 or float64, optional
        Of the arithmetic and of the result; the matrix's without it.

    Raises
    ------
    TypeError, ValueError
        For another precision, or if x has another shape.
    """
    name = matrix.dtype.name if dtype is None else np.dtype(dtype).name
    if name not in DTYPES:
        raise TypeError(f"dtype = {dtype!r}; allowed are {', '.join(DTYPES)}")
    if np.shape(x) != (matrix.faces, matrix.m):
        allowed = (matrix.faces, matrix.m)
        raise ValueError(f"x has shape {np.shape(x)}; allowed: (faces, m) = {allowed}")
    matrix, here = matrix.astype(name), as_device(device)
    if here.kind == "cpu":
        y, known = np.empty(np.shape(x), name), (matrix.columns, np.ascontiguousarray(x, name))
        with cores.threads_for(matrix.nbytes):
            cores.multiply_once(cores.SOURCES, np.ascontiguousarray(matrix.values), *known, y)
        return y
    if here.kind == "reference":
        inflated = np.asarray(x, name)[matrix.columns]
        return np.matmul(matrix.values, inflated[..., None])[..., 0].sum(axis=1)
    product = Product(matrix, here)
    y = product.zeros()
    product(product.upload(x), y)
    return product.download(y)


class CoreRows:
    """y = A x on all processor cores, again and again; x and y flat or (faces, m), in C order.

    Parameters
    ----------
    matrix : BlockMatrix
    """

    def __init__(self, matrix: BlockMatrix) -> None:
        self.shape, self.columns = (matrix.faces, matrix.m), matrix.columns
        rows = matrix.faces, matrix.m, matrix.blocks * matrix.m
        self.values = np.empty(rows, matrix.dtype)
        cores.side_by_side(cores.SOURCES, matrix.values, self.values)

    def __call__(self, x: np.ndarray, y: np.ndarray) -> None:
        """y = A x."""
        x, y = x.reshape(self.shape), y.reshape(self.shape)
        cores.multiply(cores.SOURCES, self.values, self.columns, x, y)


# The paper's own way, which is measured: x inflated first, and Algorithm 1 on one core or on all.


@lru_cache(maxsize=4)
def contract_on_cores(fast: bool, parallel: bool) -> Any:
    """y_il = sum_k A_ilk X_kl, Algorithm 1, compiled by Numba.

    Parameters
    ----------
    fast : bool
        Whether the compiler may reorder sums, which lets it use vector
        instructions. The paper's compiler was not allowed to.
    parallel : bool
        Whether all cores share the loop over l.

    Returns
    -------
    function
        ``contract(A, X, y)`` with A (faces, m, q), X (faces, q) and
        y (faces, m).
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
def inflate_on_cores(parallel: bool) -> Any:
    """x repeated for each row of blocks, compiled by Numba.

    The function is ``inflate(x, columns, X)``, with x (faces, m) and
    X (faces, q).
    """

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
        See `contract_on_cores`.
    """

    def __init__(self, matrix: BlockMatrix, parallel: bool, fast: bool = True) -> None:
        self.columns = matrix.columns
        self.values = np.ascontiguousarray(rows(matrix.values))
        self.X = np.empty((matrix.faces, self.values.shape[2]), matrix.dtype)
        self._inflate = inflate_on_cores(parallel)
        self._contract = contract_on_cores(fast, parallel)

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
