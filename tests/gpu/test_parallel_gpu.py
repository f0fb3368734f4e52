"""Several parts on one GPU: the same bits from any number of parts, recorded, with messages.

The messages are copies, and, where NCCL is installed, what it sends from a rank to itself. Where
there are several GPUs each rank has one.
"""

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from parallel_cases import case, mesh_of, roundings_of_less, start, whole
from threads_as_ranks import Comm, World

from dgbook import parallel
from dgbook.gpu import device as find_device
from dgbook.gpu import nccl
from dgbook.mesh import box
from dgbook.parallel import solver as parallel_solver
from dgbook.parallel.halo import End
from dgbook.parallel.peers import PeerHalo
from dgbook.parallel.pieces import Message
from dgbook.parallel.transport import NcclRanks, OneProcess, Packet

pytest.importorskip("pymetis")
BAR = box((8, 3, 3), periodic=(False, True, False))
DT = 1e-3
KINDS = [
    ("linear", 2, {"path": "fused"}),
    ("linear", 4, {"path": "split"}),
    ("maxwell", 3, {"basis": "nodal"}),
    ("maxwell", 6, {"basis": "nodal"}),
    ("maxwell", 3, {"basis": "bernstein"}),
    ("maxwell", 7, {"basis": "bernstein"}),
    ("nodal", 4, {}),
    ("bernstein", 5, {}),
    ("euler", 3, {}),
    ("linear", 2, {"method": "ndb14_factored"}),
    ("maxwell", 4, {"basis": "nodal", "method": "ndb14_factored"}),
    ("maxwell", 3, {"basis": "bernstein", "method": "ndb14_factored"}),
    ("bernstein", 5, {"method": "ndb14_factored"}),
]


def mesh_for(family):
    return BAR if family in ("maxwell", "nodal", "bernstein") else mesh_of(family, 8)


@pytest.mark.parametrize(("family", "order", "settings"), KINDS)
def test_any_number_of_parts_gives_the_same_bits(family, order, settings, dtype):
    mesh = mesh_for(family)
    make = case(family, mesh, order, dtype=dtype, device="cuda", **settings)
    one = make(whole(mesh))
    u = start(one)
    expected = one.run(u, 3 * DT, DT)
    assert np.abs(expected - u).max() > 1e-6
    for parts in (2, 3):
        many = parallel.Solver(make, mesh, parts=parts)
        np.testing.assert_array_equal(many.gather(many.run(many.scatter(u), 3 * DT, DT)), expected)


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("maxwell", {"basis": "nodal"}),
        ("maxwell", {"basis": "bernstein"}),
        ("nodal", {}),
        ("bernstein", {}),
    ],
)
def test_what_the_flux_needs_is_enough(family, settings, dtype):
    make = case(family, BAR, 4, dtype=dtype, device="cuda", **settings)
    assert 0 < roundings_of_less(make, BAR, 3, DT) < 200


def test_the_longest_stable_step(dtype):
    make = case("maxwell", BAR, 2, dtype=dtype, device="cuda")
    many = parallel.Solver(make, BAR, parts=2)
    assert many.stable_dt() == pytest.approx(make(whole(BAR)).stable_dt(), rel=1e-3)


def test_a_step_is_recorded_unless_python_has_to_run():
    for family, settings, recorded in (("maxwell", {}, True), ("euler", {}, False)):
        mesh = mesh_for(family)
        make = case(family, mesh, 3, device="cuda", **settings)
        many = parallel.Solver(make, mesh, parts=2)
        march = many.march(many.scatter(start(make(whole(mesh)))), DT, DT)
        assert bool(march.stepper.replay) == recorded


class ToItself(OneProcess):
    """All parts in one process, with NCCL's messages from the only rank to itself."""

    def __init__(self, parts):
        super().__init__(parts)
        self.ranks = NcclRanks(Comm(World(1), 0))

    def connect(self, sends, receives, device):
        if device.is_host:
            return super().connect(sends, receives, device)
        both = (
            [Packet(0, 0, packet.buffer) for packet in sorted(some, key=by_parts)]
            for some in (sends, receives)
        )
        return self.ranks.connect(*both, device)


def by_parts(packet):
    """Messages between the same ranks are matched in their order."""
    return packet.source, packet.target


@pytest.fixture
def nccl_is_here():
    try:
        nccl.library()
    except RuntimeError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize(("family", "order", "settings"), KINDS)
def test_messages_by_nccl_are_recorded(family, order, settings, monkeypatch, nccl_is_here):
    """Of Maxwell's equations with a recording, of a gas without one; many steps, many replays."""
    mesh = mesh_for(family)
    make = case(family, mesh, order, device="cuda", **settings)
    one = make(whole(mesh))
    u = start(one)
    expected = one.run(u, 20 * DT, DT)
    monkeypatch.setattr(parallel_solver, "OneProcess", ToItself)
    many = parallel.Solver(make, mesh, parts=3)
    np.testing.assert_array_equal(many.gather(many.run(many.scatter(u), 20 * DT, DT)), expected)


def test_one_rank_by_nccl(nccl_is_here):
    make = case("maxwell", BAR, 3, device="cuda")
    u = start(make(whole(BAR)))
    many = parallel.Solver(make, BAR, comm=Comm(World(1), 0))
    assert isinstance(many.transport, NcclRanks)
    found = many.gather(many.run(many.scatter(u), 3 * DT, DT))
    np.testing.assert_array_equal(found, make(whole(BAR)).run(u, 3 * DT, DT))


@pytest.mark.parametrize("numbers", [1000, 300_000])
def test_a_gpu_writes_into_its_own_memory(numbers, dtype, nccl_is_here):
    """As into a peer's: gathered, scattered, recorded; replayed with other numbers each time."""
    device, generator = find_device("cuda"), np.random.default_rng(3)
    transport = parallel.PeerRanks(Comm(World(1), 0))
    faces, nodes = numbers // 50, 10
    sent, received = generator.permutation(20 * numbers)[: 12 * faces * nodes].reshape(
        2, faces, 6, nodes
    )
    messages = (Message(0, 0, np.arange(faces), np.arange(faces)),)
    for rows in (6, 2):
        pack, unpack = (generator.random((faces, *s)).astype(dtype) for s in ((2, 6), (6, 2)))
        pack, unpack = (None, None) if rows == 6 else (pack, unpack)
        shape = faces, rows, nodes
        ends = [End(0, messages, sent, pack, shape)], [End(0, messages, received, unpack, shape)]
        halo = PeerHalo(ends, transport, device, dtype)
        state = device.zeros(20 * numbers, dtype)
        replay = device.capture(lambda halo=halo, state=state: halo.exchange([state]))
        for _ in range(5):
            before = generator.random(20 * numbers).astype(dtype)
            state[:] = device.array(before)
            replay()
            moved = before[sent] if rows == 6 else unpack @ (pack @ before[sent])
            before[received] = moved
            np.testing.assert_allclose(
                device.to_numpy(state), before, rtol=0 if rows == 6 else 100 * np.finfo(dtype).eps
            )
        del halo, replay
        gc.collect()
    assert len(transport.windows) == 1


@pytest.mark.skipif(nccl.count() < 2, reason="needs two GPUs")
def test_two_gpus_have_the_bits_of_one(nccl_is_here):
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [
            Path(sys.executable).with_name("mpiexec"),
            *("-n", "2", sys.executable, "-m", "mpi4py", root / "tests/ranks/gpus.py"),
        ],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(root), str(root / "tests")])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ranks 0 1 agreed\n"
