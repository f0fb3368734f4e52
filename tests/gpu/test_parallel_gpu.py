"""Several parts on one GPU: the same bits from any number of parts, copies in place of messages."""

import numpy as np
import pytest
from parallel_cases import case, mesh_of, roundings_of_less, start, whole

from dgbook import parallel
from dgbook.mesh import box

pytest.importorskip("pymetis")
BAR = box((8, 3, 3), periodic=(False, True, False))
DT = 1e-3
KINDS = [
    ("linear", 2, {"path": "fused"}),
    ("linear", 4, {"path": "split"}),
    ("maxwell", 3, {"basis": "nodal"}),
    ("maxwell", 6, {"basis": "nodal"}),
    ("maxwell", 3, {"basis": "bernstein"}),
    ("maxwell", 7, {"basis": "bernstein"}),
    ("nodal", 4, {}),
    ("bernstein", 5, {}),
    ("euler", 3, {}),
]


def mesh_for(family):
    return BAR if family in ("maxwell", "nodal", "bernstein") else mesh_of(family, 8)


@pytest.mark.parametrize(("family", "order", "settings"), KINDS)
def test_any_number_of_parts_gives_the_same_bits(family, order, settings, dtype):
    mesh = mesh_for(family)
    make = case(family, mesh, order, dtype=dtype, device="cuda", **settings)
    one = make(whole(mesh))
    u = start(one)
    expected = one.run(u, 3 * DT, DT)
    assert np.abs(expected - u).max() > 1e-6
    for parts in (2, 3):
        many = parallel.Solver(make, mesh, parts=parts)
        np.testing.assert_array_equal(many.gather(many.run(many.scatter(u), 3 * DT, DT)), expected)


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("maxwell", {"basis": "nodal"}),
        ("maxwell", {"basis": "bernstein"}),
        ("nodal", {}),
        ("bernstein", {}),
    ],
)
def test_what_the_flux_needs_is_enough(family, settings, dtype):
    make = case(family, BAR, 4, dtype=dtype, device="cuda", **settings)
    assert 0 < roundings_of_less(make, BAR, 3, DT) < 200


def test_the_longest_stable_step(dtype):
    make = case("maxwell", BAR, 2, dtype=dtype, device="cuda")
    many = parallel.Solver(make, BAR, parts=2)
    assert many.stable_dt() == pytest.approx(make(whole(BAR)).stable_dt(), rel=1e-3)
