"""The blank of "A wave that only moves": the method passes, and likely mistakes are told."""

from typing import Any

import pytest
from page_code import CHAPTERS, code_cells, execute_cell

LESSON = CHAPTERS / "01_a_wave_that_only_moves.ipynb"
F = "a * np.array([-1.0, 1.0])"
RATE = "2 / h * (-a * u @ D.T + (F * jump) @ L.T)"


@pytest.fixture(scope="module")
def given() -> dict[str, Any]:
    """What the cells in front of the blank define for it."""
    names: dict[str, Any] = {}
    execute_cell("from dgbook import linear\nfrom dgbook.mesh import box", names)
    for start in ("import numpy as np\nfrom numpy.polynomial", "# @title Make the task"):
        (text,) = (text for text in code_cells(LESSON) if text.startswith(start))
        execute_cell(text, names)
    return names


@pytest.mark.parametrize(
    ("na", "rate", "words"),
    [
        (F, RATE, "Right: all 30 values"),
        ("a * np.array([1.0, -1.0])", RATE, "The ends are exchanged"),
        (F, RATE.replace("L.T", "L[:, ::-1].T"), "The columns of L are exchanged"),
        ("a", RATE, "F is zero at both ends"),
        ("-a", RATE, "F is the same at both ends"),
        ("np.array([-1.0, 1.0])", RATE, "flux takes n a, and not n alone"),
        (F, RATE.replace("F *", "a * F *"), "F holds a already"),
        (F, RATE.replace("+ (F", "- (F"), "The sign of the lift"),
        (F, RATE.replace("-a", "a"), "The sign of the derivative"),
        (F, RATE.replace("D.T", "D"), "u @ D sums over the rows"),
        (F, "-a * u @ D.T + 2 / h * (F * jump) @ L.T", "The factor 2 / h is for both terms"),
        (F, RATE.removeprefix("2 / h * "), "Every value is 0.08333 times"),
    ],
)
def test_the_blank_tells_a_mistake_from_the_method(
    given: dict[str, Any], na: str, rate: str, words: str
) -> None:
    (blank,) = (text for text in code_cells(LESSON) if "def rhs(" in text)
    blank = blank.replace("flux(...)", f"flux({na})").replace("return ...", f"return {rate}")
    names = dict(given)
    execute_cell(blank.replace("\ncheck_function", "\nsaid = check_function"), names)
    assert words in str(names["said"])
    assert bool(names["said"]) == words.startswith("Right")
