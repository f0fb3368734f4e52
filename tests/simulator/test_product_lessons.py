"""The blanks of lessons 10 to 10c: right answers pass, likely mistakes are told."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest
from page_code import blank_verdict

CHAPTERS = Path(__file__).parents[2] / "chapters"
PRODUCT, KRYLOV = "10_a_matrix_product_shaped_like_its_matrix", "10b_krylov_on_a_gpu"
MORE = "10c_more_on_implicit_solvers"
IMPORTS = (
    "import numpy as np\nfrom dgbook.hdg.blocks import face_columns\n"
    "from dgbook.page import Task, check, check_function\n"
)
WAIT, NONE = "cuda.syncthreads()", "pass"
ROWS, INDICES = "itemsize * F * n_b * m", "4 * F * n_b"
MATRIX, VECTORS = f"{ROWS} * m", "2 * itemsize * F * m"
READ, PART = "side_by_side[b * m + j, t]", "X[columns[l, b], j, c]"


@pytest.mark.parametrize(
    ("lesson", "name", "answers", "kind", "words"),
    [
        (PRODUCT, "product", (), "blank", "in line 3"),
        (PRODUCT, "product", ("x[columns]",), "right", "all 36 values"),
        (PRODUCT, "product", ("x[columns[:, ::-1]]",), "wrong", ""),
        (PRODUCT, "product", ("np.repeat(x[:, None], n_b, axis=1)",), "wrong", ""),
        (PRODUCT, "block_bytes", (MATRIX, INDICES, VECTORS), "right", "the value"),
        (PRODUCT, "block_bytes", (ROWS, INDICES, VECTORS), "wrong", "m rows of m"),
        (PRODUCT, "block_bytes", (MATRIX, "4 * F * n_b * m", VECTORS), "wrong", "per block"),
        (PRODUCT, "block_bytes", (MATRIX, "itemsize * F * n_b", VECTORS), "wrong", "has 4 bytes"),
        (PRODUCT, "block_bytes", (MATRIX, INDICES, "itemsize * F * m"), "wrong", "both x and y"),
        (PRODUCT, "block_bytes", (MATRIX, INDICES, "2 * F * m"), "wrong", "itemsize bytes each"),
        (PRODUCT, "product", ("x[columns[:, 0]]",), "stopped", "X has shape"),
        (PRODUCT, "step_1", ("l, b, i, j", "columns[l, b], j"), "right", "all 36 values"),
        (PRODUCT, "step_1", ("l, b, j, i", "columns[l, b], j"), "wrong", "of `y` are wrong"),
        (PRODUCT, "step_1", ("l, b, i, j", "l, j"), "wrong", "of `y` are wrong"),
        (PRODUCT, "step_2", ("l, b, j, i",), "right", "all 36 values"),
        (PRODUCT, "step_2", ("l, b, i, j",), "wrong", "column j is before row i"),
        (PRODUCT, "step_3", ("b * m + j, t",), "right", "all 36 values"),
        (PRODUCT, "step_3", ("j * n_b + b, t",), "wrong", "column b m + j"),
        (PRODUCT, "step_3", ("t, b * m + j",), "stopped", "right order"),
        (PRODUCT, "step_4", (WAIT, "k * 32 + t"), "right", "all 36 values"),
        (PRODUCT, "step_4", (NONE, "k * 32 + t"), "stopped", "syncthreads"),
        (PRODUCT, "step_4", (WAIT, "t * q + k"), "wrong", "takes 32 words"),
        (MORE, "step_5", (READ, f"number * {PART}"), "right", "all 108 values"),
        (MORE, "step_5", (READ, "number * X[l, j, c]"), "wrong", "of `Y` are wrong"),
        (MORE, "step_5", ("0.0", f"{READ} * {PART}"), "wrong", "reads `side_by_side` 60 times"),
        (KRYLOV, "orthogonalize", (), "blank", "in lines 5, 6"),
        (KRYLOV, "orthogonalize", ("V @ y", "new @ V"), "right", "all 13 values"),
        (KRYLOV, "orthogonalize", ("y @ V.T", "V.T @ new"), "right", "all 13 values"),
        (KRYLOV, "orthogonalize", ("V @ y", "-new @ V"), "wrong", ""),
        (KRYLOV, "orthogonalize", ("V[0] @ y * np.ones(4)", "new @ V"), "wrong", ""),
        (KRYLOV, "orthogonalize", ("V @ y", "(parts + new) @ V"), "wrong", "gone already"),
        (KRYLOV, "orthogonalize", ("V @ y", "V @ y"), "stopped", ""),
        (KRYLOV, "dots", ("sums[t + half]", WAIT), "right", "all 3 values"),
        (KRYLOV, "dots", ("sums[t + half]", NONE), "stopped", "Nothing makes one wait"),
        (KRYLOV, "dots", ("sums[2 * t]", WAIT), "stopped", ""),
        (KRYLOV, "take_off", ("h[j] * V[j, i]",), "right", "all 20 values"),
        (KRYLOV, "take_off", ("h[j] * V[j, i - 1]",), "stopped", ""),
        (KRYLOV, "take_off", ("-h[j] * V[j, i]",), "wrong", "Part j times"),
        (MORE, "take_off_existing", ("progress[0]",), "right", "all 20 values"),
        (MORE, "take_off_existing", ("h.size",), "wrong", "do not exist yet"),
        (MORE, "take_off_existing", ("progress[0] - 1",), "wrong", "of `y` are wrong"),
        (KRYLOV, "jacobi", ("np.linalg.inv(values[:, 0])",), "right", "all 12 values"),
        (KRYLOV, "jacobi", ("np.linalg.inv(values[:, 1])",), "wrong", ""),
        (KRYLOV, "jacobi", ("np.linalg.inv(values[0])",), "wrong", ""),
        (KRYLOV, "jacobi", ("1 / values[:, 0]",), "wrong", ""),
        (KRYLOV, "two_level", ("P_0.T @ r", "r - A @ z_0"), "right", "all 6 values"),
        (KRYLOV, "two_level", ("P_0.T @ r", "r"), "wrong", "left of r"),
        (KRYLOV, "two_level", ("P_0.T @ r", "r - z_0"), "wrong", "use A"),
        (KRYLOV, "two_level", ("P_0.T @ r", "A @ z_0 - r"), "wrong", "negative"),
    ],
)  # fmt: skip
def test_answers(tmp_path, lesson, name, answers, kind, words) -> None:
    said = blank_verdict(tmp_path / "lesson.py", lesson, IMPORTS, name, answers)
    assert said.kind == kind and words in said.words, repr(said)


TOLD = {
    "take_off": "h[j] * V[j, i]",
    "jacobi": "np.linalg.inv(values[:, 0])",
}
"""Answers in folded texts."""


@pytest.mark.parametrize("lesson", [PRODUCT, KRYLOV])
def test_solutions_are_what_the_blanks_ask_for(tmp_path, lesson) -> None:
    """Every blank has its solution in a folded cell, or its answers in a folded text."""
    text = (CHAPTERS / f"{lesson}.ipynb").read_text(encoding="utf-8")
    cells = json.loads(text)["cells"]
    code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    prose = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    blanks = [c for c in cells if "blank" in c["metadata"].get("tags", [])]
    names = [re.search(r"def (\w+)", "".join(c["source"])).group(1) for c in blanks]
    assert len(names) >= 5
    for name in names:
        told = TOLD.get(name)
        assert f"def {name}_solution(" in code or told in prose, name


KERNELS = {f"step_{n}": (PRODUCT, n) for n in range(1, 5)} | {"step_5": (MORE, 5)}


@pytest.mark.parametrize("name", KERNELS)
def test_folded_kernels_pass_the_checks_of_their_blanks(tmp_path, name) -> None:
    """The solution that a reader unfolds is right."""
    lesson, number = KERNELS[name]
    text = (CHAPTERS / f"{lesson}.ipynb").read_text(encoding="utf-8")
    cells = ["".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    (tasks,) = (s for s in cells if s.startswith("# @title Make the task"))
    (folded,) = (s for s in cells if f"def {name}_solution(" in s)
    (kernel,) = re.findall(rf"@jit\ndef {name}_solution.*?(?=\n\n\n)", folded, re.S)
    said = f"said = check({name}_solution, tasks[{number}])"
    path = tmp_path / "lesson.py"
    path.write_text(f"{IMPORTS}{tasks}\n\n\n{kernel}\n\n\n{said}\n", encoding="utf-8")
    assert runpy.run_path(str(path))["said"]
