"""What "How to use this book" says about taking a kernel home, as it stands there."""

import re
import subprocess
from pathlib import Path

import numpy as np
import page_code
import pytest
from emulation import COMPILE, HEADER, needs_compiler, translated

from dgbook.maxwell import Solver

# What the page's program calls of the CUDA runtime, on the CPU.
RUNTIME = """
#include <cstdlib>
#include <functional>
enum { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum { cudaFuncAttributeMaxDynamicSharedMemorySize };
static void cudaMalloc(void** there, size_t size) { *there = aligned_alloc(16, (size + 15) & -16); }
static void cudaMemcpy(void* to, const void* from, size_t n, int) { memcpy(to, from, n); }
template <class F> void cudaFuncSetAttribute(F, int, int bytes) { if (bytes > 48 << 10) abort(); }
static int cudaGetLastError() { return 0; }
static const char* cudaGetErrorString(int) { return "no error"; }
static std::function<void()> job;
"""


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """Files of the page are written, and timings remembered, where nobody else's are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("heading", ["Your own arrays, in Python", "Your own equation, in Numba"])
def test_what_stands_there_runs(heading):
    """With its own assertion."""
    ((language, text),) = page_code.blocks(heading)
    assert language == "python" and "assert " in text
    page_code.execute(text)


@pytest.mark.parametrize("scheme", ["classic", "register", "tiled", "persistent"])
def test_an_equation_of_ones_own_has_all_schemes(scheme):
    """The page's equation, in the schemes that it does not run."""
    ((_, text),) = page_code.blocks("Your own equation, in Numba")
    assert 'problem, "shared", n,' in text
    page_code.execute(text.replace('"shared"', repr(scheme)).replace(", threads=32", ""))


def test_a_kernel_of_ones_own_is_tuned(capsys):
    """One of the plans given wins."""
    ((_, text),) = page_code.blocks("Plans and the tuner")
    names = page_code.execute(text.replace("device()", 'device("cpu")'))
    printed = capsys.readouterr().out.strip()
    assert printed in map(str, names["plans"])


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_program_computes_what_the_solver_does(dtype):
    """main.cu as it stands there, its arrays and its kernel, without tensor cores, on the CPU."""
    names = page_code.write_program(
        capability="(7, 5)", dtype=repr(dtype), order="2", steps="4", n="2"
    )
    assert not names["plan"].tensor
    folder = names["folder"]
    kernel = translated((folder / "fused.cu").read_text())
    top, main = (folder / "main.cu").read_text().split('#include "fused.cu"\n')
    main, launches = re.subn(
        r"fused<<<(.*?), THREADS, SHARED>>>(\(.*?\));",
        r"job = [&] { fused\2; }; if (emulated::run(\1, THREADS, SHARED)) abort();",
        main,
        flags=re.S,
    )
    assert launches == 1
    header, call = f'#include "{HEADER.name}"\n', "static void emulated::call() { job(); }\n"
    (folder / "main.cpp").write_text(header + top + RUNTIME + kernel + call + main)
    command = [*COMPILE, f"-I{HEADER.parent}", "main.cpp", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True)
    printed = subprocess.run(["./main"], cwd=folder, check=True, capture_output=True).stdout
    assert printed == b"no error\n"

    solver, launcher = names["solver"], names["launcher"]
    found = launcher.download(np.fromfile(folder / "result", dtype))
    time = names["steps"] * solver.cfl_dt()
    same = Solver(solver.mesh, names["order"], dtype, "reference")
    expected = same.run(names["u"], time)
    assert np.abs(expected - names["u"]).max() > 0.1
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    assert np.abs(found - expected).max() < tolerance


def test_the_program_lists_the_kernels_parameters():
    """In order: of one type two could be exchanged, and no compiler would say so."""
    names = page_code.write_program()
    main = Path(names["folder"], "main.cu").read_text()
    given = re.search(r"SHARED>>>\((.*?)\);", main, re.S)[1]
    listed = [re.sub(r"\W.*", "", word.strip().lower()) for word in given.split(",")]
    parameters = [p.name for p in names["launcher"].kernel.parameters]
    assert listed == [{"newer": "next"}.get(name, name) for name in parameters]
