"""The swept family on a real device: all schemes and precisions, long runs, recorded launches."""

import numpy as np
import pytest
from swept_cases import case, tolerance

from dgbook import swept
from dgbook.gpu import device
from dgbook.swept import exact, reference
from dgbook.swept.kernels.mail import make_receive, make_send
from dgbook.swept.parts import PART_SCHEMES
from dgbook.swept.plan import SCHEMES, Shape
from dgbook.swept.problem import PROBLEMS, as_problem

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

SEED = np.random.SeedSequence().entropy  # fresh inputs in every run
RANDOM = np.random.default_rng(SEED)
THREADS = (24, 128, 512)


def state(problem, n, dtype):
    u = problem.initial(n)
    return (u * (1 + 0.02 * RANDOM.standard_normal(u.shape))).astype(dtype)


CASES = [
    (name, scheme, dtype, threads, 3 * threads)
    for name in PROBLEMS
    for scheme in SCHEMES
    for dtype in ("float32", "float64")
    for threads in THREADS
    if not swept.Plan(threads).illegal(Shape(as_problem(name), scheme, 3 * threads, dtype))
]


@pytest.mark.parametrize(("name", "scheme", "dtype", "threads", "n"), CASES)
def test_schemes_against_the_reference(name, scheme, dtype, threads, n):
    """In double precision, which rounds after each operation, where a GPU fuses."""
    problem, u = case(name, n, dtype, RANDOM)
    s = swept.Solver(problem, scheme, n, dtype, GPU, threads)
    for cycles in (1, 2, 3):
        steps = cycles * s.steps_between_results
        found = s.run(u, steps)
        expected = reference.run(problem, u.astype(np.float64), steps)
        assert found.dtype == dtype
        assert np.abs(found - expected).max() < tolerance(expected, steps, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scheme", PART_SCHEMES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_parts_are_one_part_to_the_last_bit(name, scheme, dtype):
    """On one GPU, with copies in the recording; on several see test_parallel_gpu.py."""
    problem, n = as_problem(name), 3 * 2**10
    u = state(problem, n, dtype)
    plans = {"classic": swept.Plan(64, 2), "tiled": swept.Plan(64, 4, 4)}
    plan = plans.get(PART_SCHEMES[scheme], swept.Plan(128))
    s = swept.Parts(problem, scheme, n, dtype, GPU, plan, 3, launches=1 + (scheme == "deep"))
    for cycles in (3, 80):
        steps = cycles * s.steps_between_results
        expected = swept.run(problem, "classic", n, steps, dtype, GPU, initial=u)
        assert np.array_equal(s.run(u, steps), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_swept_is_classic_to_the_last_bit(name, dtype):
    """Shared and Register compile the same operations in the same order as Classic."""
    problem, n = as_problem(name), 2**14
    u = state(problem, n, dtype)
    steps = 5 * swept.Solver(problem, "shared", n, dtype, GPU, 256).steps_between_results
    classic = swept.run(problem, "classic", n, steps, dtype, GPU, initial=u)
    for scheme, threads in (("shared", 256), ("register", 64)):
        found = swept.run(problem, scheme, n, steps, dtype, GPU, threads, u)
        assert np.array_equal(found, classic), scheme


WIDE = [
    *(("shared", swept.Plan(threads, points)) for threads in (64, 128) for points in (2, 4)),
    *(("register", swept.Plan(128, points)) for points in (2, 4)),
    *(("tiled", swept.Plan(128, points, 8)) for points in (2, 4)),
    *((scheme, swept.Plan(128, p)) for scheme in ("classic", "persistent") for p in (1, 2, 4)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_several_points_a_thread_are_classic_to_the_last_bit(name, dtype):
    """Whatever a thread has, it compiles the same operations in the same order."""
    problem, n = as_problem(name), 2**13
    u, steps = state(problem, n, dtype), 1024
    classic = swept.run(problem, "classic", n, steps, dtype, GPU, swept.Plan(128, 2), u)
    scale = np.finfo(dtype).eps * np.abs(classic).max()
    for scheme, plan in WIDE:
        found = swept.run(problem, scheme, n, steps, dtype, GPU, plan, u)
        print(f"{scheme} {plan}: {np.abs(found - classic).max() / scale:.3g} eps")
        assert np.array_equal(found, classic), (scheme, plan)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize(("scheme", "plan"), WIDE)
def test_several_points_a_thread_against_the_reference(scheme, plan, name):
    n, dtype = 2**11, "float64"
    problem, u = case(name, n, dtype, RANDOM)
    s = swept.Solver(problem, scheme, n, dtype, GPU, plan)
    steps = max(s.steps_between_results, 8)
    found, expected = s.run(u, steps), reference.run(problem, u, steps)
    assert np.abs(found - expected).max() < tolerance(expected, steps, dtype)


def test_a_grid_barrier_with_more_points_than_threads():
    """Then blocks are as many as run together, and each thread updates row after row."""
    problem, n = as_problem("ks"), 2**22
    u = state(problem, n, "float32")
    found = swept.run(problem, "persistent", n, 3, "float32", GPU, swept.Plan(1024, 2), u)
    classic = swept.run(problem, "classic", n, 3, "float32", GPU, swept.Plan(256, 2), u)
    assert np.array_equal(found, classic)


def test_kernels_reach_memory_of_the_host():
    """What a launch has written is there after its mark, what the host writes for later ones."""
    problem, node, n = as_problem("euler"), 32, 96
    left, right = (GPU.array(RANDOM.standard_normal(3 * n)) for _ in range(2))
    there, here = GPU.mapped(6 * node, "float64")
    for _ in range(3):
        make_send(problem, node)[1, node](left, right, there)
        GPU.mark()()
        expected = GPU.to_numpy(left)[: 3 * node], GPU.to_numpy(right)[-3 * node :]
        assert np.array_equal(here, np.concatenate(expected))
        here += 1
        make_receive(problem, node)[1, node](there, left, right)
        found = GPU.to_numpy(left)[: 3 * node], GPU.to_numpy(right)[: 3 * node]
        assert np.array_equal(np.concatenate(found), here)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_recording_goes_on(scheme):
    """Many replays of one recording, from where the one before stopped."""
    problem, n = as_problem("ks"), 512
    plan = swept.Plan(64, 2, 8) if scheme == "tiled" else swept.Plan(64)
    s = swept.Solver(problem, scheme, n, "float64", GPU, plan)
    u = problem.initial(n)
    launcher = s.launcher(u)
    advance = launcher.record(70 * s.steps_between_results)
    for _ in range(3):
        advance()
    expected = reference.run(problem, u, 210 * s.steps_between_results)
    assert np.abs(launcher.download() - expected).max() < 1e-6


@pytest.mark.parametrize("scheme", SCHEMES)
def test_sod_against_the_exact_solution(scheme):
    problem, n = swept.Euler(0.2), 2048
    plan = swept.Plan(64, 2, 8) if scheme == "tiled" else swept.Plan(64)
    s = swept.Solver(problem, scheme, n, "float64", GPU, plan)
    steps = round(0.2 / s.time_step / 8) * 8
    found = s.run(s.initial(), steps)
    error = np.abs(found - exact.sod(problem, n, steps * s.time_step))[:, 1:-1].mean(axis=1)
    assert (error < [1.5e-3, 1.3e-3, 2.5e-3]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_heat_against_its_series(dtype):
    problem, n = as_problem("heat"), 2048
    s = swept.Solver(problem, "shared", n, dtype, GPU, 512)
    steps = 100 * s.steps_between_results
    other = exact.heat(problem, n, steps * s.time_step)
    tolerance = 1e-4 if dtype == "float64" else 5e-2
    assert np.abs(s.run(s.initial(), steps) - other).max() < tolerance
