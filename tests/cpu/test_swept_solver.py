"""The swept family's solver: which runs are legal, when results can be read, what a step costs."""

import re
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from dgbook import swept
from dgbook.gpu import device
from dgbook.gpu.limits import STATIC_SHARED_LIMIT
from dgbook.lab.swept_model import Machine, predicted_seconds, recorded_machine
from dgbook.swept.cost import cost
from dgbook.swept.plan import SCHEMES, Plan, Shape
from dgbook.swept.problem import PROBLEMS, Heat, as_problem
from dgbook.swept.solver import hybrid_diamond

# ------------------------------------------------------------------------------------------ plans


@pytest.mark.parametrize(
    ("name", "scheme", "threads", "n", "dtype", "trouble"),
    [
        ("heat", "classic", 100, 7, "float64", ""),
        ("heat", "classic", 100, 2, "float64", "n = 2; allowed: 3 points"),
        ("ks", "classic", Plan(64, 8), 8, "float64", "n = 8; allowed: 12 points"),
        ("heat", "shared", 12, 36, "float64", ""),
        ("heat", "shared", 10, 40, "float64", "multiples of 4"),
        ("ks", "shared", 12, 36, "float64", "multiples of 8"),
        ("ks", "shared", 24, 24, "float64", ""),
        ("ks", "hybrid", 24, 24, "float64", "n = 24; allowed: multiples of threads = 24, 48"),
        ("ks", "shared", 24, 36, "float64", "n = 36; allowed: multiples of threads = 24"),
        ("euler", "register", 48, 96, "float64", "multiples of 32"),
        ("euler", "register", 96, 96, "float32", ""),
        ("euler", "shared", 1024, 2048, "float64", "49344 bytes"),
        ("euler", "shared", 1024, 2048, "float32", ""),
        ("euler", "classic", 1024, 2048, "float64", ""),
        ("euler", "classic", Plan(64, 4), 30, "float64", "n = 30; allowed: multiples of points"),
        ("euler", "persistent", Plan(64, 4), 32, "float64", ""),
        ("heat", "shared", Plan(2, 2), 12, "float64", ""),
        ("heat", "shared", Plan(3, 4), 12, "float64", "multiples of 2"),
        ("ks", "shared", Plan(8, 3), 24, "float64", "points = 3; allowed for 'ks', 'shared'"),
        ("ks", "shared", Plan(8, 4), 40, "float64", r"multiples of threads \* points = 32"),
        ("ks", "hybrid", Plan(8, 2), 64, "float64", "points = 2; allowed for 'ks', 'hybrid': 1"),
        ("ks", "register", Plan(32, 4), 256, "float64", ""),
        ("ks", "shared", Plan(8, 2, 2), 64, "float64", "steps = 2; allowed for 'ks', 'shared': 1"),
        ("euler", "shared", Plan(512, 4), 4096, "float64", "98304 bytes"),
        ("ks", "tiled", Plan(16, 2, 4), 50, "float64", "no points are left in a tile; .* up to 3"),
        ("ks", "tiled", Plan(16, 2, 3), 50, "float64", ""),
        ("heat", "tiled", Plan(16, 2, 3), 50, "float64", "multiples of 2"),
    ],
)
def test_what_is_legal(name, scheme, threads, n, dtype, trouble):
    plan = threads if isinstance(threads, Plan) else Plan(threads)
    found = plan.illegal(Shape(as_problem(name), scheme, n, dtype))
    assert re.search(trouble, found) if trouble else found == ""


def test_default_plans_divide_n():
    heat = as_problem("heat")
    assert Plan.default(Shape(heat, "shared", 2048, "float64")) == Plan(128)
    assert Plan.default(Shape(heat, "shared", 300, "float64")) == Plan(100)
    assert Plan.default(Shape(heat, "hybrid", 128, "float64")) == Plan(64)
    assert Plan.default(Shape(as_problem("ks"), "register", 160, "float64")) == Plan(32)
    assert Plan.default(Shape(heat, "classic", 17, "float64")) == Plan(256)
    with pytest.raises(ValueError, match="n = 30; allowed for 'ks', 'shared': multiples of 8"):
        Plan.default(Shape(as_problem("ks"), "shared", 30, "float64"))


def test_plans_to_try_are_legal():
    heat, euler = as_problem("heat"), as_problem("euler")
    found = Plan.candidates(Shape(heat, "shared", 2**13, "float64"))
    assert [p.threads for p in found if p.points == 1] == [32, 64, 128, 256, 512, 1024]
    assert {p.threads for p in found if p.points == 8} == {64, 128, 256}
    found = Plan.candidates(Shape(euler, "shared", 2**12, "float64"))
    assert {p.points for p in found} == {1, 2, 4} and max(p.threads for p in found) == 512
    tiles = Plan.candidates(Shape(euler, "tiled", 2**12, "float64"))
    assert all(16 * p.steps <= p.threads * p.points for p in tiles) and len(tiles) > 10
    assert {p.points for p in Plan.candidates(Shape(heat, "hybrid", 2**12, "float64"))} == {1}


@pytest.mark.parametrize(
    ("name", "scheme", "threads", "every"),
    [
        ("heat", "shared", 128, 64),
        ("ks", "shared", 128, 16),
        ("euler", "hybrid", 64, 8),
        ("heat", "register", 128, 16),
        ("ks", "register", 64, 4),
        ("ks", "classic", 64, 1),
    ],
)
def test_when_results_can_be_read(name, scheme, threads, every):
    """In the paper: every `threads` steps of heat, two of these; 4 of KS in a warp."""
    solver = swept.Solver(name, scheme, 256, device="simulator", threads=threads)
    assert solver.steps_between_results == every
    if every > 1:
        nearest = f"multiples of {every}, such as {every} or {2 * every}"
        with pytest.raises(ValueError, match=f"steps = {every + 1}; allowed .* {nearest}"):
            solver.run(solver.initial(), every + 1)
    with pytest.raises(ValueError, match=r"steps = \d+; allowed: up to 1e\+12"):
        solver.run(solver.initial(), 10**12 * every + every)


GOOD = {"problem": "heat", "scheme": "shared", "n": 64, "device": "cpu"}


class TwoFields(Heat):
    """A problem that kernels would take for one of three fields."""

    fields = ("T", "S")


class Far(Heat):
    """A problem that kernels would take for one of reach 2."""

    reach = 3


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"scheme": "swept"}, ValueError, "scheme = 'swept'; allowed are 'classic', 'shared'"),
        ({"problem": "wave"}, ValueError, "problem = 'wave'"),
        ({"n": 64.0}, TypeError, "n = 64.0; allowed: an integer"),
        ({"n": 62}, ValueError, "n = 62; allowed for 'heat', 'shared': multiples of 4"),
        ({"threads": 48}, ValueError, "n = 64; allowed: multiples of threads = 48"),
        ({"threads": 2048}, ValueError, "threads = 2048; allowed: 1 to 1024"),
        ({"threads": "many"}, TypeError, "threads = 'many'; allowed: an integer"),
        ({"dtype": "float16"}, ValueError, "dtype = 'float16'; allowed are 'float32', 'float64'"),
        ({"device": "tpu"}, ValueError, "device = 'tpu'"),
        ({"steps": 0}, ValueError, "steps = 0; allowed"),
        ({"steps": 32.0}, TypeError, "steps = 32.0; allowed: an integer"),
        ({"initial": np.zeros((3, 64))}, ValueError, r"\(3, 64\); allowed: .* \(1, 64\)"),
        ({"initial": np.zeros((1, 64), complex)}, TypeError, "complex128; allowed: real numbers"),
        ({"problem": TwoFields()}, ValueError, "problem 'heat': fields: 2; allowed: 1 or 3"),
        ({"problem": Far()}, ValueError, "problem 'heat': reach: 3; allowed: 1 or 2"),
    ],
)
def test_wrong_arguments_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        swept.run(**{**GOOD, "steps": 32, **changes})


def test_the_initial_state_stays():
    u = swept.Solver("heat", "shared", 64, device="cpu").initial()
    before = u.copy()
    swept.run("heat", "shared", 64, 32, "float64", "simulator", initial=u)
    swept.run("heat", "classic", 64, 1, "float64", "simulator", initial=u)
    assert np.array_equal(u, before)


# ------------------------------------------------------------------------------------------- cost


def test_cost_of_a_step():
    """By hand: heat moves 2 words per point, KS 5; swept 4 words and a launch for `every` steps."""
    n = 1024
    heat, ks, euler = (as_problem(name) for name in PROBLEMS)
    classic = cost(heat, "classic", Plan(256), n, "float64")
    assert (classic.flops, classic.bytes, classic.launches) == (5 * n, 16 * n, 1)
    classic = cost(ks, "classic", Plan(256), n, "float32")
    assert (classic.flops, classic.bytes, classic.launches) == (24 * n, 20 * n, 2)
    shared = cost(ks, "shared", Plan(128), n, "float32")
    assert (shared.flops, shared.bytes) == (24 * n, n)
    assert (shared.launches, shared.barriers) == (1 / 16, 4)
    assert shared.shared_bytes == n * 2 * 5 * 4
    register = cost(euler, "register", Plan(128), n, "float64")
    assert (register.bytes, register.launches, register.barriers) == (24 * n, 1 / 4, 0)
    assert register.flops == 2 * (183 + 6) * n


def test_cost_of_several_points_a_thread():
    """Of 4 points 5 faces and 8 inner energies; 2r states published and fetched for all of them."""
    n, euler = 1024, as_problem("euler")
    shared = cost(euler, "shared", Plan(128, 4), n, "float64")
    assert shared.flops == 2 * (5 * 80 + 8 * 4 + 4 * (3 + 6)) / 4 * n
    assert shared.shared_bytes == n * 2 * 3 * 2 * 8
    assert (shared.launches, shared.barriers) == (1 / 64, 4)
    register = cost(euler, "register", Plan(128, 4), n, "float64")
    assert register.shared_bytes == shared.shared_bytes / 2 and register.launches == 1 / 16


def test_cost_of_honest_baselines():
    """A tile of 512 with 64 points of either neighbor computes a third more than it keeps."""
    n, ks = 1536, as_problem("ks")
    classic, persistent = (
        cost(ks, scheme, Plan(128), n, "float32") for scheme in ("classic", "persistent")
    )
    assert persistent.bytes == classic.bytes and persistent.flops == classic.flops
    assert (persistent.launches, persistent.grid_barriers) == (0, 2)
    tiled = cost(ks, "tiled", Plan(128, 4, 16), n, "float32")
    assert tiled.flops == pytest.approx(classic.flops * 4 / 3)
    assert tiled.bytes == pytest.approx(n * (4 / 3 + 1) * 4 / 16)
    assert (tiled.launches, tiled.barriers) == (1 / 16, 2)


def test_prediction_has_the_papers_shape():
    """The swept rule wins by launches where n is small, and by memory where it is large."""
    heat = as_problem("heat")
    machine = Machine(
        launch=2e-6,
        barrier=4e-8,
        grid_barrier=1e-6,
        operation=0.0,
        load=0.0,
        shared_load=0.0,
        bandwidth=4e12,
        shared_bandwidth=3e13,
        rate=1e13,
    )
    ratios = {}
    for n in (2**11, 2**23):
        times = {
            scheme: predicted_seconds(cost(heat, scheme, Plan(128), n, "float64"), machine)
            for scheme in ("classic", "shared")
        }
        ratios[n] = times["classic"] / times["shared"]
    assert ratios[2**11] > 10
    assert 1.5 < ratios[2**23] < ratios[2**11]


def test_a_level_takes_its_load_its_chain_and_its_barrier():
    """Of KS a launch of 16 steps and 4 levels a step, 7 operations long; no points, no work."""
    machine = Machine(1e-6, 2e-8, 1e-6, 4e-9, 2e-7, 1e-8, 4e12, 3e13, 1e13)
    shared = cost(as_problem("ks"), "shared", Plan(128), 128, "float64")
    waited = replace(shared, flops=0.0, bytes=0.0, shared_bytes=0.0)
    level = 7 * 4e-9
    expected = (1e-6 + 2e-7 + level) / 16 + 4 * (2e-8 + 1e-8 + level)
    assert predicted_seconds(waited, machine, 7) == pytest.approx(expected)


def test_the_recorded_machine_is_an_h200():
    """132 multiprocessors, each of which reads 128 bytes of shared memory a clock of 1.98 GHz."""
    machine, single = (recorded_machine(dtype, 0.5) for dtype in ("float64", "float32"))
    assert 0.9 < machine.shared_bandwidth / (132 * 128 * 1.98e9) < 1
    # An fp64 operation is twice as long as an fp32 one, of 4 clocks; the ceilings as much lower.
    assert single.operation == pytest.approx(4 / 1.98e9, rel=0.1)
    assert machine.operation == pytest.approx(2 * single.operation, rel=0.1)
    assert machine.rate == pytest.approx(single.rate / 2, rel=0.1)
    assert machine.barrier < machine.launch < machine.grid_barrier


@pytest.mark.parametrize("scheme", SCHEMES)
def test_shared_memory_with_a_point_a_thread_is_the_papers(scheme):
    bytes_ = Plan(128).shared_bytes(Shape(as_problem("heat"), scheme, 2**12, "float64"))
    expected = {"shared": 2 * 130 * 8, "hybrid": 2 * 130 * 8, "tiled": 4 * 128 * 8}
    assert bytes_ == expected.get(scheme, 0)
    threads = 256 if scheme == "tiled" else 512
    euler = Plan(threads).shared_bytes(Shape(as_problem("euler"), scheme, 2**12, "float64"))
    assert euler <= STATIC_SHARED_LIMIT


# ---------------------------------------------------------------------------------------- hybrid


def test_where_there_is_no_gpu_memory_of_the_host_is_all_there_is():
    simulator = device("simulator")
    there, here = simulator.mapped(4, "float32")
    here[:] = 1
    simulator.mark()()
    assert np.array_equal(there, np.ones(4)) and there.dtype == np.float32


def test_in_a_cycle_of_hybrid_the_cpu_waits_once():
    """Two launches of recordings, one before the CPU's part and one behind it."""
    done = []
    hybrid_diamond(
        SimpleNamespace(mark=lambda: done.append("mark") or partial(done.append, "wait")),
        *(partial(done.append, what) for what in ("rest", "split", "then")),
    )
    assert done == ["mark", "rest", "wait", "split", "then"]
