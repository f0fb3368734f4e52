"""Lessons 9 and 9b: the answers that their checks are made with tell likely mistakes apart."""

import json
from pathlib import Path

import numpy as np
import pytest

from dgbook.page import check_function

CHAPTERS = Path(__file__).parents[2] / "chapters"


@pytest.fixture(scope="module")
def tasks():
    cells = json.loads((CHAPTERS / "09_fewer_unknowns_hybridization.ipynb").read_text())["cells"]
    names = {}
    exec("".join(next(c for c in cells if c["id"] == "hybrid-03")["source"]), names)
    return names["tasks"]


def recover(K, f, traces):
    Np = f.shape[1]
    right = f[..., None] - K[:, :Np, Np:] @ traces[..., None]
    return np.linalg.solve(K[:, :Np, :Np], right)[..., 0]


def test_recover_may_use_numpys_dots(tasks):
    assert check_function(recover, *tasks["recover"])


MISTAKES = [
    lambda H, g: (H.transpose(0, 2, 1), g),
    lambda H, g: (0 * H + H[:, :1, :1], g),
    lambda H, g: (0 * H + H[:, :1], g),
    lambda H, g: (H[:, ::-1], g),
    lambda H, g: (H, 0 * g + g[:, :1]),
    lambda H, g: (H, g[:, ::-1]),
]


@pytest.mark.parametrize("mistake", [None, *range(len(MISTAKES))])
def test_assemble_tells_mistakes(tasks, mistake):
    want, *given = tasks["assemble"]

    def assemble(H, g, rows):
        total = np.zeros((rows.max() + 1, rows.max() + 2))
        H, g = (H, g) if mistake is None else MISTAKES[mistake](H, g)
        for k, row in enumerate(rows):
            total[np.ix_(row, row)] += H[k]
            total[row, -1] += g[k]
        return total

    assert bool(check_function(assemble, want, *given)) == (mistake is None)


@pytest.mark.parametrize(
    ("cell", "blank", "answers"),
    [
        ("newton-09", "...", {"U - R / slope": True, "U - R / U": False, "U - R**2": False}),
        (
            "newton-27",
            "..., ..., ...",
            {
                "(v_x**2 + v_y**2) / 2, -v_x, -v_y": True,
                "(v_x**2 + v_y**2) / rho, -v_x, -v_y": False,
                "(m_x**2 + m_y**2) / rho**3, -v_x, -v_y": False,
                "(v_x**2 + v_y**2) / 2, -rho, -v_y": False,
                "(v_x**2 + v_y**2) / 2, -v_x, -rho": False,
            },
        ),
    ],
)
def test_blanks_on_gases_and_newton(tmp_path, cell, blank, answers):
    cells = json.loads((CHAPTERS / "09b_compressible_flow_and_newton.ipynb").read_text())["cells"]
    source = "".join(next(c for c in cells if c["id"] == cell)["source"])
    for number, (answer, right) in enumerate(answers.items()):
        *lines, check = source.replace(blank, answer).rstrip().split("\n")
        path = tmp_path / f"answer_{number}.py"  # a check reads the source
        path.write_text("\n".join([*lines, f"verdict = {check}"]))
        names = {"np": np, "check_function": check_function}
        exec(compile(path.read_text(), path, "exec"), names)
        assert bool(names["verdict"]) == right, answer
