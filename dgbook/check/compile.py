"""What a kernel costs a multiprocessor: compiled to machine code with no GPU and no driver.

Both kernel languages take one path: source to PTX (Numba, or NVRTC for CUDA C++), PTX to machine
code with ptxas, whose report is read.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.gpu.kernel import HAS_NUMBA_CUDA, Kernel, cuda, pretended_device
from dgbook.gpu.limits import ARCHITECTURES, WARP, resident_blocks
from dgbook.gpu.source import CudaKernel

TOOLKIT = "/usr/local/cuda"  # where it is on Colab and on most other machines


class CompilerNotFoundError(RuntimeError):
    """A compiler is not installed here; the message says how to get it."""


@dataclass(frozen=True)
class Report:
    """What ptxas says of a kernel for one compute capability.

    Attributes
    ----------
    name : str
    cc : tuple of two ints
        Compute capability.
    registers : int
        32-bit registers a thread.
    spill_bytes : int
        Bytes stored to and loaded from local memory because registers ran out: stores + loads.
    stack_bytes : int
        Local memory a thread: spills, and arrays whose indices are known at run time only.
    shared_bytes : int
        Static shared memory a block.
    constant_bytes : int
        Arrays in constant memory, of which there are 64 KB: what a Numba kernel closes over, what
        CUDA C++ declares __constant__. Not the kernel's parameters.
    fp64_instructions : int
        Instructions in the PTX that compute with, compare or convert double precision numbers; not
        those that move, load, store or select them. Zero if and only if no arithmetic is fp64.
    ptx : str
    """

    name: str
    cc: tuple[int, int]
    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int
    constant_bytes: int
    fp64_instructions: int
    ptx: str = field(repr=False)

    def blocks_per_multiprocessor(self, threads: int, shared_dynamic: int = 0) -> int:
        """How many blocks of this kernel a multiprocessor holds at once; 0 if not even one.

        Parameters
        ----------
        threads : int
            In a block, 1 to 1024.
        shared_dynamic : int
            Bytes of dynamic shared memory a block.
        """
        if shared_dynamic < 0:
            raise ValueError(f"shared_dynamic = {shared_dynamic}; bytes are not negative")
        shared = self.shared_bytes + shared_dynamic
        return resident_blocks(ARCHITECTURES[self.cc], threads, self.registers, shared)

    def occupancy(self, threads: int, shared_dynamic: int = 0) -> float:
        """Resident warps over those that a multiprocessor can hold; 0 if no block fits.

        Parameters as in `blocks_per_multiprocessor`.
        """
        blocks = self.blocks_per_multiprocessor(threads, shared_dynamic)
        return blocks * -(-threads // WARP) / ARCHITECTURES[self.cc].warps

    def __str__(self) -> str:
        return (
            f"{self.name} for {self.cc[0]}.{self.cc[1]}: {self.registers} registers, "
            f"{self.spill_bytes} bytes spilled, {self.stack_bytes} bytes of stack, "
            f"{self.shared_bytes} bytes shared, {self.fp64_instructions} fp64 instructions"
        )


def compile(
    kernel: Kernel | CudaKernel, signature: tuple = (), cc: tuple[int, int] = (9, 0)
) -> Report:
    """Compile a kernel to machine code and read off what it needs.

    Parameters
    ----------
    kernel : Kernel or CudaKernel
        Its options ``fastmath``, ``max_registers``, ``lineinfo`` and ``launch_bounds`` count.
    signature : tuple
        One entry an argument: a Numba type, or an example: an array (NumPy or CuPy, taken as
        C-contiguous), a number, or a tuple of these. A CUDA C++ kernel has its types in its source
        and needs none.
    cc : tuple of two ints
        Compute capability: a key of `ARCHITECTURES`.

    Returns
    -------
    Report

    Raises
    ------
    TypeError, ValueError
        For a wrong kernel, signature or compute capability; Numba's TypingError for a kernel that
        does not fit its signature.
    CompilerNotFoundError
        Where a compiler is missing; the message says how to get it.
    RuntimeError
        Where one refuses the kernel: its own words.
    """
    ptx, entry = _ptx(kernel, signature, cc)
    log = _assemble(kernel, ptx, entry, cc)
    stack, spill = _functions(log)
    registers, shared = _usage(log, entry)
    return Report(
        name=kernel.name,
        cc=cc,
        registers=registers,
        spill_bytes=spill,
        stack_bytes=stack,
        shared_bytes=shared,
        constant_bytes=_constant_bytes(ptx),
        fp64_instructions=len(_FP64.findall(_without_other_entries(ptx, entry))),
        ptx=ptx,
    )


def sass(kernel: Kernel | CudaKernel, signature: tuple = (), cc: tuple[int, int] = (9, 0)) -> str:
    """The kernel's machine code as text; parameters as in `compile`.

    Raises
    ------
    CompilerNotFoundError
        Without nvdisasm, which is a package of its own: nvidia-cuda-nvdisasm.
    """
    disassembler = _tool("nvdisasm", "nvidia-cuda-nvdisasm")
    ptx, entry = _ptx(kernel, signature, cc)
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder, "kernel.cubin")
        _assemble(kernel, ptx, entry, cc, cubin)
        return _run([disassembler, "-c", str(cubin)], kernel.name)


def numba_signature(kernel: Kernel, signature: tuple) -> tuple:
    """Numba's types of a kernel's arguments, from types or from examples; see `compile`."""
    from numba import typeof
    from numba import types as numba_types
    from numba.np import numpy_support

    if not isinstance(signature, tuple):
        raise TypeError(
            f"kernel {kernel.name}: signature = {signature!r}; it is a tuple with one entry an "
            "argument: Numba types or examples"
        )
    code = kernel.py_func.__code__
    names = code.co_varnames[: code.co_argcount]
    if len(signature) != len(names):
        raise TypeError(
            f"kernel {kernel.name}: the signature has {len(signature)} entries, the kernel "
            f"{len(names)} arguments: {', '.join(names)}"
        )

    def convert(name: str, value: Any) -> Any:
        if isinstance(value, numba_types.Type):
            return value
        if isinstance(value, tuple):
            return numba_types.BaseTuple.from_types([convert(name, part) for part in value])
        if hasattr(value, "dtype") and hasattr(value, "shape") and not np.isscalar(value):
            dtype = numpy_support.from_dtype(np.dtype(value.dtype))
            return numba_types.Array(dtype, len(value.shape), "C")
        if isinstance(value, (bool, int, float, complex, np.generic)):
            return typeof(value)
        raise TypeError(
            f"kernel {kernel.name}: argument {name} = {value!r} in the signature; allowed are "
            "Numba types, arrays, numbers and tuples of these"
        )

    return tuple(convert(name, value) for name, value in zip(names, signature, strict=True))


# ------------------------------------------------------------------------------------------
# Source to PTX
# ------------------------------------------------------------------------------------------


def _ptx(kernel: Any, signature: tuple, cc: tuple[int, int]) -> tuple[str, str]:
    """PTX, and the kernel's name in it."""
    if not isinstance(cc, tuple) or cc not in ARCHITECTURES:
        known = ", ".join(map(str, ARCHITECTURES))
        raise ValueError(f"cc = {cc!r}; compute capabilities known here are {known}")
    if isinstance(kernel, CudaKernel):
        architecture = f"--gpu-architecture=compute_{cc[0]}{cc[1]}"
        options = (architecture, *kernel.compiler_options)
        return _nvrtc(kernel.code, str(kernel.path), options), kernel.name
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"kernel = {kernel!r}; allowed are kernels made by dgbook.gpu.jit or "
            "dgbook.gpu.source.load"
        )
    if not HAS_NUMBA_CUDA or not _installed("numba-cuda"):
        raise CompilerNotFoundError(
            f"kernel {kernel.name}: numba-cuda is not installed, which compiles it; install "
            "dgbook[cuda12] or dgbook[cuda13]"
        )
    types_ = numba_signature(kernel, signature)
    options = {
        name: kernel.options[name]
        for name in ("fastmath", "lineinfo", "launch_bounds")
        if name in kernel.options
    }
    with pretended_device(cc):
        ptx, _ = cuda.compile_ptx(kernel.py_func, types_, cc=cc, **options)
    return ptx, re.search(r"\.entry\s+([\w$]+)", ptx)[1]


@lru_cache(maxsize=64)
def _nvrtc(text: str, name: str, options: tuple[str, ...]) -> str:
    """Compile CUDA C++ to PTX."""
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()  # loads the library
    except (ImportError, RuntimeError) as error:
        raise CompilerNotFoundError(
            "CUDA C++ is compiled by NVRTC, which was not found here: install dgbook[cuda12] or "
            f"dgbook[cuda13] ({error})"
        ) from error

    def check(result: tuple) -> Any:
        status, *values = result
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            said = nvrtc.nvrtcGetErrorString(status)[1].decode()
            raise RuntimeError(f"{name}: NVRTC says {said}")
        return values[0] if values else None

    program = check(nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], []))
    try:
        arguments = [option.encode() for option in options]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(arguments), arguments)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = b" " * check(nvrtc.nvrtcGetProgramLogSize(program))
            check(nvrtc.nvrtcGetProgramLog(program, log))
            raise RuntimeError(f"{name}: {log.decode().strip(chr(0)).strip()[:2000]}")
        ptx = b" " * check(nvrtc.nvrtcGetPTXSize(program))
        check(nvrtc.nvrtcGetPTX(program, ptx))
        return ptx.decode().rstrip(chr(0))
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


# An optional predicate, then an instruction whose type is .f64 and that does not just move it.
_FP64 = re.compile(
    r"^\s*(?:@!?%\w+\s+)?(?!(?:ld|ldu|st|mov|selp)\.)[a-z][\w.:]*\.f64\b", re.MULTILINE
)


def _constant_bytes(ptx: str) -> int:
    """Of all variables in constant memory; ptxas tells them for some architectures only."""
    declared = re.findall(
        r"^(?:\.\w+ )*\.const\s+\.align\s+\d+\s+\.[a-z](\d+)\s+[\w$]+(?:\[(\d+)\])?",
        ptx,
        re.MULTILINE,
    )
    return sum(int(bits) // 8 * int(count or 1) for bits, count in declared)


def _without_other_entries(ptx: str, entry: str) -> str:
    """PTX without the other kernels of the same file; functions that kernels call stay."""
    pieces = re.split(
        r"(?=^(?:\.visible\s+|\.weak\s+)?\.(?:entry|func)\b)", ptx, flags=re.MULTILINE
    )
    other = re.compile(r"(?:\.visible\s+|\.weak\s+)?\.entry\s+(?!" + re.escape(entry) + r"\b)")
    return "".join(piece for piece in pieces if not other.match(piece))


# ------------------------------------------------------------------------------------------
# PTX to machine code
# ------------------------------------------------------------------------------------------


def _assemble(
    kernel: Kernel | CudaKernel,
    ptx: str,
    entry: str,
    cc: tuple[int, int],
    cubin: Path | None = None,
) -> str:
    """Run ptxas on one kernel; returns what it reports."""
    command = [_tool("ptxas", "nvidia-cuda-nvcc"), f"-arch=sm_{cc[0]}{cc[1]}", "-v", "-"]
    command += ["--entry", entry, "-o", str(cubin or os.devnull)]
    if ".extern .func" in ptx:  # a grid barrier calls the device runtime, linked at launch
        command.append("-c")
    if kernel.options.get("max_registers"):
        command.append(f"--maxrregcount={kernel.options['max_registers']}")
    if kernel.options.get("lineinfo"):
        command.append("-lineinfo")
    return _run(command, kernel.name, ptx)


def _run(command: list[str], kernel: str, stdin: str | None = None) -> str:
    done = subprocess.run(command, input=stdin, text=True, capture_output=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise RuntimeError(f"kernel {kernel}: {command[0]} refuses it: {said[:2000]}")
    return done.stdout + done.stderr


def _functions(log: str) -> tuple[int, int]:
    """Bytes of stack and of spills, stores and loads, of all functions that ptxas reports."""
    stack = spill = 0
    for frame, stores, loads in re.findall(
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log
    ):
        stack += int(frame)
        spill += int(stores) + int(loads)
    return stack, spill


def _usage(log: str, entry: str) -> tuple[int, int]:
    """Registers and bytes of shared memory of one kernel in ptxas's report."""
    _, _, rest = log.partition(f"Compiling entry function '{entry}'")
    line = re.search(r"Used (\d+) registers.*", rest)
    return int(line[1]), sum(map(int, re.findall(r"(\d+) bytes smem", line[0])))


@lru_cache
def _tool(name: str, package: str) -> str:
    """Path of a CUDA tool: of pip's packages, as Numba's own compiler is, else of the toolkit.

    The newest of several, for an older ptxas refuses the PTX of a newer compiler.
    """
    packaged = [
        str(file.locate())
        for distribution in (package, f"{package}-cu12", f"{package}-cu13")
        if _installed(distribution)
        for file in importlib.metadata.files(distribution) or ()
        if file.name == name and file.parent.name == "bin"
    ]
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), TOOLKIT]
    toolkit = [shutil.which(name), *(f"{home}/bin/{name}" for home in homes if home)]
    for paths in (packaged, toolkit):
        here = [path for path in paths if path and Path(path).is_file()]
        if here:
            return max(here, key=_tool_version)
    raise CompilerNotFoundError(
        f"{name} was not found. Install it with: pip install {package}, or put the CUDA toolkit's "
        "bin folder on PATH"
    )


def _tool_version(path: str) -> tuple[int, ...]:
    said = subprocess.run([path, "--version"], text=True, capture_output=True, check=False).stdout
    version = re.search(r"V(\d+)\.(\d+)\.(\d+)", said)
    return tuple(map(int, version.groups())) if version else (0,)
