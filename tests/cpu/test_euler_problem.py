"""The Euler equations' fluxes against what defines them, and the vortices against the equations."""

import numpy as np
import pytest

from dgbook.euler import exact
from dgbook.euler.problem import (
    ENTROPY_FIX,
    FIELDS,
    FLUXES,
    GAMMA,
    conservative,
    entropy_density,
    mirrored,
    normal_flux,
    physical_flux,
    pressure,
    roe,
    roe_average,
    sound_speed,
    velocity,
)

fluxes = pytest.mark.parametrize("name", FLUXES)
rng = np.random.default_rng(3)


def states(n, mach=2.0):
    """Random states (4, n) with densities and pressures from 0.1 to 10."""
    rho, p = 10 ** rng.uniform(-1, 1, (2, n))
    u, v = mach * rng.uniform(-1, 1, (2, n))
    return conservative(rho, u, v, p)


def normals(n):
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.stack([np.cos(angle), np.sin(angle)])


def matrix(u, v, H, c, n):
    """dF.n/du of an ideal gas in terms of velocity and enthalpy, written out, (4, 4)."""
    g, q2, un = GAMMA - 1, u * u + v * v, u * n[0] + v * n[1]
    return np.array(
        [
            [0, n[0], n[1], 0],
            [
                g * q2 / 2 * n[0] - u * un,
                un + u * n[0] - g * u * n[0],
                u * n[1] - g * v * n[0],
                g * n[0],
            ],
            [
                g * q2 / 2 * n[1] - v * un,
                v * n[0] - g * u * n[1],
                un + v * n[1] - g * v * n[1],
                g * n[1],
            ],
            [un * (g * q2 / 2 - H), H * n[0] - g * u * un, H * n[1] - g * v * un, GAMMA * un],
        ]
    )


# -- the gas -------------------------------------------------------------------------------------


def test_pressure_and_flux_of_a_state_by_hand():
    # rho 2, v (3, -1), p 4: rho E = 4 / 0.4 + 2 * 10 / 2 = 20, H = 12.
    u = conservative(2.0, 3.0, -1.0, 4.0)
    np.testing.assert_allclose(u, [2, 6, -2, 20])
    np.testing.assert_allclose(pressure(u), 4)
    np.testing.assert_allclose(velocity(u), [3, -1])
    np.testing.assert_allclose(sound_speed(u), np.sqrt(2.8))
    np.testing.assert_allclose(physical_flux(u), [[6, 22, -6, 72], [-2, -6, 6, -24]])
    np.testing.assert_allclose(entropy_density(u), -2 * np.log(4 / 2**1.4) / 0.4)
    assert len(FIELDS) == 4


def test_normal_flux_is_the_flux_times_the_normal():
    u, n = states(50), normals(50)
    np.testing.assert_allclose(
        normal_flux(u, n), np.einsum("dak,dk->ak", physical_flux(u), n), rtol=1e-13, atol=1e-12
    )


# -- numerical fluxes ----------------------------------------------------------------------------


@fluxes
def test_fluxes_are_consistent(name):
    u, n = states(100), normals(100)
    expected = normal_flux(u, n)
    np.testing.assert_allclose(FLUXES[name](u, u, n), expected, atol=1e-12 * abs(expected).max())


@fluxes
def test_fluxes_are_conservative(name):
    a, b, n = states(100), states(100), normals(100)
    np.testing.assert_allclose(FLUXES[name](a, b, n), -FLUXES[name](b, a, -n), atol=1e-11)


@pytest.mark.parametrize("name", ("roe", "hllc"))
def test_supersonic_flow_takes_the_upwind_side(name):
    # |un| > c everywhere by a margin that the entropy fix does not reach.
    a, b = conservative(1.0, 3.0, 0.4, 1.0), conservative(1.3, 3.2, 0.1, 1.4)
    n = np.array([1.0, 0.0])
    np.testing.assert_allclose(FLUXES[name](a, b, n), normal_flux(a, n), atol=1e-13)
    np.testing.assert_allclose(FLUXES[name](a, b, -n), normal_flux(b, -n), atol=1e-13)


def test_rusanov_damps_with_the_fastest_wave():
    a, b, n = conservative(1.0, 0.5, 0.0, 1.0), conservative(0.5, 0.0, 0.0, 0.4), np.eye(2)[0]
    fastest = 0.5 + np.sqrt(1.4)  # of the left; the right has sqrt(1.12)
    expected = 0.5 * (normal_flux(a, n) + normal_flux(b, n)) - 0.5 * fastest * (b - a)
    np.testing.assert_allclose(FLUXES["rusanov"](a, b, n), expected, rtol=1e-14)


def test_roe_average_linearizes_the_flux_exactly():
    a, b, n = states(50), states(50), normals(50)
    for i in range(50):
        A = matrix(*(w[i] for w in roe_average(a, b)), n[:, i])
        jump = normal_flux(b, n)[:, i] - normal_flux(a, n)[:, i]
        np.testing.assert_allclose(A @ (b - a)[:, i], jump, atol=1e-11 * abs(jump).max())


@pytest.mark.parametrize("fix", (ENTROPY_FIX, 1e-9))
def test_roe_is_the_flux_of_its_matrix(fix):
    """Against |A| as the polynomial in A that takes its three eigenvalues to the fixed ones."""
    a, b, n = states(200, 1.0), states(200, 1.0), normals(200)
    found = roe(a, b, n, fix)
    fixed = 0
    for i in range(200):
        u, v, H, c = (w[i] for w in roe_average(a, b))
        A, delta = matrix(u, v, H, c, n[:, i]), fix * c
        un = u * n[0, i] + v * n[1, i]
        values = np.array([un - c, un, un + c])
        slow = (abs(values) < delta) & np.array([True, False, True])
        fixed += slow.sum()
        speeds = np.where(slow, (values**2 + delta**2) / (2 * delta), abs(values))
        absolute = np.zeros((4, 4))
        for j, (value, speed) in enumerate(zip(values, speeds, strict=True)):
            others = [(A - w * np.eye(4)) / (value - w) for w in np.delete(values, j)]
            absolute += speed * others[0] @ others[1]
        mean = 0.5 * (normal_flux(a, n) + normal_flux(b, n))[:, i]
        expected = mean - 0.5 * absolute @ (b - a)[:, i]
        np.testing.assert_allclose(found[:, i], expected, atol=1e-11 * abs(expected).max())
    assert fixed > 0 or fix < 1e-6, "no state here sees the fix"


def test_hllc_and_roe_keep_a_contact():
    for speed in (0.0, 0.3):
        a, b = conservative(1.0, speed, 0.2, 1.0), conservative(0.1, speed, -0.5, 1.0)
        n = np.array([1.0, 0.0])
        for name in ("hllc", "roe"):
            expected = normal_flux(a, n)  # it moves to the right, or not at all
            np.testing.assert_allclose(FLUXES[name](a, b, n), expected, atol=1e-14)
        assert abs(FLUXES["rusanov"](a, b, n) - expected).max() > 0.1


def test_hllc_resolves_an_isolated_shock():
    """Between states that Rankine and Hugoniot allow, moving right: the flux of the left one."""
    ratio = 3.0  # of the pressures
    b = conservative(1.0, 0.0, 0.0, 1.0)
    rho = ((GAMMA + 1) * ratio + GAMMA - 1) / ((GAMMA - 1) * ratio + GAMMA + 1)
    speed = np.sqrt((GAMMA + 1) / 2 * ratio + (GAMMA - 1) / 2)
    a = conservative(rho, speed * (1 - 1 / rho), 0.0, ratio)
    n = np.array([1.0, 0.0])
    jump = normal_flux(b, n) - normal_flux(a, n)
    np.testing.assert_allclose(jump, speed * (b - a), atol=1e-13)
    np.testing.assert_allclose(FLUXES["hllc"](a, b, n), normal_flux(a, n), atol=1e-13)
    np.testing.assert_allclose(roe(a, b, n, 1e-9), normal_flux(a, n), atol=1e-13)


def test_without_the_fix_a_rarefaction_shock_stays():
    """A stationary expansion shock, F(a) = F(b): Roe's flux alone sees no reason to move it."""
    # The other way round a stationary shock of Mach 2: its states from Rankine and Hugoniot.
    M, g = 2.0, GAMMA
    c = np.sqrt(g)
    rho = (g + 1) * M**2 / ((g - 1) * M**2 + 2)
    p = 1 + 2 * g / (g + 1) * (M**2 - 1)
    fast, slow = conservative(1.0, M * c, 0.0, 1.0), conservative(rho, M * c / rho, 0.0, p)
    n = np.array([1.0, 0.0])
    np.testing.assert_allclose(normal_flux(fast, n), normal_flux(slow, n), rtol=1e-13)
    # Expanding: from slow (subsonic) to fast (supersonic), through the sonic point un = c.
    stays = roe(slow, fast, n, 1e-9)
    np.testing.assert_allclose(stays, normal_flux(slow, n), rtol=1e-7)
    assert abs(roe(slow, fast, n) - stays).max() > 0.02


@fluxes
@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_fluxes_keep_the_type(name, dtype):
    a, b, n = (w.astype(dtype) for w in (states(5), states(5), normals(5)))
    assert FLUXES[name](a, b, n).dtype == dtype
    reference = FLUXES[name](*(w.astype(np.float64) for w in (a, b, n)))
    np.testing.assert_allclose(FLUXES[name](a, b, n), reference, rtol=2e-4, atol=2e-4)


@fluxes
def test_fluxes_rotate_with_the_plane(name):
    a, b, n, angle = states(50), states(50), normals(50), 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])

    def turned(u):
        return np.stack([u[0], *(turn @ u[1:3]), u[3]])

    np.testing.assert_allclose(
        FLUXES[name](turned(a), turned(b), turn @ n), turned(FLUXES[name](a, b, n)), atol=1e-11
    )


@fluxes
def test_nothing_goes_through_a_wall(name):
    u, n = states(100, 1.0), normals(100)
    outside = mirrored(u, n)
    np.testing.assert_allclose(mirrored(outside, n), u, atol=1e-13)
    np.testing.assert_allclose(pressure(outside), pressure(u), rtol=1e-10)
    flux = FLUXES[name](u, outside, n)
    assert abs(flux[[0, 3]]).max() < 1e-11  # mass and energy
    along = flux[1] * -n[1] + flux[2] * n[0]
    assert abs(along).max() < 1e-11  # a slip wall does not rub
    # It pushes harder against what runs into it, and less against what leaves (below sound).
    un = (u[1] * n[0] + u[2] * n[1]) / u[0]
    push = flux[1] * n[0] + flux[2] * n[1] - pressure(u)
    assert (push * un > 0)[abs(un) < sound_speed(u)].all()


# -- exact solutions -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "solution", (exact.Vortex(strength=3.0), exact.StrongVortex(), exact.Stream(1.2, 0.3, -0.4, 2))
)
def test_exact_solutions_solve_the_equations(solution):
    center = np.array(getattr(solution, "center", (0.0, 0.0)))
    x, y = center[:, None] + rng.uniform(-1.5, 1.5, (2, 40))
    h, t = 1e-4, 0.1

    def derivative(f):
        return (f(-2 * h) - 8 * f(-h) + 8 * f(h) - f(2 * h)) / (12 * h)

    residual = (
        derivative(lambda e: solution(x, y, t + e))
        + derivative(lambda e: physical_flux(solution(x + e, y, t))[0])
        + derivative(lambda e: physical_flux(solution(x, y + e, t))[1])
    )
    assert abs(residual).max() < 1e-9
    assert solution(x, y, t).shape == (4, 40)


def test_the_papers_vortex_has_the_papers_numbers():
    vortex = exact.Vortex()
    far = vortex(np.array([100.0]), np.array([0.0]), 0.0)
    np.testing.assert_allclose(pressure(far), 1 / (GAMMA * 0.25))
    np.testing.assert_allclose(velocity(far), [[0.5**0.5]] * 2)
    np.testing.assert_allclose(np.hypot(*velocity(far)) / sound_speed(far), 0.5)
    at_center = vortex(np.array([0.0]), np.array([0.0]), 0.0)
    f1 = 1 - 0.09 * 0.4 * 0.25 * np.e / (8 * np.pi**2)
    np.testing.assert_allclose(at_center[0], f1**2.5)
    np.testing.assert_allclose(pressure(at_center), f1**3.5 / 0.35)
    # The numbers of equations (3) and (4) one unit to the right: u is V, v grows by f2.
    beside = velocity(vortex(np.array([1.0]), np.array([0.0]), 0.0))
    np.testing.assert_allclose(beside - 0.5**0.5, [[0.0], [0.3 / (2 * np.pi)]], atol=1e-15)


@pytest.mark.parametrize("kind", (exact.Vortex, exact.StrongVortex))
def test_what_leaves_a_periodic_box_comes_back(kind):
    x, y = rng.uniform(-5, 5, (2, 30))
    vortex, alone = kind(center=(0.0, 0.0), period=10.0), kind(center=(0.0, 0.0))
    np.testing.assert_allclose(vortex(x, y, 10 / vortex.velocity[0]), vortex(x, y, 0.0), rtol=1e-12)
    np.testing.assert_array_equal(vortex(x, y, 0.0), alone(x, y, 0.0))
    np.testing.assert_allclose(vortex(x + 10, y - 20, 0.3), vortex(x, y, 0.3), rtol=1e-12)


def test_a_stream_needs_a_gas():
    for name in ("rho", "p"):
        with pytest.raises(ValueError, match=f"{name} = 0; allowed: 1e-15 to"):
            exact.Stream(**{name: 0})
