"""What a simulated run did, and what a warp asks of memory: the material of films and checks.

`record` listens to one launch and keeps every statement of every thread with what it touched.
`rows` puts the statements of some threads beside each other, lanes of a warp in step, and
`request` counts the 32-byte sectors or the banks that one instruction of a warp asks for.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import math
import textwrap
import types
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dgbook.check import simulator
from dgbook.check.simulator import Access, SimulatorError, ThreadId
from dgbook.gpu.limits import WARP

SECTOR = 32  # bytes that memory delivers at least
BANKS = 32  # of shared memory, of four bytes each
ALIKE = 4  # rows of a round that are worth leaving out where they repeat
MOST_STEPS = 200_000  # of one run; a film and a check are for small grids

# ------------------------------------------------------------------------------------------
# The source
# ------------------------------------------------------------------------------------------


class Source:
    """The text of a kernel by statements; line 1 is the decorator, as `inspect.getsource` has it.

    Attributes
    ----------
    first : int
        The line of the file that is line 1 here.
    lines : list of str
    kernel : ast.FunctionDef
    statements : dict
        By their first line, in order.

    Raises
    ------
    ValueError
        If the text is not to be had, as for a function made by ``exec``, or a lambda's.
    """

    def __init__(self, kernel: Any) -> None:
        function = getattr(kernel, "py_func", kernel)
        if function.__name__ == "<lambda>":
            raise ValueError("kernel is a lambda; allowed are functions that begin with def")
        try:
            text = textwrap.dedent(inspect.getsource(function))
        except (OSError, TypeError):
            raise ValueError(
                f"kernel = {kernel!r} has no source text to show; allowed are functions from a "
                "file or a cell of a notebook"
            ) from None
        self.first = function.__code__.co_firstlineno
        self.lines = text.splitlines()
        tree = ast.walk(ast.parse(text))
        self.kernel = next(node for node in tree if isinstance(node, ast.FunctionDef))
        inner = [node for node in ast.walk(self.kernel) if isinstance(node, ast.stmt)][1:]
        if ast.get_docstring(self.kernel) is not None:
            inner.remove(self.kernel.body[0])
        self.statements = {node.lineno: node for node in sorted(inner, key=lambda n: n.lineno)}
        self._of_line = {i: n for n in self.statements for i in range(n, self.end(n) + 1)}
        self._loops = {
            line: [n for n in self.statements if self.is_loop(n) and n <= line <= self.end(n)]
            for line in self.statements
        }

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def parameters(self) -> list[str]:
        return [a.arg for a in self.kernel.args.args]

    def end(self, line: int) -> int:
        return self.statements[line].end_lineno

    def text(self, line: int) -> str:
        """A statement, or the head of one that has a body, as one line."""
        body = getattr(self.statements[line], "body", None)
        last = body[0].lineno - 1 if body else self.end(line)
        first, *others = self.lines[line - 1 : max(last, line)]
        joined = " ".join([first, *(other.strip() for other in others)])
        return joined.replace("( ", "(").replace(" )", ")")

    def statement(self, file_line: int) -> int:
        """The first line of the statement that a line of the file belongs to."""
        return self._of_line[file_line - self.first + 1]

    def is_loop(self, line: int) -> bool:
        return isinstance(self.statements.get(line), ast.For | ast.While)

    def loops(self, line: int) -> list[int]:
        """The headers of the loops around a line, outermost first; a header is in its own loop."""
        return self._loops[line]

    def declares(self, line: int) -> bool:
        """Whether a statement gives a name to shared or local memory, which takes no time."""
        statement = self.statements[line]
        made = isinstance(statement, ast.Assign) and ast.unparse(statement.value)
        return bool(made) and made.startswith(("cuda.shared.array", "cuda.local.array"))

    def shared(self) -> set[str]:
        """The names of the arrays that the kernel reserves in shared memory."""
        return {
            target.id
            for node in self.statements.values()
            if isinstance(node, ast.Assign)
            and ast.unparse(node.value).startswith("cuda.shared.array")
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def shared_writes(self) -> list[int]:
        """The lines that write an element of a shared array."""
        names = self.shared()
        return [line for line, node in self.statements.items() if _written(node) & names]

    def blanks(self, indices: str = "all") -> list[int]:
        """The lines on which ``...`` still stands for what a reader is to write.

        Beside other entries of an index it may be NumPy's. There it counts with "all", with "last"
        if nothing follows it, as in ``x[i, ...]``, and with "none" not at all.
        """
        spared = set()
        for n in ast.walk(self.kernel):
            if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Tuple):
                entries = n.slice.elts
                spared.update(map(id, {"all": [], "last": entries[:-1], "none": entries}[indices]))
        blank = [n for n in ast.walk(self.kernel) if getattr(n, "value", 0) is ...]
        return sorted({n.lineno for n in blank if id(n) not in spared})


def _written(node: ast.stmt) -> set[str]:
    """The arrays of which an assignment writes elements."""
    single = [node.target] if isinstance(node, ast.AugAssign) else []
    targets = node.targets if isinstance(node, ast.Assign) else single
    return {ast.unparse(t.value) for t in targets if isinstance(t, ast.Subscript)}


def in_step(kernel: Any) -> Callable[..., None]:
    """The kernel with a barrier behind each write of shared memory, on the line of that write.

    So its threads keep step as lanes of a warp mostly do, whatever barriers it lacks. A write in a
    branch has its barrier behind the branch, on the line of its condition: all threads reach it.
    """
    source = Source(kernel)
    names = source.shared()

    class Guard(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> Any:
            statements = (s for s in ast.walk(node) if isinstance(s, ast.stmt))
            writes = any(_written(s) & names for s in statements)
            return [node, _called("cuda.syncthreads", node.test)] if writes else node

        def generic_visit(self, node: ast.AST) -> Any:
            node = super().generic_visit(node)
            writes = isinstance(node, ast.stmt) and _written(node) & names
            return [node, _called("cuda.syncthreads", node)] if writes else node

    return _rewritten(kernel, source, Guard(), {})


def _counted(kernel: Any, most: int) -> Callable[..., None]:
    """The kernel, which raises RuntimeError when its threads have begun so many rounds of loops."""

    class Rounds(ast.NodeTransformer):
        def generic_visit(self, node: ast.AST) -> Any:
            node = super().generic_visit(node)
            if isinstance(node, ast.For | ast.While):
                node.body.insert(0, _called("_begin_round", node.body[0]))
            return node

    return _rewritten(kernel, Source(kernel), Rounds(), {"_begin_round": _Countdown(most)})


class _Countdown:
    """Called more often than allowed, it raises RuntimeError."""

    def __init__(self, most: int) -> None:
        self.left = most

    def __call__(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("more rounds of loops than anyone waits for")


def _called(name: str, line: ast.AST) -> ast.stmt:
    """The call of a function without arguments, as a statement on a line."""
    call = ast.parse(f"{name}()").body[0]
    for part in ast.walk(call):
        ast.copy_location(part, line)
    return call


def _rewritten(
    kernel: Any, source: Source, change: ast.NodeTransformer, names: Mapping[str, Any]
) -> Callable[..., None]:
    """A kernel's function with its source changed; it finds some more names around it."""
    function = getattr(kernel, "py_func", kernel)
    tree = change.visit(source.kernel)
    tree.decorator_list, tree.lineno = [], 1
    tree = ast.increment_lineno(ast.Module([tree], []), source.first - 1)
    ast.fix_missing_locations(tree)
    around = {**function.__globals__, **inspect.getclosurevars(function).nonlocals, **names}
    made: dict[str, Any] = {}
    exec(compile(tree, function.__code__.co_filename, "exec"), around, made)
    return types.FunctionType(
        made[source.name].__code__, around, source.name, function.__defaults__
    )


# ------------------------------------------------------------------------------------------
# One run
# ------------------------------------------------------------------------------------------


class Wait(NamedTuple):
    """A thread waits: "barrier", "vote", "grid barrier", or the name of a warp operation."""

    what: str


@dataclass(eq=False)
class Step:
    """One statement, executed by one thread.

    Attributes
    ----------
    thread : ThreadId
    line : int
        In its `Source`.
    path : tuple
        Header and round of each loop around it, then (line, 0): sorts as time does.
    acts : list of Access or Wait
    ghost : bool
        The simulator had stopped before; this is what would have been.
    values : dict
        The thread's numbers after the statement, by the names of its variables.
    """

    thread: ThreadId
    line: int
    path: tuple
    acts: list[Access | Wait] = field(default_factory=list)
    ghost: bool = False
    values: dict[str, int | float] = field(default_factory=dict)


class Memory(NamedTuple):
    """An array of a kernel that its threads touched."""

    shared: bool
    itemsize: int
    base: int  # its first byte in the block's shared memory; 0 in global memory


@dataclass
class Clash:
    """Why the simulator stopped: at which step, and against whom."""

    error: SimulatorError
    step: Step | None
    access: Access | None = None
    other_step: Step | None = None  # who touched the same word before, or should have written it
    other: Access | None = None

    @property
    def kind(self) -> str:
        """ "race", "unwritten", "range", "barrier" or "other"."""
        kinds = {
            simulator.RaceError: "race",
            simulator.UndefinedReadError: "unwritten",
            simulator.OutOfRangeError: "range",
            simulator.BarrierError: "barrier",
        }
        return kinds.get(type(self.error), "other")


@dataclass
class Log:
    """All that a launch did, in the order in which the simulator ran it.

    Attributes
    ----------
    source : Source
    grid, block : tuple of three ints
    args : dict
        The arguments after the run by the names of their parameters.
    steps : list of Step
    arrays : dict of str to Memory
    clash : Clash or None
    """

    source: Source
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: dict[str, Any]
    steps: list[Step]
    arrays: dict[str, Memory]
    clash: Clash | None = None

    @property
    def threads(self) -> int:
        """Threads per block."""
        return math.prod(self.block)

    def accesses(self) -> Iterable[tuple[Step, Access]]:
        """What really was touched, and in which step."""
        for step in self.steps:
            for act in step.acts:
                if isinstance(act, Access) and not step.ghost:
                    yield step, act


class _Recorder(simulator.Observer):
    def __init__(self, source: Source) -> None:
        self.source = source
        self.steps: list[Step] = []
        self.arrays: dict[str, Memory] = {}
        self._now: dict[ThreadId, Step] = {}
        self._rounds: dict[ThreadId, dict[int, int]] = {}
        self._lines = 0  # begun: a statement may have several, and a whole loop only one

    def line(self, thread: ThreadId, function: str, line: int, values: Mapping[str, Any]) -> None:
        if function != self.source.name:
            return
        self._lines += 1
        if len(self.steps) >= MOST_STEPS or self._lines >= 2 * MOST_STEPS:
            raise RuntimeError(
                f"kernel {self.source.name} has run {MOST_STEPS:,} statements and has not ended: "
                "its grid is too large to be followed, or a loop of it never ends"
            )
        at = self.source.statement(line)
        before, last = self._rounds.get(thread, {}), self._now.get(thread)
        if last is not None:
            last.values = _numbers(values)
            if last.line == at:
                return  # another line of the same statement
        counts = {header: before.get(header, 0) for header in self.source.loops(at)}
        if at in before:
            counts[at] += 1
        self._rounds[thread] = counts
        self._now[thread] = Step(thread, at, (*counts.items(), (at, 0)))
        self.steps.append(self._now[thread])

    def access(self, access: Access) -> None:
        if access.array not in self.arrays:
            base = access.address - access.element * access.nbytes
            self.arrays[access.array] = Memory(access.shared, access.nbytes, base)
        self._now[access.thread].acts.append(access)

    def wait(self, thread: ThreadId, what: str, function: str, line: int) -> None:
        self._now[thread].acts.append(Wait(what))


def _numbers(values: Mapping[str, Any]) -> dict[str, int | float]:
    numbers = {k: v for k, v in values.items() if isinstance(v, _NUMBERS)}
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in numbers.items()}
    return {k: v for k, v in plain.items() if isinstance(v, int | float)}


_NUMBERS = (int, float, np.generic)


def record(kernel: Any, grid: Any, block: Any, args: Sequence[Any], shared: int = 0) -> Log:
    """Run a kernel in the simulator, wherever its arguments live, and keep all that it did.

    Parameters
    ----------
    kernel : Kernel or function
        What `dgbook.gpu.jit` or ``numba.cuda.jit`` made, or the Python function itself.
    grid, block : int or tuple of up to three ints
    args : sequence
        Arrays of NumPy or CuPy, and numbers. Arrays are copied; the kernel changes the copies.
    shared : int
        Bytes of dynamic shared memory.

    Returns
    -------
    Log
        An objection of the simulator stands in `Log.clash`. The run is then repeated without
        checks, and what the threads would have done follows as ghosts. Their numbers are those of
        threads in step, see `in_step`.

    Raises
    ------
    ValueError
        If the kernel's source text is not to be had.
    RuntimeError
        If it runs more than `MOST_STEPS` statements.
    """
    source = Source(kernel)
    function = getattr(kernel, "py_func", kernel)

    def run(
        function: Callable[..., None], checks: bool
    ) -> tuple[_Recorder, list[Any], SimulatorError | None]:
        heard, copies = _Recorder(source), [_host_copy(a) for a in args]
        with simulator.observe(heard, checks=checks):
            try:
                simulator.launch(function, grid, block, tuple(copies), shared)
            except SimulatorError as error:
                return heard, copies, error
        return heard, copies, None

    heard, copies, error = run(function, checks=True)
    named = dict(zip(source.parameters, copies, strict=False))
    log = Log(source, _three(grid), _three(block), named, heard.steps, heard.arrays)
    if error is not None:
        done = len(log.steps)
        ghosts, _, _ = run(function, checks=False)
        lucky, _, _ = run(in_step(kernel), checks=False)
        values = {(step.thread, step.path): step.values for step in lucky.steps}
        log.arrays = ghosts.arrays
        for step in ghosts.steps[done:]:
            step.ghost = True
            step.values = values.get((step.thread, step.path), step.values)
            log.steps.append(step)
        log.clash = _clash(log, error)
        if (stopped := log.clash.step) is not None:
            stopped.values = values.get((stopped.thread, stopped.path), {})
    return log


class _Listener(simulator.Observer):
    """What each thread touches and waits for, as if it were all one statement."""

    def __init__(self) -> None:
        self.steps: dict[ThreadId, Step] = {}

    def access(self, access: Access) -> None:
        self._step(access.thread).acts.append(access)

    def wait(self, thread: ThreadId, what: str, function: str, line: int) -> None:
        self._step(thread).acts.append(Wait(what))

    def _step(self, thread: ThreadId) -> Step:
        if thread not in self.steps:
            self.steps[thread] = Step(thread, 0, ())
        return self.steps[thread]


def glance(kernel: Any, grid: Any, block: Any, args: Sequence[Any], shared: int, acts: bool) -> Log:
    """Run a kernel without following its statements, many times as fast as `record` does.

    Parameters
    ----------
    kernel, grid, block, args, shared
        As for `record`.
    acts : bool
        Whether what threads touch and wait for is wanted.

    Returns
    -------
    Log
        With one step per thread, which holds all its acts; with none if they are not wanted.

    Raises
    ------
    SimulatorError, RuntimeError, ...
        Whatever is wrong with the kernel; `record` says where.
    """
    source, heard, copies = Source(kernel), _Listener(), [_host_copy(a) for a in args]
    with simulator.observe(heard) if acts else contextlib.nullcontext():
        simulator.launch(_counted(kernel, MOST_STEPS), grid, block, tuple(copies), shared)
    named = dict(zip(source.parameters, copies, strict=False))
    return Log(source, _three(grid), _three(block), named, [*heard.steps.values()], {})


def _host_copy(value: Any) -> Any:
    if hasattr(value, "__cuda_array_interface__"):
        return value.get()
    return value.copy() if isinstance(value, np.ndarray) else value


def _three(size: Any) -> tuple[int, int, int]:
    given = tuple(size) if isinstance(size, tuple) else (size,)
    return given + (1,) * (3 - len(given))


def _clash(log: Log, error: SimulatorError) -> Clash:
    """The steps that an objection is about."""
    mine = [s for s in log.steps if not s.ghost and s.thread == error.thread]
    clash = Clash(error, mine[-1] if mine else None)
    touched = [a for a in mine[-1].acts if isinstance(a, Access)] if mine else []
    if clash.kind not in ("race", "unwritten") or not touched:
        return clash
    clash.access = touched[-1]
    word = (clash.access.array, clash.access.element)
    for step in log.steps:
        for act in step.acts:
            if clash.kind == "race":
                found = act is error.other
            else:  # who would have written the word, if a barrier had made the reader wait
                found = (
                    isinstance(act, Access)
                    and act.kind != "read"
                    and (act.array, act.element) == word
                    and act.thread.block == clash.access.thread.block
                )
            if found:
                clash.other_step, clash.other = step, act
                return clash
    return clash


def objection(log: Log) -> str:
    """The simulator's objection as a sentence for who has never seen one; code is in backticks."""
    clash = log.clash
    if clash is None:
        return ""
    error, several = clash.error, math.prod(log.grid) > 1
    if clash.kind == "range":
        where = f"`{error.array}[{', '.join(map(str, error.index))}]`"
        axes = str(error).partition(", but it has ")[2].partition(" ")[0]
        if axes:
            many = "one axis; give it one index" if axes == "1" else f"{axes} axes"
            return (
                f"{who(error.thread, log, several)} wants {where} in line {clash.step.line}, but "
                f"`{error.array}` has {many}."
            )
        shape = str(error).rpartition("its shape is ")[2]
        return (
            f"{who(error.thread, log, several)} wants {where} in line {clash.step.line}, which is "
            f"out of range: the shape of `{error.array}` is `{shape}`."
        )
    if clash.kind == "barrier" and clash.step is not None:
        line = log.source.statement(error.line)
        there = {s.thread for s in log.steps if s.line == line}
        others = [s.thread for s in log.steps if s.thread.block == error.thread.block]
        late = next((t for t in others if t not in there), None)
        never = f": {who(late, log, False)} never comes to this line" if late is not None else ""
        return (
            f"{who(error.thread, log, several)} waits at a barrier in line {line} for all threads "
            f"of its block, but not all wait there with it{never}."
        ).replace(": Thread", ": thread")
    if isinstance(error, simulator.NotOneElementError):
        axes = np.ndim(log.args.get(error.array))
        right = {2: "two axes: `{0}[row, column]`", 3: "three axes"}.get(axes, "")
        if error.ndim < axes and right:
            says = f"`{error.array}` has {right.format(error.array)}"
        else:
            says = f"`{error.array}` is an array: an index is missing"
        return f"In line {clash.step.line}, {says}."
    if isinstance(error, simulator.NotAnIntegerError) and clash.step is not None:
        index = ", ".join(map(str, error.index))
        return (
            f"{who(error.thread, log, several)} wants `{error.array}[{index}]` in line "
            f"{clash.step.line}. `/` makes a float; an index needs `//`."
        )
    if clash.access is None:
        return str(error)
    word = f"`{clash.access.array}[{', '.join(map(str, clash.access.index))}]`"
    far = clash.other is not None and clash.other.thread.block != clash.access.thread.block
    verb = _PRESENT[clash.access.kind]
    mine = f"{who(clash.access.thread, log, far)} {verb} {word} in line {clash.step.line}"
    if clash.other is None:
        return f"{mine}, which no thread ever writes."
    theirs = who(clash.other.thread, log, far)
    theirs = theirs[0].lower() + theirs[1:]
    if clash.kind == "unwritten":
        return (
            f"{mine}, but {theirs}, which writes it in line {clash.other_step.line}, may not have "
            "come there yet. Nothing makes one wait for the other."
        )
    why = "Nothing makes one wait for the other."
    if _both_write(log, clash.access, clash.other):
        why = "Two threads own the same word: should each have its own?"
    elif far:
        why = "No barrier can help: `cuda.syncthreads()` holds for the threads of one block only."
    return (
        f"{mine}, which {theirs} {_PAST[clash.other.kind]} in line {clash.other_step.line}. {why}"
    )


def _both_write(log: Log, mine: Access, theirs: Access) -> bool:
    """Whether two threads write the same word in the same line, sooner or later."""
    lines: dict[ThreadId, set[int]] = {mine.thread: set(), theirs.thread: set()}
    for step in log.steps:
        for act in step.acts if step.thread in lines else ():
            if isinstance(act, Access) and act.kind == "write":
                if (act.array, act.element) == (mine.array, mine.element):
                    lines[step.thread].add(step.line)
    return bool(lines[mine.thread] & lines[theirs.thread])


_PRESENT = {"read": "reads", "write": "writes", "atomic": "changes"}
_PAST = {"read": "read", "write": "wrote", "atomic": "changed atomically"}


def who(thread: ThreadId, log: Log, with_block: bool) -> str:
    """A thread in words: "Thread 3", "Thread (1, 2) of block 4"."""

    def short(index: tuple[int, int, int], size: tuple[int, int, int]) -> str:
        n = max((axis + 1 for axis in range(3) if size[axis] > 1), default=1)
        return str(index[0]) if n == 1 else f"({', '.join(map(str, index[:n]))})"

    of_block = f" of block {short(thread.block, log.grid)}" if with_block else ""
    return f"Thread {short(thread.thread, log.block)}{of_block}"


# ------------------------------------------------------------------------------------------
# Instructions of warps
# ------------------------------------------------------------------------------------------


@dataclass
class Row:
    """What the shown threads do in one instruction.

    Attributes
    ----------
    line : int
    text : str
        The source, where a statement begins.
    label : str
        The round of the innermost loop: "m = 2".
    kind : str
        First g or s for global or shared, then r, w or a for read, write or atomic; "rg" for
        registers only, "wt" for a barrier, "ex" for a warp operation, "none" for what takes no
        time, "fold" for rounds that are left out.
    array : str
    cells : dict
        By column: the step, and the access or the wait in it.
    path : tuple
        As in `Step`.
    hidden : list of Row
        What a row of kind "fold" stands for.
    """

    line: int
    text: str = ""
    label: str = ""
    kind: str = "none"
    array: str = ""
    cells: dict[int, tuple[Step, Any]] = field(default_factory=dict)
    path: tuple = ()
    hidden: list[Row] = field(default_factory=list)


def rows(log: Log, columns: Mapping[ThreadId, int]) -> list[Row]:
    """The instructions of some threads, lanes in step, in the order of the program."""
    moments: dict[tuple, dict[int, Step]] = defaultdict(dict)
    for step in log.steps:
        if step.thread in columns:
            moments[step.path][columns[step.thread]] = step
    for line in log.source.statements.keys() - {path[-1][0] for path in moments}:
        moments[(line, 0),] = {}  # nobody came there
    found: list[Row] = []
    for path in sorted(moments):
        line, steps = path[-1][0], moments[path]
        header = log.source.is_loop(line)
        if header and len(path) > 1 and path[-2][1] > 0:
            continue  # a loop's head is drawn once
        text = log.source.text(line) if all(n == 0 for _, n in path) else ""
        label = "" if header or len(path) == 1 else _round(log, path, steps)
        slots = _slots(log, line, steps)
        for (_, kind, array), cells in sorted(slots.items()):
            found.append(Row(line, text, label, kind, array, cells, path))
            text = label = ""
        if not slots:
            found.append(Row(line, text, label, path=path))
    return found


def _slots(log: Log, line: int, steps: Mapping[int, Step]) -> dict[tuple, dict[int, tuple]]:
    """What lanes do together in one statement: the n-th act of each, if it is of one kind."""
    slots: dict[tuple, dict[int, tuple]] = {}
    for column, step in steps.items():
        for n, act in enumerate(step.acts):
            if isinstance(act, Access):
                key = (n, "gs"[act.shared] + act.kind[0], act.array)
            else:
                at_barrier = act.what in ("barrier", "grid barrier", "vote")
                key = (n, "wt" if at_barrier else "ex", act.what)
            slots.setdefault(key, {})[column] = (step, act)
        if not step.acts and not log.source.declares(line):
            slots.setdefault((0, "rg", ""), {})[column] = (step, None)
    return slots


def _round(log: Log, path: tuple, steps: Mapping[int, Step]) -> str:
    header, number = path[-2]
    target = getattr(log.source.statements[header], "target", None)
    name = getattr(target, "id", "")
    value = next((s.values.get(name) for s in steps.values()), None) if name else None
    return f"{name} = {number if value is None else value}" if name else f"round {number}"


def fold(listed: Sequence[Row], first: int, most: int, keep: Sequence[Step] = ()) -> list[Row]:
    """Leave out rounds of long loops, and of others those that are like the first.

    Parameters
    ----------
    first : int
        Rounds at the beginning of a long loop that stay, with its last.
    most : int
        A loop of so many rounds is not long. Its rounds stay, but for those of `ALIKE` rows or
        more in which the same threads do the same as in the first.
    keep : sequence of Step
        Whose rounds stay in any case.

    Returns
    -------
    list of Row
        A row of kind "fold" stands for what is left out, and holds it in `hidden`.
    """
    rounds: dict[tuple, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in listed:
        for n, (header, number) in enumerate(row.path[:-1]):
            rounds[row.path[:n], header][number].append(row)
    kept = {step.path[: n + 1] for step in keep for n in range(len(step.path) - 1)}
    out: dict[tuple, str] = {}  # rounds that are left out, and what is said of them
    for (outer, header), by_number in rounds.items():
        total = len(by_number)
        if total > most:
            gone = [n for n in by_number if first <= n < total - 1]
            said = f"{total - first - 1} more rounds"
        else:
            # The head of a loop is drawn in its first round alone.
            inside = {n: [r for r in by_number[n] if r.line != header] for n in by_number}
            gone = [n for n in inside if n and _alike(inside[0], inside[n], len(outer) + 1)]
            said = "the same for " + _values([inside[n] for n in gone])
        out |= {(*outer, (header, n)): said for n in gone}
    found: list[Row] = []
    folds: dict[tuple, Row] = {}
    for row in listed:
        starts = (row.path[: n + 1] for n in range(len(row.path) - 1))
        gone = next((start for start in starts if start in out and start not in kept), None)
        if gone is None:
            found.append(row)
            continue
        loop = (gone[:-1], gone[-1][0])
        if loop not in folds:
            folds[loop] = Row(row.line, label=out[gone], kind="fold")
            found.append(folds[loop])
        folds[loop].hidden.append(row)
    return found


def _alike(one: Sequence[Row], other: Sequence[Row], depth: int) -> bool:
    """Whether the same threads do the same in two rounds, which are long enough to be left out."""
    deeds = [
        [(r.path[depth:], r.kind, r.array, set(r.cells)) for r in rows] for rows in (one, other)
    ]
    return len(one) >= ALIKE and deeds[0] == deeds[1]


def _values(rounds: Sequence[Sequence[Row]]) -> str:
    """What rounds are called by their first labels: "d = 1, 2"."""
    labels = [next(r.label for r in rows if r.label).rpartition(" ") for rows in rounds]
    return "".join(labels[0][:2]) + ", ".join(value for _, _, value in labels) if labels else ""


class Request(NamedTuple):
    """What one instruction of a warp asks of memory.

    Attributes
    ----------
    words : str
        Said in words.
    places : list of list of int
        Sectors of eight 4-byte words, with 1 for each word that is used; for shared memory four
        groups of eight banks, each with the number of words that are wanted there at a time.
    conflict : bool
        Whether a bank has to deliver several words one after another.
    sectors : int
        Sectors asked for; 0 for shared memory.
    ways : int
        Words that the busiest bank delivers one after another; 0 for global memory.
    """

    words: str
    places: list[list[int]]
    conflict: bool
    sectors: int
    ways: int


def request(accesses: Sequence[Access]) -> Request:
    """What the lanes of one warp ask of memory in one instruction.

    Accesses of more than four bytes to shared memory are served in parts of a warp that want 128
    bytes, so that two lanes of different parts never conflict. Global arrays are taken to begin at
    a multiple of 128 bytes, and caches are left aside: a sector that was asked for before counts
    again.
    """
    size = accesses[0].nbytes
    if accesses[0].shared:
        part = max(1, WARP * 4 // max(size, 4))
        parts: dict[int, set[int]] = defaultdict(set)
        for a in accesses:
            parts[a.thread.linear % WARP // part] |= _words(a)
        banks = [max(_in_bank(words, b) for words in parts.values()) for b in range(BANKS)]
        ways, different = max(banks), len({a.element for a in accesses})
        used = sum(n > 0 for n in banks)
        says = f"{used} bank{'s' * (used > 1)}, no conflict"
        if different == 1 and len(accesses) > 1:
            says = "one word for all: broadcast"
        if ways > 1:
            says = f"{ways}-way bank conflict"
        return Request(says, [banks[i : i + 8] for i in range(0, BANKS, 8)], ways > 1, 0, ways)
    touched: dict[int, set[int]] = defaultdict(set)
    for word in set().union(*map(_words, accesses)):
        touched[word * 4 // SECTOR].add(word % 8)
    n = len(touched)
    used = len({a.address for a in accesses}) * size
    says = f"{n} sector{'s' * (n > 1)}, {used} of {n * SECTOR} bytes"
    line = min(touched) // 4 * 4  # 128 bytes, shown whole if nothing lies outside
    shown = range(line, line + 4) if max(touched) < line + 4 else sorted(touched)
    places = [[int(i in touched.get(s, ())) for i in range(8)] for s in shown]
    return Request(says, places, False, n, 0)


def _words(access: Access) -> set[int]:
    """The 4-byte words that an access touches."""
    return set(range(access.address // 4, (access.address + access.nbytes - 1) // 4 + 1))


def _in_bank(words: set[int], bank: int) -> int:
    return sum(w % BANKS == bank for w in words)


def traffic(log: Log) -> dict[tuple[str, str], int]:
    """Sectors that all warps of a run ask for, by array and kind: ("u", "read"). Ghosts count not.

    Counted are requests before caches; measurements say what memory really delivers.
    """
    found: dict[tuple[str, str], int] = defaultdict(int)
    lanes: dict[tuple, list[ThreadId]] = defaultdict(list)
    for step in log.steps:
        lanes[step.thread.block, step.thread.linear // WARP].append(step.thread)
    for threads in lanes.values():
        for row in rows(log, {t: n for n, t in enumerate(dict.fromkeys(threads))}):
            real = [a for s, a in row.cells.values() if isinstance(a, Access) and not s.ghost]
            if real and not real[0].shared:
                found[row.array, real[0].kind] += request(real).sectors
    return dict(found)


def groups(log: Log, blocks: Sequence[Any]) -> list[list[ThreadId]]:
    """The threads that a film shows: up to a warp of each of some blocks, block by block.

    Where no blocks are named, those of an objection, or the first one.
    """
    wanted: list[tuple[tuple, int]] = []
    if blocks:
        wanted = [((b if isinstance(b, tuple) else (b,)), 0) for b in blocks]
        wanted = [(b + (0,) * (3 - len(b)), warp) for b, warp in wanted]
    elif log.clash and log.clash.step:
        both = [s.thread for s in (log.clash.step, log.clash.other_step) if s is not None]
        wanted = sorted({(t.block, t.linear // WARP) for t in both})
    else:
        wanted = [((0, 0, 0), 0)]
    for block, _ in wanted:
        if not all(0 <= i < n for i, n in zip(block, log.grid, strict=True)):
            raise ValueError(f"blocks = {blocks!r}; the grid has {log.grid}")
    z, y, x = (range(n) for n in reversed(log.block))
    inside = [(i, j, k) for k, j, i in product(z, y, x)]
    return [
        [
            ThreadId(block, inside[t], t)
            for t in range(warp * WARP, min(log.threads, (warp + 1) * WARP))
        ]
        for block, warp in wanted
    ]
