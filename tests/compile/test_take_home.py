"""The program that "How to use this book" makes of a kernel is taken by nvcc."""

import re
import shutil
import subprocess
from dataclasses import replace

import page_code
import pytest

from dgbook import acoustics, euler
from dgbook.acoustics import plan as acoustics_plan
from dgbook.check.compile import CompilerNotFoundError, _tool
from dgbook.euler import plan as euler_plan
from dgbook.gpu import device
from dgbook.gpu.plan import shipped
from dgbook.mesh import box
from dgbook.nodal.fused import FusedPlan

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="nvcc needs a host's compiler")
HOPPER = (9, 0)


@pytest.fixture
def nvcc():
    """Its path; Colab's packages have none."""
    try:
        return _tool("nvcc", "nvidia-cuda-nvcc")
    except CompilerNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("capability", "dtype"), [("(9, 0)", "float32"), ("(7, 5)", "float64")], ids=str
)
def test_nvcc_compiles_the_program(nvcc, capability, dtype, tmp_path, monkeypatch):
    """Host code and machine code, for a plan with tensor cores and one without."""
    monkeypatch.chdir(tmp_path)
    names = page_code.write_program(capability=capability, dtype=repr(dtype), n="2")
    assert names["plan"].tensor == (capability == "(9, 0)")
    arch = "-arch=sm_" + "".join(re.findall(r"\d", capability))
    command = [nvcc, "-std=c++17", arch, "-c", "main.cu", "-o", "main.o"]
    done = subprocess.run(command, cwd=names["folder"], text=True, capture_output=True, check=False)
    assert not done.returncode, done.stderr


OTHERS = {
    "nodal": lambda target: acoustics.Solver(
        box((1, 1, 1)),
        2,
        device=target,
        plan=shipped(FusedPlan, acoustics_plan.Shape(2, "float64"), HOPPER),
    ),
    "bernstein": lambda target: acoustics.Solver(
        box((1, 1, 1)),
        2,
        device=target,
        basis="bernstein",
        plan=acoustics_plan.BernsteinFusedPlan.default(acoustics_plan.Shape(2, "float64"), HOPPER),
    ),
    "gas": lambda target: euler.Solver(
        box((2, 2), periodic=True),
        2,
        device=target,
        plan=shipped(euler_plan.FusedPlan, euler_plan.FusedShape(2, "float64"), HOPPER),
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_launchers_have_the_same(nvcc, name, tmp_path):
    """A kernel whose macros and code make a file, its arrays, and states in its order."""
    solver = OTHERS[name](replace(device("simulator"), compute_capability=HOPPER))
    launcher = solver.launcher
    assert {p.name for p in launcher.kernel.parameters} > set(launcher.arrays)
    lines = [f"#define {macro} {value}\n" for macro, value in launcher.kernel.defines.items()]
    (tmp_path / "kernel.cu").write_text("".join(lines) + launcher.kernel.code)
    command = [nvcc, "-std=c++17", "-arch=sm_90", "-cubin", "kernel.cu"]
    subprocess.run(command, cwd=tmp_path, check=True)
    u = solver.interpolate(lambda *x: [1.0 + i + x[0] for i in range(4)])
    assert abs(launcher.download(launcher.upload(u)) - u).max() < 1e-14
