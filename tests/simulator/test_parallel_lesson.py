"""The blanks of lessons 11c and 11d: right answers pass, likely mistakes are told."""

from __future__ import annotations

import pytest
from page_code import blank_verdict

pytest.importorskip("pymetis")
LESSON, FURTHER = "11c_when_one_gpu_is_not_enough", "11d_more_on_schemes_and_messages"
MOVED = ("incoming", "pack")  # to the page that goes further
IMPORTS = "import importlib.util\nimport subprocess\nimport sys\nimport numpy as np\n"
PACKED, DONE = "side.wait_event(packed)", "main.wait_event(done)"
OWN, OTHERS = "owner == part", "owner[near] != part"
TANGENTIAL = "E - np.outer(E @ n, n)"
TURNS, FENCE = "r % 2", "gpu.fence()"
GUARD, FIELD = "i < buffer.size", "i // 2 % 3"


@pytest.mark.parametrize(
    ("name", "answers", "kind", "words"),
    [
        ("ghosts", (), "blank", "in lines 2, 4"),
        ("ghosts", (OWN, OTHERS), "right", ""),
        ("ghosts", (OWN, "owner[near] == part"), "wrong", "the part's own"),
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
        ("advance", (), "blank", "in lines 7, 17"),
        ("advance", (PACKED, DONE), "right", "all 16 values"),
        ("advance", ("pass", DONE), "wrong", "left before it was packed"),
        ("advance", (PACKED, "pass"), "wrong", "before the edge was done"),
        ("advance", ("main.wait_event(packed)", DONE), "wrong", "left before it was packed"),
        ("advance", (PACKED, "side.wait_event(done)"), "wrong", "before the edge was done"),
        ("advance", (DONE, DONE), "stopped", "done"),
        ("exchange", (), "blank", "in lines 3, 5, 7"),
        ("exchange", (TURNS, FENCE, "flag > r"), "right", "no fetch is wrong"),
        ("exchange", ("1 - r % 2", FENCE, "flag >= r + 1"), "right", ""),
        ("exchange", ("0", FENCE, "flag > r"), "wrong", "was ahead and overwrote them"),
        ("exchange", ("r // 2 % 2", FENCE, "flag > r"), "wrong", "was ahead and overwrote them"),
        ("exchange", ("r", FENCE, "flag > r"), "stopped", "buffer = 2; allowed: 0 to 1"),
        ("exchange", (TURNS, "pass", "flag > r"), "wrong", "the flag has overtaken the traces"),
        ("exchange", (TURNS, FENCE, "flag >= r"), "wrong", "did not wait"),
        ("exchange", (TURNS, FENCE, "True"), "wrong", "did not wait"),
        ("exchange", (TURNS, FENCE, "flag == r + 1"), "wrong", "waits forever in round 0"),
        ("exchange", (TURNS, FENCE, "flag > r + 1"), "wrong", "waits forever in round 0"),
        ("exchange", (TURNS, FENCE, "flag > s"), "stopped", "NameError"),
        ("stage", ("exchange + t0 + t1 * edge",), "right", ""),
        ("stage", ("exchange + t1 * edge",), "wrong", "kernel of its own"),
        ("stage", ("exchange",), "wrong", ""),
        ("stage", ("exchange + computing",), "wrong", ""),
    ],
)
def test_answers(tmp_path, name, answers, kind, words) -> None:
    lesson = FURTHER if name in MOVED else LESSON
    said = blank_verdict(tmp_path / "lesson.py", lesson, IMPORTS, name, answers)
    assert said.kind == kind and words in said.words, repr(said)
