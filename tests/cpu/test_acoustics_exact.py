"""Exact solutions of the acoustic equations satisfy them, at walls and interfaces too."""

import numpy as np
import pytest

from dgbook.acoustics.exact import CubeMode, Interface, PlaneWave
from dgbook.mesh import box

RANDOM = np.random.default_rng(9)
INTERFACES = [
    Interface(),
    Interface(3.0, np.pi / 2, (1.0, 2.0), (1.0, 3.0)),
    Interface(9.0, 2.0, (2.0, 2.0), (4.0, 0.5)),
]


def residual(fields, points, t, kappa=1.0, rho=1.0, h=2e-3):
    """Largest error of p_t / kappa + div v = 0 and rho v_t + grad p = 0, differences of order 8."""
    d = [0, 0, 0, 0]
    for i in range(4):
        for j, w in enumerate((4 / 5, -1 / 5, 4 / 105, -1 / 280), 1):
            step = np.zeros(4)
            step[i] = j * h
            ahead = np.array(fields(*(points + step[:3, None]), t + step[3]))
            behind = np.array(fields(*(points - step[:3, None]), t - step[3]))
            d[i] = d[i] + w / h * (ahead - behind)
    dx, dy, dz, dt = d
    gradient = np.stack([dx[0], dy[0], dz[0]])
    return max(
        np.abs(dt[0] / kappa + dx[1] + dy[2] + dz[3]).max(),
        np.abs(rho * dt[1:] + gradient).max(),
    )


@pytest.mark.parametrize(("kappa", "rho"), [(1.0, 1.0), (2.0, 0.7)])
def test_the_equations_hold_in_one_medium(kappa, rho):
    points = RANDOM.uniform(-1, 1, (3, 40))
    wave = PlaneWave((1.0, -2.0, 0.5), 0.8, 0.3, kappa, rho)
    for fields in (CubeMode(kappa, rho), wave):
        assert residual(fields, points, 0.37, kappa, rho) < 1e-10
        assert residual(fields, points, 0.37, kappa, 1.1 * rho) > 1e-2
        assert max(np.abs(v).max() for v in fields(*points, 0.37)) > 0.1


def test_the_papers_mode():
    """p = cos cos cos cos(sqrt(3) pi t / 2), zero on all six walls, at rest at t = 0."""
    mode = CubeMode()
    assert mode.omega == pytest.approx(np.sqrt(3) * np.pi / 2, rel=1e-15)
    x, y, z = RANDOM.uniform(-1, 1, (3, 10))
    expected = np.cos(np.pi * np.stack([x, y, z]) / 2).prod(axis=0) * np.cos(mode.omega * 0.7)
    np.testing.assert_allclose(mode(x, y, z, 0.7)[0], expected, atol=1e-15)
    assert not np.any(mode(x, y, z, 0.0)[1:])
    for wall in (-1.0, 1.0):
        for point in ((wall, y, z), (x, wall, z), (x, y, wall)):
            assert np.abs(mode(*point, 0.3)[0]).max() < 1e-15


@pytest.mark.parametrize("wave", INTERFACES, ids=str)
def test_the_equations_hold_on_both_sides_of_an_interface(wave):
    for i, side in enumerate((-1, 1)):
        points = RANDOM.uniform(0.1, 1, (3, 40)) * [[side], [1], [1]]
        assert residual(wave, points, 0.37, wave.kappa[i], wave.rho[i]) < 1e-9


@pytest.mark.parametrize("wave", INTERFACES, ids=str)
def test_pressure_and_normal_velocity_are_continuous_and_energy_is_passed_on(wave):
    y = RANDOM.uniform(0, 1, 20)
    before, behind = (np.array(wave(x, y, 0 * y, 0.6)) for x in (-1e-13, 1e-13))
    assert np.abs(before - behind)[:2].max() < 1e-10
    assert np.abs(before[2] - behind[2]).max() > 1e-3 or wave.ky == 0
    assert not np.any(wave(0 * y, y, 0 * y, 0.0)[2])
    # Intensity p u: what comes in is what goes back and on, 1 = R^2 + T^2 Y_2 / Y_1.
    Y = [wave._k(i) / wave.rho[i] for i in (0, 1)]
    R, T = wave.reflected, wave.transmitted
    assert R**2 + T**2 * Y[1] / Y[0] == pytest.approx(1, rel=1e-14)


def test_reflection_at_normal_incidence():
    """R = (Z_2 - Z_1) / (Z_2 + Z_1): 1 and sqrt(8) here, and none if they match."""
    wave = Interface()
    assert wave.reflected == pytest.approx((np.sqrt(8) - 1) / (np.sqrt(8) + 1))
    assert Interface(kappa=(1.0, 4.0), rho=(1.0, 0.25)).reflected == pytest.approx(0, abs=1e-15)


def test_media_of_a_mesh():
    wave = Interface()
    mesh = box((2, 1, 1), (-1.0, 0.0, 0.0), 1.0)
    x = mesh.vertices[mesh.elements, 0].mean(axis=1)
    np.testing.assert_array_equal(wave.kappa_of(mesh), np.where(x < 0, 1.0, 4.0))
    np.testing.assert_array_equal(wave.rho_of(mesh), np.where(x < 0, 1.0, 2.0))
    with pytest.raises(ValueError, match="6 elements of the mesh, the first is 0, cross"):
        wave.kappa_of(box((1, 1, 1), -1.0, 1.0))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CubeMode(kappa=0.0), "kappa = \\(0.0,\\)"),
        (lambda: PlaneWave((0, 0, 0)), "direction = "),
        (lambda: PlaneWave((1, 0)), "direction = "),
        (lambda: PlaneWave((1, 0, 0), width=-1.0), "width = "),
        (lambda: Interface(kappa=(1.0, 2.0, 3.0)), "kappa = .*2 finite"),
        (lambda: Interface(omega=2.0, ky=1.7), "ky = 1.7; allowed: from 0 to below .* = 1.41421"),
        (lambda: Interface(ky=-1.0), "ky = -1.0"),
    ],
)
def test_bad_parameters_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
