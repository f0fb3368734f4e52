"""CUDA C++ on the CPU: the threads of a block are fibers that take turns at every barrier.

For kernels whose only shared memory is `extern __shared__ VECTOR memory[]`, and without what a CPU
cannot say: a kernel leaves its inline assembly to devices (`#if __CUDA_ARCH__`). What a barrier
forgotten does shows up, since threads run in one order in every other block and in the opposite
one in the rest. g++ compiles it, which a test should look for.
"""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from dgbook.gpu.source import CudaKernel

BEFORE = r"""
#include <cstring>
#include <limits>
#include <ucontext.h>
#include <vector>
#define __device__
#define __global__
#define __shared__
#define __restrict__
#define __launch_bounds__(...)
struct float4 { float x, y, z, w; };
struct double2 { double x, y; };
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
static struct { unsigned x, y, z; } threadIdx, blockIdx;
static ucontext_t scheduler;
static std::vector<ucontext_t> threads;
static std::vector<int> barriers, finished;
static int current;
static void __syncthreads()
{
    ++barriers[current];
    swapcontext(&threads[current], &scheduler);
}
static void __syncwarp() { __syncthreads(); }
template <class T> T __ldcs(const T* from) { return *from; }
template <class T> void __stcs(T* to, T value) { *to = value; }
"""

AFTER = r"""
VECTOR memory[1 << 14];
static void** given;
static void thread()
{
    CALL;
    finished[current] = 1;
}
extern "C" int run(int blocks, int count, void** arguments)
{
    const size_t size = 1 << 17;
    std::vector<char> stacks(size * count);
    given = arguments;
    for (int block = 0; block < blocks; ++block) {
        for (size_t i = 0; i < sizeof(memory) / sizeof(REAL); ++i)
            ((REAL*)memory)[i] = std::numeric_limits<REAL>::quiet_NaN();
        blockIdx.x = block;
        threads.assign(count, ucontext_t()), barriers.assign(count, 0), finished.assign(count, 0);
        for (int i = 0; i < count; ++i) {
            getcontext(&threads[i]);
            threads[i].uc_stack.ss_sp = &stacks[size * i];
            threads[i].uc_stack.ss_size = size;
            threads[i].uc_link = &scheduler;
            makecontext(&threads[i], thread, 0);
        }
        while (!finished[0])
            for (int i = 0; i < count; ++i) {
                threadIdx.x = current = block % 2 ? count - 1 - i : i;
                if (finished[current])
                    return 1;
                swapcontext(&scheduler, &threads[current]);
            }
        for (int i = 0; i < count; ++i)
            if (!finished[i] || barriers[i] != barriers[0])
                return 1;
    }
    return 0;
}
"""


class Emulated:
    """A kernel in CUDA C++, to be launched on NumPy arrays as it is on those of a GPU.

    Parameters
    ----------
    kernel : CudaKernel
    folder : Path
        Where files may be written.
    """

    def __init__(self, kernel: CudaKernel, folder: Path) -> None:
        self.kernel = kernel
        arguments = []
        for i, parameter in enumerate(kernel.parameters):
            kind = {"f4": "float", "f8": "double", "u4": "unsigned"}[parameter.dtype.str[1:]]
            star = "" if parameter.pointer else "*"
            arguments.append(f"{star}({kind}*)given[{i}]")
        after = AFTER.replace("CALL", f"{kernel.name}({', '.join(arguments)})")
        source, library = folder / "kernel.cpp", folder / "kernel.so"
        source.write_text(BEFORE + kernel.code + after, encoding="utf-8")
        macros = [f"-D{name}={value}" for name, value in kernel.defines.items()]
        options = ["-std=c++17", "-O1", "-w", "-fno-strict-aliasing", "-shared", "-fPIC", *macros]
        subprocess.run(["g++", *options, "-o", library, source], check=True)
        self.run = ctypes.CDLL(str(library)).run

    def __getitem__(self, configuration: tuple) -> object:
        blocks, threads, _ = configuration

        def launch(*values: object) -> None:
            kept = [
                value if parameter.pointer else np.array(value, parameter.dtype)
                for parameter, value in zip(self.kernel.parameters, values, strict=True)
            ]
            pointers = (ctypes.c_void_p * len(kept))(*(array.ctypes.data for array in kept))
            assert not self.run(blocks, threads, pointers), "threads meet at different barriers"

        return launch
