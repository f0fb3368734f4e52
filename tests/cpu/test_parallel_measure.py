"""What is measured of meshes in parts makes valid records: with a clock that does not run."""

import json
import sys

import pytest
import stopped_clock
from stopped_clock import SESSION, SIMULATOR
from threads_as_ranks import Comm, Nccl, World

from dgbook.cli import parallel as bench
from dgbook.cli.main import main
from dgbook.gpu import nccl
from dgbook.lab import parallel as measure
from dgbook.lab import records

pytest.importorskip("pymetis")


@pytest.fixture(autouse=True)
def stopped(monkeypatch):
    """Kernels run once, in the simulator, on next to no elements."""
    monkeypatch.setattr(measure, "measure", stopped_clock.timed)
    monkeypatch.setattr("dgbook.lab.session.beyond_cache", lambda *_: True)
    monkeypatch.setattr(measure, "SHORTEST", 0.0)
    monkeypatch.setattr(measure, "FEWEST_SAMPLES", 20)


def made(what, dofs=(144,), parts=()):
    rows = list(measure.RECORDS[what](1, "float32", dofs, parts, SESSION))
    records.validate(stopped_clock.content(f"parallel/{what}", rows))
    assert all(bench.line(row, SIMULATOR) for row in rows)
    return rows


def test_the_split_of_a_cube():
    """Six tetrahedra, 144 degrees of freedom: of two parts of three all are at the edge."""
    rows = made("split", parts=(2,))
    stage = stopped_clock.SECONDS / 5  # of a step's five
    assert all(row["seconds_median"] == pytest.approx(stage) for row in rows)
    assert [(row["path"], row["size"]["parts"], row["variant"]) for row in rows] == [
        ("whole", 0, measure.RECORDED),
        *[("split", 2, how) for how in (measure.RECORDED, measure.PYTHON)],
    ]
    assert all(row["dofs"] == 144 and row["size"]["K"] == 6 for row in rows)
    whole, two, _ = (row["size"] for row in rows)
    assert whole["edge"] == whole["sent"] == 0
    # Both ways across each cut face, six numbers of four bytes at its three nodes.
    assert 0 < two["edge"] <= 6 and two["sent"] % (2 * 6 * 4 * 3) == 0 < two["sent"]


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
