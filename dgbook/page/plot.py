"""Every figure's style in one place: colors, sizes, labels of numbers and alternative text.

Static figures are drawn by matplotlib and shown as an HTML image that carries its alternative text
into the built book, Colab, JupyterLab and VS Code. It is transparent where the paper is white; on
dark pages the book's style sheet turns its lightness around and keeps its hues. A field keeps the
colors of its color map, so a figure with one brings a second picture for dark pages. Figures that
move without a kernel are in `dgbook.page.player`.
"""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import rcParams
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image as Picture

from dgbook.lab.numbers import LABELS, Number

if TYPE_CHECKING:
    from dgbook.lab.machine import Curve

# Okabe and Ito's colors, told apart by color-blind readers. Yellow is left out, since it is
# invisible on white; orange and sky are darker than theirs, for a contrast of 3 to 1 with it.
COLORS = {
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#C58500",
    "sky": "#3A9AD0",
    "black": "#000000",
}
PALETTE = tuple(COLORS.values())
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LABEL_MARKERS = {"LIVE": "o", "RECORDED": "s", "PAPER": "D", "MODEL": "^"}
LABEL_COLORS = {
    "LIVE": COLORS["green"],
    "RECORDED": COLORS["blue"],
    "PAPER": COLORS["purple"],
    "MODEL": COLORS["orange"],
}

# Units of time and rate, as axes, tables and printed lines name them.
PERFORMANCE = re.compile(r"(?<![\w/])([kMGT]?(B|FLOP|DOF)/s|[nuµm]s)\b")

# A figure of 5.2 inches is shown 520 CSS pixels wide; on a phone it shrinks to two thirds, where
# 12 points are still 11 pixels.
PIXELS_PER_INCH = 100
DPI = 160

STYLE = {
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.fontsize": 10.5,
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "lines.markersize": 6.5,
    "axes.linewidth": 1.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.7,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
    "image.cmap": "cividis",
    "axes.prop_cycle": f"cycler(color={list(PALETTE)!r})",
}


def style() -> None:
    """Give this session's matplotlib the book's style; `figure` does it by itself."""
    rcParams.update(STYLE)


def figure(
    width: float = 5.2,
    height: float = 3.4,
    rows: int = 1,
    columns: int = 1,
    grid: bool = True,
    **subplots: object,
) -> tuple[Figure, object]:
    """An empty figure in the book's style.

    Parameters
    ----------
    width, height : float
        In inches of 100 CSS pixels. The default fits a phone; wider than 7 does not.
    rows, columns : int
        Panels; more than one column is hard to read on a phone.
    grid : bool
        False for fields and pictures.
    **subplots
        Passed to matplotlib's `Figure.subplots`: sharex, width_ratios, subplot_kw.

    Returns
    -------
    fig : matplotlib Figure
        Not registered with pyplot, so that a notebook shows it once, through `show`.
    axes : Axes or array of Axes
    """
    style()
    fig = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(fig)
    axes = fig.subplots(rows, columns, **subplots)
    for ax in fig.axes:
        ax.grid(grid)
    return fig, axes


def label_axes(
    ax: Axes, x: str, y: str, title: str = "", logx: bool = False, logy: bool = False
) -> None:
    """Name both axes, with units; set logarithmic scales and a title where asked."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    if title:
        ax.set_title(title, loc="left")
    if logx:
        ax.set_xscale("log")
    if logy:
        ax.set_yscale("log")


def annotate_label(ax: Axes, label: str, source: str, corner: str = "upper right") -> None:
    """Write where a performance figure's numbers come from onto it, above the axes.

    Parameters
    ----------
    label : {"LIVE", "RECORDED", "PAPER", "MODEL"}
    source : str
        Device, record or paper: "NVIDIA H200, 2026-11-20".
    corner : {"upper left", "upper right"}

    Raises
    ------
    ValueError
        If the label or the corner is another one, or there is no source.
    """
    if label not in LABELS:
        raise ValueError(f"label = {label!r}; allowed are {', '.join(LABELS)}")
    if not source:
        raise ValueError("source is empty; allowed: the device, record or paper")
    if corner not in ("upper left", "upper right"):
        raise ValueError(f"corner = {corner!r}; allowed are 'upper left', 'upper right'")
    side = corner.split()[1]
    ax.annotate(
        f"{label}  {source}",
        xy=(0.0 if side == "left" else 1.0, 1.0),
        xycoords="axes fraction",
        xytext=(4 if side == "left" else -4, 6),
        textcoords="offset points",
        ha=side,
        va="bottom",
        fontsize=9.5,
        color="#333333",
        bbox={"boxstyle": "round,pad=0.25", "fc": "none", "ec": LABEL_COLORS[label], "lw": 1.2},
    )


def measured(ax: Axes, curves: Iterable[Curve], name: str = "", line: str = "-") -> None:
    """Draw an effect as it was recorded and as it was measured on this device.

    What was recorded is a broad, pale line with filled squares; what is live is a thin, dashed
    one with rings, so that both are seen where they coincide. Above the axes stands where each
    comes from: RECORDED on the right, LIVE on the left.

    Parameters
    ----------
    ax : Axes
    curves : iterable of dgbook.lab.machine.Curve
        One recorded and one live at most.
    name : str
        Written behind the last curve's end, where several effects share the axes.
    line : str
        matplotlib's style of the line; " " for marks alone.
    """
    corners = {"RECORDED": "upper right", "LIVE": "upper left"}
    written = {text.get_text().split("  ")[0] for text in ax.texts}
    for curve in curves:
        color, here = LABEL_COLORS[curve.label], curve.label == "LIVE"
        ax.plot(
            curve.x,
            curve.y,
            LABEL_MARKERS[curve.label],
            linestyle="--" if here and line == "-" else line,
            linewidth=1.4 if here else 5,
            color=color if here else (color, 0.35),
            markerfacecolor="none" if here else color,
            markeredgecolor=color,
            markeredgewidth=1.6 if here else 0,
            markersize=12 if here else 6,
        )
        if curve.label not in written:
            annotate_label(ax, curve.label, curve.source, corners[curve.label])
    if name:
        end = (curve.x[-1], curve.y[-1])
        ax.annotate(
            name, end, (8, 0), textcoords="offset points", va="center", annotation_clip=False
        )


def convergence(
    ax: Axes,
    h: Sequence[float] | np.ndarray,
    errors: Mapping[str, Sequence[float] | np.ndarray],
    orders: Mapping[str, float] | None = None,
) -> None:
    """Errors against mesh size on logarithmic axes, each with a line of its expected slope.

    Parameters
    ----------
    h : sequence of float
        Mesh sizes.
    errors : mapping of str to sequence
        Errors by curve, one for each mesh size.
    orders : mapping of str to float, optional
        Expected order of a curve: a dashed line of that slope through its finest mesh.

    Raises
    ------
    ValueError
        If a curve has another length than `h`, or mesh sizes or errors are not positive.
    """
    h = np.asarray(h, float)
    for i, (name, values) in enumerate(errors.items()):
        values = np.asarray(values, float)
        if values.shape != h.shape:
            raise ValueError(f"errors[{name!r}] has shape {values.shape}; h has {h.shape}")
        if not (np.all(h > 0) and np.all(values > 0)):
            raise ValueError(f"h or errors[{name!r}] has a value that is not above zero")
        color = PALETTE[i % len(PALETTE)]
        ax.plot(h, values, marker=MARKERS[i % len(MARKERS)], color=color, label=name)
        if orders and name in orders:
            finest = np.argmin(h)
            slope = values[finest] * (h / h[finest]) ** orders[name]
            ax.plot(h, slope, "--", color=color, linewidth=1.2)
    label_axes(ax, "mesh size h", "error", logx=True, logy=True)
    ax.set_xticks(h, [f"{value:.3g}" for value in h])
    ax.set_xticks([], minor=True)
    ax.legend()


PEAKS = {
    "fp32_TFLOPs": ("fp32", "-"),
    "fp64_TFLOPs": ("fp64", "--"),
    "fp32_tensor_TFLOPs": ("fp32, tensor cores", ":"),
    "fp64_tensor_TFLOPs": ("fp64, tensor cores", ":"),
}  # of a roofline: what each is called, and its line


@dataclass(frozen=True)
class Point:
    """A kernel on a roofline.

    Attributes
    ----------
    name : str
    intensity : float
        Flops for each byte moved.
    rate : Number
        Flops a second, labeled; its unit is "TFLOP/s" or "GFLOP/s".
    """

    name: str
    intensity: float
    rate: Number


def roofline(ax: Axes, ceilings: Mapping[str, float], points: Iterable[Point] = ()) -> None:
    """The attainable rate against the flops for each byte, with measured kernels under it.

    Parameters
    ----------
    ceilings : mapping
        "copy_TBps" and one or both of "fp32_TFLOPs", "fp64_TFLOPs", as `dgbook.lab.roofline`
        measures them and records hold them; "fp32_tensor_TFLOPs" and "fp64_tensor_TFLOPs", those of
        tensor cores, where they are known: dotted.
    points : iterable of Point
        The marker tells the label: a circle LIVE, a square RECORDED, a diamond PAPER,
        a triangle MODEL.

    Raises
    ------
    ValueError
        If a ceiling is missing or not positive, or a point has no label or another unit.
    """
    bandwidth = ceilings.get("copy_TBps", 0)
    peaks = {key: ceilings[key] for key in PEAKS if key in ceilings}
    if bandwidth <= 0 or not peaks or min(peaks.values()) <= 0:
        raise ValueError(
            f"ceilings = {dict(ceilings)!r}; needed: copy_TBps and fp32_TFLOPs or fp64_TFLOPs, "
            "all above zero"
        )
    points = list(points)
    for point in points:
        if point.rate.unit not in ("TFLOP/s", "GFLOP/s"):
            raise ValueError(
                f"{point.name!r} has unit {point.rate.unit!r}; allowed: TFLOP/s, GFLOP/s"
            )
        if point.rate.label not in LABELS:
            raise ValueError(f"{point.name!r} has label {point.rate.label!r}; allowed: {LABELS}")
    intensities = [point.intensity for point in points] + [
        factor * peak / bandwidth for peak in peaks.values() for factor in (0.05, 16)
    ]
    x = np.geomspace(min(intensities) / 1.5, max(intensities) * 1.5, 200)
    for key, peak in peaks.items():
        name, line = PEAKS[key]
        ax.plot(x, np.minimum(bandwidth * x, peak), line, color="#444444", zorder=1)
        higher = [other for k, other in peaks.items() if (other, k) > (peak, key)]
        below = any(other < 1.25 * peak for other in higher)  # a roof is close above this one
        ax.annotate(
            f"{name} {peak:.3g} TFLOP/s",
            (x[-1], peak),
            xytext=(0, -3 if below else 3),
            textcoords="offset points",
            ha="right",
            va="top" if below else "bottom",
            fontsize=10,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},  # over a higher slope
        )
    ax.annotate(
        f"copy {bandwidth:.3g} TB/s",
        (x[0], bandwidth * x[0]),
        xytext=(12, 2),
        textcoords="offset points",
        ha="left",
        va="top",
        fontsize=10,
    )
    for i, point in enumerate(points):
        rate = point.rate.value / (1000.0 if point.rate.unit == "GFLOP/s" else 1.0)
        ax.plot(
            point.intensity,
            rate,
            LABEL_MARKERS[point.rate.label],
            color=PALETTE[i % (len(PALETTE) - 1)],
            label=f"{point.name}  [{point.rate.label} {point.rate.source}]",
        )
    label_axes(ax, "flops for each byte", "TFLOP/s", logx=True, logy=True)
    if points:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), fontsize=9.5)


# --------------------------------------------------------------------------------------- showing


DARK_PAGE = (0x12, 0x12, 0x12)  # the book's dark background

# What the style sheet does to a drawing on a dark page, filter: invert(1) hue-rotate(180deg), as
# the standard (W3C, Filter Effects, section 9) defines it for colors from 0 to 1: the product with
# this matrix, of a color's complement.
HALF_TURN = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]])


def on_dark(colors: np.ndarray) -> np.ndarray:
    """Colors of a drawing as a dark page shows them: same hues, lightness turned around.

    Parameters
    ----------
    colors : array of uint8, shape (..., 3)
        Red, green and blue on white.
    """
    return np.clip((255.0 - colors) @ HALF_TURN.T, 0, 255).round().astype(np.uint8)


@dataclass(frozen=True)
class Image:
    """A picture with its alternative text, as a notebook shows it.

    `dark` is a second picture for dark pages, of a figure whose colors must not be turned around;
    where there is no style sheet to choose, the first is shown, on a white panel.
    """

    png: bytes
    alt: str
    width: int
    height: int
    dark: bytes = b""

    def _repr_html_(self) -> str:
        if not self.dark:
            return self._image(self.png, "dg-drawing", "background:#fff;border-radius:6px")
        light = self._image(self.png, "only-light", "background:#fff;border-radius:6px")
        return light + self._image(self.dark, "only-dark dg-field", "display:none")

    def _image(self, png: bytes, kind: str, style: str) -> str:
        return (
            f'<img class="{kind}" alt="{html.escape(self.alt)}" '
            f'width="{self.width}" height="{self.height}" '
            f'style="max-width:100%;height:auto;{style}" '
            f'src="data:image/png;base64,{base64.b64encode(png).decode()}">'
        )

    def __repr__(self) -> str:
        return f"[figure: {self.alt}]"


def show(fig: Figure, alt: str) -> Image:
    """Render a figure; as the last line of a cell it is shown with its alternative text.

    Parameters
    ----------
    fig : matplotlib Figure
    alt : str
        What the figure shows, for who cannot see it: at least four words.

    Raises
    ------
    ValueError
        If the text is missing or says next to nothing, or an axis has a unit of time or rate and
        no text in the figure says where its numbers come from: `annotate_label` writes that.
    """
    require_alt(alt)
    require_label(fig)
    width, height = (round(inches * PIXELS_PER_INCH) for inches in fig.get_size_inches())
    png, dark, mask = render(fig), b"", field_mask(fig)
    if mask is not None:
        light = _drawn(fig)[..., :3]
        dark = _encode(Picture.fromarray(np.where(mask[..., None], light, _lift(on_dark(light)))))
    return Image(png, " ".join(alt.split()), width, height, dark)


def render(fig: Figure, colors: int = 256) -> bytes:
    """A figure as a PNG of at most `colors` colors, a third of the size of a full-color one.

    White is transparent, and every other color as transparent as it can be: on white it is what
    matplotlib drew. The figure keeps the layout of this picture.
    """
    _settle(fig)
    picture = Picture.fromarray(_drawn(fig)).convert("RGB")
    picture = picture.quantize(colors, dither=Picture.Dither.NONE)
    palette = np.array(picture.getpalette(), float).reshape(-1, 3)
    opacity = 255.0 - palette.min(axis=1, keepdims=True)
    ink = 255.0 - (255.0 - palette) * 255.0 / np.maximum(opacity, 1.0)
    picture.putpalette(ink.round().astype(np.uint8).tobytes())
    return _encode(picture, transparency=bytes(opacity.round().astype(np.uint8).ravel()))


def field_mask(fig: Figure) -> np.ndarray | None:
    """Where a figure shows colors of a color map that is no ink on paper, or None if nowhere.

    A map that begins or ends near white is ink: its zero is the page. Marks and lines on a field
    belong to it if their gid is "field": they keep their colors where they reach beyond its edge.

    Returns
    -------
    mask : array of bool, shape (rows, columns) of the picture
    """
    fields = [artist for artist in fig.findobj(_is_field) if artist.get_visible()]
    if not fields:
        return None
    fields += fig.findobj(lambda artist: artist.get_gid() == "field")
    bars = [ax._colorbar for ax in fig.axes if hasattr(ax, "_colorbar")]
    fields += [end for bar in bars for end in bar._extend_patches]  # arrows beyond the limits
    others = [child for ax in fig.axes for child in ax.get_children() if child not in fields]
    others += [fig.patch, *fig.legends, *fig.texts]
    others = [artist for artist in others if artist.get_visible()]
    engine = fig.get_layout_engine()
    fig.set_layout_engine("none")  # what is hidden keeps its place
    try:
        for artist in others:
            artist.set_visible(False)
        alone = _drawn(fig)
    finally:
        for artist in others:
            artist.set_visible(True)
        fig.set_layout_engine(engine)
    return alone[..., 3] > 0


def _is_field(artist: Artist) -> bool:
    if not isinstance(artist, ScalarMappable) or artist.get_array() is None:
        return False
    if np.ndim(artist.get_array()) == 3:  # red, green and blue
        return False
    darkest = [min(artist.cmap(end, bytes=True)[:3]) for end in (0.0, 1.0)]
    return max(darkest) < 200


def _settle(fig: Figure) -> None:
    """Lay a figure out and keep it so: axes of equal aspect have their place the second time."""
    fig.set_dpi(DPI)
    for _ in range(2):
        fig.draw_without_rendering()
    fig.set_layout_engine("none")


def _drawn(fig: Figure) -> np.ndarray:
    """Red, green, blue and opacity of each pixel."""
    fig.canvas.draw()
    return np.array(fig.canvas.buffer_rgba())


def _lift(colors: np.ndarray) -> np.ndarray:
    """Colors from black to white as colors from the dark page to white."""
    page = np.array(DARK_PAGE)
    return (page + colors * ((255 - page) / 255)).round().astype(np.uint8)


def _encode(picture: Picture.Image, **options: object) -> bytes:
    if picture.mode != "P":
        picture = picture.quantize(256, dither=Picture.Dither.NONE)
    buffer = io.BytesIO()
    picture.save(buffer, format="png", optimize=True, **options)
    return buffer.getvalue()


def require_label(fig: Figure) -> None:
    """Refuse a figure of performance that does not say where its numbers come from.

    Raises
    ------
    ValueError
        If an axis has a unit of time or rate, and no text in the figure has a label.
    """
    axes = [text for ax in fig.axes for text in (ax.get_xlabel(), ax.get_ylabel())]
    measures = [text for text in axes if PERFORMANCE.search(text)]
    written = " ".join(text.get_text() for text in fig.findobj(Text))
    if measures and not any(label in written for label in LABELS):
        raise ValueError(f"an axis shows {measures[0]!r} without a label; use annotate_label")


def require_alt(alt: str) -> None:
    """Refuse an alternative text that says next to nothing.

    Raises
    ------
    ValueError
        If it has fewer than four words.
    """
    if not isinstance(alt, str) or len(alt.split()) < 4:
        raise ValueError(f"alt = {alt!r}; allowed: a sentence that says what the figure shows")
