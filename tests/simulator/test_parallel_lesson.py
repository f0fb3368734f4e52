"""The blanks of lesson 11c: right answers pass, likely mistakes are told."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

pytest.importorskip("pymetis")
LESSON = Path(__file__).parents[2] / "chapters" / "11c_when_one_gpu_is_not_enough.ipynb"
IMPORTS = "import numpy as np\n"
OWN, OTHERS = "owner == part", "owner[near] != part"
TANGENTIAL = "E - np.outer(E @ n, n)"
GUARD, FIELD = "i < buffer.size", "i // 2 % 3"


def verdict(path: Path, name: str, answers: tuple[str, ...]):
    """What the lesson says of its blank called `name`, with an answer for each ``...``."""
    cells = json.loads(LESSON.read_text(encoding="utf-8"))["cells"]
    codes = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (tasks,) = (code for code in codes if code.startswith("# @title Make the task"))
    (blank,) = (code for code in codes if f"def {name}(" in code and "..." in code)
    for answer in answers:
        blank = blank.replace("...", answer, 1)
    blank = re.sub(r"^check", "said = check", blank, flags=re.M)
    path.write_text(f"{IMPORTS}{tasks}\n\n\n{blank}\n", encoding="utf-8")
    return runpy.run_path(str(path))["said"]


@pytest.mark.parametrize(
    ("name", "answers", "kind", "words"),
    [
        ("ghosts", (), "blank", "in lines 2, 4"),
        ("ghosts", (OWN, OTHERS), "right", ""),
        ("ghosts", (OWN, "owner[near] == part"), "wrong", ""),
        ("ghosts", (OWN, ":"), "wrong", ""),
        ("ghosts", ("owner != part", "owner[near] == part"), "wrong", ""),
        ("incoming", (TANGENTIAL, "np.cross(n, H)"), "right", ""),
        ("incoming", (TANGENTIAL, "np.cross(H, n)"), "wrong", "wrong sign"),
        ("incoming", ("E", "np.cross(n, H)"), "wrong", ""),
        ("incoming", (TANGENTIAL, "H - np.outer(H @ n, n)"), "wrong", ""),
        ("pack", (GUARD, FIELD), "right", "all 24 values"),
        ("pack", ("True", FIELD), "stopped", "node"),
        ("pack", (GUARD, "i % 3"), "wrong", "of `buffer` are wrong"),
        ("pack", (GUARD, "i % 6 // 3"), "wrong", "of `buffer` are wrong"),
        ("stage", ("exchange + t0 + t1 * edge",), "right", ""),
        ("stage", ("exchange + t1 * edge",), "wrong", "kernel of its own"),
        ("stage", ("exchange",), "wrong", ""),
        ("stage", ("exchange + computing",), "wrong", ""),
    ],
)
def test_answers(tmp_path, name, answers, kind, words) -> None:
    said = verdict(tmp_path / "lesson.py", name, answers)
    assert said.kind == kind and words in said.words, repr(said)
