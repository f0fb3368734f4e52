"""The probes and the update kernels as machine code: no fp64 where none is meant, no spills."""

import numpy as np
import pytest

from dgbook.check.compile import compile
from dgbook.gpu import cuda, jit, timing
from dgbook.gpu.source import load
from dgbook.lab import probes
from dgbook.time import lsrk45, midpoint, rk4

WORDS, INDICES = np.empty(1, np.uint32), np.empty(1, np.int32)
COUNT = np.int32(1)


def cases(dtype):
    """Each kernel that depends on the precision, with examples of its arguments."""
    real = np.dtype(dtype).type
    x, matrix, s = np.empty(1, real), np.empty((1, 1), real), real(1)
    intermediate, final = rk4.make_update(real)
    return {
        "copy": (probes.copy, (x, x)),
        "copy_grid_stride": (probes.copy_grid_stride, (x, x)),
        "copy_several_4": (probes.make_copy_several(real, 4), (x, x)),
        "copy_strided": (probes.copy_strided, (x, x, 2)),
        "copy_offset": (probes.copy_offset, (x, x, 1)),
        "gather": (probes.gather, (x, INDICES, x)),
        "transpose_naive": (probes.transpose_naive, (matrix, matrix)),
        "transpose_shared": (probes.make_transpose(real, 0), (matrix, matrix)),
        "transpose_padded": (probes.make_transpose(real, 1), (matrix, matrix)),
        "transpose_several": (probes.make_transpose_several(real), (matrix, matrix)),
        "fma_1": (probes.make_fma(real, 1), (x, s, s, COUNT, x)),
        "fma_8": (probes.make_fma(real, 8), (x, s, s, COUNT, x)),
        "diverge": (probes.make_divergence(real), (x, 1, COUNT, s, x)),
        "sum_one_address": (probes.sum_one_address, (x, x)),
        "sum_warp_address": (probes.sum_warp_address, (x, x)),
        "sum_shuffled": (probes.make_sum_shuffled(real), (x, x)),
        "lsrk45": (lsrk45.make_update(real), (x, x, x, s, s, s)),
        "rk4_intermediate": (intermediate, (x, x, x, x, x, s, s)),
        "rk4_final": (final, (x, x, x, s)),
        "midpoint": (midpoint.make_update(real), (x, x, x, s)),
    }


INTEGERS = {
    "walk_shared": (probes.walk_shared, (WORDS, 1, 1)),
    "chase": (probes.chase, (WORDS, 1, WORDS)),
    "nothing": (probes.nothing, (WORDS,)),
    "hold": (timing._hold, (COUNT, INDICES)),
}
SINGLE, DOUBLE = cases("float32"), cases("float64")
ARITHMETIC = ("fma_8", "diverge", "sum_shuffled", "lsrk45", "rk4_intermediate", "midpoint")
SHARED = {
    "walk_shared": 4096,
    "transpose_shared": 32 * 32 * 4,
    "transpose_padded": 32 * 33 * 4,
    "transpose_several": 32 * 33 * 4,
}


def most_fma_in_a_loop(ptx):
    """The largest number of fp32 FMA between a label and a conditional branch."""
    most = count = 0
    for line in map(str.strip, ptx.splitlines()):
        if line.startswith("$L"):
            count = 0
        count += line.startswith("fma.rn.f32")
        if line.startswith("@") and "bra" in line:
            most = max(most, count)
    return most


@pytest.mark.parametrize("cc", [(7, 5), (9, 0)], ids=str)
@pytest.mark.parametrize("name", [*SINGLE, *INTEGERS])
def test_fp32_kernels(name, cc):
    report = compile(*(SINGLE | INTEGERS)[name], cc)
    assert report.fp64_instructions == 0
    assert report.spill_bytes == report.stack_bytes == 0
    assert report.shared_bytes == SHARED.get(name, 0)
    # 1,024 threads on a T4's multiprocessor, 2,048 on an H200's: no register limits the probes
    assert report.registers <= (64 if cc == (7, 5) else 32)
    if name.startswith("fma"):  # all of a round's FMA stand in one loop body: counting is rare
        assert most_fma_in_a_loop(report.ptx) >= probes.LINKS * int(name[-1])


@pytest.mark.parametrize("links", [16, 32])
def test_more_links_per_round_leave_the_loop_less(links):
    """All FMA of a round stand in one loop body: its own instructions are the rarer."""
    x, s = np.empty(1, np.float32), np.float32(1)
    report = compile(probes.make_fma("float32", 8, links), (x, s, s, COUNT, x), (9, 0))
    assert most_fma_in_a_loop(report.ptx) == 8 * links
    assert report.spill_bytes == report.stack_bytes == 0


CHAINS = {
    ("float32", "add", 1): "add.f32",
    ("float32", "choose", 1): "setp.gt.f32",
    ("float32", "divide", 8): "div.approx.f32",
    ("float32", "rsqrt", 1): "rsqrt.approx.f32",
    ("float64", "multiply", 1): "mul.f64",
    ("float64", "choose", 8): "selp.f64",
    ("float64", "divide", 1): "rcp.approx.ftz.f64",
    ("float64", "reciprocal", 8): "rcp.approx.ftz.f64",
    ("float64", "rsqrt", 8): "rsqrt.approx.ftz.f64",
    ("float64", "branching divide", 1): "div.rn.f64",
    ("float64", "branching reciprocal", 1): "rcp.rn.f64",
    ("float64", "branching rsqrt", 8): "rsqrt.approx.f64",
}


@pytest.mark.parametrize(("dtype", "operation", "chains"), CHAINS)
def test_chains_are_left_as_they_are(dtype, operation, chains):
    """No link is taken for another one's result, and each loop has a round's links or several."""
    x, s = np.empty(1, dtype), np.dtype(dtype).type(1)
    kernel = probes.make_chain(dtype, operation, chains)
    report = compile(kernel, (x, s, s, s, COUNT, x), (9, 0))
    links = report.ptx.count(CHAINS[dtype, operation, chains])
    around = 2 if operation == "add" else 0  # a chain's start and the sum
    assert links > 0 and (links - around) % probes.OPERATIONS_A_ROUND == 0
    assert report.spill_bytes == report.stack_bytes == 0
    assert report.registers <= 64 and (dtype == "float64" or report.fp64_instructions == 0)


def test_several_loads_come_before_the_first_store():
    """The compiler keeps them in registers, and none waits for a store."""
    x = np.empty(1, np.float32)
    report = compile(probes.make_copy_several("float32", 4), (x, x), (9, 0))
    moves = [line for line in report.ptx.splitlines() if "global" in line and ".f32" in line]
    assert ["ld" if "ld." in line else "st" for line in moves] == ["ld"] * 4 + ["st"] * 4
    assert "ld.local" not in report.ptx and "st.local" not in report.ptx


@pytest.mark.parametrize("name", ARITHMETIC)
def test_fp64_kernels(name):
    report = compile(*DOUBLE[name], (8, 0))
    assert report.fp64_instructions > 0
    assert ".f32" not in report.ptx
    assert report.spill_bytes == report.stack_bytes == 0


@pytest.mark.parametrize("cc", [(8, 0), (9, 0)], ids=str)
@pytest.mark.parametrize("tiles", [1, 4, 8])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_on_tensor_cores(dtype, tiles, cc):
    """Each round has its products, three of each in TF32, and no register is spilled."""
    report = compile(probes.tensor_products(dtype, tiles), cc=cc)
    shape = "m16n8k8" if dtype == "float32" else "m16n8k4" if cc == (9, 0) else "m8n8k4"
    each = {"m16n8k8": 3, "m16n8k4": 1, "m8n8k4": 2}[shape]
    products = report.ptx.count(f"mma.sync.aligned.{shape}")
    assert products == report.ptx.count("mma.sync")
    assert products and products % (each * tiles * probes.LINKS) == 0
    assert report.spill_bytes == report.stack_bytes == 0
    assert dtype == "float64" or report.fp64_instructions == 0


def test_what_is_read_again_passes_the_first_cache(held, cc):
    report = held(probes.read_again())
    assert report.ptx.count("ld.global.cg.v4.f32") == 4
    assert "ld.global.nc" not in report.ptx
    assert held(load(probes.HERE / "nothing.cu", "nothing")).registers < 16


def test_the_clock_is_read_before_and_after(held):
    assert held(probes.wait_clocks()).ptx.count("%clock64") >= 2


def test_a_python_float_is_found():
    """The commonest slip. (A factor of 0.5 would not show: the compiler sees that it is exact.)"""

    @jit
    def scales(u):
        i = cuda.grid(1)
        if i < u.size:
            u[i] = 0.1 * u[i]

    assert compile(scales, (np.empty(1, np.float32),), (9, 0)).fp64_instructions > 0


def test_a_python_float_as_dt_costs_one_conversion_only():
    x = np.empty(1, np.float32)
    report = compile(midpoint.make_update("float32"), (x, x, x, 0.1), (9, 0))
    assert report.fp64_instructions == 1
    assert "cvt.rn.f32.f64" in report.ptx
