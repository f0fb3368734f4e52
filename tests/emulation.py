"""CUDA C++ on the CPU: compiled by g++, block after block, warp after warp, thread after thread.

A thread is a fiber that runs up to its next barrier. A warp goes on until all of its threads wait
for the block, and only then the next warp runs, in every other block from the last to the first,
so that a forgotten `__syncthreads` shows as wrong numbers. Shared memory is NaN when a block
begins; asynchronous copies arrive when the thread waits for them; inline assembly, products on
tensor cores among it, becomes calls of functions in emulation.h that do what PTX says the
instruction does, so that a fragment in the wrong lane or an operand in the wrong place is seen.

What is refused: threads of a warp or block that meet at different barriers, writes to shared memory
beyond what the launch asks for, addresses that the process has not, and a thread that looks again
and again for what no other process writes.

What it cannot see: races inside a warp whose threads happen to run in a harmless order, those
between blocks, bank conflicts and other costs; global memory read or written outside of an array
but inside the process; a block too large for a device, and what its compiler makes of the code (the
compile tier looks at that). Rounding is that of g++: no fused multiply-adds, and sums of tensor
cores are cut off once, not in the device's own, unpublished steps.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgbook.gpu import Device, device
from dgbook.gpu.source import CudaKernel

HEADER = Path(__file__).with_name("emulation.h")
# Checked jumps (_FORTIFY_SOURCE) refuse those between stacks.
COMPILE = (
    *("g++", "-std=c++17", "-O1", "-w", "-fno-strict-aliasing", "-U_FORTIFY_SOURCE"),
    "-fPIC",
)
# By how many of the largest number fused kernels may be wrong: ten times what orders 1 to 9 lose.
ROUNDINGS = 200
TYPES = {"f4": "float", "f8": "double", "i4": "int", "u4": "unsigned", "u8": "unsigned long long"}


def device_of(capability: tuple[int, int]) -> Device:
    """The simulator with a compute capability, for which launchers prepare kernels in CUDA C++."""
    return replace(device("simulator"), compute_capability=capability)


needs_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")


@cache
def compiled_header() -> tempfile.TemporaryDirectory:
    """A folder in which g++ finds the header compiled: parsing it takes longer than a kernel."""
    folder = tempfile.TemporaryDirectory()
    made = Path(folder.name, f"{HEADER.name}.gch")
    subprocess.run([*COMPILE, "-x", "c++-header", HEADER, "-o", made], check=True)
    return folder


def translated(code: str) -> str:
    """CUDA C++ as g++ takes it behind emulation.h: assembly is called by name."""
    room = r"\1* const \2 = (\1*)emulated::memory;"
    code = re.sub(r"extern __shared__ (\w+) (\w+)\[\];", room, code)
    return re.sub(r"\basm\s*(?:volatile)?\s*\((.*?)\);", _call, code, flags=re.DOTALL)


def _call(assembly: re.Match) -> str:
    """One instruction: `asm("name %0, {%1};" : "=f"(x) : "f"(y));` becomes `name(x, y);`."""
    text, rest = re.fullmatch(r'\s*((?:"[^"]*"\s*)+)(.*)', assembly[1], re.DOTALL).groups()
    instruction = "".join(re.findall(r'"([^"]*)"', text)).rstrip(";")
    if not instruction:
        return ";"
    assert ";" not in instruction, f"several instructions in one: {instruction}"
    rest = re.sub(r':\s*"memory"\s*$', "", rest)
    operands = re.split(r'[:,]\s*"[=+]?[a-z]"\s*(?=\()', rest)[1:]
    name, _, places = instruction.partition(" ")
    places = re.sub(r"[{}\[\]]", "", places)
    given = re.sub(r"%(\d+)", lambda place: operands[int(place[1])].strip(), places)
    return f"{re.sub(r'[^0-9A-Za-z]+', '_', name)}({given});"


def emulate(launcher: Any, folder: Path) -> None:
    """Let a launcher made for such a device run its kernel here; `folder` is for files."""
    capability = launcher.device.compute_capability
    launcher.kernel = Emulated(launcher.kernel, folder, capability)


def compiled(kernel: CudaKernel, folder: Path, capability: tuple[int, int]) -> Path:
    """The library that g++ makes of a kernel; parameters as of `Emulated`."""
    defines = {"__CUDA_ARCH__": "{}{}0".format(*capability), **kernel.defines}
    arguments = []
    for i, parameter in enumerate(kernel.parameters):
        star = "" if parameter.pointer else "*"
        arguments.append(f"{star}({TYPES[parameter.dtype.str[1:]]}*)arguments[{i}]")
    lines = [
        f'#include "{HEADER.name}"',
        *(f"#define {name} {value}" for name, value in defines.items()),
        translated(kernel.code),
        'extern "C" { void** arguments; }',
        f"static void emulated::call() {{ {kernel.name}({', '.join(arguments)}); }}",
    ]
    source, library = folder / "kernel.cpp", folder / "kernel.so"
    source.write_text("\n".join(lines), encoding="utf-8")
    include = (f"-I{compiled_header().name}", f"-I{HEADER.parent}")
    subprocess.run([*COMPILE, *include, "-shared", source, "-o", library], check=True)
    return library


class EmulationError(Exception):
    """A kernel did what no device would have run to an end in a defined way."""


class Emulated:
    """A kernel in CUDA C++, to be launched on NumPy arrays as it is on those of a GPU.

    Parameters
    ----------
    kernel : CudaKernel
    folder : Path
        Where files may be written.
    capability : tuple of two ints
        The device's: which way the source takes where it asks for `__CUDA_ARCH__`.

    Raises
    ------
    EmulationError
        By a launch, for what is refused.
    """

    def __init__(self, kernel: CudaKernel, folder: Path, capability: tuple[int, int]) -> None:
        self._load(kernel, compiled(kernel, folder, capability))

    @classmethod
    def loaded(cls, kernel: CudaKernel, library: Path) -> Emulated:
        """A kernel that is `compiled` already, by another process."""
        self = cls.__new__(cls)
        self._load(kernel, library)
        return self

    def _load(self, kernel: CudaKernel, library: Path) -> None:
        self.kernel, self.library = kernel, ctypes.CDLL(str(library))
        self.library.run.restype = ctypes.c_char_p

    def __getitem__(self, configuration: tuple) -> object:
        blocks, threads, shared = (*configuration, 0)[:3]

        def launch(*values: object) -> None:
            kept = [
                value if parameter.pointer else np.array(value, parameter.dtype)
                for parameter, value in zip(self.kernel.parameters, values, strict=True)
            ]
            pointers = (ctypes.c_void_p * len(kept))(*(array.ctypes.data for array in kept))
            given = ctypes.c_void_p.in_dll(self.library, "arguments")
            given.value = ctypes.addressof(pointers)
            trouble = self.library.run(blocks, threads, ctypes.c_size_t(shared))
            if trouble:
                raise EmulationError(f"kernel {self.kernel.name}: {trouble.decode()}")

        return launch
