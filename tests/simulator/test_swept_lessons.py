"""The blanks of lessons 11, 11b and 11d: right answers pass, likely mistakes are told."""

from __future__ import annotations

import pytest
from page_code import blank_verdict

TALK, SCHEMES = "11_compute_first_talk_later", "11b_four_schemes_and_three_equations"
FURTHER = "11d_more_on_schemes_and_messages"
IMPORTS = "import numpy as np\nfrom dgbook.page import Task, check, check_function\n"
WAIT, NONE = "cuda.syncthreads()", "pass"
ONCE = "(launch + trip + level)"
STEP, REST = "fma(r, e, r)", "fma(-y, q, x)"


@pytest.mark.parametrize(
    ("lesson", "name", "answers", "kind", "words"),
    [
        (TALK, "step", (), "blank", "in lines 4, 5"),
        (TALK, "step", ("(i - 1) % u.size", "(i + 1) % u.size"), "right", "all 32 values"),
        (TALK, "step", ("i - 1", "i + 1"), "stopped", "u[-1]"),
        (TALK, "unguarded", ("k", "B - k"), "right", "thread 1 wrote"),
        (TALK, "unguarded", ("k", "B"), "wrong", "more is amiss"),
        (TALK, "unguarded", ("k - 1", "B - k"), "stopped", "take another word, or none?"),
        (TALK, "up", (NONE, WAIT), "right", "all 64 values"),
        (TALK, "up", (WAIT, NONE), "stopped", "never comes to this line"),
        (TALK, "up", (NONE, NONE), "stopped", "Nothing makes one wait"),
        (TALK, "diamond", ("2 * n_lev - d", "t", "t + 2"), "right", "all 64 values"),
        (TALK, "diamond", ("n_lev", "t", "t + 2"), "wrong", "of `new` are wrong"),
        (TALK, "tile", ("n_t", "B - n_t"), "right", "all 32 values"),
        (TALK, "tile", ("0", "B"), "stopped", "own the same word"),
        (TALK, "gain", (f"{ONCE} / (2 * level + (launch + trip) / n_lev)",), "right", ""),
        (TALK, "gain", (f"{ONCE} / (2 * level + {ONCE} / n_lev)",), "wrong", "6.900"),
        (TALK, "gain", (f"{ONCE} / (2 * level)",), "wrong", "7.734"),
        (TALK, "gain", ("launch / (2 * level + launch / n_lev)",), "wrong", ""),
        (TALK, "gain", (f"{ONCE} / (level + (launch + trip) / n_lev)",), "wrong", "two levels"),
        (SCHEMES, "steps_per_launch", ("B // (2 * r * n_sub)",), "right", ""),
        (SCHEMES, "steps_per_launch", ("B // (r * n_sub)",), "wrong", "both of its sides"),
        (SCHEMES, "steps_per_launch", ("B // (2 * r)",), "wrong", "several of them"),
        (SCHEMES, "steps_per_launch", ("B // (2 * n_sub)",), "wrong", "How many points"),
        (FURTHER, "repeats", ("B / (B - 2 * r * n_sub * n_t)",), "right", ""),
        (FURTHER, "repeats", ("B / (B - r * n_sub * n_t)",), "wrong", "two ends"),
        (FURTHER, "repeats", ("1 - 2 * r * n_sub * n_t / B",), "wrong", "over"),
        (FURTHER, "repeats", ("2 * r * n_sub * n_t / B",), "wrong", "margin"),
        (FURTHER, "repeats", ("B / (B - 2 * r * n_t)",), "wrong", "several substeps"),
        (SCHEMES, "steps_per_launch", ("B / (2 * r * n_sub)",), "wrong", "Only whole steps"),
        (SCHEMES, "divide", (), "blank", "in lines 5, 7"),
        (SCHEMES, "divide", (STEP, REST), "right", "0.499 units in the last"),
        (SCHEMES, "divide", ("fma(r, fma(e, e, e), r)", REST), "right", "0.499 units"),
        (SCHEMES, "divide", ("r + r * e", REST), "right", "0.499 units"),
        (SCHEMES, "divide", ("r", REST), "wrong", "still the seed"),
        (SCHEMES, "divide", ("fma(-r, e, r)", REST), "wrong", "adds `r * e`."),
        (SCHEMES, "divide", ("r * e", REST), "wrong", "only what"),
        (SCHEMES, "divide", (STEP, "fma(y, q, -x)"), "wrong", "sign"),
        (SCHEMES, "divide", (STEP, "x - y * q"), "wrong", "Use `fma`"),
        (SCHEMES, "divide", (STEP, "0.0"), "wrong", "units in the last place off"),
        (SCHEMES, "divide", (STEP, "fma(y, q)"), "stopped", "TypeError"),
        (SCHEMES, "warp_diamond", ("1", "even", "odd"), "right", "all 128 values"),
        (SCHEMES, "warp_diamond", ("1", "odd", "even"), "wrong", "124 of 128 values"),
        (SCHEMES, "warp_diamond", ("1", "even", "even"), "wrong", "in `even` or in `odd`"),
        (SCHEMES, "warp_diamond", ("0", "even", "odd"), "wrong", "64 of 128 values"),
        (SCHEMES, "warp_diamond", ("0", "even", "odd"), "wrong", "does lane 0 make first"),
    ],
)  # fmt: skip
def test_answers(tmp_path, lesson, name, answers, kind, words) -> None:
    said = blank_verdict(tmp_path / "lesson.py", lesson, IMPORTS, name, answers)
    assert said.kind == kind and words in said.words, repr(said)
