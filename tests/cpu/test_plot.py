"""Figures carry alternative text and labels; what is drawn is what was asked for."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Picture

from dgbook.lab.machine import Curve
from dgbook.lab.numbers import Number
from dgbook.page import plot

ALT = "Errors fall as the mesh is refined"
CEILINGS = {"copy_TBps": 4.0, "fp32_TFLOPs": 60.0, "fp64_TFLOPs": 30.0}


def point(label="LIVE", value=2.0, unit="TFLOP/s", intensity=1.0):
    return plot.Point("stage", intensity, Number(value, unit, label, "here"))


def texts(ax):
    return [child.get_text() for child in ax.texts]


# ------------------------------------------------------------------------------------- showing


def test_a_figure_is_shown_with_its_text_at_the_size_asked_for():
    fig, _ = plot.figure(4.0, 3.0)
    image = plot.show(fig, 'A "quoted" <text> of\n some words')
    page = image._repr_html_()
    assert 'alt="A &quot;quoted&quot; &lt;text&gt; of some words"' in page
    assert 'width="400" height="300"' in page and "max-width:100%" in page
    data = base64.b64decode(re.search(r"base64,([^\"]+)", page)[1])
    picture = Picture.open(io.BytesIO(data))
    assert picture.size == (4 * plot.DPI, 3 * plot.DPI)
    corners = [(x, y) for x in (0, 4 * plot.DPI - 1) for y in (0, 3 * plot.DPI - 1)]
    assert {picture.convert("RGBA").getpixel(corner)[3] for corner in corners} == {0}


def test_a_picture_is_on_white_what_was_drawn():
    fig, ax = plot.figure()
    ax.plot([0, 1, 0.5])
    ax.bar([1, 2], [0.3, 0.9], color=[plot.COLORS["sky"], "#eeeeee"])
    ours = Picture.open(io.BytesIO(plot.render(fig))).convert("RGBA")
    page = Picture.new("RGBA", ours.size, "white")
    page.alpha_composite(ours)
    plain = io.BytesIO()
    fig.savefig(plain, format="png", dpi=plot.DPI)
    found = (
        np.asarray(page.convert("RGB"), int),
        np.asarray(Picture.open(plain).convert("RGB"), int),
    )
    assert np.abs(found[0] - found[1]).max() <= 12  # 256 colors
    assert np.asarray(ours)[..., 3].max() == 255


def luminance(color):
    """Relative luminance of colors from 0 to 255, as WCAG 2 defines it."""
    c = np.asarray(color, float) / 255
    c = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return c @ np.array([0.2126, 0.7152, 0.0722])


def contrast(color, page):
    """The ratio of WCAG 2, from 1 to 21."""
    low, high = sorted((luminance(color), luminance(page)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("least, colors", [(3.0, plot.PALETTE), (4.5, ("#333333", "#000000"))])
def test_what_is_drawn_is_seen_on_both_pages(least, colors):
    for color in colors:
        rgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])
        assert contrast(rgb, (255, 255, 255)) >= least, color
        assert contrast(plot.on_dark(rgb), plot.DARK_PAGE) >= least, color


def test_dark_pages_keep_hues():
    black, white, blue = plot.on_dark(np.array([[0, 0, 0], [255, 255, 255], [0, 114, 178]]))
    assert (black == 255).all() and (white == 0).all()
    assert blue.argmax() == 2 and blue[2] > blue[1] > blue[0]


def test_a_field_has_a_picture_for_dark_pages():
    fig, (left, *others) = plot.figure(columns=3, grid=False)
    image = left.imshow(np.linspace(0, 1, 25).reshape(5, 5))
    others[0].imshow(np.eye(5), cmap="Blues")  # ink on paper
    others[1].pcolormesh(np.full((5, 5, 3), 0.3))  # colors by themselves
    fig.colorbar(image, ax=left)
    shown = plot.show(fig, ALT)
    light = np.asarray(Picture.open(io.BytesIO(shown.png)).convert("RGBA"), int)
    dark = np.asarray(Picture.open(io.BytesIO(shown.dark)).convert("RGB"), int)
    mask = plot.field_mask(fig)
    assert (mask.mean(axis=0) > 0.5).any() and not mask[:, -400:].any()
    solid = mask & (light[..., 3] == 255)
    assert np.abs(light[solid][:, :3] - dark[solid]).max() <= 12
    assert (dark[0, 0] == plot.DARK_PAGE).all()
    assert dark[~mask].max() > 240  # text
    page = shown._repr_html_()
    assert page.count("<img ") == page.count(f'alt="{ALT}"') == 2
    assert 'class="only-dark dg-field"' in page and "display:none" in page
    drawing, _ = plot.figure()
    assert 'class="dg-drawing"' in plot.show(drawing, ALT)._repr_html_()


def test_both_pictures_of_a_field_have_one_layout():
    fig, axes = plot.figure(height=6.6, rows=2, grid=False, height_ratios=(5, 3))
    for ax, top in zip(axes, (1.25, 0.6), strict=True):
        square = np.linspace(-1.25, 1.25, 9)
        image = ax.pcolormesh(square, square, np.outer(square, square))
        ax.set_aspect("equal")
        plot.label_axes(ax, "x", "y", title="a slice")
        ax.set_ylim(-0.8, top)
    fig.colorbar(image, ax=axes, label="light", shrink=0.6)
    shown = plot.show(fig, ALT)
    light = np.asarray(Picture.open(io.BytesIO(shown.png)).convert("RGBA"), int)
    assert not light[:, 0, 3].any()  # labels are whole
    places = [ax.get_position().bounds for ax in fig.axes]
    fig.draw_without_rendering()
    assert places == [ax.get_position().bounds for ax in fig.axes]
    dark = np.asarray(Picture.open(io.BytesIO(shown.dark)).convert("RGB"), int)
    white = (dark > 240).all(axis=-1) & (light[..., 3] == 0)
    assert not white.any()  # paper that the dark picture took for a field


def test_marks_on_a_field_keep_their_colors():
    def dark(**options):
        fig, ax = plot.figure(grid=False)
        ax.pcolormesh(np.linspace(0, 1, 9).reshape(3, 3))
        ax.plot(0, 1.5, "o", ms=40, color="#ffffff", mec="#333333", clip_on=False, **options)
        ax.axis("off")
        shown = plot.show(fig, ALT)
        return np.asarray(Picture.open(io.BytesIO(shown.dark)).convert("RGB"), int)

    white = [(picture > 240).all(axis=-1).sum() for picture in (dark(gid="field"), dark())]
    assert 1.8 < white[0] / white[1] < 2.2  # half of the mark lies beyond the field


def test_the_style_sheet_does_what_is_expected_of_it():
    sheet = (Path(plot.__file__).parents[2] / "_static" / "custom.css").read_text()
    drawing = sheet.split("img.dg-drawing:not(.only-dark) {")[1].split("}")[0]
    assert "filter: invert(1) hue-rotate(180deg);" in drawing


def test_a_picture_has_few_colors_and_few_bytes():
    fig, ax = plot.figure(grid=False)
    x = np.linspace(0, 1, 200)
    ax.imshow(np.sin(9 * x)[:, None] * np.cos(7 * x))
    small, large = plot.render(fig, 32), plot.render(fig)
    assert len(Picture.open(io.BytesIO(small)).convert("RGBA").getcolors()) <= 32
    full = io.BytesIO()
    fig.savefig(full, format="png", dpi=plot.DPI)
    assert len(small) < len(large) < 0.6 * len(full.getvalue())


@pytest.mark.parametrize("unit", ["GB/s", "us a step", "rate, TFLOP/s", "ms"])
def test_a_figure_of_rates_without_a_label_is_refused(unit):
    fig, ax = plot.figure()
    plot.label_axes(ax, "N", unit)
    with pytest.raises(ValueError, match="without a label; use annotate_label"):
        plot.show(fig, ALT)
    plot.annotate_label(ax, "LIVE", "here")
    assert plot.show(fig, ALT)


@pytest.mark.parametrize("alt", ["", "Errors", "a b c", None])
def test_a_figure_without_a_description_is_refused(alt):
    fig, _ = plot.figure()
    with pytest.raises(ValueError, match="alt = "):
        plot.show(fig, alt)


def test_figures_are_not_shown_twice():
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    plot.figure()
    assert pyplot.get_fignums() == before


def test_every_panel_has_the_style():
    _, axes = plot.figure(rows=2, sharex=True)
    assert len(axes) == 2
    for ax in axes:
        (line,) = ax.plot([0, 1])
        assert line.get_color() == plot.PALETTE[0]
        assert not ax.spines["top"].get_visible()


def relative_luminance(color):
    channels = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ (0.2126, 0.7152, 0.0722)


def test_the_first_colors_stand_out_from_white():
    """WCAG 2.1, 1.4.11: graphics have a contrast of 3 to 1; colors come in order of use."""
    contrast = [1.05 / (relative_luminance(color) + 0.05) for color in plot.PALETTE[:3]]
    assert min(contrast) >= 3


# -------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize("label", ["LIVE", "RECORDED", "PAPER"])
def test_the_label_is_drawn(label):
    _, ax = plot.figure()
    plot.annotate_label(ax, label, "NVIDIA H200, 2026-11-20")
    assert texts(ax) == [f"{label}  NVIDIA H200, 2026-11-20"]


@pytest.mark.parametrize(
    ("label", "source", "corner", "named"),
    [
        ("MEASURED", "here", "upper right", "label"),
        ("LIVE", "", "upper right", "source"),
        ("LIVE", "here", "middle", "corner"),
    ],
)
def test_a_label_is_not_invented(label, source, corner, named):
    _, ax = plot.figure()
    with pytest.raises(ValueError, match=f"^{named} "):
        plot.annotate_label(ax, label, source, corner)


# --------------------------------------------------------------------------------- convergence


def test_the_expected_slope_goes_through_the_finest_mesh():
    h = np.array([0.5, 0.25, 0.125])
    _, ax = plot.figure()
    plot.convergence(ax, h, {"N = 2": 7 * h**3 * (1 + h)}, {"N = 2": 3})
    curve, slope = (line.get_ydata() for line in ax.lines)
    assert slope[-1] == curve[-1]
    np.testing.assert_allclose(np.diff(np.log(slope)) / np.diff(np.log(h)), 3)
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0.5", "0.25", "0.125"]


@pytest.mark.parametrize("errors", [[1.0, 0.1], [1.0, 0.1, 0.0], [1.0, 0.1, np.nan]])
def test_errors_that_cannot_be_drawn_are_named(errors):
    _, ax = plot.figure()
    with pytest.raises(ValueError, match="N = 2"):
        plot.convergence(ax, [0.5, 0.25, 0.125], {"N = 2": errors})


# ------------------------------------------------------------------------------------ roofline


def test_the_roof_is_the_smaller_of_bandwidth_and_peak():
    _, ax = plot.figure()
    plot.roofline(ax, CEILINGS)
    for line, peak in zip(ax.lines, (60.0, 30.0), strict=True):
        x, y = line.get_data()
        np.testing.assert_allclose(y, np.minimum(4.0 * x, peak))
        assert x[0] < peak / 4.0 < x[-1]  # both slopes are seen
    assert texts(ax) == ["fp32 60 TFLOP/s", "fp64 30 TFLOP/s", "copy 4 TB/s"]


def test_points_are_where_and_what_they_say():
    _, ax = plot.figure()
    points = [
        point("LIVE", 2.0),
        point("RECORDED", 500.0, "GFLOP/s", 0.5),
        point("PAPER", 0.2, intensity=0.001),
    ]
    plot.roofline(ax, CEILINGS, points)
    drawn = ax.lines[2:]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in drawn] == [
        (1.0, 2.0),
        (0.5, 0.5),
        (0.001, 0.2),
    ]
    assert len({line.get_marker() for line in drawn}) == 3
    legend = [t.get_text() for t in ax.get_legend().get_texts()]
    assert legend == [f"stage  [{label} here]" for label in ("LIVE", "RECORDED", "PAPER")]
    assert ax.lines[0].get_xdata()[0] < 0.001


def test_tensor_cores_are_dotted_ceilings():
    _, ax = plot.figure()
    plot.roofline(ax, CEILINGS | {"fp64_tensor_TFLOPs": 3 * CEILINGS["fp64_TFLOPs"]})
    dotted = [line for line in ax.lines if line.get_linestyle() == ":"]
    assert len(dotted) == 1
    assert max(dotted[0].get_ydata()) == 3 * CEILINGS["fp64_TFLOPs"]
    assert any("fp64, tensor cores" in text.get_text() for text in ax.texts)


def test_roofs_that_are_close_have_their_names_on_both_sides():
    fig, ax = plot.figure(height=3.9)
    peaks = {"fp32_tensor_TFLOPs": 108.0, "fp64_tensor_TFLOPs": 66.0}
    plot.roofline(ax, CEILINGS | peaks)
    fig.canvas.draw()
    boxes = [t.get_window_extent() for t in ax.texts if "TFLOP/s" in t.get_text()]
    assert len(boxes) == 4
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])


def test_a_bar_s_arrows_keep_the_colors_of_its_map():
    fig, ax = plot.figure(grid=False)
    field = ax.imshow(np.linspace(-1, 1, 9).reshape(3, 3), vmin=-0.5, vmax=0.5)
    bar = fig.colorbar(field, extend="both")
    mask = plot.field_mask(fig)
    scale = mask.shape[0] / fig.canvas.get_width_height()[1]
    for end in bar._extend_patches:
        box = end.get_window_extent()
        column, row = round((box.x0 + box.x1) / 2 * scale), round((box.y0 + box.y1) / 2 * scale)
        assert mask[mask.shape[0] - row, column]


def test_measured_curves_say_where_they_come_from():
    fig, ax = plot.figure()
    x, y = np.arange(3.0), np.arange(3.0) ** 2
    recorded = Curve("RECORDED", "a GPU, 2026-01-01", "TB/s", ("a", "b", "c"), x, y)
    here = Curve("LIVE", "this GPU", "TB/s", ("a", "b", "c"), x, y + 1)
    plot.measured(ax, (recorded, here), "first")
    plot.measured(ax, (recorded,), "second")
    plot.label_axes(ax, "stride", "TB/s")
    plot.require_label(fig)
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["RECORDED  a GPU, 2026-01-01", "LIVE  this GPU", "first", "second"]
    assert [list(line.get_ydata()) for line in ax.lines] == [list(y), list(y + 1), list(y)]


@pytest.mark.parametrize(
    ("ceilings", "points"),
    [
        ({"copy_TBps": 4.0}, []),
        ({"fp32_TFLOPs": 60.0}, []),
        (CEILINGS | {"fp64_TFLOPs": 0.0}, []),
        (CEILINGS, [point(unit="GB/s")]),
        (CEILINGS, [plot.Point("stage", 1.0, Number(2.0, "TFLOP/s"))]),
    ],
)
def test_a_roofline_refuses_what_it_cannot_place(ceilings, points):
    _, ax = plot.figure()
    with pytest.raises(ValueError, match=r"ceilings = |'stage' has (unit|label)"):
        plot.roofline(ax, ceilings, points)
