"""The blanks of lessons 7 to 8d: right as solved, and likely mistakes told by their names."""

from __future__ import annotations

from functools import cache

import pytest
from page_code import CHAPTERS, code_cells, execute_cell

KERNELS = "07b_the_vortex_as_kernels", (
    "# @title Make random gas", "# @title Compute the right", "# @title Name likely",
)  # fmt: skip
MORE = "07c_more_on_the_gas", ("# @title Make four states",)
WALL = MORE[0], ("# @title Make a random gas at a wall",)
EDGE = KERNELS[0], (*KERNELS[1], "# @title Make states along an edge")
GAS = "07_a_vortex_that_must_not_fade", (
    "# @title Make random states", "# @title Make an operator, a random",
)  # fmt: skip
BASIS = "08_a_basis_that_makes_matrices_sparse", (
    "# @title Import what is given", "# @title Say what likely",
)  # fmt: skip
SPARSE = "08b_kernels_for_a_sparse_basis", (
    "# @title Check the flux", "# @title Make the tasks", "# @title What each task asks",
)  # fmt: skip
FURTHER = "08d_more_on_sparse_kernels_and_time_steps", (
    "# @title Import what is given", "# @title Make the task: a random flux",
)  # fmt: skip
# Function: its lesson with the folded cells that it needs, and what stands in place of each blank.
BLANKS = {
    "edge_flux": (KERNELS, {"u[m, ...]": "u[m, s]", "length[e] * ...": "length[e] * F[s]"}),
    "collect": (KERNELS, {"sign[k, f] * ...": "sign[k, f] * flux[mine[k, f], s]"}),
    "gather": (KERNELS, {"u[m, ...]": "u[m, s]", "lengths[k, f] * ...": "lengths[k, f] * F[s]"}),
    "stage": (KERNELS, {"...": "base[k, s] - dt * inverse_area[k] * total[s]"}),
    "last_base": (MORE, {"...": "(-u + u1 + 2 * u2 + u3) / 3"}),
    "coalesced": (KERNELS, {"uT[...]": "uT[s, k]", "uT[..., m]": "uT[s, m]"}),
    "edge_term": (
        EDGE,
        {"far[k, ..., s]": "far[k, 1 - j, s]", "s] += ...": "s] += lift[q, i] * Fs[k] * F[s]"},
    ),
    "normal_flux": (
        GAS,
        {"    y = ...": "    y = vn * u[2] + p * n[1]", "energy = ...": "energy = vn * (u[3] + p)"},
    ),
    "mirror": (
        WALL,
        {
            "x = u[1] - m * ...": "x = u[1] - m * 2 * n[0]",
            "y = u[2] - m * ...": "y = u[2] - m * 2 * n[1]",
        },
    ),
    "surface": (GAS, {"right[...]": "right[:, :, ::-1]", "mg, ... @": "mg, -F[s][:, ::-1] @"}),
    "bernstein": (BASIS, {"...": "(1 - x) ** (N - i) * x**i"}),
    "casteljau": (BASIS, {"...": "(1 - x) * u[:, :-1] + x * u[:, 1:]"}),
    "slopes": (BASIS, {"...": "N * (u[1:] - u[:-1])"}),
    "elevate": (BASIS, {"...": "(i * before + (n + 1 - i) * here) / (n + 1)"}),
    "reduce": (BASIS, {"...": "((n - b) * s[:-1] + (b + 1) * s[1:]) / n"}),
    "derivative": (
        BASIS,
        {"...  # from": "column[j] -= 1; column[m] += 1  # from", "] = ...": "] = a[j]"},
    ),
    "difference": (SPARSE, {"d[i] = ...": "d[i] = u[p + 1] - u[p]", "* ...": "* d[below[i, j]]"}),
    "face": (FURTHER, {"...": "b2[j, 2] * (s[i + r + 1] + s[i + r + 2])"}),
}
# A blank, what is right in it, what is put instead, and what has to be told.
WRONG = [
    ("edge_flux", "u[m, s]", "u[k, s]", "Both sides are the same element"),
    ("edge_flux", "F[s]", "F[0]", "All fields get field 0"),
    ("collect", "flux[mine[k, f], s]", "flux[k, s]", "k is the element's number"),
    ("collect", "flux[mine[k, f], s]", "flux[f, s]", "f counts the element's edges"),
    ("stage", "base[k, s]", "u[k, s]", "starts from base"),
    ("stage", "- dt", "+ dt", "is subtracted"),
    ("stage", " * inverse_area[k]", "", "no mean over the element"),
    ("stage", "dt * ", "", "time step is missing"),
    ("last_base", "(-u + u1 + 2 * u2", "u + ((u1 - u) / 2 + u2 - 2 * u", "half a step away"),
    ("last_base", "-u", "u", "add up to 1"),
    ("edge_term", "1 - j", "j", "runs the other way"),
    ("edge_term", " * Fs[k]", "", "length over the element's area"),
    ("edge_term", "+= lift", "-= lift", "has the minus sign already"),
    ("edge_term", "lift[q, i]", "lift[i, q]", "in the right order"),
    ("normal_flux", "u[3] + p", "u[3]", "Pressure does work"),
    ("normal_flux", " + p * n[1]", "", "pushes along y, too"),
    ("normal_flux", "p * n[1]", "p * n[0]", "its part along y has n[1]"),
    ("mirror", "2 * n", "n", "a mirror turns it around"),
    ("surface", "right[:, :, ::-1]", "right", "the flux needs its states reversed"),
    ("surface", "-F[s][:, ::-1]", "-F[s]", "Reverse the flux as well"),
    ("surface", "-F[s]", "F[s]", "what left gets, it loses"),
    ("bernstein", "(1 - x) ** (N - i) * x", "x", "where is the power of 1 - x"),
    (
        "bernstein",
        "(1 - x) ** (N - i) * x**i",
        "x ** (N - i) * (1 - x)**i",
        "exponents are exchanged",
    ),
    (
        "casteljau",
        "(1 - x) * u[:, :-1] + x * u[:, 1:]",
        "x * u[:, :-1] + (1 - x) * u[:, 1:]",
        "weights are exchanged",
    ),
    ("slopes", "N * ", "", "where is the factor N"),
    ("slopes", "u[1:] - u[:-1]", "u[:-1] - u[1:]", "later minus earlier"),
    (
        "elevate",
        "i * before + (n + 1 - i) * here",
        "(n + 1 - i) * before + i * here",
        "weights are exchanged",
    ),
    (
        "reduce",
        "(n - b) * s[:-1] + (b + 1) * s[1:]",
        "(b + 1) * s[:-1] + (n - b) * s[1:]",
        "weights are exchanged",
    ),
    ("derivative", "a[j]", "a[m]", "direction j, not m"),
    ("derivative", "column[j] -= 1; ", "", "one entry less, another more"),
    ("difference", "u[p + 1] - u[p]", "u[p] - u[p + 1]", "has the wrong sign"),
    ("face", "s[i + r + 2]", "s[i + r]", "third pair is green"),
    ("coalesced", "uT[s, k]", "uT[k, s]", "in the right order"),
]


@cache
def prepared(lesson: str, folded: tuple[str, ...]) -> dict:
    """What the folded cells define."""
    names, cells = {}, code_cells(CHAPTERS / f"{lesson}.ipynb")
    execute_cell("import numpy as np\nfrom dgbook.euler import problem", names)
    execute_cell(
        "from dgbook.mesh import box\nfrom dgbook.page import check, check_function", names
    )
    for start in folded:
        (text,) = [text for text in cells if text.startswith(start)]
        execute_cell(text, names)
    return names


def verdict(name: str, changes: dict[str, str]):
    """What the check of a blank says after some replacements."""
    (lesson, folded), _ = BLANKS[name]
    cells = code_cells(CHAPTERS / f"{lesson}.ipynb")
    (blank,) = [t for t in cells if f"def {name}(" in t and "\ncheck" in t and "..." in t]
    for old, new in changes.items():
        assert blank.count(old) == 1, old
        blank = blank.replace(old, new)
    head, _, call = blank.rpartition("\ncheck")
    names = dict(prepared(lesson, folded))
    execute_cell(head, names)
    return eval(f"check{call}", names)


@pytest.mark.parametrize("name", BLANKS)
def test_blank_as_printed_and_as_solved(name):
    assert verdict(name, {}).kind == "blank"
    solved = verdict(name, BLANKS[name][1])
    assert solved.kind == "right", solved


@pytest.mark.parametrize(("name", "right", "wrong", "words"), WRONG)
def test_likely_mistakes_are_named(name, right, wrong, words):
    changes = {blank: text.replace(right, wrong) for blank, text in BLANKS[name][1].items()}
    assert changes != BLANKS[name][1]
    found = verdict(name, changes)
    assert found.kind in ("wrong", "stopped") and words in repr(found), found
