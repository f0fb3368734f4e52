"""The kernel film: what the threads of a kernel do, drawn from the log of a simulated run.

A film is one still picture for page and paper, and a figure to be stepped through in the page,
without a kernel behind it. Four threads teach an idea, 32 show coalescing.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

from dgbook.page import drawing
from dgbook.page.log import (
    SECTOR,
    Access,
    Log,
    Row,
    Source,
    ThreadId,
    fold,
    groups,
    objection,
    record,
    rows,
    who,
)
from dgbook.page.player import Player, assemble
from dgbook.page.plot import require_alt

_DARK = (
    "--gl:#56b4e9;--on-gl:#10151b;--sh:#f0b429;--on-sh:#10151b;--bad:#ff8f8f;--mute:#a4adb8;"
    "--rule:#39414b;--paper:var(--pst-color-background,var(--jp-layout-color0,#14181e));--band:#2b323c;--soft:#1b2129;"
    "--ink:#dfe4ea"
)


@dataclass(frozen=True)
class Still:
    """One picture of a kernel's run, as a notebook shows it."""

    html: str
    alt: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"[figure: {self.alt}]"


@dataclass(frozen=True)
class Film:
    """What `film` returns; as the last line of a cell it is shown with its player.

    Attributes
    ----------
    log : Log
        The run, with the simulator's objection in ``log.clash``.
    shown : list of list of ThreadId
        The threads that are drawn, up to a warp of each block.
    changed : set of int
        Lines of the kernel that are marked as changed.
    alt : str
    order : {"lanes", "threads"}
        In which the player opens.
    opens_at : str
        A piece of the line, or of what is said of the access, at which the player opens; empty for
        the first line.
    short : bool
        Whether loops show their first and last round only.
    """

    log: Log
    shown: list[list[ThreadId]]
    changed: frozenset[int]
    alt: str
    order: str
    opens_at: str = ""
    short: bool = False

    @cached_property
    def rows(self) -> list[Row]:
        """One for each instruction of the threads that are shown."""
        columns = [thread for group in self.shown for thread in group]
        return rows(self.log, {thread: n for n, thread in enumerate(columns)})

    def still(self) -> Still:
        """All that happened in one picture, for light and dark pages, phones and paper."""
        return Still(f'<div class="dgf">{style("film.css")}{self._drawings()}</div>', self.alt)

    def player(self) -> Player:
        """The figure to step through; where scripts do not run, the still picture stands."""
        spec = _spec(self)
        times = max(len(spec["steps"]), len(spec["order"]))
        picture = (
            f'<div class="dgf">{style("film.css")}{style("player.css")}'
            f'<div class="dgf-still">{self._drawings()}</div>'
            '<div class="dgf-film" hidden></div></div>'
        )
        sliders = {"step": range(1, times + 1)}
        script = (files("dgbook.page") / "film.js").read_text(encoding="utf-8").strip()
        moments = [row for row, _ in spec["order"]] if spec["real"] else spec["steps"]
        rows = (spec["rows"][m] for m in moments)
        first = next(
            n
            for n, row in enumerate(rows)
            if any(self.opens_at in row[k] for k in ("text", "says"))
        )
        return assemble(
            picture, spec, sliders, first, self.alt, None, "step", 0.7, 688, script, "dg-film"
        )

    def _drawings(self) -> str:
        changed = set(self.changed)
        return drawing.draw(self.log, self.rows, self.shown, changed, self.alt, self.short)

    def _repr_html_(self) -> str:
        return self.player().html

    def __repr__(self) -> str:
        return f"[kernel film: {self.alt}]"


def film(
    kernel: Any,
    grid: Any,
    block: Any,
    *args: Any,
    alt: str,
    blocks: Sequence[Any] = (),
    before: Any = None,
    shared: int = 0,
    order: str = "",
    opens_at: str = "",
    short: bool = False,
) -> Film:
    """Run a kernel in the simulator and film its threads.

    Parameters
    ----------
    kernel : Kernel or function
        What `dgbook.gpu.jit` or ``numba.cuda.jit`` made, in a file or in a notebook.
    grid, block : int or tuple of up to three ints
    *args
        The kernel's arguments; arrays of NumPy or CuPy. They are copied and stay as they are.
    alt : str
        What the film shows, for who cannot see it.
    blocks : sequence of int or tuple
        Whose threads are the columns: the first warp of each. By default the warps of which the
        simulator complains, or that of the first block.
    before : Kernel or function, optional
        An earlier version: lines that it does not have are marked.
    shared : int
        Bytes of dynamic shared memory.
    order : {"", "lanes", "threads"}
        How the player opens: lanes in step, or one thread at a time. By default lanes in step,
        unless the simulator objects.
    opens_at : str
        A piece of the line, or of what is said of an access ("bank conflict"), at which the player
        opens, by default the first line.
    short : bool
        Show the first and the last round of each loop only, for a film that fits a screen.

    Returns
    -------
    Film

    Raises
    ------
    ValueError
        If `alt` says next to nothing, `order` is none of these, the kernel has no source text, a
        block does not exist, or no line that ran has `opens_at` in it.
    RuntimeError
        If the grid is too large to be followed.
    """
    require_alt(alt)
    if order not in ("", "lanes", "threads"):
        raise ValueError(f"order = {order!r}; allowed are 'lanes' and 'threads'")
    log = record(kernel, grid, block, args, shared)
    old = {line.strip() for line in Source(before).lines} if before is not None else None
    numbered = enumerate(log.source.lines, 1)
    changed = {n for n, line in numbered if old is not None and line.strip() not in old}
    inside = frozenset(changed & log.source.statements.keys())
    order = order or ("threads" if log.clash else "lanes")
    made = Film(log, groups(log, blocks), inside, " ".join(alt.split()), order, opens_at, short)
    if not any(opens_at in row.text or opens_at in _said(_asked(row, made)) for row in made.rows):
        raise ValueError(f"opens_at = {opens_at!r}; no line that ran has this in it")
    return made


def style(name: str) -> str:
    """A style sheet of this package, as an element."""
    text = (files("dgbook.page") / name).read_text(encoding="utf-8").replace("DARK", _DARK)
    return f"<style>{text}</style>"


def _asked(row: Row, film: Film) -> drawing.Request | None:
    """What the first warp asks of memory in a row with lanes in step; None if it does not come."""
    return drawing.request_of(row, film.shown[0], ghosts=True)


def _said(asked: drawing.Request | None) -> str:
    """What stands beside such a row."""
    return asked.words if asked else "not reached"


def _spec(film: Film) -> dict[str, Any]:
    """What film.js needs to know."""
    log, columns = film.log, [thread for group in film.shown for thread in group]
    clash = log.clash
    keep = [s for s in (clash.step, clash.other_step) if s is not None] if clash else []
    listed = fold(film.rows, *((1, 2) if film.short else (2, 5)), keep)
    places: dict[int, tuple[int, int]] = {}  # of acts, and of steps without any
    found, before = [], {}
    for n, row in enumerate(listed):
        asked = _asked(row, film)
        values: dict[int, dict[str, Any]] = {}
        for c, (step, act) in row.cells.items():
            places[id(step if act is None else act)] = (n, c)
            # What the statement sets is known after its last access, the rest before its first.
            later = set() if act is None or act is step.acts[-1] else _set_by(log.source, step.line)
            later |= set(log.source.parameters)
            now = {k: v for k, v in step.values.items() if k not in later}
            values[c] = {k: _plain(v) for k, v in now.items() if before.get(c, {}).get(k) != v}
            before[c] = before.get(c, {}) | now
        found.append(
            {
                "line": row.line,
                "text": drawing.body(row.text),
                "label": row.label,
                "kind": row.kind,
                "array": row.array,
                "changed": bool(row.text) and row.line in film.changed,
                "says": _said(asked),
                "hurts": bool(asked and asked.conflict),
                "cells": {
                    c: act.element if isinstance(act, Access) else None
                    for c, (_, act) in row.cells.items()
                },
                "values": values,
                "fills": _fills(row),
            }
        )
    order = [
        places[id(thing)]
        for step in log.steps
        if not step.ghost
        for thing in (step.acts or [step])
        if id(thing) in places
    ]
    few = len(columns) <= 8  # their cells have room for numbers
    lane = 24 if few else 8 if len(columns) <= 16 else 5
    code = round(max(drawing.room_of(row, labels=False) for row in listed)) + 14
    left = 450 - 80 - lane * len(columns)  # with memory beside
    # A warp leaves little: memory goes below it where lines of code would not fit, unless the
    # film is so long that what lies below is out of sight.
    beside = len(columns) <= 16 or (len(columns) <= 32 and (code <= left or len(listed) > 24))
    if not beside:
        left = drawing.WIDE - 80 - lane * len(columns)
    code = max(200, min(code, left))  # longer lines are wrapped
    several = len({t.block for t in columns}) > 1
    starts = {group[0] for group in film.shown}
    return {
        "head": drawing.head_of(log, True),
        "rows": found,
        "steps": [n for n, row in enumerate(found) if row["kind"] not in ("none", "fold")],
        "order": order,
        "real": film.order == "threads",
        "once": True,
        "columns": [
            {
                "name": who(t, log, several),
                "number": t.linear,
                "block": str(t.block),
                "first": t in starts,
            }
            for t in columns
        ],
        "blocks": len(film.shown),
        "first": drawing.group_name(log, film.shown[0]),
        "whole": log.threads == len(film.shown[0]),
        "group": log.block[0],
        "rowwise": log.block[0] < log.threads,
        "arrays": _arrays(log, set(columns)),
        "registers": list(dict.fromkeys(k for r in found for v in r["values"].values() for k in v)),
        "code": code,
        "beside": beside,  # memory, on a wide page
        "clash": _clash(log, places),
    }


def _fills(row: Row) -> dict[int, dict[str, list[int]]]:
    """By column, the words that are written in the rounds that a row stands for."""
    found: dict[int, dict[str, list[int]]] = {}
    for hidden in row.hidden:
        for c, (_, act) in hidden.cells.items():
            if isinstance(act, Access) and hidden.kind[1] != "r":
                found.setdefault(c, {}).setdefault(hidden.array, []).append(act.element)
    return found


def _clash(log: Log, places: dict[int, tuple[int, int]]) -> dict[str, Any] | None:
    clash = log.clash
    if clash is None:
        return None
    found: dict[str, Any] = {"says": objection(log), "lost": _lost(log)}
    if id(clash.access) in places:
        found["row"], found["column"] = places[id(clash.access)]
        found |= {"array": clash.access.array, "word": clash.access.element}
        if id(clash.other) in places:
            found["row2"], found["column2"] = places[id(clash.other)]
    return found


def _lost(log: Log) -> str:
    """What goes wrong with lanes in step, if two threads add to one word at once; else empty."""
    clash = log.clash
    if clash.access is None or clash.other is None or clash.step.path != clash.other_step.path:
        return ""  # lanes in step come to the two accesses one after the other
    if not isinstance(log.source.statements[clash.step.line], ast.AugAssign):
        return ""
    first, second = sorted((clash.other.thread, clash.access.thread), key=lambda t: t.linear)
    far = first.block != second.block
    theirs = who(second, log, far)
    word = f"`{clash.access.array}[{', '.join(map(str, clash.access.index))}]`"
    return (
        f"{who(first, log, far)} and {theirs[0].lower() + theirs[1:]} read the same old value of "
        f"{word}. The one that writes last overwrites what the other has added."
    )


def _arrays(log: Log, shown: set[ThreadId]) -> list[dict[str, Any]]:
    """The memory that the shown threads touch, in lines of 128 bytes, eight per array at most."""
    touched: dict[str, set[int]] = {}
    most: dict[str, int] = {}
    for step in log.steps:
        for act in step.acts:
            if isinstance(act, Access):
                most[act.array] = max(most.get(act.array, 0), act.element + 1)
                if act.thread in shown:
                    touched.setdefault(act.array, set()).add(act.element)
    found = []
    for name, elements in touched.items():
        memory = log.arrays[name]
        per, offset = SECTOR // memory.itemsize, memory.base // memory.itemsize
        given = log.args.get(name)
        size = most[name] if memory.shared or given is None else given.size
        lines = sorted({(offset + e) // (4 * per) for e in elements})
        lines = lines[: 8 if memory.shared or len(lines) <= 8 else 4]
        found.append(
            {
                "name": name,
                "shared": memory.shared,
                "size": size,
                "sector": per,
                "offset": offset,
                "lines": lines,
                "more": len(lines) * 4 * per < size,
            }
        )
    return found


def _set_by(source: Source, line: int) -> set[str]:
    """The variables that a statement assigns."""
    names = (n for n in ast.walk(source.statements[line]) if isinstance(n, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, ast.Store)}


def _plain(value: float) -> float | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value
