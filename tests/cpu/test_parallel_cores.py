"""Compiled kernels on pieces of a mesh: the same bits from any number of parts."""

import numpy as np
import pytest
from broken.parallel import EveryOtherStage
from parallel_cases import DT, STEPS, case, in_parts, mesh_of, start, whole

from dgbook import parallel
from dgbook.parallel import solver as parallel_solver

pytest.importorskip("pymetis")
FAMILIES = ("linear", "maxwell", "nodal", "bernstein", "euler")
DTYPES = ("float64", "float32")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_any_number_of_parts_gives_the_same_bits(family, dtype):
    mesh = mesh_of(family, 3)
    make = case(family, mesh, 2, dtype=dtype, device="cpu")
    one = make(whole(mesh))
    u = start(one)
    expected = one.run(u, STEPS * DT, DT)
    assert np.abs(expected - u).max() > 1e-4
    for parts in (1, 2, 3):
        np.testing.assert_array_equal(in_parts(make, mesh, u, parts=parts), expected)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("family", ["linear", "maxwell", "nodal", "bernstein"])
def test_a_factored_method_in_parts(family, device):
    """Traces of two arrays in turn are exchanged, of that which the next stage reads."""
    mesh = mesh_of(family, 3)
    make = case(family, mesh, 2, device=device, method="ndb14_factored")
    u = start(make(whole(mesh)))
    expected = make(whole(mesh)).run(u, STEPS * DT, DT)
    found = in_parts(make, mesh, u, parts=2)
    assert np.abs(expected - u).max() > 1e-4
    if device == "cpu":
        np.testing.assert_array_equal(found, expected)
    assert np.abs(found - expected).max() < 1e-14 * np.abs(expected).max() * 10


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_the_array_that_the_next_stage_reads_has_to_be_exchanged(device, monkeypatch):
    mesh = mesh_of("maxwell", 3)
    make = case("maxwell", mesh, 2, device=device, method="ndb14_factored")
    u = start(make(whole(mesh)))
    expected = in_parts(make, mesh, u, parts=2)
    monkeypatch.setattr(parallel_solver, "Halo", EveryOtherStage)
    assert np.abs(in_parts(make, mesh, u, parts=2) - expected).max() > 1e-6


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_computed_for_ghosts(family):
    """Nor for those that share a block with elements that are computed."""
    mesh = mesh_of(family, 3)
    make = case(family, mesh, 2, device="cpu")
    many = parallel.Solver(make, mesh, parts=2)
    u = many.scatter(start(make(whole(mesh))))
    shared = [one.mesh.owned % one.launcher.L for one in many.solvers]
    assert any(shared)
    for piece, solver, values in zip(many.pieces, many.solvers, u, strict=True):
        rate = solver.rhs(values)
        assert np.abs(rate[:, : piece.mesh.owned]).max() > 1e-3
        np.testing.assert_array_equal(rate[:, piece.mesh.owned :], 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", ["maxwell", "nodal", "bernstein"])
def test_what_the_flux_needs_is_enough(family, dtype):
    mesh = mesh_of(family, 3)
    make = case(family, mesh, 2, dtype=dtype, device="cpu")
    u = start(make(whole(mesh)))
    states = [in_parts(make, mesh, u, parts=3, traces=traces) for traces in parallel.TRACES]
    error = np.abs(states[0] - states[1]).max() / np.finfo(dtype).eps / np.abs(states[0]).max()
    assert 0 < error < 20


@pytest.mark.parametrize("family", ["linear", "bernstein"])
def test_the_longest_stable_step_is_that_of_the_whole(family):
    mesh = mesh_of(family, 3)
    make = case(family, mesh, 2, device="cpu")
    one, many = make(whole(mesh)), parallel.Solver(make, mesh, parts=3)
    assert many.stable_dt() == pytest.approx(one.stable_dt(), rel=1e-6)
