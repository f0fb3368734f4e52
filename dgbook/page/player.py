"""Figures that move in the built page without a kernel: all frames in one block of HTML.

`player` redraws curves from a few kilobytes of numbers, `flipbook` swaps pictures. Both need no
library, load nothing, work in the built book, JupyterLab, Colab and VS Code, follow the page's
text color, are operated by keyboard, and show their first frame where scripts do not run.
"""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dgbook.page.plot import COLORS, PALETTE, PIXELS_PER_INCH, render, require_alt

STYLES = ("line", "dots", "points", "steps", "bars")
# A notebook stays below 1.5 MB; one figure may take a good part of it.
MOST_BYTES = 800_000

# The drawing, in units of the SVG: narrow, so that its 16 units of text are 11 pixels on a phone.
_WIDTH, _HEIGHT = 480, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 14, 12, 52
# A coordinate is stored as 16 bits over three times the axes' range, so that a curve that leaves
# the axes is cut at their edge and not bent along it; the largest number stands for a gap.
_LEVELS, _GAP = 65534, 65535


@dataclass(frozen=True)
class Curve:
    """One curve of a player.

    Attributes
    ----------
    name : str
        As the legend says it.
    x, y : array_like
        Coordinates, shape (..., points); the leading axes are the sliders', in their order, and
        may be left out or of length one where a slider does not matter. NaN in y makes a gap.
    style : {"line", "dots", "points", "steps", "bars"}
        Dots are a line with its points marked, which stand alone in "points"; steps hold y from
        one x to the next; bars stand on y = 0.
    color : str
        A CSS color; by default the next of the book's.
    dashed : bool
    """

    name: str
    x: Any
    y: Any
    style: str = "line"
    color: str = ""
    dashed: bool = False


@dataclass(frozen=True)
class Player:
    """An interactive figure, as a notebook shows it."""

    html: str
    alt: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"[interactive figure: {self.alt}]"


def player(
    curves: Sequence[Curve],
    sliders: Mapping[str, Sequence[Any]],
    *,
    xlabel: str,
    ylabel: str,
    alt: str,
    xlim: tuple[float, float] | None = None,
    ylim: tuple[float, float] | None = None,
    logx: bool | int = False,
    logy: bool = False,
    ticks: bool = True,
    captions: Any = None,
    start: Mapping[str, Any] | None = None,
    play: str | None = None,
    seconds: float = 0.12,
) -> Player:
    """Curves that sliders change.

    Parameters
    ----------
    curves : sequence of Curve
    sliders : mapping of str to sequence
        Values of each slider by its name: {"N": [1, 2, 3], "t": times}. Numbers are shown with
        three significant digits, anything else as text.
    xlabel, ylabel : str
    alt : str
        What the figure shows and what the sliders do to it, for who cannot see it.
    xlim, ylim : pair of float, optional
        Axes; by default all frames fit.
    logx, logy : bool
        Logarithmic axes; with logx = 2 powers of two are marked.
    ticks : bool
        Whether axes are marked; a drawing whose coordinates mean nothing goes without.
    captions : array_like of str, optional
        A line of text for each frame, with the sliders' shape: what to look at, an error.
    start : mapping, optional
        The sliders' first values; by default the first of each.
    play : str, optional
        The slider that a Play button moves.
    seconds : float
        Time a frame when playing.

    Returns
    -------
    Player
        As the last line of a cell it is shown.

    Raises
    ------
    ValueError
        If shapes do not fit the sliders, a style, a start value or a slider's name is unknown,
        values are not positive on a logarithmic axis, or the whole is too large for a notebook.
    """
    shape = _shape(sliders)
    if not curves:
        raise ValueError("curves is empty; allowed: at least one Curve")
    xs, ys = zip(*(_frames(curve, shape, logx, logy) for curve in curves), strict=True)
    wide = any(curve.style in ("points", "bars") for curve in curves)
    xlim = _limits(xs, xlim, logx, "xlim", margin=0.03 if wide else 0.0)
    ylim = _limits(ys, ylim, logy, "ylim", margin=0.05)
    store = _Store()
    data = []
    for i, (curve, x, y) in enumerate(zip(curves, xs, ys, strict=True)):
        base = 0.0 if logy else -ylim[0] / (ylim[1] - ylim[0])
        spacing = np.min(np.abs(np.diff(x[0])), initial=math.inf) / (xlim[1] - xlim[0])
        bar = 0.8 * spacing * (_WIDTH - _LEFT - _RIGHT) if math.isfinite(spacing) else 24.0
        data.append(
            {
                "style": curve.style,
                "color": _on_any_page(curve.color or PALETTE[i % len(PALETTE)]),
                "width": round(bar, 1) if curve.style == "bars" else 2.2,
                "dash": "6 4" if curve.dashed else "",
                "base": round(base, 5),
                "x": [store.add((frame - xlim[0]) / (xlim[1] - xlim[0])) for frame in x],
                "y": [store.add((frame - ylim[0]) / (ylim[1] - ylim[0])) for frame in y],
            }
        )
    first = _first(sliders, start)
    axes = _axes(xlim, ylim, logx, logy, xlabel, ylabel) if ticks else ""
    svg = _svg(data, store, first, alt, axes)
    drawn = {"data": store.base64(), "arrays": store.offsets, "curves": data}
    legend = _legend(curves, data)
    return assemble(
        svg + legend, drawn, sliders, first, alt, captions, play, seconds, 600, _DRAW_CURVES
    )


def flipbook(
    draw: Callable[..., Figure],
    sliders: Mapping[str, Sequence[Any]],
    *,
    alt: str,
    captions: Any = None,
    start: Mapping[str, Any] | None = None,
    play: str | None = None,
    seconds: float = 0.2,
    colors: int = 64,
) -> Player:
    """Pictures that sliders change: for fields, where a player's curves do not serve.

    Parameters
    ----------
    draw : callable
        Called with a value of each slider, in order; returns a figure of `dgbook.page.plot.figure`.
    colors : int
        Colors of each picture; fewer make it smaller.
    sliders, alt, captions, start, play, seconds
        As for `player`.

    Raises
    ------
    ValueError
        As for `player`.
    """
    _shape(sliders)
    figures = [draw(*values) for values in itertools.product(*sliders.values())]
    images = ["data:image/png;base64," + _base64(render(fig, colors)) for fig in figures]
    first = _first(sliders, start)
    width, height = (round(v * PIXELS_PER_INCH) for v in figures[first].get_size_inches())
    picture = (
        f'<img class="dg-drawing" alt="{html.escape(alt)}" width="{width}" height="{height}" '
        f'src="{images[first]}" '
        'style="max-width:100%;height:auto;background:#fff;border-radius:6px">'
    )
    return assemble(
        picture,
        {"images": images},
        sliders,
        first,
        alt,
        captions,
        play,
        seconds,
        width,
        _DRAW_PICTURE,
    )


# ------------------------------------------------------------------------------------- the frames


class _Store:
    """Arrays of coordinates as 16-bit numbers, equal ones stored once."""

    def __init__(self) -> None:
        self.offsets = [0]
        self._known: dict[bytes, int] = {}

    def add(self, values: np.ndarray) -> int:
        """Keep coordinates relative to the axes (0 to 1 is inside); return their number."""
        levels = np.clip(np.rint((values + 1.0) / 3.0 * _LEVELS), 0, _LEVELS)
        data = np.where(np.isnan(values), _GAP, levels).astype("<u2").tobytes()
        if data not in self._known:
            self._known[data] = len(self._known)
            self.offsets.append(self.offsets[-1] + len(values))
        return self._known[data]

    def get(self, number: int) -> np.ndarray:
        levels = np.frombuffer(list(self._known)[number], "<u2")
        return np.where(levels == _GAP, np.nan, levels / _LEVELS * 3.0 - 1.0)

    def base64(self) -> str:
        return _base64(b"".join(self._known))


def _shape(sliders: Mapping[str, Sequence[Any]]) -> tuple[int, ...]:
    if not sliders or not all(len(values) for values in sliders.values()):
        raise ValueError(
            f"sliders = {dict(sliders)!r}; allowed: names with at least one value each"
        )
    return tuple(len(values) for values in sliders.values())


def _frames(
    curve: Curve, shape: tuple[int, ...], logx: bool | int, logy: bool
) -> tuple[np.ndarray, np.ndarray]:
    """A curve's coordinates for all frames, shape (frames, points), logarithms where asked."""
    if curve.style not in STYLES:
        raise ValueError(
            f"{curve.name!r}: style = {curve.style!r}; allowed are {', '.join(STYLES)}"
        )
    x, y = np.asarray(curve.x, float), np.asarray(curve.y, float)
    if x.ndim == 0 or y.ndim == 0 or x.shape[-1] != y.shape[-1] or x.shape[-1] == 0:
        raise ValueError(
            f"{curve.name!r}: x has shape {x.shape} and y {y.shape}; points must agree"
        )
    full = (*shape, x.shape[-1])
    frames = []
    for axis, values, logarithmic in (("x", x, logx), ("y", y, logy)):
        try:
            values = np.broadcast_to(values, full).reshape(-1, full[-1])
        except ValueError:
            raise ValueError(
                f"{curve.name!r}: {axis} has shape {values.shape}; the sliders have {shape}, so "
                f"{full} is allowed, with leading axes left out or of length one"
            ) from None
        if logarithmic and np.any(values <= 0):
            raise ValueError(f"{curve.name!r}: {axis} is not above zero on a logarithmic axis")
        frames.append(np.log10(values) if logarithmic else values)
    return frames[0], frames[1]


def _limits(
    frames: Sequence[np.ndarray],
    limits: tuple[float, float] | None,
    logarithmic: bool | int,
    name: str,
    margin: float,
) -> tuple[float, float]:
    if limits is not None:
        if not limits[0] < limits[1] or (logarithmic and limits[0] <= 0):
            raise ValueError(f"{name} = {limits!r}; allowed: two rising numbers that fit the axis")
        low, high = limits
        return (math.log10(low), math.log10(high)) if logarithmic else (float(low), float(high))
    low = min(float(np.nanmin(values)) for values in frames)
    high = max(float(np.nanmax(values)) for values in frames)
    pad = margin * (high - low) if high > low else 0.5
    return low - pad, high + pad


def _first(sliders: Mapping[str, Sequence[Any]], start: Mapping[str, Any] | None) -> int:
    """The number of the first frame."""
    number = 0
    for name in start or {}:
        if name not in sliders:
            raise ValueError(f"start names {name!r}; the sliders are {', '.join(sliders)}")
    for name, values in sliders.items():
        position = 0
        if start and name in start:
            if start[name] not in list(values):
                raise ValueError(f"start[{name!r}] = {start[name]!r}; allowed are {list(values)}")
            position = list(values).index(start[name])
        number = number * len(values) + position
    return number


# ----------------------------------------------------------------------------------- the drawing


def _path(curve: Mapping[str, Any], store: _Store, frame: int) -> str:
    """The SVG path of a curve in one frame; the script below draws the others the same way."""
    x = _LEFT + store.get(curve["x"][frame]) * (_WIDTH - _LEFT - _RIGHT)
    y = _TOP + (1.0 - store.get(curve["y"][frame])) * (_HEIGHT - _TOP - _BOTTOM)
    base = _TOP + (1.0 - curve["base"]) * (_HEIGHT - _TOP - _BOTTOM)
    path, pen_up = "", True
    for px, py in zip(x, y, strict=True):
        if math.isnan(py) or math.isnan(px):
            pen_up = True
            continue
        if curve["style"] == "points":
            path += f"M{px - 3.5:.1f} {py:.1f}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0"
        elif curve["style"] == "dots":  # a ring, whose hole the line fills
            move = "M" if pen_up else "L"
            path += f"{move}{px:.1f} {py:.1f}m-2 0a2 2 0 1 0 4 0a2 2 0 1 0 -4 0m2 0"
        elif curve["style"] == "bars":
            path += f"M{px:.1f} {base:.1f}V{py:.1f}"
        elif pen_up:
            path += f"M{px:.1f} {py:.1f}"
        elif curve["style"] == "steps":
            path += f"H{px:.1f}V{py:.1f}"
        else:
            path += f"L{px:.1f} {py:.1f}"
        pen_up = False
    return path


def _svg(
    curves: Sequence[Mapping[str, Any]], store: _Store, frame: int, alt: str, axes: str
) -> str:
    paths = "".join(
        f'<path d="{_path(curve, store, frame)}" stroke="{html.escape(curve["color"])}" '
        f'stroke-width="{curve["width"]}" stroke-dasharray="{curve["dash"]}" '
        f'fill="{html.escape(curve["color"]) if curve["style"] == "points" else "none"}"/>'
        for curve in curves
    )
    # The curves stand in an SVG of their own, which cuts them at the edge of the axes.
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{html.escape(alt)}" '
        'font-family="sans-serif" font-size="16" fill="currentColor" '
        'style="width:100%;height:auto;display:block">'
        f'{axes}<svg x="{_LEFT}" y="{_TOP}" width="{width}" height="{height}" '
        f'viewBox="{_LEFT} {_TOP} {width} {height}" overflow="hidden">'
        f'<g class="dg-curves" stroke-linejoin="round">{paths}</g></svg></svg>'
    )


def _axes(
    xlim: tuple[float, float],
    ylim: tuple[float, float],
    logx: bool | int,
    logy: bool,
    xlabel: str,
    ylabel: str,
) -> str:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    marks = ""
    for value, text in _ticks(xlim, logx):
        x = _LEFT + (value - xlim[0]) / (xlim[1] - xlim[0]) * (right - _LEFT)
        marks += f'<path d="M{x:.1f} {_TOP}V{bottom}" stroke="currentColor" opacity="0.15"/>'
        marks += f'<text x="{x:.1f}" y="{bottom + 19}" text-anchor="middle">{text}</text>'
    for value, text in _ticks(ylim, logy):
        y = bottom - (value - ylim[0]) / (ylim[1] - ylim[0]) * (bottom - _TOP)
        marks += f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="currentColor" opacity="0.15"/>'
        marks += f'<text x="{_LEFT - 6}" y="{y + 5:.1f}" text-anchor="end">{text}</text>'
    middle = (_TOP + bottom) / 2
    return (
        f'{marks}<path d="M{_LEFT} {_TOP}V{bottom}H{right}" stroke="currentColor" fill="none"/>'
        f'<text x="{(_LEFT + right) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">'
        f"{html.escape(xlabel)}</text>"
        f'<text transform="translate(17 {middle}) rotate(-90)" text-anchor="middle">'
        f"{html.escape(ylabel)}</text>"
    )


def _ticks(limits: tuple[float, float], logarithmic: bool | int) -> list[tuple[float, str]]:
    """Positions and texts of an axis' marks."""
    low, high = limits
    slack = 1e-9 * (high - low)
    if not logarithmic:
        locator = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
        values = [v for v in locator.tick_values(low, high) if low - slack <= v <= high + slack]
        return [(v, f"{0.0 if abs(v) < slack else v:.6g}".replace("-", "−")) for v in values]
    base = 2 if logarithmic == 2 else 10
    unit = math.log10(base)
    powers = range(math.ceil((low - slack) / unit), math.floor((high + slack) / unit) + 1)
    if len(powers) > 2:
        raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
        chosen = powers[:: -(-len(powers) // (7 if base == 2 else 6))]
        return [(power * unit, str(base) + str(power).translate(raised)) for power in chosen]
    marks = [m * 10.0**d for d in range(math.floor(low), math.ceil(high) + 1) for m in (1, 2, 5)]
    return [
        (math.log10(m), f"{m:g}") for m in marks if low - slack <= math.log10(m) <= high + slack
    ]


def _legend(curves: Sequence[Curve], data: Sequence[Mapping[str, Any]]) -> str:
    entries = ""
    for curve, drawn in zip(curves, data, strict=True):
        color = html.escape(drawn["color"])
        sample = ""
        if curve.style != "points":
            sample += (
                f'<path d="M2 6H26" stroke="{color}" '
                f'stroke-width="{9 if curve.style == "bars" else 3}" '
                f'stroke-dasharray="{drawn["dash"]}"/>'
            )
        if curve.style in ("points", "dots"):
            sample += f'<circle cx="14" cy="6" r="4" fill="{color}"/>'
        entries += (
            '<span style="white-space:nowrap;margin-right:1.2em">'
            f'<svg width="28" height="12" aria-hidden="true">{sample}</svg> '
            f"{html.escape(curve.name)}</span>"
        )
    return f'<div style="font-size:0.9em;line-height:1.6">{entries}</div>'


# ---------------------------------------------------------------------------------- the whole


def assemble(
    picture: str,
    drawn: dict[str, Any],
    sliders: Mapping[str, Sequence[Any]],
    first: int,
    alt: str,
    captions: Any,
    play: str | None,
    seconds: float,
    width: int,
    draw: str,
    kind: str = "",
) -> Player:
    """Picture, controls and script as one block: the frame of every figure that moves.

    Parameters
    ----------
    picture : str
        HTML of the first frame, which stands alone where scripts do not run.
    drawn : dict
        What `draw` needs.
    sliders, alt, captions, play, seconds
        As for `player`; without a slider there is one frame, which `draw` may change by itself.
    first : int
        The number of the first frame.
    width : int
        In CSS pixels, at most.
    draw : str
        JavaScript: a function of the figure's element and of what it needs, which returns a
        function of the frame's number and of the sliders' positions that draws a frame.
    kind : str
        A CSS class of the figure.

    Raises
    ------
    ValueError
        As for `player`.
    """
    require_alt(alt)
    shape = tuple(len(values) for values in sliders.values())
    texts = [[_value_text(value) for value in values] for values in sliders.values()]
    if captions is not None:
        captions = np.asarray(captions, dtype=object)
        if captions.shape != shape:
            raise ValueError(f"captions has shape {captions.shape}; the sliders have {shape}")
        drawn["captions"] = [str(text) for text in captions.ravel()]
    if play is not None and play not in sliders:
        raise ValueError(f"play = {play!r}; the sliders are {', '.join(sliders)}")
    spec = drawn | {
        "box": [_LEFT, _TOP, _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM],
        "names": list(sliders),
        "texts": texts,
        "play": list(sliders).index(play) if play is not None else -1,
        "ms": round(1000 * seconds),
    }
    # "</" inside a script would end it.
    content = json.dumps(spec, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    # Named after its content: the same figure made again is the same text, so outputs stay equal.
    name = hashlib.sha256((picture + content).encode()).hexdigest()[:12]
    positions = np.unravel_index(first, shape)
    controls = "".join(
        '<label style="display:flex;align-items:center;gap:0.6em;flex:1 1 220px;min-width:0">'
        f'<span style="white-space:nowrap">{html.escape(slider)} = '
        f"<output>{html.escape(text[position])}</output></span>"
        f'<input type="range" min="0" max="{len(text) - 1}" step="1" value="{position}" '
        f'aria-label="{html.escape(slider)}" aria-valuetext="{html.escape(text[position])}" '
        'style="flex:1;min-width:80px;accent-color:#0072B2"></label>'
        for slider, text, position in zip(sliders, texts, positions, strict=True)
    )
    button = (
        '<button type="button" style="font:inherit;color:inherit;background:transparent;padding:'
        '0.1em 0.9em;min-width:5em;border:1px solid currentColor;border-radius:4px">Play</button>'
        if play is not None
        else ""
    )
    caption = drawn["captions"][first] if captions is not None else ""
    frame = _FRAME.replace("PREPARE", draw)
    block = (
        f'<figure class="{f"dg-player {kind}".strip()}" data-player="{name}" '
        f'style="max-width:{width}px;margin:0.5em 0">'
        f"{picture}"
        '<div class="dg-controls" hidden style="margin-top:0.4em"><div style="display:flex;'
        f'flex-wrap:wrap;gap:0.3em 1.2em;align-items:center">{button}{controls}</div></div>'
        '<figcaption style="font-size:0.9em;min-height:1.5em;color:inherit;text-align:left">'
        f"{html.escape(caption)}</figcaption>"
        f"</figure><script>({frame})({json.dumps(name)},{content})</script>"
    )
    if len(block.encode()) > MOST_BYTES:
        raise ValueError(
            f"this figure takes {len(block.encode()):,} bytes; allowed are {MOST_BYTES:,}: "
            "use fewer frames or points"
        )
    return Player(block, " ".join(alt.split()))


def _on_any_page(color: str) -> str:
    """Black is the color of the page's text, which is light on dark pages."""
    return "currentColor" if color in (COLORS["black"], "black") else color


def _value_text(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float | np.floating) else str(value)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


# The frame: sliders, their words, the play button. PREPARE is the function that draws.
_FRAME = """function (name, spec) {
  "use strict";
  var prepare = PREPARE;
  function begin(root) {
    var controls = root.querySelector(".dg-controls");
    var inputs = controls.querySelectorAll("input[type=range]");
    var outputs = controls.querySelectorAll("output");
    var button = controls.querySelector("button"), caption = root.querySelector("figcaption");
    var show = prepare(root, spec), timer = null;
    function draw() {
      var frame = 0, positions = [];
      inputs.forEach(function (input, i) {
        var text = spec.texts[i][+input.value];
        frame = frame * spec.texts[i].length + +input.value;
        positions.push(+input.value);
        outputs[i].textContent = text;
        input.setAttribute("aria-valuetext", text);
      });
      show(frame, positions);
      if (spec.captions) { caption.textContent = spec.captions[frame]; }
    }
    function pause() {
      clearInterval(timer);
      timer = null;
      button.textContent = "Play";
    }
    inputs.forEach(function (input) {
      input.addEventListener("input", function () { if (timer) { pause(); } draw(); });
    });
    if (button) {
      button.addEventListener("click", function () {
        if (timer) { pause(); return; }
        button.textContent = "Pause";
        timer = setInterval(function () {
          if (!root.isConnected) { pause(); return; }
          var input = inputs[spec.play];
          input.value = (+input.value + 1) % (+input.max + 1);
          draw();
          if (spec.once && input.value === input.max) { pause(); }
        }, spec.ms);
      });
    }
    controls.hidden = false;
    draw();
  }
  // Some pages run the script before the figure is in the document: look again a few times.
  function find(tries) {
    var roots = document.querySelectorAll('[data-player="' + name + '"]:not([data-ready])');
    roots.forEach(function (root) { root.setAttribute("data-ready", ""); begin(root); });
    if (!roots.length && tries) { setTimeout(function () { find(tries - 1); }, 100); }
  }
  find(50);
}"""

_DRAW_PICTURE = """function (root, spec) {
  var image = root.querySelector("img");
  return function (frame) { image.src = spec.images[frame]; };
}"""

_DRAW_CURVES = """function (root, spec) {
  var raw = atob(spec.data), levels = new Uint16Array(raw.length >> 1);
  var paths = root.querySelectorAll(".dg-curves path");
  for (var i = 0; i < levels.length; i++) {
    levels[i] = raw.charCodeAt(2 * i) | raw.charCodeAt(2 * i + 1) << 8;
  }
  function path(curve, frame) {
    var box = spec.box, a = spec.arrays[curve.x[frame]], b = spec.arrays[curve.y[frame]];
    var count = spec.arrays[curve.y[frame] + 1] - b, d = "", penUp = true;
    var base = (box[1] + (1 - curve.base) * box[3]).toFixed(1);
    for (var i = 0; i < count; i++) {
      if (levels[a + i] === 65535 || levels[b + i] === 65535) { penUp = true; continue; }
      var x = box[0] + (levels[a + i] / 65534 * 3 - 1) * box[2];
      var y = (box[1] + (2 - levels[b + i] / 65534 * 3) * box[3]).toFixed(1);
      if (curve.style === "points") {
        d += "M" + (x - 3.5).toFixed(1) + " " + y + "a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0";
      } else if (curve.style === "dots") {
        d += (penUp ? "M" : "L") + x.toFixed(1) + " " + y;
        d += "m-2 0a2 2 0 1 0 4 0a2 2 0 1 0 -4 0m2 0";
      } else if (curve.style === "bars") {
        d += "M" + x.toFixed(1) + " " + base + "V" + y;
      } else if (penUp) {
        d += "M" + x.toFixed(1) + " " + y;
      } else {
        d += curve.style === "steps" ? "H" + x.toFixed(1) + "V" + y : "L" + x.toFixed(1) + " " + y;
      }
      penUp = false;
    }
    return d;
  }
  return function (frame) {
    paths.forEach(function (element, i) {
      element.setAttribute("d", path(spec.curves[i], frame));
    });
  };
}"""
