"""Pictures of errors, classes, hierarchies and curves, and pictures made of characters."""

import math

import numpy as np
import pytest
from PIL import Image

from hcnet.engine.driver import Record
from hcnet.plotting import (
    save_picture,
    show_confusion,
    show_curve,
    show_errors,
    show_hierarchy,
)
from hcnet.plotting.curves import nice_ticks
from hcnet.plotting.drawing import ADDED, LINE, MISSED, MISSING, PALETTE
from hcnet.plotting.errors import confusion
from hcnet.plotting.network import drawn_features
from hcnet.plotting.terminal import text_image, text_sheet

BLACK, WHITE = (0, 0, 0), (255, 255, 255)


def bits(*shape, seed=0):
    return np.random.default_rng(seed).random(shape) < 0.4


def test_errors_are_marked_by_their_kind():
    seen, made, mask = bits(9, 11), bits(9, 11, seed=1), bits(9, 11, seed=2)
    scale = 20  # wide enough that the words below are no wider than the picture
    picture = np.asarray(show_errors(seen, made, mask, scale=scale))
    colours = picture[1 : 1 + 9 * scale : scale, 1 : 1 + 11 * scale : scale]
    for at in np.ndindex(9, 11):
        wanted = BLACK if made[at] else MISSING if mask[at] else WHITE
        if not mask[at] and seen[at] != made[at]:
            wanted = MISSED if seen[at] else ADDED
        assert tuple(colours[at]) == wanted, at
    assert picture.shape[0] == 9 * scale + 2 + LINE


def test_several_images_with_errors_are_one_sheet():
    seen, made = bits(4, 1, 8, 8), bits(4, 1, 8, 8, seed=1)
    picture = np.asarray(show_errors(seen, made, scale=3))
    for colour, mark in ((MISSED, seen & ~made), (ADDED, made & ~seen)):
        assert (picture == colour).all(axis=2).sum() == 9 * mark.sum()


def test_confusion_counts_pairs_and_leaves_out_images_without_a_label():
    y = ["cat", "dog", "cat", -1, "dog"]
    found = ["cat", "cat", "cat", "dog", "dog"]
    np.testing.assert_array_equal(confusion(y, found, ["cat", "dog"]), [[2, 0], [1, 1]])


def test_the_darkest_cell_of_a_row_is_the_class_it_was_mostly_taken_for():
    y, found = [0] * 10 + [1] * 4, [0] * 9 + [1] + [0] * 4
    picture = np.asarray(show_confusion(y, found, [0, 1])).astype(int)
    # Corners of the four cells are free of numbers; the frame is grey.
    blue = (picture[..., 2] > picture[..., 0] + 100).any(axis=0)
    rows = (picture[..., 2] > picture[..., 0] + 100).any(axis=1)
    columns = np.flatnonzero(blue)
    assert columns.max() - columns.min() < 60  # only the first column is dark
    assert rows.sum() > 60  # in both rows


def test_a_hierarchy_has_a_row_per_layer_and_draws_down_to_the_pixels():
    W1 = np.zeros((2, 1, 2, 2), bool)
    W1[0, 0, 0], W1[1, 0, :, 0] = True, True
    W2 = np.zeros((1, 2, 1, 2), bool)
    W2[0, 0, 0, 0] = W2[0, 1, 0, 1] = True
    top = drawn_features([W1, W2], [(1, 1), (1, 1)])
    # A dash at the left, a bar beside it; they share no pixel except where both are on.
    np.testing.assert_array_equal(top[0], [[1, 3, 0], [0, 2, 0]])
    picture = np.asarray(show_hierarchy([W1, W2], [(1, 1), (1, 1)], ["all"], scale=10))
    for f in range(2):
        share = (picture == PALETTE[f]).all(axis=2).sum()
        assert share == 100 * (W1[f].sum() + (top[0] == f + 1).sum())


@pytest.mark.parametrize("history", [[], [5.0], [1.0, 1.0], [-9e5, -3e4, -2e4], [-math.inf, 2.0]])
def test_curves_take_any_history(history):
    records = [Record(k + 1, float(k), value, 0, None) for k, value in enumerate(history)]
    picture = np.asarray(show_curve(records, (300, 200)))
    assert picture.shape == (200, 300, 3)
    drawn = (picture == PALETTE[0]).all(axis=2).any()
    assert drawn == any(map(math.isfinite, history))


def test_a_curve_goes_up_where_the_probability_does():
    records = [Record(k, 0.0, float(k), 0, None) for k in range(1, 9)]
    line = (np.asarray(show_curve(records)) == PALETTE[0]).all(axis=2)
    left, right = np.flatnonzero(line.any(axis=0))[[0, -1]]
    assert np.flatnonzero(line[:, left]).mean() > np.flatnonzero(line[:, right]).mean() + 100


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-87_000, -12_345), (3, 3), (0, 0), (1e-9, 2e-9)]
)
def test_ticks_are_few_and_enclose_what_is_drawn(low, high):
    ticks = nice_ticks(low, high)
    assert ticks[0] <= low
    assert ticks[-1] >= high
    assert 2 <= len(ticks) <= 7


def test_characters_show_every_pixel():
    on = bits(5, 7)
    lines = text_image(on)
    back = [[char in "▀█" for char in line] for line in lines]
    low = [[char in "▄█" for char in line] for line in lines]
    whole = np.array([row for pair in zip(back, low, strict=True) for row in pair])
    assert (whole[:5] == on).all()
    assert not whole[5:].any()


def test_a_sheet_of_characters_keeps_to_its_width():
    sheet = text_sheet(list(bits(9, 1, 6, 12)), [f"part {k}" for k in range(9)], width=40)
    assert max(map(len, sheet.splitlines())) <= 40
    assert [word for word in sheet.split() if word.isdecimal()] == list("012345678")
    assert text_sheet([], [], 40) == ""


def test_pictures_are_not_written_over_other_files(tmp_path):
    picture = show_errors(bits(4, 4), bits(4, 4))
    path = save_picture(picture, tmp_path / "a.png")
    with Image.open(path) as again:
        assert again.size == picture.size
    with pytest.raises(FileExistsError, match="exists already"):
        save_picture(picture, path)
    with pytest.raises(ValueError, match=r"does not end in \.png"):
        save_picture(picture, tmp_path / "a.jpg")
    with pytest.raises(ValueError, match=r"mode 'I' .* convert it first"):  # not in PNG any more
        save_picture(picture.convert("I"), tmp_path / "b.png")
