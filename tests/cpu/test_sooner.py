"""What is measured of whole runs: the same problem, solved in every way to the same end."""

import argparse

import numpy as np
import pytest
import stopped_clock
from stopped_clock import CEILING

from dgbook.cli import maxwell as command
from dgbook.cli import waves
from dgbook.gpu import device
from dgbook.lab import factored, measuring, records, sooner
from dgbook.lab.session import Session
from dgbook.maxwell.plan import BernsteinFusedPlan
from dgbook.maxwell.problem import Scatterer
from dgbook.maxwell.solver import Solver
from dgbook.mesh import box
from dgbook.nodal.fused import FusedPlan

SESSION = Session(device("cpu"), CEILING)


def made(monkeypatch, orders, dtypes, dofs):
    """Rows of the record, checked as they are when it is saved; no clock runs."""
    monkeypatch.setattr(sooner, "measure", stopped_clock.timed)
    monkeypatch.setattr("dgbook.lab.session.beyond_cache", lambda *_: True)
    rows = list(measuring.each_part(sooner.sooner_record, orders, dtypes, dofs, SESSION))
    records.validate(stopped_clock.content("maxwell/sooner", rows))
    return rows


def test_every_way_ends_at_the_same_time(monkeypatch):
    """On the six elements of a cube, whose error does not tell them apart."""
    monkeypatch.setattr(sooner, "SHARES", (1,))
    monkeypatch.setattr(sooner, "CAVITY_END", 0.4)
    monkeypatch.setattr(sooner, "RUNS", 1)
    rows = made(monkeypatch, [1], ["float64"], 144)
    assert [row["variant"] for row in rows] == [way.variant for way in sooner.WAYS]
    by_name = {row["variant"]: row for row in rows}
    for row in rows:
        assert row["steps"] * row["dt"] == pytest.approx(row["t_end"]) == pytest.approx(0.4)
        assert row["stages"] == row["steps"] * (5 if row["method"] == "lsrk45" else 14)
        assert row["path"] == ("bernstein" if "Bernstein" in row["variant"] else "fused")
        assert ("products" in row) == (row["variant"] != "first edition")
    chosen, factored = by_name["chosen"], by_name["Bernstein, factored"]
    assert chosen["method"] == factored["method"] == "ndb14_factored"
    assert chosen["dt"] <= chosen["cfl_dt"]  # there are fewer than fifty of those
    assert factored["bytes"] < by_name["Bernstein"]["bytes"]
    assert factored["error"] == pytest.approx(by_name["Bernstein"]["error"], rel=1e-9)
    assert by_name["first edition"]["dt"] <= by_name["first edition"]["cfl_dt"]
    assert by_name["spectral step"]["steps"] < by_name["first edition"]["steps"]
    assert by_name["14 stages"]["stages"] < by_name["first edition"]["stages"]
    assert by_name["14 stages"]["error"] == pytest.approx(by_name["Bernstein"]["error"], rel=1e-9)


def test_the_step_does_not_change_the_error(monkeypatch):
    """At degree 2 the error is the mesh's, whatever the step and the basis."""
    monkeypatch.setattr(sooner, "SHARES", (4, 1))
    monkeypatch.setattr(sooner, "CAVITY_END", 0.1)
    monkeypatch.setattr(sooner, "RUNS", 1)
    monkeypatch.setattr(sooner, "BODY_ORDERS", ())
    rows = made(monkeypatch, [2], ["float64"], 80_000)
    errors = np.array([row["error"] for row in rows]).reshape(2, len(sooner.WAYS))
    assert np.ptp(errors, axis=1).max() < 0.02 * errors.min()
    cells = [row["size"]["cells"] for row in rows[:: len(sooner.WAYS)]]
    order = np.log(errors[0] / errors[1]) / np.log(cells[1] / cells[0])
    assert 2 < order.min() and order.max() < 3.5


def test_the_norm_of_the_mode():
    solver = Solver(box((3, 3, 3)), 4, device="reference")
    nothing = np.zeros((6, solver.mesh.K, solver.element.Np))
    for t in (0.0, 0.3):
        norm = solver.l2_error(nothing, sooner.CAVITY_MODE, t)
        assert norm == pytest.approx(sooner.CAVITY_NORM, rel=1e-2)


def test_the_airplane_is_the_one_of_the_command():
    parser = argparse.ArgumentParser()
    command.add_run_arguments(parser)
    options = "--t-end 2 --boundary body=scatterer --boundary farfield=absorbing --order 1 "
    options += "--wave-shape sine --wave-parameter 6.283185307179586 --device reference"
    arguments = parser.parse_args(
        ["--mesh", str(sooner.MESHES / "aeroplane.msh"), *options.split()]
    )
    case, problem = waves.case_of(arguments, command.FAMILY), sooner.scattering("airplane")
    assert arguments.t_end == problem.t_end
    assert case.problem["wave"] == repr(problem.boundary["body"].incident)
    assert case.problem["boundary"] == {"body": "scatterer", "farfield": "absorbing"}
    assert isinstance(problem.boundary["body"], Scatterer) and case.problem["initial"] == "zero"
    assert not np.any(case.start(*np.ones((3, 2)))) and not np.any(problem.start(*np.ones((3, 2))))


def test_the_wave_meets_the_sphere_when_the_run_begins():
    """At its first point, z = -1: neither before nor a period later."""
    problem = sooner.scattering("sphere")
    wave = problem.boundary["sphere"].incident
    assert problem.t_end == 2 * (2 * np.pi / wave.parameter)
    for t, comes in ((0.0, False), (0.3, True)):
        field = wave(0.0, 0.0, -1.0, t)
        assert np.any(np.abs(field) > 1e-6) == comes
    assert np.abs(wave(0.0, 0.0, 1.0, 1.9)).max() == 0


def test_bodies_are_held_against_short_steps(monkeypatch):
    """On a cube in their place: the error grows with the step, far below the one in space."""
    mode = sooner.BoxMode(1, 1, 1)
    small = sooner.Problem("airplane", box((1, 1, 1)), "pec", lambda *x: mode(*x, 0.0), 1.0)
    monkeypatch.setattr(sooner, "scattering", lambda name: small)
    monkeypatch.setattr(sooner, "BODIES", ("airplane",))
    monkeypatch.setattr(sooner, "BODY_ORDERS", (3,))
    monkeypatch.setattr(sooner, "SHARES", ())
    rows = made(monkeypatch, [3], ["float64"], 1)
    sooner.truth.cache_clear()
    sooner.error_in_space.cache_clear()
    errors = {row["variant"]: row["error"] for row in rows}
    assert 0 < 20 * errors["first edition"] < errors["spectral step"]
    assert errors["spectral step"] == pytest.approx(errors["Bernstein, 5 stages"], rel=1e-6)
    (space,) = {row["space"] for row in rows}
    assert 5 * max(errors.values()) < space < 0.5


def test_a_difference_is_relative():
    solver = Solver(box((1, 1, 1)), 1, "float32", device="reference")
    truth = np.random.default_rng(0).standard_normal((6, 6, 4))
    assert sooner.difference(solver, 1.001 * truth, truth) == pytest.approx(1e-3, rel=1e-4)


# ------------------------------------------------------------------------ the factored method


def test_a_step_in_either_form(monkeypatch):
    """Of fourteen stages, that move 2.5 words per degree of freedom and not 4, or nearly so."""
    monkeypatch.setattr(factored, "measure", stopped_clock.timed)
    monkeypatch.setattr("dgbook.lab.session.beyond_cache", lambda *_: True)
    monkeypatch.setattr(factored, "ROUNDED", 2)
    session = Session(device("simulator"), CEILING)
    plans = {"nodal": FusedPlan("numba", 2, 1, 1)}
    plans["bernstein"] = BernsteinFusedPlan("numba", 32, 2, 1)
    monkeypatch.setattr(
        factored, "Solver", lambda *a, basis, **o: Solver(*a, basis=basis, plan=plans[basis], **o)
    )
    monkeypatch.setattr(factored, "rounding", lambda *_: 1e-7)
    rows = list(measuring.each_part(factored.factored_record, [2], ["float32"], 144, session))
    records.validate(stopped_clock.content("maxwell/factored", rows))
    variants = [(row["path"], row["variant"]) for row in rows]
    assert variants == [(path, m) for path in ("fused", "bernstein") for m in factored.METHODS]
    assert all(row["stages"] == 14 and row["rounding"] == 1e-7 for row in rows)
    low, better = rows[2]["bytes"], rows[3]["bytes"]
    assert low - better == 14 * 1.5 * rows[0]["dofs"] * 4
    assert 0.6 < better / low < 0.7


def test_rounding_is_less_in_factors(monkeypatch):
    """By more than three times, after ten steps; a rounding is 6e-8."""
    monkeypatch.setattr(factored, "ROUNDED", 10)
    monkeypatch.setattr(factored, "SMALL", 1)
    session = Session(device("reference"), CEILING)
    low, better = (factored.rounding(3, "nodal", m, session) for m in factored.METHODS)
    assert 1e-8 < better < low / 3 < 1e-4
