"""What is measured of meshes in parts makes valid records: with a clock that does not run."""

import json
import sys

import numpy as np
import pytest
import stopped_clock
from stopped_clock import SESSION, SIMULATOR
from threads_as_ranks import Comm, Nccl, World

from dgbook import parallel
from dgbook.cli import parallel as bench
from dgbook.cli.main import main
from dgbook.gpu import device as find_device
from dgbook.gpu import nccl
from dgbook.gpu.timing import Timing
from dgbook.lab import parallel as measure
from dgbook.lab import records
from dgbook.mesh import box
from dgbook.parallel.transport import Packet

pytest.importorskip("pymetis")


@pytest.fixture(autouse=True)
def stopped(monkeypatch):
    """Kernels run once, in the simulator, on next to no elements."""
    monkeypatch.setattr("dgbook.lab.session.beyond_cache", lambda *_: True)
    monkeypatch.setattr(measure, "SHORTEST", 0.0)
    monkeypatch.setattr(measure, "FEWEST_SAMPLES", 20)


def made(what, dofs=(144,), parts=()):
    rows = list(measure.RECORDS[what](1, "float32", dofs, parts, SESSION))
    records.validate(stopped_clock.content(f"parallel/{what}", rows))
    assert all(bench.line(row, SIMULATOR) for row in rows)
    return rows


@pytest.mark.parametrize("installed", [True, False])
def test_one_part_of_a_cube(installed, monkeypatch):
    """Six tetrahedra, cut in two: what a part sends to the other comes back."""

    def connected():
        if not installed:
            raise RuntimeError("no NCCL")
        library = Nccl(World(1), 0)
        return nccl.Messages(library, library)

    monkeypatch.setattr(nccl, "connected", connected)
    monkeypatch.setattr(measure, "stepping", lambda *_: int)
    monkeypatch.setattr(measure, "measure", lambda *_: Timing((stopped_clock.SECONDS,) * 20))
    if installed:
        rows = made("split", parts=(2,))
    else:
        with pytest.warns(UserWarning, match="nothing measured with NCCL: no NCCL"):
            rows = made("split", parts=(2,))
    stage = stopped_clock.SECONDS / 5  # of a step's five
    assert all(row["seconds_median"] == pytest.approx(stage) for row in rows)
    assert [(row["path"], row["size"]["parts"], row["variant"]) for row in rows] == [
        ("whole", 0, measure.RECORDED),
        *[("part", 2, how) for how in (measure.RECORDED, measure.PYTHON)],
        *([("part", 2, measure.BY_NCCL)] if installed else []),
    ]
    whole, *parts = (row["size"] for row in rows)
    assert whole["edge"] == whole["sent"] == 0 and whole["K"] == 6
    for part in parts:
        assert part["edge"] <= part["K"] == 3
        # On each cut face six numbers of four bytes at its three nodes.
        assert part["sent"] % (6 * 4 * 3) == 0 < part["sent"]


@pytest.mark.parametrize("by_nccl", [False, True])
def test_what_a_part_sends_comes_back(by_nccl):
    """To each neighbor something else, in as many numbers as come from it."""
    library = Nccl(World(1), 0)
    transport = measure.OnePart(3, nccl.Messages(library, library) if by_nccl else None)
    sent, received = ([np.full(n, n * sign, np.float32) for n in (4, 6)] for sign in (1.0, -1.0))
    sends = [Packet(0, other, array) for other, array in zip((1, 2), sent, strict=True)]
    receives = [Packet(other, 0, array) for other, array in zip((1, 2), received, strict=True)]
    connection = transport.connect(sends, receives, SIMULATOR)
    connection.start()
    connection.finish()
    assert [array.tolist() for array in received] == [[4.0] * 4, [6.0] * 6]
    assert bool(library.log) == by_nccl and transport.leads and transport.total(3) == 3


def test_a_part_takes_steps():
    """Of noise next to nothing changes, and nothing grows, whatever comes in."""
    solver = parallel.Solver(
        measure.make(1, "float64", find_device("cpu")), box((2, 2, 2)), comm=measure.OnePart(2)
    )
    step = measure.stepping(solver)
    before = step.func.__self__.download()
    for _ in range(3):
        step()
    for piece, old, new in zip(solver.pieces, before, step.func.__self__.download(), strict=True):
        own = slice(piece.mesh.owned)
        assert 0 < np.abs(new[:, own] - old[:, own]).max() < 1e-3


def told(gpus, asked):
    """What ranks answer that are threads, by NCCL that copies NumPy arrays."""
    world = World(gpus)

    def rank(number):
        comm, library = Comm(world, number), Nccl(world, number)
        messages = nccl.Messages(library, library)
        found = []
        for what, *how in asked:
            if what == "exchange":
                found.append(measure.exchanged(comm, SIMULATOR, messages, *how))
            else:
                found.append(measure.stepped(comm, SIMULATOR, *how))
        return found

    return world.run(rank)[0]


def test_scaling(monkeypatch):
    """One GPU; what more of them answer looks the same."""
    monkeypatch.setattr(nccl, "count", lambda: 1)
    monkeypatch.setattr(measure, "stepping", lambda _: int)  # which is called, and does nothing
    monkeypatch.setattr(measure, "answers", told)
    for what in ("weak", "strong"):
        (row,) = made(what)
        assert row["path"] == what and row["size"]["gpus"] == row["size"]["parts"] == 1
    monkeypatch.setattr(nccl, "count", lambda: 7)
    assert measure.gpu_counts() == [1, 2, 4]
    asked = []
    monkeypatch.setattr(measure, "answers", lambda *how: asked.append(how) or [])
    made_of = {
        what: list(measure.RECORDS[what](4, "float32", (8,), (), SESSION))
        for what in ("weak", "strong")
    }
    assert made_of == {"weak": [], "strong": []}
    assert asked == [
        *[(n, [("weak", 4, "float32", 8 * n)]) for n in (1, 2, 4)],
        *[(n, [("strong", 4, "float32", 8)]) for n in (1, 2, 4)],
    ]


def test_exchanges(monkeypatch):
    monkeypatch.setattr(nccl, "count", lambda: 1)
    with pytest.raises(RuntimeError, match="exchange needs two GPUs or more; allowed here: split"):
        made("exchange")
    monkeypatch.setattr(nccl, "count", lambda: 2)
    monkeypatch.setattr(measure, "EXCHANGED", (4096, 8192))
    monkeypatch.setattr(measure, "answers", told)
    rows = made("exchange", ())
    assert [row["size"]["bytes"] for row in rows] == [4096, 4096, 8192, 8192]
    assert {row["variant"] for row in rows} == {measure.RECORDED, measure.PYTHON}
    assert all(row["seconds_median"] > 0 for row in rows)


def test_ranks_make_the_same_number_of_calls(monkeypatch):
    """The slowest decides, or their messages would not meet."""
    world, calls = World(2), [0, 0]
    monkeypatch.setattr(measure, "SHORTEST", 2e-3)

    def rank(number):
        def function():
            calls[number] += 1

        return measure.seconds_together(Comm(world, number), SIMULATOR, function)

    first, second = world.run(rank)
    assert first == second and calls[0] == calls[1] > 20


def test_ranks_answer(monkeypatch):
    monkeypatch.setattr(measure, "world", lambda: Comm(World(1), 0))
    monkeypatch.setattr(measure, "find_device", lambda _: SIMULATOR)
    monkeypatch.setattr(nccl, "take_gpu", lambda number: None)
    monkeypatch.setattr(measure, "stepping", lambda _: int)
    answers = []
    monkeypatch.setattr(measure, "tell", lambda told: answers.append(json.loads(json.dumps(told))))
    asked = [1, [["weak", 1, "float32", 144]]]
    monkeypatch.setattr(sys, "argv", ["-c", json.dumps(asked)])
    measure.answer()
    ((seconds, facts),) = answers
    assert len(seconds) == 20 and facts["K"] == 6
    asked[0] = 2
    monkeypatch.setattr(sys, "argv", ["-c", json.dumps(asked)])
    with pytest.raises(RuntimeError, match="1 ranks of 2: mpiexec is not of mpi4py's MPI"):
        measure.answer()


def test_the_command(tmp_path, capsys):
    assert main(["bench", "parallel", "splits", "--out", str(tmp_path)]) == 2
    assert "RECORD = 'splits'; allowed are split, exchange" in capsys.readouterr().err
    assert main(["bench", "parallel", "--out", str(tmp_path)]) == 1  # there is no GPU here
