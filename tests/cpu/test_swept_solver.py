"""The swept family's solver: which runs are legal, when results can be read, what a step costs."""

import numpy as np
import pytest

from dgbook import swept
from dgbook.gpu.limits import STATIC_SHARED_LIMIT
from dgbook.swept.cost import cost, predicted_seconds
from dgbook.swept.plan import SCHEMES, Plan, default_plan, illegal, plans, shared_bytes
from dgbook.swept.problem import PROBLEMS, as_problem

# ------------------------------------------------------------------------------------------ plans


@pytest.mark.parametrize(
    ("name", "scheme", "threads", "n", "dtype", "trouble"),
    [
        ("heat", "classic", 100, 7, "float64", ""),
        ("heat", "classic", 100, 2, "float64", "n = 2; allowed: 3 points"),
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
    ],
)
def test_what_is_legal(name, scheme, threads, n, dtype, trouble):
    found = illegal(as_problem(name), scheme, Plan(threads), n, dtype)
    assert found == "" if not trouble else trouble in found


def test_default_plans_divide_n():
    heat = as_problem("heat")
    assert default_plan(heat, "shared", 2048, "float64") == Plan(128)
    assert default_plan(heat, "shared", 300, "float64") == Plan(100)
    assert default_plan(heat, "hybrid", 128, "float64") == Plan(64)
    assert default_plan(as_problem("ks"), "register", 160, "float64") == Plan(32)
    assert default_plan(heat, "classic", 17, "float64") == Plan(256)
    with pytest.raises(ValueError, match="n = 30; allowed for 'ks', 'shared': multiples of 8"):
        default_plan(as_problem("ks"), "shared", 30, "float64")


def test_plans_to_try_are_legal():
    assert [p.threads for p in plans(as_problem("heat"), "shared", 2**12, "float64")] == [
        *(32, 64, 128, 256, 512, 1024)
    ]
    assert plans(as_problem("euler"), "shared", 2**12, "float64")[-1] == Plan(512)


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


GOOD = {"problem": "heat", "scheme": "shared", "n": 64, "device": "cpu"}


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
    """By hand: heat moves 2 words a point, KS 5; swept 4 words and a launch for `every` steps."""
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
    assert register.flops == 2 * 192 * n


def test_prediction_has_the_papers_shape():
    """The swept rule wins by launches where n is small, and by memory where it is large."""
    heat = as_problem("heat")
    machine = dict(launch=2e-6, barrier=4e-8, bandwidth=4e12, shared_bandwidth=3e13)
    ratios = {}
    for n in (2**11, 2**23):
        times = {
            scheme: predicted_seconds(cost(heat, scheme, Plan(128), n, "float64"), **machine)
            for scheme in ("classic", "shared")
        }
        ratios[n] = times["classic"] / times["shared"]
    assert ratios[2**11] > 10
    assert 1.5 < ratios[2**23] < ratios[2**11]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_shared_memory_is_the_papers(scheme):
    bytes_ = shared_bytes(as_problem("heat"), scheme, Plan(128), "float64")
    assert bytes_ == (2 * 130 * 8 if scheme in ("shared", "hybrid") else 0)
    euler = shared_bytes(as_problem("euler"), scheme, Plan(512), "float64")
    assert euler <= STATIC_SHARED_LIMIT
