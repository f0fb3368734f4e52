"""The products with a trace matrix as machine code: registers, spills, loads, no stray fp64."""

import re

import numpy as np
import pytest

from dgbook.check.compile import compile
from dgbook.hdg.launch import kernels
from dgbook.hdg.plan import Plan, Shape

SIZES = (
    (8, 5, "float32"),
    (8, 5, "float64"),
    (3, 7, "float32"),
    (105, 7, "float32"),
    (330, 7, "float64"),
)


def signature(name, dtype):
    """Of a Numba kernel; CUDA C++ has its own."""
    flat, table = np.empty(1, dtype), np.empty((1, 1), dtype)
    columns = np.empty(1, np.int32)
    return {
        "inflate": (flat, columns, flat),
        "contract": (table, flat, flat),
        "fused": (table, columns, flat, flat),
        "sliced": (table, columns, flat, flat),
    }.get(name, ())


def report(m, blocks, dtype, plan, cc=(9, 0), name=None):
    name = name or plan.method
    return compile(kernels(Shape(m, blocks, dtype), plan)[name], signature(name, dtype), cc)


@pytest.mark.parametrize(
    ("name", "dtype", "cc"),
    [
        *((n, d, (9, 0)) for n in ("contract", "fused", "sliced") for d in ("float32", "float64")),
        ("inflate", "float32", (9, 0)),
        ("sliced", "float32", (7, 5)),
        ("sliced", "float64", (8, 0)),
    ],
)
def test_numba_kernels(name, dtype, cc):
    plan = Plan("paper" if name in ("inflate", "contract") else name)
    compiled = report(8, 5, dtype, plan, cc, name)
    assert compiled.spill_bytes == compiled.stack_bytes == 0, compiled
    if dtype == "float32":
        assert compiled.fp64_instructions == 0, compiled
    assert compiled.shared_bytes == plan.shared_bytes(Shape(8, 5, dtype))
    assert compiled.blocks_per_multiprocessor(plan.threads) >= 3, compiled


@pytest.mark.parametrize(("m", "blocks", "dtype"), SIZES)
@pytest.mark.parametrize("method", ["wide", "bulk"])
def test_cuda_kernels(method, m, blocks, dtype):
    """As many blocks a multiprocessor as the plan says, as far as shared memory allows."""
    shape = Shape(m, blocks, dtype)
    plan = Plan.default(shape, None, method)
    compiled = report(m, blocks, dtype, plan)
    assert compiled.spill_bytes == compiled.stack_bytes == 0, compiled
    if dtype == "float32":
        assert compiled.fp64_instructions == 0, compiled
    nbytes = plan.shared_bytes(shape)
    assert compiled.shared_bytes == (nbytes if method == "wide" else 0)
    dynamic = nbytes if method == "bulk" else 0
    resident = compiled.blocks_per_multiprocessor(plan.threads, dynamic)
    assert resident >= (plan.resident if method == "wide" else 3), compiled


def test_plans_for_the_tuner_spill_nothing():
    """Some of them: of few loads and many warps, and the other way round."""
    shape = Shape(15, 7, "float64")
    candidates = [
        p
        for p in Plan.default(shape, None, "wide").candidates(shape)
        if p.warps == 8 and p.split == 2
    ]
    assert len(candidates) == 4
    for plan in candidates:
        compiled = report(15, 7, "float64", plan)
        assert compiled.spill_bytes == compiled.stack_bytes == 0, compiled
        assert compiled.blocks_per_multiprocessor(plan.threads) >= plan.resident


@pytest.mark.parametrize("cc", [(7, 5), (8, 0)])
def test_wide_loads_of_older_devices(cc):
    compiled = report(8, 5, "float32", Plan.default(Shape(8, 5, "float32")), cc)
    assert compiled.spill_bytes == compiled.stack_bytes == compiled.fp64_instructions == 0, compiled


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_matrix_is_loaded_16_bytes_at_a_time(dtype):
    """24 unknowns leave no columns over, 15 in fp32 one: it alone is loaded by itself."""
    vector = r"v4\.f32|v4\.b32" if dtype == "float32" else r"v2\.f64|v2\.b64"
    for m, blocks, left in ((24, 5, 0), (15, 7, 1)):
        ptx = report(m, blocks, dtype, Plan("wide", 8, 1, 8)).ptx
        loads = re.findall(r"ld\.global(?:\.nc)?\.cs\.(\S+)", ptx)
        wide = [load for load in loads if re.match(vector, load)]
        assert len(wide) >= 2 * 8  # before x is gathered, and in the loop
        assert len(loads) - len(wide) == left
        # x comes from shared memory by 16 bytes too, but for the columns that are left over
        near = re.findall(r"ld\.shared\.(\S+)", ptx)
        assert sum(not re.match(vector, load) for load in near) <= left


def test_a_slice_is_one_stream():
    """40 columns of fp32, each 32 lanes further: no address is computed but the first."""
    ptx = report(8, 5, "float32", Plan("sliced", 8, unroll=8)).ptx
    offsets = re.findall(r"ld\.global\.f32\s+%f\d+, \[%rd\d+\+(\d+)\]", ptx)
    assert [int(offset) for offset in offsets] == [128 * k for k in range(1, 40)]


def test_bulk_copies():
    """Every copy counts its bytes at a barrier; no load of the matrix by threads is left."""
    plan = Plan.default(Shape(8, 5, "float64"), None, "bulk")
    ptx = report(8, 5, "float64", plan).ptx
    assert "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" in ptx
    assert "mbarrier.try_wait.parity" in ptx and "mbarrier.arrive.expect_tx" in ptx
    assert not re.search(r"ld\.global\S*\.v", ptx)
