"""States are converted on the device, some elements at a time: no array of the host is needed."""

import numpy as np
import pytest
import state_cases
from hdg_cases import Alien, AlienDevice
from local_cases import clusters_of
from state_cases import CUBE, LAYOUTS, SQUARE, WALLS, in_order, random_state

from dgbook import acoustics, euler, maxwell
from dgbook.nodal import launching

ALIEN = AlienDevice("simulator", "alien", "")
MATTER = np.random.default_rng(1).uniform(0.5, 2.0, (2, CUBE.K))
SOLVERS = {
    "maxwell": lambda: maxwell.Solver(
        CUBE, 3, "float32", ALIEN, epsilon=MATTER[0], mu=MATTER[1], basis="nodal"
    ),
    "maxwell, Bernstein": lambda: maxwell.Solver(
        CUBE, 2, "float64", ALIEN, epsilon=MATTER[0], mu=MATTER[1], basis="bernstein"
    ),
    "acoustics": lambda: acoustics.Solver(CUBE, 2, "float32", ALIEN, kappa=MATTER[0]),
    "acoustics, Bernstein": lambda: acoustics.Solver(CUBE, 3, "float64", ALIEN, basis="bernstein"),
    "euler": lambda: euler.Solver(SQUARE, 2, "float32", ALIEN, boundary=WALLS),
}


@pytest.fixture
def in_small_pieces(monkeypatch):
    """What converts a state takes 17 elements at a time; what undoes that is returned."""
    monkeypatch.setattr(launching, "PIECE", 17)
    return monkeypatch.undo


@pytest.mark.parametrize("name", SOLVERS)
def test_a_state_is_where_kernels_look_for_it(name, in_small_pieces):
    """Entry by entry, by what launchers say of a state; and its way back."""
    solver = SOLVERS[name]()
    launcher, K, Np = solver.launcher, solver.mesh.K, solver.element.Np
    u = random_state(solver)
    state = launcher.upload(u)
    assert isinstance(state, Alien)

    elements = np.arange(K)
    held = u.astype(np.float64)
    if name != "euler":  # which holds the fields as they are
        held = np.einsum("kcf,fkn->ckn", launcher.components(elements), held)
    expected = np.zeros(state.values.shape)
    expected[launcher.entries(elements, np.tile(np.arange(Np), (K, 1)))] = held
    near = 4 * np.finfo(solver.dtype).eps * np.abs(held).max()
    assert np.abs(state.values - expected).max() < near

    in_small_pieces()
    assert np.array_equal(launcher.upload(u).values, state.values)
    assert (
        np.abs(launcher.download(state) - u).max() < 50 * np.finfo(solver.dtype).eps * abs(u).max()
    )


@pytest.mark.parametrize("name", LAYOUTS)
def test_fields_that_stay_as_they_are_move_without_rounding(name, in_small_pieces):
    solver = state_cases.SOLVERS[name](ALIEN)
    launcher, u = solver.launcher, random_state(solver)
    state = launcher.upload(u)
    assert isinstance(state, Alien)
    expected = LAYOUTS[name](launcher, u)
    assert state.values.dtype == expected.dtype
    assert np.array_equal(state.values, expected)
    assert np.array_equal(launcher.download(state), u)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("family", "path"), [(maxwell, "fused"), (acoustics, "paper")])
def test_control_points_are_made_on_the_device(family, path, dtype, in_small_pieces):
    """By sums in one order, so that their bits do not depend on how many elements there are."""
    solver = family.Solver(CUBE, 3, dtype, ALIEN, basis="bernstein", path=path)
    launcher, u, basis = solver.launcher, random_state(solver), solver.operator.basis
    points = in_order(basis.coefficients, u)
    roundings = np.finfo(dtype).eps * np.abs(points).max()
    assert np.abs(points - basis.from_nodal(u)).max() < 10 * roundings  # the host's product
    state = launcher.upload(u, solver._unknowns)
    assert isinstance(state, Alien)
    assert np.array_equal(state.values, launcher.upload(points).values)

    back = launcher.download(state, solver._nodal)
    assert np.array_equal(back, in_order(basis.nodal, launcher.download(state)))
    in_small_pieces()
    assert np.array_equal(launcher.upload(u, solver._unknowns).values, state.values)
    assert np.array_equal(launcher.download(state, solver._nodal), back)


@pytest.mark.parametrize("family", [maxwell, acoustics])
def test_modes_of_local_steps_are_made_on_the_device(family, in_small_pieces):
    solver = family.Solver(CUBE, 2, "float32", ALIEN)
    launcher, u = solver._local_launcher(clusters_of(solver, last=1)), random_state(solver)
    state = launcher.upload(u)
    assert isinstance(state, Alien)
    elements, Np = np.arange(CUBE.K), solver.element.Np
    modes = u.astype(np.float64) @ solver.element.inverse_vandermonde.T
    held = np.einsum("kcf,fkn->ckn", launcher.components(elements), modes)
    expected = np.zeros(state.values.shape)
    expected[launcher.entries(elements, np.tile(np.arange(Np), (CUBE.K, 1)))] = held
    roundings = np.finfo(np.float32).eps * np.abs(held).max()
    assert np.abs(state.values - expected).max() < 2 * roundings
