"""What lessons share: shuffled meshes, values at points, changed functions, missing records."""

import numpy as np
import pytest

from dgbook import acoustics, euler
from dgbook.lab import lesson, numbers, records
from dgbook.lab.numbers import Number
from dgbook.mesh import box
from dgbook.page.show import changed


def test_a_turned_mesh_is_the_same_elements():
    mesh = box((2, 2, 1))
    turned = lesson.turned(mesh, np.random.default_rng(1))
    assert (np.sort(turned.elements) == np.sort(mesh.elements)).all()
    assert (turned.elements != mesh.elements).any(axis=1).sum() > mesh.K / 2
    assert (np.sort(turned.neighbors) == np.sort(mesh.neighbors)).all()


@pytest.mark.parametrize("dim", [2, 3])
def test_values_at_points_are_those_of_the_polynomial(dim):
    mesh = box((2,) * dim, periodic=dim == 2)
    family = {2: euler, 3: acoustics}[dim]
    solver = family.Solver(mesh, 2, device="cpu")
    field = solver.interpolate(lambda x, y, *z: [1 + x * y + sum(z)] * (4))[0]
    points = np.random.default_rng(2).random((40, dim))
    expected = 1 + points[:, 0] * points[:, 1] + points[:, 2:].sum(axis=1)
    assert np.abs(lesson.values_at(points, solver, field) - expected).max() < 1e-13
    number = np.arange(mesh.K)[:, None] * np.ones(solver.element.Np)
    holding = lesson.values_at(points, solver, number).round().astype(int)
    corners = mesh.vertices[mesh.elements[holding]]
    edges = (corners[:, 1:] - corners[:, :1]).swapaxes(1, 2)
    shares = np.linalg.solve(edges, (points - corners[:, 0])[..., None])[..., 0]
    assert shares.min() > -1e-12 and shares.sum(axis=1).max() < 1 + 1e-12


def twice(x):
    """A function whose text is changed."""
    return 2 * x


def four_times(x):
    """A function that uses one that is changed."""
    return twice(twice(x))


def test_a_change_reaches_who_uses_it():
    names = changed("2 * x", "3 * x", twice, four_times)
    assert names["four_times"](1) == 9 and four_times(1) == 4
    with pytest.raises(ValueError, match=r"'5 \* x' stands in none of \['twice'\]"):
        changed("5 * x", "", twice)


def test_a_page_without_a_record_says_how_to_make_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(records, "default_folder", lambda: tmp_path)
    assert records.newest("maxwell/stage") is None
    assert capsys.readouterr().out.startswith("No record maxwell/stage: python -m dgbook bench")


def test_the_first_recorded_row_in_a_unit():
    rows = ({"order": 1, "seconds_median": 2e-6}, {"order": 2, "seconds_median": 3e-6})
    record = records.Record("a/b", "a GPU", "9.0", "1", "13", {}, "c", "2026-11-20", {}, rows)
    assert numbers.first_recorded(record, "us", order=2) == Number(
        3e-6 / 1e-6, "us", "RECORDED", "a GPU, 2026-11-20"
    )
    assert numbers.first_recorded(record, "us", order=3) is None
