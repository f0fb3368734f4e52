"""Kernels in CUDA C++: a .cu file, launched like a Numba kernel and compiled by NVRTC."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.gpu import kernel as launching
from dgbook.gpu.limits import STATIC_SHARED_LIMIT

OPTIONS = ("fastmath", "lineinfo", "max_registers")
PACKAGE = Path(__file__).parents[1]  # below which a file finds what is not in its own folder

# What a parameter or a macro of that C type holds.
_TYPES = {
    "bool": np.bool_,
    "char": np.int8,
    "signed char": np.int8,
    "unsigned char": np.uint8,
    "short": np.int16,
    "unsigned short": np.uint16,
    "int": np.int32,
    "unsigned": np.uint32,
    "unsigned int": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "size_t": np.uint64,
    "float": np.float32,
    "double": np.float64,
}
_VECTOR = re.compile(r"u?(char|short|int|float|double)([24])")
_SPELLINGS = {np.float32: "float", np.float64: "double", np.int32: "int", np.int64: "long long"}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel in CUDA C++.

    Attributes
    ----------
    name : str
    dtype : numpy.dtype
        Of the number, or of an array's elements; of the components of a vector type.
    pointer : bool
    alignment : int
        Bytes at a multiple of which an array must begin: all of a vector, for vector types and for
        what the source casts to them or hands to `read` of memory.cuh.
    """

    name: str
    dtype: np.dtype
    pointer: bool
    alignment: int


class CudaKernel:
    """A kernel in a .cu file, compiled when it is first launched; made by `load`.

    It is launched as a `Kernel` is, on CuPy arrays only: CUDA C++ cannot be simulated. ::

        kernel[grid, block](x, y, 3)
        kernel[grid, block, shared](x, y, 3)   # shared: bytes of dynamic shared memory

    Attributes
    ----------
    name : str
        Of the function in the file.
    path : pathlib.Path
    defines : dict of str to str
        Macros, as the compiler gets them.
    options : dict
        ``max_registers``, ``fastmath``, ``lineinfo``.
    parameters : tuple of Parameter
    """

    def __init__(
        self, path: Path, name: str, defines: dict[str, str], options: dict[str, Any]
    ) -> None:
        self.path = path
        self.name = name
        self.defines = defines
        self.options = options
        self.parameters = _parameters(_expanded(path), path, name, defines)

    @property
    def text(self) -> str:
        """The whole file, without those that it includes."""
        return self.path.read_text(encoding="utf-8")

    @property
    def files(self) -> tuple[Path, ...]:
        """The file, then those that it includes, each before what it includes itself."""
        return with_included(self.path)

    @property
    def code(self) -> str:
        """What is compiled: the file, with those that it includes in their places.

        In quotation marks stand files of its own folder, or of the package, named from dgbook/ on.
        CuPy keeps what it has compiled under the code's hash, which must know of them.
        """
        return _expanded(self.path)

    @cached_property
    def compiler_options(self) -> tuple[str, ...]:
        """What NVRTC is told, architecture and registers apart."""
        options = ["--std=c++17", *(f"-D{name}={value}" for name, value in self.defines.items())]
        if self.options.get("fastmath"):
            options.append("--use_fast_math")
        if self.options.get("lineinfo"):
            options.append("--generate-line-info")
        return tuple(options)

    @cached_property
    def _function(self) -> Any:
        """CuPy's kernel; compiled and loaded when it is first used."""
        import cupy

        options = self.compiler_options
        if self.options.get("max_registers"):
            options += (f"--maxrregcount={self.options['max_registers']}",)
        module = cupy.RawModule(code=self.code, options=options, backend="nvrtc")
        return module.get_function(self.name)

    def __getitem__(self, configuration: tuple) -> Callable[..., None]:
        if not isinstance(configuration, tuple) or len(configuration) not in (2, 3):
            raise TypeError(
                f"kernel {self.name}: launch it as kernel[grid, block](...) or "
                f"kernel[grid, block, shared_bytes](...), not kernel[{configuration!r}]"
            )
        grid, block, shared = (*configuration, 0)[:3]

        def launch(*args: Any) -> None:
            converted = self._arguments(args)
            function = self._function
            if shared > STATIC_SHARED_LIMIT:
                function.max_dynamic_shared_size_bytes = shared
            if launching._preparing:
                function.compile()
            else:
                function(_tuple(grid), _tuple(block), converted, shared_mem=shared)

        return launch

    def _arguments(self, args: tuple) -> tuple:
        """Arguments as the source declares them, or an exception that names the one that is not."""
        names = ", ".join(p.name for p in self.parameters)
        if len(args) != len(self.parameters):
            raise TypeError(
                f"kernel {self.name}: {len(args)} arguments given; it takes "
                f"{len(self.parameters)}: {names}"
            )
        return tuple(map(self._argument, self.parameters, args))

    def _argument(self, parameter: Parameter, value: Any) -> Any:
        who = f"kernel {self.name}: argument {parameter.name}"
        if isinstance(value, np.ndarray):
            raise TypeError(
                f"{who} is a NumPy array. The kernel is CUDA C++ and cannot be simulated: it needs "
                "a GPU and arrays made by device('cuda').array(...)"
            )
        is_array = hasattr(value, "__cuda_array_interface__")
        if is_array != parameter.pointer:
            wanted = "an array" if parameter.pointer else "a number"
            raise TypeError(f"{who} = {value!r}; it takes {wanted}")
        if not is_array:
            return parameter.dtype.type(value)
        if value.dtype != parameter.dtype:
            raise TypeError(f"{who} has dtype {value.dtype}; the source says {parameter.dtype}")
        if not value.flags.c_contiguous:
            raise TypeError(f"{who} is not C-contiguous; pass cupy.ascontiguousarray(...)")
        if value.data.ptr % parameter.alignment:
            raise ValueError(
                f"{who} begins at an address that is no multiple of {parameter.alignment} bytes, "
                "which the vectors that the kernel reads it by need; pass a copy"
            )
        return value

    def __repr__(self) -> str:
        return f"<CUDA C++ kernel {self.name}>"


def load(
    path: str | Path, name: str, defines: Mapping[str, Any] | None = None, **options: Any
) -> CudaKernel:
    """A kernel from a .cu file.

    Parameters
    ----------
    path : str or Path
        The file; its kernels are declared ``extern "C" __global__ void NAME(...)``.
    name : str
        Which kernel of the file.
    defines : mapping of str to value, optional
        Macros: integers, strings, or NumPy dtypes, so ``{"REAL": numpy.float32}`` makes REAL float.
    **options
        ``max_registers``, ``fastmath``, ``lineinfo``, as in `jit`.

    Returns
    -------
    CudaKernel

    Raises
    ------
    FileNotFoundError
    TypeError, ValueError
        For an unknown kernel, macro or option, or a parameter whose type is not understood.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"path = {str(path)!r}: there is no such file")
    unknown = [option for option in options if option not in OPTIONS]
    if unknown:
        raise TypeError(f"kernel {name}: unknown option {unknown[0]!r}; allowed are {OPTIONS}")
    spelled = {macro: _spell(name, macro, value) for macro, value in (defines or {}).items()}
    return CudaKernel(path, name, spelled, options)


_INCLUDE = re.compile(r'^#include "([^"]+)"$', re.MULTILINE)


def _included(path: Path, name: str) -> Path:
    """The file that another one means by a name in quotation marks."""
    for folder in (path.parent, PACKAGE):
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(f'{path} says #include "{name}": no such file there or below {PACKAGE}')


def with_included(path: Path) -> tuple[Path, ...]:
    """A file, then those that it includes, each before what it includes itself."""
    names = _INCLUDE.findall(path.read_text(encoding="utf-8"))
    return path, *(file for name in names for file in with_included(_included(path, name)))


def _expanded(path: Path) -> str:
    """A file's text with those of the files that it includes.

    Compilers tell the file and the line of an error by what `#line` says.
    """
    text = path.read_text(encoding="utf-8")

    def insert(include: re.Match) -> str:
        inner = _included(path, include[1])
        line = text.count("\n", 0, include.end()) + 2
        return f'#line 1 "{inner.name}"\n{_expanded(inner)}#line {line} "{path.name}"'

    return _INCLUDE.sub(insert, text)


def _spell(kernel: str, macro: str, value: Any) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w+", macro):
        # NVRTC's own headers use single letters as names of template parameters.
        raise ValueError(
            f"kernel {kernel}: macro {macro!r}; allowed are identifiers of two letters or more"
        )
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, str):
        return value
    try:
        spelling = _SPELLINGS.get(np.dtype(value).type) if value is not None else None
    except TypeError:
        spelling = None
    if spelling is None:
        raise TypeError(
            f"kernel {kernel}: macro {macro} = {value!r}; allowed are integers, strings and the "
            "dtypes float32, float64, int32, int64"
        )
    return spelling


def _parameters(code: str, path: Path, name: str, defines: dict[str, str]) -> tuple[Parameter, ...]:
    """Read a kernel's parameters from its source."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", " ", code, flags=re.DOTALL)
    match = re.search(
        rf'extern\s+"C"\s+__global__\s[^;{{]*?\b{re.escape(name)}\s*\(([^)]*)\)\s*\{{', code
    )
    if not match or not name:
        raise ValueError(
            f'name = {name!r}: {path} has no kernel declared extern "C" __global__ void {name}(...)'
        )
    declared = [part for part in match[1].split(",") if part.strip()]
    return tuple(_parameter(name, declaration, defines, code) for declaration in declared)


def _parameter(kernel: str, declaration: str, defines: dict[str, str], code: str) -> Parameter:
    plain = re.sub(r"\b(?:const|volatile|__restrict__|__grid_constant__)\b", " ", declaration)
    words = plain.replace("*", " * ").split()
    pointer = words[-2:-1] == ["*"]
    *spelling, name = (word for word in words if word != "*")
    c_type = " ".join(defines.get(word, word) for word in spelling)
    vector = _VECTOR.fullmatch(c_type)
    unsigned = "unsigned " if c_type.startswith("u") and vector else ""
    scalar = _TYPES.get(unsigned + vector[1] if vector else c_type)
    if scalar is None or words.count("*") > 1 or (vector and not pointer):
        raise TypeError(
            f"kernel {kernel}: parameter {' '.join(declaration.split())!r}; understood are numbers "
            f"and pointers to {', '.join(_TYPES)} and to vectors of 2 or 4 such as float4"
        )
    dtype = np.dtype(scalar)
    read_by = [c_type]
    if pointer:
        read_by += re.findall(rf"\((?:const\s+)?(\w+)\s*\*\)\s*{name}\b", code)
        read_by += ["VECTOR"] * bool(re.search(rf"\bread\(\w+,\s*{name}\b", code))
    vectors = [_VECTOR.fullmatch(defines.get(word, word)) for word in read_by]
    sizes = [np.dtype(_TYPES[v[1]]).itemsize * int(v[2]) for v in vectors if v]
    return Parameter(name, dtype, pointer, max([dtype.itemsize, *sizes]))


def _tuple(extent: Any) -> tuple:
    return extent if isinstance(extent, tuple) else (extent,)
