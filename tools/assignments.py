"""Make the students' versions of the assignments, and grade what they hand in.

::

    python tools/assignments.py release [NAME]
    python tools/assignments.py publish FOLDER
    python tools/assignments.py grade [NAME] [--submitted DIR] [--output DIR] [--seed N]

A submission runs in a sandbox, driven by a process of its own, with limits on time and memory. A
cell that never ends or kills its kernel counts as failed; then the notebook runs again without it,
so that it costs its own points and no others. How, is in the modules of ``tools/grading``.
Everything else is nbgrader's: cells, gradebook, feedback. ``exercises/README.md`` says how to use
it.
"""

from __future__ import annotations

import argparse
import copy
import csv
import logging
import multiprocessing
import os
import re
import resource
import runpy
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import nbformat
from grading import sandbox
from grading.execution import Limits, ResilientExecute, incidents
from grading.feedback import close_pages
from grading.sandbox import NoSandboxError, Sandbox
from grading.submissions import (
    INSTRUCTOR,
    Submission,
    find_submissions,
    name_of,
    normalize,
    read_cells,
    read_file,
)
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, GenerateAssignment, GenerateFeedback
from nbgrader.converters.base import BaseConverter
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import LimitOutput, OverwriteCells, SaveAutoGrades, SaveCells
from nbgrader.utils import is_grade, is_locked
from traitlets.config import Config, PyFileConfigLoader

ROOT = Path(__file__).resolve().parents[1]
EXERCISES = ROOT / "exercises"
# What students get besides their notebooks, of the files that git knows; all else stays at home.
PUBLISHED = (
    "dgbook/",
    "chapters/",
    "pyproject.toml",
    "requirements.txt",
    "CITATION.cff",
    "LICENSE",
)
LIMITS = Limits()


@dataclass(frozen=True)
class Part:
    """A graded cell: its id, task and points, and whether a person must read it."""

    name: str
    task: str
    points: float
    by_hand: bool


@dataclass(frozen=True)
class Result:
    """What a student got for each part (None: to be read by a person), and what went wrong."""

    student: str
    points: Mapping[str, float | None]
    note: str = ""

    def automatic(self, parts: Iterable[Part]) -> float:
        """Points of those parts that are graded by machine."""
        return sum(self.points[p.name] or 0.0 for p in parts if not p.by_hand)


def assignments() -> list[str]:
    """Names of all assignments, in order."""
    return sorted(p.name for p in (EXERCISES / "source").iterdir() if p.is_dir())


def source_notebook(assignment: str) -> NotebookNode:
    """The instructor's notebook, with solutions and hidden tests."""
    path = EXERCISES / "source" / assignment / f"{assignment}.ipynb"
    return nbformat.read(path, as_version=4)


def parts_of(notebook: NotebookNode) -> list[Part]:
    """The graded parts of a notebook that are worth points, in order."""
    graded = [c for c in notebook.cells if is_grade(c) and c.metadata.nbgrader.points]
    return [
        Part(
            name=name_of(c),
            task=re.search(r"\d+", name_of(c)).group(),
            points=float(c.metadata.nbgrader.points),
            by_hand=not is_locked(c),
        )
        for c in graded
    ]


# ------------------------------------------------------------------------------------------
# Release
# ------------------------------------------------------------------------------------------


def course(root: Path, assignment: str) -> Config:
    """Lay out a course directory for nbgrader and return its configuration."""
    root = root.resolve()
    _use_own_programs()
    config = PyFileConfigLoader("nbgrader_config.py", path=str(EXERCISES)).load_config()
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.db_url = f"sqlite:///{root}/gradebook.db"
    config.CourseDirectory.assignment_id = assignment
    source = root / "source" / assignment
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(EXERCISES / "source" / assignment, source)
    shutil.copy(EXERCISES / "nbgrader_config.py", root)
    return config


def _use_own_programs() -> None:
    """Let nbgrader, which runs `alembic` for its database, find it beside this Python."""
    here = str(Path(sys.executable).parent)
    if here not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([here, os.environ.get("PATH", os.defpath)])


def convert(converter: type[BaseConverter], config: Config) -> None:
    """Run one of nbgrader's converters, which replaces what it made before."""
    made = converter(coursedir=CourseDirectory(config=config), config=config, force=True)
    made.start()


def generate(config: Config, gradebook: bool) -> NotebookNode:
    """Make the students' version and return it; on demand, enter its cells in a gradebook."""
    config = copy.deepcopy(config)
    if not gradebook:
        steps = GenerateAssignment.preprocessors.default_args[0]
        config.GenerateAssignment.no_database = True
        config.GenerateAssignment.preprocessors = [s for s in steps if s is not SaveCells]
    convert(GenerateAssignment, config)
    name = config.CourseDirectory.assignment_id
    path = Path(config.CourseDirectory.root) / "release" / name / f"{name}.ipynb"
    return nbformat.read(path, as_version=4)


def release(assignment: str, destination: Path = EXERCISES / "release") -> Path:
    """Write an assignment's students' version, without solutions and hidden tests.

    Returns
    -------
    Path
        The folder with all that a student needs.
    """
    folder = destination / assignment
    with tempfile.TemporaryDirectory() as temporary:
        generate(course(Path(temporary), assignment), gradebook=False)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(Path(temporary) / "release" / assignment, folder)
    return folder


def publish(folder: Path) -> list[Path]:
    """Write all that students get into an empty folder: package, lessons, and their assignments.

    Solutions, wrong solutions, hidden tests, tests and the grader are not among it, nor is the
    repository's history, which has them.

    Returns
    -------
    list of Path
        The files, relative to the folder.

    Raises
    ------
    FileExistsError
        If there is something in the folder.
    """
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: publish into a new folder")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    chosen = [name for name in listed.stdout.split("\0") if name.startswith(PUBLISHED)]
    for name in chosen:
        if not (name.startswith("chapters/") and name.endswith(".md")):  # pages of the built book
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    shutil.copy(EXERCISES / "students.md", folder / "README.md")
    for name in assignments():
        release(name, folder / "exercises")
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


# ------------------------------------------------------------------------------------------
# Grading
# ------------------------------------------------------------------------------------------


def _grade_one(
    config: Config, box: Sandbox, seed: int, limits: Limits, feedback: bool, log: Path
) -> None:
    """Run one submission and write its points and feedback; the body of a process of its own."""
    opened = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(opened, 1)
    os.dup2(opened, 2)
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    execute = type("Execute", (ResilientExecute,), {"sandbox": box, "seed": seed, "limits": limits})
    # Metadata are the instructor's own already, and outputs and twins are gone: see `normalize`.
    config.Autograde.sanitize_preprocessors = [OverwriteCells]
    config.Autograde.autograde_preprocessors = [execute, LimitOutput, SaveAutoGrades]
    convert(Autograde, config)
    if feedback:
        convert(GenerateFeedback, config)
        close_pages(
            Path(config.CourseDirectory.root) / "feedback" / config.CourseDirectory.student_id
        )


def _run_processes(
    bodies: Mapping[str, Callable[[], None]],
    jobs: int,
    seconds: float,
    ended: Callable[[int], None],
) -> dict[str, str]:
    """Run each body in a process of its own, so many at a time; returns what went wrong by name.

    `ended` is called with the id of each process that has come to its end.
    """
    context = multiprocessing.get_context("fork")  # nbgrader takes seconds to import
    waiting = list(bodies.items())
    running: dict[str, tuple[Any, float]] = {}
    trouble: dict[str, str] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            name, body = waiting.pop(0)
            process = context.Process(target=body, name=name)
            process.start()
            running[name] = process, time.monotonic() + seconds
        wait([process.sentinel for process, _ in running.values()], timeout=1.0)
        for name, (process, deadline) in list(running.items()):
            if process.is_alive() and time.monotonic() < deadline:
                continue
            if process.is_alive():
                process.kill()
                trouble[name] = f"stopped after {seconds:.0f} s"
            process.join()
            ended(process.pid)
            if process.exitcode and name not in trouble:
                trouble[name] = f"grading failed, see logs/{name}.log"
            del running[name]
    return trouble


def forget(root: Path, assignment: str) -> None:
    """Remove what an earlier grading left of an assignment: files, and points of the machine.

    Points that a person gave stay in the gradebook.
    """
    (root / "grades.csv").unlink(missing_ok=True)
    for kind in ("submitted", "autograded", "feedback"):
        for folder in (root / kind).glob(f"*/{assignment}"):
            shutil.rmtree(folder)
    shutil.rmtree(root / "logs", ignore_errors=True)
    (root / "logs").mkdir(parents=True)
    if (root / "gradebook.db").exists():
        _use_own_programs()
        with Gradebook(f"sqlite:///{root.resolve()}/gradebook.db") as book:
            for entry in book.assignment_submissions(assignment):
                for notebook in entry.notebooks:
                    for grade in notebook.grades:
                        grade.auto_score, grade.needs_manual_grade = 0.0, False
            book.db.commit()


def grade(
    assignment: str,
    submissions: Sequence[Submission],
    root: Path,
    seed: int,
    jobs: int = 2,
    limits: Limits = LIMITS,
    feedback: bool = True,
) -> tuple[list[Part], list[Result]]:
    """Grade notebooks and leave gradebook, graded notebooks and feedback in a course directory.

    Parameters
    ----------
    assignment : str
        The assignment's name.
    submissions : sequence of Submission
    root : Path
        nbgrader's course directory; made if it is not there. Points that a person gave there are
        kept, all else that an earlier grading left is removed.
    seed : int
        For all random inputs of the tests: the same seed gives the same grades.
    jobs : int
        Submissions that run at a time.
    limits : Limits
    feedback : bool
        Whether to write a page for each student, with tests, messages and points.

    Returns
    -------
    list of Part, list of Result
        Results in the order of `submissions`.

    Raises
    ------
    NoSandboxError
        If students' code cannot be locked up on this machine.
    """
    box = sandbox.find()
    handed_in = [s.path.parent for s in submissions if s.path]
    sandbox.check_hidden(box, [EXERCISES / "source", root, *handed_in])
    root.mkdir(parents=True, exist_ok=True)
    config = course(root, assignment)
    forget(root, assignment)
    template = generate(config, gradebook=True)
    parts = parts_of(template)

    bodies: dict[str, Callable[[], None]] = {}
    remarks = {s.key: s.trouble for s in submissions}
    for one in submissions:
        if one.path is None:
            continue
        try:
            # Nobody spoils the solution by giving it a second name.
            content = one.path.read_bytes() if one.key == INSTRUCTOR else read_file(one.path)
            cells, remarks[one.key] = read_cells(content)
        except ValueError as error:
            remarks[one.key] = str(error)
            continue
        folder = root / "submitted" / one.key / assignment
        folder.mkdir(parents=True)
        nbformat.write(normalize(cells, template), folder / f"{assignment}.ipynb")
        mine = copy.deepcopy(config)
        mine.CourseDirectory.student_id = one.key
        log = root / "logs" / f"{one.key}.log"
        bodies[one.key] = lambda mine=mine, log=log: _grade_one(
            mine, box, seed, limits, feedback, log
        )
    # A notebook keeps its own time; this is for one that slips away from it.
    trouble = _run_processes(bodies, jobs, limits.total_seconds + 120, box.end)

    results = []
    with Gradebook(config.CourseDirectory.db_url) as book:
        for one in submissions:
            book.update_or_create_student(one.key, last_name=one.student)
            with book.db.no_autoflush:
                book.update_or_create_submission(assignment, one.key)
            notes = [remarks[one.key], trouble.get(one.key, "")]
            entries = book.find_submission_notebook(assignment, assignment, one.key).grades
            if one.key in bodies and one.key not in trouble:
                path = root / "autograded" / one.key / assignment / f"{assignment}.ipynb"
                notes.append(incidents(nbformat.read(path, as_version=4)))
            else:
                for entry in entries:
                    entry.auto_score, entry.needs_manual_grade = 0.0, False
            found = {entry.name: _points(entry) for entry in entries}
            points = {p.name: found[p.name] for p in parts}
            results.append(Result(one.student, points, "; ".join(filter(None, notes))))
        book.db.commit()
    return parts, results


def _points(entry: Any) -> float | None:
    """A grade from the gradebook; None where a person has yet to give it."""
    if entry.manual_score is not None:
        return entry.manual_score
    return entry.auto_score


# ------------------------------------------------------------------------------------------
# What goes out
# ------------------------------------------------------------------------------------------


def table(parts: list[Part], results: list[Result]) -> str:
    """Points by student and task as text; what a person must read is named apart."""
    tasks = sorted({p.task for p in parts})
    machine = [p for p in parts if not p.by_hand]
    most = {t: sum(p.points for p in machine if p.task == t) for t in tasks}
    width = max(len(s) for s in ["student", *(r.student for r in results)])
    lines = [
        f"{'student':{width}}"
        + "".join(f"{f'task {t}':>9}" for t in tasks)
        + f"{'sum':>9}  by hand",
        f"{'':{width}}"
        + "".join(f"{most[t]:9g}" for t in tasks)
        + f"{sum(most.values()):9g}  {sum(p.points for p in parts if p.by_hand):g}",
    ]
    for r in results:
        got = {t: sum(r.points[p.name] for p in machine if p.task == t) for t in tasks}
        given = sum(r.points[p.name] or 0 for p in parts if p.by_hand)
        unread = sum(p.points for p in parts if p.by_hand and r.points[p.name] is None)
        by_hand = f"{given:g}" + (f", {unread:g} to be read" if unread else "")
        lines.append(
            f"{r.student:{width}}"
            + "".join(f"{got[t]:9g}" for t in tasks)
            + f"{sum(got.values()):9g}  {by_hand}"
            + (f"  [{r.note}]" if r.note else "")
        )
    return "\n".join(lines)


def write_csv(path: Path, parts: list[Part], results: list[Result], seed: int) -> None:
    """One line a student: points of all parts (empty: to be read), their sums, seed and note."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        names = [p.name for p in parts]
        writer.writerow(["student", *names, "automatic", "by_hand", "unread", "seed", "note"])
        for r in results:
            by_hand = [p for p in parts if p.by_hand]
            writer.writerow(
                [
                    r.student,
                    *("" if r.points[n] is None else f"{r.points[n]:g}" for n in names),
                    f"{r.automatic(parts):g}",
                    f"{sum(r.points[p.name] or 0 for p in by_hand):g}",
                    f"{sum(p.points for p in by_hand if r.points[p.name] is None):g}",
                    seed,
                    r.note,
                ]
            )


# ------------------------------------------------------------------------------------------
# Example submissions: the solution, the starter, and wrong solutions
# ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """A submission whose grade is known: the parts it loses."""

    name: str
    about: str
    notebook: NotebookNode
    loses: tuple[str, ...]


def wrong_solutions(assignment: str) -> list[dict[str, Any]]:
    """The wrong solutions that are kept of an assignment, as changes of the right one."""
    return runpy.run_path(str(EXERCISES / "wrong" / f"{assignment}.py"))["WRONG"]


def examples(assignment: str, template: NotebookNode) -> list[Example]:
    """The solution, the starter, and all of ``exercises/wrong/ASSIGNMENT.py``.

    Raises
    ------
    ValueError
        If a wrong solution replaces what is not, or not once, in the right one.
    """
    solution = source_notebook(assignment)
    automatic = tuple(p.name for p in parts_of(template) if not p.by_hand)
    found = [
        Example("solution", "the instructor's own", solution, ()),
        Example("starter", "as it was handed out", template, automatic),
    ]
    for entry in wrong_solutions(assignment):
        notebook = copy.deepcopy(solution)
        for name, right, wrong in entry["changes"]:
            cell = next(c for c in notebook.cells if c.id == name)
            if cell.source.count(right) != 1:
                raise ValueError(
                    f"{entry['name']}: {right!r} is {cell.source.count(right)} times in {name}, "
                    "it must be there once"
                )
            cell.source = cell.source.replace(right, wrong)
        found.append(Example(entry["name"], entry["about"], notebook, entry["loses"]))
    return found


def write_examples(assignment: str, folder: Path) -> list[Example]:
    """Write the example submissions as a class would hand them in; returns them."""
    with tempfile.TemporaryDirectory() as temporary:
        template = generate(course(Path(temporary), assignment), gradebook=False)
    found = examples(assignment, template)
    folder.mkdir(parents=True, exist_ok=True)
    for example in found:
        nbformat.write(example.notebook, folder / f"{example.name}.ipynb")
    return found


def unexpected(parts: list[Part], results: list[Result], known: list[Example]) -> list[str]:
    """In what the grades of examples differ from what they should be."""
    differences = []
    for example, result in zip(known, results, strict=True):
        for part in parts:
            want = 0.0 if part.name in example.loses else part.points
            got = result.points[part.name]
            if not part.by_hand and got != want:
                differences.append(f"{example.name}, {part.name}: {got} points instead of {want}")
    return differences


# ------------------------------------------------------------------------------------------
# Command line
# ------------------------------------------------------------------------------------------


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="assignments.py", description="Release assignments and grade what comes back."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("release", help="make the students' versions")
    one.add_argument("assignment", nargs="?", choices=assignments(), help="all, if left out")
    one = commands.add_parser("publish", help="write all that students get, and no solution")
    one.add_argument("folder", type=Path, help="a new or empty folder")
    one = commands.add_parser("grade", help="grade submissions, or examples if there are none")
    one.add_argument(
        "assignment", nargs="?", choices=assignments(), default=assignments()[0], help="its name"
    )
    one.add_argument("--submitted", type=Path, metavar="DIR", help="exercises/submitted")
    one.add_argument("--output", type=Path, default=EXERCISES / "graded", metavar="DIR")
    one.add_argument("--seed", type=int, help="repeat a grading with its random inputs")
    one.add_argument("--jobs", type=int, default=2, help="submissions at a time (2)")
    one.add_argument("--cell-seconds", type=float, default=LIMITS.cell_seconds)
    one.add_argument("--total-seconds", type=float, default=LIMITS.total_seconds)
    one.add_argument("--memory-gib", type=float, default=LIMITS.memory_bytes / 2**30)
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run a command; returns the exit status."""
    # Tests come back with their hidden half, and nbgrader warns of each that it has changed.
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    options = parse(arguments)
    if options.command == "release":
        for name in [options.assignment] if options.assignment else assignments():
            print(f"for the students: {os.path.relpath(release(name))}")
        return 0
    if options.command == "publish":
        try:
            files = publish(options.folder)
        except FileExistsError as error:
            print(error)
            return 2
        print(f"for the students: {len(files)} files in {options.folder}")
        return 0
    try:
        return _grade_class(options)
    except NoSandboxError as error:
        print(error)
        return 2


def _grade_class(options: argparse.Namespace) -> int:
    """Grade what was handed in, or the examples; returns the exit status."""
    sandbox.find()  # before anything is said or written
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    memory = int(options.memory_gib * 2**30)
    limits = Limits(options.cell_seconds, options.total_seconds, memory)
    folder = options.submitted or EXERCISES / "submitted"
    if options.submitted and not folder.is_dir():
        print(f"--submitted {folder}: there is no such folder")
        return 2
    submissions = find_submissions(folder, options.assignment) if folder.is_dir() else []
    print(f"seed {seed} (the same grading again: --seed {seed})", flush=True)
    if submissions:
        solution = EXERCISES / "source" / options.assignment / f"{options.assignment}.ipynb"
        everybody = [Submission(INSTRUCTOR, INSTRUCTOR, solution), *submissions]
        parts, (check, *results) = grade(
            options.assignment, everybody, options.output, seed, options.jobs, limits
        )
        lost = [p for p in parts if not p.by_hand and check.points[p.name] != p.points]
        if lost:
            print(f"no grades: here the solution itself loses {', '.join(p.name for p in lost)}.")
            print(f"Why, says {os.path.relpath(options.output)}/feedback/{INSTRUCTOR}")
            return 1
        write_csv(options.output / "grades.csv", parts, results, seed)
        print(table(parts, [check, *results]))
        print(f"grades, feedback and gradebook: {os.path.relpath(options.output)}")
        return 0
    if options.submitted:
        print(f"--submitted {folder}: no notebook of {options.assignment} in there")
        return 2

    print("nothing in exercises/submitted: grading the examples of exercises/wrong instead")
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        known = write_examples(options.assignment, root / "examples")
        paths = [root / "examples" / f"{e.name}.ipynb" for e in known]
        handed_in = [Submission(e.name, e.name, p) for e, p in zip(known, paths, strict=True)]
        parts, results = grade(
            options.assignment, handed_in, root / "graded", seed, options.jobs, limits, False
        )
    print(table(parts, results))
    print(*(f"{e.name}: {e.about}" for e in known), sep="\n")
    differences = unexpected(parts, results, known)
    print("\n".join(differences) or "every example got what it should")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")  # names may have letters that a terminal has not
    sys.exit(main(sys.argv[1:]))
