"""The factored Runge-Kutta method: its factors, what depends on time, and runs with it."""

import itertools
import math
import signal

import numpy as np
import pytest
from runs import at_step

from dgbook import acoustics, linear, maxwell
from dgbook.cli.main import main
from dgbook.maxwell.problem import PlaneWave
from dgbook.mesh import box
from dgbook.time import factors, lsrk45, ndb14, ndb14_factored, stability

RANDOM = np.random.default_rng(8)


def orders(errors):
    return [math.log2(coarse / fine) for coarse, fine in itertools.pairwise(errors)]


def damped(n):
    """A random matrix whose eigenvalues have negative real parts."""
    A = RANDOM.standard_normal((n, n))
    return A - A.T - A @ A.T / n


# ------------------------------------------------------------------------------------- the factors


@pytest.mark.parametrize("method", [lsrk45, ndb14], ids=["lsrk45", "ndb14"])
def test_the_product_is_the_polynomial(method):
    """Of five roots one is real: two quadratic factors, and a linear one."""
    powers = stability.polynomial(method)
    found = factors.factors(powers)
    assert sum(alpha == 0 for alpha, _ in found) == len(method.A) % 2
    product = np.ones(1)
    for alpha, beta in found:
        product = np.convolve(product, [1, beta, alpha * beta] if alpha else [1, beta])
    assert np.abs(product / powers - 1).max() < 1e-13
    stages = factors.stages_of(powers)
    assert len(stages) == len(method.A)
    assert np.abs(factors.read_by(stages)[-1] / powers - 1).max() < 1e-13


def test_a_step_is_that_of_the_low_storage_form():
    A, u = damped(12), RANDOM.standard_normal((12, 3))
    dt = 0.9 * stability.longest_steps(ndb14, np.linalg.eigvals(A)).min()
    states = [u.copy() for _ in range(2)]
    for method, state in zip((ndb14, ndb14_factored), states, strict=True):
        method.advance(lambda v, t: A @ v, state, 0.0, dt)
    assert np.abs(states[0] - states[1]).max() < 2e-12 * np.abs(u).max()
    assert np.abs(states[0] - u).max() > 0.1


def test_what_stages_hold_stays_small():
    """In the region of stability; if the largest factors come first it grows by 850."""
    z = np.exp(1j * np.linspace(np.pi / 2, np.pi, 91))
    z = z * stability.longest_steps(ndb14, z)
    read = factors.read_by(ndb14_factored.STAGES)
    assert max(np.abs(np.polyval(p[::-1], z)).max() for p in read) < 60
    pairs = [ndb14_factored.STAGES[i : i + 2] for i in range(0, 14, 2)]
    size = [np.abs(np.polyval(factors.read_by(pair)[-1][::-1], z)).max() for pair in pairs]
    worst = [stage for i in np.argsort(size)[::-1] for stage in pairs[i]]
    assert max(np.abs(np.polyval(p[::-1], z)).max() for p in factors.read_by(worst)) > 800


def test_it_rounds_less_in_single_precision():
    """Than the low-storage form, whose coefficients cancel."""
    A = damped(40)
    dt = 0.9 * stability.longest_steps(ndb14, np.linalg.eigvals(A)).min()
    u, wrong = RANDOM.standard_normal((40, 8)).astype(np.float32), []
    for method in (ndb14, ndb14_factored):
        double, single = u.astype(np.float64), u.copy()
        for state in (double, single):
            for _ in range(3):
                method.advance(lambda v, t: A.astype(v.dtype) @ v, state, 0.0, dt)
        assert single.dtype == np.float32
        wrong.append(np.abs(double - single).max())
    assert wrong[1] < wrong[0] / 3


# --------------------------------------------------------------------------- what depends on time


def test_stages_see_what_an_extended_state_has():
    """Of g(t) = t^m, with g and its derivatives among the unknowns, m up to 4."""
    for m in range(5):
        # Rows: u, and t^m with its derivatives; u' = -2 u + t^m.
        A = np.diag(np.arange(m, 0, -1.0), 1)
        A = np.block([[np.array([[-2.0]]), np.eye(1, m + 1)], [np.zeros((m + 1, 1)), A]])
        extended = np.zeros(m + 2)
        extended[0], extended[1:] = 0.7, 0.4 ** np.arange(m, -1, -1.0)
        ndb14_factored.advance(lambda v, t, A=A: A @ v, extended, 0.0, 0.9)
        u = np.array([0.7])
        ndb14_factored.advance(lambda v, t, m=m: -2 * v + t**m, u, 0.4, 0.9)
        assert abs(u[0] - extended[0]) < 1e-13


def test_the_order_of_systems_with_sources():
    A, phases = damped(4), np.arange(4)
    rhs = lambda u, t: A @ u + np.sin(3 * t + phases)  # noqa: E731
    exact = lsrk45.integrate(rhs, np.ones(4), 0.0, 1.0, 1 / 1024)
    runs = [ndb14_factored.integrate(rhs, np.ones(4), 0.0, 1.0, 1 / n) for n in (8, 16, 32)]
    assert orders([np.abs(u - exact).max() for u in runs])[-1] == pytest.approx(4, abs=0.15)


def naive():
    """The weights with which stages see g at the times where they are."""
    times = np.array(ndb14_factored.TIMES)
    at = [p[1] for p in factors.read_by(ndb14_factored.STAGES)[:-1]]
    others = [np.delete(times, j) for j in range(5)]
    return tuple(
        tuple(float(np.prod((c - o) / (time - o))) for time, o in zip(times, others, strict=True))
        for c in at
    )


def inflow(x, t):
    return np.sin(5 * (x - t))


def run_with_inflow(steps, method="ndb14_factored"):
    """Advection on six elements, the same in space however many steps there are."""
    sides = {"x-": inflow, "x+": "outflow"}
    solver = linear.Solver(
        box(6), 3, linear.advection(1.0), boundary=sides, method=method, device="reference"
    )
    return solver.run(solver.interpolate(lambda x: inflow(x, 0.0)), 0.5, 0.5 / steps)


def test_the_order_where_a_wave_comes_in(monkeypatch):
    """Four; with values at the stages' times it is two, and this test says so."""
    exact = run_with_inflow(512, "lsrk45")

    def errors():
        return [np.abs(run_with_inflow(n) - exact).max() for n in (16, 32, 64)]

    right = errors()
    assert min(orders(right)) > 3.8
    monkeypatch.setattr(ndb14_factored, "WEIGHTS", naive())
    wrong = errors()
    assert max(orders(wrong)) < 2.3
    assert wrong[-1] > 1e3 * right[-1]


# ------------------------------------------------------------------------------------------ runs


WAVE = PlaneWave((1, 0, 0), (0, 0, 1), "sine", 7.0, -0.2)
SOLVERS = {
    "maxwell": lambda **o: maxwell.Solver(
        box((2, 1, 1)), 2, boundary={**dict.fromkeys(("y-", "y+"), "pec"), **SIDES}, **o
    ),
    "maxwell, central": lambda **o: maxwell.Solver(box((1, 1, 1)), 2, flux="central", **o),
    "acoustics": lambda **o: acoustics.Solver(box((2, 1, 1)), 2, boundary=sound, **o),
    "acoustics, Bernstein": lambda **o: acoustics.Solver(
        box((2, 1, 1)), 2, boundary=sound, basis="bernstein", **o
    ),
    "linear": lambda **o: linear.Solver(
        box((2, 3)), 3, linear.wave(2), boundary=lambda x, y, t: [np.cos(x + t), y, x * t], **o
    ),
}
SIDES = {"x-": WAVE, "x+": "absorbing", "z-": "pec", "z+": "absorbing"}


def sound(x, y, z, t):
    return [np.cos(x - 3 * t), y * t, 0.3, np.sin(z + t)]


@pytest.mark.parametrize("name", SOLVERS)
def test_processor_cores_take_the_steps_of_numpy(name):
    ours, exact = (SOLVERS[name](method="ndb14_factored", device=d) for d in ("cpu", "reference"))
    low = SOLVERS[name](method="ndb14", device="reference")
    shape = (len(ours.fields), ours.mesh.K, ours.element.Np)
    u, dt = RANDOM.standard_normal(shape), 2 * ours.cfl_dt() / 3
    found, expected, other = (s.run(u, 0.3 + 2 * dt, dt, t=0.3) for s in (ours, exact, low))
    assert np.abs(found - expected).max() < 1e-13 * np.abs(expected).max()
    assert np.abs(expected - u).max() > 0.1
    # The low-storage form differs by what comes in only, by the method's own error.
    assert np.abs(expected - other).max() < 1e-4 * np.abs(expected).max()
    assert np.abs(ours.rhs(u, 0.4) - exact.rhs(u, 0.4)).max() < 1e-11


def test_a_run_needs_no_residual():
    ours, low = (
        maxwell.Solver(box((2, 2, 2)), 3, device="cpu", method=m)
        for m in ("ndb14_factored", "ndb14")
    )
    assert low.memory_bytes() - ours.memory_bytes() == 6 * 48 * 20 * 8
    assert ours.stable_dt() == low.stable_dt()


@pytest.mark.parametrize(
    "make",
    [
        lambda **o: maxwell.Solver(box((1, 1, 1)), 1, path="paper", **o),
        lambda **o: maxwell.Solver(box((1, 1, 1)), 1, flux="central", **o),
        lambda **o: acoustics.Solver(box((1, 1, 1)), 1, path="paper", **o),
        lambda **o: linear.Solver(
            box(3), 1, linear.advection(1.0), boundary="outflow", path="split", **o
        ),
    ],
)
def test_kernels_that_take_no_whole_stage_are_refused(make):
    with pytest.raises(ValueError, match=r"'ndb14_factored' with path .* allowed: path 'fused'"):
        make(method="ndb14_factored", device="simulator")
    make(method="ndb14_factored", device="cpu")


def test_the_command_resumes_a_run(tmp_path, monkeypatch, capsys):
    """To the last bit, and not with another method."""
    options = "run maxwell --cells 1 --order 2 --t-end 3 --device cpu --output".split()
    files = [tmp_path / name for name in ("whole.vtu", "rest.vtu")]
    method = ["--method", "ndb14_factored"]
    assert main([*options, str(files[0]), *method]) == 0
    at_step(monkeypatch, 2, lambda: signal.raise_signal(signal.SIGINT))
    assert main([*options, str(files[1]), *method]) == 130
    capsys.readouterr()
    assert main([*options, str(files[1]), "--resume", "--method", "ndb14"]) == 2
    assert "method" in capsys.readouterr().err
    assert main([*options, str(files[1]), "--resume", *method]) == 0
    assert files[0].read_bytes() == files[1].read_bytes()
