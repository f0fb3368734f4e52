"""CUDA C++ kernels on a real device, and the compiler's report against what the driver says."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from dgbook.check.compile import compile
from dgbook.gpu import cuda, device, jit
from dgbook.gpu.kernel import preparing
from dgbook.gpu.limits import ARCHITECTURES
from dgbook.gpu.source import load

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

KERNELS = Path(__file__).parents[1] / "compile" / "kernels.cu"
SEED = np.random.SeedSequence().entropy
RANDOM = np.random.default_rng(SEED)


@pytest.fixture(params=["float32", "float64"])
def real(request):
    return np.dtype(request.param).type


def arrays(n, real):
    x = RANDOM.standard_normal(n).astype(real)
    return x, GPU.array(x), GPU.empty(n, real)


@pytest.mark.parametrize("options", [{}, {"max_registers": 32, "lineinfo": True}])
def test_a_kernel_computes(real, options):
    x, there, y = arrays(1000, real)
    scale = load(KERNELS, "scale", {"REAL": real}, **options)
    scale[4, 256](there, y, 3, 900)  # Python's 3 becomes REAL, whichever it is
    result = GPU.to_numpy(y)
    np.testing.assert_array_equal(result[:900], real(3) * x[:900])
    assert np.isnan(result[900:]).all()


def test_static_shared_memory(real):
    x, there, y = arrays(128, real)
    load(KERNELS, "reverse", {"REAL": real})[(1,), (128, 1, 1)](there, y)
    np.testing.assert_array_equal(GPU.to_numpy(y), x[::-1])


@pytest.mark.parametrize("nbytes", [1000, 48 * 1024, 60_000])
def test_dynamic_shared_memory(real, nbytes):
    n = nbytes // np.dtype(real).itemsize
    x, there, y = arrays(n, real)
    load(KERNELS, "reverse_all", {"REAL": real})[1, 256, nbytes](there, y, n)
    np.testing.assert_array_equal(GPU.to_numpy(y), x[::-1])


def test_preparing_does_not_run(real):
    x, there, y = arrays(100, real)
    scale = load(KERNELS, "scale", {"REAL": real})
    with preparing():
        scale[1, 128](there, y, 2, 100)
    assert np.isnan(GPU.to_numpy(y)).all()
    scale[1, 128](there, y, 2, 100)
    np.testing.assert_array_equal(GPU.to_numpy(y), 2 * x)


def test_both_languages_in_one_graph(real):
    @jit
    def shift(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] + real(1)

    x, there, y = arrays(100, real)
    scale = load(KERNELS, "scale", {"REAL": real})

    def step():
        shift[1, 128](there, y)
        scale[1, 128](y, there, 2, 100)

    replay = GPU.capture(step)
    np.testing.assert_array_equal(GPU.to_numpy(there), x)
    expected = x
    for _ in range(3):
        replay()
        expected = real(2) * (expected + real(1))
    GPU.synchronize()
    np.testing.assert_array_equal(GPU.to_numpy(there), expected)


@pytest.mark.parametrize("name", ["scale", "reverse", "reverse_all", "juggle"])
@pytest.mark.parametrize("options", [{}, {"max_registers": 40}])
def test_the_report_agrees_with_the_driver(real, name, options):
    kernel = load(KERNELS, name, {"REAL": real}, **options)
    report = compile(kernel, cc=GPU.compute_capability)
    loaded = kernel.function
    assert report.shared_bytes == loaded.shared_size_bytes
    # CuPy's NVRTC may be another version than the ptxas here.
    assert abs(report.registers - loaded.num_regs) <= 8
    assert (report.stack_bytes > 0) == (loaded.local_size_bytes > 0)


@pytest.mark.skipif(GPU.compute_capability not in ARCHITECTURES, reason="an unknown architecture")
@pytest.mark.parametrize("threads", [32, 33, 128, 200, 256, 768, 1024])
@pytest.mark.parametrize("shared", [0, 1, 1024, 10_000, 40_000, 48 * 1024])
def test_occupancy_agrees_with_the_driver(threads, shared):
    from cupy.cuda import driver

    for name, options in (("scale", {}), ("juggle", {}), ("juggle", {"max_registers": 64})):
        kernel = load(KERNELS, name, {"REAL": "float"}, **options)
        report = compile(kernel, cc=GPU.compute_capability)
        loaded = kernel.function
        same = dataclasses.replace(report, registers=loaded.num_regs)
        blocks = driver.occupancyMaxActiveBlocksPerMultiprocessor(
            loaded.kernel.ptr, threads, shared
        )
        assert same.blocks_per_multiprocessor(threads, shared) == blocks
