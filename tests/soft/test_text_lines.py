"""Lines of text: where pieces stand in them, and what their positions cost."""

import math

import numpy as np
import plain
import pytest

from hcnet.soft.coding import NO_ROW
from hcnet.soft.lines import in_lines, places

LETTER, DOT = np.ones((20, 12), bool), np.ones((4, 4), bool)
TOTAL = math.e * 1e6


def line(*more):
    """Ten letters on row 120, four columns apart, and other bitmaps at some corners."""
    corners = [(100, 50 + 16 * k) for k in range(10)] + [corner for _, corner in more]
    return in_lines(plain.pieces_of([LETTER] * 10 + [one for one, _ in more], corners))


def test_letters_side_by_side_stand_on_one_row():
    pieces = line()
    assert (pieces.line == 120).all()
    assert np.isnan(pieces.gap).tolist() == [True] + 9 * [False]


def test_full_stops_and_hyphens_stand_in_the_line_of_the_letters_beside_them():
    assert (line((DOT, (116, 212)), (DOT, (108, 222))).line[-2:] == 120).all()


def test_a_piece_away_from_all_others_stands_in_no_line():
    pieces = line((LETTER, (400, 900)))
    assert pieces.line[-1] == NO_ROW
    assert pieces.arrays()[5][-1] == NO_ROW
    assert places(pieces, TOTAL, 10)[-1] == pytest.approx(math.log2(TOTAL))


def test_positions_in_a_line_cost_less_the_commoner_their_gap():
    pieces = line((LETTER, (100, 50 + 160 + 30)))
    bits = places(pieces, TOTAL, 10)
    assert (bits[1:10] < bits[10]).all()
    assert bits[10] < math.log2(TOTAL)
