"""The kernels of GMRES, of a step and of its coarse level, as machine code: no stray fp64."""

import numpy as np
import pytest

from dgbook.check.compile import compile
from dgbook.hdg.kernels.csr import make_csr
from dgbook.hdg.krylov import THREADS, arnoldi_kernels

NUMBER, TABLE, VECTOR = "progress", "table", "vector"
SIGNATURES = {
    "dots": (TABLE, VECTOR, NUMBER, TABLE),
    "collect": (TABLE, NUMBER, VECTOR, TABLE),
    "take_off": (TABLE, VECTOR, NUMBER, VECTOR, VECTOR),
    "finish": (VECTOR, NUMBER, VECTOR, TABLE, VECTOR, TABLE),
    "advance": (NUMBER,),
}


@pytest.mark.parametrize(
    ("dtype", "cc"), [("float32", (9, 0)), ("float64", (9, 0)), ("float32", (7, 5))]
)
def test_kernels(dtype, cc):
    """Three blocks of 256 threads and more run on a multiprocessor at a time."""
    kinds = {
        NUMBER: np.empty(1, np.int32),
        TABLE: np.empty((1, 1), dtype),
        VECTOR: np.empty(1, dtype),
    }
    for name, kernel in arnoldi_kernels(dtype, THREADS).items():
        report = compile(kernel, tuple(kinds[kind] for kind in SIGNATURES[name]), cc)
        assert report.spill_bytes == report.stack_bytes == 0, report
        if dtype == "float32":
            assert report.fp64_instructions == 0, report
        assert report.blocks_per_multiprocessor(THREADS) >= 3, report


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("lanes", "rest"), [(1, True), (32, False)])
def test_sparse_products(lanes, rest, dtype):
    numbers, vector = np.empty(1, np.int32), np.empty(1, dtype)
    arguments = numbers, numbers, vector, vector, vector, vector
    report = compile(make_csr(dtype, lanes, rest), arguments, (9, 0))
    assert report.spill_bytes == report.stack_bytes == 0, report
    if dtype == "float32":
        assert report.fp64_instructions == 0, report
    assert report.blocks_per_multiprocessor(128) >= 12, report
