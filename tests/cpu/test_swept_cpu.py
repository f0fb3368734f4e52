"""The swept family on processor cores: Classic and nodes, against the reference and a solution."""

import importlib.util
import queue
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from dgbook import swept
from dgbook.swept import cpu, exact, reference
from dgbook.swept.problem import PROBLEMS, as_problem
from dgbook.swept.ranks import Ranks

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
    split = np.empty(node, DTYPES["heat"]), np.empty(node, DTYPES["heat"])
    nodes = cpu.Nodes(problem, node, DTYPES["heat"], n)
    nodes.split(left[:node], right[-node:], *split)
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


# ------------------------------------------------------------------------------------------ ranks


class Threads:
    """A rank of a communicator whose ranks are threads."""

    def __init__(self, rank, mail):
        self.rank, self.size, self.mail = rank, len(mail), mail

    def Sendrecv(self, values, to, recvbuf, source):
        self.mail[self.rank][to].put(values.copy())
        recvbuf[:] = self.mail[source][self.rank].get(timeout=60)

    def Allgather(self, mine, parts):
        for to in range(self.size):
            self.mail[self.rank][to].put(mine.copy())
        for source in range(self.size):
            parts[source] = self.mail[source][self.rank].get(timeout=60)


@pytest.mark.parametrize(("name", "ranks"), [("heat", 1), ("heat", 3), ("ks", 2)])
def test_ranks_compute_the_reference_to_the_last_bit(name, ranks):
    problem, node, dtype = as_problem(name), NODES[name], DTYPES[name]
    n = 6 * node
    u = problem.initial(n) * (1 + 0.01 * RANDOM.standard_normal((1, n)))
    u = u.astype(dtype)
    mail = [[queue.Queue() for _ in range(ranks)] for _ in range(ranks)]
    comms = [Threads(rank, mail) for rank in range(ranks)]
    every = node // (2 * problem.reach) // len(problem.weights)
    for scheme, steps in [("classic", 3), *(("shared", c * every) for c in (1, 2, 3))]:

        def run(comm, scheme=scheme, steps=steps):
            return Ranks(problem, scheme, n, dtype, node, comm).run(u, steps)

        with ThreadPoolExecutor(ranks) as pool:
            found = list(pool.map(run, comms))
        expected = reference.run(problem, u, steps)
        assert all(np.array_equal(each, expected) for each in found), (scheme, steps)


def test_ranks_refuse_what_they_cannot_share():
    comm = Threads(0, [None, None])
    with pytest.raises(ValueError, match="n = 36; allowed on 2 ranks: multiples of 24"):
        Ranks("heat", "shared", 36, node=12, comm=comm)
    with pytest.raises(ValueError, match="n = 7; allowed on 2 ranks: multiples of 2, 8 or more"):
        Ranks("ks", "classic", 7, comm=comm)
    with pytest.raises(ValueError, match="scheme = 'tiled'; allowed are 'classic', 'shared'"):
        Ranks("ks", "tiled", 64, comm=comm)


def launcher():
    """MPI's, where there is one and mpi4py."""
    beside = shutil.which("mpiexec", path=Path(sys.executable).parent)
    found = beside or shutil.which("mpiexec")
    return found if found and importlib.util.find_spec("mpi4py") else None


def test_without_mpi_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(RuntimeError, match="MPI ranks need mpi4py and an MPI"):
        Ranks("heat", "classic", 64)


@pytest.mark.skipif(launcher() is None, reason="no mpi4py, or no mpiexec")
def test_two_ranks_of_an_mpi():
    command = [launcher(), "-n", "2", sys.executable, "-m", "dgbook.swept.ranks"]
    command += "--problem heat --n 4096 --node 64 --steps 64".split()
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and "on 2 ranks" in done.stdout, done.stderr
