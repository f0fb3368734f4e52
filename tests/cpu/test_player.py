"""What a player holds is what it was given: every frame is decoded from its HTML and compared."""

from __future__ import annotations

import base64
import json
import re

import numpy as np
import pytest

from dgbook.page import player as module
from dgbook.page import plot
from dgbook.page.player import Curve, flipbook, player

ALT = "A wave moves to the right as the slider moves"
X = np.linspace(0.0, 1.0, 50)
TIMES = np.linspace(0.0, 1.0, 11)
ORDERS = [1, 2, 3]
WAVES = np.sin(2 * np.pi * (X - TIMES[:, None])) * np.array([0.5, 0.8, 1.0])[:, None, None]


def make(curves=None, sliders=None, **options):
    return player(
        [Curve("wave", X, WAVES)] if curves is None else curves,
        {"N": ORDERS, "t": TIMES} if sliders is None else sliders,
        **{"xlabel": "x", "ylabel": "u", "alt": ALT} | options,
    )


def spec(figure):
    text = re.search(r"\}\)\(\"[0-9a-f]+\",(.*)\)</script>$", figure.html, re.S)[1]
    return json.loads(text.replace("<\\/", "</"))


def decoded(figure, curve, axis):
    """Coordinates of all frames, in axes' units, as the script reads them."""
    content = spec(figure)
    levels = np.frombuffer(base64.b64decode(content["data"]), "<u2").astype(float)
    levels[levels == 65535] = np.nan
    values = levels / 65534 * 3 - 1
    at = content["arrays"]
    return [values[at[i] : at[i + 1]] for i in content["curves"][curve][axis]]


def test_all_frames_are_kept_to_a_fiftieth_of_a_pixel():
    figure = make(xlim=(0, 1), ylim=(-1, 1))
    y = np.array(decoded(figure, 0, "y")) * 2 - 1
    x = np.array(decoded(figure, 0, "x"))
    resolution = 3 / 65534  # of the axes' length, half of it by rounding
    np.testing.assert_allclose(y, WAVES.reshape(33, 50), atol=resolution)
    np.testing.assert_allclose(x, np.broadcast_to(X, (33, 50)), atol=resolution / 2)
    assert resolution * module._WIDTH < 1 / 40


def test_the_last_slider_moves_fastest():
    content = spec(make())
    assert content["names"] == ["N", "t"]
    assert [len(texts) for texts in content["texts"]] == [3, 11]
    assert content["texts"][0] == ["1", "2", "3"] and content["texts"][1][5] == "0.5"


def test_what_a_slider_does_not_change_is_stored_once():
    still = Curve("exact", X, WAVES[2, 0])
    by_order = Curve("by order", X, WAVES[:, :1])
    content = spec(make([still, by_order]))
    assert len(content["arrays"]) - 1 == 1 + 3  # x; three orders, of which one is also the first
    assert len(set(content["curves"][0]["y"])) == 1
    orders = np.reshape(content["curves"][1]["y"], (3, 11))
    assert (orders == orders[:, :1]).all() and len(set(orders[:, 0])) == 3
    assert orders[2, 0] == content["curves"][0]["y"][0]


def test_gaps_and_values_off_the_axes():
    y = np.array([0.0, np.nan, 5.0, 1.0, 40.0])
    figure = make([Curve("gap", np.arange(5.0), y)], {"k": ["a"]}, ylim=(0, 10))
    (values,) = decoded(figure, 0, "y")
    assert np.isnan(values[1])
    np.testing.assert_allclose(values[[0, 2, 3, 4]], [0, 0.5, 0.1, 2.0], atol=1e-4)  # cut at 2
    path = re.search(r'class="dg-curves"[^>]*><path d="([^"]*)"', figure.html)[1]
    assert path.count("M") == 2


def test_logarithmic_axes():
    y = 10.0 ** -np.arange(8.0)
    figure = make([Curve("error", np.arange(1.0, 9.0), y)], {"k": ["a"]}, logy=True, ylim=(1e-8, 1))
    (values,) = decoded(figure, 0, "y")
    np.testing.assert_allclose(values * 8 - 8, -np.arange(8.0), atol=1e-3)
    marks = re.findall(r'text-anchor="end">([^<]*)<', figure.html)
    assert marks == ["10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²", "10⁰"]


@pytest.mark.parametrize("limits", [(0.0, 1.0), (-1.0, 1.0), (-3e-5, 7e-5), (0.0, 23.0)])
def test_marks_lie_on_the_axis_and_say_where(limits):
    marks = module._ticks(limits, False)
    assert 3 <= len(marks) <= 6
    for value, text in marks:
        assert limits[0] - 1e-9 <= value <= limits[1] + 1e-9
        assert float(text.replace("−", "-")) == pytest.approx(value, abs=1e-12)


def test_a_drawing_needs_no_axes():
    """Without ticks the curves stay as they are, and only they are drawn."""
    with_axes, without = make(), make(ticks=False)
    assert spec(with_axes)["data"] == spec(without)["data"]
    assert with_axes.html.count("<text") > 4 and without.html.count("<text") == 0


@pytest.mark.parametrize("limits", [(1.0, 8.0), (3.0, 40.0)])
def test_marks_of_a_short_logarithmic_axis_differ(limits):
    low, high = np.log10(limits)
    marks = module._ticks((low, high), True)
    assert len(marks) >= 3 and len({text for _, text in marks}) == len(marks)
    for value, text in marks:
        assert low - 1e-9 <= value <= high + 1e-9 and float(text) == pytest.approx(10**value)


@pytest.mark.parametrize("most", [13, 23])
def test_an_axis_of_sizes_has_powers_of_two(most):
    """The first is marked, and so many more that their labels do not meet."""
    marks = module._ticks((np.log10(2**11), np.log10(2**most)), 2)
    powers = [round(value / np.log10(2)) for value, _ in marks]
    assert powers == list(range(11, most + 1, 1 if most == 13 else 2))
    np.testing.assert_allclose([value for value, _ in marks], np.log10(2.0 ** np.array(powers)))
    digits = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
    assert [text.translate(digits) for _, text in marks] == [f"2{power}" for power in powers]


def test_a_dot_is_drawn_around_each_point_of_a_line():
    """A ring of radius 2 around it, and the line goes on from its middle."""
    html = make([Curve("c", [0.0, 1.0], [0.0, 1.0], "dots")], {"k": [0]}).html
    path = re.search(r'class="dg-curves"[^>]*><path d="([^"]*)"', html)[1]
    ring = "m-2 0a2 2 0 1 0 4 0a2 2 0 1 0 -4 0m2 0"
    assert path.count(ring) == 2 and re.fullmatch(r"M[\d. ]+L[\d. ]+", path.replace(ring, ""))
    assert html.count("<circle") == 1  # in the legend


@pytest.mark.parametrize("style", module.STYLES)
def test_each_style_draws_all_points(style):
    figure = make([Curve("c", X, WAVES[0, 0], style)], {"k": [0]})
    path = re.search(r'class="dg-curves"[^>]*><path d="([^"]*)"', figure.html)[1]
    marks = {"line": "ML", "dots": "ML", "points": "M", "steps": "MH", "bars": "M"}[style]
    assert sum(path.count(mark) for mark in marks) == len(X)


def test_bars_stand_on_zero():
    """A quarter of the way up from -1 to 3, of 236 units below the 12 of the upper margin."""
    figure = make([Curve("c", X, WAVES[0, 0], "bars")], {"k": [0]}, ylim=(-1, 3))
    path = re.search(r'class="dg-curves"[^>]*><path d="([^"]*)"', figure.html)[1]
    assert set(re.findall(r"M[\d.]+ ([\d.]+)V", path)) == {f"{12 + 0.75 * 236:.1f}"}


def test_the_same_figure_is_the_same_text_and_another_has_another_name():
    assert make().html == make().html
    names = {re.search('data-player="([^"]*)"', f.html)[1] for f in (make(), make(xlabel="y"))}
    assert len(names) == 2


def test_the_first_frame_can_be_chosen():
    captions = np.array([[f"N {n}, t {t:.1f}" for t in TIMES] for n in ORDERS], dtype=object)
    figure = make(captions=captions, start={"N": 2, "t": TIMES[3]})
    assert re.findall(r"<output>([^<]*)</output>", figure.html) == ["2", "0.3"]
    assert re.search(r"<figcaption[^>]*>([^<]*)<", figure.html)[1] == "N 2, t 0.3"
    assert re.findall(r'max="(\d+)" step="1" value="(\d+)"', figure.html) == [
        ("2", "1"),
        ("10", "3"),
    ]


def test_names_and_texts_are_escaped():
    figure = make(
        [Curve("</script><b>", X, X)],
        {"a<b": ["</script>"]},
        xlabel="<i>",
        alt='says "so" & more words',
    )
    assert figure.html.count("</script>") == 1
    assert "&lt;/script&gt;&lt;b&gt;" in figure.html and "<i>" not in figure.html
    assert 'aria-label="says &quot;so&quot; &amp; more words"' in figure.html


def test_a_player_loads_nothing_and_is_described():
    figure = make(play="t")
    assert not re.search(r"https?:|//[a-z]|import |require\(", figure.html)
    assert f'role="img" aria-label="{ALT}"' in figure.html
    assert figure.html.count('type="range"') == 2 and '<button type="button"' in figure.html
    assert len(figure.html) < 20_000
    assert repr(figure) == f"[interactive figure: {ALT}]" and figure._repr_html_() == figure.html


FAULTS = [
    ({"curves": []}, "curves is empty"),
    ({"sliders": {}}, "sliders = "),
    ({"sliders": {"N": []}}, "sliders = "),
    ({"curves": [Curve("w", X, WAVES[:2])]}, r"'w': y has shape \(2, 11, 50\); the sliders have"),
    ({"curves": [Curve("w", X[:9], WAVES)]}, r"'w': x has shape \(9,\)"),
    ({"curves": [Curve("w", X, WAVES, "spline")]}, "style = 'spline'"),
    ({"logy": True}, "'wave': y is not above zero"),
    ({"ylim": (1, 0)}, "ylim = "),
    ({"alt": "A wave"}, "alt = "),
    ({"start": {"M": 1}}, "start names 'M'"),
    ({"start": {"N": 7}}, r"start\['N'\] = 7"),
    ({"play": "M"}, "play = 'M'"),
    ({"captions": ["a", "b"]}, r"captions has shape \(2,\)"),
    ({"curves": [Curve("w", X, np.random.default_rng(0).random((3, 2000, 50)))],
      "sliders": {"N": ORDERS, "t": range(2000)}}, "use fewer frames"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), FAULTS)
def test_bad_input_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        make(**change)


def test_a_flipbook_holds_one_picture_a_frame():
    def draw(order, panel):
        fig, ax = plot.figure(2.0, 1.5)
        ax.plot([0, order], [0, panel])
        return fig

    figure = flipbook(draw, {"N": [1, 2], "panel": [3, 4]}, alt=ALT, start={"panel": 4})
    images = spec(figure)["images"]
    assert len(set(images)) == 4
    assert f'src="{images[1]}"' in figure.html and 'width="200" height="150"' in figure.html
    with pytest.raises(ValueError, match="alt = "):
        flipbook(draw, {"N": [1], "panel": [1]}, alt="")
