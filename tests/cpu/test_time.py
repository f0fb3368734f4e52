"""Runge-Kutta methods: order conditions, observed orders, stability limits and equal steps."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dgbook.time import lsrk45, midpoint, ndb14, rk4, stability, steps
from dgbook.time.stepping import real_type

METHODS = (lsrk45, ndb14, rk4, midpoint)
LOW_STORAGE = (lsrk45, ndb14)
DIGITS = {lsrk45: 1e-14, ndb14: 1e-13}  # published as quotients, and with 16 decimals


def name(method):
    return method.__name__.rsplit(".", 1)[-1]


def observed_orders(method, rhs, exact, u0, t_end, counts):
    errors = []
    for n in counts:
        u = method.integrate(rhs, u0, 0.0, t_end, t_end / n)
        errors.append(np.max(np.abs(u - exact(t_end))))
    return [math.log2(coarse / fine) for coarse, fine in itertools.pairwise(errors)]


# ------------------------------------------------------------------------- Butcher's conditions


def butcher_tableau(method):
    """A low-storage method as a general one, by running its two registers symbolically.

    u and res are rows of coefficients of the slopes k_0, k_1, ...; the row of u at the start of
    stage s is row s of Butcher's matrix.
    """
    s = len(method.A)
    matrix = [[Fraction(0)] * s for _ in range(s)]
    res, u = [Fraction(0)] * s, [Fraction(0)] * s
    for stage, (a, b) in enumerate(zip(method.A, method.B, strict=True)):
        matrix[stage] = list(u)
        res = [Fraction(a) * r for r in res]
        res[stage] += 1
        u = [x + Fraction(b) * r for x, r in zip(u, res, strict=True)]
    return np.array(matrix, object), np.array(u, object)


@pytest.mark.parametrize("method", LOW_STORAGE, ids=name)
def test_the_order_conditions(method):
    A, b = butcher_tableau(method)
    c = np.array([Fraction(x) for x in method.C], object)
    conditions = {  # the eight rooted trees with up to four nodes
        "b.1": (b.sum(), Fraction(1)),
        "b.c": (b @ c, Fraction(1, 2)),
        "b.c^2": (b @ c**2, Fraction(1, 3)),
        "b.Ac": (b @ (A @ c), Fraction(1, 6)),
        "b.c^3": (b @ c**3, Fraction(1, 4)),
        "b.(c Ac)": (b @ (c * (A @ c)), Fraction(1, 8)),
        "b.Ac^2": (b @ (A @ c**2), Fraction(1, 12)),
        "b.AAc": (b @ (A @ (A @ c)), Fraction(1, 24)),
    }
    residuals = {tree: float(abs(value - wanted)) for tree, (value, wanted) in conditions.items()}
    assert max(residuals.values()) < DIGITS[method], residuals


@pytest.mark.parametrize("method", LOW_STORAGE, ids=name)
def test_stages_are_where_their_tableau_says(method):
    A, _ = butcher_tableau(method)
    row_sums = [float(row.sum()) for row in A]
    assert np.allclose(row_sums, method.C, rtol=0, atol=DIGITS[method])


# ------------------------------------------------------------------------------ observed orders


@pytest.mark.parametrize("method", METHODS, ids=name)
def test_order_on_a_nonlinear_equation(method):
    # The logistic equation u' = u (1 - u) has u = 1 / (1 + (1/u0 - 1) exp(-t)).
    u0 = np.array([0.1, 0.4, 1.7])
    orders = observed_orders(
        method,
        lambda u, t: u * (1 - u),
        lambda t: 1 / (1 + (1 / u0 - 1) * np.exp(-t)),
        u0,
        2.0,
        (16, 32, 64, 128),
    )
    assert abs(orders[-1] - method.ORDER) < 0.1, orders


@pytest.mark.parametrize("method", METHODS, ids=name)
def test_order_on_a_nonautonomous_equation(method):
    # u' = 2 t u has u = u0 exp(t^2); a wrong C_s costs orders here and nowhere above.
    u0 = np.array([[1.0, -0.5], [0.25, 2.0]])
    orders = observed_orders(
        method,
        lambda u, t: 2 * t * u,
        lambda t: u0 * np.exp(t**2),
        u0,
        1.0,
        (16, 32, 64, 128),
    )
    assert abs(orders[-1] - method.ORDER) < 0.1, orders


@pytest.mark.parametrize(
    ("method", "degree"),
    [(lsrk45, 3), (ndb14, 3), (rk4, 3), (midpoint, 1)],
    ids=("lsrk45", "ndb14", "rk4", "midpoint"),
)
def test_quadrature_is_exact_to_the_order(method, degree):
    # With f(t) alone a method is a quadrature rule: exact for polynomials of degree order - 1.
    for power in range(degree + 1):
        u = method.integrate(lambda u, t, p=power: np.full_like(u, t**p), np.zeros(1), 0.0, 1.0, 1)
        assert abs(u[0] - 1 / (power + 1)) < DIGITS.get(method, 1e-14)


@pytest.mark.parametrize("method", METHODS, ids=name)
def test_a_run_may_begin_at_any_time(method):
    # The integral of 2 t from 2 to 3, which all methods find exactly, in steps of a quarter.
    u = method.integrate(lambda u, t: np.full_like(u, 2 * t), np.zeros(1), 2.0, 3.0, 0.25)
    assert u[0] == pytest.approx(3.0**2 - 2.0**2, rel=1e-14)


# ------------------------------------------------------------------------------------ stability


def amplification(method, z):
    """R(z): one step of size 1 on u' = z u, for many z at once."""
    z = np.asarray(z, complex)
    return method.integrate(lambda u, t: z * u, np.ones_like(z), 0.0, 1.0, 1.0)


def stability_limit(method, direction):
    """How far along a ray from 0 the method stays stable."""
    radii = np.linspace(1e-3, 20, 20001)
    unstable = np.abs(amplification(method, radii * direction)) > 1 + 1e-12
    first = int(np.argmax(unstable))
    lower, upper = radii[first - 1], radii[first]
    for _ in range(40):
        middle = (lower + upper) / 2
        if abs(amplification(method, [middle * direction])[0]) > 1 + 1e-12:
            upper = middle
        else:
            lower = middle
    return lower


def test_stability_polynomials():
    # The Taylor polynomial of exp to the order; LSRK4(5) has a fifth term of 1/200 (its b.AAAc).
    z = np.array([0.3 + 0.4j, -2.0, 1.7j, -1.0 - 1.0j])
    taylor = [1, 1, 1 / 2, 1 / 6, 1 / 24]
    assert np.allclose(amplification(rk4, z), np.polyval(taylor[::-1], z), rtol=1e-14)
    assert np.allclose(amplification(midpoint, z), np.polyval(taylor[2::-1], z), rtol=1e-14)
    A, b = butcher_tableau(lsrk45)
    fifth = float(b @ (A @ (A @ (A @ (A @ np.ones(5, int))))))
    lsrk = [*taylor, fifth]
    assert np.allclose(amplification(lsrk45, z), np.polyval(lsrk[::-1], z), rtol=1e-13)
    # The real limit follows from this polynomial alone: |R(-x)| = 1.
    roots = np.roots(np.polyadd(lsrk[::-1], [1]))
    limit = max(r.real for r in roots if abs(r.imag) < 1e-9)
    assert abs(limit + 4.657) < 1e-3


def test_stability_limits():
    assert abs(stability_limit(lsrk45, -1) - 4.657) < 1e-3
    assert abs(stability_limit(lsrk45, 1j) - 3.341) < 1e-3
    assert abs(stability_limit(ndb14, -1) - 18.522) < 1e-3
    assert abs(stability_limit(ndb14, 1j) - 6.080) < 1e-3
    assert abs(stability_limit(rk4, -1) - 2.785) < 1e-3
    assert abs(stability_limit(rk4, 1j) - 2 * math.sqrt(2)) < 1e-6
    assert abs(stability_limit(midpoint, -1) - 2) < 1e-6


@pytest.mark.parametrize("method", LOW_STORAGE, ids=name)
def test_longest_steps(method):
    """Along any ray of the left half plane, and on either side of the real axis."""
    for angle in (90, 91.3, 105.2, 133.7, 168.1, 180):
        ray = np.exp(1j * np.deg2rad(angle))
        eigenvalues = 3 * np.array([ray, ray.conj()])
        expected = stability_limit(method, ray) / 3
        assert np.allclose(stability.longest_steps(method, eigenvalues), expected, rtol=2e-3)
    z = np.array([-3.0 + 1j, -2 - 2j])
    assert np.allclose(np.polyval(stability.polynomial(method)[::-1], z), amplification(method, z))


def test_where_lsrk45_is_stable_ndb14_is():
    """With steps 1.8 times as long; so a step by a formula for the one serves the other."""
    rays = np.exp(1j * np.linspace(np.pi / 2, np.pi, 100))
    shares = stability.longest_steps(ndb14, rays) / stability.longest_steps(lsrk45, rays)
    assert shares.min() > 1.8


# ------------------------------------------------------------------------------------ equal steps


def test_steps_end_on_time():
    for span, dt, n in [(1.1, 0.1, 11), (0.7, 0.1, 7), (0.3, 0.1, 3), (1, 1, 1), (1, 3, 1)]:
        assert steps(0.0, span, dt)[0] == n
    for n in range(1, 2000):  # every dt = T/n is taken as it is meant
        assert steps(0.0, 1.0, 1.0 / n)[0] == n
        assert steps(0.0, 0.1 * n, 0.1)[0] == n
    n, dt = steps(2.0, 3.0, 0.3)
    assert (n, dt) == (4, 0.25)
    assert steps(1.0, 1.0, 0.5) == (0, 0.5)
    assert steps(0.0, 1e12, 2.0) == (5 * 10**11, 2.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 1.0, 0.0), "dt = 0.0"),
        ((0.0, 1.0, -1.0), "dt = -1.0"),
        ((0.0, 1.0, math.nan), "dt = nan"),
        ((0.0, math.inf, 1.0), "t_end = inf"),
        ((math.nan, 1.0, 1.0), "t0 = nan"),
        ((1.0, 0.0, 0.1), "t_end = 0.0"),
        ((0.0, 1e300, 0.01), r"t_end = 1e\+300: 1e\+302 steps of dt = 0.01; .* up to 1e\+12"),
        ((0.0, 1.0, 1e-300), r"t_end = 1.0: 1e\+300 steps of dt = 1e-300"),
        ((0.0, 1e300, 1e-300), r"t_end = 1e\+300: inf steps"),
        ((0.0, 1.001e12, 1.0), "up to"),
    ],
)
def test_steps_refuse(arguments, message):
    with pytest.raises(ValueError, match=message):
        steps(*arguments)


@pytest.mark.parametrize("method", METHODS, ids=name)
def test_last_step_is_whole(method):
    # dt = 0.3 does not divide 1: four steps of 0.25, so u' = 1 ends at exactly 1.
    times = []

    def rhs(u, t):
        times.append(t)
        return np.ones_like(u)

    u = method.integrate(rhs, np.zeros(1), 0.0, 1.0, 0.3)
    assert len(times) == 4 * len(method.B)
    assert max(times) <= 1.0
    assert abs(u[0] - 1) < DIGITS.get(method, 4e-15)


@pytest.mark.parametrize("method", METHODS, ids=name)
def test_state_is_copied_and_keeps_its_dtype(method):
    for dtype in (np.float32, np.float64, np.complex64):
        u0 = np.array([1, 2], dtype)
        u = method.integrate(lambda u, t: -u, u0, 0.0, 0.5, 0.1)
        assert u.dtype == dtype
        assert np.array_equal(u0, np.array([1, 2], dtype))

    def interrupted(u, t):
        if t > 0.2:
            raise KeyboardInterrupt
        return -u

    u0 = np.ones(2)
    with pytest.raises(KeyboardInterrupt):
        method.integrate(interrupted, u0, 0.0, 0.5, 0.1)
    assert np.array_equal(u0, np.ones(2))


@pytest.mark.parametrize("method", METHODS, ids=name)
def test_bad_input_is_named(method):
    with pytest.raises(TypeError, match="u has dtype int64"):
        method.integrate(lambda u, t: u, np.ones(2, np.int64), 0.0, 1.0, 0.1)
    with pytest.raises(ValueError, match=r"rhs returned shape \(\)"):
        method.integrate(lambda u, t: 1.0, np.ones(2), 0.0, 1.0, 0.1)
    with pytest.raises(ValueError, match="dt = 0"):
        method.integrate(lambda u, t: u, np.ones(2), 0.0, 1.0, 0)
    with pytest.raises(ValueError, match="float16"):
        method.make_update("float16")


def test_real_type():
    assert real_type("float32") is np.float32
    assert real_type(np.float64) is np.float64


def test_progress_bar(capsys):
    lsrk45.integrate(lambda u, t: -u, np.ones(1), 0.0, 1.0, 0.1, progress=True)
    assert "time steps" in capsys.readouterr().err
