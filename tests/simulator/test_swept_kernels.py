"""The swept family's kernels, thread by thread, against the reference; wrong ones must fail."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from dgbook import swept
from dgbook.check import RaceError, UndefinedReadError
from dgbook.gpu import device
from dgbook.swept import reference, solver
from dgbook.swept.kernels import shared, tiled, wide
from dgbook.swept.kernels.classic import make_classic
from dgbook.swept.plan import SCHEMES
from dgbook.swept.problem import PROBLEMS, as_problem

SIMULATOR = device("simulator")


def load_broken():
    path = Path(__file__).parents[1] / "broken" / "swept.py"
    specification = importlib.util.spec_from_file_location("broken_swept", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


broken = load_broken()


def state(problem, n, dtype, seed=7):
    """The initial condition times random numbers near 1: nothing is symmetric or zero."""
    random = np.random.default_rng(seed)
    u = problem.initial(n)
    return (u * (1 + 0.02 * random.standard_normal(u.shape))).astype(dtype)


def poisoned(problem, n, dtype):
    """Edges on both sides that nobody has written."""
    return [SIMULATOR.empty(len(problem.fields) * n, dtype) for _ in range(2)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("n", [5, 16, 33])
def test_classic_is_the_reference_to_the_last_bit(name, dtype, n):
    """Whatever n is, also where the last block is not full; one substep after the other."""
    problem = as_problem(name)
    u = state(problem, n, dtype)
    source, old = u.ravel(), u
    for stage in range(len(problem.weights)):
        new = u.ravel().copy() if stage else SIMULATOR.empty(u.size, dtype)
        make_classic(problem, stage, dtype)[-(-n // 8), 8](source, new)
        expected = reference.substep(problem, source.reshape(u.shape), old, stage)
        assert np.array_equal(new.reshape(u.shape), expected)
        source = new


SIZES = {"heat": [(4, 1), (12, 3), (32, 2)], "ks": [(8, 1), (24, 3), (32, 2)]}
SIZES["euler"] = SIZES["ks"]
CASES = [
    (name, node, nodes, scheme, dtype)
    for name in PROBLEMS
    for node, nodes in SIZES[name]
    for scheme in SCHEMES
    for dtype in ("float64", "float32")
    if not (scheme == "hybrid" and (nodes == 1 or dtype == "float32"))  # seconds to compile
    and not (scheme == "register" and node % 32)
    and scheme != "tiled"  # which has no plan with a point a thread for all
]


@pytest.mark.parametrize(("name", "node", "nodes", "scheme", "dtype"), CASES)
def test_every_scheme_is_the_reference_to_the_last_bit(name, node, nodes, scheme, dtype):
    """All legal combinations, nodes alone, and runs that end with either down-triangle."""
    problem, n = as_problem(name), node * nodes
    s = swept.Solver(problem, scheme, n, dtype, SIMULATOR, node)
    u = state(problem, n, dtype)
    for cycles in (1, 2, 3) if n < 64 else (2, 3):
        steps = cycles * s.steps_between_results
        assert np.array_equal(s.run(u, steps), reference.run(problem, u, steps))


WIDE = [
    ("heat", "classic", swept.Plan(4, 4), 24),
    ("euler", "classic", swept.Plan(4, 3), 24),
    ("heat", "persistent", swept.Plan(4, 2), 10),
    ("ks", "persistent", swept.Plan(4), 17),
    ("euler", "persistent", swept.Plan(4, 2), 24),
    *((name, "shared", swept.Plan(4, 2), n) for name in PROBLEMS for n in (8, 24)),
    *((name, "shared", swept.Plan(6, 4), 48) for name in PROBLEMS),
    ("heat", "shared", swept.Plan(4, 3), 36),
    *((name, "register", swept.Plan(32, 2), 64) for name in PROBLEMS),
    ("ks", "register", swept.Plan(64, 4), 256),
    *((name, "tiled", swept.Plan(16, 2, 2), 30) for name in PROBLEMS),
    ("heat", "tiled", swept.Plan(4, 4, 2), 7),
    ("ks", "tiled", swept.Plan(8, 4, 3), 9),
    ("euler", "tiled", swept.Plan(12, 2, 1), 8),
]


@pytest.mark.parametrize(("name", "scheme", "plan", "n"), WIDE)
def test_several_points_a_thread_are_the_reference_to_the_last_bit(name, scheme, plan, n):
    """And the schemes that the paper has not: any n, tiles larger than the domain."""
    problem = as_problem(name)
    for dtype in ("float64", "float32") if n < 32 else ("float64",):
        s = swept.Solver(problem, scheme, n, dtype, SIMULATOR, plan)
        u = state(problem, n, dtype)
        for cycles in (1, 2, 3) if n < 64 else (2,):
            steps = cycles * s.steps_between_results
            assert np.array_equal(s.run(u, steps), reference.run(problem, u, steps))


def test_longer_runs_and_warps_in_blocks():
    """More diamonds than one recording holds; three warps a block."""
    for name, scheme, n, threads in [("ks", "shared", 16, 8), ("ks", "register", 96, 96)]:
        problem = as_problem(name)
        s = swept.Solver(problem, scheme, n, "float64", SIMULATOR, threads)
        u = state(problem, n, "float64")
        cycles = 2 * solver.RECORDED + 4 if scheme == "shared" else 5
        steps = cycles * s.steps_between_results
        assert np.array_equal(s.run(u, steps), reference.run(problem, u, steps))


def test_the_last_steps_of_classic():
    """Heat goes to and fro between two arrays, an odd step has to come home."""
    problem = as_problem("heat")
    u = state(problem, 12, "float64")
    for steps in (1, 2, 3, 2 * solver.RECORDED + 3):
        found = swept.run(problem, "classic", 12, steps, device=SIMULATOR, threads=5, initial=u)
        assert np.array_equal(found, reference.run(problem, u, steps))


@pytest.mark.parametrize("name", PROBLEMS)
def test_edges_are_what_the_levels_leave(name):
    """After an up-triangle: 2r states a level, and the tip in both, against the reference."""
    problem, node, dtype = as_problem(name), 16, "float64"
    reach, fields, n = problem.reach, len(problem.fields), 32
    u = state(problem, n, dtype)
    left, right = poisoned(problem, n, dtype)
    shared.make_up(problem, node, dtype)[n // node, node](u.ravel(), left, right)
    levels = [u]
    for level in range(1, node // (2 * reach)):
        stage = (level - 1) % len(problem.weights)
        old = levels[-1] if stage == 0 else levels[-2]
        levels.append(reference.substep(problem, levels[-1], old, stage))
    half = node // 2
    for b in range(n // node):
        # Levels of one parity stand side by side, the lowest at the node's ends.
        mine = [level[:, b * node : (b + 1) * node] for level in levels]
        for edge, ends in ((left, False), (right, True)):
            found = edge.reshape(n // node, fields, node)[b]
            for parity in (0, 1):
                expected = [
                    level[:, node - reach * (k + 2) : node - reach * k]
                    if ends
                    else level[:, reach * k : reach * (k + 2)]
                    for k, level in enumerate(mine)
                    if k % 2 == parity
                ]
                expected = np.concatenate(expected[::-1] if ends else expected, axis=1)
                part = found[:, parity * half : (parity + 1) * half]
                assert np.array_equal(part, expected)


# ---------------------------------------------------------------------------------- wrong kernels


def two_cycles(name, node=16, nodes=2, **wrong):
    """An up-triangle, a shifted diamond and a down-triangle, some wrong; and what is right."""
    problem, n, dtype = as_problem(name), node * nodes, "float64"
    kernels = {
        "up": shared.make_up(problem, node, dtype),
        "diamond": shared.make_diamond(problem, node, dtype, True),
        "down": shared.make_down(problem, node, dtype, False),
    }
    kernels |= {which: make(problem, node, dtype) for which, make in wrong.items()}
    u = state(problem, n, dtype)
    first, second = poisoned(problem, n, dtype), poisoned(problem, n, dtype)
    found = SIMULATOR.empty(u.size, dtype)
    kernels["up"][nodes, node](u.ravel(), *first)
    kernels["diamond"][nodes, node](*first, *second)
    kernels["down"][nodes, node](*second, found)
    steps = node // problem.reach // len(problem.weights)
    return found.reshape(u.shape), reference.run(problem, u, steps)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_right_kernels_pass(name):
    found, expected = two_cycles(name)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("name", PROBLEMS)
def test_swapped_edges_are_noticed(name):
    found, expected = two_cycles(name, diamond=broken.make_diamond_with_swapped_edges)
    assert not np.allclose(found, expected, rtol=1e-3)


def test_a_stencil_off_by_one_is_noticed():
    """In the middle of a node it reads the wrong point, at its end what nobody has written."""
    with pytest.raises(UndefinedReadError):
        two_cycles("heat", up=broken.make_up_with_a_wide_stencil)


def test_a_missing_barrier_is_refused():
    with pytest.raises((RaceError, UndefinedReadError)):
        two_cycles("heat", up=broken.make_up_without_barrier)


def test_rows_of_wrong_parity_are_noticed():
    found, expected = two_cycles("heat", down=broken.make_down_with_swapped_rows)
    assert (np.abs(found - expected) > 1e-6 * expected).mean() > 0.9


def test_a_boundary_forgotten_is_noticed():
    """Whoever joins the ends of a rod makes a ring of it."""
    found, expected = two_cycles("heat", diamond=broken.make_diamond_without_boundary)
    error = np.abs(found - expected)[0]
    assert error[[0, -1]].min() > 1e-3 > 100 * error[14:18].max()


def test_edges_written_in_place_are_refused():
    """A node may not write over edges that its neighbor still has to read."""
    problem = as_problem("heat")
    left, right = (np.zeros(32) for _ in range(2))
    diamond = shared.make_diamond(problem, 16, "float64", True)
    with pytest.raises(RaceError):
        diamond[2, 16](left, right, left, right)


def wide_run(name, make, threads=8, points=2, nodes=2):
    """What `two_cycles` does, with several points a thread; `make` makes the diamond."""
    problem, n, dtype = as_problem(name), threads * points * nodes, "float64"
    what = problem, threads, points, dtype, False
    u = state(problem, n, dtype)
    first, second = poisoned(problem, n, dtype), poisoned(problem, n, dtype)
    found = SIMULATOR.empty(u.size, dtype)
    wide.make_wide_up(*what)[nodes, threads](u.ravel(), *first)
    make(*what, True)[nodes, threads](*first, *second)
    wide.make_wide_down(*what, False)[nodes, threads](*second, found)
    steps = threads * points // problem.reach // len(problem.weights)
    return found.reshape(u.shape), reference.run(problem, u, steps)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_halo_forgotten_is_noticed(name, monkeypatch):
    """At the base of a diamond r states on either side are in none of the node's threads."""
    found, expected = wide_run(name, wide.make_wide_diamond)
    assert np.array_equal(found, expected)
    monkeypatch.setattr(wide, "make_complete", broken.make_complete_without_halo)
    found, expected = wide_run(name, wide.make_wide_diamond)
    assert (found != expected).mean() > 0.05


def test_an_exchange_without_barriers_is_refused(monkeypatch):
    monkeypatch.setattr(wide, "make_exchange", broken.make_exchange_without_barriers)
    with pytest.raises((RaceError, UndefinedReadError)):
        wide_run("heat", wide.make_wide_diamond)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_ghost_zone_too_narrow_is_noticed(name):
    """By two substeps: what is wrong has come in as far as the middle."""
    problem, n = as_problem(name), 40
    u = state(problem, n, "float64")
    expected = reference.run(problem, u, 2)
    right = tiled.make_tiled(problem, 16, 2, 2, "float64")
    wrong = broken.make_tiled_with_a_narrow_ghost_zone(problem, 16, 2, 2, "float64")
    inner = 32 - 2 * problem.reach * len(problem.weights) * 2
    for kernel, extra, same in ((right, 0, True), (wrong, 4 * problem.reach, False)):
        found = SIMULATOR.empty(u.size, "float64")
        kernel[-(-n // (inner + extra)), 16](u.ravel(), found)
        assert np.array_equal(found.reshape(u.shape), expected) == same


def test_a_grid_without_a_barrier_is_refused():
    """A thread may not read what another block is about to write."""
    problem, n = as_problem("ks"), 32
    u = state(problem, n, "float64").ravel()
    with pytest.raises(RaceError):
        broken.make_persistent_without_barriers(problem, 2, "float64")[4, 4](
            u, SIMULATOR.empty(n, "float64"), np.int32(2)
        )
