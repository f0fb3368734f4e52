"""Blanks: a reader's kernel, run in the simulator on random input, and what it gets wrong.

The simulator runs the kernel's Python function, so a check needs no GPU and no setting: a kernel
made by `dgbook.gpu.jit` or by ``numba.cuda.jit`` is checked in the very notebook that launches it
on a GPU.
"""

from __future__ import annotations

import ast
import html
import itertools
import operator
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np

from dgbook.page.log import Access, Log, Source, Wait, glance, in_step, objection, record


@dataclass(frozen=True)
class Task:
    """What a blank asks for.

    Attributes
    ----------
    grid, block : int or tuple of up to three ints
    given : callable
        Called with a NumPy generator; returns arrays and numbers by the names that a kernel's
        parameters may have. A kernel is given what it names.
    right : callable
        Called with what `given` returned; returns the right values of the arrays that the kernel
        is to write, by name. Their shape says how an entry is named.
    axes : tuple of str
        What the axes of the right values are called in a sentence.
    hints : mapping of str to str
        A sentence to add where values are wrong, by the name of the array.
    known : callable, optional
        Called as `right` is; returns what likely mistakes write, in the shape of right values, by
        the sentence that says what is wrong.
    objection : str
        For a kernel that is meant to be wrong: "race" or "unwritten", what the simulator has to
        find in it. Where it is about shared memory, the kernel must be right but for that: the
        values are compared after a run in which all threads wait behind each write of it.
    reads : mapping of str to int
        How often one thread may read an array, by its name; more is right but slow.
    barriers : int, optional
        How many barriers one thread may wait at; more is right but slow.
    ahead : str
        An array that a thread reads for the last time before it first writes shared memory; a
        kernel that takes turns is right but slow.
    tolerance : float
        Relative to the largest right value; by default 50 roundings of the array's dtype, and none
        of integers.
    shared : int
        Bytes of dynamic shared memory.
    """

    grid: Any
    block: Any
    given: Callable[[np.random.Generator], Mapping[str, Any]]
    right: Callable[[Mapping[str, Any]], Mapping[str, np.ndarray]]
    axes: tuple[str, ...] = ("element", "node")
    hints: Mapping[str, str] = field(default_factory=dict)
    known: Callable[[Mapping[str, Any]], Mapping[str, Mapping[str, np.ndarray]]] | None = None
    objection: str = ""
    reads: Mapping[str, int] = field(default_factory=dict)
    barriers: int | None = None
    ahead: str = ""
    tolerance: float | None = None
    shared: int = 0

    def __post_init__(self) -> None:
        if self.objection not in ("", "race", "unwritten"):
            raise ValueError(f"objection = {self.objection!r}; allowed are '', 'race', 'unwritten'")


@dataclass(frozen=True)
class Verdict:
    """What `check` says; true if the kernel does what was asked.

    Attributes
    ----------
    kind : {"right", "blank", "wrong", "stopped"}
        "stopped" where the simulator, or Python, would not go on.
    title, words : str
        Code stands in backticks.
    """

    kind: str
    title: str
    words: str

    def __bool__(self) -> bool:
        return self.kind == "right"

    def __repr__(self) -> str:
        return f"{self.title} {self.words}".replace("`", "")

    def _repr_html_(self) -> str:
        parts = html.escape(self.words).split("`")
        words = "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts))
        style = (files("dgbook.page") / "blank.css").read_text(encoding="utf-8")
        return (
            f'<div class="dgc {self.kind}" role="status"><style>{style}</style>'
            f"<b>{html.escape(self.title)}</b> {words}</div>"
        )


def check(kernel: Any, task: Task, seed: int = 1) -> Verdict:
    """Run a reader's kernel in the simulator on random input and say what there is to say.

    Parameters
    ----------
    kernel : Kernel or function
        With ``...`` anywhere in it, or where it raises NotImplementedError, it is still blank.
    task : Task
    seed : int
        Of the random input.

    Returns
    -------
    Verdict
        Shown as a box in a notebook; nothing that a reader writes makes this raise.
    """
    source = Source(kernel)
    if blanks := source.blanks():
        return _still_blank(source, blanks)
    if (line := _not_called(source)) is not None:
        words = f"Line {line} only names `{source.text(line).strip()}`; `()` behind it calls it."
        return Verdict("wrong", "Not quite.", words)
    given = dict(task.given(np.random.default_rng(seed)))
    unknown = [name for name in source.parameters if name not in given]
    if unknown:
        known = ", ".join(f"`{name}`" for name in given)
        words = f"No parameter is called `{unknown[0]}` here; there are {known}."
        return Verdict("wrong", "Not quite.", words)
    args = [given[name] for name in source.parameters]
    right = task.right(given)
    try:
        log = _run(kernel, task, args, right)
    except Exception as error:  # of any kind: it is the reader's, and is told, not raised
        return _python(error, source)
    if log.clash:
        if task.objection and log.clash.kind in ("race", "unwritten"):
            return _as_intended(kernel, log, task, given)
        return Verdict("stopped", "The simulator stops.", _advised(log))
    if words := _differences(log, right, task):
        mistakes = task.known(given) if task.known else {}
        likely = (said for said, wrote in mistakes.items() if not _differences(log, wrote, task))
        return Verdict("wrong", "Not quite.", next(likely, words))
    if task.objection:
        words = (
            "The values are right, but the simulator was to object to this kernel, and does not."
        )
        return Verdict("wrong", "Not quite.", words)
    if (words := _too_much(log, task)) is not None:
        return Verdict("wrong", "Right values, but", words)
    if (words := _bare_floats(source, given)) is not None:
        return Verdict("wrong", "Right values, but", words)
    count = sum(np.size(want) for want in right.values())
    values = "the value" if count == 1 else f"all {count} values"
    return Verdict("right", "Right:", f"{values}, on random input.")


def _run(kernel: Any, task: Task, args: Sequence[Any], right: Mapping[str, np.ndarray]) -> Log:
    """A run of the kernel with as much listening as its verdict needs: little, if it is right."""
    run = task.grid, task.block, args, task.shared
    counted = bool(task.reads or task.ahead) or task.barriers is not None
    try:
        log = glance(kernel, *run, counted)
        if not counted and _differences(log, right, task):
            return glance(kernel, *run, True)  # who wrote what
        return log
    except Exception:  # which `record` tells, or meets as well
        return record(kernel, *run)


def check_function(
    function: Callable[..., Any],
    want: Any,
    *args: Any,
    also: Iterable[Sequence[Any]] = (),
    known: Mapping[str, Any] | None = None,
) -> Verdict:
    """Call a reader's NumPy function and say how what it returns differs from what is right.

    Parameters
    ----------
    function : function
        With ``...`` in it, it is still blank, but for NumPy's own ``x[..., 0]``. Line 1 is its
        first line.
    want : array_like
        What it should return, real or complex.
    *args
        What it is called with; arrays are copied.
    also : iterable of sequences
        More cases, each what is right and then the arguments: for a blank that one case would
        let pass with something wrong in it. The first case that fails is told.
    known : mapping of str to array_like, optional
        What likely mistakes return in the first case, or in another one that they get wrong, by
        the sentence that says what is wrong.

    Returns
    -------
    Verdict
        Right up to 50 roundings in double precision, relative to the largest right value.
        If one mistake explains four values or more, such as a sign or a factor, it is named.
    """
    source = Source(function)
    open_lines = source.blanks("last")
    if source.blanks("none"):
        return _still_blank(source, open_lines)
    verdicts = [_called(function, source, known or {}, want, *args)]
    verdicts += [_called(function, source, known or {}, *case) for case in also]
    failed = next((verdict for verdict in verdicts if not verdict), None)
    if failed is not None and open_lines:  # an x[i, ...] that is right is NumPy's
        return _still_blank(source, open_lines)
    return verdicts[0] if failed is None else failed


def judged(function: Callable[..., Any], judge: Callable[[], Verdict]) -> Verdict:
    """What `judge` says of a reader's function, if nothing is blank in it and Python doesn't stop.

    Parameters
    ----------
    function : function
    judge : callable
        Without arguments; what it raises, of any kind, is told as the reader's.
    """
    source = Source(function)
    if blanks := source.blanks():
        return _still_blank(source, blanks)
    try:
        return judge()
    except Exception as error:  # is told, not raised
        return _python(error, source)


def _called(
    function: Callable[..., Any], source: Source, known: Mapping[str, Any], want: Any, *args: Any
) -> Verdict:
    """One call of a reader's function, and how what it returns differs from what is right."""
    number = complex if np.iscomplexobj(want) else float
    try:
        have = np.asarray(function(*(np.copy(a) if np.ndim(a) else a for a in args)), number)
    except Exception as error:  # of any kind: it is the reader's, and is told, not raised
        return _python(error, source)
    want = np.asarray(want, number)
    rounding = 200 * np.finfo(float).eps * np.abs(want).max(initial=0)
    if have.shape == want.shape:
        bad = ~(np.abs(have - want) <= rounding)
        if not bad.any():
            values = "the value" if want.size == 1 else f"all {want.size} values"
            return Verdict("right", "Right:", f"{values}, to rounding.")
    for words, mistaken in known.items():  # a mistake may have another shape
        of = np.asarray(mistaken, number)
        if have.shape == of.shape and np.abs(have - of).max() <= rounding:
            return Verdict("wrong", "Not quite.", words)
    if have.shape != want.shape:
        words = f"The shape of the result is `{have.shape}` and should be `{want.shape}`."
        return Verdict("wrong", "Not quite.", words)
    first = tuple(map(int, np.argwhere(bad)[0]))
    several = want.size > 3 and want.any()
    if several and (same := _same_everywhere(have.ravel(), want.ravel(), 1e-12)):
        return Verdict("wrong", "Not quite.", " ".join(same))
    which = f"{bad.sum()} of {bad.size} values are wrong. The first, at `{list(first)}`,"
    if want.ndim == 0:
        which = "The value"
    words = f"{which} is {_against(have[first], want[first])}."
    return Verdict("wrong", "Not quite.", words)


def _still_blank(source: Source, blanks: Sequence[int]) -> Verdict:
    lines = f"line{'' if len(blanks) == 1 else 's'} {', '.join(map(str, blanks))}"
    alone = {n for n, s in source.statements.items() if ast.unparse(s) == "..."}
    delete = ", or delete the line" if alone.intersection(blanks) else ""
    return Verdict("blank", "Not yet.", f"Put something in place of `...` in {lines}{delete}.")


def _not_called(source: Source) -> int | None:
    """The first line that names a function of cuda and does not call it."""
    for line, node in source.statements.items():
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute):
            return line
    return None


def _bare_floats(source: Source, given: Mapping[str, Any]) -> str | None:
    """A constant of 64 bits in a kernel of 32 bits; one that a call converts is fine."""
    if not all(np.asarray(given[name]).dtype.itemsize <= 4 for name in source.parameters):
        return None
    converted = {
        id(arg) for n in ast.walk(source.kernel) if isinstance(n, ast.Call) for arg in n.args
    }
    for n in ast.walk(source.kernel):
        if isinstance(n, ast.Constant) and isinstance(n.value, float) and id(n) not in converted:
            return (
                f"`{n.value}` in line {n.lineno} is a 64-bit number and slows the kernel down: "
                f"write `float32({n.value:g})`."
            )
    return None


def _as_intended(kernel: Any, log: Log, task: Task, given: Mapping[str, Any]) -> Verdict:
    """The simulator objects; where it does to shared memory, waiting must be all that lacks."""
    lines = log.source.shared_writes()
    behind = f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}"
    even_so = f"The simulator objects, and more is amiss. Even if all threads wait after {behind}:"
    args = [given[name] for name in log.source.parameters]
    mended = record(in_step(kernel), task.grid, task.block, args, task.shared)
    words = objection(mended) or _differences(mended, task.right(given), task)
    if words and log.clash.access.shared:
        return Verdict("wrong", "Not quite.", f"{even_so} {words}")
    if log.clash.kind != task.objection:
        return Verdict("stopped", "The simulator stops, but not as intended.", _advised(log))
    return Verdict("right", "As intended, the simulator objects.", objection(log))


def _python(error: Exception, source: Source) -> Verdict:
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, NotImplementedError) and frames[-1].name == source.name:
        return Verdict("blank", "Not yet.", "The kernel still waits for you.")
    line = next((f.lineno for f in reversed(frames) if f.name == source.name), None)
    where = f" in line {line - source.first + 1}" if line else ""
    return Verdict("stopped", "Python stops", f"{where.strip()}: {type(error).__name__}: {error}")


def _advised(log: Log) -> str:
    """The simulator's objection, with what to look at next."""
    clash, words = log.clash, objection(log)
    if clash.kind == "range":
        if any(isinstance(i, (int, np.integer)) and i < 0 for i in clash.error.index):
            return f"{words} Before 0 lies nothing: should this thread take another word, or none?"
        if len(clash.error.index) > 1:
            return f"{words} {_too_far(clash.error)}".rstrip()
        return f"{words} Which elements belong to this thread?"
    if clash.kind in ("race", "unwritten") and clash.other is not None and clash.access.shared:
        first, last = sorted((clash.other_step.line, clash.step.line))
        if first != last:
            between = f"between lines {first} and {last}"
            return f"{words} Do all threads pass a `cuda.syncthreads()` {between}?"
    return words


def _too_far(error: Any) -> str:
    """Which of several indices leaves its axis, and whether they would fit in another order."""
    if len(error.index) > len(error.shape):
        return ""
    for axis, (i, size) in enumerate(zip(error.index, error.shape, strict=False)):
        if not isinstance(i, slice) and i >= size:
            name = ("first", "second", "third")[axis] if axis < 3 else "last"
            words = f"Its {name} index goes too far: {size - 1} is the last."
            if any(isinstance(i, slice) for i in error.index):
                return words
            orders = itertools.permutations(error.index)
            if any(all(map(operator.lt, order, error.shape)) for order in orders):
                return f"{words} Are its indices in the right order?"
            return words
    return ""


def _differences(log: Log, right: Mapping[str, np.ndarray], task: Task) -> str:
    """What is wrong with the first wrong array, and the task's hint; empty if nothing is."""
    for name, want in right.items():
        if (words := _difference(log, name, np.asarray(want), task)) is not None:
            return f"{words} {task.hints.get(name, '')}".strip()
    return ""


def _difference(log: Log, name: str, want: np.ndarray, task: Task) -> str | None:
    """What is wrong with an array that the kernel was to write; None if nothing is."""
    if name not in log.args:
        return f"The kernel has no parameter `{name}`, which it is to write."
    have = log.args[name].reshape(want.shape)
    exact = have.dtype.kind not in "fc"
    tolerance = task.tolerance or (0.0 if exact else 50 * np.finfo(have.dtype).eps)
    scale = np.abs(want).max() or 1.0
    bad = ~(np.abs(have - want) <= tolerance * scale)  # true for NaN as well
    if not bad.any():
        return None
    written = {a.element for _, a in log.accesses() if a.array == name and a.kind != "read"}
    missed = [n for n in np.flatnonzero(bad) if n not in written]
    if len(missed) == want.size:
        return f"No thread has written anything into `{name}`."
    if missed:
        where = _entry(missed[0], want.shape, task.axes)
        return f"Nobody wrote {len(missed)} of {want.size} words of `{name}`, the first at {where}."
    if not exact and np.abs(have).max() <= 10 * tolerance * scale:
        return (
            f"All values of `{name}` are zero but for rounding: do the rounds of the loop read "
            "different words?"
        )
    alike = bad.all() and not exact  # no factor explains a wrong index
    if alike and (words := _same_everywhere(have.ravel(), want.ravel(), tolerance)):
        return f"{words[0]} of `{name}` {words[1]}"
    first = int(np.flatnonzero(bad)[0])
    where = _entry(first, want.shape, task.axes)
    which = f"{bad.sum()} of {bad.size} values of `{name}` are wrong"
    if bad.all():
        which = f"All values of `{name}` are wrong"
    elif bad.ndim > 1:  # in one row, or at one place of every row?
        rows = np.flatnonzero(bad.any(axis=tuple(range(1, bad.ndim))))
        places = np.flatnonzero(bad.any(axis=tuple(range(bad.ndim - 1))))
        if len(rows) == 1:
            which = f"`{name}` is wrong in {task.axes[0]} {rows[0]} only"
        elif len(rows) == len(bad) - 1 > 1:
            unhurt = np.setdiff1d(np.arange(len(bad)), rows)[0]
            which = f"`{name}` is right in {task.axes[0]} {unhurt} only"
        elif len(places) == 1:
            which = f"`{name}` is wrong at {task.axes[-1]} {places[0]} only"
    values = _against(have.ravel()[first], want.ravel()[first], exact)
    return f"{which}. The first, at {where}, is {values}."


def _against(have: Any, want: Any, exact: bool = False) -> str:
    """What a value is and should be, with as many digits as it takes until the two differ."""
    digits = ["d"]
    if not exact:
        kind = "f" if 1e-4 <= max(abs(have), abs(want)) < 1e6 else "g"
        digits = [f".{n}{kind}" for n in range(4, 22)]
    pairs = [(f"{have:{d}}", f"{want:{d}}") for d in digits]
    # As numbers, since -0.0000 is no other value than 0.0000; infinities never differ.
    told = next((pair for pair in pairs if len({*map(complex, pair)}) == 2), pairs[0])
    return " and should be ".join(told)


def _entry(n: int, shape: tuple[int, ...], axes: tuple[str, ...]) -> str:
    index = np.unravel_index(int(n), shape)
    if len(index) != len(axes):
        return f"position {', '.join(map(str, index))}"
    return ", ".join(f"{axis} {i}" for axis, i in zip(axes, index, strict=True))


def _same_everywhere(
    have: np.ndarray, want: np.ndarray, tolerance: float
) -> tuple[str, str] | None:
    """One mistake that explains all values: a sign, a factor, neighbors' places."""
    scale = tolerance * np.abs(want).max() * 10
    factor = float(np.vdot(want, have).real) / float(np.vdot(want, want).real)
    told = np.isfinite(factor) and factor and abs(factor - 1) >= 1e-3  # as %.4g shows it
    if told and np.abs(have - factor * want).max() <= scale:
        if abs(factor + 1) < 1e-3:
            return "Every value", "has the wrong sign."
        return "Every value", f"is {factor:.4g} times what it should be."
    for shift in (1, -1):
        if np.abs(have - np.roll(want, shift))[1:-1].max(initial=0) <= scale:
            before = "before" if shift == 1 else "after"
            return "Every entry", f"holds what belongs to the entry {before} it: off by one."
    return None


def _too_much(log: Log, task: Task) -> str | None:
    """Right, but with more reads or barriers, or in another order, than the blank asks for."""
    mine = [s for s in log.steps if s.thread.block == (0, 0, 0) and s.thread.linear == 0]
    acts = [act for step in mine for act in step.acts]
    for name, most in task.reads.items():
        count = sum(isinstance(a, Access) and a.kind == "read" and a.array == name for a in acts)
        if count > most:
            return f"thread 0 reads `{name}` {_times(count)} where {_times(most)} would do."
    if task.barriers is not None:
        count = sum(isinstance(a, Wait) and a.what == "barrier" for a in acts)
        if count > task.barriers:
            enough = _times(task.barriers)
            return f"thread 0 waits {_times(count)} at a barrier where {enough} would do."
    stores = (n for n, a in enumerate(acts) if isinstance(a, Access) and _fills_shared(a))
    first = next(stores, len(acts))
    if any(isinstance(a, Access) and a.array == task.ahead for a in acts[first:]):
        word = f"word {acts[first].element} of `{acts[first].array}`"
        return f"thread 0 writes {word} before it has asked for all of its words of `{task.ahead}`."
    return None


def _fills_shared(access: Access) -> bool:
    return access.shared and access.kind == "write"


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n} times")
