"""The kernels of "Meshes on a GPU" as machine code, at the checks' degree and at the GPU's."""

from __future__ import annotations

import ast
import inspect
import json
import runpy
from math import comb
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

from dgbook.check.compile import compile
from dgbook.gpu import jit
from dgbook.gpu.kernel import Kernel

CHAPTERS = Path(__file__).parents[2] / "chapters"
LESSON = CHAPTERS / "03b_meshes_on_a_gpu.ipynb"
FURTHER = CHAPTERS / "03c_transposes_numberings_and_instructions.ipynb"
HEADER = "from numpy import float32\nfrom dgbook.gpu import cuda, jit\nWAYS = 32\n"
NAMES = ("volume", "upwind", "rows", "stage")


@pytest.fixture(scope="module")
def solutions(tmp_path_factory) -> dict[str, Kernel]:
    """The kernels of all cells, in a file, since a compiler reads their text."""
    text = HEADER
    for cell in json.loads(LESSON.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        for node in ast.parse(source).body if cell["cell_type"] == "code" else ():
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                text += f"\n\n@jit\n{ast.get_source_segment(source, node)}\n"
    path = tmp_path_factory.mktemp("lesson") / "lesson.py"
    path.write_text(text, encoding="utf-8")
    return runpy.run_path(str(path))


def at_degree(kernel: Kernel, N: int, E: int) -> tuple[Kernel, dict[str, int]]:
    """The kernel with the sizes of a degree, as the page makes it, and these."""
    Np, Nfp = comb(N + 3, 3), comb(N + 2, 2)
    sizes, code = {"Np": Np, "Nfp": Nfp, "Nf": 4 * Nfp, "E": E}, kernel.py_func
    return jit(FunctionType(code.__code__, code.__globals__ | sizes)), sizes


def arguments(kernel: Kernel) -> tuple:
    """One of each that the kernel's parameters ask for, by their names."""
    real, whole = np.float32, np.int32
    given = {name: np.empty(1, real) for name in ("u", "res", "new")}
    given |= {name: np.empty((1, 1), real) for name in ("L", "LT", "FsF", "c")}
    given |= {name: np.empty((1, 1, 1), real) for name in ("D", "DT")}
    given |= {name: np.empty((1, 1), whole) for name in ("links", "meets")}
    given["own"] = np.empty(1, whole)
    return tuple(given.get(name, real(1)) for name in inspect.signature(kernel).parameters)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("N", "E", "cc"), [(2, 3, (8, 0)), (3, 8, (7, 5)), (3, 8, (9, 0))])
def test_solutions_are_single_precision(solutions, name, N, E, cc) -> None:
    """No double precision, no spills, and the shared memory that the text says."""
    kernel, sizes = at_degree(solutions[f"{name}_solution"], N, E)
    report = compile(kernel, arguments(kernel), cc)
    assert report.fp64_instructions == 0
    assert report.spill_bytes == 0
    words = sizes["Np"] + (sizes["Nf"] if name != "volume" else 0)
    assert report.shared_bytes == 4 * words * (E if name in ("rows", "stage") else 1)


def test_three_ways_let_the_compiler_unroll(solutions, tmp_path) -> None:
    """Of the lift's 40 multiply-adds, eight are written out, or all; 22 others always are."""
    cells = json.loads(FURTHER.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells]
    (source,) = (s for s in sources if "\nvariants = {" in s)
    space: dict = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and node.targets[0].id != "shown":
            exec(ast.get_source_segment(source, node), space)
    stage = inspect.getsource(solutions["stage_solution"].py_func)
    written = {}
    for n, (name, changes) in enumerate(space["variants"].items()):
        text = HEADER + "import numpy as np\n" + stage
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / f"variant{n}.py"
        path.write_text(text, encoding="utf-8")
        kernel, _ = at_degree(runpy.run_path(str(path))["stage_solution"], 3, 8)
        ptx = compile(kernel, arguments(kernel), (9, 0)).ptx
        written[name] = ptx.count("fma.rn.f32") - 22
    assert list(written.values()) == [8, 40, 40, 40, 40]
