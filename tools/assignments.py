"""Make the students' versions of the assignments, and grade what they hand in.

::

    python tools/assignments.py release [NAME]
    python tools/assignments.py grade [NAME] [--submitted DIR] [--output DIR] [--seed N]

A submission runs in a Jupyter kernel of its own, started by a process of its own, with limits on
time and memory. A cell that never ends or kills its kernel counts as failed; then the notebook runs
again without it, so that it costs its own points and no others. Everything else is nbgrader's:
cells, gradebook, feedback. ``exercises/README.md`` says how to use it.
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
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import nbformat
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, GenerateAssignment, GenerateFeedback
from nbgrader.converters.base import BaseConverter
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import Execute, LimitOutput, OverwriteCells, SaveAutoGrades, SaveCells
from nbgrader.utils import is_grade, is_locked
from traitlets.config import Config, PyFileConfigLoader

EXERCISES = Path(__file__).resolve().parents[1] / "exercises"
SETUP = "setup"  # cells whose id begins so run again before each test
INSTRUCTOR = "instructor"  # hands in the solution, with every class
FIGURE = "figure"  # cells whose id begins so show something and are not run for a grade


@dataclass(frozen=True)
class Limits:
    """What a submission may use.

    Attributes
    ----------
    cell_seconds : float
        Time of one cell.
    total_seconds : float
        Time of the whole notebook, with all its new starts.
    memory_bytes : int
        Address space of each process.
    """

    cell_seconds: float = 30.0
    total_seconds: float = 300.0
    memory_bytes: int = 8 * 2**30


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


def _name(cell: NotebookNode) -> str:
    """nbgrader's id of a cell, or an empty string."""
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


def parts_of(notebook: NotebookNode) -> list[Part]:
    """The graded parts of a notebook that are worth points, in order."""
    graded = [c for c in notebook.cells if is_grade(c) and c.metadata.nbgrader.points]
    return [
        Part(
            name=_name(c),
            task=re.search(r"\d+", _name(c)).group(),
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


# ------------------------------------------------------------------------------------------
# Grading
# ------------------------------------------------------------------------------------------


def normalize(submission: NotebookNode, template: NotebookNode) -> NotebookNode:
    """A submission with all cells of the students' version and their original metadata.

    Students delete cells, and some editors drop metadata. A cell is known by nbgrader's id or,
    where that is lost, by its own; one that is missing comes back as it was handed out, after the
    cell it followed. Of two cells with one id, pasted perhaps, the last one counts. Tags go: one
    of them would keep a test from running. So do outputs.

    Parameters
    ----------
    submission, template : NotebookNode
        What came in, and what was handed out.

    Returns
    -------
    NotebookNode
        A new notebook; cells that students added are in it, where they were.
    """
    known = {_name(c): c for c in template.cells if _name(c)}
    cells: list[NotebookNode] = []
    place: dict[str, NotebookNode] = {}
    for cell in copy.deepcopy(submission.cells):
        name = (cell.metadata.get("nbgrader") or {}).get("grade_id", cell.get("id"))
        cell.metadata = NotebookNode()
        if name in known:
            cell.metadata.nbgrader = copy.deepcopy(known[name].metadata.nbgrader)
            if name in place:
                del place[name].metadata["nbgrader"]
            place[name] = cell
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        cells.append(cell)

    position = 0
    for name, original in known.items():
        if name in place:
            position = 1 + next(i for i, c in enumerate(cells) if c is place[name])
        else:
            cells.insert(position, copy.deepcopy(original))
            position += 1

    for i, cell in enumerate(cells):
        cell.id = _name(cell) or f"other-{i}"  # nbformat wants them different
    return nbformat.v4.new_notebook(cells=cells, metadata=copy.deepcopy(template.metadata))


class ResilientExecute(Execute):
    """nbgrader's execution of a notebook, for code that may hang, crash or redefine the tests."""

    interrupt_on_timeout = False  # a loop may catch the interrupt; the kernel is killed instead
    shutdown_kernel = "immediate"
    limits = Limits()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.timeout_func = lambda _: max(1.0, min(self.limits.cell_seconds, self._time_left()))

    def preprocess(
        self, nb: NotebookNode, resources: Any = None, km: Any = None
    ) -> tuple[NotebookNode, Any]:
        """Execute a notebook; each cell that ends its kernel is left out of the next attempt."""
        self._deadline = time.monotonic() + self.limits.total_seconds
        self._failed: dict[int, tuple[str, str]] = {}
        setup = "\n\n".join(c.source for c in nb.cells if _name(c).startswith(SETUP))
        # As one string: IPython would read it through, line by line, before each test.
        self._setup = f"__import__('builtins').exec({setup!r})"
        while True:
            try:
                return super().preprocess(nb, resources, km)
            except CellTimeoutError:
                self._failed[self._index] = ("TimeLimit", "the cell ran too long")
            except DeadKernelError:
                self._failed[self._index] = ("Crash", "the cell ended the Python process")

    def preprocess_cell(
        self, cell: NotebookNode, resources: Any, index: int
    ) -> tuple[NotebookNode, Any]:
        self._index = index
        if cell.cell_type != "code":
            return cell, resources
        if self._time_left() <= 0:
            self._failed[index] = ("TimeLimit", "there was no time left for this cell")
        if index in self._failed:
            error, message = self._failed[index]
            cell.outputs = [
                nbformat.v4.new_output("error", ename=error, evalue=message, traceback=[message])
            ]
            return cell, resources
        if _name(cell).startswith(FIGURE):
            return cell, resources
        if not self.code_cells_executed:
            # In a kernel they end the process between two cells, and another cell gets the blame.
            self._run_aside("globals().update(exit=None, quit=None)", index)
        if is_grade(cell):
            self._run_aside(self._setup, index)
        cell, resources = super().preprocess_cell(cell, resources, index)
        if is_grade(cell):
            cell.outputs = [_countable(o) for o in cell.outputs if o.output_type in _COUNTED]
        return cell, resources

    def _run_aside(self, source: str, index: int) -> None:
        cell = self.nb.cells[index]
        self.execute_cell(nbformat.v4.new_code_cell(source), index, store_history=False)
        self.nb.cells[index] = cell  # nbclient has put the other in its place

    def _time_left(self) -> float:
        return self._deadline - time.monotonic()


# nbgrader takes a value that a test shows for its points, and a warning for a failure.
_COUNTED = ("error", "stream")


def _countable(output: NotebookNode) -> NotebookNode:
    if output.output_type == "stream":
        output.name = "stdout"
    return output


def _grade_one(config: Config, seed: int, limits: Limits, feedback: bool) -> None:
    """Run one submission and write its points and feedback; the body of a process of its own."""
    root = Path(config.CourseDirectory.root)
    student = config.CourseDirectory.student_id
    profile = root / "ipython" / student
    profile.mkdir(parents=True, exist_ok=True)
    log = os.open(root / "logs" / f"{student}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    os.environ.update(
        DGBOOK_GRADING_SEED=str(seed),
        CUDA_VISIBLE_DEVICES="",  # the simulator sees more than a GPU, and sees it every time
        IPYTHONDIR=str(profile),  # nobody's start-up files
        OPENBLAS_NUM_THREADS="1",
        OMP_NUM_THREADS="1",
        PYDEVD_DISABLE_FILE_VALIDATION="1",
    )

    limited = type("LimitedExecute", (ResilientExecute,), {"limits": limits})
    # Metadata are the instructor's own already, and outputs and twins are gone: see `normalize`.
    config.Autograde.sanitize_preprocessors = [OverwriteCells]
    config.Autograde.autograde_preprocessors = [limited, LimitOutput, SaveAutoGrades]
    convert(Autograde, config)
    if feedback:
        convert(GenerateFeedback, config)


def _run_processes(
    bodies: Mapping[str, Callable[[], None]], jobs: int, seconds: float
) -> dict[str, str]:
    """Run each body in a process of its own, so many at a time; returns what went wrong by name."""
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
            if process.exitcode and name not in trouble:
                trouble[name] = f"grading failed, see logs/{name}.log"
            del running[name]
    return trouble


def _incidents(path: Path) -> str:
    """Which cells of a graded notebook ran too long or crashed."""
    found = []
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error" and output.ename in ("TimeLimit", "Crash"):
                found.append(f"{output.ename} in {_name(cell) or 'a cell of their own'}")
    return ", ".join(found)


def grade(
    assignment: str,
    submissions: Mapping[str, Path],
    root: Path,
    seed: int,
    jobs: int = 2,
    limits: Limits = Limits(),
    feedback: bool = True,
) -> tuple[list[Part], list[Result]]:
    """Grade notebooks and leave gradebook, graded notebooks and feedback in a course directory.

    Parameters
    ----------
    assignment : str
        The assignment's name.
    submissions : mapping
        Notebook by student.
    root : Path
        nbgrader's course directory; made if it is not there. Points that a person gave there are
        kept.
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
    """
    root.mkdir(parents=True, exist_ok=True)
    (root / "logs").mkdir(exist_ok=True)
    config = course(root, assignment)
    template = generate(config, gradebook=True)
    parts = parts_of(template)

    bodies: dict[str, Callable[[], None]] = {}
    trouble: dict[str, str] = {}
    for student, path in submissions.items():
        folder = root / "submitted" / student / assignment
        shutil.rmtree(folder, ignore_errors=True)
        try:
            submission = nbformat.read(path, as_version=4)
        except Exception as error:  # whatever a student may have handed in
            trouble[student] = f"no notebook: {type(error).__name__}: {error}"[:80]
            continue
        folder.mkdir(parents=True)
        nbformat.write(normalize(submission, template), folder / f"{assignment}.ipynb")
        mine = copy.deepcopy(config)
        mine.CourseDirectory.student_id = student
        bodies[student] = lambda mine=mine: _grade_one(mine, seed, limits, feedback)
    # A notebook keeps its own time; this is for one that slips away from it.
    trouble |= _run_processes(bodies, jobs, limits.total_seconds + 120)

    results = []
    with Gradebook(config.CourseDirectory.db_url) as book:
        for student in submissions:
            note = trouble.get(student, "")
            points: dict[str, float | None] = {p.name: 0.0 for p in parts}
            if not note:
                graded = book.find_submission_notebook(assignment, assignment, student).grades
                points |= {g.name: _points(g) for g in graded if g.name in points}
                folder = root / "autograded" / student / assignment
                note = _incidents(folder / f"{assignment}.ipynb")
            results.append(Result(student, points, note))
    return parts, results


def _points(entry: Any) -> float | None:
    """A grade from the gradebook; None where a person has yet to give it."""
    if entry.manual_score is not None:
        return entry.manual_score
    return entry.auto_score


# ------------------------------------------------------------------------------------------
# What came in, what goes out
# ------------------------------------------------------------------------------------------


def find_submissions(folder: Path, assignment: str) -> dict[str, Path]:
    """Notebooks by student: ``STUDENT.ipynb`` or ``STUDENT/.../NAME.ipynb``.

    Raises
    ------
    ValueError
        If a student has more than one notebook, or a name that is taken or makes no file name.
    """
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*.ipynb")):
        inside = path.relative_to(folder)
        if any(part.startswith(".") for part in inside.parts):
            continue
        if len(inside.parts) > 1 and inside.stem != assignment:
            continue
        student = inside.parts[0].removesuffix(".ipynb")
        if not re.fullmatch(r"[\w.@+-]+", student):
            raise ValueError(
                f"{path}: the student's name is {student!r}; allowed are letters, digits and ._@+-"
            )
        if student == INSTRUCTOR:
            raise ValueError(f"{path}: the student's name is {student!r}, which stands for you")
        if student in found:
            raise ValueError(f"{student} has two notebooks: {found[student]} and {path}")
        found[student] = path
    return found


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
    for entry in runpy.run_path(str(EXERCISES / "wrong" / f"{assignment}.py"))["WRONG"]:
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
    one = commands.add_parser("grade", help="grade submissions, or examples if there are none")
    one.add_argument(
        "assignment", nargs="?", choices=assignments(), default=assignments()[0], help="its name"
    )
    one.add_argument("--submitted", type=Path, metavar="DIR", help="exercises/submitted")
    one.add_argument("--output", type=Path, default=EXERCISES / "graded", metavar="DIR")
    one.add_argument("--seed", type=int, help="repeat a grading with its random inputs")
    one.add_argument("--jobs", type=int, default=2, help="submissions at a time (2)")
    one.add_argument("--cell-seconds", type=float, default=Limits.cell_seconds)
    one.add_argument("--total-seconds", type=float, default=Limits.total_seconds)
    one.add_argument("--memory-gib", type=float, default=Limits.memory_bytes / 2**30)
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

    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    memory = int(options.memory_gib * 2**30)
    limits = Limits(options.cell_seconds, options.total_seconds, memory)
    folder = options.submitted or EXERCISES / "submitted"
    if options.submitted and not folder.is_dir():
        print(f"--submitted {folder}: there is no such folder")
        return 2
    try:
        submissions = find_submissions(folder, options.assignment)
    except ValueError as error:
        print(error)
        return 2
    print(f"seed {seed} (the same grading again: --seed {seed})", flush=True)
    if submissions:
        solution = EXERCISES / "source" / options.assignment / f"{options.assignment}.ipynb"
        everybody = {INSTRUCTOR: solution, **submissions}
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
        paths = {e.name: root / "examples" / f"{e.name}.ipynb" for e in known}
        parts, results = grade(
            options.assignment, paths, root / "graded", seed, options.jobs, limits, False
        )
    print(table(parts, results))
    print(*(f"{e.name}: {e.about}" for e in known), sep="\n")
    differences = unexpected(parts, results, known)
    print("\n".join(differences) or "every example got what it should")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
