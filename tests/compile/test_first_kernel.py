"""The kernels of "Your first kernel" as machine code: what a reader ends with is fit for a GPU."""

from __future__ import annotations

import ast
import inspect
import json
import runpy
from pathlib import Path

import numpy as np
import pytest

from dgbook.check.compile import compile
from dgbook.gpu.kernel import Kernel

LESSON = Path(__file__).parents[2] / "chapters" / "01b_your_first_kernel.ipynb"
HEADER = """import numpy as np
from numpy import float32
from dgbook.gpu import cuda, jit
Np, E = 4, 8
"""
STEPS = ("copy", "row", "guarded", "upwind", "update", "several", "stage")
NAMES = (*(f"{step}_solution" for step in STEPS), "lean")


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


def arguments(kernel: Kernel) -> tuple:
    """One of each that the kernel's parameters ask for, by their names."""
    flat, square = np.empty(1, np.float32), np.empty((1, 1), np.float32)
    given = dict.fromkeys(("u", "L", "res", "new"), flat) | {"D": square, "DT": square}
    return tuple(given.get(n, np.float32(1)) for n in inspect.signature(kernel).parameters)


@pytest.mark.parametrize("cc", [(7, 5), (8, 0), (9, 0)])
@pytest.mark.parametrize("name", NAMES)
def test_solutions_are_single_precision(solutions, name: str, cc: tuple[int, int]) -> None:
    """No double precision, no spills, and the shared memory that the text says."""
    kernel = solutions[name]
    report = compile(kernel, arguments(kernel), cc)
    assert report.fp64_instructions == 0
    assert report.spill_bytes == 0
    words = {"copy": 0, "row": 0, "several": 32, "stage": 32, "lean": 32}
    assert report.shared_bytes == 4 * words.get(name.removesuffix("_solution"), 4)
