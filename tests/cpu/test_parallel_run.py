"""python -m dgbook run FAMILY --parts: what is written, resumed and refused in one process."""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace

import meshio
import numpy as np
import pytest
from runs import at_points, at_step, files_of

from dgbook import parallel
from dgbook.cli import checkpoint, ranks, running
from dgbook.cli.main import main
from dgbook.gpu import nccl

ROOT = Path(__file__).parents[2]
TWO_BOXES = ROOT / "tests/data/two_boxes_4.1_ascii.msh"


def run(*options):
    return main(["run", *" ".join(map(str, options)).split(), "--device", "cpu"])


def constants_of(path):
    """Sorted, what cells have, in a .vtu or in all pieces of a .pvtu."""
    found = [meshio.read(file).cell_data for file in files_of(path)]
    assert all(list(one) == list(found[0]) for one in found)
    return {n: np.sort(np.concatenate([one[n][0] for one in found])) for n in found[0]}


@pytest.mark.parametrize(
    ("options", "name", "constants"),
    [
        (f"maxwell --mesh {TWO_BOXES} --order 1 --t-end 0.2 --epsilon copper=3", "E", ["epsilon"]),
        ("acoustics --cells 2 --order 2 --t-end 0.1 --kappa 2 --basis bernstein", "pressure", []),
        (
            "euler --box 6 --order 1 --t-end 0.3 --boundary x-=farfield --boundary x+=farfield",
            "rho",
            [],
        ),
    ],
)
def test_pieces_are_what_the_whole_mesh_would_be(options, name, constants, tmp_path, capsys):
    assert run(options, "--output", tmp_path / "whole.vtu") == 0
    alone = capsys.readouterr().out
    assert run(options, "--parts 2 --output", tmp_path / "two.vtu") == 0
    together = capsys.readouterr().out
    assert "2 parts in one process" in together and "two.pvtu" in together
    # Energies, errors and numbers of steps, as they are shown.
    for word in ("energy", "entropy", "L2 error"):
        lines = [[ln for ln in text.splitlines() if word in ln] for text in (alone, together)]
        assert lines[0] == lines[1]
    whole, mine = at_points(tmp_path / "whole.vtu", name), at_points(tmp_path / "two.pvtu", name)
    np.testing.assert_allclose(mine, whole, rtol=0, atol=1e-12)
    cells, found = constants_of(tmp_path / "whole.vtu"), constants_of(tmp_path / "two.pvtu")
    assert list(found) == constants == list(cells)
    for constant in constants:
        np.testing.assert_array_equal(found[constant], cells[constant])
    root = ElementTree.parse(tmp_path / "two.pvtu").getroot()
    declared = [array.get("Name") for array in root.find("PUnstructuredGrid/PCellData")]
    assert declared == constants


def test_a_checkpoint_of_parts_and_one_of_the_whole(tmp_path, monkeypatch):
    """Each goes on in the other: the same state to rounding, at the same steps."""
    options = "acoustics --cells 2 --order 2 --t-end 0.2 --basis bernstein --output"
    assert run(options, tmp_path / "whole.vtu") == 0
    expected = at_points(tmp_path / "whole.vtu", "pressure")
    for first, second in (("", "--parts 3"), ("--parts 2", ""), ("--parts 2", "--parts 3")):
        path = tmp_path / "cut.vtu"

        def interrupt():
            raise KeyboardInterrupt

        at_step(monkeypatch, 4, interrupt)
        assert run(options, path, "--checkpoint-every 0", first) == 130
        assert checkpoint.is_checkpoint(tmp_path / "cut.checkpoint")
        assert run(options, path, "--resume", second) == 0
        suffix = ".pvtu" if second else ".vtu"
        found = at_points(path.with_suffix(suffix), "pressure")
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
        assert not (tmp_path / "cut.checkpoint").exists()


@pytest.mark.parametrize("system", ["advection", "wave"])
def test_the_linear_family(system, capsys):
    assert run(f"linear --dim 2 --cells 4 --system {system} --t-end 0.1") == 0
    alone = capsys.readouterr().out.splitlines()
    assert run(f"linear --dim 2 --cells 4 --system {system} --t-end 0.1 --parts 3") == 0
    together = capsys.readouterr().out.splitlines()
    assert together[1].startswith("3 parts in one process: ")
    assert [ln for ln in together if "L2" in ln] == [ln for ln in alone if "L2" in ln]


def test_a_family_without_parts_in_several_ranks(monkeypatch):
    monkeypatch.setattr(ranks, "world", lambda: SimpleNamespace(Get_size=lambda: 4))
    ranks.begin("maxwell", SimpleNamespace(parts=None, device="cpu", gpus=None), [])
    with pytest.raises(ValueError, match="run hdg in 4 ranks; allowed: one process, or a family"):
        ranks.begin("hdg", SimpleNamespace(device="cpu"), [])


def on_gpus(gpus, *options):
    return main(f"run maxwell --cells 1 --gpus {gpus}".split() + list(options))


def test_several_gpus_are_started(monkeypatch):
    """By an mpiexec in this process's place, with the same command for all ranks."""
    started = []

    def execv(path, command):
        started.append(command)
        raise KeyboardInterrupt  # it does not come back

    monkeypatch.setattr(ranks.os, "execv", execv)
    monkeypatch.setattr(nccl, "count", lambda: 2)
    monkeypatch.setattr(nccl, "library", lambda: None)
    assert on_gpus(2, "--device", "cuda") == 130
    ((mpiexec, *command),) = started
    assert Path(mpiexec).name == "mpiexec"
    assert command[:2] == ["-n", "2"] and command[3:7] == ["-m", "mpi4py", "-m", "dgbook"]
    assert command[7:] == "run maxwell --cells 1 --gpus 2 --device cuda".split()


@pytest.mark.parametrize(
    ("gpus", "options", "message", "code"),
    [
        (0, "", "--gpus must be an integer >= 1, not 0", 2),
        (3, "", "--gpus 3: this machine has 2; allowed: up to so many", 2),
        (2, "--parts 2", "--gpus 2 with --parts 2; allowed: one of them", 2),
        (2, "--device cpu", "--gpus 2 with --device cpu; allowed: one of them", 2),
        (2, "", "several GPUs need NCCL, which is not installed: pip install", 1),
    ],
)
def test_gpus_that_cannot_be(gpus, options, message, code, monkeypatch, capsys):
    def missing():
        raise RuntimeError(nccl.MISSING)

    monkeypatch.setattr(nccl, "count", lambda: 2)
    monkeypatch.setattr(nccl, "library", missing)
    assert on_gpus(gpus, *options.split()) == code
    assert message in " ".join(capsys.readouterr().err.split())


def test_gpus_without_an_mpi(monkeypatch, capsys):
    def launcher():
        raise RuntimeError("MPI ranks need mpiexec, which is not installed")

    monkeypatch.setattr(ranks, "launcher", launcher)
    monkeypatch.setattr(nccl, "count", lambda: 2)
    monkeypatch.setattr(nccl, "library", lambda: None)
    assert on_gpus(2) == 1
    assert "MPI ranks need mpiexec, which is not installed" in capsys.readouterr().err


def test_ranks_that_are_there_take_their_gpus(monkeypatch):
    taken = []
    shared = SimpleNamespace(Get_rank=lambda: 3)
    comm = SimpleNamespace(Get_size=lambda: 4, Split_type=lambda kind: shared)
    monkeypatch.setattr(ranks, "world", lambda: comm)
    monkeypatch.setattr(nccl, "take_gpu", taken.append)
    given = SimpleNamespace(parts=None, device="auto", gpus=4)
    ranks.begin("maxwell", given, [])
    assert taken == [3]
    given.gpus = 2
    with pytest.raises(ValueError, match="--gpus 2 in 4 ranks; allowed: a GPU for each rank"):
        ranks.begin("maxwell", given, [])


def test_what_srun_started_is_counted(monkeypatch):
    """Ranks that do not know of one another would each solve the whole problem."""
    monkeypatch.setenv(ranks.SRUN, "4")
    for name in ("mpi4py.run", "mpi4py.MPI"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert ranks.world() is None  # runs of their own
    monkeypatch.setitem(sys.modules, "mpi4py.run", None)
    with pytest.raises(RuntimeError, match="or srun started 4 processes, and mpi4py, with MPICH"):
        ranks.world()


def test_exchanges_by_memory_are_of_ranks_with_gpus(monkeypatch):
    """What the solver gets in place of a communicator, and who is told that there are no GPUs."""
    comm, given = SimpleNamespace(Get_size=lambda: 2), []
    monkeypatch.setattr(ranks, "world", lambda: comm)
    monkeypatch.setattr(parallel, "PeerRanks", lambda comm: ("by memory", comm))
    monkeypatch.setattr(
        parallel, "Solver", lambda make, mesh, parts, comm, traces: given.append(comm)
    )
    on = SimpleNamespace(device="simulator", parts=None, traces="whole")
    for on.exchange in ("nccl", "peers"):
        running.solver_of(on, None, None)
    assert given == [comm, ("by memory", comm)]
    on.device = "cpu"
    with pytest.raises(
        ValueError, match="--exchange peers in ranks without GPUs; allowed: with --"
    ):
        running.solver_of(on, None, None)


def test_what_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for options, message in (
        ("maxwell --cells 1 --parts 0", "parts must be an integer"),
        ("maxwell --cells 1 --parts 7", "parts must be an integer from 1 to 6"),
        ("maxwell --cells 1 --traces flux", "--traces flux without parts"),
        ("euler --box 4 --parts 2 --traces flux", "their flux needs all of them"),
        ("maxwell --cells 1 --exchange peers", "--exchange peers in one process"),
        ("acoustics --cells 1 --parts -1", "parts must be an integer"),
    ):
        assert run(options, "--output a.vtu") == 2
        assert message in " ".join(capsys.readouterr().err.split())
        assert not list(tmp_path.iterdir())
