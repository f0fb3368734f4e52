"""CUDA C++ kernels: loaded, checked, compiled without a GPU, and never simulated."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import dgbook
import dgbook.lab
from dgbook.check.compile import CompilerNotFoundError, compile
from dgbook.gpu.source import Parameter, load

f4, f8 = np.float32, np.float64
KERNELS = Path(__file__).with_name("kernels.cu")
COPY = Path(dgbook.lab.__file__).with_name("copy.cu")
SINGLE, DOUBLE = {"REAL": f4}, {"REAL": "double"}


class OnGpu:
    """As much of an array on a GPU as is looked at before a launch."""

    def __init__(self, values, address=256):
        self.__cuda_array_interface__ = {}
        self.dtype, self.flags = values.dtype, values.flags
        self.data = type("Memory", (), {"ptr": address})


# -- compiling -----------------------------------------------------------------------------


def test_copy_moves_16_bytes_an_access(cc, held):
    report = held(load(COPY, "copy"))
    assert len(re.findall(r"ld\.global\.v4\.[bfu]32", report.ptx)) == 4
    assert len(re.findall(r"st\.global\.v4\.[bfu]32", report.ptx)) == 4
    assert not re.search(r"(ld|st)\.global\.[bfu]", report.ptx)
    # four vectors of four words are held at once
    assert report.registers >= 16
    assert report.occupancy(256) >= 0.75


def test_a_macro_says_the_precision(cc, held):
    single = held(load(KERNELS, "scale", SINGLE))
    double = held(load(KERNELS, "scale", DOUBLE), dtype="float64")
    assert "mul.f32" in single.ptx
    assert double.fp64_instructions == 1


def test_what_is_included_stands_in_the_code(tmp_path):
    """So CuPy, which remembers compiled code by its text, notices when a header changes.

    Of the kernel's own folder, and else of the package.
    """
    path, inner = tmp_path / "half.cu", tmp_path / "inner.cuh"
    path.write_text(
        '#include "inner.cuh"\nextern "C" __global__ void half(REAL* x) '
        "{ *x = round_up(WIDTH, ODD); }\n"
    )
    inner.write_text('#include "gpu/memory.cuh"\nconstexpr int ODD = 3;\n')
    kernel = load(path, "half", {"REAL": f4, "VECTOR": "float4"})
    assert kernel.text.count("#include") == 1 and "#include" not in kernel.code
    assert [file.name for file in kernel.files] == ["half.cu", "inner.cuh", "memory.cuh"]
    assert str(f4(6).view(np.int32)) in compile(kernel, cc=(9, 0)).ptx
    inner.write_text("constexpr int ODD = 5;\nint wrong = undeclared;\n")
    with pytest.raises(RuntimeError, match=r'inner\.cuh.*line 2|inner\.cuh\(2\).*"undeclared"'):
        compile(kernel, cc=(9, 0))
    path.write_text(path.read_text() + "int more = unseen;\n")
    with pytest.raises(RuntimeError, match=r'half\.cu.*line 3|half\.cu\(3\).*"unseen"'):
        compile(kernel, cc=(9, 0))
    inner.unlink()
    with pytest.raises(FileNotFoundError, match=r'half\.cu says #include "inner\.cuh": no such'):
        _ = kernel.code


def test_shared_bytes(cc, held):
    assert held(load(KERNELS, "reverse", SINGLE)).shared_bytes == 128 * 4
    assert held(load(KERNELS, "reverse", DOUBLE), dtype="float64").shared_bytes == 128 * 8
    assert held(load(KERNELS, "reverse_all", SINGLE)).shared_bytes == 0


def test_max_registers_is_kept_and_spills(cc, held):
    assert held(load(KERNELS, "juggle", SINGLE)).registers > 64
    bound = compile(load(KERNELS, "juggle", SINGLE, max_registers=40), cc=cc)
    assert bound.registers <= 40
    assert bound.spill_bytes >= 24 * 8  # stored and loaded, those of 64 that have no register
    assert bound.stack_bytes >= 24 * 4


def test_other_kernels_of_the_file_do_not_count(cc):
    assert compile(load(KERNELS, "scale", SINGLE), cc=cc).fp64_instructions == 0
    assert compile(load(KERNELS, "precise", SINGLE), cc=cc).fp64_instructions == 1


def test_options_reach_the_compiler():
    assert ".loc" in compile(load(KERNELS, "scale", SINGLE, lineinfo=True)).ptx
    assert ".ftz" in compile(load(KERNELS, "scale", SINGLE, fastmath=True)).ptx
    assert ".ftz" not in compile(load(KERNELS, "scale", SINGLE)).ptx


def test_what_the_compiler_refuses_is_told(tmp_path):
    wrong = tmp_path / "wrong.cu"
    wrong.write_text('extern "C" __global__ void wrong(float* x) { x[0] = undeclared; }\n')
    with pytest.raises(RuntimeError, match=r'wrong\.cu.*line 1|wrong\.cu\(1\).*"undeclared"'):
        compile(load(wrong, "wrong"))


def test_without_nvrtc(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(CompilerNotFoundError, match=r"NVRTC.*dgbook\[cuda12\]"):
        compile(load(KERNELS, "scale", {"REAL": "float", "UNSEEN": 1}))


# -- loading -------------------------------------------------------------------------------


def test_parameters_are_read_from_the_source():
    expected = (
        Parameter("x", np.dtype(f4), True, 4),
        Parameter("y", np.dtype(f4), True, 4),
        Parameter("factor", np.dtype(f4), False, 4),
        Parameter("n", np.dtype(np.int32), False, 4),
    )
    assert load(KERNELS, "scale", SINGLE).parameters == expected
    assert [p.dtype for p in load(KERNELS, "scale", DOUBLE).parameters] == [f8, f8, f8, np.int32]
    assert [p.name for p in load(KERNELS, "reverse", SINGLE).parameters] == ["x", "y"]
    assert load(COPY, "copy").parameters == (
        Parameter("x", np.dtype(f4), True, 16),
        Parameter("y", np.dtype(f4), True, 16),
        Parameter("vectors", np.dtype(np.int64), False, 8),
    )


@pytest.mark.parametrize(
    ("real", "vector", "couple"), [(f4, "float4", "float2"), (f8,) + ("double2",) * 2]
)
def test_what_is_read_by_vectors_begins_at_one(real, vector, couple):
    """Maxwell's fused kernel casts the state, and `read` casts the tangents for it."""
    macros = {"REAL": real, "VECTOR": vector, "COUPLE": couple}
    path = Path(dgbook.__file__).with_name("maxwell") / "kernels/fused/kernel.cu"
    kernel = load(path, "fused", macros | {"TENSOR": 0})
    found, size = {p.name: p.alignment for p in kernel.parameters}, np.dtype(real).itemsize
    pair = 8 if real == f4 else 16
    assert all(found[name] == 16 for name in ("u", "tangents", "res", "newer"))
    assert found["derivative"] == found["lift"] == pair
    assert found["geometry"] == found["data"] == found["dt"] == size and found["links"] == 4
    view = OnGpu(np.zeros(8, real), 256 + size)
    with pytest.raises(ValueError, match=r"argument u begins .* 16 bytes.*; pass a copy"):
        kernel._argument(kernel.parameters[0], view)
    assert kernel._argument(kernel.parameters[1], view) is view


def test_vectors_have_their_components_type_and_the_widest_access_counts(tmp_path):
    path = tmp_path / "mixed.cu"
    path.write_text(
        'extern "C" __global__ void mixed(const uint4* a, uchar2* b, float* c, size_t n) {\n'
        "    a; b; ((float2*)c)[n] = ((const float4*) c)[0];\n}\n"
    )
    assert load(path, "mixed").parameters == (
        Parameter("a", np.dtype(np.uint32), True, 16),
        Parameter("b", np.dtype(np.uint8), True, 2),
        Parameter("c", np.dtype(f4), True, 16),
        Parameter("n", np.dtype(np.uint64), False, 8),
    )


def test_a_kernel_knows_its_file():
    kernel = load(str(KERNELS), "scale", {"REAL": f8, "ROWS": 3, "NAME_2": "x"})
    assert kernel.text == KERNELS.read_text()
    assert kernel.defines == {"REAL": "double", "ROWS": "3", "NAME_2": "x"}
    assert "-DREAL=double" in kernel.compiler_options
    assert repr(kernel) == "<CUDA C++ kernel scale>"


@pytest.mark.parametrize("name", ["scal", "row", "scale_all", ""])
def test_unknown_kernels(name):
    with pytest.raises(ValueError, match=rf"name = '{name}': .*kernels\.cu has no kernel"):
        load(KERNELS, name, SINGLE)


def test_unknown_files():
    with pytest.raises(FileNotFoundError, match=r"path = 'nowhere\.cu'"):
        load("nowhere.cu", "scale")


def test_types_that_are_not_understood():
    with pytest.raises(TypeError, match=r"kernel pointers: parameter 'float\*\* x'"):
        load(KERNELS, "pointers", SINGLE)
    with pytest.raises(TypeError, match="kernel scale: parameter 'const REAL"):
        load(KERNELS, "scale")  # REAL is not defined


@pytest.mark.parametrize("macro", ["T", "2D", "A B", "x-y", ""])
def test_names_of_macros(macro):
    with pytest.raises(ValueError, match=f"kernel scale: macro '{macro}'"):
        load(KERNELS, "scale", {**SINGLE, macro: 1})


@pytest.mark.parametrize("value", [None, 1.5, [1], "f2", np.complex64])
def test_values_of_macros(value):
    kernel = {"REAL": "float", "VALUE": value}
    if isinstance(value, str):  # a string stands as it is
        assert load(KERNELS, "scale", kernel).defines["VALUE"] == value
        return
    with pytest.raises(TypeError, match="kernel scale: macro VALUE = "):
        load(KERNELS, "scale", kernel)


def test_unknown_options():
    with pytest.raises(TypeError, match="kernel scale: unknown option 'registers'"):
        load(KERNELS, "scale", SINGLE, registers=3)


# -- launching -----------------------------------------------------------------------------


def test_cuda_cpp_is_not_simulated():
    kernel = load(KERNELS, "scale", SINGLE)
    x = np.zeros(4, f4)
    with pytest.raises(TypeError, match=r"kernel scale: argument x is a NumPy array.*simulated"):
        kernel[1, 4](x, x, f4(2), 4)


def test_arguments_are_checked_before_anything_is_compiled():
    kernel = load(KERNELS, "scale", SINGLE)
    good = OnGpu(np.zeros((4, 4), f4))
    wrong = {
        r"3 arguments given; it takes 4: x, y, factor, n": (good, good, 2.0),
        r"argument y has dtype float64; the source says float32": (good, OnGpu(np.zeros(4)), 2, 4),
        r"argument x = 1\.5; it takes an array": (1.5, good, 2.0, 4),
        r"argument n = <.*>; it takes a number": (good, good, 2.0, good),
        r"argument x is not C-contiguous": (OnGpu(np.zeros((4, 4), f4).T), good, 2.0, 4),
    }
    for message, args in wrong.items():
        with pytest.raises(TypeError, match=f"kernel scale: {message}"):
            kernel[1, 4](*args)
    with pytest.raises(ValueError, match=r"argument y begins at an address .* of 16 bytes"):
        load(COPY, "copy")[1, 4](good, OnGpu(np.zeros(4, f4), address=264), 1)


def test_numbers_become_what_the_source_says():
    kernel = load(KERNELS, "scale", SINGLE)
    good = OnGpu(np.zeros(4, f4))
    *_, factor, n = kernel._arguments((good, good, 2, np.int64(4)))
    assert (type(factor), type(n)) == (f4, np.int32)
    with pytest.raises(OverflowError):
        kernel._arguments((good, good, 2, 2**40))


def test_kernels_are_launched_with_a_configuration():
    kernel = load(KERNELS, "scale", SINGLE)
    for configuration in (1, (1,), (1, 2, 3, 4)):
        with pytest.raises(TypeError, match=r"kernel scale: launch it as kernel\[grid, block\]"):
            kernel[configuration]
