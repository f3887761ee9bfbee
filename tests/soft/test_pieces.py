"""Pieces of ink, their neighbours and unions."""

import itertools

import numpy as np
import plain
import pytest
from scipy import ndimage

from hcnet.datasets import scanned_text
from hcnet.soft.pieces import find_pieces, joined, neighbours, selected, smallest_box, unions


@pytest.fixture(scope="module")
def page():
    return scanned_text(size=(400, 700), random_state=2).images[0, 0]


def pasted(pieces, shape):
    found = np.zeros(shape, np.int64)
    for i in range(len(pieces)):
        top, left, (h, w) = pieces.top[i], pieces.left[i], pieces.bitmap(i).shape
        found[top : top + h, left : left + w] += pieces.bitmap(i)
    return found


def test_pieces_are_the_components_of_a_page(page):
    pieces = find_pieces(page, number=3)
    found = pasted(pieces, page.shape)
    assert found.max() == 1  # no pixel is in two
    assert not found[~page].any()
    label, n = ndimage.label(page, np.ones((3, 3)))
    size = np.bincount(label.ravel())[1:]
    assert found.sum() >= size[size >= 6].sum()
    assert n / 2 < len(pieces) <= (size >= 6).sum()
    assert (pieces.page == 3).all()
    for i in range(len(pieces)):
        np.testing.assert_array_equal(
            smallest_box(pieces.bitmap(i) > 0), [0, pieces.height[i], 0, pieces.width[i]]
        )
        assert pieces.area[i] == pieces.bitmap(i).sum()
        centre = np.argwhere(pieces.bitmap(i)).mean(axis=0)
        assert np.abs(pieces.reference[i] - centre).max() <= 0.5


def test_a_dot_and_its_stem_are_one_piece():
    page = np.zeros((60, 200), bool)
    for x in range(10, 190, 15):  # letters set the height of a line
        page[20:40, x : x + 6] = True
    page[12:16, 40:46] = True
    pieces = find_pieces(page)
    assert len(pieces) == 12
    assert sorted(pieces.height)[-2:] == [20, 28]


def test_large_and_tiny_components_are_left_out(page):
    boxes = [(p.height, p.width) for p in (find_pieces(page, 0, (20, 15)),)]
    assert (boxes[0][0] <= 20).all()
    assert (boxes[0][1] <= 15).all()
    speck = np.zeros((30, 30), bool)
    speck[3, 3:8] = True
    assert len(find_pieces(speck)) == 0
    speck[4, 3] = True
    assert len(find_pieces(speck)) == 1
    for empty in (np.zeros((9, 9), bool), np.ones((500, 500), bool)):
        assert len(find_pieces(empty)) == 0


def boxes_apart(pieces, i, j):
    """How far two boxes are apart, by the larger of both directions."""
    apart = []
    for low, side in ((pieces.top, pieces.height), (pieces.left, pieces.width)):
        apart.append(max(low[i] - low[j] - side[j], low[j] - low[i] - side[i]))
    return max(apart)


@pytest.mark.parametrize("gap", [0.0, 3.0, 11.0])
def test_neighbours_are_all_pairs_that_are_near(gap):
    rng = np.random.default_rng(5)
    bitmaps = [np.ones(rng.integers(1, 12, 2), np.uint8) for _ in range(40)]
    one = plain.pieces_of(bitmaps, rng.integers(0, 70, (40, 2)))
    other = plain.pieces_of(bitmaps[:9], rng.integers(0, 30, (9, 2)), page=1)
    pieces = joined([one, other])
    found = {tuple(sorted(pair)) for pair in neighbours(pieces, gap).tolist()}
    expected = {
        (i, j)
        for i, j in itertools.combinations(range(49), 2)
        if pieces.page[i] == pieces.page[j] and boxes_apart(pieces, i, j) <= gap
    }
    assert found == expected
    assert len(neighbours(pieces, gap)) == len(found)
    for few in (0, 1):
        assert neighbours(selected(pieces, np.arange(few)), gap).shape == (0, 2)


def test_unions_selections_and_joins_keep_the_ink(page):
    pieces = find_pieces(page)
    pairs = neighbours(pieces, 8.0)
    both = unions(pieces, pairs)
    for q in range(0, len(pairs), 7):
        expected = pasted(selected(pieces, pairs[q]), page.shape)
        np.testing.assert_array_equal(pasted(selected(both, np.array([q])), page.shape), expected)
    which = np.array([5, 2, 2, 9])
    some = selected(pieces, which)
    for q, i in enumerate(which):
        np.testing.assert_array_equal(some.bitmap(q), pieces.bitmap(i))
        np.testing.assert_array_equal(some.reference[q], pieces.reference[i])
    again = joined([some, pieces])
    assert len(again) == 4 + len(pieces)
    np.testing.assert_array_equal(again.bitmap(4 + 7), pieces.bitmap(7))
    empty = selected(pieces, np.zeros(0, np.int64))
    assert len(joined([empty, empty])) == 0
    assert len(unions(pieces, np.zeros((0, 2), np.int64))) == 0


def test_the_smallest_box_of_nothing_is_everything():
    np.testing.assert_array_equal(smallest_box(np.zeros((4, 6), bool)), [0, 4, 0, 6])
