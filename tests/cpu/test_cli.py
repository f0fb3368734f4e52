"""The command line: what it says, what it returns, and how a family takes part in it."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import dgbook
import dgbook.cli
from dgbook.cli.main import FAMILIES, NOT_IN_THIS_VERSION, PIPE_CLOSED, VERBS, main
from dgbook.lab import records
from dgbook.lab.floor import Ceilings

ROOT = Path(__file__).parents[2]


def run(*argv):
    return subprocess.run(
        [sys.executable, "-m", "dgbook", *argv],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def plugged(tmp_path, monkeypatch):
    """A version in which the family `swept` has a command line, and only it."""
    (tmp_path / "swept.py").write_text(
        textwrap.dedent('''
        def add_run_arguments(parser):
            parser.add_argument("--n", type=int, default=8, help="points")
            parser.add_argument("--fail", action="store_true")

        def run(arguments):
            """Solve a one-dimensional problem."""
            print("ran with", arguments.n)
            return 1 if arguments.fail else None
        ''')
    )
    names = [f"dgbook.cli.{family}" for family in FAMILIES]
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
        # Importing it sets it: to be undone.
        monkeypatch.setattr(dgbook.cli, name.rpartition(".")[2], None, raising=False)
    # An editable installation finds modules past __path__, through a finder of its own.
    finders = [finder for finder in sys.meta_path if "__editable__" not in repr(finder)]
    monkeypatch.setattr(sys, "meta_path", finders)
    monkeypatch.setattr(dgbook.cli, "__path__", [str(tmp_path)])
    yield
    sys.modules.pop("dgbook.cli.swept", None)


# --------------------------------------------------------------------------------- as a program


def test_help_shows_examples():
    result = run("--help")
    assert result.returncode == 0 and not result.stderr
    for word in ("info", "run", "bench", "tune", "reproduce", "examples:"):
        assert word in result.stdout


def test_a_figure_is_reproduced_from_the_shell():
    result = run("reproduce", "klockner2009", "figure3b")
    assert result.returncode == 0 and not result.stderr
    assert result.stdout.rstrip().endswith("Verdict: matches (1 of 1 values).")


@pytest.mark.parametrize("command", ["reproduce", "reproduce chen", "info --no-ceilings"])
def test_a_reader_that_has_seen_enough_ends_it_quietly(command):
    """As `| head` does: what is left to print is met by a closed pipe, now or at the end."""
    whole = [sys.executable, "-m", "dgbook", *command.split()]
    with subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait() == PIPE_CLOSED


def test_the_version_is_the_one_that_is_installed():
    with open(ROOT / "pyproject.toml", "rb") as file:
        assert tomllib.load(file)["project"]["version"] == dgbook.__version__


# ------------------------------------------------------------------------------------------ info


def test_info_without_a_gpu(capsys, monkeypatch):
    from dgbook import gpu

    monkeypatch.setattr(gpu, "device", lambda: gpu.Device("cpu", "a processor", "No GPU: buy one."))
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    assert "No GPU: buy one." in out and "none to measure" in out and "numpy" in out


def test_info_with_a_gpu_measures_its_ceilings(capsys, monkeypatch):
    from dgbook import gpu

    device = gpu.Device("cuda", "Tesla T4", "A T4.", (7, 5), 2**34, driver="12.8", runtime="12.8")
    roofline = ModuleType("dgbook.lab.roofline")
    roofline.ceilings = lambda found: Ceilings(0.25, 7.5, 0.25)
    monkeypatch.setattr(gpu, "device", lambda: device)
    monkeypatch.setitem(sys.modules, "dgbook.lab.roofline", roofline)
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    assert "0.250 TB/s copied  [LIVE Tesla T4]" in out and "7.50 TFLOP/s in fp32" in out
    assert main(["info", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["compute_capability"] == [7, 5] and content["ceilings"]["copy_TBps"] == 0.25
    assert content["versions"]["python"]
    assert main(["info", "--no-ceilings"]) == 0
    assert "LIVE" not in capsys.readouterr().out


def test_info_shows_recorded_ceilings_of_each_gpu_once(capsys, monkeypatch):
    def record(gpu, date, copy):
        ceilings = {"copy_TBps": copy, "fp32_TFLOPs": 60.0, "fp64_TFLOPs": 30.0}
        return records.Record("a/b", gpu, "9.0", "1", "1", {}, "c", date, ceilings, ())

    all_of_them = (record("H200", "2026-12-01", 4.0), record("H200", "2026-11-01", 3.0))
    monkeypatch.setattr(records, "all_records", lambda: all_of_them)
    assert main(["info", "--no-ceilings"]) == 0
    out = capsys.readouterr().out
    assert out.count("RECORDED") == 3 and "4.00 TB/s copied  [RECORDED H200, 2026-12-01]" in out

    def not_there():
        raise FileNotFoundError("installed without the book")

    monkeypatch.setattr(records, "all_records", not_there)
    assert main(["info", "--no-ceilings"]) == 0


# -------------------------------------------------------------------------------------- families


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_lists_the_families(verb, capsys):
    assert main([verb, "--help"]) == 0
    out = capsys.readouterr().out
    assert all(family in out for family in FAMILIES)
    assert main([verb]) == 2
    assert "usage:" in capsys.readouterr().err


def test_a_family_gets_its_own_arguments(plugged, capsys):
    assert main(["run", "swept", "--n", "64"]) == 0
    assert capsys.readouterr().out == "ran with 64\n"
    assert main(["run", "swept", "--fail"]) == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_where_a_record_cannot_be_written_nothing_is_measured(
    family, tmp_path, capsys, monkeypatch
):
    def measured(arguments):
        raise AssertionError("it was measured")

    monkeypatch.setattr(f"dgbook.cli.{family}.bench", measured)
    (tmp_path / "file").touch()
    assert main(["bench", family, "--out", str(tmp_path / "file")]) == 2
    assert "file: Not a directory; allowed: a folder" in " ".join(capsys.readouterr().err.split())


def test_a_family_has_its_own_help(plugged, capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["run", "swept", "--help"])
    out = capsys.readouterr().out
    assert "python -m dgbook run swept" in out and "Solve a one-dimensional problem." in out
    assert "points (default: 8)" in out


def test_what_is_missing_is_said_so(plugged, capsys):
    assert main(["tune", "swept"]) == NOT_IN_THIS_VERSION
    assert "tune swept: there is none" in capsys.readouterr().err
    assert main(["run", "maxwell"]) == NOT_IN_THIS_VERSION
    lines = capsys.readouterr().err.splitlines()
    missing = {line.split()[0] for line in lines if line.endswith("(no run)")}
    assert missing == set(FAMILIES) - {"swept"}


def test_an_unknown_family_is_refused(capsys):
    assert main(["run", "navier"]) == 2
    err = " ".join(capsys.readouterr().err.split())
    assert "family = 'navier'; allowed are machine, linear, maxwell" in err


@pytest.mark.parametrize(("error", "code"), [(ValueError, 2), (RuntimeError, 1), (OSError, None)])
def test_a_familys_errors_become_one_sentence(plugged, capsys, monkeypatch, error, code):
    import dgbook.cli.swept as command

    def fails(arguments):
        raise error("n = -1; allowed: at least 1")

    monkeypatch.setattr(command, "run", fails)
    if code is None:
        with pytest.raises(error):  # not one of ours: its traceback is wanted
            main(["run", "swept"])
    else:
        assert main(["run", "swept"]) == code
        assert capsys.readouterr().err == "python -m dgbook: n = -1; allowed: at least 1\n"


def test_an_interruption_is_not_a_traceback(plugged, capsys, monkeypatch):
    import dgbook.cli.swept as command

    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run", interrupted)
    assert main(["run", "swept"]) == 130
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "elements", "needs"),
    [
        ("linear --cells 100000000", 10**8, 10**8 * 8 * (7 * 5 + 2 * 2)),
        (
            "linear --dim 2 --system wave --cells 9000 --order 2",
            162 * 10**6,
            162e6 * 3 * (9 * 6 + 18) * 8,
        ),
        ("linear --dim 3 --cells 200 --order 8", 48 * 10**6, 48e6 * (12 * 165 + 180) * 8),
        ("maxwell --cells 100 --order 4", 6 * 10**6, 6e6 * 6 * (12 * 35 + 60) * 8),
        ("maxwell --cells 100 --order 3 --dtype float32", 6 * 10**6, 6e6 * 6 * (12 * 20 + 40) * 4),
        ("acoustics --cells 100 --basis bernstein", 6 * 10**6, 6e6 * 4 * (10 * 35 + 600) * 8),
        ("euler --box 5000", 50 * 10**6, 50e6 * 4 * 11 * 6 * 8),
        ("maxwell --cells 100 --order 4 --device cpu", 6 * 10**6, 6e6 * 6 * (6 * 35 + 60) * 8),
        # The matrix twice, elements, and 140 vectors of 2 unknowns for each of 1.5 faces.
        (
            "hdg --cells 5000 --order 1 --device cpu",
            50 * 10**6,
            50e6 * (2 * 1.5 * 20 + 21 + 140 * 3) * 8,
        ),
        ("hdg --problem cylinder --around 8000 --linear gmres --device cpu", None, None),
        ("swept --n 1000000000 --device cpu", None, 4 * 8e9),
    ],
)
def test_what_the_host_cannot_hold_is_refused_at_once(
    options, elements, needs, capsys, monkeypatch
):
    def made(*arguments, **keywords):
        raise AssertionError("it was made")

    monkeypatch.setattr("dgbook.lab.linear.box", made)
    for name in ("waves", "euler", "hdg"):
        monkeypatch.setattr(f"dgbook.cli.{name}.box", made)
    monkeypatch.setattr("dgbook.cli.hdg.cylinder_mesh", made)
    monkeypatch.setattr("dgbook.swept.solver.Solver.initial", made)
    monkeypatch.setattr("dgbook.arguments.host_bytes", lambda: 2**32)
    told = [] if "--device" in options else ["--device", "reference"]
    assert main(["run", *options.split(), *told]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "allowed: the 4.0 GiB of the host" in error
    assert not elements or f", {elements} elements of order" in error
    assert not needs or f"needs about {needs / 2**30:.1f} GiB" in error


def test_what_no_memory_was_left_for_is_not_a_traceback(plugged, capsys, monkeypatch):
    import dgbook.cli.swept as command

    def fails(arguments):
        raise MemoryError("Unable to allocate 7.28 TiB")

    monkeypatch.setattr(command, "run", fails)
    assert main(["run", "swept"]) == 1
    assert capsys.readouterr().err == "python -m dgbook: Unable to allocate 7.28 TiB\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("linear --order 1 --t-end 1e300", "t_end = 1e+300: 3.2e+301 steps of dt = 0.03125"),
        ("maxwell --order 1 --cells 1 --t-end 1e300", "t_end = 1e+300: "),
        ("acoustics --order 1 --cells 1 --t-end 1e300", "t_end = 1e+300: "),
        ("euler --order 1 --box 2 --t-end 1e300", "t_end = 1e+300: "),
        ("euler --order 1 --box 2 --dt 1e-300", "t_end = 1.0: 1e+300 steps of dt = 1e-300"),
        ("swept --steps 1000000000001", "--steps 1000000000001; allowed: 1 to 1000000000000"),
    ],
)
def test_more_steps_than_anybody_waits_for_are_refused(options, message, capsys):
    assert main(["run", *options.split(), "--device", "cpu"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"python -m dgbook: {message}")
    assert "allowed: " in error and error.count("\n") == 1


# ------------------------------------------------------------------------------------- reproduce


def test_reproduce_lists_all_papers(capsys):
    from dgbook.lab import reproduce

    assert main(["reproduce"]) == 0
    out = capsys.readouterr().out
    for paper in reproduce.papers():
        assert f"{paper.name}: {paper.authors}" in out
        for item in paper.items:
            assert f"  {item.id:9} {item.kind:12} {item.state}" in out
    assert max(map(len, out.splitlines())) <= 100


def test_reproduce_lists_one_paper(capsys):
    assert main(["reproduce", "roca2011"]) == 0
    out = capsys.readouterr().out
    assert "16 tables, figures and panels" in out and "klockner2009" not in out


def test_reproduce_takes_usual_spellings_and_whole_figures(capsys):
    assert main(["reproduce", "klockner2009", "Figure", "3"]) == 0
    out = capsys.readouterr().out
    assert "Figure 3(a)" in out and "Figure 3(b)" in out and out.count("Verdict: matches") == 2


def test_reproduce_tells_what_is_not_here(capsys):
    assert main(["reproduce", "klockner2009", "table1"]) == 0
    assert "cannot be reproduced because" in capsys.readouterr().out


def test_reproduce_exit_codes(capsys, monkeypatch):
    from dgbook.lab import papers as registry
    from dgbook.lab.papers import Item, Ours, Paper

    def item(number, **fields):
        return Item(number, "Made-up values", "count", 1, rows={"r": {"c": 1.0}}, **fields)

    items = (
        item("Table 1", compute=lambda: Ours({"r": {"c": 2.0}})),
        item("Table 2", compute=lambda: Ours({"r": {"c": 2.0}}, because="it is made up")),
        item("Table 3"),
    )
    paper = Paper("chen", "nobody", "nothing", "no hardware", items)
    monkeypatch.setattr(registry, "paper", lambda name: paper)
    monkeypatch.setattr("dgbook.lab.reproduce.paper", lambda name: paper)
    codes = [main(["reproduce", "chen", f"table{i}"]) for i in (1, 2, 3)]
    assert codes == [1, 0, NOT_IN_THIS_VERSION]


@pytest.mark.parametrize("wrong", [["chan"], ["chen", "table9"]])
def test_reproduce_refuses_what_does_not_exist(wrong, capsys):
    assert main(["reproduce", *wrong]) == 2
    assert "allowed are" in (err := capsys.readouterr().err) or "chen has table1" in err
