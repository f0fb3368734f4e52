"""Operations of a level: counted by hand, by another count, and in what is compiled."""

import re
from collections import Counter

import numpy as np
import pytest

from dgbook.check.compile import compile
from dgbook.lab import swept_chain
from dgbook.lab.probes import OPERATIONS
from dgbook.lab.swept_chain import (
    Node,
    level_of,
    longest_chain,
    operations_of,
    scheduled_seconds,
    total,
)
from dgbook.lab.swept_division import BranchingEuler
from dgbook.swept.cost import substep_flops
from dgbook.swept.kernels.classic import make_classic
from dgbook.swept.kernels.shared import make_diamond
from dgbook.swept.problem import PROBLEMS, as_problem

ALIKE = dict.fromkeys(OPERATIONS, 1.0)
SLOW = ALIKE | {"divide": 15.0, "reciprocal": 12.0, "rsqrt": 15.0}


# By hand. Heat: a difference, their sum, the step. KS: the difference of the neighbors, three
# multiply-adds with the step's, and the product with 1 / dx^4.
BY_HAND = {
    "heat": {"add": 2, "fma": 1},
    "ks": {"add": 1, "fma": 3, "multiply": 1},
    # An inner energy: divide, fma. The limiter: a difference, the product that tells the signs, a
    # choice, divide, a choice, half of it. The state at the face: fma. Roe's average: rsqrt, a
    # product, fma, reciprocal, the velocity. The radius: two products about an fma, rsqrt, fma. The
    # flux: fma. The difference of two, and the step: fma.
    "euler": {
        **{"divide": 2, "reciprocal": 1, "rsqrt": 2},
        **{"choose": 2, "add": 2, "multiply": 6, "fma": 7},
    },
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_longest_chain_is_that_of_the_formula(name):
    """Where quotients and roots take longer; else one of Euler's is as long that has fewer."""
    ends, counted = level_of(as_problem(name)), BY_HAND[name]
    assert longest_chain(ends, SLOW) == counted
    assert longest_chain(ends, ALIKE).total() == sum(counted.values())


@pytest.mark.parametrize("name", PROBLEMS)
def test_all_operations_are_the_flops_of_a_substep(name):
    found = operations_of(level_of(as_problem(name)))
    flops = sum(found[kind] for kind in OPERATIONS if kind != "choose") + found["fma"]
    assert flops == substep_flops(as_problem(name), 1)


def test_a_compiled_level_has_as_many_quotients_and_roots():
    """A diamond goes through an odd and an even level per turn of its loop."""
    problem, x = as_problem("euler"), np.empty(1)
    ptx = compile(make_diamond(problem, 128, "float64", False), (x, x, x, x), (9, 0)).ptx
    found = operations_of(level_of(problem))
    assert ptx.count("rcp.approx.ftz.f64") == 2 * (found["divide"] + found["reciprocal"])
    assert ptx.count("rsqrt.approx.ftz.f64") == 2 * found["rsqrt"]
    assert not re.search(r"\b(?:div|rcp)\.rn\.f64|\brsqrt\.approx\.f64", ptx), "these branch"


def test_branching_quotients_are_the_compilers():
    """Each quotient and root of a substep is there as often, and none is refined in our code."""
    x, found = np.empty(1), operations_of(level_of(as_problem("euler")))
    ptx = compile(make_classic(BranchingEuler(), 0, "float64"), (x, x), (9, 0)).ptx
    assert len(re.findall(r"\b(?:div|rcp)\.rn\.f64", ptx)) == found["divide"] + found["reciprocal"]
    assert len(re.findall(r"\brsqrt\.approx\.f64", ptx)) == found["rsqrt"]
    assert ".ftz.f64" not in ptx


def test_a_chain_is_weighed():
    """Two quotients against five sums."""
    x = Node()
    quotients = Node("divide", (Node("divide", (x,)),))
    sums = x + 1 + 2 + 3 + 4 + 5
    both = (quotients * sums,)
    assert longest_chain(both, ALIKE) == Counter(add=5, multiply=1)
    assert longest_chain(both, ALIKE | {"divide": 3.0}) == Counter(divide=2, multiply=1)
    assert operations_of(both) == Counter(divide=2, add=5, multiply=1)


def test_a_schedule_by_hand():
    """Two quotients and their sum: side by side, overlapping, or one after the other."""
    a, b = Node("divide", (Node(),)), Node("divide", (Node(),))
    latency = {"divide": 10.0, "add": 2.0}
    for interval, end in ((0.0, 12.0), (4.0, 16.0), (10.0, 22.0)):
        assert scheduled_seconds((a + b,), latency, {"divide": interval, "add": 1.0}) == end
    # Two that have waited for the same take turns.
    assert scheduled_seconds(((a + 1) + (a + 2),), latency, {"divide": 4.0, "add": 1.0}) == 15
    # The one with the longer chain ahead goes first, though it comes last.
    long = b + 1 + 2 + 3
    found = scheduled_seconds((a, long), latency, {"divide": 4.0, "add": 1.0})
    assert found == 10 + 3 * 2


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_schedule_lies_between_its_bounds(name, share):
    """At least the chain and the work, at most both together; intervals are shares of latencies."""
    ends, taken = level_of(as_problem(name)), {kind: share * SLOW[kind] for kind in SLOW}
    chain, work = total(longest_chain(ends, SLOW), SLOW), total(operations_of(ends), taken)
    assert max(chain, work) <= scheduled_seconds(ends, SLOW, taken) <= chain + work


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_predictions_are_made_of_records(dtype):
    """Heat's level is its barrier, its word and three operations of some four or eight clocks."""
    heat, euler = (swept_chain.predicted_level(as_problem(p), dtype) for p in ("heat", "euler"))
    assert heat.waiting == euler.waiting
    assert heat.chain < heat.scheduled < heat.waiting < euler.chain < euler.scheduled
    clocks = 4 if dtype == "float32" else 8
    assert heat.chain == pytest.approx(3 * clocks / 1.98e9, rel=0.1)
    assert swept_chain.recorded_level(as_problem("heat"), dtype) > heat.waiting + heat.chain
