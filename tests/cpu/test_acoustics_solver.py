"""The acoustic solver: the same solution in both bases, nodal values outside, what it refuses."""

import numpy as np
import pytest

from dgbook.acoustics import Solver, exact
from dgbook.acoustics.plan import BernsteinPlan, NodePlan
from dgbook.mesh import box

MESH = box((1, 1, 1), -1.0, 1.0)
RANDOM = np.random.default_rng(12)


def start(solver):
    return solver.interpolate(lambda x, y, z: exact.CubeMode()(x, y, z, 0.0))


@pytest.mark.parametrize("order", [1, 3, 5, 8, 12])
def test_both_bases_run_to_the_same_solution(order):
    """What differs after some steps grows by less than 1.8 with each order, from 1e-15."""
    results = []
    for basis in ("nodal", "bernstein"):
        solver = Solver(MESH, order, device="cpu", basis=basis)
        u = solver.interpolate(lambda x, y, z: [np.cos(x + y), x * z, np.sin(z), np.cos(x - z)])
        results.append(solver.run(u, 3 * solver.cfl_dt()))
    assert np.abs(results[0] - results[1]).max() < 1e-14 * 1.8**order
    assert np.abs(results[0] - u).max() > 0.1


def test_single_precision_rounds_less_in_the_bernstein_basis():
    """chan2015, figure 6, in short, at N = 9, after 30 steps: a fifth of the nodal rounding."""
    mode = exact.CubeMode()
    eighth = {a + s: wall for a in "xyz" for s, wall in (("-", "rigid"), ("+", "soft"))}
    rounding, errors = {}, {}
    for basis in ("nodal", "bernstein"):
        results = []
        for dtype in ("float32", "float64"):
            solver = Solver(box((1, 1, 1)), 9, dtype, "cpu", basis, boundary=eighth)
            results.append(solver.run(start(solver), 0.3))
            assert results[-1].dtype == np.dtype(dtype)
        rounding[basis] = np.abs(results[0] - results[1]).max()
        errors[basis] = [solver.l2_error(u, mode, 0.3) for u in results]
    assert rounding["bernstein"] < rounding["nodal"] < 3e-5
    assert max(error[0] for error in errors.values()) < 3e-6
    assert errors["bernstein"][1] == pytest.approx(errors["nodal"][1], rel=1e-6)
    assert errors["bernstein"][1] < 2e-7


@pytest.mark.parametrize("basis", ["nodal", "bernstein"])
def test_states_are_nodal_values_in_either_basis(basis):
    solver = Solver(MESH, 4, device="cpu", basis=basis)
    u = start(solver)
    np.testing.assert_allclose(u[0], np.cos(np.pi * solver.x / 2).prod(axis=0), atol=1e-15)
    seen = []
    final = solver.run(u, 0.1, observe=lambda t, v: seen.append(v))
    np.testing.assert_array_equal(seen[-1], final)
    march = solver.march(u, 0.1)
    np.testing.assert_allclose(march.state(), u, atol=1e-13)
    march.step()
    state, raw = march.state(), march.raw()
    np.testing.assert_array_equal(state, seen[0])
    again = solver.march(u, 0.1, done=1)
    assert again.restore(state, raw)
    again.step()
    np.testing.assert_array_equal(again.state(), seen[1])


def test_energy_weighs_with_the_media():
    """int p^2 / (2 kappa) + rho v^2 / 2 over a volume of 8."""
    solver = Solver(MESH, 2, device="cpu", kappa=4.0, rho=3.0)
    u = solver.interpolate(lambda x, y, z: [1.0, 2.0, 0.0, -1.0])
    assert solver.energy(u) == pytest.approx(8 * (1 / 8 + 3 / 2 * 5), rel=1e-13)
    np.testing.assert_allclose(solver.integral(u), [8, 16, 0, -8], atol=1e-12)


def test_the_step_is_of_the_smallest_ball():
    """Inscribed in one of Kuhn's tetrahedra of the unit cube: diameter sqrt(2) - 1."""
    solver = Solver(box((1, 1, 1)), 3, device="cpu", kappa=9.0)
    assert solver.cfl_dt() == pytest.approx((np.sqrt(2) - 1) / 16 / 3, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"mesh": 3}, TypeError, "mesh = 3"),
        ({"mesh": box((1, 1))}, ValueError, "mesh.dim = 2"),
        ({"dtype": "float16"}, ValueError, "dtype = 'float16'"),
        ({"device": "gpu"}, ValueError, "device = 'gpu'"),
        ({"path": "split"}, ValueError, "path = 'split'; allowed are"),
        ({"plan": 4}, TypeError, "plan = 4; allowed with path 'fused': a FusedPlan"),
        (
            {"plan": BernsteinPlan(1, 1, 1), "path": "paper"},
            TypeError,
            "path 'paper': a NodePlan or ElementPlan",
        ),
        (
            {"plan": NodePlan(1, 1, 1), "path": "paper", "basis": "bernstein"},
            TypeError,
            "path 'paper': a BernsteinPlan",
        ),
        (
            {"flux": "central", "basis": "bernstein", "device": "simulator"},
            ValueError,
            "flux = 'central' in basis 'bernstein'",
        ),
        ({"basis": "monomial"}, ValueError, "basis = 'monomial'"),
        ({"order": 16}, ValueError, "order must be"),
        ({"order": 0, "basis": "bernstein"}, ValueError, "order = 0"),
        ({"kappa": -1.0}, ValueError, "kappa = -1.0"),
        ({"boundary": {"top": "soft"}}, ValueError, "no condition for"),
    ],
)
def test_wrong_arguments_are_refused_at_once(change, error, message):
    arguments = {"mesh": MESH, "order": 2, "device": "cpu"} | change
    with pytest.raises(error, match=message):
        Solver(**arguments)
