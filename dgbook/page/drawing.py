"""The still picture of a kernel film, as SVG: one drawing for a page and one for a phone.

A row for each instruction of a warp, a column for each thread, and beside it what the warp asks of
memory. Text stays text, and colors are the page's: there is no background.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Sequence

from dgbook.page.log import Access, Clash, Log, Request, Row, ThreadId, fold, request

WIDE, NARROW = 688, 358  # what the book's page leaves at 1,280 and at 390 pixels
KINDS = {  # and what the legend says, in its order
    "gr": "reads global",
    "gw": "writes global",
    "ga": "atomic, global",
    "sr": "reads shared",
    "sw": "writes shared",
    "sa": "atomic, shared",
    "rg": "registers only",
    "wt": "waits at the barrier",
    "ex": "warp operation",
    "gh": "not reached",
    "idle": "fetched, not used",
    "mark": "changed line",
}
WAITS = {  # beside a wait
    "barrier": "opens when all threads have come",
    "vote": "opens when all threads have voted",
    "grid barrier": "opens when all blocks have come",
}
NOTE = (
    "Lanes of a warp are drawn in step, which is a model.",
    "Sectors are counted as asked for, before caches.",
)
_LETTER = 7.23  # width of a letter of code, in pixels
_CELL = 15  # height of a cell

Box = tuple[float, float, float, float]


class _Svg:
    """SVG by absolute pixels, which remembers its height."""

    def __init__(self, width: int) -> None:
        self.width, self.height, self.parts = width, 0.0, []

    def path(self, d: str, kind: str, down_to: float = 0.0) -> None:
        self.parts.append(f'<path d="{d}" class="{kind}"/>')
        self.height = max(self.height, down_to)

    def boxes(self, boxes: Iterable[Box], kind: str) -> None:
        """Rectangles as one path, which is a third of their size."""
        boxes = list(boxes)
        if boxes:
            d = "".join(f"M{x:.4g} {y:.4g}h{w:.3g}v{h:.3g}h-{w:.3g}z" for x, y, w, h in boxes)
            self.path(d, kind, max(y + h for _, y, _, h in boxes))

    def text(self, x: float, y: float, words: object, kind: str = "s", end: bool = False) -> None:
        anchor = ' text-anchor="end"' if end else ""
        place = f'x="{x:.4g}" y="{y:.4g}" class="{kind}"{anchor}'
        self.parts.append(f"<text {place}>{html.escape(str(words))}</text>")
        self.height = max(self.height, y + 5)

    def cells(self, boxes: Sequence[Box], kind: str) -> None:
        """What threads do in one instruction."""
        inner = [(x + 0.5, y + 0.5, w - 1, h - 1) for x, y, w, h in boxes]
        if kind == "rg":
            bars = [(x + 0.5, y + h / 2, w - 1) for x, y, w, h in boxes]
            self.path("".join(f"M{x:.4g} {y:.4g}h{w:.3g}" for x, y, w in bars), kind)
        elif kind == "mark":
            for x, y, w, h in boxes:
                self.boxes([(x, y, w, h)], "band")
                self.boxes([(x, y, 3, h)], "edge")
        elif kind in ("ga", "sa"):  # half read, half written
            self.boxes(inner, kind[0] + "r")
            self.boxes([(x, y + h / 2, w, h / 2) for x, y, w, h in inner], kind[0] + "w")
        else:
            self.boxes(_merged(inner) if kind == "gh" else inner, kind)
            if kind == "wt":
                self.path("".join(map(_hatch, inner)), kind)
            elif kind == "ex":
                self.path(
                    "".join(f"M{x:.4g} {y + h / 2:.4g}h{w:.3g}" for x, y, w, h in inner), kind
                )

    def legend(self, kinds: Sequence[str]) -> float:
        x, y = 0.0, 12.0
        for kind in kinds:
            wide = 24 + 6.1 * len(KINDS[kind])
            if x + wide > self.width:
                x, y = 0.0, y + 20
            self.cells([(x, y - 10.5, 15, 13)], kind)
            self.text(x + 21, y, KINDS[kind])
            x += wide + 8
        return y

    def svg(self, kind: str, alt: str) -> str:
        return (
            f'<svg class="still {kind}" viewBox="0 0 {self.width} {self.height + 2:.0f}" '
            f'role="img" aria-label="{html.escape(alt)}">{"".join(self.parts)}</svg>'
        )


def _merged(boxes: Sequence[Box]) -> list[Box]:
    """Narrow boxes beside each other as one."""
    found: list[Box] = []
    for x, y, w, h in sorted(boxes):
        if found and w < 12 and x - found[-1][0] - found[-1][2] < 6:
            left = found.pop()[0]
            found.append((left, y, x + w - left, h))
        else:
            found.append((x, y, w, h))
    return found


def _wrapped(text: str, columns: int) -> list[str]:
    """A line of source in pieces that fit, those after the first one further in."""
    indent = " " * (len(text) - len(text.lstrip()))
    wrap = textwrap.TextWrapper(
        columns, initial_indent=indent, subsequent_indent=f"{indent}    ", drop_whitespace=True
    )
    return wrap.wrap(text.strip()) or [text]


def _hatch(box: Box) -> str:
    """Lines at 45 degrees within a box; a pattern would need a name, and names would clash."""
    x, y, w, h = box
    found, gap = "", 5.0
    n = 1
    while n * gap < w + h:  # the line from the left or bottom edge to the top or right edge
        along = n * gap
        x0, y0 = (x, y + along) if along <= h else (x + along - h, y + h)
        x1, y1 = (x + along, y) if along <= w else (x + w, y + along - w)
        found += f"M{x0:.4g} {y0:.4g}L{x1:.4g} {y1:.4g}"
        n += 1
    return found


class _Layout:
    """Where things stand: beside each other on a wide page, below each other on a phone."""

    def __init__(
        self, log: Log, shown: Sequence[Sequence[ThreadId]], listed: Sequence[Row], wide: bool
    ) -> None:
        self.wide, self.width = wide, WIDE if wide else NARROW
        per, lanes = len(shown[0]), sum(map(len, shown))
        self.per_row = (
            log.block[0] if log.block[0] < log.threads and per % log.block[0] == 0 else per
        )
        self.stacked = not wide and lanes > 4  # memory below the lanes, not beside them
        self.code = 28 if wide else 38
        room = [max(room_of(row, labels) for row in listed) for labels in (True, False)]
        # With the labels of rounds beside the source, if words about memory still fit.
        fits = room[0] + 46 + min(27 * lanes, 240) + 20 * len(shown) + 206 <= WIDE
        code = max(210, room[0] + 46 if fits else min(room[1] + 46, 292))
        self.left = code if wide else 42
        between = 20 if wide or len(shown) != 2 else max(14, self.width - self.left - 22 * lanes)
        offsets, at = [], 0.0
        for g, threads in enumerate(shown):
            at += between if g else 0
            for n in range(len(threads)):
                at += 3 if n and n % self.per_row == 0 else 0
                offsets.append(at)
        beside = 172 if lanes <= 32 else 240
        room = self.width - self.left if self.stacked else beside if wide else 100
        self.pitch = min(27.0, (room - at) / lanes)
        self.x = [self.left + c * self.pitch + offset for c, offset in enumerate(offsets)]
        self.first = [sum(map(len, shown[:g])) for g in range(len(shown))]
        self.memory = self.left if self.stacked else self.x[-1] + self.pitch + 20
        # Arrows run left of the lanes, or left of a later group of lanes.
        self.channels = [self.left - (10 if wide else 11)]
        self.channels += [self.x[c] - (10 if wide else 7) for c in self.first[1:]]
        self.last = {self.x[c - 1] for c in self.first[1:]}
        beside = self.stacked and len(shown) > 1 and self.numbered
        self.strip = (self.channels[-1] - 4 if beside else self.width) - self.memory

    @property
    def numbered(self) -> bool:
        return self.pitch > 16

    def below(self, row: Row) -> bool:
        """Whether a line of source is too long to have its lanes beside it."""
        return not self.wide or room_of(row) > self.left - self.code - 17

    def column(self, c: int, top: float) -> Box:
        return (self.x[c], top, self.pitch - (2 if self.numbered else 1), _CELL)


def draw(
    log: Log,
    listed: Sequence[Row],
    shown: Sequence[Sequence[ThreadId]],
    changed: set[int],
    alt: str,
    short: bool = False,
) -> str:
    """Both drawings of a film; the page shows one of them.

    Parameters
    ----------
    log : Log
    listed : sequence of Row
    shown : sequence of sequences of ThreadId
        The columns, group by group. Memory is that of the first group.
    changed : set of int
        Lines to be marked.
    alt : str
    short : bool
        Whether loops show their first and last round only.
    """
    keep = [] if log.clash is None else [log.clash.step, log.clash.other_step]
    keep = [step for step in keep if step is not None]
    found = ""
    for wide in (True, False):
        some = (1, 2) if short else (2, 5) if wide else (1, 3)
        mine = fold(listed, *some, keep)
        drawing = _Drawing(log, mine, shown, changed, wide)
        found += drawing.svg.svg("wide" if wide else "narrow", alt)
    return found


class _Drawing:
    def __init__(
        self,
        log: Log,
        listed: Sequence[Row],
        shown: Sequence[Sequence[ThreadId]],
        changed: set[int],
        wide: bool,
    ) -> None:
        self.log, self.rows, self.shown, self.changed = log, listed, shown, changed
        self.plan = _Layout(log, shown, listed, wide)
        self.svg = _Svg(self.plan.width)
        self.places: dict[int, Box] = {}  # of accesses, by their identity: for arrows
        y = self._body(self._head())
        for line in NOTE if not wide else (" ".join(NOTE),):
            y += 16
            self.svg.text(0, y, line, "s m")
        if log.clash:
            self._arrow(log.clash)

    def _head(self) -> float:
        d, plan = self.svg, self.plan
        kinds = {kind_of(row, c) for row in self.rows for c in row.cells}
        asked = [request_of(row, self.shown[0]) for row in self.rows]
        wasted = any(r and r.sectors and not all(map(all, r.places)) for r in asked)
        kinds |= {"idle"} if wasted else set()
        kinds |= {"mark"} if self.changed else set()
        y = d.legend([kind for kind in KINDS if kind in kinds]) + 30
        d.text(0, y, head_of(self.log, plan.wide), "c b")
        several = plan.per_row < len(self.shown[0])
        for first, threads in zip(plan.first, self.shown, strict=True):
            title = group_name(self.log, threads)
            if len(self.shown) == 1:
                title = f"threads of {title}"
            if several:
                title += f", y = 0 to {len(threads) // plan.per_row - 1}"
            d.text(plan.x[first], y + 24, title, "s m")
        if not plan.stacked:
            whose = "the warp"
            if len(self.shown) > 1:
                whose = f"{group_name(self.log, self.shown[0])}'s warp"
                if self.log.threads > 32:
                    whose = f"warp {self.shown[0][0].linear // 32}"
            d.text(plan.memory, y + 24, f"what {whose} asks of memory", "s m")
        for first, threads in zip(plan.first, self.shown, strict=True):
            for n, thread in enumerate(threads):
                x = plan.x[first + n]
                if several and n % plan.per_row == 0:
                    middle = x + plan.pitch * plan.per_row / 2
                    d.text(middle, y + 41, n // plan.per_row, "n m")
                elif not several and (plan.numbered or n % 8 == 0):
                    d.text(x + plan.pitch / 2, y + 41, thread.linear, "n m")
        return y + 46

    def _body(self, y: float) -> float:
        d, plan = self.svg, self.plan
        for n, row in enumerate(self.rows):
            if row.kind == "fold":
                d.text(plan.left, y + 12, f"⋮ {row.label}", "s m")
                y += 22
                continue
            short = row.kind in ("rg", "none")
            if row.text:
                y += 4
                if row.line in self.changed:
                    long = plan.code + len(body(row.text)) * _LETTER + 6
                    wide = max(plan.left - 14, long) if plan.wide else plan.width
                    d.cells([(0, y, wide, 20)], "mark")
                d.text(21, y + 14, row.line, "s m", end=True)
                first, *others = _wrapped(body(row.text), int((plan.width - plan.code) / _LETTER))
                d.text(plan.code, y + 14, first, "c")
                for piece in others:
                    y += 16
                    d.text(plan.code, y + 14, piece, "c")
                if plan.below(row):
                    y += (17 if short else 21) if row.cells else 12 if not plan.wide else 0
            elif n and (self.rows[n - 1].kind == "fold" or self.rows[n - 1].line != row.line):
                d.text(21, y + 14, row.line, "s m", end=True)
            if row.label:
                pair = n + 1 < len(self.rows) and self.rows[n + 1].path == row.path
                label = row.label if plan.wide else row.label.replace(" ", "")
                x = plan.left - 18 if plan.wide else 27
                d.text(x, y + (27 if pair and plan.wide else 14), label, "s m", end=True)
            self._lanes(row, y + (3 if plan.wide or not short else -3))
            if row.kind == "wt":
                at = y + (32 if plan.stacked else 14)
                d.text(plan.memory, at, WAITS[row.array])
                y += 16 * plan.stacked + 5
                d.path(f"M{plan.left - 8} {y + 19:.4g}H{plan.width}", "bar", y + 21)
            elif row.kind == "ex":
                d.text(plan.memory, y + (32 if plan.stacked else 14), row.array)
                y += 16 * plan.stacked
            elif row.array:
                self._memory(row, y + 19 * plan.stacked)
            beneath = plan.stacked and row.array and row.kind not in ("wt", "ex")
            y += (20 if plan.wide else 10) if short else 44 if beneath else 26
        return y

    def _lanes(self, row: Row, top: float) -> None:
        d, plan = self.svg, self.plan
        by_kind: dict[str, list[Box]] = {}
        for c, (step, act) in row.cells.items():
            box = plan.column(c, top)
            self.places[id(act)] = box
            if not (step.ghost and row.kind == "rg"):
                by_kind.setdefault(kind_of(row, c), []).append(box)
        for kind, boxes in by_kind.items():
            d.cells(boxes, kind)
        if plan.numbered:
            for c, (step, act) in row.cells.items():
                if isinstance(act, Access) and not step.ghost:
                    x, y, w, h = plan.column(c, top)
                    long = " t" if act.element > 99 and plan.pitch < 22 else ""
                    d.text(x + w / 2, y + h / 2 + 4, act.element, f"n {row.kind}{long}")

    def _memory(self, row: Row, y: float) -> None:
        d, plan = self.svg, self.plan
        asked = request_of(row, self.shown[0])
        clash = clash_words(self.log.clash, row)
        words = f"{'write' if row.kind[1] == 'w' else 'read' if row.kind[1] == 'r' else 'atomic'} "
        if asked:  # as much of it as there is room for
            parts = (f"{words}{row.array}: ", f"{row.array}: ", "")
            fits = [p for p in parts if 5.7 * len(p + asked.words) < plan.strip]
            words = (fits or parts)[0] + asked.words
        words = clash or (words if asked else "")
        bad = bool(clash) or bool(asked and asked.conflict)
        d.text(plan.memory, y + 9.5, words, "s e" if bad else "s")
        if asked is None:
            return
        places = asked.places
        count = max(4, len(places))
        gap = 4 if count <= 8 else 1.5
        size = (plan.strip - gap * (count - 1)) / count
        word = size / 8
        boxes: dict[str, list[Box]] = {}
        for s, used in enumerate(places):
            left = plan.memory + s * (size + gap)
            fetched = "idle" if any(used) and asked.sectors else "off"
            boxes.setdefault(fetched, []).append((left, y + 14, size, 6))
            thin = 1 if word > 3 else 0
            for i, n in enumerate(used):
                if n:
                    kind = "hot" if n > 1 else f"{row.kind[0]}on"
                    box = (left + i * word + thin / 2, y + 14, max(word - thin, 0.8), 6)
                    boxes.setdefault(kind, []).append(box)
        for kind, found in boxes.items():
            d.boxes(found, kind)

    def _arrow(self, clash: Clash) -> None:
        """From the access that came, or should have come, first to the one that met it."""
        a, b = self.places.get(id(clash.other)), self.places.get(id(clash.access))
        if b is None or clash.access is None:
            return
        boxes = [b] if a is None or clash.other is None else [a, b]
        for x, y, w, h in boxes:
            self.svg.boxes([(x - 1, y - 1, w + 2, h + 2)], "bad")
        if len(boxes) == 1:
            return
        points = route(a, b, self.plan.channels, a[0] in self.plan.last)
        line, head = rounded(points), arrow_head(points)
        self.svg.parts.append(
            f'<g class="clash" data-from="{clash.other_step.line}" data-to="{clash.step.line}">'
        )
        self.svg.path(line, "halo")
        self.svg.path(line, "bad")
        self.svg.path(head, "head")
        self.svg.parts.append("</g>")


# ------------------------------------------------------------------------------------ what is said


def body(text: str) -> str:
    """A line of a kernel without the indentation that all its lines have."""
    return text[4:]


def room_of(row: Row, labels: bool = True) -> float:
    """How wide a line of source is that has lanes beside it, with the label of its round."""
    label = 56 if labels and row.label else 0
    return len(body(row.text)) * _LETTER + label if row.cells else 0.0


def head_of(log: Log, wide: bool) -> str:
    """The line that begins with def, shortened where it is too long."""
    text = f"def {log.source.name}({', '.join(log.source.parameters)}):"
    most = int((WIDE if wide else NARROW) / _LETTER)
    return text if len(text) <= most else text[: most - 3] + "...:"


def group_name(log: Log, threads: Sequence[ThreadId]) -> str:
    """ "block 3", "block (0, 1), warp 2"."""
    block = threads[0].block
    n = max((axis + 1 for axis in range(3) if log.grid[axis] > 1), default=1)
    name = f"block {block[0] if n == 1 else block[:n]}"
    return f"{name}, warp {threads[0].linear // 32}" if log.threads > 32 else name


def kind_of(row: Row, column: int) -> str:
    """What one thread does in a row, as one of `KINDS`."""
    return "gh" if row.cells[column][0].ghost else row.kind


def request_of(row: Row, threads: Sequence[ThreadId], ghosts: bool = False) -> Request | None:
    """What the warp of these threads really asked for in an instruction, if anything.

    With ghosts, what it asks for where nothing stops it.
    """
    mine = set(threads)
    real = [
        act
        for step, act in row.cells.values()
        if isinstance(act, Access) and (ghosts or not step.ghost) and act.thread in mine
    ]
    return request(real) if real else None


def clash_words(clash: Clash | None, row: Row) -> str:
    """What stands beside the access that the simulator refused."""
    if clash is None or clash.access is None:
        return ""
    if not any(act is clash.access for _, act in row.cells.values()):
        return ""
    word = f"{row.array}[{', '.join(map(str, clash.access.index))}]"
    return f"race on {word}" if clash.kind == "race" else f"{word} is not written yet"


# ------------------------------------------------------------------------------------ arrows


def route(a: Box, b: Box, channels: Sequence[float], a_is_last: bool) -> list[tuple[float, float]]:
    """Corners of the way from one cell to another through what is empty: channels and gaps."""
    middle_a, middle_b = a[1] + a[3] / 2, b[1] + b[3] / 2
    if a[1] == b[1]:  # one instruction: over the heads of those between
        over = a[1] - 7
        ax, bx = a[0] + a[2] / 2, b[0] + b[2] / 2
        return [(ax, a[1] - 1), (ax, over), (bx, over), (bx, b[1] - 1)]
    lane = max(x for x in channels if x < b[0])
    down = middle_b > middle_a
    if 0 < a[0] - lane < 14:
        leave = [(a[0] - 1, middle_a), (lane, middle_a)]
    elif a_is_last and lane > a[0]:
        leave = [(a[0] + a[2] + 1, middle_a), (lane, middle_a)]
    else:
        edge = a[1] + a[3] + 1 if down else a[1] - 1
        gap = edge + (5 if down else -5)
        leave = [(a[0] + a[2] / 2, edge), (a[0] + a[2] / 2, gap), (lane, gap)]
    if b[0] - lane < 14:
        arrive = [(lane, middle_b), (b[0] - 1, middle_b)]
    else:
        gap = b[1] - 6
        arrive = [(lane, gap), (b[0] + b[2] / 2, gap), (b[0] + b[2] / 2, b[1] - 1)]
    return leave + arrive


def rounded(points: Sequence[tuple[float, float]], radius: float = 6.0) -> str:
    """A path through corners, which are rounded."""
    d = f"M{points[0][0]:.4g} {points[0][1]:.4g}"
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        cuts = []
        for end in (before, after):
            dx, dy = end[0] - corner[0], end[1] - corner[1]
            length = max(abs(dx), abs(dy))
            cut = min(radius, length / 2) / length if length else 0
            cuts.append((corner[0] + dx * cut, corner[1] + dy * cut))
        (x0, y0), (x1, y1) = cuts
        d += f"L{x0:.4g} {y0:.4g}Q{corner[0]:.4g} {corner[1]:.4g} {x1:.4g} {y1:.4g}"
    return d + f"L{points[-1][0]:.4g} {points[-1][1]:.4g}"


def arrow_head(points: Sequence[tuple[float, float]]) -> str:
    """The path of an arrow's head at the end of a way."""
    (x0, y0), (x, y) = points[-2:]
    if abs(x - x0) > abs(y - y0):
        back = -8 if x > x0 else 8
        return f"M{x:.4g} {y:.4g}l{back} -4.5v9z"
    back = -7 if y > y0 else 7
    return f"M{x:.4g} {y:.4g}l-4.5 {back}h9z"
