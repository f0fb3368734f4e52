"""Mie's series: Maxwell's equations, the sphere's surface, and what is known of its limits."""

import numpy as np
import pytest

from dgbook.maxwell import PlaneWave
from dgbook.maxwell.mie import Sphere, amplitude

RANDOM = np.random.default_rng(3)
SPHERES = [
    Sphere(2.5),
    Sphere(1.3, radius=2.0),
    Sphere(3.0, epsilon=4.0),
    Sphere(2.0, radius=0.7, epsilon=2.25, mu=3.0),
    Sphere(12.0, epsilon=1.7),
]


def directions(n):
    """Points on the unit sphere, the poles and the axes among them."""
    points = RANDOM.standard_normal((n, 3))
    points[:6] = np.concatenate([np.eye(3), -np.eye(3)])
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).T


def curl_residual(fields, points, omega, epsilon, mu, h=1e-3):
    """Largest |curl E - i omega mu H| and |curl H + i omega epsilon E|, differences of order 8."""
    weights = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
    d = [
        sum(
            w * (fields(*(points + j * step)) - fields(*(points - j * step)))
            for j, w in enumerate(weights, 1)
        )
        / h
        for step in h * np.eye(3)[:, :, None]
    ]

    def curl(v):
        return np.stack([d[(i + 1) % 3][v + (i + 2) % 3] - d[(i + 2) % 3][v + (i + 1) % 3]
                         for i in range(3)])  # fmt: skip

    f = fields(*points)
    return max(
        np.abs(curl(0) - 1j * omega * mu * f[3:]).max(),
        np.abs(curl(3) + 1j * omega * epsilon * f[:3]).max(),
    )


@pytest.mark.parametrize("sphere", SPHERES, ids=str)
def test_the_fields_satisfy_maxwells_equations(sphere):
    outside = sphere.radius * 1.2 * directions(40)
    for fields in (sphere.scattered, sphere.incident):
        assert curl_residual(fields, outside, sphere.omega, 1.0, 1.0) < 1e-7
    if sphere.epsilon is not None:
        inside = sphere.radius * 0.6 * directions(40)
        residual = curl_residual(sphere.inside, inside, sphere.omega, sphere.epsilon, sphere.mu)
        assert residual < 1e-7


@pytest.mark.parametrize("sphere", SPHERES, ids=str)
def test_the_surface(sphere):
    """Conductor: n x E = 0 and n.H = 0. Dielectric: n x E, n x H, n.(eps E), n.(mu H) go on."""
    n = directions(60)
    points = sphere.radius * n
    outer = sphere.incident(*points) + sphere.scattered(*points)
    E, H = outer[:3], outer[3:]
    if sphere.epsilon is None:
        assert np.abs(np.cross(n, E, axis=0)).max() < 1e-10
        assert np.abs((n * H).sum(axis=0)).max() < 1e-10
        assert np.abs(np.cross(n, H, axis=0)).max() > 1
    else:
        inner = sphere.inside(*points)
        E, H = E - inner[:3], H - inner[3:]
        assert np.abs(np.cross(n, E, axis=0)).max() < 1e-10
        assert np.abs(np.cross(n, H, axis=0)).max() < 1e-10
        D = outer[:3] - sphere.epsilon * inner[:3]
        B = outer[3:] - sphere.mu * inner[3:]
        assert np.abs((n * D).sum(axis=0)).max() < 1e-10
        assert np.abs((n * B).sum(axis=0)).max() < 1e-10


@pytest.mark.parametrize("sphere", SPHERES, ids=str)
def test_the_optical_theorem(sphere):
    extinction, scattering = sphere.efficiencies()
    assert np.isclose(extinction, scattering, rtol=1e-12)


def test_small_spheres_scatter_as_rayleigh_says():
    x = 1e-2
    conductor = Sphere(x)
    assert np.isclose(conductor.efficiencies()[1], 10 / 3 * x**4, rtol=3e-4)
    # Electric and magnetic dipole of a conductor: 9 x^4 backwards, x^4 forwards.
    back, forward = conductor.radar_cross_section(np.array([np.pi, 0.0]), 0.3) / np.pi
    assert np.allclose([back, forward], [9 * x**4, x**4], rtol=1e-3)
    glass = Sphere(x, epsilon=2.25)
    clausius_mossotti = (2.25 - 1) / (2.25 + 2)
    assert np.isclose(glass.efficiencies()[1], 8 / 3 * x**4 * clausius_mossotti**2, rtol=1e-3)


def test_published_values():
    """Bohren and Huffman, appendix A: a sphere of index 1.55 and x = 5.213."""
    glass = Sphere(2 * np.pi / 0.6328, radius=0.525, epsilon=1.55**2)
    assert np.isclose(glass.size, 5.213, atol=1e-3)
    assert np.isclose(glass.efficiencies()[0], 3.10543, atol=2e-5)
    # Backscattering over x^2 is |sum (2n+1) (-1)^n (a_n - b_n)|^2 / x^2.
    assert np.isclose(
        glass.radar_cross_section(np.pi, 0.0) / (np.pi * 0.525**2), 2.92534, atol=2e-5
    )


def test_large_spheres_take_twice_their_shadow():
    """Q_ext - 2 falls as x^(-2/3) for a conductor, and its back shines as geometry says."""
    x = np.array([50.0, 400.0])
    excess = np.array([Sphere(v).efficiencies()[0] - 2 for v in x]) * x ** (2 / 3)
    assert 0.13 < excess[1] < excess[0] < 0.2
    assert np.isclose(Sphere(200.0).radar_cross_section(np.pi, 0.0), np.pi, rtol=1e-3)


def test_the_near_field_becomes_the_cross_section():
    sphere = Sphere(2.0, epsilon=3.0)
    theta, phi = np.meshgrid(np.linspace(0.1, 3.0, 7), np.linspace(0, 6, 5))
    r = 4e4
    x = r * np.array([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)])
    density = (abs(sphere.scattered(*x)[:3]) ** 2).sum(axis=0)
    assert np.allclose(
        4 * np.pi * r**2 * density, sphere.radar_cross_section(theta, phi), rtol=1e-3
    )


def test_inside_at_the_centre_and_nothing_in_the_way():
    """A sphere of the medium's own material does not scatter; the field at 0 is finite."""
    empty = Sphere(2.0, epsilon=1.0)
    assert max(empty.efficiencies()) < 1e-24
    points = 0.9 * directions(9) * RANDOM.uniform(0, 1, 9)
    points[:, 0] = 0
    assert np.allclose(empty.inside(*points), empty.incident(*points), atol=1e-7)


@pytest.mark.parametrize("whole", [True, False])
def test_amplitudes_are_found_in_samples(whole):
    omega, F = 2.3, RANDOM.standard_normal((4, 5)) + 1j * RANDOM.standard_normal((4, 5))
    period = 2 * np.pi / omega
    t = 7 + np.arange(24) * (period / 24 if whole else 0.1)
    samples = np.real(F * np.exp(-1j * omega * t)[:, None, None])
    assert np.allclose(amplitude(samples, t, omega), F, atol=1e-12)
    if whole:
        projection = 2 / 24 * np.tensordot(np.exp(1j * omega * t), samples, 1)
        assert np.allclose(projection, F, atol=1e-12)


def test_the_plane_wave_is_the_incident_wave():
    sphere = Sphere(2.3)
    wave = PlaneWave((0, 0, 1), (1, 0, 0), "sine", sphere.omega)
    x, y, z = RANDOM.uniform(-1, 1, (3, 10))
    times = 20 + np.arange(40) * 2 * np.pi / sphere.omega / 40
    samples = np.array([wave(x, y, z, t) for t in times])
    found = amplitude(samples, times, sphere.omega)
    assert np.allclose(found, 1j * sphere.incident(x, y, z), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Sphere(0.0), "omega = 0"),
        (lambda: Sphere(1.0, radius=-1.0), "radius"),
        (lambda: Sphere(1.0, epsilon=0.0), "epsilon"),
        (lambda: Sphere(1.0, epsilon=2.0, mu=np.inf), "mu"),
        (lambda: amplitude(np.zeros(3), np.zeros(2), 1.0), "times has shape"),
        (lambda: amplitude(np.zeros(3), np.arange(3) * np.pi, 1.0), "different phases"),
    ],
)
def test_bad_arguments_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
