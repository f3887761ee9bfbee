"""Pieces of ink, their neighbours and unions, and pixels that were flipped."""

import itertools

import numpy as np
import plain
import pytest
from scipy import ndimage

from hcnet.datasets import scanned_text
from hcnet.soft.denoising import without_flips
from hcnet.soft.pieces import (
    find_pieces,
    flip_rates,
    joined,
    neighbours,
    selected,
    smallest_box,
    unions,
)


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


def test_flips_neither_join_nor_multiply_pieces(page):
    """Components of the majority; the flips that touch them belong to them."""
    rng = np.random.default_rng(0)
    noisy = page ^ (rng.random(page.shape) < 0.02)
    _, many = ndimage.label(noisy, np.ones((3, 3)))
    clean, found = find_pieces(page), find_pieces(noisy)
    assert many > 5 * len(clean)
    assert abs(len(found) - len(clean)) < 0.35 * len(clean)
    paste = pasted(found, page.shape)
    assert paste.max() == 1
    assert not paste[~noisy].any()
    assert paste[page & noisy].mean() > 0.9


@pytest.mark.parametrize(("p10", "p01"), [(0.0, 0.0), (0.02, 0.01), (0.005, 0.05)])
def test_rates_of_flips_are_measured(p10, p01):
    rng = np.random.default_rng(1)
    page = np.kron(rng.random((12, 12)) < 0.5, np.ones((25, 25))) > 0
    chance = np.where(page, p01, p10)
    on, off = flip_rates(page ^ (rng.random(page.shape) < chance))
    # Others among the 24 neighbours are flipped as well, so only isolated flips count.
    assert on == pytest.approx(p10, abs=0.004)
    assert off == pytest.approx(p01, abs=0.012)


def test_known_flips_are_taken_back():
    rng = np.random.default_rng(2)
    page = np.kron(rng.random((20, 20)) < 0.5, np.ones((20, 20))) > 0
    none = np.full(page.shape, -1, np.float32)
    np.testing.assert_array_equal(without_flips(page, none), page)  # nothing to do
    noisy = page ^ (rng.random(page.shape) < 0.03)
    cleaned = without_flips(noisy, none)
    assert (cleaned != page).sum() < 0.1 * (noisy != page).sum()
    # A part says what its pixels were even where the neighbours do not.
    stripes = np.zeros((300, 300), bool)
    stripes[::2] = True
    noisy = stripes | (page[:300, :300] & (rng.random(stripes.shape) < 0.03))
    known = without_flips(noisy, stripes.astype(np.float32))
    assert (known != stripes).sum() <= (noisy != stripes).sum()


def test_a_full_and_an_empty_page_have_no_flips():
    for value in (False, True):
        page = np.full((60, 80), value)
        level = np.full(page.shape, -1, np.float32)
        np.testing.assert_array_equal(without_flips(page, level), page)


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
