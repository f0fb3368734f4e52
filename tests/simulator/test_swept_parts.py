"""The swept family in parts, in the simulator: the reference's bits, and wrong exchanges seen."""

import numpy as np
import pytest
from broken import swept as broken

from dgbook import swept
from dgbook.gpu import device
from dgbook.parallel.transport import OneProcess
from dgbook.swept import parts as parts_of_points
from dgbook.swept import reference, solver
from dgbook.swept.parts import PART_SCHEMES
from dgbook.swept.problem import PROBLEMS

SIMULATOR = device("simulator")
PLANS = {"classic": swept.Plan(4, 2), "tiled": swept.Plan(16, 2, 2), "shared": swept.Plan(8)}
N = 48


def state(problem, n=N, dtype="float64"):
    """The initial condition times random numbers near 1: nothing is symmetric or zero."""
    u = problem.initial(n)
    return (u * (1 + 0.02 * np.random.default_rng(7).standard_normal(u.shape))).astype(dtype)


def made(name, scheme, parts=2, plan=None, dtype="float64", n=N, **more):
    plan = plan or PLANS[PART_SCHEMES[scheme]]
    if isinstance(parts, OneProcess):
        more["comm"], parts = parts, 1
    return swept.Parts(name, scheme, n, dtype, SIMULATOR, plan, parts, **more)


def compared(s, cycles=3):
    """A state of these parts, and the reference's."""
    u, steps = state(s.problem, s.n, s.dtype), cycles * s.steps_between_results
    return s.run(u, steps), reference.run(s.problem, u, steps)


CASES = [
    *((name, scheme, parts, {}) for name in PROBLEMS for scheme in PART_SCHEMES for parts in (2, 3)
      if not (name == "euler" and scheme == "deep" and parts == 3)),
    ("heat", "classic", 1, {}),
    ("ks", "shared", 1, {}),
    ("heat", "classic", 4, {"plan": swept.Plan(5), "dtype": "float32"}),
    ("heat", "overlapped", 12, {"n": 108, "plan": swept.Plan(32)}),
    ("heat", "deep", 2, {"launches": 2}),
    ("heat", "deep", 3, {"launches": 3, "dtype": "float32"}),
    ("heat", "shared", 3, {"plan": swept.Plan(4, 2)}),
    ("ks", "shared", 6, {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "scheme", "parts", "more"), CASES)
def test_parts_are_the_reference_to_the_last_bit(name, scheme, parts, more):
    """Odd numbers of launches have to come home, and both kinds of down-triangles."""
    s = made(name, scheme, parts, **more)
    for cycles in (2, 3):
        found, expected = compared(s, cycles)
        assert np.array_equal(found, expected)


def test_a_run_goes_on_and_is_longer_than_a_recording():
    for scheme, heights in (("classic", 2 * solver.RECORDED + 3), ("shared", 5)):
        s = made("heat", scheme)
        u, steps = state(s.problem), heights * s.steps_between_results
        together = s.launcher(u)
        together.record(steps)()
        assert np.array_equal(together.download(), reference.run(s.problem, u, steps))
        together.record(s.steps_between_results)()
        steps += s.steps_between_results
        assert np.array_equal(together.download(), reference.run(s.problem, u, steps))


class Counted(OneProcess):
    """Counts exchanges, and the numbers that go out in each."""

    def __init__(self, parts):
        super().__init__(parts)
        self.sent = []

    def connect(self, sends, receives, device):
        connection, sent = super().connect(sends, receives, device), self.sent
        start = connection.start
        connection.start = lambda: (sent.append(sum(p.buffer.size for p in sends)), start())
        return connection


@pytest.mark.parametrize("scheme", PART_SCHEMES)
def test_who_sends_how_much_how_often(scheme):
    """Of Euler's equations, two substeps a step and r = 2, across the only cut."""
    transport = Counted(2)
    s = made("euler", scheme, transport, launches=2 if scheme == "deep" else 1)
    u = state(s.problem)
    s.launcher(u).record(8)()
    fields, both = 3, 2
    assert (
        transport.sent
        == {
            # In each of 16 substeps r states of either part, here as many as a thread has.
            "classic": [fields * both * 2] * 16,
            "overlapped": [fields * both * 2] * 16,
            # Every four steps: two launches of two, of two substeps each, need 16 ghosts.
            "deep": [fields * both * 16] * 2,
            # A height is a step; in each one edge. The last is not: shifted nodes need both.
            "shared": [fields * 8] * 8,
        }[scheme]
    )
    transport.sent.clear()
    if scheme == "shared":
        s.launcher(u).record(7)()
        assert transport.sent == [fields * 8] * 6 + [fields * both * 8]


@pytest.mark.parametrize("scheme", PART_SCHEMES)
@pytest.mark.parametrize(
    "mistake", [broken.StaleGhosts, broken.SwappedNeighbors], ids=lambda mistake: mistake.__name__
)
def test_wrong_exchanges_are_noticed(scheme, mistake, monkeypatch):
    monkeypatch.setattr(parts_of_points, "Together", mistake)
    found, expected = compared(made("heat", scheme, 3), 6)
    wrong = np.flatnonzero(found != expected)
    assert len(wrong) and set(wrong // (N // 3)) >= {1}, "the part in the middle has both neighbors"


def test_an_edge_that_travels_before_it_is_updated_is_noticed(monkeypatch):
    monkeypatch.setattr(parts_of_points, "Together", broken.SentTooEarly)
    found, expected = compared(made("heat", "overlapped"))
    assert not np.array_equal(found, expected)


def test_what_cannot_be_cut_is_refused():
    for refused, message in [
        (lambda: swept.Parts("heat", "hybrid"), "scheme = 'hybrid'; allowed are 'classic', 'over"),
        (lambda: made("heat", "classic", 5), "n = 48; allowed in 5 parts: multiples of 5"),
        (lambda: made("heat", "shared", 4), "of 4 parts, each: n = 12; allowed: multiples of"),
        (lambda: made("heat", "overlapped", 6, swept.Plan(4, 4)), "in 6 parts: 72 or more"),
        (lambda: made("heat", "deep", 3, launches=9), "n = 48; allowed in 3 parts: 54 or more"),
        (lambda: made("heat", "shared", launches=2), "launches = 2; allowed for 'shared': 1"),
        (lambda: made("heat", "deep", launches=0), "launches must be an integer >= 1, not 0"),
        (lambda: swept.Parts("heat", parts=2, comm=OneProcess(2)), "parts = 2 with comm; allowed"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            refused()
    s = made("heat", "deep", launches=2)
    with pytest.raises(ValueError, match="steps = 6; allowed: multiples of 4"):
        s.run(s.initial(), 6)
