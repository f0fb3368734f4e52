"""The swept family on processor cores: Classic and nodes, against the reference and a solution."""

import io
import os
import queue
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from stopped_clock import SESSION

from dgbook import swept
from dgbook.lab import swept as measure
from dgbook.lab.measuring import on_cores
from dgbook.lab.rivals import swept as ranks
from dgbook.lab.rivals.swept import Ranks, launcher, on_ranks
from dgbook.swept import cores as cpu
from dgbook.swept import exact, reference
from dgbook.swept.parts import PART_SCHEMES
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


def test_parts_compute_the_reference_to_the_last_bit():
    """On cores they are advanced as one part is; a tile's ghosts go as deep as a GPU's."""
    problem, node, dtype = as_problem("heat"), NODES["heat"], DTYPES["heat"]
    n = 4 * node
    u = (problem.initial(n) * (1 + 0.01 * RANDOM.standard_normal((1, n)))).astype(dtype)
    plans = {"tiled": swept.Plan(32, 2, 2), "shared": swept.Plan(node)}
    for scheme, how in PART_SCHEMES.items():
        solver = swept.Parts(problem, scheme, n, dtype, "cpu", plans.get(how), 2)
        steps = 3 * solver.steps_between_results
        assert np.array_equal(solver.run(u, steps), reference.run(problem, u, steps)), scheme


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


def test_what_is_compiled_is_kept_on_disk():
    """As another process would, another dispatcher finds it, for each problem its own."""
    source = np.linspace(0, 1, 24) ** 2
    for problem in (as_problem("heat"), swept.Heat(dt=4e-3)):
        fill = cpu.make_fill(problem, "float64", 0)
        other = numba.njit(cache=True)(fill.func.py_func)
        expected = source[1:-1] + problem.fourier * np.diff(source, 2)
        for kernel in (fill.func, other):
            new = np.empty(24)
            kernel(*fill.args, source, new, 1, 23, 0, 24, 24)
            assert np.allclose(new[1:-1], expected, rtol=0, atol=1e-15)
        assert sum(other.stats.cache_hits.values()) == 1
        assert not other.stats.cache_misses


def test_a_readers_problem_is_not_kept():
    """Its text may change without this package's."""

    class Mine(swept.Heat):
        def make_slope(self, real, arithmetic):
            return arithmetic.jit(lambda stencil: stencil[2] - stencil[1])

    problem, source, new = Mine(), np.linspace(0, 1, 24) ** 2, np.empty(24)
    fill = cpu.make_fill(problem, "float64", 0)
    fill(source, new, 1, 23, 0, 24, 24)
    assert np.allclose(new[1:-1], source[1:-1] + problem.fourier * np.diff(source)[1:], atol=1e-15)
    assert not fill.stats.cache_hits


def test_nodes_against_exact_solutions():
    """The swept rule itself, after many cycles: heat in fp32, and Sod's tube at t = 0.2.

    What is compared are discretization errors: 2.8e-4 of heat, of which rounding is a hundredth.
    """
    problem, steps = as_problem("heat"), 12 * 50
    found = swept.run(problem, "shared", 72, steps, "float32", "cpu", 24)
    other = exact.heat(problem, 72, steps * problem.dt)
    assert np.abs(found - other).max() < 1e-3 * other.max()
    problem, n = as_problem("euler"), 816
    steps = round(0.2 / problem.time_step(n) / 2) * 2
    found = swept.run(problem, "shared", n, steps, "float64", "cpu", 16)
    other = exact.sod(problem, n, steps * problem.time_step(n))
    assert (np.abs(found - other)[:, 1:-1].mean(axis=1) < [0.003, 0.0026, 0.0043]).all()


def test_ks_converges_to_the_spectral_solution():
    """Second order in dx, with dt like dx^4, at t = 10 and at t = 20."""
    length, waves = 64.0, 5
    for t in (10, 20):
        errors = []
        for n in (128, 256):
            dx = length / n
            problem = swept.KuramotoSivashinsky(dx, 0.005 * (dx / 0.5) ** 4)
            u = 2 * np.cos(2 * np.pi * waves / length * problem.points(n))[None]
            steps = round(t / problem.dt)
            with on_cores(1):  # where other tests run as well, threads wait for one another long
                found = swept.run(problem, "classic", n, steps, "float64", "cpu", 256, u)
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


@pytest.mark.parametrize(("name", "size"), [("heat", 1), ("heat", 3), ("ks", 2)])
def test_ranks_compute_the_reference_to_the_last_bit(name, size):
    problem, node, dtype = as_problem(name), NODES[name], DTYPES[name]
    n = 6 * node
    u = problem.initial(n) * (1 + 0.01 * RANDOM.standard_normal((1, n)))
    u = u.astype(dtype)
    mail = [[queue.Queue() for _ in range(size)] for _ in range(size)]
    comms = [Threads(rank, mail) for rank in range(size)]
    every = node // (2 * problem.reach) // len(problem.weights)
    for scheme, steps in [("classic", 3), *(("shared", c * every) for c in (1, 2, 3))]:

        def run(comm, scheme=scheme, steps=steps):
            return Ranks(problem, scheme, n, dtype, node, comm).run(u, steps)

        with ThreadPoolExecutor(size) as pool:
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


def test_without_mpi_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(RuntimeError, match="MPI ranks need mpi4py and an MPI"):
        Ranks("heat", "classic", 64)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: "/usr/bin/mpiexec")
    with pytest.raises(RuntimeError, match="need mpi4py, which is not installed: pip install"):
        next(on_ranks(2, "", []))
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(RuntimeError, match="need mpiexec, which is not installed: pip install"):
        next(on_ranks(2, "", []))


MPIEXEC = """#!{python}
import os, signal, subprocess, sys
assert sys.argv[1:4] == ["-n", "2", sys.executable] and sys.argv[4:7] == ["-m", "mpi4py", "-c"]
print("what mpiexec prints", flush=True)
ranks = [subprocess.Popen([sys.executable, "-c", *sys.argv[7:]]) for _ in range(2)]
def end(*_):
    for rank in ranks:
        rank.kill()
signal.signal(signal.SIGTERM, end)
sys.exit(max(abs(rank.wait()) for rank in ranks))
"""
"""Starts two ranks without an MPI, and ends them when it is ended, as those of MPIs do."""


@pytest.fixture
def no_mpi(tmp_path, monkeypatch):
    path = tmp_path / "mpiexec"
    path.write_text(MPIEXEC.format(python=sys.executable))
    path.chmod(0o755)
    monkeypatch.setattr(ranks, "launcher", lambda: str(path))


TELLS = "import sys, os, json, time; from dgbook.lab.rivals.swept import tell; "


def test_ranks_are_asked_and_answer(no_mpi):
    program = TELLS + "tell([os.environ['NUMBA_NUM_THREADS'], json.loads(sys.argv[1])])"
    assert list(on_ranks(2, program, {"n": [1, 2]})) == [["1", {"n": [1, 2]}]] * 2


class Writes(io.RawIOBase):
    """What is written, and in how many pieces."""

    def __init__(self):
        self.pieces = []

    def writable(self):
        return True

    def write(self, piece):
        self.pieces.append(bytes(piece))
        return len(piece)


def test_an_answer_is_one_write_without_a_buffer(monkeypatch):
    """With PYTHONUNBUFFERED, another rank's answer may come between any two writes."""
    raw = Writes()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, write_through=True))
    ranks.tell([1.5, "a"])
    assert raw.pieces == [b'answer: [1.5, "a"]\n']


def test_ranks_that_fail_say_why(no_mpi):
    told = on_ranks(2, TELLS + "tell(1); raise ValueError('oh dear')", None)
    assert next(told) == 1
    # Two ranks that fail at once may write into each other's words.
    with pytest.raises(RuntimeError, match=r"(?s)2 MPI ranks failed: .*ValueError.*oh dear"):
        list(told)


def test_ranks_have_a_limit(no_mpi):
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=r"2 MPI ranks took more than 0\.5 s"):
        list(on_ranks(2, "import time; time.sleep(60)", None, limit=0.5))
    assert time.monotonic() - start < 20


def test_nothing_is_left_of_ranks_that_nobody_asks_any_more(no_mpi):
    told = on_ranks(2, TELLS + "tell(os.getpid()); time.sleep(60)", None)
    pids = next(told), next(told)
    with pytest.raises(KeyboardInterrupt):
        told.throw(KeyboardInterrupt)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_a_rank_keeps_to_a_core_if_there_are_enough(monkeypatch):
    bound = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {9, 3, 5})
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cores: bound.append(cores))
    for rank in range(3):
        ranks.bind(rank, 3)
    ranks.bind(0, 4)
    assert bound == [{3}, {5}, {9}]


def has_mpi():
    try:
        return bool(launcher())
    except RuntimeError:
        return False


@pytest.mark.skipif(not has_mpi(), reason="no mpi4py, or no mpiexec")
def test_two_ranks_of_an_mpi_are_measured(monkeypatch):
    monkeypatch.setattr(measure, "all_cores", lambda: 2)
    cells = [("classic", 2048, "float64"), ("shared", 2048, "float64")]
    rows = list(measure.rank_rows(as_problem("heat"), cells, SESSION.on_host))
    assert [row["path"] for row in rows] == ["classic", "shared"]
    assert all(row["size"]["ranks"] == 2 and row["samples"] == 20 for row in rows)
