"""The blanks of "What a GPU wants" and of the page that goes further, and their kernels.

They are those that the probes measure.
"""

from __future__ import annotations

import ast
import inspect
import json
import runpy
import textwrap
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

import dgbook.gpu
from dgbook.gpu import Device
from dgbook.gpu.timing import Timing
from dgbook.lab import machine, probes, roofline
from dgbook.lab.floor import Ceilings
from dgbook.page import check, check_function, plot

CHAPTERS = Path(__file__).parents[2] / "chapters"
LESSON = CHAPTERS / "02_what_a_gpu_wants.ipynb"
FURTHER = CHAPTERS / "03c_transposes_numberings_and_instructions.ipynb"
FROM_LESSON_3B = "## 6. "  # the page's sections before this one go on from lesson 2
TASKS = {
    "copy_strided": "strided_task",
    "chase": "chase_task",
    "walk_shared": "walk_task",
    "transpose": "transpose_task",
    "transpose_several": "ahead_task",
    "one_chain_of_fma": "fma_task",
}
MEASURED = {
    "copy_strided_solution": probes.copy_strided,
    "chase_solution": probes.chase,
    "walk_shared_solution": probes.walk_shared,
    "copy_grid_stride": probes.copy_grid_stride,
    "copy_several": probes.make_copy_several("float32", 4),
    "transpose_solution": probes.make_transpose("float32", 0),
    "transpose_several_solution": probes.make_transpose_several("float32"),
    "nothing": probes.nothing,
}


def run(notebook: Path, folder: Path) -> dict:
    """What a notebook's cells define, all of them run, or those that go on from lesson 2."""
    sources = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if notebook == FURTHER and FROM_LESSON_3B in source:
            break
        if cell["cell_type"] == "code":
            sources.append(source)
    path = folder / f"{notebook.stem}.py"
    path.write_text("\n\n\n".join(sources), encoding="utf-8")
    return runpy.run_path(str(path))


@pytest.fixture(scope="module")
def as_it_is(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("lesson")
    return run(LESSON, folder) | run(FURTHER, folder)


@pytest.mark.parametrize("name", TASKS)
def test_blanks_are_blank_and_solutions_are_right(as_it_is, name: str) -> None:
    task = as_it_is[TASKS[name]]
    assert check(as_it_is[name], task).kind == "blank"
    assert check(as_it_is[f"{name}_solution"], task).kind == "right"


def test_the_bound_is_the_smaller_of_two(as_it_is) -> None:
    intensities = np.array([1.0, 10.0, 100.0])
    arguments = [4e12, 4e13, 6e13], intensities, 4e12, 6e13
    assert check_function(as_it_is["attainable"], *arguments).kind == "blank"
    assert check_function(as_it_is["attainable_solution"], *arguments).kind == "right"


def changed(as_it_is: dict, path: Path, name: str, old: str, new: str, **names):
    """A solution with a part of it, or what it refers to, replaced."""
    text = textwrap.dedent(inspect.getsource(as_it_is[f"{name}_solution"].py_func))
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    space = as_it_is | names
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), space)
    return space[f"{name}_solution"]


@pytest.mark.parametrize(
    ("name", "old", "new", "kind"),
    [
        ("copy_strided", "x[i * stride]", "x[i + stride]", "wrong"),
        ("copy_strided", "x[i * stride]", "x[5 * i]", "wrong"),
        ("chase", "following[word]", "following[rounds]", "wrong"),
        ("walk_shared", "lane * stride", "lane + stride", "wrong"),
        ("walk_shared", "lane * stride", "4 * lane", "wrong"),
        ("transpose", "tile[lane, r]", "tile[to_row, to_column]", "stopped"),
        ("one_chain_of_fma", "cuda.fma(a, x, y)", "cuda.fma(x, y, a)", "wrong"),
    ],
)
def test_likely_mistakes_are_told(as_it_is, tmp_path, name, old, new, kind) -> None:
    found = changed(as_it_is, tmp_path / "changed.py", name, old, new)
    assert check(found, as_it_is[TASKS[name]]).kind == kind


def test_a_tile_that_is_not_transposed_is_told(as_it_is, tmp_path) -> None:
    found = changed(
        as_it_is, tmp_path / "changed.py", "transpose", "tile[lane, r]", "tile[r, lane]"
    )
    told = check(found, as_it_is["transpose_task"])
    assert told.kind == "wrong" and "which are columns of the tile" in repr(told)


@pytest.mark.parametrize(
    ("old", "new", "kind", "says"),
    [
        ("tile[lane, r]", "tile[r, lane]", "wrong", "which are columns of the tile"),
        ("tile[lane, r]", "tile[lane, cuda.threadIdx.y]", "wrong", "column of the tile does not"),
        ("cuda.threadIdx.y + m * TILE_ROWS\n        if row", "cuda.threadIdx.y\n        if row",
         "wrong", "that lie 8 apart are alike"),
        ("= held[m]", "= held[0]", "wrong", "that lie 8 apart are alike"),
        ("= held[m]", "= held[loads - 1]", "wrong", "that lie 8 apart are alike"),
        ("    cuda.syncthreads()\n", "", "stopped", "Do all threads pass"),
    ],
)  # fmt: skip
def test_slips_of_the_last_transpose_are_named(as_it_is, tmp_path, old, new, kind, says) -> None:
    found = changed(as_it_is, tmp_path / "changed.py", "transpose_several", old, new)
    told = check(found, as_it_is["ahead_task"])
    assert told.kind == kind and says in repr(told)


def test_a_transpose_that_loads_and_stores_in_turn_is_told(as_it_is) -> None:
    """The kernel of the blank before it: right, but not what this one is for."""
    told = check(as_it_is["transpose_solution"], as_it_is["ahead_task"])
    assert told.kind == "wrong" and "before it has asked for all of its words of x" in repr(told)


@pytest.mark.parametrize("slip", ["word + 1", "position[0]"])
def test_a_wrong_end_of_the_chain_is_a_wrong_index(as_it_is, tmp_path, slip) -> None:
    path = tmp_path / "changed.py"
    found = changed(as_it_is, path, "chase", "following[word]", f"following[{slip}]")
    told = check(found, as_it_is["chase_task"])
    assert told.kind == "wrong"
    assert "and should be " in repr(told) and "where the last one has led" in repr(told)
    assert "times what" not in repr(told) and "rounding" not in repr(told)


def statements(kernel) -> str:
    """What a kernel does, without its name, docstring and comments."""
    text = textwrap.dedent(inspect.getsource(kernel.py_func))
    node = next(n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef))
    said = ast.get_docstring(node) is not None
    body = [ast.unparse(statement) for statement in node.body[said:]]
    return f"{ast.unparse(node.args)}\n" + "\n".join(body)


@pytest.mark.parametrize("name", MEASURED)
def test_a_kernel_of_the_page_is_the_one_that_was_measured(as_it_is, name: str) -> None:
    assert statements(as_it_is[name]) == statements(MEASURED[name])
    for constant in ("WARP", "WORDS", "LINKS", "TILE", "TILE_ROWS"):
        assert as_it_is[constant] == getattr(probes, constant)


def test_a_padded_tile_is_as_right(as_it_is, tmp_path) -> None:
    found = changed(as_it_is, tmp_path / "changed.py", "transpose", "", "", row_length=33)
    assert check(found, as_it_is["transpose_task"]).kind == "right"


def test_one_chain_is_the_measured_kernel_with_one_chain(as_it_is) -> None:
    start = np.linspace(0, 1, 32, dtype=np.float32)
    here, there = np.zeros(32, np.float32), np.zeros(32, np.float32)
    numbers = np.float32(0.9), np.float32(0.05), 2
    as_it_is["one_chain_of_fma_solution"][1, 32](start, *numbers, here)
    probes.make_fma("float32", 1)[1, 32](start, *numbers, there)
    assert np.array_equal(here, there)


class Pretended(Device):
    """A CUDA device whose arrays are NumPy's, so that its kernels run in the simulator."""

    def array(self, values):
        return np.array(values)

    def capture(self, step):
        return step


def pretend(device: Device, **settings) -> probes.Probe:
    """A probe that has measured something, another thing for each setting."""
    seconds = 1e-3 * (1 + crc32(repr(settings).encode()) % 100)
    sizes = {"bytes": 10**9, "moved": 10**9, "flops": 10**10, "operations": 10**6}
    return probes.Probe(Timing((seconds,) * 20), **sizes, resident_threads=64 * len(str(settings)))


@pytest.mark.parametrize("capability", [(7, 5), (9, 0)], ids=str)
def test_on_a_gpu_every_measurement_is_live_beside_the_record(
    tmp_path, monkeypatch, capability
) -> None:
    here = Pretended("cuda", "A GPU", "It is here.", capability, 2**34, 40, 2**22)
    monkeypatch.setattr(dgbook.gpu, "device", lambda: here)
    tensor = {} if capability == (7, 5) else {"fp32_tensor_TFLOPs": 9.0, "fp64_tensor_TFLOPs": 0.5}
    monkeypatch.setattr(roofline, "ceilings", lambda device: Ceilings(0.3, 8.0, 0.25, **tensor))
    for name, effect in machine.EFFECTS.items():
        monkeypatch.setitem(machine.EFFECTS, name, replace(effect, probe=pretend))
    monkeypatch.setattr(probes, "fma_rate", pretend)
    for name in ("latency", "shared_latency", "bank_conflicts", "read_bandwidth"):
        monkeypatch.setattr(probes, name, lambda device, size: pretend(device, size=size))
    figures = []
    monkeypatch.setattr(plot, "show", lambda figure, alt: figures.append(figure))
    found = run(LESSON, tmp_path)
    assert len(found["mine"]) == 4 and all(value for rung in found["mine"] for value in rung)
    roof = figures[-1].axes[0]
    run(FURTHER, tmp_path)
    # What is drawn and not measured: a chain.
    badges = [
        {text.get_text().split("  ")[0] for ax in figure.axes for text in ax.texts}
        for figure in figures
    ]
    measured = [found for found in badges if "RECORDED" in found]
    assert len(figures) - len(measured) == 1
    assert all("LIVE" in found for found in measured) and len(measured) == 12
    # A T4 has no tensor cores for these precisions.
    dotted = [line for line in roof.lines if line.get_linestyle() == ":"]
    assert len(dotted) == len(tensor)
