"""Pictures show exactly the pixels that they are given."""

import itertools

import numpy as np
import pytest

from hcnet.plotting import (
    image_grid,
    show_comparison,
    show_completion,
    show_features,
    show_image,
    show_placements,
    show_templates,
)
from hcnet.plotting.drawing import GAP, MISSING, PALE, PALETTE

WHITE = (255, 255, 255)
BLACK = (0, 0, 0)


def small(picture, scale):
    """A framed picture back at its own size; fails unless every pixel is one clean square."""
    large = np.asarray(picture)[1:-1, 1:-1]
    once = large[::scale, ::scale]
    assert (once.repeat(scale, axis=0).repeat(scale, axis=1) == large).all()
    return once


def random_bits(*shape, seed=0, density=0.4):
    return np.random.default_rng(seed).random(shape) < density


@pytest.mark.parametrize("scale", [1, 2, 5])
@pytest.mark.parametrize("shape", [(7, 9), (1, 7, 9), (1, 1, 7, 9)])
def test_image_is_black_on_white_and_crisp(shape, scale):
    bits = random_bits(*shape)
    colours = small(show_image(bits, scale=scale), scale)
    expected = np.where(bits.reshape(7, 9, 1), BLACK, WHITE)
    assert (colours == expected).all()


def test_missing_pixels_look_neither_on_nor_off():
    bits, mask = random_bits(8, 8), random_bits(8, 8, seed=1)
    colours = small(show_image(bits, mask, scale=3), 3)
    assert (colours[mask] == MISSING).all()
    assert (colours[~mask & bits] == BLACK).all()
    assert (colours[~mask & ~bits] == WHITE).all()


@pytest.mark.parametrize("channels", [2, 3])
def test_every_combination_of_channels_has_its_own_colour(channels):
    combinations = np.array(list(itertools.product([False, True], repeat=channels)))
    colours = small(show_image(combinations.T[:, None, :], scale=4), 4)
    assert len(np.unique(colours.reshape(-1, 3), axis=0)) == 2**channels


def test_many_channels_are_tiled():
    bits = random_bits(16, 10, 10)
    picture = np.asarray(show_image(bits, scale=2))
    assert (picture == 0).all(axis=2).sum() == 4 * bits.sum()


@pytest.mark.parametrize("captions", [None, [f"picture {k}" for k in range(7)]])
def test_grid_holds_every_image(captions):
    bits = random_bits(7, 1, 12, 12)
    picture = np.asarray(image_grid(bits, columns=3, scale=3, captions=captions))
    assert picture.shape[1] >= 3 * (12 * 3 + 2) + 2 * GAP
    assert (picture == 0).all(axis=2).sum() >= 9 * bits.sum()


def test_most_used_part_comes_first():
    parts = np.zeros((3, 1, 6, 6), bool)
    parts[0, :, :1], parts[1, :, :2], parts[2, :, :3] = True, True, True
    sheet = show_features(parts, counts=[2, 1, 9], columns=3, scale=2)
    first = np.asarray(sheet)[1 : 1 + 12, 1 : 1 + 12]
    assert (first == 0).all(axis=2).sum() == 4 * parts[2].sum()


def test_placements_have_the_colour_of_their_part():
    parts = np.zeros((2, 1, 3, 3), bool)
    parts[0, 0, 1], parts[1, 0, :, 1] = True, True
    image = np.zeros((12, 12), bool)
    image[2, 1:4] = image[5:8, 7] = image[11, 11] = True
    rows = [(0, 0, 1, 1), (0, 1, 5, 6), (1, 0, 8, 0)]
    scale = 6
    # The box lies around the ink; the middle of a pixel is free of it.
    colours = np.asarray(show_placements(image, rows, parts, scale=scale))[1:-1, 1:-1]
    centre = colours[scale // 2 :: scale, scale // 2 :: scale]
    assert (centre[2, 1:4] == PALETTE[0]).all()
    assert (centre[5:8, 7] == PALETTE[1]).all()
    assert (centre[11, 11] == PALE).all()  # explained by no part
    assert (centre[9] == WHITE).all()  # a placement of another image


def test_pixels_that_a_part_adds_are_pale():
    part = np.ones((1, 1, 2, 2), bool)
    image = np.zeros((6, 6), bool)
    image[2, 2] = True
    colours = np.asarray(show_placements(image, [(0, 0, 2, 2)], part, scale=6))[4::6, 4::6]
    assert tuple(colours[2, 2]) == PALETTE[0]
    assert min(colours[3, 3]) > min(PALETTE[0])
    assert tuple(colours[3, 3]) != WHITE


@pytest.mark.parametrize("corner", [(-2, -2), (-2, 5), (6, 6), (-9, -9)])
def test_placements_may_reach_over_the_border(corner):
    image = random_bits(8, 8)
    picture = show_placements(image, [(0, 0, *corner)], np.ones((1, 1, 3, 3), bool), scale=5)
    assert picture.size == (8 * 5 + 2, 8 * 5 + 2)


@pytest.mark.parametrize("channels", [1, 2, 5])
@pytest.mark.parametrize("n_parts", [0, 1, 30])
def test_comparison_takes_any_number_of_parts_and_channels(n_parts, channels):
    image = random_bits(channels, 20, 26)
    parts = random_bits(n_parts, channels, 5, 5)
    rows = [(0, f, f % 20, f % 26) for f in range(n_parts)]
    picture = show_comparison(image, rows, parts, image, scale=4)
    assert picture.mode == "RGB"
    assert picture.width > 4 * 26 * 4


@pytest.mark.parametrize("shape", [(5,), (2, 1, 5, 5), (1, 2, 3, 4, 5), (0, 5)])
def test_wrong_shapes_are_explained(shape):
    with pytest.raises(ValueError, match=r"must be one image of shape .* got shape"):
        show_image(np.zeros(shape))


def _linear(colours):
    scaled = np.asarray(colours) / 255
    return np.where(scaled <= 0.04045, scaled / 12.92, ((scaled + 0.055) / 1.055) ** 2.4)


# Red-green blindness as linear maps of RGB (Machado, Oliveira and Fernandes 2009).
EYES = {
    "all cones": np.eye(3),
    "no green cones": np.array(
        [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]
    ),
    "no red cones": np.array(
        [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]
    ),
}


@pytest.mark.parametrize("eye", EYES)
def test_colours_stay_apart_for_everybody(eye):
    seen = np.cbrt(np.clip(_linear(PALETTE) @ EYES[eye].T, 0, 1))  # about as bright as it looks
    distances = np.linalg.norm(seen[:, None] - seen, axis=2) + 9 * np.eye(len(seen))
    assert distances.min() > 0.08


def test_templates_are_drawn_by_their_features_at_the_centre_of_their_pools():
    """Two features of 2×2: the second one stands an element further right in the layer above."""
    W1 = np.zeros((2, 1, 2, 2), bool)
    W1[0, 0, 0] = True  # a dash
    W1[1, 0, :, 0] = True  # a bar
    W2 = np.zeros((1, 2, 1, 2), bool)
    W2[0, 0, 0, 0] = W2[0, 1, 0, 1] = True
    picture = show_templates([W1, W2], [(3, 3), (3, 3)], scale=4)
    colours = small(picture, 4)
    # R² is 1×2; its pools put S¹ on a 3×4 grid, features on row 1, columns 1 and 2.
    assert colours.shape[:2] == (4, 5)
    dash = {(1, 1), (1, 2)}
    bar = {(1, 2), (2, 2)}
    for at in np.ndindex(4, 5):
        wanted = WHITE
        if at in dash or at in bar:
            wanted = BLACK if at in dash & bar else PALETTE[0 if at in dash else 1]
        assert tuple(colours[at]) == wanted, at


def test_a_completion_has_a_row_each_for_what_was_seen_filled_in_and_true():
    rng = np.random.default_rng(0)
    truth = rng.random((3, 1, 5, 6)) < 0.5
    mask = np.zeros((5, 6), bool)
    mask[:2] = True
    filled = np.where(mask, ~truth, truth)
    two, three = (
        np.asarray(show_completion(truth, mask, filled, last, scale=4)) for last in (None, truth)
    )
    tile = 5 * 4 + 2
    assert three.shape[0] == two.shape[0] + tile + GAP
    right = three[:, -(6 * 4 + 2) :]  # the last image of each row
    rows = [right[k * (tile + GAP) : k * (tile + GAP) + tile] for k in range(3)]
    seen, done, true = (small(row, 4) for row in rows)
    assert (seen[mask] == MISSING).all()
    assert ((done == 0).all(axis=2) == filled[-1, 0]).all()
    assert ((true == 0).all(axis=2) == truth[-1, 0]).all()
