"""The acoustic solver against exact solutions: order N+1, interfaces, walls, open boundaries."""

import numpy as np
import pytest

from dgbook.acoustics import PlaneWave, Solver
from dgbook.acoustics.exact import CubeMode, Interface
from dgbook.acoustics.problem import FLUXES
from dgbook.acoustics.reference import BASES
from dgbook.mesh import box

OCTANT = dict.fromkeys(("x-", "y-", "z-"), "rigid") | dict.fromkeys(("x+", "y+", "z+"), "soft")


def error_at(exact, mesh, order, t_end=0.15, share=1.0, **options):
    solver = Solver(mesh, order, device="cpu", **options)
    u = solver.interpolate(lambda x, y, z: exact(x, y, z, 0.0))
    return solver.l2_error(solver.run(u, t_end, share * solver.cfl_dt()), exact, t_end)


@pytest.mark.parametrize(
    ("order", "cells"),
    [(1, (4, 8)), (2, (2, 4)), (3, (2, 4)), (4, (1, 2)), (5, (1, 2)), (6, (1, 2))],
)
@pytest.mark.parametrize("basis", BASES)
def test_the_cube_mode_converges_with_order_N_plus_1(order, cells, basis):
    """On an eighth of the paper's cube: soft walls outside, rigid planes of symmetry inside."""
    coarse, fine = (
        error_at(CubeMode(), box((n, n, n)), order, basis=basis, share=0.7, boundary=OCTANT)
        for n in cells
    )
    assert abs(np.log2(coarse / fine) - (order + 1)) < 0.35


def test_the_papers_cube_itself():
    mode = CubeMode(kappa=2.0, rho=0.5)
    media = {"kappa": 2.0, "rho": 0.5}
    coarse, fine = (error_at(mode, box((n, n, n), -1.0, 1.0), 2, **media) for n in (2, 4))
    assert abs(np.log2(coarse / fine) - 3) < 0.35


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize(("ky", "flux"), [(0.0, "upwind"), (np.pi, "upwind"), (np.pi, "penalty")])
def test_two_media_converge_with_order_N_plus_1(order, ky, flux):
    exact = Interface(6.0, ky, (1.0, 2.0), (1.0, 3.0))
    walls = {"y-": "rigid", "y+": "rigid"} if ky else {}

    def error(n, swapped=False):
        shape, upper = ((2 * n, n, 1), 1.0) if ky else ((2 * n, 1, 1), 1 / n)
        mesh = box(shape, (-0.5, 0, 0), (0.5, upper, 1 / n), periodic=(False, not ky, True))
        media = {"kappa": exact.kappa_of(mesh), "rho": exact.rho_of(mesh)}
        if swapped:
            media = {"kappa": media["rho"], "rho": media["kappa"]}
        boundary = {"x-": exact, "x+": exact} | walls
        u = error_at(
            exact, mesh, order, 0.2, basis="bernstein", flux=flux, boundary=boundary, **media
        )
        return u * n ** (0.5 if ky else 1.0)

    n = 4 if order == 1 else 2
    coarse, fine = error(n), error(2 * n)
    assert abs(np.log2(coarse / fine) - (order + 1)) < 0.35
    assert error(n, swapped=True) > 2 * coarse


@pytest.mark.parametrize("basis", BASES)
def test_a_plane_wave_enters_an_empty_box(basis):
    """Of any direction, through all six sides, and out again: control points of boundary data."""
    wave = PlaneWave((2.0, 1.0, -1.0), 0.8, 0.3, 1.5, 0.5)
    media = {"kappa": 1.5, "rho": 0.5}
    coarse, fine = (
        error_at(wave, box((n, n, n)), 3, 0.25, basis=basis, boundary=wave, **media) for n in (1, 2)
    )
    assert abs(np.log2(coarse / fine) - 4) < 0.6


@pytest.mark.parametrize("flux", FLUXES)
def test_absorbing_boundaries_let_a_pulse_out(flux):
    wave = PlaneWave((1, 0, 0), 0.15, -0.5)
    mesh = box((5, 1, 1), 0.0, (1.0, 0.2, 0.2), periodic=(False, True, True))
    solver = Solver(mesh, 4, device="cpu", flux=flux, boundary="absorbing")
    u = solver.interpolate(lambda x, y, z: wave(x, y, z, 0.0))
    left = np.sqrt(solver.energy(solver.run(u, 1.3)) / solver.energy(u))
    assert left < (2e-2 if flux == "central" else 5e-3)


@pytest.mark.parametrize(("wall", "sign"), [("soft", -1), ("rigid", 1)])
def test_walls_throw_a_pulse_back(wall, sign):
    """Soft: p turned round. Rigid: p as it came."""
    coming, going = (PlaneWave((d, 0, 0), 0.2, 1.8) for d in (1, -1))
    mesh = box((6, 1, 1), (-1.0, 0, 0), (0.0, 1 / 6, 1 / 6), periodic=(False, True, True))
    solver = Solver(mesh, 4, device="cpu", boundary={"x-": coming, "x+": wall})
    u = solver.run(solver.interpolate(lambda x, y, z: 4 * [0.0]), 2.2)

    def echo(x, y, z, t):
        back = [sign * b for b in going(x, y, z, t)]
        return [a + b for a, b in zip(coming(x, y, z, t), back, strict=True)]

    norm = solver.l2_error(0 * u, echo, 2.2)
    assert norm == pytest.approx(np.sqrt(2 * 0.2 * np.sqrt(np.pi / 2) / 36), rel=1e-3)
    assert solver.l2_error(u, echo, 2.2) < 5e-3 * norm
