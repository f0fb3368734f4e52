"""The fused kernel of Maxwell's equations, drawn from a simulated run: who touches what, and when.

Degree 1 and a block of two elements are small enough that each number has a box of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from dgbook.check import simulator
from dgbook.page import plot
from dgbook.page.player import Player, flipbook

PHASES = ("1", "2", "3", "4", "5, du/dt", "5, update")
"""Barriers stand between them but between 3 and 4."""
ELEMENT = 24  # words: six fields at four nodes
THREADS = 8  # of a block: two rows of four
BLOCK = 3  # which is watched
LANES = (1, 2, 6)  # threads to choose from

# Arrays that phases 3 and 4 read, which no barrier tells apart.
_READ = {"3": ("state", "derivative"), "4": ("flux", "lift", "geometry")}
_ROWS = {  # height, and the name that is drawn
    "others": (10.7, "$u$, other\nblocks"),
    "u": (9.0, "$u$"),
    "res": (6.0, "res"),
    "new": (4.5, "new"),
    "state": (2.2, "state"),
    "flux": (0.7, "flux"),
    "rates": (-1.7, "rates"),
}
_TABLES_AT = 7.5
_TABLES = {  # left end, width, and the name; the last are all other arrays that are only read
    "derivative": (0, 9, "$D$"),
    "lift": (11, 9, "$L$"),
    "tables": (22, 26, "geometry, tables"),
}
_ARROWS = (  # phase, from where, to where, how far to the right, color, how high its number
    ("1", "u", ("state",), 50.5, "blue", 0.65),
    ("2", "others", ("flux",), 58.5, "vermillion", 0.5),
    ("2", "state", ("flux",), 50.5, "vermillion", 0.5),
    ("3", "state", ("rates",), 53.2, "green", 0.5),
    ("4", "flux", ("rates",), 50.5, "purple", 0.75),
    ("5, du/dt", "rates", ("state",), 55.9, "orange", 0.5),
    ("5, update", "state", ("new", "res"), 53.2, "orange", 0.65),
)
_ENDS = {  # where arrows begin and end in the height of a row, from its top
    "state": ("5, update", "1", "2", "3", "5, du/dt"),
    "flux": ("2", "4"),
    "rates": ("4", "3", "5, du/dt"),
}
_MEMORIES = ((12.2, "device memory"), (3.5, "shared memory"), (-0.4, "registers"))


@dataclass(frozen=True)
class Touched:
    """Words of an array, of those that a thread reads, or writes, in a phase."""

    array: str
    kind: str
    words: frozenset[int]


def run(stage: Callable[[], None]) -> dict[tuple[str, int], list[Touched]]:
    """What each thread of one block touches in each phase.

    Parameters
    ----------
    stage : function without arguments
        Launches a stage of the fused kernel in Numba in the simulator: 12 elements of degree 1,
        two rows of threads per block, one node of one element per thread.

    Returns
    -------
    dict
        By phase and thread. Words of u, res and new are counted from the block's first one, so
        that those of other blocks are negative or 48 and more. Registers are not memory: what is
        said of `rates` follows from the kernel, which gives a thread six of them.
    """
    heard = _Heard()
    with simulator.observe(heard):
        stage()
    found: dict[tuple[str, int], list[Touched]] = {}
    for phase in PHASES:
        stretch = PHASES.index(phase) - (phase > "3")
        for thread in range(THREADS):
            touched: dict[tuple[str, str], set[int]] = {}
            for (when, who, array, kind), words in heard.words.items():
                if (when, who) == (stretch, thread) and array in _READ.get(phase, (array,)):
                    name = array if array in {**_ROWS, **_TABLES} else "tables"
                    touched.setdefault((name, kind), set()).update(words)
            if phase in ("3", "4", "5, du/dt"):
                kind = "read" if phase == "5, du/dt" else "write"
                touched["rates", kind] = set(range(6 * thread, 6 * thread + 6))
            found[phase, thread] = [Touched(*key, frozenset(w)) for key, w in touched.items()]
    return found


class _Heard(simulator.Observer):
    def __init__(self) -> None:
        self.words: dict[tuple[int, int, str, str], set[int]] = {}
        self.barriers = [0] * THREADS

    def wait(self, thread: simulator.ThreadId, what: str, function: str, line: int) -> None:
        if thread.block[0] == BLOCK:
            self.barriers[thread.linear] += 1

    def access(self, access: simulator.Access) -> None:
        thread = access.thread
        if thread.block[0] != BLOCK:
            return
        word = access.element
        if access.array in ("u", "res", "new"):
            word -= BLOCK * 2 * ELEMENT
        key = self.barriers[thread.linear], thread.linear, access.array, access.kind
        self.words.setdefault(key, set()).add(word)


def phases(stage: Callable[[], None], alt: str) -> Player:
    """The figure: first one element's way, then each phase with the words of a thread.

    Parameters
    ----------
    stage : function without arguments
        As for `run`.
    alt : str
    """
    found = run(stage)
    names = ("all", *PHASES)
    return flipbook(
        lambda phase, thread: draw(found, phase, thread),
        {"phase": names, "thread": LANES},
        captions=[[_caption(found, phase, thread) for thread in LANES] for phase in names],
        alt=alt,
        play="phase",
        seconds=1.5,
    )


def _caption(found: Mapping[tuple[str, int], list[Touched]], phase: str, thread: int) -> str:
    if phase == "all":
        return "blue: the words of one element"
    words = {"read": [], "write": []}
    for touched in found[phase, thread]:
        if touched.array not in _TABLES:
            words[touched.kind].append(f"{len(touched.words)} of {touched.array}")
    read, written = (" and ".join(sorted(words[kind])) for kind in ("read", "write"))
    return f"thread {thread}: reads {read}; writes {written}"


def draw(found: Mapping[tuple[str, int], list[Touched]], phase: str, thread: int) -> Figure:
    """One picture: all phases with their arrows, or one with what a thread touches in it."""
    fig, ax = plot.figure(height=5.3, grid=False)
    spans = [(y, 0.0, 48.0) for y, _ in _ROWS.values()]
    spans += [(_TABLES_AT, left, left + wide) for left, wide, _ in _TABLES.values()]
    _fill(ax, spans, "#e4e4e4", 1.0)
    for y, name in _ROWS.values():
        ax.text(-1, y + 0.45, name, ha="right", va="center", linespacing=0.9)
    for left, wide, name in _TABLES.values():
        ax.text(left + wide / 2, _TABLES_AT + 0.42, name, ha="center", va="center")
    if phase == "all":
        for array in ("u", "res", "new", "state", "flux", "rates"):
            _fill(ax, _spans(array, range(ELEMENT)), plot.COLORS["sky"], 0.8)
    else:
        for other in (*(n for n in range(THREADS) if n != thread), thread):
            for touched in found[phase, other]:
                table = touched.array in _TABLES
                if table and other != thread:
                    continue
                color = plot.COLORS["blue" if touched.kind == "read" else "vermillion"]
                alpha = 0.5 if table else 1.0 if other == thread else 0.2
                _fill(ax, _spans(touched.array, touched.words), color, alpha)
    for name, start, ends, x, color, share in _ARROWS:
        if phase in ("all", name):
            # Of one phase alone, colors say what is read and what is written.
            look = {"color": plot.COLORS[color] if phase == "all" else "black", "lw": 1.6}
            from_y, *to = (_end(row, name) for row in (start, *ends))
            far = max(to, key=lambda y: abs(y - from_y))
            ax.plot([48.4, x, x], [from_y, from_y, far], **look)
            for y in to:
                arrow = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, "mutation_scale": 8}
                ax.annotate("", (48.2, y), (x, y), arrowprops=arrow | look)
            low, high = sorted((from_y, to[0]))
            y = low + share * (high - low)
            ax.text(x + 0.4, y, name[0], va="center", color=look["color"], weight="bold")
    for t in range(THREADS):
        bold = "bold" if t == thread and phase != "all" else "normal"
        ax.text(6 * t + 3, -2.6, str(t), ha="center", va="center", weight=bold)
    ax.text(-1, -2.6, "thread", ha="right", va="center")
    for x, row in ((12, "row 0: an element"), (36, "row 1: the next")):
        ax.text(x, -3.6, row, ha="center", va="center")
    for y, name in _MEMORIES:
        ax.text(-13, y, name, va="center", style="italic", color="#555555")
        ax.plot([-13, 60], [y + 0.45] * 2, color="#999999", lw=0.8)
    ax.plot([24, 24], [-3.9, 9.9], color="#777777", lw=0.8, ls=":")
    ax.set(xlim=(-13, 60.5), ylim=(-4.1, 12.9))
    ax.axis("off")
    return fig


def _end(row: str, name: str) -> float:
    """The height at which the arrow of a phase touches a row."""
    names = _ENDS.get(row, (name,))
    return _ROWS[row][0] + 0.9 * (1 - (names.index(name) + 0.5) / len(names))


def _spans(array: str, words: Iterable[int]) -> list[tuple[float, float, float]]:
    """Where words are drawn: height, left and right end."""
    if array in _TABLES:
        left, wide, _ = _TABLES[array]
        return [(_TABLES_AT, left, left + wide)]
    spans = []
    for w in words:
        row, at, size = array, w, 1.0
        if not 0 <= w < 2 * ELEMENT:  # ten elements of other blocks, where two have room
            before = BLOCK * 2 * ELEMENT
            row, at, size = "others", before + w - 2 * ELEMENT * (w > 0), 0.2
        spans.append((_ROWS[row][0], at * size, (at + 0.86) * size))
    return spans


def _fill(ax: Axes, spans: Iterable[tuple[float, float, float]], color: str, alpha: float) -> None:
    """All spans of one color at once: a picture has hundreds."""
    corners = [
        [(left, y), (right, y), (right, y + 0.9), (left, y + 0.9)] for y, left, right in spans
    ]
    ax.add_collection(PolyCollection(corners, color=color, alpha=alpha, lw=0), autolim=False)
