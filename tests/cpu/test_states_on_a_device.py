"""States are converted on the device, some elements at a time: no array of the host is needed."""

import numpy as np
import pytest
from hdg_cases import Alien, AlienDevice

from dgbook import acoustics, euler, maxwell
from dgbook.euler.launch import fused as euler_fused
from dgbook.mesh import box
from dgbook.nodal import fused

ALIEN = AlienDevice("simulator", "alien", "")
SQUARE, CUBE = box((5, 7)), box((3, 2, 2))
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
    "euler": lambda: euler.Solver(
        SQUARE, 2, "float32", ALIEN, boundary=dict.fromkeys(SQUARE.boundary, "wall")
    ),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_a_state_is_where_kernels_look_for_it(name, monkeypatch):
    """Entry by entry, by what launchers say of a state; and its way back."""
    for module in (fused, euler_fused):
        monkeypatch.setattr(module, "PIECE", 17)
    solver = SOLVERS[name]()
    launcher, K, Np = solver.launcher, solver.mesh.K, solver.element.Np
    u = np.random.default_rng(2).standard_normal((len(solver.fields), K, Np)).astype(solver.dtype)
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

    monkeypatch.undo()
    assert np.array_equal(launcher.upload(u).values, state.values)
    assert (
        np.abs(launcher.download(state) - u).max() < 50 * np.finfo(solver.dtype).eps * abs(u).max()
    )
