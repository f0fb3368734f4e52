"""What Maxwell's solver refuses, its errors at many elements at once, and how plans are chosen."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from dgbook.element import NodalElement
from dgbook.gpu import device, tune
from dgbook.gpu import plan as plan_module
from dgbook.gpu.plan import shipped
from dgbook.maxwell import Solver, exact, reference
from dgbook.maxwell.launch import paper
from dgbook.maxwell.launch.paper import PaperLauncher
from dgbook.maxwell.plan import (
    BernsteinFusedPlan,
    DifferentiatePlan,
    FusedShape,
    PaperPlan,
    faster_basis,
    shape_of,
)
from dgbook.mesh import box
from dgbook.nodal import solving
from dgbook.nodal.fused import FusedPlan

MESH = box((1, 1, 1))
FUSED = FusedPlan("numba", 1, 1, 1)
PAPER = PaperPlan.default(shape_of(2, "float64"))
TEAMS = BernsteinFusedPlan("numba", 32, 1, 1)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"mesh": 3}, TypeError, "mesh = 3"),
        ({"dtype": "float16"}, ValueError, "dtype = 'float16'"),
        ({"path": "fast"}, ValueError, "path = 'fast'"),
        ({"flux": "roe"}, ValueError, "flux = 'roe'"),
        ({"path": "fused", "flux": "central"}, ValueError, "flux = 'central' with path 'fused'"),
        ({"plan": PAPER}, TypeError, "allowed with path 'fused': a FusedPlan"),
        ({"plan": FUSED, "path": "paper"}, TypeError, "allowed with path 'paper': a PaperPlan"),
        ({"plan": FUSED, "flux": "central"}, TypeError, "a PaperPlan"),
        ({"boundary": {"top": "pec"}}, ValueError, "no condition for"),
        ({"boundary": "magnetic"}, ValueError, "'magnetic'"),
        ({"epsilon": -1.0}, ValueError, "epsilon = -1.0"),
        ({"basis": "modal"}, ValueError, "basis = 'modal'"),
        ({"basis": "bernstein", "flux": "central"}, ValueError, "'central' in basis 'bernstein'"),
        (
            {"basis": "bernstein", "path": "paper"},
            ValueError,
            "'paper'; allowed are 'fused'",
        ),
        ({"basis": "bernstein", "plan": FUSED}, TypeError, "a BernsteinFusedPlan"),
        ({"basis": "nodal", "plan": TEAMS}, TypeError, "a FusedPlan"),
    ],
)
def test_wrong_arguments_are_refused_at_once(change, error, message):
    arguments = {"mesh": MESH, "order": 2, "device": "cpu"} | change
    with pytest.raises(error, match=message):
        Solver(**arguments)


def test_the_path_is_the_fused_one_unless_the_flux_is_central():
    assert Solver(MESH, 1, device="cpu").path == "fused"
    assert Solver(MESH, 1, device="cpu", flux="central").path == "paper"


def test_the_basis_is_that_of_the_plan_and_else_nodal():
    """Nothing is shipped that says which is the faster."""
    assert Solver(MESH, 1, device="cpu").basis == "nodal"
    assert Solver(MESH, 1, device="simulator").basis == "nodal"
    assert Solver(MESH, 1, device="simulator", plan=TEAMS).basis == "bernstein"
    assert Solver(MESH, 1, device="simulator", plan=FUSED).basis == "nodal"
    assert Solver(MESH, 1, device="cpu", flux="central").basis == "nodal"


@pytest.mark.parametrize("faster", ["nodal", "bernstein"])
def test_the_basis_is_the_faster_one_where_that_is_known(faster, tmp_path, monkeypatch):
    """From a file as tools/ship_plans.py makes it, of one order and precision."""
    plans = {"nodal": FusedPlan("cuda", 4, 1, 1), "bernstein": replace(TEAMS, language="cuda")}
    line = {"name": "maxwell/basis/cuda", "order": 3, "dtype": "float32"}
    line |= {"plan": asdict(plans[faster]), "failure": ""}
    (tmp_path / "NVIDIA-H200.jsonl").write_text(json.dumps(line) + "\n")
    monkeypatch.setattr(plan_module, "SHIPPED", tmp_path)
    monkeypatch.setattr(tune, "ranked", lambda *subject: [])
    plan_module._shipped.cache_clear()
    gpu = replace(device("simulator"), kind="cuda", compute_capability=(9, 0))
    assert faster_basis(FusedShape(3, "float32", True), gpu) == faster
    for other in (FusedShape(4, "float32", True), FusedShape(3, "float64", True)):
        assert faster_basis(other, gpu) == "nodal"
    plan_module._shipped.cache_clear()


def test_either_basis_gives_the_same_run():
    """Convergence and energy are those of the nodal basis: the same states, to rounding."""
    mode, mesh = exact.BoxMode(1, 2, 2), box((2, 2, 2))
    runs = []
    for basis in ("nodal", "bernstein"):
        solver = Solver(mesh, 4, device="cpu", basis=basis)
        u = solver.interpolate(lambda x, y, z: mode(x, y, z, 0.0))
        runs.append(solver.run(u, 0.1, solver.cfl_dt()))
        assert solver.energy(runs[-1]) < solver.energy(u)
    assert np.abs(runs[0] - runs[1]).max() < 3e-14
    assert solver.stable_dt() == pytest.approx(Solver(mesh, 4, device="cpu").stable_dt(), rel=1e-2)


def test_errors_do_not_depend_on_how_many_elements_are_taken_at_a_time(monkeypatch):
    mode = exact.BoxMode(1, 2, 2)
    solver = Solver(box((2, 2, 3)), 2, device="cpu")
    u = solver.interpolate(lambda x, y, z: mode(x, y, z, 0.1))
    whole = solver.l2_error(u, mode, 0.3)
    monkeypatch.setattr(solving, "ELEMENTS_AT_A_TIME", 7)
    assert abs(solver.l2_error(u, mode, 0.3) - whole) < 1e-14
    # Of the zero state it is the norm of the mode itself, for which E and H share the energy
    # 1/2 int E^2 + H^2 = (1 + (p pi)^2 / g^2) / 16, g^2 = (m^2 + n^2) pi^2, at all times.
    norm = np.sqrt((1 + 4 / 5) / 8)
    assert abs(solver.l2_error(0 * u, mode, 0.3) - norm) < 2e-3


def test_a_grid_that_no_device_has_is_refused(monkeypatch):
    operator = reference.assemble(box((3, 3, 3)), NodalElement(3, 1))
    matrix = DifferentiatePlan("matrix", 1, 1, 1)
    plan = PaperPlan(PAPER.K_M, PAPER.gather, PAPER.lift, matrix)
    PaperLauncher(operator, device("simulator"), plan)
    monkeypatch.setattr(paper, "MAX_GRID_Y", 10)
    with pytest.raises(
        ValueError, match="groups of microblocks; allowed: 10, with more w_i or w_s"
    ):
        PaperLauncher(operator, device("simulator"), plan)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("capability", "pays"),
    [((7, 5), False), ((8, 0), True), ((8, 9), False), ((9, 0), True), ((12, 0), False)],
)
def test_tensor_cores_are_used_where_they_pay(capability, pays, dtype):
    assert shipped(FusedPlan, FusedShape(5, dtype), capability).tensor is pays
