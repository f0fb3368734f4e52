"""The swept family on processor cores: Classic and nodes, against the reference and a solution."""

import numpy as np
import pytest

from dgbook import swept
from dgbook.swept import cpu, exact, reference
from dgbook.swept.problem import PROBLEMS, as_problem

RANDOM = np.random.default_rng(11)
NODES = {"heat": 24, "ks": 24, "euler": 16}
DTYPES = {"heat": "float32", "ks": "float64", "euler": "float64"}


@pytest.mark.parametrize("name", PROBLEMS)
def test_cores_compute_the_reference_to_the_last_bit(name):
    """Classic and swept, odd and even numbers of steps and cycles; the split node alone as well."""
    problem, node, dtype = as_problem(name), NODES[name], DTYPES[name]
    n = 3 * node
    u = problem.initial(n) * (1 + 0.01 * RANDOM.standard_normal((len(problem.fields), n)))
    u = u.astype(dtype)
    for steps in (3, 4):
        found = swept.run(problem, "classic", n, steps, dtype, "cpu", initial=u)
        assert found.dtype == dtype
        assert np.array_equal(found, reference.run(problem, u, steps))
    for scheme in ("shared", "hybrid"):
        for cycles in (1, 2, 3, 4):
            solver = swept.Solver(problem, scheme, n, dtype, "cpu", node)
            steps = cycles * solver.steps_between_results
            assert np.array_equal(solver.run(u, steps), reference.run(problem, u, steps))


def test_the_split_node_alone_and_a_run_that_goes_on():
    """Hybrid's part is node 0 of the shifted ones; a recording advances at each call."""
    problem, node, n = as_problem("heat"), NODES["heat"], 3 * NODES["heat"]
    solver = swept.Solver(problem, "shared", n, DTYPES["heat"], "cpu", node)
    launcher = solver.launcher(solver.initial())
    advance = launcher.record(solver.steps_between_results * 2)
    advance()
    (left, right), new = launcher.sides
    split = cpu.Nodes(problem, node, DTYPES["heat"]).split(left[:node], right[-node:], n)
    assert all(np.array_equal(a, b[:node]) for a, b in zip(split, new, strict=True))
    advance()
    expected = reference.run(problem, solver.initial(), 4 * solver.steps_between_results)
    assert np.array_equal(launcher.download(), expected)


def test_nodes_against_exact_solutions():
    """The swept rule itself, after many cycles: heat in fp32, and Sod's tube at t = 0.2."""
    problem, steps = as_problem("heat"), 12 * 50
    found = swept.run(problem, "shared", 72, steps, "float32", "cpu", 24)
    other = exact.heat(problem, 72, steps * problem.dt)
    assert np.abs(found - other).max() < 5e-4 * other.max()
    problem, n = as_problem("euler"), 816
    steps = round(0.2 / problem.time_step(n) / 2) * 2
    found = swept.run(problem, "shared", n, steps, "float64", "cpu", 16)
    other = exact.sod(problem, n, steps * problem.time_step(n))
    assert (np.abs(found - other)[:, 1:-1].mean(axis=1) < [0.0027, 0.0023, 0.0039]).all()


def test_ks_converges_to_the_spectral_solution():
    """Second order in dx, with dt like dx^4, at t = 10 and at t = 20."""
    length, waves = 64.0, 5
    for t in (10, 20):
        errors = []
        for n in (128, 256):
            dx = length / n
            problem = swept.KuramotoSivashinsky(dx, 0.005 * (dx / 0.5) ** 4)
            u = 2 * np.cos(2 * np.pi * waves / length * problem.points(n))[None]
            found = swept.run(
                problem, "classic", n, round(t / problem.dt), "float64", "cpu", 256, u
            )
            other = exact.kuramoto_sivashinsky(u, length, t, 0.02)
            errors.append(np.abs(found - other).max())
        print(f"t = {t}: errors {errors[0]:.1e} {errors[1]:.1e}")
        assert errors[1] < 0.06
        assert abs(np.log2(errors[0] / errors[1]) - 2) < 0.05


def test_ks_keeps_its_mean():
    problem, n = as_problem("ks"), 512
    u = problem.initial(n) + 0.3
    found = swept.run(problem, "classic", n, 1000, device="cpu", initial=u)
    assert found.mean() == pytest.approx(u.mean(), abs=1e-12)
