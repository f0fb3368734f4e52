"""Messages by NCCL without a GPU: what is called, the same bits, wrong exchanges, what is refused.

The ranks are threads, and what they call in place of CuPy's NCCL copies NumPy arrays.
"""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from broken import parallel as broken
from parallel_cases import DT, REFERENCE, STEPS, by_rows, case, in_parts, mesh_of, start, whole
from threads_as_ranks import Comm, Nccl, World

from dgbook import parallel
from dgbook.gpu import nccl
from dgbook.gpu.device import device as find_device
from dgbook.gpu.nccl import Messages
from dgbook.parallel import solver as parallel_solver
from dgbook.parallel.transport import NcclRanks

FAMILIES = ("linear", "maxwell", "nodal", "bernstein", "euler")


class OnTheHost(NcclRanks):
    """Sends arrays of the host as it would those of a GPU."""

    def connect(self, sends, receives, device):
        return super().connect(sends, receives, find_device("simulator"))


def by_threads(ranks, program, monkeypatch, messages=Messages):
    """What ``program(comm)`` returns on each of some ranks, and what they called."""
    world = World(ranks)
    libraries = [Nccl(world, rank) for rank in range(ranks)]

    def transport(comm):
        library = libraries[comm.rank]
        return OnTheHost(comm, messages(library, library))

    monkeypatch.setattr(parallel_solver, "MpiRanks", transport)
    found = world.run(lambda rank: program(Comm(world, rank)))
    return found, [library.log for library in libraries]


@pytest.mark.parametrize("family", FAMILIES)
def test_any_number_of_ranks_gives_the_same_bits(family, monkeypatch):
    mesh = mesh_of(family, 2 if family in ("maxwell", "nodal", "bernstein") else 5)
    make = case(family, mesh, 2, device=REFERENCE)
    one = by_rows(make(whole(mesh)))
    u = start(one)
    expected = one.run(u, STEPS * DT, DT)
    for ranks in (1, 2, 3):
        found, logs = by_threads(
            ranks,
            lambda comm: in_parts(lambda piece: by_rows(make(piece)), mesh, u, comm=comm),
            monkeypatch,
        )
        np.testing.assert_array_equal(found[0], expected)
        assert found[1:] == [None] * (ranks - 1)
        assert all(bool(log) == (ranks > 1) for log in logs)  # one rank sends nothing


def test_what_is_called(monkeypatch):
    """Before each stage one group, with a message from and one to each neighbor."""
    mesh = mesh_of("linear", 5)
    make = case("linear", mesh, 2, device=REFERENCE)

    def program(comm):
        many = parallel.Solver(make, mesh, comm=comm)
        many.run(many.interpolate(lambda x, y: [x, y, x]), STEPS * DT, DT)
        return many

    solvers, logs = by_threads(3, program, monkeypatch)
    stages = STEPS * len(solvers[0].method.A)
    for rank, (solver, log) in enumerate(zip(solvers, logs, strict=True)):
        edge = solver.pieces[0]
        numbers = 3 * solver.element.face_nodes.shape[1]  # three fields at the nodes of a face
        of = {"recv": edge.receives, "send": edge.sends}
        others = {
            what: [(m.source if what == "recv" else m.target) // 2 for m in messages]
            for what, messages in of.items()
        }
        group = [
            (what, other, len(message.faces) * numbers, 0)
            for what, messages in of.items()
            for other, message in zip(others[what], messages, strict=True)
            if other != rank
        ]
        assert group and log == ["start", *group, "end"] * stages


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (broken.Ungrouped, "sent what nobody took"),
        (broken.SwappedPeers, "sent"),
        (broken.FirstTwice, None),
    ],
)
def test_wrong_exchanges_are_refused(mistake, message, monkeypatch):
    mesh = mesh_of("maxwell", 3)
    make = case("maxwell", mesh, 1, device=REFERENCE)
    one = by_rows(make(whole(mesh)))
    u = start(one)

    def attempt():
        return by_threads(
            3,
            lambda comm: in_parts(lambda piece: by_rows(make(piece)), mesh, u, comm=comm),
            monkeypatch,
            mistake,
        )

    if message:
        with pytest.raises(RuntimeError, match=message):
            attempt()
    else:
        (found, *_), _ = attempt()
        assert np.abs(found - one.run(u, STEPS * DT, DT)).max() > 1e-3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_are_everybodys(dtype):
    """In place, of as many numbers as there are, and no matter who asks first."""
    world = World(3)

    def program(rank):
        library = Nccl(world, rank)
        transport = NcclRanks(Comm(world, rank), Messages(library, library))
        arrays = [np.arange(6.0).reshape(2, 3).astype(dtype) * (rank + 1) for _ in range(2)]
        transport.add_up(arrays[0], find_device("simulator"))
        transport.add_up(arrays[1], find_device("cpu"))
        return arrays, library.log

    for (by_nccl, on_host), log in world.run(program):
        np.testing.assert_array_equal(by_nccl, 6 * np.arange(6).reshape(2, 3))
        np.testing.assert_array_equal(on_host, by_nccl)
        assert by_nccl.dtype == dtype and log == [("sum", 0, 6, 0)]


def test_ranks_connect(monkeypatch):
    """All have the first rank's identity, and each a GPU of its own."""
    world, here = World(2), threading.local()
    gpus = ["host 0000:01:00.0", "host 0000:02:00.0"]
    monkeypatch.setattr(nccl, "gpu", lambda: gpus[here.rank])
    monkeypatch.setattr(nccl, "library", lambda: Nccl(world, here.rank))

    def connected(rank):
        here.rank = rank
        return nccl.connected(Comm(world, rank)).communicator.rank

    assert world.run(connected) == [0, 1]
    here.rank, alone = 0, World(1)
    monkeypatch.setattr(nccl, "library", lambda: Nccl(alone, 0))
    assert nccl.connected().communicator.rank == 0
    monkeypatch.setattr(nccl, "library", lambda: Nccl(world, here.rank))
    gpus[1] = gpus[0]
    with pytest.raises(RuntimeError, match="2 ranks have 1 GPUs: 2 of them share host 0000:01"):
        world.run(connected)


def test_what_nccl_needs(monkeypatch):
    nccl.check_own_gpus(["a 1", "a 2", "b 1"])
    with pytest.raises(RuntimeError, match="3 ranks have 2 GPUs: 2 of them share a 1; allowed: a"):
        nccl.check_own_gpus(["a 1", "b 1", "a 1"])
    monkeypatch.setattr(nccl, "HAS_CUPY", False)
    with pytest.raises(RuntimeError, match="several GPUs need NCCL, which is not installed: pip"):
        nccl.library()
    assert nccl.count() == 0
    nccl.take_gpu(3)  # without a GPU there is none to take
    array = np.zeros((2, 3), np.float32)
    assert nccl.address(array[1:]) == array.ctypes.data + 12
    here = SimpleNamespace(__cuda_array_interface__={"data": (4096, False)})
    assert nccl.address(here) == 4096
