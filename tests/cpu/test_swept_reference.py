"""The swept family's reference: against formulae written anew and exact solutions; its ends."""

import math

import numpy as np
import pytest
from swept_cases import LONGEST, case, tolerance

from dgbook import swept
from dgbook.swept import exact, reference
from dgbook.swept.arithmetic import Arithmetic
from dgbook.swept.cost import SLOPE_FLOPS
from dgbook.swept.problem import PROBLEMS, as_problem

RANDOM = np.random.default_rng(5)


def perturbed(problem, n, amount=0.02):
    """The initial condition times random numbers near 1: nothing is symmetric or zero."""
    u = problem.initial(n)
    u[:, :] *= 1 + amount * RANDOM.standard_normal(u.shape)
    return u if problem.name != "euler" else u + np.array([[0], [0.1], [0]])


# ------------------------------------------------------------- one step, from the paper's formulae


def test_heat_step_is_a_matrix():
    problem, n = swept.Heat(dx=0.1, dt=20.0), 9
    fo = 8.418e-5 * 20.0 / 0.1**2
    matrix = (1 - 2 * fo) * np.eye(n) + fo * (np.eye(n, k=1) + np.eye(n, k=-1))
    matrix[0, 1] = matrix[-1, -2] = 2 * fo
    u = perturbed(problem, n)
    assert np.allclose(reference.step(problem, u), u @ matrix.T, rtol=1e-14, atol=0)


def test_ks_step_is_the_midpoint_rule_of_the_papers_differences():
    problem, n = swept.KuramotoSivashinsky(), 16
    dx, dt = 0.5, 0.005

    def R(u):
        left2, left, right, right2 = (np.roll(u, k) for k in (2, 1, -1, -2))
        return (
            (right**2 - left**2) / (4 * dx)
            + (right - 2 * u + left) / dx**2
            + (right2 - 4 * right + 6 * u - 4 * left + left2) / dx**4
        )

    u = perturbed(problem, n)
    expected = u - dt * R(u - dt / 2 * R(u))
    assert np.allclose(reference.step(problem, u), expected, rtol=0, atol=1e-14)


def euler_face(q, p, i, gamma):
    """G at the face between cells i-1 and i, equations 15 to 20 as they stand."""

    def limited(numerator, denominator):
        r = numerator / denominator if denominator else 0.0
        return min(r, 1.0) if r > 0 else 0.0

    rL = limited(p[i] - p[i - 1], p[i - 1] - p[i - 2])
    rR = limited(p[i] - p[i - 1], p[i + 1] - p[i])
    qL = q[i - 1] + 0.5 * rL * (q[i] - q[i - 1])
    qR = q[i] + 0.5 * rR * (q[i - 1] - q[i])

    def flux(q):
        u = q[1] / q[0]
        p = (gamma - 1) * (q[2] - q[0] * u**2 / 2)
        return np.array([q[0] * u, q[0] * u**2 + p, u * (q[2] + p)])

    roots = np.sqrt([qL[0], qR[0]])
    rho = roots.prod()
    u, e = (roots @ [qL[k] / qL[0], qR[k] / qR[0]] / roots.sum() for k in (1, 2))
    p_roe = (gamma - 1) * (rho * e - rho * u**2 / 2)
    return flux(qL) + flux(qR) + (math.sqrt(gamma * p_roe / rho) + abs(u)) * (qL - qR)


@pytest.mark.parametrize("gamma", [1.4, 5 / 3])
def test_euler_step_is_the_midpoint_rule_of_the_papers_fluxes(gamma):
    problem, n = swept.Euler(gamma=gamma), 12
    ratio = 0.2

    def change(q):
        q = np.concatenate([q[:1], q, q[-1:]])  # behind the fixed cells: the same
        p = (gamma - 1) * (q[:, 2] - q[:, 1] ** 2 / q[:, 0] / 2)
        G = {i: euler_face(q, p, i, gamma) for i in range(2, n + 1)}
        out = np.zeros((n, 3))
        out[1:-1] = [G[i] - G[i + 1] for i in range(2, n)]
        return out

    u = perturbed(problem, n)
    q = u.T
    expected = q + ratio / 2 * change(q + ratio / 4 * change(q))
    assert np.allclose(reference.step(problem, u), expected.T, rtol=1e-13, atol=1e-14)


class Counted:
    """A number that counts what is done to it."""

    done = 0

    def _operate(self, *_):
        Counted.done += 1
        return Counted()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _operate
    __truediv__ = __rtruediv__ = _operate

    def __lt__(self, other):
        return True

    __gt__ = __lt__

    def __abs__(self):
        return self


@pytest.mark.parametrize("name", PROBLEMS)
def test_flops_are_those_of_the_slope(name):
    problem = as_problem(name)
    root, quotient = (lambda real: Counted._operate), (lambda real: Counted.__truediv__)
    counting = Arithmetic(lambda f: f, lambda c, a, b: a, root, quotient, int, int)
    fields = len(problem.fields)
    state = Counted if fields == 1 else lambda: tuple(Counted() for _ in range(fields))
    slope = problem.make_slope(float, counting)
    Counted.done = 0
    slope(tuple(state() for _ in range(2 * problem.reach + 1)))
    assert Counted.done == SLOPE_FLOPS[name]


# --------------------------------------------------------------------------------- exact solutions


def test_heat_converges_to_its_series():
    errors = []
    for n in (17, 33, 65):
        dx = 1 / (n - 1)
        problem = swept.Heat(dx, 0.4 * dx**2 / 8.418e-5)
        steps = round(200 / problem.dt)
        u = reference.run(problem, problem.initial(n), steps)
        errors.append(np.abs(u - exact.heat(problem, n, steps * problem.dt)).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    print("errors", *(f"{e:.1e}" for e in errors), "orders", *(f"{o:.2f}" for o in orders))
    assert np.abs(orders - 2).max() < 0.05


def test_heat_is_of_order_4_where_errors_cancel():
    """At Fo = 1/6 and from smooth data: coefficient, ends and time step are all right."""
    errors = []
    for n in (9, 17, 33):
        dx = 1 / (n - 1)
        problem = swept.Heat(dx, dx**2 / 6 / 8.418e-5)
        steps = 2 * (n - 1) ** 2
        u = reference.run(problem, np.cos(np.pi * problem.points(n))[None], steps)
        decay = math.exp(-(math.pi**2) * 8.418e-5 * steps * problem.dt)
        errors.append(np.abs(u[0] / decay - np.cos(np.pi * problem.points(n))).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.abs(orders - 4).max() < 0.1


def test_heat_series_solves_the_equation():
    """Its slope in time is alpha T_xx, the ends are insulated, and it begins where it should."""
    problem, n, t = swept.Heat(0.01), 101, 300.0
    near = [exact.heat(problem, n, t + s)[0] for s in (-1.0, 0.0, 1.0)]
    slope = (near[2] - near[0]) / 2
    second = np.diff(near[1], 2) / problem.dx**2
    assert np.abs(slope[1:-1] - problem.alpha * second).max() < 1e-3 * np.abs(slope).max()
    assert abs(near[1][1] - near[1][0]) < 0.6 * problem.dx**2 * abs(second[0])
    early = exact.heat(problem, n, 1e-2)
    assert np.abs(early - problem.initial(n))[:, 5:-5].max() < 1e-2


def test_heat_is_conserved():
    problem, n = swept.Heat(), 40
    weight = np.ones(n)
    weight[[0, -1]] = 0.5
    u = perturbed(problem, n)
    assert reference.run(problem, u, 50)[0] @ weight == pytest.approx(u[0] @ weight, rel=1e-13)


def test_sod_converges_in_the_mean():
    """At t = 0.2. Density is slowest, as its contact spreads like t^(1/3) in second order."""
    problem, errors = swept.Euler(), []
    for n in (102, 202, 402):
        u = reference.run(problem, problem.initial(n), n - 2)
        t = (n - 2) * problem.time_step(n)
        assert t == pytest.approx(0.2)
        errors.append(np.abs(u - exact.sod(problem, n, t))[:, 1:-1].mean(axis=1))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    print("L1 errors", errors, "orders", orders)
    assert (errors[-1] < [0.0045, 0.004, 0.0075]).all()
    assert (np.abs(orders - [0.78, 0.81, 0.92]) < 0.05).all()


def test_sod_conserves_what_does_not_pass_the_ends():
    problem, n, steps = swept.Euler(), 64, 30
    before = problem.initial(n)
    after = reference.run(problem, before, steps)
    change = (after - before).sum(axis=1) * problem.spacing(n)
    momentum = (1.0 - 0.1) * steps * problem.time_step(n)  # the pressures push from both ends
    assert np.allclose(change, [0, momentum, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("left", "right", "p", "u", "densities"),
    [
        ((1, 0, 1), (0.125, 0, 0.1), 0.30313, 0.92745, (0.42632, 0.26557)),
        ((1, -2, 0.4), (1, 2, 0.4), 0.00189, 0.0, (0.02185, 0.02185)),
        ((1, 0, 1000), (1, 0, 0.01), 460.894, 19.5975, (0.57506, 5.99924)),
        ((1, 0, 0.01), (1, 0, 100), 46.0950, -6.19633, (5.99242, 0.57511)),
    ],
)
def test_riemann_solutions_are_those_of_the_textbook(left, right, p, u, densities):
    """Toro, tables 4.1 to 4.3: a shock tube, two fans, two blast waves."""
    contact = exact._Riemann(left, right, 1.4).u
    at = contact + np.array([-1e-9, 1e-9])
    rho, velocity, pressure = exact.riemann(left, right, at)
    assert np.allclose(rho, densities, rtol=2e-4)
    assert np.allclose(pressure, p, rtol=5e-3 if p < 0.01 else 2e-5)
    assert np.allclose(velocity, u, rtol=2e-5, atol=1e-6)


def test_riemann_solution_conserves():
    """From x = -2 to 2 up to t = 1: states change by what flows in and out, fans and shocks too."""
    problem = swept.Euler()
    left, right = (1.0, 0.3, 1.0), (0.4, -0.2, 0.3)
    x = (np.arange(400_000) + 0.5) / 100_000 - 2
    q = problem.conserved(*exact.riemann(left, right, x))
    ends = [problem.conserved(*map(np.array, state)) for state in (left, right)]
    flow = [
        np.array([q[1], q[1] * u + p, u * (q[2] + p)])
        for q, (_, u, p) in zip(ends, (left, right), strict=True)
    ]
    expected = 2 * (ends[0] + ends[1]) + flow[0] - flow[1]
    assert np.allclose(q.sum(axis=1) * 1e-5, expected, atol=2e-5)


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ((0, 0, 1), (1, 0, 1), "density 0"),
        ((1, 0, 1), (1, 0, -1), "pressure -1"),
        ((1, -10, 1), (1, 10, 1), "vacuum"),
    ],
)
def test_riemann_refuses(left, right, message):
    with pytest.raises(ValueError, match=message):
        exact.riemann(left, right, np.zeros(1))


def test_spectral_solution_is_that_of_another_integrator():
    """SciPy's implicit method on the same Fourier modes; and its own error falls by 2^4."""
    from scipy.integrate import solve_ivp

    n, length, t = 32, 20.0, 4.0
    x = np.arange(n) * length / n
    u = np.cos(2 * np.pi * x / length) + 0.3 * np.sin(4 * np.pi * x / length)
    k = 2 * np.pi / length * np.arange(n // 2 + 1)
    kept = np.arange(n // 2 + 1) < n / 3

    def slope(_, u):
        linear = np.fft.irfft((k**2 - k**4) * np.fft.rfft(u), n)
        return linear - np.fft.irfft(np.where(kept, 0.5j * k, 0) * np.fft.rfft(u**2), n)

    other = solve_ivp(slope, (0, t), u, method="Radau", rtol=1e-11, atol=1e-13).y[:, -1]
    errors = []
    for dt in (0.05, 0.025, 0.0125):
        errors.append(np.abs(exact.kuramoto_sivashinsky(u[None], length, t, dt)[0] - other).max())
    assert errors[-1] < 3e-9
    assert 12 < errors[1] / errors[2] < 17


# ------------------------------------------------------------------------------------------- ends


@pytest.mark.parametrize("name", PROBLEMS)
def test_neighbors_at_the_ends(name):
    expected = {
        "heat": [[1, 0, 1], [4, 5, 4]],
        "ks": [[4, 5, 0, 1, 2], [3, 4, 5, 0, 1]],
        "euler": [[0, 0, 0, 1, 2], [3, 4, 5, 5, 5]],
    }[name]
    found = reference.neighbors(as_problem(name), 6)
    assert found[:, [0, 5]].T.tolist() == expected


def test_fixed_ends_do_not_move():
    problem = swept.Euler()
    u = perturbed(problem, 16)
    after = reference.run(problem, u, 20)
    assert np.array_equal(after[:, [0, -1]], u[:, [0, -1]])
    assert not np.array_equal(after[:, 1:3], u[:, 1:3])


def test_default_parameters():
    heat, ks, euler = (as_problem(name) for name in PROBLEMS)
    assert heat.fourier == pytest.approx(0.4209)
    assert heat.initial(11)[0, 5] == pytest.approx(100 * 0.005 / 2)
    assert np.allclose(ks.initial(512), 2 * np.cos(19 * np.pi * ks.points(512) / 128))
    assert euler.weights == pytest.approx((0.05, 0.1))
    assert np.allclose(euler.initial(10)[:, [4, 5]].T, [[1, 0, 2.5], [0.125, 0, 0.25]])
    assert [len(as_problem(name).fields) for name in PROBLEMS] == [1, 1, 3]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: swept.Heat(dt=1.0), ValueError, "dt = 1.0; allowed: at most 0.0059"),
        (lambda: swept.Heat(dx=0), ValueError, "dx = 0; allowed"),
        (lambda: swept.KuramotoSivashinsky(dt=0.01), ValueError, "dt = 0.01; allowed: at most"),
        (lambda: swept.KuramotoSivashinsky(dx=2.5), ValueError, "dx = 2.5; allowed: less than 2"),
        (lambda: swept.Euler(ratio=0.3), ValueError, "ratio = 0.3; allowed: dt / dx up to 0.21"),
        (lambda: swept.Euler(gamma=1), ValueError, "gamma = 1; allowed"),
        (lambda: as_problem("burgers"), ValueError, "'burgers'; allowed are 'heat', 'ks', 'euler'"),
        (lambda: as_problem(3), TypeError, "problem = 3; allowed"),
        (lambda: exact.heat(swept.Heat(), 8, 0.0), ValueError, "t = 0.0; allowed"),
    ],
)
def test_wrong_parameters_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("kind", "limit"),
    [
        (swept.Heat, 0.5 * 1e-3**2 / 8.418e-5),  # alpha dt / dx^2 = 1/2
        # The midpoint rule takes dt times an eigenvalue to -2; that of the sawtooth is
        # 4 / dx^2 - 16 / dx^4, at dx = 1/2 -240.
        (swept.KuramotoSivashinsky, 2 / 240),
    ],
)
def test_the_longest_step_is_the_longest_stable_one(kind, limit):
    """Of all waves the sawtooth grows first: at the limit it keeps its size."""
    with pytest.raises(ValueError, match="allowed: at most"):
        kind(dt=1.001 * limit)
    sawtooth = 1e-9 * (-1.0) ** np.arange(16)[None]  # so small that KS is linear

    def size(dt):
        return np.abs(reference.step(kind(dt=dt), sawtooth)).max() / 1e-9

    assert size(limit * (1 - 1e-12)) == pytest.approx(1, abs=1e-7)
    assert size(0.9 * limit) < 0.9


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize(("n", "steps"), [(72, 9), (384, LONGEST)])
def test_roundings_are_as_small_as_comparisons_on_a_gpu_allow(name, n, steps, monkeypatch):
    """Within the tolerance in single precision; with a neighbor that is another, beyond it."""
    problem, u = case(name, n, "float32", np.random.default_rng(n))
    right = reference.run(problem, u.astype(np.float64), steps)
    allowed = tolerance(right, steps, "float32")
    assert np.abs(reference.run(problem, u, steps) - right).max() < allowed
    neighbors = reference.neighbors
    monkeypatch.setattr(
        reference, "neighbors", lambda *size: neighbors(*size)[[*range(2 * problem.reach), -2]]
    )
    wrong = reference.run(problem, u.astype(np.float64), steps)
    assert np.abs(wrong - right).max() > 3 * allowed
