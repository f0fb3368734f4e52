"""Which lane of a warp holds what in a product on tensor cores: m16n8k8, in single precision.

The layout of fragments is that of the PTX ISA, section on mma.m16n8k8.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import NamedTuple

from dgbook.page.player import Player, assemble
from dgbook.page.plot import COLORS

LANES, SUMS = 32, 4
"""Of a warp, and of a lane."""
SIDE = 25
"""Of an entry, in CSS pixels."""
_HUES = tuple(COLORS[name] for name in ("sky", "orange", "green", "purple"))
_STYLE = (
    ".dg-fragments .mine rect{fill:#f0e442;fill-opacity:1}"
    ".dg-fragments .mine text{fill:#000;font-weight:700}"
)
_DRAW = """function (root, spec) {
  var entries = root.querySelectorAll("[data-lane]"), frames = root.querySelectorAll(".framed");
  return function (frame, positions) {
    entries.forEach(function (entry) {
      entry.classList.toggle("mine", +entry.getAttribute("data-lane") === positions[0]);
    });
    frames.forEach(function (box, i) {
      box.setAttribute("x", spec.boxes[frame][i][0]);
      box.setAttribute("y", spec.boxes[frame][i][1]);
    });
  };
}"""


class Matrix(NamedTuple):
    """A matrix of the product: its place in entries, its size, and who holds an entry."""

    name: str
    left: float
    top: float
    rows: int
    columns: int
    lane: Callable[[int, int], int]


FIELD = Matrix("field: 16 elements", 0, 11.1, 16, 8, lambda r, c: 4 * (r % 8) + c % 4)
DERIVATIVE = Matrix("D: 8 nodes", 9.5, 1.4, 8, 8, lambda r, c: 4 * c + r % 4)
PRODUCT = Matrix("sums", 9.5, 11.1, 16, 8, lambda r, c: 4 * (r % 8) + c // 2)
_MATRICES = (FIELD, DERIVATIVE, PRODUCT)


def place(lane: int, j: int) -> tuple[int, int]:
    """Row and column of a lane's sum `j`."""
    return lane // 4 + 8 * (j // 2), 2 * (lane % 4) + j % 2


def fragments(alt: str, lane: int = 6) -> Player:
    """The three matrices, what a lane holds of them, and what one of its sums is made of.

    Parameters
    ----------
    alt : str
    lane : int
        Which is shown first.
    """
    choices = [(n, j) for n in range(LANES) for j in range(SUMS)]
    boxes = [_boxes(*choice) for choice in choices]
    first = SUMS * lane
    parts = [f"<style>{_STYLE}</style>"]
    for matrix in _MATRICES:
        parts.append(
            f'<text x="{matrix.left * SIDE:g}" y="{(matrix.top - 0.4) * SIDE:g}" '
            f'fill="currentColor" font-size="16">{matrix.name}</text>'
        )
        parts += [
            _entry(matrix, r, c, lane) for r in range(matrix.rows) for c in range(matrix.columns)
        ]
    for (wide, high), (x, y) in zip(((8, 1), (1, 8), (1, 1)), boxes[first], strict=True):
        parts.append(
            f'<rect class="framed" x="{x:g}" y="{y:g}" width="{wide * SIDE}" '
            f'height="{high * SIDE}" fill="none" stroke="{COLORS["vermillion"]}" '
            'stroke-width="3"/>'
        )
    width, height = round(17.7 * SIDE), round(27.3 * SIDE)
    picture = (
        f'<svg role="img" aria-label="{html.escape(alt)}" viewBox="-2 0 {width} {height}" '
        'style="display:block;width:100%;height:auto" font-family="sans-serif">'
        f"{''.join(parts)}</svg>"
    )
    return assemble(
        picture,
        {"boxes": boxes},
        {"lane": range(LANES), "sum": range(SUMS)},
        first,
        alt,
        [[_words(n, j) for j in range(SUMS)] for n in range(LANES)],
        "sum",
        1.0,
        width,
        _DRAW,
        "dg-fragments",
    )


def _boxes(lane: int, j: int) -> list[list[float]]:
    """Left upper corners of the frames: a row of the field, a column of D, and the sum."""
    row, column = place(lane, j)
    corners = (
        (FIELD.left, FIELD.top + row),
        (DERIVATIVE.left + column, DERIVATIVE.top),
        (PRODUCT.left + column, PRODUCT.top + row),
    )
    return [[round((v - 0.03) * SIDE, 2) for v in corner] for corner in corners]


def _entry(matrix: Matrix, row: int, column: int, chosen: int) -> str:
    owner = matrix.lane(row, column)
    x, y = (matrix.left + column) * SIDE, (matrix.top + row) * SIDE
    mine = ' class="mine"' if owner == chosen else ""
    return (
        f'<g data-lane="{owner}"{mine}><rect x="{x:g}" y="{y:g}" width="{SIDE - 1.5}" '
        f'height="{SIDE - 1.5}" fill="{_HUES[owner % 4]}" fill-opacity=".35"/>'
        f'<text x="{x + 11.7:g}" y="{y + 16:g}" text-anchor="middle" font-size="13.5" '
        f'fill="currentColor">{owner}</text></g>'
    )


def _words(lane: int, j: int) -> str:
    """Which lanes hold the factors of a sum."""
    row, column = place(lane, j)
    holders = (
        {matrix.lane(*at) for at in entries}
        for matrix, entries in (
            (FIELD, [(row, k) for k in range(8)]),
            (DERIVATIVE, [(k, column) for k in range(8)]),
        )
    )
    (a, b), (c, d) = ((min(lanes), max(lanes)) for lanes in holders)
    return f"row in lanes {a} to {b}, column in {c} to {d}"
