"""Kernels on pieces of a mesh in the simulator: the same bits as from the whole mesh."""

import numpy as np
import pytest
from parallel_cases import DT, case, mesh_of, roundings_of_less, start, whole

from dgbook import parallel
from dgbook.acoustics import plan as acoustics_plan
from dgbook.euler import plan as euler_plan
from dgbook.gpu.device import device as find_device
from dgbook.maxwell import plan as maxwell_plan
from dgbook.mesh import box
from dgbook.nodal.fused import FusedPlan
from dgbook.nodal.launching import EDGE, INTERIOR, StageByOneKernel
from dgbook.parallel import solver as parallel_solver
from dgbook.parallel.halo import Transfer
from dgbook.parallel.transport import OneProcess

pytest.importorskip("pymetis")
BAR = box((3, 1, 1), periodic=(False, True, False))
KINDS = [
    ("linear", "float64", {"path": "fused"}),
    ("linear", "float32", {"path": "split"}),
    ("maxwell", "float64", {}),
    ("nodal", "float32", {}),
    ("bernstein", "float64", {}),
    ("euler", "float64", {}),
    ("maxwell", "float64", {"basis": "bernstein"}),
    ("linear", "float64", {"method": "ndb14_factored"}),
    ("maxwell", "float32", {"method": "ndb14_factored"}),
]


@pytest.mark.parametrize(("family", "dtype", "settings"), KINDS)
def test_three_parts_give_the_same_bits(family, dtype, settings):
    """One of them has two neighbors; tests/cpu has other numbers of parts, and cores instead."""
    mesh = BAR if family in ("maxwell", "nodal", "bernstein") else mesh_of(family, 4)
    make = case(family, mesh, 1, dtype=dtype, device="simulator", **settings)
    one = make(whole(mesh))
    u = start(one)
    expected = one.run(u, 2 * DT, DT)  # an odd number of stages: from either array
    assert np.abs(expected - u).max() > 1e-4
    many = parallel.Solver(make, mesh, parts=3)
    np.testing.assert_array_equal(many.gather(many.run(many.scatter(u), 2 * DT, DT)), expected)


def first_stage(family, settings, plan):
    """A part of two, and what launches the first stage of a step: which new state it has then."""
    mesh = mesh_of("euler", 8) if family == "euler" else box((6, 2, 1))
    make = case(family, mesh, 1, device="simulator", plan=plan, **settings)
    piece = parallel.cut(mesh, parallel.divide(mesh, 2), 0)
    solver = make(piece)
    stepper = solver._stepper(start(solver), 0.0, DT, 0)
    launch, new = next(stepper.stages(0.0))

    def state(*some):
        new[:] = np.nan
        launch(*some)
        return new.reshape(-1).copy()

    return piece, solver, stepper.state.reshape(-1), state


def check_ranges(family, settings, plan):
    """Together they write each own element once, and ghosts that are NaN do not hurt interiors."""
    piece, solver, u, state = first_stage(family, settings, plan)
    nodes = np.tile(np.arange(solver.element.Np), (piece.mesh.K, 1))
    places = solver.launcher.entries(np.arange(piece.mesh.K), nodes)
    own, ghosts = np.split(places, [piece.mesh.owned], axis=1)
    whole, edge = state(), state(EDGE)
    assert not np.isnan(whole[own]).any()
    u[ghosts] = np.nan
    assert np.isnan(state()[own]).any()  # somebody reads them
    interior = state(INTERIOR)
    assert np.isnan(interior[ghosts]).all()
    written = [~np.isnan(some[own]) for some in (interior, edge)]
    np.testing.assert_array_equal(written[0], ~written[1])
    for some, where in zip((interior, edge), written, strict=True):
        np.testing.assert_array_equal(some[own][where], whole[own][where])
        elements = where.all(axis=(0, 2))
        np.testing.assert_array_equal(where.any(axis=(0, 2)), elements)
        assert 0 < elements.sum() < piece.mesh.owned
    assert elements[piece.mesh.at_edge].all()


RANGES = [
    ("maxwell", {"basis": "nodal"}, FusedPlan("numba", 5, 1, 1)),
    ("maxwell", {"basis": "bernstein"}, maxwell_plan.BernsteinFusedPlan("numba", 32, 1, 5)),
    ("nodal", {}, FusedPlan("numba", 5, 1, 1)),
    ("bernstein", {}, acoustics_plan.BernsteinFusedPlan("numba", 32, 1, 5)),
    ("euler", {}, euler_plan.FusedPlan("numba", 32, 1)),
]


@pytest.mark.parametrize(("family", "settings", "plan"), RANGES)
def test_the_interior_and_the_edge_are_the_part(family, settings, plan):
    check_ranges(family, settings, plan)


@pytest.mark.parametrize("mistake", [{INTERIOR: 1}, {EDGE: 1}, {INTERIOR: -1}], ids=str)
def test_wrong_ranges_are_refused(mistake, monkeypatch):
    """A block too many of the interior, or missing; or at the edge a block twice."""
    right = StageByOneKernel._range

    def wrong(self, some, elements):
        begin, blocks = right(self, some, elements)
        more = mistake.get(some, 0)
        earlier = elements * max(0, more) * (some == EDGE)
        return begin - np.uint32(earlier), blocks + more

    monkeypatch.setattr(StageByOneKernel, "_range", wrong)
    with pytest.raises(AssertionError):
        check_ranges(*RANGES[0])


@pytest.mark.parametrize(
    ("family", "dtype", "settings"),
    [
        ("maxwell", "float32", {}),
        ("maxwell", "float64", {"basis": "bernstein"}),
        ("nodal", "float64", {}),
        ("bernstein", "float32", {}),
    ],
)
def test_what_the_flux_needs_is_enough(family, dtype, settings):
    make = case(family, BAR, 1, dtype=dtype, device="simulator", **settings)
    assert 0 < roundings_of_less(make, BAR, 1, DT) < 20


def test_the_longest_stable_step_by_kernels():
    mesh = mesh_of("linear", 2)
    make = case("linear", mesh, 1, device="simulator")
    many = parallel.Solver(make, mesh, parts=2)
    assert many.stable_dt() == pytest.approx(make(whole(mesh)).stable_dt(), rel=1e-6)


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (1, 4), (4, 1), (2, 6), (6, 2)])
def test_values_are_moved_as_numpy_moves_them(rows, columns):
    """All of them, also where the last block has threads to spare, and nothing else."""
    random = np.random.default_rng(3)
    faces, nodes = 29, 6
    source, target = random.random(2000), random.random(2000)
    there = random.permutation(2000)[: faces * columns * nodes].reshape(faces, columns, nodes)
    here = random.permutation(2000)[: faces * rows * nodes].reshape(faces, rows, nodes)
    matrices = None if rows == columns else random.random((faces, rows, columns))
    results = []
    for name in ("reference", "simulator"):
        moved = target.copy()
        Transfer(find_device(name), there, here, matrices)(source, moved)
        results.append(moved)
    expected = target.copy()
    expected[here] = source[there] if matrices is None else matrices @ source[there]
    np.testing.assert_array_equal(results[0], expected)
    np.testing.assert_allclose(results[1], expected, rtol=1e-14)
    untouched = np.ones(2000, bool)
    untouched[here] = False
    np.testing.assert_array_equal(results[1][untouched], target[untouched])


def test_nothing_is_recorded_where_python_has_to_run():
    """A given state outside is a function: its part takes its steps live, and so do all."""
    mesh = mesh_of("euler", 4)
    for family, recorded in (("euler", False), ("linear", True)):
        make = case(family, mesh, 1, device="simulator")
        many = parallel.Solver(make, mesh, parts=2)
        u = many.scatter(start(make(whole(mesh))))
        assert bool(many.march(u, DT, DT).stepper.replay) == recorded


def test_nothing_is_recorded_unless_all_processes_can(monkeypatch):
    """Messages of a recording would never meet those of a process that launches from Python."""

    class WithAnother(OneProcess):
        def everyone(self, value):
            return [value, False] if value is True else [value]

    monkeypatch.setattr(parallel_solver, "OneProcess", WithAnother)
    mesh = mesh_of("linear", 2)
    make = case("linear", mesh, 1, device="simulator")
    many = parallel.Solver(make, mesh, parts=2)
    march = many.march(many.scatter(start(make(whole(mesh)))), DT, DT)
    assert all(one.replay for one in march.stepper.steppers) and not march.stepper.replay
