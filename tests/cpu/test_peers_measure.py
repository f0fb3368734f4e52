"""What is measured of peers makes valid records: ranks are threads, and peers send by NCCL, too."""

import threading

import numpy as np
import pytest
import stopped_clock
from stopped_clock import SESSION, SIMULATOR
from threads_as_ranks import Comm, Nccl, World

from dgbook import parallel
from dgbook.check import simulator
from dgbook.cli import parallel as bench
from dgbook.gpu import nccl
from dgbook.lab import parallel as measure
from dgbook.lab import peers, records
from dgbook.parallel.halo import Halo

pytest.importorskip("pymetis")


class Shifted(Halo):
    """Brings other numbers than were sent."""

    def unpack(self, states):
        super().unpack(states)
        states[0].reshape(-1)[-1] += 1


@pytest.fixture
def ranks(monkeypatch):
    """By threads of which one at a time is in the simulator; what they tell comes back."""
    lock, launch = threading.Lock(), simulator.launch

    def one_at_a_time(*how):
        with lock:
            launch(*how)

    def answers(asked):
        world = World(peers.GPUS)

        def rank(number):
            library = Nccl(world, number)
            ask = peers.Asked(Comm(world, number), SIMULATOR, nccl.Messages(library, library))
            return [ask(*one) for one in asked]

        return world.run(rank)[0]

    monkeypatch.setattr(simulator, "launch", one_at_a_time)
    monkeypatch.setattr("dgbook.lab.session.beyond_cache", lambda *_: True)
    monkeypatch.setattr(measure, "SHORTEST", 0.0)
    monkeypatch.setattr(nccl, "count", lambda: 2)
    monkeypatch.setattr(parallel, "PeerRanks", parallel.NcclRanks)
    monkeypatch.setattr(peers, "HALOS", dict.fromkeys(peers.HALOS, Halo))
    monkeypatch.setattr(peers, "answers", answers)
    monkeypatch.setattr(peers, "stepping", lambda _: int)  # which is called, and does nothing
    monkeypatch.setattr(peers, "EXCHANGED", (64,))
    monkeypatch.setattr(peers, "TOGETHER", 1)
    monkeypatch.setattr(peers, "COMPARED", 1)


def test_a_record(ranks):
    rows = list(peers.peers_rows((1,), "float32", (144,), SESSION))
    records.validate(stopped_clock.content("parallel/peers", rows))
    assert all(bench.line(row, SIMULATOR) for row in rows)
    assert [(row["path"], row["variant"]) for row in rows] == [
        ("messages", peers.RECORDED),
        ("traces", peers.BY_NCCL),
        ("traces", peers.BY_PEERS),
        ("one", peers.RECORDED),
        ("all", peers.RECORDED),
        *peers.WAYS,
    ]
    one, both, whole, _, flux, _ = rows[3:]
    assert one["size"]["K"] == 6 and both["size"]["K"] == whole["size"]["K"] == 12
    assert both["size"]["gpus"] == 1 and whole["size"]["gpus"] == 2
    assert whole["size"]["sent"] == 3 * flux["size"]["sent"]  # six numbers instead of two
    assert [row["difference"] == 0 for row in rows[3:]] == 4 * [True] + 2 * [False]
    assert flux["difference"] < 1e-5


def test_large_meshes_send_whole_traces_only(ranks, monkeypatch):
    """Two numbers per node save bytes, of which a large mesh sends few for what it computes."""
    monkeypatch.setattr(peers, "LARGE", 144)
    rows = list(peers.peers_rows((1,), "float32", (144,), SESSION))
    assert [row["path"] for row in rows[3:]] == ["one", "all", "whole", "whole"]


def test_other_numbers_are_refused(ranks, monkeypatch):
    monkeypatch.setattr(peers, "HALOS", {peers.BY_NCCL: Halo, peers.BY_PEERS: Shifted})
    with pytest.raises(RuntimeError, match="64 bytes recorded, by peers: they are not those that"):
        list(peers.peers_rows((1,), "float32", (144,), SESSION))
    monkeypatch.setattr(peers, "answers", lambda asked: [([1e-3] * 20, facts(), 0.5)] * len(asked))
    with pytest.raises(RuntimeError, match="order 1, 144 degrees of freedom: after 1 steps the st"):
        list(peers.peers_rows((1,), "float32", (144,), SESSION))
    monkeypatch.setattr(nccl, "count", lambda: 1)
    with pytest.raises(RuntimeError, match="peers needs two GPUs or more; allowed here: split"):
        list(peers.peers_rows((1,), "float32", (144,), SESSION))


def facts():
    sizes = dict.fromkeys(("K", "Np", "fields", "parts", "gpus", "edge", "sent"), 1)
    return sizes | {"language": "cuda"}


def test_the_mesh_of_two_is_twice_that_of_one():
    one, two = peers.bar(1, 3), peers.bar(2, 3)
    assert two.K == 2 * one.K and two.vertices.max(axis=0).tolist() == [2, 1, 1]
    np.testing.assert_allclose(np.ptp(two.vertices, axis=0), [2, 1, 1])
