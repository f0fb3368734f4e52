"""Assignments: what students get, and what right, empty and wrong work is worth."""

import copy
import csv
import json
import re
import time
from dataclasses import dataclass

import assignments as tool
import nbformat
import pytest
from grading.execution import SETUP, Limits
from grading.submissions import find_submissions, normalize, read_cells
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

NAME = "01_dg_in_one_dimension"
SEED = 20


@dataclass(frozen=True)
class Facts:
    """What is to be true of one assignment.

    `extra` are parts that examine another part's answer, `hidden` names that stand in hidden tests
    only, `note` is what the wrong solution "hang-and-crash" gets.
    """

    answers: int
    extra: frozenset[str]
    by_hand: frozenset[str]
    hidden: tuple[str, ...]
    note: str


FACTS = {
    NAME: Facts(
        answers=17,
        extra=frozenset({"3-4"}),  # examines the kernel of 3.3
        by_hand=frozenset({"answer-1-1", "answer-1-2"}),
        hidden=("reference_rhs", "test_surface", "test_single_precision"),
        note="TimeLimit in test-2-2, Crash in test-3-2",
    ),
    "02_gather_and_lift": Facts(
        answers=17,
        extra=frozenset(),
        by_hand=frozenset({"answer-1-1", "answer-5-2"}),
        hidden=("reference_rhs", "reference_turns", "scatter_like", "test_cavity"),
        note="TimeLimit in test-2-1, Crash in test-5-3",
    ),
    "03_edges_and_shocks": Facts(
        answers=19,
        extra=frozenset(),
        by_hand=frozenset({"answer-1-1", "answer-2-2", "answer-4-2"}),
        hidden=("reference_roe", "edge_like", "by_elements", "losing", "Counting"),
        note="TimeLimit in test-1-4, Crash in test-2-6",
    ),
    "04_slice_by_slice": Facts(
        answers=21,
        extra=frozenset(),
        by_hand=frozenset({"answer-2-1", "answer-5-2", "answer-6-3"}),
        hidden=("reference_factors", "count_barriers", "slope(u", "Counted", "racing_from"),
        note="TimeLimit in test-1-1, Crash in test-1-2",
    ),
    "05_eliminate_and_multiply": Facts(
        answers=19,
        extra=frozenset(),
        by_hand=frozenset({"answer-1-4", "answer-4-3", "answer-5-3"}),
        hidden=("reference_line", "rows_of", "arrays_of", "tiled_like", "noise"),
        note="TimeLimit in test-2-4, Crash in test-4-2",
    ),
    "06_triangles_and_diamonds": Facts(
        answers=17,
        extra=frozenset(),
        by_hand=frozenset({"answer-1-3", "answer-4-4", "answer-6-3"}),
        hidden=("reference_levels", "edges_of", "reference_pieces", "variant_of_up", "jagged"),
        note="TimeLimit in test-5-2, Crash in test-6-2",
    ),
}
only_first = pytest.mark.parametrize("assignment", [NAME], indirect=True)


@pytest.fixture(scope="module", params=list(FACTS))
def assignment(request):
    return request.param


@pytest.fixture(scope="module")
def facts(assignment):
    return FACTS[assignment]


@pytest.fixture(scope="module")
def starter(assignment, tmp_path_factory):
    """The notebook that students get."""
    folder = tool.release(assignment, tmp_path_factory.mktemp("release"))
    assert [p.name for p in folder.iterdir()] == [f"{assignment}.ipynb"]
    return nbformat.read(folder / f"{assignment}.ipynb", as_version=4)


@pytest.fixture(scope="module")
def source(assignment):
    return tool.source_notebook(assignment)


def test_no_assignment_goes_untested():
    assert tool.assignments() == list(FACTS)


# -- the notebook ------------------------------------------------------------------------------


def test_points_add_up_to_100_and_match_the_headings(source):
    parts = tool.parts_of(source)
    assert sum(p.points for p in parts) == 100
    text = "\n".join(c.source for c in source.cells if c.cell_type == "markdown")
    for task, promised in re.findall(r"^## Task (\d).*\((\d+) points\)$", text, re.M):
        mine = [p for p in parts if p.task == task]
        assert sum(p.points for p in mine) == int(promised)
        assert f"| {task} |" in text and f"| {promised} |" in text
        listed = re.findall(rf"^### {task}\.(\d) .*\((\d+) points", text, re.M)
        found = {re.fullmatch(rf"\w+-{task}-(\d)", p.name).group(1): p.points for p in mine}
        assert {number: int(points) for number, points in listed} == found


def test_every_answer_has_a_test_or_a_reader(source, facts):
    tested = {p.name.split("-", 1)[1] for p in tool.parts_of(source)}
    answers = {c.id.split("-", 1)[1] for c in source.cells if c.id.startswith("answer-")}
    assert tested == answers | facts.extra


def test_the_source_is_clean(source):
    for cell in source.cells:
        assert cell.id == cell.metadata.get("nbgrader", {}).get("grade_id", cell.id)
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None
        too_long = [line for line in cell.source.split("\n") if len(line) > 80]
        assert not too_long, (cell.id, too_long)


# -- the release -------------------------------------------------------------------------------


def test_the_release_has_no_solutions_and_no_hidden_tests(source, starter, facts):
    text = json.dumps(starter)
    for word in ("BEGIN", "END", "HIDDEN", "SOLUTION"):
        assert word not in text
    cut = {
        c.id: re.sub(r" *### BEGIN HIDDEN.*### END HIDDEN TESTS", "", c.source, flags=re.S)
        for c in source.cells
    }
    stub = r"\1# YOUR CODE HERE\n\1..."
    for cell in starter.cells:
        want = re.sub(r"( *)### BEGIN SOL.*?### END SOLUTION", stub, cut[cell.id], flags=re.S)
        if cell.cell_type == "markdown" and cell.id.startswith("answer-"):
            want = "YOUR ANSWER HERE"
        assert cell.source.rstrip() == want.rstrip()
    assert len(starter.cells) == len(source.cells)
    for name in facts.hidden:
        assert name in json.dumps(source) and name not in text


def test_answers_of_the_release_compile_and_say_where_to_write(starter, facts):
    answers = [c for c in starter.cells if c.id.startswith("answer-")]
    assert len(answers) == facts.answers
    for cell in answers:
        if cell.cell_type == "code":
            compile(cell.source, cell.id, "exec")
            assert "# YOUR CODE HERE" in cell.source
        else:
            assert cell.source == "YOUR ANSWER HERE"


def kept_back(assignment):
    """Lines that stand in solutions and hidden tests of an assignment, and nowhere else in it."""
    secret, shown = set(), set()
    for cell in tool.source_notebook(assignment).cells:
        parts = re.split(r"### (BEGIN|END) .*", cell.source)
        answer = cell.cell_type == "markdown" and cell.id.startswith("answer-")
        secret.update(cell.source.split("\n") if answer else [])
        for text, before in zip(parts[::2], ["END", *parts[1::2]], strict=True):
            (secret if before == "BEGIN" or answer else shown).update(text.split("\n"))
    for changes in (e["changes"] for e in tool.wrong_solutions(assignment)):
        secret.update(line for *_, wrong in changes for line in wrong.split("\n"))
    secret, shown = ({line.strip() for line in lines} for lines in (secret, shown))
    return {line for line in secret - shown if len(line) > 30}


def test_what_is_published_has_no_solution_wrong_solution_or_hidden_test(tmp_path):
    """All that students get, searched; and it is all that they need."""
    files = tool.publish(tmp_path / "public")
    names = [path.as_posix() for path in files]
    assert not [n for n in names if re.search(r"(^|/)(source|wrong|tests?|grading|\.git)/", n)]
    assert not [n for n in names if n.startswith("tools/") or n.endswith("nbgrader_config.py")]
    texts = {n: (tmp_path / "public" / n).read_bytes().decode(errors="ignore") for n in names}
    assert not [n for n, text in texts.items() if re.search("(BEGIN|END) (SOLUTION|HIDDEN)", text)]
    for name in FACTS:
        cells = json.loads(texts[f"exercises/{name}/{name}.ipynb"])["cells"]
        lines = {line.strip() for c in cells for line in "".join(c["source"]).split("\n")}
        secret = kept_back(name)
        assert len(secret) > 100
        assert not secret & lines
        assert not [word for word in FACTS[name].hidden if word in str(cells)]
    assert {"README.md", "pyproject.toml", "requirements.txt", "dgbook/__init__.py"} <= set(names)
    lessons = {path.name for path in tool.ROOT.glob("chapters/[0-9]*.ipynb")}
    assert {n.removeprefix("chapters/") for n in names if re.match("chapters/[0-9]", n)} == lessons


def test_nothing_is_published_over_something_else(tmp_path):
    """A folder with something in it may be a repository, with a history."""
    (tmp_path / "solution.ipynb").write_text("{}")
    with pytest.raises(FileExistsError, match="is not empty"):
        tool.publish(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["solution.ipynb"]


# -- grades ------------------------------------------------------------------------------------


def _packed(assignment, starter):
    """Wrong solutions that touch different cells and lose different parts, in one notebook each.

    Running a notebook takes seconds, and a class of careless students is graded all the same.
    """
    wrong = tool.examples(assignment, starter)[2:]
    right = {c.id: c.source for c in tool.source_notebook(assignment).cells}
    parts = [
        (
            e.name,
            {c.id: c.source for c in e.notebook.cells if c.source != right[c.id]},
            set(e.loses),
        )
        for e in wrong
    ]

    def meet(cells, lost, others, lost_there):
        return bool(cells.keys() & others.keys() or lost & lost_there)

    packs = []
    # Those that can join fewest others come first: then fewer notebooks hold all.
    for name, cells, lost in sorted(
        parts, key=lambda part: -sum(meet(*part[1:], *other[1:]) for other in parts)
    ):
        for pack in packs:
            if not meet(cells, lost, pack["cells"], pack["lost"]):
                break
        else:
            pack = {"cells": {}, "lost": set(), "names": []}
            packs.append(pack)
        pack["cells"] |= cells
        pack["lost"] |= lost
        pack["names"].append(name)
    assert len(wrong) >= 10 and sum(len(p["names"]) for p in packs) == len(wrong)
    return packs


@pytest.fixture(scope="module")
def graded(assignment, starter, source, tmp_path_factory, locked_up):
    """Solution, starter and all wrong solutions, graded in one go: results and what was lost."""
    folder = tmp_path_factory.mktemp("class")
    notebooks = {"solution": source, "starter": starter}
    packs = {f"wrong{i}": pack for i, pack in enumerate(_packed(assignment, starter))}
    for student, pack in packs.items():
        notebooks[student] = copy.deepcopy(source)
        for cell in notebooks[student].cells:
            cell.source = pack["cells"].get(cell.id, cell.source)
    for student, notebook in notebooks.items():
        nbformat.write(notebook, folder / f"{student}.ipynb")
    (folder / "unreadable.ipynb").write_text("{")
    # The last one holds a cell that hangs: it waits while the others work.
    submissions = find_submissions(folder, assignment)[::-1]
    limits = Limits(cell_seconds=15)
    parts, results = tool.grade(
        assignment, submissions, folder / "graded", SEED, jobs=3, limits=limits, feedback=False
    )
    return parts, {r.student: r for r in results}, packs, folder / "graded"


def test_the_solution_gets_all_points(graded, facts):
    """Every cell runs, also those that no part of the grade looks at."""
    parts, results, *_ = graded
    solution = results["solution"]
    assert solution.automatic(parts) == 90
    by_hand = {p.name: solution.points[p.name] for p in parts if p.by_hand}
    assert by_hand == dict.fromkeys(facts.by_hand)
    assert solution.note == ""
    (path,) = (graded[3] / "autograded" / "solution").glob("*/*.ipynb")
    outputs = [o for c in nbformat.read(path, as_version=4).cells for o in c.get("outputs", ())]
    assert outputs and not [o for o in outputs if o.output_type == "error"]


def test_the_starter_gets_none(graded):
    results = graded[1]
    assert set(results["starter"].points.values()) == {0.0}
    assert results["starter"].note == ""


def test_wrong_solutions_lose_exactly_their_parts(graded):
    parts, results, packs, _ = graded
    for student, pack in packs.items():
        points = results[student].points
        lost = {p.name for p in parts if not p.by_hand and points[p.name] != p.points}
        assert lost == pack["lost"], pack["names"]
        assert all(points[name] == 0.0 for name in lost)


def test_a_hang_and_a_crash_are_named(graded, facts):
    _, results, packs, _ = graded
    student = next(s for s, pack in packs.items() if "hang-and-crash" in pack["names"])
    assert results[student].note == facts.note


def test_a_file_that_is_no_notebook_gets_a_note(graded):
    parts, results, *_ = graded
    assert results["unreadable"].automatic(parts) == 0
    assert results["unreadable"].note.startswith("no notebook")


def _printed(folder, student):
    path = folder / "autograded" / student / NAME / f"{NAME}.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    return {
        c.id: "".join(o.text for o in c.outputs if o.output_type == "stream")
        for c in cells
        if c.id.startswith("test-")
    }


@only_first
def test_a_seed_repeats_a_grading_and_grades_are_written(graded, source, tmp_path, capsys):
    """The command on two submissions; tests print the inputs that they draw."""
    submitted = tmp_path / "submitted"
    (submitted / "ada" / NAME).mkdir(parents=True)
    nbformat.write(source, submitted / "ada" / NAME / f"{NAME}.ipynb")
    shortened = copy.deepcopy(source)
    shortened.cells = [c for c in shortened.cells if c.id != "test-5-1"]
    nbformat.write(shortened, submitted / "emmy.ipynb")
    output = tmp_path / "output"
    command = ["grade", "--submitted", str(submitted), "--output", str(output)]
    start = time.monotonic()
    assert tool.main([*command, "--seed", str(SEED)]) == 0
    assert time.monotonic() - start < 240  # 30 on a machine that is free
    assert f"--seed {SEED}" in capsys.readouterr().out

    drawn = _printed(output, "ada")
    assert drawn == _printed(output, "emmy") == _printed(graded[3], "solution")
    assert len([text for text in drawn.values() if "N" in text or "K" in text]) > 8

    with (output / "grades.csv").open() as file:
        ada, emmy = csv.DictReader(file)
    assert (ada["student"], ada["automatic"], ada["unread"]) == ("ada", "90", "10")
    assert ada["seed"] == str(SEED)
    assert (emmy["student"], emmy["automatic"]) == ("emmy", "90")  # a deleted test comes back
    page = output / "feedback" / "ada" / NAME / f"{NAME}.html"
    assert "test-3-1" in page.read_text()


@only_first
def test_seeds_draw_different_inputs(source, monkeypatch):
    setup = "\n".join(c.source for c in source.cells if c.id.startswith(SETUP))
    drawn = []
    for seed in ("1", "2", "1"):
        monkeypatch.setenv("DGBOOK_GRADING_SEED", seed)
        space = {}
        exec(setup, space)
        drawn.append([space["random_case"](space["draw"](task)) for task in (13, 31, 32)])
    assert drawn[0] == drawn[2]
    cases = drawn[0] + drawn[1]
    assert all(a != b for i, a in enumerate(cases) for b in cases[:i])


# -- the machinery, on small notebooks -----------------------------------------------------------


def _cell(kind, name, source="", points=0):
    make = new_markdown_cell if kind == "manual" else new_code_cell
    flags = {"grade": kind in ("test", "manual"), "solution": kind in ("answer", "manual")}
    cell = make(source, id=name)
    cell.metadata.nbgrader = {**flags, "grade_id": name, "locked": kind == "test", "points": points}
    return cell


def test_each_cell_that_ends_its_kernel_costs_only_itself(runner):
    sources = [
        ("setup", "import os, sys, warnings\nvalue = 1"),
        ("answer-1", "value = 2"),
        ("test-exit", "exit()"),
        ("test-sys-exit", "sys.exit()"),
        ("test-loop", "while True:\n try: pass\n except BaseException: pass"),
        ("test-crash", "os._exit(0)"),
        ("test-warns", "warnings.warn('careful')"),
        ("test-shows", "7"),
        ("test-setup-again", "assert value == 1"),
        ("figure-skipped", "os._exit(0)"),
    ]
    cells = [_cell("test" if n.startswith("test") else "answer", n, s, 1) for n, s in sources]
    runner.limits = Limits(cell_seconds=3)
    done, _ = runner.preprocess(new_notebook(cells=cells), {})
    failed = {c.id: o.ename for c in done.cells for o in c.outputs if o.output_type == "error"}
    assert failed == {
        "test-exit": "TypeError",
        "test-sys-exit": "SystemExit",
        "test-loop": "TimeLimit",
        "test-crash": "Crash",
    }
    by_name = {c.id: c.outputs for c in done.cells}
    assert [o.name for o in by_name["test-warns"]] == ["stdout"]
    assert by_name["test-shows"] == by_name["test-setup-again"] == []


def test_no_time_left_fails_what_remains(runner):
    cells = [_cell("test", f"test-{i}", "import time; time.sleep(1.5)", 1) for i in range(4)]
    runner.limits = Limits(cell_seconds=9, total_seconds=0)
    done, _ = runner.preprocess(new_notebook(cells=cells), {})
    assert [c.outputs[0].ename for c in done.cells] == ["TimeLimit"] * 4


def test_normalizing_brings_back_what_was_handed_out():
    template = new_notebook(
        cells=[
            _cell("test", "setup", "1"),
            new_markdown_cell("prose", id="prose"),
            _cell("answer", "answer-1", "..."),
            _cell("test", "test-1", "assert True", 3),
            _cell("manual", "answer-2", "YOUR ANSWER HERE", 2),
        ]
    )
    mine = copy.deepcopy(template.cells)
    tampered = mine[3]
    tampered.metadata.nbgrader.points = 100
    tampered.metadata.tags = ["skip-execution"]
    tampered.outputs = [nbformat.v4.new_output("stream", text="fine")]
    pasted = copy.deepcopy(mine[2])
    pasted.source, pasted.id = "final", "anything"
    nameless = mine[4]
    nameless.metadata = {}
    unknown = _cell("answer", "answer-99", "other course")
    own = new_code_cell("helper = 1", id="own")
    submission = new_notebook(cells=[own, mine[2], pasted, tampered, unknown, nameless])

    found, remark = read_cells(json.dumps(submission).encode())
    assert remark == ""
    cells = normalize(found, template).cells
    names = [c.metadata.get("nbgrader", {}).get("grade_id") for c in cells]
    assert names == ["setup", None, None, "answer-1", "test-1", None, "answer-2"]
    assert [c.source for c in cells[1:4]] == ["helper = 1", "...", "final"]
    test = cells[4]
    assert test.metadata == {"nbgrader": template.cells[3].metadata.nbgrader}
    assert test.outputs == []
    assert len({c.id for c in cells}) == len(cells)


@only_first
def test_no_grades_on_a_machine_where_the_solution_fails(
    source, tmp_path, monkeypatch, capsys, locked_up
):
    (tmp_path / "ada.ipynb").write_text("{}")
    parts = tool.parts_of(source)
    full = {p.name: p.points for p in parts}

    def grade(assignment, submissions, root, *args):
        assert [s.student for s in submissions] == ["instructor", "ada"]
        less = tool.Result("instructor", full | {"test-3-4": 0.0})
        return parts, [less, tool.Result("ada", full)]

    monkeypatch.setattr(tool, "grade", grade)
    command = ["grade", "--submitted", str(tmp_path), "--output", str(tmp_path / "out")]
    assert tool.main(command) == 1
    assert "the solution itself loses test-3-4" in capsys.readouterr().out
    assert not (tmp_path / "out" / "grades.csv").exists()


@only_first
def test_the_table_keeps_apart_what_a_person_must_read(source):
    parts = tool.parts_of(source)
    points = {p.name: None if p.by_hand else p.points for p in parts}
    new = tool.Result("ada", points)
    read = tool.Result("emmy", points | {"answer-1-1": 4.0, "answer-1-2": 5.0}, "late")
    lines = tool.table(parts, [new, read]).split("\n")
    assert lines[1].split() == ["12", "26", "28", "12", "12", "90", "10"]
    assert lines[2].split() == [
        "ada",
        "12",
        "26",
        "28",
        "12",
        "12",
        "90",
        "0,",
        "10",
        "to",
        "be",
        "read",
    ]
    assert lines[3].split() == ["emmy", "12", "26", "28", "12", "12", "90", "9", "[late]"]


@only_first
def test_a_wrong_solution_that_no_longer_fits_is_reported(starter, monkeypatch):
    stale = {"name": "stale", "about": "", "changes": [("answer-1-3", "gone", "")], "loses": ()}
    monkeypatch.setattr(tool.runpy, "run_path", lambda path: {"WRONG": [stale]})
    with pytest.raises(ValueError, match="'gone' is 0 times in answer-1-3"):
        tool.examples(NAME, starter)


def test_a_missing_folder_is_named(tmp_path, capsys, locked_up):
    assert tool.main(["grade", "--submitted", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: there is no such folder" in capsys.readouterr().out
    assert tool.main(["grade", "--submitted", str(tmp_path)]) == 2
    assert f"no notebook of {NAME}" in capsys.readouterr().out
