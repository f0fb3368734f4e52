"""Fragments of a product on tensor cores, as they are drawn: who holds what."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dgbook.page import fragments

ALT = "Three grids of numbers, the lanes that hold the entries."


@pytest.mark.parametrize(
    ("matrix", "each"),
    [(fragments.FIELD, 4), (fragments.DERIVATIVE, 2), (fragments.PRODUCT, 4)],
)
def test_lanes_share_a_matrix_evenly(matrix, each):
    held = Counter(matrix.lane(*at) for at in np.ndindex(matrix.rows, matrix.columns))
    assert held == dict.fromkeys(range(32), each)


def test_a_lane_holds_its_sums():
    places = {fragments.place(lane, j) for lane in range(32) for j in range(4)}
    assert len(places) == 16 * 8
    for lane in range(32):
        for j in range(4):
            assert fragments.PRODUCT.lane(*fragments.place(lane, j)) == lane


def test_factors_come_from_the_lanes_that_a_shuffle_asks():
    """The numbers of lesson 6b's `mma`: entry k of a row and of a column."""
    for lane in range(32):
        g, t = lane // 4, lane % 4
        for j in range(4):
            row, column = fragments.place(lane, j)
            for k in range(8):
                assert fragments.FIELD.lane(row, k) == 4 * g + k % 4
                assert fragments.DERIVATIVE.lane(k, column) == 4 * (2 * t + j % 2) + k % 4


def test_figure_shows_a_lane_and_frames_what_it_needs():
    block = fragments.fragments(ALT, lane=6).html
    assert block.count('class="mine"') == 4 + 2 + 4
    assert block.count('data-lane="6" class="mine"') == 10
    assert "row in lanes 4 to 7, column in 16 to 19" in block
    assert f'aria-label="{ALT}"' in block and len(block) < 100_000
