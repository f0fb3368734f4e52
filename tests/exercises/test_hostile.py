"""Grading stands what students hand in, by accident or on purpose: files, names and code.

A class of seven notebooks is graded once, on a small assignment; what each did is told by tests.
"""

import csv
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import assignments as tool
import nbformat
import pytest
from bs4 import BeautifulSoup
from grading import execution, feedback, sandbox, submissions
from grading.execution import Limits
from grading.submissions import find_submissions, normalize, read_cells, read_file
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.api import Gradebook

NAME = "small"
# As file systems of Macs have it: the umlaut in two pieces.
JOERG = unicodedata.normalize("NFD", "Jörg O'Neil")
MARK = f"hostile-{os.getpid()}"  # in the command line of what must not stay


def _cell(kind, name, source="", points=0):
    make = new_markdown_cell if kind == "manual" else new_code_cell
    flags = {"grade": kind in ("test", "manual"), "solution": kind in ("answer", "manual")}
    cell = make(source, id=name)
    cell.metadata.nbgrader = {**flags, "grade_id": name, "locked": kind in ("test", "setup")}
    cell.metadata.nbgrader |= {"points": points, "schema_version": 3, "task": False}
    return cell


def _tests(visible, hidden):
    return f"{visible}\n### BEGIN HIDDEN TESTS\n{hidden}\n### END HIDDEN TESTS"


SETUP = """import numpy as np

def compare(got, want):
    assert np.array_equal(np.asarray(got), want), f"{got} is not {want}" """
RIGHT = {
    "answer-1": "def double(x):\n    return 2 * x",
    "answer-2": "def largest(x):\n    return max(x)",
    "answer-3": "def negative(x):\n    return -x",
}


def _solution():
    def answer(name):
        return f"### BEGIN SOLUTION\n{RIGHT[name]}\n### END SOLUTION"

    return new_notebook(
        cells=[
            _cell("setup", "setup", SETUP),
            _cell("answer", "answer-1", answer("answer-1")),
            _cell("test", "test-1", _tests("compare(double(1), 2)", "compare(double(21), 42)"), 30),
            _cell("answer", "answer-2", answer("answer-2")),
            _cell(
                "test", "test-2", _tests("compare(largest([1]), 1)", "compare(max(3, 4), 4)"), 30
            ),
            _cell("answer", "answer-3", answer("answer-3")),
            _cell(
                "test", "test-3", _tests("compare(negative(1), -1)", "compare(negative(0), 0)"), 30
            ),
            _cell("manual", "answer-4", "because", 10),
        ],
        metadata={"kernelspec": {"name": "python3", "display_name": "", "language": "python"}},
    )


def _notebook(**changed):
    """The solution, with some answers replaced."""
    notebook = _solution()
    for cell in notebook.cells:
        cell.source = changed.get(cell.id.replace("-", "_"), RIGHT.get(cell.id, cell.source))
    return notebook


# Tries all that a student's code must not do, and says what it could.
THIEF = """
import glob, os, signal, socket, sqlite3, subprocess, sys
could = []

def attempt(what, action):
    try:
        if action() is not False:
            could.append(what)
    except Exception:
        pass

def insert(path):
    os.stat(path)
    with sqlite3.connect(path) as book:
        book.execute("UPDATE grade SET auto_score = 30")

for path in {readable!r}:
    attempt("read " + path, lambda: open(path).read())
    attempt("list " + path, lambda: os.listdir(path) != [] or False)
for path in {writable!r}:
    attempt("write " + path, lambda: open(path, "r+").write("owned"))
    attempt("make " + path, lambda: open(os.path.dirname(path) + "/new", "w"))
for path in {books!r}:
    attempt("points in " + path, lambda: insert(path))
for up in range(1, 6):
    attempt("above", lambda: bool(glob.glob("../" * up + "source/*/*.ipynb")))
attempt("environment", lambda: open("/proc/%d/environ" % {victim}).read())
attempt("limits", lambda: __import__("resource").prlimit({victim}, 4, (0, 0)))
attempt("kill", lambda: os.kill({victim}, signal.SIGKILL))
attempt("network", lambda: socket.create_connection(("127.0.0.1", {port}), 2))
daemon = "import time; open('alive', 'w'); time.sleep(600)"
for _ in range(2):
    subprocess.Popen(
        [sys.executable, "-c", daemon, {mark!r}], start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
while not os.path.exists("alive"):
    pass
print("could", could)
"""
# Makes the kernel say that all went well, whatever it is asked to run.
LIAR = """
from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult
async def fine(raw_cell, *args, **kwargs):
    return ExecutionResult(ExecutionInfo(raw_cell, False, False, None, None))
get_ipython().run_cell_async = fine
get_ipython().should_run_async = lambda *args, **kwargs: True
"""
# Softens the tests by what they are made of.
CHEAT = """
import ast, builtins, sys
class Strip(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.Pass()
get_ipython().ast_transformers.append(Strip())
np.array_equal = lambda *args: True
np.asarray = lambda x: x
builtins.max = lambda *args: 4
compare = lambda *args: None
sys.settrace(lambda *args: None)
"""
LOUD = """
from IPython.display import HTML, Javascript, SVG, display
display(HTML("<script>steal()</script><img src='http://evil.example/1.png'>"))
display(Javascript("steal()"))
display(SVG("<svg xmlns='http://www.w3.org/2000/svg' onload='steal()'></svg>"))
display({"image/png": '"><script>steal()</script>'}, raw=True)
for _ in range(30):
    print("x" * 100_000)
"""
WRITTEN = (
    '<script>steal()</script> <img src=x onerror="steal()"> <style>@import "http://evil.example";'
    "</style> ![](http://evil.example/2.png) [go](javascript:steal()) **bold** $a<b$ "
    '<iframe src="http://evil.example"></iframe>'
)


def _running(mark):
    """Processes that sleep and have a word in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:  # it has ended
            continue
        if mark.encode() in line and b"time.sleep" in line and b"sqlite3" not in line:
            found.append(int(path.parent.name))
    return found


def _left_running(mark, seconds=10.0):
    """Those of `_running` that are still there after a while: the system kills them in its time."""
    end = time.monotonic() + seconds
    while (found := _running(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def victim():
    """A process that hostile code knows and may not touch."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.fixture(scope="module")
def listener():
    """A port of this machine where somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A folder of exercises with one small assignment."""
    exercises = tmp_path_factory.mktemp("exercises")
    (exercises / "source" / NAME).mkdir(parents=True)
    nbformat.write(_solution(), exercises / "source" / NAME / f"{NAME}.ipynb")
    config = (tool.EXERCISES / "nbgrader_config.py").read_text()
    (exercises / "nbgrader_config.py").write_text(config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tool, "EXERCISES", exercises)
        yield exercises


@pytest.fixture(scope="module")
def graded(course, victim, listener, locked_up):
    """A class with hostile and unlucky members, graded by the command: its rows and its folder."""
    folder, output = course / "submitted", course / "graded"
    folder.mkdir()
    source = course / "source" / NAME / f"{NAME}.ipynb"
    mine = THIEF.format(
        readable=[str(p) for p in (source, source.parent, folder, folder / "ada.ipynb", output)],
        writable=[str(folder / "ada.ipynb"), str(output / "grades.csv"), str(source)],
        books=[str(output / "gradebook.db")],
        victim=victim.pid,
        port=listener,
        mark=MARK,
    )
    wrong = "def double(x):\n    return x"
    code = {
        "ada": _notebook(),
        JOERG: _notebook(),
        "thief": _notebook(answer_1=f"{mine}\n{RIGHT['answer-1']}"),
        "liar": _notebook(answer_1=f"{wrong}\n{LIAR}"),
        "cheat": _notebook(
            answer_1=f"{CHEAT}\n{wrong}",
            answer_2="max = 3.0\ndef largest(x):\n    return x[0]",
            answer_3="def negative(x):\n    raise SystemExit(0)",
        ),
        "loud": _notebook(answer_1=f"{LOUD}\n{RIGHT['answer-1']}", answer_4=WRITTEN),
    }
    for student, notebook in code.items():
        nbformat.write(notebook, folder / f"{student}.ipynb")
    odd = json.loads(nbformat.writes(code[JOERG]))
    odd["cells"][1]["metadata"] = {"nbgrader": "x"}
    odd["cells"] += [{"cell_type": "heading", "source": None}, 7]
    (folder / f"{JOERG}.ipynb").write_text(json.dumps(odd))
    nbformat.write(_notebook(), folder / "instructor.ipynb")
    os.mkfifo(folder / "pipe.ipynb")
    (folder / "endless.ipynb").symlink_to("/dev/zero")
    (folder / "link.ipynb").symlink_to(source)
    (folder / "linked").symlink_to(source.parent)
    os.link(source, folder / "second.ipynb")
    (folder / "folder.ipynb" / "inner").mkdir(parents=True)
    (folder / "twice" / NAME).mkdir(parents=True)
    for place in ("twice", f"twice/{NAME}"):
        nbformat.write(_notebook(), folder / place / f"{NAME}.ipynb")
    with (folder / "huge.ipynb").open("wb") as file:
        file.truncate(submissions.MOST_BYTES + 1)
    (folder / "deep.ipynb").write_text("[" * 100_000)
    (folder / os.fsdecode(b"caf\xe9.ipynb")).write_text("{}")
    command = ["grade", NAME, "--submitted", str(folder), "--output", str(output)]
    status = tool.main([*command, "--cell-seconds", "20", "--seed", "1"])
    os.unlink(folder / "second.ipynb")
    assert status == 0
    return _rows(output), output


def _rows(output):
    with (output / "grades.csv").open(encoding="utf-8") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def _points(row):
    return [row["test-1"], row["test-2"], row["test-3"]]


def test_nobody_is_harmed_by_a_class_of_others(graded, victim):
    rows, _ = graded
    assert _points(rows["ada"]) == ["30", "30", "30"] and rows["ada"]["note"] == ""
    assert victim.poll() is None
    assert _left_running(MARK) == []


def test_a_name_of_any_letters_is_graded_and_reported(graded):
    rows, output = graded
    joerg = unicodedata.normalize("NFC", JOERG)
    assert _points(rows[joerg]) == ["30", "30", "30"]
    assert rows[joerg]["note"] == "malformed cells left out: 2"
    assert rows["caf\ufffd"]["note"] == "no notebook: it has no list of cells"
    assert rows["instructor"]["note"] == "'instructor' stands for you: use another name"
    (folder,) = (output / "feedback").glob("J_rg_O_Neil-????????")
    with Gradebook(f"sqlite:///{output}/gradebook.db") as book:
        assert book.find_student(folder.name).last_name == joerg


def test_what_is_no_file_costs_one_student(graded):
    rows, _ = graded
    notes = {name: row["note"] for name, row in rows.items() if row["automatic"] == "0"}
    special = "not a file but a link, a folder, a pipe or a device"
    assert notes.pop("liar") and notes.pop("caf\ufffd") and notes.pop("instructor")
    notes.pop("cheat", None)
    assert notes == {
        "pipe": special,
        "endless": special,
        "link": special,
        "linked": "a link is handed in, not a folder",
        "second": "the file has 2 names (hard links): copy it",
        "folder.ipynb": f"no {NAME}.ipynb in the folder",
        "twice": f"two notebooks: twice/{NAME}.ipynb and twice/{NAME}/{NAME}.ipynb",
        "huge": "the file is longer than 20 MiB",
        "deep": "no notebook: nested too deeply",
    }


def _printed(output, student, name="answer-1"):
    path = output / "autograded" / student / NAME / f"{NAME}.ipynb"
    cell = next(c for c in nbformat.read(path, as_version=4).cells if c.id == name)
    return cell.outputs


def test_hostile_code_reaches_nothing(graded):
    rows, output = graded
    (said,) = _printed(output, "thief")
    assert said.text == "could []\n"
    assert _points(rows["thief"]) == ["30", "30", "30"]


def test_a_kernel_that_lies_gets_nothing(graded):
    rows, _ = graded
    assert _points(rows["liar"]) == ["0", "0", "0"]
    assert rows["liar"]["note"] == ", ".join(f"Tampering in test-{i}" for i in (1, 2, 3))


def test_softened_tests_are_whole_again(graded):
    """A wrong answer loses; one that shadows a builtin, in a cell where all is shadowed, keeps."""
    rows, _ = graded
    assert _points(rows["cheat"]) == ["0", "30", "0"]


def test_pages_are_harmless_and_short(graded):
    rows, output = graded
    assert _points(rows["loud"]) == ["30", "30", "30"]
    said = _printed(output, "loud")
    assert sum(len(str(o)) for o in said) < 300_000
    assert {kind for o in said for kind in o.get("data", {})} == {"text/plain"}
    for student in ("loud", "ada"):
        path = output / "feedback" / student / NAME / f"{NAME}.html"
        text = path.read_text(encoding="utf-8")
        assert len(text) < 1_000_000
        page = BeautifulSoup(text, "html.parser")
        assert page.find_all(["script", "iframe", "link"]) == []
        first = page.head.find()
        assert first["http-equiv"] == "Content-Security-Policy" and "'none'" in first["content"]
        for tag in page.find_all(True):
            assert not any(name.startswith("on") for name in tag.attrs), tag
            assert tag.get("src", "data:").startswith("data:")
            assert not tag.get("href", "").startswith("javascript")
        assert "@import" not in "".join(style.text for style in page.find_all("style"))
    assert "bold" in [tag.text for tag in page.find_all("strong")] or student == "ada"


def test_grading_again_leaves_nothing_old(graded, course):
    """Ada's file is spoiled now, others are gone; what a person gave her stays."""
    _, output = graded
    folder = course / "again"
    folder.mkdir()
    (folder / "ada.ipynb").write_text("{")
    url = f"sqlite:///{output}/gradebook.db"
    with Gradebook(url) as book:
        book.find_grade("answer-4", NAME, NAME, "ada").manual_score = 7
        assert book.find_submission(NAME, "ada").score == 97
        assert book.find_submission(NAME, "thief").score == 90
        book.db.commit()
    parts, (ada,) = tool.grade(NAME, find_submissions(folder, NAME), output, 1)
    assert ada.automatic(parts) == 0 and ada.points["answer-4"] == 7
    assert ada.note.startswith("no notebook: JSONDecodeError")
    with Gradebook(url) as book:
        assert book.find_submission(NAME, "ada").score == 7
        assert book.find_submission(NAME, "thief").score == 0
    left = [
        p for kind in ("feedback", "autograded", "submitted") for p in (output / kind).rglob("*.*")
    ]
    assert left == [] and not (output / "grades.csv").exists()
    assert list((output / "logs").iterdir()) == []


# -- one by one ------------------------------------------------------------------------------------


def test_the_attacks_succeed_where_nothing_is_locked_up(tmp_path, listener):
    """Or their failure in a sandbox would prove nothing."""
    (tmp_path / "source" / NAME).mkdir(parents=True)
    (tmp_path / "home").mkdir()
    file, book = tmp_path / "source" / NAME / f"{NAME}.ipynb", tmp_path / "book.db"
    file.write_text("a classmate's")
    with sqlite3.connect(book) as connection:
        connection.execute("CREATE TABLE grade (auto_score)")
    with subprocess.Popen(["sleep", "600"]) as decoy:
        attack = THIEF.format(
            readable=[str(file), str(file.parent)],
            writable=[str(file)],
            books=[str(book)],
            victim=decoy.pid,
            port=listener,
            mark=f"{MARK}-free",
        )
        command = [sys.executable, "-c", attack]
        done = subprocess.run(command, cwd=tmp_path / "home", capture_output=True, text=True)
        decoy.kill()
    left = _running(f"{MARK}-free")
    for process in left:
        os.kill(process, signal.SIGKILL)
    could = eval(done.stdout.removeprefix("could "))
    files = [f"read {file}", f"list {file.parent}", f"write {file}", f"make {file}"]
    others = ["above", "environment", "limits", "kill", "network"]
    assert could == [*files, f"points in {book}", *others] and len(left) == 2


def test_each_kind_of_sandbox_locks_up(runner, course, tmp_path, victim, listener, monkeypatch):
    """The same attacks without nbgrader, in each kind that there is, with the kernel killed."""
    other = tmp_path / "other.txt"
    other.write_text("a classmate's")
    sources = [str(p) for p in (course / "source" / NAME, tool.__file__, Path.home(), other)]
    attack = THIEF.format(
        readable=[*sources, "/etc/passwd", "/etc/shadow"],
        writable=[str(other)],
        books=[str(other)],
        victim=victim.pid,
        port=listener,
        mark=f"{MARK}-{runner.sandbox.kind}",
    )
    runner.limits = Limits(cell_seconds=10)
    monkeypatch.setattr(execution, "NOTEBOOK_CHARACTERS", 1000)
    cells = [
        _cell("answer", "answer-1", attack),
        _cell("test", "test-1", "import os; os._exit(0)"),
        _cell("test", "test-2", "print('x' * 1_000_000)"),
    ]
    done, _ = runner.preprocess(new_notebook(cells=cells), {})
    allowed = {f"list {Path.home()}"}  # a mount point may lie there, and nothing else
    (said,) = done.cells[0].outputs
    could = set(eval(said.text.removeprefix("could "))) - allowed
    assert could == set()
    assert [o.ename for o in done.cells[1].outputs] == ["Crash"]
    assert [o.text for o in done.cells[2].outputs] == ["\n... output cut ...\n"]  # and no error
    assert _left_running(MARK) == [] and other.read_text() == "a classmate's"
    assert victim.poll() is None


ODD = {
    "metadata.nbgrader a string": ("metadata", {"nbgrader": "x"}),
    "metadata.nbgrader a list": ("metadata", {"nbgrader": [1]}),
    "metadata.nbgrader a number": ("metadata", {"nbgrader": 7}),
    "metadata none": ("metadata", None),
    "grade_id a list": ("metadata", {"nbgrader": {"grade_id": ["answer-1"]}}),
    "an unknown key": ("surprise", {"deep": [None]}),
    "lines": ("source", ["own = ", "1"]),
    "lone surrogates": ("source", "own = '\ud800'"),
    "no cell_type": ("cell_type", ...),
    "an unknown type": ("cell_type", "heading"),
    "no source": ("source", ...),
    "null source": ("source", None),
    "lines that are none": ("source", ["own", 1]),
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_cell_costs_itself_at_most(odd):
    """Cells whose text makes sense are kept, known by their own id; the others are left out."""
    template = _solution()
    document = json.loads(nbformat.writes(_notebook(answer_1="own = 1")))
    key, value = ODD[odd]
    if value is ...:
        del document["cells"][1][key]
    else:
        document["cells"][1][key] = value
    cells, remark = read_cells(json.dumps(document).encode())
    made = normalize(cells, template)
    nbformat.validate(made)
    json.dumps(made).encode("utf-8")
    nbformat.writes(made).encode("utf-8")
    lost = list(ODD).index(odd) >= list(ODD).index("no cell_type")
    assert remark == ("malformed cells left out: 1" if lost else "")
    answer = next(c for c in made.cells if submissions.name_of(c) == "answer-1")
    assert answer.source.startswith("### BEGIN" if lost else "own = ")
    assert [c.source for c in made.cells[2:]] == [c.source for c in _notebook().cells[2:]]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\xff\xfe\xfa", "no notebook: UnicodeDecodeError"),
        (b"[]", "no list of cells"),
        (b'{"cells": {}}', "no list of cells"),
        (b'{"nbformat": 3, "worksheets": 7}', "no notebook: "),
        (json.dumps({"cells": [{}] * 1001}).encode(), "1001 cells are too many"),
        (
            json.dumps({"cells": [{"cell_type": "raw", "source": "x" * 2**20 + "y"}]}).encode(),
            "too long: the cells may have 1048576 characters",
        ),
    ],
)
def test_what_is_no_notebook_is_said(content, says):
    with pytest.raises(ValueError, match=says):
        read_cells(content)


def test_a_device_is_not_opened():
    with pytest.raises(ValueError, match="not a file but a link"):
        read_file(Path("/dev/zero"))


def test_submissions_are_found_by_student(tmp_path):
    for path in (
        "ada.ipynb",
        f"emmy/{NAME}.ipynb",
        f"sonya/{NAME}/{NAME}.ipynb",
        "zoe/other.ipynb",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("{}")
    for ignored in ("emmy/scratch.ipynb", f"emmy/.ipynb_checkpoints/{NAME}.ipynb", ".hidden.ipynb"):
        (tmp_path / ignored).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ignored).write_text("{}")
    found = find_submissions(tmp_path, NAME)
    assert [(s.key, s.trouble) for s in found] == [
        ("ada", ""),
        ("emmy", ""),
        ("sonya", ""),
        ("zoe", f"no {NAME}.ipynb in the folder"),
    ]
    assert [s.path is None for s in found] == [False, False, False, True]


def test_keys_are_names_of_folders_and_differ():
    names = [
        "ada",
        "a b",
        "a_b",
        "a'b",
        "..",
        "-x",
        "[*]",
        "x" * 250,
        "\N{CYRILLIC SMALL LETTER A}",
    ]
    keys = [submissions.submission(name, None).key for name in names]
    assert len(set(keys)) == len(names) and keys[0] == "ada"
    assert all(len(k) <= 100 and k[0] not in ".-" and not set(k) & set("/[*] '") for k in keys)
    composed = unicodedata.normalize("NFC", JOERG)
    assert submissions.submission(JOERG, None) == submissions.submission(composed, None)


def test_what_a_cell_has_shown_is_text_and_pictures():
    picture = "iVBORw0K\nGgo="
    data = {"text/html": "<b>", "image/png": picture, "image/jpeg": "no: base64", "text/plain": "p"}
    error = new_output("error", ename="E", evalue="v", traceback=["line " * 10_000])
    error.traceback.append(7)
    shown = feedback.shown(
        [
            new_output(
                "execute_result", data=data, metadata={"image/png": {"width": "0 onload=x"}}
            ),
            new_output("display_data", data={"application/javascript": "steal()"}),
            error,
        ]
    )
    assert len(shown) == 2
    assert shown[0].data == {"image/png": "iVBORw0KGgo=", "text/plain": "p"}
    assert shown[0].metadata == {}
    assert len("\n".join(shown[1].traceback)) < feedback.ERROR_CHARACTERS + 100


def test_a_long_page_is_cut(monkeypatch):
    monkeypatch.setattr(feedback, "MOST_CHARACTERS", 2000)
    page = "<html><head></head><body>" + "<div>0123456789</div>\n" * 1000 + "</body></html>"
    cut = feedback.close_page(page)
    assert len(cut) < 2500 and "was cut here" in cut


def test_a_page_keeps_pictures_and_nothing_else_that_loads():
    kept = '<img src="data:image/png;base64,AAAA"/>'
    gone = (
        '<img src="data:text/html,x"/><img src="https://a.b/c.png"/><video src="//a.b/c"></video>'
        '<script>x</script><iframe></iframe><link href="https://a.b/c"/><form></form>'
    )
    page = feedback.close_page(f"<html><head></head><body>{kept}{gone}</body></html>")
    assert page.partition("<body>")[2] == f"{kept}</body></html>"
    assert feedback.POLICY in page


def test_a_machine_without_a_sandbox_is_told_what_to_do(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    monkeypatch.setattr(sandbox.os, "geteuid", lambda: 1000)
    sandbox.find.cache_clear()
    (tmp_path / "ada.ipynb").write_text("{}")
    command = ["grade", "--submitted", str(tmp_path), "--output", str(tmp_path / "out")]
    assert tool.main(command) == 2
    sandbox.find.cache_clear()
    said = capsys.readouterr().out
    assert "bubblewrap: there is no program bwrap\n  user: only root" in said
    assert "apt install bubblewrap" in said
    assert not (tmp_path / "out").exists()


def test_what_must_stay_hidden_may_not_lie_in_what_is_shown():
    box = sandbox.Sandbox("bubblewrap", ("/usr/share", sys.prefix))
    sandbox.check_hidden(box, [Path("/home/course")])
    with pytest.raises(sandbox.NoSandboxError, match="/usr/share/course lies in /usr/share"):
        sandbox.check_hidden(box, [Path("/usr/share/course")])
