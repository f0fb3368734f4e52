"""The kernels of lessons 10 to 10c as machine code: what the simulator runs, a GPU takes too."""

from __future__ import annotations

import ast
import inspect
import json
import runpy
from pathlib import Path

import numpy as np
import pytest

from dgbook.check.compile import compile

CHAPTERS = Path(__file__).parents[2] / "chapters"
PRODUCT, KRYLOV = "10_a_matrix_product_shaped_like_its_matrix", "10b_krylov_on_a_gpu"
MORE = "10c_more_on_implicit_solvers"
HEADER = (
    "import numpy as np\nfrom dgbook.hdg.blocks import face_columns\n"
    "from dgbook.page import Task, check, check_function\n"
)
WORDS = {"step_4": 8 * 20, "dots": 8}
"""Of shared memory, where there is any: 20 numbers for each of eight faces; one per thread."""


@pytest.fixture(scope="module")
def lessons(tmp_path_factory) -> dict[str, dict]:
    """What the task cell and the kernels of each lesson define."""
    found = {}
    for name in (PRODUCT, KRYLOV, MORE):
        cells = json.loads((CHAPTERS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
        code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
        text = HEADER + next(s for s in code if s.startswith("# @title Make the task"))
        for source in code:
            for node in ast.parse(source).body:
                if isinstance(node, ast.FunctionDef) and node.decorator_list:
                    text += f"\n\n\n@jit\n{ast.get_source_segment(source, node)}\n"
        path = tmp_path_factory.mktemp(name) / "lesson.py"
        path.write_text(text, encoding="utf-8")
        found[name] = runpy.run_path(str(path))
    return found


@pytest.mark.parametrize(
    ("lesson", "name"),
    [
        *((PRODUCT, f"step_{n}_solution") for n in range(1, 5)),
        (MORE, "step_5_solution"),
        (KRYLOV, "dots_solution"),
    ],
)
def test_solutions_compile_and_do_not_spill(lessons, lesson, name, cc) -> None:
    """No kernel spills, and shared memory has the words that the text says, of eight bytes."""
    names = lessons[lesson]
    kernel, given = names[name], names["given"](np.random.default_rng(1))
    args = tuple(given[p] for p in inspect.signature(kernel.py_func).parameters)
    report = compile(kernel, args, cc)
    assert report.spill_bytes == 0
    assert report.shared_bytes == 8 * WORDS.get(name.removesuffix("_solution"), 0)
