"""The compiler's report says of known kernels what is known of them."""

import dataclasses
import importlib
import subprocess

import numba
import numpy as np
import pytest

from dgbook.check.compile import CompilerNotFoundError, Report, compile, sass
from dgbook.gpu import cuda, jit
from dgbook.gpu.limits import ARCHITECTURES

# Not `from dgbook.gpu import compile`: a package may export the function by the module's name.
module = importlib.import_module("dgbook.check.compile")

f4, f8 = np.float32, np.float64
X4, X8 = np.zeros(4, f4), np.zeros(4, f8)


def make_saxpy(real, factor=1):
    @jit
    def saxpy(a, x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = a * x[i] * factor + y[i]

    return saxpy


def report(registers=32, shared_bytes=0, cc=(9, 0)):
    return Report("kernel", cc, registers, 0, 0, shared_bytes, 0, 0, "")


# -- what is read off ----------------------------------------------------------------------


def test_saxpy_needs_nothing_special(cc, held):
    compiled = held(make_saxpy(f4, f4(3)), (f4(2), X4, X4))
    assert compiled.name == "saxpy"
    assert compiled.cc == cc
    assert 8 <= compiled.registers <= 32
    assert compiled.shared_bytes == 0
    assert compiled.constant_bytes == 0
    assert f".target sm_{cc[0]}{cc[1]}" in compiled.ptx


def test_a_literal_promotes_fp32_to_fp64(cc):
    clean = compile(make_saxpy(f4, f4(0.5)), (f4(2), X4, X4), cc)
    promoted = compile(make_saxpy(f4, 0.5), (f4(2), X4, X4), cc)
    assert clean.fp64_instructions == 0
    # to fp64: a * x[i] and y[i]; the product and the sum, or one FMA; and back
    assert 4 <= promoted.fp64_instructions <= 5


def test_an_fp64_kernel_counts_its_arithmetic_and_not_its_moves(cc):
    @jit
    def copy(x, y):
        y[cuda.grid(1)] = x[cuda.grid(1)]

    @jit
    def choose(x, y):
        y[0] = x[0] if cuda.threadIdx.x == 0 else x[1]

    @jit
    def add(x, y):
        y[cuda.grid(1)] += x[cuda.grid(1)]

    @jit
    def compare(x, y):
        if x[cuda.grid(1)] > y[0]:
            y[1] = 0

    @jit
    def add_atomically(x, y):
        cuda.atomic.add(y, 0, x[cuda.grid(1)])

    counts = [
        compile(kernel, (X8, X8), cc).fp64_instructions
        for kernel in (copy, choose, add, compare, add_atomically)
    ]
    assert counts == [0, 0, 1, 1, 1]


def test_an_array_with_indices_of_run_time_goes_to_the_stack(cc):
    @jit
    def histogram(x, counts):
        bins = cuda.local.array(64, numba.float32)
        for i in range(64):
            bins[i] = f4(0)
        for i in range(x.size):
            bins[x[i]] += f4(1)
        for i in range(64):
            counts[i] = bins[i]

    compiled = compile(histogram, (np.zeros(1, np.int32), X4), cc)
    assert 64 * 4 <= compiled.stack_bytes < 64 * 4 + 64
    assert compiled.spill_bytes == 0


@pytest.mark.parametrize("n", [1, 33, 1000])
def test_shared_bytes_are_what_was_asked_for(cc, n):
    @jit
    def rotate(x):
        s = cuda.shared.array(n, f4)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        x[t] = s[(t + 1) % n]

    assert compile(rotate, (X4,), cc).shared_bytes == 4 * n


@pytest.mark.parametrize("dtype", [f4, f8, np.int16])
def test_constant_bytes_are_those_closed_over(cc, dtype):
    table, other = np.arange(100, dtype=dtype), np.arange(3, dtype=dtype)

    @jit
    def look_up(x):
        t = cuda.threadIdx.x
        x[t] = cuda.const.array_like(table)[t] + other[t % 3]

    assert compile(look_up, (X8,), cc).constant_bytes == 103 * np.dtype(dtype).itemsize


def test_max_registers_is_kept_and_spills(cc):
    def make(**options):
        @jit(**options)
        def juggle(x, y):
            held = cuda.local.array(40, f4)
            t = cuda.threadIdx.x  # else all threads hold the same, in registers of the warp
            for i in range(40):
                held[i] = x[t + i]
            for j in range(x.size):
                for i in range(40):
                    held[i] = held[i] * x[j] + held[39 - i]
            for i in range(40):
                y[t + i] = held[i]

        return juggle

    free = compile(make(), (X4, X4), cc)
    bound = compile(make(max_registers=32), (X4, X4), cc)
    assert free.registers > 40
    assert free.spill_bytes == 0
    assert bound.registers <= 32
    # 8 of the 40 numbers at least have no register: each is stored and loaded
    assert bound.spill_bytes >= 8 * 8
    assert bound.stack_bytes >= 8 * 4


def test_fastmath_is_kept(cc):
    def make(**options):
        @jit(**options)
        def divide(x, y):
            y[0] = x[0] / x[1]

        return divide

    assert "div.rn.f32" in compile(make(), (X4, X4), cc).ptx
    fast = compile(make(fastmath=True), (X4, X4), cc).ptx
    assert "div.approx" in fast
    assert "div.rn.f32" not in fast


def test_launch_bounds_are_kept():
    @jit(launch_bounds=96)
    def nothing(x):
        x[0] = 1

    assert ".maxntid 96" in compile(nothing, (X4,)).ptx


def test_lineinfo_is_kept():
    @jit(lineinfo=True)
    def nothing(x):
        x[0] = 1

    assert ".loc" in compile(nothing, (X4,)).ptx


def test_device_functions_for_one_capability_after_another():
    @jit(device=True)
    def square(x):
        return x * x

    @jit(device=True)
    def norm(x, y):
        return square(x) + square(y)

    @jit
    def use(x):
        x[0] = norm(x[1], x[2])

    for cc in ((9, 0), (7, 5), (8, 0)):
        compiled = compile(use, (X4,), cc)
        assert compiled.fp64_instructions == 0
        assert f"sm_{cc[0]}{cc[1]}" in compiled.ptx


def test_an_fp64_device_function_is_counted():
    @jit(device=True)
    def tenth(x):
        return 0.1 * x

    @jit
    def use(x):
        x[0] = tenth(x[1])

    assert compile(use, (X4,)).fp64_instructions == 3  # to fp64, the product, and back


def test_grid_barrier(cc):
    @jit
    def shift(x, y):
        grid = cuda.cg.this_grid()
        i = cuda.grid(1)
        y[i] = x[i]
        grid.sync()
        x[i] = y[x.size - 1 - i]

    assert ".extern .func" in compile(shift, (X4, X4), cc).ptx


def test_the_driver_is_asked_again_after_compiling():
    import numba.cuda.dispatcher as dispatcher

    before = dispatcher.get_current_device
    compile(make_saxpy(f4), (f4(1), X4, X4))
    with pytest.raises(numba.core.errors.NumbaError):
        compile(make_saxpy(f4), ((f4(1), f4(1)), X4, X4))
    assert dispatcher.get_current_device is before


# -- signatures ----------------------------------------------------------------------------


def test_types_and_examples_mean_the_same():
    saxpy = make_saxpy(f4)
    types = (numba.float32, numba.float32[::1], numba.float32[::1])
    assert module.numba_signature(saxpy, types) == types
    assert module.numba_signature(saxpy, (f4(1), X4, np.zeros(7, f4))) == types
    assert compile(saxpy, types).registers == compile(saxpy, (f4(1), X4, X4)).registers


def test_examples_of_all_kinds():
    @jit
    def take(grid, pair, n, real, flag, x):
        if flag:
            x[0] = grid[n, 0] * real + pair[0][0] * pair[1]

    compiled = compile(take, (np.zeros((2, 2)), (X4, 2), 3, 1.5, True, np.zeros((), np.int8)[None]))
    assert ".visible .entry" in compiled.ptx


def test_an_example_need_not_be_contiguous_or_writeable():
    fixed = np.zeros((4, 4), f4).T
    fixed.flags.writeable = False

    @jit
    def clear(x):
        x[0, 0] = 0

    assert module.numba_signature(clear, (fixed,)) == (numba.float32[:, ::1],)
    assert "st.global" in compile(clear, (fixed,)).ptx


@pytest.mark.parametrize("signature", [None, [X4], "float32[:]", numba.float32[::1]])
def test_a_signature_is_a_tuple(signature):
    with pytest.raises(TypeError, match="kernel saxpy: signature = "):
        compile(make_saxpy(f4), signature)


@pytest.mark.parametrize("signature", [(), (X4, X4), (f4(1), X4, X4, X4)])
def test_a_signature_has_an_entry_for_each_argument(signature):
    with pytest.raises(TypeError, match=rf"saxpy.*{len(signature)} entries.*3 arguments: a, x, y"):
        compile(make_saxpy(f4), signature)


def test_a_signature_holds_types_and_examples_only():
    with pytest.raises(TypeError, match="kernel saxpy: argument x = "):
        compile(make_saxpy(f4), (f4(1), [1.0], X4))


@pytest.mark.parametrize("cc", [(7, 0), (9, 9), 90, "9.0", [9, 0], (9,)])
def test_unknown_compute_capabilities(cc):
    with pytest.raises(ValueError, match=r"cc = .*\(7, 5\), \(8, 0\)"):
        compile(make_saxpy(f4), (f4(1), X4, X4), cc)


def test_only_kernels_are_compiled():
    with pytest.raises(TypeError, match=r"kernel = .*jit"):
        compile(lambda x: x, (X4,))


# -- occupancy -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cc", "registers", "threads", "shared", "blocks"),
    [
        ((9, 0), 32, 256, 0, 8),  # 64 warps of 8 a block
        ((7, 5), 32, 256, 0, 4),  # 32 warps
        ((8, 9), 32, 256, 0, 6),  # 48 warps
        ((9, 0), 16, 32, 0, 32),  # as many blocks as there can be, in half of the warps
        ((7, 5), 16, 32, 0, 16),
        ((8, 6), 16, 32, 0, 16),
        ((8, 9), 16, 32, 0, 24),
        ((9, 0), 64, 256, 0, 4),  # 65536 / (64 * 256)
        ((9, 0), 65, 256, 0, 3),  # 72 * 32 = 2304 a warp: 7 of a quarter's 16384, 28 in all
        ((9, 0), 255, 256, 0, 1),
        ((9, 0), 255, 288, 0, 0),  # 9 warps round up to 12, of 8192 registers each
        ((9, 0), 128, 33, 0, 8),  # 16 warps, 2 a block
        ((7, 5), 32, 64, 16 * 1024, 4),
        ((7, 5), 32, 64, 16 * 1024 + 1, 3),
        ((7, 5), 32, 64, 64 * 1024, 1),
        ((7, 5), 32, 64, 64 * 1024 + 1, 0),
        ((8, 0), 32, 64, 163 * 1024, 1),
        ((8, 0), 32, 64, 40 * 1024, 4),  # 164 = 4 * (40 + 1)
        ((8, 0), 32, 64, 40 * 1024 + 1, 3),
        ((9, 0), 32, 64, 227 * 1024, 1),
        ((9, 0), 32, 64, 227 * 1024 + 1, 0),
        ((9, 0), 32, 64, 56 * 1024, 4),  # 228 = 4 * (56 + 1)
    ],
)
def test_blocks_of_a_multiprocessor(cc, registers, threads, shared, blocks):
    """Worked out by hand from the published limits."""
    static = report(registers, shared, cc)
    dynamic = report(registers, 0, cc)
    assert static.blocks_per_multiprocessor(threads) == blocks
    assert dynamic.blocks_per_multiprocessor(threads, shared) == blocks
    warps = -(-threads // 32)
    assert static.occupancy(threads) == blocks * warps / ARCHITECTURES[cc].warps


def test_occupancy_of_a_compiled_kernel():
    @jit
    def hold(x):
        s = cuda.shared.array(8192, f4)
        s[cuda.threadIdx.x] = x[0]
        cuda.syncthreads()
        x[cuda.threadIdx.x] = s[x.size]

    compiled = compile(hold, (X4,), (7, 5))
    assert compiled.occupancy(128) == 2 * 4 / 32  # two blocks of 32 KB
    assert compiled.occupancy(128, 1) == 1 * 4 / 32


@pytest.mark.parametrize("threads", [0, -1, 1025])
def test_occupancy_of_blocks_that_cannot_be(threads):
    with pytest.raises(ValueError, match=f"threads = {threads}"):
        report().occupancy(threads)
    with pytest.raises(ValueError, match="shared_dynamic = -1"):
        report().occupancy(32, -1)


# -- the report itself ---------------------------------------------------------------------


def test_a_report_is_one_line_and_frozen():
    found = compile(make_saxpy(f4), (f4(1), X4, X4), (8, 0))
    assert str(found) == (
        f"saxpy for 8.0: {found.registers} registers, 0 bytes spilled, 0 bytes of stack, "
        "0 bytes shared, 0 fp64 instructions"
    )
    assert "ptx" not in repr(found)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.registers = 0


# -- tools ---------------------------------------------------------------------------------


@pytest.fixture
def no_tools(monkeypatch):
    """A machine on which nothing is installed."""
    module._tool.cache_clear()
    monkeypatch.setattr(module, "_installed", lambda distribution: distribution == "numba-cuda")
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    monkeypatch.setattr(module, "TOOLKIT", "/nowhere")
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    yield module
    module._tool.cache_clear()


def test_without_ptxas(no_tools):
    with pytest.raises(CompilerNotFoundError, match=r"ptxas.*pip install nvidia-cuda-nvcc"):
        compile(make_saxpy(f4), (f4(1), X4, X4))


def test_without_nvdisasm(no_tools):
    with pytest.raises(CompilerNotFoundError, match="pip install nvidia-cuda-nvdisasm"):
        sass(make_saxpy(f4), (f4(1), X4, X4))


def test_without_numba_cuda(no_tools, monkeypatch):
    monkeypatch.setattr(no_tools, "_installed", lambda distribution: False)
    with pytest.raises(CompilerNotFoundError, match=r"saxpy: numba-cuda.*dgbook\[cuda12\]"):
        compile(make_saxpy(f4), (f4(1), X4, X4))


def test_the_newest_tool_of_the_toolkit_is_taken(no_tools, monkeypatch, tmp_path):
    tools = {}
    for folder, version in (("old", "12.4.99"), ("new", "13.0.1"), ("middle", "12.10.2")):
        tools[folder] = tmp_path / folder / "bin" / "ptxas"
        tools[folder].parent.mkdir(parents=True)
        tools[folder].write_text(f"#!/bin/sh\necho Cuda compilation tools, release, V{version}\n")
        tools[folder].chmod(0o755)
    monkeypatch.setattr(no_tools.shutil, "which", lambda name: str(tools["old"]))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "new"))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "middle"))
    assert no_tools._tool("ptxas", "nvidia-cuda-nvcc") == str(tools["new"])


def test_what_the_assembler_refuses_is_told(monkeypatch):
    refusal = subprocess.CompletedProcess([], 255, "", "ptxas fatal : no such thing")
    monkeypatch.setattr(module.subprocess, "run", lambda *args, **kwargs: refusal)
    with pytest.raises(RuntimeError, match=r"kernel saxpy: .*no such thing"):
        compile(make_saxpy(f4), (f4(1), X4, X4))
