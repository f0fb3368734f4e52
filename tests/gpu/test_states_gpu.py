"""States on a real device: converted there to what the host would have made, to the last bit."""

import numpy as np
import pytest
from local_cases import clusters_of
from state_cases import CUBE, LAYOUTS, SOLVERS, in_order, random_state

from dgbook import acoustics, maxwell
from dgbook.gpu import device
from dgbook.nodal import launching

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)


@pytest.fixture(params=[17, launching.PIECE], autouse=True)
def piece(request, monkeypatch):
    """So many elements are converted together."""
    monkeypatch.setattr(launching, "PIECE", request.param)


@pytest.mark.parametrize("name", LAYOUTS)
def test_fields_that_stay_as_they_are_move_without_rounding(name):
    solver = SOLVERS[name](GPU)
    launcher, u = solver.launcher, random_state(solver)
    state = launcher.upload(u)
    assert np.array_equal(GPU.to_numpy(state), LAYOUTS[name](launcher, u))
    assert np.array_equal(launcher.download(state), u)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("family", "path"), [(maxwell, "fused"), (acoustics, "paper")])
def test_control_points_are_sums_in_one_order(family, path, dtype):
    solver = family.Solver(CUBE, 3, dtype, GPU, basis="bernstein", path=path)
    launcher, u, basis = solver.launcher, random_state(solver), solver.operator.basis
    state = launcher.upload(u, solver._unknowns)
    points = launcher.upload(in_order(basis.coefficients, u))
    assert np.array_equal(GPU.to_numpy(state), GPU.to_numpy(points))
    expected = in_order(basis.nodal, launcher.download(state))
    assert np.array_equal(launcher.download(state, solver._nodal), expected)


@pytest.mark.parametrize("family", [maxwell, acoustics])
def test_local_steps_hold_modes(family):
    solver = family.Solver(CUBE, 2, "float32", GPU)
    launcher, u = solver._local_launcher(clusters_of(solver, last=1)), random_state(solver)
    off = launcher.download(launcher.upload(u)) - u
    assert np.abs(off).max() < 50 * np.finfo(np.float32).eps * np.abs(u).max()
