"""Several ranks of MPI, started by mpiexec: the same bits, one output, and one end for all."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from emulation import needs_compiler
from runs import at_points

from dgbook.cli.main import main

ROOT = Path(__file__).parents[2]
MPIEXEC = Path(sys.executable).with_name("mpiexec")
RUN = "--cells 2 --order 2 --t-end 0.2 --device cpu"


def ranks(count, *command, cwd=ROOT):
    """What `count` ranks of Python printed, to stdout and stderr, and the code."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    done = subprocess.run(
        [MPIEXEC, "-n", str(count), sys.executable, *map(str, command)],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    return done.stdout, done.stderr, done.returncode


def test_two_ranks_have_the_bits_of_one():
    out, err, code = ranks(2, ROOT / "tests/ranks/program.py")
    assert code == 0, err
    assert out == "rank 0 rank 1 agreed, measured, solved, swept, refused\n"


@needs_compiler
def test_ranks_write_into_the_memory_of_others(tmp_path):
    """Three parts have the whole mesh's bits, by emulated kernels; wrong kernels are refused."""
    out, err, code = ranks(3, "-m", "mpi4py", ROOT / "tests/ranks/peers.py", tmp_path)
    assert code == 0, err
    assert out == "rank 0 rank 1 rank 2 agreed, refused\n"


STOPPED = """
import os, signal, sys
from mpi4py import MPI
from dgbook.cli.main import main
from dgbook.nodal.solving import March

how, options = sys.argv[1], sys.argv[2:]
step = March.step

def stopped(march):
    if MPI.COMM_WORLD.Get_rank() == 1:
        if how == "fails" and march.done == 5:
            raise RuntimeError("a rank has lost its mind")
        if how == "is asked" and march.done == 6:
            os.kill(os.getpid(), signal.SIGINT)
    step(march)

March.step = stopped
sys.exit(main(options))
"""
"""The command line, of which the second rank fails in a step, or is asked to stop."""


def test_ranks_stop_and_go_on_together(tmp_path, monkeypatch, capsys):
    """Two ranks write frames, until one of them fails; later one is interrupted; parts go on."""
    program = tmp_path / "stopped.py"
    program.write_text(STOPPED)
    options = f"run maxwell {RUN} --every 2 --output two.vtu --checkpoint-every".split()
    out, err, code = ranks(2, program, "fails", *options, 0, cwd=tmp_path)
    assert code == 1 and "rank 1: python -m dgbook: a rank has lost its mind" in err
    assert out.count("2 parts in 2 processes") == 1 and "48 tetrahedra of order 2" in out
    assert (tmp_path / "two.checkpoint").exists()
    # The first rank waits for nobody, speaks for all, and all have taken the same steps.
    out, err, code = ranks(2, program, "is asked", *options, 60, "--resume", cwd=tmp_path)
    assert code == 130 and "of which 5 are done" in out
    assert err.count("stopped after step 7 of 9, t = 0.155556; the same command with") == 1
    monkeypatch.chdir(tmp_path)
    assert main([*options, "60", "--resume", "--parts", "3"]) == 0
    assert "of which 7 are done" in capsys.readouterr().out
    # What ranks wrote, and what one process wrote, is what the whole mesh's solver writes.
    assert main(f"run maxwell {RUN} --every 2 --output one.vtu".split()) == 0
    frames = sorted(tmp_path.glob("one_*.vtu"))
    assert len(frames) > 3 and not (tmp_path / "two.checkpoint").exists()
    for number in (1, 4, len(frames) - 1):
        mine = at_points(tmp_path / f"two_{number:04d}.pvtu", "E")
        theirs = at_points(tmp_path / f"one_{number:04d}.vtu", "E")
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12)
    listed = ElementTree.parse(tmp_path / "two.pvd").getroot().iter("DataSet")
    assert [s.get("file") for s in listed] == [f"two_{n:04d}.pvtu" for n in range(len(frames))]


def test_what_all_ranks_refuse_is_told_once(tmp_path):
    out, err, code = ranks(2, "-m", "mpi4py", "-m", "dgbook", "run", "maxwell", "--parts", "2")
    assert code == 2 and not out
    assert err.count("--parts 2 in 2 ranks; allowed: each rank has one part") == 1


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({}, "2 processes were started: several ranks need mpi4py and an MPI"),
        ({"FAKE": "1"}, "are mixed: mpiexec or srun started 2 processes, and mpi4py, with MPICH"),
    ],
)
def test_a_missing_and_a_wrong_mpi(setting, message, tmp_path):
    """An mpiexec that mpi4py knows nothing of: its environment is all that there is of it."""
    code = "import sys\n" + ("" if setting else "sys.modules['mpi4py'] = None\n")
    code += "from dgbook.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "maxwell", "--cells", "1"],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMPI_COMM_WORLD_SIZE": "2"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1 and message in " ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())
